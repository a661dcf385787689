//! Patches: a box of elements at several resolutions, each level within the same bound of error.
//!
//! Level 0 is the box itself; each further level has half the points in each dimension, rounded up. A patch is encoded
//! to one stream of bytes for each level and layer, coarsest level first. A level is read from the streams of the
//! coarser levels and its own, so whoever wants a picture reads little; layers add precision, so whoever needs less
//! reads fewer. The bytes are described in docs/format/patches.md, the reasons in docs/rooms/patches.md.
//!
//! ```
//! use esker_codec::{Bound, Chunk, Coarse, Patches, Scratch};
//! use esker_format::ExternalType;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let field: Vec<f32> = (0..64 * 64).map(|i| (i as f32 / 300.0).sin()).collect();
//! let chunk = Chunk::new(ExternalType::Float, &[64, 64]).native();
//! let patches = Patches::new(4).coarse(Coarse::Mean).bound(Bound::Absolute(1e-3));
//! patches.check(chunk.ty, &[64, 64])?;
//!
//! let (mut bytes, mut scratch) = (Vec::new(), Scratch::new());
//! let elements = bytemuck::cast_slice(&field);
//! let streams = patches.encode(&chunk, &[], None, elements, &mut bytes, &mut scratch)?;
//!
//! // The coarsest level, 8 by 8 points, from its stream alone.
//! let first = &bytes[..streams[0].bytes];
//! let mut picture = vec![0f32; 8 * 8];
//! let out = bytemuck::cast_slice_mut(&mut picture);
//! patches.decode(&chunk, 3, 0, &[first], out, &mut scratch)?;
//! let mean = field[..8].iter().enumerate().map(|(i, _)| (0..8).map(|j| field[64 * j + i]).sum::<f32>());
//! assert!((picture[0] - mean.sum::<f32>() / 64.0).abs() < 1.1e-3);
//! # Ok(()) }
//! ```

mod coarsen;
mod decode;
mod element;
mod encode;
mod fast;
mod lattice;
mod refine;

use esker_format::ExternalType;

use crate::bound::{Bound, is_positive};
use crate::chunk::Chunk;
use crate::error::{CodecError, Result};
use crate::real::Number;
use crate::sz::levels::{Field, Lattice, Start};
pub use lattice::level_shape;

/// What a coarser level is of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Coarse {
    /// Every second point in each dimension: `x[::2^l]` of the variable.
    #[default]
    Sample,
    /// Means of boxes of two in each dimension, without missing values and what is outside; rounded to the type.
    Mean,
    /// The low-pass half of the 5/3 wavelet, within the patch; rounded to the type.
    Spline,
}

/// How levels are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Packing {
    /// Few bytes: interpolation and entropy coding, as `sz`.
    #[default]
    Small,
    /// Little time: ZFP of what the coarser level leaves. Further layers are packed as by `Small`.
    Fast,
}

/// One stream of an encoded patch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchStream {
    /// 0 is the finest.
    pub level: u32,
    /// 0 is the one with the least precision.
    pub layer: u32,
    /// Its length.
    pub bytes: usize,
    /// The [`checksum`](crate::checksum) of its bytes.
    pub crc32c: u32,
    /// The largest difference, at ordinary elements, between the level as it should be and as a reader of the
    /// layers up to this one gets it.
    pub error: f64,
    /// No ordinary element that such a reader gets is smaller; infinity if there is none.
    pub min: f64,
    /// None is larger; minus infinity if there is none.
    pub max: f64,
}

/// How patches of a variable are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patches {
    levels: u32,
    layers: u32,
    coarse: Coarse,
    packing: Packing,
    bound: Option<Bound>,
}

/// A layer's bound is so many times that of the next one.
const LAYER: f64 = 10.0;

impl Patches {
    /// The most levels: a dimension of 2^31 points is one point then.
    pub const MOST_LEVELS: u32 = 32;
    /// The most layers.
    pub const MOST_LAYERS: u32 = 4;

    /// So many levels, the variable itself among them; lossless, samples, packed to few bytes.
    pub fn new(levels: u32) -> Patches {
        let (coarse, packing) = (Coarse::default(), Packing::default());
        Patches { levels, layers: 1, coarse, packing, bound: None }
    }

    /// The same with coarser levels of this kind.
    pub fn coarse(self, coarse: Coarse) -> Patches {
        Patches { coarse, ..self }
    }

    /// The same, packed so.
    pub fn packing(self, packing: Packing) -> Patches {
        Patches { packing, ..self }
    }

    /// The same with a bound of error, at every level; integers stay as they are.
    pub fn bound(self, bound: Bound) -> Patches {
        Patches { bound: Some(bound), ..self }
    }

    /// The same with so many layers, each ten times as precise as the one before; the last keeps the bound.
    pub fn layers(self, layers: u32) -> Patches {
        Patches { layers, ..self }
    }

