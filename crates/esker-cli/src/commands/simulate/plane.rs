//! A plane of an array as SVG, as in the paper's Figure 8: blocks in the colours of their ranks, and what they merge into.

use std::fmt::Write;

use esker_policy::boxes::{BoxRef, Boxes};
use esker_policy::cluster::cluster;
use esker_tools::simulate::{MergeError, Merging};

/// Width of each half, in units of the picture.
const SIDE: f64 = 480.0;

/// Ranks that are drawn at most: a plane of more has smaller blocks than one can see.
const MOST_RANKS: u64 = 4096;

/// The last two dimensions at the first index of all others: blocks at the left, each rank's cuboids at the right.
pub(super) fn picture(merging: &Merging) -> Result<String, MergeError> {
    let array = merging.dealt.array();
    let dims = array.len();
    let (rows, columns) = (if dims > 1 { array[dims - 2] } else { 1 }, array[dims - 1]);
    let scale = SIDE / rows.max(columns) as f64;
    let (width, height) = (columns as f64 * scale, rows as f64 * scale);
    let mut drawing = [String::new(), String::new()];
    for rank in 0..merging.dealt.ranks().min(MOST_RANKS) {
        let mut boxes = Boxes::new(dims);
        merging.dealt.boxes(rank..rank + 1, &mut boxes)?;
        let merged = cluster(&boxes, &merging.limits)?;
        let of_blocks = boxes.iter().filter_map(|one| rectangle(one, scale, rank));
        drawing[0].extend(of_blocks);
        drawing[1].extend(merged.cuboids().filter_map(|one| rectangle(one, scale, rank)));
    }
    let mut svg = String::new();
    let (all, tall) = (2.0 * width + 60.0, height + 60.0);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all:.0} {tall:.0}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    let titles = ["blocks, in the colours of their ranks", "what each rank merges them into"];
    for (at, (title, drawing)) in titles.iter().zip(&drawing).enumerate() {
        let left = 20.0 + at as f64 * (width + 20.0);
        let _ = writeln!(svg, "<text x=\"{left:.0}\" y=\"24\">{title}</text>");
        let _ = writeln!(svg, "<g transform=\"translate({left:.0} 40)\">\n{drawing}</g>");
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Where a box meets the plane.
fn rectangle(one: BoxRef<'_>, scale: f64, rank: u64) -> Option<String> {
    let ranges: Vec<(u64, u64)> = one.ranges().collect();
    let (plane, columns) = ranges.split_last().map(|(last, others)| (others, *last))?;
    let (others, rows) =
        plane.split_last().map_or((plane, (0, 1)), |(rows, others)| (others, *rows));
    others.iter().all(|(start, _)| *start == 0).then(|| {
        let place = |(start, end): (u64, u64)| (start as f64 * scale, (end - start) as f64 * scale);
        let ((x, width), (y, height)) = (place(columns), place(rows));
        // Hues of neighbouring ranks are far apart.
        let hue = rank * 137 % 360;
        format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" \
             fill=\"hsl({hue} 60% 75%)\" stroke=\"black\" stroke-width=\"0.6\"/>\n"
        )
    })
}
