//! How a command ends: what it found, or why it could not finish.

use std::fmt::Display;
use std::io;
use std::path::Path;

use esker_store::shown_path;
use esker_text::sentence;

/// What a command that ran to its end has to say to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well: exit code 0.
    Good,
    /// The files differ, or are invalid: exit code 1.
    Bad,
    /// It could not be told for some of the files, which has been said: exit code 2.
    Unknown,
}

impl Outcome {
    /// What the shell is told.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Good => 0,
            Outcome::Bad => 1,
            Outcome::Unknown => 2,
        }
    }
}

/// Why a command could not finish: exit code 2, and one line on standard error.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nobody reads standard output any more. Not a failure of ours: nothing is said.
    ClosedPipe,
    /// A sentence about a file or about the call.
    Sentence(String),
}

/// The result of a command.
pub(crate) type Ended = Result<Outcome, Failure>;

impl Failure {
    /// A failure that is about one file: `FILE: sentence`, with the name that the user gave.
    ///
    /// A library's error may begin with the file's name already, or with the name that it has
    /// behind symbolic links; that is left out.
    pub(crate) fn file(path: impl AsRef<Path>, error: impl Display) -> Failure {
        let (path, error) = (path.as_ref(), sentence(error));
        let rest = without_name(path, &error).unwrap_or(&error);
        Failure::Sentence(format!("{}: {rest}", shown_path(path)))
    }

    /// A failure that is about one of two files; the error's own words say which.
    pub(crate) fn either(first: &Path, second: &Path, error: impl Display) -> Failure {
        let error = sentence(error);
        for path in [first, second] {
            if let Some(sentence) = without_name(path, &error) {
                return Failure::Sentence(format!("{}: {sentence}", shown_path(path)));
            }
        }
        Failure::Sentence(error)
    }

    /// A failure that is about no file in particular.
    pub(crate) fn sentence(words: impl Display) -> Failure {
        Failure::Sentence(sentence(words))
    }
}

/// The error without the file's name before it, if it has it.
fn without_name<'a>(path: &Path, error: &'a str) -> Option<&'a str> {
    let resolved = path.canonicalize().unwrap_or_default();
    let without = |name: &Path| error.strip_prefix(&*shown_path(name))?.strip_prefix(": ");
    without(path).or_else(|| without(&resolved))
}

/// Every write of a command goes to standard output, so that is what a bare I/O error is about.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Sentence(format!("standard output cannot be written: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        match error.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => Failure::Sentence(format!("JSON cannot be written: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(failure: Failure) -> String {
        match failure {
            Failure::Sentence(text) => text,
            Failure::ClosedPipe => String::new(),
        }
    }

    #[test]
    fn a_file_is_named_once_and_as_the_user_does() {
        let directory = tempfile::tempdir().unwrap();
        let (real, link) = (directory.path().join("real.nc"), directory.path().join("link.nc"));
        std::fs::write(&real, "").unwrap();
        let real = real.canonicalize().unwrap();
        let shown = link.display();
        assert_eq!(text(Failure::file(&link, "it is empty")), format!("{shown}: it is empty"));
        let named = format!("{shown}: it is empty");
        assert_eq!(text(Failure::file(&link, &named)), named);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&real, &link).unwrap();
            let error = format!("{}: it is empty", real.display());
            assert_eq!(text(Failure::file(&link, error)), format!("{shown}: it is empty"));
        }
    }

    #[test]
    fn a_closed_pipe_is_told_from_a_full_disk() {
        let kind = |kind| Failure::from(io::Error::from(kind));
        assert!(matches!(kind(io::ErrorKind::BrokenPipe), Failure::ClosedPipe));
        assert!(matches!(kind(io::ErrorKind::StorageFull), Failure::Sentence(_)));
    }
}
