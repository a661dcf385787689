//! Where entries are: sections of metadata logs, as items of data of a container's history.
//!
//! A section is whole frames of one log, one behind the other, that can be read without what is before them. Its item spans the
//! records and the variables that its entries touch; so whoever looks for something reads the few sections that may have it.

use std::ops::Range;

use super::Records;
use super::manifest::{Cut, Manifest, Session};
use crate::history::{Data, Item, Key};
use crate::varint;

/// The object that sections are items of. Their elements are numbers of variables.
pub const ENTRIES: u64 = 0;

/// A section of a metadata log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The session of its log.
    pub identity: u64,
    /// The number of its log.
    pub log: u32,
    /// Where it begins in the metadata log.
    pub begin: u64,
    /// Which version brought which of its bytes, ascending; the last ends it.
    pub cuts: Vec<Cut>,
    /// Where its payloads end in the data log.
    pub data_end: u64,
    /// The number of its first entry in the log.
    pub number: u64,
    /// Variables, from the lowest to behind the highest.
    pub vars: Range<u64>,
    /// Records, likewise.
    pub records: Range<u64>,
}

impl Section {
    /// Where it ends in the metadata log.
    pub fn end(&self) -> u64 {
        self.cuts.last().map_or(self.begin, |cut| cut.end)
    }

    /// The item. A place of zeros is that of the commit that brings it.
    pub fn item(&self) -> Item {
        let count = self.records.end.saturating_sub(self.records.start).max(1);
        let records = Records { first: self.records.start, count, step: 1 };
        let (first, end) = (self.vars.start, self.vars.end.max(self.vars.start));
        let data = Data { object: ENTRIES, records, first, end };
        let mut bytes = self.identity.to_be_bytes().to_vec();
        let numbers = [self.log.into(), self.begin, self.data_end, self.number];
        numbers.iter().for_each(|number| varint::put(&mut bytes, *number));
        let mut before = self.begin;
        for cut in &self.cuts {
            varint::put(&mut bytes, cut.end.saturating_sub(before));
            varint::put(&mut bytes, cut.number);
            varint::put(&mut bytes, cut.over);
            before = cut.end;
        }
        Item::data(data, bytes)
    }

    /// The section that an item speaks of, with its places. `None` for one that no writer makes.
    pub fn of_item(item: &Item) -> Option<Section> {
        let (Key::Data(data), Some(value)) = (&item.key, &item.value) else { return None };
        let (identity, mut rest) = value.split_first_chunk::<8>()?;
        let rest = &mut rest;
        let log = u32::try_from(varint::take(rest)?).ok()?;
        let (begin, data_end) = (varint::take(rest)?, varint::take(rest)?);
        let number = varint::take(rest)?;
        let (mut cuts, mut end) = (Vec::new(), begin);
        while !rest.is_empty() {
            let grown = varint::take(rest).filter(|grown| *grown > 0)?;
            end = end.checked_add(grown)?;
            let (number, over) = match (varint::take(rest)?, varint::take(rest)?) {
                (0, 0) => (item.number, item.over),
                place => place,
            };
            cuts.push(Cut { end, number, over });
        }
        let records = data.records.first..data.records.end()?;
        let identity = u64::from_be_bytes(*identity);
        let vars = data.first..data.end;
        // Nothing is so long, and whoever adds to such a number may count on that.
        let longest = i64::MAX as u64;
        let is_countable = end <= longest && data_end <= longest && number <= longest;
        let is_section = data.object == ENTRIES && data.records.step == 1 && !cuts.is_empty();
        let is_sound = is_section && is_countable;
        let section = Section { identity, log, begin, cuts, data_end, number, vars, records };
        is_sound.then_some(section)
    }
}

impl Manifest {
    /// One section for each log, from its beginning to its end: what a version has that was made of logs alone.
    pub fn whole_logs(&self) -> Vec<Section> {
        let mut all = Vec::new();
        for session in &self.sessions {
            all.extend(session.whole_logs());
        }
        all
    }
}

impl Session {
    fn whole_logs(&self) -> impl Iterator<Item = Section> {
        let logs =
            (0..).zip(&self.logs).filter(|(_, part)| part.cuts.iter().any(|cut| cut.end > 0));
        logs.map(|(log, part)| {
            // A cut in which this log has not grown has nothing.
            let mut cuts = part.cuts.clone();
            let mut before = 0;
            cuts.retain(|cut| std::mem::replace(&mut before, cut.end) < cut.end);
            Section {
                identity: self.identity,
                log,
                begin: 0,
                cuts,
                data_end: part.data_len,
                number: 0,
                vars: 0..i64::MAX as u64,
                records: 0..i64::MAX as u64,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let cut = |end, number| Cut { end, number, over: number };
        Section {
            identity: 0x1234_5678_9abc_def0,
            log: 3,
            begin: 70,
            cuts: vec![cut(90, 4), cut(300, 9)],
            data_end: 1 << 40,
            number: 17,
            vars: 2..5,
            records: 7..8,
        }
    }

    #[test]
    fn a_section_comes_back() {
        let section = section();
        assert_eq!(Section::of_item(&section.item()), Some(section.clone()));
        // Without a place of its own it has that of the commit.
        let cuts = vec![Cut { end: 90, number: 0, over: 0 }];
        let mut item = Section { cuts, ..section.clone() }.item();
        (item.number, item.over) = (12, 11);
        let cuts = vec![Cut { end: 90, number: 12, over: 11 }];
        assert_eq!(Section::of_item(&item), Some(Section { cuts, ..section }));
    }

    #[test]
    fn items_that_make_no_sense_are_refused_and_none_is_a_panic() {
        let item = section().item();
        let value = item.value.clone().unwrap();
        for at in 0..value.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = item.clone();
                let mut value = value.clone();
                value[at] = byte;
                changed.value = Some(value.clone());
                let _ = Section::of_item(&changed);
                changed.value = Some(value[..at].to_vec());
                let _ = Section::of_item(&changed);
            }
        }
        assert_eq!(Section::of_item(&Item { value: Some(value[..9].to_vec()), ..item }), None);
        let many = Section { number: u64::MAX, ..section() };
        assert_eq!(Section::of_item(&many.item()), None);
    }
}
