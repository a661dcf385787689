//! What can be mended without guessing: a pure function of a header and a file's length.

use esker_format::chunked::Anchor;
use esker_format::{Attribute, DecodeError, Decoded, Fault, Header, NumRecs, Variable};

use super::extent::{Extent, has_chunks};
use super::finding::counted;

/// Something that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mend {
    /// The [code](super::Finding::code) of the finding that it settles.
    pub code: &'static str,
    /// The byte of the file at which something changed, where it is at one.
    pub offset: Option<u64>,
    /// What was done, in words.
    pub sentence: String,
}

impl std::fmt::Display for Mend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(offset) = self.offset {
            write!(f, "[{offset:#010x}] ")?;
        }
        f.write_str(&self.sentence)
    }
}

/// What the caller allows beyond what is sure.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Allowed {
    /// Trailing bytes become records.
    pub(super) adopt: bool,
    /// Trailing bytes are cut off.
    pub(super) cut: bool,
    /// What the header says of variables whose seal does not match is what was meant.
    pub(super) edits: bool,
    /// The part of a record that a cut file ends with may go, because the original keeps it.
    pub(super) drop_fragment: bool,
}

/// The changes that mend a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// The header's bytes as they should be.
    pub(super) header: Vec<u8>,
    /// The file's length as it should be.
    pub(super) len: u64,
    /// What that mends.
    pub(super) mends: Vec<Mend>,
}

/// Plans the mending of a file of `file_len` bytes whose header is `bytes`.
pub(super) fn plan(decoded: &Decoded, bytes: &[u8], file_len: u64, allowed: Allowed) -> Plan {
    let header_len = usize::try_from(decoded.header.layout.header_len).unwrap_or(usize::MAX);
    let header = bytes[..header_len.min(bytes.len())].to_vec();
    let mut plan = Plan { header, len: file_len, mends: Vec::new() };
    for fault in &decoded.tolerated {
        plan.tolerated(decoded, fault);
    }
    if allowed.edits {
        plan.accept(decoded);
    }
    // Chunks lie before or behind the records, and their variables count records too: the length says
    // nothing there.
    if !has_chunks(&decoded.header) {
        plan.records(&decoded.header, allowed);
    }
    plan
}

impl Plan {
    fn note(&mut self, code: &'static str, offset: u64, sentence: String) {
        self.mends.push(Mend { code, offset: Some(offset), sentence });
    }

    fn tolerated(&mut self, decoded: &Decoded, error: &DecodeError) {
        let version = decoded.header.schema.version;
        let (at, object) = (error.offset, &error.object);
        match &error.fault {
            Fault::Padding { what, .. } => {
                // Padding goes on to the next multiple of four, in the file as in the list.
                let zeros = at.next_multiple_of(4).saturating_sub(at);
                self.write(at, &vec![0; zeros as usize]);
                self.note("padding", at, format!("{object}: zeroed the padding after {what}"));
            }
            Fault::Vsize { stored, expected } => {
                let bytes = expected.to_be_bytes();
                self.write(at, &bytes[bytes.len() - version.count_width()..]);
                let sentence = format!("{object}: its stored size is now {expected}, not {stored}");
                self.note("vsize", at, sentence);
            }
            _ => {}
        }
    }

    /// Seals variables anew as the header has them now. One that has lost its seal, or what makes it a variable that
    /// needs one, would be something else afterwards: the header's length tells.
    fn accept(&mut self, decoded: &Decoded) {
        let header = decoded.header.encode();
        if header.len() != self.header.len() || decoded.broken.is_empty() {
            return;
        }
        // What is left of a chunked variable would be a scalar.
        let is_chunk = |attr: &Attribute| attr.name.starts_with("__chunk_");
        let lost = |v: &Variable| v.attrs.iter().any(is_chunk) && Anchor::of(v).is_none();
        let mut broken = decoded.broken.iter();
        if broken.any(|(id, _)| decoded.header.schema.variable(*id).is_none_or(lost)) {
            return;
        }
        self.header = header;
        for (id, error) in &decoded.broken {
            let Some(variable) = decoded.header.schema.variable(*id) else { continue };
            let attrs: Vec<String> =
                variable.attrs.iter().map(|attr| format!("{:?}", &*attr.name)).collect();
            let sentence = format!(
                "variable {:?}: accepted as it is now, and sealed anew: {}, with the attributes {}",
                &*variable.name,
                variable.ty,
                attrs.join(", ")
            );
            self.note("seal", error.offset, sentence);
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes.len());
        if let Some(target) = self.header.get_mut(start..end) {
            target.copy_from_slice(bytes);
        }
    }

    fn set_records(&mut self, header: &Header, records: u64) {
        let bytes = Header::numrecs_bytes(header.schema.version, NumRecs::Count(records));
        self.write(Header::NUMRECS_OFFSET, &bytes);
    }

    fn records(&mut self, header: &Header, allowed: Allowed) {
        let extent = Extent::of(header, self.len);
        let at = Header::NUMRECS_OFFSET;
        let size = header.layout.record_size;
        let mut records = extent.whole;
        let fragment = extent.fragment(header);
        let may_drop = allowed.drop_fragment || allowed.cut;
        match header.numrecs {
            // A stream that ends in a part of a record is valid as long as it is a stream.
            NumRecs::Streaming if size > 0 && (fragment == 0 || may_drop) => {
                self.set_records(header, records);
                let sentence = format!("the number of records is now {records}, not STREAMING");
                self.note("streaming", at, sentence);
            }
            NumRecs::Count(stored) if extent.whole < stored && size > 0 => {
                self.set_records(header, records);
                let sentence = format!("the number of records is now {records}, not {stored}");
                self.note("records-cut", at, sentence);
            }
            NumRecs::Count(stored) => {
                let more = extent.trailing().checked_div(size).unwrap_or(0);
                let max = header.schema.version.max_count();
                if allowed.adopt && more > 0 && stored.saturating_add(more) <= max {
                    records = stored + more;
                    self.set_records(header, records);
                    let sentence = format!("the number of records is now {records}, not {stored}");
                    self.note("trailing", at, sentence);
                }
            }
            NumRecs::Streaming => {}
        }
        if fragment > 0 && may_drop {
            self.len -= fragment;
            let sentence = format!("dropped {} of record {records}", counted(fragment, "byte"));
            self.note("records-cut", self.len, sentence);
        }
        self.length(header, records, allowed);
    }

    /// The end of the file, with `records` records: padding that is missing is added, and
    /// bytes after it are cut off when the caller wants that.
    fn length(&mut self, header: &Header, records: u64, allowed: Allowed) {
        let end = header.data_end(records);
        let extent = Extent::of(header, self.len);
        let padding_only = extent.cut.is_empty() && extent.whole >= records.min(extent.records);
        // At most three bytes: more would be values.
        if self.len < end && end - self.len < 4 && padding_only {
            let sentence = format!("added {} of padding", counted(end - self.len, "byte"));
            self.note("padding-cut", self.len, sentence);
            self.len = end;
        }
        let reach = end.max(header.layout.record_begin.filter(|_| records == 0).unwrap_or(0));
        if allowed.cut && header.numrecs != NumRecs::Streaming && self.len > reach {
            let sentence = format!("cut off {} after the data", counted(self.len - reach, "byte"));
            self.note("trailing", reach, sentence);
            self.len = reach;
        }
    }
}
