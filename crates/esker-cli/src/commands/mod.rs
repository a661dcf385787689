//! The commands, one file each: what a command takes, what it says of itself, what it does.

mod adjoint;
mod amr;
mod bench;
mod check;
mod chunking;
mod completions;
mod copy;
mod demo;
mod diff;
mod dump;
mod expire;
mod gc;
// `gen` is a keyword of the language.
mod generate;
mod graph;
mod history;
mod info;
mod log;
mod man;
mod mesh;
mod offsets;
mod opening;
mod ranks;
mod recover;
mod refs;
mod replay;
mod simulate;
mod tag;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::failure::{Ended, Failure};
use crate::signals;
use crate::terminal::colour::Colour;
use crate::terminal::{Screen, say};

/// Look at, make, check, copy and compare classic netCDF files.
#[derive(Debug, Parser)]
#[command(name = "esker", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = AFTER_HELP)]
struct Esker {
    /// When to use colours: auto, always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true, display_order = 900)]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 all is well, 1 the files differ or are invalid, 2 wrong usage or failure.

Examples:
  esker demo                      a first look at what this does
  esker info run.nc --stats       what is in a file, with its values' range
  esker dump -v lat,lon run.nc    values as CDL
  esker check *.nc                are these files sound?

Reads and writes CDF-1 (classic), CDF-2 (64-bit offset) and CDF-5 (64-bit data) files.";

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Arguments),
    Dump(dump::Arguments),
    Gen(generate::Arguments),
    Check(check::Arguments),
    Offsets(offsets::Arguments),
    Copy(copy::Arguments),
    Refs(refs::Arguments),
    Replay(replay::Arguments),
    Recover(recover::Arguments),
    Log(log::Arguments),
    Tag(tag::Arguments),
    Expire(expire::Arguments),
    Gc(gc::Arguments),
    Diff(diff::Arguments),
    Graph(graph::Arguments),
    Mesh(mesh::Arguments),
    Amr(amr::Arguments),
    Adjoint(adjoint::Arguments),
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    Simulate(simulate::Arguments),
    BenchWorker(bench::WorkerArguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Whether all ranks that a launcher started have a part in it; what is not parallel is
    /// left to rank 0. Every command is named here: one that is parallel and is not said to be
    /// would wait for ranks that have left.
    fn is_parallel(&self) -> bool {
        match self {
            // Started by `esker bench`, under mpiexec where ranks are MPI's.
            Command::BenchWorker(_) | Command::Demo(_) | Command::Replay(_) => true,
            Command::Info(arguments) => arguments.is_parallel(),
            Command::Copy(arguments) => arguments.is_parallel(),
            Command::Mesh(arguments) => arguments.is_parallel(),
            Command::Amr(arguments) => arguments.is_parallel(),
            Command::Dump(_)
            | Command::Gen(_)
            | Command::Check(_)
            | Command::Offsets(_)
            | Command::Refs(_)
            | Command::Recover(_)
            | Command::Log(_)
            | Command::Tag(_)
            | Command::Expire(_)
            | Command::Gc(_)
            | Command::Diff(_)
            | Command::Graph(_)
            | Command::Adjoint(_)
            | Command::Bench(_)
            | Command::Simulate(_)
            | Command::Completions(_)
            | Command::Man(_) => false,
        }
    }
}

/// The definition of the whole command, from which help, man pages and completions come.
fn definition() -> clap::Command {
    Esker::command()
}

/// Runs the command that the arguments ask for; gives its exit code.
pub(crate) fn run(arguments: Vec<OsString>, again: &[OsString]) -> u8 {
    let command = definition().color(help_colour(&arguments));
    let help = help_of(&arguments);
    let parsed = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Esker::from_arg_matches(&matches));
    let esker = match parsed {
        Ok(esker) => esker,
        // Rank 0 says it, and its exit code is the job's. One from here might end the job before.
        Err(_) if ranks::left_to_rank_0() => return 0,
        Err(error) => return not_parsed(&error, &help),
    };
    if !esker.command.is_parallel() && ranks::left_to_rank_0() {
        return 0;
    }
    signals::listen();
    let mut screen = Screen::new(esker.color);
    let ended = dispatch(esker.command, again, &mut screen).and_then(|outcome| {
        screen.flush()?;
        Ok(outcome)
    });
    match ended {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            // What was written before the failure still belongs to the reader.
            let _ = screen.flush();
            match failure {
                Failure::ClosedPipe => 0,
                Failure::Sentence(sentence) => {
                    say(format_args!("esker: {sentence}"));
                    2
                }
            }
        }
    }
}

