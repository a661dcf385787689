//! What other programs make of files with chunks: they are classic files, to the last byte.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimId, DimLen, Error, ExternalType, OpenOptions,
    Selection, VarId, Version,
};

use esker_testkit::ranks::on_ranks;
use esker_testkit::{programs, python};

const VERSIONS: [Version; 3] = [Version::Cdf1, Version::Cdf2, Version::Cdf5];

/// What variables there are, in the order of definition: `c` chunked, `C` chunked with records, `p` plain,
/// `b` plain bytes that need padding, `r` with traditional records.
const ORDERS: [&str; 9] = ["c", "C", "cC", "pcCpb", "pcb", "bcp", "prcC", "rC", "Ccr"];

fn variable(def: &mut Define, (t, x): (DimId, DimId), kind: char) -> Result<VarId, Error> {
    let name = format!("{kind}{}", def.schema().vars.len());
    let (ty, dims): (_, &[DimId]) = match kind {
        'c' => (ExternalType::Double, &[x]),
        'C' => (ExternalType::Short, &[t, x]),
        'p' => (ExternalType::Int, &[x]),
        'b' => (ExternalType::Byte, &[x]),
        _ => (ExternalType::Float, &[t]),
    };
    let var = def.add_var(&name, ty, dims)?;
    match kind {
        'c' => def.set_chunks(var, &[3])?,
        'C' => def.set_chunks(var, &[2, 4])?,
        _ => return Ok(var),
    }
    def.set_filters(var, "deflate,1")?;
    Ok(var)
}

fn defined(
    comm: &Arc<dyn Communicator>,
    path: &Path,
    version: Version,
    order: &str,
) -> Result<Dataset, Error> {
    let options = CreateOptions::new().comm(comm.clone()).version(version);
    let mut def = Dataset::create(path, options)?;
    let dims = (def.add_dim("t", DimLen::Unlimited)?, def.add_dim("x", DimLen::Fixed(7))?);
    for kind in order.chars() {
        variable(&mut def, dims, kind)?;
    }
    Ok(def.enddef()?)
}

/// Fixed values or one more record of every variable, written by rank 0.
fn write(ds: &mut Dataset, comm: &dyn Communicator, seed: u64) -> Result<(), Error> {
    let record = ds.numrecs();
    for number in 0..ds.schema().vars.len() {
        let var = VarId(number);
        let mut shape = ds.shape(var)?;
        let has_records = ds.schema().is_record(ds.variable(var)?);
        let mut start = vec![0; shape.len()];
        if has_records {
            (start[0], shape[0]) = (record, 1);
        }
        let n = shape.iter().product::<u64>();
        let values: Vec<i32> = (0..n).map(|i| ((seed * 31 + i * i) % 100) as i32).collect();
        match comm.rank() {
            0 => ds.put_all(var, &Selection::slab(&start, &shape), &values)?,
            _ => ds.put_all::<i32>(var, &Selection::none(), &[])?,
        }
    }
    Ok(())
}

fn reopened(comm: &Arc<dyn Communicator>, path: &Path) -> Result<Dataset, Error> {
    Dataset::open_with(path, OpenOptions::new().comm(comm.clone()).writable(true))
}

/// A step in the life of a file, after which others look at it.
type Step = fn(&Arc<dyn Communicator>, &Path, Version, &str) -> Result<(), Error>;

const LIFE: [(&str, Step); 8] = [
    ("empty", |comm, path, version, order| defined(comm, path, version, order)?.close()),
    ("written", |comm, path, version, order| {
        let mut ds = defined(comm, path, version, order)?;
        write(&mut ds, &**comm, 1)?;
        ds.close()
    }),
    ("grown", |comm, path, _, _| {
        let mut ds = reopened(comm, path)?;
        for seed in 2..5 {
            write(&mut ds, &**comm, seed)?;
            ds.sync()?;
        }
        ds.close()
    }),
    ("untouched", |comm, path, _, _| reopened(comm, path)?.close()),
    ("rewritten", |comm, path, _, _| {
        for seed in 5..8 {
            let mut ds = reopened(comm, path)?;
            write(&mut ds, &**comm, seed)?;
            ds.close()?;
        }
        Ok(())
    }),
    ("redefined", |comm, path, _, _| {
        let mut def = reopened(comm, path)?.redef()?;
        let dims = (DimId(0), DimId(1));
        for kind in "bcC".chars() {
            variable(&mut def, dims, kind)?;
        }
        def.enddef()?.close()
    }),
    ("plain variable added", |comm, path, _, _| {
        let mut def = reopened(comm, path)?.redef()?;
        variable(&mut def, (DimId(0), DimId(1)), 'p')?;
        let mut ds = def.enddef()?;
        write(&mut ds, &**comm, 8)?;
        ds.close()
    }),
    ("records added", |comm, path, _, _| {
        let mut def = reopened(comm, path)?.redef()?;
        variable(&mut def, (DimId(0), DimId(1)), 'r')?;
        let mut ds = def.enddef()?;
        write(&mut ds, &**comm, 9)?;
        ds.close()
    }),
];

