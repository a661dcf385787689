//! What a way of storing variables does.
//!
//! A [`Layout`] turns checked selections into runs of a space of its own (bytes of the file, addresses of chunks,
//! elements of records), tells in a few numbers what a wait has for it, and moves that once all ranks have the
//! same numbers. It takes part in what happens to a dataset as a whole. [`Several`] has one for each variable;
//! a burst buffer is a layout before another one. What they stand on is the [`Ground`].

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use esker_comm::{ReduceOp, Reduction};
use esker_format::{Schema, VarId};
use esker_store::File;

use crate::bounded::CacheUse;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::report::Report;
use crate::request::{Direction, Request};
use crate::selection::{Checked, Purpose, Selection, Space};

/// A selection that is to be checked. The variable has the file's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'s> {
    pub(crate) var: VarId,
    pub(crate) selection: &'s Selection,
    pub(crate) purpose: Purpose,
    /// Where its elements are asked for: in the layout's own space (as [`Space::File`] means), or in a log's.
    pub(crate) space: Space,
}

/// What a wait has.
#[derive(Debug, Default)]
pub(crate) struct Wait<'b> {
    pub(crate) puts: Vec<Request<'b>>,
    pub(crate) gets: Vec<Request<'b>>,
    /// Where several layouts share it: what each has.
    apart: Vec<Wait<'b>>,
}

impl<'b> Wait<'b> {
    pub(crate) fn of(requests: Vec<Request<'b>>) -> Wait<'b> {
        // Mostly they are of one kind, and many: they stay where they are.
        let is_get = |r: &Request<'_>| r.direction == Direction::Get;
        if !requests.iter().any(is_get) {
            return Wait { puts: requests, ..Wait::default() };
        }
        if requests.iter().all(is_get) {
            return Wait { gets: requests, ..Wait::default() };
        }
        let (gets, puts) = requests.into_iter().partition(is_get);
        Wait { puts, gets, apart: Vec::new() }
    }

    /// Takes back what several layouts had.
    pub(crate) fn gather(&mut self) {
        for mut some in std::mem::take(&mut self.apart) {
            some.gather();
            for (all, mut some) in [(&mut self.puts, some.puts), (&mut self.gets, some.gets)] {
                match all.is_empty() {
                    true => *all = some,
                    false => all.append(&mut some),
                }
            }
        }
    }

    /// All of them, in no order.
    pub(crate) fn into_requests(mut self) -> Vec<Request<'b>> {
        self.gather();
        Wait::join(self.puts, self.gets)
    }

    /// Reads behind writes.
    pub(crate) fn join(mut puts: Vec<Request<'b>>, mut gets: Vec<Request<'b>>) -> Vec<Request<'b>> {
        match puts.is_empty() {
            true => gets,
            false => {
                puts.append(&mut gets);
                puts
            }
        }
    }
}

/// What logs have to tell of what is read: as a file, and of requests in a log's space.
pub(crate) trait Over: File + Any {
    /// Reads requests of one rank alone.
    fn read(&self, ground: &Ground, gets: &mut [Request<'_>], report: &mut Report) -> Result<()>;
}

/// Numbers of a wait, of which the largest of any rank counts for all; every rank has as many.
pub(crate) type Numbers = Vec<u64>;

/// What a layout remembers between telling what it has and moving it.
pub(crate) type Noted = Box<dyn Any>;

/// What a layout says before a wait: whether it can take part, its numbers, and what it remembers.
pub(crate) type Announced = (Result<()>, Numbers, Noted);

/// A moment in the life of a dataset at which every layout has something to do. Collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What ranks have put is on its way to the file: afterwards it is there, and all know of its records.
    Brought,
    /// Nothing more will be written before the next stage.
    Ended,
    /// Values are made safe from power loss, before anything that speaks of them.
    Safe,
    /// Everything that was written is safe.
    Synced,
    /// The dataset is closed, and its file whole.
    Closed,
    /// It goes back to define mode.
    Redefined,
}

/// A way of storing variables. One that has another under it does what that does, but for what it says itself.
pub(crate) trait Layout: Any + Debug + Send + Sync {
    /// The layout under this one.
    fn under(&self) -> Option<&dyn Layout> {
        None
    }

    /// The same, to be changed.
    fn under_mut(&mut self) -> Option<&mut dyn Layout> {
        None
    }

    /// Layouts side by side inside this one.
    fn inside(&self) -> &[Box<dyn Layout>] {
        &[]
    }

