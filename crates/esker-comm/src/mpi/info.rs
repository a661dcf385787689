//! MPI_Info: hints that a program passes by name, and that it is told.

use std::ffi::{CString, c_int};

use super::abi::Handle;
use super::library::library;
use crate::Result;

/// Longer than any library's MPI_MAX_INFO_KEY and MPI_MAX_INFO_VAL.
const LONGEST: usize = 4096;
/// What every library takes as the length of a value: less than its MPI_MAX_INFO_VAL.
const VALUE: c_int = 255;

/// The keys and values of an MPI_Info; none for MPI_INFO_NULL.
///
/// # Safety
///
/// `raw` is a valid handle of an MPI_Info or MPI_INFO_NULL (upper bits of an int are ignored).
#[allow(unsafe_code)]
pub unsafe fn info_pairs(raw: usize) -> Result<Vec<(String, String)>> {
    let library = library()?;
    let info = Handle::from_raw(library.abi, raw);
    let raw = info.to_raw(library.abi);
    if raw == 0 || raw == library.constants.no_info.to_raw(library.abi) {
        return Ok(Vec::new());
    }
    let mut count: c_int = 0;
    // SAFETY: the caller vouches for the handle.
    library.call("MPI_Info_get_nkeys", |mpi| unsafe { mpi.info_get_nkeys(info, &mut count) })?;
    let mut pairs = Vec::new();
    for place in 0..count {
        let mut key = [0u8; LONGEST];
        let mut value = [0u8; LONGEST];
        let mut flag: c_int = 0;
        // SAFETY: both buffers are longer than what MPI may write, and the key ends with a zero.
        unsafe {
            library.call("MPI_Info_get_nthkey", |mpi| {
                mpi.info_get_nthkey(info, place, key.as_mut_ptr().cast())
            })?;
            let value = value.as_mut_ptr().cast();
            library.call("MPI_Info_get", |mpi| {
                mpi.info_get(info, key.as_ptr().cast(), VALUE, value, &mut flag)
            })?;
        }
        if flag != 0 {
            pairs.push((text(&key), text(&value)));
        }
    }
    Ok(pairs)
}

/// A new MPI_Info with these keys and values, as a handle widened to a pointer's size. Whoever
/// gets it frees it.
#[allow(unsafe_code)]
pub fn new_info(pairs: &[(String, String)]) -> Result<usize> {
    let library = library()?;
    let mut info = Handle::BLANK;
    // SAFETY: `info` outlives the call.
    library.call("MPI_Info_create", |mpi| unsafe { mpi.info_create(&mut info) })?;
    for (key, value) in pairs {
        let (Ok(key), Ok(value)) = (CString::new(&**key), CString::new(&**value)) else { continue };
        // SAFETY: the handle was just made; both texts end with a zero.
        library.call("MPI_Info_set", |mpi| unsafe {
            mpi.info_set(info, key.as_ptr(), value.as_ptr())
        })?;
    }
    Ok(info.to_raw(library.abi))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
