//! Which boxes have a part in which cuboid.

use super::cells::Cells;
use super::sweep::TooMany;

/// Cuboids and boxes that share cells, in order of both. Space is halved until few of either are left in a half, and a
/// pair counts where the lowest corner of what they share is.
pub(super) fn pairs(
    cuboids: &Cells,
    boxes: &Cells,
    most: usize,
) -> Result<Vec<(u32, u32)>, TooMany> {
    let mut pairs = Vec::new();
    let everywhere = boxes.bounds();
    let all = |cells: &Cells| (0..cells.len() as u32).collect::<Vec<u32>>();
    let mut waiting = vec![(everywhere, all(cuboids), all(boxes))];
    while let Some((region, some, others)) = waiting.pop() {
        let few = some.len().min(others.len()) <= 1 || some.len() * others.len() <= 64;
        if some.is_empty() || others.is_empty() {
            continue;
        }
        let Some((dim, plane)) = middle(&region).filter(|_| !few) else {
            for one in &some {
                let shared = others.iter().filter(|other| {
                    shares(cuboids.get(*one as usize), boxes.get(**other as usize), &region)
                });
                pairs.extend(shared.map(|other| (*one, *other)));
                if pairs.len() > most {
                    return Err(TooMany);
                }
            }
            continue;
        };
        let below = |cells: &Cells, list: &[u32]| -> Vec<u32> {
            list.iter().copied().filter(|at| cells.get(*at as usize)[2 * dim] < plane).collect()
        };
        let above = |cells: &Cells, mut list: Vec<u32>| -> Vec<u32> {
            list.retain(|at| cells.get(*at as usize)[2 * dim + 1] > plane);
            list
        };
        let (mut lower, mut upper) = (region.clone(), region);
        lower[dim].1 = plane;
        upper[dim].0 = plane;
        waiting.push((lower, below(cuboids, &some), below(boxes, &others)));
        waiting.push((upper, above(cuboids, some), above(boxes, others)));
    }
    pairs.sort_unstable();
    Ok(pairs)
}

/// The middle of the longest side, where there is one.
fn middle(region: &[(u32, u32)]) -> Option<(usize, u32)> {
    let sides = region.iter().enumerate().map(|(dim, (low, high))| (high - low, dim));
    let (length, dim) = sides.max()?;
    (length > 1).then(|| (dim, region[dim].0 + length / 2))
}

/// Whether both share cells, and the lowest corner of them lies in the region.
fn shares(one: &[u32], other: &[u32], region: &[(u32, u32)]) -> bool {
    let ranges = one.chunks_exact(2).zip(other.chunks_exact(2)).zip(region);
    ranges.into_iter().all(|((one, other), region)| {
        let low = one[0].max(other[0]);
        low < one[1].min(other[1]) && (region.0..region.1).contains(&low)
    })
}
