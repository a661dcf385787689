//! One program in C and one in Fortran write and read every type in every layout that a hint chooses, on every MPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use esker_testkit::mpi::Mpi;
use esker_testkit::{programs, skip};

use crate::compilers::mpis;
use crate::place::Place;

/// What PNETCDF_HINTS says, and whether the dataset is opened again by its name.
const LAYOUTS: [(&str, bool); 9] = [
    ("", true),
    ("nc_burst_buf=enable;nc_burst_buf_dirname=.", true),
    ("nc_burst_buf=enable;nc_burst_buf_shared_logs=enable", true),
    ("esker_layout=log", true),
    ("esker_layout=log;esker_log_files=node", true),
    ("esker_chunk=auto", true),
    ("esker_filter=shuffle+zstd,3", true),
    ("esker_chunk=auto;esker_chunk_files=rank", true),
    ("esker_chunk=x/4;esker_filter=lz4;esker_chunk_files=shared", true),
];

/// The same for variables that a program defines by a map.
const OF_MAPS: [(&str, bool); 5] = [
    ("", true),
    ("nc_num_subfiles=2", true),
    ("nc_num_subfiles=3", true),
    ("nc_burst_buf=enable;nc_burst_buf_dirname=.", true),
    ("nc_num_subfiles=2;nc_burst_buf=enable;nc_burst_buf_dirname=.", true),
];

fn in_every_layout(place: &Place, mpi: &Mpi, program: &Path) {
    in_layouts(place, mpi, program, &LAYOUTS);
}

fn in_layouts(place: &Place, mpi: &Mpi, program: &Path, layouts: &[(&str, bool)]) {
    for ranks in [1, 4, 7] {
        for (number, (hints, again)) in layouts.iter().copied().enumerate() {
            let variable = format!("PNETCDF_HINTS={hints}");
            let name = format!("layouts.{ranks}.{number}.nc");
            let arguments = [&*name, "open"];
            let arguments = if again { &arguments[..1] } else { &arguments[..] };
            let variables = if hints.is_empty() { &[][..] } else { &[&*variable][..] };
            place.succeeds(mpi, ranks, variables, program, arguments);
            let made = place.path().join(&name);
            if hints.contains("nc_num_subfiles") {
                // Together with the sub-files.
                let options = esker_tools::check::CheckOptions::default();
                let report = esker_tools::check::check(&made, &options, &mut esker_tools::Unseen);
                let verdict = esker_tools::check::Verdict::of(&report);
                assert_eq!(verdict, esker_tools::check::Verdict::Valid, "{hints}: {report:?}");
            }
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
fn a_c_program_writes_and_reads_every_type_by_maps_with_and_without_sub_files() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "maps.c");
        in_layouts(&place, &mpi, &program, &OF_MAPS);
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
    let mpi = Mpi { name: "MPI ABI", mpiexec: mpiexec.display().to_string(), ..Mpi::mpich() };
    for (name, layouts) in [("layouts", &LAYOUTS[..]), ("maps", &OF_MAPS[..])] {
        let place = Place::new();
        let program = place.path().join(name).with_extension("abi");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        let mut compile = Command::new(&compiler);
        compile.args(["-O0", "-Wall", "-I."]).arg(source.with_extension("c"));
        compile.arg("-o").arg(&program).args(["-L.", "-lpnetcdf"]);
        programs::good(compile.current_dir(place.path()));
        in_layouts(&place, &mpi, &program, layouts);
    }
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
    let all = LAYOUTS.iter().map(|layout| ("layouts.c", layout));
    let all = all.chain(OF_MAPS.iter().map(|layout| ("maps.c", layout)));
    for (number, (program, (hints, again))) in all.enumerate() {
        let program = place.compile(&mpi, program);
        let log = place.path().join(format!("valgrind.{number}"));
        let variable = format!("PNETCDF_HINTS={hints}");
        let to = format!("--log-file={}", log.display());
        let options = ["--error-limit=no", "--num-callers=40", "--undef-value-errors=no", "-q"];
        let mut words = vec![&*variable, "valgrind", &to];
        words.extend(options);
        let name = format!("valgrind.{number}.nc");
        let arguments = [&*name, "open"];
        let arguments = if *again { &arguments[..1] } else { &arguments[..] };
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
