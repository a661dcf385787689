//! Versions of containers are never lost without a word: manifests, promises and marks are damaged bit by
//! bit, cut and removed, and a reader gets the newest version, a note, or an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{
    ContainerRecoverOptions, ContainerRecovery, CreateOptions, Dataset, DimLen, Examination,
    ExternalType, Layout, OpenOptions, Selection, VarId,
};
use esker_format::history::{Branch, Decision, Item, Verdict};
use esker_format::log::{self, Promise};
use esker_format::{Alignment, DataLayout, Header, Owner, Values};
use esker_store::{Access, CreateMode, Fault, FaultyStore, LocalStore, MemoryStore, Store};

const PATH: &str = "/run/a.esk";

fn version(number: u64) -> PathBuf {
    Path::new(PATH).join("refs/main").join(format!("{number:08}"))
}

fn promises() -> PathBuf {
    Path::new(PATH).join("promises")
}

/// Version 1 defines `x` of four elements; each of `steps` writes one and makes the next version,
/// by a sync or by a close.
fn container(steps: &[&str]) -> MemoryStore {
    let store = MemoryStore::default();
    let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
    let mut define = Dataset::create(PATH, options).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(4)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    define.enddef().unwrap().close().unwrap();
    for (number, step) in steps.iter().enumerate() {
        let mut ds = open_to_write(&store);
        ds.put(VarId(0), &Selection::element(&[number as u64 % 4]), &[number as i32]).unwrap();
        match *step {
            "sync" => ds.sync().unwrap(),
            "close" => {}
            other => panic!("{other}"),
        }
        ds.close().unwrap();
    }
    store
}

fn open_to_write(store: &MemoryStore) -> Dataset {
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    Dataset::open_with(PATH, options).unwrap()
}

fn open(store: &MemoryStore) -> Result<Dataset, esker::Error> {
    Dataset::open_with(PATH, OpenOptions::new().store(Arc::new(store.clone())))
}

fn values(ds: &Dataset) -> Vec<i32> {
    ds.get(VarId(0), &Selection::all()).unwrap()
}

/// What a reader sees after so many steps.
fn after(steps: usize) -> Vec<i32> {
    let last = |i: usize| (0..steps).rev().find(|step| step % 4 == i);
    (0..4).map(|i| last(i).map_or(-2_147_483_647, |step| step as i32)).collect()
}

fn examined(store: &MemoryStore, version: Option<u64>) -> Result<Examination, esker::Error> {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    esker::examine(&store, Path::new(PATH), version, &mut |_, _| {})
}

fn recovered(store: &MemoryStore) -> ContainerRecovery {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let options = ContainerRecoverOptions::default();
    esker::recover_container(&store, Path::new(PATH), options, &mut |_, _| {}).unwrap()
}

/// Does something to a file of a container of its own.
fn with(steps: &[&str], path: &Path, bytes: Option<&[u8]>) -> MemoryStore {
    let store = container(steps);
    replace(&store, path, bytes);
    store
}

fn replace(store: &MemoryStore, path: &Path, bytes: Option<&[u8]>) {
    match bytes {
        None => store.remove(path).unwrap(),
        Some(bytes) => {
            let file = store.open(path, Access::ReadWrite).unwrap();
            file.set_len(0).unwrap();
            file.write_at(0, bytes).unwrap();
        }
    }
}

/// Every flip of a bit, every cut, zeros from any byte on, and the removal of a file.
fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let flips = (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        (format!("bit {bit}"), Some(damaged))
    });
    let cuts = (0..bytes.len()).map(|len| (format!("cut to {len}"), Some(bytes[..len].to_vec())));
    // What a write leaves that was torn.
    let zeros = (0..bytes.len()).map(|from| {
        let torn = [&bytes[..from], &vec![0; bytes.len() - from]].concat();
        (format!("zeros from {from}"), Some(torn))
    });
    let zeros = zeros.filter(|(_, torn)| torn.as_deref() != Some(bytes));
    flips.chain(cuts).chain(zeros).chain([("removed".to_string(), None)]).collect()
}

