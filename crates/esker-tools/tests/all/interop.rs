//! What Esker writes others read, and the other way round.
//!
//! The others are netCDF4-python (found by `ESKER_PYTHON`, or `.venv/bin/python` in the
//! checkout), netCDF-C's `nccopy` and `ncdump`, and PnetCDF's `ncvalidator`. What is not
//! installed is skipped, with a message.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use esker::{
    Alignment, CreateOptions, Dataset, DimId, DimLen, ExternalType, FillMode, OpenOptions, Owner,
    Selection, Values, VarId, Version,
};
use esker_testkit::data;
use esker_testkit::programs::have;
use esker_testkit::python::{self, script};
use esker_testkit::random::Random;
use esker_tools::Unseen;
use esker_tools::copy::{CopyError, CopyOptions, DimRange, copy};
use esker_tools::diff::{DiffOptions, diff};

// ---- what is seen in a file -----------------------------------------------------------------

/// The definitions, a line each, and all values big-endian: what `python/view.py` makes.
fn view(path: &Path) -> (String, Vec<u8>) {
    let ds = Dataset::open(path).unwrap_or_else(|e| panic!("{e}"));
    let schema = ds.schema();
    let mut lines = format!("version\t{}\n", schema.version.byte());
    for dim in &schema.dims {
        let (len, kind) = match dim.len {
            DimLen::Fixed(len) => (len, "fixed"),
            DimLen::Unlimited => (ds.numrecs(), "unlimited"),
        };
        writeln!(lines, "dimension\t{}\t{len}\t{kind}", dim.name).unwrap();
    }
    for var in &schema.vars {
        write!(lines, "variable\t{}\t{}", var.name, var.ty).unwrap();
        for dim in &var.dims {
            write!(lines, "\t{}", schema.dims.at(dim.0).unwrap().name).unwrap();
        }
        lines.push('\n');
    }
    let of_vars = schema.vars.iter().map(|v| (&*v.name, &v.attrs));
    for (owner, attrs) in std::iter::once(("", &schema.attrs)).chain(of_vars) {
        for attr in attrs {
            let bytes = match attr.values.text() {
                // netCDF4-python drops zero bytes and replaces what is not UTF-8.
                Some(text) => text.replace('\0', "").into_bytes(),
                None => attr.values.external_bytes(),
            };
            let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let (name, ty) = (&attr.name, attr.values.ty());
            writeln!(lines, "attribute\t{owner}\t{name}\t{ty}\t{hex}").unwrap();
        }
    }
    let mut data = Vec::new();
    for number in 0..schema.vars.len() {
        let values = ds.get_values(VarId(number), &Selection::all());
        values.unwrap_or_else(|e| panic!("{e}")).encode_into(&mut data);
    }
    (lines, data)
}

fn require_same_view(what: &str, ours: &(String, Vec<u8>), theirs: &(String, Vec<u8>)) {
    assert_eq!(ours.0, theirs.0, "{what}: the definitions differ");
    assert_eq!(ours.1.len(), theirs.1.len(), "{what}: the numbers of bytes differ");
    let differs = ours.1.iter().zip(&theirs.1).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{what}: the values differ at this byte of all values");
}

// ---- the others -----------------------------------------------------------------------------

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn run_python(python: &Path, arguments: &[&std::ffi::OsStr]) {
    let mut command = Command::new(python);
    let output = command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What netCDF4-python sees in each file; one start of Python for all of them.
fn python_views(python: &Path, dir: &Path, files: &[PathBuf]) -> Vec<(String, Vec<u8>)> {
    let place = |n: usize, kind: &str| dir.join(format!("seen-{n}.{kind}"));
    let mut list = String::new();
    for (n, file) in files.iter().enumerate() {
        let (view, data) = (place(n, "view"), place(n, "data"));
        writeln!(list, "{}\t{}\t{}", file.display(), view.display(), data.display()).unwrap();
    }
    let name = dir.join("list");
    fs::write(&name, list).unwrap();
    run_python(python, &[script(HERE, "view.py").as_os_str(), name.as_os_str()]);
    (0..files.len())
        .map(|n| {
            let view = fs::read_to_string(place(n, "view")).unwrap();
            let data = fs::read(place(n, "data")).unwrap();
            fs::remove_file(place(n, "data")).unwrap();
            (view, data)
        })
        .collect()
}

fn require_valid(file: &Path) {
    let output = Command::new("ncvalidator").arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "ncvalidator: {}: {said}", file.display());
}

