//! Graphs of variables: every rank defines what it knows, the file has all of it, and other tools
//! carry it along.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::graph::{GraphSet, Of};
use esker::*;
use esker_testkit::programs;
use proptest::prelude::{ProptestConfig, Strategy, any, prop};
use proptest::{prop_assert_eq, proptest};
use tempfile::tempdir;

/// What a set is, without any order.
pub(crate) type Plain = (
    BTreeMap<String, BTreeSet<String>>,
    BTreeMap<String, (u64, bool)>,
    BTreeMap<String, BTreeSet<String>>,
    BTreeSet<(String, String, String)>,
);

fn plain(set: &GraphSet) -> Plain {
    let names = |list: &[Arc<str>]| list.iter().map(|n| n.to_string()).collect::<BTreeSet<_>>();
    let graphs = set.graphs().iter().map(|g| (g.name.to_string(), names(g.vertices.as_slice())));
    let edges = set.edges().iter().map(|e| (e.name.to_string(), (e.weight.to_bits(), e.directed)));
    let vertices = set.vertices().iter().map(|v| (v.name.to_string(), names(v.vars.as_slice())));
    let mut links = BTreeSet::new();
    for vertex in set.vertices() {
        for link in &vertex.links {
            let directed = set.edge(&link.edge).unwrap().directed;
            let (mut a, mut b) = (vertex.name.to_string(), link.to.to_string());
            if !directed && b < a {
                std::mem::swap(&mut a, &mut b);
            }
            assert!(links.insert((a, link.edge.to_string(), b)), "a link is there once");
        }
    }
    (graphs.collect(), edges.collect(), vertices.collect(), links)
}

/// A vertex, what it has and where it is.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) vertex: u8,
    pub(crate) graphs: Vec<u8>,
    pub(crate) vars: Vec<u8>,
    /// Edge and neighbour. Edges of even number have a direction.
    pub(crate) links: Vec<(u8, u8)>,
}

fn item() -> impl Strategy<Value = Item> {
    let lists = (
        0u8..12,
        prop::collection::vec(1u8..3, 0..2),
        prop::collection::vec(0u8..6, 0..3),
        prop::collection::vec((0u8..4, 0u8..12), 0..4),
    );
    lists.prop_map(|(vertex, graphs, vars, links)| Item { vertex, graphs, vars, links })
}

/// Defines an item as a rank does that knows nothing of the others.
fn define(set: &mut GraphSet, item: &Item) {
    let vertex = |set: &mut GraphSet, n: u8| {
        let name = format!("v{n}");
        if set.vertex(&name).is_err() {
            set.add_vertex(&name).unwrap();
        }
        // Everything is in graph 0, so that neighbours share one.
        for graph in [0].iter().chain(&item.graphs) {
            let graph = format!("g{graph}");
            if set.graph(&graph).is_err() {
                set.add_graph(&graph).unwrap();
            }
            if n == item.vertex || graph == "g0" {
                set.put_in(&graph, &name).unwrap();
            }
        }
        name
    };
    let from = vertex(set, item.vertex);
    for var in &item.vars {
        set.attach(&from, &format!("var{var}")).unwrap();
    }
    for (edge, to) in &item.links {
        let name = format!("e{edge}");
        if set.edge(&name).is_err() {
            set.add_edge(&name, f64::from(*edge) / 2.0, edge % 2 == 0).unwrap();
        }
        let to = vertex(set, *to);
        set.connect(&from, &name, &to).unwrap();
    }
}

/// Defines the items whose place is this rank's modulo the ranks, and the variables of them.
fn define_own(def: &mut Define, items: &[Item], (rank, size): (usize, usize)) -> Result<()> {
    let x = match def.schema().dim("x") {
        Some(x) => x,
        None => def.add_dim("x", DimLen::Fixed(3))?,
    };
    for (_, item) in items.iter().enumerate().filter(|(at, _)| at % size == rank) {
        for var in &item.vars {
            let name = format!("var{var}");
            if def.schema().var(&name).is_none() {
                def.add_var(&name, ExternalType::Int, &[x])?;
            }
        }
        define(def.graphs_mut()?, item);
    }
    Ok(())
}

