//! Promises of every command on datasets that come from somebody else: what is outside of a container or
//! folder is neither read nor made, and a version that is lost is told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Hints, Layout, OpenOptions, Selection, VarId,
};
use esker_format::history::{Branch, Commit, Decision, Item, Key, Level, RunId, Verdict};
use esker_format::inside;
use esker_format::log::{self, Promise};
use serde_json::Value;

use crate::common::{Run, esker, run};

/// What is outside, and nobody should see.
const SECRET: i32 = 424_242;

/// A container with version 2 synced, or closed, and `value` in it.
fn container(path: &Path, value: i32, synced: bool) {
    let mut def = Dataset::create(path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(VarId(0), &Selection::all(), &[value; 4]).unwrap();
    if synced {
        ds.sync().unwrap();
    }
    ds.close().unwrap();
}

/// Every command that reads a dataset, with the arguments behind its name; `{}` is the dataset.
const COMMANDS: [&[&str]; 12] = [
    &["info", "{}"],
    &["info", "--stats", "--json", "{}"],
    &["dump", "{}"],
    &["check", "{}"],
    &["copy", "-O", "{}", "{out}/a.nc"],
    &["copy", "-O", "--layout", "log", "{}", "{out}/a.esk"],
    &["diff", "{}", "{}"],
    &["replay", "-O", "{}", "{out}/b.nc"],
    &["refs", "-O", "-o", "{out}/a.json", "{}"],
    &["offsets", "{}"],
    &["recover", "--dry-run", "{}"],
    &["recover", "{}"],
];

fn arguments(command: &[&str], dataset: &Path, out: &Path) -> Vec<String> {
    let put = |word: &&str| {
        let word = word.replace("{out}", out.to_str().unwrap());
        word.replace("{}", dataset.to_str().unwrap())
    };
    command.iter().map(put).collect()
}

fn run_on(command: &[&str], dataset: &Path, out: &Path) -> Run {
    let words = arguments(command, dataset, out);
    // A pipe that somebody has put into a dataset must not let a command wait.
    let mut limited = std::process::Command::new("timeout");
    limited.arg("120").arg(esker(&[]).get_program()).args(["--color", "never"]);
    limited.args(&words).env_remove("PNETCDF_HINTS").output().expect("it starts").into()
}

/// All that is in a directory, by name: contents of files, targets of links.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let contents = match (kind.is_dir(), kind.is_file()) {
                (true, _) => {
                    directories.push(path.clone());
                    Vec::new()
                }
                (_, true) => fs::read(&path).unwrap(),
                _ => b"something else".to_vec(),
            };
            all.insert(path, contents);
        }
    }
    all
}

fn logs(path: &Path) -> Vec<PathBuf> {
    let segments = fs::read_dir(path.join("segments")).unwrap();
    let mut logs: Vec<PathBuf> = segments.map(|entry| entry.unwrap().path()).collect();
    logs.sort();
    logs
}

/// Writes a decision in the place of the newest one, and a promise that matches it.
fn forge(path: &Path, change: impl FnOnce(&mut Commit)) {
    let name = path.join("refs/main/00000002");
    let main = Branch::main();
    let mut decision = Decision::decode(&fs::read(&name).unwrap(), &main, 2).unwrap();
    let Verdict::Commit(commit) = &mut decision.verdict else { panic!("{decision:?}") };
    change(commit);
    commit.items.sort_by(Item::order);
    let bytes = decision.encode();
    fs::write(&name, &bytes).unwrap();
    let manifest = crc32c::crc32c(&bytes);
    let (header, data, metadata) = (0, 0, 0);
    let promise = Promise {
        version: 2,
        first: 1,
        durable: true,
        names: false,
        manifest,
        header,
        data,
        metadata,
    };
    let mut promises = fs::read(path.join("promises")).unwrap();
    let at = Promise::offset(2) as usize;
    promises[at..at + Promise::LEN as usize].copy_from_slice(&promise.encode());
    fs::write(path.join("promises"), promises).unwrap();
}

/// Lets a link in `inside` lead to the same thing outside.
fn link(inside: &Path, outside: &Path) {
    match inside.is_dir() {
        true => fs::remove_dir_all(inside).unwrap(),
        false => fs::remove_file(inside).unwrap(),
    }
    symlink(outside, inside).unwrap();
}

/// Makes a container that leads to another one, outside.
type Trick = fn(&Path, &Path);

