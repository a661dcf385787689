//! What every store must do. Each implementation's test calls [`store`] with an empty
//! directory; a failure is a panic, as in any test.

use std::io::ErrorKind;
use std::path::Path;

use crate::{Access, Busy, CreateMode, Locked, Locking, Store};

/// Checks the contract of [`Store`] and [`crate::File`] in `directory`.
pub fn store(store: &dyn Store, directory: &Path) {
    a_file_has_the_bytes_that_were_written(store, &directory.join("bytes"));
    a_new_file_has_one_creator(store, &directory.join("new"));
    a_rename_replaces_and_open_files_stay(store, directory);
    what_is_absent_is_not_found(store, &directory.join("absent"));
    a_name_is_published_once(store, directory);
    a_directory_knows_its_names(store, &directory.join("folder"));
    a_lock_has_one_holder(store, &directory.join("locked"));
    a_file_is_known_whatever_its_name_is(store, directory);
}

fn a_lock_has_one_holder(store: &dyn Store, path: &Path) {
    let first = store.create(path, CreateMode::New).expect("create");
    let second = store.open(path, Access::ReadWrite).expect("open");
    let taken = Locked::take(&first).expect("no failure").expect("it is free");
    let taken = taken.expect("these stores have locks");
    assert_eq!(Locked::take(&second).expect("no failure").expect_err("the first has it"), Busy);
    second.write_at(0, b"x").expect("a lock keeps nobody from writing");
    let reader = store.open(path, Access::Read).expect("open");
    assert_eq!(reader.read_at(0, &mut [0]).expect("nor from reading"), 1);
    drop(taken);
    let again = Locked::take(&second).expect("no failure").expect("it was given back");
    drop(again);
    // A handle that goes takes its lock with it.
    assert_eq!(first.try_lock().expect("no failure"), Locking::Taken);
    assert_eq!(second.try_lock().expect("no failure"), Locking::Busy);
    drop(first);
    assert_eq!(second.try_lock().expect("no failure"), Locking::Taken);
}

fn a_file_is_known_whatever_its_name_is(store: &dyn Store, directory: &Path) {
    let (a, b) = (directory.join("ida"), directory.join("idb"));
    let file = store.create(&a, CreateMode::New).expect("create");
    let other = store.create(&b, CreateMode::New).expect("create");
    let id = |path: &Path| store.id_of(path).expect("no failure");
    assert_eq!(id(&a), file.id().expect("no failure"));
    assert_ne!(id(&a), id(&b));
    store.rename(&a, &b).expect("rename");
    assert_eq!(id(&b), file.id().expect("no failure"), "it has the other's name");
    assert_ne!(id(&b), other.id().expect("no failure"), "which is another file still");
    assert_eq!(id(&a), None);
}

fn a_name_is_published_once(store: &dyn Store, directory: &Path) {
    let (a, b, c) = (directory.join("pa"), directory.join("pb"), directory.join("pc"));
    for (path, text) in [(&a, b"one"), (&b, b"two")] {
        store.create(path, CreateMode::New).expect("create").write_at(0, text).expect("write");
    }
    store.publish(&a, &c).expect("the first gets the name");
    let second = store.publish(&b, &c).expect_err("the name is taken");
    assert_eq!(second.kind(), ErrorKind::AlreadyExists);
    let mut bytes = [0; 3];
    store.open(&c, Access::Read).expect("open").read_at(0, &mut bytes).expect("read");
    assert_eq!(&bytes, b"one");
    assert!(!store.exists(&a).expect("exists"), "it has one name");
    assert!(store.exists(&b).expect("exists"), "the loser keeps its own");
}

fn a_directory_knows_its_names(store: &dyn Store, directory: &Path) {
    assert!(!store.is_dir(directory).expect("is_dir"));
    store.create_dir(directory).expect("make");
    store.create_dir(directory).expect("make again");
    assert!(store.is_dir(directory).expect("is_dir"));
    for name in ["y", "x"] {
        store.create(&directory.join(name), CreateMode::New).expect("create");
    }
    assert!(!store.is_dir(&directory.join("x")).expect("is_dir"), "a file is no directory");
    assert_eq!(store.names_in(directory).expect("list"), ["x", "y"]);
    assert!(store.remove_dir(directory).is_err(), "it is not empty");
    let (other, first) = (directory.with_file_name("moved"), directory);
    store.rename(first, &other).expect("a directory is renamed with what is in it");
    assert!(!store.is_dir(first).expect("is_dir") && store.is_dir(&other).expect("is_dir"));
    assert_eq!(store.names_in(&other).expect("list"), ["x", "y"]);
    assert!(store.create_new_dir(&other, None).is_err(), "it is there");
    for name in ["y", "x"] {
        store.remove(&other.join(name)).expect("remove");
    }
    store.remove_dir(&other).expect("remove");
    assert!(!store.is_dir(&other).expect("is_dir"));
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
