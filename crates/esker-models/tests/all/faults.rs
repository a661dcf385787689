//! A program that is killed while it redefines leaves graph and variables of one state.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Graphs, OpenOptions, Selection, Version, launch,
};
use esker_store::{Fault, FaultyStore, LocalStore, Store};

fn create(path: &std::path::Path, version: Version, records: u64) {
    let mut def = Dataset::create(path, CreateOptions::new().version(version)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    def.add_var("a", ExternalType::Int, &[x]).unwrap();
    let r = def.add_var("r", ExternalType::Double, &[time, x]).unwrap();
    let set = def.graphs_mut().unwrap();
    set.add_graph("g").unwrap();
    set.add_vertex("va").unwrap();
    set.put_in("g", "va").unwrap();
    set.attach("va", "a").unwrap();
    let mut ds = def.enddef().unwrap();
    let a = ds.var("a").unwrap();
    ds.put(a, &Selection::all(), &[1, 2, 3, 4]).unwrap();
    for record in 0..records {
        ds.put(r, &Selection::slab(&[record, 0], &[1, 4]), &[record as f64; 4]).unwrap();
    }
    ds.close().unwrap();
}

/// Adds variable `n` with a vertex that has it and is beside the first.
fn redefine(path: &std::path::Path, ranks: usize, n: usize, store: Arc<dyn Store>) -> bool {
    let outcomes = launch(ranks, |comm| -> esker::Result<()> {
        let options = OpenOptions::new().comm(comm).writable(true).store(store.clone());
        let mut def = Dataset::open_with(path, options)?.redef()?;
        let x = def.schema().dim("x").unwrap();
        let (var, vertex) = (format!("v{n}"), format!("vertex of v{n}"));
        def.add_var(&var, ExternalType::Int, &[x])?;
        let set = def.graphs_mut()?;
        set.add_vertex(&vertex).unwrap();
        set.put_in("g", &vertex).unwrap();
        set.attach(&vertex, &var).unwrap();
        if set.edge("beside").is_err() {
            set.add_edge("beside", 1.0, false).unwrap();
        }
        set.connect(&vertex, "beside", "va").unwrap();
        def.enddef()?.close()
    });
    outcomes.iter().all(Result::is_ok)
}

/// The variables of the file and of its graph, which must be of one state.
fn state(path: &std::path::Path, records: u64) -> BTreeSet<String> {
    let ds = Dataset::open(path).unwrap();
    let Graphs { set, missing } = ds.graphs().unwrap();
    assert_eq!(missing, []);
    let of_file = ds.schema().vars.iter().map(|v| v.name.to_string());
    let of_file: BTreeSet<String> =
        of_file.filter(|name| !name.starts_with('g') && name != "r").collect();
    let of_graph = set.vertices().iter().flat_map(|v| v.vars.iter()).map(|v| v.to_string());
    assert_eq!(of_graph.collect::<BTreeSet<_>>(), of_file, "the graph is of another state");
    let a: Vec<i32> = ds.get(ds.var("a").unwrap(), &Selection::all()).unwrap();
    assert_eq!(a, [1, 2, 3, 4]);
    let r: Vec<f64> = ds.get(ds.var("r").unwrap(), &Selection::all()).unwrap();
    let expected: Vec<f64> = (0..records).flat_map(|record| [record as f64; 4]).collect();
    assert_eq!(r, expected);
    of_file
}

#[test]
fn a_kill_at_any_change_leaves_graph_and_variables_of_one_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.nc");
    // Records behind the fixed variables make every redefinition move data; without them it is in place.
    for (records, ranks) in [(0, 1), (3, 1), (0, 3), (3, 3)] {
        let (mut old, mut new) = (0, 0);
        for fault in [Fault::Kill, Fault::Tear] {
            for at in 0.. {
                create(&path, Version::Cdf2, records);
                // The third redefinition uses room that the first has left.
                for n in 0..2 {
                    assert!(redefine(&path, ranks, n, Arc::new(LocalStore)));
                }
                let before = state(&path, records);
                let store = FaultyStore::new(LocalStore, at, fault);
                let done = redefine(&path, ranks, 2, Arc::new(store.clone()));
                let after = state(&path, records);
                match after.len() - before.len() {
                    0 => old += 1,
                    1 => new += 1,
                    more => panic!("{more} new variables"),
                }
                if store.calls() <= at {
                    assert!(done && after.contains("v2"));
                    break;
                }
            }
        }
        assert!(old > 4 && new >= 2, "{old} old and {new} new states");
    }
}
