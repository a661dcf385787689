//! The places as the text of PnetCDF's ncoffsets.

use std::io::{self, Write};

use esker::DimLen;
use esker_text::shown_path;
use esker_tools::offsets::Place;

use super::Shown;
use crate::terminal::table::printable;

impl Shown<'_> {
    /// The text of PnetCDF's ncoffsets, so that scripts that read it can read ours.
    pub(super) fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let Shown { arguments, offsets, .. } = self;
        writeln!(out, "netcdf {} {{", shown_path(&arguments.file))?;
        writeln!(out, "// file format: {}", self.schema.version)?;
        writeln!(out, "\nfile header:\n\tsize   = {} bytes", offsets.header_len)?;
        writeln!(out, "\textent = {} bytes", offsets.extent)?;
        if !self.schema.dims.is_empty() {
            writeln!(out, "\ndimensions:")?;
        }
        for dim in &self.schema.dims {
            match dim.len {
                DimLen::Fixed(len) => writeln!(out, "\t{} = {len}", printable(&dim.name))?,
                DimLen::Unlimited => {
                    let records = offsets.records;
                    writeln!(
                        out,
                        "\t{} = UNLIMITED // ({records} currently)",
                        printable(&dim.name)
                    )?;
                }
            }
        }
        for (record, title) in [(false, "fixed-size variables"), (true, "record variables")] {
            let mut places = self.places.iter().filter(|place| place.record == record).peekable();
            if places.peek().is_some() {
                writeln!(out, "\n{title}:")?;
            }
            for place in places {
                self.text_of(out, place)?;
            }
        }
        writeln!(out, "}}")
    }

    fn text_of(&self, out: &mut impl Write, place: &Place) -> io::Result<()> {
        let (name, ty, dims) = self.variable(place);
        let dims = if dims.is_empty() { String::new() } else { format!("({})", dims.join(", ")) };
        let (name, dims) = (printable(name), printable(&dims));
        writeln!(out, "\t{ty:<6} {name}{dims}:")?;
        let of_record = |n: u64| match place.record {
            true => format!("    ({n}{} record)", ordinal(n)),
            false => String::new(),
        };
        let of_one = if place.record { "    (of one record)" } else { "" };
        let mut line = |what: &str, number: i128, note: &str| {
            writeln!(out, "\t       {what} = {number:>11}{note}")
        };
        // Without -r, the first record's place is told even when there are no records.
        let all = self.arguments.records && place.record;
        let first = (!all).then_some((place.begin, place.end()));
        let rest = all.then(|| self.offsets.records_of(place)).into_iter().flatten();
        for (n, (begin, end)) in (0u64..).zip(first.into_iter().chain(rest)) {
            line("start file offset", begin.into(), &of_record(n))?;
            line("end   file offset", end.into(), &of_record(n))?;
        }
        if self.arguments.size {
            line("size in bytes    ", place.bytes.into(), of_one)?;
        }
        if self.arguments.gap {
            line("gap from prev var", place.gap, "")?;
        }
        Ok(())
    }
}

/// The letters after an ordinal number. (ncoffsets writes "11st".)
fn ordinal(n: u64) -> &'static str {
    match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}
