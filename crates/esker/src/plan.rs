//! What a rank's requests touch, in the order of the file.
//!
//! A plan is a pure function of the queue. It keeps hyperslabs as patterns and single runs as
//! they are, sorted by where they begin, and is swept once from the lowest byte to the
//! highest: [`Sweep::take`] gives the pieces of the next stretch of the file, sorted, cut at its
//! borders (never inside an element: one that straddles a border belongs to the stretch it
//! begins in), and without overlaps. So only what one stretch holds is ever flattened, and where
//! requests do not interleave nothing is sorted at all (seeds/000 §3.2.4, with the stretch as the
//! group of the second level).

use std::collections::BinaryHeap;
use std::sync::Arc;

use esker_format::runs::{Pattern, Run};

use crate::comb::Comb;
use crate::selection::LogSpace;
use crate::taken::Taken;

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
    size: u64,
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
    fn of_run(&self, pattern: &Pattern, mut number: u64) -> u64 {
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

    /// Calls `each` with the first byte and the number of bytes of everything in it, in no order, and
    /// whether that is one run.
    pub(crate) fn parts(&self, mut each: impl FnMut(u64, u64, bool)) {
        self.singles.iter().for_each(|s| each(s.offset, s.len, true));
        let boxes = self.boxes.iter().map(|(pattern, _)| pattern);
        for pattern in boxes.chain(self.patterns.iter().map(|(pattern, _)| pattern)) {
            each(pattern.first(), pattern.run_count() * pattern.run_len(), false);
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
        let mut summary = Summary::default();
        let mut units: Vec<(u64, u64)> = Vec::new();
        for run in &runs {
            summary.add(run.offset, run.offset + run.len, 1, run.len);
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
            let (first, end) = (runs.first().map_or(0, |r| r.offset), end_of(runs));
            places.iter().for_each(|p| each(&around(p.offset + first, p.offset + end)));
        }
        if let Some((shared, base)) = self.shared() {
            each(&around(base + shared.summary.first, base + shared.summary.end));
        }
    }

    /// The first byte after everything.
    pub(crate) fn end(&self) -> u64 {
        let singles = self.singles.iter().map(|s| s.offset + s.len).max().unwrap_or(0);
        let patterns = self.patterns.iter().map(|(p, _)| p.end()).fold(singles, u64::max);
        let last = |r: &Repeat| r.places.iter().map(|p| p.offset).max().unwrap_or(0);
        let repeats = self.repeats.iter().map(|r| last(r) + end_of(&r.runs));
        let shared = self.shared().map_or(0, |(shared, base)| base + shared.end());
        repeats.fold(patterns.max(shared), u64::max)
    }

    pub(crate) fn summary(&self) -> Summary {
        let mut sum = Summary::default();
        for single in &self.singles {
            sum.add(single.offset, single.offset + single.len, 1, single.len);
        }
        for (pattern, _) in &self.patterns {
            let runs = pattern.run_count();
            sum.add(pattern.first(), pattern.end(), runs, runs * pattern.run_len());
        }
        for (pattern, _) in &self.boxes {
            let runs = pattern.run_count();
            sum.add(pattern.first(), pattern.end(), runs, runs * pattern.run_len());
        }
        for Repeat { runs, places } in &self.repeats {
            let (first, end) = (runs.first().map_or(0, |r| r.offset), end_of(runs));
            let (count, bytes) = (runs.len() as u64, runs.iter().map(|r| r.len).sum());
            for place in places {
                sum.add(place.offset + first, place.offset + end, count, bytes);
            }
        }
        if let Some((shared, base)) = self.shared() {
            let Summary { first, end, runs, bytes } = shared.summary;
            sum.add(base + first, base + end, runs, bytes);
        }
        sum
    }
}

/// The first byte after these runs.
fn end_of(runs: &[Single]) -> u64 {
    runs.iter().map(|s| s.offset + s.len).max().unwrap_or(0)
}

/// A plan in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The lowest byte; `u64::MAX` without any.
    pub(crate) first: u64,
    /// The first byte after the highest.
    pub(crate) end: u64,
    /// Contiguous runs, as the requests have them.
    pub(crate) runs: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl Default for Summary {
    fn default() -> Self {
        Summary { first: u64::MAX, end: 0, runs: 0, bytes: 0 }
    }
}

impl Summary {
    pub(crate) fn add(&mut self, first: u64, end: u64, runs: u64, bytes: u64) {
        self.first = self.first.min(first);
        self.end = self.end.max(end);
        self.runs += runs;
        self.bytes += bytes;
    }

    /// The mean length of a run, at least 1.
    pub(crate) fn mean_run(&self) -> u64 {
        (self.bytes / self.runs.max(1)).max(1)
    }
}

/// A run of the file and the elements of a request that belong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) request: u32,
    pub(crate) element: u64,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// The order in which overlapping pieces were asked for.
    fn order(&self) -> (u32, u64) {
        (self.request, self.element)
    }

    /// The first border of an element at or after `at`, or the nearer end of the piece.
    fn cut(&self, at: u64, size: u64) -> u64 {
        let skipped = at.saturating_sub(self.offset).next_multiple_of(size);
        self.offset + skipped.min(self.len)
    }

    /// The part from `start` to `end`, which are borders of elements within it. `size` is an element's.
    fn part(&self, start: u64, end: u64, size: u64) -> Piece {
        let skipped = (start - self.offset) / size;
        Piece { offset: start, len: end - start, element: self.element + skipped, ..*self }
    }
}

