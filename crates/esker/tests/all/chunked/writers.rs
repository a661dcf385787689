//! Two writers of one dataset: the second gets a sentence, on every rank, and nothing is lost.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use esker::{
    Alignment, Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints,
    OpenOptions, Owner, RecoverOptions, Selection, SelfComm, VarId,
};
use esker_store::{
    CreateMode, File, FileLayer, Layer, LocalStore, Locking, MemoryStore, Result as Stored, Store,
};

use esker_testkit::ranks::on_ranks;

/// A store whose files have no locks, as Lustre and NFS are mounted sometimes.
#[derive(Debug, Clone)]
struct WithoutLocks(MemoryStore);

#[derive(Debug)]
struct WithoutLock(Arc<dyn File>);

impl Layer for WithoutLocks {
    fn below(&self) -> &dyn Store {
        &self.0
    }

    fn cover(&self, _: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(WithoutLock(file))
    }
}

impl FileLayer for WithoutLock {
    fn below(&self) -> &dyn File {
        &*self.0
    }

    fn lock(&self) -> Stored<Locking> {
        Ok(Locking::Unsupported)
    }
}

const FORMS: [&str; 3] = ["inside", "rank", "shared"];

fn hints(form: &str) -> Hints {
    let mut hints = Hints::default();
    if form != "inside" {
        hints.set("esker_chunk_files", form);
    }
    hints
}

fn alone() -> Arc<dyn Communicator> {
    Arc::new(SelfComm::new())
}

/// A dataset with `v(t, x)` in chunks, and a plain `p(t)`; four records were written and synced.
fn create(path: &Path, store: &Arc<dyn Store>, form: &str) -> Result<Dataset, Error> {
    let options = CreateOptions::new().store(store.clone()).hints(hints(form));
    let mut def = Dataset::create(path, options)?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let x = def.add_dim("x", DimLen::Fixed(50))?;
    let v = def.add_var("v", ExternalType::Int, &[t, x])?;
    def.set_chunks(v, &[1, 20])?;
    def.set_filters(v, "zstd")?;
    let mut ds = def.enddef()?;
    put(&mut ds, 0, 4, 0)?;
    ds.sync()?;
    Ok(ds)
}

fn put(ds: &mut Dataset, first: u64, records: u64, seed: i32) -> Result<(), Error> {
    let comm = ds.comm().clone();
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let count = (50 - me).div_ceil(ranks);
    let mine = Selection::strided(&[first, me], &[records, count], &[1, ranks]);
    let value = |i: u64| of(first + i / count, me + i % count * ranks, seed);
    let values: Vec<i32> = (0..records * count).map(value).collect();
    ds.put_all(VarId(0), &mine, &values)
}

fn of(record: u64, x: u64, seed: i32) -> i32 {
    seed * 100_000 + (record * 100 + x) as i32
}

/// The seed of every record of a dataset, all of whose chunks are whole.
fn seeds(path: &Path, store: &Arc<dyn Store>) -> Vec<i32> {
    let ds = Dataset::open_with(path, OpenOptions::new().store(store.clone())).unwrap();
    assert!(ds.examine_chunks(&mut |_, _| ()).unwrap().is_empty());
    let all: Vec<i32> = ds.get(VarId(0), &Selection::all()).unwrap();
    let record = |(record, values): (usize, &[i32])| {
        let seed = values[0] / 100_000;
        let expected: Vec<i32> = (0..50).map(|x| of(record as u64, x, seed)).collect();
        assert_eq!(values, expected, "record {record} is a mixture");
        seed
    };
    all.chunks(50).enumerate().map(record).collect()
}

fn open(
    path: &Path,
    store: &Arc<dyn Store>,
    form: &str,
    comm: &Arc<dyn Communicator>,
) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(true).store(store.clone()).hints(hints(form));
    Dataset::open_with(path, options.comm(comm.clone()))
}

fn require_sentence(error: &Error, path: &Path, words: &str) {
    let text = error.to_string();
    assert!(matches!(error, Error::Writers { .. } | Error::OtherRank { .. }), "{error:?}");
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(words) && text.contains(name), "{text}");
}

