//! Bytes instead of a number of checkpoints.

mod cost;
mod priced;
mod sizes;

use std::collections::VecDeque;

pub use sizes::Sizes;

use super::{Action, Data, Place, Result, Schedule, ScheduleError, same_steps};
use cost::Estimate;

/// Times of one state, measured or guessed, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A forward step.
    pub step: f64,
    /// Encoding a state.
    pub encode: f64,
    /// Decoding it.
    pub decode: f64,
    /// Writing an encoded state to disk.
    pub write: f64,
    /// Reading it.
    pub read: f64,
}

impl Default for Costs {
    /// Transfers cost nothing: disk is used like memory.
    fn default() -> Self {
        Costs { step: 1.0, encode: 0.0, decode: 0.0, write: 0.0, read: 0.0 }
    }
}

/// What becomes of a state that was encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Where it is kept; [`Place::Nowhere`] if it is not.
    pub place: Place,
    /// Checkpoints that are given up for it.
    pub given_up: Vec<(u64, Data, Place)>,
}

/// What to do at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// Run on to another.
    Advance(u64),
    /// Keep this of it, and run its step.
    Keep(&'static [Data], Place),
    /// Give up the newest checkpoint, and decide again.
    Shorten,
}

/// A checkpoint within the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    step: u64,
    place: Place,
    kind: Data,
    bytes: u64,
}

/// Plans with bytes of memory and disk, for states whose sizes differ and are known only once they are
/// encoded.
///
/// After each action that keeps something, [`Budget::encoded`] is told how many bytes it has (restart data and
/// dependencies apart where both are kept), and says what becomes of it; without that, the predicted size counts. A plan is made anew at every state where something may be
/// kept, with the bytes that are free then. A budget is never exceeded: what is too large goes
/// to disk, replaces what costs least to lose, or is not kept.
///
/// With equal sizes this is the optimum of [`Mixed`](super::Mixed), or of
/// [`Revolve`](super::Revolve) where the adjoint of a step depends on nothing but its state.
#[derive(Debug)]
pub struct Budget {
    steps: u64,
    end: u64,
    at: Option<u64>,
    first: bool,
    done: bool,
    items: Vec<Item>,
    limits: [u64; 2],
    /// Bytes of the disk that are worth their time.
    disk_in_use: u64,
    sizes: Sizes,
    estimate: Estimate,
    costs: Costs,
    /// Whether the model waits while states are encoded and written.
    waits: bool,
    /// Whether a step may be kept once only.
    single: bool,
    /// Whether sizes are told: then a state may be encoded to learn its size.
    told: bool,
    /// A state that is being encoded to learn its size, and whose fate is decided then.
    probed: Option<u64>,
    queue: VecDeque<Action>,
}

fn tier(place: Place) -> Option<usize> {
    match place {
        Place::Memory => Some(0),
        Place::Disk => Some(1),
        Place::Work | Place::Nowhere => None,
    }
}

impl Budget {
    /// A run of so many steps whose states have at most `raw` bytes, with `memory` and `disk` bytes for
    /// checkpoints.
    pub fn new(steps: u64, raw: u64, memory: u64, disk: u64) -> Result<Budget> {
        if steps == 0 {
            return Err(ScheduleError::NoSteps);
        }
        if steps > 1 << 24 {
            return Err(ScheduleError::TooLong { steps, most: 1 << 24 });
        }
        Ok(Budget {
            steps,
            end: steps,
            at: Some(0),
            first: true,
            done: false,
            items: Vec::new(),
            limits: [memory, disk],
            disk_in_use: disk,
            sizes: Sizes::new(steps, raw),
            estimate: Estimate::new(steps, false),
            costs: Costs::default(),
            waits: false,
            single: false,
            told: false,
            probed: None,
            queue: VecDeque::new(),
        })
    }

    /// Whether the adjoint of a step depends on nothing but the state before it: then what restarts the
    /// model is all that is ever kept.
    pub fn deps_are_state(mut self, yes: bool) -> Budget {
        self.estimate = Estimate::new(self.steps, yes);
        self
    }

