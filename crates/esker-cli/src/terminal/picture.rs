//! A plane of numbers as a picture made of characters.
//!
//! With colour a character cell shows two values, one above the other (an upper half block in
//! one colour on a ground of another); without colour, one value as a letter. A terminal's cell
//! is about twice as high as wide, so both come out square.

use std::io::{self, Write};

use super::colour::{Depth, Rgb};
use super::quantity::general;
use super::table::cut;

/// Letters from low to high, for terminals without colour, and one for what is missing.
const SHADES: [char; 7] = ['=', '-', '~', ' ', '.', 'o', 'O'];
const MISSING: char = '#';

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

    /// The plane with other numbers of rows and columns: each new value is the mean of the
    /// values it covers, missing when most of them are.
    fn resampled(&self, rows: usize, columns: usize) -> Plane {
        let span = |i: usize, new: usize, old: usize| {
            let first = i * old / new;
            first..((i + 1) * old / new).max(first + 1)
        };
        let mut values = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let (mut sum, mut count, mut missing) = (0.0, 0u32, 0u32);
                for y in span(row, rows, self.rows) {
                    for x in span(column, columns, self.columns) {
                        let value = self.values[y * self.columns + x];
                        if value.is_finite() {
                            sum += value;
                            count += 1;
                        } else {
                            missing += 1;
                        }
                    }
                }
                values.push(if missing > count { f64::NAN } else { sum / f64::from(count) });
            }
        }
        Plane { values, rows, columns }
    }

    /// How many characters high the plane is when it is so many wide.
    fn lines(&self, columns: usize) -> usize {
        // Cells are twice as high as wide.
        (self.rows * columns).div_ceil(2 * self.columns).clamp(1, 2 * columns)
    }

    /// The plane as lines of `columns` characters.
    fn drawn(&self, depth: Depth, columns: usize, scale: &Scale) -> Vec<String> {
        let lines = self.lines(columns);
        if depth == Depth::Plain {
            let small = self.resampled(lines, columns);
            let letters = |line: &[f64]| line.iter().map(|v| scale.letter(*v)).collect();
            return small.values.chunks(columns).map(letters).collect();
        }
        let small = self.resampled(2 * lines, columns);
        let rows: Vec<&[f64]> = small.values.chunks(columns).collect();
        let line = |pair: &[&[f64]]| {
            let [above, below] = pair else { return String::new() };
            let cells = above.iter().zip(*below);
            let cell = |(top, bottom): (&f64, &f64)| {
                let (top, bottom) = (scale.colour(*top), scale.colour(*bottom));
                format!("{}{}▀", ink(depth, 38, top), ink(depth, 48, bottom))
            };
            cells.map(cell).collect::<String>() + "\x1b[0m"
        };
        rows.chunks(2).map(line).collect()
    }
}

/// How values become colours: symmetric about zero, finer near it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Values beyond this look like it.
    limit: f64,
}

impl Scale {
    /// A scale from `-limit` to `limit`.
    pub(crate) fn new(limit: f64) -> Scale {
        Scale { limit }
    }

    /// The place of a value between 0 and 1; the root shows what is small.
    fn share(&self, value: f64) -> f64 {
        0.5 + 0.5 * value.signum() * (value.abs() / self.limit).sqrt().min(1.0)
    }

    fn letter(&self, value: f64) -> char {
        if !value.is_finite() {
            return MISSING;
        }
        let place = (self.share(value) * SHADES.len() as f64) as usize;
        SHADES[place.min(SHADES.len() - 1)]
    }

    fn colour(&self, value: f64) -> Rgb {
        if value.is_finite() { Rgb::waves(self.share(value)) } else { Rgb::LAND }
    }

