//! Promises of the commands to files with decomposed variables.

use std::path::Path;

use crate::common::{Mpi, good, have, run};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};
use serde_json::Value;

/// Three ranks with a column each of a 2 x 4 array, and the last column nobody's.
fn make(path: &Path) {
    let outcomes = esker::launch(3, |comm| -> esker::Result<()> {
        let rank = comm.rank() as u64;
        let mut def = Dataset::create(path, CreateOptions::new().comm(comm))?;
        let time = def.add_dim("time", DimLen::Unlimited)?;
        let y = def.add_dim("y", DimLen::Fixed(2))?;
        let x = def.add_dim("x", DimLen::Fixed(4))?;
        let map = def.add_decomposition(&[y, x], &Selection::slab(&[0, rank], &[2, 1]))?;
        let t = def.add_decomposed_var("t", ExternalType::Short, &[time], map)?;
        let mut ds = def.enddef()?;
        let data = [rank as i16, 10 + rank as i16];
        ds.put_all(t, &Selection::blob(&[0], &[1]), &data)?;
        ds.close()
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

#[test]
fn info_names_decomposed_variables_and_their_maps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    make(&path);
    let text = good(&["info", path.to_str().unwrap()]);
    assert!(text.contains("record, by D1"), "{text}");
    assert!(text.contains("y 2 × x 4") && text.contains("75"), "{text}");
    let told: Value =
        serde_json::from_str(&good(&["info", "--json", path.to_str().unwrap()])).unwrap();
    let map = &told["decompositions"][0];
    assert_eq!(
        (&map["name"], &map["ranks"], &map["covered"]),
        (&"D1".into(), &3.into(), &6.into())
    );
    let all = told["variables"].as_array().unwrap();
    let t = all.iter().find(|variable| variable["name"] == "t").unwrap();
    assert_eq!(t["decomposition"], "D1");
}

#[test]
fn dump_and_diff_and_check_see_the_file_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    make(&path);
    let path = path.to_str().unwrap();
    let dumped = good(&["dump", path]);
    assert!(dumped.contains("short t(time, D1.nelems) ;"), "{dumped}");
    assert!(dumped.contains("0, 10, 1, 11, 2, 12"), "{dumped}");
    if have("ncdump") {
        let theirs = std::process::Command::new("ncdump").arg(path).output().unwrap();
        // Seals are the header's own, as its lengths are.
        let theirs = String::from_utf8(theirs.stdout).unwrap();
        let lines = theirs.lines().filter(|line| !line.contains(":__esker_seal = "));
        assert_eq!(dumped.lines().collect::<Vec<_>>(), lines.collect::<Vec<_>>());
    }
    good(&["check", path]);
    good(&["diff", path, path]);
}

#[test]
fn a_canonical_copy_has_ordinary_variables() {
    let dir = tempfile::tempdir().unwrap();
    let (path, made) = (dir.path().join("run.nc"), dir.path().join("all.nc"));
    make(&path);
    let (path, made) = (path.to_str().unwrap(), made.to_str().unwrap());
    let whole = "short t(time, y, x) ;";
    let look = || {
        let dumped = good(&["dump", made]);
        assert!(dumped.contains(whole) && !dumped.contains("D1"), "{dumped}");
        assert!(dumped.contains("0, 1, 2, _,\n  10, 11, 12, _ ;"), "{dumped}");
    };
    good(&["copy", "--canonical", path, made]);
    look();
    good(&["copy", "-O", "--canonical", "--filter", "shuffle zstd", "--smallest=0", path, made]);
    look();
    let ds = Dataset::open(made).unwrap();
    let filters = ds.chunking(ds.var("t").unwrap()).map(|c| c.pipeline.to_string());
    assert_eq!(filters.as_deref(), Some("shuffle zstd,3"));
    drop(ds);
    let again = run(&["copy", "--canonical", path, made]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("exists already (-O replaces it)"), "{}", again.err);
    for mpi in Mpi::here() {
        let run = mpi.run(3, &["copy", "--canonical", "-O", path, made]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        look();
        let run = mpi.run(2, &["copy", "--canonical", path, made]);
        assert_eq!(run.code, Some(2), "{}: {}", mpi.name, run.err);
        assert_eq!(run.err.matches("esker: ").count(), 1, "{}: {}", mpi.name, run.err);
    }
}
