//! ZFP's streams: made with a tolerance that keeps the bound, and with corrections where it does not.

use zfp_rs::{
    ZfpBitStreamRef, ZfpBitStreamRefMut, ZfpConfig, ZfpDimensionality, ZfpField, ZfpFieldMut,
    ZfpScalar,
};

use crate::elements::Elements;
use crate::error::{CodecError, Result};
use crate::fold::Folded;
use crate::reader::{Reader, put_varint};
use crate::special::Specials;

const NAME: &str = "zfp";

/// Runs `$body` with the shape in zfp's order, fastest first, without leading ones.
macro_rules! with_dims {
    ($shape:expr, $dims:ident => $body:expr) => {{
        let [w, z, y, x] = $shape;
        match (w, z, y) {
            (1, 1, 1) => {
                let $dims = [x];
                $body
            }
            (1, 1, _) => {
                let $dims = [x, y];
                $body
            }
            (1, _, _) => {
                let $dims = [x, y, z];
                $body
            }
            _ => {
                let $dims = [x, y, z, w];
                $body
            }
        }
    }};
}

pub(crate) fn dimensionality(shape: Folded) -> ZfpDimensionality {
    match shape {
        [1, 1, 1, _] => ZfpDimensionality::D1,
        [1, 1, ..] => ZfpDimensionality::D2,
        [1, ..] => ZfpDimensionality::D3,
        _ => ZfpDimensionality::D4,
    }
}

/// The words of zfp's stream, or none when they do not fit into `words`.
fn compress<T: ZfpScalar>(
    config: &ZfpConfig,
    values: &[T],
    shape: Folded,
    words: &mut [u64],
) -> Option<usize> {
    let field = with_dims!(shape, dims => ZfpField::new(values, dims)).ok()?;
    let mut stream = ZfpBitStreamRefMut::from_words(words);
    let bytes = stream.compress(config, &field).ok()?;
    Some(bytes.div_ceil(8))
}

fn decompress<T: ZfpScalar>(
    config: &ZfpConfig,
    words: &[u64],
    shape: Folded,
    out: &mut [T],
) -> Result<()> {
    let damaged = |error: &dyn std::fmt::Display| CodecError::damaged(NAME, error);
    let mut field =
        with_dims!(shape, dims => ZfpFieldMut::new(out, dims)).map_err(|error| damaged(&error))?;
    ZfpBitStreamRef::from_words(words)
        .decompress(config, &mut field)
        .map(drop)
        .map_err(|error| damaged(&error))
}

/// A type that zfp takes, as its bits.
pub(crate) trait Scalar: ZfpScalar + bytemuck::Pod {
    fn to_be(self, out: &mut Vec<u8>);
    fn from_be(bytes: &[u8]) -> Self;
    fn same(self, other: Self) -> bool;
}

macro_rules! scalars {
    ($($t:ident)*) => {$(
        impl Scalar for $t {
            fn to_be(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
            fn from_be(bytes: &[u8]) -> $t {
                bytes.try_into().map_or($t::default(), $t::from_be_bytes)
            }
            fn same(self, other: $t) -> bool {
                self.to_ne_bytes() == other.to_ne_bytes()
            }
        }
    )*};
}
scalars! { i32 i64 f32 f64 }

/// Memory that is used again.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The field with special values replaced.
    pub(crate) smooth: Elements,
    back: Elements,
    tried: Attempt,
    kept: Attempt,
    pub(crate) specials: Specials,
}

/// A stream and what is wrong with it.
#[derive(Default)]
struct Attempt {
    config: ZfpConfig,
    words: Vec<u64>,
    len: usize,
    /// Elements that are stored exactly beside the stream.
    corrections: Vec<usize>,
    /// The largest share of the bound that another element uses.
    strain: f64,
}

impl Attempt {
    /// Packs `smooth`, and looks at what comes back: an element strains the bound by `strain`,
    /// and is corrected if that is more than 1. Stops at more corrections than `few`. `false` when
    /// the stream is not smaller than the values.
    fn make<T: Scalar>(
        &mut self,
        shape: Folded,
        values: &[T],
        (smooth, back): (&Elements, &mut Elements),
        strain: &impl Fn(usize, T, T) -> f64,
        few: usize,
    ) -> bool {
        self.words.resize(size_of_val(values).div_ceil(8), 0);
        let packed = compress(&self.config, smooth.typed::<T>(), shape, &mut self.words);
        let Some(len) = packed else { return false };
        self.len = len;
        let back = back.typed_mut::<T>();
        if decompress(&self.config, &self.words[..len], shape, back).is_err() {
            return false;
        }
        self.corrections.clear();
        self.strain = 0.0;
        for (i, (&x, &y)) in values.iter().zip(back.iter()).enumerate() {
            let strain = strain(i, x, y);
            if strain <= 1.0 {
                self.strain = self.strain.max(strain);
            } else {
                self.corrections.push(i);
                if self.corrections.len() > few {
                    break;
                }
            }
        }
        true
    }

