//! Who reads a container of many versions reads the few sections of its logs that may have what is wanted, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, Layout, OpenOptions, Selection, VarId,
};
use esker_format::log::{Frame, FrameKind, Frames, Head};
use esker_store::{CountingStore, MemoryStore, Store};

const X: u64 = 6;

fn create(store: Option<&Arc<dyn Store>>, path: &Path) -> Dataset {
    let mut options = CreateOptions::new().layout(Layout::Log);
    if let Some(store) = store {
        options = options.store(store.clone());
    }
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
    def.add_var("w", ExternalType::Int, &[x]).unwrap();
    def.enddef().unwrap()
}

fn values(record: u64) -> Vec<i32> {
    (0..X).map(|i| (record * 100 + i) as i32).collect()
}

/// A version for each record, by one writer.
fn write(ds: &mut Dataset, records: u64) {
    for record in 0..records {
        ds.put(VarId(0), &Selection::slab(&[record, 0], &[1, X]), &values(record)).unwrap();
        ds.sync().unwrap();
    }
}

fn record(ds: &Dataset, record: u64) -> esker::Result<Vec<i32>> {
    ds.get(VarId(0), &Selection::slab(&[record, 0], &[1, X]))
}

fn metadata_log(path: &Path) -> PathBuf {
    let names = std::fs::read_dir(path.join("segments")).unwrap();
    let mut paths = names.map(|name| name.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|end| end == "meta")).unwrap()
}

/// The frames of a metadata log, each with the byte that it begins at.
fn frames(bytes: &[u8]) -> Vec<(usize, Frame)> {
    let (_, begin) = Head::decode(bytes).unwrap();
    let mut at = begin;
    let frames = Frames::new(&bytes[begin..], begin as u64, u64::MAX);
    let begun = |frame: Result<Frame, _>| {
        let frame = frame.unwrap();
        (std::mem::replace(&mut at, frame.end as usize), frame)
    };
    frames.map(begun).collect()
}

#[test]
fn damage_in_sections_that_nobody_asks_for_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut ds = create(None, &path);
    write(&mut ds, 60);
    ds.close().unwrap();
    let log = metadata_log(&path);
    let mut bytes = std::fs::read(&log).unwrap();
    let all = frames(&bytes);
    // Behind the first commit each has its entry, and says where its footprint is.
    let entries: Vec<&(usize, Frame)> =
        all.iter().filter(|(_, frame)| frame.kind == FrameKind::Entries).collect();
    assert_eq!(entries.len(), 60);
    assert_eq!(all.len(), 60 + 59);
    let (from, to) = (entries[10].0, entries[40].0);
    bytes[from..to].fill(0x5a);
    std::fs::write(&log, &bytes).unwrap();
    for number in [0, 9, 40, 50, 59] {
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(record(&ds, number).unwrap(), values(number));
    }
    for number in [10, 25, 39] {
        let ds = Dataset::open(&path).unwrap();
        let error = record(&ds, number).unwrap_err().to_string();
        assert!(error.contains("the log of rank 0 is damaged"), "{error}");
    }
    let ds = Dataset::open(&path).unwrap();
    ds.get::<i32>(VarId(0), &Selection::all()).unwrap_err();
    // Of a variable that nobody has written there is nothing to be read.
    let fresh = Dataset::open(&path).unwrap();
    assert_eq!(
        fresh.get::<i32>(VarId(1), &Selection::all()).unwrap(),
        [-2_147_483_647; X as usize]
    );
}

#[test]
fn a_footprint_from_afar_is_compared_with_its_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut ds = create(None, &path);
    write(&mut ds, 3);
    ds.close().unwrap();
    let log = metadata_log(&path);
    let bytes = std::fs::read(&log).unwrap();
    let (_, first) = &frames(&bytes)[0];
    let place = &first.footprints[0].place;
    assert!(place.end > place.start);
    for at in place.start as usize..place.end as usize {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            std::fs::write(&log, damaged).unwrap();
            let ds = Dataset::open(&path).unwrap();
            record(&ds, 2).expect_err("its footprint is not what was written");
        }
    }
    std::fs::write(&log, bytes).unwrap();
    assert_eq!(record(&Dataset::open(&path).unwrap(), 2).unwrap(), values(2));
}

