//! Reading regions: the finest data there is, coarser injected.

use esker::Selection;

use super::cells::Cells;
use super::dataset::Amr;
use crate::error::{ModelError, Result, agree};

impl Amr {
    /// The values of a component in a region of a level's cells, x fastest: of the level itself where it has boxes, of the next coarser one
    /// that has some elsewhere, injected. Cells that no level has are NaN. Every rank asks for a region of its own, or for
    /// none. Only boxes that intersect it are read, in one call for each level. Collective.
    pub fn read(
        &mut self,
        component: &str,
        level: usize,
        region: Option<Cells>,
    ) -> Result<Vec<f64>> {
        let comm = self.ds.comm().clone();
        let checked = self.checked(component, level, region.as_ref());
        let room = checked.and_then(|component| Ok((component, empty_grid(region.as_ref())?)));
        let (component, mut out) = agree(&*comm, room)?;
        for coarse in 0..self.hierarchy.levels.len() {
            let wanted = region.filter(|_| coarse <= level);
            let ratio = self.hierarchy.ratio(coarse, level);
            let parts =
                wanted.map_or_else(Vec::new, |region| self.parts(coarse, &region.coarsened(ratio)));
            let values = self.read_parts(coarse, component, &parts)?;
            let Some(region) = region else { continue };
            let mut at = 0;
            for (_, part) in &parts {
                let values = &values[at..at + part.volume() as usize];
                inject(values, part, ratio, &region, &mut out);
                at += values.len();
            }
        }
        Ok(out)
    }

    /// The values of one box of a level: all components, x fastest, the component slowest. Independent.
    pub fn read_box(&self, level: usize, number: usize) -> Result<Vec<f64>> {
        let missing = || ModelError::Asked(format!("level {level} has no box {number}"));
        let stored = self.levels.get(level).ok_or_else(missing)?;
        let (Some(var), Some([begin, end])) = (stored.var, stored.offsets.get(number..number + 2))
        else {
            return Err(missing());
        };
        Ok(self.ds.get(var, &Selection::slab(&[*begin], &[end - begin]))?)
    }

    fn checked(&self, component: &str, level: usize, region: Option<&Cells>) -> Result<usize> {
        let found = self.hierarchy.component(component)?;
        let Some(of_level) = self.hierarchy.levels.get(level) else {
            let count = self.hierarchy.levels.len();
            return Err(ModelError::Asked(format!("there is no level {level}: {count} are there")));
        };
        let dims = self.hierarchy.dims;
        match region {
            Some(region) if !of_level.domain.contains(region) => {
                let (region, domain) = (region.words(dims), of_level.domain.words(dims));
                let what =
                    format!("the region {region} is not inside level {level}'s domain {domain}");
                Err(ModelError::Asked(what))
            }
            _ => Ok(found),
        }
    }

    /// The boxes of a level that intersect a region of its cells, and what they have of it.
    fn parts(&self, level: usize, region: &Cells) -> Vec<(usize, Cells)> {
        let index = &self.levels[level].index;
        let found = index.find(region).into_iter();
        found.filter_map(|n| Some((n, index.boxes()[n].intersection(region)?))).collect()
    }

    /// The values of parts of boxes, one after the other. Collective.
    fn read_parts(
        &mut self,
        level: usize,
        component: usize,
        parts: &[(usize, Cells)],
    ) -> Result<Vec<f64>> {
        let stored = &self.levels[level];
        let Some(var) = stored.var else { return Ok(Vec::new()) };
        let (mut starts, mut counts): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for (number, part) in parts {
            let cells = stored.index.boxes()[*number];
            let begin = stored.offsets[*number] + component as u64 * cells.volume();
            let len = part.shape()[0];
            for z in part.lo[2]..=part.hi[2] {
                for y in part.lo[1]..=part.hi[1] {
                    let start = begin + cells.place([part.lo[0], y, z]);
                    match (starts.last(), counts.last_mut()) {
                        (Some(last), Some(count)) if last + *count == start => *count += len,
                        _ => {
                            starts.push(start);
                            counts.push(len);
                        }
                    }
                }
            }
        }
        let selection = match starts.is_empty() {
            true => Selection::none(),
            false => Selection::list(1, starts, counts),
        };
        Ok(self.ds.get_all(var, &selection)?)
    }
}

/// A grid of NaN for a region. A domain may have more cells than memory.
fn empty_grid(region: Option<&Cells>) -> Result<Vec<f64>> {
    let cells = region.map_or(0, Cells::volume);
    let mut out = Vec::new();
    usize::try_from(cells).ok().and_then(|cells| out.try_reserve_exact(cells).ok()).ok_or_else(
        || ModelError::Asked(format!("there is no memory for {cells} cells: read fewer at once")),
    )?;
    out.resize(cells as usize, f64::NAN);
    Ok(out)
}

/// Puts the values of coarse cells into the finer ones of a region that are in them.
fn inject(values: &[f64], part: &Cells, ratio: [i64; 3], region: &Cells, out: &mut [f64]) {
    let Some(fine) = part.refined(ratio).and_then(|fine| fine.intersection(region)) else { return };
    for z in fine.lo[2]..=fine.hi[2] {
        for y in fine.lo[1]..=fine.hi[1] {
            let row = region.place([fine.lo[0], y, z]) as usize;
            let (cy, cz) = (y.div_euclid(ratio[1]), z.div_euclid(ratio[2]));
            let from = part.place([part.lo[0], cy, cz]) as usize;
            for x in fine.lo[0]..=fine.hi[0] {
                let at = (x.div_euclid(ratio[0]) - part.lo[0]) as usize;
                out[row + (x - fine.lo[0]) as usize] = values[from + at];
            }
        }
    }
}
