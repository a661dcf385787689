//! Small writes far apart in large files: nothing is done for the bytes between.

use std::time::Duration;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, FillMode, Hints, Requests, Selection, Strategy,
};
use esker_testkit::cpu;
use esker_testkit::ranks::on_ranks;

/// 2^40 bytes, of which the file system stores none before they are written.
const LEN: u64 = 1 << 38;

#[test]
fn elements_far_apart_do_not_take_rounds_of_nothing() {
    for switch in ["automatic", "enable"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let times = on_ranks(3, move |comm| {
            let mut hints = Hints::default();
            hints.set("romio_cb_write", switch);
            hints.set("romio_cb_read", switch);
            let options =
                CreateOptions::new().fill(FillMode::NoFill).hints(hints).comm(comm.clone());
            let mut def = Dataset::create(&path, options).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(LEN)).unwrap();
            let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
            let mut ds = def.enddef().unwrap();
            let me = comm.rank() as u64;
            let ((), time) = cpu::of_this_thread(|| {
                // A few elements of each rank, from the first to the last of the file.
                let mine = Selection::strided(&[me], &[100], &[LEN / 100]);
                let data: Vec<i32> = (0..100).map(|i| 100 * me as i32 + i).collect();
                ds.put_all(v, &mine, &data).unwrap();
                let last = Selection::element(&[LEN - 1 - me]);
                ds.put_all(v, &last, &[-1i32]).unwrap();
                let (first, end) = ([7i32], [8i32]);
                let mut queue = Requests::new();
                ds.iput(&mut queue, v, &Selection::element(&[10 + me]), &first).unwrap();
                ds.iput(&mut queue, v, &Selection::element(&[LEN - 10 - me]), &end).unwrap();
                ds.wait_all(&mut queue).unwrap();
                let found: Vec<i32> = ds.get_all(v, &mine).unwrap();
                assert_eq!(found, data);
                let found: Vec<i32> = ds.get_all(v, &Selection::element(&[LEN - 10 - me])).unwrap();
                assert_eq!(found, [8]);
            });
            assert_ne!(ds.report().write_strategy, Strategy::Nothing);
            ds.close().unwrap();
            time
        });
        println!("{switch}: {times:?}");
        assert!(times[0] < Duration::from_secs(10), "{switch}: {times:?}");
    }
}
