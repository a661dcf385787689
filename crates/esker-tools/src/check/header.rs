//! Findings from decoding the header: what stopped it, and what it tolerated.

use esker_format::{DecodeError, Fault};
use esker_store::File;

use super::finding::{Finding, Severity, Value, counted};

/// Bytes looked at to say how far a run of zeros goes.
const LOOK: usize = 1 << 20;

/// The finding for what stopped the decoder.
pub(super) fn fatal(error: &DecodeError, file: &dyn File, file_len: u64) -> esker::Result<Finding> {
    if file_len == 0 {
        let sentence = "it is empty: its creation was cut short, or it was never written";
        return Ok(Finding::new(Severity::Error, "empty", "the file", sentence).at(0).value(0u64));
    }
    let mut start = vec![0; LOOK.min(usize::try_from(file_len).unwrap_or(LOOK))];
    let n = file.read_at(0, &mut start)?;
    start.truncate(n);
    let zeros = start.iter().take_while(|b| **b == 0).count();
    if zeros >= 4 || zeros == start.len() {
        let sentence = if zeros as u64 == file_len {
            format!("all of its {} are zero: nothing was ever written to it", bytes(file_len))
        } else if zeros == LOOK {
            format!("its first {} at least are zero: its header was never written", bytes(zeros))
        } else {
            format!("its first {} are zero: its header was never written", bytes(zeros))
        };
        let finding = Finding::new(Severity::Error, "zeros", "the file", sentence);
        return Ok(finding.at(0).value(zeros as u64));
    }
    Ok(of(error, Severity::Error))
}

fn bytes(n: impl TryInto<u64>) -> String {
    counted(n.try_into().unwrap_or(u64::MAX), "byte")
}

/// The finding for something that the decoder tolerated.
pub(super) fn tolerated(error: &DecodeError) -> Finding {
    let severity = match &error.fault {
        // The specification says zero. netCDF-C does not look; PnetCDF's validator refuses.
        Fault::Padding { .. } => Severity::Error,
        Fault::Name { name, .. } if name.is_empty() => Severity::Error,
        // Files older than the rules for names have others, and readers take them; `vsize` is
        // redundant by the specification, and readers compute it.
        _ => Severity::Warning,
    };
    of(error, severity)
}

/// The finding for a variable that is not what it was when it was sealed.
pub(super) fn broken(error: &DecodeError) -> Finding {
    of(error, Severity::Error)
}

fn of(error: &DecodeError, severity: Severity) -> Finding {
    let (code, value) = describe(&error.fault);
    let mut finding = Finding::new(severity, code, &error.object, error.fault.to_string());
    finding.offset = Some(error.offset);
    finding.value = value;
    finding
}

/// The stable name of a fault, and the value that it is about.
fn describe(fault: &Fault) -> (&'static str, Option<Value>) {
    match fault {
        Fault::Truncated { file_len, .. } => ("header-cut", Some((*file_len).into())),
        Fault::NeedMore { at_least } => ("header-cut", Some((*at_least).into())),
        Fault::Magic(_) => ("magic", None),
        Fault::Seal(_) => ("seal", None),
        Fault::Tag { tag, .. } => ("tag", Some((*tag).into())),
        Fault::AbsentWithCount { count, .. } => ("absent-list", Some((*count).into())),
        Fault::Count { count, .. } => ("count", Some((*count).into())),
        Fault::Negative { value, .. } => ("negative", Some((*value).into())),
        Fault::Type { code, .. } => ("type", Some((*code).into())),
        Fault::NameNotUtf8 { byte, .. } => ("name-utf8", Some((*byte).into())),
        Fault::Name { name, .. } => ("name", Some(name.as_str().into())),
        Fault::DuplicateName { name, .. } => ("duplicate-name", Some(name.as_str().into())),
        Fault::Padding { byte, .. } => ("padding", Some((*byte).into())),
        Fault::DimId { id, .. } => ("dimension-id", Some((*id).into())),
        Fault::SecondUnlimited { first } => ("second-unlimited", Some((&**first).into())),
        Fault::UnlimitedNotFirst { dim, .. } => ("unlimited-place", Some((&**dim).into())),
        Fault::SizeOverflow => ("size-overflow", None),
        Fault::Begin { begin, .. } => ("begin", Some((*begin).into())),
        Fault::Vsize { stored, .. } => ("vsize", Some((*stored).into())),
        _ => ("header", None),
    }
}
