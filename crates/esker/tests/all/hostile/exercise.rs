//! Everything that can be done with a file, done to damaged ones. The soak of the tools
//! (`./test soak`) uses this too.

use std::path::Path;
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, OpenOptions, Result, Selection, VarId,
    Version,
};
use esker_store::{CreateMode, MemoryStore, Store};

use esker_testkit::{damage, data, memory, random::Random};

/// The file's name in its store.
pub(crate) const NAME: &str = "hostile.nc";

/// Elements read at a time.
const BLOCK: u64 = 4096;

/// What reading a file of so many bytes in blocks may allocate.
pub(crate) fn allowance(len: usize) -> usize {
    64 * len + 64 * 1024 + 16 * BLOCK as usize
}

pub(crate) fn store_with(name: &Path, bytes: &[u8]) -> MemoryStore {
    let store = MemoryStore::default();
    store.create(name, CreateMode::New).unwrap().write_at(0, bytes).unwrap();
    store
}

pub(crate) fn open(store: &MemoryStore, writable: bool) -> Result<Dataset> {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    Dataset::open_with(NAME, OpenOptions::new().writable(writable).store(store))
}

/// Reads a block of at most [`BLOCK`] elements that begins at `start` in every dimension that
/// is so long, in the type of the file and as another.
fn read_block(ds: &Dataset, var: VarId, shape: &[u64], from_end: bool) -> Result<()> {
    let mut left = BLOCK;
    let mut count: Vec<u64> = shape
        .iter()
        .rev()
        .map(|len| {
            let n = (*len).min(left);
            left /= n.max(1);
            n
        })
        .collect();
    count.reverse();
    let start: Vec<u64> =
        shape.iter().zip(&count).map(|(len, n)| if from_end { len - n } else { 0 }).collect();
    let block = Selection::slab(&start, &count);
    ds.get_values(var, &block)?;
    let elements = count.iter().product::<u64>() as usize;
    let stride: Vec<u64> = shape.iter().map(|len| (len / 3).max(1)).collect();
    let sparse: Vec<u64> = shape.iter().map(|len| (*len).min(2)).collect();
    if sparse.iter().product::<u64>() <= BLOCK {
        ds.get_values(var, &Selection::strided(&vec![0; shape.len()], &sparse, &stride))?;
    }
    match ds.get_into(var, &block, &mut vec![0i32; elements]) {
        Err(Error::Range { .. } | Error::Convert { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads everything there is, or says that it cannot.
pub(crate) fn read_all(store: &MemoryStore) -> Result<()> {
    let ds = open(store, false)?;
    for number in 0..ds.schema().vars.len() {
        let var = VarId(number);
        let shape = match ds.shape(var) {
            Ok(shape) => shape,
            Err(error) => {
                // A map, or a seal.
                let known = matches!(error, Error::Decomposition { .. } | Error::Decode { .. });
                assert!(known, "{error:?}");
                continue;
            }
        };
        for result in [
            read_block(&ds, var, &shape, false),
            read_block(&ds, var, &shape, true),
            ds.get_values(var, &Selection::all()).map(drop),
        ] {
            if let Err(error) = result {
                assert!(!error.to_string().is_empty());
                assert!(
                    matches!(
                        error,
                        Error::ShortFile { .. }
                            | Error::Selection { .. }
                            | Error::Decomposition { .. }
                            | Error::Convert { .. }
                    ),
                    "{error:?}"
                );
            }
        }
    }
    Ok(())
}

/// Appends to, writes to and redefines what opens for writing.
pub(crate) fn write_all(store: &MemoryStore) -> Result<()> {
    let mut ds = open(store, true)?;
    for number in 0..ds.schema().vars.len() {
        let var = VarId(number);
        let Ok(shape) = ds.shape(var) else { continue };
        let text = ds.variable(var)?.ty == ExternalType::Char;
        let is_record = ds.schema().is_record(&ds.schema().vars.as_slice()[number]);
        let mut index: Vec<u64> = vec![0; shape.len()];
        if is_record {
            index[0] = ds.numrecs().min(1000);
        }
        // Not where it would make the file long.
        let place = ds.header().layout.places[number];
        if place.begin + place.vsize + ds.header().layout.record_size > 1 << 20 {
            continue;
        }
        let element = Selection::element(&index);
        if let Ok(Some(map)) = ds.decomposition(var) {
            let outer = vec![1; shape.len() - map.shape.len()];
            let at: Vec<u64> = index[..outer.len()].to_vec();
            let blob = Selection::blob(&at, &outer);
            if map.stored < 1000 {
                let _ = ds.put(var, &blob, &vec![7i8; map.stored as usize]);
            }
            let _ = ds.put(var, &Selection::blocks(&at, &outer, &[0]), &[7i8]);
            let _ = ds.get::<f64>(var, &blob);
        }
        let _ = if text {
            ds.put(var, &element, &[esker::Char(b'x')])
        } else {
            ds.put(var, &element, &[7i8])
        };
    }
    if ds.header().data_end(ds.numrecs()) > 1 << 20 || ds.numrecs() > 1000 {
        return Ok(());
    }
    let mut def = ds.redef()?;
    let _ = def.add_dim("a new dimension with a name long enough to move data", DimLen::Fixed(3));
    let _ = def.put_attr(esker::Owner::Global, "new attribute", "of some length");
    let record = def.schema().record_dim();
    let dims: Vec<_> = record.into_iter().collect();
    let _ = def.add_var("a new variable", ExternalType::Short, &dims);
    let ds = def.enddef()?;
    ds.close()
}

/// Files of random schemas with random data, and real ones that are small.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in 0..300 {
        let random = &mut Random(seed);
        let header = damage::header(random);
        let mut bytes = header.encode();
        let len = header.data_end(random.below(4) as u64) as usize;
        bytes.resize_with(len.max(bytes.len()), || random.next() as u8);
        seeds.push(bytes);
    }
    let real = data::files("netcdf_classic").into_iter();
    seeds.extend(real.map(|path| std::fs::read(path).unwrap()).filter(|b| b.len() < 50_000));
    seeds
}

/// Files of one rank with decomposed variables, with gaps and blocks of several rows.
// The soak of the tools does without.
#[allow(dead_code)]
pub(crate) fn decomposed() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (rows, version) in [(3, Version::Cdf5), (5, Version::Cdf1), (8, Version::Cdf5)] {
        let store = MemoryStore::default();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let options = CreateOptions::new().version(version).store(shared);
        let mut def = Dataset::create(NAME, options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(rows)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(6)).unwrap();
        let part = Selection::list(2, vec![1, 4, 0, 0, 2, 1], vec![2, 2, 1, 3, 1, 2]);
        let map = def.add_decomposition(&[y, x], &part).unwrap();
        let a = def.add_decomposed_var("a", ExternalType::Short, &[t], map).unwrap();
        let b = def.add_decomposed_var("b", ExternalType::Double, &[], map).unwrap();
        let mut ds = def.enddef().unwrap();
        let data: Vec<i16> = (0..9).collect();
        ds.put(a, &Selection::blob(&[1], &[1]), &data).unwrap();
        ds.put(b, &Selection::blob(&[], &[]), &data).unwrap();
        ds.close().unwrap();
        let file = store.open(Path::new(NAME), esker_store::Access::Read).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        seeds.push(bytes);
    }
    seeds
}

/// Damages whole files, more of them where the header is, and reads and writes them; `also`
/// sees each damaged file before it is written to. Gives how many opened.
pub(crate) fn soak(
    seeds: &[Vec<u8>],
    seed: u64,
    rounds: u64,
    also: impl Fn(&MemoryStore, &[u8]),
) -> u64 {
    let mut opened = 0;
    for round in 0..rounds {
        let random = &mut Random(seed.wrapping_add(round));
        let mut bytes = seeds[random.below(seeds.len())].clone();
        let part = if random.below(4) == 0 { bytes.len() } else { bytes.len().min(600) };
        let mut head: Vec<u8> = bytes.drain(..part).collect();
        damage::mutate(random, &mut head);
        bytes.splice(..0, head);
        let store = store_with(Path::new(NAME), &bytes);
        let (result, used) = memory::peak(|| read_all(&store));
        assert!(
            used <= allowance(bytes.len()),
            "seed {}: {used} bytes for {}",
            seed + round,
            bytes.len()
        );
        opened += u64::from(result.is_ok());
        also(&store, &bytes);
        // Errors are fine; what counts is that it comes back.
        let _ = write_all(&store);
    }
    opened
}
