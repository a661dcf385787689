//! Graphs, meshes and AMR from the command line.

use std::path::Path;

use esker::graph::Of;
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};

use super::common::{good, run};

fn with_graph(path: &Path) {
    let mut def = Dataset::create(path, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    def.add_var("rho", ExternalType::Int, &[x]).unwrap();
    let set = def.graphs_mut().unwrap();
    set.add_graph("amr").unwrap();
    set.add_edge("refines", 2.0, true).unwrap();
    set.add_edge("beside", 0.5, false).unwrap();
    for level in ["coarse", "fine \"1\""] {
        set.add_vertex(level).unwrap();
        set.put_in("amr", level).unwrap();
    }
    set.connect("fine \"1\"", "refines", "coarse").unwrap();
    set.connect("fine \"1\"", "beside", "coarse").unwrap();
    set.attach("coarse", "rho").unwrap();
    set.put_attr(Of::Vertex("coarse"), "ratio", vec![2i32, 4]).unwrap();
    let mut ds = def.enddef().unwrap();
    let var = ds.var("rho").unwrap();
    ds.put(var, &Selection::all(), &[1, 2, 3]).unwrap();
    ds.close().unwrap();
}

#[test]
fn graphs_are_shown_to_people_and_programs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.nc");
    with_graph(&path);
    let file = path.to_str().unwrap();
    let text = good(&["graph", file]);
    assert_eq!(
        text,
        "amr\n  coarse: rho\n    beside → fine \"1\"\n  fine \"1\"\n    refines → coarse\n    beside → coarse\n"
    );
    let dot = good(&["graph", file, "--dot"]);
    let link = "\"fine \\\"1\\\"\" -> \"coarse\" [label=\"beside (0.5)\", dir=none];";
    assert!(dot.contains("\"coarse\" [shape=box, label=\"coarse\\nrho\"];"), "{dot}");
    assert!(dot.contains(link), "{dot}");
    let json: serde_json::Value = serde_json::from_str(&good(&["graph", file, "--json"])).unwrap();
    assert_eq!(
        json[0]["edges"][0],
        serde_json::json!({"name": "refines", "weight": 2, "directed": true})
    );
    assert_eq!(json[0]["vertices"][0]["attributes"]["ratio"], serde_json::json!([2, 4]));
    assert_eq!(json[0]["vertices"][1]["links"][1]["to"], "coarse");
    let svg = good(&["graph", file, "--svg"]);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains(">rho</text>"));
    let info = good(&["info", file]);
    assert!(info.contains("graphs\n"), "{info}");
    let info: serde_json::Value = serde_json::from_str(&good(&["info", "--json", file])).unwrap();
    let facts = serde_json::json!([
        {"name": "amr", "vertices": 2, "edges": 2, "links": 2, "variables": 1}
    ]);
    assert_eq!(info["graphs"], facts);
    let wrong = run(&["graph", file, "--graph", "other"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("there is no graph \"other\""), "{}", wrong.err);
}

#[test]
fn copies_keep_graphs_and_differences_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (first, second, third, log) = (at("a.nc"), at("b.nc"), at("c.nc"), at("c.esk"));
    with_graph(Path::new(&first));
    let shown = good(&["graph", &first, "--json"]);
    good(&["copy", "-k", "5", &first, &second]);
    good(&["copy", "--layout", "log", &first, &log]);
    good(&["dump", &first]);
    for copy in [&second, &log] {
        assert_eq!(good(&["graph", copy, "--json"]), shown);
    }
    assert_eq!(run(&["diff", "--ignore-attributes", "history", &first, &second]).code, Some(0));
    let cdl = at("a.cdl");
    std::fs::write(&cdl, good(&["dump", &first])).unwrap();
    good(&["gen", &cdl, "-o", &third]);
    assert_eq!(good(&["graph", &third, "--json"]), shown);
    assert_eq!(run(&["check", &first]).code, Some(0));
    let some = at("some.nc");
    good(&["copy", "-v", "amr", &first, &some]);
    let told = run(&["check", &some]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    let gone = "graph \"amr\", vertex \"coarse\": it has variable \"rho\", which is not there";
    assert!(told.out.contains(gone), "{}", told.out);
    assert!(good(&["info", &some]).contains("vertex coarse had variable rho"));
    let mut bytes = std::fs::read(&first).unwrap();
    let place = bytes.windows(6).rposition(|w| w == b"GRAPH\x03").unwrap();
    bytes[place + 60] ^= 1;
    let bad = at("bad.nc");
    std::fs::write(&bad, bytes).unwrap();
    let told = run(&["check", &bad]);
    assert_eq!(told.code, Some(1), "{}", told.out);
    assert!(told.out.contains("graph \"amr\", the head: the checksum is"), "{}", told.out);
    assert!(good(&["info", &bad]).contains("checksum"));
    let mut ds = Dataset::open_with(&second, esker::OpenOptions::new().writable(true))
        .unwrap()
        .redef()
        .unwrap();
    ds.graphs_mut().unwrap().detach("coarse", "rho").unwrap();
    ds.enddef().unwrap().close().unwrap();
    let told = run(&["diff", "--ignore-attributes", "history", &first, &second]);
    assert_eq!(told.code, Some(1));
    // What changed is said, and nothing of the bytes or of the room that the old graph has left.
    assert_eq!(
        told.out.lines().filter(|line| !line.contains("note")).collect::<Vec<_>>(),
        ["graph \"vertex coarse\": variables rho and variables none"],
        "{}",
        told.out
    );
    assert!(good(&["dump", "-h", &second]).contains("amr.spare"));
    let slim = at("slim.nc");
    good(&["copy", &second, &slim]);
    assert!(!good(&["dump", "-h", &slim]).contains("spare"));
    assert_eq!(good(&["graph", &slim, "--json"]), good(&["graph", &second, "--json"]));
    assert_eq!(run(&["diff", "--ignore-attributes", "history", &second, &slim]).code, Some(0));
}

