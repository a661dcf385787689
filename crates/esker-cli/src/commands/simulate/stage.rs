//! `esker simulate stage`: when reorganizing on the fly costs less than afterwards.

use std::io::Write;

use esker_policy::dealt::Dealing;
use esker_policy::staging::{Pay, Staging};
use esker_tools::simulate::{Speeds, StagedRun, Traffic};
use serde_json::{Value, json};

use super::blocks::{self, Blocks};
use crate::arguments::{seconds, size};
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::{bytes, duration, grouped};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// What staging to extra nodes costs, beside reorganizing afterwards
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The model of Wan et al., section 5.2, in node-seconds: \"afterwards\" writes as it is, then reads and writes anew on
the servers; \"on the fly\" stages each output to additional nodes, which write it before they take the next;
\"overlapped\" is what Esker does, the servers write one output while the next one is staged. Without any
option the numbers are the paper's: 256 nodes and 2 servers, 256 GiB an output. Who sends what to whom is
counted block by block; speeds are bytes in a second, by default those that the paper's times mean.

Examples:
  esker simulate stage
  esker simulate stage --interval 31,32,33,34 --outputs 1000
  esker simulate stage --ranks 1M --grid-out 64,64,64
  esker simulate stage --ranks 1M --servers 1k --network 20G --server-write 8G --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    blocks: Blocks,
    /// How blocks are dealt
    #[arg(long, value_name = "HOW", default_value = "morton", value_parser = blocks::dealing)]
    dealing: Dealing,
    /// Bytes of an element
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    element: u64,
    /// Nodes that receive and write (default: 1 for 128 nodes)
    #[arg(long, value_name = "N", value_parser = blocks::length)]
    servers: Option<u64>,
    /// Blocks of the new layout along each dimension (default: 4 in each, doubled until each server has one)
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = blocks::length)]
    grid_out: Vec<u64>,
    /// Time of computing between two outputs
    #[arg(long, value_name = "TIME,…", default_value = "20,32,40", value_delimiter = ',', value_parser = seconds)]
    interval: Vec<f64>,
    /// Numbers of outputs
    #[arg(long, value_name = "N,…", default_value = "10,26,50", value_delimiter = ',', value_parser = blocks::length)]
    outputs: Vec<u64>,
    /// Into a server
    #[arg(long, value_name = "BYTES", value_parser = size)]
    network: Option<u64>,
    /// From a server to disk
    #[arg(long, value_name = "BYTES", value_parser = size)]
    server_write: Option<u64>,
    /// From disk to a server
    #[arg(long, value_name = "BYTES", value_parser = size)]
    server_read: Option<u64>,
    /// From a node that computes to disk
    #[arg(long, value_name = "BYTES", value_parser = size)]
    node_write: Option<u64>,
    /// To and from the file system, of all nodes together (default: 2.5 TB)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    file_system: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn speeds(&self) -> Speeds {
        let paper = Speeds::of_the_paper();
        let or = |given: Option<u64>, paper: f64| given.map_or(paper, |given| given.max(1) as f64);
        Speeds {
            network: or(self.network, paper.network),
            server_write: or(self.server_write, paper.server_write),
            server_read: or(self.server_read, paper.server_read),
            node_write: or(self.node_write, paper.node_write),
            file_system: or(self.file_system, paper.file_system),
        }
    }

    fn staged(&self) -> Result<StagedRun, Failure> {
        let dealt = self.blocks.dealt(self.dealing)?;
        let nodes = self.blocks.ranks.div_ceil(self.blocks.per_node);
        let servers = self.servers.unwrap_or_else(|| nodes.div_ceil(128));
        let mut grid = self.grid_out.clone();
        if grid.is_empty() {
            let dims = dealt.array().len();
            let mut side = 4u64;
            while side.saturating_pow(dims as u32) < servers {
                side *= 2;
            }
            grid = vec![side; dims];
        }
        Ok(StagedRun {
            dealt,
            element: self.element,
            per_node: self.blocks.per_node,
            servers,
            grid,
        })
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let staged = arguments.staged()?;
    let mut bar = screen.bar("who sends what to whom".to_string()).counting("ranks");
    let traffic = staged.count(&mut |done, total| bar.update(done, total));
    drop(bar);
    let traffic = traffic.map_err(Failure::sentence)?;
    let speeds = arguments.speeds();
    let mut table = Table::new([
        ("interval", Side::Right),
        ("outputs", Side::Right),
        ("afterwards", Side::Right),
        ("on the fly", Side::Right),
        ("overlapped", Side::Right),
        ("on the fly pays", Side::Left),
        ("overlapped pays", Side::Left),
    ]);
    let mut results = Vec::new();
    for interval in &arguments.interval {
        for outputs in &arguments.outputs {
            let model = staged.model(&traffic, &speeds, *interval, *outputs as f64);
            let node_seconds = |used: f64| grouped(used.round() as u64);
            table.row([
                duration(*interval),
                grouped(*outputs),
                node_seconds(model.post_hoc()),
                node_seconds(model.on_the_fly()),
                node_seconds(model.pipelined()),
                pays(model.pays_from()),
                pays(model.pipeline_pays_from()),
            ]);
            results.push(result(&model));
        }
    }
    if arguments.json {
        json::write(screen, &document(&staged, &traffic, results))?;
        return Ok(End::Good);
    }
    let model = staged.model(&traffic, &speeds, 0.0, 1.0);
    told(screen, &staged, &traffic, &model)?;
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    writeln!(screen)?;
    Ok(End::Good)
}