#[test]
fn a_synced_version_whose_manifest_is_damaged_is_an_error() {
    let steps = ["sync", "sync"];
    let whole = container(&steps);
    assert_eq!(values(&open(&whole).unwrap()), after(2));
    let all = damages(&whole.bytes(&version(3)).unwrap());
    assert!(all.len() > 1000, "{}", all.len());
    let store = container(&steps);
    for (what, bytes) in all.iter().filter(|(_, bytes)| bytes.is_some()) {
        replace(&store, &version(3), bytes.as_deref());
        let error = open(&store).expect_err(what).to_string();
        assert!(error.contains("version 3") && error.contains("was synced"), "{what}: {error}");
        assert!(examined(&store, None).is_err(), "{what}");
    }
    let error = open(&with(&steps, &version(3), None)).expect_err("removed").to_string();
    assert!(error.contains("version 3 was committed, and is not there"), "{error}");
    // Whoever wants the older one can have it.
    let options = OpenOptions::new().store(Arc::new(store)).container_version(2);
    assert_eq!(values(&Dataset::open_with(PATH, options).unwrap()), after(1));
}

#[test]
fn a_closed_version_that_cannot_be_read_is_told() {
    let steps = ["sync", "close"];
    let all = damages(&container(&steps).bytes(&version(3)).unwrap());
    for (what, bytes) in all {
        let store = with(&steps, &version(3), bytes.as_deref());
        let ds = open(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((ds.container_version(), values(&ds)), (Some(2), after(1)), "{what}");
        let [note] = ds.notes() else { panic!("{what}: {:?}", ds.notes()) };
        assert!(note.contains("version 3") && note.contains("not synced"), "{what}: {note}");
        assert!(note.contains("What is read is version 2"), "{what}: {note}");
        let found = examined(&store, None).unwrap();
        assert_eq!(found.lost_versions[0].version, 3, "{what}");
        // A writer goes on behind it, and readers of what it writes have nothing to be told.
        if what == "removed" || what == "cut to 0" {
            let mut ds = open_to_write(&store);
            ds.put(VarId(0), &Selection::element(&[3]), &[3]).unwrap();
            ds.close().unwrap();
            let ds = open(&store).unwrap();
            assert_eq!((ds.container_version(), ds.notes().len()), (Some(4), 0), "{what}");
        }
    }
}

#[test]
fn an_older_version_that_is_damaged_is_no_concern_of_readers_but_of_check() {
    // What was new in the first of them is in a run by now.
    let steps = ["sync"; 10];
    for (what, bytes) in damages(&container(&steps).bytes(&version(2)).unwrap()) {
        let store = with(&steps, &version(2), bytes.as_deref());
        let ds = open(&store).unwrap();
        assert_eq!((values(&ds), ds.notes().len()), (after(10), 0), "{what}");
        let lost = examined(&store, None).unwrap().lost_versions;
        assert_eq!((lost.len(), lost[0].version, lost[0].synced), (1, 2, Some(true)), "{what}");
        let options = OpenOptions::new().store(Arc::new(store)).container_version(2);
        assert!(Dataset::open_with(PATH, options).is_err(), "{what}");
    }
}

#[test]
fn a_decision_that_later_versions_need_is_named_when_it_is_damaged_and_recovered_from_the_logs() {
    let steps = ["sync", "sync", "sync"];
    for (what, bytes) in damages(&container(&steps).bytes(&version(2)).unwrap()) {
        let store = with(&steps, &version(2), bytes.as_deref());
        let error = open(&store).expect_err(&what).to_string();
        assert!(error.contains("refs/main/00000002"), "{what}: {error}");
        if what == "removed" || what == "cut to 0" || what == "bit 99" {
            let recovery = recovered(&store);
            assert_eq!((recovery.found, recovery.made), (1, Some(5)), "{what}");
            assert!(!recovery.is_loss(), "{what}: {recovery:?}");
            assert_eq!(values(&open(&store).unwrap()), after(3), "{what}");
            assert!(recovered(&store).is_clean(), "{what}");
        }
    }
}

#[test]
fn a_run_that_is_damaged_is_named_and_recovered_from_the_logs() {
    let steps = ["sync"; 10];
    let whole = container(&steps);
    let run = whole.list().into_iter().find(|path| path.to_string_lossy().contains("/runs/"));
    let len = whole.bytes(&run.expect("eight decisions become one")).unwrap().len();
    for cut in [0, 1, len / 2, len - 1] {
        let store = container(&steps);
        let run = store.list().into_iter().find(|path| path.to_string_lossy().contains("/runs/"));
        let run = run.unwrap();
        let bytes = store.bytes(&run).unwrap();
        replace(&store, &run, Some(&bytes[..cut]));
        let error = open(&store).expect_err("it is needed").to_string();
        assert!(error.contains("runs/") && error.contains("was synced"), "{cut}: {error}");
        assert!(!recovered(&store).is_loss(), "{cut}");
        assert_eq!(values(&open(&store).unwrap()), after(10), "{cut}");
        assert!(recovered(&store).is_clean(), "{cut}");
    }
}

#[test]
fn damaged_promises_hide_nothing() {
    let steps = ["sync", "close", "sync"];
    for (what, bytes) in damages(&container(&steps).bytes(&promises()).unwrap()) {
        let store = with(&steps, &promises(), bytes.as_deref());
        let ds = open(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((ds.container_version(), values(&ds)), (Some(4), after(3)), "{what}");
        // With the newest manifest gone as well, nothing else is shown in its place unsaid.
        if let Some(bytes) = store.bytes(&version(4)) {
            replace(&store, &version(4), Some(&bytes[1..]));
            if let Ok(ds) = open(&store) {
                assert!(!ds.notes().is_empty(), "{what}");
            }
            replace(&store, &version(4), Some(&bytes));
        }
        // Recovery writes anew what is known.
        if what == "removed" || what == "cut to 0" || what == "cut to 300" {
            let recovery = recovered(&store);
            assert!(recovery.promises && recovery.made.is_none(), "{what}: {recovery:?}");
            assert!(!recovery.is_loss() && recovered(&store).is_clean(), "{what}");
            replace(&store, &version(4), None);
            assert!(open(&store).is_err(), "{what}");
        }
    }
}

#[test]
fn every_damage_of_a_mark_is_an_error() {
    let path = Path::new(PATH).join("esker.json");
    let whole = container(&["sync"]);
    let text = whole.bytes(&path).unwrap();
    for (what, bytes) in damages(&text).iter().filter(|(_, bytes)| bytes.is_some()) {
        let bytes = bytes.as_deref().unwrap();
        // Another identity is one, too.
        let start = String::from_utf8(text.clone()).unwrap().find("identity").unwrap() + 12;
        let digits = |bytes: &[u8]| bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_mark = bytes.len() == text.len()
            && bytes[..start] == text[..start]
            && digits(&bytes[start..start + 16])
            && bytes[start + 16..] == text[start + 16..];
        let store = with(&["sync"], &path, Some(bytes));
        assert_eq!(open(&store).is_ok(), is_mark, "{what}");
    }
}

/// A container of format 1, as an Esker of before has written it: the same three versions as `container(&["sync", "sync"])`.
fn of_format_1() -> MemoryStore {
    let store = MemoryStore::default();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format1.esk");
    for folder in ["", "versions", "segments"] {
        store.create_dir(&Path::new(PATH).join(folder)).unwrap();
        for entry in
            std::fs::read_dir(from.join(folder)).unwrap().map(|entry| entry.unwrap().path())
        {
            if entry.is_file() {
                let to = Path::new(PATH).join(folder).join(entry.file_name().unwrap());
                let bytes = std::fs::read(&entry).unwrap();
                store.create(&to, CreateMode::New).unwrap().write_at(0, &bytes).unwrap();
            }
        }
    }
    store
}

fn version_of_format_1(number: u64) -> PathBuf {
    Path::new(PATH).join("versions").join(format!("{number:08}"))
}

#[test]
fn containers_of_format_1_are_read_and_not_written() {
    let store = of_format_1();
    let ds = open(&store).unwrap();
    assert_eq!((ds.container_version(), values(&ds), ds.notes().len()), (Some(3), after(2), 0));
    let options = OpenOptions::new().store(Arc::new(store.clone())).container_version(2);
    assert_eq!(values(&Dataset::open_with(PATH, options).unwrap()), after(1));
    assert_eq!(examined(&store, None).unwrap().faults, []);
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let error = Dataset::open_with(PATH, options).unwrap_err().to_string();
    assert!(error.contains("format 1") && error.contains("esker copy"), "{error}");
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let options = ContainerRecoverOptions::default();
    let error = esker::recover_container(&shared, Path::new(PATH), options, &mut |_, _| {});
    assert!(error.unwrap_err().to_string().contains("esker copy"));
    // As before, what was synced is missed.
    let whole = store.bytes(&version_of_format_1(3)).unwrap();
    for (what, bytes) in damages(&whole) {
        let store = of_format_1();
        replace(&store, &version_of_format_1(3), bytes.as_deref());
        let error = open(&store).expect_err(&what).to_string();
        assert!(error.contains("version 3") && error.contains("was synced"), "{what}: {error}");
    }
}

#[test]
fn a_container_of_format_1_is_replaced_by_one_of_format_2() {
    let store = of_format_1();
    let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
    let mut define = Dataset::create(PATH, options).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(4)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    assert_eq!(values(&open(&store).unwrap()), after(2), "until the other is there");
    let mut ds = define.enddef().unwrap();
    ds.put(VarId(0), &Selection::element(&[0]), &[0]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    let ds = open(&store).unwrap();
    assert_eq!((ds.container_version(), values(&ds), ds.notes().len()), (Some(5), after(1), 0));
    let left =
        store.list().into_iter().filter(|path| path.to_string_lossy().contains("/versions/"));
    assert_eq!(left.count(), 0);
}

#[test]
fn containers_of_before_there_were_promises_are_read() {
    let store = of_format_1();
    replace(&store, &promises(), None);
    let mark = Path::new(PATH).join("esker.json");
    let old = b"{\"esker\": \"container\", \"format\": 1, \"identity\": \"00000000000000ff\"}\n";
    replace(&store, &mark, Some(old));
    let ds = open(&store).unwrap();
    assert_eq!((values(&ds), ds.notes().len()), (after(2), 0));
    let whole = store.bytes(&version_of_format_1(3)).unwrap();
    replace(&store, &version_of_format_1(3), Some(&whole[1..]));
    let ds = open(&store).unwrap();
    assert_eq!(values(&ds), after(1));
    assert!(ds.notes()[0].contains("nothing says whether it was synced"), "{:?}", ds.notes());
}

#[test]
fn a_dataset_that_replaces_another_answers_for_its_own_versions_only() {
    let store = container(&["sync", "sync"]);
    let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
    let mut define = Dataset::create(PATH, options).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(4)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = define.enddef().unwrap();
    ds.put(VarId(0), &Selection::element(&[0]), &[0]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    let ds = open(&store).unwrap();
    assert_eq!((ds.container_version(), ds.notes().len()), (Some(5), 0));
    assert_eq!(values(&ds), after(1));
    assert_eq!(examined(&store, None).unwrap().lost_versions, []);
    assert!(recovered(&store).is_clean());
}

/// What a program was told, and what a reader then sees, when the power goes at any call, whatever of
/// what was not synced has reached the disk.
#[test]
fn a_loss_of_power_at_any_call_breaks_no_promise_and_makes_up_none() {
    type Lucky = fn(&Path, usize) -> bool;
    let lucky: [Lucky; 5] = [
        |_, _| false,
        |path, _| path.ends_with("promises"),
        |path, _| path.to_string_lossy().contains("refs"),
        |path, _| !path.ends_with("promises"),
        |_, _| true,
    ];
    let mut cuts = 0;
    for (which, lucky) in lucky.iter().enumerate() {
        for names in [false, true] {
            for at in 0.. {
                let store = MemoryStore::default();
                let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
                let (promised, ended) = session(Arc::new(faulty.clone()));
                if names {
                    store.list().iter().for_each(|name| store.sync_names(name).unwrap());
                }
                store.lose_power_but(|path| lucky(path, which));
                let what = format!("no power at {at}, {which} lucky, names {names}");
                match (open(&store), promised) {
                    (Ok(ds), _) => {
                        assert!(ds.container_version() >= Some(promised), "{what}");
                        let version = ds.container_version().unwrap();
                        // Version 1 has nothing, and each version after it one value more.
                        let seen = ds.get::<i32>(VarId(0), &Selection::all());
                        if version == promised {
                            let seen = seen.unwrap_or_else(|error| panic!("{what}: {error}"));
                            assert_eq!(seen, after(version as usize - 1), "{what}");
                        }
                    }
                    (Err(error), 0) => {
                        let error = error.to_string();
                        assert!(!error.contains("synced"), "{what}: {error}");
                    }
                    (Err(error), _) => panic!("{what}: version {promised} was promised: {error}"),
                }
                cuts += 1;
                if ended {
                    break;
                }
            }
        }
    }
    assert!(cuts > 300, "{cuts}");
}

/// Defines, writes, syncs, writes, closes, opens, writes, syncs. Gives the last version that a sync
/// promised, and whether it came to its end.
fn session(store: Arc<dyn Store>) -> (u64, bool) {
    let mut promised = 0;
    let mut run = || -> Result<(), esker::Error> {
        let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
        let mut define = Dataset::create(PATH, options)?;
        let x = define.add_dim("x", DimLen::Fixed(4))?;
        define.add_var("v", ExternalType::Int, &[x])?;
        let mut ds = define.enddef()?;
        ds.put(VarId(0), &Selection::element(&[0]), &[0])?;
        ds.sync()?;
        promised = 2;
        ds.put(VarId(0), &Selection::element(&[1]), &[1])?;
        ds.close()?;
        let options = OpenOptions::new().writable(true).store(store.clone());
        let mut ds = Dataset::open_with(PATH, options)?;
        ds.put(VarId(0), &Selection::element(&[2]), &[2])?;
        ds.sync()?;
        promised = 4;
        ds.put(VarId(0), &Selection::element(&[3]), &[3])?;
        ds.sync()?;
        promised = 5;
        ds.close()
    };
    let ended = run().is_ok();
    (promised, ended)
}

#[test]
fn readers_beside_a_committing_writer_see_whole_versions_and_no_notes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let mut define = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(1)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = define.enddef().unwrap();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut last, mut seen) = (0, 0);
            while !done.load(Ordering::SeqCst) || seen == 0 {
                let ds = Dataset::open(&path).unwrap();
                assert_eq!(ds.notes(), [] as [String; 0]);
                let version = ds.container_version().unwrap();
                assert!(version >= last, "{version} after {last}");
                seen += usize::from(version > last);
                last = version;
                let value: Vec<i32> = ds.get(VarId(0), &Selection::all()).unwrap();
                assert!(version == 1 || value == [version as i32 - 2], "{version}: {value:?}");
            }
            seen
        });
        for number in 0..100 {
            ds.put(VarId(0), &Selection::all(), &[number]).unwrap();
            match number % 3 {
                0 => ds.sync().unwrap(),
                _ => {
                    ds.close().unwrap();
                    ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
                }
            }
        }
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert!(seen > 0);
    // And beside creations that replace it.
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let ds = Dataset::open(&path).unwrap();
                assert_eq!(ds.notes(), [] as [String; 0]);
            }
        });
        for _ in 0..30 {
            let options = CreateOptions::new().layout(Layout::Log);
            Dataset::create(&path, options).unwrap().enddef().unwrap().close().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
}

