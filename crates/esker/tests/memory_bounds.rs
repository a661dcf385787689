//! Memory is bounded by what a rank asks for and by the configured buffers, not by the data.
//!
//! A program of its own, because everything that it allocates is counted: thread-ranks share the
//! allocator, so that bounds are for all ranks together, and one test runs at a time.

use std::sync::Mutex;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, FillMode, Hints, MemoryLayout, Requests,
    Selection, VarId,
};
use esker_testkit::memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// One test at a time, or they would count each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The most that was allocated at once by all ranks during `call`, more than before it.
/// Collective.
fn peak<R>(comm: &dyn esker::Communicator, call: impl FnOnce() -> R) -> (R, usize) {
    comm.barrier().unwrap();
    let before = memory::live_of_all();
    comm.barrier().unwrap();
    if comm.rank() == 0 {
        memory::forget_peak_of_all();
    }
    comm.barrier().unwrap();
    let result = call();
    comm.barrier().unwrap();
    let peak = memory::peak_of_all() - before;
    comm.barrier().unwrap();
    (result, peak)
}

const MIB: usize = 1 << 20;

fn one_variable(
    comm: &std::sync::Arc<dyn esker::Communicator>,
    path: &std::path::Path,
    len: u64,
    hints: Hints,
) -> (Dataset, VarId) {
    let options = CreateOptions::new().fill(FillMode::NoFill).hints(hints).comm(comm.clone());
    let mut def = Dataset::create(path, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(len)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    (def.enddef().unwrap(), v)
}

#[test]
fn two_hundred_thousand_requests_a_rank() {
    const REQUESTS: u64 = 200_000;
    const RANKS: u64 = 8;
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let peaks = esker::launch(RANKS as usize, |comm| {
        let me = comm.rank() as u64;
        let mut hints = Hints::default();
        hints.set("cb_buffer_size", "1048576");
        let (mut ds, v) = one_variable(&comm, &path, REQUESTS * RANKS, hints);
        let data: Vec<i32> = (0..REQUESTS).map(|i| (i * RANKS + me) as i32).collect();
        let mut queue = Requests::new();
        let place = |i: u64| Selection::element(&[i * RANKS + me]);
        let ((), queueing) = peak(&*comm, || {
            for (i, value) in data.iter().enumerate() {
                let at = place(i as u64);
                ds.iput(&mut queue, v, &at, std::slice::from_ref(value)).unwrap();
            }
        });
        let ((), writing) = peak(&*comm, || ds.wait_all(&mut queue).unwrap());
        drop(queue);
        let mut found = vec![0i32; REQUESTS as usize];
        let mut queue = Requests::new();
        for (i, value) in found.iter_mut().enumerate() {
            ds.iget(&mut queue, v, &place(i as u64), std::slice::from_mut(value)).unwrap();
        }
        let ((), reading) = peak(&*comm, || ds.wait_all(&mut queue).unwrap());
        drop(queue);
        assert_eq!(found, data);
        let reported = ds.report().peak_memory;
        ds.close().unwrap();
        (queueing, writing, reading, reported)
    });
    let (queueing, writing, reading, _) = peaks[0];
    let requests = (REQUESTS * RANKS) as usize;
    println!("{queueing} bytes queued, {writing} to write, {reading} to read; {peaks:?}");
    // A request is a few hundred bytes until it is done; to plan it takes some more. Two
    // windows and the messages of a round are a few buffers, whatever the requests.
    let buffers = RANKS as usize * 8 * MIB;
    assert!(queueing < 600 * requests);
    assert!(writing < 250 * requests + buffers);
    assert!(reading < 250 * requests + buffers);
    // What a rank says of itself is the engine's part of that.
    assert!(peaks.iter().all(|(.., reported)| *reported < 8 * MIB as u64));
}

#[test]
fn data_of_many_times_the_buffer() {
    let _alone = alone();
    const BUFFER: u64 = 256 << 10;
    const RANKS: u64 = 4;
    // How many messages there are at a time depends on which rank is ahead: the little is measured often.
    let measured = [8, 8, 8, 8, 8, 8, 80].map(|times| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let peaks = esker::launch(RANKS as usize, |comm| {
            let me = comm.rank() as u64;
            let count = times * BUFFER / 4;
            let mut hints = Hints::default();
            hints.set("cb_buffer_size", &BUFFER.to_string());
            hints.set("romio_cb_read", "enable");
            let (mut ds, v) = one_variable(&comm, &path, count * RANKS, hints);
            // Short runs of every rank beside each other.
            let mine = Selection::strided(&[me], &[count], &[RANKS]);
            let data: Vec<i32> = (0..count).map(|i| (i * RANKS + me) as i32).collect();
            let ((), writing) = peak(&*comm, || ds.put_all(v, &mine, &data).unwrap());
            let mut found = vec![0; count as usize];
            let ((), reading) = peak(&*comm, || ds.get_all_into(v, &mine, &mut found).unwrap());
            assert_eq!(found, data);
            let reported = ds.report().peak_memory;
            ds.close().unwrap();
            (writing, reading, reported)
        });
        println!("{times} times: {peaks:?}");
        let (writing, reading, _) = peaks[0];
        let reported = peaks.iter().map(|(.., reported)| *reported as usize).max().unwrap();
        (writing, reading, reported)
    });
    for (writing, reading, reported) in measured {
        let buffers = (RANKS * 8 * BUFFER) as usize;
        assert!(writing < buffers && reading < buffers, "{writing} and {reading} bytes");
        // The report is of one rank.
        let most = writing.max(reading);
        assert!(reported < most && reported > most / RANKS as usize / 3, "{reported} of {most}");
    }
    let [little @ .., many] = measured;
    let few = little.iter().fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)));
    assert!(many.0 < few.0 * 3 / 2 && many.1 < few.1 * 3 / 2, "{few:?}, {many:?}");
}

