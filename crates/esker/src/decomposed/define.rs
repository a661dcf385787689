//! Making a map: each rank says what it has, and the file learns it together with the header.

use std::hash::{DefaultHasher, Hash, Hasher};

use esker_comm::{CommunicatorExt, Message, ReduceOp, Reduction};
use esker_format::sealed::decomposed::{Counts, counts_of, put_counts};
use esker_format::{DimId, DimLen, ExternalType, Header, SchemaError, Values, VarId};
use esker_store::File;

use super::coverage;
use super::grid::{Block, Grid};
use super::index::{Index, SlabList};
use super::maps::DecompositionId;
use super::rows::{BlockSum, Row};
use super::subfiles::Groups;
use super::{
    ATTRIBUTE, BLOB_COUNT, BLOB_START, BLOCK_CHECKSUM, BLOCKS_OF, CHECKSUM, COVERED, DIMENSIONS,
    FIRST_BLOCK, LENGTHS, MAP_IDENTITY, OFFSETS, REPEATED, SHAPE, STORED, part,
};
use crate::define::Define;
use crate::error::{DecompositionError, Error, Result, SelectionError};
use crate::options::FillMode;
use crate::selection::Selection;

/// The dimension of all ranks, for maps of a dataset that have equally many.
const RANKS: &str = "nproc";
/// The dimension of a map's blocks, after its name.
const BLOCKS: &str = "total_nreqs";

/// Numbers put into bytes at a time.
const AT_ONCE: usize = 64 << 10;

/// A map that is not in the file yet.
#[derive(Debug)]
pub(crate) struct NewMap {
    name: String,
    identity: u64,
    /// The number of this rank's first block.
    first_block: u64,
    blocks: Vec<Block>,
    /// What every rank has, on rank 0.
    rows: Vec<Row>,
}

/// One rank's part, checked.
struct OwnPart {
    grid: Grid,
    names: Vec<String>,
    blocks: Vec<Block>,
    elements: u64,
}

impl Define {
    /// Defines a decomposition map of dimensions (slowest first, none of them unlimited): `mine` is
    /// what this rank has of them, in the order in which its data will be. Collective.
    ///
    /// Parts need not have everything, and several ranks may have an element; one rank has it once.
    /// Each hyperslab of `mine` is a block of the map; one with strides is several.
    pub fn add_decomposition(
        &mut self,
        dims: &[DimId],
        mine: &Selection,
    ) -> Result<DecompositionId> {
        if self.is_container() {
            let why = "a container has no decomposed variables: every rank appends what it has";
            return Err(Error::Container { path: self.base.path.clone(), why: why.to_string() });
        }
        let own = self.own_part(dims, mine);
        let own = self.base.agree(own)?;
        let comm = self.base.comm.clone();
        if !comm.all_equal(hash_of(&(&own.names, own.grid.lens())))? {
            return Err(self.new_map_error("a new map", DecompositionError::NotAlike));
        }
        let id = self.next_map()?;
        let name = id.name();
        let (blocks, elements) = (own.blocks.len() as u64, own.elements);
        let mut starts = [blocks, elements];
        comm.exclusive_scan(&mut starts)?;
        // The last tells whether the second could be counted.
        let mut totals = [blocks, elements, elements >> 20];
        comm.all_reduce(Reduction::U64(&mut totals), ReduceOp::Sum)?;
        let refuse = |source| Err(self.new_map_error(&format!("map {name}"), source));
        if totals[1] == 0 {
            return refuse(DecompositionError::Empty);
        }
        let max = self.schema.version.max_dim_len().min(i64::MAX as u64);
        let stored = if totals[2] > 1 << 42 { u64::MAX } else { totals[1] };
        for (what, count) in
            [("the number of stored elements", stored), ("the number of blocks", totals[0])]
        {
            if count > max {
                return refuse(DecompositionError::TooLarge { what, count, max });
            }
        }
        let largest = own.grid.total().max(stored).max(totals[0]);
        let small = largest <= i32::MAX as u64;
        let ty = if small { ExternalType::Int } else { ExternalType::Int64 };
        if !self.schema.version.has_type(ty) {
            let (what, max) = ("the number of elements", i32::MAX as u64);
            return refuse(DecompositionError::TooLarge { what, count: largest, max });
        }
        let covered = coverage::covered(self.base.mail(), &own.grid, &own.blocks)?;
        // Of the contents, so that runs that are alike make maps that are.
        let hashed = comm.gather(0, Message::from_u64s(&[hash_of(&own.blocks)]))?;
        let parts: Vec<u64> = hashed.unwrap_or_default().iter().flat_map(|m| m.to_u64s()).collect();
        let root =
            if comm.rank() == 0 { hash_of(&(&own.names, own.grid.lens(), parts)) } else { 0 };
        let identity = comm.max_u64(root)?;
        let mut sum = BlockSum::new(identity, comm.rank() as u64);
        own.blocks.iter().for_each(|block| sum.add(block));
        let own_row = [blocks, elements, u64::from(sum.end())];
        let all = comm.gather(0, Message::from_u64s(&own_row))?.unwrap_or_default();
        let rows = Row::one_after_the_other(all.iter().map(|message| message.to_u64s()));
        let sizes = Sizes { ty, stored, blocks: totals[0], covered, identity };
        self.define_map(&name, &own, &sizes)?;
        let mut position = starts[1];
        let mut blocks = own.blocks;
        for block in &mut blocks {
            position += std::mem::replace(&mut block.position, position);
        }
        if self.header().is_none() {
            let groups = match self.groups.take() {
                None => Groups::wanted(&self.base)?,
                known => known,
            };
            self.groups = groups;
            if let Some(groups) = &mut self.groups {
                groups.add_map(&self.base, &name, starts[1])?;
            }
        }
        self.maps.push(NewMap { name, identity, first_block: starts[0], blocks, rows });
        Ok(id)
    }

