//! `esker recover` of a classic file: what a session that died has left in its burst buffer.

use std::io::Write;
use std::path::{Path, PathBuf};

use esker::{FillMode, RecoverOptions, Recovery};
use esker_store::Leftover;
use esker_text::{sentence, shown_path};
use serde_json::json;

use super::Arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::{Screen, json};

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let mut options = RecoverOptions::new().keep(arguments.keep).look_only(arguments.dry_run);
    if arguments.no_fill {
        options = options.fill(FillMode::NoFill);
    }
    for dir in &arguments.dir {
        if !dir.is_dir() {
            return Err(Failure::file(dir, "there is no such directory"));
        }
        options = options.dir(dir);
    }
    let path = &arguments.path;
    let recovery = esker::recover(path, &options).map_err(|e| Failure::file(path, e))?;
    match arguments.json {
        true => json::write(screen, &document(path, &recovery))?,
        false => text(arguments, &recovery, screen)?,
    }
    Ok(if recovery.is_complete() { Outcome::Good } else { Outcome::Bad })
}

fn document(path: &Path, recovery: &Recovery) -> serde_json::Value {
    let damage = |d: &esker::LogDamage| json!({"rank": d.rank, "what": d.what});
    let name = |path: &Path| path.display().to_string();
    let subfile = |(path, why): &(PathBuf, String)| json!({"file": name(path), "what": why});
    let leftover = |left: &Leftover| json!({"file": name(&left.path), "process": left.process, "running": left.is_running});
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
        "named_subfiles": recovery.named.iter().map(|path| name(path)).collect::<Vec<_>>(),
        "leftovers": recovery.leftovers.iter().map(leftover).collect::<Vec<_>>(),
        "subfiles": recovery.subfiles.iter().map(subfile).collect::<Vec<_>>(),
    })
}

fn text(arguments: &Arguments, recovery: &Recovery, screen: &mut Screen) -> Result<(), Failure> {
    let name = shown_path(&arguments.path);
    let Recovery {
        logs, ranks, missing, entries, records, damages, removed, named, subfiles, ..
    } = recovery;
    let verb = if arguments.dry_run { "to be replayed" } else { "replayed" };
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
        writeln!(screen, "damaged: rank {}: {}", damage.rank, sentence(&damage.what))?;
    }
    for path in named {
        let did = if arguments.dry_run { "is to get" } else { "got" };
        writeln!(screen, "named: sub-file {} {did} its name", shown_path(path))?;
    }
    for (path, why) in subfiles {
        writeln!(screen, "missing: sub-file {}: {}", shown_path(path), sentence(why))?;
    }
    for left in &recovery.leftovers {
        writeln!(screen, "beside: {}: {left}", shown_path(&left.path))?;
    }
    if *removed {
        writeln!(screen, "the logs were removed")?;
    }
    Ok(())
}
