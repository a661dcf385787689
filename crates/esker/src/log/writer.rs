//! Appending to a log: payloads as they come, and what they are behind them.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use esker_codec::Scratch;
use esker_format::VarId;
use esker_format::log::{BLOCK, FrameWriter, Write, checksums};
use esker_store::File;

use super::cut::Slice;
use super::filtered::{self, Filtered};
use super::known::Known;
use super::parts::{Part, Shape, each_part_of};
use super::sections::{Section, Sections};
use crate::error::{Error, Result};
use crate::report::Report;
use crate::request::Request;

/// Bytes of payload that are gathered before they are written. Writes begin and end at multiples of
/// it: the system takes 82 KB that lie anywhere at 2.8 GB/s and 256 KiB at such places at 3.7 to 5.5,
/// which is worth a copy.
const BUFFER: usize = 256 * 1024;

/// Values that are converted at once: whole blocks, so that their checksums are the payload's.
const CONVERTED: usize = 4 * BLOCK;

/// The frame is written when it has this many bytes.
const FRAME: usize = 256 * 1024;

/// One rank's log while it grows. Nothing here talks to another rank.
#[derive(Debug)]
pub(crate) struct LogWriter {
    meta: Arc<dyn File>,
    data: Arc<dyn File>,
    /// Where the next frame goes.
    meta_end: u64,
    /// Where the buffer goes.
    data_end: u64,
    buffer: Vec<u8>,
    frame: FrameWriter,
    /// Where the frame will begin in the metadata log.
    frame_at: u64,
    /// What the frames since the last commit touch, where somebody wants to know.
    sections: Option<Sections>,
    /// Frames that are finished and not written, because a write failed.
    pending: Vec<u8>,
    known: Known,
    /// Behind a lock so that threads may share what has a writer; nobody waits for it.
    scratch: Mutex<Scratch>,
    /// Values on their way from another type.
    converted: Vec<u8>,
}

/// How much of a log there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lengths {
    pub(crate) meta: u64,
    pub(crate) data: u64,
}

impl LogWriter {
    /// Starts a log whose head has `head` bytes and is in `meta` already, and which remembers about
    /// `cache` bytes of footprints.
    pub(crate) fn new(
        meta: Arc<dyn File>,
        data: Arc<dyn File>,
        head: u64,
        cache: u64,
    ) -> LogWriter {
        LogWriter {
            meta,
            data,
            meta_end: head,
            data_end: 0,
            buffer: Vec::new(),
            frame: FrameWriter::new(0, 0),
            frame_at: head,
            sections: None,
            pending: Vec::new(),
            known: Known::new(cache),
            scratch: Mutex::new(Scratch::new()),
            converted: Vec::new(),
        }
    }

    /// The same, in sections that can be read without what is before them.
    pub(crate) fn in_sections(mut self) -> LogWriter {
        self.sections = Some(Sections::new(self.frame_at));
        self
    }

    /// The sections that are in the files and were not committed. After a flush, and nothing is added to them any more.
    pub(crate) fn finish_sections(&mut self) -> &[Section] {
        self.sections.as_mut().map_or(&[], Sections::finish)
    }

    /// These sections were committed: the log's first so many of those that were not.
    pub(crate) fn committed(&mut self, sections: usize) {
        if let Some(all) = &mut self.sections {
            all.committed(sections);
        }
    }

    /// Bytes of footprints that it remembers.
    pub(crate) fn cached(&self) -> u64 {
        self.known.memory()
    }

    /// Appends a request, whose extent is in the log's space. On an error the entries that were
    /// appended before stay, and the log is sound.
    pub(crate) fn append(
        &mut self,
        request: &mut Request<'_>,
        record_step: u64,
        epoch: u64,
        filters: Option<&Filtered>,
        report: &mut Report,
    ) -> Result<()> {
        each_part_of(request, record_step, |request, part| match filters {
            None => self.append_part(request, &part, epoch, report),
            Some(filters) => self.append_filtered(request, part, epoch, filters, report),
        })
    }

