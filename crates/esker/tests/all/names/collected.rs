//! A collection removes what no version needs that can be opened, and nothing else, wherever it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Collection, Dataset, GcOptions, Keep, OpenOptions, VersionState};
use esker_format::history::Branch;
use esker_history::History;
use esker_store::{Fault, FaultyStore, FolderSegments, MemoryStore, Store};
use esker_testkit::random::Random;
use esker_testkit::ranks::on_ranks;

use super::expired::{LAST, container, expire};
use super::*;

fn gc(store: &Arc<dyn Store>, options: &GcOptions) -> Collection {
    esker::gc(&**store, Path::new(PATH), options).unwrap()
}

fn idle() -> GcOptions {
    GcOptions { all_idle: true, ..GcOptions::default() }
}

/// The names of files in a folder of the container.
fn names(store: &MemoryStore, folder: &str) -> BTreeSet<String> {
    let folder = Path::new(PATH).join(folder);
    let inside = store.list().into_iter().filter(|path| path.parent() == Some(&folder));
    inside.map(|path| path.file_name().unwrap().to_str().unwrap().to_string()).collect()
}

/// The versions that can be opened, and every value of each.
fn state(store: &Arc<dyn Store>, what: &str) -> BTreeMap<u64, Vec<i32>> {
    let open_ones = versions(store).into_iter().filter(|one| one.state == VersionState::Open);
    let see = |number: u64| {
        let ds = open(store, &number.to_string()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut all = fixed(&ds);
        let records: Vec<i32> = ds
            .get(RECORD, &Selection::all())
            .unwrap_or_else(|e| panic!("{what}, version {number}: {e}"));
        all.extend(records);
        (number, all)
    };
    open_ones.map(|one| see(one.number)).collect()
}

/// The runs that versions have which can be opened, by their decisions.
fn runs_needed(store: &Arc<dyn Store>) -> BTreeSet<String> {
    let segments =
        FolderSegments::new(store.clone(), Path::new(PATH), Path::new("/run/a.esk/esker.json"));
    let history = History::new(Arc::new(segments), 7);
    let mut needed = BTreeSet::new();
    for one in versions(store).into_iter().filter(|one| one.state == VersionState::Open) {
        let decision = history.decision(&Branch::main(), one.number).unwrap().unwrap();
        let levels = &decision.commit().unwrap().levels;
        needed.extend(levels.iter().map(|level| format!("{:08}-{}", level.made, level.id)));
    }
    needed
}

#[test]
fn runs_of_expired_versions_go_and_readers_of_others_notice_nothing() {
    let store = container(200);
    let all = shared(&store);
    tag(&all, "forty", Some(40)).unwrap();
    expire(&all, Keep { last: 3, every: Some(100), ..LAST });
    let before = state(&all, "before");
    let numbers: Vec<u64> = before.keys().copied().collect();
    assert_eq!(numbers, [40, 100, 198, 199, 200, 201, 202]);
    let reader = open(&all, "100").unwrap();
    let there = names(&store, "runs");
    let dry = gc(&all, &GcOptions { dry_run: true, ..GcOptions::default() });
    assert_eq!(names(&store, "runs"), there, "a dry run removes nothing");
    let collected = gc(&all, &GcOptions::default());
    assert_eq!((collected.files.clone(), collected.bytes), (dry.files, dry.bytes));
    assert!(collected.files.len() > 3 && collected.bytes > 1000, "{collected:?}");
    assert_eq!((collected.number, collected.left.len()), (None, 0), "nobody is given up");
    assert_eq!(names(&store, "runs"), runs_needed(&all));
    assert_eq!(state(&all, "after"), before);
    assert_eq!(fixed(&reader)[0], 100, "it looks things up as it needs them");
    assert_eq!(gc(&all, &idle()).files, [] as [PathBuf; 0], "there is nothing more");
    let examined = esker::examine(&all, Path::new(PATH), None, &mut |_, _| {}).unwrap();
    assert_eq!((examined.faults.len(), examined.lost_versions.len()), (0, 0));
    assert!(recover(&all, true).is_clean());
    // And a writer goes on.
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 1, 5).unwrap();
    ds.close().unwrap();
    assert_eq!(fixed(&open(&all, "").unwrap())[..2], [200, 5]);
}

