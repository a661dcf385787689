//! Promises of every command on containers of logs.

use std::fs;
use std::path::Path;

use crate::common::{Mpi, esker, good, have, run};
use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, FillMode, Layout, Owner, Selection, Version,
};
use serde_json::Value;

const VERSIONS: [Version; 3] = [Version::Cdf1, Version::Cdf2, Version::Cdf5];

/// The same calls into a file and into a container: types that need padding, records, holes.
fn written(path: &Path, layout: Layout, version: Version) -> Dataset {
    let options = CreateOptions::new().layout(layout).version(version).fill(FillMode::Fill);
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(5)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(7)).unwrap();
    let byte = def.add_var("byte", ExternalType::Byte, &[x]).unwrap();
    let short = def.add_var("short", ExternalType::Short, &[y, x]).unwrap();
    let double = def.add_var("double", ExternalType::Double, &[y, x]).unwrap();
    let text = def.add_var("text", ExternalType::Char, &[t, y]).unwrap();
    let small = def.add_var("small", ExternalType::Short, &[t, x]).unwrap();
    let temp = def.add_var("temp", ExternalType::Float, &[t, y, x]).unwrap();
    def.put_attr(small, "_FillValue", -99i16).unwrap();
    def.put_attr(temp, "units", "K").unwrap();
    def.put_attr(Owner::Global, "title", "both ways").unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(byte, &Selection::slab(&[1], &[3]), &[1i8, 2, 3]).unwrap();
    ds.put(short, &Selection::strided(&[0, 1], &[3, 2], &[2, 3]), &[1i16, 2, 3, 4, 5, 6]).unwrap();
    ds.put(double, &Selection::all(), &(0..35).map(f64::from).collect::<Vec<_>>()).unwrap();
    ds.put(double, &Selection::slab(&[2, 2], &[2, 3]), &[-1.0f64; 6]).unwrap();
    ds.put(temp, &Selection::slab(&[2, 1, 0], &[1, 2, 7]), &[2.5f32; 14]).unwrap();
    ds.put(small, &Selection::slab(&[0, 0], &[2, 7]), &(0..14).collect::<Vec<i16>>()).unwrap();
    ds.put(text, &Selection::slab(&[1, 0], &[1, 3]), &[b'a', b'b', b'c'].map(esker::Char)).unwrap();
    ds
}

struct Pair {
    _dir: tempfile::TempDir,
    classic: String,
    container: String,
    out: String,
}

fn pair(version: Version) -> Pair {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let pair = Pair {
        classic: name("run.nc"),
        container: name("run.esk"),
        out: name("out.nc"),
        _dir: dir,
    };
    written(Path::new(&pair.classic), Layout::Classic, version).close().unwrap();
    written(Path::new(&pair.container), Layout::Log, version).close().unwrap();
    pair
}

fn same_bytes(a: &str, b: &str) {
    let (a, b) = (fs::read(a).unwrap(), fs::read(b).unwrap());
    let first = a.iter().zip(&b).position(|(a, b)| a != b);
    assert!(a == b, "lengths {} and {}, first difference at {first:?}", a.len(), b.len());
}

#[test]
fn a_replay_is_the_file_that_the_same_calls_make() {
    for version in VERSIONS {
        let pair = pair(version);
        let said = good(&["replay", &pair.container, &pair.out]);
        assert!(said.contains("version 2, 6 variables, 3 records"), "{said}");
        same_bytes(&pair.out, &pair.classic);
        for ranks in ["1", "5"] {
            good(&["replay", "-O", "--sync", "--ranks", ranks, &pair.container, &pair.out]);
            same_bytes(&pair.out, &pair.classic);
        }
        if have("ncdump") {
            let dump = |file: &str| {
                let output = std::process::Command::new("ncdump").arg(file).output().unwrap();
                assert!(output.status.success());
                output.stdout
            };
            // The name of the dataset is the file's.
            let strip = |text: Vec<u8>| {
                let text = String::from_utf8(text).unwrap();
                text.split_once('\n').unwrap().1.to_string()
            };
            assert_eq!(strip(dump(&pair.out)), strip(dump(&pair.classic)));
        }
    }
}

