//! A run: sorted items in blocks, and at its end a directory that says what each block has.

use std::cmp::Ordering;
use std::ops::Range;

use super::item::{Before, Item, Key, Place};
use super::name::RunId;
use super::rest::{Rest, put_text};
use super::{FORMAT, HistoryError, odd};
use crate::varint;

const MAGIC: &[u8; 4] = b"ESKR";
/// Magic, format, name.
const HEAD: usize = 24;
/// Length and checksum of the footer, magic.
const TAIL: usize = 16;

/// A block is closed when it has so many bytes.
pub const BLOCK: usize = 16 << 10;

/// No block has more bytes, but for one of a single item.
const MOST: usize = 64 << 10;

/// No item has more bytes: what is longer belongs into a log, with its place for a value.
pub const LONGEST: usize = 1 << 24;

/// What a block of a run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Where it begins in the run.
    pub at: u64,
    /// How many bytes it has.
    pub len: u64,
    /// Where its first item stands.
    pub first: Place,
    /// For data: the last object.
    pub last: u64,
    /// For data: the end of all records.
    pub records: u64,
    /// For data: the elements that all items span together.
    pub elements: Range<u64>,
}

impl Block {
    /// Whether it may have data of these elements of these records.
    pub fn may_have(&self, object: u64, records: &Range<u64>, elements: &Range<u64>) -> bool {
        let Place::Data(first, record, _) = self.first else { return false };
        (first..=self.last).contains(&object)
            && records.start < self.records
            // Records are sorted within an object only.
            && (first != self.last || record < records.end)
            && elements.start < self.elements.end
            && elements.end > self.elements.start
    }
}

/// Items as one body, without a checksum: what a decision carries.
pub fn encode_items(items: &[Item]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::new(), Before::default());
    items.iter().for_each(|item| before.put(&mut bytes, item));
    bytes
}

/// The items of a body, which must be in order.
pub fn decode_items(bytes: &[u8]) -> Result<Vec<Item>, HistoryError> {
    let (mut rest, mut before) = (Rest(bytes), Before::default());
    let mut items: Vec<Item> = Vec::new();
    while !rest.0.is_empty() {
        let item = before.take(&mut rest).ok_or_else(|| odd("an item does not fit its block"))?;
        if items.last().is_some_and(|last| last.order(&item) == Ordering::Greater) {
            return Err(odd("its items are not sorted"));
        }
        items.push(item);
    }
    Ok(items)
}

fn checksum(id: RunId, number: u64, body: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&id.to_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(sum, &number.to_le_bytes()), body)
}

/// The items of block `number` of a run, whose bytes these are.
pub fn decode_block(id: RunId, number: usize, bytes: &[u8]) -> Result<Vec<Item>, HistoryError> {
    let (sum, body) = bytes.split_first_chunk::<4>().ok_or(HistoryError::NotWhole)?;
    if u32::from_le_bytes(*sum) != checksum(id, number as u64, body) {
        return Err(HistoryError::NotWhole);
    }
    decode_items(body)
}

/// Makes a run of items that come in order, a block at a time: what it holds is a block and the directory.
#[derive(Debug)]
pub struct RunWriter {
    id: RunId,
    /// What nobody has taken yet.
    bytes: Vec<u8>,
    /// Bytes that were made in all.
    at: u64,
    body: Vec<u8>,
    before: Before,
    last: Option<Item>,
    /// What the block that is being made has so far.
    block: Option<Block>,
    blocks: Vec<Block>,
    items: u64,
}

impl RunWriter {
    /// A run of this name.
    pub fn new(id: RunId) -> RunWriter {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(id.to_bytes());
        RunWriter {
            id,
            at: bytes.len() as u64,
            bytes,
            body: Vec::new(),
            before: Before::default(),
            last: None,
            block: None,
            blocks: Vec::new(),
            items: 0,
        }
    }