#[test]
fn no_command_leaves_a_container() {
    let tricks: [(&str, Trick); 10] = [
        ("another's session", |inside, outside| {
            let stem = logs(outside)[0].file_name().unwrap().to_str().unwrap().to_string();
            let (_, identity) = inside::session(stem.split('.').next().unwrap()).unwrap();
            forge(inside, |commit| {
                for item in &mut commit.items {
                    if let Key::Fact { space: log::SESSIONS | log::STRETCHES, name } = &mut item.key
                    {
                        name[..8].copy_from_slice(&identity.to_be_bytes());
                    }
                }
            });
        }),
        ("a session whose name is a path", |inside, _| {
            forge(inside, |commit| {
                for item in &mut commit.items {
                    if let Key::Fact { space: log::SESSIONS, name } = &mut item.key {
                        *name = b"../../outside.esk".to_vec();
                    }
                }
            });
        }),
        ("another's run", |inside, _| {
            let id = RunId { writer: u64::from_be_bytes(*b"../../ou"), number: 7 };
            let level = Level { id, bytes: 99, items: 1, numbers: 1..=1, made: 1 };
            forge(inside, |commit| commit.levels.push(level));
        }),
        ("linked segments", |inside, outside| {
            link(&inside.join("segments"), &outside.join("segments"));
        }),
        ("linked versions", |inside, outside| {
            link(&inside.join("refs"), &outside.join("refs"));
        }),
        ("a linked manifest", |inside, outside| {
            let name = "refs/main/00000002";
            link(&inside.join(name), &outside.join(name));
        }),
        ("a linked data log", |inside, outside| link(&logs(inside)[0], &logs(outside)[0])),
        ("a linked metadata log", |inside, outside| link(&logs(inside)[1], &logs(outside)[1])),
        ("a linked mark", |inside, outside| {
            link(&inside.join("esker.json"), &outside.join("esker.json"));
        }),
        ("linked promises", |inside, outside| {
            link(&inside.join("promises"), &outside.join("promises"));
        }),
    ];
    for (name, trick) in tricks {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("inside.esk"), dir.path().join("outside.esk"));
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        container(&outside, SECRET, true);
        container(&inside, 7, true);
        trick(&inside, &outside);
        let (before, whole) = (snapshot(&outside), snapshot(&inside));
        let names: [&[&str]; 5] = [
            &["log", "{}"],
            &["tag", "{}"],
            &["tag", "{}", "v1"],
            &["expire", "{}", "--keep-last", "1", "--dry-run"],
            &["gc", "{}", "--all-idle", "--dry-run"],
        ];
        for command in COMMANDS.into_iter().chain(names) {
            let run = run_on(command, &inside, &out);
            let what = format!("{name}: {command:?}: {:?}\n{}{}", run.code, run.out, run.err);
            // Of a manifest that names other logs, recovery finds the container's own; what is
            // defined or happened can be told without a look at values.
            let reads_values = !matches!(command[0], "recover" | "log" | "tag" | "expire" | "gc")
                && command != ["info", "{}"];
            let least = i32::from(reads_values);
            assert!(run.code.is_some_and(|code| (least..=2).contains(&code)), "{what}");
            assert!(!run.out.contains(&SECRET.to_string()), "{what}");
            assert!(!run.out.contains("panicked") && !run.err.contains("panicked"), "{what}");
            assert_eq!(snapshot(&outside), before, "{what}");
            // Nothing but what the commands are to make, and nothing of it.
            let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
            names.retain(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                !["inside.esk", "outside.esk", "out"].contains(&name.to_str().unwrap())
            });
            assert!(names.is_empty(), "{what}: {names:?}");
            assert!(snapshot(&out).is_empty(), "{what}: {:?}", snapshot(&out).keys());
        }
        // Recovery may have made the mark or a version, and has taken nothing away.
        let after = snapshot(&inside);
        assert!(whole.keys().all(|path| after.contains_key(path)), "{name}");
        // What removes something stays inside.
        for command in [&["expire", "{}", "--keep-last", "1"][..], &["gc", "{}", "--all-idle"]] {
            let run = run_on(command, &inside, &out);
            assert!(
                matches!(run.code, Some(0 | 2)),
                "{name}: {command:?}: {:?} {}",
                run.code,
                run.err
            );
            assert!(!run.err.contains("panicked"), "{name}: {command:?}: {}", run.err);
            assert_eq!(snapshot(&outside), before, "{name}: {command:?}");
        }
    }
}

