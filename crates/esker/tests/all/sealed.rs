//! What a header and its maps say of chunked and decomposed variables is never taken for something else: every
//! byte of them that changes is an error, or changes nothing that a reader sees.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Owner,
    Selection, Version,
};
use esker_format::{Decoded, Header};
use esker_store::{Access, CreateMode, LocalStore, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;
use esker_testkit::{programs, python};

const MAIN: &str = "/run/run.nc";
const RANKS: u64 = 2;
const RECORDS: u64 = 2;
const Y: u64 = 3;
const X: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Chunked,
    ChunkedFiles,
    Decomposed,
    Subfiled,
}

const FORMS: [Form; 4] = [Form::Chunked, Form::ChunkedFiles, Form::Decomposed, Form::Subfiled];

/// The element of a variable at a place in C order.
fn value(var: &str, place: u64) -> f64 {
    (if var == "f" { 100 } else { 500 }) as f64 + place as f64
}

fn expected(var: &str) -> (Vec<u64>, Vec<f64>) {
    let shape = if var == "f" { vec![Y, X] } else { vec![RECORDS, Y, X] };
    let values = (0..shape.iter().product()).map(|place| value(var, place)).collect();
    (shape, values)
}

fn written(
    form: Form,
    comm: &Arc<dyn Communicator>,
    store: &Arc<dyn Store>,
    path: &Path,
    (version, synced): (Version, bool),
) -> esker::Result<()> {
    let mut hints = Hints::default();
    match form {
        Form::ChunkedFiles => hints.set("esker_chunk_files", "shared"),
        Form::Subfiled => hints.set("nc_num_subfiles", "2"),
        _ => {}
    }
    let options = CreateOptions::new().comm(comm.clone()).store(store.clone()).version(version);
    let mut def = Dataset::create(path, options.hints(hints))?;
    let t = def.add_dim("t", DimLen::Unlimited)?;
    let y = def.add_dim("y", DimLen::Fixed(Y))?;
    let x = def.add_dim("x", DimLen::Fixed(X))?;
    let me = comm.rank() as u64;
    let mine = Selection::strided(&[0, me], &[Y, X / RANKS], &[1, RANKS]);
    if matches!(form, Form::Decomposed | Form::Subfiled) {
        let map = def.add_decomposition(&[y, x], &mine)?;
        def.add_decomposed_var("f", ExternalType::Int, &[], map)?;
        def.add_decomposed_var("r", ExternalType::Float, &[t], map)?;
    } else {
        let f = def.add_var("f", ExternalType::Int, &[y, x])?;
        let r = def.add_var("r", ExternalType::Float, &[t, y, x])?;
        def.set_chunks(f, &[2, 2])?;
        def.set_chunks(r, &[1, 2, 4])?;
        def.set_filters(r, "shuffle zstd,3")?;
    }
    let f = def.schema().var("f").expect("defined above");
    def.put_attr(f, "title", "a")?;
    def.add_var("plain", ExternalType::Short, &[x])?;
    def.put_attr(Owner::Global, "title", "to be damaged")?;
    let mut ds = def.enddef()?;
    let places = |record: u64| {
        let own = (0..Y * X).filter(move |place| place % X % RANKS == me);
        own.map(move |place| record * Y * X + place)
    };
    let f = ds.var("f")?;
    let values: Vec<f64> = places(0).map(|place| value("f", place)).collect();
    ds.put_all(f, &mine, &values)?;
    let r = ds.var("r")?;
    for record in 0..RECORDS {
        let values: Vec<f64> = places(record).map(|place| value("r", place)).collect();
        let slab = Selection::strided(&[record, 0, me], &[1, Y, X / RANKS], &[1, 1, RANKS]);
        ds.put_all(r, &slab, &values)?;
    }
    if synced {
        ds.sync()?;
    }
    ds.close()
}

fn made_with(form: Form, store: Arc<dyn Store>, path: &Path, how: (Version, bool)) {
    let path = path.to_path_buf();
    let done = on_ranks(RANKS as usize, move |comm: Arc<dyn Communicator>| {
        written(form, &comm, &store, &path, how).map_err(|error| error.to_string())
    });
    done.into_iter().for_each(|done| done.unwrap());
}

fn made(form: Form) -> MemoryStore {
    let store = MemoryStore::default();
    made_with(form, Arc::new(store.clone()), Path::new(MAIN), (Version::Cdf2, true));
    store
}

