//! What other programs see of a chunked variable: a missing value, and how to read it.

use std::path::Path;
use std::process::Command;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, FillMode, OpenOptions, Selection, Values, Version,
};

use esker_testkit::{programs, python};

/// A variable of every type of the version, scaled or not, some with a fill value of their own; NoFill, because
/// what they show must not depend on it.
fn made(path: &Path, version: Version) {
    let options = CreateOptions::new().version(version).fill(FillMode::NoFill);
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
    let types = if version == Version::Cdf5 { 11 } else { 6 };
    for ty in ExternalType::ALL.into_iter().take(types) {
        let name = ty.cdl_name();
        for kind in ["plain", "scaled", "own"] {
            let var = def.add_var(&format!("{name}_{kind}"), ty, &[t, x]).unwrap();
            def.set_filters(var, "shuffle zstd").unwrap();
            if ty == ExternalType::Char {
                continue;
            }
            if kind == "scaled" {
                def.put_attr(var, "scale_factor", 0.5f64).unwrap();
                def.put_attr(var, "add_offset", 280.0f64).unwrap();
            }
            if kind == "own" {
                let own = Values::decode(ty, 1, &vec![7; ty.size() as usize]).unwrap();
                def.put_attr(var, "_FillValue", own).unwrap();
            }
        }
    }
    let mut ds = def.enddef().unwrap();
    let float = ds.var("float_plain").unwrap();
    ds.put(float, &Selection::slab(&[0, 0], &[1, 6]), &[1.5f32; 6]).unwrap();
    ds.close().unwrap();
}

#[test]
fn other_programs_see_a_missing_value_and_how_to_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let path = dir.path().join(format!("{version:?}.nc"));
        made(&path, version);
        programs::require_valid(&path, &format!("{version:?}"));
        if let Some(output) = programs::run("ncdump", &[], &path) {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success());
            assert!(text.contains("float_plain:__chunk_note = \"The values are in"), "{text}");
            assert!(text.contains("esker copy --contiguous"), "{text}");
            let values = text.split("\ndata:\n").nth(1).unwrap();
            // Text is an empty string; everything else is what ncdump writes for a missing value.
            for line in values.lines().filter(|line| line.contains(" = ")) {
                let missing = line.ends_with(" = _ ;") || line.starts_with(" char_");
                assert!(missing || line.contains("__chunk_end"), "{line}");
            }
        }
        paths.push(path);
    }
    let Some(python) = python::with("netCDF4, xarray") else { return };
    let script = "\
import sys, netCDF4, numpy as np, xarray as xr
for name in sys.argv[1:]:
    with netCDF4.Dataset(name) as nc:
        for v in nc.variables.values():
            if v.name != '__chunk_end' and v.dtype != 'S1':
                assert np.ma.is_masked(v[...]), v
    with xr.open_dataset(name, engine='netcdf4') as ds:
        seen = 0
        for key, v in ds.variables.items():
            assert 'esker' in v.attrs.get('__chunk_note', '') or key == '__chunk_end', key
            if key.startswith('char_') or key == '__chunk_end':
                continue
            assert np.isnan(v.values), (key, v.values)
            seen += 1
        assert seen >= 15, seen
";
    programs::good_if_installed(Command::new(python).args(["-c", script]).args(&paths));
}

/// Nobody has defined them, and nobody sees them; a program that defines its own sees that.
#[test]
fn programs_do_not_see_what_is_there_for_others() {
    let dir = tempfile::tempdir().unwrap();
    for version in [Version::Cdf1, Version::Cdf5] {
        let path = dir.path().join(format!("{version:?}.nc"));
        made(&path, version);
        for round in 0..2 {
            let ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
            let names = |name: &str| -> Vec<String> {
                let var = ds.variable(ds.var(name).unwrap()).unwrap();
                var.attrs.iter().map(|a| a.name.to_string()).collect()
            };
            assert_eq!(names("int_plain"), ["__chunk_shape", "__filters"]);
            let scaled = ["scale_factor", "add_offset", "__chunk_shape", "__filters"];
            assert_eq!(names("int_scaled"), scaled);
            assert_eq!(names("int_own"), ["_FillValue", "__chunk_shape", "__filters"]);
            assert_eq!(ds.schema().attrs.len(), round);
            // A redefinition keeps that.
            let mut def = ds.redef().unwrap();
            def.put_attr(esker::Owner::Global, "title", "t".repeat(20_000)).unwrap();
            def.enddef().unwrap().close().unwrap();
        }
        programs::require_valid(&path, &format!("{version:?}"));
    }
}
