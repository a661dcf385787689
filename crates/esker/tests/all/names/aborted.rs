//! What was aborted is gone, for good.

use std::path::Path;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Owner, Selection, Values,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

use super::*;

fn segments(store: &MemoryStore) -> Vec<String> {
    let inside = |path: &std::path::PathBuf| path.starts_with("/run/a.esk/segments");
    let names = store.list().into_iter().filter(inside);
    names.map(|path| path.file_name().unwrap().to_str().unwrap().to_string()).collect()
}

/// Ranks write, commit or not, write again and abort, with logs of their own and with shared ones.
#[test]
fn what_was_aborted_is_gone_for_good() {
    for (ranks, files) in [(1, "process"), (3, "process"), (3, "node")] {
        for commits in [false, true] {
            let store = MemoryStore::default();
            let all = shared(&store);
            define(&all).unwrap().close().unwrap();
            let before = segments(&store);
            let shared_store = all.clone();
            on_ranks(ranks, move |comm| {
                let mut hints = Hints::default();
                hints.set("esker_log_files", files);
                let options = OpenOptions::new().writable(true).store(shared_store.clone());
                let options = options.hints(hints).comm(comm.clone());
                let mut ds = Dataset::open_with(PATH, options).unwrap();
                let me = comm.rank() as u64;
                if commits {
                    ds.put_all(FIXED, &Selection::element(&[me]), &[me as i32]).unwrap();
                    ds.sync().unwrap();
                }
                ds.put_all(FIXED, &Selection::element(&[me + 3]), &[100]).unwrap();
                // Now it is in the files.
                assert_eq!(
                    ds.get_all::<i32>(FIXED, &Selection::element(&[me + 3])).unwrap(),
                    [100]
                );
                ds.put(RECORD, &Selection::element(&[7, me]), &[1]).unwrap();
                ds.abort().unwrap();
            });
            let what = format!("{ranks} ranks, {files}, commits {commits}");
            let mut expected = vec![FILL; X as usize];
            if commits {
                (0..ranks).for_each(|rank| expected[rank] = rank as i32);
            }
            let see = || {
                let ds = open(&all, "").unwrap();
                (fixed(&ds), ds.numrecs(), ds.container_version())
            };
            let version = if commits { 2 } else { 1 };
            assert_eq!(see(), (expected.clone(), 0, Some(version)), "{what}");
            for superseded in [false, true] {
                let recovery = recover(&all, superseded);
                assert!(recovery.is_clean(), "{what}: {recovery:?}");
                assert!(
                    recovery.superseded.is_empty() && recovery.torn.is_empty(),
                    "{what}: {recovery:?}"
                );
            }
            assert_eq!(see(), (expected.clone(), 0, Some(version)), "{what}");
            if !commits {
                assert_eq!(segments(&store), before, "{what}: nothing is left");
            }
            // Others go on, and everything can be removed.
            let mut ds = to_write(&all).unwrap();
            put(&mut ds, 5, 55).unwrap();
            ds.close().unwrap();
            expected[5] = 55;
            assert_eq!(see().0, expected, "{what}");
            esker::remove_dataset(&*all, Path::new(PATH)).unwrap();
        }
    }
}

/// Whatever call it dies at: what was committed is there; what was not is all there for a recovery, or nothing of it.
#[test]
fn an_abort_that_is_killed_at_any_call_has_happened_or_not() {
    for commits in [false, true] {
        let (mut gone, mut there) = (0, 0);
        // The process dies; and the power goes with it, with or without what was not synced.
        for power in [None, Some(true), Some(false)] {
            for at in 0.. {
                let store = MemoryStore::default();
                let all = shared(&store);
                let mut ds = define(&all).unwrap();
                ds.sync().unwrap();
                ds.close().unwrap();
                let mut ds = to_write(&all).unwrap();
                let mut before = vec![FILL; X as usize];
                if commits {
                    put(&mut ds, 0, 1).unwrap();
                    ds.sync().unwrap();
                    before[0] = 1;
                }
                drop(ds);
                // The calls are counted from here on.
                let faulty: Arc<dyn Store> =
                    Arc::new(FaultyStore::new(store.clone(), at, Fault::Kill));
                let aborted = (|| {
                    let mut ds = to_write(&faulty)?;
                    if commits {
                        put(&mut ds, 1, 2)?;
                        ds.sync()?;
                    }
                    put(&mut ds, 2, 3)?;
                    fixed_of(&ds)?;
                    ds.abort()
                })();
                if let Some(lucky) = power {
                    store.lose_power_but(|_| lucky);
                }
                let what = format!("killed at {at}, commits {commits}, power {power:?}");
                let seen = fixed(&open(&all, "").unwrap_or_else(|e| panic!("{what}: {e}")));
                let has = |values: &[i32], at: usize, value| values[at] == value;
                assert_eq!(seen[0], before[0], "{what}");
                assert!(has(&seen, 2, FILL), "{what}: {seen:?}");
                let note = segments(&store).iter().any(|name| name.ends_with(".aborted"));
                recover(&all, true);
                let ds = open(&all, "").unwrap_or_else(|e| panic!("{what}: {e}"));
                let after = fixed(&ds);
                assert_eq!(after[0], before[0], "{what}");
                match has(&after, 2, 3) {
                    true => {
                        assert!(aborted.is_err() && !note, "{what}: it came back");
                        there += 1;
                    }
                    false => {
                        assert_eq!(after[2], FILL, "{what}");
                        gone += 1;
                    }
                }
                if aborted.is_ok() {
                    assert_eq!(after[1], if commits { 2 } else { FILL }, "{what}");
                    break;
                }
            }
        }
        assert!(gone > 4 && there > 0, "{gone} {there}");
    }
}

