//! Every change of the store fails once, or is the last one of the process: afterwards every chunk
//! is as it was before the call or after it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, OpenOptions, Owner,
    Requests, Schema, Selection, VarId,
};
use esker_store::{Fault, FaultyStore, MemoryStore, Store};

use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/chunks.nc";
const FULL: io::ErrorKind = io::ErrorKind::StorageFull;
const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Tear, Fault::Fail(FULL), Fault::FailHalf(FULL)];

/// No disk and no page cache tears what lies in one of these.
const SECTOR: u64 = 512;

type Done = Result<(), Error>;
type Step = fn(&Arc<dyn Communicator>, &Place) -> Done;

/// In one file, or in a folder with data files for all ranks or for each.
type Form = &'static str;
const INSIDE: Form = "inside";

/// Where the dataset is, and its form.
#[derive(Clone)]
struct Place {
    store: Arc<dyn Store>,
    form: Form,
    /// Whether chunks are to be on the disk before tables.
    ordered: bool,
}

impl Place {
    fn hints(&self) -> Hints {
        let mut hints = Hints::default();
        // Several rounds in every call.
        hints.set("esker_chunk_buffer", "300");
        if self.form != INSIDE {
            hints.set("esker_chunk_files", self.form);
        }
        if self.ordered {
            hints.set("esker_chunk_rewrite", "ordered");
        }
        hints
    }
}

fn is_there(store: &MemoryStore) -> bool {
    store.exists(&esker::classic_of(store, Path::new(PATH)).unwrap()).unwrap()
}

/// Values that hardly become shorter, and are others every time.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 52) as f64
    };
    (0..n).map(|_| next()).collect()
}

fn define(
    comm: &Arc<dyn Communicator>,
    place: &Place,
    with_records: bool,
) -> Result<Dataset, Error> {
    let (store, hints) = (place.store.clone(), place.hints());
    let options = CreateOptions::new().comm(comm.clone()).store(store).hints(hints);
    let mut def = Dataset::create(PATH, options)?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let y = def.add_dim("y", DimLen::Fixed(6))?;
    let x = def.add_dim("x", DimLen::Fixed(8))?;
    let f = def.add_var("f", ExternalType::Int, &[y, x])?;
    def.set_chunks(f, &[4, 3])?;
    def.set_filters(f, "shuffle zstd,3")?;
    let r = def.add_var("r", ExternalType::Double, &[t, x])?;
    def.set_chunks(r, &[1, 3])?;
    def.set_filters(r, "deflate,1")?;
    let g = def.add_var("g", ExternalType::Short, &[t, x])?;
    def.set_chunks(g, &[3, 5])?;
    def.add_var("plain", ExternalType::Int, &[x])?;
    if with_records {
        def.add_var("traditional", ExternalType::Int, &[t])?;
    }
    Ok(def.enddef()?)
}

/// Writes all of `f`, and records of `r` and `g`, in one call; each rank has a part of every chunk.
fn write(ds: &mut Dataset, comm: &dyn Communicator, seed: u64, first: u64, records: u64) -> Done {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let (f, r, g) = (ds.var("f")?, ds.var("r")?, ds.var("g")?);
    let columns = (8 - me).div_ceil(ranks);
    let part =
        |rows: u64, first: u64| Selection::strided(&[first, me], &[rows, columns], &[1, ranks]);
    let mine = |seed: u64, rows: u64, first: u64| -> Vec<f64> {
        let all = noise(seed, (8 * (first + rows)) as usize);
        let of_me = |(i, v): (usize, f64)| {
            let (row, column) = (i as u64 / 8, i as u64 % 8);
            (row >= first && column % ranks == me).then_some(v)
        };
        all.into_iter().enumerate().filter_map(of_me).collect()
    };
    let (of_f, of_r, of_g) =
        (mine(seed, 6, 0), mine(seed + 1, records, first), mine(seed + 2, records, first));
    let mut queue = Requests::new();
    ds.iput(&mut queue, f, &part(6, 0), &of_f)?;
    ds.iput(&mut queue, r, &part(records, first), &of_r)?;
    ds.iput(&mut queue, g, &part(records, first), &of_g)?;
    ds.wait_all(&mut queue)
}

