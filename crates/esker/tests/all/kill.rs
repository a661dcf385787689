//! A process that dies leaves the old dataset or the new one.
//!
//! Each scenario is run once to count the calls that change something, and then again for every
//! one of them and every fault: the process dies before the call, in the middle of it, or the
//! call fails. Afterwards somebody opens the file, with or without a loss of power before.

use std::io;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Alignment, CreateOptions, Dataset, DimLen, ExternalType, FillMode, OpenOptions, Owner, Schema,
    Selection, Values, VarId, Version,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};

const PATH: &str = "/run/kill.nc";
const FULL: io::ErrorKind = io::ErrorKind::StorageFull;
const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Tear, Fault::Fail(FULL), Fault::FailHalf(FULL)];

type Done = Result<(), esker::Error>;

/// Everything a reader sees.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    schema: Schema,
    records: u64,
    values: Vec<Values>,
}

fn see(store: &MemoryStore, writable: bool) -> Option<Seen> {
    if !store.exists(Path::new(PATH)).unwrap() {
        return None;
    }
    let options = OpenOptions::new().writable(writable).store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap();
    let values = (0..ds.schema().vars.len())
        .map(|i| ds.get_values(VarId(i), &Selection::all()).unwrap())
        .collect();
    Some(Seen { schema: ds.schema().clone(), records: ds.numrecs(), values })
}

fn create(
    store: Arc<dyn Store>,
    version: Version,
    room: u64,
) -> Result<esker::Define, esker::Error> {
    let align = Alignment { header_room: room, ..Alignment::default() };
    let options = CreateOptions::new().version(version).align(align).store(store);
    Dataset::create(PATH, options)
}

fn open(store: Arc<dyn Store>) -> Result<Dataset, esker::Error> {
    Dataset::open_with(PATH, OpenOptions::new().writable(true).store(store))
}

/// A dataset with fixed and record variables that is safe from power loss.
fn written(store: Arc<dyn Store>, version: Version, room: u64) -> Result<Dataset, esker::Error> {
    let mut def = create(store, version, room)?;
    let time = def.add_dim("time", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(6))?;
    let f = def.add_var("f", ExternalType::Double, &[x])?;
    let a = def.add_var("a", ExternalType::Short, &[time, x])?;
    let b = def.add_var("b", ExternalType::Byte, &[time])?;
    def.put_attr(a, "units", "K")?;
    let mut ds = def.enddef()?;
    ds.put(f, &Selection::all(), &[0.5, 1.5, 2.5, 3.5, 4.5, 5.5])?;
    ds.append(a, &(0..18).collect::<Vec<i16>>())?;
    ds.put(b, &Selection::all(), &[1i8, 2, 3])?;
    ds.sync()?;
    Ok(ds)
}

/// What is there before, and what then happens. A call that failed is made again, as a
/// program would that found room on its disk.
struct Scenario {
    name: &'static str,
    before: fn(Arc<dyn Store>, Version) -> Done,
    act: fn(Arc<dyn Store>, Version) -> Done,
}

fn nothing(_: Arc<dyn Store>, _: Version) -> Done {
    Ok(())
}

fn roomy(store: Arc<dyn Store>, version: Version) -> Done {
    written(store, version, 400).map(drop)
}

fn tight(store: Arc<dyn Store>, version: Version) -> Done {
    written(store, version, 0).map(drop)
}

/// Calls `enddef`, once more if it fails.
fn enddef(def: esker::Define) -> Result<Dataset, esker::Error> {
    match def.enddef() {
        Ok(ds) => Ok(ds),
        Err(failed) => Ok(failed.define.enddef()?),
    }
}

fn create_it(store: Arc<dyn Store>, version: Version) -> Done {
    let mut def = match create(store.clone(), version, 0) {
        Ok(def) => def,
        Err(_) => create(store, version, 0)?,
    };
    let x = def.add_dim("x", DimLen::Fixed(3))?;
    def.add_var("new", ExternalType::Int, &[x])?;
    enddef(def)?.close()
}

