//! Chunks in files beside the classic one: files that are missing, cut, exchanged, or many.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::{
    ChunkFaultKind, Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions,
    Selection,
};
use esker_tools::Unseen;
use esker_tools::copy::{CopyOptions, copy};

use esker_testkit::ranks::on_ranks;

fn hints(files: &str) -> Hints {
    let mut hints = Hints::default();
    hints.set("esker_chunk_files", files);
    hints
}

/// A dataset of so many rows, each of them a chunk and written by a rank of its own. The filter ends
/// with its own checksum, so that the checksums in the table are all the same.
fn make(path: &Path, rows: usize, seed: i32) {
    let path = path.to_path_buf();
    on_ranks(rows, move |comm: Arc<dyn Communicator>| {
        let row = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm.clone()).hints(hints("rank"));
        let mut def = Dataset::create(&path, options).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(comm.size() as u64)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(16)).unwrap();
        let v = def.add_var("v", ExternalType::Int, &[y, x]).unwrap();
        def.set_chunks(v, &[1, 16]).unwrap();
        def.set_filters(v, "crc32c").unwrap();
        let mut ds = def.enddef().unwrap();
        let values: Vec<i32> = (0..16).map(|x| value(row, x, seed)).collect();
        ds.put_all(v, &Selection::slab(&[row, 0], &[1, 16]), &values).unwrap();
        ds.close().unwrap();
    });
}

fn value(row: u64, x: u64, seed: i32) -> i32 {
    seed + (100 * row + x) as i32
}

/// The files in the folder whose names begin so, in the order of their names.
fn files(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let begins = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(begin);
    let mut found: Vec<PathBuf> = names.filter(begins).collect();
    found.sort();
    found
}

/// What happens to a file, given another run's folder.
type Damage = (&'static str, fn(&Path, &Path));

fn of_other(file: &Path, other: &Path) -> PathBuf {
    let name = file.file_name().unwrap().to_str().unwrap();
    let (kind, number) = (name.split('.').next().unwrap(), name.rsplit('.').next().unwrap());
    let same = |path: &PathBuf| kind == "tables" || path.to_str().unwrap().ends_with(number);
    files(other, kind).into_iter().find(same).unwrap()
}

const DAMAGES: [Damage; 8] = [
    ("missing", |file, _| fs::remove_file(file).unwrap()),
    ("empty", |file, _| fs::write(file, "").unwrap()),
    ("cut", |file, _| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() - 40]).unwrap();
    }),
    ("cut in its head", |file, _| {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..40]).unwrap();
    }),
    ("another run's", |file, other| {
        fs::copy(of_other(file, other), file).unwrap();
    }),
    ("a directory", |file, _| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
    ("a link to itself", |file, _| {
        fs::remove_file(file).unwrap();
        symlink(file, file).unwrap();
    }),
    ("a link to nothing", |file, _| {
        fs::remove_file(file).unwrap();
        symlink("nothing", file).unwrap();
    }),
];

