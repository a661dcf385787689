//! `esker adjoint plan`: how long a run would take with each schedule.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use esker_adjoint::schedule::{Costs, Forecast, Prospect, ScheduleError};
use esker_store::{Draft, LocalStore, Store};
use serde_json::{Value, json};

use super::bars;
use crate::arguments::{seconds, size};
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, duration, grouped};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// How long an adjoint run would take with each schedule
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run needs each step forward and back once. What is not kept is computed again; what is kept is
encoded and written beside the model, which waits only for what is not done in time. Measure one
step, one reverse step and one state of your model; `ea.run` in Python then measures the rest itself.

Examples:
  esker adjoint plan --steps 1000 --state 80M --memory 800M
  esker adjoint plan --steps 1000 --state 80M --memory 800M --ratio 6 --encode 200M --decode 400M
  esker adjoint plan --steps 500 --state 2G --memory 8G --disk 100G --write 500M --read 1G \\
      --step-time 12 --reverse-time 30 --svg plan.svg
  esker adjoint plan --steps 1000 --state 80M --memory 800M --json")]
pub(super) struct Arguments {
    /// Time steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    steps: u64,
    /// Bytes of a state, of one rank
    #[arg(long, value_name = "BYTES", value_parser = size)]
    state: u64,
    /// Bytes of memory for checkpoints, of one rank
    #[arg(long, value_name = "BYTES", value_parser = size)]
    memory: u64,
    /// Bytes on disk for checkpoints, of one rank
    #[arg(long, value_name = "BYTES", value_parser = size, default_value = "0")]
    disk: u64,
    /// Time of a forward step: 0.5, 20ms, 3min
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "1s")]
    step_time: f64,
    /// Time of a reverse step [default: twice that of a forward step]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    reverse_time: Option<f64>,
    /// By how much filters make a state smaller
    #[arg(long, value_name = "N", value_parser = ratio, default_value = "1")]
    ratio: f64,
    /// Bytes of a state that are encoded in a second [default: at once]
    #[arg(long, value_name = "BYTES", value_parser = speed)]
    encode: Option<u64>,
    /// Bytes of a state that are decoded in a second [default: at once]
    #[arg(long, value_name = "BYTES", value_parser = speed)]
    decode: Option<u64>,
    /// Bytes that are written to disk in a second [default: at once]
    #[arg(long, value_name = "BYTES", value_parser = speed)]
    write: Option<u64>,
    /// Bytes that are read from disk in a second [default: at once]
    #[arg(long, value_name = "BYTES", value_parser = speed)]
    read: Option<u64>,
    /// The adjoint of a step needs more than the state before it, so that the step is always run
    #[arg(long)]
    deps: bool,
    /// The model waits while states are encoded and written
    #[arg(long)]
    synchronous: bool,
    /// Draw the times into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    ratio.ok_or_else(|| "write a number above 0, as 4 or 2.5".to_string())
}

fn speed(text: &str) -> Result<u64, String> {
    match size(text.strip_suffix("/s").unwrap_or(text))? {
        0 => Err("nothing would ever be done".into()),
        speed => Ok(speed),
    }
}

impl Arguments {
    fn prospect(&self) -> Prospect {
        let encoded = (self.state as f64 / self.ratio).ceil();
        let time = |bytes: f64, speed: Option<u64>| speed.map_or(0.0, |s| bytes / s as f64);
        let raw = self.state as f64;
        Prospect {
            steps: self.steps,
            state: (encoded as u64).max(1),
            memory: self.memory,
            disk: self.disk,
            reverse: self.reverse_time.unwrap_or(2.0 * self.step_time),
            costs: Costs {
                step: self.step_time,
                encode: time(raw, self.encode),
                decode: time(raw, self.decode),
                write: time(encoded, self.write),
                read: time(encoded, self.read),
            },
            deps_are_state: !self.deps,
            beside: !self.synchronous,
        }
    }
}

