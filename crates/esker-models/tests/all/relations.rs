//! Relations in shares: what ranks have together is what plain lists say.

use std::collections::BTreeMap;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, launch};
use esker_models::relation::{Ragged, Relation, Table, read_metis, write_metis};
use proptest::prelude::{ProptestConfig, Strategy, any, prop};
use proptest::{prop_assert_eq, proptest};

type Rows = Vec<Vec<u64>>;

/// All ranks' rows, one after the other.
fn whole(parts: &[Relation]) -> Rows {
    let rows = |part: &Relation| -> Rows {
        (0..part.offsets.len() - 1).map(|at| part.row(at).to_vec()).collect()
    };
    let mut next = 0;
    for part in parts {
        assert_eq!(part.own_rows().start, next);
        next = part.own_rows().end;
        assert_eq!(part.rows, parts[0].rows);
    }
    assert_eq!(next, parts[0].rows);
    parts.iter().flat_map(rows).collect()
}

fn inverted(rows: &Rows, columns: u64) -> Rows {
    let mut out = vec![Vec::new(); columns as usize];
    for (row, elements) in rows.iter().enumerate() {
        elements.iter().for_each(|e| out[*e as usize].push(row as u64));
    }
    out
}

fn rows(columns: u64) -> impl Strategy<Value = Rows> {
    prop::collection::vec(prop::collection::vec(0..columns, 0..6), 0..40)
}

