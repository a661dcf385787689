//! What a rank has to ask for before it reads: its hyperslabs, or few boxes around many.

use std::ops::Range;

use esker_format::log::Records;
use esker_format::runs::Pattern;
use esker_format::{Header, VarId};

use super::asking::Question;
use super::parts::in_records;
use crate::plan::Extent;
use crate::selection::LogSpace;

/// More questions than this are made fewer and coarser.
const MOST: usize = 4096;

/// Hyperslabs of a request that are asked for one by one.
const FEW: usize = 64;

/// What these requests read, whose places are in the space of a log.
pub(crate) fn questions<'e>(
    header: &Header,
    requests: impl Iterator<Item = (VarId, &'e Extent)>,
) -> Vec<Question> {
    let mut all = Vec::new();
    requests.for_each(|(var, extent)| of_request(header, var, extent, &mut all));
    fewer(all, MOST)
}

/// The records of variables that these requests read.
pub(crate) fn records_read<'e>(
    header: &Header,
    requests: impl Iterator<Item = (VarId, &'e Extent)>,
) -> Vec<(u64, Range<u64>)> {
    let mut all: Vec<(u64, Range<u64>)> = Vec::new();
    for (var, extent) in requests {
        let Some((first, end)) = extent.bounds().filter(|(first, end)| first < end) else {
            continue;
        };
        let space = LogSpace::of(header, var);
        let (first, last) = (space.split(first).0, space.split(end - 1).0);
        let (var, new) = (var.0 as u64, first..last + 1);
        match all.last_mut().filter(|(of, known)| *of == var && *known == new) {
            Some(_) => {}
            None => all.push((var, new)),
        }
    }
    all
}

/// The questions of one request: its hyperslabs, or what is around all of its list.
fn of_request(header: &Header, var: VarId, extent: &Extent, all: &mut Vec<Question>) {
    let step = LogSpace::of(header, var).step;
    if let Some(slabs) = extent.hyperslabs(FEW) {
        all.extend(slabs.iter().map(|(slab, _)| Question::of_pattern(var, slab, step)));
        return;
    }
    let mut found: Option<Question> = None;
    extent.patterns(|pattern| match &mut found {
        Some(found) => found.join(&Question::of_pattern(var, pattern, step)),
        None => found = Some(Question::of_pattern(var, pattern, step)),
    });
    all.extend(found);
}

impl Question {
    /// What a hyperslab in the space of a log asks for.
    fn of_pattern(var: VarId, pattern: &Pattern, record_step: u64) -> Question {
        let (Records { first, count, step }, element, levels) = in_records(pattern, record_step);
        let records = first..first + (count - 1) * step + 1;
        let elements = Pattern::of_levels(element, pattern.run_len(), levels.to_vec());
        Question { var: var.0 as u64, records, elements }
    }

    /// Makes it one that is around both.
    pub(super) fn join(&mut self, other: &Question) {
        let records = self.records.start.min(other.records.start);
        self.records = records..self.records.end.max(other.records.end);
        if self.elements != other.elements {
            let first = self.elements.first().min(other.elements.first());
            let end = self.elements.end().max(other.elements.end());
            self.elements = Pattern::of_levels(first, end - first, Vec::new());
        }
    }
}

/// Joins runs that lie side by side, and neighbours until there are at most `most` (or one for
/// each variable).
fn fewer(mut all: Vec<Question>, most: usize) -> Vec<Question> {
    all.sort_unstable_by_key(|q| (q.var, q.records.start, q.records.end, q.elements.first()));
    all.dedup_by(|next, kept| {
        // What is around two boxes may be much more than both.
        let is_run = |question: &Question| question.elements.levels().is_empty();
        let beside = next.var == kept.var
            && next.records == kept.records
            && (next.elements == kept.elements || is_run(next) && is_run(kept))
            && next.elements.first() <= kept.elements.end();
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
    use crate::selection::log_record_step;

    fn question(var: u64, record: u64, elements: Range<u64>) -> Question {
        Question::of_elements(var, record..record + 1, elements)
    }

    #[test]
    fn a_hyperslab_stays_one_and_a_list_is_what_is_around_it() {
        // Records 2 and 5 of (record, 4, 6), of each the elements (1, 3), (1, 4), (3, 3) and (3, 4).
        let step = log_record_step(24);
        let levels = [(2, 3 * step), (2, 12), (2, 1)].into_iter();
        let pattern = Pattern::new(2 * step + 9, 1, levels);
        let mut found = Question::of_pattern(VarId(7), &pattern, step);
        let elements = Pattern::of_levels(9, 2, vec![(2, 12)]);
        assert_eq!(found, Question { var: 7, records: 2..6, elements });
        found.join(&question(7, 0, 0..1));
        assert_eq!(found, Question::of_elements(7, 0..6, 0..23));
        let scalar = Pattern::new(3 * log_record_step(1), 1, std::iter::empty());
        let scalar = Question::of_pattern(VarId(1), &scalar, log_record_step(1));
        assert_eq!(scalar, question(1, 3, 0..1));
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
            let span = |q: &Question| q.elements.first()..q.elements.end();
            let holds = |a: &Range<u64>, b: &Range<u64>| a.start <= b.start && a.end >= b.end;
            assert!(few.iter().any(|f| f.var == q.var
                && holds(&f.records, &q.records)
                && holds(&span(f), &span(&q))));
        }
        let each_its_own = (0..20).map(|var| question(var, 0, 0..1)).collect();
        assert_eq!(fewer(each_its_own, 10).len(), 20);
    }
}
