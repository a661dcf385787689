//! Containers of logs: what was promised is there, whatever happens to a writer or to the disk.
//!
//! A session (define, puts, sync, puts, close) is run with a fault at every call that changes
//! something; bytes are changed anywhere in the files; versions are read while others write.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use esker::{
    Communicator, ContainerRecoverOptions, ContainerRecovery, CreateOptions, Dataset, DimLen,
    Error, ExternalType, Hints, Layout, OpenOptions, Selection, SelfComm, VarId,
};
use esker_comm::ThreadWorld;
use esker_store::{CreateMode, Fault, FaultyStore, MemoryStore, Store};
use esker_testkit::memory;
use esker_testkit::ranks::on_ranks;

/// What looking at a container of a few kilobytes may take, whatever is in it.
const MOST: usize = 16 << 20;

const PATH: &str = "/run/kill.esk";
const X: u64 = 6;
const FILL_INT: i32 = -2_147_483_647;
const FILL_FLOAT: f32 = 9.969_21e36;

type Done = Result<(), Error>;

/// Everything a reader sees: the fixed variable and the record variable.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    fixed: Vec<i32>,
    records: Vec<f32>,
}

impl Seen {
    fn nothing(ranks: u64) -> Seen {
        Seen { fixed: vec![FILL_INT; (X * ranks) as usize], records: Vec::new() }
    }

    /// After the first sync: everything of `fixed`, two records.
    fn first(ranks: u64) -> Seen {
        let elements = X * ranks;
        let fixed = (0..elements as i32).collect();
        Seen { fixed, records: (0..2 * elements).map(|i| i as f32).collect() }
    }

    /// In the end: the first elements of each rank's `fixed` are others, there is a third record,
    /// and in the second a stretch is newer.
    fn second(ranks: u64) -> Seen {
        let mut seen = Seen::first(ranks);
        let elements = (X * ranks) as usize;
        seen.records.extend((0..elements).map(|i| 1000.0 + i as f32));
        for rank in 0..ranks as usize {
            let at = rank * X as usize;
            seen.fixed[at..at + 2].copy_from_slice(&[-1, -2]);
            seen.records[elements + at..elements + at + 3].copy_from_slice(&[7.0, 8.0, 9.0]);
        }
        seen
    }

    /// Whether each value is this one's or the other's, or a fill value of a record that neither
    /// of them has whole.
    fn is_between(&self, old: &Seen, new: &Seen) -> bool {
        let at = |seen: &Seen, i: usize| seen.records.get(i).copied();
        let fixed = self.fixed.iter().enumerate();
        let records = self.records.iter().enumerate();
        fixed.clone().all(|(i, v)| *v == old.fixed[i] || *v == new.fixed[i])
            && records.clone().all(|(i, v)| {
                let known = at(old, i).is_some();
                Some(*v) == at(old, i) || Some(*v) == at(new, i) || (!known && *v == FILL_FLOAT)
            })
            && self.records.len() >= old.records.len()
    }
}

fn see_version(store: &MemoryStore, version: Option<u64>) -> Result<Seen, Error> {
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let options = version.map_or(options.clone(), |v| options.container_version(v));
    let ds = Dataset::open_with(PATH, options)?;
    Ok(Seen {
        fixed: ds.get(VarId(0), &Selection::all())?,
        records: ds.get(VarId(1), &Selection::all())?,
    })
}

fn see(store: &MemoryStore) -> Result<Seen, Error> {
    see_version(store, None)
}

fn again<T>(mut call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    call().or_else(|_| call())
}

/// What the program got done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Nothing,
    Defined,
    Synced,
    Ended,
}

