//! The command `esker`: a thin front over `esker-tools`.
//!
//! Data go to standard output, everything else to standard error. A command's arguments,
//! its help, its man page and its completions come from one definition, in the command's
//! own file under [`commands`]; how things look is under [`terminal`].
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod failure;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(std::env::args_os().collect())
}
