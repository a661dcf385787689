//! What `copy` promises.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{
    Alignment, Char, CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Owner, Selection,
    Values, Version,
};
use esker_store::{CountingStore, Fault, FaultyStore, MemoryStore, Store};
use esker_tools::Unseen;
use esker_tools::copy::{Copied, CopyError, CopyOptions, DimRange, canonical, copy, copy_together};
use esker_tools::diff::{DiffOptions, diff};

const IN: &str = "/in.nc";
const OUT: &str = "/out.nc";

fn create(store: &MemoryStore, version: Version) -> esker::Define {
    let options = CreateOptions::new().version(version).store(Arc::new(store.clone()));
    Dataset::create(IN, options).unwrap()
}

fn open(store: &MemoryStore, path: &str) -> Dataset {
    Dataset::open_with(path, OpenOptions::new().store(Arc::new(store.clone()))).unwrap()
}

fn options(store: impl Store + 'static) -> CopyOptions {
    CopyOptions { store: Arc::new(store), ..CopyOptions::default() }
}

fn run(options: &CopyOptions) -> Result<Copied, CopyError> {
    copy(Path::new(IN), Path::new(OUT), options, &mut Unseen)
}

fn require_same(store: &MemoryStore, a: &str, b: &str) {
    let options = DiffOptions { store: Arc::new(store.clone()), ..DiffOptions::default() };
    let report = diff(Path::new(a), Path::new(b), &options, &mut Unseen).unwrap();
    assert!(report.same(), "{:#?}", report.lines().collect::<Vec<_>>());
}

/// A small climate-like file: time(time), lat(lat), lon(lon), t(time, lat, lon), flag(time),
/// area(lat, lon), name(lat, strlen), unused dimension.
fn climate(store: &MemoryStore, version: Version) {
    let mut def = create(store, version);
    let lon = def.add_dim("lon", DimLen::Fixed(4)).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let lat = def.add_dim("lat", DimLen::Fixed(3)).unwrap();
    let strlen = def.add_dim("strlen", DimLen::Fixed(5)).unwrap();
    def.add_dim("unused", DimLen::Fixed(7)).unwrap();
    let area = def.add_var("area", ExternalType::Double, &[lat, lon]).unwrap();
    let t = def.add_var("t", ExternalType::Float, &[time, lat, lon]).unwrap();
    let flag = def.add_var("flag", ExternalType::Byte, &[time]).unwrap();
    let time = def.add_var("time", ExternalType::Int, &[time]).unwrap();
    let name = def.add_var("lat", ExternalType::Char, &[lat, strlen]).unwrap();
    def.put_attr(t, "units", "K").unwrap();
    def.put_attr(t, "valid_range", [100.0f32, 400.0]).unwrap();
    def.put_attr(Owner::Global, "title", "a test").unwrap();
    let mut ds = def.enddef().unwrap();
    let all = Selection::all();
    ds.put(area, &all, &(0..12).map(f64::from).collect::<Vec<_>>()).unwrap();
    ds.put(t, &all, &(0..60).map(|i| i as f32 / 2.0).collect::<Vec<_>>()).unwrap();
    // A NaN with a payload, which must come through bit by bit.
    ds.put(t, &Selection::element(&[2, 1, 1]), &[f32::from_bits(0x7fc1_2345)]).unwrap();
    ds.put(flag, &all, &[1i8, 2, 3, 4, 5]).unwrap();
    ds.put(time, &all, &[10, 20, 30, 40, 50]).unwrap();
    let text: Vec<Char> = b"southequatnorth".iter().map(|b| Char(*b)).collect();
    ds.put(name, &all, &text).unwrap();
    ds.close().unwrap();
}

fn names(ds: &Dataset) -> (Vec<String>, Vec<String>) {
    let dims = ds.schema().dims.iter().map(|d| d.name.to_string()).collect();
    (dims, ds.schema().vars.iter().map(|v| v.name.to_string()).collect())
}

