//! The figures: medians, spread and ratios, as JSON and as a table.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::kernels::Kernel;
use crate::machine::Machine;
use crate::measure::{Measurement, Phases};
use crate::reading::Reading;
use crate::runner::Library;

/// Everything that a run of the benchmarks found.
#[derive(Debug, Clone)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// On how many ranks.
    pub ranks: usize,
    /// How often.
    pub repeat: usize,
    /// Whether waiting for the disk is in the times.
    pub sync: bool,
    /// What was read.
    pub reading: Reading,
    /// The filters of chunks, if variables had chunks.
    pub pipeline: Option<String>,
    /// Who took part, Esker first.
    pub libraries: Vec<Library>,
    /// The kernels.
    pub kernels: Vec<KernelReport>,
}

/// What was found for a kernel.
#[derive(Debug, Clone)]
pub struct KernelReport {
    /// Which.
    pub kernel: Kernel,
    /// Bytes that all ranks write.
    pub bytes: u64,
    /// Rows of hyperslabs.
    pub runs: u64,
    /// Variables.
    pub variables: usize,
    /// Each library, Esker first.
    pub libraries: Vec<LibraryReport>,
}

/// What was found for a library.
#[derive(Debug, Clone)]
pub struct LibraryReport {
    /// Which.
    pub library: Library,
    /// Each run.
    pub runs: Vec<Measurement>,
    /// Bytes of its files, metadata too; 0 if there was no run.
    pub stored: u64,
    /// Whether its file holds the same as Esker's, where that was compared.
    pub equal: Option<bool>,
    /// What reading whole variables on other numbers of ranks took, once.
    pub on_others: Vec<(usize, Measurement)>,
    /// Why there are no runs, or no more.
    pub fault: Option<String>,
}

/// The middle of some times, and the shortest and longest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
}

impl Spread {
    /// Of some numbers; `None` if there are none.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut numbers: Vec<f64> = numbers.collect();
        numbers.sort_by(f64::total_cmp);
        let (min, max) = (*numbers.first()?, *numbers.last()?);
        let middle = numbers.len() / 2;
        let median = match numbers.len() % 2 {
            1 => numbers[middle],
            _ => (numbers[middle - 1] + numbers[middle]) / 2.0,
        };
        Some(Spread { median, min, max })
    }
}

/// Writing or reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Writing.
    Write,
    /// Reading.
    Read,
}

impl LibraryReport {
    pub(crate) fn new(library: Library) -> LibraryReport {
        LibraryReport {
            library,
            runs: vec![],
            stored: 0,
            equal: None,
            on_others: vec![],
            fault: None,
        }
    }

