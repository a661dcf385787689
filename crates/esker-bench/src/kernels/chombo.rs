//! Chombo's I/O benchmark (seeds/004 §V): levels of boxes, serialised one after the other.
//!
//! A level is one variable of one dimension, in which boxes are in lexicographic order, each with its components. Ranks have boxes
//! along a space-filling curve, as Chombo balances its load, so that what a rank has of a level is many runs. The boxes are those of a real
//! run, recorded in JSON: `{"levels": [[[lo, hi], …], …]}`, corners inclusive.

use std::path::Path;

use super::e3sm::MapError;
use super::{Scale, fixed, var};
use crate::plan::{Calls, Element, Plan, RankPlan, Request, Slabs};

/// The boxes of each level of a recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxList {
    levels: Vec<Vec<Cells>>,
}

/// A box: its corners, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cells {
    lo: [i64; 3],
    hi: [i64; 3],
}

impl Cells {
    fn volume(&self) -> u64 {
        (0..3).map(|d| (self.hi[d] - self.lo[d] + 1) as u64).product()
    }

    /// The place on a Morton curve: the bits of the coordinates in turn.
    fn on_curve(&self) -> u64 {
        let spread = |d: usize| {
            let at = (self.lo[d].max(0) as u64) & 0x1f_ffff;
            (0..21).map(|bit| (at >> bit & 1) << (3 * bit + d as u64)).sum::<u64>()
        };
        (0..3).map(spread).sum()
    }
}

impl BoxList {
    /// Reads a recorded list of boxes.
    pub fn read(path: &Path) -> Result<BoxList, MapError> {
        let unlike = |what: String| MapError::Unlike { file: path.display().to_string(), what };
        let text = std::fs::read_to_string(path).map_err(|error| unlike(error.to_string()))?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| unlike(error.to_string()))?;
        let levels = json["levels"].as_array();
        let levels = levels.ok_or_else(|| unlike("there are no \"levels\"".to_string()))?;
        let mut list = BoxList { levels: Vec::new() };
        for (number, level) in levels.iter().enumerate() {
            let mut boxes = Vec::new();
            for (at, corners) in level.as_array().into_iter().flatten().enumerate() {
                let cells = cells(corners);
                boxes.push(
                    cells.ok_or_else(|| unlike(format!("level {number}, box {at}: {corners}")))?,
                );
            }
            boxes.sort_by_key(|cells: &Cells| cells.lo);
            list.levels.push(boxes);
        }
        Ok(list)
    }
}

/// A box of up to three dimensions, if these are the corners of one.
fn cells(corners: &serde_json::Value) -> Option<Cells> {
    const FAR: i64 = 1 << 20;
    let corner = |value: &serde_json::Value| -> Option<[i64; 3]> {
        let list = value.as_array().filter(|list| (1..=3).contains(&list.len()))?;
        let mut corner = [0; 3];
        for (slot, number) in corner.iter_mut().zip(list) {
            *slot = number.as_i64().filter(|n| (-FAR..FAR).contains(n))?;
        }
        Some(corner)
    };
    let (lo, hi) = (corner(&corners[0])?, corner(&corners[1])?);
    (0..3).all(|d| lo[d] <= hi[d]).then_some(Cells { lo, hi })
}

/// A variable for each level. `scale` makes more components, or takes the first boxes of each level only.
pub(super) fn plan(
    list: &BoxList,
    ranks: usize,
    scale: &Scale,
    components: u64,
    calls: Calls,
) -> Plan {
    let cells: u64 = list.levels.iter().flatten().map(Cells::volume).sum();
    let wanted = scale.bytes.unwrap_or(u64::MAX) / 8;
    let components = match scale.bytes {
        Some(_) => (wanted / cells.max(1)).max(1),
        None => components,
    };
    let (mut dims, mut vars) = (Vec::new(), Vec::new());
    let mut of_ranks = vec![RankPlan { lists: Vec::new(), steps: vec![Vec::new()] }; ranks];
    for (number, boxes) in list.levels.iter().enumerate() {
        let boxes = first_of(boxes, wanted, cells);
        if boxes.is_empty() {
            continue;
        }
        let mut ends = vec![0];
        for cells in boxes {
            ends.push(ends.last().copied().unwrap_or(0) + cells.volume() * components);
        }
        let (level, total) = (vars.len(), ends.last().copied().unwrap_or(0));
        dims.push(fixed(&format!("level_{number}_values"), total));
        vars.push(var(&format!("level_{number}"), Element::F64, &[level]));
        for (rank, mine) in of_ranks.iter_mut().zip(along_curve(boxes, ranks)) {
            let slab = |at: &usize| (ends[*at], ends[*at + 1] - ends[*at]);
            let slabs = mine.iter().map(slab);
            match calls {
                Calls::Independent => {
                    for (start, count) in slabs {
                        let request = Request { var: level, list: rank.lists.len(), record: None };
                        rank.lists.push(Slabs::one(&[start], &[count]));
                        rank.steps[0].push(request);
                    }
                }
                _ if mine.is_empty() => {}
                _ => {
                    let request = Request { var: level, list: rank.lists.len(), record: None };
                    let (starts, counts) = slabs.unzip();
                    rank.lists.push(Slabs { rank: 1, len: mine.len(), starts, counts });
                    rank.steps[0].push(request);
                }
            }
        }
    }
    let (records, pipeline, steps) = (0, String::new(), vec![calls]);
    Plan { dims, vars, records, pipeline, transactions: false, steps, ranks: of_ranks }
}

/// As many of a level's first boxes as it may have of the wanted cells, at least one.
fn first_of(boxes: &[Cells], wanted: u64, all: u64) -> &[Cells] {
    let mut kept = 0u64;
    let own: u64 = boxes.iter().map(Cells::volume).sum();
    let most = (u128::from(wanted) * u128::from(own) / u128::from(all.max(1))) as u64;
    let fits = |cells: &&Cells| {
        kept += cells.volume();
        kept <= most
    };
    let count = boxes.iter().take_while(fits).count();
    &boxes[..count.max(1).min(boxes.len())]
}

/// The numbers of each rank's boxes, rising: pieces of a curve of about as many cells each.
fn along_curve(boxes: &[Cells], ranks: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    order.sort_by_key(|at| (boxes[*at].on_curve(), *at));
    let total: u64 = boxes.iter().map(Cells::volume).sum();
    let mut shares = vec![Vec::new(); ranks];
    let mut before = 0u64;
    for at in order {
        // Where the middle of the box is among all cells.
        let middle = before + boxes[at].volume() / 2;
        let rank = (u128::from(middle) * ranks as u128 / u128::from(total.max(1))) as usize;
        shares[rank.min(ranks - 1)].push(at);
        before += boxes[at].volume();
    }
    shares.iter_mut().for_each(|share| share.sort_unstable());
    shares
}
