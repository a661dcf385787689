//! References: plain xarray reads through them what netCDF4-python reads from the file.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, Owner, Selection, VarId, Version,
};
use esker_store::{Fault, FaultyStore, LocalStore};
use esker_testkit::{data, python};
use esker_tools::Unseen;
use esker_tools::cdl::{self, GenerateOptions};
use esker_tools::refs::{self, Form, Location, RefsError, RefsOptions, Written};

use crate::texts;

/// Pairs of a netCDF file and references that must show the same, compared by one Python.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    /// To be opened in every way there is.
    fn add(&mut self, file: &Path, refs: &Path) {
        let parquet = Form::of_name(refs) == Some(Form::Parquet);
        self.add_by(
            file,
            refs,
            if parquet { "kerchunk zarr consolidated" } else { "kerchunk zarr" },
        );
    }

    fn add_by(&mut self, file: &Path, refs: &Path, ways: &str) {
        writeln!(self.0, "{}\t{}\t{ways}", file.display(), refs.display()).unwrap();
    }

    fn compare(self, dir: &Path) {
        let needed = "netCDF4, xarray, zarr, fsspec, kerchunk, fastparquet";
        let Some(python) = python::with(needed) else { return };
        let list = dir.join("pairs");
        fs::write(&list, self.0).unwrap();
        let script = python::script(env!("CARGO_MANIFEST_DIR"), "refs.py");
        let output = Command::new(python).arg(script).arg(list).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn write(file: &Path, refs: &Path, options: &RefsOptions) -> Written {
    refs::write(file, Some(refs), options, &mut Unseen)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn make(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    cdl::generate(text.as_bytes(), &path, &GenerateOptions::default()).unwrap();
    path
}

#[test]
fn xarray_sees_real_files_through_references() {
    let dir = tempfile::tempdir().unwrap();
    let mut pairs = Pairs::default();
    for (n, file) in data::files("netcdf_classic").into_iter().enumerate() {
        if !file.extension().is_some_and(|e| e == "nc" || e.eq_ignore_ascii_case("cdf")) {
            continue;
        }
        for (ending, way) in [("json", "kerchunk"), ("parq", "zarr")] {
            let refs = dir.path().join(format!("{n}.{ending}"));
            let options = RefsOptions { rows: 100, ..RefsOptions::default() };
            assert_eq!(write(&file, &refs, &options).left_out, [], "{}", file.display());
            pairs.add_by(&file, &refs, way);
        }
    }
    pairs.compare(dir.path());
}

#[test]
fn xarray_sees_awkward_files_through_references() {
    let dir = tempfile::tempdir().unwrap();
    let mut pairs = Pairs::default();
    for (name, text) in texts::AWKWARD {
        let file = make(dir.path(), &format!("{name}.nc"), text);
        let refs = dir.path().join(format!("{name}.json"));
        write(&file, &refs, &RefsOptions::default());
        // netCDF4-python or xarray cannot open these: text of several bytes in names or values.
        if !["text", "names", "times", "coordinates"].contains(name) {
            pairs.add(&file, &refs);
        }
    }
    pairs.compare(dir.path());
}

/// Every type, in 0 to 4 dimensions, as ordinary and as record variables.
fn every_type(path: &Path) {
    let mut def = Dataset::create(path, CreateOptions::new().version(Version::Cdf5)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let lengths = [("z", 3), ("y", 5), ("x", 7)];
    let dims = lengths.map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).unwrap());
    let mut vars = Vec::new();
    for ty in ExternalType::ALL {
        for n in 0..=3 {
            vars.push(def.add_var(&format!("{ty}_{n}"), ty, &dims[..n]).unwrap());
            let all = [&[time], &dims[..n]].concat();
            vars.push(def.add_var(&format!("{ty}_r{n}"), ty, &all).unwrap());
        }
    }
    def.put_attr(vars[0], "big", i64::MIN).unwrap();
    def.put_attr(Owner::Global, "bigger", u64::MAX).unwrap();
    let mut ds = def.enddef().unwrap();
    for (seed, var) in vars.iter().enumerate() {
        put_numbers(&mut ds, *var, seed);
    }
    ds.close().unwrap();
}

/// All values of a variable, four records of one that has them.
fn put_numbers(ds: &mut Dataset, var: VarId, seed: usize) {
    let (variable, mut shape) = (ds.variable(var).unwrap().clone(), ds.shape(var).unwrap());
    if ds.schema().is_record(&variable) {
        shape[0] = 4;
    }
    let count = shape.iter().product::<u64>();
    let all = Selection::slab(&vec![0; shape.len()], &shape);
    if variable.ty == ExternalType::Char {
        let letter = |i: u64| esker::Char(b'a' + (i % 26) as u8);
        ds.put(var, &all, &(0..count).map(letter).collect::<Vec<_>>()).unwrap();
    } else {
        let numbers: Vec<f64> = (0..count).map(|i| ((i + seed as u64) % 101) as f64).collect();
        ds.put(var, &all, &numbers).unwrap();
    }
}

#[test]
fn xarray_sees_every_type_through_references() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a name with {braces} and ü.nc");
    every_type(&file);
    let mut pairs = Pairs::default();
    for (name, inline) in [("all.json", 0), ("small.json", 32), ("all.parq", 0), ("small.parq", 32)]
    {
        let refs = dir.path().join(name);
        // Few rows, so that variables have several files.
        let options = RefsOptions { inline, rows: 3, ..RefsOptions::default() };
        let written = write(&file, &refs, &options);
        assert_eq!((written.variables.len(), written.left_out.len()), (88, 0));
        // With n bytes in a record or copied, records are chunks, or one chunk.
        let chunks = |name: &str| written.variables.iter().find(|v| v.name == name).unwrap().chunks;
        assert_eq!((chunks("int_3"), chunks("int_r3")), (1, 4));
        assert_eq!(chunks("double_r1"), if inline == 0 { 4 } else { 1 });
        pairs.add(&file, &refs);
    }
    pairs.compare(dir.path());
}

