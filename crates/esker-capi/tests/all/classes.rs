//! The C++ classes: the names that are exported, and programs that use them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use esker_testkit::{programs, skip};

use crate::compilers::mpis;
use crate::place::Place;

const PEER: &str = "/usr/lib/x86_64-linux-gnu/libpnetcdf.so";

/// A folder with the library of the classes, which takes its time to compile; none if there is no
/// compiler.
fn place() -> Option<&'static Place> {
    static PLACE: OnceLock<Place> = OnceLock::new();
    programs::have("g++").then(|| {
        PLACE.get_or_init(|| {
            let place = Place::new();
            place.make_classes();
            place
        })
    })
}

/// The names of the classes' functions, tables and objects that a library exports.
fn exported(library: &Path) -> BTreeSet<String> {
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    // Beginnings of mangled names: of the namespace, its tables and its constant methods. What is
    // of the standard library's templates, every program brings itself.
    let starts = ["_ZN7PnetCDF", "_ZNK7PnetCDF", "_ZTVN7PnetCDF", "_ZTIN7PnetCDF", "_ZTSN7PnetCDF"];
    names.filter(|name| starts.iter().any(|s| name.starts_with(s))).map(str::to_string).collect()
}

#[test]
fn the_classes_have_every_name_of_the_peers() {
    let Some(place) = place() else { return };
    let ours = exported(&place.path().join("libpnetcdf_cxx.so"));
    assert!(ours.len() > 858, "{}", ours.len());
    if !Path::new(PEER).exists() {
        skip!("{PEER} is not there");
        return;
    }
    let theirs = exported(Path::new(PEER));
    assert!(theirs.len() > 858, "{}", theirs.len());
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_program_with_the_classes_writes_and_reads() {
    let Some(place) = place() else { return };
    for mpi in mpis("mpicxx") {
        let program = place.compile(&mpi, "classes.cpp");
        for ranks in [1, 3] {
            place.succeeds(&mpi, ranks, &[], &program, &[]);
        }
    }
}

/// Its objects are made by code that was compiled from PnetCDF's header, and used by ours.
#[test]
fn a_program_that_was_compiled_with_the_peers_header_runs() {
    if !Path::new("/usr/include/pnetcdf").exists() || !Path::new(PEER).exists() {
        skip!("PnetCDF's own header for C++ is not there");
        return;
    }
    let Some(place) = place() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/classes.cpp");
    for mpi in mpis("mpicxx").iter().filter(|mpi| mpi.suffix == "openmpi") {
        let program = place.path().join("peers");
        let compiled = Command::new("mpicxx.openmpi")
            .args(["-O0", "-w", "-DNC_COUNT_IGNORE=-1", "-DPEERS_HEADER"])
            .arg(&source)
            .args(["-lpnetcdf", "-o"])
            .arg(&program)
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        // As the installed library, which needs that of the classes itself.
        let classes = format!("LD_PRELOAD={}", place.path().join("libpnetcdf_cxx.so").display());
        place.succeeds(mpi, 3, &[&classes], &program, &[]);
    }
}
