//! Inner strides and columns, which are moved a row at a time, are what a plain array has: by every
//! road, over borders of windows and blocks that lie anywhere in a row.

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Hints, Selection, VarId};

const SHAPE: [u64; 3] = [11, 7, 50];

/// Start, count and stride in each dimension.
type Slab = [[u64; 3]; 3];

/// The places that a slab has in a plain array, in order.
fn places([start, count, stride]: Slab) -> Vec<usize> {
    let at = |dim: usize, i: u64| start[dim] + i * stride[dim];
    let mut found = Vec::new();
    for z in 0..count[0] {
        for y in 0..count[1] {
            for x in 0..count[2] {
                let place = (at(0, z) * SHAPE[1] + at(1, y)) * SHAPE[2] + at(2, x);
                found.push(place as usize);
            }
        }
    }
    found
}

fn selection([start, count, stride]: Slab) -> Selection {
    Selection::strided(&start, &count, &stride)
}

/// What the ranks write one after the other: one slab for each rank at a time.
fn writes(ranks: u64) -> Vec<Vec<Slab>> {
    let every = |rank: u64| [[0, 1, rank], [6, 3, (50 - rank).div_ceil(ranks)], [2, 2, ranks]];
    let pairs = |rank: u64| [[rank, 0, 1], [1, 7, 16], [1, 1, 3]];
    let column = |rank: u64| [[0, 0, 48 - rank], [11, 7, 1], [1, 1, 1]];
    vec![
        (0..ranks).map(every).collect(),
        (0..ranks).map(pairs).collect(),
        (0..ranks).map(column).collect(),
    ]
}

const READS: [Slab; 6] = [
    [[0, 0, 0], [11, 7, 25], [1, 1, 2]],
    [[1, 1, 1], [3, 2, 16], [4, 3, 3]],
    [[0, 0, 48], [11, 7, 1], [1, 1, 1]],
    [[0, 0, 10], [11, 7, 2], [1, 1, 1]],
    [[0, 3, 5], [11, 1, 40], [1, 1, 1]],
    [[10, 6, 0], [1, 1, 8], [1, 1, 7]],
];

fn life(comm: std::sync::Arc<dyn esker::Communicator>, path: &std::path::Path, hints: Hints) {
    let (me, ranks) = (comm.rank(), comm.size() as u64);
    let mut def = Dataset::create(path, CreateOptions::new().hints(hints).comm(comm)).unwrap();
    let names = ["z", "y", "x"].iter().zip(SHAPE);
    let dims: Vec<_> =
        names.map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).unwrap()).collect();
    let mut vars: Vec<VarId> = Vec::new();
    for ty in [ExternalType::Byte, ExternalType::Short, ExternalType::Int, ExternalType::Double] {
        vars.push(def.add_var(&format!("{ty}"), ty, &dims).unwrap());
    }
    let chunked = def.add_var("chunked", ExternalType::Float, &dims).unwrap();
    def.set_chunks(chunked, &[4, 3, 17]).unwrap();
    vars.push(chunked);
    let mut ds = def.enddef().unwrap();
    for var in vars {
        let mut model: Vec<i32> =
            (0..SHAPE.iter().product::<u64>()).map(|i| i as i32 % 97).collect();
        let whole = Selection::all();
        let all = if me == 0 { whole.clone() } else { Selection::none() };
        ds.put_all(var, &all, if me == 0 { &model } else { &[] }).unwrap();
        for (number, slabs) in writes(ranks).into_iter().enumerate() {
            for (rank, slab) in slabs.into_iter().enumerate() {
                let places = places(slab);
                let value = |i: usize| (10 * number + 3 * rank + i % 5) as i32 - 60;
                let values: Vec<i32> = (0..places.len()).map(value).collect();
                places.iter().zip(&values).for_each(|(place, value)| model[*place] = *value);
                if rank == me {
                    ds.put_all(var, &selection(slab), &values).unwrap();
                }
            }
        }
        for slab in READS {
            let expected: Vec<i32> = places(slab).into_iter().map(|place| model[place]).collect();
            let together: Vec<i32> = ds.get_all(var, &selection(slab)).unwrap();
            assert_eq!(together, expected, "{slab:?}");
            let alone: Vec<i32> = ds.get(var, &selection(slab)).unwrap();
            assert_eq!(alone, expected, "{slab:?}");
        }
        assert_eq!(ds.get_all::<i32>(var, &whole).unwrap(), model);
    }
    ds.close().unwrap();
}

#[test]
fn rows_of_short_runs_are_what_a_plain_array_has() {
    let dir = tempfile::tempdir().unwrap();
    for switch in ["automatic", "enable", "disable"] {
        for (buffer, hole) in [("", ""), ("333", "16384"), ("1000", "3")] {
            for ranks in [1, 3] {
                let path = dir.path().join("run.nc");
                esker::launch(ranks, |comm| {
                    let mut hints = Hints::default();
                    hints.set("romio_cb_write", switch);
                    hints.set("romio_cb_read", switch);
                    if !buffer.is_empty() {
                        hints.set("cb_buffer_size", buffer);
                        hints.set("ind_rd_buffer_size", buffer);
                        hints.set("ind_wr_buffer_size", buffer);
                        hints.set("esker_sieve_hole", hole);
                    }
                    life(comm, &path, hints);
                });
            }
        }
    }
}
