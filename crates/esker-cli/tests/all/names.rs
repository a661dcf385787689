//! `esker log` and `esker tag`: what happened to a container, and names for its versions.

use std::fs;
use std::path::Path;

use crate::common::{esker, first_line_then_closed, good, run};
use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Selection};
use serde_json::Value;

/// Versions 1 (definitions), 2 and 3 (synced), 4 (closed); v is ten times the number of puts.
fn container(path: &str) {
    let mut def = Dataset::create(path, CreateOptions::new().layout(Layout::Log)).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(3)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let r = def.add_var("r", ExternalType::Short, &[t]).unwrap();
    let mut ds = def.enddef().unwrap();
    for (step, message) in ["spin-up done", "", "last"].into_iter().enumerate() {
        ds.put(v, &Selection::all(), &[10 * (step as i32 + 1); 3]).unwrap();
        ds.append(r, &[step as i16]).unwrap();
        ds.set_message(message).unwrap();
        if step < 2 {
            ds.sync().unwrap();
        }
    }
    ds.close().unwrap();
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(arguments)).unwrap()
}

#[test]
fn log_tells_what_happened_and_tag_gives_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk").to_str().unwrap().to_string();
    container(&path);
    assert_eq!(good(&["tag", &path]), "", "no tags");
    assert_eq!(
        good(&["tag", &path, "paper", "2", "-m", "figures 3, 4"]),
        format!("{path}: version 2 is paper\n")
    );
    // By another name of it, and the newest: not the tags' own.
    good(&["tag", &path, "again", "paper"]);
    let made = json(&["tag", "--json", &path, "newest"]);
    assert_eq!((&made["name"], &made["version"]), (&Value::from("newest"), &Value::from(4)));
    let listed = json(&["tag", "--json", &path]);
    let names: Vec<&str> =
        listed["tags"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["again", "newest", "paper"]);
    let text = good(&["tag", &path]);
    assert!(text.contains("paper") && text.lines().count() == 4, "{text}");

    let told = json(&["log", "--json", &path]);
    let all = told["versions"].as_array().unwrap();
    let of = |key: &str| all.iter().map(|one| one[key].clone()).collect::<Vec<Value>>();
    let values = |text: &str| serde_json::from_str::<Vec<Value>>(text).unwrap();
    assert_eq!(of("version"), values("[7, 6, 5, 4, 3, 2, 1]"));
    assert_eq!(of("records"), values("[3, 3, 3, 3, 2, 1, 0]"));
    // Three integers and a short.
    assert_eq!(of("new_bytes"), values("[0, 0, 0, 14, 14, 14, 0]"));
    assert_eq!(of("synced"), values("[true, true, true, false, true, true, false]"));
    let messages = values(r#"["", "", "figures 3, 4", "last", "", "spin-up done", ""]"#);
    assert_eq!(of("message"), messages);
    assert_eq!(of("tags")[5], serde_json::json!(["again", "paper"]));
    assert_eq!(of("gives")[2], serde_json::json!([{"name": "paper", "version": 2}]));
    assert!(of("state").iter().all(|state| state == "open"));
    assert!(of("committed").iter().all(|time| time.as_str().unwrap().ends_with('Z')));

    let text = good(&["log", &path]);
    assert_eq!(text.lines().count(), 8, "{text}");
    assert!(text.lines().nth(6).unwrap().contains("[again, paper] spin-up done"), "{text}");
    assert!(text.contains("(tag paper = 2)"), "{text}");
    let two = json(&["log", "-n", "2", "--json", &path]);
    assert_eq!(two["versions"].as_array().unwrap()[..], all[..2]);
    let from = json(&["log", "--json", &format!("{path}@paper")]);
    assert_eq!(from["versions"].as_array().unwrap()[..], all[5..]);
    // No colour in a pipe, and with it when it is wanted; NO_COLOR says no.
    assert!(!text.contains('\u{1b}'));
    assert!(good(&["--color", "always", "log", &path]).contains('\u{1b}'));

    // A name is a version wherever a path is read.
    let at = |name: &str| format!("{path}@{name}");
    assert!(good(&["dump", &at("paper")]).contains("v = 10, 10, 10 ;"));
    assert_eq!(good(&["dump", &at("newest")]), good(&["dump", &path]));
    assert_eq!(run(&["diff", &at("again"), &at("paper")]).code, Some(0));
    assert_eq!(run(&["diff", &at("newest"), &at("paper")]).code, Some(1));
    good(&["check", &at("paper")]);
    let info = json(&["info", "--json", &at("paper")]);
    assert_eq!(info["container"]["version"], 2);
    assert_eq!(info["container"]["tags"].as_array().unwrap().len(), 3);
    assert!(good(&["info", &path]).contains("paper"));
    let out = dir.path().join("out.nc").to_str().unwrap().to_string();
    good(&["copy", &at("paper"), &out]);
    assert!(good(&["dump", &out]).contains("v = 10, 10, 10 ;"));
    good(&["replay", "-O", &at("paper"), &out]);
    assert!(good(&["dump", &out]).contains("v = 10, 10, 10 ;"));
    good(&["replay", "-O", "--auto", &at("paper"), &out]);
    assert!(good(&["dump", &out]).contains("v = 10, 10, 10 ;"));
}

