//! Where in a variable printing stands: rows along the fastest dimension, and what comes
//! between them.

use esker_format::runs::advance;

use super::decimal::put_u64;
use super::lines::Lines;
use super::text::put_name;
use crate::cdl::options::{Annotation, IndexStyle};

/// Counts values and writes what stands before rows, between values and after rows.
pub(super) struct Rows<'a> {
    name: &'a str,
    shape: &'a [u64],
    annotation: Annotation,
    /// Indices of the slower dimensions of the current row.
    corner: Vec<u64>,
    /// Values in a row.
    columns: u64,
    /// Values of this row that are printed.
    column: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(name: &'a str, shape: &'a [u64], annotation: Annotation) -> Rows<'a> {
        let columns = shape.last().copied().unwrap_or(1);
        let corner = vec![0; shape.len().saturating_sub(1)];
        Rows { name, shape, annotation, corner, columns, column: 0 }
    }

    /// How many values the row still takes.
    pub(super) fn left_in_row(&self) -> u64 {
        self.columns - self.column
    }

    /// How many values of the row are printed.
    pub(super) fn column(&self) -> u64 {
        self.column
    }

    /// Whether nothing of the row is printed yet.
    pub(super) fn at_row_start(&self) -> bool {
        self.column == 0
    }

    /// Writes what stands before a row.
    pub(super) fn begin_row(&self, lines: &mut Lines<'_>) {
        let Annotation::Brief(style) = self.annotation else { return };
        if self.shape.len() < 2 {
            return;
        }
        lines.raw(b"// ");
        put_name(lines.buffer(), self.name);
        lines.raw(b"(");
        let out = lines.buffer();
        match style {
            IndexStyle::C => {
                for &index in &self.corner {
                    put_u64(out, index);
                    out.push(b',');
                }
                if self.columns == 1 {
                    out.push(b'0');
                } else {
                    out.extend_from_slice(b" 0-");
                    put_u64(out, self.columns - 1);
                }
            }
            IndexStyle::Fortran => {
                out.push(b'1');
                if self.columns != 1 {
                    out.push(b'-');
                    put_u64(out, self.columns);
                    out.push(b' ');
                }
                for &index in self.corner.iter().rev() {
                    out.push(b',');
                    put_u64(out, index + 1);
                }
            }
        }
        lines.raw(b")\n    ");
        lines.set_place(4);
    }

    /// Says that `count` more values of the row are printed.
    pub(super) fn advance(&mut self, count: u64) {
        self.column += count;
    }

    /// The style of comments after values, if they are wanted.
    pub(super) fn full(&self) -> Option<IndexStyle> {
        match self.annotation {
            Annotation::Full(style) => Some(style),
            _ => None,
        }
    }

    /// Writes the comment that tells the indices of the value printed last.
    pub(super) fn comment(&self, lines: &mut Lines<'_>, style: IndexStyle, column: u64) {
        lines.raw(b"  // ");
        put_name(lines.buffer(), self.name);
        let out = lines.buffer();
        out.push(b'(');
        match style {
            IndexStyle::C => {
                for &index in &self.corner {
                    put_u64(out, index);
                    out.push(b',');
                }
                put_u64(out, column);
            }
            IndexStyle::Fortran => {
                put_u64(out, column + 1);
                for &index in self.corner.iter().rev() {
                    out.push(b',');
                    put_u64(out, index + 1);
                }
            }
        }
        out.extend_from_slice(b")\n    ");
    }

    /// Writes what stands after a full row and goes to the next.
    pub(super) fn end_row(&mut self, lines: &mut Lines<'_>) {
        let slower = &self.shape[..self.corner.len()];
        let last = self.corner.iter().zip(slower).all(|(index, len)| index + 1 == *len);
        if let Some(style) = self.full() {
            lines.raw(if last { b";" } else { b"," });
            self.comment(lines, style, self.columns - 1);
        } else if last {
            lines.short(b" ;");
            lines.short(b"\n");
        } else {
            lines.short(b",\n");
            lines.short(b"  ");
        }
        self.column = 0;
        advance(&mut self.corner, slower);
    }
}
