//! `esker adjoint demo`: an inversion to look at.

use std::io::{self, Write};

use esker_adjoint::{Filters, Options, Report};

use super::inversion::{COLUMNS, ROWS, STATE, STEPS, Search, heard, truth};
use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::Screen;
use crate::terminal::picture::{Panel, Plane, Scale, panels};
use crate::terminal::quantity::{bytes, general, grouped};

/// Find where a drum was struck from what microphones heard, by gradients over 240 steps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  esker adjoint demo                          with the memory of six states
  esker adjoint demo --memory 1M --filter \"shuffle zstd,1\"
  esker adjoint demo --iterations 30          nearer to the truth")]
pub(super) struct Arguments {
    /// Gradients to take
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u16).range(1..=1000))]
    iterations: u16,
    /// Bytes of memory for checkpoints
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "196k")]
    memory: u64,
    /// Filters of the checkpoints, or none
    #[arg(long, value_name = "FILTER", default_value = "shuffle zstd,1")]
    filter: String,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let text = if arguments.filter == "none" { "" } else { arguments.filter.as_str() };
    let filters = Filters::new(&[("*".to_string(), text.to_string())]);
    let filters = filters.map_err(Failure::sentence)?;
    let options = Options { memory: arguments.memory, filters, ..Options::default() };
    let (truth, gradients) = (truth(), u64::from(arguments.iterations));
    let mut bar = screen.bar("inverting").counting("gradients");
    let (mut search, mut total) =
        Search::begin(heard(&truth), &options).map_err(Failure::sentence)?;
    let mut misfits = vec![search.misfit];
    for done in 1..=gradients {
        bar.update(done, gradients);
        let report = search.improve(&options).map_err(Failure::sentence)?;
        add(&mut total, &report);
        misfits.push(search.misfit);
    }
    drop(bar);
    tell(screen, &truth, &search, &misfits)?;
    told(screen, gradients + 1, &total)?;
    Ok(Outcome::Good)
}

fn add(total: &mut Report, report: &Report) {
    total.forward += report.forward;
    for i in 0..2 {
        total.peak[i] = total.peak[i].max(report.peak[i]);
        total.bytes[i] += report.bytes[i];
        total.stored[i] += report.stored[i];
    }
    total.waited += report.waited;
    total.model += report.model;
}

fn tell(
    screen: &mut Screen,
    truth: &[f64],
    search: &Search,
    misfits: &[f64],
) -> Result<(), Failure> {
    let (depth, width) = (screen.depth, screen.width.unwrap_or(100));
    let plane = |values: &[f64]| Plane::new(values.to_vec(), ROWS, COLUMNS);
    let shown = [("how it was struck", truth), ("what was found", &search.strike)];
    let shown: Option<Vec<Panel>> = shown
        .into_iter()
        .map(|(title, values)| Some(Panel { title: title.into(), plane: plane(values)? }))
        .collect();
    let scale = Scale::new(1.0);
    panels(screen, depth, &shown.unwrap_or_default(), 2, width, &scale)?;
    writeln!(screen)?;
    let first = misfits.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let every = misfits.len().div_ceil(13);
    for (i, misfit) in misfits.iter().enumerate() {
        if i % every != 0 && i + 1 != misfits.len() {
            continue;
        }
        // Eight cells for a factor of ten.
        let decades = (first / misfit.max(first * 1e-12)).log10();
        let cells = (40.0 - 8.0 * decades).round().clamp(0.0, 40.0) as usize;
        let line = format!("{i:>5}  misfit {:<12} {}", general(*misfit, 4), "#".repeat(cells));
        writeln!(screen, "{}", line.trim_end())?;
    }
    Ok(())
}

fn told(screen: &mut Screen, gradients: u64, total: &Report) -> io::Result<()> {
    let steps = STEPS * gradients;
    writeln!(
        screen,
        "\n{gradients} gradients over {STEPS} steps, whose states have {} in all, with {} of memory at most: \
         {} forward steps ({:.2} for each), states kept as {:.0}% of their bytes",
        bytes(STATE * STEPS),
        bytes(total.peak[0]),
        grouped(total.forward),
        total.forward as f64 / steps as f64,
        100.0 * total.bytes[1] as f64 / (total.bytes[0].max(1)) as f64,
    )
}
