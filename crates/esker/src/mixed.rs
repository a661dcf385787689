//! Tables by numbers that this process made: addresses, and hashes of what it writes.

use std::hash::{BuildHasherDefault, Hasher};

/// For tables whose keys nobody outside can choose, so that a multiplication is hash enough.
pub(crate) type ByNumber = BuildHasherDefault<Mixed>;

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// One more number in a hash.
pub(crate) fn mix(hash: u64, n: u64) -> u64 {
    (hash.rotate_left(5) ^ n).wrapping_mul(MIX)
}

#[derive(Debug, Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0, n);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn finish(&self) -> u64 {
        // A table takes the lowest bits, in which a product has the least of its factors.
        self.0 ^ self.0 >> 32
    }
}