#[test]
fn graphs_that_say_the_same_are_no_difference_whatever_their_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (first, second) = (at("a.nc"), at("b.nc"));
    with_graph(Path::new(&first));
    let mut def = Dataset::create(Path::new(&second), CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    let set = def.graphs_mut().unwrap();
    // In another order, with the link without direction from its other end, and changed and changed back.
    set.add_graph("amr").unwrap();
    set.add_edge("beside", 0.5, false).unwrap();
    set.add_edge("refines", 2.0, true).unwrap();
    for level in ["fine \"1\"", "coarse"] {
        set.add_vertex(level).unwrap();
        set.put_in("amr", level).unwrap();
    }
    set.connect("coarse", "beside", "fine \"1\"").unwrap();
    set.connect("fine \"1\"", "refines", "coarse").unwrap();
    set.put_attr(Of::Vertex("coarse"), "ratio", vec![2i32, 4]).unwrap();
    let def = def.enddef().unwrap().redef();
    let mut def = def.unwrap();
    let rho = def.add_var("rho", ExternalType::Int, &[x]).unwrap();
    def.graphs_mut().unwrap().attach("coarse", "rho").unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(rho, &Selection::all(), &[1, 2, 3]).unwrap();
    ds.close().unwrap();
    let told = run(&["diff", &first, &second]);
    assert_eq!(told.code, Some(0), "{}", told.out);
    // Chosen by name, the variable is its bytes.
    assert_eq!(run(&["diff", "-v", "amr", &first, &second]).code, Some(1));
    for (change, line) in [
        ("edge", "graph \"edge refines\": directed, weight 2 and directed, weight 3"),
        (
            "link",
            "graph \"link coarse – fine \"1\" by beside\": it is there in the first file only",
        ),
        ("attribute", "graph \"vertex coarse, attribute ratio\": int 2, 4 and int 2, 5"),
    ] {
        let third = at("c.nc");
        std::fs::copy(&first, &third).unwrap();
        let options = esker::OpenOptions::new().writable(true);
        let mut def = Dataset::open_with(&third, options).unwrap().redef().unwrap();
        let set = def.graphs_mut().unwrap();
        match change {
            "edge" => {
                set.delete_edge("refines").unwrap();
                set.add_edge("refines", 3.0, true).unwrap();
                set.connect("fine \"1\"", "refines", "coarse").unwrap();
            }
            "link" => set.disconnect("coarse", "beside", "fine \"1\"").unwrap(),
            _ => set.put_attr(Of::Vertex("coarse"), "ratio", vec![2i32, 5]).unwrap(),
        }
        def.enddef().unwrap().close().unwrap();
        let told = run(&["diff", &first, &third]);
        assert_eq!(told.code, Some(1), "{change}");
        assert!(told.out.contains(line), "{change}: {}", told.out);
    }
}

