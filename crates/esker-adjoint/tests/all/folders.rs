//! The folder of a run: what others have put there is neither followed nor removed, one program has it at a time, and its
//! result outlives the program.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_adjoint::{
    Gravity, Options, Report, Stage, budget, check, is_checkpoints, recover, resume, run, survey,
};
use esker_comm::SelfComm;
use esker_store::{Access, Fault, FaultyStore, LocalStore, MemoryStore, Store};

use crate::wave::Wave;

const STEPS: u64 = 30;

fn new() -> Wave {
    Wave::new(64, STEPS, 0)
}

fn options(store: Arc<dyn Store>, folder: &Path) -> Options {
    let (measure, adjoint_every) = (false, Some(5));
    let folder = Some(folder.to_path_buf());
    Options { memory: 0, disk: 20_000, folder, store, measure, adjoint_every, ..Options::default() }
}

fn go(options: &Options) -> esker_adjoint::Result<(Wave, Report)> {
    let (mut model, comm) = (new(), SelfComm::new());
    let mut plan = budget(&mut model, STEPS, &comm, options)?;
    let report = run(&mut model, &mut plan, &comm, options)?;
    Ok((model, report))
}

fn go_on(options: &Options) -> esker_adjoint::Result<(Wave, Report)> {
    let mut model = new();
    let report = resume(&mut model, &SelfComm::new(), options)?;
    Ok((model, report))
}

/// A run on the real file system that was killed at this call.
fn killed(folder: &Path, at: u64) {
    let faulty = FaultyStore::new(LocalStore, at, Fault::Kill);
    assert!(go(&options(Arc::new(faulty), folder)).is_err());
}

fn names(folder: &Path) -> Vec<String> {
    LocalStore.names_in(folder).unwrap()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let all = names(folder).into_iter().filter(|name| name.ends_with(".seg"));
    all.map(|name| folder.join(name)).collect()
}

#[test]
fn a_run_that_is_done_gives_its_result_again_without_a_step() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let options = options(store.clone(), "run.chk".as_ref());
    let (done, _) = go(&options).unwrap();
    let (again, report) = go_on(&options).unwrap();
    assert_eq!(again.gradient(), done.gradient());
    assert_eq!((again.forward_steps, report.forward), (0, 0));
    assert_eq!(survey(&store, "run.chk".as_ref()).unwrap().stage(), Stage::Done);
    // And so does the next.
    assert_eq!(go_on(&options).unwrap().0.gradient(), done.gradient());
}

#[test]
fn links_inside_a_folder_lead_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("run.chk"), place.path().join("precious"));
    fs::write(&other, "precious").unwrap();
    let options = options(Arc::new(LocalStore), &folder);
    // A journal and a segment that lead elsewhere, beside a mark that never was.
    fs::create_dir(&folder).unwrap();
    symlink(&other, folder.join("journal.0")).unwrap();
    let error = go(&options).err().unwrap().to_string();
    assert!(error.contains("something else") && error.contains("journal.0"), "{error}");
    fs::remove_dir_all(&folder).unwrap();

    killed(&folder, 40);
    let journal = folder.join("journal.0");
    fs::rename(&journal, place.path().join("journal")).unwrap();
    symlink(place.path().join("journal"), &journal).unwrap();
    for error in [go(&options).err().unwrap(), go_on(&options).err().unwrap()] {
        assert!(error.to_string().contains("link"), "{error}");
    }
    fs::remove_file(&journal).unwrap();
    fs::rename(place.path().join("journal"), &journal).unwrap();

    // A segment that is a link to another file counts as damaged, and its target stays.
    let segment = segments(&folder).into_iter().nth(1).unwrap();
    fs::remove_file(&segment).unwrap();
    symlink(&other, &segment).unwrap();
    let (model, report) = go_on(&options).unwrap();
    assert_eq!(model.gradient(), new().plain_gradient().gradient());
    assert!(report.notes.iter().any(|note| note.contains("computed again")), "{report:?}");
    assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
    assert!(fs::symlink_metadata(&segment).is_err(), "the link itself is gone");
}

#[test]
fn what_others_put_into_a_folder_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run.chk");
    let options = options(Arc::new(LocalStore), &folder);
    go(&options).unwrap();
    let foreign = ["notes.seg", "journal.old", "00000001.x.seg", "README"];
    foreign.iter().for_each(|name| fs::write(folder.join(name), "mine").unwrap());
    go(&options).unwrap();
    foreign.iter().for_each(|name| {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "mine", "{name}");
    });
    let faults = check(&options.store, &folder, &mut |_, _| ()).unwrap();
    assert_eq!(faults.len(), foreign.len(), "{faults:?}");
    assert!(faults.iter().all(|fault| fault.gravity == Gravity::Leftover));
}

