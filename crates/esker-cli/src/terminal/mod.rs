//! How things look: colour, tables, progress, pictures, JSON.

pub(crate) mod colour;
pub(crate) mod json;
pub(crate) mod picture;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod table;

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use colour::{Colour, Depth};
use esker_text::shown_lines;

/// Where a command's data go, and what is known about the place.
pub(crate) struct Screen {
    out: BufWriter<StdoutLock<'static>>,
    /// The colours that standard output shows.
    pub(crate) depth: Depth,
    /// How wide standard output is, when it is a terminal.
    pub(crate) width: Option<usize>,
    /// Whether a bar may be drawn on standard error.
    pub(crate) bars: bool,
}

impl Screen {
    /// Standard output and error as they are, with the user's wish for colour.
    pub(crate) fn new(colour: Colour) -> Screen {
        let terminal = io::stdout().is_terminal();
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(w, _)| usize::from(w.0));
        Screen {
            out: BufWriter::new(io::stdout().lock()),
            depth: Depth::choose(colour, terminal, |name| std::env::var(name).ok()),
            width: if terminal { Some(width.unwrap_or(80).max(20)) } else { None },
            bars: io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        }
    }

    /// A progress bar with this word before it.
    pub(crate) fn bar(&self, doing: impl Into<String>) -> progress::Bar {
        progress::Bar::new(self.bars, doing)
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Says a line on standard error, whatever names are in it. A closed standard error is nobody's concern.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{}", shown_lines(&line.to_string()));
}
