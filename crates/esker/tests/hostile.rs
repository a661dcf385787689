//! Whole files from enemies and broken disks: opening, reading and writing them gives data or
//! an error, never a panic, and takes no more memory than the file justifies.

#[path = "../../esker-format/tests/hostile/data.rs"]
mod data;
#[path = "../../esker-format/tests/hostile/memory.rs"]
mod memory;
#[path = "../../esker-format/tests/hostile/random.rs"]
mod random;

use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, DimLen, Error, ExternalType, OpenOptions, Result, Selection, VarId};
use esker_format::HeaderJournal;
use esker_store::{CreateMode, MemoryStore, Store};
use random::Random;

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

const NAME: &str = "hostile.nc";

/// Elements read at a time.
const BLOCK: u64 = 4096;

/// What reading a file of so many bytes in blocks may allocate.
fn allowance(len: usize) -> usize {
    64 * len + 64 * 1024 + 16 * BLOCK as usize
}

fn store_with(name: &Path, bytes: &[u8]) -> MemoryStore {
    let store = MemoryStore::default();
    store.create(name, CreateMode::New).unwrap().write_at(0, bytes).unwrap();
    store
}

fn open(store: &MemoryStore, writable: bool) -> Result<Dataset> {
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
fn read_all(store: &MemoryStore) -> Result<()> {
    let ds = open(store, false)?;
    for number in 0..ds.schema().vars.len() {
        let var = VarId(number);
        let shape = ds.shape(var)?;
        for result in [
            read_block(&ds, var, &shape, false),
            read_block(&ds, var, &shape, true),
            ds.get_values(var, &Selection::all()).map(drop),
        ] {
            if let Err(error) = result {
                assert!(!error.to_string().is_empty());
                assert!(
                    matches!(error, Error::ShortFile { .. } | Error::Selection { .. }),
                    "{error:?}"
                );
            }
        }
    }
    Ok(())
}

/// Appends to, writes to and redefines what opens for writing.
fn write_all(store: &MemoryStore) -> Result<()> {
    let mut ds = open(store, true)?;
    for number in 0..ds.schema().vars.len() {
        let var = VarId(number);
        let shape = ds.shape(var)?;
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
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for seed in 0..300 {
        let random = &mut Random(seed);
        let header = random::header(random);
        let mut bytes = header.encode();
        let len = header.data_end(random.below(4) as u64) as usize;
        bytes.resize_with(len.max(bytes.len()), || random.next() as u8);
        seeds.push(bytes);
    }
    let real = data::files("netcdf_classic").into_iter();
    seeds.extend(real.map(|path| std::fs::read(path).unwrap()).filter(|b| b.len() < 50_000));
    seeds
}

/// Damages whole files; more of the damage goes to where the header is.
fn soak(seeds: &[Vec<u8>], seed: u64, rounds: u64) -> u64 {
    let mut opened = 0;
    for round in 0..rounds {
        let random = &mut Random(seed.wrapping_add(round));
        let mut bytes = seeds[random.below(seeds.len())].clone();
        let part = if random.below(4) == 0 { bytes.len() } else { bytes.len().min(600) };
        let mut head: Vec<u8> = bytes.drain(..part).collect();
        random::mutate(random, &mut head);
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
        // Errors are fine; what counts is that it comes back.
        let _ = write_all(&store);
    }
    opened
}

#[test]
fn damaged_files_give_data_or_errors() {
    let opened = soak(&seeds(), 7 << 32, 50_000);
    assert!(opened > 5_000, "{opened} opened");
}

/// Runs for `$ESKER_SOAK_SECONDS` (60): `cargo test --release -p esker --test hostile --
/// --ignored`.
#[test]
#[ignore = "runs as long as it is told to"]
fn damaged_files_for_a_long_time() {
    let seconds = std::env::var("ESKER_SOAK_SECONDS").ok().and_then(|s| s.parse().ok());
    let limit = std::time::Duration::from_secs(seconds.unwrap_or(60));
    let start = std::time::Instant::now();
    let first = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut seed = first.as_nanos() as u64;
    eprintln!("first seed {seed}");
    let seeds = seeds();
    while start.elapsed() < limit {
        soak(&seeds, seed, 1_000);
        seed = seed.wrapping_add(1_000);
    }
}

#[test]
fn the_malformed_corpus_gives_data_or_errors() {
    for path in data::files("malformed_classic") {
        let bytes = std::fs::read(&path).unwrap();
        let store = store_with(Path::new(NAME), &bytes);
        let (_, used) = memory::peak(|| read_all(&store));
        assert!(used <= allowance(bytes.len()), "{}: {used} bytes", path.display());
        let _ = write_all(&store);
    }
}

#[test]
fn a_hostile_journal_gives_data_or_errors() {
    let header = random::header(&mut Random(3)).encode();
    for round in 0..3_000 {
        let random = &mut Random(round);
        let (mut old, mut new) = (header.clone(), header.clone());
        random::mutate(random, &mut new);
        if random.below(2) == 0 {
            random::mutate(random, &mut old);
        }
        // A right checksum over anything at all, or a wrong one.
        let mut journal = HeaderJournal { old, new }.encode();
        if random.below(4) == 0 {
            random::mutate(random, &mut journal);
        }
        let store = store_with(Path::new(NAME), &header);
        let beside = esker::journal_path(Path::new(NAME));
        store.create(&beside, CreateMode::New).unwrap().write_at(0, &journal).unwrap();
        let (_, used) = memory::peak(|| read_all(&store));
        assert!(used <= allowance(header.len() + journal.len()), "{used} bytes");
        let _ = write_all(&store);
    }
}

/// A file with a fixed-size variable and two record variables, whose begins are then changed.
fn with_begins(change: impl Fn(&mut [esker::Placement])) -> MemoryStore {
    let mut schema = esker::Schema::new(esker::Version::Cdf2);
    let t = schema.add_dim("t", DimLen::Unlimited).unwrap();
    let x = schema.add_dim("x", DimLen::Fixed(4)).unwrap();
    schema.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    schema.add_var("a", ExternalType::Int, &[t]).unwrap();
    schema.add_var("b", ExternalType::Int, &[t]).unwrap();
    let mut layout = esker::DataLayout::place(&schema, &Default::default()).unwrap();
    change(&mut layout.places);
    let header = esker::Header { schema, numrecs: esker::NumRecs::Count(0), layout };
    let mut bytes = header.encode();
    bytes.resize(4096, 0);
    store_with(Path::new(NAME), &bytes)
}

#[test]
fn records_that_would_reach_into_the_next_are_not_written() {
    // Appending to such a file panicked while there were no records in it.
    let store = with_begins(|places| places[2].begin += 40);
    assert!(matches!(open(&store, true), Err(Error::Overlap { .. })));
    assert!(open(&store, false).is_ok());
}

#[test]
fn a_variable_where_records_would_grow_is_not_overwritten() {
    let store = with_begins(|places| places[0].begin = places[2].begin + 100);
    assert!(matches!(open(&store, true), Err(Error::Overlap { .. })));
    assert!(open(&with_begins(|_| {}), true).is_ok());
}
