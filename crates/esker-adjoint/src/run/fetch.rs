//! A checkpoint is loaded, moved, or computed again because it is damaged.

use std::sync::Arc;
use std::time::Instant;

use super::{Runner, agree};
use crate::error::{AdjointError, Result};
use crate::model::{ArrayMut, Layout};
use crate::schedule::{Data, Place};
use crate::segment::{self, Kind};
use crate::stopwatch::Stopwatch;
use crate::tiers::Key;

impl Runner<'_> {
    /// Loads, moves or gives up a checkpoint.
    pub(super) fn fetch(&mut self, step: u64, what: Data, to: Place, gives_up: bool) -> Result<()> {
        if what == Data::Both && self.model.has_deps() {
            self.fetch(step, Data::Restart, to, gives_up)?;
            return self.fetch(step, Data::Deps, to, gives_up);
        }
        let kind = if what == Data::Deps { Kind::Deps } else { Kind::Restart };
        let key = (step, kind);
        if to == Place::Work {
            self.load(&key)?;
        } else if to != Place::Nowhere {
            let bytes = self.tiers.load(&key)?;
            self.tiers.drop_key(&key)?;
            let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
            return self.tiers.keep(key, to, bytes, false);
        }
        if gives_up {
            self.tiers.drop_key(&key)?;
            self.depths.remove(&key);
            self.tiers.read_ahead(step);
        }
        Ok(())
    }

    pub(super) fn load(&mut self, key: &Key) -> Result<()> {
        let begin = Instant::now();
        let place = self.tiers.place_of(key).unwrap_or(Place::Memory);
        let loaded = self.restore(key, place);
        // A rank whose checkpoint is damaged computes it again, and the others with it.
        let mut damaged = [u64::from(matches!(loaded, Err(AdjointError::Damaged { .. })))];
        if self.comm.size() > 1 {
            let mut told = [0; 9];
            told[0] = u64::from(loaded.is_err() && damaged[0] == 0);
            told[1] = damaged[0];
            if told[0] > 0 {
                return loaded;
            }
            self.reduce(&mut told)?;
            damaged[0] = told[1];
        }
        if damaged[0] > 0 {
            return self.compute_again(key, loaded);
        }
        loaded?;
        self.report.loaded[usize::from(place == Place::Disk)] += 1;
        self.report.waited += begin.elapsed();
        let depth = self.depths.get(key).copied().unwrap_or(1);
        self.at = Some((key.0, depth));
        Ok(())
    }

    /// Decodes a checkpoint into the model.
    pub(super) fn restore(&mut self, key: &Key, place: Place) -> Result<()> {
        let bytes = self.tiers.load(key)?;
        let watch = Stopwatch::start(None);
        let stored = segment::open(&bytes, &self.tiers.title(key), place)?;
        let layout: Vec<Layout> = stored.iter().map(|array| array.layout.clone()).collect();
        let of_deps = key.1 == Kind::Deps && self.model.has_deps();
        let differs = |arrays: Vec<ArrayMut<'_>>| {
            !arrays.iter().map(ArrayMut::layout).eq(layout.iter().cloned())
        };
        if !of_deps && differs(self.model.state()) {
            self.call(|| "reshape".into(), |model| model.reshape(&layout))?;
        }
        let arrays = if of_deps { self.model.deps() } else { self.model.state() };
        segment::restore(&stored, arrays, key.0, place, &mut self.scratch)?;
        self.decode_time.add(watch.seconds());
        self.tiers.give_back(bytes);
        Ok(())
    }

    /// After a checkpoint turned out to be damaged: from an earlier one.
    pub(super) fn compute_again(&mut self, key: &Key, found: Result<()>) -> Result<()> {
        let error = match found {
            Err(error) => error,
            Ok(()) => AdjointError::OtherRank { at: "load of a checkpoint".into() },
        };
        self.report.notes.push(format!("{error}; it is computed again from an earlier checkpoint"));
        for below in self.tiers.below(key.0) {
            let place = self.tiers.place_of(&below).unwrap_or(Place::Memory);
            let loaded = self.restore(&below, place);
            let loaded = agree(self.comm, loaded, "load of an earlier checkpoint");
            if let Err(error) = loaded {
                self.report.notes.push(error.to_string());
                continue;
            }
            let depth = self.depths.get(&below).copied().unwrap_or(1);
            self.at = Some((below.0, depth));
            let (mut at, to) = (below.0, key.0);
            let stops = self.samples.between(at, to);
            for stop in stops.into_iter().chain([to]) {
                self.call(|| format!("forward({at}, {stop})"), |m| m.forward(at, stop))?;
                self.report.forward += stop - at;
                at = stop;
            }
            if key.1 == Kind::Deps && self.model.has_deps() {
                self.call(|| format!("forward({to}, {})", to + 1), |m| m.forward(to, to + 1))?;
                self.report.forward += 1;
            }
            self.at = Some((to, depth));
            return Ok(());
        }
        Err(error)
    }
}
