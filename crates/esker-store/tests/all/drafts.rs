//! Files that grow under other names: whose they are, who may read them, and what becomes of them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{
    Access, Draft, DraftForm, LocalStore, MemoryStore, Store, draft_path, leftovers,
};

fn local() -> Arc<dyn Store> {
    Arc::new(LocalStore)
}

fn names(directory: &Path) -> Vec<String> {
    LocalStore.names_in(directory).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn file_of_mode(path: &Path, mode: u32) {
    fs::write(path, "old").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A draft with contents that has taken its name.
fn replace(path: &Path) {
    let draft = Draft::whole(&local(), path).unwrap();
    draft.file().unwrap().write_at(0, b"new").unwrap();
    draft.take_name().unwrap();
}

#[test]
fn a_draft_takes_its_name_whole_and_one_that_is_dropped_leaves_nothing() {
    let stores: [Arc<dyn Store>; 2] = [local(), Arc::new(MemoryStore::default())];
    for store in stores {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.nc");
        let ways = [Draft::take_name, Draft::take_name_unsynced];
        let texts = [b"one", b"two", b"six", b"ten"];
        for (text, take_name) in texts.into_iter().zip(ways.into_iter().cycle()) {
            let draft = Draft::begin(&store, &path).unwrap();
            draft.file().unwrap().write_at(0, b"lost").unwrap();
            drop(draft);
            let draft = Draft::begin(&store, &path).unwrap();
            draft.file().unwrap().write_at(0, text).unwrap();
            take_name(draft).unwrap();
            let mut found = [0; 3];
            store.open(&path, Access::Read).unwrap().read_at(0, &mut found).unwrap();
            assert_eq!(&found, text);
            assert_eq!(store.names_in(dir.path()).unwrap(), ["run.nc"]);
        }
    }
}

#[test]
fn a_directory_that_has_got_the_name_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    for take_name in [Draft::take_name, Draft::take_name_unsynced] {
        fs::write(&path, "old").unwrap();
        let draft = Draft::whole(&local(), &path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("in it"), "stays").unwrap();
        take_name(draft).unwrap_err();
        assert_eq!(names(dir.path()), ["run.nc"]);
        assert_eq!(fs::read(path.join("in it")).unwrap(), b"stays");
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn two_creators_of_one_name_never_share_a_draft() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let drafts: Vec<Draft> = (0..2).map(|_| Draft::begin(&local(), &path).unwrap()).collect();
    assert_ne!(drafts[0].path(), drafts[1].path());
    for (draft, text) in drafts.into_iter().zip([b"first ", b"second"]) {
        draft.file().unwrap().write_at(0, text).unwrap();
        draft.take_name().unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), b"second");
    // An empty file that both find is filled by one of them, and replaced by the other.
    fs::write(&path, "").unwrap();
    let drafts: Vec<Draft> = (0..2).map(|_| Draft::begin(&local(), &path).unwrap()).collect();
    assert_ne!(drafts[0].path(), drafts[1].path());
}

#[test]
fn a_new_file_has_the_mode_that_the_umask_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let (path, plain) = (dir.path().join("run.nc"), dir.path().join("plain"));
    fs::write(&plain, "").unwrap();
    let draft = Draft::begin(&local(), &path).unwrap();
    assert_eq!(mode(draft.path()), mode(&plain));
    draft.take_name().unwrap();
    assert_eq!(mode(&path), mode(&plain));
}

#[test]
fn a_replaced_file_keeps_its_mode_owner_and_attributes_from_before_the_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    for wanted in [0o600, 0o640, 0o444, 0o666, 0o4755] {
        file_of_mode(&path, wanted);
        let has_attributes =
            rustix::fs::setxattr(&path, "user.project", b"ocean", rustix::fs::XattrFlags::empty())
                .is_ok();
        // As root the file may be another's; as anybody else it is one's own.
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(&path, Some(1234), Some(4321)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        }
        if !is_root && wanted == 0o444 {
            let error = Draft::whole(&local(), &path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            continue;
        }
        let draft = Draft::whole(&local(), &path).unwrap();
        let look = |path: &Path| {
            assert_eq!(mode(path), wanted & 0o777, "set-user-ID is not for data");
            let found = fs::metadata(path).unwrap();
            if is_root {
                assert_eq!((found.uid(), found.gid()), (1234, 4321));
            }
            let mut value = [0; 8];
            let read = rustix::fs::getxattr(path, "user.project", &mut value[..]);
            assert_eq!(read.is_ok_and(|n| &value[..n] == b"ocean"), has_attributes);
        };
        assert!(draft.file().unwrap().is_empty().unwrap());
        look(draft.path());
        draft.file().unwrap().write_at(0, b"new").unwrap();
        draft.take_name().unwrap();
        look(&path);
        fs::remove_file(&path).unwrap();
    }
}

