//! What is below an enclosed directory is reached without links, and nothing else is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;

use esker_store::{
    Access, CountingStore, CreateMode, Fault, FaultyStore, LocalStore, MemoryStore, Store,
    Unsynced, suite,
};

#[test]
fn enclosed_stores_keep_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    suite::store(&*LocalStore.enclosed(directory.path()).unwrap(), directory.path());
    let directory = tempfile::tempdir().unwrap();
    let above = directory.path().parent().unwrap();
    let inner = LocalStore.enclosed(above).unwrap().enclosed(directory.path()).unwrap();
    suite::store(&*inner, directory.path());
    suite::store(&*MemoryStore::default().enclosed(Path::new("dir")).unwrap(), Path::new("dir"));
}

#[test]
fn decorators_stay_on_enclosed_stores() {
    let directory = tempfile::tempdir().unwrap();
    let counting = CountingStore::new(LocalStore);
    let inner = counting.enclosed(directory.path()).unwrap();
    suite::store(&*inner, directory.path());
    assert!(counting.counts().writes.load(Ordering::Relaxed) > 5);
    let faulty = FaultyStore::new(LocalStore, 1, Fault::Kill);
    let inner = faulty.enclosed(directory.path()).unwrap();
    let file = inner.create(&directory.path().join("f"), CreateMode::New).unwrap();
    assert!(file.write_at(0, b"x").unwrap_err().to_string().contains("injected"));
    assert_eq!(faulty.calls(), 2);
}

/// `root` is what may be used; `outside` is beside it.
fn links(root: &Path, outside: &Path) {
    fs::create_dir_all(root.join("folder")).unwrap();
    fs::create_dir_all(outside).unwrap();
    fs::write(outside.join("secret"), b"secret").unwrap();
    symlink(outside, root.join("linked")).unwrap();
    symlink(outside.join("secret"), root.join("file")).unwrap();
    symlink(outside.join("secret"), root.join("folder/file")).unwrap();
    symlink(outside.join("absent"), root.join("dangling")).unwrap();
}

#[test]
fn no_call_follows_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    links(&root, &outside);
    let store = LocalStore.enclosed(&root).unwrap();
    for name in ["file", "folder/file", "linked/secret", "dangling"] {
        let path = root.join(name);
        for access in [Access::Read, Access::ReadWrite] {
            let error = store.open(&path, access).unwrap_err().to_string();
            assert!(error.contains("symbolic link") && error.contains(name), "{name}: {error}");
        }
        assert!(store.create(&path, CreateMode::Truncate).is_err(), "{name}");
        assert!(store.create(&path, CreateMode::New).is_err(), "{name}");
    }
    let linked = root.join("linked");
    assert!(!store.is_dir(&linked).unwrap());
    assert!(store.create_dir(&linked).is_err() && store.create_dir(&linked.join("new")).is_err());
    assert!(store.names_in(&linked).unwrap_err().to_string().contains("symbolic link"));
    let own = root.join("own");
    store.create(&own, CreateMode::New).unwrap().write_at(0, b"own").unwrap();
    assert!(store.rename(&own, &linked.join("own")).is_err());
    assert!(store.publish(&own, &linked.join("own")).is_err());
    assert!(store.remove(&linked.join("secret")).is_err());
    assert!(store.sync_names(&linked.join("secret")).is_err());
    // Out of the directory, by any name.
    for name in ["../outside/secret", "folder/../../outside/secret"] {
        assert!(store.open(&root.join(name), Access::Read).is_err(), "{name}");
    }
    assert!(store.rename(&own, &outside.join("own")).is_err());
    // A link can be replaced and removed: what it leads to stays.
    store.rename(&own, &root.join("file")).unwrap();
    store.remove(&linked).unwrap();
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
    let names: Vec<_> = fs::read_dir(&outside).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read(root.join("file")).unwrap(), b"own");
}

#[test]
fn a_pipe_is_no_file_and_nobody_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let store = LocalStore.enclosed(directory.path()).unwrap();
    for access in [Access::Read, Access::ReadWrite] {
        assert!(store.open(&path, access).unwrap_err().to_string().contains("no file"));
    }
}

#[test]
fn the_directory_stays_the_one_that_was_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (root, moved) = (directory.path().join("root"), directory.path().join("moved"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("f"), b"first").unwrap();
    let store = LocalStore.enclosed(&root).unwrap();
    fs::rename(&root, &moved).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("f"), b"other").unwrap();
    let mut bytes = [0; 5];
    store.open(&root.join("f"), Access::Read).unwrap().read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"first");
    assert_eq!(store.names_in(&root).unwrap(), ["f"]);
}

#[test]
fn a_disk_writes_names_and_sectors_in_any_order() {
    let store = MemoryStore::default();
    let (a, b) = (Path::new("d/a"), Path::new("d/b"));
    let file = store.create(a, CreateMode::New).unwrap();
    file.write_at(0, &[1; 1024]).unwrap();
    file.sync().unwrap();
    store.sync_names(a).unwrap();
    file.write_at(0, &[2; 1024]).unwrap();
    store.create(b, CreateMode::New).unwrap().write_at(0, b"new").unwrap();
    store.rename(b, a).unwrap();
    // Nothing, everything, the renaming without the creation.
    let lost = store.fork();
    lost.lose_power_in_any_order(512, |_| false);
    assert_eq!((lost.list(), lost.bytes(a)), (vec![a.to_path_buf()], Some(vec![1; 1024])));
    let all = store.fork();
    all.lose_power_in_any_order(512, |_| true);
    assert_eq!((all.list(), all.bytes(a)), (vec![a.to_path_buf()], Some(b"new".to_vec())));
    let names = store.fork();
    names.lose_power_in_any_order(512, |what| what == Unsynced::Name(a));
    assert_eq!((names.list(), names.bytes(a)), (vec![a.to_path_buf()], Some(Vec::new())));
    let sector = store.fork();
    sector.lose_power_in_any_order(512, |what| what == Unsynced::Sector(a, 1));
    let mixed = [vec![1; 512], vec![2; 512]].concat();
    assert_eq!(sector.bytes(a), Some(mixed));
    // The forks have not touched what they were made of.
    assert_eq!(store.bytes(a), Some(b"new".to_vec()));
}
