//! An error-bounded codec for fields: interpolation from coarse to fine, what is left divided by
//! the bound, and the integers coded by what they are near.
//!
//! It follows SZ3 and its successors in the idea (multi-level interpolation, and finer steps on
//! coarse levels because everything is predicted from them), not in the format. `grid.rs` says
//! in what order and from what points are predicted, `rules.rs` chooses among predictions,
//! `entropy.rs` codes.

mod entropy;
mod grid;
mod rules;

use crate::error::Result;
use crate::fold::Folded;
use crate::reader::{Reader, put_varint};
use crate::real::Real;
use crate::special::{Specials, get_bits, put_bits};
use entropy::{Codes, Decoder};
use grid::{BANDS, CONTEXTS, Grid, Visit, walk};

/// All ordinary values are the same.
const CONSTANT: u8 = 0;
const CODED: u8 = 1;

/// Codes beyond this are not worth it: the element is stored.
const LARGEST: f64 = (entropy::LARGEST / 2 - 1) as f64;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers<T> {
    pub(crate) specials: Specials,
    rebuilt: Vec<T>,
    sizes: Vec<u8>,
    codes: Codes,
    literals: Vec<u64>,
}

/// How much finer coarse levels are coded: on level l the bound is divided by
/// `min(ratio^(l-1), most)`, both in eighths.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Taper {
    ratio: u8,
    most: u8,
}

impl Taper {
    fn divisor(self, level: usize) -> f64 {
        let (ratio, most) = (f64::from(self.ratio) / 8.0, f64::from(self.most) / 8.0);
        let mut divisor = 1.0;
        for _ in 1..level {
            divisor *= ratio;
            if divisor >= most {
                return most;
            }
        }
        divisor
    }
}

/// On the shared volumes this costs at most 4 % of the bytes at the same largest error and gains 0.2
/// to 5 dB; it has about SZ3's PSNR.
const TAPER: Taper = Taper { ratio: 12, most: 16 };

/// Quantises what predictions leave.
struct Quantiser<'a, T> {
    values: &'a [T],
    specials: &'a Specials,
    fills: &'a [u64],
    bound: f64,
    taper: Taper,
    step: f64,
    per_step: f64,
    codes: &'a mut Codes,
    literals: &'a mut Vec<u64>,
}

/// What stands at the place of a special value.
#[inline(always)]
fn stand_in<T: Real>(predicted: f64) -> T {
    let value = T::narrow(predicted);
    if value.wide().is_finite() { value } else { T::default() }
}

/// The size of a literal's code, for contexts.
const LITERAL_SIZE: u8 = 64;

impl<T: Real> Visit<T> for Quantiser<'_, T> {
    fn level(&mut self, level: usize) {
        self.step = 2.0 * (self.bound / self.taper.divisor(level));
        self.per_step = 1.0 / self.step;
    }

    #[inline(always)]
    fn point(&mut self, index: usize, predicted: f64, context: usize) -> (T, u8) {
        if self.specials.is(index) {
            return (stand_in(predicted), 0);
        }
        let value = self.values[index];
        let steps = (value.wide() - predicted) * self.per_step;
        let code = (steps + 0.5f64.copysign(steps)) as i32;
        let rebuilt = T::narrow(predicted + f64::from(code) * self.step);
        // This is the check of the bound, on what a reader will see.
        let kept = (rebuilt.wide() - value.wide()).abs() <= self.bound;
        if kept && steps.abs() < LARGEST && !self.fills.contains(&rebuilt.bits()) {
            self.codes.push(context, ((code << 1) ^ (code >> 31)) as u32);
            return (rebuilt, code.unsigned_abs().min(255) as u8);
        }
        self.codes.push_literal(context);
        self.literals.push(value.bits());
        (value, LITERAL_SIZE)
    }
}

