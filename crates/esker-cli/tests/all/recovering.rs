//! `esker recover` finishes files, and says what it cannot do.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{good, run};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Hints, Selection, VarId};

/// Two ranks write half of `f` each into their logs, and die.
fn died(dir: &Path) -> (PathBuf, PathBuf) {
    let (path, bb) = (dir.join("run.nc"), dir.join("bb"));
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let mut hints = Hints::default();
        hints.set("nc_burst_buf", "enable");
        hints.set("nc_burst_buf_dirname", bb.to_str().unwrap());
        let options = CreateOptions::new().hints(hints).comm(comm.clone());
        let mut def = Dataset::create(&path, options).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        let f = def.add_var("f", ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(f, &Selection::slab(&[2 * rank], &[2]), &[1, 2]).unwrap();
        // What was read is in the log.
        ds.get::<i32>(f, &Selection::slab(&[2 * rank], &[2])).unwrap();
    });
    (path, bb)
}

fn values(path: &Path) -> Vec<i32> {
    Dataset::open(path).unwrap().get(VarId(0), &Selection::all()).unwrap()
}

#[test]
fn a_file_is_finished_and_its_logs_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let (file, logs) = (path.to_str().unwrap(), bb.to_str().unwrap());
    let look = good(&["recover", file, "--dir", logs, "--dry-run"]);
    assert!(look.contains("2 writes of 2 logs to be replayed"), "{look}");
    assert_ne!(values(&path), [1, 2, 1, 2]);
    let said = good(&["recover", file, "--dir", logs]);
    assert!(said.contains("2 writes of 2 logs replayed"), "{said}");
    assert!(said.contains("removed"), "{said}");
    assert_eq!(values(&path), [1, 2, 1, 2]);
    assert!(good(&["recover", file, "--dir", logs]).contains("no logs found"));
}

#[test]
fn the_environment_names_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let mut command = crate::common::esker(&["recover", path.to_str().unwrap(), "--json"]);
    let hints = format!("nc_burst_buf=enable;nc_burst_buf_dirname={}", bb.display());
    let output = command.env("PNETCDF_HINTS", hints).output().unwrap();
    assert!(output.status.success());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["complete"], true);
    assert_eq!(document["entries"], 2);
    assert_eq!(document["ranks"], 2);
    assert_eq!(values(&path), [1, 2, 1, 2]);
}

#[test]
fn what_is_missing_or_damaged_is_told_and_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let (file, logs) = (path.to_str().unwrap(), bb.to_str().unwrap());
    for name in fs::read_dir(&bb).unwrap().map(|entry| entry.unwrap().path()) {
        if name.to_str().unwrap().contains(".0.1.0.") {
            fs::remove_file(name).unwrap();
        } else if name.extension().is_some_and(|e| e == "data") {
            fs::write(name, [7; 8]).unwrap();
        }
    }
    let ended = run(&["recover", file, "--dir", logs]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.out.contains("missing: the logs of ranks 0 of 2"), "{}", ended.out);
    assert!(ended.out.contains("damaged: rank 1: bytes 0 to 8"), "{}", ended.out);
}

#[test]
fn a_wrong_call_is_exit_code_2_and_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no.nc");
    for arguments in [
        vec!["recover", missing.to_str().unwrap()],
        vec!["recover", missing.to_str().unwrap(), "--dir", "/no/such/directory"],
    ] {
        let ended = run(&arguments);
        assert_eq!(ended.code, Some(2));
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
}

/// Two ranks write a record of a variable in two sub-files.
fn in_subfiles(path: &Path) {
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let mut hints = Hints::default();
        hints.set("nc_num_subfiles", "2");
        let options = CreateOptions::new().hints(hints).comm(comm.clone());
        let mut def = Dataset::create(path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        let map = def.add_decomposition(&[x], &Selection::slab(&[2 * rank], &[2])).unwrap();
        let t = def.add_decomposed_var("t", ExternalType::Int, &[time], map).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(t, &Selection::blob(&[0], &[1]), &[1, 2]).unwrap();
        ds.close().unwrap();
    });
}

#[test]
fn sub_files_get_their_names_and_those_that_are_missing_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    in_subfiles(&path);
    let file = path.to_str().unwrap();
    let named = dir.path().join("run.1.nc");
    // The identity is the first text of sixteen digits behind its name in the header.
    let header = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    let behind = header.split("subfiles_identity").nth(1).unwrap();
    let digits = behind.split(|c: char| !c.is_ascii_hexdigit()).find(|text| text.len() == 16);
    let identity = u64::from_str_radix(digits.unwrap(), 16).unwrap();
    let grown = esker_store::draft_path(&named, esker_store::DraftForm::Sub, identity);
    fs::rename(&named, &grown).unwrap();
    let found = || {
        let ds = Dataset::open(&path).unwrap();
        ds.get::<i32>(ds.var("t").unwrap(), &Selection::all()).unwrap()
    };
    assert_eq!(found(), [1, 2, 1, 2]);
    let checked = good(&["check", file]);
    assert!(
        checked.contains("it is the sub-file run.1.nc") && checked.contains("esker recover"),
        "{checked}"
    );
    assert!(good(&["recover", file, "--dry-run"]).contains("run.1.nc is to get its name"));
    assert!(grown.exists());
    assert!(good(&["recover", file]).contains("run.1.nc got its name"));
    assert!(named.exists() && !grown.exists());
    assert_eq!(found(), [1, 2, 1, 2]);
    assert!(!good(&["check", file]).contains("sub-file"));
    fs::remove_file(&named).unwrap();
    let ended = run(&["recover", file]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let said = ended.out;
    assert!(said.contains("missing: sub-file") && said.contains("run.1.nc"), "{said}");
    let said = run(&["recover", file, "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(json["complete"], false);
    assert!(json["subfiles"][0]["file"].as_str().unwrap().ends_with("run.1.nc"));
}
