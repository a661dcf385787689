//! What ranks put alone into chunked variables waits in their memory, and is what a plain array would have.

use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Selection,
    VarId,
};
use esker_testkit::ranks::on_ranks;

const N: u64 = 23;

/// `t(x)`, `r(time, x)` in chunks and `p(time)`, which is not.
fn create(path: &std::path::Path, comm: &Arc<dyn Communicator>, pending: &str) -> Dataset {
    let mut hints = Hints::default();
    hints.set("esker_chunk_pending", pending);
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let mut def = Dataset::create(path, options).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(N)).unwrap();
    let t = def.add_var("t", ExternalType::Int, &[x]).unwrap();
    let r = def.add_var("r", ExternalType::Double, &[time, x]).unwrap();
    def.add_var("p", ExternalType::Short, &[time]).unwrap();
    def.set_chunks(t, &[5]).unwrap();
    def.set_filters(t, "shuffle zstd").unwrap();
    def.set_chunks(r, &[2, 7]).unwrap();
    def.enddef().unwrap()
}

const T: VarId = VarId(0);
const R: VarId = VarId(1);
const P: VarId = VarId(2);

#[test]
fn puts_of_one_rank_wait_for_a_collective_call_in_their_order() {
    for ranks in [2, 4] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.nc");
        on_ranks(ranks, move |comm| {
            let rank = comm.rank() as u64;
            let mut ds = create(&path, &comm, "100000");
            let mut model = vec![-2147483647; N as usize];
            // Each rank has a stretch of its own that is no multiple of a chunk.
            let (from, to) = (N * rank / ranks as u64, N * (rank + 1) / ranks as u64);
            for round in 0..5u64 {
                for (i, place) in (from..to).enumerate().skip(round as usize % 3) {
                    let value = (1000 * rank + 10 * i as u64 + round) as i32;
                    ds.put(T, &Selection::element(&[place]), &[value]).unwrap();
                    model[place as usize] = value;
                }
                // Its own puts are seen by a rank that reads alone, and everything else as it was.
                let seen: Vec<i32> = ds.get(T, &Selection::slab(&[from], &[to - from])).unwrap();
                assert_eq!(seen, model[from as usize..to as usize]);
                let step = Selection::strided(&[from], &[(to - from).div_ceil(2)], &[2]);
                let seen: Vec<f64> = ds.get(T, &step).unwrap();
                let wanted = model[from as usize..to as usize].iter().step_by(2);
                assert_eq!(seen, wanted.map(|v| f64::from(*v)).collect::<Vec<_>>());
            }
            // With the puts of the collective call, which come later.
            let last = [-7i32];
            ds.put_all(T, &Selection::element(&[from]), &last).unwrap();
            model[from as usize] = -7;
            let all: Vec<i32> = ds.get_all(T, &Selection::all()).unwrap();
            assert_eq!(all[from as usize..to as usize], model[from as usize..to as usize]);
            // And at close.
            ds.put(T, &Selection::element(&[to - 1]), &[77i32]).unwrap();
            ds.close().unwrap();
            let ds = Dataset::open_with(&path, OpenOptions::new().comm(comm)).unwrap();
            let all: Vec<i32> = ds.get(T, &Selection::all()).unwrap();
            for other in 0..ranks as u64 {
                let (from, to) = (N * other / ranks as u64, N * (other + 1) / ranks as u64);
                assert_eq!((all[from as usize], all[to as usize - 1]), (-7, 77));
            }
        });
    }
}

