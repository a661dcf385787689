//! The footprints that a log has already, so that equal ones are stored once.

use std::sync::Arc;

use esker_format::log::{ElementRun, Footprint};

use super::mixed::{NumberMap, mix};
use super::parts::Shape;

/// Bytes that the table may take; beyond it, it is emptied, and footprints are stored again.
const MOST: usize = 32 << 20;

#[derive(Debug, Default)]
pub(crate) struct Known {
    table: NumberMap<u64, Vec<(Footprint, u64)>>,
    /// Shared footprints that were met, held so that nothing else comes to lie where they are.
    met: NumberMap<usize, (Arc<Footprint>, u64)>,
    memory: usize,
}

impl Known {
    /// The number of an equal footprint.
    pub(crate) fn find(&mut self, shape: &Shape<'_>) -> Option<u64> {
        if let Shape::Shared(footprint) = shape
            && let Some((_, number)) = self.met.get(&(Arc::as_ptr(footprint) as usize))
        {
            return Some(*number);
        }
        let candidates = self.table.get(&hash(shape))?;
        let number = candidates.iter().find(|(footprint, _)| equal(footprint, shape))?.1;
        self.meet(shape, number);
        Some(number)
    }

    fn meet(&mut self, shape: &Shape<'_>, number: u64) {
        if let Shape::Shared(footprint) = shape {
            self.met.insert(Arc::as_ptr(footprint) as usize, (Arc::clone(footprint), number));
        }
    }

    pub(crate) fn insert(&mut self, shape: &Shape<'_>, footprint: Footprint, number: u64) {
        self.memory += footprint.memory() + 64;
        if self.memory > MOST {
            self.clear();
            self.memory = footprint.memory() + 64;
        }
        self.meet(shape, number);
        self.table.entry(hash(shape)).or_default().push((footprint, number));
    }

    /// Forgets everything: the log begins anew.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.met.clear();
        self.memory = 0;
    }
}

fn equal(footprint: &Footprint, shape: &Shape<'_>) -> bool {
    match (footprint, shape) {
        (known, Shape::Shared(other)) => known == &***other,
        (Footprint::Block { run, levels }, Shape::Block { run: r, levels: l }) => {
            run == r && levels == l
        }
        (Footprint::Runs(known), Shape::Runs { .. }) => {
            shape.runs().is_some_and(|runs| known.iter().copied().eq(runs))
        }
        _ => false,
    }
}

/// Fast rather than good: what it finds is compared.
fn hash(shape: &Shape<'_>) -> u64 {
    match shape {
        Shape::Block { run, levels } => of_block(*run, levels),
        Shape::Runs { .. } => of_runs(shape.runs().into_iter().flatten()),
        Shape::Shared(footprint) => match &***footprint {
            Footprint::Block { run, levels } => of_block(*run, levels),
            Footprint::Runs(runs) => of_runs(runs.iter().copied()),
        },
    }
}

fn of_block(run: u64, levels: &[(u64, u64)]) -> u64 {
    levels.iter().fold(mix(1, run), |h, (count, step)| mix(mix(h, *count), *step))
}

fn of_runs(runs: impl Iterator<Item = ElementRun>) -> u64 {
    runs.fold(2, |h, run| mix(h, run.start ^ run.len.rotate_left(32)))
}