    /// The map of this name (`D1`, …) of a dataset that is being redefined, to define more
    /// variables with it.
    pub fn decomposition(&self, name: &str) -> Option<DecompositionId> {
        let id = DecompositionId(name.strip_prefix('D')?.parse().ok()?);
        let known = id.name() == name && self.schema.var(&part(name, BLOCKS_OF)).is_some();
        known.then_some(id)
    }

    /// Defines a variable over `outer` dimensions (perhaps none, perhaps the unlimited one first)
    /// and the dimensions of a map.
    pub fn add_decomposed_var(
        &mut self,
        name: &str,
        ty: ExternalType,
        outer: &[DimId],
        map: DecompositionId,
    ) -> Result<VarId> {
        let stored = self.schema.dim(&part(&map.name(), STORED));
        let Some(stored) = stored.filter(|_| self.decomposition(&map.name()).is_some()) else {
            let what = format!("variable \"{name}\" (map {})", map.name());
            return Err(self.new_map_error(&what, DecompositionError::NoSuchMap));
        };
        let dims: Vec<DimId> = outer.iter().copied().chain([stored]).collect();
        let var = self.add_plain_var(name, ty, &dims)?;
        self.put_attr(var, ATTRIBUTE, map.name().as_str())?;
        Ok(var)
    }

    fn new_map_error(&self, what: &str, source: DecompositionError) -> Error {
        Error::Decomposition { path: self.base.path.clone(), what: what.to_string(), source }
    }

    /// A number that no map has, and no other object the names of. Collective.
    fn next_map(&self) -> Result<DecompositionId> {
        let comm = &self.base.comm;
        let taken = |number: u64| {
            let prefix = format!("D{number}.");
            let dims = self.schema.dims.iter().any(|d| d.name.starts_with(&prefix));
            dims || self.schema.vars.iter().any(|v| v.name.starts_with(&prefix))
        };
        let mut number = 1;
        loop {
            let free = (number..).find(|n| !taken(*n)).unwrap_or(number);
            number = comm.max_u64(free)?;
            if comm.all_equal(free)? {
                return Ok(DecompositionId(number));
            }
        }
    }