fn base(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    based(define(comm, place, false)?, comm)
}

/// The same before records of a traditional variable.
fn base_with_records(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    based(define(comm, place, true)?, comm)
}

fn based(mut ds: Dataset, comm: &Arc<dyn Communicator>) -> Done {
    write(&mut ds, &**comm, 10, 0, 4)?;
    ds.sync()?;
    ds.close()
}

fn reopened(comm: &Arc<dyn Communicator>, place: &Place) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(true).comm(comm.clone());
    Dataset::open_with(PATH, options.store(place.store.clone()).hints(place.hints()))
}

/// Makes a call, and once more if it failed, as a program that found room on its disk would.
fn again(mut call: impl FnMut() -> Done) -> Done {
    call().or_else(|_| call())
}

fn create(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    define(comm, place, false)?.close()
}

fn rewrite(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    let mut ds = reopened(comm, place)?;
    again(|| write(&mut ds, &**comm, 20, 0, 4))?;
    again(|| ds.sync())?;
    ds.close()
}

/// Twice over, so that places of the first are holes for the second.
fn rewrite_twice(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    let mut ds = reopened(comm, place)?;
    again(|| write(&mut ds, &**comm, 20, 0, 4))?;
    again(|| write(&mut ds, &**comm, 20, 0, 4))?;
    again(|| write(&mut ds, &**comm, 20, 0, 4))?;
    ds.close()
}

fn rewrite_twice_in_order(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    rewrite_twice(comm, &Place { ordered: true, ..place.clone() })
}

/// So many records that tables become longer.
fn append(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    let mut ds = reopened(comm, place)?;
    again(|| write(&mut ds, &**comm, 10, 0, 40))?;
    again(|| ds.sync())?;
    ds.close()
}

fn append_in_order(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    append(comm, &Place { ordered: true, ..place.clone() })
}

fn redefine(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    let mut def = reopened(comm, place)?.redef()?;
    let x = def.schema().dim("x").unwrap();
    let more = def.add_var("more", ExternalType::Float, &[x])?;
    def.set_filters(more, "lz4")?;
    def.put_attr(Owner::Global, "title", "t".repeat(9000))?;
    let ds = match def.enddef() {
        Ok(ds) => ds,
        Err(failed) => failed.define.enddef()?,
    };
    ds.close()
}

/// A variable more, where there is room for it.
fn redefine_in_place(comm: &Arc<dyn Communicator>, place: &Place) -> Done {
    let mut def = reopened(comm, place)?.redef()?;
    def.rename_var("f", "e")?;
    let ds = match def.enddef() {
        Ok(ds) => ds,
        Err(failed) => failed.define.enddef()?,
    };
    ds.close()
}

#[derive(Debug, Clone, PartialEq)]
struct Seen {
    schema: Schema,
    records: u64,
    /// Of each variable: how many columns, then all values; and the shape of its chunks.
    values: Vec<(Vec<f64>, Option<[u64; 2]>)>,
}

/// Reads everything, and compares every stored chunk with its checksum.
fn see(store: &MemoryStore, writable: bool, what: &str) -> Option<Seen> {
    if !is_there(store) {
        return None;
    }
    let options = || OpenOptions::new().store(Arc::new(store.clone()));
    let ds = Dataset::open_with(PATH, options().writable(writable));
    let ds = ds.unwrap_or_else(|e| panic!("{what}: {e}"));
    require_sound(&ds, what);
    let mut values = Vec::new();
    for var in (0..ds.schema().vars.len()).map(VarId) {
        let read = ds.get::<f64>(var, &Selection::all());
        let chunk = ds.chunking(var).map(|chunking| {
            ds.stored_chunks(var, true, |_, _| Ok(())).unwrap_or_else(|e| panic!("{what}: {e}"));
            match chunking.chunk[..] {
                [a, b] => [a, b],
                _ => [1, 8],
            }
        });
        values.push((read.unwrap_or_else(|e| panic!("{what}: {e}")), chunk));
    }
    Some(Seen { schema: ds.schema().clone(), records: ds.numrecs(), values })
}

