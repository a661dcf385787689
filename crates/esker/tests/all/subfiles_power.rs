//! Datasets with sub-files on a disk that loses its power: random programs create, replace, append, write
//! over, amend, sync, close and open; the power goes at a random call, and of what was not synced the
//! disk has written any names and any sectors. What a sync promised is there, and nothing else is shown.
//!
//! `ESKER_POWER_CUTS=100000 cargo test -p esker --test all subfiles_power:: -- --nocapture` tries more of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, OpenOptions, Owner,
    RecoverOptions, Selection,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store, Unsynced};
use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/many.nc";
const SECTOR: u64 = 512;
const FILL: i32 = -2_147_483_647;
/// Rows and columns of a record, and the columns that somebody has.
const ROWS: u64 = 2;
const COLUMNS: u64 = 70;
const OWNED: u64 = 66;

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    /// In the place of what is there.
    Create {
        subfiles: u64,
    },
    Append {
        records: u64,
    },
    /// Writes a record anew, if there is one.
    Again {
        record: u64,
    },
    Amend,
    Sync,
    /// Closes and opens.
    Reopen,
}

/// What the dataset has: which creation it is of, and how often each record was written again.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    creation: u64,
    records: Vec<u64>,
}

impl Model {
    fn after(&mut self, operation: Operation) {
        match operation {
            Operation::Create { .. } => {
                *self = Model { creation: self.creation + 1, records: Vec::new() };
            }
            Operation::Append { records } => self.records.extend(vec![0; records as usize]),
            Operation::Again { record } => {
                if !self.records.is_empty() {
                    let record = record as usize % self.records.len();
                    self.records[record] += 1;
                }
            }
            Operation::Amend | Operation::Sync | Operation::Reopen => {}
        }
    }
}

/// A value says all of itself.
fn value(creation: u64, again: u64, record: u64, row: u64, column: u64) -> i32 {
    ((((creation * 16 + again) * 64 + record) * ROWS + row) * COLUMNS + column) as i32 + 1
}

struct Dice(u64);

impl Dice {
    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn program(dice: &mut Dice) -> Vec<Operation> {
    let mut operations = vec![Operation::Create { subfiles: dice.below(4) }];
    for _ in 0..3 + dice.below(7) {
        operations.push(match dice.below(12) {
            0 | 1 => Operation::Create { subfiles: dice.below(4) },
            2..=4 => Operation::Append { records: 1 + dice.below(2) },
            5 => Operation::Again { record: dice.below(8) },
            6 => Operation::Amend,
            7..=9 => Operation::Sync,
            _ => Operation::Reopen,
        });
    }
    operations
}

fn columns(comm: &dyn Communicator) -> Vec<u64> {
    (comm.rank() as u64..OWNED).step_by(comm.size()).collect()
}

fn create(
    comm: &Arc<dyn Communicator>,
    store: &Arc<dyn Store>,
    subfiles: u64,
    creation: u64,
) -> Result<Dataset, Error> {
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", &subfiles.to_string());
    let options = CreateOptions::new().comm(comm.clone()).store(store.clone()).hints(hints);
    let mut def = Dataset::create(PATH, options)?;
    let time = def.add_dim("time", DimLen::Unlimited)?;
    let y = def.add_dim("y", DimLen::Fixed(ROWS))?;
    let x = def.add_dim("x", DimLen::Fixed(COLUMNS))?;
    let count = columns(&**comm).len() as u64;
    let ranks = comm.size() as u64;
    let mine = Selection::strided(&[0, comm.rank() as u64], &[ROWS, count], &[1, ranks]);
    let map = def.add_decomposition(&[y, x], &mine)?;
    def.add_decomposed_var("t", ExternalType::Int, &[time], map)?;
    def.put_attr(Owner::Global, "creation", creation as i32)?;
    // As long as what takes its place: the header has no room for more.
    def.put_attr(Owner::Global, "title", "the one")?;
    Ok(def.enddef()?)
}

fn write(
    ds: &mut Dataset,
    comm: &dyn Communicator,
    model: &Model,
    records: std::ops::Range<u64>,
) -> Result<(), Error> {
    let mut values = Vec::new();
    for record in records.clone() {
        let again = model.records[record as usize];
        for row in 0..ROWS {
            let columns = columns(comm).into_iter();
            values.extend(columns.map(|c| value(model.creation, again, record, row, c)));
        }
    }
    let t = ds.var("t")?;
    let count = records.end - records.start;
    ds.put_all(t, &Selection::blob(&[records.start], &[count]), &values)
}

fn reopened(comm: &Arc<dyn Communicator>, store: &Arc<dyn Store>) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(true).comm(comm.clone()).store(store.clone());
    Dataset::open_with(PATH, options)
}

