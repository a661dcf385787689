//! Reading through an index that nobody has: rounds of questions and answers, within a budget.
//!
//! A rank asks for the entries that touch what it reads next, oldest first, as many as it has room
//! for, lays them out, and asks for those behind them, which it lays over the first. All ranks take
//! part in all rounds, also those that have read everything, until nobody asks any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use esker_comm::{Message, ReduceOp, Reduction};

use super::distributed::Share;
use crate::base::Base;
use crate::error::{Error, Result};
use crate::log::{Asked, Batch, Index, Order, Reach, View, answer, take_answer};
use crate::mail::{Damaged, Mail};
use crate::report::Report;

/// The rounds of one read.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    base: &'a Base,
    share: &'a Share,
    /// Bytes that answers, and an index of them, may take.
    budget: usize,
    talk: Mutex<Talk>,
}

#[derive(Debug, Default)]
struct Talk {
    /// What went wrong on this rank when it answered, or took an answer.
    failure: Option<Error>,
    /// Whether something went wrong on any rank: there are no more rounds.
    failed: bool,
    rounds: u64,
    messages: u64,
    message_bytes: u64,
    /// The most bytes that were held at once.
    peak: usize,
}

/// A message of a round, or the error that it came damaged.
fn opened(mail: Mail<'_>, message: Result<Message, Damaged>, what: &str) -> Result<Message> {
    message.map_err(|damaged| mail.error(&damaged, what))
}

/// What a round has brought.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) index: Index,
    /// How far it goes.
    pub(super) reach: Reach,
    /// Whether any rank may ask again.
    pub(super) active: bool,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(base: &'a Base, share: &'a Share, budget: usize) -> Rounds<'a> {
        Rounds { base, share, budget, talk: Mutex::default() }
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ranks that may have something to tell.
    fn holders(&self) -> usize {
        self.base.comm.size().min(self.share.index.logs.len()).max(1)
    }

    /// What the answer of one of them may take. Half of the budget is for messages, and for what is
    /// decoded while entries are laid out.
    pub(super) fn room(&self) -> usize {
        self.budget / 2 / self.holders()
    }

    /// An index without entries.
    pub(super) fn nothing(&self) -> Index {
        let share = &self.share.index;
        let mut index = Index::of_answers(share.logs.clone(), self.budget);
        index.see_in(share.grids().clone());
        index
    }

    /// The first round, in which everyone asks for everything: it is the last, and not active, if
    /// that fits. Collective.
    pub(super) fn first(&self, asked: Asked) -> Result<Round> {
        // Questions that are too many for those who answer are not asked at once.
        let most = self.budget / 8 / self.base.comm.size();
        if asked.questions.len() > 1 && asked.memory() > most {
            let round = self.round(None, Some(true))?;
            let after = Reach::To(Order::default());
            return Ok(Round { reach: after, ..round });
        }
        self.round(Some(asked), None)
    }

    /// Asks, and answers what others ask. Collective.
    fn ask(&self, asked: Asked) -> Result<Round> {
        self.round(Some(asked), Some(true))
    }

    /// Lays a batch, a section of the entries that touch it at a time. Others answer meanwhile, and ask.
    pub(super) fn lay(&self, view: &View, batch: &Batch, out: &mut [u8]) -> Result<()> {
        let state = view.state();
        let questions = batch.question().into_iter().collect();
        let mut asked = Asked { questions, after: None, room: self.room() };
        loop {
            let round = self.ask(asked.clone())?;
            let over = asked.after.is_some();
            view.lay_batch((&state, &round.index), batch, over, out)?;
            self.note(round.index.take_peak());
            match round.reach {
                Reach::All => return Ok(()),
                Reach::To(last) => asked.after = Some(last),
            }
        }
    }

    /// Answers until nobody asks any more. Collective.
    pub(super) fn finish(&self) -> Result<()> {
        while !self.talk().failed && self.round(None, Some(false))?.active {}
        Ok(())
    }

    /// One round. `active` says whether this rank may ask again; by default, if there is more.
    fn round(&self, asked: Option<Asked>, active: Option<bool>) -> Result<Round> {
        let comm = &*self.base.comm;
        let ranks = comm.size();
        let asked = asked.filter(|asked| !asked.questions.is_empty());
        let mail = self.base.mail();
        let messages = asked.map_or(Vec::new(), |asked| {
            let message = mail.seal(asked.encode()).into_shared();
            (0..self.holders()).map(|holder| (holder, message.clone())).collect()
        });
        let mut outcome = Ok(());
        let mut held = self.count(&messages);
        let mut answers: Vec<(usize, Message)> = Vec::new();
        for (rank, message) in mail.swap(messages, &mut Report::default())? {
            let asked = opened(mail, message, "it was a question to the index");
            let asked = asked.and_then(|message| {
                held += message.len();
                Asked::decode(&message)
            });
            match asked.and_then(|asked| answer(&self.share.index, &asked)) {
                Ok(bytes) => answers.push((rank, mail.seal(bytes))),
                Err(error) => outcome = Err(error),
            }
        }
        held += self.count(&answers);
        let mut index = self.nothing();
        let mut reach = Reach::All;
        for (rank, message) in mail.swap(answers, &mut Report::default())? {
            let may = |log: u32| log as usize % ranks == rank;
            let told = opened(mail, message, "it was an answer of the index");
            let taken = told.and_then(|message| {
                held += message.len();
                take_answer(&mut index, &message, may)
            });
            match taken {
                Ok(other) => reach = reach.min(other),
                Err(error) => outcome = Err(error),
            }
        }
        index.note(held);
        // What is behind the last of one holder may lie under what another has not told yet.
        if let Reach::To(last) = reach {
            index.forget_after(last);
        }
        index.settle();
        let active = active.unwrap_or(reach != Reach::All);
        let mut together = [active.into(), outcome.is_err().into()];
        comm.all_reduce(Reduction::U64(&mut together), ReduceOp::Max)?;
        let [active, failed] = together.map(|n| n > 0);
        let mut talk = self.talk();
        talk.rounds += 1;
        talk.failure = talk.failure.take().or(outcome.err());
        talk.peak = talk.peak.max(index.take_peak());
        talk.failed |= failed;
        match failed {
            true => Err(Error::Garbled),
            false => Ok(Round { index, reach, active }),
        }
    }

    /// Counts messages; gives their bytes.
    fn count(&self, messages: &[(usize, Message)]) -> usize {
        let bytes = messages.iter().map(|(_, message)| message.len()).sum::<usize>();
        let mut talk = self.talk();
        talk.messages += messages.len() as u64;
        talk.message_bytes += bytes as u64;
        bytes
    }

    /// Notes that so many bytes were held at once.
    pub(super) fn note(&self, bytes: usize) {
        let mut talk = self.talk();
        talk.peak = talk.peak.max(bytes);
    }

    pub(super) fn report(&self, report: &mut Report) {
        let talk = self.talk();
        report.rounds += talk.rounds;
        report.messages += talk.messages;
        report.message_bytes += talk.message_bytes;
        let peak = talk.peak + self.share.index.take_peak();
        report.index_memory = report.index_memory.max(peak as u64);
    }

    /// What came of a read: a failure of the rounds is that of the rank on which it was.
    pub(super) fn outcome<T: Default>(self, read: Result<T>) -> Result<T> {
        let talk = self.talk.into_inner().unwrap_or_else(PoisonError::into_inner);
        match talk.failure {
            Some(failure) => Err(failure),
            None if talk.failed => Ok(T::default()),
            None => read,
        }
    }
}
