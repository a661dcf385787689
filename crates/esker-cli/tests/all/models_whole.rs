//! What `mesh` and `amr` make is whole or not there, and what had its name is what it was until then.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};

use super::common::{Mpi, Run, good, run};

/// A mesh of two triangles as FESOM has it, with a field that is the last thing in the file.
fn mesh(path: &Path) {
    let mut def = Dataset::create(path, CreateOptions::new()).unwrap();
    let nodes = def.add_dim("ncells", DimLen::Fixed(4)).unwrap();
    let faces = def.add_dim("ntriags", DimLen::Fixed(2)).unwrap();
    let three = def.add_dim("Three", DimLen::Fixed(3)).unwrap();
    let lon = def.add_var("lon", ExternalType::Double, &[nodes]).unwrap();
    let lat = def.add_var("lat", ExternalType::Double, &[nodes]).unwrap();
    let corners = def.add_var("triag_nodes", ExternalType::Int, &[faces, three]).unwrap();
    let field = def.add_var("depth", ExternalType::Double, &[nodes]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(lon, &Selection::all(), &[0.0, 1.0, 1.0, 0.0]).unwrap();
    ds.put(lat, &Selection::all(), &[0.0, 0.0, 1.0, 1.0]).unwrap();
    ds.put(corners, &Selection::all(), &[1, 2, 3, 1, 3, 4]).unwrap();
    ds.put(field, &Selection::all(), &[5.0, 6.0, 7.0, 8.0]).unwrap();
    ds.close().unwrap();
}

/// A plotfile of one level with two boxes of 2 x 2 cells.
fn plotfile(plot: &Path) {
    fs::create_dir_all(plot.join("Level_0")).unwrap();
    let header = "HyperCLaw-V1.1\n1\nrho\n2\n0.5\n0\n0.0 0.0\n4.0 2.0\n\n((0,0) (3,1) (0,0))\n3\n1.0 1.0\n0\n0\n\
                  0 2 0.5\n3\n0 2\n0 2\n2 4\n0 2\nLevel_0/Cell\n";
    fs::write(plot.join("Header"), header).unwrap();
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
    fs::write(plot.join("Level_0/Cell_H"), head).unwrap();
    fs::write(plot.join("Level_0/Cell_D_00000"), [first, fab(2)].concat()).unwrap();
}

/// Takes the last bytes of a file away.
fn shorten(path: &Path, by: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - by).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder, for inputs, beside one for outputs.
fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, outputs) = (dir.path().join("in"), dir.path().join("out"));
    fs::create_dir(&inputs).unwrap();
    fs::create_dir(&outputs).unwrap();
    (dir, inputs, outputs)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

/// Runs a command that fails in the middle, alone and on ranks, over a file and where there is none.
fn leaves_what_was_there(outputs: &Path, command: &[&str], says: &str) {
    let old = outputs.join("old.nc");
    fs::write(&old, "precious").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let check = |ended: Run, name: &str| {
        let what = format!("{command:?} {name}: {} {}", ended.out, ended.err);
        assert_eq!(ended.code, Some(2), "{what}");
        assert!(ended.err.contains(says), "{what}");
        assert!(!ended.err.contains("esker-new"), "{what}");
        assert_eq!(names(outputs), ["old.nc"], "{what}");
        assert_eq!(fs::read(&old).unwrap(), b"precious", "{what}");
        assert_eq!(fs::metadata(&old).unwrap().mode() & 0o7777, 0o640, "{what}");
    };
    for name in ["old.nc", "new.nc"] {
        let output = text(&outputs.join(name));
        let arguments = [command, &["-O", &output]].concat();
        check(run(&arguments), name);
        for mpi in Mpi::here() {
            check(mpi.run(3, &arguments), name);
        }
    }
}

#[test]
fn a_mesh_conversion_that_fails_in_the_middle_leaves_what_was_there() {
    let (_dir, inputs, outputs) = folders();
    let input = inputs.join("fesom.nc");
    mesh(&input);
    // The field is read when the mesh is written already.
    shorten(&input, 8);
    leaves_what_was_there(&outputs, &["mesh", "convert", &text(&input)], "depth");
}

