//! Runs: written once, read a block at a time.

use std::ops::Range;

use esker_format::history::{
    Branch, Directory, Item, Level, Place, RunId, RunWriter, decode_block,
};
use esker_store::{Segments, random};

use crate::error::{Error, Result};
use crate::keys;

/// A run that can be asked.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    name: String,
    pub(crate) directory: Directory,
}

impl Run {
    /// The run of a level of a version.
    pub(crate) fn open(
        segments: &dyn Segments,
        level: &Level,
        (branch, number): (&Branch, u64),
    ) -> Result<Run> {
        let name = keys::run(level);
        let damaged = |error| Error::damaged(&name, error);
        let begin = level.bytes.saturating_sub(Directory::TAIL);
        let Some(tail) = segments.read(&name, begin..level.bytes)? else {
            return Err(Error::Gone { name, branch: branch.clone(), number });
        };
        let place = Directory::place(level.bytes, &tail).map_err(damaged)?;
        let bytes = segments.read(&name, place.start..level.bytes)?.unwrap_or_default();
        let directory = Directory::decode(level.id, &place, &bytes).map_err(damaged)?;
        Ok(Run { name, directory })
    }

    /// The items of a block.
    pub(crate) fn block(&self, segments: &dyn Segments, number: usize) -> Result<Vec<Item>> {
        let block = &self.directory.blocks[number];
        let bytes = segments.read(&self.name, block.at..block.at + block.len)?.unwrap_or_default();
        decode_block(self.directory.id, number, &bytes)
            .map_err(|error| Error::damaged(&self.name, error))
    }

    /// The numbers of its blocks with facts: no block has both facts and data.
    pub(crate) fn fact_blocks(&self) -> impl Iterator<Item = usize> {
        let is_fact =
            |block: &usize| matches!(self.directory.blocks[*block].first, Place::Fact(..));
        self.blocks().filter(is_fact)
    }

    /// Its blocks, one at a time.
    pub(crate) fn blocks(&self) -> Range<usize> {
        0..self.directory.blocks.len()
    }
}

/// Bytes of a run that are kept before they are appended.
const PART: usize = 1 << 20;

/// Makes a run of sorted items for a number. One that fails is removed.
pub(crate) fn write(
    segments: &dyn Segments,
    (writer, made): (u64, u64),
    durable: bool,
    items: impl Iterator<Item = Result<Item>>,
) -> Result<Level> {
    let id = RunId { writer, number: random() };
    let name = keys::run_of(made, id);
    let level = write_as(segments, (id, made), &name, durable, items);
    if level.is_err() {
        // What cannot be removed is garbage, in the way of nothing.
        let _ = segments.remove(&name);
    }
    level
}

fn write_as(
    segments: &dyn Segments,
    (id, made): (RunId, u64),
    name: &str,
    durable: bool,
    items: impl Iterator<Item = Result<Item>>,
) -> Result<Level> {
    let mut segment = segments.create(name)?;
    let mut writer = RunWriter::new(id);
    let (mut waiting, mut bytes) = (Vec::new(), 0);
    let (mut first, mut last) = (u64::MAX, 0);
    for item in items {
        let item = item?;
        (first, last) = (item.number.min(first), item.number.max(last));
        writer.push(item).map_err(|error| Error::damaged(name, error))?;
        waiting.append(&mut writer.take());
        if waiting.len() >= PART {
            segment.append(&waiting)?;
            bytes += waiting.len() as u64;
            waiting.clear();
        }
    }
    let items = writer.items();
    waiting.append(&mut writer.finish());
    segment.append(&waiting)?;
    bytes += waiting.len() as u64;
    if durable {
        segment.sync()?;
    }
    Ok(Level { id, bytes, items, numbers: first.min(last)..=last, made })
}
