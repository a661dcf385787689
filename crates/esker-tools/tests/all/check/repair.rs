//! What `esker check --repair` promises.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Dataset, HeaderState, OpenOptions, Selection, Values, VarId};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};
use esker_tools::Unseen;
use esker_tools::check::{Repair, RepairOptions, Report, Target, Verdict, repair};

use esker_testkit::{data, programs};

use super::files::{fixed, records};
use super::{NAME, check_in, codes, peer, put, redefinition, store_with};

const COPY: &str = "mended.nc";

fn options(store: &impl AsStore, target: Target) -> RepairOptions {
    RepairOptions { store: store.shared(), ..RepairOptions::new(target) }
}

trait AsStore {
    fn shared(&self) -> Arc<dyn Store>;
}
impl AsStore for MemoryStore {
    fn shared(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }
}
impl AsStore for FaultyStore<MemoryStore> {
    fn shared(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }
}

fn copy(store: &MemoryStore) -> Repair {
    repair(NAME, &options(store, Target::Copy(COPY.into())), &mut Unseen).unwrap()
}

fn in_place(store: &MemoryStore) -> Repair {
    repair(NAME, &options(store, Target::InPlace), &mut Unseen).unwrap()
}

fn bytes(store: &MemoryStore, name: &str) -> Vec<u8> {
    store.bytes(Path::new(name)).unwrap()
}

fn mended(repair: &Repair) -> Vec<&'static str> {
    repair.mended.iter().map(|m| m.code).collect()
}

/// What must hold of any repair: it does not panic, the original stays as it is under a copy,
/// nothing gets worse, and no byte of a value changes.
pub(crate) fn holds(store: &MemoryStore, before: &Report, original: &[u8]) {
    let copied = copy(store);
    assert_eq!(bytes(store, NAME), original);
    let errors = |r: &Report| r.findings.iter().filter(|f| f.severity == super::Error).count();
    if let Some(written) = &copied.written {
        assert_eq!(written, Path::new(COPY));
        assert!(errors(&copied.after) <= errors(before), "{copied:?}");
        same_values(&values(store, NAME), &values(store, COPY));
    } else {
        assert_eq!(copied.mended, []);
        assert_eq!(store.bytes(Path::new(COPY)), None);
    }
    let kept = values(store, NAME);
    let placed = in_place(store);
    assert!(errors(&placed.after) <= errors(before), "{placed:?}");
    same_values(&kept, &values(store, NAME));
    // Once is enough.
    assert_eq!(in_place(store).mended, []);
}

/// The values that can be read, record by record where there are records.
fn values(store: &MemoryStore, name: &str) -> Vec<Vec<Values>> {
    let Ok(ds) = Dataset::open_with(name, OpenOptions::new().store(store.shared())) else {
        return Vec::new();
    };
    let read = |var: VarId| -> Vec<Values> {
        let variable = ds.variable(var).unwrap();
        if !ds.schema().is_record(variable) {
            return ds.get_values(var, &Selection::all()).into_iter().collect();
        }
        let shape = ds.shape(var).unwrap();
        let one = |record: u64| {
            let (mut start, mut count) = (vec![0; shape.len()], shape.clone());
            (start[0], count[0]) = (record, 1);
            ds.get_values(var, &Selection::slab(&start, &count)).ok()
        };
        (0..ds.numrecs().min(50)).map_while(one).collect()
    };
    (0..ds.schema().vars.len()).map(|number| read(VarId(number))).collect()
}

/// Everything that could be read before can be read after (a record that was incomplete may
/// have gone). By bytes: values may be NaN.
fn same_values(before: &[Vec<Values>], after: &[Vec<Values>]) {
    for (before, after) in before.iter().zip(after) {
        for (a, b) in before.iter().zip(after) {
            assert_eq!(a.external_bytes(), b.external_bytes());
        }
    }
}

#[test]
fn a_sound_file_is_left_alone() {
    let store = store_with(&fixed().bytes(232));
    let repair = copy(&store);
    assert_eq!((repair.written, repair.mended, repair.left), (None, vec![], vec![]));
    assert_eq!(store.list(), [PathBuf::from(NAME)]);
}

