//! Layers: the entries that have what is wanted, ready to be laid out.

use std::sync::Arc;

use esker_format::VarId;

use super::SortedRuns;
use super::asking::Question;
use super::grid::Slab;
use super::index::{Cost, Found, Order};
use super::lay::{Laying, Part, Stretch, Want};
use super::view::Scratch;
use crate::plan::sort_by_offset;

/// One entry, while it is laid out.
pub(super) struct Layer {
    pub(super) found: Found,
    /// `None` where there is no room for the runs of all layers: then they are decoded again
    /// for each window.
    pub(super) runs: Option<Arc<SortedRuns>>,
    /// Elements of its payload before those of the stretch's record.
    pub(super) before: u64,
    /// The box around it in the variable's grid, and whether it is all of that.
    pub(super) hull: Slab,
    pub(super) whole: bool,
    /// Where in its runs the last window ended.
    pub(super) cursor: usize,
    pub(super) loaded: Option<Loaded>,
}

/// Blocks of a payload, checked.
pub(super) struct Loaded {
    pub(super) bytes: Scratch,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Layer {
    /// Goes to the elements of a record.
    pub(super) fn go_to(&mut self, record: u64) {
        let Found { records, elements, .. } = &self.found;
        let skipped = record.saturating_sub(records.first) / records.step;
        self.before = skipped.saturating_mul(*elements);
        self.cursor = 0;
    }

    /// Whether all that is wanted is in it.
    pub(super) fn covers(&self, wants: &[Want]) -> bool {
        let (Some(first), Some(last)) = (wants.first(), wants.last()) else { return true };
        let Found { first: low, end, .. } = self.found;
        let is_one_run = self.runs.as_ref().is_some_and(|runs| runs.is_one_run());
        is_one_run && low <= first.from && last.to <= end
    }

    /// Puts what there is of `wants` into `parts`, in the order of the payload.
    pub(super) fn parts(&mut self, runs: &SortedRuns, wants: &[Want], parts: &mut Vec<Part>) {
        self.parts_and(runs, wants, parts, |_, _, _| {});
    }

    /// The same, and tells of each part which want it is of, where in it, and how long.
    pub(super) fn parts_and(
        &mut self,
        runs: &SortedRuns,
        wants: &[Want],
        parts: &mut Vec<Part>,
        mut each: impl FnMut(usize, u64, u64),
    ) {
        parts.clear();
        let Found { first, end, width, .. } = self.found;
        let width = u64::from(width);
        let reached = wants.partition_point(|want| want.to <= first);
        let those = wants.iter().enumerate().skip(reached);
        for (number, want) in those.take_while(|(_, want)| want.from < end) {
            let low = want.from.saturating_sub(first);
            let (at, before) = (want.at, self.before);
            runs.within(&mut self.cursor, low, want.to - first, |start, len, element| {
                let place = first + start - want.from;
                each(number, place, len);
                parts.push(Part {
                    from: (before + element) * width,
                    at: at + place * width,
                    len: len * width,
                });
            });
        }
        // Payloads are read in their own order, in which an entry also overwrites itself.
        if !parts.is_sorted_by_key(|p| p.from) {
            sort_by_offset(parts, |p| p.from);
        }
    }
}

/// Bytes that an entry takes while it is laid out.
fn memory_of(found: &Found) -> usize {
    found.memory() + size_of::<Layer>() - size_of::<Found>()
}

/// Some entries, oldest first, and the newest of them if there are more behind it.
pub(super) type Layers = (Vec<Layer>, Option<Order>);

impl Laying<'_> {
    /// Entries that may have what is wanted, oldest first: those after `after` that there is
    /// room for. `None` if there are more and `all` are asked for.
    pub(super) fn layers(
        &self,
        wants: &[Want],
        after: Option<Order>,
        all: bool,
    ) -> esker_store::Result<Option<Layers>> {
        let (Some(first), Some(last)) = (wants.first(), wants.last()) else {
            return Ok(Some((Vec::new(), None)));
        };
        let (from, to) = (first.from, last.to);
        let Stretch { var: VarId(var), record, .. } = *self.stretch;
        let question = Question::of_elements(var as u64, record..record + 1, from..to);
        // Not what lies between two wants.
        let meets = |found: &Found| {
            let next = wants.partition_point(|want| want.to <= found.first);
            question.meets(found) && wants.get(next).is_some_and(|want| want.from < found.end)
        };
        let found = self.layers_of(&question, meets, after, all)?;
        let Some((mut layers, newest)) = found else { return Ok(None) };
        for layer in &mut layers {
            layer.go_to(record);
        }
        self.decode(&mut layers)?;
        Ok(Some((layers, newest)))
    }

