//! Promises of the commands that make, check, copy and compare whole files. What they do in
//! detail is tested where it is done, in esker-tools.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{classic_files, esker, have, run};
use serde_json::Value;

const CDL: &str = "netcdf small {
dimensions:
\ttime = UNLIMITED ; // (3 currently)
\tlat = 4 ;
variables:
\tfloat lat(lat) ;
\t\tlat:units = \"degrees_north\" ;
\tshort t(time, lat) ;
\tdouble p(time, lat) ;

// global attributes:
\t\t:title = \"small\" ;
data:

 lat = 10, 20, 30, 40 ;

 t =
  0, 1, 2, 3,
  10, 11, 12, 13,
  20, 21, 22, 23 ;

 p =
  1, 2, 3, 4,
  5, 6, 7, 8,
  9, 10, 11, 12 ;
}
";

/// A directory with `small.cdl` and `small.nc` in it, and a way to call esker there.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::write(place.path("small.cdl"), CDL).unwrap();
        place.good(&["gen", "small.cdl", "-o", "small.nc"]);
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> crate::common::Run {
        esker(arguments).current_dir(self.0.path()).output().unwrap().into()
    }

    fn good(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
        run.out
    }

    fn json(&self, arguments: &[&str], code: i32) -> Value {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.err);
        serde_json::from_str(&run.out).expect("the output is JSON")
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }
}

