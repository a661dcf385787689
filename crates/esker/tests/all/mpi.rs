//! Datasets under MPICH and OpenMPI, each started by its own mpiexec.
//!
//! An MPI that is not installed is a skip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use esker::{Dataset, OpenOptions, RecoverOptions, Selection};
use esker_testkit::mpi::{Job, Mpi};
use esker_testkit::{programs, python};
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Verdict, check};

const PROGRAM: &str = env!("CARGO_BIN_EXE_esker-ranks");

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

#[test]
fn a_killed_rank_leaves_every_chunk_old_or_new() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let (mut mixed, mut turn) = (0, 0);
    // Each rank dies before each of its writes of a step: those of chunks, and then those of table
    // entries, before which other ranks have written theirs.
    while turn < kills() || (mixed == 0 && turn < 10 * kills()) {
        let dir = tempfile::tempdir().unwrap();
        let files = if turn % 2 == 0 { "inside" } else { "rank" };
        let (victim, writes) = (turn % 4, turn * 7 % 11);
        let place = dir.path().to_str().unwrap();
        let numbers = [victim.to_string(), writes.to_string()];
        let words = [PROGRAM, "endless-chunks", place, files, &numbers[0], &numbers[1]];
        assert!(!Mpi::mpich().run(4, &words).succeeded());
        let synced = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.nc");
        let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        let (fixed, record) = (ds.var("fixed").unwrap(), ds.var("record").unwrap());
        for var in [fixed, record] {
            ds.stored_chunks(var, true, |_, _| Ok(())).unwrap();
        }
        let steps = |ds: &Dataset| -> Vec<u64> {
            let all: Vec<f32> = ds.get(fixed, &Selection::all()).unwrap();
            let chunks = all.chunks(10_000).enumerate();
            let step = |(number, chunk): (usize, &[f32])| {
                let is = |step: &u64| {
                    let first = 10_000 * number as u64;
                    let mut all = chunk.iter().enumerate();
                    all.all(|(i, found)| *found == value(*step, first + i as u64))
                };
                (synced - 1..=synced).find(is)
            };
            chunks.map(|chunk| step(chunk).expect("a mixture, or neither")).collect()
        };
        let found = steps(&ds);
        mixed += usize::from(found.contains(&synced) && found.contains(&(synced - 1)));
        assert!(ds.numrecs() == synced || ds.numrecs() == synced + 1, "{}", ds.numrecs());
        let all: Vec<f32> = ds.get(record, &Selection::all()).unwrap();
        let width = all.len() / ds.numrecs() as usize;
        for (i, found) in all.iter().enumerate() {
            assert_eq!(*found, value((i / width) as u64, (i % width) as u64), "turn {turn}");
        }
        // Somebody goes on, and finds room where nothing is.
        let records = ds.numrecs();
        let more: Vec<f32> = (0..width as u64).map(|i| value(records, i)).collect();
        ds.append(record, &more).unwrap();
        assert_eq!(steps(&ds), found);
        ds.put(fixed, &Selection::all(), &vec![1i32; width]).unwrap();
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        let all: Vec<f32> = ds.get(record, &Selection::all()).unwrap();
        let expected = |i: usize| value((i / width) as u64, (i % width) as u64);
        assert!(all.iter().enumerate().all(|(i, found)| *found == expected(i)), "turn {turn}");
        assert_eq!(ds.get::<i32>(fixed, &Selection::all()).unwrap(), vec![1; width]);
        turn += 1;
    }
    println!("{mixed} of {turn} ranks were killed between two states");
    assert!(mixed > 0);
}

