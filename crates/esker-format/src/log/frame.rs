//! Frames: batches of entries, each whole or not there.

use std::ops::Range;

use super::Footprint;
use crate::varint;

/// Bytes of payload under one checksum.
pub const BLOCK: usize = 16 * 1024;

const MARK: &[u8; 4] = b"ESKF";
const PREFIX: usize = 16;

/// The records of a write: `count` from `first` on in steps of `step`. A variable without
/// records has one, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Records {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// From one to the next.
    pub step: u64,
}

impl Records {
    /// One record.
    pub fn one(first: u64) -> Records {
        Records { first, count: 1, step: 1 }
    }

    /// The record after the last.
    pub fn end(&self) -> Option<u64> {
        let reach = self.count.checked_sub(1)?.checked_mul(self.step)?;
        self.first.checked_add(reach)?.checked_add(1)
    }
}

/// What a write says of itself, apart from its footprint and its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// The variable's number.
    pub var: u64,
    /// The collective calls before it.
    pub epoch: u64,
    /// The records it touches; the same elements in each.
    pub records: Records,
    /// The lowest element it touches in a record.
    pub first: u64,
    /// Whether the payload is little-endian.
    pub little: bool,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub width: u8,
}

/// One write as it is in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it says of itself.
    pub write: Write,
    /// The number of its footprint.
    pub footprint: u64,
    /// Where its payload is in the data log.
    pub place: u64,
    /// Bytes of its payload there.
    pub len: u64,
    /// Whether the payload went through the variable's filters, so that its length says nothing.
    pub encoded: bool,
    /// Its checksums, one for each [`BLOCK`] bytes, in the frame's list; none if it was written without.
    pub sums: Range<usize>,
}

impl Entry {
    /// Whether it was written without checksums, although it has values.
    pub fn is_unchecked(&self) -> bool {
        self.sums.is_empty() && self.len > 0
    }
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Entries.
    Entries,
    /// Says that the entries of all ranks up to this epoch have been replayed. A log says it for
    /// the others too: one that was killed before it could say so would be replayed over what
    /// came later.
    Applied {
        /// The last epoch that was replayed.
        epoch: u64,
    },
    /// Says again where footprints are that entries before it refer to and that were defined further ahead: who reads a
    /// section of the log need not read what is before it.
    Known,
}

/// A footprint's definition in a metadata log, without which elements it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its number.
    pub number: u64,
    /// Where in the metadata log it is.
    pub place: Range<u64>,
    /// How many elements the footprint has.
    pub elements: u64,
    /// The first element after its highest.
    pub span: u64,
    /// The crc32c of its bytes.
    pub sum: u32,
}

/// A decoded frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// The writes, in order.
    pub entries: Vec<Entry>,
    /// The checksums of all of them.
    pub sums: Vec<u32>,
    /// The footprints defined here.
    pub footprints: Vec<Definition>,
    /// Of each of them, which it is if it is a block whose definition this frame has.
    pub blocks: Vec<Option<Footprint>>,
    /// Where it ends in the metadata log.
    pub end: u64,
    /// Where its payloads end in the data log.
    pub data_end: u64,
}

/// A place in a metadata log that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the metadata log is damaged from byte {from} to {to}: {why}")]
pub struct Damage {
    /// Where the damage begins.
    pub from: u64,
    /// Where reading can go on.
    pub to: u64,
    /// What is wrong.
    pub why: &'static str,
}

const WIDTH: u8 = 0b11;
const LITTLE: u8 = 1 << 2;
const MANY_RECORDS: u8 = 1 << 3;
const DEFINES: u8 = 1 << 4;
const ENCODED: u8 = 1 << 5;
const UNCHECKED: u8 = 1 << 6;

const ENTRIES: u8 = 0;
const APPLIED: u8 = 1;
const KNOWN: u8 = 2;

/// The checksums of a payload.
pub fn checksums(payload: &[u8]) -> Vec<u32> {
    payload.chunks(BLOCK).map(crc32c::crc32c).collect()
}

