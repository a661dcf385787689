//! The variables in the order of the file: which one has a byte.

use super::Header;
use crate::schema::VarId;

/// The variable, and the record of it, that has a byte of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The variable.
    pub var: VarId,
    /// Its record; 0 for a variable of fixed size.
    pub record: u64,
    /// Where its values, or those of this record, begin in the file.
    pub begin: u64,
    /// Bytes of the values.
    pub bytes: u64,
    /// Bytes with the padding behind them.
    pub padded: u64,
}

impl At {
    /// Where the values end in the file.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes)
    }

    /// Where the padding ends in the file.
    pub fn padded_end(&self) -> u64 {
        self.begin.saturating_add(self.padded)
    }
}

/// The variables of a [`Header`] sorted by place, to be asked for bytes of the file: each
/// question costs a logarithm of their number.
///
/// Files come from anybody, so variables may overlap and records may reach into the next one.
/// Then every byte that a variable has is still found, in one of those that have it.
#[derive(Debug, Clone, Default)]
pub struct FileOrder {
    fixed: Vec<Spot>,
    /// Places within a record, which is a ring: what reaches behind its end goes on at its
    /// beginning, in the next record.
    records: Vec<Spot>,
    record_size: u64,
    /// The first record of the variable that lies first.
    first_record: Option<At>,
    /// How many records there are.
    limit: u64,
}

/// Bytes of one variable.
#[derive(Debug, Clone, Copy)]
struct Spot {
    var: VarId,
    from: u64,
    to: u64,
    /// The highest end of this spot and of all before it.
    reach: u64,
    /// Bytes of the variable before this spot.
    before: u64,
    /// How many records later than it is found the variable's own began.
    late: u64,
    bytes: u64,
    padded: u64,
}

impl FileOrder {
    /// The order of a header's variables. Those that have no bytes are left out. Records have no
    /// end: see [`FileOrder::set_records`].
    pub fn of(header: &Header) -> FileOrder {
        FileOrder::of_those(header, |_| true)
    }

    /// The same of some variables.
    pub fn of_those(header: &Header, wanted: impl Fn(VarId) -> bool) -> FileOrder {
        let size = header.layout.record_size.max(1);
        let there = || header.vars().filter(|(var, _, place)| place.bytes > 0 && wanted(*var));
        let recorded = there().filter(|(_, variable, _)| header.schema.is_record(variable));
        let begin = recorded.map(|(_, _, place)| place.begin).min().unwrap_or(0);
        let (mut fixed, mut records) = (Vec::new(), Vec::new());
        for (var, variable, place) in there() {
            let (bytes, mut padded) = (place.bytes, place.vsize);
            let is_record = header.schema.is_record(variable);
            if is_record {
                // A lone record variable of a small type is not padded.
                padded = padded.min(size).max(bytes);
            }
            let spot = |from: u64, to: u64, before: u64, late: u64| Spot {
                var,
                from,
                to,
                reach: to,
                before,
                late,
                bytes,
                padded,
            };
            if !is_record {
                fixed.push(spot(place.begin, place.begin.saturating_add(padded), 0, 0));
                continue;
            }
            let (late, from) = ((place.begin - begin) / size, (place.begin - begin) % size);
            let first = padded.min(size - from);
            records.push(spot(from, from + first, 0, late));
            if first < padded {
                records.push(spot(0, padded - first, first, late + 1));
            }
        }
        let (fixed, records) = (sorted(fixed), sorted(records));
        let first = records.iter().find(|spot| spot.before == 0 && spot.late == 0);
        let first_record = first.map(|spot| spot.at(begin, 0));
        FileOrder { fixed, records, record_size: size, first_record, limit: u64::MAX }
    }

    /// There are so many records: what is behind them belongs to nobody.
    pub fn set_records(&mut self, records: u64) {
        self.limit = records;
    }

    /// The variable and record that have this byte, padding included; `None` for the header, for
    /// unused space and behind the end.
    pub fn at(&self, byte: u64) -> Option<At> {
        let fixed = holding(&self.fixed, byte, |_| true);
        fixed.map(|spot| spot.at(0, 0)).or_else(|| self.record_at(byte))
    }

    /// The same, or the next variable behind the byte.
    pub fn at_or_after(&self, byte: u64) -> Option<At> {
        self.at(byte).or_else(|| {
            let fixed = following(&self.fixed, byte).map(|spot| spot.at(0, 0));
            let record = self.record_after(byte).filter(|at| at.record < self.limit);
            [fixed, record].into_iter().flatten().min_by_key(|at| at.begin)
        })
    }

    fn record_at(&self, byte: u64) -> Option<At> {
        let behind = byte.checked_sub(self.first_record?.begin)?;
        let (record, within) = (behind / self.record_size, behind % self.record_size);
        let spot = holding(&self.records, within, |spot| spot.late <= record)?;
        Some(spot.at(byte - within, record)).filter(|at| at.record < self.limit)
    }

    fn record_after(&self, byte: u64) -> Option<At> {
        let first = self.first_record?;
        let Some(behind) = byte.checked_sub(first.begin) else { return Some(first) };
        let (begin, size) = (first.begin, self.record_size);
        let (record, within) = (behind / size, behind % size);
        // Late variables do not begin in the first records.
        let begins = |spots: &[Spot], record: u64, base: u64| {
            let spot = spots.iter().find(|spot| spot.before == 0 && spot.late <= record)?;
            Some(spot.at(base, record))
        };
        let rest = &self.records[self.records.partition_point(|spot| spot.from <= within)..];
        begins(rest, record, begin + record * size).or_else(|| {
            begins(&self.records, record.saturating_add(1), byte.checked_add(size - within)?)
        })
    }
}

impl Spot {
    /// The variable whose bytes these are, when the fixed part or a record begins at `base`.
    fn at(&self, base: u64, record: u64) -> At {
        let begin = base.saturating_add(self.from).saturating_sub(self.before);
        let Spot { var, bytes, padded, .. } = *self;
        At { var, record: record - self.late, begin, bytes, padded }
    }
}

fn sorted(mut spots: Vec<Spot>) -> Vec<Spot> {
    spots.sort_by_key(|spot| (spot.from, spot.to));
    let mut reach = 0;
    for spot in &mut spots {
        reach = spot.to.max(reach);
        spot.reach = reach;
    }
    spots
}

/// The spot that has this place. Only where variables overlap more than one is looked at.
fn holding(spots: &[Spot], place: u64, is: impl Fn(&Spot) -> bool) -> Option<&Spot> {
    let begun = spots.partition_point(|spot| spot.from <= place);
    let mut near = spots[..begun].iter().rev().take_while(|spot| spot.reach > place);
    near.find(|spot| spot.to > place && is(spot))
}

/// The first spot that begins behind this place.
fn following(spots: &[Spot], place: u64) -> Option<&Spot> {
    spots.get(spots.partition_point(|spot| spot.from <= place))
}

impl Header {
    /// The variable and record that have this byte of the file, padding included. For many
    /// questions, [`FileOrder`] is made once.
    pub fn at(&self, byte: u64) -> Option<At> {
        FileOrder::of(self).at(byte)
    }
}