/// The burst buffer of a directory, as the environment names it.
fn burst_buffer(dir: &Path, more: &str) -> String {
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

#[test]
fn recover_finishes_the_file_of_a_rank_that_was_killed() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let mut replayed = 0;
    for turn in 0..kills() {
        let dir = tempfile::tempdir().unwrap();
        let more = if turn % 2 == 0 { "" } else { ";nc_burst_buf_shared_logs=enable" };
        let hints = burst_buffer(dir.path(), more);
        let job = killed_with(&["endless"], dir.path(), turn, &[("PNETCDF_HINTS", &hints)]);
        assert!(!job.end().succeeded());
        let synced = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.nc");
        let options = RecoverOptions::new().dir(dir.path().join("bb"));
        let recovery = esker::recover(&path, &options.clone().keep(true)).unwrap();
        assert!(recovery.is_complete(), "{recovery:?}");
        replayed += u64::from(recovery.entries > 0);
        let bytes = fs::read(&path).unwrap();
        assert!(esker::recover(&path, &options).unwrap().removed);
        assert!(bytes == fs::read(&path).unwrap(), "the second recovery made another file");
        let report = check(&path, &CheckOptions::default(), &mut Unseen).unwrap();
        assert_eq!(report.verdict(), Verdict::Valid, "{report:?}");
        let ds = Dataset::open(&path).unwrap();
        assert!(ds.numrecs() >= synced, "{} of {synced}", ds.numrecs());
        let fixed: Vec<i32> = ds.get(ds.var("fixed").unwrap(), &Selection::all()).unwrap();
        assert!(fixed.iter().enumerate().all(|(i, v)| *v == i as i32 % 4));
        let record: Vec<f32> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
        for (i, found) in record.iter().enumerate() {
            let (step, element) = ((i / fixed.len()) as u64, (i % fixed.len()) as u64);
            // Of what was not promised, a part may not have been written out.
            let unwritten = step >= synced && *found > 1e30;
            assert!(*found == value(step, element) || unwritten, "turn {turn}, record {step}");
        }
    }
    println!("{replayed} of {} files had something to be replayed", kills());
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

/// What a rank writes to an element of a record (`endless` in the program).
fn value(step: u64, element: u64) -> f32 {
    ((step * 31 + element) % 10_007) as f32
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

/// Starts 4 ranks and kills one of them after some steps, at another moment each time.
fn killed(what: &[&str], dir: &Path, turn: u64) -> Job {
    killed_with(what, dir, turn, &[])
}

/// The same with this in the environment.
fn killed_with(what: &[&str], dir: &Path, turn: u64, environment: &[(&str, &str)]) -> Job {
    let mut words = vec![PROGRAM, what[0], dir.to_str().unwrap()];
    words.extend(&what[1..]);
    let with = |mpi: Mpi, (name, value): &(&str, &str)| mpi.with(name, value);
    let mut job = environment.iter().fold(Mpi::mpich(), with).start(&[(4, &words)]);
    job.wait_for(|| number_in(&dir.join("synced")).filter(|synced| *synced > turn % 3));
    sleep(Duration::from_micros(turn % 40 * 1700));
    let victim = number_in(&dir.join(format!("pid.{}", turn % 4))).unwrap();
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).status().unwrap();
    assert!(killed.success());
    job
}

#[test]
fn a_rank_that_is_killed_in_a_redefinition_leaves_the_old_or_the_new_dataset() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let mut unfinished = 0;
    for turn in 0..10u64 {
        let dir = tempfile::tempdir().unwrap();
        let job = killed(&["redefine"], dir.path(), turn);
        assert!(!job.end().succeeded());
        let done = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.nc");
        unfinished += usize::from(esker::new_path(&path).exists());
        let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        let step = ds.schema().attrs.get("step").unwrap().values.get_f64(0).unwrap() as u64;
        assert!(step == done || step == done + 1, "{step} after {done}");
        assert_eq!(ds.schema().vars.len() as u64, 1 + step);
        let record: Vec<f32> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
        let width = record.len() / 2;
        let expected = |i: usize| value((i / width) as u64, (i % width) as u64);
        assert!(record.iter().enumerate().all(|(i, v)| *v == expected(i)), "turn {turn}");
        ds.close().unwrap();
        // What is left beside it is no harm, and all there is to find.
        let report = check(&path, &CheckOptions::default(), &mut Unseen).unwrap();
        assert_eq!(report.verdict(), Verdict::Valid, "{report:?}");
    }
    println!("{unfinished} of 10 ranks were killed while a new file was built");
    assert!(unfinished > 0);
}

#[test]
fn a_rank_that_is_killed_while_sub_files_are_replaced_leaves_the_old_or_the_new_dataset() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let mut unfinished = 0;
    for turn in 0..10u64 {
        let dir = tempfile::tempdir().unwrap();
        let job = killed(&["replace"], dir.path(), turn);
        assert!(!job.end().succeeded());
        let done = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.nc");
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let growing = names.filter(|n| n.to_str().unwrap().ends_with(".esker-new")).count();
        unfinished += usize::from(growing > 0);
        let recovery = esker::recover(&path, &esker::RecoverOptions::new()).unwrap();
        assert!(recovery.is_complete(), "turn {turn}: {recovery:?}");
        let ds = Dataset::open(&path).unwrap();
        let step = ds.schema().attrs.get("step").unwrap().values.get_f64(0).unwrap() as u64;
        assert!(step == done || step == done + 1, "{step} after {done}");
        assert_eq!(ds.subfiles().len() as u64, 1 + step % 4);
        let found: Vec<i32> = ds.get(ds.var("v").unwrap(), &Selection::all()).unwrap();
        let fill = |v: i32| step > done && v == -2_147_483_647;
        assert!(found.iter().all(|v| *v == step as i32 || fill(*v)), "turn {turn}");
        let report = check(&path, &CheckOptions::default(), &mut Unseen).unwrap();
        assert_eq!(report.verdict(), Verdict::Valid, "{report:?}");
    }
    println!("{unfinished} of 10 ranks were killed while a new dataset was built");
}

