//! One rank's failure is every rank's error; nobody hangs, nothing half-done is believed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{
    Char, Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, FillMode, Hints,
    OpenOptions, Owner, Requests, Schema, Selection, Values, VarId,
};
use esker_comm::LaunchError;
use esker_store::{
    Fault, FaultyStore, File, FileLayer, Layer, LocalStore, MemoryStore, Store, StoreError,
};
use esker_testkit::ranks::{launched, on_ranks};
use tempfile::TempDir;

const RANKS: [usize; 3] = [2, 4, 7];

fn file() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    (dir, path)
}

/// Forces pieces through owners, or forbids it.
fn hints(exchange: bool) -> Hints {
    let mut hints = Hints::default();
    let switch = if exchange { "enable" } else { "disable" };
    hints.set("romio_cb_write", switch);
    hints.set("romio_cb_read", switch);
    hints.set("cb_buffer_size", "256");
    hints.set("striping_unit", "64");
    hints
}

/// A dataset with a value for each rank in a fixed and in a record variable.
fn written(
    path: &Path,
    comm: &Arc<dyn Communicator>,
    hints: Hints,
    store: Option<Arc<dyn Store>>,
) -> (Dataset, VarId, VarId) {
    let mut options = CreateOptions::new().comm(comm.clone()).hints(hints);
    if let Some(store) = store {
        options = options.store(store);
    }
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(comm.size() as u64)).unwrap();
    let fixed = def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    let record = def.add_var("record", ExternalType::Double, &[t, x]).unwrap();
    def.add_var("text", ExternalType::Char, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let me = comm.rank() as u64;
    ds.put_all(fixed, &Selection::element(&[me]), &[me as i32]).unwrap();
    ds.put_all(record, &Selection::slab(&[0, me], &[2, 1]), &[me as f64, -1.0]).unwrap();
    ds.sync().unwrap();
    (ds, fixed, record)
}

/// What `written` wrote, of so many ranks.
fn check_written(ds: &Dataset, ranks: usize) {
    let fixed: Vec<i32> = ds.get(ds.var("fixed").unwrap(), &Selection::all()).unwrap();
    assert_eq!(fixed, (0..ranks as i32).collect::<Vec<_>>());
    let record: Vec<f64> = ds.get(ds.var("record").unwrap(), &Selection::all()).unwrap();
    let mut expected: Vec<f64> = (0..ranks).map(|r| r as f64).collect();
    expected.resize(2 * ranks, -1.0);
    assert_eq!(record, expected);
    assert_eq!(ds.numrecs(), 2);
}

/// A collective call that goes wrong on the last rank: every rank fails, with the same words,
/// the file is as before, and the dataset goes on working.
fn everyone_fails(
    words: &'static str,
    call: impl Fn(&mut Dataset, bool, u64) -> Result<(), Error> + Send + Sync + Copy + 'static,
) {
    for ranks in RANKS {
        for exchange in [false, true] {
            let (_dir, path) = file();
            let errors = on_ranks(ranks, move |comm| {
                let (mut ds, fixed, _) = written(&path, &comm, hints(exchange), None);
                let before = std::fs::read(&path).unwrap();
                comm.barrier().unwrap();
                let bad = comm.rank() + 1 == comm.size();
                let error = call(&mut ds, bad, comm.rank() as u64).unwrap_err();
                assert_eq!(matches!(error, Error::OtherRank { .. }), !bad, "{error}");
                comm.barrier().unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), before, "nothing was written");
                check_written(&ds, ranks);
                comm.barrier().unwrap();
                let me = comm.rank() as u64;
                ds.put_all(fixed, &Selection::element(&[me]), &[10 + me as i32]).unwrap();
                let found: Vec<i32> = ds.get_all(fixed, &Selection::all()).unwrap();
                assert_eq!(found, (10..10 + ranks as i32).collect::<Vec<_>>());
                ds.close().unwrap();
                error.to_string()
            });
            let own = errors.last().unwrap();
            assert!(own.contains(words), "{own}");
            let others = format!("rank {} failed: {own}", ranks - 1);
            assert!(errors[..ranks - 1].iter().all(|e| *e == others), "{errors:?}");
        }
    }
}

