//! What a session that was aborted leaves: how much of its logs had been committed. What is behind that is void.

use crate::varint;

/// How much of its logs a session had committed when it was aborted.
///
/// ```
/// use esker_format::log::Aborted;
/// let aborted = Aborted { identity: 7, ends: vec![(0, 120, 4096), (3, 64, 0)] };
/// assert_eq!(Aborted::decode(&aborted.encode()), Some(aborted));
/// assert_eq!(Aborted::decode(b""), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aborted {
    /// The session.
    pub identity: u64,
    /// Logs of which something had been committed, ascending, each with the bytes of its metadata log and of its data log that were.
    pub ends: Vec<(u32, u64, u64)>,
}

const MAGIC: &[u8; 4] = b"ESKA";
const FORMAT: u32 = 1;

impl Aborted {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend(self.identity.to_le_bytes());
        varint::put(&mut bytes, self.ends.len() as u64);
        for (log, meta, data) in &self.ends {
            [u64::from(*log), *meta, *data].iter().for_each(|n| varint::put(&mut bytes, *n));
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// What these bytes say; `None` if they are not whole.
    pub fn decode(bytes: &[u8]) -> Option<Aborted> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if u32::from_le_bytes(*sum) != crc32c::crc32c(body) {
            return None;
        }
        let (format, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
        let (identity, mut rest) = rest.split_first_chunk::<8>()?;
        if u32::from_le_bytes(*format) != FORMAT {
            return None;
        }
        let count = varint::take(&mut rest)?;
        // Each takes three bytes at least: no count is believed before they are there.
        if count > rest.len() as u64 / 3 {
            return None;
        }
        let mut ends: Vec<(u32, u64, u64)> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let log = u32::try_from(varint::take(&mut rest)?).ok()?;
            if ends.last().is_some_and(|(before, ..)| *before >= log) {
                return None;
            }
            ends.push((log, varint::take(&mut rest)?, varint::take(&mut rest)?));
        }
        let identity = u64::from_le_bytes(*identity);
        rest.is_empty().then_some(Aborted { identity, ends })
    }

    /// Bytes of a log's metadata that had been committed.
    pub fn committed(&self, log: usize) -> u64 {
        let place = self.ends.binary_search_by_key(&log, |(log, ..)| *log as usize);
        place.map_or(0, |place| self.ends[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_says_nothing() {
        let aborted = Aborted { identity: 1 << 60, ends: vec![(0, 7, 900), (5, 1 << 40, 0)] };
        let bytes = aborted.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Aborted::decode(&damaged), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Aborted::decode(&bytes[..len]), None, "{len}");
        }
        // A count that nothing is behind, with a checksum that fits.
        let mut forged = bytes[..16].to_vec();
        varint::put(&mut forged, u64::MAX);
        forged.extend(crc32c::crc32c(&forged).to_le_bytes());
        assert_eq!(Aborted::decode(&forged), None);
        assert_eq!((aborted.committed(5), aborted.committed(1)), (1 << 40, 0));
    }
}