#[test]
fn recovery_says_what_a_lost_version_had() {
    // Everything that the version had is in the logs.
    let store = with(&["sync", "sync"], &version(3), None);
    let recovery = recovered(&store);
    assert_eq!((recovery.found, recovery.made), (2, Some(4)));
    let [lost] = &recovery.lost_versions[..] else { panic!("{recovery:?}") };
    assert_eq!((lost.version, lost.synced, &lost.lacks), (3, Some(true), &None));
    assert!(!recovery.is_loss());
    assert_eq!(values(&open(&store).unwrap()), after(2));
    assert!(recovered(&store).is_clean());

    // An attribute was all that was new.
    let store = container(&["sync"]);
    let mut define = open_to_write(&store).redef().unwrap();
    define.put_attr(Owner::Global, "title", Values::from("new")).unwrap();
    let mut ds = define.enddef().unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    let newest = open(&store).unwrap().container_version().unwrap();
    replace(&store, &version(newest), Some(b""));
    replace(&store, &version(newest - 1), Some(b""));
    let recovery = recovered(&store);
    assert_eq!((recovery.found, recovery.made), (newest - 2, Some(newest + 1)));
    assert!(recovery.is_loss());
    let lacks = recovery.lost_versions[0].lacks.as_deref().unwrap();
    assert!(lacks.contains("definitions, attributes or records"), "{lacks}");
    let ds = open(&store).unwrap();
    assert_eq!((values(&ds), ds.notes().len()), (after(1), 0));

    // A variable that only the lost version knew, and its values.
    let store = container(&["sync"]);
    let mut define = open_to_write(&store).redef().unwrap();
    let x = define.schema().dim("x").unwrap();
    let w = define.add_var("w", ExternalType::Int, &[x]).unwrap();
    let mut ds = define.enddef().unwrap();
    ds.put(w, &Selection::all(), &[1, 2, 3, 4]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    let newest = open(&store).unwrap().container_version().unwrap();
    for lost in 3..=newest {
        replace(&store, &version(lost), None);
    }
    let recovery = recovered(&store);
    assert!(recovery.is_loss(), "{recovery:?}");
    let lost = recovery.faults.iter().find(|fault| fault.committed).unwrap();
    assert!(lost.what.contains("variable number 1, and there are 1"), "{lost}");
    assert_eq!(values(&open(&store).unwrap()), after(1));
}

/// A run has what many versions share: damage in it takes all of them, though their decisions look well.
#[test]
fn a_recovery_tells_of_versions_whose_run_is_damaged() {
    for values_damaged in [false, true] {
        let store = MemoryStore::default();
        let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
        let mut define = Dataset::create(PATH, options).unwrap();
        let x = define.add_dim("x", DimLen::Fixed(4)).unwrap();
        define.add_var("v", ExternalType::Int, &[x]).unwrap();
        let mut ds = define.enddef().unwrap();
        let steps = 20;
        for step in 0..steps {
            ds.put(VarId(0), &Selection::element(&[step as u64 % 4]), &[step]).unwrap();
            ds.sync().unwrap();
        }
        ds.close().unwrap();
        let flip = |path: &Path, at: usize| {
            let mut bytes = store.bytes(path).unwrap();
            bytes[at] ^= 1;
            replace(&store, path, Some(&bytes));
        };
        let inside = |folder: &str, end: &str| {
            let folder = Path::new(PATH).join(folder);
            let all = store.list().into_iter().filter(move |path| path.starts_with(&folder));
            all.filter(|path| path.to_str().unwrap().ends_with(end)).max().unwrap()
        };
        let run = inside("runs", "");
        flip(&run, store.bytes(&run).unwrap().len() / 2);
        if values_damaged {
            let data = inside("segments", ".data");
            flip(&data, store.bytes(&data).unwrap().len() - 1);
        }
        // What it shares with others is read when somebody needs it.
        let read = open(&store).and_then(|ds| ds.get::<i32>(VarId(0), &Selection::all()));
        assert!(read.is_err());
        let recovery = recovered(&store);
        let newest = recovery.lost_versions.first().map(|lost| lost.version);
        assert_eq!(newest, Some(1 + steps as u64), "{recovery:?}");
        assert_eq!(recovery.is_loss(), values_damaged, "{recovery:?}");
        let expected = after(if values_damaged { steps as usize - 1 } else { steps as usize });
        assert_eq!(values(&open(&store).unwrap()), expected);
    }
}

/// Changes the header of the newest version, and makes everything match it.
fn forge(store: &MemoryStore, number: u64, change: impl FnOnce(&mut Header)) {
    let bytes = store.bytes(&version(number)).unwrap();
    let mut decision = Decision::decode(&bytes, &Branch::main(), number).unwrap();
    let mut header = esker::container_header(store, Path::new(PATH), Some(number)).unwrap();
    change(&mut header);
    header.layout = DataLayout::place(&header.schema, &Alignment::default()).unwrap();
    let header = header.encode();
    let Verdict::Commit(commit) = &mut decision.verdict else { panic!("{decision:?}") };
    let (definitions, count) = log::without_records(&header);
    for mut new in [log::definitions(definitions), log::records(count)] {
        (new.number, new.over) = (number, number);
        commit.items.retain(|item| item.key != new.key);
        commit.items.push(new);
    }
    commit.items.sort_by(Item::order);
    let bytes = decision.encode();
    replace(store, &version(number), Some(&bytes));
    let (data, metadata) = (0, 0);
    let (manifest, header) = (crc32c::crc32c(&bytes), crc32c::crc32c(&header));
    let promise = Promise {
        version: number,
        first: 1,
        durable: true,
        names: false,
        manifest,
        header,
        data,
        metadata,
    };
    let file = store.open(&promises(), Access::ReadWrite).unwrap();
    file.write_at(Promise::offset(number), &promise.encode()).unwrap();
}

#[test]
fn what_a_reader_cannot_decode_an_examination_finds() {
    let filtered = || {
        let store = MemoryStore::default();
        let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
        let mut define = Dataset::create(PATH, options).unwrap();
        let t = define.add_dim("t", DimLen::Unlimited).unwrap();
        let x = define.add_dim("x", DimLen::Fixed(100)).unwrap();
        let v = define.add_var("v", ExternalType::Int, &[t, x]).unwrap();
        define.set_filters(v, "shuffle zstd,3").unwrap();
        let mut ds = define.enddef().unwrap();
        let record: Vec<i32> = (0..100).collect();
        ds.append(v, &record).unwrap();
        ds.append(v, &record).unwrap();
        ds.sync().unwrap();
        ds.close().unwrap();
        store
    };
    let store = filtered();
    assert_eq!(examined(&store, None).unwrap().faults, []);
    let read = |store: &MemoryStore| open(store)?.get::<i32>(VarId(0), &Selection::all());
    assert_eq!(read(&store).unwrap().len(), 200);
    let filters = |text: &'static str| {
        move |header: &mut Header| {
            header.schema.put_attr(Owner::Var(VarId(0)), "__filters", Values::from(text)).unwrap();
        }
    };
    for text in ["shuffle deflate,6", "zfp,reversible", "no filters"] {
        let store = filtered();
        forge(&store, 2, filters(text));
        assert!(read(&store).is_err(), "{text}");
        let found = examined(&store, None).unwrap();
        assert_eq!(found.faults.len(), 2, "{text}: {found:?}");
        assert!(found.faults[0].what.contains("cannot be decoded"), "{text}: {}", found.faults[0]);
    }
    // Entries of records that the version does not have.
    let store = filtered();
    forge(&store, 2, |header| header.numrecs = esker::NumRecs::Count(1));
    let found = examined(&store, None).unwrap();
    assert!(found.faults[0].what.contains("record 1, and there are 1"), "{found:?}");
    // Entries outside of their variable.
    let store = container(&["sync", "sync"]);
    let whole = examined(&store, None).unwrap();
    assert_eq!((whole.faults.len(), whole.entries), (0, 2));
    forge(&store, 3, |header| header.schema.dims.at_mut(0).unwrap().len = DimLen::Fixed(1));
    let found = examined(&store, None).unwrap();
    assert_eq!(found.faults.len(), 1, "{found:?}");
    assert!(found.faults[0].what.contains("do not fit the variable"), "{found:?}");
}

