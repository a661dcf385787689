//! `esker recover`: finish what a session that died has left in its logs.

use std::io::Write;
use std::path::{Path, PathBuf};

use esker::{FillMode, RecoverOptions, Recovery};
use serde_json::json;

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json};

/// Finish a file whose writer died, from the logs in its burst buffer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks where nc_burst_buf_dirname in PNETCDF_HINTS says (by default here), and beside the file.
What is damaged is told with its place, and the rest is replayed. The logs are removed when
everything is in the file. Can be done again.

Exit codes: 0 everything is in the file, 1 something is missing or damaged, 2 it cannot be told.

Examples:
  esker recover run.nc --dir /scratch/bb      replay the logs in a burst buffer
  esker recover run.nc --dir n1 --dir n2      of several nodes, brought together
  esker recover run.nc --look                 only tell what there is")]
pub(super) struct Arguments {
    /// The file
    file: PathBuf,
    /// A directory with logs; may be given several times
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// Only look, and change nothing
    #[arg(long)]
    look: bool,
    /// Leave the logs where they are
    #[arg(long)]
    keep: bool,
    /// Do not write fill values to new records
    #[arg(long)]
    no_fill: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    // A classic file is never a directory, and a container always is.
    if arguments.file.is_dir() {
        return container(arguments, screen);
    }
    let mut options = RecoverOptions::new().keep(arguments.keep).look_only(arguments.look);
    if arguments.no_fill {
        options = options.fill(FillMode::NoFill);
    }
    for dir in &arguments.dir {
        if !dir.is_dir() {
            return Err(Failure::file(dir, "there is no such directory"));
        }
        options = options.dir(dir);
    }
    let path = &arguments.file;
    let recovery = esker::recover(path, &options).map_err(|e| Failure::file(path, e))?;
    match arguments.json {
        true => json::write(screen, &document(path, &recovery))?,
        false => text(arguments, &recovery, screen)?,
    }
    Ok(if recovery.is_complete() { Outcome::Good } else { Outcome::Bad })
}

/// Commits what is whole in the logs of a container.
fn container(arguments: &Arguments, _: &mut Screen) -> Ended {
    Err(Failure::file(&arguments.file, "containers are not recovered by this version"))
}

fn document(path: &Path, recovery: &Recovery) -> serde_json::Value {
    let damage = |d: &esker::LogDamage| json!({"rank": d.rank, "what": d.what});
    json!({
        "file": path.display().to_string(),
        "complete": recovery.is_complete(),
        "logs": recovery.logs,
        "ranks": recovery.ranks,
        "missing_ranks": recovery.missing,
        "entries": recovery.entries,
        "records": recovery.records,
        "damages": recovery.damages.iter().map(damage).collect::<Vec<_>>(),
        "removed": recovery.removed,
    })
}

fn text(arguments: &Arguments, recovery: &Recovery, screen: &mut Screen) -> Result<(), Failure> {
    let name = arguments.file.display();
    let Recovery { logs, ranks, missing, entries, records, damages, removed } = recovery;
    let verb = if arguments.look { "to be replayed" } else { "replayed" };
    match (logs, entries) {
        (0, _) => writeln!(screen, "{name}: no logs found")?,
        (_, 0) => writeln!(screen, "{name}: {logs} logs found, everything is in the file")?,
        _ => {
            let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            let (writes, logs) = (count(*entries, "write"), count(*logs, "log"));
            writeln!(screen, "{name}: {writes} of {logs} {verb}, {}", count(*records, "record"))?;
        }
    }
    if !missing.is_empty() {
        let list: Vec<String> = missing.iter().map(u32::to_string).collect();
        let list = list.join(", ");
        writeln!(
            screen,
            "missing: the logs of ranks {list} of {ranks}; name their directory with --dir"
        )?;
    }
    for damage in damages {
        writeln!(screen, "damaged: rank {}: {}", damage.rank, damage.what)?;
    }
    if *removed {
        writeln!(screen, "the logs were removed")?;
    }
    Ok(())
}
