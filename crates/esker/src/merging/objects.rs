//! Dimensions, attributes and variables on their way to their owners.

use std::cmp::Ordering;
use std::sync::Arc;

use esker_format::{Attribute, DimLen, ExternalType, NamedList, Schema, Values, Variable};

use super::route::{Keyed, Wire};
use crate::merge::{MergeError, attr_value, conflict, declared, length, require_equal_fills};
use crate::options::FillMode;

/// The kinds of things that have names of their own. The unlimited dimension is one thing, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Dim,
    Attr,
    Var,
    Unlimited,
}

const KINDS: [Kind; 4] = [Kind::Dim, Kind::Attr, Kind::Var, Kind::Unlimited];

/// The lowest rank that has something, and its place among what that rank has: the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    pub(super) rank: u64,
    pub(super) place: u64,
}

/// What a rank, or several, say of an object.
#[derive(Debug, Clone)]
pub(super) enum Definition {
    Dim(DimLen),
    Attr(Values),
    Var(OfVar),
    Unlimited(Arc<str>),
    /// Two that contradict each other, in words.
    Conflict(String),
}

#[derive(Debug, Clone)]
pub(super) struct OfVar {
    ty: ExternalType,
    dims: Vec<Arc<str>>,
    /// In the order of the file.
    pub(super) attrs: Vec<(First, Attribute)>,
    pub(super) fill: Option<(FillMode, u64)>,
}

/// A definition and where it is first: what comes back from an owner.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) first: First,
    pub(super) definition: Definition,
}

/// An object.
#[derive(Debug)]
pub(super) struct Object {
    hash: u64,
    kind: Kind,
    name: Arc<str>,
    pub(super) answer: Answer,
}

/// One object of this rank: its kind and its number there.
pub(super) type Own = (Kind, usize);

/// Everything that this rank defines, in the order of keys, and which of its objects each is.
pub(super) fn of_rank(
    schema: &Schema,
    fills: &[Option<FillMode>],
    rank: usize,
) -> (Vec<Object>, Vec<Own>) {
    let rank = rank as u64;
    let mut all: Vec<(Object, Own)> = Vec::new();
    let mut add = |kind: Kind, number: usize, name: &Arc<str>, definition: Definition| {
        let first = First { rank, place: number as u64 };
        let hash = hash(kind, name);
        let answer = Answer { first, definition };
        all.push((Object { hash, kind, name: name.clone(), answer }, (kind, number)));
    };
    for (number, dim) in schema.dims.iter().enumerate() {
        add(Kind::Dim, number, &dim.name, Definition::Dim(dim.len));
        if dim.len == DimLen::Unlimited {
            add(Kind::Unlimited, number, &Arc::from(""), Definition::Unlimited(dim.name.clone()));
        }
    }
    for (number, attr) in schema.attrs.iter().enumerate() {
        add(Kind::Attr, number, &attr.name, Definition::Attr(attr.values.clone()));
    }
    for (number, var) in schema.vars.iter().enumerate() {
        let fill = fills.get(number).copied().flatten().map(|mode| (mode, rank));
        add(Kind::Var, number, &var.name, Definition::Var(OfVar::new(schema, var, fill, rank)));
    }
    all.sort_by(|a, b| a.0.order(&b.0));
    all.into_iter().unzip()
}

impl OfVar {
    fn new(schema: &Schema, var: &Variable, fill: Option<(FillMode, u64)>, rank: u64) -> OfVar {
        let dims = var.dims.iter().filter_map(|dim| schema.dims.at(dim.0));
        let attrs = var.attrs.iter().enumerate();
        OfVar {
            ty: var.ty,
            dims: dims.map(|dim| dim.name.clone()).collect(),
            attrs: attrs.map(|(at, a)| (First { rank, place: at as u64 }, a.clone())).collect(),
            fill,
        }
    }

    /// Its attributes as a list.
    pub(super) fn attr_list(self) -> NamedList<Attribute> {
        let mut list = NamedList::default();
        for (_, attr) in self.attrs {
            // Names are keys, so that none is taken.
            let _ = list.push(attr);
        }
        list
    }

    fn words(&self) -> String {
        declared(self.ty, self.dims.iter().map(|name| &**name))
    }

