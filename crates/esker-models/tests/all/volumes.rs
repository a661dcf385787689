//! Meshes of bodies: Exodus becomes UGRID, parts of volumes are the whole, and neighbours share a face.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Owner, Selection, Version, launch,
};
use esker_models::mesh::{Convention, Cut, Location, Part, convert, topologies};

/// Cells of a box, of which the last column is cut into wedges.
const SIZE: [u64; 3] = [4, 3, 2];

fn node(at: [u64; 3]) -> i64 {
    let [nx, ny, _] = SIZE.map(|n| n + 1);
    (at[0] + nx * (at[1] + ny * at[2])) as i64 + 1
}

/// The nodes of everything, from 1 on: hexahedra, then wedges.
fn elements() -> [Vec<Vec<i64>>; 2] {
    let (mut hexes, mut wedges) = (Vec::new(), Vec::new());
    for z in 0..SIZE[2] {
        for y in 0..SIZE[1] {
            for x in 0..SIZE[0] {
                let layer =
                    |z: u64| [[x, y, z], [x + 1, y, z], [x + 1, y + 1, z], [x, y + 1, z]].map(node);
                let (low, high) = (layer(z), layer(z + 1));
                match x + 1 == SIZE[0] {
                    false => hexes.push([low, high].concat()),
                    true => {
                        for three in [[0, 1, 2], [0, 2, 3]] {
                            let side = |of: [i64; 4]| three.map(|at| of[at]);
                            wedges.push([side(low), side(high)].concat());
                        }
                    }
                }
            }
        }
    }
    [hexes, wedges]
}

/// The box as an Exodus file, with a field on its nodes.
fn exodus(path: &Path, together: bool) {
    let mut def = Dataset::create(path, CreateOptions::new().version(Version::Cdf2)).unwrap();
    let nodes: u64 = SIZE.iter().map(|n| n + 1).product();
    let num_nodes = def.add_dim("num_nodes", DimLen::Fixed(nodes)).unwrap();
    let axes = def.add_dim("num_dim", DimLen::Fixed(3)).unwrap();
    let coord = match together {
        true => vec![def.add_var("coord", ExternalType::Double, &[axes, num_nodes]).unwrap()],
        false => ["coordx", "coordy", "coordz"]
            .map(|name| def.add_var(name, ExternalType::Double, &[num_nodes]).unwrap())
            .into(),
    };
    let blocks = elements();
    let mut connect = Vec::new();
    for (number, (rows, kind)) in blocks.iter().zip(["HEX8", "wedge"]).enumerate() {
        let dims = [("el_in_blk", rows.len()), ("nod_per_el", rows[0].len())];
        let dims = dims.map(|(name, len)| {
            let name = format!("num_{name}{}", number + 1);
            def.add_dim(&name, DimLen::Fixed(len as u64)).unwrap()
        });
        let name = format!("connect{}", number + 1);
        let var = def.add_var(&name, ExternalType::Int, &dims).unwrap();
        def.put_attr(var, "elem_type", kind).unwrap();
        connect.push(var);
    }
    let field = def.add_var("temperature", ExternalType::Float, &[num_nodes]).unwrap();
    let mut ds = def.enddef().unwrap();
    let mut xyz = [Vec::new(), Vec::new(), Vec::new()];
    for z in 0..=SIZE[2] {
        for y in 0..=SIZE[1] {
            for x in 0..=SIZE[0] {
                for (axis, at) in xyz.iter_mut().zip([x, y, z]) {
                    axis.push(at as f64 * 0.5);
                }
            }
        }
    }
    match together {
        true => ds.put(coord[0], &Selection::all(), &xyz.concat()).unwrap(),
        false => {
            for (var, values) in coord.iter().zip(&xyz) {
                ds.put(*var, &Selection::all(), values).unwrap();
            }
        }
    }
    for (var, rows) in connect.iter().zip(&blocks) {
        ds.put(*var, &Selection::all(), &rows.concat()).unwrap();
    }
    let values: Vec<f32> = (0..nodes).map(|n| n as f32 * 2.0).collect();
    ds.put(field, &Selection::all(), &values).unwrap();
    ds.close().unwrap();
}

