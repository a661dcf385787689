//! Meshes: what is converted is what the original says, parts are the whole, fields come and go through them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, MemoryType, OpenOptions, Selection, launch,
};
use esker_models::mesh::{Convention, Cut, FieldSlab, Location, Part, convert, topologies};
use esker_testkit::{data, programs, python};

/// Real meshes as classic files, with their names; those in netCDF-4 go through nccopy.
fn originals(dir: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for path in data::files("mesh") {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let is_classic = std::fs::read(&path).unwrap().starts_with(b"CDF");
        let classic = dir.join(&name);
        match is_classic {
            true => drop(std::fs::copy(&path, &classic).unwrap()),
            false if programs::have("nccopy") => {
                programs::good(
                    Command::new("nccopy").args(["-k", "cdf5"]).arg(&path).arg(&classic),
                );
            }
            false => continue,
        }
        found.push((name, classic));
    }
    found
}

fn converted(input: &Path, output: &Path, ranks: usize) -> Convention {
    let outcomes = launch(ranks, |comm| {
        convert(comm, input, output, CreateOptions::new()).unwrap().convention
    });
    outcomes[0]
}

/// A small mesh: n x n squares, one of them cut into two triangles.
fn squares(path: &Path, n: u64, start: i32) {
    let mut def = Dataset::create(path, CreateOptions::new()).unwrap();
    let nodes = def.add_dim("nNodes", DimLen::Fixed((n + 1) * (n + 1))).unwrap();
    let faces = def.add_dim("nFaces", DimLen::Fixed(n * n + 1)).unwrap();
    let width = def.add_dim("nMax", DimLen::Fixed(4)).unwrap();
    let levels = def.add_dim("levels", DimLen::Fixed(2)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let mesh = def.add_var("mesh", ExternalType::Int, &[]).unwrap();
    for (name, text) in [
        ("cf_role", "mesh_topology"),
        ("node_coordinates", "x y"),
        ("face_node_connectivity", "faces"),
    ] {
        def.put_attr(mesh, name, text).unwrap();
    }
    def.put_attr(mesh, "topology_dimension", 2i32).unwrap();
    let x = def.add_var("x", ExternalType::Double, &[nodes]).unwrap();
    let y = def.add_var("y", ExternalType::Double, &[nodes]).unwrap();
    let table = def.add_var("faces", ExternalType::Int, &[faces, width]).unwrap();
    def.put_attr(table, "start_index", start).unwrap();
    def.put_attr(table, "_FillValue", -9i32).unwrap();
    let t = def.add_var("t", ExternalType::Double, &[time, faces, levels]).unwrap();
    let h = def.add_var("h", ExternalType::Float, &[nodes]).unwrap();
    let label = def.add_var("label", ExternalType::Int, &[faces]).unwrap();
    for (var, location) in [(t, "face"), (h, "node"), (label, "face")] {
        def.put_attr(var, "mesh", "mesh").unwrap();
        def.put_attr(var, "location", location).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    let side = n + 1;
    let all = &Selection::all();
    let points = || (0..side * side).map(|node| ((node % side) as f64, (node / side) as f64));
    ds.put(x, all, &points().map(|p| p.0).collect::<Vec<_>>()).unwrap();
    ds.put(y, all, &points().map(|p| p.1).collect::<Vec<_>>()).unwrap();
    let mut rows: Vec<i32> = Vec::new();
    for face in 0..n * n {
        let a = (face / n * side + face % n) as i32 + start;
        let s = side as i32;
        match face {
            0 => rows.extend([a, a + 1, a + s + 1, -9, a, a + s + 1, a + s, -9]),
            _ => rows.extend([a, a + 1, a + s + 1, a + s]),
        }
    }
    ds.put(table, all, &rows).unwrap();
    let count = (n * n + 1) as usize;
    for record in 0..3u64 {
        let values: Vec<f64> = (0..2 * count).map(|v| v as f64 + 1000.0 * record as f64).collect();
        let whole = Selection::slab(&[record, 0, 0], &[1, count as u64, 2]);
        ds.put(t, &whole, &values).unwrap();
    }
    let labels: Vec<i32> = (0..count as i32).map(|face| face * 7 % 5).collect();
    ds.put(label, all, &labels).unwrap();
    ds.close().unwrap();
}

/// Faces that share two nodes, by looking at all pairs.
fn neighbours(rows: &[Vec<u64>]) -> Vec<BTreeSet<u64>> {
    let shared = |a: &[u64], b: &[u64]| a.iter().filter(|n| b.contains(n)).count();
    let of = |a: usize| {
        let others = (0..rows.len()).filter(|b| a != *b && shared(&rows[a], &rows[*b]) >= 2);
        others.map(|b| b as u64).collect()
    };
    (0..rows.len()).map(of).collect()
}

#[test]
fn parts_reassemble_and_their_halos_are_the_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.nc");
    let labels = dir.path().join("labels");
    for start in [0, 1] {
        squares(&path, 6, start);
        let ds = Dataset::open(&path).unwrap();
        let stored: Vec<i64> = ds.get(ds.var("faces").unwrap(), &Selection::all()).unwrap();
        let rows: Vec<Vec<u64>> = stored
            .chunks(4)
            .map(|r| {
                r.iter().filter(|n| **n >= 0).map(|n| (*n - i64::from(start)) as u64).collect()
            })
            .collect();
        let beside = neighbours(&rows);
        let count = rows.len() as u64;
        let text: String = (0..count).map(|f| format!("{}\n", f / 5)).collect();
        std::fs::write(&labels, text).unwrap();
        let cuts =
            [Cut::Range, Cut::Hilbert, Cut::Labels("label".to_string()), Cut::File(labels.clone())];
        for (cut, ranks, layers) in cuts
            .iter()
            .flat_map(|c| [1, 2, 5, 50].map(|r| (c, r)))
            .flat_map(|(c, r)| [0, 1, 2].map(|l| (c, r, l)))
        {
            let parts = launch(ranks, |comm| {
                let options = OpenOptions::new().comm(comm.clone());
                let mut ds = Dataset::open_with(&path, options).unwrap();
                let mesh = topologies(&ds).unwrap().remove(0);
                let part = Part::new(&mut ds, &mesh, Location::Face, cut, layers, None).unwrap();
                let face_node = mesh.relation(&mut ds, Location::Face, Location::Node).unwrap();
                let table = part.table(&*comm, &face_node, None).unwrap();
                for (at, face) in part.globals().iter().enumerate() {
                    let nodes = table.row(at).iter().map(|n| table.globals[*n]);
                    assert_eq!(nodes.collect::<Vec<_>>(), rows[*face as usize]);
                }
                // A field of two levels at record 1: own, then halo.
                let var = ds.var("t").unwrap();
                let values: Vec<f64> = part.read(&mut ds, var, 1, &[1]).unwrap();
                let expected: Vec<f64> = part
                    .globals()
                    .iter()
                    .flat_map(|f| [1000.0 + 2.0 * *f as f64, 1001.0 + 2.0 * *f as f64])
                    .collect();
                assert_eq!(values, expected);
                // The owners' values reach the halo.
                let mut own = vec![-1.0; part.len()];
                own.iter_mut().zip(&part.own).for_each(|(v, f)| *v = *f as f64);
                part.update_halo(&*comm, &mut own, 1).unwrap();
                assert_eq!(own, part.globals().iter().map(|f| *f as f64).collect::<Vec<_>>());
                part
            });
            let mut owner: BTreeMap<u64, usize> = BTreeMap::new();
            for (rank, part) in parts.iter().enumerate() {
                for face in &part.own {
                    assert_eq!(owner.insert(*face, rank), None, "{cut:?}: owned twice");
                }
            }
            assert_eq!(owner.len() as u64, count, "{cut:?} on {ranks}");
            for part in &parts {
                let own: BTreeSet<u64> = part.own.iter().copied().collect();
                let mut seen = own.clone();
                for _ in 0..layers {
                    let more: BTreeSet<u64> =
                        seen.iter().flat_map(|f| beside[*f as usize].clone()).collect();
                    seen.extend(more);
                }
                let halo: BTreeSet<u64> = seen.difference(&own).copied().collect();
                assert_eq!(part.halo.iter().copied().collect::<BTreeSet<_>>(), halo);
                let owners: Vec<usize> = part.halo.iter().map(|f| owner[f]).collect();
                assert_eq!(part.halo_owner, owners);
            }
            if *cut == Cut::Hilbert {
                let sizes: Vec<usize> = parts.iter().map(|p| p.own.len()).collect();
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                assert!(most - least <= 2, "{sizes:?}");
            }
        }
    }
}

#[test]
fn fields_are_written_through_parts_and_shared_nodes_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.nc");
    for ranks in [1, 3, 7] {
        squares(&path, 5, 1);
        launch(ranks, |comm| {
            let options = OpenOptions::new().comm(comm.clone()).writable(true);
            let mut ds = Dataset::open_with(&path, options).unwrap();
            let mesh = topologies(&ds).unwrap().remove(0);
            let part = Part::new(&mut ds, &mesh, Location::Face, &Cut::Hilbert, 1, None).unwrap();
            let t = ds.var("t").unwrap();
            let values: Vec<f64> =
                part.globals().iter().flat_map(|f| [-(*f as f64), *f as f64]).collect();
            part.write(&mut ds, t, 1, &[3], &values).unwrap();
            let face_node = mesh.relation(&mut ds, Location::Face, Location::Node).unwrap();
            let nodes = part.of_neighbours(&*comm, &face_node, Location::Node).unwrap();
            let h = ds.var("h").unwrap();
            let heights: Vec<f32> = nodes.own.iter().map(|n| *n as f32 * 0.5).collect();
            nodes.write(&mut ds, h, 0, &[], &heights).unwrap();
            let all = comm.all_gather_u64(&[nodes.own.len() as u64]).unwrap();
            assert_eq!(all.iter().sum::<u64>(), 36, "every node has one writer");
            ds.close().unwrap();
        });
        let ds = Dataset::open(&path).unwrap();
        let t: Vec<f64> =
            ds.get(ds.var("t").unwrap(), &Selection::slab(&[3, 0, 0], &[1, 26, 2])).unwrap();
        assert_eq!(t, (0..26).flat_map(|f| [-f64::from(f), f64::from(f)]).collect::<Vec<_>>());
        let h: Vec<f32> = ds.get(ds.var("h").unwrap(), &Selection::all()).unwrap();
        assert_eq!(h, (0..36).map(|n| n as f32 * 0.5).collect::<Vec<_>>());
    }
}

