//! The footprints that a log has already, so that equal ones are stored once.

use std::sync::Arc;

use esker_format::log::{Definition, ElementRun, Footprint};

use super::parts::Shape;
use crate::bounded::Bounded;
use crate::mixed::{ByNumber, mix};

/// Footprints, with their numbers and places. Those that had to go are stored again.
#[derive(Debug)]
pub(crate) struct Known {
    footprints: Bounded<Name, (Held, Definition), ByNumber>,
    budget: u64,
}

/// What a footprint is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    /// A hash of its numbers.
    Numbers(u64),
    /// Where a shared one lies.
    Shared(usize),
}

#[derive(Debug)]
enum Held {
    Own(Footprint),
    /// One that was met, held so that nothing else comes to lie where it is.
    Shared(Arc<Footprint>),
}

impl Known {
    /// None yet, and never more than about `budget` bytes of them.
    pub(crate) fn new(budget: u64) -> Known {
        Known { footprints: Bounded::default(), budget }
    }

    /// The definition of an equal footprint.
    pub(crate) fn find(&mut self, shape: &Shape<'_>) -> Option<Definition> {
        if let Shape::Shared(footprint) = shape
            && let Some((Held::Shared(held), known)) = self.footprints.get(&shared(footprint))
            && Arc::ptr_eq(held, footprint)
        {
            return Some(known.clone());
        }
        let (held, known) = self.footprints.get(&Name::Numbers(hash(shape)))?;
        let known = known.clone();
        match held {
            Held::Own(footprint) if equal(footprint, shape) => self.meet(shape, &known),
            _ => return None,
        }
        Some(known)
    }

    fn meet(&mut self, shape: &Shape<'_>, known: &Definition) {
        if let Shape::Shared(footprint) = shape {
            // Whoever shares it has its memory.
            let held = Held::Shared(Arc::clone(footprint));
            self.footprints.put(shared(footprint), (held, known.clone()), 0, self.budget);
        }
    }

    pub(crate) fn insert(&mut self, shape: &Shape<'_>, footprint: Footprint, known: Definition) {
        self.meet(shape, &known);
        let (name, memory) = (Name::Numbers(hash(shape)), footprint.memory() as u64);
        self.footprints.put(name, (Held::Own(footprint), known), memory, self.budget);
    }

    /// Forgets everything: the log begins anew.
    pub(crate) fn clear(&mut self) {
        self.footprints.clear();
    }

    /// Bytes that are kept.
    pub(crate) fn memory(&self) -> u64 {
        self.footprints.memory()
    }
}

fn shared(footprint: &Arc<Footprint>) -> Name {
    Name::Shared(Arc::as_ptr(footprint) as usize)
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