/// Collects the entries of one frame.
#[derive(Debug)]
pub struct FrameWriter {
    body: Vec<u8>,
    place: u64,
    next_footprint: u64,
    entries: usize,
    before: Write,
    /// The definition of the footprint that was defined last and not used yet.
    definition: Option<Vec<u8>>,
}

const BEFORE: Write = Write {
    var: 0,
    epoch: 0,
    records: Records { first: 0, count: 1, step: 1 },
    first: 0,
    little: true,
    width: 1,
};

impl FrameWriter {
    /// A frame whose payloads begin at `place` in the data log and whose first new footprint has
    /// the number `next_footprint`.
    pub fn new(place: u64, next_footprint: u64) -> FrameWriter {
        let mut body = vec![ENTRIES];
        varint::put(&mut body, place);
        varint::put(&mut body, next_footprint);
        FrameWriter { body, place, next_footprint, entries: 0, before: BEFORE, definition: None }
    }

    /// Gives the footprint a number. The next entry must be the first that uses it.
    pub fn define(&mut self, footprint: &Footprint) -> u64 {
        self.definition = Some(footprint.encode());
        let number = self.next_footprint;
        self.next_footprint += 1;
        number
    }

    /// Adds an entry whose payload of `len` bytes lies behind those before it. `encoded` when it
    /// went through filters. Without `sums` it says that it has none. Gives the definition of its footprint, if it has it; its place is one in the frame.
    pub fn entry(
        &mut self,
        write: &Write,
        footprint: u64,
        len: u64,
        encoded: bool,
        sums: &[u32],
    ) -> Option<Definition> {
        let definition = self.definition.take();
        let mut flags = write.width.trailing_zeros() as u8 & WIDTH;
        let many = (write.records.count, write.records.step) != (1, 1);
        flags |= if write.little { LITTLE } else { 0 };
        flags |= if many { MANY_RECORDS } else { 0 };
        flags |= if definition.is_some() { DEFINES } else { 0 };
        flags |= if encoded { ENCODED } else { 0 };
        flags |= if sums.is_empty() && len > 0 { UNCHECKED } else { 0 };
        let (body, before) = (&mut self.body, &self.before);
        body.push(flags);
        varint::put_difference(body, before.var, write.var);
        varint::put_difference(body, before.epoch, write.epoch);
        varint::put_difference(body, before.records.first, write.records.first);
        if many {
            varint::put(body, write.records.count);
            varint::put(body, write.records.step);
        }
        varint::put_difference(body, before.first, write.first);
        let definition = match definition {
            Some(definition) => {
                let (elements, span) = Footprint::outline(&definition).unwrap_or_default();
                varint::put(body, definition.len() as u64);
                let from = (PREFIX + body.len()) as u64;
                body.extend_from_slice(&definition);
                let place = from..(PREFIX + body.len()) as u64;
                let sum = crc32c::crc32c(&definition);
                Some(Definition { number: footprint, place, elements, span, sum })
            }
            // Old footprints come again; the newest have the smallest numbers here.
            None => {
                varint::put(body, self.next_footprint - footprint);
                None
            }
        };
        // Where it was not encoded the reader could work it out, but then it would have to know
        // the footprint to find the payloads behind this one.
        varint::put(body, len);
        for sum in sums {
            body.extend_from_slice(&sum.to_le_bytes());
        }
        self.before = *write;
        self.place += len;
        self.entries += 1;
        definition
    }

    /// The number that the next new footprint gets.
    pub fn next_footprint(&self) -> u64 {
        self.next_footprint
    }

