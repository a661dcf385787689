//! `esker simulate`: what a policy would do on more ranks than there are.

mod blocks;
mod commit;
mod definitions;
mod exchange;
mod files;
mod merge;
mod owners;
mod patches;
mod plane;
mod stage;

use std::ffi::OsString;

use esker_tools::simulate::MOST_RANKS;

use crate::arguments::size;
use crate::failure::Ended;
use crate::terminal::Screen;

/// Try policies on up to a million virtual ranks, without data
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  esker simulate owners                  who would own which chunk, on 4 to 4096 ranks
  esker simulate exchange --ranks 1M --nodes 8k    messages of a collective write
  esker simulate definitions --ranks 1M  what merging everyone's definitions takes
  esker simulate commit --ranks 1M       what a commit to a container takes on the busiest rank
  esker simulate merge --ranks 1M        cuboids that each rank's and each node's blocks become
  esker simulate stage --ranks 1M        what reorganizing on the fly costs, beside doing it afterwards
  esker simulate patches                 even numbers of patches, and what moves for that
  esker simulate files                   encoded patches in files of like size
  esker simulate owners --help           patterns and options"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Commit(commit::Arguments),
    Definitions(definitions::Arguments),
    Exchange(exchange::Arguments),
    Merge(merge::Arguments),
    Owners(owners::Arguments),
    Stage(stage::Arguments),
    Files(files::Arguments),
    Patches(patches::Arguments),
}

pub(super) fn run(arguments: &Arguments, again: &[OsString], screen: &mut Screen) -> Ended {
    match &arguments.what {
        What::Commit(arguments) => commit::run(arguments, again, screen),
        What::Definitions(arguments) => definitions::run(arguments, screen),
        What::Exchange(arguments) => exchange::run(arguments, screen),
        What::Merge(arguments) => merge::run(arguments, screen),
        What::Owners(arguments) => owners::run(arguments, screen),
        What::Stage(arguments) => stage::run(arguments, screen),
        What::Files(arguments) => files::run(arguments, screen),
        What::Patches(arguments) => patches::run(arguments, screen),
    }
}

/// A number of ranks that can be simulated.
fn ranks(text: &str) -> Result<u32, String> {
    let ranks = size(text).ok().and_then(|ranks| u32::try_from(ranks).ok());
    let ranks = ranks.filter(|ranks| (1..=MOST_RANKS).contains(ranks));
    ranks.ok_or_else(|| format!("write a number from 1 to {MOST_RANKS}, as 64, 4k or 1M"))
}
