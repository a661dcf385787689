//! Lossy filters on real data: every element within its bound, by the judgement of others.

use std::path::{Path, PathBuf};

use crate::common::{classic_files, good, python, shared_data};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection, VarId};
use serde_json::{Value, json};

/// The bound of a variable: absolute, or relative.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Absolute(f64),
    Relative(f64),
}

const KINDS: [&str; 4] = ["sz", "zfp", "bitround", "sz,rel"];

/// The filter of a kind for values of this range, and the bound that it promises.
fn filter(kind: &str, range: f64) -> (String, Bound) {
    match kind {
        "sz" => (format!("sz,abs={:e}", 1e-3 * range), Bound::Absolute(1e-3 * range)),
        "zfp" => (format!("zfp,accuracy={:e}", 1e-4 * range), Bound::Absolute(1e-4 * range)),
        "bitround" => ("bitround,9 shuffle zstd,3".into(), Bound::Relative(2f64.powi(-10))),
        // Of a chunk's own range, which is at most the variable's.
        _ => ("sz,rel=1e-2".into(), Bound::Absolute(1e-2 * range)),
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a name of text")
}

/// The values of a variable, its fill value, and whether one of them is ordinary.
fn values(ds: &Dataset, var: VarId) -> (Vec<f64>, f64) {
    let fill = esker::values::fill_value(ds.variable(var).expect("it"));
    let fill = fill.get_f64(0).expect("a number");
    (ds.get::<f64>(var, &Selection::all()).expect("values"), fill)
}

/// Real variables that are not coordinates, and have values that differ: with the range of these.
fn candidates(ds: &Dataset) -> Vec<(VarId, f64)> {
    let schema = ds.schema();
    let mut found = Vec::new();
    for (number, var) in schema.vars.iter().enumerate() {
        let is_real = matches!(var.ty, ExternalType::Float | ExternalType::Double);
        let is_coordinate = schema.dim(&var.name).is_some();
        if !is_real || is_coordinate || var.dims.is_empty() {
            continue;
        }
        let (values, fill) = values(ds, VarId(number));
        let ordinary = values.into_iter().filter(|v| v.is_finite() && *v != fill);
        let (low, high) =
            ordinary.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        // Of a range like 1e34, which a missing value makes, a thousandth is no bound.
        if low < high && high - low < 1e20 {
            found.push((VarId(number), high - low));
        }
    }
    found
}

/// Compresses a file by a kind of filter and back; compares it, and says what others should.
fn passes(real: &Path, dir: &Path, number: usize, kind: &str) -> Option<Value> {
    let ds = Dataset::open(real).expect("it opens");
    let (mut arguments, mut bounds) = (Vec::new(), Vec::new());
    for (var, range) in candidates(&ds) {
        let name = ds.variable(var).expect("it").name.to_string();
        let (filter, bound) = filter(kind, range);
        arguments.push(format!("--filter={name}:{filter}"));
        bounds.push((var, name, bound));
    }
    if bounds.is_empty() {
        return None;
    }
    let chunked = dir.join(format!("{number}.chunked.nc"));
    let back = dir.join(format!("{number}.back.nc"));
    let start = ["copy", "--no-history", "-O", "--auto", "--smallest=0"];
    let filters: Vec<&str> = arguments.iter().map(String::as_str).collect();
    good(&[&start[..], &filters, &[text(real), text(&chunked)]].concat());
    good(&["check", "-q", text(&chunked)]);
    good(&["copy", "--no-history", "-O", "--contiguous", text(&chunked), text(&back)]);
    // By our own reader, of the chunks.
    let other = Dataset::open(&chunked).expect("it opens");
    for (var, name, bound) in &bounds {
        let (old, fill) = values(&ds, *var);
        let new = values(&other, other.var(name).expect("it")).0;
        assert_eq!(old.len(), new.len());
        for (a, b) in old.into_iter().zip(new) {
            let what = format!("{}, {kind}, {name}: {a} became {b}", real.display());
            if !a.is_finite() || a == fill {
                assert!(a == b || a.is_nan() && b.is_nan(), "{what}");
                continue;
            }
            match bound {
                Bound::Absolute(most) => assert!((a - b).abs() <= *most, "{what}"),
                // Numbers that have few bits left keep those.
                Bound::Relative(most) => {
                    assert!((a - b).abs() <= most * a.abs() || a.abs() < 1e-37, "{what}");
                }
            }
        }
    }
    let list = bounds.iter().map(|(_, name, bound)| match bound {
        Bound::Absolute(most) => (name.clone(), json!(["absolute", most])),
        Bound::Relative(most) => (name.clone(), json!(["relative", most])),
    });
    let list: serde_json::Map<String, Value> = list.collect();
    Some(json!({ "real": text(real), "back": text(&back), "bounds": list }))
}

/// netCDF4-python and numpy compare the files as they are after the way back.
fn judged(cases: &[Value], dir: &Path) {
    let Some(mut python) = python() else { return };
    let list = dir.join("cases.json");
    std::fs::write(&list, serde_json::to_string(cases).expect("JSON")).expect("written");
    let script = "\
import json, sys, netCDF4, numpy as np
for case in json.load(open(sys.argv[1])):
    with netCDF4.Dataset(case['real']) as a, netCDF4.Dataset(case['back']) as b:
        assert list(a.variables) == list(b.variables)
        for nc in (a, b):
            nc.set_auto_mask(False), nc.set_auto_scale(False)
        for name, v in a.variables.items():
            old, new = np.asarray(v[...]), np.asarray(b[name][...])
            where = (case['real'], name)
            if name not in case['bounds']:
                assert old.tobytes() == new.tobytes(), where
                continue
            kind, most = case['bounds'][name]
            fill = getattr(v, '_FillValue', netCDF4.default_fillvals[old.dtype.str[1:]])
            special = ~np.isfinite(old) | (old == fill)
            assert np.array_equal(np.isnan(old), np.isnan(new)), where
            assert np.array_equal(old[special], new[special], equal_nan=True), where
            old, new = old[~special].astype('f8'), new[~special].astype('f8')
            most = most if kind == 'absolute' else most * np.abs(old) + 1e-37
            assert (np.abs(old - new) <= most).all(), (where, np.abs(old - new).max())
";
    let output = python.arg("-c").arg(script).arg(list).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A volume of floats as a variable of a classic file, with holes that are not numbers.
fn volume(path: &Path, name: &str, shape: [u64; 3], values: &[f32]) {
    let mut def = Dataset::create(path, CreateOptions::new()).expect("created");
    let dims = ["z", "y", "x"].iter().zip(shape);
    let dims: Vec<_> =
        dims.map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).expect("it")).collect();
    let var = def.add_var(name, ExternalType::Float, &dims).expect("it");
    def.put_attr(var, "_FillValue", -1e34f32).expect("it");
    let mut ds = def.enddef().expect("defined");
    let mut values = values.to_vec();
    let special = [f32::NAN, -1e34, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-42];
    for (value, special) in values.iter_mut().step_by(997).zip(special.iter().cycle()) {
        *value = *special;
    }
    ds.put(var, &Selection::all(), &values).expect("written");
    ds.close().expect("closed");
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn volumes(dir: &Path) -> Vec<PathBuf> {
    let Some(data) = shared_data() else { return Vec::new() };
    let mut made = Vec::new();
    if let Ok(bytes) = std::fs::read(data.join("volumes/vorticity.128_128_41")) {
        let path = dir.join("vorticity.nc");
        volume(&path, "vorticity", [41, 128, 128], &floats(&bytes));
        made.push(path);
    }
    if let Ok(bytes) = std::fs::read(data.join("volumes/devito_acoustic_wave_192.npy")) {
        // Planes from the middle: the header is a little longer than 100 bytes, the rest are floats.
        let all = floats(&bytes[bytes.len() - 4 * 192 * 192 * 192..]);
        let path = dir.join("wave.nc");
        volume(&path, "wave", [24, 192, 192], &all[80 * 192 * 192..104 * 192 * 192]);
        made.push(path);
    }
    made
}

#[test]
fn every_element_of_real_data_keeps_the_bound_of_its_filter() {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = directory.path();
    let mut cases = Vec::new();
    let volumes = volumes(dir);
    for (number, file) in classic_files().into_iter().chain(volumes.clone()).enumerate() {
        let is_small = std::fs::metadata(&file).expect("its length").len() < 200_000;
        for (turn, kind) in KINDS.iter().enumerate() {
            // Volumes and small files pass all of them, the others take turns.
            if is_small || volumes.contains(&file) || number % KINDS.len() == turn {
                let number = KINDS.len() * number + turn;
                cases.extend(passes(&file, dir, number, kind));
            }
        }
    }
    judged(&cases, dir);
    if !volumes.is_empty() {
        assert!(cases.len() > 20, "{} files have floats", cases.len());
    }
}
