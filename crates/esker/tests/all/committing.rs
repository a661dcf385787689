//! A commit makes a version while the dataset stays open, and waits for no disk.

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, OpenOptions, Selection, VarId};
use esker_comm::ThreadWorld;
use esker_store::{MemoryStore, Store};

fn disk() -> MemoryStore {
    let store = MemoryStore::default();
    store.create_dir(Path::new("/run")).unwrap();
    store
}

fn created(store: &MemoryStore, path: &str, layout: Layout) -> (Dataset, VarId) {
    let options = CreateOptions::new().layout(layout).store(Arc::new(store.clone()));
    let mut define = Dataset::create(path, options).unwrap();
    let time = define.add_dim("time", DimLen::Unlimited).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(3)).unwrap();
    let v = define.add_var("v", ExternalType::Int, &[time, x]).unwrap();
    (define.enddef().unwrap(), v)
}

fn seen(store: &MemoryStore, path: &str, version: Option<u64>) -> Vec<i32> {
    let mut options = OpenOptions::new().store(Arc::new(store.clone()));
    if let Some(version) = version {
        options = options.container_version(version);
    }
    let dataset = Dataset::open_with(path, options).unwrap();
    dataset.get(dataset.var("v").unwrap(), &Selection::all()).unwrap()
}

#[test]
fn each_commit_of_a_container_is_a_version_and_one_of_nothing_is_none() {
    let (store, path) = (disk(), "/run/a.esk");
    let (mut dataset, v) = created(&store, path, Layout::Log);
    let mut expected = Vec::new();
    for step in 0..4i32 {
        dataset.append(v, &[step, 10 + step, 20 + step]).unwrap();
        dataset.commit().unwrap();
        expected.extend([step, 10 + step, 20 + step]);
        let version = dataset.container_version().unwrap();
        dataset.commit().unwrap();
        assert_eq!(dataset.container_version(), Some(version), "nothing was new");
        assert_eq!(seen(&store, path, None), expected);
        assert_eq!(seen(&store, path, Some(version)), expected);
    }
    // The disk was asked for nothing: after a loss of power nobody was promised these versions.
    dataset.append(v, &[1, 2, 3]).unwrap();
    dataset.sync().unwrap();
    expected.extend([1, 2, 3]);
    drop(dataset);
    store.lose_power();
    assert_eq!(seen(&store, path, None), expected, "a sync promises what was committed before it");
}

#[test]
fn what_was_committed_to_a_file_is_seen_by_who_opens_it() {
    let (store, path) = (disk(), "/run/a.nc");
    let (mut dataset, v) = created(&store, path, Layout::Classic);
    dataset.append(v, &[1, 2, 3]).unwrap();
    dataset.commit().unwrap();
    assert_eq!(dataset.container_version(), None);
    assert_eq!(seen(&store, path, None), [1, 2, 3]);
}

#[test]
fn ranks_commit_together_and_a_reader_has_none() {
    let (store, path) = (disk(), "/run/a.esk");
    let (dataset, _) = created(&store, path, Layout::Log);
    dataset.close().unwrap();
    let versions = ThreadWorld::new(3)
        .launch(|comm| {
            let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
            let mut dataset = Dataset::open_with(path, options.comm(comm.clone())).unwrap();
            let (rank, v) = (comm.rank() as u64, dataset.var("v").unwrap());
            for step in 0..3 {
                let own = Selection::slab(&[step, rank], &[1, 1]);
                dataset.put_all(v, &own, &[(10 * step + rank) as i32]).unwrap();
                dataset.commit().unwrap();
            }
            dataset.container_version()
        })
        .unwrap();
    assert_eq!(versions, [Some(4); 3]);
    assert_eq!(seen(&store, path, None), [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let mut reader = Dataset::open_with(path, options).unwrap();
    assert!(reader.commit().is_err());
}
