//! Random lives of datasets on thread-ranks agree with a plain array.

use std::sync::Arc;

use esker::{Communicator, SelfComm};
use esker_testkit::programs;

use crate::scenario;

/// How many seeds for each number of ranks; more with ESKER_SEEDS.
fn seeds() -> u64 {
    std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    for seed in seeds {
        let path = dir.path().join("run.nc");
        esker::launch(ranks, |comm| scenario::run(seed, comm, &path));
    }
}

#[test]
fn one_process_agrees_with_the_model() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..seeds() {
        let comm: Arc<dyn Communicator> = Arc::new(SelfComm::new());
        scenario::run(seed, comm, &dir.path().join("run.nc"));
    }
}

#[test]
fn two_ranks_agree_with_the_model() {
    on_threads(2, 1000..1000 + seeds());
}

#[test]
fn three_ranks_agree_with_the_model() {
    on_threads(3, 2000..2000 + seeds());
}

#[test]
fn four_ranks_agree_with_the_model() {
    on_threads(4, 3000..3000 + seeds());
}

#[test]
fn seven_ranks_agree_with_the_model() {
    on_threads(7, 4000..4000 + seeds() / 2);
}

#[test]
fn sixteen_ranks_agree_with_the_model() {
    on_threads(16, 5000..5000 + seeds() / 4);
}

#[test]
fn two_datasets_at_once_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 6000..6000 + seeds() / 2 {
        let path = dir.path().join("run.nc");
        esker::launch(3, |comm| scenario::run_two(seed, comm, &path));
    }
}

#[test]
fn parts_of_the_ranks_have_datasets_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 7000..7000 + seeds() / 2 {
        let path = dir.path().join("run.nc");
        esker::launch(5, |comm| scenario::run_split(seed, comm, &path));
    }
}

#[test]
fn ranks_on_several_nodes_agree_with_the_model() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 8000..8000 + seeds() / 3 {
        let path = dir.path().join("run.nc");
        let world = esker_comm::ThreadWorld::new(6).ranks_per_node(1 + seed as usize % 4);
        world.launch(|comm| scenario::run(seed, comm, &path)).unwrap();
    }
}

/// The same for containers of logs.
mod logs {
    use super::*;

    /// In memory where there is such a directory: a container syncs many small files.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
        let dir = folder();
        for seed in seeds {
            let path = dir.path().join(format!("run{seed}.esk"));
            esker::launch(ranks, |comm| scenario::run(seed, comm, &path));
        }
    }

    #[test]
    fn one_rank_agrees_with_the_model() {
        on_threads(1, 10_000..10_000 + seeds() / 2);
    }

    #[test]
    fn two_ranks_agree_with_the_model() {
        on_threads(2, 11_000..11_000 + seeds() / 2);
    }

    #[test]
    fn four_ranks_agree_with_the_model() {
        on_threads(4, 12_000..12_000 + seeds() / 2);
    }

    #[test]
    fn seven_ranks_agree_with_the_model() {
        on_threads(7, 13_000..13_000 + seeds() / 4);
    }

    #[test]
    fn ranks_on_several_nodes_agree_with_the_model() {
        let dir = folder();
        for seed in 14_000..14_000 + seeds() / 4 {
            let path = dir.path().join(format!("run{seed}.esk"));
            let world = esker_comm::ThreadWorld::new(6).ranks_per_node(1 + seed as usize % 4);
            world.launch(|comm| scenario::run(seed, comm, &path)).unwrap();
        }
    }
}

/// The same for classic files behind a burst buffer.
mod bursts {
    use super::*;

    fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
        let dir = tempfile::tempdir().unwrap();
        for seed in seeds {
            let path = dir.path().join("run.burst.nc");
            esker::launch(ranks, |comm| scenario::run(seed, comm, &path));
        }
    }

    #[test]
    fn one_rank_agrees_with_the_model() {
        on_threads(1, 20_000..20_000 + seeds());
    }

    #[test]
    fn two_ranks_agree_with_the_model() {
        on_threads(2, 21_000..21_000 + seeds());
    }

    #[test]
    fn four_ranks_agree_with_the_model() {
        on_threads(4, 22_000..22_000 + seeds());
    }

    #[test]
    fn seven_ranks_agree_with_the_model() {
        on_threads(7, 23_000..23_000 + seeds() / 2);
    }

    #[test]
    fn two_datasets_at_once_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        for seed in 24_000..24_000 + seeds() / 2 {
            let path = dir.path().join("run.burst.nc");
            esker::launch(3, |comm| scenario::run_two(seed, comm, &path));
        }
    }

    #[test]
    fn ranks_on_several_nodes_agree_with_the_model() {
        let dir = tempfile::tempdir().unwrap();
        for seed in 25_000..25_000 + seeds() / 3 {
            let path = dir.path().join("run.burst.nc");
            let world = esker_comm::ThreadWorld::new(6).ranks_per_node(1 + seed as usize % 4);
            world.launch(|comm| scenario::run(seed, comm, &path)).unwrap();
        }
    }
}

/// The same for classic files with chunked variables.
mod chunks {
    use super::*;

    fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
        let dir = tempfile::tempdir().unwrap();
        for seed in seeds {
            let path = dir.path().join("run.chunk.nc");
            esker::launch(ranks, |comm| scenario::run(seed, comm, &path));
            programs::require_valid(&path, &format!("seed {seed} on {ranks} ranks"));
        }
    }

    #[test]
    fn one_rank_agrees_with_the_model() {
        on_threads(1, 30_000..30_000 + seeds());
    }

    #[test]
    fn two_ranks_agree_with_the_model() {
        on_threads(2, 31_000..31_000 + seeds());
    }

    #[test]
    fn four_ranks_agree_with_the_model() {
        on_threads(4, 32_000..32_000 + seeds());
    }

    #[test]
    fn seven_ranks_agree_with_the_model() {
        on_threads(7, 33_000..33_000 + seeds() / 2);
    }

    /// In a folder, with chunks in files of their own.
    fn in_folders(ranks: usize, seeds: std::ops::Range<u64>) {
        let dir = tempfile::tempdir().unwrap();
        for seed in seeds {
            let path = dir.path().join("run.sub.chunk.nc");
            let world = esker_comm::ThreadWorld::new(ranks).ranks_per_node(1 + seed as usize % 4);
            world.launch(|comm| scenario::run(seed, comm, &path)).unwrap();
            // Nothing of the datasets before it stays.
            let stems = std::fs::read_dir(&path).unwrap().filter_map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.split('.').nth(1).filter(|stem| *stem != "nc").map(String::from)
            });
            assert!(stems.collect::<std::collections::HashSet<_>>().len() <= 1);
        }
    }

    #[test]
    fn one_rank_with_files_of_chunks_agrees_with_the_model() {
        in_folders(1, 35_000..35_000 + seeds() / 2);
    }

    #[test]
    fn three_ranks_with_files_of_chunks_agree_with_the_model() {
        in_folders(3, 36_000..36_000 + seeds() / 2);
    }

    #[test]
    fn six_ranks_with_files_of_chunks_agree_with_the_model() {
        in_folders(6, 37_000..37_000 + seeds() / 3);
    }

    #[test]
    fn two_datasets_at_once_do_not_mix() {
        let dir = tempfile::tempdir().unwrap();
        for seed in 34_000..34_000 + seeds() / 2 {
            let path = dir.path().join("run.chunk.nc");
            esker::launch(3, |comm| scenario::run_two(seed, comm, &path));
        }
    }
}
