//! Wrong arguments, odd shapes, many variables, many chunks, many threads.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, Error, ExternalType, Hints, OpenOptions,
    Requests, Selection, VarId,
};
use esker_store::{CountingStore, MemoryStore};

use esker_testkit::cpu;
use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/limits.nc";

fn in_memory() -> Define {
    let store = Arc::new(MemoryStore::default());
    Dataset::create(PATH, CreateOptions::new().store(store)).unwrap()
}

fn refused<T: std::fmt::Debug>(outcome: esker::Result<T>, words: &str) {
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains(words) && error.contains("\"v\""), "{error}");
}

#[test]
fn filters_that_do_not_fit_are_refused_at_once() {
    let mut def = in_memory();
    let x = def.add_dim("x", DimLen::Fixed(100)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    for lossy in ["bitround,7", "sz,abs=0.1", "zfp,accuracy=0.1", "f32"] {
        let error = def.set_filters(v, lossy).unwrap_err().to_string();
        assert!(error.contains("\"v\""), "{lossy}: {error}");
    }
    for wrong in
        ["zstd,99", "deflate,x", "nosuch", "zstd zstd,", "shuffle,3,4", "sz", "zfp,rate=-1", ","]
    {
        let error = def.set_filters(v, wrong).unwrap_err().to_string();
        assert!(error.contains("\"v\""), "{wrong}: {error}");
    }
    // Nothing of it stays.
    def.set_filters(v, "shuffle zstd,3").unwrap();
    let mut ds = def.enddef().unwrap();
    assert_eq!(ds.chunking(v).unwrap().pipeline.to_string(), "shuffle zstd,3");
    let data: Vec<i32> = (0..100).collect();
    ds.put(v, &Selection::all(), &data).unwrap();
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), data);
}

#[test]
fn a_variable_that_cannot_be_stored_as_asked_is_not_defined() {
    let mut def = in_memory();
    let x = def.add_dim("x", DimLen::Fixed(100)).unwrap();
    let asked = def.add_var_with("v", ExternalType::Int, &[x], |def, v| {
        def.set_chunks(v, &[10])?;
        def.set_filters(v, "f32")
    });
    refused(asked, "f32");
    assert!(def.schema().var("v").is_none());
    let v = def.add_var_with("v", ExternalType::Int, &[x], |def, v| {
        def.set_chunks(v, &[10])?;
        def.set_filters(v, "zstd,3")
    });
    let (v, mut ds) = (v.unwrap(), def.enddef().unwrap());
    ds.put(v, &Selection::all(), &[7; 100]).unwrap();
    assert_eq!(ds.chunking(v).unwrap().chunk, [10]);
    assert_eq!(ds.get::<i32>(v, &Selection::element(&[99])).unwrap(), [7]);
}

#[test]
fn shapes_that_do_not_fit_are_refused_at_once() {
    let mut def = in_memory();
    let x = def.add_dim("x", DimLen::Fixed(1 << 30)).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(10)).unwrap();
    let v = def.add_var("v", ExternalType::Double, &[x, y]).unwrap();
    refused(def.set_chunks(v, &[4]), "1 lengths");
    refused(def.set_chunks(v, &[4, 4, 4]), "3 lengths");
    refused(def.set_chunks(v, &[0, 4]), "no length");
    refused(def.set_chunks(v, &[1 << 28, 10]), "more than 1024 MiB");
    refused(def.set_chunks(v, &[u64::MAX, u64::MAX]), "more than 1024 MiB");
    let scalar = def.add_var("scalar", ExternalType::Double, &[]).unwrap();
    assert!(def.set_chunks(scalar, &[]).is_err());
    assert!(def.set_filters(scalar, "zstd").is_err());
    assert!(def.set_chunks(VarId(9), &[1]).is_err());
    // A chunk that is longer than the dimension is as long as it.
    def.set_chunks(v, &[1000, 7]).unwrap();
    def.set_chunks(v, &[1000, 70]).unwrap();
    let ds = def.enddef().unwrap();
    assert_eq!(ds.chunking(v).unwrap().chunk, [1000, 10]);
}

