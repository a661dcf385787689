//! Datasets with sub-files after something went wrong: every change of the store fails once, or is
//! the last one of the process, with or without a loss of power. Afterwards there is the dataset of
//! before or the one of after, and nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, OpenOptions, Owner,
    RecoverOptions, Recovery, Schema, Selection, Values, VarId,
};
use esker_format::sealed::decomposed::{Counts, put_counts};
use esker_store::{CreateMode, Fault, FaultyStore, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/many.nc";
const FULL: io::ErrorKind = io::ErrorKind::StorageFull;
const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Tear, Fault::Fail(FULL), Fault::FailHalf(FULL)];

/// No disk and no page cache tears what lies in one of these.
const SECTOR: u64 = 512;

type Done = Result<(), Error>;
type Step = fn(&Arc<dyn Communicator>, &Arc<dyn Store>) -> Done;

/// A dataset in so many sub-files, without values.
fn create(
    comm: &Arc<dyn Communicator>,
    store: &Arc<dyn Store>,
    subfiles: &str,
    seed: i32,
) -> Result<Dataset, Error> {
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", subfiles);
    let options = CreateOptions::new().comm(comm.clone()).store(store.clone()).hints(hints);
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut def = Dataset::create(PATH, options)?;
    let time = def.add_dim("time", DimLen::Unlimited)?;
    let y = def.add_dim("y", DimLen::Fixed(2))?;
    let x = def.add_dim("x", DimLen::Fixed(7))?;
    let mine = Selection::strided(&[0, me], &[2, (6 - me).div_ceil(ranks)], &[1, ranks]);
    let map = def.add_decomposition(&[y, x], &mine)?;
    def.add_decomposed_var("f", ExternalType::Short, &[], map)?;
    def.add_decomposed_var("t", ExternalType::Int, &[time], map)?;
    def.add_var("plain", ExternalType::Int, &[x])?;
    def.add_var("step", ExternalType::Int, &[time])?;
    def.put_attr(Owner::Global, "seed", seed)?;
    // A call that failed is made again, as a program would that found room on its disk.
    match def.enddef() {
        Ok(ds) => Ok(ds),
        Err(failed) => Ok(failed.define.enddef()?),
    }
}

/// Records `first..first + count` of `t` and `step`.
fn append(ds: &mut Dataset, comm: &dyn Communicator, first: u64, count: u64) -> Done {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let (t, step) = (ds.var("t")?, ds.var("step")?);
    let elements = 2 * (6 - me).div_ceil(ranks);
    let of = |i: u64| (100 * (first + i / elements) + 10 * me + i % elements) as i32;
    let values: Vec<i32> = (0..count * elements).map(of).collect();
    ds.put_all(t, &Selection::blob(&[first], &[count]), &values)?;
    let mine = if me == 0 { Selection::slab(&[first], &[count]) } else { Selection::none() };
    let steps: Vec<i32> = (first..first + count).filter(|_| me == 0).map(|i| i as i32).collect();
    ds.put_all(step, &mine, &steps)
}

fn reopened(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(true).comm(comm.clone()).store(store.clone());
    Dataset::open_with(PATH, options)
}

fn base(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    let mut ds = create(comm, store, "2", 1)?;
    let f = ds.var("f")?;
    let elements = 2 * (6 - comm.rank()).div_ceil(comm.size());
    ds.put_all(f, &Selection::blob(&[], &[]), &vec![5i16; elements])?;
    append(&mut ds, &**comm, 0, 2)?;
    ds.sync()?;
    ds.close()
}

fn nothing(_: &Arc<dyn Communicator>, _: &Arc<dyn Store>) -> Done {
    Ok(())
}

fn replace_by(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>, subfiles: &str) -> Done {
    create(comm, store, subfiles, 2)?.close()
}

fn with_as_many(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    replace_by(comm, store, "2")
}

fn with_fewer(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    replace_by(comm, store, "1")
}

fn with_more(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    replace_by(comm, store, "3")
}

fn with_none(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    replace_by(comm, store, "0")
}

fn more_records(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    let mut ds = reopened(comm, store)?;
    // The number of records is told once for both, or a reader could see one without the other.
    append(&mut ds, &**comm, 2, 1)?;
    ds.sync()?;
    ds.close()
}

