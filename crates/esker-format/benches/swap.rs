//! Conversion beside a plain memcpy of the same run.
//!
//! `cargo bench -p esker-format --bench swap [-- --json | --check]`
//!
//! Each repeat times every row once, so that a slow moment of the machine hits all of them,
//! and a row's ratio is the median over repeats of (its bandwidth / memcpy's in that repeat).
//! Bandwidth counts the source's bytes plus the target's, over 64 MiB of the wider side.
//! `--check` exits with 1 when a same-type row has less than 0.7 of memcpy's bandwidth.

use std::hint::black_box;
use std::time::Instant;

use esker_format::values::{decode, default_fill_bytes, encode, swap_in_place};
use esker_format::{ConversionRules, ExternalType, MemoryType};

const BYTES: usize = 64 << 20;
const REPEATS: usize = 15;
const TARGET: f64 = 0.7;

#[derive(Clone, Copy)]
enum Job {
    Memcpy,
    Encode(MemoryType, ExternalType),
    Decode(ExternalType, MemoryType),
    InPlace(usize),
}

impl Job {
    fn name(self) -> String {
        match self {
            Job::Memcpy => "memcpy".into(),
            Job::Encode(m, e) => format!("encode {m} to {e}"),
            Job::Decode(e, m) => format!("decode {e} to {m}"),
            Job::InPlace(width) => format!("swap in place, width {width}"),
        }
    }

    fn same_type(self) -> bool {
        match self {
            Job::Encode(m, e) | Job::Decode(e, m) => e.natural() == m,
            _ => false,
        }
    }

    /// Gigabytes moved per second in one run.
    fn run(self, src: &[u8], dst: &mut [u8]) -> f64 {
        let (from, to) = match self {
            Job::Encode(m, e) => (m.size(), e.size() as usize),
            Job::Decode(e, m) => (e.size() as usize, m.size()),
            _ => (1, 1),
        };
        let count = BYTES / from.max(to);
        let (src, dst) = (black_box(&src[..count * from]), black_box(&mut dst[..count * to]));
        let rules = ConversionRules::default();
        let fill = if let Job::Encode(_, e) = self { default_fill_bytes(e) } else { Vec::new() };
        let begin = Instant::now();
        match self {
            Job::Memcpy => dst.copy_from_slice(src),
            Job::Encode(m, e) => assert!(encode(m, src, e, dst, &fill, rules).unwrap().all_fit()),
            Job::Decode(e, m) => assert!(decode(e, src, m, dst, rules).unwrap().all_fit()),
            Job::InPlace(width) => swap_in_place(dst, width),
        }
        let seconds = begin.elapsed().as_secs_f64();
        black_box(dst);
        (count * (from + to)) as f64 / seconds / 1e9
    }
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let has = |flag: &str| args.iter().any(|a| a == flag);
    use {ExternalType as E, MemoryType as M};
    let mut jobs = vec![Job::Memcpy];
    for ty in [E::Byte, E::Char, E::Short, E::Int, E::Float, E::Double, E::Int64] {
        jobs.push(Job::Encode(ty.natural(), ty));
        jobs.push(Job::Decode(ty, ty.natural()));
    }
    if !has("--check") {
        jobs.extend([2, 4, 8].map(Job::InPlace));
        let pairs = [
            (M::F64, E::Float),
            (M::F32, E::Double),
            (M::I32, E::Double),
            (M::F64, E::Int),
            (M::F64, E::Short),
            (M::F32, E::Short),
            (M::I32, E::Short),
            (M::I64, E::Int),
            (M::I64, E::Double),
            (M::U8, E::Byte),
            (M::U64, E::Int64),
            (M::F64, E::Int64),
        ];
        jobs.extend(pairs.map(|(m, e)| Job::Encode(m, e)));
        jobs.extend(pairs.map(|(m, e)| Job::Decode(e, m)));
    }

    // Zeros are in range for every pair. They are written, because pages of fresh zeros are
    // all the same page of memory, which would sit in the cache.
    let mut src = vec![1u8; BYTES];
    let mut dst = vec![1u8; BYTES];
    black_box(&mut src).fill(0);
    black_box(&mut dst).fill(0);
    let mut speeds = vec![Vec::new(); jobs.len()];
    for _ in 0..REPEATS {
        for (job, speeds) in jobs.iter().zip(&mut speeds) {
            speeds.push(job.run(&src, &mut dst));
        }
    }

    let mut slow = Vec::new();
    let mut rows = Vec::new();
    for (job, speed) in jobs.iter().zip(&speeds) {
        let ratio = median(speed.iter().zip(&speeds[0]).map(|(a, b)| a / b).collect());
        if job.same_type() && ratio < TARGET {
            slow.push(format!("{} has {ratio:.2} of memcpy's bandwidth", job.name()));
        }
        rows.push((job.name(), median(speed.clone()), ratio));
    }
    if has("--json") {
        let line = |(name, speed, ratio): &(String, f64, f64)| {
            format!(r#"  {{"name": "{name}", "gb_per_s": {speed:.3}, "of_memcpy": {ratio:.3}}}"#)
        };
        let list: Vec<String> = rows.iter().map(line).collect();
        println!("[\n{}\n]", list.join(",\n"));
    } else {
        println!("{:28} {:>8} {:>10}", "", "GB/s", "of memcpy");
        for (name, speed, ratio) in &rows {
            println!("{name:28} {speed:8.2} {ratio:10.2}");
        }
    }
    if has("--check") && !slow.is_empty() {
        eprintln!("slower than {TARGET} of memcpy: {}", slow.join("; "));
        std::process::exit(1);
    }
}
