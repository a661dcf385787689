//! An entry of a log as something to be written to the classic file: where its elements belong.

use std::ops::Range;
use std::sync::Arc;

use esker_format::log::{BLOCK, Entry, Footprint, Frame};
use esker_format::runs::{Pattern, Run};
use esker_format::{Header, VarId, Variable};

use super::chunks::{Shape, levels_of};
use crate::chunked::Chunked;
use crate::plan::Extent;

/// An entry, or as much of one as fits the memory of a round.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) var: VarId,
    pub(crate) epoch: u64,
    /// Records that the variable has at least when its entry is written, if it has any.
    pub(crate) records: u64,
    /// Where its elements belong: in the file, or in the space of chunks.
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
        if self.sums.is_empty() {
            // It was written without any.
            return bytes.len() as u64 == to - from;
        }
        bytes.len() as u64 == to - from
            && bytes.len().div_ceil(BLOCK) <= sums.len()
            && bytes.chunks(BLOCK).zip(sums).all(|(bytes, sum)| crc32c::crc32c(bytes) == *sum)
    }
}

/// The dataset that entries are replayed into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'d> {
    pub(crate) header: &'d Header,
    pub(crate) chunked: Option<&'d Chunked>,
}

/// Which entries are replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Those of variables whose values have places in the file.
    Places,
    /// Those of chunked variables, as far as they are in chunks of this part of the space.
    Chunks(Range<u64>),
}

/// Bytes that are read of an entry for a part of the space of chunks, where that is not all of it: so
/// much is read for one element that is in it.
const SOME: u64 = 64 << 10;

impl<'d> Target<'d> {
    /// The variable of this number as programs see it.
    pub(crate) fn variable(&self, var: VarId) -> Option<&'d Variable> {
        let schema = self.chunked.map_or(&self.header.schema, |chunked| &chunked.schema);
        schema.variable(var)
    }
}

/// Calls `each` with the portions of an entry, each of at most `most` bytes (but of one element at
/// least). Fails, with the reason, where the entry makes no sense.
pub(crate) fn portions(
    target: Target<'_>,
    pass: &Pass,
    (log, frame, entry): (usize, &Frame, &Entry),
    footprint: &Footprint,
    most: u64,
    mut each: impl FnMut(Portion),
) -> Result<(), &'static str> {
    let (begin, record_size) = place(target, entry, footprint)?;
    let write = &entry.write;
    let width = u64::from(write.width);
    let sums: Arc<[u32]> = frame.sums[entry.sums.clone()].into();
    let var = VarId(write.var as usize);
    let is_record = |variable| target.header.schema.is_record(variable);
    let records = match target.variable(var).is_some_and(is_record) {
        true => write.records.end().unwrap_or(0),
        false => 0,
    };
    let mut emit = |extent: Extent, element: u64, elements: u64| {
        each(Portion {
            var,
            epoch: write.epoch,
            records,
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
    let chunked = target.chunked.and_then(|chunked| Some((chunked, chunked.var(var)?)));
    match (chunked, pass) {
        (None, Pass::Places) => {}
        (Some((chunked, Ok(found))), Pass::Chunks(within)) => {
            let shape = Shape::new(chunked, (var, found), entry, within)?;
            let most = match *within == (0..u64::MAX) {
                true => most,
                false => most.min((SOME / width).max(1)),
            };
            return of_chunks(&shape, entry, footprint, most, emit);
        }
        (Some((_, Err(_))), _) => return Err("the variable cannot be read"),
        (None, Pass::Chunks(_)) | (Some(_), Pass::Places) => return Ok(()),
    }
    let base = begin + write.records.first * record_size + write.first * width;
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

/// The portions of an entry of a chunked variable, each of at most `most` elements.
fn of_chunks(
    shape: &Shape<'_>,
    entry: &Entry,
    footprint: &Footprint,
    most: u64,
    mut emit: impl FnMut(Extent, u64, u64),
) -> Result<(), &'static str> {
    let (write, record) = (&entry.write, shape.record());
    let size = u64::from(write.width);
    let base = write.records.first * record + write.first;
    let mut outcome = Ok(());
    match footprint {
        Footprint::Block { .. } => {
            let levels = levels_of(entry, footprint, record);
            let mut element = 0;
            cut(base, &levels, most, &mut |first, levels| {
                let elements = levels.iter().map(|(count, _)| count).product::<u64>();
                let mut extent = Extent::new(size);
                match shape.add(first, levels, 0, &mut extent) {
                    Ok(true) => {
                        extent.finish();
                        emit(extent, element, elements);
                    }
                    Ok(false) => {}
                    Err(why) => outcome = Err(why),
                }
                element += elements;
            });
        }
        Footprint::Runs(runs) => {
            let mut extent = Extent::new(size);
            let (mut element, mut held, mut any) = (0, 0, false);
            for record in (0..write.records.count).map(|i| i * write.records.step * record) {
                for run in runs {
                    let mut done = 0;
                    while done < run.len {
                        let n = (run.len - done).min(most - held);
                        let first = base + record + run.start + done;
                        any |= shape.add(first, &[(n, 1)], held, &mut extent)?;
                        (held, done) = (held + n, done + n);
                        if held == most {
                            let mut full = std::mem::replace(&mut extent, Extent::new(size));
                            if std::mem::take(&mut any) {
                                full.finish();
                                emit(full, element, held);
                            }
                            (element, held) = (element + held, 0);
                        }
                    }
                }
            }
            if any {
                extent.finish();
                emit(extent, element, held);
            }
        }
    }
    outcome
}

/// Where the entry's variable begins, and the bytes from one record to the next (0 without). Nothing
/// of a log is believed that the header contradicts.
fn place(
    target: Target<'_>,
    entry: &Entry,
    footprint: &Footprint,
) -> Result<(u64, u64), &'static str> {
    let (write, header) = (&entry.write, target.header);
    let id = VarId(usize::try_from(write.var).map_err(|_| "there is no such variable")?);
    let (Some(variable), Some(place)) = (target.variable(id), header.place(id)) else {
        return Err("there is no such variable");
    };
    if variable.ty.size() != u64::from(write.width) || entry.encoded {
        return Err("the variable has another type");
    }
    let is_record = header.schema.is_record(variable);
    let shape = header.schema.shape(variable, 1);
    let record = shape.iter().try_fold(1u64, |n, len| n.checked_mul(*len));
    let record = record.ok_or("it lies outside of the variable")?;
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
    if let Footprint::Block { run, levels } = footprint {
        let all = [&levels[..], &[(*run, 1)]].concat();
        if !nested(&all, 1) {
            return Err("its footprint runs into itself");
        }
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
