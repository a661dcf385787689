//! Graphs of variables, in C and both forms of Fortran.

use std::collections::BTreeSet;
use std::process::Command;

use esker_testkit::programs;

use crate::compilers::mpis;
use crate::place::Place;

/// The functions for graphs that the header declares, without their prefix.
fn functions() -> BTreeSet<String> {
    let words = pnetcdf::ESKER_HEADER.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names = words.filter_map(|word| word.strip_prefix("ncmpi_"));
    let of_graphs = |name: &&str| {
        ["graph", "vertex", "vertices", "edge"].iter().any(|object| name.contains(object))
            || *name == "add_var"
    };
    names.filter(of_graphs).map(str::to_string).collect()
}

/// Compiles a program that calls every function, and runs it on 1, 3 and 5 ranks of each MPI.
fn calls_every_function(program: &str, name: impl Fn(&str) -> String) {
    let functions = functions();
    assert_eq!(functions.len(), 37, "{functions:?}");
    let compiler = if program.ends_with(".c") { "mpicc" } else { "mpif90" };
    let place = Place::new();
    for mpi in mpis(compiler) {
        let compiled = place.compile(&mpi, program);
        for ranks in [1, 3, 5] {
            place.succeeds(&mpi, ranks, &[], &compiled, &[]);
        }
        if !programs::have("nm") {
            continue;
        }
        let out = Command::new("nm").arg("-u").arg(&compiled).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let called: BTreeSet<&str> = text.split_whitespace().collect();
        // Those for values of any type are called by the type, in Fortran 90.
        let is_called = |function: &str| {
            let (symbol, values) = (name(function), ["put_", "get_"]);
            let typed = format!("{symbol}_");
            called.contains(&*symbol)
                || values.iter().any(|of| function.starts_with(of))
                    && called.iter().any(|one| one.starts_with(&typed))
        };
        let missing: Vec<&String> = functions.iter().filter(|f| !is_called(f)).collect();
        assert!(missing.is_empty(), "{program} does not call {missing:?}");
    }
}

#[test]
fn graphs_of_variables_from_c() {
    calls_every_function("graphs.c", |name| format!("ncmpi_{name}"));
}

#[test]
fn graphs_of_variables_from_fortran_77() {
    calls_every_function("graphs.f", |name| format!("nfmpi_{name}_"));
}

#[test]
fn graphs_of_variables_from_fortran_90() {
    calls_every_function("graphs.f90", |name| format!("__pnetcdf_MOD_nf90mpi_{name}"));
}
