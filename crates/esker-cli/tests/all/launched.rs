//! Promises of every command under `mpiexec`, and of `esker info --mpi`.

use crate::common::{Mpi, esker, good, run};
use serde_json::Value;

#[test]
fn a_command_that_is_not_parallel_is_rank_0s() {
    let directory = tempfile::tempdir().unwrap();
    let (cdl, file) = (directory.path().join("x.cdl"), directory.path().join("x.nc"));
    std::fs::write(
        &cdl,
        "netcdf x { dimensions: n = 3 ; variables: int a(n) ; data: a = 1,2,3 ; }",
    )
    .unwrap();
    let (cdl, file) = (cdl.to_str().unwrap(), file.to_str().unwrap());
    for mpi in Mpi::here() {
        let run = mpi.run(3, &["gen", cdl, "-o", file]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        let run = mpi.run(3, &["info", file]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        assert_eq!(run.out.matches("CDF-").count(), 1, "{}: {}", mpi.name, run.out);
        let run = mpi.run(3, &["info", "no-such-file.nc"]);
        assert_eq!(run.code, Some(2), "{}: {}", mpi.name, run.err);
        assert_eq!(run.err.matches("esker: ").count(), 1, "{}: {}", mpi.name, run.err);
        assert_eq!(mpi.run(3, &["--help"]).out.matches("Usage: ").count(), 1);
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn every_rank_runs_its_command_when_asked_to() {
    let rank_1 = |every: &str| {
        let mut command = esker(&["--version"]);
        command.env("PMI_RANK", "1").env("PMI_SIZE", "2").env("ESKER_EVERY_RANK", every);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(rank_1(""), "");
    assert!(rank_1("1").starts_with("esker "));
}

#[test]
fn info_tells_which_mpi_there_is() {
    for mpi in Mpi::here() {
        let run = mpi.run(3, &["info", "--mpi", "--json"]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        let told: Value = serde_json::from_str(&run.out).expect("one document");
        assert_eq!(told["found"], true);
        assert_eq!(told["library"]["abi"], mpi.name);
        assert_eq!(told["library"]["thread_level"], "multiple");
        assert_eq!(told["launcher"]["ranks"], 3);
        assert_eq!(told["world"]["ranks"], 3);
        assert_eq!(told["world"]["nodes"], 1);
        let text = mpi.run(2, &["info", "--mpi"]);
        assert_eq!(text.out.matches("MPI was found").count(), 1, "{}", text.out);
        assert!(text.out.contains("2 ranks on 1 node\n"), "{}", text.out);
    }
}

#[test]
fn info_tells_why_there_is_no_mpi() {
    let mut command = esker(&["info", "--mpi"]);
    let output = command.env("ESKER_MPI_LIB", "no-such-library.so").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("MPI was not found") && text.contains("no-such-library.so"), "{text}");
    let told: Value = serde_json::from_str(&good(&["info", "--mpi", "--json"])).unwrap();
    assert_eq!(told["found"].as_bool(), Some(told["why_not"].is_null()));
    assert_eq!(told["launcher"], Value::Null);
}

#[test]
fn info_needs_a_file_or_mpi_and_not_both() {
    assert_eq!(run(&["info"]).code, Some(2));
    assert_eq!(run(&["info", "--mpi", "x.nc"]).code, Some(2));
}
