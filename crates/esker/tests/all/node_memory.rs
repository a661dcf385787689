//! Windows in memory that the ranks of a node share: the same file, fewer copies, no messages.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Requests, Road,
    Selection, Strategy,
};
use esker_comm::ThreadWorld;
use esker_store::{MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

const RANKS: usize = 4;
const PATH: &str = "/run/near.nc";
const ROWS: u64 = 60;
const COLUMNS: u64 = 500;

fn hints(pairs: &[(&str, &str)]) -> Hints {
    let mut hints = Hints::default();
    hints.set("romio_cb_write", "enable");
    hints.set("romio_cb_read", "enable");
    pairs.iter().for_each(|(name, value)| hints.set(name, value));
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}

/// What a rank saw of its write and of its read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    written: esker::Report,
    read: esker::Report,
}

/// Every rank writes the columns that are its own by turns, in three types, and reads those of its neighbour.
fn columns(comm: Arc<dyn Communicator>, store: Arc<dyn Store>, hints: Hints) -> Seen {
    let options = CreateOptions::new().comm(comm.clone()).store(store).hints(hints);
    let mut def = Dataset::create(Path::new(PATH), options).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(ROWS)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(COLUMNS)).unwrap();
    let types = [ExternalType::Short, ExternalType::Int, ExternalType::Double];
    let mut vars = Vec::new();
    for (number, ty) in types.into_iter().enumerate() {
        vars.push(def.add_var(&format!("v{number}"), ty, &[y, x]).unwrap());
    }
    let mut ds = def.enddef().unwrap();
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let of = |rank: u64| Selection::strided(&[0, rank], &[ROWS, COLUMNS / ranks], &[1, ranks]);
    let values = |rank: u64, var: usize| -> Vec<f64> {
        let column = |i: u64| i % (COLUMNS / ranks) * ranks + rank;
        let row = |i: u64| i / (COLUMNS / ranks);
        let all = ROWS * (COLUMNS / ranks);
        (0..all).map(|i| ((row(i) * COLUMNS + column(i)) % 9973) as f64 + var as f64).collect()
    };
    ds.reset_report();
    let mine: Vec<Vec<f64>> = (0..3).map(|var| values(me, var)).collect();
    let mut queue = Requests::new();
    for (v, data) in vars.iter().zip(&mine) {
        ds.iput(&mut queue, *v, &of(me), data).unwrap();
    }
    ds.wait_all(&mut queue).unwrap();
    drop(queue);
    let written = *ds.report();
    ds.reset_report();
    let next = (me + 1) % ranks;
    let mut found = vec![vec![0f64; mine[0].len()]; 3];
    let mut queue = Requests::new();
    for (v, out) in vars.iter().zip(&mut found) {
        ds.iget(&mut queue, *v, &of(next), out).unwrap();
    }
    ds.wait_all(&mut queue).unwrap();
    drop(queue);
    for (var, found) in found.iter().enumerate() {
        assert_eq!(*found, values(next, var), "v{var} of rank {next}");
    }
    let read = *ds.report();
    ds.close().unwrap();
    Seen { written, read }
}

/// The same on thread-ranks; what they saw, and the file.
fn run(ranks: usize, pairs: &'static [(&'static str, &'static str)]) -> (Vec<Seen>, Vec<u8>) {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let seen = on_ranks(ranks, move |comm| columns(comm, shared.clone(), hints(pairs)));
    (seen, store.bytes(Path::new(PATH)).unwrap())
}

#[test]
fn pieces_are_copied_once_and_no_message_is_sent() {
    for ranks in [2, 4] {
        let (seen, file) = run(ranks, &[("cb_buffer_size", "8192"), ("striping_unit", "512")]);
        for Seen { written, read } in seen {
            assert_eq!(written.write_strategy, Strategy::Exchanged);
            assert_eq!(read.read_strategy, Strategy::Exchanged);
            for report in [written, read] {
                assert_eq!(report.road, Road::NodeMemory);
                assert_eq!((report.messages, report.message_bytes), (0, 0));
                assert_eq!(report.copied, report.bytes);
                assert!(report.node_bytes > 0 && report.node_bytes <= report.bytes);
                assert!(report.rounds > 5, "{} rounds", report.rounds);
            }
        }
        let (seen, by_messages) = run(ranks, &[("esker_node_memory", "disable")]);
        assert!(file == by_messages);
        for Seen { written, read } in seen {
            for report in [written, read] {
                assert_eq!(report.road, Road::Messages);
                assert!(report.messages > 0 && report.node_bytes == 0);
            }
        }
    }
}

#[test]
fn with_memory_for_one_buffer_there_is_one_and_with_less_there_are_messages() {
    let small = [("cb_buffer_size", "8192"), ("striping_unit", "512"), ("cb_nodes", "2")];
    let (_, expected) = run(RANKS, &[("esker_node_memory", "disable")]);
    // A buffer takes three pages for the window and what begins in it, and one for its bits and counters.
    for (memory, road) in [
        ("70000", Road::NodeMemory),
        ("37000", Road::NodeMemory),
        ("36000", Road::HintTooSmall),
        ("1", Road::HintTooSmall),
    ] {
        let pairs: Vec<_> = small.into_iter().chain([("esker_node_memory", memory)]).collect();
        let (seen, file) = run(RANKS, pairs.leak());
        assert!(
            seen.iter().all(|s| (s.written.road, s.read.road) == (road, road)),
            "{memory}: {seen:?}"
        );
        assert!(file == expected, "{memory}");
    }
}

