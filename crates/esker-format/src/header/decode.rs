//! Bytes to header. Written for hostile input: nothing is allocated before the file is known
//! to be long enough for it, and the cost is linear in the header.

use std::borrow::Cow;
use std::sync::Arc;

use super::cursor::{Cursor, Object};
use super::{DataLayout, Header, NumRecs, Placement, record_section, sizes};
use crate::error::{DecodeError, Fault};
use crate::name;
use crate::schema::{
    Attribute, DimId, DimLen, Dimension, Named, NamedList, Schema, VarId, Variable,
};
use crate::sealed;
use crate::types::{ExternalType, Version};
use crate::values::Values;

const NC_DIMENSION: u32 = 0x0A;
const NC_VARIABLE: u32 = 0x0B;
const NC_ATTRIBUTE: u32 = 0x0C;

/// A decoded header with what was tolerated on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The header.
    pub header: Header,
    /// Faults that do not stop a reader: padding that is not zero, names that break the
    /// rules, a `vsize` that disagrees with the shape. `esker check` reports them.
    pub tolerated: Vec<DecodeError>,
    /// Where each variable's fields stand in the header, by [`VarId`](crate::VarId).
    pub fields: Vec<VarFields>,
    /// Variables that are not what they were when Esker sealed them ([`sealed`](crate::sealed)): their
    /// values would be others.
    pub broken: Vec<(VarId, DecodeError)>,
}

impl Decoded {
    /// The header, if nothing that is sealed in it was changed.
    pub fn sound(self) -> Result<Header, DecodeError> {
        match self.broken.into_iter().next() {
            None => Ok(self.header),
            Some((_, error)) => Err(error),
        }
    }
}

/// Where the fields of one variable stand in the header, for tools that point at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarFields {
    /// The definition's first byte: the length of its name.
    pub at: u64,
    /// The first byte of each attribute, in their order.
    pub attrs_at: Vec<u64>,
    /// `vsize`.
    pub vsize_at: u64,
    /// `begin`.
    pub begin_at: u64,
}

impl Header {
    /// Decodes the header of a file of `file_len` bytes from `prefix`, its first bytes.
    ///
    /// When the header goes on after the prefix the error's fault is [`Fault::NeedMore`].
    ///
    /// ```
    /// use esker_format::{Header, Version};
    /// // The smallest file: no records, no dimensions, no attributes, no variables.
    /// let file = [b'C', b'D', b'F', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ///             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// let header = Header::decode(&file, file.len() as u64).unwrap();
    /// assert_eq!(header.schema.version, Version::Cdf1);
    /// ```
    pub fn decode(prefix: &[u8], file_len: u64) -> Result<Header, DecodeError> {
        Header::decode_noting(prefix, file_len).and_then(Decoded::sound)
    }

    /// Like [`Header::decode`], and tells what was tolerated. Variables whose seal is broken do not keep the others
    /// from being read.
    pub fn decode_noting(prefix: &[u8], file_len: u64) -> Result<Decoded, DecodeError> {
        let cursor = Cursor::new(prefix, file_len);
        let mut decoder = Decoder { cursor, tolerated: Vec::new(), fields: Vec::new() };
        let mut header = decoder.header(file_len)?;
        let Decoder { tolerated, mut fields, .. } = decoder;
        let mut broken = Vec::new();
        for (number, why) in sealed::open(&mut header, &mut fields) {
            let name = header.schema.vars.at(number).map_or("", |v| &*v.name);
            let at = fields.get(number).map_or(0, |f| f.at);
            broken.push((VarId(number), Object::NamedVar(name).error(at, Fault::Seal(why))));
        }
        Ok(Decoded { header, tolerated, fields, broken })
    }
}

struct Decoder<'a> {
    cursor: Cursor<'a>,
    tolerated: Vec<DecodeError>,
    fields: Vec<VarFields>,
}

/// A variable's `vsize` and `begin` as stored.
struct StoredPlace {
    begin: u64,
    vsize: u64,
}