#[test]
fn an_amr_conversion_that_fails_in_the_middle_leaves_what_was_there() {
    let (_dir, inputs, outputs) = folders();
    let plot = inputs.join("plt");
    plotfile(&plot);
    shorten(&plot.join("Level_0/Cell_D_00000"), 8);
    leaves_what_was_there(&outputs, &["amr", "convert", &text(&plot)], "Cell_D_00000");
}

#[test]
fn a_plotfile_that_cannot_be_finished_is_not_there() {
    let (_dir, inputs, outputs) = folders();
    let (plot, file) = (inputs.join("plt"), inputs.join("plt.nc"));
    plotfile(&plot);
    good(&["amr", "convert", &text(&plot), &text(&file)]);
    let whole = text(&outputs.join("whole"));
    good(&["amr", "convert", &text(&file), &whole]);
    assert_eq!(names(&outputs.join("whole")), ["Header", "Level_0"]);
    // One that is there is not replaced, whatever is in it.
    fs::create_dir(outputs.join("empty")).unwrap();
    for name in ["whole", "empty"] {
        let again = run(&["amr", "convert", "-O", &text(&file), &text(&outputs.join(name))]);
        assert_eq!(again.code, Some(2), "{}", again.err);
    }
    assert_eq!(names(&outputs.join("empty")), [""; 0]);
    // Values that are damaged are found when the folders are there already.
    let (packed, damaged) = (inputs.join("packed.nc"), inputs.join("damaged.nc"));
    good(&["copy", "--filter", "level_0:zstd,3", &text(&file), &text(&packed)]);
    let bytes = fs::read(&packed).unwrap();
    let is_damaged = (0..bytes.len()).rev().any(|at| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x55;
        fs::write(&damaged, bytes).unwrap();
        let values = |name: &str| {
            let ds = Dataset::open(&damaged)?;
            ds.get::<f64>(ds.var(name)?, &Selection::all())
        };
        values("level_0_offset").is_ok() && values("level_0").is_err()
    });
    assert!(is_damaged && run(&["amr", "info", &text(&damaged)]).code == Some(0));
    let new = text(&outputs.join("new"));
    for ended in std::iter::once(run(&["amr", "convert", &text(&damaged), &new]))
        .chain(Mpi::here().iter().map(|mpi| mpi.run(2, &["amr", "convert", &text(&damaged), &new])))
    {
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert_eq!(names(&outputs), ["empty", "whole"], "{}", ended.err);
    }
}

#[test]
fn conversions_follow_links_and_keep_modes() {
    let (_dir, inputs, outputs) = folders();
    let (plain, plot) = (inputs.join("fesom.nc"), inputs.join("plt"));
    mesh(&plain);
    plotfile(&plot);
    let amr = inputs.join("plt.nc");
    good(&["amr", "convert", &text(&plot), &text(&amr)]);
    let (plain, plot, amr) = (text(&plain), text(&plot), text(&amr));
    let commands: [&[&str]; 3] =
        [&["mesh", "convert", &plain], &["amr", "convert", &plot], &["amr", "slice", &amr, "rho"]];
    for command in commands {
        let (real, link) = (inputs.join("real.nc"), outputs.join("link.nc"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o604)).unwrap();
        symlink(&real, &link).unwrap();
        let linked = text(&link);
        // Without -O, a link to something is something.
        let refused = run(&[command, &[&linked]].concat());
        assert_eq!(refused.code, Some(2), "{command:?}");
        assert!(refused.err.contains("exist"), "{command:?}: {}", refused.err);
        assert_eq!(fs::read(&real).unwrap(), b"old", "{command:?}");
        good(&[command, &["-O", &linked]].concat());
        assert_eq!(fs::read_link(&link).unwrap(), real, "{command:?}");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o7777, 0o604, "{command:?}");
        Dataset::open(&real).unwrap();
        assert_eq!(names(&outputs), ["link.nc"], "{command:?}");
        fs::remove_file(&link).unwrap();
        fs::remove_file(&real).unwrap();
    }
}
