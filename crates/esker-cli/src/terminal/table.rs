//! Tables of text: columns as wide as their widest cell, numbers to the right.

use esker_text::shown;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::colour::Depth;

/// Which side a column's cells lean to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table that grows by rows. A column without any cell is left out.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub(crate) fn new<const N: usize>(columns: [(&str, Side); N]) -> Table {
        let columns = columns.into_iter().map(|(name, side)| (name.to_string(), side));
        Table { columns: columns.collect(), rows: Vec::new() }
    }

    /// Appends a row, one cell for each column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| printable(&cell)).into());
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table, each line indented by two. With a width, the last column is cut to it.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        depth: Depth,
        width: Option<usize>,
    ) -> io::Result<()> {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let wide = |column: usize, name: &str| match cells(column).map(|c| c.width()).max() {
            None | Some(0) => 0,
            Some(widest) => widest.max(name.width()),
        };
        let widths: Vec<usize> =
            self.columns.iter().enumerate().map(|(i, (name, _))| wide(i, name)).collect();
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut lines = vec![(self.line(&header, &widths), true)];
        lines.extend(self.rows.iter().map(|row| (self.line(row, &widths), false)));
        for (line, heading) in lines {
            let line = match width {
                Some(width) => cut_row(line.trim_end(), width),
                None => line.trim_end().to_string(),
            };
            if !line.is_empty() {
                writeln!(out, "{}", if heading { depth.faint(line) } else { line })?;
            }
        }
        Ok(())
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, (_, side)), width) in cells.iter().zip(&self.columns).zip(widths) {
            if *width == 0 {
                continue;
            }
            line.push_str("  ");
            let space = " ".repeat(width.saturating_sub(cell.width()));
            match side {
                Side::Left => line.extend([cell.as_str(), &space]),
                Side::Right => line.extend([space.as_str(), cell]),
            }
        }
        line
    }
}

/// The text with what a terminal would obey made visible, so that no file can steer it.
pub(crate) fn printable(text: &str) -> String {
    shown(text).to_string()
}

/// A row cut to this many columns; where nothing of a cell is left, it has no ellipsis either.
fn cut_row(row: &str, width: usize) -> String {
    let row = cut(row, width);
    let stump = row.strip_suffix('…').filter(|rest| rest.ends_with("  "));
    stump.map_or(row.clone(), |rest| rest.trim_end().to_string())
}

/// The text cut to this many columns, with an ellipsis when something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut short = String::new();
    for c in text.chars() {
        let mut longer = short.clone();
        longer.push(c);
        if longer.width() + 1 > width {
            break;
        }
        short = longer;
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table, width: Option<usize>) -> String {
        let mut out = Vec::new();
        table.write(&mut out, Depth::Plain, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let mut table =
            Table::new([("name", Side::Left), ("units", Side::Left), ("bytes", Side::Right)]);
        table.row(["温度".into(), String::new(), "1".into()]);
        table.row(["x".into(), String::new(), "12345678".into()]);
        assert_eq!(text(&table, None), "  name     bytes\n  温度         1\n  x     12345678\n");
    }

    #[test]
    fn a_narrow_terminal_cuts_lines() {
        let mut table = Table::new([("name", Side::Left)]);
        table.row(["abcdefghij".into()]);
        assert_eq!(text(&table, Some(8)), "  name\n  abcde…\n");
    }

    #[test]
    fn a_column_that_does_not_fit_leaves_no_trace() {
        let mut table = Table::new([("name", Side::Left), ("description", Side::Left)]);
        table.row(["abcd".into(), "of no use".into()]);
        assert_eq!(text(&table, Some(9)), "  name\n  abcd\n");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
    }
}