#[test]
fn a_damaged_data_file_is_an_error_that_names_it_and_others_are_read() {
    for (what, damage) in DAMAGES {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("run.nc"), dir.path().join("other.nc"));
        make(&path, 3, 0);
        make(&other, 3, 7000);
        let victim = files(&path, "chunks.")[1].clone();
        let name = victim.file_name().unwrap().to_str().unwrap().to_string();
        damage(&victim, &other);
        let ds = Dataset::open(&path).unwrap();
        let v = ds.var("v").unwrap();
        let mut wrong = 0;
        for row in 0..3 {
            match ds.get::<i32>(v, &Selection::slab(&[row, 0], &[1, 16])) {
                Ok(values) => {
                    let expected: Vec<i32> = (0..16).map(|x| value(row, x, 0)).collect();
                    assert_eq!(values, expected, "{what}");
                }
                Err(error) => {
                    wrong += 1;
                    let text = error.to_string();
                    for word in [&name, "\"v\"", &format!("chunk {row}")] {
                        assert!(text.contains(word), "{what}: {word} is missing in {text}");
                    }
                }
            }
        }
        assert_eq!(wrong, 1, "{what}");
        let faults = ds.examine_chunks(&mut |_, _| {}).unwrap();
        assert_eq!(faults.len(), 1, "{what}: {faults:?}");
        let kinds = [ChunkFaultKind::Place, ChunkFaultKind::Data];
        assert!(kinds.contains(&faults[0].kind) && faults[0].chunk.is_some(), "{what}: {faults:?}");
        drop(ds);
        // One element of the damaged chunk, by whoever: everyone hears of it, nothing is lost.
        let reopened = path.clone();
        let outcomes = on_ranks(3, move |comm| -> Result<(), esker::Error> {
            let options = OpenOptions::new().writable(true).comm(comm.clone());
            let mut ds = Dataset::open_with(&reopened, options.hints(hints("rank")))?;
            let v = ds.var("v")?;
            let column = match comm.rank() {
                0 => Selection::slab(&[0, 0], &[3, 1]),
                _ => Selection::none(),
            };
            let values = if comm.rank() == 0 { vec![-1; 3] } else { Vec::new() };
            ds.put_all(v, &column, &values)?;
            ds.close()
        });
        let texts: Vec<String> =
            outcomes.iter().map(|o| o.as_ref().unwrap_err().to_string()).collect();
        assert!(texts.iter().all(|text| text.contains(&name)), "{what}: {texts:?}");
        let ds = Dataset::open(&path).unwrap();
        let sound = (0..3).filter(|row| {
            let values = ds.get::<i32>(v, &Selection::slab(&[*row, 0], &[1, 16]));
            values.is_ok_and(|values| values[0] == value(*row, 0, 0))
        });
        assert_eq!(sound.count(), 2, "{what}");
    }
}

#[test]
fn files_of_two_ranks_that_changed_places_are_not_taken_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    make(&path, 2, 0);
    let [a, b] = <[PathBuf; 2]>::try_from(files(&path, "chunks.")).unwrap();
    let between = dir.path().join("between");
    fs::rename(&a, &between).unwrap();
    fs::rename(&b, &a).unwrap();
    fs::rename(&between, &b).unwrap();
    let ds = Dataset::open(&path).unwrap();
    let error = ds.get::<i32>(ds.var("v").unwrap(), &Selection::all()).unwrap_err().to_string();
    assert!(error.contains("its head is another"), "{error}");
    assert_eq!(ds.examine_chunks(&mut |_, _| {}).unwrap().len(), 2);
}

#[test]
fn a_damaged_file_of_tables_is_an_error_that_names_it() {
    for (what, damage) in DAMAGES {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("run.nc"), dir.path().join("other.nc"));
        make(&path, 2, 0);
        make(&other, 2, 7000);
        let victim = files(&path, "tables.")[0].clone();
        let name = victim.file_name().unwrap().to_str().unwrap().to_string();
        damage(&victim, &other);
        let ds = Dataset::open(&path).unwrap();
        let outcome = ds.get::<i32>(ds.var("v").unwrap(), &Selection::all());
        let text = outcome.unwrap_err().to_string();
        let words = [&name, "\"v\"", "chunk"];
        assert!(words.iter().all(|word| text.contains(word)), "{what}: {text}");
        let faults = ds.examine_chunks(&mut |_, _| {}).unwrap();
        let kinds = [ChunkFaultKind::Table, ChunkFaultKind::Place];
        assert!(faults.iter().any(|f| kinds.contains(&f.kind)), "{what}: {faults:?}");
    }
}

/// Data files of the dataset with many.
const MANY: usize = 200;
const FEW: &str = "ESKER_FEW_DESCRIPTORS";

