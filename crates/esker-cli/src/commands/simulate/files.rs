//! `esker simulate files`: how like the files of encoded patches are.

use std::io::Write;

use esker_tools::simulate::{CutBy, Cuts, Sizes};
use serde_json::{Value, json};

use super::owners::time;
use super::ranks;
use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// How much larger than the mean the largest file of encoded patches would be, by four rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Patches have their order (Morton's), and each file a run of them. Sizes: \"even\", all about the same;
\"flame\", large near a wavy surface; \"random\", from small to a thousand times larger, anywhere. Rules: \"equal
counts\", as many patches in each; \"paper\", that of Fan et al., the next file where the running total is above
what is left over the files left; \"ours\", the least capacity that suffices, found by homes that have a share of
the sizes each; \"optimal\", the same by one who has all. \"memory\" is that of the busiest rank.

Examples:
  esker simulate files
  esker simulate files flame --patches 8M --files 8192 --ranks 1M
  esker simulate files random --files 64 --json")]
pub(super) struct Arguments {
    /// Distributions of sizes (all of them without a name)
    #[arg(value_name = "SIZES", value_parser = sizes)]
    sizes: Vec<Sizes>,
    /// Patches, up to 16M
    #[arg(long, value_name = "N", default_value = "262144", value_parser = size)]
    patches: u64,
    /// Files
    #[arg(long, value_name = "N", default_value = "512", value_parser = size)]
    files: u64,
    /// Ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N", default_value = "4096", value_parser = ranks)]
    ranks: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn sizes(name: &str) -> Result<Sizes, String> {
    let names: Vec<&str> = Sizes::ALL.iter().map(|sizes| sizes.name()).collect();
    let found = Sizes::ALL.into_iter().find(|sizes| sizes.name() == name);
    found.ok_or_else(|| format!("the distributions are {}", names.join(", ")))
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let columns = [
        ("sizes", Side::Left),
        ("rule", Side::Left),
        ("largest / mean", Side::Right),
        ("idle files", Side::Right),
        ("passes", Side::Right),
        ("memory", Side::Right),
        ("time", Side::Right),
    ];
    let mut table = Table::new(columns);
    let mut results = Vec::new();
    let all = if arguments.sizes.is_empty() { &Sizes::ALL[..] } else { &arguments.sizes };
    let Arguments { patches, files, ranks, .. } = *arguments;
    for &sizes in all {
        let cuts = Cuts { sizes, patches, files, ranks };
        for by in cuts.by_all_rules().map_err(Failure::sentence)? {
            table.row([
                sizes.name().to_string(),
                by.rule.to_string(),
                format!("{:.3}", by.over_mean),
                grouped(by.idle),
                grouped(by.passes),
                grouped(by.memory),
                time(by.time),
            ]);
            results.push(result(sizes, &by));
        }
    }
    if arguments.json {
        let all = json!({ "patches": patches, "files": files, "ranks": ranks, "results": results });
        json::write(screen, &all)?;
    } else {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn result(sizes: Sizes, by: &CutBy) -> Value {
    json!({
        "sizes": sizes.name(),
        "rule": by.rule,
        "largest_over_mean": json::float(by.over_mean),
        "idle_files": by.idle,
        "passes": by.passes,
        "memory_bytes": by.memory,
        "seconds": json::float(by.time.as_secs_f64()),
    })
}
