//! What it costs to reverse a segment with so many bytes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Sizes;
use super::priced::Priced;
use crate::schedule::binomial;
use crate::schedule::mixed::MixedTable;

/// More than any run.
pub(crate) const NEVER: u64 = u64::MAX / 8;

/// Segments up to this length with sizes that differ are planned by trying everything.
pub(super) const SHORT: u64 = 12;

/// States that are looked at when the next to be kept is sought.
const EVERY: u64 = 2048;

/// Tables of more cells than this are not made; the formula of Revolve stands in.
const MOST_CELLS: u64 = 1 << 24;

/// Where keeping a state takes time, costs are in these parts of a step.
const FINE: u64 = 1024;

/// What segments cost: forward steps, or parts of them where keeping a state takes time.
#[derive(Debug)]
pub(crate) struct Estimate {
    /// Whether restart data are all that the adjoint of a step depends on: then a state that is in
    /// place is reversed without running its step.
    pub(crate) deps_are_state: bool,
    table: RefCell<Option<MixedTable>>,
    /// Where keeping a state takes time.
    priced: Option<Priced>,
    steps: u64,
}

/// A segment: states from `from` on, steps up to `to`, and bytes that are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) free: u64,
}

/// The best way through a segment by trying everything, with the sizes that are known or predicted.
struct Search<'a> {
    sizes: &'a Sizes,
    deps_are_state: bool,
    /// What a step costs, and what keeping a state does.
    step: u64,
    price: u64,
    fresh: HashMap<Segment, u64>,
    kept: HashMap<Segment, u64>,
}

impl<'a> Search<'a> {
    fn new(estimate: &Estimate, sizes: &'a Sizes) -> Search<'a> {
        let (deps_are_state, step) = (estimate.deps_are_state, estimate.step());
        let price = estimate.price();
        let (fresh, kept) = (HashMap::new(), HashMap::new());
        Search { sizes, deps_are_state, step, price, fresh, kept }
    }

    fn record(&self) -> u64 {
        u64::from(!self.deps_are_state)
    }

    /// From a state that is not kept.
    fn fresh(&mut self, s: Segment) -> u64 {
        let Segment { from, to, free } = s;
        if to - from == 1 {
            return self.record();
        }
        if let Some(&cost) = self.fresh.get(&s) {
            return cost;
        }
        let mut best = NEVER;
        if let Some(free) = free.checked_sub(self.sizes.of(from)) {
            if !self.deps_are_state {
                best = 1 + self.fresh(Segment { from: from + 1, to, free });
            }
            for middle in from + 1..to {
                best = best.min(self.split(from, middle, to, free) + self.price);
            }
        }
        let best = best.min(NEVER);
        self.fresh.insert(s, best);
        best
    }

    fn split(&mut self, from: u64, middle: u64, to: u64, free: u64) -> u64 {
        let right = self.fresh(Segment { from: middle, to, free });
        if right >= NEVER {
            return NEVER;
        }
        (middle - from) * self.step + right + self.kept(Segment { from, to: middle, free })
    }

    /// From a state that is kept beside the free bytes.
    fn kept(&mut self, s: Segment) -> u64 {
        let Segment { from, to, free } = s;
        if to - from == 1 {
            return self.record();
        }
        if let Some(&cost) = self.kept.get(&s) {
            return cost;
        }
        let mut best = NEVER;
        if !self.deps_are_state {
            let free = free + self.sizes.of(from);
            // Given up, it is worth something only as room for the dependencies of its step.
            if let Some(free) = free.checked_sub(self.sizes.of(from)) {
                best = 1 + self.fresh(Segment { from: from + 1, to, free });
            }
        }
        for middle in from + 1..to {
            best = best.min(self.split(from, middle, to, free));
        }
        self.kept.insert(s, best);
        best
    }
}

impl Estimate {
    pub(crate) fn new(steps: u64, deps_are_state: bool) -> Estimate {
        Estimate { deps_are_state, table: RefCell::new(None), priced: None, steps }
    }

    /// Says how many steps it costs to keep a state. Where dependencies of steps are kept as well, it counts for nothing.
    pub(crate) fn set_price(&mut self, price: f64) {
        if self.deps_are_state && !self.priced.as_ref().is_some_and(|old| old.is_about(price)) {
            self.priced = Priced::new(self.steps, price);
        }
    }

    /// Whether keeping a state takes time.
    pub(crate) fn has_price(&self) -> bool {
        self.priced.is_some()
    }

    fn step(&self) -> u64 {
        if self.priced.is_some() { FINE } else { 1 }
    }

    fn price(&self) -> u64 {
        self.priced.as_ref().map_or(0, |priced| {
            (priced.of(2, 1, false) - priced.of(2, 1, true)).mul_add(FINE as f64, 0.5) as u64
        })
    }

    /// A cost in steps.
    pub(crate) fn in_steps(&self, cost: u64) -> f64 {
        cost.min(NEVER) as f64 / self.step() as f64
    }

    /// Forward steps with equal sizes: n steps, s units, one of which holds the first state if `kept`.
    pub(crate) fn equal(&self, n: u64, s: u64, kept: bool) -> u64 {
        if n <= 1 {
            return u64::from(!self.deps_are_state) * n;
        }
        if s == 0 {
            return NEVER;
        }
        let s = s.min(n - 1);
        if let Some(priced) = &self.priced {
            let cost = priced.of(n, s, kept) * FINE as f64;
            return if cost < NEVER as f64 { cost.round() as u64 } else { NEVER };
        }
        if self.deps_are_state {
            return binomial::forward_steps(n, s).map_or(NEVER, |runs| runs - n);
        }
        if n <= s + 1 {
            return n;
        }
        self.grow(s);
        let table = self.table.borrow();
        let found = table.as_ref().filter(|t| t.reach().1 >= s).and_then(|t| t.cost_of(n, s, kept));
        found.or_else(|| binomial::forward_steps(n, s)).unwrap_or(NEVER)
    }