#[test]
fn ranges_of_a_fields_other_dimensions_are_read_and_written_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.nc");
    for ranks in [1, 3] {
        squares(&path, 5, 0);
        launch(ranks, |comm| {
            let options = OpenOptions::new().comm(comm.clone()).writable(true);
            let mut ds = Dataset::open_with(&path, options).unwrap();
            let mesh = topologies(&ds).unwrap().remove(0);
            let part = Part::new(&mut ds, &mesh, Location::Face, &Cut::Hilbert, 1, None).unwrap();
            let var = ds.var("t").unwrap();
            let floats = |bytes: &[u8]| -> Vec<f64> {
                bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
            };
            for (records, levels) in [(0..3, 0..2), (1..3, 1..2), (2..2, 0..2), (1..2, 0..2)] {
                let ranges = vec![records.clone(), 0..0, levels.clone()];
                let slab = FieldSlab { var, place: 1, ranges };
                let read = part.read_bytes(&mut ds, &slab, MemoryType::F64).unwrap();
                let mut expected = Vec::new();
                for record in records {
                    for face in part.globals() {
                        let value = |level| 1000.0 * record as f64 + (2 * face + level) as f64;
                        expected.extend(levels.clone().map(value));
                    }
                }
                assert_eq!(floats(&read), expected);
            }
            // Two records of one level, with values of the halo that nobody may see in the file.
            let slab = FieldSlab { var, place: 1, ranges: vec![1..3, 0..0, 1..2] };
            let value = |record: u64, at: usize| match part.own.get(at) {
                Some(face) => -((100 * record + face) as f64),
                None => f64::NAN,
            };
            let values = (1..3).flat_map(|r| (0..part.len()).map(move |at| value(r, at)));
            let bytes: Vec<u8> = values.flat_map(f64::to_ne_bytes).collect();
            part.write_bytes(&mut ds, &slab, (&bytes, MemoryType::F64)).unwrap();
            let wrong = FieldSlab { var, place: 1, ranges: vec![1..3, 0..0] };
            let told = part.read_bytes(&mut ds, &wrong, MemoryType::F64).unwrap_err().to_string();
            assert!(told.contains("\"t\": its shape is [3, 26, 2]"), "{told}");
            let endless = FieldSlab { var, place: 1, ranges: vec![0..u64::MAX, 0..0, 0..2] };
            let told = part.read_bytes(&mut ds, &endless, MemoryType::F64).unwrap_err().to_string();
            assert!(told.contains("no memory"), "{told}");
            ds.close().unwrap();
        });
        let ds = Dataset::open(&path).unwrap();
        let t: Vec<f64> = ds.get(ds.var("t").unwrap(), &Selection::all()).unwrap();
        for (at, value) in t.iter().enumerate() {
            let (record, face, level) = (at / 52, at / 2 % 26, at % 2);
            let expected = match (record, level) {
                (1.., 1) => -((100 * record + face) as f64),
                _ => 1000.0 * record as f64 + (2 * face + level) as f64,
            };
            assert_eq!(*value, expected, "record {record}, face {face}, level {level}");
        }
    }
}

