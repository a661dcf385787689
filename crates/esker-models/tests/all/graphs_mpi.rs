//! Random graphs under MPICH and OpenMPI: what ranks of a job define is what a plain model says.
//!
//! A job is this program again, with the one test that is ignored otherwise.

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Layout, Version};
use esker_comm::mpi::{MpiComm, MpiSession};
use esker_testkit::mpi::Mpi;
use esker_testkit::random::Random;

use super::graphs::{Item, create_on, read_on, redefine_on, whole};

/// Where a job finds what it is to do: a directory, and how many seeds.
const PLACE: &str = "ESKER_MODELS_JOB";
const SEEDS: &str = "ESKER_MODELS_SEEDS";

/// Up to so many items; the same on every rank.
fn items(random: &mut Random, most: usize) -> Vec<Item> {
    let mut list = |below: usize, most: usize| -> Vec<u8> {
        (0..random.below(most)).map(|_| random.below(below) as u8).collect()
    };
    let mut made = Vec::new();
    for _ in 0..list(1, most + 1).len() {
        let vertex = list(12, 2).first().copied().unwrap_or(3);
        let (graphs, vars) = (list(2, 3).iter().map(|n| n + 1).collect(), list(6, 4));
        let links = list(48, 5).iter().map(|n| (n % 4, n / 4)).collect();
        made.push(Item { vertex, graphs, vars, links });
    }
    made
}

#[test]
#[ignore = "a rank of a job that the test below starts"]
fn a_rank_of_a_job() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let seeds: u64 = std::env::var(SEEDS).unwrap().parse().unwrap();
    let session = MpiSession::start().unwrap();
    let world: Arc<dyn Communicator> = Arc::new(MpiComm::world().unwrap());
    let rank = world.rank();
    for seed in 0..seeds {
        let mut random = Random(seed * 1000 + world.size() as u64);
        let (first, more) = (items(&mut random, 24), items(&mut random, 12));
        let all = [&first[..], &more].concat();
        let version = [Version::Cdf1, Version::Cdf2, Version::Cdf5][random.below(3)];
        let classic = CreateOptions::new().version(version);
        let log = CreateOptions::new().layout(Layout::Log);
        for (name, options) in [("g.nc", classic), ("g.esk", log)] {
            let path = Path::new(&place).join(format!("{seed}-{name}"));
            create_on(world.clone(), &path, &first, options).unwrap();
            assert_eq!(read_on(world.clone(), &path), whole(&first), "seed {seed}, rank {rank}");
            redefine_on(world.clone(), &path, &more, &all).unwrap();
            assert_eq!(read_on(world.clone(), &path), whole(&all), "seed {seed}, rank {rank}");
        }
    }
    if rank == 0 {
        std::fs::write(Path::new(&place).join("done"), world.size().to_string()).unwrap();
    }
    drop(world);
    drop(session);
}

#[test]
fn random_graphs_of_mpi_ranks_are_those_of_one_rank() {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    for mpi in Mpi::here() {
        for (ranks, seeds) in [(1, 6), (2, 6), (3, 6), (7, 3), (16, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let job = mpi
                .clone()
                .with(PLACE, dir.path().to_str().unwrap())
                .with(SEEDS, &seeds.to_string());
            let words = ["--exact", "graphs_mpi::a_rank_of_a_job", "--ignored", "--test-threads=1"];
            let ended = job.run(ranks, &[&[program], &words[..]].concat());
            assert!(ended.succeeded(), "{} on {ranks}: {ended:?}", mpi.name);
            // Rank 0 saw all of them, and not a world of its own.
            let done = std::fs::read_to_string(dir.path().join("done")).unwrap();
            assert_eq!(done, ranks.to_string(), "{}", mpi.name);
            // And one process reads what they wrote.
            for seed in 0..seeds {
                let mut random = Random(seed * 1000 + ranks as u64);
                let all = [items(&mut random, 24), items(&mut random, 12)].concat();
                for name in ["g.nc", "g.esk"] {
                    let path = dir.path().join(format!("{seed}-{name}"));
                    let alone = Arc::new(esker::SelfComm::new());
                    assert_eq!(read_on(alone, &path), whole(&all), "{} on {ranks}", mpi.name);
                }
            }
        }
    }
}
