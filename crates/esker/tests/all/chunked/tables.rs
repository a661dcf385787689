//! Tables that were damaged, exchanged or made for something else: an error that says so, never values.
//!
//! What is damaged is found by the format's page alone (docs/format/chunked.md), not by the library's own reader.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, OpenOptions, Selection, VarId,
    Version,
};
use esker_store::{Access, CreateMode, MemoryStore, Store};

const PATH: &str = "/run/tables.nc";
const RECORDS: u64 = 5;

/// Where the tables are: in the file, or in one beside it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Form {
    Inside,
    Beside,
}

use Form::{Beside, Inside};

/// The names and bytes of a dataset's files, the one with the tables first.
#[derive(Clone)]
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn store(&self) -> MemoryStore {
        let store = MemoryStore::default();
        for (name, bytes) in &self.0 {
            store.create(name, CreateMode::New).unwrap().write_at(0, bytes).unwrap();
        }
        store
    }

    fn tables(&mut self) -> &mut Vec<u8> {
        &mut self.0[0].1
    }

    /// The classic file.
    fn classic(&mut self) -> &mut Vec<u8> {
        &mut self.0.last_mut().unwrap().1
    }

    /// Where the blocks of tables are, by their magic bytes.
    fn blocks(&self) -> Vec<usize> {
        let found = self.0[0].1.windows(4).enumerate().filter(|(_, w)| w == b"EskT");
        found.map(|(at, _)| at).collect()
    }

    /// Where the entry of a chunk is, in the first block of the variable of this number.
    fn entry(&self, var: usize, chunk: usize) -> usize {
        self.blocks()[var] + 32 + 32 * chunk
    }
}

/// Two alike variables with records and two without; every chunk was written, but for the last of `a`.
fn made(form: Form, version: Version) -> Files {
    made_with(form, version, |ds| ds.sync().unwrap())
}

/// The same, with another end of the writing than a sync.
fn made_with(form: Form, version: Version, end: impl FnOnce(&mut Dataset)) -> Files {
    let store = MemoryStore::default();
    let mut hints = Hints::default();
    if form == Beside {
        hints.set("esker_chunk_files", "rank");
    }
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let options = CreateOptions::new().version(version).store(shared).hints(hints);
    let mut def = Dataset::create(PATH, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let y = def.add_dim("y", DimLen::Fixed(6)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(8)).unwrap();
    for name in ["a", "b"] {
        let var = def.add_var(name, ExternalType::Int, &[t, y, x]).unwrap();
        def.set_chunks(var, &[1, 3, 8]).unwrap();
        def.set_filters(var, "crc32c").unwrap();
    }
    for name in ["c", "d"] {
        let var = def.add_var(name, ExternalType::Float, &[y, x]).unwrap();
        def.set_chunks(var, &[2, 8]).unwrap();
        def.set_filters(var, "shuffle zstd").unwrap();
    }
    let mut ds = def.enddef().unwrap();
    for var in 0..2 {
        let data: Vec<i32> = (0..RECORDS as i32 * 48).map(|i| i + 1000 * var).collect();
        let all = Selection::slab(&[0, 0, 0], &[RECORDS, 6, 8]);
        ds.put(VarId(var as usize), &all, &data).unwrap();
    }
    let fixed: Vec<f32> = (0..48).map(|i| i as f32).collect();
    ds.put(VarId(2), &Selection::slab(&[0, 0], &[4, 8]), &fixed[..32]).unwrap();
    ds.put(VarId(3), &Selection::all(), &fixed).unwrap();
    // How many records were written is noted behind a sync alone.
    end(&mut ds);
    ds.close().unwrap();
    let mut names = store.list();
    let is = |name: &PathBuf, what| name.file_name().unwrap().to_string_lossy().starts_with(what);
    names.sort_by_key(|name| (!is(name, "tables"), is(name, "data.nc")));
    Files(names.into_iter().map(|name| (name.clone(), store.bytes(&name).unwrap())).collect())
}

fn open(store: &MemoryStore, writable: bool) -> Result<Dataset, Error> {
    let options = OpenOptions::new().writable(writable).store(Arc::new(store.clone()));
    Dataset::open_with(PATH, options)
}

/// The values of all variables, or the error of the first that has one.
fn values(files: &Files) -> Result<Vec<Vec<f64>>, Error> {
    let ds = open(&files.store(), false)?;
    (0..4).map(|var| ds.get(VarId(var), &Selection::all())).collect()
}

/// Reading fails with a sentence that has these words, `check` finds something, and a writer that opens the file and
/// writes somewhere else is refused.
fn require_error(files: &Files, words: &[&str], what: &str) {
    let error = values(files).expect_err(what).to_string();
    for word in words.iter().chain(&["tables.nc"]) {
        assert!(error.contains(word), "{what}: {error:?} lacks {word:?}");
    }
    let store = files.store();
    let ds = open(&store, false).unwrap();
    let faults = ds.examine_chunks(&mut |_, _| ()).unwrap();
    assert!(!faults.is_empty(), "{what}: a check finds nothing");
    let written = open(&store, true).and_then(|mut ds| {
        ds.put(VarId(3), &Selection::element(&[0, 0]), &[7f32])?;
        ds.close()
    });
    assert!(written.is_err(), "{what}: it was written to");
}

fn all_forms() -> impl Iterator<Item = (Form, Version)> {
    let versions = [Version::Cdf1, Version::Cdf2, Version::Cdf5];
    [Inside, Beside].into_iter().flat_map(move |form| versions.map(|version| (form, version)))
}

#[test]
fn a_zeroed_entry_is_no_fill_value() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        values(&sound).unwrap();
        for (var, name) in ["a", "b", "c", "d"].iter().enumerate() {
            let mut files = sound.clone();
            let at = files.entry(var, 1);
            files.tables()[at..at + 32].fill(0);
            let words = [&format!("\"{name}\"")[..], "chunk 1", &format!("byte {at}"), "zeros"];
            require_error(&files, &words, &format!("{form:?} {version:?} {name}"));
        }
    }
}

