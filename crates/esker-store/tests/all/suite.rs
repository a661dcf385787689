//! Every store passes the one suite.

use std::path::Path;

use esker_store::{
    Access, CountingStore, CreateMode, Fault, FaultyStore, GatedStore, LocalStore, MemoryStore,
    PacedStore, Store, suite,
};

#[test]
fn local_files_keep_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    suite::store(&LocalStore, directory.path());
}

#[test]
fn memory_keeps_the_contract() {
    suite::store(&MemoryStore::default(), Path::new("dir"));
}

#[test]
fn decorators_keep_the_contract() {
    suite::store(&CountingStore::new(MemoryStore::default()), Path::new("dir"));
    suite::store(&GatedStore::new(MemoryStore::default()), Path::new("dir"));
    suite::store(&PacedStore::new(MemoryStore::default(), 1e12), Path::new("dir"));
    suite::store(&FaultyStore::new(MemoryStore::default(), u64::MAX, Fault::Kill), Path::new("d"));
}

#[test]
fn power_loss_takes_what_was_not_synced() {
    let store = MemoryStore::default();
    let path = Path::new("dir/f");
    let file = store.create(path, CreateMode::New).unwrap();
    file.write_at(0, b"safe").unwrap();
    file.sync().unwrap();
    store.sync_names(path).unwrap();
    file.write_at(0, b"lost").unwrap();
    store.create(Path::new("dir/g"), CreateMode::New).unwrap();
    store.lose_power();
    assert_eq!(store.bytes(path).unwrap(), b"safe");
    assert_eq!(store.list(), [path]);
}

#[test]
fn a_torn_write_is_half_there_and_the_last() {
    let store = MemoryStore::default();
    let faulty = FaultyStore::new(store.clone(), 1, Fault::Tear);
    let path = Path::new("f");
    let file = faulty.create(path, CreateMode::New).unwrap();
    assert!(file.write_at(0, b"abcd").is_err());
    assert_eq!(store.bytes(path).unwrap(), b"ab");
    assert!(file.write_at(0, b"zz").is_err());
    assert_eq!(store.bytes(path).unwrap(), b"ab");
    assert_eq!(faulty.open(path, Access::Read).unwrap().len().unwrap(), 2);
}

#[test]
fn counts_add_up() {
    let store = CountingStore::new(MemoryStore::default());
    let file = store.create(Path::new("f"), CreateMode::New).unwrap();
    file.write_at(0, &[1; 100]).unwrap();
    file.read_at(50, &mut [0; 100]).unwrap();
    let counts = store.counts();
    assert_eq!(counts.bytes_written.load(std::sync::atomic::Ordering::Relaxed), 100);
    assert_eq!(counts.bytes_read.load(std::sync::atomic::Ordering::Relaxed), 50);
}

#[test]
fn a_directory_is_not_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let error = LocalStore.open(directory.path(), Access::Read).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
}
