//! Compressing files and turning them back.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{classic_files, good, have, python, run};
use esker::{Dataset, Selection};
use serde_json::Value;

const LOSSLESS: [&[&str]; 6] = [
    &["--auto"],
    &["--filter", "shuffle zstd,3"],
    &["--filter", "bitshuffle", "--filter", "lz4"],
    &["--filter", "shuffle", "--filter", "deflate,4", "--filter", "crc32c"],
    &["--auto", "--filter", "pco,4"],
    &["--auto", "--filter", "zfp,reversible"],
];

fn text(path: &Path) -> &str {
    path.to_str().expect("a name of text")
}

/// `esker copy --no-history -O …`, which must succeed.
fn copy(options: &[&str], from: &Path, to: &Path) -> String {
    good(&[&["copy", "--no-history", "-O"], options, &[text(from), text(to)]].concat())
}

fn same(a: &Path, b: &Path) {
    let run = run(&["diff", text(a), text(b)]);
    assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
}

#[test]
fn real_files_come_back_from_every_lossless_pipeline() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let mut pairs = Vec::new();
    for (number, real) in classic_files().iter().enumerate() {
        let len = std::fs::metadata(real).expect("its length").len();
        // Small files pass all of them, the others take turns.
        let turns = LOSSLESS.iter().enumerate();
        let turns = turns.filter(|(turn, _)| len < 50_000 || number % LOSSLESS.len() == *turn);
        let plain = file(&format!("{number}.plain.nc"));
        copy(&[], real, &plain);
        for (turn, pipeline) in turns {
            let (chunked, back) = (file("chunked.nc"), file(&format!("{number}.{turn}.nc")));
            copy(&[pipeline, &["--smallest", "0"][..]].concat(), real, &chunked);
            same(&chunked, real);
            validate(&chunked);
            good(&["check", "-q", text(&chunked)]);
            copy(&["--contiguous"], &chunked, &back);
            let (back_bytes, plain_bytes) = (std::fs::read(&back), std::fs::read(&plain));
            assert!(back_bytes.expect("it") == plain_bytes.expect("it"), "{real:?} {pipeline:?}");
            pairs.push((real.clone(), back));
        }
    }
    compare_with_netcdf4(&pairs);
}

