//! A layout that exists only here: units of unequal length, owned in turn, kept in memory. `src` knows nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use esker_comm::{Communicator, Message, SelfComm};
use esker_format::{VarId, values};

use crate::canonical::{Canonical, detach_extents};
use crate::error::{Error, Result};
use crate::exchange::{self, Came, Got, Sink, Source, Unit, Units, With};
use crate::layout::{Announced, Asked, Layout, Noted, Over, Room, Wait};
use crate::plan::{Overlap, Plan, Sweep};
use crate::selection::{Checked, LogSpace, Space};
use crate::{comb::Comb, gathered::Gathered, ground::Ground, notes::Notes, report::Report};
use crate::{request::Request, wire};

/// The values of the units of each variable of each dataset, by its name: ranks are threads, and share them.
pub(super) static KEPT: Mutex<BTreeMap<(String, u64), Vec<u8>>> = Mutex::new(BTreeMap::new());
/// The part of the space that a variable has.
const PART: u64 = 1 << 40;

/// Makes the layout, which is that of every other variable.
#[derive(Debug)]
pub(super) struct Unequal;

impl Room for Unequal {
    fn open(&self, _: &mut Ground) -> Option<Box<dyn Layout>> {
        Some(Box::new(Unequal))
    }
}

/// Units that this rank has something of, and those that it owns of which somebody wants something.
struct Moving<'l> {
    ranks: usize,
    ground: &'l Ground,
    units: Option<Vec<Unit>>,
    wanted: BTreeSet<u64>,
}

/// The unit that has an address: eight bytes, then forty, and so on.
fn unit_at(address: u64, ranks: usize) -> Unit {
    let (pair, place) = (address - address % PART % 48, address % PART % 48);
    let (start, end) = if place < 8 { (pair, pair + 8) } else { (pair + 8, pair + 48) };
    Unit { owner: (start / 8) as usize % ranks, start, end, bytes: 0 }
}

fn with_unit<T>(ground: &Ground, unit: &Unit, act: impl FnOnce(&mut [u8]) -> T) -> T {
    let variable = &ground.header.schema.vars.as_slice()[(unit.start / PART) as usize - 1];
    let fill = values::fill_bytes(variable);
    let fill = fill.repeat((unit.end - unit.start) as usize / fill.len());
    let name = format!("{}/{}", ground.base.path.display(), variable.name);
    act(KEPT.lock().unwrap().entry((name, unit.start % PART)).or_insert(fill))
}

impl<'l> Moving<'l> {
    fn new(comm: &dyn Communicator, ground: &'l Ground, plan: &Plan<'_>) -> Moving<'l> {
        let (mut sweep, mut at, mut units) = (plan.sweep(), plan.summary.first, Vec::new());
        while let Some(found) = sweep.next_offset(at).filter(|found| *found < plan.summary.end) {
            let unit = unit_at(found, comm.size());
            sweep.take(unit.start, unit.end, Overlap::Shared);
            at = unit.end;
            units.push(unit);
        }
        Moving { ranks: comm.size(), ground, units: Some(units), wanted: BTreeSet::new() }
    }

    fn lay(&self, start: u64, lay: impl FnOnce(&mut Gathered) -> Result<()>) -> Result<()> {
        let (unit, mut gathered) = (unit_at(start, self.ranks), Gathered::default());
        gathered.reset(unit.start, unit.end - unit.start);
        lay(&mut gathered)?;
        with_unit(self.ground, &unit, |bytes| {
            gathered.complete(bytes);
            bytes.copy_from_slice(gathered.front(bytes.len() as u64));
        });
        Ok(())
    }
}

impl Units for Moving<'_> {
    const ASCEND: bool = false;
    fn next_round(&mut self, _: &dyn Communicator, _: &Sweep<'_, '_>) -> Result<Option<u64>> {
        Ok(self.units.is_some().then_some(0))
    }
    fn of_round(&mut self, _: u64) -> Vec<Unit> {
        self.units.take().unwrap_or_default()
    }
}

