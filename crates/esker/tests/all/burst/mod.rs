//! What a burst buffer promises.

mod choosy;
mod killed;
mod recovered;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, Error, ExternalType, Hints, OpenOptions,
    RecoverOptions, Requests, Selection, SelfComm, VarId,
};
use esker_store::{LocalStore, Store};

use choosy::ChoosyStore;

/// Hints for a burst buffer in this directory.
fn hints(dir: &Path, more: &[(&str, &str)]) -> Hints {
    let mut hints = Hints::default();
    hints.set("nc_burst_buf", "enable");
    hints.set("nc_burst_buf_dirname", dir.to_str().unwrap());
    more.iter().for_each(|(name, value)| hints.set(name, value));
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}

/// A dataset with `f(x)` and `t(time, x)`, doubles.
fn define(def: &mut Define, x: u64) -> (VarId, VarId) {
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(x)).unwrap();
    let f = def.add_var("f", ExternalType::Double, &[x]).unwrap();
    let t = def.add_var("t", ExternalType::Double, &[time, x]).unwrap();
    (f, t)
}

fn create(
    path: &Path,
    x: u64,
    hints: Hints,
    comm: Arc<dyn Communicator>,
) -> (Dataset, VarId, VarId) {
    create_in(Arc::new(LocalStore), path, x, hints, comm)
}

fn create_in(
    store: Arc<dyn Store>,
    path: &Path,
    x: u64,
    hints: Hints,
    comm: Arc<dyn Communicator>,
) -> (Dataset, VarId, VarId) {
    let options = CreateOptions::new().hints(hints).comm(comm).store(store);
    let mut def = Dataset::create(path, options).unwrap();
    let (f, t) = define(&mut def, x);
    (def.enddef().unwrap(), f, t)
}

fn solo() -> Arc<dyn Communicator> {
    Arc::new(SelfComm::new())
}

fn names(dir: &Path) -> Vec<PathBuf> {
    match std::fs::read_dir(dir) {
        Ok(found) => found.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn data_are_in_the_log_until_a_flush_and_the_writer_sees_them() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let (mut ds, f, t) = create(&path, 4, hints(&bb, &[]), solo());
    ds.put(f, &Selection::slab(&[1], &[2]), &[1.0, 2.0]).unwrap();
    ds.put_all(t, &Selection::slab(&[2, 1], &[1, 2]), &[3.0, 4.0]).unwrap();
    assert_eq!(ds.numrecs(), 3);
    let fill = 9.969_209_968_386_869e36;
    let f_now = [fill, 1.0, 2.0, fill];
    assert_eq!(ds.get::<f64>(f, &Selection::all()).unwrap(), f_now);
    let mut t_now = vec![fill; 12];
    t_now[9..11].copy_from_slice(&[3.0, 4.0]);
    assert_eq!(ds.get::<f64>(t, &Selection::all()).unwrap(), t_now);
    // Nothing of it is in the file.
    let other = Dataset::open(&path).unwrap();
    assert_eq!(other.numrecs(), 0);
    assert_eq!(other.get::<f64>(f, &Selection::all()).unwrap(), [fill; 4]);
    ds.flush().unwrap();
    let other = Dataset::open(&path).unwrap();
    assert_eq!(other.numrecs(), 3);
    assert_eq!(other.get::<f64>(f, &Selection::all()).unwrap(), f_now);
    assert_eq!(other.get::<f64>(t, &Selection::all()).unwrap(), t_now);
    // And what comes then goes over it.
    ds.put(f, &Selection::slab(&[2], &[1]), &[5.0]).unwrap();
    assert_eq!(ds.get::<f64>(f, &Selection::all()).unwrap(), [fill, 1.0, 5.0, fill]);
    assert_eq!(ds.get::<f64>(t, &Selection::all()).unwrap(), t_now);
    ds.close().unwrap();
    assert_eq!(names(&bb), Vec::<PathBuf>::new());
    assert!(!bb.exists());
}

#[test]
fn a_rank_sees_its_own_data_at_once_and_others_after_a_flush() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(3, |comm| {
        let rank = comm.rank();
        let (mut ds, f, _) = create(&path, 3, hints(&bb, &[]), comm.clone());
        ds.put(f, &Selection::slab(&[rank as u64], &[1]), &[rank as f64]).unwrap();
        let found: Vec<f64> = ds.get(f, &Selection::all()).unwrap();
        let own: Vec<bool> = found.iter().map(|v| *v < 3.0).collect();
        assert_eq!(own, (0..3).map(|r| r == rank).collect::<Vec<_>>());
        ds.flush().unwrap();
        assert_eq!(ds.get::<f64>(f, &Selection::all()).unwrap(), [0.0, 1.0, 2.0]);
        ds.close().unwrap();
    });
}

