//! The model forward: what is recorded, kept and compared on the way.

use super::Runner;
use crate::error::{AdjointError, Result};
use crate::options::OnDrift;
use crate::schedule::{Data, OPEN_END, Place, Schedule};
use crate::segment::{Kind, Snapshot};
use crate::stopwatch::Stopwatch;

impl Runner<'_> {
    pub(super) fn forward(
        &mut self,
        schedule: &mut dyn Schedule,
        from: u64,
        to: u64,
        what: Option<Data>,
        place: Place,
    ) -> Result<()> {
        let Some((at, depth)) = self.at.filter(|(at, _)| *at == from) else {
            return Err(AdjointError::NotKept { step: from, place: Place::Work });
        };
        debug_assert_eq!(at, from);
        if to == OPEN_END {
            return self.forward_to_the_end(schedule, from, what);
        }
        let has_deps = self.model.has_deps();
        let in_tier = matches!(place, Place::Memory | Place::Disk);
        let wants_deps = matches!(what, Some(Data::Deps | Data::Both));
        let (mut encodings, mut held) = (Vec::new(), None);
        if in_tier {
            // Where the adjoint depends on the state alone, what restarts the model is all there is to keep.
            let kind = match what {
                Some(Data::Restart | Data::Both) => Some(Kind::Restart),
                Some(Data::Deps) if !has_deps => Some(Kind::Deps),
                _ => None,
            };
            if let Some(kind) = kind {
                if self.may_choose(schedule) && self.step_time.median().is_none() {
                    // What a step takes decides: this one is run before the filters are chosen.
                    held = Some((kind, self.copied()));
                } else {
                    self.choose_filters(schedule, from)?;
                    encodings.push(self.encode((from, kind), depth));
                }
            }
        } else if wants_deps && !has_deps {
            if self.ended {
                // The state is in place: its step need not be run to be reversed.
                return Ok(());
            }
            self.record(from);
        }
        self.advance(schedule, from, to)?;
        if let Some((kind, snapshot)) = held {
            self.choose_filters(schedule, from)?;
            encodings.push(self.encode_copy((from, kind), depth, snapshot));
        }
        if in_tier && wants_deps && has_deps {
            encodings.push(self.encode((from, Kind::Deps), depth));
        }
        for encoding in encodings {
            self.commit(schedule, encoding, place)?;
        }
        Ok(())
    }

    fn copied(&mut self) -> Snapshot {
        let mut snapshot = self.spare.pop().unwrap_or_default();
        snapshot.take(&self.model.state());
        snapshot
    }

    /// Keeps a copy of the state for the adjoint of its step.
    pub(super) fn record(&mut self, step: u64) {
        let snapshot = self.copied();
        // One step at a time is recorded, but for the schedule that keeps all in work.
        if let Some((_, old)) = self.recorded.pop_last() {
            self.spare.push(old);
        }
        self.recorded.insert(step, snapshot);
    }

    /// A model whose end is not known: step by step; all dependencies stay in work if they are wanted.
    pub(super) fn forward_to_the_end(
        &mut self,
        schedule: &mut dyn Schedule,
        from: u64,
        what: Option<Data>,
    ) -> Result<()> {
        let mut step = from;
        while schedule.steps().is_none() {
            if what.is_some() {
                let mut snapshot = Snapshot::default();
                snapshot.take(&self.model.state());
                self.recorded.insert(step, snapshot);
            }
            self.advance(schedule, step, step + 1)?;
            step += 1;
        }
        Ok(())
    }

    /// Runs the model, in pieces where states are compared with what they were.
    pub(super) fn advance(
        &mut self,
        schedule: &mut dyn Schedule,
        from: u64,
        to: u64,
    ) -> Result<()> {
        let depth = self.at.map_or(0, |(_, depth)| depth);
        // Where the end is not known, every state may be the last.
        let open = !self.ended && schedule.steps().is_none();
        let mut stops = match self.ended {
            true => self.samples.between(from, to),
            false if open => (from + 1..to).collect(),
            false => {
                let first = (from / self.stride).saturating_add(1).saturating_mul(self.stride);
                (first..to).step_by(self.stride.min(1 << 32) as usize).collect()
            }
        };
        stops.push(to);
        let mut at = from;
        for stop in stops {
            let steps = (stop - at) as f64;
            let watch = Stopwatch::start(self.step_time.median().map(|step| step * steps));
            self.call(|| format!("forward({at}, {stop})"), |model| model.forward(at, stop))?;
            self.step_time.add(watch.seconds() / steps);
            self.report.forward += stop - at;
            at = stop;
            self.look_at(stop, depth)?;
            self.at = Some((stop, depth));
            if !self.ended {
                self.ask_whether_it_ends(schedule, stop)?;
            }
            if open && schedule.steps().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Remembers a state of the first run, or compares it with what it was.
    pub(super) fn look_at(&mut self, step: u64, depth: u32) -> Result<()> {
        if !self.options.check_finite {
            return Ok(());
        }
        if !self.ended {
            return self.samples.remember(step, &self.model.state());
        }
        let exact = depth == 0 || !self.lossy;
        let limit = self.options.drift_limit;
        match self.samples.compare(step, &self.model.state(), exact, limit) {
            Ok(drift) => self.report.drift = self.report.drift.max(drift),
            Err(AdjointError::Drift { drift, .. })
                if !exact && self.options.on_drift == OnDrift::Lossless =>
            {
                if self.report.drift <= limit {
                    self.report.notes.push(format!(
                        "the error of lossy checkpoints has grown to {drift:.3e} at step {step}: nothing is lost from here on"
                    ));
                }
                self.report.drift = self.report.drift.max(drift);
                self.filters = self.exact.clone();
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn ask_whether_it_ends(
        &mut self,
        schedule: &mut dyn Schedule,
        at: u64,
    ) -> Result<()> {
        let finished = self.model.is_finished(at);
        let promised = schedule.steps();
        match (promised, finished) {
            (Some(promised), Some(true)) if at < promised => {
                Err(AdjointError::OtherEnd { promised, found: at, what: "it has ended" })
            }
            (Some(promised), Some(false)) if at == promised => {
                Err(AdjointError::OtherEnd { promised, found: at, what: "it goes on" })
            }
            (None, Some(true)) => {
                schedule.finalize(at)?;
                (self.report.steps, self.end) = (at, at);
                Ok(())
            }
            (None, None) => Err(AdjointError::NoEnd),
            _ => Ok(()),
        }
    }
}
