//! Decomposed variables are the arrays they stand for.

use std::path::Path;

use esker_testkit::ranks::on_ranks;

use crate::scenario;
use esker::{
    CreateOptions, Dataset, DecompositionError, DimLen, Error, ExternalType, Hints, OpenOptions,
    Owner, Selection, VarId, Version,
};

/// How many seeds for each number of ranks; more with ESKER_SEEDS.
fn seeds() -> u64 {
    std::env::var("ESKER_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn on_threads(ranks: usize, seeds: std::ops::Range<u64>) {
    let dir = tempfile::tempdir().unwrap();
    for seed in seeds {
        let path = dir.path().join("run.nc");
        esker::launch(ranks, |comm| scenario::run_decomposed(seed, comm, &path));
    }
}

#[test]
fn decomposed_variables_of_one_rank_agree_with_the_model() {
    on_threads(1, 0..seeds());
}

#[test]
fn decomposed_variables_of_two_ranks_agree_with_the_model() {
    on_threads(2, 1000..1000 + seeds());
}

#[test]
fn decomposed_variables_of_four_ranks_agree_with_the_model() {
    on_threads(4, 2000..2000 + seeds());
}

#[test]
fn decomposed_variables_of_seven_ranks_agree_with_the_model() {
    on_threads(7, 3000..3000 + seeds() / 2);
}

#[test]
fn decomposed_variables_of_sixteen_ranks_agree_with_the_model() {
    on_threads(16, 4000..4000 + seeds() / 4);
}

/// Four elements of twelve for each of two ranks, in turns, and four for nobody: t(time, 2, 6).
fn example(path: &Path) {
    example_in(path, "0");
}

/// The same in so many sub-files.
fn example_in(path: &Path, subfiles: &str) {
    let path = path.to_path_buf();
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", subfiles);
    on_ranks(2, move |comm| {
        let me = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm).hints(hints.clone());
        let mut def = Dataset::create(&path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(2)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
        let mine = Selection::strided(&[0, me], &[2, 2], &[1, 2]);
        let map = def.add_decomposition(&[y, x], &mine).unwrap();
        let t = def.add_decomposed_var("t", ExternalType::Int, &[time], map).unwrap();
        let mut ds = def.enddef().unwrap();
        let data: Vec<i32> = (0..4).map(|i| i * 10 + me as i32).collect();
        ds.put_all(t, &Selection::blob(&[0], &[1]), &data).unwrap();
        ds.close().unwrap();
    });
}

const FILL: i32 = -2147483647;

#[test]
fn a_file_has_the_form_that_the_architecture_tells() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    example(&path);
    let raw = Dataset::open_with(&path, OpenOptions::new().raw(true)).unwrap();
    let schema = raw.schema();
    let dims: Vec<(&str, DimLen)> = schema.dims.iter().map(|d| (&*d.name, d.len)).collect();
    let expected = [
        ("time", DimLen::Unlimited),
        ("y", DimLen::Fixed(2)),
        ("x", DimLen::Fixed(6)),
        ("nproc", DimLen::Fixed(2)),
        ("D1.nelems", DimLen::Fixed(8)),
        ("D1.total_nreqs", DimLen::Fixed(8)),
    ];
    assert_eq!(dims, expected);
    let numbers = |name: &str| raw.get::<i64>(raw.var(name).unwrap(), &Selection::all()).unwrap();
    assert_eq!(numbers("D1.nreqs"), [4, 4]);
    assert_eq!(numbers("D1.req_start"), [0, 4]);
    assert_eq!(numbers("D1.blob_start"), [0, 4]);
    assert_eq!(numbers("D1.blob_count"), [4, 4]);
    assert_eq!(numbers("D1.offsets"), [0, 2, 6, 8, 1, 3, 7, 9]);
    assert_eq!(numbers("D1.lengths"), [1; 8]);
    assert_eq!(numbers("t"), [0, 10, 20, 30, 1, 11, 21, 31]);
    let about = Owner::Var(raw.var("D1.nreqs").unwrap());
    let attr = |owner, name| schema.attr(owner, name).unwrap();
    assert_eq!(attr(about, "decomposed_dimensions").text().unwrap(), "y/x");
    assert_eq!(attr(about, "decomposed_shape").convert_to::<i64>().unwrap(), [2, 6]);
    assert_eq!(attr(about, "covered").convert_to::<i64>().unwrap(), [8]);
    assert_eq!(attr(about, "repeated").convert_to::<i64>().unwrap(), [0]);
    assert_eq!(attr(raw.var("t").unwrap().into(), "decomposition").text().unwrap(), "D1");
    for variable in schema.vars.iter().filter(|v| v.name.starts_with("D1.")) {
        assert!(variable.attrs.get("description").is_some(), "{}", variable.name);
    }
    let ds = Dataset::open(&path).unwrap();
    let t = ds.var("t").unwrap();
    assert_eq!(ds.shape(t).unwrap(), [1, 2, 6]);
    let row = [0, 1, 10, 11, FILL, FILL];
    assert_eq!(ds.get::<i32>(t, &Selection::slab(&[0, 0, 0], &[1, 1, 6])).unwrap(), row);
}