#[test]
fn rows_of_neighbours_are_in_the_numbers_of_the_part_that_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.nc");
    squares(&path, 5, 1);
    launch(3, |comm| {
        let mut ds = Dataset::open_with(&path, OpenOptions::new().comm(comm.clone())).unwrap();
        let mesh = topologies(&ds).unwrap().remove(0);
        let part = Part::new(&mut ds, &mesh, Location::Face, &Cut::Hilbert, 1, None).unwrap();
        let beside = mesh.relation(&mut ds, Location::Face, Location::Face).unwrap();
        let nodes = mesh.relation(&mut ds, Location::Face, Location::Node).unwrap();
        let of_nodes = part.of_neighbours(&*comm, &nodes, Location::Node).unwrap();
        for (relation, numbered) in [(&beside, &part), (&nodes, &of_nodes)] {
            let table = part.table(&*comm, relation, Some(numbered)).unwrap();
            assert_eq!(table.globals[..numbered.len()], numbered.globals());
            let rows = relation.fetch(&*comm, &part.globals()).unwrap();
            for at in 0..part.len() {
                let named: Vec<u64> = table.row(at).iter().map(|n| table.globals[*n]).collect();
                assert_eq!(named, rows.row(at));
                // What the part has is called by its number there, also neighbours of its own elements.
                if at < part.own.len() {
                    assert!(table.row(at).iter().all(|n| *n < numbered.len()));
                }
            }
        }
        let told = part.table(&*comm, &beside, Some(&of_nodes)).unwrap_err().to_string();
        assert!(told.contains("numbers of 36"), "{told}");
    });
}

