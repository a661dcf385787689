//! One transfer: which elements, and which memory.

use std::ffi::c_void;

use esker::{Dataset, MemoryLayout, MemoryType, Requests, Selection, VarId, values};
use esker_comm::mpi::{Datatype, Element};
use esker_format::ConversionRules;
use esker_format::runs::advance;

use crate::codes::*;
use crate::file::File;
use crate::transfer::Chosen;

/// The buffer of a call: of a type of C, or so many of an MPI datatype.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Buffer {
    Typed(MemoryType),
    Flexible(i64, usize),
}

/// NC_COUNT_IGNORE: as many of a predefined datatype as the selection has elements.
const COUNT_IGNORE: i64 = -1;

impl Buffer {
    /// Whether it is as many of the datatype of `memory` as the selection has elements.
    pub(crate) fn is_all_of(self, memory: MemoryType) -> bool {
        let Buffer::Flexible(COUNT_IGNORE, raw) = self else { return false };
        // SAFETY: the handle is as C says.
        let Ok(Some(datatype)) = (unsafe { Datatype::from_raw(raw) }) else { return false };
        datatype.map().is_ok_and(|map| {
            map.predefined && map.element.is_some_and(|element| memory_type(element) == memory)
        })
    }
}

/// What a request is made from.
pub(crate) struct Wish {
    pub(crate) var: usize,
    pub(crate) chosen: Chosen,
    pub(crate) address: *mut c_void,
    pub(crate) buffer: Buffer,
}

/// When the memory of a put is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// At once: a blocking call.
    Now,
    /// At the wait, unless it must be converted or is small: a posted call.
    Later,
    /// When it is posted: a buffered call.
    Copied,
}

/// A checked transfer.
pub(crate) struct Request {
    pub(crate) put: bool,
    pub(crate) var: usize,
    selection: Selection,
    /// Bytes in the file.
    pub(crate) bytes: u64,
    /// The program's memory, or the start of `kept`.
    address: *mut u8,
    len: usize,
    kept: Option<Vec<u8>>,
    memory: MemoryType,
    layout: MemoryLayout,
    unpack: Option<Unpack>,
    /// The part of the attached buffer that it has.
    pub(crate) part: Option<usize>,
}

// SAFETY: the pointers are the program's, which lends its memory until the request is done, and
// the file's lock lets one thread at a time use them.
unsafe impl Send for Request {}

/// Where what was read goes when it is of a derived type.
struct Unpack {
    datatype: Datatype,
    address: *mut c_void,
    count: u64,
}

impl Drop for Unpack {
    fn drop(&mut self) {
        self.datatype.free();
    }
}

impl File {
    /// Makes a request of a wish: `None` if it has no elements. The second is NC_ERANGE if
    /// values did not fit, where that is known already.
    ///
    /// # Safety
    ///
    /// The memory is as the call in C says, until the request is done.
    pub(crate) unsafe fn request(
        &self,
        put: bool,
        timing: Timing,
        wish: Wish,
    ) -> Result<Option<(Request, Code)>> {
        let Wish { var, chosen: Chosen { selection, elements, map }, address, buffer } = wish;
        let map = map.as_ref().map(|(counts, imap)| (&counts[..], &imap[..]));
        let variable = self.schema()?.variable(VarId(var)).ok_or(NC_ENOTVAR)?;
        let external = variable.ty;
        let (memory, derived) = match buffer {
            Buffer::Typed(memory) => (memory, None),
            Buffer::Flexible(count, raw) => {
                // SAFETY: the handle is as C says.
                match unsafe { Datatype::from_raw(raw) }.map_err(|e| of_mpi(&e))? {
                    None => (external.natural(), None),
                    Some(datatype) => flexible(external, elements, count, datatype)?,
                }
            }
        };
        let rules = ConversionRules::of(self.version);
        rules.check(external, memory).map_err(|e| told(NC_ECHAR, e))?;
        if elements == 0 {
            return Ok(None);
        }
        if address.is_null() {
            return Err(told(NC_EINVAL, "the buffer is NULL"));
        }
        let size = memory.size();
        let mut code = 0;
        let mut unpack = None;
        let mut kept = None;
        if let Some((datatype, count)) = derived {
            kept = Some(if put {
                // SAFETY: the buffer is as C says.
                unsafe { datatype.pack(address, count) }.map_err(|e| of_mpi(&e))?
            } else {
                let datatype = datatype.duplicate().map_err(|e| of_mpi(&e))?;
                unpack = Some(Unpack { datatype, address, count });
                vec![0; elements as usize * size]
            });
        }
        let (mut start, mut len, mut layout) =
            (address.cast::<u8>(), elements as usize * size, MemoryLayout::dense());
        if let Some((counts, imap)) = map {
            let (low, high) = reach(counts, imap);
            let strides: Vec<isize> = imap.iter().map(|step| *step as isize).collect();
            layout = MemoryLayout::strided(-low as usize, counts, &strides);
            len = (high - low + 1) as usize * size;
            start = start.wrapping_offset(low as isize * size as isize);
            if let Some(kept) = &mut kept {
                // An imap over packed elements cannot reach beyond them.
                if low < 0 || len > kept.len() {
                    kept.resize(len, 0);
                }
            }
        }
        let same = rules.is_copy(external, memory);
        // One element always: a caller may well give a copy of it.
        let small = elements == 1 || elements * external.size() <= self.copied;
        if put && timing != Timing::Now && (timing == Timing::Copied || small || !same) {
            let source = match &kept {
                Some(kept) => &kept[..],
                // SAFETY: the program's memory has these bytes.
                None => unsafe { std::slice::from_raw_parts(start, len) },
            };
            let dense = match map {
                Some((counts, imap)) => gather(source, size, counts, imap),
                None => source.to_vec(),
            };
            let mut bytes = dense;
            if !same {
                let dense =
                    std::mem::replace(&mut bytes, vec![0; (elements * external.size()) as usize]);
                let fill = values::fill_bytes(variable);
                let report = values::encode(memory, &dense, external, &mut bytes, &fill, rules)
                    .map_err(|e| told(NC_ECHAR, e))?;
                if !report.all_fit() {
                    code = told(NC_ERANGE, format!("variable \"{}\": {report}", variable.name));
                }
                values::swap_in_place(&mut bytes, external.size() as usize);
            }
            let bytes_len = bytes.len();
            let request = Request {
                put,
                var,
                selection,
                bytes: elements * external.size(),
                address: std::ptr::null_mut(),
                len: bytes_len,
                kept: Some(bytes),
                memory: external.natural(),
                layout: MemoryLayout::dense(),
                unpack: None,
                part: None,
            };
            return Ok(Some((request, code)));
        }
        let bytes = elements * external.size();
        let request = Request {
            put,
            var,
            selection,
            bytes,
            address: start,
            len,
            kept,
            memory,
            layout,
            unpack,
            part: None,
        };
        Ok(Some((request, code)))
    }

