//! Header to bytes.

use super::{DataLayout, Header, NumRecs, Placement};
use crate::error::DecodeError;
use crate::schema::{Attribute, DimLen, Dimension, NamedList, Schema, Variable};
use crate::sealed;
use crate::types::Version;

impl Header {
    /// The header's bytes, exactly `layout.header_len` of them, with the seals of variables that need one
    /// ([`sealed`](crate::sealed)).
    ///
    /// ```
    /// use esker_format::*;
    /// let mut schema = Schema::new(Version::Cdf1);
    /// let x = schema.add_dim("x", DimLen::Fixed(3)).unwrap();
    /// schema.add_var("v", ExternalType::Short, &[x]).unwrap();
    /// let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
    /// let header = Header { schema, numrecs: NumRecs::Count(0), layout };
    /// let bytes = header.encode();
    /// assert_eq!(Header::decode(&bytes, bytes.len() as u64 + 8).unwrap(), header);
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.schema, self.numrecs, &self.layout)
    }
}

fn encode(schema: &Schema, numrecs: NumRecs, layout: &DataLayout) -> Vec<u8> {
    let version = schema.version;
    let mut out = Encoder::begin(version, numrecs);
    let seals = sealed::seals(schema, layout);
    out.schema(schema, &seals, |var| {
        let place = &layout.places[var];
        (place.stored_vsize(version), place.begin)
    });
    out.bytes
}

impl Schema {
    /// The length of its header, which does not depend on where variables are placed.
    pub fn header_len(&self) -> u64 {
        header_len(self)
    }

    /// The schema alone as bytes, to send it to another rank: a header without places.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header_len = header_len(self);
        let nowhere = Placement { begin: header_len, bytes: 0, vsize: 0 };
        let places = vec![nowhere; self.vars.len()];
        let layout = DataLayout { header_len, places, record_begin: None, record_size: 0 };
        encode(self, NumRecs::Count(0), &layout)
    }

    /// The schema that [`Schema::to_bytes`] made bytes of.
    pub fn from_bytes(bytes: &[u8]) -> Result<Schema, DecodeError> {
        Header::decode(bytes, bytes.len() as u64).map(|header| header.schema)
    }
}

/// The length of the header of this schema, which does not depend on where things are placed.
pub(super) fn header_len(schema: &Schema) -> u64 {
    let version = schema.version;
    let mut out = Encoder { bytes: Vec::new(), version };
    out.schema(schema, &sealed::blank_seals(schema), |_| (0, 0));
    (4 + version.count_width() + out.bytes.len()) as u64
}

/// Tags of the lists.
pub(super) const DIMS: u32 = 0x0A;
pub(super) const VARS: u32 = 0x0B;
pub(super) const ATTRS: u32 = 0x0C;

pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
    pub(super) version: Version,
}

impl Encoder {
    /// What a file begins with.
    pub(super) fn begin(version: Version, numrecs: NumRecs) -> Encoder {
        let mut bytes = vec![b'C', b'D', b'F', version.byte()];
        bytes.extend(Header::numrecs_bytes(version, numrecs));
        Encoder { bytes, version }
    }

    fn schema(
        &mut self,
        schema: &Schema,
        seals: &[Option<Attribute>],
        place: impl Fn(usize) -> (u64, u64),
    ) {
        self.list(DIMS, schema.dims.len() as u64);
        for dim in &schema.dims {
            self.dim(dim);
        }
        self.attrs(&schema.attrs, None);
        self.list(VARS, schema.vars.len() as u64);
        for (number, var) in schema.vars.iter().enumerate() {
            self.var(var, seals.get(number).and_then(Option::as_ref), place(number));
        }
    }

    pub(super) fn dim(&mut self, dim: &Dimension) {
        self.name(&dim.name);
        self.count(match dim.len {
            DimLen::Fixed(len) => len,
            DimLen::Unlimited => 0,
        });
    }

    /// A variable whose stored `vsize` and `begin` are these.
    pub(super) fn var(
        &mut self,
        var: &Variable,
        seal: Option<&Attribute>,
        (vsize, begin): (u64, u64),
    ) {
        self.name(&var.name);
        self.count(var.dims.len() as u64);
        for dim in &var.dims {
            self.count(dim.0 as u64);
        }
        self.attrs(&var.attrs, seal);
        self.bytes.extend(var.ty.code().to_be_bytes());
        self.count(vsize);
        match self.version {
            Version::Cdf1 => self.bytes.extend((begin as u32).to_be_bytes()),
            _ => self.bytes.extend(begin.to_be_bytes()),
        }
    }

    fn attrs(&mut self, attrs: &NamedList<Attribute>, seal: Option<&Attribute>) {
        // A seal comes first, so that what other programs add later moves nothing.
        self.list(ATTRS, (attrs.len() + usize::from(seal.is_some())) as u64);
        for attr in seal.into_iter().chain(attrs) {
            self.attr(attr);
        }
    }

    pub(super) fn attr(&mut self, attr: &Attribute) {
        self.name(&attr.name);
        self.bytes.extend(attr.values.ty().code().to_be_bytes());
        self.count(attr.values.len() as u64);
        attr.values.encode_into(&mut self.bytes);
        self.pad();
    }

    /// What a list of so many things begins with.
    pub(super) fn list(&mut self, tag: u32, len: u64) {
        let tag = if len == 0 { 0 } else { tag };
        self.bytes.extend(tag.to_be_bytes());
        self.count(len);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.bytes.extend(name.as_bytes());
        self.pad();
    }

    fn count(&mut self, value: u64) {
        match self.version {
            Version::Cdf5 => self.bytes.extend(value.to_be_bytes()),
            _ => self.bytes.extend((value as u32).to_be_bytes()),
        }
    }

    // Every list starts and ends at a multiple of four in the file, and what stands before
    // the schema (4 + 4 or 4 + 8 bytes) is one, so this length is as good as the offset.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