#[test]
fn a_copy_to_any_version_holds_the_same() {
    for from in Version::ALL {
        for to in Version::ALL {
            let store = MemoryStore::default();
            climate(&store, from);
            let told = run(&CopyOptions { version: Some(to), ..options(store.clone()) }).unwrap();
            assert_eq!((told.variables, told.records), (5, 5));
            assert_eq!(told.bytes, 12 * 8 + 60 * 4 + 5 + 5 * 4 + 15);
            require_same(&store, IN, OUT);
            let copied = open(&store, OUT);
            assert_eq!(copied.schema().version, to);
            assert_eq!(copied.file_len().unwrap(), told.file_len);
            let nan: Vec<f32> =
                copied.get(copied.var("t").unwrap(), &Selection::element(&[2, 1, 1])).unwrap();
            assert_eq!(nan[0].to_bits(), 0x7fc1_2345);
        }
    }
}

#[test]
fn a_copy_of_the_same_version_is_the_same_file() {
    for version in Version::ALL {
        let store = MemoryStore::default();
        climate(&store, version);
        run(&options(store.clone())).unwrap();
        assert_eq!(store.bytes(IN.as_ref()), store.bytes(OUT.as_ref()));
        assert_eq!(store.list().len(), 2, "nothing is left behind");
    }
}

#[test]
fn any_buffer_gives_the_same_file() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf2);
    let ranges =
        vec![DimRange::new("lon", Some(1), None, 2), DimRange::new("time", Some(-4), None, 2)];
    let mut seen = Vec::new();
    for buffer in [0, 1, 16, 20, 64, 100, 128, 300, 1000, 1 << 20] {
        for fix_unlimited in [false, true] {
            let ranges = ranges.clone();
            let options = CopyOptions { buffer, fix_unlimited, ranges, ..options(store.clone()) };
            run(&options).unwrap();
            seen.push((fix_unlimited, store.bytes(OUT.as_ref()).unwrap()));
        }
    }
    for pair in seen.chunks(2) {
        assert_eq!(pair, &seen[..2]);
    }
}

#[test]
fn chosen_variables_bring_their_dimensions_and_coordinates() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf5);
    let chosen = |variables: &[&str], exclude: &[&str]| {
        let list = |l: &[&str]| l.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        let (variables, exclude) = (list(variables), list(exclude));
        run(&CopyOptions { variables, exclude, ..options(store.clone()) }).unwrap();
        let ds = open(&store, OUT);
        let (dims, vars) = names(&ds);
        (dims.join(" "), vars.join(" "))
    };
    let pair = |dims: &str, vars: &str| (dims.to_string(), vars.to_string());
    // "lat" is text, and brings the dimension of its length.
    assert_eq!(chosen(&["area"], &[]), pair("lon lat strlen", "area lat"));
    assert_eq!(chosen(&["area"], &["lat"]), pair("lon lat", "area"));
    assert_eq!(chosen(&["flag"], &[]), pair("time", "flag time"));
    // A dimension that never had a variable stays unless variables are chosen.
    assert_eq!(chosen(&[], &["t", "area", "lat"]), pair("time unused", "flag time"));
}

#[test]
fn ranges_choose_the_elements_python_would() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let ranges = vec![
        DimRange::new("time", Some(1), Some(4), 2),
        DimRange::new("lat", Some(-2), None, 1),
        DimRange::inclusive("lon", Some(1), Some(3), 2),
    ];
    for fix_unlimited in [false, true] {
        let ranges = ranges.clone();
        run(&CopyOptions { ranges, fix_unlimited, ..options(store.clone()) }).unwrap();
        let ds = open(&store, OUT);
        let record = ds.schema().record_dim().is_some();
        assert_eq!(record, !fix_unlimited);
        let t = ds.var("t").unwrap();
        assert_eq!(ds.shape(t).unwrap(), [2, 2, 2]);
        let mut expected = Vec::new();
        for time in [1, 3] {
            for lat in [1, 2] {
                expected.extend([1, 3].map(|lon| (time * 12 + lat * 4 + lon) as f32 / 2.0));
            }
        }
        assert_eq!(ds.get::<f32>(t, &Selection::all()).unwrap(), expected);
        let time: Vec<i32> = ds.get(ds.var("time").unwrap(), &Selection::all()).unwrap();
        assert_eq!(time, [20, 40]);
        let text: Vec<Char> = ds.get(ds.var("lat").unwrap(), &Selection::all()).unwrap();
        assert_eq!(text.iter().map(|c| c.0).collect::<Vec<_>>(), b"equatnorth");
    }
    let none = vec![DimRange::new("time", Some(0), Some(0), 1)];
    run(&CopyOptions { ranges: none, ..options(store.clone()) }).unwrap();
    assert_eq!(open(&store, OUT).numrecs(), 0);
}