/// Short runs of the file at equal distances, and the elements of a request that belong there, one behind
/// the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CombPiece {
    pub(crate) comb: Comb,
    pub(crate) request: u32,
    pub(crate) element: u64,
}

impl CombPiece {
    /// Calls `each` with what begins in `start..end`, cut there between elements of `size` bytes, if it
    /// begins before `end`.
    fn within(&self, start: u64, end: u64, size: u64, mut each: impl FnMut(CombPiece)) {
        let Comb { offset, len, step, runs } = self.comb;
        // The first run that ends after the start, and the first that begins at or after the end.
        let mut from = match start.checked_sub(offset + len) {
            Some(before) => before / step + 1,
            None => 0,
        };
        let mut to = ((end - 1 - offset) / step + 1).min(runs);
        let run = |number: u64| {
            let Run { offset, len } = self.comb.run(number);
            Piece { offset, len, request: self.request, element: self.element_of(number, size) }
        };
        let cut = |piece: Piece| {
            let (from, to) = (piece.cut(start, size), piece.cut(end, size));
            (from < to).then(|| {
                let Piece { offset, len, request, element } = piece.part(from, to, size);
                CombPiece { comb: Comb::single(Run { offset, len }), request, element }
            })
        };
        if from < to && run(from).offset < start {
            cut(run(from)).into_iter().for_each(&mut each);
            from += 1;
        }
        let last = (from < to && run(to - 1).end() > end).then(|| {
            to -= 1;
            cut(run(to))
        });
        if from < to {
            let (comb, element) = (self.comb.part(from, to - from), self.element_of(from, size));
            each(CombPiece { comb, element, ..*self });
        }
        last.flatten().into_iter().for_each(each);
    }

    /// The first element of the run of this number.
    fn element_of(&self, number: u64, size: u64) -> u64 {
        self.element + number * (self.comb.len / size)
    }
}

/// Something in a plan that begins at `first`: all of a request's single runs, or a pattern.
#[derive(Debug)]
struct Entry<'a> {
    first: u64,
    end: u64,
    request: u32,
    what: What<'a>,
}

#[derive(Debug)]
enum What<'a> {
    Singles(&'a [Single], Shift),
    Pattern(&'a Pattern, u64),
    Box(&'a Pattern, &'a Elements),
}

/// Runs of at most this many bytes are short: a list entry and a call cost more than their bytes.
const SHORT: u64 = 256;

/// So many runs at equal distances are a comb.
const TEETH: u64 = 4;

impl What<'_> {
    /// Its pattern, if its rows are combs of short runs with at most `hole` bytes between them, whose
    /// elements, of `size` bytes, are one behind the other.
    fn combs(&self, hole: u64, size: u64) -> Option<&Pattern> {
        let pattern = match self {
            What::Singles(..) => return None,
            What::Pattern(pattern, _) => pattern,
            What::Box(pattern, elements) => {
                let dense = elements.steps.last().is_some_and(|s| s * size == pattern.run_len());
                dense.then_some(*pattern)?
            }
        };
        let (count, step) = pattern.levels().last()?;
        let regular = *count >= TEETH && pattern.run_len() <= SHORT;
        (regular && step - pattern.run_len() <= hole).then_some(pattern)
    }
}

