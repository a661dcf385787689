//! Whole files from enemies and broken disks: opening, reading and writing them gives data or
//! an error, never a panic, and takes no more memory than the file justifies.

mod chunked;
mod exercise;

use std::path::Path;

use esker::{DimLen, Error, ExternalType};
use esker_format::HeaderJournal;
use esker_store::{CreateMode, MemoryStore, Store};
use esker_testkit::{damage, data, memory, random::Random};
use exercise::{NAME, allowance, decomposed, open, read_all, seeds, soak, store_with, write_all};

#[test]
fn damaged_files_give_data_or_errors() {
    let opened = soak(&seeds(), 7 << 32, 50_000, |_, _| {});
    assert!(opened > 5_000, "{opened} opened");
}

#[test]
fn damaged_maps_give_data_or_errors() {
    let seeds = decomposed();
    let mut whole = 0;
    for round in 0..40_000u64 {
        let random = &mut Random(round);
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(3) {
            // The header, and the maps right behind it.
            let at = random.below(bytes.len());
            let byte = [0, 1, 2, 4, 0x7f, 0x80, 0xff, random.next() as u8];
            bytes[at] = byte[random.below(byte.len())];
        }
        if random.below(4) == 0 {
            damage::mutate(random, &mut bytes);
        }
        let store = store_with(Path::new(NAME), &bytes);
        let (result, used) = memory::peak(|| read_all(&store));
        // An array may have many times what is stored of it, and no more.
        let most = allowance(bytes.len()) + (16 << 20) + 256 * 8 * bytes.len();
        assert!(used <= most, "round {round}: {used} bytes for {}", bytes.len());
        whole += u64::from(result.is_ok());
        let _ = write_all(&store);
    }
    assert!(whole > 10_000, "{whole} could be opened");
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
    let header = damage::header(&mut Random(3)).encode();
    for round in 0..3_000 {
        let random = &mut Random(round);
        let (mut old, mut new) = (header.clone(), header.clone());
        damage::mutate(random, &mut new);
        if random.below(2) == 0 {
            damage::mutate(random, &mut old);
        }
        // A right checksum over anything at all, or a wrong one.
        let mut journal = HeaderJournal { old, new }.encode();
        if random.below(4) == 0 {
            damage::mutate(random, &mut journal);
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
