//! The procedures of the Fortran 90 module: optional arguments, arrays with descriptors.
//!
//! An argument that the program left out is a null pointer.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

use esker::MemoryType;

use super::descriptor::{Values, columns, offsets};
use super::exports::*;
use super::graphs::{inq_edgeids, inq_graph, inq_graphids, inq_vertex, inq_vertexids};
use super::*;
use crate::calls::{get_att_of, put_att_of};
use crate::codes::{NC_EINVAL, told};
use crate::exports::*;
use crate::graph_ids::Kind;
use crate::request::Buffer;
use crate::transfer::{self, Call, Operation, Slab};

/// The optional arguments of a put or get: start, count, stride, map.
pub(crate) type Indexes = [*const Descriptor; 4];

/// Writes to a place that the program may have left out.
unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: what is not null is a place for a value.
        unsafe { place.write(value) };
    }
}

/// So many of an MPI datatype, if the program named one.
unsafe fn flexible(
    count: *const Offset,
    datatype: *const c_int,
    memory: MemoryType,
) -> Option<Buffer> {
    if datatype.is_null() {
        return None;
    }
    // SAFETY: what is not null is there.
    let count = if count.is_null() { 1 } else { unsafe { *count } };
    // SAFETY: it is not null.
    let buffer = Buffer::Flexible(count, to_datatype(unsafe { *datatype }));
    // The array's own type without a count says nothing new: parts of arrays stay in place.
    Some(buffer).filter(|buffer| !buffer.is_all_of(memory))
}

/// As many numbers as there are dimensions; ones where the program gave too few.
fn fitted(mut list: Vec<Offset>, rank: usize) -> Vec<Offset> {
    list.resize(rank, 1);
    list
}

/// In C's order.
fn for_c(list: &[Offset], base: Offset) -> Vec<Offset> {
    list.iter().rev().map(|number| number.wrapping_sub(base)).collect()
}

/// Has `act` work on memory without gaps: the values themselves, or a copy of them.
unsafe fn on_dense(
    values: &Values,
    call: Call,
    act: impl FnOnce(Call, *mut c_void) -> c_int,
) -> c_int {
    if values.is_dense() {
        return act(call, values.base().cast());
    }
    if call.operation == Operation::IGet {
        let why = "a posted read into a part of an array with gaps, whose shape is not the count's";
        return told(NC_EINVAL, why);
    }
    // SAFETY: the array is the program's.
    let mut copy = unsafe { values.pack() };
    let code = act(call.copied(), copy.as_mut_ptr().cast());
    if !call.puts() {
        // SAFETY: the same array.
        unsafe { values.unpack(&copy) };
    }
    code
}

/// A rank that names no variable takes part in a collective call with nothing.
unsafe fn take_part(ncid: c_int, varid: c_int, call: Call, memory: MemoryType, req: *mut c_int) {
    let buffer = Buffer::Typed(memory);
    let nothing = std::ptr::null_mut();
    // SAFETY: the call fails before it looks at any pointer.
    unsafe {
        transfer::one(
            ncid,
            varid.wrapping_sub(1),
            call,
            Slab::Vara,
            [null(); 4],
            nothing,
            buffer,
            req,
        )
    };
}