#[test]
fn a_writer_that_is_given_up_is_told_on_every_rank_and_what_it_wrote_is_gone() {
    for ranks in [1, 3] {
        let store = container(3);
        let all = shared(&store);
        let inner = all.clone();
        on_ranks(ranks, move |comm| {
            let options = OpenOptions::new().writable(true).store(inner.clone()).comm(comm.clone());
            let mut ds = Dataset::open_with(PATH, options).unwrap();
            let mine = Selection::element(&[comm.rank() as u64 + 1]);
            ds.put_all(FIXED, &mine, &[7]).unwrap();
            // What is read is in the files.
            assert_eq!(ds.get_all::<i32>(FIXED, &mine).unwrap(), [7]);
            comm.barrier().unwrap();
            if comm.rank() == 0 {
                let collected = gc(&inner, &GcOptions::default());
                let [left] = &collected.left[..] else { panic!("{collected:?}") };
                assert!(left.bytes >= 4 * ranks as u64);
                assert_eq!((collected.files.len(), collected.number), (0, None), "it may be alive");
                let abandoned = vec![left.session.clone()];
                let options = GcOptions { abandoned, ..GcOptions::default() };
                let collected = gc(&inner, &options);
                assert_eq!(collected.given_up, options.abandoned);
                assert_eq!((collected.files.len(), collected.number), (2 * ranks, Some(4)));
            }
            comm.barrier().unwrap();
            let error = ds.sync().unwrap_err().to_string();
            // Rank 0 has the sentence; the others know that it failed there.
            assert!(comm.rank() > 0 || error.contains("given up by a collection"), "{error}");
            ds.sync().expect_err("and it stays so");
        });
        assert_eq!(names(&store, "segments").len(), 2, "those of the session that was committed");
        assert_eq!(fixed(&open(&all, "").unwrap()), [3, FILL, FILL, FILL, FILL, FILL]);
        assert!(recover(&all, true).is_clean(), "nothing of it comes back");
        let error = esker::gc(
            &*all,
            Path::new(PATH),
            &GcOptions { abandoned: vec!["7-00".to_string()], ..GcOptions::default() },
        );
        assert!(error.unwrap_err().to_string().contains("there are no logs of a session"));
    }
}

#[test]
fn what_a_recovery_has_replaced_goes_when_the_versions_before_it_have_expired() {
    let store = container(4);
    let all = shared(&store);
    let meta = names(&store, "segments").into_iter().find(|name| name.ends_with(".meta")).unwrap();
    let path = Path::new(PATH).join("segments").join(&meta);
    damage(&store, &path);
    let recovery = recover(&all, false);
    assert!(recovery.made.is_some(), "{recovery:?}");
    let rewritten = names(&store, "segments");
    assert_eq!(rewritten.len(), 3, "{rewritten:?}");
    assert_eq!(gc(&all, &idle()).files, [] as [PathBuf; 0], "versions before it have it");
    expire(&all, LAST);
    let values = fixed(&open(&all, "").unwrap());
    let collected = gc(&all, &GcOptions::default());
    assert!(collected.files.contains(&Path::new("segments").join(&meta)), "{collected:?}");
    assert_eq!(names(&store, "segments").len(), 2);
    assert_eq!(fixed(&open(&all, "").unwrap()), values);
}

#[test]
fn a_dataset_that_was_replaced_leaves_nothing_behind() {
    let store = container(40);
    let all = shared(&store);
    // It was killed before it could remove the files of the old one.
    let old = store.fork();
    let mut ds = define(&all).unwrap();
    put(&mut ds, 0, 1).unwrap();
    ds.close().unwrap();
    for folder in ["runs", "segments"] {
        for name in names(&old, folder) {
            let path = Path::new(PATH).join(folder).join(name);
            let file = store.create(&path, esker_store::CreateMode::New).unwrap();
            file.write_at(0, &old.bytes(&path).unwrap()).unwrap();
        }
    }
    let before = state(&all, "before");
    let collected = gc(&all, &idle());
    assert!(collected.files.len() > 4, "{collected:?}");
    let mut after = state(&all, "after");
    assert_eq!(after.remove(&collected.number.unwrap()), before.get(&42).cloned(), "the fence");
    assert_eq!(after, before);
    assert_eq!((names(&store, "runs"), names(&store, "segments").len()), (runs_needed(&all), 2));
}

#[test]
fn logs_of_a_version_that_is_lost_stay_for_a_recovery() {
    let store = container(2);
    let all = shared(&store);
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 3, 33).unwrap();
    ds.close().unwrap();
    store.remove(&decision(3)).unwrap();
    let before = names(&store, "segments");
    let collected = gc(&all, &idle());
    assert!(
        collected.notes[0].contains("version 3 was committed, and is not there"),
        "{collected:?}"
    );
    assert_eq!((collected.files.len(), names(&store, "segments")), (0, before));
    assert_eq!(recover(&all, false).made, Some(4));
    assert_eq!(fixed(&open(&all, "").unwrap())[3], 33);
    assert!(gc(&all, &idle()).notes.is_empty());
    assert_eq!(fixed(&open(&all, "").unwrap())[3], 33);
}

/// Sessions that committed, that were killed, that aborted; drafts; runs of versions that have expired.
fn littered() -> MemoryStore {
    let store = container(30);
    let all = shared(&store);
    for i in 0..2 {
        let mut ds = to_write(&all).unwrap();
        put(&mut ds, 1, i).unwrap();
        assert_eq!(fixed(&ds)[1], i);
        std::mem::forget(ds);
    }
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 2, 5).unwrap();
    ds.sync().unwrap();
    put(&mut ds, 2, 6).unwrap();
    ds.abort().unwrap();
    let draft = Path::new(PATH).join("refs/main/draft-00000000000000ff");
    store.create(&draft, esker_store::CreateMode::New).unwrap().write_at(0, b"half").unwrap();
    tag(&all, "ten", Some(10)).unwrap();
    expire(&all, Keep { last: 2, ..LAST });
    store
}

