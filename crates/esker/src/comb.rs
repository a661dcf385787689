//! Short runs at equal distances, moved all together: an inner stride, or a column.
//!
//! Where a row of a selection has thousands of runs of an element or two, a list entry and a call for each
//! of them cost ten times as much as the elements. As long as nothing else lies between them they stay
//! together, here and on the wire, and a loop for the length of the run gathers or scatters them.

use esker_format::runs::Run;

/// `runs` runs of `len` bytes in the file, one every `step` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Comb {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) step: u64,
    pub(crate) runs: u64,
}

impl Comb {
    /// One run.
    pub(crate) fn single(run: Run) -> Comb {
        Comb { offset: run.offset, len: run.len, step: run.len, runs: 1 }
    }

    /// The first byte after the last run.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.span()
    }

    /// From the first byte to the last.
    pub(crate) fn span(&self) -> u64 {
        (self.runs - 1) * self.step + self.len
    }

    /// Bytes of all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.runs * self.len
    }

    /// Bytes between two runs.
    pub(crate) fn hole(&self) -> u64 {
        if self.runs == 1 { 0 } else { self.step - self.len }
    }

    /// The run of this number.
    pub(crate) fn run(&self, number: u64) -> Run {
        Run { offset: self.offset + number * self.step, len: self.len }
    }

    /// All runs.
    #[cfg(test)]
    pub(crate) fn each(&self) -> impl Iterator<Item = Run> + use<> {
        let comb = *self;
        (0..comb.runs).map(move |number| comb.run(number))
    }

    /// `runs` of them from the run of number `from` on.
    pub(crate) fn part(&self, from: u64, runs: u64) -> Comb {
        Comb { offset: self.run(from).offset, runs, ..*self }
    }

    /// Takes the runs out of `from`, the bytes from the first of them on, and puts them one behind
    /// the other into `to`, which has room for just them.
    pub(crate) fn gather(&self, from: &[u8], to: &mut [u8]) {
        fn each<const W: usize>(from: &[u8], step: usize, to: &mut [u8]) {
            let (to, _) = to.as_chunks_mut::<W>();
            for (from, to) in from.chunks(step).zip(to) {
                if let Some(run) = from.first_chunk() {
                    *to = *run;
                }
            }
        }
        let (step, len) = (self.step as usize, self.len as usize);
        match len {
            1 => each::<1>(from, step, to),
            2 => each::<2>(from, step, to),
            4 => each::<4>(from, step, to),
            8 => each::<8>(from, step, to),
            _ => {
                for (from, to) in from.chunks(step).zip(to.chunks_exact_mut(len)) {
                    to.copy_from_slice(&from[..len]);
                }
            }
        }
    }

    /// Puts what lies one behind the other in `from` into the runs, in the bytes `to` from the
    /// first of them on.
    pub(crate) fn scatter(&self, from: &[u8], to: &mut [u8]) {
        fn each<const W: usize>(from: &[u8], to: &mut [u8], step: usize) {
            let (from, _) = from.as_chunks::<W>();
            for (from, to) in from.iter().zip(to.chunks_mut(step)) {
                if let Some(run) = to.first_chunk_mut() {
                    *run = *from;
                }
            }
        }
        let (step, len) = (self.step as usize, self.len as usize);
        match len {
            1 => each::<1>(from, to, step),
            2 => each::<2>(from, to, step),
            4 => each::<4>(from, to, step),
            8 => each::<8>(from, to, step),
            _ => {
                for (from, to) in from.chunks_exact(len).zip(to.chunks_mut(step)) {
                    to[..len].copy_from_slice(from);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_gathered_is_what_the_runs_have(
            len in 1u64..20, hole in 1u64..30, runs in 1u64..40, more in 0u64..5,
        ) {
            let comb = Comb { offset: 100, len, step: len + hole, runs };
            let file: Vec<u8> = (0..comb.span() + more).map(|i| i as u8).collect();
            let mut out = vec![0; comb.bytes() as usize];
            comb.gather(&file, &mut out);
            let bytes = |run: Run| &file[(run.offset - 100) as usize..(run.end() - 100) as usize];
            let expected: Vec<u8> = comb.each().flat_map(bytes).copied().collect();
            prop_assert_eq!(&out, &expected);
            prop_assert_eq!(comb.run(runs - 1).end(), comb.end());

            let mut back = vec![255; file.len()];
            comb.scatter(&out, &mut back);
            for (i, byte) in back.iter().enumerate() {
                let known = i < comb.span() as usize && (i as u64 % comb.step) < len;
                prop_assert_eq!(*byte, if known { file[i] } else { 255 });
            }
        }
    }
}
