//! Finding the maps of a dataset in its header.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use esker_format::{DimLen, Header, Schema, VarId, Variable, inside};

use super::check::LastAsked;
use super::grid::{Block, Grid};
use super::index::Index;
use super::{
    ATTRIBUTE, BLOB_COUNT, BLOB_START, BLOCK_CHECKSUM, BLOCKS_OF, CHECKSUM, COVERED, DIMENSIONS,
    FIRST_BLOCK, LENGTHS, MAP_IDENTITY, OFFSETS, REPEATED, SHAPE, STORED, part,
};

/// The number of a decomposition map in its dataset: map `x` is called `Dx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecompositionId(pub u64);

impl DecompositionId {
    pub(crate) fn name(self) -> String {
        format!("D{}", self.0)
    }
}

/// What is known of a decomposition map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decomposition {
    /// Its name, for instance `D1`.
    pub name: String,
    /// The names of the decomposed dimensions, slowest first.
    pub dims: Vec<String>,
    /// Their lengths.
    pub shape: Vec<u64>,
    /// Ranks that have a part.
    pub ranks: u64,
    /// Blocks of all parts.
    pub blocks: u64,
    /// Elements that are stored for each index of the dimensions before: those of all parts.
    pub stored: u64,
    /// Different elements among them, as the map says.
    pub covered: Option<u64>,
}

impl Decomposition {
    /// The names of the variables that hold the map.
    pub fn variables(&self) -> [String; 8] {
        let all = [
            BLOCKS_OF,
            FIRST_BLOCK,
            BLOB_START,
            BLOB_COUNT,
            CHECKSUM,
            BLOCK_CHECKSUM,
            OFFSETS,
            LENGTHS,
        ];
        all.map(|what| part(&self.name, what))
    }

    /// The name of the dimension that stands for the decomposed ones.
    pub fn stored_dim(&self) -> String {
        part(&self.name, STORED)
    }

    /// The attribute by which a variable names its map.
    pub const ATTRIBUTE: &'static str = ATTRIBUTE;
}

/// What the header says of a map.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) grid: Grid,
    pub(crate) dims: Vec<String>,
    pub(crate) ranks: u64,
    pub(crate) blocks: u64,
    pub(crate) stored: u64,
    /// What its checksums know.
    pub(crate) identity: u64,
    covered: Option<u64>,
    /// Whether several parts have an element, as far as the map says.
    pub(crate) repeats: bool,
}

/// A map of a dataset. What is read of it is kept.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) head: Result<Head, String>,
    /// The places of this rank's blob.
    pub(crate) blob: OnceLock<Range<u64>>,
    pub(crate) own: OnceLock<Arc<Own>>,
    /// All of its blocks, if they fit the memory for it.
    pub(crate) index: OnceLock<Arc<Index>>,
    pub(super) last: Mutex<Option<LastAsked>>,
}

/// This rank's part of a map.
#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) blob: Range<u64>,
    /// In the order of the blob.
    pub(crate) blocks: Vec<Block>,
    pub(crate) index: Index,
    /// Elements that a higher rank has too, whose copy is the one that is read. By position.
    pub(crate) elsewhere: Vec<Elsewhere>,
}

/// Stored elements that are read somewhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elsewhere {
    pub(crate) position: u64,
    pub(crate) len: u64,
    pub(crate) home: u64,
}

/// The layout of decomposed variables: the maps of a dataset, and which variables they are for. Their values are in
/// places of the file, and move as those of ordinary variables do.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    maps: Vec<Map>,
    /// The map of each variable, by the file's number.
    of_var: Vec<Option<usize>>,
}

impl Mapped {
    pub(crate) fn of(header: &Header) -> Mapped {
        let mut maps = Mapped::default();
        let mut of_var = Vec::with_capacity(header.schema.vars.len());
        for variable in header.schema.vars.iter() {
            of_var.push(named(&header.schema, variable).map(|name| maps.number(header, name)));
        }
        if maps.maps.is_empty() {
            return maps;
        }
        Mapped { of_var, ..maps }
    }

