//! A made-up sea and the wave that starts in it. Pure functions of the place.

use std::f32::consts::PI;
use std::ops::Range;

/// What stands where there is no water.
pub(super) const LAND: f32 = 1e20;

/// Gravity, m s-2.
pub(super) const GRAVITY: f32 = 9.81;

/// The sea's extent in km; a grid divides it into cells.
const WIDE: f32 = 1024.0;
const HIGH: f32 = 512.0;

/// How far the open edges reach into the sea, in km: there waves fade instead of coming back.
const EDGE: f32 = 60.0;

/// The grid: how many cells there are, and how long a step is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grid {
    /// Cells from west to east.
    pub(super) columns: usize,
    /// Cells from south to north.
    pub(super) rows: usize,
    /// Seconds of a step.
    pub(super) step: f32,
    /// Steps between two records of the file.
    pub(super) steps_per_record: usize,
}

impl Grid {
    /// The demonstration's: cells of 1 km, a record every six minutes.
    pub(super) const DEMO: Grid =
        Grid { columns: 1024, rows: 512, step: 3.0, steps_per_record: 120 };

    /// The width of a cell in m.
    pub(super) fn spacing(&self) -> f32 {
        WIDE * 1000.0 / self.columns as f32
    }

    /// Seconds from the start to this record.
    pub(super) fn time(&self, record: u64) -> f64 {
        record as f64 * self.steps_per_record as f64 * f64::from(self.step)
    }

    /// The middles of the cells from west to east, in km.
    pub(super) fn x(&self) -> Vec<f64> {
        middles(self.columns, WIDE)
    }

    /// The middles of the cells from south to north, in km.
    pub(super) fn y(&self) -> Vec<f64> {
        middles(self.rows, HIGH)
    }

    /// The place of a cell's middle in km. Cells outside the grid have places too.
    fn place(&self, row: isize, column: isize) -> (f32, f32) {
        let x = (column as f32 + 0.5) * WIDE / self.columns as f32;
        let y = (row as f32 + 0.5) * HIGH / self.rows as f32;
        (x, y)
    }

    /// The depth of the water in m: 0 on land and outside the grid.
    pub(super) fn depth(&self, row: isize, column: isize) -> f32 {
        let inside = |i: isize, n: usize| (0..n as isize).contains(&i);
        if !inside(row, self.rows) || !inside(column, self.columns) {
            return 0.0;
        }
        let (x, y) = self.place(row, column);
        depth(x, y)
    }

    /// How high the water stands at the start, in m.
    pub(super) fn start(&self, row: isize, column: isize) -> f32 {
        if self.depth(row, column) == 0.0 {
            return 0.0;
        }
        let (x, y) = self.place(row, column);
        uplift(x, y)
    }

    /// The share of a wave that a step leaves in a cell: less than 1 at the open edges.
    pub(super) fn kept(&self, row: isize, column: isize) -> f32 {
        let (x, y) = self.place(row, column);
        let from_edge = x.min(y).min(HIGH - y);
        let into = ((EDGE - from_edge) / EDGE).clamp(0.0, 1.0);
        1.0 - 0.01 * self.step * into * into
    }
}

fn middles(cells: usize, length: f32) -> Vec<f64> {
    (0..cells).map(|i| (i as f64 + 0.5) * f64::from(length) / cells as f64).collect()
}

/// A basin 4500 m deep with a continent in the east, islands, and a bank in between.
fn depth(x: f32, y: f32) -> f32 {
    let coast = 900.0 + 45.0 * (y / HIGH * 5.0 + 0.6).sin() + 18.0 * (y / HIGH * 17.0).sin();
    // The shelf: shallow for a while, then down to the basin.
    let off = (coast - x) / 230.0;
    let basin = 4500.0 * off.clamp(-0.2, 1.0).powi(3) + 300.0 * off.clamp(-1.0, 1.0);
    let mountain = |(east, north, radius, height): (f32, f32, f32, f32)| {
        height * (-((x - east).powi(2) + (y - north).powi(2)) / (radius * radius)).exp()
    };
    const MOUNTAINS: [(f32, f32, f32, f32); 6] = [
        (470.0, 150.0, 34.0, 9500.0),
        (520.0, 105.0, 24.0, 8000.0),
        (610.0, 340.0, 40.0, 11000.0),
        (675.0, 400.0, 24.0, 9000.0),
        (555.0, 430.0, 18.0, 8500.0),
        (700.0, 210.0, 70.0, 3400.0),
    ];
    let depth = basin - MOUNTAINS.into_iter().map(mountain).sum::<f32>();
    if depth < 15.0 { 0.0 } else { depth }
}

/// The sea floor broke: the water stands high on one side of the fault, low on the other.
fn uplift(x: f32, y: f32) -> f32 {
    let along = (-((y - 265.0) / 75.0).powi(2)).exp();
    let bend = 12.0 * (PI * (y - 265.0) / 160.0).cos();
    let side = |east: f32, wide: f32| (-((x - east - bend) / wide).powi(2)).exp();
    along * (2.0 * side(215.0, 24.0) - 1.2 * side(165.0, 26.0))
}

/// The cells of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Area {
    /// From south to north.
    pub(super) rows: Range<usize>,
    /// From west to east.
    pub(super) columns: Range<usize>,
}

impl Area {
    /// How many cells there are.
    pub(super) fn cells(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Where they begin and how many rows and columns there are, as selections have it.
    pub(super) fn slab(&self) -> ([u64; 2], [u64; 2]) {
        let start = [self.rows.start as u64, self.columns.start as u64];
        (start, [self.rows.len() as u64, self.columns.len() as u64])
    }
}