#[test]
fn a_bad_hyperslab_of_one_rank() {
    everyone_fails("goes beyond it", |ds, bad, me| {
        let var = ds.var("fixed").unwrap();
        let at = if bad { 1000 } else { me };
        ds.put_all(var, &Selection::element(&[at]), &[99i32])
    });
    everyone_fails("goes beyond it", |ds, bad, me| {
        let var = ds.var("record").unwrap();
        let at = if bad { 2 } else { 0 };
        ds.get_all::<f64>(var, &Selection::element(&[at, me])).map(drop)
    });
}

#[test]
fn a_missing_variable_of_one_rank() {
    everyone_fails("there is no variable number 77", |ds, bad, me| {
        let var = if bad { VarId(77) } else { ds.var("fixed").unwrap() };
        ds.put_all(var, &Selection::element(&[me]), &[99i32])
    });
    everyone_fails("there is no variable number 77", |ds, bad, me| {
        let var = if bad { VarId(77) } else { ds.var("fixed").unwrap() };
        ds.get_all::<i32>(var, &Selection::element(&[me])).map(drop)
    });
}

#[test]
fn numbers_for_text_on_one_rank() {
    everyone_fails("\"text\"", |ds, bad, me| {
        let var = ds.var("text").unwrap();
        match bad {
            true => ds.put_all(var, &Selection::element(&[me]), &[99i32]),
            false => ds.put_all(var, &Selection::element(&[me]), &[Char(b'a')]),
        }
    });
}

#[test]
fn memory_of_another_length_on_one_rank() {
    everyone_fails("the buffer 3", |ds, bad, me| {
        let var = ds.var("fixed").unwrap();
        let data = [9i32; 3];
        ds.put_all(var, &Selection::element(&[me]), &data[..if bad { 3 } else { 1 }])
    });
}

#[test]
fn a_request_from_before_a_redefinition_on_one_rank() {
    for ranks in RANKS {
        let (_dir, path) = file();
        on_ranks(ranks, move |comm| {
            let (ds, fixed, _) = written(&path, &comm, hints(true), None);
            let me = comm.rank() as u64;
            let data = [50i32];
            let mut old = Requests::new();
            ds.iput(&mut old, fixed, &Selection::element(&[me]), &data).unwrap();
            let mut ds = ds.redef().unwrap().enddef().unwrap();
            let mut queue = Requests::new();
            ds.iput(&mut queue, fixed, &Selection::element(&[me]), &data).unwrap();
            let error = match me {
                0 => ds.wait_all(&mut old),
                _ => ds.wait_all(&mut queue),
            };
            let error = error.unwrap_err().to_string();
            assert!(error.contains("redefined"), "{error}");
            check_written(&ds, ranks);
            ds.close().unwrap();
        });
    }
}

/// Found by reading: a queue that was filled for one dataset wrote its bytes into another.
#[test]
fn a_queue_of_another_dataset_is_refused() {
    let (dir, path) = file();
    on_ranks(2, move |comm| {
        let (first, _, _) = written(&path, &comm, hints(true), None);
        let other = path.with_file_name("other.nc");
        let (mut second, _, _) = written(&other, &comm, hints(true), None);
        let data = [1e100];
        let mut queue = Requests::new();
        let var = first.var("record").unwrap();
        let at = Selection::element(&[0, comm.rank() as u64]);
        first.iput(&mut queue, var, &at, &data).unwrap();
        let error = second.wait_all(&mut queue).unwrap_err();
        assert!(error.to_string().contains("another dataset"), "{error}");
        check_written(&second, 2);
        first.close().unwrap();
        second.close().unwrap();
    });
    drop(dir);
}

#[test]
fn a_dataset_for_reading_is_not_written() {
    let (_dir, path) = file();
    on_ranks(3, move |comm| {
        let (ds, _, _) = written(&path, &comm, hints(false), None);
        ds.close().unwrap();
        let options = OpenOptions::new().comm(comm.clone());
        let mut ds = Dataset::open_with(&path, options).unwrap();
        let var = ds.var("fixed").unwrap();
        let error = ds.put_all(var, &Selection::element(&[0]), &[1i32]).unwrap_err();
        assert!(error.to_string().contains("open for reading only"), "{error}");
        check_written(&ds, 3);
        let error = ds.redef().map(drop).unwrap_err();
        assert!(error.to_string().contains("open for reading only"), "{error}");
    });
}

