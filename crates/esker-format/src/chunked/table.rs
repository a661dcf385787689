//! Where chunks are: blocks of entries.

use super::Seal;

/// The head of a block of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The number of its first chunk.
    pub first: u64,
    /// How many entries it has.
    pub count: u64,
    /// Where the next block is in the heap; 0 for none.
    pub next: u64,
}

impl Block {
    /// Bytes of a head.
    pub const LEN: u64 = 32;

    const MAGIC: [u8; 4] = *b"EskT";

    /// Entries of a block of a variable without records, or of the `block`-th of one with records,
    /// for groups of `per_group` chunks.
    pub fn entries(block: usize, per_group: u64) -> u64 {
        const FEWEST: u64 = 64;
        const MOST: u64 = 32 * 1024;
        let most = MOST.min(FEWEST << block.min(20));
        let groups = (most / per_group.max(1)).max(1);
        groups * per_group
    }

    /// Bytes of a block with so many entries.
    pub fn bytes(count: u64) -> u64 {
        Block::LEN + count * Entry::LEN
    }

    /// As it is stored at this place of the heap.
    pub fn encode(&self, seal: Seal, at: u64) -> [u8; Block::LEN as usize] {
        let mut out = [0; Block::LEN as usize];
        for (field, value) in out[8..].chunks_exact_mut(8).zip([self.first, self.count, self.next])
        {
            field.copy_from_slice(&value.to_be_bytes());
        }
        out[..4].copy_from_slice(&Block::MAGIC);
        let sum = seal.sum(at, &out[8..]);
        out[4..8].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// The head that is stored there; `None` if there is none, or a damaged one, or one of another
    /// variable, file or place.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Option<Block> {
        let bytes: &[u8; Block::LEN as usize] =
            bytes.get(..Block::LEN as usize)?.try_into().ok()?;
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, fields) = rest.split_first_chunk::<4>()?;
        if *magic != Block::MAGIC || u32::from_be_bytes(*sum) != seal.sum(at, fields) {
            return None;
        }
        let [first, count, next] = *fields.as_chunks::<8>().0 else { return None };
        let [first, count, next] = [first, count, next].map(u64::from_be_bytes);
        Some(Block { first, count, next })
    }
}

/// Where a chunk is and what it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Where it is, from the beginning of the heap (or of another file).
    pub place: u64,
    /// Bytes that are stored; fewer than 2^32.
    pub size: u64,
    /// Their checksum.
    pub crc32c: u32,
    /// Their last four, as a number. Bytes that end with their own checksum all have the same one.
    pub tail: u32,
    /// The filters that were left out.
    pub mask: u16,
    /// The file that it is in; 0 for the one that has the table.
    pub file: u32,
    /// Whether values of it have been through a filter that changes them anew each time. Who changes a
    /// part of the chunk then stores the rest without such filters.
    pub changed: bool,
}

/// A bit of an entry's flags: [`Entry::changed`].
const CHANGED: u8 = 1;
/// Another: the chunk was never written.
const NEVER: u8 = 2;

impl Entry {
    /// Bytes of an entry.
    pub const LEN: u64 = 32;

    /// The last four of a chunk's stored bytes (zeros before fewer), as an entry keeps them.
    pub fn tail_of(stored: &[u8]) -> u32 {
        let last = &stored[stored.len().saturating_sub(4)..];
        last.iter().fold(0, |n, b| n << 8 | u32::from(*b))
    }

    /// As it is stored for the chunk of this number.
    pub fn encode(&self, seal: Seal, number: u64) -> [u8; Entry::LEN as usize] {
        let mut out = [0; Entry::LEN as usize];
        out[..8].copy_from_slice(&self.place.to_be_bytes());
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        out[8..12].copy_from_slice(&size.to_be_bytes());
        out[12..16].copy_from_slice(&self.tail.to_be_bytes());
        out[16..20].copy_from_slice(&self.crc32c.to_be_bytes());
        out[20..22].copy_from_slice(&self.mask.to_be_bytes());
        out[23] = if self.changed { CHANGED } else { 0 };
        out[24..28].copy_from_slice(&self.file.to_be_bytes());
        sealed(out, seal, number)
    }

    /// What is stored for a chunk that was never written: no zeros, which a lost write leaves.
    pub fn never(seal: Seal, number: u64) -> [u8; Entry::LEN as usize] {
        let mut out = [0; Entry::LEN as usize];
        out[23] = NEVER;
        sealed(out, seal, number)
    }

    /// The entry that is stored for the chunk of this number: `Ok(None)` if it was never written, an
    /// error for damaged bytes and those of another chunk, variable or file.
    pub fn decode(
        bytes: &[u8; Entry::LEN as usize],
        seal: Seal,
        number: u64,
    ) -> Result<Option<Entry>, DamagedEntry> {
        let (fields, sum) = bytes.split_last_chunk::<4>().ok_or(DamagedEntry::Sum)?;
        if u32::from_be_bytes(*sum) != seal.sum(number, fields) {
            let zeros = bytes.iter().all(|b| *b == 0);
            return Err(if zeros { DamagedEntry::Zeros } else { DamagedEntry::Sum });
        }
        let changed = match (fields[22], fields[23]) {
            (0, 0) => false,
            (0, CHANGED) => true,
            (0, NEVER) => return Ok(None),
            _ => return Err(DamagedEntry::Flags),
        };
        let number = |at: usize, len: usize| {
            fields[at..at + len].iter().fold(0, |n: u64, b| n << 8 | u64::from(*b))
        };
        Ok(Some(Entry {
            place: number(0, 8),
            size: number(8, 4),
            tail: number(12, 4) as u32,
            crc32c: number(16, 4) as u32,
            mask: number(20, 2) as u16,
            file: number(24, 4) as u32,
            changed,
        }))
    }
}