/// What a reader sees of a variable: what it is, or an error.
fn seen(store: &Arc<dyn Store>, path: &Path, var: &str) -> esker::Result<(Vec<u64>, Vec<f64>)> {
    let ds = Dataset::open_with(path, OpenOptions::new().store(store.clone()))?;
    let id = ds.var(var)?;
    let shape = ds.shape(id)?;
    // Not more than it can be: a wrong shape is wrong without its values.
    match shape.iter().product::<u64>() <= 1000 {
        true => Ok((shape, ds.get(id, &Selection::all())?)),
        false => Ok((shape, Vec::new())),
    }
}

/// Fails if a variable is anything but right or an error; gives how many are errors.
fn require_told(store: &MemoryStore, what: &dyn Fn() -> String) -> usize {
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let mut errors = 0;
    for var in ["f", "r"] {
        match seen(&shared, Path::new(MAIN), var) {
            Err(_) => errors += 1,
            Ok(found) => assert_eq!(found, expected(var), "{}: {var}", what()),
        }
    }
    errors
}

/// The files of a store that begin with a classic header, and its length.
fn headers(store: &MemoryStore) -> Vec<(PathBuf, Header, usize)> {
    headers_of(store, |decoded| decoded.sound().ok())
}

fn headers_of(
    store: &MemoryStore,
    take: fn(Decoded) -> Option<Header>,
) -> Vec<(PathBuf, Header, usize)> {
    let header = |path: PathBuf| {
        let bytes = store.bytes(&path)?;
        let header = take(Header::decode_noting(&bytes, bytes.len() as u64).ok()?)?;
        let len = header.layout.header_len as usize;
        Some((path, header, len))
    };
    store.list().into_iter().filter_map(header).collect()
}

fn write(store: &MemoryStore, path: &Path, at: u64, bytes: &[u8]) {
    store.open(path, Access::ReadWrite).unwrap().write_at(at, bytes).unwrap();
}

fn replace(store: &MemoryStore, path: &Path, bytes: &[u8]) {
    store.create(path, CreateMode::Truncate).unwrap().write_at(0, bytes).unwrap();
}

#[test]
fn no_byte_of_a_header_makes_a_variable_something_else() {
    for form in FORMS {
        let store = made(form);
        let mut errors = 0;
        let files = headers(&store);
        assert_eq!(files.len(), if form == Form::Subfiled { 3 } else { 1 });
        for (path, _, len) in files {
            let bytes = store.bytes(&path).unwrap();
            for (at, byte) in bytes[..len].iter().enumerate() {
                let flips = [byte ^ 1 << (at % 8), byte ^ 1 << (at / 8 % 8), 0, 255, byte ^ 4];
                for new in flips.into_iter().filter(|new| new != byte) {
                    write(&store, &path, at as u64, &[new]);
                    let what = || format!("{form:?}, byte {at} of {path:?} from {byte} to {new}");
                    errors += require_told(&store, &what);
                }
                write(&store, &path, at as u64, &[*byte]);
            }
        }
        assert!(errors > 1000, "{form:?}: {errors}");
        assert_eq!(require_told(&store, &|| "whole again".to_string()), 0);
    }
}

#[test]
fn a_lost_mark_is_told_with_its_variable_and_keeps_writers_away() {
    for (form, mark) in [
        (Form::Chunked, "__chunk_dims"),
        (Form::ChunkedFiles, "__chunk_dims"),
        (Form::Decomposed, "decomposition"),
        (Form::Subfiled, "subfiled_dimensions"),
    ] {
        let store = made(form);
        let find = |(path, _, len): (PathBuf, Header, usize)| {
            let bytes = store.bytes(&path)?;
            let at = bytes[..len].windows(mark.len()).position(|part| part == mark.as_bytes())?;
            Some((path, at as u64))
        };
        let (path, at) = headers(&store).into_iter().find_map(find).unwrap();
        write(&store, &path, at + 5, b"Z");
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let error = seen(&shared, Path::new(MAIN), "f").unwrap_err().to_string();
        assert!(error.contains("variable \"f\"") && error.contains("__esker_seal"), "{error}");
        // The others are read.
        if form != Form::Subfiled {
            assert_eq!(seen(&shared, Path::new(MAIN), "r").unwrap(), expected("r"));
        }
        let options = OpenOptions::new().writable(true).store(shared.clone());
        let error = Dataset::open_with(MAIN, options).unwrap_err().to_string();
        // (Sub-files that do not fit what is left are told first.)
        assert!(error.contains("__esker_seal") || form == Form::Subfiled, "{error}");
        // On every rank.
        let told = on_ranks(2, move |comm: Arc<dyn Communicator>| {
            let options = OpenOptions::new().comm(comm).store(shared.clone());
            let ds = Dataset::open_with(MAIN, options).unwrap();
            ds.shape(ds.var("f").unwrap()).is_err()
        });
        assert_eq!(told, [true, true]);
    }
}

