//! Moving values between memory and the file, run by run, in bounded memory.
//!
//! Values are converted in blocks that stay in the cache, neighbouring runs go out in one
//! write, and reads of runs that lie close together fetch the little between them as well
//! (data sieving) instead of making a call for each.

use std::iter::Peekable;

use esker_format::values::{decode, encode, swap_in_place};
use esker_format::{ConversionRules, ConvertError, ExternalType, MemoryType, RangeReport};
use esker_store::{File, StoreError};

use crate::pattern::Run;

/// Bytes converted or held at a time: half of a typical level-2 cache.
const BLOCK: u64 = 512 * 1024;

/// A hole of at most this many bytes between two runs is read with them: a read of a page
/// costs about what a call does.
const SIEVE: u64 = 16 * 1024;

/// Why a transfer stopped.
#[derive(Debug)]
pub(crate) enum TransferError {
    Store(StoreError),
    Convert(ConvertError),
    /// The file ends before this offset.
    Short {
        needed: u64,
    },
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        TransferError::Store(error)
    }
}

impl From<ConvertError> for TransferError {
    fn from(error: ConvertError) -> Self {
        TransferError::Convert(error)
    }
}

/// Both sides of a transfer: the type in the file and the type in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) external: ExternalType,
    pub(crate) memory: MemoryType,
    pub(crate) rules: ConversionRules,
}

impl Sides {
    /// Bytes in memory for `len` bytes in the file.
    fn in_memory(&self, len: u64) -> usize {
        (len / self.external.size()) as usize * self.memory.size()
    }
}

/// Writes the elements of `memory`, in order, to the runs.
pub(crate) fn write(
    file: &dyn File,
    runs: impl Iterator<Item = Run>,
    memory: &[u8],
    sides: Sides,
    fill: &[u8],
) -> Result<RangeReport, TransferError> {
    let mut report = RangeReport::default();
    let mut rest = memory;
    // Converted bytes that are not written yet, and where they go.
    let mut block: Vec<u8> = Vec::new();
    let mut at = 0;
    for run in runs {
        let mut done = 0;
        while done < run.len {
            let offset = run.offset + done;
            let held = block.len() as u64;
            if held > 0 && (at + held != offset || held >= BLOCK) {
                file.write_at(at, &block)?;
                block.clear();
            }
            if block.is_empty() {
                at = offset;
            }
            let n = (run.len - done).min(BLOCK - block.len() as u64);
            let (now, later) = rest.split_at(sides.in_memory(n));
            rest = later;
            let start = block.len();
            block.resize(start + n as usize, 0);
            let target = &mut block[start..];
            report.append(encode(sides.memory, now, sides.external, target, fill, sides.rules)?);
            done += n;
        }
    }
    if !block.is_empty() {
        file.write_at(at, &block)?;
    }
    Ok(report)
}

/// Reads the elements of the runs, in order, into `memory`.
pub(crate) fn read(
    file: &dyn File,
    runs: impl Iterator<Item = Run>,
    memory: &mut [u8],
    sides: Sides,
) -> Result<RangeReport, TransferError> {
    let mut report = RangeReport::default();
    let mut runs = runs.peekable();
    let mut rest = memory;
    let mut block: Vec<u8> = Vec::new();
    let mut window: Vec<Run> = Vec::new();
    while let Some(run) = runs.next() {
        if run.len >= BLOCK / 2 {
            let (now, later) = rest.split_at_mut(sides.in_memory(run.len));
            rest = later;
            report.append(read_long(file, run, now, sides, &mut block)?);
            continue;
        }
        gather(run, &mut runs, &mut window);
        let start = run.offset;
        let end = window.last().map_or(run.end(), Run::end);
        block.resize((end - start) as usize, 0);
        read_exact(file, start, &mut block)?;
        for run in &window {
            let (now, later) = rest.split_at_mut(sides.in_memory(run.len));
            rest = later;
            let from = (run.offset - start) as usize;
            let source = &block[from..from + run.len as usize];
            report.append(decode(sides.external, source, sides.memory, now, sides.rules)?);
        }
    }
    Ok(report)
}

/// Collects into `window` the runs after `first` that are worth one read together with it.
fn gather(first: Run, runs: &mut Peekable<impl Iterator<Item = Run>>, window: &mut Vec<Run>) {
    window.clear();
    window.push(first);
    let mut end = first.end();
    let fits = |next: &Run, end: u64| {
        next.offset >= end && next.offset - end <= SIEVE && next.end() - first.offset <= BLOCK
    };
    while let Some(next) = runs.next_if(|next| fits(next, end)) {
        end = next.end();
        window.push(next);
    }
}

/// Reads one long run, straight into memory where the types are the same.
fn read_long(
    file: &dyn File,
    run: Run,
    memory: &mut [u8],
    sides: Sides,
    block: &mut Vec<u8>,
) -> Result<RangeReport, TransferError> {
    let same = sides.rules.is_copy(sides.external, sides.memory);
    let mut report = RangeReport::default();
    let mut done = 0;
    let mut rest = memory;
    while done < run.len {
        let n = (run.len - done).min(BLOCK);
        let (now, later) = rest.split_at_mut(sides.in_memory(n));
        rest = later;
        if same {
            read_exact(file, run.offset + done, now)?;
            swap_in_place(now, sides.memory.size());
            let elements = n / sides.external.size();
            report.append(RangeReport { elements, ..RangeReport::default() });
        } else {
            block.resize(n as usize, 0);
            read_exact(file, run.offset + done, block)?;
            report.append(decode(sides.external, block, sides.memory, now, sides.rules)?);
        }
        done += n;
    }
    Ok(report)
}

fn read_exact(file: &dyn File, offset: u64, buf: &mut [u8]) -> Result<(), TransferError> {
    if file.read_at(offset, buf)? < buf.len() {
        return Err(TransferError::Short { needed: offset + buf.len() as u64 });
    }
    Ok(())
}
