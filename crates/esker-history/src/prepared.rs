//! Numbers that a program chose: they are decided in any order, and take effect in theirs.
//!
//! A decision whose turn has not come is *prepared*. Whoever decides the number before it promotes it: the writer itself, if
//! that number was decided while it prepared; else whoever decides that; else, after a crash, the next one who looks for
//! the newest number in order to write.
//!
//! One that needs another number becomes void with it: what it needs is before it, and so decided when its turn comes.

use esker_format::history::{Branch, Commit, Decision, GivenUp, Item, Key, Verdict};
use esker_format::{inside, varint};

use crate::attempt::Attempt;
use crate::commit::Outcome;
use crate::error::{Error, Result};
use crate::find::Known;
use crate::grow::{News, numbered};
use crate::{History, keys, spaces};

/// Whether a number's turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is decided.
    Decided,
    /// It is prepared: it is decided when all numbers before it are.
    Prepared,
}

/// A fact that a prepared commit needs a number.
fn needed(number: &u64) -> Item {
    Item::fact(spaces::NEEDED, &number.to_be_bytes(), Some(Vec::new()))
}

/// The number that an item says is needed.
fn needed_in(item: &Item) -> Option<u64> {
    match &item.key {
        Key::Fact { space: spaces::NEEDED, name } => {
            Some(u64::from_be_bytes(name[..].try_into().ok()?))
        }
        _ => None,
    }
}

impl History {
    /// Commits under this number, whatever those before it are or will be: their order decides which values win.
    /// If its turn has not come it is kept until then. One that needs a number which was given up is given up.
    pub fn commit_as(&self, attempt: Attempt, number: u64) -> Result<Turn> {
        let Attempt { branch, durable, needs, .. } = attempt.clone();
        let newest = self.newest(&branch)?;
        if let Some(outcome) = self.already(&attempt, newest, number)? {
            return outcome;
        }
        self.require_not_fenced(&branch)?;
        if let Some(later) = needs.iter().find(|needed| **needed >= number) {
            let why = format!("number {number} cannot need number {later}, which is not before it");
            return Err(Error::Wrong(why));
        }
        match self.require_needed(&attempt) {
            Err(Error::Needed { branch, number: needed }) => {
                self.settle(&attempt, (newest, number), Verdict::GivenUp(GivenUp::Aborted))?;
                return Err(Error::Needed { branch, number: needed });
            }
            Err(Error::Waiting { .. }) => {}
            other => other?,
        }
        // What depends on those before it stays beside the run.
        let (mut apart, items): (Vec<Item>, Vec<Item>) =
            attempt.items.iter().cloned().partition(|item| self.grows(item));
        apart.extend(needs.iter().map(needed));
        let verdict = match self.news(items, number, durable)? {
            News::Items(mut items) => {
                items.extend(apart);
                Commit { items: numbered(items, number), ..Commit::default() }
            }
            News::Run(level, _) => {
                let items = numbered(apart, number);
                Commit { levels: vec![level], items, ..Commit::default() }
            }
        };
        self.settle(&attempt, (newest, number), Verdict::Commit(verdict))
    }

    /// Gives a number up, so that those behind it need not wait.
    pub fn give_up(&self, attempt: Attempt, number: u64, why: GivenUp) -> Result<Turn> {
        let newest = self.newest(&attempt.branch)?;
        match self.already(&attempt, newest, number)? {
            Some(outcome) => outcome,
            None => self.settle(&attempt, (newest, number), Verdict::GivenUp(why)),
        }
    }

    /// Promotes what is prepared and has its turn. Gives the newest number then.
    pub fn promote_prepared(&self, branch: &Branch) -> Result<u64> {
        self.promote_behind(branch, self.first_of(branch)?)
    }

    /// The decision that is prepared for a number, whether it was promoted or not.
    pub fn prepared_for(&self, branch: &Branch, number: u64) -> Result<Option<Decision>> {
        Ok(self.prepared(branch, number)?.map(|known| known.decision))
    }

    /// Fails unless everything that an attempt needs has been committed.
    pub(crate) fn require_needed(&self, attempt: &Attempt) -> Result<()> {
        let branch = &attempt.branch;
        let mut waiting = None;
        for number in attempt.needs.iter().copied() {
            let known = match self.known(branch, number)? {
                None => self.prepared(branch, number)?.filter(|known| {
                    // One that is prepared may still become void itself.
                    known.decision.commit().is_none()
                }),
                decided => decided,
            };
            match known {
                Some(known) if known.decision.commit().is_some() => {}
                Some(_) => return Err(Error::Needed { branch: branch.clone(), number }),
                None => waiting = waiting.or(Some(number)),
            }
        }
        match waiting {
            Some(number) => Err(Error::Waiting { branch: branch.clone(), number }),
            None => Ok(()),
        }
    }

    fn grows(&self, item: &Item) -> bool {
        matches!(&item.key, Key::Fact { space, .. } if Some(*space) == self.growing)
    }