/// Everything that programs see of a dataset.
fn seen(path: &Path) -> Vec<(String, Vec<f64>)> {
    let ds = Dataset::open(path).unwrap();
    let all = (0..ds.schema().vars.len()).map(VarId);
    all.map(|var| {
        let values = ds.get::<f64>(var, &Selection::all()).unwrap();
        (ds.variable(var).unwrap().name.to_string(), values)
    })
    .collect()
}

fn files(dir: &Path, ranks: usize, orders: &[&'static str]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for version in VERSIONS {
        for order in orders.iter().copied() {
            let path = dir.join(format!("{version:?}-{order}.nc"));
            for (name, step) in LIFE {
                let target = path.clone();
                let done = on_ranks(ranks, move |comm| step(&comm, &target, version, order));
                let what = format!("{version:?} {order} {name}");
                assert!(done.iter().all(Result::is_ok), "{what}: {done:?}");
                programs::require_valid(&path, &what);
                let copy = path.with_file_name(format!("{version:?}-{order}-{name}.nc"));
                std::fs::copy(&path, &copy).unwrap();
                paths.push(copy);
            }
        }
    }
    paths
}

#[test]
fn ncvalidator_accepts_every_state_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    files(dir.path(), 1, &ORDERS);
    files(dir.path(), 3, &["C", "bcp", "prcC"]);
}

#[test]
fn other_programs_open_files_with_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let paths = files(dir.path(), 1, &["pcCpb", "bcp"]);
    for path in &paths {
        for (program, arguments) in
            [("ncdump", &[][..]), ("ncoffsets", &["-sg"]), ("ncoffsets", &["-x"])]
        {
            programs::good_if_installed(Command::new(program).args(arguments).arg(path));
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        // What CDF-5 has, others have not.
        let kinds = match &name[..4] {
            "Cdf1" => &["classic", "64-bit-offset", "cdf5"][..],
            "Cdf2" => &["64-bit-offset", "classic", "cdf5"],
            _ => &["cdf5"],
        };
        for kind in kinds {
            let copy = path.with_extension(kind);
            programs::good_if_installed(
                Command::new("nccopy").args(["-k", kind]).args([path, &copy]),
            );
        }
        let same = kinds[0];
        programs::good_if_installed(
            Command::new("cdfdiff").args([path, &path.with_extension(same)]),
        );
    }
    let Some(python) = python::with("netCDF4, scipy.io") else { return };
    let script = "\
import sys, netCDF4
from scipy.io import netcdf_file
for name in sys.argv[1:]:
    with netCDF4.Dataset(name) as nc:
        nc.set_auto_mask(False)
        seen = {k: v[...].tobytes() for k, v in nc.variables.items() if 'c' not in k.lower()}
        end = nc['__chunk_end']
        assert end.shape == () and end[...] == -2147483647, end[...]
    if 'Cdf5' in name.split('/')[-1]:
        continue
    with netcdf_file(name, mmap=False) as nc:
        assert int(nc.variables['__chunk_end'][()]) == -2147483647
        for k, v in seen.items():
            assert nc.variables[k][...].astype(nc.variables[k].data.dtype.newbyteorder('=')).tobytes() == v, k
";
    programs::good_if_installed(Command::new(python).args(["-c", script]).args(&paths));
}

