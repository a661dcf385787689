//! From streams to the elements of a level.

use super::element::{Element, Level};
use super::lattice::Part;
use super::{Coarse, Patches, form, level_shape, with_type};
use crate::chunk::Chunk;
use crate::error::{CodecError, Result};
use crate::reader::Reader;
use crate::real::Number;
use crate::scratch::{Scratch, Tools};
use crate::special::Specials;
use crate::sz::levels::{Buffers, Field, Layers, decode, decode_exact};
use crate::zfp;
use esker_format::ExternalType;

const NAME: &str = "patch";

impl Patches {
    /// Fills `out`, which has the bytes of the level, from the streams that [`needed`](Patches::needed) names, in its order.
    ///
    /// `chunk` is the whole patch, as it was encoded; its fill value does not matter. The streams may be anything: the
    /// result is an error or elements, and nothing grows beyond a small multiple of the patch. Compare the
    /// [`checksum`](crate::checksum) first: not every damage is visible.
    pub fn decode(
        &self,
        chunk: &Chunk<'_>,
        level: u32,
        layer: u32,
        streams: &[&[u8]],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.sound(chunk)?;
        if level >= self.levels || layer >= self.layers {
            let (levels, layers) = (self.levels, self.layers);
            let why = format!(
                "there is no level {level} with layer {layer}; there are {levels} levels and {layers} layers"
            );
            return Err(CodecError::Misused { filter: "patches".into(), ty: chunk.ty, why });
        }
        let needed = self.needed(level, layer).count();
        if streams.len() != needed {
            let why = format!(
                "level {level} is made from {needed} streams, and {} were given",
                streams.len()
            );
            return Err(CodecError::Misused { filter: "patches".into(), ty: chunk.ty, why });
        }
        let shape = level_shape(chunk.shape, level);
        let wanted = Chunk { shape: &shape, fill: None, ..*chunk };
        wanted.expect_bytes(out.len())?;
        let task = Task { patches: self, chunk, level, layer };
        let mut values = std::mem::take(&mut scratch.elements);
        values.reset(chunk.ty, wanted.elements()?);
        let done =
            with_type!(chunk.ty, run(&task, streams, values.typed_mut(), &mut scratch.tools));
        scratch.elements = values;
        done?;
        scratch.elements.store(&wanted, out);
        Ok(())
    }

    /// A layer of a level that adds nothing to the layer before.
    pub(super) fn carry<T: Number>(
        &self,
        shape: &[usize],
        coarser: Option<&Field<T>>,
        before: &Field<T>,
    ) -> Field<T> {
        let mut field = before.clone();
        self.keep(shape, coarser, &mut field);
        field
    }

    /// Points that are samples in the coarser level are what they are there.
    pub(super) fn keep<T: Number>(
        &self,
        shape: &[usize],
        coarser: Option<&Field<T>>,
        field: &mut Field<T>,
    ) {
        if let (Coarse::Sample, Some(coarser)) = (self.coarse, coarser) {
            Part::parity(shape, 0).scatter(shape, &coarser.values, &mut field.values);
        }
    }
}

struct Task<'a> {
    patches: &'a Patches,
    chunk: &'a Chunk<'a>,
    level: u32,
    layer: u32,
}

fn run<T: Element>(
    task: &Task<'_>,
    streams: &[&[u8]],
    out: &mut [T],
    tools: &mut Tools,
) -> Result<()> {
    let Task { patches, chunk, level, layer } = *task;
    let layers = layer as usize + 1;
    let mut bounds = vec![0.0; layers];
    let mut fields: Vec<Field<T>> = Vec::new();
    let mut specials = Specials::default();
    for (streams, level) in streams.chunks(layers).zip((level..patches.levels).rev()) {
        let shape = level_shape(chunk.shape, level);
        let level = Reading { patches, ty: chunk.ty, level, shape: &shape };
        fields = level.read(streams, &mut bounds, &fields, &mut specials, tools)?;
    }
    if let Some(field) = fields.last() {
        out.copy_from_slice(&field.values);
        specials.restore(out);
    }
    Ok(())
}

struct Reading<'a> {
    patches: &'a Patches,
    ty: ExternalType,
    level: u32,
    shape: &'a [usize],
}

impl Reading<'_> {
    fn read<T: Element>(
        &self,
        streams: &[&[u8]],
        bounds: &mut [f64],
        coarser: &[Field<T>],
        specials: &mut Specials,
        tools: &mut Tools,
    ) -> Result<Vec<Field<T>>> {
        let (patches, shape) = (self.patches, self.shape);
        let elements = shape.iter().product();
        let lattice = patches.lattice(shape, self.level);
        let mut fields: Vec<Field<T>> = Vec::new();
        let mut layers = Layers::default();
        let mut form = form::EXACT;
        for (layer, stream) in streams.iter().enumerate() {
            let mut reader = Reader::new(NAME, stream);
            let coarser = coarser.get(layer);
            if layer == 0 {
                form = reader.byte()?;
                specials.read::<T>(&mut reader, elements, tools)?;
            }
            if self.level + 1 == patches.levels {
                bounds[layer] = f64::from_bits(reader.u64()?);
            }
            let bound = bounds[layer];
            let field = match (form, fields.last()) {
                (form::SMALL, _) | (form::FAST, Some(_)) => {
                    let mut field = patches.start(shape, coarser, false);
                    tools.with(|buffers: &mut Buffers, _| {
                        let (field, layers) = (&mut field, &mut layers);
                        decode(&lattice, &mut reader, specials, bound, field, layers, buffers)
                    })?;
                    field
                }
                (form::FAST, None) => {
                    let mut field = patches.start(shape, coarser, true);
                    let parts = patches.parts(shape, self.level);
                    let values = &mut field.values;
                    let level = Level { parts: &parts, shape, ty: self.ty, field: values };
                    tools.with(|buffers: &mut zfp::Buffers, _| {
                        T::decode_fast(level, &mut reader, buffers)
                    })?;
                    patches.keep(shape, coarser, &mut field);
                    field
                }
                (form::EXACT, None) => {
                    let mut field = patches.start(shape, coarser, false);
                    decode_exact(&lattice, &mut reader, specials, &mut field, &mut layers)?;
                    field
                }
                (form::EXACT, Some(before)) => {
                    reader.end()?;
                    patches.carry(shape, coarser, before)
                }
                _ => return Err(reader.damaged(format!("a level has no form {form}"))),
            };
            layers.earlier = Some((field.values.clone(), bound));
            fields.push(field);
        }
        Ok(fields)
    }
}
