//! What a read takes: boxes that it touches, rows that are copied, blocks of which checksums are compared, bytes.
//!
//! The model is a sum, each of whose factors is measured in seconds on the machine in question: a time for each piece
//! of a read and stored box (a question to the index, a place in a file), for each row that is copied by itself, for each byte that
//! is read and checked (whole checksum blocks), and for each byte that is copied.

/// Seconds that parts of a read take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// For each stored box (block, brick) that the read has something of.
    pub per_box: f64,
    /// For each row: bytes that lie together in the box and in the caller's memory.
    pub per_row: f64,
    /// For each byte of the checksum blocks that are touched: reading and checking.
    pub per_touched_byte: f64,
    /// For each byte that goes into the caller's memory.
    pub per_copied_byte: f64,
    /// Bytes that have one checksum.
    pub checksum_block: u64,
}

impl Default for Costs {
    /// The page cache of a current server: 1 µs a box, 12 ns a row, 5 GB/s read and checked, 10 GB/s copied, one checksum for 16 KiB.
    fn default() -> Costs {
        Costs {
            per_box: 1e-6,
            per_row: 12e-9,
            per_touched_byte: 0.2e-9,
            per_copied_byte: 0.1e-9,
            checksum_block: 16 << 10,
        }
    }
}

impl Costs {
    /// The sum.
    pub fn seconds(&self, boxes: f64, rows: f64, touched_bytes: f64, copied_bytes: f64) -> f64 {
        boxes * self.per_box
            + rows * self.per_row
            + touched_bytes * self.per_touched_byte
            + copied_bytes * self.per_copied_byte
    }
}

/// How much of a dimension a read takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Span {
    /// All of it.
    All,
    /// So many elements, or all if there are not as many.
    Elements(u64),
    /// This share of it, from 0 to 1; at least one element.
    Share(f64),
}

impl Span {
    /// Of a dimension of this length.
    pub fn of(self, length: u64) -> u64 {
        match self {
            Span::All => length,
            Span::Elements(elements) => elements.clamp(1, length.max(1)),
            Span::Share(share) => ((length as f64 * share.clamp(0.0, 1.0)).round() as u64).max(1),
        }
    }
}

/// How values of an array lie.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// In one piece, in rows: a variable of a classic file.
    Canonical,
    /// On a grid of blocks or chunks of these lengths, each stored by itself.
    Blocks(Vec<u64>),
    /// Boxes as they were written or merged, each with the lengths of its bricks if it has any.
    Boxes {
        /// Where they are.
        boxes: crate::boxes::Boxes,
        /// Lengths of bricks; a box without is in rows.
        bricks: Option<Vec<u64>>,
    },
}

/// What a read has to do.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Stored boxes (blocks, bricks) that it has something of.
    pub boxes: f64,
    /// Rows that are copied.
    pub rows: f64,
    /// Checksum blocks that are read.
    pub checksum_blocks: f64,
    /// Bytes of them.
    pub touched_bytes: f64,
    /// Bytes that were asked for and are there.
    pub copied_bytes: f64,
}

impl Work {
    /// What this work takes.
    pub fn seconds(&self, costs: &Costs) -> f64 {
        costs.seconds(self.boxes, self.rows, self.touched_bytes, self.copied_bytes)
    }

    fn add(&mut self, other: Work, times: f64) {
        self.boxes += times * other.boxes;
        self.rows += times * other.rows;
        self.checksum_blocks += times * other.checksum_blocks;
        self.touched_bytes += times * other.touched_bytes;
        self.copied_bytes += times * other.copied_bytes;
    }
}

/// What it takes to read a box (start and count) of an array of this shape that is stored like this, with elements of
/// so many bytes. What lies outside of the array, or where nothing is stored, takes nothing.
pub fn work(
    layout: &Layout,
    shape: &[u64],
    start: &[u64],
    count: &[u64],
    element: u64,
    costs: &Costs,
) -> Work {
    let mut work = Work::default();
    let read: Option<Vec<(u64, u64)>> = start
        .iter()
        .zip(count)
        .zip(shape)
        .map(|((start, count), length)| {
            let end = start.saturating_add(*count).min(*length);
            (*start < end).then_some((*start, end))
        })
        .collect();
    let Some(read) = read.filter(|read| read.len() == shape.len()) else { return work };
    let spans: Vec<u64> = read.iter().map(|(low, high)| high - low).collect();
    let all: Vec<(u64, u64)> = shape.iter().map(|length| (0, *length)).collect();
    match layout {
        Layout::Canonical => work.add(in_one(&all, &read, &spans, element, costs), 1.0),
        Layout::Blocks(sides) => in_grid(&all, sides, &read, &spans, (element, costs), &mut work),
        Layout::Boxes { boxes, bricks } => {
            for stored in boxes.iter() {
                let ranges: Vec<(u64, u64)> = stored.ranges().collect();
                let common = ranges.iter().zip(&read).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
                let common: Vec<(u64, u64)> = common.collect();
                if common.iter().any(|(low, high)| low >= high) {
                    continue;
                }
                match bricks {
                    None => work.add(in_one(&ranges, &common, &spans, element, costs), 1.0),
                    Some(sides) => {
                        in_grid(&ranges, sides, &common, &spans, (element, costs), &mut work)
                    }
                }
            }
        }
    }
    work
}

