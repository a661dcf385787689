//! Shapes of up to four dimensions for filters that know no more.

/// Dimensions, slowest first; unused ones, in front, are 1.
pub(crate) type Folded = [usize; 4];

/// Drops dimensions of length 1 and multiplies the slowest ones until at most four are left.
pub(crate) fn fold(shape: &[usize]) -> Folded {
    let mut folded = [1; 4];
    let mut at = 4;
    for &len in shape.iter().rev().filter(|&&len| len != 1) {
        if at > 0 {
            at -= 1;
            folded[at] = len;
        } else {
            folded[0] *= len;
        }
    }
    folded
}