#[test]
fn chunks_that_are_larger_than_the_hint_are_refused_before_memory_is_taken() {
    let store: Arc<dyn esker_store::Store> = Arc::new(esker_store::MemoryStore::default());
    let mut hints = Hints::default();
    hints.set("esker_chunk_max", "1073741824");
    let options = CreateOptions::new().store(store.clone());
    let mut def = Dataset::create("/large.nc", options.clone()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1 << 27)).unwrap();
    let v = def.add_var("v", ExternalType::Float, &[x]).unwrap();
    refused(def.set_chunks(v, &[1 << 27]), "esker_chunk_max");
    drop(def);
    let mut def = Dataset::create("/large.nc", options.hints(hints)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1 << 27)).unwrap();
    let v = def.add_var("v", ExternalType::Float, &[x]).unwrap();
    def.set_chunks(v, &[1 << 27]).unwrap();
    def.enddef().unwrap().close().unwrap();
    let open = || Dataset::open_with("/large.nc", OpenOptions::new().store(store.clone()));
    let ds = open().unwrap();
    refused(ds.get::<f32>(v, &Selection::element(&[5])), "esker_chunk_max");
    let faults = ds.examine_chunks(&mut |_, _| ()).unwrap();
    assert!(faults[0].what.contains("esker_chunk_max"), "{faults:?}");
}

#[test]
fn what_a_file_has_keeps_its_chunks() {
    let mut def = in_memory();
    let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let plain = def.add_var("plain", ExternalType::Int, &[x]).unwrap();
    def.set_chunks(v, &[3]).unwrap();
    let ds = def.enddef().unwrap();
    let mut def = ds.redef().unwrap();
    refused(def.set_chunks(v, &[4]), "when it is defined");
    refused(def.set_filters(v, "zstd"), "when it is defined");
    assert!(def.set_chunks(plain, &[4]).is_err());
    for name in ["__chunk_shape", "__filters", "__chunk_refs", "__chunk_dims"] {
        refused(def.put_attr(v, name, 1i32), name);
    }
    let ds = def.enddef().unwrap();
    assert_eq!(ds.chunking(v).unwrap().chunk, [3]);
    assert!(ds.chunking(plain).is_none());
}

#[test]
fn one_of_several_ranks_does_not_write_alone_where_nothing_may_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(3, move |comm| {
        let mut hints = Hints::default();
        hints.set("esker_chunk_pending", "0");
        let mut ds = some_chunks(&comm, &path, hints);
        let v = VarId(0);
        let me = comm.rank() as u64;
        let error = ds.put(v, &Selection::element(&[0, me]), &[1i32]).unwrap_err().to_string();
        assert!(error.contains("collective") && error.contains("\"v\""), "{error}");
        assert_eq!(ds.numrecs(), 0);
        ds.put_all(v, &Selection::element(&[0, me]), &[me as i32]).unwrap();
        assert_eq!(ds.get::<i32>(v, &Selection::slab(&[0, 0], &[1, 3])).unwrap(), [0, 1, 2]);
    });
}

fn some_chunks(comm: &Arc<dyn Communicator>, path: &Path, hints: Hints) -> Dataset {
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
    def.set_chunks(v, &[4, 3]).unwrap();
    def.set_filters(v, "shuffle lz4").unwrap();
    def.enddef().unwrap()
}

#[test]
fn a_variable_without_records_is_empty_and_can_grow() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let ds = some_chunks(&comm, &path, Hints::default());
        ds.close().unwrap();
        let options = OpenOptions::new().writable(true).comm(comm.clone());
        let mut ds = Dataset::open_with(&path, options).unwrap();
        let v = ds.var("v").unwrap();
        assert_eq!(ds.get_all::<i32>(v, &Selection::all()).unwrap(), [0i32; 0]);
        ds.stored_chunks(v, true, |_, _| panic!("there is none")).unwrap();
        assert!(ds.get::<i32>(v, &Selection::element(&[0, 0])).is_err());
        let me = comm.rank() as u64;
        ds.put_all(v, &Selection::slab(&[6, 5 * me], &[1, 5]), &[7i32; 5]).unwrap();
        assert_eq!(ds.numrecs(), 7);
        let all: Vec<i32> = ds.get_all(v, &Selection::all()).unwrap();
        assert_eq!(all[60..], [7; 10]);
        assert!(all[..60].iter().all(|v| *v == -2_147_483_647));
    });
}

