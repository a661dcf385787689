//! All codecs on real volumes: ratio, speed, and the error that was reached.
//!
//! `cargo bench -p esker-codec --bench volumes [-- --json] [--only TEXT]… [--crop N]
//! [--export DIR] [--patches]`
//!
//! The volumes are those of the shared test data, each encoded as one chunk; with `--crop N` only
//! the middle of each, at most N long in every dimension. Speeds are MB of
//! elements per second of this thread's CPU time where the system tells it, because the machine
//! may be busy; the mean of some calls. The error is the largest, as a share of the bound (for filters
//! without a bound, of the range), and PSNR is of the ordinary values. `--export` writes the
//! volumes as raw little-endian numbers, for `compare/sz3.py`. `--patches` compares patches with chunks of the same
//! lengths instead, all streams and their index counted; `--only` then names volumes of three dimensions.

mod clock;
mod data;
mod patches;

use clock::Clock;
use data::Volume;
use esker_codec::{Chunk, FilterMask, Pipeline, Scratch};
use esker_format::ExternalType;
use serde_json::json;

const LOSSLESS: &[&str] = &[
    "deflate,6",
    "lz4",
    "zstd,3",
    "shuffle deflate,1",
    "shuffle deflate,6",
    "shuffle lz4",
    "shuffle zstd,1",
    "shuffle zstd,3",
    "shuffle zstd,9",
    "bitshuffle lz4",
    "bitshuffle zstd,3",
    "pco,4",
    "pco,8",
    "zfp,reversible",
];

/// What `{}` is in: a bound, as a share of the range.
const BOUNDED: &[&str] = &["zfp,accuracy={}", "sz,abs={}"];
const SHARES: &[f64] = &[1e-2, 1e-3, 1e-4, 1e-5];

const ROUNDED: &[&str] =
    &["bitround,7 shuffle zstd,3", "bitround,12 shuffle zstd,3", "bitround,7 pco"];

struct Row {
    pipeline: String,
    share: Option<f64>,
    ratio: f64,
    bytes: usize,
    encode: f64,
    decode: f64,
    error: f64,
    psnr: f64,
}

/// The mean time of one call, after one that warms up. The system's clock of CPU time may go in
/// steps of some milliseconds, so there are as many calls as fill a tenth of a second.
fn seconds(mut call: impl FnMut()) -> f64 {
    call();
    let (clock, mut calls) = (Clock::start(), 0);
    while calls < 3 || clock.seconds() < 0.1 {
        call();
        calls += 1;
    }
    clock.seconds() / f64::from(calls)
}

fn measure(volume: &Volume, text: &str, bound: Option<(f64, f64)>) -> Row {
    let pipeline: Pipeline = text.parse().expect("a pipeline");
    let fill = volume.fill.map(f32::to_be_bytes);
    let chunk = Chunk {
        fill: fill.as_ref().map(|f| &f[..]),
        ..Chunk::new(ExternalType::Float, &volume.shape)
    };
    let elements: Vec<u8> = volume.values.iter().flat_map(|x| x.to_be_bytes()).collect();
    let (mut stored, mut back) = (Vec::new(), vec![0; elements.len()]);
    let mut scratch = Scratch::new();
    let mut mask = FilterMask::default();
    let encode = seconds(|| {
        stored.clear();
        let encoded = pipeline.encode(&chunk, &elements, &mut stored, &mut scratch);
        mask = encoded.expect("it encodes").mask;
    });
    let decode = seconds(|| {
        pipeline.decode(&chunk, mask, &stored, &mut back, &mut scratch).expect("it decodes")
    });
    let (low, high) = volume.range();
    let (mut largest, mut squares, mut count) = (0f64, 0f64, 0usize);
    for (x, y) in volume.values.iter().zip(back.as_chunks::<4>().0) {
        let y = f32::from_be_bytes(*y);
        if volume.ordinary(*x) {
            let error = (f64::from(*x) - f64::from(y)).abs();
            largest = largest.max(error);
            squares += error * error;
            count += 1;
        } else {
            assert_eq!(x.to_bits(), y.to_bits(), "{text}: a special value changed");
        }
    }
    let bytes = elements.len() as f64;
    Row {
        pipeline: text.into(),
        share: bound.map(|(share, _)| share),
        ratio: bytes / stored.len() as f64,
        bytes: stored.len(),
        encode: bytes / 1e6 / encode,
        decode: bytes / 1e6 / decode,
        error: largest / bound.map_or(high - low, |(_, bound)| bound),
        psnr: 20.0 * ((high - low) / (squares / count.max(1) as f64).sqrt()).log10(),
    }
}

