//! What commands leave of files that have a name already, of links that others have put there, and of
//! themselves when they are told to end.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{esker, good, run};

const TEXT: &str =
    "netcdf run { dimensions: x = 4 ; variables: int v(x) ; data: v = 1, 2, 3, 4 ; }\n";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        fs::write(place.path("run.cdl"), TEXT).unwrap();
        good(&["gen", &place.name("run.cdl"), "-o", &place.name("run.nc")]);
        good(&["copy", "--layout", "log", &place.name("run.nc"), &place.name("run.esk")]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    /// The names that are there, without those that every test has.
    fn others(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| !["run.cdl", "run.nc", "run.esk"].contains(&&**name)).collect();
        names.sort();
        names
    }
}

/// The commands that put a file in place of another, which is their last argument.
fn replacing(place: &Place, output: &str) -> Vec<Vec<String>> {
    let (text, file, container) =
        (place.name("run.cdl"), place.name("run.nc"), place.name("run.esk"));
    let output = place.name(output);
    [
        vec!["gen", &text, "-o", &output],
        vec!["copy", "-O", &file, &output],
        vec!["copy", "-O", "--filter", "zstd,3", &file, &output],
        vec!["copy", "-O", "--canonical", &file, &output],
        vec!["replay", "-O", &container, &output],
        vec!["refs", "-O", &file, "-o", &output],
    ]
    .map(|call| call.into_iter().map(String::from).collect())
    .to_vec()
}

fn told(call: &[String]) -> crate::common::Run {
    let call: Vec<&str> = call.iter().map(String::as_str).collect();
    run(&call)
}

#[test]
fn a_replaced_file_keeps_who_may_read_it() {
    let place = Place::new();
    for call in replacing(&place, "out.json") {
        let output = place.path("out.json");
        for mode in [0o600, 0o640, 0o666] {
            fs::write(&output, "old").unwrap();
            fs::set_permissions(&output, fs::Permissions::from_mode(mode)).unwrap();
            let run = told(&call);
            assert_eq!(run.code, Some(0), "{call:?}: {}", run.err);
            let found = fs::metadata(&output).unwrap();
            assert!(found.len() > 3, "{call:?}");
            assert_eq!(found.mode() & 0o777, mode, "{call:?}");
        }
        fs::remove_file(&output).unwrap();
        // A new one has what the umask leaves.
        fs::write(place.path("plain"), "").unwrap();
        assert_eq!(told(&call).code, Some(0));
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&output), mode(&place.path("plain")), "{call:?}");
        fs::remove_file(&output).unwrap();
        fs::remove_file(place.path("plain")).unwrap();
    }
    assert_eq!(place.others(), Vec::<String>::new());
}

#[test]
fn a_replaced_container_keeps_who_may_read_it() {
    let place = Place::new();
    let output = place.path("out.esk");
    let call = ["copy", "-O", "--layout", "log", &place.name("run.nc"), &place.name("out.esk")];
    good(&call);
    fs::set_permissions(&output, fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(output.join("esker.json"), fs::Permissions::from_mode(0o640)).unwrap();
    good(&call);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&output), 0o750);
    let mut files = vec![output.join("esker.json")];
    for folder in ["refs/main", "segments"] {
        files.extend(fs::read_dir(output.join(folder)).unwrap().map(|e| e.unwrap().path()));
    }
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o640, "{}", file.display());
    }
}