#[test]
fn values_out_of_range_are_the_ranks_own_error_and_all_is_moved() {
    for ranks in RANKS {
        for exchange in [false, true] {
            let (_dir, path) = file();
            on_ranks(ranks, move |comm| {
                let (mut ds, fixed, record) = written(&path, &comm, hints(exchange), None);
                let me = comm.rank() as u64;
                let bad = me == 1;
                let value = if bad { 1e20 } else { 5.0 };
                let outcome = ds.put_all(fixed, &Selection::element(&[me]), &[value]);
                assert_eq!(matches!(outcome, Err(Error::Range { .. })), bad, "{outcome:?}");
                let found: Vec<i32> = ds.get_all(fixed, &Selection::all()).unwrap();
                let mut expected = vec![5; ranks];
                expected[1] = -2_147_483_647;
                assert_eq!(found, expected);
                // And the other way.
                let value = if bad { 300.0 } else { 7.0 };
                ds.put_all(record, &Selection::element(&[1, me]), &[value]).unwrap();
                let mut out = [1u8];
                let outcome = ds.get_all_into(record, &Selection::element(&[1, me]), &mut out);
                assert_eq!(matches!(outcome, Err(Error::Range { .. })), bad, "{outcome:?}");
                assert_eq!(out[0], if bad { 255 } else { 7 });
                ds.close().unwrap();
            });
        }
    }
}

/// Found by reading: ranks that had made records independently did not fill, and so left the
/// others waiting in the next collective write, or the others filled over what they had written.
#[test]
fn records_made_by_one_rank_survive_the_next_collective_write() {
    for ranks in RANKS {
        for exchange in [false, true] {
            let (_dir, path) = file();
            on_ranks(ranks, move |comm| {
                let (mut ds, _, record) = written(&path, &comm, hints(exchange), None);
                let me = comm.rank() as u64;
                if me == 1 {
                    let rows = vec![8.5; 3 * ranks];
                    ds.put(record, &Selection::slab(&[2, 0], &[3, ranks as u64]), &rows).unwrap();
                    assert_eq!(ds.numrecs(), 5);
                }
                comm.barrier().unwrap();
                // Record 7: rows 5 and 6 come filled, rows 2 to 4 are rank 1's.
                ds.put_all(record, &Selection::element(&[7, me]), &[me as f64]).unwrap();
                assert_eq!(ds.numrecs(), 8);
                let rows = Selection::slab(&[2, 0], &[5, ranks as u64]);
                let found: Vec<f64> = ds.get_all(record, &rows).unwrap();
                let mut expected = vec![8.5; 3 * ranks];
                expected.resize(5 * ranks, 9.969_209_968_386_869e36);
                assert_eq!(found, expected);
                ds.close().unwrap();
            });
        }
    }
}

/// Found by reading: a reader that had seen new records tried to write their number.
#[test]
fn a_reader_that_follows_a_writer_reads_collectively() {
    let (_dir, path) = file();
    on_ranks(2, move |comm| {
        let (mut ds, _, record) = written(&path, &comm, hints(true), None);
        let options = OpenOptions::new().comm(comm.clone());
        let mut reader = Dataset::open_with(&path, options).unwrap();
        let me = comm.rank() as u64;
        ds.put_all(record, &Selection::element(&[4, me]), &[me as f64]).unwrap();
        ds.sync().unwrap();
        reader.sync().unwrap();
        assert_eq!(reader.numrecs(), 5);
        let found: Vec<f64> = reader.get_all(record, &Selection::slab(&[4, 0], &[1, 2])).unwrap();
        assert_eq!(found, [0.0, 1.0]);
        reader.close().unwrap();
        ds.close().unwrap();
    });
}

