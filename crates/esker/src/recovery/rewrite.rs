//! Metadata logs written anew, without what is damaged.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::{Cut, Entry, Frame, FrameKind, FrameWriter, Head, Session};
use esker_store::{Access, File, Lane, ReadPool, Store};

use super::read::{self, LogRead};
use crate::container::meta_path;
use crate::error::{Error, Result};
use crate::log::LogSource;

/// A frame is finished when it has this many bytes.
const FRAME: usize = 256 * 1024;

/// Writes the session's metadata logs anew and gives the session as it is then. The payloads stay
/// where they are; a log that is not there is left out.
pub(super) fn without_damage(
    store: &Arc<dyn Store>,
    pool: &Arc<ReadPool>,
    path: &Path,
    session: Session,
    logs: &[LogRead],
) -> Result<Session> {
    let mut new = session.clone();
    // What an interrupted recovery left behind is in nobody's way.
    while new.revision == session.revision
        || new
            .logs
            .iter()
            .map(|p| store.exists(&meta_path(path, &new, p.file)))
            .any(|e| matches!(e, Ok(true)))
    {
        new.revision += 1;
    }
    let ranks = session.logs.len() as u32;
    let mut made = Vec::new();
    new.logs.clear();
    for (part, read) in session.logs.iter().zip(logs) {
        if read.missing {
            continue;
        }
        let target = meta_path(path, &new, part.file);
        if !made.contains(&part.file) {
            store.create_like(&target, &meta_path(path, &session, part.file))?;
            made.push(part.file);
        }
        let file = store.open(&target, Access::ReadWrite)?;
        let file = Lane::open(file, part.lane.into(), part.lanes.into(), session.meta_block);
        let source = read::open(pool, path, &session, part);
        let rank = read.rank.unwrap_or(part.rank);
        let head = Head { identity: session.identity, rank, ranks, text: String::new() };
        let mut copy = Copy::begin(source, file, &head, path)?;
        let mut part = part.clone();
        copy.run(read, &mut part.cuts)?;
        part.rank = rank;
        (part.meta_len, part.data_len) = (copy.end, read.data_end);
        new.logs.push(part);
    }
    Ok(new)
}

/// One metadata log on its way.
struct Copy {
    source: LogSource,
    target: Arc<dyn File>,
    end: u64,
    frame: Option<FrameWriter>,
    /// Where the next payload of the open frame would be.
    place: u64,
    /// Definitions by their old numbers: where they are, and the new number once it has one.
    places: HashMap<u64, (Range<u64>, u64)>,
    numbers: HashMap<u64, u64>,
    next: u64,
    container: PathBuf,
}

impl Copy {
    fn begin(
        source: LogSource,
        target: Arc<dyn File>,
        head: &Head,
        container: &Path,
    ) -> Result<Copy> {
        let head = head.encode();
        target.write_at(0, &head)?;
        let (places, numbers) = (HashMap::new(), HashMap::new());
        let end = head.len() as u64;
        let container = container.to_path_buf();
        Ok(Copy { source, target, end, frame: None, place: 0, places, numbers, next: 0, container })
    }

    /// Copies what is whole; `cuts` are where they are in the copy then.
    fn run(&mut self, read: &LogRead, cuts: &mut [Cut]) -> Result<()> {
        let mut log = self.source.clone();
        log.meta_len = Some(read.end());
        log.skip_head()?;
        let mut number = 0;
        let mut cuts = cuts.iter_mut().peekable();
        log.read_on(|frame| {
            if let Ok(frame) = frame {
                // What came with one version does not share a frame with what came with the next.
                while let Some(cut) = cuts.next_if(|cut| cut.end < frame.end) {
                    self.finish()?;
                    cut.end = self.end;
                }
                // Where they are is said again for readers of sections, who do not know what may be in them.
                let known = frame.footprints.iter().filter(|_| frame.kind == FrameKind::Entries);
                self.places.extend(known.map(|d| (d.number, (d.place.clone(), frame.data_end))));
                for entry in &frame.entries {
                    if !read.bad.contains(&number) {
                        self.entry(&frame, entry)?;
                    }
                    number += 1;
                }
            }
            Ok(())
        })?;
        self.finish()?;
        cuts.for_each(|cut| cut.end = self.end);
        Ok(self.target.sync()?)
    }

    fn entry(&mut self, frame: &Frame, entry: &Entry) -> Result<()> {
        let full = self.frame.as_ref().is_some_and(|frame| frame.len() >= FRAME);
        if full || self.place != entry.place {
            self.finish()?;
        }
        let known = self.numbers.get(&entry.footprint).copied();
        let definition = match (known, self.places.get(&entry.footprint)) {
            (Some(_), _) | (None, None) => None,
            (None, Some((place, most))) => read::footprint(&self.source, place, *most)?,
        };
        let next = self.next;
        let writer = self.frame.get_or_insert_with(|| FrameWriter::new(entry.place, next));
        let number = match (known, definition) {
            (Some(number), _) => number,
            (None, Some(definition)) => {
                let number = writer.define(&definition);
                self.numbers.insert(entry.footprint, number);
                number
            }
            // It was there when the log was read: somebody has changed it since.
            (None, None) => {
                let why = format!(
                    "the footprint of the write at byte {} of a data log cannot be read any more; somebody \
                     changes its logs",
                    entry.place
                );
                return Err(Error::Container { path: self.container.clone(), why });
            }
        };
        let sums = frame.sums.get(entry.sums.clone()).unwrap_or_default();
        writer.entry(&entry.write, number, entry.len, entry.encoded, sums);
        self.next = writer.next_footprint();
        self.place = entry.place + entry.len;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(bytes) = self.frame.take().and_then(FrameWriter::finish) {
            self.target.write_at(self.end, &bytes)?;
            self.end += bytes.len() as u64;
        }
        Ok(())
    }
}