    /// Keeps restart data or dependencies of a step, never both at one time: for those who carry out actions and
    /// know checkpoints by their step alone. Costs a step or two of the whole run.
    pub fn one_of_a_step(mut self) -> Budget {
        self.single = true;
        self
    }

    /// Goes on where another run ended: the model at state `at`, the adjoint at state `end`, and these
    /// checkpoints (step, place, bytes) left. Without `at` the newest of them is loaded first.
    pub fn resume(mut self, at: Option<u64>, end: u64, kept: &[(u64, Place, u64)]) -> Budget {
        let item = |&(step, place, bytes)| Item { step, place, kind: Data::Restart, bytes };
        self.items = kept.iter().map(item).filter(|item| item.step < end).collect();
        self.items.sort_by_key(|item| item.step);
        for &(step, _, bytes) in kept {
            self.sizes.learn(step, bytes);
        }
        self.first = end == self.steps;
        (self.at, self.end) = (at, end);
        self
    }

    /// What steps and transfers cost, as far as is known now.
    pub fn set_costs(&mut self, costs: Costs) {
        self.costs = costs;
        self.estimate.set_price(self.price());
        self.weigh_disk();
    }

    /// Whether the model waits while states are encoded and written; else that is done beside it.
    pub fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// How many steps it costs to keep a state, beside what is done while the next step is run.
    fn price(&self) -> f64 {
        let Costs { step, encode, write, .. } = self.costs;
        // Where some are in memory and others on disk, the disk is weighed apart.
        let write = if self.is_all_on_disk() { write } else { 0.0 };
        match self.waits {
            true => (encode + write) / step,
            false => (encode.max(write) / step - 1.0).max(0.0),
        }
    }

    /// Whether memory holds nothing.
    fn is_all_on_disk(&self) -> bool {
        self.limits[0] < self.sizes.of(0)
    }

    /// The size of a state, as far as is known.
    pub fn predicted(&self, step: u64) -> u64 {
        self.sizes.of(step)
    }

    /// Says the size of a state before it is kept.
    pub fn learn(&mut self, step: u64, bytes: u64) {
        self.sizes.learn(step, bytes);
    }

    /// Forgets the sizes that are known, because states will have others from now on. What is kept has the bytes that it has.
    pub fn forget_sizes(&mut self) {
        self.sizes.forget();
    }

    /// Bytes in use in memory and on disk.
    pub fn used(&self) -> [u64; 2] {
        let mut used = [0; 2];
        for item in &self.items {
            if let Some(tier) = tier(item.place) {
                used[tier] += item.bytes;
            }
        }
        used
    }

    /// Bytes of the budgets.
    pub fn limits(&self) -> [u64; 2] {
        self.limits
    }

    /// A tier has turned out to be smaller: a full disk.
    pub fn limit(&mut self, place: Place, bytes: u64) {
        if let Some(tier) = tier(place) {
            self.limits[tier] = self.limits[tier].min(bytes);
            self.weigh_disk();
        }
    }

    /// Forgets a checkpoint that was lost.
    pub fn lost(&mut self, step: u64, what: Data) {
        self.items.retain(|item| (item.step, item.kind) != (step, what));
    }

    /// A checkpoint that is elsewhere than was planned.
    pub fn moved(&mut self, step: u64, what: Data, place: Place) {
        for item in self.items.iter_mut().filter(|i| (i.step, i.kind) == (step, what)) {
            item.place = place;
        }
    }

    /// Where the adjoint is.
    pub fn end(&self) -> u64 {
        self.end
    }

    fn free(&self) -> [u64; 2] {
        let used = self.used();
        [
            self.limits[0].saturating_sub(used[0]),
            self.limits[1].min(self.disk_in_use).saturating_sub(used[1]),
        ]
    }

    fn all_free(&self) -> u64 {
        let [memory, disk] = self.free();
        memory.saturating_add(disk)
    }