#[test]
fn mpi_ranks_replay_together() {
    let pair = pair(Version::Cdf5);
    for mpi in Mpi::here() {
        let run = mpi.run(3, &["replay", "-O", &pair.container, &pair.out]);
        assert_eq!(run.code, Some(0), "{}: {}", mpi.name, run.err);
        assert_eq!(run.out.matches("6 variables").count(), 1, "{}", run.out);
        same_bytes(&pair.out, &pair.classic);
        let run = mpi.run(3, &["replay", &pair.container, &pair.out]);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert_eq!(run.err.matches("exists already").count(), 1, "{}", run.err);
    }
}

#[test]
fn a_replay_that_cannot_be_made_says_why_and_leaves_nothing() {
    let pair = pair(Version::Cdf2);
    fs::write(&pair.out, "mine").unwrap();
    let refused = run(&["replay", &pair.container, &pair.out]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("exists already (-O replaces it)"), "{}", refused.err);
    assert_eq!(fs::read(&pair.out).unwrap(), b"mine");
    let refused = run(&["replay", &pair.classic, "new.nc"]);
    assert!(refused.err.contains("it is a classic file already"), "{}", refused.err);
    let refused = run(&["replay", "--version", "77", &pair.container, "new.nc"]);
    assert!(refused.err.contains("it has no version 77; the newest is 2"), "{}", refused.err);
    damage(&pair.container, ".data", 40);
    let refused = run(&["replay", "-O", &pair.container, &pair.out]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("does not match its checksum"), "{}", refused.err);
    assert_eq!(fs::read(&pair.out).unwrap(), b"mine");
    let left = fs::read_dir(Path::new(&pair.out).parent().unwrap()).unwrap().count();
    assert_eq!(left, 3, "nothing is left beside");
}

