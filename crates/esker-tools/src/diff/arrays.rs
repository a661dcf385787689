//! Values of files with chunks: box by box, so that each chunk is decoded once.

use esker::Selection;

use super::compare::Closeness;
use super::report::Report;
use super::structure::Pair;
use super::values::Tally;
use super::{DiffError, DiffOptions};
use crate::blocks::{Block, blocks};
use crate::boxes::{boxes, unit};
use crate::progress::Progress;
use crate::source::Source;

/// Compares the values of all pairs.
pub(super) fn compare(
    a: &Source,
    b: &Source,
    pairs: &[Pair],
    options: &DiffOptions,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), DiffError> {
    let DiffOptions { atol, rtol, nan_equal, .. } = *options;
    let closeness = Closeness { atol, rtol, nan_equal };
    let size = |pair: &Pair| {
        let width = a.dataset.variable(pair.first).map_or(0, |v| v.ty.size());
        pair.shape.iter().fold(width, |n, len| n.saturating_mul(*len))
    };
    let total = pairs.iter().map(size).fold(0, u64::saturating_add);
    let mut done = 0;
    for pair in pairs {
        let mut tally = Tally::new(pair, a, b, closeness, options.most)?;
        let chunk = |of: &Source, var| of.dataset.chunk_shape(var).map(<[u64]>::to_vec);
        let (first, second) = (chunk(a, pair.first), chunk(b, pair.second));
        let width = a.dataset.variable(pair.first)?.ty.size();
        let most = (options.buffer as u64 / 2 / width).max(1);
        let unit = unit(&pair.shape, first.as_deref(), second.as_deref(), most);
        for cut in boxes(&pair.shape, &unit, most) {
            let selection = Selection::slab(&cut.start, &cut.count);
            let x = a.dataset.get_values(pair.first, &selection)?.external_bytes();
            let y = b.dataset.get_values(pair.second, &selection)?.external_bytes();
            rows(&pair.shape, &cut, &mut |first, at, count| {
                let part = |bytes: &[u8]| {
                    let width = bytes.len() as u64 / cut.len();
                    (at * width) as usize..((at + count) * width) as usize
                };
                tally.block(first, &x[part(&x)], &y[part(&y)]);
            });
            done += cut.len() * width;
            progress.progress(done, total);
        }
        report.variables_compared += 1;
        report.values_compared += tally.found.compared;
        if tally.found.differing > 0 {
            // Boxes come in another order than values.
            tally.found.first.sort_by(|x, y| x.index.cmp(&y.index));
            report.values.push(tally.found);
        }
    }
    progress.progress(total, total);
    Ok(())
}

/// Calls `each` with stretches of a box whose elements follow each other in the array: the number of
/// the first in the array and in the box, and how many.
fn rows(shape: &[u64], cut: &Block, each: &mut dyn FnMut(u64, u64, u64)) {
    // Dimensions that the box has all of belong to the row.
    let mut inner = shape.len();
    let mut row = 1;
    while inner > 0 {
        row *= cut.count[inner - 1];
        inner -= 1;
        if cut.count[inner] < shape[inner] {
            break;
        }
    }
    let step: u64 = shape[inner.min(shape.len())..].iter().skip(1).product();
    for (number, outer) in blocks(&cut.count[..inner], 1).enumerate() {
        let index = outer.start.iter().zip(&cut.start).zip(shape);
        let flat = index.fold(0, |n, ((within, start), len)| n * len + start + within);
        let first = match shape.get(inner) {
            Some(len) => (flat * len + cut.start[inner]) * step,
            None => 0,
        };
        each(first, number as u64 * row, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_they_are_in_the_array() {
        let cut = Block { start: vec![1, 2, 0], count: vec![2, 2, 5] };
        let mut found = Vec::new();
        rows(&[4, 6, 5], &cut, &mut |first, at, count| found.push((first, at, count)));
        assert_eq!(found, [(40, 0, 10), (70, 10, 10)]);
        let cut = Block { start: vec![1, 3], count: vec![2, 2] };
        found.clear();
        rows(&[3, 5], &cut, &mut |first, at, count| found.push((first, at, count)));
        assert_eq!(found, [(8, 0, 2), (13, 2, 2)]);
        found.clear();
        rows(&[], &Block { start: vec![], count: vec![] }, &mut |f, a, n| found.push((f, a, n)));
        assert_eq!(found, [(0, 0, 1)]);
    }
}
