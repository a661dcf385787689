//! Contiguous runs of elements between the file's form and memory.

use super::Scalar;
use super::fill::memory_fill;
use super::number::{Converter, converter};
use super::report::{ConvertError, OutOfRange, RangeReport};
use super::swap::{swap_copy, swap_in_place};
use crate::types::{ExternalType, MemoryType, Version};

/// Elements converted at a time: 4 KiB of the widest type, so that the second pass over a
/// block (byte order, or the search for what did not fit) finds it in the L1 cache.
const BLOCK: usize = 512;

/// What differs between the file versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConversionRules {
    /// NC_BYTE and `u8` memory exchange their bits without a range check. CDF-1 and CDF-2
    /// have no unsigned byte, and programs have always kept one in NC_BYTE.
    pub byte_is_unsigned_ok: bool,
}

impl ConversionRules {
    /// The rules of a file version.
    pub fn of(version: Version) -> ConversionRules {
        ConversionRules { byte_is_unsigned_ok: version != Version::Cdf5 }
    }

    /// Fails when values of these types do not convert: text and numbers.
    pub fn check(self, external: ExternalType, memory: MemoryType) -> Result<(), ConvertError> {
        let is_text = (external == ExternalType::Char, memory == MemoryType::Text);
        match is_text {
            (true, true) | (false, false) => Ok(()),
            _ => Err(ConvertError::TextAndNumber { external, memory }),
        }
    }

    /// Whether values of these types differ in byte order alone.
    pub fn is_copy(self, external: ExternalType, memory: MemoryType) -> bool {
        memory == external.natural()
            || (self.byte_is_unsigned_ok
                && (external, memory) == (ExternalType::Byte, MemoryType::U8))
    }
}

/// Converts memory to the file's form. Elements that do not fit become `fill`, one value in
/// the file's form; the report counts them.
///
/// Neither buffer needs an alignment. On an error nothing was written to `dst`.
pub fn encode(
    memory: MemoryType,
    src: &[u8],
    external: ExternalType,
    dst: &mut [u8],
    fill: &[u8],
    rules: ConversionRules,
) -> Result<RangeReport, ConvertError> {
    let count = elements(external, dst.len(), memory, src.len())?;
    let width = external.size() as usize;
    if fill.len() != width {
        return Err(ConvertError::FillLength { external, found: fill.len() });
    }
    if rules.is_copy(external, memory) {
        swap_copy(src, dst, width);
        return Ok(clean(count));
    }
    let convert = converter(memory, external.natural())
        .ok_or(ConvertError::TextAndNumber { external, memory })?;
    let mut fill = fill.to_vec();
    swap_in_place(&mut fill, width);
    let pass = Pass { convert, from: memory, fill: &fill, target: external.cdl_name() };
    let mut report = RangeReport::default();
    for (s, d) in src.chunks(BLOCK * memory.size()).zip(dst.chunks_mut(BLOCK * width)) {
        report.append(pass.block(s, d));
        swap_in_place(d, width);
    }
    Ok(report)
}

/// Converts the file's form to memory. Elements that do not fit become the default fill value
/// of the memory's type; the report counts them.
///
/// Neither buffer needs an alignment. On an error nothing was written to `dst`.
pub fn decode(
    external: ExternalType,
    src: &[u8],
    memory: MemoryType,
    dst: &mut [u8],
    rules: ConversionRules,
) -> Result<RangeReport, ConvertError> {
    let count = elements(external, src.len(), memory, dst.len())?;
    let width = external.size() as usize;
    if rules.is_copy(external, memory) {
        swap_copy(src, dst, width);
        return Ok(clean(count));
    }
    let convert = converter(external.natural(), memory)
        .ok_or(ConvertError::TextAndNumber { external, memory })?;
    let fill = memory_fill(memory);
    let pass = Pass { convert, from: external.natural(), fill: &fill, target: memory.name() };
    let mut report = RangeReport::default();
    let mut native = [0u8; BLOCK * 8];
    for (s, d) in src.chunks(BLOCK * width).zip(dst.chunks_mut(BLOCK * memory.size())) {
        let native = &mut native[..s.len()];
        swap_copy(s, native, width);
        report.append(pass.block(native, d));
    }
    Ok(report)
}

/// Memory of one type to memory of another, by the same rules as [`decode`].
pub(super) fn convert_native(
    from: ExternalType,
    src: &[u8],
    memory: MemoryType,
    dst: &mut [u8],
    rules: ConversionRules,
) -> Result<RangeReport, ConvertError> {
    let count = elements(from, src.len(), memory, dst.len())?;
    if rules.is_copy(from, memory) {
        dst.copy_from_slice(src);
        return Ok(clean(count));
    }
    let convert = converter(from.natural(), memory)
        .ok_or(ConvertError::TextAndNumber { external: from, memory })?;
    let fill = memory_fill(memory);
    let pass = Pass { convert, from: from.natural(), fill: &fill, target: memory.name() };
    Ok(pass.block(src, dst))
}

/// One pair of native types and what stands for an element that does not fit.
struct Pass<'a> {
    convert: Converter,
    from: MemoryType,
    fill: &'a [u8],
    target: &'static str,
}

impl Pass<'_> {
    fn block(&self, src: &[u8], dst: &mut [u8]) -> RangeReport {
        let report = clean(src.len() / self.from.size());
        if (self.convert)(src, dst) { report } else { self.one_by_one(report, src, dst) }
    }

    #[cold]
    fn one_by_one(&self, mut report: RangeReport, src: &[u8], dst: &mut [u8]) -> RangeReport {
        let pairs = src.chunks_exact(self.from.size()).zip(dst.chunks_exact_mut(self.fill.len()));
        for (index, (s, d)) in pairs.enumerate() {
            if (self.convert)(s, d) {
                continue;
            }
            d.copy_from_slice(self.fill);
            report.out_of_range += 1;
            if report.first.is_none() {
                let found = |value| OutOfRange { index: index as u64, value, target: self.target };
                report.first = Scalar::read(self.from, s).map(found);
            }
        }
        report
    }
}

fn clean(count: usize) -> RangeReport {
    RangeReport { elements: count as u64, ..RangeReport::default() }
}

/// How many elements both buffers hold.
fn elements(
    external: ExternalType,
    external_bytes: usize,
    memory: MemoryType,
    memory_bytes: usize,
) -> Result<usize, ConvertError> {
    if (external == ExternalType::Char) != (memory == MemoryType::Text) {
        return Err(ConvertError::TextAndNumber { external, memory });
    }
    let (width, size) = (external.size() as usize, memory.size());
    let count = external_bytes / width;
    if !external_bytes.is_multiple_of(width)
        || !memory_bytes.is_multiple_of(size)
        || count != memory_bytes / size
    {
        return Err(ConvertError::Length { external, external_bytes, memory, memory_bytes });
    }
    Ok(count)
}
