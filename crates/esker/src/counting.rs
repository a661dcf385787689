//! How many records were begun, and how many were synced: what a file with chunked or decomposed variables says
//! beside the number of its records, which changes all the time, so that no seal covers it.
//!
//! Two attributes have such numbers: one of the file (`__chunk_begun`), and one of its first map (`esker_format`'s
//! `Counts`). They are written before records are counted, and after these were synced. What they say together is
//! `credit.rs`.

use std::sync::OnceLock;

use esker_format::chunked::{
    Anchor, RECORDS, WRITER_LEN, begun_field, begun_of, put_begun, put_records, put_writer,
    without_end, writer_of,
};
use esker_format::sealed::decomposed::{Counts, count_fields, counts_of, put_counts};
use esker_format::{Header, NumRecs, Owner, Schema};

use crate::credit::Credit;
use crate::error::{DecompositionError, Error, Result};
use crate::ground::Ground;

/// Records that the last call that was begun was to have; more than there are if it has failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Begun {
    pub(crate) records: u64,
    /// Where the header says so, once somebody has asked.
    at: OnceLock<Option<u64>>,
    /// Whether the header on the disk says that there will be more records than it counts.
    is_safe: bool,
    /// Whether what speaks of new records is in another file, and may reach the disk before the header does.
    beside: bool,
}

impl Begun {
    /// Of a file with this header.
    pub(crate) fn of(header: &Header, beside: bool) -> Begun {
        let records = begun_of(&header.schema).unwrap_or(0);
        Begun { records, beside, ..Begun::default() }
    }

    pub(crate) fn forget_place(&mut self) {
        self.at = OnceLock::new();
    }
}

impl Ground {
    /// The records that the file counts.
    pub(crate) fn counted(&self) -> u64 {
        match self.header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => self.records,
        }
    }

    /// Records that were begun, as far as this rank knows.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.as_ref().map_or(0, |begun| begun.records)
    }

    /// Another program, or another part of this one, may have begun more records.
    pub(crate) fn has_begun(&mut self, records: u64) {
        if let Some(begun) = &mut self.begun {
            begun.records = begun.records.max(records);
        }
    }

    /// Says that a call will make so many records, if these are more than there are. On every rank, before ranks
    /// agree that anything can speak of them.
    pub(crate) fn begin_records(&mut self, records: u64) -> Result<()> {
        if records <= self.counted() {
            return Ok(());
        }
        self.note_begun(records)
    }

    /// The same before records are counted that nothing else speaks of, so that there are never more than
    /// were begun: a number of records that is damaged is known by that. On every rank.
    pub(crate) fn begin_counting(&mut self, records: u64) -> Result<()> {
        if let Some(counts) = counts_of(&self.header.schema).filter(|c| c.begun < records) {
            let counts = Counts { begun: records, ..counts };
            self.write_counts(counts, |(begun, _)| begun, records)?;
        }
        match self.begun.as_ref().is_some_and(|begun| begun.records < records) {
            true => self.begin_records(records),
            false => Ok(()),
        }
    }

    /// Writes that so many records were begun. On every rank; rank 0 writes.
    pub(crate) fn note_begun(&mut self, records: u64) -> Result<()> {
        let counted = self.counted();
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.records = records;
        let header = &mut self.header;
        let Some(at) = *begun.at.get_or_init(|| begun_field(header)) else {
            // A file from before there was such an attribute.
            return Ok(());
        };
        put_begun(&mut header.schema, records).map_err(|e| self.base.schema_error(e))?;
        if !self.base.is_root() {
            return Ok(());
        }
        self.file.write_at(at, &records.to_be_bytes())?;
        let more = records > counted;
        // Once after a sync the header has to be on the disk before what is in another file.
        if begun.beside && more && !begun.is_safe {
            self.file.sync()?;
        }
        begun.is_safe = more;
        Ok(())
    }

    /// The header that counts all records is about to be on the disk.
    pub(crate) fn begun_is_counted(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.is_safe = false;
        }
    }

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

    /// Another part of this program has counted so many records, and begun them before.
    pub(crate) fn were_begun(&mut self, records: u64) {
        if let Some(volume) = &self.volume {
            begin(&mut volume.disk().schema, false, records);
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
        let counts = Counts { counted: records, ..counts };
        let written = self.write_counts(counts, |(_, counted)| counted, records);
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
        let at = match &self.volume {
            None => count_fields(&self.header),
            Some(volume) => {
                let mut disk = volume.disk();
                put_counts(&mut disk.schema, None, counts).map_err(failed)?;
                count_fields(&disk)
            }
        };
        let Some(at) = at.map(which).filter(|_| self.base.is_root()) else { return Ok(()) };
        Ok(self.main().write_at(at, &number.to_be_bytes())?)
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

/// Whether two headers of a file differ at most in what changes when values are written: the records that there
/// are and that each variable has, and where chunks end.
pub(crate) fn same_but_for_growth(a: &Header, b: &Header) -> bool {
    let still = |header: &Header| {
        let mut header = without_end(header);
        if begun_of(&header.schema).is_some() {
            let _ = put_begun(&mut header.schema, 0);
        }
        if writer_of(&header.schema).is_some() {
            let _ = put_writer(&mut header.schema, &[b' '; WRITER_LEN]);
        }
        if counts_of(&header.schema).is_some() {
            let _ = put_counts(&mut header.schema, None, Counts { begun: 0, counted: 0 });
        }
        let anchors = header.vars().filter(|(_, variable, _)| Anchor::of(variable).is_some());
        for id in anchors.map(|(id, _, _)| id).collect::<Vec<_>>() {
            // An attribute that is not there in one of them differs as ever.
            if header.schema.attr(Owner::Var(id), RECORDS).is_some() {
                let _ = put_records(&mut header.schema, id, 0);
            }
        }
        header
    };
    same_definitions(&still(a), &still(b))
}

/// Whether two headers of a file have the same definitions in the same places. As bytes, because a fill value that
/// is not a number is not equal to itself.
fn same_definitions(a: &Header, b: &Header) -> bool {
    a.layout == b.layout && a.schema.to_bytes() == b.schema.to_bytes()
}
