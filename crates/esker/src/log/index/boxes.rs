//! Questions of many records and variables at once, and an index that is made of the answers.

use esker_format::log::Footprint;

use super::lowest::{Cost, Lowest};
use super::{Definitions, Found, Index, Order, Outline, Section, bytes_of, levels_of};
use crate::error::Result;
use crate::log::LogSource;
use crate::log::asking::Question;
use crate::log::grid::Slab;

/// Some of the entries that touch what was asked for, oldest first.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) entries: Vec<(u64, Found)>,
    /// Whether there are more, all of them newer.
    pub(crate) more: bool,
}

impl Index {
    /// An index of what others tell of these logs.
    pub(crate) fn of_answers(logs: Vec<LogSource>, budget: usize) -> Index {
        let mut index = Index::new(budget);
        for log in logs {
            index.add(log);
        }
        index.given = Some(Definitions::default());
        index
    }

    /// Takes out the entries behind this one that were put in since the index was settled.
    pub(crate) fn forget_after(&mut self, last: Order) {
        let Index { trees, memory, .. } = self;
        let mut gone = 0;
        trees.retain_fresh(|each, found| {
            let keeps = found.order <= last;
            gone += if keeps { 0 } else { found.memory() + each };
            keeps
        });
        *memory -= gone.min(*memory);
    }

    /// Puts in the definition of a footprint that another rank has read.
    pub(crate) fn define(&mut self, log: u32, footprint: u64, definition: Box<[u8]>) {
        let given = self.given.get_or_insert_default();
        if let Some(block) = Footprint::decode_block(&definition).as_ref().and_then(levels_of) {
            let more = size_of_val(&block[..]) + 64;
            let old = given.blocks.insert((log, footprint), block);
            given.memory += if old.is_none() { more } else { 0 };
        }
        given.memory += definition.len() + 64;
        if let Some(old) = given.by_number.insert((log, footprint), definition) {
            given.memory -= old.len() + 64;
        }
    }

    /// The definition that [`Index::define`] put in.
    pub(crate) fn defined(&self, log: u32, footprint: u64) -> Option<&[u8]> {
        Some(self.given.as_ref()?.by_number.get(&(log, footprint))?)
    }

    /// The levels of an entry's block, of which another rank has told.
    pub(super) fn given_block(&self, found: &Found) -> Option<&[(u64, u64)]> {
        self.given.as_ref()?.blocks.get(&(found.log, found.footprint)).map(|block| &block[..])
    }

    /// The encoded footprint of an entry.
    pub(crate) fn definition(&self, found: &Found) -> Result<Option<Vec<u8>>> {
        if self.given.is_some() {
            return Ok(self.defined(found.log, found.footprint).map(<[u8]>::to_vec));
        }
        let Some(outline) = self.outline_of(found) else { return Ok(None) };
        let Outline { at, len, sum, elements, span, .. } = *outline;
        let bytes = bytes_of(&self.logs[found.log as usize], at..at + u64::from(len))?;
        // Whoever read the section it is used in has not read where it lies.
        let is_it =
            crc32c::crc32c(&bytes) == sum && Footprint::outline(&bytes) == Some((elements, span));
        Ok(is_it.then_some(bytes))
    }

    /// How long the encoded footprint of an entry is.
    pub(crate) fn definition_len(&self, found: &Found) -> usize {
        match &self.given {
            Some(_) => self.defined(found.log, found.footprint).map_or(0, <[u8]>::len),
            None => self.outline_of(found).map_or(0, |outline| outline.len as usize),
        }
    }

    fn outline_of(&self, found: &Found) -> Option<&Outline> {
        self.outlines.get(found.log as usize)?.get(&found.footprint)
    }

    /// How many entries were indexed.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// The oldest entries after `after` that may touch what is asked for, as many as `most` bytes
    /// hold, and at least one; what an entry takes is for `cost` to say. Takes that much memory,
    /// beside the index and one frame.
    pub(crate) fn collect(
        &self,
        questions: &[Question],
        after: Option<Order>,
        most: usize,
        cost: impl Fn(u64, &Found) -> Cost,
    ) -> Result<Collected> {
        let mut lowest = Lowest::new(after, most);
        let hull = |question: &Question| question.hull(self.grid(question.var));
        if !self.scanning {
            for question in questions {
                self.ask_slab(question.var, &hull(question), |found| {
                    if question.meets(found) {
                        lowest.offer(question.var, found, cost(question.var, found));
                    }
                });
            }
        } else {
            let questions: Vec<(&Question, Slab)> =
                questions.iter().map(|question| (question, hull(question))).collect();
            for section in &self.sections {
                let asked = asked_of(section, &questions);
                if asked.is_empty() || lowest.is_without(section.first, section.last) {
                    continue;
                }
                self.read_section(section, |var, found| {
                    let mut own = None;
                    let meets = |(question, slab): &&(&Question, Slab)| {
                        question.var == var
                            && question.meets(found)
                            && own
                                .get_or_insert_with(|| self.hull(var, found).0)
                                .and(slab)
                                .is_some()
                    };
                    if asked.iter().any(meets) {
                        lowest.offer(var, found, cost(var, found));
                    }
                })?;
            }
        }
        self.note(lowest.peak());
        Ok(lowest.finish())
    }
}

/// The questions that a section may have answers to.
fn asked_of<'q>(
    section: &Section,
    questions: &'q [(&'q Question, Slab)],
) -> Vec<&'q (&'q Question, Slab)> {
    let touches = |(question, _): &&(&Question, Slab)| {
        section.vars.contains(&question.var)
            && section.records.start < question.records.end
            && section.records.end > question.records.start
    };
    questions.iter().filter(touches).collect()
}
