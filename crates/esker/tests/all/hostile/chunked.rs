//! Files with chunked variables, damaged and forged.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Result, Selection, VarId, Version,
};
use esker_format::Header;
use esker_format::chunked::{Block, Entry, Seal, TableHead, heap_of, identity_of};
use esker_store::{CreateMode, MemoryStore, Store};

use super::exercise::{NAME, open};
use esker_testkit::{cpu, memory};
use esker_testkit::{damage, random::Random};

/// Elements that are read at a time.
const BLOCK: u64 = 20_000;

/// Names and bytes of the files of a dataset, the classic one first.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// A dataset with chunked variables; some of their chunks were never written.
fn seed(version: Version, with_records: bool, beside: bool) -> Files {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let mut hints = Hints::default();
    hints.set("esker_chunk_room", "6000");
    if beside {
        hints.set("esker_chunk_files", "rank");
    }
    let options = CreateOptions::new().version(version).store(shared).hints(hints);
    let mut def = Dataset::create(NAME, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(7)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(12)).unwrap();
    let a = def.add_var("a", ExternalType::Float, &[y, x]).unwrap();
    def.set_chunks(a, &[4, 5]).unwrap();
    def.set_filters(a, "shuffle zstd,3").unwrap();
    let b = def.add_var("b", ExternalType::Short, &[t, x]).unwrap();
    def.set_chunks(b, &[2, 5]).unwrap();
    def.set_filters(b, "deflate,6").unwrap();
    let c = def.add_var("c", ExternalType::Double, &[y, x]).unwrap();
    def.set_chunks(c, &[7, 5]).unwrap();
    def.set_filters(c, "sz,abs=0.01").unwrap();
    let d = def.add_var("d", ExternalType::Int, &[t, y]).unwrap();
    def.set_chunks(d, &[1, 3]).unwrap();
    def.add_var("plain", ExternalType::Int, &[x]).unwrap();
    if with_records {
        def.add_var("traditional", ExternalType::Int, &[t, x]).unwrap();
    }
    let mut ds = def.enddef().unwrap();
    let data: Vec<i16> = (0..84).map(|i| i * i % 101).collect();
    ds.put(a, &Selection::slab(&[0, 0], &[5, 12]), &data[..60]).unwrap();
    ds.put(b, &Selection::slab(&[1, 0], &[4, 12]), &data[..48]).unwrap();
    ds.put(c, &Selection::all(), &data).unwrap();
    ds.put(d, &Selection::slab(&[0, 1], &[5, 4]), &data[..20]).unwrap();
    // Holes, and chunks that have moved.
    ds.put(b, &Selection::slab(&[2, 3], &[2, 4]), &data[..8]).unwrap();
    ds.close().unwrap();
    // The classic file (data.nc in a folder), tables, chunks.
    let mut names = store.list();
    names.sort_by_key(|name| {
        (!name.ends_with("data.nc"), name.to_string_lossy().contains("chunks"))
    });
    assert_eq!(names.len(), if beside { 3 } else { 1 });
    names.into_iter().map(|name| (name.clone(), store.bytes(&name).unwrap())).collect()
}

/// All versions, with and without traditional records, in one file and beside the classic one.
fn seeds() -> Vec<Files> {
    let mut all = Vec::new();
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        for (with_records, beside) in [(false, false), (true, false), (false, true), (true, true)] {
            all.push(seed(version, with_records, beside));
        }
    }
    all
}

fn store_of(files: &Files) -> MemoryStore {
    let store = MemoryStore::default();
    for (name, bytes) in files {
        store.create(name, CreateMode::New).unwrap().write_at(0, bytes).unwrap();
    }
    store
}

/// Everything of variables that are not too long, some of the others; every stored chunk. Gives the
/// largest chunk that was read.
fn read_all(store: &MemoryStore) -> Result<u64> {
    let ds = open(store, false)?;
    let mut largest = 0;
    for var in (0..ds.schema().vars.len()).map(VarId) {
        let shape = match ds.shape(var) {
            Ok(shape) => shape,
            Err(error) => {
                require_known(&error);
                continue;
            }
        };
        if let Some(chunking) = ds.chunking(var) {
            let ty = ds.variable(var)?.ty.size();
            let bytes = chunking.chunk.iter().fold(ty, |n, len| n.saturating_mul(*len));
            // The format allows chunks of a gigabyte. They take long, and prove nothing more.
            if bytes > 4 << 20 {
                continue;
            }
            largest = largest.max(bytes);
            if let Err(error) = ds.stored_chunks(var, true, |_, _| Ok(())) {
                require_known(&error);
            }
        }
        let elements = shape.iter().fold(1, |n: u64, len| n.saturating_mul(*len));
        let outcome = match elements <= BLOCK {
            true => ds.get_values(var, &Selection::all()).map(drop),
            false => {
                let last: Vec<u64> = shape.iter().map(|len| len - 1).collect();
                let first = vec![0; shape.len()];
                let first = ds.get_values(var, &Selection::element(&first)).map(drop);
                first.and(ds.get_values(var, &Selection::element(&last)).map(drop))
            }
        };
        if let Err(error) = outcome {
            require_known(&error);
        }
    }
    Ok(largest)
}