#[test]
fn the_second_writer_gets_a_sentence_on_every_rank_and_readers_are_let_in() {
    let memory = MemoryStore::default();
    let dir = tempfile::tempdir().unwrap();
    let places: [(PathBuf, Arc<dyn Store>); 2] = [
        ("/run/two.nc".into(), Arc::new(memory)),
        (dir.path().join("two.nc"), Arc::new(LocalStore)),
    ];
    for (path, store) in places {
        for form in FORMS {
            let path = path.with_extension(form);
            let mut first = create(&path, &store, form).unwrap();
            for ranks in [1, 3] {
                let (path, store) = (path.clone(), store.clone());
                let errors = on_ranks(ranks, move |comm| {
                    open(&path, &store, form, &comm).map(drop).unwrap_err()
                });
                for error in errors {
                    require_sentence(&error, Path::new("two"), "one writer at a time");
                    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
                }
            }
            let over = create(&path, &store, form).unwrap_err();
            require_sentence(&over, Path::new("two"), "open for writing");
            assert_eq!(seeds(&path, &store), [0; 4], "readers are let in");
            put(&mut first, 1, 1, 1).unwrap();
            first.close().unwrap();
            // The next one has it, whether it is one rank or three.
            let (again, shared) = (path.clone(), store.clone());
            on_ranks(3, move |comm| {
                let mut ds = open(&again, &shared, form, &comm).unwrap();
                put(&mut ds, 2, 3, 2).unwrap();
                ds.close().unwrap();
            });
            assert_eq!(seeds(&path, &store), [0, 1, 2, 2, 2]);
            // One that is dropped without being closed leaves no lock either.
            drop(open(&path, &store, form, &alone()).unwrap());
            drop(open(&path, &store, form, &alone()).unwrap());
        }
    }
}

/// Both have it open; who writes first, writes, and the other one hears of it before it destroys anything.
#[test]
fn without_locks_the_second_to_write_gets_a_sentence_on_every_rank() {
    for form in FORMS {
        for (first_ranks, second_ranks) in [(1, 1), (1, 3), (3, 1)] {
            let store: Arc<dyn Store> = Arc::new(WithoutLocks(MemoryStore::default()));
            let path = PathBuf::from("/run/lockless.nc");
            create(&path, &store, form).unwrap().close().unwrap();
            let start = |ranks: usize| {
                let (path, store) = (path.clone(), store.clone());
                on_ranks(ranks, move |comm| open(&path, &store, form, &comm).unwrap())
            };
            let with = |ranks: Vec<Dataset>, call: fn(&mut Dataset) -> Result<(), Error>| {
                let ranks = Mutex::new(ranks.into_iter().map(Some).collect::<Vec<_>>());
                let count = ranks.lock().unwrap().len();
                on_ranks(count, move |comm| {
                    let mut ds = ranks.lock().unwrap()[comm.rank()].take().unwrap();
                    let outcome = call(&mut ds);
                    (ds, outcome)
                })
            };
            let (first, second) = (start(first_ranks), start(second_ranks));
            let done = with(first, |ds| put(ds, 1, 1, 1));
            let first: Vec<Dataset> = done
                .into_iter()
                .map(|(ds, outcome)| {
                    outcome.unwrap();
                    ds
                })
                .collect();
            let done = with(second, |ds| put(ds, 2, 1, 2));
            let second: Vec<Dataset> = done
                .into_iter()
                .map(|(ds, outcome)| {
                    require_sentence(&outcome.unwrap_err(), &path, "since it was opened here");
                    ds
                })
                .collect();
            // Nor may it redefine; what the first does goes on.
            let refused = with(second, |ds| ds.sync());
            assert!(refused.iter().all(|(_, outcome)| outcome.is_err()));
            let done = with(first, |ds| put(ds, 3, 2, 1).and_then(|()| ds.sync()));
            done.into_iter().for_each(|(_, outcome)| outcome.unwrap());
            assert_eq!(
                seeds(&path, &store),
                [0, 1, 0, 1, 1],
                "{form} {first_ranks} {second_ranks}"
            );
        }
    }
}

/// A writer that was opened before, when another has written and ended, has an old picture of the tables.
#[test]
fn without_locks_a_writer_that_has_ended_is_noticed_too() {
    let store: Arc<dyn Store> = Arc::new(WithoutLocks(MemoryStore::default()));
    let path = PathBuf::from("/run/ended.nc");
    create(&path, &store, "inside").unwrap().close().unwrap();
    let mut late = open(&path, &store, "inside", &alone()).unwrap();
    let mut early = open(&path, &store, "inside", &alone()).unwrap();
    put(&mut early, 4, 30, 1).unwrap();
    early.close().unwrap();
    require_sentence(&put(&mut late, 0, 1, 2).unwrap_err(), &path, "open it again");
    let error = late.redef().map(drop).unwrap_err();
    require_sentence(&error, &path, "open it again");
    let mut again = open(&path, &store, "inside", &alone()).unwrap();
    put(&mut again, 0, 1, 2).unwrap();
    again.close().unwrap();
    let expected = [vec![2], vec![0; 3], vec![1; 30]].concat();
    assert_eq!(seeds(&path, &store), expected);
}

