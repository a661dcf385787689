//! Where one request's elements are: runs, patterns and lists that come again.

use std::sync::Arc;

use esker_format::runs::{Pattern, Run};

use super::{Summary, sort_by_offset};
use crate::selection::LogSpace;

/// Where one request's elements are in the file.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// Hyperslabs that are one run, by offset.
    singles: Vec<Single>,
    /// The others, with the number of their first element.
    patterns: Vec<(Pattern, u64)>,
    /// Boxes whose runs are not one behind the other in the request.
    boxes: Vec<(Pattern, Elements)>,
    /// Lists of runs that come again.
    repeats: Vec<Repeat>,
    /// A list that other requests have too, and how far it is moved.
    shared: Option<(Arc<SharedRuns>, u64)>,
    /// Bytes of an element in the file.
    pub(super) size: u64,
}

/// Runs that are there once for each of `places`, at other offsets and for other elements.
#[derive(Debug)]
struct Repeat {
    runs: Vec<Single>,
    places: Vec<Shift>,
}

/// The runs of a list of blocks, in numbers that do not depend on where the variable begins.
#[derive(Debug)]
pub(crate) struct SharedRuns {
    /// By offset.
    runs: Vec<Single>,
    summary: Summary,
    /// The units of a fixed length that they lie in: where each begins, and bytes in it.
    pub(crate) units: Vec<(u64, u64)>,
}

impl SharedRuns {
    /// Bytes that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.runs.len() * size_of::<Single>() + self.units.len() * size_of::<(u64, u64)>()
    }

    /// The first byte after the last run.
    pub(crate) fn end(&self) -> u64 {
        self.summary.end
    }

    /// Bytes of all runs.
    pub(crate) fn bytes(&self) -> u64 {
        self.summary.bytes
    }
}

/// Which elements of a request the runs of a pattern are: the first of all, and how far it is from
/// one index of each level to the next.
#[derive(Debug)]
pub(crate) struct Elements {
    pub(crate) first: u64,
    pub(crate) steps: Vec<u64>,
}

impl Elements {
    /// The first element of the run of this number.
    pub(super) fn of_run(&self, pattern: &Pattern, mut number: u64) -> u64 {
        let levels = pattern.levels().iter().zip(&self.steps).rev();
        levels.fold(self.first, |element, ((count, _), step)| {
            let index = number % count;
            number /= count;
            element + index * step
        })
    }
}

/// How far a list of runs is moved: in the file, and in the elements of the request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shift {
    pub(crate) offset: u64,
    pub(crate) element: u64,
}

/// One run of a request, and its first element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Single {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) element: u64,
}

impl Extent {
    pub(crate) fn new(size: u64) -> Extent {
        Extent { size, ..Extent::default() }
    }

    /// Adds a hyperslab whose first element is number `element` of the request.
    pub(crate) fn push(&mut self, pattern: Pattern, element: u64) {
        match pattern.single() {
            Some(run) => self.push_run(run, element),
            None => self.patterns.push((pattern, element)),
        }
    }

    /// Adds a box; its elements step as its pattern's levels do.
    pub(crate) fn push_box(&mut self, pattern: Pattern, elements: Elements) {
        match pattern.single() {
            Some(run) => self.push_run(run, elements.first),
            None => self.boxes.push((pattern, elements)),
        }
    }

    /// Adds a hyperslab that is one run.
    pub(crate) fn push_run(&mut self, run: Run, element: u64) {
        // Neighbours in memory and in the file are one run.
        if let Some(last) = self.singles.last_mut()
            && last.offset + last.len == run.offset
            && last.element + last.len / self.size == element
        {
            last.len += run.len;
            return;
        }
        self.singles.push(Single { offset: run.offset, len: run.len, element });
    }

    /// Adds runs that come once for each of `places`, moved there.
    pub(crate) fn push_repeated(&mut self, mut runs: Vec<Single>, places: Vec<Shift>) {
        if runs.is_empty() {
            return;
        }
        if !runs.is_sorted_by_key(|s| s.offset) {
            sort_by_offset(&mut runs, |s| s.offset);
        }
        self.repeats.push(Repeat { runs, places });
    }

