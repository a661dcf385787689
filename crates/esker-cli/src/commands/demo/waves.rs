//! The simulation of one block: linear shallow-water waves over a sea floor.
//!
//! Water heights are in the middles of cells and transports on their faces (Arakawa's C grid);
//! a step moves the transports by the heights' slope, then the heights by what flows in and
//! out. A block has a rim of one cell around it with its neighbours' heights. A face between two
//! blocks is computed by both, from the same numbers in the same order, so the outcome is the
//! same to the last bit however the grid is cut.

use super::blocks::Side;
use super::sea::{Area, GRAVITY, Grid, LAND};

/// One block of the sea.
#[derive(Debug, Clone)]
pub(super) struct Waves {
    area: Area,
    /// Heights with the rim: two rows and two columns more than the block.
    height: Vec<f32>,
    west: Faces,
    south: Faces,
    /// The share of a height that a step leaves.
    kept: Vec<f32>,
    depth: Vec<f32>,
    /// Step over cell width.
    ratio: f32,
}

/// The faces on one side of the cells, and one more row or column.
#[derive(Debug, Clone)]
struct Faces {
    /// Transport through the face in m2 s-1.
    flow: Vec<f32>,
    /// The water's depth there; 0 at coasts, through which nothing flows.
    depth: Vec<f32>,
    /// Gravity times depth times step over cell width.
    pull: Vec<f32>,
}

/// What is written of a block: rows from the south, [`LAND`] where there is no water.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fields {
    /// The height of the surface in m.
    pub(super) eta: Vec<f32>,
    /// The current to the east in m s-1.
    pub(super) u: Vec<f32>,
    /// The current to the north in m s-1.
    pub(super) v: Vec<f32>,
}

impl Fields {
    /// Room for so many cells.
    pub(super) fn zeros(cells: usize) -> Fields {
        Fields { eta: vec![0.0; cells], u: vec![0.0; cells], v: vec![0.0; cells] }
    }

    /// Each field.
    pub(super) fn all(&self) -> [&[f32]; 3] {
        [&self.eta, &self.u, &self.v]
    }

    /// Each field, to be filled.
    pub(super) fn all_mut(&mut self) -> [&mut [f32]; 3] {
        [&mut self.eta, &mut self.u, &mut self.v]
    }

    /// How many values are the same to the last bit, or which field has one that is not.
    pub(super) fn same_bits(&self, other: &Fields) -> Result<u64, &'static str> {
        let pairs = ["eta", "u", "v"].into_iter().zip(self.all().into_iter().zip(other.all()));
        let mut count = 0;
        for (name, (ours, theirs)) in pairs {
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
            if ours.len() != theirs.len() || !ours.iter().zip(theirs).all(same) {
                return Err(name);
            }
            count += ours.len() as u64;
        }
        Ok(count)
    }
}

impl Waves {
    /// The block as the earthquake left it.
    pub(super) fn new(grid: &Grid, area: Area) -> Waves {
        let ratio = grid.step / grid.spacing();
        let (rows, columns) = (area.rows.len(), area.columns.len());
        let wide = columns + 2;
        // Everything is first known on the block with its rim, which begins one cell before it.
        let with_rim = |value: &dyn Fn(isize, isize) -> f32| -> Vec<f32> {
            let at = |start: usize, i: usize| (start + i) as isize - 1;
            let row = |r: usize| (0..wide).map(move |c| (r, c));
            let places = (0..rows + 2).flat_map(row);
            places.map(|(r, c)| value(at(area.rows.start, r), at(area.columns.start, c))).collect()
        };
        let depth = with_rim(&|row, column| grid.depth(row, column));
        let kept = with_rim(&|row, column| grid.kept(row, column));
        let inside = |r: usize| (r + 1) * wide + 1..(r + 1) * wide + 1 + columns;
        let between = |a: usize, b: usize| {
            let both_wet = depth[a] > 0.0 && depth[b] > 0.0;
            if both_wet { 0.5 * (depth[a] + depth[b]) } else { 0.0 }
        };
        let west_of = |r: usize| (inside(r).start..=inside(r).end).map(|i| between(i - 1, i));
        let south_of = |r: usize| inside(r).map(|i| between(i - wide, i));
        Waves {
            height: with_rim(&|row, column| grid.start(row, column)),
            west: Faces::new((0..rows).flat_map(west_of).collect(), ratio),
            south: Faces::new((0..=rows).flat_map(south_of).collect(), ratio),
            kept: (0..rows).flat_map(|r| &kept[inside(r)]).copied().collect(),
            depth: (0..rows).flat_map(|r| &depth[inside(r)]).copied().collect(),
            ratio,
            area,
        }
    }

