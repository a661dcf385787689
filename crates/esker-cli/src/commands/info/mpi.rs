//! `esker info --mpi`: which MPI a program of Esker's would use here, or why none.

use std::io::{self, Write};
use std::sync::Arc;

use esker_comm::mpi::{self, Launched, MpiInfo};
use esker_comm::{Communicator, CommunicatorExt};
use serde_json::{Value, json};

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::plural;
use crate::terminal::table::{Side, Table, printable};
use crate::terminal::{Screen, json as form};

/// What was found.
struct Found {
    launched: Option<Launched>,
    library: Result<MpiInfo, String>,
    /// Ranks and nodes of MPI's world, when a launcher started this.
    world: Option<(usize, usize)>,
}

/// Tells what was found; of several ranks, one does.
pub(super) fn run(as_json: bool, screen: &mut Screen) -> Ended {
    let launched = mpi::launched();
    // Started by hand, MPI is only looked at: some abort a program that they cannot start in.
    let comm = match (launched, mpi::found()) {
        (Some(_), Some(_)) => Some(esker_comm::auto().map_err(Failure::sentence)?),
        _ => None,
    };
    let world = match &comm {
        Some(comm) => Some(world(comm).map_err(Failure::sentence)?),
        None => None,
    };
    let other = match &comm {
        Some(comm) => comm.rank() > 0,
        None => launched.and_then(|launched| launched.rank).is_some_and(|rank| rank > 0),
    };
    if other {
        return Ok(Outcome::Good);
    }
    let library = mpi::found().ok_or_else(|| mpi::why_not_found().unwrap_or_default());
    let found = Found { launched, library, world };
    match as_json {
        true => form::write(screen, &found.json())?,
        false => found.text(screen)?,
    }
    Ok(Outcome::Good)
}

/// How many ranks there are, and on how many nodes. Collective.
fn world(comm: &Arc<dyn Communicator>) -> esker_comm::Result<(usize, usize)> {
    let first_of_node = comm.split_by_node()?.rank() == 0;
    Ok((comm.size(), comm.sum_u64(first_of_node.into())? as usize))
}

/// Variables of the environment that had a say, with their values.
fn environment() -> Vec<(&'static str, String)> {
    let value = |name| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned()));
    mpi::VARIABLES.into_iter().filter_map(value).collect()
}

impl Found {
    fn text(&self, screen: &mut Screen) -> io::Result<()> {
        let depth = screen.depth;
        let mut table = Table::new([("", Side::Left), ("", Side::Left)]);
        let mut row = |name: &str, value: String| table.row([name.to_string(), value]);
        match &self.library {
            Ok(library) => {
                writeln!(screen, "{}: MPI was found", depth.good("yes"))?;
                // Some libraries give pages of build options after the version.
                let version = library.version.split(['\n', ',']).next().unwrap_or_default();
                row("library", library.library.display().to_string());
                row("version", version.split_whitespace().collect::<Vec<_>>().join(" "));
                row("ABI", library.abi.to_string());
                row(
                    "loaded",
                    match library.was_loaded {
                        true => "it was in the process already".to_string(),
                        false => "by Esker, at run time".to_string(),
                    },
                );
                row(
                    "threads",
                    match library.thread_level {
                        Some(level) => level.to_string(),
                        None => "not asked: MPI is not started (see mpiexec below)".to_string(),
                    },
                );
            }
            Err(why) => {
                writeln!(screen, "{}: MPI was not found", depth.bad("no"))?;
                row("why", printable(why));
                row("so", "ranks are threads of one process (esker demo --ranks 4)".to_string());
                row("help", "ESKER_MPI_LIB names the library to load".to_string());
            }
        }
        match self.launched {
            Some(Launched { by, ranks, .. }) => {
                let ranks = ranks.map_or(String::new(), |n| format!(", {}", plural(n, "rank")));
                row("launcher", format!("{by}{ranks}"));
            }
            None => row("launcher", "none: started by hand".to_string()),
        }
        if let Some((ranks, nodes)) = self.world {
            row("world", format!("{} on {}", plural(ranks, "rank"), plural(nodes, "node")));
        }
        for (i, (name, value)) in environment().into_iter().enumerate() {
            row(if i == 0 { "environment" } else { "" }, format!("{name}={value}"));
        }
        if self.library.is_ok() && self.launched.is_none() {
            row("try", "mpiexec -n 4 esker info --mpi".to_string());
        }
        // A path or a reason that is cut is of no use.
        table.write(screen, depth, None)
    }

    fn json(&self) -> Value {
        let launcher = self.launched.map(|launched| {
            json!({
                "family": launched.by.to_string(),
                "rank": launched.rank,
                "ranks": launched.ranks,
            })
        });
        let library = self.library.as_ref().ok().map(|library| {
            json!({
                "path": library.library.display().to_string(),
                "version": library.version,
                "abi": library.abi.to_string(),
                "was_loaded": library.was_loaded,
                "thread_level": library.thread_level.map(|level| level.to_string()),
            })
        });
        let environment: serde_json::Map<String, Value> = environment()
            .into_iter()
            .map(|(name, value)| (name.to_string(), Value::from(value)))
            .collect();
        json!({
            "found": self.library.is_ok(),
            "why_not": self.library.as_ref().err(),
            "library": library,
            "launcher": launcher,
            "world": self.world.map(|(ranks, nodes)| json!({"ranks": ranks, "nodes": nodes})),
            "environment": environment,
        })
    }
}
