//! What ranks ask each other when each indexes a share of the logs (seeds/000 §7.3).
//!
//! A question is a variable, records, and a pattern of elements of a record. The answer is the oldest entries
//! of a share that may touch what is asked for, from where the last answer ended, as many as the
//! asker has room for; each as differences from the entry before. The first in a message that has a
//! footprint brings its definition along. So who answers need not remember anything.

use std::collections::HashSet;
use std::ops::Range;

use esker_format::log::{BLOCK, Footprint, Records};
use esker_format::runs::Pattern;
use esker_format::varint;

use super::grid::{Grid, Slab};
use super::index::{Cost, Found, Index, Order};
use crate::error::{Error, Result};

/// Records and elements of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) var: u64,
    pub(crate) records: Range<u64>,
    /// Of each record.
    pub(crate) elements: Pattern,
}

impl Question {
    /// All of these elements.
    pub(crate) fn of_elements(var: u64, records: Range<u64>, elements: Range<u64>) -> Question {
        let elements =
            Pattern::of_levels(elements.start, elements.end - elements.start, Vec::new());
        Question { var, records, elements }
    }

    /// A box that has all of it.
    pub(crate) fn hull(&self, grid: &Grid) -> Slab {
        let Range { start, end } = self.records;
        let records = Records { first: start, count: end.saturating_sub(start).max(1), step: 1 };
        grid.hull_of(records, &self.elements).0
    }

    /// Whether an entry of the variable may touch it.
    pub(crate) fn meets(&self, found: &Found) -> bool {
        let Records { first, count, step } = found.records;
        // The entry's first record that is not before the question's, and the first run that
        // ends behind its first element.
        let skipped = self.records.start.saturating_sub(first).div_ceil(step);
        skipped < count
            && first + skipped * step < self.records.end
            && self
                .elements
                .runs_after(found.first)
                .next()
                .is_some_and(|(_, r)| r.offset < found.end)
    }

    /// Bytes that it takes.
    fn memory(&self) -> usize {
        size_of::<Question>() + size_of_val(self.elements.levels())
    }

    fn put(&self, bytes: &mut Vec<u8>, before: &mut [u64; 5]) {
        let (records, elements) = (&self.records, &self.elements);
        let place = [self.var, records.start, records.end, elements.first(), elements.run_len()];
        put_differences(bytes, before, place);
        varint::put(bytes, elements.levels().len() as u64);
        for (count, step) in elements.levels() {
            varint::put(bytes, *count);
            varint::put(bytes, *step);
        }
    }

    fn take(bytes: &mut &[u8], before: &mut [u64; 5]) -> Option<Question> {
        let [var, first, end, element, run] = take_differences(bytes, before)?;
        let levels = usize::try_from(varint::take(bytes)?).ok()?;
        if levels > bytes.len() / 2 {
            return None;
        }
        let mut level = |_| Some((varint::take(bytes)?, varint::take(bytes)?));
        let levels = (0..levels).map(&mut level).collect::<Option<Vec<_>>>()?;
        let steps = levels.iter().all(|(_, step)| *step > 0);
        let shape = Footprint::Block { run, levels: levels.clone() };
        shape.elements()?;
        element.checked_add(shape.span()?)?;
        let elements = Pattern::of_levels(element, run, levels);
        (first < end && steps).then_some(Question { var, records: first..end, elements })
    }
}

/// Questions, and how much of their answer is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) questions: Vec<Question>,
    /// The order of the last entry that the asker has.
    pub(crate) after: Option<Order>,
    /// What the entries of an answer may take in the asker's memory.
    pub(crate) room: usize,
}

impl Asked {
    /// Bytes that the questions take.
    pub(crate) fn memory(&self) -> usize {
        self.questions.iter().map(Question::memory).sum()
    }

    /// The message.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.room as u64);
        varint::put(&mut bytes, self.after.is_some().into());
        let (place, epoch, rank, number) = self.after.unwrap_or_default();
        [place, epoch, rank.into(), number].iter().for_each(|n| varint::put(&mut bytes, *n));
        let mut before = [0; 5];
        for question in &self.questions {
            question.put(&mut bytes, &mut before);
        }
        bytes
    }

    /// What a message asks.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Asked> {
        Asked::take(&mut bytes).ok_or(Error::Garbled)
    }

    fn take(bytes: &mut &[u8]) -> Option<Asked> {
        let room = usize::try_from(varint::take(bytes)?).ok()?;
        let is_after = varint::take(bytes)? != 0;
        let (place, epoch) = (varint::take(bytes)?, varint::take(bytes)?);
        let rank = u32::try_from(varint::take(bytes)?).ok()?;
        let after = (place, epoch, rank, varint::take(bytes)?);
        let mut questions = Vec::new();
        let mut before = [0; 5];
        while !bytes.is_empty() {
            questions.push(Question::take(bytes, &mut before)?);
        }
        Some(Asked { questions, after: is_after.then_some(after), room })
    }
}

