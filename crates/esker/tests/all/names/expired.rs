//! What has expired cannot be opened, and nothing else is touched.

use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, Keep, OpenOptions, VersionState};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};

use super::*;

pub(super) const LAST: Keep = Keep { last: 1, since: None, every: None };

pub(super) fn expire(store: &Arc<dyn Store>, keep: Keep) -> Vec<u64> {
    let expired = esker::expire(&**store, Path::new(PATH), keep, false).unwrap();
    assert_eq!(expired.number.is_some(), !expired.versions.is_empty());
    expired.versions.into_iter().flatten().collect()
}

/// Version 1 has the definitions, version n > 1 the value n at place 0 of `fixed`, and record n - 2 of `record`.
pub(super) fn container(versions: u64) -> MemoryStore {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    for version in 2..=versions {
        put(&mut ds, 0, version as i32).unwrap();
        let record = Selection::element(&[version - 2, 1]);
        ds.put(RECORD, &record, &[version as i32]).unwrap();
        ds.sync().unwrap();
    }
    ds.close().unwrap();
    store
}

fn open_ones(store: &Arc<dyn Store>) -> Vec<u64> {
    let open = versions(store).into_iter().filter(|one| one.state == VersionState::Open);
    let mut numbers: Vec<u64> = open.map(|one| one.number).collect();
    numbers.reverse();
    numbers
}

#[test]
fn an_expired_version_cannot_be_opened_and_the_others_stay_what_they_were() {
    let store = container(9);
    let all = shared(&store);
    assert_eq!(tag(&all, "paper", Some(4)).unwrap(), 4);
    let reader = open(&all, "3").unwrap();
    let dry = esker::expire(&*all, Path::new(PATH), Keep { last: 3, ..LAST }, true).unwrap();
    assert_eq!((dry.versions.clone(), dry.number), (vec![1..=3, 5..=6], None));
    assert_eq!(open_ones(&all).len(), 10, "a dry run changes nothing");
    assert_eq!(expire(&all, Keep { last: 3, ..LAST }), [1, 2, 3, 5, 6]);
    assert_eq!(
        open_ones(&all),
        [4, 7, 8, 9, 10, 11],
        "with the versions of the tag and of the expiry"
    );
    for version in [1, 2, 3, 5, 6] {
        let error = open(&all, &version.to_string()).unwrap_err().to_string();
        let said = format!("version {version} has expired, and cannot be opened any more");
        assert!(error.contains(&said), "{error}");
        let error = tag(&all, "late", Some(version)).unwrap_err().to_string();
        assert!(error.contains(&said), "{error}");
        let examined = esker::examine(&all, Path::new(PATH), Some(version), &mut |_, _| {});
        assert!(examined.unwrap_err().to_string().contains(&said));
    }
    for (reference, value) in [("4", 4), ("paper", 4), ("7", 7), ("9", 9), ("11", 9), ("", 9)] {
        assert_eq!(fixed(&open(&all, reference).unwrap())[0], value, "{reference}");
    }
    assert_eq!(fixed(&reader)[0], 3, "it was open before");
    // That it is gone is no loss.
    let examined = esker::examine(&all, Path::new(PATH), None, &mut |_, _| {}).unwrap();
    assert_eq!((examined.faults.len(), examined.lost_versions.len()), (0, 0));
    assert!(recover(&all, false).is_clean());
    store.remove(&decision(2)).unwrap();
    let examined = esker::examine(&all, Path::new(PATH), None, &mut |_, _| {}).unwrap();
    assert_eq!(examined.lost_versions, [], "what has expired is not missed");
}

#[test]
fn notes_do_not_push_versions_out_and_a_second_expiry_finds_nothing() {
    let store = container(6);
    let all = shared(&store);
    let keep = Keep { last: 2, ..LAST };
    assert_eq!(expire(&all, keep), [1, 2, 3, 4]);
    for name in ["a", "b", "c"] {
        tag(&all, name, Some(5)).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(expire(&all, keep), [0; 0]);
    }
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 0, 70).unwrap();
    ds.close().unwrap();
    assert_eq!(expire(&all, keep), [0; 0], "version 5 has a name");
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 0, 71).unwrap();
    ds.close().unwrap();
    // Version 6, and the notes behind it, whose values are its.
    assert_eq!(expire(&all, keep), [6, 7, 8, 9, 10]);
}

#[test]
fn versions_are_kept_by_time_and_by_number() {
    let store = container(10);
    let all = shared(&store);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = now.as_secs() as i64;
    // All of them were made just now.
    assert_eq!(expire(&all, Keep { since: Some(now - 86_400), ..LAST }), [0; 0]);
    let later = Keep { since: Some(now + 86_400), every: Some(3), ..LAST };
    assert_eq!(expire(&all, later), [1, 2, 4, 5, 7, 8]);
    assert_eq!(open_ones(&all), [3, 6, 9, 10, 11]);
}

#[test]
fn a_writer_goes_on_behind_an_expiry_and_is_told_if_it_cannot() {
    let store = container(5);
    let all = shared(&store);
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 1, 20).unwrap();
    assert_eq!(expire(&all, LAST), [1, 2, 3, 4]);
    ds.sync().unwrap();
    put(&mut ds, 2, 30).unwrap();
    let mut other = to_write(&all).unwrap();
    for value in 0..2 {
        put(&mut other, 3, value).unwrap();
        other.sync().unwrap();
    }
    other.close().unwrap();
    assert_eq!(expire(&all, LAST).last(), Some(&8));
    let error = ds.sync().unwrap_err().to_string();
    assert!(error.contains("has expired, so that nobody can tell"), "{error}");
    drop(ds);
    assert_eq!(fixed(&open(&all, "").unwrap())[..4], [5, 20, FILL, 1]);
}

#[test]
fn an_expiry_that_stops_at_any_call_has_happened_or_not() {
    let begin = container(5);
    for fault in [Fault::Kill, Fault::Tear, Fault::Fail(std::io::ErrorKind::StorageFull)] {
        for power in [false, true] {
            for at in 0.. {
                let store = begin.fork();
                let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(store.clone(), at, fault));
                let told = esker::expire(&*faulty, Path::new(PATH), LAST, false);
                if power {
                    store.lose_power();
                }
                let all = shared(&store);
                let what = format!("{fault:?} at {at}, power {power}");
                let ds = open(&all, "").unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(fixed(&ds)[0], 5, "{what}");
                let left = open_ones(&all);
                assert!(left == [1, 2, 3, 4, 5] || left == [5, 6], "{what}: {left:?}");
                if told.is_ok() {
                    assert_eq!(left, [5, 6], "{what}");
                    break;
                }
                expire(&all, LAST);
                assert_eq!(open_ones(&all), [5, 6], "{what}");
            }
        }
    }
}

#[test]
fn expiry_survives_a_recovery() {
    let store = container(5);
    let all = shared(&store);
    expire(&all, LAST);
    let mut ds =
        Dataset::open_with(PATH, OpenOptions::new().writable(true).store(all.clone())).unwrap();
    put(&mut ds, 0, 7).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    damage(&store, &decision(7));
    assert_eq!(recover(&all, false).made, Some(8));
    assert_eq!(open_ones(&all), [5, 6, 8]);
    assert!(open(&all, "3").unwrap_err().to_string().contains("version 3 has expired"));
    assert_eq!(fixed(&open(&all, "").unwrap())[0], 7);
}
