//! A dataset that was made a moment ago, and of which nothing was promised, is redefined without waiting for the
//! disk: a killed process leaves the old or the new state all the same, and as soon as there is
//! something to lose, it waits.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use esker::{
    Alignment, CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Owner, Selection, Values,
    VarId, launch,
};
use esker_comm::Communicator;
use esker_store::{CountingStore, Fault, FaultyStore, LocalStore, MemoryStore, Store};

const TEXT: &str = "a title that makes the header longer than it was before";

fn made(
    store: Arc<dyn Store>,
    path: &Path,
    room: u64,
    comm: Option<Arc<dyn Communicator>>,
) -> Result<Dataset, esker::Error> {
    let align = Alignment { header_room: room, ..Alignment::default() };
    let mut options = CreateOptions::new().align(align).store(store);
    if let Some(comm) = comm {
        options = options.comm(comm);
    }
    let mut def = Dataset::create(path, options)?;
    let time = def.add_dim("time", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(6))?;
    let f = def.add_var("f", ExternalType::Double, &[x])?;
    let a = def.add_var("a", ExternalType::Short, &[time, x])?;
    let mut ds = def.enddef()?;
    ds.put_all(f, &Selection::all(), &[0.5, 1.5, 2.5, 3.5, 4.5, 5.5])?;
    ds.put_all(a, &Selection::slab(&[0, 0], &[3, 6]), &(0..18).collect::<Vec<i16>>())?;
    Ok(ds)
}

/// In place, with data that move, and with records that change their shape.
fn redefined(ds: Dataset, how: usize) -> Result<Dataset, esker::Error> {
    let mut def = ds.redef()?;
    match how {
        0 | 1 => def.put_attr(Owner::Global, "title", TEXT)?,
        _ => {
            let time = def.schema().dim("time").unwrap();
            def.add_var("c", ExternalType::Float, &[time])?;
        }
    }
    Ok(def.enddef()?)
}

const ROOMS: [u64; 3] = [400, 0, 0];

#[test]
fn a_killed_redefinition_of_a_dataset_just_made_leaves_the_old_or_the_new_state() {
    let path = Path::new("/run/young.nc");
    let see = |store: &MemoryStore, writable: bool| -> (esker::Schema, u64, Vec<Values>) {
        let options = OpenOptions::new().writable(writable).store(Arc::new(store.clone()));
        let ds = Dataset::open_with(path, options).unwrap();
        let vars = 0..ds.schema().vars.len();
        let values = vars.map(|i| ds.get_values(VarId(i), &Selection::all()).unwrap()).collect();
        (ds.schema().clone(), ds.numrecs(), values)
    };
    for (how, room) in ROOMS.into_iter().enumerate() {
        let store = MemoryStore::default();
        let counting = FaultyStore::new(store.clone(), u64::MAX, Fault::Kill);
        let ds = made(Arc::new(counting.clone()), path, room, None).unwrap();
        let (first, old) = (counting.calls(), see(&store, false));
        drop(redefined(ds, how).unwrap());
        let (last, new) = (counting.calls(), see(&store, false));
        assert!(old != new && last > first);
        for (at, fault) in (first..last).flat_map(|at| [(at, Fault::Kill), (at, Fault::Tear)]) {
            let store = MemoryStore::default();
            let faulty = FaultyStore::new(store.clone(), at, fault);
            let ds = made(Arc::new(faulty), path, room, None).unwrap();
            let done = redefined(ds, how).map(drop);
            for writable in [false, true] {
                let seen = see(&store, writable);
                let what = format!("{how}, {fault:?} at {at}, {done:?}");
                assert!(seen == old || seen == new, "{what}: {seen:#?}");
            }
        }
    }
}

/// How often the disk was waited for while `act` ran.
fn waits<T>(store: &CountingStore<LocalStore>, act: impl FnOnce() -> T) -> (u64, T) {
    let before = store.counts().syncs.load(Ordering::Relaxed);
    let done = act();
    (store.counts().syncs.load(Ordering::Relaxed) - before, done)
}

#[test]
fn a_redefinition_waits_for_the_disk_only_where_there_is_something_to_lose() {
    for ranks in [1, 3] {
        for (how, room) in ROOMS.into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("young.nc");
            let store = CountingStore::new(LocalStore);
            let what = format!("{ranks} ranks, {how}");
            let open = |comm: Arc<dyn Communicator>| {
                let options = OpenOptions::new().writable(true).comm(comm);
                Dataset::open_with(&path, options.store(Arc::new(store.clone()))).unwrap()
            };
            let fresh = |comm: Arc<dyn Communicator>| {
                made(Arc::new(store.clone()), &path, room, Some(comm)).unwrap()
            };
            let on_ranks = |act: &(dyn Fn(Arc<dyn Communicator>) + Sync)| {
                waits(&store, || launch(ranks, act)).0
            };

            let n = on_ranks(&|comm| redefined(fresh(comm), how).unwrap().close().unwrap());
            assert_eq!(n, 0, "{what}: a new dataset");
            let n = on_ranks(&|comm| redefined(fresh(comm), how).unwrap().close().unwrap());
            assert_eq!(n, 0, "{what}: in place of one that this process has just made");

            std::fs::remove_file(&path).unwrap();
            launch(ranks, |comm| fresh(comm).close().unwrap());
            let n = on_ranks(&|comm| redefined(open(comm), how).unwrap().close().unwrap());
            assert_eq!(n, 0, "{what}: closed and opened again");

            std::fs::remove_file(&path).unwrap();
            let n = on_ranks(&|comm| {
                let mut ds = fresh(comm);
                ds.sync().unwrap();
                redefined(ds, how).unwrap().close().unwrap();
            });
            assert!(n > ranks as u64, "{what}: after a sync, {n}");
            let n = on_ranks(&|comm| fresh(comm).close().unwrap());
            assert!(n > 0, "{what}: in place of one that was synced");
            let n = on_ranks(&|comm| redefined(open(comm), how).unwrap().close().unwrap());
            assert_eq!(n, 0, "{what}: the one that took its place, whose name is waited for");
            let n = on_ranks(&|comm| redefined(fresh(comm), how).unwrap().close().unwrap());
            assert_eq!(n, 0, "{what}: in place of that, when its name is safe");

            std::fs::remove_file(&path).unwrap();
            launch(ranks, |comm| fresh(comm).close().unwrap());
            // Another program has written to it, and may have closed it long ago.
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let n = on_ranks(&|comm| redefined(open(comm), how).unwrap().close().unwrap());
            assert!(n > 0, "{what}: changed by another program");
        }
    }
}

#[test]
fn what_was_replaced_does_not_come_back_with_a_redefinition_that_did_not_wait() {
    let path = Path::new("/run/young.nc");
    for (how, room) in ROOMS.into_iter().enumerate() {
        let store = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let mut def = Dataset::create(path, CreateOptions::new().store(shared.clone())).unwrap();
        def.put_attr(Owner::Global, "title", "what was there before").unwrap();
        let mut old = def.enddef().unwrap();
        old.sync().unwrap();
        old.close().unwrap();

        let new = redefined(made(shared.clone(), path, room, None).unwrap(), how).unwrap();
        // Whatever a disk has written of it: the old dataset has lost its name, and is not missed. Its successor
        // is there as it was made or as it was redefined, but for values that nobody has synced.
        let kept = store.fork();
        kept.lose_power();
        let shared: Arc<dyn Store> = Arc::new(kept);
        let found = Dataset::open_with(path, OpenOptions::new().store(shared)).unwrap();
        assert!(found.schema().vars.iter().any(|var| &*var.name == "a"), "{how}");
        drop(new);
    }
}
