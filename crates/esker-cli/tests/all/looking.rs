//! Promises of the commands that look at files: info and offsets.

use std::path::Path;
use std::process::Command;

use crate::common::{classic_files, good, have, run, shared_data};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Owner, Selection, Version};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(arguments)).expect("the output is JSON")
}

/// A file with a record variable, a gap after a short one, and a missing value.
fn small(path: &Path) {
    let mut define = Dataset::create(path, CreateOptions::new().version(Version::Cdf1)).unwrap();
    let time = define.add_dim("time", DimLen::Unlimited).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(3)).unwrap();
    let flag = define.add_var("flag", ExternalType::Byte, &[x]).unwrap();
    let temp = define.add_var("temperature", ExternalType::Float, &[time, x]).unwrap();
    let name = define.add_var("name", ExternalType::Char, &[x]).unwrap();
    define.put_attr(temp, "units", "K").unwrap();
    define.put_attr(temp, "_FillValue", -1.0f32).unwrap();
    define.put_attr(Owner::Global, "title", "small\nfile").unwrap();
    let mut dataset = define.enddef().unwrap();
    dataset.put(flag, &Selection::all(), &[1i8, -127, 3]).unwrap();
    dataset.append(temp, &[1.0f32, -1.0, f32::NAN, 2.0, 3.0, 6.0]).unwrap();
    dataset.put(name, &Selection::all(), &b"ab\0".map(esker::Char)).unwrap();
    dataset.close().unwrap();
}

fn with_small(test: impl FnOnce(&str)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.nc");
    small(&path);
    test(path.to_str().unwrap());
}

#[test]
fn info_tells_kind_size_dimensions_variables_and_attributes() {
    with_small(|path| {
        let text = good(&["info", path]);
        let bytes = std::fs::metadata(path).unwrap().len();
        assert!(text.contains("CDF-1 (classic)"), "{text}");
        assert!(text.contains(&format!("{bytes} B, 2 dimensions, 3 variables")), "{text}");
        assert!(text.contains("time       2  unlimited\n"), "{text}");
        assert!(text.contains("time 2 × x 3  record"), "{text}");
        assert!(text.contains("title = \"small\\nfile\""), "control characters are shown: {text}");
        let verbose = good(&["info", "-v", path]);
        assert!(verbose.contains("attributes of temperature\n  units = \"K\"\n"), "{verbose}");
    });
}

#[test]
fn statistics_leave_out_what_is_missing() {
    with_small(|path| {
        let info = json(&["info", "--stats", "--json", path]);
        let of = |i: usize| info["variables"][i]["statistics"].clone();
        // Bytes have no default fill value: -127 counts.
        let flag = serde_json::json!(
            {"count": 3, "missing": 0, "nan": 0, "min": -127, "max": 3, "mean": -41.0});
        assert_eq!(of(0), flag);
        let temperature = serde_json::json!(
            {"count": 6, "missing": 1, "nan": 1, "min": 1.0, "max": 6.0, "mean": 3.0});
        assert_eq!(of(1), temperature);
        let name = serde_json::json!(
            {"count": 3, "missing": 1, "nan": 0, "min": null, "max": null, "mean": null});
        assert_eq!(of(2), name);
    });
}

#[test]
fn statistics_of_a_real_file_equal_those_of_numpy() {
    let Some(data) = shared_data() else { return };
    let path = data.join("netcdf_classic/ferret_coads_climatology.cdf");
    let info = json(&["info", "--stats", "--json", "--vars", "SST,SLP", path.to_str().unwrap()]);
    // netCDF4-python 1.7 and numpy in f64: size, masked, min, max, mean.
    let expected = [
        ("SST", 89_622, -2.6, 33.150_463, 18.095_341_613_896_49),
        ("SLP", 86_592, 964.8, 1_047.299_9, 1_011.957_536_222_390_6),
    ];
    for (i, (name, missing, min, max, mean)) in expected.into_iter().enumerate() {
        let var = &info["variables"][i];
        assert_eq!(var["name"], name);
        let found = &var["statistics"];
        assert_eq!((&found["count"], &found["missing"]), (&194_400.into(), &missing.into()));
        assert_eq!((&found["min"], &found["max"]), (&min.into(), &max.into()));
        let close = (found["mean"].as_f64().unwrap() - mean).abs() < 1e-9;
        assert!(close, "{name}: {}", found["mean"]);
    }
}

#[test]
fn a_file_that_was_cut_short_still_tells_what_it_can() {
    with_small(|path| {
        let whole = std::fs::read(path).unwrap();
        std::fs::write(path, &whole[..whole.len() - 4]).unwrap();
        let run = run(&["info", "--stats", path]);
        assert_eq!(run.code, Some(2), "{}", run.err);
        assert!(run.err.contains("temperature") && run.err.lines().count() == 1, "{}", run.err);
        assert!(run.out.contains("are missing"), "{}", run.out);
        assert!(run.out.contains("  flag "), "{}", run.out);
    });
}

#[test]
fn an_unknown_variable_is_named_with_its_nearest() {
    with_small(|path| {
        for command in ["info", "offsets"] {
            let run = run(&[command, "--vars", "temprature", path]);
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
            assert!(run.err.starts_with(&format!("esker: {path}: ")), "{}", run.err);
            assert!(run.err.contains("did you mean \"temperature\"?"), "{}", run.err);
        }
    });
}

