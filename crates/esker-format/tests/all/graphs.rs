//! Graphs of variables: what is defined is what bytes give back, held against a plain model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::graph::*;
use esker_format::*;
use proptest::prelude::*;

/// What a set of graphs is, without any order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Model {
    graphs: BTreeMap<String, BTreeSet<String>>,
    /// Weight and direction.
    edges: BTreeMap<String, (u64, bool)>,
    vertices: BTreeMap<String, (BTreeSet<String>, BTreeMap<String, i32>)>,
    /// Vertex, edge, neighbour; the smaller name first if the edge has no direction.
    links: BTreeSet<(String, String, String)>,
}

impl Model {
    fn link(&self, from: &str, edge: &str, to: &str) -> (String, String, String) {
        let turned = !self.edges[edge].1 && to < from;
        let (a, b) = if turned { (to, from) } else { (from, to) };
        (a.to_string(), edge.to_string(), b.to_string())
    }

    fn of(set: &GraphSet) -> Model {
        let mut model = Model::default();
        for edge in set.edges() {
            model.edges.insert(edge.name.to_string(), (edge.weight.to_bits(), edge.directed));
        }
        for graph in set.graphs() {
            let vertices = graph.vertices.iter().map(|v| v.to_string()).collect();
            model.graphs.insert(graph.name.to_string(), vertices);
        }
        for vertex in set.vertices() {
            let attrs = vertex
                .attrs
                .iter()
                .map(|a| (a.name.to_string(), a.values.as_slice::<i32>().unwrap()[0]));
            let vars = vertex.vars.iter().map(|v| v.to_string()).collect();
            model.vertices.insert(vertex.name.to_string(), (vars, attrs.collect()));
            for link in &vertex.links {
                let link = model.link(&vertex.name, &link.edge, &link.to);
                assert!(model.links.insert(link), "a link is there once");
            }
        }
        model
    }
}

