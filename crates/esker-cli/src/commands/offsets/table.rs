//! The places as tables for a person.

use std::io::{self, Write};

use super::Shown;
use crate::terminal::Screen;
use crate::terminal::quantity::{bytes, plural};
use crate::terminal::table::{self, Side, Table};

impl Shown<'_> {
    /// A summary, and a table of each kind of variable.
    pub(super) fn table(&self, screen: &mut Screen) -> io::Result<()> {
        let (depth, offsets) = (screen.depth, self.offsets);
        let mut summary = format!(
            "{}: {}, {}; header {} bytes, data from byte {} to {}",
            self.arguments.file.display(),
            self.schema.version,
            bytes(offsets.file_len),
            offsets.header_len,
            offsets.extent,
            offsets.data_end,
        );
        match offsets.file_len.checked_sub(offsets.data_end) {
            Some(0) => {}
            Some(_) if self.heap.is_some() && offsets.record_begin.is_none() => {}
            Some(more) => summary += &format!(", {more} bytes after them"),
            None => {
                let missing = offsets.data_end - offsets.file_len;
                summary +=
                    &format!(" ({missing} bytes of which are missing: the file ends before)");
            }
        }
        writeln!(screen, "{}", table::printable(&summary))?;
        if let Some(begin) = offsets.record_begin {
            let (records, size) = (offsets.records, offsets.record_size);
            let records = plural(records as usize, "record");
            writeln!(screen, "{records} of {size} bytes each, from byte {begin}")?;
        }
        let (padding, unused) = (offsets.padding(), offsets.unused());
        writeln!(screen, "{padding} bytes of padding, {unused} bytes unused")?;
        for (record, title) in [(false, "fixed-size variables"), (true, "record variables")] {
            let mut table = Table::new([
                ("variable", Side::Left),
                ("type", Side::Left),
                ("record", Side::Right),
                ("begin", Side::Right),
                ("end", Side::Right),
                ("bytes", Side::Right),
                ("padding", Side::Right),
                ("gap", Side::Right),
                ("aligned", Side::Right),
            ]);
            for place in self.places.iter().filter(|place| place.record == record) {
                let (name, ty, _) = self.variable(place);
                table.row([
                    name.to_string(),
                    ty.to_string(),
                    if record { "0".to_string() } else { String::new() },
                    place.begin.to_string(),
                    place.end().to_string(),
                    place.bytes.to_string(),
                    place.padding.to_string(),
                    place.hole.to_string(),
                    place.alignment().to_string(),
                ]);
            }
            if !table.is_empty() {
                writeln!(screen, "\n{}", depth.bold(title))?;
                let width = screen.width;
                table.write(screen, depth, width)?;
            }
        }
        if self.arguments.records {
            self.records(screen)?;
        }
        match &self.heap {
            Some(heap) => {
                writeln!(screen)?;
                heap.table(screen)
            }
            None => Ok(()),
        }
    }

    /// Every record of every variable, one line each: for other programs to read, and as long
    /// as the file says, so it is never held in memory.
    fn records(&self, screen: &mut Screen) -> io::Result<()> {
        for place in self.places.iter().filter(|place| place.record) {
            let (name, ..) = self.variable(place);
            let title = format!("records of {}", table::printable(name));
            writeln!(screen, "\n{}", screen.depth.bold(title))?;
            for (n, (begin, end)) in (0u64..).zip(self.offsets.records_of(place)) {
                writeln!(screen, "  {n:>8}  {begin:>12}  {end:>12}")?;
            }
        }
        Ok(())
    }
}