/// The disk of one rank is full at its n-th change: every rank gets an error or none does, and
/// the file has what was safe before.
#[test]
fn a_full_disk_of_one_rank_is_everyones_error() {
    for exchange in [false, true] {
        for victim in [0, 1, 3] {
            for at in 0.. {
                let (_dir, path) = file();
                let opened = path.clone();
                let hit = on_ranks(4, move |comm| {
                    let (ds, _, _) = written(&path, &comm, hints(exchange), None);
                    ds.close().unwrap();
                    let mut options = OpenOptions::new().writable(true).comm(comm.clone());
                    let full = Fault::FailHalf(io::ErrorKind::StorageFull);
                    let faulty = FaultyStore::new(LocalStore, at, full);
                    let mine = comm.rank() == victim;
                    options = options.hints(hints(exchange));
                    if mine {
                        options = options.store(Arc::new(faulty.clone()));
                    }
                    let mut ds = Dataset::open_with(&path, options).unwrap();
                    let record = ds.var("record").unwrap();
                    let me = comm.rank() as u64;
                    let wanted = Selection::slab(&[2, me], &[30, 1]);
                    let outcome = ds.put_all(record, &wanted, &[1.5; 30]);
                    if let Err(error) = &outcome {
                        assert!(error.to_string().contains("injected"), "{error}");
                        check_written(&ds, 4);
                        // Once there is room it can be done again.
                        comm.barrier().unwrap();
                        ds.put_all(record, &wanted, &[2.5; 30]).unwrap();
                    }
                    ds.close().unwrap();
                    (outcome.is_err(), mine && faulty.calls() > at)
                });
                let failed = hit.iter().filter(|(failed, _)| *failed).count();
                let was_hit = hit.iter().any(|(_, hit)| *hit);
                assert!(failed == 0 || failed == 4, "{hit:?}");
                let ds = Dataset::open(&opened).unwrap();
                assert_eq!(ds.numrecs(), 32);
                let rest = Selection::slab(&[2, 0], &[30, 4]);
                let values: Vec<f64> = ds.get(ds.var("record").unwrap(), &rest).unwrap();
                let expected = if failed == 4 { 2.5 } else { 1.5 };
                assert!(values.iter().all(|v| *v == expected), "{values:?}");
                if !was_hit {
                    assert!(at > 0 || victim != 0, "no fault was tried");
                    break;
                }
            }
        }
    }
}

type Step = fn(Arc<dyn Communicator>, Arc<dyn Store>) -> Result<(), Error>;

const PATH: &str = "/run/many.nc";

fn options(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> CreateOptions {
    CreateOptions::new().comm(comm.clone()).store(store.clone()).hints(hints(true))
}

fn base(comm: Arc<dyn Communicator>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut def = Dataset::create(PATH, options(&comm, &store))?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(9))?;
    let f = def.add_var("f", ExternalType::Short, &[x])?;
    let r = def.add_var("r", ExternalType::Float, &[t, x])?;
    let mut ds = def.enddef()?;
    let (me, all) = (comm.rank() as u64, comm.size() as u64);
    let mine = Selection::strided(&[me], &[9u64.saturating_sub(me).div_ceil(all)], &[all]);
    let count = 9usize.saturating_sub(me as usize).div_ceil(all as usize);
    ds.put_all(f, &mine, &vec![3i16; count])?;
    ds.put_all(r, &Selection::slab(&[me, 0], &[1, 9]), &[me as f32; 9])?;
    ds.sync()?;
    ds.close()
}

fn reopened(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(true).comm(comm.clone()).store(store.clone());
    Dataset::open_with(PATH, options.hints(hints(true)))
}

/// A new dataset in place of the old one.
fn create_again(comm: Arc<dyn Communicator>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut def = Dataset::create(PATH, options(&comm, &store))?;
    let x = def.add_dim("x", DimLen::Fixed(5))?;
    def.add_var("new", ExternalType::Int, &[x])?;
    def.enddef()?.close()
}

/// A longer header and new variables: data move.
fn redefine(comm: Arc<dyn Communicator>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut def = reopened(&comm, &store)?.redef()?;
    let x = def.schema().dim("x").unwrap();
    def.add_var(&format!("by{}", comm.rank()), ExternalType::Int, &[x])?;
    def.put_attr(Owner::Global, "title", "t".repeat(300))?;
    def.enddef()?.close()
}

/// A changed attribute of the same length: in place.
fn redefine_in_place(comm: Arc<dyn Communicator>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut def = reopened(&comm, &store)?.redef()?;
    def.rename_var("f", "g")?;
    def.enddef()?.close()
}

