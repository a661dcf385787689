//! A tool that makes a file leaves the old one or the new one under its name, at whatever call it fails or dies.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, Layout, OpenOptions, Selection, Version};
use esker_store::{Fault, FaultyStore, MemoryStore, Store, leftovers};
use esker_tools::Unseen;
use esker_tools::cdl::{GenerateOptions, generate};
use esker_tools::copy::{ChunkOptions, CopyOptions, copy};
use esker_tools::replay::{ReplayOptions, replay};

const OUT: &str = "/data/out.nc";
const OLD: &str = "netcdf old { dimensions: x = 2 ; variables: int v(x) ; data: v = 1, 2 ; }";
const NEW: &str = "netcdf new { dimensions: t = UNLIMITED ; y = 3 ; variables: double w(t, y) ; int n ; \
                   float empty(y) ; data: w = 1, 2, 3, 4, 5, 6 ; n = 7 ; }";

fn generated(store: Arc<dyn Store>, text: &str, path: &str, clobber: bool) -> Result<(), String> {
    let options = GenerateOptions { store, clobber, ..GenerateOptions::default() };
    let made = generate(text.as_bytes(), Path::new(path), &options);
    made.map(drop).map_err(|error| error.to_string())
}

/// A tool that makes `OUT` of what is prepared.
type Tool = fn(Arc<dyn Store>) -> Result<(), String>;

fn copied(store: Arc<dyn Store>, options: CopyOptions) -> Result<(), String> {
    let options = CopyOptions { store, ..options };
    let made = copy(Path::new("/data/in.nc"), Path::new(OUT), &options, &mut Unseen);
    made.map(drop).map_err(|error| error.to_string())
}

const TOOLS: [(&str, Tool); 4] = [
    ("gen", |store| generated(store, NEW, OUT, true)),
    ("copy", |store| {
        copied(store, CopyOptions { version: Some(Version::Cdf5), ..CopyOptions::default() })
    }),
    ("copy to chunks", |store| {
        let chunks =
            ChunkOptions { filters: vec!["w:zstd,3".parse().unwrap()], ..Default::default() };
        copied(store, CopyOptions { chunks, ..CopyOptions::default() })
    }),
    ("replay", |store| {
        let options = ReplayOptions { store, overwrite: true, ..ReplayOptions::default() };
        let made = replay(Path::new("/data/in.esk"), Path::new(OUT), &options, &mut Unseen);
        made.map(drop).map_err(|error| error.to_string())
    }),
];

fn prepared(with_old: bool) -> MemoryStore {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    generated(shared.clone(), NEW, "/data/in.nc", true).unwrap();
    let options =
        CopyOptions { layout: Layout::Log, store: shared.clone(), ..CopyOptions::default() };
    copy(Path::new("/data/in.nc"), Path::new("/data/in.esk"), &options, &mut Unseen).unwrap();
    if with_old {
        generated(shared, OLD, OUT, true).unwrap();
    }
    store
}

/// Whether `OUT` holds what `NEW` says.
fn has_new_values(store: &MemoryStore) -> bool {
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let Ok(ds) = Dataset::open_with(OUT, options) else { return false };
    let is = |name: &str, shape: &[u64], values: &[f64]| {
        let var = ds.var(name).ok()?;
        let found: Vec<f64> = ds.get(var, &Selection::all()).ok()?;
        Some(ds.shape(var).ok()? == shape && found == values)
    };
    // netCDF's fill value of float.
    let fill = f64::from(9.969_21e36_f32);
    is("w", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == Some(true)
        && is("n", &[], &[7.0]) == Some(true)
        && is("empty", &[3], &[fill; 3]) == Some(true)
}

#[test]
fn at_every_fault_the_name_has_the_old_file_or_the_new_one() {
    let faults = [
        Fault::Fail(ErrorKind::Other),
        Fault::FailHalf(ErrorKind::StorageFull),
        Fault::Kill,
        Fault::Tear,
    ];
    for (name, tool) in TOOLS {
        for with_old in [true, false] {
            let whole = prepared(with_old);
            let old = whole.bytes(Path::new(OUT));
            assert_eq!(old.is_some(), with_old);
            tool(Arc::new(whole.clone())).unwrap();
            let new = whole.bytes(Path::new(OUT)).unwrap();
            assert_ne!(old.as_ref(), Some(&new));
            for fault in faults {
                let (mut kept, mut at) = (0, 0);
                loop {
                    let store = prepared(with_old);
                    let faulty = FaultyStore::new(store.clone(), at, fault);
                    let outcome = tool(Arc::new(faulty.clone()));
                    let found = store.bytes(Path::new(OUT));
                    let what = format!("{name}, {fault:?} at {at}, {with_old}: {outcome:?}");
                    // A file with chunks has random numbers: it is the new one by its values.
                    let is_new = found.as_ref().is_some_and(|found| match name {
                        "copy to chunks" => found.len() == new.len() && has_new_values(&store),
                        _ => *found == new,
                    });
                    assert!(found == old || is_new, "{what}");
                    assert!(outcome.is_err() || is_new, "{what}");
                    kept += usize::from(found == old);
                    let is_dead = matches!(fault, Fault::Kill | Fault::Tear);
                    let left = leftovers(&store, Path::new(OUT)).unwrap();
                    assert!(is_dead || left.is_empty(), "{what}: {left:?}");
                    if faulty.calls() <= at {
                        break;
                    }
                    at += 1;
                }
                assert!(kept > 1 && at > 2, "{name}: {kept} of {at}");
            }
        }
    }
}

#[test]
fn a_file_that_must_not_be_there_is_not_replaced() {
    let store = prepared(true);
    let old = store.bytes(Path::new(OUT));
    let error = generated(Arc::new(store.clone()), NEW, OUT, false).unwrap_err();
    assert!(error.starts_with(OUT), "{error}");
    assert_eq!(store.bytes(Path::new(OUT)), old);
}
