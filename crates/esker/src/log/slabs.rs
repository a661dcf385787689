//! Laying boxes: what a box that is wanted and the box of an entry have in common is copied by rows.
//!
//! A box is laid as a whole, all layers over each other, and cut in two only where there is no room for its layers. Entries that are
//! no boxes, strided ones and lists, give their runs to the rows that they may have. Where nothing that is there is a box, rows are
//! all there is: `lay` has the road for them.

use std::collections::HashSet;

use esker_format::log::BLOCK;

use super::asking::Question;
use super::grid::{Grid, Slab};
use super::holes::Holes;
use super::index::{Found, Index, Order};
use super::lay::{HOLE, LONG, Laying, OVERWRITTEN, Part, SPAN, Stretch, Want};
use super::layers::Layer;
use super::rows::Rows;

/// Rows that are laid one by one at a time, and their bytes.
const ROWS: u64 = 64 * 1024;
const LONGEST: u64 = 8 << 20;

/// What is laid, and where it goes.
#[derive(Clone, Copy)]
pub(super) struct Target<'t> {
    pub(super) grid: &'t Grid,
    pub(super) slab: Slab,
    /// The byte at which its first element goes.
    pub(super) at: u64,
}

impl Target<'_> {
    /// The element of it that is the first of a part, and the rows of that part in a record.
    fn rows(&self, part: &Slab) -> Rows {
        let elements = ([0; 8], self.grid.steps());
        Rows::new(part, &elements, &(self.slab.start, self.slab.steps()))
    }
}

