//! A job that dies at any call loses nothing that a sync promised, once `recover` was there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{Communicator, CreateOptions, Dataset, OpenOptions, RecoverOptions, Selection, VarId};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};

use super::{define, hints};

const PATH: &str = "/run/kill.nc";
const BB: &str = "/bb";
const X: u64 = 6;

/// The last version of the data that something promised, and the last that was begun.
#[derive(Debug, Default)]
struct Progress {
    synced: AtomicU64,
    flushed: AtomicU64,
    begun: AtomicU64,
}

/// Writes version after version over the last one, each by another rank, and a record with it.
fn live(
    store: Arc<dyn Store>,
    comm: Arc<dyn Communicator>,
    shared: &str,
    progress: &Progress,
) -> esker::Result<()> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let more = [("nc_burst_buf_shared_logs", shared), ("nc_burst_buf_flush_buffer_size", "60")];
    let hints = hints(Path::new(BB), &more);
    let options = CreateOptions::new().hints(hints).comm(comm.clone()).store(store);
    let mut def = Dataset::create(PATH, options)?;
    let (f, t) = define(&mut def, X);
    let mut ds = def.enddef()?;
    for version in 1..=6u64 {
        progress.begun.fetch_max(version, Ordering::SeqCst);
        let values = [version as f64; X as usize];
        let mine = version % ranks == rank;
        let (all, row) = match mine {
            true => (Selection::all(), Selection::slab(&[version - 1, 0], &[1, X])),
            false => (Selection::none(), Selection::none()),
        };
        let values = if mine { &values[..] } else { &[] };
        ds.put_all(f, &all, values)?;
        ds.put_all(t, &row, values)?;
        match version {
            2 | 5 => {
                ds.sync()?;
                progress.synced.fetch_max(version, Ordering::SeqCst);
            }
            3 => {
                ds.flush()?;
                progress.flushed.fetch_max(version, Ordering::SeqCst);
            }
            4 => {
                let token = ds.flush_start()?;
                ds.flush_wait(token)?;
                progress.flushed.fetch_max(version, Ordering::SeqCst);
            }
            _ => {}
        }
    }
    ds.close()?;
    progress.flushed.fetch_max(6, Ordering::SeqCst);
    Ok(())
}

fn files(store: &MemoryStore) -> Vec<(PathBuf, Vec<u8>)> {
    store.list().into_iter().map(|path| (path.clone(), store.bytes(&path).unwrap())).collect()
}

/// Recovers twice, and gives the values of `f` and the records of `t`.
fn after(store: &MemoryStore, what: &str) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    if !store.exists(Path::new(PATH)).unwrap() {
        return None;
    }
    let options = RecoverOptions::new().dir(BB).store(Arc::new(store.clone()));
    let first = esker::recover(PATH, &options.clone().keep(true)).unwrap();
    let bytes = store.bytes(Path::new(PATH)).unwrap();
    let second = esker::recover(PATH, &options.clone().keep(true)).unwrap();
    assert_eq!(bytes, store.bytes(Path::new(PATH)).unwrap(), "{what}: twice is not the same");
    assert_eq!(first.damages, [], "{what}");
    assert_eq!((first.entries, first.records), (second.entries, second.records), "{what}");
    let third = esker::recover(PATH, &options).unwrap();
    assert!(third.is_complete(), "{what}: {third:?}");
    assert_eq!(bytes, store.bytes(Path::new(PATH)).unwrap(), "{what}");
    // Nothing is left.
    let left = esker::recover(PATH, &options).unwrap();
    assert_eq!((left.logs, left.entries), (0, 0), "{what}: {:?}", files(store));
    let open = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, open).unwrap();
    let f = ds.get(VarId(0), &Selection::all()).unwrap();
    let t: Vec<f64> = ds.get(VarId(1), &Selection::all()).unwrap();
    Some((f, t.chunks(X as usize).map(<[f64]>::to_vec).collect()))
}

