//! Moving the values, in the order of the output.
//!
//! Fixed-size variables go one after the other, records one after the other with all of their
//! variables, so that the output is written once from beginning to end. When records become a
//! fixed dimension, a batch of records is read at a time and its piece of each variable
//! written.

use std::sync::Arc;

use esker::{Error, Header, Placement, values};
use esker_store::File;

use super::choose::{Kept, Plan};
use super::convert::CHUNK;
use super::error::tell;
use super::sink::Sink;
use super::{CopyError, CopyOptions};
use crate::progress::Progress;
use crate::source::Source;

/// Bytes after which the caller hears of progress.
const TELL: u64 = 1 << 20;

/// Records of at most this many bytes are read whole, whatever part of them is wanted.
const SMALL_RECORD: u64 = 64 << 10;

/// A copy that is ready to run.
pub(super) struct Task<'a> {
    pub(super) plan: &'a Plan,
    pub(super) header: &'a Header,
    pub(super) options: &'a CopyOptions,
    /// Bytes that were looked at already to find types, and count as progress.
    pub(super) scanned: u64,
}

/// One variable on its way.
struct Stream<'a> {
    kept: &'a Kept,
    place: &'a Placement,
    /// Where it begins in the input.
    begin: u64,
    /// Bytes in the output of what `kept.runs` select.
    bytes: u64,
    ahead: u64,
    /// The padding after it, in the output.
    padding: Vec<u8>,
}

struct Road<'a> {
    source: &'a mut Source,
    sink: Sink,
    told: Told<'a>,
    scratch: Vec<u8>,
}

struct Told<'a> {
    progress: &'a mut dyn Progress,
    done: u64,
    last: u64,
    total: u64,
}

impl Told<'_> {
    fn add(&mut self, bytes: u64) -> Result<(), CopyError> {
        self.done += bytes;
        if self.done - self.last >= TELL {
            self.last = self.done;
            tell(self.progress, self.done, self.total)?;
        }
        Ok(())
    }
}

