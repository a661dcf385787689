//! How far the data of a file reach, and how much of them its length has.

use esker_format::chunked::{Anchor, heap_of};
use esker_format::{Header, NumRecs, VarId};

/// What the length of a file says about the data that its header promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) file_len: u64,
    /// Records that the header promises (or, streamed, that there is room for).
    pub(super) records: u64,
    /// Records of which every value is in the file; at most `records`.
    pub(super) whole: u64,
    /// Fixed-size variables of which values are missing.
    pub(super) cut: Vec<VarId>,
    /// Where a complete file with `whole` records ends.
    pub(super) whole_end: u64,
    /// Where a complete file with `records` records ends.
    pub(super) end: u64,
    /// How long such a file may be: room kept before an empty record section belongs to it.
    pub(super) reach: u64,
}

/// Whether the file has chunked variables.
pub(super) fn has_chunks(header: &Header) -> bool {
    header.schema.vars.iter().any(|var| Anchor::of(var).is_some())
}

impl Extent {
    pub(super) fn of(header: &Header, file_len: u64) -> Extent {
        let records = header.records(file_len);
        let is_record =
            |id: VarId| header.schema.variable(id).is_some_and(|var| header.schema.is_record(var));
        let fixed = header.vars().filter(|(id, _, _)| !is_record(*id));
        let cut = fixed
            .filter(|(_, _, place)| place.begin.saturating_add(place.bytes) > file_len)
            .map(|(id, _, _)| id)
            .collect();
        let size = header.layout.record_size.max(1);
        let whole = header
            .vars()
            .filter(|(id, _, _)| is_record(*id))
            .map(|(_, _, place)| match file_len.checked_sub(place.begin + place.bytes) {
                None => 0,
                Some(after) => after / size + 1,
            })
            .fold(records, u64::min);
        let (whole_end, end) = (header.data_end(whole), header.data_end(records));
        let room = header.layout.record_begin.filter(|_| records == 0);
        let mut reach = end.max(room.unwrap_or(0));
        // Chunks lie behind everything else where no records do.
        let inside = heap_of(&header.schema).is_some_and(|begin| begin > 0);
        if has_chunks(header) && inside && header.layout.record_begin.is_none() {
            reach = reach.max(file_len);
        }
        Extent { file_len, records, whole, cut, whole_end, end, reach }
    }

    /// Bytes after everything that the header promises.
    pub(super) fn trailing(&self) -> u64 {
        self.file_len.saturating_sub(self.reach)
    }

    /// Bytes after the last whole record of a file that promises more records than it has.
    pub(super) fn fragment(&self, header: &Header) -> u64 {
        match header.numrecs {
            NumRecs::Streaming => self.trailing(),
            NumRecs::Count(_) if self.whole < self.records => {
                self.file_len.saturating_sub(self.whole_end)
            }
            NumRecs::Count(_) => 0,
        }
    }

    /// Whether values are missing, and not only the padding after them.
    pub(super) fn lacks_values(&self) -> bool {
        self.whole < self.records || !self.cut.is_empty()
    }
}