    /// Makes what is in it, single runs from `base` on, something to share; units are `unit` bytes
    /// long from there. `None`, and nothing changes, if there is something else in it.
    pub(crate) fn share(&mut self, base: u64, unit: u64) -> Option<Arc<SharedRuns>> {
        let others = self.patterns.len() + self.boxes.len() + self.repeats.len();
        let first = self.singles.first()?.offset;
        if others > 0 || self.shared.is_some() || first < base || unit == 0 {
            return None;
        }
        let mut runs = std::mem::take(&mut self.singles);
        runs.iter_mut().for_each(|run| run.offset -= base);
        let summary = Summary::of_runs(&runs);
        let mut units: Vec<(u64, u64)> = Vec::new();
        for run in &runs {
            let (mut at, mut left) = (run.offset, run.len);
            while left > 0 {
                let start = at - at % unit;
                let n = left.min(start + unit - at);
                match units.last_mut() {
                    Some((last, bytes)) if *last == start => *bytes += n,
                    _ => units.push((start, n)),
                }
                (at, left) = (at + n, left - n);
            }
        }
        // Where runs overlap.
        units.iter_mut().for_each(|(_, bytes)| *bytes = (*bytes).min(unit));
        let shared = Arc::new(SharedRuns { runs, summary, units });
        self.shared = Some((shared.clone(), base));
        Some(shared)
    }

    /// Shared runs, from `base` on, of elements of `size` bytes.
    pub(crate) fn of_shared(shared: Arc<SharedRuns>, base: u64, size: u64) -> Extent {
        Extent { shared: Some((shared, base)), size, ..Extent::default() }
    }

    /// The list that it shares with other requests, if it does, and how far that is moved.
    pub(crate) fn shared(&self) -> Option<(&SharedRuns, u64)> {
        self.shared.as_ref().map(|(shared, base)| (&**shared, *base))
    }

    /// Everything is so far away from where it was.
    pub(crate) fn shift(&mut self, by: i64) {
        self.singles.iter_mut().for_each(|s| s.offset = s.offset.wrapping_add_signed(by));
        self.patterns.iter_mut().for_each(|(pattern, _)| pattern.shift(by));
        self.boxes.iter_mut().for_each(|(pattern, _)| pattern.shift(by));
        let runs = self.repeats.iter_mut().flat_map(|repeat| &mut repeat.runs);
        runs.for_each(|s| s.offset = s.offset.wrapping_add_signed(by));
        if let Some((_, base)) = &mut self.shared {
            *base = base.wrapping_add_signed(by);
        }
    }

    /// Sorts what the caller gave in another order.
    pub(crate) fn finish(&mut self) {
        if !self.singles.is_sorted_by_key(|s| s.offset) {
            sort_by_offset(&mut self.singles, |s| s.offset);
        }
        self.singles.shrink_to_fit();
    }

    /// The single runs, and the patterns with their first elements, in the order of the elements.
    pub(crate) fn by_element(&mut self) -> (&[Single], &[(Pattern, u64)]) {
        if !self.singles.is_sorted_by_key(|s| s.element) {
            sort_by_offset(&mut self.singles, |s| s.element);
        }
        (&self.singles, &self.patterns)
    }

    /// Calls `each` with the first byte and the number of bytes of everything in it but what it
    /// [shares](Self::shared), in no order, and whether that is one run.
    pub(crate) fn parts_not_shared(&self, mut each: impl FnMut(u64, u64, bool)) {
        self.each_not_shared(|what, summary| match what {
            What::Singles(runs, shift) => {
                runs.iter().for_each(|run| each(run.offset + shift.offset, run.len, true));
            }
            What::Pattern(..) | What::Box(..) => {
                each(summary.first, summary.bytes, summary.runs == 1)
            }
        });
    }

    /// The same places in the classic file, of what is in a log's space.
    pub(crate) fn in_file(&self, space: &LogSpace) -> Extent {
        let width = space.width;
        let mut file = Extent::new(width);
        for Single { offset, len, element } in &self.singles {
            file.push_run(Run { offset: space.byte(*offset), len: len * width }, *element);
        }
        for (pattern, element) in &self.patterns {
            file.push(space.pattern(pattern), *element);
        }
        for Repeat { runs, places } in &self.repeats {
            let run = |s: &Single| Single { offset: s.offset * width, len: s.len * width, ..*s };
            let place = |p: &Shift| Shift { offset: space.byte(p.offset), ..*p };
            file.push_repeated(runs.iter().map(run).collect(), places.iter().map(place).collect());
        }
        file.finish();
        file
    }

