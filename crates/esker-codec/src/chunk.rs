//! What a chunk is: type, shape, byte order in memory, fill value.

use esker_format::ExternalType;

use crate::error::{CodecError, Result};

/// How elements stand in the caller's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    /// Big-endian, as in a classic file: the form in which ranks exchange values.
    #[default]
    External,
    /// The machine's own.
    Native,
}

/// A box of elements of one type. The same value describes it when it is encoded and decoded.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// The type of the elements.
    pub ty: ExternalType,
    /// Elements in each dimension, slowest first; none for a scalar.
    pub shape: &'a [usize],
    /// How elements stand in the caller's memory; what is stored does not depend on it.
    pub order: ByteOrder,
    /// The fill value as one external element
    /// ([`fill_bytes`](esker_format::values::fill_bytes) gives it). Filters that lose
    /// precision keep it exactly, and let no other value become it. Decoding does not need it.
    pub fill: Option<&'a [u8]>,
}

impl<'a> Chunk<'a> {
    /// A chunk whose elements stand in memory in external (big-endian) form, without fill value.
    pub fn new(ty: ExternalType, shape: &'a [usize]) -> Chunk<'a> {
        Chunk { ty, shape, order: ByteOrder::External, fill: None }
    }

    /// The same with elements in native byte order.
    pub fn native(self) -> Chunk<'a> {
        Chunk { order: ByteOrder::Native, ..self }
    }

    /// The same with this fill value, one element in external form.
    pub fn with_fill(self, fill: &'a [u8]) -> Chunk<'a> {
        Chunk { fill: Some(fill), ..self }
    }

    /// Number of elements.
    pub fn elements(&self) -> Result<usize> {
        Ok(self.bytes()? / self.ty.size() as usize)
    }

    /// Number of bytes in memory, which is also that of a raw chunk.
    pub fn bytes(&self) -> Result<usize> {
        let size = self.ty.size() as usize;
        let elements = self.shape.iter().try_fold(size, |n, &len| n.checked_mul(len));
        // A product with a zero in it may overflow on the way; such a chunk is empty all the same.
        let bytes = if self.shape.contains(&0) { Some(0) } else { elements };
        bytes
            .filter(|&n| n <= isize::MAX as usize / 4)
            .ok_or_else(|| CodecError::TooLarge { ty: self.ty, shape: self.shape.to_vec() })
    }

    /// An error unless `found` is the number of bytes.
    pub(crate) fn expect_bytes(&self, found: usize) -> Result<usize> {
        let expected = self.bytes()?;
        if expected != found {
            let shape = self.shape.to_vec();
            return Err(CodecError::Length { ty: self.ty, shape, expected, found });
        }
        Ok(expected)
    }

    /// Whether memory must be swapped to become external.
    pub(crate) fn swaps(&self) -> bool {
        self.order == ByteOrder::Native && cfg!(target_endian = "little")
    }
}
