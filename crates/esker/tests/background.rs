//! What goes on in the background, and what it promises. One test at a time counts threads, so
//! these are one binary of their own.
#![allow(missing_docs)]

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Layout, OpenOptions,
    Selection, SelfComm, VarId,
};
use esker_store::{Fault, FaultyStore, GatedStore, LocalStore, Store};

/// Only one test at a time has threads.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The I/O threads that there are.
fn io_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.unwrap()).ok());
    names.filter(|name| name.starts_with("esker-io")).count()
}

/// Waits until there are none: who was waited for has ended, and its entry in the list of tasks goes a little later.
fn no_io_thread_is_left(kind: Kind) {
    let begun = std::time::Instant::now();
    while io_threads() > 0 {
        assert!(begun.elapsed() < esker_testkit::ranks::HANG, "{kind:?}");
        std::thread::yield_now();
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Classic,
    Log,
    Burst,
}

const KINDS: [Kind; 3] = [Kind::Classic, Kind::Log, Kind::Burst];

fn burst(dir: &Path) -> Hints {
    let mut hints = Hints::default();
    hints.set("nc_burst_buf", "enable");
    hints.set("nc_burst_buf_dirname", dir.join("bb").to_str().unwrap());
    hints
}

fn store_of(store: &(impl Store + Clone + 'static)) -> Arc<dyn Store> {
    Arc::new(store.clone())
}

/// A dataset with `f(x)`, whose elements are their numbers. In a burst buffer they are there still.
fn made(kind: Kind, dir: &Path, store: Arc<dyn Store>, ranks: Arc<dyn Communicator>) -> Dataset {
    let options = CreateOptions::new().store(store).comm(ranks.clone());
    let options = match kind {
        Kind::Classic => options,
        Kind::Log => options.layout(Layout::Log),
        Kind::Burst => options.hints(burst(dir)),
    };
    let mut def = Dataset::create(dir.join("run.nc"), options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1000 * ranks.size() as u64)).unwrap();
    let f = def.add_var("f", ExternalType::Double, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let first = 1000 * ranks.rank() as u64;
    let values: Vec<f64> = (first..first + 1000).map(|n| n as f64).collect();
    ds.put_all(f, &Selection::slab(&[first], &[1000]), &values).unwrap();
    ds
}

const F: VarId = VarId(0);

fn solo() -> Arc<dyn Communicator> {
    Arc::new(SelfComm::new())
}

fn numbers(from: u64, to: u64) -> Vec<f64> {
    (from..to).map(|n| n as f64).collect()
}

fn slab(from: u64, to: u64) -> Selection {
    Selection::slab(&[from], &[to - from])
}

#[test]
fn a_dataset_can_be_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Dataset>();
}

#[test]
fn there_is_no_thread_before_the_first_token_and_one_after_it() {
    let _alone = alone();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let mut ds = made(kind, dir.path(), Arc::new(LocalStore), solo());
        assert_eq!(ds.get::<f64>(F, &slab(0, 10)).unwrap(), numbers(0, 10));
        ds.flush().unwrap();
        ds.sync().unwrap();
        assert_eq!(io_threads(), 0, "{kind:?}");
        let tokens: Vec<_> =
            (0..10).map(|n| ds.get_start::<f64>(F, &slab(10 * n, 10 * n + 10))).collect();
        for (n, token) in (0..).zip(tokens) {
            assert_eq!(token.wait().unwrap(), numbers(10 * n, 10 * n + 10), "{kind:?}");
        }
        let flushed = ds.flush_start().unwrap();
        ds.flush_wait(flushed).unwrap();
        assert_eq!(io_threads(), 1, "{kind:?}");
        ds.close().unwrap();
        no_io_thread_is_left(kind);
    }
}