#[test]
fn wrong_names_are_one_line_and_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let path = name("run.esk");
    container(&path);
    good(&["tag", &path, "paper", "2"]);
    good(&["gen", "-o", &name("a.nc"), &{
        fs::write(name("a.cdl"), "netcdf a { dimensions: x = 1 ; variables: int v(x) ; }").unwrap();
        name("a.cdl")
    }]);
    let calls: [(&[&str], &str); 10] = [
        (
            &["tag", &path, "paper", "3"],
            "version 2 is called \"paper\", and a tag stays what it is",
        ),
        (&["tag", &path, "1st"], "cannot be the name of a tag"),
        (&["tag", &path, "x", "99"], "it has no version 99"),
        (&["tag", &path, "x", "papr"], "did you mean \"paper\"?"),
        (&["tag", &path, "x", "-m", "a\nb"], "control character"),
        (&["log", &format!("{path}@papre")], "there is no tag of this name, its tags are paper"),
        (&["dump", &format!("{path}@papre")], "there is no tag of this name, its tags are paper"),
        (&["log", &name("a.nc")], "it is no container, and has no versions"),
        (&["tag", &name("a.nc"), "x"], "it is no container, and has no versions"),
        (&["log", &name("none.esk")], "none.esk"),
    ];
    for (call, said) in calls {
        let run = run(call);
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{call:?}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{call:?}: {}", run.err);
        assert!(run.err.starts_with("esker: ") && run.err.contains(said), "{call:?}: {}", run.err);
    }
}

#[test]
fn log_tells_what_is_damaged_with_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk").to_str().unwrap().to_string();
    container(&path);
    let decision = Path::new(&path).join("refs/main/00000003");
    let mut bytes = fs::read(&decision).unwrap();
    bytes[20] ^= 1;
    fs::write(&decision, bytes).unwrap();
    let run_text = run(&["log", &path]);
    assert_eq!(run_text.code, Some(1), "{}", run_text.err);
    assert!(run_text.out.contains("damaged"), "{}", run_text.out);
    assert!(run_text.out.contains("version 3: refs/main/00000003 is damaged"), "{}", run_text.out);
    let told = run(&["log", "--json", &path]);
    let told: Value = serde_json::from_str(&told.out).unwrap();
    let damaged = &told["versions"][1];
    assert_eq!(
        (&damaged["version"], &damaged["state"]),
        (&Value::from(3), &Value::from("damaged"))
    );
    assert!(damaged["damage"].as_str().unwrap().contains("00000003"));
}

