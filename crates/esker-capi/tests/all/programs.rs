//! C programs that are compiled with our header and run on our library, under each MPI that is
//! installed. Together they call every function of the interface.

use std::collections::BTreeSet;
use std::process::Command;

use esker_testkit::programs;

use crate::compilers::mpis;
use crate::place::Place;

const PROGRAMS: [&str; 3] = ["every_function.c", "flexible.c", "questions.c"];

/// Every data function writes and reads back what it wrote, and every other one answers.
#[test]
fn every_function_does_its_work() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        for name in PROGRAMS {
            let program = place.compile(&mpi, name);
            for ranks in [1, 3] {
                let ran = place.run(&mpi, ranks, &[], &program, &[]);
                assert!(ran.succeeded(), "{name}, {} on {ranks} ranks: {ran:?}", mpi.name);
            }
        }
    }
}

#[test]
fn no_function_is_left_out_of_the_programs() {
    let place = Place::new();
    let Some(mpi) = mpis("mpicc").into_iter().next() else { return };
    if !programs::have("nm") {
        return;
    }
    let mut called = BTreeSet::new();
    for name in PROGRAMS {
        let out = Command::new("nm").arg("-u").arg(place.compile(&mpi, name)).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        called.extend(text.split_whitespace().map(str::to_string));
    }
    let words = pnetcdf::PROTOTYPES.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let missing: Vec<&str> =
        words.filter(|word| word.starts_with("ncmpi_") && !called.contains(*word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The program makes six wrong calls on purpose, and asks for what is not counted.
#[test]
fn a_wrong_call_is_told_in_a_sentence_when_that_is_wanted() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "questions.c");
        let quiet = place.run(&mpi, 1, &[], &program, &[]);
        assert!(!quiet.errors.contains("pnetcdf:"));
        for variable in ["ESKER_VERBOSE=1", "PNETCDF_VERBOSE_DEBUG_MODE=1"] {
            let ran = place.run(&mpi, 1, &[variable], &program, &[]);
            let said = ran.errors;
            for sentence in [
                "ncmpi_redef (ncid 0): NC_EPERM: ",
                "ncmpi_inq_varid (ncid 0, name \"nothing\"): NC_ENOTVAR: ",
                "ncmpi_inq_dimlen (ncid 0, dimid 7): NC_EBADDIM: ",
                "ncmpi_get_var1_int_all (ncid 0, varid 0): NC_EINVALCOORDS: start 9 in dimension 0, whose length is 4",
                "ncmpi_close (ncid 0): NC_EBADID: ",
            ] {
                assert!(said.contains(&format!("pnetcdf: {sentence}")), "{sentence}\n{said}");
            }
        }
    }
}