#[test]
fn padding_and_sizes_are_mended_on_a_copy() {
    let mut file = fixed();
    file.vars[1].vsize = 7;
    let mut damaged = file.bytes(232);
    damaged[21..24].copy_from_slice(b"!?!");
    let store = store_with(&damaged);
    let repair = copy(&store);
    assert_eq!(mended(&repair), ["padding", "vsize"]);
    assert_eq!(repair.mended[0].offset, Some(21));
    assert_eq!(repair.left, []);
    assert_eq!(repair.after.verdict(), Verdict::Valid);
    assert_eq!(bytes(&store, COPY), fixed().bytes(232));
    assert_eq!(bytes(&store, NAME), damaged);
    assert_eq!(store.list().len(), 2);
}

#[test]
fn a_copy_does_not_replace_a_file() {
    let mut damaged = fixed().bytes(232);
    damaged[21] = 1;
    let store = store_with(&damaged);
    put(&store, Path::new(COPY), b"precious");
    let refused = repair(NAME, &options(&store, Target::Copy(COPY.into())), &mut Unseen);
    assert!(refused.is_err());
    assert_eq!(bytes(&store, COPY), b"precious");
}

#[test]
fn records_that_are_not_there_are_not_counted() {
    // Record 1 is cut; the copy has the whole record, the original keeps every byte.
    let cut = records().bytes(213);
    let store = store_with(&cut);
    let repair = copy(&store);
    assert_eq!(mended(&repair), ["records-cut", "records-cut"]);
    assert_eq!(repair.after.verdict(), Verdict::Valid, "{repair:?}");
    let mut one = records();
    one.numrecs = 1;
    assert_eq!(bytes(&store, COPY), one.bytes(208));
    // In place no byte of data goes unless the caller says so.
    let repair = in_place(&store);
    assert_eq!(bytes(&store, NAME), one.bytes(213));
    assert_eq!(repair.left[0].finding.code, "trailing");
    let cut = RepairOptions { cut_trailing: true, ..options(&store, Target::InPlace) };
    let repair = esker_tools::check::repair(NAME, &cut, &mut Unseen).unwrap();
    assert_eq!(mended(&repair), ["trailing"]);
    assert_eq!(bytes(&store, NAME), one.bytes(208));
}

#[test]
fn a_stream_gets_its_count() {
    let mut stream = records();
    stream.numrecs = u32::MAX;
    let store = store_with(&stream.bytes(216));
    let repair = in_place(&store);
    assert_eq!(mended(&repair), ["streaming"]);
    assert_eq!(bytes(&store, NAME), records().bytes(216));
    // With a part of a record at its end a stream is valid, and a count would not be.
    let store = store_with(&stream.bytes(219));
    assert_eq!(mended(&in_place(&store)), [] as [&str; 0]);
    copy(&store);
    assert_eq!(bytes(&store, COPY), records().bytes(216));
}

#[test]
fn padding_cut_off_at_the_end_comes_back_and_values_do_not() {
    let store = store_with(&records().bytes(215));
    let repair = in_place(&store);
    assert_eq!(mended(&repair), ["padding-cut"]);
    assert_eq!(bytes(&store, NAME).len(), 216);
    assert_eq!(repair.left, []);
    let store = store_with(&fixed().bytes(230));
    let repair = in_place(&store);
    assert_eq!((mended(&repair), bytes(&store, NAME).len()), (vec![], 230));
    assert_eq!(repair.left[0].finding.code, "data-cut");
    assert_eq!(repair.left[0].why, "the values that are missing are nowhere else");
}

#[test]
fn records_that_were_never_counted_are_taken_only_when_asked_for() {
    let store = store_with(&records().bytes(227));
    assert_eq!(in_place(&store).mended, []);
    let adopt = RepairOptions { adopt_records: true, ..options(&store, Target::InPlace) };
    let done = repair(NAME, &adopt, &mut Unseen).unwrap();
    let mut three = records();
    three.numrecs = 3;
    assert_eq!(bytes(&store, NAME), three.bytes(227));
    assert_eq!(done.left.len(), 1);
    let both = RepairOptions { cut_trailing: true, ..adopt };
    repair(NAME, &both, &mut Unseen).unwrap();
    assert_eq!(bytes(&store, NAME), three.bytes(224));
}