/// `nf90mpi_put_var` and its kin.
pub(crate) unsafe fn var(
    call: Call,
    memory: MemoryType,
    ncid: *const c_int,
    varid: *const c_int,
    values: Values,
    indexes: Indexes,
    (bufcount, buftype): (*const Offset, *const c_int),
    req: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let (ncid, varid) = (*ncid, *varid);
        let rank = match rank_of(ncid, varid) {
            Ok(rank) => rank,
            Err(code) => {
                take_part(ncid, varid, call, memory, req);
                return code;
            }
        };
        let buffer = flexible(bufcount, buftype, memory);
        let given = indexes.map(|index| offsets(index).map(|list| fitted(list, rank)));
        let [start, count, stride, map] = given;
        let start = for_c(&start.unwrap_or_else(|| vec![1; rank]), 1);
        let send = |call, slab, lists: [&[Offset]; 4], address| {
            let places = lists.map(|list| if list.is_empty() { null() } else { list.as_ptr() });
            let buffer = buffer.unwrap_or(Buffer::Typed(memory));
            transfer::one(ncid, varid.wrapping_sub(1), call, slab, places, address, buffer, req)
        };
        if values.shape().is_empty() {
            return send(call, Slab::Var1, [&start, &[], &[], &[]], values.base().cast());
        }
        let count = count.unwrap_or_else(|| {
            fitted(values.shape().iter().map(|len| *len as Offset).collect(), rank)
        });
        let strides = for_c(stride.as_deref().unwrap_or(&vec![1; rank]), 0);
        let counts = for_c(&count, 0);
        if let Some(map) = map {
            let map = for_c(&map, 0);
            return on_dense(&values, call, |call, address| {
                send(call, Slab::Varm, [&start, &counts, &strides, &map], address)
            });
        }
        // A part of an array is read and written in place where that can be said.
        let in_place = !values.is_dense() && buffer.is_none();
        if let Some(map) = values.map_for(&count).filter(|_| in_place) {
            let map = for_c(&map, 0);
            let address = values.base().cast();
            return send(call, Slab::Varm, [&start, &counts, &strides, &map], address);
        }
        on_dense(&values, call, |call, address| match stride.is_some() {
            true => send(call, Slab::Vars, [&start, &counts, &strides, &[]], address),
            false => send(call, Slab::Vara, [&start, &counts, &[], &[]], address),
        })
    }
}

/// `nf90mpi_put_varn` and its kin of one value, at the first of the starts.
pub(crate) unsafe fn varn_one(
    call: Call,
    memory: MemoryType,
    ncid: *const c_int,
    varid: *const c_int,
    address: *mut c_void,
    start: *const Descriptor,
    req: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let (ncid, varid) = (*ncid, *varid);
        let rank = match rank_of(ncid, varid) {
            Ok(rank) => rank,
            Err(code) => {
                take_part(ncid, varid, call, memory, req);
                return code;
            }
        };
        let first = columns(start).and_then(|columns| columns.into_iter().next());
        let start = for_c(&fitted(first.unwrap_or_default(), rank), 1);
        let places = [start.as_ptr(), null(), null(), null()];
        let buffer = Buffer::Typed(memory);
        transfer::one(ncid, varid.wrapping_sub(1), call, Slab::Var1, places, address, buffer, req)
    }
}

/// `nf90mpi_put_varn` and its kin of arrays.
pub(crate) unsafe fn varn(
    call: Call,
    memory: MemoryType,
    ncid: *const c_int,
    varid: *const c_int,
    values: Values,
    num: *const c_int,
    (start, count): (*const Descriptor, *const Descriptor),
    req: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let (ncid, varid, num) = (*ncid, *varid, *num);
        let rank = match rank_of(ncid, varid) {
            Ok(rank) => rank,
            Err(code) => {
                take_part(ncid, varid, call, memory, req);
                return code;
            }
        };
        let lists = |array: *const Descriptor, base: Offset| {
            let mut columns = columns(array).unwrap_or_default();
            columns.resize(len(num), Vec::new());
            let numbers = columns.into_iter().flat_map(|list| for_c(&fitted(list, rank), base));
            Lists::of(numbers.collect(), rank, len(num))
        };
        let (starts, counts) = (lists(start, 1), lists(count, 0));
        on_dense(&values, call, |call, address| {
            let (starts, counts) = (starts.as_ptr(), counts.as_ptr());
            let buffer = Buffer::Typed(memory);
            transfer::list(
                ncid,
                varid.wrapping_sub(1),
                call,
                num,
                starts,
                counts,
                address,
                buffer,
                req,
            )
        })
    }
}

/// `nf90mpi_put_vard` and its kin.
pub(crate) unsafe fn vard(
    call: Call,
    ncid: *const c_int,
    varid: *const c_int,
    filetype: *const c_int,
    values: Values,
    bufcount: *const Offset,
    buftype: *const c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let filetype = to_datatype(*filetype);
        let buffer = Buffer::Flexible(*bufcount, to_datatype(*buftype));
        on_dense(&values, call, |call, address| {
            crate::filetype::call(*ncid, (*varid).wrapping_sub(1), call, filetype, address, buffer)
        })
    }
}

/// Whose attributes a procedure is about, by the number that Fortran gives.
#[derive(Clone, Copy)]
enum Owner {
    Var,
    Of(Kind),
}