#[test]
fn a_directory_that_is_linked_to_is_a_container_and_links_in_it_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("a.esk"), dir.path().join("link.esk"));
    let options = CreateOptions::new().layout(Layout::Log);
    let mut define = Dataset::create(&path, options).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(2)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = define.enddef().unwrap();
    ds.put(VarId(0), &Selection::all(), &[1, 2]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let read = |path: &Path| Dataset::open(path)?.get::<i32>(VarId(0), &Selection::all());
    assert_eq!(read(&link).unwrap(), [1, 2]);
    for name in ["segments", "refs", "promises", "esker.json"] {
        let (inside, away) = (path.join(name), dir.path().join(name));
        std::fs::rename(&inside, &away).unwrap();
        std::os::unix::fs::symlink(&away, &inside).unwrap();
        let error = read(&path).expect_err(name).to_string();
        assert!(error.contains("symbolic link"), "{name}: {error}");
        assert!(error.contains(inside.to_str().unwrap()), "{name}: {error}");
        let local: Arc<dyn Store> = Arc::new(LocalStore);
        let options = ContainerRecoverOptions::default();
        let recovery = esker::recover_container(&local, &path, options, &mut |_, _| {});
        assert!(recovery.is_err(), "{name}: {recovery:?}");
        std::fs::remove_file(&inside).unwrap();
        std::fs::rename(&away, &inside).unwrap();
    }
    assert_eq!(read(&path).unwrap(), [1, 2]);
}

#[test]
fn a_promise_of_a_version_that_nobody_can_count_to_lets_nobody_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let mut define = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(2)).unwrap();
    define.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = define.enddef().unwrap();
    ds.put(VarId(0), &Selection::all(), &[1, 2]).unwrap();
    ds.close().unwrap();
    let version = 1_000_000_000;
    let (manifest, header, data, metadata) = (0, 0, 0, 0);
    let promise = Promise {
        version,
        first: 1,
        durable: false,
        names: false,
        manifest,
        header,
        data,
        metadata,
    };
    let file = LocalStore.open(&path.join("promises"), Access::ReadWrite).unwrap();
    file.write_at(Promise::offset(version), &promise.encode()).unwrap();
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(VarId(0), &Selection::all()).unwrap(), [1, 2]);
    assert!(ds.notes()[0].contains("version 1000000000"), "{:?}", ds.notes());
    let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
    ds.put(VarId(0), &Selection::element(&[0]), &[3]).unwrap();
    let error = ds.sync().unwrap_err().to_string();
    assert!(error.contains("is said to have been committed"), "{error}");
}
