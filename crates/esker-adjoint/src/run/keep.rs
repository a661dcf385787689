//! A checkpoint is made: encoded beside the model, weighed with all ranks, put where there is room.

use std::sync::Arc;
use std::time::Instant;

use esker_codec::Scratch;
use esker_comm::{ReduceOp, Reduction};
use esker_format::ExternalType;

use super::Runner;
use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::lane::Promise;
use crate::model::{ArrayMut, Layout};
use crate::schedule::{Costs, Data, Place, Schedule, ScheduleError};
use crate::segment::{self, Kind, Snapshot, Title, Unsealed};
use crate::stopwatch::Stopwatch;
use crate::tiers::Key;

/// A state that is being encoded beside the model.
pub(super) struct Encoding {
    key: Key,
    depth: u32,
    raw: u64,
    done: Promise<Encoded>,
}

struct Encoded {
    bytes: Result<Vec<u8>>,
    /// Memory that can be used again.
    snapshot: Option<Snapshot>,
    /// How long it took, unless that is known already.
    seconds: Option<f64>,
}

fn nanos(seconds: Option<f64>) -> u64 {
    (seconds.unwrap_or(0.0) * 1e9) as u64
}

/// The first element with all bits of its exponent set, which is not finite. In blocks, because every state is looked at.
fn first_not_finite<const N: usize>(
    values: &[[u8; N]],
    is_finite: impl Fn([u8; N]) -> bool,
) -> Option<usize> {
    const BLOCK: usize = 512;
    let is_good = |block: &[[u8; N]]| block.iter().fold(true, |good, v| good & is_finite(*v));
    let block = values.chunks(BLOCK).position(|block| !is_good(block))?;
    let inside = values[block * BLOCK..].iter().position(|value| !is_finite(*value))?;
    Some(block * BLOCK + inside)
}

/// The first element of a state that is not finite.
fn not_finite<'s>(arrays: impl Iterator<Item = (&'s Layout, &'s [u8])>, step: u64) -> Result<()> {
    for (layout, bytes) in arrays {
        let found = match layout.ty {
            ExternalType::Double => {
                first_not_finite(bytes.as_chunks::<8>().0, |b| f64::from_ne_bytes(b).is_finite())
            }
            ExternalType::Float => {
                first_not_finite(bytes.as_chunks::<4>().0, |b| f32::from_ne_bytes(b).is_finite())
            }
            _ => None,
        };
        if let Some(element) = found {
            return Err(AdjointError::NotFinite { array: layout.name.clone(), step, element });
        }
    }
    Ok(())
}

/// A state through its filters, after a look at whether it is finite.
fn encoded<'a>(
    title: &Title,
    arrays: impl Iterator<Item = (&'a Layout, &'a [u8])> + Clone,
    filters: &Filters,
    check: bool,
    buffer: Vec<u8>,
    scratch: &mut Scratch,
) -> Encoded {
    let watch = Stopwatch::start(None);
    let pipelines = filters.for_state(arrays.clone(), scratch);
    let unproved = arrays
        .clone()
        .zip(&pipelines)
        .filter(|((layout, _), found)| check && !filters.prove_finite(&layout.name, **found));
    let checked = not_finite(unproved.map(|(array, _)| array), title.step);
    let bytes = checked.and_then(|()| segment::encode(title, arrays, &pipelines, buffer, scratch));
    Encoded { bytes, snapshot: None, seconds: Some(watch.seconds()) }
}

