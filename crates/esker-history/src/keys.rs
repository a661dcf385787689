//! The names of a history's objects.

use esker_format::history::{Branch, Level, RunId};
use esker_format::inside;

pub(crate) fn decision(branch: &Branch, number: u64) -> String {
    format!("refs/{branch}/{number:08}")
}

pub(crate) fn prepared(branch: &Branch, number: u64) -> String {
    format!("{}/{number:08}", prepared_of(branch))
}

/// The folder of what is prepared for a branch.
pub(crate) fn prepared_of(branch: &Branch) -> String {
    format!("prepared/{branch}")
}

pub(crate) fn run(level: &Level) -> String {
    run_of(level.made, level.id)
}

/// The run that a writer makes for a number.
pub(crate) fn run_of(made: u64, id: RunId) -> String {
    format!("{RUNS}/{made:08}-{id}")
}

/// The number that a run was made for, and which it is, by its name in the folder.
pub(crate) fn parse_run(name: &str) -> Option<(u64, RunId)> {
    let (made, id) = name.split_once('-')?;
    Some((inside::version(made)?, RunId::parse(id)?))
}

/// Whether a file of this name in the folder of runs is one.
pub fn is_run(name: &str) -> bool {
    parse_run(name).is_some()
}

/// The folder of runs.
pub(crate) const RUNS: &str = "runs";