/// All requests of a rank, by where they begin.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    entries: Vec<Entry<'a>>,
    sizes: Vec<u64>,
    pub(crate) summary: Summary,
}

impl<'a> Plan<'a> {
    /// The plan of the requests' extents; their numbers are the order in which they overlap.
    pub(crate) fn new(extents: impl Iterator<Item = &'a Extent>) -> Plan<'a> {
        let mut entries = Vec::new();
        let mut summary = Summary::default();
        let mut sizes = Vec::new();
        for (request, extent) in extents.enumerate() {
            let request = request as u32;
            sizes.push(extent.size);
            let all = extent.summary();
            summary.add(all.first, all.end, all.runs, all.bytes);
            if let Some(first) = extent.singles.first() {
                let end = end_of(&extent.singles);
                let what = What::Singles(&extent.singles, Shift::default());
                entries.push(Entry { first: first.offset, end, request, what });
            }
            for Repeat { runs, places } in &extent.repeats {
                let (first, end) = (runs.first().map_or(0, |r| r.offset), end_of(runs));
                for place in places {
                    let (first, end) = (first + place.offset, end + place.offset);
                    let what = What::Singles(runs, *place);
                    entries.push(Entry { first, end, request, what });
                }
            }
            if let Some((shared, base)) = extent.shared() {
                let Summary { first, end, .. } = shared.summary;
                let (first, end) = (first + base, end + base);
                let what = What::Singles(&shared.runs, Shift { offset: base, element: 0 });
                entries.push(Entry { first, end, request, what });
            }
            for (pattern, elements) in &extent.boxes {
                let what = What::Box(pattern, elements);
                entries.push(Entry { first: pattern.first(), end: pattern.end(), request, what });
            }
            for (pattern, element) in &extent.patterns {
                let what = What::Pattern(pattern, *element);
                entries.push(Entry { first: pattern.first(), end: pattern.end(), request, what });
            }
        }
        if !entries.is_sorted_by_key(|e| e.first) {
            entries.sort_by_key(|e| e.first);
        }
        Plan { entries, sizes, summary }
    }

    /// Bytes that reading everything takes when holes of at most `sieve` bytes are read along.
    pub(crate) fn sieved(&self, sieve: u64) -> u64 {
        let of_pattern = |pattern: &Pattern| {
            let span = pattern.end() - pattern.first();
            let wanted = pattern.run_count() * pattern.run_len();
            // Holes of one level are alike; a pattern with short ones is read through.
            let mean_hole = (span - wanted) / pattern.run_count();
            if mean_hole <= sieve { span } else { wanted }
        };
        let of_singles = |singles: &[Single]| {
            let mut bytes = 0;
            let mut end = 0;
            for single in singles {
                let hole = single.offset.saturating_sub(end);
                bytes += single.len + if end > 0 && hole <= sieve { hole } else { 0 };
                end = single.offset + single.len;
            }
            bytes
        };
        self.entries
            .iter()
            .map(|entry| match entry.what {
                What::Singles(singles, _) => of_singles(singles),
                What::Pattern(pattern, _) | What::Box(pattern, _) => of_pattern(pattern),
            })
            .sum()
    }

    /// Starts at the lowest byte.
    pub(crate) fn sweep(&self) -> Sweep<'_, 'a> {
        Sweep { plan: self, next: 0, active: Vec::new(), pieces: Vec::new(), combs: Vec::new() }
    }
}

/// What overlapping pieces mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// Writing: the later request wins, so the earlier is trimmed.
    LaterWins,
    /// Reading: everyone gets the bytes.
    Shared,
}

/// A sweep over a plan from the lowest byte to the highest.
pub(crate) struct Sweep<'p, 'a> {
    plan: &'p Plan<'a>,
    /// The first entry that was not reached yet.
    next: usize,
    /// Entries reached and not finished, with the place in their list of single runs.
    active: Vec<(usize, usize)>,
    pieces: Vec<Piece>,
    combs: Vec<CombPiece>,
}

impl Sweep<'_, '_> {
    /// Bytes that the list of pieces takes.
    pub(crate) fn memory(&self) -> u64 {
        let combs = self.combs.capacity() * size_of::<CombPiece>();
        (self.pieces.capacity() * size_of::<Piece>() + combs) as u64
    }

