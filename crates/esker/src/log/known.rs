//! The footprints that a log has already, so that equal ones are stored once.

use std::collections::HashMap;

use esker_format::log::{ElementRun, Footprint};

use super::parts::Shape;

/// Bytes that the table may take; beyond it, it is emptied, and footprints are stored again.
const MOST: usize = 32 << 20;

#[derive(Debug, Default)]
pub(crate) struct Known {
    table: HashMap<u64, Vec<(Footprint, u64)>>,
    memory: usize,
}

impl Known {
    /// The number of an equal footprint.
    pub(crate) fn find(&self, shape: &Shape<'_>) -> Option<u64> {
        let candidates = self.table.get(&hash(shape))?;
        candidates.iter().find(|(footprint, _)| equal(footprint, shape)).map(|(_, n)| *n)
    }

    pub(crate) fn insert(&mut self, shape: &Shape<'_>, footprint: Footprint, number: u64) {
        self.memory += footprint.memory() + 64;
        if self.memory > MOST {
            self.table.clear();
            self.memory = footprint.memory() + 64;
        }
        self.table.entry(hash(shape)).or_default().push((footprint, number));
    }

    /// Forgets everything: the log begins anew.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.memory = 0;
    }
}

fn equal(footprint: &Footprint, shape: &Shape<'_>) -> bool {
    match (footprint, shape) {
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
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, n: u64| (hash.rotate_left(5) ^ n).wrapping_mul(MIX);
    match shape {
        Shape::Block { run, levels } => {
            levels.iter().fold(mix(1, *run), |h, (count, step)| mix(mix(h, *count), *step))
        }
        Shape::Runs { .. } => {
            let add = |h, run: ElementRun| mix(h, run.start ^ run.len.rotate_left(32));
            shape.runs().into_iter().flatten().fold(2, add)
        }
    }
}
