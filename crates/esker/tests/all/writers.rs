//! Several writers of one container that know nothing of each other: what they commit is there, in order, and nobody writes over what
//! he has not seen. Compared with plain arrays.

use std::path::Path;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Layout, OpenOptions, Owner,
    Selection, Values, VarId,
};
use esker_store::{LocalStore, MemoryStore, Store};
use esker_testkit::random::Random;
use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/a.esk";
const FILL: i32 = -2_147_483_647;
const X: u64 = 12;
const RECORDS: u64 = 4;
const FIXED: VarId = VarId(0);
const RECORD: VarId = VarId(1);

fn create(store: &Arc<dyn Store>, path: &Path) {
    let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    def.add_var("record", ExternalType::Int, &[t, x]).unwrap();
    let mut ds = def.enddef().unwrap();
    // All records from the beginning, so that only values differ.
    ds.put(RECORD, &Selection::element(&[RECORDS - 1, 0]), &[-1]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
}

fn to_write(store: &Arc<dyn Store>, path: &Path, on_conflict: &str) -> Dataset {
    let mut hints = Hints::default();
    hints.set("esker_on_conflict", on_conflict);
    let options = OpenOptions::new().writable(true).store(store.clone()).hints(hints);
    Dataset::open_with(path, options).unwrap()
}

/// Every value, by place: `fixed`, then the records.
type State = Vec<i32>;

fn everything(ds: &Dataset) -> State {
    let mut all: Vec<i32> = ds.get(FIXED, &Selection::all()).unwrap();
    all.extend(ds.get::<i32>(RECORD, &Selection::all()).unwrap());
    all
}

fn at(store: &Arc<dyn Store>, path: &Path, version: u64) -> State {
    let options = OpenOptions::new().store(store.clone()).container_version(version);
    everything(&Dataset::open_with(path, options).unwrap())
}

/// A writer, and what it should see.
struct Writer {
    ds: Dataset,
    on_conflict: &'static str,
    /// The version that it builds on.
    base: u64,
    sees: State,
    /// Places that it has written since.
    written: Vec<(usize, i32)>,
}

/// What a version did.
struct Version {
    state: State,
    wrote: Vec<usize>,
}

#[test]
fn random_writers_agree_with_a_serial_model() {
    let turns = std::env::var("ESKER_WRITERS").map_or(60, |n| n.parse().unwrap());
    let (mut conflicts, mut behind) = (0, 0);
    for turn in 0..turns {
        let mut dice = Random(turn);
        let store = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let path = Path::new(PATH);
        create(&shared, path);
        let mut begin = vec![FILL; (X + RECORDS * X) as usize];
        begin[(X + (RECORDS - 1) * X) as usize] = -1;
        // Version 1 has no records.
        let mut versions = vec![Version { state: begin, wrote: Vec::new() }];
        let mut writers: Vec<Option<Writer>> = (0..3).map(|_| None).collect();
        let mut next = 0;
        for step in 0..40 {
            let who = dice.below(3);
            let Some(mut writer) = writers[who].take() else {
                let on_conflict = dice.pick(&["fail", "fail", "ours"]);
                let ds = to_write(&shared, path, on_conflict);
                let (base, sees) =
                    (versions.len() as u64 + 1, versions.last().unwrap().state.clone());
                assert_eq!(ds.container_version(), Some(base), "turn {turn}, step {step}");
                writers[who] = Some(Writer { ds, on_conflict, base, sees, written: Vec::new() });
                continue;
            };
            // A few elements, one behind the other or apart.
            let (stride, count) = (1 + dice.below_u64(3), 1 + dice.below_u64(3));
            let first = dice.below_u64(X - (count - 1) * stride);
            let values: Vec<i32> = (0..count as i32).map(|i| next + i).collect();
            next += count as i32;
            let record = dice.below_u64(RECORDS + 2);
            let begins = if record < RECORDS {
                let selection = Selection::strided(&[record, first], &[1, count], &[1, stride]);
                writer.ds.put(RECORD, &selection, &values).unwrap();
                X + record * X
            } else {
                let selection = Selection::strided(&[first], &[count], &[stride]);
                writer.ds.put(FIXED, &selection, &values).unwrap();
                0
            };
            for (i, value) in (0..count).zip(&values) {
                let place = (begins + first + i * stride) as usize;
                writer.sees[place] = *value;
                writer.written.push((place, *value));
            }
            if dice.below(3) == 0 {
                assert_eq!(everything(&writer.ds), writer.sees, "turn {turn}, step {step}");
            }
            if dice.below(2) == 0 {
                writers[who] = Some(writer);
                continue;
            }
            // What others have committed since.
            let since = &versions[writer.base as usize - 1..];
            let theirs: Vec<usize> = since.iter().flat_map(|v| v.wrote.clone()).collect();
            let meets = writer.written.iter().any(|(place, _)| theirs.contains(place));
            let what = format!("turn {turn}, step {step}, {}", writer.on_conflict);
            let closes = dice.below(4) == 0;
            let Writer { mut ds, on_conflict, written, .. } = writer;
            let outcome = if dice.below(2) == 0 { ds.sync() } else { Ok(()) };
            let outcome = match (outcome, closes) {
                (Ok(()), true) => ds.close().map(|()| None),
                (Ok(()), false) => ds.sync().map(|()| Some(ds)),
                (Err(error), _) => Err(error),
            };
            if meets && on_conflict == "fail" {
                let error = outcome.map(drop).expect_err(&what);
                assert!(matches!(error, Error::Conflict { .. }), "{what}: {error}");
                conflicts += 1;
                continue;
            }
            let ds = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
            behind += usize::from(!since.is_empty());
            let mut state = versions.last().unwrap().state.clone();
            for (place, value) in &written {
                state[*place] = *value;
            }
            let wrote = written.iter().map(|(place, _)| *place).collect();
            versions.push(Version { state: state.clone(), wrote });
            let number = versions.len() as u64 + 1;
            assert_eq!(at(&shared, path, number), state, "{what}");
            if let Some(ds) = ds {
                assert_eq!(ds.container_version(), Some(number), "{what}");
                assert_eq!(everything(&ds), state, "{what}: what the writer sees then");
                let sees = state;
                writers[who] =
                    Some(Writer { ds, on_conflict, base: number, sees, written: vec![] });
            }
        }
        drop(writers);
        for (number, version) in (2..).zip(&versions) {
            // Of a version that was just opened only what is asked for is looked up.
            let options = OpenOptions::new().store(shared.clone()).container_version(number);
            let ds = Dataset::open_with(path, options).unwrap();
            for _ in 0..4 {
                let (record, x) = (dice.below_u64(RECORDS), dice.below_u64(X));
                let what = format!("turn {turn}, version {number}, record {record}, {x}");
                let found: Vec<i32> = ds.get(RECORD, &Selection::element(&[record, x])).unwrap();
                assert_eq!(found, [version.state[(X + record * X + x) as usize]], "{what}");
                let found: Vec<i32> = ds.get(FIXED, &Selection::element(&[x])).unwrap();
                assert_eq!(found, [version.state[x as usize]], "{what}");
            }
            assert_eq!(everything(&ds), version.state, "turn {turn}, version {number}");
            assert_eq!(at(&shared, path, number), version.state, "turn {turn}, version {number}");
        }
        let examined = esker::examine(&shared, path, None, &mut |_, _| {}).unwrap();
        assert_eq!((examined.faults.len(), examined.lost_versions.len()), (0, 0), "turn {turn}");
        // What was synced survives, whoever committed before it without waiting.
        let last = versions.len() as u64 + 1;
        let mut ds = to_write(&shared, path, "fail");
        ds.put(FIXED, &Selection::element(&[0]), &[77]).unwrap();
        ds.sync().unwrap();
        drop(ds);
        store.lose_power();
        let mut expected = versions.last().unwrap().state.clone();
        expected[0] = 77;
        assert_eq!(at(&shared, path, last + 1), expected, "turn {turn}");
    }
    println!("{conflicts} conflicts, {behind} commits behind others");
    assert!(conflicts > turns as usize / 2 && behind > turns as usize, "{conflicts} {behind}");
}

#[test]
fn a_conflict_names_the_element_and_the_version_and_leaves_what_was_committed() {
    let shared: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = Path::new(PATH);
    create(&shared, path);
    let (mut one, mut two) = (to_write(&shared, path, "fail"), to_write(&shared, path, "fail"));
    one.put(RECORD, &Selection::strided(&[1, 0], &[2, 6], &[1, 2]), &[1; 12]).unwrap();
    // Between the elements of the other, and on one of them.
    two.put(RECORD, &Selection::strided(&[1, 1], &[1, 6], &[1, 2]), &[2; 6]).unwrap();
    two.put(RECORD, &Selection::element(&[2, 4]), &[2]).unwrap();
    one.close().unwrap();
    let error = two.sync().unwrap_err();
    let text = error.to_string();
    let Error::Conflict { version: 3, base: 2, .. } = error else { panic!("{text}") };
    assert!(text.contains("variable \"record\" at [2, 4]"), "{text}");
    let mut three = to_write(&shared, path, "fail");
    three.put(RECORD, &Selection::element(&[2, 4]), &[3]).unwrap();
    three.close().unwrap();
    let ds = Dataset::open_with(path, OpenOptions::new().store(shared.clone())).unwrap();
    let record: Vec<i32> = ds.get(RECORD, &Selection::slab(&[2, 3], &[1, 3])).unwrap();
    assert_eq!((ds.container_version(), record), (Some(4), vec![FILL, 3, FILL]));
}

#[test]
fn definitions_of_two_writers_are_a_conflict_unless_one_of_them_changes_none() {
    let shared: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = Path::new(PATH);
    create(&shared, path);
    let mut one = to_write(&shared, path, "fail");
    let mut def = to_write(&shared, path, "fail").redef().unwrap();
    let two = to_write(&shared, path, "fail").redef().unwrap();
    let x = def.schema().dim("x").unwrap();
    let w = def.add_var("w", ExternalType::Int, &[x]).unwrap();
    let mut defined = def.enddef().unwrap();
    defined.put(w, &Selection::all(), &[5; X as usize]).unwrap();
    defined.close().unwrap();
    // It knows nothing of the new variable, and has not changed any.
    one.put(FIXED, &Selection::element(&[3]), &[3]).unwrap();
    one.sync().unwrap();
    let ds = Dataset::open_with(path, OpenOptions::new().store(shared.clone())).unwrap();
    assert_eq!(ds.get::<i32>(w, &Selection::all()).unwrap(), [5; X as usize]);
    assert_eq!(ds.get::<i32>(FIXED, &Selection::element(&[3])).unwrap(), [3]);
    let error = one
        .amend(|schema| schema.put_attr(Owner::Global, "title", Values::from("late")))
        .unwrap_err()
        .to_string();
    assert!(error.contains("another writer has changed its definitions"), "{error}");
    let mut two = two;
    two.put_attr(Owner::Global, "title", "other").unwrap();
    let failed = two.enddef().map(drop).unwrap_err();
    assert!(failed.error.to_string().contains("definitions: version 3"), "{}", failed.error);
    let ds = Dataset::open_with(path, OpenOptions::new().store(shared)).unwrap();
    assert!(ds.var("w").is_ok() && ds.schema().attrs.get("title").is_none());
}

#[test]
fn a_dataset_that_was_replaced_takes_nothing_of_who_wrote_to_the_old_one() {
    let shared: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = Path::new(PATH);
    create(&shared, path);
    let mut old = to_write(&shared, path, "ours");
    old.put(FIXED, &Selection::element(&[3]), &[3]).unwrap();
    create(&shared, path);
    let error = old.sync().unwrap_err().to_string();
    assert!(error.contains("has replaced everything before it"), "{error}");
    let ds = Dataset::open_with(path, OpenOptions::new().store(shared)).unwrap();
    assert_eq!(ds.get::<i32>(FIXED, &Selection::all()).unwrap(), [FILL; X as usize]);
}

#[test]
fn writers_of_several_ranks_go_behind_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let local: Arc<dyn Store> = Arc::new(LocalStore);
    create(&local, &path);
    const EACH: u64 = 8;
    // Two jobs of three ranks; job j has the elements 6 j to 6 j + 5, each rank two of them.
    std::thread::scope(|scope| {
        for job in 0..2u64 {
            let path = path.clone();
            scope.spawn(move || {
                on_ranks(3, move |comm| {
                    let me = comm.rank() as u64;
                    let options = OpenOptions::new().writable(true).comm(comm.clone());
                    let mut ds = Dataset::open_with(&path, options).unwrap();
                    for step in 0..EACH {
                        let value = (100 * job + step) as i32;
                        let mine = Selection::slab(&[6 * job + 2 * me], &[2]);
                        ds.put_all(FIXED, &mine, &[value; 2]).unwrap();
                        ds.sync().unwrap();
                        let read: Vec<i32> = ds.get_all(FIXED, &mine).unwrap();
                        assert_eq!(read, [value; 2], "job {job}, rank {me}, step {step}");
                    }
                    ds.close().unwrap();
                });
            });
        }
    });
    let ds = Dataset::open(&path).unwrap();
    let expected: Vec<i32> = (0..X).map(|i| (100 * (i / 6) + EACH - 1) as i32).collect();
    assert_eq!(ds.get::<i32>(FIXED, &Selection::all()).unwrap(), expected);
    assert_eq!(ds.container_version(), Some(2 + 2 * EACH));
    // Every version has whole steps of both, none of them older than in the version before.
    let mut before = [-1, -1];
    for version in 3..=2 + 2 * EACH {
        let options = OpenOptions::new().container_version(version);
        let ds = Dataset::open_with(&path, options).unwrap();
        let all: Vec<i32> = ds.get(FIXED, &Selection::all()).unwrap();
        let steps = [0, 1].map(|job: usize| {
            let part = &all[6 * job..6 * job + 6];
            assert!(part.iter().all(|value| *value == part[0]), "version {version}: {all:?}");
            if part[0] == FILL { -1 } else { part[0] - 100 * job as i32 }
        });
        let one_more = (0..2).filter(|job| steps[*job] == before[*job] + 1).count();
        let same = (0..2).filter(|job| steps[*job] == before[*job]).count();
        assert_eq!((one_more, same), (1, 1), "version {version}: {before:?} to {steps:?}");
        before = steps;
    }
}
