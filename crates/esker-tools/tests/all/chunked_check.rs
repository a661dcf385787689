//! What a check says of damaged chunked files.

use std::path::{Path, PathBuf};

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection, StoredChunk};
use esker_format::VarId;
use esker_format::chunked::{Block, Entry, Seal, identity_of};
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, RepairOptions, Report, Target, Verdict, check, repair};

struct Made {
    _directory: tempfile::TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where the heap begins, and the variable's table block.
    heap: usize,
    table: usize,
    chunks: Vec<StoredChunk>,
    seal: Seal,
}

/// A variable of three records, each of four chunks.
fn made() -> Made {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1000)).unwrap();
    let t = def.add_var("t", ExternalType::Double, &[time, x]).unwrap();
    def.set_chunks(t, &[1, 300]).unwrap();
    def.set_filters(t, "shuffle zstd,3").unwrap();
    let mut ds = def.enddef().unwrap();
    let values: Vec<f64> = (0..3000).map(|i| f64::from(i).sin()).collect();
    ds.put(t, &Selection::slab(&[0, 0], &[3, 1000]), &values).unwrap();
    ds.close().unwrap();
    let ds = Dataset::open(&path).unwrap();
    let heap = ds.heap().unwrap().unwrap().start as usize;
    let table = ds.table_blocks(t).unwrap()[0].offset as usize;
    let mut chunks = Vec::new();
    let each = |_: &[u64], chunk| {
        chunks.push(chunk);
        Ok(())
    };
    ds.stored_chunks(t, false, each).unwrap();
    assert_eq!(chunks.len(), 12);
    let bytes = std::fs::read(&path).unwrap();
    let seal = Seal::new(identity_of(&ds.header().schema).unwrap(), VarId(0));
    Made { _directory: directory, path, bytes, heap, table, chunks, seal }
}

impl Made {
    fn entry_at(&self, chunk: usize) -> usize {
        self.table + (Block::LEN + chunk as u64 * Entry::LEN) as usize
    }

    fn entry(&self, chunk: usize) -> Entry {
        let at = self.entry_at(chunk);
        let bytes = self.bytes[at..][..32].try_into().unwrap();
        Entry::decode(bytes, self.seal, chunk as u64).unwrap().unwrap()
    }

    fn set_entry(&mut self, chunk: usize, entry: Entry) {
        let at = self.entry_at(chunk);
        self.bytes[at..at + 32].copy_from_slice(&entry.encode(self.seal, chunk as u64));
    }

    fn check(&self) -> Report {
        std::fs::write(&self.path, &self.bytes).unwrap();
        look(&self.path)
    }

    /// The codes, objects and offsets of the errors.
    fn errors(&self) -> Vec<(&'static str, String, Option<u64>)> {
        let report = self.check();
        assert_eq!(report.verdict(), Verdict::Invalid, "{:?}", report.findings);
        let errors = report.findings.iter().filter(|f| f.severity.name() == "error");
        errors.map(|f| (f.code, f.object.clone(), f.offset)).collect()
    }
}

fn look(path: &Path) -> Report {
    check(path, &CheckOptions::default(), &mut Unseen).unwrap()
}

#[test]
fn a_sound_chunked_file_is_valid() {
    let made = made();
    let report = made.check();
    let errors: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(report.verdict(), Verdict::Valid, "{errors:?}");
}

#[test]
fn a_flipped_bit_in_a_chunk_names_variable_chunk_and_byte() {
    let mut made = made();
    let chunk = made.chunks[6];
    made.bytes[(chunk.offset + chunk.size / 2) as usize] ^= 4;
    let expected = ("chunk-data", "variable \"t\", chunk (1, 2)".to_string(), Some(chunk.offset));
    assert_eq!(made.errors(), [expected]);
}

#[test]
fn every_damaged_chunk_is_told_of() {
    let mut made = made();
    for n in [0, 5, 11] {
        let at = made.chunks[n].offset as usize;
        made.bytes[at] ^= 1;
    }
    let objects: Vec<String> = made.errors().into_iter().map(|e| e.1).collect();
    let chunk = |index| format!("variable \"t\", chunk ({index})");
    assert_eq!(objects, [chunk("0, 0"), chunk("1, 1"), chunk("2, 3")]);
}

