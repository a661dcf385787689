//! Sections of a growing metadata log: what each of them touches, so that who looks for something need not read the others.
//!
//! A section is whole frames, one behind the other. Footprints that its entries refer to and that lie before it are named
//! again in it, with their places; so it can be read without what is before it. It ends with a commit, or when it is long enough.

use std::collections::BTreeMap;
use std::ops::Range;

use esker_format::log::{Definition, FrameWriter, Write};

/// Sections of more bytes are ended.
const LONG: u64 = 64 << 10;

/// Frames of a metadata log, one behind the other, and what they touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// Its bytes in the metadata log.
    pub(crate) place: Range<u64>,
    /// Where its payloads end in the data log.
    pub(crate) data_end: u64,
    /// The number of its first entry in the log.
    pub(crate) number: u64,
    /// Variables, from the lowest to behind the highest.
    pub(crate) vars: Range<u64>,
    /// Records, likewise.
    pub(crate) records: Range<u64>,
}

/// The sections of a log since its last commit.
#[derive(Debug)]
pub(crate) struct Sections {
    finished: Vec<Section>,
    /// The one that frames are added to, if it has any.
    open: Option<Section>,
    /// Where it begins, or will.
    begin: u64,
    /// Entries of the log before it, and in all.
    before: u64,
    entries: u64,
    /// What the frame that is being made touches.
    touched: Option<(Range<u64>, Range<u64>)>,
    /// Footprints before the section that it refers to; whether it has said where they are.
    referred: BTreeMap<u64, (Definition, bool)>,
}

fn around(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.min(b.start)..a.end.max(b.end)
}

impl Sections {
    /// None yet; the first frame will be at `begin`.
    pub(super) fn new(begin: u64) -> Sections {
        Sections {
            finished: Vec::new(),
            open: None,
            begin,
            before: 0,
            entries: 0,
            touched: None,
            referred: BTreeMap::new(),
        }
    }

    /// An entry was added to the frame.
    pub(super) fn touch(&mut self, write: &Write) {
        let end = write.records.end().unwrap_or(u64::MAX);
        let new = (write.var..write.var.saturating_add(1), write.records.first..end);
        self.touched = Some(match &self.touched {
            Some((vars, records)) => (around(vars, &new.0), around(records, &new.1)),
            None => new,
        });
        self.entries += 1;
    }

    /// It refers to this footprint.
    pub(super) fn refer(&mut self, known: Definition) {
        if known.place.start < self.begin {
            self.referred.entry(known.number).or_insert((known, false));
        }
    }

    /// What is to be said behind the frame: where footprints are that the section has not named yet.
    pub(super) fn references(&mut self) -> Vec<u8> {
        let new: Vec<&Definition> =
            self.referred.values().filter(|(_, said)| !said).map(|(known, _)| known).collect();
        if new.is_empty() {
            return Vec::new();
        }
        let frame = FrameWriter::known(new);
        self.referred.values_mut().for_each(|(_, said)| *said = true);
        frame
    }

    /// The frame, and what was said behind it, end there; its payloads at `data_end`.
    pub(super) fn end_frame(&mut self, end: u64, data_end: u64) {
        let (vars, records) = self.touched.take().unwrap_or((0..0, 0..0));
        let section = match self.open.take() {
            Some(Section { place, number, vars: v, records: r, .. }) => Section {
                place: place.start..end,
                data_end,
                number,
                vars: around(&v, &vars),
                records: around(&r, &records),
            },
            None => {
                Section { place: self.begin..end, data_end, number: self.before, vars, records }
            }
        };
        let is_long = section.place.end - section.place.start >= LONG;
        self.open = Some(section);
        if is_long {
            self.finish();
        }
    }

    /// All that there are. What comes next is in another.
    pub(super) fn finish(&mut self) -> &[Section] {
        if let Some(section) = self.open.take() {
            (self.begin, self.before) = (section.place.end, self.entries);
            self.finished.push(section);
            self.referred.clear();
        }
        &self.finished
    }

    /// So many of them were committed.
    pub(super) fn committed(&mut self, sections: usize) {
        self.finished.drain(..sections.min(self.finished.len()));
    }
}