    /// Calls `each` with every hyperslab in it, and with what is around the other lists of runs.
    pub(crate) fn patterns(&self, mut each: impl FnMut(&Pattern)) {
        let around = |from: u64, to: u64| Pattern::of_levels(from, to - from, Vec::new());
        self.singles.iter().for_each(|s| each(&around(s.offset, s.offset + s.len)));
        self.patterns.iter().for_each(|(pattern, _)| each(pattern));
        self.boxes.iter().for_each(|(pattern, _)| each(pattern));
        for Repeat { runs, places } in &self.repeats {
            let Summary { first, end, .. } = Summary::of_runs(runs);
            places.iter().for_each(|p| each(&around(p.offset + first, p.offset + end)));
        }
        if let Some((shared, base)) = self.shared() {
            each(&around(base + shared.summary.first, base + shared.summary.end));
        }
    }

    /// What is in it as hyperslabs, with the first element of each, if it is nothing else and they are at most `most`.
    pub(crate) fn hyperslabs(&self, most: usize) -> Option<Vec<(Pattern, u64)>> {
        let others = self.boxes.len() + self.repeats.len() + usize::from(self.shared.is_some());
        if others > 0 || self.singles.len() + self.patterns.len() > most {
            return None;
        }
        let run = |s: &Single| (Pattern::of_levels(s.offset, s.len, Vec::new()), s.element);
        Some(self.singles.iter().map(run).chain(self.patterns.iter().cloned()).collect())
    }

    /// The first byte after everything.
    pub(crate) fn end(&self) -> u64 {
        self.summary().end
    }

    /// Where the first run begins, and where the last one ends; `None` if there is none.
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        let mut found: Option<(u64, u64)> = None;
        let mut join = |from: u64, to: u64| {
            let (first, end) = found.unwrap_or((from, to));
            found = Some((first.min(from), end.max(to)));
        };
        let around = |runs: &[Single]| {
            let first = runs.iter().map(|run| run.offset).min();
            first.zip(runs.iter().map(|run| run.offset + run.len).max())
        };
        if let Some((from, to)) = around(&self.singles) {
            join(from, to);
        }
        for pattern in self.patterns.iter().map(|(p, _)| p).chain(self.boxes.iter().map(|(p, _)| p))
        {
            join(pattern.first(), pattern.end());
        }
        for Repeat { runs, places } in &self.repeats {
            if let Some((from, to)) = around(runs) {
                places.iter().for_each(|place| join(place.offset + from, place.offset + to));
            }
        }
        if let Some((shared, base)) = self.shared() {
            join(base + shared.summary.first, base + shared.summary.end);
        }
        found
    }

    /// All of it in numbers.
    pub(crate) fn summary(&self) -> Summary {
        let mut sum = Summary::default();
        self.each(|_, summary| sum.join(&summary));
        sum
    }

    /// Calls `each` with everything in it, and that in numbers.
    pub(super) fn each<'e>(&'e self, mut each: impl FnMut(What<'e>, Summary)) {
        if let Some((shared, base)) = &self.shared {
            let shift = Shift { offset: *base, element: 0 };
            each(What::Singles(&shared.runs, shift), shared.summary.moved(*base));
        }
        self.each_not_shared(each);
    }

    /// The same but what it shares: the one place that knows all other forms that a request's runs have.
    fn each_not_shared<'e>(&'e self, mut each: impl FnMut(What<'e>, Summary)) {
        if !self.singles.is_empty() {
            each(What::Singles(&self.singles, Shift::default()), Summary::of_runs(&self.singles));
        }
        for Repeat { runs, places } in &self.repeats {
            let summary = Summary::of_runs(runs);
            for place in places {
                each(What::Singles(runs, *place), summary.moved(place.offset));
            }
        }
        for (pattern, elements) in &self.boxes {
            each(What::Box(pattern, elements), Summary::of_pattern(pattern));
        }
        for (pattern, element) in &self.patterns {
            each(What::Pattern(pattern, *element), Summary::of_pattern(pattern));
        }
    }
}

/// Something in an extent: a list of runs that is moved, or a pattern.
#[derive(Debug)]
pub(super) enum What<'a> {
    Singles(&'a [Single], Shift),
    Pattern(&'a Pattern, u64),
    Box(&'a Pattern, &'a Elements),
}
