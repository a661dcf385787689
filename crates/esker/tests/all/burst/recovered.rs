//! What `recover` tells and does.

use std::fs;
use std::path::{Path, PathBuf};

use esker::{Dataset, RecoverOptions, Requests, Selection, VarId};

use super::{create, hints, names, solo};

/// Three ranks write a part of `f` each, twice, and die.
fn died(dir: &Path) -> (PathBuf, PathBuf) {
    let (path, bb) = (dir.join("run.nc"), dir.join("bb"));
    esker::launch(3, |comm| {
        let rank = comm.rank() as u64;
        let (mut ds, f, t) = create(&path, 6000, hints(&bb, &[]), comm.clone());
        for turn in 0..2 {
            let values = vec![(10 * turn + rank) as f64; 2000];
            ds.put_all(f, &Selection::slab(&[2000 * rank], &[2000]), &values).unwrap();
            ds.put_all(t, &Selection::slab(&[turn, 2000 * rank], &[1, 2000]), &values).unwrap();
            // What was read is in the log.
            ds.get::<f64>(f, &Selection::slab(&[2000 * rank], &[1])).unwrap();
        }
    });
    (path, bb)
}

fn log_of(bb: &Path, rank: u32, kind: &str) -> PathBuf {
    let is_it = |path: &PathBuf| path.to_str().unwrap().ends_with(&format!(".{rank}.1.0.{kind}"));
    names(bb).into_iter().find(is_it).unwrap()
}

#[test]
fn a_session_that_died_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let options = RecoverOptions::new().dir(&bb);
    let look = esker::recover(&path, &options.clone().look_only(true)).unwrap();
    assert_eq!((look.entries, look.records, look.removed), (12, 2, false));
    assert_eq!(Dataset::open(&path).unwrap().numrecs(), 0);
    let recovery = esker::recover(&path, &options).unwrap();
    assert!(recovery.is_complete() && recovery.removed);
    assert_eq!((recovery.logs, recovery.ranks), (3, 3));
    assert_eq!((recovery.entries, recovery.records), (12, 2));
    let ds = Dataset::open(&path).unwrap();
    let expected: Vec<f64> = (10..13).flat_map(|v| [f64::from(v); 2000]).collect();
    assert_eq!(ds.get::<f64>(VarId(0), &Selection::all()).unwrap(), expected);
    assert_eq!(names(&bb), Vec::<PathBuf>::new());
    let again = esker::recover(&path, &options).unwrap();
    assert_eq!((again.logs, again.entries), (0, 0));
}

#[test]
fn a_rank_whose_log_is_gone_is_named_and_the_rest_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    fs::remove_file(log_of(&bb, 1, "meta")).unwrap();
    let options = RecoverOptions::new().dir(&bb);
    let recovery = esker::recover(&path, &options).unwrap();
    assert!(!recovery.is_complete() && !recovery.removed);
    assert_eq!((recovery.ranks, recovery.missing), (3, vec![1]));
    let ds = Dataset::open(&path).unwrap();
    let found: Vec<f64> = ds.get(VarId(0), &Selection::all()).unwrap();
    assert_eq!((found[0], found[5999]), (10.0, 12.0));
    assert!(found[2000] > 1e30);
}

#[test]
fn a_payload_that_was_damaged_is_told_with_its_place_and_the_rest_is_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let log = log_of(&bb, 2, "data");
    let mut bytes = fs::read(&log).unwrap();
    // In the third payload: the second turn of `f`.
    bytes[2 * 16_000 + 500] ^= 1;
    fs::write(&log, bytes).unwrap();
    let recovery = esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    assert_eq!(recovery.damages.len(), 1);
    assert_eq!(recovery.damages[0].rank, 2);
    let what = &recovery.damages[0].what;
    assert!(what.contains("32000") && what.contains("\"f\""), "{what}");
    assert!(!recovery.removed);
    let ds = Dataset::open(&path).unwrap();
    let found: Vec<f64> = ds.get(VarId(0), &Selection::all()).unwrap();
    assert_eq!((found[0], found[2000], found[4000]), (10.0, 11.0, 2.0));
    let row: Vec<f64> = ds.get(VarId(1), &Selection::slab(&[1, 4000], &[1, 1])).unwrap();
    assert_eq!(row, [12.0]);
}