#[test]
fn records_that_share_a_chunk_are_appended_one_by_one() {
    for ranks in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(ranks, move |comm| {
            let mut ds = some_chunks(&comm, &path, Hints::default());
            let v = ds.var("v").unwrap();
            let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
            for record in 0..23 {
                let count = (10 - me).div_ceil(ranks);
                let mine = Selection::strided(&[record, me], &[1, count], &[1, ranks]);
                let data: Vec<i32> =
                    (0..count).map(|i| (record * 10 + me + i * ranks) as i32).collect();
                ds.put_all(v, &mine, &data).unwrap();
                if record % 5 == 4 {
                    ds.close().unwrap();
                    let options = OpenOptions::new().writable(true).comm(comm.clone());
                    ds = Dataset::open_with(&path, options).unwrap();
                }
                let all: Vec<i32> = ds.get_all(v, &Selection::all()).unwrap();
                assert_eq!(all, (0..10 * (record as i32 + 1)).collect::<Vec<_>>());
            }
        });
    }
}

/// Not a speed test: what takes the square of a number would compute for minutes.
fn within(limit: u64, what: &str, call: impl FnOnce()) {
    let ((), time) = cpu::of_this_thread(call);
    println!("{what}: {time:?}");
    assert!(time < Duration::from_secs(limit), "{what} took {time:?}");
}

#[test]
fn a_thousand_variables() {
    const VARS: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let options = || CreateOptions::new().comm(comm.clone());
        let mut def = Dataset::create(&path, options()).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(20)).unwrap();
        let mut vars = Vec::new();
        for number in 0..VARS {
            let dims = if number % 2 == 0 { vec![x] } else { vec![t, x] };
            let v = def.add_var(&format!("v{number}"), ExternalType::Short, &dims).unwrap();
            def.set_filters(v, "shuffle zstd,1").unwrap();
            vars.push((v, dims.len()));
        }
        within(40, "a thousand variables", || {
            let mut ds = def.enddef().unwrap();
            let me = comm.rank() as u64;
            let data: Vec<Vec<i16>> = (0..VARS).map(|n| vec![n as i16; 10]).collect();
            let mut queue = Requests::new();
            for ((v, dims), data) in vars.iter().zip(&data) {
                let mine = match dims {
                    1 => Selection::slab(&[10 * me], &[10]),
                    _ => Selection::slab(&[0, 10 * me], &[1, 10]),
                };
                ds.iput(&mut queue, *v, &mine, data).unwrap();
            }
            ds.wait_all(&mut queue).unwrap();
            drop(queue);
            ds.sync().unwrap();
            ds.close().unwrap();
            let ds = Dataset::open_with(&path, OpenOptions::new().comm(comm.clone())).unwrap();
            for (number, (v, _)) in vars.iter().enumerate() {
                let all: Vec<i16> = ds.get(*v, &Selection::all()).unwrap();
                assert_eq!(all, [number as i16; 20]);
            }
        });
    });
}