/// The chunk that was never written, too: who knows whether it was.
#[test]
fn a_zeroed_entry_of_what_was_never_written_is_an_error() {
    let mut files = made(Inside, Version::Cdf5);
    let at = files.entry(2, 2);
    assert_eq!(values(&files).unwrap()[2][40], f64::from(9.969_21e36_f32));
    files.tables()[at..at + 32].fill(0);
    require_error(&files, &["\"c\"", "chunk 2", "zeros"], "never written");
}

#[test]
fn a_zeroed_sector_of_a_table_is_no_fill_value() {
    for (form, version) in all_forms() {
        let mut files = made(form, version);
        // The one that has the first entry.
        let at = files.entry(0, 0) / 512 * 512;
        files.tables()[at..at + 512].fill(0);
        require_error(&files, &["chunk table"], &format!("{form:?} {version:?}"));
    }
}

#[test]
fn entries_that_changed_places_are_not_taken_for_each_other() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        // Two chunks of one variable, and the same chunk of two.
        for (one, other) in [((0, 0), (0, 1)), ((0, 3), (1, 3)), ((2, 2), (2, 0))] {
            let mut files = sound.clone();
            let [one, other] = [one, other].map(|(var, chunk)| files.entry(var, chunk));
            let (first, second) = files.tables().split_at_mut(other.max(one));
            first[one.min(other)..][..32].swap_with_slice(&mut second[..32]);
            let words = ["does not match its checksum"];
            require_error(&files, &words, &format!("{form:?} {version:?} {one} {other}"));
        }
    }
}

#[test]
fn blocks_and_heads_that_changed_places_are_not_taken_for_each_other() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        let blocks = sound.blocks();
        let len = blocks[1] - blocks[0];
        let mut files = sound.clone();
        let (first, second) = files.tables().split_at_mut(blocks[1]);
        first[blocks[0]..][..len].swap_with_slice(&mut second[..len]);
        require_error(&files, &["\"a\"", "block"], &format!("blocks, {form:?} {version:?}"));
        let heads: Vec<usize> = {
            let found = sound.0[0].1.windows(4).enumerate().filter(|(_, w)| w == b"EskV");
            found.map(|(at, _)| at).collect()
        };
        let len = heads[1] - heads[0];
        let mut files = sound.clone();
        let (first, second) = files.tables().split_at_mut(heads[1]);
        first[heads[0]..][..len].swap_with_slice(&mut second[..len]);
        require_error(&files, &["\"a\"", "head"], &format!("heads, {form:?} {version:?}"));
    }
}