    fn write<T: Scalar>(&self, values: &[T], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.config.mode_bits().to_be_bytes());
        put_varint(out, self.len as u64 * 8);
        self.words[..self.len].iter().for_each(|word| out.extend(word.to_le_bytes()));
        let mut next = 0;
        put_varint(out, self.corrections.len() as u64);
        for &at in &self.corrections {
            put_varint(out, (at - next) as u64);
            next = at + 1;
        }
        self.corrections.iter().for_each(|&at| values[at].to_be(out));
    }
}

impl Buffers {
    /// Packs `smooth` by the first of `configs`, or if that strains the bound much by a later one,
    /// if little by `looser`. Gives which one that was, counted from the first, the looser ones below 0; none when
    /// the stream is not smaller. Corrections are from `values`, whatever `smooth` is.
    pub(crate) fn pack<T: Scalar>(
        &mut self,
        configs: &[ZfpConfig],
        looser: &[ZfpConfig],
        shape: Folded,
        values: &[T],
        strain: impl Fn(usize, T, T) -> f64,
        out: &mut Vec<u8>,
    ) -> Option<isize> {
        let mut chosen = 0;
        let Buffers { smooth, back, tried, kept, .. } = self;
        back.reset(smooth.ty(), values.len());
        // A tighter tolerance is cheaper than many corrections.
        let few = values.len() / 1000;
        for (i, config) in configs.iter().enumerate() {
            kept.config = *config;
            let most = if i + 1 == configs.len() { usize::MAX } else { few };
            if !kept.make(shape, values, (smooth, back), &strain, most) {
                return None;
            }
            chosen = i as isize;
            if kept.corrections.len() <= most {
                break;
            }
        }
        for config in looser {
            // A tolerance twice as large makes errors about twice as large.
            if kept.strain > 0.55 || !kept.corrections.is_empty() {
                break;
            }
            tried.config = *config;
            if !tried.make(shape, values, (smooth, back), &strain, few)
                || tried.corrections.len() > few
            {
                break;
            }
            std::mem::swap(tried, kept);
            chosen = chosen.min(0) - 1;
        }
        kept.write(values, out);
        Some(chosen)
    }

    /// The bytes of a stream, to compare; more than `values` have if it would not be smaller.
    pub(crate) fn length<T: Scalar>(
        &mut self,
        config: &ZfpConfig,
        shape: Folded,
        values: &[T],
    ) -> usize {
        let words = &mut self.tried.words;
        words.resize(size_of_val(values).div_ceil(8), 0);
        8 * compress(config, values, shape, words).unwrap_or(words.len() + 1)
    }

    /// Fills `out`; `finish` sees what the stream gave before corrections are put to their places.
    pub(crate) fn unpack<T: Scalar>(
        &mut self,
        reader: &mut Reader<'_>,
        shape: Folded,
        out: &mut [T],
        finish: impl FnOnce(&mut [T]),
    ) -> Result<()> {
        let config = ZfpConfig::from_mode_bits(reader.u64()?)
            .ok_or_else(|| reader.damaged("there is no such mode"))?;
        let stream = reader.part()?;
        let Attempt { words, corrections: places, .. } = &mut self.tried;
        words.clear();
        words.extend(stream.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }));
        decompress(&config, words, shape, out)?;
        finish(out);
        let corrections = reader.count(out.len(), "corrections")?;
        places.clear();
        let mut next = 0;
        for _ in 0..corrections {
            let at = reader.count(out.len().saturating_sub(next + 1), "elements to skip")? + next;
            if at >= out.len() {
                return Err(reader.damaged("a correction lies outside of the chunk"));
            }
            places.push(at);
            next = at + 1;
        }
        for &at in places.iter() {
            out[at] = T::from_be(reader.take(size_of::<T>())?);
        }
        reader.end()
    }
}
