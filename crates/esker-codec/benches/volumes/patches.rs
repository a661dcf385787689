//! Patches of 64 in each dimension beside chunks of the same lengths: all streams, and what their index takes, counted.

use esker_codec::{Bound, Chunk, Coarse, Packing, Patches, Pipeline, Scratch};
use esker_format::ExternalType;

use crate::clock::Clock;
use crate::data::Volume;

/// Length of a patch, and its levels.
const LENGTH: usize = 64;
const LEVELS: u32 = 4;

/// Boxes of a volume with their elements, native.
fn boxes(volume: &Volume) -> Vec<(Vec<usize>, Vec<f32>)> {
    let skip = volume.shape.len().saturating_sub(3);
    assert!(volume.shape[..skip].iter().all(|&len| len == 1), "{}", volume.name);
    let [nz, ny, nx] = <[usize; 3]>::try_from(&volume.shape[skip..]).expect("three dimensions");
    let mut all = Vec::new();
    for z in (0..nz).step_by(LENGTH) {
        for y in (0..ny).step_by(LENGTH) {
            for x in (0..nx).step_by(LENGTH) {
                let end = |at: usize, len: usize| (at + LENGTH).min(len);
                let shape = vec![end(z, nz) - z, end(y, ny) - y, end(x, nx) - x];
                let mut values = Vec::new();
                for k in z..end(z, nz) {
                    for j in y..end(y, ny) {
                        let row = (k * ny + j) * nx;
                        values.extend_from_slice(&volume.values[row + x..row + end(x, nx)]);
                    }
                }
                all.push((shape, values));
            }
        }
    }
    all
}

/// What an index has for a stream: its length, checksum, error, minimum and maximum.
const INDEX: usize = 3 + 4 + 4 + 4 + 4;

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) coarse: usize,
    pub(crate) encode: f64,
    pub(crate) decode: f64,
    pub(crate) decode_coarse: f64,
}

fn patches(volume: &Volume, patches: &Patches, layers: u32, upto: u32, name: String) -> Row {
    let mut scratch = Scratch::new();
    let mut row = Row { name, bytes: 0, coarse: 0, encode: 0.0, decode: 0.0, decode_coarse: 0.0 };
    for (shape, values) in boxes(volume) {
        let chunk = Chunk::new(ExternalType::Float, &shape).native();
        let fill = volume.fill.map(f32::to_be_bytes);
        let chunk = Chunk { fill: fill.as_ref().map(|f| &f[..]), ..chunk };
        let mut out = Vec::new();
        let elements = bytemuck::cast_slice(&values);
        let clock = Clock::start();
        let streams =
            patches.encode(&chunk, &[], None, elements, &mut out, &mut scratch).expect("encodes");
        row.encode += clock.seconds();
        let mut left = out.as_slice();
        let mut kept = Vec::new();
        for stream in &streams {
            let (bytes, rest) = left.split_at(stream.bytes);
            left = rest;
            if stream.layer <= upto {
                row.bytes += stream.bytes + INDEX;
                row.coarse += if stream.level > 0 { stream.bytes + INDEX } else { 0 };
                kept.push((stream.level, bytes));
            }
        }
        let mut back = vec![0f32; values.len()];
        let all: Vec<&[u8]> = kept.iter().map(|(_, bytes)| *bytes).collect();
        let clock = Clock::start();
        let to = bytemuck::cast_slice_mut(&mut back);
        patches.decode(&chunk, 0, upto.min(layers - 1), &all, to, &mut scratch).expect("decodes");
        row.decode += clock.seconds();
        let some: Vec<&[u8]> =
            kept.iter().filter(|(l, _)| *l > 0).map(|(_, bytes)| *bytes).collect();
        let halves: usize = shape.iter().map(|len| len.div_ceil(2)).product();
        let clock = Clock::start();
        let to = bytemuck::cast_slice_mut(&mut back[..halves]);
        patches.decode(&chunk, 1, upto.min(layers - 1), &some, to, &mut scratch).expect("decodes");
        row.decode_coarse += clock.seconds();
    }
    row
}

fn chunked(volume: &Volume, text: &str, name: &str) -> Row {
    let pipeline: Pipeline = text.parse().expect("a pipeline");
    let mut scratch = Scratch::new();
    let name = name.to_string();
    let mut row = Row { name, bytes: 0, coarse: 0, encode: 0.0, decode: 0.0, decode_coarse: 0.0 };
    for (shape, values) in boxes(volume) {
        let fill = volume.fill.map(f32::to_be_bytes);
        let chunk = Chunk::new(ExternalType::Float, &shape).native();
        let chunk = Chunk { fill: fill.as_ref().map(|f| &f[..]), ..chunk };
        let mut out = Vec::new();
        let clock = Clock::start();
        let encoded = pipeline
            .encode(&chunk, bytemuck::cast_slice(&values), &mut out, &mut scratch)
            .expect("encodes");
        row.encode += clock.seconds();
        // An entry of a chunk table has 24 bytes.
        row.bytes += out.len() + 24;
        let mut back = vec![0f32; values.len()];
        let clock = Clock::start();
        let to = bytemuck::cast_slice_mut(&mut back);
        pipeline.decode(&chunk, encoded.mask, &out, to, &mut scratch).expect("decodes");
        row.decode += clock.seconds();
    }
    row
}

/// All kinds and packings for a bound that is a share of the volume's range.
pub(crate) fn rows(volume: &Volume, share: f64) -> Vec<Row> {
    let (low, high) = volume.range();
    let bound = share * (high - low);
    let mut rows = vec![
        chunked(volume, &format!("sz,abs={bound:e}"), "chunks, sz"),
        chunked(volume, &format!("zfp,accuracy={bound:e}"), "chunks, zfp"),
    ];
    for (packing, word) in [(Packing::Small, "small"), (Packing::Fast, "fast")] {
        for coarse in [Coarse::Sample, Coarse::Mean, Coarse::Spline] {
            let with = |bound, layers| {
                Patches::new(LEVELS).coarse(coarse).packing(packing).bound(bound).layers(layers)
            };
            let name = format!("{word}, {}", format!("{coarse:?}").to_lowercase());
            rows.push(patches(volume, &with(Bound::Absolute(bound), 1), 1, 0, name.clone()));
            if coarse == Coarse::Sample {
                let layered = with(Bound::Absolute(bound), 3);
                rows.push(patches(volume, &layered, 3, 2, format!("{name}, 3 layers")));
                rows.push(patches(volume, &layered, 3, 1, format!("{name}, 2 of 3 layers")));
                let looser = with(Bound::Absolute(10.0 * bound), 1);
                rows.push(patches(volume, &looser, 1, 0, format!("{name}, bound 10 times looser")));
            }
        }
    }
    rows
}
