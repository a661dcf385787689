//! `esker recover` of a container.

use std::io::{self, Write};
use std::sync::Arc;

use esker::{ContainerRecoverOptions, ContainerRecovery, LogFault, LostVersion};
use esker_store::{LocalStore, Store};
use serde_json::{Value, json};

use super::Arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, plural};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let options =
        ContainerRecoverOptions { dry_run: arguments.dry_run, superseded: arguments.superseded };
    let mut bar = screen.bar("reading the logs");
    let mut progress = |done, total| bar.update(done, total);
    let recovered = esker::recover_container(&store, &arguments.path, options, &mut progress);
    drop(bar);
    let recovery = recovered.map_err(|error| Failure::file(&arguments.path, error))?;
    match arguments.json {
        true => json::write(screen, &document(arguments, &recovery))?,
        false => text(arguments, screen, &recovery)?,
    }
    Ok(if recovery.is_loss() { Outcome::Bad } else { Outcome::Good })
}

fn text(
    arguments: &Arguments,
    screen: &mut Screen,
    recovery: &ContainerRecovery,
) -> io::Result<()> {
    let name = printable(&arguments.path.display().to_string());
    let depth = screen.depth;
    if recovery.mark {
        let did = if arguments.dry_run { "would be" } else { "was" };
        writeln!(screen, "{name}: esker.json was damaged and {did} written anew")?;
    }
    if recovery.promises {
        let did = if arguments.dry_run { "would be" } else { "was" };
        writeln!(screen, "{name}: its file of promises was damaged and {did} written anew")?;
    }
    for lost in &recovery.lost_versions {
        let was = match lost.synced {
            Some(true) => ", which had been synced",
            Some(false) => ", which had been closed, not synced",
            None => "",
        };
        let what = printable(&lost.what);
        let (word, rest) = match &lost.lacks {
            Some(lacks) => (depth.bad("lost"), format!("what is missing: {}", printable(lacks))),
            None => (depth.good("found"), "everything that it had is there".to_string()),
        };
        writeln!(screen, "{name}: {word}: version {}{was}: {what}; {rest}", lost.version)?;
    }
    for fault in &recovery.faults {
        let kind = match fault.committed {
            true => depth.bad("lost"),
            false => depth.faint("not whole"),
        };
        writeln!(screen, "{name}: {kind}: {}", printable(&fault.to_string()))?;
    }
    for torn in &recovery.torn {
        writeln!(screen, "{name}: {}: {}", depth.faint("not whole"), printable(&torn.to_string()))?;
    }
    for session in &recovery.superseded {
        let writes = plural(session.entries as usize, "write");
        writeln!(
            screen,
            "{name}: passed over: {writes} of session {} ({}), which others have committed after \
             (--superseded takes them in)",
            session.session,
            bytes(session.bytes)
        )?;
    }
    for log in &recovery.recovered {
        let writes = plural(log.entries as usize, "write");
        let of = format!("of rank {} ({}), never committed", log.rank, bytes(log.bytes));
        writeln!(screen, "{name}: {}: {writes} {of}", depth.good("found"))?;
    }
    let (before, after) = recovery.records;
    let records = match before == after {
        true => plural(after as usize, "record"),
        false => format!("{} instead of {before}", plural(after as usize, "record")),
    };
    match (recovery.made, arguments.dry_run) {
        (None, _) => writeln!(screen, "{name}: version {} has everything", recovery.found),
        (Some(version), true) => {
            writeln!(screen, "{name}: version {version} would be made, with {records}")
        }
        (Some(version), false) => {
            writeln!(screen, "{name}: made version {version}, with {records}")
        }
    }
}

fn document(arguments: &Arguments, recovery: &ContainerRecovery) -> Value {
    let recovered = recovery.recovered.iter().map(|log| {
        json!({
            "session": log.session,
            "rank": log.rank,
            "writes": log.entries,
            "bytes": log.bytes,
        })
    });
    let torn = recovery.torn.iter().map(|torn| {
        json!({
            "rank": torn.rank,
            "file": torn.file.display().to_string(),
            "offset": torn.offset,
            "metadata_bytes": torn.metadata,
            "data_bytes": torn.payload,
        })
    });
    let superseded = recovery.superseded.iter().map(|session| {
        json!({"session": session.session, "writes": session.entries, "bytes": session.bytes})
    });
    json!({
        "container": arguments.path.display().to_string(),
        "dry_run": arguments.dry_run,
        "found_version": recovery.found,
        "made_version": recovery.made,
        "records_before": recovery.records.0,
        "records": recovery.records.1,
        "recovered": recovered.collect::<Vec<_>>(),
        "faults": recovery.faults.iter().map(fault).collect::<Vec<_>>(),
        "torn": torn.collect::<Vec<_>>(),
        "superseded": superseded.collect::<Vec<_>>(),
        "lost_versions": recovery.lost_versions.iter().map(lost_version).collect::<Vec<_>>(),
        "promises_damaged": recovery.promises,
        "mark_damaged": recovery.mark,
    })
}

fn lost_version(lost: &LostVersion) -> Value {
    json!({
        "version": lost.version,
        "sentence": lost.what,
        "synced": lost.synced,
        "lacks": lost.lacks,
    })
}

fn fault(fault: &LogFault) -> Value {
    json!({
        "rank": fault.rank,
        "file": fault.file.display().to_string(),
        "offset": fault.offset,
        "variable": fault.variable,
        "records": fault.records.map(|(first, last)| [first, last]),
        "bytes": fault.bytes,
        "committed": fault.committed,
        "sentence": fault.what,
    })
}
