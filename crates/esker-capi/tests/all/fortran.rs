//! Fortran: the names that are exported, the include file, and programs of ours that are compiled
//! with our include file and module and run on our library, under each MPI that is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use esker_testkit::programs::{self, good};
use esker_testkit::skip;

use crate::compilers::{mpis, on_our_library, our_library};

const PEER: &str = "/usr/lib/x86_64-linux-gnu/libpnetcdf.so";
const PEER_INCLUDE: &str = "/usr/include/x86_64-linux-gnu/pnetcdf.inc";

/// The names for Fortran that a library exports.
fn exported(library: &Path) -> Option<BTreeSet<String>> {
    let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
    let names = names.filter(|name| name.starts_with("nfmpi_") || name.contains("_MOD_"));
    Some(names.map(str::to_string).collect()).filter(|names: &BTreeSet<_>| !names.is_empty())
}

#[test]
fn the_library_exports_every_name_for_fortran() {
    if !programs::have("nm") {
        return;
    }
    let ours = exported(&our_library()).unwrap();
    let listed: BTreeSet<String> =
        include_str!("../programs/fortran_names.txt").lines().map(str::to_string).collect();
    assert_eq!(listed.iter().filter(|name| name.starts_with("nfmpi_")).count(), 437);
    assert_eq!(listed.len(), 437 + 1108);
    let missing: Vec<_> = listed.difference(&ours).collect();
    assert!(missing.is_empty(), "{missing:?}");
    match exported(Path::new(PEER)) {
        Some(theirs) => assert_eq!(theirs, listed, "the list in the repository is the peer's"),
        None => skip!("{PEER} is not there: libpnetcdf-dev is needed"),
    }
}

/// The parameters of an include file, with their values; names resolved.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for line in text.lines().map(str::to_lowercase) {
        let line = line.split('!').next().unwrap_or("").trim().to_string();
        let Some(inside) = line.strip_prefix("parameter").map(str::trim) else { continue };
        let inside = inside.trim_start_matches('(').trim_end_matches(')');
        if let Some((name, value)) = inside.split_once('=') {
            // A double has the same digits as the peer's single, with another letter.
            all.insert(name.trim().to_string(), value.trim().replace("d+", "e+"));
        }
    }
    let resolved = |value: &String| {
        let mut value = value;
        while let Some(other) = all.get(value) {
            value = other;
        }
        value.clone()
    };
    all.iter().map(|(name, value)| (name.clone(), resolved(value))).collect()
}

#[test]
fn every_number_of_the_include_file_is_the_peers() {
    let Ok(peer) = std::fs::read_to_string(PEER_INCLUDE) else {
        skip!("{PEER_INCLUDE} is not there: libpnetcdf-dev is needed");
        return;
    };
    let (ours, theirs) = (parameters(pnetcdf::INCLUDE), parameters(&peer));
    assert!(theirs.len() > 200);
    for (name, value) in theirs.iter().filter(|(name, _)| !name.starts_with("pnetcdf_")) {
        assert_eq!(ours.get(name), Some(value), "{name}");
    }
}

#[test]
fn no_line_of_the_include_file_is_too_long_for_fixed_form() {
    for line in pnetcdf::INCLUDE.lines() {
        assert!(line.starts_with('!') || line.len() <= 72, "{line}");
    }
    for line in pnetcdf::MODULE.lines() {
        assert!(line.len() <= 132, "{line}");
    }
}

/// A classic file with one dimension, whose name has 400 characters: NC_MAX_NAME is 256.
fn with_a_long_name() -> Vec<u8> {
    let mut bytes = b"CDF\x01".to_vec();
    for number in [0u32, 10, 1, 400] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend([b'd'; 400]);
    for number in [3u32, 0, 0, 0, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

/// Compiles a program with our files alone and runs it.
fn compile_and_run(
    source: &str,
    compiler: &str,
    numbers_of_ranks: [usize; 2],
    says: &str,
    writes: &str,
) {
    let library = our_library();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    for mpi in mpis(compiler) {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path();
        std::fs::write(place.join("pnetcdf.inc"), pnetcdf::INCLUDE).unwrap();
        std::fs::write(place.join("pnetcdf.f90"), pnetcdf::MODULE).unwrap();
        std::fs::write(place.join("long.nc"), with_a_long_name()).unwrap();
        for name in ["libpnetcdf.so", "libpnetcdf.so.0d"] {
            std::os::unix::fs::symlink(&library, place.join(name)).unwrap();
        }
        let compiler = format!("{compiler}.{}", mpi.suffix);
        let module = ["-fsyntax-only", "pnetcdf.f90"];
        good(Command::new(&compiler).args(module).current_dir(place));
        let flags_of_ours = ["-O1", "-g", "-fcheck=all", "-I.", "-L.", "-o", "program"];
        good(
            Command::new(&compiler)
                .arg(&source)
                .args(flags_of_ours)
                .arg("-lpnetcdf")
                .current_dir(place),
        );
        for ranks in numbers_of_ranks {
            let [env, library_path] = on_our_library(place);
            let job = mpi.clone().in_directory(place);
            let ended = job.run(ranks, &[&env, &library_path, "./program"]);
            let good = ended.succeeded() && ended.output.contains(says);
            assert!(good, "{} on {ranks} ranks: {ended:?}", mpi.name);
            // Another program finds the file whole.
            programs::require_valid(&place.join(writes), says);
        }
    }
}

#[test]
fn a_fortran_77_program_writes_and_reads() {
    compile_and_run("fixed.f", "mpif77", [1, 3], "fixed form: good", "fixed.nc");
}

#[test]
fn a_fortran_90_program_with_the_module_writes_and_reads() {
    compile_and_run("module.f90", "mpif90", [1, 3], "module: good", "module.nc");
}

#[test]
fn the_patterns_of_btio_and_s3d_write_and_read() {
    compile_and_run("kernels.f90", "mpif90", [1, 4], "kernels: good", "btio.nc");
}

#[test]
fn every_question_has_its_answer() {
    let good = "questions: good";
    compile_and_run("questions.f90", "mpif90", [1, 3], good, "questions.nc");
}