#[test]
fn a_whole_blob_is_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    example(&path);
    on_ranks(2, move |comm| {
        let options = OpenOptions::new().comm(comm).writable(true);
        let mut ds = Dataset::open_with(&path, options).unwrap();
        let t = ds.var("t").unwrap();
        ds.reset_report();
        ds.put_all(t, &Selection::blob(&[1], &[3]), &[1i32; 12]).unwrap();
        // One for each record.
        assert_eq!(ds.report().runs, 3);
        ds.close().unwrap();
    });
}

#[test]
fn the_wrong_number_of_ranks_is_told_to_everyone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    example(&path);
    on_ranks(3, move |comm| {
        let options = OpenOptions::new().comm(comm).writable(true);
        let mut ds = Dataset::open_with(&path, options).unwrap();
        let t = ds.var("t").unwrap();
        let error = ds.put_all(t, &Selection::blob(&[0], &[1]), &[1i32; 4]).unwrap_err();
        let sentence = error.to_string();
        assert!(sentence.contains("variable \"t\" (map D1)"), "{sentence}");
        assert!(sentence.contains("2 ranks, and these are 3"), "{sentence}");
        assert_eq!(ds.get_all::<i32>(t, &Selection::element(&[0, 0, 2])).unwrap(), [10]);
    });
}

#[test]
fn a_write_outside_of_a_rank_s_part_is_told_to_everyone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    example(&path);
    on_ranks(2, move |comm| {
        let me = comm.rank();
        let options = OpenOptions::new().comm(comm).writable(true);
        let mut ds = Dataset::open_with(&path, options).unwrap();
        let t = ds.var("t").unwrap();
        // Rank 1 has the odd ones up to 3; both try 3 to 4.
        let row = Selection::slab(&[0, 1, 3], &[1, 1, 1 + me as u64]);
        let error = ds.put_all(t, &row, &vec![5i32; 1 + me]).unwrap_err();
        let index = if me == 0 { "[1, 3]" } else { "[1, 4]" };
        let own = format!("element {index} is not in the part of rank {me}, which has 4 elements");
        assert!(error.to_string().contains(&own), "{error}");
        let error = ds.put_all(t, &Selection::blocks(&[0], &[1], &[4]), &[5i32]).unwrap_err();
        assert!(error.to_string().contains("there is no block 4"), "{error}");
        assert_eq!(ds.get_all::<i32>(t, &Selection::element(&[0, 1, 3])).unwrap(), [31]);
    });
}

#[test]
fn parts_that_cannot_be_are_refused_on_every_rank() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    on_ranks(2, move |comm| {
        let me = comm.rank();
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm)).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
        let mut refused = |dims: &[esker::DimId], mine: Selection, word: &str| {
            let error = def.add_decomposition(dims, &mine).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        let twice = Selection::list(1, vec![0, 2, 1], vec![2, 2, 2]);
        let mine = if me == 1 { twice } else { Selection::all() };
        refused(&[x], mine, "rank 1 has element [1] more than once");
        refused(&[time, x], Selection::all(), "\"time\" is unlimited");
        refused(&[x], Selection::slab(&[4], &[3]), "dimension \"x\" has length 6");
        refused(&[x], Selection::none(), "no rank has an element");
        refused(&[], Selection::all(), "no elements");
        refused(&[x], Selection::blob(&[], &[]), "hyperslabs, not by a blob");
        // Nothing of these is left behind.
        assert_eq!((def.schema().dims.len(), def.schema().vars.len()), (2, 0));
        let map = def.add_decomposition(&[x], &Selection::slab(&[me as u64], &[1])).unwrap();
        assert_eq!(map.0, 1);
        let other = esker::DecompositionId(7);
        let error = def.add_decomposed_var("v", ExternalType::Int, &[], other).unwrap_err();
        assert!(error.to_string().contains("no such map"), "{error}");
        def.add_var("plain", ExternalType::Int, &[x]).unwrap();
        let ds = def.enddef().unwrap();
        let plain = ds.var("plain").unwrap();
        let error = ds.get::<i32>(plain, &Selection::blob(&[], &[])).unwrap_err();
        assert!(error.to_string().contains("\"plain\": it is not decomposed"), "{error}");
    });
}