    /// The offset of the next byte at or after `from` that is in the plan, or none. May be
    /// before the first byte of an entry's hole: never later than the true one.
    pub(crate) fn next_offset(&self, from: u64) -> Option<u64> {
        let reached = self.active.iter().map(|(entry, at)| {
            let entry = &self.plan.entries[*entry];
            match entry.what {
                What::Singles(list, shift) => {
                    list.get(*at).map_or(entry.end, |s| s.offset + shift.offset).max(from)
                }
                What::Pattern(pattern, _) | What::Box(pattern, _) => {
                    let run = pattern.runs_after(from).next();
                    run.map_or(entry.end, |(_, run)| run.offset.max(from))
                }
            }
        });
        let waiting = self.plan.entries.get(self.next).map(|e| e.first.max(from));
        reached.chain(waiting).min()
    }

    /// The end of a stretch from `start` on with at most about `most` runs, or one of each entry; `last` is how
    /// long the one before it was.
    pub(crate) fn stretch(&self, start: u64, last: &mut u64, most: u64) -> u64 {
        *last = last.saturating_mul(2).min(self.plan.summary.end - start);
        while *last > 1 && self.runs_within(start, start + *last) > most {
            *last /= 2;
        }
        start + *last
    }

    /// How many runs have something in `start..end`, but for one of each entry.
    fn runs_within(&self, start: u64, end: u64) -> u64 {
        let entries = &self.plan.entries;
        let active = self.active.iter().map(|(number, _)| &entries[*number]);
        let coming = entries[self.next..].iter().take_while(|entry| entry.first < end);
        let before = |entry: &Entry<'_>, place: u64| match entry.what {
            What::Singles(list, shift) => {
                list.partition_point(|s| s.offset + shift.offset < place) as u64
            }
            What::Pattern(pattern, _) | What::Box(pattern, _) => {
                let first = pattern.runs_after(place).next();
                first.map_or(pattern.run_count(), |(number, _)| number)
            }
        };
        active.chain(coming).map(|entry| before(entry, end) - before(entry, start)).sum()
    }

    /// What begins in `start..end`, as [`Sweep::combs`] gives it or else [`Sweep::take`].
    pub(crate) fn take_together(&mut self, start: u64, end: u64, overlap: Overlap) -> Taken<'_> {
        match self.take_combs(start, end, u64::MAX) {
            true => Taken::Combs((&self.combs[..]).into()),
            false => Taken::Pieces(self.take(start, end, overlap).into()),
        }
    }

    /// The pieces in `start..end` as combs, if all of them are in rows of short runs with at most `hole`
    /// bytes between them, which do not interleave with others. Otherwise nothing is taken.
    pub(crate) fn combs(&mut self, start: u64, end: u64, hole: u64) -> Option<&[CombPiece]> {
        self.take_combs(start, end, hole).then_some(&self.combs)
    }

    fn take_combs(&mut self, start: u64, end: u64, hole: u64) -> bool {
        self.reach(end);
        let Plan { entries, sizes, .. } = self.plan;
        let combs = &mut self.combs;
        combs.clear();
        for (number, _) in &self.active {
            let Entry { request, what, .. } = &entries[*number];
            let (request, size) = (*request, sizes[*request as usize]);
            let Some(pattern) = what.combs(hole, size) else { return false };
            let Some((rows, (runs, step))) = pattern.rows() else { return false };
            let len = pattern.run_len();
            for (row, Run { offset, .. }) in
                rows.runs_after(start).take_while(|(_, row)| row.offset < end)
            {
                let element = match what {
                    What::Singles(..) => return false,
                    What::Pattern(_, first) => first + row * runs * (len / size),
                    What::Box(_, elements) => elements.of_run(pattern, row * runs),
                };
                let comb = Comb { offset, len, step, runs };
                let piece = CombPiece { comb, request, element };
                piece.within(start, end, size, |part| combs.push(part));
            }
        }
        let apart = combs.windows(2).all(|w| w[0].comb.end() <= w[1].comb.offset);
        let some = apart && !self.active.is_empty();
        if some {
            self.active.retain(|(number, _)| entries[*number].end > end);
        }
        some
    }

    /// Entries that begin before `end` are active from now on.
    fn reach(&mut self, end: u64) {
        let entries = &self.plan.entries;
        while entries.get(self.next).is_some_and(|e| e.first < end) {
            self.active.push((self.next, 0));
            self.next += 1;
        }
    }

    /// The pieces in `start..end`, sorted and cut there; the last may reach beyond `end` by less
    /// than an element. Each call begins where the one before it ended, or later.
    pub(crate) fn take(&mut self, start: u64, end: u64, overlap: Overlap) -> &[Piece] {
        self.reach(end);
        let entries = &self.plan.entries;
        self.pieces.clear();
        let pieces = &mut self.pieces;
        self.active.retain_mut(|(number, at)| {
            let entry = &entries[*number];
            let size = self.plan.sizes[entry.request as usize];
            let mut add = |piece: Piece| {
                // Most lie within, and dividing by the size costs more than the rest.
                if piece.offset >= start && piece.end() <= end {
                    pieces.push(piece);
                    return;
                }
                if piece.end() <= start {
                    return;
                }
                let (from, to) = (piece.cut(start, size), piece.cut(end, size));
                if from < to {
                    pieces.push(piece.part(from, to, size));
                }
            };
            match entry.what {
                What::Singles(list, shift) => {
                    let mut here = *at;
                    while let Some(s) = list.get(here).filter(|s| s.offset + shift.offset < end) {
                        let (offset, len) = (s.offset + shift.offset, s.len);
                        let (request, element) = (entry.request, s.element + shift.element);
                        add(Piece { offset, len, request, element });
                        here += 1;
                    }
                    // A run that goes on after the end is looked at again.
                    while *at < here && shift.offset + list[*at].offset + list[*at].len <= end {
                        *at += 1;
                    }
                    *at < list.len()
                }
                What::Pattern(pattern, first) => {
                    let per_run = pattern.run_len() / size;
                    let runs = pattern.runs_after(start);
                    for (number, run) in runs.take_while(|(_, run)| run.offset < end) {
                        let element = first + number * per_run;
                        let request = entry.request;
                        add(Piece { offset: run.offset, len: run.len, request, element });
                    }
                    entry.end > end
                }
                What::Box(pattern, elements) => {
                    let runs = pattern.runs_after(start);
                    for (number, run) in runs.take_while(|(_, run)| run.offset < end) {
                        let element = elements.of_run(pattern, number);
                        let request = entry.request;
                        add(Piece { offset: run.offset, len: run.len, request, element });
                    }
                    entry.end > end
                }
            }
        });
        if !pieces.is_sorted_by_key(|p| p.offset) {
            sort_by_offset(pieces, |p| p.offset);
        }
        if overlap == Overlap::LaterWins && pieces.windows(2).any(|w| w[0].end() > w[1].offset) {
            *pieces = later_wins(pieces, &self.plan.sizes);
        }
        pieces
    }
}