/// Fields with their checksum.
fn sealed(
    mut out: [u8; Entry::LEN as usize],
    seal: Seal,
    number: u64,
) -> [u8; Entry::LEN as usize] {
    let sum = seal.sum(number, &out[..28]);
    out[28..].copy_from_slice(&sum.to_be_bytes());
    out
}

/// The bytes of an entry are not those of the chunk that it should be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DamagedEntry {
    /// They are nothing but zeros.
    #[error("does not match its checksum: it is zeros, as a lost write leaves them")]
    Zeros,
    /// They were changed, or are those of another chunk, variable or file.
    #[error("does not match its checksum")]
    Sum,
    /// They say what this version does not know.
    #[error("has flags that this version does not know")]
    Flags,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::VarId;

    const IDENTITY: u64 = 0x1234_5678_9abc_def0;

    fn seal() -> Seal {
        Seal::new(IDENTITY, VarId(3))
    }

    fn entry() -> Entry {
        Entry {
            place: 1 << 40,
            size: 77,
            crc32c: 0xdead_beef,
            tail: 0x0102_0304,
            mask: 3,
            file: 9,
            changed: true,
        }
    }

    /// As docs/format/chunked.md has it, not as the code does it.
    #[test]
    fn an_entry_has_the_bytes_that_the_format_says() {
        let mut fields = Vec::new();
        fields.extend(entry().place.to_be_bytes());
        fields.extend(77u32.to_be_bytes());
        fields.extend([1, 2, 3, 4, 0xde, 0xad, 0xbe, 0xef, 0, 3, 0, 1, 0, 0, 0, 9]);
        let mut summed: Vec<u8> = [IDENTITY, 3, 5].iter().flat_map(|n| n.to_be_bytes()).collect();
        summed.extend(&fields);
        fields.extend(crc32c::crc32c(&summed).to_be_bytes());
        assert_eq!(entry().encode(seal(), 5)[..], fields);
    }

    #[test]
    fn an_entry_comes_back_and_a_flipped_bit_is_seen() {
        for bytes in [entry().encode(seal(), 5), Entry::never(seal(), 5)] {
            let sound = Entry::decode(&bytes, seal(), 5);
            assert!(sound == Ok(Some(entry())) || sound == Ok(None));
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes;
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(Entry::decode(&damaged, seal(), 5).is_err(), "bit {bit}");
            }
        }
        assert_eq!(Entry::decode(&Entry::never(seal(), 5), seal(), 5), Ok(None));
    }

    #[test]
    fn zeros_are_no_entry() {
        for number in 0..10_000 {
            assert_eq!(Entry::decode(&[0; 32], seal(), number), Err(DamagedEntry::Zeros));
        }
    }

    #[test]
    fn an_entry_is_of_one_chunk_one_variable_and_one_file() {
        for bytes in [entry().encode(seal(), 5), Entry::never(seal(), 5)] {
            assert!(Entry::decode(&bytes, seal(), 5).is_ok());
            for number in (0..4096).chain([1 << 32, 1 << 40, u64::MAX]).filter(|n| *n != 5) {
                assert_eq!(Entry::decode(&bytes, seal(), number), Err(DamagedEntry::Sum));
            }
            for var in (0..4096).filter(|var| *var != 3) {
                let other = Seal::new(IDENTITY, VarId(var));
                assert_eq!(Entry::decode(&bytes, other, 5), Err(DamagedEntry::Sum));
            }
            for bit in 0..64 {
                let other = Seal::new(IDENTITY ^ 1 << bit, VarId(3));
                assert_eq!(Entry::decode(&bytes, other, 5), Err(DamagedEntry::Sum));
            }
        }
    }

    #[test]
    fn a_block_is_of_one_place_and_a_flipped_bit_is_seen() {
        let block = Block { first: 5, count: 1 << 30, next: 1 << 50 };
        let bytes = block.encode(seal(), 640);
        assert_eq!(Block::decode(&bytes, seal(), 640), Some(block));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Block::decode(&damaged, seal(), 640), None, "bit {bit}");
        }
        assert_eq!(Block::decode(&bytes, seal(), 704), None);
        assert_eq!(Block::decode(&bytes, Seal::new(IDENTITY, VarId(4)), 640), None);
    }

    #[test]
    fn blocks_grow_and_hold_whole_groups() {
        assert_eq!(Block::entries(0, 1), 64);
        assert_eq!(Block::entries(3, 1), 512);
        assert_eq!(Block::entries(30, 1), 32 * 1024);
        assert_eq!(Block::entries(0, 100), 100);
        assert_eq!(Block::entries(1, 100), 100);
        assert_eq!(Block::entries(2, 100), 200);
    }
}