/// To a program that knows nothing of chunks the file is a classic one: fixed variables in the order of
/// definition, whatever comes behind them, and the last of them where the chunks end.
fn require_sound(ds: &Dataset, what: &str) {
    let header = ds.header();
    let fixed = header.vars().filter(|(_, variable, _)| !header.schema.is_record(variable));
    let mut end = header.layout.header_len;
    for (_, variable, place) in fixed {
        assert!(place.begin >= end, "{what}: {} at {}, before {end}", variable.name, place.begin);
        end = place.begin + place.vsize;
    }
    let records = header.layout.record_begin;
    assert!(records.is_none_or(|begin| begin >= end), "{what}: {records:?}, before {end}");
    let beside = header.schema.attrs.get("__chunk_files").is_some();
    let last = header.schema.vars.iter().last().map(|v| &*v.name);
    assert_eq!(last == Some("__chunk_end"), !beside, "{what}");
}

/// The file ends with its chunks, and they with their variable.
fn require_whole(store: &MemoryStore, what: &str) {
    let ds = Dataset::open_with(PATH, OpenOptions::new().store(Arc::new(store.clone()))).unwrap();
    if ds.header().layout.record_begin.is_some() {
        return;
    }
    assert_eq!(ds.file_len().unwrap(), ds.header().data_end(ds.numrecs()), "{what}");
}

/// Every chunk is the old one or the new one.
fn require_between(seen: &Seen, old: &Seen, new: &Seen, what: &str) {
    let either = seen.schema == old.schema || seen.schema == new.schema;
    assert!(either, "{what}: {:?}", seen.schema);
    assert!([old.records, new.records].contains(&seen.records), "{what}: {}", seen.records);
    if old.schema != new.schema {
        // A redefinition is whole.
        assert!(seen == old || seen == new, "{what}");
        return;
    }
    let all = seen.values.iter().zip(&old.values).zip(&new.values);
    for (var, (((seen, chunk), (old, _)), (new, _))) in all.enumerate() {
        let Some([rows, columns]) = *chunk else {
            assert!(seen == old || seen == new, "{what}: {seen:?}");
            continue;
        };
        for (i, value) in seen.iter().enumerate() {
            let (row, column) = (i as u64 / 8, i as u64 % 8);
            // The same for all elements of the chunk that the old dataset has.
            let whole = |of: &[f64]| {
                let of_chunk = |j: usize| {
                    let (r, c) = (j as u64 / 8, j as u64 % 8);
                    r / rows == row / rows && c / columns == column / columns
                };
                (0..seen.len())
                    .filter(|j| of_chunk(*j))
                    .all(|j| of.get(j).is_none_or(|v| seen[j] == *v))
            };
            assert!(
                whole(old) || whole(new),
                "{what}: variable {var}, row {row}, column {column} is {value}"
            );
        }
    }
}

/// What is there, and what then happens.
const STEPS: [(&str, Step, Step); 8] = [
    ("create", base, create),
    ("rewrite", base, rewrite),
    ("rewrite thrice", base, rewrite_twice),
    ("append", base, append),
    ("redefine", base, redefine),
    ("redefine in place", base, redefine_in_place),
    ("make room to rewrite", base_with_records, rewrite_twice),
    ("make room to append", base_with_records, append),
];

fn prepared((ranks, form): (usize, Form), base: Step) -> MemoryStore {
    let store = MemoryStore::default();
    let place = Place { store: Arc::new(store.clone()), form, ordered: false };
    on_ranks(ranks, move |comm| base(&comm, &place).unwrap());
    store
}