fn killed_everywhere(ranks: usize, shared: &str, faults: &[Fault]) {
    for fault in faults {
        for at in 0.. {
            let store = MemoryStore::default();
            store.create_dir(Path::new("/run")).unwrap();
            store.create_dir(Path::new(BB)).unwrap();
            store.sync_names(Path::new(PATH)).unwrap();
            let faulty = FaultyStore::new(store.clone(), at, *fault);
            let progress = Progress::default();
            let run = |comm: Arc<dyn Communicator>| {
                live(Arc::new(faulty.clone()), comm, shared, &progress)
            };
            let outcomes = esker::launch(ranks, run);
            let what = format!("{ranks} ranks, {fault:?} at call {at}");
            let [synced, flushed, begun] = [&progress.synced, &progress.flushed, &progress.begun]
                .map(|n| n.load(Ordering::SeqCst));
            if faulty.calls() <= at {
                assert!(outcomes.iter().all(Result::is_ok), "{what}: {outcomes:?}");
                break;
            }
            let (copy, promised) = (store.clone(), synced.max(flushed));
            match after(&copy, &what) {
                None => assert_eq!(promised, 0, "{what}"),
                Some((f, t)) => {
                    // One version, whole, and not an older one than was promised.
                    let is_fill = |v: &f64| *v > 1e30;
                    if f.iter().any(is_fill) {
                        assert!(f.iter().all(is_fill) && promised == 0, "{what}: {f:?}");
                    } else {
                        let version = f[0];
                        assert!(f.iter().all(|v| *v == version), "{what}: {f:?}");
                        let range = promised as f64..=begun as f64;
                        assert!(range.contains(&version), "{what}: {version}, not {range:?}");
                    }
                    for version in 1..=promised as usize {
                        assert_eq!(t[version - 1], [version as f64; X as usize], "{what}");
                    }
                    for (i, row) in t.iter().enumerate().skip(promised as usize) {
                        let whole = row.iter().all(|v| *v == (i + 1) as f64);
                        assert!(whole || row.iter().all(is_fill), "{what}: {row:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn one_rank_that_is_killed_loses_nothing() {
    killed_everywhere(1, "disable", &[Fault::Kill, Fault::Tear]);
}

#[test]
fn two_ranks_that_are_killed_lose_nothing() {
    killed_everywhere(2, "disable", &[Fault::Kill, Fault::Tear]);
}

#[test]
fn ranks_that_share_logs_and_are_killed_lose_nothing() {
    killed_everywhere(3, "enable", &[Fault::Kill, Fault::Tear]);
}

#[test]
fn a_loss_of_power_loses_nothing_that_was_synced() {
    // Some files reach the disk early, others late.
    for early in 0..4u32 {
        for at in 0.. {
            let store = MemoryStore::default();
            store.create_dir(Path::new("/run")).unwrap();
            store.create_dir(Path::new(BB)).unwrap();
            let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
            let progress = Progress::default();
            let run = |comm: Arc<dyn Communicator>| {
                live(Arc::new(faulty.clone()), comm, "disable", &progress)
            };
            esker::launch(2, run);
            if faulty.calls() <= at {
                break;
            }
            store.lose_power_but(|path| {
                let bit = if path.starts_with(BB) { 1 } else { 2 };
                early & bit != 0
            });
            let synced = progress.synced.load(Ordering::SeqCst);
            let what = format!("killed at call {at}, {early:02b}");
            let open = OpenOptions::new().store(Arc::new(store.clone()));
            let options = RecoverOptions::new().dir(BB).store(Arc::new(store.clone()));
            if !store.exists(Path::new(PATH)).unwrap() {
                assert_eq!(synced, 0, "{what}");
                continue;
            }
            if synced == 0 {
                continue;
            }
            esker::recover(PATH, &options).unwrap();
            let ds = Dataset::open_with(PATH, open).unwrap();
            let f: Vec<f64> = ds.get(VarId(0), &Selection::all()).unwrap();
            assert!(f.iter().all(|v| *v >= synced as f64 && *v < 1e30), "{what}: {f:?}, {synced}");
            assert!(ds.numrecs() >= synced, "{what}");
            let t: Vec<f64> = ds.get(VarId(1), &Selection::slab(&[0, 0], &[synced, X])).unwrap();
            for (i, row) in t.chunks(X as usize).enumerate() {
                assert_eq!(row, [(i + 1) as f64; X as usize], "{what}");
            }
        }
    }
}