#[test]
fn a_collection_that_stops_at_any_call_leaves_every_version_and_the_next_one_goes_on() {
    let begin = littered();
    let before = state(&shared(&begin), "before");
    assert_eq!(before.len(), 5, "{before:?}");
    let mut stops = 0;
    for fault in [Fault::Kill, Fault::Tear, Fault::Fail(std::io::ErrorKind::PermissionDenied)] {
        for power in [false, true] {
            for at in 0.. {
                let store = begin.fork();
                let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(store.clone(), at, fault));
                let told = esker::gc(&*faulty, Path::new(PATH), &idle());
                if power {
                    store.lose_power();
                }
                let all = shared(&store);
                let what = format!("{fault:?} at {at}, power {power}");
                let mut after = state(&all, &what);
                after.retain(|number, _| before.contains_key(number));
                assert_eq!(after, before, "{what}");
                let ds = open(&all, "").unwrap();
                assert_eq!(
                    (ds.notes().len(), fixed(&ds)),
                    (0, before[&31][..6].to_vec()),
                    "{what}"
                );
                let examined = esker::examine(&all, Path::new(PATH), None, &mut |_, _| {}).unwrap();
                assert_eq!((examined.faults.len(), examined.lost_versions.len()), (0, 0), "{what}");
                // A recovery finds nothing that a collection has touched.
                let recovery = recover(&shared(&store.fork()), false);
                assert_eq!(recovery.faults, [], "{what}");
                gc(&all, &idle());
                assert_eq!(names(&store, "runs"), runs_needed(&all), "{what}");
                let left = names(&store, "segments");
                let notes = left.iter().filter(|name| name.ends_with(".aborted")).count();
                assert_eq!((left.len(), notes), (5, 1), "{what}: {left:?}");
                assert!(!names(&store, "refs/main").iter().any(|name| name.starts_with("draft")));
                stops += 1;
                if told.is_ok() {
                    break;
                }
            }
        }
    }
    assert!(stops > 60, "{stops}");
}

/// Writers, kills, aborts, names, expiry and collections, compared with what each version had.
#[test]
fn random_histories_keep_every_version_that_can_be_opened_and_nothing_else() {
    let turns = std::env::var("ESKER_COLLECTIONS").map_or(25, |n| n.parse().unwrap());
    let mut removed = 0;
    for turn in 0..turns {
        let mut dice = Random(turn);
        let store = container(2);
        let all = shared(&store);
        let mut known = state(&all, "the beginning");
        // Sessions that live; whether they have committed.
        let mut writers: Vec<Dataset> = Vec::new();
        for step in 0..60 {
            let what = format!("turn {turn}, step {step}");
            match dice.below(12) {
                0..=5 => {
                    let mut ds = match dice.below(2) {
                        0 if !writers.is_empty() => writers.swap_remove(dice.below(writers.len())),
                        _ => to_write(&all).unwrap(),
                    };
                    for _ in 0..1 + dice.below(3) {
                        let (record, x) = (dice.below_u64(40), dice.below_u64(X));
                        ds.put(RECORD, &Selection::element(&[record, x]), &[step]).unwrap();
                        put(&mut ds, x, 100 + step).unwrap();
                    }
                    match dice.below(6) {
                        0 => std::mem::forget(ds),
                        1 => ds.abort().unwrap(),
                        2 => drop(ds.close()),
                        // What others have written or given up meanwhile may be in its way.
                        _ => match ds.sync() {
                            Ok(()) => writers.push(ds),
                            Err(_) => ds.abort().unwrap(),
                        },
                    }
                }
                6 => {
                    let mut numbers: Vec<u64> = known.keys().copied().collect();
                    numbers.sort_unstable();
                    let _ = tag(&all, &format!("t{step}"), Some(dice.pick(&numbers)));
                }
                7 | 8 => {
                    let every = dice.chance(20).then(|| 2 + dice.below_u64(5));
                    let keep = Keep { last: 1 + dice.below_u64(6), since: None, every };
                    let gone = expire(&all, keep);
                    known.retain(|number, _| !gone.contains(number));
                }
                9 => removed += gc(&all, &GcOptions::default()).files.len(),
                10 => removed += gc(&all, &idle()).files.len(),
                _ => {
                    // Everybody goes, and then there is nothing but what versions need.
                    writers.drain(..).for_each(|ds| drop(ds.close()));
                    removed += gc(&all, &idle()).files.len();
                    assert_eq!(names(&store, "runs"), runs_needed(&all), "{what}");
                    let collected = gc(&all, &idle());
                    assert_eq!((collected.files.len(), collected.number), (0, None), "{what}");
                }
            }
            let now = state(&all, &what);
            for (number, values) in &known {
                assert_eq!(now.get(number), Some(values), "{what}, version {number}");
            }
            known = now;
        }
        assert!(recover(&all, false).faults.is_empty());
    }
    assert!(removed > 3 * turns as usize, "{removed}");
}
