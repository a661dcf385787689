//! A long read that threads share gives what one thread reads: values, and what did not fit.

use std::path::Path;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, FillMode, Hints, Layout, OpenOptions,
    Selection,
};

/// 13 MiB of doubles, so that blocks of 4 MiB are four, which end at odd places.
const SHAPE: [u64; 3] = [3, 71, 8000];

fn value(index: [u64; 3]) -> f64 {
    let number = (index[0] * SHAPE[1] + index[1]) * SHAPE[2] + index[2];
    match number % 300_007 {
        // Not a short.
        17 => 1e6 + number as f64,
        _ => (number % 30_000) as f64,
    }
}

fn values(start: [u64; 3], count: [u64; 3], stride: [u64; 3]) -> Vec<f64> {
    let at = |d: usize, i: u64| start[d] + i * stride[d];
    let mut out = Vec::new();
    for i in 0..count[0] {
        for j in 0..count[1] {
            out.extend((0..count[2]).map(|k| value([at(0, i), at(1, j), at(2, k)])));
        }
    }
    out
}

fn write(path: &Path, options: CreateOptions, chunk: Option<&[u64]>, records: bool) {
    let mut define = Dataset::create(path, options.fill(FillMode::NoFill)).unwrap();
    let t = if records { DimLen::Unlimited } else { DimLen::Fixed(SHAPE[0]) };
    let t = define.add_dim("t", t).unwrap();
    let y = define.add_dim("y", DimLen::Fixed(SHAPE[1])).unwrap();
    let x = define.add_dim("x", DimLen::Fixed(SHAPE[2])).unwrap();
    let v = define.add_var("v", ExternalType::Double, &[t, y, x]).unwrap();
    if let Some(chunk) = chunk {
        define.set_chunks(v, chunk).unwrap();
    }
    let mut dataset = define.enddef().unwrap();
    let data = values([0; 3], SHAPE, [1; 3]);
    dataset.put_all(v, &Selection::slab(&[0; 3], &SHAPE), &data).unwrap();
    dataset.close().unwrap();
}

fn open(path: &Path, threads: u64) -> Dataset {
    let mut hints = Hints::default();
    hints.set("esker_read_threads", &threads.to_string());
    Dataset::open_with(path, OpenOptions::new().hints(hints)).unwrap()
}

fn read_both(path: &Path) {
    let (one, three) = (open(path, 1), open(path, 3));
    let v = one.var("v").unwrap();
    assert_eq!(three.read_threads(), 3);
    let all = values([0; 3], SHAPE, [1; 3]);
    assert!(three.get::<f64>(v, &Selection::all()).unwrap() == all);
    let found = three.get_values(v, &Selection::all()).unwrap();
    assert!(matches!(found, esker::Values::Double(found) if found == all));
    let (start, count, stride) = ([0, 1, 3], [3, 70, 3999], [1, 1, 2]);
    let strided = Selection::strided(&start, &count, &stride);
    let mut out = vec![0.0; count.iter().product::<u64>() as usize];
    three.get_into(v, &strided, &mut out).unwrap();
    assert!(out == values(start, count, stride));
    // What does not fit is told as if all were one.
    let range = |dataset: &Dataset| {
        let mut out = vec![0i16; all.len()];
        match dataset.get_into(v, &Selection::all(), &mut out) {
            Err(Error::Range { report, .. }) => (out, report),
            other => panic!("{other:?}"),
        }
    };
    let (single, shared) = (range(&one), range(&three));
    let fits = |value: &&f64| **value <= f64::from(i16::MAX);
    let unfit = (all.len() - all.iter().filter(fits).count()) as u64;
    assert_eq!((shared.1.out_of_range, shared.1.elements), (unfit, all.len() as u64));
    assert_eq!(shared.1.first.map(|first| first.index), Some(17));
    assert_eq!(single.1, shared.1);
    assert!(single.0 == shared.0);
}

#[test]
fn of_a_classic_file() {
    let dir = tempfile::tempdir().unwrap();
    for records in [false, true] {
        let path = dir.path().join(format!("{records}.nc"));
        write(&path, CreateOptions::new(), None, records);
        read_both(&path);
    }
}

#[test]
fn of_chunks() {
    let dir = tempfile::tempdir().unwrap();
    for (number, chunk) in [[1, 10, 3000], [2, 71, 1000]].iter().enumerate() {
        let path = dir.path().join(format!("{number}.nc"));
        write(&path, CreateOptions::new(), Some(chunk), number == 0);
        read_both(&path);
    }
}

#[test]
fn of_a_container() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.esk");
    write(&path, CreateOptions::new().layout(Layout::Log), None, true);
    read_both(&path);
}

#[test]
fn of_a_file_that_was_cut_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.nc");
    write(&path, CreateOptions::new(), None, false);
    let len = std::fs::metadata(&path).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let three = open(&path, 3);
    let v = three.var("v").unwrap();
    file.set_len(len - 9).unwrap();
    let mut out = vec![0.0; SHAPE.iter().product::<u64>() as usize];
    let error = three.get_into(v, &Selection::all(), &mut out).unwrap_err();
    assert!(matches!(&error, Error::ShortFile { var, .. } if var == "v"), "{error}");
}
