//! A plane of numbers as a picture made of characters.
//!
//! With colour a character cell shows two values, one above the other (an upper half block in
//! one colour on a ground of another); without colour, one value as a letter that is darker or
//! lighter. A terminal's cell is about twice as high as wide, so both come out square.

use std::io::{self, Write};

use super::colour::{Depth, Rgb};
use super::quantity::general;

/// Letters from light to dark, for terminals without colour; a missing value is blank.
const SHADES: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// A plane: rows from top to bottom; `NaN` where a value is missing.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    values: Vec<f64>,
    rows: usize,
    columns: usize,
}

impl Plane {
    /// A plane of these rows and columns; `None` when the values are not that many.
    pub(crate) fn new(values: Vec<f64>, rows: usize, columns: usize) -> Option<Plane> {
        let whole = rows > 0 && columns > 0 && rows.checked_mul(columns) == Some(values.len());
        whole.then_some(Plane { values, rows, columns })
    }

    /// The plane upside down: latitudes usually grow, and north belongs on top.
    pub(crate) fn flipped(mut self) -> Plane {
        let rows: Vec<&[f64]> = self.values.chunks(self.columns).rev().collect();
        self.values = rows.concat();
        self
    }

    /// The smallest and the largest value.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let finite = self.values.iter().copied().filter(|v| v.is_finite());
        finite.fold(None, |range, v| match range {
            None => Some((v, v)),
            Some((low, high)) => Some((v.min(low), v.max(high))),
        })
    }

    /// The plane with other numbers of rows and columns: each new value is the mean of the
    /// values it covers, missing when none is there.
    fn resampled(&self, rows: usize, columns: usize) -> Plane {
        let span = |i: usize, new: usize, old: usize| {
            let first = i * old / new;
            first..((i + 1) * old / new).max(first + 1)
        };
        let mut values = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let (mut sum, mut count) = (0.0, 0u32);
                for y in span(row, rows, self.rows) {
                    for x in span(column, columns, self.columns) {
                        let value = self.values[y * self.columns + x];
                        if value.is_finite() {
                            sum += value;
                            count += 1;
                        }
                    }
                }
                values.push(if count == 0 { f64::NAN } else { sum / f64::from(count) });
            }
        }
        Plane { values, rows, columns }
    }

    /// Draws the plane at most `width` characters wide, with a scale below it.
    pub(crate) fn draw(
        &self,
        out: &mut impl Write,
        depth: Depth,
        width: usize,
        units: &str,
    ) -> io::Result<()> {
        let Some((low, high)) = self.range() else {
            return writeln!(out, "  (every value is missing)");
        };
        let columns = self.columns.min(width.saturating_sub(2)).max(1);
        // Cells are twice as high as wide: two values in each with colour, one without.
        let rows = (self.rows * columns).div_ceil(self.columns).clamp(1, 4 * columns);
        let rows = if depth == Depth::Plain { rows.div_ceil(2) } else { rows.next_multiple_of(2) };
        let small = self.resampled(rows, columns);
        let share = |v: f64| if high > low { (v - low) / (high - low) } else { 0.5 };
        let lines: Vec<&[f64]> = small.values.chunks(columns).collect();
        match depth {
            Depth::Plain => {
                for line in lines {
                    let text: String = line.iter().map(|v| shade(*v, share)).collect();
                    writeln!(out, "  {}", text.trim_end())?;
                }
            }
            _ => {
                for pair in lines.chunks(2) {
                    write!(out, "  ")?;
                    let below = pair.get(1).copied().unwrap_or(&[]);
                    let above = pair.first().copied().unwrap_or(&[]);
                    for (top, bottom) in above.iter().zip(below) {
                        write!(out, "{}", cell(depth, *top, *bottom, share))?;
                    }
                    writeln!(out, "\x1b[0m")?;
                }
            }
        }
        scale(out, depth, columns, low, high, units)
    }
}

fn shade(value: f64, share: impl Fn(f64) -> f64) -> char {
    if !value.is_finite() {
        return ' ';
    }
    let place = (share(value) * SHADES.len() as f64) as usize;
    SHADES[place.min(SHADES.len() - 1)]
}

