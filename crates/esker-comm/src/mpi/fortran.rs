//! Handles of Fortran programs: integers that stand for MPI's objects.

use std::ffi::{c_int, c_void};

use super::abi::{Abi, Handle};
use super::library::{Library, library};
use crate::Result;

/// The functions that turn Fortran's integers into handles and back. MPICH has none, because its
/// handles are the integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversions {
    comm: FromInteger,
    info: FromInteger,
    datatype: FromInteger,
    info_back: ToInteger,
}

type FromInteger = unsafe extern "C" fn(c_int) -> *mut c_void;
type ToInteger = unsafe extern "C" fn(*mut c_void) -> c_int;

impl Conversions {
    /// Looks for them; `None` where handles are integers, or the library has no Fortran.
    #[allow(unsafe_code)]
    pub(super) fn load(abi: Abi, symbol: impl Fn(&str) -> Result<usize, String>) -> Option<Self> {
        if abi == Abi::Mpich {
            return None;
        }
        // MPI 5 renames them; a library may have either name.
        let either = |old: &str, new: &str| symbol(old).or_else(|_| symbol(new)).ok();
        let from = |name: &str| -> Option<FromInteger> {
            let address = either(&format!("{name}_f2c"), &format!("{name}_fromint"))?;
            // SAFETY: MPI's function of this name takes an int and returns a handle, which is a
            // pointer in this ABI.
            Some(unsafe { std::mem::transmute::<usize, FromInteger>(address) })
        };
        let back = either("MPI_Info_c2f", "MPI_Info_toint")?;
        Some(Conversions {
            comm: from("MPI_Comm")?,
            info: from("MPI_Info")?,
            datatype: from("MPI_Type")?,
            // SAFETY: as above, the other way round.
            info_back: unsafe { std::mem::transmute::<usize, ToInteger>(back) },
        })
    }
}

/// A handle for an integer of Fortran, widened to a pointer's size.
#[allow(unsafe_code)]
fn convert(integer: c_int, which: impl Fn(&Conversions) -> FromInteger) -> Result<usize> {
    let library: &Library = library()?;
    Ok(match &library.fortran {
        // SAFETY: MPI's functions take any integer, and give a null handle for one that is none.
        Some(conversions) => unsafe { which(conversions)(integer) as usize },
        None => integer as u32 as usize,
    })
}

/// The MPI_Comm that an integer of Fortran stands for, widened to a pointer's size.
pub fn comm_from_fortran(integer: c_int) -> Result<usize> {
    convert(integer, |conversions| conversions.comm)
}

/// The MPI_Info that an integer of Fortran stands for, widened to a pointer's size.
pub fn info_from_fortran(integer: c_int) -> Result<usize> {
    convert(integer, |conversions| conversions.info)
}

/// The MPI_Datatype that an integer of Fortran stands for, widened to a pointer's size.
pub fn datatype_from_fortran(integer: c_int) -> Result<usize> {
    convert(integer, |conversions| conversions.datatype)
}

/// The integer that stands for an MPI_Info in Fortran.
///
/// # Safety
///
/// `raw` is a valid handle of an MPI_Info or MPI_INFO_NULL (upper bits of an int are ignored).
#[allow(unsafe_code)]
pub unsafe fn info_to_fortran(raw: usize) -> Result<c_int> {
    let library = library()?;
    let raw = Handle::from_raw(library.abi, raw).to_raw(library.abi);
    Ok(match &library.fortran {
        // SAFETY: the caller vouches for the handle.
        Some(conversions) => unsafe { (conversions.info_back)(raw as *mut c_void) },
        None => raw as u32 as c_int,
    })
}