fn put_differences<const N: usize>(bytes: &mut Vec<u8>, before: &mut [u64; N], now: [u64; N]) {
    for (before, now) in before.iter().zip(now) {
        varint::put_difference(bytes, *before, now);
    }
    *before = now;
}

fn take_differences<const N: usize>(bytes: &mut &[u8], before: &mut [u64; N]) -> Option<[u64; N]> {
    for number in before.iter_mut() {
        *number = varint::take_difference(bytes, *number)?;
    }
    Some(*before)
}

const WIDTH: u8 = 0b11;
const LITTLE: u8 = 1 << 2;
const ENCODED: u8 = 1 << 3;
const DEFINES: u8 = 1 << 4;
const UNCHECKED: u8 = 1 << 5;

/// What an entry takes in the memory of who asks: in the index, and while it is laid out.
fn cost(index: &Index, var: u64, found: &Found) -> Cost {
    let own = index.memory_of(var, found) + found.memory();
    Cost { own, shared: index.definition_len(found) + 64 }
}

/// The answer to what was asked.
pub(crate) fn answer(index: &Index, asked: &Asked) -> Result<Vec<u8>> {
    let collected = index
        .collect(&asked.questions, asked.after, asked.room, |var, found| cost(index, var, found))?;
    let mut writer =
        Writer { bytes: vec![collected.more.into()], before: [0; 12], defined: HashSet::new() };
    for (var, found) in &collected.entries {
        writer.put(index, (*var, found))?;
    }
    Ok(writer.bytes)
}

struct Writer {
    bytes: Vec<u8>,
    before: [u64; 12],
    /// Footprints that the message has defined, by log and number.
    defined: HashSet<(u32, u64)>,
}

impl Writer {
    fn put(&mut self, index: &Index, (var, found): (u64, &Found)) -> Result<()> {
        let Writer { bytes, before, .. } = self;
        let key = (found.log, found.footprint);
        let definition = match self.defined.insert(key) {
            true => index.definition(found)?,
            false => None,
        };
        let mut flags = found.width.trailing_zeros() as u8 & WIDTH;
        let switches = [
            (found.little, LITTLE),
            (found.encoded, ENCODED),
            (definition.is_some(), DEFINES),
            (found.sums.is_empty() && found.len > 0, UNCHECKED),
        ];
        flags |= switches.iter().filter(|(on, _)| *on).fold(0, |bits, (_, bit)| bits | bit);
        bytes.push(flags);
        let (Records { first, count, step }, (order, epoch, _, number)) =
            (found.records, found.order);
        let place = [found.first, found.footprint, found.place, found.len];
        let [element, footprint, place, len] = place;
        let numbers = [
            var,
            found.log.into(),
            order,
            epoch,
            number,
            first,
            count,
            step,
            element,
            footprint,
            place,
            len,
        ];
        put_differences(bytes, before, numbers);
        if let Some(definition) = definition {
            varint::put(bytes, definition.len() as u64);
            bytes.extend(definition);
        }
        found.sums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
        Ok(())
    }
}

/// How far an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// There is more behind the entry of this order.
    To(Order),
    /// There is nothing more.
    All,
}

/// Puts an answer into an index that knows the logs. `may` tells whose entries it may have.
pub(crate) fn take_answer(
    index: &mut Index,
    bytes: &[u8],
    may: impl Fn(u32) -> bool,
) -> Result<Reach> {
    let (more, mut rest) = bytes.split_first().ok_or(Error::Garbled)?;
    let mut before = [0; 12];
    let mut reach = None;
    while !rest.is_empty() {
        let (var, found) = take_one(index, &mut rest, &mut before).ok_or(Error::Garbled)?;
        if !may(found.log) || reach.is_some_and(|reach| found.order <= reach) {
            return Err(Error::Garbled);
        }
        reach = Some(found.order);
        index.insert(var, found);
    }
    match more {
        0 => Ok(Reach::All),
        _ => reach.map(Reach::To).ok_or(Error::Garbled),
    }
}