/// Runs a step on a copy of the prepared dataset with a fault at a call.
fn with_fault(
    (ranks, form): (usize, Form),
    (base, step): (Step, Step),
    at: u64,
    fault: Fault,
) -> (MemoryStore, Vec<bool>, bool) {
    let store = prepared((ranks, form), base);
    let faulty = FaultyStore::with_sectors(store.clone(), at, fault, SECTOR);
    let place = Place { store: Arc::new(faulty.clone()), form, ordered: false };
    let outcomes = on_ranks(ranks, move |comm| step(&comm, &place).is_ok());
    (store, outcomes, faulty.calls() > at)
}

/// What was left behind can be written and is then what was written.
fn goes_on(store: &MemoryStore, (ranks, form): (usize, Form), what: &str) {
    if !is_there(store) {
        return;
    }
    let place = Place { store: Arc::new(store.clone()), form, ordered: false };
    let done = on_ranks(ranks, move |comm| -> Done {
        let mut ds = reopened(&comm, &place)?;
        let Ok(f) = ds.var("f").or(ds.var("e")) else { return ds.close() };
        // One column of each variable, so that the rest comes from what is stored.
        let column = |rows: u64, at: u64| match comm.rank() {
            0 => Selection::slab(&[at, 0], &[rows, 1]),
            _ => Selection::none(),
        };
        let values = |rows: u64| match comm.rank() {
            0 => vec![7.0; rows as usize],
            _ => Vec::new(),
        };
        ds.put_all(f, &column(6, 0), &values(6))?;
        let records = ds.numrecs();
        for name in ["g", "r"] {
            let var = ds.var(name)?;
            ds.put_all(var, &column(3, records), &values(3))?;
        }
        ds.close()
    });
    assert!(done.iter().all(Result::is_ok), "{what}: {done:?}");
    require_whole(store, what);
    let seen = see(store, false, what).unwrap();
    for (values, chunk) in seen.values.iter().filter(|(_, chunk)| chunk.is_some()) {
        let new = match values.len() == 48 && *chunk == Some([4, 3]) {
            true => &values[..],
            false => &values[values.len().saturating_sub(24)..],
        };
        assert!(new.chunks(8).all(|row| row[0] == 7.0 || new.len() == 8), "{what}: {new:?}");
        if new.len() == 24 {
            // Nobody has written the other columns of these records: a killed call does not count.
            let fill = new[1];
            assert!(fill == -32767.0 || fill > 9e36, "{what}: {new:?}");
            let others = new.chunks(8).all(|row| row[1..].iter().all(|v| *v == fill));
            assert!(others, "{what}: {new:?}");
        }
    }
}

fn every_change_may_fail(ranks: usize, form: Form, faults: &[Fault]) {
    let how = (ranks, form);
    for (name, base, step) in STEPS {
        let (old, done) =
            (prepared(how, base), with_fault(how, (base, step), u64::MAX, Fault::Kill));
        assert!(done.1.iter().all(|ok| *ok), "{name}");
        let (old, new) = (see(&old, false, name).unwrap(), see(&done.0, false, name).unwrap());
        assert_ne!(old, new, "{name}");
        for at in 0.. {
            let mut hits = 0;
            for fault in faults.iter().copied() {
                let (store, outcomes, hit) = with_fault(how, (base, step), at, fault);
                let what = format!("{name} on {ranks} ranks, chunks {form}, {fault:?} at {at}");
                hits += usize::from(hit);
                let failed = outcomes.iter().filter(|ok| !**ok).count();
                assert!(failed == 0 || failed == ranks, "{what}: {failed} failed");
                let reading = see(&store, false, &what).unwrap();
                if failed == 0 {
                    assert_eq!(reading, new, "{what}");
                }
                require_between(&reading, &old, &new, &what);
                // A writer finishes a redefinition; what it found is found again.
                let writing = see(&store, true, &what).unwrap();
                require_between(&writing, &old, &new, &what);
                assert_eq!(see(&store, false, &what).unwrap(), writing, "{what}");
                goes_on(&store, how, &what);
            }
            if hits == 0 {
                assert!(at > 2, "{name}: only {at} faults were tried");
                break;
            }
        }
    }
}

#[test]
fn every_change_of_one_rank_may_fail() {
    every_change_may_fail(1, INSIDE, &FAULTS);
}