/// Gives a variable another name that is not longer, in place, as netCDF-C shortens names.
fn rename(store: &MemoryStore, from: &str, to: &str) {
    // The file itself, or, with chunks in files beside it, the classic one in its folder.
    let is_main = |path: &PathBuf| path == Path::new(MAIN) || path.starts_with(MAIN);
    let files = headers_of(store, |decoded| Some(decoded.header));
    let (path, _, _) = files.into_iter().find(|(path, ..)| is_main(path)).unwrap();
    let bytes = store.bytes(&path).unwrap();
    let mut name = (from.len() as u32).to_be_bytes().to_vec();
    name.extend(from.as_bytes());
    let found: Vec<usize> =
        (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(&name)).collect();
    // Variables come behind dimensions and attributes.
    let at = found[found.len() - 1] + 4;
    let mut new = to.as_bytes().to_vec();
    new.resize(from.len(), 0);
    write(store, &path, at as u64, &new);
}

/// Whoever asks by name for a variable whose name damage has given to another gets the other one: who has lost the name is
/// told when the dataset is opened.
#[test]
fn a_name_that_damage_gave_to_another_variable_is_told() {
    for form in FORMS {
        let store = made(form);
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let open = |raw| {
            Dataset::open_with(MAIN, OpenOptions::new().store(shared.clone()).raw(raw)).unwrap()
        };
        assert_eq!(open(false).notes(), [] as [String; 0], "{form:?}");
        rename(&store, "r", "q");
        rename(&store, "plain", "r");
        // Nothing says of an ordinary variable that this is not its name.
        let ds = open(false);
        assert_eq!(ds.shape(ds.var("r").unwrap()).unwrap(), [X], "{form:?}");
        let [note] = ds.notes() else { panic!("{form:?}: {:?}", ds.notes()) };
        assert!(note.contains("variable \"q\"") && note.contains("__esker_seal"), "{note}");
        assert!(note.contains("another variable may have its name"), "{note}");
        assert!(ds.shape(ds.var("q").unwrap()).is_err(), "{form:?}");
        assert_eq!(esker::reader_notes(&store, Path::new(MAIN)), ds.notes(), "{form:?}");
        assert_eq!(esker::uncounted_records(&store, Path::new(MAIN)), None, "{form:?}");
        // Who looks at the file as it is looks at no seals.
        assert_eq!(open(true).notes(), [] as [String; 0], "{form:?}");
        let (told, expected) = (shared.clone(), note.clone());
        on_ranks(2, move |comm: Arc<dyn Communicator>| {
            let options = OpenOptions::new().comm(comm).store(told.clone());
            let ds = Dataset::open_with(MAIN, options).unwrap();
            assert_eq!(ds.notes(), std::slice::from_ref(&expected), "{form:?}");
        });
    }
}

