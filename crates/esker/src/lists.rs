//! What lists of blocks are in a space, so that the same list is not worked out again.
//!
//! Programs write hundreds of variables over one decomposition, step after step. A list is
//! recognised by the selection that holds it or, if that is another one, by its numbers, without
//! the record that all of its blocks are in.

use std::sync::Arc;

use crate::bounded::Bounded;
use crate::mixed::{ByNumber, mix};
use crate::selection::Slabs;

/// What a list means the same in: the variable's shape without the record dimension (and how it is
/// cut, for chunks), and whether it has one.
pub(crate) type Frame = (Vec<u64>, bool);

/// What lists were found to be.
#[derive(Debug)]
pub(crate) struct Memo<P> {
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
    /// A selection that was met, and which lists it is. It is held, so that nothing else can come to lie where it is.
    Met(Arc<Slabs>, Vec<Same>),
}

/// That a selection is a list that is kept: under which name, the list itself, and in which record.
#[derive(Debug, Clone)]
struct Same {
    hash: u64,
    list: Arc<Slabs>,
    record: u64,
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
        for Same { hash, list, record } in met {
            // Another list may have its name by now.
            let same = |kept: &&Kept<P>| kept.frame == *frame && Arc::ptr_eq(&kept.slabs, &list);
            if let Some(kept) = self.list(hash).filter(same) {
                return Some((kept.parts.clone(), record));
            }
        }
        let hash = hash(slabs, frame);
        let same = |kept: &&Kept<P>| kept.frame == *frame && equal(&kept.slabs, slabs, frame);
        let kept = self.list(hash).filter(same)?;
        let (parts, list) = (kept.parts.clone(), kept.slabs.clone());
        let record = common_record(slabs, frame)?;
        self.meet(slabs, Same { hash, list, record }, budget);
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
        self.meet(slabs, Same { hash, list: slabs.clone(), record }, budget);
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

    fn meet(&mut self, slabs: &Arc<Slabs>, same: Same, budget: u64) {
        let name = selection(slabs);
        let mut met = match self.known.remove(&name) {
            Some(Known::Met(_, met)) => met,
            _ => Vec::new(),
        };
        met.retain(|old| old.hash != same.hash);
        met.push(same);
        let memory = (slabs.start.len() + slabs.count.len()) * size_of::<u64>();
        self.known.put(name, Known::Met(slabs.clone(), met), memory as u64, budget);
    }
}

fn selection(slabs: &Arc<Slabs>) -> Name {
    Name::Selection(Arc::as_ptr(slabs) as usize)
}

/// Lists shorter than this are quicker to check than to look up.
const WORTH: usize = 16;

/// Whether the list is worth asking about.
pub(crate) fn is_worth(slabs: &Slabs) -> bool {
    slabs.len >= WORTH && slabs.stride.is_empty() && slabs.start.len() == slabs.count.len()
}

/// The record that all blocks are in; 0 without records; `None` when they are in several.
pub(crate) fn common_record(slabs: &Slabs, (_, is_record): &Frame) -> Option<u64> {
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

/// Of some of the list's blocks, and of all of the frame: what has the same is compared.
fn hash(slabs: &Slabs, frame: &Frame) -> u64 {
    const BLOCKS: usize = 32;
    let (rank, skip) = (slabs.rank.max(1), usize::from(frame.1));
    let step = slabs.len.div_ceil(BLOCKS).max(1);
    let some = |list: &[u64], hash: u64| {
        let blocks = list.chunks(rank).step_by(step).chain(list.chunks(rank).next_back());
        blocks.flat_map(|block| &block[skip..]).fold(hash, |hash, n| mix(hash, *n))
    };
    let hash = some(&slabs.count, some(&slabs.start, slabs.len as u64));
    frame.0.iter().fold(hash, |hash, n| mix(hash, *n))
}
