//! Chunked and decomposed variables behind a burst buffer.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, RecoverOptions,
    Requests, Selection, SelfComm, VarId,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};
use esker_testkit::programs;

use crate::scenario;

/// How many seeds for each number of ranks; more with ESKER_SEEDS.
fn seeds() -> u64 {
    std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(40)
}

fn on_threads(name: &str, ranks: usize, seeds: std::ops::Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    for seed in seeds {
        let path = dir.path().join(name);
        let world = esker_comm::ThreadWorld::new(ranks).ranks_per_node(1 + seed as usize % 4);
        world.launch(|comm| scenario::run(seed, comm, &path)).unwrap();
        if !name.contains(".sub.") {
            programs::require_valid(&path, &format!("seed {seed} on {ranks} ranks"));
        }
    }
}

#[test]
fn chunks_of_one_rank_behind_logs_agree_with_the_model() {
    on_threads("run.burst.chunk.nc", 1, 40_000..40_000 + seeds());
}

#[test]
fn chunks_of_two_ranks_behind_logs_agree_with_the_model() {
    on_threads("run.burst.chunk.nc", 2, 41_000..41_000 + seeds());
}

#[test]
fn chunks_of_four_ranks_behind_logs_agree_with_the_model() {
    on_threads("run.burst.chunk.nc", 4, 42_000..42_000 + seeds());
}

#[test]
fn chunks_of_seven_ranks_behind_logs_agree_with_the_model() {
    on_threads("run.burst.chunk.nc", 7, 43_000..43_000 + seeds() / 2);
}

#[test]
fn files_of_chunks_of_one_rank_behind_logs_agree_with_the_model() {
    on_threads("run.burst.sub.chunk.nc", 1, 44_000..44_000 + seeds() / 2);
}

#[test]
fn files_of_chunks_of_three_ranks_behind_logs_agree_with_the_model() {
    on_threads("run.burst.sub.chunk.nc", 3, 45_000..45_000 + seeds() / 2);
}

#[test]
fn two_datasets_with_chunks_behind_logs_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 46_000..46_000 + seeds() / 2 {
        let path = dir.path().join("run.burst.chunk.nc");
        esker::launch(3, |comm| scenario::run_two(seed, comm, &path));
    }
}

fn decomposed_on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    for seed in seeds {
        let path = dir.path().join("run.burst.nc");
        esker::launch(ranks, |comm| scenario::run_decomposed(seed, comm, &path));
    }
}

#[test]
fn decomposed_variables_of_one_rank_behind_logs_agree_with_the_model() {
    decomposed_on_threads(1, 50_000..50_000 + seeds());
}

#[test]
fn decomposed_variables_of_three_ranks_behind_logs_agree_with_the_model() {
    decomposed_on_threads(3, 51_000..51_000 + seeds());
}

#[test]
fn decomposed_variables_of_seven_ranks_behind_logs_agree_with_the_model() {
    decomposed_on_threads(7, 52_000..52_000 + seeds() / 2);
}

fn solo() -> Arc<dyn Communicator> {
    Arc::new(SelfComm::new())
}

/// Hints for a burst buffer in this directory.
fn hints(dir: &Path, more: &[(&str, &str)]) -> Hints {
    let mut hints = Hints::default();
    hints.set("nc_burst_buf", "enable");
    hints.set("nc_burst_buf_dirname", dir.to_str().unwrap());
    more.iter().for_each(|(name, value)| hints.set(name, value));
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}