#[test]
fn programs_do_not_see_the_variable_that_ends_the_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let done = on_ranks(1, {
        let path = path.clone();
        move |comm| -> Result<(), Error> {
            let mut ds = defined(&comm, &path, Version::Cdf2, "cp")?;
            assert_eq!(ds.schema().vars.len(), 2);
            assert_eq!(ds.header().schema.vars.len(), 3);
            assert!(ds.var("__chunk_end").is_err());
            assert!(ds.get::<i32>(VarId(2), &Selection::all()).is_err());
            write(&mut ds, &*comm, 1)?;
            ds.close()?;
            // Numbers of variables that come later are the next ones.
            let mut def = reopened(&comm, &path)?.redef()?;
            assert_eq!(variable(&mut def, (DimId(0), DimId(1)), 'p')?, VarId(2));
            def.enddef()?.close()?;
            // Nobody takes its name.
            let mut def = reopened(&comm, &path)?.redef()?;
            def.add_var("__chunk_end", ExternalType::Int, &[])?;
            let error = def.enddef().unwrap_err().to_string();
            assert!(error.contains("choose another"), "{error}");
            Ok(())
        }
    });
    done.into_iter().for_each(|outcome| outcome.unwrap());
    let names: Vec<String> = seen(&path).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["c0", "p1", "p2"]);
}

#[test]
fn a_reader_sees_the_records_of_a_writer_who_has_synced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(1, move |comm| {
        let mut ds = defined(&comm, &path, Version::Cdf5, "Cp").unwrap();
        write(&mut ds, &*comm, 1).unwrap();
        ds.sync().unwrap();
        let mut reader = Dataset::open(&path).unwrap();
        assert_eq!(reader.numrecs(), 1);
        write(&mut ds, &*comm, 2).unwrap();
        ds.sync().unwrap();
        reader.sync().unwrap();
        assert_eq!(reader.numrecs(), 2);
        let all = reader.get::<i32>(VarId(0), &Selection::all()).unwrap();
        assert_eq!(all, ds.get::<i32>(VarId(0), &Selection::all()).unwrap());
    });
}

#[test]
fn a_sync_without_a_write_moves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let mut ds = defined(&comm, &path, Version::Cdf1, "c").unwrap();
        write(&mut ds, &*comm, 1).unwrap();
        ds.sync().unwrap();
        let len = ds.file_len().unwrap();
        for _ in 0..3 {
            ds.sync().unwrap();
        }
        ds.close().unwrap();
        comm.barrier().unwrap();
        let mut ds = reopened(&comm, &path).unwrap();
        ds.sync().unwrap();
        assert_eq!(ds.file_len().unwrap(), len);
    });
}

#[test]
fn a_variable_that_netcdf_adds_lies_behind_the_chunks() {
    let Some(python) = python::with("netCDF4") else { return };
    let dir = tempfile::tempdir().unwrap();
    for version in VERSIONS {
        let path = dir.path().join(format!("{version:?}.nc"));
        let script = "\
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], 'a') as nc:
    nc.createVariable('added', 'i4', ('x',))[:] = range(7)
    nc.note = 'x' * 500
";
        let python = python.clone();
        let life = move |comm: Arc<dyn Communicator>| {
            let mut ds = defined(&comm, &path, version, "pcC").unwrap();
            write(&mut ds, &*comm, 1).unwrap();
            ds.close().unwrap();
            let before = seen(&path);
            programs::good_if_installed(Command::new(&python).args(["-c", script]).arg(&path));
            let (mut after, added) = (seen(&path), (0..7).map(f64::from).collect::<Vec<_>>());
            assert_eq!(after.pop(), Some(("added".to_string(), added.clone())));
            after.retain(|(name, _)| name != "__chunk_end");
            assert_eq!(after, before);
            // And chunks that come later lie behind it, or in holes.
            let mut ds = reopened(&comm, &path).unwrap();
            for seed in 2..9 {
                let all = ds.get::<i32>(VarId(1), &Selection::all()).unwrap();
                let other: Vec<i32> = all.iter().map(|value| value * 3 + seed).collect();
                ds.put_all(VarId(1), &Selection::all(), &other).unwrap();
                ds.sync().unwrap();
            }
            ds.close().unwrap();
            assert_eq!(seen(&path).pop(), Some(("added".to_string(), added)));
            // Esker makes one file of it again.
            let mut def = reopened(&comm, &path).unwrap().redef().unwrap();
            variable(&mut def, (DimId(0), DimId(1)), 'c').unwrap();
            def.enddef().unwrap().close().unwrap();
            seen(&path);
        };
        on_ranks(1, life);
    }
}