#[test]
fn records_that_one_rank_puts_alone_are_everyones_after_sync_and_filled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nc");
    on_ranks(3, move |comm| {
        let rank = comm.rank() as u64;
        let mut ds = create(&path, &comm, "100000");
        ds.put_all(P, &Selection::slab(&[0], &[1]), &[5i16]).unwrap();
        if rank == 1 {
            let row = Selection::slab(&[3, 2], &[1, 4]);
            ds.put(R, &row, &[1.0, 2.0, 3.0, 4.0]).unwrap();
            assert_eq!(ds.numrecs(), 4);
            assert_eq!(ds.shape(R).unwrap(), [4, N]);
            assert_eq!(ds.get::<f64>(R, &row).unwrap(), [1.0, 2.0, 3.0, 4.0]);
            // The record before it is there, and nobody wrote it.
            let fill: Vec<f64> = ds.get(R, &Selection::slab(&[2, 0], &[1, N])).unwrap();
            assert!(fill.iter().all(|v| *v > 9e36));
            let later = ds.get_start::<f64>(R, &row).wait().unwrap();
            assert_eq!(later, [1.0, 2.0, 3.0, 4.0]);
        } else {
            assert_eq!(ds.numrecs(), 1);
        }
        ds.sync().unwrap();
        assert_eq!(ds.numrecs(), 4);
        let row: Vec<f64> = ds.get(R, &Selection::slab(&[3, 1], &[1, 6])).unwrap();
        assert_eq!(row[1..5], [1.0, 2.0, 3.0, 4.0]);
        assert!(row[0] > 9e36 && row[5] > 9e36);
        // The variable beside it has as many records, with its fill value.
        assert_eq!(ds.get::<i16>(P, &Selection::all()).unwrap(), [5, -32767, -32767, -32767]);
        let def = ds.redef().unwrap();
        let ds = def.enddef().unwrap();
        assert_eq!(ds.get::<i16>(P, &Selection::all()).unwrap().len(), 4);
        ds.close().unwrap();
    });
}

#[test]
fn more_than_the_hint_allows_is_an_error_that_names_it_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, none) = (dir.path().join("x.nc"), dir.path().join("none.nc"));
    on_ranks(2, move |comm| {
        let rank = comm.rank() as u64;
        let mut ds = create(&path, &comm, "40");
        let mine = Selection::slab(&[10 * rank], &[10]);
        ds.put(T, &mine, &[1i32; 10]).unwrap();
        let error = ds.put(T, &mine, &[2i32; 10]).unwrap_err().to_string();
        assert!(error.contains("esker_chunk_pending (40)") && error.contains("\"t\""), "{error}");
        // A wrong argument of somebody else does not lose it either.
        let wrong = ds.put_all(T, &Selection::slab(&[N - rank], &[1]), &[3i32]);
        assert!(wrong.is_err(), "N itself is beyond the end on rank 0");
        assert_eq!(ds.get::<i32>(T, &mine).unwrap(), [1; 10]);
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<i32>(T, &Selection::slab(&[0], &[20])).unwrap(), [1; 20]);
        let mut ds = create(&none, &comm, "0");
        assert!(ds.put(T, &mine, &[1i32; 10]).is_err());
        ds.close().unwrap();
    });
}

#[test]
fn hints_store_variables_by_name_and_tell_what_they_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nc");
    let mut hints = Hints::default();
    hints.set_pnetcdf("esker_chunk=lat/3,lon/4|t*:auto|time:none;esker_filter=*:shuffle+zstd,5|u:none|w:zfp,accuracy=0.5");
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    let mut def = Dataset::create(&path, CreateOptions::new().hints(hints)).unwrap();
    let lat = def.add_dim("lat", DimLen::Fixed(10)).unwrap();
    let lon = def.add_dim("lon", DimLen::Fixed(3)).unwrap();
    let u = def.add_var("u", ExternalType::Float, &[lat, lon]).unwrap();
    let temp = def.add_var("temp", ExternalType::Float, &[lat]).unwrap();
    let s = def.add_var("s", ExternalType::Int, &[]).unwrap();
    let w = def.add_var("w", ExternalType::Char, &[lat, lon]).unwrap();
    assert_eq!(def.chunk_shape(u).unwrap(), Some(vec![3, 3]));
    assert_eq!(def.chunk_shape(temp).unwrap(), Some(vec![10]));
    assert_eq!(def.chunk_shape(s).unwrap(), None);
    let told = def.hints().refused();
    assert!(told.iter().any(|t| t.contains("esker_filter") && t.contains("\"s\"")), "{told:?}");
    assert!(told.iter().any(|t| t.contains("esker_filter") && t.contains("\"w\"")), "{told:?}");
    assert_eq!(def.hints().effective().last().unwrap(), &("esker_refused", "s,w".to_string()));
    // A program that says it itself is obeyed.
    def.set_contiguous(w).unwrap();
    assert_eq!(def.chunk_shape(w).unwrap(), None);
    let ds = def.enddef().unwrap();
    assert_eq!(ds.chunking(u).unwrap().pipeline.to_string(), "");
    assert_eq!(ds.chunking(temp).unwrap().pipeline.to_string(), "shuffle zstd,5");
    assert!(ds.chunking(w).is_none());
    let plain = ds.plain_schema().unwrap().unwrap();
    assert!(plain.vars.iter().all(|v| v.attrs.is_empty()));
    ds.close().unwrap();
}
