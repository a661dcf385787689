//! Reading is ncgen's, and nothing is lost on the way to text and back.

use std::path::{Path, PathBuf};
use std::process::Command;

use esker::{Dataset, ExternalType, Owner, Schema, Selection, Values, VarId, Version, values};
use esker_testkit::{data, programs};
use esker_tools::cdl::{self, CdlSource, DumpOptions, GenerateOptions};

use crate::texts;

/// ncdump's text with enough digits to tell every value from its neighbours.
fn ncdump(path: &Path) -> Option<Vec<u8>> {
    let output = programs::run("ncdump", &["-n", "x", "-p", "9,17"], path)?;
    assert!(output.status.success(), "ncdump {}", path.display());
    Some(output.stdout)
}

fn exact() -> DumpOptions {
    DumpOptions { float_digits: Some(9), double_digits: Some(17), ..DumpOptions::default() }
}

fn generate(text: &[u8], path: &Path, version: Option<Version>) {
    let options = GenerateOptions { version, ..GenerateOptions::default() };
    cdl::generate(text, path, &options).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Makes a file with ncgen, or says that there is none.
fn ncgen(folder: &Path, name: &str, text: &str, kind: &str) -> Option<PathBuf> {
    let source = folder.join(format!("{name}.cdl"));
    std::fs::write(&source, text).unwrap();
    let target = folder.join(format!("{name}-ncgen-{kind}.nc"));
    if !programs::have("ncgen") {
        return None;
    }
    let mut command = Command::new("ncgen");
    let output = command.args(["-k", kind, "-o"]).arg(&target).arg(&source).output().unwrap();
    if output.status.code().is_none() {
        println!("{name}: ncgen crashes");
        return None;
    }
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(target)
}

#[test]
fn the_same_text_makes_the_same_file_as_with_ncgen() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts::AWKWARD.iter().filter(|(name, _)| *name != "cdf5") {
        for (kind, version) in [("classic", Version::Cdf1), ("64-bit-offset", Version::Cdf2)] {
            let Some(theirs) = ncgen(folder.path(), name, text, kind) else { continue };
            let ours = folder.path().join(format!("{name}-ours-{kind}.nc"));
            generate(text.as_bytes(), &ours, Some(version));
            let (Some(ours_text), Some(theirs_text)) = (ncdump(&ours), ncdump(&theirs)) else {
                return;
            };
            if let Some(difference) = texts::difference(&ours_text, &theirs_text) {
                panic!("{name} as {kind} {difference}");
            }
        }
    }
}

#[test]
fn cdf5_is_right_where_ncgen_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (name, text) = texts::AWKWARD.iter().find(|(name, _)| *name == "cdf5").unwrap();
    // Without the attributes whose types ncgen infers otherwise (docs/cdl.md).
    let lines = text.lines().filter(|line| !line.contains("inferred"));
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let Some(netcdf4) = ncgen(folder.path(), name, &text, "nc4") else { return };
    let theirs = folder.path().join("theirs.nc");
    let copied = Command::new("nccopy").args(["-k", "cdf5"]).arg(&netcdf4).arg(&theirs).status();
    assert!(copied.unwrap().success());
    let ours = folder.path().join("ours.nc");
    generate(text.as_bytes(), &ours, None);
    let (Some(ours), Some(theirs)) = (ncdump(&ours), ncdump(&theirs)) else { return };
    assert_eq!(texts::difference(&ours, &theirs), None);
}

#[test]
fn every_real_file_survives_text_and_back() {
    for path in data::files("netcdf_classic") {
        let dataset = Dataset::open(&path).unwrap();
        let mut text = Vec::new();
        cdl::dump(&dataset, &exact(), &mut text).unwrap();
        let file = cdl::parse_bytes(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        same_content(&path, &dataset, &file);
    }
}

#[test]
fn a_file_made_from_a_dump_dumps_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for path in data::files("netcdf_classic") {
        let dataset = Dataset::open(&path).unwrap();
        if !mismatched(dataset.schema()).is_empty() {
            continue;
        }
        let mut options = exact();
        options.special_attributes = true;
        options.name = Some("x".into());
        let mut text = Vec::new();
        cdl::dump(&dataset, &options, &mut text).unwrap();
        let made = folder.path().join("made.nc");
        generate(&text, &made, None);
        let again = Dataset::open(&made).unwrap();
        assert_eq!(again.schema().version, dataset.schema().version);
        let mut second = Vec::new();
        cdl::dump(&again, &options, &mut second).unwrap();
        if let Some(difference) = texts::difference(&second, &text) {
            panic!("{} {difference}", path.display());
        }
        if dataset.file_len().unwrap() > 1 << 20 {
            continue;
        }
        let (Some(ours), Some(theirs)) = (ncdump(&made), ncdump(&path)) else { continue };
        if let Some(difference) = texts::difference(&ours, &theirs) {
            panic!("{} {difference}", path.display());
        }
    }
}

