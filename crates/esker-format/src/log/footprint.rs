//! Which elements a write touches, apart from where its first one is.

use crate::varint;

/// A run of elements, relative to the lowest element of its footprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementRun {
    /// Its first element.
    pub start: u64,
    /// How many.
    pub len: u64,
}

/// Which elements of an array, in the order of the payload, relative to the lowest of them.
///
/// Elements are numbered linearly, the last dimension fastest, within one record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Footprint {
    /// Runs of `run` elements, repeated `count` times in steps of `step` elements for each
    /// level, the last level fastest: a hyperslab.
    Block {
        /// Elements of a run.
        run: u64,
        /// Count and step of each level, slowest first.
        levels: Vec<(u64, u64)>,
    },
    /// A list of runs, in the order of the payload.
    Runs(Vec<ElementRun>),
}

const BLOCK: u8 = 0;
const RUNS: u8 = 1;
const COMPRESSED: u8 = 2;

/// Lists whose encoding is shorter than this are not worth compressing.
const WORTH_COMPRESSING: usize = 64;

/// How long a compressed list may be at most, so that a few bytes cannot ask for much memory.
fn longest(stored: usize) -> usize {
    stored.saturating_mul(1000).max(4 << 20)
}

impl Footprint {
    /// How many elements there are; `None` if they cannot be counted or there are none.
    pub fn elements(&self) -> Option<u64> {
        let n = match self {
            Footprint::Block { run, levels } => {
                levels.iter().try_fold(*run, |n, (count, _)| n.checked_mul(*count))?
            }
            Footprint::Runs(runs) => runs.iter().try_fold(0u64, |n, r| n.checked_add(r.len))?,
        };
        (n > 0 && n <= i64::MAX as u64).then_some(n)
    }

    /// The first element after the highest; `None` if it is beyond counting.
    pub fn span(&self) -> Option<u64> {
        match self {
            Footprint::Block { run, levels } => {
                levels.iter().try_fold(*run, |end, (count, step)| {
                    end.checked_add(count.checked_sub(1)?.checked_mul(*step)?)
                })
            }
            Footprint::Runs(runs) => {
                runs.iter().try_fold(0u64, |end, r| Some(end.max(r.start.checked_add(r.len)?)))
            }
        }
    }

    /// Bytes that it takes in memory, about.
    pub fn memory(&self) -> usize {
        size_of::<Footprint>()
            + match self {
                Footprint::Block { levels, .. } => levels.len() * size_of::<(u64, u64)>(),
                Footprint::Runs(runs) => runs.len() * size_of::<ElementRun>(),
            }
    }

