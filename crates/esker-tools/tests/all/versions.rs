//! Versions of one container are compared by their logs: what neither has changed is not read, and nothing is missed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, OpenOptions, Selection, VarId};
use esker_store::{CountingStore, LocalStore, Store};
use esker_testkit::random::Random;
use esker_tools::Unseen;
use esker_tools::diff::{DiffOptions, Report, diff};

const X: u64 = 40;
const FIXED: [VarId; 2] = [VarId(0), VarId(1)];
const RECORD: [VarId; 2] = [VarId(2), VarId(3)];

fn create(path: &Path, layout: Layout) -> Dataset {
    let mut def = Dataset::create(path, CreateOptions::new().layout(layout)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    for name in ["a", "b"] {
        def.add_var(name, ExternalType::Int, &[x]).unwrap();
    }
    for name in ["c", "d"] {
        def.add_var(name, ExternalType::Double, &[t, x]).unwrap();
    }
    def.enddef().unwrap()
}

/// The same values in a classic file, of which nothing is known.
fn as_file(path: &Path, version: u64, file: &Path) {
    let from = Dataset::open_with(path, OpenOptions::new().container_version(version)).unwrap();
    let mut to = create(file, Layout::Classic);
    for var in FIXED {
        to.put(var, &Selection::all(), &from.get::<i32>(var, &Selection::all()).unwrap()).unwrap();
    }
    for record in 0..from.numrecs() {
        let all = Selection::slab(&[record, 0], &[1, X]);
        for var in RECORD {
            to.put(var, &all, &from.get::<f64>(var, &all).unwrap()).unwrap();
        }
    }
    to.close().unwrap();
}

fn at(path: &Path, version: u64) -> PathBuf {
    PathBuf::from(format!("{}@{version}", path.display()))
}

fn compared(a: &Path, b: &Path, store: Arc<dyn Store>) -> Report {
    let options = DiffOptions { store, ..DiffOptions::default() };
    diff(a, b, &options, &mut Unseen).unwrap()
}

#[test]
fn random_versions_differ_in_what_files_of_them_differ_in() {
    let local: Arc<dyn Store> = Arc::new(LocalStore);
    let (mut passed_over, mut differing) = (0, 0);
    for turn in 0..6 {
        let mut dice = Random(turn);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        let mut ds = create(&path, Layout::Log);
        // All records from the beginning: versions with fewer are not compared there.
        ds.put(RECORD[0], &Selection::element(&[5, 0]), &[0.5]).unwrap();
        ds.sync().unwrap();
        let mut newest = 2;
        for _ in 0..12 {
            for _ in 0..1 + dice.below(3) {
                let x = dice.below_u64(X - 3);
                // Values that were there before come again, too.
                let value = dice.below_u64(3);
                let which = dice.below(2);
                match dice.below(3) {
                    0 => {
                        let values = [value as i32; 3];
                        ds.put(FIXED[which], &Selection::slab(&[x], &[3]), &values).unwrap();
                    }
                    _ => {
                        let place = Selection::slab(&[dice.below_u64(6), x], &[1, 3]);
                        ds.put(RECORD[which], &place, &[value as f64; 3]).unwrap();
                    }
                }
            }
            ds.sync().unwrap();
            newest += 1;
            if dice.below(4) == 0 {
                ds.close().unwrap();
                ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
            }
        }
        ds.close().unwrap();
        for _ in 0..8 {
            let pair = [2 + dice.below_u64(newest - 1), 2 + dice.below_u64(newest - 1)];
            let files = pair.map(|version| dir.path().join(format!("{version}.nc")));
            for (version, file) in pair.iter().zip(&files) {
                as_file(&path, *version, file);
            }
            let versions = compared(&at(&path, pair[0]), &at(&path, pair[1]), local.clone());
            let expected = compared(&files[0], &files[1], local.clone());
            assert_eq!(versions.values, expected.values, "turn {turn}, {pair:?}");
            assert_eq!(versions.values_compared, expected.values_compared);
            passed_over += usize::from(versions.notes.iter().any(|note| note.contains("not read")));
            differing += usize::from(!versions.same());
        }
    }
    assert!(passed_over > 20 && differing > 20, "{passed_over} {differing}");
}

#[test]
fn values_that_neither_version_has_changed_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut ds = create(&path, Layout::Log);
    for record in 0..60 {
        let place = Selection::slab(&[record, 0], &[1, X]);
        ds.put(RECORD[0], &place, &[record as f64; X as usize]).unwrap();
        ds.put(RECORD[1], &place, &[record as f64; X as usize]).unwrap();
    }
    ds.sync().unwrap();
    ds.put(RECORD[1], &Selection::element(&[17, 3]), &[-1.0]).unwrap();
    ds.close().unwrap();
    let segments = std::fs::read_dir(path.join("segments")).unwrap();
    let data = segments.map(|entry| entry.unwrap().path());
    let data = data.filter(|path| path.extension().is_some_and(|end| end == "data"));
    let stored: u64 = data.map(|path| std::fs::metadata(path).unwrap().len()).sum();
    assert!(stored >= 60 * 2 * X * 8);
    let counting = CountingStore::new(LocalStore);
    let report = compared(&at(&path, 2), &at(&path, 3), Arc::new(counting.clone()));
    assert_eq!(report.values.len(), 1);
    let found = &report.values[0];
    assert_eq!((found.variable.as_str(), found.differing, found.compared), ("d", 1, 60 * X));
    let read = counting.counts().bytes_read.load(Ordering::Relaxed);
    // All of the metadata twice, and of values one record.
    assert!(read < stored / 2, "{read} of {stored}");
    // A NaN that is not the same as itself has to be looked for.
    let options = DiffOptions { nan_equal: false, ..DiffOptions::default() };
    let report = diff(&at(&path, 2), &at(&path, 3), &options, &mut Unseen).unwrap();
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}
