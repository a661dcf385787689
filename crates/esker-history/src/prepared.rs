//! Numbers that a program chose: they are decided in any order, and take effect in theirs.
//!
//! A decision whose turn has not come is *prepared*. Whoever decides the number before it promotes it: the writer itself, if
//! that number was decided while it prepared; else whoever decides that; else, after a crash, the next one who looks for
//! the newest number in order to write.

use esker_format::history::{Branch, Commit, GivenUp, Verdict};
use esker_format::inside;

use crate::attempt::Attempt;
use crate::commit::Outcome;
use crate::error::{Error, Result};
use crate::find::Known;
use crate::grow::News;
use crate::{History, keys};

impl History {
    /// Commits under this number, whatever those before it are or will be: their order decides which values win.
    /// If its turn has not come it is kept until then.
    pub fn commit_as(&self, attempt: Attempt, number: u64) -> Result<()> {
        let Attempt { branch, durable, .. } = attempt.clone();
        let newest = self.newest(&branch)?;
        if let Some(outcome) = self.already(&attempt, newest, number)? {
            return outcome;
        }
        self.require_not_fenced(&branch)?;
        let verdict = match self.news(attempt.items.clone(), number, durable)? {
            News::Items(items) => Commit { items, ..Commit::default() },
            News::Run(level) => Commit { levels: vec![level], ..Commit::default() },
        };
        self.settle(&attempt, number, Verdict::Commit(verdict))
    }

    /// Gives a number up, so that those behind it need not wait.
    pub fn give_up(&self, attempt: Attempt, number: u64, why: GivenUp) -> Result<()> {
        let newest = self.newest(&attempt.branch)?;
        match self.already(&attempt, newest, number)? {
            Some(outcome) => outcome,
            None => self.settle(&attempt, number, Verdict::GivenUp(why)),
        }
    }

    /// What was decided on a number already, if anything was.
    fn already(&self, attempt: &Attempt, newest: u64, number: u64) -> Result<Option<Result<()>>> {
        let branch = &attempt.branch;
        if number == 0 || number > newest {
            let wrong = || Error::Wrong("numbers of versions begin with 1".to_string());
            return if number == 0 { Err(wrong()) } else { Ok(None) };
        }
        let known = self.known(branch, number)?;
        let is_own = known.is_some_and(|known| known.decision.write == attempt.write);
        let decided = || Error::Decided { branch: branch.clone(), number };
        Ok(Some(if is_own { Ok(()) } else { Err(decided()) }))
    }

    /// Prepares a decision, and promotes it if its turn has come.
    fn settle(&self, attempt: &Attempt, number: u64, verdict: Verdict) -> Result<()> {
        let branch = &attempt.branch;
        let prepared = self.publish(attempt, &keys::prepared(branch, number), number, verdict)?;
        if prepared == Outcome::Lost {
            return Err(Error::Decided { branch: branch.clone(), number });
        }
        let newest = self.promote_behind(branch, self.first_of(branch)?)?;
        match self.already(attempt, newest, number)? {
            Some(outcome) => outcome,
            None => Ok(()),
        }
    }

    /// Promotes what is prepared for the numbers behind the newest. Gives the newest then. `number` is one that is
    /// known to be decided, or the one before a branch's first.
    pub(crate) fn promote_behind(&self, branch: &Branch, number: u64) -> Result<u64> {
        let mut newest = self.newest_behind(branch, number)?;
        while let Some(prepared) = self.prepared(branch, newest + 1)? {
            self.promote(branch, newest, prepared)?;
            newest += 1;
        }
        Ok(newest)
    }

    /// The numbers of a branch that are prepared and not decided, as far as a list knows, the lowest first.
    pub fn waiting(&self, branch: &Branch) -> Result<Vec<u64>> {
        let listed = self.segments.list(&keys::prepared_of(branch))?;
        let mut numbers: Vec<u64> =
            listed.iter().filter_map(|name| inside::version(name)).collect();
        if numbers.is_empty() {
            return Ok(numbers);
        }
        let newest = self.newest(branch)?;
        numbers.retain(|number| *number > newest);
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// What is prepared for a number.
    fn prepared(&self, branch: &Branch, number: u64) -> Result<Option<Known>> {
        self.known_as(&keys::prepared(branch, number), branch, number)
    }

    /// Decides the number behind the newest as it was prepared. That somebody was faster is as good.
    fn promote(&self, branch: &Branch, newest: u64, prepared: Known) -> Result<()> {
        let decision = prepared.decision;
        let attempt = Attempt {
            write: decision.write,
            branch: branch.clone(),
            base: newest,
            time: decision.time,
            message: decision.message,
            items: Vec::new(),
            durable: true,
            whole: false,
        };
        let number = newest + 1;
        let commit = match decision.verdict {
            Verdict::Commit(commit) => commit,
            given_up => {
                let key = keys::decision(branch, number);
                return self.publish(&attempt, &key, number, given_up).map(drop);
            }
        };
        let news = match <[_; 1]>::try_from(commit.levels) {
            Ok([level]) => News::Run(level),
            Err(_) => News::Items(commit.items),
        };
        let parent = self.commit_at(branch, newest)?;
        self.decide(&attempt, number, parent, news).map(drop)
    }
}