fn require_known(error: &Error) {
    assert!(!error.to_string().is_empty());
    let known = matches!(
        error,
        Error::ShortFile { .. }
            | Error::Selection { .. }
            | Error::Chunked { .. }
            | Error::Convert { .. }
            // A seal.
            | Error::Decode { .. }
    );
    assert!(known, "{error:?}");
}

fn write_all(store: &MemoryStore) -> Result<()> {
    let mut ds = open(store, true)?;
    // Not where it would make the file long.
    if ds.numrecs() > 1000 || ds.header().data_end(ds.numrecs() + 1) > 1 << 20 {
        return Ok(());
    }
    for var in (0..ds.schema().vars.len()).map(VarId) {
        let Ok(shape) = ds.shape(var) else { continue };
        // Neither where a chunk nor where a table would be long.
        let is_small = |n: u64, by: u64| n.checked_mul(by).filter(|n| *n < 1 << 17);
        let is_large = |c: &esker::Chunking| {
            let chunks = c.chunk.iter().zip(&shape).map(|(len, all)| all.div_ceil(*len));
            c.chunk.iter().copied().try_fold(1, is_small).is_none()
                || chunks.into_iter().try_fold(1, is_small).is_none()
        };
        if ds.chunking(var).is_some_and(is_large) || ds.numrecs() > 1000 {
            continue;
        }
        let mut index = vec![0; shape.len()];
        let variable = ds.variable(var)?.clone();
        if ds.schema().is_record(&variable) {
            index[0] = ds.numrecs();
        }
        let place = ds.header().layout.places[var.0.min(ds.header().layout.places.len() - 1)];
        if place.begin + place.vsize + ds.header().layout.record_size > 1 << 20 {
            continue;
        }
        let _ = match variable.ty {
            ExternalType::Char => ds.put(var, &Selection::element(&index), &[esker::Char(b'x')]),
            _ => ds.put(var, &Selection::element(&index), &[7i8]),
        };
    }
    if ds.header().data_end(ds.numrecs()) > 1 << 20 || ds.numrecs() > 1000 {
        return Ok(());
    }
    let mut def = ds.redef()?;
    let y = def.add_dim("a new dimension", DimLen::Fixed(3));
    let _ = def.put_attr(esker::Owner::Global, "new attribute", "of some length".repeat(400));
    if let Ok(y) = y {
        let new = def.add_var("a new variable", ExternalType::Short, &[y]);
        let _ = new.and_then(|new| def.set_filters(new, "zstd"));
    }
    let ds = def.enddef()?;
    ds.close()
}

fn attack(files: &Files, what: &str) -> bool {
    let store = store_of(files);
    let len: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    let ((outcome, used), reading) = cpu::of_this_thread(|| memory::peak(|| read_all(&store)));
    let largest = *outcome.as_ref().unwrap_or(&0) as usize;
    let most = 64 * len + (4 << 20) + 6 * largest + 40 * BLOCK as usize;
    assert!(used <= most, "{what}: {used} bytes for {len}, chunks of {largest}");
    let ((_, used), writing) = cpu::of_this_thread(|| memory::peak(|| drop(write_all(&store))));
    assert!(used <= 64 << 20, "{what}: {used} bytes to write");
    assert!(reading + writing < Duration::from_secs(20), "{what}: {reading:?}, {writing:?}");
    outcome.is_ok()
}