    /// Moves requests, all together, and gives the code of each. Collective if so said.
    ///
    /// # Safety
    ///
    /// The requests' memory is still there.
    pub(crate) unsafe fn carry(
        &mut self,
        requests: &mut [Request],
        collective: bool,
    ) -> Result<Vec<Code>> {
        let comm = self.comm.clone();
        let (mut put_size, mut get_size) = (0, 0);
        let dataset = self.dataset()?;
        let mut codes = vec![0; requests.len()];
        let mut queue = Requests::new();
        let mut places = Vec::with_capacity(requests.len());
        for (place, request) in requests.iter_mut().enumerate() {
            if request.put {
                put_size += request.bytes
            } else {
                get_size += request.bytes
            }
            // SAFETY: the caller vouches for the memory.
            match unsafe { request.queue(dataset, &mut queue) } {
                Ok(id) => places.push((id, place)),
                Err(error) => codes[place] = of(&error),
            }
        }
        let outcome = if collective {
            dataset.wait_all_each(&mut queue, None)
        } else if places.is_empty() {
            Ok(Vec::new())
        } else {
            dataset.wait_each(&mut queue, None)
        };
        drop(queue);
        match outcome {
            Ok(outcomes) => {
                // Both are in the order of numbers.
                let failed = outcomes.into_iter().filter_map(|(id, o)| Some((id, o.err()?)));
                for (id, error) in failed {
                    if let Ok(found) = places.binary_search_by_key(&id, |(id, _)| *id) {
                        codes[places[found].1] = of(&error);
                    }
                }
            }
            Err(error) => {
                let code = if collective { together_code(&*comm, &error) } else { of(&error) };
                if codes.is_empty() {
                    return Err(code);
                }
                codes.iter_mut().filter(|c| **c == 0).for_each(|c| *c = code);
            }
        }
        for (request, code) in requests.iter().zip(&mut codes) {
            if let (Some(unpack), Some(kept)) = (&request.unpack, &request.kept)
                && (*code == 0 || *code == NC_ERANGE)
            {
                // SAFETY: the buffer is as the call in C said.
                let unpacked =
                    unsafe { unpack.datatype.unpack(kept, unpack.address, unpack.count) };
                if let Err(error) = unpacked {
                    *code = of_mpi(&error);
                }
            }
        }
        self.put_size += put_size;
        self.get_size += get_size;
        Ok(codes)
    }
}

fn together_code(comm: &dyn esker_comm::Communicator, error: &esker::Error) -> Code {
    crate::file::together(comm, error)
}

/// The type in memory of a call by file type, whose buffer must have as many elements, and how
/// many of its datatype there are.
pub(crate) fn memory_of(
    external: esker::ExternalType,
    elements: u64,
    count: i64,
    buftype: Option<Datatype>,
) -> Result<(MemoryType, u64)> {
    match buftype {
        None => Ok((external.natural(), elements)),
        Some(datatype) => {
            let (memory, derived) = flexible(external, elements, count, datatype)?;
            Ok((memory, derived.map_or(elements, |(_, count)| count)))
        }
    }
}

impl Request {
    /// Gives it memory of its own in place of the program's.
    pub(crate) fn keep(&mut self, memory: Vec<u8>) {
        self.kept = Some(memory);
    }

