//! Times as dates: numbers "since" a moment, in the calendars that ncdump knows.
//!
//! The arithmetic is that of the cdtime library which ncdump uses, in hours as doubles and in
//! the same order, because its rounding shows in the seconds.

mod calendar;
mod units;

use esker_format::{Schema, Values, VarId, Variable};

pub(crate) use units::TimeUnits;

/// The time units of every variable that has some.
pub(crate) struct TimeTable {
    /// By variable: its own units.
    own: Vec<Option<TimeUnits>>,
    /// By variable: the units of its data, which for bounds are those of the bounded variable.
    data: Vec<Option<TimeUnits>>,
    separator: char,
}

impl TimeTable {
    pub(crate) fn new(schema: &Schema, separator: char) -> TimeTable {
        let own: Vec<_> = schema.vars.iter().map(units_of).collect();
        let mut data = own.clone();
        for (parent, var) in schema.vars.iter().enumerate() {
            let Some(bounds) = text_attribute(var, "bounds") else { continue };
            let name = bounds.split('\0').next().unwrap_or_default();
            // A name that is given twice counts for the variable that gives it last.
            if let Some(bounds) = schema.vars.position(name) {
                data[bounds] = own[parent].clone();
            }
        }
        TimeTable { own, data, separator }
    }

    /// The units that numbers in the attributes of a variable have.
    pub(crate) fn of_attributes(&self, var: VarId) -> Option<&TimeUnits> {
        self.own.get(var.0)?.as_ref()
    }

    /// The units that a variable's data have.
    pub(crate) fn of_data(&self, var: VarId) -> Option<&TimeUnits> {
        self.data.get(var.0)?.as_ref()
    }

    /// Appends the date between quotes; nothing between them when there is no such date.
    pub(crate) fn put(&self, out: &mut Vec<u8>, units: &TimeUnits, value: f64) {
        match units.date(value, self.separator) {
            Some(date) => {
                out.push(b'"');
                out.extend_from_slice(date.as_bytes());
                out.push(b'"');
            }
            None if value.is_nan() => out.extend_from_slice(b"NaN"),
            None if value == f64::INFINITY => out.extend_from_slice(b"Infinity"),
            None if value == f64::NEG_INFINITY => out.extend_from_slice(b"-Infinity"),
            None => out.extend_from_slice(b"\"\""),
        }
    }
}

fn units_of(var: &Variable) -> Option<TimeUnits> {
    let units = text_attribute(var, "units")?;
    let calendar = text_attribute(var, "calendar").unwrap_or_default();
    TimeUnits::parse(&units, &calendar)
}

fn text_attribute(var: &Variable, name: &str) -> Option<String> {
    match &var.attrs.get(name)?.values {
        Values::Char(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}
