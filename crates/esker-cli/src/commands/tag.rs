//! `esker tag`: names for versions of a container.

use std::io::Write;
use std::path::PathBuf;

use esker::Tag;
use esker_store::LocalStore;
use serde_json::json;

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::table::{Side, Table, printable};
use crate::terminal::{Screen, json};

/// Give a version of a container a name for ever, or list the names
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A tag stays what it is, and its version cannot expire. It is a version of its own, with the values of the one
before it; programs that write to the container at the same time are not disturbed. `RUN.esk@NAME` is the
version wherever a path is read.

Examples:
  esker tag run.esk v1                          name the newest version
  esker tag run.esk paper 7 -m 'figures 3, 4'   name version 7, and say why
  esker tag run.esk                             what has a name
  esker dump run.esk@paper                      use it")]
pub(super) struct Arguments {
    /// The container
    #[arg(value_name = "RUN.esk")]
    path: PathBuf,
    /// The name: 1 to 64 letters, digits, '_', '-' and '.', of which the first is a letter
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The version: a number, or a tag that it has [default: the newest]
    #[arg(value_name = "REF", requires = "name")]
    version: Option<String>,
    /// What to say of it in `esker log`
    #[arg(
        short,
        long,
        value_name = "TEXT",
        requires = "name",
        default_value = "",
        hide_default_value = true
    )]
    message: String,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    let fail = |error: esker::Error| Failure::file(path, error);
    let Some(name) = &arguments.name else {
        return list(&esker::tags(&LocalStore, path).map_err(fail)?, arguments, screen);
    };
    let version = arguments.version.as_ref();
    let version = version.map(|version| esker::version_named(&LocalStore, path, version));
    let version = version.transpose().map_err(fail)?;
    let tag = esker::tag(&LocalStore, path, name, version, &arguments.message).map_err(fail)?;
    if arguments.json {
        let container = path.display().to_string();
        json::write(
            screen,
            &json!({"container": container, "name": tag.name, "version": tag.version}),
        )?;
    } else {
        let name = printable(&path.display().to_string());
        writeln!(screen, "{name}: version {} is {}", tag.version, tag.name)?;
    }
    Ok(Outcome::Good)
}

fn list(tags: &[Tag], arguments: &Arguments, screen: &mut Screen) -> Ended {
    if arguments.json {
        let tags = tags.iter().map(|tag| json!({"name": tag.name, "version": tag.version}));
        let document = json!({
            "container": arguments.path.display().to_string(),
            "tags": tags.collect::<Vec<_>>(),
        });
        json::write(screen, &document)?;
        return Ok(Outcome::Good);
    }
    let mut table = Table::new([("tag", Side::Left), ("version", Side::Right)]);
    for tag in tags {
        table.row([tag.name.clone(), tag.version.to_string()]);
    }
    if !table.is_empty() {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
    }
    Ok(Outcome::Good)
}