/// Every rank writes over what others wrote, a collective call after the other.
fn overlapping(ranks: usize, x: u64, more: &[(&str, &str)]) {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(ranks, |comm| {
        let rank = comm.rank() as u64;
        let ranks = comm.size() as u64;
        let (mut ds, f, t) = create(&path, x, hints(&bb, more), comm.clone());
        let (mut f_now, mut t_now) = (vec![0.0; x as usize], vec![0.0; x as usize]);
        ds.put_all(f, &Selection::all(), &f_now[..if rank == 0 { x as usize } else { 0 }])
            .or_else(|_| ds.put_all(f, &Selection::none(), &[0.0; 0]))
            .ok();
        for turn in 1..20u64 {
            let writer = turn * 7 % ranks;
            let (start, len) = (turn * 3 % (x / 2), x / 2);
            let value = turn as f64;
            f_now[start as usize..(start + len) as usize].fill(value);
            t_now[start as usize..(start + len) as usize].fill(-value);
            let (mut queue, values) = (Requests::new(), vec![value; len as usize]);
            let negative = vec![-value; len as usize];
            if rank == writer {
                ds.iput(&mut queue, f, &Selection::slab(&[start], &[len]), &values).unwrap();
                let place = Selection::slab(&[0, start], &[1, len]);
                ds.iput(&mut queue, t, &place, &negative).unwrap();
            }
            ds.wait_all(&mut queue).unwrap();
        }
        ds.close().unwrap();
        comm.barrier().unwrap();
        let ds = Dataset::open(&path).unwrap();
        for (var, now) in [(f, &f_now), (t, &t_now)] {
            let found: Vec<f64> = ds.get(var, &Selection::all()).unwrap();
            for (i, (found, now)) in found.iter().zip(now.iter()).enumerate() {
                assert!(*now == 0.0 || found == now, "element {i} of {var:?}: {found}, not {now}");
            }
        }
    });
}

#[test]
fn overlapping_writes_of_ranks_keep_the_order_of_collective_calls() {
    for cb_write in ["enable", "disable"] {
        for buffer in ["0", "100", "3000"] {
            for limit in ["0", "2000"] {
                let more = [
                    ("romio_cb_write", cb_write),
                    ("nc_burst_buf_flush_buffer_size", buffer),
                    ("esker_burst_limit", limit),
                    ("cb_buffer_size", "200"),
                    ("cb_nodes", "2"),
                ];
                overlapping(2, 64, &more);
                overlapping(5, 64, &more);
            }
        }
    }
}

#[test]
fn logs_that_were_left_are_not_written_over_unless_one_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let (mut ds, f, _) = create(&path, 2, hints(&bb, &[]), solo());
    ds.put(f, &Selection::all(), &[1.0, 2.0]).unwrap();
    ds.get::<f64>(f, &Selection::all()).unwrap();
    // It dies.
    drop(ds);
    assert_eq!(names(&bb).len(), 2);
    let refused = Dataset::create(&path, CreateOptions::new().hints(hints(&bb, &[])));
    let sentence = refused.unwrap_err().to_string();
    assert!(sentence.contains("esker recover"), "{sentence}");
    let open = |more: &[(&str, &str)]| {
        Dataset::open_with(&path, OpenOptions::new().writable(true).hints(hints(&bb, more)))
    };
    assert!(matches!(open(&[]), Err(Error::BurstBuffer { .. })));
    // For reading, and without a burst buffer, they do not matter.
    Dataset::open(&path).unwrap();
    let mut ds = open(&[("nc_burst_buf_overwrite", "enable")]).unwrap();
    ds.put(f, &Selection::slab(&[0], &[1]), &[7.0]).unwrap();
    ds.close().unwrap();
    let found: Vec<f64> = Dataset::open(&path).unwrap().get(f, &Selection::all()).unwrap();
    assert_eq!(found[0], 7.0);
    assert_ne!(found[1], 2.0);
}

