//! The scalar that stands for a chunked variable, and back.

use super::end::end_of;
use super::{
    BEGUN, DIMS, FILES, FILL, FILTERS, HEAP, IDENTITY, NOTE, RECORDS, REFS, SHAPE, WRITER,
};
use crate::error::SchemaError;
use crate::header::Header;
use crate::schema::{Attribute, DimId, NamedList, Owner, Schema, VarId, Variable};
use crate::types::{ExternalType, Version};
use crate::values::{Values, fill_value};

/// netCDF's attribute for what was never written.
const FILL_VALUE: &str = "_FillValue";

/// What people read of an anchor who look at it with other programs.
const HOW: &str = "The values are in compressed chunks, which this scalar stands for. To read them: \
                   esker dump, xarray with engine=\"esker\", esker refs for plain xarray and Zarr, or \
                   esker copy --contiguous for every netCDF program.";

/// The attributes of an anchor that programs do not see, beside [`FILTERS`], which they see as text.
const HIDDEN: [&str; 5] = [DIMS, REFS, RECORDS, FILL, NOTE];

/// What a file says of a chunked variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Its dimensions.
    pub dims: Vec<DimId>,
    /// The lengths of a chunk.
    pub shape: Vec<u64>,
    /// The filters, as numbers.
    pub filters: Vec<u64>,
    /// Where the head of its table is in the heap.
    pub refs: u64,
    /// Records that were written of it.
    pub records: u64,
}

/// A place in a file as an attribute.
pub(crate) fn address(version: Version, value: u64) -> Values {
    match version {
        Version::Cdf5 => Values::Int64(vec![value as i64]),
        _ => Values::Int(halves(value).to_vec()),
    }
}

fn halves(value: u64) -> [i32; 2] {
    [(value >> 32) as i32, value as i32]
}

fn join(high: i32, low: i32) -> u64 {
    u64::from(high as u32) << 32 | u64::from(low as u32)
}

pub(crate) fn to_address(values: &Values) -> Option<u64> {
    match values {
        Values::Int64(list) => match list[..] {
            [value] => u64::try_from(value).ok(),
            _ => None,
        },
        Values::Int(list) => match list[..] {
            [high, low] => Some(join(high, low)).filter(|n| *n <= i64::MAX as u64),
            _ => None,
        },
        _ => None,
    }
}

/// Numbers that an attribute has, none of them negative.
fn numbers(values: &Values) -> Option<Vec<u64>> {
    match values {
        Values::Int(list) => list.iter().map(|n| u64::try_from(*n).ok()).collect(),
        Values::Int64(list) => list.iter().map(|n| u64::try_from(*n).ok()).collect(),
        _ => None,
    }
}

/// Lengths of a chunk as an attribute, if INTs hold them.
pub fn lengths(shape: &[u64]) -> Option<Values> {
    let list: Option<Vec<i32>> = shape.iter().map(|n| i32::try_from(*n).ok()).collect();
    list.map(Values::Int)
}

impl Anchor {
    /// What the variable of a file is the anchor of: `None` for an ordinary variable, an error if it
    /// claims to be one and is not.
    pub fn of(variable: &Variable) -> Option<Result<Anchor, String>> {
        let dims = &variable.attrs.get(DIMS)?.values;
        // An attribute that somebody has copied to an ordinary variable means nothing.
        variable.dims.is_empty().then(|| Anchor::parse(variable, dims))
    }

    fn parse(variable: &Variable, dims: &Values) -> Result<Anchor, String> {
        let wrong = |name: &str| format!("its attribute {name} is missing or wrong");
        let get = |name: &str| variable.attrs.get(name).map(|a| &a.values);
        let dims = numbers(dims).ok_or_else(|| wrong(DIMS))?;
        let dims: Vec<DimId> = dims.into_iter().map(|n| DimId(n as usize)).collect();
        let shape = get(SHAPE).and_then(numbers).ok_or_else(|| wrong(SHAPE))?;
        let refs = get(REFS).and_then(to_address).ok_or_else(|| wrong(REFS))?;
        let records = get(RECORDS).and_then(to_address).unwrap_or(0);
        let filters = match get(FILTERS) {
            None => Vec::new(),
            Some(Values::Int(list)) if list.len() % 2 == 0 => {
                list.chunks_exact(2).map(|pair| join(pair[0], pair[1])).collect()
            }
            Some(_) => return Err(wrong(FILTERS)),
        };
        Ok(Anchor { dims, shape, filters, refs, records })
    }

