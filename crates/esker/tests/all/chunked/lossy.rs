//! Filters that lose something keep the bound of error at every element, however often a chunk is
//! changed in part.

use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Selection,
    StoredChunk, VarId,
};
use esker_store::MemoryStore;

use esker_testkit::ranks::on_ranks;

const PATH: &str = "/run/lossy.nc";
const SHAPE: [u64; 2] = [13, 17];
const FILL: f64 = 9.969_209_968_386_869e36;

/// The error that filters may make of a value.
type Bound = fn(f64) -> f64;

const CASES: [(&str, Bound); 6] = [
    ("sz,abs=0.01", |_| 0.01),
    ("zfp,accuracy=0.01", |_| 0.01),
    ("sz,abs=0.01 zstd,1", |_| 0.01),
    ("f32 sz,abs=0.01", |x| 0.01 + x.abs() / f64::from(1 << 24)),
    ("bitround,10 zstd,1", |x| x.abs() / f64::from(1 << 11)),
    ("f32", |x| x.abs() / f64::from(1 << 24)),
];

/// Numbers that look random, the same on every rank.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) % n
    }

    fn part(&mut self, len: u64) -> (u64, u64) {
        let start = self.below(len);
        (start, 1 + self.below(len - start))
    }
}

/// What was written of a variable; the fill value where nothing was.
struct Model {
    var: VarId,
    columns: u64,
    values: Vec<f64>,
}

impl Model {
    /// One rank writes a box of new values.
    fn put(&mut self, ds: &mut Dataset, mine: bool, rows: (u64, u64), random: &mut Random) {
        let columns = random.part(self.columns);
        let mut values = Vec::new();
        let end = ((rows.0 + rows.1) * self.columns) as usize;
        self.values.resize(self.values.len().max(end), FILL);
        for row in rows.0..rows.0 + rows.1 {
            for column in columns.0..columns.0 + columns.1 {
                let value = 280.0 + random.below(1 << 20) as f64 * 1e-5;
                self.values[(row * self.columns + column) as usize] = value;
                values.push(value);
            }
        }
        let all = Selection::slab(&[rows.0, columns.0], &[rows.1, columns.1]);
        match mine {
            true => ds.put_all(self.var, &all, &values).unwrap(),
            false => ds.put_all::<f64>(self.var, &Selection::none(), &[]).unwrap(),
        }
    }

    fn check(&self, ds: &Dataset, bound: Bound, what: &str) {
        let found: Vec<f64> = ds.get(self.var, &Selection::all()).unwrap();
        assert_eq!(found.len(), self.values.len());
        for (i, (found, written)) in found.iter().zip(&self.values).enumerate() {
            let allowed = if *written == FILL { 0.0 } else { bound(*written) };
            let error = (found - written).abs();
            assert!(
                error <= allowed,
                "{what}: element {i}: {written} became {found}, off by {error}"
            );
        }
    }
}

#[test]
fn a_bound_holds_however_often_chunks_are_changed_in_part() {
    for ranks in [1, 3] {
        for (filters, bound) in CASES {
            let store = Arc::new(MemoryStore::default());
            on_ranks(ranks, move |comm| change_often(&comm, &store, filters, bound));
        }
    }
}