#[test]
fn many_data_files_are_read_and_written_with_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    make(&path, MANY, 0);
    assert_eq!(files(&path, "chunks.").len(), MANY);
    let script =
        "ulimit -n 64 && exec \"$0\" --exact chunked::files::with_few_descriptors --ignored";
    let mut child = Command::new("sh");
    child.args(["-c", script]).arg(std::env::current_exe().unwrap()).env(FEW, dir.path());
    let output = child.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
#[ignore = "a part of many_data_files_are_read_and_written_with_few_descriptors"]
fn with_few_descriptors() {
    let Some(dir) = std::env::var_os(FEW).map(PathBuf::from) else { return };
    assert!((0..100).map(|_| fs::File::open("/dev/null")).collect::<Result<Vec<_>, _>>().is_err());
    let path = dir.join("run.nc");
    let look = |path: &Path, first: i32| {
        let ds = Dataset::open(path).unwrap();
        let found = ds.get::<i32>(ds.var("v").unwrap(), &Selection::all()).unwrap();
        let rows = found.chunks(16).enumerate();
        rows.for_each(|(row, found)| {
            assert_eq!(found[0], if first < 0 { first } else { value(row as u64, 0, 0) });
            let rest: Vec<i32> = (1..16).map(|x| value(row as u64, x, 0)).collect();
            assert_eq!(found[1..], rest);
        });
        assert_eq!(ds.examine_chunks(&mut |_, _| {}).unwrap(), []);
    };
    look(&path, 0);
    copy(&path, &dir.join("plain.nc"), &CopyOptions::default(), &mut Unseen).unwrap();
    look(&dir.join("plain.nc"), 0);
    let options = OpenOptions::new().writable(true).hints(hints("rank"));
    let mut ds = Dataset::open_with(&path, options).unwrap();
    let v = ds.var("v").unwrap();
    // The rest of every chunk comes from its file.
    ds.put(v, &Selection::slab(&[0, 0], &[MANY as u64, 1]), &[-5; MANY]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    look(&path, -5);
}

/// A loss of power may leave a block of a table that is linked and not all there, for records that nobody has counted:
/// the file's other records are read, and the next writer begins the block anew.
#[test]
fn a_block_that_a_loss_of_power_has_cut_short_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let options = CreateOptions::new().hints(hints("shared"));
    let mut def = Dataset::create(&path, options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(16)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
    def.set_chunks(v, &[1, 16]).unwrap();
    let mut ds = def.enddef().unwrap();
    let put = |ds: &mut Dataset, record: u64| {
        let values: Vec<i32> = (0..16).map(|x| value(record, x, 0)).collect();
        ds.put_all(v, &Selection::slab(&[record, 0], &[1, 16]), &values).unwrap();
    };
    put(&mut ds, 0);
    ds.sync().unwrap();
    let (classic, tables) = (path.join("data.nc"), files(&path, "tables").remove(0));
    let (header, len) = (fs::read(&classic).unwrap(), fs::metadata(&tables).unwrap().len());
    // As many records as the table has room for, and one more.
    let mut record = 1;
    while fs::metadata(&tables).unwrap().len() == len {
        put(&mut ds, record);
        record += 1;
    }
    ds.close().unwrap();
    assert!(fs::metadata(&tables).unwrap().len() > len + 100, "the block is short");
    // The header is the one that was synced; of the block only its head and an entry are there.
    fs::write(&classic, header).unwrap();
    fs::OpenOptions::new().write(true).open(&tables).unwrap().set_len(len + 70).unwrap();
    let expected = |records: u64| -> Vec<i32> {
        (0..records).flat_map(|r| (0..16).map(move |x| value(r, x, 0))).collect()
    };
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), expected(1));
    let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
    (1..record + 3).for_each(|record| put(&mut ds, record));
    ds.close().unwrap();
    let ds = Dataset::open(&path).unwrap();
    assert_eq!(ds.get::<i32>(v, &Selection::all()).unwrap(), expected(record + 3));
    assert!(ds.examine_chunks(&mut |_, _| {}).unwrap().is_empty());
}
