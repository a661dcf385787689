//! Errors of the format: sentences that name the place, the object and the value.

use std::sync::Arc;

use esker_text::sentence;

use crate::types::{ExternalType, Version};

/// A definition that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The name breaks the rules.
    #[error("{kind} name {name:?} cannot be used: {fault}", fault = sentence(fault))]
    BadName {
        /// "dimension", "variable" or "attribute".
        kind: &'static str,
        /// The name as given.
        name: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The name is taken.
    #[error("{kind} \"{name}\" exists already", name = sentence(name))]
    Exists {
        /// "dimension", "variable" or "attribute".
        kind: &'static str,
        /// The name.
        name: Arc<str>,
    },
    /// There is no object of this name.
    #[error("there is no {kind} \"{name}\"", name = sentence(name))]
    NotFound {
        /// "dimension", "variable" or "attribute".
        kind: &'static str,
        /// The name as given.
        name: String,
    },
    /// A second unlimited dimension.
    #[error("dimension \"{name}\" cannot be unlimited: \"{first}\" is, and a classic file has one", name = sentence(name), first = sentence(first))]
    SecondUnlimited {
        /// The new dimension.
        name: Arc<str>,
        /// The one that is unlimited already.
        first: Arc<str>,
    },
    /// A length that cannot be stored.
    #[error("dimension \"{name}\" cannot have length {len}: {version} stores 1 to {max}", name = sentence(name))]
    DimLength {
        /// The dimension.
        name: Arc<str>,
        /// The length asked for.
        len: u64,
        /// The file version.
        version: Version,
        /// The longest that can be stored.
        max: u64,
    },
    /// A variable names a dimension that does not exist.
    #[error("variable \"{var}\" names dimension number {id}, but {defined} are defined", var = sentence(var))]
    NoSuchDim {
        /// The variable.
        var: Arc<str>,
        /// The number given.
        id: usize,
        /// How many there are.
        defined: usize,
    },
    /// A variable that does not exist.
    #[error("there is no variable number {id}: {defined} are defined")]
    NoSuchVar {
        /// The number given.
        id: usize,
        /// How many there are.
        defined: usize,
    },
    /// The unlimited dimension stands elsewhere than first.
    #[error(
        "variable \"{var}\" has the unlimited dimension \"{dim}\" at place {place}: it can only be first", var = sentence(var), dim = sentence(dim))]
    UnlimitedNotFirst {
        /// The variable.
        var: Arc<str>,
        /// The dimension.
        dim: Arc<str>,
        /// Where it stands, from 0.
        place: usize,
    },
    /// A type that the version does not have.
    #[error("{object} cannot be of type {ty} in {version}: only CDF-5 has it", object = sentence(object))]
    TypeNotInVersion {
        /// What was to have the type.
        object: String,
        /// The type.
        ty: ExternalType,
        /// The file version.
        version: Version,
    },
    /// The data section does not fit the version.
    #[error(
        "variable \"{var}\" cannot be placed: {what} is {value}, and {version} allows {max}; {remedy}", var = sentence(var), what = sentence(what))]
    TooLarge {
        /// The variable.
        var: Arc<str>,
        /// The number that is too large.
        what: &'static str,
        /// Its value.
        value: u128,
        /// The file version.
        version: Version,
        /// What it allows.
        max: u64,
        /// What to do.
        remedy: &'static str,
    },
}

/// Bytes that are not a classic netCDF header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{offset:#010x}] {object}: {fault}", object = sentence(object), fault = sentence(fault))]
pub struct DecodeError {
    /// Where in the file the offending value begins.
    pub offset: u64,
    /// What was being read: `variable "time"`, `global attribute 3`, `the list of dimensions`.
    pub object: String,
    /// What is wrong, with the value.
    pub fault: Fault,
}

