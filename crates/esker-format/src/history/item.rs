//! What a version consists of: facts, of which the last is true, and data, which lie over each other.

use std::cmp::Ordering;

use super::rest::{Rest, put_text};
use crate::log::Records;
use crate::varint;

/// The elements that an item of data touches, or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// The identity of the variable.
    pub object: u64,
    /// Which records.
    pub records: Records,
    /// The first element of a record.
    pub first: u64,
    /// The end of the elements that are spanned; not before `first`.
    pub end: u64,
}

impl Data {
    /// Whether both may touch the same element.
    pub fn meets(&self, other: &Data) -> bool {
        let apart = |a: &Data, b: &Data| a.records.end().is_some_and(|end| end <= b.records.first);
        self.object == other.object
            && self.first < other.end
            && other.first < self.end
            && !apart(self, other)
            && !apart(other, self)
    }
}

/// What an item is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Something that is so until a later item says otherwise: a definition, a name, a number of records.
    Fact {
        /// What kind of fact it is.
        space: u8,
        /// Which one.
        name: Vec<u8>,
    },
    /// Values.
    Data(Data),
}

/// Where an item stands among others of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A fact: by kind and name.
    Fact(u8, Vec<u8>),
    /// Data: by object, first record and first element.
    Data(u64, u64, u64),
}

impl Key {
    /// Where it stands.
    pub fn place(&self) -> Place {
        match self {
            Key::Fact { space, name } => Place::Fact(*space, name.clone()),
            Key::Data(data) => Place::Data(data.object, data.records.first, data.first),
        }
    }
}

/// One item of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is about.
    pub key: Key,
    /// The number that it came with.
    pub number: u64,
    /// The number whose values it lies over, with those before: its own, or an earlier one where values that were
    /// committed meanwhile were to win.
    pub over: u64,
    /// What is so, or where the values are; `None` for a fact that is no longer so.
    pub value: Option<Vec<u8>>,
}

impl Item {
    /// A fact, or that it is no longer so. It has no number yet.
    pub fn fact(space: u8, name: &[u8], value: Option<Vec<u8>>) -> Item {
        Item { key: Key::Fact { space, name: name.to_vec() }, number: 0, over: 0, value }
    }

    /// Data, and where they are. They have no number yet.
    pub fn data(data: Data, place: Vec<u8>) -> Item {
        Item { key: Key::Data(data), number: 0, over: 0, value: Some(place) }
    }

    /// The order of items in a run. Equal ones stay as they were written.
    pub fn order(&self, other: &Item) -> Ordering {
        let keys = match (&self.key, &other.key) {
            (Key::Fact { space: a, name: x }, Key::Fact { space: b, name: y }) => {
                (a, x).cmp(&(b, y))
            }
            (Key::Fact { .. }, Key::Data(_)) => Ordering::Less,
            (Key::Data(_), Key::Fact { .. }) => Ordering::Greater,
            (Key::Data(a), Key::Data(b)) => {
                let place = |data: &Data| (data.object, data.records.first, data.first);
                place(a).cmp(&place(b))
            }
        };
        keys.then(self.number.cmp(&other.number))
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        let name = match &self.key {
            Key::Fact { name, .. } => name.len(),
            Key::Data(_) => 16,
        };
        8 + name + self.value.as_ref().map_or(0, Vec::len)
    }
}

const DATA: u8 = 1;
const REMOVED: u8 = 1 << 1;
const SEVERAL: u8 = 1 << 2;

/// The numbers of the item before.
#[derive(Debug, Default)]
pub(super) struct Before {
    number: u64,
    object: u64,
    record: u64,
    first: u64,
    span: u64,
}

impl Before {
    pub(super) fn put(&mut self, bytes: &mut Vec<u8>, item: &Item) {
        let data = match &item.key {
            Key::Data(data) => Some(data),
            Key::Fact { .. } => None,
        };
        let several = data.filter(|data| (data.records.count, data.records.step) != (1, 1));
        let mut flags = 0;
        for (on, bit) in
            [(data.is_some(), DATA), (item.value.is_none(), REMOVED), (several.is_some(), SEVERAL)]
        {
            flags |= if on { bit } else { 0 };
        }
        bytes.push(flags);
        varint::put_difference(bytes, self.number, item.number);
        varint::put(bytes, item.number - item.over);
        self.number = item.number;
        match &item.key {
            Key::Fact { space, name } => {
                bytes.push(*space);
                put_text(bytes, name);
            }
            Key::Data(data) => {
                varint::put_difference(bytes, self.object, data.object);
                varint::put_difference(bytes, self.record, data.records.first);
                if several.is_some() {
                    varint::put(bytes, data.records.count);
                    varint::put(bytes, data.records.step);
                }
                let span = data.end - data.first;
                varint::put_difference(bytes, self.first, data.first);
                varint::put_difference(bytes, self.span, span);
                (self.object, self.record) = (data.object, data.records.first);
                (self.first, self.span) = (data.first, span);
            }
        }
        if let Some(value) = &item.value {
            put_text(bytes, value);
        }
    }

    pub(super) fn take(&mut self, rest: &mut Rest<'_>) -> Option<Item> {
        let flags = rest.byte()?;
        let known = flags & !(DATA | REMOVED | SEVERAL) == 0;
        // Values are never removed: they are overwritten.
        let sensible = flags & DATA == 0 || flags & REMOVED == 0;
        if !known || !sensible || flags & (DATA | SEVERAL) == SEVERAL {
            return None;
        }
        self.number = rest.difference(self.number)?;
        let over = self.number.checked_sub(rest.number()?)?;
        let key = if flags & DATA == 0 {
            Key::Fact { space: rest.byte()?, name: rest.text()?.to_vec() }
        } else {
            self.object = rest.difference(self.object)?;
            self.record = rest.difference(self.record)?;
            let (count, step) = match flags & SEVERAL {
                0 => (1, 1),
                _ => (rest.number()?, rest.number()?),
            };
            self.first = rest.difference(self.first)?;
            self.span = rest.difference(self.span)?;
            let end = self.first.checked_add(self.span)?;
            let records = Records { first: self.record, count, step };
            if count == 0 || step == 0 || records.end().is_none() {
                return None;
            }
            Key::Data(Data { object: self.object, records, first: self.first, end })
        };
        let value = match flags & REMOVED {
            0 => Some(rest.text()?.to_vec()),
            _ => None,
        };
        Some(Item { key, number: self.number, over, value })
    }
}
