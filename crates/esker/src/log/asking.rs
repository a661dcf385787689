//! What ranks ask each other when each indexes a share of the logs (seeds/000 §7.3).
//!
//! A question is a box: a variable, records, elements of a record. The answer is the entries of
//! a share that may touch it, each once for everyone who asks, as differences from the entry
//! before; the first that has a footprint brings its definition along.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use esker_format::log::{BLOCK, Footprint, Records};
use esker_format::varint;

use super::index::{Found, Index};
use crate::error::{Error, Result};

/// Records and elements of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) var: u64,
    pub(crate) records: Range<u64>,
    /// Of each record.
    pub(crate) elements: Range<u64>,
}

impl Question {
    /// Whether an entry of the variable may touch it.
    pub(crate) fn meets(&self, found: &Found) -> bool {
        let Records { first, count, step } = found.records;
        // The entry's first record that is not before the question's.
        let skipped = self.records.start.saturating_sub(first).div_ceil(step);
        skipped < count
            && first + skipped * step < self.records.end
            && found.first < self.elements.end
            && found.end > self.elements.start
    }

    fn numbers(&self) -> [u64; 5] {
        let (records, elements) = (&self.records, &self.elements);
        [self.var, records.start, records.end, elements.start, elements.end]
    }

    /// The message that asks all of these.
    pub(crate) fn encode(all: &[Question]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut before = [0; 5];
        for question in all {
            put_differences(&mut bytes, &mut before, question.numbers());
        }
        bytes
    }

    /// The questions of a message.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Vec<Question>> {
        let mut all = Vec::new();
        let mut before = [0; 5];
        while !bytes.is_empty() {
            let numbers = take_differences(&mut bytes, &mut before).ok_or(Error::Garbled)?;
            let [var, first, end, from, to] = numbers;
            if first >= end || from >= to {
                return Err(Error::Garbled);
            }
            all.push(Question { var, records: first..end, elements: from..to });
        }
        Ok(all)
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

/// The bits of an order's first number that are the epoch; those above are the session.
const EPOCH: u64 = (1 << 48) - 1;

const WIDTH: u8 = 0b11;
const LITTLE: u8 = 1 << 2;
const ENCODED: u8 = 1 << 3;
const DEFINES: u8 = 1 << 4;

/// A rank that asks, and how far it has been answered.
#[derive(Debug)]
pub(crate) struct Asker {
    questions: Vec<Question>,
    /// Where the index goes on; `None` at the end.
    next: Option<usize>,
    /// Found, and not sent yet.
    waiting: VecDeque<(u64, Found)>,
    /// Entries that were found, and footprints that were sent, each by log and number.
    found: HashSet<(u32, u64)>,
    defined: HashSet<(u32, u64)>,
}

impl Asker {
    pub(crate) fn new(questions: Vec<Question>) -> Asker {
        let (found, defined) = (HashSet::new(), HashSet::new());
        Asker { questions, next: Some(0), waiting: VecDeque::new(), found, defined }
    }

    /// Whether there may be more to answer.
    pub(crate) fn waits(&self) -> bool {
        self.next.is_some() || !self.waiting.is_empty()
    }

    /// The next part of the answer: no entry is begun behind `limit` bytes.
    pub(crate) fn answer(&mut self, index: &Index, limit: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut before = [0; 11];
        while bytes.len() < limit {
            if let Some((var, found)) = self.waiting.pop_front() {
                self.put(&mut bytes, &mut before, index, (var, &found))?;
                continue;
            }
            let Some(step) = self.next else { break };
            let (all, waiting) = (&mut self.found, &mut self.waiting);
            self.next = index.ask_boxes(&self.questions, step, |var, found| {
                if all.insert((found.log, found.order.2)) {
                    waiting.push_back((var, found.clone()));
                }
            })?;
        }
        Ok(bytes)
    }

