//! What ranks send to each other for chunks, counted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Requests, Selection, Strategy,
    VarId,
};
use esker_comm::{Counted, Traffic};
use esker_store::{CountingStore, MemoryStore, Store};

use esker_testkit::ranks::on_ranks;

const RANKS: usize = 4;
const PATH: &str = "/run/owners.nc";
const SIDE: u64 = 40;

/// So many variables of 16 chunks each.
fn define(
    comm: &Arc<dyn Communicator>,
    store: Arc<dyn Store>,
    vars: usize,
) -> (Dataset, Vec<VarId>, Arc<Traffic>) {
    let counted = Counted::new(comm.clone());
    let traffic = counted.traffic();
    let options = CreateOptions::new().comm(Arc::new(counted)).store(store);
    let mut def = Dataset::create(Path::new(PATH), options).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(SIDE)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(SIDE)).unwrap();
    let add = |number: usize| {
        let v = def.add_var(&format!("v{number}"), ExternalType::Int, &[y, x]).unwrap();
        def.set_chunks(v, &[10, 10]).unwrap();
        def.set_filters(v, "zstd,1").unwrap();
        v
    };
    let ids = (0..vars).map(add).collect();
    (def.enddef().unwrap(), ids, traffic)
}

/// Writes all variables in one call, with `mine` of each.
fn write(ds: &mut Dataset, vars: &[VarId], mine: &Selection, value: i32) {
    let data = vec![value; (SIDE * SIDE) as usize / RANKS];
    let mut queue = Requests::new();
    for v in vars {
        ds.iput(&mut queue, *v, mine, &data).unwrap();
    }
    ds.wait_all(&mut queue).unwrap();
}

/// Every rank has a part of every chunk.
fn every_nth(comm: &dyn Communicator) -> Selection {
    let (me, ranks) = (comm.rank() as u64, RANKS as u64);
    Selection::strided(&[0, me], &[SIDE, SIDE / ranks], &[1, ranks])
}

/// Every rank has a row of chunks.
fn row_of_chunks(comm: &dyn Communicator) -> Selection {
    let rows = SIDE / RANKS as u64;
    Selection::slab(&[comm.rank() as u64 * rows, 0], &[rows, SIDE])
}

#[test]
fn a_wait_sends_one_message_to_each_rank_for_all_variables() {
    let sent = [1, 60].map(|vars| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        on_ranks(RANKS, move |comm| {
            let (mut ds, ids, traffic) = define(&comm, store.clone(), vars);
            ds.reset_report();
            let before = traffic.messages();
            write(&mut ds, &ids, &every_nth(&*comm), 7);
            let report = ds.report();
            assert_eq!(report.rounds, 1);
            assert!(report.messages < RANKS as u64, "{} messages", report.messages);
            let all: Vec<i32> = ds.get(ids[vars - 1], &Selection::all()).unwrap();
            assert!(all.iter().all(|v| *v == 7));
            traffic.messages() - before
        })
    });
    // Who has what: to the home, to the owners, to those who have something. Then the values.
    for sent in sent.iter().flatten() {
        assert!(*sent <= 4 * (RANKS as u64), "{sent} messages");
    }
}

#[test]
fn whole_chunks_move_to_nobody() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    on_ranks(RANKS, move |comm| {
        let (mut ds, ids, _) = define(&comm, store.clone(), 3);
        ds.reset_report();
        write(&mut ds, &ids, &row_of_chunks(&*comm), 3);
        assert_eq!((ds.report().messages, ds.report().message_bytes), (0, 0));
    });
}

#[test]
fn chunks_with_one_reader_are_read_without_a_message() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    on_ranks(RANKS, move |comm| {
        let (mut ds, ids, traffic) = define(&comm, store.clone(), 5);
        write(&mut ds, &ids, &every_nth(&*comm), 1);
        ds.reset_report();
        let before = traffic.messages();
        let mut found = vec![vec![0i32; 400]; ids.len()];
        let mut queue = Requests::new();
        for (v, out) in ids.iter().zip(&mut found) {
            ds.iget(&mut queue, *v, &row_of_chunks(&*comm), out).unwrap();
        }
        ds.wait_all(&mut queue).unwrap();
        drop(queue);
        assert!(found.iter().flatten().all(|v| *v == 1));
        assert_eq!(traffic.messages(), before);
        assert_eq!(ds.report().read_strategy, Strategy::Direct);
    });
}