/// One call, with small numbers that become names.
#[derive(Debug, Clone)]
enum Step {
    Graph(u8),
    Vertex(u8),
    Edge(u8, i8, bool),
    PutIn(u8, u8),
    Connect(u8, u8, u8),
    Attach(u8, u8),
    Attr(u8, u8, i32),
    DeleteVertex(u8),
    DeleteEdge(u8),
    TakeOut(u8, u8),
    Disconnect(u8, u8, u8),
    Detach(u8, u8),
    RenameVertex(u8, u8),
    RenameEdge(u8, u8),
    RenameVar(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0u8..7;
    prop_oneof![
        4 => (0u8..3).prop_map(Step::Graph),
        8 => n().prop_map(Step::Vertex),
        6 => (n(), any::<i8>(), any::<bool>()).prop_map(|(e, w, d)| Step::Edge(e, w, d)),
        24 => (0u8..3, n()).prop_map(|(g, v)| Step::PutIn(g, v)),
        24 => (n(), n(), n()).prop_map(|(v, e, w)| Step::Connect(v, e, w)),
        8 => (n(), n()).prop_map(|(v, a)| Step::Attach(v, a)),
        4 => (n(), n(), any::<i32>()).prop_map(|(v, a, x)| Step::Attr(v, a, x)),
        1 => n().prop_map(Step::DeleteVertex),
        1 => n().prop_map(Step::DeleteEdge),
        1 => (0u8..3, n()).prop_map(|(g, v)| Step::TakeOut(g, v)),
        2 => (n(), n(), n()).prop_map(|(v, e, w)| Step::Disconnect(v, e, w)),
        1 => (n(), n()).prop_map(|(v, a)| Step::Detach(v, a)),
        1 => (n(), n()).prop_map(|(v, w)| Step::RenameVertex(v, w)),
        1 => (n(), n()).prop_map(|(v, w)| Step::RenameEdge(v, w)),
        1 => (n(), n()).prop_map(|(v, w)| Step::RenameVar(v, w)),
    ]
}

/// Does the step in both; they agree on whether it can be done.
fn take(step: &Step, set: &mut GraphSet, model: &mut Model) {
    let g = |n: &u8| format!("graph {n}");
    let v = |n: &u8| format!("vertex {n}");
    let e = |n: &u8| format!("edge {n}");
    let a = |n: &u8| format!("var{n}");
    let (has_v, has_e) = (
        |m: &Model, n: &u8| m.vertices.contains_key(&v(n)),
        |m: &Model, n: &u8| m.edges.contains_key(&e(n)),
    );
    let before = model.clone();
    let (done, possible) = match step {
        Step::Graph(n) => {
            let possible = !model.graphs.contains_key(&g(n));
            model.graphs.entry(g(n)).or_default();
            (set.add_graph(&g(n)), possible)
        }
        Step::Vertex(n) => {
            let possible = !has_v(model, n);
            model.vertices.entry(v(n)).or_default();
            (set.add_vertex(&v(n)), possible)
        }
        Step::Edge(n, weight, directed) => {
            let possible = !has_e(model, n);
            let weight = f64::from(*weight) / 4.0;
            model.edges.entry(e(n)).or_insert((weight.to_bits(), *directed));
            (set.add_edge(&e(n), weight, *directed), possible)
        }
        Step::PutIn(graph, vertex) => {
            let possible = model.graphs.contains_key(&g(graph)) && has_v(model, vertex);
            if possible {
                model.graphs.get_mut(&g(graph)).unwrap().insert(v(vertex));
            }
            (set.put_in(&g(graph), &v(vertex)), possible)
        }
        Step::Connect(from, edge, to) => {
            let possible = has_v(model, from) && has_e(model, edge) && has_v(model, to);
            if possible {
                model.links.insert(model.link(&v(from), &e(edge), &v(to)));
            }
            (set.connect(&v(from), &e(edge), &v(to)), possible)
        }
        Step::Attach(vertex, var) => {
            let possible = has_v(model, vertex);
            if possible {
                model.vertices.get_mut(&v(vertex)).unwrap().0.insert(a(var));
            }
            (set.attach(&v(vertex), &a(var)), possible)
        }
        Step::Attr(vertex, attr, value) => {
            let possible = has_v(model, vertex);
            if possible {
                model.vertices.get_mut(&v(vertex)).unwrap().1.insert(a(attr), *value);
            }
            (set.put_attr(Of::Vertex(&v(vertex)), &a(attr), *value), possible)
        }
        Step::DeleteVertex(n) => {
            let possible = model.vertices.remove(&v(n)).is_some();
            for graph in model.graphs.values_mut() {
                graph.remove(&v(n));
            }
            model.links.retain(|(from, _, to)| *from != v(n) && *to != v(n));
            (set.delete_vertex(&v(n)), possible)
        }
        Step::DeleteEdge(n) => {
            let possible = model.edges.remove(&e(n)).is_some();
            model.links.retain(|(_, edge, _)| *edge != e(n));
            (set.delete_edge(&e(n)), possible)
        }
        Step::TakeOut(graph, vertex) => {
            let found = model.graphs.get_mut(&g(graph));
            let possible = found.is_some_and(|graph| graph.remove(&v(vertex)));
            (set.take_out(&g(graph), &v(vertex)), possible)
        }
        Step::Disconnect(from, edge, to) => {
            let possible = has_v(model, from)
                && has_e(model, edge)
                && has_v(model, to)
                && model.links.remove(&model.link(&v(from), &e(edge), &v(to)));
            (set.disconnect(&v(from), &e(edge), &v(to)), possible)
        }
        Step::Detach(vertex, var) => {
            let found = model.vertices.get_mut(&v(vertex));
            let possible = found.is_some_and(|vertex| vertex.0.remove(&a(var)));
            (set.detach(&v(vertex), &a(var)), possible)
        }
        Step::RenameVertex(old, new) => {
            let possible = has_v(model, old) && (old == new || !has_v(model, new));
            if possible {
                let vertex = model.vertices.remove(&v(old)).unwrap();
                model.vertices.insert(v(new), vertex);
                for graph in model.graphs.values_mut() {
                    if graph.remove(&v(old)) {
                        graph.insert(v(new));
                    }
                }
                let name = |n: &String| if *n == v(old) { v(new) } else { n.clone() };
                let links = std::mem::take(&mut model.links);
                let links = links.iter().map(|(f, e, t)| model.link(&name(f), e, &name(t)));
                model.links = links.collect();
            }
            (set.rename_vertex(&v(old), &v(new)), possible)
        }
        Step::RenameEdge(old, new) => {
            let possible = has_e(model, old) && (old == new || !has_e(model, new));
            if possible {
                let edge = model.edges.remove(&e(old)).unwrap();
                model.edges.insert(e(new), edge);
                let name = |n: &String| if *n == e(old) { e(new) } else { n.clone() };
                let links = std::mem::take(&mut model.links);
                model.links =
                    links.iter().map(|(f, e, t)| (f.clone(), name(e), t.clone())).collect();
            }
            (set.rename_edge(&e(old), &e(new)), possible)
        }
        Step::RenameVar(old, new) => {
            for (vars, _) in model.vertices.values_mut() {
                if vars.remove(&a(old)) {
                    vars.insert(a(new));
                }
            }
            set.rename_var(&a(old), &a(new));
            (Ok(()), true)
        }
    };
    assert_eq!(done.is_ok(), possible, "{step:?}: {done:?}");
    if !possible {
        *model = before;
    }
}

/// Variables in another order than their names, with room for graphs before them.
fn schema(first: usize) -> Schema {
    let mut schema = Schema::new(Version::Cdf1);
    for n in 0..first {
        schema.add_var(&format!("other{n}"), ExternalType::Int, &[]).unwrap();
    }
    for n in (0..7).rev() {
        schema.add_var(&format!("var{n}"), ExternalType::Int, &[]).unwrap();
    }
    schema
}

/// Whether a file can hold it, by the paper's rules.
fn storable(model: &Model) -> bool {
    let alone = |v: &String| !model.graphs.values().any(|g| g.contains(v));
    let apart =
        |f: &String, t: &String| !model.graphs.values().any(|g| g.contains(f) && g.contains(t));
    !model.vertices.keys().any(alone)
        && !model.links.iter().any(|(f, _, t)| apart(f, t))
        && (!model.graphs.is_empty() || model.edges.is_empty())
}

/// Every graph through bytes, and joined again.
fn through_bytes(set: &GraphSet, written: &Schema, read: &Schema) -> (GraphSet, Vec<Missing>) {
    let number = |name: &str| written.var(name).map(|var| var.0);
    let graphs: Vec<(Arc<str>, StoredGraph)> = set
        .graphs()
        .iter()
        .map(|graph| {
            let bytes = set.encode(&graph.name, number).unwrap();
            (graph.name.clone(), decode(&graph.name, &bytes).unwrap())
        })
        .collect();
    join(&graphs, read).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_definitions_agree_with_a_plain_model(steps in prop::collection::vec(step(), 0..90)) {
        let (mut set, mut model) = (GraphSet::default(), Model::default());
        for step in &steps {
            take(step, &mut set, &mut model);
        }
        prop_assert_eq!(&Model::of(&set), &model);
        let written = schema(3);
        let checked = set.check(|name| written.var(name).is_some());
        prop_assert_eq!(checked.is_ok(), storable(&model), "{:?}", checked);
        if checked.is_ok() {
            let (read, missing) = through_bytes(&set, &written, &written);
            prop_assert_eq!(&Model::of(&read), &model);
            prop_assert!(missing.is_empty());
            // Other numbers, as after nccopy or ncks: names find them.
            let (read, missing) = through_bytes(&set, &written, &schema(0));
            prop_assert_eq!(&Model::of(&read), &model);
            prop_assert!(missing.is_empty());
        }
    }
}

fn two_levels() -> GraphSet {
    let mut set = GraphSet::default();
    set.add_graph("amr").unwrap();
    set.add_edge("refines", 2.0, true).unwrap();
    for level in ["level_0", "level_1"] {
        set.add_vertex(level).unwrap();
        set.put_in("amr", level).unwrap();
    }
    set.connect("level_1", "refines", "level_0").unwrap();
    set.attach("level_0", "rho").unwrap();
    set.attach("level_1", "u").unwrap();
    set
}

#[test]
fn the_bytes_are_those_of_the_grammar() {
    let mut set = GraphSet::default();
    set.add_graph("g").unwrap();
    set.add_edge("ab", 0.5, false).unwrap();
    set.add_vertex("v").unwrap();
    set.put_in("g", "v").unwrap();
    set.attach("v", "rho").unwrap();
    set.connect("v", "ab", "v").unwrap();
    set.put_attr(Of::Vertex("v"), "k", 258i32).unwrap();
    // Written by hand from docs/format/graph.md.
    let mut expected: Vec<u8> = Vec::new();
    let eight = |n: u64| n.to_be_bytes();
    expected.extend(b"GRAPH\x02\x01\x00");
    expected.extend(eight(204));
    expected.extend([0; 12]); // no attributes
    expected.extend([0, 0, 0, 13]);
    expected.extend(eight(1));
    expected.extend(eight(2));
    expected.extend(b"ab\0\0");
    expected.extend([0x3f, 0xe0, 0, 0, 0, 0, 0, 0]); // 0.5
    expected.extend([0, 0, 0, 2]);
    expected.extend([0, 0, 0, 14]);
    expected.extend(eight(1));
    let begin = expected.len() as u64;
    expected.extend(eight(1));
    expected.extend(b"v\0\0\0");
    expected.extend(eight(1));
    expected.extend(eight(5));
    expected.extend(eight(3));
    expected.extend(b"rho\0");
    expected.extend(eight(1));
    expected.extend(eight(0));
    expected.extend(eight(0));
    expected.extend([0, 0, 0, 12]);
    expected.extend(eight(1));
    expected.extend(eight(1));
    expected.extend(b"k\0\0\0");
    expected.extend([0, 0, 0, 4]);
    expected.extend(eight(1));
    expected.extend([0, 0, 1, 2]);
    let size = expected.len() as u64 + 16 - begin;
    expected.extend(eight(size));
    expected.extend(eight(begin));
    let sum = format!("{:08x}", crc32c::crc32c(&expected));
    expected.extend(sum.as_bytes());
    assert_eq!(expected.len(), 204);
    assert_eq!(set.encode("g", |_| Some(5)).unwrap(), expected);
}

#[test]
fn a_variable_that_another_tool_dropped_is_reported_and_the_rest_works() {
    let set = two_levels();
    let mut all = Schema::new(Version::Cdf2);
    for name in ["x", "rho", "u"] {
        all.add_var(name, ExternalType::Int, &[]).unwrap();
    }
    // What `ncks -v u,amr` leaves: "u" has another number, and number 1 is another variable.
    let mut some = Schema::new(Version::Cdf2);
    for name in ["amr", "u"] {
        some.add_var(name, ExternalType::Int, &[]).unwrap();
    }
    let (read, missing) = through_bytes(&set, &all, &some);
    assert_eq!(read.vertex("level_1").unwrap().vars.as_slice(), [Arc::from("u")]);
    assert!(read.vertex("level_0").unwrap().vars.is_empty());
    let gone = Missing {
        graph: "amr".into(),
        vertex: "level_0".into(),
        var: "rho".into(),
        number: Some(1),
    };
    assert_eq!(missing, [gone]);
}

#[test]
fn what_cannot_be_stored_is_told_with_its_names() {
    let sentence = |change: &dyn Fn(&mut GraphSet)| {
        let mut set = two_levels();
        change(&mut set);
        set.check(|name| name != "rho").unwrap_err().to_string()
    };
    assert_eq!(sentence(&|_| ()), "vertex \"level_0\" has variable \"rho\", which is not defined");
    assert_eq!(
        sentence(&|set| {
            set.detach("level_0", "rho").unwrap();
            set.add_vertex("alone").unwrap();
        }),
        "vertex \"alone\" is in no graph: put it into one, or delete it"
    );
    assert_eq!(
        sentence(&|set| {
            set.detach("level_0", "rho").unwrap();
            set.add_graph("other").unwrap();
            set.put_in("other", "level_1").unwrap();
            set.take_out("amr", "level_1").unwrap();
        }),
        "edge \"refines\" joins vertices \"level_1\" and \"level_0\", but no graph has both"
    );
    let nan = GraphSet::default().add_edge("e", f64::NAN, true).unwrap_err();
    assert!(nan.to_string().contains("\"e\" cannot have the weight NaN"), "{nan}");
}

#[test]
fn graphs_of_a_file_that_contradict_each_other_are_an_error_with_both() {
    let mut one = two_levels();
    let bytes = one.encode("amr", |_| None).unwrap();
    let first = decode("amr", &bytes).unwrap();
    one.delete_edge("refines").unwrap();
    one.add_edge("refines", 4.0, true).unwrap();
    one.connect("level_1", "refines", "level_0").unwrap();
    let second = decode("b", &one.encode("amr", |_| None).unwrap()).unwrap();
    let error = join(&[("a".into(), first), ("b".into(), second)], &schema(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "edge \"refines\": graph \"a\" has directed, weight 2, graph \"b\" has directed, weight 4"
    );
}