/// Sorted pieces without overlaps: where several have a byte, the one asked for last has it.
pub(crate) fn later_wins(sorted: &[Piece], sizes: &[u64]) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::with_capacity(sorted.len());
    // Pieces that reach the current offset, the latest on top.
    let mut open: BinaryHeap<((u32, u64), usize)> = BinaryHeap::new();
    let mut at = 0;
    let mut next = 0;
    loop {
        while open.peek().is_some_and(|(_, piece)| sorted[*piece].end() <= at) {
            open.pop();
        }
        if open.is_empty() {
            match sorted.get(next) {
                None => return out,
                Some(piece) => at = at.max(piece.offset),
            }
        }
        while let Some(piece) = sorted.get(next).filter(|p| p.offset <= at) {
            open.push((piece.order(), next));
            next += 1;
        }
        let Some((_, top)) = open.peek().copied() else { continue };
        if sorted[top].end() <= at {
            continue;
        }
        // The top one holds until it ends or a later one begins.
        let mut until = sorted[top].end();
        for piece in sorted[next..].iter().take_while(|p| p.offset < until) {
            if piece.order() > sorted[top].order() {
                until = piece.offset;
                break;
            }
        }
        let size = sizes[sorted[top].request as usize];
        let part = sorted[top].part(at, until, size);
        match out.last_mut() {
            // Parts of one piece that were cut for nothing grow together again.
            Some(last)
                if last.end() == part.offset
                    && last.request == part.request
                    && last.element + last.len / size == part.element =>
            {
                last.len += part.len;
            }
            _ => out.push(part),
        }
        at = until;
    }
}

