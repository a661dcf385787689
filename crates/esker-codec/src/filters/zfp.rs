//! zfp: blocks of 4^d numbers, transformed and cut off bit plane by bit plane.
//!
//! ZFP's own parameter is no proof of the bound: what it gives back is compared with every
//! element here. It also makes much less error than it is allowed (0.12 to 0.26 of it on real
//! fields), so twice the tolerance is tried first, and then more or less as the errors tell, until
//! almost all elements keep the bound; the others are stored as corrections.

use esker_format::ExternalType;
use esker_format::values::default_fill_bytes;
use zfp_rs::{ZfpConfig, ZfpScalarType, ZfpStreamAlignment};

use super::{Described, PackingFilter, Site};
use crate::bound::{Bound, is_positive, positive};
use crate::elements::Elements;
use crate::error::{CodecError, Result};
use crate::fold::{Folded, fold};
use crate::reader::{Reader, put_varint};
use crate::real::{Real, fill_bits};
use crate::scratch::Tools;
use crate::special::Specials;
use crate::zfp::{Buffers, Scalar, dimensionality};

const NAME: &str = "zfp";
const WHAT: &str =
    "it takes accuracy=, rel=, rate= (bits for a value), precision= (bit planes) or reversible";

pub(crate) struct Zfp;

#[derive(Clone, Copy)]
enum Mode {
    Bounded(Bound),
    Rate(f64),
    Precision(u32),
    Reversible,
}

impl Mode {
    fn of(params: &[u64]) -> Option<Mode> {
        let real = |bits: u64| Some(f64::from_bits(bits)).filter(|&value| is_positive(value));
        match *params {
            [1, bits] => Some(Mode::Bounded(Bound::Absolute(real(bits)?))),
            [2, bits] => Some(Mode::Bounded(Bound::Relative(real(bits)?))),
            [3, bits] => Some(Mode::Rate(real(bits)?)).filter(|_| f64::from_bits(bits) <= 64.0),
            [4, planes @ 1..=64] => Some(Mode::Precision(planes as u32)),
            [5] => Some(Mode::Reversible),
            _ => None,
        }
    }
}

impl Described for Zfp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_lossless(&self, params: &[u64]) -> bool {
        params == [5]
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        let params = match words {
            ["reversible"] => Some(vec![5]),
            [word] => word.split_once('=').and_then(|(key, value)| match key {
                "accuracy" => Some(vec![1, positive(value)?.to_bits()]),
                "rel" => Some(vec![2, positive(value)?.to_bits()]),
                "rate" => Some(vec![3, positive(value)?.to_bits()]),
                "precision" => Some(vec![4, value.parse().ok()?]),
                _ => None,
            }),
            _ => None,
        };
        params.filter(|params| Mode::of(params).is_some()).ok_or_else(|| WHAT.into())
    }

    fn show(&self, params: &[u64]) -> String {
        match Mode::of(params) {
            Some(Mode::Bounded(Bound::Absolute(bound))) => format!(",accuracy={bound:?}"),
            Some(Mode::Bounded(Bound::Relative(share))) => format!(",rel={share:?}"),
            Some(Mode::Rate(rate)) => format!(",rate={rate}"),
            Some(Mode::Precision(planes)) => format!(",precision={planes}"),
            Some(Mode::Reversible) => ",reversible".into(),
            None => format!(",{params:?}"),
        }
    }

    fn check(&self, params: &[u64], site: &Site<'_>) -> std::result::Result<(), String> {
        let mode = Mode::of(params).ok_or(WHAT)?;
        match (scalar(site.ty), mode) {
            (None, _) => Err(format!("it packs float, double, int and int64, not {}", site.ty)),
            (Some(ZfpScalarType::I32 | ZfpScalarType::I64), Mode::Bounded(_)) => {
                Err("a bound of error is for floating-point numbers; use zfp,reversible or pco"
                    .into())
            }
            _ => Ok(()),
        }
    }
}

