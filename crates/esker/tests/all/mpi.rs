//! Datasets under MPICH and OpenMPI, each started by its own mpiexec.
//!
//! An MPI that is not installed is a skip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use esker_testkit::mpi::Mpi;
use esker_testkit::{programs, python};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_esker-ranks");

/// Runs the program and demands that it passed.
fn passes(mpi: &Mpi, ranks: usize, words: &[&str]) -> String {
    groups_pass(mpi, &[(ranks, &[&[PROGRAM], words].concat())])
}

fn groups_pass(mpi: &Mpi, groups: &[(usize, &[&str])]) -> String {
    let ranks: usize = groups.iter().map(|(ranks, _)| ranks).sum();
    let job = mpi.start(groups);
    let name = job.name.clone();
    let ended = job.end();
    assert!(ended.succeeded(), "{name}: {ended:?}");
    let expected = format!("passed on {ranks} ranks");
    assert_eq!(ended.output.matches(&expected).count(), 1, "{name}: {ended:?}");
    ended.output
}

/// Ranks and how many seeds; more with ESKER_SEEDS.
fn efforts() -> Vec<(usize, u64)> {
    let most = std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(12u64);
    let seeds = |ranks| match ranks {
        1..=4 => most,
        5..=8 => most / 2,
        _ => most / 4,
    };
    [1, 2, 3, 4, 7, 8, 16].map(|ranks| (ranks, seeds(ranks))).into()
}

fn scenarios_pass(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    for (ranks, seeds) in efforts() {
        let dir = tempfile::tempdir().unwrap();
        let first = (10_000 * ranks).to_string();
        let place = dir.path().to_str().unwrap();
        passes(mpi, ranks, &["scenario", place, &first, &seeds.to_string()]);
        others_agree(dir.path());
    }
}

#[test]
fn random_lives_under_mpich_agree_with_the_model_and_with_python() {
    scenarios_pass(&Mpi::mpich());
}

#[test]
fn random_lives_under_open_mpi_agree_with_the_model_and_with_python() {
    scenarios_pass(&Mpi::open_mpi());
}

fn shares_pass(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    for (ranks, seeds) in efforts() {
        let dir = tempfile::tempdir().unwrap();
        let (place, first) = (dir.path().to_str().unwrap(), (5000 * ranks).to_string());
        passes(mpi, ranks, &["shares", place, &first, &seeds.to_string()]);
    }
}

#[test]
fn bytes_by_shares_under_mpich_are_those_of_the_tree() {
    shares_pass(&Mpi::mpich());
}

#[test]
fn bytes_by_shares_under_open_mpi_are_those_of_the_tree() {
    shares_pass(&Mpi::open_mpi());
}

fn decomposed_pass(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    for ranks in [1, 2, 4, 7] {
        let dir = tempfile::tempdir().unwrap();
        let first = (20_000 * ranks).to_string();
        passes(mpi, ranks, &["decomposed", dir.path().to_str().unwrap(), &first, "6"]);
    }
}

#[test]
fn decomposed_variables_under_mpich_agree_with_the_model() {
    decomposed_pass(&Mpi::mpich());
}

#[test]
fn decomposed_variables_under_open_mpi_agree_with_the_model() {
    decomposed_pass(&Mpi::open_mpi());
}

fn chunked_pass(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    for (ranks, seeds) in efforts().into_iter().filter(|(ranks, _)| [1, 2, 4, 7].contains(ranks)) {
        let dir = tempfile::tempdir().unwrap();
        let first = (40_000 * ranks).to_string();
        let seeds = seeds.to_string();
        passes(mpi, ranks, &["chunked", dir.path().to_str().unwrap(), &first, &seeds]);
    }
}

#[test]
fn chunked_variables_under_mpich_agree_with_the_model() {
    chunked_pass(&Mpi::mpich());
}

#[test]
fn chunked_variables_under_open_mpi_agree_with_the_model() {
    chunked_pass(&Mpi::open_mpi());
}

/// Two jobs, one dataset: whatever it is that has one writer, every rank of the second job gets a sentence, and what the
/// first one writes is right. Of two redefinitions the later one to be committed gets it.
fn one_writer_pass(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    for form in ["chunked", "files", "subfiles", "redefinition", "burst"] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        let mut first = mpi.start(&[(2, &[PROGRAM, "first-writer", form, place])]);
        first.wait_for(|| dir.path().join("has").exists().then_some(()));
        let second =
            mpi.start_beside(&first, &[(3, &[PROGRAM, "second-writer", form, place])]).end();
        assert!(second.succeeded(), "{form}: {second:?}");
        fs::write(dir.path().join("go"), "on").unwrap();
        let first = first.end();
        assert!(first.succeeded(), "{form}: {first:?}");
        assert!(first.output.contains("passed on 2 ranks"), "{form}: {first:?}");
        let (ranks, words) = match form {
            "redefinition" => (2, "another file has its name since it was opened"),
            "burst" => (3, "burst buffer"),
            _ => (3, "open for writing"),
        };
        for rank in 0..ranks {
            let told = fs::read_to_string(dir.path().join(format!("told.{rank}"))).unwrap();
            assert!(!told.is_empty(), "{form}, rank {rank}");
            let fits = |line: &str| line.contains("run.nc") && line.contains(words);
            assert!(told.lines().all(fits), "{form}, rank {rank}: {told}");
        }
        let report = esker_tools::check::check(
            dir.path().join("run.nc"),
            &esker_tools::check::CheckOptions::default(),
            &mut esker_tools::Unseen,
        );
        let report = report.unwrap();
        assert_eq!(report.verdict(), esker_tools::check::Verdict::Valid, "{form}: {report:?}");
    }
}