#[test]
fn fill_values_and_missing_ones_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"netcdf fills {
        dimensions: n = 4 ; t = UNLIMITED ;
        variables: float f(n) ; f:_FillValue = NaNf ; double i(n) ; i:_FillValue = -Infinity ;
          double e(n) ; e:_FillValue = -1.e300 ; short s(n) ; s:_FillValue = -9s ; s:scale_factor = 0.5 ;
          int64 l(n) ; l:_FillValue = 9223372036854775807LL ; uint64 u(n) ; u:_FillValue = 18446744073709551615ULL ;
          byte b(t, n) ; b:_FillValue = 3b ; b:valid_range = 0b, 10b ; float m(n) ; m:missing_value = NaNf, 1.e20f ;
          double nans(n) ; nans:list = NaN, Infinity, -Infinity, 0.1 ; :one = NaN ;
        data: f = 1, NaN, 3, _ ; i = 1, _, 2, -Infinity ; e = 1, _, 0.1, 1e300 ; s = 1, _, 3, -9 ;
          l = 1, _, -9223372036854775808, 5 ; u = 1, _, 18446744073709551614, 0 ; b = 1, 2, 3, _, 5 ;
          m = 1, NaN, 1.e20, 4 ; nans = NaN, Infinity, -Infinity, 0.1 ; }"#;
    let file = make(dir.path(), "fills.nc", text);
    let mut pairs = Pairs::default();
    for ending in ["json", "parq"] {
        let refs = dir.path().join(format!("fills.{ending}"));
        write(&file, &refs, &RefsOptions::default());
        pairs.add(&file, &refs);
    }
    pairs.compare(dir.path());
}

#[test]
fn a_large_variable_is_cut_so_that_a_part_is_read_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("large.nc");
    let mut def = Dataset::create(&file, CreateOptions::new()).unwrap();
    let dims = [("z", 6), ("y", 1000), ("x", 500)]
        .map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).unwrap());
    let big = def.add_var("big", ExternalType::Double, &dims).unwrap();
    let mut ds = def.enddef().unwrap();
    let values: Vec<f64> = (0..3_000_000).map(f64::from).collect();
    ds.put(big, &Selection::all(), &values).unwrap();
    ds.close().unwrap();
    let refs = dir.path().join("large.json");
    let written = write(&file, &refs, &RefsOptions::default());
    // 24 MB, and 12 MB are below the limit.
    assert_eq!(written.variables[0].chunks, 2);
    let mut pairs = Pairs::default();
    pairs.add(&file, &refs);
    pairs.compare(dir.path());
}