    fn join(
        mut self,
        other: OfVar,
        name: &str,
        firsts: (First, First),
    ) -> Result<OfVar, MergeError> {
        if self.ty != other.ty || self.dims != other.dims {
            let texts = (self.words(), other.words());
            let object = format!("variable \"{name}\"");
            return Err(conflict(object, firsts.0.rank, firsts.1.rank, texts));
        }
        let owner = format!("variable \"{name}\"");
        // Few attributes are looked for one by one, many by a sorted list of names.
        let mut known: Vec<(Arc<str>, usize)> =
            self.attrs.iter().enumerate().map(|(at, (_, a))| (a.name.clone(), at)).collect();
        known.sort();
        for (first, attr) in other.attrs {
            match known.binary_search_by(|(name, _)| name.cmp(&attr.name)) {
                Err(_) => self.attrs.push((first, attr)),
                Ok(at) => {
                    let mine = &mut self.attrs[known[at].1];
                    let object = || format!("attribute \"{}\" of {owner}", attr.name);
                    require_equal(&mine.1.values, &attr.values, (mine.0, first), object)?;
                    mine.0 = mine.0.min(first);
                }
            }
        }
        self.attrs.sort_by_key(|(first, _)| *first);
        self.fill = require_equal_fills(self.fill, other.fill, name)?;
        Ok(self)
    }
}

/// Fails for two values of one attribute. Bits, so that NaN is equal to itself.
fn require_equal(
    mine: &Values,
    theirs: &Values,
    firsts: (First, First),
    object: impl Fn() -> String,
) -> Result<(), MergeError> {
    match mine.ty() == theirs.ty() && mine.native_bytes() == theirs.native_bytes() {
        true => Ok(()),
        false => {
            let texts = (attr_value(mine), attr_value(theirs));
            Err(conflict(object(), firsts.0.rank, firsts.1.rank, texts))
        }
    }
}

impl Definition {
    fn join(
        self,
        other: Definition,
        name: &str,
        firsts: (First, First),
    ) -> Result<Definition, MergeError> {
        let ranks = (firsts.0.rank, firsts.1.rank);
        match (self, other) {
            (Definition::Conflict(words), _) | (_, Definition::Conflict(words)) => {
                Ok(Definition::Conflict(words))
            }
            (Definition::Dim(mine), Definition::Dim(theirs)) => match mine == theirs {
                true => Ok(Definition::Dim(mine)),
                false => {
                    let texts = (length(mine), length(theirs));
                    Err(conflict(format!("dimension \"{name}\""), ranks.0, ranks.1, texts))
                }
            },
            (Definition::Attr(mine), Definition::Attr(theirs)) => {
                let object = || format!("global attribute \"{name}\"");
                require_equal(&mine, &theirs, firsts, object)?;
                Ok(Definition::Attr(mine))
            }
            (Definition::Unlimited(mine), Definition::Unlimited(theirs)) => match mine == theirs {
                true => Ok(Definition::Unlimited(mine)),
                false => {
                    let object = "the unlimited dimension, of which a classic file has one";
                    let texts = (format!("\"{mine}\""), format!("\"{theirs}\""));
                    Err(conflict(object.to_string(), ranks.0, ranks.1, texts))
                }
            },
            (Definition::Var(mine), Definition::Var(theirs)) => {
                Ok(Definition::Var(mine.join(theirs, name, firsts)?))
            }
            // One key is of one kind.
            _ => Ok(Definition::Conflict(format!("\"{name}\" is of two kinds"))),
        }
    }
}

impl Keyed for Object {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn order(&self, other: &Object) -> Ordering {
        (self.hash, self.kind, &self.name).cmp(&(other.hash, other.kind, &other.name))
    }

    fn joined(self, other: Object) -> Object {
        let (lower, higher) = match self.answer.first <= other.answer.first {
            true => (self, other),
            false => (other, self),
        };
        let Object { hash, kind, name, answer } = lower;
        let firsts = (answer.first, higher.answer.first);
        let joined = answer.definition.join(higher.answer.definition, &name, firsts);
        let definition = joined.unwrap_or_else(|error| Definition::Conflict(error.to_string()));
        Object { hash, kind, name, answer: Answer { first: firsts.0, definition } }
    }
}