/// Define, puts, sync, puts, and then sync and close, or close alone. Calls that fail are made once more.
fn session(
    store: Arc<dyn Store>,
    comm: Arc<dyn Communicator>,
    hints: Hints,
    sync_last: bool,
    reached: &mut Step,
) -> Done {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let options = || {
        CreateOptions::new()
            .layout(Layout::Log)
            .store(store.clone())
            .comm(comm.clone())
            .hints(hints.clone())
    };
    let options = || options().layout(Layout::Log);
    let mut def = again(|| Dataset::create(PATH, options()))?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(X * ranks))?;
    let fixed = def.add_var("fixed", ExternalType::Int, &[x])?;
    let record = def.add_var("record", ExternalType::Float, &[t, x])?;
    let mut ds = match def.enddef() {
        Ok(ds) => ds,
        Err(failed) => failed.define.enddef()?,
    };
    *reached = Step::Defined;
    let (first, second) = (Seen::first(ranks), Seen::second(ranks));
    let elements = (X * ranks) as usize;
    let mine = (me * X) as usize..((me + 1) * X) as usize;
    let slab = |first: u64, count: u64| Selection::slab(&[first, me * X], &[count, X]);
    again(|| ds.put_all(fixed, &Selection::slab(&[me * X], &[X]), &first.fixed[mine.clone()]))?;
    let two: Vec<f32> = [0, elements]
        .iter()
        .flat_map(|at| first.records[at + mine.start..at + mine.end].to_vec())
        .collect();
    again(|| ds.put_all(record, &slab(0, 2), &two))?;
    again(|| ds.sync())?;
    *reached = Step::Synced;
    again(|| ds.put_all(fixed, &Selection::slab(&[me * X], &[2]), &[-1, -2]))?;
    let third = &second.records[2 * elements + mine.start..2 * elements + mine.end];
    again(|| ds.put_all(record, &slab(2, 1), third))?;
    let newer = Selection::slab(&[1, me * X], &[1, 3]);
    again(|| ds.put_all(record, &newer, &[7.0f32, 8.0, 9.0]))?;
    if sync_last {
        again(|| ds.sync())?;
        *reached = Step::Ended;
    }
    ds.close()?;
    *reached = Step::Ended;
    Ok(())
}

fn recover(store: &MemoryStore) -> ContainerRecovery {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    esker::recover_container(
        &store,
        Path::new(PATH),
        ContainerRecoverOptions::default(),
        &mut |_, _| {},
    )
    .unwrap()
}

/// What must be true of a container after something happened to its writer.
fn check_after(store: &MemoryStore, reached: Step, ranks: u64, what: &str) {
    let (nothing, first, second) = (Seen::nothing(ranks), Seen::first(ranks), Seen::second(ranks));
    let found = see(store);
    match (reached, &found) {
        // The definition was not finished, so that there may be no container, or an empty one.
        (Step::Nothing, Err(_)) => return a_container_can_be_made(store, what),
        (Step::Nothing, Ok(seen)) => assert_eq!(*seen, nothing, "{what}"),
        (Step::Defined, Ok(seen)) => {
            assert!(*seen == nothing || *seen == first, "{what}: {seen:?}")
        }
        (Step::Synced, Ok(seen)) => assert!(*seen == first || *seen == second, "{what}: {seen:?}"),
        (Step::Ended, Ok(seen)) => assert_eq!(*seen, second, "{what}"),
        (_, Err(error)) => panic!("{what}: {error}"),
    }
    let found = found.unwrap();
    let recovery = recover(store);
    assert!(recovery.faults.iter().all(|fault| !fault.committed), "{what}: {recovery:?}");
    let recovered = see(store).unwrap();
    let (from, to) = if found == nothing { (&nothing, &first) } else { (&first, &second) };
    assert!(recovered.is_between(from, to), "{what}: {recovered:?}");
    if found == second || found == *to {
        assert_eq!(recovered, found, "{what}");
    }
    let again = recover(store);
    assert_eq!(again.made, None, "{what}: recovery is idempotent: {again:?}");
    assert!(again.recovered.is_empty(), "{what}: {again:?}");
    assert_eq!(see(store).unwrap(), recovered, "{what}");
    a_writer_goes_on(store, ranks, &recovered, what);
}

fn a_container_can_be_made(store: &MemoryStore, what: &str) {
    let mut reached = Step::Nothing;
    let comm: Arc<dyn Communicator> = Arc::new(SelfComm::new());
    let store_again: Arc<dyn Store> = Arc::new(store.clone());
    session(store_again, comm, Hints::default(), true, &mut reached).unwrap();
    assert_eq!(see(store).unwrap(), Seen::second(1), "{what}");
}

