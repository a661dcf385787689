//! Promises of `esker refs`.

use std::path::{Path, PathBuf};

use crate::common::{good, run};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};
use serde_json::Value;

/// A file with a compressed variable that Zarr reads and one that it does not.
fn make(dir: &Path) -> PathBuf {
    let path = dir.join("run.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(8)).unwrap();
    let vars = [("known", "shuffle zstd,3"), ("unknown", "pco")].map(|(name, filters)| {
        let var = def.add_var(name, ExternalType::Int, &[x]).unwrap();
        def.set_chunks(var, &[4]).unwrap();
        def.set_filters(var, filters).unwrap();
        var
    });
    let mut ds = def.enddef().unwrap();
    for var in vars {
        ds.put(var, &Selection::all(), &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    }
    ds.close().unwrap();
    path
}

#[test]
fn what_was_written_is_told_and_what_was_left_out_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = make(dir.path());
    let file = file.to_str().unwrap();
    let first = run(&["refs", file]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert!(first.out.starts_with(&format!("{file}.json: 1 variable, 2 chunks of file://")));
    assert_eq!(
        first.err,
        format!(
            "esker: {file}: variable \"unknown\" is left out: Zarr does not know its filter pco,8\n"
        )
    );
    let again = run(&["refs", file]);
    assert_eq!(again.code, Some(2));
    assert_eq!(again.err, format!("esker: {file}.json: exists already (-O replaces it)\n"));
    let told: Value = serde_json::from_str(&good(&["refs", "-O", "--json", file])).unwrap();
    assert_eq!((&told["form"], &told["chunks"]), (&"json".into(), &2.into()));
    assert_eq!(told["variables"][0]["name"], "known");
    assert_eq!(told["left_out"][0]["name"], "unknown");
}

#[test]
fn standard_output_gets_the_document_itself() {
    let dir = tempfile::tempdir().unwrap();
    let file = make(dir.path());
    let file = file.to_str().unwrap();
    let printed = good(&["refs", "-v", "known", "-o", "-", "--url", "s3://bucket/run.nc", file]);
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&document["version"], &document["templates"]["u"]),
        (&1.into(), &"s3://bucket/run.nc".into())
    );
    assert_eq!(document["refs"]["known/1"][0], "{{u}}");
    assert!(!dir.path().join("run.nc.json").exists());
}

#[test]
fn a_wrong_url_or_variable_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = make(dir.path());
    let file = file.to_str().unwrap();
    let calls: [&[&str]; 3] = [
        &["refs", file, "--url", "bucket/run.nc"],
        &["refs", file, "-v", "knwon"],
        &["refs", file, "-o", "-", "--json"],
    ];
    for call in calls {
        let run = run(call);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{call:?}");
        assert_eq!(run.err.lines().count(), 1, "{call:?}: {}", run.err);
    }
}
