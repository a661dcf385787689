//! Transactions as programs hold them: all or nothing, with numbers, several at once, given up by one for all; and readers that wait for versions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    BeginOptions, Committed, CreateOptions, Dataset, DimLen, Error, ExternalType, Layout,
    NumberState, OpenOptions, Owner, Result, Selection, Transaction, Values, VarId,
};
use esker_comm::Communicator;
use esker_store::{Fault, FaultyStore, LocalStore, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/a.esk";
const FILL: i32 = -2_147_483_647;
const X: u64 = 8;
const FIXED: VarId = VarId(0);
const RECORD: VarId = VarId(1);

fn shared() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

/// A container whose version 1 has a fixed and a record variable, without values.
fn create(store: &Arc<dyn Store>, path: &Path) {
    let options = CreateOptions::new().layout(Layout::Log).store(store.clone());
    let mut def = Dataset::create(path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    def.add_var("record", ExternalType::Int, &[t, x]).unwrap();
    def.enddef().unwrap().close().unwrap();
}

fn begin(store: &Arc<dyn Store>, options: BeginOptions) -> Transaction {
    Transaction::begin(PATH, options.store(store.clone())).unwrap()
}

fn numbered(store: &Arc<dyn Store>, number: u64) -> Transaction {
    begin(store, BeginOptions::new().number(number))
}

fn open(store: &Arc<dyn Store>) -> Dataset {
    Dataset::open_with(PATH, OpenOptions::new().store(store.clone())).unwrap()
}

fn at(store: &Arc<dyn Store>, version: u64) -> Result<Dataset> {
    let options = OpenOptions::new().store(store.clone()).container_version(version);
    Dataset::open_with(PATH, options)
}

fn fixed(ds: &Dataset) -> Vec<i32> {
    ds.get(FIXED, &Selection::all()).unwrap()
}

fn put(ds: &mut Dataset, first: u64, values: &[i32]) {
    ds.put(FIXED, &Selection::slab(&[first], &[values.len() as u64]), values).unwrap();
}

fn state(store: &Arc<dyn Store>, number: u64) -> NumberState {
    esker::number_state(&**store, Path::new(PATH), number).unwrap()
}

#[test]
fn nothing_of_a_transaction_is_seen_until_it_is_committed_and_all_of_it_then() {
    let store = shared();
    create(&store, Path::new(PATH));
    let mut tx = begin(&store, BeginOptions::new().message("all at once"));
    put(&mut tx, 0, &[1, 2]);
    tx.sync().unwrap();
    tx.amend(|schema| schema.put_attr(Owner::Global, "title", Values::from("new"))).unwrap();
    let mut tx = tx
        .define(|def| {
            let x = def.schema().dim("x").unwrap();
            def.add_var("more", ExternalType::Double, &[x])?;
            Ok(())
        })
        .unwrap();
    let more = tx.var("more").unwrap();
    tx.put(more, &Selection::element(&[3]), &[0.5]).unwrap();
    put(&mut tx, 1, &[7]);
    // It sees itself, and nobody else does.
    assert_eq!(fixed(&tx)[..3], [1, 7, FILL]);
    assert_eq!(tx.get::<f64>(more, &Selection::element(&[3])).unwrap(), [0.5]);
    let before = open(&store);
    assert_eq!(before.container_version(), Some(1));
    assert_eq!(fixed(&before), [FILL; X as usize]);
    assert!(before.var("more").is_err());
    assert_eq!(tx.outcome(), None);

    assert_eq!(tx.commit().unwrap(), Committed::Version(2));
    let after = open(&store);
    assert_eq!(after.container_version(), Some(2));
    assert_eq!(fixed(&after)[..3], [1, 7, FILL]);
    assert_eq!(after.get::<f64>(more, &Selection::element(&[3])).unwrap(), [0.5]);
    assert!(after.schema().attrs.get("title").is_some());
    let told = esker::versions(&*store, Path::new(PATH), Some(1)).unwrap();
    assert_eq!(told[0].message, "all at once");
    // It is over: it can be read, and not written.
    assert_eq!(fixed(&tx)[..3], [1, 7, FILL]);
    let refused = tx.put(FIXED, &Selection::element(&[0]), &[9]);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
    tx.into_dataset().close().unwrap();
    assert_eq!(open(&store).container_version(), Some(2));
}

#[test]
fn what_is_aborted_dropped_or_killed_never_was_also_for_a_recovery() {
    let store = shared();
    create(&store, Path::new(PATH));
    for end in 0..3 {
        let mut tx = begin(&store, BeginOptions::new());
        put(&mut tx, 0, &[1, 2, 3]);
        tx.amend(|schema| schema.put_attr(Owner::Global, "title", Values::from("no"))).unwrap();
        tx.sync().unwrap();
        match end {
            0 => tx.abort().unwrap(),
            1 => drop(tx),
            // As a process that is killed.
            _ => std::mem::forget(tx),
        }
        let options = esker::ContainerRecoverOptions::default();
        let recovery =
            esker::recover_container(&store, Path::new(PATH), options, &mut |_, _| {}).unwrap();
        assert_eq!(recovery.made, None, "{end}: {recovery:?}");
        let ds = open(&store);
        assert_eq!(ds.container_version(), Some(1));
        assert_eq!(fixed(&ds), [FILL; X as usize]);
        assert!(ds.schema().attrs.get("title").is_none());
    }
}

#[test]
fn numbers_are_decided_in_any_order_and_their_order_decides_which_values_win() {
    let store = shared();
    create(&store, Path::new(PATH));
    let mut all: Vec<Transaction> = (2..=5).map(|number| numbered(&store, number)).collect();
    for (i, tx) in all.iter_mut().enumerate() {
        let number = i as i32 + 2;
        put(tx, i as u64, &[number; 3]);
        tx.put(RECORD, &Selection::slab(&[6 - i as u64, 0], &[1, 1]), &[number]).unwrap();
    }
    // 4, 5, 3, 2: nothing is seen before 2 is decided.
    for (place, expected) in [
        (2, Committed::Prepared(4)),
        (3, Committed::Prepared(5)),
        (1, Committed::Prepared(3)),
        (0, Committed::Version(2)),
    ] {
        assert_eq!(open(&store).container_version(), Some(1));
        assert_eq!(all[place].commit().unwrap(), expected);
        let seen = if expected.is_visible() { NumberState::Version } else { NumberState::Prepared };
        assert_eq!(state(&store, expected.number()), seen);
    }
    let ds = open(&store);
    assert_eq!(ds.container_version(), Some(5));
    assert_eq!(fixed(&ds), [2, 3, 4, 5, 5, 5, FILL, FILL]);
    // The records of the one that wrote the most: a later number has fewer, and takes none away.
    assert_eq!(ds.numrecs(), 7);
    for (number, expected) in [(2, [2, 2, 2, FILL]), (3, [2, 3, 3, 3]), (4, [2, 3, 4, 4])] {
        let ds = at(&store, number).unwrap();
        assert_eq!(fixed(&ds)[..4], expected, "version {number}");
        assert_eq!(ds.numrecs(), 7);
        let records: Vec<i32> = ds.get(RECORD, &Selection::slab(&[0, 0], &[7, 1])).unwrap();
        let of = |n: i32| if n <= number as i32 { n } else { FILL };
        assert_eq!(records, [FILL, FILL, FILL, of(5), of(4), of(3), of(2)]);
    }
    // Every one of them was promised, whoever promoted it.
    let told = esker::versions(&*store, Path::new(PATH), None).unwrap();
    assert!(
        told.iter().all(|version| version.number == 1 || version.new_bytes.is_some()),
        "{told:?}"
    );
    // A number is decided once.
    let mut late = numbered(&store, 4);
    put(&mut late, 0, &[9]);
    let refused = late.commit().unwrap_err();
    assert!(refused.to_string().contains("number 4 of branch main was decided"), "{refused}");
    late.abort().unwrap();
    assert_eq!(fixed(&open(&store))[0], 2);
}

#[test]
fn a_number_that_is_skipped_or_aborted_lets_those_behind_it_go_on() {
    let store = shared();
    let path = Path::new(PATH);
    create(&store, path);
    let mut fifth = numbered(&store, 5);
    put(&mut fifth, 0, &[5]);
    assert_eq!(fifth.commit().unwrap(), Committed::Prepared(5));
    esker::skip(&*store, path, 3, "no third").unwrap();
    esker::skip(&*store, path, 3, "again").unwrap();
    let mut second = numbered(&store, 2);
    put(&mut second, 1, &[2]);
    second.commit().unwrap();
    assert_eq!(open(&store).container_version(), Some(2));
    assert_eq!(state(&store, 3), NumberState::GivenUp);
    numbered(&store, 4).abort().unwrap();
    assert_eq!(open(&store).container_version(), Some(5));
    assert_eq!(fixed(&open(&store))[..2], [5, 2]);
    assert!(at(&store, 4).is_err() && at(&store, 3).is_err());
    // What is a version cannot be given up, nor what will be.
    assert!(esker::skip(&*store, path, 5, "").is_err());
    let mut eighth = numbered(&store, 8);
    put(&mut eighth, 0, &[8]);
    eighth.commit().unwrap();
    assert!(esker::skip(&*store, path, 8, "").is_err());
    // An automatic one goes on with the next number, and what is prepared lies over it.
    let mut automatic = begin(&store, BeginOptions::new());
    put(&mut automatic, 2, &[6]);
    assert_eq!(automatic.commit().unwrap(), Committed::Version(6));
    esker::skip(&*store, path, 7, "").unwrap();
    assert_eq!(fixed(&open(&store))[..3], [8, 2, 6]);
}

#[test]
fn one_that_needs_another_is_given_up_with_it() {
    let store = shared();
    let path = Path::new(PATH);
    create(&store, path);
    let needing = |number: u64, needed: u64| {
        let mut tx = begin(&store, BeginOptions::new().number(number).needs(needed));
        put(&mut tx, number - 1, &[number as i32]);
        tx
    };
    // 5 needs 4, which needs 2; 6 needs 3.
    for (number, needed) in [(5, 4), (6, 3), (4, 2)] {
        assert_eq!(needing(number, needed).commit().unwrap(), Committed::Prepared(number));
    }
    let mut third = numbered(&store, 3);
    put(&mut third, 2, &[3]);
    third.commit().unwrap();
    numbered(&store, 2).abort().unwrap();
    let ds = open(&store);
    assert_eq!(ds.container_version(), Some(6));
    assert_eq!(fixed(&ds), [FILL, FILL, 3, FILL, FILL, 6, FILL, FILL]);
    for (number, expected) in [(4, NumberState::GivenUp), (5, NumberState::GivenUp)] {
        assert_eq!(state(&store, number), expected);
    }
    // Also where that is known when it is committed: it tells, and its number is given up.
    let mut late = needing(7, 4);
    let refused = late.commit().unwrap_err();
    assert!(matches!(refused, Error::GivenUp { .. }), "{refused}");
    assert_eq!(state(&store, 7), NumberState::GivenUp);
    // One without a number waits until it is told.
    let mut automatic = begin(&store, BeginOptions::new().needs(9));
    put(&mut automatic, 0, &[1]);
    let refused = automatic.commit().unwrap_err();
    assert!(refused.to_string().contains("nobody has decided"), "{refused}");
    assert!(matches!(refused, Error::Undecided { .. }));
    // What is put until then belongs to it, too.
    put(&mut automatic, 1, &[1]);
    let mut ninth = numbered(&store, 9);
    put(&mut ninth, 7, &[9]);
    ninth.commit().unwrap();
    esker::skip(&*store, path, 8, "").unwrap();
    assert_eq!(automatic.commit().unwrap(), Committed::Version(10));
    assert_eq!(fixed(&open(&store)), [1, 1, 3, FILL, FILL, 6, FILL, 9]);
    // No recovery brings back what was given up with another.
    let options = esker::ContainerRecoverOptions::default();
    let recovery = esker::recover_container(&store, path, options, &mut |_, _| {}).unwrap();
    assert_eq!(recovery.made, None, "{recovery:?}");
}

/// Dies, or fails, at every call of a commit whose turn has come, while two that were promised wait behind it.
#[test]
fn a_writer_that_dies_between_preparing_and_promotion_leaves_the_rest_to_the_next() {
    let full = Fault::Fail(std::io::ErrorKind::StorageFull);
    let run = |at: u64, fault: Fault| {
        let memory = MemoryStore::default();
        let store: Arc<dyn Store> = Arc::new(memory.clone());
        create(&store, Path::new(PATH));
        for number in [4, 3] {
            let mut tx = begin(&store, BeginOptions::new().number(number).durable(true));
            put(&mut tx, number - 2, &[number as i32, number as i32]);
            assert_eq!(tx.commit().unwrap(), Committed::Prepared(number));
        }
        let faulty = FaultyStore::new(memory.clone(), at, fault);
        let theirs: Arc<dyn Store> = Arc::new(faulty.clone());
        let told =
            Transaction::begin(PATH, BeginOptions::new().number(2).durable(true).store(theirs))
                .and_then(|mut tx| {
                    tx.put(FIXED, &Selection::slab(&[0], &[2]), &[2, 2])?;
                    let mut told = tx.commit();
                    if fault == full && told.is_err() {
                        told = tx.commit();
                    }
                    std::mem::forget(tx);
                    told
                });
        (memory, faulty.calls(), told)
    };
    let (_, calls, told) = run(u64::MAX, Fault::Kill);
    assert_eq!(told.unwrap(), Committed::Version(2));
    assert!(calls > 10, "{calls}");
    for at in 0..calls {
        for fault in [Fault::Kill, Fault::Tear, full] {
            for power in [true, false] {
                let (memory, _, told) = run(at, fault);
                if !power {
                    memory.lose_power();
                }
                let what = format!("{fault:?} at {at}, power {power}: {told:?}");
                let store: Arc<dyn Store> = Arc::new(memory);
                // Whoever comes next: he gives the number up, if nothing became of it.
                if state(&store, 2) == NumberState::Open {
                    assert!(told.is_err(), "{what}");
                    esker::skip(&*store, Path::new(PATH), 2, "died").unwrap();
                }
                let mut next = begin(&store, BeginOptions::new());
                put(&mut next, 7, &[5]);
                assert_eq!(next.commit().unwrap(), Committed::Version(5), "{what}");
                let second = match state(&store, 2) {
                    NumberState::Version => 2,
                    NumberState::GivenUp => FILL,
                    other => panic!("{what}: {other:?}"),
                };
                assert!(second == 2 || told.is_err(), "{what}");
                let expected = [second, 3, 4, 4, FILL, FILL, FILL, 5];
                assert_eq!(fixed(&open(&store)), expected, "{what}");
                for number in 3..=5 {
                    assert_eq!(state(&store, number), NumberState::Version, "{what}");
                }
            }
        }
    }
}

#[test]
fn definitions_with_a_number_are_committed_when_their_turn_is() {
    let store = shared();
    create(&store, Path::new(PATH));
    let defining = |number: u64, name: &str| {
        numbered(&store, number)
            .define(|def| {
                let x = def.schema().dim("x").unwrap();
                def.add_var(name, ExternalType::Int, &[x]).map(drop)
            })
            .unwrap()
    };
    let mut third = defining(3, "third");
    put(&mut third, 0, &[3]);
    let refused = third.commit().unwrap_err();
    assert!(refused.to_string().contains("number 2 is not decided yet"), "{refused}");
    let mut second = numbered(&store, 2);
    put(&mut second, 0, &[2, 2]);
    second.commit().unwrap();
    // The same one can be tried again.
    assert_eq!(third.commit().unwrap(), Committed::Version(3));
    let ds = open(&store);
    assert_eq!(fixed(&ds)[..2], [3, 2]);
    assert!(ds.var("third").is_ok());
    // Of two that change definitions, the later one has not seen the other's.
    let (mut a, mut b) = (defining(4, "a"), defining(5, "b"));
    a.commit().unwrap();
    let refused = b.commit().unwrap_err();
    assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
    b.abort().unwrap();
    let ds = open(&store);
    assert!(ds.var("a").is_ok() && ds.var("b").is_err());
    assert_eq!(state(&store, 5), NumberState::GivenUp);
}

#[test]
fn a_transaction_is_made_for_the_version_that_it_says() {
    let store = shared();
    create(&store, Path::new(PATH));
    for value in [1, 2] {
        let mut tx = begin(&store, BeginOptions::new());
        put(&mut tx, 0, &[value]);
        tx.commit().unwrap();
    }
    let mut old = begin(&store, BeginOptions::new().base(2));
    assert_eq!(fixed(&old)[0], 1);
    put(&mut old, 5, &[50]);
    assert_eq!(old.commit().unwrap(), Committed::Version(4));
    // What others have committed since is there, too.
    assert_eq!(fixed(&old)[..6], [2, FILL, FILL, FILL, FILL, 50]);
    let mut old = begin(&store, BeginOptions::new().base(2));
    put(&mut old, 0, &[60]);
    let refused = old.commit().unwrap_err();
    assert!(matches!(refused, Error::Conflict { version: 3, base: 2, .. }), "{refused}");
    old.abort().unwrap();
    assert_eq!(fixed(&open(&store))[0], 2);
}

#[test]
fn classic_files_have_no_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nc");
    Dataset::create(&path, CreateOptions::new()).unwrap().enddef().unwrap().close().unwrap();
    let refused = Transaction::begin(&path, BeginOptions::new()).unwrap_err();
    assert!(refused.to_string().contains("only containers have transactions"), "{refused}");
    let waited = Dataset::open_with(&path, OpenOptions::new().after(1, Some(Duration::ZERO)));
    assert!(waited.unwrap_err().to_string().contains("no container"));
}

#[test]
fn any_rank_may_abort_and_then_nobody_commits() {
    for aborting in [vec![2], vec![0], vec![0, 1, 2], vec![1, 2]] {
        let store = shared();
        create(&store, Path::new(PATH));
        let before = store.names_in(&Path::new(PATH).join("segments")).unwrap();
        let (theirs, aborting) = (store.clone(), aborting.clone());
        on_ranks(3, move |comm| {
            let me = comm.rank();
            let options = BeginOptions::new().number(2).store(theirs.clone()).comm(comm.clone());
            let mut tx = Transaction::begin(PATH, options).unwrap();
            put(&mut tx, me as u64, &[me as i32]);
            if aborting.contains(&me) {
                tx.abort().unwrap();
            } else {
                let refused = tx.commit().unwrap_err();
                let lowest = aborting[0];
                let said = format!("rank {lowest} has aborted it");
                assert!(refused.to_string().contains(&said), "{refused}");
                assert!(matches!(refused, Error::Aborted { .. }));
                assert_eq!(tx.outcome(), None);
            }
        });
        assert_eq!(state(&store, 2), NumberState::GivenUp);
        let ds = open(&store);
        assert_eq!(ds.container_version(), Some(1));
        assert_eq!(fixed(&ds), [FILL; X as usize]);
        let segments = store.names_in(&Path::new(PATH).join("segments")).unwrap();
        assert_eq!(segments, before, "nothing of it is left");
    }
}

#[test]
fn transactions_of_overlapping_ranks_go_on_at_once_and_interleaved() {
    let store = shared();
    create(&store, Path::new(PATH));
    on_ranks(4, move |comm| {
        let me = comm.rank();
        let half = comm.split(Some((me / 2) as u32), 0).unwrap().unwrap();
        let begin = |number: u64, comm: &Arc<dyn Communicator>| {
            let options = BeginOptions::new().number(number).store(store.clone());
            Transaction::begin(PATH, options.comm(comm.clone())).unwrap()
        };
        // One of all ranks, and one of each half, on every rank at once.
        let mut all = begin(4, &comm);
        let mut own = begin(2 + (me / 2) as u64, &half);
        for step in 0..2 {
            let place = Selection::element(&[me as u64 * 2 + step]);
            own.put_all(FIXED, &place, &[100 + me as i32]).unwrap();
            let mine = [step, me as u64];
            all.put_all(RECORD, &Selection::element(&mine), &[200 + me as i32]).unwrap();
        }
        assert_eq!(all.commit().unwrap(), Committed::Prepared(4));
        comm.barrier().unwrap();
        let became = own.commit().unwrap();
        assert_eq!(became.number(), 2 + (me / 2) as u64);
        comm.barrier().unwrap();
        // What the others had is in what is read afterwards, not in the transaction.
        let options = OpenOptions::new().store(store.clone()).comm(comm.clone());
        let mut ds = Dataset::open_with(PATH, options).unwrap();
        assert_eq!(ds.container_version(), Some(4));
        assert_eq!(fixed(&ds), [100, 100, 101, 101, 102, 102, 103, 103]);
        let records: Vec<i32> = ds.get_all(RECORD, &Selection::slab(&[0, 0], &[2, 4])).unwrap();
        assert_eq!(records, [200, 201, 202, 203, 200, 201, 202, 203]);
    });
}

#[test]
fn a_reader_waits_for_the_next_version_with_all_its_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.esk");
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let nothing = OpenOptions::new().after(0, Some(Duration::from_millis(3)));
    let waited = Dataset::open_with(&path, nothing).unwrap_err();
    assert!(matches!(waited, Error::NoVersionYet { after: 0, .. }), "{waited}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Before there is a container.
            let first = Dataset::open_with(&path, OpenOptions::new().after(0, None)).unwrap();
            assert_eq!(first.container_version(), Some(1));
            let path = path.clone();
            on_ranks(3, move |comm| {
                let options = OpenOptions::new().after(1, None).comm(comm.clone());
                let ds = Dataset::open_with(&path, options).unwrap();
                assert_eq!(ds.container_version(), Some(3));
                assert_eq!(fixed(&ds)[0], 3);
                let none = OpenOptions::new().after(3, Some(Duration::ZERO)).comm(comm);
                let late = Dataset::open_with(&path, none).unwrap_err();
                assert!(late.to_string().contains("no version behind 3"), "{late}");
            });
        });
        std::thread::sleep(Duration::from_millis(20));
        create(&store, &path);
        // One number is given up, and is not waited for; the next is.
        esker::skip(&LocalStore, &path, 2, "").unwrap();
        let mut tx = Transaction::begin(&path, BeginOptions::new()).unwrap();
        put(&mut tx, 0, &[3]);
        tx.commit().unwrap();
    });
    // A name is no version to wait for.
    esker::tag(&LocalStore, &path, "first", Some(1), "").unwrap();
    let seen: Vec<Option<u64>> = esker::follow(&path, 0, Some(Duration::ZERO), OpenOptions::new())
        .map(|version| version.unwrap().container_version())
        .collect();
    assert_eq!(seen, [Some(1), Some(3)]);
}