/// Of a box that is stored in rows, the part of it that is read; the caller's memory has these spans.
fn in_one(
    stored: &[(u64, u64)],
    read: &[(u64, u64)],
    memory: &[u64],
    element: u64,
    costs: &Costs,
) -> Work {
    let lengths: Vec<f64> = stored.iter().map(|(low, high)| (high - low) as f64).collect();
    let spans: Vec<f64> = read.iter().map(|(low, high)| (high - low) as f64).collect();
    let bytes = element as f64;
    // A row is what lies together here and there: all dimensions behind the last one that is a part of either.
    let is_part = |dim: &usize| spans[*dim] < lengths[*dim] || spans[*dim] < memory[*dim] as f64;
    let partial = (0..spans.len()).rev().find(is_part);
    let in_row = partial.unwrap_or(0);
    let rows: f64 = spans[..in_row].iter().product();
    let row_bytes: f64 = spans[in_row..].iter().product::<f64>() * bytes;
    let size: f64 = lengths.iter().product::<f64>() * bytes;
    let block = costs.checksum_block.max(1) as f64;
    // From the first element that is read to the last one.
    let mut reach = 0.0;
    let mut behind = bytes;
    for (span, length) in spans.iter().zip(&lengths).rev() {
        reach += (span - 1.0) * behind;
        behind *= length;
    }
    let within_reach = ((reach + bytes) / block + 1.0).min((size / block).ceil());
    let by_rows = rows * (row_bytes / block + 1.0);
    let blocks = within_reach.min(by_rows).max(1.0);
    Work {
        boxes: 1.0,
        rows,
        checksum_blocks: blocks,
        touched_bytes: (blocks * block).min(size).max(rows * row_bytes),
        copied_bytes: rows * row_bytes,
    }
}

/// Of a box that is stored on a grid of bricks, the part of it that is read. Bricks that are read alike are counted
/// together: in each dimension a first one, those in the middle, and a last one.
fn in_grid(
    stored: &[(u64, u64)],
    sides: &[u64],
    read: &[(u64, u64)],
    spans: &[u64],
    (element, costs): (u64, &Costs),
    work: &mut Work,
) {
    type Alike = ((u64, u64), (u64, u64), f64);
    let kinds = |dim: usize| -> Vec<Alike> {
        let (low, high) = stored[dim];
        let side = sides.get(dim).map_or(high - low, |side| *side).clamp(1, high - low);
        let brick = |number: u64| {
            (low + number * side, (low + (number + 1).saturating_mul(side)).min(high))
        };
        let (first, last) = ((read[dim].0 - low) / side, (read[dim].1 - 1 - low) / side);
        let part = |number: u64| {
            let brick = brick(number);
            (brick, (brick.0.max(read[dim].0), brick.1.min(read[dim].1)))
        };
        let mut kinds = vec![(part(first).0, part(first).1, 1.0)];
        if last > first + 1 {
            kinds.push((part(first + 1).0, part(first + 1).1, (last - first - 1) as f64));
        }
        if last > first {
            kinds.push((part(last).0, part(last).1, 1.0));
        }
        kinds
    };
    let kinds: Vec<Vec<Alike>> = (0..stored.len()).map(kinds).collect();
    let mut at = vec![0; kinds.len()];
    loop {
        let chosen: Vec<Alike> = kinds.iter().zip(&at).map(|(kinds, at)| kinds[*at]).collect();
        let bricks: Vec<(u64, u64)> = chosen.iter().map(|kind| kind.0).collect();
        let parts: Vec<(u64, u64)> = chosen.iter().map(|kind| kind.1).collect();
        let times = chosen.iter().map(|kind| kind.2).product();
        work.add(in_one(&bricks, &parts, spans, element, costs), times);
        let mut dims = at.iter_mut().zip(&kinds).rev();
        let more = dims.any(|(at, kinds)| {
            *at += 1;
            let within = *at < kinds.len();
            if !within {
                *at = 0;
            }
            within
        });
        if !more {
            return;
        }
    }
}
