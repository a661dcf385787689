//! `esker simulate exchange`: how many messages a collective write takes.

use std::io::Write;

use esker_tools::simulate::{Counted, Exchange, MOST_RANKS, Sent, Share};
use serde_json::{Value, json};

use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// Messages and bytes of a collective write over windows, by each of its roads
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is cut into windows; in a round every aggregator has one, and gets what all ranks have of
it. Roads: \"ranks\", a message from every rank that has something to every owner; \"node memory\",
windows in memory that the ranks of a node share, so that only other nodes' ranks send; \"gathered\",
with one message for each pair of nodes, which couriers pack and hand out (esker_gather_nodes). Each rank has
--bytes of the file: \"contiguous\" in one stretch, \"strided\" in transfers of --transfer bytes, all ranks in turn.

Examples:
  esker simulate exchange
  esker simulate exchange --ranks 1M --nodes 8k --bytes 1M
  esker simulate exchange --ranks 4096 --nodes 64 --aggregators 2 --window 16M --json")]
pub(super) struct Arguments {
    /// Ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N", default_value = "4096", value_parser = size)]
    ranks: u64,
    /// Nodes that they are on, evenly, neighbours together
    #[arg(long, value_name = "N", default_value = "64", value_parser = size)]
    nodes: u64,
    /// Ranks of a node that own windows
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u64).range(1..))]
    aggregators: u64,
    /// Bytes of a window
    #[arg(long, value_name = "BYTES", default_value = "2M", value_parser = size)]
    window: u64,
    /// Bytes of a rank
    #[arg(long, value_name = "BYTES", default_value = "8M", value_parser = size)]
    bytes: u64,
    /// Bytes of a transfer of the strided share
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = size)]
    transfer: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    if arguments.ranks > u64::from(MOST_RANKS) {
        return Err(Failure::sentence(format!("--ranks may be up to {MOST_RANKS}")));
    }
    let columns = [
        ("share", Side::Left),
        ("road", Side::Left),
        ("rounds", Side::Right),
        ("between nodes", Side::Right),
        ("within nodes", Side::Right),
        ("most of a rank in a round", Side::Right),
        ("bytes between nodes", Side::Right),
    ];
    let mut table = Table::new(columns);
    let mut results = Vec::new();
    for share in [Share::Contiguous, Share::Strided(arguments.transfer)] {
        let exchange = Exchange {
            ranks: arguments.ranks,
            nodes: arguments.nodes,
            aggregators_per_node: arguments.aggregators,
            window: arguments.window,
            bytes_per_rank: arguments.bytes,
            share,
        };
        let mut bar = screen.bar(share.to_string()).counting("rounds");
        let counted = exchange.count(&mut |done, total| bar.update(done, total));
        drop(bar);
        let counted = counted.ok_or_else(|| {
            Failure::sentence(
                "numbers are above 0, nodes are no more than ranks, and a file has less than 16 EiB"
                    .to_string(),
            )
        })?;
        for (road, sent) in roads(&counted) {
            table.row(row(&share, road, &counted, sent));
        }
        results.push(result(&share, &counted));
    }
    if arguments.json {
        let Arguments { ranks, nodes, window, bytes, .. } = *arguments;
        let all = json!({
            "ranks": ranks, "nodes": nodes, "window": window, "bytes_per_rank": bytes,
            "results": results,
        });
        json::write(screen, &all)?;
    } else {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn roads(counted: &Counted) -> [(&'static str, Sent); 3] {
    [("ranks", counted.by_ranks), ("node memory", counted.shared), ("gathered", counted.gathered)]
}

fn row(share: &Share, road: &str, counted: &Counted, sent: Sent) -> [String; 7] {
    [
        share.to_string(),
        road.to_string(),
        grouped(counted.rounds),
        grouped(sent.between_nodes),
        grouped(sent.within_nodes),
        grouped(sent.most_in_a_round),
        grouped(sent.bytes_between),
    ]
}

fn result(share: &Share, counted: &Counted) -> Value {
    let road = |(name, sent): (&str, Sent)| {
        json!({
            "road": name,
            "messages_between_nodes": sent.between_nodes,
            "messages_within_nodes": sent.within_nodes,
            "most_of_a_rank_in_a_round": sent.most_in_a_round,
            "bytes_between_nodes": sent.bytes_between,
        })
    };
    json!({
        "share": share.to_string(),
        "aggregators": counted.aggregators,
        "rounds": counted.rounds,
        "roads": roads(counted).map(road),
    })
}
