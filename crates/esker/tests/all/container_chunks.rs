//! Chunked variables of containers: what ranks put together is one entry for each chunk, and nothing is lost by it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, Define, DimLen, Error, ExternalType, Layout, OpenOptions, Selection,
    VarId,
};
use esker_format::log::{Frames, Head};
use esker_store::{Fault, FaultyStore, MemoryStore};

const ROWS: u64 = 20;
const COLUMNS: u64 = 30;
/// netCDF's default for an int.
const FILL: i32 = -2_147_483_647;
const T: VarId = VarId(0);

/// A container with a variable of six records in chunks of 2 x 8 x 16, and whatever `more` adds.
fn create(path: &Path, options: CreateOptions, more: impl FnOnce(&mut Define)) -> Dataset {
    let mut def = Dataset::create(path, options.layout(Layout::Log)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(ROWS)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(COLUMNS)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[t, y, x]).unwrap();
    def.set_chunks(v, &[2, 8, 16]).unwrap();
    more(&mut def);
    def.enddef().unwrap()
}

fn value(record: u64, row: u64, column: u64) -> i32 {
    (record * 10_000 + row * 100 + column) as i32
}

fn values(records: std::ops::Range<u64>, rows: impl Iterator<Item = u64> + Clone) -> Vec<i32> {
    let rows =
        |record| rows.clone().flat_map(move |row| (0..COLUMNS).map(move |x| value(record, row, x)));
    records.flat_map(rows).collect()
}

/// How many entries the metadata logs of a container have.
fn entries(path: &Path) -> usize {
    let names = std::fs::read_dir(path.join("segments")).unwrap();
    let paths = names.map(|name| name.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|end| end == "meta"));
    let of_log = |path| {
        let bytes = std::fs::read(path).unwrap();
        let (_, begin) = Head::decode(&bytes).unwrap();
        let frames = Frames::new(&bytes[begin..], begin as u64, u64::MAX);
        frames.map(|frame| frame.unwrap().entries.len()).sum::<usize>()
    };
    logs.map(of_log).sum()
}

#[test]
fn what_ranks_put_together_is_one_entry_for_each_chunk() {
    let dir = tempfile::tempdir().unwrap();
    for ranks in [1, 2, 4, 7] {
        for filters in ["", "shuffle zstd,1"] {
            let path = dir.path().join(format!("{ranks}{}.esk", filters.len()));
            esker::launch(ranks, |comm| {
                let (rank, options) = (comm.rank() as u64, CreateOptions::new().comm(comm));
                let mut ds = create(&path, options, |def| {
                    if !filters.is_empty() {
                        def.set_filters(T, filters).unwrap();
                    }
                });
                assert_eq!(ds.chunk_shape(T), Some(&[2, 8, 16][..]));
                for first in [0, 2, 4] {
                    // Rows dealt out in turn: every chunk has something of every rank.
                    let rows = (rank..ROWS).step_by(ranks);
                    let count = rows.clone().count() as u64;
                    let mine = Selection::strided(
                        &[first, rank, 0],
                        &[2, count, COLUMNS],
                        &[1, ranks as u64, 1],
                    );
                    ds.put_all(T, &mine, &values(first..first + 2, rows)).unwrap();
                }
                assert_eq!(ds.get_all::<i32>(T, &Selection::all()).unwrap(), values(0..6, 0..ROWS));
                ds.close().unwrap();
            });
            // Three groups of 3 x 2 chunks.
            assert_eq!(entries(&path), 18, "{ranks} ranks");
            let ds = Dataset::open(&path).unwrap();
            assert_eq!(ds.chunk_shape(T), Some(&[2, 8, 16][..]));
            assert_eq!(ds.get::<i32>(T, &Selection::all()).unwrap(), values(0..6, 0..ROWS));
        }
    }
}