#[test]
fn dump_and_gen_are_each_others_inverse() {
    let place = Place::new();
    assert_eq!(place.good(&["dump", "small.nc"]), CDL);
    let mut child = esker(&["gen", "-", "-o", "again.nc"])
        .current_dir(place.0.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(CDL.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(place.bytes("again.nc"), place.bytes("small.nc"));
}

#[test]
fn the_letters_of_dump_are_those_of_ncdump() {
    if !have("ncdump") {
        return;
    }
    let place = Place::new();
    let letters: [&[&str]; 10] = [
        &["-h"],
        &["-c"],
        &["-v", "t,lat"],
        &["-k"],
        &["-hs"],
        &["-x"],
        &["-p", "3,4"],
        &["-n", "other"],
        &["-l", "40"],
        &["-b", "c"],
    ];
    for options in letters {
        let peer = Command::new("ncdump")
            .args(options)
            .arg("small.nc")
            .current_dir(place.0.path())
            .output()
            .unwrap();
        let ours = place.good(&[&["dump"], options, &["small.nc"]].concat());
        assert_eq!(ours, String::from_utf8_lossy(&peer.stdout), "{options:?}");
    }
}

#[test]
fn the_values_of_classic_files_survive_dump_and_gen() {
    let place = Place::new();
    for file in classic_files().iter().filter(|f| f.metadata().unwrap().len() < 100_000) {
        let path = file.to_str().unwrap();
        // Text in a file may be of any encoding.
        let dump = esker(&["dump", "-p", "9,17", path]).output().unwrap();
        std::fs::write(place.path("x.cdl"), dump.stdout).unwrap();
        let kind = place.good(&["dump", "-k", path]);
        let made = place.run(&["gen", "-k", kind.trim(), "x.cdl", "-o", "x.nc"]);
        assert_eq!(made.code, Some(0), "{path}: {}", made.err);
        // CDL does not keep the zero at the end of a C string, so attributes may differ by it.
        let report = place.run(&["diff", "--json", path, "x.nc"]);
        let report: Value = serde_json::from_str(&report.out).expect("the output is JSON");
        assert_eq!(report["values"], Value::Array(Vec::new()), "{path}");
        assert_eq!(report["not_compared"], Value::Array(Vec::new()), "{path}");
    }
}

#[test]
fn gen_makes_the_kind_that_is_asked_for() {
    let place = Place::new();
    let kinds = [
        (&["-k", "classic"][..], "classic"),
        (&["-3"], "classic"),
        (&["-k", "64-bit offset"], "64-bit offset"),
        (&["-6"], "64-bit offset"),
        (&["--kind", "5"], "cdf5"),
        (&["-5"], "cdf5"),
    ];
    for (options, kind) in kinds {
        place.good(&[&["gen", "small.cdl", "-o", "kind.nc"], options].concat());
        assert_eq!(place.good(&["dump", "-k", "kind.nc"]).trim(), kind, "{options:?}");
    }
}

#[test]
fn gen_without_an_output_only_checks_the_text() {
    let place = Place::new();
    std::fs::remove_file(place.path("small.nc")).unwrap();
    let run = place.run(&["gen", "small.cdl"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
    assert!(!place.path("small.nc").exists());
    place.good(&["gen", "-b", "small.cdl"]);
    assert!(place.path("small.nc").exists(), "-b takes the name in the text");
    std::fs::write(place.path("bad.cdl"), "netcdf bad {\nvariables:\n\tflaot x ;\n}\n").unwrap();
    let run = place.run(&["gen", "bad.cdl", "-o", "bad.nc"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("esker: bad.cdl: line 3"), "{}", run.err);
    assert!(!place.path("bad.nc").exists());
}

#[test]
fn a_long_dump_stops_when_nobody_reads_it() {
    let place = Place::new();
    let numbers: Vec<String> = (0..200_000).map(|n| n.to_string()).collect();
    let text = format!(
        "netcdf long {{ dimensions: n = 200000 ; variables: int v(n) ; data: v = {} ; }}",
        numbers.join(", ")
    );
    std::fs::write(place.path("long.cdl"), text).unwrap();
    place.good(&["gen", "long.cdl", "-o", "long.nc"]);
    let path = place.path("long.nc");
    let (line, code, err) =
        crate::common::first_line_then_closed(&["dump", path.to_str().unwrap()]);
    assert_eq!((line.as_str(), code, err.as_str()), ("netcdf long {\n", Some(0), ""));
}

/// Spoils the padding after the first name, `time` having none: that of `lat`.
fn spoil(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(4).position(|w| w == b"lat\0").unwrap() + 3;
    bytes[at] = b'!';
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn check_says_0_valid_1_invalid_2_cannot_tell() {
    let place = Place::new();
    std::fs::copy(place.path("small.nc"), place.path("bad.nc")).unwrap();
    spoil(&place.path("bad.nc"));
    assert!(place.good(&["check", "small.nc"]).contains("small.nc: valid (CDF-1)"));
    let bad = place.run(&["check", "small.nc", "bad.nc"]);
    assert_eq!((bad.code, bad.err.as_str()), (Some(1), ""));
    assert!(bad.out.contains("bad.nc: error: [0x"), "{}", bad.out);
    assert!(bad.out.contains("dimension \"lat\""), "{}", bad.out);
    let none = place.run(&["check", "none.nc", "bad.nc", "small.nc"]);
    assert_eq!(none.code, Some(2));
    assert!(none.err.starts_with("esker: none.nc: "), "{}", none.err);
    assert!(none.out.contains("small.nc: valid"), "the others are checked: {}", none.out);
    let quiet = place.run(&["check", "-q", "bad.nc"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (Some(1), "", ""));
    let json = place.json(&["check", "--json", "bad.nc"], 1);
    assert_eq!((&json[0]["verdict"], &json[0]["format"]), (&"invalid".into(), &"CDF-1".into()));
    assert_eq!(json[0]["findings"][0]["severity"], "error");
    assert!(json[0]["findings"][0]["offset"].is_u64());
}

#[test]
fn repair_mends_a_copy_unless_told_otherwise() {
    let place = Place::new();
    let sound = place.bytes("small.nc");
    std::fs::copy(place.path("small.nc"), place.path("bad.nc")).unwrap();
    spoil(&place.path("bad.nc"));
    let spoilt = place.bytes("bad.nc");
    place.good(&["check", "--repair", "bad.nc"]);
    assert_eq!(place.bytes("bad.nc"), spoilt);
    assert_eq!(place.bytes("bad.repaired.nc"), sound);
    place.good(&["check", "--repair", "bad.nc", "-o", "good.nc"]);
    assert_eq!(place.bytes("good.nc"), sound);
    place.good(&["check", "--repair", "--in-place", "bad.nc"]);
    assert_eq!(place.bytes("bad.nc"), sound);
}

#[test]
fn copy_takes_ranges_in_both_notations() {
    let place = Place::new();
    let python =
        ["copy", "small.nc", "a.nc", "--no-history", "--dim", "lat=1:4:2", "--dim", "time=0"];
    place.good(&python);
    let nco = ["copy", "small.nc", "b.nc", "--no-history", "-d", "lat,1,3,2", "-d", "time,0,0"];
    place.good(&nco);
    assert_eq!(place.bytes("a.nc"), place.bytes("b.nc"));
    let dump = place.good(&["dump", "-v", "t,lat", "a.nc"]);
    assert!(dump.contains(" lat = 20, 40 ;") && dump.contains(" t =\n  1, 3 ;"), "{dump}");
}

#[test]
fn copy_keeps_everything_in_every_kind() {
    let place = Place::new();
    for kind in ["1", "64-bit-offset", "cdf5"] {
        place.good(&["copy", "small.nc", "kind.nc", "-O", "--kind", kind, "--no-history"]);
        let report = place.json(&["diff", "--json", "small.nc", "kind.nc"], 0);
        assert_eq!(report["same"], true, "{kind}");
        place.good(&["copy", "kind.nc", "back.nc", "-O", "-k", "1", "--no-history"]);
        assert_eq!(place.bytes("back.nc"), place.bytes("small.nc"), "{kind}");
    }
}

#[test]
fn copy_adds_to_the_history_unless_told_not_to() {
    let place = Place::new();
    place.good(&["copy", "small.nc", "a.nc"]);
    let output = esker(&["copy", "a.nc", "b b.nc"])
        .current_dir(place.0.path())
        .env("SOURCE_DATE_EPOCH", "1794720495")
        .output()
        .unwrap();
    assert!(output.status.success());
    let history = |name: &str| {
        let info = place.json(&["info", "--json", name], 0);
        info["attributes"]["history"].as_str().unwrap_or_default().to_string()
    };
    let first = history("a.nc");
    assert!(first.ends_with("Z: esker copy small.nc a.nc"), "{first}");
    let both = format!("2026-11-15T05:28:15Z: esker copy a.nc 'b b.nc'\n{first}");
    assert_eq!(history("b b.nc"), both, "the newest line is the first, as NCO has it");
    place.good(&["copy", "small.nc", "c.nc", "--no-history"]);
    assert_eq!(history("c.nc"), "");
}

#[test]
fn copy_never_replaces_a_file_unasked() {
    let place = Place::new();
    std::fs::write(place.path("mine.nc"), "mine").unwrap();
    let run = place.run(&["copy", "small.nc", "mine.nc"]);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.err, "esker: mine.nc: exists already (-O replaces it)\n");
    assert_eq!(place.bytes("mine.nc"), b"mine");
    place.good(&["copy", "-O", "small.nc", "mine.nc"]);
    place.good(&["check", "mine.nc"]);
    let run = place.run(&["copy", "-O", "small.nc", "small.nc"]);
    assert_eq!(run.code, Some(2), "a file cannot be copied onto itself");
}

#[test]
fn copy_chooses_variables_and_fixes_the_unlimited_dimension() {
    let place = Place::new();
    let names = |file: &str| {
        let info = place.json(&["info", "--json", file], 0);
        let names = info["variables"].as_array().unwrap().iter();
        names.map(|v| v["name"].as_str().unwrap().to_string()).collect::<Vec<_>>().join(" ")
    };
    place.good(&["copy", "small.nc", "some.nc", "--vars", "t"]);
    assert_eq!(names("some.nc"), "lat t", "coordinates come along");
    place.good(&["copy", "small.nc", "rest.nc", "--exclude", "t,lat"]);
    assert_eq!(names("rest.nc"), "p");
    place.good(&["copy", "small.nc", "fixed.nc", "-u", "--align", "1k"]);
    let offsets = place.json(&["offsets", "--json", "fixed.nc"], 0);
    assert_eq!(offsets["record_begin"], Value::Null);
    for var in offsets["variables"].as_array().unwrap() {
        assert_eq!(var["begin"].as_u64().unwrap() % 1024, 0, "{var}");
    }
}

#[test]
fn diff_says_0_same_1_different_2_failure() {
    let place = Place::new();
    let other = CDL.replace("20, 21, 22, 23", "20, 21, 22, 24").replace("11, 12 ;", "11, 12.001 ;");
    std::fs::write(place.path("other.cdl"), other).unwrap();
    place.good(&["gen", "other.cdl", "-o", "other.nc"]);
    assert_eq!(place.good(&["diff", "small.nc", "small.nc"]), "");
    let run = place.run(&["diff", "small.nc", "other.nc"]);
    assert_eq!((run.code, run.err.as_str()), (Some(1), ""));
    assert!(run.out.contains("t[2, 3]: 23 and 24"), "{}", run.out);
    assert!(run.out.contains("p[2, 3]: 12.0 and 12.001"), "{}", run.out);
    place.good(&["diff", "--vars", "p", "--atol", "0.01", "small.nc", "other.nc"]);
    place.good(&["diff", "--rtol", "0.1", "small.nc", "other.nc"]);
    place.good(&["diff", "--header-only", "small.nc", "other.nc"]);
    let quiet = place.run(&["diff", "-q", "small.nc", "other.nc"]);
    assert_eq!((quiet.code, quiet.out.as_str()), (Some(1), ""));
    let json = place.json(&["diff", "--json", "--max", "0", "small.nc", "other.nc"], 1);
    assert_eq!(json["values"][0]["differing"], 1);
    assert_eq!(json["values"][0]["differences"], Value::Array(Vec::new()));
    let run = place.run(&["diff", "small.nc", "none.nc"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("esker: none.nc: "), "{}", run.err);
}

#[test]
fn an_unknown_variable_fails_with_its_name_in_every_command() {
    let place = Place::new();
    let calls: [&[&str]; 3] = [
        &["dump", "-v", "lot", "small.nc"],
        &["copy", "--vars", "lot", "small.nc", "x.nc"],
        &["diff", "--vars", "lot", "small.nc", "small.nc"],
    ];
    for call in calls {
        let run = place.run(call);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{call:?}");
        assert!(run.err.contains("did you mean \"lat\"?"), "{call:?}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{call:?}: {}", run.err);
    }
    assert_eq!(run(&["copy", "--dim", "lat=1:2"]).code, Some(2));
}