fn change_attribute(store: Arc<dyn Store>, _: Version) -> Done {
    let mut def = open(store)?.redef()?;
    def.put_attr(Owner::Global, "title", "a title that makes the header longer")?;
    enddef(def)?.close()
}

fn shorten_header(store: Arc<dyn Store>, _: Version) -> Done {
    let mut def = open(store)?.redef()?;
    def.del_attr(VarId(1), "units")?;
    def.rename_var("f", "g")?;
    enddef(def)?.close()
}

fn add_fixed(store: Arc<dyn Store>, _: Version) -> Done {
    let mut def = open(store)?.redef()?;
    let y = def.add_dim("y", DimLen::Fixed(5))?;
    def.add_var("h", ExternalType::Int, &[y])?;
    enddef(def)?.close()
}

fn add_record(store: Arc<dyn Store>, _: Version) -> Done {
    let mut def = open(store)?.redef()?;
    let time = def.schema().dim("time").unwrap();
    def.add_var("c", ExternalType::Float, &[time])?;
    let unfilled = def.add_var("d", ExternalType::Float, &[time])?;
    def.set_fill(unfilled, FillMode::NoFill)?;
    enddef(def)?.close()
}

const REDEFINITIONS: [Scenario; 7] = [
    Scenario { name: "create", before: nothing, act: create_it },
    Scenario { name: "replace", before: tight, act: create_it },
    Scenario { name: "attribute in place", before: roomy, act: change_attribute },
    Scenario { name: "attribute that moves data", before: tight, act: change_attribute },
    Scenario { name: "shorter header", before: tight, act: shorten_header },
    Scenario { name: "fixed variable", before: roomy, act: add_fixed },
    Scenario { name: "record variable", before: roomy, act: add_record },
];

/// Runs a scenario with a fault at every call, and hands the store and what was seen before
/// and after an undisturbed run to `check`.
fn with_every_fault(
    scenario: &Scenario,
    version: Version,
    check: impl Fn(&MemoryStore, Fault, &Done, &Option<Seen>, &Option<Seen>, &str),
) {
    let store = MemoryStore::default();
    (scenario.before)(Arc::new(store.clone()), version).unwrap();
    let old = see(&store, false);
    let counting = FaultyStore::new(store.clone(), u64::MAX, Fault::Kill);
    (scenario.act)(Arc::new(counting.clone()), version).unwrap();
    let new = see(&store, false);
    assert_ne!(old, new);
    assert!(counting.calls() > 0);
    for at in 0..counting.calls() {
        for fault in FAULTS {
            let store = MemoryStore::default();
            (scenario.before)(Arc::new(store.clone()), version).unwrap();
            let faulty = FaultyStore::new(store.clone(), at, fault);
            let done = (scenario.act)(Arc::new(faulty), version);
            let what = format!("{}, {version}, {fault:?} at call {at}", scenario.name);
            check(&store, fault, &done, &old, &new, &what);
        }
    }
}

fn require_either(seen: Option<Seen>, old: &Option<Seen>, new: &Option<Seen>, what: &str) {
    assert!(
        seen == *old || seen == *new,
        "{what}: {seen:#?}\n is neither\n{old:#?}\n nor\n{new:#?}"
    );
}

#[test]
fn a_killed_redefinition_leaves_the_old_or_the_new_dataset() {
    for scenario in &REDEFINITIONS {
        for version in Version::ALL {
            with_every_fault(scenario, version, |store, _, _, old, new, what| {
                require_either(see(store, false), old, new, &format!("{what}, for reading"));
                require_either(see(store, true), old, new, &format!("{what}, for writing"));
                // What was found once is found again.
                assert_eq!(see(store, false), see(store, true), "{what}");
            });
        }
    }
}