    /// This rank's part, with blocks whose position is how many elements they have.
    fn own_part(&self, dims: &[DimId], mine: &Selection) -> Result<OwnPart> {
        let refuse = |source| Err(self.new_map_error("a new map", source));
        if self.is_container() {
            return refuse(DecompositionError::Container);
        }
        let (mut lens, mut names) = (Vec::new(), Vec::new());
        for id in dims {
            match self.schema.dims.at(id.0) {
                Some(dim) => match dim.len {
                    DimLen::Fixed(len) => {
                        lens.push(len);
                        names.push(dim.name.to_string());
                    }
                    DimLen::Unlimited => {
                        return refuse(DecompositionError::Unlimited(dim.name.to_string()));
                    }
                },
                None => {
                    let (var, defined) = ("a new map".to_string(), self.schema.dims.len());
                    let source = SchemaError::NoSuchDim { var: var.into(), id: id.0, defined };
                    return Err(self.base.schema_error(source));
                }
            }
        }
        let Some(grid) = Grid::new(lens.clone()) else {
            return refuse(DecompositionError::NoGrid(lens));
        };
        if mine.as_blob().is_some() {
            return refuse(DecompositionError::NotBlocks);
        }
        let name = |d: usize| names.get(d).cloned().unwrap_or_default();
        let blocks = blocks_of(&grid, mine, name).map_err(|source| Error::Selection {
            path: self.base.path.clone(),
            var: "a new map".to_string(),
            source,
        })?;
        let elements = blocks.iter().map(|b| b.position).sum();
        if let Some(number) = repeated(&grid, &blocks) {
            let (rank, index) = (self.base.comm.rank() as u64, grid.coordinates(number));
            return refuse(DecompositionError::Twice { rank, index });
        }
        Ok(OwnPart { grid, names, blocks, elements })
    }

