//! An error-bounded codec for fields: interpolation from coarse to fine, what is left divided by
//! the bound, and the integers coded by what they are near.
//!
//! It follows SZ3 and its successors in the idea (multi-level interpolation, and finer steps on
//! coarse levels because everything is predicted from them), not in the format. `grid.rs` says
//! in what order and from what points are predicted, `rules.rs` chooses among predictions,
//! `quantise.rs` cuts what they leave to the bound, `entropy.rs` codes. `levels.rs` codes a field level by level.

mod entropy;
mod grid;
pub(crate) mod levels;
mod quantise;
mod rules;

use crate::error::Result;
use crate::fold::Folded;
use crate::reader::{Reader, put_varint};
use crate::real::Real;
use crate::special::{Specials, get_bits, put_bits};
use entropy::{Codes, Decoder};
use grid::{BANDS, CONTEXTS, Grid, walk};
use quantise::{Nothing, Quantiser, Rebuilder, Scale, TAPER, Taper};

/// All ordinary values are the same.
const CONSTANT: u8 = 0;
const CODED: u8 = 1;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers<T> {
    pub(crate) specials: Specials,
    rebuilt: Vec<T>,
    sizes: Vec<u8>,
    codes: Codes,
    literals: Vec<u64>,
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
    let rules = rules::choose(&grid, BANDS, values, specials, bound);
    rebuilt.clear();
    rebuilt.extend_from_slice(values);
    sizes.clear();
    sizes.resize(values.len(), 0);
    codes.clear();
    literals.clear();
    let (scale, prior) = (Scale::new(bound, TAPER, 0), Nothing);
    let mut quantiser =
        Quantiser { values, specials, fills, scale, prior, codes, literals, begin: 0 };
    walk(&grid, &rules, BANDS, rebuilt, sizes, &mut quantiser);

    out.extend_from_slice(&bound.to_bits().to_be_bytes());
    out.extend_from_slice(&[TAPER.ratio, TAPER.most]);
    rules::write(&rules, BANDS, &grid, out);
    put_varint(out, literals.len() as u64);
    literals.iter().for_each(|&bits| put_bits::<T>(out, bits));
    codes.write(CONTEXTS * BANDS, out);
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
    let rules = rules::read(reader, BANDS, &grid)?;
    let literals = reader.count(values.len(), "literals")?;
    let Buffers { specials, sizes, literals: kept, .. } = buffers;
    kept.clear();
    for _ in 0..literals {
        kept.push(get_bits::<T>(reader)?);
    }
    let mut rebuilder = Rebuilder {
        specials,
        scale: Scale::new(bound, Taper { ratio, most }, 0),
        prior: Nothing,
        codes: Decoder::new(reader, CONTEXTS * BANDS)?,
        literals: kept.iter(),
        missing: false,
        begin: 0,
    };
    sizes.clear();
    sizes.resize(values.len(), 0);
    walk(&grid, &rules, BANDS, values, sizes, &mut rebuilder);
    if !rebuilder.ended_well() {
        return Err(reader.damaged("the codes do not end where the chunk does"));
    }
    Ok(())
}
