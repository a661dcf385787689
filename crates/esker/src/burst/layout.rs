//! A burst buffer as a layout before another one: writes go to a log, and what reads need is flushed into the
//! layout under it, or laid over what that has.

use std::any::Any;
use std::sync::Arc;

use esker_format::VarId;

use super::Burst;
use crate::bounded::CacheUse;
use crate::canonical::Canonical;
use crate::chunked::Chunked;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::hints::Hints;
use crate::layout::{Announced, Asked, Layout, Noted, Numbers, Over, Stage, Wait, together};
use crate::log::record_step;
use crate::report::{Report, Strategy};
use crate::request::Request;
use crate::selection::{Checked, Space};

/// Logs before another layout.
#[derive(Debug)]
pub(crate) struct Buffered {
    pub(super) burst: Box<Burst>,
    pub(super) under: Box<dyn Layout>,
}

/// What a wait has for the log: whether somebody writes, whether somebody reads, and the records that there are.
const OWN: usize = 3;

impl Buffered {
    /// Puts logs before a layout.
    pub(crate) fn new(
        ground: &mut Ground,
        mut burst: Box<Burst>,
        under: Box<dyn Layout>,
    ) -> Buffered {
        burst.note(&ground.base.notes);
        ground.sole = true;
        let mut buffered = Buffered { burst, under };
        buffered.stand(ground);
        buffered.burst.file_has(ground.records);
        buffered
    }

    /// The logs that are before a layout, if there are any, and what is under them.
    pub(crate) fn take_apart(layout: Box<dyn Layout>) -> (Option<Box<Burst>>, Box<dyn Layout>) {
        if layout.get::<Buffered>().is_none() {
            return (None, layout);
        }
        let layout: Box<dyn Any> = layout;
        match layout.downcast::<Buffered>() {
            Ok(buffered) => (Some(buffered.burst), buffered.under),
            // It is always the outermost.
            Err(_) => (None, Box::new(Canonical)),
        }
    }

    fn stand(&mut self, ground: &Ground) {
        let Ground { base, file, header, .. } = ground;
        self.burst.stands_before(base, file, header, self.under.get::<Chunked>());
    }

    /// The file may be another one now, or variables elsewhere in it.
    pub(super) fn stand_again(&mut self, ground: &Ground) {
        if !self.burst.is_before(&ground.file, &ground.header) {
            self.stand(ground);
        }
    }

    /// Appends to this rank's log.
    fn append(
        &mut self,
        ground: &mut Ground,
        puts: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let clock = std::time::Instant::now();
        report.write_strategy = Strategy::Appended;
        report.requests += puts.len() as u64;
        let appended = puts.iter_mut().try_for_each(|put| {
            let variable = ground.schema().variable(put.var).ok_or(Error::Garbled)?;
            let step = record_step(&ground.header, variable);
            self.burst.append(&ground.base, put, step, report)?;
            // What was appended before a failure is there.
            ground.records = ground.records.max(put.records);
            Ok(())
        });
        report.phases.write += clock.elapsed();
        appended
    }

    /// Reads after everybody's logs were flushed, which may have moved what is read. Collective.
    fn read_flushed(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        (epoch, agreed): (u64, &[u64]),
        kept: Noted,
    ) -> Result<()> {
        if ground.epoch == epoch {
            return self.under.act(ground, wait, agreed, kept);
        }
        wait.gather();
        ground.follow_moves(&mut wait.gets);
        together(&mut *self.under, ground, wait, Ok(()))
    }
}

impl Layout for Buffered {
    fn under(&self) -> Option<&dyn Layout> {
        Some(&*self.under)
    }

    fn under_mut(&mut self) -> Option<&mut dyn Layout> {
        Some(&mut *self.under)
    }

    fn has(&self, var: VarId) -> bool {
        self.under.has(var)
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        self.under.check(ground, Asked { space: Space::Log, ..asked })
    }

