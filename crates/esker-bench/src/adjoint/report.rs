//! Figures of adjoint runs as tables and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Case, Column, Disk, Options, Planned};
use crate::machine::Machine;

/// One way of storing checkpoints, measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The model.
    pub case: Case,
    /// What checkpoints went to.
    pub disk: Disk,
    /// How they were planned.
    pub planned: Planned,
    /// Raw states that there was room for.
    pub budget: u64,
    /// The filters.
    pub column: Column,
    /// The whole run, on the slowest rank.
    pub seconds: f64,
    /// What of it was not spent in the model.
    pub checkpoints: f64,
    /// Forward steps.
    pub forward: u64,
    /// Checkpoints that were stored.
    pub stored: u64,
    /// Bytes of states over what they were stored as.
    pub smaller: f64,
    /// The difference of the gradient from the exact one, over its norm.
    pub error: f64,
    /// What the run takes where nothing else does: the processor's time of a rank, and what a slowed disk takes for its bytes; the
    /// least of all repetitions, because whatever else runs makes it longer. Known where the model waits for its checkpoints.
    pub quiet: Option<f64>,
    /// What `auto` chose, and at which states.
    pub chosen: String,
}

/// Of several runs of one cell, the one with the median of times, and the shortest that one takes where nothing else runs.
pub(super) fn median(mut rows: Vec<Row>) -> Option<Row> {
    rows.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let quiet = rows.iter().filter_map(|row| row.quiet).min_by(f64::total_cmp);
    let middle = rows.len() / 2;
    (middle < rows.len()).then(|| Row { quiet, ..rows.swap_remove(middle) })
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was asked for.
    pub options: Options,
    /// Bytes of a rank's state of each model.
    pub states: Vec<(Case, u64)>,
    /// All figures.
    pub rows: Vec<Row>,
}

impl Report {
    /// The largest of `auto`'s times over that of the best column with the same disk and budget, and where that was; `None` if
    /// nothing was measured.
    pub fn auto_over_best(&self, case: Case) -> Option<(f64, &Row)> {
        self.auto_over_best_by(case, |row| row.seconds)
    }

    /// The same with another measure of time.
    pub fn auto_over_best_by(&self, case: Case, time: fn(&Row) -> f64) -> Option<(f64, &Row)> {
        let alike = |a: &Row, b: &Row| {
            (a.case, a.disk, a.planned, a.budget) == (b.case, b.disk, b.planned, b.budget)
        };
        let own = self.rows.iter().filter(|row| row.case == case && row.column == Column::Auto);
        let ratio = |row: &'_ Row| {
            let others = self.rows.iter().filter(|other| alike(row, other));
            let others = others.filter(|other| other.column != Column::Auto);
            time(row) / others.map(time).fold(f64::INFINITY, f64::min)
        };
        own.map(|row| (ratio(row), row)).max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// What storing takes in a column over what it takes without filters, with as many checkpoints: all budgets together.
    pub fn checkpoints_over_raw(&self, case: Case, disk: Disk, column: Column) -> Option<f64> {
        let sum = |column: Column| -> f64 {
            let rows = self.rows.iter().filter(|row| (row.case, row.disk) == (case, disk));
            let rows = rows.filter(|row| (row.planned, row.column) == (Planned::Slots, column));
            rows.map(|row| row.checkpoints).sum()
        };
        Some(sum(column) / sum(Column::Raw)).filter(|ratio| ratio.is_finite())
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "case": row.case.name(), "disk": row.disk.name(), "plan": row.planned.name(),
                "budget": row.budget, "column": row.column.name(), "seconds": row.seconds,
                "checkpoint_seconds": row.checkpoints, "forward_steps": row.forward,
                "stored": row.stored, "smaller": row.smaller, "error": row.error,
                "quiet_seconds": row.quiet, "chosen": row.chosen,
            })
        };
        let state = |(case, bytes): &(Case, u64)| (case.name().to_string(), json!(bytes));
        json!({
            "machine": Machine::here(&self.options.dir).to_json(),
            "ranks": self.options.ranks, "steps": self.options.steps, "bound": self.options.bound,
            "repeat": self.options.repeat, "beside": self.options.beside,
            "state_bytes": self.states.iter().map(state).collect::<serde_json::Map<_, _>>(),
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let Options { ranks, steps, bound, repeat, beside, .. } = &self.options;
        let how = if *beside { "beside the model" } else { "while the model waits" };
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", Machine::here(&self.options.dir).sentence());
        let _ = writeln!(
            out,
            "{ranks} thread-ranks with a model each, {steps} steps forward and back, checkpoints on disk, {how}; lossy filters keep \
             {bound:e} of the range; medians of {repeat}\n\
             slots: as many checkpoints whatever they take (Revolve); bytes: what fits into the room of so many raw states (Budget)"
        );
        for (case, bytes) in &self.states {
            for disk in &self.options.disks {
                let _ = writeln!(
                    out,
                    "\n{}: {:.2} MB of state a rank, on {}",
                    case.name(),
                    *bytes as f64 * 1e-6,
                    match disk {
                        Disk::Slowed => "a disk slowed to 50 MB/s a rank",
                        Disk::Full => "the disk as it is",
                    }
                );
                let _ = writeln!(
                    out,
                    "{:5} {:>6} {:8} {:>9} {:>9} {:>12} {:>9} {:>8} {:>8} {:>9}",
                    "plan",
                    "states",
                    "",
                    "total s",
                    "quiet s",
                    "checkpoint s",
                    "forward",
                    "stored",
                    "smaller",
                    "error"
                );
                let rows = self.rows.iter().filter(|row| (row.case, row.disk) == (*case, *disk));
                for row in rows {
                    let _ = writeln!(
                        out,
                        "{:5} {:>6} {:8} {:>9.3} {:>9} {:>12.3} {:>9} {:>8} {:>8.2} {:>9.1e}  {}",
                        row.planned.name(),
                        row.budget,
                        row.column.name(),
                        row.seconds,
                        row.quiet.map_or_else(|| "-".into(), |quiet| format!("{quiet:.3}")),
                        row.checkpoints,
                        row.forward,
                        row.stored,
                        row.smaller,
                        row.error,
                        row.chosen
                    );
                }
                let over = |column: &Column| {
                    let ratio = self.checkpoints_over_raw(*case, *disk, *column)?;
                    Some(format!("{} {ratio:.2}", column.name()))
                };
                let fixed = Column::ALL.iter();
                let fixed = fixed.filter(|column| !matches!(column, Column::Raw | Column::Auto));
                let over: Vec<String> = fixed.filter_map(over).collect();
                let _ = writeln!(
                    out,
                    "checkpoint time over raw, slots, all budgets: {}",
                    over.join(", ")
                );
            }
            if let Some((ratio, row)) = self.auto_over_best(*case) {
                let (states, disk) = (row.budget, row.disk.name());
                let _ = writeln!(
                    out,
                    "auto's total over the best column's, at worst: {ratio:.2} ({states} states, {disk} disk)"
                );
            }
            let quiet = |row: &Row| row.quiet.unwrap_or(f64::NAN);
            if let Some((ratio, row)) =
                self.auto_over_best_by(*case, quiet).filter(|found| found.0.is_finite())
            {
                let (states, disk) = (row.budget, row.disk.name());
                let _ = writeln!(
                    out,
                    "the same by what it takes where nothing else runs: {ratio:.2} ({states} states, {disk} disk)"
                );
            }
        }
        out
    }
}
