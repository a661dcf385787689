//! Messages, and the list of versions.

use std::path::Path;

use esker::{CreateOptions, Dataset, Hints, Layout, Selection, Tag, VersionState};
use esker_store::{LocalStore, MemoryStore, Store};
use esker_testkit::random::Random;
use esker_testkit::ranks::on_ranks;

use super::*;

#[test]
fn a_commit_carries_its_message() {
    let store = shared(&MemoryStore::default());
    let mut hints = Hints::default();
    // Words, and signs of pairs: a value of our own hints is text.
    hints.set_pnetcdf("esker_message=run 7 = control;cb_nodes=2");
    assert_eq!(hints.warnings(), [""; 0]);
    let options = CreateOptions::new().layout(Layout::Log).store(store.clone()).hints(hints);
    let mut def = Dataset::create(PATH, options).unwrap();
    let x = def.add_dim("x", esker::DimLen::Fixed(X)).unwrap();
    def.add_var("fixed", esker::ExternalType::Int, &[x]).unwrap();
    def.set_message("begin").unwrap();
    let mut ds = def.enddef().unwrap();
    put(&mut ds, 0, 1).unwrap();
    ds.sync().unwrap();
    put(&mut ds, 1, 1).unwrap();
    ds.set_message("not this one").unwrap();
    ds.set_message("grüße").unwrap();
    for wrong in ["two\nlines", "\u{7}", &"x".repeat(esker::LONGEST_MESSAGE + 1)] {
        let error = ds.set_message(wrong).unwrap_err().to_string();
        assert!(error.contains("a message"), "{error}");
        ds.set_message("grüße").unwrap();
    }
    ds.sync().unwrap();
    put(&mut ds, 2, 1).unwrap();
    ds.set_message("taken back").unwrap();
    ds.set_message("").unwrap();
    ds.close().unwrap();
    let said: Vec<String> = versions(&store).into_iter().map(|one| one.message).collect();
    assert_eq!(said, ["run 7 = control", "grüße", "run 7 = control", "begin"]);
    let mut hints = Hints::default();
    hints.set("esker_message", "a\tb");
    assert!(hints.warnings()[0].contains("U+0009"), "{:?}", hints.warnings());
}

#[test]
fn a_message_is_rank_0s_and_a_wrong_one_everybodys_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let made = path.clone();
    on_ranks(3, move |comm| {
        let options = CreateOptions::new().layout(Layout::Log).comm(comm.clone());
        let mut def = Dataset::create(&made, options).unwrap();
        let x = def.add_dim("x", esker::DimLen::Fixed(X)).unwrap();
        def.add_var("fixed", esker::ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().unwrap();
        let me = comm.rank() as u64;
        ds.put_all(FIXED, &Selection::element(&[me]), &[1]).unwrap();
        let wrong = (me == 0).then_some("a\nb");
        assert!(ds.set_message_all(wrong).is_err());
        ds.set_message_all(Some(&format!("of rank {me}"))).unwrap();
        ds.sync().unwrap();
        ds.put_all(FIXED, &Selection::element(&[me]), &[2]).unwrap();
        ds.close().unwrap();
    });
    let all = esker::versions(&LocalStore, &path, None).unwrap();
    let said: Vec<&str> = all.iter().map(|one| &*one.message).collect();
    assert_eq!(said, ["", "of rank 0", ""]);
}

#[test]
fn only_versions_have_messages() {
    let store = shared(&MemoryStore::default());
    let def = Dataset::create("/a.nc", CreateOptions::new().store(store.clone())).unwrap();
    let mut ds = def.enddef().unwrap();
    let error = ds.set_message("new").unwrap_err().to_string();
    assert!(error.contains("a classic file, which has no versions"), "{error}");
    ds.set_message("").unwrap();
    ds.close().unwrap();
    define(&store).unwrap().close().unwrap();
    let error = open(&store, "").unwrap().set_message("new").unwrap_err().to_string();
    assert!(error.contains("reading only") || error.contains("read"), "{error}");
    let error = esker::versions(&*store, Path::new("/a.nc"), None).unwrap_err().to_string();
    assert!(error.contains("it is no container"), "{error}");
}

