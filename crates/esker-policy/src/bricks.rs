//! A cuboid's payload in bricks.
//!
//! A cuboid that is stored in rows is slow where a plane cuts its rows into single elements: every element is in another
//! block of the payload. So it is stored in *bricks*: boxes of some 16 to 256 KiB on a grid that begins at the
//! cuboid's corner, one behind the other, each dense and in rows. Bricks at the upper edges have the extents that are left: the
//! payload has exactly the cuboid's elements, and no padding. [`Bricks`] knows where each element lies;
//! [`choose`] finds the shape that the model of [`reading`](crate::reading) likes best for a mix of reads.

use std::fmt;

use crate::reading::{Costs, Span};

/// Bricks have at least so many bytes, where a cuboid has.
pub const LEAST_BYTES: u64 = 16 << 10;

/// Bricks have at most so many bytes, if an element has no more.
pub const MOST_BYTES: u64 = 256 << 10;

/// Why these are no bricks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrickError {
    /// Not as many lengths of a brick as the cuboid has dimensions.
    Dimensions {
        /// Of the cuboid.
        cuboid: usize,
        /// Of the brick.
        brick: usize,
    },
    /// No elements along a dimension.
    Empty {
        /// Which dimension.
        dimension: usize,
    },
    /// More elements than 64 bits can number.
    Elements,
}

impl fmt::Display for BrickError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrickError::Dimensions { cuboid, brick } => {
                write!(f, "a brick of {brick} dimensions does not fit a cuboid of {cuboid}")
            }
            BrickError::Empty { dimension } => {
                write!(f, "the cuboid or its bricks have no elements along dimension {dimension}")
            }
            BrickError::Elements => {
                f.write_str("the cuboid has more elements than 64 bits can number")
            }
        }
    }
}

impl std::error::Error for BrickError {}

/// How the payload of a cuboid lies in bricks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bricks {
    cuboid: Vec<u64>,
    brick: Vec<u64>,
    /// Elements of one index of each dimension: the product of the cuboid's lengths behind it.
    behind: Vec<u64>,
}

/// Where an element lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of its brick, in rows of the grid of bricks.
    pub brick: u64,
    /// Elements of the payload before the brick.
    pub begin: u64,
    /// Elements of the brick before this one.
    pub within: u64,
}

impl Place {
    /// Elements of the payload before this one.
    pub fn offset(self) -> u64 {
        self.begin + self.within
    }
}

impl Bricks {
    /// A cuboid of these lengths in bricks of those; a brick that is longer than the cuboid is as long.
    pub fn new(cuboid: &[u64], brick: &[u64]) -> Result<Bricks, BrickError> {
        if cuboid.len() != brick.len() {
            return Err(BrickError::Dimensions { cuboid: cuboid.len(), brick: brick.len() });
        }
        let mut behind = vec![1; cuboid.len()];
        let mut elements = 1u64;
        for dimension in (0..cuboid.len()).rev() {
            if cuboid[dimension] == 0 || brick[dimension] == 0 {
                return Err(BrickError::Empty { dimension });
            }
            behind[dimension] = elements;
            elements = elements.checked_mul(cuboid[dimension]).ok_or(BrickError::Elements)?;
        }
        let brick = brick.iter().zip(cuboid).map(|(brick, cuboid)| *brick.min(cuboid)).collect();
        Ok(Bricks { cuboid: cuboid.to_vec(), brick, behind })
    }

    /// The cuboid's lengths.
    pub fn cuboid(&self) -> &[u64] {
        &self.cuboid
    }

    /// The lengths of a brick that is not at an upper edge.
    pub fn brick(&self) -> &[u64] {
        &self.brick
    }

    /// How many bricks there are along each dimension.
    pub fn grid(&self) -> Vec<u64> {
        self.cuboid.iter().zip(&self.brick).map(|(cuboid, brick)| cuboid.div_ceil(*brick)).collect()
    }

    /// How many bricks there are.
    pub fn len(&self) -> u64 {
        // Bricks have elements, of which there are as many as 64 bits can number.
        self.grid().iter().product()
    }

    /// Whether there are none: never, as a cuboid has elements.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// How many elements the payload has.
    pub fn elements(&self) -> u64 {
        self.cuboid.iter().product()
    }

    /// Where the element with this index lies (counted from the cuboid's corner); `None` outside of the cuboid.
    pub fn place(&self, index: &[u64]) -> Option<Place> {
        let inside = index.len() == self.cuboid.len()
            && index.iter().zip(&self.cuboid).all(|(index, length)| index < length);
        if !inside {
            return None;
        }
        // `thick`: elements of the bricks' row that was found so far, of each index of the dimensions to come.
        let (mut brick, mut begin, mut within, mut thick) = (0, 0, 0, 1);
        let sides = self.brick.iter().zip(&self.cuboid).zip(&self.behind);
        for (index, ((side, length), behind)) in index.iter().zip(sides) {
            let (number, inner) = (index / side, index % side);
            let low = number * side;
            let extent = *side.min(&(length - low));
            brick = brick * length.div_ceil(*side) + number;
            begin += thick * low * behind;
            thick *= extent;
            within = within * extent + inner;
        }
        Some(Place { brick, begin, within })
    }