/// `nf90mpi_put_att` of values; a text has its trailing blanks taken off before.
unsafe fn put(
    owner: Owner,
    (memory, xtype): (MemoryType, c_int),
    (ncid, id): (*const c_int, *const c_int),
    name: (*const c_char, usize),
    values: Values,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let name = to_text(name.0, name.1);
        let bytes = values.pack();
        let mut len = values.elements();
        if memory == MemoryType::Text {
            len = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        }
        let (name, bytes, len) = (name.as_ptr(), bytes.as_ptr().cast(), len as Offset);
        let (ncid, id) = (*ncid, (*id).wrapping_sub(1));
        match owner {
            Owner::Var => crate::attribute::put(ncid, id, name, xtype, len, bytes, Some(memory)),
            Owner::Of(kind) => {
                put_att_of((ncid, kind, id), name, xtype, (len, bytes), Some(memory))
            }
        }
    }
}

/// `nf90mpi_get_att` of values.
unsafe fn get(
    owner: Owner,
    memory: MemoryType,
    (ncid, id): (*const c_int, *const c_int),
    name: (*const c_char, usize),
    values: Values,
) -> c_int {
    // SAFETY: the arguments are as Fortran says. The attribute is read into memory of its own,
    // because it may be longer than the array.
    unsafe {
        let (ncid, id, name) = (*ncid, (*id).wrapping_sub(1), to_text(name.0, name.1));
        let (mut len, mut xtype): (Offset, c_int) = (0, 0);
        // A wrong name is told by the second call.
        let _ = match owner {
            Owner::Var => ncmpi_inq_attlen(ncid, id, name.as_ptr(), &mut len),
            Owner::Of(Kind::Graph) => {
                ncmpi_inq_graph_att(ncid, id, name.as_ptr(), &mut xtype, &mut len)
            }
            Owner::Of(_) => ncmpi_inq_vertex_att(ncid, id, name.as_ptr(), &mut xtype, &mut len),
        };
        let mut bytes = values.pack();
        if memory == MemoryType::Text {
            bytes.fill(b' ');
        }
        let room = bytes.len().max(usize::try_from(len).unwrap_or(0) * memory.size());
        bytes.resize(room, 0);
        let (name, place) = (name.as_ptr(), bytes.as_mut_ptr().cast());
        let code = match owner {
            Owner::Var => crate::attribute::get(ncid, id, name, place, Some(memory)),
            Owner::Of(kind) => get_att_of((ncid, kind, id), name, place, Some(memory)),
        };
        values.unpack(&bytes);
        code
    }
}

/// Procedures for attributes of one kind of owner.
macro_rules! attributes {
    ($put:ident, $get:ident, $owner:expr) => {
        pub(crate) unsafe fn $put(
            memory: MemoryType,
            xtype: c_int,
            ncid: *const c_int,
            id: *const c_int,
            name: (*const c_char, usize),
            values: Values,
        ) -> c_int {
            // SAFETY: the arguments are as Fortran says.
            unsafe { put($owner, (memory, xtype), (ncid, id), name, values) }
        }

        pub(crate) unsafe fn $get(
            memory: MemoryType,
            ncid: *const c_int,
            id: *const c_int,
            name: (*const c_char, usize),
            values: Values,
        ) -> c_int {
            // SAFETY: the arguments are as Fortran says.
            unsafe { get($owner, memory, (ncid, id), name, values) }
        }
    };
}

attributes!(put_att, get_att, Owner::Var);
attributes!(put_graph_att, get_graph_att, Owner::Of(Kind::Graph));
attributes!(put_vertex_att, get_vertex_att, Owner::Of(Kind::Vertex));

pub(crate) unsafe fn enddef(
    ncid: *mut c_int,
    h_minfree: *mut Offset,
    v_align: *mut Offset,
    v_minfree: *mut Offset,
    r_align: *mut Offset,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let places = [h_minfree, v_align, v_minfree, r_align];
        if places.iter().all(|place| place.is_null()) {
            return ncmpi_enddef(*ncid);
        }
        let or = |place: *mut Offset, other| if place.is_null() { other } else { *place };
        ncmpi__enddef(*ncid, or(h_minfree, 0), or(v_align, 4), or(v_minfree, 0), or(r_align, 4))
    }
}

