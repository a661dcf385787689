//! Promises of `esker demo`.

use std::path::Path;
use std::process::Command;

use crate::common::{Mpi, esker, good, have, python, run};

#[test]
fn the_demo_simulates_writes_draws_tells_and_checks() {
    let text = good(&["demo", "--records", "5"]);
    for part in [
        "A tsunami in a made-up sea",
        "4 ranks: threads of this process, 2 × 2 blocks",
        "after 24 min",
        "# land",
        "CDF-2",
        "unlimited",
        "where the time went",
        "MB/s",
        "how the bytes moved",
        "agree",
        "valid: ",
        "equal: all 7 864 320 values",
        "try next",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    assert!(text.contains("####") && !text.contains('▀'), "a picture of letters");
}

#[test]
fn the_picture_has_as_many_colours_as_the_terminal() {
    let colours = |name: &str, value: &str| {
        let arguments = ["--color", "always", "demo", "--records", "2"];
        let output = esker(&arguments).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let full = colours("COLORTERM", "truecolor");
    assert!(full.contains('▀') && full.contains("\x1b[38;2;"));
    let indexed = colours("TERM", "xterm-256color");
    assert!(indexed.contains('▀') && indexed.contains("\x1b[38;5;") && !indexed.contains("[38;2;"));
}

#[test]
fn any_number_of_ranks_writes_the_same_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = |ranks: &str| {
        let path = directory.path().join(format!("{ranks}.nc"));
        good(&["demo", "--records", "2", "--ranks", ranks, "-o", path.to_str().unwrap()]);
        std::fs::read(path).unwrap()
    };
    let one = file("1");
    for ranks in ["2", "4", "7", "16"] {
        assert!(file(ranks) == one, "{ranks} ranks");
    }
}

#[test]
fn a_kept_file_is_one_that_peers_read_and_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("demo.nc");
    let arguments = ["demo", "--keep", "--records", "3"];
    let output = esker(&arguments).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success());
    let bytes = std::fs::read(&kept).unwrap();
    if have("ncdump") {
        let dump = Command::new("ncdump").arg("-h").arg(&kept).output().unwrap();
        let header = String::from_utf8(dump.stdout).unwrap();
        assert!(header.contains("float eta(time, y, x) ;"), "{header}");
        assert!(header.contains("time = UNLIMITED ; // (3 currently)"), "{header}");
    }
    if have("ncvalidator") {
        assert!(Command::new("ncvalidator").arg(&kept).output().unwrap().status.success());
    }
    let again = run(&["demo", "--records", "3", "-o", directory.path().to_str().unwrap()]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("demo.nc"), "{}", again.err);
    assert_eq!(again.err.lines().count(), 1, "{}", again.err);
    assert!(std::fs::read(&kept).unwrap() == bytes);
}

#[test]
fn xarray_knows_the_coordinates_the_times_and_the_land() {
    let Some(mut python) = python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.nc");
    good(&["demo", "--records", "3", "-o", path.to_str().unwrap()]);
    let script = "
import sys, xarray, numpy
data = xarray.open_dataset(sys.argv[1])
assert data.eta.dims == ('time', 'y', 'x') and set(data.coords) == {'time', 'y', 'x'}
assert str(data.time.values[2])[:19] == '2001-01-01T00:12:00', data.time.values
assert data.eta.attrs['units'] == 'm' and data.x.attrs['units'] == 'km'
assert bool(data.eta.isnull().any()) and float(abs(data.eta).max()) < 3
assert bool((data.depth.isnull() == data.eta[0].isnull()).all())
print('fine')
";
    let output = python.args(["-c", script]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "fine", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn without_keep_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let output = esker(&["demo", "--records", "2"])
        .current_dir(directory.path())
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn mpi_processes_write_the_same_file_and_one_of_them_tells() {
    let directory = tempfile::tempdir().unwrap();
    let threads = directory.path().join("threads.nc");
    good(&["demo", "--records", "3", "-o", threads.to_str().unwrap()]);
    for mpi in Mpi::here() {
        let path = directory.path().join(format!("{}.nc", mpi.name));
        let run = mpi.run(3, &["demo", "--records", "3", "-o", path.to_str().unwrap()]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        assert_eq!(run.out.matches("try next").count(), 1, "{}", run.out);
        let ranks = format!("3 ranks: MPI processes ({})", mpi.name);
        assert!(run.out.contains(&ranks), "{}", run.out);
        assert!(std::fs::read(&path).unwrap() == std::fs::read(&threads).unwrap());
    }
}

#[test]
fn on_mpi_a_failure_ends_every_rank_and_is_told_once() {
    for mpi in Mpi::here() {
        let missing = Path::new("no/such/directory/x.nc");
        let run = mpi.run(3, &["demo", "--records", "2", "-o", missing.to_str().unwrap()]);
        assert_eq!(run.code, Some(2), "{}: {}", mpi.name, run.err);
        assert_eq!(run.err.matches("esker: ").count(), 1, "{}", run.err);
        assert!(run.err.contains("no/such/directory/x.nc: "), "{}", run.err);
        let run = mpi.run(2, &["demo", "--ranks", "5"]);
        assert_eq!(run.code, Some(2), "{}: {}", mpi.name, run.err);
        assert_eq!(run.err.matches("--ranks is for threads").count(), 1, "{}", run.err);
    }
}