#[test]
fn a_conversion_is_the_same_file_on_any_number_of_ranks() {
    let dir = tempfile::tempdir().unwrap();
    for (name, path) in originals(dir.path()) {
        if name.starts_with("ugrid") {
            continue;
        }
        let one = dir.path().join("one.nc");
        converted(&path, &one, 1);
        programs::require_valid(&one, &name);
        for ranks in [2, 5] {
            let many = dir.path().join("many.nc");
            converted(&path, &many, ranks);
            assert!(
                std::fs::read(&one).unwrap() == std::fs::read(&many).unwrap(),
                "{name} {ranks}"
            );
        }
    }
}

#[test]
fn an_mpas_mesh_becomes_what_its_own_tables_say() {
    let dir = tempfile::tempdir().unwrap();
    let mpas = originals(dir.path()).into_iter().find(|(name, _)| name.starts_with("mpas"));
    let Some((_, path)) = mpas else { return };
    let out = dir.path().join("u.nc");
    assert_eq!(converted(&path, &out, 3), Convention::Mpas);
    let (old, new) = (Dataset::open(&path).unwrap(), Dataset::open(&out).unwrap());
    let whole = &Selection::all();
    let ints =
        |ds: &Dataset, name: &str| -> Vec<i64> { ds.get(ds.var(name).unwrap(), whole).unwrap() };
    let reals =
        |ds: &Dataset, name: &str| -> Vec<f64> { ds.get(ds.var(name).unwrap(), whole).unwrap() };
    let counts = ints(&old, "nEdgesOnCell");
    let vertices = ints(&old, "verticesOnCell");
    let faces = ints(&new, "mesh2d_face_nodes");
    for (cell, count) in counts.iter().enumerate() {
        for place in 0..6 {
            let expected =
                if place < *count as usize { vertices[6 * cell + place] - 1 } else { -1 };
            assert_eq!(faces[6 * cell + place], expected, "cell {cell}, place {place}");
        }
    }
    let minus_1 = |list: Vec<i64>| list.into_iter().map(|n| n - 1).collect::<Vec<_>>();
    assert_eq!(ints(&new, "mesh2d_edge_nodes"), minus_1(ints(&old, "verticesOnEdge")));
    assert_eq!(ints(&new, "mesh2d_edge_faces"), minus_1(ints(&old, "cellsOnEdge")));
    let lon = reals(&old, "lonVertex").into_iter().map(f64::to_degrees);
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12 || (a - b).abs() > 360.0 - 1e-12;
    assert!(
        reals(&new, "mesh2d_node_x")
            .into_iter()
            .zip(lon)
            .all(|(a, b)| close(a, b - if b > 180.0 { 360.0 } else { 0.0 }))
    );
    assert_eq!(reals(&new, "areaCell"), reals(&old, "areaCell"));
    let mesh = topologies(&new).unwrap().remove(0);
    assert_eq!((mesh.nodes, mesh.edges, mesh.faces), (320, Some(480), Some(162)));
    let area = new.var("areaCell").unwrap();
    assert!(mesh.fields(new.schema()).contains(&(area, Location::Face)));
}

