//! What `diff` promises.

use std::path::Path;
use std::sync::Arc;

use esker::{CreateOptions, Dataset, Define, DimLen, ExternalType, Owner, Selection, Version};
use esker_store::MemoryStore;
use esker_tools::Unseen;
use esker_tools::diff::{DiffOptions, Report, diff};

struct Two {
    store: MemoryStore,
}

impl Two {
    fn new() -> Two {
        Two { store: MemoryStore::default() }
    }

    fn file(&self, name: &str, version: Version, make: impl FnOnce(Define)) {
        let options = CreateOptions::new().version(version).store(Arc::new(self.store.clone()));
        make(Dataset::create(name, options).unwrap());
    }

    fn diff(&self, change: impl FnOnce(&mut DiffOptions)) -> Report {
        let store = Arc::new(self.store.clone());
        let mut options = DiffOptions { store, ..DiffOptions::default() };
        change(&mut options);
        diff(Path::new("a"), Path::new("b"), &options, &mut Unseen).unwrap()
    }

    fn lines(&self, change: impl FnOnce(&mut DiffOptions)) -> Vec<String> {
        self.diff(change).lines().collect()
    }
}

fn row(def: Define, values: &[f64]) {
    let mut def = def;
    let x = def.add_dim("x", DimLen::Fixed(values.len() as u64)).unwrap();
    let v = def.add_var("v", ExternalType::Double, &[x]).unwrap();
    def.enddef().unwrap().put(v, &Selection::all(), values).unwrap();
}

#[test]
fn equal_files_are_the_same_whatever_their_version() {
    let two = Two::new();
    two.file("a", Version::Cdf1, |def| row(def, &[1.0, f64::NAN]));
    two.file("b", Version::Cdf5, |def| row(def, &[1.0, f64::NAN]));
    let report = two.diff(|_| {});
    assert!(report.same());
    assert_eq!((report.variables_compared, report.values_compared), (1, 2));
    assert_eq!(report.notes, ["the versions are CDF-1 and CDF-5"]);
    assert!(!two.diff(|o| o.strict_version = true).same());
    assert!(!two.diff(|o| o.nan_equal = false).same());
}

#[test]
fn differing_values_are_named_with_their_indices() {
    let two = Two::new();
    let grid = |def: Define, change: &[(usize, f32)]| {
        let mut def = def;
        let y = def.add_dim("y", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        let v = def.add_var("v", ExternalType::Float, &[y, x]).unwrap();
        let w = def.add_var("w", ExternalType::Byte, &[y]).unwrap();
        let mut data: Vec<f32> = (0..12).map(|i| i as f32).collect();
        change.iter().for_each(|(place, value)| data[*place] = *value);
        let mut ds = def.enddef().unwrap();
        ds.put(v, &Selection::all(), &data).unwrap();
        ds.put(w, &Selection::all(), &[1i8, 2, 3]).unwrap();
    };
    two.file("a", Version::Cdf2, |def| grid(def, &[]));
    two.file("b", Version::Cdf2, |def| grid(def, &[(2, 2.5), (7, 8.0), (11, f32::NAN)]));
    let lines = two.lines(|_| {});
    assert_eq!(
        lines,
        [
            "variable \"v\": 3 of 12 values differ, by up to 1.0 (2.000e-1 of the second)",
            "  v[0, 2]: 2.0 and 2.5",
            "  v[1, 3]: 7.0 and 8.0",
            "  v[2, 3]: 11.0 and NaN",
        ]
    );
    let lines = two.lines(|o| o.most = 1);
    assert_eq!(lines[1..], ["  v[0, 2]: 2.0 and 2.5", "  and 2 more"]);
    let report = two.diff(|o| o.atol = 0.75);
    assert_eq!(report.values[0].differing, 2);
    let report = two.diff(|o| o.variables = vec!["w".into()]);
    assert!(report.same() && report.values_compared == 3);
    assert!(two.diff(|o| o.header_only = true).same());
}

#[test]
fn definitions_that_differ_are_told() {
    let two = Two::new();
    two.file("a", Version::Cdf5, |mut def| {
        let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(3)).unwrap();
        let v = def.add_var("v", ExternalType::Int, &[x, y]).unwrap();
        def.add_var("only", ExternalType::Char, &[x]).unwrap();
        def.add_var("shape", ExternalType::Int, &[x]).unwrap();
        def.put_attr(v, "units", "m").unwrap();
        def.put_attr(Owner::Global, "n", 1i32).unwrap();
        def.put_attr(Owner::Global, "history", "one").unwrap();
        def.enddef().unwrap();
    });
    two.file("b", Version::Cdf5, |mut def| {
        let y = def.add_dim("y", DimLen::Fixed(3)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(2)).unwrap();
        let v = def.add_var("v", ExternalType::Double, &[x, y]).unwrap();
        def.add_var("shape", ExternalType::Int, &[y]).unwrap();
        def.put_attr(v, "units", "km").unwrap();
        def.put_attr(Owner::Global, "n", 1i16).unwrap();
        def.put_attr(Owner::Global, "history", "two").unwrap();
        let mut ds = def.enddef().unwrap();
        // The int fill value as a double: the same number.
        ds.put(v, &Selection::all(), &[-2147483647.0f64; 6]).unwrap();
    });
    let lines = two.lines(|o| o.ignore_attributes = vec!["history".into()]);
    assert_eq!(
        lines,
        [
            "global attribute \"n\": int 1 and short 1",
            "type of variable \"v\": int and double",
            "attribute \"v:units\": \"m\" and \"km\"",
            "variable \"only\": char(x) in the first file only",
            "dimensions of variable \"shape\": (x=2) and (y=3)",
            "variable \"shape\": values not compared: the shapes are [2] and [3]",
            "note: the dimensions are in another order",
        ]
    );
}

#[test]
fn records_that_both_have_are_compared() {
    let two = Two::new();
    let records = |def: Define, data: &[i16]| {
        let mut def = def;
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let v = def.add_var("v", ExternalType::Short, &[t]).unwrap();
        def.enddef().unwrap().append(v, data).unwrap();
    };
    two.file("a", Version::Cdf1, |def| records(def, &[1, 2, 3]));
    two.file("b", Version::Cdf1, |def| records(def, &[1, 5]));
    let lines = two.lines(|_| {});
    assert_eq!(
        lines,
        [
            "dimension \"t\": unlimited (3) and unlimited (2)",
            "variable \"v\": 1 of 2 values differ, by up to 3.0 (6.000e-1 of the second)",
            "  v[1]: 2 and 5",
            "note: variable \"v\": the first 2 records are compared",
        ]
    );
}

#[test]
fn a_variable_that_neither_file_has_is_an_error() {
    let two = Two::new();
    two.file("a", Version::Cdf1, |def| row(def, &[1.0]));
    two.file("b", Version::Cdf1, |def| row(def, &[1.0]));
    let store = Arc::new(two.store.clone());
    let variables = vec!["vv".to_string()];
    let options = DiffOptions { store, variables, ..DiffOptions::default() };
    let said = diff(Path::new("a"), Path::new("b"), &options, &mut Unseen).unwrap_err();
    assert_eq!(said.to_string(), "neither file has a variable \"vv\"; did you mean \"v\"?");
}