/// Changes a byte of the longest file with this ending.
fn damage(container: &str, ending: &str, at: usize) {
    let files = fs::read_dir(Path::new(container).join("segments")).unwrap();
    let files = files.map(|f| f.unwrap().path());
    let files = files.filter(|f| f.to_str().unwrap().ends_with(ending));
    let path = files.max_by_key(|f| fs::metadata(f).unwrap().len()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

#[test]
fn versions_are_replayed_by_number() {
    let pair = pair(Version::Cdf2);
    good(&["replay", "--version", "1", &pair.container, &pair.out]);
    let told: Value = serde_json::from_str(&good(&["info", "--json", &pair.out])).unwrap();
    assert_eq!(told["records"], 0);
}

#[test]
fn the_blocks_of_a_variable_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let dims = [t, def.add_dim("y", DimLen::Fixed(9)).unwrap()];
    let v = def.add_var("v", ExternalType::Short, &dims).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::slab(&[0, 2], &[3, 4]), &[1i16; 12]).unwrap();
    ds.sync().unwrap();
    ds.put(v, &Selection::strided(&[1, 0], &[1, 3], &[1, 4]), &[2i16; 3]).unwrap();
    ds.close().unwrap();
    let name = path.to_str().unwrap();
    let told: Value = serde_json::from_str(&good(&["info", "--blocks", "--json", name])).unwrap();
    let expected = serde_json::json!([
        {"start": [0, 2], "count": [3, 4], "dense": true, "elements": 12, "bytes": 24, "rank": 0, "version": 2},
        {"start": [1, 0], "count": [1, 9], "dense": false, "elements": 3, "bytes": 6, "rank": 0, "version": 3},
    ]);
    assert_eq!(told["variables"][0]["blocks"], expected);
    let said = good(&["info", "--blocks", name]);
    assert!(said.contains("2 blocks of v") && said.contains("3 of it"), "{said}");
    assert!(!good(&["info", name]).contains("blocks of"));
    // A file is one block.
    let file = dir.path().join("run.nc");
    good(&["copy", name, file.to_str().unwrap()]);
    let told = good(&["info", "--blocks", "--json", file.to_str().unwrap()]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let blocks = &told["variables"][0]["blocks"];
    assert_eq!(
        (&blocks[0]["count"], &blocks[0]["rank"]),
        (&serde_json::json!([3, 9]), &Value::Null)
    );
}

#[test]
fn containers_are_looked_at_like_files() {
    let pair = pair(Version::Cdf5);
    let text = |file: &str| good(&["dump", "-n", "run", file]);
    assert_eq!(text(&pair.container), text(&pair.classic));
    assert_eq!(run(&["diff", &pair.container, &pair.classic]).code, Some(0));
    let info = good(&["info", "--stats", &pair.container]);
    assert!(info.contains("a container of logs, version 2, beside 1 other"), "{info}");
    let told: Value = serde_json::from_str(&good(&["info", "--json", &pair.container])).unwrap();
    assert_eq!((&told["layout"], &told["records"]), (&Value::from("log"), &Value::from(3)));
    let container = &told["container"];
    assert_eq!(container["versions"], serde_json::json!([2, 1]));
    assert_eq!(container["sessions"][0]["ranks"], 1);
    // 3 bytes, 6 shorts, 35 and 6 doubles, 14 floats, 14 shorts, 3 characters.
    assert_eq!(container["data_bytes"], 3 + 12 + 8 * 41 + 56 + 28 + 3);
    let refused = run(&["offsets", &pair.container]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("it is a container"), "{}", refused.err);
    let checked = good(&["check", &pair.container]);
    assert!(checked.contains("valid (CDF-5)"), "{checked}");
    let refused = run(&["check", "--repair", &pair.container]);
    assert!(refused.err.contains("`esker recover` mends"), "{}", refused.err);
    let nothing = good(&["recover", &pair.classic]);
    assert!(nothing.contains("no logs found"), "{nothing}");
}

#[test]
fn a_variable_longer_than_what_is_copied_at_once_goes_into_a_container() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let mut def = esker::Dataset::create(file("long.nc"), esker::CreateOptions::new()).unwrap();
    let x = def.add_dim("x", esker::DimLen::Fixed(6_000_000)).unwrap();
    let v = def.add_var("v", esker::ExternalType::Int, &[x]).unwrap();
    let mut dataset = def.enddef().unwrap();
    let values: Vec<i32> = (0..6_000_000).collect();
    dataset.put(v, &esker::Selection::all(), &values).unwrap();
    dataset.close().unwrap();
    good(&["copy", "--no-history", "--layout", "log", &file("long.nc"), &file("long.esk")]);
    good(&["replay", &file("long.esk"), &file("back.nc")]);
    same_bytes(&file("back.nc"), &file("long.nc"));
}

#[test]
fn copies_go_both_ways() {
    for version in VERSIONS {
        let pair = pair(version);
        good(&["copy", "--no-history", &pair.container, &pair.out]);
        assert_eq!(run(&["diff", &pair.out, &pair.classic]).code, Some(0));
        let log = format!("{}.esk", pair.out);
        good(&["copy", "--no-history", "--layout", "log", &pair.classic, &log]);
        assert_eq!(good(&["dump", "-n", "x", &log]), good(&["dump", "-n", "x", &pair.classic]));
        good(&["replay", "-O", &log, &pair.out]);
        same_bytes(&pair.out, &pair.classic);
        // Again, over what is there, with a range.
        let range = ["copy", "--layout", "log", "-O", "-d", "x=2:6:2", "-v", "temp", "-u"];
        good(&[&range[..], &[&pair.container, &log]].concat());
        let told: Value = serde_json::from_str(&good(&["info", "--json", &log])).unwrap();
        let temp = told["variables"].as_array().unwrap().iter().find(|v| v["name"] == "temp");
        assert_eq!(temp.unwrap()["shape"], serde_json::json!([3, 5, 2]));
        let refused = run(&["copy", "--layout", "log", "-O", &log, &pair.classic]);
        assert!(refused.err.contains("not put in the place of"), "{}", refused.err);
        let refused = run(&["copy", "-O", &pair.classic, &log]);
        assert!(refused.err.contains("not put in the place of"), "{}", refused.err);
        let beside = fs::read_dir(Path::new(&pair.out).parent().unwrap()).unwrap().count();
        assert_eq!(beside, 4, "nothing is left beside");
    }
}