/// More with ESKER_FUZZ_ROUNDS.
fn rounds(few: u64) -> u64 {
    std::env::var("ESKER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

#[test]
fn damaged_chunked_files_give_data_or_errors() {
    let seeds = seeds();
    let mut opened = 0;
    for round in 0..rounds(6000) {
        let random = &mut Random(round);
        let mut files = seeds[random.below(seeds.len())].clone();
        let of = random.below(files.len());
        let bytes = &mut files[of].1;
        match random.below(3) {
            0 => damage::mutate(random, bytes),
            _ => {
                for _ in 0..1 + random.below(4) {
                    let at = random.below(bytes.len());
                    let byte = [0, 1, 2, 4, 0x7f, 0x80, 0xff, random.next() as u8];
                    bytes[at] = byte[random.below(byte.len())];
                }
            }
        }
        opened += u64::from(attack(&files, &format!("round {round}")));
    }
    assert!(opened > rounds(6000) / 4, "{opened} opened");
}

/// Numbers that programs stumble over.
fn odd(random: &mut Random) -> u64 {
    let list = [
        0,
        1,
        2,
        63,
        64,
        1 << 31,
        (1 << 31) - 1,
        1 << 32,
        1 << 40,
        1 << 57,
        1 << 58,
        i64::MAX as u64,
        u64::MAX,
        u64::MAX - 63,
        random.next() % 10_000,
        random.next(),
    ];
    list[random.below(list.len())]
}

/// Where something is in a file.
fn places(bytes: &[u8], what: &[u8]) -> Vec<usize> {
    bytes.windows(what.len()).enumerate().filter(|(_, w)| *w == what).map(|(i, _)| i).collect()
}

#[test]
fn forged_attributes_give_data_or_errors() {
    let seeds = seeds();
    let names = ["__chunk_dims", "__chunk_shape", "__filters", "__chunk_refs", "__chunk_ext_ndims"];
    for round in 0..rounds(4000) {
        let random = &mut Random(7_000_000 + round);
        let mut files = seeds[random.below(seeds.len())].clone();
        let bytes = &mut files[0].1;
        for _ in 0..1 + random.below(2) {
            let name = match random.below(9) {
                5 => "__chunk_heap",
                6 => "__chunk_begun",
                7 => "__chunk_end",
                8 => "__chunk_files",
                n => names[n],
            };
            let found = places(bytes, name.as_bytes());
            if found.is_empty() {
                continue;
            }
            let at = found[random.below(found.len())] + name.len().next_multiple_of(4);
            match random.below(8) {
                // The name: it is missing.
                0 => bytes[at - 8] ^= 1,
                // The type, or how many.
                1 => bytes[at + 3 + 4 * random.below(2)] = random.below(12) as u8,
                // A value, after the type and the count of either version.
                _ => {
                    let word = at + 8 + 4 * random.below(6);
                    let value = odd(random) as u32;
                    bytes[word..word + 4].copy_from_slice(&value.to_be_bytes());
                }
            }
        }
        attack(&files, &format!("round {round}"));
    }
}

/// What tables are sealed with, and where the heap begins in their file.
struct Sealing {
    identity: u64,
    heap: usize,
}

impl Sealing {
    fn of(files: &Files) -> Sealing {
        let bytes = &files[0].1;
        let schema = Header::decode(bytes, bytes.len() as u64).unwrap().schema;
        let heap = heap_of(&schema).unwrap() as usize;
        Sealing { identity: identity_of(&schema).unwrap(), heap }
    }

    /// What is at a byte of the file of tables, of whichever variable it is: its seal, and its place in the heap.
    fn open<T>(
        &self,
        at: usize,
        decode: impl Fn(Seal, u64) -> Option<T>,
    ) -> Option<(Seal, u64, T)> {
        let place = (at - self.heap) as u64;
        let seals = (0..6).map(|var| Seal::new(self.identity, VarId(var)));
        let mut found = seals.filter_map(|seal| Some((seal, place, decode(seal, place)?)));
        // A chunk that was forged where a table is has changed it.
        found.next()
    }
}

#[test]
fn forged_tables_give_data_or_errors() {
    let seeds = seeds();
    for round in 0..rounds(6000) {
        let random = &mut Random(9_000_000 + round);
        let mut files = seeds[random.below(seeds.len())].clone();
        // Tables and chunks are in the same file, or in two.
        let (of_tables, of_chunks) = if files.len() == 1 { (0, 0) } else { (1, 2) };
        let sealing = Sealing::of(&files);
        let blocks = places(&files[of_tables].1, b"EskT");
        let heads = places(&files[of_tables].1, b"EskV");
        for _ in 0..1 + random.below(3) {
            let at = blocks[random.below(blocks.len())];
            let bytes = &mut files[of_tables].1;
            if random.below(6) == 0 {
                let at = heads[random.below(heads.len())];
                forge_head(random, &sealing, bytes, at);
                continue;
            }
            let is_block = |seal, place| Block::decode(&bytes[at..], seal, place);
            let Some((seal, place, mut block)) = sealing.open(at, is_block) else { continue };
            if random.below(3) == 0 {
                match random.below(3) {
                    0 => block.first = odd(random),
                    1 => block.count = odd(random),
                    // To itself, to another one, to nowhere.
                    _ => {
                        let other = blocks[random.below(blocks.len())] - sealing.heap;
                        block.next = [odd(random), other as u64][random.below(2)];
                    }
                }
                bytes[at..at + 32].copy_from_slice(&block.encode(seal, place));
                // It is what it is from now on: others are looked for where they are.
                break;
            }
            let number = random.below(block.count.min(20) as usize);
            let at = at + 32 + 32 * number;
            let number = block.first + number as u64;
            let Some(old) = bytes.get(at..at + 32).and_then(|b| b.first_chunk()) else { continue };
            let mut entry = Entry::decode(old, seal, number).ok().flatten().unwrap_or(Entry {
                place: 0,
                size: 10,
                crc32c: 0,
                tail: 0,
                mask: 0,
                file: 0,
                changed: false,
            });
            match random.below(6) {
                0 => entry.place = odd(random),
                1 => entry.size = odd(random),
                2 => entry.mask = odd(random) as u16,
                3 => entry.file = odd(random) as u32,
                4 => (entry.place, entry.size) = (odd(random), odd(random)),
                // A chunk of other bytes, with the right checksum.
                _ => {
                    entry.size %= 100;
                    let chunks = &mut files[of_chunks].1;
                    let all = chunks.len();
                    let heap = if of_chunks == 0 { sealing.heap } else { 0 };
                    let from = heap.saturating_add(entry.place as usize).min(all);
                    let to = from + entry.size as usize;
                    if from < to && to < all {
                        chunks[from + random.below(to - from)] ^= 1 << random.below(8);
                        entry.crc32c = crc32c::crc32c(&chunks[from..to]);
                        entry.tail = Entry::tail_of(&chunks[from..to]);
                    }
                }
            }
            let bytes = &mut files[of_tables].1;
            bytes[at..at + 32].copy_from_slice(&entry.encode(seal, number));
        }
        attack(&files, &format!("round {round}"));
    }
}

/// Another head of a table, with the right checksum.
fn forge_head(random: &mut Random, sealing: &Sealing, bytes: &mut [u8], at: usize) {
    let is_head = |seal, place| TableHead::decode(&bytes[at..], seal, place).ok();
    let Some((seal, place, mut head)) = sealing.open(at, is_head) else { return };
    let axis = random.below(head.made_for.axes.len());
    match random.below(5) {
        0 => head.first = odd(random),
        1 => head.made_for.axes[axis].len = odd(random),
        2 => head.made_for.axes[axis].chunk = odd(random),
        3 => head.made_for.axes[axis].dim = odd(random),
        _ => head.made_for.fill[0] ^= 1,
    }
    let forged = head.encode(seal, place);
    bytes[at..at + forged.len()].copy_from_slice(&forged);
}

/// Every bit of tables and chunks: the values are right, or there is an error that says where.
fn no_flipped_bit_is_a_wrong_value(beside: bool) {
    let files = seed(Version::Cdf5, false, beside);
    let values = |store: &MemoryStore| -> Vec<Result<esker::Values>> {
        let ds = open(store, false).unwrap();
        let all = (0..ds.schema().vars.len()).map(VarId);
        all.map(|var| ds.get_values(var, &Selection::all())).collect()
    };
    let sound: Vec<esker::Values> =
        values(&store_of(&files)).into_iter().map(Result::unwrap).collect();
    let mut seen = 0;
    for (of, (name, bytes)) in files.iter().enumerate() {
        let begin = match (beside, of) {
            (true, 0) => continue,
            (true, _) => 0,
            (false, _) => places(bytes, b"EskV")[0],
        };
        // One bit of each byte where the other test flips them all.
        let bits = (8 * begin..8 * bytes.len()).filter(|bit| !beside || bit % 9 == 0);
        for bit in bits {
            let mut damaged = files.clone();
            damaged[of].1[bit / 8] ^= 1 << (bit % 8);
            let what = format!("{}, byte {}", name.display(), bit / 8);
            let found = values(&store_of(&damaged)).into_iter().zip(&sound).enumerate();
            for (number, (found, sound)) in found {
                match found {
                    Ok(found) => assert_eq!(found, *sound, "{what}, variable {number}"),
                    Err(error) => {
                        seen += 1;
                        let text = error.to_string();
                        let var = ["\"a\"", "\"b\"", "\"c\"", "\"d\""][number];
                        assert!(text.contains(var) && text.contains("chunk"), "{text}");
                        let file = name.file_name().unwrap().to_str().unwrap();
                        assert!(text.contains(file), "{what}: {text}");
                    }
                }
            }
        }
    }
    // All stored chunks, and most of the tables.
    assert!(seen > if beside { 500 } else { 8 * 500 }, "{seen} were seen");
}

#[test]
fn a_flipped_bit_is_never_a_wrong_value() {
    no_flipped_bit_is_a_wrong_value(false);
}

#[test]
fn a_flipped_bit_is_never_a_wrong_value_beside_the_classic_file() {
    no_flipped_bit_is_a_wrong_value(true);
}