#[test]
fn every_change_of_three_ranks_may_fail() {
    every_change_may_fail(3, INSIDE, &[Fault::Tear, Fault::FailHalf(FULL)]);
}

#[test]
fn every_change_of_one_rank_may_fail_beside_the_classic_file() {
    every_change_may_fail(1, "rank", &[Fault::Kill, Fault::FailHalf(FULL)]);
}

#[test]
fn every_change_of_three_ranks_may_fail_beside_the_classic_file() {
    every_change_may_fail(3, "rank", &[Fault::Tear]);
    every_change_may_fail(3, "shared", &[Fault::FailHalf(FULL)]);
}

fn power_may_fail(ranks: usize, form: Form) {
    let how = (ranks, form);
    for (name, base, step) in STEPS {
        let (old, done) =
            (prepared(how, base), with_fault(how, (base, step), u64::MAX, Fault::Kill));
        let (old, new) = (see(&old, false, name).unwrap(), see(&done.0, false, name).unwrap());
        for at in 0.. {
            let (store, _, hit) = with_fault(how, (base, step), at, Fault::Kill);
            let what = format!("{name} on {ranks} ranks, chunks {form}, no power at {at}");
            store.lose_power();
            let seen = see(&store, false, &what).unwrap();
            require_between(&seen, &old, &new, &what);
            goes_on(&store, how, &what);
            if !hit {
                break;
            }
        }
    }
}

#[test]
fn a_loss_of_power_leaves_what_the_last_sync_promised() {
    power_may_fail(1, INSIDE);
    power_may_fail(3, INSIDE);
}

#[test]
fn a_loss_of_power_leaves_what_the_last_sync_promised_beside_the_classic_file() {
    power_may_fail(1, "shared");
    power_may_fail(3, "rank");
}

/// Some of what was not synced has reached the disk, in any order.
fn lose_power_in_part(store: &MemoryStore, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    store.lose_power_but_sectors(SECTOR, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 63 == 0
    });
}

