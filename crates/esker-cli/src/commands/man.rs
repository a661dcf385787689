//! `esker man`: the manual's pages, from the same definitions as the help.

use std::io::{self, Write};
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
            let text = rendered(page)?;
            let path = directory.join(format!("{}.1", file_name(page)));
            std::fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
            count += 1;
        }
        say(format_args!("{count} pages written to {}", esker_text::shown_path(directory)));
        return Ok(Outcome::Good);
    }
    let page = match &arguments.command {
        None => &definition,
        Some(name) => {
            pages(&definition).find(|page| short_name(page) == *name).ok_or_else(|| {
                let names: Vec<String> = pages(&definition).map(short_name).collect();
                let near = esker::nearest::hint(name, names.iter().map(String::as_str));
                Failure::sentence(format_args!("there is no command \"{name}\"{near}"))
            })?
        }
    };
    screen.write_all(&rendered(page)?)?;
    Ok(Outcome::Good)
}

/// A page. What stands below the options in the help becomes sections of their own: clap's
/// would run the lines of the examples together.
fn rendered(page: &clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(page.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if page.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let below = page.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = below.split_once("Examples:\n").unwrap_or((&below, ""));
    let (examples, more) = examples.split_once("\n\n").unwrap_or((examples, ""));
    for (title, lines) in [("NOTES", notes), ("EXAMPLES", examples), ("FILES", more)] {
        if !lines.trim().is_empty() {
            writeln!(text, ".SH {title}\n.nf")?;
            for line in lines.trim_end().lines() {
                // A line must not begin with a control character of roff.
                writeln!(text, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
            }
            writeln!(text, ".fi")?;
        }
    }
    Ok(text)
}

/// The page of the command, those of its commands, and of theirs.
fn pages(definition: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    let with_inner = |command| std::iter::once(command).chain(shown(command));
    std::iter::once(definition).chain(shown(definition).flat_map(with_inner))
}

fn shown(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set())
}

/// The name without the program's: `info`, `simulate-owners`.
fn short_name(page: &clap::Command) -> String {
    let name = file_name(page);
    name.strip_prefix("esker-").unwrap_or(&name).to_string()
}

fn file_name(page: &clap::Command) -> String {
    page.get_display_name().unwrap_or(page.get_name()).replace(' ', "-")
}