#[test]
fn a_hyperslab_of_five_million_runs() {
    let _alone = alone();
    const RUNS: u64 = 5_000_000;
    for ranks in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let peaks = esker::launch(ranks, |comm| {
            let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
            let (mut ds, v) = one_variable(&comm, &path, RUNS * 2 * ranks, Hints::default());
            let mine = Selection::strided(&[me], &[RUNS], &[2 * ranks]);
            // One value for all elements: the caller's memory is none.
            let layout = MemoryLayout::strided(0, &[RUNS], &[0]);
            let ((), writing) = peak(&*comm, || {
                ds.put_strided_all(v, &mine, &[me as i32 + 1], layout.clone()).unwrap();
            });
            let mut last = [0i32];
            let ((), reading) = peak(&*comm, || {
                ds.get_strided_all(v, &mine, &mut last, layout.clone()).unwrap();
            });
            assert_eq!(last, [me as i32 + 1]);
            // Alone among others each run is a call to the system, so fewer of them.
            let few = Selection::strided(&[me], &[RUNS / 25], &[2 * ranks]);
            let layout = MemoryLayout::strided(0, &[RUNS / 25], &[0]);
            let ((), alone) = peak(&*comm, || ds.put_strided(v, &few, &[9], layout).unwrap());
            let reported = ds.report().peak_memory as usize;
            ds.close().unwrap();
            (writing, reading, alone, reported)
        });
        println!("{ranks} ranks: {peaks:?}");
        // As a list the runs would take 160 million bytes on each rank.
        let most = 32 * MIB * ranks;
        let (writing, reading, alone, _) = peaks[0];
        assert!(writing < most && reading < most && alone < most, "{peaks:?}");
        assert!(peaks.iter().all(|(.., reported)| *reported > writing / ranks / 3));
    }
}