#[test]
fn meshes_are_converted_and_shown() {
    let Some(data) = super::common::shared_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let mpas = data.join("mesh/mpas_QU_mesh.QU.1920km.151026.nc");
    let (input, output) = (mpas.to_str().unwrap(), at("u.nc"));
    let text = good(&["mesh", "convert", input, &output]);
    assert!(text.ends_with("u.nc: 320 nodes, 480 edges, 162 faces, from MPAS\n"), "{text}");
    let again = run(&["mesh", "convert", input, &output]);
    assert_eq!(again.code, Some(2), "{}", again.err);
    good(&["mesh", "convert", "-O", "-k", "1", input, &output]);
    let info: serde_json::Value =
        serde_json::from_str(&good(&["mesh", "info", "--json", &output])).unwrap();
    assert_eq!(info["meshes"][0]["tables"].as_array().unwrap().len(), 5);
    assert!(good(&["mesh", "info", &output]).contains("areaCell on faces"));
    assert!(good(&["mesh", "info", input]).contains("convention of MPAS"));
}

#[test]
fn ranks_of_mpi_make_the_same_files_as_one_process() {
    let Some(data) = super::common::shared_data() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let mesh = data.join("mesh/exodus_mixed_mixed.exo");
    let mesh = mesh.to_str().unwrap();
    let (one, many) = (at("one.nc"), at("many.nc"));
    good(&["mesh", "convert", mesh, &one]);
    for mpi in super::common::Mpi::here() {
        let run = mpi.run(3, &["mesh", "convert", "-O", mesh, &many]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        assert_eq!(run.out.matches("from Exodus").count(), 1, "{}: {}", mpi.name, run.out);
        let bytes = |path: &str| std::fs::read(path).unwrap();
        assert!(bytes(&one) == bytes(&many), "{}", mpi.name);
        let run = mpi.run(3, &["mesh", "convert", mesh, &many]);
        assert_eq!(run.code, Some(2), "{}: {}", mpi.name, run.err);
        assert_eq!(run.err.matches("esker: ").count(), 1, "{}: {}", mpi.name, run.err);
    }
}

#[test]
fn plotfiles_go_in_and_out_and_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let plot = dir.path().join("plt");
    std::fs::create_dir_all(plot.join("Level_0")).unwrap();
    // Two dimensions, one level, two boxes of 2 x 2 cells, one component.
    let header = "HyperCLaw-V1.1\n1\nrho\n2\n0.5\n0\n0.0 0.0\n4.0 2.0\n\n((0,0) (3,1) (0,0))\n3\n1.0 1.0\n0\n0\n\
                  0 2 0.5\n3\n0 2\n0 2\n2 4\n0 2\nLevel_0/Cell\n";
    std::fs::write(plot.join("Header"), header).unwrap();
    let fab = |x: i64| {
        let line = format!(
            "FAB ((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))(({x},0) ({},1) (0,0)) 1\n",
            x + 1
        );
        let values = [0, 1, 10, 11].map(|v| f64::from(v) + x as f64);
        [line.into_bytes(), values.iter().flat_map(|v| v.to_le_bytes()).collect()].concat()
    };
    let first = fab(0);
    let head = format!(
        "1\n1\n1\n0\n(2 0\n((0,0) (1,1) (0,0))\n((2,0) (3,1) (0,0))\n)\n2\n\
         FabOnDisk: Cell_D_00000 0\nFabOnDisk: Cell_D_00000 {}\n",
        first.len()
    );
    std::fs::write(plot.join("Level_0/Cell_H"), head).unwrap();
    std::fs::write(plot.join("Level_0/Cell_D_00000"), [first, fab(2)].concat()).unwrap();
    let (file, back, cut) = (at("plt.nc"), at("back"), at("slice.nc"));
    assert!(
        good(&["amr", "convert", plot.to_str().unwrap(), &file]).ends_with("1 level, 2 boxes\n")
    );
    good(&["amr", "convert", &file, &back]);
    for name in [plot.to_str().unwrap(), &file, &back] {
        let info: serde_json::Value =
            serde_json::from_str(&good(&["amr", "info", "--json", name])).unwrap();
        assert_eq!(info["levels"][0]["cells"], 8, "{name}");
        assert_eq!(info["components"][0], "rho");
    }
    good(&["amr", "slice", &file, "rho", &cut]);
    let ds = Dataset::open(&cut).unwrap();
    let values: Vec<f64> = ds.get(ds.var("rho").unwrap(), &Selection::all()).unwrap();
    assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
    let x: Vec<f64> = ds.get(ds.var("x").unwrap(), &Selection::all()).unwrap();
    assert_eq!(x, [0.5, 1.5, 2.5, 3.5]);
    let wrong = run(&["amr", "slice", &file, "u", &at("no.nc")]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("there is no component \"u\": rho"), "{}", wrong.err);
}
