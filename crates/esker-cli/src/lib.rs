//! The command `esker`: a thin front over `esker-tools`.
//!
//! Data go to standard output, everything else to standard error. A command's arguments,
//! its help, its man page and its completions come from one definition, in the command's
//! own file under `commands`; how things look is under `terminal`. It is a library so that
//! `python -m esker` is the same command.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod failure;
mod signals;
mod terminal;

use std::ffi::OsString;

/// Runs the command that the arguments (the program's name first) ask for, and gives its exit code:
/// 0 all is well, 1 the files differ or are invalid, 2 wrong usage or failure.
///
/// `again` is how the command is started again, as `esker bench` does for its ranks; if it is empty,
/// by the program that runs.
pub fn run(arguments: Vec<OsString>, again: &[OsString]) -> u8 {
    commands::run(arguments, again)
}