/// Does all operations; `done` counts those that rank 0 has come back from.
fn run(
    comm: &Arc<dyn Communicator>,
    store: &Arc<dyn Store>,
    operations: &[Operation],
    done: &AtomicUsize,
) -> Result<(), Error> {
    let mut model = Model::default();
    let mut open: Option<Dataset> = None;
    for operation in operations {
        let before = model.records.len() as u64;
        model.after(*operation);
        match *operation {
            Operation::Create { subfiles } => {
                if let Some(ds) = open.take() {
                    ds.close()?;
                }
                open = Some(create(comm, store, subfiles, model.creation)?);
            }
            Operation::Append { records } => {
                if let Some(ds) = &mut open {
                    write(ds, &**comm, &model, before..before + records)?;
                }
            }
            Operation::Again { record } => {
                if let Some(ds) = open.as_mut().filter(|_| before > 0) {
                    let record = record % before;
                    write(ds, &**comm, &model, record..record + 1)?;
                }
            }
            Operation::Amend => {
                if let Some(ds) = &mut open {
                    ds.amend(|schema| schema.put_attr(Owner::Global, "title", "another".into()))?;
                }
            }
            Operation::Sync => {
                if let Some(ds) = &mut open {
                    ds.sync()?;
                }
            }
            Operation::Reopen => {
                if let Some(ds) = open.take() {
                    ds.close()?;
                }
                open = Some(reopened(comm, store)?);
            }
        }
        if comm.rank() == 0 {
            done.store(done.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
    }
    open.map_or(Ok(()), Dataset::close)
}

/// What was promised, and what may be there instead: every state from the last sync on.
struct Expected {
    promised: Option<Model>,
    states: Vec<Model>,
}

fn expected(operations: &[Operation], done: usize) -> Expected {
    let mut model = Model::default();
    let mut expected = Expected { promised: None, states: Vec::new() };
    for (number, operation) in operations.iter().enumerate().take(done + 1) {
        model.after(*operation);
        if *operation == Operation::Sync && number < done {
            expected = Expected { promised: Some(model.clone()), states: Vec::new() };
        }
        expected.states.push(model.clone());
    }
    expected
}

/// How often something was seen.
#[derive(Debug, Default)]
struct Tally {
    cuts: u64,
    promised: u64,
    newer: u64,
    told: u64,
    replaced: u64,
}

fn judge(store: &MemoryStore, expected: &Expected, what: &str, tally: &mut Tally) {
    tally.cuts += 1;
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = match Dataset::open_with(PATH, options) {
        Ok(ds) => ds,
        Err(_) if expected.promised.is_none() => return,
        Err(error) => panic!("{what}: {error}"),
    };
    let creation = ds.schema().attr(Owner::Global, "creation").unwrap();
    let creation = creation.convert_to::<i64>().unwrap()[0] as u64;
    let states: Vec<&Model> = expected
        .promised
        .iter()
        .chain(&expected.states)
        .filter(|s| s.creation == creation)
        .collect();
    assert!(!states.is_empty(), "{what}: creation {creation} was never seen to be made");
    let promised = expected.promised.as_ref().filter(|model| model.creation == creation);
    let (least, faults) = (promised.map_or(0, |p| p.records.len() as u64), ds.subfile_faults());
    assert!(ds.numrecs() >= least, "{what}: {} records of {least}", ds.numrecs());
    tally.promised += u64::from(promised.is_some());
    tally.newer += u64::from(ds.numrecs() > least);
    tally.replaced += u64::from(expected.promised.is_some() && promised.is_none());
    let t = ds.var("t").unwrap();
    for record in 0..ds.numrecs() {
        let read = ds.get::<i32>(t, &Selection::slab(&[record, 0, 0], &[1, ROWS, COLUMNS]));
        let values = match read {
            Ok(values) => values,
            // Where nothing was ever promised, anything may be missing.
            Err(_) if expected.promised.is_none() => continue,
            // What was not promised may be missing, and that is told.
            Err(error)
                if record >= least
                    && (!faults.is_empty() || error.to_string().contains("was cut short")) =>
            {
                tally.told += 1;
                continue;
            }
            Err(error) => panic!("{what}: record {record} of {least}: {error}; {faults:?}"),
        };
        if expected.promised.is_none() {
            continue;
        }
        let all = (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
        for ((row, column), found) in all.zip(values) {
            if column >= OWNED {
                assert_eq!(found, FILL, "{what}: record {record}, ({row}, {column})");
                continue;
            }
            let written = |again: u64| found == value(creation, again, record, row, column);
            let again = states.iter().filter_map(|s| s.records.get(record as usize)).copied();
            let is_right = match promised.and_then(|p| p.records.get(record as usize)) {
                Some(_) => again.clone().any(written),
                // Nobody was promised these: they are what was written, or nothing.
                None => found == FILL || found == 0 || again.clone().any(written),
            };
            assert!(
                is_right,
                "{what}: record {record}, ({row}, {column}) is {found}, of {states:?}"
            );
        }
    }
}

/// A writer finds its way: recovery, appending and reading.
fn goes_on(store: &MemoryStore, what: &str) {
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let Ok(ds) = Dataset::open_with(PATH, options) else { return };
    if !ds.subfile_faults().is_empty() {
        return;
    }
    drop(ds);
    let options = RecoverOptions::new().dir("/run").store(Arc::new(store.clone()));
    let recovery = match esker::recover(PATH, &options) {
        // The journal of a dataset that never took its name: it can be read, and whoever wants to
        // write is told what to do.
        Err(error) if error.to_string().contains("a redefinition was interrupted") => return,
        recovery => recovery.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    assert!(recovery.is_complete(), "{what}: {recovery:?}");
    let options = OpenOptions::new().writable(true).store(Arc::new(store.clone()));
    let mut ds = Dataset::open_with(PATH, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(ds.hidden_subfiles(), [], "{what}");
    ds.amend(|schema| schema.put_attr(Owner::Global, "title", "at last".into()))
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    ds.sync().unwrap_or_else(|e| panic!("{what}: {e}"));
    ds.close().unwrap_or_else(|e| panic!("{what}: {e}"));
    store.lose_power();
    let options = OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options).unwrap_or_else(|e| panic!("{what}: {e}"));
    let title = ds.schema().attr(Owner::Global, "title").and_then(|v| v.text());
    assert_eq!(title.as_deref(), Some("at last"), "{what}");
    assert_eq!(ds.subfile_faults(), [], "{what}");
}

/// Runs one program on so many ranks up to a call, and loses its power in several ways.
fn cut(seed: u64, tally: &mut Tally) {
    let mut dice = Dice(seed);
    let operations = program(&mut dice);
    let ranks = 1 + dice.below(3) as usize;
    let start = |at: u64| {
        let store = MemoryStore::default();
        let faulty = FaultyStore::with_sectors(store.clone(), at, Fault::Kill, SECTOR);
        let shared: Arc<dyn Store> = Arc::new(faulty.clone());
        let done = Arc::new(AtomicUsize::new(0));
        let (all, count) = (operations.clone(), done.clone());
        let ended = on_ranks(ranks, move |comm| run(&comm, &shared, &all, &count));
        (store, faulty.calls(), done.load(Ordering::SeqCst), ended)
    };
    let (_, calls, _, ended) = start(u64::MAX);
    ended.into_iter().for_each(|ended| ended.unwrap());
    for _ in 0..6 {
        let at = dice.below(calls + 1);
        let (store, _, done, _) = start(at);
        let expected = expected(&operations, done);
        for way in 0..6 {
            let store = store.fork();
            // Names and sectors of which the disk has written none, all or some.
            let (names, sectors) = match way {
                0 => (0, 0),
                1 => (8, 8),
                2 => (8, 0),
                3 => (0, 8),
                _ => (dice.below(9), dice.below(9)),
            };
            store.lose_power_in_any_order(SECTOR, |what| {
                dice.below(8)
                    < match what {
                        Unsynced::Name(_) => names,
                        Unsynced::Sector(..) => sectors,
                    }
            });
            let what = format!(
                "seed {seed}, {ranks} ranks, no power at {at} of {calls}, way {way}, after {done} of \
                 {operations:?}"
            );
            judge(&store, &expected, &what, tally);
            if expected.promised.is_some() {
                goes_on(&store, &what);
            }
        }
    }
}

#[test]
fn whatever_the_disk_has_written_when_the_power_goes_what_was_synced_is_there() {
    let most = std::env::var("ESKER_POWER_CUTS").ok().and_then(|n| n.parse().ok());
    let first = std::env::var("ESKER_POWER_SEED").ok().and_then(|n| n.parse().ok());
    let most: u64 = most.unwrap_or(1500);
    let mut tally = Tally::default();
    for seed in first.unwrap_or(0).. {
        if tally.cuts >= most {
            break;
        }
        cut(seed, &mut tally);
    }
    println!("{tally:?}");
    // The series sees what it is for.
    let seen = [tally.promised, tally.newer, tally.replaced];
    assert!(most < 1500 || seen.iter().all(|n| *n > 50), "{tally:?}");
}
