//! Promises of `esker demo`.
#![allow(missing_docs)]

mod common;

use common::{esker, good, have, run};

#[test]
fn the_demo_makes_shows_draws_and_checks_a_file() {
    let text = good(&["demo"]);
    for part in ["CDF-2", "tos", "unlimited", "land is blank", "check", "try next", "esker info"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe");
    assert!(text.contains("@@@@") && !text.contains('▀'), "a picture of letters");
}

#[test]
fn the_picture_has_as_many_colours_as_the_terminal() {
    let colours = |name: &str, value: &str| {
        let output = esker(&["--color", "always", "demo"]).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let full = colours("COLORTERM", "truecolor");
    assert!(full.contains('▀') && full.contains("\x1b[38;2;"));
    let indexed = colours("TERM", "xterm-256color");
    assert!(indexed.contains('▀') && indexed.contains("\x1b[38;5;") && !indexed.contains("[38;2;"));
}

#[test]
fn a_kept_file_is_one_that_peers_read_and_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("demo.nc");
    let output = esker(&["demo", "--keep"]).current_dir(directory.path()).output().unwrap();
    assert!(output.status.success());
    let bytes = std::fs::read(&kept).unwrap();
    assert!((300_000..5_000_000).contains(&bytes.len()));
    if have("ncdump") {
        let dump = std::process::Command::new("ncdump").arg("-h").arg(&kept).output().unwrap();
        let header = String::from_utf8(dump.stdout).unwrap();
        assert!(header.contains("float tos(time, lat, lon) ;"), "{header}");
        assert!(header.contains("time = UNLIMITED ; // (12 currently)"), "{header}");
    }
    if have("ncvalidator") {
        let status = std::process::Command::new("ncvalidator").arg(&kept).output().unwrap().status;
        assert!(status.success());
    }
    let again = run(&["demo", "-o", directory.path().to_str().unwrap()]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("demo.nc"), "{}", again.err);
    assert_eq!(std::fs::read(&kept).unwrap(), bytes);
}

#[test]
fn without_keep_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let output = esker(&["demo"])
        .current_dir(directory.path())
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
