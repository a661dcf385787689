//! Checksums from the caller's memory to the caller's memory, and how far they go where the caller says so.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Layout, MemoryLayout,
    MemoryType, OpenOptions, Requests, Selection, VarId, crc32c,
};
use esker_store::{Access, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

const RANKS: usize = 3;
const X: u64 = 60;
const PATH: &str = "/run/checked";

/// The ways of storing values: chunked or not, in a file, in a log, in a log before a file.
const WAYS: [(bool, Layout, &str); 5] = [
    (false, Layout::Classic, ""),
    (
        false,
        Layout::Classic,
        "romio_cb_write=enable;romio_cb_read=enable;esker_node_memory=disable",
    ),
    (true, Layout::Classic, ""),
    (false, Layout::Log, ""),
    (false, Layout::Classic, "nc_burst_buf=enable;nc_burst_buf_dirname=/run"),
];

fn hints(pairs: &str) -> Hints {
    let mut hints = Hints::default();
    hints.set_pnetcdf(pairs);
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}

fn dataset(
    comm: &Arc<dyn Communicator>,
    store: Arc<dyn Store>,
    (chunked, layout, pairs): (bool, Layout, &str),
) -> (Dataset, VarId) {
    let options = CreateOptions::new().comm(comm.clone()).store(store).hints(hints(pairs));
    let mut def = Dataset::create(Path::new(PATH), options.layout(layout)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    let var = def.add_var("speed", ExternalType::Float, &[t, x]).unwrap();
    if chunked {
        def.set_chunks(var, &[1, 25]).unwrap();
    }
    (def.enddef().unwrap(), var)
}

/// This rank's part of a record.
fn mine(me: u64, record: u64) -> Selection {
    let each = X / RANKS as u64;
    Selection::slab(&[record, me * each], &[1, each])
}

#[test]
fn a_put_whose_checksum_is_wrong_on_one_rank_is_written_by_none() {
    for way in WAYS {
        let store = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(store);
        on_ranks(RANKS, move |comm| {
            let me = comm.rank() as u64;
            let (mut ds, v) = dataset(&comm, shared.clone(), way);
            let values: Vec<f64> = (0..X / RANKS as u64).map(|i| (me * 100 + i) as f64).collect();
            let sum = crc32c(&values);
            ds.put_all_checked(v, &mine(me, 0), &values, sum).unwrap();
            // A bit of the second rank's values has changed since.
            let mut flipped = values.clone();
            if me == 1 {
                flipped[3] = f64::from_bits(flipped[3].to_bits() ^ (1 << 40));
            }
            let error = ds.put_all_checked(v, &mine(me, 0), &flipped, sum).unwrap_err();
            let sentence = error.to_string();
            assert_eq!(matches!(error, Error::Checksum { .. }), me == 1, "{sentence}");
            let found = crc32c(&if me == 1 { flipped } else { values.clone() });
            for words in ["\"speed\"", "start [0, 20], count [1, 20]", "/run/checked"] {
                assert!(sentence.contains(words), "{words}: {sentence}");
            }
            if me == 1 {
                let both = [format!("{sum:#010x}"), format!("{found:#010x}")];
                assert!(both.iter().all(|words| sentence.contains(words)), "{sentence}");
            }
            // What was there is there, and its checksum is what it was on its way in.
            let (back, same) = ds.get_all_checked::<f64>(v, &mine(me, 0)).unwrap();
            assert!(back == values && same == sum, "{way:?}");
            ds.close().unwrap();
        });
    }
}

#[test]
fn queued_requests_of_any_memory_are_compared_when_they_are_moved() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let comm: Arc<dyn Communicator> = Arc::new(esker::SelfComm::new());
    let (mut ds, v) = dataset(&comm, store, WAYS[0]);
    // A column of a table, as bytes of a type that is known only now.
    let table: Vec<i16> = (0..40).collect();
    let column: Vec<i16> = table.iter().copied().skip(1).step_by(4).collect();
    let bytes: Vec<u8> = table.iter().flat_map(|v| v.to_ne_bytes()).collect();
    let layout = MemoryLayout::strided(1, &[10], &[4]);
    let selection = Selection::slab(&[0, 7], &[1, 10]);
    for (sum, is_right) in [(crc32c(&column), true), (crc32c(&table), false)] {
        let mut queue = Requests::new();
        let memory = (&bytes[..], MemoryType::I16);
        let id = ds.iput_bytes(&mut queue, v, &selection, memory, layout.clone()).unwrap();
        queue.expect_crc32c(id, &selection, sum).unwrap();
        assert_eq!(ds.wait(&mut queue).is_ok(), is_right);
        assert!(queue.is_empty() && queue.expect_crc32c(id, &selection, sum).is_err());
    }
    // A copy that was kept for a buffered put.
    let mut queue = Requests::new();
    queue.attach_buffer(1000).unwrap();
    let id = ds.bput(&mut queue, v, &selection, &column).unwrap();
    queue.expect_crc32c(id, &selection, crc32c(&column) ^ 1).unwrap();
    assert!(matches!(ds.wait(&mut queue), Err(Error::Checksum { .. })));
    assert_eq!(queue.buffer_usage(), Some((1000, 0)));
    // What is read is compared, too, and is there all the same.
    for (sum, is_right) in [(crc32c(&column), true), (7, false)] {
        let mut out = vec![0i16; 10];
        let mut queue = Requests::new();
        let id = ds.iget(&mut queue, v, &selection, &mut out).unwrap();
        queue.expect_crc32c(id, &selection, sum).unwrap();
        assert_eq!(ds.wait(&mut queue).is_ok(), is_right);
        drop(queue);
        assert_eq!(out, column);
    }
}

/// A log that is written with these hints, of 100,000 values, and one of its files.
fn log_of(pairs: &str, ending: &str) -> (MemoryStore, std::path::PathBuf) {
    let store = MemoryStore::default();
    let comm: Arc<dyn Communicator> = Arc::new(esker::SelfComm::new());
    let way = (false, Layout::Log, pairs);
    let (mut ds, v) = dataset(&comm, Arc::new(store.clone()), way);
    for record in 0..50 {
        let values: Vec<f32> = (0..X).map(|i| (record * 1000 + i) as f32).collect();
        ds.put(v, &Selection::slab(&[record, 0], &[1, X]), &values).unwrap();
    }
    ds.close().unwrap();
    let is_it = |file: &std::path::PathBuf| file.to_string_lossy().ends_with(ending);
    let file = store.list().into_iter().find(is_it).unwrap();
    (store, file)
}

fn read(store: &MemoryStore, pairs: &str) -> esker::Result<Vec<f32>> {
    let options = OpenOptions::new().store(Arc::new(store.clone())).hints(hints(pairs));
    Dataset::open_with(Path::new(PATH), options)?.get(VarId(0), &Selection::all())
}

#[test]
fn a_log_without_checksums_of_values_says_so_and_is_read() {
    let (with, meta) = log_of("", ".0.meta");
    let truth = read(&with, "").unwrap();
    let with = with.bytes(&meta).unwrap().len();
    for pairs in ["esker_checksums=none", "esker_checksums=transfer"] {
        let (store, meta) = log_of(pairs, ".0.meta");
        // One for each payload is not there.
        assert_eq!(store.bytes(&meta).unwrap().len() + 4 * 50, with);
        assert_eq!(read(&store, "").unwrap(), truth);
        let whole = esker::examine(
            &(Arc::new(store) as Arc<dyn Store>),
            Path::new(PATH),
            None,
            &mut |_, _| {},
        );
        let whole = whole.unwrap();
        assert_eq!((whole.faults.len(), whole.entries, whole.payload), (0, 50, 50 * X * 4));
    }
}

#[test]
fn damage_is_noticed_by_those_who_compare_and_frames_are_always_compared() {
    let flip = |store: &MemoryStore, file: &Path, at: u64| {
        let byte = store.bytes(file).unwrap()[at as usize] ^ 4;
        store.open(file, Access::ReadWrite).unwrap().write_at(at, &[byte]).unwrap();
    };
    let (store, data) = log_of("", ".0.data");
    let truth = read(&store, "").unwrap();
    flip(&store, &data, 1000);
    for (pairs, compares) in [
        ("", true),
        ("esker_checksums=store", true),
        ("esker_checksums=transfer", false),
        ("esker_checksums=none", false),
    ] {
        match read(&store, pairs) {
            Err(error) => assert!(compares && error.to_string().contains("checksum"), "{error}"),
            Ok(values) => {
                let other = values.iter().zip(&truth).filter(|(a, b)| a != b).count();
                assert_eq!((compares, other), (false, 1));
            }
        }
    }
    let (store, meta) = log_of("esker_checksums=none", ".0.meta");
    let middle = store.bytes(&meta).unwrap().len() as u64 / 2;
    flip(&store, &meta, middle);
    assert!(read(&store, "esker_checksums=none").is_err());
}

#[test]
fn a_burst_buffer_without_checksums_of_values_is_flushed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    on_ranks(2, move |comm| {
        let pairs = "nc_burst_buf=enable;nc_burst_buf_dirname=/run;esker_checksums=none";
        let (mut ds, v) = dataset(&comm, store.clone(), (false, Layout::Classic, pairs));
        let me = comm.rank() as u64;
        let values: Vec<f32> = (0..X).map(|i| (i + me) as f32).collect();
        let record = Selection::slab(&[me, 0], &[1, X]);
        ds.put_all(v, &record, &values).unwrap();
        ds.sync().unwrap();
        assert_eq!(ds.get_all::<f32>(v, &record).unwrap(), values);
        ds.close().unwrap();
    });
}
