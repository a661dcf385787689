//! Stripes: how a parallel file system spreads a file over its servers.
//!
//! Lustre is told when a file is made, and never again: an extended attribute of a file that was not opened yet
//! (which is how `tar` restores it; no library and no privilege is needed). The same attribute says what a file has.

/// Lustre's name for it.
pub(crate) const ATTRIBUTE: &[u8] = b"lustre.lov";

/// Stripes are multiples of this.
const UNIT: u64 = 64 << 10;
/// The plain layout, and the one that names a pool of servers: the same fields in the same places.
const PLAIN: u32 = 0x0bd1_0bd0;
const IN_POOL: u32 = 0x0bd3_0bd0;
/// Bytes before the list of objects.
const FIXED: usize = 32;

/// The stripes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stripes {
    /// On how many servers; 0: as the folder says.
    pub count: u64,
    /// Bytes of a stripe; 0: as the folder says.
    pub size: u64,
}

impl Stripes {
    /// As Lustre takes it: magic, pattern, id of the object, size, count, first server (-1: any).
    pub(crate) fn attribute(&self) -> Vec<u8> {
        let size = self.size.next_multiple_of(UNIT).min(u64::from(u32::MAX) / UNIT * UNIT) as u32;
        // The largest number means all servers.
        let count = self.count.min(0xffff) as u16;
        let mut bytes = vec![0; FIXED];
        bytes[..4].copy_from_slice(&PLAIN.to_ne_bytes());
        bytes[24..28].copy_from_slice(&size.to_ne_bytes());
        bytes[28..30].copy_from_slice(&count.to_ne_bytes());
        bytes[30..].copy_from_slice(&u16::MAX.to_ne_bytes());
        bytes
    }

    /// From what Lustre says of a file; none for layouts of several parts.
    pub(crate) fn of_attribute(bytes: &[u8]) -> Option<Stripes> {
        let four = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let two = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        if ![PLAIN, IN_POOL].contains(&four(0)?) {
            return None;
        }
        Some(Stripes { count: two(28)?.into(), size: four(24)?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the structure `lov_user_md_v1` of Lustre's header, field by field.
    #[test]
    fn what_lustre_is_told_is_what_it_tells() {
        let stripes = Stripes { count: 16, size: 4 << 20 };
        let bytes = stripes.attribute();
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[..4], 0x0bd10bd0u32.to_ne_bytes());
        assert_eq!(bytes[4..24], [0; 20]);
        assert_eq!(bytes[24..28], (4u32 << 20).to_ne_bytes());
        assert_eq!(bytes[28..32], [16u16.to_ne_bytes(), [0xff; 2]].concat());
        assert_eq!(Stripes::of_attribute(&bytes), Some(stripes));
        // With a list of objects, as a file has it, and in a pool.
        let longer = [&0x0bd30bd0u32.to_ne_bytes(), &bytes[4..], &[7; 400]].concat();
        assert_eq!(Stripes::of_attribute(&longer), Some(stripes));
    }

    #[test]
    fn sizes_are_what_lustre_can_have() {
        let size =
            |size| Stripes::of_attribute(&Stripes { count: 0, size }.attribute()).unwrap().size;
        assert_eq!([size(0), size(1), size(65536), size(65537)], [0, 65536, 65536, 131072]);
        assert_eq!(size(1 << 40), 0xffff_0000);
        let count = Stripes { count: 1 << 20, size: 0 }.attribute();
        assert_eq!(Stripes::of_attribute(&count).unwrap().count, 0xffff);
        for bytes in [&[][..], &[0; 32], &PLAIN.to_ne_bytes(), &0x0bd60bd0u32.to_ne_bytes()] {
            assert_eq!(Stripes::of_attribute(bytes), None);
        }
    }
}