/// Volumes with at least three nodes in common, by comparing all.
fn neighbours() -> Vec<BTreeSet<u64>> {
    let rows: Vec<BTreeSet<i64>> =
        elements().concat().into_iter().map(|row| row.into_iter().collect()).collect();
    let beside = |at: usize| {
        let others = rows.iter().enumerate().filter(|(other, _)| *other != at);
        let near = others.filter(|(_, row)| rows[at].intersection(row).count() >= 3);
        near.map(|(other, _)| other as u64).collect()
    };
    (0..rows.len()).map(beside).collect()
}

#[test]
fn exodus_bodies_become_volumes_on_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("box.exo");
    let mut first: Option<Vec<u8>> = None;
    for together in [false, true] {
        exodus(&input, together);
        for ranks in [1, 2, 5] {
            let output = dir.path().join("ugrid.nc");
            let done =
                launch(ranks, |comm| convert(comm, &input, &output, CreateOptions::new()).unwrap());
            let [hexes, wedges] = elements();
            assert_eq!(done[0].convention, Convention::Exodus);
            assert_eq!(done[0].counts, [60, 0, 0]);
            assert_eq!(done[0].volumes, (hexes.len() + wedges.len()) as u64);
            let bytes = std::fs::read(&output).unwrap();
            assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{ranks} ranks");
            let ds = Dataset::open(&output).unwrap();
            let mesh = topologies(&ds).unwrap().remove(0);
            assert_eq!((mesh.name.as_str(), mesh.dimension), ("mesh3d", 3));
            assert_eq!(mesh.count(Location::Volume), done[0].volumes);
            assert_eq!(mesh.coordinates[0].len(), 3);
            // Node numbers from 0 on, rows that are shorter end with the fill value.
            let stored: Vec<i64> =
                ds.get(ds.var("mesh3d_volume_nodes").unwrap(), &Selection::all()).unwrap();
            let rows: Vec<Vec<i64>> = stored
                .chunks(8)
                .map(|row| row.iter().filter(|n| **n >= 0).map(|n| n + 1).collect())
                .collect();
            assert_eq!(rows, [hexes.clone(), wedges.clone()].concat());
            let shapes = mesh.shapes.as_ref().unwrap();
            let numbers: Vec<i64> = ds.get(shapes.var, &Selection::all()).unwrap();
            let word =
                |number: &i64| &*shapes.meanings.iter().find(|(n, _)| n == number).unwrap().1;
            let words: Vec<&str> = numbers.iter().map(word).collect();
            assert_eq!(words[..hexes.len()], vec!["hexahedron"; hexes.len()]);
            assert_eq!(words[hexes.len()..], vec!["wedge"; wedges.len()]);
            let z: Vec<f64> = ds.get(ds.var("mesh3d_node_z").unwrap(), &Selection::all()).unwrap();
            assert_eq!(z[0], 0.0);
            assert_eq!(z[59], SIZE[2] as f64 * 0.5);
            let field = ds.var("temperature").unwrap();
            let attr = |name| ds.schema().attr(Owner::Var(field), name).unwrap().text().unwrap();
            assert_eq!(attr("location"), "node");
            assert_eq!(attr("coordinates"), "mesh3d_node_x mesh3d_node_y mesh3d_node_z");
            let values: Vec<f32> = ds.get(field, &Selection::all()).unwrap();
            assert_eq!(values[7], 14.0);
        }
    }
}

