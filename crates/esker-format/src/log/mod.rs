//! The records of a log: what was written, apart from the values themselves.
//!
//! A log is two files. The *data log* holds payloads, one behind the other, as they came. The
//! *metadata log* is a [`Head`] and then frames ([`FrameWriter`], [`Frames`]), each of which
//! describes a batch of payloads as [`Entry`]s: which variable, which records, which elements
//! ([`Footprint`]), and the checksums. docs/format/log.md has the bytes. A [`Manifest`] says which
//! logs make up one version of a container, and how much of each; a [`Promise`] that there is such a
//! version.
//!
//! ```
//! use esker_format::log::*;
//! let mut writer = FrameWriter::new(0, 0);
//! let block = Footprint::Block { run: 4, levels: vec![(3, 10)] };
//! let write = Write { var: 7, epoch: 1, records: Records::one(5), first: 20, little: true, width: 4 };
//! let payload = [0u8; 48];
//! let number = writer.define(&block);
//! writer.entry(&write, number, 48, false, &checksums(&payload));
//! let bytes = writer.finish().unwrap();
//! let frame = Frames::new(&bytes, 0, 48).next().unwrap().unwrap();
//! assert_eq!(frame.entries[0].write, write);
//! let place = &frame.footprints[0].place;
//! let definition = &bytes[place.start as usize..place.end as usize];
//! assert_eq!(Footprint::decode(definition, 12), Some(block));
//! ```

mod aborted;
mod facts;
mod footprint;
mod frame;
mod head;
mod manifest;
mod promise;
mod section;

pub use aborted::Aborted;
pub use facts::{
    DEFINITIONS, RECORDS, SESSIONS, STRETCHES, Stretch, definitions, header_of, records,
    without_records,
};
pub use footprint::{ElementRun, Footprint};
pub use frame::{
    BLOCK, Bodies, Damage, Definition, Entry, Frame, FrameKind, FrameWriter, Frames, Records,
    Write, checksums, frame,
};
pub use head::Head;
pub use manifest::{Cut, LogPart, Manifest, ManifestError, Session};
pub use promise::{Promise, PromiseSlot};
pub use section::{ENTRIES, Section};