/// Sorts by offset, keeping the order of equal ones: a radix sort on the bytes in which the
/// offsets differ, which for a million short runs takes a third of a comparison sort's time.
pub(crate) fn sort_by_offset<T: Copy>(items: &mut Vec<T>, offset: impl Fn(&T) -> u64) {
    const SMALL: usize = 4096;
    if items.len() < SMALL {
        items.sort_by_key(|item| offset(item));
        return;
    }
    let lowest = items.iter().map(&offset).min().unwrap_or(0);
    let highest = items.iter().map(&offset).max().unwrap_or(0);
    let bits = u64::BITS - (highest - lowest).leading_zeros();
    const DIGIT: u32 = 11;
    let mut from = std::mem::take(items);
    let mut to = from.clone();
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |item: &T| ((offset(item) - lowest) >> shift) as usize & ((1 << DIGIT) - 1);
        let mut starts = [0usize; 1 << DIGIT];
        for item in &from {
            starts[digit(item)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            (*start, sum) = (sum, sum + *start);
        }
        for item in &from {
            let place = &mut starts[digit(item)];
            to[*place] = *item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    *items = from;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extent(runs: &[(u64, u64)]) -> Extent {
        let mut extent = Extent::new(1);
        let mut element = 0;
        for (offset, len) in runs {
            extent.push(Pattern::new(*offset, 1, [(*len, 1)].into_iter()), element);
            element += len;
        }
        extent.finish();
        extent
    }

    /// Who has each byte after all requests were applied one after the other.
    fn model(requests: &[Vec<(u64, u64)>]) -> std::collections::BTreeMap<u64, (u32, u64)> {
        let mut bytes = std::collections::BTreeMap::new();
        for (request, runs) in requests.iter().enumerate() {
            let mut element = 0;
            for (offset, len) in runs {
                for i in 0..*len {
                    bytes.insert(offset + i, (request as u32, element));
                    element += 1;
                }
            }
        }
        bytes
    }

    proptest! {
        #[test]
        fn stretches_have_few_runs_and_all_of_them(
            runs in proptest::collection::vec((0u64..300, 1u64..9), 0..40),
            patterns in proptest::collection::vec((0u64..2000, 2u64..30, 2u64..70), 0..3),
            most in 4u64..20,
        ) {
            let (mut at, mut element) = (0, 0);
            let mut extent = Extent::new(1);
            for (gap, len) in runs {
                extent.push_run(Run { offset: at + gap, len }, element);
                (at, element) = (at + gap + len, element + len);
            }
            for (offset, count, step) in patterns {
                extent.push(Pattern::new(offset, 1, [(count, step)].into_iter()), element);
                element += count;
            }
            extent.finish();
            let plan = Plan::new([&extent].into_iter());
            let mut sweep = plan.sweep();
            let (mut at, mut length, mut found) = (plan.summary.first, u64::MAX, 0);
            while let Some(start) = sweep.next_offset(at).filter(|s| *s < plan.summary.end) {
                at = sweep.stretch(start, &mut length, most);
                let pieces = sweep.take(start, at, Overlap::Shared);
                let few = most + plan.entries.len() as u64;
                prop_assert!(at == start + 1 || pieces.len() as u64 <= few);
                found += pieces.iter().map(|piece| piece.len).sum::<u64>();
            }
            prop_assert_eq!(found, element);
        }

        #[test]
        fn a_sweep_gives_every_byte_to_its_last_writer(
            requests in proptest::collection::vec(
                proptest::collection::vec((0u64..300, 1u64..40), 0..6), 1..5),
            step in 1u64..200,
        ) {
            let extents: Vec<Extent> = requests.iter().map(|runs| extent(runs)).collect();
            let plan = Plan::new(extents.iter());
            let mut sweep = plan.sweep();
            let mut found = std::collections::BTreeMap::new();
            let mut at = 0;
            while at < 400 {
                let pieces = sweep.take(at, at + step, Overlap::LaterWins);
                for piece in pieces {
                    prop_assert!(piece.offset >= at && piece.end() <= at + step);
                    for i in 0..piece.len {
                        let byte = (piece.request, piece.element + i);
                        prop_assert!(found.insert(piece.offset + i, byte).is_none());
                    }
                }
                at += step;
                if let Some(next) = sweep.next_offset(at) {
                    prop_assert!(next >= at);
                }
            }
            prop_assert_eq!(found, model(&requests));
        }

        #[test]
        fn combs_are_the_pieces_of_the_same_stretch(
            slabs in proptest::collection::vec(
                (0u64..2000, 1u64..4, proptest::collection::vec((1u64..9, 0u64..3), 1..4)), 1..4),
            step in 1u64..400,
        ) {
            const SIZE: u64 = 4;
            let extents: Vec<Extent> = slabs.iter().map(|(base, run, dims)| {
                let mut distance = run * SIZE;
                let levels = dims.iter().map(|(count, hole)| {
                    let level = (*count, distance + hole * SIZE);
                    distance = level.1 * count;
                    level
                });
                let mut levels: Vec<(u64, u64)> = levels.collect();
                levels.push((*run, SIZE));
                levels.rotate_right(1);
                let mut extent = Extent::new(SIZE);
                extent.push(Pattern::new(*base, SIZE, levels.into_iter().rev()), 0);
                extent.finish();
                extent
            }).collect();
            let plan = Plan::new(extents.iter());
            let (mut one, mut other) = (plan.sweep(), plan.sweep());
            let mut at = 0;
            while at < plan.summary.end {
                let elements = |piece: &Piece| {
                    let Piece { offset, request, element, len } = *piece;
                    (0..len / SIZE).map(move |i| (offset + i * SIZE, request, element + i))
                };
                let expected: Vec<_> =
                    one.take(at, at + step, Overlap::Shared).iter().flat_map(elements).collect();
                let found: Vec<_> = match other.take_together(at, at + step, Overlap::Shared) {
                    Taken::Pieces(pieces) => pieces.iter().flat_map(elements).collect(),
                    Taken::Combs(combs) => combs.iter().flat_map(|c| {
                        (0..c.comb.runs).flat_map(move |n| {
                            let Run { offset, len } = c.comb.run(n);
                            let (request, element) = (c.request, c.element_of(n, SIZE));
                            elements(&Piece { offset, len, request, element })
                        })
                    }).collect(),
                };
                prop_assert_eq!(found, expected);
                at += step;
            }
        }

        #[test]
        fn a_radix_sort_sorts_and_keeps_equals_in_order(
            mut keys in proptest::collection::vec(0u64..1_000_000, 4096..6000)
        ) {
            let mut items: Vec<(u64, usize)> = keys.drain(..).enumerate().map(|(i, k)| (k, i)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|i| i.0);
            sort_by_offset(&mut items, |i| i.0);
            prop_assert_eq!(items, expected);
        }
    }

    #[test]
    fn repeated_runs_are_as_if_each_were_there() {
        let (mut flat, mut repeated) = (Extent::new(2), Extent::new(2));
        let runs: Vec<Single> = [(40, 4, 0), (10, 6, 2), (20, 2, 5)]
            .map(|(offset, len, element)| Single { offset, len, element })
            .into();
        let places: Vec<Shift> =
            (0..5).map(|i| Shift { offset: 100 * i, element: 6 * i }).collect();
        for place in &places {
            for run in &runs {
                let Single { offset, len, element } = *run;
                flat.push_run(Run { offset: offset + place.offset, len }, element + place.element);
            }
        }
        repeated.push_repeated(runs, places);
        flat.finish();
        repeated.finish();
        assert_eq!(flat.end(), repeated.end());
        let (one, other) = (Plan::new([&flat].into_iter()), Plan::new([&repeated].into_iter()));
        assert_eq!(one.summary, other.summary);
        for step in [7, 50, 1000] {
            let (mut one, mut other) = (one.sweep(), other.sweep());
            for at in (0..600).step_by(step) {
                let (from, to) = (at as u64, (at + step) as u64);
                assert_eq!(one.next_offset(from).is_some(), other.next_offset(from).is_some());
                let expected = one.take(from, to, Overlap::Shared).to_vec();
                assert_eq!(other.take(from, to, Overlap::Shared), expected);
            }
        }
    }

    #[test]
    fn neighbours_become_one_run() {
        let extent = extent(&[(10, 5), (15, 5), (30, 2)]);
        assert_eq!(extent.singles.len(), 2);
        assert_eq!(extent.end(), 32);
        let plan = Plan::new([&extent].into_iter());
        assert_eq!(plan.summary, Summary { first: 10, end: 32, runs: 2, bytes: 12 });
        assert_eq!(plan.sieved(9), 12);
        assert_eq!(plan.sieved(10), 22);
    }
}