#[test]
fn the_latest_of_two_ranks_that_have_an_element_wins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let found = path.clone();
    on_ranks(2, move |comm| {
        let me = comm.rank() as u64;
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm.clone())).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
        // Both have 2 and 3.
        let mine = Selection::slab(&[2 * me], &[4]);
        let map = def.add_decomposition(&[x], &mine).unwrap();
        let t = def.add_decomposed_var("t", ExternalType::Int, &[], map).unwrap();
        let mut ds = def.enddef().unwrap();
        let whole = Selection::blob(&[], &[]);
        let all = Selection::all();
        for (first, expected) in [(0, [1, 1, 2, 2, 2, 2]), (1, [1, 1, 1, 1, 2, 2])] {
            for turn in 0..2 {
                if (first + turn) % 2 == me {
                    ds.put(t, &whole, &[me as i32 + 1; 4]).unwrap();
                }
                comm.barrier().unwrap();
            }
            assert_eq!(ds.get::<i32>(t, &all).unwrap(), expected);
            comm.barrier().unwrap();
        }
        // A part of a part does not bring back what is older.
        if me == 1 {
            ds.put(t, &Selection::element(&[3]), &[7]).unwrap();
        }
        comm.barrier().unwrap();
        assert_eq!(ds.get::<i32>(t, &all).unwrap(), [1, 1, 1, 7, 2, 2]);
        ds.close().unwrap();
    });
    let ds = Dataset::open(&found).unwrap();
    let described = ds.decompositions();
    assert_eq!((described[0].stored, described[0].covered), (8, Some(6)));
    // A reader that takes blob after blob finds the same.
    let raw = Dataset::open_with(&found, OpenOptions::new().raw(true)).unwrap();
    let stored: Vec<i32> = raw.get(raw.var("t").unwrap(), &Selection::all()).unwrap();
    assert_eq!(stored[4..], [1, 7, 2, 2]);
}

#[test]
fn what_is_wrong_with_a_map_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    for (variable, value, word) in [
        ("D1.offsets", 12, "block 0 (offset 12, length 1) is none of [2, 6]"),
        ("D1.offsets", -1, "offsets has the number -1"),
        ("D1.lengths", 0, "block 0 (offset 0, length 0)"),
        (
            "D1.lengths",
            3,
            "the 4 blocks of process 0, from block 0 on, do not match their checksum",
        ),
        (
            "D1.offsets",
            4,
            "the 4 blocks of process 0, from block 0 on, do not match their checksum",
        ),
        ("D1.blob_count", 5, "the numbers of process 0 do not match their checksum"),
    ] {
        example(&path);
        let mut raw =
            Dataset::open_with(&path, OpenOptions::new().raw(true).writable(true)).unwrap();
        raw.put(raw.var(variable).unwrap(), &Selection::element(&[0]), &[value]).unwrap();
        raw.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        let error = ds.get::<i32>(ds.var("t").unwrap(), &Selection::all()).unwrap_err();
        let damaged =
            matches!(error, Error::Decomposition { source: DecompositionError::Damaged(_), .. });
        assert!(damaged && error.to_string().contains(word), "{error}");
    }
}

#[test]
fn an_attribute_of_the_same_name_does_not_make_a_decomposed_variable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    def.put_attr(v, "decomposition", "D1").unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[1, 2, 3]).unwrap();
    assert_eq!(ds.get::<i32>(VarId(0), &Selection::all()).unwrap(), [1, 2, 3]);
    assert_eq!(ds.decomposition(v).unwrap(), None);
}

#[test]
fn a_map_that_the_version_cannot_count_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = CreateOptions::new().version(Version::Cdf2);
    let mut def = Dataset::create(dir.path().join("run.nc"), options).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(1 << 20)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1 << 20)).unwrap();
    let error = def.add_decomposition(&[y, x], &Selection::slab(&[0, 0], &[1, 9])).unwrap_err();
    assert!(error.to_string().contains("use CDF-5"), "{error}");
}

fn read_example(path: &Path) -> Result<Vec<i32>, Error> {
    let ds = Dataset::open(path)?;
    ds.get(ds.var("t")?, &Selection::all())
}

