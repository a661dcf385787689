//! Ranks of MPI jobs are killed, and what they leave is what was promised.
//!
//! A kill that comes at a quiet moment shows nothing: each test says what a hit is, and kills until
//! enough have hit, a bounded number of times. `ESKER_KILLS` kills more often.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use esker::{Dataset, OpenOptions, RecoverOptions, Selection};
use esker_testkit::mpi::Mpi;
use esker_testkit::ranks::HANG;
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Report, Verdict, check};

use crate::mpi::{PROGRAM, burst_buffer};

/// What a rank writes to an element of a record (`endless` in the program).
fn value(step: u64, element: u64) -> f32 {
    ((step * 31 + element) % 10_007) as f32
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

fn checked(path: &Path) -> Report {
    check(path, &CheckOptions::default(), &mut Unseen).unwrap()
}

/// What the program left in a folder: what it promised, and whose turn it was.
struct Left<'d> {
    dir: &'d Path,
    turn: u64,
    synced: u64,
}

impl Left<'_> {
    /// Whether there is anything beside the dataset and what the program told.
    fn has_drafts(&self) -> bool {
        let names = fs::read_dir(self.dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names = names.map(|name| name.into_string().unwrap());
        names.any(|name| name.starts_with('.'))
    }
}

/// How many kills have to hit something; as often as this is tried at least, and ten times as often
/// at most.
const HITS: u64 = 2;