#[test]
#[ignore = "uxarray and xugrid bring half a gigabyte of packages: ./test meshes"]
fn uxarray_and_xugrid_see_the_same_mesh_in_the_original_and_in_ours() {
    let Some(peer) = python::with("uxarray, xugrid") else { return };
    let dir = tempfile::tempdir().unwrap();
    let script = python::script(env!("CARGO_MANIFEST_DIR"), "meshes.py");
    for (name, path) in originals(dir.path()) {
        if name.starts_with("ugrid") {
            continue;
        }
        let ours = dir.path().join("ours.nc");
        converted(&path, &ours, 2);
        let mut command = Command::new(&peer);
        programs::good(command.arg(&script).arg(&path).arg(&ours));
    }
}

#[test]
fn a_real_ugrid_file_is_read_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let ugrid = originals(dir.path()).into_iter().find(|(name, _)| name.starts_with("ugrid"));
    let Some((_, path)) = ugrid else { return };
    let read = launch(3, |comm| {
        let mut ds = Dataset::open_with(&path, OpenOptions::new().comm(comm.clone())).unwrap();
        let mesh = topologies(&ds).unwrap().remove(0);
        assert_eq!((mesh.nodes, mesh.faces), (6000, Some(3840)));
        let nodes = mesh.relation(&mut ds, Location::Face, Location::Node).unwrap();
        let back = mesh.relation(&mut ds, Location::Node, Location::Face).unwrap();
        let beside = mesh.relation(&mut ds, Location::Face, Location::Face).unwrap();
        let part = Part::new(&mut ds, &mesh, Location::Node, &Cut::Range, 0, None).unwrap();
        let depth = ds.var("mesh_depth").unwrap();
        let place = mesh.place_in(ds.schema(), ds.variable(depth).unwrap(), Location::Node);
        let values: Vec<f64> = part.read(&mut ds, depth, place.unwrap(), &[7]).unwrap();
        (nodes, back, beside, values)
    });
    let ds = Dataset::open(&path).unwrap();
    let stored: Vec<i64> = ds.get(ds.var("mesh_face_nodes").unwrap(), &Selection::all()).unwrap();
    let nodes: Vec<u64> = read.iter().flat_map(|r| r.0.indices.clone()).collect();
    assert_eq!(nodes, stored.iter().map(|n| *n as u64).collect::<Vec<_>>());
    let rows: Vec<Vec<u64>> =
        stored.chunks(4).map(|r| r.iter().map(|n| *n as u64).collect()).collect();
    let uses: usize = read.iter().map(|r| r.1.indices.len()).sum();
    assert_eq!(uses, stored.len());
    let beside: Vec<BTreeSet<u64>> = read
        .iter()
        .flat_map(|r| (0..r.2.offsets.len() - 1).map(|at| r.2.row(at).iter().copied().collect()))
        .collect();
    // All pairs of some faces; the whole would be fifteen million pairs.
    let mut of_node: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (face, row) in rows.iter().enumerate() {
        row.iter().for_each(|n| of_node.entry(*n).or_default().push(face));
    }
    for (face, row) in rows.iter().enumerate() {
        let mut shared: BTreeMap<usize, u32> = BTreeMap::new();
        for other in row.iter().flat_map(|n| &of_node[n]).filter(|o| **o != face) {
            *shared.entry(*other).or_default() += 1;
        }
        let expected = shared.iter().filter(|(_, n)| **n >= 2).map(|(f, _)| *f as u64);
        assert_eq!(beside[face], expected.collect(), "face {face}");
    }
    let depth: Vec<f64> = read.iter().flat_map(|r| r.3.clone()).collect();
    let whole = Selection::slab(&[7, 0], &[1, 6000]);
    assert_eq!(depth, ds.get::<f64>(ds.var("mesh_depth").unwrap(), &whole).unwrap());
}