/// A dataset with `c(time, x)` in chunks of 4 records, and `t(time, x)`, doubles.
fn create(
    path: &Path,
    x: u64,
    hints: Hints,
    comm: Arc<dyn Communicator>,
) -> (Dataset, VarId, VarId) {
    let mut def = Dataset::create(path, CreateOptions::new().hints(hints).comm(comm)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let dim = def.add_dim("x", DimLen::Fixed(x)).unwrap();
    let c = def.add_var("c", ExternalType::Double, &[time, dim]).unwrap();
    def.set_chunks(c, &[4, x.div_ceil(2)]).unwrap();
    def.set_filters(c, "shuffle zstd,1").unwrap();
    let t = def.add_var("t", ExternalType::Double, &[time, dim]).unwrap();
    (def.enddef().unwrap(), c, t)
}

const FILL: f64 = 9.969_209_968_386_869e36;

#[test]
fn chunks_are_in_the_log_until_a_flush_and_the_writer_sees_them() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let (mut ds, c, t) = create(&path, 4, hints(&bb, &[]), solo());
    assert!(ds.hints().effective().contains(&("nc_burst_buf", "enable".to_string())));
    ds.put(c, &Selection::slab(&[1, 1], &[1, 2]), &[1.0, 2.0]).unwrap();
    ds.put_all(t, &Selection::slab(&[0, 0], &[1, 1]), &[3.0]).unwrap();
    let expected = [FILL, FILL, FILL, FILL, FILL, 1.0, 2.0, FILL];
    assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), expected);
    assert_eq!(ds.get_start::<f64>(c, &Selection::all()).wait().unwrap(), expected);
    // Nothing of it is in the file.
    let other = Dataset::open(&path).unwrap();
    assert_eq!(other.numrecs(), 0);
    ds.flush().unwrap();
    let other = Dataset::open(&path).unwrap();
    assert_eq!(other.get::<f64>(c, &Selection::all()).unwrap(), expected);
    // What comes then goes over it.
    ds.put(c, &Selection::slab(&[0, 3], &[1, 1]), &[7.0]).unwrap();
    assert_eq!(
        ds.get::<f64>(c, &Selection::slab(&[0, 2], &[2, 2])).unwrap(),
        [FILL, 7.0, 2.0, FILL]
    );
    ds.close().unwrap();
    let other = Dataset::open(&path).unwrap();
    assert_eq!(
        other.get::<f64>(c, &Selection::slab(&[0, 2], &[2, 2])).unwrap(),
        [FILL, 7.0, 2.0, FILL]
    );
    assert!(!bb.exists());
}

/// A file without records makes room for chunks where it is: nothing has to be copied. What a rank reads alone, its
/// log over the file, must know of it, whether the flush was waited for or not.
#[test]
fn room_for_chunks_in_the_same_file_is_seen_through_the_log() {
    for background in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
        let options = CreateOptions::new().hints(hints(&bb, &[("esker_chunk_room", "64")]));
        let mut def = Dataset::create(&path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(500)).unwrap();
        let t = def.add_var("t", ExternalType::Int, &[time, x]).unwrap();
        let c = def.add_var("c", ExternalType::Double, &[time, x]).unwrap();
        def.set_chunks(c, &[1, 500]).unwrap();
        let mut ds = def.enddef().unwrap();
        let begin = ds.header().layout.record_begin;
        let (values, whole) =
            ((0..1000).collect::<Vec<i32>>(), Selection::slab(&[0, 0], &[2, 500]));
        ds.put_all(t, &whole, &values).unwrap();
        ds.put_all(c, &whole, &vec![2.5; 1000]).unwrap();
        match background {
            true => {
                let token = ds.flush_start().unwrap();
                ds.flush_wait(token).unwrap();
            }
            false => ds.flush().unwrap(),
        }
        assert!(
            ds.header().layout.record_begin > begin,
            "nothing has moved: the test tests nothing"
        );
        // So that there is something in the log.
        ds.put(t, &Selection::slab(&[1, 7], &[1, 1]), &[-1]).unwrap();
        let mut expected = values.clone();
        expected[507] = -1;
        assert_eq!(ds.get::<i32>(t, &Selection::all()).unwrap(), expected, "{background}");
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<i32>(t, &Selection::all()).unwrap(), expected);
        assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), vec![2.5; 1000]);
    }
}

