//! Promises of `esker bench`.

use crate::common::{good, have, run};
use serde_json::Value;

fn bench(more: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().display().to_string();
    let small = ["bench", "--size", "1M", "--repeat", "1", "--json", "--dir", &dir];
    serde_json::from_str(&good(&[&small, more].concat())).unwrap()
}

#[test]
fn thread_ranks_are_measured_beside_plain_writes() {
    let report = bench(&["strided", "btio", "--ranks", "3", "--peer", "posix"]);
    assert_eq!(report["ranks"], 3);
    for (kernel, name) in report["kernels"].as_array().unwrap().iter().zip(["strided", "btio"]) {
        assert_eq!(kernel["kernel"], name);
        let run = &kernel["esker"]["runs"][0];
        assert_eq!(run["wrong"], 0);
        assert!(run["write_report"]["phases"]["write"].is_number());
        for ratio in ["ratio_write", "ratio_read"] {
            assert!(kernel["peers"]["posix"][ratio].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn mpi_ranks_are_measured_beside_threads() {
    if !have("mpiexec.openmpi") {
        return;
    }
    let report = bench(&["checkerboard", "--comm", "threads,mpi", "--peer", "none"]);
    let mpi = &report["kernels"][0]["peers"]["esker-mpi"];
    assert_eq!(mpi["fault"], Value::Null);
    assert_eq!(mpi["equal_data"], true);
}

#[test]
fn an_unknown_kernel_or_peer_is_a_sentence_with_the_known_ones() {
    for (wrong, known) in [(["bench", "striped"], "strided"), (["bench", "--peer=hdf6"], "posix")] {
        let run = run(&wrong);
        assert_eq!(run.code, Some(2));
        assert!(run.err.contains(known), "{}", run.err);
    }
}