    /// Draws the scale, with a name for what is missing.
    pub(crate) fn draw(
        &self,
        out: &mut impl Write,
        depth: Depth,
        units: &str,
        missing: &str,
    ) -> io::Result<()> {
        let cells = if depth == Depth::Plain { SHADES.len() } else { 24 };
        let cell = |i: usize| {
            let share = (i as f64 + 0.5) / cells as f64;
            match depth {
                Depth::Plain => SHADES[i.min(SHADES.len() - 1)].to_string(),
                _ => format!("{}█", ink(depth, 38, Rgb::waves(share))),
            }
        };
        let bar: String = (0..cells).map(cell).collect();
        let (quote, end) = if depth == Depth::Plain { ("\"", "") } else { ("", "\x1b[0m") };
        let land = match depth {
            Depth::Plain => MISSING.to_string(),
            _ => format!("{}██{end}", ink(depth, 38, Rgb::LAND)),
        };
        let limit = general(self.limit, 3);
        writeln!(out, "  -{limit} {quote}{bar}{end}{quote} +{limit} {units}   {land} {missing}")
    }
}

/// A plane with words above it.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) plane: Plane,
}

/// Draws panels side by side, `across` in a row, within `width` characters.
pub(crate) fn panels(
    out: &mut impl Write,
    depth: Depth,
    panels: &[Panel],
    across: usize,
    width: usize,
    scale: &Scale,
) -> io::Result<()> {
    let across = across.max(1);
    // Two characters before each, and none is drawn with more than twice the usual width.
    let columns = (width / across).saturating_sub(2).clamp(1, 76);
    for row in panels.chunks(across) {
        let title = |panel: &Panel| format!("  {:columns$}", cut(&panel.title, columns));
        let titles: String = row.iter().map(title).collect();
        writeln!(out, "{}", depth.faint(titles.trim_end()))?;
        let drawn: Vec<Vec<String>> =
            row.iter().map(|panel| panel.plane.drawn(depth, columns, scale)).collect();
        for line in 0..drawn.iter().map(Vec::len).max().unwrap_or(0) {
            let pieces = drawn.iter().filter_map(|lines| lines.get(line));
            let text: String = pieces.map(|piece| format!("  {piece}")).collect();
            writeln!(out, "{}", text.trim_end())?;
        }
    }
    Ok(())
}

/// The sequence that sets a colour: `plane` is 38 for the letter and 48 for its ground.
fn ink(depth: Depth, plane: u8, colour: Rgb) -> String {
    match depth {
        Depth::Plain => String::new(),
        Depth::Indexed => format!("\x1b[{plane};5;{}m", colour.indexed()),
        Depth::True => format!("\x1b[{plane};2;{};{};{}m", colour.0, colour.1, colour.2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(plane: Plane, depth: Depth, width: usize) -> String {
        let mut out = Vec::new();
        let shown = [Panel { title: "now".into(), plane }];
        panels(&mut out, depth, &shown, 1, width, &Scale::new(1.0)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_colour_the_picture_is_plain_letters() {
        let plane = Plane::new((0..40).map(|i| f64::from(i) - 20.0).collect(), 4, 10).unwrap();
        let text = drawn(plane, Depth::Plain, 12);
        assert_eq!(text, "  now\n  ==========\n  OOOOOOOOOO\n");
    }

    #[test]
    fn with_colour_a_cell_holds_two_values() {
        let plane = Plane::new(vec![-2.0, 0.0, f64::NAN, 2.0], 2, 2).unwrap();
        let text = drawn(plane.clone(), Depth::True, 4);
        let ink = |plane, colour| ink(Depth::True, plane, colour);
        let cell = |top, bottom| format!("{}{}▀", ink(38, top), ink(48, bottom));
        let line = cell(Rgb::waves(0.0), Rgb::LAND) + &cell(Rgb::waves(0.5), Rgb::waves(1.0));
        assert_eq!(text.lines().nth(1), Some(format!("  {line}\x1b[0m").as_str()));
        assert!(drawn(plane, Depth::Indexed, 4).contains("\x1b[38;5;"));
    }

    #[test]
    fn panels_stand_side_by_side_within_the_terminal() {
        let plane = Plane::new(vec![1.0; 1000 * 500], 500, 1000).unwrap();
        let panel = || Panel { title: "a long title of a panel".into(), plane: plane.clone() };
        let mut out = Vec::new();
        let shown = [panel(), panel(), panel()];
        panels(&mut out, Depth::Plain, &shown, 2, 61, &Scale::new(1.0)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 61), "{text}");
        assert_eq!(text.lines().count(), 2 * (1 + 7), "two rows of panels:\n{text}");
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