#[test]
fn a_flush_encodes_each_chunk_once() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    // 40 records of 100 doubles in chunks of 4 records and 50 elements, 1,600 bytes that stay as they are:
    // written in the order of records, every stretch of 2,000 bytes of the log has parts of four chunks.
    for buffer in ["0", "2000"] {
        let more = [("nc_burst_buf_flush_buffer_size", buffer)];
        let options = CreateOptions::new().hints(hints(&bb, &more));
        let mut def = Dataset::create(&path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(100)).unwrap();
        let c = def.add_var("c", ExternalType::Double, &[time, x]).unwrap();
        def.set_chunks(c, &[4, 50]).unwrap();
        let mut ds = def.enddef().unwrap();
        for record in 0..40 {
            for part in 0..4 {
                let at = Selection::slab(&[record, part * 25], &[1, 25]);
                ds.put_all(c, &at, &[(record * 4 + part) as f64; 25]).unwrap();
            }
        }
        ds.reset_report();
        ds.flush().unwrap();
        let written = ds.report().bytes_written;
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        let values = ds.get::<f64>(c, &Selection::all()).unwrap();
        assert!(values.iter().enumerate().all(|(i, v)| *v == (i / 25) as f64));
        let all = 40 * 100 * 8;
        assert!(
            written >= all && written < all * 5 / 4,
            "{written} bytes written, buffer {buffer}"
        );
    }
}

#[test]
fn one_of_several_ranks_may_write_chunks_alone_behind_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(3, |comm| {
        let rank = comm.rank() as u64;
        let (mut ds, c, _) = create(&path, 6, hints(&bb, &[]), comm.clone());
        ds.put(c, &Selection::slab(&[rank, 2 * rank], &[1, 2]), &[rank as f64; 2]).unwrap();
        let mine = ds.get::<f64>(c, &Selection::slab(&[rank, 2 * rank], &[1, 2])).unwrap();
        assert_eq!(mine, [rank as f64; 2]);
        ds.close().unwrap();
    });
    let ds = Dataset::open(&path).unwrap();
    let c = ds.var("c").unwrap();
    let mut expected = vec![FILL; 18];
    for rank in 0..3 {
        expected[rank * 6 + 2 * rank..][..2].fill(rank as f64);
    }
    assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), expected);
}

