//! An index of a share of the logs, which answers questions of many records at once, and the
//! index that is made of such answers.

use super::{Definitions, Found, Index, Outline, Spread, bytes_of};
use crate::error::Result;
use crate::log::LogSource;
use crate::log::asking::Question;

impl Index {
    /// An index of what others tell of these logs.
    pub(crate) fn of_answers(logs: Vec<LogSource>, budget: usize) -> Index {
        let mut index = Index::new(budget);
        for log in logs {
            index.add(log);
        }
        index.given = Some(Definitions::new());
        index
    }

    /// Puts in the definition of a footprint that another rank has read.
    pub(crate) fn define(&mut self, log: u32, footprint: u64, definition: Box<[u8]>) {
        let given = self.given.get_or_insert_default();
        given.insert((log, footprint), definition);
    }

    /// The definition that [`Index::define`] put in.
    pub(crate) fn defined(&self, log: u32, footprint: u64) -> Option<&[u8]> {
        Some(self.given.as_ref()?.get(&(log, footprint))?)
    }

    /// The encoded footprint of an entry.
    pub(crate) fn definition(&self, found: &Found) -> Result<Option<Vec<u8>>> {
        if self.given.is_some() {
            return Ok(self.defined(found.log, found.footprint).map(<[u8]>::to_vec));
        }
        let outline = self.outlines[found.log as usize].get(found.footprint as usize);
        let Some(Outline { at, len, .. }) = outline.copied().flatten() else { return Ok(None) };
        bytes_of(&self.logs[found.log as usize], at..at + u64::from(len)).map(Some)
    }

    /// How many entries were indexed.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// One step of an answer to all of the questions, the first of which is 0: calls `each` with
    /// the variable and the entry, possibly more than once. Gives the next step, if there is one.
    ///
    /// A step takes the memory of what is found in it: entries that are in memory anyway, or
    /// those of one frame.
    pub(crate) fn ask_boxes(
        &self,
        questions: &[Question],
        step: usize,
        mut each: impl FnMut(u64, &Found),
    ) -> Result<Option<usize>> {
        if !self.scanning {
            let Some(question) = questions.get(step) else { return Ok(None) };
            self.ask_box(question, |found| each(question.var, found));
            return Ok((step + 1 < questions.len()).then_some(step + 1));
        }
        let Some(section) = self.sections.get(step) else { return Ok(None) };
        let touches = |question: &&Question| {
            section.vars.contains(&question.var)
                && section.records.start < question.records.end
                && section.records.end > question.records.start
        };
        let asked: Vec<&Question> = questions.iter().filter(touches).collect();
        if !asked.is_empty() {
            self.read_section(section, |var, found| {
                if asked.iter().any(|question| question.var == var && question.meets(found)) {
                    each(var, found);
                }
            })?;
        }
        Ok((step + 1 < self.sections.len()).then_some(step + 1))
    }

    fn ask_box(&self, question: &Question, mut each: impl FnMut(&Found)) {
        let Some(of_var) = self.vars.get(&question.var) else { return };
        let (records, elements) = (&question.records, &question.elements);
        for tree in of_var.by_record.range(records.clone()).map(|(_, tree)| tree) {
            tree.overlapping(elements.start, elements.end, &mut each);
        }
        of_var.spread.overlapping(records.start, records.end, |Spread(found)| {
            if question.meets(found) {
                each(found);
            }
        });
    }
}
