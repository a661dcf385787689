//! From elements to streams.

use esker_format::ExternalType;
use esker_format::values::default_fill_bytes;

use super::coarsen::{Missing, levels};
use super::element::{Element, Level};
use super::{Bound, Packing, PatchStream, Patches, form, level_shape, with_type};
use crate::chunk::Chunk;
use crate::error::{CodecError, Result};
use crate::real::fill_bits;
use crate::scratch::{Scratch, Tools};
use crate::special::{Specials, sentinels};
use crate::sz::levels::{Buffers, Field, Layers, Target, encode, encode_exact};
use crate::zfp;

/// pco's level, for few bytes and for little time.
const EFFORT: [usize; 2] = [8, 4];

impl Patches {
    /// Appends the streams of a patch to `out`, and says what they are: coarsest level first, of each level the least
    /// precise layer first.
    ///
    /// `chunk` is the patch as far as it is in the variable; its fill value and `missing`, more missing values one
    /// after the other in external form, are kept bit by bit at every level, and means leave them out. `range` is that of
    /// the ordinary values of all patches for which a relative bound should be the same; without one it is the patch's own.
    pub fn encode(
        &self,
        chunk: &Chunk<'_>,
        missing: &[u8],
        range: Option<f64>,
        elements: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<Vec<PatchStream>> {
        chunk.expect_bytes(elements.len())?;
        self.sound(chunk)?;
        let width = chunk.ty.size() as usize;
        if !missing.len().is_multiple_of(width)
            || chunk.fill.is_some_and(|fill| fill.len() != width)
        {
            let why = format!("missing values have {} bytes", missing.len());
            return Err(CodecError::Misused { filter: "patches".into(), ty: chunk.ty, why });
        }
        let start = out.len();
        let task = Task { patches: self, chunk, missing, range };
        scratch.elements.load(chunk, elements);
        let values = std::mem::take(&mut scratch.elements);
        let done = with_type!(chunk.ty, run(&task, values.typed(), out, &mut scratch.tools));
        scratch.elements = values;
        done.inspect_err(|_| out.truncate(start))
    }
}

struct Task<'a> {
    patches: &'a Patches,
    chunk: &'a Chunk<'a>,
    missing: &'a [u8],
    range: Option<f64>,
}

impl Task<'_> {
    /// The bits of the values that are missing.
    fn missing<T: Element>(&self) -> Vec<u64> {
        let all = self.chunk.fill.into_iter().chain(self.missing.chunks(size_of::<T>()));
        all.filter_map(|fill| fill_bits::<T>(Some(fill))).collect()
    }

    /// The absolute bound, 0 to lose nothing.
    fn bound<T: Element>(&self, values: &[T], specials: &Specials) -> f64 {
        match (self.patches.bound.filter(|_| T::REAL), self.range) {
            (None, _) => 0.0,
            (Some(Bound::Relative(share)), Some(range)) => {
                (share * range.clamp(0.0, f64::MAX)).min(f64::MAX)
            }
            (Some(bound), _) => bound.resolve(values, specials),
        }
    }
}

fn run<T: Element>(
    task: &Task<'_>,
    values: &[T],
    out: &mut Vec<u8>,
    tools: &mut Tools,
) -> Result<Vec<PatchStream>> {
    let (patches, chunk) = (task.patches, task.chunk);
    let missing = task.missing::<T>();
    let mut fills = missing.clone();
    let mut apart = [f64::NAN; 2];
    if T::REAL {
        fills.extend(fill_bits::<T>(Some(&default_fill_bytes(chunk.ty))));
        apart = sentinels(values, &fills);
    }
    let mut specials = Specials::default();
    specials.mark(values, &fills, apart);
    let bound = task.bound(values, &specials);
    let coarser =
        levels(patches.coarse, patches.levels, chunk.shape, values, &Missing { bits: &missing });

    let mut streams = Vec::new();
    let mut fields: Vec<Field<T>> = Vec::new();
    for level in (0..patches.levels).rev() {
        let values = if level == 0 { values } else { &coarser[level as usize - 1] };
        let shape = level_shape(chunk.shape, level);
        specials.mark(values, &fills, apart);
        let mut writer =
            Writer { patches, ty: chunk.ty, level, shape: &shape, bound, values, fills: &fills };
        fields = writer.write(&mut specials, &fields, &mut streams, out, tools)?;
    }
    Ok(streams)
}

/// A level, as it should be, and how it is to be stored.
struct Writer<'a, T> {
    patches: &'a Patches,
    ty: ExternalType,
    level: u32,
    shape: &'a [usize],
    bound: f64,
    values: &'a [T],
    fills: &'a [u64],
}