#[test]
fn chunks_that_ranks_have_written_in_turns_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(4, |comm| {
        let rank = comm.rank() as u64;
        let (mut ds, c, t) = create(&path, 8, hints(&bb, &[]), comm.clone());
        for turn in 0..9u64 {
            // The ranks change places in every call.
            let at = (rank + turn) % 4;
            let selection = Selection::slab(&[0, 2 * at], &[1, 2]);
            ds.put_all(c, &selection, &[(turn * 10 + rank) as f64; 2]).unwrap();
            ds.put_all(t, &selection, &[(turn * 10 + rank) as f64; 2]).unwrap();
        }
        ds.close().unwrap();
    });
    let ds = Dataset::open(&path).unwrap();
    // The last turn is the eighth, in which every rank is where it began.
    let expected: Vec<f64> = (0..8).map(|i| (80 + i / 2) as f64).collect();
    for name in ["c", "t"] {
        let var = ds.var(name).unwrap();
        assert_eq!(ds.get::<f64>(var, &Selection::all()).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_session_that_died_is_replayed_into_chunks() {
    for files in ["", "shared"] {
        let dir = tempfile::tempdir().unwrap();
        let (path, bb) = (dir.path().join("run"), dir.path().join("bb"));
        let more = [("esker_chunk_files", files)];
        let more = if files.is_empty() { &[][..] } else { &more[..] };
        esker::launch(2, |comm| {
            let rank = comm.rank() as u64;
            let (mut ds, c, _) = create(&path, 6, hints(&bb, more), comm.clone());
            let selection = Selection::slab(&[0, 3 * rank], &[2, 3]);
            ds.put_all(c, &selection, &[rank as f64; 6]).unwrap();
            ds.flush().unwrap();
            ds.put_all(c, &Selection::slab(&[4, 3 * rank], &[1, 3]), &[5.0 + rank as f64; 3])
                .unwrap();
            // What it has in its buffers is written, and the program dies.
            ds.get::<f64>(c, &Selection::all()).unwrap();
            drop(ds);
        });
        let options = RecoverOptions::new().dir(&bb);
        let looked = esker::recover(&path, &options.clone().look_only(true)).unwrap();
        assert_eq!((looked.entries, looked.records), (2, 5), "{looked:?}");
        let recovered = esker::recover(&path, &options).unwrap();
        assert!(recovered.is_complete() && recovered.removed, "{recovered:?}");
        let ds = Dataset::open(&path).unwrap();
        let c = ds.var("c").unwrap();
        let mut expected = vec![FILL; 30];
        for record in 0..2 {
            expected[record * 6..][..6].copy_from_slice(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        }
        expected[24..].copy_from_slice(&[5.0, 5.0, 5.0, 6.0, 6.0, 6.0]);
        assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), expected, "{files}");
    }
}

#[test]
fn logs_of_variables_without_records_make_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    let options = CreateOptions::new().hints(hints(&bb, &[]));
    let mut def = Dataset::create(&path, options).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    def.add_var("t", ExternalType::Double, &[time]).unwrap();
    let s = def.add_var("s", ExternalType::Double, &[]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(s, &Selection::all(), &[3.5]).unwrap();
    ds.get::<f64>(s, &Selection::all()).unwrap();
    drop(ds);
    let recovered = esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    assert_eq!((recovered.entries, recovered.records), (1, 0));
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.numrecs(), 0);
    assert_eq!(ds.get::<f64>(ds.var("s").unwrap(), &Selection::all()).unwrap(), [3.5]);
}

#[test]
fn the_layout_is_kept_in_whatever_order_options_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let mut own = Hints::default();
    own.set("cb_nodes", "2");
    let log = esker::Layout::Log;
    let orders = [
        CreateOptions::new().layout(log).hints(own.clone()),
        CreateOptions::new().hints(own).layout(log),
    ];
    for (number, options) in orders.into_iter().enumerate() {
        let path = dir.path().join(format!("run{number}.esk"));
        let ds = Dataset::create(&path, options).unwrap().enddef().unwrap();
        assert_eq!(ds.container_version(), Some(1), "order {number}");
        assert!(ds.hints().effective().contains(&("cb_nodes", "2".to_string())));
        ds.close().unwrap();
    }
}

#[test]
fn a_burst_buffer_that_is_not_used_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.esk"), dir.path().join("bb"));
    let options = CreateOptions::new().layout(esker::Layout::Log).hints(hints(&bb, &[]));
    let ds = Dataset::create(&path, options).unwrap().enddef().unwrap();
    let disabled = ("nc_burst_buf", "disable".to_string());
    assert!(ds.hints().effective().contains(&disabled));
    assert!(ds.notes()[0].contains("nc_burst_buf"), "{:?}", ds.notes());
    ds.close().unwrap();
    let options = OpenOptions::new().writable(true).hints(hints(&bb, &[]));
    let mut ds = Dataset::open_with(&path, options).unwrap();
    assert!(ds.hints().effective().contains(&disabled));
    assert_eq!(ds.notes().len(), 1);
    ds.wait_all(&mut Requests::new()).unwrap();
    ds.close().unwrap();
}

#[test]
fn hints_of_any_text_reach_every_rank() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("a b;c=d"));
    esker::launch(2, |comm| {
        let (mut ds, c, _) = create(&path, 4, hints(&bb, &[]), comm.clone());
        let name = ("nc_burst_buf_dirname", bb.to_str().unwrap().to_string());
        assert!(ds.hints().effective().contains(&name), "{:?}", ds.hints().effective());
        ds.put_all(c, &Selection::slab(&[0, comm.rank() as u64], &[1, 1]), &[1.0]).unwrap();
        assert!(std::fs::read_dir(&bb).unwrap().count() > 0);
        ds.close().unwrap();
    });
}