    /// Bytes of the frame so far.
    pub fn len(&self) -> usize {
        PREFIX + self.body.len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The frame's bytes, or `None` if it has no entries.
    pub fn finish(self) -> Option<Vec<u8>> {
        (self.entries > 0).then(|| frame(&self.body))
    }

    /// A frame that says where footprints are that entries before it refer to.
    pub fn known<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Vec<u8> {
        let mut body = vec![KNOWN];
        for Definition { number, place, elements, span, sum } in definitions {
            for word in [*number, place.start, place.end - place.start, *elements, *span] {
                varint::put(&mut body, word);
            }
            body.extend(sum.to_le_bytes());
        }
        frame(&body)
    }

    /// A frame that says that everything up to this epoch has been replayed, on all ranks.
    pub fn applied(epoch: u64) -> Vec<u8> {
        let mut body = vec![APPLIED];
        varint::put(&mut body, epoch);
        frame(&body)
    }
}

/// A frame around any body: its mark, its length, its checksums.
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX + body.len());
    bytes.extend(MARK);
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(crc32c::crc32c(body).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The frames of a stretch of a metadata log.
///
/// What is damaged comes as a [`Damage`], and the frames behind it follow. A frame that is not
/// whole yet ends the iteration without an error: it is a torn tail, or still being written.
#[derive(Debug)]
pub struct Frames<'b> {
    bytes: &'b [u8],
    base: u64,
    at: usize,
    data_len: u64,
}

impl<'b> Frames<'b> {
    /// The frames in `bytes`, which begin at `base` of the metadata log and describe a data
    /// log of `data_len` bytes.
    pub fn new(bytes: &'b [u8], base: u64, data_len: u64) -> Frames<'b> {
        Frames { bytes, base, at: 0, data_len }
    }

    /// How far the frames were read: everything before this is done with.
    pub fn reached(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The length of the frame's body at `at`, if there is a frame.
    fn body_len(&self, at: usize) -> Option<usize> {
        let prefix = self.bytes.get(at..at + PREFIX)?;
        let word = |i: usize| {
            let bytes = prefix[i..i + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let sound = prefix.starts_with(MARK) && word(12) == crc32c::crc32c(&prefix[..12]);
        sound.then(|| word(4) as usize)
    }

    /// The place of the next frame after `from`, whole or not.
    fn next_mark(&self, from: usize) -> Option<usize> {
        (from..self.bytes.len().saturating_sub(PREFIX - 1)).find(|at| self.body_len(*at).is_some())
    }

    fn damaged(&mut self, to: usize, why: &'static str) -> Damage {
        let from = self.reached();
        self.at = to;
        Damage { from, to: self.base + to as u64, why }
    }
}

impl<'b> Frames<'b> {
    /// The body of the next frame that is whole and where it ends, without going on to the next one.
    fn next_body(&mut self) -> Option<Result<(&'b [u8], usize), Damage>> {
        let Some(len) = self.body_len(self.at) else {
            // Either the end, or damage with something behind it.
            let next = self.next_mark(self.at + 1)?;
            return Some(Err(self.damaged(next, "no frame begins there")));
        };
        let start = self.at + PREFIX;
        let end = start + len;
        let Some(body) = self.bytes.get(start..end) else {
            // A tail that is not whole; but if a frame follows, its length was damaged.
            let next = self.next_mark(self.at + 1)?;
            return Some(Err(self.damaged(next, "a frame is cut off")));
        };
        let sum = self.bytes.get(start - 8..start - 4).and_then(|b| b.try_into().ok());
        if sum.map(u32::from_le_bytes) != Some(crc32c::crc32c(body)) {
            // The last frame may be torn in the middle: its end was written before its body, or
            // the file was longer before. What follows it then is nothing.
            if self.body_len(end).is_none() && self.next_mark(end).is_none() {
                return None;
            }
            return Some(Err(self.damaged(end, "a frame's checksum does not match")));
        }
        Some(Ok((body, end)))
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let (body, end) = match self.next_body()? {
            Ok(found) => found,
            Err(damage) => return Some(Err(damage)),
        };
        match decode(body, self.base + end as u64, self.data_len) {
            Some(frame) => {
                self.at = end;
                Some(Ok(frame))
            }
            None => Some(Err(self.damaged(end, "a frame does not make sense"))),
        }
    }
}

/// The bodies of frames, whatever they say: for journals that are no logs.
#[derive(Debug)]
pub struct Bodies<'b>(Frames<'b>);

impl<'b> Bodies<'b> {
    /// The frames in `bytes`, which begin at `base` of their file.
    pub fn new(bytes: &'b [u8], base: u64) -> Bodies<'b> {
        Bodies(Frames::new(bytes, base, 0))
    }

    /// How far the frames were read.
    pub fn reached(&self) -> u64 {
        self.0.reached()
    }
}

impl<'b> Iterator for Bodies<'b> {
    type Item = Result<&'b [u8], Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_body()?.map(|(body, end)| {
            self.0.at = end;
            body
        }))
    }
}

