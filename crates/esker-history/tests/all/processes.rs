//! Processes that commit to one folder and are killed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_format::log::Records;
use esker_history::*;
use esker_store::{FolderSegments, LocalStore, Store, random};

const FOLDER: &str = "ESKER_HISTORY_FOLDER";

fn history(folder: &Path) -> History {
    let store = LocalStore.enclosed(folder).unwrap();
    let segments = FolderSegments::new(store, folder, &folder.join("mark"));
    History::new(Arc::new(segments), random())
}

fn item(object: u64, record: u64) -> Item {
    let data = Data { object, records: Records::one(record), first: 0, end: 8 };
    Item::data(data, record.to_le_bytes().to_vec())
}

/// What a process does that another test starts: it commits until it is killed, and writes down what it was told.
#[test]
fn a_process_that_commits() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let history = history(folder);
    let mut told = OpenOptions::new().append(true).open(folder.join("told")).unwrap();
    let main = Branch::main();
    let mut base = history.newest(&main).unwrap();
    // Should whoever started it be gone, it ends by itself.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1800) {
        let token = random() >> 1;
        // Now and then many items, so that there are runs.
        let many = if token.is_multiple_of(8) { 300 } else { 1 };
        let mut items = vec![item(1, token)];
        items.extend((1..many).map(|i| item(2, token ^ i)));
        let attempt = Attempt::new(main.clone(), base).items(items).message("a step");
        base = history.commit(attempt, &mut Strict::default()).unwrap();
        // One write of less than a page: whole lines, whoever is killed.
        told.write_all(format!("{base} {token}\n").as_bytes()).unwrap();
    }
}

/// A process that commits; killed when it goes out of use, also if the test fails.
struct Writer(Child);

impl Writer {
    fn start(folder: &Path) -> Writer {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", "processes::a_process_that_commits"]).env(FOLDER, folder);
        Writer(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SIGKILL; one that has ended already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_killed_process_was_told_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["mark", "told"] {
        fs::write(folder.join(name), b"").unwrap();
    }
    let kills: usize = std::env::var("ESKER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut writers: Vec<Writer> = (0..3).map(|_| Writer::start(folder)).collect();
    let lines = || fs::read_to_string(folder.join("told")).unwrap().lines().count();
    for kill in 0..kills {
        // Not before something was committed since the last one: a kill must hit somebody at work.
        let (before, begin) = (lines(), Instant::now());
        while lines() < before + 3 {
            assert!(begin.elapsed() < Duration::from_secs(120), "nobody commits any more");
            std::thread::sleep(Duration::from_millis(random() % 7));
        }
        let i = kill % writers.len();
        writers[i] = Writer::start(folder);
    }
    drop(writers);
    let told = fs::read_to_string(folder.join("told")).unwrap();
    let told: Vec<(u64, u64)> = told
        .lines()
        .map(|line| {
            let (number, token) = line.split_once(' ').unwrap();
            (number.parse().unwrap(), token.parse().unwrap())
        })
        .collect();
    let history = history(folder);
    let last = history.last(&Branch::main()).unwrap();
    let mut there = BTreeMap::new();
    let take = |item: &Item| {
        let Key::Data(data) = &item.key else { return };
        let before = there.insert(data.records.first, item.number);
        assert_eq!(before, None, "a commit is there twice");
    };
    last.data(1, 0..u64::MAX, 0..8, take).unwrap();
    for (number, token) in &told {
        assert_eq!(there.get(token), Some(number), "of {} that were told", told.len());
    }
    assert!(told.len() >= kills * 3 && there.len() >= told.len());
    // What was told last may lack its line, and nothing else does.
    assert!(
        there.len() <= told.len() + kills + 3,
        "{} are there, {} were told",
        there.len(),
        told.len()
    );
    // Garbage of the dead goes, and nothing that is needed.
    let collected = history.collect(&mut |_| true, false, 0).unwrap();
    let after = history.last(&Branch::main()).unwrap();
    let mut count = 0;
    after.data(1, 0..u64::MAX, 0..8, |_| count += 1).unwrap();
    assert_eq!(count, there.len(), "after {collected:?}");
}