#[test]
fn a_damaged_entry_is_told_of_even_where_nothing_was_written() {
    let mut made = made();
    let (used, unused) = (made.entry_at(3), made.entry_at(60));
    made.bytes[used + 9] ^= 1;
    made.bytes[unused + 9] ^= 1;
    let errors = made.errors();
    let name = |index: &str| format!("variable \"t\", chunk ({index})");
    assert_eq!(errors[0], ("chunk-table", name("0, 3"), Some(used as u64)));
    assert_eq!(errors[1], ("chunk-table", name("15, 0"), Some(unused as u64)));
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_damaged_table_block_is_told_of() {
    let mut made = made();
    let at = made.table + 12;
    made.bytes[at] ^= 1;
    let table = made.table as u64;
    assert_eq!(made.errors(), [("chunk-table", "variable \"t\"".to_string(), Some(table))]);
}

#[test]
fn chunks_that_share_bytes_are_told_of() {
    let mut made = made();
    let (first, second) = (made.entry(1), made.entry(2));
    // Two entries for one place, each with a checksum that is right.
    made.set_entry(2, first);
    let errors = made.errors();
    assert!(errors.iter().any(|e| e.0 == "chunk-overlap"), "{errors:?}");
    // A chunk inside the table.
    let place = (made.table - made.heap) as u64;
    made.set_entry(2, Entry { place, ..second });
    let errors = made.errors();
    assert!(errors.iter().any(|e| e.0 == "chunk-overlap"), "{errors:?}");
    assert!(errors.iter().any(|e| e.0 == "chunk-data"), "{errors:?}");
}

#[test]
fn places_outside_the_heap_are_told_of() {
    let mut made = made();
    let entry = made.entry(2);
    for wrong in [
        Entry { place: 1 << 40, ..entry },
        Entry { place: u64::MAX - 63, ..entry },
        Entry { place: entry.place + 1, ..entry },
        Entry { size: 1 << 60, ..entry },
        Entry { file: 7, ..entry },
    ] {
        made.set_entry(2, wrong);
        let errors = made.errors();
        assert_eq!(errors.len(), 1, "{wrong:?}: {errors:?}");
        assert_eq!((errors[0].0, &*errors[0].1), ("chunk-place", "variable \"t\", chunk (0, 2)"));
    }
}

#[test]
fn a_cut_file_is_invalid() {
    let mut made = made();
    let end = made.chunks[11].offset as usize + 1;
    made.bytes.truncate(end);
    let errors = made.errors();
    let codes: Vec<&str> = errors.iter().map(|error| error.0).collect();
    // The variable that ends the chunks is gone, and a part of the last of them.
    assert_eq!(codes, ["chunk-place", "data-cut"]);
    assert_eq!(errors[1].1, "variable \"__chunk_end\"");
}

#[test]
fn a_repair_leaves_chunks_alone_and_says_so() {
    let mut made = made();
    let chunk = made.chunks[6];
    made.bytes[chunk.offset as usize] ^= 4;
    made.check();
    let mut options = RepairOptions::new(Target::InPlace);
    (options.adopt_records, options.cut_trailing) = (true, true);
    let repaired = repair(&made.path, &options, &mut Unseen).unwrap();
    assert!(repaired.mended.is_empty(), "{:?}", repaired.mended);
    assert_eq!(repaired.left.len(), 1);
    assert!(repaired.left[0].why.contains("write the chunk anew"), "{}", repaired.left[0].why);
    assert_eq!(std::fs::read(&made.path).unwrap(), made.bytes);
}

#[test]
fn no_byte_of_a_chunked_file_makes_a_check_panic() {
    let made = made();
    let original = made.bytes.clone();
    // Header, tables and the beginning of the chunks; a prime step reaches all fields in turn.
    for at in (0..original.len().min(made.heap + 4096)).step_by(7) {
        let mut damaged = original.clone();
        damaged[at] ^= 0x81;
        std::fs::write(&made.path, &damaged).unwrap();
        let _ = check(&made.path, &CheckOptions::default(), &mut Unseen);
    }
}
