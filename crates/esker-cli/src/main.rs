//! The command `esker`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(esker_cli::run(std::env::args_os().collect(), &[]))
}