#[test]
fn a_loss_of_power_in_a_redefinition_leaves_the_old_or_the_new_dataset() {
    for scenario in &REDEFINITIONS {
        for version in Version::ALL {
            with_every_fault(scenario, version, |store, _, _, old, new, what| {
                store.lose_power();
                require_either(see(store, false), old, new, &format!("{what}, for reading"));
                require_either(see(store, true), old, new, &format!("{what}, for writing"));
            });
        }
    }
}

#[test]
fn a_disk_that_reorders_what_was_not_synced_loses_nothing() {
    // But for a dataset where there was none: there is nothing to lose.
    for scenario in REDEFINITIONS.iter().filter(|s| s.name != "create") {
        for version in Version::ALL {
            // Of the dataset, its journal and a new file beside it some reach the disk early,
            // and perhaps all names do.
            for early in 0..16 {
                with_every_fault(scenario, version, |store, _, _, old, new, what| {
                    if early & 8 != 0 {
                        store.sync_names(Path::new(PATH)).unwrap();
                    }
                    store.lose_power_but(|path| {
                        let name = path.to_string_lossy();
                        let bit = match () {
                            () if name.ends_with("-redef") => 1,
                            () if name.ends_with("-new") => 2,
                            () => 4,
                        };
                        early & bit != 0
                    });
                    require_either(see(store, true), old, new, &format!("{what}, {early:04b}"));
                });
            }
        }
    }
}

#[test]
fn a_failed_enddef_can_be_made_again() {
    for scenario in &REDEFINITIONS {
        for version in Version::ALL {
            with_every_fault(scenario, version, |store, fault, done, _, new, what| {
                if matches!(fault, Fault::Fail(_) | Fault::FailHalf(_)) {
                    assert!(done.is_ok(), "{what}: {done:?}");
                    assert_eq!(see(store, false), *new, "{what}");
                    // A journal whose removal failed is harmless, and the next one removes it.
                    assert_eq!(see(store, true), *new, "{what}");
                    assert_eq!(store.list(), [Path::new(PATH)], "{what}");
                }
            });
        }
    }
}

#[test]
fn a_recovery_that_is_killed_is_finished_by_the_next() {
    let scenario = &REDEFINITIONS[2];
    let version = Version::Cdf2;
    with_every_fault(scenario, version, |_, _, _, old, new, _| {
        // The same fault again, and then every fault while the dataset is opened for writing.
        for first in 0..20 {
            for (second, fault) in (0..8).flat_map(|n| FAULTS.map(|f| (n, f))) {
                let store = MemoryStore::default();
                (scenario.before)(Arc::new(store.clone()), version).unwrap();
                let faulty = FaultyStore::new(store.clone(), first, Fault::Tear);
                let _ = (scenario.act)(Arc::new(faulty), version);
                let faulty = FaultyStore::new(store.clone(), second, fault);
                let opened = open(Arc::new(faulty)).map(drop);
                let what = format!("torn at {first}, {fault:?} at {second}, {opened:?}");
                require_either(see(&store, false), old, new, &what);
                store.lose_power();
                require_either(see(&store, true), old, new, &what);
            }
        }
    });
}

#[test]
fn a_failed_enddef_that_is_given_up_leaves_the_old_dataset() {
    for version in Version::ALL {
        for (room, fault) in
            [0, 400].into_iter().flat_map(|r| FAULTS[2..].iter().map(move |f| (r, *f)))
        {
            for at in 0.. {
                let store = MemoryStore::default();
                written(Arc::new(store.clone()), version, room).unwrap();
                let old = see(&store, false);
                let faulty = FaultyStore::new(store.clone(), at, fault);
                let mut def = open(Arc::new(faulty.clone())).unwrap().redef().unwrap();
                def.put_attr(Owner::Global, "title", "a title that makes the header longer")
                    .unwrap();
                let done = def.enddef();
                let what = format!("{version}, room {room}, call {at}");
                match done {
                    Ok(ds) => {
                        // A failure that does not matter to anybody is no failure.
                        assert_ne!(see(&store, false), old, "{what}");
                        ds.close().unwrap();
                    }
                    Err(failed) => {
                        failed.define.abort().unwrap();
                        assert_eq!(see(&store, false), old, "{what}");
                        assert_eq!(see(&store, true), old, "{what}");
                    }
                }
                if faulty.calls() <= at {
                    break;
                }
            }
        }
    }
}

