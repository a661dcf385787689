//! What a rank has to ask for before it reads: few boxes around its requests.

use std::ops::Range;

use esker_format::{Header, VarId};

use super::asking::Question;
use crate::plan::Extent;

/// More questions than this are made fewer and coarser.
const MOST: usize = 4096;

/// Boxes that hold everything that these requests read, by their places in the file that the log
/// would make.
pub(crate) fn questions<'e>(
    header: &Header,
    requests: impl Iterator<Item = (VarId, &'e Extent)>,
) -> Vec<Question> {
    let all = requests.filter_map(|(var, extent)| around(header, var, extent));
    fewer(all.collect(), MOST)
}

/// The box around one request; `None` if it reads nothing.
fn around(header: &Header, var: VarId, extent: &Extent) -> Option<Question> {
    let (variable, place) = (header.schema.variable(var)?, header.place(var)?);
    let width = variable.ty.size();
    let whole = place.bytes / width;
    let record_size = match header.schema.is_record(variable) {
        true => header.layout.record_size.max(1),
        false => u64::MAX,
    };
    let at = |offset: u64| {
        let within = offset.saturating_sub(place.begin);
        (within / record_size, within % record_size / width)
    };
    let mut found: Option<Question> = None;
    extent.spans(|first, end, one_run| {
        let ((record, from), (last, to)) = (at(first), at(end.saturating_sub(1)));
        // A hyperslab has its lowest element in its first record and the highest in its last, but
        // a run over records has all of what is between.
        let elements = match record != last && (one_run || from > to) {
            true => 0..whole,
            false => from..to + 1,
        };
        let part = Question { var: var.0 as u64, records: record..last + 1, elements };
        match &mut found {
            Some(found) => found.join(&part),
            None => found = Some(part),
        }
    });
    found
}

impl Question {
    /// Makes it the box around both.
    pub(super) fn join(&mut self, other: &Question) {
        let around = |a: &Range<u64>, b: &Range<u64>| a.start.min(b.start)..a.end.max(b.end);
        self.records = around(&self.records, &other.records);
        self.elements = around(&self.elements, &other.elements);
    }
}

/// Joins questions that lie side by side, and neighbours until there are at most `most` (or one for
/// each variable).
fn fewer(mut all: Vec<Question>, most: usize) -> Vec<Question> {
    all.sort_unstable_by_key(|q| (q.var, q.records.start, q.records.end, q.elements.start));
    all.dedup_by(|next, kept| {
        let beside = next.var == kept.var
            && next.records == kept.records
            && next.elements.start <= kept.elements.end;
        if beside {
            kept.join(next);
        }
        beside
    });
    while all.len() > most {
        let before = all.len();
        let mut pairs = Vec::with_capacity(before.div_ceil(2));
        let mut rest = all.into_iter().peekable();
        while let Some(mut question) = rest.next() {
            if let Some(next) = rest.next_if(|next| next.var == question.var) {
                question.join(&next);
            }
            pairs.push(question);
        }
        all = pairs;
        if all.len() == before {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(var: u64, record: u64, elements: Range<u64>) -> Question {
        Question { var, records: record..record + 1, elements }
    }

    #[test]
    fn neighbours_are_one_question() {
        let asked = (0..1000).map(|i| question(i % 2, 7, 10 * i..10 * i + 20)).collect();
        assert_eq!(fewer(asked, MOST), [question(0, 7, 0..10_000), question(1, 7, 10..10_010)]);
    }

    #[test]
    fn many_questions_become_few_that_hold_them() {
        let asked: Vec<Question> =
            (0..1000).map(|i| question(i % 3, i, 100 * i..100 * i + 5)).collect();
        let few = fewer(asked.clone(), 10);
        assert!(few.len() <= 10);
        for q in asked {
            let holds = |a: &Range<u64>, b: &Range<u64>| a.start <= b.start && a.end >= b.end;
            assert!(few.iter().any(|f| f.var == q.var
                && holds(&f.records, &q.records)
                && holds(&f.elements, &q.elements)));
        }
        let each_its_own = (0..20).map(|var| question(var, 0, 0..1)).collect();
        assert_eq!(fewer(each_its_own, 10).len(), 20);
    }
}