    /// One step; the rim must be the neighbours' present heights.
    pub(super) fn step(&mut self) {
        let columns = self.area.columns.len();
        if self.area.cells() == 0 {
            return;
        }
        let wide = columns + 2;
        let row_of = |row: usize| &self.height[row * wide..(row + 1) * wide];
        let faces = self.west.flow.chunks_mut(columns + 1).zip(self.west.pull.chunks(columns + 1));
        for (row, (flow, pull)) in faces.enumerate() {
            let height = row_of(row + 1);
            for (((flow, pull), west), here) in
                flow.iter_mut().zip(pull).zip(height).zip(&height[1..])
            {
                *flow -= pull * (here - west);
            }
        }
        let faces = self.south.flow.chunks_mut(columns).zip(self.south.pull.chunks(columns));
        for (row, (flow, pull)) in faces.enumerate() {
            let (below, above) = (&row_of(row)[1..], &row_of(row + 1)[1..]);
            for (((flow, pull), south), here) in flow.iter_mut().zip(pull).zip(below).zip(above) {
                *flow -= pull * (here - south);
            }
        }
        let ratio = self.ratio;
        for (row, kept) in self.kept.chunks(columns).enumerate() {
            let start = (row + 1) * wide + 1;
            let height = &mut self.height[start..start + columns];
            let across = &self.west.flow[row * (columns + 1)..(row + 1) * (columns + 1)];
            let (below, above) = self.south.flow[row * columns..].split_at(columns);
            let in_and_out = across.iter().zip(&across[1..]).zip(below.iter().zip(above));
            for ((height, kept), ((west, east), (south, north))) in
                height.iter_mut().zip(kept).zip(in_and_out)
            {
                *height = (*height - ratio * ((east - west) + (north - south))) * kept;
            }
        }
    }

    /// The outermost heights on one side, for the neighbour there.
    pub(super) fn edge(&self, side: Side) -> Vec<f32> {
        self.places(side, 1).map(|place| self.height[place]).collect()
    }

    /// Takes the neighbour's outermost heights into the rim.
    pub(super) fn set_rim(&mut self, side: Side, heights: impl Iterator<Item = f32>) {
        for (place, height) in self.places(side, 0).zip(heights) {
            self.height[place] = height;
        }
    }

    /// Places of the heights along a side: 0 is the rim, 1 the first cells of the block.
    fn places(&self, side: Side, depth: usize) -> impl Iterator<Item = usize> + use<> {
        let (rows, columns) = (self.area.rows.len(), self.area.columns.len());
        let wide = columns + 2;
        let (first, step, count) = match side {
            Side::South => (depth * wide + 1, 1, columns),
            Side::North => ((rows + 1 - depth) * wide + 1, 1, columns),
            Side::West => (wide + depth, wide, rows),
            Side::East => (wide + columns + 1 - depth, wide, rows),
        };
        (0..count).map(move |i| first + i * step)
    }

    /// The water's depth in m; [`LAND`] where there is none.
    pub(super) fn depth(&self) -> Vec<f32> {
        self.depth.iter().map(|depth| if *depth > 0.0 { *depth } else { LAND }).collect()
    }