#[test]
fn logs_stay_when_one_says_so_and_are_no_hindrance() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    std::fs::create_dir(&bb).unwrap();
    for ranks in [3, 1, 2] {
        esker::launch(ranks, |comm| {
            let more = [("nc_burst_buf_del_on_close", "disable")];
            let (mut ds, f, _) = create(&path, 2, hints(&bb, &more), comm);
            ds.put_all(f, &Selection::all(), &[1.0, 2.0]).unwrap();
            ds.close().unwrap();
        });
        assert_eq!(names(&bb).len(), 2 * ranks);
        let recovery = esker::recover(&path, &RecoverOptions::new().dir(&bb).keep(true)).unwrap();
        assert!(recovery.is_complete());
        assert_eq!((recovery.logs, recovery.entries), (ranks as u64, 0));
    }
    // A directory that was there before stays.
    let (ds, ..) = create(&path, 2, hints(&bb, &[]), solo());
    ds.close().unwrap();
    assert!(bb.exists());
    assert_eq!(names(&bb), Vec::<PathBuf>::new());
}

#[test]
fn a_definition_that_is_given_up_leaves_no_logs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    Dataset::create(&path, CreateOptions::new().hints(hints(&bb, &[]))).unwrap().abort().unwrap();
    assert!(!bb.exists());
    assert!(!path.exists());
}

#[test]
fn ranks_of_a_node_share_two_files() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let world = esker_comm::ThreadWorld::new(5).ranks_per_node(2);
    let outcome = world.launch(|comm| {
        let more = [("nc_burst_buf_shared_logs", "enable")];
        let rank = comm.rank() as u64;
        let (mut ds, f, _) = create(&path, 5, hints(&bb, &more), comm.clone());
        ds.put_all(f, &Selection::slab(&[rank], &[1]), &[rank as f64]).unwrap();
        comm.barrier().unwrap();
        assert_eq!(names(&bb).len(), 6);
        comm.barrier().unwrap();
        ds.close().unwrap();
    });
    outcome.unwrap();
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<f64>(VarId(0), &Selection::all()).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

/// A burst buffer that takes so many bytes in each log of payloads, or in every log.
fn small_device(bb: &Path, bytes: u64, every: bool, kind: ErrorKind) -> Arc<dyn Store> {
    let bb = bb.to_path_buf();
    Arc::new(ChoosyStore {
        inner: LocalStore,
        refuses: Arc::new(move |path, offset, len| {
            let is_log = every || path.extension().is_some_and(|e| e == "data");
            (path.starts_with(&bb) && is_log && offset + len > bytes).then_some(kind)
        }),
    })
}

