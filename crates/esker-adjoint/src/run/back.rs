//! The adjoint backwards, and its own state, from which a killed run goes on.

use std::time::Instant;

use super::Runner;
use crate::error::{AdjointError, Result};
use crate::model::{ArrayMut, Layout};
use crate::schedule::Place;
use crate::segment::{Kind, Snapshot, Unsealed};

impl Runner<'_> {
    pub(super) fn reverse(&mut self, from: u64, to: u64) -> Result<()> {
        let mut at = from;
        while at > to {
            let step = at - 1;
            if let Some(snapshot) = self.recorded.remove(&step) {
                self.put_back(&snapshot)?;
            }
            self.call(|| format!("reverse({at}, {step})"), |model| model.reverse(at, step))?;
            at = step;
            self.end = at;
            self.samples.forget_from(at);
            self.keep_adjoint()?;
        }
        self.at = None;
        Ok(())
    }

    pub(super) fn put_back(&mut self, snapshot: &Snapshot) -> Result<()> {
        let layout: Vec<Layout> =
            snapshot.arrays.iter().map(|(layout, _)| layout.clone()).collect();
        let differs = !self.model.state().iter().map(ArrayMut::layout).eq(layout.iter().cloned());
        if differs {
            self.call(|| "reshape".into(), |model| model.reshape(&layout))?;
        }
        for ((layout, bytes), array) in snapshot.arrays.iter().zip(self.model.state()) {
            if array.layout() != *layout || array.bytes.len() != bytes.len() {
                return Err(AdjointError::Layout {
                    array: layout.name.clone(),
                    step: self.end.saturating_sub(1),
                    stored: layout.to_string(),
                    found: array.layout().to_string(),
                });
            }
            array.bytes.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Stores the adjoint every so many steps, so that a run can be resumed from there.
    pub(super) fn keep_adjoint(&mut self) -> Result<()> {
        let every = self.options.adjoint_every.unwrap_or((self.report.steps / 20).max(1)).max(1);
        let since = self.adjoint_kept.unwrap_or(self.report.steps) - self.end;
        // The last one is the result, which whoever is killed before he has used it finds in the folder.
        if self.tiers.folder.is_none() || since == 0 || (self.end > 0 && since < every) {
            return Ok(());
        }
        let begin = Instant::now();
        let key = (self.end, Kind::Adjoint);
        let bytes =
            Unsealed::copy(&self.tiers.title(&key), &self.model.adjoint(), |_| Vec::new()).seal();
        self.tiers.keep(key, Place::Disk, bytes, true)?;
        self.tiers.settle()?;
        if let Some(folder) = &self.tiers.folder {
            folder.sync()?;
        }
        // The older one goes when all ranks have the new one, unless a full disk did not take it.
        let kept = self.tiers.place_of(&key) == Some(Place::Disk);
        let mut told = [0; 9];
        told[1] = u64::from(!kept);
        self.reduce(&mut told)?;
        let loser = if told[1] == 0 { self.adjoint_kept.replace(self.end) } else { Some(self.end) };
        if let Some(step) = loser {
            self.tiers.drop_key(&(step, Kind::Adjoint))?;
        }
        self.report.waited += begin.elapsed();
        Ok(())
    }
}