#[test]
fn many_broken_seals_are_counted_and_not_all_told() {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let options = CreateOptions::new().store(shared.clone()).version(Version::Cdf2);
    let mut def = Dataset::create(MAIN, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
    for number in 10..40 {
        let var = def.add_var(&format!("v{number}"), ExternalType::Int, &[x]).unwrap();
        def.set_chunks(var, &[2]).unwrap();
    }
    def.enddef().unwrap().close().unwrap();
    (10..40).for_each(|n| rename(&store, &format!("v{n}"), &format!("w{n}")));
    let ds = Dataset::open_with(MAIN, OpenOptions::new().store(shared)).unwrap();
    let [first, .., last] = ds.notes() else { panic!("{:?}", ds.notes()) };
    assert!(first.contains("variable \"w10\""), "{first}");
    assert!(ds.notes().len() == 17 && last.contains("14 other variables"), "{last}");
}

#[test]
fn no_number_of_records_shows_others_than_were_written() {
    for form in FORMS {
        let store = made(form);
        for (path, header, _) in headers(&store) {
            for numrecs in (0..9).chain([255, 65_536, u32::MAX - 1, u32::MAX]) {
                write(&store, &path, 4, &numrecs.to_be_bytes());
                let what = || format!("{form:?}: {numrecs} records in {path:?}");
                require_told(&store, &what);
            }
            write(&store, &path, 4, &(header.records(0) as u32).to_be_bytes());
        }
        assert_eq!(require_told(&store, &|| "whole again".to_string()), 0);
    }
}

/// Nobody can know more of a file that was never synced: a loss of power leaves the same.
#[test]
fn fewer_records_than_were_begun_are_told_where_nothing_was_synced() {
    for form in [Form::Decomposed, Form::Subfiled] {
        let store = MemoryStore::default();
        made_with(form, Arc::new(store.clone()), Path::new(MAIN), (Version::Cdf5, false));
        write(&store, Path::new(MAIN), 4, &1u64.to_be_bytes());
        let ds = Dataset::open_with(MAIN, OpenOptions::new().store(Arc::new(store))).unwrap();
        let note = ds.notes().first().unwrap();
        assert!(note.contains("counts 1 records, but 2 were begun"), "{note}");
    }
}

/// The places of all variables of maps.
fn maps(header: &Header) -> Vec<(String, usize, usize)> {
    let of_map = header.vars().filter(|(_, var, _)| var.name.starts_with('D'));
    of_map
        .map(|(_, var, at)| (var.name.to_string(), at.begin as usize, at.bytes as usize))
        .collect()
}

#[test]
fn no_number_of_a_map_gives_other_elements() {
    for form in [Form::Decomposed, Form::Subfiled] {
        let store = made(form);
        let (path, header, _) =
            headers(&store).into_iter().find(|(p, ..)| p == Path::new(MAIN)).unwrap();
        let bytes = store.bytes(&path).unwrap();
        let maps = maps(&header);
        assert_eq!(maps.len(), 8);
        for (name, begin, len) in &maps {
            for at in (*begin..begin + len).step_by(4) {
                let old = u32::from_be_bytes(*bytes[at..].first_chunk().unwrap());
                let near = [old.wrapping_add(1), old.wrapping_sub(1), old ^ 0x100, 0, u32::MAX];
                for new in near.into_iter().filter(|new| *new != old) {
                    write(&store, &path, at as u64, &new.to_be_bytes());
                    let what = || format!("{form:?}: {name} at {at} from {old} to {new}");
                    assert_eq!(require_told(&store, &what), 2, "{}", what());
                }
                write(&store, &path, at as u64, &old.to_be_bytes());
            }
            // A sector that was lost, and the numbers of two processes or blocks that changed places.
            let whole = &bytes[*begin..begin + len];
            let mut turned = whole.to_vec();
            turned.rotate_left(4);
            for new in [vec![0; *len], turned] {
                write(&store, &path, *begin as u64, &new);
                let what = || format!("{form:?}: {name} is {new:?}");
                let errors = require_told(&store, &what);
                assert!(errors == 2 || new == whole, "{}", what());
            }
            write(&store, &path, *begin as u64, whole);
        }
    }
}

#[test]
fn the_map_of_another_file_is_not_taken_for_this_ones() {
    let (store, other) = (made(Form::Decomposed), MemoryStore::default());
    let shared: Arc<dyn Store> = Arc::new(other.clone());
    // The same shape, the other way round: rank 0 has the odd columns.
    on_ranks(RANKS as usize, move |comm: Arc<dyn Communicator>| {
        let options = CreateOptions::new().comm(comm.clone()).store(shared.clone());
        let mut def = Dataset::create(MAIN, options.version(Version::Cdf2)).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(Y)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(X)).unwrap();
        let first = 1 - comm.rank() as u64;
        let mine = Selection::strided(&[0, first], &[Y, X / RANKS], &[1, RANKS]);
        let map = def.add_decomposition(&[y, x], &mine).unwrap();
        def.add_decomposed_var("f", ExternalType::Int, &[], map).unwrap();
        def.enddef().unwrap().close().unwrap();
    });
    let (_, header, _) = headers(&store).swap_remove(0);
    let (_, others, _) = headers(&other).swap_remove(0);
    let theirs = other.bytes(Path::new(MAIN)).unwrap();
    for ((name, begin, len), (same, from, _)) in maps(&header).into_iter().zip(maps(&others)) {
        assert_eq!(name, same);
        write(&store, Path::new(MAIN), begin as u64, &theirs[from..from + len]);
    }
    assert_eq!(require_told(&store, &|| "another map".to_string()), 2);
}