#[test]
fn a_full_device_is_no_failure_and_keeps_the_order() {
    let x = 50_000;
    for ranks in [1, 3] {
        for (bytes, every, kind) in [
            (0, false, ErrorKind::StorageFull),
            (0, true, ErrorKind::StorageFull),
            (300_000, false, ErrorKind::QuotaExceeded),
            (900_000, false, ErrorKind::StorageFull),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
            esker::launch(ranks, |comm| {
                let store = small_device(&bb, bytes, every, kind);
                let rank = comm.rank() as u64;
                let (mut ds, f, t) = create_in(store, &path, x, hints(&bb, &[]), comm.clone());
                // Alone: there is nobody to flush with.
                for turn in 0..4 {
                    let values = vec![f64::from(turn) + 10.0 * rank as f64; x as usize];
                    ds.put(t, &Selection::slab(&[rank, 0], &[1, x]), &values).unwrap();
                    let found: Vec<f64> = ds.get(t, &Selection::slab(&[rank, 0], &[1, x])).unwrap();
                    assert!(
                        found == values,
                        "turn {turn}, rank {rank}, {bytes} bytes: {:?}",
                        &found[..8]
                    );
                    // Small ones too.
                    ds.put(t, &Selection::slab(&[rank, 5], &[1, 2]), &[-1.0, -2.0]).unwrap();
                }
                assert!(!ds.notes().is_empty());
                assert!(ds.notes()[0].contains("full"), "{:?}", ds.notes());
                // The next call that all make moves everything to the file, and the logs beside it go.
                ds.put_all(f, &Selection::none(), &[0.0; 0]).unwrap();
                comm.barrier().unwrap();
                let other = Dataset::open(&path).unwrap();
                let found: Vec<f64> = other.get(t, &Selection::slab(&[rank, 0], &[1, x])).unwrap();
                assert_eq!((found[4], found[5]), (3.0 + 10.0 * rank as f64, -1.0));
                let beside = names(dir.path());
                assert!(beside.iter().all(|name| [&path, &bb].contains(&name)), "{beside:?}");
                comm.barrier().unwrap();
                // Together, each over the others.
                for turn in 0..ranks as u64 {
                    let values = vec![turn as f64; x as usize];
                    match rank == turn {
                        true => ds.put_all(f, &Selection::all(), &values).unwrap(),
                        false => ds.put_all(f, &Selection::none(), &[0.0; 0]).unwrap(),
                    }
                }
                ds.close().unwrap();
                comm.barrier().unwrap();
                let ds = Dataset::open(&path).unwrap();
                let last = (ranks - 1) as f64;
                let found: Vec<f64> = ds.get(f, &Selection::all()).unwrap();
                assert!(found.iter().all(|v| *v == last), "{ranks} ranks, {bytes} bytes");
                let found: Vec<f64> = ds.get(t, &Selection::slab(&[rank, 0], &[1, x])).unwrap();
                assert_eq!(
                    found[4..8],
                    [3.0 + 10.0 * rank as f64, -1.0, -2.0, 3.0 + 10.0 * rank as f64]
                );
            });
            // Nothing is left of the logs, also beside the file.
            assert_eq!(names(dir.path()), [path]);
        }
    }
}

/// When there is no room anywhere, a program hears of it before memory is full too, and what it was
/// told to be written is, once there is room.
#[test]
fn when_both_devices_are_full_writes_fail_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let no_room = Arc::new(AtomicBool::new(false));
    let refuses = {
        let no_room = no_room.clone();
        move |path: &Path, _, _| {
            let is_log = path.extension().is_some_and(|e| e == "data" || e == "meta");
            (is_log && no_room.load(Ordering::SeqCst)).then_some(ErrorKind::StorageFull)
        }
    };
    let store = Arc::new(ChoosyStore { inner: LocalStore, refuses: Arc::new(refuses) });
    let (mut ds, _, t) = create_in(store, &path, 10_000, hints(&bb, &[]), solo());
    ds.put(t, &Selection::slab(&[0, 0], &[1, 10_000]), &[0.0; 10_000]).unwrap();
    no_room.store(true, Ordering::SeqCst);
    let record = |turn: u64| Selection::slab(&[turn, 0], &[1, 10_000]);
    let value = |turn: u64| vec![turn as f64; 10_000];
    let put = |ds: &mut Dataset, turn: u64| ds.put(t, &record(turn), &value(turn));
    let taken = (1..).take_while(|turn| put(&mut ds, *turn).is_ok()).count() as u64;
    // Some 80 kB each: not more than is gathered anyway, in two logs.
    assert!(taken < 30, "{taken} writes were kept in memory");
    let error = put(&mut ds, taken + 1).unwrap_err().to_string();
    assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
    for turn in 1..=taken {
        assert_eq!(ds.get::<f64>(t, &record(turn)).unwrap(), value(turn));
    }
    no_room.store(false, Ordering::SeqCst);
    ds.flush().unwrap();
    put(&mut ds, taken + 1).unwrap();
    ds.close().unwrap();
    let ds = Dataset::open(&path).unwrap();
    for turn in 0..=taken + 1 {
        assert_eq!(ds.get::<f64>(t, &record(turn)).unwrap(), value(turn), "{turn}");
    }
}

