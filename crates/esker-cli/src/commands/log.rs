//! `esker log`: what happened to a container, newest first.

use std::io::{self, Write};
use std::path::PathBuf;

use esker::{VersionFacts, VersionState};
use esker_store::LocalStore;
use serde_json::{Value, json};

use super::history::date;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, grouped};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// Show the versions of a container, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every sync and close that has something new makes a version; so does a tag. `new` are the bytes of values
that came with it, and `kept` says whether it was promised to survive a loss of power (synced) or not
(closed). Logs are not read, so that it is quick, however much there is.

Exit codes: 0 all versions look as they were written, 1 one of them is damaged or not there, 2 it cannot be
told.

Examples:
  esker log run.esk                 all versions
  esker log -n 5 run.esk            the last five
  esker log run.esk@v1              the one with this name, and those before it
  esker log --json run.esk | jq '.versions[] | select(.message != \"\")'")]
pub(super) struct Arguments {
    /// The container, or one of its versions
    #[arg(value_name = "RUN.esk[@REF]")]
    path: PathBuf,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let most = arguments.number.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let versions = esker::versions(&LocalStore, &arguments.path, most);
    let versions = versions.map_err(|error| Failure::file(&arguments.path, error))?;
    if arguments.json {
        let document = json!({
            "container": arguments.path.display().to_string(),
            "versions": versions.iter().map(document).collect::<Vec<_>>(),
        });
        json::write(screen, &document)?;
    } else {
        text(&versions, screen)?;
    }
    let is_damaged = |one: &VersionFacts| matches!(one.state, VersionState::Damaged(_));
    Ok(if versions.iter().any(is_damaged) { Outcome::Bad } else { Outcome::Good })
}

fn text(versions: &[VersionFacts], screen: &mut Screen) -> io::Result<()> {
    let mut table = Table::new([
        ("version", Side::Right),
        ("committed", Side::Left),
        ("records", Side::Right),
        ("new", Side::Right),
        ("kept", Side::Left),
        ("message", Side::Left),
    ]);
    for one in versions {
        let kept = match (&one.state, one.durable) {
            (VersionState::Open, Some(true)) => "synced",
            (VersionState::Open, Some(false)) => "closed",
            (VersionState::Open, None) => "",
            (VersionState::Expired, _) => "expired",
            (VersionState::GivenUp, _) => "given up",
            (VersionState::Damaged(_), _) => "damaged",
        };
        table.row([
            one.number.to_string(),
            one.time.map(when).unwrap_or_default(),
            one.records.map(grouped).unwrap_or_default(),
            one.new_bytes.map(bytes).unwrap_or_default(),
            kept.to_string(),
            said(one),
        ]);
    }
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    for one in versions {
        if let VersionState::Damaged(why) = &one.state {
            let what = format!("version {}: {}", one.number, esker_text::shown(why));
            writeln!(screen, "{}", depth.bad(what))?;
        }
    }
    Ok(())
}

/// Tags in brackets, the message, and the names that it gave.
fn said(one: &VersionFacts) -> String {
    let mut words = Vec::new();
    if !one.tags.is_empty() {
        words.push(format!("[{}]", one.tags.join(", ")));
    }
    if !one.message.is_empty() {
        words.push(one.message.clone());
    }
    words.extend(one.gives.iter().map(|tag| format!("(tag {} = {})", tag.name, tag.version)));
    words.join(" ")
}

/// The time in UTC, without what a table has no room for.
fn when(seconds: i64) -> String {
    match u64::try_from(seconds) {
        Ok(seconds) => date(seconds),
        Err(_) => format!("{seconds} s"),
    }
}

fn document(one: &VersionFacts) -> Value {
    let (state, why) = match &one.state {
        VersionState::Open => ("open", None),
        VersionState::Expired => ("expired", None),
        VersionState::GivenUp => ("given up", None),
        VersionState::Damaged(why) => ("damaged", Some(why)),
    };
    let gives = one.gives.iter().map(|tag| json!({"name": tag.name, "version": tag.version}));
    json!({
        "version": one.number,
        "state": state,
        "damage": why,
        "time": one.time,
        "committed": one.time.map(when),
        "message": one.message,
        "tags": one.tags,
        "gives": gives.collect::<Vec<_>>(),
        "records": one.records,
        "new_bytes": one.new_bytes,
        "synced": one.durable,
    })
}