#[test]
fn variables_in_sub_files_are_read_as_if_they_were_in_one() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one.nc"), dir.path().join("two.nc"));
    example(&one);
    example_in(&two, "2");
    assert_eq!(read_example(&one).unwrap(), read_example(&two).unwrap());
    let ds = Dataset::open(&two).unwrap();
    assert_eq!(ds.schema(), Dataset::open(&one).unwrap().schema());
    let paths = [0, 1].map(|k| dir.path().join(format!("two.{k}.nc")));
    let [first, second] = paths.clone();
    assert_eq!(ds.subfiles(), [(first, 0..1), (second, 1..2)]);
    assert!(ds.subfile_faults().is_empty());
    // As everybody else sees them: what each rank has, and nothing in the file itself.
    for (rank, path) in paths.iter().enumerate() {
        let sub = Dataset::open(path).unwrap();
        let t = sub.var("t").unwrap();
        let expected: Vec<i32> = (0..4).map(|i| i * 10 + rank as i32).collect();
        assert_eq!(sub.shape(t).unwrap(), [1, 4]);
        assert_eq!(sub.get::<i32>(t, &Selection::all()).unwrap(), expected);
    }
    let bytes = std::fs::read(&two).unwrap();
    let disk = esker::Header::decode(&bytes, bytes.len() as u64).unwrap();
    let t = disk.schema.variable(disk.schema.var("t").unwrap()).unwrap();
    assert!(t.dims.is_empty());
    let names = t.attrs.get("subfiled_dimensions").unwrap().values.text().unwrap().into_owned();
    assert_eq!(names, "time/D1.nelems");
    // Alone, more records, and another attribute.
    let options = OpenOptions::new().writable(true);
    example_in(&two, "-1");
    on_ranks(2, {
        let two = two.clone();
        move |comm| {
            let me = comm.rank() as i32;
            let mut ds = Dataset::open_with(&two, options.clone().comm(comm)).unwrap();
            let t = ds.var("t").unwrap();
            ds.amend(|schema| schema.put_attr(Owner::Var(t), "units", "K".into())).unwrap();
            ds.amend(|schema| schema.rename_var("t", "s")).unwrap();
            ds.put_all(t, &Selection::blob(&[2], &[1]), &[100 + me; 4]).unwrap();
            let found = ds.get_all::<i32>(t, &Selection::slab(&[2, 0, 0], &[1, 1, 4])).unwrap();
            assert_eq!(found, [100, 101, 100, 101]);
            ds.close().unwrap();
        }
    });
    on_ranks(2, {
        let (two, options) = (two.clone(), OpenOptions::new().writable(true));
        move |comm| {
            let ds = Dataset::open_with(&two, options.clone().comm(comm)).unwrap();
            let error = ds.redef().unwrap_err().to_string();
            assert!(error.contains("sub-files are final"), "{error}");
        }
    });
    let ds = Dataset::open(&two).unwrap();
    assert_eq!((ds.numrecs(), ds.subfiles().len()), (3, 1));
    let last = ds.get::<i32>(ds.var("s").unwrap(), &Selection::slab(&[2, 1, 0], &[1, 1, 6]));
    assert_eq!(last.unwrap(), [100, 101, 100, 101, FILL, FILL]);
}

#[test]
fn a_sub_file_that_is_not_as_it_should_be_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("run.nc"), dir.path().join("other.nc"));
    example_in(&path, "2");
    example_in(&other, "2");
    let sub = dir.path().join("run.1.nc");
    let whole = std::fs::read(&sub).unwrap();
    let expect = |words: &str| {
        let error = read_example(&path).unwrap_err().to_string();
        assert!(error.contains("run.1.nc") && error.contains(words), "{error}");
        let ds = Dataset::open(&path).unwrap();
        let faults = ds.subfile_faults();
        assert!(faults.len() == 1 && faults[0].0 == sub, "{faults:?}");
        // What is in another is there.
        let first = ds.get::<i32>(ds.var("t").unwrap(), &Selection::slab(&[0, 0, 0], &[1, 1, 1]));
        assert_eq!(first.unwrap(), [0]);
    };
    for len in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
        std::fs::write(&sub, &whole[..len]).unwrap();
        expect("");
    }
    expect("cut short");
    std::fs::remove_file(&sub).unwrap();
    expect("No such file");
    std::fs::copy(dir.path().join("other.1.nc"), &sub).unwrap();
    expect("a sub-file of another dataset");
    std::fs::copy(dir.path().join("run.0.nc"), &sub).unwrap();
    expect("it is sub-file Some([0]), not 1");
    std::fs::copy(&other, &sub).unwrap();
    expect("");
    std::fs::write(&sub, &whole).unwrap();
    read_example(&path).unwrap();
}

#[test]
fn changed_marks_of_sub_files_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    example_in(&path, "2");
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for change in [0x01, 0x80].into_iter().skip(at % 2).take(1) {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            std::fs::write(&path, &bytes).unwrap();
            let _ = read_example(&path);
        }
    }
}
