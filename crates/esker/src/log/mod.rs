//! The log: payloads as they came, what they are, and how they are found again.
//!
//! A write is cut into `parts`, each of which the `writer` appends as an entry; equal footprints
//! are `known`. To read, the frames of each `source` go into the `index` (in levels of
//! [intervals](crate::intervals), with `sorted` runs for footprints), and `reading` asks for elements of records, as a
//! write has them, which `lay` puts to their places. The `view` answers as if it were a file.
//! Where each rank indexes a share, `questions` of what is to be read go round (`asking`).

mod asking;
mod copying;
mod cut;
mod filtered;
mod grid;
mod holes;
mod index;
mod known;
mod lay;
mod layers;
mod memo;
mod parts;
mod questions;
mod reading;
mod rows;
mod sections;
mod slabs;
mod sorted;
mod source;
mod view;
mod weave;
mod writer;

pub(crate) use asking::{Asked, Question, Reach, answer, take_answer};
pub(crate) use filtered::{ATTRIBUTE as FILTERS, Filtered};
pub(crate) use grid::BoxSeen;
pub use index::LogDamage;
pub(crate) use index::{Found as LogFound, Index, Order, definition};
pub(crate) use memo::{Memo, Parts};
pub(crate) use parts::{Part, Shape, each_part_of};
pub(crate) use questions::{questions, records_read};
pub(crate) use reading::{Batch, loaded, read, read_from, record_step, summary};
pub(crate) use sections::Section;
pub(crate) use sorted::SortedRuns;
pub(crate) use source::{LogSource, UNCOMMITTED, number_of, place_of};
pub(crate) use view::{View, Want};
pub(crate) use writer::{Lengths, LogWriter};
