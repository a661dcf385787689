//! The types of elements: all can be stored exactly, reals within a bound and by ZFP.

use esker_format::ExternalType;

use super::fast;
use super::lattice::Part;
use crate::error::{CodecError, Result};
use crate::reader::Reader;
use crate::real::Number;
use crate::sz::levels::Target;
use crate::zfp::Buffers;

/// A level with what is there before it is coded.
pub(super) struct Level<'a, T> {
    pub(super) parts: &'a [Part],
    pub(super) shape: &'a [usize],
    pub(super) ty: ExternalType,
    pub(super) field: &'a mut [T],
}

/// A number, and what can be done with it.
pub(super) trait Element: Number {
    /// Whether it can be stored within a bound.
    const REAL: bool;

    fn encode_fast(
        level: Level<'_, Self>,
        _target: &Target<'_, Self>,
        _bound: f64,
        _buffers: &mut Buffers,
        _out: &mut Vec<u8>,
    ) -> Result<()> {
        Err(CodecError::failed("patch", format!("{} has no bound", level.ty)))
    }

    fn decode_fast(
        _level: Level<'_, Self>,
        reader: &mut Reader<'_>,
        _buffers: &mut Buffers,
    ) -> Result<()> {
        Err(reader.damaged("integers are never packed by ZFP"))
    }
}

macro_rules! reals {
    ($($t:ident)*) => {$(
        impl Element for $t {
            const REAL: bool = true;

            fn encode_fast(
                level: Level<'_, $t>,
                target: &Target<'_, $t>,
                bound: f64,
                buffers: &mut Buffers,
                out: &mut Vec<u8>,
            ) -> Result<()> {
                let Level { parts, shape, ty, field } = level;
                fast::encode(parts, shape, ty, target, bound, field, buffers, out)
            }

            fn decode_fast(
                level: Level<'_, $t>,
                reader: &mut Reader<'_>,
                buffers: &mut Buffers,
            ) -> Result<()> {
                fast::decode(level.parts, level.shape, reader, level.field, buffers)
            }
        }
    )*};
}
reals! { f32 f64 }

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl Element for $t {
            const REAL: bool = false;
        }
    )*};
}
integers! { i8 u8 i16 u16 i32 u32 i64 u64 }