    /// How many items it has.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Appends an item, which must not belong before the last one.
    pub fn push(&mut self, item: Item) -> Result<(), HistoryError> {
        if item.size() > LONGEST {
            return Err(odd(format!("an item has {} bytes", item.size())));
        }
        if self.last.as_ref().is_some_and(|last| last.order(&item) == Ordering::Greater) {
            return Err(odd("its items do not come in order"));
        }
        let kind = |place: &Place| matches!(place, Place::Data(..));
        let place = item.key.place();
        let full = self.body.len() >= BLOCK || self.body.len() + item.size() > MOST;
        if self.block.as_ref().is_some_and(|block| full || kind(&block.first) != kind(&place)) {
            self.close_block();
        }
        self.before.put(&mut self.body, &item);
        let elements = match &item.key {
            Key::Data(data) => data.first..data.end,
            Key::Fact { .. } => 0..0,
        };
        let empty = Block { at: 0, len: 0, first: place, last: 0, records: 0, elements };
        let block = self.block.get_or_insert(empty);
        if let Key::Data(data) = &item.key {
            block.last = data.object;
            block.records = block.records.max(data.records.end().unwrap_or(u64::MAX));
            let elements = &block.elements;
            block.elements = elements.start.min(data.first)..elements.end.max(data.end);
        }
        self.items += 1;
        self.last = Some(item);
        Ok(())
    }

    fn close_block(&mut self) {
        let Some(mut block) = self.block.take() else { return };
        (block.at, block.len) = (self.at, 4 + self.body.len() as u64);
        let sum = checksum(self.id, self.blocks.len() as u64, &self.body);
        self.bytes.extend(sum.to_le_bytes());
        self.bytes.append(&mut self.body);
        self.at += block.len;
        self.blocks.push(block);
        self.before = Before::default();
    }

    /// What has been made since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// What is left, and with it the run is whole.
    pub fn finish(mut self) -> Vec<u8> {
        self.close_block();
        let directory = Directory { id: self.id, items: self.items, blocks: self.blocks };
        let footer = directory.encode();
        let mut bytes = self.bytes;
        bytes.extend(&footer);
        bytes.extend((footer.len() as u64).to_le_bytes());
        bytes.extend(checksum(self.id, u64::MAX, &footer).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }
}

/// What a run has, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The run's name.
    pub id: RunId,
    /// How many items it has.
    pub items: u64,
    /// Its blocks, in order.
    pub blocks: Vec<Block>,
}

impl Directory {
    /// How many bytes at the end of a run say where its directory is.
    pub const TAIL: u64 = TAIL as u64;

    /// Where in a run of `len` bytes its directory is, by the run's last bytes.
    pub fn place(len: u64, tail: &[u8]) -> Result<Range<u64>, HistoryError> {
        let tail = <[u8; TAIL]>::try_from(tail).map_err(|_| HistoryError::NotWhole)?;
        let [a, b, c, d, e, f, g, h, ..] = tail;
        let footer = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let end = len.checked_sub(TAIL as u64).filter(|end| *end >= HEAD as u64);
        let end = end.filter(|_| tail.ends_with(MAGIC)).ok_or(HistoryError::NotWhole)?;
        let first = end.checked_sub(footer).filter(|first| *first >= HEAD as u64);
        Ok(first.ok_or(HistoryError::NotWhole)?..end)
    }

    /// The directory of run `id`, from the bytes of its place and those behind them.
    pub fn decode(id: RunId, place: &Range<u64>, bytes: &[u8]) -> Result<Directory, HistoryError> {
        let (footer, tail) = bytes.split_last_chunk::<TAIL>().ok_or(HistoryError::NotWhole)?;
        let sum = [tail[8], tail[9], tail[10], tail[11]];
        if u32::from_le_bytes(sum) != checksum(id, u64::MAX, footer) {
            return Err(HistoryError::NotWhole);
        }
        let directory = Directory::read(id, &mut Rest(footer));
        let directory = directory.ok_or_else(|| odd("its directory does not fit it"))?;
        let end = directory.blocks.last().map_or(HEAD as u64, |block| block.at + block.len);
        let sorted = directory.blocks.is_sorted_by(|a, b| a.first <= b.first);
        match sorted && end == place.start {
            true => Ok(directory),
            false => Err(odd("its directory does not fit its blocks")),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.items);
        varint::put(&mut bytes, self.blocks.len() as u64);
        for block in &self.blocks {
            varint::put(&mut bytes, block.len);
            match &block.first {
                Place::Fact(space, name) => {
                    bytes.extend([0, *space]);
                    put_text(&mut bytes, name);
                }
                Place::Data(object, record, first) => {
                    bytes.push(1);
                    let Range { start, end } = block.elements;
                    for number in [*object, *record, *first, block.last, block.records, start, end]
                    {
                        varint::put(&mut bytes, number);
                    }
                }
            }
        }
        bytes
    }

