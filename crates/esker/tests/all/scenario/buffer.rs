//! A rank's memory, of any type.

use esker::{Char, Dataset, ExternalType, MemoryLayout, RequestId, Requests, Selection, VarId};

use super::dice::Dice;

/// A type of memory.
trait Element: esker::Native {
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! numbers {
    ($($t:ty)*) => {
        $(impl Element for $t {
            fn of(value: f64) -> $t {
                value as $t
            }
            fn value(self) -> f64 {
                self as f64
            }
        })*
    };
}

numbers!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

impl Element for Char {
    fn of(value: f64) -> Char {
        Char(value as u8)
    }
    fn value(self) -> f64 {
        f64::from(self.0)
    }
}

macro_rules! buffers {
    ($($name:ident $t:ty),*) => {
        /// Values in memory of one type.
        #[derive(Debug)]
        pub(crate) enum Buffer {
            $($name(Vec<$t>)),*
        }

        /// The types.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($name),*
        }

        impl Buffer {
            pub(crate) fn new(kind: Kind, values: &[f64]) -> Buffer {
                match kind {
                    $(Kind::$name => {
                        Buffer::$name(values.iter().map(|v| <$t as Element>::of(*v)).collect())
                    })*
                }
            }

            pub(crate) fn values(&self) -> Vec<f64> {
                match self {
                    $(Buffer::$name(data) => data.iter().map(|v| v.value()).collect()),*
                }
            }

            pub(crate) fn iput<'b>(
                &'b self,
                ds: &Dataset,
                queue: &mut Requests<'b>,
                var: VarId,
                selection: &Selection,
                layout: MemoryLayout,
            ) -> esker::Result<RequestId> {
                match self {
                    $(Buffer::$name(d) => ds.iput_strided(queue, var, selection, d, layout)),*
                }
            }

            pub(crate) fn bput(
                &self,
                ds: &Dataset,
                queue: &mut Requests<'_>,
                var: VarId,
                selection: &Selection,
            ) -> esker::Result<RequestId> {
                match self {
                    $(Buffer::$name(d) => ds.bput(queue, var, selection, d)),*
                }
            }

            pub(crate) fn put(
                &self,
                ds: &mut Dataset,
                var: VarId,
                selection: &Selection,
                layout: MemoryLayout,
                all: bool,
            ) -> esker::Result<()> {
                match self {
                    $(Buffer::$name(d) if all => ds.put_strided_all(var, selection, d, layout),)*
                    $(Buffer::$name(d) => ds.put_strided(var, selection, d, layout)),*
                }
            }

            pub(crate) fn iget<'b>(
                &'b mut self,
                ds: &Dataset,
                queue: &mut Requests<'b>,
                var: VarId,
                selection: &Selection,
                layout: MemoryLayout,
            ) -> esker::Result<RequestId> {
                match self {
                    $(Buffer::$name(d) => ds.iget_strided(queue, var, selection, d, layout)),*
                }
            }

            pub(crate) fn get(
                &mut self,
                ds: &mut Dataset,
                var: VarId,
                selection: &Selection,
                layout: MemoryLayout,
                all: bool,
            ) -> esker::Result<()> {
                match self {
                    $(Buffer::$name(d) if all => ds.get_strided_all(var, selection, d, layout),)*
                    $(Buffer::$name(d) => ds.get_strided(var, selection, d, layout)),*
                }
            }

            /// A new vector from `get` or `get_all`.
            pub(crate) fn fetched(
                kind: Kind,
                ds: &mut Dataset,
                var: VarId,
                selection: &Selection,
                all: bool,
            ) -> esker::Result<Buffer> {
                Ok(match kind {
                    $(Kind::$name if all => Buffer::$name(ds.get_all(var, selection)?),)*
                    $(Kind::$name => Buffer::$name(ds.get(var, selection)?)),*
                })
            }
        }

        impl Buffer {
            /// A read in the background; to be called for what it gives.
            pub(crate) fn start(
                kind: Kind,
                ds: &Dataset,
                var: VarId,
                selection: &Selection,
            ) -> Box<dyn FnOnce() -> esker::Result<Buffer>> {
                match kind {
                    $(Kind::$name => {
                        let token = ds.get_start::<$t>(var, selection);
                        Box::new(|| token.wait().map(Buffer::$name))
                    })*
                }
            }
        }

        const KINDS: &[Kind] = &[$(Kind::$name),*];
    };
}

buffers!(
    F64 f64, F32 f32, I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64,
    Text Char
);

/// A type that converts to and from `ty`.
pub(crate) fn random_kind(dice: &mut Dice, ty: ExternalType) -> Kind {
    let number = dice.below(KINDS.len() as u64 - 1) as usize;
    if ty == ExternalType::Char { Kind::Text } else { KINDS[number] }
}

/// The type that holds everything that a variable can.
pub(crate) fn widest(ty: ExternalType) -> Kind {
    if ty == ExternalType::Char { Kind::Text } else { Kind::F64 }
}