#[test]
fn the_program_goes_on_while_a_read_waits_for_the_device() {
    let _alone = alone();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = GatedStore::new(LocalStore);
        let ds = made(kind, dir.path(), store_of(&store), solo());
        let ds = match kind {
            // What the burst buffer has is still there.
            Kind::Burst => ds,
            _ => {
                ds.close().unwrap();
                let options = OpenOptions::new().store(store_of(&store));
                Dataset::open_with(dir.path().join("run.nc"), options).unwrap()
            }
        };
        if kind == Kind::Burst {
            // It looks at the log's metadata first.
            ds.get::<f64>(F, &slab(0, 1)).unwrap();
        }
        store.close("");
        let token = ds.get_start::<f32>(F, &slab(5, 995));
        store.until_waiting(1);
        assert!(!token.test(), "{kind:?}");
        let second = ds.get_values_start(F, &Selection::all());
        store.open_gate();
        assert_eq!(second.wait().unwrap().convert_to::<f64>().unwrap(), numbers(0, 1000));
        assert!(token.test());
        let expected: Vec<f32> = (5..995).map(|n| n as f32).collect();
        assert_eq!(token.wait().unwrap(), expected, "{kind:?}");
    }
}

#[test]
fn the_program_goes_on_while_a_flush_waits_for_the_device() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let store = GatedStore::new(LocalStore);
    esker::launch(3, |comm| {
        let rank = comm.rank() as u64;
        let mut ds = made(Kind::Burst, dir.path(), store_of(&store), comm.clone());
        if rank == 0 {
            store.close("run.nc");
        }
        comm.barrier().unwrap();
        let token = ds.flush_start().unwrap();
        if rank == 0 {
            store.until_waiting(1);
        }
        comm.barrier().unwrap();
        assert!(!token.test());
        // Writing goes on, and so does reading what is in the logs.
        ds.put_all(F, &slab(1000 * rank, 1000 * rank + 10), &[-1.0; 10]).unwrap();
        comm.barrier().unwrap();
        if rank == 0 {
            store.open_gate();
        }
        let read = ds.get_start::<f64>(F, &slab(1000 * rank, 1000 * rank + 20));
        let expected = [vec![-1.0; 10], numbers(1000 * rank + 10, 1000 * rank + 20)].concat();
        assert_eq!(read.wait().unwrap(), expected);
        ds.flush_wait(token).unwrap();
        ds.close().unwrap();
        comm.barrier().unwrap();
        let ds = Dataset::open(dir.path().join("run.nc")).unwrap();
        let found = ds.get::<f64>(F, &slab(1000 * rank, 1000 * rank + 20)).unwrap();
        assert_eq!(found, expected);
    });
}

#[test]
fn what_is_wrong_is_told_by_the_wait() {
    let _alone = alone();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let ds = made(kind, dir.path(), Arc::new(LocalStore), solo());
        let token = ds.get_start::<f64>(F, &slab(990, 1010));
        assert!(matches!(token.wait(), Err(Error::Selection { .. })));
        let token = ds.get_start::<f64>(VarId(7), &Selection::all());
        assert!(matches!(token.wait(), Err(Error::NoSuchVariable { .. })));
        let token = ds.get_start::<i8>(F, &Selection::all());
        assert!(matches!(token.wait(), Err(Error::Range { .. })));
        ds.close().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    made(Kind::Classic, dir.path(), Arc::new(LocalStore), solo()).close().unwrap();
    let ds = Dataset::open(dir.path().join("run.nc")).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(dir.path().join("run.nc")).unwrap();
    file.set_len(4000).unwrap();
    assert!(matches!(
        ds.get_start::<f64>(F, &slab(900, 1000)).wait(),
        Err(Error::ShortFile { .. })
    ));
    assert_eq!(ds.get_start::<f64>(F, &slab(0, 5)).wait().unwrap(), numbers(0, 5));
}

