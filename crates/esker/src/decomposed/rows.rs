//! What a map says of each process, with checksums that know the map and the process.
//!
//! A zeroed or damaged number of a map gives other elements, and nothing tells. So the blocks of each
//! process have a checksum, and its other numbers, with that one, another: who writes a blob reads a row and no
//! block. Sums begin with the identity of the map (a number that is made of all of it) and the number of the process, so that
//! those of another place, map or file do not match.

use std::ops::Range;

use super::grid::Block;
use super::maps::{Head, Map};
use super::{
    BLOB_COUNT, BLOB_START, BLOCK_CHECKSUM, BLOCKS_OF, CHECKSUM, FIRST_BLOCK, LENGTHS, OFFSETS,
    part,
};
use crate::canonical;
use crate::error::Result;
use crate::ground::Ground;
use crate::selection::Selection;

/// The numbers of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// How many blocks it has, and the number of its first.
    pub(super) blocks: u64,
    pub(super) first_block: u64,
    /// How many elements it has, and the place of its first.
    pub(super) elements: u64,
    pub(super) start: u64,
    pub(super) block_sum: u32,
}

impl Row {
    /// The variables that have its numbers, in the order of [`Row::numbers`].
    pub(super) const NUMBERS: [&str; 4] = [BLOCKS_OF, FIRST_BLOCK, BLOB_START, BLOB_COUNT];

    pub(super) fn numbers(&self) -> [u64; 4] {
        [self.blocks, self.first_block, self.start, self.elements]
    }

    /// The rows of processes that have so many blocks, so many elements and this sum of their blocks each.
    pub(super) fn one_after_the_other(each: impl Iterator<Item = Vec<u64>>) -> Vec<Row> {
        let (mut first_block, mut start) = (0, 0);
        let row = |numbers: Vec<u64>| {
            let [blocks, elements, sum] = numbers[..] else { return None };
            let row = Row { blocks, first_block, elements, start, block_sum: sum as u32 };
            (first_block, start) = (first_block + blocks, start + elements);
            Some(row)
        };
        each.filter_map(row).collect()
    }

    /// Its checksum, as that of this process of the map with this identity.
    pub(super) fn sum(&self, identity: u64, rank: u64) -> u32 {
        let numbers = self.numbers().into_iter().chain([u64::from(self.block_sum)]);
        numbers.fold(begun(identity, rank), add)
    }
}

fn begun(identity: u64, rank: u64) -> u32 {
    add(add(0, identity), rank)
}

fn add(sum: u32, number: u64) -> u32 {
    crc32c::crc32c_append(sum, &number.to_be_bytes())
}

/// The checksum of the blocks of a process, which is made of one after the other.
#[derive(Debug)]
pub(super) struct BlockSum(u32);

impl BlockSum {
    pub(super) fn new(identity: u64, rank: u64) -> BlockSum {
        BlockSum(begun(identity, rank))
    }

    pub(super) fn add(&mut self, block: &Block) {
        self.0 = add(add(self.0, block.first), block.length());
    }

    pub(super) fn end(&self) -> u32 {
        self.0
    }
}

/// Rows that are read at a time, and blocks.
const ROWS: u64 = 4 << 10;
const SECTION: u64 = 64 << 10;

/// A way through the blocks of processes, in their order, in bounded memory.
pub(super) struct Walk<'d> {
    ground: &'d Ground,
    map: &'d Map,
    head: &'d Head,
    /// The process that is next to be begun, the one behind the last, and rows from there on.
    rank: u64,
    end: u64,
    rows: std::vec::IntoIter<Row>,
    /// The one whose blocks are being read: its number, how many are left, and what they sum up to.
    now: Option<(u64, Row, BlockSum)>,
    left: u64,
    /// The next block, and where its elements are.
    block: u64,
    pub(super) position: u64,
}

impl<'d> Walk<'d> {
    /// Through all processes.
    pub(super) fn new(ground: &'d Ground, map: &'d Map, head: &'d Head) -> Walk<'d> {
        let (rank, block, position) = (0, 0, 0);
        let rows = Vec::new().into_iter();
        let end = head.ranks;
        Walk { ground, map, head, rank, end, rows, now: None, left: 0, block, position }
    }

    /// Through the blocks of one process, whose row is known.
    pub(super) fn of(
        ground: &'d Ground,
        map: &'d Map,
        head: &'d Head,
        (rank, row): (u64, Row),
    ) -> Walk<'d> {
        let rows = vec![row].into_iter();
        let (end, block, position) = (rank + 1, row.first_block, row.start);
        Walk { ground, map, head, rank, end, rows, now: None, left: 0, block, position }
    }

