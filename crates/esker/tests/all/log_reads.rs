//! What is read of a log is asked for as it was written: variable, record, elements.

use std::path::Path;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, Requests, Selection, VarId,
};
use esker_testkit::random::Random;

fn hints(pairs: &str) -> Hints {
    let mut hints = Hints::default();
    hints.set_pnetcdf(pairs);
    hints
}

/// A dataset whose values are in a log: a container, or a classic file behind a burst buffer.
fn create(dir: &Path, is_container: bool, pairs: &str) -> esker::Define {
    let burst = format!("nc_burst_buf=enable;nc_burst_buf_dirname={};", dir.display());
    let (name, layout, pairs) = match is_container {
        true => ("run.esk", Layout::Log, pairs.to_string()),
        false => ("run.nc", Layout::Classic, burst + pairs),
    };
    let options = CreateOptions::new().hints(hints(&pairs)).layout(layout);
    Dataset::create(dir.join(name), options).unwrap()
}

#[test]
fn a_plane_is_asked_for_at_once_whatever_lies_between_its_elements() {
    const N: u64 = 160;
    let dir = tempfile::tempdir().unwrap();
    let mut def = create(dir.path(), true, "");
    let dims = ["z", "y", "x"].map(|name| def.add_dim(name, DimLen::Fixed(N)).unwrap());
    let v = def.add_var("v", ExternalType::Int, &dims).unwrap();
    let mut ds = def.enddef().unwrap();
    let all: Vec<i32> = (0..(N * N * N) as i32).collect();
    ds.put_all(v, &Selection::all(), &all).unwrap();
    let plane = Selection::slab(&[0, 0, 7], &[N, N, 1]);
    let expected: Vec<i32> = all.iter().copied().skip(7).step_by(N as usize).collect();
    let mut found = vec![0; expected.len()];
    let mut queue = Requests::new();
    ds.iget(&mut queue, v, &plane, &mut found).unwrap();
    let before = ds.report().reads;
    ds.wait(&mut queue).unwrap();
    drop(queue);
    assert_eq!(ds.report().reads - before, 1);
    assert!(found == expected);
    // Through a block, in another type.
    let found = ds.get::<f64>(v, &plane).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| *a == f64::from(*b)));
}

/// Writes many overlapping hyperslabs, and reads what there is in many ways.
fn many_entries(is_container: bool, ds: &mut Dataset, v: VarId, [y, x]: [u64; 2]) {
    let mut random = Random(11);
    let mut below = |n: u64| random.below_u64(n);
    let mut model: Vec<Option<i32>> = vec![None; (y * x) as usize];
    for turn in 0..150 {
        let (start, stride) = ([below(y), below(x)], [1 + below(3), 1 + below(3)]);
        let most = |d: usize, len: u64, n: u64| n.min((len - 1 - start[d]) / stride[d] + 1);
        let count = [most(0, y, 1 + below(40)), most(1, x, 1 + below(90))];
        let values: Vec<i32> =
            (0..count[0] * count[1]).map(|i| (turn * 100_000 + i) as i32).collect();
        let places = (0..count[0]).flat_map(|i| (0..count[1]).map(move |j| [i, j]));
        for ([i, j], value) in places.zip(&values) {
            let place = (start[0] + i * stride[0]) * x + start[1] + j * stride[1];
            model[place as usize] = Some(*value);
        }
        ds.put(v, &Selection::strided(&start, &count, &stride), &values).unwrap();
    }
    let fill = -2_147_483_647;
    let value = |place: u64| model[place as usize].unwrap_or(fill);
    // Everything; columns; a list in which elements come twice and out of order.
    let everything: Vec<i32> = (0..y * x).map(value).collect();
    assert!(ds.get::<i32>(v, &Selection::all()).unwrap() == everything, "{is_container}");
    for column in [0, 13, x - 1] {
        let found = ds.get::<f64>(v, &Selection::slab(&[0, column], &[y, 1])).unwrap();
        let expected = (0..y).map(|row| f64::from(value(row * x + column)));
        assert!(found.into_iter().eq(expected), "{is_container}, column {column}");
    }
    let (mut starts, mut counts, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..60 {
        let (start, count) = ([below(y - 5), below(x - 7)], [1 + below(5), 1 + below(7)]);
        let rows = start[0]..start[0] + count[0];
        expected.extend(rows.flat_map(|r| (start[1]..start[1] + count[1]).map(move |c| r * x + c)));
        starts.extend(start);
        counts.extend(count);
    }
    let expected: Vec<i32> = expected.into_iter().map(value).collect();
    let list = Selection::list(2, starts, counts);
    assert!(ds.get::<i32>(v, &list).unwrap() == expected, "{is_container}");
    assert!(ds.get_all::<i32>(v, &list).unwrap() == expected, "{is_container}");
    let found = ds.get_all::<f64>(v, &list).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| *a == f64::from(*b)), "{is_container}");
}

#[test]
fn more_entries_than_there_is_room_for_are_read_a_half_at_a_time() {
    // 2.4 MB, written by 150 entries, of which the index has room for all and a read for some 40.
    let shape = [700, 900];
    for is_container in [true, false] {
        for is_record in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut def = create(dir.path(), is_container, "esker_index_memory=65536");
            let mut dims = Vec::new();
            if is_record {
                dims.push(def.add_dim("t", DimLen::Unlimited).unwrap());
            }
            dims.push(def.add_dim("y", DimLen::Fixed(shape[0])).unwrap());
            dims.push(def.add_dim("x", DimLen::Fixed(shape[1])).unwrap());
            let dims = if is_record { vec![dims[0], dims[2]] } else { dims };
            let v = def.add_var("v", ExternalType::Int, &dims).unwrap();
            let mut ds = def.enddef().unwrap();
            if is_record {
                // So that all records are there.
                let last = [shape[0] - 1, 0];
                ds.put(v, &Selection::element(&last), &[5]).unwrap();
                ds.put(v, &Selection::element(&last), &[-2_147_483_647]).unwrap();
            }
            many_entries(is_container, &mut ds, v, shape);
            ds.close().unwrap();
        }
    }
}

#[test]
fn payloads_that_would_end_with_their_own_checksum_are_not_taken_for_each_other() {
    for filters in ["crc32c", "shuffle crc32c", "shuffle crc32c crc32c"] {
        let dir = tempfile::tempdir().unwrap();
        let mut def = create(dir.path(), true, "");
        let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
        let vars = ["a", "b"].map(|name| {
            let var = def.add_var(name, ExternalType::Int, &[x]).unwrap();
            def.set_filters(var, filters).unwrap();
            var
        });
        let mut ds = def.enddef().unwrap();
        for (n, var) in vars.into_iter().enumerate() {
            ds.put(var, &Selection::all(), &[10 + n as i32; 6]).unwrap();
        }
        ds.close().unwrap();
        let path = dir.path().join("run.esk");
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<i32>(vars[1], &Selection::all()).unwrap(), [11; 6]);
        let names = std::fs::read_dir(path.join("segments")).unwrap();
        let mut names = names.map(|name| name.unwrap().path());
        let data = names.find(|path| path.extension().is_some_and(|end| end == "data")).unwrap();
        let mut bytes = std::fs::read(&data).unwrap();
        // Two payloads of one length, one behind the other.
        let half = bytes.len() / 2;
        bytes.rotate_left(half);
        std::fs::write(&data, bytes).unwrap();
        let ds = Dataset::open(&path).unwrap();
        for var in vars {
            let found = ds.get::<i32>(var, &Selection::all());
            assert!(found.is_err(), "{filters}: {found:?}");
        }
    }
}