fn a_writer_goes_on(store: &MemoryStore, ranks: u64, before: &Seen, what: &str) {
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let mut ds = Dataset::open_with(PATH, options).unwrap();
    ds.put(VarId(0), &Selection::element(&[1]), &[77i32]).unwrap();
    let record = vec![5.0f32; (X * ranks) as usize];
    ds.append(VarId(1), &record).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    let mut expected = before.clone();
    expected.fixed[1] = 77;
    expected.records.extend(record);
    assert_eq!(see(store).unwrap(), expected, "{what}");
    store.lose_power();
    assert_eq!(see(store).unwrap(), expected, "{what}: synced, then without power");
}

const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

fn alone(store: Arc<dyn Store>, sync_last: bool) -> (Done, Step) {
    let mut reached = Step::Nothing;
    let comm: Arc<dyn Communicator> = Arc::new(SelfComm::new());
    let done = session(store, comm, Hints::default(), sync_last, &mut reached);
    (done, reached)
}

fn calls(sync_last: bool) -> u64 {
    let counting = FaultyStore::new(MemoryStore::default(), u64::MAX, Fault::Kill);
    alone(Arc::new(counting.clone()), sync_last).0.unwrap();
    counting.calls()
}

#[test]
fn a_writer_that_dies_at_any_call_leaves_what_it_promised() {
    for sync_last in [false, true] {
        for at in 0..calls(sync_last) {
            for fault in [Fault::Kill, Fault::Tear] {
                let store = MemoryStore::default();
                let faulty = FaultyStore::new(store.clone(), at, fault);
                let (done, reached) = alone(Arc::new(faulty), sync_last);
                let what = format!("{fault:?} at call {at}, {done:?}");
                check_after(&store, reached, 1, &what);
            }
        }
    }
}

#[test]
fn a_call_that_fails_can_be_made_again() {
    for fault in [Fault::Fail(FULL), Fault::FailHalf(FULL)] {
        for at in 0..calls(true) {
            let store = MemoryStore::default();
            let faulty = FaultyStore::new(store.clone(), at, fault);
            let (done, reached) = alone(Arc::new(faulty), true);
            let what = format!("{fault:?} at call {at}, {done:?}");
            assert!(done.is_ok(), "{what}");
            check_after(&store, reached, 1, &what);
        }
    }
}

