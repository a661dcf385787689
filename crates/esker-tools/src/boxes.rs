//! Boxes of an array that hold whole chunks.

use crate::blocks::Blocks;

/// The boxes of an array of this shape, in the order of their first elements. Each begins at
/// multiples of `unit` and has at most `most` elements, or one unit: whole rows of units where that
/// fits, so that a contiguous file is read in long runs.
pub(crate) fn boxes(shape: &[u64], unit: &[u64], most: u64) -> Blocks {
    let mut step: Vec<u64> =
        unit.iter().zip(shape).map(|(unit, len)| (*unit).min(*len).max(1)).collect();
    let mut elements = step.iter().fold(1u64, |n, len| n.saturating_mul(*len));
    for (step, len) in step.iter_mut().zip(shape).rev() {
        let times = (most / elements.max(1)).max(1);
        let longer = step.saturating_mul(times).min((*len).max(1));
        elements = (elements / *step).saturating_mul(longer);
        *step = longer;
        if longer < *len {
            break;
        }
    }
    Blocks::of(shape, step)
}

/// The unit to go through an array by that is stored in chunks of `from` and becomes one in chunks
/// of `to`: whole chunks of both where `most` elements hold that, else of the one to be written,
/// which is written once.
pub(crate) fn unit(shape: &[u64], from: Option<&[u64]>, to: Option<&[u64]>, most: u64) -> Vec<u64> {
    let one = || vec![1; shape.len()];
    let (from, to) = match (from, to) {
        (None, None) => return one(),
        (Some(only), None) | (None, Some(only)) => return only.to_vec(),
        (Some(from), Some(to)) => (from, to),
    };
    let both: Vec<u64> =
        from.iter().zip(to).map(|(from, to)| to * from.div_ceil(*to).max(1)).collect();
    let elements =
        both.iter().zip(shape).fold(1u64, |n, (len, all)| n.saturating_mul(*len.min(all)));
    if elements <= most { both } else { to.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cover_an_array_once_and_begin_at_chunks() {
        for (shape, unit) in [
            (vec![7, 11], vec![3, 4]),
            (vec![5, 1, 9], vec![2, 1, 10]),
            (vec![6], vec![4]),
            (vec![], vec![]),
        ] {
            for most in [1, 12, 24, 40, 1000] {
                let mut seen = vec![0; shape.iter().product::<u64>() as usize];
                for block in boxes(&shape, &unit, most) {
                    let begins = block.start.iter().zip(&unit).all(|(s, u)| s % u == 0);
                    assert!(begins, "{block:?} of {shape:?} in {unit:?}");
                    let least = unit.iter().product::<u64>();
                    assert!(block.len() <= most.max(least), "{block:?} {most}");
                    for i in 0..block.len() {
                        let (mut rest, mut flat, mut step) = (i, 0, 1);
                        for d in (0..shape.len()).rev() {
                            flat += (block.start[d] + rest % block.count[d]) * step;
                            rest /= block.count[d];
                            step *= shape[d];
                        }
                        seen[flat as usize] += 1;
                    }
                }
                assert!(seen.iter().all(|n| *n == 1), "{shape:?} in {unit:?}, {most}");
            }
        }
        assert_eq!(boxes(&[3, 0], &[1, 1], 9).count(), 0);
    }

    #[test]
    fn a_row_of_chunks_comes_first() {
        let first = boxes(&[10, 100, 100], &[1, 10, 10], 3000).next().unwrap();
        assert_eq!(first.count, [1, 30, 100]);
    }

    #[test]
    fn whole_chunks_of_both_files_are_taken_if_they_fit() {
        assert_eq!(unit(&[100, 100], Some(&[10, 100]), Some(&[7, 30]), 10_000), [14, 120]);
        assert_eq!(unit(&[100, 100], Some(&[10, 100]), Some(&[7, 30]), 1000), [7, 30]);
        assert_eq!(unit(&[4], None, None, 10), [1]);
    }
}