/// PnetCDF's checker finds nothing wrong.
fn validate(path: &Path) {
    if !have("ncvalidator") {
        return;
    }
    let output = Command::new("ncvalidator").arg(path).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// netCDF4-python sees the same in both files of each pair.
fn compare_with_netcdf4(pairs: &[(PathBuf, PathBuf)]) {
    let Some(mut python) = python() else { return };
    let script = "\
import sys, netCDF4, numpy
names = sys.argv[1:]
for a, b in zip(names[::2], names[1::2]):
    with netCDF4.Dataset(a) as a, netCDF4.Dataset(b) as b:
        a.set_auto_mask(False), b.set_auto_mask(False)
        assert {n: len(d) for n, d in a.dimensions.items()} == {n: len(d) for n, d in b.dimensions.items()}
        assert a.ncattrs() == b.ncattrs()
        for name, v in a.variables.items():
            w = b.variables[name]
            v.set_auto_scale(False), w.set_auto_scale(False)
            assert v.dimensions == w.dimensions and v.dtype == w.dtype and v.ncattrs() == w.ncattrs(), name
            assert numpy.asarray(v[...]).tobytes() == numpy.asarray(w[...]).tobytes(), name
";
    let names = pairs.iter().flat_map(|(a, b)| [a, b]);
    let output = python.arg("-c").arg(script).args(names).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// 1 to 4 dimensions with edges that no chunk length divides, a hole of fill values, and integers.
const MIXED: &str = "netcdf mixed {
dimensions: a = 7 ; b = 11 ; c = 13 ; d = 17 ; time = UNLIMITED ;
variables:
  double a(a) ; float one(d) ; double two(c, d) ; float three(time, c, d) ; double four(time, b, c, d) ;
  int count(c, d) ; double time(time) ; float left(time) ;
  two:_FillValue = 1.e+33 ;
}";

/// The values of MIXED: smooth, with special ones among them.
fn mixed(path: &Path) {
    let cdl = path.with_extension("cdl");
    std::fs::write(&cdl, MIXED).expect("the text");
    good(&["gen", "-o", text(path), text(&cdl)]);
    let options = esker::OpenOptions::new().writable(true);
    let mut ds = Dataset::open_with(path, options).expect("it opens");
    for name in ["time", "a", "one", "two", "three", "four", "count", "left"] {
        let var = ds.var(name).expect("the variable");
        let mut shape = ds.shape(var).expect("its shape");
        if ds.schema().is_record(ds.variable(var).expect("it")) {
            shape[0] = 5;
        }
        let n = shape.iter().product::<u64>();
        let mut values: Vec<f64> = (0..n).map(|i| 20.0 + (i as f64 / 9.0).sin() * 7.0).collect();
        if ["two", "four"].contains(&name) {
            let special = [f64::NAN, f64::INFINITY, 1e33, 1e-310];
            special.iter().enumerate().for_each(|(i, x)| values[20 + 3 * i] = *x);
        }
        let start = vec![0; shape.len()];
        ds.put(var, &Selection::slab(&start, &shape), &values).expect("written");
    }
    ds.close().expect("closed");
}

/// The largest error at elements that are ordinary, absolute and relative; others must be the same.
fn errors(a: &Path, b: &Path, name: &str) -> (f64, f64) {
    let read = |path| {
        let ds = Dataset::open(path).expect("it opens");
        ds.get::<f64>(ds.var(name).expect("it"), &Selection::all()).expect("values")
    };
    let (mut absolute, mut relative) = (0f64, 0f64);
    let (a, b) = (read(a), read(b));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.into_iter().zip(b) {
        // A fill value is no number.
        if a.is_finite() && !(name == "two" && a == 1e33) {
            absolute = absolute.max((a - b).abs());
            relative = relative.max(if a.is_normal() { ((a - b) / a).abs() } else { 0.0 });
        } else {
            assert_eq!(a.to_bits(), b.to_bits());
        }
    }
    (absolute, relative)
}

#[test]
fn lossy_filters_keep_their_bound_at_every_element_and_spare_coordinates() {
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("in.nc"), directory.path().join("out.nc"));
    mixed(&input);
    for (filter, bound) in [
        ("bitround,9 shuffle zstd,3", (f64::MAX, 2f64.powi(-10))),
        ("zfp,accuracy=0.01", (0.01, f64::MAX)),
        ("sz,abs=0.001", (0.001, f64::MAX)),
    ] {
        let lengths = "--chunk=a/3,b/4,c/5,d/6,time/2";
        copy(&[lengths, "--filter", filter, "--smallest", "0", "--auto"], &input, &output);
        let mut changed = 0;
        for name in ["one", "two", "three", "four", "left"] {
            let (absolute, relative) = errors(&input, &output, name);
            assert!(absolute <= bound.0 && relative <= bound.1, "{filter}: {name} {absolute}");
            changed += u32::from(absolute > 0.0);
        }
        assert!(changed >= 2, "{filter} does nothing"); // Tiny chunks may be stored as they are.
        for name in ["a", "time", "count"] {
            assert_eq!(errors(&input, &output, name), (0.0, 0.0), "{filter}: {name}");
        }
        good(&["check", "-q", text(&output)]);
    }
}

