//! A set that keeps the order in which things came.

use std::collections::HashSet;
use std::hash::Hash;

/// A list without repetitions, in the order of insertion.
#[derive(Debug, Clone)]
pub struct Ordered<T> {
    items: Vec<T>,
    // Most are short and are searched; a table is made when one grows.
    known: Option<HashSet<T>>,
}

/// Above this many items there is a table.
const SEARCHED: usize = 16;

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Ordered { items: Vec::new(), known: None }
    }
}

impl<T: PartialEq> PartialEq for Ordered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T: Clone + Eq + Hash> Ordered<T> {
    /// The items in their order.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The items in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether it is among them.
    pub fn contains(&self, item: &T) -> bool {
        match &self.known {
            Some(known) => known.contains(item),
            None => self.items.contains(item),
        }
    }

    /// Appends an item, unless it is there. Tells whether it is new.
    pub fn insert(&mut self, item: T) -> bool {
        if self.contains(&item) {
            return false;
        }
        if let Some(known) = &mut self.known {
            known.insert(item.clone());
        }
        self.items.push(item);
        if self.known.is_none() && self.items.len() > SEARCHED {
            self.known = Some(self.items.iter().cloned().collect());
        }
        true
    }

    /// Keeps what `keep` says, in its order. Tells whether something went.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) -> bool {
        let before = self.items.len();
        self.items.retain(keep);
        let went = self.items.len() < before;
        if went && self.known.is_some() {
            self.known = Some(self.items.iter().cloned().collect());
        }
        went
    }

    /// Changes every item in its place; those that become equal to an earlier one go. Tells
    /// whether something changed.
    pub(super) fn change(&mut self, change: impl Fn(&T) -> Option<T>) -> bool {
        if !self.items.iter().any(|item| change(item).is_some()) {
            return false;
        }
        let items = std::mem::take(self).items;
        for item in items {
            let item = change(&item).unwrap_or(item);
            self.insert(item);
        }
        true
    }
}

impl<'a, T> IntoIterator for &'a Ordered<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}
