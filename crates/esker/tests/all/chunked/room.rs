//! Chunks before the records of traditional variables: the room ends, and more is made.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, OpenOptions,
    Requests, Selection,
};

use esker_testkit::ranks::on_ranks;

const ROWS: u64 = 100;

fn hints(room: Option<u64>) -> Hints {
    let mut hints = Hints::default();
    if let Some(room) = room {
        hints.set("esker_chunk_room", &room.to_string());
    }
    hints
}

/// A chunked variable with records, and a traditional one unless all are chunked.
fn create(comm: &Arc<dyn Communicator>, path: &Path, hints: Hints, all: bool) -> Dataset {
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(ROWS)).unwrap();
    let c = def.add_var("c", ExternalType::Double, &[t, x]).unwrap();
    def.set_chunks(c, &[1, ROWS]).unwrap();
    let trad = def.add_var("trad", ExternalType::Int, &[t, x]).unwrap();
    if all {
        def.set_chunks(trad, &[1, ROWS]).unwrap();
    }
    def.enddef().unwrap()
}

fn value(record: u64, i: u64) -> f64 {
    (record * 1000 + i) as f64
}

/// Writes a record of both, each rank every n-th element of it.
fn append(ds: &mut Dataset, comm: &dyn Communicator, record: u64) -> Result<(), Error> {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let count = (ROWS - me).div_ceil(ranks);
    let mine = Selection::strided(&[record, me], &[1, count], &[1, ranks]);
    let values: Vec<f64> = (0..count).map(|i| value(record, me + i * ranks)).collect();
    for name in ["c", "trad"] {
        let var = ds.var(name)?;
        ds.put_all(var, &mine, &values)?;
    }
    Ok(())
}

fn check(ds: &Dataset, records: u64) {
    assert_eq!(ds.numrecs(), records);
    for name in ["c", "trad"] {
        let found: Vec<f64> = ds.get(ds.var(name).unwrap(), &Selection::all()).unwrap();
        let expected: Vec<f64> =
            (0..records).flat_map(|r| (0..ROWS).map(move |i| value(r, i))).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// Appends records up to this many.
fn fill_up(ds: &mut Dataset, comm: &dyn Communicator, records: u64) {
    for record in ds.numrecs()..records {
        append(ds, comm, record).unwrap();
    }
}

#[test]
fn when_the_room_is_full_more_is_made() {
    for ranks in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(ranks, move |comm| {
            let mut ds = create(&comm, &path, Hints::default(), false);
            let mut moves = 0;
            for record in 0..100 {
                let begin = ds.header().layout.record_begin;
                append(&mut ds, &*comm, record).unwrap();
                moves += u64::from(ds.header().layout.record_begin != begin);
            }
            check(&ds, 100);
            assert!((1..20).contains(&moves), "records moved {moves} times");
            comm.barrier().unwrap();
            ds.close().unwrap();
            check(&Dataset::open(&path).unwrap(), 100);
        });
    }
}

#[test]
fn a_wait_that_makes_room_writes_its_records_behind_it() {
    for (ranks, together) in [(1, false), (1, true), (3, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(ranks, move |comm| {
            let mut ds = create(&comm, &path, Hints::default(), false);
            let begin = ds.header().layout.record_begin;
            for record in 0..40 {
                let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
                let count = (ROWS - me).div_ceil(ranks);
                let mine = Selection::strided(&[record, me], &[1, count], &[1, ranks]);
                let values: Vec<f64> = (0..count).map(|i| value(record, me + i * ranks)).collect();
                let mut queue = Requests::new();
                for name in ["c", "trad"] {
                    ds.iput(&mut queue, ds.var(name).unwrap(), &mine, &values).unwrap();
                }
                match together {
                    true => ds.wait_all(&mut queue).unwrap(),
                    false => ds.wait(&mut queue).unwrap(),
                }
            }
            assert_ne!(ds.header().layout.record_begin, begin, "nothing moved");
            check(&ds, 40);
            comm.barrier().unwrap();
            ds.close().unwrap();
            check(&Dataset::open(&path).unwrap(), 40);
        });
    }
}

#[test]
fn a_redefinition_with_the_hint_makes_room() {
    for ranks in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(ranks, move |comm| {
            let mut ds = create(&comm, &path, hints(Some(4096)), false);
            fill_up(&mut ds, &*comm, 10);
            ds.close().unwrap();
            let options = OpenOptions::new().writable(true).comm(comm.clone());
            let options = options.hints(hints(Some(128 * 1024)));
            let ds = Dataset::open_with(&path, options).unwrap();
            let mut ds = ds.redef().unwrap().enddef().unwrap();
            check(&ds, 10);
            comm.barrier().unwrap();
            let begin = ds.header().layout.record_begin;
            fill_up(&mut ds, &*comm, 60);
            check(&ds, 60);
            comm.barrier().unwrap();
            // With the same hint nothing moves any more.
            let ds = ds.redef().unwrap().enddef().unwrap();
            assert_eq!(ds.header().layout.record_begin, begin);
            ds.close().unwrap();
            check(&Dataset::open(&path).unwrap(), 60);
        });
    }
}

#[test]
fn a_file_created_with_the_hint_has_the_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let mut ds = create(&comm, &path, hints(Some(200 * 1024)), false);
        let begin = ds.header().layout.record_begin;
        for record in 0..100 {
            append(&mut ds, &*comm, record).unwrap();
        }
        check(&ds, 100);
        assert_eq!(ds.header().layout.record_begin, begin, "nothing moved");
    });
}

