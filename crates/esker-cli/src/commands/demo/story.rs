//! What the demonstration tells: the waves, the file, where the time went, the checks.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use esker::{Dataset, Selection, Strategy};
use esker_tools::Unseen;
use esker_tools::check::{self, CheckOptions};

use super::blocks::Blocks;
use super::sea::{Grid, LAND};
use super::total::{Moved, Total};
use crate::commands::info::{facts::Facts, text};
use crate::commands::opening;
use crate::failure::Failure;
use crate::terminal::colour::Depth;
use crate::terminal::picture::{Panel, Plane, Scale, panels};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, quantity};

/// How wide the whole is when there is no terminal.
const WIDTH: usize = 80;

/// Who did the work.
pub(super) struct Cast {
    pub(super) ranks: usize,
    /// `threads of this process`, `MPI processes (MPICH)`.
    pub(super) kind: String,
}

/// The opening words.
pub(super) fn opening(
    screen: &mut Screen,
    grid: &Grid,
    records: u64,
    cast: &Cast,
) -> io::Result<()> {
    let Grid { columns, rows, .. } = grid;
    let Blocks { down, across, .. } = Blocks::new(cast.ranks, *rows, *columns);
    let minutes = grid.time(records.saturating_sub(1)) / 60.0;
    let depth = screen.depth;
    let spacing = quantity::general(f64::from(grid.spacing()) / 1000.0, 3);
    let blocks = match cast.ranks {
        1 => "one block".to_string(),
        _ => format!("{across} × {down} blocks"),
    };
    writeln!(screen, "{}", depth.bold("A tsunami in a made-up sea"))?;
    writeln!(
        screen,
        "  {columns} × {rows} cells of {spacing} km, {minutes} minutes, {} in one file",
        quantity::plural(records as usize, "record"),
    )?;
    let ranks = quantity::plural(cast.ranks, "rank");
    writeln!(screen, "  computed and written by {ranks}: {}, {blocks}", cast.kind)
}

/// The height of the sea at a few times, read from the file.
pub(super) fn pictures(
    screen: &mut Screen,
    dataset: &Dataset,
    grid: &Grid,
    path: &Path,
) -> Result<(), Failure> {
    let fail = |error: esker::Error| Failure::file(path, error);
    let width = screen.width.unwrap_or(WIDTH);
    let across = ((width.saturating_sub(2)) / 38).clamp(1, 4);
    let count = (across * 2).min(dataset.numrecs() as usize).max(1);
    let var = dataset.var("eta").map_err(fail)?;
    let mut shown = Vec::new();
    for i in 0..count {
        let last = dataset.numrecs().saturating_sub(1);
        let record = (last * i as u64).checked_div(count as u64 - 1).unwrap_or(0);
        let plane = Selection::slab(&[record, 0, 0], &[1, grid.rows as u64, grid.columns as u64]);
        let mut values = dataset.get::<f64>(var, &plane).map_err(fail)?;
        for value in values.iter_mut().filter(|value| **value == f64::from(LAND)) {
            *value = f64::NAN;
        }
        if let Some(plane) = Plane::new(values, grid.rows, grid.columns) {
            let title = format!("after {} min", grid.time(record) / 60.0);
            shown.push(Panel { title, plane: plane.flipped() });
        }
    }
    let depth = screen.depth;
    writeln!(screen, "\n{}", depth.bold("height of the sea, read from the file, north on top"))?;
    let scale = Scale::new(1.0);
    panels(screen, depth, &shown, across, width, &scale)?;
    scale.draw(screen, depth, "m", "land")?;
    Ok(())
}

/// What is in the file.
pub(super) fn info(
    screen: &mut Screen,
    dataset: &Dataset,
    path: &Path,
    shown: &Path,
) -> Result<(), Failure> {
    let vars = opening::variables(path, dataset, &[])?;
    let facts = Facts::of(shown, dataset, &vars).map_err(|error| Failure::file(path, error))?;
    writeln!(screen)?;
    Ok(text::write(screen, &facts, false)?)
}