pub(crate) unsafe fn inquire(
    ncid: *mut c_int,
    ndimensions: *mut c_int,
    nvariables: *mut c_int,
    nattributes: *mut c_int,
    unlimiteddimid: *mut c_int,
    formatnum: *mut c_int,
) -> c_int {
    let (mut dims, mut vars, mut atts, mut unlimited, mut format) = (0, 0, 0, 0, 0);
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let mut code = nfmpi_inq_(ncid, &mut dims, &mut vars, &mut atts, &mut unlimited);
        if code == 0 && !formatnum.is_null() {
            code = ncmpi_inq_format(*ncid, &mut format);
        }
        if code == 0 {
            give(ndimensions, dims);
            give(nvariables, vars);
            give(nattributes, atts);
            give(unlimiteddimid, unlimited);
            give(formatnum, format);
        }
        code
    }
}

pub(crate) unsafe fn inquire_dimension(
    ncid: *mut c_int,
    dimid: *mut c_int,
    name: *mut c_char,
    len: *mut Offset,
    name_len: usize,
) -> c_int {
    let (mut text, mut length) = (TextOut::new(name, name_len), 0);
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let code = ncmpi_inq_dim(*ncid, (*dimid).wrapping_sub(1), text.place(), &mut length);
        if code == 0 {
            text.give();
            give(len, length);
        }
        code
    }
}

pub(crate) unsafe fn inquire_variable(
    ncid: *mut c_int,
    varid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    ndims: *mut c_int,
    dimids: *const Descriptor,
    natts: *mut c_int,
    name_len: usize,
) -> c_int {
    let mut text = TextOut::new(name, name_len);
    let (mut ty, mut atts) = (0, 0);
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let rank = match rank_of(*ncid, *varid) {
            Ok(rank) => rank,
            Err(code) => return code,
        };
        let (mut ids, mut count) = (vec![0; rank], 0);
        let (id, dims) = ((*varid).wrapping_sub(1), ids.as_mut_ptr());
        let code = ncmpi_inq_var(*ncid, id, text.place(), &mut ty, &mut count, dims, &mut atts);
        if code != 0 {
            return code;
        }
        text.give();
        give(xtype, ty);
        give(ndims, count);
        give(natts, atts);
        if dimids.is_null() {
            return 0;
        }
        let places = Values::array(dimids, 1, size_of::<c_int>());
        if places.elements() < rank {
            return NC_EINVAL;
        }
        let bytes: Vec<u8> = ids.iter().rev().flat_map(|id| (id + 1).to_ne_bytes()).collect();
        places.unpack(&bytes);
        0
    }
}

pub(crate) unsafe fn inquire_attribute(
    ncid: *mut c_int,
    varid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    len: *mut Offset,
    attnum: *mut c_int,
    name_len: usize,
) -> c_int {
    let (mut ty, mut length, mut number) = (0, 0, 0);
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let name = to_text(name, name_len);
        let (ncid, varid) = (*ncid, (*varid).wrapping_sub(1));
        let mut code = ncmpi_inq_att(ncid, varid, name.as_ptr(), &mut ty, &mut length);
        if code == 0 && !attnum.is_null() {
            code = ncmpi_inq_attid(ncid, varid, name.as_ptr(), &mut number);
        }
        if code == 0 {
            give(xtype, ty);
            give(len, length);
            give(attnum, number + 1);
        }
        code
    }
}

pub(crate) unsafe fn def_var_scalar(
    ncid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    varid: *mut c_int,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { nfmpi_def_var_(ncid, name, xtype, &0, null(), varid, name_len) }
}

pub(crate) unsafe fn def_var_onedim(
    ncid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    dimids: *mut c_int,
    varid: *mut c_int,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { nfmpi_def_var_(ncid, name, xtype, &1, dimids, varid, name_len) }
}

pub(crate) unsafe fn def_var_manydims(
    ncid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    dimids: *const Descriptor,
    varid: *mut c_int,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let ids = Integers::of(dimids);
        let count = ids.list.len() as c_int;
        nfmpi_def_var_(ncid, name, xtype, &count, ids.list.as_ptr(), varid, name_len)
    }
}

/// A list of integers of the program, which may have gaps.
pub(super) struct Integers {
    values: Values,
    pub(super) list: Vec<c_int>,
}