fn take_one(index: &mut Index, rest: &mut &[u8], before: &mut [u64; 12]) -> Option<(u64, Found)> {
    let (flags, after) = rest.split_first()?;
    *rest = after;
    if flags & !(WIDTH | LITTLE | ENCODED | DEFINES | UNCHECKED) != 0 {
        return None;
    }
    let numbers = take_differences(rest, before)?;
    let [var, log, order, epoch, number, record, count, step, first, footprint, place, len] =
        numbers;
    let log = u32::try_from(log).ok()?;
    let source = index.logs.get(log as usize)?;
    let rank = source.rank;
    if flags & DEFINES != 0 {
        let len = usize::try_from(varint::take(rest)?).ok()?;
        let (definition, after) = rest.split_at_checked(len)?;
        *rest = after;
        index.define(log, footprint, definition.into());
    }
    let (elements, span) = Footprint::outline(index.defined(log, footprint)?)?;
    let (width, encoded) = (1 << (flags & WIDTH), flags & ENCODED != 0);
    let records = Records { first: record, count, step };
    records.end().filter(|end| *end <= i64::MAX as u64 && step > 0)?;
    let payload = elements.checked_mul(count)?.checked_mul(width)?;
    place.checked_add(len)?;
    if first > i64::MAX as u64 || !(encoded || payload == len) {
        return None;
    }
    let blocks = if flags & UNCHECKED == 0 { len.div_ceil(BLOCK as u64) } else { 0 };
    let blocks = usize::try_from(blocks).ok()?;
    let (sums, after) = rest.split_at_checked(blocks.checked_mul(4)?)?;
    *rest = after;
    let (sums, _) = sums.as_chunks::<4>();
    let found = Found {
        order: (order, epoch, rank, number),
        log,
        records,
        first,
        end: first.checked_add(span)?,
        footprint,
        elements,
        place,
        len,
        width: width as u8,
        little: flags & LITTLE != 0,
        encoded,
        sums: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect::<Vec<_>>()[..].into(),
    };
    Some((var, found))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use esker_store::{CreateMode, MemoryStore, Store};
    use proptest::prelude::*;

    use super::*;
    use crate::log::LogSource;

    fn logs() -> Vec<LogSource> {
        let file = MemoryStore::default().create(Path::new("x"), CreateMode::Truncate).unwrap();
        let log = |rank| LogSource {
            meta: file.clone(),
            data: file.clone(),
            orders: LogSource::in_one_session(2),
            rank,
            identity: None,
            meta_len: None,
            data_len: None,
            read: 0,
        };
        (0..3).map(log).collect()
    }

    /// An index of `count` entries, of which each touches two records.
    fn holder(count: u64) -> Index {
        let mut index = Index::of_answers(logs(), 1 << 20);
        let footprint = Footprint::Block { run: 3, levels: vec![(4, 10)] };
        index.define(1, 5, footprint.encode().into());
        let (elements, span) = (footprint.elements().unwrap(), footprint.span().unwrap());
        for i in 0..count {
            index.insert(
                7,
                Found {
                    order: (2, i / 9, 1, i),
                    log: 1,
                    records: Records { first: i, count: 2, step: 2 },
                    first: 100 * i,
                    end: 100 * i + span,
                    footprint: 5,
                    elements,
                    place: 1000 * i,
                    len: elements * 2 * 8,
                    width: 8,
                    little: i % 2 == 0,
                    encoded: false,
                    sums: [i as u32][..].into(),
                },
            );
        }
        index.settle();
        index
    }

    fn everything() -> Vec<Question> {
        vec![Question::of_elements(7, 0..1 << 40, 0..1 << 40)]
    }

    fn entries(index: &Index) -> Vec<Found> {
        asked_of(index, &everything())
    }

    fn asked_of(index: &Index, questions: &[Question]) -> Vec<Found> {
        let cost = |_: u64, _: &Found| Cost { own: 0, shared: 0 };
        let collected = index.collect(questions, None, 1, cost).unwrap();
        assert!(!collected.more);
        collected.entries.into_iter().map(|(_, found)| found).collect()
    }

    fn all_of(questions: Vec<Question>) -> Asked {
        Asked { questions, after: None, room: 1 << 20 }
    }

    #[test]
    fn entries_come_back_in_parts() {
        let index = holder(100);
        // What is asked for twice is answered once.
        let questions = [everything(), everything()].concat();
        let one = entries(&index)[0].memory();
        let mut asked = Asked { questions, after: None, room: 20 * one };
        let mut answers = Index::of_answers(logs(), 1 << 20);
        let (mut parts, mut bytes) = (0, 0);
        loop {
            let part = answer(&index, &asked).unwrap();
            (parts, bytes) = (parts + 1, bytes + part.len());
            match take_answer(&mut answers, &part, |log| log == 1).unwrap() {
                Reach::All => break,
                Reach::To(last) => asked.after = Some(last),
            }
        }
        answers.settle();
        let (expected, found) = (entries(&index), entries(&answers));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        assert_eq!(found.len(), 100);
        assert!(parts > 9 && bytes < 100 * 25, "{bytes} bytes in {parts} parts");
        assert!(answers.runs(&found[0]).unwrap().is_some());
    }

    #[test]
    fn one_entry_is_told_however_little_room_there_is() {
        let index = holder(3);
        let mut asked = all_of(everything());
        asked.room = 0;
        let part = answer(&index, &asked).unwrap();
        let mut answers = Index::of_answers(logs(), 1 << 20);
        let reach = take_answer(&mut answers, &part, |_| true).unwrap();
        answers.settle();
        assert_eq!(reach, Reach::To(entries(&index)[0].order));
        assert_eq!(entries(&answers).len(), 1);
    }

    #[test]
    fn only_what_a_question_meets_is_answered() {
        let index = holder(100);
        // Entry i has the records i and i + 2, and elements from 100 i to 100 i + 33.
        for (records, elements, expected) in [
            (10..11, 0..5000, vec![8, 10]),
            (10..11, 1000..1001, vec![10]),
            (10..11, 833..1000, vec![]),
            (9..10, 0..733, vec![7]),
            (50..52, 4850..5132, vec![49, 50, 51]),
        ] {
            let question = Question::of_elements(7, records, elements);
            let found = asked_of(&index, &[question]);
            let found: Vec<u64> = found.iter().map(|entry| entry.order.3).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_entry_between_the_runs_of_a_question_is_no_answer() {
        let index = holder(100);
        // A column: one element of every second entry, and one behind the end of entry 3.
        let elements = Pattern::of_levels(20, 1, vec![(50, 200)]);
        let question = Question { var: 7, records: 0..200, elements };
        let found = asked_of(&index, &[question]);
        let found: Vec<u64> = found.iter().map(|entry| entry.order.3).collect();
        assert_eq!(found, (0..100).step_by(2).collect::<Vec<u64>>());
        let elements = Pattern::of_levels(333, 67, vec![(2, 100)]);
        let question = Question { var: 7, records: 0..200, elements };
        assert_eq!(asked_of(&index, &[question]).len(), 0);
    }

    #[test]
    fn questions_come_back() {
        let asked = vec![
            Question::of_elements(3, 0..1, 5..6),
            Question::of_elements(3, 7..900, 0..1 << 40),
            Question {
                var: 1,
                records: 2..3,
                elements: Pattern::of_levels(9, 4, vec![(3, 100), (2, 10)]),
            },
        ];
        let asked = Asked { questions: asked, after: Some((1 << 50, 7, 3, 9)), room: 12_345 };
        let bytes = asked.encode();
        assert_eq!(Asked::decode(&bytes).unwrap(), asked);
        assert!(matches!(Asked::decode(&bytes[..bytes.len() - 1]), Err(Error::Garbled)));
    }

    #[test]
    fn an_answer_of_a_log_that_is_not_the_senders_is_garbled() {
        let bytes = answer(&holder(3), &all_of(everything())).unwrap();
        let mut answers = Index::of_answers(logs(), 1 << 20);
        let taken = take_answer(&mut answers, &bytes, |log| log == 2);
        assert!(matches!(taken, Err(Error::Garbled)));
    }

    #[test]
    fn an_answer_that_ends_too_early_is_garbled() {
        let bytes = answer(&holder(1), &all_of(everything())).unwrap();
        for cut in (0..bytes.len()).filter(|cut| *cut != 1) {
            let mut answers = Index::of_answers(logs(), 1 << 20);
            let taken = take_answer(&mut answers, &bytes[..cut], |_| true);
            assert!(matches!(taken, Err(Error::Garbled)), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn a_malformed_answer_is_refused_or_harmless(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = answer(&holder(4), &all_of(everything())).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut answers = Index::of_answers(logs(), 1 << 20);
            match take_answer(&mut answers, &bytes, |_| true) {
                Err(error) => prop_assert!(matches!(error, Error::Garbled)),
                Ok(_) => {
                    answers.settle();
                    for found in entries(&answers) {
                        if let Err(error) = answers.runs(&found) {
                            prop_assert!(matches!(error, Error::Garbled));
                        }
                    }
                }
            }
        }

        #[test]
        fn a_malformed_question_is_refused_or_harmless(bytes: Vec<u8>) {
            if let Ok(asked) = Asked::decode(&bytes) {
                answer(&holder(4), &asked).unwrap();
            }
        }
    }
}