#[test]
fn a_read_of_more_than_memory_is_an_error_of_all_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    esker::launch(2, |comm| {
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm.clone())).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(1 << 22)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(1 << 21)).unwrap();
        let c = def.add_var("c", ExternalType::Double, &[y, x]).unwrap();
        def.set_chunks(c, &[1024, 1024]).unwrap();
        let mut ds = def.enddef().unwrap();
        // 64 TiB, on rank 1 alone.
        let mine = match comm.rank() {
            1 => Selection::all(),
            _ => Selection::slab(&[0, 0], &[1, 1]),
        };
        let error = ds.get_all::<f64>(c, &mine).unwrap_err().to_string();
        assert!(error.contains("\"c\"") && error.contains("70368744177664 bytes"), "{error}");
        assert_eq!(error.contains("rank 1"), comm.rank() == 0, "{error}");
        let alone = [
            ds.get::<f32>(c, &Selection::all()).unwrap_err().to_string(),
            ds.get_values(c, &Selection::all()).unwrap_err().to_string(),
        ];
        assert!(alone[0].contains("no memory for 35184372088832 bytes"), "{}", alone[0]);
        assert!(alone[1].contains("no memory for 70368744177664 bytes"), "{}", alone[1]);
        // And nothing is wrong with the dataset.
        assert_eq!(ds.get_all::<f64>(c, &Selection::slab(&[5, 5], &[1, 1])).unwrap(), [FILL]);
        ds.close().unwrap();
    });
}

/// What a session knows of `c(time, 6)`: for each element what a flush has promised, and what was put since.
#[derive(Default)]
struct Known {
    promised: Vec<Vec<Option<f64>>>,
    put: Vec<(usize, usize, f64)>,
    /// Whether it has a file.
    defined: bool,
}

const RECORDS: usize = 7;

/// Writes and flushes, in one of the ways; an error that comes once is tried again.
fn session(store: Arc<dyn Store>, known: &mut Known, again: bool) -> esker::Result<()> {
    let mut hints = hints(Path::new("/bb"), &[("nc_burst_buf_flush_buffer_size", "100")]);
    // So little room for chunks that records move.
    hints.set("esker_chunk_room", "200");
    let options = CreateOptions::new().store(store).hints(hints);
    let mut def = Dataset::create("/run.nc", options)?;
    let time = def.add_dim("time", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(6))?;
    let c = def.add_var("c", ExternalType::Double, &[time, x])?;
    def.set_chunks(c, &[3, 4])?;
    let t = def.add_var("t", ExternalType::Double, &[time, x])?;
    let mut ds = def.enddef()?;
    (known.defined, known.promised) = (true, vec![vec![None; 6]; RECORDS]);
    for step in 0..9 {
        let record = (step * 5) % RECORDS;
        let value = (step + 1) as f64;
        let at = Selection::slab(&[record as u64, 1], &[1, 4]);
        known.put.extend((1..5).map(|x| (record, x, value)));
        for var in [c, t] {
            let put = ds.put(var, &at, &[value; 4]);
            match put {
                Err(_) if again => ds.put(var, &at, &[value; 4])?,
                other => other?,
            }
        }
        if step % 3 == 2 {
            let flushed = match step {
                5 => ds.flush_start().and_then(|token| ds.flush_wait(token)),
                _ => ds.flush(),
            };
            match flushed {
                Err(_) if again => ds.flush()?,
                other => other?,
            }
            for (record, x, value) in std::mem::take(&mut known.put) {
                known.promised[record][x] = Some(value);
            }
        }
        // Its own are seen, flushed or not.
        let found = match ds.get::<f64>(c, &at) {
            Err(_) if again => ds.get::<f64>(c, &at)?,
            other => other?,
        };
        assert_eq!(found, [value; 4]);
    }
    match ds.sync() {
        Err(_) if again => ds.sync()?,
        other => other?,
    }
    for (record, x, value) in std::mem::take(&mut known.put) {
        known.promised[record][x] = Some(value);
    }
    Ok(())
}