impl Laying<'_> {
    /// Puts the elements of a box, one behind the other, into `out`.
    pub(super) fn lay_slab(&self, target: Target<'_>, out: &mut [u8]) -> esker_store::Result<()> {
        let Target { grid, slab, .. } = target;
        let var = self.stretch.var.0 as u64;
        // Where a file is under the log, or entries are seen in another grid, rows are all that both know.
        if self.view.has_under() || self.index.grid(var) != grid {
            return self.lay_rows(target, out);
        }
        let volume = slab.volume();
        let is_long = volume.saturating_mul(self.width()) > LONG;
        let records = slab.records();
        let question = Question { var, records, elements: grid.pattern(&slab) };
        let mut laying = *self;
        let mut after: Option<Order> = None;
        loop {
            let found = laying.layers_of(&question, |_| true, after, is_long)?;
            let Some((mut layers, newest)) = found else {
                return self.lay_slab_halves(target, out);
            };
            let over = |layers: &[Layer]| {
                let shared = layers.iter().filter_map(|layer| layer.hull.and(&slab));
                shared.map(|both| both.volume() as f64).sum::<f64>() / volume as f64
            };
            if over(&layers) > 1.0 {
                hide(&slab, &mut layers);
            }
            let has_boxes = layers.iter().any(|layer| layer.whole) || layers.is_empty();
            if after.is_none() && (!has_boxes || over(&layers) > OVERWRITTEN) {
                return self.lay_rows(target, out);
            }
            laying.lay_boxes(layers, &target, out)?;
            if newest.is_none() {
                return Ok(());
            }
            (after, laying.over) = (newest, true);
        }
    }

    fn lay_slab_halves(&self, target: Target<'_>, out: &mut [u8]) -> esker_store::Result<()> {
        // One element is never too much.
        let Some((one, other)) = target.slab.halves() else { return Ok(()) };
        let at = target.at + one.volume() * self.width();
        self.lay_slab(Target { slab: one, ..target }, out)?;
        self.lay_slab(Target { slab: other, at, ..target }, out)
    }

    fn is_too_many_rows(&self, target: &Target<'_>) -> bool {
        let Target { grid, slab, .. } = target;
        slab.rows(grid.dims()) > ROWS || slab.volume().saturating_mul(self.width()) > LONGEST
    }

    /// Lays a box row by row.
    fn lay_rows(&self, target: Target<'_>, out: &mut [u8]) -> esker_store::Result<()> {
        if self.is_too_many_rows(&target)
            && let Some((one, other)) = target.slab.halves()
        {
            let at = target.at + one.volume() * self.width();
            self.lay_rows(Target { slab: one, ..target }, out)?;
            return self.lay_rows(Target { slab: other, at, ..target }, out);
        }
        let mut wants = Vec::new();
        for record in target.slab.records() {
            self.wants(&target, &target.slab.in_record(record), &mut wants);
            let stretch = Stretch { record, begin: self.begin_of(record), ..*self.stretch };
            Laying { stretch: &stretch, ..*self }.lay(&wants, out)?;
        }
        Ok(())
    }

    /// Where the variable's record begins in the file.
    fn begin_of(&self, record: u64) -> u64 {
        let header = self.state.header();
        let begin = header.place(self.stretch.var).map_or(0, |place| place.begin);
        begin + record * header.layout.record_size
    }

    /// The rows of a part of what is laid, which is in one record.
    fn wants(&self, target: &Target<'_>, part: &Slab, wants: &mut Vec<Want>) {
        wants.clear();
        let rows = target.rows(part);
        rows.each(&mut |from, to| {
            let at = target.at + to * self.width();
            wants.push(Want { from, to: from + rows.len, at });
        });
    }

    /// Lays layers over each other, oldest first, and fills what none has.
    fn lay_boxes(
        &self,
        mut layers: Vec<Layer>,
        target: &Target<'_>,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let slab = &target.slab;
        let whole = Want { from: 0, to: slab.volume(), at: target.at };
        let covered = layers.first().is_some_and(|layer| layer.whole && has_all(&layer.hull, slab));
        let mut holes = (!self.over && !covered).then(|| {
            let mut holes = Holes::default();
            holes.reset(&[whole]);
            holes
        });
        for layer in &mut layers {
            let Some(part) = layer.hull.and(slab) else { continue };
            match layer.whole {
                true => self.lay_box(layer, (&part, target), holes.as_mut(), out)?,
                false => self.lay_others(layer, (&part, target), holes.as_mut(), out)?,
            }
            self.unload(layer);
        }
        if let Some(holes) = holes {
            let mut rest = Vec::new();
            holes.each(&[whole], self.width(), |hole| rest.push(hole));
            self.lay_rest(&rest, out)?;
        }
        Ok(())
    }

    /// Lays a part of a box.
    fn lay_box(
        &self,
        layer: &mut Layer,
        (part, target): (&Slab, &Target<'_>),
        holes: Option<&mut Holes>,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let slab = &target.slab;
        let (payload, dense) = (layer.hull, (slab.start, slab.steps()));
        if let Some(holes) = holes {
            let rows = Rows::new(part, &dense, &dense);
            rows.each(&mut |_, to| holes.lay(0, to, rows.len));
        }
        let stretch = Stretch { record: part.start[0], ..*self.stretch };
        let laying = Laying { stretch: &stretch, ..*self };
        let rows = Rows::new(part, &(payload.start, payload.steps()), &dense);
        let out = &mut out[target.at as usize..];
        if layer.found.encoded {
            let reversed = self.native && cfg!(target_endian = "little");
            let elements = laying.decoded(layer)?;
            rows.copy(self.width(), reversed, (&elements, 0), out);
            return Ok(());
        }
        laying.copy_rows(layer, &rows, out)
    }

    /// Copies rows of a payload: some of it is loaded at a time, and of what lies between rows no more than need be.
    fn copy_rows(&self, layer: &mut Layer, rows: &Rows, out: &mut [u8]) -> esker_store::Result<()> {
        let width = self.width();
        let reversed = self.is_reversed(&layer.found);
        if let Some((level, inner)) = rows.inner() {
            let one = inner.span() * width;
            let gap = (level.from * width).saturating_sub(one);
            if gap > HOLE || rows.span() * width > SPAN {
                let at_once = match gap > HOLE || one > SPAN {
                    true => 1,
                    false => (SPAN - one) / (level.from * width) + 1,
                };
                for first in (0..level.count).step_by(at_once as usize) {
                    let some = rows.stretch(first, at_once.min(level.count - first));
                    self.copy_rows(layer, &some, out)?;
                }
                return Ok(());
            }
        } else if rows.len * width > SPAN {
            let part = Part { from: rows.from * width, at: rows.to * width, len: rows.len * width };
            return self.lay_long(layer, &part, reversed, out);
        }
        let (bytes, from) =
            self.load(layer, rows.from * width, (rows.from + rows.span()) * width)?;
        // Blocks of a payload begin where elements do.
        rows.copy(width, reversed, (bytes, from / width), out);
        Ok(())
    }

    /// Lays what an entry that is no box has of the rows of a part.
    fn lay_others(
        &self,
        layer: &mut Layer,
        (part, target): (&Slab, &Target<'_>),
        mut holes: Option<&mut Holes>,
        out: &mut [u8],
    ) -> esker_store::Result<()> {
        let runs = self.runs_of(layer)?;
        let (mut wants, mut parts) = (Vec::new(), Vec::new());
        let (records, width) = (layer.found.records, self.width());
        let row = part.count[target.grid.dims() - 1];
        let most = row.saturating_mul(ROWS).min(LONGEST / width);
        part.pieces(most, &mut |piece| {
            for record in piece.records() {
                if !(record - records.first).is_multiple_of(records.step) {
                    continue;
                }
                self.wants(target, &piece.in_record(record), &mut wants);
                layer.go_to(record);
                layer.parts_and(&runs, &wants, &mut parts, |want, start, len| {
                    if let Some(holes) = &mut holes {
                        holes.lay(0, (wants[want].at - target.at) / width + start, len);
                    }
                });
                let stretch = Stretch { record, ..*self.stretch };
                Laying { stretch: &stretch, ..*self }.lay_parts(layer, &parts, out)?;
            }
            Ok(())
        })
    }
}

impl Index {
    /// Bytes of an entry's payload that are read for a box, about.
    pub(super) fn loaded(&self, var: u64, found: &Found, slab: &Slab, width: u64) -> u64 {
        let (hull, whole) = self.hull(var, found);
        match hull.and(slab).filter(|_| whole && !found.encoded) {
            Some(part) => {
                let payload = (hull.start, hull.steps());
                Rows::new(&part, &payload, &payload).loaded(BLOCK as u64 / width.max(1)) * width
            }
            None => found.len,
        }
    }
}

fn has_all(hull: &Slab, slab: &Slab) -> bool {
    hull.and(slab) == Some(*slab)
}

/// Takes out what is not seen: what lies under a box that has everything that is wanted, or all that it has of that itself.
fn hide(slab: &Slab, layers: &mut Vec<Layer>) {
    let has_everything = |layer: &Layer| layer.whole && has_all(&layer.hull, slab);
    if let Some(lowest) = layers.iter().rposition(has_everything) {
        layers.drain(..lowest);
    }
    let mut seen = HashSet::new();
    let mut keeps: Vec<bool> = Vec::with_capacity(layers.len());
    for layer in layers.iter().rev() {
        let both = layer.hull.and(slab).map(|both| (both.start, both.count));
        keeps.push(both.is_some_and(|both| !seen.contains(&both)));
        if let Some(both) = both.filter(|_| layer.whole) {
            seen.insert(both);
        }
    }
    layers.retain(|_| keeps.pop().unwrap_or(true));
}
