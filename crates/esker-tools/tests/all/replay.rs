//! What a replay in the background promises.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, Layout, Selection};
use esker_store::{GatedStore, LocalStore};
use esker_tools::replay::{ReplayError, ReplayOptions, replay_start};

const ELEMENTS: u64 = 1 << 20;

fn values() -> Vec<i32> {
    (0..ELEMENTS as i32).collect()
}

/// A container with 4 MiB of numbers, and where its classic file will be.
fn container(dir: &Path) -> (PathBuf, PathBuf) {
    let run = dir.join("run.esk");
    let mut def = Dataset::create(&run, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(ELEMENTS)).unwrap();
    let f = def.add_var("f", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(f, &Selection::all(), &values()).unwrap();
    ds.close().unwrap();
    (run, dir.join("out.nc"))
}

fn read(path: &Path) -> Vec<i32> {
    let ds = Dataset::open(path).unwrap();
    ds.get(ds.var("f").unwrap(), &Selection::all()).unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn options(comm: Option<Arc<dyn Communicator>>) -> ReplayOptions {
    let mut options = ReplayOptions { block: 64 << 10, threads: Some(1), ..Default::default() };
    if let Some(comm) = comm {
        options.comm = comm;
    }
    options
}

#[test]
fn the_program_goes_on_while_a_replay_waits_for_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let (run, out) = container(dir.path());
    let store = GatedStore::new(LocalStore);
    let options = ReplayOptions { store: Arc::new(store.clone()), ..options(None) };
    store.close("");
    let replay = replay_start(&run, &out, &options).unwrap();
    store.until_waiting(1);
    assert!(!replay.test());
    assert_eq!(replay.progress(), (0, 0));
    store.open_gate();
    let replayed = replay.wait().unwrap();
    assert_eq!(
        (replayed.variables, replayed.file_len),
        (1, std::fs::metadata(&out).unwrap().len())
    );
    assert_eq!(read(&out), values());
}

#[test]
fn a_cancelled_replay_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let (run, out) = container(dir.path());
    std::fs::write(&out, "what was there").unwrap();
    let store = GatedStore::new(LocalStore);
    let options = ReplayOptions { store: Arc::new(store.clone()), ..options(None) };
    store.close("out.nc");
    let replay = replay_start(&run, &out, &options).unwrap();
    store.until_waiting(1);
    let (done, total) = replay.progress();
    assert!(done == 0 && total > 4 * ELEMENTS, "{done} of {total}");
    replay.cancel();
    store.open_gate();
    assert!(matches!(replay.wait(), Err(ReplayError::Cancelled { .. })));
    assert_eq!(std::fs::read(&out).unwrap(), b"what was there");
    assert_eq!(files(dir.path()), ["out.nc", "run.esk"]);
}

#[test]
fn ranks_replay_together_and_one_of_them_can_cancel() {
    let dir = tempfile::tempdir().unwrap();
    let (run, out) = container(dir.path());
    esker::launch(3, |comm| {
        let store = GatedStore::new(LocalStore);
        let store_of = |comm: &Arc<dyn Communicator>| ReplayOptions {
            store: Arc::new(store.clone()),
            ..options(Some(comm.clone()))
        };
        store.close("out.nc");
        let replay = replay_start(&run, &out, &store_of(&comm)).unwrap();
        store.until_waiting(1);
        // The program's own messages do not meet the replay's.
        comm.barrier().unwrap();
        if comm.rank() == 1 {
            replay.cancel();
        }
        store.open_gate();
        let error = replay.wait().unwrap_err();
        assert!(error.to_string().contains("the replay was cancelled"), "{error}");
        assert!(!out.exists());

        let replay = replay_start(&run, &out, &store_of(&comm)).unwrap();
        comm.barrier().unwrap();
        assert_eq!(replay.wait().unwrap().copied_by, 3);
        assert_eq!(read(&out), values());
    });
}

#[test]
fn what_is_wrong_is_told_by_the_wait_on_every_rank() {
    let dir = tempfile::tempdir().unwrap();
    let (run, out) = container(dir.path());
    std::fs::write(&out, "what was there").unwrap();
    esker::launch(2, |comm| {
        let options = ReplayOptions { overwrite: false, ..options(Some(comm.clone())) };
        let error = replay_start(&run, &out, &options).unwrap().wait().unwrap_err();
        assert!(error.to_string().contains("it exists already"), "{error}");
        let nothing = dir.path().join("nothing.esk");
        replay_start(&nothing, &out, &options).unwrap().wait().unwrap_err();
    });
    assert_eq!(std::fs::read(&out).unwrap(), b"what was there");
}

#[test]
fn a_replay_that_nobody_waits_for_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let (run, out) = container(dir.path());
    drop(replay_start(&run, &out, &options(None)).unwrap());
    assert_eq!(read(&out), values());
}
