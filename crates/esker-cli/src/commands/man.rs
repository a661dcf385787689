//! `esker man`: the manual's pages, from the same definitions as the help.

use std::io::Write;
use std::path::PathBuf;

use clap_mangen::Man;

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, say};

/// Print a page of the manual, or write all pages to a directory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker man | man -l -                      read the page of esker
  esker man info | man -l -                 read the page of one command
  esker man -o ~/.local/share/man/man1      install all pages")]
pub(super) struct Arguments {
    /// The command whose page to print [default: esker itself]
    #[arg(conflicts_with = "output")]
    command: Option<String>,
    /// Write all pages to this directory, which is made if need be
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let mut definition = super::definition();
    // Gives every subcommand its full name ("esker info") and the global options.
    definition.build();
    if let Some(directory) = &arguments.output {
        let refuse = |error: std::io::Error| Failure::file(directory, error);
        std::fs::create_dir_all(directory).map_err(refuse)?;
        let mut count = 0;
        for page in pages(&definition) {
            let mut text = Vec::new();
            Man::new(page.clone()).render(&mut text)?;
            let path = directory.join(format!("{}.1", file_name(page)));
            std::fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
            count += 1;
        }
        say(format_args!("{count} pages written to {}", directory.display()));
        return Ok(Outcome::Good);
    }
    let page = match &arguments.command {
        None => &definition,
        Some(name) => definition.find_subcommand(name).ok_or_else(|| {
            let names = definition.get_subcommands().map(|c| c.get_name());
            let near = esker::nearest::hint(name, names);
            Failure::sentence(format_args!("there is no command \"{name}\"{near}"))
        })?,
    };
    let mut text = Vec::new();
    Man::new(page.clone()).render(&mut text)?;
    screen.write_all(&text)?;
    Ok(Outcome::Good)
}

fn pages(definition: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    let commands = definition.get_subcommands().filter(|c| c.get_name() != "help");
    std::iter::once(definition).chain(commands)
}

fn file_name(page: &clap::Command) -> String {
    page.get_display_name().unwrap_or(page.get_name()).replace(' ', "-")
}
