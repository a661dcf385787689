//! Damages files for as long as it is told to, and opens, reads, checks, mends and writes
//! them: `cargo run --release -p esker-tools --example mutate -- SECONDS [SEED]`.
//!
//! A panic or more memory than a file justifies stops it, and names the seed that does it
//! again.

#[path = "../../esker/tests/all/hostile/exercise.rs"]
mod exercise;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esker_store::MemoryStore;
use esker_testkit::memory;
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, RepairOptions, Target, check, repair};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

static SEED: AtomicU64 = AtomicU64::new(0);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let (seconds, seed) = (arguments.next(), arguments.next());
    let (Ok(seconds), Ok(seed)) = (seconds.unwrap_or(Ok(60)), seed.unwrap_or_else(|| Ok(now())))
    else {
        eprintln!("usage: mutate [SECONDS [SEED]]");
        std::process::exit(2);
    };
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}\nagain with: mutate 1 {}", SEED.load(Ordering::SeqCst));
    }));
    let limit = Duration::from_secs(seconds);
    let start = Instant::now();
    let (mut files, mut opened) = (0u64, 0);
    let seeds = exercise::seeds();
    while start.elapsed() < limit {
        let seed = seed.wrapping_add(files);
        SEED.store(seed, Ordering::SeqCst);
        opened += exercise::soak(&seeds, seed, 1, check_and_mend);
        files += 1;
    }
    println!("{files} damaged files from seed {seed} on, of which {opened} opened: all well");
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

fn check_and_mend(store: &MemoryStore, bytes: &[u8]) {
    let store = Arc::new(store.clone());
    let options = CheckOptions { store: store.clone(), read_data: true, ..CheckOptions::default() };
    let (report, used) = memory::peak(|| check(exercise::NAME, &options, &mut Unseen));
    assert!(used <= exercise::allowance(bytes.len()), "check: {used} bytes for {}", bytes.len());
    let report = report.unwrap();
    let target = Target::Copy("mended.nc".into());
    let options = RepairOptions { store, ..RepairOptions::new(target) };
    let mended = repair(exercise::NAME, &options, &mut Unseen).unwrap();
    assert!(mended.after.worst() <= report.worst(), "{mended:?}");
}
