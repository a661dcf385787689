//! Which rule predicts each group of points: found by trying them on a sample.

use super::grid::{BANDS, GROUPS, Grid, ORDER, Rule};
use crate::error::Result;
use crate::reader::Reader;
use crate::real::Number;
use crate::special::Specials;

/// One rule for each band of levels and each group.
pub(super) type Rules = [[Rule; GROUPS]; BANDS];

/// Points that are looked at for a rule. 8000 chose no better on the shared volumes.
const SAMPLE: usize = 2000;

pub(super) fn even() -> Rules {
    std::array::from_fn(|_| std::array::from_fn(|group| Rule::even(group, true)))
}

/// The rules that predict these values best when their errors are cut to `bound`; beyond `bands` the even ones.
pub(super) fn choose<T: Number>(
    grid: &Grid,
    bands: usize,
    values: &[T],
    specials: &Specials,
    bound: f64,
) -> Rules {
    let mut rules = even();
    let mut sample = Vec::with_capacity(SAMPLE);
    for (band, rules) in rules.iter_mut().enumerate().take(bands) {
        let step = 1 << band;
        for group in ORDER.into_iter().filter(|&group| grid.has(group, step)) {
            collect(grid, values, specials, group, step, &mut sample);
            if let Some(best) = best(group, &sample, bound) {
                rules[group] = best;
            }
        }
    }
    rules
}

/// The errors of linear and cubic interpolation in each dimension, at one point.
type Errors = [[f64; 2]; 4];

fn collect<T: Number>(
    grid: &Grid,
    values: &[T],
    specials: &Specials,
    group: usize,
    step: usize,
    sample: &mut Vec<Errors>,
) {
    sample.clear();
    let first = |dim: usize| if group >> dim & 1 == 1 { step } else { 0 };
    let counts: [usize; 4] =
        std::array::from_fn(|dim| (grid.len[dim] - first(dim)).div_ceil(2 * step));
    let total: usize = counts.iter().product();
    // A number of points that is odd, so that they do not fall into one plane.
    let jump = (total / SAMPLE.min(total / 16 + 64)) | 1;
    for mut point in (0..total).step_by(jump) {
        let mut at = [0; 4];
        for dim in (0..4).rev() {
            at[dim] = first(dim) + point % counts[dim] * 2 * step;
            point /= counts[dim];
        }
        let index: usize = (0..4).map(|dim| at[dim] * grid.stride[dim]).sum();
        let mut errors = [[0.0; 2]; 4];
        let mut usable = !specials.is(index);
        for dim in (0..4).filter(|dim| group >> dim & 1 == 1) {
            for cubic in [false, true] {
                let (taps, count, inside) = grid.along(dim, at[dim], step, cubic);
                let mut predicted = 0.0;
                for &(offset, weight) in &taps[..count] {
                    let near = index.wrapping_add_signed(offset);
                    usable &= !specials.is(near);
                    predicted += values[near].wide() * weight;
                }
                usable &= inside;
                errors[dim][usize::from(cubic)] = predicted - values[index].wide();
            }
        }
        if usable {
            sample.push(errors);
        }
    }
}

/// The variance of the errors of neighbours, as a share of the bound squared, that a rule is
/// charged with. Evenly spread errors would have 1 / 3; most are smaller, and 0.1 chose best on
/// the shared volumes (0 and 1 / 3 lost 10 and 36 % on the acoustic wave at a loose bound).
const NOISE: f64 = 0.1;

/// The sum of squares of the weights of linear and of cubic interpolation.
const SPREAD: [f64; 2] = [0.5, 0.640625];

fn best(group: usize, sample: &[Errors], bound: f64) -> Option<Rule> {
    if sample.len() < 16 {
        return None;
    }
    let dims = || (0..4).filter(|dim| group >> dim & 1 == 1);
    let mut candidates = Vec::with_capacity(12);
    for cubic in [true, false] {
        candidates.push(Rule::even(group, cubic));
        if group.count_ones() == 1 {
            continue;
        }
        let mut merit = [0.0; 4];
        for dim in dims() {
            candidates.push(Rule::even(1 << dim, cubic));
            let squares: f64 = sample.iter().map(|e| e[dim][usize::from(cubic)].powi(2)).sum();
            merit[dim] =
                1.0 / (squares / sample.len() as f64 + bound * bound / 3.0).max(f64::MIN_POSITIVE);
        }
        let most = merit.iter().copied().fold(0.0, f64::max);
        let shares = merit.map(|merit| (16.0 * merit / most).round() as u8);
        candidates.push(Rule { cubic, shares });
        // The same more decidedly: what is worse is often worse at the same points.
        let shares = merit.map(|merit| (16.0 * (merit / most).powi(2)).round() as u8);
        candidates.push(Rule { cubic, shares });
    }
    let price = |rule: &Rule| {
        let total: u32 = rule.shares.iter().map(|&share| u32::from(share)).sum();
        let share = rule.shares.map(|share| f64::from(share) / f64::from(total.max(1)));
        let kind = usize::from(rule.cubic);
        let spread: f64 = share.iter().map(|share| share * share * SPREAD[kind]).sum();
        let bits = |errors: &Errors| {
            let error: f64 = (0..4).map(|dim| errors[dim][kind] * share[dim]).sum();
            // Half of it would be the bits of the code; what the bound swallows costs nothing.
            (1.0 + (error * error + NOISE * spread * bound * bound) / (bound * bound)).log2()
        };
        sample.iter().map(bits).sum::<f64>()
    };
    // Squares of numbers near the largest are infinite, and their merits nothing.
    let sound = candidates.into_iter().filter(|rule| rule.shares != [0; 4]);
    let priced = sound.map(|rule| (price(&rule), rule));
    priced.filter(|(price, _)| price.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, r)| r)
}

/// For each of the bands a byte for two or four neighbours, and the shares where there is a choice.
pub(super) fn write(rules: &Rules, bands: usize, grid: &Grid, out: &mut Vec<u8>) {
    for (band, rules) in rules.iter().enumerate().take(bands) {
        for group in ORDER.into_iter().filter(|&group| grid.has(group, 1 << band)) {
            out.push(rules[group].cubic.into());
            if group.count_ones() > 1 {
                let dims = (0..4).filter(|dim| group >> dim & 1 == 1);
                out.extend(dims.map(|dim| rules[group].shares[dim]));
            }
        }
    }
}

pub(super) fn read(reader: &mut Reader<'_>, bands: usize, grid: &Grid) -> Result<Rules> {
    let mut rules = even();
    for (band, rules) in rules.iter_mut().enumerate().take(bands) {
        for group in ORDER.into_iter().filter(|&group| grid.has(group, 1 << band)) {
            let rule = &mut rules[group];
            rule.cubic = reader.byte()? != 0;
            if group.count_ones() > 1 {
                for dim in (0..4).filter(|dim| group >> dim & 1 == 1) {
                    rule.shares[dim] = reader.byte()?;
                }
            }
            if rule.shares == [0; 4] {
                return Err(reader.damaged("a group of points is predicted from nothing"));
            }
        }
    }
    Ok(rules)
}
