//! The caller's memory: dense, or described by a shape and strides, read and written in place.

use bytemuck::{cast_slice, cast_slice_mut};
use esker_format::values::{decode, encode};
use esker_format::{ConversionRules, ConvertError, ExternalType, MemoryType, Native, RangeReport};

use crate::error::MemoryError;

/// How the elements of a selection lie in the caller's memory when they are not dense: the
/// element with index `(i, j, …)` of the selection is at `offset + i*strides[0] + j*strides[1] + …`.
///
/// This is netCDF's imap, and what an ndarray view is. Strides are in elements and may be
/// negative or zero (for writing).
///
/// ```
/// use esker::MemoryLayout;
/// // A 2 x 3 block inside a halo of one cell on every side of a 4 x 5 array.
/// let interior = MemoryLayout::strided(6, &[2, 3], &[5, 1]);
/// // The same elements transposed.
/// let transposed = MemoryLayout::strided(6, &[3, 2], &[1, 5]);
/// # let _ = (interior, transposed);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryLayout {
    /// `None` when dense.
    strided: Option<Strided>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Strided {
    offset: usize,
    shape: Vec<u64>,
    strides: Vec<isize>,
}

impl MemoryLayout {
    /// One element after the other, the last dimension fastest.
    pub fn dense() -> MemoryLayout {
        MemoryLayout { strided: None }
    }

    /// Whether elements lie one behind the other.
    pub(crate) fn is_dense(&self) -> bool {
        self.strided.is_none()
    }

    /// Element `(i, j, …)` is `offset + i*strides[0] + j*strides[1] + …` elements into the
    /// buffer. `shape` is the shape of the selection.
    pub fn strided(offset: usize, shape: &[u64], strides: &[isize]) -> MemoryLayout {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        MemoryLayout { strided: Some(Strided { offset, shape, strides }) }
    }

    /// Checks that `elements` elements lie within a buffer of `len`.
    pub(crate) fn check(&self, elements: u64, len: usize) -> Result<(), MemoryError> {
        let Some(Strided { offset, shape, strides }) = &self.strided else {
            return if elements == len as u64 {
                Ok(())
            } else {
                Err(MemoryError::Length { selected: elements, given: len as u64 })
            };
        };
        if shape.len() != strides.len() {
            let (shape, strides) = (shape.len(), strides.len());
            return Err(MemoryError::Rank { shape, strides });
        }
        let product = shape.iter().try_fold(1u64, |n, len| n.checked_mul(*len));
        if product != Some(elements) {
            let given = product.unwrap_or(u64::MAX);
            return Err(MemoryError::Length { selected: elements, given });
        }
        if elements == 0 {
            return Ok(());
        }
        let (mut lowest, mut highest) = (*offset as i128, *offset as i128);
        for (len, stride) in shape.iter().zip(strides) {
            let reach = (i128::from(*len) - 1) * (*stride as i128);
            if reach < 0 { lowest += reach } else { highest += reach }
        }
        if lowest < 0 || highest >= len as i128 {
            return Err(MemoryError::Outside { lowest, highest, len });
        }
        Ok(())
    }
}

/// Memory lent by the caller for one request, or kept for it.
#[derive(Debug)]
pub(crate) enum Lent<'b> {
    /// To be written to the file.
    Source(&'b [u8]),
    /// To be read into.
    Target(&'b mut [u8]),
    /// A copy made by a buffered put.
    Kept(Vec<u8>),
}

impl Lent<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Lent::Source(bytes) => bytes,
            Lent::Target(bytes) => bytes,
            Lent::Kept(bytes) => bytes,
        }
    }
}

/// One request's memory and the types on both sides of its transfer.
#[derive(Debug)]
pub(crate) struct Memory<'b> {
    pub(crate) lent: Lent<'b>,
    pub(crate) layout: MemoryLayout,
    pub(crate) sides: Sides,
    /// The variable's fill value in external form.
    pub(crate) fill: FillBytes,
}

/// The type in the file and the type in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) external: ExternalType,
    pub(crate) memory: MemoryType,
    pub(crate) rules: ConversionRules,
}

/// One value in external form, of at most eight bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillBytes {
    bytes: [u8; 8],
    len: u8,
}

