//! The suite under MPICH and OpenMPI, each started by its own mpiexec.
//!
//! An MPI that is not installed is skipped with a message. The standard ABI of MPI 5 is tried if
//! `ESKER_TEST_MPI_ABI_MPIEXEC` names an mpiexec whose installation has `libmpi_abi.so` (PyPI's
//! mpich), or `ESKER_TEST_MPI_ABI_LIB` names the library.

use std::process::Command;

use esker_testkit::mpi::{Ended, Mpi};
use esker_testkit::skip;

const SIZES: [usize; 7] = [1, 2, 3, 4, 7, 8, 16];

const SUITE: &str = env!("CARGO_BIN_EXE_comm-suite");

fn run(mpi: &Mpi, ranks: usize, words: &[&str]) -> Ended {
    mpi.run(ranks, &[&[SUITE], words].concat())
}

/// Runs the suite and demands that it passed, once and not once for each rank.
fn passes(mpi: &Mpi, ranks: usize, effort: &[&str], abi: &str) {
    let ended = run(mpi, ranks, effort);
    assert!(ended.succeeded(), "{} on {ranks} ranks: {ended:?}", mpi.name);
    let expected = format!("checks passed on {ranks} ranks, {abi},");
    assert_eq!(ended.output.matches(&expected).count(), 1, "{ended:?}");
}

fn effort(ranks: usize) -> &'static [&'static str] {
    if ranks < 7 { &[] } else { &["light"] }
}

#[test]
fn mpich_passes_the_suite_at_every_size() {
    let mpi = Mpi::mpich();
    if mpi.is_here() {
        SIZES.into_iter().for_each(|ranks| passes(&mpi, ranks, effort(ranks), "MPICH"));
    }
}

#[test]
fn open_mpi_passes_the_suite_at_every_size() {
    let mpi = Mpi::open_mpi();
    if mpi.is_here() {
        SIZES.into_iter().for_each(|ranks| passes(&mpi, ranks, effort(ranks), "OpenMPI"));
    }
}

#[test]
fn the_standard_abi_passes_the_suite() {
    let variable = |name| std::env::var(name).ok();
    let mpiexec = variable("ESKER_TEST_MPI_ABI_MPIEXEC");
    let library = variable("ESKER_TEST_MPI_ABI_LIB");
    if mpiexec.is_none() && library.is_none() {
        skip!("neither ESKER_TEST_MPI_ABI_MPIEXEC nor ESKER_TEST_MPI_ABI_LIB is set");
        return;
    }
    let mut mpi = Mpi::mpich();
    mpi.mpiexec = mpiexec.unwrap_or(mpi.mpiexec);
    if let Some(library) = library {
        mpi = mpi.with("ESKER_MPI_LIB", &library);
    }
    SIZES.into_iter().for_each(|ranks| passes(&mpi, ranks, effort(ranks), "MPI 5 standard"));
}

#[test]
fn long_messages_travel_in_pieces() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            // Every message of the suite with more than 5000 bytes is a long one.
            passes(&mpi.with("ESKER_MPI_PIECE", "5000"), 3, &["light"], abi);
        }
    }
}

#[test]
fn sparse_exchange_by_consensus_passes_the_suite() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            let mpi = mpi.with("ESKER_MPI_CONSENSUS_FROM", "0");
            [2, 4, 8].into_iter().for_each(|ranks| passes(&mpi, ranks, &["light"], abi));
            passes(&mpi.with("ESKER_MPI_PIECE", "5000"), 4, &["light"], abi);
        }
    }
}

#[test]
fn one_thread_at_a_time_passes_the_suite() {
    for (mpi, abi) in [(Mpi::mpich(), "MPICH"), (Mpi::open_mpi(), "OpenMPI")] {
        if mpi.is_here() {
            passes(&mpi.with("ESKER_MPI_SERIALIZED", "1"), 4, &["light"], abi);
        }
    }
}

#[test]
fn an_mpi_that_is_in_the_process_already_is_the_one_used() {
    let loaded =
        [(Mpi::mpich(), "libmpich.so.12", "MPICH"), (Mpi::open_mpi(), "libmpi.so.40", "OpenMPI")];
    for (mpi, library, abi) in loaded {
        if mpi.is_here() {
            let preload = format!("LD_PRELOAD={library}");
            let words = ["env", preload.as_str(), SUITE, "light"];
            let mpi = mpi.with("ESKER_MPI_LIB", "no-such-library.so");
            let outcome = mpi.run(2, &words);
            assert!(outcome.succeeded(), "{}", outcome.errors);
            assert!(outcome.output.contains(abi), "{}", outcome.output);
        }
    }
}

#[test]
fn a_rank_that_fails_ends_the_job() {
    for mpi in [Mpi::mpich(), Mpi::open_mpi()] {
        if mpi.is_here() {
            let outcome = run(&mpi, 3, &["fail"]);
            assert!(!outcome.succeeded(), "{}", outcome.output);
            assert!(outcome.told.contains("rank 1 gives up"), "{outcome:?}");
        }
    }
}

#[test]
fn a_rank_that_is_killed_in_a_turn_of_node_memory_ends_the_job() {
    for mpi in Mpi::here() {
        for when in ["before", "laying", "owner"] {
            let outcome = run(&mpi, 3, &["node-die", when]);
            assert!(!outcome.succeeded(), "{} {when}: {outcome:?}", mpi.name);
            assert!(!outcome.told.contains("nobody"), "{} {when}: {outcome:?}", mpi.name);
        }
    }
}

#[test]
fn memory_that_a_node_does_not_have_is_refused_on_every_rank_alike() {
    for mpi in Mpi::here() {
        let outcome = run(&mpi, 3, &["node-refused"]);
        assert!(outcome.succeeded(), "{}: {outcome:?}", mpi.name);
        let mut told: Vec<&str> = outcome.told.lines().collect();
        told.dedup();
        assert_eq!(told.len(), 1, "{}: {outcome:?}", mpi.name);
        assert!(told[0].starts_with("refused: rank 0: "), "{}: {outcome:?}", mpi.name);
    }
}

#[test]
fn a_library_of_another_family_than_the_launcher_is_refused() {
    let (mpich, open_mpi) = (Mpi::mpich(), Mpi::open_mpi());
    if mpich.is_here() && open_mpi.is_here() {
        let outcome = run(&mpich.with("ESKER_MPI_LIB", "libmpi.so.40"), 2, &["light"]);
        assert!(!outcome.succeeded());
        let words = "the launcher started 2 ranks, but";
        assert!(outcome.told.contains(words), "{outcome:?}");
    }
}

#[test]
fn without_a_launcher_a_program_is_alone_and_needs_no_mpi() {
    let run = Command::new(SUITE)
        .arg("light")
        .env("ESKER_MPI_LIB", "no-such-library.so")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(output.contains("checks passed on 1 ranks, no MPI"), "{output}");
}

#[test]
fn under_a_launcher_without_a_library_many_ranks_are_refused() {
    let mpi = Mpi::mpich();
    if mpi.is_here() {
        let outcome = run(&mpi.with("ESKER_MPI_LIB", "no-such-library.so"), 2, &["light"]);
        assert!(!outcome.succeeded(), "{}", outcome.output);
        assert!(outcome.told.contains("MPI cannot be used"), "{outcome:?}");
    }
}