fn scalar(ty: ExternalType) -> Option<ZfpScalarType> {
    match ty {
        ExternalType::Float => Some(ZfpScalarType::F32),
        ExternalType::Double => Some(ZfpScalarType::F64),
        ExternalType::Int => Some(ZfpScalarType::I32),
        ExternalType::Int64 => Some(ZfpScalarType::I64),
        _ => None,
    }
}

/// Copies `values` to `smooth` with a neighbour's value at the places of special ones.
fn smoothen<T: Real>(values: &[T], specials: &Specials, smooth: &mut [T]) {
    smooth.copy_from_slice(values);
    let classes = specials.classes();
    let Some(first) = classes.iter().position(|&class| class == 0) else {
        if !classes.is_empty() {
            smooth.fill(T::default());
        }
        return;
    };
    let mut last = values[first];
    for (x, &class) in smooth.iter_mut().zip(classes) {
        if class == 0 {
            last = *x;
        } else {
            *x = last;
        }
    }
}

/// The modes to try, the loosest first. A bound is given as it is; the tolerance begins at twice
/// of it.
fn configs(mode: Mode, bound: f64, ty: ZfpScalarType, shape: Folded) -> Result<Vec<ZfpConfig>> {
    let failed = |error: &dyn std::fmt::Display| CodecError::failed(NAME, error);
    Ok(match mode {
        Mode::Bounded(_) if bound > 0.0 => {
            [2.0, 1.0, 0.5, 0.125].map(|share| ZfpConfig::fixed_accuracy(bound * share)).to_vec()
        }
        Mode::Bounded(_) | Mode::Reversible => vec![ZfpConfig::reversible()],
        Mode::Precision(planes) => vec![ZfpConfig::fixed_precision(planes)],
        Mode::Rate(rate) => {
            let dims = dimensionality(shape);
            let config = ZfpConfig::fixed_rate(rate, ty, dims, ZfpStreamAlignment::Unaligned);
            vec![config.map_err(|error| failed(&error))?]
        }
    })
}