#[test]
fn what_does_not_exist_is_named_with_what_is_near() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let base = options(store.clone());
    let message = |options: &CopyOptions| run(options).unwrap_err().to_string();
    let variables = vec!["ara".to_string()];
    let said = message(&CopyOptions { variables, ..base.clone() });
    assert_eq!(said, "/in.nc: there is no variable \"ara\"; did you mean \"area\"?");
    let ranges = vec![DimRange::new("lot", None, None, 1)];
    let said = message(&CopyOptions { ranges, ..base.clone() });
    assert!(said.contains("no dimension \"lot\"") && said.contains("\"lat\""), "{said}");
    let ranges = vec![DimRange::new("lat", Some(1), Some(9), 1)];
    let said = message(&CopyOptions { ranges, ..base.clone() });
    let expected = "range 1:9 of dimension \"lat\", which has length 3, goes beyond the end";
    assert!(said.contains(expected), "{said}");
    let ranges = vec![DimRange::new("lat", Some(1), Some(1), 1)];
    assert!(message(&CopyOptions { ranges, ..base.clone() }).contains("is empty"));
    let said = copy(Path::new(IN), Path::new(IN), &base, &mut Unseen).unwrap_err().to_string();
    assert_eq!(said, "/in.nc: the input cannot be the output as well");
    assert_eq!(store.list().len(), 1, "no output, not even a part of one");
    run(&base).unwrap();
    let kept = CopyOptions { overwrite: false, ..base };
    assert!(matches!(run(&kept), Err(CopyError::Exists { .. })));
}

#[test]
fn history_grows_at_the_top() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let with = |line: &str| CopyOptions { history: Some(line.into()), ..options(store.clone()) };
    run(&with("Mon: first")).unwrap();
    copy(Path::new(OUT), Path::new("/again.nc"), &with("Tue: second"), &mut Unseen).unwrap();
    let ds = open(&store, "/again.nc");
    let history = ds.schema().attr(Owner::Global, "history").unwrap();
    assert_eq!(history.text().unwrap(), "Tue: second\nMon: first");
}

#[test]
fn alignment_is_obeyed() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf5);
    let align = Alignment { header: 512, variable: 256, records: 4096, ..Alignment::default() };
    run(&CopyOptions { align, ..options(store.clone()) }).unwrap();
    require_same(&store, IN, OUT);
    let ds = open(&store, OUT);
    for (_, var, place) in ds.header().vars() {
        let align = if ds.schema().is_record(var) { 4 } else { 256 };
        assert!(place.begin.is_multiple_of(align), "{} at {}", var.name, place.begin);
    }
    assert_eq!(ds.header().layout.record_begin, Some(4096));
}

