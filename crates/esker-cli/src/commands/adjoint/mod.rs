//! `esker adjoint`: what a gradient over many steps would cost, and one to look at.

mod bars;
mod demo;
mod inversion;
mod plan;

use crate::failure::Ended;
use crate::terminal::Screen;

/// Gradients over many time steps: plan checkpoints, and see an inversion
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
The folder of a run (RUN.chk) is shown by `esker info`, checked by `esker check` and mended by
`esker recover`.

Examples:
  esker adjoint plan --steps 1000 --state 80M --memory 2G     how long each schedule would take
  esker adjoint plan --help                                   disk, filters, pictures
  esker adjoint demo                                          find where a wave came from"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Plan(plan::Arguments),
    Demo(demo::Arguments),
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    match &arguments.what {
        What::Plan(arguments) => plan::run(arguments, screen),
        What::Demo(arguments) => demo::run(arguments, screen),
    }
}