#[test]
fn a_chunk_with_many_readers_is_read_once() {
    let counting = CountingStore::new(MemoryStore::default());
    let store: Arc<dyn Store> = Arc::new(counting.clone());
    let (vars, counted) = (5, counting.clone());
    let reads = on_ranks(RANKS, move |comm| {
        let (mut ds, ids, _) = define(&comm, store.clone(), vars);
        write(&mut ds, &ids, &every_nth(&*comm), 1);
        ds.reset_report();
        comm.barrier().unwrap();
        let before = counted.counts().reads.load(Ordering::SeqCst);
        comm.barrier().unwrap();
        let mut found = vec![vec![0i32; 400]; ids.len()];
        let mut queue = Requests::new();
        for (v, out) in ids.iter().zip(&mut found) {
            ds.iget(&mut queue, *v, &every_nth(&*comm), out).unwrap();
        }
        ds.wait_all(&mut queue).unwrap();
        drop(queue);
        assert!(found.iter().flatten().all(|v| *v == 1));
        assert_eq!(ds.report().read_strategy, Strategy::Exchanged);
        // A question and an answer for each pair of ranks, of all variables.
        assert!(ds.report().messages <= 2 * (RANKS as u64 - 1), "{}", ds.report().messages);
        comm.barrier().unwrap();
        let after = counted.counts().reads.load(Ordering::SeqCst);
        (ds.report().reads, after - before)
    });
    let chunks = 16 * vars as u64;
    assert_eq!(reads.iter().map(|(own, _)| own).sum::<u64>(), chunks);
    // And the parts of tables, of each variable by each rank that owns some of it.
    let (_, all) = reads[0];
    assert!(all <= chunks + (RANKS * vars) as u64 * 16, "{all} reads");
}

#[test]
fn a_list_of_runs_counts_once_when_ranks_decide_who_decodes() {
    // Every other column, as a list of elements: each of two ranks wants half of each chunk.
    let columns = |comm: &dyn Communicator| {
        let place = |i: u64| [i / (SIDE / 2), 2 * (i % (SIDE / 2)) + comm.rank() as u64];
        let starts: Vec<u64> = (0..SIDE * SIDE / 2).flat_map(place).collect();
        Selection::list(2, starts.clone(), vec![1; starts.len()])
    };
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let vars = 3;
    let reads = on_ranks(2, move |comm| {
        let (mut ds, ids, _) = define(&comm, store.clone(), vars);
        let expected: Vec<i32> =
            (0..(SIDE * SIDE / 2) as i32).map(|i| 2 * i + comm.rank() as i32).collect();
        let mut queue = Requests::new();
        for v in &ids {
            ds.iput(&mut queue, *v, &columns(&*comm), &expected).unwrap();
        }
        ds.wait_all(&mut queue).unwrap();
        drop(queue);
        let all: Vec<i32> = ds.get(ids[1], &Selection::all()).unwrap();
        assert!(all.iter().copied().eq(0..(SIDE * SIDE) as i32));
        ds.reset_report();
        let mut found = vec![vec![0i32; expected.len()]; vars];
        let mut queue = Requests::new();
        for (v, out) in ids.iter().zip(&mut found) {
            ds.iget(&mut queue, *v, &columns(&*comm), out).unwrap();
        }
        ds.wait_all(&mut queue).unwrap();
        drop(queue);
        assert!(found.iter().all(|values| *values == expected));
        assert_eq!(ds.report().read_strategy, Strategy::Exchanged);
        ds.report().reads
    });
    // The one that was read whole before may still be in the cache.
    let decoded = reads.iter().sum::<u64>();
    assert!(decoded <= 16 * vars as u64, "{decoded} chunks were decoded");
}
