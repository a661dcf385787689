//! Definitions that no rank holds whole: the file is the one that merging up a tree makes, byte for byte.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::scenario::shares::{Road, hints, same_bytes};
use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, Error, ExternalType, FillMode,
    OpenOptions, Owner, Selection, Values,
};
use esker_store::{Fault, FaultyStore, LocalStore};
use esker_testkit::ranks::on_ranks;
use tempfile::TempDir;

fn create(path: &Path, comm: &Arc<dyn Communicator>, road: Road) -> Define {
    let options = CreateOptions::new().comm(comm.clone()).hints(hints(road));
    Dataset::create(path, options).unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_path_buf();
    (dir, path)
}

#[test]
fn bytes_by_shares_are_those_of_the_tree() {
    let mut by_shares = 0;
    for ranks in 1..=16 {
        let (_dir, path) = folder();
        let seeds = if ranks < 6 { 24 } else { 8 };
        let told = on_ranks(ranks, move |comm| {
            (0..seeds).filter(|seed| same_bytes(1000 * ranks as u64 + seed, &comm, &path)).count()
        });
        assert!(told.iter().all(|count| *count == told[0]), "{ranks} ranks: {told:?}");
        assert!(ranks > 1 || told[0] == 0, "one rank has nothing to share");
        by_shares += told[0];
    }
    // Others have alignments that are no sums, or definitions that are alike.
    assert!(by_shares > 60, "{by_shares}");
}

/// The error of every rank, by both roads.
fn refused(
    ranks: usize,
    define: impl Fn(usize, &mut Define) + Send + Sync + Copy + 'static,
) -> [Vec<String>; 2] {
    [Road::Tree, Road::Shares].map(|road| {
        let (dir, path) = folder();
        let errors = on_ranks(ranks, move |comm| {
            let path = path.join("run.nc");
            let mut def = create(&path, &comm, road);
            define(comm.rank(), &mut def);
            let failed = def.enddef().map(drop).unwrap_err();
            assert!(matches!(*failed.error, Error::Definitions { .. }), "{}", failed.error);
            assert!(!path.exists());
            failed.error.to_string().replace(path.parent().unwrap().to_str().unwrap(), "")
        });
        drop(dir);
        errors
    })
}

#[test]
fn conflicts_by_shares_are_told_on_every_rank_as_by_the_tree() {
    type Case = (fn(usize, &mut Define), &'static [&'static str]);
    fn dim(rank: usize, def: &mut Define) {
        def.add_dim(&format!("own{rank}"), DimLen::Fixed(1)).unwrap();
        def.add_dim("x", DimLen::Fixed(if rank == 1 { 4 } else { 3 })).unwrap();
    }
    fn unlimited(rank: usize, def: &mut Define) {
        let name = if rank == 0 { "time" } else { "t" };
        def.add_dim(name, DimLen::Unlimited).unwrap();
    }
    fn ty(rank: usize, def: &mut Define) {
        let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
        let ty = if rank == 0 { ExternalType::Int } else { ExternalType::Float };
        def.add_var("u", ty, &[x]).unwrap();
    }
    fn over(rank: usize, def: &mut Define) {
        let dims = ["x", "y"].map(|name| def.add_dim(name, DimLen::Fixed(2)).unwrap());
        def.add_var("u", ExternalType::Int, &[dims[rank.min(1)]]).unwrap();
    }
    fn attr(rank: usize, def: &mut Define) {
        let u = def.add_var("u", ExternalType::Int, &[]).unwrap();
        def.put_attr(u, "units", if rank == 0 { "m" } else { "km" }).unwrap();
    }
    fn global(rank: usize, def: &mut Define) {
        def.put_attr(Owner::Global, "title", if rank == 0 { 1i32 } else { 2 }).unwrap();
    }
    fn fill(rank: usize, def: &mut Define) {
        let u = def.add_var("u", ExternalType::Int, &[]).unwrap();
        let mode = if rank == 0 { FillMode::Fill } else { FillMode::NoFill };
        def.set_fill(u, mode).unwrap();
    }
    let cases: [Case; 7] = [
        (dim, &["dimension \"x\"", "rank 1 ", "length 3", "length 4"]),
        (unlimited, &["unlimited dimension", "rank 0 ", "\"time\"", "\"t\""]),
        (ty, &["variable \"u\"", "rank 0 ", "int (x)", "float (x)"]),
        (over, &["variable \"u\"", "rank 0 ", "int (x)", "int (y)"]),
        (attr, &["attribute \"units\" of variable \"u\"", "rank 0 ", "\"m\"", "\"km\""]),
        (global, &["global attribute \"title\"", "rank 0 ", "int 1", "int 2"]),
        (fill, &["the fill mode of variable \"u\"", "rank 0 ", " Fill", " NoFill"]),
    ];
    for (define, words) in cases {
        for ranks in [2, 3, 7, 16] {
            let [tree, shares] = refused(ranks, define);
            for (rank, error) in shares.iter().enumerate() {
                for word in words {
                    assert!(error.contains(word), "rank {rank} of {ranks} says {error:?}");
                }
            }
            // Of more than two ranks others may meet first.
            assert!(shares.iter().all(|error| *error == shares[0]), "{shares:?}");
            assert!(ranks > 2 || tree == shares, "{tree:?} and {shares:?}");
        }
    }
}