#[test]
fn records_of_a_decomposed_variable_share_the_runs_of_its_map() {
    const CELLS: u64 = 20_000;
    const RECORDS: u64 = 200;
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let peaks = esker::launch(2, |comm| {
        let me = comm.rank() as u64;
        let options = CreateOptions::new().fill(FillMode::NoFill).comm(comm.clone());
        let mut def = Dataset::create(&path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let cell = def.add_dim("cell", DimLen::Fixed(CELLS)).unwrap();
        // Every run is one element.
        let mine = Selection::strided(&[me], &[CELLS / 2], &[2]);
        let map = def.add_decomposition(&[cell], &mine).unwrap();
        let v = def.add_decomposed_var("v", ExternalType::Short, &[time], map).unwrap();
        let mut ds = def.enddef().unwrap();
        let data = vec![me as i16; (RECORDS * CELLS / 2) as usize];
        let blob = Selection::blob(&[0], &[RECORDS]);
        let ((), writing) = peak(&*comm, || ds.put_all(v, &blob, &data).unwrap());
        // Each rank reads all records of half of the cells: a run for each element and record.
        let half = Selection::slab(&[0, me * CELLS / 2], &[RECORDS, CELLS / 2]);
        let mut found = vec![9i16; data.len()];
        let ((), reading) = peak(&*comm, || ds.get_all_into(v, &half, &mut found).unwrap());
        assert!(found.chunks(2).all(|pair| *pair == [0, 1]));
        ds.close().unwrap();
        (writing, reading)
    });
    // Four million runs of 24 bytes each would be 96 MB.
    let (writing, reading) = peaks[0];
    assert!(writing < 8 * MIB, "{writing} bytes for writing");
    assert!(reading < 24 * MIB, "{reading} bytes for reading");
}

/// Chunks of many times the buffer: what is held does not depend on how much there is.
#[test]
fn chunks_of_many_times_the_buffer() {
    let _alone = alone();
    const BUFFER: u64 = 512 << 10;
    const RANKS: u64 = 4;
    let measured = [4, 32].map(|times| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let peaks = esker::launch(RANKS as usize, |comm| {
            let me = comm.rank() as u64;
            let count = times * BUFFER / 4;
            let mut hints = Hints::default();
            hints.set("esker_chunk_buffer", &BUFFER.to_string());
            hints.set("esker_chunk_cache", "0");
            let options = CreateOptions::new().hints(hints).comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(count * RANKS)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            def.set_chunks(v, &[16 << 10]).unwrap();
            def.set_filters(v, "shuffle lz4").unwrap();
            let mut ds = def.enddef().unwrap();
            // Every rank has a part of every chunk.
            let mine = Selection::strided(&[me], &[count], &[RANKS]);
            let data: Vec<i32> = (0..count).map(|i| (i * RANKS + me) as i32).collect();
            let ((), writing) = peak(&*comm, || ds.put_all(v, &mine, &data).unwrap());
            let ((), again) = peak(&*comm, || ds.put_all(v, &mine, &data).unwrap());
            let mut found = vec![0; count as usize];
            let ((), reading) = peak(&*comm, || ds.get_all_into(v, &mine, &mut found).unwrap());
            assert_eq!(found, data);
            ds.close().unwrap();
            (writing, again, reading)
        });
        println!("{times} times: {peaks:?}");
        peaks[0]
    });
    for (writing, again, reading) in measured {
        // Chunks that come in, that are encoded and that are written, each in a round of its own,
        // with their messages.
        let buffers = (RANKS * 14 * BUFFER) as usize;
        assert!(writing < buffers && again < buffers && reading < buffers, "{measured:?}");
    }
    let [few, many] = measured;
    assert!(many.0 < few.0 * 2 && many.2 < few.2 * 2, "{few:?}, {many:?}");
}

/// Decoded chunks that are kept stay within the hint, also when they are tiny.
#[test]
fn the_cache_of_chunks_keeps_its_bound() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    for chunk in [8, 1000] {
        let path = dir.path().join("run.nc");
        esker::launch(1, |comm| {
            let mut hints = Hints::default();
            hints.set("esker_chunk_cache", "1000000");
            let options = CreateOptions::new().hints(hints).comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(400_000)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            def.set_chunks(v, &[chunk]).unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put(v, &Selection::all(), &vec![7i32; 400_000]).unwrap();
            let ((), reading) = peak(&*comm, || {
                for at in (0..400_000).step_by(chunk as usize) {
                    assert_eq!(ds.get::<i32>(v, &Selection::element(&[at])).unwrap(), [7]);
                }
            });
            println!("chunks of {chunk}: {reading} bytes");
            assert!(reading < 2_000_000, "{reading} bytes for a cache of 1,000,000");
        });
    }
}

#[test]
fn definitions_by_shares_take_their_own_and_a_third_of_the_header() {
    const RANKS: usize = 16;
    const EACH: usize = 2_000;
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let peaks = esker::launch(RANKS, |comm| {
        let mut hints = Hints::default();
        hints.set("esker_definitions", "shares");
        let options = CreateOptions::new().fill(FillMode::NoFill).hints(hints).comm(comm.clone());
        let (def, own) = {
            comm.barrier().unwrap();
            let before = memory::live_of_all();
            comm.barrier().unwrap();
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("cells", DimLen::Fixed(4096)).unwrap();
            for number in 0..EACH {
                // A variable for each box of an AMR run.
                let name = format!("level_2_box_{:07}", comm.rank() * EACH + number);
                let var = def.add_var(&name, ExternalType::Double, &[x]).unwrap();
                let corner = vec![number as i32, comm.rank() as i32, 7];
                def.put_attr(var, "lo", corner.clone()).unwrap();
                def.put_attr(var, "hi", corner).unwrap();
            }
            comm.barrier().unwrap();
            let own = memory::live_of_all() - before;
            (def, own)
        };
        let (ds, peak) = peak(&*comm, || def.enddef().unwrap());
        assert!(!ds.knows_all());
        let header = ds.header().layout.header_len as usize;
        assert_eq!(ds.counts()[2] as usize, RANKS * EACH);
        ds.close().unwrap();
        (own, peak, header)
    });
    // Of all ranks together, what each may have.
    for (own, peak, header) in peaks {
        assert!(
            peak < RANKS * header / 3,
            "beyond {own} that are there, {peak} were allocated, of a header of {header}"
        );
    }
    assert_eq!(Dataset::open(&path).unwrap().schema().vars.len(), RANKS * EACH);
}