    /// The same, to be changed.
    fn inside_mut(&mut self) -> &mut [Box<dyn Layout>] {
        &mut []
    }

    /// Whether the variable of this number is stored so.
    fn has(&self, var: VarId) -> bool;

    /// Whether requests of the variable are moved by this, and not as those of ordinary variables are.
    fn moves(&self, var: VarId) -> bool {
        self.has(var)
    }

    /// A selection as places in the layout's space, or in a log's.
    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked>;

    /// The lengths of the variable's dimensions; `in_logs` if there may be records that are in logs alone.
    fn shape(&self, ground: &Ground, var: VarId, in_logs: bool) -> Result<Vec<u64>> {
        if let Some(under) = self.under() {
            return under.shape(ground, var, in_logs);
        }
        let variable = ground.schema().variable(var);
        Ok(variable.map_or(Vec::new(), |v| ground.schema().shape(v, self.records(ground))))
    }

    /// Fails for a variable that cannot be read, whatever is asked for.
    fn require_sound(&self, ground: &Ground, var: VarId) -> Result<()> {
        self.under().map_or(Ok(()), |under| under.require_sound(ground, var))
    }

    /// Fails if what is to be read into new memory is not there; `in_logs` if it may be in a log.
    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        in_logs: bool,
    ) -> Result<()> {
        self.under().map_or(Ok(()), |under| under.require_present(ground, var, checked, in_logs))
    }

    /// Lengths of the boxes that are stored as one, where transfers are best cut.
    fn boxes(&self, var: VarId) -> Option<&[u64]> {
        self.under()?.boxes(var)
    }

    /// How many records there are, with those that this rank alone knows of.
    fn records(&self, ground: &Ground) -> u64 {
        self.under().map_or(ground.records, |under| under.records(ground))
    }

    /// Whether this rank has put something that only this can tell of.
    fn holds_back(&self) -> bool {
        self.under().is_some_and(|under| under.holds_back())
    }

    /// Writes, on one rank alone.
    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        let under = self.under_mut().ok_or(Error::Garbled)?;
        under.write_alone(ground, puts, report)
    }

    /// Reads, on one rank alone; `over` is what logs have to tell of it.
    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        over: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        self.under().ok_or(Error::Garbled)?.read_alone(ground, gets, over, report)
    }

    /// What logs have to tell of what this rank reads, its own writes with it.
    fn over(&self, _: &Ground) -> Result<Option<Arc<dyn Over>>> {
        Ok(None)
    }

    /// What requests of its variables are planned in.
    fn space(&self) -> Space {
        Space::File
    }

    /// Takes away what a call that failed has left, before others write. Collective.
    fn mend(&mut self, _: &mut Ground) -> Result<()> {
        Ok(())
    }

    /// What this rank brings to a wait. Nothing moves yet. An error is one of all ranks, which have as many numbers
    /// all the same.
    fn announce(&self, _: &mut Ground, _: &mut Wait<'_>) -> Announced {
        (Ok(()), Vec::new(), Box::new(()))
    }

    /// Writes, then reads, what a wait has, once all ranks have the same numbers. Collective.
    fn act(&mut self, _: &mut Ground, _: &mut Wait<'_>, _agreed: &[u64], _: Noted) -> Result<()> {
        Ok(())
    }

    /// Takes part in what happens to the dataset. Collective.
    fn settle(&mut self, ground: &mut Ground, stage: Stage) -> Result<()> {
        self.under_mut().map_or(Ok(()), |under| under.settle(ground, stage))
    }

    /// Makes what was written the next version of the dataset, where that is one: tells whether it is. Collective.
    fn commit(&mut self, _: &mut Ground, _durable: bool) -> Result<bool> {
        Ok(false)
    }

    /// Gives up what was written since the last version, where there are any: tells whether there are. Collective.
    fn abort(&mut self, _: &mut Ground) -> Result<bool> {
        Ok(false)
    }

    /// The same by one rank alone, as far as that can. Nothing is removed.
    fn abandon(&self, _: &Ground) -> Result<()> {
        Ok(())
    }

    /// The version that is open, where there are any.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Another program may have added something. Collective.
    fn refresh(&mut self, ground: &mut Ground) -> Result<()> {
        self.under_mut().map_or(Ok(()), |under| under.refresh(ground))
    }

    /// Fails if the schema may not become this one in data mode.
    fn may_become(&self, ground: &Ground, schema: &Schema) -> Result<()> {
        self.under().map_or(Ok(()), |under| under.may_become(ground, schema))
    }

    /// Names and attributes have changed.
    fn amended(&mut self, ground: &mut Ground) {
        if let Some(under) = self.under_mut() {
            under.amended(ground);
        }
    }

    /// Writes the fill value over one record of a variable. Collective.
    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        self.under_mut().ok_or(Error::Garbled)?.fill_record(ground, var, record)
    }

    /// What its caches hold.
    fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        self.under().map_or(Vec::new(), |under| under.caches(hints))
    }

    /// What the program may want to know, with what it was told already.
    fn notes(&self) -> Option<&[String]> {
        None
    }
}

