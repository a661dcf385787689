//! Seals: checksums of what a header says of variables that Esker stores in its own way.
//!
//! A chunked variable is a scalar with attributes, a decomposed one is flat and names its map. One bit
//! in the name of such an attribute makes it an ordinary variable with other values. So each of them has
//! one more attribute, [`SEAL`], with checksums of everything that its meaning depends on. A header
//! gets its seals when it is encoded and loses them when it is decoded: nobody else sees them.
//!
//! A variable that has a seal must match it, and one that needs a seal must have one: whichever of the two a
//! damage hits, the other tells. docs/format/seals.md, has what is summed.

use crate::chunked::{self, DIMS, RECORDS};
use crate::header::{Alignment, DataLayout, Header, VarFields};
use crate::schema::{Attribute, DimId, DimLen, NamedList, Schema, Variable};
use crate::values::Values;

/// The attribute that a seal is: the first one of its variable.
pub const SEAL: &str = "__esker_seal";

/// Names of what decomposed variables are made of, and how many records they have.
pub mod decomposed {
    use crate::chunked::{address, field, to_address};
    use crate::error::SchemaError;
    use crate::header::Header;
    use crate::schema::{Owner, Schema, VarId};

    /// The attribute of a decomposed variable that names its map.
    pub const ATTRIBUTE: &str = "decomposition";
    /// The attribute of a scalar that stands for a variable in sub-files.
    pub const STANDS_FOR: &str = "subfiled_dimensions";
    /// The dimension that stands for the decomposed ones, after the map's name.
    pub const STORED: &str = "nelems";
    /// The variable of a map that has its seal, after the map's name.
    pub const BLOCKS_OF: &str = "nreqs";
    /// The attribute of that variable that makes it one.
    pub const SHAPE: &str = "decomposed_shape";
    /// The other variables of a map, after its name: numbers of processes,
    pub const FIRST_BLOCK: &str = "req_start";
    /// where the elements of each begin,
    pub const BLOB_START: &str = "blob_start";
    /// how many there are,
    pub const BLOB_COUNT: &str = "blob_count";
    /// checksums of these numbers,
    pub const CHECKSUM: &str = "checksum";
    /// and of the blocks;
    pub const BLOCK_CHECKSUM: &str = "block_checksum";
    /// then numbers of blocks: where they begin,
    pub const OFFSETS: &str = "offsets";
    /// and how far they reach.
    pub const LENGTHS: &str = "lengths";
    /// Attributes of that variable: records that a call has begun to write, and that were counted and synced.
    pub const BEGUN: &str = "records_begun";
    /// See [`BEGUN`].
    pub const COUNTED: &str = "records_counted";

    /// How many records a file with decomposed variables may have. The number of records is the one
    /// number of a header that changes all the time, and so no seal covers it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Counts {
        /// Never fewer than the file counts: written before it counts more.
        pub begun: u64,
        /// Never more than the file counts: written after they were synced.
        pub counted: u64,
    }

    impl Counts {
        /// What `counted` is where the attribute has no number as this program writes them.
        pub const UNREADABLE: u64 = u64::MAX;
    }

    /// The variable that has the counts: the first one of the first map.
    fn holder(schema: &Schema) -> Option<VarId> {
        let holds = |v: &crate::schema::Variable| {
            super::map_of(&v.name).is_some() && v.attrs.get(BEGUN).is_some()
        };
        schema.vars.iter().position(holds).map(VarId)
    }

    /// The counts, if the file has decomposed variables.
    pub fn counts_of(schema: &Schema) -> Option<Counts> {
        let holder = Owner::Var(holder(schema)?);
        let number = |name| schema.attr(holder, name).and_then(to_address);
        // One that cannot be read bounds nothing above, and everything below.
        Some(Counts {
            begun: number(BEGUN).unwrap_or(0),
            counted: number(COUNTED).unwrap_or(Counts::UNREADABLE),
        })
    }

    /// Notes the counts: at `var`, or where they are.
    pub fn put_counts(
        schema: &mut Schema,
        var: Option<VarId>,
        counts: Counts,
    ) -> Result<(), SchemaError> {
        let Some(var) = var.or_else(|| holder(schema)) else { return Ok(()) };
        for (name, number) in [(BEGUN, counts.begun), (COUNTED, counts.counted)] {
            let values = address(schema.version, number);
            schema.put_attr(Owner::Var(var), name, values)?;
        }
        Ok(())
    }

    /// Where in the header the eight bytes of each are: of what was begun, and of what was counted.
    pub fn count_fields(header: &Header) -> Option<(u64, u64)> {
        let counts = counts_of(&header.schema)?;
        let begun =
            field(header, |schema, begun| put_counts(schema, None, Counts { begun, ..counts }));
        let counted =
            field(header, |schema, counted| put_counts(schema, None, Counts { counted, ..counts }));
        Some((begun?, counted?))
    }
}

