//! A progress bar on standard error, for a person who waits.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::quantity;
use super::table::{cut, printable};

/// How long a command may take before a bar appears: most are done by then.
const PATIENCE: Duration = Duration::from_millis(300);
/// How often the bar is drawn again at most.
const PAUSE: Duration = Duration::from_millis(100);
/// Cells of the bar itself.
const CELLS: usize = 24;

/// A bar that draws itself when there is a terminal to draw on, and goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Bar {
    shown: bool,
    doing: String,
    /// What is counted, if not bytes.
    unit: Option<&'static str>,
    begun: Instant,
    drawn: Option<Instant>,
}

impl Bar {
    /// A bar; `shown` is whether there is a terminal.
    pub(crate) fn new(shown: bool, doing: impl Into<String>) -> Bar {
        Bar { shown, doing: doing.into(), unit: None, begun: Instant::now(), drawn: None }
    }

    /// The same bar for a number of something else than bytes: `records`.
    pub(crate) fn counting(mut self, unit: &'static str) -> Bar {
        self.unit = Some(unit);
        self
    }

    /// Draws that `done` (bytes, unless others are counted) of `total` are done, if it is time to.
    pub(crate) fn update(&mut self, done: u64, total: u64) {
        let passed = self.begun.elapsed();
        if !self.shown || passed < PATIENCE || self.drawn.is_some_and(|d| d.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(w, _)| w.0);
        let line =
            cut(&line(&self.doing, self.unit, done, total, passed), usize::from(width).max(2) - 1);
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(doing: &str, unit: Option<&str>, done: u64, total: u64, passed: Duration) -> String {
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * CELLS as f64) as usize;
    let seconds = passed.as_secs_f64().max(1e-9);
    let speed = done as f64 / seconds;
    let left = match (total.saturating_sub(done) as f64 / speed) as u64 {
        _ if speed < f64::MIN_POSITIVE => String::new(),
        left => format!(", {} left", duration(left)),
    };
    let (doing, full, empty) = (printable(doing), "#".repeat(full), "-".repeat(CELLS - full));
    match unit {
        Some(unit) => format!("{doing} [{full}{empty}] {done} of {total} {unit}{left}"),
        None => {
            let (total, speed) = (quantity::bytes(total), quantity::bytes(speed as u64));
            format!("{doing} [{full}{empty}] {:3.0}% of {total}, {speed}/s{left}", share * 100.0)
        }
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_how_much_how_fast_and_how_long() {
        let text = line("reading tas", None, 500_000_000, 2_000_000_000, Duration::from_secs(1));
        let bar = "reading tas [######------------------]  25% of 2.00 GB, 500 MB/s, 3 s left";
        assert_eq!(text, bar);
        assert!(line("x", None, 0, 0, Duration::ZERO).contains("100%"));
        let text = line("writing", Some("records"), 3, 12, Duration::from_secs(1));
        assert_eq!(text, "writing [######------------------] 3 of 12 records, 3 s left");
        assert_eq!(duration(3725), "1 h 2 min");
    }

    #[test]
    fn nothing_is_drawn_where_nobody_looks() {
        let mut bar = Bar::new(false, "reading");
        bar.begun = Instant::now().checked_sub(Duration::from_secs(5)).unwrap_or(bar.begun);
        bar.update(1, 2);
        assert!(bar.drawn.is_none());
    }
}
