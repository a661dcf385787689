//! Elements in native byte order, aligned, in a buffer that is used again.

use bytemuck::Pod;
use esker_format::ExternalType;
use esker_format::values::swap_in_place;

use crate::chunk::{ByteOrder, Chunk};

/// Elements of one type in native byte order.
#[derive(Debug)]
pub(crate) struct Elements {
    ty: ExternalType,
    len: usize,
    /// Words, so that elements of every type are aligned.
    words: Vec<u64>,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements { ty: ExternalType::Byte, len: 0, words: Vec::new() }
    }
}

impl Elements {
    /// Makes room for `len` elements of `ty`, whose values are then unspecified.
    pub(crate) fn reset(&mut self, ty: ExternalType, len: usize) {
        let words = (len * ty.size() as usize).div_ceil(8);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
        (self.ty, self.len) = (ty, len);
    }

    /// Copies the caller's memory, `bytes`, whose length has been checked.
    pub(crate) fn load(&mut self, chunk: &Chunk<'_>, bytes: &[u8]) {
        let width = chunk.ty.size() as usize;
        self.reset(chunk.ty, bytes.len() / width);
        self.bytes_mut().copy_from_slice(bytes);
        if chunk.order == ByteOrder::External && cfg!(target_endian = "little") {
            swap_in_place(self.bytes_mut(), width);
        }
    }

    /// Copies to the caller's memory, whose length has been checked.
    pub(crate) fn store(&self, chunk: &Chunk<'_>, out: &mut [u8]) {
        out.copy_from_slice(self.bytes());
        if chunk.order == ByteOrder::External && cfg!(target_endian = "little") {
            swap_in_place(out, self.ty.size() as usize);
        }
    }

    /// Appends the external form.
    pub(crate) fn append_external(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.bytes());
        if cfg!(target_endian = "little") {
            swap_in_place(&mut out[start..], self.ty.size() as usize);
        }
    }

    pub(crate) fn ty(&self) -> ExternalType {
        self.ty
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len * self.ty.size() as usize]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.len * self.ty.size() as usize;
        &mut bytemuck::cast_slice_mut(&mut self.words)[..bytes]
    }

    /// The elements as `T`, which must be as wide as the type.
    pub(crate) fn typed<T: Pod>(&self) -> &[T] {
        debug_assert_eq!(size_of::<T>() as u64, self.ty.size());
        bytemuck::cast_slice(self.bytes())
    }

    /// The same to be changed.
    pub(crate) fn typed_mut<T: Pod>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>() as u64, self.ty.size());
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}
