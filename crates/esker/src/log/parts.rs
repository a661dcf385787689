//! A request as a log has it: records, first element and footprint of each part.

use std::ops::Range;
use std::sync::Arc;

use esker_format::log::{ElementRun, Footprint, Records};
use esker_format::runs::Pattern;

use super::memo::Parts;
use crate::plan::{Extent, Single};
use crate::request::Request;

/// Elements of a request that are one entry.
#[derive(Debug)]
pub(crate) struct Part<'e> {
    pub(crate) records: Records,
    /// The lowest element of a record.
    pub(crate) first: u64,
    pub(crate) shape: Shape<'e>,
    /// Which elements of the request.
    pub(crate) elements: Range<u64>,
}

/// A footprint that need not be made in order to be compared.
#[derive(Debug)]
pub(crate) enum Shape<'e> {
    Block {
        run: u64,
        levels: &'e [(u64, u64)],
    },
    /// One that is known.
    Shared(&'e Arc<Footprint>),
    /// Runs of one record, whose elements begin at `base` in the log's space.
    Runs {
        runs: &'e [Single],
        base: u64,
    },
}

impl Shape<'_> {
    /// The runs, relative to the lowest element.
    pub(crate) fn runs(&self) -> Option<impl Iterator<Item = ElementRun> + Clone> {
        match self {
            Shape::Block { .. } | Shape::Shared(_) => None,
            Shape::Runs { runs, base } => {
                let relative = move |s: &Single| ElementRun { start: s.offset - base, len: s.len };
                Some(runs.iter().map(relative))
            }
        }
    }

    pub(crate) fn footprint(&self) -> Footprint {
        match self {
            Shape::Block { run, levels } => Footprint::Block { run: *run, levels: levels.to_vec() },
            Shape::Shared(footprint) => Footprint::clone(footprint),
            Shape::Runs { .. } => Footprint::Runs(self.runs().into_iter().flatten().collect()),
        }
    }
}

/// Calls `each` with the parts of a request whose places are in the space of a log, in the order of its elements.
pub(crate) fn each_part_of<'b, E>(
    request: &mut Request<'b>,
    record_step: u64,
    mut each: impl FnMut(&mut Request<'b>, Part<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut extent = std::mem::take(&mut request.extent);
    let known = request.parts.clone().and_then(|(known, record)| {
        let parts = known.downcast::<Parts>().ok()?;
        Some((parts, record))
    });
    let done = match known {
        Some((parts, record)) => parts.items.iter().try_for_each(|item| {
            let records = Records::one(record);
            let (first, shape) = (item.first, Shape::Shared(&item.footprint));
            each(request, Part { records, first, shape, elements: item.elements.clone() })
        }),
        None => each_part(&mut extent, record_step, |part| each(request, part)),
    };
    request.extent = extent;
    done
}

/// Calls `each` with the parts of an extent in [`crate::selection::Space::Log`], in the order of
/// the elements. `record_step` is 0 for a variable without records.
pub(crate) fn each_part<E>(
    extent: &mut Extent,
    record_step: u64,
    mut each: impl FnMut(Part<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut singles, mut patterns) = extent.by_element();
    while !singles.is_empty() || !patterns.is_empty() {
        let until = patterns.first().map_or(u64::MAX, |(_, element)| *element);
        if let Some(first) = singles.first().filter(|s| s.element < until) {
            let record = first.offset.checked_div(record_step).unwrap_or(0);
            let mut next = first.element;
            // An element that goes to two places comes twice, and a payload has it once.
            let same = |s: &&Single| {
                let follows = s.element == std::mem::replace(&mut next, s.element + s.len);
                follows
                    && s.element < until
                    && s.offset.checked_div(record_step).unwrap_or(0) == record
            };
            let count = singles.iter().take_while(same).count();
            let (now, later) = singles.split_at(count);
            singles = later;
            each(of_runs(now, record, record_step))?;
        } else if let Some(((pattern, element), later)) = patterns.split_first() {
            patterns = later;
            each(of_pattern(pattern, *element, record_step))?;
        }
    }
    Ok(())
}

fn of_runs(runs: &[Single], record: u64, record_step: u64) -> Part<'_> {
    let origin = record * record_step;
    let base = runs.iter().map(|s| s.offset).min().unwrap_or(origin);
    let start = runs.first().map_or(0, |s| s.element);
    let count: u64 = runs.iter().map(|s| s.len).sum();
    let shape = match runs {
        [one] => Shape::Block { run: one.len, levels: &[] },
        _ => Shape::Runs { runs, base },
    };
    let (records, first) = (Records::one(record), base - origin);
    Part { records, first, shape, elements: start..start + count }
}

fn of_pattern(pattern: &Pattern, element: u64, record_step: u64) -> Part<'_> {
    let (records, first, levels) = in_records(pattern, record_step);
    let elements = element..element + pattern.run_count() * pattern.run_len();
    Part { records, first, shape: Shape::Block { run: pattern.run_len(), levels }, elements }
}

/// A hyperslab in the space of a log: its records, and the first element and the levels in each.
pub(super) fn in_records(pattern: &Pattern, record_step: u64) -> (Records, u64, &[(u64, u64)]) {
    let record = pattern.first().checked_div(record_step).unwrap_or(0);
    let first = pattern.first() - record * record_step;
    match pattern.levels().split_first() {
        Some(((count, step), inner)) if record_step > 0 && *step >= record_step => {
            let records = Records { first: record, count: *count, step: step / record_step };
            (records, first, inner)
        }
        _ => (Records::one(record), first, pattern.levels()),
    }
}
