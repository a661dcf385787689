//! Who may read a dataset that is replaced, redefined or spread over files, and that two who create it do not meet.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, OpenOptions, Selection};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn hints(pairs: &[(&str, &str)]) -> Hints {
    let mut hints = Hints::default();
    for (name, value) in pairs {
        hints.set(name, value);
    }
    hints
}

/// A dataset with a chunked variable and a traditional one of records.
fn create(path: &Path, options: CreateOptions, chunked: bool) -> Dataset {
    let mut def = Dataset::create(path, options).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let r = def.add_var("r", ExternalType::Double, &[time, x]).unwrap();
    if chunked {
        def.set_chunks(v, &[2]).unwrap();
        def.set_chunks(r, &[1, 4]).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[1, 2, 3, 4]).unwrap();
    ds.put(r, &Selection::slab(&[0, 0], &[2, 4]), &[0.5f64; 8]).unwrap();
    ds
}

#[test]
fn a_dataset_that_replaces_another_is_read_by_whom_that_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    for chunked in [false, true] {
        create(&path, CreateOptions::new(), chunked).close().unwrap();
        set_mode(&path, 0o600);
        let ds = create(&path, CreateOptions::new(), chunked);
        assert_eq!(mode(&path), 0o600);
        ds.close().unwrap();
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_redefinition_that_builds_the_file_anew_keeps_who_may_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    create(&path, CreateOptions::new(), false).close().unwrap();
    set_mode(&path, 0o640);
    let number = fs::metadata(&path).unwrap().ino();
    let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
    let mut def = ds.redef().unwrap();
    for i in 0..50 {
        let x = def.add_dim(&format!("dimension_{i}"), DimLen::Fixed(4)).unwrap();
        def.add_var(&format!("variable_{i}"), ExternalType::Int, &[x]).unwrap();
    }
    def.enddef().unwrap().close().unwrap();
    assert_ne!(fs::metadata(&path).unwrap().ino(), number, "it was built anew");
    assert_eq!(mode(&path), 0o640);
    assert_eq!(files(dir.path()), [path]);
}

