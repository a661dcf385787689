//! What the checksums of a chunk table know beside the bytes that they are of.

use crate::schema::VarId;

/// The file and the variable that a chunk table is of, for its checksums.
///
/// A checksum of bytes alone holds for them wherever they are: in the place of another chunk, of another
/// variable, or in another file. So what is summed begins with the file's identity (a random number), the
/// number of the variable, which it keeps for ever, and the number of the chunk or the place in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal(u32);

impl Seal {
    /// Of a variable of the file with this identity.
    pub fn new(identity: u64, var: VarId) -> Seal {
        let sum = crc32c::crc32c(&identity.to_be_bytes());
        Seal(crc32c::crc32c_append(sum, &(var.0 as u64).to_be_bytes()))
    }

    /// The checksum of what belongs to a chunk of this number, or to this place.
    pub(super) fn sum(self, number: u64, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.0, &number.to_be_bytes()), bytes)
    }
}