/// Gives every variable its values. Collective.
fn put_values(ds: &mut Dataset) -> Result<()> {
    let is_first = ds.comm().rank() == 0;
    for var in 0..6 {
        if let Ok(id) = ds.var(&format!("var{var}")) {
            let part = if is_first { Selection::all() } else { Selection::none() };
            let values: &[i32] = if is_first { &[var, var + 1, var + 2] } else { &[] };
            ds.put_all(id, &part, values)?;
        }
    }
    Ok(())
}

/// Creates a file in which rank r defines every item whose place is r modulo the ranks. Collective.
pub(crate) fn create_on(
    comm: Arc<dyn Communicator>,
    path: &Path,
    items: &[Item],
    options: CreateOptions,
) -> Result<()> {
    let place = (comm.rank(), comm.size());
    let mut def = Dataset::create(path, options.comm(comm))?;
    define_own(&mut def, items, place)?;
    let mut ds = def.enddef()?;
    put_values(&mut ds)?;
    ds.close()
}

/// Adds items to a file, each rank its own; `all` is what it has then. Collective.
pub(crate) fn redefine_on(
    comm: Arc<dyn Communicator>,
    path: &Path,
    more: &[Item],
    all: &[Item],
) -> Result<()> {
    let place = (comm.rank(), comm.size());
    let ds = Dataset::open_with(path, OpenOptions::new().comm(comm).writable(true))?;
    let mut def = ds.redef()?;
    define_own(&mut def, more, place)?;
    let mut ds = def.enddef()?;
    put_values(&mut ds)?;
    assert_eq!(plain(&ds.graphs()?.set), whole(all));
    ds.close()
}

