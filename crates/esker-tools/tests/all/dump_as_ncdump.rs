//! Printing is ncdump's, byte for byte, on every real file and option.

use std::path::{Path, PathBuf};

use esker::{Dataset, Version};
use esker_testkit::{data, programs};
use esker_tools::cdl::{self, Annotation, DumpOptions, GenerateOptions, IndexStyle, dump};

use crate::texts;

/// ncdump's arguments and the options that mean the same.
fn cases(first_var: &str) -> Vec<(Vec<String>, DumpOptions)> {
    let default = DumpOptions::default;
    let of = |arguments: &[&str], options: DumpOptions| {
        (arguments.iter().map(|a| a.to_string()).collect(), options)
    };
    vec![
        of(&[], default()),
        of(&["-h"], DumpOptions { header_only: true, ..default() }),
        of(&["-c"], DumpOptions { coordinates_only: true, ..default() }),
        of(&["-k"], DumpOptions { kind_only: true, ..default() }),
        of(&["-s"], DumpOptions { special_attributes: true, ..default() }),
        of(&["-t"], DumpOptions { decode_times: true, ..default() }),
        of(&["-i"], DumpOptions { iso_separator: true, ..default() }),
        of(&["-x"], DumpOptions { xml: true, ..default() }),
        of(&["-x", "-h"], DumpOptions { xml: true, header_only: true, ..default() }),
        of(&["-v", first_var], DumpOptions { variables: vec![first_var.into()], ..default() }),
        of(&["-p", "9,17"], digits(9, 17)),
        of(&["-p", "3,4"], digits(3, 4)),
        of(&["-p", "20,20"], digits(20, 20)),
        of(&["-p", "5"], DumpOptions { float_digits: Some(5), ..default() }),
        of(&["-b", "c"], annotated(Annotation::Brief(IndexStyle::C))),
        of(&["-b", "f"], annotated(Annotation::Brief(IndexStyle::Fortran))),
        of(&["-f", "c"], annotated(Annotation::Full(IndexStyle::C))),
        of(&["-f", "f"], annotated(Annotation::Full(IndexStyle::Fortran))),
        of(&["-n", "1 odd:name"], DumpOptions { name: Some("1 odd:name".into()), ..default() }),
        of(&["-l", "40"], DumpOptions { line_len: 40, ..default() }),
        of(&["-l", "200"], DumpOptions { line_len: 200, ..default() }),
    ]
}

fn digits(float: u8, double: u8) -> DumpOptions {
    DumpOptions { float_digits: Some(float), double_digits: Some(double), ..DumpOptions::default() }
}

fn annotated(annotation: Annotation) -> DumpOptions {
    DumpOptions { annotation, ..DumpOptions::default() }
}

/// Above this size of a file only some of the options that print all data are compared.
const LARGE: u64 = 1 << 20;

/// Compares one file under all options; gives what differs.
fn compare(path: &Path, differences: &mut Vec<String>) {
    let dataset = Dataset::open(path).unwrap();
    let first = dataset.schema().vars.iter().next().map_or("", |v| &v.name).to_string();
    let large = dataset.file_len().unwrap() > LARGE;
    for (arguments, mut options) in cases(&first) {
        if first.is_empty() && !options.variables.is_empty() {
            continue;
        }
        let flag = arguments.first().map_or("", String::as_str);
        if large && ["-i", "-s", "-b", "-f", "-n", "-l", "-p"].contains(&flag) {
            continue;
        }
        let fortran = options.annotation == Annotation::Full(IndexStyle::Fortran);
        if fortran && dataset.schema().vars.iter().any(|v| v.dims.is_empty()) {
            // ncdump prints whatever was in its memory as index: docs/cdl.md.
            continue;
        }
        if options.special_attributes && dataset.schema().version == Version::Cdf5 {
            // ncdump fails: docs/cdl.md.
            continue;
        }
        if known_difference(path, flag) {
            continue;
        }
        options.location = Some(path.display().to_string());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let Some(theirs) = programs::run("ncdump", &arguments, path) else { return };
        assert!(theirs.status.success(), "ncdump {arguments:?} {}", path.display());
        let mut ours = Vec::new();
        dump(&dataset, &options, &mut ours).unwrap();
        if let Some(difference) = texts::difference(&ours, &theirs.stdout) {
            differences.push(format!("{} {arguments:?} {difference}", path.display()));
        }
    }
}

/// Differences of docs/cdl.md that these files show.
fn known_difference(path: &Path, flag: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match flag {
        // 64-bit integers, which ncdump converts to double on the way to NcML.
        "-x" => ["ncjava_nc_test_cdf5.nc", "cdf5.nc"].contains(&&*name),
        // Dates that do not exist, for which ncdump prints whatever was in its memory.
        "-t" | "-i" => name == "netcdfc_ref_null_byte_padding_test.nc",
        _ => false,
    }
}

#[test]
fn every_real_file_is_printed_as_ncdump_prints_it() {
    let files = data::files("netcdf_classic");
    // ncdump takes its time: two at once.
    let (even, odd): (Vec<_>, Vec<_>) = files.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let compare_all = |files: Vec<(usize, &PathBuf)>| {
        let mut differences = Vec::new();
        for (_, path) in files {
            compare(path, &mut differences);
        }
        differences
    };
    let differences = std::thread::scope(|scope| {
        let other = scope.spawn(|| compare_all(odd));
        let mut differences = compare_all(even);
        differences.extend(other.join().unwrap());
        differences
    });
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn odd_files_that_can_be_read_are_printed_as_ncdump_prints_them() {
    let mut differences = Vec::new();
    for path in data::files("malformed_classic/other") {
        if Dataset::open(&path).is_ok() {
            compare(&path, &mut differences);
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn files_made_to_be_awkward_are_printed_as_ncdump_prints_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut differences = Vec::new();
    for (name, text) in texts::AWKWARD {
        let path = folder.path().join(format!("{name}.nc"));
        cdl::generate(text.as_bytes(), &path, &GenerateOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        compare(&path, &mut differences);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