#[test]
fn meshes_that_cannot_be_are_told_with_object_and_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.nc");
    squares(&path, 3, 0);
    let break_at = |change: &dyn Fn(&mut Dataset)| {
        squares(&path, 3, 0);
        let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        change(&mut ds);
        ds.close().unwrap();
        let errors = launch(3, |comm| {
            let mut ds = Dataset::open_with(&path, OpenOptions::new().comm(comm)).unwrap();
            let mesh = topologies(&ds).map_err(|e| e.to_string())?.remove(0);
            let cut = Cut::Labels("label".to_string());
            let part = Part::new(&mut ds, &mesh, Location::Face, &cut, 1, None);
            part.map(drop).map_err(|e| e.to_string())
        });
        assert!(errors.iter().all(Result::is_err), "{errors:?}");
        let told: Vec<String> = errors.into_iter().map(|e| e.unwrap_err()).collect();
        told.join("\n")
    };
    let told = break_at(&|ds| {
        let var = ds.var("faces").unwrap();
        ds.put(var, &Selection::element(&[4, 2]), &[16i32]).unwrap();
    });
    assert!(
        told.contains("variable \"faces\": row 4, place 2: element 16, but there are 16"),
        "{told}"
    );
    let told = break_at(&|ds| {
        let var = ds.var("label").unwrap();
        ds.put(var, &Selection::element(&[9]), &[-3i32]).unwrap();
    });
    assert!(told.contains("variable \"label\": element 9: label -3"), "{told}");
    let told = break_at(&|ds| ds.amend(|s| s.rename_var("faces", "f")).unwrap());
    assert!(
        told.contains("mesh \"mesh\": its face_node_connectivity \"faces\" is not there"),
        "{told}"
    );
    let told = break_at(&|ds| ds.amend(|s| s.rename_var("x", "z")).unwrap());
    assert!(told.contains("variable \"x\" of its nodes is not there"), "{told}");
}
