//! Each rank moves its own runs: no messages, positioned reads and writes in file order.

use std::time::Instant;

use esker_store::{ElementOrder, File, FileRun, MadeUp};

use crate::error::Result;
use crate::hints::{Automatic, Hints};
use crate::plan::{CombPiece, Overlap, Piece, Plan};
use crate::report::{Report, Tally};
use crate::request::Request;
use crate::taken::take_out_combs;

/// How much of the file is looked at at a time; bounds the list of pieces.
fn stretch(plan: &Plan<'_>) -> u64 {
    const LONGEST: u64 = 8 << 20;
    const PIECES: u64 = 64 * 1024;
    LONGEST.min(PIECES * plan.summary.mean_run()).max(4096)
}

/// Calls `act` with the pieces of each stretch that has any, in file order.
fn each_stretch(
    plan: &Plan<'_>,
    overlap: Overlap,
    mut act: impl FnMut(&[Piece]) -> Result<()>,
) -> Result<()> {
    let length = stretch(plan);
    let mut sweep = plan.sweep();
    let mut at = plan.summary.first;
    while let Some(start) = sweep.next_offset(at).filter(|s| *s < plan.summary.end) {
        at = (start + length).min(plan.summary.end);
        act(sweep.take(start, at, overlap))?;
    }
    Ok(())
}

