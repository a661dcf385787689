//! Words for numbers.

use std::ffi::{CString, c_char, c_int};
use std::sync::Mutex;

use crate::codes;

/// The release that this library behaves as.
const VERSION: &std::ffi::CStr = c"1.12.3 of February 21, 2022 (Esker)";

pub(crate) unsafe fn strerror(err: c_int) -> *const c_char {
    codes::words(err).as_ptr()
}

pub(crate) unsafe fn strerrno(err: c_int) -> *const c_char {
    if let Some(name) = codes::name(err) {
        return name.as_ptr();
    }
    // As in PnetCDF, a number without a name gives a text that the next call may replace.
    static UNKNOWN: Mutex<Vec<CString>> = Mutex::new(Vec::new());
    let mut unknown = UNKNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = CString::new(format!("Unknown error code {err}")).unwrap_or_default();
    if unknown.len() >= 64 {
        unknown.remove(0);
    }
    unknown.push(text);
    unknown.last().map_or(c"".as_ptr(), |text| text.as_ptr())
}

pub(crate) unsafe fn inq_libvers() -> *const c_char {
    VERSION.as_ptr()
}