#[test]
fn a_pipe_in_a_container_lets_nobody_wait() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["refs/main/00000002", "promises", "esker.json"] {
        let path = dir.path().join("a.esk");
        container(&path, 7, true);
        fs::remove_file(path.join(name)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(path.join(name)).status().unwrap();
        assert!(made.success());
        let commands: [&[&str]; 7] = [
            &["dump", "{}"],
            &["check", "{}"],
            &["log", "{}"],
            &["tag", "{}", "v1"],
            &["expire", "{}", "--keep-last", "1"],
            &["gc", "{}"],
            &["recover", "{}"],
        ];
        for command in commands {
            let run = run_on(command, &path, dir.path());
            assert!(
                matches!(run.code, Some(1 | 2)),
                "{name}: {command:?}: {:?} {}",
                run.code,
                run.err
            );
        }
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn replacing_a_container_leaves_what_its_links_lead_to() {
    let dir = tempfile::tempdir().unwrap();
    let (source, target) = (dir.path().join("source.esk"), dir.path().join("target.esk"));
    let precious = dir.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("thesis.tex"), "years").unwrap();
    container(&source, 7, true);
    for linked in ["segments", "other"] {
        container(&target, 8, true);
        if target.join(linked).exists() {
            fs::remove_dir_all(target.join(linked)).unwrap();
        }
        symlink(&precious, target.join(linked)).unwrap();
        let words = ["copy", "-O", "--layout", "log"];
        let files = [source.to_str().unwrap(), target.to_str().unwrap()];
        let copied = run(&[&words[..], &files[..]].concat());
        assert_eq!(copied.code, Some(0), "{}", copied.err);
        assert_eq!(fs::read_to_string(precious.join("thesis.tex")).unwrap(), "years", "{linked}");
        let values: Vec<i32> =
            Dataset::open(&target).unwrap().get(VarId(0), &Selection::all()).unwrap();
        assert_eq!(values, [7; 4]);
        fs::remove_dir_all(&target).unwrap();
    }
}

/// A folder with the chunks of `v` in files of their own.
fn folder(path: &Path, value: i32) {
    let mut hints = Hints::default();
    hints.set("esker_chunk_files", "rank");
    let mut def = Dataset::create(path, CreateOptions::new().hints(hints)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    def.set_chunks(v, &[2]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(v, &Selection::all(), &[value; 4]).unwrap();
    ds.close().unwrap();
}

/// `run.nc` with `v` in one sub-file.
fn subfiled(path: &Path, value: i32) {
    let mut hints = Hints::default();
    hints.set("nc_num_subfiles", "1");
    let mut def = Dataset::create(path, CreateOptions::new().hints(hints)).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(4)).unwrap();
    let map = def.add_decomposition(&[x], &Selection::slab(&[0], &[4])).unwrap();
    let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put_all(v, &Selection::blob(&[], &[]), &[value; 4]).unwrap();
    ds.close().unwrap();
}

#[test]
fn links_in_a_folder_of_chunks_and_linked_sub_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let away = dir.path().join("away");
    let out = dir.path().join("out");
    fs::create_dir(&away).unwrap();
    fs::create_dir(&out).unwrap();
    let (chunked, sub) = (dir.path().join("chunked"), dir.path().join("run.nc"));
    folder(&chunked, 7);
    subfiled(&sub, 7);
    let mut inside: Vec<PathBuf> =
        fs::read_dir(&chunked).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(inside.len(), 3, "{inside:?}");
    inside.push(dir.path().join("run.0.nc"));
    for file in inside {
        let target = away.join(file.file_name().unwrap());
        fs::rename(&file, &target).unwrap();
        symlink(&target, &file).unwrap();
        let before = snapshot(&away);
        let dataset = if file.starts_with(&chunked) { &chunked } else { &sub };
        for command in [
            &["dump", "{}"][..],
            &["check", "{}"],
            &["copy", "-O", "--canonical", "{}", "{out}/a.nc"],
        ] {
            let run = run_on(command, dataset, &out);
            let what = format!("{}: {command:?}: {}{}", file.display(), run.out, run.err);
            assert!(matches!(run.code, Some(1 | 2)), "{what}");
            assert!(format!("{}{}", run.out, run.err).contains("symbolic link"), "{what}");
            assert_eq!(snapshot(&away), before, "{what}");
        }
        fs::remove_file(&file).unwrap();
        fs::rename(&target, &file).unwrap();
        assert_eq!(run_on(&["check", "{}"], dataset, &out).code, Some(0));
    }
    // What the user names may be a link.
    symlink(&chunked, dir.path().join("link")).unwrap();
    symlink(&sub, dir.path().join("link.nc")).unwrap();
    for name in ["link", "link.nc"] {
        let read = run_on(&["dump", "{}"], &dir.path().join(name), &out);
        assert_eq!(read.code, Some(0), "{name}: {}", read.err);
        assert!(read.out.contains('7'), "{name}: {}", read.out);
    }
}

#[test]
fn a_lost_version_is_told_by_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a.esk"), dir.path().join("out"));
    fs::create_dir(&out).unwrap();
    container(&path, 7, true);
    let options = OpenOptions::new().writable(true);
    let mut ds = Dataset::open_with(&path, options).unwrap();
    ds.put(VarId(0), &Selection::element(&[0]), &[8]).unwrap();
    ds.close().unwrap();
    let newest = path.join("refs/main/00000003");
    let whole = fs::read(&newest).unwrap();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for bytes in [Some(&damaged), None] {
        match bytes {
            Some(bytes) => fs::write(&newest, bytes).unwrap(),
            None => fs::remove_file(&newest).unwrap(),
        }
        for command in COMMANDS.iter().filter(|c| !matches!(c[0], "recover" | "check")) {
            let run = run_on(command, &path, &out);
            let what = format!("{command:?}: {}", run.err);
            let fails = matches!(command[0], "refs" | "offsets");
            assert_eq!(run.code, Some(if fails { 2 } else { 0 }), "{what}");
            assert!(run.err.contains("version 3") && run.err.contains("not synced"), "{what}");
        }
        let text = run_on(&["info", "{}"], &path, &out).out;
        assert!(text.contains("What is read is version 2"), "{text}");
        let json = run_on(&["info", "--json", "{}"], &path, &out).out;
        let told: Value = serde_json::from_str(&json).unwrap();
        assert!(told["notes"][0].as_str().unwrap().contains("version 3"), "{told}");
        let checked = run_on(&["check", "{}"], &path, &out);
        assert_eq!(checked.code, Some(1), "{}", checked.out);
        assert!(checked.out.contains("refs/main/00000003"), "{}", checked.out);
    }
    // Everything that the version had is in the logs, and recovery says so.
    let recovered = run_on(&["recover", "{}"], &path, &out);
    assert_eq!(recovered.code, Some(0), "{}", recovered.out);
    assert!(recovered.out.contains("version 3"), "{}", recovered.out);
    assert!(recovered.out.contains("everything that it had is there"), "{}", recovered.out);
    let read = run_on(&["dump", "{}"], &path, &out);
    assert!(read.out.contains("8, 7, 7, 7") && read.err.is_empty(), "{}{}", read.out, read.err);
    let checked = run_on(&["check", "{}"], &path, &out);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
}