impl FillBytes {
    pub(crate) fn new(value: &[u8]) -> FillBytes {
        let mut bytes = [0; 8];
        let len = value.len().min(8);
        bytes[..len].copy_from_slice(&value[..len]);
        FillBytes { bytes, len: len as u8 }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// Elements that are copied one by one.
const FEW: usize = 4;

/// Elements gathered at a time from strided memory.
const GATHER: usize = 512;

impl<'b> Memory<'b> {
    pub(crate) fn source<T: Native>(data: &'b [T]) -> Lent<'b> {
        Lent::Source(cast_slice(data))
    }

    pub(crate) fn target<T: Native>(data: &'b mut [T]) -> Lent<'b> {
        Lent::Target(cast_slice_mut(data))
    }

    /// Bytes of the attached buffer that it holds.
    pub(crate) fn kept(&self) -> u64 {
        match &self.lent {
            Lent::Kept(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// The crc32c of its elements, in the order of the selection.
    pub(crate) fn crc32c(&self) -> u32 {
        let bytes = self.lent.bytes();
        let Some(strided) = &self.layout.strided else { return crc32c::crc32c(bytes) };
        let (size, mut sum) = (self.sides.memory.size(), 0);
        let mut native = [0u8; GATHER * 8];
        let mut walk = Walk::new(strided, 0);
        let mut left = strided.shape.iter().product::<u64>();
        while left > 0 {
            let n = left.min(GATHER as u64);
            let native = &mut native[..n as usize * size];
            for slot in native.chunks_exact_mut(size) {
                let at = walk.next_place() * size;
                slot.copy_from_slice(&bytes[at..at + size]);
            }
            sum = crc32c::crc32c_append(sum, native);
            left -= n;
        }
        sum
    }

    /// Bytes of the memory.
    pub(crate) fn bytes_len(&self) -> u64 {
        self.lent.bytes().len() as u64
    }

    /// The fill value `count` times, in external form.
    pub(crate) fn fill_bytes(&self, count: u64) -> Vec<u8> {
        self.fill.as_slice().repeat(count as usize)
    }

    /// The bytes of these elements, if they lie as the variable has them, in this machine's order.
    pub(crate) fn as_they_are(&self, elements: std::ops::Range<u64>) -> Option<&[u8]> {
        let Sides { external, memory, .. } = self.sides;
        if self.layout.strided.is_some() || memory != external.natural() {
            return None;
        }
        let width = external.size() as usize;
        self.lent.bytes().get(elements.start as usize * width..elements.end as usize * width)
    }

    /// The memory, if elements that are read lie in it one after the other, as the variable has
    /// them but for the order of their bytes.
    pub(crate) fn native_target(&mut self) -> Option<&mut [u8]> {
        let Sides { external, memory, rules } = self.sides;
        match &mut self.lent {
            Lent::Target(bytes)
                if self.layout.strided.is_none() && rules.is_copy(external, memory) =>
            {
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Does what [`Memory::pack`] does and tells so, if `out` has a few elements that all fit because
    /// only the order of their bytes differs. Runs of a few elements are most of what irregular
    /// decompositions have, and a call that can do everything costs more than they do.
    #[inline]
    pub(crate) fn pack_few(&self, element: u64, out: &mut [u8]) -> bool {
        let Sides { external, memory, rules } = self.sides;
        let width = external.size() as usize;
        if out.len() > FEW * width || self.layout.strided.is_some() {
            return false;
        }
        let start = element as usize * width;
        match self.lent.bytes().get(start..start + out.len()) {
            Some(source) if rules.is_copy(external, memory) => copy_swapped(source, out, width),
            _ => return false,
        }
        true
    }

    /// Does what [`Memory::unpack`] does and tells so, as [`Memory::pack_few`].
    #[inline]
    pub(crate) fn unpack_few(&mut self, element: u64, source: &[u8]) -> bool {
        let Sides { external, memory, rules } = self.sides;
        let width = external.size() as usize;
        if source.len() > FEW * width || self.layout.strided.is_some() {
            return false;
        }
        let Lent::Target(bytes) = &mut self.lent else { return false };
        let start = element as usize * width;
        match bytes.get_mut(start..start + source.len()) {
            Some(target) if rules.is_copy(external, memory) => copy_swapped(source, target, width),
            _ => return false,
        }
        true
    }

    /// Puts the elements from `element` on, as many as fill `out`, into `out` in external form.
    pub(crate) fn pack(&self, element: u64, out: &mut [u8]) -> Result<RangeReport, ConvertError> {
        let Sides { external, memory, rules } = self.sides;
        let (width, size) = (external.size() as usize, memory.size());
        let fill = self.fill.as_slice();
        let bytes = self.lent.bytes();
        let count = out.len() / width;
        let Some(strided) = &self.layout.strided else {
            let start = element as usize * size;
            let source = &bytes[start..start + count * size];
            return encode(memory, source, external, out, fill, rules);
        };
        let mut report = RangeReport::default();
        let mut native = [0u8; GATHER * 8];
        let mut walk = Walk::new(strided, element);
        for part in out.chunks_mut(GATHER * width) {
            let native = &mut native[..part.len() / width * size];
            for slot in native.chunks_exact_mut(size) {
                let at = walk.next_place() * size;
                slot.copy_from_slice(&bytes[at..at + size]);
            }
            report.append(encode(memory, native, external, part, fill, rules)?);
        }
        Ok(report)
    }

    /// Takes the elements from `element` on out of `external`, as many as it has.
    pub(crate) fn unpack(
        &mut self,
        element: u64,
        source: &[u8],
    ) -> Result<RangeReport, ConvertError> {
        let Sides { external, memory, rules } = self.sides;
        let (width, size) = (external.size() as usize, memory.size());
        let count = source.len() / width;
        let Lent::Target(bytes) = &mut self.lent else {
            return Ok(RangeReport::default());
        };
        let Some(strided) = &self.layout.strided else {
            let start = element as usize * size;
            let target = &mut bytes[start..start + count * size];
            return decode(external, source, memory, target, rules);
        };
        let mut report = RangeReport::default();
        let mut native = [0u8; GATHER * 8];
        let mut walk = Walk::new(strided, element);
        for part in source.chunks(GATHER * width) {
            let native = &mut native[..part.len() / width * size];
            report.append(decode(external, part, memory, native, rules)?);
            for slot in native.chunks_exact(size) {
                let at = walk.next_place() * size;
                bytes[at..at + size].copy_from_slice(slot);
            }
        }
        Ok(report)
    }
}

/// Copies a few elements with their bytes reversed if this machine's order is the other one.
fn copy_swapped(from: &[u8], to: &mut [u8], width: usize) {
    fn each<const W: usize>(from: &[u8], to: &mut [u8]) {
        let (from, _) = from.as_chunks::<W>();
        let (to, _) = to.as_chunks_mut::<W>();
        for (from, to) in from.iter().zip(to) {
            *to = *from;
            if cfg!(target_endian = "little") {
                to.reverse();
            }
        }
    }
    match width {
        1 => to.copy_from_slice(from),
        2 => each::<2>(from, to),
        4 => each::<4>(from, to),
        _ => each::<8>(from, to),
    }
}

/// The places of consecutive elements in strided memory.
struct Walk<'a> {
    strided: &'a Strided,
    index: Vec<u64>,
    place: isize,
}

impl<'a> Walk<'a> {
    fn new(strided: &'a Strided, element: u64) -> Walk<'a> {
        let mut index = vec![0; strided.shape.len()];
        let mut rest = element;
        let mut place = strided.offset as isize;
        for (d, len) in strided.shape.iter().enumerate().rev() {
            index[d] = rest % len;
            rest /= len;
            place += index[d] as isize * strided.strides[d];
        }
        Walk { strided, index, place }
    }

    /// The place of the next element. The layout was checked against the buffer.
    fn next_place(&mut self) -> usize {
        let place = self.place;
        for d in (0..self.index.len()).rev() {
            self.index[d] += 1;
            self.place += self.strided.strides[d];
            if self.index[d] < self.strided.shape[d] {
                break;
            }
            self.place -= self.strided.shape[d] as isize * self.strided.strides[d];
            self.index[d] = 0;
        }
        place as usize
    }
}