/// The references of a document.
fn document(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn small(dir: &Path) -> PathBuf {
    make(
        dir,
        "small.nc",
        "netcdf small { dimensions: t = UNLIMITED ; n = 20 ; variables: int v(n) ; short r(t, n) ; \
         double s(t, n) ; data: v = 1, 2 ; r = 1, 2, 3 ; s = 1, 2, 3 ; }",
    )
}

#[test]
fn references_say_where_a_file_will_be() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    fs::create_dir(dir.path().join("refs")).unwrap();
    let refs = dir.path().join("refs/small.json");
    let url = |location| {
        let written = write(&file, &refs, &RefsOptions { location, ..RefsOptions::default() });
        let document = document(&refs);
        assert_eq!(document["templates"]["u"], written.url);
        assert_eq!(document["refs"]["v/0"][0], "{{u}}");
        written.url
    };
    let real = file.canonicalize().unwrap();
    assert_eq!(url(Location::Here), format!("file://{}", real.display()));
    assert_eq!(url(Location::Relative), "../small.nc");
    assert_eq!(url(Location::Url("s3://b/x.nc".into())), "s3://b/x.nc");
    // A template with braces would be taken for another template.
    let odd = "https://h/{{x}}.nc".to_string();
    write(
        &file,
        &refs,
        &RefsOptions { location: Location::Url(odd.clone()), ..Default::default() },
    );
    let document = document(&refs);
    assert_eq!(document.get("templates"), None);
    assert_eq!(document["refs"]["v/0"][0], odd);
}

#[test]
fn many_chunks_become_parquet_unless_the_name_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    let options = RefsOptions { json_chunks: 2, ..RefsOptions::default() };
    let written = refs::write(&file, None, &options, &mut Unseen).unwrap();
    assert_eq!((written.form, written.path), (Form::Parquet, dir.path().join("small.nc.parq")));
    let written = refs::write(&file, None, &RefsOptions::default(), &mut Unseen).unwrap();
    assert_eq!((written.form, written.path), (Form::Json, dir.path().join("small.nc.json")));
    let named = write(&file, &dir.path().join("named.json"), &options);
    assert_eq!(named.form, Form::Json);
}

#[test]
fn what_lies_beyond_the_end_of_the_file_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    let len = fs::metadata(&file).unwrap().len();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len - 8).unwrap();
    let refs = dir.path().join("cut.json");
    let written = write(&file, &refs, &RefsOptions::default());
    let names: Vec<&str> = written.left_out.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["s"]);
    assert!(written.left_out[0].why.contains("ends before"), "{}", written.left_out[0].why);
    assert_eq!(written.variables.len(), 2);
    assert!(!fs::read_to_string(&refs).unwrap().contains("s/.zarray"));
}

#[test]
fn a_count_of_records_that_cannot_be_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    let mut bytes = fs::read(&file).unwrap();
    bytes[4..8].copy_from_slice(&0x7fff_fff0u32.to_be_bytes());
    fs::write(&file, bytes).unwrap();
    let written = write(&file, &dir.path().join("x.json"), &RefsOptions::default());
    assert_eq!(written.left_out.len(), 2);
}

#[test]
fn a_container_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log)).unwrap();
    def.add_var("s", ExternalType::Int, &[]).unwrap();
    def.enddef().unwrap().close().unwrap();
    let error = refs::write(&path, None, &RefsOptions::default(), &mut Unseen).unwrap_err();
    assert!(error.to_string().contains("esker replay"), "{error}");
}