#[test]
fn a_synced_version_that_is_damaged_is_an_error_of_every_command_and_a_loss_of_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a.esk"), dir.path().join("out"));
    fs::create_dir(&out).unwrap();
    container(&path, 7, true);
    let options = OpenOptions::new().writable(true);
    let mut def = Dataset::open_with(&path, options).unwrap().redef().unwrap();
    let x = def.schema().dim("x").unwrap();
    let w = def.add_var("w", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    ds.put(w, &Selection::all(), &[1, 2, 3, 4]).unwrap();
    ds.sync().unwrap();
    ds.close().unwrap();
    for lost in [3, 4] {
        let name = path.join(format!("refs/main/{lost:08}"));
        let mut bytes = fs::read(&name).unwrap();
        let half = bytes.len() / 2;
        bytes[half] ^= 0x10;
        fs::write(&name, bytes).unwrap();
    }
    for command in COMMANDS.iter().filter(|command| command[0] != "recover") {
        let run = run_on(command, &path, &out);
        let what = format!("{command:?}: {}{}", run.out, run.err);
        assert_eq!(run.code, Some(if command[0] == "check" { 1 } else { 2 }), "{what}");
        assert!(format!("{}{}", run.out, run.err).contains("version 4"), "{what}");
        assert!(snapshot(&out).is_empty(), "{what}");
    }
    for words in [&["recover", "--dry-run", "{}"][..], &["recover", "{}"]] {
        let run = run_on(words, &path, &out);
        assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
        assert!(run.out.contains("lost: version 4"), "{}", run.out);
        assert!(run.out.contains("variable number 1, and there are 1"), "{}", run.out);
    }
    let read = run_on(&["dump", "{}"], &path, &out);
    assert!(read.code == Some(0) && read.out.contains("7, 7, 7, 7"), "{}{}", read.out, read.err);
}

#[test]
fn a_directory_that_cannot_be_closed_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let (shim, source) = (dir.path().join("shim.so"), dir.path().join("shim.c"));
    let text = "#include <errno.h>\n#include <dirent.h>\n\
                int closedir(DIR *d) { (void)d; errno = EIO; return -1; }\n";
    fs::write(&source, text).unwrap();
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&shim, &source])
        .status()
        .expect("there is a C compiler, which tests need");
    assert!(compiled.success());
    let path = dir.path().join("a.esk");
    container(&path, 7, true);
    for command in ["info", "dump", "check"] {
        let run: Run = esker(&[command, path.to_str().unwrap()])
            .env("LD_PRELOAD", &shim)
            .output()
            .expect("the binary starts")
            .into();
        assert_eq!(run.code, Some(0), "{command}: {}", run.err);
        assert!(!run.err.contains("panicked"), "{command}: {}", run.err);
    }
}
