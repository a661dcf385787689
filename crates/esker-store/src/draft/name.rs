//! Names of drafts: whose they are can be read in them, what they will be called cannot be guessed.
//!
//! `.NAME.esker-new-MMMMMMMM-PID-RRRRRRRRRRRRRRRR`: the machine (and its boot and its space of process
//! numbers), the process, and a random number.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// What a name says that a draft is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftForm {
    /// A file or folder that has not taken its name.
    New,
    /// A sub-file, which belongs to a dataset that may have taken its name before it.
    Sub,
    /// What was replaced, on its way out.
    Old,
}

impl DraftForm {
    const ALL: [DraftForm; 3] = [DraftForm::New, DraftForm::Sub, DraftForm::Old];

    fn word(self) -> &'static str {
        match self {
            DraftForm::New => ".esker-new-",
            DraftForm::Sub => ".esker-sub-",
            DraftForm::Old => ".esker-old-",
        }
    }
}

/// The longest name that file systems take.
const LONGEST: usize = 255;
/// Digits of the machine, of a process and of the random number.
const MACHINE: usize = 8;
const PROCESS: usize = 10;
const RANDOM: usize = 16;

/// What the name of a draft says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftName<'n> {
    /// What it is.
    pub form: DraftForm,
    /// The name that it is to take, or the beginning of one that is very long.
    pub target: &'n str,
    /// The machine that its process runs on.
    pub machine: u32,
    /// Its process.
    pub process: u32,
    /// What tells it from the others.
    pub number: u64,
}

impl<'n> DraftName<'n> {
    /// What a file's name says, if it is that of a draft.
    pub fn parse(name: &'n str) -> Option<DraftName<'n>> {
        let inner = name.strip_prefix('.')?;
        let found = |form: DraftForm| inner.rfind(form.word()).map(|at| (form, at));
        let (form, at) = DraftForm::ALL.into_iter().filter_map(found).max_by_key(|(_, at)| *at)?;
        let mut numbers = inner[at + form.word().len()..].split('-');
        let mut next = || numbers.next();
        let (machine, process, number) = (next()?, next()?, next()?);
        let hex = |text: &str, digits| {
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            (text.len() == digits && text.bytes().all(is_hex)).then_some(())
        };
        hex(machine, MACHINE)?;
        hex(number, RANDOM)?;
        let is_process = process.len() <= PROCESS && process.bytes().all(|b| b.is_ascii_digit());
        (is_process && next().is_none()).then_some(())?;
        Some(DraftName {
            form,
            target: &inner[..at],
            machine: u32::from_str_radix(machine, 16).ok()?,
            process: process.parse().ok()?,
            number: u64::from_str_radix(number, 16).ok()?,
        })
    }

    /// Whether it is a draft for a file of this name.
    pub fn is_for(&self, target: &OsStr) -> bool {
        target.to_str().is_some_and(|target| shortened(target) == self.target)
    }
}

/// As much of a name as leaves room for what a draft's name has beside it.
fn shortened(name: &str) -> &str {
    let room = LONGEST - (1 + ".esker-new-".len() + MACHINE + 1 + PROCESS + 1 + RANDOM);
    let mut end = name.len().min(room);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// A name for a draft of `target`, in the same directory.
pub fn draft_path(target: &Path, form: DraftForm, number: u64) -> PathBuf {
    let (word, machine, process) = (form.word(), machine(), std::process::id());
    let name = target.file_name().unwrap_or_default();
    let mut draft = OsString::from(".");
    match name.to_str() {
        Some(name) => draft.push(shortened(name)),
        // Not text: no more than its room, whatever its letters are.
        None => draft.push(shortened(&name.to_string_lossy())),
    }
    draft.push(format!("{word}{machine:08x}-{process}-{number:016x}"));
    target.with_file_name(draft)
}

/// A number that nobody can guess.
pub fn random() -> u64 {
    // The standard library seeds its maps from the system's random numbers.
    RandomState::new().build_hasher().finish()
}

/// The path with the names that its drafts are to take: what the user calls it.
pub fn named_path(path: &Path) -> PathBuf {
    let named = |component: Component<'_>| match component {
        Component::Normal(name) => match name.to_str().and_then(DraftName::parse) {
            Some(draft) => OsString::from(draft.target),
            None => name.to_os_string(),
        },
        other => other.as_os_str().to_os_string(),
    };
    path.components().map(named).collect()
}

/// This machine since it was started, and its space of process numbers: two processes that have the
/// same see each other's.
pub(super) fn machine() -> u32 {
    static MACHINE: OnceLock<u32> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let host = rustix::system::uname();
        let parts = [&boot[..], space.as_os_str().as_encoded_bytes(), host.nodename().to_bytes()];
        // FNV-1a: a name, nothing more.
        let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32) as u32 ^ hash as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_says_whose_it_is() {
        for form in DraftForm::ALL {
            let path = draft_path(Path::new("/data/run.nc"), form, 0xabc);
            assert_eq!(path.parent(), Some(Path::new("/data")));
            let name = path.file_name().unwrap().to_str().unwrap();
            let parsed = DraftName::parse(name).unwrap();
            assert_eq!((parsed.form, parsed.target, parsed.number), (form, "run.nc", 0xabc));
            assert_eq!((parsed.machine, parsed.process), (machine(), std::process::id()));
            assert_eq!(named_path(&path.join("segments/x")), Path::new("/data/run.nc/segments/x"));
        }
    }

    #[test]
    fn no_other_name_is_taken_for_a_draft() {
        let good = ".a.esker-new-0123abcd-42-0123456789abcdef";
        assert!(DraftName::parse(good).is_some());
        for name in [
            "a.esker-new-0123abcd-42-0123456789abcdef",
            ".a.esker-new",
            ".a.esker-new-0123abcd-42-0123456789abcdeX",
            ".a.esker-new-0123abcd-42-0123456789ABCDEF",
            ".a.esker-new-0123abcd-+42-0123456789abcdef",
            ".a.esker-new-0123abcd-42-0123456789abcdef-1",
            ".a.esker-new-0123abcd-99999999999-0123456789abcdef",
        ] {
            assert_eq!(DraftName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_of_any_length_has_drafts() {
        let long = "ä".repeat(127);
        let path = draft_path(Path::new(&long), DraftForm::New, u64::MAX);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.len() <= LONGEST);
        assert!(DraftName::parse(name).unwrap().is_for(OsStr::new(&long)));
    }

    #[test]
    fn numbers_differ() {
        let numbers: std::collections::HashSet<u64> = (0..1000).map(|_| random()).collect();
        assert_eq!(numbers.len(), 1000);
    }
}