#[test]
fn nothing_is_replaced_unless_it_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    let careful = RefsOptions { overwrite: false, ..RefsOptions::default() };
    for name in ["x.json", "x.parq"] {
        let refs = dir.path().join(name);
        write(&file, &refs, &careful);
        let again = refs::write(&file, Some(&refs), &careful, &mut Unseen).unwrap_err();
        assert!(matches!(again, RefsError::Exists { .. }), "{again}");
        write(&file, &refs, &RefsOptions::default());
    }
    // Whatever may be replaced, a directory of other things is not.
    let other = dir.path().join("data.parq");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("thesis.tex"), "years of work").unwrap();
    let refused = refs::write(&file, Some(&other), &RefsOptions::default(), &mut Unseen);
    assert!(matches!(refused.unwrap_err(), RefsError::NotReferences { .. }));
    assert!(other.join("thesis.tex").exists());
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn a_full_disk_or_a_kill_leaves_whole_references() {
    let dir = tempfile::tempdir().unwrap();
    let file = small(dir.path());
    for name in ["x.json", "x.parq"] {
        let refs = dir.path().join(name);
        for fault in [Fault::FailHalf(ErrorKind::StorageFull), Fault::Tear] {
            let at_url = |url: &str| Location::Url(url.into());
            let old = RefsOptions { location: at_url("s3://old"), ..RefsOptions::default() };
            let mut failures = 0;
            loop {
                write(&file, &refs, &old);
                let store = Arc::new(FaultyStore::new(LocalStore, failures, fault));
                let new = RefsOptions { location: at_url("s3://new"), store, ..old.clone() };
                if refs::write(&file, Some(&refs), &new, &mut Unseen).is_ok() {
                    break;
                }
                failures += 1;
                whole(&refs);
                let left = esker_store::leftovers(&LocalStore, &refs).unwrap();
                assert!(fault == Fault::Tear || left.is_empty(), "{name}: {left:?}");
            }
            assert!(failures > 2);
        }
    }
}

/// Fails unless references are whole; a kill may leave a directory under its other name.
fn whole(refs: &Path) {
    if refs.extension().is_some_and(|e| e == "json") {
        assert!(document(refs)["refs"]["s/1.0"].is_null());
        assert!(document(refs)["refs"]["s/0.0"].is_array());
        return;
    }
    let old = refs.with_file_name(".x.parq.esker-old");
    let there = if refs.exists() { refs } else { &old };
    let metadata = document(&there.join(".zmetadata"));
    assert!(metadata["metadata"]["s/.zarray"].is_object());
    for name in ["v", "r", "s"] {
        let bytes = fs::read(there.join(name).join("refs.0.parq")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    }
}

/// Pipelines that keep every value of [`pair`] and that numcodecs knows.
const PIPELINES: [&str; 14] = [
    "",
    "deflate,6",
    "deflate,12",
    "zstd,3",
    "zstd,-4",
    "lz4",
    "shuffle",
    "shuffle deflate,1",
    "shuffle zstd,5",
    "shuffle lz4",
    "shuffle zstd crc32c",
    "crc32c",
    "bitround,12 shuffle zstd",
    "f32 shuffle deflate",
];

/// An ordinary file and one with the same variables in chunks, some of which are partial: every
/// pipeline, 1 to 4 dimensions, fixed and with records, and types in turn.
fn pair(plain: &Path, chunked: &Path) -> usize {
    let lengths = [("w", 5), ("z", 7), ("y", 6), ("x", 4)];
    let chunks = [2, 3, 4, 3];
    let mut made = 0;
    for path in [plain, chunked] {
        made = 0;
        let mut hints = Hints::default();
        if path.ends_with("folder") {
            hints.set("esker_chunk_files", "rank");
        }
        let options = CreateOptions::new().version(Version::Cdf5).hints(hints);
        let mut def = Dataset::create(path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let dims = lengths.map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).unwrap());
        let mut types = ExternalType::ALL.into_iter().cycle();
        let mut vars = Vec::new();
        for (p, pipeline) in PIPELINES.iter().enumerate() {
            for n in 1..=4 {
                for records in [false, true] {
                    let ty = match pipeline.split([',', ' ']).next() {
                        Some("bitround" | "f32") => ExternalType::Double,
                        _ => types.next().unwrap(),
                    };
                    let mut of_var = dims[4 - n..].to_vec();
                    let mut chunk = chunks[4 - n..].to_vec();
                    if records {
                        // Records of length one, and two together.
                        (of_var[0], chunk[0]) = (time, 1 + n as u64 % 2);
                    }
                    let name = format!("p{p}_{n}_{records}");
                    let var = def.add_var(&name, ty, &of_var).unwrap();
                    def.put_attr(var, "units", "K").unwrap();
                    if path == chunked {
                        def.set_chunks(var, &chunk).unwrap();
                        def.set_filters(var, pipeline).unwrap();
                    }
                    vars.push(var);
                    made += 1;
                }
            }
        }
        let mut ds = def.enddef().unwrap();
        for (seed, var) in vars.iter().enumerate() {
            put_numbers(&mut ds, *var, seed);
        }
        ds.close().unwrap();
    }
    made
}

