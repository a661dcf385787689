//! Caches hold what their hints allow, tell how much, and change no value.

use std::path::Path;

use esker::{
    CacheUse, CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, OpenOptions, Selection,
};

const ROWS: u64 = 40;
const COLUMNS: u64 = 64;
/// Lists as long as are remembered, and so many that they do not fit.
const LISTS: u64 = 24;

fn hints(pairs: &[(&str, u64)]) -> Hints {
    let mut hints = Hints::default();
    for (name, value) in pairs {
        hints.set(name, &value.to_string());
    }
    assert_eq!(hints.warnings(), &[] as &[String]);
    hints
}

/// Every second element of a row, one block each: another list for each row.
fn list(row: u64) -> Selection {
    let starts = (0..COLUMNS / 2).flat_map(|i| [row, 2 * i]).collect();
    let counts = (0..COLUMNS / 2).flat_map(|_| [1, 1]).collect();
    Selection::list(2, starts, counts)
}

fn values(row: u64, turn: u64) -> Vec<i32> {
    (0..COLUMNS / 2).map(|i| (1000 * turn + 100 * row + i) as i32).collect()
}

/// Writes every list twice, in two orders, and gives what was held at most.
fn write(path: &Path, options: CreateOptions, chunks: bool) -> Vec<CacheUse> {
    let mut define = Dataset::create(path, options).unwrap();
    let y = define.add_dim("y", DimLen::Fixed(ROWS)).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(COLUMNS)).unwrap();
    let v = define.add_var("v", ExternalType::Int, &[y, x]).unwrap();
    if chunks {
        define.set_chunks(v, &[8, 16]).unwrap();
        define.set_filters(v, "deflate,1").unwrap();
    }
    let mut dataset = define.enddef().unwrap();
    let mut most: Vec<CacheUse> = Vec::new();
    for turn in 0..2 {
        for n in 0..LISTS {
            let row = if turn == 0 { n } else { LISTS - 1 - n };
            dataset.put_all(v, &list(row), &values(row, turn)).unwrap();
            note(&mut most, &dataset);
        }
    }
    dataset.close().unwrap();
    most
}

fn read(path: &Path, hints: Hints) -> Vec<CacheUse> {
    let mut dataset = Dataset::open_with(path, OpenOptions::new().hints(hints)).unwrap();
    let v = dataset.var("v").unwrap();
    let mut most = Vec::new();
    for _ in 0..2 {
        for row in 0..LISTS {
            let found: Vec<i32> = dataset.get_all(v, &list(row)).unwrap();
            assert_eq!(found, values(row, 1), "row {row}");
            let found: Vec<i32> = dataset.get(v, &Selection::slab(&[row, 0], &[1, 1])).unwrap();
            assert_eq!(found, values(row, 1)[..1]);
            note(&mut most, &dataset);
        }
    }
    most
}

/// Keeps the highest that each cache held.
fn note(most: &mut Vec<CacheUse>, dataset: &Dataset) {
    for held in dataset.caches() {
        match most.iter_mut().find(|known| known.what == held.what) {
            Some(known) => known.bytes = known.bytes.max(held.bytes),
            None => most.push(held),
        }
    }
}

fn held(all: &[CacheUse], what: &str) -> CacheUse {
    *all.iter().find(|held| held.what == what).unwrap_or_else(|| panic!("no {what} in {all:?}"))
}

/// Of each cache something is held, and never more than may be.
fn assert_bounded(all: &[CacheUse], whats: &[(&str, u64)]) {
    for (what, budget) in whats {
        let CacheUse { bytes, budget: told, .. } = held(all, what);
        assert_eq!(told, *budget, "{what}");
        assert!(bytes > 0 && bytes <= told, "{what}: {bytes} of {told}");
    }
}

#[test]
fn lists_and_footprints_of_a_log_stay_within_their_hint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.esk");
    let few = hints(&[("esker_cache", 6000), ("esker_index_memory", 64_000)]);
    let options = CreateOptions::new().layout(Layout::Log).hints(few.clone());
    let wrote = write(&path, options, false);
    assert_bounded(&wrote, &[("lists of blocks in a log", 6000), ("footprints written", 3000)]);
    let read = read(&path, few);
    assert_bounded(&read, &[("footprints of a log", 8000)]);
}

#[test]
fn lists_and_chunks_stay_within_their_hints() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.nc");
    let few = hints(&[("esker_cache", 6000), ("esker_chunk_cache", 2000)]);
    let wrote = write(&path, CreateOptions::new().hints(few.clone()), true);
    assert_bounded(&wrote, &[("lists of blocks in chunks", 6000)]);
    let read = read(&path, few);
    assert_bounded(&read, &[("lists of blocks in chunks", 6000), ("decoded chunks", 2000)]);
}

#[test]
fn without_room_for_anything_the_values_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let none = || hints(&[("esker_cache", 0), ("esker_chunk_cache", 0), ("esker_index_memory", 1)]);
    let log = dir.path().join("v.esk");
    write(&log, CreateOptions::new().layout(Layout::Log).hints(none()), false);
    read(&log, none());
    let chunked = dir.path().join("v.nc");
    write(&chunked, CreateOptions::new().hints(none()), true);
    assert_eq!(held(&read(&chunked, none()), "decoded chunks").bytes, 0);
}
