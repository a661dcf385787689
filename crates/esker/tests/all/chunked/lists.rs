//! Long lists of blocks, which are cut into chunks once for all variables that are alike.

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimLen, Error, ExternalType, Requests, Selection, VarId};
use esker_store::{MemoryStore, Store};

use esker_testkit::ranks::on_ranks;

const RANKS: usize = 3;
const LEN: u64 = 24_000;

/// Blocks of one and two elements, of which each rank has every third, in one record or in none.
fn list(rank: usize, record: Option<u64>) -> Selection {
    let (mut starts, mut counts) = (Vec::new(), Vec::new());
    for block in (rank as u64..LEN / 3 * 2).step_by(RANKS) {
        let (first, count) = (block / 2 * 3 + block % 2, 1 + block % 2);
        starts.extend(record.into_iter().chain([first]));
        counts.extend(record.map(|_| 1).into_iter().chain([count]));
    }
    Selection::list(1 + usize::from(record.is_some()), starts, counts)
}

/// The elements of that list, plus a number.
fn values(rank: usize, more: u64) -> Vec<i64> {
    let blocks = (rank as u64..LEN / 3 * 2).step_by(RANKS);
    let elements = blocks.flat_map(|block| {
        let first = block / 2 * 3 + block % 2;
        first..first + 1 + block % 2
    });
    elements.map(|element| (element + more) as i64).collect()
}

#[test]
fn a_long_list_means_the_same_in_every_variable_and_record() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    on_ranks(RANKS, move |comm| {
        let rank = comm.rank();
        let options = CreateOptions::new().comm(comm).store(store.clone());
        let mut def = Dataset::create(Path::new("/run/lists.nc"), options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(LEN)).unwrap();
        // The same shape in chunks of different lengths and types, with and without records; chunks
        // of the longest are sent whole.
        let mut add = |name: &str, ty, records: Option<u64>, chunk: u64| -> VarId {
            let dims: Vec<_> = records.map(|_| time).into_iter().chain([x]).collect();
            let v = def.add_var(name, ty, &dims).unwrap();
            let shape: Vec<u64> = records.into_iter().chain([chunk]).collect();
            def.set_chunks(v, &shape).unwrap();
            def.set_filters(v, "shuffle zstd,1").unwrap();
            v
        };
        let double = ExternalType::Double;
        let fixed = [
            add("a", double, None, LEN),
            add("b", double, None, LEN),
            add("c", double, None, 1001),
            add("d", ExternalType::Int, None, 1001),
        ];
        let of_records = [
            add("e", double, Some(1), LEN),
            add("f", double, Some(1), 700),
            add("g", double, Some(1), 700),
            add("h", double, Some(3), 700),
        ];
        let mut ds = def.enddef().unwrap();
        let (once, mut by_record) = (list(rank, None), Vec::new());
        by_record.extend((0..4).map(|record| list(rank, Some(record))));
        // Twice, so that every list is known the second time.
        for turn in 0..2 {
            let data: Vec<Vec<i64>> = (0..4).map(|n| values(rank, n + turn)).collect();
            let mut queue = Requests::new();
            for (v, data) in fixed.iter().zip(&data) {
                ds.iput(&mut queue, *v, &once, data).unwrap();
            }
            for (record, data) in by_record.iter().zip(&data) {
                for v in &of_records {
                    ds.iput(&mut queue, *v, record, data).unwrap();
                }
            }
            ds.wait_all(&mut queue).unwrap();
            let mut found = vec![vec![0i64; data[0].len()]; 20];
            let mut queue = Requests::new();
            let lists = fixed.iter().map(|v| (v, &once));
            let lists =
                lists.chain(by_record.iter().flat_map(|r| of_records.iter().map(move |v| (v, r))));
            for ((v, list), out) in lists.zip(&mut found) {
                ds.iget(&mut queue, *v, list, out).unwrap();
            }
            ds.wait_all(&mut queue).unwrap();
            drop(queue);
            let expected = (0..4).chain((0..16).map(|n| n / 4)).map(|n| &data[n as usize]);
            assert!(found.iter().eq(expected), "turn {turn}");
            // And as one array.
            for (n, v) in fixed.iter().enumerate() {
                let whole: Vec<i64> = ds.get_all(*v, &Selection::all()).unwrap();
                assert!(whole.iter().enumerate().all(|(i, x)| *x == (i + n) as i64 + turn as i64));
            }
        }
        // A list that is known is refused where there is no such record.
        let beyond = list(rank, Some(4));
        let mut out = values(rank, 0);
        let refused = ds.get_into(of_records[1], &beyond, &mut out);
        assert!(matches!(refused, Err(Error::Selection { .. })), "{refused:?}");
    });
}
