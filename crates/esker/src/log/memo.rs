//! What lists of blocks are in the log's space, or in that of chunks, so that the same list is not
//! worked out again.
//!
//! Programs write hundreds of variables over one decomposition, step after step. A list is
//! recognised by the selection that holds it or, if that is another one, by its numbers, without
//! the record that all of its blocks are in.

use std::ops::Range;
use std::sync::Arc;

use esker_format::log::Footprint;

use super::mixed::{ByNumber, mix};
use super::parts::{Part, each_part};
use crate::bounded::Bounded;
use crate::plan::Extent;
use crate::selection::Slabs;

/// Lists shorter than this are quicker to check than to look up.
const WORTH: usize = 16;

/// A list in the log's space: entries of one record.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) elements: u64,
    pub(crate) items: Vec<Item>,
}

/// One entry of a list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) first: u64,
    pub(crate) footprint: Arc<Footprint>,
    pub(crate) elements: Range<u64>,
}

/// What a list means the same in: the variable's shape without the record dimension (and how it is
/// cut, for chunks), and whether it has one.
pub(crate) type Frame = (Vec<u64>, bool);

/// What lists were found to be.
#[derive(Debug)]
pub(crate) struct Memo<P = Parts> {
    known: Bounded<Name, Known<P>, ByNumber>,
}

/// What something is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    /// A hash of a list's numbers.
    Numbers(u64),
    /// Where the selection lies that holds a list.
    Selection(usize),
}

#[derive(Debug)]
enum Known<P> {
    List(Kept<P>),
    /// A selection that was met, which lists it is, and in which record. It is held, so that nothing
    /// else can come to lie where it is.
    Met(Arc<Slabs>, Vec<(u64, u64)>),
}

#[derive(Debug)]
struct Kept<P> {
    slabs: Arc<Slabs>,
    frame: Frame,
    parts: Arc<P>,
}

impl<P> Default for Memo<P> {
    fn default() -> Self {
        Memo { known: Bounded::default() }
    }
}

impl<P> Memo<P> {
    /// The list's parts and its record. What is to be remembered of it may take `budget` bytes with
    /// everything else.
    pub(crate) fn find(
        &mut self,
        slabs: &Arc<Slabs>,
        frame: &Frame,
        budget: u64,
    ) -> Option<(Arc<P>, u64)> {
        let met = match self.known.get(&selection(slabs)) {
            Some(Known::Met(held, met)) if Arc::ptr_eq(held, slabs) => met.clone(),
            _ => Vec::new(),
        };
        for (hash, record) in met {
            if let Some(kept) = self.list(hash).filter(|kept| kept.frame == *frame) {
                return Some((kept.parts.clone(), record));
            }
        }
        let record = common_record(slabs, frame)?;
        let hash = hash(slabs, frame);
        let same = |kept: &&Kept<P>| kept.frame == *frame && equal(&kept.slabs, slabs, frame);
        let parts = self.list(hash).filter(same)?.parts.clone();
        self.meet(slabs, (hash, record), budget);
        Some((parts, record))
    }

    /// Remembers what the list is, which takes so many bytes. Gives its record, or `None` if it
    /// cannot be kept, because its blocks are in several.
    pub(crate) fn keep(
        &mut self,
        slabs: &Arc<Slabs>,
        frame: &Frame,
        parts: &Arc<P>,
        (memory, budget): (usize, u64),
    ) -> Option<u64> {
        let record = common_record(slabs, frame)?;
        let hash = hash(slabs, frame);
        let kept = Kept { slabs: slabs.clone(), frame: frame.clone(), parts: parts.clone() };
        self.known.put(Name::Numbers(hash), Known::List(kept), memory as u64, budget);
        self.meet(slabs, (hash, record), budget);
        Some(record)
    }

    /// Bytes that are kept.
    pub(crate) fn memory(&self) -> u64 {
        self.known.memory()
    }

    fn list(&mut self, hash: u64) -> Option<&Kept<P>> {
        match self.known.get(&Name::Numbers(hash))? {
            Known::List(kept) => Some(kept),
            Known::Met(..) => None,
        }
    }

    fn meet(&mut self, slabs: &Arc<Slabs>, list: (u64, u64), budget: u64) {
        let name = selection(slabs);
        let mut met = match self.known.remove(&name) {
            Some(Known::Met(_, met)) => met,
            _ => Vec::new(),
        };
        met.retain(|(hash, _)| *hash != list.0);
        met.push(list);
        let memory = (slabs.start.len() + slabs.count.len()) * size_of::<u64>();
        self.known.put(name, Known::Met(slabs.clone(), met), memory as u64, budget);
    }
}

fn selection(slabs: &Arc<Slabs>) -> Name {
    Name::Selection(Arc::as_ptr(slabs) as usize)
}

impl Memo {
    /// Whether the list is worth asking about.
    pub(crate) fn is_for(slabs: &Slabs) -> bool {
        slabs.len >= WORTH && slabs.stride.is_empty() && slabs.start.len() == slabs.count.len()
    }

    /// The record that all blocks of the list are in, 0 without records; `None` if they are in several.
    pub(crate) fn record_of(slabs: &Slabs, frame: &Frame) -> Option<u64> {
        common_record(slabs, frame)
    }

    /// Remembers what the list is: its checked extent. Gives it back if it cannot be kept,
    /// because its blocks are in several records.
    pub(crate) fn insert(
        &mut self,
        slabs: &Arc<Slabs>,
        frame: &Frame,
        extent: &mut Extent,
        (record_step, elements): (u64, u64),
        budget: u64,
    ) -> Option<(Arc<Parts>, u64)> {
        common_record(slabs, frame)?;
        let mut items = Vec::new();
        let mut memory = 0;
        let keep = |part: Part<'_>| -> Result<(), std::convert::Infallible> {
            let Part { first, shape, elements, .. } = part;
            let footprint = Arc::new(shape.footprint());
            memory += footprint.memory() + size_of::<Item>();
            items.push(Item { first, footprint, elements });
            Ok(())
        };
        let Ok(()) = each_part(extent, record_step, keep);
        let parts = Arc::new(Parts { elements, items });
        let record = self.keep(slabs, frame, &parts, (memory, budget))?;
        Some((parts, record))
    }
}

/// The record that all blocks are in; 0 without records; `None` when they are in several.
fn common_record(slabs: &Slabs, (_, is_record): &Frame) -> Option<u64> {
    if !is_record {
        return Some(0);
    }
    let record = *slabs.start.first()?;
    let starts = slabs.start.iter().step_by(slabs.rank);
    let counts = slabs.count.iter().step_by(slabs.rank);
    starts.zip(counts).all(|(start, count)| (*start, *count) == (record, 1)).then_some(record)
}

/// The numbers of a list without those of the record dimension.
fn numbers<'s>(slabs: &'s Slabs, (_, is_record): &Frame) -> impl Iterator<Item = &'s u64> {
    let skip = usize::from(*is_record);
    let of = move |list: &'s [u64]| list.chunks(slabs.rank.max(1)).flat_map(move |c| &c[skip..]);
    of(&slabs.start).chain(of(&slabs.count))
}

fn equal(a: &Slabs, b: &Slabs, frame: &Frame) -> bool {
    (a.rank, a.len) == (b.rank, b.len) && numbers(a, frame).eq(numbers(b, frame))
}

fn hash(slabs: &Slabs, frame: &Frame) -> u64 {
    let mix = |hash: u64, n: &u64| mix(hash, *n);
    frame.0.iter().fold(numbers(slabs, frame).fold(slabs.len as u64, mix), mix)
}