    /// Its definition in a log: how many elements it has and what they span, then which.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.elements().unwrap_or(0));
        varint::put(&mut bytes, self.span().unwrap_or(0));
        bytes.extend(self.encode_body());
        bytes
    }

    /// How many elements a footprint has and what they span, from the beginning of its definition.
    pub fn outline(mut definition: &[u8]) -> Option<(u64, u64)> {
        let elements = varint::take(&mut definition)?;
        let span = varint::take(&mut definition)?;
        let sound = elements > 0 && elements <= i64::MAX as u64 && span <= i64::MAX as u64;
        sound.then_some((elements, span))
    }

    /// The footprint of a definition, if that is of a block.
    pub fn decode_block(definition: &[u8]) -> Option<Footprint> {
        let (elements, _) = Footprint::outline(definition)?;
        let mut rest = definition;
        varint::take(&mut rest)?;
        varint::take(&mut rest)?;
        match rest.first() {
            Some(&BLOCK) => Footprint::decode(definition, elements),
            _ => None,
        }
    }

    fn encode_body(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Footprint::Block { run, levels } => {
                bytes.push(BLOCK);
                varint::put(&mut bytes, *run);
                varint::put(&mut bytes, levels.len() as u64);
                for (count, step) in levels {
                    varint::put(&mut bytes, *count);
                    varint::put(&mut bytes, *step);
                }
            }
            Footprint::Runs(runs) => {
                bytes.push(RUNS);
                varint::put(&mut bytes, runs.len() as u64);
                let mut at = 0;
                let gaps = runs.iter().map(|run| {
                    let before = at;
                    at = run.start.wrapping_add(run.len);
                    (before, run.start)
                });
                // Gaps and lengths apart: the lengths are often all the same.
                put_repeats(&mut bytes, gaps.map(|(before, start)| folded(before, start)));
                put_repeats(&mut bytes, runs.iter().map(|run| run.len));
                compress(&mut bytes);
            }
        }
        bytes
    }

    /// The footprint whose whole definition `bytes` is. It has at most `most` elements, or it is
    /// refused before memory is taken for it.
    pub fn decode(bytes: &[u8], most: u64) -> Option<Footprint> {
        let (elements, span) = Footprint::outline(bytes).filter(|(n, _)| *n <= most)?;
        let mut body = bytes;
        varint::take(&mut body)?;
        varint::take(&mut body)?;
        let (kind, mut rest) = body.split_first()?;
        let inflated;
        let footprint = match *kind {
            BLOCK => {
                let run = varint::take(&mut rest)?;
                let count = usize::try_from(varint::take(&mut rest)?).ok()?;
                if count > rest.len() / 2 {
                    return None;
                }
                let level = |_| Some((varint::take(&mut rest)?, varint::take(&mut rest)?));
                let levels = (0..count).map(level).collect::<Option<Vec<_>>>()?;
                // Nobody writes what comes again in the same place, and asking for it divides by the step.
                if levels.iter().any(|(_, step)| *step == 0) {
                    return None;
                }
                Footprint::Block { run, levels }
            }
            RUNS => decode_runs(&mut rest, elements)?,
            COMPRESSED => {
                let len = usize::try_from(varint::take(&mut rest)?).ok()?;
                if len > longest(rest.len()) {
                    return None;
                }
                inflated = zstd::bulk::decompress(rest, len).ok()?;
                rest = &inflated;
                decode_runs(&mut rest, elements)?
            }
            _ => return None,
        };
        let sound = rest.is_empty()
            && footprint.elements() == Some(elements)
            && footprint.span() == Some(span);
        sound.then_some(footprint)
    }
}