#[test]
fn a_damaged_frame_is_told_and_the_others_are_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let log = log_of(&bb, 0, "meta");
    let mut bytes = fs::read(&log).unwrap();
    let mark = bytes.windows(4).position(|w| w == b"ESKF").unwrap();
    bytes[mark + 30] ^= 0x55;
    fs::write(&log, bytes).unwrap();
    let recovery = esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    assert!(!recovery.is_complete());
    let place = format!("byte {mark} ");
    assert!(recovery.damages.iter().any(|d| d.what.contains(&place)), "{:?}", recovery.damages);
    let ds = Dataset::open(&path).unwrap();
    let found: Vec<f64> = ds.get(VarId(0), &Selection::all()).unwrap();
    assert_eq!((found[2000], found[4000]), (11.0, 12.0));
}

#[test]
fn a_log_without_a_head_is_told_and_the_others_are_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    let log = log_of(&bb, 1, "meta");
    let mut bytes = fs::read(&log).unwrap();
    bytes[3] ^= 1;
    fs::write(&log, bytes).unwrap();
    let recovery = esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    assert!(!recovery.is_complete() && !recovery.removed);
    assert_eq!((recovery.missing, recovery.entries), (vec![1], 8));
    let [damage] = &recovery.damages[..] else { panic!("{:?}", recovery.damages) };
    assert!(damage.what.contains(log.to_str().unwrap()), "{}", damage.what);
    assert!(damage.what.contains("no head"), "{}", damage.what);
    let found: Vec<f64> = Dataset::open(&path).unwrap().get(VarId(0), &Selection::all()).unwrap();
    assert_eq!((found[0], found[5999]), (10.0, 12.0));
}

#[test]
fn logs_of_two_sessions_are_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, first) = died(dir.path());
    let kept = dir.path().join("kept");
    fs::rename(&first, &kept).unwrap();
    let (_, second) = died(dir.path());
    let options = RecoverOptions::new().dir(&kept).dir(&second);
    let before = fs::read(&path).unwrap();
    let error = esker::recover(&path, &options).unwrap_err().to_string();
    assert!(error.contains("logs of several sessions"), "{error}");
    assert!(fs::read(&path).unwrap() == before, "nothing was replayed");
    assert!(esker::recover(&path, &RecoverOptions::new().dir(&second)).unwrap().is_complete());
}

#[test]
fn logs_of_every_node_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = died(dir.path());
    // As if each node had a burst buffer of its own.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    for kind in ["meta", "data"] {
        let log = log_of(&bb, 1, kind);
        fs::rename(&log, other.join(log.file_name().unwrap())).unwrap();
    }
    let part = esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    assert_eq!(part.missing, [1]);
    let all = esker::recover(&path, &RecoverOptions::new().dir(&bb).dir(&other)).unwrap();
    assert!(all.is_complete() && all.removed);
    assert_eq!(names(&other), Vec::<PathBuf>::new());
    let ds = Dataset::open(&path).unwrap();
    let expected: Vec<f64> = (10..13).flat_map(|v| [f64::from(v); 2000]).collect();
    assert_eq!(ds.get::<f64>(VarId(0), &Selection::all()).unwrap(), expected);
}

#[test]
fn recovered_writes_keep_the_order_of_collective_calls() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bb) = (dir.path().join("run.nc"), dir.path().join("bb"));
    esker::launch(4, |comm| {
        let rank = comm.rank() as u64;
        let more = [("nc_burst_buf_shared_logs", if rank == 0 { "enable" } else { "disable" })];
        let (mut ds, f, _) = create(&path, 100, hints(&bb, &more), comm.clone());
        for turn in 0..30u64 {
            let values = vec![turn as f64; 60];
            let mut queue = Requests::new();
            let place = Selection::slab(&[turn], &[60]);
            if turn * 3 % 4 == rank {
                ds.iput(&mut queue, f, &place, &values).unwrap();
            }
            ds.wait_all(&mut queue).unwrap();
        }
        ds.get::<f64>(f, &Selection::slab(&[0], &[1])).unwrap();
        comm.barrier().unwrap();
    });
    esker::recover(&path, &RecoverOptions::new().dir(&bb)).unwrap();
    let ds = Dataset::open(&path).unwrap();
    let found: Vec<f64> = ds.get(VarId(0), &Selection::all()).unwrap();
    for (i, value) in found.iter().enumerate().take(89) {
        assert_eq!(*value, i.min(29) as f64, "element {i}");
    }
}

#[test]
fn a_file_without_logs_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let (ds, ..) = create(&path, 3, esker::Hints::default(), solo());
    ds.close().unwrap();
    let before = fs::read(&path).unwrap();
    let recovery = esker::recover(&path, &RecoverOptions::new().dir(dir.path())).unwrap();
    assert_eq!(recovery, esker::Recovery::default());
    assert_eq!(fs::read(&path).unwrap(), before);
}