#[test]
fn parts_of_volumes_reassemble_and_their_halos_share_a_face() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("box.exo"), dir.path().join("ugrid.nc"));
    exodus(&input, false);
    launch(1, |comm| convert(comm, &input, &output, CreateOptions::new()).unwrap());
    // A field on volumes.
    let open = OpenOptions::new().writable(true);
    let mut def = Dataset::open_with(&output, open).unwrap().redef().unwrap();
    let dim = def.schema().dim("mesh3d_nVolumes").unwrap();
    let var = def.add_var("density", ExternalType::Double, &[dim]).unwrap();
    def.put_attr(var, "mesh", "mesh3d").unwrap();
    def.put_attr(var, "location", "volume").unwrap();
    let mut ds = def.enddef().unwrap();
    let beside = neighbours();
    let values: Vec<f64> = (0..beside.len()).map(|v| v as f64 + 0.25).collect();
    ds.put(var, &Selection::all(), &values).unwrap();
    ds.close().unwrap();
    for (cut, ranks) in
        [Cut::Range, Cut::Hilbert].iter().flat_map(|cut| [1, 2, 4, 7].map(|ranks| (cut, ranks)))
    {
        let parts = launch(ranks, |comm| {
            let options = OpenOptions::new().comm(comm.clone()).writable(true);
            let mut ds = Dataset::open_with(&output, options).unwrap();
            let mesh = topologies(&ds).unwrap().remove(0);
            let fields = mesh.fields(ds.schema());
            assert!(fields.iter().any(|(_, location)| *location == Location::Volume));
            let part = Part::new(&mut ds, &mesh, Location::Volume, cut, 1, None).unwrap();
            let var = ds.var("density").unwrap();
            let values: Vec<f64> = part.read(&mut ds, var, 0, &[]).unwrap();
            let expected: Vec<f64> = part.globals().iter().map(|v| *v as f64 + 0.25).collect();
            assert_eq!(values, expected);
            part.write(&mut ds, var, 0, &[], &values).unwrap();
            // Nodes of volumes have one owner each.
            let of_nodes = mesh.relation(&mut ds, Location::Volume, Location::Node).unwrap();
            let nodes = part.of_neighbours(&*comm, &of_nodes, Location::Node).unwrap();
            let owned = comm.all_gather_u64(&[nodes.own.len() as u64]).unwrap();
            assert_eq!(owned.iter().sum::<u64>(), 60);
            ds.close().unwrap();
            part
        });
        let mut owner: BTreeMap<u64, usize> = BTreeMap::new();
        for (rank, part) in parts.iter().enumerate() {
            for volume in &part.own {
                assert_eq!(owner.insert(*volume, rank), None, "{cut:?}: owned twice");
            }
            let own: BTreeSet<u64> = part.own.iter().copied().collect();
            let near: BTreeSet<u64> =
                own.iter().flat_map(|v| beside[*v as usize].clone()).collect();
            let halo: BTreeSet<u64> = near.difference(&own).copied().collect();
            assert_eq!(part.halo.iter().copied().collect::<BTreeSet<_>>(), halo, "{cut:?}");
        }
        assert_eq!(owner.len(), beside.len(), "{cut:?} on {ranks}");
    }
    let ds = Dataset::open(&output).unwrap();
    assert_eq!(ds.get::<f64>(ds.var("density").unwrap(), &Selection::all()).unwrap(), values);
}

#[test]
fn bodies_that_cannot_be_are_told_with_their_block() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("box.exo"), dir.path().join("ugrid.nc"));
    type Change = fn(&mut esker::Define);
    let cases: [(Change, &str); 3] = [
        (
            |def| {
                let var = def.schema().var("connect2").unwrap();
                def.put_attr(var, "elem_type", "TETRA").unwrap();
            },
            "variable \"connect2\": elements of type \"TETRA\" have 6 nodes; a tetrahedron has 4",
        ),
        (
            |def| {
                let var = def.schema().var("connect2").unwrap();
                def.put_attr(var, "elem_type", "SHELL").unwrap();
            },
            "variable \"connect2\": elements of type \"SHELL\" beside those of \"connect1\"",
        ),
        (
            |def| {
                let var = def.schema().var("connect1").unwrap();
                def.put_attr(var, "elem_type", "SPHERE").unwrap();
            },
            "variable \"connect1\": elements of type \"SPHERE\" are neither areas nor bodies",
        ),
    ];
    for (change, says) in cases {
        exodus(&input, false);
        let open = OpenOptions::new().writable(true);
        let mut def = Dataset::open_with(&input, open).unwrap().redef().unwrap();
        change(&mut def);
        def.enddef().unwrap().close().unwrap();
        for ranks in [1, 3] {
            let errors = launch(ranks, |comm| {
                convert(comm, &input, &output, CreateOptions::new()).unwrap_err().to_string()
            });
            assert!(errors.iter().all(|error| error.contains(says)), "{errors:?}");
        }
    }
    assert!(!output.exists());
}