impl Runner<'_> {
    /// How many bytes the initial state has when it is encoded, the most of all ranks.
    pub(super) fn first_size(&mut self) -> Result<u64> {
        let (begin, watch) = (Instant::now(), Stopwatch::start(None));
        let (title, filters) = (self.tiers.title(&(0, Kind::Restart)), self.filters.clone());
        let arrays = self.model.state();
        let layouts: Vec<Layout> = arrays.iter().map(ArrayMut::layout).collect();
        let values = layouts.iter().zip(&arrays).map(|(layout, array)| (layout, &array.bytes[..]));
        let checked =
            if self.options.check_finite { not_finite(values.clone(), 0) } else { Ok(()) };
        let encoded = checked.and_then(|()| {
            if filters.leave_alone(&arrays) {
                return Ok(Unsealed::copy(&title, &arrays, |_| Vec::new()).seal());
            }
            let pipelines = filters.for_state(values.clone(), &mut self.scratch);
            segment::encode(&title, values, &pipelines, Vec::new(), &mut self.scratch)
        });
        self.encode_time.add(watch.seconds());
        self.report.waited += begin.elapsed();
        let mut told =
            [u64::from(encoded.is_err()), encoded.as_ref().map_or(0, |bytes| bytes.len() as u64)];
        self.comm.all_reduce(Reduction::U64(&mut told), ReduceOp::Max)?;
        match encoded {
            Ok(_) if told[0] > 0 => Err(AdjointError::OtherRank { at: "first state".into() }),
            Ok(bytes) => {
                self.first_encoded = Some(bytes);
                Ok(told[1])
            }
            Err(error) => {
                self.told = true;
                Err(error)
            }
        }
    }

    /// The model has waited since then for a state that is stored.
    fn stored_in(&mut self, begin: Instant) {
        let time = begin.elapsed();
        self.report.waited += time;
        self.report.storing += time;
    }

    /// What has gone through more checkpoints than planned must not lose again.
    fn filters_at(&self, depth: u32) -> Arc<Filters> {
        if depth < self.depth { self.filters.clone() } else { self.exact.clone() }
    }

    /// Copies arrays of the model and lets them be encoded beside it.
    pub(super) fn encode(&mut self, key: Key, depth: u32) -> Encoding {
        let begin = Instant::now();
        let filters = self.filters_at(depth);
        let (title, check) = (self.tiers.title(&key), self.options.check_finite);
        let first = self.first_encoded.take().filter(|_| key == (0, Kind::Restart));
        let of_deps = key.1 == Kind::Deps && self.model.has_deps();
        let arrays = if of_deps { self.model.deps() } else { self.model.state() };
        let raw = arrays.iter().map(|array| array.bytes.len() as u64).sum();
        let done = if let Some(bytes) = first {
            self.coder.submit(|_| Encoded { bytes: Ok(bytes), snapshot: None, seconds: None })
        } else if filters.leave_alone(&arrays) {
            let copied = Unsealed::copy(&title, &arrays, |bytes| self.tiers.arena.take(bytes));
            self.coder.submit(move |_| {
                let watch = Stopwatch::start(None);
                let checked = if check { not_finite(copied.arrays(), title.step) } else { Ok(()) };
                let bytes = checked.map(|()| copied.seal());
                Encoded { bytes, snapshot: None, seconds: Some(watch.seconds()) }
            })
        } else if self.coder.is_beside() {
            let mut snapshot = self.spare.pop().unwrap_or_default();
            snapshot.take(&arrays);
            drop(arrays);
            self.encode_snapshot(key, filters, snapshot)
        } else {
            // The model waits: its own memory is what is encoded.
            let layouts: Vec<Layout> = arrays.iter().map(ArrayMut::layout).collect();
            let values = layouts.iter().zip(&arrays);
            let values = values.map(|(layout, array)| (layout, &array.bytes[..]));
            let buffer = self.tiers.arena.take(self.last_length);
            Promise::kept(encoded(&title, values, &filters, check, buffer, &mut self.scratch))
        };
        self.stored_in(begin);
        Encoding { key, depth: depth + 1, raw, done }
    }

    /// The same for a state that was copied before.
    pub(super) fn encode_copy(&mut self, key: Key, depth: u32, snapshot: Snapshot) -> Encoding {
        let begin = Instant::now();
        let raw = snapshot.arrays().map(|(_, bytes)| bytes.len() as u64).sum();
        let done = self.encode_snapshot(key, self.filters_at(depth), snapshot);
        self.stored_in(begin);
        Encoding { key, depth: depth + 1, raw, done }
    }

    fn encode_snapshot(
        &mut self,
        key: Key,
        filters: Arc<Filters>,
        snapshot: Snapshot,
    ) -> Promise<Encoded> {
        let (title, check) = (self.tiers.title(&key), self.options.check_finite);
        // As long as the last one: states differ little.
        let buffer = self.tiers.arena.take(self.last_length);
        if !self.coder.is_beside() {
            let arrays = snapshot.arrays();
            let done = encoded(&title, arrays, &filters, check, buffer, &mut self.scratch);
            return Promise::kept(Encoded { snapshot: Some(snapshot), ..done });
        }
        self.coder.submit(move |scratch| {
            let done = encoded(&title, snapshot.arrays(), &filters, check, buffer, scratch);
            Encoded { snapshot: Some(snapshot), ..done }
        })
    }

    /// Waits for an encoded state and keeps it, where the plan and all ranks want it.
    pub(super) fn commit(
        &mut self,
        schedule: &mut dyn Schedule,
        encoding: Encoding,
        place: Place,
    ) -> Result<()> {
        let Encoding { key, depth, raw, done } = encoding;
        let begin = Instant::now();
        let gone = || AdjointError::Model { call: "a thread".into(), message: "it ended".into() };
        let Encoded { bytes, snapshot, seconds } = done.wait().ok_or_else(gone)?;
        self.report.bytes[0] += raw;
        self.spare.clear();
        self.spare.extend(snapshot);
        seconds.into_iter().for_each(|seconds| self.encode_time.add(seconds));
        let bytes = bytes?;
        let length = bytes.len() as u64;
        (self.report.bytes[1], self.last_length) = (self.report.bytes[1] + length, bytes.len());
        self.tiers.settle()?;
        let full = self.tiers.has_become_full();
        let stranded = self.tiers.stranded().map_or(0, |key| key.0 + 1);
        let mut told = [
            0,
            length,
            u64::from(full),
            stranded,
            nanos(self.step_time.median()),
            nanos(self.encode_time.median()),
            nanos(self.decode_time.median()),
            nanos(self.tiers.writes.of(length)),
            nanos(self.tiers.reads.of(length)),
        ];
        self.reduce(&mut told)?;
        let step = key.0;
        let largest = told[1];
        self.auto.stored(largest);
        let data = if key.1 == Kind::Deps { Data::Deps } else { Data::Restart };
        let mut target = place;
        if let Some(plan) = schedule.budget() {
            let seconds = |i: usize| told[i] as f64 * 1e-9;
            if self.options.measure && told[7] > 0 && told[4] > 0 {
                let costs = Costs {
                    step: seconds(4),
                    encode: seconds(5),
                    decode: seconds(6),
                    write: seconds(7),
                    read: if told[8] > 0 { seconds(8) } else { seconds(7) },
                };
                plan.set_costs(costs);
            }
            if told[2] > 0 {
                if told[3] > 1 {
                    // Lost on one rank, given up on all. The first is never lost in this way.
                    let lost = (told[3] - 1, Kind::Restart);
                    plan.lost(lost.0, Data::Restart);
                    self.tiers.drop_key(&lost)?;
                    self.depths.remove(&lost);
                }
                plan.limit(Place::Disk, plan.used()[1]);
            }
            let outcome = plan.encoded(step, data, largest)?;
            for (step, data, _) in outcome.given_up {
                let kind = if data == Data::Deps { Kind::Deps } else { Kind::Restart };
                self.tiers.drop_key(&(step, kind))?;
            }
            target = outcome.place;
        } else {
            target = self.room_for(step, largest, target)?;
        }
        if target != Place::Nowhere {
            self.depths.insert(key, depth);
            self.report.stored[usize::from(target == Place::Disk)] += 1;
            self.tiers.keep(key, target, bytes, false)?;
            if step == 0 && target == Place::Disk {
                self.secure_first(schedule, &key)?;
            }
        } else {
            self.tiers.arena.give_back(bytes);
        }
        self.stored_in(begin);
        Ok(())
    }

    /// The first is what all others are computed from: it is whole before anything else happens. If the disk of a rank
    /// does not take it, it stays in memory on all.
    pub(super) fn secure_first(&mut self, schedule: &mut dyn Schedule, key: &Key) -> Result<()> {
        self.tiers.settle()?;
        let mut told = [0; 9];
        told[1] = u64::from(self.tiers.stranded() == Some(*key));
        self.reduce(&mut told)?;
        if told[1] == 0 {
            return Ok(());
        }
        self.tiers.has_become_full();
        self.tiers.rescue(key)?;
        let (used, limits) = (self.tiers.used(), self.tiers.limits);
        if let Some(plan) = schedule.budget() {
            plan.moved(key.0, Data::Restart, Place::Memory);
            plan.limit(Place::Disk, 0);
        }
        if used[0] > limits[0] {
            let [memory, disk] = limits;
            let bytes = used[0];
            return Err(ScheduleError::BelowOneState { step: 0, bytes, memory, disk }.into());
        }
        Ok(())
    }

    /// Where a checkpoint of a plan of slots fits; all ranks have the same bytes in use, or fewer.
    pub(super) fn room_for(&self, step: u64, bytes: u64, wanted: Place) -> Result<Place> {
        let (used, limits) = (self.tiers.used(), self.tiers.limits);
        let left = [limits[0].saturating_sub(used[0]), limits[1].saturating_sub(used[1])];
        let on_disk = self.tiers.folder.is_some() && !self.tiers.disk_is_full;
        let order = match wanted {
            Place::Disk => [(Place::Disk, left[1], on_disk), (Place::Memory, left[0], true)],
            _ => [(Place::Memory, left[0], true), (Place::Disk, left[1], on_disk)],
        };
        let found = order.into_iter().find(|(_, left, there)| *there && bytes <= *left);
        found.map(|(place, ..)| place).ok_or(AdjointError::OverBudget {
            step,
            bytes,
            memory: left[0],
            disk: left[1],
        })
    }
}
