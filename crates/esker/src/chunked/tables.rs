//! Where the chunks of a variable are: its chain of table blocks, and their entries.

use std::sync::Arc;

use esker_format::chunked::{Block, DamagedEntry, Entry, HeadFault, MadeFor, Seal, TableHead};
use esker_store::File;

use super::files::SubFiles;

/// A block that is known: its head and where it is in the heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) block: Block,
    pub(crate) at: u64,
}

/// The blocks of a variable, as far as they were read.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// Where the head of the table is.
    table: u64,
    seal: Seal,
    /// What the header says that the table must have been made for.
    expected: Arc<MadeFor>,
    /// Where the first block is, once the head was looked at.
    first: Option<u64>,
    blocks: Vec<Known>,
}

/// What is wrong with a table, as the end of a sentence.
pub(crate) type Fault = String;

/// A file, from where a heap begins in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapFile<'f> {
    pub(crate) file: &'f dyn File,
    pub(crate) begin: u64,
    /// The other files that chunks may be in.
    pub(crate) others: Option<&'f SubFiles>,
}

/// Why something in a heap cannot be used.
#[derive(Debug)]
pub(crate) enum Trouble {
    Store(esker_store::StoreError),
    Damage(Fault),
}

impl From<esker_store::StoreError> for Trouble {
    fn from(error: esker_store::StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl<'f> HeapFile<'f> {
    /// A heap without other files.
    pub(crate) fn new(file: &'f dyn File, begin: u64) -> HeapFile<'f> {
        HeapFile { file, begin, others: None }
    }

    /// Where a chunk is in its file.
    pub(crate) fn byte(&self, entry: &Entry) -> u64 {
        if entry.file == 0 { self.begin.saturating_add(entry.place) } else { entry.place }
    }

    /// Which file a chunk is in, for a sentence, if it is another one.
    pub(crate) fn of_file(&self, entry: &Entry) -> String {
        let path = self.others.filter(|_| entry.file > 0).map(|o| o.data_path(entry.file));
        path.map_or(String::new(), |path| format!(" of {}", path.display()))
    }

    /// Reads so many bytes at a place of the heap into `out`, which becomes no longer than the file.
    pub(crate) fn read_into(
        &self,
        place: u64,
        bytes: u64,
        out: &mut Vec<u8>,
        what: &str,
    ) -> Result<(), Trouble> {
        // Not worth a look for little.
        const LITTLE: u64 = 1 << 20;
        let end = self.begin.saturating_add(place).saturating_add(bytes);
        if bytes > LITTLE && end > self.file.len()? {
            let (at, len) = (self.begin.saturating_add(place), self.file.len()?);
            return Err(Trouble::Damage(format!(
                "{what} is said to be at byte {at}, {bytes} bytes, but the file ends at {len}"
            )));
        }
        out.resize(bytes as usize, 0);
        self.read(place, out, what)
    }

    /// The same where a loss of power may have left the file `len` bytes long, shorter than it was to be: zeros stand
    /// for what is missing, unless that is more than a writer would have added last.
    pub(crate) fn read_what_is_there(
        &self,
        (place, bytes): (u64, u64),
        len: u64,
        out: &mut Vec<u8>,
        what: &str,
    ) -> Result<(), Trouble> {
        const FORGOTTEN: u64 = 1 << 20;
        let begin = self.begin.saturating_add(place);
        if begin.saturating_add(bytes) > len.saturating_add(FORGOTTEN) {
            return self.read_into(place, bytes, out, what);
        }
        out.clear();
        out.resize(bytes as usize, 0);
        let there = len.saturating_sub(begin).min(bytes) as usize;
        self.read(place, &mut out[..there], what)
    }

    /// Which file the tables are in, for a sentence, if it is another one.
    fn of_tables(&self) -> String {
        self.others.map_or(String::new(), |o| format!(" of {}", o.tables_path().display()))
    }

    /// Reads all of `out` at a place of the heap.
    pub(crate) fn read(&self, place: u64, out: &mut [u8], what: &str) -> Result<(), Trouble> {
        let at = self.begin.checked_add(place).filter(|at| *at <= i64::MAX as u64);
        let Some(at) = at else {
            return Err(Trouble::Damage(format!(
                "{what} is said to be at {place}, beyond all files"
            )));
        };
        let n = self.file.read_at(at, out)?;
        if n < out.len() {
            return Err(Trouble::Damage(format!(
                "{what} is said to be at byte {at}{}, {} bytes, but the file ends at {}",
                self.of_tables(),
                out.len(),
                at + n as u64
            )));
        }
        Ok(())
    }

    fn block(&self, at: u64, seal: Seal) -> Result<Block, Trouble> {
        let mut bytes = [0; Block::LEN as usize];
        self.read(at, &mut bytes, "a block of its chunk table")?;
        Block::decode(&bytes, seal, at).ok_or_else(|| self.damaged("block", at))
    }

    fn damaged(&self, part: &str, at: u64) -> Trouble {
        let (at, of) = (self.begin.saturating_add(at), self.of_tables());
        Trouble::Damage(format!(
            "the {part} of its chunk table at byte {at}{of} is damaged, or is not of this variable"
        ))
    }
}

impl Chain {
    /// The table of a variable whose header says that it was made for this.
    pub(crate) fn new(table: u64, seal: Seal, expected: Arc<MadeFor>) -> Chain {
        Chain { table, seal, expected, first: None, blocks: Vec::new() }
    }

    /// What the checksums of the table know.
    pub(crate) fn seal(&self) -> Seal {
        self.seal
    }

    /// Where the head of the table is in the heap, and how long it should be.
    pub(crate) fn head(&self) -> (u64, u64) {
        (self.table, TableHead::bytes(&self.expected))
    }

    /// Where the first block is, if that is known.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    /// The head was looked at by another rank.
    pub(crate) fn begins_at(&mut self, first: u64) {
        self.first = Some(first);
    }

    /// Looks whether the table was made for what the header says; gives where its first block is. `read` has the
    /// bytes from its head on, as far as they were read already.
    pub(crate) fn open(&mut self, heap: HeapFile<'_>, read: &[u8]) -> Result<u64, Trouble> {
        if let Some(first) = self.first {
            return Ok(first);
        }
        let mut head = TableHead::decode(read, self.seal, self.table);
        let mut bytes = Vec::new();
        while let Err(HeadFault::NeedMore(len)) = head {
            let len = len.max(TableHead::bytes(&self.expected) as usize);
            if bytes.len() >= len {
                break;
            }
            // The header may say that it is longer than it is.
            bytes.resize(len, 0);
            let at = heap.begin.saturating_add(self.table);
            let n = heap.file.read_at(at.min(i64::MAX as u64), &mut bytes)?;
            head = TableHead::decode(&bytes[..n], self.seal, self.table);
            if n < len && matches!(head, Err(HeadFault::NeedMore(_))) {
                let (end, of) = (at.saturating_add(n as u64), heap.of_tables());
                return Err(Trouble::Damage(format!(
                    "its chunk table is said to be at byte {at}{of}, but the file ends at {end}"
                )));
            }
        }
        let head = head.map_err(|_| heap.damaged("head", self.table))?;
        if let Some(why) = head.made_for.difference(&self.expected) {
            return Err(Trouble::Damage(why));
        }
        self.first = Some(head.first);
        Ok(head.first)
    }

    /// The blocks that are known.
    pub(crate) fn blocks(&self) -> &[Known] {
        &self.blocks
    }

    /// A block was added behind the last.
    pub(crate) fn push(&mut self, known: Known) {
        if let Some(last) = self.blocks.last_mut() {
            last.block.next = known.at;
        }
        self.blocks.push(known);
    }

    /// The first chunk that no known block has.
    pub(crate) fn covers(&self) -> u64 {
        self.blocks.last().map_or(0, |k| k.block.first + k.block.count)
    }

    /// Reads the heads of blocks until one has the chunk `number`, or there are no more.
    pub(crate) fn reach(&mut self, heap: HeapFile<'_>, number: u64) -> Result<(), Trouble> {
        while self.covers() <= number {
            let at = match self.blocks.last() {
                None => self.open(heap, &[])?,
                Some(Known { block: Block { next: 0, .. }, at }) => {
                    // Another rank, or another program, may have added one since.
                    match heap.block(*at, self.seal)?.next {
                        0 => return Ok(()),
                        next => next,
                    }
                }
                Some(known) => known.block.next,
            };
            let block = heap.block(at, self.seal)?;
            let fits = block.count > 0
                && block.first == self.covers()
                && block.first.checked_add(block.count).is_some_and(|end| end <= 1 << 58);
            if !fits {
                let (at, of) = (heap.begin + at, heap.of_tables());
                return Err(Trouble::Damage(format!(
                    "the block of its chunk table at byte {at}{of} begins with chunk {} and has {}, \
                     where chunk {} should follow",
                    block.first,
                    block.count,
                    self.covers()
                )));
            }
            if let Some(last) = self.blocks.last_mut() {
                last.block.next = at;
            }
            self.blocks.push(Known { block, at });
        }
        Ok(())
    }

    /// Where the entry of a chunk is in the heap; `None` if no known block has it.
    pub(crate) fn place(&self, number: u64) -> Option<u64> {
        let after = self.blocks.partition_point(|k| k.block.first <= number);
        let Known { block, at } = self.blocks[..after].last()?;
        let within = number - block.first;
        (within < block.count).then(|| at + Block::LEN + within * Entry::LEN)
    }
}

/// Bytes of entries that are read at once.
const AT_ONCE: u64 = 1 << 20;

/// Bytes between two wanted entries that are read along.
const HOLE: u64 = 2048;

/// The entries of chunks of a variable, whose numbers ascend; `None` for one that was never
/// written. The chain reaches as far as it can.
pub(crate) fn entries(
    heap: HeapFile<'_>,
    chain: &mut Chain,
    numbers: &[u64],
) -> Result<Vec<Option<Entry>>, Trouble> {
    if let Some(last) = numbers.last() {
        chain.reach(heap, *last)?;
    }
    let mut out = Vec::with_capacity(numbers.len());
    let mut bytes = Vec::new();
    let mut rest = numbers;
    while let Some(first) = rest.first() {
        let Some(start) = chain.place(*first) else {
            out.push(None);
            rest = &rest[1..];
            continue;
        };
        let mut end = start + Entry::LEN;
        let mut places = vec![start];
        for number in &rest[1..] {
            match chain.place(*number) {
                Some(at) if at >= end && at - end <= HOLE && at + Entry::LEN - start <= AT_ONCE => {
                    end = at + Entry::LEN;
                    places.push(at);
                }
                _ => break,
            }
        }
        bytes.resize((end - start) as usize, 0);
        heap.read(start, &mut bytes, "its chunk table")?;
        for (at, number) in places.iter().zip(rest) {
            let from = (at - start) as usize;
            let lost = |why| Trouble::Damage(lost(heap, *number, *at, why));
            let entry = bytes[from..].first_chunk().ok_or_else(|| lost(DamagedEntry::Sum))?;
            out.push(Entry::decode(entry, chain.seal, *number).map_err(lost)?);
        }
        rest = &rest[places.len()..];
    }
    Ok(out)
}

/// What is wrong with the entry of a chunk, which is at this place of the heap.
pub(super) fn lost(heap: HeapFile<'_>, number: u64, at: u64, why: DamagedEntry) -> Fault {
    let (at, of) = (heap.begin.saturating_add(at), heap.of_tables());
    format!("chunk {number}: its entry in the chunk table, at byte {at}{of}, {why}")
}