impl<T: Element> Writer<'_, T> {
    /// Appends all layers of the level, and gives the level as their readers have it.
    fn write(
        &mut self,
        specials: &mut Specials,
        coarser: &[Field<T>],
        streams: &mut Vec<PatchStream>,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<Vec<Field<T>>> {
        let mut fields: Vec<Field<T>> = Vec::new();
        let mut layers = Layers::default();
        let mut form = form::EXACT;
        for layer in 0..self.patches.layers {
            let start = out.len();
            let coarser = coarser.get(layer as usize);
            let bound = self.patches.bound_of(layer, self.bound);
            if layer == 0 {
                out.push(form);
                specials.write::<T>(out, tools)?;
            }
            if self.level + 1 == self.patches.levels {
                out.extend_from_slice(&bound.to_bits().to_be_bytes());
            }
            let target = Target { values: self.values, specials, fills: self.fills };
            let field = if layer == 0 {
                let (used, field) = self.first(&target, bound, coarser, &mut layers, out, tools)?;
                (form, out[start]) = (used, used);
                field
            } else {
                self.further(
                    form,
                    &target,
                    bound,
                    coarser,
                    &fields[layer as usize - 1],
                    &mut layers,
                    out,
                    tools,
                )?
            };
            layers.earlier = Some((field.values.clone(), bound));
            streams.push(self.judge(layer, &out[start..], &field, specials));
            fields.push(field);
        }
        Ok(fields)
    }

    fn first(
        &self,
        target: &Target<'_, T>,
        bound: f64,
        coarser: Option<&Field<T>>,
        layers: &mut Layers<T>,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<(u8, Field<T>)> {
        let (patches, shape, start) = (self.patches, self.shape, out.len());
        let lattice = patches.lattice(shape, self.level);
        let fast = patches.packing == Packing::Fast;
        if bound > 0.0 && fast {
            let mut field = patches.start(shape, coarser, true);
            self.fast(target, bound, &mut field.values, out, tools)?;
            patches.keep(shape, coarser, &mut field);
            return Ok((form::FAST, field));
        }
        if bound > 0.0 {
            let mut field = patches.start(shape, coarser, false);
            let worth = tools.with(|buffers: &mut Buffers, _| {
                encode(&lattice, target, bound, &mut field, layers, buffers, out)
            });
            if worth {
                return Ok((form::SMALL, field));
            }
            out.truncate(start);
            *layers = Layers::default();
        }
        let mut field = patches.start(shape, coarser, false);
        encode_exact(&lattice, target, EFFORT[usize::from(fast)], &mut field, out)?;
        Ok((form::EXACT, field))
    }

    #[allow(clippy::too_many_arguments)]
    fn further(
        &self,
        form: u8,
        target: &Target<'_, T>,
        bound: f64,
        coarser: Option<&Field<T>>,
        before: &Field<T>,
        layers: &mut Layers<T>,
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<Field<T>> {
        let patches = self.patches;
        if form == form::EXACT {
            return Ok(patches.carry(self.shape, coarser, before));
        }
        let lattice = patches.lattice(self.shape, self.level);
        let mut field = patches.start(self.shape, coarser, false);
        tools.with(|buffers: &mut Buffers, _| {
            encode(&lattice, target, bound, &mut field, layers, buffers, out)
        });
        Ok(field)
    }

    fn fast(
        &self,
        target: &Target<'_, T>,
        bound: f64,
        field: &mut [T],
        out: &mut Vec<u8>,
        tools: &mut Tools,
    ) -> Result<()> {
        let parts = self.patches.parts(self.shape, self.level);
        let level = Level { parts: &parts, shape: self.shape, ty: self.ty, field };
        tools.with(|buffers: &mut zfp::Buffers, _| {
            T::encode_fast(level, target, bound, buffers, out)
        })
    }

    /// What a reader has, beside what should be.
    fn judge(
        &self,
        layer: u32,
        stored: &[u8],
        field: &Field<T>,
        specials: &Specials,
    ) -> PatchStream {
        let (mut error, mut min, mut max) = (0f64, f64::INFINITY, f64::NEG_INFINITY);
        for (i, (x, y)) in self.values.iter().zip(&field.values).enumerate() {
            if !specials.is(i) {
                let (low, high) = y.bounds();
                error = error.max((y.wide() - x.wide()).abs());
                min = min.min(low);
                max = max.max(high);
            }
        }
        let crc32c = crc32c::crc32c(stored);
        PatchStream { level: self.level, layer, bytes: stored.len(), crc32c, error, min, max }
    }
}