/// An access list as the kernel stores it: version 2, then tag, permissions and number of each entry.
fn access_list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, number) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

const NOBODY: u32 = u32::MAX;

#[test]
fn an_access_list_is_kept_and_none_comes_from_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    file_of_mode(&path, 0o640);
    let none = rustix::fs::XattrFlags::empty();
    let list = access_list(&[
        (0x01, 6, NOBODY),
        (0x02, 4, 1234),
        (0x04, 0, NOBODY),
        (0x10, 4, NOBODY),
        (0x20, 0, NOBODY),
    ]);
    let access = "system.posix_acl_access";
    if rustix::fs::setxattr(&path, access, &list, none).is_err() {
        esker_testkit::skip!("{} has no access lists", dir.path().display());
        return;
    }
    let read = |path: &Path| {
        let mut value = [0; 200];
        rustix::fs::getxattr(path, access, &mut value[..]).map(|n| value[..n].to_vec())
    };
    let draft = Draft::whole(&local(), &path).unwrap();
    assert_eq!(read(draft.path()).unwrap(), list);
    drop(draft);
    // The directory now gives a list to all new files; one that had none gets none.
    let open = access_list(&[
        (0x01, 7, NOBODY),
        (0x02, 7, 5678),
        (0x04, 7, NOBODY),
        (0x10, 7, NOBODY),
        (0x20, 7, NOBODY),
    ]);
    rustix::fs::setxattr(dir.path(), "system.posix_acl_default", &open, none).unwrap();
    let private = dir.path().join("private.nc");
    file_of_mode(&private, 0o600);
    rustix::fs::removexattr(&private, access).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o640)).unwrap();
    let draft = Draft::whole(&local(), &private).unwrap();
    assert!(read(draft.path()).is_err());
    assert_eq!(mode(draft.path()), 0o640);
}

#[test]
fn an_empty_file_is_filled_where_it_is_and_emptied_again_by_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("run.nc"), dir.path().join("link.nc"));
    file_of_mode(&path, 0o600);
    fs::write(&path, "").unwrap();
    fs::hard_link(&path, &other).unwrap();
    let number = fs::metadata(&path).unwrap().ino();
    let draft = Draft::begin(&local(), &path).unwrap();
    draft.file().unwrap().write_at(0, b"half").unwrap();
    drop(draft);
    assert_eq!(fs::read(&path).unwrap(), b"");
    let draft = Draft::begin(&local(), &path).unwrap();
    draft.file().unwrap().write_at(0, b"new").unwrap();
    draft.take_name().unwrap();
    assert_eq!((fs::metadata(&path).unwrap().ino(), mode(&path)), (number, 0o600));
    assert_eq!(fs::read(&other).unwrap(), b"new");
    // A whole file replaces it: nobody sees a part.
    fs::write(&path, "").unwrap();
    replace(&path);
    assert_ne!(fs::metadata(&path).unwrap().ino(), number);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn other_names_of_a_replaced_file_keep_the_old_contents() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("run.nc"), dir.path().join("kept.nc"));
    file_of_mode(&path, 0o640);
    fs::hard_link(&path, &other).unwrap();
    replace(&path);
    assert_eq!(
        (fs::read(&path).unwrap(), fs::read(&other).unwrap()),
        (b"new".into(), b"old".into())
    );
}

#[test]
fn links_are_followed_also_to_what_is_not_there_yet() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let (link, file) = (dir.path().join("run.nc"), scratch.join("real.nc"));
    symlink("scratch/real.nc", &link).unwrap();
    for _ in 0..2 {
        replace(&link);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["run.nc", "scratch"]);
        assert_eq!(names(&scratch), ["real.nc"]);
    }
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    symlink(&b, &a).unwrap();
    symlink(&a, &b).unwrap();
    assert!(Draft::whole(&local(), &a).is_err(), "a circle of links ends in an error");
}

#[test]
fn pipes_devices_and_directories_are_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    for path in [&pipe, Path::new("/dev/null"), dir.path()] {
        for begin in [Draft::begin, Draft::whole] {
            let error = begin(&local(), path).unwrap_err().to_string();
            assert!(error.starts_with(path.to_str().unwrap()), "{error}");
            assert!(["a pipe", "a device", "a directory"].iter().any(|what| error.contains(what)));
        }
    }
    assert_eq!(names(dir.path()), ["pipe"]);
}

