//! Findings about where the variables' data are: order, overlaps, alignment, gaps, sizes.

use esker_format::chunked::{end_of, heap_of};
use esker_format::{DataLayout, Decoded, Header, Placement, SchemaError, VarId, Variable};

use super::extent::{Extent, has_chunks};
use super::finding::{Finding, Severity, counted};

type Placed<'a> = (VarId, &'a Variable, &'a Placement);

pub(super) fn check(decoded: &Decoded, extent: &Extent, findings: &mut Vec<Finding>) {
    let header = &decoded.header;
    let places = Places { decoded, header, extent };
    let is_record = |placed: &Placed<'_>| header.schema.is_record(placed.1);
    let (record, fixed): (Vec<_>, Vec<_>) = header.vars().partition(is_record);
    for list in [&fixed, &record] {
        findings.extend(list.iter().filter_map(|placed| places.unaligned(placed)));
        places.order(list, findings);
    }
    let (fixed, record) = (by_begin(fixed), by_begin(record));
    places.overlaps(&fixed, places.padded(&fixed), findings);
    places.overlaps(&record, places.padded(&record), findings);
    places.record_section(&fixed, &record, findings);
    findings.extend(places.gaps(&fixed));
    findings.extend(places.too_large());
}

fn by_begin(mut list: Vec<Placed<'_>>) -> Vec<Placed<'_>> {
    list.sort_by_key(|(_, _, place)| place.begin);
    list
}

fn quoted(var: &Variable) -> String {
    format!("variable {:?}", &*var.name)
}

struct Places<'a> {
    decoded: &'a Decoded,
    header: &'a Header,
    extent: &'a Extent,
}