/// What text cannot tell: zeros after names and attributes, and the type of attributes without
/// values and of fill values.
fn shown(schema: &Schema, mismatched: &[&str]) -> Schema {
    let mut out = Schema::new(Version::Cdf5);
    let name = |name: &str| name.trim_end_matches('\0').to_string();
    for dim in &schema.dims {
        out.add_dim(&name(&dim.name), dim.len).unwrap();
    }
    let value = |values: &Values| match values {
        Values::Char(text) => {
            let end = text.iter().rposition(|b| *b != 0).map_or(0, |p| p + 1);
            Values::Char(text[..end].to_vec())
        }
        values if values.is_empty() => Values::Char(Vec::new()),
        values => values.clone(),
    };
    for attribute in &schema.attrs {
        out.put_attr(Owner::Global, &name(&attribute.name), value(&attribute.values)).unwrap();
    }
    for var in &schema.vars {
        let id = out.add_var(&name(&var.name), var.ty, &var.dims).unwrap();
        for attribute in &var.attrs {
            if &*attribute.name == "_FillValue" && mismatched.contains(&&*var.name) {
                continue;
            }
            let values = value(&attribute.values);
            out.put_attr(Owner::Var(id), &name(&attribute.name), values).unwrap();
        }
    }
    out
}

/// Variables whose fill value is of another type, which text cannot tell: docs/cdl.md.
fn mismatched(schema: &Schema) -> Vec<&str> {
    let other = |ty: ExternalType, values: &Values| values.ty() != ty && !values.is_empty();
    let vars = schema.vars.iter();
    vars.filter(|v| v.attrs.get("_FillValue").is_some_and(|a| other(v.ty, &a.values)))
        .map(|v| &*v.name)
        .collect()
}

/// Everything in a schema as text, because NaN does not equal itself.
fn listed(schema: &Schema) -> String {
    let vars = schema.vars.iter().map(|v| (&v.name, v.ty, &v.dims, v.attrs.as_slice()));
    let vars: Vec<_> = vars.collect();
    format!("{:?} {:?} {vars:?}", schema.dims.as_slice(), schema.attrs.as_slice())
}

fn same_content(path: &Path, dataset: &Dataset, file: &cdl::CdlFile) {
    let at = path.display();
    let mismatched = mismatched(dataset.schema());
    let (ours, theirs) = (shown(&file.schema, &mismatched), shown(dataset.schema(), &mismatched));
    let (ours, theirs) = (listed(&ours), listed(&theirs));
    if let Some(difference) = texts::difference(ours.as_bytes(), theirs.as_bytes()) {
        panic!("{at} {difference}");
    }
    assert_eq!(file.numrecs, dataset.numrecs(), "{at}");
    for (id, var) in dataset.schema().vars.iter().enumerate() {
        let id = VarId(id);
        let shape = dataset.shape(id).unwrap();
        if shape.contains(&0) {
            continue;
        }
        let theirs = dataset.get_values(id, &Selection::all()).unwrap();
        let ours = file.read(id, &vec![0; shape.len()], &shape).unwrap();
        let fill = values::fill_value(var);
        for i in 0..theirs.len() {
            let same = same_value(&ours, &theirs, &fill, i);
            assert!(same, "{at} {} value {i}: {:?} {:?}", var.name, ours.get(i), theirs.get(i));
        }
    }
}

/// Equal bits, or a value so near the fill value that it is printed as `_`.
fn same_value(ours: &Values, theirs: &Values, fill: &Values, i: usize) -> bool {
    let (a, b) = (ours.get_f64(i), theirs.get_f64(i));
    match (a, b, fill.get_f64(0)) {
        (Some(a), Some(b), Some(fill)) if a.is_nan() && b.is_nan() => !fill.is_infinite(),
        (Some(a), Some(b), Some(fill)) if a == fill => (a - b).abs() <= (b * 1.2e-7).abs(),
        _ => ours.get(i) == theirs.get(i),
    }
}