    /// The next blocks, at most so many; none when all processes are through that this leads through.
    pub(super) fn next(&mut self, most: u64) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        while (blocks.len() as u64) < most {
            if self.left == 0 && !self.next_process()? {
                break;
            }
            let count = self.left.min(most - blocks.len() as u64).min(SECTION);
            let read = self.read(count)?;
            self.left -= count;
            blocks.extend(read);
            if self.left == 0 {
                self.end_process()?;
            }
        }
        Ok(blocks)
    }

    /// All that are left.
    pub(super) fn rest(&mut self) -> Result<Vec<Block>> {
        self.next(u64::MAX)
    }

    /// Begins with the next process that has blocks; `false` if there is none.
    fn next_process(&mut self) -> Result<bool> {
        loop {
            let row = match self.rows.next() {
                Some(row) => row,
                None if self.rank >= self.end => return Ok(false),
                None => {
                    let to = (self.rank + ROWS).min(self.end);
                    let rows = self.map.rows(self.ground, self.head, self.rank..to)?;
                    self.rows = rows.into_iter();
                    continue;
                }
            };
            let rank = self.rank;
            self.rank += 1;
            if (row.first_block, row.start) != (self.block, self.position)
                || row.blocks > self.head.blocks.saturating_sub(self.block)
            {
                let why = format!(
                    "process {rank} has {} blocks from {} and elements from {}, where block {} and element {} follow",
                    row.blocks, row.first_block, row.start, self.block, self.position
                );
                return Err(self.map.damaged(self.ground, why));
            }
            self.left = row.blocks;
            self.now = Some((rank, row, BlockSum::new(self.head.identity, rank)));
            match row.blocks {
                0 => self.end_process()?,
                _ => return Ok(true),
            }
        }
    }

    /// Reads the next blocks of the process.
    fn read(&mut self, count: u64) -> Result<Vec<Block>> {
        let (ground, map, head) = (self.ground, self.map, self.head);
        let at = self.block..self.block + count;
        let offsets = map.numbers(ground, OFFSETS, at.clone())?;
        let lengths = map.numbers(ground, LENGTHS, at)?;
        let mut blocks = Vec::with_capacity(offsets.len());
        for (first, len) in offsets.into_iter().zip(lengths) {
            let last = len.checked_sub(1).and_then(|n| first.checked_add(n));
            let elements = last.and_then(|last| head.grid.elements(first, last));
            let (Some(last), Some(elements)) = (last, elements) else {
                let (block, shape) = (self.block, head.grid.lens());
                let why =
                    format!("block {block} (offset {first}, length {len}) is none of {shape:?}");
                return Err(map.damaged(ground, why));
            };
            let block = Block { first, last, position: self.position };
            if let Some((_, _, sum)) = &mut self.now {
                sum.add(&block);
            }
            blocks.push(block);
            self.block += 1;
            self.position += elements;
            if self.position > head.stored {
                return Err(map.wrong_total(ground, head));
            }
        }
        Ok(blocks)
    }

    /// Compares the sum of a process whose blocks were read.
    fn end_process(&mut self) -> Result<()> {
        let Some((rank, row, sum)) = self.now.take() else { return Ok(()) };
        if sum.end() != row.block_sum {
            let (blocks, first) = (row.blocks, row.first_block);
            let why = format!(
                "the {blocks} blocks of process {rank}, from block {first} on, do not match their checksum"
            );
            return Err(self.map.damaged(self.ground, why));
        }
        match row.start.checked_add(row.elements) == Some(self.position) {
            true => Ok(()),
            false => Err(self.map.wrong_total(self.ground, self.head)),
        }
    }
}

impl Map {
    /// The rows of processes, each of which matches its checksum.
    pub(super) fn rows(&self, ground: &Ground, head: &Head, ranks: Range<u64>) -> Result<Vec<Row>> {
        let mut columns = Vec::with_capacity(Row::NUMBERS.len());
        for what in Row::NUMBERS {
            columns.push(self.numbers(ground, what, ranks.clone())?);
        }
        let block_sums = self.sums(ground, BLOCK_CHECKSUM, ranks.clone())?;
        let sums = self.sums(ground, CHECKSUM, ranks.clone())?;
        let mut rows = Vec::with_capacity(sums.len());
        for (i, (rank, sum)) in ranks.zip(sums).enumerate() {
            let number = |column: usize| columns[column].get(i).copied().unwrap_or(0);
            let row = Row {
                blocks: number(0),
                first_block: number(1),
                start: number(2),
                elements: number(3),
                block_sum: block_sums.get(i).copied().unwrap_or(0),
            };
            if row.sum(head.identity, rank) != sum {
                let why = format!("the numbers of process {rank} do not match their checksum");
                return Err(self.damaged(ground, why));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn sums(&self, ground: &Ground, what: &str, at: Range<u64>) -> Result<Vec<u32>> {
        let var = ground.var(&part(&self.name, what))?;
        let selection = Selection::slab(&[at.start], &[at.end - at.start]);
        let sums: Vec<i32> = canonical::get(ground, var, &selection)?;
        Ok(sums.into_iter().map(|sum| sum as u32).collect())
    }
}