/// Where the time went, and what moved.
pub(super) fn times(screen: &mut Screen, total: &Total) -> io::Result<()> {
    let (depth, width) = (screen.depth, screen.width);
    writeln!(screen, "\n{}", depth.bold("where the time went, on the slowest rank"))?;
    let longest = total.spent.iter().map(|(_, time)| *time).max().unwrap_or_default();
    let mut table =
        Table::new([("", Side::Left), ("", Side::Right), ("", Side::Left), ("", Side::Left)]);
    for (name, time) in total.spent {
        let what = match name {
            "write" => bandwidth(total.bytes, time),
            "read back" => bandwidth(total.bytes, time),
            "sync" => "until it is safe on the disk".to_string(),
            "wait" => "for the neighbours' edges".to_string(),
            _ => "computing steps".to_string(),
        };
        let cell = if depth == Depth::Plain { "#" } else { "█" };
        let cells = (16.0 * time.as_secs_f64() / longest.as_secs_f64().max(1e-9)).ceil();
        table.row([name.to_string(), seconds(time), cell.repeat(cells as usize), what]);
    }
    table.write(screen, depth, width)?;

    writeln!(screen, "\n{}", depth.bold("how the bytes moved"))?;
    let mut table = Table::new([("", Side::Left), ("", Side::Left)]);
    for (name, moved) in [("write", &total.written), ("read", &total.read)] {
        for (i, line) in road(moved, total.ranks).into_iter().enumerate() {
            table.row([if i == 0 { name.to_string() } else { String::new() }, line]);
        }
    }
    table.write(screen, depth, width)
}

/// The road of the writes or reads in two or three lines.
fn road(moved: &Moved, ranks: usize) -> Vec<String> {
    let what = match moved.strategy {
        Strategy::Nothing => "nothing was moved".to_string(),
        Strategy::Direct => "direct: each rank has its own runs, nothing is exchanged".to_string(),
        Strategy::Appended => "appended: each rank writes to a log of its own".to_string(),
        Strategy::Exchanged => format!(
            "exchanged: pieces go to {} of {}",
            quantity::plural(moved.aggregators as usize, "aggregator"),
            quantity::plural(ranks, "rank"),
        ),
    };
    let messages = match moved.messages {
        0 => "no messages".to_string(),
        n => {
            let messages = quantity::plural(n as usize, "message");
            format!("{messages} ({})", quantity::bytes(moved.message_bytes))
        }
    };
    let counted = format!(
        "{} in {}, {messages}, {} to the system",
        quantity::plural(moved.runs as usize, "run"),
        quantity::plural(moved.calls as usize, "wait"),
        quantity::plural(moved.system_calls as usize, "call"),
    );
    let phases: Vec<String> = moved
        .phases
        .named()
        .into_iter()
        .filter(|(name, time)| *name != "sync" && time.as_micros() >= 50)
        .map(|(name, time)| format!("{name} {}", seconds(time)))
        .collect();
    [what, counted, phases.join(", ")].into_iter().filter(|line| !line.is_empty()).collect()
}

fn bandwidth(bytes: u64, time: Duration) -> String {
    let speed = bytes as f64 / time.as_secs_f64().max(1e-9);
    format!("{}, {}/s", quantity::bytes(bytes), quantity::bytes(speed as u64))
}

/// Seconds or milliseconds with two or three digits.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.01 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.1} ms", s * 1e3),
    }
}

/// Checks the file's structure; that its values are what was computed is known already.
pub(super) fn verdict(screen: &mut Screen, total: &Total, path: &Path) -> Result<(), Failure> {
    let depth = screen.depth;
    let options = CheckOptions::default();
    let report = check::check(path, &options, &mut Unseen).map_err(|e| Failure::file(path, e))?;
    if let Some(finding) = report.findings.first() {
        return Err(Failure::file(path, finding));
    }
    writeln!(screen, "\n{}", depth.bold("check"))?;
    writeln!(screen, "  {}: every offset, size and name is sound", depth.good("valid"))?;
    writeln!(
        screen,
        "  {}: all {} values are read back bit for bit as computed",
        depth.good("equal"),
        quantity::grouped(total.compared),
    )?;
    Ok(())
}

/// What to try next; `kept` is the file's name, if it is still there.
pub(super) fn next(screen: &mut Screen, kept: Option<&Path>) -> io::Result<()> {
    let name = kept.map_or("demo.nc".to_string(), esker_text::shown_path);
    let mut ideas = vec![
        (format!("esker info --stats {name}"), "the range and mean of every variable"),
        (format!("esker dump -v time {name}"), "values as CDL"),
        (format!("esker copy {name} end.nc --dim time=-1"), "the last record of it"),
        ("mpiexec -n 4 esker demo".to_string(), "the same on MPI processes"),
        ("esker info --mpi".to_string(), "which MPI is used here"),
        ("esker --help".to_string(), "everything else"),
    ];
    match kept {
        None => ideas.insert(0, ("esker demo --keep".into(), "the same again, and keep the file")),
        Some(_) => ideas.insert(
            0,
            (format!("xarray.open_dataset(\"{name}\").eta[-1].plot()"), "a plot, in Python"),
        ),
    }
    let mut table = Table::new([("", Side::Left), ("", Side::Left)]);
    for (idea, why) in ideas {
        table.row([idea, why.to_string()]);
    }
    writeln!(screen, "\n{}", screen.depth.bold("try next"))?;
    let (depth, width) = (screen.depth, screen.width);
    table.write(screen, depth, width)
}