#[test]
fn all_files_of_a_dataset_are_read_by_whom_its_header_is() {
    let dir = tempfile::tempdir().unwrap();
    // A folder: tables and chunks beside data.nc.
    let folder = dir.path().join("run.nc");
    for round in 0..2 {
        let options = CreateOptions::new().hints(hints(&[("esker_chunk_files", "rank")]));
        create(&folder, options, true).close().unwrap();
        let found = files(&folder);
        assert_eq!(found.len(), 3, "{found:?}");
        if round == 0 {
            set_mode(&folder, 0o710);
            set_mode(&folder.join("data.nc"), 0o640);
        } else {
            assert_eq!(mode(&folder), 0o710);
            assert!(found.iter().all(|path| mode(path) == 0o640), "{found:?}");
        }
    }
    // A container, which is replaced in its folder.
    let container = dir.path().join("run.esk");
    for round in 0..2 {
        let options = CreateOptions::new().layout(Layout::Log);
        create(&container, options, false).close().unwrap();
        let found = files(&container);
        if round == 0 {
            // The promises and the decisions are kept from container to container.
            found.iter().for_each(|path| set_mode(path, 0o600));
        } else {
            assert!(found.len() >= 4 && found.iter().all(|path| mode(path) == 0o600), "{found:?}");
        }
    }
    // Logs before a classic file have its values.
    let (path, logs) = (dir.path().join("burst.nc"), dir.path().join("logs"));
    create(&path, CreateOptions::new(), false).close().unwrap();
    set_mode(&path, 0o600);
    let pairs = [("nc_burst_buf", "enable"), ("nc_burst_buf_dirname", logs.to_str().unwrap())];
    let ds = create(&path, CreateOptions::new().hints(hints(&pairs)), false);
    let found = files(&logs);
    assert!(found.len() == 2 && found.iter().all(|path| mode(path) == 0o600), "{found:?}");
    ds.close().unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn sub_files_are_read_by_whom_their_dataset_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    for round in 0..2 {
        let path = &path;
        esker::launch(2, move |comm| {
            let rank = comm.rank() as u64;
            let options = CreateOptions::new().comm(comm).hints(hints(&[("nc_num_subfiles", "2")]));
            let mut def = Dataset::create(path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
            let map = def.add_decomposition(&[x], &Selection::slab(&[2 * rank], &[2])).unwrap();
            let t = def.add_decomposed_var("t", ExternalType::Int, &[], map).unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put_all(t, &Selection::blob(&[], &[]), &[1, 2]).unwrap();
            ds.close().unwrap();
        });
        let found = files(dir.path());
        assert_eq!(found.len(), 3, "{found:?}");
        if round == 0 {
            set_mode(path, 0o600);
        } else {
            assert!(found.iter().all(|path| mode(path) == 0o600), "{found:?}");
        }
    }
}

#[test]
fn two_who_create_one_name_leave_one_of_the_two_datasets_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let make = |seed: i32, options: CreateOptions| {
        let mut def = Dataset::create(&path, options).ok()?;
        let x = def.add_dim("x", DimLen::Fixed(1000 + seed as u64)).unwrap();
        let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().ok()?;
        ds.put(v, &Selection::all(), &vec![seed; 1000 + seed as usize]).ok()?;
        ds.close().ok()?;
        Some(())
    };
    for round in 0..30 {
        match round % 3 {
            // Nothing, an empty file, a file of before.
            0 => drop(fs::remove_file(&path)),
            1 => fs::write(&path, "").unwrap(),
            _ => {}
        }
        // One of them may be told that the other writes; the other is not.
        let made = std::thread::scope(|scope| {
            let threads = [1, 2].map(|seed| scope.spawn(move || make(seed, CreateOptions::new())));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(made.iter().any(Option::is_some), "round {round}");
        let ds = Dataset::open(&path).unwrap();
        let values: Vec<i32> = ds.get(ds.var("v").unwrap(), &Selection::all()).unwrap();
        let seed = values[0];
        assert_eq!(values.len(), 1000 + seed as usize);
        assert!(values.iter().all(|value| *value == seed), "round {round}");
        assert_eq!(files(dir.path()), std::slice::from_ref(&path));
    }
}

#[test]
fn an_empty_file_that_was_made_for_the_purpose_stays_that_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    fs::write(&path, "").unwrap();
    set_mode(&path, 0o600);
    let number = fs::metadata(&path).unwrap().ino();
    let def = Dataset::create(&path, CreateOptions::new()).unwrap();
    drop(def);
    assert_eq!(
        (fs::metadata(&path).unwrap().ino(), fs::metadata(&path).unwrap().len()),
        (number, 0)
    );
    create(&path, CreateOptions::new(), false).close().unwrap();
    assert_eq!((fs::metadata(&path).unwrap().ino(), mode(&path)), (number, 0o600));
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(ds.var("v").unwrap(), &Selection::all()).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_planted_journal_is_neither_followed_nor_believed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, victim) = (dir.path().join("run.nc"), dir.path().join("victim"));
    create(&path, CreateOptions::new(), false).close().unwrap();
    fs::write(&victim, "precious").unwrap();
    let journal = esker::journal_path(&path);
    symlink(&victim, &journal).unwrap();
    let error = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap_err();
    assert!(error.to_string().contains(".run.nc.esker-redef"), "{error}");
    fs::remove_file(&journal).unwrap();
    // Planted between opening and redefining: the link is replaced, not what it leads to.
    let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
    let mut def = ds.redef().unwrap();
    def.rename_var("v", "w").unwrap();
    let hidden = dir.path().join("dangling");
    symlink(&hidden, &journal).unwrap();
    def.enddef().unwrap().close().unwrap();
    assert!(!hidden.exists());
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}