    /// The index of the element before which the payload has so many; `None` behind the end.
    pub fn index(&self, offset: u64) -> Option<Vec<u64>> {
        if offset >= self.elements() {
            return None;
        }
        let mut left = offset;
        let mut thick = 1;
        let (mut lows, mut extents) = (Vec::new(), Vec::new());
        for dimension in 0..self.cuboid.len() {
            let row = thick * self.brick[dimension] * self.behind[dimension];
            let low = left / row * self.brick[dimension];
            left %= row;
            let extent = self.brick[dimension].min(self.cuboid[dimension] - low);
            thick *= extent;
            lows.push(low);
            extents.push(extent);
        }
        for (low, extent) in lows.iter_mut().zip(extents).rev() {
            *low += left % extent;
            left /= extent;
        }
        Some(lows)
    }

    /// Start (from the cuboid's corner) and extents of a brick; `None` if there are not as many.
    pub fn extent(&self, brick: u64) -> Option<(Vec<u64>, Vec<u64>)> {
        let (mut start, mut left) = (self.grid(), brick);
        for (dimension, grid) in start.iter_mut().enumerate().rev() {
            let number = left % *grid;
            left /= *grid;
            *grid = number * self.brick[dimension];
        }
        let extents = start.iter().zip(&self.brick).zip(&self.cuboid);
        let extents =
            extents.map(|((start, brick), cuboid)| *brick.min(&(cuboid - start))).collect();
        (left == 0).then_some((start, extents))
    }

    /// The bricks that a box has elements of (start and count from the cuboid's corner), in order. What lies
    /// outside of the cuboid has none.
    pub fn touched(&self, start: &[u64], count: &[u64]) -> impl Iterator<Item = u64> {
        let grid = self.grid();
        let fits = start.len() == grid.len() && count.len() == grid.len();
        let ranges = start.iter().zip(count).zip(self.brick.iter().zip(&self.cuboid));
        let ranges = ranges.map(|((start, count), (brick, cuboid))| {
            let end = start.saturating_add(*count).min(*cuboid);
            if *start < end { (start / brick, end.div_ceil(*brick)) } else { (0, 0) }
        });
        let ranges: Vec<(u64, u64)> = ranges.collect();
        let some = fits && ranges.iter().all(|(low, high)| low < high);
        let mut next = some.then(|| ranges.iter().map(|(low, _)| *low).collect::<Vec<u64>>());
        std::iter::from_fn(move || {
            let at = next.as_mut()?;
            let number = at.iter().zip(&grid).fold(0, |number, (at, grid)| number * grid + at);
            let mut dims = at.iter_mut().zip(&ranges).rev();
            let more = dims.any(|(at, (low, high))| {
                *at += 1;
                let within = *at < *high;
                if !within {
                    *at = *low;
                }
                within
            });
            if !more {
                next = None;
            }
            Some(number)
        })
    }
}

/// A kind of read of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// How much of the cuboid it takes along each dimension.
    pub spans: Vec<Span>,
    /// How often it comes, in any unit.
    pub weight: f64,
}

/// The reads that a cuboid is laid out for.
#[derive(Debug, Clone, PartialEq)]
pub enum Mix {
    /// Nothing is known: the patterns of the paper's Figure 6, none of which should be much slower than it could be.
    Common,
    /// These: all of them together should take as little time as possible.
    Known(Vec<Wanted>),
}

impl Mix {
    /// The reads of a cuboid of so many dimensions. The common ones are the whole, a plane across each dimension, a
    /// sub-volume of half its lengths, and part of a plane.
    pub fn reads(&self, dims: usize) -> Vec<Wanted> {
        if let Mix::Known(reads) = self {
            return reads.clone();
        }
        let with = |spans: Vec<Span>| Wanted { spans, weight: 1.0 };
        let plane = |across: usize, other: Span| {
            with(
                (0..dims)
                    .map(|dim| if dim == across { Span::Elements(1) } else { other })
                    .collect(),
            )
        };
        let mut reads = vec![with(vec![Span::All; dims]), with(vec![Span::Share(0.5); dims])];
        reads.extend((0..dims).map(|across| plane(across, Span::All)));
        reads.extend((0..dims.min(1)).map(|across| plane(across, Span::Share(0.5))));
        reads
    }
}