#[test]
fn values_put_together_lie_over_what_any_rank_has_put_alone_before() {
    let dir = tempfile::tempdir().unwrap();
    for who in 0..3 {
        let path = dir.path().join(format!("{who}.esk"));
        esker::launch(3, |comm| {
            let (rank, options) = (comm.rank() as u64, CreateOptions::new().comm(comm));
            let mut ds = create(&path, options, |_| ());
            let all = Selection::slab(&[0, 0, 0], &[1, ROWS, COLUMNS]);
            if rank == 2 {
                ds.put(T, &all, &vec![7; (ROWS * COLUMNS) as usize]).unwrap();
            }
            // One rank has most of a chunk, so that it owns it.
            let mine = if rank == who {
                &Selection::slab(&[0, 3, 4], &[1, 2, 2])
            } else {
                &Selection::none()
            };
            ds.put_all(T, mine, &vec![9; if rank == who { 4 } else { 0 }]).unwrap();
            if rank == 0 {
                // Behind it: this one is over it again.
                ds.put(T, &Selection::element(&[0, 4, 5]), &[11]).unwrap();
            }
            ds.close().unwrap();
        });
        let ds = Dataset::open(&path).unwrap();
        let found: Vec<i32> = ds.get(T, &Selection::slab(&[0, 2, 4], &[1, 3, 3])).unwrap();
        assert_eq!(found, [7, 7, 7, 9, 9, 7, 9, 11, 7], "rank {who}");
    }
}

#[test]
fn the_highest_rank_wins_where_ranks_put_the_same_elements_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    esker::launch(5, |comm| {
        let (rank, options) = (comm.rank(), CreateOptions::new().comm(comm));
        let mut ds = create(&path, options, |_| ());
        // All have all of the first record, and rank r rows up to 4 r of the second.
        ds.put_all(T, &Selection::slab(&[0, 0, 0], &[1, ROWS, COLUMNS]), &[rank as i32; 600])
            .unwrap();
        let rows = 4 * rank as u64;
        let values = vec![rank as i32; (rows * COLUMNS) as usize];
        let some = Selection::slab(&[1, 0, 0], &[1, rows, COLUMNS]);
        ds.put_all(T, &some, &values).unwrap();
        // The lowest rank alone comes later, and wins.
        let none = Selection::none();
        let first = Selection::element(&[1, 0, 0]);
        let (what, value) = if rank == 0 { (&first, &[100][..]) } else { (&none, &[][..]) };
        ds.put_all(T, what, value).unwrap();
        ds.close().unwrap();
    });
    let ds = Dataset::open(&path).unwrap();
    assert!(
        ds.get::<i32>(T, &Selection::slab(&[0, 0, 0], &[1, ROWS, COLUMNS]))
            .unwrap()
            .iter()
            .all(|v| *v == 4)
    );
    let second: Vec<i32> = ds.get(T, &Selection::slab(&[1, 0, 0], &[1, ROWS, COLUMNS])).unwrap();
    let mut seen: BTreeMap<i32, usize> = BTreeMap::new();
    second.iter().for_each(|v| *seen.entry(*v).or_default() += 1);
    // Rank 4 has rows 0 to 15; what nobody has put is the fill value.
    assert_eq!(second[0], 100);
    assert_eq!((seen[&100], seen[&4]), (1, 16 * 30 - 1), "{seen:?}");
    assert_eq!(seen[&FILL], 4 * 30);
}

#[test]
fn a_value_that_does_not_fit_into_another_ranks_chunk_is_an_error_where_it_came_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    esker::launch(3, |comm| {
        let (rank, options) = (comm.rank() as u64, CreateOptions::new().comm(comm));
        let mut def = Dataset::create(&path, options.layout(Layout::Log)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(12)).unwrap();
        let v = def.add_var("v", ExternalType::Byte, &[x]).unwrap();
        def.set_chunks(v, &[12]).unwrap();
        let mut ds = def.enddef().unwrap();
        let value = if rank == 1 { 1000 } else { rank as i32 };
        let put = ds.put_all(v, &Selection::strided(&[rank], &[4], &[3]), &[value; 4]);
        match rank {
            1 => assert!(put.unwrap_err().to_string().contains("1000"), "which value"),
            _ => drop(put),
        }
        ds.close().unwrap();
    });
    let ds = Dataset::open(&path).unwrap();
    let found: Vec<i32> = ds.get(T, &Selection::all()).unwrap();
    assert_eq!((found[0], found[2], found[11]), (0, 2, 2));
}

