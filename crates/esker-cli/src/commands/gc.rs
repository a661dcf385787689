//! `esker gc`: what no version of a container needs is removed.

use std::io::Write;
use std::path::PathBuf;

use esker::{Collection, GcOptions};
use esker_store::LocalStore;
use serde_json::json;

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, plural};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json, say};

/// Remove what no version of a container needs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What goes: what only versions need that have expired (`esker expire`), what commits that were killed have left, and
logs of sessions that are given up. Readers and writers of everything else notice nothing, and a collection that is
killed leaves every version as it was.

Logs that no version needs may belong to a program that is still writing. They stay, and are told, unless they are
given up: by name, or all of them where nobody writes. Whoever was given up wrongly is told at its next commit, which
fails; it loses what it has not committed, and no version is touched. Not while `esker recover` runs.

Examples:
  esker gc run.esk --dry-run                           what would go, and what would stay
  esker gc run.esk                                     what certainly nobody needs
  esker gc run.esk --abandoned 7-00000000feedbeef      and the logs of this session, which was killed
  esker gc run.esk --all-idle                          nobody is writing")]
pub(super) struct Arguments {
    /// The container
    #[arg(value_name = "RUN.esk")]
    path: PathBuf,
    /// Give up a session, by what the names of its logs begin with
    #[arg(long, value_name = "SESSION")]
    abandoned: Vec<String>,
    /// Nobody is writing: give up all sessions whose logs no version needs
    #[arg(long, conflicts_with = "abandoned")]
    all_idle: bool,
    /// Only say what would be removed
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    let options = GcOptions {
        dry_run: arguments.dry_run,
        abandoned: arguments.abandoned.clone(),
        all_idle: arguments.all_idle,
    };
    let collected = esker::gc(&LocalStore, path, &options);
    let collected = collected.map_err(|error| Failure::file(path, error))?;
    let name = path.display().to_string();
    for note in &collected.notes {
        say(format_args!("esker: {}: {}", printable(&name), printable(note)));
    }
    match arguments.json {
        true => document(&name, &collected, arguments, screen)?,
        false => text(&printable(&name), &collected, arguments, screen)?,
    }
    Ok(Outcome::Good)
}

fn document(
    name: &str,
    collected: &Collection,
    arguments: &Arguments,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let left = collected.left.iter();
    let left = left.map(|left| json!({"session": left.session, "bytes": left.bytes}));
    let files = collected.files.iter().map(|file| file.display().to_string());
    let document = json!({
        "container": name,
        "removed": files.collect::<Vec<_>>(),
        "bytes": collected.bytes,
        "given_up": collected.given_up,
        "left": left.collect::<Vec<_>>(),
        "version": collected.number,
        "notes": collected.notes,
        "dry_run": arguments.dry_run,
    });
    json::write(screen, &document)
}

fn text(
    name: &str,
    collected: &Collection,
    arguments: &Arguments,
    screen: &mut Screen,
) -> std::io::Result<()> {
    let removed = match (collected.files.len(), arguments.dry_run) {
        (0, _) => "there is nothing to remove".to_string(),
        (files, true) => {
            format!("would remove {}, {}", plural(files, "file"), bytes(collected.bytes))
        }
        (files, false) => format!("removed {}, {}", plural(files, "file"), bytes(collected.bytes)),
    };
    writeln!(screen, "{name}: {removed}")?;
    for session in &collected.given_up {
        let would = if arguments.dry_run { "would be given up" } else { "was given up" };
        writeln!(screen, "{name}: session {session} {would}")?;
    }
    for left in &collected.left {
        writeln!(
            screen,
            "{name}: no version needs session {0} ({1}), but it may still be written; if it is not: --abandoned {0}",
            left.session,
            bytes(left.bytes)
        )?;
    }
    Ok(())
}
