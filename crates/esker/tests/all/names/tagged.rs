//! Tags.

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, Layout, OpenOptions, Selection, Tag, VersionState};
use esker_format::history::Branch;
use esker_format::log::STRETCHES;
use esker_history::History;
use esker_store::{Fault, FaultyStore, FolderSegments, LocalStore, MemoryStore, Store};

use super::*;

fn tags(store: &Arc<dyn Store>) -> Vec<(String, u64)> {
    let tags = esker::tags(&**store, Path::new(PATH)).unwrap();
    tags.into_iter().map(|Tag { name, version }| (name, version)).collect()
}

/// Versions 1 to `last`, of which number n has n-1 in element 0; closed or synced.
fn container(last: u64, synced: bool) -> MemoryStore {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    for number in 2..=last {
        put(&mut ds, 0, number as i32 - 1).unwrap();
        match synced {
            true => ds.sync().unwrap(),
            false => {
                ds.close().unwrap();
                ds = to_write(&all).unwrap();
            }
        }
    }
    ds.close().unwrap();
    store
}

#[test]
fn a_tag_names_a_version_for_ever() {
    let store = shared(&container(4, true));
    assert_eq!(tag(&store, "v1", Some(2)).unwrap(), 2);
    assert_eq!(tag(&store, "newest", None).unwrap(), 4, "a tag's own version is passed over");
    assert_eq!(tag(&store, "v1", Some(2)).unwrap(), 2, "again");
    assert_eq!(tags(&store), [("newest".to_string(), 4), ("v1".to_string(), 2)]);
    for (name, number) in [("v1", 2), ("newest", 4)] {
        let ds = open(&store, name).unwrap();
        assert_eq!((ds.container_version(), fixed(&ds)[0]), (Some(number), number as i32 - 1));
    }
    // The tags' own versions have the values of the one before them.
    for number in [5, 6] {
        assert_eq!(fixed(&open(&store, &number.to_string()).unwrap())[0], 3);
    }
    assert_eq!(open(&store, "").unwrap().container_version(), Some(6));
    let error = tag(&store, "v1", Some(3)).unwrap_err().to_string();
    assert!(error.contains("version 2 is called \"v1\""), "{error}");
    for wrong in ["", "1st", "a b", "a/b", "-x", "main", &"x".repeat(65), "é"] {
        let error = tag(&store, wrong, None).unwrap_err().to_string();
        assert!(error.contains("cannot be the name of a tag"), "{wrong:?}: {error}");
    }
    assert!(tag(&store, "v9", Some(99)).unwrap_err().to_string().contains("no version 99"));
    for (asked, said) in [
        ("v2", "did you mean \"v1\""),
        ("NEWEST", "did you mean \"newest\""),
        ("other", "there is no tag of this name, its tags are newest, v1"),
        ("", "versions are numbers and tags"),
        ("a b", "versions are numbers and tags"),
    ] {
        let path = format!("{PATH}@{asked}");
        let open = Dataset::open_with(path, OpenOptions::new().store(store.clone()));
        let error = open.unwrap_err().to_string();
        assert!(error.contains(said), "{asked:?}: {error}");
    }
    let options = OpenOptions::new().writable(true).store(store.clone());
    let error = Dataset::open_with("/run/a.esk@v1", options).unwrap_err().to_string();
    assert!(error.contains("it can be read, not written"), "{error}");
    let error = esker::tag(&*store, Path::new(PATH), "x", None, "a\nb").unwrap_err().to_string();
    assert!(error.contains("control character"), "{error}");
}

/// How many stretches a version has.
fn stretches(store: &MemoryStore, number: u64) -> usize {
    let path = Path::new(PATH);
    let segments = FolderSegments::new(shared(store), path, &path.join("esker.json"));
    let history = History::new(Arc::new(segments), 0);
    let version = history.commit_of(&Branch::main(), number).unwrap().unwrap();
    version.facts(STRETCHES).unwrap().len()
}