/// New records, with everything in them.
fn grow(comm: Arc<dyn Communicator>, store: Arc<dyn Store>) -> Result<(), Error> {
    let mut ds = reopened(&comm, &store)?;
    let r = ds.var("r")?;
    let me = comm.rank() as u64;
    let next = ds.numrecs() + me;
    ds.put_all(r, &Selection::slab(&[next, 0], &[1, 9]), &[7.5f32; 9])?;
    ds.close()
}

#[derive(Debug, Clone, PartialEq)]
struct Seen(Schema, u64, Vec<Values>);

fn see(store: &MemoryStore) -> Option<Seen> {
    if !store.exists(Path::new(PATH)).unwrap() {
        return None;
    }
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap();
    let values = (0..ds.schema().vars.len())
        .map(|v| ds.get_values(VarId(v), &Selection::all()).unwrap())
        .collect();
    Some(Seen(ds.schema().clone(), ds.numrecs(), values))
}

/// Every change that any rank makes fails or is the last one of all ranks, which share a
/// store; afterwards there is the old dataset or the new one.
#[test]
fn every_change_of_a_collective_call_may_fail() {
    let steps: [(&str, Step); 4] = [
        ("create", create_again),
        ("redefine", redefine),
        ("in place", redefine_in_place),
        ("grow", grow),
    ];
    for ranks in [2, 3] {
        for (name, step) in steps {
            for fault in [
                Fault::Fail(io::ErrorKind::StorageFull),
                Fault::FailHalf(io::ErrorKind::StorageFull),
                Fault::Kill,
                Fault::Tear,
            ] {
                let prepared = || {
                    let store = MemoryStore::default();
                    let shared: Arc<dyn Store> = Arc::new(store.clone());
                    on_ranks(ranks, move |comm| base(comm, shared.clone()).unwrap());
                    store
                };
                let run = |store: &MemoryStore, at| {
                    let faulty = FaultyStore::new(store.clone(), at, fault);
                    let shared: Arc<dyn Store> = Arc::new(faulty.clone());
                    let outcomes =
                        on_ranks(ranks, move |comm| step(comm, shared.clone()).map_err(drop));
                    (outcomes, faulty.calls() > at)
                };
                let old = see(&prepared());
                let done = prepared();
                let (outcomes, _) = run(&done, u64::MAX);
                assert!(outcomes.iter().all(Result::is_ok));
                let new = see(&done);
                assert_ne!(old, new);
                for at in 0.. {
                    let store = prepared();
                    let (outcomes, hit) = run(&store, at);
                    if !hit {
                        assert!(at > 2, "{name}: only {at} faults were tried");
                        break;
                    }
                    let failed = outcomes.iter().filter(|o| o.is_err()).count();
                    assert!(failed == 0 || failed == ranks, "{name}, {fault:?} at {at}: {failed}");
                    let found = see(&store);
                    let what = format!("{name} on {ranks} ranks, {fault:?} at {at}");
                    if failed == 0 {
                        assert_eq!(found, new, "{what}");
                    } else {
                        assert!(found == old || found == new, "{what}: {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_rank_that_panics_is_an_error_for_the_others() {
    for ranks in RANKS {
        let (_dir, path) = file();
        let outcome = launched(ranks, move |comm| {
            let (mut ds, fixed, _) = written(&path, &comm, hints(true), None);
            if comm.rank() == 1 {
                panic!("as the test wants");
            }
            let me = comm.rank() as u64;
            let error = ds.put_all(fixed, &Selection::element(&[me]), &[1i32]).unwrap_err();
            assert!(error.to_string().contains("rank 1 panicked"), "{error}");
        });
        let LaunchError::Panicked { rank, message } = outcome.unwrap_err() else { panic!() };
        assert_eq!((rank, message.as_str()), (1, "as the test wants"));
    }
}

#[test]
fn a_rank_that_leaves_is_an_error_for_the_others() {
    let (_dir, path) = file();
    on_ranks(3, move |comm| {
        let (mut ds, fixed, _) = written(&path, &comm, hints(true), None);
        if comm.rank() == 2 {
            return;
        }
        let me = comm.rank() as u64;
        let error = ds.put_all(fixed, &Selection::element(&[me]), &[1i32]).unwrap_err();
        assert!(matches!(error, Error::Comm(_)), "{error}");
    });
}

#[test]
fn zero_length_parts_of_records_do_not_wait_for_anyone() {
    for ranks in RANKS {
        for exchange in [false, true] {
            let (_dir, path) = file();
            on_ranks(ranks, move |comm| {
                let (mut ds, _, record) = written(&path, &comm, hints(exchange), None);
                let none: [f64; 0] = [];
                // One rank writes, the others have nothing, in every spelling of nothing.
                for (round, writer) in (0..ranks).enumerate() {
                    let at = 2 + round as u64;
                    let me = comm.rank();
                    let outcome = if me == writer {
                        ds.put_all(record, &Selection::element(&[at, 0]), &[at as f64])
                    } else if me % 3 == 0 {
                        ds.put_all(record, &Selection::none(), &none)
                    } else if me % 3 == 1 {
                        ds.put_all(record, &Selection::slab(&[0, 0], &[0, 1]), &none)
                    } else {
                        ds.put_all(record, &Selection::slab(&[999, 0], &[1, 0]), &none)
                    };
                    outcome.unwrap();
                    assert_eq!(ds.numrecs(), at + 1);
                }
                // Nobody has anything.
                ds.put_all(record, &Selection::none(), &none).unwrap();
                ds.wait_all(&mut Requests::new()).unwrap();
                let all: Vec<f64> = match comm.rank() {
                    0 => ds.get_all(record, &Selection::slab(&[2, 0], &[1, 1])).unwrap(),
                    _ => ds.get_all(record, &Selection::slab(&[2, 0], &[0, 1])).unwrap(),
                };
                assert_eq!(all.len(), usize::from(comm.rank() == 0));
                ds.close().unwrap();
            });
        }
    }
}

/// Opening something that is not there, or is no dataset, is the same error everywhere.
#[test]
fn what_cannot_be_opened_is_everyones_error() {
    let (dir, path) = file();
    on_ranks(4, move |comm| {
        let options = OpenOptions::new().comm(comm.clone());
        let error = Dataset::open_with(&path, options.clone()).map(drop).unwrap_err();
        assert!(error.to_string().contains("run.nc"), "{error}");
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            std::fs::write(&path, b"no dataset at all").unwrap();
        }
        comm.barrier().unwrap();
        let error = Dataset::open_with(&path, options).map(drop).unwrap_err();
        assert!(error.to_string().contains("run.nc"), "{error}");
        // And what cannot be created: the directory is not there.
        let path = path.with_file_name("no/such/run.nc");
        let created = Dataset::create(&path, CreateOptions::new().comm(comm.clone()));
        assert!(created.is_err());
        // And what exists and may not be replaced.
        let path = path.parent().unwrap().parent().unwrap().with_file_name("run.nc");
        let options = CreateOptions::new().clobber(false).comm(comm.clone());
        assert!(Dataset::create(&path, options).is_err());
    });
    drop(dir);
}

/// Only some ranks can see the file, as on a cluster with a disk on each node.
#[test]
fn a_file_that_one_rank_does_not_see_is_everyones_error() {
    let (dir, path) = file();
    on_ranks(3, move |comm| {
        let own = if comm.rank() == 2 { path.with_file_name("elsewhere.nc") } else { path.clone() };
        if comm.rank() == 0 {
            let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
            def.add_var("v", ExternalType::Int, &[]).unwrap();
            def.enddef().unwrap().close().unwrap();
        }
        comm.barrier().unwrap();
        let options = OpenOptions::new().comm(comm.clone());
        let error = Dataset::open_with(&own, options).map(drop).unwrap_err();
        assert!(error.to_string().contains("elsewhere.nc"), "{error}");
    });
    drop(dir);
}

/// `FillMode::NoFill` of one variable does not keep the others from being filled.
#[test]
fn variables_choose_their_own_fill() {
    let (_dir, path) = file();
    on_ranks(3, move |comm| {
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm.clone())).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let a = def.add_var("a", ExternalType::Int, &[t]).unwrap();
        let b = def.add_var("b", ExternalType::Int, &[t]).unwrap();
        def.set_fill(a, FillMode::NoFill).unwrap();
        let mut ds = def.enddef().unwrap();
        let me = comm.rank() as u64;
        ds.put_all(a, &Selection::element(&[2 * me]), &[1i32]).unwrap();
        let found: Vec<i32> = ds.get_all(b, &Selection::all()).unwrap();
        assert_eq!(found, [-2_147_483_647; 5]);
        let found: Vec<i32> = ds.get_all(a, &Selection::all()).unwrap();
        assert_eq!(found, [1, 0, 1, 0, 1]);
        ds.close().unwrap();
    });
}

/// A file system that stops reading when it is told to.
#[derive(Debug, Clone)]
struct Unreadable(Arc<AtomicBool>);

#[derive(Debug)]
struct UnreadableFile(Arc<dyn File>, Arc<AtomicBool>);

impl Layer for Unreadable {
    fn below(&self) -> &dyn Store {
        &LocalStore
    }

    fn cover(&self, _: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(UnreadableFile(file, self.0.clone()))
    }
}

impl FileLayer for UnreadableFile {
    fn below(&self) -> &dyn File {
        &*self.0
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> esker_store::Result<usize> {
        if self.1.load(Ordering::SeqCst) {
            let error = io::Error::other("the disk is broken (injected)");
            return Err(StoreError::new(Path::new("run.nc"), "read", error));
        }
        self.0.read_at(offset, buf)
    }
}

#[test]
fn a_disk_that_one_rank_cannot_read_is_everyones_error() {
    for exchange in [false, true] {
        let mut failures = 0;
        for victim in 0..3 {
            let (_dir, path) = file();
            let failed = on_ranks(3, move |comm| {
                let me = comm.rank() as u64;
                let broken = Arc::new(AtomicBool::new(false));
                let store: Arc<dyn Store> = Arc::new(Unreadable(broken.clone()));
                let mut hints = hints(exchange);
                hints.set("cb_nodes", "3");
                let (mut ds, fixed, record) = written(&path, &comm, hints, Some(store));
                broken.store(comm.rank() == victim, Ordering::SeqCst);
                let same = |outcome: Result<(), Error>| {
                    let failed = vec![u8::from(outcome.is_err())];
                    let all = comm.all_gather(failed.into()).unwrap();
                    assert!(all.iter().all(|f| f[0] == all[0][0]), "{outcome:?}");
                    all[0][0] == 1
                };
                let all = Selection::slab(&[0, 0], &[2, 3]);
                let read = same(ds.get_all::<f64>(record, &all).map(drop));
                // Reading between pieces to write is the owner's; its error is everyone's.
                same(ds.put_all(fixed, &Selection::element(&[me]), &[9i32]));
                broken.store(false, Ordering::SeqCst);
                ds.put_all(fixed, &Selection::element(&[me]), &[me as i32]).unwrap();
                check_written(&ds, 3);
                ds.close().unwrap();
                read
            });
            // With owners, only the one whose window it is reads.
            failures += usize::from(failed[0]);
        }
        assert!(failures >= if exchange { 1 } else { 3 }, "{failures}");
    }
}

#[test]
fn a_file_that_ends_too_early_is_everyones_error() {
    for exchange in [false, true] {
        let (_dir, path) = file();
        on_ranks(3, move |comm| {
            let (ds, _, _) = written(&path, &comm, hints(exchange), None);
            let len = ds.file_len().unwrap();
            ds.close().unwrap();
            comm.barrier().unwrap();
            if comm.rank() == 0 {
                std::fs::OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(len - 8)
                    .unwrap();
            }
            comm.barrier().unwrap();
            let options = OpenOptions::new().comm(comm.clone()).hints(hints(exchange));
            let mut ds = Dataset::open_with(&path, options).unwrap();
            let record = ds.var("record").unwrap();
            // Only the last rank's element is not there.
            let mine = Selection::element(&[1, comm.rank() as u64]);
            let mut out = [0.0];
            let error = ds.get_all_into(record, &mine, &mut out).unwrap_err();
            assert!(error.to_string().contains("the file ends at"), "{error}");
            let error = ds.get_all::<f64>(record, &mine).unwrap_err();
            assert!(error.to_string().contains("the file ends at"), "{error}");
            let first = Selection::element(&[0, comm.rank() as u64]);
            assert_eq!(ds.get_all::<f64>(record, &first).unwrap(), [comm.rank() as f64]);
        });
    }
}