fn create(path: &Path, ranks: usize, items: &[Item], options: &(dyn Fn() -> CreateOptions + Sync)) {
    let outcomes = launch(ranks, |comm| create_on(comm, path, items, options()));
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

/// What the file has, and that every variable has its values. Collective.
pub(crate) fn read_on(comm: Arc<dyn Communicator>, path: &Path) -> Plain {
    let ds = Dataset::open_with(path, OpenOptions::new().comm(comm)).unwrap();
    let graphs = ds.graphs().unwrap();
    assert!(graphs.missing.is_empty(), "{:?}", graphs.missing);
    for var in 0..6 {
        if let Ok(id) = ds.var(&format!("var{var}")) {
            let values: Vec<i32> = ds.get(id, &Selection::all()).unwrap();
            assert_eq!(values, [var, var + 1, var + 2]);
        }
    }
    plain(&graphs.set)
}

/// The same on any number of ranks.
fn read(path: &Path, ranks: usize) -> Plain {
    let mut read = launch(ranks, |comm| read_on(comm, path));
    let first = read.remove(0);
    assert!(read.iter().all(|other| *other == first));
    first
}

pub(crate) fn whole(items: &[Item]) -> Plain {
    let mut set = GraphSet::default();
    items.iter().for_each(|item| define(&mut set, item));
    plain(&set)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_graphs_defined_by_parts_are_those_of_one_rank(
        items in prop::collection::vec(item(), 0..24),
        ranks in 1usize..=16,
        version in prop::sample::select(vec![Version::Cdf1, Version::Cdf2, Version::Cdf5]),
    ) {
        let dir = tempdir().unwrap();
        let path = dir.path().join("g.nc");
        create(&path, ranks, &items, &|| CreateOptions::new().version(version));
        prop_assert_eq!(read(&path, 1), whole(&items));
        prop_assert_eq!(read(&path, 3), whole(&items));
        let container = dir.path().join("g.esk");
        let log = || CreateOptions::new().layout(Layout::Log);
        create(&container, ranks, &items, &log);
        prop_assert_eq!(read(&container, 1), whole(&items));
    }

    #[test]
    fn redefinitions_by_parts_keep_graph_and_variables_together(
        first in prop::collection::vec(item(), 1..12),
        second in prop::collection::vec(item(), 1..12),
        third in prop::collection::vec(item(), 1..4),
        ranks in 1usize..=5,
        container in any::<bool>(),
    ) {
        let dir = tempdir().unwrap();
        let path = dir.path().join("g.nc");
        let layout = if container { Layout::Log } else { Layout::Classic };
        create(&path, ranks, &first, &|| CreateOptions::new().layout(layout));
        let mut items = first.clone();
        for more in [&second, &third] {
            items.extend(more.iter().cloned());
            let outcomes = launch(ranks, |comm| redefine_on(comm, &path, more, &items));
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
            prop_assert_eq!(read(&path, 2), whole(&items));
        }
    }
}

/// Two levels with a variable each.
fn amr(path: &Path) {
    let mut def = Dataset::create(path, CreateOptions::new().version(Version::Cdf2)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(5)).unwrap();
    let p = def.add_var("p", ExternalType::Double, &[time, x]).unwrap();
    def.add_var("rho", ExternalType::Float, &[x]).unwrap();
    def.add_var("u", ExternalType::Float, &[x]).unwrap();
    let set = def.graphs_mut().unwrap();
    set.add_graph("amr").unwrap();
    set.add_edge("refines", 2.0, true).unwrap();
    set.add_edge("beside", -0.5, false).unwrap();
    for level in ["level_0", "level_1"] {
        set.add_vertex(level).unwrap();
        set.put_in("amr", level).unwrap();
    }
    set.put_attr(Of::Graph("amr"), "note", "Größe").unwrap();
    set.put_attr(Of::Vertex("level_1"), "ratio", vec![2i32, 2, 2]).unwrap();
    set.connect("level_1", "refines", "level_0").unwrap();
    set.connect("level_1", "beside", "level_0").unwrap();
    set.attach("level_0", "rho").unwrap();
    set.attach("level_0", "p").unwrap();
    set.attach("level_1", "u").unwrap();
    let mut ds = def.enddef().unwrap();
    for record in 0..3 {
        ds.put(p, &Selection::slab(&[record, 0], &[1, 5]), &[record as f64; 5]).unwrap();
    }
    let var = ds.var("rho").unwrap();
    ds.put(var, &Selection::all(), &[1.0f32, 2.0, 3.0, 4.0, 5.0]).unwrap();
    ds.close().unwrap();
}

fn graphs(path: &Path) -> Graphs {
    Dataset::open(path).unwrap().graphs().unwrap()
}

/// Runs a program that must succeed.
fn tool(name: &str, args: &[&str]) {
    programs::good(Command::new(name).args(args));
}

#[test]
fn netcdf_tools_leave_graphs_readable() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("amr.nc");
    amr(&path);
    let before = graphs(&path);
    let at = |name: &str| dir.path().join(name);
    let text = |path: &PathBuf| path.to_str().unwrap().to_string();
    let source = text(&path);
    if programs::have("ncvalidator") {
        programs::require_valid(&path, "a file with a graph");
    }
    // To CDF-5, and to netCDF-4 and back.
    let copies = [at("five.nc"), at("four.nc"), at("back.nc")];
    let [five, four, back] = copies.each_ref().map(text);
    if programs::have("nccopy") {
        tool("nccopy", &["-k", "cdf5", &source, &five]);
        assert_eq!(graphs(&copies[0]), before);
        tool("nccopy", &["-k", "nc4", &source, &four]);
        tool("nccopy", &["-k", "nc3", &four, &back]);
        assert_eq!(graphs(&copies[2]), before);
        // Some variables only: they have other numbers, and one is gone.
        let some = at("some.nc");
        tool("nccopy", &["-k", "cdf5", "-V", "u,amr,p", &source, &text(&some)]);
        let left = graphs(&some);
        assert_eq!(left.set.vertex("level_1").unwrap().vars.as_slice(), [Arc::from("u")]);
        assert_eq!(left.set.vertex("level_0").unwrap().vars.as_slice(), [Arc::from("p")]);
        let missing: Vec<_> = left.missing.iter().map(|m| (&*m.vertex, &*m.var)).collect();
        assert_eq!(missing, [("level_0", "rho")]);
    }
    let sorted = at("sorted.nc");
    if programs::is_installed("ncks") {
        tool("ncks", &["-O", "-6", &source, &text(&sorted)]);
        // ncks sorts the variables.
        let number = |path: &Path| Dataset::open(path).unwrap().var("amr").unwrap();
        assert_eq!(graphs(&sorted), before);
        assert_ne!(number(&sorted), number(&path));
        let some = at("ncks_some.nc");
        tool("ncks", &["-O", "-6", "-v", "u,amr", &source, &text(&some)]);
        let missing = graphs(&some).missing;
        assert_eq!(missing.len(), 2, "{missing:?}");
    }
    let python = "import sys, netCDF4
source, target = netCDF4.Dataset(sys.argv[1]), netCDF4.Dataset(sys.argv[2], 'w', format='NETCDF3_64BIT_DATA')
for d in source.dimensions.values():
    target.createDimension(d.name, None if d.isunlimited() else len(d))
for v in reversed(list(source.variables.values())):
    new = target.createVariable(v.name, v.dtype, v.dimensions)
    new.setncatts({a: v.getncattr(a) for a in v.ncattrs()})
    new[:] = v[:]
target.close()";
    if let Some(peer) = esker_testkit::python::with("netCDF4") {
        let copied = at("python.nc");
        tool(peer.to_str().unwrap(), &["-c", python, &source, &text(&copied)]);
        assert_eq!(graphs(&copied), before);
    }
}