#[test]
fn a_loss_of_power_leaves_what_was_synced() {
    for sync_last in [false, true] {
        for at in 0..calls(sync_last) {
            let store = MemoryStore::default();
            let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
            let (done, reached) = alone(Arc::new(faulty), sync_last);
            let what = format!("no power after call {at}, {done:?}");
            store.lose_power();
            // A close does not wait for the disk.
            let reached = match reached {
                Step::Ended if sync_last => Step::Ended,
                Step::Ended => Step::Synced,
                Step::Defined => Step::Nothing,
                other => other,
            };
            match (reached, see(&store)) {
                (Step::Nothing, _) => {}
                (Step::Synced, seen) => {
                    let seen = seen.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(seen == Seen::first(1) || seen == Seen::second(1), "{what}: {seen:?}");
                }
                (_, seen) => assert_eq!(seen.unwrap(), Seen::second(1), "{what}"),
            }
            // Of what was not synced some had reached the disk: manifests, or logs.
            for lucky in ["refs", "segments"] {
                let store = MemoryStore::default();
                let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
                let (_, early) = alone(Arc::new(faulty), sync_last);
                for name in store.list() {
                    store.sync_names(&name).unwrap();
                }
                store.lose_power_but(|path| path.to_string_lossy().contains(lucky));
                if early >= Step::Synced {
                    // The newest version may promise what is gone, and says so; what was synced is
                    // in the versions before it, and a recovery finds it.
                    recover(&store);
                    let seen = see(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(seen.is_between(&Seen::first(1), &Seen::second(1)), "{what}: {seen:?}");
                    a_writer_goes_on(&store, 1, &seen, &what);
                }
            }
        }
    }
}

#[test]
fn what_an_earlier_session_closed_is_safe_after_a_later_sync() {
    let store = MemoryStore::default();
    alone(Arc::new(store.clone()), false).0.unwrap();
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let mut ds = Dataset::open_with(PATH, options).unwrap();
    ds.put(VarId(0), &Selection::element(&[0]), &[5i32]).unwrap();
    ds.sync().unwrap();
    store.lose_power();
    let mut expected = Seen::second(1);
    expected.fixed[0] = 5;
    assert_eq!(see(&store).unwrap(), expected);
}

#[test]
fn ranks_that_die_together_leave_what_they_promised() {
    for log_files in ["process", "node"] {
        for fault in [Fault::Kill, Fault::Tear] {
            for at in 0.. {
                let store = MemoryStore::default();
                let faulty = FaultyStore::new(store.clone(), at, fault);
                let each = Arc::new(Mutex::new(Vec::new()));
                let (shared, all) = (faulty.clone(), each.clone());
                let done = on_ranks(3, move |comm| {
                    let mut hints = Hints::default();
                    hints.set("esker_log_files", log_files);
                    let mut reached = Step::Nothing;
                    let done = session(Arc::new(shared.clone()), comm, hints, true, &mut reached);
                    all.lock().unwrap().push(reached);
                    done.map_err(|error| error.to_string())
                });
                let reached = each.lock().unwrap().iter().copied().max().unwrap();
                let what = format!("{log_files}, {fault:?} at call {at}, {done:?}");
                check_after(&store, reached, 3, &what);
                if faulty.calls() <= at {
                    break;
                }
            }
        }
    }
}

/// A container with two sessions, the second over the first, and its files.
fn sample() -> (MemoryStore, Vec<(PathBuf, Vec<u8>)>) {
    let store = MemoryStore::default();
    let shared = store.clone();
    on_ranks(2, move |comm| {
        let mut reached = Step::Nothing;
        let store: Arc<dyn Store> = Arc::new(shared.clone());
        session(store, comm, Hints::default(), true, &mut reached).unwrap();
    });
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let mut ds = Dataset::open_with(PATH, options).unwrap();
    ds.put(VarId(0), &Selection::strided(&[0], &[4], &[3]), &[40i32, 41, 42, 43]).unwrap();
    ds.close().unwrap();
    let files = store.list().into_iter().map(|path| {
        let bytes = store.bytes(&path).unwrap();
        (path, bytes)
    });
    let files = files.collect();
    (store, files)
}

fn with_files(files: &[(PathBuf, Vec<u8>)]) -> MemoryStore {
    let store = MemoryStore::default();
    for folder in ["", "refs", "refs/main", "runs", "segments"] {
        store.create_dir(&Path::new(PATH).join(folder)).unwrap();
    }
    for (path, bytes) in files {
        store.create(path, CreateMode::New).unwrap().write_at(0, bytes).unwrap();
    }
    store
}

/// Whether an error says where the damage is.
fn names_its_place(error: &str) -> bool {
    error.contains(PATH)
        && (error.contains("log of rank")
            || error.contains("manifest")
            || error.contains("esker.json")
            || error.contains(".meta")
            || error.contains(".data")
            || error.contains("no version")
            || error.contains("was committed, and is not there"))
}

/// Everything that is asked of a container with a damage.
fn check_damaged(store: &MemoryStore, expected: &Seen, older: &[Seen], what: &str) -> bool {
    let found = see(store);
    let newest_is_whole = match &found {
        Ok(seen) => *seen == *expected,
        Err(_) => false,
    };
    match &found {
        // A damaged manifest makes an older version the newest.
        Ok(seen) => assert!(seen == expected || older.contains(seen), "{what}: {seen:?}"),
        Err(error) => assert!(names_its_place(&error.to_string()), "{what}: {error}"),
    }
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let path = Path::new(PATH);
    match esker::examine(&shared, path, None, &mut |_, _| {}) {
        Ok(examined) if found.is_err() => assert!(!examined.faults.is_empty(), "{what}"),
        Ok(_) => {}
        Err(error) => assert!(names_its_place(&error.to_string()), "{what}: {error}"),
    }
    let Ok(recovery) =
        esker::recover_container(&shared, path, ContainerRecoverOptions::default(), &mut |_, _| {})
    else {
        return newest_is_whole;
    };
    let seen = see(store).unwrap_or_else(|error| panic!("{what}: after recovery: {error}"));
    // What is there is what somebody wrote there, or nothing.
    for (i, value) in seen.fixed.iter().enumerate() {
        let known = older.iter().any(|seen| seen.fixed.get(i) == Some(value));
        assert!(*value == expected.fixed[i] || known || *value == FILL_INT, "{what}: {seen:?}");
    }
    for (i, value) in seen.records.iter().enumerate() {
        let known = older.iter().any(|seen| seen.records.get(i) == Some(value));
        let is_expected = expected.records.get(i) == Some(value);
        assert!(is_expected || known || *value == FILL_FLOAT, "{what}: {seen:?}");
    }
    let again = recover(store);
    assert_eq!(again.made, None, "{what}: {recovery:?}, then {again:?}");
    assert!(again.faults.iter().all(|fault| !fault.committed), "{what}: {again:?}");
    newest_is_whole
}

#[test]
fn changed_bytes_are_found_wherever_they_are() {
    let (store, files) = sample();
    let versions: Vec<u64> =
        esker::container_facts(&store, Path::new(PATH), None).unwrap().unwrap().versions;
    let older: Vec<Seen> =
        versions.iter().map(|version| see_version(&store, Some(*version)).unwrap()).collect();
    let expected = older[0].clone();
    let mut random = 1u64;
    let mut dice = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) as usize % below.max(1)
    };
    let (mut mutations, mut unseen) = (0, 0);
    for turn in 0.. {
        if mutations >= 3000 {
            break;
        }
        for number in 0..files.len() {
            let mut changed = files.clone();
            let (_, bytes) = &mut changed[number];
            let len = bytes.len();
            let at = dice(len);
            let kind = dice(6);
            match kind {
                0 | 1 if len > 0 => bytes[at] ^= 1 << dice(8),
                2 if len > 0 => bytes[at] = dice(256) as u8,
                3 => bytes.truncate(at),
                4 if len > 0 => {
                    let end = (at + 1 + dice(40)).min(len);
                    bytes[at..end].fill(if dice(2) == 0 { 0 } else { 255 });
                }
                _ if len > 0 => {
                    let copy = bytes[dice(len)..].to_vec();
                    let n = copy.len().min(len - at);
                    bytes[at..at + n].copy_from_slice(&copy[..n]);
                }
                _ => {}
            }
            if changed[number].1 == files[number].1 {
                continue;
            }
            mutations += 1;
            let what =
                format!("turn {turn}, kind {kind} at byte {at} of {}", path_of(&changed[number].0));
            let store = with_files(&changed);
            let (whole, used) = memory::peak(|| check_damaged(&store, &expected, &older, &what));
            assert!(used < MOST, "{what}: {used} bytes");
            unseen += usize::from(whole);
        }
    }
    // Old manifests, and what the text of the mark says behind its first words.
    println!("{mutations} mutations, {unseen} of which the newest version did not notice");
    assert!(unseen < mutations / 2);
}

