//! How many collective calls a blocking read or write makes: one reduction for everything that a wait has,
//! whatever layouts are in the file.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Requests,
    Selection, VarId,
};
use esker_comm::{Counted, Traffic};
use esker_store::MemoryStore;
use esker_testkit::ranks::on_ranks;

const RANKS: usize = 4;
const SIDE: u64 = 40;

/// A dataset whose variables, in this order, are ordinary, chunked, and chunked with records.
struct Counting {
    dataset: Dataset,
    vars: Vec<VarId>,
    traffic: Arc<Traffic>,
    me: u64,
}

impl Counting {
    fn new(
        comm: Arc<dyn Communicator>,
        store: Arc<MemoryStore>,
        chunks: bool,
        (node_memory, checksums): (&str, &str),
    ) -> Counting {
        let me = comm.rank() as u64;
        let counted = Counted::new(comm);
        let traffic = counted.traffic();
        let mut hints = Hints::default();
        hints.set("esker_node_memory", node_memory);
        hints.set("esker_checksums", checksums);
        let options = CreateOptions::new().comm(Arc::new(counted)).store(store).hints(hints);
        let mut def = Dataset::create(Path::new("/run/counted.nc"), options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(SIDE)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(SIDE)).unwrap();
        let mut vars = vec![def.add_var("plain", ExternalType::Int, &[y, x]).unwrap()];
        if chunks {
            let fixed = def.add_var("fixed", ExternalType::Int, &[y, x]).unwrap();
            def.set_chunks(fixed, &[10, 10]).unwrap();
            let grows = def.add_var("grows", ExternalType::Int, &[t, y, x]).unwrap();
            def.set_chunks(grows, &[1, 10, 10]).unwrap();
            vars.extend([fixed, grows]);
        }
        Counting { dataset: def.enddef().unwrap(), vars, traffic, me }
    }

    /// Every rank has a part of every row, and of every chunk.
    fn mine(&self, record: Option<u64>) -> Selection {
        let ranks = RANKS as u64;
        let start = record.into_iter().chain([0, self.me]).collect::<Vec<_>>();
        let count = record.map(|_| 1).into_iter().chain([SIDE, SIDE / ranks]).collect::<Vec<_>>();
        let stride = record.map(|_| 1).into_iter().chain([1, ranks]).collect::<Vec<_>>();
        Selection::strided(&start, &count, &stride)
    }

    /// Collective calls of a write, and of reading it back.
    fn calls(&mut self, var: usize, record: Option<u64>) -> (u64, u64) {
        let (id, mine) = (self.vars[var], self.mine(record));
        let written = vec![(100 * var as u64 + self.me) as i32; (SIDE * SIDE) as usize / RANKS];
        let before = self.traffic.collectives();
        self.dataset.put_all(id, &mine, &written).unwrap();
        let between = self.traffic.collectives();
        let read: Vec<i32> = self.dataset.get_all(id, &mine).unwrap();
        let after = self.traffic.collectives();
        assert_eq!(read, written);
        (between - before, after - between)
    }
}

/// The second time that each is written, when what is agreed on once is known: ordinary, chunked, and a new
/// record of a chunked one, whose table has room for it.
fn counted(chunks: bool, node_memory: &'static str) -> Vec<(u64, u64)> {
    counted_with(chunks, (node_memory, "all"))
}

fn counted_with(chunks: bool, hints: (&'static str, &'static str)) -> Vec<(u64, u64)> {
    let store = Arc::new(MemoryStore::default());
    let all = on_ranks(RANKS, move |comm| {
        let mut counting = Counting::new(comm, store.clone(), chunks, hints);
        let vars = counting.vars.len();
        for var in 0..vars {
            counting.calls(var, (var == 2).then_some(0));
        }
        let calls: Vec<(u64, u64)> =
            (0..vars).map(|var| counting.calls(var, (var == 2).then_some(1))).collect();
        counting.dataset.close().unwrap();
        calls
    });
    assert!(all.iter().all(|calls| *calls == all[0]), "{all:?}");
    all.into_iter().next().unwrap()
}

#[test]
fn an_ordinary_variable_costs_the_same_beside_chunked_ones() {
    assert_eq!(counted(false, "disable"), [(3, 2)]);
    assert_eq!(counted(true, "disable")[0], (3, 2));
}