impl dyn Layout {
    /// The layout of type `L`: this one, or one under or inside it.
    pub(crate) fn get<L: Layout>(&self) -> Option<&L> {
        let own: &dyn Any = self;
        own.downcast_ref().or_else(|| {
            let under = self.under().and_then(|under| under.get());
            under.or_else(|| self.inside().iter().find_map(|layout| layout.get()))
        })
    }

    /// The same, to be changed.
    pub(crate) fn get_mut<L: Layout>(&mut self) -> Option<&mut L> {
        let own: &dyn Any = self;
        if own.is::<L>() {
            let own: &mut dyn Any = self;
            return own.downcast_mut();
        }
        if self.under().is_some() {
            return self.under_mut()?.get_mut();
        }
        self.inside_mut().iter_mut().find_map(|layout| layout.get_mut())
    }
}

/// What makes layouts.
pub(crate) trait Room: Debug + Send + Sync {
    /// The layout of those variables of a dataset that are stored as this room stores them, if there are any. The
    /// dataset is being created, opened, or defined anew.
    fn open(&self, ground: &mut Ground) -> Option<Box<dyn Layout>>;
}

/// A wait: what every rank has is told to all in one reduction, before anybody acts. `ready` is this rank's own
/// outcome so far. Collective.
pub(crate) fn together(
    layout: &mut dyn Layout,
    ground: &mut Ground,
    wait: &mut Wait<'_>,
    ready: Result<()>,
) -> Result<()> {
    let (announced, mut numbers, kept) = layout.announce(ground, wait);
    let ready = ready.and(announced);
    let clock = Instant::now();
    numbers.push(ready.is_err().into());
    ground.base.comm.all_reduce(Reduction::U64(&mut numbers), ReduceOp::Max)?;
    ground.report.phases.agree += clock.elapsed();
    match numbers.pop() {
        Some(0) => layout.act(ground, wait, &numbers, kept),
        // Somebody's arguments are wrong. Nobody has acted yet, and everyone hears of it.
        _ => ground.base.agree(ready),
    }
}

/// Layouts side by side: the first is for all variables that no other has.
#[derive(Debug)]
pub(crate) struct Several {
    all: Vec<Box<dyn Layout>>,
}

impl Several {
    pub(crate) fn new(first: Box<dyn Layout>, others: Vec<Box<dyn Layout>>) -> Several {
        Several { all: std::iter::once(first).chain(others).collect() }
    }

    /// Takes the layout of type `L` out, if `layout` are several and one of them is that.
    pub(crate) fn take<L: Layout>(layout: Box<dyn Layout>) -> Option<Box<L>> {
        let several: Box<dyn Any> = layout;
        let several = several.downcast::<Several>().ok()?;
        let mut all = several.all.into_iter();
        let found: Box<dyn Any> = all.find(|layout| layout.get::<L>().is_some())?;
        found.downcast().ok()
    }

    fn of(&self, var: VarId) -> &dyn Layout {
        let one = self.all.iter().skip(1).find(|layout| layout.has(var));
        &**one.unwrap_or(&self.all[0])
    }

    /// The number of the layout that moves requests of a variable.
    fn mover(&self, var: VarId) -> usize {
        let one = self.all.iter().skip(1).position(|layout| layout.moves(var));
        one.map_or(0, |n| n + 1)
    }

    /// Requests apart, by who moves them.
    fn split<'b>(&self, requests: &mut Vec<Request<'b>>) -> Vec<Vec<Request<'b>>> {
        let mut apart: Vec<Vec<Request<'b>>> = self.all.iter().map(|_| Vec::new()).collect();
        let first = requests.first().map_or(0, |r| self.mover(r.var));
        if requests.iter().all(|r| self.mover(r.var) == first) {
            apart[first] = std::mem::take(requests);
            return apart;
        }
        requests.drain(..).for_each(|r| apart[self.mover(r.var)].push(r));
        apart
    }
}

