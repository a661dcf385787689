//! A header that several writers encode, each the objects that it has: the bytes are those of
//! [`Header::encode`](super::Header::encode).

use super::encode::{ATTRS, DIMS, Encoder, VARS};
use super::{NumRecs, Placement};
use crate::schema::{Attribute, Dimension, Schema, Variable};
use crate::sealed;
use crate::types::Version;

/// Objects of one writer, encoded: they stand one after the other in their lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPart {
    version: Version,
    /// Dimensions, global attributes, variables.
    pub bytes: [Vec<u8>; 3],
    /// How many of each.
    pub counts: [u64; 3],
}

/// What the parts of all writers are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSums {
    /// The file's version.
    pub version: Version,
    /// Dimensions, global attributes and variables.
    pub counts: [u64; 3],
    /// Their bytes.
    pub bytes: [u64; 3],
}

impl HeaderPart {
    /// Nothing yet.
    pub fn new(version: Version) -> HeaderPart {
        HeaderPart { version, bytes: Default::default(), counts: [0; 3] }
    }

    /// Adds a dimension.
    pub fn dim(&mut self, dim: &Dimension) {
        self.add(0, |out| out.dim(dim));
    }

    /// Adds a global attribute.
    pub fn attr(&mut self, attr: &Attribute) {
        self.add(1, |out| out.attr(attr));
    }

    /// Adds a variable, whose dimensions have the numbers of the file. None that needs a seal.
    pub fn var(&mut self, var: &Variable, place: &Placement) {
        let stored = (place.stored_vsize(self.version), place.begin);
        self.add(2, |out| out.var(var, None, stored));
    }

    fn add(&mut self, list: usize, encode: impl FnOnce(&mut Encoder)) {
        // Everything is padded to a multiple of four, so that each part may be encoded alone.
        let bytes = std::mem::take(&mut self.bytes[list]);
        let mut out = Encoder { bytes, version: self.version };
        encode(&mut out);
        self.bytes[list] = out.bytes;
        self.counts[list] += 1;
    }
}

impl HeaderSums {
    /// The header's length.
    pub fn header_len(&self) -> u64 {
        self.begins()[2].saturating_add(self.bytes[2])
    }

    /// Where the first object of each list is.
    pub fn begins(&self) -> [u64; 3] {
        let count = self.version.count_width() as u64;
        let head = 4 + count;
        let dims = (4 + count) + head;
        let attrs = dims.saturating_add(self.bytes[0]).saturating_add(head);
        [dims, attrs, attrs.saturating_add(self.bytes[1]).saturating_add(head)]
    }

    /// What stands before each list, and where: the first of them is what makes the file one.
    pub fn heads(&self, numrecs: NumRecs) -> [(u64, Vec<u8>); 3] {
        let [dims, attrs, vars] = self.begins();
        let head = |tag: u32, list: usize| {
            let mut out = Encoder { bytes: Vec::new(), version: self.version };
            out.list(tag, self.counts[list]);
            out.bytes
        };
        let mut first = Encoder::begin(self.version, numrecs);
        first.list(DIMS, self.counts[0]);
        let before = |begin: u64, bytes: Vec<u8>| (begin - bytes.len() as u64, bytes);
        [before(dims, first.bytes), before(attrs, head(ATTRS, 1)), before(vars, head(VARS, 2))]
    }
}

impl Schema {
    /// Whether a variable needs a seal, because Esker stores it in its own way.
    pub fn has_sealed(&self) -> bool {
        sealed::blank_seals(self).iter().any(Option::is_some)
    }

    /// Bytes of a variable's values (of one record, if it has records) and the same padded to a multiple of four; `None`
    /// if no version can hold them in the middle of a file.
    pub fn sizes_of(&self, var: &Variable) -> Option<(u64, u64)> {
        let sizes = super::sizes(self, var)?;
        (sizes.1 <= super::place::max_vsize(self.version)).then_some(sizes)
    }
}