impl Integers {
    pub(super) unsafe fn of(array: *const Descriptor) -> Integers {
        // SAFETY: the descriptor is of an array with one dimension.
        let values = unsafe { Values::array(array, 1, size_of::<c_int>()) };
        // SAFETY: the array is the program's.
        let bytes = unsafe { values.pack() };
        let integer = |b: &[u8]| c_int::from_ne_bytes([b[0], b[1], b[2], b[3]]);
        Integers { values, list: bytes.chunks_exact(4).map(integer).collect() }
    }

    /// As many places as a function of C may write.
    fn with_room(mut self, count: usize) -> Integers {
        if self.list.len() < count {
            self.list.resize(count, 0);
        }
        self
    }

    pub(super) unsafe fn give(&self) {
        let bytes: Vec<u8> = self.list.iter().flat_map(|number| number.to_ne_bytes()).collect();
        // SAFETY: the array is the program's, which lets it be written.
        unsafe { self.values.unpack(&bytes) };
    }
}

pub(crate) unsafe fn inq_files_opened(nfiles: *mut c_int, ncids: *const Descriptor) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let mut count = 0;
        let code = ncmpi_inq_files_opened(&mut count, std::ptr::null_mut());
        if code != 0 {
            return code;
        }
        let mut list = Integers::of(ncids).with_room(len(count));
        let code = ncmpi_inq_files_opened(nfiles, list.list.as_mut_ptr());
        list.give();
        code
    }
}

unsafe fn on_requests(
    num: *mut c_int,
    req: *const Descriptor,
    st: *const Descriptor,
    act: impl FnOnce(*const c_int, *mut c_int) -> c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let count = len(*num);
        let requests = Integers::of(req).with_room(count);
        let mut statuses = Integers::of(st).with_room(count);
        let code = act(requests.list.as_ptr(), statuses.list.as_mut_ptr());
        statuses.give();
        code
    }
}

pub(crate) unsafe fn wait(
    ncid: *mut c_int,
    num: *mut c_int,
    req: *const Descriptor,
    st: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { on_requests(num, req, st, |req, st| nfmpi_wait_(ncid, num, req, st)) }
}

pub(crate) unsafe fn wait_all(
    ncid: *mut c_int,
    num: *mut c_int,
    req: *const Descriptor,
    st: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { on_requests(num, req, st, |req, st| nfmpi_wait_all_(ncid, num, req, st)) }
}

pub(crate) unsafe fn cancel(
    ncid: *mut c_int,
    num: *mut c_int,
    req: *const Descriptor,
    st: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { on_requests(num, req, st, |req, st| nfmpi_cancel_(ncid, num, req, st)) }
}

/// `nf90mpi_put_decom` and its kin: the values are as many as the rank has.
pub(crate) unsafe fn decom(
    call: Call,
    memory: MemoryType,
    ncid: *const c_int,
    varid: *const c_int,
    values: Values,
    [start, count]: [*const Descriptor; 2],
    req: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let (ncid, varid) = (*ncid, *varid);
        let rank = outer_rank_of(ncid, varid).unwrap_or(0);
        let list = |array, base| offsets(array).map(|list| for_c(&fitted(list, rank), base));
        let (start, count) = (list(start, 1), list(count, 0));
        let place = |list: &Option<Vec<Offset>>| list.as_ref().map_or(null(), |list| list.as_ptr());
        let indexes = [place(&start), place(&count)];
        let buffer = Buffer::Typed(memory);
        on_dense(&values, call, |call, address| {
            crate::decom::blob(ncid, varid.wrapping_sub(1), call, indexes, address, buffer, req)
        })
    }
}

/// `nf90mpi_get_var_start`, into an array without gaps.
pub(crate) unsafe fn var_start(
    memory: MemoryType,
    ncid: *const c_int,
    varid: *const c_int,
    values: Values,
    token: *mut c_int,
    [start, count]: [*const Descriptor; 2],
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let (ncid, varid) = (*ncid, *varid);
        let rank = match rank_of(ncid, varid) {
            Ok(rank) => rank,
            Err(code) => return code,
        };
        if !values.is_dense() {
            return told(NC_EINVAL, "a read in the background into a part of an array with gaps");
        }
        let start = offsets(start).map_or_else(|| vec![1; rank], |list| fitted(list, rank));
        let whole = || values.shape().iter().map(|len| *len as Offset).collect();
        let count = fitted(offsets(count).unwrap_or_else(whole), rank);
        let (start, count) = (for_c(&start, 1), for_c(&count, 0));
        let (address, buffer) = (values.base().cast(), Buffer::Typed(memory));
        let indexes = [start.as_ptr(), count.as_ptr()];
        calls::begin_get(ncid, varid.wrapping_sub(1), indexes, address, buffer, token)
    }
}