    /// What is to be written, in the middles of the cells.
    pub(super) fn fields(&self) -> Fields {
        let columns = self.area.columns.len();
        let mut fields = Fields { eta: Vec::new(), u: Vec::new(), v: Vec::new() };
        for (cell, depth) in self.depth.iter().enumerate() {
            let (row, column) = (cell / columns, cell % columns);
            let wet = |value: f32| if *depth > 0.0 { value } else { LAND };
            let west = row * (columns + 1) + column;
            let u = 0.5 * (self.west.speed(west) + self.west.speed(west + 1));
            let v = 0.5 * (self.south.speed(cell) + self.south.speed(cell + columns));
            fields.eta.push(wet(self.height[(row + 1) * (columns + 2) + column + 1]));
            fields.u.push(wet(u));
            fields.v.push(wet(v));
        }
        fields
    }
}

impl Faces {
    fn new(depth: Vec<f32>, ratio: f32) -> Faces {
        let pull = depth.iter().map(|depth| GRAVITY * depth * ratio).collect();
        Faces { flow: vec![0.0; depth.len()], depth, pull }
    }

    fn speed(&self, face: usize) -> f32 {
        if self.depth[face] > 0.0 { self.flow[face] / self.depth[face] } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Grid = Grid { columns: 64, rows: 32, step: 40.0, steps_per_record: 10 };
    const COARSE: Grid = Grid { columns: 512, rows: 256, step: 6.0, steps_per_record: 30 };

    fn whole(grid: &Grid) -> Waves {
        Waves::new(grid, Area { rows: 0..grid.rows, columns: 0..grid.columns })
    }

    #[test]
    fn water_at_rest_stays_at_rest() {
        let mut waves = whole(&SMALL);
        waves.height.fill(0.0);
        (0..50).for_each(|_| waves.step());
        assert!(waves.fields().eta.iter().all(|h| *h == 0.0 || *h == LAND));
    }

    #[test]
    fn no_water_is_made_or_lost_but_at_the_open_edges() {
        let mut waves = whole(&SMALL);
        waves.kept.fill(1.0);
        let volume = |waves: &Waves| {
            waves.fields().eta.iter().filter(|h| **h != LAND).map(|h| f64::from(*h)).sum::<f64>()
        };
        let before = volume(&waves);
        (0..100).for_each(|_| waves.step());
        assert!((volume(&waves) - before).abs() < 1e-3 * before.abs(), "{before}");
    }

    #[test]
    fn a_wave_runs_at_the_root_of_gravity_times_depth() {
        let mut waves = whole(&COARSE);
        let row = 132; // through the fault's middle
        let crest = |waves: &Waves| {
            let eta = waves.fields().eta;
            let row = &eta[row * 512..row * 512 + 290]; // west of the islands' shallows
            let higher = |a: &usize, b: &usize| row[*a].total_cmp(&row[*b]);
            (115..290).max_by(higher).map_or(0.0, |column| column as f32 * 2000.0)
        };
        (0..40).for_each(|_| waves.step());
        let first = crest(&waves);
        (0..60).for_each(|_| waves.step());
        let speed = (crest(&waves) - first) / (60.0 * 6.0);
        let theory = (GRAVITY * 4800.0f32).sqrt();
        assert!((speed / theory - 1.0).abs() < 0.06, "{speed} m/s, not {theory}");
    }

    #[test]
    fn the_scheme_is_stable_and_the_wave_reaches_the_coast() {
        let mut waves = whole(&COARSE);
        (0..690).for_each(|_| waves.step());
        let eta = waves.fields().eta;
        let wet: Vec<f32> = eta.iter().copied().filter(|h| *h != LAND).collect();
        assert!(wet.iter().all(|h| h.abs() < 5.0));
        let near_coast = eta.chunks(512).flat_map(|row| &row[400..]).filter(|h| **h != LAND);
        assert!(near_coast.fold(0.0f32, |top, h| top.max(h.abs())) > 0.2);
    }
}
