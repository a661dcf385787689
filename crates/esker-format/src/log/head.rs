//! The head of a metadata log: whose it is.

/// What a metadata log begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The same in all logs of one session, and in no other.
    pub identity: u64,
    /// The rank that wrote it.
    pub rank: u32,
    /// How many ranks there were.
    pub ranks: u32,
    /// What it belongs to: the path of the classic file before which it stands.
    pub text: String,
}

const MAGIC: &[u8; 4] = b"ESKL";
const FORMAT: u32 = 1;
const PREFIX: usize = 28;

/// No path is longer.
const LONGEST: usize = 1 << 16;

impl Head {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX + self.text.len() + 4);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.identity.to_le_bytes());
        bytes.extend(self.rank.to_le_bytes());
        bytes.extend(self.ranks.to_le_bytes());
        bytes.extend((self.text.len() as u32).to_le_bytes());
        bytes.extend(self.text.as_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// How many bytes of a log are enough to decode its head.
    pub fn enough() -> usize {
        PREFIX + LONGEST + 4
    }

    /// The head at the beginning of `bytes` and its length, if it is whole.
    pub fn decode(bytes: &[u8]) -> Option<(Head, usize)> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if !bytes.starts_with(MAGIC) || word(4)? != FORMAT {
            return None;
        }
        let identity = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        let (rank, ranks, len) = (word(16)?, word(20)?, word(24)? as usize);
        if len > LONGEST {
            return None;
        }
        let end = PREFIX + len;
        let text = std::str::from_utf8(bytes.get(PREFIX..end)?).ok()?.to_string();
        let sound = word(end)? == crc32c::crc32c(&bytes[..end]);
        sound.then_some((Head { identity, rank, ranks, text }, end + 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_whole_or_not_at_all() {
        let head = Head { identity: 77, rank: 3, ranks: 8, text: "/scratch/größe.nc".into() };
        let bytes = head.encode();
        let longer = [&bytes[..], b"more"].concat();
        assert_eq!(Head::decode(&longer), Some((head, bytes.len())));
        assert!((0..bytes.len()).all(|cut| Head::decode(&bytes[..cut]).is_none()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Head::decode(&damaged), None, "byte {at}");
        }
    }
}
