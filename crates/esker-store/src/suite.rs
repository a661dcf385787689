//! What every store must do. Each implementation's test calls [`store`] with an empty
//! directory; a failure is a panic, as in any test.

use std::io::ErrorKind;
use std::path::Path;

use crate::{Access, CreateMode, Store};

/// Checks the contract of [`Store`] and [`crate::File`] in `directory`.
pub fn store(store: &dyn Store, directory: &Path) {
    a_file_has_the_bytes_that_were_written(store, &directory.join("bytes"));
    a_new_file_has_one_creator(store, &directory.join("new"));
    a_rename_replaces_and_open_files_stay(store, directory);
    what_is_absent_is_not_found(store, &directory.join("absent"));
}

fn a_file_has_the_bytes_that_were_written(store: &dyn Store, path: &Path) {
    let file = store.create(path, CreateMode::Truncate).expect("create");
    assert!(file.is_empty().expect("len"));
    file.write_at(10, b"hello").expect("write");
    file.write_at(12, b"LL").expect("write");
    file.write_at(40, b"").expect("an empty write");
    assert_eq!(file.len().expect("len"), 15);
    let mut bytes = [9; 20];
    assert_eq!(file.read_at(0, &mut bytes).expect("read"), 15, "a read ends at the end");
    assert_eq!(&bytes[..15], b"\0\0\0\0\0\0\0\0\0\0heLLo");
    assert_eq!(file.read_at(100, &mut bytes).expect("read"), 0);
    file.set_len(12).expect("cut");
    file.set_len(14).expect("extend");
    assert_eq!(file.read_at(10, &mut bytes).expect("read"), 4);
    assert_eq!(&bytes[..4], b"he\0\0", "an extension is zeros");
    file.sync().expect("sync");
    let reader = store.open(path, Access::Read).expect("open");
    file.write_at(0, b"x").expect("write");
    assert_eq!(reader.read_at(0, &mut bytes[..1]).expect("read"), 1);
    assert_eq!(bytes[0], b'x', "a write is seen through every handle");
    assert!(reader.write_at(0, b"y").is_err(), "a reader cannot write");
}

fn a_new_file_has_one_creator(store: &dyn Store, path: &Path) {
    store.create(path, CreateMode::New).expect("create");
    let second = store.create(path, CreateMode::New).expect_err("it exists");
    assert_eq!(second.kind(), ErrorKind::AlreadyExists);
}

fn a_rename_replaces_and_open_files_stay(store: &dyn Store, directory: &Path) {
    let (a, b) = (directory.join("a"), directory.join("b"));
    let old = store.create(&b, CreateMode::New).expect("create");
    old.write_at(0, b"old").expect("write");
    store.create(&a, CreateMode::New).expect("create").write_at(0, b"new").expect("write");
    store.rename(&a, &b).expect("rename");
    store.sync_names(&b).expect("sync");
    let mut bytes = [0; 3];
    store.open(&b, Access::Read).expect("open").read_at(0, &mut bytes).expect("read");
    assert_eq!(&bytes, b"new");
    old.read_at(0, &mut bytes).expect("read");
    assert_eq!(&bytes, b"old", "an open file stays what it is");
    assert!(!store.exists(&a).expect("exists"));
    assert!(store.exists(&b).expect("exists"));
    store.remove(&b).expect("remove");
    assert!(!store.exists(&b).expect("exists"));
}

fn what_is_absent_is_not_found(store: &dyn Store, path: &Path) {
    assert_eq!(store.open(path, Access::Read).expect_err("absent").kind(), ErrorKind::NotFound);
    assert_eq!(store.remove(path).expect_err("absent").kind(), ErrorKind::NotFound);
}
