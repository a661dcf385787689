//! The bytes of a hyperslab of one variable: runs of equal length at regular distances.

use esker_format::runs::Pattern;

/// Which indices of one dimension: `count` of them from `start` in steps of `stride`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) stride: u64,
}

impl Along {
    /// All of a dimension.
    pub(crate) fn all(len: u64) -> Along {
        Along { start: 0, count: len, stride: 1 }
    }
}

/// Its runs, at offsets from the variable's first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runs(Pattern);

impl Runs {
    /// The runs of a hyperslab of an array of this shape with elements of `size` bytes.
    pub(crate) fn new(size: u64, shape: &[u64], along: &[Along]) -> Runs {
        let (mut base, mut step) = (0, size);
        let mut dims = Vec::with_capacity(along.len());
        for (extent, along) in shape.iter().zip(along).rev() {
            base += along.start * step;
            dims.push((along.count, along.stride * step));
            step = step.saturating_mul(*extent);
        }
        Runs(Pattern::new(base, size, dims.into_iter().rev()))
    }

    /// How many bytes all runs have.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.run_len() * self.0.run_count()
    }

    /// From the first byte of the first run to the last byte of the last.
    pub(crate) fn span(&self) -> u64 {
        match self.bytes() {
            0 => 0,
            _ => self.0.end() - self.0.first(),
        }
    }

    /// How much is worth reading at once where one of the runs is wanted: all, when most of
    /// it is wanted; a page, when the next one is far.
    pub(crate) fn ahead(&self) -> u64 {
        const CLOSE: u64 = 64 << 10;
        const PAGE: u64 = 4 << 10;
        let distance = self.0.levels().last().map_or(0, |(_, step)| *step);
        match self.bytes().saturating_mul(4) >= self.span() {
            true => self.span().max(CLOSE),
            false if distance <= CLOSE => CLOSE,
            false => PAGE,
        }
    }

    /// Calls `each` with the offset and length of every run, in order, none longer than
    /// `most` bytes.
    pub(crate) fn try_each<E>(
        &self,
        most: u64,
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.bytes() == 0 {
            return Ok(());
        }
        for (_, run) in self.0.runs_after(0) {
            let mut at = run.offset;
            while at < run.end() {
                let n = (run.end() - at).min(most);
                each(at, n)?;
                at += n;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(runs: &Runs) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let collected: Result<(), ()> = runs.try_each(1 << 20, |offset, len| {
            found.push((offset, len));
            Ok(())
        });
        collected.unwrap();
        found
    }

    fn along(start: u64, count: u64, stride: u64) -> Along {
        Along { start, count, stride }
    }

    #[test]
    fn everything_is_one_run() {
        let runs = Runs::new(4, &[3, 5], &[Along::all(3), Along::all(5)]);
        assert_eq!(all(&runs), [(0, 60)]);
        assert_eq!((runs.bytes(), runs.span()), (60, 60));
        assert_eq!(all(&Runs::new(8, &[], &[])), [(0, 8)]);
    }

    #[test]
    fn runs_come_in_the_order_of_the_elements() {
        let runs = Runs::new(2, &[4, 10], &[along(1, 2, 2), along(3, 2, 4)]);
        assert_eq!(all(&runs), [(26, 2), (34, 2), (66, 2), (74, 2)]);
        assert_eq!((runs.bytes(), runs.span()), (8, 50));
    }

    #[test]
    fn nothing_selected_has_no_runs() {
        assert_eq!(all(&Runs::new(2, &[4, 10], &[along(0, 0, 1), Along::all(10)])), []);
        assert_eq!(all(&Runs::new(2, &[4, 10], &[Along::all(4), along(0, 0, 1)])), []);
    }

    #[test]
    fn long_runs_are_cut() {
        let mut found = Vec::new();
        let runs = Runs::new(4, &[5], &[Along::all(5)]);
        let cut: Result<(), ()> = runs.try_each(8, |offset, len| {
            found.push((offset, len));
            Ok(())
        });
        cut.unwrap();
        assert_eq!(found, [(0, 8), (8, 8), (16, 4)]);
    }
}