    /// How much of the disk is worth its time: as many states there as make the run shortest.
    fn weigh_disk(&mut self) {
        let Costs { step, write, read, .. } = self.costs;
        self.disk_in_use = self.limits[1];
        // Where all states are on disk each is read once, and their price is part of every plan.
        let is_priced = self.estimate.has_price() && self.is_all_on_disk();
        if write + read <= 0.0 || self.limits[1] == 0 || step <= 0.0 || is_priced {
            return;
        }
        let end = self.end.max(1);
        let fit = |bytes| self.sizes.fit(bytes, 0, end).min(end);
        let (memory, disk) = (fit(self.limits[0]), fit(self.limits[1]));
        let time = |on_disk: u64| {
            let runs = self.estimate.in_steps(self.estimate.equal(end, memory + on_disk, false));
            // Each is written once and read about once; those below are read more often, but those are few.
            runs * step + on_disk as f64 * (write + read)
        };
        let mut best = (time(0), 0);
        let mut on_disk = 1;
        while on_disk <= disk {
            let found = time(on_disk);
            if found < best.0 {
                best = (found, on_disk);
            }
            on_disk += (on_disk / 16).max(1);
        }
        let found = time(disk);
        if found < best.0 {
            best = (found, disk);
        }
        if best.1 < disk {
            let mean = self.limits[1] / disk.max(1);
            self.disk_in_use = mean.saturating_mul(best.1).min(self.limits[1]);
        }
    }

    /// Where a state of so many bytes goes, if there is or may be room.
    fn place_for(&self, at: u64, bytes: u64) -> Option<Place> {
        let [memory, disk] = self.free();
        // Those that will be kept behind it are read first, and belong into memory.
        let later = self.sizes.fit(memory.saturating_add(disk), at, self.end).min(self.end - at);
        let crowded = later > self.sizes.fit(memory, at, self.end);
        match (bytes <= memory, bytes <= disk) {
            (true, true) if crowded => Some(Place::Disk),
            (true, _) => Some(Place::Memory),
            (false, true) => Some(Place::Disk),
            // A prediction may be wrong: encoding tells, and costs little.
            _ if !self.sizes.is_known(at)
                && bytes <= memory.max(disk).saturating_add(self.sizes.slack()) =>
            {
                Some(if memory >= disk { Place::Memory } else { Place::Disk })
            }
            (false, false) => None,
        }
    }

    /// The bytes of a state that is to be kept became known: where it goes, and what is given up for it.
    ///
    /// An error if it is the first of all and fits nowhere.
    pub fn encoded(&mut self, step: u64, what: Data, bytes: u64) -> Result<Outcome> {
        self.sizes.learn(step, bytes);
        self.told = true;
        let mut given_up = Vec::new();
        if self.probed == Some(step) {
            self.probed = None;
            given_up = self.settle_probe(step);
        }
        let found = self.items.iter().position(|item| (item.step, item.kind) == (step, what));
        let Some(found) = found else {
            return Ok(Outcome { place: Place::Nowhere, given_up });
        };
        let mut item = self.items.remove(found);
        item.bytes = bytes;
        let limits = self.limits;
        let free = |used: [u64; 2], tier: usize| limits[tier].saturating_sub(used[tier]);
        let used = self.used();
        let wanted = tier(item.place).unwrap_or(0);
        let place = if bytes <= free(used, wanted) {
            item.place
        } else if bytes <= free(used, 1 - wanted) {
            if wanted == 0 { Place::Disk } else { Place::Memory }
        } else {
            match self.of_no_more_use(&item).or_else(|| self.cheapest_to_lose(&item)) {
                Some(i) => {
                    let lost = self.items.remove(i);
                    given_up.push((lost.step, lost.kind, lost.place));
                    lost.place
                }
                None => Place::Nowhere,
            }
        };
        if place == Place::Nowhere {
            if self.items.is_empty() {
                let [memory, disk] = self.limits;
                return Err(ScheduleError::BelowOneState { step, bytes, memory, disk });
            }
        } else {
            item.place = place;
            self.insert(item);
        }
        Ok(Outcome { place, given_up })
    }

    fn makes_room(&self, item: &Item, new: &Item) -> bool {
        let used = self.used();
        tier(item.place).is_some_and(|tier| {
            let free = self.limits[tier].saturating_sub(used[tier]);
            new.bytes <= free.saturating_add(item.bytes)
        })
    }