    /// Defines the dimensions, variables and attributes of a map.
    fn define_map(&mut self, name: &str, own: &OwnPart, sizes: &Sizes) -> Result<()> {
        let ranks = DimLen::Fixed(self.base.comm.size() as u64);
        let known = self.schema.dim(RANKS).map(|id| (id, self.schema.dims.as_slice()[id.0].len));
        let ranks = match known {
            None => self.add_dim(RANKS, ranks)?,
            Some((id, len)) if len == ranks => id,
            Some(_) => self.add_dim(&part(name, RANKS), ranks)?,
        };
        let ty = sizes.ty;
        self.add_dim(&part(name, STORED), DimLen::Fixed(sizes.stored))?;
        let blocks = self.add_dim(&part(name, BLOCKS), DimLen::Fixed(sizes.blocks))?;
        let sum = ExternalType::Int;
        for (what, ty, dim, description) in [
            (BLOCKS_OF, ty, ranks, "number of blocks of each process"),
            (FIRST_BLOCK, ty, ranks, "number of the first block of each process"),
            (BLOB_START, ty, ranks, "place of each process's first element along nelems"),
            (BLOB_COUNT, ty, ranks, "number of elements of each process"),
            (CHECKSUM, sum, ranks, "crc32c of each process's numbers"),
            (BLOCK_CHECKSUM, sum, ranks, "crc32c of each process's blocks"),
            (
                OFFSETS,
                ty,
                blocks,
                "first element of each block, numbered in C order in decomposed_shape",
            ),
            (
                LENGTHS,
                ty,
                blocks,
                "last element of each block minus its first plus 1: the two are its corners, and \
                 its elements are stored in C order",
            ),
        ] {
            let var = self.add_plain_var(&part(name, what), ty, &[dim])?;
            self.set_fill(var, FillMode::NoFill)?;
            self.put_attr(var, "description", description)?;
        }
        if let Some(about) = self.schema.var(&part(name, BLOCKS_OF)) {
            let number = |n: &[u64]| numbers(ty, n);
            self.put_attr(about, DIMENSIONS, own.names.join("/").as_str())?;
            self.put_attr(about, SHAPE, number(own.grid.lens()))?;
            self.put_attr(about, COVERED, number(&[sizes.covered]))?;
            self.put_attr(about, REPEATED, number(&[sizes.stored - sizes.covered]))?;
            let counts = Counts { begun: self.numrecs(), counted: 0 };
            if counts_of(&self.schema).is_none() {
                let put = put_counts(&mut self.schema, Some(about), counts);
                put.map_err(|e| self.base.schema_error(e))?;
            }
            self.put_attr(about, MAP_IDENTITY, format!("{:016x}", sizes.identity).as_str())?;
        }
        Ok(())
    }
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What all ranks have together.
struct Sizes {
    ty: ExternalType,
    stored: u64,
    blocks: u64,
    covered: u64,
    identity: u64,
}

fn numbers(ty: ExternalType, list: &[u64]) -> Values {
    match ty {
        ExternalType::Int => Values::Int(list.iter().map(|n| *n as i32).collect()),
        _ => Values::Int64(list.iter().map(|n| *n as i64).collect()),
    }
}

/// The blocks of a selection in its order, with how many elements they have as their position.
fn blocks_of(
    grid: &Grid,
    mine: &Selection,
    name: impl Fn(usize) -> String,
) -> Result<Vec<Block>, SelectionError> {
    let mut blocks = Vec::new();
    mine.each_within::<SelectionError>(grid.lens(), name, |slab, elements| {
        let dims = slab.start.len();
        // Up to the last dimension with a stride, so that the blocks keep the selection's order.
        let strided = |d: &usize| slab.stride_of(*d) > 1 && slab.count[*d] > 1;
        let inner = (0..dims).rfind(strided).map_or(0, |d| d + 1);
        let apart: Vec<usize> = (0..inner).collect();
        let times: u64 = apart.iter().map(|d| slab.count[*d]).product();
        for i in 0..times {
            let mut first = slab.start.to_vec();
            let mut last: Vec<u64> = (0..dims).map(|d| first[d] + slab.count[d] - 1).collect();
            let mut rest = i;
            for d in apart.iter().rev() {
                first[*d] += rest % slab.count[*d] * slab.stride_of(*d);
                last[*d] = first[*d];
                rest /= slab.count[*d];
            }
            let (first, last) = (grid.number(&first), grid.number(&last));
            blocks.push(Block { first, last, position: elements / times });
        }
        Ok(())
    })?;
    Ok(blocks)
}

/// An element that several of the blocks have.
fn repeated(grid: &Grid, blocks: &[Block]) -> Option<u64> {
    let mut by_first = blocks.to_vec();
    by_first.sort_unstable_by_key(|b| b.first);
    if by_first.windows(2).all(|w| w[0].last < w[1].first) {
        return None;
    }
    // Their spans overlap, as those of neighbours in two dimensions do: ask for the elements.
    let mut position = 0;
    for block in &mut by_first {
        position += std::mem::replace(&mut block.position, position);
    }
    let index = Index::new(by_first.clone());
    let mut pieces = Vec::new();
    for block in &by_first {
        pieces.clear();
        let slab = SlabList::of_blocks(grid, [(block, 0)].into_iter());
        index.ask(grid, &slab, &mut pieces);
        let elements = grid.elements(block.first, block.last)?;
        if pieces.iter().map(|p| p.len).sum::<u64>() > elements {
            let other = pieces
                .iter()
                .find(|p| !(block.position..block.position + elements).contains(&p.position))?;
            return Some(grid.number(&slab.iter().next()?.coordinates(other.element)));
        }
    }
    None
}

/// Writes what this rank has of new maps to where the header has them.
pub(crate) fn write_maps(file: &dyn File, header: &Header, maps: &[NewMap]) -> Result<()> {
    for map in maps {
        let write = |what: &str, first: u64, numbers: &mut dyn Iterator<Item = u64>| {
            let var = header.schema.var(&part(&map.name, what));
            let place =
                var.and_then(|var| Some((header.schema.variable(var)?, header.place(var)?)));
            let Some((variable, place)) = place else { return Ok(()) };
            let size = variable.ty.size();
            let mut at = place.begin + first * size;
            let mut bytes = Vec::new();
            loop {
                bytes.clear();
                for number in (&mut *numbers).take(AT_ONCE) {
                    // Big-endian, as everything in a classic file.
                    bytes.extend(&number.to_be_bytes()[8 - size as usize..]);
                }
                if bytes.is_empty() {
                    return Ok::<(), Error>(());
                }
                file.write_at(at, &bytes)?;
                at += bytes.len() as u64;
            }
        };
        write(OFFSETS, map.first_block, &mut map.blocks.iter().map(|b| b.first))?;
        write(LENGTHS, map.first_block, &mut map.blocks.iter().map(Block::length))?;
        for (number, what) in Row::NUMBERS.into_iter().enumerate() {
            write(what, 0, &mut map.rows.iter().map(|row| row.numbers()[number]))?;
        }
        write(BLOCK_CHECKSUM, 0, &mut map.rows.iter().map(|row| row.block_sum.into()))?;
        let sums = (0..).zip(&map.rows).map(|(rank, row)| row.sum(map.identity, rank).into());
        write(CHECKSUM, 0, &mut { sums })?;
    }
    Ok(())
}