    fn append_part(
        &mut self,
        request: &mut Request<'_>,
        part: &Part<'_>,
        epoch: u64,
        report: &mut Report,
    ) -> Result<()> {
        let VarId(var) = request.var;
        let width = request.memory.sides.external.size();
        let len = (part.elements.end - part.elements.start) * width;
        let as_they_are = request.memory.as_they_are(part.elements.clone());
        let write = Write {
            var: var as u64,
            epoch,
            records: part.records,
            first: part.first,
            little: as_they_are.is_some() && cfg!(target_endian = "little"),
            width: width as u8,
        };
        let sums = match as_they_are {
            Some(bytes) => {
                let sums = checksums(bytes);
                self.put(bytes, report)?;
                sums
            }
            None => self.convert(request, part, report)?,
        };
        report.bytes += len;
        self.describe(&write, &part.shape, len, false, &sums, report)
    }

    /// Appends bytes of a payload: all of them, or none after an error.
    fn put(&mut self, bytes: &[u8], report: &mut Report) -> Result<()> {
        let start = self.payload();
        let put = self.put_some(bytes, report);
        if put.is_err() {
            self.cut_at(start);
        }
        put
    }

    fn put_some(&mut self, mut bytes: &[u8], report: &mut Report) -> Result<()> {
        while !bytes.is_empty() {
            let room = BUFFER - (self.payload() % BUFFER as u64) as usize;
            if room == BUFFER && bytes.len() >= BUFFER {
                self.flush_data(report)?;
                let (whole, rest) = bytes.split_at(bytes.len() / BUFFER * BUFFER);
                self.data.write_at(self.data_end, whole)?;
                self.data_end += whole.len() as u64;
                report.writes += 1;
                report.bytes_written += whole.len() as u64;
                bytes = rest;
                continue;
            }
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            report.copied += now.len() as u64;
            bytes = rest;
            if now.len() == room {
                self.flush_data(report)?;
            }
        }
        Ok(())
    }

    /// Forgets the payload from `at` on, which no entry describes.
    fn cut_at(&mut self, at: u64) {
        self.buffer.truncate(at.saturating_sub(self.data_end) as usize);
        self.data_end = self.data_end.min(at);
    }

    /// Adds the entry of a payload that was just appended.
    fn describe(
        &mut self,
        write: &Write,
        shape: &Shape<'_>,
        len: u64,
        encoded: bool,
        sums: &[u32],
        report: &mut Report,
    ) -> Result<()> {
        match self.known.find(shape) {
            Some(known) => {
                self.frame.entry(write, known.number, len, encoded, sums);
                if let Some(sections) = &mut self.sections {
                    sections.refer(known);
                }
            }
            None => {
                let footprint = shape.footprint();
                let number = self.frame.define(&footprint);
                let definition = self.frame.entry(write, number, len, encoded, sums);
                if let Some(mut known) = definition {
                    let Range { start, end } = known.place;
                    known.place = self.frame_at + start..self.frame_at + end;
                    self.known.insert(shape, footprint, known);
                }
            }
        }
        if let Some(sections) = &mut self.sections {
            sections.touch(write);
        }
        match self.frame.len() >= FRAME {
            true => self.flush(report),
            false => Ok(()),
        }
    }

    /// Appends a part through the variable's filters, in entries that can be decoded at once.
    fn append_filtered(
        &mut self,
        request: &mut Request<'_>,
        part: Part<'_>,
        epoch: u64,
        filters: &Filtered,
        report: &mut Report,
    ) -> Result<()> {
        let VarId(var) = request.var;
        let width = request.memory.sides.external.size();
        let Part { records, first, shape, elements } = part;
        let mut slices = Vec::new();
        Slice { records, first, footprint: shape.footprint(), elements }
            .cut(filtered::LONGEST / width, &mut slices);
        for slice in slices {
            let scratch = self.scratch.get_mut().unwrap_or_else(PoisonError::into_inner);
            let elements = slice.elements.clone();
            let len = ((elements.end - elements.start) * width) as usize;
            let encoded = match request.memory.as_they_are(elements.clone()) {
                Some(bytes) => filters.encode(&slice.shape(), bytes, true, scratch),
                None => {
                    let mut bytes = vec![0; len];
                    request.pack(elements.start, &mut bytes)?;
                    filters.encode(&slice.shape(), &bytes, false, scratch)
                }
            };
            let payload = encoded.map_err(Error::Filter)?;
            report.copied += len as u64;
            report.bytes += len as u64;
            let (records, first) = (slice.records, slice.first);
            let (var, width) = (var as u64, width as u8);
            let write = Write { var, epoch, records, first, little: false, width };
            self.put(&payload, report)?;
            let footprint = Arc::new(slice.footprint);
            let (shape, len) = (Shape::Shared(&footprint), payload.len() as u64);
            self.describe(&write, &shape, len, true, &checksums(&payload), report)?;
        }
        Ok(())
    }