use decomposed::{
    ATTRIBUTE, BEGUN, BLOB_COUNT, BLOB_START, BLOCK_CHECKSUM, BLOCKS_OF, CHECKSUM, COUNTED,
    FIRST_BLOCK, LENGTHS, OFFSETS, SHAPE, STANDS_FOR, STORED,
};

/// The variables of a map beside the first, in the order in which they are summed.
const MAP: [&str; 7] =
    [FIRST_BLOCK, BLOB_START, BLOB_COUNT, CHECKSUM, BLOCK_CHECKSUM, OFFSETS, LENGTHS];

/// What changes without a redefinition, and is therefore not summed.
const CHANGING: [&str; 3] = [RECORDS, BEGUN, COUNTED];

/// What a seal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seal {
    /// Of what the variable is.
    meaning: u32,
    /// Of where its values are.
    places: u32,
}

/// What a sealed variable is.
enum Sealed<'s> {
    /// The anchor of a chunked variable, or what is left of one.
    Anchor,
    /// A decomposed variable, or the scalar that stands for one, of this map.
    Decomposed(&'s str),
    /// The first variable of a map of this name.
    Map(&'s str),
}

/// Whether an attribute says that its scalar stands for chunks. (The shape of chunks is one that programs see, and
/// copy.)
fn is_mark(attr: &Attribute) -> bool {
    attr.name.starts_with("__chunk_") && &*attr.name != chunked::SHAPE
}

/// Whether an attribute of a variable says how its values are stored, or what those are that nobody wrote.
fn is_own(attr: &Attribute) -> bool {
    attr.name.starts_with("__") || ["_FillValue", ATTRIBUTE, STANDS_FOR].contains(&&*attr.name)
}

/// The name of the map that a variable of this name is the first one of.
fn map_of(name: &str) -> Option<&str> {
    let map = name.strip_suffix(BLOCKS_OF)?.strip_suffix('.')?;
    let digits = map.strip_prefix('D')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(map)
}

/// What a variable is that must have a seal; `None` for one as every program has them.
fn kind<'s>(schema: &'s Schema, variable: &'s Variable) -> Option<Sealed<'s>> {
    if variable.dims.is_empty() && variable.attrs.iter().any(is_mark) {
        return Some(Sealed::Anchor);
    }
    if let Some(map) = map_of(&variable.name).filter(|_| variable.attrs.get(SHAPE).is_some()) {
        return Some(Sealed::Map(map));
    }
    if variable.attrs.get(STANDS_FOR).is_some() && variable.dims.is_empty() {
        return Some(Sealed::Decomposed(""));
    }
    let Values::Char(name) = &variable.attrs.get(ATTRIBUTE)?.values else { return None };
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    let last = schema.dims.at(variable.dims.last()?.0)?;
    let stored = last.name.strip_suffix(STORED)?.strip_suffix('.')?;
    (stored == name).then_some(Sealed::Decomposed(stored))
}

/// Sums bytes, each stretch with its length, so that none runs into the next.
struct Sum(u32);

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    fn number(&mut self, number: u64) {
        self.0 = crc32c::crc32c_append(self.0, &number.to_be_bytes());
    }

    fn attrs(&mut self, attrs: &NamedList<Attribute>, counts: fn(&Attribute) -> bool) {
        let counted = || attrs.iter().filter(|attr| counts(attr));
        self.number(counted().count() as u64);
        for attr in counted() {
            self.bytes(attr.name.as_bytes());
            self.number(u64::from(attr.values.ty().code()));
            self.number(attr.values.len() as u64);
            if !CHANGING.contains(&&*attr.name) {
                let mut bytes = Vec::new();
                attr.values.encode_into(&mut bytes);
                self.bytes(&bytes);
            }
        }
    }

    fn dim(&mut self, schema: &Schema, dim: DimId) {
        if let Some(dim) = schema.dims.at(dim.0) {
            self.bytes(dim.name.as_bytes());
        }
        self.length(schema, dim);
    }

    fn length(&mut self, schema: &Schema, dim: DimId) {
        self.number(match schema.dims.at(dim.0).map(|dim| dim.len) {
            Some(DimLen::Fixed(len)) => len,
            Some(DimLen::Unlimited) => 0,
            None => u64::MAX,
        });
    }

    fn variable(&mut self, schema: &Schema, variable: &Variable, counts: fn(&Attribute) -> bool) {
        self.bytes(variable.name.as_bytes());
        self.number(u64::from(variable.ty.code()));
        self.number(variable.dims.len() as u64);
        variable.dims.iter().for_each(|dim| self.dim(schema, *dim));
        self.attrs(&variable.attrs, counts);
    }
}

