//! What is written as boxes, with strides and as lists, over each other and by several ranks, is read as a plain array has it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, OpenOptions,
    Selection, VarId,
};
use esker_format::runs::advance;
use esker_store::{CountingStore, LocalStore, MemoryStore, Store};
use esker_testkit::random::Random;
use proptest::prelude::*;

/// One dataset's life.
#[derive(Debug, Clone)]
struct Life {
    shape: Vec<u64>,
    is_record: bool,
    ty: ExternalType,
    writers: usize,
    readers: usize,
    hints: String,
    epochs: usize,
    /// Boxes that all lie in one regular grid now and then, as those of a decomposition do.
    regular: bool,
    seed: u64,
}

fn life() -> impl Strategy<Value = Life> {
    let types = [ExternalType::Byte, ExternalType::Short, ExternalType::Int, ExternalType::Double];
    let budgets = ["1", "3000", "20000", "268435456"];
    let index = prop::sample::select(vec!["local", "distributed", "automatic"]);
    let hints = (prop::sample::select(budgets.to_vec()), index, any::<bool>()).prop_map(
        |(memory, index, exchanges)| {
            let read = if exchanges { "romio_cb_read=enable;" } else { "" };
            format!("{read}esker_index={index};esker_index_memory={memory}")
        },
    );
    let shape = prop::collection::vec(1u64..8, 1..6);
    let ranks = (1usize..4, 1usize..4);
    let rest =
        (prop::sample::select(types.to_vec()), hints, 1usize..4, any::<bool>(), any::<u64>());
    (shape, any::<bool>(), ranks, rest).prop_map(
        |(shape, is_record, (writers, readers), (ty, hints, epochs, regular, seed))| Life {
            shape,
            is_record,
            ty,
            writers,
            readers,
            hints,
            epochs,
            regular,
            seed,
        },
    )
}

/// The places that a hyperslab has in an array, in its order.
fn places(shape: &[u64], start: &[u64], count: &[u64], stride: &[u64]) -> Vec<usize> {
    let (mut index, mut all) = (vec![0; count.len()], Vec::new());
    loop {
        let place =
            (0..shape.len()).fold(0, |place, d| place * shape[d] + start[d] + index[d] * stride[d]);
        all.push(place as usize);
        if advance(&mut index, count).is_none() {
            return all;
        }
    }
}

/// A random selection, and its places.
fn select(life: &Life, random: &mut Random) -> (Selection, Vec<usize>) {
    let shape = &life.shape;
    let dims = shape.len();
    let mut below = |n: u64| random.below_u64(n);
    let mut slab = |most: u64| {
        let start: Vec<u64> = shape.iter().map(|n| below(*n)).collect();
        let count: Vec<u64> =
            start.iter().zip(shape).map(|(s, n)| 1 + below((n - s).min(most))).collect();
        (start, count)
    };
    let ones = vec![1; dims];
    let (start, count) = slab(7);
    match (below(6), life.regular) {
        (0, _) => {
            let stride: Vec<u64> = (0..dims).map(|_| 1 + below(3)).collect();
            let count: Vec<u64> =
                count.iter().zip(&stride).map(|(n, stride)| (n - 1) / stride + 1).collect();
            let all = places(shape, &start, &count, &stride);
            (Selection::strided(&start, &count, &stride), all)
        }
        (1, _) => {
            let (mut starts, mut counts, mut all) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..1 + below(9) {
                let start: Vec<u64> = shape.iter().map(|n| below(*n)).collect();
                let count: Vec<u64> =
                    start.iter().zip(shape).map(|(s, n)| 1 + below((n - s).min(2))).collect();
                all.extend(places(shape, &start, &count, &ones));
                starts.extend(start);
                counts.extend(count);
            }
            (Selection::list(dims, starts, counts), all)
        }
        (2, true) | (3, true) | (4, true) => {
            let start: Vec<u64> = start.iter().map(|s| s / 2 * 2).collect();
            let count: Vec<u64> = start.iter().zip(shape).map(|(s, n)| (n - s).min(2)).collect();
            let all = places(shape, &start, &count, &ones);
            (Selection::slab(&start, &count), all)
        }
        (5, true) => {
            let all = places(shape, &vec![0; dims], shape, &ones);
            (Selection::slab(&vec![0; dims], shape), all)
        }
        _ => (Selection::slab(&start, &count), places(shape, &start, &count, &ones)),
    }
}

fn hints(pairs: &str) -> Hints {
    let mut hints = Hints::default();
    hints.set_pnetcdf(pairs);
    hints
}

/// What rank `rank` writes in an epoch, together or alone.
fn writes(life: &Life, epoch: usize, rank: usize) -> Vec<(Selection, Vec<usize>, Vec<i32>)> {
    let mut random = Random(life.seed ^ (1 + epoch as u64 * 64 + rank as u64) << 17);
    let count = 1 + random.below_u64(12) as usize;
    let one = |number: usize| {
        let (selection, all) = select(life, &mut random);
        let base = (epoch * 31 + rank * 7 + number * 3) as i32;
        let values = (0..all.len()).map(|i| (base + i as i32) % 100).collect();
        (selection, all, values)
    };
    (0..count).map(one).collect()
}

