//! vard: elements named by an MPI datatype that lies over the file.
//!
//! The datatype's origin is the variable's first byte. Its runs of bytes are found, looked up in
//! the variables that they fall into (there may be several), and become lists of blocks.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use esker::{ExternalType, FileOrder, Selection};
use esker_comm::mpi::{Datatype, Element};

use crate::codes::*;
use crate::file::{File, State};
use crate::files;
use crate::request::{Buffer, Timing, Wish, memory_of};
use crate::transfer::{Call, Chosen};

/// What falls into one variable: its blocks, and where their elements are in the dense buffer.
struct Part {
    var: usize,
    starts: Vec<u64>,
    counts: Vec<u64>,
    places: Vec<Range<u64>>,
}

/// put and get of what a datatype names.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn call(
    ncid: c_int,
    varid: c_int,
    call: Call,
    filetype: usize,
    address: *mut c_void,
    buffer: Buffer,
) -> c_int {
    files::with(ncid, |file| {
        let checked = file.check_call(varid, call, None);
        let Buffer::Flexible(count, raw) = buffer else { return Err(NC_EINVAL) };
        // SAFETY: the handles are as C says.
        let types = unsafe { (Datatype::from_raw(filetype), Datatype::from_raw(raw)) };
        let (Ok(filetype), Ok(buftype)) = types else { return Err(NC_EMPI) };
        if checked.is_ok() && !call.collective && buftype.is_some() && count == 0 {
            return Ok(());
        }
        // SAFETY: the memory is as C says.
        unsafe {
            file.block_with(
                call,
                checked,
                |file| {
                    let nothing = (Vec::new(), (Vec::new(), Vec::new(), 1, 0));
                    let Some(filetype) = filetype else { return Ok(nothing) };
                    let external = file.variable(varid)?.ty;
                    let elements = checked_elements(external, &filetype)?;
                    if elements == 0 || (buftype.is_some() && count == 0) {
                        return Ok(nothing);
                    }
                    let (memory, count) = memory_of(external, elements, count, buftype)?;
                    let size = memory.size();
                    let dense = match (buftype, call.puts()) {
                        (Some(buftype), true) => {
                            buftype.pack(address, count).map_err(|e| of_mpi(&e))?
                        }
                        (None, true) => {
                            let bytes = elements as usize * size;
                            std::slice::from_raw_parts(address.cast::<u8>(), bytes).to_vec()
                        }
                        (_, false) => vec![0; elements as usize * size],
                    };
                    let parts = file.parts(varid, &filetype)?;
                    let mut requests = Vec::new();
                    for part in &parts {
                        let rank = file.shape(part.var as c_int)?.0.len();
                        let elements: u64 = part.places.iter().map(|p| p.end - p.start).sum();
                        let selection = match rank {
                            0 => Selection::slab(&[], &[]),
                            _ => Selection::list(rank, part.starts.clone(), part.counts.clone()),
                        };
                        let mut kept = vec![0; elements as usize * size];
                        if call.puts() {
                            gather(&dense, &part.places, size, &mut kept);
                        }
                        let wish = Wish {
                            var: part.var,
                            chosen: Chosen { selection, elements, map: None },
                            address: kept.as_mut_ptr().cast(),
                            buffer: Buffer::Typed(memory),
                        };
                        if let Some((mut request, _)) =
                            file.request(call.puts(), Timing::Now, wish)?
                        {
                            request.keep(kept);
                            requests.push(request);
                        }
                    }
                    Ok((requests, (dense, parts, size, count)))
                },
                |requests, (mut dense, parts, size, count)| {
                    if call.puts() {
                        return Ok(());
                    }
                    for (part, request) in parts.iter().zip(requests) {
                        scatter(request.kept(), &part.places, size, &mut dense);
                    }
                    match buftype {
                        _ if dense.is_empty() => Ok(()),
                        Some(buftype) => {
                            buftype.unpack(&dense, address, count).map_err(|e| of_mpi(&e))
                        }
                        None => {
                            let to = address.cast::<u8>();
                            std::ptr::copy_nonoverlapping(dense.as_ptr(), to, dense.len());
                            Ok(())
                        }
                    }
                },
            )
        }
    })
}

/// The elements of a file type, whose type must be the variable's.
fn checked_elements(external: ExternalType, filetype: &Datatype) -> Result<u64> {
    let map = filetype.map().map_err(|e| of_mpi(&e))?;
    if map.size == 0 {
        return Ok(0);
    }
    if map.mixed {
        return Err(NC_EMULTITYPES);
    }
    let element = map.element.ok_or(NC_EUNSPTETYPE)?;
    let own = match external {
        ExternalType::Byte => Element::I8,
        ExternalType::Char => Element::Char,
        ExternalType::Short => Element::I16,
        ExternalType::Int => Element::I32,
        ExternalType::Float => Element::F32,
        ExternalType::Double => Element::F64,
        ExternalType::UByte => Element::U8,
        ExternalType::UShort => Element::U16,
        ExternalType::UInt => Element::U32,
        ExternalType::Int64 => Element::I64,
        ExternalType::UInt64 => Element::U64,
    };
    if element != own {
        return Err(NC_ETYPE_MISMATCH);
    }
    Ok(map.elements)
}

