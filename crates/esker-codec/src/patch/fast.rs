//! Levels by ZFP: of what the guess from the coarser level leaves, by parity of coordinates.
//!
//! A guess is better at points that are known in some dimensions, so what it leaves jumps between neighbours; points of
//! the same parity are a smooth field again. Each of these fields is a part of its own. Where values jump, guesses
//! are worse than none, and ZFP gets the level itself; some small boxes tell.

use esker_format::ExternalType;
use zfp_rs::ZfpConfig;

use super::lattice::Part;
use crate::error::Result;
use crate::fold::fold;
use crate::reader::{Reader, put_varint};
use crate::real::Real;
use crate::sz::levels::Target;
use crate::zfp::{Buffers, Scalar};

/// The level is stored in parts by parity, of what the guess leaves.
const PARTS: u8 = 0;
/// The level is one part, without a guess.
const WHOLE: u8 = 1;

/// All points of the part are as guessed.
const GUESSED: u8 = 0;
/// ZFP's stream and corrections.
const PACKED: u8 = 1;
/// Elements, big-endian.
const PLAIN: u8 = 2;

/// Tolerances as shares of the bound, loosest first: ZFP makes much less error than it may.
const SHARES: [f64; 7] = [16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.125];
/// Where the search begins in a patch.
const FIRST: usize = 2;

/// Appends the parts of a level. `field` holds the guess, and then the level as a reader has it.
#[allow(clippy::too_many_arguments)]
pub(super) fn encode<T: Real + Scalar>(
    parts: &[Part],
    shape: &[usize],
    ty: ExternalType,
    target: &Target<'_, T>,
    bound: f64,
    field: &mut [T],
    buffers: &mut Buffers,
    out: &mut Vec<u8>,
) -> Result<()> {
    let whole = [Part::whole(shape)];
    let parts = if parts.len() > 1 && whole_is_smaller(parts, shape, target, bound, field, buffers)
    {
        out.push(WHOLE);
        field.fill(T::default());
        &whole
    } else {
        out.push(PARTS);
        parts
    };
    let mut begin = FIRST;
    let (mut exact, mut guess, mut places, mut packed) = (vec![], vec![], vec![], Vec::new());
    let all: Vec<u32> = (0..target.values.len() as u32).collect();
    for part in parts {
        part.gather(shape, target.values, &mut exact);
        part.gather(shape, field, &mut guess);
        part.gather(shape, &all, &mut places);
        clean(&mut guess);
        let special = |i: usize| target.specials.is(places[i] as usize);
        let strain = |i: usize, x: T, left: T| {
            if special(i) {
                return 0.0;
            }
            let rebuilt = guess[i] + left;
            let error = (rebuilt.wide() - x.wide()).abs();
            // The comparison decides; the quotient is only for the choice of tolerance.
            if error <= bound && !target.fills.contains(&rebuilt.bits()) {
                (error / bound).min(1.0)
            } else {
                f64::INFINITY
            }
        };
        let nothing = T::default();
        packed.clear();
        if exact.iter().enumerate().all(|(i, &x)| strain(i, x, nothing) <= 1.0) {
            packed.push(GUESSED);
        } else {
            buffers.smooth.reset(ty, exact.len());
            let smooth = buffers.smooth.typed_mut::<T>();
            for (i, left) in smooth.iter_mut().enumerate() {
                let leaves = exact[i] - guess[i];
                *left = if special(i) || !leaves.wide().is_finite() { nothing } else { leaves };
            }
            let config = |&share: &f64| ZfpConfig::fixed_accuracy(bound * share);
            let configs: Vec<ZfpConfig> = SHARES[begin..].iter().map(config).collect();
            let looser: Vec<ZfpConfig> = SHARES[..begin].iter().rev().map(config).collect();
            packed.push(PACKED);
            let folded = fold(&part.shape);
            match buffers.pack(&configs, &looser, folded, &exact, strain, &mut packed) {
                Some(chosen) => {
                    begin = begin.saturating_add_signed(chosen).min(SHARES.len() - 1);
                }
                None => {
                    packed.clear();
                    packed.push(PLAIN);
                    exact.iter().for_each(|&x| x.to_be(&mut packed));
                }
            }
        }
        put_varint(out, packed.len() as u64);
        out.extend_from_slice(&packed);
        decode_part(part, shape, &packed, &mut guess, field, buffers)?;
    }
    Ok(())
}

