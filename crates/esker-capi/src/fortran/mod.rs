//! Fortran's interface: the functions `nfmpi_*_` and the procedures of the module `pnetcdf`.
//!
//! The conventions are gfortran's, which most compilers share for `nfmpi_*_`: references, lengths
//! of texts as `size_t` after all other arguments, an underscore after the name. The functions
//! are made from the table of C's; this module has what their bodies are made of.
//! [`module`] has the procedures of the Fortran 90 module, whose arrays come with descriptors.

mod descriptor;
mod graphs;
pub(crate) mod module;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null;

use esker_comm::mpi;

use crate::calls;
use crate::transfer::Offset;

pub(crate) use descriptor::Descriptor;
pub(crate) use graphs::{GraphOwner, give_ids, graph_ids};

/// Longer than any name or path that a function of C writes.
const LONGEST: usize = 8192;
/// NC_REQ_ALL and the like are negative: then there is no list.
fn len(count: c_int) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// MPI's handles. Where MPI is not to be had, a null handle: the function will say so itself.
pub(crate) fn to_comm(integer: c_int) -> usize {
    mpi::comm_from_fortran(integer).unwrap_or(0)
}

pub(crate) fn to_info(integer: c_int) -> usize {
    mpi::info_from_fortran(integer).unwrap_or(0)
}

pub(crate) fn to_datatype(integer: c_int) -> usize {
    mpi::datatype_from_fortran(integer).unwrap_or(0)
}

/// A text of Fortran without its trailing blanks, as C has it.
///
/// # Safety
///
/// There are `len` characters.
pub(crate) unsafe fn to_text(text: *const c_char, len: usize) -> CString {
    // SAFETY: the caller vouches for the characters.
    let bytes = unsafe { bytes(text, len) };
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    // A zero ends the text, as it would in C: programs write `name // char(0)`.
    let end = bytes[..end].iter().position(|byte| *byte == 0).unwrap_or(end);
    CString::new(&bytes[..end]).unwrap_or_default()
}

/// # Safety
///
/// There are `len` characters, or `text` is null.
unsafe fn bytes<'a>(text: *const c_char, len: usize) -> &'a [u8] {
    if text.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for the characters.
    unsafe { std::slice::from_raw_parts(text.cast(), len) }
}

/// Writes a text and blanks after it; what does not fit is cut off.
///
/// # Safety
///
/// There is room for `len` characters.
pub(crate) unsafe fn give_text(place: *mut c_char, len: usize, text: &[u8]) {
    if place.is_null() || len == 0 {
        return;
    }
    // SAFETY: the caller vouches for the room.
    let place = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), len) };
    let copied = text.len().min(len);
    place[..copied].copy_from_slice(&text[..copied]);
    place[copied..].fill(b' ');
}

/// A text that a function of C writes and Fortran gets with trailing blanks.
pub(crate) struct TextOut {
    place: *mut c_char,
    len: usize,
    text: Vec<u8>,
}

impl TextOut {
    /// For a place of `len` characters.
    pub(crate) fn new(place: *mut c_char, len: usize) -> TextOut {
        TextOut { place, len, text: vec![0; LONGEST] }
    }

    /// Where C writes.
    pub(crate) fn place(&mut self) -> *mut c_char {
        self.text.as_mut_ptr().cast()
    }

    /// What C wrote.
    pub(crate) fn text(&self) -> &[u8] {
        let end = self.text.iter().position(|byte| *byte == 0).unwrap_or(LONGEST);
        &self.text[..end]
    }

    /// Gives it to Fortran.
    ///
    /// # Safety
    ///
    /// The place is still there.
    pub(crate) unsafe fn give(&self) {
        // SAFETY: the caller vouches for the place.
        unsafe { give_text(self.place, self.len, self.text()) };
    }
}

/// # Safety
///
/// `place` is where an integer goes; the handle is of an MPI_Info.
pub(crate) unsafe fn give_info(place: *mut c_int, raw: usize) {
    // SAFETY: the caller vouches for both.
    unsafe {
        if let Ok(integer) = mpi::info_to_fortran(raw) {
            *place = integer;
        }
    }
}