#[test]
fn opening_and_one_value_cost_a_logarithm_of_the_versions() {
    let cost = |versions: u64, sessions: bool| {
        let memory = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(memory.clone());
        let path = Path::new("/run/a.esk");
        let mut ds = create(Some(&shared), path);
        if !sessions {
            write(&mut ds, versions);
        }
        ds.close().unwrap();
        for number in (0..versions).filter(|_| sessions) {
            let options = OpenOptions::new().writable(true).store(shared.clone());
            let mut ds = Dataset::open_with(path, options).unwrap();
            let place = Selection::slab(&[number, 0], &[1, X]);
            ds.put(VarId(0), &place, &values(number)).unwrap();
            ds.close().unwrap();
        }
        let counting = CountingStore::new(memory);
        let options = OpenOptions::new().store(Arc::new(counting.clone()));
        let ds = Dataset::open_with(path, options).unwrap();
        assert_eq!(record(&ds, versions / 3).unwrap(), values(versions / 3));
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (count(&counting.counts().reads), count(&counting.counts().bytes_read))
    };
    for sessions in [false, true] {
        let (few, many) = (cost(64, sessions), cost(640, sessions));
        // Ten times the versions; a few runs and blocks more.
        assert!(many.0 <= 2 * few.0 + 8, "{few:?} {many:?}");
        assert!(many.1 <= 2 * few.1 + (128 << 10), "{few:?} {many:?}");
    }
}

#[test]
fn a_long_stretch_is_compared_though_it_refers_to_what_is_before_it() {
    const LONG: u64 = 120_000;
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = Path::new("/run/a.esk");
    let options = CreateOptions::new().layout(Layout::Log).store(memory.clone());
    let mut def = Dataset::create(path, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(LONG)).unwrap();
    def.add_var("v", ExternalType::Byte, &[x]).unwrap();
    def.enddef().unwrap().close().unwrap();
    let open = || {
        let options = OpenOptions::new().writable(true).store(memory.clone());
        Dataset::open_with(path, options).unwrap()
    };
    let one = |ds: &mut Dataset, at: u64, value: i8| {
        ds.put(VarId(0), &Selection::element(&[at]), &[value]).unwrap();
    };
    for conflicts in [true, false] {
        let (mut long, mut other) = (open(), open());
        // Its footprint is defined here.
        one(&mut long, 0, 1);
        long.sync().unwrap();
        one(&mut other, if conflicts { LONG - 2 } else { LONG - 1 }, 7);
        other.sync().unwrap();
        // More than a megabyte of entries, of which every second element is one.
        for at in (2..LONG).step_by(2) {
            one(&mut long, at, 3);
        }
        let synced = long.sync();
        match conflicts {
            true => {
                let error = synced.unwrap_err();
                assert!(matches!(error, Error::Conflict { .. }), "{error}");
                let named = format!("variable \"v\" at [{}]", LONG - 2);
                assert!(error.to_string().contains(&named), "{error}");
            }
            false => {
                synced.unwrap();
                let found: Vec<i8> = long.get(VarId(0), &Selection::all()).unwrap();
                let fresh: Vec<i8> = open().get(VarId(0), &Selection::all()).unwrap();
                assert!(found == fresh);
                assert_eq!(found[LONG as usize - 1], 7);
                assert!(found.iter().skip(2).step_by(2).all(|value| *value == 3));
            }
        }
    }
}

#[test]
fn a_damaged_write_costs_no_other_that_has_its_footprint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut ds = create(None, &path);
    write(&mut ds, 4);
    ds.close().unwrap();
    // The first write, which brought the footprint of all, and the next, behind which it is said again where that is.
    let data = metadata_log(&path).with_extension("data");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[5] ^= 1;
    bytes[X as usize * 4 + 5] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let store: Arc<dyn Store> = Arc::new(esker_store::LocalStore);
    let options = esker::ContainerRecoverOptions::default();
    let recovery = esker::recover_container(&store, &path, options, &mut |_, _| {}).unwrap();
    assert_eq!(recovery.faults.len(), 2, "{recovery:?}");
    let ds = Dataset::open(&path).unwrap();
    for number in 2..4 {
        assert_eq!(record(&ds, number).unwrap(), values(number));
    }
    for number in 0..2 {
        assert_eq!(record(&ds, number).unwrap(), [-2_147_483_647; X as usize]);
    }
    let examined = esker::examine(&store, &path, None, &mut |_, _| {}).unwrap();
    assert_eq!(examined.faults, []);
}
