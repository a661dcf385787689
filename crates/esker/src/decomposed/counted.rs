//! How many records a dataset with decomposed variables has.
//!
//! The number of records changes all the time, so that no seal covers it, and one that is damaged takes records
//! away or shows some that never were. So the first map says two numbers more (`esker_format`'s `Counts`): one that is
//! written before records are counted, and one that is written after they were synced. (Chunked variables have such
//! numbers too: `begun.rs`, `opening.rs`.) What they say together is `credit.rs`.

use esker_format::sealed::decomposed::{Counts, count_fields, counts_of, put_counts};
use esker_format::{NumRecs, Schema};

use super::DecompositionError;
use crate::credit::Credit;
use crate::dataset::Dataset;
use crate::error::{Error, Result};

impl Dataset {
    /// Shows as many records as the file can have. Collective, on every rank alike.
    pub(crate) fn believe(&mut self, credit: Credit) -> Result<()> {
        if self.base.raw {
            return Ok(());
        }
        match credit {
            Credit::Full => Ok(()),
            Credit::Less(note) => {
                self.tell(note);
                // What a killed program has left behind them is written over from now on (of chunked variables, by
                // `forget_uncounted`).
                let counts = counts_of(&self.header.schema).filter(|_| self.base.writable);
                let Some(counts) = counts else { return Ok(()) };
                let (begun, first) = (self.records, |(begun, _)| begun);
                let written = self.write_counts(Counts { begun, ..counts }, first, begun);
                self.base.agree(written)
            }
            Credit::More(shown, note) => {
                self.tell(note);
                self.records = shown;
                if self.base.writable {
                    // Records that were promised were begun before.
                    self.base.by_root(|| self.write_numrecs(shown))?;
                }
                self.header.numrecs = NumRecs::Count(shown);
                Ok(())
            }
            Credit::None(why) => {
                let (path, what) = (self.base.path.clone(), "its maps".to_string());
                let source = DecompositionError::Damaged(why);
                Err(Error::Decomposition { path, what, source })
            }
        }
    }

    /// Notes something that a reader has to know.
    pub(crate) fn tell(&mut self, note: String) {
        if !self.base.notes.contains(&note) {
            self.base.notes.push(note);
        }
    }

    /// Says that so many records will be counted. On every rank; rank 0 writes.
    pub(crate) fn begin_decomposed(&mut self, records: u64) -> Result<()> {
        match counts_of(&self.header.schema) {
            Some(counts) if counts.begun < records => {
                self.write_counts(Counts { begun: records, ..counts }, |(begun, _)| begun, records)
            }
            _ => Ok(()),
        }
    }

    /// Another part of this program has counted so many records, and begun them before.
    pub(crate) fn were_begun(&mut self, records: u64) {
        if let Some(spread) = &self.spread {
            begin(&mut spread.disk().schema, false, records);
        }
        begin(&mut self.header.schema, false, records);
    }

    /// Says that the records that the file counts were synced. Collective.
    pub(crate) fn settle_counted(&mut self) -> Result<()> {
        let (Some(counts), NumRecs::Count(records)) =
            (counts_of(&self.header.schema), self.header.numrecs)
        else {
            return Ok(());
        };
        if counts.counted == records {
            return Ok(());
        }
        let written = self.write_counts(
            Counts { counted: records, ..counts },
            |(_, counted)| counted,
            records,
        );
        self.base.agree(written)
    }

    fn write_counts(
        &mut self,
        counts: Counts,
        which: fn((u64, u64)) -> u64,
        number: u64,
    ) -> Result<()> {
        let failed = |e| Error::Schema { path: self.base.path.clone(), source: e };
        put_counts(&mut self.header.schema, None, counts).map_err(failed)?;
        let at = match &self.spread {
            None => count_fields(&self.header),
            Some(spread) => {
                let mut disk = spread.disk();
                put_counts(&mut disk.schema, None, counts).map_err(failed)?;
                count_fields(&disk)
            }
        };
        let Some(at) = at.map(which).filter(|_| self.base.is_root()) else { return Ok(()) };
        let main = self.spread.as_ref().map_or(&self.file, |spread| spread.main());
        Ok(main.write_at(at, &number.to_be_bytes())?)
    }
}

/// Notes in a schema that so many records were begun; in that of a new dataset, that there are none yet, whatever
/// a map says that came from another.
pub(crate) fn begin(schema: &mut Schema, is_new: bool, records: u64) {
    let Some(counts) = counts_of(schema) else { return };
    let counts = match is_new {
        true => Counts { begun: records, counted: 0 },
        false => Counts { begun: counts.begun.max(records), ..counts },
    };
    // Numbers of these attributes are always as long.
    let _ = put_counts(schema, None, counts);
}