    fn spread(&self, direction: Direction, seconds: impl Fn(&Phases) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|run| match direction {
            Direction::Write => seconds(&run.write),
            Direction::Read => seconds(&run.read),
        }))
    }

    /// Seconds from the first request to the closed file.
    pub fn seconds(&self, direction: Direction) -> Option<Spread> {
        self.spread(direction, Phases::transfer)
    }

    /// Megabytes (10^6) per second, of the median time, and of the longest and shortest.
    pub fn bandwidth(&self, direction: Direction) -> Option<Spread> {
        let run = self.runs.first()?;
        let bytes = match direction {
            Direction::Write => run.bytes,
            Direction::Read => Some(run.read_bytes).filter(|bytes| *bytes > 0)?,
        };
        let megabytes = bytes as f64 / 1e6;
        let seconds = self.seconds(direction)?;
        let of = |seconds: f64| megabytes / seconds.max(1e-9);
        let (min, max) = (of(seconds.max), of(seconds.min));
        Some(Spread { median: of(seconds.median), min, max })
    }

    /// Seconds from before the file is opened or created to the closed file, of the median run: with definitions, which is
    /// when HDF5 writes fill values.
    fn open_to_close(&self, direction: Direction) -> Option<f64> {
        Some(self.spread(direction, Phases::total)?.median).filter(|seconds| *seconds > 0.0)
    }

    /// How many times smaller its files are than what was written.
    pub fn compression(&self) -> Option<f64> {
        let run = self.runs.first().filter(|_| self.stored > 0)?;
        Some(run.bytes as f64 / self.stored as f64)
    }

    /// The run whose time of writing is the median one.
    fn typical(&self) -> Option<&Measurement> {
        let mut runs: Vec<&Measurement> = self.runs.iter().collect();
        runs.sort_by(|a, b| a.write.transfer().total_cmp(&b.write.transfer()));
        runs.get(runs.len() / 2).copied()
    }

    fn to_json(&self) -> Value {
        let direction = |direction| {
            let phase = |of: fn(&Phases) -> f64| self.spread(direction, of).map(|s| s.median);
            json!({
                "seconds": self.seconds(direction).map(spread_json),
                "mb_per_s": self.bandwidth(direction).map(spread_json),
                "total_seconds": self.spread(direction, Phases::total).map(spread_json),
                "phases": {
                    "open": phase(|p| p.open), "define": phase(|p| p.define),
                    "data": phase(|p| p.data), "sync": phase(|p| p.sync),
                    "close": phase(|p| p.close),
                },
            })
        };
        json!({
            "name": self.library.name(),
            "library": self.runs.first().map(|run| run.library.clone()),
            "fault": self.fault,
            "equal_data": self.equal,
            "stored_bytes": self.stored,
            "compression": self.compression(),
            "write": direction(Direction::Write),
            "read": direction(Direction::Read),
            "on_other_ranks": self.on_others.iter().map(|(ranks, measured)| json!({
                "ranks": ranks, "mb_per_s": mb_per_s(measured), "wrong": measured.wrong,
            })).collect::<Vec<_>>(),
            "runs": self.runs.iter().map(Measurement::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Megabytes (10^6) per second of one run's reading.
fn mb_per_s(measured: &Measurement) -> f64 {
    measured.read_bytes as f64 / 1e6 / measured.read.transfer().max(1e-9)
}

fn spread_json(spread: Spread) -> Value {
    json!({ "median": spread.median, "min": spread.min, "max": spread.max })
}

impl KernelReport {
    /// Esker's bandwidth over a peer's, of medians.
    pub fn ratio(&self, peer: &LibraryReport, direction: Direction) -> Option<f64> {
        let esker = self.libraries.first()?.bandwidth(direction)?.median;
        Some(esker / peer.bandwidth(direction)?.median.max(1e-9))
    }

    /// A peer's time from open to close over Esker's, of medians.
    pub fn whole_ratio(&self, peer: &LibraryReport, direction: Direction) -> Option<f64> {
        let esker = self.libraries.first()?.open_to_close(direction)?;
        Some(peer.open_to_close(direction)? / esker)
    }

    /// The smallest of both ratios over the ways to PnetCDF (its layers, queued or not) that took part, if there are several.
    fn over_the_best_way(&self, direction: Direction) -> Option<(f64, f64)> {
        let is_way = |library: &Library| match library {
            Library::Peer(peer) => peer.is_a_way_to_pnetcdf(),
            _ => false,
        };
        let ratios: Vec<(f64, f64)> = self
            .libraries
            .iter()
            .filter(|other| is_way(&other.library))
            .filter_map(|other| {
                Some((self.ratio(other, direction)?, self.whole_ratio(other, direction)?))
            })
            .collect();
        let least = |of: fn(&(f64, f64)) -> f64| ratios.iter().map(of).reduce(f64::min);
        Some((least(|r| r.0)?, least(|r| r.1)?)).filter(|_| ratios.len() > 1)
    }

    fn to_json(&self) -> Value {
        let mut peers = Map::new();
        let (esker, others) = match self.libraries.split_first() {
            Some((esker, others)) => (esker.to_json(), others),
            None => (Value::Null, &[][..]),
        };
        for other in others {
            let mut entry = Map::new();
            entry.insert("ratio_write".into(), json!(self.ratio(other, Direction::Write)));
            entry.insert("ratio_read".into(), json!(self.ratio(other, Direction::Read)));
            let whole = |direction| json!(self.whole_ratio(other, direction));
            entry.insert("ratio_write_open_to_close".into(), whole(Direction::Write));
            entry.insert("ratio_read_open_to_close".into(), whole(Direction::Read));
            if let Value::Object(rest) = other.to_json() {
                entry.extend(rest);
            }
            peers.insert(other.library.name().into(), Value::Object(entry));
        }
        json!({
            "kernel": self.kernel.name(),
            "over_the_best_way": {
                "write": self.over_the_best_way(Direction::Write).map(|(data, _)| data),
                "read": self.over_the_best_way(Direction::Read).map(|(data, _)| data),
                "write_open_to_close": self.over_the_best_way(Direction::Write).map(|(_, all)| all),
                "read_open_to_close": self.over_the_best_way(Direction::Read).map(|(_, all)| all),
            },
            "bytes": self.bytes,
            "runs": self.runs,
            "variables": self.variables,
            "esker": esker,
            "peers": peers,
        })
    }
}

impl Report {
    /// As JSON: for each kernel Esker's times, and for each peer its times with `ratio_write`
    /// and `ratio_read`, Esker's bandwidth over the peer's.
    pub fn to_json(&self) -> Value {
        json!({
            "machine": self.machine.to_json(),
            "ranks": self.ranks,
            "more_ranks_than_cores": self.ranks > self.machine.cores,
            "repeat": self.repeat,
            "sync": self.sync,
            "reading": self.reading.name(),
            "pipeline": self.pipeline,
            "kernels": self.kernels.iter().map(KernelReport::to_json).collect::<Vec<_>>(),
        })
    }

    /// Whether Esker itself failed in a kernel.
    pub fn esker_failed(&self) -> bool {
        let mut libraries = self.kernels.iter().flat_map(|kernel| &kernel.libraries);
        let is_esker = |library: Library| matches!(library, Library::Esker(..));
        libraries.any(|library| is_esker(library.library) && library.fault.is_some())
    }

    /// As a table for people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let sync = if self.sync { "with" } else { "without" };
        let read = match self.reading {
            Reading::Requests => "",
            Reading::Whole => "; read: whole variables",
            Reading::Planes => "; read: a plane of each variable",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", self.machine.sentence());
        let _ = writeln!(
            out,
            "{} ranks, {} runs each in turn, {sync} waiting for the disk; MB/s: median (min-max){read}",
            self.ranks, self.repeat
        );
        if self.ranks > self.machine.cores {
            let _ = writeln!(
                out,
                "more ranks than cores ({}): they take turns, and times depend on who waits how",
                self.machine.cores
            );
        }
        if let Some(pipeline) = &self.pipeline {
            let filters = if pipeline.is_empty() { "no filter" } else { pipeline };
            let _ = writeln!(
                out,
                "chunks with {filters}; MB/s are of the values as they are in memory, \
                 \"smaller\" is their size over the file's"
            );
        }
        for kernel in &self.kernels {
            kernel.add_to(&mut out);
        }
        out
    }
}

impl KernelReport {
    fn add_to(&self, out: &mut String) {
        let mib = self.bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            out,
            "\n{}: {mib:.1} MiB, {} variables, {} rows",
            self.kernel.name(),
            self.variables,
            self.runs
        );
        let _ = writeln!(
            out,
            "  {:<17} {:>22} {:>7} {:>22} {:>7} {:>12} {:>14} {:>8} {:>13}",
            "library",
            "write",
            "ratio",
            "read",
            "ratio",
            "open+define",
            "memory a rank",
            "smaller",
            "open-close"
        );
        for library in &self.libraries {
            let name = library.library.name();
            let (write, read) =
                (library.bandwidth(Direction::Write), library.bandwidth(Direction::Read));
            if write.is_some() || read.is_some() {
                let speed = |spread: Option<Spread>| match spread {
                    Some(s) => format!("{:.0} ({:.0}-{:.0})", s.median, s.min, s.max),
                    None => "–".into(),
                };
                let is_esker = std::ptr::eq(library, &self.libraries[0]);
                let ratio = |direction| match self.ratio(library, direction) {
                    Some(ratio) if !is_esker => format!("{ratio:.2}"),
                    _ => String::new(),
                };
                let whole = |library| {
                    let of = |direction| self.whole_ratio(library, direction);
                    match (of(Direction::Write), of(Direction::Read)) {
                        (Some(write), Some(read)) if !is_esker => format!("{write:.2} / {read:.2}"),
                        (Some(write), None) if !is_esker => format!("{write:.2} / –"),
                        _ => String::new(),
                    }
                };
                let start = library.spread(Direction::Write, |p| p.open + p.define);
                let memory = library.typical().map(|run| (run.peak_memory, run.own_memory));
                let (peak, own) = memory.unwrap_or((0, 0));
                let mib = |bytes: u64| bytes >> 20;
                let _ = writeln!(
                    out,
                    "  {name:<17} {:>22} {:>7} {:>22} {:>7} {:>9.1} ms {:>14} {:>8.2} {:>13}",
                    speed(write),
                    ratio(Direction::Write),
                    speed(read),
                    ratio(Direction::Read),
                    start.map_or(0.0, |s| s.median * 1e3),
                    format!("{} of {} MiB", mib(peak), mib(own)),
                    library.compression().unwrap_or(0.0),
                    whole(library),
                );
            }
            if !library.on_others.is_empty() {
                let one = |(ranks, measured): &(usize, Measurement)| {
                    format!("{:.0} MB/s on {ranks}", mb_per_s(measured))
                };
                let all: Vec<String> = library.on_others.iter().map(one).collect();
                let _ = writeln!(
                    out,
                    "  {name:<17} whole variables read and verified: {}",
                    all.join(", ")
                );
            }
            if let Some(fault) = &library.fault {
                let _ = writeln!(out, "  {name:<17} {fault}");
            }
        }
        let better =
            [("write", Direction::Write), ("read", Direction::Read)].map(|(what, direction)| {
                let (data, whole) = self.over_the_best_way(direction)?;
                Some(format!("{what} {data:.2} (open to close {whole:.2})"))
            });
        if better.iter().any(Option::is_some) {
            let better: Vec<String> = better.into_iter().flatten().collect();
            let _ = writeln!(out, "  over the best way to PnetCDF: {}", better.join(", "));
        }
        if let Some(run) = self.libraries.first().and_then(LibraryReport::typical) {
            for (what, report) in [("write", &run.write_report), ("read", &run.read_report)] {
                if let Some(sentence) = details(report) {
                    let _ = writeln!(out, "  {what}: {sentence}");
                }
            }
        }
    }
}

/// A line of what the library said: numbers as they are, times that are not nothing.
fn details(report: &Value) -> Option<String> {
    let mut parts = Vec::new();
    for (name, value) in report.as_object()? {
        match value {
            Value::String(text) => parts.push(text.clone()),
            Value::Object(times) => {
                let seconds = times.iter().filter_map(|(name, s)| Some((name, s.as_f64()?)));
                let seen = seconds.filter(|(_, s)| *s >= 0.00005);
                parts.extend(seen.map(|(name, s)| format!("{name} {:.1} ms", s * 1e3)));
            }
            Value::Number(n) if n.is_f64() => {
                parts.push(format!("{name} {:.2}", n.as_f64().unwrap_or(0.0)));
            }
            Value::Number(n) if n.as_u64() != Some(0) => parts.push(format!("{name} {n}")),
            _ => {}
        }
    }
    Some(parts.join(", "))
}
