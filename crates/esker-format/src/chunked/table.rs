//! Where chunks are: blocks of entries.

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

    /// As it is stored.
    pub fn encode(&self) -> [u8; Block::LEN as usize] {
        let mut out = [0; Block::LEN as usize];
        for (field, value) in out[8..].chunks_exact_mut(8).zip([self.first, self.count, self.next])
        {
            field.copy_from_slice(&value.to_be_bytes());
        }
        out[..4].copy_from_slice(&Block::MAGIC);
        let sum = crc32c::crc32c(&out[8..]);
        out[4..8].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// The head that is stored there; `None` if there is none, or a damaged one.
    pub fn decode(bytes: &[u8]) -> Option<Block> {
        let bytes: &[u8; Block::LEN as usize] =
            bytes.get(..Block::LEN as usize)?.try_into().ok()?;
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, fields) = rest.split_first_chunk::<4>()?;
        if *magic != Block::MAGIC || u32::from_be_bytes(*sum) != crc32c::crc32c(fields) {
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
    /// Bytes that are stored.
    pub size: u64,
    /// Their checksum.
    pub crc32c: u32,
    /// The filters that were left out.
    pub mask: u16,
    /// The file that it is in; 0 for the one that has the table.
    pub file: u32,
    /// Whether values of it have been through a filter that changes them anew each time. Who changes a
    /// part of the chunk then stores the rest without such filters.
    pub changed: bool,
}

impl Entry {
    /// Bytes of an entry.
    pub const LEN: u64 = 32;

    /// As it is stored.
    pub fn encode(&self) -> [u8; Entry::LEN as usize] {
        let mut out = [0; Entry::LEN as usize];
        out[..8].copy_from_slice(&self.place.to_be_bytes());
        out[8..16].copy_from_slice(&self.size.to_be_bytes());
        out[16..20].copy_from_slice(&self.crc32c.to_be_bytes());
        out[20..22].copy_from_slice(&self.mask.to_be_bytes());
        out[23] = self.changed.into();
        out[24..28].copy_from_slice(&self.file.to_be_bytes());
        let sum = crc32c::crc32c(&out[..28]);
        out[28..].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// The entry that is stored there: `Ok(None)` for a chunk that was never written, an error for
    /// damaged bytes.
    pub fn decode(bytes: &[u8; Entry::LEN as usize]) -> Result<Option<Entry>, DamagedEntry> {
        if bytes.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        let (fields, sum) = bytes.split_last_chunk::<4>().ok_or(DamagedEntry)?;
        let unknown = fields[22] != 0 || fields[23] > 1;
        if u32::from_be_bytes(*sum) != crc32c::crc32c(fields) || unknown {
            return Err(DamagedEntry);
        }
        let long =
            |at: usize| fields[at..at + 8].iter().fold(0, |n: u64, b| n << 8 | u64::from(*b));
        let short = |at: usize, len: usize| {
            fields[at..at + len].iter().fold(0, |n: u32, b| n << 8 | u32::from(*b))
        };
        Ok(Some(Entry {
            place: long(0),
            size: long(8),
            crc32c: short(16, 4),
            mask: short(20, 2) as u16,
            file: short(24, 4),
            changed: fields[23] == 1,
        }))
    }
}

/// The bytes of an entry do not match their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the table's entry does not match its checksum")]
pub struct DamagedEntry;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_back_and_a_flipped_bit_is_seen() {
        let entry = Entry {
            place: 1 << 40,
            size: 77,
            crc32c: 0xdead_beef,
            mask: 3,
            file: 9,
            changed: true,
        };
        let bytes = entry.encode();
        assert_eq!(Entry::decode(&bytes), Ok(Some(entry)));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::decode(&damaged), Err(DamagedEntry), "bit {bit}");
        }
        assert_eq!(Entry::decode(&[0; 32]), Ok(None));
    }

    #[test]
    fn a_block_comes_back_and_a_flipped_bit_is_seen() {
        let block = Block { first: 5, count: 1 << 30, next: 1 << 50 };
        let bytes = block.encode();
        assert_eq!(Block::decode(&bytes), Some(block));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Block::decode(&damaged), None, "bit {bit}");
        }
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
