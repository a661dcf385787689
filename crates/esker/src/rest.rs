//! What a rank knows of a header of which it has a part.

use esker_format::Header;

/// What all ranks have together of a file whose definitions were merged by shares: each knows its own objects, and this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Dimensions, global attributes and variables.
    pub(crate) counts: [u64; 3],
    /// Variables without records.
    pub(crate) fixed: u64,
    /// Where the values begin.
    pub(crate) data_begin: u64,
    /// Where variables without records end.
    pub(crate) fixed_end: u64,
    /// Bytes of the last record.
    pub(crate) record_len: u64,
    /// Whether any rank has a variable with records that are filled when they come into being.
    pub(crate) fills_records: bool,
    /// Which of its variables this rank is the first to have: it fills them.
    pub(crate) is_first: Vec<bool>,
}

impl Rest {
    /// Where the data end when there are `records` records.
    pub(crate) fn data_end(&self, header: &Header, records: u64) -> u64 {
        let last = header.layout.record_begin.zip(records.checked_sub(1));
        let end = last.map_or(0, |(begin, before)| {
            let before = before.saturating_mul(header.layout.record_size);
            begin.saturating_add(before).saturating_add(self.record_len)
        });
        self.fixed_end.max(end)
    }
}