fn folded(before: u64, start: u64) -> u64 {
    let difference = start.wrapping_sub(before) as i64;
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn decode_runs(rest: &mut &[u8], most: u64) -> Option<Footprint> {
    let count = varint::take(rest)?;
    // Every run has an element.
    if count > most {
        return None;
    }
    let gaps = take_repeats(rest, count)?;
    let lens = take_repeats(rest, count)?;
    let mut runs = Vec::with_capacity(gaps.len());
    let mut at = 0u64;
    for (gap, len) in gaps.into_iter().zip(lens) {
        let difference = (gap >> 1) as i64 ^ -((gap & 1) as i64);
        let start = at.wrapping_add(difference as u64);
        at = start.checked_add(len)?;
        if len == 0 || at > i64::MAX as u64 {
            return None;
        }
        runs.push(ElementRun { start, len });
    }
    Some(Footprint::Runs(runs))
}

/// Appends numbers so that what repeats is short: alternately, how many different numbers
/// follow and those, and how often the last of them comes again.
fn put_repeats(bytes: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) {
    // Shorter repetitions cost more than they save.
    const LEAST: u64 = 3;
    let mut literal: Vec<u64> = Vec::new();
    let mut again = 0;
    let mut flush = |literal: &mut Vec<u64>, again: &mut u64| {
        if literal.is_empty() {
            return;
        }
        varint::put(bytes, literal.len() as u64);
        literal.drain(..).for_each(|n| varint::put(bytes, n));
        varint::put(bytes, *again);
        *again = 0;
    };
    for number in numbers {
        match literal.last() {
            Some(last) if *last == number => {
                again += 1;
                continue;
            }
            Some(last) if again > 0 && again < LEAST => {
                let last = *last;
                literal.extend(std::iter::repeat_n(last, again as usize));
                again = 0;
            }
            Some(_) if again > 0 => flush(&mut literal, &mut again),
            _ => {}
        }
        literal.push(number);
    }
    flush(&mut literal, &mut again);
}

fn take_repeats(bytes: &mut &[u8], count: u64) -> Option<Vec<u64>> {
    let mut numbers: Vec<u64> = Vec::new();
    while (numbers.len() as u64) < count {
        let literals = varint::take(bytes)?;
        if literals == 0 || literals > bytes.len() as u64 {
            return None;
        }
        for _ in 0..literals {
            numbers.push(varint::take(bytes)?);
        }
        let again = varint::take(bytes)?;
        let left = count.checked_sub(numbers.len() as u64)?;
        if again > left {
            return None;
        }
        let last = *numbers.last()?;
        numbers.extend(std::iter::repeat_n(last, again as usize));
    }
    Some(numbers)
}

/// Replaces an encoded list by its compressed form where that is smaller.
fn compress(bytes: &mut Vec<u8>) {
    const LEVEL: i32 = 3;
    let body = &bytes[1..];
    if body.len() < WORTH_COMPRESSING {
        return;
    }
    let Ok(small) = zstd::bulk::compress(body, LEVEL) else { return };
    let mut packed = vec![COMPRESSED];
    varint::put(&mut packed, body.len() as u64);
    packed.extend_from_slice(&small);
    if packed.len() < bytes.len() && body.len() <= longest(small.len()) {
        *bytes = packed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn footprint() -> impl Strategy<Value = Footprint> {
        let levels = prop::collection::vec((1u64..1000, 1u64..100_000), 0..4);
        let block = (1u64..1000, levels).prop_map(|(run, levels)| Footprint::Block { run, levels });
        let run = (0u64..1 << 40, prop_oneof![3 => Just(2u64), 1 => 1u64..500]);
        let runs = prop::collection::vec(run, 1..200).prop_map(|list| {
            Footprint::Runs(
                list.into_iter().map(|(start, len)| ElementRun { start, len }).collect(),
            )
        });
        prop_oneof![block, runs]
    }

    #[test]
    fn a_level_without_a_step_is_refused() {
        let levels = |step| Footprint::Block { run: 2, levels: vec![(3, step)] };
        assert!(Footprint::decode(&levels(1).encode(), 6).is_some());
        assert_eq!(Footprint::decode(&levels(0).encode(), 6), None);
    }

    proptest! {
        #[test]
        fn a_definition_comes_back(footprint in footprint()) {
            let bytes = footprint.encode();
            let elements = footprint.elements().unwrap();
            prop_assert_eq!(Footprint::decode(&bytes, elements), Some(footprint.clone()));
            prop_assert_eq!(Footprint::decode(&bytes, elements - 1), None);
        }

        #[test]
        fn damaged_definitions_do_no_harm(
            footprint in footprint(),
            at in any::<prop::sample::Index>(),
            byte: u8,
            noise in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = footprint.encode();
            *at.get_mut(&mut bytes) = byte;
            let _ = Footprint::decode(&bytes, 1 << 20);
            let _ = Footprint::decode(&noise, 1 << 20);
        }
    }

    #[test]
    fn a_regular_list_is_a_few_bytes() {
        let runs = (0..100_000).map(|i| ElementRun { start: 10 * i, len: 3 }).collect();
        assert!(Footprint::Runs(runs).encode().len() < 24);
    }

    #[test]
    fn a_list_of_short_runs_takes_a_twentieth_of_starts_and_counts() {
        // Like the columns of an unstructured grid over levels: 32 bytes a run in two dimensions.
        let runs: Vec<ElementRun> = (0..50_000u64)
            .map(|i| ElementRun { start: 7 * i + (i * i) % 5, len: 1 + i % 2 })
            .collect();
        let plain = runs.len() * 32;
        assert!(Footprint::Runs(runs).encode().len() < plain / 20);
    }
}
