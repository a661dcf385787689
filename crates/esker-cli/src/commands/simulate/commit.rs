//! `esker simulate commit`: what a commit to a container takes on rank 0 of many.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use esker_tools::simulate::{Cost, MOST_RANKS, Stage, commit};
use serde_json::{Value, json};

use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// What a commit to a container takes on the busiest rank, in messages, bytes and memory
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The code that writes containers runs as rank 0, which does what every rank does, gathers what the others have written, and decides.
The other ranks are not there: they would do what it does, and what would come from them comes. A small container is written
to --dir and removed. Each number of ranks has a process of its own, whose memory is what the system says, beyond what there was before
the dataset; it is of this program's build and allocator. A dash is where the system does not tell.

Examples:
  esker simulate commit
  esker simulate commit --ranks 1M
  esker simulate commit --ranks 4k,64k,1M --json")]
pub(super) struct Arguments {
    /// Numbers of ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N,…", default_value = "4096,65536,1M", value_delimiter = ',')]
    #[arg(value_parser = ranks)]
    ranks: Vec<u32>,
    /// What no rank should need more of
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = size)]
    limit: u64,
    /// Directory of the container
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The process of one number of ranks, with the container's path
    #[arg(long, hide = true, value_name = "PATH")]
    here: Option<PathBuf>,
}

fn ranks(text: &str) -> Result<u32, String> {
    let ranks = size(text).ok().and_then(|ranks| u32::try_from(ranks).ok());
    let ranks = ranks.filter(|ranks| (1..=MOST_RANKS).contains(ranks));
    ranks.ok_or_else(|| format!("write a number from 1 to {MOST_RANKS}, as 64, 4k or 1M"))
}

pub(super) fn run(arguments: &Arguments, again: &[OsString], screen: &mut Screen) -> Ended {
    if let Some(path) = &arguments.here {
        let ranks = arguments.ranks.first().copied().unwrap_or(1);
        let stages = commit(ranks, path).map_err(|error| Failure::file(path, error))?;
        json::write(screen, &of_ranks(ranks, &stages))?;
        return Ok(End::Good);
    }
    let mut table = Table::new([
        ("ranks", Side::Right),
        ("stage", Side::Left),
        ("calls", Side::Right),
        ("messages", Side::Right),
        ("bytes given", Side::Right),
        ("bytes got", Side::Right),
        ("memory", Side::Right),
    ]);
    let mut results = Vec::new();
    for ranks in &arguments.ranks {
        let result = apart(*ranks, arguments, again)?;
        for stage in result["stages"].as_array().into_iter().flatten() {
            let number = |name: &str| stage[name].as_u64();
            let shown = |name: &str| number(name).map_or("–".into(), grouped);
            table.row([
                grouped((*ranks).into()),
                stage["stage"].as_str().unwrap_or_default().to_string(),
                shown("calls"),
                shown("messages"),
                shown("bytes_given"),
                shown("bytes_got"),
                number("memory").map_or("–".into(), mebibytes),
            ]);
        }
        results.push(result);
    }
    let most = results.iter().filter_map(|result| result["most_memory"].as_u64()).max();
    let within = most.map(|most| most <= arguments.limit);
    if arguments.json {
        let all = json!({
            "limit": arguments.limit, "most_memory": most, "within_limit": within, "results": results,
        });
        json::write(screen, &all)?;
        return Ok(End::Good);
    }
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    writeln!(screen)?;
    if let (Some(most), Some(within)) = (most, within) {
        let is = if within { "within" } else { "above" };
        let limit = mebibytes(arguments.limit);
        writeln!(screen, "most memory of a rank: {}, {is} the limit of {limit}", mebibytes(most))?;
    }
    Ok(End::Good)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// In a process of its own, whose memory nobody has used before.
fn apart(ranks: u32, arguments: &Arguments, again: &[OsString]) -> Result<Value, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::sentence(format_args!("{error}"));
    let program = match again.split_first() {
        Some((program, _)) => program.clone(),
        None => std::env::current_exe().map_err(|error| fail(&error))?.into(),
    };
    let path = arguments.dir.join(format!("esker-simulated-{}.esk", std::process::id()));
    let mut command = Command::new(program);
    command.args(again.iter().skip(1)).args(["simulate", "commit", "--ranks", &ranks.to_string()]);
    let ended = command.arg("--here").arg(&path).output();
    // What was made is of no use, whatever came of it.
    let _ = std::fs::remove_dir_all(&path);
    let ended = ended.map_err(|error| fail(&error))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(fail(&said.trim().trim_start_matches("esker: ")));
    }
    serde_json::from_slice(&ended.stdout).map_err(|error| fail(&error))
}

fn of_ranks(ranks: u32, stages: &[(Stage, Cost)]) -> Value {
    let one = |(stage, cost): &(Stage, Cost)| {
        json!({
            "stage": stage.to_string(),
            "calls": cost.calls,
            "messages": cost.messages,
            "bytes_given": cost.given,
            "bytes_got": cost.got,
            "memory": cost.memory,
        })
    };
    json!({
        "ranks": ranks,
        "most_memory": stages.iter().filter_map(|(_, cost)| cost.memory).max(),
        "stages": stages.iter().map(one).collect::<Vec<_>>(),
    })
}