fn decode(body: &[u8], end: u64, data_len: u64) -> Option<Frame> {
    let (kind, mut rest) = body.split_first()?;
    let mut frame = Frame {
        kind: FrameKind::Entries,
        entries: Vec::new(),
        sums: Vec::new(),
        footprints: Vec::new(),
        blocks: Vec::new(),
        end,
        data_end: 0,
    };
    match *kind {
        APPLIED => {
            let epoch = varint::take(&mut rest)?;
            frame.kind = FrameKind::Applied { epoch };
            return rest.is_empty().then_some(frame);
        }
        KNOWN => {
            frame.kind = FrameKind::Known;
            let begin = end.checked_sub((PREFIX + body.len()) as u64)?;
            while !rest.is_empty() {
                let known = known(&mut rest)?;
                // It lies before what refers to it.
                if known.place.end > begin {
                    return None;
                }
                frame.footprints.push(known);
                frame.blocks.push(None);
            }
            return Some(frame);
        }
        ENTRIES => {}
        _ => return None,
    }
    let rest = &mut rest;
    let mut place = varint::take(rest)?;
    let mut next_footprint = varint::take(rest)?;
    let mut before = BEFORE;
    // About what entries of a few blocks take, so that lists seldom move.
    frame.entries.reserve(rest.len() / 48);
    frame.sums.reserve(rest.len() / 8);
    while !rest.is_empty() {
        let (flags, after) = rest.split_first()?;
        *rest = after;
        if flags & !(WIDTH | LITTLE | MANY_RECORDS | DEFINES | ENCODED | UNCHECKED) != 0 {
            return None;
        }
        let var = varint::take_difference(rest, before.var)?;
        let epoch = varint::take_difference(rest, before.epoch)?;
        let mut records = Records::one(varint::take_difference(rest, before.records.first)?);
        if flags & MANY_RECORDS != 0 {
            records.count = varint::take(rest)?;
            records.step = varint::take(rest)?;
        }
        records.end().filter(|end| *end <= i64::MAX as u64 && records.step > 0)?;
        let first = varint::take_difference(rest, before.first)?;
        let footprint = if flags & DEFINES != 0 {
            let len = usize::try_from(varint::take(rest)?).ok()?;
            let (definition, after) = rest.split_at_checked(len)?;
            *rest = after;
            let number = next_footprint;
            next_footprint = next_footprint.checked_add(1)?;
            let to = end - rest.len() as u64;
            let (elements, span) = Footprint::outline(definition)?;
            let place = to - definition.len() as u64..to;
            let sum = crc32c::crc32c(definition);
            frame.blocks.push(Footprint::decode_block(definition));
            frame.footprints.push(Definition { number, place, elements, span, sum });
            number
        } else {
            next_footprint.checked_sub(varint::take(rest)?.max(1))?
        };
        let len = varint::take(rest)?;
        let payload_end = place.checked_add(len)?;
        if payload_end > data_len || first > i64::MAX as u64 {
            return None;
        }
        let blocks = if flags & UNCHECKED == 0 { len.div_ceil(BLOCK as u64) } else { 0 };
        let count = usize::try_from(blocks).ok()?;
        let (sums, after) = rest.split_at_checked(count.checked_mul(4)?)?;
        *rest = after;
        let start = frame.sums.len();
        let (sums, _) = sums.as_chunks::<4>();
        frame.sums.extend(sums.iter().map(|s| u32::from_le_bytes(*s)));
        let (little, width) = (flags & LITTLE != 0, 1 << (flags & WIDTH));
        let write = Write { var, epoch, records, first, little, width };
        let (encoded, sums) = (flags & ENCODED != 0, start..frame.sums.len());
        frame.entries.push(Entry { write, footprint, place, len, encoded, sums });
        before = write;
        place = payload_end;
    }
    frame.data_end = place;
    Some(frame)
}

