//! Parts of a state, on which filters are tried: what they do with a part tells what they do with the whole.

use esker_codec::{Chunk, Pipeline, Scratch};

use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::model::Layout;
use crate::segment::SMALL;
use crate::spread::Spread;
use crate::stopwatch::Stopwatch;

/// Boxes of each array: more see more of a field that is not alike everywhere, but filters need long ones.
const BOXES: usize = 2;
/// Shorter boxes say more of what a filter does at its beginning.
const SHORTEST: usize = 32 << 10;

/// What filters do with a state: bytes, and seconds of encoding and decoding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    pub(super) bytes: f64,
    pub(super) encode: f64,
    pub(super) decode: f64,
}

/// Boxes of one array.
#[derive(Debug)]
struct Part {
    layout: Layout,
    /// Bytes of the array.
    whole: usize,
    /// Of the whole array: bounds are relative to it.
    spread: Spread,
    boxes: Vec<(Vec<usize>, Vec<u8>)>,
}

/// Boxes of all arrays.
#[derive(Debug)]
pub(super) struct Sample {
    parts: Vec<Part>,
}

/// The box with this number: where it begins and how long it is. Places are spread along each dimension.
fn place(shape: &[usize], share: f64, number: usize) -> (Vec<usize>, Vec<usize>) {
    let wide = shape.iter().filter(|&&len| len > 1).count().max(1);
    let part = share.powf(1.0 / wide as f64);
    // Transforms and predictors work on cubes: fewer than eight elements are nothing of the kind.
    let len = |&len: &usize| ((len as f64 * part).round() as usize).max(8).min(len);
    let lens: Vec<usize> = shape.iter().map(len).collect();
    let start = |(i, (&all, &len)): (usize, (&usize, &usize))| {
        let at = (number * (2 * i + 1) + i) % BOXES;
        (all - len) * (2 * at + 1) / (2 * BOXES)
    };
    (shape.iter().zip(&lens).enumerate().map(start).collect(), lens)
}

/// The elements of a box, of `size` bytes each.
fn gather(
    bytes: &[u8],
    size: usize,
    shape: &[usize],
    start: &[usize],
    lens: &[usize],
    out: &mut Vec<u8>,
) {
    let (Some(&first), Some(&len)) = (start.first(), lens.first()) else {
        return out.extend_from_slice(bytes);
    };
    let row = size * shape[1..].iter().product::<usize>();
    if shape.len() == 1 {
        return out.extend_from_slice(&bytes[first * row..(first + len) * row]);
    }
    for i in first..first + len {
        gather(&bytes[i * row..(i + 1) * row], size, &shape[1..], &start[1..], &lens[1..], out);
    }
}

impl Sample {
    /// About so many bytes of these arrays; short ones are taken whole.
    pub(super) fn of<'s>(
        arrays: impl Iterator<Item = (Layout, &'s [u8])> + Clone,
        wanted: usize,
    ) -> Sample {
        let total: usize = arrays.clone().map(|(_, bytes)| bytes.len()).sum();
        let part = |(i, (layout, bytes)): (usize, (Layout, &[u8]))| {
            let target = (bytes.len() as f64 * wanted as f64 / total.max(1) as f64) as usize;
            let target = target.max(SHORTEST);
            let count = (target / SHORTEST).clamp(1, BOXES);
            let size = layout.ty.size() as usize;
            let boxes = if target * 2 > bytes.len() {
                vec![(layout.shape.clone(), bytes.to_vec())]
            } else {
                let share = target as f64 / count as f64 / bytes.len() as f64;
                let cut = |number: usize| {
                    // Fields of one state are often alike: elsewhere in each.
                    let (start, lens) = place(&layout.shape, share, (number + i) % BOXES);
                    let mut out = Vec::new();
                    gather(bytes, size, &layout.shape, &start, &lens, &mut out);
                    (lens, out)
                };
                (0..count).map(cut).collect()
            };
            Part { spread: Spread::of(layout.ty, bytes), whole: bytes.len(), layout, boxes }
        };
        Sample { parts: arrays.enumerate().map(part).collect() }
    }

    /// So many bytes of it, or fewer.
    pub(super) fn bytes(&self, most: usize) -> Vec<u8> {
        let boxes = self.parts.iter().flat_map(|part| &part.boxes);
        boxes.flat_map(|(_, bytes)| bytes).take(most).copied().collect()
    }

    /// What these filters do with the whole state, by what they do with the boxes.
    pub(super) fn effect(
        &self,
        filters: &Filters,
        step: u64,
        scratch: &mut Scratch,
    ) -> Result<Effect> {
        let mut all = Effect { bytes: 0.0, encode: 0.0, decode: 0.0 };
        for part in &self.parts {
            let found = part.effect(filters, step, scratch)?;
            all.bytes += found.bytes;
            all.encode += found.encode;
            all.decode += found.decode;
        }
        Ok(all)
    }
}