#[test]
fn a_hundred_thousand_chunks() {
    const CHUNKS: u64 = 100_000;
    let store = Arc::new(MemoryStore::default());
    let mut hints = Hints::default();
    // Few of them fit.
    hints.set("esker_chunk_cache", "4000000");
    let options = CreateOptions::new().store(store.clone()).hints(hints.clone());
    let mut def = Dataset::create(PATH, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(CHUNKS * 10)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    def.set_chunks(v, &[10]).unwrap();
    let mut ds = def.enddef().unwrap();
    let data: Vec<i32> = (0..CHUNKS as i32 * 10).collect();
    within(30, "writing", || ds.put(v, &Selection::all(), &data).unwrap());
    within(30, "rewriting", || ds.put(v, &Selection::all(), &data).unwrap());
    within(30, "every tenth element", || {
        let mine = Selection::strided(&[3], &[CHUNKS], &[10]);
        let values: Vec<i32> = (0..CHUNKS as i32).map(|i| 10 * i + 3).collect();
        ds.put(v, &mine, &values).unwrap();
    });
    ds.close().unwrap();
    let options = OpenOptions::new().writable(true).store(store.clone()).hints(hints);
    let mut ds = Dataset::open_with(PATH, options).unwrap();
    within(30, "reading", || assert!(ds.get::<i32>(v, &Selection::all()).unwrap() == data));
    within(30, "reading chunk by chunk", || {
        for i in 0..CHUNKS {
            let at = 10 * (i * 7919 % CHUNKS);
            assert_eq!(ds.get::<i32>(v, &Selection::element(&[at])).unwrap(), [at as i32]);
        }
    });
    within(30, "holes and one chunk", || {
        ds.put(v, &Selection::element(&[5]), &[5i32]).unwrap();
    });
    within(30, "chunk by chunk", || {
        for i in 0..1000 {
            ds.put(v, &Selection::element(&[100 * i]), &[100 * i as i32]).unwrap();
        }
    });
    assert!(ds.get::<i32>(v, &Selection::all()).unwrap() == data);
}

#[test]
fn a_hundred_thousand_records() {
    const RECORDS: u64 = 100_000;
    let store = Arc::new(MemoryStore::default());
    let mut def = Dataset::create(PATH, CreateOptions::new().store(store.clone())).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
    def.set_chunks(v, &[1, 4]).unwrap();
    let mut ds = def.enddef().unwrap();
    let data: Vec<i32> = (0..4 * RECORDS as i32).collect();
    within(30, "all but a thousand", || {
        let most = (RECORDS - 1000) as usize * 4;
        ds.put(v, &Selection::slab(&[0, 0], &[RECORDS - 1000, 4]), &data[..most]).unwrap();
    });
    within(30, "a thousand, one by one", || {
        for record in RECORDS - 1000..RECORDS {
            let at = record as usize * 4;
            ds.put(v, &Selection::slab(&[record, 0], &[1, 4]), &data[at..at + 4]).unwrap();
        }
    });
    within(30, "reading", || assert!(ds.get::<i32>(v, &Selection::all()).unwrap() == data));
    ds.close().unwrap();
    let ds = Dataset::open_with(PATH, OpenOptions::new().store(store)).unwrap();
    within(30, "reading backwards", || {
        for record in (0..RECORDS).rev().step_by(10) {
            let found: Vec<i32> = ds.get(v, &Selection::slab(&[record, 0], &[1, 4])).unwrap();
            assert_eq!(found[0], 4 * record as i32);
        }
    });
}

#[test]
fn many_threads_read_one_dataset() {
    let store = Arc::new(CountingStore::new(MemoryStore::default()));
    let mut def = Dataset::create(PATH, CreateOptions::new().store(store.clone())).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(100)).unwrap();
    let v = def.add_var("v", ExternalType::Float, &[t, x]).unwrap();
    def.set_chunks(v, &[2, 30]).unwrap();
    def.set_filters(v, "shuffle deflate,6").unwrap();
    let mut ds = def.enddef().unwrap();
    let data: Vec<f32> = (0..20_000).map(|i| i as f32).collect();
    ds.put(v, &Selection::slab(&[0, 0], &[200, 100]), &data).unwrap();
    let ds = &ds;
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let data = &data;
            scope.spawn(move || {
                for i in 0..500 {
                    let (row, column) = ((i * 17 + thread * 31) % 200, (i * 13 + thread) % 100);
                    let count = [(200 - row).min(3), (100 - column).min(40)];
                    let found: Vec<f32> =
                        ds.get(v, &Selection::slab(&[row, column], &count)).unwrap();
                    assert_eq!(found[0], data[(row * 100 + column) as usize]);
                    let last = (row + count[0] - 1) * 100 + column + count[1] - 1;
                    assert_eq!(found.last(), Some(&data[last as usize]));
                }
            });
        }
    });
}

