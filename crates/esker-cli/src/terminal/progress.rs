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
    begun: Instant,
    drawn: Option<Instant>,
}

impl Bar {
    /// A bar; `shown` is whether there is a terminal.
    pub(crate) fn new(shown: bool, doing: impl Into<String>) -> Bar {
        Bar { shown, doing: doing.into(), begun: Instant::now(), drawn: None }
    }

    /// Draws that `done` bytes of `total` are done, if it is time to.
    pub(crate) fn update(&mut self, done: u64, total: u64) {
        let passed = self.begun.elapsed();
        if !self.shown || passed < PATIENCE || self.drawn.is_some_and(|d| d.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(w, _)| w.0);
        let line = cut(&line(&self.doing, done, total, passed), usize::from(width).max(2) - 1);
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

fn line(doing: &str, done: u64, total: u64, passed: Duration) -> String {
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * CELLS as f64) as usize;
    let seconds = passed.as_secs_f64().max(1e-9);
    let speed = (done as f64 / seconds) as u64;
    let left = total.saturating_sub(done).checked_div(speed);
    let left = left.map_or(String::new(), |s| format!(", {} left", duration(s)));
    format!(
        "{} [{}{}] {:3.0}% of {}, {}/s{left}",
        printable(doing),
        "#".repeat(full),
        "-".repeat(CELLS - full),
        share * 100.0,
        quantity::bytes(total),
        quantity::bytes(speed),
    )
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
        let text = line("reading tas", 500_000_000, 2_000_000_000, Duration::from_secs(1));
        let bar = "reading tas [######------------------]  25% of 2.00 GB, 500 MB/s, 3 s left";
        assert_eq!(text, bar);
        assert!(line("x", 0, 0, Duration::ZERO).contains("100%"));
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