#[test]
fn an_interrupted_redefinition_is_finished() {
    let (file, journal) = redefinition();
    let mut new = file.clone();
    new[..journal.new.len()].copy_from_slice(&journal.new);
    let mut torn = new.clone();
    torn[..80].copy_from_slice(&file[..80]);
    let beside = esker::journal_path(Path::new(NAME));
    for (found, state) in
        [(&file, HeaderState::Old), (&torn, HeaderState::Torn), (&new, HeaderState::New)]
    {
        let store = store_with(found);
        put(&store, &beside, &journal.encode());
        let draft = esker_store::draft_path(Path::new(NAME), esker_store::DraftForm::New, 7);
        put(&store, &draft, b"left");
        let copied = copy(&store);
        if state != HeaderState::New {
            assert_eq!(bytes(&store, COPY), new);
            assert_eq!(copied.after.verdict(), Verdict::Valid);
        }
        assert!(store.exists(&beside).unwrap());
        let repair = in_place(&store);
        assert_eq!(repair.mended.len(), 2, "{repair:?}");
        assert_eq!(repair.left, []);
        assert_eq!(bytes(&store, NAME), new);
        assert!(!store.exists(&beside).unwrap());
        assert!(!store.exists(&draft).unwrap());
    }
    // A journal of another file is not touched.
    let mut foreign = file.clone();
    foreign[20..24].copy_from_slice(b"y\0\0\0");
    let store = store_with(&foreign);
    put(&store, &beside, &journal.encode());
    let repair = in_place(&store);
    assert_eq!((mended(&repair), repair.left[0].finding.code), (vec![], "journal-foreign"));
    assert!(store.exists(&beside).unwrap());
}

#[test]
fn a_kill_at_any_moment_of_a_repair_in_place_loses_nothing() {
    let mut file = records();
    file.vars[0].vsize = 99;
    file.numrecs = 700;
    let mut damaged = file.bytes(215);
    damaged[21..24].copy_from_slice(b"!?!");
    let mut wanted = records().bytes(215);
    wanted.push(0);
    for fault in [Fault::Kill, Fault::Tear, Fault::Fail(std::io::ErrorKind::StorageFull)] {
        let mut interrupted = 0;
        for at in 0.. {
            let store = store_with(&damaged);
            store.open(Path::new(NAME), esker_store::Access::Read).unwrap().sync().unwrap();
            let faulty = FaultyStore::new(store.clone(), at, fault);
            let died = repair(NAME, &options(&faulty, Target::InPlace), &mut Unseen).is_err();
            interrupted += usize::from(died);
            // What is there reads as it did, or as it should.
            let found = values(&store, NAME);
            same_values(&values(&store_with(&wanted), NAME), &found);
            in_place(&store);
            assert_eq!(bytes(&store, NAME), wanted, "{fault:?} at call {at}");
            assert_eq!(store.list(), [PathBuf::from(NAME)]);
            if !died {
                break;
            }
        }
        assert!(interrupted > 5, "{interrupted}");
    }
}

#[test]
fn a_copy_that_fails_leaves_no_file() {
    let mut damaged = fixed().bytes(232);
    damaged[21] = 1;
    for at in 0..4 {
        let store = store_with(&damaged);
        let full =
            FaultyStore::new(store.clone(), at, Fault::Fail(std::io::ErrorKind::StorageFull));
        let target = Target::Copy(COPY.into());
        assert!(repair(NAME, &options(&full, target), &mut Unseen).is_err());
        assert_eq!(store.bytes(Path::new(COPY)), None);
        assert_eq!(bytes(&store, NAME), damaged);
    }
}

#[test]
fn files_whose_padding_ncvalidator_mends_come_out_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("theirs.nc"), dir.path().join("ours.nc"));
    for path in data::files("malformed_classic").into_iter().chain(data::files("netcdf_classic")) {
        let store = store_with(&std::fs::read(&path).unwrap());
        if !codes(&check_in(&store)).contains(&(super::Error, "padding")) {
            continue;
        }
        std::fs::write(&theirs, std::fs::read(&path).unwrap()).unwrap();
        if programs::run("ncvalidator", &["-x", "-q"], &theirs).is_none() {
            return;
        }
        let repaired = repair(&path, &RepairOptions::new(Target::Copy(ours.clone())), &mut Unseen);
        let repaired = repaired.unwrap();
        assert_eq!(mended(&repaired)[0], "padding");
        // It also lengthens a file that was cut before its data; we do not.
        let same = std::fs::read(&theirs).unwrap().starts_with(&std::fs::read(&ours).unwrap());
        assert!(same, "{}", path.display());
        assert_eq!(peer::ask(&ours), peer::Peer::Accepts, "{}", path.display());
        std::fs::remove_file(&ours).unwrap();
    }
}
