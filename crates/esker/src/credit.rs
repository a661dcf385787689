//! How far the number of records is believed that a file counts.
//!
//! It changes all the time, so that no seal covers it. Files with chunked or decomposed variables say two numbers more: how many
//! records were begun, which is written before they are counted, and how many were synced. Records that were not
//! begun, and that the file has no bytes of, are not shown. Fewer than were synced are damage. What is
//! between is told: a kill leaves it, and so does a loss of power behind a close without a sync, but a damaged number too.

use esker_format::Header;
use esker_format::chunked::begun_of;
use esker_format::sealed::decomposed::{BEGUN, COUNTED, Counts, counts_of};

/// What the file's number of records is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credit {
    /// It is as many as were begun.
    Full,
    /// It may well be right: a note says what else was begun.
    Less(String),
    /// There are more than were begun, and than the file has: so many are shown.
    More(u64, String),
    /// Records that were synced are not counted.
    None(String),
}

impl Credit {
    /// Of a file of so many bytes whose header (the one that it has) counts so many records.
    pub(crate) fn of(header: &Header, records: u64, file_len: u64) -> Credit {
        // A chunked variable of which synced records are not counted, or that was never begun, says so itself.
        let in_chunks = begun_of(&header.schema).unwrap_or(0);
        let Some(Counts { begun, counted }) = counts_of(&header.schema) else {
            return Credit::less(records, in_chunks);
        };
        if counted == Counts::UNREADABLE {
            return Credit::None(format!(
                "{BEGUN} and {COUNTED} are no numbers of 64 bits as CDF-{} has them: another program has converted the \
                 file to another CDF version (`esker copy -k` converts it), or they are damaged",
                header.schema.version.byte()
            ));
        }
        // What other programs add is in the file, and is theirs.
        let is_there = header.layout.record_size > 0 && header.data_end(records) <= file_len;
        let shown = if is_there { records } else { records.min(begun) };
        if shown < counted {
            return Credit::None(format!(
                "the file counts {records} records, but {counted} were synced and {begun} begun: the number of \
                 records is damaged"
            ));
        }
        if shown < records {
            return Credit::More(
                shown,
                format!(
                    "the file counts {records} records, but only {begun} were ever begun and it has no others: the \
                     power failed, or the number is damaged"
                ),
            );
        }
        Credit::less(records, begun.max(in_chunks))
    }

    fn less(records: u64, begun: u64) -> Credit {
        match records < begun {
            false => Credit::Full,
            true => Credit::Less(format!(
                "the file counts {records} records, but {begun} were begun: the program that wrote them was killed or \
                 is writing, the power failed, or the number is damaged"
            )),
        }
    }

    /// The records that are shown of a file that counts so many; `None` if it is damaged.
    pub(crate) fn shown(&self, records: u64) -> Option<u64> {
        match self {
            Credit::Full | Credit::Less(_) => Some(records),
            Credit::More(shown, _) => Some(*shown),
            Credit::None(_) => None,
        }
    }
}