fn pack_reals<T: Real + Scalar>(
    mode: Mode,
    site: &Site<'_>,
    ty: ZfpScalarType,
    elements: &Elements,
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<bool> {
    let values = elements.typed::<T>();
    let shape = fold(site.shape);
    tools.with(|buffers: &mut Buffers, tools| {
        let own = fill_bits::<T>(site.fill);
        let default = fill_bits::<T>(Some(&default_fill_bytes(site.ty)));
        let fills: Vec<u64> = own.into_iter().chain(default).collect();
        let mut specials = std::mem::take(&mut buffers.specials);
        specials.find(values, &fills);
        let bound = match mode {
            Mode::Bounded(bound) => bound.resolve(values, &specials),
            _ => 0.0,
        };
        specials.write::<T>(out, tools)?;
        buffers.smooth.reset(elements.ty(), values.len());
        smoothen(values, &specials, buffers.smooth.typed_mut::<T>());
        let configs = configs(mode, bound, ty, shape)?;
        let looser = match mode {
            Mode::Bounded(_) if bound > 0.0 => {
                [4.0, 8.0].map(|share| ZfpConfig::fixed_accuracy(bound * share)).to_vec()
            }
            _ => Vec::new(),
        };
        let strain = |i: usize, x: T, y: T| {
            if specials.is(i) || x.same(y) {
                return 0.0;
            }
            if fills.contains(&y.bits()) {
                return f64::INFINITY;
            }
            match mode {
                Mode::Bounded(_) => {
                    let error = (y.wide() - x.wide()).abs();
                    // The comparison decides; the quotient is only for the choice of tolerance.
                    if error <= bound { (error / bound).min(1.0) } else { f64::INFINITY }
                }
                Mode::Rate(_) | Mode::Precision(_) if y.wide().is_finite() => 1.0,
                Mode::Rate(_) | Mode::Precision(_) | Mode::Reversible => f64::INFINITY,
            }
        };
        let packed = buffers.pack(&configs, &looser, shape, values, strain, out);
        buffers.specials = specials;
        Ok(packed.is_some())
    })
}

fn pack_integers<T: Scalar>(
    mode: Mode,
    site: &Site<'_>,
    ty: ZfpScalarType,
    elements: &Elements,
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<bool> {
    let shape = fold(site.shape);
    let configs = configs(mode, 0.0, ty, shape)?;
    tools.with(|buffers: &mut Buffers, _| {
        put_varint(out, 0);
        buffers.smooth.reset(elements.ty(), elements.len());
        buffers.smooth.bytes_mut().copy_from_slice(elements.bytes());
        let exact = matches!(mode, Mode::Reversible);
        let fill = site.fill.map(T::from_be);
        let strain = |_, x: T, y: T| {
            let spoilt = exact || fill.is_some_and(|fill| fill.same(x) || fill.same(y));
            if x.same(y) || !spoilt { 0.0 } else { f64::INFINITY }
        };
        Ok(buffers.pack(&configs, &[], shape, elements.typed::<T>(), strain, out).is_some())
    })
}

fn unpack_reals<T: Real + Scalar>(
    site: &Site<'_>,
    input: &[u8],
    elements: &mut Elements,
    tools: &mut Tools,
) -> Result<()> {
    tools.with(|buffers: &mut Buffers, tools| {
        let mut reader = Reader::new(NAME, input);
        buffers.specials.read::<T>(&mut reader, elements.len(), tools)?;
        buffers.unpack(&mut reader, fold(site.shape), elements.typed_mut::<T>(), |_| ())?;
        buffers.specials.restore(elements.typed_mut::<T>());
        Ok(())
    })
}

fn unpack_integers<T: Scalar>(
    site: &Site<'_>,
    input: &[u8],
    elements: &mut Elements,
    tools: &mut Tools,
) -> Result<()> {
    tools.with(|buffers: &mut Buffers, _| {
        let mut reader = Reader::new(NAME, input);
        reader.count(0, "special values of integers")?;
        buffers.unpack(&mut reader, fold(site.shape), elements.typed_mut::<T>(), |_| ())
    })
}

impl PackingFilter for Zfp {
    fn encode(
        &self,
        params: &[u64],
        site: &Site<'_>,
        elements: &Elements,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<bool> {
        let (Some(mode), Some(ty)) = (Mode::of(params), scalar(elements.ty())) else {
            return Err(CodecError::failed(NAME, WHAT));
        };
        if elements.len() == 0 {
            return Ok(false);
        }
        match ty {
            ZfpScalarType::F32 => pack_reals::<f32>(mode, site, ty, elements, out, tools),
            ZfpScalarType::F64 => pack_reals::<f64>(mode, site, ty, elements, out, tools),
            ZfpScalarType::I32 => pack_integers::<i32>(mode, site, ty, elements, out, tools),
            ZfpScalarType::I64 => pack_integers::<i64>(mode, site, ty, elements, out, tools),
        }
    }

    fn decode(
        &self,
        _params: &[u64],
        site: &Site<'_>,
        input: &[u8],
        elements: &mut Elements,
        tools: &mut Tools,
    ) -> Result<()> {
        match scalar(elements.ty()) {
            Some(ZfpScalarType::F32) => unpack_reals::<f32>(site, input, elements, tools),
            Some(ZfpScalarType::F64) => unpack_reals::<f64>(site, input, elements, tools),
            Some(ZfpScalarType::I32) => unpack_integers::<i32>(site, input, elements, tools),
            Some(ZfpScalarType::I64) => unpack_integers::<i64>(site, input, elements, tools),
            None => Err(CodecError::damaged(NAME, "it cannot hold this type")),
        }
    }
}