#[test]
fn a_writer_goes_on_while_somebody_tags() {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    let mut expected = vec![FILL; X as usize];
    let mut number = 1;
    for step in 0..30u64 {
        let at = (step % X) as usize;
        put(&mut ds, at as u64, step as i32).unwrap();
        expected[at] = step as i32;
        if step % 3 == 0 {
            // Also of what is not the newest, and between a put and its commit.
            tag(&all, &format!("t{step}"), (step % 2 == 0).then_some(1)).unwrap();
            number += 1;
        }
        ds.sync().unwrap();
        number += 1;
        assert_eq!(ds.container_version(), Some(number), "step {step}");
        assert_eq!(fixed(&ds), expected, "the writer, step {step}");
        assert_eq!(fixed(&open(&all, "").unwrap()), expected, "a reader, step {step}");
        assert_eq!(stretches(&store, number), 1, "nothing of data came between, step {step}");
    }
    ds.close().unwrap();
    assert_eq!(tags(&all).len(), 10);
    assert!(recover(&all, true).is_clean());
}

#[test]
fn two_who_want_a_name_at_once_and_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = def.add_dim("x", esker::DimLen::Fixed(X)).unwrap();
    def.add_var("fixed", esker::ExternalType::Int, &[x]).unwrap();
    def.enddef().unwrap().close().unwrap();
    const EACH: u64 = 12;
    let given = std::thread::scope(|scope| {
        for who in 0..2u64 {
            let path = &path;
            scope.spawn(move || {
                let mut ds = Dataset::open_with(path, OpenOptions::new().writable(true)).unwrap();
                for step in 0..EACH {
                    ds.put(FIXED, &Selection::element(&[who]), &[step as i32]).unwrap();
                    ds.sync().unwrap();
                }
                ds.close().unwrap();
            });
        }
        // Both want all names, for versions of their own.
        let name = |who: u64| {
            let path = &path;
            move || {
                (0..EACH)
                    .filter(|i| {
                        esker::tag(&LocalStore, path, &format!("n{i}"), Some(who + 1), "").is_ok()
                    })
                    .count()
            }
        };
        // There is a version 2 for sure only when somebody has made it: wait for it by its name.
        while Dataset::open(&path).unwrap().container_version() < Some(2) {
            std::thread::yield_now();
        }
        let (one, two) = (scope.spawn(name(0)), scope.spawn(name(1)));
        one.join().unwrap() + two.join().unwrap()
    });
    let tags = esker::tags(&LocalStore, &path).unwrap();
    assert_eq!((given, tags.len()), (EACH as usize, EACH as usize), "each name has one owner");
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(fixed(&ds)[..2], [EACH as i32 - 1; 2]);
    // Each acknowledged commit is there once: the definitions, two writers, the names.
    let all = esker::versions(&LocalStore, &path, None).unwrap();
    let data = all.iter().filter(|one| one.gives.is_empty()).count() as u64;
    assert_eq!((data, all.len() as u64 - data), (1 + 2 * EACH, EACH));
    let bytes: u64 = all.iter().map(|one| one.new_bytes.unwrap()).sum();
    assert_eq!(bytes, 4 * 2 * EACH, "what came with versions is all that there is");
}

