//! The picture of a plan: a bar for each schedule, made of what its time is.

use std::fmt::Write;

use esker_adjoint::schedule::Forecast;

use crate::terminal::quantity::{duration, grouped};

const LEFT: f64 = 110.0;
const WIDTH: f64 = 560.0;
const BAR: f64 = 22.0;
const GAP: f64 = 10.0;
const TOP: f64 = 64.0;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
const PARTS: [(&str, &str); 3] =
    [("#0072B2", "each step once"), ("#E69F00", "computed again"), ("#999999", "waiting")];

/// Draws the schedules from top to bottom.
pub(super) fn draw(steps: u64, schedules: &[Forecast]) -> String {
    let height = TOP + schedules.len() as f64 * (BAR + GAP) + 12.0;
    let width = LEFT + WIDTH + 120.0;
    let longest = schedules.iter().map(Forecast::seconds).fold(f64::MIN_POSITIVE, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = format!("Predicted time of an adjoint run of {} steps", grouped(steps));
    text(&mut out, 12.0, 22.0, &title);
    for (i, (colour, name)) in PARTS.iter().enumerate() {
        let x = LEFT + 140.0 * i as f64;
        rectangle(&mut out, x, 36.0, 10.0, 10.0, colour);
        text(&mut out, x + 15.0, 45.0, name);
    }
    for (i, found) in schedules.iter().enumerate() {
        let y = TOP + i as f64 * (BAR + GAP);
        text(&mut out, 12.0, y + BAR * 0.7, found.schedule);
        let mut x = LEFT;
        let parts = [found.needed, found.again, found.waiting];
        for (seconds, (colour, _)) in parts.into_iter().zip(PARTS) {
            let long = seconds / longest * WIDTH;
            rectangle(&mut out, x, y, long, BAR, colour);
            x += long;
        }
        text(&mut out, x + 8.0, y + BAR * 0.7, &duration(found.seconds()));
    }
    out.push_str("</svg>\n");
    out
}

fn rectangle(out: &mut String, x: f64, y: f64, width: f64, height: f64, colour: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
    );
}

/// None of the words comes from a user.
fn text(out: &mut String, x: f64, y: f64, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}