    /// The number of levels.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Whether patches of these lengths can hold this type so; the error says what to do.
    pub fn check(&self, ty: ExternalType, lengths: &[usize]) -> Result<()> {
        let misused = |why: String| Err(CodecError::Misused { filter: "patches".into(), ty, why });
        if !(1..=Patches::MOST_LEVELS).contains(&self.levels) {
            let (levels, most) = (self.levels, Patches::MOST_LEVELS);
            return misused(format!("{levels} levels; there are 1 to {most}"));
        }
        if !(1..=Patches::MOST_LAYERS).contains(&self.layers) {
            let (layers, most) = (self.layers, Patches::MOST_LAYERS);
            return misused(format!("{layers} layers; there are 1 to {most}"));
        }
        let unit = 1usize << (self.levels - 1);
        if let Some(len) = lengths.iter().find(|&&len| len == 0 || (len != 1 && len % unit != 0)) {
            let levels = self.levels;
            return misused(format!(
                "with {levels} levels the length of a patch is 1 or a multiple of {unit}, not {len}; \
                 take another length or fewer levels"
            ));
        }
        match self.bound {
            Some(Bound::Absolute(bound) | Bound::Relative(bound)) if !is_positive(bound) => {
                misused(format!("a bound of error is a positive number, not {bound}"))
            }
            None if self.layers > 1 => misused(
                "layers are steps of precision, which only a bound gives; set a bound".into(),
            ),
            _ => Ok(()),
        }
    }

    /// Level and layer of the streams that [`decode`](Patches::decode) needs for a level with the layers up to
    /// `layer`, in its order: that in which they are encoded.
    pub fn needed(&self, level: u32, layer: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        let layers = layer.min(self.layers.max(1) - 1) + 1;
        (level..self.levels)
            .rev()
            .flat_map(move |level| (0..layers).map(move |layer| (level, layer)))
    }

    /// The bound of a layer, if the last one's is `bound`.
    fn bound_of(&self, layer: u32, bound: f64) -> f64 {
        bound * LAYER.powi((self.layers - 1 - layer) as i32)
    }

    /// The error unless the options can be.
    fn sound(&self, chunk: &Chunk<'_>) -> Result<()> {
        chunk.bytes()?;
        self.check(chunk.ty, &[])
    }

    /// The order of a level's points.
    fn lattice(&self, shape: &[usize], level: u32) -> Lattice {
        let start = match self.coarse {
            _ if level + 1 == self.levels => Start::Nothing,
            Coarse::Sample => Start::Known,
            Coarse::Mean | Coarse::Spline => Start::Guessed,
        };
        Lattice::new(shape, start, level as usize)
    }

    /// What is there of a level before its layer is coded.
    fn start<T: Number>(
        &self,
        shape: &[usize],
        coarser: Option<&Field<T>>,
        guess: bool,
    ) -> Field<T> {
        let elements = shape.iter().product();
        let mut field = Field { values: vec![T::default(); elements], sizes: vec![0; elements] };
        let Some(coarser) = coarser else { return field };
        if guess || self.coarse != Coarse::Sample {
            let values: Vec<T::Work> =
                coarser.values.iter().map(|x| T::Work::narrow(x.wide())).collect();
            let refined = refine::refine(self.coarse, shape, &values);
            field.values = refined.iter().map(|x| T::narrow(x.wide())).collect();
        }
        if self.coarse == Coarse::Sample {
            let even = lattice::Part::parity(shape, 0);
            even.scatter(shape, &coarser.values, &mut field.values);
            even.scatter(shape, &coarser.sizes, &mut field.sizes);
        }
        field
    }

    /// The parts that ZFP packs.
    fn parts(&self, shape: &[usize], level: u32) -> Vec<lattice::Part> {
        if level + 1 == self.levels {
            return vec![lattice::Part::whole(shape)];
        }
        let known = usize::from(self.coarse == Coarse::Sample);
        lattice::Part::parities(shape).skip(known).collect()
    }
}

/// The first byte of the stream of a level's first layer.
mod form {
    /// As `sz`.
    pub(super) const SMALL: u8 = 0;
    /// ZFP; further layers are as `sz`.
    pub(super) const FAST: u8 = 1;
    /// Without loss; further layers are empty.
    pub(super) const EXACT: u8 = 2;
}

/// Calls a generic function for the type.
macro_rules! with_type {
    ($ty:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $ty {
            ExternalType::Byte => $function::<i8>($($argument),*),
            ExternalType::UByte | ExternalType::Char => $function::<u8>($($argument),*),
            ExternalType::Short => $function::<i16>($($argument),*),
            ExternalType::UShort => $function::<u16>($($argument),*),
            ExternalType::Int => $function::<i32>($($argument),*),
            ExternalType::UInt => $function::<u32>($($argument),*),
            ExternalType::Int64 => $function::<i64>($($argument),*),
            ExternalType::UInt64 => $function::<u64>($($argument),*),
            ExternalType::Float => $function::<f32>($($argument),*),
            ExternalType::Double => $function::<f64>($($argument),*),
        }
    };
}
use with_type;