#[test]
fn without_traditional_records_there_is_no_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let mut ds = create(&comm, &path, hints(Some(1)), true);
        for record in 0..150 {
            append(&mut ds, &*comm, record).unwrap();
        }
        check(&ds, 150);
        ds.close().unwrap();
        check(&Dataset::open(&path).unwrap(), 150);
    });
}

/// A variable that comes later has room too.
#[test]
fn a_new_variable_gets_room_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let mut ds = create(&comm, &path, Hints::default(), false);
        let records = 20;
        fill_up(&mut ds, &*comm, records);
        let mut def = ds.redef().unwrap();
        let x = def.schema().dim("x").unwrap();
        let y = def.add_dim("y", DimLen::Fixed(50)).unwrap();
        let late = def.add_var("late", ExternalType::Int, &[x, y]).unwrap();
        def.set_chunks(late, &[10, 10]).unwrap();
        let mut ds = def.enddef().unwrap();
        let half = Selection::slab(&[50 * comm.rank() as u64, 0], &[50, 50]);
        ds.put_all(late, &half, &vec![5i32; 2500]).unwrap();
        check(&ds, records);
        let all: Vec<i32> = ds.get_all(late, &Selection::all()).unwrap();
        assert_eq!(all, vec![5; 5000]);
    });
}

/// A variable that is rewritten for ever uses its holes again.
#[test]
fn rewriting_does_not_use_up_the_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let mut hints = Hints::default();
        hints.set("esker_chunk_room", "20000");
        let options = CreateOptions::new().comm(comm.clone()).hints(hints);
        let mut def = Dataset::create(&path, options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(1000)).unwrap();
        let c = def.add_var("c", ExternalType::Double, &[x]).unwrap();
        def.set_chunks(c, &[100]).unwrap();
        def.add_var("trad", ExternalType::Int, &[t]).unwrap();
        let mut ds = def.enddef().unwrap();
        let me = comm.rank() as u64;
        for step in 0..50 {
            let mine = Selection::strided(&[me], &[500], &[2]);
            ds.put_all(c, &mine, &vec![step as f64; 500]).unwrap();
            ds.sync().unwrap();
        }
        let all: Vec<f64> = ds.get_all(c, &Selection::all()).unwrap();
        assert_eq!(all, vec![49.0; 1000]);
    });
}

/// Found by the random scenario under MPI: chunks that were written in place before the room ended
/// did not match their checksums when the call was done again.
#[test]
fn a_rewrite_in_place_that_needs_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(1, move |comm| {
        let mut hints = Hints::default();
        hints.set("esker_chunk_rewrite", "in_place");
        hints.set("esker_chunk_room", "2000");
        hints.set("esker_chunk_buffer", "1");
        let options = CreateOptions::new().comm(comm.clone()).hints(hints);
        let mut def = Dataset::create(&path, options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(1000)).unwrap();
        let c = def.add_var("c", ExternalType::Double, &[x]).unwrap();
        def.set_chunks(c, &[100]).unwrap();
        def.add_var("trad", ExternalType::Int, &[t]).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put(c, &Selection::slab(&[0], &[100]), &[1.0; 100]).unwrap();
        ds.put(c, &Selection::slab(&[50], &[950]), &[2.0; 950]).unwrap();
        let all: Vec<f64> = ds.get(c, &Selection::all()).unwrap();
        assert_eq!(all[..50], [1.0; 50]);
        assert_eq!(all[50..], [2.0; 950]);
    });
}