/// What is expected of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Expected {
    message: String,
    records: u64,
    bytes: u64,
    synced: bool,
    gives: Vec<Tag>,
}

/// Two sessions that write by turns, are closed and opened again, and somebody who gives names: the list is what happened.
#[test]
fn a_list_of_versions_is_what_happened() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let store = shared(&MemoryStore::default());
        define(&store).unwrap().close().unwrap();
        let mut model = vec![Expected::default()];
        let mut names: Vec<Tag> = Vec::new();
        let mut writers = [to_write(&store).unwrap(), to_write(&store).unwrap()];
        let mut written = [0u64; 2];
        let (mut records, mut known) = (0u64, [0u64; 2]);
        for step in 0..40u64 {
            if random.below(6) == 0 {
                let name = format!("t{step}");
                // The newest that is not there for a name alone.
                let given = model.iter().rposition(|one| one.gives.is_empty()).unwrap() as u64 + 1;
                let asked =
                    (random.below(2) == 0).then(|| 1 + random.below_u64(model.len() as u64));
                let of = tag(&store, &name, asked).unwrap();
                assert_eq!(of, asked.unwrap_or(given), "seed {seed}, step {step}");
                let gives = vec![Tag { name, version: of }];
                names.extend(gives.clone());
                model.push(Expected { records, synced: true, gives, ..Expected::default() });
                continue;
            }
            let who = random.below(2);
            let ds = &mut writers[who];
            // Each its own elements, so that there is no conflict.
            let at = 3 * who as u64 + random.below_u64(3);
            if random.below(3) == 0 && who == 0 {
                ds.put(RECORD, &Selection::element(&[known[who], 0]), &[step as i32]).unwrap();
                known[who] += 1;
            } else {
                put(ds, at, step as i32).unwrap();
            }
            written[who] += 4;
            if random.below(3) > 0 {
                continue;
            }
            let message = match random.below(2) {
                0 => String::new(),
                _ => format!("step {step}"),
            };
            ds.set_message(&message).unwrap();
            let synced = random.below(2) == 0;
            match synced {
                true => ds.sync().unwrap(),
                false => {
                    let again = to_write(&store).unwrap();
                    std::mem::replace(ds, again).close().unwrap();
                    // It was opened before the close.
                    *ds = to_write(&store).unwrap();
                }
            }
            records = records.max(known[who]);
            let bytes = std::mem::take(&mut written[who]);
            model.push(Expected { message, records, bytes, synced, gives: Vec::new() });
        }
        let found = versions(&store);
        assert_eq!(found.len(), model.len(), "seed {seed}");
        let numbers = (1..=model.len() as u64).rev();
        for ((one, number), expected) in found.iter().zip(numbers).zip(model.iter().rev()) {
            let what = format!("seed {seed}, version {number}: {one:?}");
            assert_eq!((one.number, &one.state), (number, &VersionState::Open), "{what}");
            assert_eq!((&one.message, &one.gives), (&expected.message, &expected.gives), "{what}");
            assert_eq!(one.records, Some(expected.records), "{what}");
            assert_eq!(one.new_bytes, Some(expected.bytes), "{what}");
            assert_eq!(one.durable, Some(expected.synced), "{what}");
            let mut tags: Vec<&str> =
                names.iter().filter(|t| t.version == number).map(|t| &*t.name).collect();
            tags.sort_unstable();
            assert_eq!(one.tags, tags, "{what}");
            assert!(one.time.is_some_and(|time| time > 1_600_000_000), "{what}");
            let ds = open(&store, &number.to_string()).unwrap();
            assert_eq!(ds.numrecs(), expected.records, "{what}");
        }
        // Any number of them, from any on.
        for most in 1..=found.len() {
            let some = esker::versions(&*store, Path::new(PATH), Some(most)).unwrap();
            assert_eq!(some, found[..most], "seed {seed}, {most}");
            let path = format!("{PATH}@{most}");
            let some = esker::versions(&*store, Path::new(&path), None).unwrap();
            assert_eq!(some, found[found.len() - most..], "seed {seed}, {path}");
        }
    }
}