fn amend(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Done {
    let mut ds = reopened(comm, store)?;
    ds.amend(|schema| schema.put_attr(Owner::Global, "title", "another".into()))?;
    ds.close()
}

/// What is there, what then happens, and how many sub-files there are after it, on enough ranks.
const STEPS: [(&str, Step, Step, usize); 7] = [
    ("create", nothing, with_as_many, 2),
    ("replace", base, with_as_many, 2),
    ("replace with fewer", base, with_fewer, 1),
    ("replace with more", base, with_more, 3),
    ("replace with none", base, with_none, 0),
    ("append", base, more_records, 2),
    ("amend", base, amend, 2),
];

/// Everything a reader sees.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    schema: Schema,
    records: u64,
    values: Vec<Values>,
}

fn see(store: &MemoryStore, writable: bool, what: &str) -> Option<Seen> {
    if !store.exists(Path::new(PATH)).unwrap() {
        return None;
    }
    let options = OpenOptions::new().writable(writable).store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    let read = |v: VarId| ds.get_values(v, &Selection::all());
    let values = (0..ds.schema().vars.len()).map(|v| read(VarId(v)));
    let values = values.collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{what}: {e}"));
    // How many records were begun is not what a reader wants to know.
    let mut schema = ds.schema().clone();
    put_counts(&mut schema, None, Counts { begun: 0, counted: 0 }).unwrap();
    Some(Seen { schema, records: ds.numrecs(), values })
}

/// The same, without what a record has that was being written: it is counted with its first variable.
fn require_either(seen: &Option<Seen>, old: &Option<Seen>, new: &Option<Seen>, what: &str) {
    let (Some(found), Some(was), Some(is)) = (seen, old, new) else {
        assert!(seen == old || seen == new, "{what}: {seen:#?}");
        return;
    };
    if was.schema != is.schema || found.records == was.records {
        assert!(seen == old || seen == new, "{what}: {seen:#?}");
        return;
    }
    assert_eq!((&found.schema, found.records), (&is.schema, is.records), "{what}");
    for ((found, was), is) in found.values.iter().zip(&was.values).zip(&is.values) {
        let [found, was, is] = [found, was, is].map(|v| v.convert_to::<i64>().unwrap());
        let fill = -2147483647;
        let right = |i: usize| found[i] == is[i] || (i >= was.len() && found[i] == fill);
        assert!(found.len() == is.len() && (0..is.len()).all(right), "{what}: {found:?}");
    }
}

fn prepared(ranks: usize, base: Step) -> MemoryStore {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    on_ranks(ranks, move |comm| base(&comm, &shared).unwrap());
    store
}

/// Runs a step on the prepared dataset with a fault at a call. Gives how many ranks failed and whether the
/// call was made.
fn with_fault(
    ranks: usize,
    (base, step): (Step, Step),
    at: u64,
    fault: Fault,
) -> (MemoryStore, usize, bool) {
    let store = prepared(ranks, base);
    let faulty = FaultyStore::with_sectors(store.clone(), at, fault, SECTOR);
    let shared: Arc<dyn Store> = Arc::new(faulty.clone());
    let failed = on_ranks(ranks, move |comm| step(&comm, &shared).is_err());
    (store, failed.into_iter().filter(|failed| *failed).count(), faulty.calls() > at)
}

fn subfile(number: usize) -> PathBuf {
    PathBuf::from(format!("/run/many.{number}.nc"))
}

fn growing(store: &MemoryStore) -> Vec<PathBuf> {
    let hidden = |path: &PathBuf| path.to_string_lossy().contains(".esker-");
    store.list().into_iter().filter(hidden).collect()
}

fn recovered(store: &MemoryStore) -> Recovery {
    let options = RecoverOptions::new().dir("/run").store(Arc::new(store.clone()));
    esker::recover(PATH, &options).unwrap()
}

/// What was left behind is finished, and can be written.
fn goes_on(store: &MemoryStore, ranks: usize, seen: &Option<Seen>, what: &str) {
    let Some(seen) = seen else { return };
    let recovery = recovered(store);
    assert!(recovery.is_complete(), "{what}: {recovery:?}");
    assert_eq!(see(store, false, what).as_ref(), Some(seen), "{what}");
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap();
    assert!(ds.hidden_subfiles().is_empty() && ds.subfile_faults().is_empty(), "{what}");
    for (path, _) in ds.subfiles() {
        // For everybody else, each is a file with all records.
        let options = OpenOptions::new().store(Arc::new(store.clone()));
        let sub = Dataset::open_with(&path, options).unwrap();
        let t = sub.get_values(sub.var("t").unwrap(), &Selection::all());
        t.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(sub.numrecs(), seen.records, "{what}");
    }
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let records = seen.records;
    let done = on_ranks(ranks, move |comm| -> Done {
        let mut ds = reopened(&comm, &shared)?;
        append(&mut ds, &*comm, records, 1)?;
        ds.close()
    });
    assert!(done.iter().all(Result::is_ok), "{what}: {done:?}");
    let after = see(store, false, what).unwrap();
    assert_eq!(after.records, records + 1, "{what}");
    let steps = after.values.last().unwrap().convert_to::<i64>().unwrap();
    assert_eq!(steps.last(), Some(&(records as i64)), "{what}");
}