    /// What was decided on a number already, if anything was.
    fn already(&self, attempt: &Attempt, newest: u64, number: u64) -> Result<Option<Result<Turn>>> {
        let branch = &attempt.branch;
        if number == 0 || number > newest {
            let wrong = || Error::Wrong("numbers of versions begin with 1".to_string());
            return if number == 0 { Err(wrong()) } else { Ok(None) };
        }
        let known = self.known(branch, number)?;
        let is_own = known.is_some_and(|known| known.decision.write == attempt.write);
        let decided = || Error::Decided { branch: branch.clone(), number };
        Ok(Some(if is_own { Ok(Turn::Decided) } else { Err(decided()) }))
    }

    /// Prepares a decision, and promotes it if its turn has come.
    fn settle(
        &self,
        attempt: &Attempt,
        (newest, number): (u64, u64),
        verdict: Verdict,
    ) -> Result<Turn> {
        let branch = &attempt.branch;
        if attempt.durable {
            self.settle_before(branch, newest.saturating_add(1))?;
        }
        let key = keys::prepared(branch, number);
        let prepared = self.publish_settled(attempt, &key, number, verdict)?;
        if prepared == Outcome::Lost {
            return Err(Error::Decided { branch: branch.clone(), number });
        }
        let newest = self.promote_behind(branch, self.first_of(branch)?)?;
        match self.already(attempt, newest, number)? {
            Some(outcome) => outcome,
            None => Ok(Turn::Prepared),
        }
    }

    /// Promotes what is prepared for the numbers behind the newest. Gives the newest then. `number` is one that is
    /// known to be decided, or the one before a branch's first.
    pub(crate) fn promote_behind(&self, branch: &Branch, number: u64) -> Result<u64> {
        let mut newest = self.newest_behind(branch, number)?;
        while let Some(prepared) = self.prepared(branch, newest + 1)? {
            self.promote(branch, newest, prepared)?;
            newest += 1;
            self.witness.promoted(self, branch, newest)?;
            // Nobody asks for it any more.
            let _ = self.segments.remove(&keys::prepared(branch, newest));
        }
        Ok(newest)
    }

    /// The same for a commit that needs nothing of those before it: what is prepared and cannot be promoted, because those before it cannot be
    /// read, is given up.
    pub(crate) fn promote_or_give_up(&self, branch: &Branch, number: u64) -> Result<u64> {
        let mut newest = self.newest_behind(branch, number)?;
        loop {
            match self.promote_behind(branch, newest) {
                Err(Error::Damaged { .. } | Error::Gone { .. } | Error::Wrong(_)) => {}
                outcome => return outcome,
            }
            newest = self.newest_behind(branch, newest)?;
            let attempt = Attempt::new(branch.clone(), newest);
            let attempt = attempt.durable(true).message("could not be promoted").whole();
            let (key, given_up) = (keys::decision(branch, newest + 1), GivenUp::Aborted);
            self.publish(&attempt, &key, newest + 1, Verdict::GivenUp(given_up))?;
            newest += 1;
        }
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
        let Decision { write, time, message, durable, verdict, .. } = prepared.decision;
        let (base, items, whole) = (newest, Vec::new(), false);
        let mut attempt = Attempt {
            write,
            branch: branch.clone(),
            base,
            time,
            message,
            items,
            durable,
            whole,
            needs: Vec::new(),
        };
        let number = newest + 1;
        let key = keys::decision(branch, number);
        let mut commit = match verdict {
            Verdict::Commit(commit) => commit,
            given_up => return self.publish(&attempt, &key, number, given_up).map(drop),
        };
        let needs: Vec<u64> = commit.items.iter().filter_map(needed_in).collect();
        commit.items.retain(|item| needed_in(item).is_none());
        attempt.needs = needs;
        match self.require_needed(&attempt) {
            // One that is not there now is not before it, which nobody prepares.
            Err(Error::Needed { .. } | Error::Waiting { .. }) => {
                let given_up = Verdict::GivenUp(GivenUp::Aborted);
                return self.publish(&attempt, &key, number, given_up).map(drop);
            }
            other => other?,
        }
        let parent = self.commit_at(branch, newest)?;
        self.grow_behind(parent.as_ref(), (branch, newest), &mut commit.items)?;
        let news = match <[_; 1]>::try_from(commit.levels) {
            Ok([level]) => News::Run(level, commit.items),
            Err(_) => News::Items(commit.items),
        };
        self.decide(&attempt, number, parent, news).map(drop)
    }

    /// Of facts that only grow, the larger of ours and the parent's is so.
    fn grow_behind(
        &self,
        parent: Option<&Known>,
        (branch, newest): (&Branch, u64),
        items: &mut [Item],
    ) -> Result<()> {
        let Some(parent) = parent else { return Ok(()) };
        for item in items.iter_mut().filter(|item| self.grows(item)) {
            let Key::Fact { space, name } = &item.key else { continue };
            let before = self.version_of(branch, newest, parent.clone())?.fact(*space, name)?;
            let number = |value: Option<&[u8]>| varint::take(&mut value?);
            if number(before.as_deref()) > number(item.value.as_deref()) {
                item.value = before;
            }
        }
        Ok(())
    }
}
