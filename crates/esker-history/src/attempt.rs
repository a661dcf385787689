//! What somebody wants to commit.

use esker_format::history::{Branch, Item, WriteId};
use esker_store::random;

/// What somebody wants to commit.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// This attempt and no other.
    pub(crate) write: WriteId,
    /// Where.
    pub(crate) branch: Branch,
    /// The number of the version that it was made for; 0 for none.
    pub(crate) base: u64,
    /// When, in seconds since 1970.
    pub(crate) time: i64,
    /// Why.
    pub(crate) message: String,
    /// What is new.
    pub(crate) items: Vec<Item>,
    /// Whether it survives a loss of power.
    pub(crate) durable: bool,
    /// Whether it has everything that its version consists of, and needs nothing from before.
    pub(crate) whole: bool,
    /// The numbers without which it is void.
    pub(crate) needs: Vec<u64>,
}

impl Attempt {
    /// An attempt to commit to a branch what was made for version `base` of it.
    pub fn new(branch: Branch, base: u64) -> Attempt {
        let write = WriteId(u128::from(random()) << 64 | u128::from(random()));
        let (time, message, items) = (0, String::new(), Vec::new());
        let (durable, whole, needs) = (false, false, Vec::new());
        Attempt { write, branch, base, time, message, items, durable, whole, needs }
    }

    /// The number of the version that it was made for; 0 for none.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Whether it has everything that its version consists of.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// With these items. Their numbers do not matter.
    pub fn items(mut self, items: Vec<Item>) -> Attempt {
        self.items = items;
        self
    }

    /// With a message for people.
    pub fn message(mut self, message: &str) -> Attempt {
        self.message = message.to_string();
        self
    }

    /// With a time for people, in seconds since 1970.
    pub fn time(mut self, time: i64) -> Attempt {
        self.time = time;
        self
    }

    /// To be safe from a loss of power when it is committed.
    pub fn durable(mut self, durable: bool) -> Attempt {
        self.durable = durable;
        self
    }

    /// With numbers of its branch that must have been committed: if one of them is given up, so is this one.
    pub fn needs(mut self, numbers: &[u64]) -> Attempt {
        self.needs = numbers.to_vec();
        self
    }

    /// With items that are all that there is: what was before it is not looked at, and need not be readable.
    pub fn whole(mut self) -> Attempt {
        self.whole = true;
        self
    }
}