    /// The scalar that stands for `variable`, which has its dimensions.
    fn scalar(&self, variable: &Variable, version: Version, has_records: bool) -> Variable {
        let own =
            |a: &&Attribute| HIDDEN.contains(&&*a.name) || [SHAPE, FILTERS].contains(&&*a.name);
        let mut attrs: Vec<Attribute> =
            variable.attrs.iter().filter(|a| !own(a)).cloned().collect();
        let mut add = |name: &str, values| attrs.push(Attribute { name: name.into(), values });
        let dims = self.dims.iter().map(|d| d.0 as i32).collect();
        add(DIMS, Values::Int(dims));
        add(SHAPE, lengths(&self.shape).unwrap_or(Values::Int64(vec![])));
        if !self.filters.is_empty() {
            let words = self.filters.iter().flat_map(|word| halves(*word)).collect();
            add(FILTERS, Values::Int(words));
        }
        add(REFS, address(version, self.refs));
        if has_records {
            add(RECORDS, address(version, self.records));
        }
        // Other programs take the scalar for a missing value then, whatever its scale and offset. (Text has
        // no missing values to them.)
        if variable.attrs.get(FILL_VALUE).is_none() && variable.ty != ExternalType::Char {
            add(FILL_VALUE, fill_value(variable));
            add(FILL, Values::Int(vec![1]));
        }
        add(NOTE, Values::from(HOW));
        Variable { dims: Vec::new(), attrs: list(attrs), ..variable.clone() }
    }
}

fn list(attrs: Vec<Attribute>) -> NamedList<Attribute> {
    let mut out = NamedList::default();
    for attr in attrs {
        // The names of a variable's attributes differ already.
        let _ = out.push(attr);
    }
    out
}

/// The schema that a file has for a dataset with these chunked variables, by number: each becomes
/// its anchor.
pub fn to_file(schema: &Schema, anchors: &[(usize, Anchor)]) -> Schema {
    with_vars(schema, anchors.iter().map(|(n, anchor)| (*n, anchor)), |variable, anchor| {
        anchor.scalar(variable, schema.version, schema.is_record(variable))
    })
}

/// The schema with some variables, by number in ascending order, replaced. One pass, because a list finds
/// names by an index that would be made anew for each.
fn with_vars<A>(
    schema: &Schema,
    changes: impl Iterator<Item = (usize, A)>,
    change: impl Fn(&Variable, A) -> Variable,
) -> Schema {
    let mut changes = changes.peekable();
    let mut vars = NamedList::default();
    for (number, variable) in schema.vars.iter().enumerate() {
        let variable = match changes.next_if(|(n, _)| *n == number) {
            Some((_, with)) => change(variable, with),
            None => variable.clone(),
        };
        // The names are as different as they were.
        let _ = vars.push(variable);
    }
    let (version, dims, attrs) = (schema.version, schema.dims.clone(), schema.attrs.clone());
    Schema { version, dims, attrs, vars }
}

