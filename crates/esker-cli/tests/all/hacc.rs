//! HACC's checkpoint, whose ranks are killed in the middle: what was committed stays, and the next run completes it.

use std::fs;
use std::path::Path;
use std::process::Command;

use esker_bench::kernels::{Kernel, Scale};
use esker_bench::plan_file;
use esker_testkit::mpi::Mpi;
use esker_testkit::random::Random;
use serde_json::Value;

const RANKS: usize = 3;
/// Definitions, and a transaction for each variable.
const VERSIONS: usize = 10;

/// Decisions that there are: versions, each made once.
fn versions(container: &Path) -> usize {
    let names = fs::read_dir(container.join("refs/main")).into_iter().flatten().flatten();
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    names.filter(|entry| entry.file_name().to_str().is_some_and(is_number)).count()
}

/// The processes that are ranks of the job which writes this container.
fn ranks_of(container: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_rank = |number: &u32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let path = container.as_os_str().as_encoded_bytes();
        words.first().is_some_and(|program| program.ends_with(b"/esker"))
            && words.contains(&&b"bench-worker"[..])
            && words.contains(&path)
    };
    numbers.filter(is_rank).collect()
}

/// What a job of the bench is started with.
fn words(plan: &Path, container: &Path, part: &str) -> Vec<String> {
    let paths = [plan, container].map(|path| path.display().to_string());
    let [plan, container] = paths;
    let program = env!("CARGO_BIN_EXE_esker");
    let words = [program, "bench-worker", "log", "mpi", &plan, &container, "nosync", "requests"];
    words.into_iter().chain([part]).map(String::from).collect()
}

fn measured(output: &str) -> Value {
    let at = output.find('{').unwrap_or_else(|| panic!("no measurement in {output:?}"));
    serde_json::from_str(&output[at..]).unwrap()
}

#[test]
fn hacc_is_killed_in_the_middle_started_again_and_completed() {
    let kills: usize = std::env::var("ESKER_KILLS").map_or(2, |text| text.parse().unwrap());
    let mut random = Random(17);
    let mut scale = Scale { bytes: Some(24 << 20), ..Scale::default() };
    for mpi in Mpi::here() {
        let folder = tempfile::tempdir().unwrap();
        let (plan, container) = (folder.path().join("plan"), folder.path().join("hacc.esk"));
        let (mut killed, mut in_the_middle) = (0, 0);
        for attempt in 0.. {
            assert!(attempt < 20 * kills + 20, "{}: {killed} kills", mpi.name);
            if attempt == 0 || versions(&container) == VERSIONS {
                // It was faster than we: once more, and longer.
                let _ = fs::remove_dir_all(&container);
                let hacc = Kernel::Hacc.plan(RANKS, &scale, None).unwrap();
                fs::write(&plan, plan_file::encode(&hacc)).unwrap();
                scale.bytes = scale.bytes.map(|bytes| (2 * bytes).min(256 << 20));
            }
            let words = words(&plan, &container, "rest");
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut job = mpi.start(&[(RANKS, &words)]);
            let before = versions(&container);
            let until = before + 1 + random.below(VERSIONS.saturating_sub(1 + before));
            let ranks = job.wait_for(|| {
                let ranks = ranks_of(&container);
                (ranks.len() == RANKS || versions(&container) >= until).then_some(ranks)
            });
            job.wait_for(|| (versions(&container) >= until.min(VERSIONS)).then_some(()));
            let one = ranks.get(random.below(RANKS));
            let found = one.filter(|_| versions(&container) < VERSIONS);
            if let Some(rank) = found {
                let status = Command::new("kill").args(["-9", &rank.to_string()]).status();
                killed += usize::from(status.unwrap().success());
            }
            let ended = job.end();
            let there = versions(&container);
            assert!(there >= until, "{}: {there} of {until} versions: {ended:?}", mpi.name);
            in_the_middle += usize::from(found.is_some() && there < VERSIONS);
            if in_the_middle >= kills {
                break;
            }
        }
        // The next run finishes it, and reads everything back; others read it on other numbers of ranks.
        let rest = words(&plan, &container, "rest");
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let ended = mpi.run(RANKS, &rest);
        assert!(ended.succeeded(), "{}: {}{}", mpi.name, ended.output, ended.errors);
        assert_eq!(measured(&ended.output)["wrong"], 0);
        assert_eq!(versions(&container), VERSIONS, "no transaction was committed twice");
        for readers in [1, 2, 5] {
            let read = words(&plan, &container, &format!("read-{readers}"));
            let read: Vec<&str> = read.iter().map(String::as_str).collect();
            let ended = mpi.run(readers, &read);
            assert!(ended.succeeded(), "{}: {}{}", mpi.name, ended.output, ended.errors);
            let measured = measured(&ended.output);
            assert_eq!(measured["wrong"], 0, "{readers} ranks");
            assert!(measured["read_bytes"].as_u64() > Some(20 << 20), "{measured}");
        }
    }
}

#[test]
fn a_committed_variable_with_other_values_than_its_checksum_is_not_completed() {
    let Some(mpi) = Mpi::here().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (plan, container) = (folder.path().join("plan"), folder.path().join("hacc.esk"));
    let scale = Scale { bytes: Some(1 << 20), ..Scale::default() };
    let hacc = Kernel::Hacc.plan(RANKS, &scale, None).unwrap();
    fs::write(&plan, plan_file::encode(&hacc)).unwrap();
    let words = words(&plan, &container, "rest");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(mpi.run(RANKS, &words).succeeded());
    assert_eq!(versions(&container), VERSIONS);
    let mut dataset =
        esker::Dataset::open_with(&container, esker::OpenOptions::new().writable(true)).unwrap();
    let id = dataset.var("id").unwrap();
    dataset.put(id, &esker::Selection::slab(&[5], &[1]), &[-1i64]).unwrap();
    dataset.close().unwrap();
    let ended = mpi.run(RANKS, &words);
    assert!(!ended.succeeded(), "{}", ended.output);
}
