//! Whether a file that we did not write can be written.

use std::path::Path;

use esker_format::{Header, Variable};

use crate::error::{Error, Result};

/// Fails when two variables share bytes: writing the one would change the other.
pub(crate) fn require(path: &Path, header: &Header) -> Result<()> {
    match overlap(header) {
        None => Ok(()),
        Some((first, second, offset)) => Err(Error::Overlap {
            path: path.to_path_buf(),
            first: first.name.to_string(),
            second: second.name.to_string(),
            offset,
        }),
    }
}

/// The first two variables that share a byte or will when there are more records, and the
/// byte.
pub fn overlap(header: &Header) -> Option<(&Variable, &Variable, u64)> {
    let is_record = |v: &Variable| header.schema.is_record(v);
    let mut fixed: Vec<_> = header.vars().filter(|(_, v, _)| !is_record(v)).collect();
    let mut record: Vec<_> = header.vars().filter(|(_, v, _)| is_record(v)).collect();
    fixed.sort_by_key(|(_, _, place)| place.begin);
    record.sort_by_key(|(_, _, place)| place.begin);
    for list in [&fixed, &record] {
        for pair in list.windows(2) {
            let (_, first, a) = pair[0];
            let (_, second, b) = pair[1];
            if a.begin + a.bytes > b.begin {
                return Some((first, second, b.begin));
            }
        }
    }
    let ((_, first, a), (_, last, z)) = (record.first()?, record.last()?);
    // A record must end before the next one begins, and nothing may lie where records grow,
    // even when there are none yet.
    if z.begin + z.bytes - a.begin > header.layout.record_size {
        return Some((last, first, a.begin + header.layout.record_size));
    }
    let within = fixed.iter().find(|(_, _, place)| place.begin + place.bytes > a.begin);
    within.map(|(_, var, place)| (*var, *first, place.begin.max(a.begin)))
}