#[test]
fn a_flush_in_the_background_goes_on_while_the_program_does() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(3, |comm| {
        let rank = comm.rank() as u64;
        let (mut ds, f, t) = create(&path, 30, hints(&bb, &[]), comm.clone());
        let mine = |turn: u64| vec![(100 * turn + rank) as f64; 10];
        for turn in 0..10 {
            ds.put_all(f, &Selection::slab(&[10 * rank], &[10]), &mine(turn)).unwrap();
            ds.put_all(t, &Selection::slab(&[turn, 10 * rank], &[1, 10]), &mine(turn)).unwrap();
            let token = ds.flush_start().unwrap();
            // Both what is under way and what is new.
            ds.put(f, &Selection::slab(&[10 * rank], &[1]), &[-1.0]).unwrap();
            let found: Vec<f64> = ds.get(f, &Selection::slab(&[10 * rank], &[2])).unwrap();
            assert_eq!(found, [-1.0, (100 * turn + rank) as f64]);
            assert_eq!(ds.numrecs(), turn + 1);
            ds.flush_wait(token).unwrap();
            let other = Dataset::open(&path).unwrap();
            assert_eq!(other.numrecs(), turn + 1);
            let row = Selection::slab(&[turn, 10 * rank], &[1, 10]);
            assert_eq!(other.get::<f64>(t, &row).unwrap(), mine(turn));
        }
        ds.close().unwrap();
        comm.barrier().unwrap();
        let ds = Dataset::open(&path).unwrap();
        let found: Vec<f64> = ds.get(f, &Selection::slab(&[10 * rank], &[2])).unwrap();
        assert_eq!(found, [-1.0, (900 + rank) as f64]);
    });
    assert_eq!(names(dir.path()), [path]);
}

#[test]
fn an_error_in_the_background_comes_with_the_wait_and_nothing_is_lost() {
    for ranks in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
        let broken = Arc::new(AtomicBool::new(false));
        let store = {
            let broken = broken.clone();
            ChoosyStore {
                inner: LocalStore,
                refuses: Arc::new(move |file: &Path, offset, _| {
                    let is_it = esker_store::named_path(file).ends_with("run.nc");
                    let fails = is_it && offset > 100 && broken.load(Ordering::SeqCst);
                    fails.then_some(ErrorKind::Other)
                }),
            }
        };
        esker::launch(ranks, |comm| {
            let rank = comm.rank() as u64;
            let store: Arc<dyn Store> = Arc::new(store.clone());
            let (mut ds, f, _) = create_in(store, &path, 40, hints(&bb, &[]), comm.clone());
            ds.put_all(f, &Selection::slab(&[20 * rank], &[20]), &[1.0; 20]).unwrap();
            broken.store(true, Ordering::SeqCst);
            comm.barrier().unwrap();
            let token = ds.flush_start().unwrap();
            ds.put_all(f, &Selection::slab(&[20 * rank], &[10]), &[2.0; 10]).unwrap();
            assert!(ds.flush_wait(token).is_err());
            assert!(ds.flush().is_err());
            comm.barrier().unwrap();
            broken.store(false, Ordering::SeqCst);
            comm.barrier().unwrap();
            ds.put_all(f, &Selection::slab(&[20 * rank], &[5]), &[3.0; 5]).unwrap();
            ds.flush().unwrap();
            let found: Vec<f64> = ds.get(f, &Selection::slab(&[20 * rank], &[20])).unwrap();
            assert_eq!(found, [[3.0; 5], [2.0; 5], [1.0; 5], [1.0; 5]].concat());
            ds.close().unwrap();
        });
        assert_eq!(names(dir.path()), [path]);
    }
}

#[test]
fn redefinition_finds_the_data_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let (mut ds, f, t) = create(&path, 3, hints(&bb, &[]), solo());
    ds.put(f, &Selection::all(), &[1.0, 2.0, 3.0]).unwrap();
    ds.put(t, &Selection::slab(&[0, 0], &[2, 3]), &[1.0; 6]).unwrap();
    let mut def = ds.redef().unwrap();
    let x = def.schema().dim("x").unwrap();
    let g = def.add_var("g", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(g, &Selection::all(), &[7, 8, 9]).unwrap();
    assert_eq!(ds.get::<f64>(f, &Selection::all()).unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(ds.get::<i32>(g, &Selection::all()).unwrap(), [7, 8, 9]);
    assert_eq!(ds.get::<f64>(t, &Selection::all()).unwrap(), [1.0; 6]);
    ds.close().unwrap();
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(g, &Selection::all()).unwrap(), [7, 8, 9]);
    assert_eq!(ds.get::<f64>(t, &Selection::all()).unwrap(), [1.0; 6]);
}