#[test]
fn a_file_that_was_replaced_is_told_to_whoever_writes_the_old_one() {
    let store: Arc<dyn Store> = Arc::new(WithoutLocks(MemoryStore::default()));
    let path = PathBuf::from("/run/replaced.nc");
    let mut ds = create(&path, &store, "inside").unwrap();
    let new = create(&path, &store, "inside").unwrap();
    put(&mut ds, 4, 1, 1).unwrap();
    require_sentence(&ds.sync().unwrap_err(), &path, "another file has its name");
    require_sentence(&ds.close().unwrap_err(), &path, "another file has its name");
    new.close().unwrap();
    assert_eq!(seeds(&path, &store), [0; 4]);
}

/// Ordinary files are written by several programs at once; but one redefinition does not take another back.
#[test]
fn a_redefinition_does_not_take_another_one_back() {
    for moves in [false, true] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let path = PathBuf::from("/run/ordinary.nc");
        let align = Alignment { header_room: 1000, ..Alignment::default() };
        let options = CreateOptions::new().store(store.clone()).align(align);
        let mut def = Dataset::create(&path, options).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
        let a = def.add_var("a", ExternalType::Int, &[x]).unwrap();
        def.enddef().unwrap().close().unwrap();
        let mut one = open(&path, &store, "inside", &alone()).unwrap();
        let mut two = open(&path, &store, "inside", &alone()).unwrap();
        one.put(a, &Selection::slab(&[0], &[2]), &[1, 2]).unwrap();
        two.put(a, &Selection::slab(&[2], &[2]), &[3, 4]).unwrap();
        let mut def = one.redef().unwrap();
        def.add_var("of_one", ExternalType::Int, &[x]).unwrap();
        if moves {
            def.put_attr(Owner::Global, "title", "t".repeat(5000)).unwrap();
        }
        let mut other = two.redef().unwrap();
        other.add_var("of_two", ExternalType::Int, &[x]).unwrap();
        def.enddef().unwrap().close().unwrap();
        let failed = other.enddef().unwrap_err();
        let words = if moves { "another file has its name" } else { "changed its definitions" };
        require_sentence(&failed.error, &path, words);
        drop(failed);
        let options = OpenOptions::new().store(store.clone());
        let ds = Dataset::open_with(&path, options).unwrap();
        let names: Vec<&str> = ds.schema().vars.iter().map(|v| &*v.name).collect();
        assert_eq!(names, ["a", "of_one"]);
        assert_eq!(ds.get::<i32>(a, &Selection::all()).unwrap(), [1, 2, 3, 4]);
    }
}

/// Who is in the middle of a redefinition has the file's lock, and its journal is not another's to finish.
#[test]
fn a_redefinition_of_a_living_program_is_not_finished_by_another() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = PathBuf::from("/run/living.nc");
    let mut def = Dataset::create(&path, CreateOptions::new().store(store.clone())).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    def.add_var("a", ExternalType::Int, &[x]).unwrap();
    def.enddef().unwrap().close().unwrap();
    // As the program has it that is writing the header just now.
    let file = store.open(&path, esker_store::Access::ReadWrite).unwrap();
    let mut header = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut header).unwrap();
    let journal = esker_format::HeaderJournal { old: header.clone(), new: header };
    let name = esker::journal_path(&path);
    store.create(&name, CreateMode::New).unwrap().write_at(0, &journal.encode()).unwrap();
    assert_eq!(file.try_lock().unwrap(), Locking::Taken);
    let error = open(&path, &store, "inside", &alone()).unwrap_err();
    require_sentence(&error, &path, "another program");
    assert!(store.exists(&name).unwrap());
    drop(file);
    open(&path, &store, "inside", &alone()).unwrap().close().unwrap();
    assert!(!store.exists(&name).unwrap());
}

#[test]
fn sub_files_have_one_writer() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let path = PathBuf::from("/run/subs.nc");
    let mut many = Hints::default();
    many.set("nc_num_subfiles", "2");
    let (shared, name) = (store.clone(), path.clone());
    on_ranks(2, move |comm| {
        let options = CreateOptions::new().comm(comm.clone()).store(shared.clone());
        let mut def = Dataset::create(&name, options.hints(many.clone())).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(8)).unwrap();
        let mine = Selection::slab(&[4 * comm.rank() as u64], &[4]);
        let map = def.add_decomposition(&[x], &mine).unwrap();
        let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(v, &Selection::blob(&[], &[]), &[comm.rank() as i32; 4]).unwrap();
        if comm.rank() == 0 {
            let error = open(&name, &shared, "inside", &alone()).unwrap_err();
            require_sentence(&error, &name, "one writer at a time");
        }
        ds.close().unwrap();
    });
    let first = open(&path, &store, "inside", &alone()).unwrap();
    let error = open(&path, &store, "inside", &alone()).unwrap_err();
    require_sentence(&error, &path, "one writer at a time");
    drop(first);
    open(&path, &store, "inside", &alone()).unwrap().close().unwrap();
}