fn path_of(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_manifest_that_lies_does_no_harm() {
    let (_, files) = sample();
    let newest = files.iter().rposition(|(path, _)| path.to_string_lossy().contains("refs"));
    let newest = newest.unwrap();
    let len = files[newest].1.len() - 4;
    for at in 0..len {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut changed = files.clone();
            let bytes = &mut changed[newest].1;
            bytes[at] = byte;
            let sum = crc32c::crc32c(&bytes[..len]).to_le_bytes();
            bytes[len..].copy_from_slice(&sum);
            let store = with_files(&changed);
            let shared: Arc<dyn Store> = Arc::new(store.clone());
            let look = || {
                if let Ok(ds) = Dataset::open_with(PATH, OpenOptions::new().store(shared.clone())) {
                    let small = |var| {
                        let shape = ds.shape(VarId(var)).unwrap_or_default();
                        shape.iter().try_fold(1u64, |n, len| n.checked_mul(*len)) < Some(1 << 16)
                    };
                    for var in (0..ds.schema().vars.len()).filter(|var| small(*var)) {
                        let _ = ds.get_values(VarId(var), &Selection::all());
                    }
                }
                let path = Path::new(PATH);
                let _ = esker::examine(&shared, path, None, &mut |_, _| {});
                let _ = esker::recover_container(
                    &shared,
                    path,
                    ContainerRecoverOptions::default(),
                    &mut |_, _| {},
                );
            };
            let ((), used) = memory::peak(look);
            assert!(used < MOST, "byte {byte} at {at}: {used} bytes");
        }
    }
}

