//! What is to be moved: queued, checked, and nothing moves yet.

use std::any::Any;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use esker_format::{RangeReport, VarId};

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::plan::Extent;
use crate::selection::{Checked, Space};

/// The number of a queued request, to wait for it or cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

impl RequestId {
    /// Of a request that nobody waits for: it comes from a log.
    pub(crate) const REPLAYED: RequestId = RequestId(u64::MAX);
}

/// Which way a request moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Put,
    Get,
}

/// What a layout knows of a request, for its own use.
pub(crate) type Opaque = Arc<dyn Any + Send + Sync>;

/// One queued request.
#[derive(Debug)]
pub(crate) struct Request<'b> {
    pub(crate) id: RequestId,
    pub(crate) direction: Direction,
    /// The variable, by the file's number.
    pub(crate) var: VarId,
    pub(crate) memory: Memory<'b>,
    pub(crate) extent: Extent,
    /// What it is in a log, if that is known already, and in which record.
    pub(crate) parts: Option<(Opaque, u64)>,
    /// Records that the variable has at least when this is written.
    pub(crate) records: u64,
    /// The records that are written whole, if that is all it is.
    pub(crate) whole_records: Option<Range<u64>>,
    /// What the extent is in.
    pub(crate) space: Space,
    /// The definition that the extent belongs to.
    pub(crate) epoch: u64,
    /// What did not fit, when it was moved.
    pub(crate) range: RangeReport,
    /// What the caller says of its values.
    pub(crate) expected: Option<Box<Expected>>,
}

/// The crc32c that the caller's memory has, or will have.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) sum: u32,
    /// In words, for an error.
    pub(crate) selection: String,
}

/// Elements of a request that are nowhere in the file: holes (the first element, and how many),
/// once behind each of `firsts`.
#[derive(Debug)]
pub(crate) struct Gaps {
    pub(crate) holes: Vec<(u64, u64)>,
    pub(crate) firsts: Vec<u64>,
}

impl Gaps {
    /// How many there are.
    pub(crate) fn elements(&self) -> u64 {
        let holes: u64 = self.holes.iter().map(|(_, len)| len).sum();
        holes.saturating_mul(self.firsts.len() as u64)
    }
}

impl<'b> Request<'b> {
    /// A request for a selection that was checked.
    pub(crate) fn new(
        id: RequestId,
        (direction, var, checked): (Direction, VarId, Checked),
        memory: Memory<'b>,
        epoch: u64,
    ) -> Request<'b> {
        let Checked { records, extent, whole_records, parts, gaps, space, .. } = checked;
        let range = RangeReport::default();
        let mut request = Request {
            id,
            direction,
            var,
            memory,
            extent,
            parts,
            records,
            whole_records,
            space,
            epoch,
            range,
            expected: None,
        };
        request.fill(&gaps);
        request
    }

    #[inline]
    pub(crate) fn pack(&mut self, element: u64, out: &mut [u8]) -> Result<()> {
        if self.memory.pack_few(element, out) {
            return Ok(());
        }
        let report = self.memory.pack(element, out).map_err(Error::Unchecked)?;
        self.note(element, &report);
        Ok(())
    }

    #[inline]
    pub(crate) fn unpack(&mut self, element: u64, source: &[u8]) -> Result<()> {
        if self.memory.unpack_few(element, source) {
            return Ok(());
        }
        let report = self.memory.unpack(element, source).map_err(Error::Unchecked)?;
        self.note(element, &report);
        Ok(())
    }

    /// Puts the variable's fill value to these elements of what is read into.
    pub(crate) fn fill(&mut self, gaps: &[Gaps]) {
        if gaps.is_empty() || self.direction == Direction::Put {
            return;
        }
        const AT_ONCE: u64 = 512;
        let block = self.memory.fill_bytes(AT_ONCE);
        let size = self.memory.sides.external.size();
        for gaps in gaps {
            for (first, (hole, len)) in
                gaps.firsts.iter().flat_map(|f| gaps.holes.iter().map(move |hole| (f, hole)))
            {
                let end = first + hole + len;
                for element in (first + hole..end).step_by(AT_ONCE as usize) {
                    let n = (end - element).min(AT_ONCE);
                    // The types were checked when the memory was given.
                    let _ = self.unpack(element, &block[..(n * size) as usize]);
                }
            }
        }
    }

    /// Adds the report of the elements from `element` on. Pieces come in the file's order, and
    /// the first that did not fit is the first in memory.
    fn note(&mut self, element: u64, report: &RangeReport) {
        self.range.elements += report.elements;
        if let Some(mut found) = report.first {
            found.index += element;
            self.range.out_of_range += report.out_of_range;
            if self.range.first.is_none_or(|first| found.index < first.index) {
                self.range.first = Some(found);
            }
        }
    }
}