/// What is sent, and how long each step of an output takes.
fn told(
    screen: &mut Screen,
    staged: &StagedRun,
    traffic: &Traffic,
    model: &Staging,
) -> std::io::Result<()> {
    let Staging { nodes, stage, write, read, write_direct, .. } = *model;
    writeln!(
        screen,
        "{} ranks on {} nodes, {} servers: {} an output, {} on the busiest server",
        grouped(staged.dealt.ranks()),
        grouped(nodes as u64),
        grouped(staged.servers),
        bytes(traffic.bytes as u64),
        bytes(traffic.most_bytes as u64),
    )?;
    writeln!(
        screen,
        "{} pieces into {} blocks; a rank talks to {:.1} servers, at most {}; a server to at most {} ranks",
        grouped(traffic.pieces),
        grouped(traffic.units),
        traffic.pairs as f64 / staged.dealt.ranks() as f64,
        grouped(traffic.most_servers),
        grouped(traffic.most_ranks),
    )?;
    writeln!(
        screen,
        "each output: staged in {}, written by servers in {}, read by them in {}, written as it is in {}\n",
        duration(stage),
        duration(write),
        duration(read),
        duration(write_direct),
    )?;
    writeln!(screen, "node-seconds:")
}

fn pays(pay: Pay) -> String {
    match pay {
        Pay::From(outputs) => format!("from {} outputs", grouped(outputs)),
        Pay::UpTo(outputs) => format!("up to {} outputs", grouped(outputs)),
        Pay::Always => "always".to_string(),
        Pay::Never => "never".to_string(),
    }
}

fn result(model: &Staging) -> Value {
    let pay = |pay: Pay| match pay {
        Pay::From(outputs) => json!({ "from": outputs }),
        Pay::UpTo(outputs) => json!({ "up_to": outputs }),
        Pay::Always => json!("always"),
        Pay::Never => json!("never"),
    };
    let seconds = |seconds: Option<f64>| seconds.map_or(Value::Null, json::float);
    json!({
        "interval": json::float(model.compute),
        "outputs": json::float(model.outputs),
        "keeps_up": model.keeps_up(),
        "node_seconds": {
            "afterwards": json::float(model.post_hoc()),
            "on_the_fly": json::float(model.on_the_fly()),
            "overlapped": json::float(model.pipelined()),
        },
        "seconds": {
            "on_the_fly": json::float(model.on_the_fly_seconds()),
            "overlapped": json::float(model.pipelined_seconds()),
        },
        "on_the_fly_pays": pay(model.pays_from()),
        "overlapped_pays": pay(model.pipeline_pays_from()),
        "shortest_interval": seconds(model.shortest_interval()),
        "longest_interval": seconds(model.longest_interval()),
    })
}

fn document(staged: &StagedRun, traffic: &Traffic, results: Vec<Value>) -> Value {
    json!({
        "ranks": staged.dealt.ranks(),
        "servers": staged.servers,
        "grid": staged.grid,
        "traffic": {
            "units": traffic.units,
            "pieces": traffic.pieces,
            "pairs": traffic.pairs,
            "most_servers_of_a_rank": traffic.most_servers,
            "most_ranks_of_a_server": traffic.most_ranks,
            "bytes": json::float(traffic.bytes),
            "most_bytes_of_a_server": json::float(traffic.most_bytes),
        },
        "results": results,
    })
}
