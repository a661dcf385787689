//! Which filters without loss make an array smallest.

use std::sync::LazyLock;

use esker_codec::{Chunk, Pipeline, Scratch};

use crate::model::Layout;

/// All of them are fast; the first is the one that suits most fields, whose numbers differ in their last bytes.
static ALL: LazyLock<Vec<Pipeline>> = LazyLock::new(|| {
    // The second finds rows and numbers that come again as they are, which the first takes apart: fields that are symmetric, or
    // nothing in most places.
    ["shuffle zstd,1", "zstd,1"].iter().filter_map(|text| text.parse().ok()).collect()
});

/// What is tried: this part of the array, and at least and at most so many bytes.
const SHARE: usize = 16;
const LEAST: usize = 64 << 10;
const MOST: usize = 1 << 20;
/// Another than the first must make the part so much smaller: it takes longer.
const WORTH: f64 = 0.95;

/// The one that suits most.
pub(crate) fn usual() -> Pipeline {
    ALL.first().cloned().unwrap_or_default()
}

/// The one with which the middle of an array has the fewest bytes. It depends on the values alone.
pub(crate) fn smallest(layout: &Layout, bytes: &[u8], scratch: &mut Scratch) -> &'static Pipeline {
    let size = (layout.ty.size() as usize).max(1);
    let elements = (bytes.len() / SHARE).clamp(LEAST, MOST).min(bytes.len()) / size;
    let start = (bytes.len() / size - elements) / 2 * size;
    let part = &bytes[start..start + elements * size];
    let shape = [elements];
    let chunk = Chunk::new(layout.ty, &shape).native();
    let mut out = Vec::with_capacity(part.len());
    let mut bytes_of = |pipeline: &Pipeline| {
        out.clear();
        let encoded = pipeline.encode(&chunk, part, &mut out, scratch);
        encoded.map_or(f64::INFINITY, |_| out.len() as f64)
    };
    let (mut best, mut least) = (&ALL[0], bytes_of(&ALL[0]));
    for other in &ALL[1..] {
        let found = bytes_of(other);
        if found < WORTH * least {
            (best, least) = (other, found);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::ExternalType;

    fn chosen(value: impl Fn(usize) -> f64) -> String {
        let layout = Layout { name: "u".into(), ty: ExternalType::Double, shape: vec![65_536] };
        let bytes: Vec<u8> = (0..65_536).flat_map(|i| value(i).to_ne_bytes()).collect();
        smallest(&layout, &bytes, &mut Scratch::new()).to_string()
    }

    #[test]
    fn bytes_are_taken_apart_where_numbers_differ_and_not_where_rows_come_again() {
        assert_eq!(chosen(|i| (i as f64 * 1e-3).sin()), "shuffle zstd,1");
        // A pulse in the middle of each plane of 64 rows: its two halves are the same.
        let pulse = |i: usize| {
            let at = |i: usize| i as f64 / 32.0 - 1.0;
            let (z, y, x) = (at(i / 4096), at(i / 64 % 64), at(i % 64));
            (-(z * z + y * y + x * x) / 0.05).exp()
        };
        assert_eq!(chosen(pulse), "zstd,1");
        // Where both do as well, the usual one.
        assert_eq!(chosen(|_| 0.0), "shuffle zstd,1");
        assert_eq!(usual().to_string(), "shuffle zstd,1");
    }

    #[test]
    fn every_type_and_length_has_one() {
        for ty in [ExternalType::Char, ExternalType::Short, ExternalType::Float] {
            for elements in [0, 1, 1000, 40_001] {
                let layout = Layout { name: "n".into(), ty, shape: vec![elements] };
                let bytes = vec![7; elements * ty.size() as usize];
                assert!(smallest(&layout, &bytes, &mut Scratch::new()).is_lossless());
            }
        }
    }
}
