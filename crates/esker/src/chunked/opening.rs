//! What a header says of chunked variables is compared with their tables before it is believed.

use std::sync::PoisonError;

use esker_comm::Message;
use esker_format::VarId;

use super::tables::Trouble;
use super::{Chunked, ChunkedVar};
use crate::base::{broadcast_parts, read_header};
use crate::error::{Error, Result};
use crate::ground::Ground;

/// Heads of tables that are read at once, in bytes, and how far apart they may lie.
const AT_ONCE: u64 = 1 << 20;
const APART: u64 = 4096;

/// What was found of a table: where its first block is, or what is wrong.
type Found = std::result::Result<u64, String>;

impl Chunked {
    /// Looks whether the table of every chunked variable was made for what the header says. One that was not
    /// cannot be read, and a dataset with such a one cannot be written: its chunks would be taken for
    /// free room. Collective.
    pub(crate) fn compare_tables(&mut self, ground: &Ground) -> Result<()> {
        let looked = ground.base.by_root(|| self.look_at_tables(ground))?;
        let found = match ground.base.comm.size() {
            1 => looked.unwrap_or_default(),
            _ => {
                let parts = looked.map_or(Vec::new(), |found| to_parts(&found));
                let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
                from_parts(&broadcast_parts(&*ground.base.comm, &parts)?).ok_or(Error::Garbled)?
            }
        };
        for (var, found) in found {
            match (self.vars.get_mut(var.0), found) {
                (Some(Some(Ok(known))), Ok(first)) => {
                    let chain = known.chain.get_mut();
                    chain.unwrap_or_else(PoisonError::into_inner).begins_at(first);
                }
                (Some(slot), Err(why)) => *slot = Some(Err(why)),
                _ => return Err(Error::Garbled),
            }
        }
        match self.vars.iter().position(|var| matches!(var, Some(Err(_)))) {
            Some(bad) if ground.base.writable => {
                self.found(ground, VarId(bad)).map(drop).map_err(|error| match error {
                    Error::Chunked { path, var, why } => {
                        let why = format!("the file cannot be written: {why}");
                        Error::Chunked { path, var, why }
                    }
                    error => error,
                })
            }
            _ => Ok(()),
        }
    }

    /// What the tables are, those that could be looked at. (What the system refuses is told when somebody asks for
    /// values.)
    fn look_at_tables(&self, ground: &Ground) -> Result<Vec<(VarId, Found)>> {
        let Ok(tables) = self.tables_file(ground) else { return Ok(Vec::new()) };
        let heap = self.heap_in(&*tables);
        let mut all: Vec<(VarId, &ChunkedVar)> = self.sound().collect();
        let place = |var: &ChunkedVar| var.chain().head();
        all.sort_by_key(|(_, var)| place(var));
        let mut found = Vec::with_capacity(all.len());
        let mut bytes = Vec::new();
        let mut rest = &all[..];
        while let Some((_, first)) = rest.first() {
            let start = place(first).0;
            let mut end = start;
            let near = rest.iter().take_while(|(_, var)| {
                let (at, len) = place(var);
                let stop = at.saturating_add(len);
                let is_near = at <= end.saturating_add(APART) && stop - start <= AT_ONCE;
                end = if is_near { end.max(stop) } else { end };
                is_near
            });
            let (now, later) = rest.split_at(near.count().max(1));
            rest = later;
            bytes.resize((end - start).min(AT_ONCE) as usize, 0);
            let at = heap.begin.saturating_add(start).min(i64::MAX as u64);
            let n = heap.file.read_at(at, &mut bytes)?;
            for (id, var) in now {
                let at = (place(var).0 - start) as usize;
                let read = bytes[..n].get(at..).unwrap_or_default();
                let opened = match require_counted(ground, var) {
                    Ok(()) => var.chain().open(heap, read),
                    Err(why) => Err(Trouble::Damage(why)),
                };
                match opened {
                    Ok(first) => found.push((*id, Ok(first))),
                    Err(Trouble::Damage(why)) => found.push((*id, Err(why))),
                    Err(Trouble::Store(_)) => {}
                }
            }
        }
        Ok(found)
    }

    /// Fails for records that the file counts though nobody has begun to write them; `in_logs` if there may be some
    /// that are in logs alone, which a flush begins.
    pub(super) fn require_begun(
        &self,
        ground: &Ground,
        (id, var): (VarId, &ChunkedVar),
        records: u64,
        in_logs: bool,
    ) -> Result<()> {
        let records = match in_logs || self.deferred_records() > 0 {
            true => records.min(ground.counted()),
            false => records,
        };
        if !var.grid().has_records || records <= ground.begun() {
            return Ok(());
        }
        let (counted, begun) = (ground.records, ground.begun());
        let why = format!(
            "the file counts {counted} records, but no more than {begun} were ever begun: the number of \
             records is damaged"
        );
        Err(ground.chunk_error(id, why))
    }

    /// What was found of the same file's tables when it was opened.
    pub(crate) fn know(&mut self, known: &Chunked) {
        for (own, known) in self.vars.iter_mut().zip(&known.vars) {
            match (own, known) {
                (Some(own), Some(Err(why))) => *own = Err(why.clone()),
                (Some(Ok(own)), Some(Ok(known))) => {
                    let first = known.chain().first();
                    let chain = own.chain.get_mut().unwrap_or_else(PoisonError::into_inner);
                    first.into_iter().for_each(|first| chain.begins_at(first));
                }
                _ => {}
            }
        }
    }
}

/// Fails if the file counts fewer records than were written of a variable.
fn require_counted(ground: &Ground, var: &ChunkedVar) -> std::result::Result<(), String> {
    let written = var.anchor.records;
    if !var.grid().has_records || written <= ground.records {
        return Ok(());
    }
    // A writer may have counted them since the header was read.
    let now = read_header(&ground.base.path, &*ground.file).ok();
    let now = now.and_then(|(header, _)| Some(header.records(ground.file.len().ok()?)));
    let counted = now.unwrap_or(ground.records).max(ground.records);
    match written <= counted {
        true => Ok(()),
        false => Err(format!(
            "{written} of its records were written, but the file counts {counted}: its header is \
             damaged"
        )),
    }
}

/// Numbers of variables and places of blocks, 0 for a fault; then the sentences.
fn to_parts(found: &[(VarId, Found)]) -> Vec<Vec<u8>> {
    let number = |(var, found): &(VarId, Found)| {
        let first = found.as_ref().map_or(0, |first| first.saturating_add(1));
        [var.0 as u64, first]
    };
    let numbers: Vec<u64> = found.iter().flat_map(number).collect();
    let faults = found.iter().filter_map(|(_, found)| found.as_ref().err());
    let numbers = Message::from_u64s(&numbers).to_vec();
    [numbers].into_iter().chain(faults.map(|why| why.clone().into_bytes())).collect()
}

fn from_parts(parts: &[Vec<u8>]) -> Option<Vec<(VarId, Found)>> {
    let (numbers, faults) = parts.split_first()?;
    let numbers = Message::from(numbers.clone()).to_u64s();
    let mut faults = faults.iter();
    let one = |[var, first]: &[u64; 2]| {
        let found = match first.checked_sub(1) {
            Some(first) => Ok(first),
            None => Err(String::from_utf8_lossy(faults.next()?).into_owned()),
        };
        Some((VarId(*var as usize), found))
    };
    numbers.as_chunks::<2>().0.iter().map(one).collect()
}