#[test]
fn a_file_that_is_gone_is_found() {
    let (store, files) = sample();
    let versions = esker::container_facts(&store, Path::new(PATH), None).unwrap().unwrap().versions;
    let older: Vec<Seen> =
        versions.iter().map(|version| see_version(&store, Some(*version)).unwrap()).collect();
    for number in 0..files.len() {
        let mut fewer = files.clone();
        let (path, _) = fewer.remove(number);
        if path.ends_with("esker.json") {
            // Then it is a directory like any other.
            assert!(see(&with_files(&fewer)).is_err());
            continue;
        }
        let what = format!("without {}", path.display());
        check_damaged(&with_files(&fewer), &older[0], &older, &what);
    }
}

#[test]
fn a_damage_in_the_middle_costs_one_write_and_is_told_with_its_place() {
    let (store, _) = sample();
    let data = |rank: u32| {
        let name = format!(".{rank}.data");
        let all = store.list().into_iter();
        let mut logs = all.filter(|p| p.to_string_lossy().ends_with(&name));
        logs.find(|p| store.bytes(p).unwrap().len() > 80).unwrap()
    };
    // Rank 1's first write is of `fixed`: 6 ints, then 12 floats of two records.
    let path = data(1);
    let file = store.open(&path, esker_store::Access::ReadWrite).unwrap();
    file.write_at(30, &[0xff]).unwrap();
    let error = see(&store).unwrap_err().to_string();
    for word in ["record", "rank 1", "byte 24"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    let recovery = recover(&store);
    assert_eq!(recovery.faults.len(), 1, "{recovery:?}");
    let fault = &recovery.faults[0];
    assert_eq!((fault.rank, fault.offset, fault.bytes), (1, 24, 48));
    assert_eq!((fault.variable.as_deref(), fault.records), (Some("record"), Some((0, 1))));
    let seen = see(&store).unwrap();
    // Rank 0's are there, rank 1's second record has the later write only.
    assert_eq!(seen.records[..6], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(seen.records[6..12], [FILL_FLOAT; 6]);
    assert_eq!(seen.records[18..24], [7.0, 8.0, 9.0, FILL_FLOAT, FILL_FLOAT, FILL_FLOAT]);
    assert_eq!(seen.records[30..36], Seen::second(2).records[30..36]);
}

#[test]
fn old_versions_stay_readable_while_a_writer_goes_on() {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let options = CreateOptions::new().layout(Layout::Log).store(shared.clone());
    let mut def = Dataset::create(PATH, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    let fixed = def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let mut kept = Vec::new();
    for step in 0..20i32 {
        ds.put(fixed, &Selection::element(&[step as u64 % X]), &[step]).unwrap();
        ds.append(VarId(1), &vec![step as f32; X as usize]).unwrap();
        ds.sync().unwrap();
        let seen = see(&store).unwrap();
        assert_eq!(seen.records.len(), (step as usize + 1) * X as usize);
        kept.push((ds.container_version().unwrap(), seen));
        // A write that is not committed is nobody else's.
        ds.put(fixed, &Selection::element(&[0]), &[-step]).unwrap();
        assert_eq!(see(&store).unwrap(), kept.last().unwrap().1);
        for (version, seen) in &kept {
            assert_eq!(see_version(&store, Some(*version)).unwrap(), *seen);
        }
    }
    // A reader that was open before sees what it saw.
    let old = OpenOptions::new().store(shared).container_version(kept[3].0);
    let old = Dataset::open_with(PATH, old).unwrap();
    ds.put(fixed, &Selection::all(), &[9i32; X as usize]).unwrap();
    ds.close().unwrap();
    assert_eq!(old.get::<i32>(fixed, &Selection::all()).unwrap(), kept[3].1.fixed);
}

#[test]
fn of_two_writers_of_one_element_one_gets_an_error_that_says_why() {
    let store = MemoryStore::default();
    alone(Arc::new(store.clone()), true).0.unwrap();
    let open = || {
        let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
        Dataset::open_with(PATH, options).unwrap()
    };
    let (mut first, mut second) = (open(), open());
    first.put(VarId(0), &Selection::strided(&[0], &[2], &[2]), &[1i32, 5]).unwrap();
    second.put(VarId(0), &Selection::slab(&[0], &[2]), &[3i32, 2]).unwrap();
    second.sync().unwrap();
    let error = first.sync().unwrap_err().to_string();
    assert!(error.contains("another writer") && error.contains("\"fixed\" at [0]"), "{error}");
    let error = first.close().unwrap_err().to_string();
    assert!(error.contains("another writer"), "{error}");
    let seen = see(&store).unwrap();
    assert_eq!(seen.fixed[..2], [3, 2], "the second writer's version is what there is");
    // What the first one wrote was passed over, and is only taken in when it is asked for.
    let recovery = recover(&store);
    assert_eq!((recovery.made, recovery.superseded.len()), (None, 1), "{recovery:?}");
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let options =
        ContainerRecoverOptions { superseded: true, ..ContainerRecoverOptions::default() };
    let path = Path::new(PATH);
    let dry = ContainerRecoverOptions { dry_run: true, ..options };
    let would = esker::recover_container(&shared, path, dry, &mut |_, _| {}).unwrap();
    assert_eq!(see(&store).unwrap(), seen, "a dry run changes nothing");
    let did = esker::recover_container(&shared, path, options, &mut |_, _| {}).unwrap();
    assert_eq!(would, did);
    assert_eq!(see(&store).unwrap().fixed[..3], [3, 2, 5], "below what was committed since");
}

#[test]
fn ranks_of_a_node_that_were_never_committed_are_recovered() {
    let store = MemoryStore::default();
    let shared = store.clone();
    ThreadWorld::new(4)
        .ranks_per_node(2)
        .launch(move |comm| {
            let me = comm.rank() as u64;
            let mut hints = Hints::default();
            hints.set("esker_log_files", "node");
            let options = CreateOptions::new()
                .store(Arc::new(shared.clone()))
                .comm(comm)
                .hints(hints)
                .layout(Layout::Log);
            let mut def = Dataset::create(PATH, options).unwrap();
            let t = def.add_dim("t", DimLen::Unlimited).unwrap();
            let x = def.add_dim("x", DimLen::Fixed(4 * X)).unwrap();
            let fixed = def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
            def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
            let mut ds = def.enddef().unwrap();
            let mine = Selection::slab(&[me * X], &[X]);
            ds.put_all(fixed, &mine, &[me as i32; X as usize]).unwrap();
            // A read writes out what was appended; then the ranks vanish.
            let _ = ds.get_all::<i32>(fixed, &mine).unwrap();
        })
        .unwrap();
    assert_eq!(see(&store).unwrap(), Seen::nothing(4));
    let recovery = recover(&store);
    let ranks: Vec<u32> = recovery.recovered.iter().map(|log| log.rank).collect();
    assert_eq!(ranks, [0, 1, 2, 3], "{recovery:?}");
    let fixed = see(&store).unwrap().fixed;
    assert!(fixed.iter().enumerate().all(|(i, v)| *v == i as i32 / X as i32), "{fixed:?}");
    assert_eq!(recover(&store).made, None);
}

#[test]
fn the_filters_of_values_that_were_written_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    esker::launch(2, |comm| {
        let rank = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm.clone()).layout(Layout::Log);
        let mut def = Dataset::create(&path, options).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(200)).unwrap();
        let [written, empty] =
            ["written", "empty"].map(|name| def.add_var(name, ExternalType::Float, &[x]).unwrap());
        def.set_filters(written, "shuffle zstd,3").unwrap();
        def.set_filters(empty, "deflate,6").unwrap();
        let mut ds = def.enddef().unwrap();
        let (mine, values) = (Selection::slab(&[0], &[100]), vec![2.5f32; 100]);
        if rank == 1 {
            // Nobody but this rank knows.
            ds.put(written, &mine, &values).unwrap();
        }
        // In data mode.
        let refused = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err().to_string();
            let why = "\"written\": values were written through its filters";
            assert!(error.contains(why) || error.contains("rank 1 failed"), "{error}");
        };
        let owner = esker::Owner::Var(written);
        refused(ds.amend(|schema| schema.put_attr(owner, "__filters", "zstd,3".into())));
        refused(ds.amend(|schema| schema.del_attr(owner, "__filters").map(drop)));
        refused(ds.amend(|schema| schema.rename_attr(owner, "__filters", "filters")));
        ds.amend(|schema| schema.put_attr(owner, "units", "K".into())).unwrap();
        ds.amend(|schema| schema.put_attr(empty.into(), "__filters", "zstd,3".into())).unwrap();
        assert_eq!(ds.get_all::<f32>(written, &mine).unwrap(), values);
        ds.close().unwrap();
        // In define mode, also when values are of an earlier session.
        let options = OpenOptions::new().writable(true).comm(comm.clone());
        let mut def = Dataset::open_with(&path, options).unwrap().redef().unwrap();
        def.rename_attr(written, "__filters", "filters").unwrap();
        let error = def.enddef().unwrap_err();
        assert!(error.error.to_string().contains("could not be read"), "{}", error.error);
        let mut def = error.define;
        def.rename_attr(written, "filters", "__filters").unwrap();
        def.del_attr(empty, "__filters").unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(empty, &mine, &values).unwrap();
        assert_eq!(ds.get_all::<f32>(written, &mine).unwrap(), values);
        assert_eq!(ds.get_all::<f32>(empty, &mine).unwrap(), values);
        ds.close().unwrap();
    });
}

