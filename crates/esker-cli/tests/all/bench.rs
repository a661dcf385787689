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
fn beside_mpi_peers_ranks_are_mpi_processes_and_threads_have_a_row() {
    if !have("mpicc.openmpi") {
        return;
    }
    let peers = "pnetcdf,pnetcdf-queued";
    let report = bench(&["flash", "--ranks", "3", "--peer", peers, "--limit", "300"]);
    assert_eq!(report["more_ranks_than_cores"], report["machine"]["cores"].as_u64().unwrap() < 3);
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["esker"]["name"], "esker-mpi");
    for peer in ["esker", "pnetcdf", "pnetcdf-queued"] {
        let peer = &kernel["peers"][peer];
        assert_eq!((&peer["fault"], &peer["equal_data"]), (&Value::Null, &Value::Bool(true)));
        assert!(peer["ratio_write_open_to_close"].as_f64().unwrap() > 0.0);
    }
    // The smaller of the two ratios.
    let ratio = |peer: &str| kernel["peers"][peer]["ratio_write"].as_f64().unwrap();
    let best = kernel["over_the_best_way"]["write"].as_f64().unwrap();
    assert_eq!(best, ratio("pnetcdf").min(ratio("pnetcdf-queued")));
}

#[test]
fn an_unknown_kernel_or_peer_is_a_sentence_with_the_known_ones() {
    for (wrong, known) in [(["bench", "striped"], "strided"), (["bench", "--peer=hdf6"], "posix")] {
        let run = run(&wrong);
        assert_eq!(run.code, Some(2));
        assert!(run.err.contains(known), "{}", run.err);
    }
}

#[test]
fn adjoint_runs_are_measured_with_every_column_and_apart_from_other_kernels() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().display().to_string();
    let small = ["--size", "8k", "--states", "2", "--repeat", "1", "--dir", &dir];
    let found = run(&[&["bench", "adjoint-wave", "--json"], &small[..]].concat());
    let report: Value = serde_json::from_str(&found.out).expect(&found.err);
    let rows = report["rows"].as_array().expect("rows");
    let columns = |plan: &str| -> Vec<&str> {
        let of = rows.iter().filter(|row| row["plan"] == plan && row["disk"] == "slowed");
        of.filter_map(|row| row["column"].as_str()).collect()
    };
    assert_eq!(columns("slots"), ["raw", "f32", "zlib", "lossless", "zfp", "sz"]);
    assert_eq!(columns("bytes"), ["raw", "f32", "zlib", "lossless", "zfp", "sz", "auto"]);
    assert!(rows.iter().all(|row| row["forward_steps"].as_u64() >= Some(32)), "{report}");
    let mixed = run(&["bench", "adjoint-ice", "strided"]);
    assert!(mixed.code != Some(0) && mixed.err.contains("apart"), "{}", mixed.err);
    let wrong = run(&["bench", "adjoint-wave", "--bound", "2"]);
    assert!(wrong.code != Some(0) && wrong.err.contains("between 0 and 1"), "{}", wrong.err);
}