#[test]
fn conflicts_between_ranks_name_the_object_the_ranks_and_both_definitions() {
    let sentences = |define: &(dyn Fn(usize, &mut GraphSet) + Sync)| {
        let dir = tempdir().unwrap();
        let path = dir.path().join("g.nc");
        let outcomes = launch(5, |comm| {
            let rank = comm.rank();
            let mut def = Dataset::create(&path, CreateOptions::new().comm(comm)).unwrap();
            let set = def.graphs_mut().unwrap();
            if rank > 0 {
                set.add_graph("g").unwrap();
                set.add_vertex("v").unwrap();
                set.put_in("g", "v").unwrap();
                define(rank, set);
            }
            Error::from(def.enddef().unwrap_err()).to_string()
        });
        assert!(!path.exists());
        assert!(outcomes.iter().all(|o| *o == outcomes[0]), "{outcomes:?}");
        outcomes[0].replace(&format!("{}: ", path.display()), "")
    };
    assert_eq!(
        sentences(&|rank, set| set.add_edge("e", if rank == 3 { 4.0 } else { 2.0 }, true).unwrap()),
        "edge \"e\": rank 2 defines it as directed, weight 2, rank 3 as directed, weight 4"
    );
    assert_eq!(
        sentences(&|rank, set| set.add_edge("e", 1.0, rank < 4).unwrap()),
        "edge \"e\": rank 1 defines it as directed, weight 1, rank 4 as undirected, weight 1"
    );
    assert_eq!(
        sentences(&|rank, set| set.put_attr(Of::Vertex("v"), "lo", (rank / 2) as i32).unwrap()),
        "attribute \"lo\" of vertex \"v\": rank 1 defines it as int 0, rank 2 as int 1"
    );
    assert_eq!(
        sentences(&|rank, set| {
            let note = if rank == 4 { "other" } else { "one" };
            set.put_attr(Of::Graph("g"), "note", note).unwrap();
        }),
        "attribute \"note\" of graph \"g\": rank 1 defines it as \"one\", rank 4 as \"other\""
    );
    assert_eq!(
        sentences(&|rank, set| {
            if rank == 2 {
                set.add_vertex("alone").unwrap();
            }
        }),
        "vertex \"alone\" is in no graph: put it into one, or delete it"
    );
    assert_eq!(
        sentences(&|_, set| set.attach("v", "rho").unwrap()),
        "vertex \"v\" has variable \"rho\", which is not defined"
    );
}