/// The next definition of a frame that says where they are.
fn known(rest: &mut &[u8]) -> Option<Definition> {
    let (number, from, len) = (varint::take(rest)?, varint::take(rest)?, varint::take(rest)?);
    let (elements, span) = (varint::take(rest)?, varint::take(rest)?);
    let (sum, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    let place = from..from.checked_add(len)?;
    let sound = elements > 0 && elements <= i64::MAX as u64 && span <= i64::MAX as u64;
    sound.then_some(Definition { number, place, elements, span, sum: u32::from_le_bytes(*sum) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(entries: usize, salt: u64) -> (Vec<u8>, Vec<Write>, u64) {
        let mut writer = FrameWriter::new(100, 3);
        let mut writes = Vec::new();
        let footprint = Footprint::Block { run: 5, levels: vec![] };
        let mut number = 0;
        for i in 0..entries as u64 {
            let records = Records { first: i * salt % 7, count: 1 + i % 3, step: 1 + i % 2 };
            let write = Write {
                var: i,
                epoch: i / 3,
                records,
                first: 1000 - i,
                little: i % 2 == 0,
                width: 4,
            };
            if i == 0 {
                number = writer.define(&footprint);
            }
            let sums = vec![7; (20 * i).div_ceil(BLOCK as u64) as usize];
            writer.entry(&write, number, 20 * i, false, &sums);
            writes.push(write);
        }
        let end = 100 + (0..entries as u64).map(|i| 20 * i).sum::<u64>();
        (writer.finish().unwrap(), writes, end)
    }

    #[test]
    fn entries_come_back() {
        let (bytes, writes, end) = sample(50, 5);
        let mut frames = Frames::new(&bytes, 10, end);
        let frame = frames.next().unwrap().unwrap();
        assert_eq!(frame.entries.iter().map(|e| e.write).collect::<Vec<_>>(), writes);
        assert!(frame.entries.iter().all(|e| e.footprint == 3));
        assert_eq!((frame.end, frame.data_end), (10 + bytes.len() as u64, end));
        assert!(frames.next().is_none());
        // A payload that the data log does not have is not believed.
        assert!(Frames::new(&bytes, 10, end - 1).next().unwrap().is_err());
    }

    #[test]
    fn an_entry_without_checksums_says_so() {
        let write = Write { width: 4, ..BEFORE };
        let mut writer = FrameWriter::new(0, 0);
        let number = writer.define(&Footprint::Block { run: 5000, levels: vec![] });
        for sums in [&[1, 2][..], &[], &[3, 4]] {
            writer.entry(&write, number, 20_000, false, sums);
        }
        let bytes = writer.finish().unwrap();
        let frame = Frames::new(&bytes, 0, 60_000).next().unwrap().unwrap();
        let said: Vec<_> =
            frame.entries.iter().map(|e| (e.is_unchecked(), &frame.sums[e.sums.clone()])).collect();
        assert_eq!(said, [(false, &[1, 2][..]), (true, &[]), (false, &[3, 4])]);
    }

    #[test]
    fn a_torn_tail_is_dropped_at_every_length() {
        let (first, ..) = sample(5, 1);
        let (second, ..) = sample(9, 2);
        for cut in 0..second.len() {
            let bytes = [&first[..], &second[..cut]].concat();
            let mut frames = Frames::new(&bytes, 0, 1 << 20);
            assert!(frames.next().unwrap().is_ok());
            assert!(frames.next().is_none(), "cut at {cut}");
            assert_eq!(frames.reached(), first.len() as u64);
        }
        // Where several share a file, there is something behind what one of them wrote.
        for cut in 0..second.len() {
            let bytes = [&first[..], &second[..cut], &[0x11; 500]].concat();
            assert_eq!(Frames::new(&bytes, 0, 1 << 20).count(), 1, "cut at {cut}");
        }
        // A file system may lengthen the file before it writes the bytes.
        let zeros = [&first[..], &vec![0; second.len()]].concat();
        assert_eq!(Frames::new(&zeros, 0, 1 << 20).count(), 1);
        let body_missing =
            [&first[..], &second[..PREFIX], &vec![0; second.len() - PREFIX]].concat();
        assert_eq!(Frames::new(&body_missing, 0, 1 << 20).count(), 1);
    }

    #[test]
    fn damage_is_told_and_the_rest_is_read() {
        let parts: Vec<Vec<u8>> = (1..4).map(|i| sample(4 * i, i as u64).0).collect();
        let whole = parts.concat();
        let second = parts[0].len()..parts[0].len() + parts[1].len();
        for at in second.clone() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            let all: Vec<_> = Frames::new(&bytes, 0, 1 << 20).collect();
            let good = all.iter().filter(|f| f.is_ok()).count();
            let bad: Vec<_> = all.iter().filter_map(|f| f.as_ref().err()).collect();
            assert_eq!((good, bad.len()), (2, 1), "byte {at}");
            assert_eq!((bad[0].from, bad[0].to), (second.start as u64, second.end as u64));
        }
    }

    #[test]
    fn a_flush_is_marked() {
        let bytes = FrameWriter::applied(300);
        let frame = Frames::new(&bytes, 0, 0).next().unwrap().unwrap();
        assert_eq!(frame.kind, FrameKind::Applied { epoch: 300 });
    }

    #[test]
    fn where_footprints_are_is_said_again() {
        let footprint = Footprint::Block { run: 5, levels: vec![(3, 7)] };
        let mut writer = FrameWriter::new(0, 4);
        let number = writer.define(&footprint);
        let write = Write { width: 4, ..BEFORE };
        let definition = writer.entry(&write, number, 60, false, &[1]).unwrap();
        assert_eq!(writer.entry(&write, number, 60, false, &[1]), None);
        let mut bytes = writer.finish().unwrap();
        let len = bytes.len();
        bytes.extend(FrameWriter::known([&definition]));
        let frames: Vec<Frame> = Frames::new(&bytes, 0, 120).map(Result::unwrap).collect();
        assert_eq!(frames[0].footprints, std::slice::from_ref(&definition));
        assert_eq!(frames[1].kind, FrameKind::Known);
        assert_eq!(frames[1].footprints, std::slice::from_ref(&definition));
        let place = definition.place.start as usize..definition.place.end as usize;
        assert_eq!(Footprint::decode(&bytes[place.clone()], 15), Some(footprint));
        assert_eq!(definition.sum, crc32c::crc32c(&bytes[place]));
        // One that would lie behind what says so is nowhere.
        let late = Definition { place: len as u64..len as u64 + 1, ..definition };
        let odd = FrameWriter::known([&late]);
        let mut frames = Frames::new(&odd, len as u64, 0);
        assert_eq!(frames.next().unwrap().unwrap_err().why, "a frame does not make sense");
    }

    proptest! {
        #[test]
        fn whatever_a_log_holds_nothing_breaks(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            at in 0usize..400,
        ) {
            let (mut bytes, ..) = sample(8, 3);
            let at = at.min(bytes.len());
            bytes.splice(at..at, noise);
            for frame in Frames::new(&bytes, 0, 1 << 20) {
                let _ = frame;
            }
            // A body whose checksum is right can still be nonsense.
            let nonsense = frame(&bytes[at..]);
            let _ = Frames::new(&nonsense, 0, 1 << 20).count();
        }
    }
}