#[test]
fn partial_chunks_of_one_to_four_dimensions_come_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    for lengths in ["a/3,b/4,c/5,d/6,time/2", "a/7,b/1,c/13,d/100,time/1", "four:d/2,time/4"] {
        let options = ["--chunk", lengths, "--filter", "shuffle zstd,1", "--smallest", "0"];
        copy(&options, &file("in.nc"), &file("chunked.nc"));
        same(&file("in.nc"), &file("chunked.nc"));
        // Other chunks, another version, records fixed, and a part of it.
        copy(&["--chunk=c/4,d/5", "--kind=2", "--smallest=0"], &file("chunked.nc"), &file("2.nc"));
        same(&file("in.nc"), &file("2.nc"));
        let part = ["-u", "-d", "c=1:12:2", "-d", "time=1:4"];
        copy(&part, &file("chunked.nc"), &file("part.nc"));
        copy(&part, &file("in.nc"), &file("part-of-plain.nc"));
        same(&file("part.nc"), &file("part-of-plain.nc"));
        let part = ["--contiguous", "-v", "four"];
        copy(&part, &file("chunked.nc"), &file("four.nc"));
        copy(&part, &file("in.nc"), &file("four-of-plain.nc"));
        same(&file("four.nc"), &file("four-of-plain.nc"));
    }
}

#[test]
fn a_copy_keeps_chunks_and_contiguous_leaves_no_trace() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    let wish =
        ["--chunk=four:time/1,b/4", "--filter=four:zstd,5", "--filter=one:pco", "--smallest=1M"];
    copy(&wish, &file("in.nc"), &file("a.nc"));
    copy(&[], &file("a.nc"), &file("b.nc"));
    let chunked = |path: &Path| {
        let info: Value =
            serde_json::from_str(&good(&["info", "--json", text(path)])).expect("JSON");
        let vars = info["variables"].as_array().expect("a list").clone();
        let names = vars.iter().filter(|v| v.get("chunked").is_some());
        let names: Vec<String> = names.map(|v| v["name"].to_string()).collect();
        let four = vars.iter().find(|v| v["name"] == "four").expect("it").clone();
        (names, four["chunked"].clone())
    };
    let (names, four) = chunked(&file("a.nc"));
    // Those that were named, and with them all that have records.
    assert_eq!(names, ["\"one\"", "\"three\"", "\"four\"", "\"time\"", "\"left\""]);
    assert_eq!(four["chunk"], serde_json::json!([1, 4, 13, 17]));
    assert_eq!(four["filters"], "zstd,5");
    assert_eq!((&four["chunks"], &four["written"]), (&15.into(), &15.into()));
    let ratio = four["stored_bytes"].as_f64().expect("a number") / (8.0 * 5.0 * 11.0 * 13.0 * 17.0);
    assert!((four["ratio"].as_f64().expect("a number") - ratio).abs() < 1e-9);
    assert_eq!(chunked(&file("b.nc")), (names, four));
    copy(&["--contiguous"], &file("b.nc"), &file("c.nc"));
    let header = good(&["dump", "-h", "-s", text(&file("c.nc"))]);
    assert!(!header.contains("__"), "{header}");
    assert_eq!(std::fs::read(file("c.nc")).ok(), std::fs::read(file("in.nc")).ok());
}

#[test]
fn automatic_chunks_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("in.nc"), directory.path().join("out.nc"));
    mixed(&input);
    let told = copy(&["--auto"], &input, &output);
    let row = |name: &str| {
        let line = told.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} is not in {told}")).to_string()
    };
    assert!(row("two").contains("contiguous"), "it is small: {told}");
    assert!(row("four").contains("5 × 11 × 13 × 17") && row("four").contains("shuffle zstd,3"));
    assert!(row("time").contains("shuffle zstd,3"), "it has records as four has: {told}");
}

