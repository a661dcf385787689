//! What a sync promises when an earlier program has written the file and closed it without one.

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Owner, Selection};
use esker_store::{MemoryStore, Store};

const PATH: &str = "/run/sessions.nc";

fn disk() -> MemoryStore {
    let store = MemoryStore::default();
    store.create_dir(Path::new("/run")).unwrap();
    store
}

fn reopened(store: &MemoryStore) -> Dataset {
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    Dataset::open_with(PATH, options).unwrap()
}

fn values(store: &MemoryStore, name: &str) -> Vec<i32> {
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap();
    ds.get(ds.var(name).unwrap(), &Selection::all()).unwrap()
}

/// A file of four numbers that was closed without a sync.
fn closed_without_a_sync(store: &MemoryStore) {
    let options = CreateOptions::new().store(Arc::new(store.clone()));
    let mut def = Dataset::create(PATH, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[1i32, 2, 3, 4]).unwrap();
    ds.close().unwrap();
}

/// Found by the soak: the name of the file was not safe after the sync, and the file was gone.
#[test]
fn the_name_that_an_earlier_session_gave_is_safe_after_a_later_sync() {
    let store = disk();
    closed_without_a_sync(&store);
    let mut ds = reopened(&store);
    ds.put(esker::VarId(0), &Selection::element(&[0]), &[5i32]).unwrap();
    ds.sync().unwrap();
    store.lose_power();
    assert_eq!(values(&store, "v"), [5, 2, 3, 4]);
}

/// Found by the soak: the name came back to the file of before the redefinition, and with it older values,
/// without an error.
#[test]
fn a_file_that_an_earlier_session_rebuilt_keeps_its_name_after_a_later_sync() {
    let store = disk();
    closed_without_a_sync(&store);
    let mut ds = reopened(&store);
    ds.sync().unwrap();
    // A header that does not fit where the old one was: the data move to a new file.
    let mut def = ds.redef().unwrap();
    def.put_attr(Owner::Global, "note", "x".repeat(5000)).unwrap();
    def.enddef().unwrap().close().unwrap();
    let mut ds = reopened(&store);
    ds.put(esker::VarId(0), &Selection::element(&[0]), &[5i32]).unwrap();
    ds.sync().unwrap();
    store.lose_power();
    assert_eq!(values(&store, "v"), [5, 2, 3, 4]);
}

/// Found by the soak: a sub-file that the second session had not looked at was cut short.
#[test]
fn sub_files_of_an_earlier_session_are_safe_after_a_later_sync() {
    let store = disk();
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", "2");
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    esker_testkit::ranks::on_ranks(2, move |comm| {
        let options = CreateOptions::new().comm(comm.clone()).store(shared.clone());
        let mut def = Dataset::create(PATH, options.hints(hints.clone())).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        let part = Selection::slab(&[2 * comm.rank() as u64], &[2]);
        let map = def.add_decomposition(&[x], &part).unwrap();
        let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
        def.add_var("plain", ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().unwrap();
        let mine = [1, 2].map(|i| i + 2 * comm.rank() as i32);
        ds.put_all(v, &Selection::blob(&[], &[]), &mine).unwrap();
        ds.close().unwrap();
    });
    let mut ds = reopened(&store);
    let plain = ds.var("plain").unwrap();
    ds.put(plain, &Selection::all(), &[9i32; 4]).unwrap();
    ds.sync().unwrap();
    store.lose_power();
    assert_eq!(values(&store, "v"), [1, 2, 3, 4]);
    assert_eq!(values(&store, "plain"), [9; 4]);
}
