//! Byte order: between native memory and the file's big-endian form.
//!
//! Reversing the bytes of each element is its own inverse, so one function serves both ways.

use super::native::Native;

/// The unsigned integers whose bytes are to be reversed.
trait Word: Native {
    fn big_endian(self) -> Self;
}

macro_rules! word {
    ($($t:ident)*) => {$(
        impl Word for $t {
            #[inline(always)]
            fn big_endian(self) -> Self {
                self.to_be()
            }
        }
    )*};
}
word! { u16 u32 u64 }

#[inline(always)]
fn reverse<W: Word>(src: &[u8], dst: &mut [u8]) {
    for (s, d) in src.chunks_exact(size_of::<W>()).zip(dst.chunks_exact_mut(size_of::<W>())) {
        let word: W = bytemuck::pod_read_unaligned(s);
        d.copy_from_slice(bytemuck::bytes_of(&word.big_endian()));
    }
}

#[inline(always)]
fn reverse_in_place<W: Word>(bytes: &mut [u8]) {
    for b in bytes.chunks_exact_mut(size_of::<W>()) {
        let word: W = bytemuck::pod_read_unaligned(b);
        b.copy_from_slice(bytemuck::bytes_of(&word.big_endian()));
    }
}

/// Changes `bytes`, elements of `width` (1, 2, 4 or 8) bytes, from native to big-endian order
/// or back, in place. Bytes after the last whole element stay as they are, and so does
/// everything for another width.
pub fn swap_in_place(bytes: &mut [u8], width: usize) {
    match width {
        2 => reverse_in_place::<u16>(bytes),
        4 => reverse_in_place::<u32>(bytes),
        8 => reverse_in_place::<u64>(bytes),
        _ => {}
    }
}

/// The same from `src` to `dst`, which are equally long, a multiple of `width`.
pub(super) fn swap_copy(src: &[u8], dst: &mut [u8], width: usize) {
    match width {
        2 => reverse::<u16>(src, dst),
        4 => reverse::<u32>(src, dst),
        8 => reverse::<u64>(src, dst),
        _ => dst.copy_from_slice(src),
    }
}

/// Copies elements of `width` bytes with the bytes of each reversed. `src` and `dst` are equally
/// long.
pub fn copy_reversed(src: &[u8], dst: &mut [u8], width: usize) {
    fn each<const W: usize>(src: &[u8], dst: &mut [u8]) {
        let (src, _) = src.as_chunks::<W>();
        let (dst, _) = dst.as_chunks_mut::<W>();
        for (s, d) in src.iter().zip(dst) {
            *d = *s;
            d.reverse();
        }
    }
    match width {
        2 => each::<2>(src, dst),
        4 => each::<4>(src, dst),
        8 => each::<8>(src, dst),
        _ => dst.copy_from_slice(src),
    }
}