#[test]
fn planted_links_are_not_written_through() {
    // Every name of the old form, and a draft's own: what is created is new, or not created.
    let dir = tempfile::tempdir().unwrap();
    let (path, victim) = (dir.path().join("run.nc"), dir.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    let planted = draft_path(&path, DraftForm::New, 1);
    symlink(&victim, &planted).unwrap();
    assert_eq!(
        LocalStore.create_like(&planted, &victim).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    symlink(&victim, dir.path().join(".run.nc.esker-new")).unwrap();
    replace(&path);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn a_journal_is_believed_only_if_it_is_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let (path, journal) = (dir.path().join("run.nc"), dir.path().join(".run.nc.esker-redef"));
    fs::write(&path, "old").unwrap();
    fs::write(&journal, "journal").unwrap();
    LocalStore.open_trusted(&journal, &path).unwrap();
    fs::rename(&journal, dir.path().join("elsewhere")).unwrap();
    symlink(dir.path().join("elsewhere"), &journal).unwrap();
    assert!(LocalStore.open_trusted(&journal, &path).is_err());
    if rustix::process::geteuid().is_root() {
        fs::remove_file(&journal).unwrap();
        fs::write(&journal, "journal").unwrap();
        std::os::unix::fs::chown(&journal, Some(1234), None).unwrap();
        // The administrator is not the dataset's owner, and neither is the stranger.
        let error = LocalStore.open_trusted(&journal, &path).unwrap_err().to_string();
        assert!(error.contains("belongs to user 1234"), "{error}");
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        LocalStore.open_trusted(&journal, &path).unwrap();
    }
}

#[test]
fn what_dead_processes_left_is_told_and_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.nc");
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let of = |process: u32, machine: Option<&str>| -> PathBuf {
        let name = draft_path(&path, DraftForm::New, 7);
        let name = name.file_name().unwrap().to_str().unwrap();
        let own = format!("-{}-", std::process::id());
        let name = name.replace(&own, &format!("-{process}-"));
        let name = match machine {
            Some(machine) => {
                let at = name.find("esker-new-").unwrap() + "esker-new-".len();
                format!("{}{machine}{}", &name[..at], &name[at + 8..])
            }
            None => name,
        };
        dir.path().join(name)
    };
    let (left, alive, far) = (of(dead, None), of(1, None), of(dead, Some("00000000")));
    for path in [&left, &alive, &far] {
        fs::write(path, "half").unwrap();
    }
    let found = leftovers(&LocalStore, &path).unwrap();
    let running = |path: &PathBuf| found.iter().find(|l| l.path == *path).unwrap().is_running;
    assert_eq!([&left, &alive, &far].map(running), [Some(false), Some(true), None]);
    assert!(found.iter().all(|left| left.age.is_some()));
    let own = Draft::whole(&local(), &path).unwrap();
    assert_eq!(leftovers(&LocalStore, &path).unwrap().len(), 3, "what grows here is not left");
    own.take_name().unwrap();
    assert!(!left.exists() && alive.exists() && far.exists());
}

#[test]
fn a_folder_takes_the_place_of_another_with_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let umask = dir.path().join("plain");
    fs::create_dir(&umask).unwrap();
    for round in 0..2 {
        let draft = Draft::folder(&local(), &path).unwrap();
        fs::write(draft.path().join("inner"), round.to_string()).unwrap();
        draft.take_name().unwrap();
        assert_eq!(fs::read_to_string(path.join("inner")).unwrap(), round.to_string());
        assert_eq!(mode(&path), if round == 0 { mode(&umask) } else { 0o750 });
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        assert_eq!(names(dir.path()), ["plain", "run.esk"]);
    }
    drop(Draft::folder(&local(), &path).unwrap());
    assert_eq!(names(dir.path()), ["plain", "run.esk"]);
}

#[test]
fn errors_name_the_file_that_the_user_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("no/run.nc");
    let error = Draft::whole(&local(), &path).unwrap_err();
    assert_eq!(error.path, path);
    assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
    let path = dir.path().join("run\u{1b}[2J.nc");
    let draft = Draft::whole(&local(), &path).unwrap();
    fs::remove_file(draft.path()).unwrap();
    let error = draft.take_name().unwrap_err().to_string();
    assert!(error.contains(r"run\u{1b}[2J.nc: rename") && !error.contains("esker-new"), "{error}");
}