    fn put(
        &mut self,
        bytes: &mut Vec<u8>,
        before: &mut [u64; 11],
        index: &Index,
        (var, found): (u64, &Found),
    ) -> Result<()> {
        let key = (found.log, found.footprint);
        let definition = match self.defined.insert(key) {
            true => index.definition(found)?,
            false => None,
        };
        let mut flags = found.width.trailing_zeros() as u8 & WIDTH;
        let switches =
            [(found.little, LITTLE), (found.encoded, ENCODED), (definition.is_some(), DEFINES)];
        flags |= switches.iter().filter(|(on, _)| *on).fold(0, |bits, (_, bit)| bits | bit);
        bytes.push(flags);
        let (Records { first, count, step }, (order, _, number)) = (found.records, found.order);
        let place = [found.first, found.footprint, found.place, found.len];
        let [element, footprint, place, len] = place;
        let epoch = order & EPOCH;
        let numbers = [
            var,
            found.log.into(),
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

/// Puts an answer into an index that knows the logs. `may` tells whose entries it may have.
pub(crate) fn take_answer(
    index: &mut Index,
    bytes: &[u8],
    may: impl Fn(u32) -> bool,
) -> Result<()> {
    let mut rest = bytes;
    let mut before = [0; 11];
    while !rest.is_empty() {
        let (var, found) = take_one(index, &mut rest, &mut before).ok_or(Error::Garbled)?;
        if !may(found.log) {
            return Err(Error::Garbled);
        }
        index.insert(var, found);
    }
    Ok(())
}

fn take_one(index: &mut Index, rest: &mut &[u8], before: &mut [u64; 11]) -> Option<(u64, Found)> {
    let (flags, after) = rest.split_first()?;
    *rest = after;
    if flags & !(WIDTH | LITTLE | ENCODED | DEFINES) != 0 {
        return None;
    }
    let numbers = take_differences(rest, before)?;
    let [var, log, epoch, number, record, count, step, first, footprint, place, len] = numbers;
    let log = u32::try_from(log).ok()?;
    let source = index.logs.get(log as usize)?;
    let (session, rank) = (u64::from(source.session) << 48, source.rank);
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
    if epoch > EPOCH || first > i64::MAX as u64 || !(encoded || payload == len) {
        return None;
    }
    let blocks = usize::try_from(len.div_ceil(BLOCK as u64)).ok()?;
    let (sums, after) = rest.split_at_checked(blocks.checked_mul(4)?)?;
    *rest = after;
    let (sums, _) = sums.as_chunks::<4>();
    let found = Found {
        order: (session | epoch, rank, number),
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
        sums: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
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
            session: 2,
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
                    order: ((2 << 48) | (i / 9), 1, i),
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
                    sums: [i as u32].into(),
                },
            );
        }
        index.settle();
        index
    }

    fn everything() -> Vec<Question> {
        vec![Question { var: 7, records: 0..1 << 40, elements: 0..1 << 40 }]
    }

    fn entries(index: &Index) -> Vec<Found> {
        let mut all = Vec::new();
        index.ask_boxes(&everything(), 0, |_, found| all.push(found.clone())).unwrap();
        all.sort_by_key(|found| found.order);
        all
    }

    #[test]
    fn entries_come_back_in_parts() {
        let index = holder(100);
        let mut asker = Asker::new([everything(), everything()].concat());
        let mut answers = Index::of_answers(logs(), 1 << 20);
        let (mut parts, mut bytes) = (0, 0);
        while asker.waits() {
            let part = asker.answer(&index, 300).unwrap();
            assert!(part.len() < 300 + 100);
            (parts, bytes) = (parts + 1, bytes + part.len());
            take_answer(&mut answers, &part, |log| log == 1).unwrap();
        }
        answers.settle();
        let (expected, found) = (entries(&index), entries(&answers));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        assert_eq!(found.len(), 100);
        assert!(parts > 5 && bytes < 100 * 25, "{bytes} bytes in {parts} parts");
        assert!(answers.runs(&found[0]).unwrap().is_some());
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
            let question = Question { var: 7, records, elements };
            let mut found = Vec::new();
            index.ask_boxes(&[question], 0, |_, entry| found.push(entry.order.2)).unwrap();
            found.sort();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn questions_come_back() {
        let asked = vec![
            Question { var: 3, records: 0..1, elements: 5..6 },
            Question { var: 3, records: 7..900, elements: 0..1 << 40 },
            Question { var: 1, records: 2..3, elements: 9..10 },
        ];
        let bytes = Question::encode(&asked);
        assert_eq!(Question::decode(&bytes).unwrap(), asked);
        assert!(matches!(Question::decode(&bytes[..bytes.len() - 1]), Err(Error::Garbled)));
    }

    #[test]
    fn an_answer_of_a_log_that_is_not_the_senders_is_garbled() {
        let bytes = Asker::new(everything()).answer(&holder(3), 1 << 20).unwrap();
        let mut answers = Index::of_answers(logs(), 1 << 20);
        let taken = take_answer(&mut answers, &bytes, |log| log == 2);
        assert!(matches!(taken, Err(Error::Garbled)));
    }

    #[test]
    fn an_answer_that_ends_too_early_is_garbled() {
        let bytes = Asker::new(everything()).answer(&holder(1), 1 << 20).unwrap();
        for cut in 1..bytes.len() {
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
            let mut bytes = Asker::new(everything()).answer(&holder(4), 1 << 20).unwrap();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let mut answers = Index::of_answers(logs(), 1 << 20);
            match take_answer(&mut answers, &bytes, |_| true) {
                Err(error) => prop_assert!(matches!(error, Error::Garbled)),
                Ok(()) => {
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
            if let Ok(questions) = Question::decode(&bytes) {
                Asker::new(questions).answer(&holder(4), 1 << 20).unwrap();
            }
        }
    }
}