/// Everything is the same but for when it was made.
#[test]
fn the_table_of_another_file_is_not_taken_for_this_ones() {
    let (sound, other) = (made(Inside, Version::Cdf5), made(Inside, Version::Cdf5));
    let blocks = sound.blocks();
    assert_eq!(blocks, other.blocks());
    let mut files = sound.clone();
    let len = blocks[1] - blocks[0];
    let bytes = &other.0[0].1[blocks[0]..][..len];
    files.tables()[blocks[0]..][..len].copy_from_slice(bytes);
    require_error(&files, &["\"a\"", "block"], "a block of another file");
    let mut files = sound;
    let at = files.entry(0, 2);
    files.tables()[at..at + 32].copy_from_slice(&other.0[0].1[at..at + 32]);
    require_error(&files, &["\"a\"", "chunk 2"], "an entry of another file");
}

/// Data that end with their own checksum all have the same one, whatever they are.
#[test]
fn chunks_that_changed_places_are_not_taken_for_each_other() {
    let mut files = made(Inside, Version::Cdf5);
    let ds = open(&files.store(), false).unwrap();
    let mut places = Vec::new();
    let each = |_: &[u64], chunk: esker::StoredChunk| {
        places.push((chunk.offset as usize, chunk.size as usize, chunk.crc32c));
        Ok(())
    };
    ds.stored_chunks(VarId(0), true, each).unwrap();
    let ((one, size, sum), (other, same, same_sum)) = (places[0], places[1]);
    assert_eq!((size, sum), (same, same_sum), "or the test shows nothing");
    let (first, second) = files.tables().split_at_mut(other);
    first[one..one + size].swap_with_slice(&mut second[..size]);
    let error = values(&files).unwrap_err().to_string();
    assert!(error.contains("chunk 0") && error.contains("does not match its checksum"), "{error}");
    let ds = open(&files.store(), false).unwrap();
    assert_eq!(ds.examine_chunks(&mut |_, _| ()).unwrap().len(), 2);
}

/// Where the four bytes of a dimension's length are in a classic header, behind its name, or the eight of CDF-5.
fn length_at(bytes: &[u8], name: u8, version: Version) -> usize {
    let (count, four) = if version == Version::Cdf5 { (8, 8) } else { (4, 4) };
    let mut begin = vec![0; count - 1];
    begin.extend([1, name, 0, 0, 0]);
    let at = bytes.windows(begin.len()).position(|w| w == begin).unwrap();
    at + begin.len() + four - 1
}

#[test]
fn one_number_of_a_header_never_mixes_records() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        for (name, old, new) in [(b'y', 6, 12), (b'y', 6, 5), (b'x', 8, 16), (b'x', 8, 7)] {
            let mut files = sound.clone();
            let classic = files.classic();
            let at = length_at(classic, name, version);
            assert_eq!(classic[at], old);
            classic[at] = new;
            let both = ["made for", &format!("{old}"), "the header says", &format!("{new}")];
            require_error(&files, &both, &format!("{form:?} {version:?} {}", name as char));
        }
    }
}

/// A length that makes the array gigabytes long is refused before memory is taken for it.
#[test]
fn a_long_dimension_is_an_error_and_not_gigabytes_of_fill() {
    for version in [Version::Cdf1, Version::Cdf5] {
        let mut files = made(Inside, version);
        let at = length_at(files.classic(), b'y', version);
        files.classic()[at - 3] = 0x40;
        let ds = open(&files.store(), false).unwrap();
        for var in 0..4 {
            let error = ds.get_values(VarId(var), &Selection::all()).unwrap_err().to_string();
            assert!(error.contains("made for") && error.contains("1073741830"), "{error}");
        }
    }
}

/// Where the values of an attribute of the first variable with one begin.
fn attribute_at(bytes: &[u8], name: &str, version: Version) -> usize {
    let at = bytes.windows(name.len()).position(|w| w == name.as_bytes()).unwrap();
    at + name.len().next_multiple_of(4) + if version == Version::Cdf5 { 12 } else { 8 }
}