fn dispatch(command: Command, again: &[OsString], screen: &mut Screen) -> Ended {
    match command {
        Command::Info(arguments) => info::run(&arguments, screen),
        Command::Dump(arguments) => dump::run(&arguments, screen),
        Command::Gen(arguments) => generate::run(&arguments, screen),
        Command::Check(arguments) => check::run(&arguments, screen),
        Command::Offsets(arguments) => offsets::run(&arguments, screen),
        Command::Copy(arguments) => copy::run(&arguments, screen),
        Command::Refs(arguments) => refs::run(&arguments, screen),
        Command::Replay(arguments) => replay::run(&arguments, screen),
        Command::Recover(arguments) => recover::run(&arguments, screen),
        Command::Log(arguments) => log::run(&arguments, screen),
        Command::Tag(arguments) => tag::run(&arguments, screen),
        Command::Expire(arguments) => expire::run(&arguments, screen),
        Command::Gc(arguments) => gc::run(&arguments, screen),
        Command::Diff(arguments) => diff::run(&arguments, screen),
        Command::Graph(arguments) => graph::run(&arguments, screen),
        Command::Mesh(arguments) => mesh::run(&arguments, screen),
        Command::Amr(arguments) => amr::run(&arguments, screen),
        Command::Adjoint(arguments) => adjoint::run(&arguments, screen),
        Command::Demo(arguments) => demo::run(&arguments, screen),
        Command::Bench(arguments) => bench::run(&arguments, again, screen),
        Command::Simulate(arguments) => simulate::run(&arguments, again, screen),
        Command::BenchWorker(arguments) => bench::work(&arguments, screen),
        Command::Completions(arguments) => completions::run(&arguments, screen),
        Command::Man(arguments) => man::run(&arguments, screen),
    }
}

/// Help and the version go to standard output; a wrong call is one line on standard error.
fn not_parsed(error: &clap::Error, help: &str) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => 2,
            _ => 0,
        },
        // `esker` alone: the caller wants to know what there is.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            say(error.render());
            2
        }
        _ => {
            say(format_args!("esker: {} (see `{help}`)", one_line(&error.render().to_string())));
            2
        }
    }
}

/// clap's explanation as one line: what is wrong, and its tip.
fn one_line(explanation: &str) -> String {
    let mut sentence = String::new();
    for line in explanation.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("Usage: ") || line.starts_with("For more information") {
            continue;
        } else if let Some(fault) = line.strip_prefix("error: ") {
            sentence.push_str(fault);
        } else if let Some(tip) = line.strip_prefix("tip: ") {
            sentence.push_str(&format!("; {tip}"));
        } else {
            sentence.push_str(&format!(" {line}"));
        }
    }
    sentence
}

/// How to read on after a wrong call of this command.
fn help_of(arguments: &[OsString]) -> String {
    let definition = definition();
    let mut words = arguments.iter().skip(1).filter_map(|a| a.to_str());
    match words.find_map(|word| definition.find_subcommand(word)) {
        Some(command) => match words.find_map(|word| command.find_subcommand(word)) {
            Some(inner) => format!("esker {} {} --help", command.get_name(), inner.get_name()),
            None => format!("esker {} --help", command.get_name()),
        },
        None => "esker --help".to_string(),
    }
}

/// The wish for colour has to be known before clap prints its help, thus before it parses.
fn help_colour(arguments: &[OsString]) -> ColorChoice {
    let mut words = arguments.iter().filter_map(|a| a.to_str());
    while let Some(word) = words.next() {
        let wish = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        match wish {
            Some("never") => return ColorChoice::Never,
            Some("always") => return ColorChoice::Always,
            _ => {}
        }
    }
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    if plain || !std::io::stdout().is_terminal() { ColorChoice::Never } else { ColorChoice::Auto }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        let definition = definition();
        let commands = definition.get_subcommands();
        for command in commands.flat_map(|c| std::iter::once(c).chain(c.get_subcommands())) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{} has no example", command.get_name());
        }
    }
}
