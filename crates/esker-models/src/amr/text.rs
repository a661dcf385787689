//! AMReX's text: words and boxes, with the line of each fault.

use std::path::{Path, PathBuf};

use super::cells::Cells;
use crate::error::{ModelError, Result};

/// The words of a text file; brackets and commas separate.
pub(super) struct Words<'t> {
    path: PathBuf,
    lines: Vec<&'t str>,
    line: usize,
    /// What is left of the current line.
    rest: &'t str,
}

impl<'t> Words<'t> {
    pub(super) fn new(path: &Path, text: &'t str) -> Words<'t> {
        let lines: Vec<&str> = text.lines().collect();
        let rest = lines.first().copied().unwrap_or("");
        Words { path: path.to_path_buf(), lines, line: 0, rest }
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> ModelError {
        ModelError::stored(&self.path, format!("line {}", self.line + 1), what)
    }

    /// The rest of the current line, and goes to the next one.
    pub(super) fn line(&mut self) -> Result<&'t str> {
        if self.line >= self.lines.len() {
            return Err(self.wrong("the file ends here"));
        }
        let rest = self.rest;
        self.line += 1;
        self.rest = self.lines.get(self.line).copied().unwrap_or("");
        Ok(rest)
    }

    /// The next word.
    pub(super) fn word(&mut self) -> Result<&'t str> {
        let separates = |c: char| c.is_ascii_whitespace() || "(),".contains(c);
        loop {
            let rest = self.rest.trim_start_matches(separates);
            if !rest.is_empty() {
                let end = rest.find(separates).unwrap_or(rest.len());
                self.rest = &rest[end..];
                return Ok(&rest[..end]);
            }
            if self.line + 1 >= self.lines.len() {
                return Err(self.wrong("the file ends here"));
            }
            self.line()?;
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.word()?;
        word.parse().map_err(|_| self.wrong(format!("{what}: {word:?} is not such a number")))
    }

    /// A count of things that take at least a byte each of the text.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let count: usize = self.number(what)?;
        let left: usize = self.lines.iter().skip(self.line).map(|line| line.len() + 1).sum();
        match count <= left {
            true => Ok(count),
            false => Err(self.wrong(format!("{what} is {count}, but {left} bytes are left"))),
        }
    }

    /// `((0,0,0) (15,15,15) (0,0,0))`
    pub(super) fn cells(&mut self, dims: usize) -> Result<Cells> {
        let mut corners = [[0i64; 3]; 3];
        for corner in &mut corners {
            for slot in corner.iter_mut().take(dims) {
                *slot = self.number("a corner of a box")?;
            }
        }
        if corners[2] != [0; 3] {
            return Err(self.wrong("the box is not of cells: data on faces or nodes are not read"));
        }
        let [lo, hi, _] = corners;
        let empty = || self.wrong(format!("the box from {lo:?} to {hi:?} has no cells"));
        Cells::new(lo, hi).ok_or_else(empty)
    }
}