#[test]
fn an_open_writer_does_not_disturb_readers() {
    let pair = pair(Version::Cdf5);
    let path = Path::new(&pair.container);
    let options = esker::OpenOptions::new().writable(true);
    let mut ds = Dataset::open_with(path, options).unwrap();
    let temp = ds.var("temp").unwrap();
    let records = |file: &str| {
        let told: Value = serde_json::from_str(&good(&["info", "--json", file])).unwrap();
        told["records"].as_u64().unwrap()
    };
    ds.append(temp, &[1.0f32; 35]).unwrap();
    assert_eq!(records(&pair.container), 3, "the last version");
    ds.sync().unwrap();
    assert_eq!(records(&pair.container), 4);
    ds.append(temp, &[1.0f32; 35]).unwrap();
    good(&["replay", &pair.container, &pair.out]);
    assert_eq!(records(&pair.out), 4);
    ds.close().unwrap();
    assert_eq!(records(&pair.container), 5);
}

#[test]
fn what_a_killed_writer_left_is_recovered_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let name = path.to_str().unwrap();
    let ds = written(&path, Layout::Log, Version::Cdf5);
    // A read writes out what was appended. Then the writer is gone.
    ds.get::<f64>(ds.var("double").unwrap(), &Selection::all()).unwrap();
    drop(ds);
    let told = |arguments: &[&str]| -> Value {
        let all = [&["recover", "--json"], arguments, &[name]].concat();
        serde_json::from_str(&good(&all)).unwrap()
    };
    let would = told(&["--dry-run"]);
    assert_eq!((&would["found_version"], &would["made_version"]), (&1.into(), &2.into()));
    assert_eq!((&would["records_before"], &would["records"]), (&0.into(), &3.into()));
    assert_eq!(would["recovered"][0]["writes"], 7);
    assert!(good(&["recover", name]).contains("made version 2, with 3 records instead of 0"));
    assert!(good(&["recover", name]).contains("version 2 has everything"));
    let classic = dir.path().join("run.nc");
    written(&classic, Layout::Classic, Version::Cdf5).close().unwrap();
    assert_eq!(run(&["diff", name, classic.to_str().unwrap()]).code, Some(0));
}