    /// Restart data that nothing needs once the dependencies in `new` are kept, because those of all steps from there
    /// on are.
    fn of_no_more_use(&self, new: &Item) -> Option<usize> {
        if new.kind != Data::Deps || new.step + 2 != self.end {
            return None;
        }
        let i = self.items.iter().rposition(|item| item.kind == Data::Restart)?;
        let from = self.items[i].step;
        let deps = self.items[i + 1..].iter().map(|item| item.step);
        let complete = deps.chain([new.step]).eq(from..=new.step);
        (complete && self.makes_room(&self.items[i], new)).then_some(i)
    }

    /// The checkpoint whose loss makes room for `new` and costs less than the loss of that.
    fn cheapest_to_lose(&self, new: &Item) -> Option<usize> {
        // The steps that must be run again from the checkpoint before it.
        let loss = |step: u64, before: u64, after: u64| {
            if after - before > 1 { (step - before).min(after - step) + (step - before) } else { 0 }
        };
        let mut all: Vec<u64> = self.items.iter().map(|item| item.step).collect();
        let at = all.partition_point(|&step| step < new.step);
        all.insert(at, new.step);
        let neighbours = |i: usize| {
            let before = all[i.checked_sub(1)?];
            Some(loss(all[i], before, all.get(i + 1).copied().unwrap_or(self.end)))
        };
        let own = neighbours(at)?;
        let candidates = (0..self.items.len()).filter_map(|i| {
            let j = if i < at { i } else { i + 1 };
            let cost = neighbours(j)?;
            (self.makes_room(&self.items[i], new) && cost < own).then_some((cost, i))
        });
        candidates.min().map(|(_, i)| i)
    }

    fn run(&mut self, at: u64) -> Action {
        if self.end - at == 1 {
            return self.record(at);
        }
        if self.items.iter().any(|item| item.step == at && item.kind == Data::Deps) {
            return self.advance(at, at + 1);
        }
        if self.is_worth_a_probe(at) {
            self.probed = Some(at);
            self.at = Some(at + 1);
            let (restart, deps, place) = (true, !self.estimate.deps_are_state, Place::Memory);
            return Action::Forward { from: at, to: at + 1, restart, deps, place };
        }
        match self.decide(at) {
            Decision::Advance(to) => self.advance(at, to),
            Decision::Keep(what, place) => self.keep(at, what, place),
            Decision::Shorten => match self.items.pop() {
                Some(Item { step, place: from, kind: what, .. }) => {
                    Action::Move { step, what, from, to: Place::Nowhere }
                }
                None => self.advance(at, at + 1),
            },
        }
    }

    /// Whether the size of a state is encoded for its size alone, in a segment that is short enough to be planned by trying everything:
    /// encoding costs no step, and what is known is never planned wrongly again.
    fn is_worth_a_probe(&self, at: u64) -> bool {
        let below = self.items.iter().rev().find(|item| item.kind == Data::Restart);
        self.told
            && !self.single
            && !self.estimate.has_price()
            && !self.sizes.is_known(at)
            && self.sizes.may_vary()
            && below.is_some_and(|below| self.end - below.step <= cost::SHORT)
    }

    /// The size of a probed state is known: what is to be kept of it becomes an item. Gives what is given up for that.
    fn settle_probe(&mut self, at: u64) -> Vec<(u64, Data, Place)> {
        let mut given_up = Vec::new();
        loop {
            match self.decide(at) {
                Decision::Advance(_) => return given_up,
                Decision::Keep(what, place) => {
                    let bytes = self.sizes.of(at);
                    for &kind in what {
                        self.insert(Item { step: at, place, kind, bytes });
                    }
                    return given_up;
                }
                Decision::Shorten => match self.items.pop() {
                    Some(item) => given_up.push((item.step, item.kind, item.place)),
                    None => return given_up,
                },
            }
        }
    }

