//! The interface is PnetCDF's: the same names, signatures and numbers. The judge is Debian's
//! `pnetcdf.h` and library; without them these tests are skips.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use esker_testkit::programs::have;
use esker_testkit::skip;

use crate::compilers::our_library;

const PEER_HEADER: &str = "/usr/include/pnetcdf.h";

/// The compiler of the MPI that Debian's PnetCDF was built with.
fn compiler() -> Option<&'static str> {
    if !Path::new(PEER_HEADER).exists() {
        skip!("{PEER_HEADER} is not there: libpnetcdf-dev is needed");
        return None;
    }
    have("mpicc.openmpi").then_some("mpicc.openmpi")
}

fn compile(cc: &str, name: &str, text: &str, include: &Path) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join(name);
    std::fs::write(&source, text).unwrap();
    let out = Command::new(cc)
        .args(["-c", "-Wall", "-Werror", "-o"])
        .arg(dir.path().join("out.o"))
        .arg("-I")
        .arg(include)
        .arg(&source)
        .output()
        .unwrap();
    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into()) }
}

/// Names that begin with `ncmpi_` in a header's text.
fn declared(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_function = |word: &&str| word.starts_with("ncmpi_");
    words.filter(is_function).map(str::to_string).collect()
}

/// The macros of a header with plain values, by name.
fn macros(cc: &str, include: Option<&Path>) -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("macros.c");
    std::fs::write(&source, "#include <pnetcdf.h>\n").unwrap();
    let mut command = Command::new(cc);
    command.args(["-E", "-dM"]);
    if let Some(include) = include {
        command.arg("-I").arg(include);
    }
    let out = command.arg(&source).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let spaces = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines()
        .filter(|line| line.starts_with("#define NC") || line.starts_with("#define _FillValue"))
        .map(spaces)
        .collect()
}

fn our_header() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("pnetcdf.h"), pnetcdf::HEADER).unwrap();
    let path = dir.path().to_path_buf();
    (dir, path)
}

#[test]
fn every_function_of_the_peer_is_declared() {
    if compiler().is_none() {
        return;
    }
    let peer = std::fs::read_to_string(PEER_HEADER).unwrap();
    // Its comments name functions in general, as ncmpi_put_var<kind>.
    let missing: Vec<_> =
        declared(&peer).difference(&declared(pnetcdf::PROTOTYPES)).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(declared(pnetcdf::PROTOTYPES).len(), 915);
}

#[test]
fn every_signature_is_the_peers() {
    let Some(cc) = compiler() else { return };
    // C refuses a second declaration that differs from the first.
    let text = format!("#include \"{PEER_HEADER}\"\n{}\n", pnetcdf::PROTOTYPES);
    compile(cc, "twice.c", &text, Path::new("/")).unwrap();
}

#[test]
fn every_number_is_the_peers() {
    let Some(cc) = compiler() else { return };
    let (_dir, include) = our_header();
    let (ours, theirs) = (macros(cc, Some(&include)), macros(cc, None));
    // 1.15 has one more error of its kind.
    let newer = "#define NC_EMULTIDEFINE_LAST NC_EMULTIDEFINE_CMODE";
    let missing: Vec<_> = theirs.difference(&ours).filter(|line| *line != newer).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn our_header_compiles_beside_netcdfs() {
    let Some(cc) = compiler() else { return };
    let (_dir, include) = our_header();
    compile(cc, "alone.c", "#include <pnetcdf.h>\nint main(void) { return NC_NOERR; }\n", &include)
        .unwrap();
    if Path::new("/usr/include/netcdf.h").exists() {
        compile(cc, "both.c", "#include <netcdf.h>\n#include <pnetcdf.h>\n", &include).unwrap();
    }
}

#[test]
fn the_library_exports_what_the_peers_does() {
    if !have("nm") {
        return;
    }
    let symbols = |library: &Path| -> Option<BTreeSet<String>> {
        let out = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.split_whitespace().nth(2));
        Some(names.filter(|name| name.starts_with("ncmpi_")).map(str::to_string).collect())
    };
    let exported = symbols(&our_library()).unwrap_or_default();
    let ours = declared(pnetcdf::PROTOTYPES);
    // The other header's comments name functions too.
    let added: BTreeSet<String> = pnetcdf::ESKER_HEADER
        .lines()
        .filter(|line| line.starts_with("extern int"))
        .flat_map(declared)
        .collect();
    assert!(ours.is_disjoint(&added));
    assert_eq!(exported, &ours | &added);
    let peer = Path::new("/usr/lib/x86_64-linux-gnu/libpnetcdf.so");
    if !peer.exists() {
        return skip!("{} is not there: libpnetcdf-dev is needed", peer.display());
    }
    let theirs = symbols(peer).unwrap_or_default();
    assert!(theirs.len() >= 913);
    let missing: Vec<_> = theirs.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
