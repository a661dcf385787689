//! The place of a point on Hilbert's curve: neighbours on it are neighbours in the plane, or in space.

/// Bits of each coordinate.
const BITS: u32 = 31;

/// The place on the curve of a point whose coordinates are from 0 to 1; what is outside is at the border.
pub fn hilbert_key(x: f64, y: f64) -> u64 {
    let cell = |value: f64| (value.clamp(0.0, 1.0) * f64::from((1u32 << BITS) - 1)) as u64;
    let (mut x, mut y) = (cell(x), cell(y));
    let mut key = 0;
    for bit in (0..BITS).rev() {
        let side = 1u64 << bit;
        let (right, up) = (x & side != 0, y & side != 0);
        let quarter = match (right, up) {
            (false, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
            (true, false) => 3,
        };
        key = key << 2 | quarter;
        (x, y) = (x & (side - 1), y & (side - 1));
        // The curve is turned in the first and the last quarter.
        match quarter {
            0 => std::mem::swap(&mut x, &mut y),
            3 => (x, y) = (side - 1 - y, side - 1 - x),
            _ => {}
        }
    }
    key
}

/// Bits of each coordinate in space.
const BITS_3: u32 = 20;

/// The same in space: Skilling's way, which turns the coordinates of a cell into the bits of its place.
pub fn hilbert_key_3(point: [f64; 3]) -> u64 {
    let cell = |value: f64| (value.clamp(0.0, 1.0) * f64::from((1u32 << BITS_3) - 1)) as u64;
    let mut x = point.map(cell);
    // From the largest cube inward: what is turned there is turned back.
    for bit in (1..BITS_3).rev() {
        let (side, inside) = (1u64 << bit, (1u64 << bit) - 1);
        for axis in 0..3 {
            if x[axis] & side != 0 {
                x[0] ^= inside;
            } else {
                let swapped = (x[0] ^ x[axis]) & inside;
                x[0] ^= swapped;
                x[axis] ^= swapped;
            }
        }
    }
    // As Gray's code.
    x[1] ^= x[0];
    x[2] ^= x[1];
    let turned = (1..BITS_3).rev().filter(|bit| x[2] & (1 << bit) != 0);
    let turned = turned.fold(0, |turned, bit| turned ^ ((1u64 << bit) - 1));
    let bits = (0..BITS_3).rev().flat_map(|bit| x.map(|x| ((x ^ turned) >> bit) & 1));
    bits.fold(0, |key, bit| key << 1 | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_curve_are_neighbours_in_the_plane() {
        // The middles of a grid of 16 x 16, along the curve: one step at a time.
        let mut cells: Vec<(u64, i32, i32)> = Vec::new();
        for x in 0..16 {
            for y in 0..16 {
                let at = |n: i32| (f64::from(n) + 0.5) / 16.0;
                cells.push((hilbert_key(at(x), at(y)), x, y));
            }
        }
        cells.sort_unstable();
        for pair in cells.windows(2) {
            assert_eq!((pair[0].1 - pair[1].1).abs() + (pair[0].2 - pair[1].2).abs(), 1);
        }
    }

    #[test]
    fn neighbours_on_the_curve_are_neighbours_in_space() {
        let at = |n: i32| (f64::from(n) + 0.5) / 8.0;
        let grid = (0..8).flat_map(|x| (0..8).flat_map(move |y| (0..8).map(move |z| [x, y, z])));
        let mut cells: Vec<(u64, [i32; 3])> =
            grid.map(|cell| (hilbert_key_3(cell.map(at)), cell)).collect();
        cells.sort_unstable();
        for pair in cells.windows(2) {
            let steps = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| (a - b).abs());
            assert_eq!(steps.sum::<i32>(), 1, "{pair:?}");
        }
    }

    #[test]
    fn nothing_falls_off_the_curve() {
        for value in [f64::NAN, f64::INFINITY, -1.0, 2.0] {
            assert!(hilbert_key(value, value) < 1 << 62);
            assert!(hilbert_key_3([value; 3]) < 1 << 60);
        }
    }
}