/// A queue of requests, which borrows the memory that they read or fill.
///
/// Requests are put into it by [`Dataset::iput`](crate::Dataset::iput),
/// [`iget`](crate::Dataset::iget) and [`bput`](crate::Dataset::bput), and moved, all together, by
/// [`wait_all`](crate::Dataset::wait_all) or [`wait`](crate::Dataset::wait): the more a wait has, the
/// larger are the reads and writes that it makes. Writes are done before reads. Where writes
/// of one queue overlap, the later one wins.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let mut def = Dataset::create(dir.path().join("x.nc"), CreateOptions::new())?;
/// # let x = def.add_dim("x", DimLen::Fixed(4))?;
/// # let (t, u) = (def.add_var("t", ExternalType::Int, &[x])?, def.add_var("u", ExternalType::Float, &[x])?);
/// # let mut ds = def.enddef()?;
/// let (temperature, wind) = ([1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5]);
/// let mut queue = Requests::new();
/// ds.iput(&mut queue, t, &Selection::all(), &temperature)?;
/// ds.iput(&mut queue, u, &Selection::all(), &wind)?;
/// ds.wait_all(&mut queue)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Requests<'b> {
    pub(crate) queue: Vec<Request<'b>>,
    next: u64,
    buffer: Option<Attached>,
}

/// The bounded memory of buffered puts.
#[derive(Debug, Clone, Copy)]
struct Attached {
    size: u64,
    used: u64,
}

impl<'b> Requests<'b> {
    /// An empty queue.
    pub fn new() -> Requests<'b> {
        Requests::default()
    }

    /// How many requests are queued.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes a request back; false if it is not queued (any more).
    pub fn cancel(&mut self, id: RequestId) -> bool {
        let before = self.queue.len();
        let removed = self.remove(&HashSet::from([id]));
        self.release(&removed);
        self.queue.len() < before
    }

    /// Takes all requests back.
    pub fn cancel_all(&mut self) {
        let removed = std::mem::take(&mut self.queue);
        self.release(&removed);
    }

    /// Attaches a buffer of `size` bytes for buffered puts. Fails if there is one.
    pub fn attach_buffer(&mut self, size: u64) -> Result<()> {
        if self.buffer.is_some() {
            return Err(Error::Buffer("a buffer is attached already".to_string()));
        }
        self.buffer = Some(Attached { size, used: 0 });
        Ok(())
    }

    /// Detaches the buffer. Fails while buffered puts are queued.
    pub fn detach_buffer(&mut self) -> Result<()> {
        match self.buffer {
            None => Err(Error::Buffer("no buffer is attached".to_string())),
            Some(Attached { used, .. }) if used > 0 => {
                Err(Error::Buffer(format!("{used} bytes of buffered puts wait to be written")))
            }
            Some(_) => {
                self.buffer = None;
                Ok(())
            }
        }
    }

    /// The size of the attached buffer and how much of it is in use.
    pub fn buffer_usage(&self) -> Option<(u64, u64)> {
        self.buffer.map(|b| (b.size, b.used))
    }

    /// Takes `bytes` of the attached buffer.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<()> {
        let Some(buffer) = &mut self.buffer else {
            return Err(Error::Buffer("a buffered put needs an attached buffer".to_string()));
        };
        let free = buffer.size - buffer.used;
        if bytes > free {
            let size = buffer.size;
            return Err(Error::Buffer(format!(
                "a buffered put of {bytes} bytes does not fit: {free} of {size} are free"
            )));
        }
        buffer.used += bytes;
        Ok(())
    }

    /// Gives `bytes` of the attached buffer back.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        if let Some(buffer) = &mut self.buffer {
            buffer.used = buffer.used.saturating_sub(bytes);
        }
    }

    pub(crate) fn push(&mut self, make: impl FnOnce(RequestId) -> Request<'b>) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        self.queue.push(make(id));
        id
    }

    /// Takes these requests out of the queue, in their order.
    pub(crate) fn remove(&mut self, ids: &HashSet<RequestId>) -> Vec<Request<'b>> {
        let (taken, left) = self.queue.drain(..).partition(|r| ids.contains(&r.id));
        self.queue = left;
        taken
    }

    /// Gives back what done or cancelled requests had of the attached buffer.
    pub(crate) fn release(&mut self, requests: &[Request<'_>]) {
        self.give_back(requests.iter().map(|r| r.memory.kept()).sum());
    }
}
