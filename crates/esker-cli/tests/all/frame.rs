//! Promises that hold for every command: exit codes, streams, help, colours, closed pipes.

use crate::common::{esker, good, run};

const COMMANDS: [&str; 16] = [
    "info",
    "dump",
    "gen",
    "check",
    "offsets",
    "copy",
    "refs",
    "log",
    "tag",
    "expire",
    "gc",
    "diff",
    "demo",
    "simulate",
    "completions",
    "man",
];

#[test]
fn help_is_data_on_standard_output_with_an_example() {
    let help = good(&["--help"]);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is in the help");
        let help = run(&[command, "--help"]);
        assert_eq!(help.code, Some(0));
        assert!(help.out.contains("Examples:\n  esker "), "{command} shows an example");
        assert!(help.out.contains(&format!("Usage: esker {command}")));
        assert_eq!(help.err, "");
    }
    assert!(good(&["--version"]).starts_with("esker "));
}

#[test]
fn a_wrong_call_is_one_line_on_standard_error_and_exit_code_2() {
    let calls: [&[&str]; 18] = [
        &["frobnicate"],
        &["info"],
        &["info", "--frobnicate", "x.nc"],
        &["--color", "mauve", "info", "x.nc"],
        &["dump", "-p", "0", "x.nc"],
        &["gen", "-k", "nc4", "x.cdl"],
        &["copy", "a.nc", "b.nc", "--dim", "lat=5:5"],
        &["diff", "--atol", "-1", "a.nc", "b.nc"],
        &["simulate", "frobnicate"],
        &["log", "-n", "0", "a.esk"],
        &["tag"],
        &["tag", "a.esk", "-m", "why"],
        &["expire", "a.esk"],
        &["expire", "a.esk", "--keep-last", "0"],
        &["expire", "a.esk", "--keep-within", "5m"],
        &["gc"],
        &["gc", "a.esk", "--all-idle", "--abandoned", "x"],
        &["simulate", "owners", "--ranks", "2M"],
    ];
    for call in calls {
        let run = run(call);
        assert_eq!(run.code, Some(2), "{call:?}");
        assert_eq!(run.out, "", "{call:?}");
        assert!(run.err.starts_with("esker: "), "{call:?}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{call:?}: {}", run.err);
        assert!(run.err.contains("--help`"), "{call:?}: {}", run.err);
    }
}

#[test]
fn a_bare_call_shows_what_there_is() {
    let run = run(&[]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("Usage: esker") && run.err.contains("esker demo"), "{}", run.err);
}

#[test]
fn a_mistyped_option_or_command_is_guessed() {
    assert!(run(&["inof"]).err.contains("'info'"));
    assert!(run(&["info", "--jsn", "x.nc"]).err.contains("'--json'"));
    assert!(run(&["man", "dmp"]).err.contains("did you mean \"dump\"?"));
}

#[test]
fn a_missing_file_is_named_in_one_line() {
    for command in ["info", "offsets", "dump", "gen", "check"] {
        let run = run(&[command, "no/such/file.nc"]);
        assert_eq!(run.code, Some(2), "{command}: {}", run.err);
        assert_eq!(run.out, "", "{command}");
        assert!(run.err.starts_with("esker: no/such/file.nc: "), "{command}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{command}: {}", run.err);
        assert_eq!(run.err.matches("no/such/file.nc").count(), 1, "{command}: {}", run.err);
    }
}

#[test]
fn completions_come_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&["completions", shell]);
        for word in ["offsets", "fix-unlimited", "header-only"] {
            assert!(script.contains(word), "{shell} completes {word}");
        }
    }
}

#[test]
fn bash_accepts_its_completions() {
    if !crate::common::have("bash") {
        return;
    }
    let script = good(&["completions", "bash"]);
    let check = format!("{script}\ncomplete -p esker");
    let bash = std::process::Command::new("bash").args(["-c", &check]).output().unwrap();
    assert!(bash.status.success(), "{}", String::from_utf8_lossy(&bash.stderr));
}

#[test]
fn every_command_has_a_page_in_the_manual() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("man1");
    let run = run(&["man", "-o", path.to_str().unwrap()]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
    for command in COMMANDS {
        let page = std::fs::read_to_string(path.join(format!("esker-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH EXAMPLES"), "{command}");
        assert!(good(&["man", command]).contains(".SH SYNOPSIS"));
    }
    assert!(path.join("esker.1").is_file());
    assert!(good(&["man"]).contains("Look at, make, check, copy"));
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let calls: [&[&str]; 4] =
        [&["completions", "bash"], &["completions", "zsh"], &["man", "copy"], &["copy", "--help"]];
    for call in calls {
        let (line, code, err) = crate::common::first_line_then_closed(call);
        assert!(!line.is_empty(), "{call:?}");
        assert_eq!((code, err.as_str()), (Some(0), ""), "{call:?}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let run: crate::common::Run = esker(&["man"]).stdout(full).output().unwrap().into();
    assert_eq!(run.code, Some(2));
    assert!(run.err.starts_with("esker: standard output cannot be written: "), "{}", run.err);
}

#[test]
fn help_has_no_colour_in_a_pipe_and_has_it_when_forced() {
    assert!(!good(&["--help"]).contains('\x1b'));
    assert!(good(&["--color", "always", "--help"]).contains('\x1b'));
    assert!(!good(&["--color=never", "--help"]).contains('\x1b'));
}