impl<'a> Decoder<'a> {
    fn header(&mut self, file_len: u64) -> Result<Header, DecodeError> {
        let version = self.magic()?;
        self.cursor.version = version;
        let numrecs_at = self.cursor.offset();
        let numrecs = self.numrecs()?;
        let mut schema = Schema::new(version);
        self.dims(&mut schema)?;
        schema.attrs = self.attrs(None)?.0;
        let stored = self.vars(&mut schema)?;
        let header_len = self.cursor.offset();
        let places = self.places(&schema, &stored, header_len)?;
        let overflow = || Object::Records.error(numrecs_at, Fault::SizeOverflow);
        let (record_begin, record_size) = record_section(&schema, &places).ok_or_else(overflow)?;
        let layout = DataLayout { header_len, places, record_begin, record_size };
        let header = Header { schema, numrecs, layout };
        // The last byte of the last record must have an offset.
        if header.data_end(header.records(file_len)) > i64::MAX as u64 {
            return Err(overflow());
        }
        Ok(header)
    }

    fn magic(&mut self) -> Result<Version, DecodeError> {
        let bytes = self.cursor.take(4, "the magic number \"CDF\" and a version", Object::File)?;
        if bytes[..3] == *b"CDF" {
            if let Some(version) = Version::from_byte(bytes[3]) {
                return Ok(version);
            }
            let fault = format!("version byte {} is unknown: 1, 2 and 5 exist", bytes[3]);
            return Err(Object::File.error(3, Fault::Magic(fault)));
        }
        let hint = match bytes {
            [0x89, b'H', b'D', b'F'] => " (it is an HDF5 file, perhaps netCDF-4)",
            [0, 0, 0, 0] => " (it begins with zeros: its creation was cut short)",
            [b'B', b'Z', b'h', _] | [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => {
                " (it is compressed: decompress it first)"
            }
            _ => "",
        };
        let shown = bytes.escape_ascii();
        let fault = format!("it begins with \"{shown}\", not with \"CDF\"{hint}");
        Err(Object::File.error(0, Fault::Magic(fault)))
    }

    fn numrecs(&mut self) -> Result<NumRecs, DecodeError> {
        let offset = self.cursor.offset();
        let value = self.cursor.raw_count("numrecs", Object::Records)?;
        let version = self.cursor.version;
        let streaming = if version == Version::Cdf5 { u64::MAX } else { u64::from(u32::MAX) };
        if value == streaming {
            return Ok(NumRecs::Streaming);
        }
        // Unsigned here: netCDF-C and PnetCDF take 2^31 to 2^32-2 records for granted.
        if value > i64::MAX as u64 {
            let fault = Fault::Negative { what: "numrecs", value: value as i64 };
            return Err(Object::Records.error(offset, fault));
        }
        Ok(NumRecs::Count(value))
    }

    /// A list's tag and count.
    fn list(
        &mut self,
        object: Object<'_>,
        list: &'static str,
        tag: u32,
        expected: &'static str,
        least: u64,
    ) -> Result<u64, DecodeError> {
        let offset = self.cursor.offset();
        let found = self.cursor.u32("a list's tag", object)?;
        if found != 0 && found != tag {
            return Err(object.error(offset, Fault::Tag { list, tag: found, expected }));
        }
        let count_at = self.cursor.offset();
        if found == 0 {
            let count = self.cursor.count("the number of elements", object)?;
            if count != 0 {
                return Err(object.error(count_at, Fault::AbsentWithCount { list, count }));
            }
            return Ok(0);
        }
        self.cursor.count_of("the number of elements", least, object)
    }

    fn dims(&mut self, schema: &mut Schema) -> Result<(), DecodeError> {
        const LIST: &str = "the list of dimensions";
        let width = self.cursor.version.count_width() as u64;
        let expected = "0xa (dimensions) or 0 (absent)";
        let count = self.list(Object::List(LIST), LIST, NC_DIMENSION, expected, width + width)?;
        let mut unlimited: Option<Arc<str>> = None;
        for number in 0..count as usize {
            let start = self.cursor.offset();
            let name = self.name(Object::Dim(number))?;
            let offset = self.cursor.offset();
            let object = Object::NamedDim(&name);
            let len = match self.cursor.dim_len(object)? {
                0 => match &unlimited {
                    None => {
                        unlimited = Some(name.clone());
                        DimLen::Unlimited
                    }
                    Some(first) => {
                        let fault = Fault::SecondUnlimited { first: first.clone() };
                        return Err(object.error(offset, fault));
                    }
                },
                len => DimLen::Fixed(len),
            };
            let dim = Dimension { name, len };
            push(&mut schema.dims, dim, LIST, start, Object::Dim(number))?;
        }
        Ok(())
    }

    /// The attributes, and where each begins.
    fn attrs(&mut self, of: Option<&str>) -> Result<(NamedList<Attribute>, Vec<u64>), DecodeError> {
        const LIST: &str = "the list of attributes";
        let object = match of {
            None => Object::List("the list of global attributes"),
            Some(var) => Object::NamedVar(var),
        };
        let width = self.cursor.version.count_width() as u64;
        let expected = "0xc (attributes) or 0 (absent)";
        let count = self.list(object, LIST, NC_ATTRIBUTE, expected, width + 4 + width)?;
        let mut attrs = NamedList::default();
        let mut attrs_at = Vec::new();
        for number in 0..count as usize {
            let start = self.cursor.offset();
            attrs_at.push(start);
            let object = Object::Attr { of, number };
            let name = self.name(object)?;
            let object = Object::NamedAttr { of, name: &name };
            let ty = self.ty(object)?;
            let elements = self.cursor.count_of("the number of values", ty.size(), object)?;
            let bytes = self.cursor.take(elements * ty.size(), "the values", object)?;
            // `bytes` has just the length that so many values need.
            let values =
                Values::decode(ty, elements as usize, bytes).unwrap_or(Values::zeros(ty, 0));
            self.padding(bytes.len(), "the values", object)?;
            let attr = Attribute { name, values };
            push(&mut attrs, attr, LIST, start, Object::Attr { of, number })?;
        }
        Ok((attrs, attrs_at))
    }

    fn vars(&mut self, schema: &mut Schema) -> Result<Vec<StoredPlace>, DecodeError> {
        const LIST: &str = "the list of variables";
        let version = self.cursor.version;
        let width = version.count_width() as u64;
        // Name, dimension count, attribute list, type, vsize, begin.
        let least = width + width + (4 + width) + 4 + width + version.offset_width() as u64;
        let expected = "0xb (variables) or 0 (absent)";
        let count = self.list(Object::List(LIST), LIST, NC_VARIABLE, expected, least)?;
        let mut stored = Vec::new();
        for number in 0..count as usize {
            let start = self.cursor.offset();
            let name = self.name(Object::Var(number))?;
            let object = Object::NamedVar(&name);
            let rank = self.cursor.count_of("the number of dimensions", width, object)?;
            let mut dims = Vec::new();
            for place in 0..rank as usize {
                dims.push(self.dim_id(schema, place, object)?);
            }
            let (attrs, attrs_at) = self.attrs(Some(&name))?;
            let ty = self.ty(object)?;
            let vsize_at = self.cursor.offset();
            let vsize = self.cursor.raw_count("the variable's size", object)?;
            let begin_at = self.cursor.offset();
            let begin = self.cursor.file_offset(object)?;
            stored.push(StoredPlace { begin, vsize });
            self.fields.push(VarFields { at: start, attrs_at, vsize_at, begin_at });
            let var = Variable { name, ty, dims, attrs };
            push(&mut schema.vars, var, LIST, start, Object::Var(number))?;
        }
        Ok(stored)
    }

    fn dim_id(
        &mut self,
        schema: &Schema,
        place: usize,
        object: Object<'_>,
    ) -> Result<DimId, DecodeError> {
        let offset = self.cursor.offset();
        let id = self.cursor.count("a dimension's number", object)?;
        let defined = schema.dims.len();
        let found = usize::try_from(id).ok().and_then(|i| schema.dims.at(i).map(|d| (i, d)));
        let Some((index, dim)) = found else {
            return Err(object.error(offset, Fault::DimId { place, id, defined }));
        };
        if place > 0 && dim.len == DimLen::Unlimited {
            let fault = Fault::UnlimitedNotFirst { place, dim: dim.name.clone() };
            return Err(object.error(offset, fault));
        }
        Ok(DimId(index))
    }

    fn ty(&mut self, object: Object<'_>) -> Result<ExternalType, DecodeError> {
        let offset = self.cursor.offset();
        let code = self.cursor.u32("the data type", object)?;
        let version = self.cursor.version;
        let max = if version == Version::Cdf5 { 11 } else { 6 };
        ExternalType::from_code(code)
            .filter(|ty| version.has_type(*ty))
            .ok_or_else(|| object.error(offset, Fault::Type { code, version, max }))
    }

    fn name(&mut self, object: Object<'_>) -> Result<Arc<str>, DecodeError> {
        let len = self.cursor.count_of("the length of the name", 1, object)?;
        let at = self.cursor.offset();
        let bytes = self.cursor.take(len, "the name", object)?;
        // netCDF-C renames in place to a shorter name by overwriting the rest with zeros, and
        // every reader in C takes the first zero for the end.
        let end = bytes.iter().position(|b| *b == 0);
        let bytes = &bytes[..end.unwrap_or(bytes.len())];
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(error) => {
                // Old files have Latin-1 names; every byte is one of its characters.
                let bad = error.valid_up_to();
                let fault = Fault::NameNotUtf8 { at: bad, byte: bytes[bad] };
                self.tolerated.push(object.error(at, fault));
                Cow::Owned(bytes.iter().map(|b| char::from(*b)).collect())
            }
        };
        let normal = name::normalise(&text);
        let object = object.named(&normal);
        self.padding(len as usize, "the name", object)?;
        let fault =
            if *normal == *text { name::fault(&text) } else { Some("it is not in normal form C") };
        let fault = fault.or(end.map(|_| "zero bytes after it are counted as part of it"));
        if let Some(fault) = fault {
            let fault = Fault::Name { name: text.to_string(), fault };
            self.tolerated.push(object.error(at, fault));
        }
        Ok(Arc::from(&*normal))
    }