#[test]
fn what_is_deleted_dissociated_and_renamed_is_so_in_the_file() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("amr.nc");
    amr(&path);
    let redefine = |change: &(dyn Fn(&mut Define) + Sync)| {
        let outcomes = launch(3, |comm| {
            let options = OpenOptions::new().comm(comm).writable(true);
            let mut def = Dataset::open_with(&path, options).unwrap().redef().unwrap();
            change(&mut def);
            def.enddef().unwrap().close().unwrap();
        });
        drop(outcomes);
        graphs(&path).set
    };
    let set = redefine(&|def| def.rename_var("rho", "density").unwrap());
    let names = |set: &GraphSet, v: &str| -> Vec<String> {
        set.vertex(v).unwrap().vars.iter().map(|n| n.to_string()).collect()
    };
    assert_eq!(names(&set, "level_0"), ["density", "p"]);
    let set = redefine(&|def| {
        let set = def.graphs_mut().unwrap();
        set.rename_vertex("level_1", "fine").unwrap();
        set.rename_edge("refines", "is finer than").unwrap();
        set.rename_graph("amr", "levels").unwrap();
        set.detach("level_0", "p").unwrap();
        set.disconnect("level_0", "beside", "fine").unwrap();
        set.delete_edge("beside").unwrap();
        set.del_attr(Of::Graph("levels"), "note").unwrap();
    });
    assert_eq!(names(&set, "level_0"), ["density"]);
    assert!(set.graph("amr").is_err() && set.graph("levels").unwrap().attrs.is_empty());
    assert_eq!(set.edges().len(), 1);
    let links: Vec<_> = set.vertex("fine").unwrap().links.iter().collect();
    assert_eq!((links.len(), &*links[0].edge, &*links[0].to), (1, "is finer than", "level_0"));
    let set = redefine(&|def| {
        let set = def.graphs_mut().unwrap();
        set.delete_graph("levels").unwrap();
        set.delete_vertex("fine").unwrap();
        set.delete_vertex("level_0").unwrap();
        set.delete_edge("is finer than").unwrap();
    });
    assert!(set.is_empty());
    // The name is free for another one, and for as many changes as there are, room is used again.
    let vars = || Dataset::open(&path).unwrap().schema().vars.len();
    let mut counts = Vec::new();
    for round in 0..6 {
        let set = redefine(&|def| {
            let set = def.graphs_mut().unwrap();
            if round == 0 {
                set.add_graph("amr").unwrap();
                set.add_vertex("v").unwrap();
                set.put_in("amr", "v").unwrap();
            }
            set.put_attr(Of::Vertex("v"), "round", round).unwrap();
        });
        assert_eq!(
            set.vertex("v").unwrap().attrs.get("round").unwrap().values,
            Values::from(round)
        );
        counts.push(vars());
    }
    assert_eq!(counts[1], counts[5], "{counts:?}");
    // All else is what it was.
    let ds = Dataset::open(&path).unwrap();
    let p: Vec<f64> = ds.get(ds.var("p").unwrap(), &Selection::all()).unwrap();
    assert_eq!(p, [[0.0; 5], [1.0; 5], [2.0; 5]].concat());
    let rho: Vec<f32> = ds.get(ds.var("density").unwrap(), &Selection::all()).unwrap();
    assert_eq!(rho, [1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn changes_that_only_one_rank_makes_are_refused_by_all() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("amr.nc");
    amr(&path);
    let before = std::fs::read(&path).unwrap();
    let errors = launch(3, |comm| {
        let rank = comm.rank();
        let options = OpenOptions::new().comm(comm).writable(true);
        let mut def = Dataset::open_with(&path, options).unwrap().redef().unwrap();
        if rank == 1 {
            def.graphs_mut().unwrap().delete_edge("beside").unwrap();
        }
        Error::from(def.enddef().unwrap_err()).to_string()
    });
    assert!(errors.iter().all(|e| e.contains("rename, delete and change alike")), "{errors:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_graph_is_named_and_the_rest_works() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("amr.nc");
    amr(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|w| w == b"GRAPH").unwrap();
    // The attribute says the same word first.
    let at = at + 1 + bytes[at + 1..].windows(5).position(|w| w == b"GRAPH").unwrap();
    bytes[at + 40] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let ds = Dataset::open(&path).unwrap();
    let error = ds.graphs().unwrap_err().to_string();
    assert!(error.contains("graph \"amr\", byte ") && error.contains("checksum"), "{error}");
    let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
    let mut def = ds.redef().unwrap();
    let refused = def.graphs_mut().unwrap_err().to_string();
    assert!(refused.contains("checksum"), "{refused}");
    def.put_attr(Owner::Global, "title", "still works").unwrap();
    let ds = def.enddef().unwrap();
    let rho: Vec<f32> = ds.get(ds.var("rho").unwrap(), &Selection::all()).unwrap();
    assert_eq!(rho, [1.0, 2.0, 3.0, 4.0, 5.0]);
}