/// A part of the list for each rank, cut anywhere.
fn cut(all: &Rows, ranks: usize, rank: usize, skew: usize) -> Rows {
    let border = |rank: usize| match rank {
        0 => 0,
        r if r == ranks => all.len(),
        r => (all.len() * r / ranks + skew * r) % (all.len() + 1),
    };
    let mut borders: Vec<usize> = (0..=ranks).map(border).collect();
    borders.sort_unstable();
    all[borders[rank]..borders[rank + 1]].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_number_of_ranks_computes_what_lists_say(
        first in rows(23),
        second in prop::collection::vec(prop::collection::vec(0..9u64, 0..4), 23..24),
        ranks in 1usize..9,
        skew in 0usize..5,
        weighted in any::<bool>(),
    ) {
        let parts = launch(ranks, |comm| {
            let (rank, comm) = (comm.rank(), &*comm);
            let mine = cut(&first, ranks, rank, skew);
            let relation = match weighted {
                false => Relation::from_rows(comm, 23, &mine).unwrap(),
                true => {
                    let mut offsets = vec![0];
                    mine.iter().for_each(|r| offsets.push(offsets[offsets.len() - 1] + r.len() as u64));
                    let indices: Vec<u64> = mine.concat();
                    let weights = indices.iter().map(|n| *n as f64 + 0.5).collect();
                    Relation::from_parts(comm, 23, offsets, indices, Some(weights)).unwrap()
                }
            };
            let other = Relation::from_rows(comm, 9, &cut(&second, ranks, rank, 0)).unwrap();
            let back = relation.invert(comm).unwrap();
            let again = back.invert(comm).unwrap();
            let product = relation.compose(comm, &other).unwrap();
            // Every rank asks for rows of all, some twice, in no order.
            let all = relation.rows;
            let wanted: Vec<u64> = (0..all).rev().step_by(rank + 1).chain(0..all.min(2)).collect();
            let fetched = relation.fetch(comm, &wanted).unwrap();
            for (at, row) in wanted.iter().enumerate() {
                assert_eq!(fetched.row(at), first[*row as usize]);
            }
            (relation, back, again, product)
        });
        let of = |pick: fn(&(Relation, Relation, Relation, Relation)) -> &Relation| -> Vec<Relation> {
            parts.iter().map(|p| pick(p).clone()).collect()
        };
        prop_assert_eq!(&whole(&of(|p| &p.0)), &first);
        prop_assert_eq!(&whole(&of(|p| &p.1)), &inverted(&first, 23));
        let mut sorted = first.clone();
        sorted.iter_mut().for_each(|row| row.sort_unstable());
        prop_assert_eq!(&whole(&of(|p| &p.2)), &sorted);
        // The product of two sparse matrices, by the definition.
        let product = of(|p| &p.3);
        let mut expected: Vec<BTreeMap<u64, f64>> = Vec::new();
        for row in &first {
            let mut sums = BTreeMap::new();
            for e in row {
                let weight = if weighted { *e as f64 + 0.5 } else { 1.0 };
                second[*e as usize].iter().for_each(|to| *sums.entry(*to).or_default() += weight);
            }
            expected.push(sums);
        }
        let keys: Rows = expected.iter().map(|m| m.keys().copied().collect()).collect();
        prop_assert_eq!(&whole(&product), &keys);
        let weights: Vec<f64> = product.iter().flat_map(|p| p.weights.clone().unwrap()).collect();
        let sums: Vec<f64> = expected.iter().flat_map(|m| m.values().copied()).collect();
        prop_assert_eq!(weights, sums);
    }

    #[test]
    fn tables_and_ragged_lists_come_back_on_any_number_of_ranks(
        all in prop::collection::vec(prop::collection::vec(0..17u64, 0..5), 1..30),
        writers in 1usize..6,
        readers in 1usize..6,
        start in 0i64..2,
        transposed in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.nc");
        let (count, total) = (all.len() as u64, all.concat().len() as u64);
        let places = |ds: &Dataset| {
            let var = |name: &str| ds.var(name).unwrap();
            let table = Table { var: var("t"), start, fill: Some(-7), columns: 17, transposed };
            let (offsets, indices) = (var("o"), var("i"));
            let ragged = Ragged { offsets, indices, weights: Some(var("w")), start, columns: 17 };
            (table, ragged)
        };
        launch(writers, |comm| {
            let mut def = Dataset::create(&path, CreateOptions::new().comm(comm.clone())).unwrap();
            let rows = def.add_dim("rows", DimLen::Fixed(count)).unwrap();
            let width = def.add_dim("width", DimLen::Fixed(5)).unwrap();
            let ends = def.add_dim("ends", DimLen::Fixed(count + 1)).unwrap();
            let elements = def.add_dim("elements", DimLen::Fixed(total.max(1))).unwrap();
            let shape = if transposed { [width, rows] } else { [rows, width] };
            def.add_var("t", ExternalType::Int, &shape).unwrap();
            def.add_var("o", ExternalType::Int, &[ends]).unwrap();
            def.add_var("i", ExternalType::Int, &[elements]).unwrap();
            def.add_var("w", ExternalType::Double, &[elements]).unwrap();
            let mut ds = def.enddef().unwrap();
            let (table, ragged) = places(&ds);
            let mine = cut(&all, writers, comm.rank(), 0);
            let relation = Relation::from_rows(&*comm, 17, &mine).unwrap();
            relation.write_table(&mut ds, &table).unwrap();
            relation.write_ragged(&mut ds, &ragged).unwrap();
            ds.close().unwrap();
        });
        let read = launch(readers, |comm| {
            let mut ds = Dataset::open_with(&path, OpenOptions::new().comm(comm)).unwrap();
            let (table, ragged) = places(&ds);
            let table = Relation::read_table(&mut ds, &table).unwrap();
            (table, Relation::read_ragged(&mut ds, &ragged).unwrap())
        });
        let tables: Vec<Relation> = read.iter().map(|(t, _)| t.clone()).collect();
        let lists: Vec<Relation> = read.iter().map(|(_, r)| r.clone()).collect();
        prop_assert_eq!(&whole(&tables), &all);
        prop_assert_eq!(&whole(&lists), &all);
        let ones = lists.iter().all(|l| l.weights.as_ref().unwrap().iter().all(|w| *w == 1.0));
        prop_assert_eq!(ones, true);
    }
}