/// FNV-1a, with the last step of SplitMix64: names that differ in their last digit have owners far apart.
fn hash(kind: Kind, name: &str) -> u64 {
    let bytes = std::iter::once(kind as u8).chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl Wire for u64 {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<u64> {
        let (number, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(u64::from_le_bytes(*number))
    }
}

impl Wire for [u64; 2] {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|number| number.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<[u64; 2]> {
        Some([u64::read(from)?, u64::read(from)?])
    }
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    esker_format::varint::put(to, bytes.len() as u64);
    to.extend(bytes);
}

fn read_bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = usize::try_from(esker_format::varint::take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

fn read_name(from: &mut &[u8]) -> Option<Arc<str>> {
    Some(Arc::from(std::str::from_utf8(read_bytes(from)?).ok()?))
}

fn read_byte(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}

impl Wire for First {
    fn write(&self, to: &mut Vec<u8>) {
        esker_format::varint::put(to, self.rank);
        esker_format::varint::put(to, self.place);
    }

    fn read(from: &mut &[u8]) -> Option<First> {
        let rank = esker_format::varint::take(from)?;
        Some(First { rank, place: esker_format::varint::take(from)? })
    }
}

impl Wire for Values {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.ty().code().to_le_bytes());
        esker_format::varint::put(to, self.len() as u64);
        self.encode_into(to);
    }

    fn read(from: &mut &[u8]) -> Option<Values> {
        let (code, rest) = from.split_first_chunk()?;
        *from = rest;
        let ty = ExternalType::from_code(u32::from_le_bytes(*code))?;
        let count = usize::try_from(esker_format::varint::take(from)?).ok()?;
        let bytes = count.checked_mul(ty.size() as usize)?;
        let (bytes, rest) = from.split_at_checked(bytes)?;
        *from = rest;
        Values::decode(ty, count, bytes)
    }
}

impl Wire for OfVar {
    fn write(&self, to: &mut Vec<u8>) {
        use esker_format::varint::put;
        to.extend(self.ty.code().to_le_bytes());
        put(to, self.dims.len() as u64);
        self.dims.iter().for_each(|name| write_bytes(name.as_bytes(), to));
        put(to, self.attrs.len() as u64);
        for (first, attr) in &self.attrs {
            first.write(to);
            write_bytes(attr.name.as_bytes(), to);
            attr.values.write(to);
        }
        match self.fill {
            None => put(to, 0),
            Some((FillMode::Fill, rank)) => put(to, 2 * rank + 1),
            Some((FillMode::NoFill, rank)) => put(to, 2 * rank + 2),
        }
    }

    fn read(from: &mut &[u8]) -> Option<OfVar> {
        use esker_format::varint::take;
        let (code, rest) = from.split_first_chunk()?;
        *from = rest;
        let ty = ExternalType::from_code(u32::from_le_bytes(*code))?;
        let mut dims = Vec::new();
        for _ in 0..take(from)? {
            dims.push(read_name(from)?);
        }
        let mut attrs = Vec::new();
        for _ in 0..take(from)? {
            let first = First::read(from)?;
            let name = read_name(from)?;
            attrs.push((first, Attribute { name, values: Values::read(from)? }));
        }
        let code = take(from)?;
        let mode = if code % 2 == 1 { FillMode::Fill } else { FillMode::NoFill };
        let fill = code.checked_sub(1).map(|code| (mode, code / 2));
        Some(OfVar { ty, dims, attrs, fill })
    }
}

impl Wire for Answer {
    fn write(&self, to: &mut Vec<u8>) {
        self.first.write(to);
        match &self.definition {
            Definition::Dim(len) => {
                to.push(0);
                let len = match len {
                    DimLen::Fixed(len) => *len,
                    DimLen::Unlimited => 0,
                };
                esker_format::varint::put(to, len);
            }
            Definition::Attr(values) => {
                to.push(1);
                values.write(to);
            }
            Definition::Var(var) => {
                to.push(2);
                var.write(to);
            }
            Definition::Unlimited(name) => {
                to.push(3);
                write_bytes(name.as_bytes(), to);
            }
            Definition::Conflict(words) => {
                to.push(4);
                write_bytes(words.as_bytes(), to);
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Answer> {
        let first = First::read(from)?;
        let definition = match read_byte(from)? {
            0 => Definition::Dim(match esker_format::varint::take(from)? {
                0 => DimLen::Unlimited,
                len => DimLen::Fixed(len),
            }),
            1 => Definition::Attr(Values::read(from)?),
            2 => Definition::Var(OfVar::read(from)?),
            3 => Definition::Unlimited(read_name(from)?),
            4 => Definition::Conflict(read_name(from)?.to_string()),
            _ => return None,
        };
        Some(Answer { first, definition })
    }
}

impl Wire for Object {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(self.kind as u8);
        write_bytes(self.name.as_bytes(), to);
        self.answer.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Object> {
        let kind = *KINDS.get(usize::from(read_byte(from)?))?;
        let name = read_name(from)?;
        let hash = hash(kind, &name);
        Some(Object { hash, kind, name, answer: Answer::read(from)? })
    }
}