pub(crate) unsafe fn var_set_chunk(
    ncid: *mut c_int,
    varid: *mut c_int,
    chunk: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let rank = match rank_of(*ncid, *varid) {
            Ok(rank) => rank,
            Err(code) => return code,
        };
        let chunk = offsets(chunk).unwrap_or_default();
        if chunk.len() < rank {
            return told(NC_EINVAL, format!("{} lengths for {rank} dimensions", chunk.len()));
        }
        nfmpi_var_set_chunk_(ncid, varid, chunk.as_ptr())
    }
}

pub(crate) unsafe fn var_get_chunk(
    ncid: *mut c_int,
    varid: *mut c_int,
    chunk: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let places = Values::array(chunk, 1, size_of::<Offset>());
        let mut list = rank_offsets(*ncid, *varid);
        if places.elements() < list.len() {
            return told(NC_EINVAL, format!("{} places for {}", places.elements(), list.len()));
        }
        let code = nfmpi_var_get_chunk_(ncid, varid, list.as_mut_ptr());
        if code == 0 {
            let mut bytes = places.pack();
            for (at, len) in list.iter().enumerate() {
                bytes[at * 8..at * 8 + 8].copy_from_slice(&len.to_ne_bytes());
            }
            places.unpack(&bytes);
        }
        code
    }
}

pub(crate) unsafe fn def_decom(
    ncid: *mut c_int,
    dimids: *const Descriptor,
    start: *const Descriptor,
    count: *const Descriptor,
    decomid: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let ids = Integers::of(dimids).list;
        let rank = ids.len();
        let starts = columns(start).unwrap_or_default();
        let counts = columns(count).unwrap_or_default();
        let num = starts.len().min(counts.len());
        let flat = |lists: &[Vec<Offset>]| -> Vec<Offset> {
            lists[..num].iter().flat_map(|list| fitted(list.clone(), rank)).collect()
        };
        let (starts, counts) = (flat(&starts), flat(&counts));
        let (rank, num) = (rank as c_int, num as c_int);
        let (starts, counts) = (starts.as_ptr(), counts.as_ptr());
        nfmpi_def_decom_(ncid, &rank, ids.as_ptr(), &num, starts, counts, decomid)
    }
}

pub(crate) unsafe fn def_decom_var(
    ncid: *mut c_int,
    name: *mut c_char,
    xtype: *mut c_int,
    dimids: *const Descriptor,
    decomid: *mut c_int,
    varid: *mut c_int,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let ids = Integers::of(dimids).list;
        let count = ids.len() as c_int;
        nfmpi_def_decom_var_(ncid, name, xtype, &count, ids.as_ptr(), decomid, varid, name_len)
    }
}

pub(crate) unsafe fn inq_decoms(
    ncid: *mut c_int,
    ndecoms: *mut c_int,
    decomids: *const Descriptor,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let mut count = 0;
        let code = ncmpi_inq_decoms(*ncid, &mut count, std::ptr::null_mut());
        if code != 0 {
            return code;
        }
        let mut list = Integers::of(decomids).with_room(len(count));
        let code = ncmpi_inq_decoms(*ncid, ndecoms, list.list.as_mut_ptr());
        list.give();
        code
    }
}

pub(crate) unsafe fn inq_decom(
    ncid: *mut c_int,
    decomid: *mut c_int,
    ndims: *mut c_int,
    dimids: *const Descriptor,
    nprocs: *mut c_int,
    nblocks: *mut Offset,
    nelems: *mut Offset,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let room = decom_ids(*ncid, *decomid).len();
        let mut list = Integers::of(dimids).with_room(room);
        let place = list.list.as_mut_ptr();
        let code = nfmpi_inq_decom_(ncid, decomid, ndims, place, nprocs, nblocks, nelems);
        list.give();
        code
    }
}

/// The procedures of the module, made from its table.
#[allow(non_snake_case)]
pub mod procedures {
    use std::ptr::null_mut;

    use super::*;

    include!(concat!(env!("OUT_DIR"), "/module.rs"));
}