#[test]
fn of_two_jobs_under_mpich_every_rank_of_the_second_gets_a_sentence() {
    one_writer_pass(&Mpi::mpich());
}

#[test]
fn of_two_jobs_under_open_mpi_every_rank_of_the_second_gets_a_sentence() {
    one_writer_pass(&Mpi::open_mpi());
}

/// The burst buffer of a directory, as the environment names it.
pub(crate) fn burst_buffer(dir: &Path, more: &str) -> String {
    let dir = dir.join("bb");
    format!("nc_burst_buf=enable;nc_burst_buf_dirname={}{more}", dir.display())
}

fn scenarios_pass_behind_a_burst_buffer(mpi: &Mpi) {
    if !mpi.is_here() {
        return;
    }
    let more = [
        "",
        ";nc_burst_buf_shared_logs=enable",
        ";nc_burst_buf_flush_buffer_size=300;esker_burst_limit=2000",
    ];
    for ((ranks, seeds), more) in efforts().into_iter().zip(more.iter().cycle()) {
        let dir = tempfile::tempdir().unwrap();
        let first = (70_000 + 10_000 * ranks).to_string();
        let place = dir.path().to_str().unwrap();
        let hints = burst_buffer(dir.path(), more);
        let words: &[&str] = &[PROGRAM, "scenario", place, &first, &(seeds / 2).to_string()];
        groups_pass(&mpi.clone().with("PNETCDF_HINTS", &hints), &[(ranks, words)]);
        others_agree(dir.path());
        // Close has removed the logs.
        let left = fs::read_dir(dir.path().join("bb")).map_or(0, Iterator::count);
        assert_eq!(left, 0);
    }
}

#[test]
fn a_burst_buffer_by_the_environment_changes_nothing_under_mpich() {
    scenarios_pass_behind_a_burst_buffer(&Mpi::mpich());
}

#[test]
fn a_burst_buffer_by_the_environment_changes_nothing_under_open_mpi() {
    scenarios_pass_behind_a_burst_buffer(&Mpi::open_mpi());
}

/// Every file in a folder is valid for PnetCDF's validator and holds for netCDF4-python what
/// is noted beside it.
fn others_agree(dir: &Path) {
    let files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.with_extension("expected").exists())
        .filter(|path| path.extension().is_some_and(|e| e == "nc"))
        .collect();
    assert!(!files.is_empty());
    for file in &files {
        programs::require_valid(file, &file.display().to_string());
    }
    let Some(python) = python::with("netCDF4") else { return };
    let script = python::script(env!("CARGO_MANIFEST_DIR"), "expect.py");
    let output = Command::new(&python).arg(script).args(&files).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{errors}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_file_that_may_not_grow_on_one_rank_is_everyones_error() {
    for mpi in Mpi::here() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let path = path.to_str().unwrap();
        let unlimited: &[&str] = &[PROGRAM, "full", path];
        // 64 MiB in blocks of 512 bytes, which MPI's own files need not. Without the trap the
        // system would kill the rank.
        let script = format!("trap '' XFSZ; ulimit -f 131072; exec {PROGRAM} full {path}");
        let limited: &[&str] = &["sh", "-c", &script];
        groups_pass(&mpi, &[(1, unlimited), (1, limited), (2, unlimited)]);
    }
}

/// Found by reading: each rank chose the number of owners from its own cores, and ranks that
/// are bound to fewer of them had another idea of who owns what.
#[test]
fn ranks_bound_to_different_cores_agree_on_the_owners() {
    for mpi in Mpi::here() {
        if !programs::have("taskset") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let free: &[&str] = &[PROGRAM, "interleave", path.to_str().unwrap()];
        let bound: &[&str] = &["taskset", "-c", "0", PROGRAM, "interleave", path.to_str().unwrap()];
        let mpi = match mpi.name {
            "OpenMPI" => mpi.with_arguments(&["--bind-to", "none"]),
            _ => mpi,
        };
        groups_pass(&mpi, &[(2, free), (2, bound)]);
    }
}

#[test]
fn hints_of_the_environment_are_honoured_and_rank_0s_win() {
    for mpi in Mpi::here() {
        let dir = tempfile::tempdir().unwrap();
        let romio = dir.path().join("romio");
        fs::write(&romio, "# hints\ncb_buffer_size 4096\nromio_cb_write enable\n").unwrap();
        let path = dir.path().join("run.nc");
        let words: &[&str] = &[PROGRAM, "hints", path.to_str().unwrap()];
        let mpi = mpi
            .with("ROMIO_HINTS", romio.to_str().unwrap())
            .with("PNETCDF_HINTS", "cb_buffer_size=8192;nc_var_align_size=1024;cb_nods=3;oops");
        let output = groups_pass(&mpi, &[(3, words)]);
        for words in [
            // PNETCDF_HINTS wins over ROMIO_HINTS, and both over the program's.
            "(\"cb_buffer_size\", \"8192\")",
            "(\"romio_cb_write\", \"enable\")",
            "(\"nc_var_align_size\", \"1024\")",
            // Rank 0's of three.
            "(\"striping_unit\", \"100\")",
            "(\"cb_nodes\", \"1\")",
            "did you mean \\\"cb_nodes\\\"",
            "\\\"oops\\\" is ill-formed",
            "begin: 1024",
        ] {
            assert!(output.contains(words), "{words} is missing: {output}");
        }
    }
}