impl Task<'_> {
    /// Writes the whole output file; gives the number of bytes of values.
    pub(super) fn run(
        &self,
        source: &mut Source,
        file: Arc<dyn File>,
        progress: &mut dyn Progress,
    ) -> Result<u64, CopyError> {
        let records = self.plan.record_range.count;
        let size = |kept: &Kept| {
            let times = if kept.from_record { records } else { 1 };
            kept.runs.bytes().saturating_mul(times)
        };
        let bytes = self.plan.vars.iter().map(size).sum::<u64>();
        let (done, total) = (self.scanned, self.scanned + bytes);
        progress.progress(done, total);
        let sink = Sink::new(file.clone(), self.options.buffer / 2);
        let told = Told { progress, done, last: done, total };
        let mut road = Road { source, sink, told, scratch: Vec::new() };
        road.sink.put(0, &self.header.encode())?;
        let streams: Vec<Stream<'_>> = self.streams(road.source.header());
        for stream in streams.iter().filter(|s| !s.kept.from_record) {
            road.piece(stream, stream.begin, stream.place.begin)?;
            road.sink.put(stream.place.begin + stream.bytes, &stream.padding)?;
        }
        let recorded: Vec<&Stream<'_>> = streams.iter().filter(|s| s.kept.from_record).collect();
        if !recorded.is_empty() {
            match self.options.fix_unlimited {
                false => self.records(&recorded, &mut road)?,
                true => self.records_to_fixed(&recorded, &mut road)?,
            }
        }
        road.sink.flush()?;
        road.told.progress.progress(total, total);
        file.set_len(self.header.data_end(self.plan.records)).map_err(Error::from)?;
        Ok(bytes)
    }

    fn streams<'s>(&'s self, from: &Header) -> Vec<Stream<'s>> {
        let vars = self.header.vars().zip(&self.plan.vars);
        let of_record = self.header.layout.record_size;
        vars.map(|((_, var, place), kept)| {
            let begin = from.layout.places.get(kept.from.0).map_or(0, |p| p.begin);
            let bytes = kept.elements() * var.ty.size();
            // A lone record variable of a small type is not padded.
            let padded = match self.header.schema.is_record(var) {
                true => place.vsize.min(of_record),
                false => place.vsize,
            };
            let padding = padded - place.bytes;
            let fill = values::fill_bytes(var);
            let padding = fill.iter().copied().cycle().take(padding as usize).collect();
            let ahead = kept.runs.ahead();
            Stream { kept, place, begin, bytes, ahead, padding }
        })
        .collect()
    }

    /// How many records of the input to read at a time, whole; none when one is too large or
    /// little of it is wanted.
    fn batch(&self, streams: &[&Stream<'_>], source: &Source) -> Option<u64> {
        let size = source.header().layout.record_size.max(1);
        let wanted: u64 = streams.iter().map(|s| s.kept.runs.bytes()).sum();
        let spread = size.saturating_mul(self.plan.record_range.stride);
        let dense = spread <= SMALL_RECORD || wanted.saturating_mul(4) >= spread;
        (dense && size <= source.longest()).then(|| source.longest() / size)
    }

    /// Makes sure that the window has the output's record `record`, and reads those after it
    /// with it.
    fn fetch(&self, batch: u64, record: u64, source: &mut Source) -> Result<(), CopyError> {
        let layout = &source.header().layout;
        let (begin, size) = (layout.record_begin.unwrap_or(0), layout.record_size);
        let range = self.plan.record_range;
        let left = (range.count - record - 1).saturating_mul(range.stride).saturating_add(1);
        let offset = begin + (range.start + record * range.stride) * size;
        if !source.holds(offset, size) {
            source.fetch(offset, batch.min(left) * size)?;
        }
        Ok(())
    }

    fn records(&self, streams: &[&Stream<'_>], road: &mut Road<'_>) -> Result<(), CopyError> {
        let batch = self.batch(streams, road.source);
        let from_size = road.source.header().layout.record_size;
        let size = self.header.layout.record_size;
        let range = self.plan.record_range;
        for record in 0..range.count {
            if let Some(batch) = batch {
                self.fetch(batch, record, road.source)?;
            }
            let number = range.start + record * range.stride;
            for stream in streams {
                let to = stream.place.begin + record * size;
                road.piece(stream, stream.begin + number * from_size, to)?;
                road.sink.put(to + stream.bytes, &stream.padding)?;
            }
        }
        Ok(())
    }

    fn records_to_fixed(
        &self,
        streams: &[&Stream<'_>],
        road: &mut Road<'_>,
    ) -> Result<(), CopyError> {
        let batch = self.batch(streams, road.source);
        let from_size = road.source.header().layout.record_size;
        let range = self.plan.record_range;
        // The batch counts records of the input, of which every stride-th is wanted.
        let step = batch.map_or(1, |b| (b / range.stride).max(1));
        let mut first = 0;
        while first < range.count {
            let end = (first + step).min(range.count);
            if let Some(batch) = batch {
                self.fetch(batch, first, road.source)?;
            }
            for stream in streams {
                for record in first..end {
                    let number = range.start + record * range.stride;
                    let to = stream.place.begin + record * stream.bytes;
                    road.piece(stream, stream.begin + number * from_size, to)?;
                }
            }
            first = end;
        }
        for stream in streams {
            road.sink.put(stream.place.begin + range.count * stream.bytes, &stream.padding)?;
        }
        Ok(())
    }
}

impl Road<'_> {
    /// One variable, or its part of one record: from `from` in the input to `to` in the output.
    fn piece(&mut self, stream: &Stream<'_>, from: u64, mut to: u64) -> Result<(), CopyError> {
        let kept = stream.kept;
        let Road { source, sink, told, scratch } = self;
        let longest = match kept.refill {
            None => source.longest(),
            Some(_) => source.longest().min(CHUNK),
        };
        kept.runs.try_each(longest, |offset, len| {
            let bytes = source.bytes(kept.from, from + offset, len, stream.ahead)?;
            let bytes = match &kept.refill {
                None => bytes,
                Some(refill) => {
                    let applied = refill.apply(bytes, scratch);
                    applied.map_err(|e| source.convert_error(kept.from, e))?;
                    &scratch[..]
                }
            };
            sink.put(to, bytes)?;
            to += bytes.len() as u64;
            told.add(len)?;
            Ok(())
        })
    }
}
