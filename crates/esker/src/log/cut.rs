//! Entries of filtered variables are cut to a size that can be decoded at once.

use std::ops::Range;

use esker_format::log::{ElementRun, Footprint, Records};

/// A part of a request that owns its footprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) records: Records,
    pub(crate) first: u64,
    pub(crate) footprint: Footprint,
    pub(crate) elements: Range<u64>,
}

impl Slice {
    /// The shape that its elements have in the payload: what filters of several dimensions see.
    pub(crate) fn shape(&self) -> Vec<usize> {
        let inner = match &self.footprint {
            Footprint::Block { run, levels } => {
                levels.iter().map(|(count, _)| *count).chain([*run]).collect()
            }
            Footprint::Runs(_) => vec![self.footprint.elements().unwrap_or(0)],
        };
        shape_of(self.records.count, inner)
    }

    /// The same elements, in the same order, in slices of at most `most` elements.
    pub(crate) fn cut(self, most: u64, out: &mut Vec<Slice>) {
        let most = most.max(1);
        let count = self.elements.end - self.elements.start;
        if count <= most {
            out.push(self);
            return;
        }
        let Slice { records, first, footprint, elements } = self;
        let at = |done: u64, n: u64| elements.start + done..elements.start + done + n;
        if records.count > 1 {
            let each = count / records.count;
            for (i, n) in steps(records.count, most / each) {
                let first_record = records.first + i * records.step;
                let records = Records { first: first_record, count: n, step: records.step };
                let footprint = footprint.clone();
                let elements = at(i * each, n * each);
                Slice { records, first, footprint, elements }.cut(most, out);
            }
            return;
        }
        match footprint {
            Footprint::Block { run, levels } => match levels.split_first() {
                Some(((rows, step), inner)) => {
                    let each = count / rows;
                    for (i, n) in steps(*rows, most / each) {
                        let mut levels = inner.to_vec();
                        if n > 1 {
                            levels.insert(0, (n, *step));
                        }
                        let footprint = Footprint::Block { run, levels };
                        let (first, elements) = (first + i * step, at(i * each, n * each));
                        Slice { records, first, footprint, elements }.cut(most, out);
                    }
                }
                None => {
                    for (i, n) in steps(run, most) {
                        let footprint = Footprint::Block { run: n, levels: Vec::new() };
                        let (first, elements) = (first + i, at(i, n));
                        out.push(Slice { records, first, footprint, elements });
                    }
                }
            },
            Footprint::Runs(runs) => {
                let mut done = 0;
                let mut now: Vec<ElementRun> = Vec::new();
                let mut held = 0;
                let mut close = |now: &mut Vec<ElementRun>, held: &mut u64| {
                    let base = now.iter().map(|r| r.start).min().unwrap_or(0);
                    now.iter_mut().for_each(|r| r.start -= base);
                    let footprint = Footprint::Runs(std::mem::take(now));
                    let (first, elements) = (first + base, at(done, *held));
                    done += *held;
                    *held = 0;
                    out.push(Slice { records, first, footprint, elements });
                };
                for run in runs {
                    for (i, n) in steps(run.len, most) {
                        if held + n > most {
                            close(&mut now, &mut held);
                        }
                        now.push(ElementRun { start: run.start + i, len: n });
                        held += n;
                    }
                }
                if held > 0 {
                    close(&mut now, &mut held);
                }
            }
        }
    }
}

/// The shape of a payload: records, then the levels and the run of a block, or the length of a
/// list, without what is 1.
pub(crate) fn shape_of(records: u64, inner: Vec<u64>) -> Vec<usize> {
    let all = [vec![records], inner].concat();
    let shape: Vec<usize> = all.into_iter().filter(|n| *n != 1).map(|n| n as usize).collect();
    if shape.is_empty() { vec![1] } else { shape }
}

/// `0..count` in pieces of `most`, at least 1: where each begins and how long it is.
fn steps(count: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = most.max(1);
    (0..count.div_ceil(most)).map(move |i| (i * most, most.min(count - i * most)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The record and element of each element of a slice, in the payload's order.
    fn places(slice: &Slice) -> Vec<(u64, u64)> {
        let inner: Vec<u64> = match &slice.footprint {
            Footprint::Runs(runs) => runs.iter().flat_map(|r| r.start..r.start + r.len).collect(),
            Footprint::Block { run, levels } => {
                let starts = levels.iter().fold(vec![0], |starts: Vec<u64>, (count, step)| {
                    starts.iter().flat_map(|s| (0..*count).map(move |i| s + i * step)).collect()
                });
                starts.into_iter().flat_map(|s| s..s + run).collect()
            }
        };
        let Records { first, count, step } = slice.records;
        let records = (0..count).map(|i| first + i * step);
        records.flat_map(|r| inner.iter().map(move |e| (r, slice.first + e))).collect()
    }

    proptest! {
        #[test]
        fn slices_have_the_elements_of_the_whole_in_order(
            records in 1u64..4,
            levels in prop::collection::vec((1u64..5, 1u64..50), 0..3),
            run in 1u64..7,
            list in prop::option::of(prop::collection::vec((0u64..99, 1u64..9), 1..20)),
            most in 1u64..30,
        ) {
            let footprint = match list {
                Some(list) => {
                    let base = list.iter().map(|(s, _)| *s).min().unwrap();
                    let run = |(s, len): (u64, u64)| ElementRun { start: s - base, len };
                    Footprint::Runs(list.into_iter().map(run).collect())
                }
                None => Footprint::Block { run, levels },
            };
            let count = footprint.elements().unwrap() * records;
            let whole = Slice {
                records: Records { first: 5, count: records, step: 2 },
                first: 7,
                footprint,
                elements: 100..100 + count,
            };
            let mut slices = Vec::new();
            whole.clone().cut(most, &mut slices);
            let mut at = 100;
            let mut found = Vec::new();
            for slice in &slices {
                prop_assert_eq!(slice.elements.start, at);
                at = slice.elements.end;
                prop_assert!(slice.elements.end - slice.elements.start <= most);
                prop_assert_eq!(slice.shape().iter().product::<usize>() as u64,
                    slice.elements.end - slice.elements.start);
                found.extend(places(slice));
            }
            prop_assert_eq!(found, places(&whole));
        }
    }
}