#[test]
fn xarray_sees_the_chunks_of_every_pipeline_that_zarr_knows() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, chunked) = (dir.path().join("plain.nc"), dir.path().join("chunked.nc"));
    let made = pair(&plain, &chunked);
    let mut pairs = Pairs::default();
    for name in ["chunked.json", "chunked.parq"] {
        let refs = dir.path().join(name);
        let written = write(&chunked, &refs, &RefsOptions { rows: 11, ..RefsOptions::default() });
        assert_eq!((written.left_out.as_slice(), written.variables.len()), ([].as_slice(), made));
        assert!(written.variables.iter().all(|v| v.missing == 0));
        pairs.add(&plain, &refs);
    }
    pairs.compare(dir.path());
}

/// Chunks in a file for each of three ranks, and variables in the classic file beside them.
fn folder(path: &Path, refs: &str) -> Result<Vec<Option<Written>>, String> {
    let outcomes = esker::launch(3, |comm| {
        let mut hints = Hints::default();
        if !path.ends_with("plain.nc") {
            hints.set("esker_chunk_files", "rank");
        }
        hints.set("esker_chunk_refs", refs);
        let me = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm.clone()).hints(hints);
        let mut def = Dataset::create(path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(9)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
        let field = def.add_var("field", ExternalType::Float, &[y, x]).unwrap();
        let moving = def.add_var("moving", ExternalType::Short, &[time, y, x]).unwrap();
        if !path.ends_with("plain.nc") {
            def.set_chunks(field, &[3, 4]).unwrap();
            def.set_filters(field, "shuffle zstd,3").unwrap();
            def.set_chunks(moving, &[1, 3, 10]).unwrap();
            def.set_filters(moving, "deflate,4").unwrap();
        }
        let plain = def.add_var("plain", ExternalType::Int, &[x]).unwrap();
        let mut ds = def.enddef().unwrap();
        let rows = Selection::slab(&[3 * me, 0], &[3, 10]);
        let values: Vec<i16> = (0..30).map(|i| i + 100 * me as i16).collect();
        ds.put_all(field, &rows, &values).unwrap();
        for record in 0..4 {
            let rows = Selection::slab(&[record, 3 * me, 0], &[1, 3, 10]);
            ds.put_all(moving, &rows, &values).unwrap();
        }
        let own = if me == 0 { Selection::all() } else { Selection::none() };
        ds.put_all(plain, &own, &values[..if me == 0 { 10 } else { 0 }]).unwrap();
        refs::close(ds, Arc::new(LocalStore)).map_err(|error| error.to_string())
    });
    outcomes.into_iter().collect()
}