fn change_often(
    comm: &Arc<dyn Communicator>,
    store: &Arc<MemoryStore>,
    filters: &str,
    bound: Bound,
) {
    let options = CreateOptions::new().store(store.clone()).comm(comm.clone());
    let mut def = Dataset::create(PATH, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let [y, x] = [("y", SHAPE[0]), ("x", SHAPE[1])]
        .map(|(name, len)| def.add_dim(name, DimLen::Fixed(len)).unwrap());
    let fixed = def.add_var("fixed", ExternalType::Double, &[y, x]).unwrap();
    def.set_chunks(fixed, &[5, 6]).unwrap();
    let series = def.add_var("series", ExternalType::Double, &[t, x]).unwrap();
    def.set_chunks(series, &[4, 7]).unwrap();
    for var in [fixed, series] {
        def.set_filters(var, filters).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    let mut fixed =
        Model { var: fixed, columns: SHAPE[1], values: vec![FILL; (SHAPE[0] * SHAPE[1]) as usize] };
    let mut series = Model { var: series, columns: SHAPE[1], values: Vec::new() };
    let mut random = Random(7);
    for step in 0..60 {
        let mine = random.below(comm.size() as u64) == comm.rank() as u64;
        let rows = random.part(SHAPE[0]);
        fixed.put(&mut ds, mine, rows, &mut random);
        // Now a new record, now a part of old ones.
        let records = ds.numrecs();
        let rows = if step % 3 == 0 { (records, 1) } else { random.part(records) };
        series.put(&mut ds, mine, rows, &mut random);
        comm.barrier().unwrap();
        if step % 10 == 9 {
            let what = format!("{filters}, {} ranks, step {step}", comm.size());
            fixed.check(&ds, bound, &what);
            series.check(&ds, bound, &what);
            ds.close().unwrap();
            let options = OpenOptions::new().store(store.clone()).comm(comm.clone());
            ds = Dataset::open_with(PATH, options.writable(true)).unwrap();
        }
    }
}

/// A variable of records in chunks of four, with a filter that loses something.
fn series_of_fours(store: &Arc<MemoryStore>) -> (Dataset, VarId) {
    let options = CreateOptions::new().store(store.clone());
    let mut def = Dataset::create(PATH, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1000)).unwrap();
    let v = def.add_var("v", ExternalType::Double, &[t, x]).unwrap();
    def.set_chunks(v, &[4, 1000]).unwrap();
    def.set_filters(v, "sz,abs=0.01").unwrap();
    (def.enddef().unwrap(), v)
}

fn smooth(record: u64) -> Vec<f64> {
    (0..1000).map(|i| (f64::from(i) * 0.01 + record as f64).sin()).collect()
}

/// Bytes that the chunks of a variable take.
fn sizes(ds: &Dataset, var: VarId) -> Vec<u64> {
    let mut sizes = Vec::new();
    ds.stored_chunks(var, false, |_, chunk: StoredChunk| {
        sizes.push(chunk.size);
        Ok(())
    })
    .unwrap();
    sizes
}

#[test]
fn records_that_come_one_by_one_are_packed_when_their_chunk_is_complete() {
    let store = Arc::new(MemoryStore::default());
    let (mut ds, v) = series_of_fours(&store);
    for record in 0..7 {
        let values = smooth(record);
        ds.put(v, &Selection::slab(&[record, 0], &[1, 1000]), &values).unwrap();
    }
    let sizes = sizes(&ds, v);
    assert!(sizes[0] < 4 * 8000 / 10, "four records: {sizes:?}");
    // Three of four records: as they are, because a second error would be added to the first.
    let last: Vec<f64> = ds.get(v, &Selection::slab(&[4, 0], &[3, 1000])).unwrap();
    assert_eq!(last, [smooth(4), smooth(5), smooth(6)].concat());
    assert_eq!(sizes[1], 4 * 8000);
}

#[test]
fn a_chunk_that_is_written_whole_again_is_packed_again() {
    let store = Arc::new(MemoryStore::default());
    let (mut ds, v) = series_of_fours(&store);
    let all: Vec<f64> = (0..4).flat_map(smooth).collect();
    ds.put(v, &Selection::all(), &[0.0; 0]).unwrap();
    let slab = Selection::slab(&[0, 0], &[4, 1000]);
    ds.put(v, &slab, &all).unwrap();
    let packed = sizes(&ds, v)[0];
    let before: Vec<f64> = ds.get(v, &Selection::all()).unwrap();
    ds.put(v, &Selection::element(&[1, 500]), &[17.25]).unwrap();
    let after: Vec<f64> = ds.get(v, &Selection::all()).unwrap();
    let changed: Vec<usize> = (0..4000).filter(|i| before[*i] != after[*i]).collect();
    assert_eq!((changed, after[1500]), (vec![1500], 17.25));
    assert!(sizes(&ds, v)[0] > packed);
    ds.put(v, &slab, &all).unwrap();
    assert_eq!(sizes(&ds, v)[0], packed);
}