impl Part {
    fn effect(&self, filters: &Filters, step: u64, scratch: &mut Scratch) -> Result<Effect> {
        let usable = |pipeline: &Pipeline| !pipeline.is_empty() && self.whole >= SMALL;
        let pipeline = filters.for_part(&self.layout, self.spread).filter(usable);
        let failed = |source| AdjointError::Codec { array: self.layout.name.clone(), step, source };
        let whole = self.whole as f64;
        let (mut stored, mut raw, mut worst) = (0, 0, 0.0);
        let (mut encodes, mut decodes) = (Vec::new(), Vec::new());
        for (shape, bytes) in &self.boxes {
            let chunk = Chunk::new(self.layout.ty, shape).native();
            let (mut out, mut back) = (Vec::with_capacity(bytes.len()), vec![0; bytes.len()]);
            let watch = Stopwatch::start(None);
            let mask = match &pipeline {
                Some(pipeline) => {
                    Some(pipeline.encode(&chunk, bytes, &mut out, scratch).map_err(failed)?.mask)
                }
                None => {
                    out.extend_from_slice(bytes);
                    None
                }
            };
            let sum = esker_codec::checksum(&out);
            encodes.push(watch.seconds() / bytes.len().max(1) as f64);
            let watch = Stopwatch::start(None);
            // Restoring looks at the checksum first.
            let is_whole = esker_codec::checksum(&out) == sum;
            match (&pipeline, mask) {
                (Some(pipeline), Some(mask)) if is_whole => {
                    pipeline.decode(&chunk, mask, &out, &mut back, scratch).map_err(failed)?;
                }
                _ => back.copy_from_slice(bytes),
            }
            decodes.push(watch.seconds() / bytes.len().max(1) as f64);
            (stored, raw) = (stored + out.len(), raw + bytes.len());
            worst = f64::max(worst, out.len() as f64 / bytes.len().max(1) as f64);
        }
        // The shortest times: whatever else the machine does makes them longer.
        let least = |times: Vec<f64>| times.into_iter().fold(f64::INFINITY, f64::min);
        // Where nothing is lost, every bit of what moves is kept, and what moves spreads: soon all is like the worst box.
        let share = match pipeline.is_some_and(|pipeline| pipeline.is_lossless()) {
            true => worst,
            false => stored as f64 / raw.max(1) as f64,
        };
        Ok(Effect {
            bytes: share * whole,
            encode: least(encodes) * whole,
            decode: least(decodes) * whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::ExternalType;

    #[test]
    fn a_box_has_the_elements_of_its_place() {
        let shape = [5, 6, 7];
        let bytes: Vec<u8> = (0..210).collect();
        let (start, lens) = (vec![1, 2, 3], vec![2, 3, 4]);
        let mut found = Vec::new();
        gather(&bytes, 1, &shape, &start, &lens, &mut found);
        let at = |i: usize| (1 + i / 12) * 42 + (2 + i / 4 % 3) * 7 + 3 + i % 4;
        assert_eq!(found, (0..24).map(|i| bytes[at(i)]).collect::<Vec<_>>());
        for number in 0..BOXES {
            for share in [1e-9, 0.1, 0.9] {
                for shape in [&[100usize, 3, 50][..], &[1_000], &[], &[1, 1, 40_000]] {
                    let (start, lens) = place(shape, share, number);
                    let ends = start.iter().zip(&lens).map(|(start, len)| start + len);
                    assert!(ends.zip(shape).all(|(end, len)| end <= *len), "{shape:?} {share}");
                    assert!(lens.iter().all(|len| *len > 0));
                }
            }
        }
    }

    #[test]
    fn a_part_tells_what_the_whole_has() {
        // Smooth everywhere alike: floats are half, and the bound is that of the whole.
        let values: Vec<u8> = (0..64 * 64 * 64)
            .map(|i| ((i / 4096) as f64 * 0.1).sin() + ((i % 64) as f64 * 0.2).cos())
            .flat_map(f64::to_ne_bytes)
            .collect();
        let layout = Layout { name: "u".into(), ty: ExternalType::Double, shape: vec![64, 64, 64] };
        let arrays = [(layout.clone(), &values[..]), (layout.clone(), &values[..])];
        let sample = Sample::of(arrays.into_iter(), 256 << 10);
        let taken: usize = sample.parts.iter().flat_map(|p| &p.boxes).map(|b| b.1.len()).sum();
        assert!((128 << 10..512 << 10).contains(&taken), "{taken}");
        let mut scratch = Scratch::new();
        for (text, tolerance) in [("", 1.01), ("f32", 1.01), ("zfp,rel=1e-4", 2.0)] {
            let filters = Filters::new(&[("*".to_string(), text.to_string())]).unwrap();
            let found = sample.effect(&filters, 0, &mut scratch).unwrap();
            let chunk = Chunk::new(layout.ty, &layout.shape).native();
            let mut whole = Vec::new();
            filters.of("u").encode(&chunk, &values, &mut whole, &mut scratch).unwrap();
            let ratio = found.bytes / (2 * whole.len()) as f64;
            assert!((1.0 / tolerance..tolerance).contains(&ratio), "{text}: {ratio}");
            assert!(found.encode > 0.0 && found.decode > 0.0);
        }
        // Short arrays are taken whole, and have no filters.
        let short = Layout { name: "t".into(), ty: ExternalType::Double, shape: vec![4] };
        let sample = Sample::of([(short, &values[..32])].into_iter(), 1 << 20);
        let filters = Filters::new(&[("*".to_string(), "sz,rel=1e-2".to_string())]).unwrap();
        assert_eq!(sample.effect(&filters, 0, &mut scratch).unwrap().bytes, 32.0);
    }
}