/// The schema that programs see of a file with these anchors, by number; `filters` is each one's
/// pipeline as text.
pub fn from_file(schema: &Schema, anchors: &[(usize, Anchor, String)]) -> Schema {
    let changes = anchors.iter().map(|(n, anchor, filters)| (*n, (anchor, filters)));
    let mut out = with_vars(schema, changes, |variable, (anchor, filters)| {
        let no_fill = variable.attrs.get(FILL).is_some();
        let own = |a: &&Attribute| {
            let name = &*a.name;
            HIDDEN.contains(&name) || name == FILTERS || (no_fill && name == FILL_VALUE)
        };
        let mut attrs: Vec<Attribute> =
            variable.attrs.iter().filter(|a| !own(a)).cloned().collect();
        if !filters.is_empty() {
            attrs.push(Attribute { name: FILTERS.into(), values: filters.as_str().into() });
        }
        let (dims, attrs) = (anchor.dims.clone(), list(attrs));
        Variable { dims, attrs, ..variable.clone() }
    });
    if let Some(end) = end_of(&out) {
        out.vars.remove(end.0);
    }
    for own in [HEAP, FILES, BEGUN, IDENTITY, WRITER] {
        if let Some(position) = out.attrs.position(own) {
            out.attrs.remove(position);
        }
    }
    out
}

/// Where the file's heap begins, if it has one.
pub fn heap_of(schema: &Schema) -> Option<u64> {
    schema.attr(Owner::Global, HEAP).and_then(to_address)
}

/// Notes where the heap begins.
pub fn put_heap(schema: &mut Schema, begin: u64) -> Result<(), SchemaError> {
    let values = address(schema.version, begin);
    schema.put_attr(Owner::Global, HEAP, values)
}

/// The number that the tables of the file know, if it has one.
pub fn identity_of(schema: &Schema) -> Option<u64> {
    schema.attr(Owner::Global, IDENTITY).and_then(to_address)
}

/// Notes the number that the tables of the file know: at most `i64::MAX`.
pub fn put_identity(schema: &mut Schema, identity: u64) -> Result<(), SchemaError> {
    let values = address(schema.version, identity);
    schema.put_attr(Owner::Global, IDENTITY, values)
}

/// Notes how many records of a chunked variable were written.
pub fn put_records(schema: &mut Schema, var: VarId, records: u64) -> Result<(), SchemaError> {
    let values = address(schema.version, records);
    schema.put_attr(Owner::Var(var), RECORDS, values)
}

/// The records that a call has begun to write; `None` where files do not say.
pub fn begun_of(schema: &Schema) -> Option<u64> {
    schema.attr(Owner::Global, BEGUN).and_then(to_address)
}

/// Notes how many records there will be when a call has ended.
pub fn put_begun(schema: &mut Schema, records: u64) -> Result<(), SchemaError> {
    let values = address(schema.version, records);
    schema.put_attr(Owner::Global, BEGUN, values)
}

/// Where in the header the eight bytes are that say how many records a call has begun to write.
pub fn begun_field(header: &Header) -> Option<u64> {
    begun_of(&header.schema)?;
    field(header, put_begun)
}

/// Where in the header the eight bytes of a number are.
pub(crate) fn field(
    header: &Header,
    put: impl Fn(&mut Schema, u64) -> Result<(), SchemaError>,
) -> Option<u64> {
    let encoded = |number: u64| {
        let mut header = header.clone();
        put(&mut header.schema, number).ok()?;
        Some(header.encode())
    };
    let (none, all) = (encoded(0)?, encoded(i64::MAX as u64)?);
    none.iter().zip(&all).position(|(a, b)| a != b).map(|at| at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Alignment, DataLayout, NumRecs};

    #[test]
    fn the_records_that_are_begun_are_eight_bytes_of_every_header() {
        for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
            let mut schema = Schema::new(version);
            schema.put_attr(Owner::Global, "before", Values::from("text")).unwrap();
            put_begun(&mut schema, 3).unwrap();
            schema.put_attr(Owner::Global, "behind", Values::from("text")).unwrap();
            let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
            let mut header = Header { schema, numrecs: NumRecs::Count(0), layout };
            let mut bytes = header.encode();
            let at = begun_field(&header).unwrap() as usize;
            bytes[at..at + 8].copy_from_slice(&0x12_3456_7890u64.to_be_bytes());
            put_begun(&mut header.schema, 0x12_3456_7890).unwrap();
            assert_eq!(bytes, header.encode());
            assert_eq!(begun_of(&header.schema), Some(0x12_3456_7890));
        }
    }
}