#[test]
fn what_a_rank_did_not_define_it_can_learn() {
    for ranks in [2, 5, 16] {
        let (_dir, path) = folder();
        on_ranks(ranks, move |comm| {
            let path = path.join("run.nc");
            let me = comm.rank();
            let mut def = create(&path, &comm, Road::Shares);
            let t = def.add_dim("t", DimLen::Unlimited).unwrap();
            let own = def.add_var(&format!("own{me}"), ExternalType::Int, &[t]).unwrap();
            let shared = def.add_var("shared", ExternalType::Double, &[]).unwrap();
            def.put_attr(shared, &format!("of{me}"), me as i32).unwrap();
            let mut ds = def.enddef().unwrap();
            assert!(!ds.knows_all());
            assert_eq!(ds.counts(), [1, 0, comm.size() as u64 + 1]);
            // What others say of its own objects, a rank knows.
            assert_eq!(ds.variable(shared).unwrap().attrs.len(), comm.size());
            let next = format!("own{}", (me + 1) % comm.size());
            assert!(ds.var(&next).is_err());
            let record = Selection::slab(&[me as u64], &[1]);
            ds.put_all(own, &record, &[me as i32]).unwrap();
            assert_eq!(ds.numrecs(), comm.size() as u64);
            ds.learn_all().unwrap();
            assert_eq!(ds.counts(), [1, 0, comm.size() as u64 + 1]);
            let var = ds.var(&next).unwrap();
            let values: Vec<i32> = ds.get_all(var, &Selection::all()).unwrap();
            // Records that nobody wrote are filled by the rank that has the variable.
            let fill = -2147483647;
            let other = (me + 1) % comm.size();
            let expected = (0..comm.size()).map(|r| if r == other { r as i32 } else { fill });
            assert_eq!(values, expected.collect::<Vec<i32>>());
            ds.close().unwrap();
            let ds = Dataset::open_with(&path, OpenOptions::new().comm(comm.clone())).unwrap();
            assert_eq!(ds.schema().vars.len(), comm.size() + 1);
        });
    }
}

#[test]
fn attributes_of_ranks_that_defined_different_things_change_in_define_mode_on_every_rank() {
    for road in [Road::Tree, Road::Shares] {
        let (_dir, path) = folder();
        on_ranks(3, move |comm| {
            let path = path.join("run.nc");
            let mut def = create(&path, &comm, road);
            def.put_attr(Owner::Global, "title", "one").unwrap();
            def.add_var(&format!("v{}", comm.rank()), ExternalType::Int, &[]).unwrap();
            let mut ds = def.enddef().unwrap();
            // Rank 0 has the file's numbers, and the error of the others.
            let title = || Values::from("two");
            let refused = ds.amend(|schema| schema.put_attr(Owner::Global, "title", title()));
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("are changed in define mode"), "{error}");
            let mut def = ds.redef().unwrap();
            assert_eq!(def.schema().vars.len(), 3);
            def.put_attr(Owner::Global, "title", title()).unwrap();
            let ds = def.enddef().unwrap();
            assert_eq!(ds.schema().attr(Owner::Global, "title"), Some(&title()));
            ds.close().unwrap();
        });
    }
}

#[test]
fn what_cannot_be_merged_by_shares_is_merged_up_the_tree() {
    type Case = fn(usize, &mut Define);
    fn graph(rank: usize, def: &mut Define) {
        def.add_var(&format!("v{rank}"), ExternalType::Int, &[]).unwrap();
        let set = def.graphs_mut().unwrap();
        set.add_graph("g").unwrap();
        set.add_vertex(&format!("x{rank}")).unwrap();
        set.put_in("g", &format!("x{rank}")).unwrap();
    }
    fn chunks(rank: usize, def: &mut Define) {
        let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
        let var = def.add_var(&format!("v{rank}"), ExternalType::Int, &[x]).unwrap();
        if rank == 1 {
            def.set_filters(var, "shuffle").unwrap();
        }
    }
    fn alike(_: usize, def: &mut Define) {
        def.add_var("v", ExternalType::Int, &[]).unwrap();
    }
    let cases: [Case; 3] = [graph, chunks, alike];
    for define in cases {
        let (_dir, path) = folder();
        on_ranks(3, move |comm| {
            let path = path.join("run.nc");
            let mut def = create(&path, &comm, Road::Shares);
            define(comm.rank(), &mut def);
            let ds = def.enddef().unwrap();
            assert!(ds.knows_all());
            ds.close().unwrap();
        });
    }
}

#[test]
fn a_failure_while_parts_of_a_header_are_written_leaves_the_old_file_or_the_new() {
    for who in [0, 2] {
        for at in 0..12 {
            let (_dir, path) = folder();
            on_ranks(4, move |comm| {
                let path = path.join("run.nc");
                if comm.rank() == 0 {
                    std::fs::write(&path, "old").unwrap();
                }
                comm.barrier().unwrap();
                let at = if comm.rank() == who { at } else { u64::MAX };
                let store = FaultyStore::new(LocalStore, at, Fault::Fail(io::ErrorKind::Other));
                let options = CreateOptions::new().comm(comm.clone()).hints(hints(Road::Shares));
                let made =
                    Dataset::create(&path, options.store(Arc::new(store))).and_then(|mut def| {
                        def.add_var(&format!("v{}", comm.rank()), ExternalType::Int, &[]).unwrap();
                        Ok(def.enddef()?)
                    });
                let is_made = made.is_ok();
                // Whether it was closed is another question.
                drop(made);
                comm.barrier().unwrap();
                let all = comm.all_gather_u64(&[is_made.into()]).unwrap();
                assert!(all.iter().all(|one| *one == all[0]), "rank {who}, call {at}: {all:?}");
                let is_old = std::fs::read(&path).unwrap() == b"old";
                assert!(!(is_old && is_made));
                if !is_old {
                    assert_eq!(Dataset::open(&path).unwrap().schema().vars.len(), 4);
                }
                let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
                assert_eq!(beside, 1, "rank {who}, call {at}");
            });
        }
    }
}