fn write(life: &Life, comm: &Arc<dyn Communicator>, path: &Path) {
    let options = CreateOptions::new().layout(Layout::Log).hints(hints(&life.hints));
    let mut def = Dataset::create(path, options.comm(comm.clone())).unwrap();
    let dims: Vec<_> = (0..life.shape.len())
        .map(|d| {
            let len = match d == 0 && life.is_record {
                true => DimLen::Unlimited,
                false => DimLen::Fixed(life.shape[d]),
            };
            def.add_dim(&format!("d{d}"), len).unwrap()
        })
        .collect();
    // Another one, of which nothing may be found here.
    let other = def.add_var("other", ExternalType::Int, &dims).unwrap();
    let v = def.add_var("v", life.ty, &dims).unwrap();
    let mut ds = def.enddef().unwrap();
    let last: Vec<u64> = life.shape.iter().map(|n| n - 1).collect();
    ds.put_all(other, &Selection::element(&last), &[-5]).unwrap();
    for epoch in 0..life.epochs {
        let mut all = writes(life, epoch, comm.rank());
        let (selection, _, values) = all.pop().unwrap();
        for (selection, _, values) in &all {
            ds.put(v, selection, values).unwrap();
        }
        ds.put_all(v, &selection, &values).unwrap();
        if epoch == 1 {
            ds.sync().unwrap();
        }
    }
    read(life, comm, &mut ds);
    ds.close().unwrap();
}

/// What there is in the end: later collective calls lie over earlier ones, and in each higher ranks over lower.
fn model(life: &Life) -> Vec<Option<i32>> {
    let mut model = vec![None; life.shape.iter().product::<u64>() as usize];
    for epoch in 0..life.epochs {
        for rank in 0..life.writers {
            for (_, all, values) in writes(life, epoch, rank) {
                all.iter().zip(values).for_each(|(place, value)| model[*place] = Some(value));
            }
        }
    }
    model
}

fn read(life: &Life, comm: &Arc<dyn Communicator>, ds: &mut Dataset) {
    let model = model(life);
    let v = VarId(1);
    let fill = match life.ty {
        ExternalType::Byte => -127.0,
        ExternalType::Short => -32_767.0,
        ExternalType::Int => -2_147_483_647.0,
        _ => f64::from_bits(0x479e_0000_0000_0000),
    };
    // What others have written is there when all have read together.
    ds.get_all::<f64>(v, &Selection::none()).unwrap();
    let value = |place: &usize| model[*place].map_or(fill, f64::from);
    let mut random = Random(life.seed ^ comm.rank() as u64);
    for turn in 0..8 {
        let (selection, all) = select(life, &mut random);
        let expected: Vec<f64> = all.iter().map(value).collect();
        let found = match turn % 2 {
            0 => ds.get::<f64>(v, &selection).unwrap(),
            _ => ds.get_all::<f64>(v, &selection).unwrap(),
        };
        assert_eq!(found, expected, "{selection:?} of {life:?}");
        // In the variable's own type, straight into memory.
        let found = ds.get_values(v, &selection).unwrap();
        let bytes = found.native_bytes();
        let found: Vec<f64> = match life.ty {
            ExternalType::Byte => bytes.iter().map(|b| f64::from(*b as i8)).collect(),
            ExternalType::Short => {
                bytes.as_chunks().0.iter().map(|b| f64::from(i16::from_ne_bytes(*b))).collect()
            }
            ExternalType::Int => {
                bytes.as_chunks().0.iter().map(|b| f64::from(i32::from_ne_bytes(*b))).collect()
            }
            _ => bytes.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
        };
        assert_eq!(found, expected, "{selection:?} of {life:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_read_of_boxes_strides_and_lists_is_what_a_plain_array_has(life in life()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.esk");
        esker::launch(life.writers, |comm| write(&life, &comm, &path));
        esker::launch(life.readers, |comm| {
            let options = OpenOptions::new().hints(hints(&life.hints)).comm(comm.clone());
            let mut ds = Dataset::open_with(&path, options).unwrap();
            read(&life, &comm, &mut ds);
            ds.close().unwrap();
        });
    }
}

/// A cube of floats in blocks of 32 in each dimension, 8 checksum blocks each, written in any order.
const SIDE: u64 = 128;
const BLOCK: u64 = 32;

fn cube(store: &Arc<dyn Store>, path: &Path, ranks: usize) {
    let per = SIDE / BLOCK;
    esker::launch(ranks, |comm| {
        let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
        let mut def = Dataset::create(path, options.comm(comm.clone())).unwrap();
        let dims = ["z", "y", "x"].map(|name| def.add_dim(name, DimLen::Fixed(SIDE)).unwrap());
        let v = def.add_var("v", ExternalType::Float, &dims).unwrap();
        let mut ds = def.enddef().unwrap();
        for i in (comm.rank() as u64..per.pow(3)).step_by(comm.size()) {
            let i = i * 29 % per.pow(3);
            let start = [i / per / per, i / per % per, i % per].map(|index| index * BLOCK);
            let values: Vec<f32> = (0..BLOCK.pow(3))
                .map(|e| {
                    let [z, y, x] = [e / BLOCK / BLOCK, e / BLOCK % BLOCK, e % BLOCK];
                    value_at([start[0] + z, start[1] + y, start[2] + x])
                })
                .collect();
            ds.put(v, &Selection::slab(&start, &[BLOCK; 3]), &values).unwrap();
        }
        ds.close().unwrap();
    });
}