impl Seal {
    /// Of a variable that has this number, whatever it is.
    fn of(schema: &Schema, layout: &DataLayout, number: usize, variable: &Variable) -> Seal {
        let (mut meaning, mut places) = (Sum(0), Sum(0));
        let kind = kind(schema, variable);
        // All of a map is ours; of what programs define, they may change units and titles with any tool.
        let is_map = matches!(kind, Some(Sealed::Map(_)));
        meaning.variable(schema, variable, if is_map { |_| true } else { is_own });
        let begin = |number: usize| layout.places.get(number).map_or(0, |place| place.begin);
        match kind {
            Some(Sealed::Anchor) => {
                // Tables know the number; the scalar's own place has no meaning.
                meaning.number(number as u64);
                if let Some(Values::Int(dims)) = variable.attrs.get(DIMS).map(|a| &a.values) {
                    for dim in dims {
                        meaning.length(schema, DimId(usize::try_from(*dim).unwrap_or(usize::MAX)));
                    }
                }
            }
            Some(Sealed::Map(map)) => {
                places.number(begin(number));
                let stored = schema.dims.position(&format!("{map}.{STORED}"));
                meaning.dim(schema, DimId(stored.unwrap_or(usize::MAX)));
                // By name: other programs put variables into another order.
                for part in MAP {
                    let other = schema.vars.position(&format!("{map}.{part}"));
                    match other.and_then(|n| schema.vars.at(n)) {
                        Some(other) => meaning.variable(schema, other, |_| true),
                        None => meaning.number(u64::MAX),
                    }
                    places.number(other.map_or(0, begin));
                }
            }
            Some(Sealed::Decomposed(map)) => {
                places.number(begin(number));
                let has_map = schema.vars.get(&format!("{map}.{BLOCKS_OF}")).is_some();
                meaning.number(has_map.into());
                // Of a scalar that stands for a variable, the dimensions that it names.
                let names = variable.attrs.get(STANDS_FOR).and_then(|a| a.values.text());
                for name in names.iter().flat_map(|n| n.trim_end_matches('\0').split('/')) {
                    let dim = schema.dims.position(name).unwrap_or(usize::MAX);
                    meaning.dim(schema, DimId(dim));
                }
            }
            None => {}
        }
        Seal { meaning: meaning.0, places: places.0 }
    }

    fn attribute(self) -> Attribute {
        let values = Values::Int(vec![self.meaning as i32, self.places as i32]);
        Attribute { name: SEAL.into(), values }
    }

    fn parse(attr: &Attribute) -> Option<Seal> {
        match &attr.values {
            Values::Int(list) => match list[..] {
                [meaning, places] => Some(Seal { meaning: meaning as u32, places: places as u32 }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The seals of variables in their order, to be encoded.
pub(crate) fn seals(schema: &Schema, layout: &DataLayout) -> Vec<Option<Attribute>> {
    with_seals(schema, |number, variable| Seal::of(schema, layout, number, variable))
}

/// The same without what they say, which takes as many bytes.
pub(crate) fn blank_seals(schema: &Schema) -> Vec<Option<Attribute>> {
    with_seals(schema, |_, _| Seal { meaning: 0, places: 0 })
}

fn with_seals(schema: &Schema, seal: impl Fn(usize, &Variable) -> Seal) -> Vec<Option<Attribute>> {
    let one = |(number, variable): (usize, &Variable)| {
        kind(schema, variable).map(|_| seal(number, variable).attribute())
    };
    schema.vars.iter().enumerate().map(one).collect()
}

/// Takes the seals away from a header that was decoded, and compares them: gives the numbers of variables that
/// are not what they were when they were sealed, and why.
pub(crate) fn open(header: &mut Header, fields: &mut [VarFields]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::with_capacity(header.schema.vars.len());
    for number in 0..header.schema.vars.len() {
        let Some(variable) = header.schema.vars.at_mut(number) else { continue };
        let at = variable.attrs.position(SEAL);
        if let (Some(at), Some(fields)) = (at, fields.get_mut(number)) {
            fields.attrs_at.remove(at);
        }
        found.push(at.map(|at| (at, variable.attrs.remove(at))));
    }
    let mut broken = Vec::new();
    let mut packed: Option<Option<DataLayout>> = None;
    for (number, found) in found.iter().enumerate() {
        let Some(variable) = header.schema.vars.at(number) else { continue };
        let needs = kind(&header.schema, variable).is_some();
        let why = match found {
            None if !needs => continue,
            None => Some("is missing"),
            Some((at, _)) if *at != 0 => Some("has been moved by another program"),
            Some((_, attr)) => {
                let own = Seal::of(&header.schema, &header.layout, number, variable);
                match Seal::parse(attr) {
                    Some(seal) if seal == own => None,
                    // Other programs that write a file anew pack it, and then its places follow from its shapes.
                    Some(Seal { meaning, .. }) if meaning == own.meaning && needs => {
                        let packed = packed.get_or_insert_with(|| {
                            DataLayout::place(&header.schema, &Alignment::default()).ok()
                        });
                        match packed.as_ref().is_some_and(|p| p.places == header.layout.places) {
                            true => None,
                            false => Some("says that its values are elsewhere"),
                        }
                    }
                    _ => Some("does not match what the header says of it"),
                }
            }
        };
        if let Some(why) = why {
            broken.push((number, why));
        }
    }
    broken
}
