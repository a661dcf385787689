//! The head of a file beside the classic one: whose it is.

use super::ALIGN;

/// What a file of tables (number 0) or of chunks (its number) begins with, so that another one of
/// its name is not taken for it: a checksum of a chunk says nothing of the dataset it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHead {
    /// The stem, which all files of a dataset have in their names and no other dataset has.
    pub stem: String,
    /// The number of the file.
    pub number: u32,
}

impl FileHead {
    /// Bytes of a head.
    pub const LEN: u64 = ALIGN;

    /// Bytes of a stem, at most.
    pub const STEM: usize = 48;

    const MAGIC: [u8; 4] = *b"EskF";

    /// As it is stored; what is too long of a stem is left out, and no stem.
    pub fn encode(&self) -> [u8; FileHead::LEN as usize] {
        let mut out = [0; FileHead::LEN as usize];
        let stem = self.stem.as_bytes();
        let stem = stem.get(..FileHead::STEM).unwrap_or(stem);
        out[8..12].copy_from_slice(&self.number.to_be_bytes());
        out[12..16].copy_from_slice(&(stem.len() as u32).to_be_bytes());
        out[16..16 + stem.len()].copy_from_slice(stem);
        out[..4].copy_from_slice(&FileHead::MAGIC);
        let sum = crc32c::crc32c(&out[8..]);
        out[4..8].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// Whether these bytes are this head.
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes == self.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_its_file() {
        let head = FileHead { stem: "18f0".to_string(), number: 3 };
        let bytes = head.encode();
        assert_eq!(&bytes[..4], b"EskF");
        assert_eq!(bytes[8..20], [0, 0, 0, 3, 0, 0, 0, 4, b'1', b'8', b'f', b'0']);
        assert!(bytes[20..].iter().all(|b| *b == 0));
        assert_eq!(bytes[4..8], crc32c::crc32c(&bytes[8..]).to_be_bytes());
        assert!(head.is(&bytes));
        assert!(!FileHead { number: 4, ..head.clone() }.is(&bytes));
        assert!(!FileHead { stem: "18f1".to_string(), ..head.clone() }.is(&bytes));
        assert!(!head.is(&bytes[..63]) && !head.is(&[]));
    }
}