#[test]
fn files_of_a_dataset_that_changed_places_are_not_taken_for_each_other() {
    let names = [MAIN, "/run/run.0.nc", "/run/run.1.nc"].map(Path::new);
    let store = made(Form::Subfiled);
    let bytes = names.map(|name| store.bytes(name).unwrap());
    let lens = names.map(|name| {
        let of = headers(&store).into_iter().find(|(path, ..)| path == name);
        of.unwrap().2
    });
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        // Whole files, then their headers alone.
        replace(&store, names[a], &bytes[b]);
        replace(&store, names[b], &bytes[a]);
        let what = || format!("files {a} and {b}");
        assert_eq!(require_told(&store, &what), 2, "{}", what());
        for (to, from) in [(a, b), (b, a)] {
            let mut mixed = bytes[to].clone();
            let len = lens[from].min(mixed.len());
            mixed[..len].copy_from_slice(&bytes[from][..len]);
            replace(&store, names[to], &mixed);
        }
        let what = || format!("headers {a} and {b}");
        assert_eq!(require_told(&store, &what), 2, "{}", what());
        replace(&store, names[a], &bytes[a]);
        replace(&store, names[b], &bytes[b]);
    }
    // Those of another dataset of the same shapes.
    let other = made(Form::Subfiled);
    for name in &names[1..] {
        replace(&store, name, &other.bytes(name).unwrap());
    }
    assert_eq!(require_told(&store, &|| "others' sub-files".to_string()), 2);
    // A sub-file under its own name is one that other programs read too.
    let shared: Arc<dyn Store> = Arc::new(store);
    assert_eq!(seen(&shared, names[1], "f").unwrap().0, [Y * X / RANKS]);
}

/// What netCDF's own library makes of such files is right, or an error.
#[test]
fn what_other_programs_write_is_right_or_an_error() {
    let Some(python) = python::with("netCDF4") else { return };
    let local: Arc<dyn Store> = Arc::new(LocalStore);
    let dir = tempfile::tempdir().unwrap();
    let edits = [
        // Theirs: the values are right.
        ("d.title = 'x' * 9000", Some(form_is_decomposed as fn(Form) -> bool)),
        ("d.title = 'x'", Some(|_| true)),
        (
            "d.createDimension('new', 2); d.createVariable('new', 'i4', ('new',))[:] = 7",
            Some(|_| true),
        ),
        ("d.variables['plain'].units = 'm'", Some(|_| true)),
        // A header that grows takes the place of chunks, which are in no variable.
        ("d.variables['f'].units = 'm'", Some(form_is_decomposed)),
        ("d.variables['f'].title = 'n'", Some(|_| true)),
        // Ours: they are not what was written.
        ("d.renameVariable('f', 'g')", None),
        ("d.variables['r'].renameAttribute(MARK, 'mark')", None),
    ];
    for form in [Form::Chunked, Form::Decomposed] {
        let mark = if form == Form::Chunked { "__chunk_dims" } else { "decomposition" };
        for (number, (edit, right)) in edits.into_iter().enumerate() {
            let path = dir.path().join(format!("{form:?}{number}.nc"));
            made_with(form, local.clone(), &path, (Version::Cdf2, true));
            let program = format!(
                "import netCDF4\nMARK = {mark:?}\nd = netCDF4.Dataset({path:?}, 'a')\n{edit}\nd.close()\n"
            );
            programs::good(Command::new(&python).args(["-c", &program]));
            let mut errors = 0;
            for var in ["f", "r"] {
                match seen(&local, &path, var) {
                    Ok(found) => assert_eq!(found, expected(var), "{form:?}: {edit}"),
                    Err(_) => errors += 1,
                }
            }
            match right {
                Some(right) if right(form) => assert_eq!(errors, 0, "{form:?}: {edit}"),
                Some(_) => {}
                None => assert!(errors > 0, "{form:?}: {edit}"),
            }
        }
    }
}

fn form_is_decomposed(form: Form) -> bool {
    form == Form::Decomposed
}

/// A copy by netCDF's own tool packs the file: places follow from shapes, and the values are there.
#[test]
fn a_copy_by_another_program_is_right_or_an_error() {
    if !programs::have("nccopy") {
        return;
    }
    let local: Arc<dyn Store> = Arc::new(LocalStore);
    let dir = tempfile::tempdir().unwrap();
    for form in [Form::Chunked, Form::Decomposed] {
        let (from, to) = (dir.path().join("from.nc"), dir.path().join("to.nc"));
        made_with(form, local.clone(), &from, (Version::Cdf2, true));
        programs::good(Command::new("nccopy").args([&from, &to]));
        for var in ["f", "r"] {
            match seen(&local, &to, var) {
                Ok(found) => assert_eq!(found, expected(var), "{form:?}"),
                // Chunks are in no variable, and do not survive it.
                Err(error) => assert_eq!(form, Form::Chunked, "{error}"),
            }
        }
    }
}