/// Writes every piece of the plan.
pub(crate) fn write(
    file: &dyn File,
    plan: &Plan<'_>,
    requests: &mut [Request<'_>],
    hints: &Hints,
    report: &mut Report,
) -> Result<()> {
    let limit = hints.write_at_once(file.block_size()) as usize;
    // Converted bytes that are not written yet, and where they go.
    let mut block: Vec<u8> = Vec::new();
    let mut at = 0;
    let mut tally = Tally::default();
    each_stretch(plan, Overlap::LaterWins, |pieces| {
        // Not around each piece: there may be a million, and asking for the time takes longer than to convert two elements.
        let (clock, written) = (Instant::now(), report.phases.write);
        for piece in pieces {
            let request = &mut requests[piece.request as usize];
            let size = request.memory.sides.external.size();
            let mut done = 0;
            while done < piece.len {
                let offset = piece.offset + done;
                if !block.is_empty() && (at + block.len() as u64 != offset || block.len() >= limit)
                {
                    flush(file, at, &mut block, &mut tally, report)?;
                }
                if block.is_empty() {
                    at = offset;
                }
                let room = (limit.saturating_sub(block.len()) as u64).max(size);
                let n = (piece.len - done).min(room - room % size);
                let start = block.len();
                block.resize(start + n as usize, 0);
                request.pack(piece.element + done / size, &mut block[start..])?;
                report.copied += n;
                done += n;
            }
        }
        let writing = report.phases.write - written;
        report.phases.convert += clock.elapsed().saturating_sub(writing);
        Ok(())
    })?;
    flush(file, at, &mut block, &mut tally, report)?;
    report.peak_memory = report.peak_memory.max(limit as u64);
    report.add(tally);
    Ok(())
}

fn flush(
    file: &dyn File,
    at: u64,
    block: &mut Vec<u8>,
    tally: &mut Tally,
    report: &mut Report,
) -> Result<()> {
    if block.is_empty() {
        return Ok(());
    }
    let clock = Instant::now();
    file.write_at(at, block)?;
    report.phases.write += clock.elapsed();
    tally.wrote(1, block.len() as u64);
    block.clear();
    Ok(())
}

/// Reads every piece of the plan. Gives where the file ended too early, if it did.
pub(crate) fn read(
    file: &dyn File,
    plan: &Plan<'_>,
    requests: &mut [Request<'_>],
    hints: &Hints,
    report: &mut Report,
) -> Result<Option<u64>> {
    let limit = hints.read_at_once(file.block_size());
    let hole = if hints.ds_read == Automatic::Disable { 0 } else { hints.sieve_hole };
    let (block, runs, tally) = (Vec::new(), Vec::new(), Tally::default());
    let mut reader = Reader { file, block, runs, limit, hole, tally };
    let mut short = None;
    let length = stretch(plan);
    let regular = file.made_up().is_none();
    let mut sweep = plan.sweep();
    let mut at = plan.summary.first;
    while let Some(start) = sweep.next_offset(at).filter(|s| *s < plan.summary.end) {
        // Where runs are short, as much of the file as is read at once.
        at = (start + limit).min(plan.summary.end);
        let end = match regular.then(|| sweep.combs(start, at, hole)).flatten() {
            Some(combs) => reader.read_combs(combs, requests, report)?,
            None => {
                at = (start + length).min(plan.summary.end);
                reader.read(sweep.take(start, at, Overlap::Shared), requests, report)?
            }
        };
        short = short.or(end);
    }
    report.peak_memory = report.peak_memory.max(reader.block.len() as u64);
    report.add(reader.tally);
    Ok(short)
}

struct Reader<'f> {
    file: &'f dyn File,
    block: Vec<u8>,
    runs: Vec<FileRun>,
    limit: u64,
    hole: u64,
    tally: Tally,
}

impl Reader<'_> {
    fn read(
        &mut self,
        pieces: &[Piece],
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let mut rest = pieces;
        let mut short = None;
        if let Some(file) = self.file.made_up() {
            return self.read_exactly(file, pieces, requests, report);
        }
        while let Some(first) = rest.first() {
            let group = self.group(rest);
            let (now, later) = rest.split_at(group);
            rest = later;
            let end = now.iter().map(Piece::end).max().unwrap_or(first.end());
            let long = end - first.offset > self.limit;
            if long {
                // One piece longer than the block: a block at a time.
                short = short.or(self.read_long(first, requests, report)?);
                continue;
            }
            short = short.or(self.fetch(first.offset, end - first.offset, report)?);
            let clock = Instant::now();
            for piece in now {
                let at = (piece.offset - first.offset) as usize;
                let source = &self.block[at..at + piece.len as usize];
                requests[piece.request as usize].unpack(piece.element, source)?;
                report.copied += piece.len;
            }
            report.phases.convert += clock.elapsed();
        }
        Ok(short)
    }

    /// Reads combs of one stretch, which is not longer than the block.
    fn read_combs(
        &mut self,
        combs: &[CombPiece],
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let mut short = None;
        let hole = self.hole;
        let near = |a: &CombPiece, b: &CombPiece| b.comb.offset - a.comb.end() <= hole;
        for group in combs.chunk_by(near) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (start, end) = (first.comb.offset, last.comb.end());
            short = short.or(self.fetch(start, end - start, report)?);
            let clock = Instant::now();
            take_out_combs(group, start, &self.block, requests)?;
            report.copied += group.iter().map(|piece| piece.comb.bytes()).sum::<u64>();
            report.phases.convert += clock.elapsed();
        }
        Ok(short)
    }

    /// Reads the pieces and nothing that lies between them.
    fn read_exactly(
        &mut self,
        file: &dyn MadeUp,
        pieces: &[Piece],
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let mut short = None;
        // Requests that interleave are read one after the other.
        let sorted;
        let turns = pieces.windows(2).filter(|w| w[0].request != w[1].request).count();
        let mut rest = pieces;
        if turns >= requests.len() {
            let mut list = pieces.to_vec();
            list.sort_by_key(|p| p.request);
            sorted = list;
            rest = &sorted;
        }
        while let Some(first) = rest.first() {
            let request = &mut requests[first.request as usize];
            let width = request.memory.sides.external.size();
            let straight = request.memory.native_target().is_some();
            let limit = if straight { u64::MAX } else { self.limit };
            self.runs.clear();
            let (mut count, mut bytes, mut end) = (0, 0, 0);
            for piece in rest {
                // Pieces that share bytes are not one behind the other.
                let other = piece.request != first.request || piece.offset < end;
                if other || (count > 0 && bytes + piece.len > limit) {
                    break;
                }
                let at = if straight { piece.element * width } else { bytes } as usize;
                self.runs.push(FileRun { offset: piece.offset, len: piece.len as usize, at });
                (count, bytes, end) = (count + 1, bytes + piece.len, piece.end());
            }
            if !straight && bytes > limit {
                short = short.or(self.read_long(first, requests, report)?);
                rest = &rest[1..];
                continue;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            let clock = Instant::now();
            let (target, order) = match request.memory.native_target() {
                Some(target) => (target, ElementOrder::Machine(width as usize)),
                None => {
                    if self.block.len() < bytes as usize {
                        self.block.resize(bytes as usize, 0);
                    }
                    (&mut self.block[..], ElementOrder::File)
                }
            };
            let n = file.read_runs(&self.runs, order, target)?;
            if (n as u64) < bytes {
                let mut have = n;
                for run in &self.runs {
                    let there = have.min(run.len);
                    target[run.at + there..run.at + run.len].fill(0);
                    have -= there;
                }
                short = short.or(Some(end));
            }
            report.phases.read += clock.elapsed();
            report.copied += bytes;
            self.tally.read(1, n as u64);
            if straight {
                request.range.elements += bytes / width;
                continue;
            }
            let clock = Instant::now();
            for (piece, run) in now.iter().zip(&self.runs) {
                request.unpack(piece.element, &self.block[run.at..run.at + run.len])?;
            }
            report.phases.convert += clock.elapsed();
        }
        Ok(short)
    }

    /// How many of the pieces are worth one read together with the first.
    fn group(&self, pieces: &[Piece]) -> usize {
        let start = pieces[0].offset;
        let mut end = pieces[0].end();
        let mut count = 1;
        for piece in &pieces[1..] {
            let hole = piece.offset.saturating_sub(end);
            if hole > self.hole || piece.end().max(end) - start > self.limit {
                break;
            }
            end = end.max(piece.end());
            count += 1;
        }
        count
    }

    fn read_long(
        &mut self,
        piece: &Piece,
        requests: &mut [Request<'_>],
        report: &mut Report,
    ) -> Result<Option<u64>> {
        let request = &mut requests[piece.request as usize];
        let size = request.memory.sides.external.size();
        let step = (self.limit - self.limit % size).max(size);
        let mut done = 0;
        let mut short = None;
        while done < piece.len {
            let n = step.min(piece.len - done);
            short = short.or(self.fetch(piece.offset + done, n, report)?);
            let clock = Instant::now();
            request.unpack(piece.element + done / size, &self.block[..n as usize])?;
            report.phases.convert += clock.elapsed();
            report.copied += n;
            done += n;
        }
        Ok(short)
    }

    /// Reads `len` bytes at `offset` into the block. Not straight into the caller's memory, even
    /// where the types are the same: a block that stays in the cache and one swapping copy out
    /// of it is faster than a second pass over cold memory (12.1 against 9.5 GB/s).
    fn fetch(&mut self, offset: u64, len: u64, report: &mut Report) -> Result<Option<u64>> {
        let clock = Instant::now();
        if self.block.len() < len as usize {
            self.block.resize(len as usize, 0);
        }
        let target = &mut self.block[..len as usize];
        let n = self.file.read_at(offset, target)?;
        target[n..].fill(0);
        report.phases.read += clock.elapsed();
        self.tally.read(1, n as u64);
        Ok((n < target.len()).then_some(offset + len))
    }
}