/// What is known of all schedules: those that can be, the fastest first, and those that cannot.
struct Plan {
    prospect: Prospect,
    possible: Vec<Forecast>,
    impossible: Vec<(&'static str, ScheduleError)>,
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let prospect = arguments.prospect();
    let (mut possible, mut impossible) = (Vec::new(), Vec::new());
    for (name, found) in prospect.all() {
        match found {
            Ok(forecast) => possible.push(forecast),
            Err(why) => impossible.push((name, why)),
        }
    }
    if possible.is_empty() {
        let why = impossible.first().map(|(_, why)| why.to_string()).unwrap_or_default();
        return Err(Failure::sentence(format!("no schedule can be: {why}")));
    }
    // Of equals, the first in the list.
    possible.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let plan = Plan { prospect, possible, impossible };
    if let Some(file) = &arguments.svg {
        let store: Arc<dyn Store> = Arc::new(LocalStore);
        let picture = bars::draw(arguments.steps, &plan.possible);
        let written = Draft::whole(&store, file).and_then(|draft| {
            if let Some(new) = draft.file() {
                new.write_at(0, picture.as_bytes())?;
            }
            draft.take_name()
        });
        written.map_err(|error| Failure::file(file, error))?;
    }
    match arguments.json {
        true => json::write(screen, &document(&plan))?,
        false => text(&plan, screen)?,
    }
    Ok(Outcome::Good)
}

fn text(plan: &Plan, screen: &mut Screen) -> io::Result<()> {
    let Prospect { steps, state, memory, disk, costs, reverse, .. } = plan.prospect;
    let fit = |bytes: u64| grouped(bytes / state);
    writeln!(
        screen,
        "{} steps of {}, back {}; a state is kept as {}: {} in memory, {} on disk",
        grouped(steps),
        duration(costs.step),
        duration(reverse),
        bytes(state),
        fit(memory),
        fit(disk)
    )?;
    let mut table = Table::new([
        ("schedule", Side::Left),
        ("time", Side::Right),
        ("computed again", Side::Right),
        ("waiting", Side::Right),
        ("forward steps", Side::Right),
        ("a step", Side::Right),
        ("in memory", Side::Right),
        ("on disk", Side::Right),
    ]);
    for found in &plan.possible {
        table.row([
            found.schedule.to_string(),
            duration(found.seconds()),
            duration(found.again),
            duration(found.waiting),
            grouped(found.forward),
            format!("{:.2}", found.forward as f64 / steps as f64),
            grouped(found.audit.most[0]),
            grouped(found.audit.most[1]),
        ]);
    }
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)?;
    for (name, why) in &plan.impossible {
        writeln!(screen, "  {}", depth.faint(format!("{name}: {why}")))?;
    }
    Ok(())
}

fn document(plan: &Plan) -> Value {
    let Prospect { steps, state, memory, disk, costs, reverse, deps_are_state, beside } =
        plan.prospect;
    let schedule = |found: &Forecast| {
        json!({
            "schedule": found.schedule,
            "seconds": found.seconds(),
            "needed": found.needed,
            "again": found.again,
            "waiting": found.waiting,
            "forward_steps": found.forward,
            "written": {"memory": found.audit.writes[0], "disk": found.audit.writes[1]},
            "read": {"memory": found.audit.reads[0], "disk": found.audit.reads[1]},
            "most": {"memory": found.audit.most[0], "disk": found.audit.most[1]},
        })
    };
    let impossible = plan.impossible.iter();
    json!({
        "steps": steps,
        "state_bytes": state,
        "memory": memory,
        "disk": disk,
        "seconds": {
            "forward": costs.step,
            "reverse": reverse,
            "encode": costs.encode,
            "decode": costs.decode,
            "write": costs.write,
            "read": costs.read,
        },
        "deps_are_state": deps_are_state,
        "beside_the_model": beside,
        "schedules": plan.possible.iter().map(schedule).collect::<Vec<_>>(),
        "impossible": impossible
            .map(|(name, why)| json!({"schedule": name, "why": why.to_string()}))
            .collect::<Vec<_>>(),
    })
}