fn wide(store: &MemoryStore, ty: ExternalType, values: Values, fill: Option<Values>) {
    let mut def = create(store, Version::Cdf5);
    let x = def.add_dim("x", DimLen::Unlimited).unwrap();
    let v = def.add_var("v", ty, &[x]).unwrap();
    if let Some(fill) = fill {
        def.put_attr(v, "_FillValue", fill).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    ds.put_values(v, &Selection::all(), &values).unwrap();
}

#[test]
fn types_that_the_target_lacks_are_an_error_unless_converted() {
    let store = MemoryStore::default();
    wide(&store, ExternalType::UInt64, Values::from([1u64, 2, 300]), None);
    let old = CopyOptions { version: Some(Version::Cdf2), ..options(store.clone()) };
    let said = run(&old).unwrap_err().to_string();
    let expected = "variable \"v\" is of type uint64, which CDF-2 does not have";
    assert!(said.contains(expected), "{said}");
    let converting = CopyOptions { convert_types: true, ..old };
    let told = run(&converting).unwrap();
    let change = ("v".to_string(), ExternalType::UInt64, ExternalType::Short);
    assert_eq!(told.converted, [change]);
    let ds = open(&store, OUT);
    assert_eq!(
        ds.get_values(ds.var("v").unwrap(), &Selection::all()).unwrap(),
        Values::from([1i16, 2, 300])
    );

    wide(&store, ExternalType::Int64, Values::from([1i64, (1 << 53) + 1]), None);
    let said = run(&converting).unwrap_err().to_string();
    assert!(said.contains("\"v\" has the int64 value 9007199254740993"), "{said}");
}

#[test]
fn the_smallest_type_that_holds_the_values_is_chosen() {
    use ExternalType::*;
    let cases: Vec<(ExternalType, Values, ExternalType)> = vec![
        (UByte, Values::from([0u8, 127]), Byte),
        (UByte, Values::from([0u8, 128]), Short),
        (UShort, Values::from([32768u16]), Int),
        (UInt, Values::from([2_147_483_647u32]), Int),
        (UInt, Values::from([2_147_483_648u32]), Double),
        (Int64, Values::from([-129i64]), Short),
        (Int64, Values::from([-1i64 << 53]), Double),
        (UInt64, Values::from([1u64 << 63]), Double),
        // Its own fill values do not count: they become the new type's.
        (Int64, Values::from([5i64, -9_223_372_036_854_775_806]), Byte),
        // -127 is what a byte is filled with, so it must not be a value.
        (Int64, Values::from([-127i64]), Short),
    ];
    for (from, values, to) in cases {
        let store = MemoryStore::default();
        wide(&store, from, values.clone(), None);
        let version = Some(Version::Cdf1);
        run(&CopyOptions { version, convert_types: true, ..options(store.clone()) }).unwrap();
        let ds = open(&store, OUT);
        let v = ds.var("v").unwrap();
        assert_eq!(ds.variable(v).unwrap().ty, to, "{values:?}");
        let copied = ds.get_values(v, &Selection::all()).unwrap();
        let fills = (esker::values::default_fill(from), esker::values::default_fill(to));
        for i in 0..values.len() {
            match values.get(i) == fills.0.get(0) {
                true => assert_eq!(copied.get(i), fills.1.get(0)),
                false => assert_eq!(copied.get(i), values.get(i)),
            }
        }
    }
}

#[test]
fn a_fill_value_of_its_own_goes_along() {
    let store = MemoryStore::default();
    let (values, fill) = (Values::from([7u64, 9999, 8]), Values::from(9999u64));
    wide(&store, ExternalType::UInt64, values, Some(fill));
    let version = Some(Version::Cdf1);
    run(&CopyOptions { version, convert_types: true, ..options(store.clone()) }).unwrap();
    let ds = open(&store, OUT);
    let v = ds.var("v").unwrap();
    // 7 and 8 fit a byte. 9999 does not, and what takes its place is the fill value still.
    assert_eq!(ds.schema().attr(v.into(), "_FillValue"), Some(&Values::from(-127i8)));
    assert_eq!(ds.get_values(v, &Selection::all()).unwrap(), Values::from([7i8, -127, 8]));
}

#[test]
fn tiny_records_and_huge_ones_take_few_calls() {
    // 50,000 records of eight interleaved variables of two bytes; then two records of 3 MB.
    for (records, width) in [(50_000u64, 1u64), (2, 190_000)] {
        let store = MemoryStore::default();
        let mut def = create(&store, Version::Cdf5);
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(width)).unwrap();
        let vars: Vec<_> = (0..8)
            .map(|i| def.add_var(&format!("v{i}"), ExternalType::Short, &[time, x]).unwrap())
            .collect();
        let mut ds = def.enddef().unwrap();
        for (i, var) in vars.iter().enumerate() {
            let data: Vec<i16> =
                (0..records * width).map(|n| (n as i16).wrapping_mul(i as i16)).collect();
            ds.put(*var, &Selection::all(), &data).unwrap();
        }
        for fix_unlimited in [false, true] {
            let counted = CountingStore::new(store.clone());
            let buffer = 1 << 20;
            let wanted = CopyOptions { buffer, fix_unlimited, ..options(counted.clone()) };
            run(&wanted).unwrap();
            let reads = counted.counts().reads.load(Ordering::Relaxed);
            let writes = counted.counts().writes.load(Ordering::Relaxed);
            assert!(reads < 100 && writes < 100, "{records}: {reads} reads, {writes} writes");
            let ds = open(&store, OUT);
            let last: Vec<i16> = ds.get(ds.var("v7").unwrap(), &Selection::all()).unwrap();
            let expected = (0..records * width).map(|n| (n as i16).wrapping_mul(7));
            assert!(last.into_iter().eq(expected));
        }
        let counted = CountingStore::new(store.clone());
        let options = DiffOptions {
            store: Arc::new(counted.clone()),
            buffer: 1 << 20,
            ..DiffOptions::default()
        };
        let report = diff(Path::new(IN), Path::new(IN), &options, &mut Unseen).unwrap();
        assert!(report.same() && report.variables_compared == 8);
        let reads = counted.counts().reads.load(Ordering::Relaxed);
        assert!(reads < 150, "{records}: {reads} reads of a diff");
    }
}

