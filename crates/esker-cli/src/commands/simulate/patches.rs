//! `esker simulate patches`: how evenly patches are shared, and how much moves for that.

use std::io::Write;

use esker_tools::simulate::{Blocks, Dealt};
use serde_json::{Value, json};

use super::owners::time;
use super::ranks;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// Which rank would get which patch: numbers of patches and moved bytes, by three rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ranks stand in a grid of three dimensions, each with a cube of --block cells in each; patches are cubes of
--patch cells. Rules: \"greedy\", the rank that has most of a patch gets it; \"paper\", that of Fan et al.
(patches that one rank has whole stay, others go where too few are); \"ours\", an auction at homes that gives
every rank as many patches, rounded down or up. \"moved\" is the share of the bytes that are not with their
owner, \"memory\" what choosing takes on the busiest rank, \"time\" that of all homes, which share it in a real write.

Examples:
  esker simulate patches                          4,096 ranks, the paper's case: 1600 cells a side
  esker simulate patches --ranks 512,4096,32k
  esker simulate patches --ranks 1M --block 127   1,048,576 ranks and 8 million patches
  esker simulate patches --block 64 --patch 64 --json")]
pub(super) struct Arguments {
    /// Numbers of ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N,…", default_value = "4096", value_delimiter = ',', value_parser = ranks)]
    ranks: Vec<u32>,
    /// Cells of a rank in each dimension
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    block: u64,
    /// Cells of a patch in each dimension
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    patch: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let columns = [
        ("ranks", Side::Right),
        ("patches", Side::Right),
        ("rule", Side::Left),
        ("homes", Side::Right),
        ("least", Side::Right),
        ("most", Side::Right),
        ("moved", Side::Right),
        ("memory", Side::Right),
        ("time", Side::Right),
    ];
    let mut table = Table::new(columns);
    let mut results = Vec::new();
    for &ranks in &arguments.ranks {
        let blocks = Blocks { ranks, block: arguments.block, patch: arguments.patch };
        let deal = blocks.deal().map_err(Failure::sentence)?;
        for dealt in &deal.rules {
            table.row([
                grouped(ranks.into()),
                grouped(deal.patches),
                dealt.rule.to_string(),
                grouped(dealt.homes),
                grouped(dealt.least),
                grouped(dealt.most),
                format!("{:.1}%", 100.0 * dealt.moved),
                grouped(dealt.memory),
                time(dealt.time),
            ]);
            results.push(result(ranks, deal.patches, deal.accesses, dealt));
        }
    }
    if arguments.json {
        let Arguments { block, patch, .. } = *arguments;
        let all = json!({ "block": block, "patch": patch, "results": results });
        json::write(screen, &all)?;
    } else {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn result(ranks: u32, patches: u64, accesses: u64, dealt: &Dealt) -> Value {
    json!({
        "ranks": ranks,
        "patches": patches,
        "accesses": accesses,
        "rule": dealt.rule,
        "homes": dealt.homes,
        "least_patches": dealt.least,
        "most_patches": dealt.most,
        "moved_share": json::float(dealt.moved),
        "memory_bytes": dealt.memory,
        "seconds": json::float(dealt.time.as_secs_f64()),
    })
}
