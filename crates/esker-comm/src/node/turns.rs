//! What a rank may do with a stage in a turn, and when.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::claims::{Claimed, Claims, mask};
use super::wait::Counter;
use super::{BLOCK, Finished, Inner, Mine, NodeMemory, WORD, head};
use crate::{CommError, Result};

/// The counters of a buffer. Turn t of a stage has buffer t mod 2, or the only one.
struct Counters<'m> {
    /// The turn that is open, and 1.
    open: &'m Counter,
    /// Ranks that have finished laying.
    arrived: &'m Counter,
    /// The turn that is shown, and 1.
    shown: &'m Counter,
    /// Ranks that have looked.
    looked: &'m Counter,
}

/// A buffer of a stage, in a turn, of which `len` bytes are used.
#[derive(Debug, Clone)]
struct Buffer {
    memory: NodeMemory,
    number: usize,
    mark: u32,
    len: usize,
}

impl NodeMemory {
    /// Opens a stage of this rank's for a turn, when all have ended the one before it in the same buffer. On other
    /// ranks it does nothing.
    pub fn open(&self, stage: usize, turn: u64) -> Result<()> {
        let buffer = self.buffer("open", stage, turn, 0)?;
        if self.0.stages.owners[stage] != self.0.rank {
            return Ok(());
        }
        let (mine, counters) = (buffer.mine(), buffer.counters());
        if mine.opened.load(Ordering::Relaxed) == buffer.mark {
            return Ok(());
        }
        let unfinished = mine.opened.load(Ordering::Relaxed) != mine.taken.load(Ordering::Relaxed);
        if unfinished || mine.holds.load(Ordering::Acquire) != 0 {
            return Err(out_of_turn("open", "the turn before it was not taken and given back"));
        }
        if mine.shown.swap(0, Ordering::Relaxed) != 0 {
            buffer.wait_for_all(counters.looked, |rank| &rank.looked)?;
        }
        mine.opened.store(buffer.mark, Ordering::Relaxed);
        counters.arrived.set(0);
        counters.looked.set(0);
        counters.open.set(buffer.mark);
        Ok(())
    }

    /// Begins this rank's part of a turn, when the owner has opened it: `len` bytes of the stage are used, the same on all
    /// ranks. Every rank has one for every stage in every turn.
    pub fn lay(&self, stage: usize, turn: u64, len: usize) -> Result<Laying> {
        let buffer = self.buffer("lay", stage, turn, len)?;
        buffer.wait_for_owner(buffer.counters().open)?;
        once(&buffer.mine().laid, buffer.mark, "lay")?;
        Ok(Laying { buffer, mixed: false, lost: false, finished: false })
    }

    /// All that ranks have laid into a stage of this rank's, when all of them have finished.
    pub fn take(&self, stage: usize, turn: u64, len: usize) -> Result<Whole> {
        let buffer = self.buffer("take", stage, turn, len)?;
        let (mine, counters) = (buffer.mine(), buffer.counters());
        if self.0.stages.owners[stage] != self.0.rank {
            return Err(out_of_turn("take", "the stage is another rank's"));
        }
        if mine.opened.load(Ordering::Relaxed) != buffer.mark {
            return Err(out_of_turn("take", "the turn is not open"));
        }
        buffer.wait_for_all(counters.arrived, |rank| &rank.laid)?;
        once(&mine.taken, buffer.mark, "take")?;
        mine.holds.store(1, Ordering::Relaxed);
        buffer.claims().settle();
        Ok(Whole { buffer })
    }

    /// What the owner of a stage shows, when it does. Every rank looks at it, also the owner.
    pub fn look(&self, stage: usize, turn: u64, len: usize) -> Result<Shown> {
        let buffer = self.buffer("look", stage, turn, len)?;
        buffer.wait_for_owner(buffer.counters().shown)?;
        once(&buffer.mine().looked, buffer.mark, "look")?;
        Ok(Shown { buffer })
    }

    /// This rank takes part in no more turns: the waits of all others end with an error. Dropping a handle does not say
    /// that.
    pub fn leave(&self) {
        Buffer { memory: self.clone(), number: 0, mark: 0, len: 0 }.break_off();
    }