impl Places<'_> {
    fn finding(
        &self,
        severity: Severity,
        code: &'static str,
        placed: &Placed<'_>,
        sentence: String,
    ) -> Finding {
        let finding = Finding::new(severity, code, quoted(placed.1), sentence);
        let fields = self.decoded.fields.get(placed.0.0);
        match fields {
            Some(fields) => finding.at(fields.begin_at).value(placed.2.begin),
            None => finding.value(placed.2.begin),
        }
    }

    /// Whether the variables of this list are padded: all but a lone record variable.
    fn padded(&self, list: &[Placed<'_>]) -> bool {
        list.len() != 1 || !self.header.schema.is_record(list[0].1)
    }

    fn unaligned(&self, placed: &Placed<'_>) -> Option<Finding> {
        let begin = placed.2.begin;
        if begin.is_multiple_of(4) {
            return None;
        }
        let sentence = format!("its data begin at {begin}, which is not a multiple of 4");
        Some(self.finding(Severity::Warning, "unaligned", placed, sentence))
    }

    /// netCDF-C and PnetCDF refuse files whose variables do not lie in the order in which
    /// they are defined.
    fn order(&self, list: &[Placed<'_>], findings: &mut Vec<Finding>) {
        for pair in list.windows(2) {
            let (before, now) = (&pair[0], &pair[1]);
            if now.2.begin < before.2.begin {
                let sentence = format!(
                    "its data begin at {}, before those of {} at {}, which is defined before it",
                    now.2.begin,
                    quoted(before.1),
                    before.2.begin
                );
                findings.push(self.finding(Severity::Error, "order", now, sentence));
            }
        }
    }

    /// In the order of their begins, each variable must begin after the end of the one before.
    fn overlaps(&self, list: &[Placed<'_>], padded: bool, findings: &mut Vec<Finding>) {
        let Some(mut before) = list.first() else { return };
        let end = |p: &Placed<'_>| p.2.begin + if padded { p.2.vsize } else { p.2.bytes };
        for now in &list[1..] {
            let (begin, last) = (now.2.begin, before.2.begin + before.2.bytes);
            if begin < end(before) {
                let what = if begin < last { "data" } else { "padding" };
                let sentence = format!(
                    "its data begin at {begin}, inside the {what} of {} (bytes {} to {})",
                    quoted(before.1),
                    before.2.begin,
                    end(before)
                );
                findings.push(self.finding(Severity::Error, "overlap", now, sentence));
            }
            // A long variable may reach over several others.
            if end(now) > end(before) {
                before = now;
            }
        }
    }

    fn record_section(
        &self,
        fixed: &[Placed<'_>],
        record: &[Placed<'_>],
        findings: &mut Vec<Finding>,
    ) {
        let (Some(first), Some(last)) = (record.first(), record.last()) else { return };
        let fixed_last = fixed.iter().max_by_key(|(_, _, place)| place.begin + place.vsize);
        if let Some(before) = fixed_last {
            let end = before.2.begin + before.2.vsize;
            if first.2.begin < end {
                let sentence = format!(
                    "its records begin at {}, before the end of the fixed-size {} at {end}",
                    first.2.begin,
                    quoted(before.1)
                );
                findings.push(self.finding(Severity::Error, "overlap", first, sentence));
            }
        }
        let size = self.header.layout.record_size;
        let spread =
            last.2.begin - first.2.begin + if record.len() == 1 { size } else { last.2.vsize };
        if spread > size {
            let sentence = format!(
                "its data begin at {}, so that record 0 takes {spread} bytes from {} on, but a \
                 record has {size}: it reaches into record 1",
                last.2.begin, first.2.begin
            );
            findings.push(self.finding(Severity::Error, "record-gap", last, sentence));
        }
    }

    /// One note for all free space before and between the fixed-size variables and before the
    /// records: aligned files have some before every variable.
    fn gaps(&self, fixed: &[Placed<'_>]) -> Option<Finding> {
        let mut end = self.header.layout.header_len;
        let (mut count, mut total, mut largest) = (0u64, 0u64, (0u64, 0u64));
        let records = self.header.layout.record_begin.filter(|_| self.extent.records > 0);
        // Chunks lie before the variable that ends them.
        let last = end_of(&self.header.schema).filter(|_| has_chunks(self.header));
        let last_end = last.and_then(|id| self.header.place(id)).map(|p| p.begin + p.vsize);
        let others = fixed.iter().filter(|(id, _, _)| Some(*id) != last);
        let pieces = others.map(|(_, _, p)| (p.begin, p.begin + p.vsize));
        let heap =
            heap_of(&self.header.schema).filter(|begin| *begin > 0 && has_chunks(self.header));
        let heap = heap.map(|begin| (begin, records.or(last_end).unwrap_or(begin)));
        for (begin, piece_end) in pieces.chain(heap).chain(records.map(|begin| (begin, begin))) {
            let gap = begin.saturating_sub(end);
            if gap > 0 {
                count += 1;
                total += gap;
                largest = largest.max((gap, end));
            }
            end = end.max(piece_end);
        }
        let (size, at) = largest;
        let sentence = match count {
            0 => return None,
            1 => format!("{} at {at} are not used", counted(size, "byte")),
            _ => format!(
                "{total} bytes in {count} gaps are not used, the largest {} at {at}",
                counted(size, "byte")
            ),
        };
        let finding = Finding::new(Severity::Note, "gap", "the data section", sentence);
        Some(finding.at(at).value(total))
    }

    fn too_large(&self) -> Option<Finding> {
        let error = DataLayout::check_sizes(&self.header.schema).err()?;
        let SchemaError::TooLarge { var, value, version, max, .. } = &error else { return None };
        let sentence = format!(
            "its size is {value} bytes, but {version} allows {max} unless it is the last \
             variable of its kind (of the fixed-size ones, with no record variables)"
        );
        let id = self.header.schema.vars.position(var)?;
        let finding = Finding::new(Severity::Error, "large", format!("variable {var:?}"), sentence);
        let finding = finding.value(i128::try_from(*value).unwrap_or(i128::MAX));
        Some(match self.decoded.fields.get(id) {
            Some(fields) => finding.at(fields.vsize_at),
            None => finding,
        })
    }
}