#[test]
fn planted_links_do_not_lead_to_the_files_of_others() {
    let place = Place::new();
    let victim = place.path("victim");
    fs::write(&victim, "precious").unwrap();
    // The names that drafts had when they could be guessed, of every process number nearby.
    for ending in ["esker-new", "esker-redef", "esker-old"] {
        symlink(&victim, place.path(&format!(".out.json.{ending}"))).unwrap();
    }
    for call in replacing(&place, "out.json") {
        told(&call);
        assert_eq!(fs::read(&victim).unwrap(), b"precious", "{call:?}");
        let _ = fs::remove_file(place.path("out.json"));
    }
    // A redefinition has a journal of a name that is known.
    symlink(&victim, place.path(".run.nc.esker-redef")).unwrap();
    let run = run(&["check", "--in-place", &place.name("run.nc")]);
    assert!(run.code.is_some());
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn devices_and_pipes_are_not_replaced() {
    let place = Place::new();
    symlink("/dev/null", place.path("out.json")).unwrap();
    for call in replacing(&place, "out.json") {
        let run = told(&call);
        assert_eq!(run.code, Some(2), "{call:?}");
        assert!(run.err.contains("a device"), "{call:?}: {}", run.err);
    }
    let null = fs::metadata("/dev/null").unwrap();
    assert!(!null.is_file(), "it is what it was");
}

#[test]
fn a_directory_that_takes_no_files_is_told_and_nothing_is_lost() {
    let place = Place::new();
    let nobody = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_root = fs::metadata(place.dir.path()).unwrap().uid() == 0;
    if is_root && !nobody.is_ok_and(|status| status.success()) {
        esker_testkit::skip!("root may write everywhere, and setpriv is not here");
        return;
    }
    let folder = place.path("closed");
    fs::create_dir(&folder).unwrap();
    let output = folder.join("out.nc");
    fs::write(&output, "old").unwrap();
    if is_root {
        std::os::unix::fs::chown(&output, Some(65534), Some(65534)).unwrap();
    }
    // Everybody may read what is read here, also where the temporary folder is private.
    let binary = place.path("esker");
    fs::copy(env!("CARGO_BIN_EXE_esker"), &binary).unwrap();
    for (path, mode) in
        [(&folder, 0o555), (&place.dir.path().to_path_buf(), 0o755), (&binary, 0o755)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let (input, name) = (place.name("run.nc"), output.to_str().unwrap().to_string());
    let as_nobody = |arguments: &[&str]| {
        let mut command = match is_root {
            true => Command::new("setpriv"),
            false => Command::new(&binary),
        };
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        }
        crate::common::Run::from(command.args(arguments).output().unwrap())
    };
    let refused = as_nobody(&["copy", "-O", &input, &name]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.starts_with(&format!("esker: {name}: ")), "{}", refused.err);
    assert!(refused.err.contains("its directory takes no new files"), "{}", refused.err);
    assert_eq!(fs::read(&output).unwrap(), b"old");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn errors_name_the_file_that_the_user_named() {
    let place = Place::new();
    for call in replacing(&place, "no/out.json") {
        let run = told(&call);
        assert_eq!(run.code, Some(2));
        // References are told which directory is not there.
        assert!(run.err.contains(&place.name("no")), "{call:?}: {}", run.err);
        assert!(!run.err.contains("esker-new"), "{call:?}: {}", run.err);
    }
}

#[test]
fn the_name_inside_a_text_says_nothing_of_where_the_file_goes() {
    let place = Place::new();
    let inner = place.path("inner");
    fs::create_dir(&inner).unwrap();
    for name in ["../evil", "../../evil", "/tmp/esker-evil-of-a-test", "..", "a\\/b"] {
        let text = TEXT.replace("netcdf run", &format!("netcdf {name}"));
        fs::write(inner.join("t.cdl"), text).unwrap();
        let output = esker(&["gen", "-b", "t.cdl"]).current_dir(&inner).output().unwrap();
        let run = crate::common::Run::from(output);
        assert_eq!(run.code, Some(2), "{name}: {}", run.err);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "{name}");
        assert_eq!(place.others(), ["inner"], "{name}");
    }
    assert!(!Path::new("/tmp/esker-evil-of-a-test.nc").exists());
    fs::write(inner.join("t.cdl"), TEXT).unwrap();
    let output = esker(&["gen", "-b", "t.cdl"]).current_dir(&inner).output().unwrap();
    assert!(output.status.success() && inner.join("run.nc").exists());
}

/// Starts a copy and sends the signal as soon as its draft is there; gives whether it was. On a busy machine the copy
/// waits for whoever sends the signal, not the other way round: it is the least important process there is, and the
/// shell that sends it runs already.
fn interrupted(place: &Place, signal: &str, number: i32) -> bool {
    let copy = esker(&["copy", "-O", &place.name("big.nc"), &place.name("out.nc")]);
    // (Whoever started these tests in the background of a script has made them deaf to the first of the signals.)
    let mut child = Command::new("env")
        .args(["--default-signal", "nice", "-n", "19"])
        .arg(copy.get_program())
        .args(copy.get_args())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut sender = Command::new("sh")
        .args(["-c", &format!("read now; kill {signal} {}", child.id())])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let growing = || place.others().iter().any(|name| name.contains(".esker-new-"));
    while !growing() && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing grows");
        std::thread::yield_now();
    }
    let was_growing = growing();
    sender.stdin.take().unwrap().write_all(b"now\n").unwrap();
    let sent = sender.wait().unwrap();
    let status = child.wait().unwrap();
    was_growing && sent.success() && status.signal() == Some(number)
}

#[test]
fn a_command_that_is_told_to_end_leaves_nothing_behind() {
    let place = Place::new();
    // Sparse: quick to make, and to copy it takes a while.
    let text = "netcdf big { dimensions: x = 60000000 ; variables: int v(x) ; }";
    fs::write(place.path("big.cdl"), text).unwrap();
    good(&["gen", &place.name("big.cdl"), "-o", &place.name("big.nc")]);
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        fs::write(place.path("out.nc"), "old").unwrap();
        let hit = (0..20).any(|_| interrupted(&place, signal, number));
        assert!(hit, "no copy was interrupted");
        assert_eq!(place.others(), ["big.cdl", "big.nc", "out.nc"], "{signal}");
    }
}

#[test]
fn check_names_what_dead_processes_left() {
    let place = Place::new();
    let mut child = Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let draft = esker_store::draft_path(&place.path("run.nc"), esker_store::DraftForm::New, 5);
    let own = format!("-{}-", std::process::id());
    let draft = draft.to_str().unwrap().replace(&own, &format!("-{dead}-"));
    fs::write(&draft, "half").unwrap();
    let file = place.name("run.nc");
    let told = good(&["check", &file]);
    assert!(told.contains(&format!("process {dead}, which does not run any more")), "{told}");
    let told = good(&["recover", &file]);
    assert!(told.contains(&format!("process {dead}")), "{told}");
    // The next one of that name removes it.
    good(&["gen", &place.name("run.cdl"), "-o", &file]);
    assert!(!Path::new(&draft).exists());
}