/// A tag promises what it names, also where that was only closed.
#[test]
fn a_tag_that_was_given_survives_a_loss_of_power_at_any_call() {
    let mut cuts = 0;
    for synced in [false, true] {
        for lucky in [false, true] {
            for at in 0.. {
                let store = container(3, synced);
                let faulty: Arc<dyn Store> =
                    Arc::new(FaultyStore::new(store.clone(), at, Fault::Kill));
                let given = esker::tag(&*faulty, Path::new(PATH), "v1", None, "why");
                let is_given = given.is_ok();
                store.lose_power_but(|_| lucky);
                let all = shared(&store);
                let what = format!("no power at {at}, synced {synced}, lucky {lucky}");
                cuts += 1;
                if is_given || (synced && lucky) {
                    let ds = open(&all, "").unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!(fixed(&ds)[0], 2, "{what}");
                }
                if is_given {
                    let ds = open(&all, "v1").unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_eq!((ds.container_version(), fixed(&ds)[0]), (Some(3), 2), "{what}");
                    assert_eq!(versions(&all)[0].message, "why");
                    break;
                }
                if open(&all, "").is_ok() {
                    // It is there or not, and can be given again.
                    assert_eq!(
                        tag(&all, "v1", None).unwrap(),
                        open(&all, "v1").unwrap().container_version().unwrap(),
                        "{what}"
                    );
                }
            }
        }
    }
    assert!(cuts > 20, "{cuts}");
}

#[test]
fn a_tag_that_fails_at_any_call_leaves_the_container_as_it_was_or_tagged() {
    for at in 0.. {
        let store = container(3, true);
        let fault = Fault::Fail(std::io::ErrorKind::StorageFull);
        let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(store.clone(), at, fault));
        let given = esker::tag(&*faulty, Path::new(PATH), "v1", Some(2), "");
        let all = shared(&store);
        assert_eq!(fixed(&open(&all, "").unwrap())[0], 2, "at {at}");
        assert_eq!(open(&all, "").unwrap().notes(), [""; 0], "at {at}");
        assert_eq!(tag(&all, "v1", Some(2)).unwrap(), 2, "at {at}");
        assert_eq!(tags(&all), [("v1".to_string(), 2)], "at {at}");
        let mut ds = to_write(&all).unwrap();
        put(&mut ds, 1, 5).unwrap();
        ds.close().unwrap();
        assert_eq!(fixed(&open(&all, "").unwrap())[..2], [2, 5], "at {at}");
        if given.is_ok() && at > 30 {
            break;
        }
    }
}

#[test]
fn recovery_keeps_tags_and_tells_of_those_that_are_lost() {
    // What is behind the tag is lost: the tag stays.
    let store = container(3, true);
    let all = shared(&store);
    tag(&all, "v1", Some(2)).unwrap();
    let mut ds = to_write(&all).unwrap();
    put(&mut ds, 1, 8).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    damage(&store, &decision(5));
    assert!(open(&all, "").is_err());
    assert_eq!(fixed(&open(&all, "v1").unwrap())[0], 1, "a name is found without the newest");
    let recovery = recover(&all, false);
    assert_eq!((recovery.found, recovery.made, recovery.is_loss()), (4, Some(6), false));
    assert_eq!(tags(&all), [("v1".to_string(), 2)]);
    assert_eq!(fixed(&open(&all, "v1").unwrap())[0], 1);
    assert_eq!(fixed(&open(&all, "").unwrap())[..2], [2, 8]);

    // The tag's own version is lost: that is told, and nothing else is missing.
    let store = container(3, true);
    let all = shared(&store);
    tag(&all, "v1", Some(2)).unwrap();
    damage(&store, &decision(4));
    let error = open(&all, "v1").unwrap_err().to_string();
    assert!(error.contains("version 4") && error.contains("was synced"), "{error}");
    let recovery = recover(&all, false);
    let [lost] = &recovery.lost_versions[..] else { panic!("{recovery:?}") };
    let lacks = lost.lacks.as_deref();
    assert_eq!((lost.version, lacks), (4, Some("the name that it gave to a version")));
    assert!(recovery.is_loss());
    assert_eq!(fixed(&open(&all, "").unwrap())[0], 2);
    assert_eq!(tag(&all, "v1", Some(2)).unwrap(), 2, "it can be given again");

    // A version between is lost, and with it those that need it: names behind it are found by themselves.
    let store = container(3, true);
    let all = shared(&store);
    tag(&all, "v1", Some(2)).unwrap();
    damage(&store, &decision(3));
    let recovery = recover(&all, false);
    assert_eq!((recovery.found, recovery.is_loss()), (2, false), "{recovery:?}");
    assert_eq!(tags(&all), [("v1".to_string(), 2)]);
    assert_eq!(fixed(&open(&all, "").unwrap())[0], 2);
}