    fn buffer(
        &self,
        operation: &'static str,
        stage: usize,
        turn: u64,
        len: usize,
    ) -> Result<Buffer> {
        let stages = &self.0.stages;
        if stage >= stages.owners.len() || len > stages.bytes {
            let reason = format!("{len} bytes of stage {stage} are not in {stages:?}");
            return Err(CommError::BadArgument { operation, reason });
        }
        // Not 0, which is where counters begin.
        let mark = (turn % u64::from(u32::MAX)) as u32 + 1;
        let number = stage * stages.buffers + turn as usize % stages.buffers;
        Ok(Buffer { memory: self.clone(), number, mark, len })
    }
}

/// Refuses what this rank has done in this turn already.
fn once(last: &AtomicU32, mark: u32, operation: &'static str) -> Result<()> {
    match last.swap(mark, Ordering::Relaxed) == mark {
        true => Err(out_of_turn(operation, "this rank has done it in this turn")),
        false => Ok(()),
    }
}

fn out_of_turn(operation: &'static str, reason: &str) -> CommError {
    CommError::BadArgument { operation, reason: reason.into() }
}

impl Buffer {
    fn inner(&self) -> &Inner {
        &self.memory.0
    }

    fn mine(&self) -> &Mine {
        &self.inner().mine[self.number]
    }

    /// Where it begins.
    #[allow(unsafe_code)]
    fn start(&self) -> *mut u8 {
        let inner = self.inner();
        let place = super::PAGE + self.number * inner.places.len;
        // SAFETY: `Stages::memory`, the length of the map, counts a page and as many buffers as there are.
        unsafe { inner.map.start().add(place) }
    }

    #[allow(unsafe_code)]
    fn counters(&self) -> Counters<'_> {
        let first = self.start().cast::<Counter>();
        // SAFETY: four of them are at the beginning of a buffer, which is aligned to pages; they are atomic, and zero is a
        // value of theirs. The map lives as long as `self`.
        let at = |n| unsafe { &*first.add(n) };
        Counters { open: at(0), arrived: at(1), shown: at(2), looked: at(3) }
    }

    /// What each rank has finished.
    #[allow(unsafe_code)]
    fn finished(&self) -> &[Finished] {
        let inner = self.inner();
        // SAFETY: so many of them are in the buffer (`Places::of`), aligned; they are atomic, and zero is a value of theirs.
        unsafe {
            let first = self.start().add(inner.places.finished).cast::<Finished>();
            std::slice::from_raw_parts(first, inner.ranks as usize)
        }
    }

    /// Waits until the owner has come to this turn.
    fn wait_for_owner(&self, counter: &Counter) -> Result<()> {
        let inner = self.inner();
        let owner = inner.stages.owners[self.number / inner.stages.buffers];
        counter.wait_for(self.mark, &inner.watch, |rank| rank == owner)
    }

    /// Waits until all ranks have finished something of the turn that is open.
    fn wait_for_all(&self, counter: &Counter, of: impl Fn(&Finished) -> &AtomicU32) -> Result<()> {
        let inner = self.inner();
        let turn = self.counters().open.get();
        let awaited = |rank: usize| of(&self.finished()[rank]).load(Ordering::Acquire) != turn;
        counter.wait_for(inner.ranks, &inner.watch, awaited)
    }

    /// This rank has finished something of its turn.
    fn finish(&self, counter: &Counter, of: impl Fn(&Finished) -> &AtomicU32) {
        let inner = self.inner();
        of(&self.finished()[inner.rank]).store(self.mark, Ordering::Release);
        counter.count(inner.ranks);
    }

    #[allow(unsafe_code)]
    fn claims(&self) -> Claims<'_> {
        let (start, places) = (self.start(), &self.inner().places);
        // SAFETY: both lists are in the buffer (`Places::of`), which has room for whole pages and so for whole blocks, are
        // aligned, and are atomic but for who has the `Whole`, which `parts` gives out, and nobody else then.
        unsafe {
            let blocks = start.add(places.blocks).cast::<AtomicU8>();
            let bits = start.add(places.bits).cast::<AtomicU64>();
            Claims {
                blocks: std::slice::from_raw_parts(blocks, self.len.div_ceil(BLOCK)),
                bits: std::slice::from_raw_parts(bits, self.len.div_ceil(WORD)),
                alone: self.inner().ranks == 1,
            }
        }
    }

    /// Where its bytes begin.
    #[allow(unsafe_code)]
    fn bytes(&self) -> *mut u8 {
        // SAFETY: within the buffer (`Places::of`).
        unsafe { self.start().add(self.inner().places.bytes) }
    }

    /// Nobody can end this turn any more.
    fn break_off(&self) {
        let inner = self.inner();
        head(&inner.map).broken.store(inner.rank as u32 + 1, Ordering::Release);
        for number in 0..inner.mine.len() {
            let buffer = Buffer { number, ..self.clone() };
            let Counters { open, arrived, shown, looked } = buffer.counters();
            [open, arrived, shown, looked].into_iter().for_each(Counter::wake);
        }
    }
}

