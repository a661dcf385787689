//! The blocks that a variable of a container consists of.

use std::ops::Range;

use esker_format::VarId;

use super::Container;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::log::{BoxSeen, LogFound, UNCOMMITTED, number_of};

/// Values of a variable that were written together, and where they lie in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its first index in each dimension; of a record variable the first is the record.
    pub start: Vec<u64>,
    /// How many of each dimension it reaches over.
    pub count: Vec<u64>,
    /// Whether it has all elements of that box. A strided write and a list do not.
    pub dense: bool,
    /// How many elements it has.
    pub elements: u64,
    /// Bytes that it takes in the file, behind filters.
    pub bytes: u64,
    /// The rank that wrote it, if one did.
    pub rank: Option<u32>,
    /// The version of the container that brought it, if one has.
    pub version: Option<u64>,
}

impl Block {
    /// The records that it reaches over, in a record variable.
    pub fn records(&self) -> Range<u64> {
        let first = self.start.first().copied().unwrap_or(0);
        first..first + self.count.first().copied().unwrap_or(1)
    }
}

impl Dataset {
    /// The blocks of a variable, as they were written: in a container one for each write, those that lie under others first; in any other
    /// dataset one that is all of it, if it has any values. Reads no values. What other ranks have written since the last collective call is
    /// not among them. Independent.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("run.esk");
    /// let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
    /// let dims = [def.add_dim("y", DimLen::Fixed(8))?, def.add_dim("x", DimLen::Fixed(6))?];
    /// let v = def.add_var("v", ExternalType::Int, &dims)?;
    /// let mut ds = def.enddef()?;
    /// ds.put(v, &Selection::slab(&[4, 0], &[4, 3]), &[1; 12])?;
    /// ds.put(v, &Selection::slab(&[4, 3], &[4, 3]), &[2; 12])?;
    /// let blocks = ds.blocks(v)?;
    /// assert_eq!(blocks.iter().map(|b| &b.start[..]).collect::<Vec<_>>(), [[4, 0], [4, 3]]);
    /// assert!(blocks.iter().all(|block| block.count == [4, 3] && block.dense));
    /// ds.close()?;
    /// # Ok(()) }
    /// ```
    pub fn blocks(&self, var: VarId) -> Result<Vec<Block>> {
        let var = self.file_var(var)?;
        let ground = &self.ground;
        let schema = &ground.header.schema;
        let variable = schema.variable(var).ok_or(Error::Garbled)?;
        let shape = schema.shape(variable, ground.records);
        let Some(container) = self.layout.get::<Container>() else {
            let elements: u64 = shape.iter().product();
            let bytes = elements * variable.ty.size();
            let (start, rank, version) = (vec![0; shape.len()], None, None);
            let all = Block { start, count: shape, dense: true, elements, bytes, rank, version };
            return Ok(if elements == 0 { Vec::new() } else { vec![all] });
        };
        let number = var.0 as u64;
        let wanted = || vec![(number, 0..u64::MAX)];
        container.see(&ground.base, ground.records, Some(&wanted))?;
        let state = container.view.state();
        let is_record = schema.is_record(variable);
        let width = variable.ty.size();
        let mut all = Vec::new();
        state.index.each_of(number, |found, seen| {
            // An entry of another width belongs to something that had this number once.
            if u64::from(found.width) == width {
                all.push((found.order, block(found, &seen, &shape, is_record)));
            }
        })?;
        all.sort_by_key(|(order, _)| *order);
        Ok(all.into_iter().map(|(_, block)| block).collect())
    }
}

/// An entry in the dimensions of its variable.
fn block(found: &LogFound, seen: &BoxSeen, shape: &[u64], is_record: bool) -> Block {
    let (mut start, mut count, dense) = seen.in_shape(&shape[usize::from(is_record)..]);
    if is_record {
        let records = seen.records();
        start.insert(0, records.start);
        count.insert(0, records.end - records.start);
    }
    let (place, _, rank, _) = found.order;
    let elements = found.elements.saturating_mul(found.records.count);
    let version = (place != UNCOMMITTED).then(|| number_of(place)).filter(|number| *number > 0);
    Block { start, count, dense, elements, bytes: found.len, rank: Some(rank), version }
}
