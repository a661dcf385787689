//! Graphs of variables for Fortran, where identifiers count from one.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use super::module::Integers;
use super::{Descriptor, TextOut, len};
use crate::exports::*;

/// Whose identifiers are asked for; Fortran's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GraphOwner {
    File,
    Graph(c_int),
    Vertex(c_int),
}

/// What no identifier is.
const UNSET: c_int = c_int::MIN;

/// Places for all identifiers that a function of C may write; none where it will fail.
pub(crate) fn graph_ids(ncid: c_int, of: GraphOwner) -> Vec<c_int> {
    let mut counts = [0; 3];
    let [a, b, c] = &mut counts;
    // SAFETY: the places are there, or null, which asks for nothing.
    let code = unsafe {
        match of {
            GraphOwner::File => ncmpi_inq_graphs(ncid, a, b, c),
            GraphOwner::Graph(id) => {
                ncmpi_inq_graph(ncid, id.wrapping_sub(1), null_mut(), a, null_mut())
            }
            GraphOwner::Vertex(id) => {
                let (name, none) = (null_mut(), null_mut());
                ncmpi_inq_vertex(ncid, id.wrapping_sub(1), name, a, none, b, none, none)
            }
        }
    };
    let most = counts.iter().copied().max().unwrap_or(0);
    vec![UNSET; if code == 0 { len(most) } else { 0 }]
}

/// Gives the identifiers that C wrote, as Fortran counts.
///
/// # Safety
///
/// `place` has room for as many, or is null.
pub(crate) unsafe fn give_ids(place: *mut c_int, ids: &[c_int]) {
    for (at, id) in ids.iter().enumerate().filter(|(_, id)| **id != UNSET && !place.is_null()) {
        // SAFETY: the caller vouches for the room.
        unsafe { *place.add(at) = id.wrapping_add(1) };
    }
}

/// Gives them to an array of the module, if the program has named one.
unsafe fn give_list(array: *const Descriptor, ids: &[c_int]) {
    if array.is_null() {
        return;
    }
    // SAFETY: what is not null is an array with one dimension.
    let mut list = unsafe { Integers::of(array) };
    for (place, id) in list.list.iter_mut().zip(ids).filter(|(_, id)| **id != UNSET) {
        *place = id.wrapping_add(1);
    }
    // SAFETY: the array is the program's, which lets it be written.
    unsafe { list.give() };
}

/// Asks for all identifiers of one kind.
unsafe fn of_file(
    ncid: *mut c_int,
    array: *const Descriptor,
    ask: unsafe extern "C" fn(c_int, *mut c_int) -> c_int,
) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe {
        let mut ids = graph_ids(*ncid, GraphOwner::File);
        let code = ask(*ncid, ids.as_mut_ptr());
        if code == 0 {
            give_list(array, &ids);
        }
        code
    }
}

pub(crate) unsafe fn inq_graphids(ncid: *mut c_int, ids: *const Descriptor) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { of_file(ncid, ids, ncmpi_inq_graphids) }
}

pub(crate) unsafe fn inq_vertexids(ncid: *mut c_int, ids: *const Descriptor) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { of_file(ncid, ids, ncmpi_inq_vertexids) }
}

pub(crate) unsafe fn inq_edgeids(ncid: *mut c_int, ids: *const Descriptor) -> c_int {
    // SAFETY: the arguments are as Fortran says.
    unsafe { of_file(ncid, ids, ncmpi_inq_edgeids) }
}

pub(crate) unsafe fn inq_graph(
    ncid: *mut c_int,
    graphid: *mut c_int,
    name: *mut c_char,
    nvertices: *mut c_int,
    vertexids: *const Descriptor,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says; what was left out is null.
    unsafe {
        let mut text = TextOut::new(name, name_len);
        let mut ids = graph_ids(*ncid, GraphOwner::Graph(*graphid));
        let (id, place) = ((*graphid).wrapping_sub(1), ids.as_mut_ptr());
        let code = ncmpi_inq_graph(*ncid, id, text.place(), nvertices, place);
        if code == 0 {
            text.give();
            give_list(vertexids, &ids);
        }
        code
    }
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe fn inq_vertex(
    ncid: *mut c_int,
    vertexid: *mut c_int,
    name: *mut c_char,
    nvars: *mut c_int,
    varids: *const Descriptor,
    nedges: *mut c_int,
    edgeids: *const Descriptor,
    adj_vertexids: *const Descriptor,
    name_len: usize,
) -> c_int {
    // SAFETY: the arguments are as Fortran says; what was left out is null.
    unsafe {
        let mut text = TextOut::new(name, name_len);
        let mut lists = [(); 3].map(|()| graph_ids(*ncid, GraphOwner::Vertex(*vertexid)));
        let [vars, edges, neighbours] = &mut lists;
        let (edges, neighbours) = (edges.as_mut_ptr(), neighbours.as_mut_ptr());
        let id = (*vertexid).wrapping_sub(1);
        let (name, vars) = (text.place(), vars.as_mut_ptr());
        let code = ncmpi_inq_vertex(*ncid, id, name, nvars, vars, nedges, edges, neighbours);
        if code == 0 {
            text.give();
            for (array, ids) in [varids, edgeids, adj_vertexids].into_iter().zip(&lists) {
                give_list(array, ids);
            }
        }
        code
    }
}