impl Sink for Moving<'_> {
    fn own(&mut self, unit: &Unit, sweep: &mut Sweep<'_, '_>, w: &mut With<'_, '_>) -> Result<()> {
        for p in sweep.take(unit.start, unit.end, Overlap::LaterWins) {
            let from = (p.request, p.element);
            self.lay(unit.start, |to| w.notes.pack(w.puts, from, to.lay(p.offset, p.len)))?;
        }
        Ok(())
    }
    fn put(&mut self, _: u64, came: Came, _: &mut Report) -> Result<Vec<Message>> {
        for (_, message) in &came {
            for section in wire::sections(message) {
                let (start, place) = section.ok_or(Error::Garbled)?;
                self.lay(start, |gathered| gathered.lay_section(&message[place]).map(drop))?;
            }
        }
        Ok(came.into_iter().map(|(_, message)| message).collect())
    }
}

impl Source for Moving<'_> {
    const BY_RUNS: bool = true;
    const WHOLE: u64 = u64::MAX;
    fn want(&mut self, comb: &Comb) {
        self.wanted.insert(unit_at(comb.offset, self.ranks).start);
    }

    fn get(
        &mut self,
        _: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()> {
        for start in std::mem::take(&mut self.wanted) {
            let unit = unit_at(start, self.ranks);
            let bytes = &with_unit(self.ground, &unit, |bytes| bytes.to_vec());
            give(&[Got { start, end: unit.end, bytes, shared: None }], report)?;
        }
        Ok(())
    }
}

impl Unequal {
    fn write(comm: &dyn Communicator, ground: &Ground, puts: &mut [Request<'_>]) -> Result<()> {
        let (extents, mut notes) = (detach_extents(puts), Notes::default());
        let plan = Plan::new(extents.iter());
        let with = &mut With { puts, notes: &mut notes, report: &mut Report::default() };
        exchange::write(comm, &plan, &mut Moving::new(comm, ground, &plan), &mut vec![], with)?;
        notes.tell(puts);
        Ok(())
    }

    fn read(comm: &dyn Communicator, ground: &Ground, gets: &mut [Request<'_>]) -> Result<()> {
        let extents = detach_extents(gets);
        let (plan, report) = (Plan::new(extents.iter()), &mut Report::default());
        exchange::read(comm, &plan, &mut Moving::new(comm, ground, &plan), gets, report)
    }
}

impl Layout for Unequal {
    fn has(&self, var: VarId) -> bool {
        var.0 % 2 == 1
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        let checked = Canonical.check(ground, Asked { space: Space::Log, ..asked })?;
        let variable = &ground.header.schema.vars.as_slice()[asked.var.0];
        let record = ground.header.schema.shape(variable, 1).iter().product::<u64>();
        let (begin, record) = ((asked.var.0 as u64 + 1) * PART, record * variable.ty.size());
        let here = LogSpace::of(&ground.header, asked.var).placed(begin, record);
        Ok(Checked { extent: checked.extent.in_file(&here), space: Space::Own, ..checked })
    }

    fn write_alone(
        &mut self,
        g: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        _: &mut Report,
    ) -> Result<()> {
        Unequal::write(&SelfComm::new(), g, puts)?;
        let records = puts.iter().map(|put| put.records).fold(g.records, u64::max);
        if g.base.comm.size() == 1 {
            g.fill_share(g.records, records, None)?;
        }
        g.grow_alone(records)
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        _: Option<&Arc<dyn Over>>,
        _: &mut Report,
    ) -> Result<()> {
        Unequal::read(&SelfComm::new(), ground, gets)
    }

    fn announce(&self, _: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let records = wait.puts.iter().map(|put| put.records).max().unwrap_or(0);
        (Ok(()), vec![records, wait.puts.len() as u64], Box::new(()))
    }

    fn act(&mut self, g: &mut Ground, wait: &mut Wait<'_>, agreed: &[u64], _: Noted) -> Result<()> {
        let (comm, records) = (g.base.comm.clone(), agreed[0].max(g.records));
        if agreed[1] > 0 {
            Unequal::write(&*comm, g, &mut wait.puts)?;
            let filled = g.fill_share(g.records, records, None);
            g.base.agree(filled).and_then(|()| g.grow_together(records))?;
        }
        Unequal::read(&*comm, g, &mut wait.gets)
    }
}
