//! Findings about the file's length: data that are cut off, and bytes after the data.

use esker_format::{Header, NumRecs, Variable};
use esker_store::File;

use super::extent::{Extent, has_chunks};
use super::finding::{Finding, Severity, counted};

/// Trailing bytes looked at to say whether they are all zero.
const LOOK: u64 = 1 << 20;

pub(super) fn check(
    header: &Header,
    extent: &Extent,
    file: &dyn File,
    findings: &mut Vec<Finding>,
) -> esker::Result<()> {
    numrecs(header, extent, findings);
    cut_fixed(header, extent, findings);
    if extent.whole < extent.records {
        findings.push(cut_record(header, extent));
    }
    if !extent.lacks_values() && extent.file_len < extent.end {
        let missing = extent.end - extent.file_len;
        let sentence = format!(
            "it ends at byte {}, before the last {} of padding; every value is there",
            extent.file_len,
            counted(missing, "byte")
        );
        let finding = Finding::new(Severity::Warning, "padding-cut", "the file", sentence);
        findings.push(finding.at(extent.file_len).value(missing));
    }
    if extent.trailing() > 0 {
        findings.push(trailing(header, extent, file)?);
    }
    Ok(())
}

fn numrecs(header: &Header, extent: &Extent, findings: &mut Vec<Finding>) {
    let note = |severity, code, sentence: String| {
        let finding = Finding::new(severity, code, "the number of records", sentence);
        finding.at(Header::NUMRECS_OFFSET)
    };
    let has_records = header.layout.record_begin.is_some();
    match header.numrecs {
        NumRecs::Streaming => {
            let sentence = format!(
                "it is STREAMING (the writer never said how many): the file's length has room \
                 for {}",
                counted(extent.records, "record")
            );
            findings.push(note(Severity::Note, "streaming", sentence).value(extent.records));
        }
        NumRecs::Count(count) if count > 0 && !has_records && !has_chunks(header) => {
            let sentence = format!("it is {count}, but no variable has records");
            findings.push(note(Severity::Warning, "numrecs-unused", sentence).value(count));
        }
        NumRecs::Count(_) => {}
    }
}

/// Records that were begun and that the file does not count, in the words that readers are told.
pub(super) fn uncounted(note: &str) -> Finding {
    let finding = Finding::new(Severity::Warning, "records-begun", "the number of records", note);
    finding.at(Header::NUMRECS_OFFSET)
}

fn quoted(var: &Variable) -> String {
    format!("variable {:?}", &*var.name)
}

/// Of many variables that are cut off the first is described, and the others counted.
fn cut_fixed(header: &Header, extent: &Extent, findings: &mut Vec<Finding>) {
    let vars = extent.cut.iter();
    let placed = vars.filter_map(|id| Some((header.schema.variable(*id)?, header.place(*id)?)));
    let first = placed.min_by_key(|(_, place)| place.begin);
    let Some((var, place)) = first else { return };
    let present = extent.file_len.saturating_sub(place.begin);
    let mut sentence = format!(
        "the file ends at byte {}, but its data are bytes {} to {}: {present} of its {} are there",
        extent.file_len,
        place.begin,
        place.begin + place.bytes,
        counted(place.bytes, "byte"),
    );
    let others = extent.cut.len() as u64 - 1;
    if others > 0 {
        let noun = if others == 1 { "variable lacks" } else { "variables lack" };
        sentence += &format!("; {others} more {noun} data");
    }
    let finding = Finding::new(Severity::Error, "data-cut", quoted(var), sentence);
    findings.push(finding.at(extent.file_len).value(extent.file_len));
}

fn cut_record(header: &Header, extent: &Extent) -> Finding {
    let (record, size) = (extent.whole, header.layout.record_size);
    let vars = header.vars().filter(|(_, var, _)| header.schema.is_record(var));
    // The variable that the cut goes through, or the first that is missing.
    let hit = vars
        .map(|(_, var, place)| {
            (var, place.begin.saturating_add(record.saturating_mul(size)), place)
        })
        .filter(|(_, begin, place)| begin.saturating_add(place.bytes) > extent.file_len)
        .min_by_key(|(_, begin, _)| *begin);
    let mut sentence = format!(
        "it is {}, but the file ends at byte {} and has {}",
        extent.records,
        extent.file_len,
        counted(extent.whole, "whole record"),
    );
    if let Some((var, begin, place)) = hit {
        let present = extent.file_len.saturating_sub(begin);
        let total = counted(place.bytes, "byte");
        sentence += &match present {
            0 => format!("; record {record} lacks all of {}", quoted(var)),
            _ => format!("; record {record} is cut in {}, after {present} of {total}", quoted(var)),
        };
    }
    sentence += &format!(" (a complete file has {} bytes)", extent.end);
    Finding::new(Severity::Error, "records-cut", "the number of records", sentence)
        .at(Header::NUMRECS_OFFSET)
        .value(extent.records)
}

fn trailing(header: &Header, extent: &Extent, file: &dyn File) -> esker::Result<Finding> {
    let n = extent.trailing();
    let mut sentence = format!(
        "{} after the end of the data",
        match n {
            1 => "1 byte lies".to_string(),
            _ => format!("{n} bytes lie"),
        }
    );
    let size = header.layout.record_size;
    let mut severity = Severity::Error;
    if header.numrecs == NumRecs::Streaming && size > 0 {
        // A stream that was cut off ends anywhere, and readers count whole records.
        severity = Severity::Warning;
        sentence += &format!(": a part of record {} ({size} bytes)", extent.records);
    } else if let Some(padded) = padded_lone_record(header, extent) {
        sentence += &format!(
            ", as if each record were padded to {padded} bytes; a single record variable is not \
             padded, so readers take the padding for values"
        );
    } else if let Some(whole) = n.checked_div(size) {
        // A writer that was killed before it counted them leaves records, or a part of one. Every
        // value that is counted is there.
        severity = Severity::Warning;
        let rest = n % size;
        sentence += &match (whole, rest) {
            (0, _) => format!(": a part of a record ({size} bytes)"),
            (_, 0) => format!(": as many as {}", more(whole)),
            _ => format!(": as many as {} and {} of another", more(whole), counted(rest, "byte")),
        };
    }
    if n <= LOOK {
        let mut bytes = vec![0; n as usize];
        let got = file.read_at(extent.reach, &mut bytes)?;
        if got == bytes.len() && bytes.iter().all(|b| *b == 0) {
            sentence += if n == 1 { "; it is zero" } else { "; all are zero" };
        }
    }
    Ok(Finding::new(severity, "trailing", "the file", sentence).at(extent.reach).value(n))
}

fn more(records: u64) -> String {
    counted(records, "more record")
}

/// The padded length of a record, when a single record variable of a small type looks as if
/// its writer had padded it (a known fault of old netCDF-Java and netCDF-C versions).
fn padded_lone_record(header: &Header, extent: &Extent) -> Option<u64> {
    let mut records = header.vars().filter(|(_, var, _)| header.schema.is_record(var));
    let (Some((_, _, place)), None) = (records.next(), records.next()) else { return None };
    let padding = place.vsize - place.bytes;
    let as_if = padding.checked_mul(extent.records)?;
    (padding > 0 && extent.records > 0 && extent.trailing() == as_if).then_some(place.vsize)
}