#[test]
fn a_container_in_chunks_holds_what_the_file_has_and_gives_it_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let mut pairs = Vec::new();
    mixed(&file("mixed.nc"));
    copy(&[], &file("mixed.nc"), &file("plain.nc"));
    for (number, options) in [
        &["--chunk", "a/7,b/5,time/2", "--smallest", "0"][..],
        &["--chunk", "three:c/9", "--filter", "shuffle zstd,3"],
    ]
    .iter()
    .enumerate()
    {
        let (run, back, replayed) = (
            file(&format!("{number}.esk")),
            file(&format!("{number}.nc")),
            file(&format!("{number}.r.nc")),
        );
        copy(&[&["--layout", "log"], *options].concat(), &file("plain.nc"), &run);
        same(&run, &file("plain.nc"));
        good(&["check", "-q", text(&run)]);
        let ds = Dataset::open(&run).expect("it opens");
        let chunked = ds.schema().vars.iter().enumerate();
        let chunked: Vec<&str> = chunked
            .filter(|(n, _)| ds.chunk_shape(esker::VarId(*n)).is_some())
            .map(|(_, var)| &*var.name)
            .collect();
        assert!(chunked.contains(&"three") && !chunked.contains(&"one"), "{chunked:?}");
        copy(&[], &run, &back);
        good(&["replay", text(&run), text(&replayed)]);
        let bytes = |path: &Path| std::fs::read(path).expect("it");
        assert!(bytes(&back) == bytes(&file("plain.nc")), "{options:?}");
        // Values of a replay lie where those of the container's header would.
        same(&replayed, &file("plain.nc"));
        assert!(!bytes(&replayed).windows(7).any(|some| some == b"__chunk"), "{options:?}");
        pairs.extend([(file("plain.nc"), back), (file("plain.nc"), replayed)]);
        // And on to another container, as it is.
        copy(&["--layout", "log"], &run, &file("again.esk"));
        let again = Dataset::open(file("again.esk")).expect("it opens");
        let three = again.var("three").expect("it");
        assert_eq!(again.chunk_shape(three), ds.chunk_shape(three));
        std::fs::remove_dir_all(file("again.esk")).expect("removed");
    }
    compare_with_netcdf4(&pairs);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("in.nc"), directory.path().join("out.nc"));
    mixed(&input);
    for (options, expected) in [
        (&["--filter", "gzip"][..], "the filters are deflate"),
        (&["--filter", "zstd shuffle", "--smallest", "0"], "put it before zstd"),
        (&["--filter", "count:zfp,accuracy=1"], "variable \"count\""),
        (&["--filter", "sz,abs=1", "--smallest", "0"], "--auto"),
        (&["--chunk", "lat/9"], "no dimension \"lat\""),
        (&["--chunk", "zwo:c/9"], "no variable \"zwo\""),
        (&["--chunk", "c"], "DIMENSION/LENGTH"),
        (&["--chunk", "c/0"], "DIMENSION/LENGTH"),
        (&["--contiguous", "--auto"], "cannot be used with"),
        (&["--canonical", "--chunk", "lat/9"], "no dimension \"lat\""),
    ] {
        let ended = run(&[&["copy"], options, &[text(&input), text(&output)]].concat());
        assert_eq!(ended.code, Some(2), "{options:?}: {}", ended.out);
        assert!(ended.err.contains(expected), "{options:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert!(!output.exists(), "{options:?}");
    }
    let left = std::fs::read_dir(directory.path()).expect("the directory").count();
    assert_eq!(left, 2, "nothing half-made is left");
    for option in ["--chunk", "--filter", "--auto", "--contiguous", "--smallest"] {
        assert!(good(&["copy", "--help"]).contains(option));
    }
}

