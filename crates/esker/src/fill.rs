//! Fill values: what elements hold that nobody wrote.

use esker_format::{Header, VarId, values};
use esker_store::File;

use crate::error::Result;

/// Bytes written at a time.
const BLOCK: u64 = 1 << 20;

/// Writes `fill` over and over from `offset` on, `len` bytes in all.
pub(crate) fn fill_range(file: &dyn File, offset: u64, len: u64, fill: &[u8]) -> Result<()> {
    let whole = BLOCK.min(len).next_multiple_of(fill.len().max(1) as u64);
    let block: Vec<u8> = fill.iter().copied().cycle().take(whole as usize).collect();
    let mut done = 0;
    while done < len {
        let n = whole.min(len - done);
        file.write_at(offset + done, &block[..n as usize])?;
        done += n;
    }
    Ok(())
}

/// Fills records `from..to` of every record variable for which `wanted` says so.
pub(crate) fn fill_records(
    file: &dyn File,
    header: &Header,
    from: u64,
    to: u64,
    wanted: impl Fn(VarId) -> bool,
) -> Result<()> {
    let (Some(begin), size) = (header.layout.record_begin, header.layout.record_size) else {
        return Ok(());
    };
    let records = || header.vars().filter(|(_, var, _)| header.schema.is_record(var));
    // When every byte of a record is filled, many records go out in one write.
    if size > 0 && size <= BLOCK && records().all(|(id, _, _)| wanted(id)) {
        let mut record = vec![0; size as usize];
        for (_, var, place) in records() {
            let start = (place.begin - begin) as usize;
            let end = (start + place.vsize as usize).min(record.len());
            let fill = values::fill_bytes(var);
            let target = record[start..end].chunks_mut(fill.len());
            target.for_each(|chunk| chunk.copy_from_slice(&fill[..chunk.len()]));
        }
        return fill_range(file, begin + from * size, (to - from) * size, &record);
    }
    fill_each_record(file, header, from, to, wanted)
}

/// The same variable by variable, of a header that need not have all of them.
pub(crate) fn fill_each_record(
    file: &dyn File,
    header: &Header,
    from: u64,
    to: u64,
    wanted: impl Fn(VarId) -> bool,
) -> Result<()> {
    let size = header.layout.record_size;
    let records = || header.vars().filter(|(_, var, _)| header.schema.is_record(var));
    for record in from..to {
        for (_, var, place) in records().filter(|(id, _, _)| wanted(*id)) {
            let len = place.vsize.min(size);
            fill_range(file, place.begin + record * size, len, &values::fill_bytes(var))?;
        }
    }
    Ok(())
}