/// Patches beside chunks, ratios and MB of elements per second of CPU time.
fn compare_patches(volume: &Volume) {
    let elements = 4.0 * volume.values.len() as f64;
    println!("\n{} {:?}\n", volume.name, volume.shape);
    println!(
        "| of range | stored as | ratio | level 1 and up, share of bytes | encode MB/s | decode | level 1 |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for &share in &SHARES[..3] {
        for row in patches::rows(volume, share) {
            let per_second = |seconds: f64| elements / 1e6 / seconds;
            let coarse = match row.coarse {
                0 => ["-".to_string(), "-".to_string()],
                bytes => [
                    format!("{:.0} %", 100.0 * bytes as f64 / row.bytes as f64),
                    format!("{:.0}", per_second(row.decode_coarse)),
                ],
            };
            println!(
                "| {share:e} | {} | {:.2} | {} | {:.0} | {:.0} | {} |",
                row.name,
                elements / row.bytes as f64,
                coarse[0],
                per_second(row.encode),
                per_second(row.decode),
                coarse[1],
            );
        }
    }
}

fn main() {
    let (mut as_json, mut only, mut export, mut crop) = (false, Vec::new(), None, None);
    let mut as_patches = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => as_json = true,
            "--patches" => as_patches = true,
            "--only" => only.extend(arguments.next()),
            "--export" => export = arguments.next(),
            "--crop" => crop = arguments.next().and_then(|n| n.parse().ok()),
            _ => {}
        }
    }
    let Some(volumes) = data::volumes() else {
        println!("skipped: no shared test data (set ESKER_SHARED_DATA)");
        return;
    };
    for volume in &volumes {
        let volume = &volume.crop(crop.unwrap_or(usize::MAX));
        if let Some(dir) = &export {
            volume.export(dir.as_ref()).expect("the volume is written");
            continue;
        }
        if as_patches {
            if only.is_empty() || only.iter().any(|part| volume.name.contains(part)) {
                compare_patches(volume);
            }
            continue;
        }
        let (low, high) = volume.range();
        let mut jobs: Vec<(String, Option<(f64, f64)>)> = Vec::new();
        for text in LOSSLESS.iter().chain(ROUNDED) {
            jobs.push((text.to_string(), None));
        }
        for text in BOUNDED {
            for share in SHARES {
                let bound = share * (high - low);
                jobs.push((text.replace("{}", &format!("{bound:?}")), Some((*share, bound))));
            }
        }
        jobs.retain(|(text, _)| only.is_empty() || only.iter().any(|part| text.contains(part)));
        if !as_json {
            println!("\n{} {:?}\n", volume.name, volume.shape);
            println!("| pipeline | of range | ratio | encode MB/s | decode MB/s | error | PSNR |");
            println!("| --- | --- | --- | --- | --- | --- | --- |");
        }
        for (text, bound) in jobs {
            let row = measure(volume, &text, bound);
            if as_json {
                println!(
                    "{}",
                    json!({
                        "volume": volume.name, "pipeline": row.pipeline, "share": row.share,
                        "ratio": row.ratio, "bytes": row.bytes, "encode": row.encode,
                        "decode": row.decode, "error": row.error, "psnr": row.psnr,
                    })
                );
                continue;
            }
            let name = row.pipeline.split('=').next().unwrap_or_default();
            let share = row.share.map_or("-".into(), |share| format!("{share:e}"));
            println!(
                "| {name} | {share} | {:.2} | {:.0} | {:.0} | {:.2e} | {:.1} |",
                row.ratio, row.encode, row.decode, row.error, row.psnr
            );
        }
    }
}