/// What is wrong in a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends inside the header.
    #[error("the file ends at byte {file_len}, but {needed} more bytes are needed here for {what}", what = sentence(what))]
    Truncated {
        /// Length of the file.
        file_len: u64,
        /// Bytes wanted.
        needed: u64,
        /// For what.
        what: &'static str,
    },
    /// Only a prefix of the file was given and the header goes on after it. Not an error of
    /// the file: decode again with at least this many bytes.
    #[error("the header needs at least {at_least} bytes of the file")]
    NeedMore {
        /// How long a prefix to give.
        at_least: u64,
    },
    /// The file does not begin with "CDF" and a known version.
    #[error("{}", sentence(.0))]
    Magic(String),
    /// A list's tag is wrong.
    #[error("the tag of {list} is {tag:#x}; expected {expected}")]
    Tag {
        /// The list.
        list: &'static str,
        /// The tag found.
        tag: u32,
        /// The tags allowed, in words.
        expected: &'static str,
    },
    /// An absent list (tag 0) with a count.
    #[error("{list} is marked absent (tag 0) but has {count} elements")]
    AbsentWithCount {
        /// The list.
        list: &'static str,
        /// The count.
        count: u64,
    },
    /// A count that the rest of the file cannot hold.
    #[error("{what} is {count}, which needs at least {needed} bytes, but the file has {left} left", what = sentence(what))]
    Count {
        /// What is counted.
        what: &'static str,
        /// The count found.
        count: u64,
        /// Bytes that many need (the largest number when they are more).
        needed: u64,
        /// Bytes left in the file.
        left: u64,
    },
    /// A number that the specification says is not negative.
    #[error("{what} is negative ({value})", what = sentence(what))]
    Negative {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// A type code that does not exist in this version.
    #[error("unknown data type {code}: {version} has 1 to {max}")]
    Type {
        /// The code found.
        code: u32,
        /// The file version.
        version: Version,
        /// The largest code of this version.
        max: u32,
    },
    /// A name that is not UTF-8.
    #[error("the name is not UTF-8 (byte {at} of it is {byte:#04x})")]
    NameNotUtf8 {
        /// The offending byte's place in the name.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// A name that breaks the rules. Readers take it; nobody may define it.
    #[error("the name {name:?} breaks the rules: {fault}", fault = sentence(fault))]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// Two objects of one list with one name.
    #[error("the name {name:?} occurs twice in {list}")]
    DuplicateName {
        /// The name.
        name: String,
        /// The list.
        list: &'static str,
    },
    /// Padding that is not zero.
    #[error("the padding after {what} is not zero ({byte:#04x})", what = sentence(what))]
    Padding {
        /// What the padding follows.
        what: &'static str,
        /// The first byte that is not zero.
        byte: u8,
    },
    /// A dimension id that is not defined.
    #[error(
        "dimension {place} of the variable is number {id}, but {defined} dimensions are defined"
    )]
    DimId {
        /// Which of the variable's dimensions, from 0.
        place: usize,
        /// The id.
        id: u64,
        /// How many dimensions there are.
        defined: usize,
    },
    /// A second unlimited dimension.
    #[error("its length is 0 (unlimited), but dimension \"{first}\" is unlimited already", first = sentence(first))]
    SecondUnlimited {
        /// The first one.
        first: Arc<str>,
    },
    /// The unlimited dimension is not the first of a variable.
    #[error(
        "dimension {place} of the variable is the unlimited \"{dim}\", which can only be first", dim = sentence(dim))]
    UnlimitedNotFirst {
        /// Which of the variable's dimensions, from 0.
        place: usize,
        /// The dimension's name.
        dim: Arc<str>,
    },
    /// The variable's size overflows 64 bits.
    #[error("the variable's size does not fit 63 bits")]
    SizeOverflow,
    /// `begin` lies in the header or beyond what can be addressed.
    #[error("its data begin at {begin}, {why}", why = sentence(why))]
    Begin {
        /// The offset found.
        begin: u64,
        /// Why that cannot be.
        why: &'static str,
    },
    /// `vsize` disagrees with the shape. Readers use the shape.
    #[error("the stored size is {stored}, but the shape says {expected}")]
    Vsize {
        /// The size found.
        stored: u64,
        /// What the shape and type say.
        expected: u64,
    },
    /// What the header says of a variable that Esker stores in its own way is not what it said when it was
    /// written.
    #[error(
        "its seal ({seal}) {0}: the header is damaged, or another program has changed it, and its values would be \
         others",
        seal = crate::sealed::SEAL
    )]
    Seal(&'static str),
}