    /// Appends values in the variable's form.
    fn convert(
        &mut self,
        request: &mut Request<'_>,
        part: &Part<'_>,
        report: &mut Report,
    ) -> Result<Vec<u32>> {
        let width = request.memory.sides.external.size();
        let start = self.payload();
        let mut sums = Vec::new();
        let mut element = part.elements.start;
        let mut stretch = std::mem::take(&mut self.converted);
        let mut outcome = Ok(());
        while element < part.elements.end && outcome.is_ok() {
            let n = (part.elements.end - element).min(CONVERTED as u64 / width);
            stretch.resize((n * width) as usize, 0);
            outcome = request.pack(element, &mut stretch).and_then(|()| {
                sums.extend(checksums(&stretch));
                self.put(&stretch, report)
            });
            element += n;
        }
        self.converted = stretch;
        match outcome {
            Ok(()) => Ok(sums),
            Err(error) => {
                self.cut_at(start);
                Err(error)
            }
        }
    }

    fn flush_data(&mut self, report: &mut Report) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.data.write_at(self.data_end, &self.buffer)?;
        self.data_end += self.buffer.len() as u64;
        report.writes += 1;
        report.bytes_written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes out what is gathered. Whoever reads the log then finds everything appended.
    pub(crate) fn flush(&mut self, report: &mut Report) -> Result<()> {
        self.flush_data(report)?;
        if !self.frame.is_empty() {
            let next = FrameWriter::new(self.data_end, self.frame.next_footprint());
            let full = std::mem::replace(&mut self.frame, next);
            self.pending.extend(full.finish().unwrap_or_default());
            if let Some(sections) = &mut self.sections {
                self.pending.extend(sections.references());
                let end = self.meta_end + self.pending.len() as u64;
                sections.end_frame(end, self.data_end);
            }
            self.frame_at = self.meta_end + self.pending.len() as u64;
        }
        self.write_pending(report)
    }

    fn write_pending(&mut self, report: &mut Report) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.meta.write_at(self.meta_end, &self.pending)?;
        self.meta_end += self.pending.len() as u64;
        report.writes += 1;
        report.bytes_written += self.pending.len() as u64;
        report.log_metadata += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Waits until everything appended is safe from power loss.
    pub(crate) fn sync(&mut self, report: &mut Report) -> Result<()> {
        self.flush(report)?;
        self.data.sync()?;
        self.meta.sync()?;
        Ok(())
    }

    /// What is in the files. After a flush that is everything.
    pub(crate) fn lengths(&self) -> Lengths {
        Lengths { meta: self.meta_end, data: self.data_end }
    }

    /// Whether something appended is not in the files.
    pub(crate) fn has_unwritten(&self) -> bool {
        !(self.buffer.is_empty() && self.frame.is_empty() && self.pending.is_empty())
    }

    /// Bytes of payload appended, written out or not.
    pub(crate) fn payload(&self) -> u64 {
        self.data_end + self.buffer.len() as u64
    }

    /// Says that everything in the log has been replayed, up to `epoch` on all ranks, and begins
    /// anew behind a head of `head` bytes. Whenever it is interrupted, either all entries are there
    /// and nothing was said, or the log says it: at its end, then at its beginning. The data log is
    /// cut by the caller, if at all: payloads that nothing describes do no harm.
    pub(crate) fn restart(&mut self, head: u64, epoch: u64, report: &mut Report) -> Result<()> {
        let mark = FrameWriter::applied(epoch);
        let end = head + mark.len() as u64;
        if self.meta_end > end {
            self.meta.write_at(self.meta_end, &mark)?;
            report.writes += 1;
        }
        self.meta.write_at(head, &mark)?;
        report.writes += 1;
        self.meta.set_len(end)?;
        (self.meta_end, self.data_end) = (end, 0);
        self.buffer.clear();
        self.pending.clear();
        self.frame = FrameWriter::new(0, 0);
        self.frame_at = end;
        self.sections = self.sections.as_ref().map(|_| Sections::new(end));
        self.known.clear();
        Ok(())
    }
}