#[test]
fn windows_in_node_memory_cost_no_collective_call() {
    // What everyone has, and the outcome.
    assert_eq!(counted(false, "enable"), [(2, 2)]);
    assert_eq!(counted(true, "enable")[0], (2, 2));
}

#[test]
fn a_chunked_variable_is_agreed_on_in_the_same_reduction() {
    // With checksums all agree, before anybody acts, that nobody's list of who has which chunk was damaged.
    for (checksums, more) in [("none", 0), ("all", 1)] {
        let calls = counted_with(true, ("disable", checksums));
        let (write, read) = calls[1];
        assert!(write <= 6 + more && read <= 4 + more, "{calls:?}");
        let (write, read) = calls[2];
        assert!(write <= 9 + more && read <= 4 + more, "{calls:?}");
    }
}

#[test]
fn a_wait_with_everything_in_it_makes_one_reduction_more_than_the_layouts_need() {
    let store = Arc::new(MemoryStore::default());
    on_ranks(RANKS, move |comm| {
        let mut counting = Counting::new(comm, store.clone(), true, ("disable", "none"));
        for var in 0..3 {
            counting.calls(var, (var == 2).then_some(0));
        }
        let data = vec![7; (SIDE * SIDE) as usize / RANKS];
        let before = counting.traffic.collectives();
        let mut queue = Requests::new();
        for (number, var) in counting.vars.iter().enumerate() {
            let mine = counting.mine((number == 2).then_some(0));
            counting.dataset.iput(&mut queue, *var, &mine, &data).unwrap();
        }
        counting.dataset.wait_all(&mut queue).unwrap();
        let calls = counting.traffic.collectives() - before;
        // Pieces, an outcome: ordinary ones. Owners, tables' lengths, pieces, places, an outcome, tables: chunked ones.
        assert!(calls <= 1 + 2 + 6, "{calls}");
        counting.dataset.close().unwrap();
    });
}

/// Collective calls of what is done to a dataset as a whole.
fn lifecycle(
    act: impl Fn(&Arc<MemoryStore>, Arc<dyn Communicator>) -> u64 + Sync + Send + 'static,
) -> u64 {
    let store = Arc::new(MemoryStore::default());
    let all = on_ranks(RANKS, move |comm| {
        let me = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
        let mut def = Dataset::create(Path::new("/run/whole.nc"), options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(RANKS as u64)).unwrap();
        def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
        let grows = def.add_var("grows", ExternalType::Int, &[t, x]).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(grows, &Selection::slab(&[0, me], &[1, 1]), &[me as i32]).unwrap();
        ds.close().unwrap();
        act(&store, comm)
    });
    assert!(all.iter().all(|calls| *calls == all[0]), "{all:?}");
    all[0]
}

fn opened(store: &Arc<MemoryStore>, comm: Arc<dyn Communicator>) -> (Dataset, Arc<Traffic>) {
    let counted = Counted::new(comm);
    let traffic = counted.traffic();
    let options = OpenOptions::new().writable(true).comm(Arc::new(counted)).store(store.clone());
    (Dataset::open_with(Path::new("/run/whole.nc"), options).unwrap(), traffic)
}

#[test]
fn a_dataset_is_opened_in_four_collective_calls() {
    // A communicator; what is the same for all, with what rank 0 has found; whether all could open it; the header.
    assert_eq!(lifecycle(|store, comm| opened(store, comm).1.collectives()), 4);
}

#[test]
fn a_redefinition_that_moves_data_is_four_collective_calls() {
    let calls = lifecycle(|store, comm| {
        let me = comm.rank() as i32;
        let (ds, traffic) = opened(store, comm);
        let mut def = ds.redef().unwrap();
        let x = def.schema().dim("x").unwrap();
        def.add_var("another", ExternalType::Double, &[x]).unwrap();
        let before = traffic.collectives();
        // Whether definitions are alike; where rank 0 has begun the new file; whether all could move; its name.
        let ds = def.enddef().unwrap();
        let calls = traffic.collectives() - before;
        let grows = ds.schema().var("grows").unwrap();
        assert_eq!(ds.get::<i32>(grows, &Selection::element(&[0, me as u64])).unwrap(), [me]);
        calls
    });
    assert_eq!(calls, 4);
}
