//! Filters: between a chunk of elements in memory and the bytes that are stored.
//!
//! A [`Pipeline`] is a list of filters, written as people write it (`shuffle zstd,3`) or as
//! numbers that a file keeps. A [`Chunk`] says what the elements are. [`Pipeline::check`] says
//! when a variable is defined what would go wrong later; [`Pipeline::encode`] and
//! [`Pipeline::decode`] do the work with the memory of a [`Scratch`].
//!
//! ```
//! use esker_codec::{Chunk, Pipeline, Scratch};
//! use esker_format::ExternalType;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pipeline: Pipeline = "sz,abs=0.01 crc32c".parse()?;
//! let chunk = Chunk::new(ExternalType::Float, &[40, 50]).native();
//! pipeline.check(&chunk)?;
//!
//! let field: Vec<f32> = (0..2000).map(|i| 280.0 + (i as f32 / 70.0).sin()).collect();
//! let (mut stored, mut scratch) = (Vec::new(), Scratch::new());
//! let encoded = pipeline.encode(&chunk, bytemuck::cast_slice(&field), &mut stored, &mut scratch)?;
//! assert!(stored.len() < 1000);
//!
//! let mut back = vec![0f32; 2000];
//! let out = bytemuck::cast_slice_mut(&mut back);
//! pipeline.decode(&chunk, encoded.mask, &stored, out, &mut scratch)?;
//! assert!(field.iter().zip(&back).all(|(a, b)| (a - b).abs() <= 0.01));
//! # Ok(()) }
//! ```
//!
//! A bound that the user gave holds at every element, because it is checked there when a chunk
//! is encoded; fill values, NaN and infinities come back bit by bit. What is stored is written
//! down in docs/format/filters.md. [`Patches`] store a box at several resolutions. Read on in `pipeline.rs`, `encode.rs` and `filters/mod.rs`.
#![forbid(unsafe_code)]

mod bound;
mod chunk;
mod decode;
mod elements;
mod encode;
mod error;
mod filters;
mod fold;
mod patch;
mod pipeline;
mod reader;
mod real;
mod scratch;
mod special;
mod sz;
mod zarr;
mod zfp;

pub use bound::Bound;
pub use chunk::{ByteOrder, Chunk};
pub use encode::{Encoded, FilterMask, checksum};
pub use error::{CodecError, Result};
pub use patch::{Coarse, Packing, PatchStream, Patches, level_shape};
pub use pipeline::{Filter, Pipeline};
pub use scratch::Scratch;
pub use zarr::ZarrCodecs;