/// Every element is what was promised, or what was put since.
fn compare(store: &MemoryStore, known: &Known, what: &str) {
    let ds = Dataset::open_with("/run.nc", OpenOptions::new().store(Arc::new(store.clone())));
    let ds = ds.unwrap();
    for name in ["c", "t"] {
        let var = ds.var(name).unwrap();
        let found = ds.get::<f64>(var, &Selection::all()).unwrap();
        for (record, row) in known.promised.iter().enumerate() {
            for (x, promised) in row.iter().enumerate() {
                let later = known.put.iter().filter(|p| (p.0, p.1) == (record, x)).map(|p| p.2);
                let mut may: Vec<f64> = later.collect();
                may.push(promised.unwrap_or(FILL));
                match found.get(record * 6 + x) {
                    Some(value) => assert!(
                        may.contains(value),
                        "{what}: {name} {record} {x}: {value}, not {may:?}"
                    ),
                    None => {
                        assert_eq!(*promised, None, "{what}: {name}: there is no record {record}")
                    }
                }
            }
        }
    }
}

#[test]
fn every_change_of_a_session_with_chunks_behind_logs_may_fail() {
    let full = ErrorKind::StorageFull;
    for fault in [Fault::Kill, Fault::Tear, Fault::Fail(ErrorKind::Other), Fault::FailHalf(full)] {
        let lasts = matches!(fault, Fault::Kill | Fault::Tear);
        let (mut at, mut hit) = (0, 0);
        loop {
            let inner = MemoryStore::default();
            let store = FaultyStore::with_sectors(inner.clone(), at, fault, 512);
            let mut known = Known::default();
            let ended = session(Arc::new(store.clone()), &mut known, !lasts);
            let what = format!("{fault:?} at change {at}");
            let is_over = store.calls() <= at;
            if known.defined {
                hit += 1;
                if lasts {
                    let options = RecoverOptions::new().dir("/bb").store(Arc::new(inner.clone()));
                    let recovered = esker::recover("/run.nc", &options);
                    assert!(recovered.is_ok(), "{what}: {recovered:?}");
                } else if let Err(error) = &ended {
                    // What is tried again succeeds, unless a log could not be written whole: that is told,
                    // and what was promised is in the file.
                    let why = error.to_string();
                    assert!(
                        why.contains("/bb/") || why.contains("the log of rank"),
                        "{what}: {why}"
                    );
                }
                compare(&inner, &known, &what);
            }
            if is_over {
                break;
            }
            at += 1;
        }
        assert!(hit > 60, "{fault:?}: only {hit} changes");
    }
}

#[test]
fn chunks_that_are_added_to_a_file_with_records_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    for logs in [false, true] {
        let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
        let hints = if logs { hints(&bb, &[]) } else { Hints::default() };
        let mut def = Dataset::create(&path, CreateOptions::new().hints(hints)).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let t = def.add_var("t", ExternalType::Double, &[time]).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put(t, &Selection::slab(&[0], &[3]), &[1.0, 2.0, 3.0]).unwrap();
        let mut def = ds.redef().unwrap();
        let c = def.add_var("c", ExternalType::Double, &[time]).unwrap();
        def.set_chunks(c, &[2]).unwrap();
        let mut ds = def.enddef().unwrap();
        assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), [FILL; 3]);
        ds.put(c, &Selection::element(&[3]), &[4.0]).unwrap();
        assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), [FILL, FILL, FILL, 4.0]);
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<f64>(c, &Selection::all()).unwrap(), [FILL, FILL, FILL, 4.0]);
    }
}