/// A rank's part of a turn. Dropped unfinished, it ends the waits of all others with an error: they could wait for ever.
#[derive(Debug)]
pub struct Laying {
    buffer: Buffer,
    mixed: bool,
    lost: bool,
    finished: bool,
}

impl Laying {
    /// Claims the bytes `at..at + len`, elements of `size` bytes one behind the other, and calls `each` with those that are
    /// this rank's now, and how far they are from `at`; all of them, where no other rank has claimed any. An element is never
    /// some of two ranks'. Stops at the first error of `each`.
    ///
    /// # Panics
    ///
    /// If that is not within the bytes that are used in the turn.
    #[allow(unsafe_code)]
    #[inline]
    pub fn try_claim<E>(
        &mut self,
        at: usize,
        len: usize,
        size: usize,
        mut each: impl FnMut(usize, &mut [u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let end = at.saturating_add(len);
        assert!(at <= end && end <= self.buffer.len && size > 0, "{at}, {len}, {size}");
        debug_assert!(len.is_multiple_of(size), "{len}, {size}");
        let mut from = at;
        while from < end {
            let to = match self.buffer.claims().claim(from, end, size) {
                Claimed::All => end,
                Claimed::Before(lost) => {
                    self.lost = true;
                    lost
                }
                Claimed::Mixed => {
                    self.mixed = true;
                    return Ok(());
                }
            };
            if from < to {
                // SAFETY: within the buffer's bytes, by the assertion. Each of these was claimed by this call, and a byte is
                // claimed once in a turn, so that nobody else reads or writes it before this rank has finished, which takes
                // `self`: the owner, and then the others, look after that.
                let bytes = unsafe {
                    std::slice::from_raw_parts_mut(self.buffer.bytes().add(from), to - from)
                };
                each(from - at, bytes)?;
            }
            from = if to == end { end } else { to + size };
        }
        Ok(())
    }

    /// The same, where nothing can fail.
    pub fn claim(
        &mut self,
        at: usize,
        len: usize,
        size: usize,
        mut each: impl FnMut(usize, &mut [u8]),
    ) {
        let outcome: std::result::Result<(), std::convert::Infallible> =
            self.try_claim(at, len, size, |from, bytes| {
                each(from, bytes);
                Ok(())
            });
        outcome.unwrap_or_else(|never| match never {});
    }

    /// Claims runs of `len` bytes from `at` on, one every `step`, of elements of `size` bytes, and puts `values` there, which
    /// are as many runs as there are whole ones of; what another rank has stays.
    ///
    /// # Panics
    ///
    /// If that is not within the bytes that are used in the turn, or runs overlap.
    #[allow(unsafe_code)]
    pub fn lay_runs(&mut self, at: usize, (len, step): (usize, usize), size: usize, values: &[u8]) {
        let runs = values.len() / len.max(1);
        let span = runs.checked_sub(1).and_then(|last| last.checked_mul(step)?.checked_add(len));
        let end = span.map_or(at, |span| at.saturating_add(span));
        assert!(
            end <= self.buffer.len && len > 0 && (step >= len || runs < 2),
            "{at}, {len}, {step}"
        );
        let (mut run, mut place) = (0, at);
        while run < runs {
            // All that lie in one word of the bits are claimed at once.
            let word = place / WORD;
            let (mut bits, mut last, mut next) = (0, run, place);
            while last < runs && next + len <= (word + 1) * WORD {
                bits |= mask(next % WORD, next % WORD + len);
                (last, next) = (last + 1, next + step);
            }
            if last > run && self.buffer.claims().claim_word(word, bits) {
                for (n, value) in values[run * len..last * len].chunks_exact(len).enumerate() {
                    // SAFETY: within the buffer's bytes, by the assertion; each run was claimed by this call, as in `try_claim`.
                    unsafe { put(value, self.buffer.bytes().add(place + n * step)) };
                }
            } else {
                // It reaches into another word, or some of it is another rank's.
                last = last.max(run + 1);
                for n in run..last {
                    let (at, value) = (at + n * step, &values[n * len..(n + 1) * len]);
                    self.claim(at, len, size, |from, out| {
                        out.copy_from_slice(&value[from..from + out.len()]);
                    });
                }
            }
            (run, place) = (last, at + last * step);
        }
    }

    /// Whether something that this rank wanted to lay was laid before.
    pub fn has_lost(&self) -> bool {
        self.lost
    }

    /// Says that this rank wants the bytes `at..at + len`. A turn in which ranks want bytes is not one in which they lay some.
    ///
    /// # Panics
    ///
    /// If that is not within the bytes that are used in the turn.
    pub fn want(&mut self, at: usize, len: usize) {
        let end = at.saturating_add(len);
        assert!(at <= end && end <= self.buffer.len, "{at}, {len}");
        self.buffer.claims().want(at, end);
    }

    /// Ends this rank's part.
    pub fn finish(mut self) -> Result<()> {
        if self.mixed {
            let reason = "ranks have elements of different lengths in the same bytes";
            return Err(out_of_turn("claim", reason));
        }
        self.finished = true;
        self.buffer.finish(self.buffer.counters().arrived, |rank| &rank.laid);
        Ok(())
    }
}

/// Copies a short run.
///
/// # Safety
///
/// `to` has room for it, and nobody else uses that.
#[allow(unsafe_code)]
#[inline]
unsafe fn put(run: &[u8], to: *mut u8) {
    // SAFETY: the caller's. Lengths that the compiler knows are one instruction.
    unsafe {
        match run.len() {
            4 => std::ptr::copy_nonoverlapping(run.as_ptr(), to, 4),
            8 => std::ptr::copy_nonoverlapping(run.as_ptr(), to, 8),
            len => std::ptr::copy_nonoverlapping(run.as_ptr(), to, len),
        }
    }
}

impl Drop for Laying {
    fn drop(&mut self) {
        if !self.finished {
            self.buffer.break_off();
        }
    }
}

/// All of a stage, in the hands of its owner.
#[derive(Debug)]
pub struct Whole {
    buffer: Buffer,
}

impl Whole {
    /// The bytes, and a bit for each that was laid or is wanted; what the others hold is left from another time.
    #[allow(unsafe_code)]
    pub fn parts(&mut self) -> (&mut [u8], &mut [u64]) {
        let buffer = &self.buffer;
        let (bits, len) = (buffer.claims().bits, buffer.len);
        // SAFETY: all ranks have finished, the turn is not shown, and the next is not open before this was given back: until
        // then this is the only way to the bytes and the bits, and it borrows `self`.
        unsafe {
            let bits = std::slice::from_raw_parts_mut(bits.as_ptr().cast_mut().cast(), bits.len());
            (std::slice::from_raw_parts_mut(buffer.bytes(), len), bits)
        }
    }

    /// Shows it to all ranks.
    pub fn show(self) {
        let buffer = self.buffer.clone();
        buffer.mine().shown.store(1, Ordering::Relaxed);
        drop(self);
        buffer.counters().shown.set(buffer.mark);
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.parts().1.fill(0);
        self.buffer.mine().holds.store(0, Ordering::Release);
    }
}

/// What an owner shows.
#[derive(Debug)]
pub struct Shown {
    buffer: Buffer,
}

impl Shown {
    /// The bytes.
    #[allow(unsafe_code)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: nobody writes to them: the owner has given its `Whole` away to show it, and opens the next turn in this
        // buffer when all ranks have looked, this one when it drops `self`.
        unsafe { std::slice::from_raw_parts(self.buffer.bytes(), self.buffer.len) }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.buffer.finish(self.buffer.counters().looked, |rank| &rank.looked);
    }
}