fn value_at([z, y, x]: [u64; 3]) -> f32 {
    ((z * SIDE + y) * SIDE + x) as f32
}

/// What there is in a box, by the formula.
fn expected(start: [u64; 3], count: [u64; 3]) -> Vec<f32> {
    let index = |e: u64| [e / count[1] / count[2], e / count[2] % count[1], e % count[2]];
    (0..count.iter().product())
        .map(|e| {
            let [z, y, x] = index(e);
            value_at([start[0] + z, start[1] + y, start[2] + x])
        })
        .collect()
}

#[test]
fn only_checksum_blocks_that_hold_something_that_is_wanted_are_read() {
    let memory = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(memory.clone());
    let path = Path::new("/run/a.esk");
    cube(&shared, path, 1);
    let counting = CountingStore::new(memory);
    let options = OpenOptions::new().store(Arc::new(counting.clone()));
    let ds = Dataset::open_with(path, options).unwrap();
    let v = VarId(0);
    // The index is made once.
    ds.get::<f32>(v, &Selection::element(&[0, 0, 0])).unwrap();
    let read = || counting.counts().bytes_read.load(Ordering::Relaxed);
    const SUMMED: u64 = 16 << 10;
    let across = SIDE / BLOCK;
    for (start, count, blocks) in [
        // A plane of the slowest dimension: one of the 8 of each; across the others: all of each.
        ([40, 0, 0], [1, SIDE, SIDE], across * across),
        ([0, 40, 0], [SIDE, 1, SIDE], across * across * 8),
        ([0, 0, 40], [SIDE, SIDE, 1], across * across * 8),
        ([40, 40, 40], [4, 10, 10], 1),
        ([60, 60, 60], [8, 8, 8], 8),
        ([0, 0, 0], [SIDE, SIDE, SIDE], across.pow(3) * 8),
    ] {
        let before = read();
        let found = ds.get::<f32>(v, &Selection::slab(&start, &count)).unwrap();
        assert!(found == expected(start, count), "{start:?}");
        assert_eq!(read() - before, blocks * SUMMED, "{start:?} {count:?}");
    }
}

#[test]
fn damage_beside_a_plane_is_not_in_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    cube(&store, &path, 1);
    let names = std::fs::read_dir(path.join("segments")).unwrap();
    let mut paths = names.map(|name| name.unwrap().path());
    let data = paths.find(|path| path.extension().is_some_and(|end| end == "data")).unwrap();
    let mut bytes = std::fs::read(&data).unwrap();
    // The first block is that of [0, 0, 0]; this is in its plane number 17.
    bytes[17 * 32 * 32 * 4 + 5] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let ds = Dataset::open(&path).unwrap();
    let plane = |z| ds.get::<f32>(VarId(0), &Selection::slab(&[z, 0, 0], &[1, SIDE, SIDE]));
    assert!(plane(2).unwrap() == expected([2, 0, 0], [1, SIDE, SIDE]));
    let error = plane(17).unwrap_err().to_string();
    assert!(error.contains("of rank 0 does not match its checksum"), "{error}");
    let beside = Selection::slab(&[17, 32, 0], &[1, SIDE - 32, SIDE]);
    assert!(ds.get::<f32>(VarId(0), &beside).unwrap() == expected([17, 32, 0], [1, 96, SIDE]));
}

#[test]
fn ranks_read_planes_across_their_blocks_for_themselves() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = Path::new("/run/a.esk");
    cube(&store, path, 3);
    esker::launch(2, |comm| {
        let options = OpenOptions::new().store(store.clone()).comm(comm.clone());
        let mut ds = Dataset::open_with(path, options).unwrap();
        let rank = comm.rank() as u64;
        // Half of a plane each: in the file an element of each row, in the logs a few blocks.
        let (start, count) = ([64 * rank, 0, 9], [64, SIDE, 1]);
        let found = ds.get_all::<f32>(VarId(0), &Selection::slab(&start, &count)).unwrap();
        assert!(found == expected(start, count));
        assert_eq!(ds.report().read_strategy, esker::Strategy::Direct);
        // Every second element of all rows, which both would have to read whole.
        let (start, count) = ([0, 0, rank], [SIDE, SIDE, SIDE / 2]);
        let mine = Selection::strided(&start, &count, &[1, 1, 2]);
        let found = ds.get_all::<f32>(VarId(0), &mine).unwrap();
        let all = expected([0, 0, 0], [SIDE; 3]);
        assert!(found.iter().eq(all.iter().skip(rank as usize).step_by(2)));
        ds.close().unwrap();
    });
}