fn fixed_of(ds: &Dataset) -> Result<Vec<i32>, esker::Error> {
    ds.get(FIXED, &Selection::all())
}

/// A version that its session had committed before it was aborted is lost later: its values are found all the same.
#[test]
fn what_an_aborted_session_had_committed_is_recovered_when_its_version_is_lost() {
    for files in ["process", "node"] {
        let store = MemoryStore::default();
        let all = shared(&store);
        define(&all).unwrap().close().unwrap();
        let mut hints = Hints::default();
        hints.set("esker_log_files", files);
        let options = OpenOptions::new().writable(true).store(all.clone()).hints(hints);
        let mut ds = Dataset::open_with(PATH, options).unwrap();
        for value in 1..=2 {
            put(&mut ds, value, value as i32).unwrap();
            ds.sync().unwrap();
        }
        put(&mut ds, 3, 3).unwrap();
        fixed(&ds);
        ds.abort().unwrap();
        damage(&store, &decision(3));
        let recovery = recover(&all, false);
        assert_eq!((recovery.found, recovery.is_loss()), (2, false), "{files}: {recovery:?}");
        assert_eq!(fixed(&open(&all, "").unwrap())[..4], [FILL, 1, 2, FILL], "{files}");
    }
}

#[test]
fn a_definition_that_is_aborted_gives_up_what_was_written_before_it() {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    put(&mut ds, 0, 1).unwrap();
    ds.sync().unwrap();
    put(&mut ds, 1, 2).unwrap();
    let mut def = ds.redef().unwrap();
    def.put_attr(Owner::Global, "title", Values::from("new")).unwrap();
    def.abort().unwrap();
    for _ in 0..2 {
        let ds = open(&all, "").unwrap();
        assert_eq!(fixed(&ds)[..2], [1, FILL]);
        assert!(ds.schema().attrs.get("title").is_none());
        let recovery = recover(&all, true);
        assert!(recovery.is_clean() && recovery.superseded.is_empty(), "{recovery:?}");
    }
}

#[test]
fn a_rank_that_fails_alone_makes_what_all_wrote_void() {
    for who in 0..3 {
        let store = MemoryStore::default();
        let all = shared(&store);
        define(&all).unwrap().close().unwrap();
        let shared_store = all.clone();
        on_ranks(3, move |comm| {
            let options = OpenOptions::new().writable(true).store(shared_store.clone());
            let mut ds = Dataset::open_with(PATH, options.comm(comm.clone())).unwrap();
            let me = comm.rank() as u64;
            ds.put_all(FIXED, &Selection::element(&[me]), &[9]).unwrap();
            ds.get_all::<i32>(FIXED, &Selection::all()).unwrap();
            match comm.rank() == who {
                true => ds.abandon().unwrap(),
                // As if it were killed.
                false => std::mem::forget(ds),
            }
        });
        let recovery = recover(&all, true);
        assert!(recovery.is_clean() && recovery.superseded.is_empty(), "{recovery:?}");
        assert_eq!(fixed(&open(&all, "").unwrap()), [FILL; X as usize]);
    }
}

/// A commit of which nobody has said whether it was made: an abort takes nothing of it away.
#[test]
fn an_abort_after_a_commit_in_doubt_takes_nothing_away_that_was_committed() {
    let mut doubts = 0;
    for at in 0..80 {
        let store = MemoryStore::default();
        let all = shared(&store);
        define(&all).unwrap().close().unwrap();
        let fault = Fault::Fail(std::io::ErrorKind::TimedOut);
        let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(store.clone(), at, fault));
        let Ok(mut ds) = to_write(&faulty) else { continue };
        if put(&mut ds, 0, 1).is_err() {
            continue;
        }
        let synced = ds.sync();
        doubts += usize::from(synced.is_err());
        let aborted = ds.abort();
        let seen = fixed(&open(&all, "").unwrap_or_else(|e| panic!("at {at}: {e}")));
        assert!(synced.is_err() || seen[0] == 1, "at {at}: it was promised");
        // What a reader sees stays.
        recover(&all, true);
        assert_eq!(fixed(&open(&all, "").unwrap())[0], seen[0], "at {at}: {aborted:?}");
    }
    assert!(doubts > 3, "{doubts}");
}

#[test]
fn other_datasets_are_closed_by_an_abort() {
    let store = shared(&MemoryStore::default());
    let mut def = Dataset::create("/a.nc", CreateOptions::new().store(store.clone())).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[1, 2]).unwrap();
    ds.abort().unwrap();
    let ds = Dataset::open_with("/a.nc", OpenOptions::new().store(store.clone())).unwrap();
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), [1, 2]);
    // A reader has nothing to give up.
    ds.abort().unwrap();
    define(&store).unwrap().close().unwrap();
    open(&store, "").unwrap().abort().unwrap();
}
