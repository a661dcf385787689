//! An entry of a log as something to be written to the classic file: where its elements belong.

use std::sync::Arc;

use esker_format::log::{BLOCK, Entry, Footprint, Frame};
use esker_format::{Header, VarId};

use crate::pattern::{Pattern, Run};
use crate::plan::Extent;

/// An entry, or as much of one as fits the memory of a round.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) var: VarId,
    pub(crate) epoch: u64,
    /// Where its elements belong in the file.
    pub(crate) extent: Extent,
    /// The number of its log among those that are read.
    pub(crate) log: usize,
    /// Where the payload of its entry is in the data log, and which bytes of that it has.
    pub(crate) place: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Bytes and checksums of the whole payload.
    pub(crate) whole: u64,
    pub(crate) sums: Arc<[u32]>,
    pub(crate) little: bool,
    pub(crate) width: u8,
    /// Where its bytes are in the memory of the round, when they were read.
    pub(crate) at: usize,
}

impl Portion {
    pub(crate) fn len(&self) -> u64 {
        self.to - self.from
    }

    /// The payload's bytes that have to be read to check the portion.
    pub(crate) fn checked(&self) -> (u64, u64) {
        let block = BLOCK as u64;
        (self.from / block * block, self.to.next_multiple_of(block).min(self.whole))
    }

    /// Whether `bytes`, which are the [`Portion::checked`] ones, are what was written.
    pub(crate) fn is_sound(&self, bytes: &[u8]) -> bool {
        let (from, to) = self.checked();
        let sums = self.sums.get(from as usize / BLOCK..).unwrap_or(&[]);
        bytes.len() as u64 == to - from
            && bytes.len().div_ceil(BLOCK) <= sums.len()
            && bytes.chunks(BLOCK).zip(sums).all(|(bytes, sum)| crc32c::crc32c(bytes) == *sum)
    }
}

/// Calls `each` with the portions of an entry, each of at most `most` bytes (but of one element at
/// least). Fails, with the reason, where the entry makes no sense.
pub(crate) fn portions(
    header: &Header,
    (log, frame, entry): (usize, &Frame, &Entry),
    footprint: &Footprint,
    most: u64,
    mut each: impl FnMut(Portion),
) -> Result<(), &'static str> {
    let (begin, record_size) = target(header, entry, footprint)?;
    let write = &entry.write;
    let width = u64::from(write.width);
    let sums: Arc<[u32]> = frame.sums[entry.sums.clone()].into();
    let base = begin + write.records.first * record_size + write.first * width;
    let mut emit = |extent: Extent, element: u64, elements: u64| {
        each(Portion {
            var: VarId(write.var as usize),
            epoch: write.epoch,
            extent,
            log,
            place: entry.place,
            from: element * width,
            to: (element + elements) * width,
            whole: entry.len,
            sums: sums.clone(),
            little: write.little,
            width: write.width,
            at: 0,
        });
    };
    let most = (most / width).max(1);
    match footprint {
        Footprint::Block { run, levels } => {
            let records = (write.records.count, write.records.step * record_size);
            let inner = levels.iter().map(|(count, step)| (*count, step * width));
            let dims: Vec<_> = [records].into_iter().chain(inner).chain([(*run, width)]).collect();
            if !nested(&dims, width) {
                return Err("its footprint runs into itself");
            }
            let mut element = 0;
            cut(base, &dims, most, &mut |offset, dims| {
                let elements = dims.iter().map(|(count, _)| count).product();
                let mut extent = Extent::new(width);
                extent.push(Pattern::new(offset, width, dims.iter().copied()), 0);
                extent.finish();
                emit(extent, element, elements);
                element += elements;
            });
        }
        Footprint::Runs(runs) => {
            let mut extent = Extent::new(width);
            let (mut element, mut held) = (0, 0);
            for record in 0..write.records.count {
                let base = base + record * write.records.step * record_size;
                for run in runs {
                    let mut done = 0;
                    while done < run.len {
                        let n = (run.len - done).min(most - held);
                        let offset = base + (run.start + done) * width;
                        extent.push_run(Run { offset, len: n * width }, held);
                        (held, done) = (held + n, done + n);
                        if held == most {
                            extent.finish();
                            emit(std::mem::replace(&mut extent, Extent::new(width)), element, held);
                            (element, held) = (element + held, 0);
                        }
                    }
                }
            }
            if held > 0 {
                extent.finish();
                emit(extent, element, held);
            }
        }
    }
    Ok(())
}