#[test]
fn versions_that_cannot_be_opened_are_listed_with_why() {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    for value in 0..4 {
        put(&mut ds, 0, value).unwrap();
        ds.sync().unwrap();
    }
    ds.close().unwrap();
    damage(&store, &decision(3));
    store.remove(&decision(5)).unwrap();
    let found = versions(&all);
    let numbers: Vec<u64> = found.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [5, 4, 3, 2, 1]);
    let state = |number: u64| &found[5 - number as usize].state;
    assert_eq!(*state(5), VersionState::Damaged("it is not there".to_string()));
    assert!(
        matches!(state(3), VersionState::Damaged(why) if why.contains("00000003")),
        "{found:?}"
    );
    for whole in [1, 2] {
        assert_eq!(*state(whole), VersionState::Open);
    }
    let error = esker::versions(&*all, Path::new("/run/a.esk@9"), None).unwrap_err().to_string();
    assert!(error.contains("it has no version 9"), "{error}");
    // A dataset that takes its place: the versions before it cannot be opened any more.
    let store = MemoryStore::default();
    let all = shared(&store);
    for _ in 0..2 {
        let mut ds = define(&all).unwrap();
        put(&mut ds, 0, 1).unwrap();
        ds.close().unwrap();
    }
    let states: Vec<VersionState> = versions(&all).into_iter().map(|one| one.state).collect();
    let [open, expired] = [VersionState::Open, VersionState::Expired];
    assert_eq!(states, [open.clone(), open, expired.clone(), expired]);
    assert_eq!(versions(&all)[1].new_bytes, Some(0), "a new dataset begins with nothing");
}

#[test]
fn a_list_does_not_read_logs() {
    let store = MemoryStore::default();
    let all = shared(&store);
    let mut ds = define(&all).unwrap();
    put(&mut ds, 0, 7).unwrap();
    ds.close().unwrap();
    let before = versions(&all);
    for log in store.list().into_iter().filter(|path| path.starts_with("/run/a.esk/segments")) {
        store.remove(&log).unwrap();
    }
    assert_eq!(versions(&all), before);
}

#[test]
fn a_promise_that_nobody_can_count_to_does_not_let_a_list_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let options = CreateOptions::new().layout(Layout::Log);
    Dataset::create(&path, options).unwrap().enddef().unwrap().close().unwrap();
    let (version, first, durable, names) = (1_000_000_000, 1, false, false);
    let (manifest, header, data, metadata) = (1, 1, 0, 0);
    let promise = esker_format::log::Promise {
        version,
        first,
        durable,
        names,
        manifest,
        header,
        data,
        metadata,
    };
    let promises = LocalStore.open(&path.join("promises"), esker_store::Access::ReadWrite).unwrap();
    promises.write_at(esker_format::log::Promise::offset(version), &promise.encode()).unwrap();
    let found = esker::versions(&LocalStore, &path, None).unwrap();
    let numbers: Vec<u64> = found.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [version, 1]);
    assert_eq!(found[0].state, VersionState::Damaged("it is not there".to_string()));
    assert!(esker::tags(&LocalStore, &path).unwrap().is_empty());
    let error = esker::tag(&LocalStore, &path, "v1", None, "").unwrap_err().to_string();
    assert!(error.contains("is said to have been committed"), "{error}");
}

#[test]
fn versions_of_format_1_are_listed_as_far_as_they_know() {
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format1.esk");
    let found = esker::versions(&LocalStore, &whole, None).unwrap();
    let numbers: Vec<u64> = found.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [3, 2, 1]);
    for one in &found {
        assert_eq!((&one.state, one.time, &*one.message), (&VersionState::Open, None, ""));
        assert_eq!(one.records, Some(0));
    }
    let bytes: Vec<Option<u64>> = found.iter().map(|one| one.new_bytes).collect();
    assert_eq!(bytes, [Some(4), Some(4), Some(0)]);
    let error = esker::tag(&LocalStore, &whole, "v1", None, "").unwrap_err().to_string();
    assert!(error.contains("format 1") && error.contains("esker copy"), "{error}");
    assert!(esker::tags(&LocalStore, &whole).unwrap().is_empty());
}