#[test]
fn log_ends_quietly_when_its_reader_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk").to_str().unwrap().to_string();
    container(&path);
    let (line, code, err) = first_line_then_closed(&["log", &path]);
    assert!(line.contains("version"), "{line}");
    assert_eq!((code, &*err), (Some(0), ""));
    let output = esker(&["log", &path]).env("NO_COLOR", "1").output().unwrap();
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn messages_come_from_the_environment_too() {
    let dir = tempfile::tempdir().unwrap();
    let name = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    container(&name("a.esk"));
    let copied = esker(&["copy", "--layout", "log", &name("a.esk"), &name("b.esk")])
        .env("PNETCDF_HINTS", "esker_message=a copy of run 7")
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let told = json(&["log", "--json", &name("b.esk")]);
    assert_eq!(told["versions"][0]["message"], "a copy of run 7");
}

#[test]
fn expired_versions_are_told_cannot_be_opened_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk").to_str().unwrap().to_string();
    container(&path);
    good(&["tag", &path, "paper", "2"]);
    let would = good(&["expire", &path, "--keep-last", "1", "--dry-run"]);
    assert_eq!(would, format!("{path}: would expire: versions 1, 3\n"));
    let made = json(&["expire", "--json", &path, "--keep-last", "1", "--every", "2"]);
    assert_eq!(made["expired"], serde_json::json!([[1, 1], [3, 3]]));
    assert_eq!((&made["version"], &made["dry_run"]), (&Value::from(6), &Value::from(false)));
    assert_eq!(good(&["expire", &path, "--keep-last", "1"]), format!("{path}: nothing expires\n"));
    let text = good(&["log", &path]);
    assert_eq!(text.lines().filter(|line| line.contains("expired")).count(), 2, "{text}");
    // Whatever reads a version says so, in one line.
    let old = format!("{path}@3");
    let out = dir.path().join("out.nc").to_str().unwrap().to_string();
    let calls: [&[&str]; 8] = [
        &["info", &old],
        &["dump", &old],
        &["check", &old],
        &["diff", &old, &path],
        &["copy", &old, &out],
        &["replay", &old, &out],
        &["replay", &path, &out, "--version", "3"],
        &["tag", &path, "late", "3"],
    ];
    for call in calls {
        let run = run(call);
        assert!(run.code.is_some_and(|code| code > 0), "{call:?}: {}", run.out);
        let said = format!("{}{}", run.out, run.err);
        assert!(
            said.contains("version 3 has expired, and cannot be opened any more"),
            "{call:?}: {said}"
        );
    }
    good(&["check", &path]);
    good(&["check", &format!("{path}@paper")]);
    good(&["diff", &path, &format!("{path}@4")]);
    assert!(good(&["dump", &format!("{path}@paper")]).contains("v = 10, 10, 10"));
    let text = good(&["recover", "--dry-run", &path]);
    assert!(!text.contains("lost"), "{text}");

    // A program that was killed has left something.
    let mut ds = Dataset::open_with(&path, esker::OpenOptions::new().writable(true)).unwrap();
    ds.put(esker::VarId(0), &Selection::all(), &[7; 3]).unwrap();
    assert_eq!(ds.get::<i32>(esker::VarId(0), &Selection::all()).unwrap(), [7; 3]);
    std::mem::forget(ds);
    fs::write(dir.path().join("run.esk/refs/main/draft-00000000000000ff"), "half").unwrap();
    let told = json(&["gc", "--json", &path]);
    assert_eq!(told["removed"], serde_json::json!(["refs/main/draft-00000000000000ff"]));
    let session = told["left"][0]["session"].as_str().unwrap().to_string();
    let text = good(&["gc", "--dry-run", "--abandoned", &session, &path]);
    assert!(text.contains("would remove 2 files") && text.contains("would be given up"), "{text}");
    let text = good(&["gc", "--abandoned", &session, &path]);
    assert!(
        text.contains("removed 2 files")
            && text.contains(&format!("session {session} was given up")),
        "{text}"
    );
    assert_eq!(good(&["gc", "--all-idle", &path]), format!("{path}: there is nothing to remove\n"));
    assert!(run(&["gc", "--abandoned", "x", &path]).err.contains("there are no logs of a session"));
    assert!(good(&["dump", &path]).contains("v = 30, 30, 30"));
    first_line_then_closed(&["gc", "--json", "--dry-run", &path]);
}
