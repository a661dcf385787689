//! Names of versions: numbers, tags, branches.

use esker_format::history::{Branch, Item, Key};
use esker_format::varint;

use crate::attempt::Attempt;
use crate::error::{Error, Result};
use crate::rebase::Strict;
use crate::version::Version;
use crate::{History, spaces};

/// What people call a version: `7`, `v3`, `dev`, `dev:12`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// Version of the branch `main`.
    Number(u64),
    /// A tag, or the newest version of a branch.
    Word(Branch),
    /// A version of a branch.
    Of(Branch, u64),
}

impl Name {
    /// The name in `text`, if it is one.
    pub fn parse(text: &str) -> Option<Name> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse().ok())?
        };
        match text.split_once(':') {
            Some((branch, of)) => Some(Name::Of(Branch::new(branch)?, number(of)?)),
            None => number(text).map(Name::Number).or_else(|| Branch::new(text).map(Name::Word)),
        }
    }
}

/// The value of a tag or branch: a version.
fn value(branch: &Branch, number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::put(&mut bytes, branch.as_str().len() as u64);
    bytes.extend(branch.as_str().as_bytes());
    varint::put(&mut bytes, number);
    bytes
}

fn version_in(mut bytes: &[u8]) -> Option<(Branch, u64)> {
    let len = usize::try_from(varint::take(&mut bytes)?).ok()?;
    let (name, mut bytes) = bytes.split_at_checked(len)?;
    let branch = Branch::new(std::str::from_utf8(name).ok()?)?;
    let number = varint::take(&mut bytes)?;
    bytes.is_empty().then_some((branch, number))
}

impl Version {
    /// Tags that were known in this version of `main`, and what they stand for.
    pub fn tags(&self) -> Result<Vec<(Branch, Branch, u64)>> {
        self.named(spaces::TAGS)
    }

    /// Branches that were known in this version of `main`, and what they began with.
    pub fn branches(&self) -> Result<Vec<(Branch, Branch, u64)>> {
        self.named(spaces::BRANCHES)
    }

    fn named(&self, space: u8) -> Result<Vec<(Branch, Branch, u64)>> {
        let facts = self.facts(space)?;
        Ok(facts.iter().filter_map(|(name, value)| named_in(name, value)).collect())
    }
}

fn named_in(name: &[u8], value: &[u8]) -> Option<(Branch, Branch, u64)> {
    let name = Branch::new(std::str::from_utf8(name).ok()?)?;
    let (branch, number) = version_in(value)?;
    Some((name, branch, number))
}

/// The name and the version of a fact that is a tag.
pub fn tag_in(item: &Item) -> Option<(Branch, Branch, u64)> {
    match &item.key {
        Key::Fact { space: spaces::TAGS, name } => named_in(name, item.value.as_deref()?),
        _ => None,
    }
}

impl History {
    /// The version that a branch began with; `None` for `main`.
    pub(crate) fn start(&self, branch: &Branch) -> Result<Option<(Branch, u64)>> {
        let main = Branch::main();
        if *branch == main {
            return Ok(None);
        }
        let missing = || Error::NoName(branch.to_string());
        match self.named(spaces::BRANCHES, branch)? {
            Some(start) => Ok(Some(start)),
            None => Err(missing()),
        }
    }

    /// The version that a tag or branch stands for.
    fn named(&self, space: u8, name: &Branch) -> Result<Option<(Branch, u64)>> {
        let main = match self.last(&Branch::main()) {
            Err(Error::Empty(_)) => return Ok(None),
            main => main?,
        };
        let Some(bytes) = main.fact(space, name.as_str().as_bytes())? else { return Ok(None) };
        let wrong = || Error::Wrong(format!("what {name} stands for cannot be read"));
        version_in(&bytes).map(Some).ok_or_else(wrong)
    }

    /// The version that people mean by a name.
    pub fn resolve(&self, name: &Name) -> Result<Version> {
        match name {
            Name::Number(number) => self.exact(&Branch::main(), *number),
            Name::Of(branch, number) => self.exact(branch, *number),
            Name::Word(word) => match self.named(spaces::TAGS, word)? {
                // A tag keeps its version from expiring.
                Some((branch, number)) => self.version_at(&branch, number),
                None => self.last(word),
            },
        }
    }

    /// Tags and what they stand for.
    pub fn tags(&self) -> Result<Vec<(Branch, Branch, u64)>> {
        self.all_named(spaces::TAGS)
    }

    /// Branches beside `main`, and the versions that they began with.
    pub fn branches(&self) -> Result<Vec<(Branch, Branch, u64)>> {
        self.all_named(spaces::BRANCHES)
    }

    fn all_named(&self, space: u8) -> Result<Vec<(Branch, Branch, u64)>> {
        match self.last(&Branch::main()) {
            Err(Error::Empty(_)) => Ok(Vec::new()),
            main => main?.named(space),
        }
    }

    /// Gives a version a name, for ever.
    pub fn tag(&self, name: &Branch, of: &Version, message: &str, time: i64) -> Result<u64> {
        self.name(spaces::TAGS, name, of, message, time)
    }

    /// Begins a branch with a version.
    pub fn branch(&self, name: &Branch, of: &Version, message: &str, time: i64) -> Result<u64> {
        self.name(spaces::BRANCHES, name, of, message, time)
    }

    fn name(
        &self,
        space: u8,
        name: &Branch,
        of: &Version,
        message: &str,
        time: i64,
    ) -> Result<u64> {
        let main = Branch::main();
        let last = self.last(&main)?;
        let taken = |space| last.fact(space, name.as_str().as_bytes());
        if *name == main || taken(spaces::TAGS)?.is_some() || taken(spaces::BRANCHES)?.is_some() {
            return Err(Error::Wrong(format!("there is a branch or tag {name} already")));
        }
        let (branch, number) = (of.branch(), of.number());
        let item = Item::fact(space, name.as_str().as_bytes(), Some(value(branch, number)));
        // The same word as the other kind of name is a conflict, too: a fact that says nothing stands for that.
        let other = if space == spaces::TAGS { spaces::BRANCHES } else { spaces::TAGS };
        let not = Item::fact(other, name.as_str().as_bytes(), None);
        let attempt = Attempt::new(main, last.number()).items(vec![item, not]);
        let attempt = attempt.message(message).time(time).durable(true);
        let committed = self.commit(attempt, &mut Strict::default())?;
        // A collection may have been faster than the name, which keeps only what is still there.
        self.version_at(branch, number)?;
        Ok(committed)
    }
}
