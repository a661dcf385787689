//! Relations in files: each rank reads and writes its share of rows.

use esker::{Dataset, Selection, VarId};
use esker_comm::{Communicator, CommunicatorExt};

use super::Relation;
use crate::error::{ModelError, Result, agree};
use crate::shares::Shares;

/// A table of fixed width: rows of element numbers, and a fill value where a row is shorter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The variable, of two dimensions.
    pub var: VarId,
    /// The number of the first element: 0 or 1.
    pub start: i64,
    /// What stands where there is none.
    pub fill: Option<i64>,
    /// Elements that there are.
    pub columns: u64,
    /// Whether the rows are the variable's second dimension, as ICON and FESOM have them.
    pub transposed: bool,
}

/// A ragged table: where the rows begin (one offset for each row, and the end), and the elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ragged {
    /// The offsets, one more than rows.
    pub offsets: VarId,
    /// The elements.
    pub indices: VarId,
    /// How much they belong, if that is stored.
    pub weights: Option<VarId>,
    /// The number of the first element: 0 or 1, for offsets too.
    pub start: i64,
    /// Elements that there are.
    pub columns: u64,
}

impl Relation {
    /// Reads a table. Elements out of range are an error with row and number. Collective.
    pub fn read_table(ds: &mut Dataset, table: &Table) -> Result<Relation> {
        let comm = ds.comm().clone();
        let shape = table_shape(ds, table);
        let (rows, width) = agree(&*comm, shape)?;
        let shares = Shares::new(rows, comm.size());
        let mine = shares.of(comm.rank());
        let own = mine.end - mine.start;
        let selection = match (own * width, table.transposed) {
            (0, _) => Selection::none(),
            (_, false) => Selection::slab(&[mine.start, 0], &[own, width]),
            (_, true) => Selection::slab(&[0, mine.start], &[width, own]),
        };
        let values: Vec<i64> = ds.get_all(table.var, &selection)?;
        let at = |row: u64, place: u64| match table.transposed {
            false => values[(row * width + place) as usize],
            true => values[(place * own + row) as usize],
        };
        let name = ds.variable(table.var)?.name.to_string();
        let mut offsets = vec![0];
        let mut indices = Vec::with_capacity(values.len());
        let mut wrong = Ok(());
        for row in 0..own {
            for place in 0..width {
                let value = at(row, place);
                if Some(value) == table.fill {
                    continue;
                }
                match value.checked_sub(table.start).and_then(|n| u64::try_from(n).ok()) {
                    Some(index) if index < table.columns => indices.push(index),
                    _ if wrong.is_ok() => {
                        let (row, n, first) = (mine.start + row, table.columns, table.start);
                        let what = format!(
                            "row {row}, place {place}: element {value}, but there are {n} from {first} on"
                        );
                        let object = format!("variable \"{name}\"");
                        wrong = Err(ModelError::stored(ds.path(), object, what));
                    }
                    _ => {}
                }
            }
            offsets.push(indices.len() as u64);
        }
        agree(&*comm, wrong)?;
        let (columns, first) = (table.columns, mine.start);
        Ok(Relation { rows, columns, first, offsets, indices, weights: None })
    }

