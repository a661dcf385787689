//! What a hierarchy has, without its values.

use std::path::Path;

use super::cells::Cells;
use super::index::BoxIndex;
use crate::error::{ModelError, Result};

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// All cells that the level could have.
    pub domain: Cells,
    /// How many of its cells are in one of the next coarser level, in each dimension; 1 for level 0.
    pub ratio: [i64; 3],
    /// The size of a cell.
    pub cell_size: Vec<f64>,
    /// The number of the time step.
    pub step: i64,
    /// Its time.
    pub time: f64,
    /// Its boxes.
    pub boxes: Vec<Cells>,
}

/// Levels of boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct Hierarchy {
    /// 1 to 3.
    pub dims: usize,
    /// The names of the components.
    pub names: Vec<String>,
    /// The time.
    pub time: f64,
    /// The lowest corner of the problem.
    pub lo: Vec<f64>,
    /// The highest corner.
    pub hi: Vec<f64>,
    /// AMReX's number of the coordinate system: 0 Cartesian, 1 cylindrical, 2 spherical.
    pub coordinates: i64,
    /// The levels, coarsest first.
    pub levels: Vec<Level>,
}

impl Hierarchy {
    /// Fails if boxes overlap, are outside their domain, or are not inside coarser ones. `path` is for the error.
    pub fn check(&self, path: &Path) -> Result<()> {
        let mut coarser: Option<BoxIndex> = None;
        for (number, level) in self.levels.iter().enumerate() {
            let object = |at: usize| {
                let cells = level.boxes[at].words(self.dims);
                format!("level {number}, box {at}, {cells}")
            };
            let outside = level.boxes.iter().position(|b| !level.domain.contains(b));
            if let Some(at) = outside {
                let what = format!("it is not inside the domain {}", level.domain.words(self.dims));
                return Err(ModelError::stored(path, object(at), what));
            }
            let index = BoxIndex::new(&level.boxes);
            if let Some((at, other)) = index.overlap() {
                let cells = level.boxes[other].words(self.dims);
                let what = format!("it overlaps box {other}, {cells}");
                return Err(ModelError::stored(path, object(at), what));
            }
            if let Some(coarser) = &coarser {
                let nested = |b: &Cells| {
                    let below = b.coarsened(level.ratio);
                    coarser.covered(&below) == below.volume()
                };
                if let Some(at) = level.boxes.iter().position(|b| !nested(b)) {
                    let what = format!("it is not inside the boxes of level {}", number - 1);
                    return Err(ModelError::stored(path, object(at), what));
                }
            }
            coarser = Some(index);
        }
        Ok(())
    }

    /// The refinement between two levels: cells of `fine` in one of `coarse`.
    pub fn ratio(&self, coarse: usize, fine: usize) -> [i64; 3] {
        let levels = self.levels.iter().skip(coarse + 1).take(fine.saturating_sub(coarse));
        levels.fold([1; 3], |all, level| [0, 1, 2].map(|d| all[d].saturating_mul(level.ratio[d])))
    }

    /// The number of a component.
    pub fn component(&self, name: &str) -> Result<usize> {
        let found = self.names.iter().position(|known| known == name);
        found.ok_or_else(|| {
            ModelError::Asked(format!("there is no component {name:?}: {}", self.names.join(", ")))
        })
    }
}