#[test]
fn a_chunk_shape_that_is_none_is_an_error_of_a_write_and_of_no_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut ds = create(&path, CreateOptions::new(), |def| {
        let x = def.schema().dim("x").unwrap();
        let w = def.add_var("w", ExternalType::Int, &[x]).unwrap();
        def.put_attr(w, "__chunk_shape", &[3, 4][..]).unwrap();
    });
    let w = ds.var("w").unwrap();
    let refused = ds.put(w, &Selection::all(), &[0; COLUMNS as usize]).unwrap_err();
    assert!(matches!(refused, Error::Chunked { .. }), "{refused}");
    assert!(refused.to_string().contains("\"w\""), "{refused}");
    assert_eq!(ds.get::<i32>(w, &Selection::element(&[0])).unwrap(), [FILL]);
    ds.put(T, &Selection::element(&[0, 0, 0]), &[5]).unwrap();
    ds.close().unwrap();
    assert_eq!(
        Dataset::open(&path).unwrap().get::<i32>(T, &Selection::element(&[0, 0, 0])).unwrap(),
        [5]
    );
}

#[test]
fn chunks_have_the_filters_and_shapes_of_a_session_that_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    create(&path, CreateOptions::new(), |_| ()).close().unwrap();
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let mut ds =
            Dataset::open_with(&path, OpenOptions::new().writable(true).comm(comm.clone()))
                .unwrap();
        let half = Selection::slab(&[0, 0, 15 * rank], &[2, ROWS, 15]);
        ds.put_all(T, &half, &vec![1 + rank as i32; 2 * 20 * 15]).unwrap();
        // Defined by a later session, and put into at once.
        let mut def = ds.redef().unwrap();
        let (y, x) = (def.schema().dim("y").unwrap(), def.schema().dim("x").unwrap());
        let w = def.add_var("w", ExternalType::Double, &[y, x]).unwrap();
        def.set_chunks(w, &[20, 10]).unwrap();
        def.set_filters(w, "pco").unwrap();
        assert_eq!(def.chunk_shape(w).unwrap(), Some(vec![20, 10]));
        let mut ds = def.enddef().unwrap();
        let mine = Selection::strided(&[rank, 0], &[10, COLUMNS], &[2, 1]);
        ds.put_all(w, &mine, &vec![rank as f64; 300]).unwrap();
        comm.barrier().unwrap();
        ds.close().unwrap();
    });
    // 3 x 2 chunks, and three.
    assert_eq!(entries(&path), 9);
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(T, &Selection::slab(&[1, 19, 14], &[1, 1, 2])).unwrap(), [1, 2]);
    let w = ds.var("w").unwrap();
    assert_eq!(ds.get::<f64>(w, &Selection::slab(&[0, 7], &[4, 1])).unwrap(), [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn a_put_into_chunks_that_fails_makes_no_record_and_can_be_made_again() {
    const LONG: u64 = 200_000;
    let values = vec![3; LONG as usize];
    let life = |at| {
        let store =
            FaultyStore::new(MemoryStore::default(), at, Fault::Fail(ErrorKind::StorageFull));
        let options = CreateOptions::new().layout(Layout::Log).store(Arc::new(store.clone()));
        let mut def = Dataset::create("/run.esk", options).ok()?;
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(LONG)).unwrap();
        let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
        def.set_chunks(v, &[1, LONG]).unwrap();
        let mut ds = def.enddef().ok()?;
        let (before, record) = (store.calls(), Selection::slab(&[0, 0], &[1, LONG]));
        let failed = ds.put_all(v, &record, &values).is_err();
        if failed {
            assert_eq!(ds.numrecs(), 0, "at call {at}");
            ds.put_all(v, &record, &values).unwrap();
        }
        assert_eq!(
            (ds.numrecs(), ds.get::<i32>(v, &record).unwrap() == values),
            (1, true),
            "at call {at}"
        );
        Some((before, failed))
    };
    let (first, _) = life(u64::MAX).unwrap();
    assert_eq!(life(first), Some((first, true)), "the first write of its values was to fail");
}