#[test]
fn an_anchor_that_says_something_else_is_an_error() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        // The last byte of a value: which attribute, which of its bytes, and what it becomes.
        for (name, byte, new) in [
            ("__chunk_dims", 11, 1),
            ("__chunk_dims", 7, 2),
            ("__chunk_shape", 3, 2),
            ("__chunk_shape", 7, 6),
            ("__chunk_shape", 11, 4),
            ("__chunk_refs", 7, 64),
            ("__chunk_refs", 7, 7),
            ("__chunk_id", 7, 99),
            ("__filters", 7, 77),
        ] {
            let mut files = sound.clone();
            let classic = files.classic();
            let at = attribute_at(classic, name, version) + byte;
            if classic[at] == new {
                continue;
            }
            classic[at] = new;
            let outcome = values(&files);
            assert!(outcome.is_err(), "{form:?} {version:?} {name} {byte}: {outcome:?}");
        }
        // Heads of other variables, one of which is alike.
        let found = sound.0[0].1.windows(4).enumerate().filter(|(_, w)| w == b"EskV");
        let heads: Vec<usize> = found.map(|(at, _)| at).collect();
        for head in &heads {
            let mut files = sound.clone();
            let classic = files.classic();
            let at = attribute_at(classic, "__chunk_refs", version) + 6;
            let own = u16::from_be_bytes([classic[at], classic[at + 1]]);
            let other = own + (head - heads[0]) as u16;
            classic[at..at + 2].copy_from_slice(&other.to_be_bytes());
            let outcome = values(&files);
            assert_eq!(outcome.is_ok(), own == other, "{form:?} {version:?} head at {other}");
        }
    }
}

#[test]
fn the_type_of_an_anchor_is_what_its_table_was_made_for() {
    for version in [Version::Cdf1, Version::Cdf2, Version::Cdf5] {
        let mut files = made(Inside, version);
        // Float instead of int: the type follows the variable's attributes.
        let classic = files.classic();
        let note = b"for every netCDF program.";
        let at = classic.windows(note.len()).position(|w| w == note).unwrap() + note.len();
        let at = at.next_multiple_of(4) + 3;
        assert_eq!(classic[at], 4, "NC_INT");
        classic[at] = 5;
        require_error(&files, &["made for int", "the header says float"], &format!("{version:?}"));
    }
}

#[test]
fn a_number_of_records_that_is_damaged_is_an_error() {
    for (form, version) in all_forms() {
        let sound = made(form, version);
        let last = if version == Version::Cdf5 { 11 } else { 7 };
        for (byte, new, words) in [
            (last, 9, ["file counts 9 records", "5 were ever begun"]),
            (last - 3, 1, ["records", "5 were ever begun"]),
            (last, 3, ["5 of its records were written", "file counts 3"]),
        ] {
            let mut files = sound.clone();
            assert_eq!(files.classic()[last], RECORDS as u8);
            files.classic()[byte] = new;
            let what = format!("{form:?} {version:?} {byte} {new}");
            let error = values(&files).expect_err(&what).to_string();
            for word in words.iter().chain(&["\"a\""]) {
                assert!(error.contains(word), "{what}: {error:?} lacks {word:?}");
            }
            let store = files.store();
            let ds = open(&store, false).unwrap();
            let faults = ds.examine_chunks(&mut |_, _| ()).unwrap();
            assert!(faults.iter().any(|fault| fault.var == "a"), "{what}: {faults:?}");
            // What was begun is read all the same, unless the file counts less.
            let first = ds.get::<f64>(VarId(0), &Selection::element(&[4, 5, 7]));
            assert_eq!(first.is_ok(), new != 3, "{what}");
            assert!(ds.stored_chunks(VarId(0), false, |_, _| Ok(())).is_err(), "{what}");
        }
    }
}