#[test]
fn a_tag_behind_a_writer_that_died_does_not_pass_over_what_it_wrote() {
    for own_commits in [false, true] {
        let store = container(2, true);
        let all = shared(&store);
        let mut ds = to_write(&all).unwrap();
        if own_commits {
            put(&mut ds, 2, 30).unwrap();
            ds.sync().unwrap();
        }
        put(&mut ds, 1, 20).unwrap();
        // What it has not written out is gone with it: what it reads is written out.
        assert_eq!(fixed(&ds)[1], 20);
        std::mem::forget(ds);
        tag(&all, "v1", None).unwrap();
        let recovery = recover(&all, false);
        assert_eq!(recovery.recovered.len(), 1, "{recovery:?}");
        assert!(recovery.superseded.is_empty(), "{recovery:?}");
        assert_eq!(fixed(&open(&all, "").unwrap())[..2], [1, 20]);
        assert_eq!(fixed(&open(&all, "v1").unwrap())[..2], [1, FILL]);
    }
}

#[test]
fn a_dataset_that_is_replaced_takes_its_tags_with_it() {
    let store = container(3, true);
    let all = shared(&store);
    tag(&all, "v1", Some(2)).unwrap();
    let writer = to_write(&all).unwrap();
    let mut ds = define(&all).unwrap();
    put(&mut ds, 0, 77).unwrap();
    ds.close().unwrap();
    assert_eq!(tags(&all), []);
    let error = open(&all, "v1").unwrap_err().to_string();
    assert!(error.contains("there is no tag of this name, it has no tags"), "{error}");
    let error = tag(&all, "old", Some(2)).unwrap_err().to_string();
    assert!(error.contains("version 2"), "{error}");
    let newest = tag(&all, "v1", None).unwrap();
    assert_eq!(fixed(&open(&all, "v1").unwrap())[0], 77);
    assert_eq!(open(&all, "v1").unwrap().container_version(), Some(newest));
    let replaced = versions(&all).into_iter().filter(|one| one.number <= 4);
    assert!(replaced.into_iter().all(|one| one.state == VersionState::Expired));
    drop(writer);
}

#[test]
fn many_tags_are_told_and_survive_runs() {
    let store = container(3, true);
    let all = shared(&store);
    let mut expected: Vec<(String, u64)> = Vec::new();
    for i in 0..30u64 {
        let version = 1 + i % 3;
        tag(&all, &format!("n{i:02}"), Some(version)).unwrap();
        expected.push((format!("n{i:02}"), version));
    }
    assert_eq!(tags(&all), expected);
    let facts = esker::container_facts(&*all, Path::new(PATH), None).unwrap().unwrap();
    assert_eq!(facts.tags.len(), 30);
    for (name, version) in &expected {
        assert_eq!(open(&all, name).unwrap().container_version(), Some(*version));
    }
    let examined = esker::examine(&all, Path::new(PATH), None, &mut |_, _| {}).unwrap();
    assert!(examined.faults.is_empty() && examined.lost_versions.is_empty());
    // A run that is damaged takes the newest versions; recovery tells which, and finds the names in what is left.
    let runs = store.list().into_iter().filter(|path| path.starts_with("/run/a.esk/runs"));
    let run = runs.max().unwrap();
    damage(&store, &run);
    let recovery = recover(&all, false);
    assert!(!recovery.lost_versions.is_empty(), "{recovery:?}");
    let kept = tags(&all).len();
    let told = recovery.lost_versions.iter().filter(|lost| lost.lacks.is_some()).count();
    assert_eq!(kept + told, 30, "each name is there or told: {recovery:?}");
    assert_eq!(fixed(&open(&all, "").unwrap())[0], 2);
}