/// A value that does not fit is its rank's error; everything is moved, and nobody waits for anybody.
#[test]
fn values_out_of_range_are_the_ranks_own_error() {
    for ranks in [1, 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(ranks, move |comm| {
            let options = CreateOptions::new().comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
            let plain = def.add_var("plain", ExternalType::Int, &[x]).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            def.set_chunks(v, &[2]).unwrap();
            let mut ds = def.enddef().unwrap();
            let me = comm.rank() as u64;
            let bad = me + 1 == comm.size() as u64;
            let mine = Selection::element(&[me]);
            for (of_plain, of_v) in [(1e20, 5.0), (5.0, 1e20), (1e20, 1e20)] {
                let value = |odd: f64| [if bad { odd } else { 5.0 }];
                let (a, b) = (value(of_plain), value(of_v));
                let mut queue = Requests::new();
                ds.iput(&mut queue, plain, &mine, &a).unwrap();
                ds.iput(&mut queue, v, &mine, &b).unwrap();
                let outcome = ds.wait_all(&mut queue);
                assert_eq!(matches!(outcome, Err(Error::Range { .. })), bad, "{outcome:?}");
                drop(queue);
                for (var, odd) in [(plain, of_plain), (v, of_v)] {
                    let all: Vec<i32> = ds.get_all(var, &Selection::all()).unwrap();
                    let last = if odd > 5.0 { -2_147_483_647 } else { 5 };
                    assert_eq!(all[ranks - 1], last);
                    assert!(all[..ranks - 1].iter().all(|v| *v == 5), "{all:?}");
                }
            }
            // And the other way.
            let value = if bad { 300 } else { 7 };
            ds.put_all(v, &mine, &[value]).unwrap();
            let mut out = [1u8];
            let outcome = ds.get_all_into(v, &mine, &mut out);
            assert_eq!(matches!(outcome, Err(Error::Range { .. })), bad, "{outcome:?}");
            ds.close().unwrap();
        });
    }
}

#[test]
fn a_damaged_chunk_is_everyones_error_and_can_be_written_again() {
    for shared in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        on_ranks(3, move |comm| {
            let options = CreateOptions::new().comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(90)).unwrap();
            let mut add = |name: &str| {
                let var = def.add_var(name, ExternalType::Int, &[x]).unwrap();
                def.set_chunks(var, &[30]).unwrap();
                def.set_filters(var, "zstd,1").unwrap();
                var
            };
            let (v, w) = (add("v"), add("w"));
            let mut ds = def.enddef().unwrap();
            let me = comm.rank() as u64;
            let rows = Selection::slab(&[30 * me], &[30]);
            for var in [v, w] {
                ds.put_all(var, &rows, &(0..30).collect::<Vec<i32>>()).unwrap();
            }
            let mut at = 0;
            ds.stored_chunks(v, false, |index, chunk| {
                at = if index == [1] { chunk.offset + chunk.size / 2 } else { at };
                Ok(())
            })
            .unwrap();
            comm.barrier().unwrap();
            if me == 0 {
                let mut bytes = std::fs::read(&path).unwrap();
                bytes[at as usize] ^= 4;
                let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
                use std::os::unix::fs::FileExt;
                file.write_all_at(&bytes[at as usize..=at as usize], at).unwrap();
            }
            comm.barrier().unwrap();
            let wanted = match shared {
                true => Selection::strided(&[me], &[30], &[3]),
                false => rows.clone(),
            };
            let named = |outcome: Result<(), Error>| {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("\"v\"") && error.contains("chunk 1"), "{error}");
            };
            named(ds.get_all::<i32>(v, &wanted).map(drop));
            assert_eq!(ds.get_all::<i32>(w, &wanted).unwrap().len(), 30);
            // A part of it would need the rest.
            named(ds.put_all(v, &Selection::element(&[30 + me]), &[1i32]));
            // The others are there.
            let first: Vec<i32> = ds.get_all(v, &Selection::slab(&[0], &[30])).unwrap();
            assert_eq!(first, (0..30).collect::<Vec<i32>>());
            ds.put_all(v, &rows, &[9i32; 30]).unwrap();
            assert_eq!(ds.get_all::<i32>(v, &Selection::all()).unwrap(), [9; 90]);
            ds.close().unwrap();
        });
    }
}