#[test]
fn ranks_of_several_nodes_send_messages_to_the_others_nodes_only() {
    let (_, expected) = run(RANKS, &[("esker_node_memory", "disable")]);
    for (ranks_per_node, roads) in [
        (2, [Road::NodeMemory; 4]),
        (3, {
            // The last rank is alone on its node.
            let near = Road::NodeMemory;
            [near, near, near, Road::Messages]
        }),
    ] {
        let store = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let world = ThreadWorld::new(RANKS).ranks_per_node(ranks_per_node);
        let all = [("cb_nodes", "4"), ("cb_buffer_size", "8192"), ("striping_unit", "512")];
        let seen = world.launch(|comm| columns(comm, shared.clone(), hints(&all))).unwrap();
        for (Seen { written, read }, road) in seen.into_iter().zip(roads) {
            for report in [written, read] {
                assert_eq!(report.road, road);
                assert!(report.messages > 0);
                assert_eq!(report.node_bytes > 0, road == Road::NodeMemory);
            }
            // Each byte into the windows of this node, or into a message and out of it at its owner.
            assert!(written.copied >= written.bytes - written.message_bytes);
        }
        assert!(store.bytes(Path::new(PATH)).unwrap() == expected, "{ranks_per_node}");
    }
}

#[test]
fn of_ranks_that_write_the_same_elements_one_has_each_of_them_whole() {
    const ALL: u64 = 40_000;
    for memory in ["enable", "disable"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        on_ranks(RANKS, move |comm| {
            let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
            let options = options.hints(hints(&[("esker_node_memory", memory)]));
            let mut def = Dataset::create(Path::new(PATH), options).unwrap();
            // Elements that lie across words and blocks of whatever is claimed at a time.
            let odd = def.add_dim("odd", DimLen::Fixed(3)).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(ALL)).unwrap();
            def.add_var("before", ExternalType::Byte, &[odd]).unwrap();
            let v = def.add_var("v", ExternalType::Double, &[x]).unwrap();
            let mut ds = def.enddef().unwrap();
            // No two ranks have a byte of a value in common.
            let digits =
                f64::from_bits(0x4011_1111_1111_1111 + 0x0101_0101_0101_0101 * comm.rank() as u64);
            for _ in 0..3 {
                ds.put_all(v, &Selection::all(), &vec![digits; ALL as usize]).unwrap();
                let all: Vec<f64> = ds.get_all(v, &Selection::all()).unwrap();
                let of = |rank: u64| 0x4011_1111_1111_1111 + 0x0101_0101_0101_0101 * rank;
                let whole = |value: &f64| (0..RANKS as u64).any(|rank| of(rank) == value.to_bits());
                assert_eq!(all.iter().position(|value| !whole(value)), None);
            }
        });
    }
}

#[test]
fn holes_between_what_ranks_write_keep_what_was_there() {
    for memory in ["enable", "disable"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        on_ranks(RANKS, move |comm| {
            let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
            let options =
                options.hints(hints(&[("esker_node_memory", memory), ("cb_buffer_size", "3000")]));
            let mut def = Dataset::create(Path::new(PATH), options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(9000)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            let mut ds = def.enddef().unwrap();
            let (me, mut model) = (comm.rank() as u64, vec![-1i32; 9000]);
            ds.put_all(v, &Selection::all(), &model).unwrap();
            // Steps that leave some to nobody, in rounds of which some are nobody's.
            for (turn, step) in [5u64, 7, 300, 4].into_iter().enumerate() {
                let of = |rank: u64| (rank..9000).step_by(step as usize).collect::<Vec<_>>();
                for rank in 0..RANKS as u64 {
                    of(rank)
                        .iter()
                        .for_each(|at| model[*at as usize] = (turn as u64 * 10 + rank) as i32);
                }
                let count = of(me).len() as u64;
                let mine = vec![(turn as u64 * 10 + me) as i32; count as usize];
                ds.put_all(v, &Selection::strided(&[me], &[count], &[step]), &mine).unwrap();
                let all: Vec<i32> = ds.get_all(v, &Selection::all()).unwrap();
                assert!(all == model, "step {step}");
            }
        });
    }
}

#[test]
fn a_value_that_does_not_fit_is_an_error_also_where_another_rank_has_the_element() {
    const ALL: u64 = 3000;
    for memory in ["enable", "disable"] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        on_ranks(RANKS, move |comm| {
            let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
            let options = options.hints(hints(&[("esker_node_memory", memory)]));
            let mut def = Dataset::create(Path::new(PATH), options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(ALL)).unwrap();
            let v = def.add_var("v", ExternalType::Short, &[x]).unwrap();
            let mut ds = def.enddef().unwrap();
            // Who has an element is a matter of chance.
            for turn in 0..40 {
                let wrong = 1 + turn % (ALL as usize - 1);
                let mut mine = vec![comm.rank() as i32; ALL as usize];
                if comm.rank() % 2 == 1 {
                    mine[wrong] = 70_000;
                    mine[ALL as usize - 1] = -70_000;
                }
                match (ds.put_all(v, &Selection::all(), &mine), comm.rank() % 2) {
                    (Err(Error::Range { report, .. }), 1) => {
                        assert_eq!(report.out_of_range, 2);
                        assert_eq!(report.first.unwrap().index, wrong as u64);
                    }
                    (outcome, 0) => outcome.unwrap(),
                    (outcome, _) => panic!("turn {turn}: {outcome:?}"),
                }
            }
        });
    }
}