    fn shape(&self, ground: &Ground, var: VarId, _: bool) -> Result<Vec<u64>> {
        self.under.shape(ground, var, true)
    }

    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        _: bool,
    ) -> Result<()> {
        let in_logs = self.over(ground)?.is_some();
        self.under.require_present(ground, var, checked, in_logs)
    }

    fn write_alone(
        &mut self,
        ground: &mut Ground,
        puts: &mut Vec<Request<'_>>,
        report: &mut Report,
    ) -> Result<()> {
        self.append(ground, puts, report)
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        _: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        let view = self.over(ground)?;
        self.under.read_alone(ground, gets, view.as_ref(), report)
    }

    fn over(&self, ground: &Ground) -> Result<Option<Arc<dyn Over>>> {
        Ok(self.burst.see(ground.records)?.map(|view| view as Arc<dyn Over>))
    }

    fn space(&self) -> Space {
        Space::Log
    }

    fn announce(&self, ground: &mut Ground, wait: &mut Wait<'_>) -> Announced {
        let (puts, gets) = (!wait.puts.is_empty(), !wait.gets.is_empty());
        let own: Numbers = vec![puts.into(), gets.into(), ground.records];
        // The layout under it does not see what is written.
        let waiting = std::mem::take(&mut wait.puts);
        let (ready, numbers, kept) = self.under.announce(ground, wait);
        wait.puts = waiting;
        (ready, [own, numbers].concat(), kept)
    }

    fn act(
        &mut self,
        ground: &mut Ground,
        wait: &mut Wait<'_>,
        agreed: &[u64],
        kept: Noted,
    ) -> Result<()> {
        let (own, agreed) = agreed.split_first_chunk::<OWN>().ok_or(Error::Garbled)?;
        let [puts_any, gets_any, records] = *own;
        ground.records = records;
        let mut over = 0;
        if puts_any > 0 {
            let mut report = ground.report;
            let appended = self.append(ground, &mut wait.puts, &mut report);
            let clock = std::time::Instant::now();
            let is_over = self.burst.is_over(&ground.base);
            let agreed = ground.base.agree_with(appended, [ground.records, is_over.into()]);
            report.phases.agree += clock.elapsed();
            ground.report = report;
            [ground.records, over] = agreed?;
        }
        // What this rank wrote so far is older than what any rank writes from now on.
        self.burst.next_epoch();
        if gets_any == 0 && over == 0 {
            return Ok(());
        }
        let epoch = ground.epoch;
        self.flush(ground)?;
        match gets_any {
            0 => Ok(()),
            _ => {
                let written = std::mem::take(&mut wait.puts);
                let read = self.read_flushed(ground, wait, (epoch, agreed), kept);
                wait.puts = written;
                read
            }
        }
    }

    fn settle(&mut self, ground: &mut Ground, stage: Stage) -> Result<()> {
        match stage {
            Stage::Brought => self.flush(ground)?,
            // Or a log from before would be replayed after a loss of power.
            Stage::Synced => ground.base.agree(self.burst.sync(&ground.base))?,
            Stage::Ended | Stage::Safe | Stage::Closed | Stage::Redefined => {}
        }
        self.under.settle(ground, stage)?;
        self.stand_again(ground);
        match stage {
            Stage::Closed => self.burst.remove(&ground.base),
            _ => Ok(()),
        }
    }

    fn amended(&mut self, ground: &mut Ground) {
        self.burst.amend(&ground.header);
        self.under.amended(ground);
    }

    fn fill_record(&mut self, ground: &mut Ground, var: VarId, record: u64) -> Result<()> {
        self.under.mend(ground)?;
        self.under.fill_record(ground, var, record)?;
        self.stand_again(ground);
        self.burst.file_has(ground.records);
        Ok(())
    }

    fn caches(&self, hints: &Hints) -> Vec<CacheUse> {
        self.under.caches(hints).into_iter().chain(self.burst.caches(hints)).collect()
    }

    fn notes(&self) -> Option<&[String]> {
        Some(&self.burst.notes)
    }
}

/// What the logs of another dataset say of a file, over its layout: for reads alone.
#[derive(Debug)]
pub(crate) struct Overlaid {
    pub(crate) view: Arc<dyn Over>,
    pub(crate) under: Box<dyn Layout>,
}

impl Layout for Overlaid {
    fn under(&self) -> Option<&dyn Layout> {
        Some(&*self.under)
    }

    fn under_mut(&mut self) -> Option<&mut dyn Layout> {
        Some(&mut *self.under)
    }

    fn has(&self, var: VarId) -> bool {
        self.under.has(var)
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        self.under.check(ground, Asked { space: Space::Log, ..asked })
    }

    fn shape(&self, ground: &Ground, var: VarId, _: bool) -> Result<Vec<u64>> {
        self.under.shape(ground, var, true)
    }

    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        _: bool,
    ) -> Result<()> {
        self.under.require_present(ground, var, checked, true)
    }

    fn read_alone(
        &self,
        ground: &Ground,
        gets: &mut Vec<Request<'_>>,
        _: Option<&Arc<dyn Over>>,
        report: &mut Report,
    ) -> Result<()> {
        self.under.read_alone(ground, gets, Some(&self.view), report)
    }

    fn over(&self, _: &Ground) -> Result<Option<Arc<dyn Over>>> {
        Ok(Some(self.view.clone()))
    }

    fn space(&self) -> Space {
        Space::Log
    }
}