#[test]
fn a_burst_buffer_has_one_writer_and_is_not_recovered_while_it_lives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let buffer = dir.path().join("buffer");
    let mut hints = Hints::default();
    hints.set("nc_burst_buf", "enable");
    hints.set("nc_burst_buf_dirname", buffer.to_str().unwrap());
    let create = || Dataset::create(&path, CreateOptions::new().hints(hints.clone()));
    let mut def = create().unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let open = || {
        let options = OpenOptions::new().writable(true).hints(hints.clone());
        Dataset::open_with(&path, options)
    };
    // With and without something in the log.
    for round in 0..2 {
        let error = open().map(drop).unwrap_err();
        require_sentence(&error, &path, "burst buffer");
        let error = create().map(drop).unwrap_err();
        require_sentence(&error, &path, "burst buffer");
        let error = esker::recover(&path, &RecoverOptions::new().dir(&buffer)).unwrap_err();
        require_sentence(&error, &path, "burst buffer");
        ds.put(v, &Selection::all(), &[round; 4]).unwrap();
    }
    // To look is harmless.
    let looked = esker::recover(&path, &RecoverOptions::new().dir(&buffer).look_only(true));
    assert_eq!(looked.unwrap().logs, 1);
    // What is read was in the log before.
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), [1; 4]);
    drop(ds);
    let recovered = esker::recover(&path, &RecoverOptions::new().dir(&buffer)).unwrap();
    assert!(recovered.is_complete() && recovered.removed, "{recovered:?}");
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), [1; 4]);
    drop(ds);
    open().unwrap().close().unwrap();
}

/// What the processes of these tests are told: the dataset.
const TOLD: &str = "ESKER_TEST_WRITER";

/// Not a test by itself: a process that writes to a dataset, says how it went, and waits to be ended.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_writes() {
    let Some(path) = std::env::var_os(TOLD).map(PathBuf::from) else { return };
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let opened = open(&path, &store, "inside", &alone());
    let mut held = None;
    let said = match opened {
        Err(error) => error.to_string(),
        Ok(mut ds) => {
            put(&mut ds, 1, 2, 7).unwrap();
            held = Some(ds);
            "written".to_string()
        }
    };
    let draft = path.with_extension("draft");
    std::fs::File::create(&draft).unwrap().write_all(said.as_bytes()).unwrap();
    std::fs::rename(&draft, path.with_extension("said")).unwrap();
    // Until the other end is closed.
    let _ = std::io::stdin().read_line(&mut String::new());
    if let Some(ds) = held {
        ds.close().unwrap();
    }
}

/// Starts it; gives what it says. Who calls ends it.
#[allow(clippy::zombie_processes)]
fn process(path: &Path) -> (Child, String) {
    let said = path.with_extension("said");
    let _ = std::fs::remove_file(&said);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "chunked::writers::a_process_that_writes"])
        .env(TOLD, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let clock = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(&said) {
            return (child, text);
        }
        if clock.elapsed() > Duration::from_secs(300) {
            child.kill().and_then(|()| child.wait()).unwrap();
            panic!("it says nothing");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn of_two_processes_the_second_gets_a_sentence_and_a_killed_one_leaves_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    create(&path, &store, "inside").unwrap().close().unwrap();
    // The other process has it: this one gets a sentence that names it.
    let (mut child, said) = process(&path);
    assert_eq!(said, "written");
    let error = open(&path, &store, "inside", &alone()).unwrap_err();
    require_sentence(&error, &path, "one writer at a time");
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    assert_eq!(seeds(&path, &store), [0, 7, 7, 0]);
    // It is killed: what it wrote is there, and no lock.
    child.kill().unwrap();
    child.wait().unwrap();
    let mut ds = open(&path, &store, "inside", &alone()).unwrap();
    put(&mut ds, 2, 1, 3).unwrap();
    // This one has it.
    let (mut child, said) = process(&path);
    assert!(said.contains("one writer at a time"), "{said}");
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    put(&mut ds, 4, 1, 3).unwrap();
    ds.close().unwrap();
    assert_eq!(seeds(&path, &store), [0, 7, 3, 0, 3]);
    // It ends as it should, and the next one writes.
    let (mut child, said) = process(&path);
    assert_eq!(said, "written");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let mut ds = open(&path, &store, "inside", &alone()).unwrap();
    put(&mut ds, 0, 1, 4).unwrap();
    ds.close().unwrap();
    assert_eq!(seeds(&path, &store), [4, 7, 7, 0, 3]);
}