#[test]
fn a_log_that_was_swapped_for_another_is_noticed_by_every_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    for turn in 0..2 {
        esker::launch(2, |comm| {
            let rank = comm.rank() as u64;
            let mut ds = match turn {
                0 => {
                    let options = CreateOptions::new().comm(comm).layout(Layout::Log);
                    let mut def = Dataset::create(&path, options).unwrap();
                    let x = def.add_dim("x", DimLen::Fixed(100)).unwrap();
                    def.add_var("f", ExternalType::Int, &[x]).unwrap();
                    def.enddef().unwrap()
                }
                _ => {
                    Dataset::open_with(&path, OpenOptions::new().writable(true).comm(comm)).unwrap()
                }
            };
            let mine = Selection::slab(&[50 * rank], &[50]);
            ds.put_all(VarId(0), &mine, &[7 + rank as i32; 50]).unwrap();
            ds.close().unwrap();
        });
    }
    let segments = path.join("segments");
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(&segments).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let is_of = |path: &&PathBuf, rank: u32, kind: &str| {
        path.to_str().unwrap().ends_with(&format!(".{rank}.{kind}"))
    };
    let of = |rank, kind| names.iter().find(|path| is_of(path, rank, kind)).unwrap();
    let other_session = |rank, kind| names.iter().rfind(|path| is_of(path, rank, kind)).unwrap();
    let read = || Dataset::open(&path).unwrap().get::<i32>(VarId(0), &Selection::all());
    assert_eq!(read().unwrap(), [[7; 50], [8; 50]].concat());
    for (first, second) in
        [(of(0, "meta"), of(1, "meta")), (of(0, "meta"), other_session(0, "meta"))]
    {
        assert_eq!(
            std::fs::metadata(first).unwrap().len(),
            std::fs::metadata(second).unwrap().len()
        );
        let data = |path: &Path| path.with_extension("data");
        let swap = |a: &Path, b: &Path| {
            let away = dir.path().join("away");
            std::fs::rename(a, &away).unwrap();
            std::fs::rename(b, a).unwrap();
            std::fs::rename(&away, b).unwrap();
        };
        // Both files, so that every checksum is right.
        swap(first, second);
        swap(&data(first), &data(second));
        let error = read().unwrap_err().to_string();
        assert!(error.contains("the log of rank 0 is damaged"), "{error}");
        assert!(error.contains("its metadata log is that of rank"), "{error}");
        swap(first, second);
        swap(&data(first), &data(second));
        assert_eq!(read().unwrap(), [[7; 50], [8; 50]].concat());
    }
}