#[test]
fn text_of_a_chunked_file_is_that_of_the_plain_one_and_tells_more_if_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    let wish = ["--chunk=c/5", "--filter", "zstd,3", "--smallest=0"];
    copy(&wish, &file("in.nc"), &file("out.nc"));
    let dump = |name: &str| good(&["dump", "-n", "x", text(&file(name))]);
    assert_eq!(dump("in.nc"), dump("out.nc"));
    let special = good(&["dump", "-s", "-p", "9,17", "-n", "x", text(&file("out.nc"))]);
    assert!(special.contains("\t\ttwo:__chunk_shape = 5, 17 ;\n"), "{special}");
    assert!(special.contains("\t\ttwo:__filters = \"zstd,3\" ;\n"));
    std::fs::write(file("again.cdl"), special).expect("written");
    good(&["gen", "-o", text(&file("again.nc")), text(&file("again.cdl"))]);
    same(&file("out.nc"), &file("again.nc"));
    assert!(good(&["info", text(&file("again.nc"))]).contains("chunked variables"));
    let stats = |name: &str| {
        let all = good(&["info", "--stats", "--json", text(&file(name))]);
        let all: Value = serde_json::from_str(&all).expect("JSON");
        let vars = all["variables"].as_array().expect("a list").clone();
        vars.into_iter().map(|v| v["statistics"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(stats("in.nc"), stats("out.nc"));
    let places = good(&["offsets", "--json", "-r", "-v", "two", text(&file("out.nc"))]);
    let places: Value = serde_json::from_str(&places).expect("JSON");
    let heap = &places["heap"];
    assert_eq!(heap["variables"][0]["places"].as_array().map(Vec::len), Some(3));
    assert!(heap["begin"].as_u64() < heap["variables"][0]["places"][0]["begin"].as_u64());
}

#[test]
fn containers_have_filters_and_the_files_they_stand_for_have_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    let log = ["--layout", "log", "--filter", "shuffle zstd,3", "--smallest=0"];
    copy(&log, &file("in.nc"), &file("run.esk"));
    good(&["replay", text(&file("run.esk")), text(&file("plain.nc"))]);
    copy(&[], &file("run.esk"), &file("copied.nc"));
    for name in ["plain.nc", "copied.nc"] {
        assert!(!good(&["dump", "-h", "-s", text(&file(name))]).contains("__"), "{name}");
        same(&file("in.nc"), &file(name));
        good(&["check", "-q", text(&file(name))]);
    }
    let told = good(&["replay", "--auto", text(&file("run.esk")), text(&file("chunked.nc"))]);
    assert!(
        told.contains("chunked variables") && told.contains("8 variables, 5 records"),
        "{told}"
    );
    same(&file("in.nc"), &file("chunked.nc"));
    copy(&["--layout", "log"], &file("chunked.nc"), &file("back.esk"));
    same(&file("in.nc"), &file("back.esk"));
    assert!(good(&["dump", "-h", "-s", text(&file("back.esk"))]).contains("__filters"));
}

#[test]
fn netcdf_tools_open_chunked_files_and_see_scalars() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    copy(&["--chunk=two:c/5", "--filter=two:zstd,3"], &file("in.nc"), &file("before.nc"));
    copy(&["--auto", "--smallest=0"], &file("in.nc"), &file("end.nc"));
    validate(&file("before.nc"));
    validate(&file("end.nc"));
    if have("ncdump") {
        let dump = |name: &str| {
            let output = Command::new("ncdump").arg(file(name)).output().expect("it starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert!(dump("before.nc").contains("\tdouble two ;"));
        assert!(dump("end.nc").contains("\tdouble four ;"));
    }
    let Some(mut python) = python() else { return };
    let script = "\
import sys, netCDF4
for name in sys.argv[1:]:
    with netCDF4.Dataset(name) as nc:
        assert len(nc.dimensions['time']) == 5
        assert nc['two'].shape == () and nc['two'][...].size == 1
        assert list(nc['two'].getncattr('__chunk_dims')) == [2, 3]
";
    let output = python.arg("-c").arg(script).args([file("before.nc"), file("end.nc")]).output();
    let output = output.expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn chunks_in_files_of_their_own_are_copied_and_checked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    let ended = crate::common::esker(&["copy", "--auto", "--smallest=0", "--no-history"])
        .args([file("in.nc"), file("folder.nc")])
        .env("PNETCDF_HINTS", "esker_chunk_files=rank")
        .output()
        .expect("it starts");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(file("folder.nc").is_dir());
    same(&file("in.nc"), &file("folder.nc"));
    good(&["check", "-q", text(&file("folder.nc"))]);
    copy(&["--contiguous"], &file("folder.nc"), &file("back.nc"));
    assert_eq!(std::fs::read(file("back.nc")).ok(), std::fs::read(file("in.nc")).ok());
    let names = std::fs::read_dir(file("folder.nc")).expect("the folder");
    let names = names.map(|entry| entry.expect("an entry").path());
    let chunks =
        names.into_iter().find(|p| p.to_string_lossy().contains("chunks.")).expect("chunks");
    // A repair mends the classic file, on a copy of the whole folder, or where it is.
    let numrecs = |path: &Path| std::fs::read(path.join("data.nc")).expect("it")[4..8].to_vec();
    let sound = numrecs(&file("folder.nc"));
    let data = file("folder.nc").join("data.nc");
    let mut header = std::fs::read(&data).expect("its bytes");
    let at = header.windows(4).position(|w| w == b"time").expect("the dimension");
    // "a" is padded with three zeros.
    let padding = header.windows(4).position(|w| w == b"a\0\0\0").expect("padding") + 3;
    assert!(at > padding);
    header[padding] = 7;
    std::fs::write(&data, &header).expect("written");
    let mended = file("mended.nc");
    good(&["check", "--repair", "-o", text(&mended), text(&file("folder.nc"))]);
    assert_eq!(numrecs(&mended), sound);
    same(&file("in.nc"), &mended);
    good(&["check", "-q", text(&mended)]);
    let again = run(&["check", "--repair", "-o", text(&mended), text(&file("folder.nc"))]);
    assert!(
        again.code != Some(0) && again.err.contains("mended.nc"),
        "{} {}",
        again.out,
        again.err
    );
    good(&["check", "--repair", "--in-place", text(&file("folder.nc"))]);
    same(&file("in.nc"), &file("folder.nc"));
    assert_eq!(std::fs::read(&data).ok(), std::fs::read(mended.join("data.nc")).ok());

    let mut bytes = std::fs::read(&chunks).expect("its bytes");
    bytes[65] ^= 1;
    std::fs::write(&chunks, &bytes).expect("written");
    let ended = run(&["check", text(&file("folder.nc"))]);
    assert_eq!(ended.code, Some(1));
    let name = chunks.file_name().expect("its name").to_str().expect("text");
    assert!(ended.out.contains(&format!("file {name}: chunk 0")), "{}", ended.out);
    // What cannot be mended is named, with what to do.
    let ended = run(&["check", "--repair", "--in-place", text(&file("folder.nc"))]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.out.contains("write the chunk anew"), "{}", ended.out);
}

#[test]
fn a_copy_tells_programs_what_it_did_and_writes_references() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    mixed(&file("in.nc"));
    let told = copy(&["--auto", "--smallest=0", "--refs", "--json"], &file("in.nc"), &file("o.nc"));
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["output"], text(&file("o.nc")));
    assert_eq!((&told["variables"], &told["records"]), (&8.into(), &5.into()));
    assert_eq!(told["references"]["path"], text(&file("o.nc.json")));
    assert_eq!(told["references"]["left_out"], serde_json::json!([]));
    assert!(file("o.nc.json").exists());
    copy(&["--auto", "--refs=parquet"], &file("in.nc"), &file("p.nc"));
    assert!(file("p.nc.parq/.zmetadata").exists());
    // The copy is there, whatever is in the way of its references.
    std::fs::write(file("q.nc.json"), "somebody's").expect("written");
    let names = [file("in.nc"), file("q.nc")];
    let ended = run(&["copy", "--no-history", "--refs", text(&names[0]), text(&names[1])]);
    assert!(ended.code == Some(2) && ended.err.contains("it is copied"), "{}", ended.err);
    same(&names[0], &names[1]);
    assert_eq!(std::fs::read(file("q.nc.json")).ok().as_deref(), Some(&b"somebody's"[..]));
}