#[test]
fn a_damage_is_told_with_its_place_and_left_out() {
    let pair = pair(Version::Cdf5);
    // Behind 3 bytes and 6 shorts there are 35 doubles.
    damage(&pair.container, ".data", 15 + 100);
    let checked = run(&["check", &pair.container]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    for words in ["rank 0", ".0.data", "variable \"double\"", "280 bytes of values do not match"] {
        assert!(checked.out.contains(words), "{words}: {}", checked.out);
    }
    let unread = run(&["dump", "-v", "double", &pair.container]);
    assert!(unread.err.contains("rank 0 does not match its checksum"), "{}", unread.err);
    assert!(good(&["dump", "-v", "temp", &pair.container]).contains("2.5"));
    let recovered = run(&["recover", &pair.container]);
    assert_eq!(recovered.code, Some(1), "something that was promised is lost");
    assert!(recovered.out.contains("lost: rank 0, segments/"), "{}", recovered.out);
    assert!(recovered.out.contains("made version 3"), "{}", recovered.out);
    assert!(good(&["check", &pair.container]).contains("valid"));
    let told = good(&["dump", "-v", "double", &pair.container]);
    assert_eq!(told.matches("-1").count(), 6, "{told}");
    assert!(good(&["recover", &pair.container]).contains("version 3 has everything"));
}

#[test]
fn netcdf_reads_a_replay() {
    let Some(python) = esker_testkit::python::with("netCDF4") else { return };
    let pair = pair(Version::Cdf5);
    good(&["replay", &pair.container, &pair.out]);
    let script = "
import sys, netCDF4, numpy as np
d = netCDF4.Dataset(sys.argv[1])
assert d['double'][:].shape == (5, 7)
expected = np.arange(35.0).reshape(5, 7); expected[2:4, 2:5] = -1
assert (d['double'][:] == expected).all()
assert d['byte'][:].tolist()[1:4] == [1, 2, 3]
assert d['small'][:2].tolist() == np.arange(14).reshape(2, 7).tolist()
assert d['small'][2].mask.all() and d['temp'][0].mask.all()
assert (d['temp'][2, 1:3] == 2.5).all() and d['temp'].units == 'K'
";
    let checked = std::process::Command::new(&python).args(["-c", script, &pair.out]).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_wrong_name_is_a_sentence() {
    let output = esker(&["recover", "nowhere.esk"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "esker: nowhere.esk: there is nothing of this name\n");
}

#[test]
fn every_command_reads_the_version_that_a_path_names() {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let run_esk = name("run.esk");
    let mut def = Dataset::create(&run_esk, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let mut numbers = Vec::new();
    for value in [10, 20, 30] {
        ds.put(v, &Selection::all(), &[value, value + 1, value + 2]).unwrap();
        ds.sync().unwrap();
        numbers.push(ds.container_version().unwrap());
    }
    ds.close().unwrap();
    let [first, second, third] = numbers[..] else { panic!("{numbers:?}") };
    let at = |version: u64| format!("{run_esk}@{version}");
    assert!(good(&["dump", &at(first)]).contains("v = 10, 11, 12 ;"));
    assert!(good(&["dump", &at(second)]).contains("v = 20, 21, 22 ;"));
    assert_eq!(good(&["dump", &at(third)]), good(&["dump", &run_esk]));
    assert_eq!(run(&["diff", &at(third), &run_esk]).code, Some(0));
    let differ = run(&["diff", &at(first), &at(second)]);
    assert_eq!(differ.code, Some(1), "{}", differ.err);
    assert!(differ.out.contains("v"), "{}", differ.out);
    let out = name("out.nc");
    good(&["copy", &at(second), &out]);
    assert!(good(&["dump", &out]).contains("v = 20, 21, 22 ;"));
    good(&["replay", "-O", &at(first), &out]);
    assert!(good(&["dump", &out]).contains("v = 10, 11, 12 ;"));
    let facts: Value = serde_json::from_str(&good(&["info", "--json", &at(second)])).unwrap();
    assert_eq!(facts["container"]["version"], second, "{facts}");
    good(&["check", &at(first)]);
    for (wrong, said) in [
        (at(99), "it has no version 99"),
        (format!("{run_esk}@nightly"), "there is no tag of this name"),
        (format!("{run_esk}@"), "versions are numbers"),
        (name("none.esk@1"), "none.esk@1"),
    ] {
        let said_of = run(&["dump", &wrong]);
        assert_eq!(said_of.code, Some(2), "{wrong}: {}", said_of.err);
        assert!(said_of.err.contains(said), "{wrong}: {}", said_of.err);
    }
    let open = esker::OpenOptions::new().writable(true);
    let error = Dataset::open_with(at(first), open).unwrap_err().to_string();
    assert!(error.contains("it can be read, not written"), "{error}");
    for (asked, fits) in [(first, true), (second, false)] {
        let open = esker::OpenOptions::new().container_version(asked);
        let opened = Dataset::open_with(at(first), open);
        assert_eq!(opened.is_ok(), fits, "{:?}", opened.err());
    }
    // A file of that name is that file.
    fs::copy(&out, name("plain.nc@7")).unwrap();
    assert!(good(&["dump", &name("plain.nc@7")]).contains("v = 10, 11, 12 ;"));
}