/// A file with one broken table and one broken ragged list.
fn broken(values: &[i32], offsets: &[i32]) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
    let rows = def.add_dim("rows", DimLen::Fixed(values.len() as u64 / 2)).unwrap();
    let width = def.add_dim("width", DimLen::Fixed(2)).unwrap();
    let ends = def.add_dim("ends", DimLen::Fixed(offsets.len() as u64)).unwrap();
    let table = def.add_var("t", ExternalType::Int, &[rows, width]).unwrap();
    let list = def.add_var("o", ExternalType::Int, &[ends]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(table, &esker::Selection::all(), values).unwrap();
    ds.put(list, &esker::Selection::all(), offsets).unwrap();
    ds.close().unwrap();
    let errors = launch(2, |comm| {
        let mut ds = Dataset::open_with(&path, OpenOptions::new().comm(comm)).unwrap();
        let shape = Table { var: table, start: 1, fill: None, columns: 5, transposed: false };
        let of_table = Relation::read_table(&mut ds, &shape).map(drop);
        let ragged = Ragged { offsets: list, indices: list, weights: None, start: 0, columns: 9 };
        let of_list = Relation::read_ragged(&mut ds, &ragged).map(drop);
        let text =
            |r: esker_models::Result<()>| r.map_or_else(|e| e.to_string(), |()| String::new());
        (text(of_table), text(of_list))
    });
    // Every rank has an error, and the one that found it says what it found.
    let pick = |of: fn(&(String, String)) -> &String| {
        let told: Vec<&String> = errors.iter().map(of).collect();
        assert_eq!(told[0].is_empty(), told[1].is_empty(), "{told:?}");
        told.iter().find(|t| t.contains("variable")).map_or(String::new(), |t| (**t).clone())
    };
    (pick(|e| &e.0), pick(|e| &e.1))
}

#[test]
fn elements_out_of_range_and_offsets_that_fall_are_told_with_their_numbers() {
    let (table, list) = broken(&[1, 2, 3, 4, 5, 6], &[0, 2, 1, 3]);
    assert!(table.contains("variable \"t\": row 2, place 1: element 6"), "{table}");
    assert!(list.contains("variable \"o\": row 1 goes from 2 to 1"), "{list}");
    let (table, list) = broken(&[1, 2, 0, 4], &[0, 2, 99]);
    assert!(table.contains("row 1, place 0: element 0, but there are 5 from 1 on"), "{table}");
    assert!(list.contains("row 1 goes from 2 to 99, and there are 3 elements"), "{list}");
    let (table, _) = broken(&[1, 2, i32::MIN, 4], &[0]);
    assert!(table.contains("element -2147483648"), "{table}");
}

#[test]
fn metis_graphs_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    // The example of METIS's manual, section 4.1.1: 7 vertices, 11 edges.
    let manual = "7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";
    let path = dir.path().join("in.graph");
    std::fs::write(&path, format!("% a comment\n{manual}")).unwrap();
    let out = dir.path().join("out.graph");
    for ranks in [1, 3, 9] {
        let parts = launch(ranks, |comm| {
            let relation = read_metis(&*comm, &path).unwrap();
            write_metis(&*comm, &relation, &out).unwrap();
            relation
        });
        let expected: Rows = vec![
            vec![4, 2, 1],
            vec![0, 2, 3],
            vec![4, 3, 1, 0],
            vec![1, 2, 5, 6],
            vec![0, 2, 5],
            vec![4, 3, 6],
            vec![5, 3],
        ];
        assert_eq!(whole(&parts), expected);
        assert_eq!(std::fs::read_to_string(&out).unwrap(), manual);
    }
    for (text, what) in [
        ("7 11\n5 3 2\n", "ends after 1 of 7 rows"),
        ("2 1\n2\n3\n", "line 3: vertex 3 of 2"),
        ("2 5\n2\n1\n", "5 edges are said"),
        ("99999999999 1\n", "99999999999 vertices"),
        ("2 x\n", "\"x\" is not a number"),
    ] {
        std::fs::write(&path, text).unwrap();
        let errors = launch(2, |comm| read_metis(&*comm, &path).unwrap_err().to_string());
        assert!(errors[0].contains(what), "{errors:?}");
    }
}
