//! What commands say of chunk tables that were damaged, and of files that somebody is writing.

use std::path::{Path, PathBuf};

use crate::common::run;
use esker::{CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Selection, VarId};

/// A file of three records in chunks; its bytes.
fn made(path: &Path) -> Vec<u8> {
    let mut def = Dataset::create(path, CreateOptions::new()).expect("a file");
    let time = def.add_dim("time", DimLen::Unlimited).expect("a dimension");
    let lat = def.add_dim("lat", DimLen::Fixed(6)).expect("a dimension");
    let t = def.add_var("t", ExternalType::Float, &[time, lat]).expect("a variable");
    def.set_chunks(t, &[1, 3]).expect("chunks");
    def.set_filters(t, "shuffle zstd").expect("filters");
    let mut ds = def.enddef().expect("a dataset");
    let values: Vec<f32> = (0..18).map(|i| i as f32).collect();
    ds.put(t, &Selection::slab(&[0, 0], &[3, 6]), &values).expect("a write");
    ds.close().expect("an end");
    std::fs::read(path).expect("bytes")
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).expect("it is there")
}

#[test]
fn every_command_fails_for_a_damaged_table_and_check_says_what_is_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.nc");
    let sound = made(&path);
    let name = path.to_str().expect("text");
    let entries = find(&sound, b"EskT") + 32;
    let lat = find(&sound, b"lat\0") + 4 + 7;
    assert_eq!(sound[lat], 6);
    let records = 11;
    assert_eq!(sound[records], 3);
    type Damage = Box<dyn Fn(&mut Vec<u8>)>;
    let damages: [(&str, &str, Damage); 5] = [
        ("zeros", "zeros", Box::new(move |b| b[entries..entries + 32].fill(0))),
        (
            "exchanged",
            "does not match its checksum",
            Box::new(move |b| {
                let (first, second) = b[entries..].split_at_mut(32);
                first.swap_with_slice(&mut second[..32]);
            }),
        ),
        ("a length", "made for float (unlimited, 6)", Box::new(move |b| b[lat] = 12)),
        ("a long length", "made for float (unlimited, 6)", Box::new(move |b| b[lat - 3] = 64)),
        ("records", "3 were ever begun", Box::new(move |b| b[records - 2] = 1)),
    ];
    for (what, words, damage) in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).expect("a file");
        let checked = run(&["check", name]);
        assert_ne!(checked.code, Some(0), "{what}: {}", checked.out);
        let said = format!("{}{}", checked.out, checked.err);
        assert!(said.contains(words) && !said.contains(": valid"), "{what}: {said}");
        let out = directory.path().join("out");
        let out = out.to_str().expect("text");
        for arguments in [
            &["dump", name][..],
            &["dump", "-v", "t", name],
            &["copy", "-O", "--contiguous", name, out],
            &["copy", "-O", "--auto", name, out],
            &["diff", name, name],
        ] {
            let run = run(arguments);
            assert_ne!(run.code, Some(0), "{what}: esker {arguments:?}: {}", run.out);
            assert!(run.err.contains(words), "{what}: esker {arguments:?}: {}", run.err);
            assert!(run.out.len() < 10_000, "{what}: {} bytes", run.out.len());
        }
        // References to the others, with a note.
        let refs = run(&["refs", "-O", "-o", out, name]);
        assert!(refs.err.contains(words), "{what}: {}", refs.err);
        assert!(refs.out.contains(" 0 variables"), "{what}: {}", refs.out);
    }
    // Fewer records than were begun: nobody has synced them, so that nobody can know more.
    let mut fewer = sound.clone();
    fewer[records] = 2;
    std::fs::write(&path, &fewer).expect("a file");
    let words = "the file counts 2 records, but 3 were begun";
    let out = directory.path().join("out");
    let out = out.to_str().expect("text");
    for arguments in [
        &["dump", name][..],
        &["copy", "-O", name, out],
        &["diff", name, name],
        &["refs", "-O", "-o", out, name],
    ] {
        let run = run(arguments);
        assert!(run.err.contains(words), "esker {arguments:?}: {}", run.err);
    }
    let info = run(&["info", name]);
    assert!(format!("{}{}", info.out, info.err).contains(words), "{}", info.out);
    let checked = run(&["check", name]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    assert!(checked.out.contains(words), "{}", checked.out);
    assert!(run(&["check", "--json", name]).out.contains("records-begun"));
    std::fs::write(&path, &sound).expect("a file");
    assert_eq!(run(&["check", name]).code, Some(0));
}

/// The name of a chunked variable went to another one: whoever reads that is told.
#[test]
fn every_command_tells_of_a_broken_seal() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.nc");
    let mut def = Dataset::create(&path, CreateOptions::new()).expect("a file");
    let x = def.add_dim("x", DimLen::Fixed(6)).expect("a dimension");
    let chunked = def.add_var("chunked", ExternalType::Float, &[x]).expect("a variable");
    def.set_chunks(chunked, &[3]).expect("chunks");
    def.add_var("regular", ExternalType::Float, &[x]).expect("a variable");
    def.enddef().expect("a dataset").close().expect("an end");
    let name = path.to_str().expect("text");
    assert_eq!(run(&["dump", "-v", "chunked", name]).err, "");
    let mut bytes = std::fs::read(&path).expect("bytes");
    for (from, to) in [(b"chunked", b"another"), (b"regular", b"chunked")] {
        let at = find(&bytes, from);
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    std::fs::write(&path, &bytes).expect("a file");
    let words = "variable \"another\": its seal (__esker_seal) does not match";
    let out = directory.path().join("out");
    let out = out.to_str().expect("text");
    for arguments in [
        &["dump", "-v", "chunked", name][..],
        &["copy", "-O", name, out],
        &["diff", name, name],
        &["refs", "-O", "-o", out, name],
    ] {
        let run = run(arguments);
        assert!(run.err.contains(words), "esker {arguments:?}: {}", run.err);
    }
    let info = run(&["info", name]);
    assert!(format!("{}{}", info.out, info.err).contains(words), "{}", info.out);
    let checked = run(&["check", name]);
    assert_ne!(checked.code, Some(0), "{}", checked.out);
    // A finding of its own, and not one of the number of records.
    assert_eq!(checked.out.matches("__esker_seal").count(), 1, "{}", checked.out);
    assert!(!run(&["check", "--json", name]).out.contains("records-begun"));
}

#[test]
fn a_file_that_somebody_writes_is_read_and_not_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| -> PathBuf { directory.path().join(name) };
    let (path, other) = (file("run.nc"), file("other.nc"));
    made(&path);
    made(&other);
    let mut held = Dataset::open_with(&path, OpenOptions::new().writable(true)).expect("a writer");
    let [path, other] = [&path, &other].map(|path| path.to_str().expect("text"));
    assert_eq!(run(&["dump", path]).code, Some(0), "readers are let in");
    assert_eq!(run(&["check", path]).code, Some(0));
    let copied = run(&["copy", "-O", other, path]);
    assert_ne!(copied.code, Some(0));
    assert!(copied.err.contains("open for writing"), "{}", copied.err);
    held.put(VarId(0), &Selection::element(&[0, 0]), &[5f32]).expect("a write");
    held.close().expect("an end");
    assert_eq!(run(&["copy", "-O", other, path]).code, Some(0));
}