    fn padding(
        &mut self,
        after: usize,
        what: &'static str,
        object: Object<'_>,
    ) -> Result<(), DecodeError> {
        let offset = self.cursor.offset();
        let bytes = self.cursor.take((4 - after as u64 % 4) % 4, "padding", object)?;
        if let Some(at) = bytes.iter().position(|b| *b != 0) {
            let fault = Fault::Padding { what, byte: bytes[at] };
            self.tolerated.push(object.error(offset + at as u64, fault));
        }
        Ok(())
    }

    fn places(
        &mut self,
        schema: &Schema,
        stored: &[StoredPlace],
        header_len: u64,
    ) -> Result<Vec<Placement>, DecodeError> {
        let mut places = Vec::with_capacity(stored.len());
        for ((var, stored), fields) in schema.vars.iter().zip(stored).zip(&self.fields) {
            let object = Object::NamedVar(&var.name);
            let (bytes, vsize) = sizes(schema, var)
                .ok_or_else(|| object.error(fields.vsize_at, Fault::SizeOverflow))?;
            if stored.begin < header_len {
                let why = "inside the header";
                let fault = Fault::Begin { begin: stored.begin, why };
                return Err(object.error(fields.begin_at, fault));
            }
            if stored.begin.checked_add(vsize).is_none_or(|end| end > i64::MAX as u64) {
                let why = "so that their end cannot be addressed";
                let fault = Fault::Begin { begin: stored.begin, why };
                return Err(object.error(fields.begin_at, fault));
            }
            let place = Placement { begin: stored.begin, bytes, vsize };
            let expected = place.stored_vsize(schema.version);
            if stored.vsize != expected {
                let fault = Fault::Vsize { stored: stored.vsize, expected };
                self.tolerated.push(object.error(fields.vsize_at, fault));
            }
            places.push(place);
        }
        Ok(places)
    }
}

fn push<T: Named>(
    list: &mut NamedList<T>,
    item: T,
    what: &'static str,
    offset: u64,
    object: Object<'_>,
) -> Result<(), DecodeError> {
    list.push(item).map(drop).map_err(|item| {
        let fault = Fault::DuplicateName { name: item.name().to_string(), list: what };
        object.error(offset, fault)
    })
}