    /// What is best at a state that is in place and not the last.
    fn decide(&self, at: u64) -> Decision {
        let (end, certain) = (self.end, self.all_free());
        let free = certain.saturating_add(self.sizes.slack());
        let bytes = self.sizes.of(at);
        let room = self.place_for(at, bytes);
        if let Some(place) = room.or_else(|| self.chain_ends(at)).filter(|_| self.starts_chain(at))
        {
            return Decision::Keep(&[Data::Deps], place);
        }
        // Behind a step whose dependencies are kept, the next state is kept too: from the restart data
        // below it would be far.
        let newest = self.items.last();
        let chained = newest.is_some_and(|item| item.kind == Data::Deps && item.step + 1 == at);
        let goes_on = chained && self.chain_goes_on(at);
        if let Some(place) =
            room.filter(|_| goes_on).or_else(|| self.chain_ends(at)).filter(|_| chained)
        {
            return Decision::Keep(&[Data::Deps], place);
        }
        if chained && room.is_none() && self.shortens_chain(at, bytes) {
            return Decision::Shorten;
        }
        if !chained || room.is_none() {
            let below = self.items.iter().rev().find(|item| item.kind == Data::Restart);
            let below = below.map(|item| item.step);
            let from = if below == Some(at) { at + 1 } else { at };
            let (next, _) = self.estimate.next_state(below, from, end, free, &self.sizes);
            if next > at {
                return Decision::Advance(next);
            }
        }
        // Kept now: as restart data, or as the dependencies of its step.
        let first = self.items.is_empty().then_some(Place::Memory);
        let Some(place) = room.or(first) else { return Decision::Advance(at + 1) };
        let rest = free.saturating_sub(bytes);
        if room.is_none() || self.estimate.kind(at, end, rest, &self.sizes).is_some() {
            return Decision::Keep(&[Data::Restart], place);
        }
        // Without restart data below, dependencies alone must fit for certain.
        if chained
            || self.items.iter().any(|item| item.kind == Data::Restart)
            || self.estimate.all_fit(at, end, certain, &self.sizes, false)
        {
            return Decision::Keep(&[Data::Deps], place);
        }
        let hopeful = self.estimate.all_fit(at, end, certain, &self.sizes, true);
        if self.single || !hopeful || bytes.saturating_mul(2) > certain {
            return Decision::Keep(&[Data::Restart], place);
        }
        Decision::Keep(&[Data::Restart, Data::Deps], place)
    }

    /// Whether to keep the dependencies of a step whose restart data are kept too, in the hope that those of all
    /// steps up to the adjoint fit; if they do, the restart data are given up for the last of them.
    fn starts_chain(&self, at: u64) -> bool {
        let kept = self.items.last().filter(|item| item.step == at && item.kind == Data::Restart);
        let Some(item) = kept.filter(|_| !self.single && !self.estimate.deps_are_state) else {
            return false;
        };
        let room = self.all_free().saturating_add(item.bytes);
        self.estimate.all_fit(at, self.end, room, &self.sizes, true)
    }

    /// Whether the dependencies of all steps from the restart data below up to here are kept, and the others are
    /// thought to fit in the end.
    fn chain_goes_on(&self, at: u64) -> bool {
        let newest = self.items.iter().rposition(|item| item.kind == Data::Restart);
        newest.is_some_and(|i| {
            let deps = self.items[i + 1..].iter().map(|item| item.step);
            let room = self.all_free().saturating_add(self.items[i].bytes);
            deps.eq(self.items[i].step..at)
                && self.estimate.all_fit(at, self.end, room, &self.sizes, true)
        })
    }

    /// Where dependencies have been kept up to this state, and it does not fit: whether to give up the newest of
    /// them, because restart data here are worth more.
    fn shortens_chain(&self, at: u64, bytes: u64) -> bool {
        self.gain_of_a_shorter_chain(at, bytes).is_some_and(|gain| gain > 0)
    }

    fn gain_of_a_shorter_chain(&self, at: u64, bytes: u64) -> Option<u64> {
        let newest = *self.items.last()?;
        let below = self.items.iter().rev().find(|item| item.kind == Data::Restart)?.step;
        let free = self.all_free();
        let (mut room, mut first) = (free, at);
        for item in self.items.iter().rev() {
            if room >= bytes {
                break;
            }
            if item.kind != Data::Deps || item.step + 1 != first || item.place != newest.place {
                return None;
            }
            (room, first) = (room.saturating_add(item.bytes), item.step);
        }
        let rest = room.checked_sub(bytes)?;
        let (end, sizes, estimate) = (self.end, &self.sizes, &self.estimate);
        let as_it_is = (end - at) + estimate.again(below, at, end - 1, free, sizes);
        let (_, onwards) = estimate.next_state(Some(at), at + 1, end, rest, sizes);
        let shortened =
            1 + onwards + estimate.again(below, first, at, rest.saturating_add(bytes), sizes);
        (first < at).then(|| as_it_is.saturating_sub(shortened))
    }

