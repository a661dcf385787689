//! Lists of blocks that are used again, for other variables and records, are what they are when they are used once.

use std::path::Path;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Requests, Selection, VarId,
};
use esker_store::MemoryStore;
use esker_testkit::random::Random;
use esker_testkit::ranks::on_ranks;

const RECORDS: u64 = 4;
const ROWS: u64 = 6;
const COLUMNS: u64 = 40;

/// Variables of two sizes, with records and without.
fn dataset(options: CreateOptions) -> (Dataset, Vec<(VarId, bool)>) {
    let mut def = Dataset::create(Path::new("/run/lists.nc"), options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(ROWS)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(COLUMNS)).unwrap();
    let mut vars = Vec::new();
    for (name, ty) in
        [("int", ExternalType::Int), ("again", ExternalType::Int), ("short", ExternalType::Short)]
    {
        vars.push((def.add_var(name, ty, &[y, x]).unwrap(), false));
        vars.push((def.add_var(&format!("{name}s"), ty, &[t, y, x]).unwrap(), true));
    }
    // Records have something else in them, too.
    def.add_var("scalars", ExternalType::Byte, &[t]).unwrap();
    (def.enddef().unwrap(), vars)
}

/// Blocks of short runs of the rows that are a rank's, in any order; no two have an element together.
fn list(random: &mut Random, (me, ranks): (u64, u64)) -> Vec<[u64; 3]> {
    let rows = (0..ROWS).filter(|row| row % ranks == me);
    let blocks: Vec<[u64; 3]> = rows
        .flat_map(|row| (0..COLUMNS / 4).map(move |i| [row, 4 * i]))
        .map(|[row, column]| [row, column + random.below_u64(2), 1 + random.below_u64(3)])
        .collect();
    if random.one_in(2) { random.shuffled(&blocks) } else { blocks }
}

fn selection(blocks: &[[u64; 3]], record: Option<u64>) -> Selection {
    let rank = 2 + usize::from(record.is_some());
    let starts = blocks.iter().flat_map(|b| record.into_iter().chain([b[0], b[1]])).collect();
    let counts =
        blocks.iter().flat_map(|b| record.map(|_| 1).into_iter().chain([1, b[2]])).collect();
    Selection::list(rank, starts, counts)
}

#[test]
fn lists_that_are_used_again_are_what_they_are_used_once() {
    for (seed, cache) in [(1, None), (2, Some("0")), (3, Some("6000")), (4, None)] {
        let store = Arc::new(MemoryStore::default());
        on_ranks(2, move |comm| {
            let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
            let mut hints = Hints::default();
            if let Some(cache) = cache {
                hints.set("esker_cache", cache);
            }
            let options = CreateOptions::new().store(store.clone()).comm(comm).hints(hints);
            let (mut ds, vars) = dataset(options);
            let mut random = Random(seed * 100 + me);
            let size = (RECORDS * ROWS * COLUMNS) as usize;
            let mut model = vec![vec![0i16; size]; vars.len()];
            for (var, is_record) in &vars {
                let records = if *is_record { RECORDS } else { 1 };
                let zeros = vec![0i16; (records * ROWS * COLUMNS) as usize];
                match me {
                    0 => ds.put_all(*var, &Selection::all(), &zeros).unwrap(),
                    _ => ds.put_all(*var, &Selection::none(), &zeros[..0]).unwrap(),
                }
            }
            let mut value = 0;
            let mut lists: Vec<Vec<[u64; 3]>> = Vec::new();
            let mut kept: Option<(usize, Option<u64>, Selection)> = None;
            for turn in 0..30 {
                let mut data = Vec::new();
                for _ in 0..1 + random.below(4) {
                    if lists.is_empty() || random.one_in(3) {
                        lists.push(list(&mut random, (me, ranks)));
                    }
                    let n = random.below(vars.len());
                    let number = random.below(lists.len());
                    let record = vars[n].1.then(|| random.below_u64(RECORDS));
                    // The same selection, or another one with the same numbers.
                    let chosen = match &kept {
                        Some((of, in_record, chosen)) if (*of, *in_record) == (number, record) => {
                            chosen.clone()
                        }
                        _ => selection(&lists[number], record),
                    };
                    kept = Some((number, record, chosen.clone()));
                    let mut values = Vec::new();
                    for [row, column, len] in &lists[number] {
                        for column in *column..column + len {
                            value = (value + 1) % 30_000;
                            let at = (record.unwrap_or(0) * ROWS + row) * COLUMNS + column;
                            model[n][at as usize] = value;
                            values.push(value);
                        }
                    }
                    data.push((n, chosen, values));
                }
                let mut queue = Requests::new();
                for (n, chosen, values) in &data {
                    ds.iput(&mut queue, vars[*n].0, chosen, values).unwrap();
                }
                match turn % 2 {
                    0 => ds.wait(&mut queue).unwrap(),
                    _ => ds.wait_all(&mut queue).unwrap(),
                }
                let (n, chosen, values) = data.last().unwrap();
                assert_eq!(ds.get::<i16>(vars[*n].0, chosen).unwrap(), *values);
            }
            ds.sync_records().unwrap();
            for ((var, is_record), model) in vars.iter().zip(&model) {
                let records = if *is_record { RECORDS } else { 1 };
                for row in (0..ROWS).filter(|row| row % ranks == me) {
                    for record in 0..records {
                        let (start, count) = match is_record {
                            true => (vec![record, row, 0], vec![1, 1, COLUMNS]),
                            false => (vec![row, 0], vec![1, COLUMNS]),
                        };
                        let found: Vec<i16> =
                            ds.get(*var, &Selection::slab(&start, &count)).unwrap();
                        let at = ((record * ROWS + row) * COLUMNS) as usize;
                        assert_eq!(
                            found,
                            model[at..at + COLUMNS as usize],
                            "{seed}, {var:?}, {record}, {row}"
                        );
                    }
                }
            }
            ds.close().unwrap();
        });
    }
}

#[test]
fn a_list_that_was_met_is_refused_where_there_is_no_such_record() {
    let options = CreateOptions::new().store(Arc::new(MemoryStore::default()));
    let (mut ds, vars) = dataset(options);
    let blocks = list(&mut Random(5), (0, 1));
    let elements: u64 = blocks.iter().map(|block| block[2]).sum();
    let values = vec![7i16; elements as usize];
    let (of_records, other) = (vars[1].0, vars[3].0);
    ds.put(of_records, &selection(&blocks, Some(0)), &values).unwrap();
    // Known by now, and for reading there is one record.
    let refused = ds.get::<i16>(other, &selection(&blocks, Some(1))).unwrap_err();
    assert!(matches!(refused, Error::Selection { .. }), "{refused}");
    assert!(refused.to_string().contains("\"t\""), "{refused}");
    ds.put(other, &selection(&blocks, Some(1)), &values).unwrap();
    assert_eq!(ds.get::<i16>(other, &selection(&blocks, Some(1))).unwrap(), values);
    let refused = ds.put(other, &selection(&blocks, Some(u64::MAX)), &values).unwrap_err();
    assert!(matches!(refused, Error::Selection { .. }), "{refused}");
    let short = ds.put(other, &selection(&blocks, Some(0)), &values[1..]).unwrap_err();
    assert!(matches!(short, Error::Memory { .. }), "{short}");
}
