//! `esker simulate merge`: what is left of the blocks of ranks and nodes when they are merged.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use esker_policy::cluster::Limits;
use esker_policy::dealt::{Dealing, Dealt};
use esker_tools::simulate::{MergedBlocks, Merging, Reduced};
use serde_json::{Value, json};

use super::blocks::{self, Blocks};
use super::plane;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::{duration, grouped};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// How few cuboids the blocks of each rank, and of each node, become
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An array is a grid of equal blocks, which are dealt to ranks:
  morton    stretches of the Morton curve, as AMReX and WarpX deal them
  rows      stretches of the blocks in rows
  knapsack  by weights that have nothing to do with places: a rank's blocks are not neighbours, and hardly merge
Each rank merges its own blocks into cuboids, by the code that a writer calls; each node what its ranks have. The
default is the paper's run, in which about 10 blocks of a rank became 3 (Wan et al., section 4.3).

Examples:
  esker simulate merge
  esker simulate merge --ranks 1M --dealing morton
  esker simulate merge --dealing morton --uneven 0.5 --per-node 8
  esker simulate merge --grid 8,16,16 --ranks 192 --svg merged.svg
  esker simulate merge --whole --json")]
pub(super) struct Arguments {
    #[command(flatten)]
    blocks: Blocks,
    /// How blocks are dealt (default: morton and knapsack)
    #[arg(long, value_name = "HOW,…", value_delimiter = ',', value_parser = blocks::dealing)]
    dealing: Vec<Dealing>,
    /// Do not cut blocks
    #[arg(long)]
    whole: bool,
    /// Draw a plane of the array, before and after merging, of the first dealing
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let named = &arguments.dealing[..];
    let dealings = if named.is_empty() { &[Dealing::Morton, Dealing::Knapsack][..] } else { named };
    let limits = Limits { cut: !arguments.whole, ..Limits::default() };
    let mut table = Table::new([
        ("dealt", Side::Left),
        ("of a", Side::Left),
        ("groups", Side::Right),
        ("blocks", Side::Right),
        ("cuboids", Side::Right),
        ("most blocks", Side::Right),
        ("most cuboids", Side::Right),
        ("blocks / cuboids", Side::Right),
        ("time", Side::Right),
    ]);
    let mut results = Vec::new();
    let mut drawn = None;
    for dealing in dealings {
        let dealt = arguments.blocks.dealt(*dealing)?;
        let merging = Merging { dealt, per_node: arguments.blocks.per_node, limits };
        let mut bar = screen.bar(dealing.name().to_string()).counting("ranks and nodes");
        let merged = merging.count(&mut |done, total| bar.update(done, total));
        drop(bar);
        let merged = merged.map_err(Failure::sentence)?;
        for (name, reduced) in [("rank", &merged.ranks), ("node", &merged.nodes)] {
            table.row(row(dealing.name(), name, reduced));
        }
        results.push(result(*dealing, &merging.dealt, &merged));
        drawn.get_or_insert(merging);
    }
    if let (Some(path), Some(merging)) = (&arguments.svg, &drawn) {
        let picture = plane::picture(merging).map_err(Failure::sentence)?;
        fs::write(path, picture).map_err(|error| Failure::file(path, error))?;
    }
    if arguments.json {
        let all = json!({
            "ranks": arguments.blocks.ranks,
            "ranks_per_node": arguments.blocks.per_node,
            "cut": limits.cut,
            "results": results,
        });
        json::write(screen, &all)?;
        return Ok(End::Good);
    }
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    if dealings.contains(&Dealing::Knapsack) {
        writeln!(
            screen,
            "\nBlocks that a knapsack deals are neighbours by chance only: merging them within ranks leaves nearly all."
        )?;
    } else {
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn row(dealing: &str, group: &str, reduced: &Reduced) -> [String; 9] {
    [
        dealing.to_string(),
        group.to_string(),
        grouped(reduced.groups),
        format!("{:.2}", reduced.mean_blocks()),
        format!("{:.2}", reduced.mean_cuboids()),
        grouped(reduced.most_blocks),
        grouped(reduced.most_cuboids),
        format!("{:.2}", reduced.blocks as f64 / reduced.cuboids.max(1) as f64),
        duration(reduced.mean_seconds()),
    ]
}

fn result(dealing: Dealing, dealt: &Dealt, merged: &MergedBlocks) -> Value {
    let of = |reduced: &Reduced| {
        json!({
            "groups": reduced.groups,
            "blocks": reduced.blocks,
            "cuboids": reduced.cuboids,
            "parts": reduced.parts,
            "blocks_of_one": json::float(reduced.mean_blocks()),
            "cuboids_of_one": json::float(reduced.mean_cuboids()),
            "most_blocks": reduced.most_blocks,
            "most_cuboids": reduced.most_cuboids,
            "seconds_of_one": json::float(reduced.mean_seconds()),
        })
    };
    json!({
        "dealing": dealing.name(),
        "blocks": dealt.blocks(),
        "array": dealt.array(),
        "ranks": of(&merged.ranks),
        "nodes": of(&merged.nodes),
    })
}