#[test]
fn little_of_large_records_is_read_without_the_rest() {
    let store = MemoryStore::default();
    let mut def = create(&store, Version::Cdf5);
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(500_000)).unwrap();
    def.add_var("large", ExternalType::Short, &[time, x]).unwrap();
    let small = def.add_var("small", ExternalType::Short, &[time]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.append(small, &[1i16, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    let counted = CountingStore::new(store.clone());
    let variables = vec!["small".to_string()];
    run(&CopyOptions { variables, ..options(counted.clone()) }).unwrap();
    let read = counted.counts().bytes_read.load(Ordering::Relaxed);
    assert!(read < 2_000_000, "{read} bytes of 10 MB");
}

#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let probe = FaultyStore::new(store.clone(), u64::MAX, Fault::Kill);
    run(&options(probe.clone())).unwrap();
    let before = store.bytes(OUT.as_ref()).unwrap();
    let history = Some("a line that makes it another file".to_string());
    for at in 0..probe.calls() {
        let full = std::io::ErrorKind::StorageFull;
        for fault in [Fault::Kill, Fault::Tear, Fault::Fail(full), Fault::FailHalf(full)] {
            let faulty = FaultyStore::new(store.clone(), at, fault);
            let history = history.clone();
            let done = run(&CopyOptions { history, ..options(faulty) });
            assert!(done.is_err());
            let now = store.bytes(OUT.as_ref()).unwrap();
            // The rename is the moment: before it the old file, after it the new one.
            if now != before {
                require_same(&store, OUT, OUT);
                assert!(open(&store, OUT).schema().attr(Owner::Global, "history").is_some());
                run(&options(store.clone())).unwrap();
            }
            if matches!(fault, Fault::Fail(_) | Fault::FailHalf(_)) {
                assert_eq!(store.list().len(), 2, "call {at} failed and left {:?}", store.list());
            }
            for path in store.list().iter().filter(|p| *p != Path::new(IN) && *p != Path::new(OUT))
            {
                store.remove(path).unwrap();
            }
        }
    }
}

#[test]
fn a_copy_forgets_the_interrupted_redefinition_of_the_file_it_replaces() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let journal = esker::journal_path(Path::new(OUT));
    for at in 0..8 {
        run(&options(store.clone())).unwrap();
        let faulty = Arc::new(FaultyStore::new(store.clone(), at, Fault::Tear));
        let writable = OpenOptions::new().writable(true).store(faulty);
        let mut def = Dataset::open_with(OUT, writable).unwrap().redef().unwrap();
        def.rename_var("t", "u").unwrap();
        let _ = def.enddef();
        run(&options(store.clone())).unwrap();
        assert!(!store.exists(&journal).unwrap());
        require_same(&store, IN, OUT);
    }
}

