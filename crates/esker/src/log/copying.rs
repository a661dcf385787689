//! Copies of a few bytes.

/// Copies; runs of a few elements are most of what irregular decompositions have, and a call
/// that can do everything costs more than they do.
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    /// The first and the last `N` bytes, which may overlap.
    fn both_ends<const N: usize>(from: &[u8], to: &mut [u8]) {
        if let (Some((f, l)), true) =
            (from.first_chunk::<N>().zip(from.last_chunk::<N>()), from.len() == to.len())
        {
            if let Some(first) = to.first_chunk_mut::<N>() {
                *first = *f;
            }
            if let Some(last) = to.last_chunk_mut::<N>() {
                *last = *l;
            }
        }
    }
    match from.len() {
        4..=7 => both_ends::<4>(from, to),
        8..=15 => both_ends::<8>(from, to),
        16..=31 => both_ends::<16>(from, to),
        32..=64 => both_ends::<32>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_any_length_is_whole() {
        let source: Vec<u8> = (0..200).collect();
        for len in 0..source.len() {
            let mut target = vec![255; len];
            copy(&source[..len], &mut target);
            assert_eq!(target, source[..len]);
        }
    }
}
