//! Chunks by number and by index, and how an array that lies in one piece is cut into chunks.

/// The chunks of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// How many there are along each dimension.
    pub(super) counts: Vec<u64>,
}

impl Grid {
    pub(super) fn of(shape: &[u64], chunk: &[u64]) -> Grid {
        let counts = shape.iter().zip(chunk).map(|(&len, &chunk)| len.div_ceil(chunk.max(1)));
        Grid { counts: counts.collect() }
    }

    /// How many chunks there are; as many as can be counted, if there are more.
    pub(super) fn len(&self) -> u64 {
        self.counts.iter().fold(1, |len: u64, &count| len.saturating_mul(count))
    }

    /// The number of the chunk at `index`, in C order; none outside the grid.
    pub(super) fn number(&self, index: &[u64]) -> Option<u64> {
        if index.len() != self.counts.len() {
            return None;
        }
        index.iter().zip(&self.counts).try_fold(0u64, |number, (&at, &count)| {
            if at >= count {
                return None;
            }
            number.checked_mul(count)?.checked_add(at)
        })
    }

    /// The next index in C order. After the last comes the first.
    pub(super) fn advance(&self, index: &mut [u64]) {
        for (at, &count) in index.iter_mut().zip(&self.counts).rev() {
            *at += 1;
            if *at < count {
                return;
            }
            *at = 0;
        }
    }
}

/// Above this many bytes an array that lies in one piece is cut, so that a reader of a small part
/// need not fetch it all.
pub(super) const CUT_ABOVE: u64 = 16 << 20;

/// The chunk of an array of this shape and size of elements, in C order and in one piece, so that
/// every chunk is one stretch of the file, is whole, and has at most `most` bytes where that is
/// possible. A Zarr chunk cannot be short, so lengths are divided without a rest.
pub(super) fn cut(shape: &[u64], width: u64, most: u64) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|&len| len.max(1)).collect();
    for axis in 0..chunk.len() {
        let len = chunk[axis];
        let inner = chunk[axis + 1..].iter().fold(width, |bytes, &len| bytes.saturating_mul(len));
        if len.saturating_mul(inner) <= most {
            break;
        }
        if inner > most {
            chunk[axis] = 1;
            continue;
        }
        // Pieces may be up to 64 times smaller than wanted; else a prime length would become
        // a piece for each element.
        let fewest = len.div_ceil(most / inner);
        let pieces =
            fewest..=fewest.saturating_mul(64).min(len).min(fewest.saturating_add(100_000));
        if let Some(pieces) = pieces.into_iter().find(|pieces| len.is_multiple_of(*pieces)) {
            chunk[axis] = len / pieces;
        }
        break;
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_indices_agree() {
        let grid = Grid::of(&[5, 4, 7], &[2, 4, 3]);
        assert_eq!((grid.counts.as_slice(), grid.len()), ([3, 1, 3].as_slice(), 9));
        let mut index = [0; 3];
        for number in 0..9 {
            assert_eq!(grid.number(&index), Some(number));
            grid.advance(&mut index);
        }
        assert_eq!(index, [0; 3]);
        assert_eq!(grid.number(&[3, 0, 0]), None);
        assert_eq!(grid.number(&[0, 0]), None);
        let scalar = Grid::of(&[], &[]);
        assert_eq!((scalar.len(), scalar.number(&[])), (1, Some(0)));
        assert_eq!(Grid::of(&[0, 4], &[1, 4]).len(), 0);
        assert_eq!(Grid::of(&[u64::MAX, u64::MAX], &[1, 1]).len(), u64::MAX);
    }

    #[test]
    fn large_arrays_are_cut_into_whole_stretches() {
        assert_eq!(cut(&[10, 20], 4, 800), [10, 20]);
        assert_eq!(cut(&[10, 20], 4, 799), [5, 20]);
        assert_eq!(cut(&[10, 20], 4, 80), [1, 20]);
        assert_eq!(cut(&[10, 20], 4, 79), [1, 10]);
        assert_eq!(cut(&[3, 10, 20], 4, 500), [1, 5, 20]);
        // A prime length is not cut into single elements,
        assert_eq!(cut(&[1_000_003], 8, 1 << 20), [1_000_003]);
        // but into rows, if these are long.
        assert_eq!(cut(&[101, 1000], 8, 16_000), [1, 1000]);
        assert_eq!(cut(&[], 8, 1), [0u64; 0]);
        assert_eq!(cut(&[0, 5], 8, 1 << 20), [1, 5]);
        assert_eq!(cut(&[u64::MAX, u64::MAX], 8, 1 << 20).len(), 2);
    }
}
