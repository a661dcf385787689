//! Puts and gets of a rank's own part of a decomposed variable, in the order of its map.

use std::ffi::{c_int, c_void};

use esker::{Selection, VarId};

use crate::codes::*;
use crate::file::{File, State, give};
use crate::files;
use crate::request::Buffer;
use crate::transfer::{Call, Chosen, Offset};

/// How many dimensions a decomposed variable has before those of its map.
pub(crate) fn outer_rank(ncid: c_int, varid: c_int) -> Result<usize> {
    let file = files::get(ncid)?;
    let file = files::lock(&file);
    file.variable(varid)?;
    let schema = file.stored_schema()?;
    let variable = schema.variable(VarId(varid as usize)).ok_or(NC_ENOTVAR)?;
    Ok(variable.dims.len().saturating_sub(1))
}

/// ncmpi_put_decom and its kin: of each chosen index of the dimensions before the map's, what this rank has. Without
/// start and count, of all of them.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn blob(
    ncid: c_int,
    varid: c_int,
    call: Call,
    indexes: [*const Offset; 2],
    address: *mut c_void,
    buffer: Buffer,
    req: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: `req` is null or a place for a number.
        unsafe { give(req, -1) };
        // SAFETY: the indexes are as C says.
        let chosen = file
            .check_call(varid, call, None)
            .and(file.check_buffer(call))
            .and_then(|()| unsafe { choose(file, varid, call, indexes) });
        // SAFETY: the memory is as C says.
        unsafe { file.go(varid, call, chosen, (address, buffer), req) }
    })
}

/// # Safety
///
/// Indexes that are not null have a number for each dimension before the map's.
unsafe fn choose(
    file: &File,
    varid: c_int,
    call: Call,
    [start, count]: [*const Offset; 2],
) -> Result<Chosen> {
    let State::Data(dataset) = &file.state else { return Err(NC_EINDEFINE) };
    let var = VarId(varid as usize);
    let own = dataset.blob_elements(var).map_err(|e| of(&e))?;
    let schema = file.stored_schema()?;
    let variable = schema.variable(var).ok_or(NC_ENOTVAR)?;
    let mut shape = schema.shape(variable, file.numrecs());
    shape.pop();
    let is_record = schema.is_record(variable);
    let list = |place: *const Offset, default: &[u64]| -> Result<Vec<u64>> {
        if place.is_null() {
            return Ok(default.to_vec());
        }
        // SAFETY: the caller vouches for a number for each dimension.
        let number = |d: usize| unsafe { place.add(d).read_unaligned() };
        (0..shape.len()).map(|d| u64::try_from(number(d)).map_err(|_| NC_EINVALCOORDS)).collect()
    };
    let count = match (start.is_null(), count.is_null()) {
        // A start alone is of one index.
        (false, true) => vec![1; shape.len()],
        _ => list(count, &shape)?,
    };
    let start = list(start, &vec![0; shape.len()])?;
    for (d, len) in shape.iter().enumerate() {
        let grows = d == 0 && is_record && call.puts();
        if !grows && start[d].checked_add(count[d]).is_none_or(|end| end > *len) {
            let (start, count) = (start[d], count[d]);
            let why =
                format!("start {start} and count {count} in dimension {d}, whose length is {len}");
            return Err(told(if start > *len { NC_EINVALCOORDS } else { NC_EEDGE }, why));
        }
    }
    let elements =
        count.iter().try_fold(own, |n, len| n.checked_mul(*len)).ok_or(NC_EINTOVERFLOW)?;
    let selection = match elements {
        0 => Selection::none(),
        _ => Selection::blob(&start, &count),
    };
    Ok(Chosen { selection, elements, map: None })
}
