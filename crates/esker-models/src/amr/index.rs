//! Which boxes intersect a region: asked of buckets, not of all boxes.

use std::collections::HashMap;

use super::cells::Cells;

/// Boxes of one level, found by place.
#[derive(Debug, Clone, Default)]
pub struct BoxIndex {
    boxes: Vec<Cells>,
    /// Cells of a bucket in each dimension.
    size: [i64; 3],
    buckets: HashMap<[i64; 3], Vec<u32>>,
}

impl BoxIndex {
    /// An index of these boxes. Buckets are as large as the mean box, so that a box is in few of them and a bucket has few boxes.
    pub fn new(boxes: &[Cells]) -> BoxIndex {
        let mean = |d: usize| {
            let sum: u64 = boxes.iter().map(|b| b.shape()[d]).fold(0, u64::saturating_add);
            (sum / boxes.len().max(1) as u64).max(1) as i64
        };
        let size = [0, 1, 2].map(mean);
        let mut index = BoxIndex { boxes: boxes.to_vec(), size, buckets: HashMap::new() };
        // One that is far larger than the others is looked at always.
        for (number, cells) in boxes.iter().enumerate() {
            match index.buckets_of(cells) {
                Some(buckets) => {
                    for bucket in buckets {
                        index.buckets.entry(bucket).or_default().push(number as u32);
                    }
                }
                None => index.buckets.entry(EVERYWHERE).or_default().push(number as u32),
            }
        }
        index
    }

    /// The boxes.
    pub fn boxes(&self) -> &[Cells] {
        &self.boxes
    }

    /// The numbers of the boxes that intersect a region, rising.
    pub fn find(&self, region: &Cells) -> Vec<usize> {
        let meets = |number: &usize| self.boxes[*number].intersection(region).is_some();
        let Some(buckets) = self.buckets_of(region) else {
            // A region of more buckets than are worth visiting.
            return (0..self.boxes.len()).filter(meets).collect();
        };
        let lists = buckets.iter().chain([&EVERYWHERE]).filter_map(|b| self.buckets.get(b));
        let mut found: Vec<usize> = lists.flatten().map(|n| *n as usize).filter(meets).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The first two boxes that have a cell in common.
    pub fn overlap(&self) -> Option<(usize, usize)> {
        (0..self.boxes.len()).find_map(|number| {
            let others = self.find(&self.boxes[number]);
            others.into_iter().find(|other| *other > number).map(|other| (number, other))
        })
    }

    /// How many cells of a region boxes have, if they do not overlap.
    pub fn covered(&self, region: &Cells) -> u64 {
        let parts = self.find(region).into_iter();
        parts.filter_map(|n| self.boxes[n].intersection(region)).map(|c| c.volume()).sum()
    }

    /// The buckets of a region; `None` if they are too many.
    fn buckets_of(&self, region: &Cells) -> Option<Vec<[i64; 3]>> {
        const MOST: u64 = 4096;
        let span = region.coarsened(self.size);
        if span.shape().iter().fold(1u64, |n, s| n.saturating_mul(*s)) > MOST {
            return None;
        }
        let mut buckets = Vec::new();
        for z in span.lo[2]..=span.hi[2] {
            for y in span.lo[1]..=span.hi[1] {
                for x in span.lo[0]..=span.hi[0] {
                    buckets.push([x, y, z]);
                }
            }
        }
        Some(buckets)
    }
}

/// The bucket of boxes that are in too many.
const EVERYWHERE: [i64; 3] = [i64::MIN; 3];
