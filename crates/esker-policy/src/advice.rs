//! Which layout suits the reads best, and after how many of them reorganizing has paid.

use crate::reading::{Costs, Layout, Span, work};

/// A kind of read of an array, and how often it comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// How much it takes along each dimension.
    pub spans: Vec<Span>,
    /// How often.
    pub times: f64,
}

/// An array to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its lengths.
    pub shape: Vec<u64>,
    /// Bytes of an element.
    pub element: u64,
}

/// What a layout is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// Which of the given layouts.
    pub layout: usize,
    /// Seconds that one read of each kind takes, the mean over its places.
    pub each: Vec<f64>,
    /// Seconds that all reads take.
    pub seconds: f64,
    /// Seconds that making the layout takes; 0 for the one that is there.
    pub cost: f64,
    /// How often all reads have to come until it has paid; `None`: never, or it is the layout that is there.
    pub pays_after: Option<f64>,
}

/// Ranks layouts by the seconds that all reads take, the fastest first. `current` is the number of the layout that is
/// there; making another one takes reading all of that once, and `write_per_byte` seconds for each byte.
pub fn rank(
    array: &Array,
    layouts: &[Layout],
    current: usize,
    reads: &[Reads],
    costs: &Costs,
    write_per_byte: f64,
) -> Vec<Advice> {
    let each = |layout: &Layout| -> Vec<f64> {
        reads.iter().map(|reads| mean_seconds(array, layout, &reads.spans, costs)).collect()
    };
    let sum =
        |each: &[f64]| each.iter().zip(reads).map(|(each, reads)| each * reads.times).sum::<f64>();
    let now = layouts.get(current);
    let now_takes = now.map(|layout| sum(&each(layout)));
    let whole = vec![Span::All; array.shape.len()];
    let bytes: f64 =
        array.shape.iter().map(|length| *length as f64).product::<f64>() * array.element as f64;
    let making =
        now.map_or(0.0, |now| mean_seconds(array, now, &whole, costs)) + bytes * write_per_byte;
    let mut advice: Vec<Advice> = layouts
        .iter()
        .enumerate()
        .map(|(layout, stored)| {
            let each = each(stored);
            let seconds = sum(&each);
            let cost = if layout == current { 0.0 } else { making };
            let gain = now_takes.map_or(0.0, |now| now - seconds);
            let pays_after = (layout != current && gain > 0.0).then(|| cost / gain);
            Advice { layout, each, seconds, cost, pays_after }
        })
        .collect();
    advice.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    advice
}

/// Places at which a read is looked at along each dimension that it does not take whole.
const PLACES: [f64; 3] = [0.13, 0.5, 0.83];

/// The mean seconds of a read over some places where it may lie.
pub fn mean_seconds(array: &Array, layout: &Layout, spans: &[Span], costs: &Costs) -> f64 {
    let counts: Vec<u64> = array
        .shape
        .iter()
        .enumerate()
        .map(|(dim, length)| spans.get(dim).map_or(*length, |span| span.of(*length)))
        .collect();
    let mean = PLACES.iter().map(|place| {
        let start = array.shape.iter().zip(&counts);
        let start: Vec<u64> = start
            .map(|(length, count)| (length.saturating_sub(*count) as f64 * place) as u64)
            .collect();
        work(layout, &array.shape, &start, &counts, array.element, costs).seconds(costs)
    });
    mean.sum::<f64>() / PLACES.len() as f64
}
