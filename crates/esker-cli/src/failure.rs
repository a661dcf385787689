//! How a command ends: what it found, or why it could not finish.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What a command that ran to its end has to say to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well: exit code 0.
    Good,
    /// The files differ, or are invalid: exit code 1.
    #[expect(dead_code, reason = "for check and diff, whose libraries are on their way")]
    Bad,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Good => ExitCode::SUCCESS,
            Outcome::Bad => ExitCode::from(1),
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
    /// A failure that is about one file: `FILE: sentence`.
    ///
    /// A library's error may begin with the file's name already; it is not said twice.
    pub(crate) fn file(path: impl AsRef<Path>, error: impl Display) -> Failure {
        let (name, error) = (path.as_ref().display().to_string(), error.to_string());
        match error.strip_prefix(&name) {
            Some(rest) if rest.starts_with(':') => Failure::Sentence(error),
            _ => Failure::Sentence(format!("{name}: {error}")),
        }
    }

    /// A failure that is about no file in particular.
    pub(crate) fn sentence(sentence: impl Display) -> Failure {
        Failure::Sentence(sentence.to_string())
    }
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
