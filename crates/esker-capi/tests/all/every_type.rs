//! One program in C and one in Fortran write and read every type in every layout that a hint chooses, on every MPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use esker_testkit::mpi::Mpi;
use esker_testkit::{programs, skip};

use crate::compilers::mpis;
use crate::place::Place;

/// What PNETCDF_HINTS says, and whether the dataset is opened again by its name.
const LAYOUTS: [(&str, bool); 7] = [
    ("", true),
    ("nc_burst_buf=enable;nc_burst_buf_dirname=.", true),
    ("nc_burst_buf=enable;nc_burst_buf_shared_logs=enable", true),
    ("esker_layout=log", true),
    ("esker_layout=log;esker_log_files=node", true),
    ("esker_chunk=auto", true),
    ("esker_filter=shuffle+zstd,3", true),
];

fn in_every_layout(place: &Place, mpi: &Mpi, program: &Path) {
    for ranks in [1, 4, 7] {
        for (number, (hints, again)) in LAYOUTS.into_iter().enumerate() {
            let variable = format!("PNETCDF_HINTS={hints}");
            let name = format!("layouts.{ranks}.{number}.nc");
            let arguments = [&*name, "open"];
            let arguments = if again { &arguments[..1] } else { &arguments[..] };
            let variables = if hints.is_empty() { &[][..] } else { &[&*variable][..] };
            place.succeeds(mpi, ranks, variables, program, arguments);
            let made = place.path().join(&name);
            if made.is_file() {
                programs::require_valid(&made, hints);
            }
            if number > 0 {
                // Value by value what the plain run left.
                let plain = place.path().join(format!("layouts.{ranks}.0.nc"));
                let open = |path: &Path| esker::Dataset::open(path).unwrap();
                same(&open(&plain), &open(&made));
            }
        }
    }
}

fn same(one: &esker::Dataset, other: &esker::Dataset) {
    assert_eq!(one.schema().vars.len(), other.schema().vars.len());
    for (number, variable) in one.schema().vars.iter().enumerate() {
        let (var, all) = (esker::VarId(number), esker::Selection::all());
        let values = |dataset: &esker::Dataset| dataset.get_values(var, &all).unwrap();
        assert_eq!(values(one), values(other), "{}", variable.name);
    }
}

#[test]
fn a_c_program_writes_and_reads_every_type_in_every_layout() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "layouts.c");
        in_every_layout(&place, &mpi, &program);
    }
}

#[test]
fn a_fortran_program_writes_and_reads_every_type_in_every_layout() {
    let place = Place::new();
    for mpi in mpis("mpif90") {
        let program = place.compile(&mpi, "layouts.f90");
        in_every_layout(&place, &mpi, &program);
    }
}

/// An MPI with the standard ABI, whose compiler is beside its launcher (PyPI's mpich; it has none for Fortran).
#[test]
fn a_c_program_of_the_standard_abi_writes_and_reads_every_type_in_every_layout() {
    let Some(mpiexec) = std::env::var_os("ESKER_TEST_MPI_ABI_MPIEXEC").map(PathBuf::from) else {
        skip!("ESKER_TEST_MPI_ABI_MPIEXEC is not set");
        return;
    };
    let compiler = mpiexec.with_file_name("mpicc_abi");
    if !compiler.is_file() {
        skip!("there is no mpicc_abi beside {}", mpiexec.display());
        return;
    }
    let place = Place::new();
    let program = place.path().join("layouts.abi");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/layouts.c");
    let mut compile = Command::new(compiler);
    compile.args(["-O0", "-Wall", "-I."]).arg(source).arg("-o").arg(&program);
    programs::good(compile.args(["-L.", "-lpnetcdf"]).current_dir(place.path()));
    let mpi = Mpi { name: "MPI ABI", mpiexec: mpiexec.display().to_string(), ..Mpi::mpich() };
    in_every_layout(&place, &mpi, &program);
}

/// The library reads and writes nothing that is not the program's (undefined values are MPI's own business).
#[test]
fn every_layout_is_clean_under_valgrind() {
    if !programs::have("valgrind") {
        return;
    }
    let place = Place::new();
    let Some(mpi) = mpis("mpicc").into_iter().find(|mpi| mpi.suffix == "openmpi") else {
        return;
    };
    let program = place.compile(&mpi, "layouts.c");
    for (number, (hints, again)) in LAYOUTS.into_iter().enumerate() {
        let log = place.path().join(format!("valgrind.{number}"));
        let variable = format!("PNETCDF_HINTS={hints}");
        let to = format!("--log-file={}", log.display());
        let options = ["--error-limit=no", "--num-callers=40", "--undef-value-errors=no", "-q"];
        let mut words = vec![&*variable, "valgrind", &to];
        words.extend(options);
        let name = format!("valgrind.{number}.nc");
        let arguments = [&*name, "open"];
        let arguments = if again { &arguments[..1] } else { &arguments[..] };
        place.succeeds(&mpi, 1, &words, &program, arguments);
        let said = std::fs::read_to_string(&log).unwrap();
        // Reports are separated by lines without text.
        let reports = said.split("== \n").filter(|report| {
            let is_fault = ["Invalid", "overlap", "ismatched"].iter().any(|w| report.contains(w));
            is_fault && report.contains("libpnetcdf")
        });
        let reports: Vec<&str> = reports.collect();
        assert!(reports.is_empty(), "{hints}: {reports:#?}");
    }
}