fn kills() -> u64 {
    std::env::var("ESKER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// Kills ranks until enough kills have hit something. `run` starts 4 ranks in a folder and gives its
/// outcome when one of them has died; `hit` judges what is left and says whether the kill came at a moment of
/// interest.
fn kill_until_hit(what: &str, run: impl Fn(&Path, u64), mut hit: impl FnMut(&Left<'_>) -> bool) {
    let (kills, mut turn, mut hits) = (kills(), 0, 0);
    while turn < kills || (hits < HITS && turn < 10 * kills) {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), turn);
        let synced = number_in(&dir.path().join("synced")).unwrap();
        hits += u64::from(hit(&Left { dir: dir.path(), turn, synced }));
        turn += 1;
    }
    println!("{hits} of {turn} kills: {what}");
    assert!(hits >= HITS, "only {hits} of {turn} kills: {what}");
}

/// Starts 4 ranks that go on for ever and kills one of them after some steps, at another moment each time,
/// with each MPI in turn.
fn killed_from_outside(words: &[&str], dir: &Path, turn: u64, hints: Option<&str>) {
    let all = Mpi::here();
    // OpenMPI takes longer to start, and to notice.
    let mpi = if turn % 4 == 3 { all.last() } else { all.first() };
    let mpi = mpi.unwrap().clone();
    let mpi = hints.iter().fold(mpi, |mpi, hints| mpi.with("PNETCDF_HINTS", hints));
    let first = [PROGRAM, words[0], dir.to_str().unwrap()];
    let words: Vec<&str> = first.into_iter().chain(words[1..].iter().copied()).collect();
    let mut job = mpi.start(&[(4, &words)]);
    job.wait_for(|| number_in(&dir.join("synced")).filter(|synced| *synced > turn % 3));
    sleep(Duration::from_micros(turn % 40 * 1700));
    let victim = number_in(&dir.join(format!("pid.{}", turn % 4))).unwrap();
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(!job.end().succeeded());
    // A launcher may end before the last of its ranks, who still has the file's lock then.
    for rank in 0..4 {
        let process = number_in(&dir.join(format!("pid.{rank}"))).unwrap();
        let start = Instant::now();
        while is_running(process) {
            assert!(start.elapsed() < HANG, "rank {rank}, process {process}, does not end");
            sleep(Duration::from_millis(2));
        }
    }
}

/// Whether a process has not ended. One that nobody has asked for its outcome has.
fn is_running(process: u64) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, which may have anything in it, is in brackets.
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_killed_rank_leaves_every_chunk_old_or_new() {
    if !Mpi::mpich().is_here() {
        return;
    }
    // Each rank dies before each of its writes of a step: those of chunks, and then those of table
    // entries, before which other ranks have written theirs.
    let run = |dir: &Path, turn: u64| {
        let files = if turn.is_multiple_of(2) { "inside" } else { "rank" };
        let numbers = [turn % 4, turn * 7 % 11].map(|number| number.to_string());
        let place = dir.to_str().unwrap();
        let words = [PROGRAM, "endless-chunks", place, files, &numbers[0], &numbers[1]];
        assert!(!Mpi::mpich().run(4, &words).succeeded());
    };
    kill_until_hit("between two states", run, |left| {
        let (turn, synced) = (left.turn, left.synced);
        let path = left.dir.join("run.nc");
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
        let mixed = found.contains(&synced) && found.contains(&(synced - 1));
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
        mixed
    });
}

#[test]
fn recover_finishes_the_file_of_a_rank_that_was_killed() {
    if Mpi::here().is_empty() {
        return;
    }
    let run = |dir: &Path, turn: u64| {
        let more = if turn.is_multiple_of(2) { "" } else { ";nc_burst_buf_shared_logs=enable" };
        killed_from_outside(&["endless"], dir, turn, Some(&burst_buffer(dir, more)));
    };
    kill_until_hit("with something to be replayed", run, |left| {
        let path = left.dir.join("run.nc");
        let options = RecoverOptions::new().dir(left.dir.join("bb"));
        let recovery = esker::recover(&path, &options.clone().keep(true)).unwrap();
        assert!(recovery.is_complete(), "{recovery:?}");
        let bytes = fs::read(&path).unwrap();
        assert!(esker::recover(&path, &options).unwrap().removed);
        assert!(bytes == fs::read(&path).unwrap(), "the second recovery made another file");
        assert_eq!(checked(&path).verdict(), Verdict::Valid, "{:?}", checked(&path));
        let ds = Dataset::open(&path).unwrap();
        assert!(ds.numrecs() >= left.synced, "{} of {}", ds.numrecs(), left.synced);
        // Of what was not promised, a part may not have been written out.
        has_records(&ds, left, |step, found| step >= left.synced && found > 1e30);
        recovery.entries > 0
    });
}

/// A file of `endless`: the fixed variable is whole, and so is every record, but for values that are excused.
fn has_records(ds: &Dataset, left: &Left<'_>, excused: impl Fn(u64, f32) -> bool) {
    let fixed: Vec<i32> = ds.get(ds.var("fixed").unwrap(), &Selection::all()).unwrap();
    assert!(fixed.iter().enumerate().all(|(i, v)| *v == i as i32 % 4));
    records_are_right(ds, left, "as it was left", excused);
}

fn records_are_right(
    ds: &Dataset,
    left: &Left<'_>,
    what: &str,
    excused: impl Fn(u64, f32) -> bool,
) {
    let record: Vec<f32> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
    let width = record.len() / ds.numrecs().max(1) as usize;
    for (i, found) in record.iter().enumerate() {
        let (step, element) = ((i / width) as u64, (i % width) as u64);
        let right = *found == value(step, element) || excused(step, *found);
        assert!(right, "turn {}, {what}: {found} in record {step} of {}", left.turn, left.synced);
    }
}

/// The attribute `step` of a dataset: the step that was told, or the one after it.
fn step_of(ds: &Dataset, left: &Left<'_>) -> u64 {
    let step = ds.schema().attrs.get("step").unwrap().values.get_f64(0).unwrap() as u64;
    assert!(step == left.synced || step == left.synced + 1, "{step} after {}", left.synced);
    step
}

#[test]
fn a_rank_that_is_killed_in_a_redefinition_leaves_the_old_or_the_new_dataset() {
    if Mpi::here().is_empty() {
        return;
    }
    let run = |dir: &Path, turn| killed_from_outside(&["redefine"], dir, turn, None);
    kill_until_hit("while a new file was built", run, |left| {
        let unfinished = left.has_drafts();
        let path = left.dir.join("run.nc");
        let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        assert_eq!(ds.schema().vars.len() as u64, 1 + step_of(&ds, left));
        assert_eq!(ds.numrecs(), 2);
        records_are_right(&ds, left, "as it was left", |_, _| false);
        ds.close().unwrap();
        // What is left beside it is no harm, and all there is to find.
        assert_eq!(checked(&path).verdict(), Verdict::Valid, "{:?}", checked(&path));
        unfinished
    });
}

#[test]
fn a_rank_that_is_killed_while_sub_files_are_replaced_leaves_the_old_or_the_new_dataset() {
    if Mpi::here().is_empty() {
        return;
    }
    let run = |dir: &Path, turn| killed_from_outside(&["replace"], dir, turn, None);
    kill_until_hit("while a new dataset was built", run, |left| {
        let unfinished = left.has_drafts();
        let path = left.dir.join("run.nc");
        let recovery = esker::recover(&path, &RecoverOptions::new()).unwrap();
        assert!(recovery.is_complete(), "turn {}: {recovery:?}", left.turn);
        let ds = Dataset::open(&path).unwrap();
        let step = step_of(&ds, left);
        assert_eq!(ds.subfiles().len() as u64, 1 + step % 4);
        let found: Vec<i32> = ds.get(ds.var("v").unwrap(), &Selection::all()).unwrap();
        let fill = |v: i32| step > left.synced && v == -2_147_483_647;
        assert!(found.iter().all(|v| *v == step as i32 || fill(*v)), "turn {}", left.turn);
        assert_eq!(checked(&path).verdict(), Verdict::Valid, "{:?}", checked(&path));
        unfinished
    });
}

#[test]
fn a_killed_rank_leaves_what_was_synced() {
    if Mpi::here().is_empty() {
        return;
    }
    let run = |dir: &Path, turn| killed_from_outside(&["endless"], dir, turn, None);
    kill_until_hit("in the middle of a write", run, |left| {
        let path = left.dir.join("run.nc");
        // The bytes of a record that nobody promised yet are all that there may be to find.
        let report = checked(&path);
        assert!(report.findings.iter().all(|f| f.code == "trailing"), "{report:?}");
        let ds = Dataset::open(&path).unwrap();
        let synced = left.synced;
        assert!(ds.numrecs() == synced || ds.numrecs() == synced + 1, "{}", ds.numrecs());
        // A record that the header promises was written whole, also when its sync was not.
        has_records(&ds, left, |_, _| false);
        !report.findings.is_empty()
    });
}

#[test]
fn a_killed_rank_leaves_a_container_with_what_was_synced() {
    if Mpi::here().is_empty() {
        return;
    }
    let run = |dir: &Path, turn: u64| {
        let files = if turn.is_multiple_of(2) { "process" } else { "node" };
        killed_from_outside(&["endless-log", files], dir, turn, None);
    };
    kill_until_hit("with more in the container than was committed", run, |left| {
        let (turn, synced) = (left.turn, left.synced);
        let path = left.dir.join("run.esk");
        assert_eq!(checked(&path).verdict(), Verdict::Valid, "turn {turn}: {:?}", checked(&path));
        // What nobody promised may be there in part.
        let whole = |ds: &Dataset, what: &str| {
            let partly = |found: f32| found == -1.0 || found > 9e36;
            records_are_right(ds, left, what, |step, found| step >= synced && partly(found));
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
        first.made.is_some()
    });
}
