//! The picture: bars of bandwidth, for each kernel and library.

use std::fmt::Write;

use crate::report::{Direction, Report, Spread};

const PANEL_HEIGHT: f64 = 220.0;
const BAR: f64 = 26.0;
const GAP: f64 = 26.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 76.0;
const BETWEEN: f64 = 70.0;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072B2", "#E69F00", "#999999", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];

/// Draws the report: a panel for writing and one for reading.
pub fn draw(report: &Report) -> String {
    let group = BAR * report.libraries.len() as f64 + GAP;
    let width = (LEFT + group * report.kernels.len() as f64 + 24.0).max(560.0);
    let height = TOP + 2.0 * (PANEL_HEIGHT + BETWEEN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = format!("{} ranks: bandwidth of writing and reading", report.ranks);
    text(&mut out, 12.0, 22.0, "start", &title);
    text(&mut out, 12.0, 40.0, "start", &report.machine.sentence());
    let mut x = 12.0;
    for (i, library) in report.libraries.iter().enumerate() {
        rectangle(&mut out, x, 51.0, 10.0, 10.0, i);
        text(&mut out, x + 15.0, 60.0, "start", library.name());
        x += 35.0 + 8.0 * library.name().len() as f64;
    }
    let panels = [
        (Direction::Write, "writing, MB/s (logarithmic)"),
        (Direction::Read, "reading, MB/s (logarithmic)"),
    ];
    for (i, (direction, label)) in panels.into_iter().enumerate() {
        let top = TOP + 20.0 + i as f64 * (PANEL_HEIGHT + BETWEEN);
        panel(&mut out, report, direction, label, top, width);
    }
    out.push_str("</svg>\n");
    out
}

fn panel(
    out: &mut String,
    report: &Report,
    direction: Direction,
    label: &str,
    top: f64,
    width: f64,
) {
    let bars = |kernel: usize| {
        let libraries = report.kernels[kernel].libraries.iter();
        libraries.map(|library| library.bandwidth(direction))
    };
    let all = (0..report.kernels.len()).flat_map(bars).flatten();
    let seen: Vec<Spread> = all.collect();
    let least = seen.iter().map(|bar| bar.min).fold(f64::INFINITY, f64::min).clamp(1.0, 1e6);
    let most = seen.iter().map(|bar| bar.max).fold(least, f64::max);
    // Kernels are a hundred times apart: a logarithmic scale, a decade below the slowest.
    let (low, high) = (least.log10().floor(), (most * 1.3).log10());
    let (low, high) = (if least.log10() - low < 0.3 { low - 1.0 } else { low }, high);
    let bottom = top + PANEL_HEIGHT;
    let y = |value: f64| {
        bottom - (value.max(1e-9).log10() - low).max(0.0) / (high - low) * PANEL_HEIGHT
    };
    text(out, 12.0, top - 8.0, "start", label);
    for decade in low as i32..=high as i32 {
        for factor in [1.0, 2.0, 5.0] {
            let value = factor * 10f64.powi(decade);
            if value.log10() > high {
                continue;
            }
            let at = y(value);
            let end = width - 12.0;
            let _ = writeln!(out, "<path d=\"M{LEFT:.1} {at:.1}H{end:.1}\" stroke=\"#ddd\"/>");
            text(out, LEFT - 6.0, at + 4.0, "end", &format!("{value}"));
        }
    }
    let group = BAR * report.libraries.len() as f64 + GAP;
    for (k, kernel) in report.kernels.iter().enumerate() {
        let left = LEFT + GAP / 2.0 + k as f64 * group;
        for (i, bar) in bars(k).enumerate() {
            let x = left + i as f64 * BAR;
            let Some(Spread { median, min, max }) = bar else {
                text(out, x + BAR / 2.0, bottom - 4.0, "middle", "–");
                continue;
            };
            rectangle(out, x + 1.0, y(median), BAR - 2.0, bottom - y(median), i);
            let middle = x + BAR / 2.0;
            let _ = writeln!(
                out,
                "<path d=\"M{middle:.1} {:.1}V{:.1}\" stroke=\"black\"/>",
                y(min),
                y(max)
            );
            let _ = writeln!(
                out,
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"9\">{median:.0}</text>",
                y(max) - 3.0
            );
        }
        let middle = left + (group - GAP) / 2.0;
        text(out, middle, bottom + 16.0, "middle", kernel.kernel.name());
    }
}

fn rectangle(out: &mut String, x: f64, y: f64, width: f64, height: f64, colour: usize) {
    let colour = COLOURS[colour % COLOURS.len()];
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
        height.max(0.5)
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}