    /// The map of a variable that the file has under this number.
    pub(crate) fn of_var(&self, var: VarId) -> Option<&Map> {
        self.maps.get((*self.of_var.get(var.0)?)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Map> {
        self.maps.iter()
    }

    fn number(&mut self, header: &Header, name: String) -> usize {
        if let Some(known) = self.maps.iter().position(|map| map.name == name) {
            return known;
        }
        let head = Head::of(header, &name);
        let (blob, own, index) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let last = Mutex::new(None);
        self.maps.push(Map { name, head, blob, own, index, last });
        self.maps.len() - 1
    }
}

/// The map that a variable names and has the dimension of. A variable with a like attribute
/// that means something else is no decomposed one.
pub(super) fn named(schema: &Schema, variable: &Variable) -> Option<String> {
    let name = variable.attrs.get(ATTRIBUTE)?.values.text()?;
    let name = name.trim_end_matches('\0');
    let last = schema.dims.at(variable.dims.last()?.0)?;
    let is_one = *last.name == *part(name, STORED)
        && matches!(last.len, DimLen::Fixed(_))
        && schema.vars.get(&part(name, BLOCKS_OF)).is_some();
    is_one.then(|| name.to_string())
}

impl Map {
    pub(crate) fn describe(&self) -> Option<Decomposition> {
        let head = self.head.as_ref().ok()?;
        Some(Decomposition {
            name: self.name.clone(),
            dims: head.dims.clone(),
            shape: head.grid.lens().to_vec(),
            ranks: head.ranks,
            blocks: head.blocks,
            stored: head.stored,
            covered: head.covered,
        })
    }
}

impl Head {
    fn of(header: &Header, name: &str) -> Result<Head, String> {
        let schema = &header.schema;
        let length = |what: &str| {
            let full = part(name, what);
            let var = schema.vars.get(&full);
            let var = var.ok_or_else(|| format!("there is no variable \"{full}\""))?;
            if var.attrs.get(ATTRIBUTE).is_some() {
                return Err(format!("\"{full}\" is itself decomposed"));
            }
            match var.dims[..] {
                [dim] => match schema.dims.at(dim.0).map(|d| d.len) {
                    Some(DimLen::Fixed(len)) => Ok(len),
                    _ => Err(format!("\"{full}\" has records")),
                },
                _ => Err(format!("\"{full}\" has {} dimensions instead of one", var.dims.len())),
            }
        };
        let same = |what: &[&str]| {
            let lens = what.iter().map(|w| length(w)).collect::<Result<Vec<u64>, String>>()?;
            match lens.iter().all(|n| *n == lens[0]) {
                true => Ok(lens[0]),
                false => Err(format!("{what:?} have different lengths: {lens:?}")),
            }
        };
        let per_rank = [BLOCKS_OF, FIRST_BLOCK, BLOB_START, BLOB_COUNT, BLOCK_CHECKSUM, CHECKSUM];
        let ranks = same(&per_rank)?;
        let blocks = same(&[OFFSETS, LENGTHS])?;
        let stored = match schema.dims.get(&part(name, STORED)).map(|d| d.len) {
            Some(DimLen::Fixed(len)) => len,
            _ => return Err(format!("there is no dimension \"{}\"", part(name, STORED))),
        };
        let about = schema.vars.get(&part(name, BLOCKS_OF));
        let attr = |what: &str| about.and_then(|v| v.attrs.get(what)).map(|a| &a.values);
        let number = |what: &str| {
            let values = attr(what)?.convert_to::<i64>().ok()?;
            u64::try_from(*values.first()?).ok()
        };
        let shape = attr(SHAPE).and_then(|v| v.convert_to::<i64>().ok());
        let shape = shape.ok_or_else(|| format!("its attribute {SHAPE} is missing"))?;
        let lens = shape.iter().map(|n| u64::try_from(*n).ok()).collect::<Option<Vec<u64>>>();
        let grid = lens.and_then(Grid::new);
        let grid = grid.ok_or_else(|| format!("its attribute {SHAPE} is {shape:?}"))?;
        let names = attr(DIMENSIONS).and_then(|v| v.text()).unwrap_or_default();
        let dims: Vec<String> =
            names.trim_end_matches('\0').split('/').map(str::to_string).collect();
        if dims.len() != grid.lens().len() || dims.iter().any(String::is_empty) {
            let n = grid.lens().len();
            return Err(format!("its attribute {DIMENSIONS} does not have {n} names: {names:?}"));
        }
        let identity = attr(MAP_IDENTITY).and_then(|v| v.text());
        let identity = identity.and_then(|text| inside::identity(text.trim_end_matches('\0')));
        let identity =
            identity.ok_or_else(|| format!("its attribute {MAP_IDENTITY} is missing or wrong"))?;
        let (covered, repeats) = (number(COVERED), number(REPEATED) != Some(0));
        Ok(Head { grid, dims, ranks, blocks, stored, identity, covered, repeats })
    }
}