#[test]
fn two_programs_do_not_have_one_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run.chk");
    killed(&folder, 40);
    let options = options(Arc::new(LocalStore), &folder);
    let other = fs::File::open(folder.join("journal.0")).unwrap();
    other.lock().unwrap();
    let before = fs::read(folder.join("journal.0")).unwrap();
    let error = go_on(&options).err().unwrap().to_string();
    assert!(error.contains("another program has it open"), "{error}");
    let error = recover(&options.store, &folder, false, &mut |_, _| ()).unwrap_err().to_string();
    assert!(error.contains("another program has it open"), "{error}");
    assert_eq!(fs::read(folder.join("journal.0")).unwrap(), before);
    other.unlock().unwrap();
    assert_eq!(go_on(&options).unwrap().0.gradient(), new().plain_gradient().gradient());
}

#[test]
fn a_damaged_adjoint_is_computed_again_from_what_is_left() {
    let expected = new().plain_gradient().gradient();
    let mut seen = 0;
    for at in (60..140).step_by(4) {
        let (store, path) = (MemoryStore::default(), Path::new("run.chk"));
        let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
        let store: Arc<dyn Store> = Arc::new(store);
        if go(&options(Arc::new(faulty), path)).is_ok() {
            continue;
        }
        let found = survey(&store, path).unwrap();
        let Stage::Reverse(end) = found.stage() else { continue };
        for record in &found.ranks[&0].kept {
            let name = format!("{:08}.0.seg", record.number);
            if record.step == end && record.kind == esker_adjoint::Kind::Adjoint {
                let file = store.open(&path.join(name), Access::ReadWrite).unwrap();
                file.write_at(record.bytes - 9, b"damage").unwrap();
                seen += 1;
            }
        }
        let (model, _) = go_on(&options(store, path)).unwrap();
        assert_eq!(model.gradient(), expected, "killed at {at}");
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn recover_leaves_a_folder_that_is_whole() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run.chk");
    killed(&folder, 41);
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    assert!(is_checkpoints(&store, &folder).unwrap());
    assert!(!is_checkpoints(&store, place.path()).unwrap());
    fs::write(folder.join("00000099.0.seg"), "half").unwrap();
    let damaged = segments(&folder)[2].clone();
    let mut bytes = fs::read(&damaged).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let before = names(&folder);
    let found = recover(&store, &folder, true, &mut |_, _| ()).unwrap();
    assert_eq!(names(&folder), before, "a dry run changes nothing");
    let lost: Vec<_> = found.faults.iter().filter(|f| f.gravity == Gravity::Lost).collect();
    assert_eq!(lost.len(), 1, "{found:?}");
    assert!(lost[0].file == damaged && lost[0].sentence.contains("array 'now'"), "{lost:?}");
    let done = recover(&store, &folder, false, &mut |_, _| ()).unwrap();
    assert_eq!(done, found);
    assert!(!damaged.exists() && !folder.join("00000099.0.seg").exists());
    assert_eq!(check(&store, &folder, &mut |_, _| ()).unwrap(), []);
    let (model, _) = go_on(&options(store, &folder)).unwrap();
    assert_eq!(model.gradient(), new().plain_gradient().gradient());
}

#[test]
fn a_mark_of_absurd_size_or_number_of_ranks_is_an_error_at_once() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run.chk");
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let options = options(store.clone(), &folder);
    killed(&folder, 40);
    // A file with a hole of a tebibyte, where the file system has such.
    let file = fs::File::options().write(true).open(folder.join("esker.json")).unwrap();
    if file.set_len(1 << 40).is_ok() {
        let error = go_on(&options).err().unwrap().to_string();
        assert!(error.contains("1099511627776 bytes"), "{error}");
    }
    // Format 1 had no checksum: whatever it says must do no harm.
    let text = r#"{"esker": "adjoint checkpoints", "format": 1, "identity": "0000000000000001", "ranks": 4294967295,
        "steps": 30, "memory": 0, "disk": 20000, "filters": {}, "state": [], "fingerprint": "0000000000000000"}"#;
    fs::write(folder.join("esker.json"), text).unwrap();
    let faults = check(&store, &folder, &mut |_, _| ()).unwrap();
    assert!(faults[0].sentence.contains("another run"), "{faults:?}");
}
