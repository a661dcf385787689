//! References: plain xarray reads through them what netCDF4-python reads from the file.

mod peers;

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Owner, Selection, Version};
use esker_store::{Fault, FaultyStore, LocalStore};
use esker_tools::Unseen;
use esker_tools::cdl::{self, GenerateOptions};
use esker_tools::refs::{self, Form, Location, RefsError, RefsOptions, Written};

/// A Python that opens references.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let python = std::env::var_os("ESKER_PYTHON").map_or(own, PathBuf::from);
    let needed = "import netCDF4, xarray, zarr, fsspec, kerchunk, fastparquet";
    if Command::new(&python).args(["-c", needed]).output().is_ok_and(|o| o.status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with xarray, zarr and kerchunk (./test setup, or ESKER_PYTHON)");
    None
}

/// Pairs of a netCDF file and references that must show the same, compared by one Python.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    fn add(&mut self, file: &Path, refs: &Path) {
        writeln!(self.0, "{}\t{}", file.display(), refs.display()).unwrap();
    }

    fn compare(self, dir: &Path) {
        let Some(python) = python() else { return };
        let list = dir.join("pairs");
        fs::write(&list, self.0).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/refs.py");
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
    for (n, file) in peers::files("netcdf_classic").into_iter().enumerate() {
        if !file.extension().is_some_and(|e| e == "nc" || e.eq_ignore_ascii_case("cdf")) {
            continue;
        }
        for ending in ["json", "parq"] {
            let refs = dir.path().join(format!("{n}.{ending}"));
            let options = RefsOptions { rows: 100, ..RefsOptions::default() };
            assert_eq!(write(&file, &refs, &options).left_out, [], "{}", file.display());
            pairs.add(&file, &refs);
        }
    }
    pairs.compare(dir.path());
}

#[test]
fn xarray_sees_awkward_files_through_references() {
    let dir = tempfile::tempdir().unwrap();
    let mut pairs = Pairs::default();
    for (name, text) in peers::AWKWARD {
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
        let (variable, mut shape) = (ds.variable(*var).unwrap().clone(), ds.shape(*var).unwrap());
        if ds.schema().is_record(&variable) {
            shape[0] = 4;
        }
        let count = shape.iter().product::<u64>();
        let all = Selection::slab(&vec![0; shape.len()], &shape);
        if variable.ty == ExternalType::Char {
            let text: Vec<esker::Char> =
                (0..count).map(|i| esker::Char(b'a' + (i % 26) as u8)).collect();
            ds.put(*var, &all, &text).unwrap();
        } else {
            let numbers: Vec<f64> = (0..count).map(|i| ((i + seed as u64) % 101) as f64).collect();
            ds.put(*var, &all, &numbers).unwrap();
        }
    }
    ds.close().unwrap();
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
                let growing = dir.path().join(format!(".{name}.esker-new"));
                assert!(fault == Fault::Tear || !growing.exists());
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