#[test]
fn a_killed_rank_leaves_what_was_synced() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let mut in_the_middle = 0;
    for turn in 0..20u64 {
        let dir = tempfile::tempdir().unwrap();
        let job = killed(&["endless"], dir.path(), turn);
        assert!(!job.end().succeeded());
        let synced = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.nc");
        // The bytes of a record that nobody promised yet are all that there may be to find.
        let report = check(&path, &CheckOptions::default(), &mut Unseen).unwrap();
        assert!(report.findings.iter().all(|f| f.code == "trailing"), "{report:?}");
        in_the_middle += report.findings.len();
        let ds = Dataset::open(&path).unwrap();
        assert!(ds.numrecs() == synced || ds.numrecs() == synced + 1, "{}", ds.numrecs());
        let fixed: Vec<i32> = ds.get(ds.var("fixed").unwrap(), &Selection::all()).unwrap();
        assert!(fixed.iter().enumerate().all(|(i, v)| *v == i as i32 % 4));
        // A record that the header promises was written whole, also when its sync was not.
        let record: Vec<f32> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
        let width = fixed.len();
        for (i, found) in record.iter().enumerate() {
            let (step, element) = (i / width, i % width);
            assert_eq!(*found, value(step as u64, element as u64), "turn {turn}, record {step}");
        }
    }
    println!("{in_the_middle} of 20 ranks were killed in the middle of a write");
    assert!(in_the_middle > 0);
}

/// `./test soak` kills more often.
fn kills() -> u64 {
    std::env::var("ESKER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

#[test]
fn a_killed_rank_leaves_a_container_with_what_was_synced() {
    if !Mpi::mpich().is_here() {
        return;
    }
    let mut behind = 0;
    let kills = kills();
    let mut turn = 0;
    // A few kills may all come at quiet moments: then there are more, until one does not.
    while turn < kills || (behind == 0 && turn < 10 * kills) {
        let dir = tempfile::tempdir().unwrap();
        let files = if turn % 2 == 0 { "process" } else { "node" };
        let job = killed(&["endless-log", files], dir.path(), turn % 40);
        assert!(!job.end().succeeded());
        let synced = number_in(&dir.path().join("synced")).unwrap();
        let path = dir.path().join("run.esk");
        let report = check(&path, &CheckOptions::default(), &mut Unseen).unwrap();
        assert_eq!(report.verdict(), Verdict::Valid, "turn {turn}: {report:?}");
        let whole = |ds: &Dataset, what: &str| {
            let record: Vec<f32> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
            let width = record.len() / ds.numrecs().max(1) as usize;
            for (i, found) in record.iter().enumerate() {
                let (step, element) = ((i / width) as u64, (i % width) as u64);
                // What nobody promised may be there in part.
                let partly = step >= synced && (*found == -1.0 || *found > 9e36);
                let right = *found == value(step, element) || partly;
                assert!(right, "turn {turn}, {what}: {found} in record {step} of {synced}");
            }
        };
        let ds = Dataset::open(&path).unwrap();
        assert!(ds.numrecs() == synced || ds.numrecs() == synced + 3, "{}", ds.numrecs());
        whole(&ds, "as it was left");
        let store: Arc<dyn esker_store::Store> = Arc::new(esker_store::LocalStore);
        let recover = || {
            let options = esker::ContainerRecoverOptions::default();
            esker::recover_container(&store, &path, options, &mut |_, _| {}).unwrap()
        };
        let first = recover();
        behind += usize::from(first.made.is_some());
        assert!(first.faults.iter().all(|fault| !fault.committed), "turn {turn}: {first:?}");
        let second = recover();
        assert_eq!(second.made, None, "turn {turn}: {first:?}, then {second:?}");
        let ds = Dataset::open(&path).unwrap();
        assert!(ds.numrecs() >= synced);
        whole(&ds, "after recovery");
        // Somebody goes on.
        let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        let (record, records) = (ds.var("record").unwrap(), ds.numrecs());
        let width = ds.shape(record).unwrap()[1];
        let more: Vec<f32> = (0..width).map(|element| value(records, element)).collect();
        ds.append(record, &more).unwrap();
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.numrecs(), records + 1);
        whole(&ds, "after another writer");
        turn += 1;
    }
    println!("of {turn} containers {behind} had more in them than was committed");
    assert!(behind > 0);
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
            "\\\"oops\\\" is not key=value",
            "begin: 1024",
        ] {
            assert!(output.contains(words), "{words} is missing: {output}");
        }
    }
}