    /// Where the last state before the recorded one would go if the restart data below are given up for it.
    fn chain_ends(&self, at: u64) -> Option<Place> {
        let bytes = self.sizes.of(at).saturating_sub(self.sizes.slack());
        let new = Item { step: at, place: Place::Memory, kind: Data::Deps, bytes };
        self.of_no_more_use(&new).map(|i| self.items[i].place)
    }

    fn keep(&mut self, at: u64, what: &[Data], place: Place) -> Action {
        let bytes = self.sizes.of(at);
        for &kind in what {
            self.insert(Item { step: at, place, kind, bytes });
        }
        self.at = Some(at + 1);
        let (restart, deps) = (what.contains(&Data::Restart), what.contains(&Data::Deps));
        Action::Forward { from: at, to: at + 1, restart, deps, place }
    }

    fn insert(&mut self, item: Item) {
        let key = |item: &Item| (item.step, item.kind);
        let at = self.items.partition_point(|other| key(other) < key(&item));
        self.items.insert(at, item);
    }

    fn advance(&mut self, at: u64, to: u64) -> Action {
        self.at = Some(to);
        let (restart, deps, place) = (false, false, Place::Nowhere);
        Action::Forward { from: at, to, restart, deps, place }
    }

    fn record(&mut self, at: u64) -> Action {
        if std::mem::take(&mut self.first) {
            self.queue.push_back(Action::EndForward);
        }
        self.reverse(at);
        Action::Forward { from: at, to: at + 1, restart: false, deps: true, place: Place::Work }
    }

    fn reverse(&mut self, step: u64) {
        self.queue.push_back(Action::Reverse { from: step + 1, to: step });
        (self.end, self.at) = (step, None);
    }

    fn load(&mut self) -> Action {
        let to = Place::Work;
        let Some(&Item { step, place: from, kind: what, .. }) = self.items.last() else {
            self.done = true;
            return Action::EndReverse;
        };
        if step >= self.end {
            self.items.pop();
            return Action::Move { step, what, from, to: Place::Nowhere };
        }
        if what == Data::Deps && step + 1 == self.end {
            self.items.pop();
            self.reverse(step);
            return Action::Move { step, what, from, to };
        }
        let newest = self.items.iter().rposition(|item| item.kind == Data::Restart);
        let Some(newest) = newest else {
            // Dependencies of single steps, and nothing to restart from: a schedule that lost its first checkpoint.
            self.items.pop();
            return Action::Move { step, what, from, to: Place::Nowhere };
        };
        let Item { step, place: from, kind: what, .. } = self.items[newest];
        self.at = Some(step);
        // The first checkpoint is given up for dependencies only if these fit for certain: what does not fit
        // after all can be computed again from others, but not from none.
        let (is_last, may_guess) = (
            newest + 1 == self.items.len(),
            self.items[..newest].iter().any(|i| i.kind == Data::Restart),
        );
        let free = self.all_free();
        if is_last && self.estimate.gives_up(step, self.end, free, &self.sizes, may_guess) {
            self.items.pop();
            return Action::Move { step, what, from, to };
        }
        Action::Copy { step, what, from, to }
    }
}

impl Schedule for Budget {
    fn next_action(&mut self) -> Option<Action> {
        if self.done {
            return None;
        }
        if let Some(action) = self.queue.pop_front() {
            return Some(action);
        }
        Some(match self.at {
            Some(at) => self.run(at),
            None => self.load(),
        })
    }

    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn finalize(&mut self, steps: u64) -> Result<()> {
        same_steps(self.steps, steps)
    }

    fn uses(&self, place: Place) -> bool {
        tier(place).is_some_and(|tier| self.limits[tier] > 0)
    }

    fn is_exhausted(&self) -> bool {
        self.done
    }

    fn budget(&mut self) -> Option<&mut Budget> {
        Some(self)
    }
}