/// Rebuilds a level in `field`, which holds the guess.
pub(super) fn decode<T: Real + Scalar>(
    parts: &[Part],
    shape: &[usize],
    reader: &mut Reader<'_>,
    field: &mut [T],
    buffers: &mut Buffers,
) -> Result<()> {
    let whole = [Part::whole(shape)];
    let parts = match reader.byte()? {
        PARTS => parts,
        WHOLE => {
            field.fill(T::default());
            &whole
        }
        other => return Err(reader.damaged(format!("a level has no form {other}"))),
    };
    let mut guess = Vec::new();
    for part in parts {
        part.gather(shape, field, &mut guess);
        clean(&mut guess);
        decode_part(part, shape, reader.part()?, &mut guess, field, buffers)?;
    }
    reader.end()
}

/// The length of boxes that are tried, in dimensions with room for two.
const TRIED: usize = 16;

/// Whether ZFP makes less of the level itself than of what the guess leaves, in boxes here and there.
fn whole_is_smaller<T: Real + Scalar>(
    parts: &[Part],
    shape: &[usize],
    target: &Target<'_, T>,
    bound: f64,
    guess: &[T],
    buffers: &mut Buffers,
) -> bool {
    let config = ZfpConfig::fixed_accuracy(bound * SHARES[FIRST]);
    let mut boxes = vec![(Vec::new(), Vec::new())];
    for &len in shape {
        let room = len >= 2 * TRIED && boxes.len() < 16;
        let starts = if room { vec![len / 4 - 8, len * 3 / 4 - 8] } else { vec![0] };
        let with = |(first, tried): &(Vec<usize>, Vec<usize>)| {
            let next = |&start: &usize| {
                // Even, so that parities are those of the level.
                let (mut first, mut tried) = (first.clone(), tried.clone());
                first.push(start / 4 * 4);
                tried.push(if room { TRIED } else { len.min(2 * TRIED) });
                (first, tried)
            };
            starts.iter().map(next).collect::<Vec<_>>()
        };
        boxes = boxes.iter().flat_map(with).collect();
    }
    let (mut values, mut guesses, mut places, mut some) = (vec![], vec![], vec![], Vec::new());
    let all: Vec<u32> = (0..target.values.len() as u32).collect();
    let (mut of_whole, mut of_parts) = (0, 0);
    for (first, tried) in boxes {
        let part = Part { first, step: 1, shape: tried };
        part.gather(shape, target.values, &mut values);
        part.gather(shape, guess, &mut guesses);
        part.gather(shape, &all, &mut places);
        clean(&mut guesses);
        for (i, &place) in places.iter().enumerate() {
            let leaves = values[i] - guesses[i];
            if target.specials.is(place as usize) || !leaves.wide().is_finite() {
                (values[i], guesses[i]) = (T::default(), T::default());
            } else {
                guesses[i] = leaves;
            }
        }
        of_whole += buffers.length(&config, fold(&part.shape), &values);
        // The even part comes first, and is left out where it is known.
        let by_parity: Vec<Part> = Part::parities(&part.shape).collect();
        for parity in by_parity.iter().skip(usize::from(parts.len() % 2 == 1)) {
            parity.gather(&part.shape, &guesses, &mut some);
            of_parts += buffers.length(&config, fold(&parity.shape), &some);
        }
    }
    of_whole < of_parts
}

/// ZFP cannot have what is not finite, and neither can a guess that others are made from.
fn clean<T: Real>(guess: &mut [T]) {
    for x in guess {
        if !x.wide().is_finite() {
            *x = T::default();
        }
    }
}

fn decode_part<T: Real + Scalar>(
    part: &Part,
    shape: &[usize],
    packed: &[u8],
    guess: &mut Vec<T>,
    field: &mut [T],
    buffers: &mut Buffers,
) -> Result<()> {
    let mut reader = Reader::new("patch", packed);
    match reader.byte()? {
        GUESSED => reader.end()?,
        PACKED => {
            let mut left = vec![T::default(); guess.len()];
            buffers.unpack(&mut reader, fold(&part.shape), &mut left, |left| {
                left.iter_mut().zip(guess.iter()).for_each(|(left, &guess)| *left = guess + *left);
            })?;
            *guess = left;
        }
        PLAIN => {
            for x in guess.iter_mut() {
                *x = T::from_be(reader.take(size_of::<T>())?);
            }
            reader.end()?;
        }
        other => return Err(reader.damaged(format!("there is no form {other} of a part"))),
    }
    part.scatter(shape, guess, field);
    Ok(())
}