    fn read(id: RunId, rest: &mut Rest<'_>) -> Option<Directory> {
        let (items, count) = (rest.number()?, rest.count(4)?);
        let mut blocks = Vec::with_capacity(count);
        let mut at = HEAD as u64;
        for _ in 0..count {
            let len = rest.number()?;
            let block = match rest.byte()? {
                0 => {
                    let first = Place::Fact(rest.byte()?, rest.text()?.to_vec());
                    Block { at, len, first, last: 0, records: 0, elements: 0..0 }
                }
                1 => {
                    let first = Place::Data(rest.number()?, rest.number()?, rest.number()?);
                    let (last, records) = (rest.number()?, rest.number()?);
                    let elements = rest.number()?..rest.number()?;
                    Block { at, len, first, last, records, elements }
                }
                _ => return None,
            };
            blocks.push(block);
            at = at.checked_add(len)?;
        }
        rest.0.is_empty().then_some(Directory { id, items, blocks })
    }

    /// The blocks that may have a fact: those from the last one that begins before it.
    pub fn blocks_of_fact(&self, space: u8, name: &[u8]) -> Range<usize> {
        let place = Place::Fact(space, name.to_vec());
        let begin = self.blocks.partition_point(|block| block.first < place).saturating_sub(1);
        begin..self.blocks.partition_point(|block| block.first <= place)
    }

    /// The blocks that may have facts of a kind.
    pub fn blocks_of_space(&self, space: u8) -> Range<usize> {
        let begin =
            self.blocks.partition_point(|block| block.first < Place::Fact(space, Vec::new()));
        let is_before = |place: &Place| matches!(place, Place::Fact(other, _) if *other <= space);
        begin.saturating_sub(1)..self.blocks.partition_point(|block| is_before(&block.first))
    }