#[test]
fn xarray_sees_chunks_in_files_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, chunked) = (dir.path().join("plain.nc"), dir.path().join("folder"));
    let made = pair(&plain, &chunked);
    let mut pairs = Pairs::default();
    for name in ["chunked.json", "chunked.parq"] {
        let refs = dir.path().join(name);
        let written = write(&chunked, &refs, &RefsOptions { rows: 11, ..RefsOptions::default() });
        assert_eq!((written.left_out.as_slice(), written.variables.len()), ([].as_slice(), made));
        pairs.add(&plain, &refs);
    }
    // Of three ranks.
    let (ours, many) = (dir.path().join("ours"), dir.path().join("ours/run.nc"));
    fs::create_dir(&ours).unwrap();
    let plain = ours.join("plain.nc");
    folder(&plain, "none").unwrap();
    folder(&many, "none").unwrap();
    for name in ["run.nc.json", "run.nc.parq"] {
        let refs = ours.join(name);
        let written = write(&many, &refs, &RefsOptions { rows: 5, ..RefsOptions::default() });
        let url = format!("file://{}", many.canonicalize().unwrap().display());
        assert_eq!((written.url, written.left_out), (url, vec![]));
        pairs.add(&plain, &refs);
    }
    let text = fs::read_to_string(ours.join("run.nc.json")).unwrap();
    assert!((1..=3).all(|file| text.contains(&format!("\"{{{{c}}}}{file}\""))), "{text}");
    pairs.compare(dir.path());
    // Where they will be.
    let location = Location::Url("s3://b/run.nc/".into());
    write(&many, &ours.join("there.json"), &RefsOptions { location, ..Default::default() });
    let templates = document(&ours.join("there.json"))["templates"].clone();
    assert_eq!(templates["u"], "s3://b/run.nc/data.nc");
    let chunks = templates["c"].as_str().unwrap();
    assert!(chunks.starts_with("s3://b/run.nc/chunks.") && chunks.ends_with('.'), "{chunks}");
    let location = Location::Relative;
    write(&many, &ours.join("here.json"), &RefsOptions { location, ..Default::default() });
    let templates = document(&ours.join("here.json"))["templates"].clone();
    assert_eq!(templates["u"], "run.nc/data.nc");
    // A file that is missing, or another's, leaves its variables out and no others.
    let gone = fs::read_dir(&many).unwrap().map(|entry| entry.unwrap().path());
    let gone = gone.into_iter().find(|p| p.to_str().unwrap().ends_with(".2")).unwrap();
    fs::remove_file(&gone).unwrap();
    let written = write(&many, &ours.join("rest.json"), &RefsOptions::default());
    let names: Vec<&str> = written.variables.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["plain"]);
    let why = &written.left_out[0].why;
    assert!(why.contains(gone.file_name().unwrap().to_str().unwrap()), "{why}");
}

#[test]
fn a_hint_asks_for_references_at_close() {
    let dir = tempfile::tempdir().unwrap();
    let mut pairs = Pairs::default();
    let plain = dir.path().join("plain.nc");
    folder(&plain, "json").unwrap();
    assert!(!dir.path().join("plain.nc.json").exists(), "nothing is chunked");
    for (form, ending) in [("json", "json"), ("parquet", "parq")] {
        let path = dir.path().join(format!("{form}.nc"));
        let written = folder(&path, form).unwrap();
        let refs = dir.path().join(format!("{form}.nc.{ending}"));
        let first = written[0].as_ref().unwrap();
        assert_eq!((&first.path, first.left_out.len()), (&refs, 0));
        assert!(written[1..].iter().all(Option::is_none));
        pairs.add(&plain, &refs);
    }
    pairs.compare(dir.path());
    // What is in the way is an error of close on every rank, and the data are there.
    let path = dir.path().join("safe.nc");
    fs::create_dir(dir.path().join("safe.nc.json")).unwrap();
    fs::write(dir.path().join("safe.nc.json/thesis.tex"), "years of work").unwrap();
    let error = folder(&path, "json").unwrap_err();
    assert!(error.contains("safe.nc") && error.contains("whole"), "{error}");
    let ds = Dataset::open(&path).unwrap();
    let field = ds.get::<i32>(ds.var("field").unwrap(), &Selection::element(&[8, 9])).unwrap();
    assert_eq!((field, ds.numrecs()), (vec![229], 4));
}

