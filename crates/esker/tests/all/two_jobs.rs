//! Two MPI jobs that know nothing of each other commit to one container, and are killed: what either was told is there.
//!
//! `ESKER_KILLS` kills more often.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, OpenOptions, Selection};
use esker_testkit::mpi::{Job, Mpi};
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Verdict, check};

use crate::mpi::PROGRAM;

const WIDTH: u64 = 500;
const NAMES: [&str; 2] = ["one", "two"];

/// What a rank writes to an element of a record (`many_steps` in the program).
fn value(step: u64, element: u64) -> f32 {
    ((step * 31 + element) % 10_007) as f32
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

/// A container with a variable for each job, and a folder for what each tells.
fn prepared(dir: &Path) -> PathBuf {
    let path = dir.join("run.esk");
    let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(WIDTH)).unwrap();
    for name in NAMES {
        def.add_var(name, ExternalType::Float, &[t, x]).unwrap();
        fs::create_dir(dir.join(name)).unwrap();
    }
    def.enddef().unwrap().close().unwrap();
    path
}

/// How many steps of each variable a dataset has: all values of these are right, and of later ones there is nothing.
fn steps(ds: &Dataset) -> [u64; 2] {
    NAMES.map(|name| {
        let var = ds.var(name).unwrap();
        let all: Vec<f32> = ds.get(var, &Selection::all()).unwrap();
        let mut steps = 0;
        for (step, record) in (0..).zip(all.chunks(WIDTH as usize)) {
            if record.iter().all(|found| *found > 9e36) {
                continue;
            }
            assert_eq!(step, steps, "{name}: a step is missing");
            let right = (0..).zip(record).all(|(element, found)| *found == value(step, element));
            assert!(right, "{name}, step {step}: {record:?}");
            steps += 1;
        }
        steps
    })
}

fn is_valid(path: &Path) {
    let report = check(path, &CheckOptions::default(), &mut Unseen).unwrap();
    assert_eq!(report.verdict(), Verdict::Valid, "{report:?}");
}

/// Starts both jobs; each for so many steps.
fn started(mpis: [&Mpi; 2], dir: &Path, path: &Path, steps: u64) -> [Job; 2] {
    let steps = steps.to_string();
    let folders = NAMES.map(|name| dir.join(name));
    let words = |i: usize| {
        let (container, folder) = (path.to_str().unwrap(), folders[i].to_str().unwrap());
        [PROGRAM, "steps", container, NAMES[i], folder, &steps]
    };
    let first = mpis[0].start(&[(3, &words(0))]);
    let second = mpis[1].start_beside(&first, &[(2, &words(1))]);
    [first, second]
}

#[test]
fn every_commit_of_two_jobs_is_there_once_and_in_order() {
    const STEPS: u64 = 8;
    let all = Mpi::here();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = prepared(dir.path());
    for job in started([first, last], dir.path(), &path, STEPS) {
        let ended = job.end();
        assert!(ended.succeeded(), "{ended:?}");
    }
    is_valid(&path);
    // A commit for each step: a version has one more than that before it, of one of the two.
    let newest = Dataset::open(&path).unwrap().container_version().unwrap();
    let mut before = [0, 0];
    let mut turns = 0;
    for version in 1..=newest {
        let options = OpenOptions::new().container_version(version);
        let now = steps(&Dataset::open_with(&path, options).unwrap());
        let grown = [now[0] - before[0], now[1] - before[1]];
        assert!(grown.iter().sum::<u64>() <= 1, "version {version}: {before:?}, then {now:?}");
        turns += grown.iter().sum::<u64>();
        before = now;
    }
    assert_eq!((before, turns), ([STEPS, STEPS], 2 * STEPS));
}

#[test]
fn a_job_that_is_killed_costs_the_other_nothing() {
    let all = Mpi::here();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
    let kills = std::env::var("ESKER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let mut together = 0;
    for turn in 0..kills {
        let dir = tempfile::tempdir().unwrap();
        let path = prepared(dir.path());
        let mpis = if turn % 4 == 3 { [last, first] } else { [first, first] };
        let [mut one, mut two] = started(mpis, dir.path(), &path, 0);
        let synced = |i: usize| number_in(&dir.path().join(NAMES[i]).join("synced")).unwrap_or(0);
        one.wait_for(|| (synced(0) > turn % 3).then_some(()));
        two.wait_for(|| (synced(1) > 0).then_some(()));
        sleep(Duration::from_micros(turn % 40 * 1700));
        let kill = |i: usize, rank: u64| {
            let place = dir.path().join(NAMES[i]).join(format!("pid.{rank}"));
            let victim = number_in(&place).unwrap().to_string();
            assert!(Command::new("kill").args(["-KILL", &victim]).status().unwrap().success());
        };
        kill(0, turn % 3);
        assert!(!one.end().succeeded());
        let [promised, other] = [0, 1].map(synced);
        // The other goes on.
        two.wait_for(|| (synced(1) >= other + 2).then_some(()));
        kill(1, turn % 2);
        assert!(!two.end().succeeded());
        let promised = [promised, synced(1)];
        is_valid(&path);
        let found = steps(&Dataset::open(&path).unwrap());
        for i in [0, 1] {
            // A step that was committed before its job could tell may be there.
            let there = promised[i]..=promised[i] + 1;
            assert!(there.contains(&found[i]), "turn {turn}: {found:?} of {promised:?}");
        }
        together += u64::from(found.iter().all(|steps| *steps > 1));
        // Somebody goes on behind both.
        let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        let var = ds.var(NAMES[0]).unwrap();
        let more: Vec<f32> = (0..WIDTH).map(|element| value(found[0], element)).collect();
        ds.put(var, &Selection::slab(&[found[0], 0], &[1, WIDTH]), &more).unwrap();
        ds.close().unwrap();
        assert_eq!(steps(&Dataset::open(&path).unwrap()), [found[0] + 1, found[1]]);
    }
    assert!(together > 0, "no kill came when both had committed twice");
}
