//! Words for numbers.

use std::ffi::{CString, c_char, c_int};
use std::sync::Mutex;

use crate::codes;

/// The release that this library behaves as, and what it is.
const VERSION: &str = concat!("1.15.0 of Esker ", env!("CARGO_PKG_VERSION"), "\0");

pub(crate) unsafe fn strerror(err: c_int) -> *const c_char {
    match codes::words(err) {
        Some(words) => words.as_ptr(),
        None => kept(format!("Unknown Error: Unrecognized error code {err:5}\n")),
    }
}

pub(crate) unsafe fn strerrno(err: c_int) -> *const c_char {
    if let Some(name) = codes::name(err) {
        return name.as_ptr();
    }
    match codes::words(err).filter(|_| err > 0) {
        Some(words) => kept(format!("System error code {err} ({})", words.to_string_lossy())),
        None => kept(format!("Unknown code {err}")),
    }
}

/// A text that later calls may replace, as in PnetCDF, but not the next few.
fn kept(text: String) -> *const c_char {
    static KEPT: Mutex<Vec<CString>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.len() >= 64 {
        kept.remove(0);
    }
    kept.push(CString::new(text).unwrap_or_default());
    kept.last().map_or(c"".as_ptr(), |text| text.as_ptr())
}

pub(crate) unsafe fn inq_libvers() -> *const c_char {
    VERSION.as_ptr().cast()
}