/// What [`Several`] remember: how many numbers each has, and what it remembers itself.
struct NotedEach(Vec<(usize, Noted)>);

impl Layout for Several {
    fn inside(&self) -> &[Box<dyn Layout>] {
        &self.all
    }

    fn inside_mut(&mut self) -> &mut [Box<dyn Layout>] {
        &mut self.all
    }

    fn has(&self, _: VarId) -> bool {
        true
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        self.of(asked.var).check(ground, asked)
    }

    fn shape(&self, ground: &Ground, var: VarId, in_logs: bool) -> Result<Vec<u64>> {
        self.of(var).shape(ground, var, in_logs)
    }

    fn require_sound(&self, ground: &Ground, var: VarId) -> Result<()> {
        self.of(var).require_sound(ground, var)
    }

    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        in_logs: bool,
    ) -> Result<()> {
        self.of(var).require_present(ground, var, checked, in_logs)
    }

    fn boxes(&self, var: VarId) -> Option<&[u64]> {
        self.of(var).boxes(var)
    }

    fn records(&self, ground: &Ground) -> u64 {
        self.all.iter().map(|layout| layout.records(ground)).max().unwrap_or(ground.records)
    }

    fn holds_back(&self) -> bool {
        self.all.iter().any(|layout| layout.holds_back())
    }

    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        let mut apart = self.split(puts);
        // The first last: the others may move what it is for.
        let numbers = (1..apart.len()).chain([0]);
        let written = numbers.into_iter().try_for_each(|n| {
            ground.follow_moves(&mut apart[n]);
            match apart[n].is_empty() {
                true => Ok(()),
                false => self.all[n].write_alone(ground, &mut apart[n], report),
            }
        });
        apart.iter_mut().for_each(|some| puts.append(some));
        written
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        over: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        let mut apart = self.split(gets);
        let pairs = self.all.iter().zip(&mut apart).filter(|(_, gets)| !gets.is_empty());
        let read = pairs
            .into_iter()
            .try_for_each(|(layout, gets)| layout.read_alone(ground, gets, over, report));
        apart.iter_mut().for_each(|some| gets.append(some));
        read
    }

    fn mend(&mut self, ground: &mut Ground) -> Result<()> {
        self.all.iter_mut().try_for_each(|layout| layout.mend(ground))
    }

    fn announce(&self, ground: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let (puts, gets) = (self.split(&mut wait.puts), self.split(&mut wait.gets));
        let apart = Vec::new;
        let batches = puts.into_iter().zip(gets);
        wait.apart = batches.map(|(puts, gets)| Wait { puts, gets, apart: apart() }).collect();
        let (mut ready, mut all, mut each) = (Ok(()), Vec::new(), Vec::new());
        for (layout, wait) in self.all.iter().zip(&mut wait.apart) {
            let (outcome, mut numbers, kept) = layout.announce(ground, wait);
            ready = ready.and(outcome);
            each.push((numbers.len(), kept));
            all.append(&mut numbers);
        }
        (ready, all, Box::new(NotedEach(each)))
    }

    fn act(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        mut agreed: &[u64],
        kept: Noted,
    ) -> Result<()> {
        let NotedEach(each) = *kept.downcast().map_err(|_| Error::Garbled)?;
        for ((layout, wait), (count, kept)) in self.all.iter_mut().zip(&mut wait.apart).zip(each) {
            let (own, rest) = agreed.split_at_checked(count).ok_or(Error::Garbled)?;
            agreed = rest;
            layout.act(ground, wait, own, kept)?;
        }
        Ok(())
    }

    fn settle(&mut self, ground: &mut Ground, stage: Stage) -> Result<()> {
        // The first last: it has the file that speaks of what the others have.
        let (first, others) = self.all.split_at_mut(1);
        let mut order = others.iter_mut().chain(first);
        order.try_for_each(|layout| layout.settle(ground, stage))
    }

    fn refresh(&mut self, ground: &mut Ground) -> Result<()> {
        self.all.iter_mut().try_for_each(|layout| layout.refresh(ground))
    }

    fn may_become(&self, ground: &Ground, schema: &Schema) -> Result<()> {
        self.all.iter().try_for_each(|layout| layout.may_become(ground, schema))
    }

    fn amended(&mut self, ground: &mut Ground) {
        self.all.iter_mut().for_each(|layout| layout.amended(ground));
    }

    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        let mover = self.mover(var);
        self.all[mover].fill_record(ground, var, record)
    }

    fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        self.all.iter().flat_map(|layout| layout.caches(hints)).collect()
    }
}