#[test]
fn what_was_synced_survives_a_loss_of_power() {
    for version in Version::ALL {
        let store = MemoryStore::default();
        let mut ds = written(Arc::new(store.clone()), version, 0).unwrap();
        let first = see(&store, false);
        store.lose_power();
        assert_eq!(see(&store, false), first, "a new dataset, synced");

        let mut def = open(Arc::new(store.clone())).unwrap().redef().unwrap();
        def.put_attr(Owner::Global, "title", "so long that the data have to move").unwrap();
        ds = {
            drop(ds);
            def.enddef().unwrap()
        };
        ds.append(VarId(1), &[7i16; 6]).unwrap();
        ds.sync().unwrap();
        let second = see(&store, false);
        store.lose_power();
        assert_eq!(see(&store, false), second, "moved, appended, synced");
    }
}

/// Every value is the old or the new one, and nothing else changed.
fn require_between(seen: &Seen, old: &Seen, new: &Seen, what: &str) {
    assert_eq!(seen.schema, old.schema, "{what}");
    assert_eq!(seen.records, old.records, "{what}");
    for ((seen, old), new) in seen.values.iter().zip(&old.values).zip(&new.values) {
        let (s, o, n) = (seen.native_bytes(), old.native_bytes(), new.native_bytes());
        // Byte by byte: a torn write may end inside a value.
        for ((s, o), n) in s.iter().zip(o).zip(n) {
            assert!(s == o || s == n, "{what}: {s:?} is neither {o:?} nor {n:?}");
        }
    }
}