#[test]
fn a_loss_of_power_on_a_disk_that_changes_the_order_leaves_old_or_new_chunks_if_asked() {
    for (ranks, form) in [(1, INSIDE), (3, "rank")] {
        let how = (ranks, form);
        let steps = [("rewrite", rewrite_twice_in_order as Step), ("append", append_in_order)];
        for (name, step) in steps {
            let old = prepared(how, base);
            let done = with_fault(how, (base, step), u64::MAX, Fault::Kill);
            let (old, new) = (see(&old, false, name).unwrap(), see(&done.0, false, name).unwrap());
            for at in 0.. {
                let mut hits = 0;
                for seed in 0..2 {
                    let (store, _, hit) = with_fault(how, (base, step), at, Fault::Kill);
                    hits += usize::from(hit);
                    let what = format!(
                        "{name} on {ranks} ranks, chunks {form}, no power at {at}, disk {seed}"
                    );
                    lose_power_in_part(&store, at * 2 + seed);
                    let seen = see(&store, false, &what).unwrap();
                    require_between(&seen, &old, &new, &what);
                    goes_on(&store, how, &what);
                }
                if hits == 0 {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_disk_that_changes_the_order_never_makes_other_values() {
    let how = (1, INSIDE);
    let (old, done) =
        (prepared(how, base), with_fault(how, (base, rewrite_twice), u64::MAX, Fault::Kill));
    let (old, new) = (see(&old, false, "old").unwrap(), see(&done.0, false, "new").unwrap());
    let mut damaged = 0;
    for at in 0.. {
        let (store, _, hit) = with_fault(how, (base, rewrite_twice), at, Fault::Kill);
        lose_power_in_part(&store, at);
        let options = OpenOptions::new().store(Arc::new(store.clone()));
        let ds = Dataset::open_with(PATH, options).unwrap();
        for (var, ((old, _), (new, _))) in old.values.iter().zip(&new.values).enumerate() {
            for i in 0..old.len() {
                let shape = ds.shape(VarId(var)).unwrap();
                let index = if shape.len() == 2 {
                    vec![i as u64 / 8, i as u64 % 8]
                } else {
                    vec![i as u64]
                };
                match ds.get::<f64>(VarId(var), &Selection::element(&index)) {
                    Ok(values) => {
                        assert!(values[0] == old[i] || values[0] == new[i], "{at}: {var}")
                    }
                    Err(Error::Chunked { .. }) => damaged += 1,
                    Err(error) => panic!("{at}: {error}"),
                }
            }
        }
        if !hit {
            break;
        }
    }
    println!("{damaged} elements could not be read");
}

#[test]
fn what_a_failed_call_has_left_does_not_appear_with_later_records() {
    for ranks in [1, 3] {
        for at in 0.. {
            let store = prepared((ranks, INSIDE), base_with_records);
            let fault = Fault::Fail(FULL);
            let faulty = FaultyStore::with_sectors(store.clone(), at, fault, SECTOR);
            let place = Place { store: Arc::new(faulty.clone()), form: INSIDE, ordered: false };
            let failed = on_ranks(ranks, move |comm| {
                let mut ds = reopened(&comm, &place).unwrap();
                let failed = write(&mut ds, &*comm, 60, 4, 3).is_err();
                if failed && ds.numrecs() == 4 {
                    // Another variable has more records now.
                    let var = ds.var("traditional").unwrap();
                    let (selection, values) = match comm.rank() {
                        0 => (Selection::slab(&[4], &[3]), vec![1, 2, 3]),
                        _ => (Selection::none(), Vec::new()),
                    };
                    ds.put_all(var, &selection, &values).unwrap();
                }
                let closed = ds.close();
                assert!(!failed || closed.is_ok(), "{closed:?}");
                failed
            });
            let what = format!("{ranks} ranks, full at {at}");
            if !failed.contains(&true) {
                assert!(at > 5, "{what}");
                break;
            }
            let seen = see(&store, false, &what).unwrap();
            assert_eq!(seen.records, 7, "{what}");
            for (values, _) in seen.values.iter().filter(|(values, _)| values.len() == 56) {
                let fill = values[32];
                assert!(fill == -32767.0 || fill > 9e36, "{what}: {values:?}");
                assert!(values[32..].iter().all(|value| *value == fill), "{what}: {values:?}");
            }
        }
    }
}

/// One rank, and calls of its own alone: a write of chunks that failed leaves nothing that a record shows which
/// another variable makes afterwards.
#[test]
fn what_a_failed_put_has_left_is_gone_before_another_variable_counts_the_record() {
    let mut failures = 0;
    for at in 0.. {
        let faulty = Arc::new(FaultyStore::new(MemoryStore::default(), at, Fault::Fail(FULL)));
        let made = (|| -> Result<_, Error> {
            let options = CreateOptions::new().store(faulty.clone());
            let mut def = Dataset::create(PATH, options)?;
            let (time, x) =
                (def.add_dim("time", DimLen::Unlimited)?, def.add_dim("x", DimLen::Fixed(6))?);
            let chunks = def.add_var("chunks", ExternalType::Double, &[time, x])?;
            def.set_chunks(chunks, &[1, 3])?;
            let plain = def.add_var("plain", ExternalType::Double, &[time])?;
            let mut ds = def.enddef()?;
            ds.put(chunks, &Selection::slab(&[0, 0], &[1, 6]), &[1.0; 6])?;
            Ok((ds, chunks, plain))
        })();
        let Ok((mut ds, chunks, plain)) = made else { continue };
        let second = Selection::slab(&[1, 0], &[1, 6]);
        let put = ds.put(chunks, &second, &[2.0; 6]);
        if faulty.calls() <= at {
            break;
        }
        if put.is_ok() {
            continue;
        }
        failures += 1;
        ds.put(plain, &Selection::element(&[1]), &[3.0]).unwrap();
        let found: Vec<f64> = ds.get(chunks, &second).unwrap();
        assert!(found.iter().all(|v| *v != 2.0), "change {at}: {found:?}");
    }
    assert!(failures > 2, "{failures}");
}