#[test]
fn progress_ends_where_it_said_it_would() {
    let store = MemoryStore::default();
    climate(&store, Version::Cdf1);
    let mut told = Vec::new();
    let mut progress = |done: u64, total: u64| told.push((done, total));
    copy(Path::new(IN), Path::new(OUT), &options(store), &mut progress).unwrap();
    let (done, total) = *told.last().unwrap();
    assert_eq!((done, total), (376, 376));
    assert!(told.is_sorted());
}

#[test]
fn an_unlimited_dimension_without_records_cannot_be_fixed() {
    let store = MemoryStore::default();
    let mut def = create(&store, Version::Cdf1);
    def.add_dim("time", DimLen::Unlimited).unwrap();
    def.enddef().unwrap();
    let fixed = CopyOptions { fix_unlimited: true, ..options(store) };
    assert!(matches!(run(&fixed), Err(CopyError::NoRecords { .. })));
}

#[test]
fn ranges_of_variables_beyond_4_gib_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.nc"), dir.path().join("out.nc"));
    let create = CreateOptions::new().fill(esker::FillMode::NoFill);
    let mut def = Dataset::create(&input, create).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(5 << 30)).unwrap();
    let fixed = def.add_var("fixed", ExternalType::Byte, &[x]).unwrap();
    let record = def.add_var("record", ExternalType::Byte, &[time, x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let last = (5 << 30) - 1;
    ds.put(fixed, &Selection::element(&[last]), &[7i8]).unwrap();
    ds.put(record, &Selection::element(&[1, last - 1]), &[8i8]).unwrap();
    ds.close().unwrap();
    let version = Some(Version::Cdf1);
    let whole = CopyOptions { version, ..CopyOptions::default() };
    let said = copy(&input, &output, &whole, &mut Unseen).unwrap_err().to_string();
    assert!(said.contains("\"x\" cannot have length 5368709120"), "{said}");
    let ranges = vec![DimRange::new("x", Some(-3), None, 1)];
    let part = CopyOptions { ranges, ..whole };
    copy(&input, &output, &part, &mut Unseen).unwrap();
    let ds = Dataset::open(&output).unwrap();
    let get = |name| ds.get::<i8>(ds.var(name).unwrap(), &Selection::all()).unwrap();
    assert_eq!(get("fixed"), [0, 0, 7]);
    assert_eq!(get("record"), [0, 0, 0, 0, 8, 0]);
}

#[test]
fn ranks_that_start_in_different_seconds_write_one_history() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.nc");
    let mut def = Dataset::create(&input, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(7)).unwrap();
    let var = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    def.put_attr(esker::Owner::Global, "history", "before").unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(var, &Selection::all(), &[1, 2, 3, 4, 5, 6, 7]).unwrap();
    ds.close().unwrap();
    for together in [false, true] {
        let output = dir.path().join(format!("out-{together}.nc"));
        esker::launch(3, |comm| {
            let history = Some(format!("2026-11-16T16:48:2{}Z: esker copy", comm.rank()));
            let options = CopyOptions { history, ..CopyOptions::default() };
            let copied = match together {
                true => copy_together(&input, &output, &options, comm, &mut Unseen),
                false => canonical(&input, &output, &options, comm, &mut Unseen),
            };
            assert_eq!(copied.unwrap().variables, 1);
        });
        let ds = Dataset::open(&output).unwrap();
        let history = ds.schema().attr(esker::Owner::Global, "history").unwrap();
        assert_eq!(*history, "2026-11-16T16:48:20Z: esker copy\nbefore".into());
        assert_eq!(ds.get::<i32>(ds.var("v").unwrap(), &Selection::all()).unwrap()[6], 7);
    }
}