/// Where nothing was synced, a loss of power after a close leaves the same, so that it is no error.
#[test]
fn fewer_records_than_were_begun_are_told_and_those_that_were_synced_are_read() {
    let more = |ds: &mut Dataset| {
        ds.sync().unwrap();
        let record: Vec<i32> = (0..48).collect();
        ds.put(VarId(0), &Selection::slab(&[RECORDS, 0, 0], &[1, 6, 8]), &record).unwrap();
    };
    for (form, version) in all_forms() {
        let last = if version == Version::Cdf5 { 11 } else { 7 };
        let whole = values(&made(form, version)).unwrap();
        for (synced, counted, begun) in [(0, 3, RECORDS), (RECORDS, RECORDS, RECORDS + 1)] {
            let mut files = match synced {
                0 => made_with(form, version, |_| ()),
                _ => made_with(form, version, more),
            };
            let what = format!("{form:?} {version:?} {synced} synced");
            assert_eq!(open(&files.store(), false).unwrap().notes(), [] as [String; 0], "{what}");
            assert_eq!(u64::from(files.classic()[last]), begun, "{what}");
            files.classic()[last] = counted as u8;
            let store = files.store();
            let words = format!("the file counts {counted} records, but {begun} were begun");
            let ds = open(&store, false).unwrap();
            let [note] = ds.notes() else { panic!("{what}: {:?}", ds.notes()) };
            assert!(note.contains(&words), "{what}: {note}");
            assert_eq!(esker::reader_notes(&store, Path::new(PATH)), ds.notes(), "{what}");
            for (var, whole) in whole.iter().enumerate() {
                let seen: Vec<f64> = ds.get(VarId(var), &Selection::all()).unwrap();
                let there = if var < 2 { counted as usize * 48 } else { whole.len() };
                assert_eq!(seen, whole[..there], "{what}");
            }
            // On every rank; and a writer begins them anew, so that nothing is left to tell.
            let told = esker::launch(2, |comm| {
                let options = OpenOptions::new().comm(comm).store(Arc::new(store.clone()));
                Dataset::open_with(PATH, options).unwrap().notes().to_vec()
            });
            assert_eq!(told, [vec![note.clone()], vec![note.clone()]], "{what}");
            let writer = open(&store, true).unwrap();
            assert_eq!(writer.notes(), ds.notes(), "{what}");
            writer.close().unwrap();
            assert_eq!(open(&store, false).unwrap().notes(), [] as [String; 0], "{what}");
        }
    }
}

