//! The suite of layouts: every way of storing a dataset leads the same random lives, on every number of ranks and every
//! communicator that threads can be. It is part of the crate's unit tests, because `unequal` adds a layout as a room
//! inside the crate would: by one file, and without a change in `src`.

#[path = "../all/scenario/mod.rs"]
mod scenario;
mod unequal;

use std::sync::Arc;

use esker::{Communicator, SelfComm};
use esker_comm::ThreadWorld;
use scenario::Way;
use unequal::Unequal;

/// All ways of storing, each with its name.
fn ways() -> Vec<(&'static str, Way)> {
    let plain = Way::plain();
    let create = |options| esker::CreateOptions { rooms: vec![Arc::new(Unequal)], ..options };
    let open = |options| esker::OpenOptions { rooms: vec![Arc::new(Unequal)], ..options };
    vec![
        ("canonical", plain),
        ("chunked", Way { chunks: true, ..plain }),
        ("chunked in files", Way { chunks: true, folder: true, ..plain }),
        ("log", Way { log: true, ..plain }),
        ("chunks in logs", Way { log: true, chunks: true, ..plain }),
        ("burst buffer", Way { burst: true, ..plain }),
        ("burst buffer before chunks", Way { burst: true, chunks: true, ..plain }),
        ("burst buffer before files", Way { burst: true, chunks: true, folder: true, ..plain }),
        ("unequal units in memory", Way { create, open, ..plain }),
        ("unequal units beside chunks", Way { create, open, chunks: true, ..plain }),
    ]
}

/// Seeds for each way and communicator; more with ESKER_SEEDS.
fn seeds() -> u64 {
    std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// Leads lives of all ways, with ranks as `launch` makes them. Decomposed variables have lives of their own.
fn live(first: u64, launch: impl Fn(u64, &(dyn Fn(Arc<dyn Communicator>) + Sync))) {
    let dir = tempfile::tempdir().unwrap();
    for seed in first..first + seeds() {
        for (number, (name, way)) in ways().into_iter().enumerate() {
            eprintln!("{name}, seed {seed}");
            let path = dir.path().join(format!("{seed}-{number}"));
            launch(seed, &|comm| drop(scenario::run_as(way, seed, comm, &path)));
        }
        for name in ["decomposed.nc", "decomposed.burst.nc"] {
            eprintln!("{name}, seed {seed}");
            let path = dir.path().join(format!("{seed}-{name}"));
            launch(seed, &|comm| scenario::run_decomposed(seed, comm, &path));
        }
    }
    // Or it was never asked.
    let kept = unequal::KEPT.lock().unwrap();
    assert!(kept.keys().any(|(name, _)| name.starts_with(dir.path().to_str().unwrap())));
}

#[test]
fn every_layout_agrees_with_the_model_in_one_process() {
    live(80_000, |_, life| life(Arc::new(SelfComm::new())));
}

#[test]
fn every_layout_agrees_with_the_model_on_threads() {
    live(81_000, |seed, life| drop(esker::launch([2, 3, 4, 7][seed as usize % 4], life)));
}

#[test]
fn every_layout_agrees_with_the_model_on_several_nodes() {
    live(82_000, |seed, life| {
        let world = ThreadWorld::new(5).ranks_per_node(1 + seed as usize % 3);
        world.launch(life).unwrap();
    });
}