    /// The numbers of blocks that may have data of these elements of these records.
    pub fn blocks_of_data<'d>(
        &'d self,
        object: u64,
        records: &'d Range<u64>,
        elements: &'d Range<u64>,
    ) -> impl Iterator<Item = usize> + 'd {
        let begins = |block: &Block| block.first < Place::Data(object, 0, 0);
        let begin = self.blocks.partition_point(begins).saturating_sub(1);
        let ends = |block: &Block| block.first < Place::Data(object, records.end, 0);
        let end = self.blocks.partition_point(ends);
        (begin..end.max(begin)).filter(move |i| self.blocks[*i].may_have(object, records, elements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Data;
    use crate::log::Records;
    use proptest::prelude::*;

    const ONE: RunId = RunId { writer: 1, number: 1 };

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let fact = (0u8..3, prop::collection::vec(0u8..4, 0..4))
            .prop_map(|(space, name)| Key::Fact { space, name });
        let data = (0u64..4, 0u64..6, 1u64..4, 1u64..3, 0u64..100, 0u64..50);
        let data = data.prop_map(|(object, first, count, step, element, span)| {
            let step = if count == 1 { 1 } else { step };
            let records = Records { first, count, step };
            Key::Data(Data { object, records, first: element, end: element + span })
        });
        let value = prop::option::weighted(0.8, prop::collection::vec(any::<u8>(), 0..4000));
        let item = (prop_oneof![fact, data], 0u64..9, value).prop_map(|(key, number, value)| {
            let over = number - number % 2;
            let value = match key {
                Key::Data(_) => Some(value.unwrap_or_default()),
                Key::Fact { .. } => value,
            };
            Item { key, number, over, value }
        });
        prop::collection::vec(item, 0..60).prop_map(|mut items| {
            items.sort_by(Item::order);
            items
        })
    }

    fn run(id: RunId, items: &[Item]) -> Vec<u8> {
        let mut writer = RunWriter::new(id);
        let mut bytes = Vec::new();
        for item in items {
            writer.push(item.clone()).unwrap();
            bytes.extend(writer.take());
        }
        bytes.extend(writer.finish());
        bytes
    }

    fn directory(id: RunId, bytes: &[u8]) -> Result<Directory, HistoryError> {
        let tail = bytes.len().saturating_sub(TAIL);
        let place = Directory::place(bytes.len() as u64, &bytes[tail..])?;
        Directory::decode(id, &place, &bytes[place.start as usize..])
    }

    fn block(directory: &Directory, bytes: &[u8], i: usize) -> Result<Vec<Item>, HistoryError> {
        let Block { at, len, .. } = directory.blocks[i];
        decode_block(directory.id, i, &bytes[at as usize..(at + len) as usize])
    }

    proptest! {
        #[test]
        fn a_run_gives_back_its_items_and_finds_them(items in items(), which: prop::sample::Index) {
            let id = RunId { writer: 7, number: 77 };
            let bytes = run(id, &items);
            let directory = directory(id, &bytes).unwrap();
            let blocks = || 0..directory.blocks.len();
            let all: Vec<Item> =
                blocks().flat_map(|i| block(&directory, &bytes, i).unwrap()).collect();
            prop_assert_eq!(&all, &items);
            prop_assert_eq!(directory.items, items.len() as u64);
            if !items.is_empty() {
                let wanted = which.get(&items);
                let numbers: Vec<usize> = match &wanted.key {
                    Key::Fact { space, name } => {
                        let of_space = directory.blocks_of_space(*space);
                        let of_fact = directory.blocks_of_fact(*space, name);
                        prop_assert!(of_space.start <= of_fact.start && of_fact.end <= of_space.end);
                        of_fact.collect()
                    }
                    Key::Data(data) => {
                        let records = data.records.first..data.records.end().unwrap();
                        let elements = data.first..data.end.max(data.first + 1);
                        // A span of nothing is found by nobody.
                        prop_assume!(data.end > data.first);
                        directory.blocks_of_data(data.object, &records, &elements).collect()
                    }
                };
                let found = numbers.iter().flat_map(|i| block(&directory, &bytes, *i).unwrap());
                let is_it = |item: &Item| item.key.place() == wanted.key.place();
                let here = items.iter().filter(|item| is_it(item)).count();
                match wanted.key {
                    Key::Fact { .. } => prop_assert_eq!(found.filter(is_it).count(), here),
                    Key::Data(_) => prop_assert!(found.into_iter().any(|item| &item == wanted)),
                }
            }
        }

        #[test]
        fn a_damaged_run_is_an_error(items in items(), at: prop::sample::Index, bit in 0u8..8) {
            let id = RunId { writer: 7, number: 77 };
            let mut bytes = run(id, &items);
            let at = at.index(bytes.len() - HEAD) + HEAD;
            bytes[at] ^= 1 << bit;
            let all = directory(id, &bytes).and_then(|directory| {
                (0..directory.blocks.len()).map(|i| block(&directory, &bytes, i)).collect::<Result<Vec<_>, _>>()
            });
            prop_assert!(all.is_err());
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode_items(&bytes);
            let _ = directory(ONE, &bytes);
            // With the checksum that it should have.
            let place = HEAD as u64..HEAD as u64 + bytes.len() as u64;
            let mut signed = bytes.clone();
            signed.extend((bytes.len() as u64).to_le_bytes());
            signed.extend(checksum(ONE, u64::MAX, &bytes).to_le_bytes());
            signed.extend(MAGIC);
            let _ = Directory::decode(ONE, &place, &signed);
        }
    }

    #[test]
    fn a_block_knows_its_run_and_its_place() {
        let item = |name: u8| Item {
            key: Key::Fact { space: 1, name: vec![name] },
            number: 1,
            over: 1,
            value: Some(vec![name; BLOCK]),
        };
        let items: Vec<Item> = (0..3).map(item).collect();
        let bytes = run(ONE, &items);
        let directory = directory(ONE, &bytes).unwrap();
        assert_eq!(directory.blocks.len(), 3);
        let of = |i: usize| {
            let Block { at, len, .. } = directory.blocks[i];
            &bytes[at as usize..(at + len) as usize]
        };
        assert!(decode_block(ONE, 1, of(1)).is_ok());
        assert_eq!(decode_block(ONE, 2, of(1)), Err(HistoryError::NotWhole));
        assert_eq!(
            decode_block(RunId { writer: 1, number: 2 }, 1, of(1)),
            Err(HistoryError::NotWhole)
        );
    }
}