/// Gives an identifier, which counts from one in Fortran; -1 stands for none.
///
/// # Safety
///
/// `place` is where an integer goes.
pub(crate) unsafe fn give_id(place: *mut c_int, id: c_int) {
    // SAFETY: the caller vouches for the place.
    unsafe { *place = if id < 0 { id } else { id + 1 } };
}

/// The dimensions of a new variable.
///
/// # Safety
///
/// There are `ndims` of them.
pub(crate) unsafe fn dimensions(ids: *const c_int, ndims: c_int) -> Vec<c_int> {
    // SAFETY: the caller vouches for the list.
    (0..len(ndims)).rev().map(|place| unsafe { *ids.add(place) }.wrapping_sub(1)).collect()
}

/// Places for the dimensions of a variable; `varid` is Fortran's.
pub(crate) fn rank_ids(ncid: c_int, varid: c_int) -> Vec<c_int> {
    vec![0; rank_of(ncid, varid).unwrap_or(0)]
}

/// # Safety
///
/// `place` has room for as many.
pub(crate) unsafe fn give_dimensions(place: *mut c_int, ids: &[c_int]) {
    for (at, id) in ids.iter().rev().enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { *place.add(at) = id + 1 };
    }
}

/// A copy of a list of integers; none for a negative count.
///
/// # Safety
///
/// There are `count` of them.
pub(crate) unsafe fn integers(list: *const c_int, count: c_int) -> Vec<c_int> {
    // SAFETY: the caller vouches for the list.
    (0..len(count)).map(|place| unsafe { *list.add(place) }).collect()
}

/// How many dimensions a variable has, or the code that says why there is no such variable.
/// `varid` is Fortran's.
pub(crate) fn rank_of(ncid: c_int, varid: c_int) -> Result<usize, c_int> {
    let mut rank = 0;
    // SAFETY: `rank` is a place for a number.
    match unsafe { calls::inq_varndims(ncid, varid.wrapping_sub(1), &mut rank) } {
        0 => Ok(len(rank)),
        code => Err(code),
    }
}

/// How many dimensions a decomposed variable has before those of its map.
pub(crate) fn outer_rank_of(ncid: c_int, varid: c_int) -> Result<usize, c_int> {
    crate::decom::outer_rank(ncid, varid.wrapping_sub(1))
}

/// Places for the lengths of a variable's chunks; `varid` is Fortran's.
pub(crate) fn rank_offsets(ncid: c_int, varid: c_int) -> Vec<Offset> {
    vec![0; rank_of(ncid, varid).unwrap_or(0)]
}

/// # Safety
///
/// `place` has room for as many.
pub(crate) unsafe fn give_lengths(place: *mut Offset, lengths: &[Offset]) {
    for (at, len) in lengths.iter().rev().enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { place.add(at).write_unaligned(*len) };
    }
}

/// Places for the dimensions of a decomposition map.
pub(crate) fn decom_ids(ncid: c_int, decomid: c_int) -> Vec<c_int> {
    let mut ndims = 0;
    let none = std::ptr::null_mut();
    let offsets = std::ptr::null_mut();
    // SAFETY: the places are null or there.
    let code = unsafe { calls::inq_decom(ncid, decomid, &mut ndims, none, none, offsets, offsets) };
    vec![0; if code == 0 { len(ndims) } else { 0 }]
}

/// A number for each dimension, in C's order, counted from zero if `base` is one.
///
/// # Safety
///
/// There are `rank` of them.
pub(crate) unsafe fn reversed(list: *const Offset, rank: usize, base: Offset) -> Vec<Offset> {
    // SAFETY: the caller vouches for the list; it may be the program's parameter, not aligned.
    let at = |place| unsafe { list.add(place).read_unaligned() };
    (0..rank).rev().map(|place| at(place).wrapping_sub(base)).collect()
}