#[test]
fn a_flush_that_fails_is_told_to_every_rank_and_tried_again() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    // Rank 0 alone cannot write, once, at its n-th change, which is one of the flush for some n.
    let mut failed = 0;
    for at in 0..40 {
        let found = esker::launch(3, |comm| {
            let rank = comm.rank() as u64;
            let mut hints = burst(dir.path());
            hints.set("nc_burst_buf_overwrite", "enable");
            let path = dir.path().join("run.nc");
            std::fs::remove_file(&path).ok();
            comm.barrier().unwrap();
            made(Kind::Classic, dir.path(), Arc::new(LocalStore), comm.clone()).close().unwrap();
            let fault = Fault::Fail(std::io::ErrorKind::Other);
            let store: Arc<dyn Store> = match rank {
                0 => Arc::new(FaultyStore::new(LocalStore, at, fault)),
                _ => Arc::new(LocalStore),
            };
            let options =
                OpenOptions::new().writable(true).hints(hints).comm(comm.clone()).store(store);
            let Ok(mut ds) = Dataset::open_with(&path, options) else { return None };
            let own = slab(1000 * rank, 1000 * rank + 1000);
            let put = ds.put_all(F, &own, &[1.0; 1000]);
            let token = put.and_then(|()| ds.flush_start());
            let Ok(token) = token else { return None };
            let outcome = token.wait();
            // Both logs are in use after a failure.
            ds.put_all(F, &slab(1000 * rank, 1000 * rank + 10), &[2.0; 10]).ok()?;
            drop(ds.flush_start().ok()?);
            ds.put_all(F, &slab(1000 * rank, 1000 * rank + 5), &[3.0; 5]).ok()?;
            ds.close().ok()?;
            comm.barrier().unwrap();
            let ds = Dataset::open(&path).unwrap();
            let found = ds.get::<f64>(F, &own).unwrap();
            assert_eq!(found, [vec![3.0; 5], vec![2.0; 5], vec![1.0; 990]].concat(), "at {at}");
            Some(outcome.is_err())
        });
        assert!(found.iter().all(|f| *f == found[0]), "{found:?} at {at}");
        failed += usize::from(found[0] == Some(true));
    }
    assert!(failed > 0);
}

#[test]
fn dropping_tokens_loses_nothing_and_hangs_nowhere() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let mut ds = made(Kind::Burst, dir.path(), Arc::new(LocalStore), comm.clone());
        for turn in 0..20 {
            let at = 1000 * rank + turn;
            ds.put_all(F, &slab(at, at + 1), &[-1.0]).unwrap();
            drop(ds.get_start::<f64>(F, &Selection::all()));
            drop(ds.flush_start().unwrap());
            drop(ds.get_start::<f64>(F, &Selection::all()));
        }
        ds.close().unwrap();
        comm.barrier().unwrap();
        let ds = Dataset::open(dir.path().join("run.nc")).unwrap();
        let found = ds.get::<f64>(F, &slab(1000 * rank, 1000 * rank + 1000)).unwrap();
        let expected = [vec![-1.0; 20], numbers(1000 * rank + 20, 1000 * rank + 1000)].concat();
        assert_eq!(found, expected);
    });
    assert_eq!(io_threads(), 0);
}

#[test]
fn a_dataset_that_is_dropped_waits_for_its_flush() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let mut ds = made(Kind::Burst, dir.path(), Arc::new(LocalStore), comm.clone());
        drop(ds.flush_start().unwrap());
        drop(ds);
        comm.barrier().unwrap();
        let ds = Dataset::open(dir.path().join("run.nc")).unwrap();
        let found = ds.get::<f64>(F, &slab(1000 * rank, 1000 * rank + 1000)).unwrap();
        assert_eq!(found, numbers(1000 * rank, 1000 * rank + 1000));
    });
}

#[test]
fn reads_in_the_background_see_what_was_written_before_and_survive_a_redefinition() {
    let _alone = alone();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let mut ds = made(kind, dir.path(), Arc::new(LocalStore), solo());
        for turn in 0..30u64 {
            ds.put(F, &slab(turn, turn + 1), &[-1.0]).unwrap();
            let token = ds.get_start::<f64>(F, &slab(0, 1000));
            let expected = [vec![-1.0; turn as usize + 1], numbers(turn + 1, 1000)].concat();
            match turn % 5 {
                0 => ds.flush().unwrap(),
                1 => {
                    let mut def = ds.redef().unwrap();
                    def.put_attr(esker::Owner::Global, "note", "x".repeat(turn as usize * 100))
                        .unwrap();
                    ds = def.enddef().unwrap();
                }
                2 => drop(ds.flush_start().unwrap()),
                3 => ds.sync().unwrap(),
                _ => {}
            }
            assert_eq!(token.wait().unwrap(), expected, "{kind:?}, {turn}");
        }
        ds.close().unwrap();
    }
}