fn every_change_may_fail(ranks: usize, faults: &[Fault]) {
    for (name, base, step, subfiles) in STEPS {
        let old = see(&prepared(ranks, base), false, name);
        let (done, failed, _) = with_fault(ranks, (base, step), u64::MAX, Fault::Kill);
        let new = see(&done, false, name);
        assert!(failed == 0 && old != new, "{name}");
        // Nothing of the old one stays, and nothing that was only needed on the way.
        let mut files: Vec<PathBuf> = (0..subfiles.min(ranks)).map(subfile).collect();
        files.push(PathBuf::from(PATH));
        files.sort();
        assert_eq!(done.list(), files, "{name}");
        for at in 0.. {
            let mut hits = 0;
            for fault in faults.iter().copied() {
                let (store, failed, hit) = with_fault(ranks, (base, step), at, fault);
                let what = format!("{name} on {ranks} ranks, {fault:?} at {at}");
                hits += usize::from(hit);
                assert!(failed == 0 || failed == ranks, "{what}: {failed} failed");
                let seen = see(&store, false, &what);
                require_either(&seen, &old, &new, &what);
                if failed == 0 {
                    assert_eq!(seen, new, "{what}");
                }
                // A writer finishes what was begun; what it found is found again.
                let seen = see(&store, true, &what);
                require_either(&seen, &old, &new, &what);
                assert_eq!(see(&store, false, &what), seen, "{what}");
                if !matches!(fault, Fault::Kill | Fault::Tear) {
                    assert_eq!(growing(&store), [] as [PathBuf; 0], "{what}");
                }
                goes_on(&store, ranks, &seen, &what);
            }
            if hits == 0 {
                assert!(at > 2, "{name}: only {at} faults were tried");
                break;
            }
        }
    }
}

#[test]
fn every_change_of_one_rank_may_fail() {
    every_change_may_fail(1, &FAULTS);
}

#[test]
fn every_change_of_three_ranks_may_fail() {
    every_change_may_fail(3, &[Fault::Tear, Fault::FailHalf(FULL)]);
}

/// Of the file itself, its sub-files, what grows beside them and all names, some had reached the disk
/// though nobody had promised it.
#[test]
fn a_loss_of_power_leaves_what_the_last_sync_promised() {
    // Where there was nothing, there is nothing to lose.
    for (ranks, early) in [(1, (0..16).collect()), (3, vec![0, 2, 9, 13])] {
        for (name, base, step, _) in &STEPS[1..] {
            let old = see(&prepared(ranks, *base), false, name);
            let (done, _, _) = with_fault(ranks, (*base, *step), u64::MAX, Fault::Kill);
            let new = see(&done, false, name);
            for at in 0.. {
                let mut hits = 0;
                for early in early.iter() {
                    let (store, _, hit) = with_fault(ranks, (*base, *step), at, Fault::Kill);
                    hits += usize::from(hit);
                    let what = format!("{name} on {ranks} ranks, no power at {at}, early {early}");
                    if early & 8 != 0 {
                        store.sync_names(Path::new(PATH)).unwrap();
                    }
                    store.lose_power_but(|path| {
                        let text = path.to_string_lossy();
                        match (text.contains(".esker-"), path == Path::new(PATH)) {
                            (true, _) => early & 4 != 0,
                            (_, true) => early & 2 != 0,
                            _ => early & 1 != 0,
                        }
                    });
                    powerless(&store, ranks, &old, &new, &what);
                }
                if hits == 0 {
                    break;
                }
            }
        }
    }
}