/// The header as ncdump prints it, under one name and without the line of the kind.
fn ncdump_header(file: &Path) -> String {
    let output = Command::new("ncdump").args(["-h", "-n", "x"]).arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ncdump: {}: {said}", file.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn nccopy(from: &Path, to: &Path, version: Version) {
    let kind = version.byte().to_string();
    let output = Command::new("nccopy").args(["-k", &kind]).args([from, to]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nccopy: {}: {said}", from.display());
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

// ---- real files -----------------------------------------------------------------------------

#[test]
fn real_files_hold_what_netcdf4_python_reads() {
    let (files, Some(python)) = (data::files("netcdf_classic"), python::with("netCDF4")) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let views = python_views(&python, dir.path(), &files);
    for (file, theirs) in files.iter().zip(&views) {
        require_same_view(&name(file), &view(file), theirs);
    }
}

#[test]
fn a_copy_to_each_version_and_back_loses_nothing() {
    let files = data::files("netcdf_classic");
    let python = python::with("netCDF4");
    let (validator, ncdump) = (have("ncvalidator"), have("ncdump"));
    let nccopy_too = have("nccopy");
    let dir = tempfile::tempdir().unwrap();
    let options = CopyOptions { sync: false, ..CopyOptions::default() };
    let mut held: BTreeMap<Version, usize> = BTreeMap::new();
    let mut copies = Vec::new();
    for file in &files {
        let original = view(file);
        let there = dir.path().join("there.nc");
        let back = dir.path().join("back.nc");
        for version in Version::ALL {
            let what = format!("{} as {version}", name(file));
            let to = CopyOptions { version: Some(version), ..options.clone() };
            match copy(file, &there, &to, &mut Unseen) {
                Ok(_) => *held.entry(version).or_default() += 1,
                Err(CopyError::Type { .. }) => {
                    converted(file, &there, &to);
                    continue;
                }
                Err(error) => panic!("{what}: {error}"),
            }
            require_same(file, &there, &what);
            let from = Dataset::open(file).unwrap().schema().version;
            let again = CopyOptions { version: Some(from), ..options.clone() };
            copy(&there, &back, &again, &mut Unseen).unwrap();
            require_same_view(&format!("{what} and back"), &view(&back), &original);
            if validator {
                require_valid(&there);
            }
            if ncdump {
                assert_eq!(ncdump_header(file), ncdump_header(&there), "{what}");
            }
            if nccopy_too && original.1.len() < 4 << 20 {
                let theirs = dir.path().join("theirs.nc");
                nccopy(file, &theirs, version);
                require_same(&there, &theirs, &format!("{what}, by nccopy"));
            }
            let kept = dir.path().join(format!("{}-{version}.nc", name(file)));
            fs::rename(&there, &kept).unwrap();
            copies.push((file, kept));
        }
    }
    if let Some(python) = &python {
        let paths: Vec<PathBuf> = copies.iter().map(|(_, kept)| kept.clone()).collect();
        let seen = python_views(python, dir.path(), &paths);
        for ((file, kept), mut theirs) in copies.iter().zip(seen) {
            // All but the first line, which is the version.
            let without = |s: &str| s.split_once('\n').map(|(_, rest)| rest.to_string());
            let mut original = view(file);
            theirs.0 = without(&theirs.0).unwrap_or_default();
            original.0 = without(&original.0).unwrap_or_default();
            require_same_view(&name(kept), &original, &theirs);
        }
    }
    println!("{} files; copies by version: {held:?}", files.len());
}

/// A copy whose types had to change has the same numbers.
fn converted(file: &Path, there: &Path, options: &CopyOptions) {
    let options = CopyOptions { convert_types: true, ..options.clone() };
    let told = copy(file, there, &options, &mut Unseen);
    println!("{}: {:?}", name(file), told.as_ref().map(|t| &t.converted));
    match told {
        Ok(_) => {
            let report = diff(file, there, &DiffOptions::default(), &mut Unseen).unwrap();
            assert!(report.values.is_empty(), "{:#?}", report.lines().collect::<Vec<_>>());
        }
        Err(CopyError::Value { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn require_same(a: &Path, b: &Path, what: &str) {
    let report = diff(a, b, &DiffOptions::default(), &mut Unseen).unwrap();
    assert!(report.same(), "{what}: {:#?}", report.lines().collect::<Vec<_>>());
}

// ---- random files ---------------------------------------------------------------------------

/// Values and types by chance.
trait Chances {
    fn values(&mut self, ty: ExternalType, n: usize) -> Values;
    fn attribute(&mut self, version: Version) -> Values;
    fn ty(&mut self, version: Version) -> ExternalType;
}

impl Chances for Random {
    fn values(&mut self, ty: ExternalType, n: usize) -> Values {
        let mut values = Values::zeros(ty, n);
        for byte in values.native_bytes_mut() {
            *byte = self.next() as u8;
        }
        values
    }

    fn attribute(&mut self, version: Version) -> Values {
        let ty = self.ty(version);
        match ty {
            // netCDF4-python cannot show an empty text apart from one of zero bytes.
            ExternalType::Char => {
                Values::from(self.pick(&["", "K", "degrees_north", "größe 温度", "two\nlines"]))
            }
            _ => {
                let n = self.pick(&[0, 1, 1, 2, 3, 7]);
                self.values(ty, n)
            }
        }
    }

    fn ty(&mut self, version: Version) -> ExternalType {
        loop {
            let ty = self.pick(&ExternalType::ALL);
            if version.has_type(ty) {
                return ty;
            }
        }
    }
}

const NAMES: [&str; 14] = [
    "x",
    "temp",
    "größe",
    "温度",
    "a b",
    "x+y",
    "_under",
    "2m",
    "Z",
    "e\u{301}te\u{301}",
    "p.q",
    "lon@1",
    "Straße (1)",
    "🌍",
];

/// A random file, written in random order by random hyperslabs; sometimes reopened, redefined.
fn write_random(path: &Path, random: &mut Random) -> esker::Result<()> {
    let version = random.pick(&Version::ALL);
    let align = Alignment {
        header: random.pick(&[1, 4, 64, 512]),
        variable: random.pick(&[1, 4, 16, 512, 1024]),
        records: random.pick(&[1, 4, 32, 4096]),
        header_room: random.pick(&[0, 0, 7, 200]),
        record_room: random.pick(&[0, 0, 13, 100]),
        never_back: random.below_u64(3) == 1,
        ..Alignment::default()
    };
    let fill = random.pick(&[FillMode::Fill, FillMode::Fill, FillMode::NoFill]);
    let options = CreateOptions::new().version(version).align(align).fill(fill);
    let mut def = Dataset::create(path, options)?;
    let names = random.shuffled(&NAMES);
    let unlimited = random.below_u64(4);
    for (i, name) in names.iter().take(random.below_u64(9) as usize).enumerate() {
        match i as u64 == unlimited {
            true => def.add_dim(name, DimLen::Unlimited)?,
            false => def.add_dim(name, DimLen::Fixed(1 + random.below_u64(4)))?,
        };
    }
    for _ in 0..random.below_u64(4) {
        let (name, values) = (random.pick(&NAMES), random.attribute(version));
        def.put_attr(Owner::Global, name, values)?;
    }
    let mut names = random.shuffled(&NAMES).into_iter();
    let first = random.below_u64(7);
    add_variables(&mut def, &mut names, first, random)?;
    let mut ds = def.enddef()?;
    write_slabs(&mut ds, random)?;
    if random.chance(40) {
        let align = Alignment { header_room: random.below_u64(100), ..Alignment::default() };
        let reopened = OpenOptions::new().writable(true).align(align).fill(fill);
        ds.close()?;
        let mut def = Dataset::open_with(path, reopened)?.redef()?;
        let more = random.below_u64(3);
        add_variables(&mut def, &mut names, more, random)?;
        def.put_attr(Owner::Global, "later", "x".repeat(random.below_u64(300) as usize))?;
        ds = def.enddef()?;
        write_slabs(&mut ds, random)?;
    }
    ds.close()
}

fn add_variables(
    def: &mut esker::Define,
    names: &mut impl Iterator<Item = &'static str>,
    count: u64,
    random: &mut Random,
) -> esker::Result<()> {
    let version = def.schema().version;
    let record = def.schema().record_dim();
    let fixed: Vec<DimId> =
        (0..def.schema().dims.len()).map(DimId).filter(|d| Some(*d) != record).collect();
    for name in names.take(count as usize) {
        let mut dims: Vec<DimId> = record.into_iter().filter(|_| random.chance(50)).collect();
        let rank = random.below_u64(9) as usize;
        let mut elements = 1;
        while !fixed.is_empty() && dims.len() < rank && elements < 1000 {
            let dim = random.pick(&fixed);
            if let DimLen::Fixed(len) = def.schema().dims.as_slice()[dim.0].len {
                elements *= len;
            }
            dims.push(dim);
        }
        let ty = random.ty(version);
        let var = def.add_var(name, ty, &dims)?;
        for _ in 0..random.below_u64(3) {
            let (name, values) = (random.pick(&NAMES), random.attribute(version));
            def.put_attr(var, name, values)?;
        }
        if random.chance(20) && ty != ExternalType::Char {
            let fill = random.values(ty, 1);
            def.put_attr(var, "_FillValue", fill)?;
        }
        if random.chance(20) {
            def.set_fill(var, random.pick(&[FillMode::Fill, FillMode::NoFill]))?;
        }
    }
    Ok(())
}

fn write_slabs(ds: &mut Dataset, random: &mut Random) -> esker::Result<()> {
    let vars = ds.schema().vars.len();
    for _ in 0..vars * 3 {
        let var = VarId(random.below_u64(vars as u64) as usize);
        let mut shape = ds.shape(var)?;
        let variable = ds.variable(var)?;
        let ty = variable.ty;
        if ds.schema().is_record(variable) {
            shape[0] += random.below_u64(3);
        }
        if shape.contains(&0) {
            continue;
        }
        let (mut start, mut count, mut stride) = (vec![], vec![], vec![]);
        for len in &shape {
            let at = random.below_u64(*len);
            let step = 1 + random.below_u64(3);
            start.push(at);
            count.push(1 + random.below_u64((len - at).div_ceil(step)));
            stride.push(step);
        }
        let n = count.iter().product::<u64>() as usize;
        let values = match ty {
            // Any byte but zero, which numpy takes for the end of a text.
            ExternalType::Char => {
                Values::Char((0..n).map(|_| 1 + random.below_u64(255) as u8).collect())
            }
            _ => random.values(ty, n),
        };
        ds.put_values(var, &Selection::strided(&start, &count, &stride), &values)?;
    }
    Ok(())
}

/// Random ranges of a file's dimensions: as copy takes them, and as start, count and stride.
fn random_ranges(ds: &Dataset, random: &mut Random) -> Vec<(DimRange, [u64; 3])> {
    let mut ranges = Vec::new();
    for dim in &ds.schema().dims {
        let len = match dim.len {
            DimLen::Fixed(len) => len,
            DimLen::Unlimited => ds.numrecs(),
        };
        let start = random.below_u64(len);
        let stop = if len == 0 { 0 } else { start + 1 + random.below_u64(len - start) };
        let stride = 1 + random.below_u64(3);
        let count = (stop - start).div_ceil(stride);
        // The same bounds, written in the ways there are.
        let from_end = |at: u64| if at == len { None } else { Some(at as i64 - len as i64) };
        let range = match random.below_u64(3) {
            0 if len > 0 => DimRange::new(&dim.name, from_end(start), from_end(stop), stride),
            1 if len > 0 => {
                DimRange::inclusive(&dim.name, Some(start as i64), Some(stop as i64 - 1), stride)
            }
            _ => DimRange::new(&dim.name, Some(start as i64), Some(stop as i64), stride),
        };
        ranges.push((range, [start, count, stride]));
    }
    ranges
}

#[test]
fn a_copy_of_ranges_holds_what_a_selection_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.nc"), dir.path().join("out.nc"));
    for n in 0..400 {
        let random = &mut Random(1000 + n);
        write_random(&input, random).unwrap();
        let ds = Dataset::open(&input).unwrap();
        let ranges = random_ranges(&ds, random);
        let records = ds.schema().record_dim().map(|d| ranges[d.0].1[1]);
        let options = CopyOptions {
            version: random.chance(50).then_some(Version::Cdf5),
            ranges: ranges.iter().map(|(range, _)| range.clone()).collect(),
            fix_unlimited: records != Some(0) && random.chance(50),
            buffer: random.pick(&[16, 100, 1000, 1 << 20]),
            sync: false,
            ..CopyOptions::default()
        };
        copy(&input, &output, &options, &mut Unseen).unwrap_or_else(|e| panic!("file {n}: {e}"));
        let copied = Dataset::open(&output).unwrap();
        for (number, var) in ds.schema().vars.iter().enumerate() {
            let along = |i: usize| var.dims.iter().map(|d| ranges[d.0].1[i]).collect::<Vec<_>>();
            let selection = Selection::strided(&along(0), &along(1), &along(2));
            let expected = ds.get_values(VarId(number), &selection).unwrap();
            let found = copied.get_values(VarId(number), &Selection::all()).unwrap();
            assert_eq!(copied.shape(VarId(number)).unwrap(), along(1), "file {n}, {}", var.name);
            // Bit by bit: a NaN is not equal to itself.
            assert_eq!(expected.native_bytes(), found.native_bytes(), "file {n}, {}", var.name);
        }
    }
}

#[test]
fn malformed_files_are_refused_or_copied_as_they_are() {
    let mut files = data::files("malformed_classic/pnetcdf");
    files.extend(data::files("malformed_classic/other"));
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("out.nc");
    for file in &files {
        let options = CopyOptions { sync: false, ..CopyOptions::default() };
        match copy(file, &output, &options, &mut Unseen) {
            Ok(_) => require_same(file, &output, &name(file)),
            // The input cannot be read, or the output not be made: its version cannot hold it.
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(&name(file)) || said.contains("out.nc"), "{said}");
            }
        }
        let _ = fs::remove_file(&output);
    }
}

#[test]
fn what_esker_writes_others_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for n in 0..200 {
        let file = dir.path().join(format!("{n}.nc"));
        write_random(&file, &mut Random(n)).unwrap_or_else(|e| panic!("file {n}: {e}"));
        files.push(file);
    }
    if let Some(python) = python::with("netCDF4") {
        for (file, theirs) in files.iter().zip(python_views(&python, dir.path(), &files)) {
            require_same_view(&name(file), &view(file), &theirs);
        }
    }
    if have("ncvalidator") {
        files.iter().for_each(|file| require_valid(file));
    }
    if have("ncdump") {
        for file in &files {
            let header = ncdump_header(file);
            let ds = Dataset::open(file).unwrap();
            for var in &ds.schema().vars {
                let name = var.name.split(['+', ' ', '(', '@']).next().unwrap_or("");
                assert!(header.contains(name), "ncdump: {}: no {}", file.display(), var.name);
            }
        }
    }
    if have("nccopy") {
        // netCDF-C reads everything, and what it writes is the same.
        for file in &files {
            let theirs = dir.path().join("theirs.nc");
            let version = Dataset::open(file).unwrap().schema().version;
            nccopy(file, &theirs, version);
            require_same(file, &theirs, &format!("{} by nccopy", name(file)));
        }
    }
}

#[test]
fn what_netcdf4_python_writes_esker_reads() {
    let Some(python) = python::with("netCDF4") else { return };
    let dir = tempfile::tempdir().unwrap();
    let (count, seed) = (300.to_string(), 1.to_string());
    let (write, count) = (script(HERE, "write.py"), std::ffi::OsString::from(count));
    let seed = std::ffi::OsString::from(seed);
    run_python(&python, &[write.as_os_str(), dir.path().as_os_str(), &count, &seed]);
    for n in 0..300 {
        let base = dir.path().join(n.to_string());
        let expected = (
            fs::read_to_string(base.with_extension("view")).unwrap(),
            fs::read(base.with_extension("data")).unwrap(),
        );
        require_same_view(&format!("{n}.nc"), &view(&base.with_extension("nc")), &expected);
    }
}
