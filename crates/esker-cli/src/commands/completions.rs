//! `esker completions`: what a shell needs to complete `esker`'s arguments.

use std::io::Write;

use clap_complete::Shell;

use crate::failure::{Ended, Outcome};
use crate::terminal::Screen;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker completions bash > ~/.local/share/bash-completion/completions/esker
  esker completions zsh > ~/.zfunc/_esker
  esker completions fish > ~/.config/fish/completions/esker.fish")]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    // clap_complete panics when it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::definition(), "esker", &mut script);
    screen.write_all(&script)?;
    Ok(Outcome::Good)
}