    fn grow(&self, units: u64) {
        let mut table = self.table.borrow_mut();
        let have = table.as_ref().map_or(0, |t| t.reach().1);
        let width = self.steps + 1;
        if have >= units || units.saturating_mul(width) > MOST_CELLS {
            return;
        }
        let wanted = (units * 2).min(self.steps).min(MOST_CELLS / width);
        *table = MixedTable::with_costs(self.steps, wanted).ok();
    }

    /// The cost of a segment whose first state is not kept.
    pub(crate) fn fresh(&self, s: Segment, sizes: &Sizes) -> u64 {
        let units = sizes.fit(s.free, s.from, s.to);
        self.equal(s.to - s.from, units, false)
    }

    /// The cost of a segment whose first state is kept, beside the free bytes.
    pub(crate) fn kept(&self, s: Segment, sizes: &Sizes) -> u64 {
        let units = sizes.fit(s.free, s.from, s.to).saturating_add(1);
        self.equal(s.to - s.from, units, true)
    }

    /// Where to keep a state next, from `at`, with the newest checkpoint at `below`: the state that costs least in
    /// all, and that cost; the last before `end` is the one to be reversed at once.
    pub(crate) fn next_state(
        &self,
        below: Option<u64>,
        at: u64,
        end: u64,
        free: u64,
        sizes: &Sizes,
    ) -> (u64, u64) {
        let bottom = below.unwrap_or(at);
        let is_short = end - bottom <= SHORT && !sizes.alike(bottom, end);
        let mut search = is_short.then(|| Search::new(self, sizes));
        let mut cost = |p: u64| {
            let left = below.filter(|&below| below < p).map(|from| Segment { from, to: p, free });
            let right = Segment { from: p, to: end, free };
            let (left, right) = match &mut search {
                Some(search) => (left.map_or(0, |s| search.kept(s)), search.fresh(right)),
                None => (left.map_or(0, |s| self.kept(s, sizes)), self.here(right, sizes)),
            };
            left.saturating_add(right).saturating_add((p - at) * self.step()).min(NEVER)
        };
        if below.is_none() {
            return (at, cost(at));
        }
        let mut best = (at, cost(at));
        let mut consider = |p: u64, best: &mut (u64, u64)| {
            let found = cost(p);
            // Of equals the farther one: fewer checkpoints.
            if found <= best.1 {
                *best = (p, found);
            }
        };
        let reach = end - at;
        // All of them, up to some thousand steps; a plan of many more looks at some first.
        let stride = (reach / EVERY).max(1);
        let mut p = at + 1;
        while p < end {
            consider(p, &mut best);
            p += stride;
        }
        if stride > 1 {
            let middle = best.0;
            for p in middle.saturating_sub(stride).max(at + 1)..(middle + stride).min(end) {
                consider(p, &mut best);
            }
            consider(end - 1, &mut best);
        }
        best
    }

    /// The cost from a state that may be kept now.
    fn here(&self, s: Segment, sizes: &Sizes) -> u64 {
        if s.to - s.from == 1 {
            return u64::from(!self.deps_are_state);
        }
        if sizes.of(s.from) > s.free {
            return NEVER;
        }
        self.fresh(s, sizes)
    }

    /// Whether, at a state to be kept, the dependencies of its step are worth more than restart data; else how
    /// many steps to run. `free` is without this state.
    pub(crate) fn kind(&self, at: u64, end: u64, free: u64, sizes: &Sizes) -> Option<u64> {
        let restart = self.next_state(Some(at), at + 1, end, free, sizes);
        if self.deps_are_state {
            return Some(restart.0 - at);
        }
        let next = Segment { from: at + 1, to: end, free };
        let deps = if end - at <= SHORT && !sizes.alike(at, end) {
            Search::new(self, sizes).fresh(next)
        } else {
            self.fresh(next, sizes)
        };
        (deps > restart.1).then_some(restart.0 - at)
    }

    /// What it costs to reverse the steps `from..to` from restart data at `below`.
    pub(crate) fn again(&self, below: u64, from: u64, to: u64, free: u64, sizes: &Sizes) -> u64 {
        if from >= to {
            return 0;
        }
        let segment = Segment { from, to, free };
        if from == below {
            return self.kept(segment, sizes);
        }
        match self.fresh(segment, sizes) {
            NEVER.. => (from..to).map(|step| step - below + 1).sum(),
            cost => (from - below).saturating_add(cost),
        }
    }

    /// Whether a checkpoint that was loaded is better given up, so that the dependencies of all steps up to `end`
    /// find room. Without `guess`, sizes that are not known count as the largest that they can be.
    pub(crate) fn gives_up(
        &self,
        at: u64,
        end: u64,
        free: u64,
        sizes: &Sizes,
        guess: bool,
    ) -> bool {
        if self.deps_are_state || end - at == 1 {
            return end - at == 1;
        }
        self.all_fit(at, end, free.saturating_add(sizes.of(at)), sizes, guess)
    }

    /// Whether the dependencies of all steps but the last fit.
    pub(crate) fn all_fit(&self, at: u64, end: u64, free: u64, sizes: &Sizes, guess: bool) -> bool {
        let mut room = free;
        (at..end - 1).all(|step| {
            let bytes = if guess { sizes.of(step) } else { sizes.at_most(step) };
            let left = room.checked_sub(bytes);
            room = left.unwrap_or(0);
            left.is_some()
        })
    }
}