    /// Gives values that were read in the background to where the program wants them.
    ///
    /// # Safety
    ///
    /// The program's memory is still there.
    pub(crate) unsafe fn receive(
        &mut self,
        values: &esker::Values,
        version: esker::Version,
    ) -> Result<()> {
        let memory = match &mut self.kept {
            Some(kept) => &mut kept[..],
            // SAFETY: the caller vouches for the program's memory.
            None => unsafe { std::slice::from_raw_parts_mut(self.address, self.len) },
        };
        let (external, bytes) = (values.ty(), values.external_bytes());
        let rules = ConversionRules::of(version);
        let report = values::decode(external, &bytes, self.memory, memory, rules);
        let report = report.map_err(|e| told(NC_ECHAR, e))?;
        if let (Some(unpack), Some(kept)) = (&self.unpack, &self.kept) {
            // SAFETY: the buffer is as the call in C said.
            let unpacked = unsafe { unpack.datatype.unpack(kept, unpack.address, unpack.count) };
            unpacked.map_err(|e| of_mpi(&e))?;
        }
        if report.all_fit() { Ok(()) } else { Err(told(NC_ERANGE, report)) }
    }

    /// The elements that it is of.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Its own memory, if it has any.
    pub(crate) fn kept(&self) -> &[u8] {
        self.kept.as_deref().unwrap_or_default()
    }

    /// Queues it with the library.
    ///
    /// # Safety
    ///
    /// The memory is there until the queue is gone, and nobody else uses it.
    unsafe fn queue<'b>(
        &'b mut self,
        dataset: &Dataset,
        queue: &mut Requests<'b>,
    ) -> esker::Result<esker::RequestId> {
        let (var, layout) = (VarId(self.var), self.layout.clone());
        let memory = match &mut self.kept {
            Some(kept) => &mut kept[..],
            // SAFETY: the caller vouches for the program's memory.
            None => unsafe { std::slice::from_raw_parts_mut(self.address, self.len) },
        };
        if self.put {
            dataset.iput_bytes(queue, var, &self.selection, (memory, self.memory), layout)
        } else {
            dataset.iget_bytes(queue, var, &self.selection, (memory, self.memory), layout)
        }
    }
}

/// The element type of a derived type, and the type if it must be packed.
type Decoded = (MemoryType, Option<(Datatype, u64)>);

fn flexible(
    external: esker::ExternalType,
    elements: u64,
    count: i64,
    datatype: Datatype,
) -> Result<Decoded> {
    let map = datatype.map().map_err(|e| of_mpi(&e))?;
    if count == COUNT_IGNORE && !map.predefined {
        return Err(told(NC_EINVAL, "NC_COUNT_IGNORE is for MPI's predefined datatypes"));
    }
    if map.mixed {
        return Err(NC_EMULTITYPES);
    }
    let element = map.element.ok_or(NC_EUNSPTETYPE)?;
    let count = match count {
        COUNT_IGNORE => elements,
        count => u64::try_from(count)
            .map_err(|_| told(NC_EIOMISMATCH, format!("bufcount is {count}")))?,
    };
    if map.elements.checked_mul(count) != Some(elements) {
        let given = map.elements.saturating_mul(count);
        return Err(told(
            NC_EIOMISMATCH,
            format!("the selection has {elements} elements, the buffer {given}"),
        ));
    }
    let memory = match element {
        Element::Byte if external.size() == 1 => external.natural(),
        element => memory_type(element),
    };
    Ok((memory, (!map.predefined).then_some((datatype, count))))
}

/// How the elements of a datatype lie in memory.
fn memory_type(element: Element) -> MemoryType {
    match element {
        Element::Char => MemoryType::Text,
        Element::I8 => MemoryType::I8,
        Element::U8 | Element::Byte => MemoryType::U8,
        Element::I16 => MemoryType::I16,
        Element::U16 => MemoryType::U16,
        Element::I32 => MemoryType::I32,
        Element::U32 => MemoryType::U32,
        Element::I64 => MemoryType::I64,
        Element::U64 => MemoryType::U64,
        Element::F32 => MemoryType::F32,
        Element::F64 => MemoryType::F64,
    }
}

/// The lowest and highest element that a map reaches.
fn reach(counts: &[u64], imap: &[i64]) -> (i64, i64) {
    let ends = counts.iter().zip(imap).map(|(count, step)| (*count as i64 - 1) * step);
    ends.fold((0, 0), |(low, high), end| (low + end.min(0), high + end.max(0)))
}

/// The elements of mapped memory, one after the other. `source` begins at the lowest.
fn gather(source: &[u8], size: usize, counts: &[u64], imap: &[i64]) -> Vec<u8> {
    let (low, _) = reach(counts, imap);
    let total: u64 = counts.iter().product();
    let mut out = Vec::with_capacity(total as usize * size);
    let mut index = vec![0u64; counts.len()];
    for _ in 0..total {
        let place: i64 = index.iter().zip(imap).map(|(i, step)| *i as i64 * step).sum();
        let at = (place - low) as usize * size;
        out.extend_from_slice(source.get(at..at + size).unwrap_or(&[0; 8][..size]));
        advance(&mut index, counts);
    }
    out
}