/// Appends the coded field. The bound holds at every element that is not special.
pub(crate) fn encode<T: Real>(
    shape: Folded,
    values: &[T],
    fills: &[u64],
    bound: f64,
    buffers: &mut Buffers<T>,
    out: &mut Vec<u8>,
) {
    let Buffers { specials, rebuilt, sizes, codes, literals } = buffers;
    let mut ordinary = values.iter().enumerate().filter(|(i, _)| !specials.is(*i)).map(|(_, x)| x);
    let first = ordinary.next().map_or(0, |x| x.bits());
    if ordinary.all(|x| x.bits() == first) {
        out.push(CONSTANT);
        put_bits::<T>(out, first);
        return;
    }
    out.push(CODED);
    let grid = Grid::new(shape);
    let rules = rules::choose(&grid, values, specials, bound);
    rebuilt.clear();
    rebuilt.extend_from_slice(values);
    sizes.clear();
    sizes.resize(values.len(), 0);
    codes.clear();
    literals.clear();
    let taper = TAPER;
    let (step, per_step) = (0.0, 0.0);
    let mut quantiser =
        Quantiser { values, specials, fills, bound, taper, step, per_step, codes, literals };
    walk(&grid, &rules, rebuilt, sizes, &mut quantiser);

    out.extend_from_slice(&bound.to_bits().to_be_bytes());
    out.extend_from_slice(&[taper.ratio, taper.most]);
    rules::write(&rules, &grid, out);
    put_varint(out, literals.len() as u64);
    literals.iter().for_each(|&bits| put_bits::<T>(out, bits));
    codes.write(CONTEXTS * BANDS, out);
}

/// Rebuilds values from codes.
struct Rebuilder<'a, 'b, T> {
    specials: &'a Specials,
    bound: f64,
    taper: Taper,
    step: f64,
    codes: Decoder<'b>,
    literals: std::slice::Iter<'a, u64>,
    missing: bool,
    kind: std::marker::PhantomData<T>,
}

impl<T: Real> Visit<T> for Rebuilder<'_, '_, T> {
    fn level(&mut self, level: usize) {
        self.step = 2.0 * (self.bound / self.taper.divisor(level));
    }

    #[inline(always)]
    fn point(&mut self, index: usize, predicted: f64, context: usize) -> (T, u8) {
        if self.specials.is(index) {
            return (stand_in(predicted), 0);
        }
        match self.codes.next(context) {
            Some(code) => {
                let code = (code >> 1) as i32 ^ -((code & 1) as i32);
                let rebuilt = T::narrow(predicted + f64::from(code) * self.step);
                (rebuilt, code.unsigned_abs().min(255) as u8)
            }
            None => {
                let literal = self.literals.next();
                self.missing |= literal.is_none();
                (T::from_bits(literal.copied().unwrap_or(0)), LITERAL_SIZE)
            }
        }
    }

    fn failed(&self) -> bool {
        self.missing || self.codes.over()
    }
}

/// Rebuilds the field; special values have been read and are put in later by the caller.
pub(crate) fn decode<T: Real>(
    shape: Folded,
    reader: &mut Reader<'_>,
    values: &mut [T],
    buffers: &mut Buffers<T>,
) -> Result<()> {
    let kind = reader.byte()?;
    if kind == CONSTANT {
        values.fill(T::from_bits(get_bits::<T>(reader)?));
        return reader.end();
    }
    if kind != CODED {
        return Err(reader.damaged(format!("there is no form {kind}")));
    }
    let grid = Grid::new(shape);
    let bound = f64::from_bits(reader.u64()?);
    let (ratio, most) = (reader.byte()?, reader.byte()?);
    let rules = rules::read(reader, &grid)?;
    let literals = reader.count(values.len(), "literals")?;
    let Buffers { specials, sizes, literals: kept, .. } = buffers;
    kept.clear();
    for _ in 0..literals {
        kept.push(get_bits::<T>(reader)?);
    }
    let mut rebuilder = Rebuilder {
        specials,
        bound,
        taper: Taper { ratio, most },
        step: 0.0,
        codes: Decoder::new(reader, CONTEXTS * BANDS)?,
        literals: kept.iter(),
        missing: false,
        kind: std::marker::PhantomData,
    };
    sizes.clear();
    sizes.resize(values.len(), 0);
    walk(&grid, &rules, values, sizes, &mut rebuilder);
    if rebuilder.missing || rebuilder.literals.len() > 0 || !rebuilder.codes.ended_well() {
        return Err(reader.damaged("the codes do not end where the chunk does"));
    }
    Ok(())
}