    /// Decodes the runs of layers, as many as there is room for.
    fn decode(&self, layers: &mut [Layer]) -> esker_store::Result<()> {
        let mut held = 0;
        for layer in layers.iter_mut() {
            if held > self.index.runs_room() {
                break;
            }
            let runs = self.decoded_runs(&layer.found)?;
            held += runs.memory();
            layer.runs = Some(runs);
        }
        let memory: usize = layers.iter().map(|layer| memory_of(&layer.found)).sum();
        self.index.note(memory + held);
        Ok(())
    }

    /// The entries that meet a question, in the same way.
    pub(super) fn layers_of(
        &self,
        question: &Question,
        meets: impl Fn(&Found) -> bool,
        after: Option<Order>,
        all: bool,
    ) -> esker_store::Result<Option<Layers>> {
        let index = self.index;
        let grid = index.grid(question.var);
        let room = index.section_room();
        let (mut entries, mut memory, mut left_out) = (Vec::new(), 0, false);
        let asked = after.is_none()
            && index.ask_slab(question.var, &question.hull(grid), |found| {
                if left_out || !meets(found) {
                    return;
                }
                memory += memory_of(found);
                match memory <= room || entries.is_empty() {
                    true => entries.push(found.clone()),
                    false => left_out = true,
                }
            });
        let mut newest = None;
        if all && left_out {
            return Ok(None);
        }
        if !asked || left_out {
            drop(entries);
            let cost = |_: u64, found: &Found| Cost { own: memory_of(found), shared: 0 };
            let collected = index.collect(std::slice::from_ref(question), after, room, cost);
            let collected = collected.map_err(|e| self.view.store_error(e))?;
            newest = collected.entries.last().map(|(_, found)| found.order);
            newest = newest.filter(|_| collected.more);
            entries = collected.entries.into_iter().map(|(_, found)| found).collect();
            memory = entries.iter().map(memory_of).sum();
        }
        // An entry of another width belongs to something that had this number once.
        entries.retain(|found| u64::from(found.width) == self.width());
        entries.sort_unstable_by_key(|found| found.order);
        index.note(memory);
        let layer = |found: Found| {
            let (hull, whole) = index.hull(question.var, &found);
            Layer { found, runs: None, hull, whole, before: 0, cursor: 0, loaded: None }
        };
        Ok(Some((entries.into_iter().map(layer).collect(), newest)))
    }

    /// The runs of a layer.
    pub(super) fn runs_of(&self, layer: &Layer) -> esker_store::Result<Arc<SortedRuns>> {
        match &layer.runs {
            Some(runs) => Ok(runs.clone()),
            None => self.decoded_runs(&layer.found),
        }
    }

    fn decoded_runs(&self, found: &Found) -> esker_store::Result<Arc<SortedRuns>> {
        let runs = self.index.runs(found).map_err(|e| self.view.store_error(e))?;
        runs.ok_or_else(|| {
            let rank = self.index.logs[found.log as usize].rank;
            let why = format!("the metadata log of rank {rank} has changed");
            self.view.failed("read of the log".to_string(), why)
        })
    }
}