/// Lists of numbers for each dimension, as C has them.
pub(crate) struct Lists {
    _numbers: Vec<Offset>,
    places: Vec<*const Offset>,
}

impl Lists {
    /// From `num` lists of `rank` numbers, one after another.
    ///
    /// # Safety
    ///
    /// They are there.
    pub(crate) unsafe fn new(lists: *const Offset, rank: usize, num: c_int, base: Offset) -> Lists {
        let mut numbers = Vec::with_capacity(len(num) * rank);
        for list in 0..len(num) {
            // SAFETY: the caller vouches for the lists.
            numbers.extend(unsafe { reversed(lists.wrapping_add(list * rank), rank, base) });
        }
        Lists::of(numbers, rank, len(num))
    }

    /// From numbers in C's order.
    pub(crate) fn of(numbers: Vec<Offset>, rank: usize, num: usize) -> Lists {
        let places = (0..num).map(|list| numbers.as_ptr().wrapping_add(list * rank)).collect();
        Lists { _numbers: numbers, places }
    }

    /// As C takes them.
    pub(crate) fn as_ptr(&self) -> *const *const Offset {
        if self.places.is_empty() { null() } else { self.places.as_ptr() }
    }
}

/// The words of a function of C.
fn words(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: the functions for words return texts that outlive the next call.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

/// What an error code means.
pub(crate) fn error_words(code: c_int) -> Vec<u8> {
    // SAFETY: any number is allowed.
    words(unsafe { calls::strerror(code) })
}

/// The name of an error code in C.
pub(crate) fn error_name(code: c_int) -> Vec<u8> {
    // SAFETY: any number is allowed.
    words(unsafe { calls::strerrno(code) })
}

/// The version of the library.
pub(crate) fn version() -> Vec<u8> {
    // SAFETY: it has no arguments.
    words(unsafe { calls::inq_libvers() })
}

/// An error's name with a prefix in place of C's `NC`.
pub(crate) fn error_name_with(code: c_int, prefix: &str) -> Vec<u8> {
    let name = error_name(code);
    match name.strip_prefix(b"NC") {
        Some(rest) => [prefix.as_bytes(), rest].concat(),
        None => name,
    }
}

/// The functions that have no counterpart in C, or return a text. A function of type
/// `character*80` gets the place for it, and its length, before its arguments.
pub mod by_hand {
    use super::*;

    /// Fortran's `nfmpi_strerror`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_strerror_(text: *mut c_char, len: usize, err: *const c_int) {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &error_words(*err)) };
    }

    /// Fortran's `nfmpi_strerrno`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_strerrno_(text: *mut c_char, len: usize, err: *const c_int) {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &error_name_with(*err, "NF")) };
    }

    /// Fortran's `nfmpi_inq_libvers`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_inq_libvers_(text: *mut c_char, len: usize) {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &version()) };
    }

    /// Fortran's `nfmpi_xstrerror`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_xstrerror_(
        err: *const c_int,
        text: *mut c_char,
        len: usize,
    ) -> c_int {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &error_words(*err)) };
        0
    }

    /// Fortran's `nfmpi_xstrerrno`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_xstrerrno_(
        err: *const c_int,
        text: *mut c_char,
        len: usize,
    ) -> c_int {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &error_name(*err)) };
        0
    }

    /// Fortran's `nfmpi_xinq_libvers`.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_xinq_libvers_(text: *mut c_char, len: usize) -> c_int {
        // SAFETY: the arguments are as Fortran says.
        unsafe { give_text(text, len, &version()) };
        0
    }

    /// Fortran's `nfmpi_issyserr`: a LOGICAL, true for codes of the system.
    ///
    /// # Safety
    ///
    /// As in Fortran.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn nfmpi_issyserr_(err: *const c_int) -> c_int {
        // SAFETY: the argument is as Fortran says.
        c_int::from(unsafe { *err } > 0)
    }
}

/// The functions that Fortran calls, made from the table.
pub mod exports {
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr::null;

    use super::*;
    use crate::exports::*;

    include!(concat!(env!("OUT_DIR"), "/nfmpi.rs"));
}
