//! Which chunk an element is in.

use crate::schema::{DimLen, Schema, Variable};

/// Bytes of a chunk that [`automatic_shape`] aims at, at most.
const TARGET: u64 = 4 << 20;

/// How a variable is cut into chunks.
///
/// Chunks are numbered in C order; those of a variable with records *group* by group, a group
/// being one chunk length of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Bytes of an element.
    pub size: u64,
    /// Lengths of the dimensions; of the unlimited one 0.
    pub dims: Vec<u64>,
    /// Lengths of a chunk.
    pub chunk: Vec<u64>,
    /// Chunks in each dimension; of the unlimited one 1.
    pub counts: Vec<u64>,
    /// Whether the first dimension is the unlimited one.
    pub has_records: bool,
    /// Bytes of a chunk in memory.
    pub bytes: u64,
    /// Chunks of a group.
    pub per_group: u64,
}

impl Grid {
    /// The grid of a variable whose dimensions are known, with chunks of this shape; what is wrong
    /// with it, if something is.
    pub fn new(schema: &Schema, variable: &Variable, chunk: &[u64]) -> Result<Grid, String> {
        if variable.dims.is_empty() {
            return Err("a scalar cannot be cut into chunks".to_string());
        }
        if chunk.len() != variable.dims.len() {
            return Err(format!(
                "its chunks have {} lengths, but it has {} dimensions",
                chunk.len(),
                variable.dims.len()
            ));
        }
        let mut dims = Vec::with_capacity(chunk.len());
        let mut counts = Vec::with_capacity(chunk.len());
        let mut bytes = variable.ty.size();
        let mut per_group: u64 = 1;
        for (d, (dim, len)) in variable.dims.iter().zip(chunk).enumerate() {
            let Some(dimension) = schema.dims.at(dim.0) else {
                return Err(format!("it names dimension {}, which does not exist", dim.0));
            };
            let (name, whole) = (&dimension.name, dimension.len);
            if *len == 0 {
                return Err(format!("a chunk has no length in dimension {name:?}"));
            }
            let (length, count) = match whole {
                DimLen::Fixed(length) => (length, length.div_ceil(*len)),
                DimLen::Unlimited if d == 0 => (0, 1),
                DimLen::Unlimited => {
                    return Err(format!("its unlimited dimension {name:?} is not the first"));
                }
            };
            dims.push(length);
            counts.push(count);
            bytes = bytes.checked_mul(*len).filter(|n| *n <= super::LARGEST).ok_or_else(|| {
                let most = super::LARGEST >> 20;
                format!("its chunks of {chunk:?} elements have more than {most} MiB")
            })?;
            per_group = per_group
                .checked_mul(count)
                .filter(|n| *n <= 1 << 40)
                .ok_or_else(|| format!("it has too many chunks of {chunk:?} elements"))?;
        }
        let has_records = schema.is_record(variable);
        let (chunk, size) = (chunk.to_vec(), variable.ty.size());
        Ok(Grid { size, dims, chunk, counts, has_records, bytes, per_group })
    }

    /// The records of a group; 0 for a variable without.
    pub fn group_records(&self) -> u64 {
        if self.has_records { self.chunk[0] } else { 0 }
    }

    /// How many groups so many records take: one for a variable without.
    pub fn groups(&self, records: u64) -> u64 {
        if self.has_records { records.div_ceil(self.chunk[0]) } else { 1 }
    }

    /// How many chunks there are with so many records.
    pub fn chunks(&self, records: u64) -> u64 {
        self.groups(records).saturating_mul(self.per_group)
    }

    /// The index of a chunk in each dimension.
    pub fn index(&self, number: u64) -> Vec<u64> {
        let mut index = vec![0; self.counts.len()];
        let mut rest = number % self.per_group.max(1);
        for (i, count) in index.iter_mut().zip(&self.counts).rev() {
            *i = rest % count;
            rest /= count;
        }
        if self.has_records {
            index[0] = number / self.per_group.max(1);
        }
        index
    }

    /// The number of the chunk with this index.
    pub fn number(&self, index: &[u64]) -> u64 {
        index.iter().zip(&self.counts).fold(0, |n, (i, count)| n * count + i)
    }

    /// Bytes in a chunk from one index of each dimension to the next.
    pub fn steps(&self) -> Vec<u64> {
        let mut steps = vec![self.size; self.chunk.len()];
        for d in (1..self.chunk.len()).rev() {
            steps[d - 1] = steps[d] * self.chunk[d];
        }
        steps
    }

    /// The lengths of a chunk, as memory is counted.
    pub fn shape(&self) -> Vec<usize> {
        self.chunk.iter().map(|n| *n as usize).collect()
    }
}

/// A chunk shape for a variable: records of length one, and the rest cut evenly until a chunk has
/// about 4 MiB at most.
///
/// ```
/// use esker_format::{ExternalType, chunked::automatic_shape};
/// // time (unlimited), lat, lon
/// assert_eq!(automatic_shape(ExternalType::Float, &[None, Some(721), Some(1440)]), [1, 721, 1440]);
/// assert_eq!(automatic_shape(ExternalType::Double, &[Some(2000), Some(2000)]), [500, 1000]);
/// ```
pub fn automatic_shape(ty: crate::ExternalType, lengths: &[Option<u64>]) -> Vec<u64> {
    let mut shape: Vec<u64> = lengths.iter().map(|len| len.unwrap_or(1).max(1)).collect();
    // How often each dimension was halved: the one with the longest chunk is next.
    let bytes = |shape: &[u64]| {
        shape.iter().fold(u128::from(ty.size()), |n, len| n.saturating_mul(u128::from(*len)))
    };
    while bytes(&shape) > u128::from(TARGET) {
        let longest = (0..shape.len()).rev().max_by_key(|d| shape[*d]);
        match longest.filter(|d| shape[*d] > 1) {
            Some(d) => shape[d] = shape[d].div_ceil(2),
            None => break,
        }
    }
    shape
}