/// Of a killed call records may be begun and not counted: that is no damage.
#[test]
fn records_of_others_are_counted_as_begun() {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let mut def = Dataset::create(PATH, CreateOptions::new().store(shared)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let c = def.add_var("c", ExternalType::Int, &[t]).unwrap();
    def.set_chunks(c, &[2]).unwrap();
    let r = def.add_var("r", ExternalType::Int, &[t]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(c, &Selection::slab(&[0], &[2]), &[1, 2]).unwrap();
    ds.put(r, &Selection::slab(&[0], &[6]), &[0; 6]).unwrap();
    ds.close().unwrap();
    let ds = open(&store, false).unwrap();
    let fill = -2_147_483_647;
    let seen: Vec<i32> = ds.get(c, &Selection::all()).unwrap();
    assert_eq!(seen, [1, 2, fill, fill, fill, fill]);
    // And one that is opened before they are there.
    let mut writer = open(&store, true).unwrap();
    let mut reader = ds;
    writer.put_all(r, &Selection::slab(&[6], &[3]), &[0; 3]).unwrap();
    writer.sync().unwrap();
    reader.sync().unwrap();
    assert_eq!(reader.get::<i32>(c, &Selection::all()).unwrap().len(), 9);
}

#[test]
fn a_fill_value_that_was_changed_is_an_error() {
    let mut files = made(Inside, Version::Cdf5);
    let name = b"_FillValue";
    let classic = files.classic();
    let at = classic.windows(name.len()).position(|w| w == name).unwrap() + 12 + 12;
    assert_eq!(classic[at..at + 4], (-2_147_483_647i32).to_be_bytes());
    classic[at + 3] = 9;
    require_error(&files, &["\"a\"", "fill value"], "the fill value");
    // Nor does a program change it.
    let store = made(Inside, Version::Cdf5).store();
    let mut def = open(&store, true).unwrap().redef().unwrap();
    let error = def.put_attr(VarId(0), "_FillValue", 9i32).unwrap_err().to_string();
    assert!(error.contains("_FillValue"), "{error}");
}

/// A file whose tables have no identity is of before the first release.
#[test]
fn a_file_of_before_is_refused_in_a_sentence() {
    let mut files = made(Inside, Version::Cdf5);
    let classic = files.classic();
    let name = b"__chunk_id";
    let at = classic.windows(name.len()).position(|w| w == name).unwrap();
    classic[at + 9] = b'x';
    for writable in [false, true] {
        let error = match open(&files.store(), writable) {
            Ok(ds) => ds.get_values(VarId(0), &Selection::all()).map(drop).unwrap_err(),
            Err(error) => error,
        };
        let error = error.to_string();
        assert!(error.contains("before the first release"), "{error}");
    }
}

/// Renaming and redefinition keep what checksums know; a redefinition may move everything.
#[test]
fn tables_survive_renaming_and_redefinition() {
    for (form, version) in all_forms() {
        let store = made(form, version).store();
        let before = values(&made(form, version)).unwrap();
        for round in 0..3u8 {
            let mut def = open(&store, true).unwrap().redef().unwrap();
            let (old, new) = (["a", "aa", "aaa", "aaaa"])[round as usize..].split_at(1);
            def.rename_var(old[0], new[0]).unwrap();
            def.rename_dim(&"y".repeat(round as usize + 1), &"y".repeat(round as usize + 2))
                .unwrap();
            let title = "t".repeat(3000 * usize::from(round));
            def.put_attr(esker::Owner::Global, "title", title).unwrap();
            let x = def.schema().dim("x").unwrap();
            let var = def.add_var(&format!("new{round}"), ExternalType::Byte, &[x]).unwrap();
            def.set_filters(var, "lz4").unwrap();
            let mut ds = def.enddef().unwrap();
            ds.put(var, &Selection::all(), &[round as i8; 8]).unwrap();
            ds.close().unwrap();
            let ds = open(&store, false).unwrap();
            for (var, before) in before.iter().enumerate() {
                assert_eq!(ds.get::<f64>(VarId(var), &Selection::all()).unwrap(), *before);
            }
            assert_eq!(ds.get::<i8>(var, &Selection::all()).unwrap(), [round as i8; 8]);
            assert!(ds.examine_chunks(&mut |_, _| ()).unwrap().is_empty());
        }
    }
}

/// What a disk has left of a block that it had begun to write when its power was lost: nobody was promised
/// anything of it, and the file can be written.
#[test]
fn a_new_block_that_is_not_whole_is_begun_anew() {
    let store = made(Inside, Version::Cdf5).store();
    let mut ds = open(&store, true).unwrap();
    // A second block: 64 entries are 32 records.
    let more: Vec<i32> = vec![7; 40 * 48];
    ds.put(VarId(0), &Selection::slab(&[0, 0, 0], &[40, 6, 8]), &more).unwrap();
    ds.close().unwrap();
    let mut files = Files(vec![(PATH.into(), store.bytes(Path::new(PATH)).unwrap())]);
    // Only the first records are counted, and a sector of what is behind them is zeros.
    let last = 11;
    files.tables()[last] = 33;
    let begun = attribute_at(files.classic(), "__chunk_begun", Version::Cdf5) + 7;
    files.classic()[begun] = 33;
    let written = attribute_at(files.classic(), "__chunk_ext_ndims", Version::Cdf5) + 7;
    files.classic()[written] = 33;
    let block = *files.blocks().last().unwrap();
    let sector = (block + 32 + 32 * 8).next_multiple_of(512);
    files.tables()[sector..sector + 512].fill(0);
    let store = files.store();
    let mut ds = open(&store, true).unwrap();
    let record = vec![9i32; 48];
    ds.put(VarId(0), &Selection::slab(&[39, 0, 0], &[1, 6, 8]), &record).unwrap();
    ds.close().unwrap();
    let ds = open(&store, false).unwrap();
    let all: Vec<i32> = ds.get(VarId(0), &Selection::all()).unwrap();
    let expected = [vec![7; 33 * 48], vec![-2_147_483_647; 6 * 48], vec![9; 48]].concat();
    assert_eq!(all, expected);
    assert!(ds.examine_chunks(&mut |_, _| ()).unwrap().is_empty());
    let file = store.open(Path::new(PATH), Access::Read).unwrap();
    assert!(file.len().unwrap() > 0);
}