/// The shape of bricks in which a cuboid is read fastest by the model: lengths are powers of two, or the cuboid's. A
/// cuboid of at most [`LEAST_BYTES`] is one brick.
pub fn choose(
    cuboid: &[u64],
    element: u64,
    mix: &Mix,
    costs: &Costs,
) -> Result<Vec<u64>, BrickError> {
    let whole = Bricks::new(cuboid, cuboid)?;
    let element = element.max(1);
    if whole.elements().saturating_mul(element) <= LEAST_BYTES {
        return Ok(cuboid.to_vec());
    }
    let reads = mix.reads(cuboid.len());
    let most = (MOST_BYTES / element).max(1);
    let mut shapes: Vec<(Vec<u64>, Vec<f64>)> = Vec::new();
    // Of many dimensions only the fastest are cut in different ways, which may leave smaller bricks.
    for least in [(LEAST_BYTES / element).clamp(1, most), 1] {
        let mut all = Shapes { cuboid, least, most, shape: vec![1; cuboid.len()] };
        all.each(cuboid.len(), 1, &mut |shape| {
            let seconds = reads
                .iter()
                .map(|read| expected_seconds(cuboid, shape, element, &read.spans, costs));
            shapes.push((shape.to_vec(), seconds.collect()));
        });
        if !shapes.is_empty() {
            break;
        }
    }
    let least_of = |read: usize| match mix {
        Mix::Known(_) => 1.0,
        Mix::Common => {
            shapes.iter().map(|(_, seconds)| seconds[read]).fold(f64::INFINITY, f64::min)
        }
    };
    let least: Vec<f64> = (0..reads.len()).map(least_of).collect();
    let score = |seconds: &[f64]| -> f64 {
        let each = seconds.iter().zip(&reads).zip(&least);
        each.map(|((seconds, read), least)| read.weight * seconds / least.max(f64::MIN_POSITIVE))
            .sum()
    };
    let best = shapes.iter().min_by(|a, b| score(&a.1).total_cmp(&score(&b.1)));
    Ok(best.map_or_else(|| cuboid.to_vec(), |(shape, _)| shape.clone()))
}

/// What a read that takes so much of each dimension is expected to take in bricks of this shape, wherever in the
/// cuboid it lies.
pub fn expected_seconds(
    cuboid: &[u64],
    brick: &[u64],
    element: u64,
    spans: &[Span],
    costs: &Costs,
) -> f64 {
    let bytes = element as f64;
    let (mut bricks, mut rows, mut copied) = (1.0, 1.0, bytes);
    // Within a brick: from the first element to the last one, and what has one index of the dimension at hand.
    let (mut reach, mut behind, mut row) = (bytes, bytes, bytes);
    // A row goes on through all dimensions behind the first that is not taken whole.
    let mut joined = true;
    for dim in (0..cuboid.len()).rev() {
        let (length, side) = (cuboid[dim] as f64, brick[dim] as f64);
        let span = spans.get(dim).map_or(length, |span| span.of(cuboid[dim]) as f64);
        // Of all places that a span may have, the mean number of sides that it touches.
        let touched = ((span - 1.0) / side + 1.0).min((length / side).ceil());
        let in_brick = span / touched;
        bricks *= touched;
        copied *= span;
        rows *= if joined { touched } else { span };
        if joined {
            row *= in_brick;
        }
        joined = joined && brick[dim] == cuboid[dim] && span == length;
        reach += (in_brick - 1.0).max(0.0) * behind;
        behind *= side;
    }
    let block = costs.checksum_block.max(1) as f64;
    let by_rows = rows / bricks * (row / block + 1.0);
    let blocks = (reach / block + 1.0).min(by_rows).min((behind / block).ceil()).max(1.0);
    let whole: f64 = cuboid.iter().map(|length| *length as f64).product::<f64>() * bytes;
    let touched = (bricks * (blocks * block).min(behind)).min(whole).max(copied);
    costs.seconds(bricks, rows, touched, copied)
}

/// All shapes of bricks between the least and the most elements.
struct Shapes<'a> {
    cuboid: &'a [u64],
    least: u64,
    most: u64,
    shape: Vec<u64>,
}

impl Shapes<'_> {
    /// Chooses lengths of the dimensions below this one; those from it on have so many elements together. The fastest
    /// is chosen first, and where there are many dimensions the slowest are 1.
    fn each(&mut self, dims: usize, elements: u64, then: &mut impl FnMut(&[u64])) {
        let Some(dim) = dims.checked_sub(1) else {
            if elements >= self.least {
                then(&self.shape);
            }
            return;
        };
        // What the dimensions below can bring at most.
        let slower =
            self.cuboid[..dim].iter().fold(1u64, |all, length| all.saturating_mul(*length));
        let length = self.cuboid[dim];
        let varied = self.cuboid.len() - dim <= VARIED;
        let powers =
            (0..u64::BITS).map(|power| 1u64 << power).take_while(|side| *side < length && varied);
        for side in powers.chain([length]) {
            let side = if varied { side } else { 1 };
            let all = elements.saturating_mul(side);
            if all > self.most {
                break;
            }
            if all.saturating_mul(slower) >= self.least {
                self.shape[dim] = side;
                self.each(dim, all, then);
            }
        }
    }
}

/// So many of the fastest dimensions have bricks of more than one element.
const VARIED: usize = 5;