/// Where the entry's variable begins, and the bytes from one record to the next (0 without). Nothing
/// of a log is believed that the header contradicts.
fn target(
    header: &Header,
    entry: &Entry,
    footprint: &Footprint,
) -> Result<(u64, u64), &'static str> {
    let write = &entry.write;
    let id = VarId(usize::try_from(write.var).map_err(|_| "there is no such variable")?);
    let (Some(variable), Some(place)) = (header.schema.variable(id), header.place(id)) else {
        return Err("there is no such variable");
    };
    if variable.ty.size() != u64::from(write.width) || entry.encoded {
        return Err("the variable has another type");
    }
    let is_record = header.schema.is_record(variable);
    let shape = header.schema.shape(variable, 1);
    let record: u64 = shape.iter().product();
    let end = write.records.end().unwrap_or(u64::MAX);
    let most = if is_record { header.schema.version.max_count() } else { 1 };
    let record_size = if is_record { header.layout.record_size } else { 0 };
    let reach = footprint.span().and_then(|span| span.checked_add(write.first));
    if end > most || reach.is_none_or(|reach| reach > record) {
        return Err("it lies outside of the variable");
    }
    if is_record && header.data_end(end) > i64::MAX as u64 {
        return Err("it lies outside of the variable");
    }
    let elements = footprint.elements().and_then(|n| n.checked_mul(write.records.count));
    if elements.and_then(|n| n.checked_mul(write.width.into())) != Some(entry.len) {
        return Err("its length is not that of its footprint");
    }
    Ok((place.begin, record_size))
}

/// Whether each level's steps are beyond what the levels within it span.
fn nested(dims: &[(u64, u64)], width: u64) -> bool {
    let mut span = width;
    for (count, step) in dims.iter().rev().filter(|(count, _)| *count != 1) {
        if *count == 0 || *step < span {
            return false;
        }
        let Some(reach) = (count - 1).checked_mul(*step) else { return false };
        span += reach;
    }
    true
}

/// Cuts a block into blocks of at most `most` elements, in the order of the elements.
fn cut(base: u64, dims: &[(u64, u64)], most: u64, each: &mut impl FnMut(u64, &[(u64, u64)])) {
    let elements: u64 = dims.iter().map(|(count, _)| count).product();
    let Some(((count, step), inner)) = dims.split_first().filter(|_| elements > most) else {
        return each(base, dims);
    };
    let within = elements / count;
    if within > most {
        return (0..*count).for_each(|i| cut(base + i * step, inner, most, each));
    }
    let at_once = (most / within).max(1);
    let mut done = 0;
    while done < *count {
        let n = at_once.min(count - done);
        let dims: Vec<_> = [(n, *step)].into_iter().chain(inner.iter().copied()).collect();
        each(base + done * step, &dims);
        done += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn elements(base: u64, dims: &[(u64, u64)]) -> Vec<u64> {
        match dims.split_first() {
            None => vec![base],
            Some(((count, step), inner)) => {
                (0..*count).flat_map(|i| elements(base + i * step, inner)).collect()
            }
        }
    }

    proptest! {
        #[test]
        fn a_block_that_is_cut_has_the_same_elements_in_the_same_order(
            counts in proptest::collection::vec(1u64..6, 0..4),
            most in 1u64..40,
        ) {
            let mut step = 1;
            let mut dims: Vec<_> = counts.iter().rev().map(|count| {
                let dim = (*count, step);
                step = step * count + 2;
                dim
            }).collect();
            dims.reverse();
            prop_assert!(nested(&dims, 1));
            let mut found = Vec::new();
            cut(7, &dims, most, &mut |base, dims| {
                let part = elements(base, dims);
                assert!(part.len() as u64 <= most);
                found.extend(part);
            });
            prop_assert_eq!(found, elements(7, &dims));
        }
    }
}