fn put_values(store: Arc<dyn Store>, _: Version) -> Done {
    let mut ds = open(store)?;
    let strided = Selection::strided(&[0, 1], &[3, 2], &[1, 3]);
    let first = ds.put(VarId(1), &strided, &[100i16, 101, 102, 103, 104, 105]);
    first.or_else(|_| ds.put(VarId(1), &strided, &[100i16, 101, 102, 103, 104, 105]))?;
    let all = Selection::all();
    let second = ds.put(VarId(0), &all, &[9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
    second.or_else(|_| ds.put(VarId(0), &all, &[9.0, 8.0, 7.0, 6.0, 5.0, 4.0]))?;
    ds.close()
}

#[test]
fn a_killed_put_changes_nothing_but_what_it_puts() {
    let scenario = Scenario { name: "put", before: tight, act: put_values };
    for version in Version::ALL {
        with_every_fault(&scenario, version, |store, fault, done, old, new, what| {
            let (Some(old), Some(new)) = (old, new) else { unreachable!() };
            let seen = see(store, false).unwrap();
            match fault {
                Fault::Fail(_) | Fault::FailHalf(_) => {
                    assert!(done.is_ok(), "{what}: {done:?}");
                    assert_eq!(seen, *new, "{what}");
                }
                _ => require_between(&seen, old, new, what),
            }
            store.lose_power();
            require_between(&see(store, true).unwrap(), old, new, what);
        });
    }
}

fn append_records(store: Arc<dyn Store>, _: Version) -> Done {
    let mut ds = open(store)?;
    let data: Vec<i16> = (100..112).collect();
    let first = ds.append(VarId(1), &data);
    first.or_else(|_| ds.append(VarId(1), &data))?;
    ds.close()
}

#[test]
fn a_killed_append_leaves_the_old_records_and_perhaps_the_new() {
    for (name, before) in [("packed", tight as fn(_, _) -> _), ("roomy", roomy)] {
        let scenario = Scenario { name, before, act: append_records };
        for version in Version::ALL {
            with_every_fault(&scenario, version, |store, fault, done, old, new, what| {
                let seen = see(store, false);
                if matches!(fault, Fault::Fail(_) | Fault::FailHalf(_)) {
                    assert!(done.is_ok(), "{what}: {done:?}");
                    assert_eq!(seen, *new, "{what}");
                }
                require_either(seen, old, new, what);
                require_either(see(store, true), old, new, what);
                store.lose_power();
                require_either(see(store, false), old, new, what);
            });
        }
    }
}

#[test]
fn a_new_dataset_forgets_the_interrupted_redefinition_of_the_one_it_replaces() {
    for at in 0..20 {
        let store = MemoryStore::default();
        roomy(Arc::new(store.clone()), Version::Cdf1).unwrap();
        let faulty = FaultyStore::new(store.clone(), at, Fault::Tear);
        let _ = change_attribute(Arc::new(faulty), Version::Cdf1);
        let counting = FaultyStore::new(store.clone(), u64::MAX, Fault::Kill);
        create_it(Arc::new(counting.clone()), Version::Cdf5).unwrap();
        let new = see(&store, false);
        assert_eq!(see(&store, true), new, "torn at {at}");
        // And a kill on the way there loses neither.
        for second in 0..counting.calls() {
            let store = MemoryStore::default();
            roomy(Arc::new(store.clone()), Version::Cdf1).unwrap();
            let faulty = FaultyStore::new(store.clone(), at, Fault::Tear);
            let _ = change_attribute(Arc::new(faulty), Version::Cdf1);
            let faulty = FaultyStore::new(store.clone(), second, Fault::Kill);
            let _ = create_it(Arc::new(faulty), Version::Cdf5);
            let what = format!("torn at {at}, killed at {second}");
            let seen = see(&store, true);
            let is_first = seen.as_ref().is_some_and(|s| s.values.len() == 3);
            let is_new = seen == new;
            assert!(is_first || is_new, "{what}");
            assert_eq!(seen.as_ref().map(|s| s.schema.version == Version::Cdf5), Some(is_new));
        }
    }
}

#[test]
fn a_journal_outlives_neither_its_dataset_nor_the_next_one() {
    for at in 0..20 {
        let store = MemoryStore::default();
        roomy(Arc::new(store.clone()), Version::Cdf1).unwrap();
        let faulty = FaultyStore::new(store.clone(), at, Fault::Tear);
        let _ = change_attribute(Arc::new(faulty), Version::Cdf1);
        // Somebody removes the file, and knows nothing of journals.
        store.remove(Path::new(PATH)).unwrap();
        create_it(Arc::new(store.clone()), Version::Cdf2).unwrap();
        assert!(see(&store, true).is_some(), "torn at {at}");
        let journal = esker::journal_path(Path::new(PATH));
        assert!(!store.exists(&journal).unwrap());
    }
}

#[test]
fn a_creation_that_is_given_up_leaves_what_was_there() {
    for clobber in [true, false] {
        let store = MemoryStore::default();
        let options = || CreateOptions::new().clobber(clobber).store(Arc::new(store.clone()));
        Dataset::create(PATH, options()).unwrap().abort().unwrap();
        assert_eq!(store.list(), <[&Path; 0]>::default(), "clobber {clobber}");
        // What is committed stays, and the name is taken.
        Dataset::create(PATH, options()).unwrap().enddef().unwrap().close().unwrap();
        let before = store.bytes(Path::new(PATH));
        match Dataset::create(PATH, options()) {
            Ok(def) => {
                assert!(clobber);
                def.abort().unwrap();
            }
            Err(_) => assert!(!clobber),
        }
        assert_eq!(store.list(), [Path::new(PATH)]);
        assert_eq!(store.bytes(Path::new(PATH)), before);
    }
}