/// The records that a sync had promised are there. Where the file says that there are more, and a
/// sub-file has them not, that is told.
fn powerless(
    store: &MemoryStore,
    ranks: usize,
    old: &Option<Seen>,
    new: &Option<Seen>,
    what: &str,
) {
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    let faults = ds.subfile_faults();
    if faults.is_empty() {
        require_either(&see(store, false, what), old, new, what);
        let seen = see(store, true, what);
        require_either(&seen, old, new, what);
        return goes_on(store, ranks, &seen, what);
    }
    let (was, is) = (old.as_ref().unwrap(), new.as_ref().unwrap());
    assert!(was.schema == is.schema && ds.numrecs() == is.records, "{what}: {faults:?}");
    assert!(faults[0].1.contains("2 whole records of 3"), "{what}: {faults:?}");
    let t = ds.var("t").unwrap();
    let promised = ds.get_values(t, &Selection::slab(&[0, 0, 0], &[was.records, 2, 7]));
    assert_eq!(&promised.unwrap(), &was.values[t.0], "{what}");
    let error = ds.get_values(t, &Selection::all()).unwrap_err().to_string();
    assert!(error.contains(faults[0].0.to_str().unwrap()), "{what}: {error}");
    // Recovery says the same and changes nothing.
    let before: Vec<_> = store.list().iter().map(|path| store.bytes(path)).collect();
    assert_eq!(recovered(store).subfiles, faults, "{what}");
    let after: Vec<_> = store.list().iter().map(|path| store.bytes(path)).collect();
    assert!(before == after, "{what}");
}

#[test]
fn recovery_tells_which_sub_file_is_missing() {
    let store = prepared(3, base);
    store.remove(&subfile(1)).unwrap();
    let recovery = recovered(&store);
    assert!(!recovery.is_complete());
    let [(path, why)] = &recovery.subfiles[..] else { panic!("{recovery:?}") };
    assert_eq!(path, &subfile(1));
    assert!(why.contains("not found"), "{why}");
}

#[test]
fn a_file_that_only_has_the_name_of_a_sub_file_is_never_replaced_or_removed() {
    let foreign = |store: &MemoryStore, path: &Path| {
        let options = CreateOptions::new().store(Arc::new(store.clone()));
        Dataset::create(path, options).unwrap().enddef().unwrap().close().unwrap();
        store.bytes(path).unwrap()
    };
    // In the way of a sub-file: nothing happens.
    let store = prepared(1, nothing);
    let bytes = foreign(&store, &subfile(0));
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let failed = on_ranks(1, move |comm| with_fewer(&comm, &shared).unwrap_err().to_string());
    assert!(failed[0].contains("many.0.nc: it is a file of its own"), "{failed:?}");
    assert_eq!((store.list(), store.bytes(&subfile(0))), (vec![subfile(0)], Some(bytes)));
    // Where a sub-file of the dataset that is replaced was, and where none ever was.
    let store = prepared(3, base);
    let bytes = [1, 5].map(|number| foreign(&store, &subfile(number)));
    let text = esker_store::draft_path(&subfile(1), esker_store::DraftForm::Sub, 1);
    store.create(&text, CreateMode::New).unwrap().write_at(0, b"no sub-file").unwrap();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    on_ranks(3, move |comm| with_none(&comm, &shared).unwrap());
    assert_eq!(store.list(), [text, subfile(1), subfile(5), PathBuf::from(PATH)]);
    assert_eq!([1, 5].map(|number| store.bytes(&subfile(number)).unwrap()), bytes);
}

#[test]
fn what_killed_creations_left_is_removed_by_the_next_one() {
    // Three sub-files grow, and the process dies before the file that names them has its name.
    let (store, at) = (0..)
        .find_map(|at| {
            let (store, _, hit) = with_fault(3, (base, with_more), at, Fault::Kill);
            assert!(hit, "there was never such a moment");
            (growing(&store).len() == 4).then_some((store, at))
        })
        .unwrap();
    assert!(at > 0);
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    on_ranks(3, move |comm| with_fewer(&comm, &shared).unwrap());
    assert_eq!(store.list(), [subfile(0), PathBuf::from(PATH)]);
}

#[test]
fn sub_files_that_have_not_taken_their_names_are_not_lost_to_the_next_creation() {
    // The file that names them has its name, they have not, and then the next creation fails.
    let killed = |at| with_fault(3, (base, with_more), at, Fault::Kill);
    let found = (0..).find_map(|at| {
        let (store, _, hit) = killed(at);
        assert!(hit, "there was never such a moment");
        let ds = Dataset::open_with(PATH, OpenOptions::new().store(Arc::new(store.clone())));
        (!ds.unwrap().hidden_subfiles().is_empty()).then_some(store)
    });
    let store = found.unwrap();
    let seen = see(&store, false, "killed");
    let faulty = FaultyStore::with_sectors(store.clone(), 12, Fault::Kill, SECTOR);
    let shared: Arc<dyn Store> = Arc::new(faulty);
    let failed = on_ranks(3, move |comm| replace_by(&comm, &shared, "3").is_err());
    assert_eq!(failed, [true; 3]);
    assert_eq!(see(&store, false, "killed again"), seen);
}