#[test]
fn chunks_that_were_never_written_are_fill_values() {
    let dir = tempfile::tempdir().unwrap();
    let (plain, chunked) = (dir.path().join("plain.nc"), dir.path().join("chunked.nc"));
    for path in [&plain, &chunked] {
        let mut def = Dataset::create(path, CreateOptions::new()).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(10)).unwrap();
        let fixed = def.add_var("fixed", ExternalType::Short, &[x]).unwrap();
        let record = def.add_var("record", ExternalType::Float, &[time, x]).unwrap();
        let never = def.add_var("never", ExternalType::Double, &[x]).unwrap();
        def.put_attr(fixed, "_FillValue", -5i16).unwrap();
        def.put_attr(record, "_FillValue", f32::NAN).unwrap();
        def.put_attr(never, "_FillValue", 1e36).unwrap();
        if path == &chunked {
            def.set_chunks(fixed, &[3]).unwrap();
            def.set_filters(fixed, "zstd").unwrap();
            def.set_chunks(record, &[1, 4]).unwrap();
            def.set_chunks(never, &[1]).unwrap();
        }
        let mut ds = def.enddef().unwrap();
        ds.put(fixed, &Selection::slab(&[7], &[1]), &[1i16]).unwrap();
        ds.put(record, &Selection::slab(&[3, 5], &[1, 2]), &[1f32, 2.0]).unwrap();
        ds.close().unwrap();
    }
    let mut pairs = Pairs::default();
    for name in ["x.json", "x.parq"] {
        let refs = dir.path().join(name);
        let written = write(&chunked, &refs, &RefsOptions { rows: 2, ..RefsOptions::default() });
        let found: Vec<_> = written.variables.iter().map(|v| (v.chunks, v.missing)).collect();
        assert_eq!(found, [(1, 3), (1, 11), (0, 10)]);
        pairs.add(&plain, &refs);
    }
    pairs.compare(dir.path());
}

#[test]
fn without_a_fill_value_of_its_own_a_variable_has_the_default_where_chunks_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (file, refs) = (dir.path().join("x.nc"), dir.path().join("x.json"));
    let mut def = Dataset::create(&file, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let vars = ["part", "whole"].map(|n| def.add_var(n, ExternalType::Int, &[x]).unwrap());
    vars.iter().for_each(|var| def.set_chunks(*var, &[2]).unwrap());
    let mut ds = def.enddef().unwrap();
    ds.put(vars[0], &Selection::slab(&[0], &[2]), &[1, 2]).unwrap();
    ds.put(vars[1], &Selection::all(), &[1, 2, 3, 4]).unwrap();
    ds.close().unwrap();
    write(&file, &refs, &RefsOptions::default());
    let refs = &document(&refs)["refs"];
    let fill = |name: &str| {
        let text = refs[format!("{name}/.zarray")].as_str().unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap()["fill_value"].clone()
    };
    assert_eq!(fill("part"), -2_147_483_647);
    // Or xarray would make real numbers of integers.
    assert_eq!(fill("whole"), serde_json::Value::Null);
    assert!(refs["part/1"].is_null() && refs["whole/1"].is_array());
}

#[test]
fn what_zarr_cannot_decode_is_left_out_with_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let (file, refs) = (dir.path().join("x.nc"), dir.path().join("x.json"));
    let mut def = Dataset::create(&file, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(64)).unwrap();
    let pipelines = ["pco", "shuffle zstd", "bitshuffle zstd", "zfp,reversible", "f32 zstd"];
    let vars: Vec<_> = pipelines
        .iter()
        .enumerate()
        .map(|(n, pipeline)| {
            let var = def.add_var(&format!("v{n}"), ExternalType::Double, &[x]).unwrap();
            def.set_chunks(var, &[32]).unwrap();
            def.set_filters(var, pipeline).unwrap();
            var
        })
        .collect();
    let mut ds = def.enddef().unwrap();
    let mut values: Vec<f64> = (0..64).map(f64::from).collect();
    // No float holds it, so that the chunk keeps doubles.
    values[40] = 1e300;
    for var in vars {
        ds.put(var, &Selection::all(), &values).unwrap();
    }
    ds.close().unwrap();
    let written = write(&file, &refs, &RefsOptions::default());
    assert_eq!(written.variables.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), ["v1"]);
    let told: Vec<String> =
        written.left_out.iter().map(|v| format!("{}: {}", v.name, v.why)).collect();
    assert!(told[0].contains("v0") && told[0].contains("filter pco"), "{told:?}");
    assert!(told[1].contains("v2") && told[1].contains("filter bitshuffle"), "{told:?}");
    assert!(told[2].contains("v3") && told[2].contains("filter zfp,reversible"), "{told:?}");
    assert!(
        told[3].contains("v4") && told[3].contains("f32 was left out for chunk [1]"),
        "{told:?}"
    );
}