fn gather(dense: &[u8], places: &[Range<u64>], size: usize, out: &mut [u8]) {
    let mut at = 0;
    for place in places {
        let (from, to) = (place.start as usize * size, place.end as usize * size);
        out[at..at + (to - from)].copy_from_slice(&dense[from..to]);
        at += to - from;
    }
}

fn scatter(source: &[u8], places: &[Range<u64>], size: usize, dense: &mut [u8]) {
    let mut at = 0;
    for place in places {
        let (from, to) = (place.start as usize * size, place.end as usize * size);
        dense[from..to].copy_from_slice(&source[at..at + (to - from)]);
        at += to - from;
    }
}

impl File {
    /// The variables that a file type falls into, and which elements of them.
    fn parts(&self, varid: c_int, filetype: &Datatype) -> Result<Vec<Part>> {
        let State::Data(dataset) = &self.state else { return Err(NC_EINDEFINE) };
        let header = dataset.header();
        let origin = header.place(esker::VarId(varid.max(0) as usize)).ok_or(NC_ENOTVAR)?.begin;
        let order = FileOrder::of(header);
        let mut parts: Vec<Part> = Vec::new();
        let mut element = 0;
        for block in filetype.blocks().map_err(|e| told(NC_ENOTSUPPORT, e))? {
            let mut at = origin.checked_add_signed(block.offset).ok_or(NC_EINVALCOORDS)?;
            let end = at.checked_add(block.len).ok_or(NC_EINVALCOORDS)?;
            while at < end {
                // The variable that has this byte, the record, and the bytes it has from here.
                let found = order.at(at).filter(|found| found.end() > at);
                let found = found.ok_or(NC_EINVALCOORDS)?;
                let (id, within) = (found.var, at - found.begin);
                let var = header.schema.variable(id).ok_or(NC_ENOTVAR)?;
                let record = header.schema.is_record(var).then_some(found.record);
                let size = var.ty.size();
                let len = (found.end() - at).min(end - at);
                let n = len / size;
                if n == 0 {
                    return Err(NC_ETYPE_MISMATCH);
                }
                let mut shape = header.schema.shape(var, 0);
                if record.is_some() {
                    shape.remove(0);
                }
                let part = match parts.iter_mut().position(|part| part.var == id.0) {
                    Some(place) => &mut parts[place],
                    None => {
                        let (starts, counts, places) = (Vec::new(), Vec::new(), Vec::new());
                        parts.push(Part { var: id.0, starts, counts, places });
                        let last = parts.len() - 1;
                        &mut parts[last]
                    }
                };
                blocks(&shape, within / size, n, &mut |start, count| {
                    if let Some(record) = record {
                        part.starts.push(record);
                        part.counts.push(1);
                    }
                    part.starts.extend(start);
                    part.counts.extend(count);
                });
                part.places.push(element..element + n);
                element += n;
                at += len;
            }
        }
        Ok(parts)
    }
}

/// Blocks that together are `n` elements from element `from` on, in order.
fn blocks(shape: &[u64], from: u64, n: u64, out: &mut dyn FnMut(&[u64], &[u64])) {
    let Some((_, inner)) = shape.split_first() else {
        return out(&[], &[]);
    };
    if inner.is_empty() {
        return out(&[from], &[n]);
    }
    let row: u64 = inner.iter().product::<u64>().max(1);
    let (mut at, end) = (from, from + n);
    while at < end {
        let (index, within) = (at / row, at % row);
        if within == 0 && end - at >= row {
            let rows = (end - at) / row;
            let (mut start, mut count) = (vec![0; shape.len()], inner.to_vec());
            start[0] = index;
            count.insert(0, rows);
            out(&start, &count);
            at += rows * row;
        } else {
            let len = (row - within).min(end - at);
            blocks(inner, within, len, &mut |start, count| {
                let (mut starts, mut counts) = (vec![index], vec![1]);
                starts.extend(start);
                counts.extend(count);
                out(&starts, &counts);
            });
            at += len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn a_run_becomes_blocks_in_its_order() {
        let shape = [4, 3, 5];
        for from in 0..60 {
            for n in 1..=60 - from {
                let mut elements = Vec::new();
                blocks(&shape, from, n, &mut |start, count| {
                    for i in 0..count[0] {
                        for j in 0..count[1] {
                            for k in 0..count[2] {
                                elements
                                    .push(((start[0] + i) * 3 + start[1] + j) * 5 + start[2] + k);
                            }
                        }
                    }
                });
                assert_eq!(elements, (from..from + n).collect::<Vec<_>>());
            }
        }
    }
}