/// Two values in one cell. A missing value shows the terminal's own ground.
fn cell(depth: Depth, top: f64, bottom: f64, share: impl Fn(f64) -> f64) -> String {
    let colour = |v: f64| v.is_finite().then(|| Rgb::viridis(share(v)));
    match (colour(top), colour(bottom)) {
        (None, None) => "\x1b[0m ".to_string(),
        (Some(top), None) => format!("\x1b[0m{}▀", ink(depth, 38, top)),
        (None, Some(bottom)) => format!("\x1b[0m{}▄", ink(depth, 38, bottom)),
        (Some(top), Some(bottom)) => format!("{}{}▀", ink(depth, 38, top), ink(depth, 48, bottom)),
    }
}

/// The sequence that sets a colour: `plane` is 38 for the letter and 48 for its ground.
fn ink(depth: Depth, plane: u8, colour: Rgb) -> String {
    match depth {
        Depth::Plain => String::new(),
        Depth::Indexed => format!("\x1b[{plane};5;{}m", colour.indexed()),
        Depth::True => format!("\x1b[{plane};2;{};{};{}m", colour.0, colour.1, colour.2),
    }
}

fn scale(
    out: &mut impl Write,
    depth: Depth,
    columns: usize,
    low: f64,
    high: f64,
    units: &str,
) -> io::Result<()> {
    let cells = columns.clamp(1, 32);
    let bar: String = (0..cells)
        .map(|i| {
            let share = if cells == 1 { 0.5 } else { i as f64 / (cells - 1) as f64 };
            match depth {
                Depth::Plain => shade(share, |v| v).to_string(),
                _ => format!("{}█", ink(depth, 38, Rgb::viridis(share))),
            }
        })
        .collect();
    let end = if depth == Depth::Plain { "" } else { "\x1b[0m" };
    let units = if units.is_empty() { String::new() } else { format!(" {units}") };
    writeln!(out, "  {} {bar}{end} {}{units}", general(low, 4), general(high, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(plane: &Plane, depth: Depth, width: usize) -> String {
        let mut out = Vec::new();
        plane.draw(&mut out, depth, width, "K").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_colour_the_picture_is_plain_letters() {
        let plane = Plane::new((0..40).map(f64::from).collect(), 4, 10).unwrap();
        let text = drawn(&plane, Depth::Plain, 80);
        assert!(text.is_ascii(), "{text}");
        assert_eq!(text.lines().count(), 3, "two rows of letters and the scale:\n{text}");
        assert!(text.ends_with("39 K\n"), "{text}");
    }

    #[test]
    fn with_colour_a_cell_holds_two_values() {
        let plane = Plane::new(vec![0.0, 1.0, 1.0, 0.0], 2, 2).unwrap();
        let text = drawn(&plane, Depth::True, 80);
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "  \x1b[38;2;68;1;84m\x1b[48;2;253;231;37m▀\x1b[38;2;253;231;37m\x1b[48;2;68;1;84m▀\x1b[0m"
        );
        assert!(drawn(&plane, Depth::Indexed, 80).contains("\x1b[38;5;"));
    }

    #[test]
    fn a_missing_value_has_no_colour() {
        let plane = Plane::new(vec![f64::NAN, f64::NAN, 1.0, 0.0], 2, 2).unwrap();
        assert!(drawn(&plane, Depth::True, 80).lines().next().unwrap().contains('▄'));
        let empty = Plane::new(vec![f64::NAN], 1, 1).unwrap();
        assert!(drawn(&empty, Depth::True, 80).contains("missing"));
    }

    #[test]
    fn a_wide_plane_fits_the_terminal() {
        let plane = Plane::new(vec![1.0; 1000 * 500], 500, 1000).unwrap();
        for line in drawn(&plane, Depth::Plain, 60).lines() {
            assert!(line.chars().count() <= 60);
        }
    }

    #[test]
    fn the_mean_of_what_is_there_is_shown() {
        let plane = Plane::new(vec![1.0, 3.0, f64::NAN, f64::NAN], 2, 2).unwrap();
        let small = plane.resampled(1, 1);
        assert_eq!(small.values, [2.0]);
    }

    #[test]
    fn north_can_be_put_on_top() {
        let plane = Plane::new(vec![1.0, 2.0, 3.0, 4.0], 2, 2).unwrap().flipped();
        assert_eq!(plane.values, [3.0, 4.0, 1.0, 2.0]);
        assert!(Plane::new(vec![1.0], 2, 2).is_none());
    }
}
