//! The inner loop of dynamic programmes over a split in two.

/// The least sum of a pair and its place, the first of equals. In lanes, because all the time of planning is spent here.
pub(super) fn least_sum(left: &[f64], right: &[f64]) -> (f64, usize) {
    const LANES: usize = 8;
    let less = |a: f64, b: f64| if a < b { a } else { b };
    let mut least = [f64::INFINITY; LANES];
    let (left_lanes, left_rest) = left.as_chunks::<LANES>();
    let (right_lanes, right_rest) = right.as_chunks::<LANES>();
    for (a, b) in left_lanes.iter().zip(right_lanes) {
        for lane in 0..LANES {
            least[lane] = less(a[lane] + b[lane], least[lane]);
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(a, b)| a + b);
    let least = rest.chain(least).fold(f64::INFINITY, less);
    let place = left.iter().zip(right).position(|(a, b)| a + b <= least);
    (least, place.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_first_of_the_least() {
        for len in 0..40usize {
            let left: Vec<f64> = (0..len).map(|i| (i * 7 % 5) as f64).collect();
            let right: Vec<f64> = (0..len).map(|i| (i * 3 % 4) as f64).collect();
            let mut best = (f64::INFINITY, 0);
            for (i, (a, b)) in left.iter().zip(&right).enumerate() {
                if a + b < best.0 {
                    best = (a + b, i);
                }
            }
            assert_eq!(least_sum(&left, &right), best, "{len}");
        }
        assert_eq!(least_sum(&[f64::INFINITY; 9], &[1.0; 9]), (f64::INFINITY, 0));
    }
}