#[test]
fn long_output_stops_when_nobody_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("long.nc");
    let mut define = Dataset::create(&path, CreateOptions::new()).unwrap();
    let time = define.add_dim("time", DimLen::Unlimited).unwrap();
    let var = define.add_var("v", ExternalType::Byte, &[time]).unwrap();
    let mut dataset = define.enddef().unwrap();
    dataset.append(var, &vec![1i8; 200_000]).unwrap();
    dataset.close().unwrap();
    let path = path.to_str().unwrap();
    for call in [&["offsets", "-r", path][..], &["offsets", "-r", "--json", path]] {
        let (line, code, err) = crate::common::first_line_then_closed(call);
        assert!(!line.is_empty(), "{call:?}");
        assert_eq!((code, err.as_str()), (Some(0), ""), "{call:?}");
    }
}

#[test]
fn colours_come_only_when_wanted() {
    with_small(|path| {
        assert!(!good(&["info", path]).contains('\x1b'));
        assert!(good(&["--color", "always", "info", path]).contains('\x1b'));
        assert!(good(&["info", path, "--color=always"]).contains('\x1b'));
        let plain = crate::common::esker(&["info", path]).env("NO_COLOR", "1").output().unwrap();
        assert!(!plain.stdout.contains(&0x1b));
    });
}

#[test]
fn every_classic_file_can_be_looked_at() {
    for file in classic_files() {
        let path = file.to_str().unwrap();
        let info = json(&["info", "--json", path]);
        let length = std::fs::metadata(&file).unwrap().len();
        assert_eq!(info["bytes"], length, "{path}");
        assert!(good(&["info", path]).contains("CDF-"), "{path}");
        assert!(good(&["offsets", path]).contains("CDF-"), "{path}");
    }
}

#[test]
fn the_malformed_files_give_one_line_and_no_panic() {
    let Some(data) = shared_data() else { return };
    let mut count = 0;
    for folder in ["other", "pnetcdf"] {
        for entry in std::fs::read_dir(data.join("malformed_classic").join(folder)).unwrap() {
            let file = entry.unwrap().path();
            count += 1;
            for call in [&["info", "--stats"][..], &["offsets"], &["dump"], &["check"]] {
                let run = run(&[call, &[file.to_str().unwrap()]].concat());
                // A signal, a panic (101) or an abort would be something else.
                assert!(matches!(run.code, Some(0..=2)), "{file:?}: {:?} {}", run.code, run.err);
                assert!(run.err.lines().count() <= 1, "{file:?}: {}", run.err);
                assert_eq!(run.code == Some(2), !run.err.is_empty(), "{call:?} {file:?}");
            }
        }
    }
    assert!(count > 20, "the malformed files are there");
}

#[test]
fn the_text_of_offsets_is_that_of_ncoffsets() {
    if !have("ncoffsets") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("small.nc");
    small(&own);
    let mut files = classic_files();
    files.push(own);
    for file in files {
        let path = file.to_str().unwrap();
        for options in [&["-sg"][..], &["-r"], &["-sgr"]] {
            let peer = Command::new("ncoffsets").args(options).arg(path).output().unwrap();
            let peer = String::from_utf8(peer.stdout).unwrap();
            // Deliberately different: ncoffsets says "11st", "12nd", "13rd".
            let peer = peer.replace("11st rec", "11th rec").replace("12nd rec", "12th rec");
            let peer = peer.replace("13rd rec", "13th rec");
            let ours = good(&[&["offsets", "--text"], options, &[path]].concat());
            // One old file has zero bytes in its names, where C strings end.
            let ours = ours.replace('\0', "");
            for (line, (ours, peer)) in ours.lines().zip(peer.lines()).enumerate() {
                assert_eq!(ours, peer, "line {line} of {path} {options:?}");
            }
            assert_eq!(ours.lines().count(), peer.lines().count(), "{path} {options:?}");
        }
        let peer = Command::new("ncoffsets").args(["-x", path]).output().unwrap();
        assert_eq!(good(&["offsets", "-x", path]), String::from_utf8_lossy(&peer.stdout), "{path}");
    }
}

#[test]
fn offsets_tells_padding_gaps_and_alignment() {
    with_small(|path| {
        let offsets = json(&["offsets", "--json", "-r", path]);
        let vars = &offsets["variables"];
        assert_eq!(vars[0]["name"], "flag");
        assert_eq!(vars[0]["begin"], offsets["header_bytes"]);
        assert_eq!((&vars[0]["bytes"], &vars[0]["padding"]), (&3.into(), &1.into()));
        assert_eq!((&vars[1]["name"], &vars[1]["gap"]), (&"name".into(), &0.into()));
        assert_eq!(vars[2]["layout"], "record");
        let begin = vars[2]["begin"].as_u64().unwrap();
        let records = serde_json::json!([[begin, begin + 12], [begin + 12, begin + 24]]);
        assert_eq!(vars[2]["records"], records);
        assert_eq!(offsets["data_end"], offsets["file_bytes"]);
    });
}
