//! `esker simulate definitions`: what merging the definitions of many ranks takes.

use std::io::Write;

use esker_tools::simulate::{Definitions, MOST_RANKS, Merged, Road, Sharing};
use serde_json::{Value, json};

use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// What a rank has to hold, and how often it talks, to merge everyone's definitions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each rank defines --per-rank objects: each its own, the same in groups of --group neighbours, or all the
same. Roads: \"tree\", up a binary tree to rank 0, which tells everyone everything (what enddef does);
\"straight\", each object to the rank that the hash of its name says; \"halving\", there in as many steps as the ranks have
doublings, in which equal objects become one on the way. \"most held\" is what the rank that holds most
has at once, in objects and in bytes.

Examples:
  esker simulate definitions
  esker simulate definitions --ranks 1M --per-rank 4
  esker simulate definitions --ranks 65536 --group 512 --json")]
pub(super) struct Arguments {
    /// Ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N", default_value = "4096", value_parser = size)]
    ranks: u64,
    /// Objects that each rank defines
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=4096))]
    per_rank: u32,
    /// Neighbours that define the same
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..))]
    group: u32,
    /// Bytes of an object in the header
    #[arg(long, value_name = "BYTES", default_value = "96", value_parser = size)]
    bytes: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let ranks =
        u32::try_from(arguments.ranks).ok().filter(|ranks| (1..=MOST_RANKS).contains(ranks));
    let Some(ranks) = ranks else {
        return Err(Failure::sentence(format!("--ranks may be 1 to {MOST_RANKS}")));
    };
    let mut table = Table::new([
        ("definitions", Side::Left),
        ("objects", Side::Right),
        ("road", Side::Left),
        ("rounds", Side::Right),
        ("most held", Side::Right),
        ("bytes", Side::Right),
        ("messages of a rank", Side::Right),
        ("objects sent", Side::Right),
    ]);
    let mut results = Vec::new();
    for sharing in [Sharing::Own, Sharing::Groups(arguments.group), Sharing::All] {
        let definitions = Definitions { ranks, per_rank: arguments.per_rank, sharing };
        let mut bar = screen.bar(sharing.to_string()).counting("rounds");
        let merged = definitions.count(&mut |done, total| bar.update(done, total));
        drop(bar);
        let merged = merged.ok_or_else(|| {
            Failure::sentence("ranks and objects are more than can be counted here".to_string())
        })?;
        for (name, road) in roads(&merged) {
            table.row([
                sharing.to_string(),
                grouped(merged.objects),
                name.to_string(),
                grouped(road.rounds),
                grouped(road.most_held),
                grouped(road.most_held.saturating_mul(arguments.bytes)),
                grouped(road.most_messages),
                grouped(road.sent),
            ]);
        }
        results.push(result(&sharing, &merged, arguments.bytes));
    }
    if arguments.json {
        let Arguments { per_rank, bytes, .. } = *arguments;
        let all = json!({
            "ranks": ranks, "per_rank": per_rank, "bytes_of_object": bytes, "results": results,
        });
        json::write(screen, &all)?;
    } else {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn roads(merged: &Merged) -> [(&'static str, Road); 3] {
    [("tree", merged.tree), ("straight", merged.straight), ("halving", merged.halving)]
}

fn result(sharing: &Sharing, merged: &Merged, bytes: u64) -> Value {
    let road = |(name, road): (&str, Road)| {
        json!({
            "road": name,
            "rounds": road.rounds,
            "most_held": road.most_held,
            "most_held_bytes": road.most_held.saturating_mul(bytes),
            "most_messages": road.most_messages,
            "sent": road.sent,
        })
    };
    json!({
        "definitions": sharing.to_string(),
        "objects": merged.objects,
        "roads": roads(merged).map(road),
    })
}