    /// Writes this relation as a table of `width`, which the variable has. Collective.
    pub fn write_table(&self, ds: &mut Dataset, table: &Table) -> Result<()> {
        let comm = ds.comm().clone();
        let shape = table_shape(ds, table).and_then(|(rows, width)| {
            let longest = self.offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            if rows != self.rows || longest > width {
                let (name, own) = (ds.variable(table.var)?.name.to_string(), self.rows);
                let what = format!("{rows} rows of {width}, for {own} rows of up to {longest}");
                return Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what));
            }
            Ok(width)
        });
        let width = agree(&*comm, shape)?;
        let own = self.own_rows();
        let count = own.end - own.start;
        let fill = table.fill.unwrap_or(-1);
        let mut values = vec![fill; (count * width) as usize];
        for at in 0..count as usize {
            for (place, index) in self.row(at).iter().enumerate() {
                let flat = match table.transposed {
                    false => at as u64 * width + place as u64,
                    true => place as u64 * count + at as u64,
                };
                values[flat as usize] = *index as i64 + table.start;
            }
        }
        let selection = match (values.is_empty(), table.transposed) {
            (true, _) => Selection::none(),
            (_, false) => Selection::slab(&[own.start, 0], &[count, width]),
            (_, true) => Selection::slab(&[0, own.start], &[width, count]),
        };
        Ok(ds.put_all(table.var, &selection, &values)?)
    }

    /// Reads a ragged table. Offsets that fall, and elements out of range, are an error with row and
    /// number. Collective.
    pub fn read_ragged(ds: &mut Dataset, ragged: &Ragged) -> Result<Relation> {
        let comm = ds.comm().clone();
        let shape = ds.shape(ragged.offsets).map_err(ModelError::from).and_then(|shape| {
            let total = ds.shape(ragged.indices)?;
            match (&shape[..], &total[..]) {
                ([rows], [total]) => Ok((rows.saturating_sub(1), *total)),
                _ => Err(ModelError::Asked("offsets and indices have one dimension".to_string())),
            }
        });
        let (rows, total) = agree(&*comm, shape)?;
        let mine = Shares::new(rows, comm.size()).of(comm.rank());
        let own = mine.end - mine.start;
        let selection = match own {
            0 => Selection::none(),
            _ => Selection::slab(&[mine.start], &[own + 1]),
        };
        let stored: Vec<i64> = ds.get_all(ragged.offsets, &selection)?;
        let name = |ds: &Dataset, var: VarId| match ds.variable(var) {
            Ok(var) => format!("variable \"{}\"", var.name),
            Err(_) => "a variable".to_string(),
        };
        let bad = stored.windows(2).position(|w| w[1] < w[0] || w[0] < ragged.start);
        let bad = bad.or(match stored.last() {
            Some(end) if *end > total as i64 + ragged.start => Some(stored.len() - 2),
            _ => None,
        });
        let checked = match bad {
            None => Ok(()),
            Some(at) => {
                let (row, a, b) = (mine.start + at as u64, stored[at], stored[at + 1]);
                let what =
                    format!("row {row} goes from {a} to {b}, and there are {total} elements");
                Err(ModelError::stored(ds.path(), name(ds, ragged.offsets), what))
            }
        };
        agree(&*comm, checked)?;
        let begin = stored.first().map_or(0, |n| n - ragged.start) as u64;
        let offsets: Vec<u64> = match stored.is_empty() {
            true => vec![0],
            false => stored.iter().map(|n| (n - ragged.start) as u64 - begin).collect(),
        };
        let len = offsets.last().copied().unwrap_or(0);
        let selection =
            if len == 0 { Selection::none() } else { Selection::slab(&[begin], &[len]) };
        let values: Vec<i64> = ds.get_all(ragged.indices, &selection)?;
        let weights = match ragged.weights {
            Some(var) => Some(ds.get_all::<f64>(var, &selection)?),
            None => None,
        };
        let columns = ragged.columns;
        let outside = values.iter().position(|value| {
            !value.checked_sub(ragged.start).is_some_and(|n| n >= 0 && (n as u64) < columns)
        });
        let checked = match outside {
            None => Ok(()),
            Some(at) => {
                let (place, value, first) = (begin + at as u64, values[at], ragged.start);
                let what = format!(
                    "place {place}: element {value}, but there are {columns} from {first} on"
                );
                Err(ModelError::stored(ds.path(), name(ds, ragged.indices), what))
            }
        };
        agree(&*comm, checked)?;
        let indices = values.iter().map(|value| (value - ragged.start) as u64).collect();
        Ok(Relation { rows, columns, first: mine.start, offsets, indices, weights })
    }

    /// Writes this relation as a ragged table, whose variables have room for it: one offset more than rows, and
    /// as many indices (and weights) as all ranks have together. Collective.
    pub fn write_ragged(&self, ds: &mut Dataset, ragged: &Ragged) -> Result<()> {
        let comm = ds.comm().clone();
        let mut before = [self.indices.len() as u64];
        comm.exclusive_scan(&mut before)?;
        let own = self.own_rows();
        let first = before[0] as i64 + ragged.start;
        let mut offsets: Vec<i64> = self.offsets.iter().map(|n| *n as i64 + first).collect();
        // The last rank writes the end; a rank without rows has none to write.
        let is_last = own.end == self.rows && (!own.is_empty() || self.rows == 0);
        let is_writer = is_last && (self.rows > 0 || comm.rank() == 0);
        if !is_writer {
            offsets.pop();
        }
        let some = |first: u64, len: usize| match len {
            0 => Selection::none(),
            _ => Selection::slab(&[first], &[len as u64]),
        };
        ds.put_all(ragged.offsets, &some(own.start, offsets.len()), &offsets)?;
        let indices: Vec<i64> = self.indices.iter().map(|n| *n as i64 + ragged.start).collect();
        let place = some(before[0], indices.len());
        ds.put_all(ragged.indices, &place, &indices)?;
        if let Some(var) = ragged.weights {
            let ones;
            let weights = match &self.weights {
                Some(weights) => weights,
                None => {
                    ones = vec![1.0; indices.len()];
                    &ones
                }
            };
            ds.put_all(var, &place, weights)?;
        }
        Ok(())
    }

    /// Elements of all ranks. Collective.
    pub fn total(&self, comm: &dyn Communicator) -> Result<u64> {
        Ok(comm.sum_u64(self.indices.len() as u64)?)
    }
}

/// Rows and width of a table.
fn table_shape(ds: &Dataset, table: &Table) -> Result<(u64, u64)> {
    let shape = ds.shape(table.var)?;
    match (&shape[..], table.transposed) {
        ([rows, width], false) | ([width, rows], true) => Ok((*rows, *width)),
        _ => {
            let name = &ds.variable(table.var)?.name;
            let what = format!("{} dimensions; a table of a relation has 2", shape.len());
            Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
        }
    }
}
