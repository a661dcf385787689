//! Transactions of containers, and readers that wait for versions.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::time::Duration;

use esker::BeginOptions;
use esker_store::LocalStore;

use super::lifecycle::{
    How, NC_WRITE, end_independent, number, open_file, path_of, without_prefix,
};
use crate::codes::*;
use crate::file::{File, State, give, together};
use crate::files;
use crate::transfer::Offset;

/// A text that may be left out.
///
/// # Safety
///
/// As in C.
unsafe fn words_of<'a>(text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: the caller vouches for the text.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| NC_EINVAL)
}

/// A number of a version; `least` and more.
fn version_number(number: Offset, least: u64) -> Result<u64> {
    match u64::try_from(number) {
        Ok(number) if number >= least => Ok(number),
        _ => Err(told(NC_EINVAL, format!("{number} is no number of a version"))),
    }
}

pub(crate) unsafe fn begin_transaction(
    comm: usize,
    path: *const c_char,
    info: usize,
    chosen: Offset,
    base: Offset,
    message: *const c_char,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: the text is as C says.
    let message = unsafe { words_of(message) };
    let opened = message.and_then(|message| {
        let number = version_number(chosen, 0)?;
        let options = BeginOptions::new().number(number).message(message).durable(true);
        let how = How::Begin(Box::new(options), version_number(base, 0)?);
        // SAFETY: the arguments are as C says.
        unsafe { open_file((comm, path), NC_WRITE, info, how) }
    });
    // SAFETY: as above.
    unsafe { number(opened, ncidp) }
}

pub(crate) unsafe fn transaction_needs(ncid: c_int, needed: Offset) -> c_int {
    files::with(ncid, |file| {
        let needed = version_number(needed, 1)?;
        file.dataset()?.needs(needed).map_err(|e| of(&e))
    })
}

/// Commits a transaction: its number, and whether it is a version already.
fn commit(file: &mut File) -> Result<(u64, bool)> {
    let begun = match &file.state {
        State::Define(define) => define.is_transaction(),
        State::Data(dataset) => dataset.is_transaction(),
        State::Lost => false,
    };
    if !begun {
        return Err(told(NC_EINVAL, "no transaction was begun: ncmpi_begin_transaction"));
    }
    if matches!(file.state, State::Define(_)) {
        file.enddef([0; 4])?;
    }
    if !file.read_only {
        end_independent(file)?;
    }
    if !file.pending.requests.is_empty() {
        let pending = file.pending.requests.len();
        return Err(told(NC_EPENDING, format!("{pending} requests were never waited for")));
    }
    let comm = file.comm.clone();
    let dataset = file.dataset()?;
    if dataset.outcome().is_none() {
        dataset.commit().map_err(|e| together(&*comm, &e))?;
    }
    let outcome = dataset.outcome().ok_or(NC_EFILE)?;
    // What was committed is only read from here on.
    file.read_only = true;
    Ok((outcome.number(), outcome.is_visible()))
}

pub(crate) unsafe fn commit_transaction(
    ncid: c_int,
    numberp: *mut Offset,
    visiblep: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let (number, visible) = commit(file)?;
        // SAFETY: the places are as C says.
        unsafe {
            give(numberp, number as Offset);
            give(visiblep, visible.into());
        }
        Ok(())
    })
}

pub(crate) unsafe fn skip_number(
    path: *const c_char,
    skipped: Offset,
    message: *const c_char,
) -> c_int {
    // SAFETY: the texts are as C says.
    let (path, message) = unsafe { (path_of(path), words_of(message)) };
    let skip = || {
        let (path, number) = (Path::new(without_prefix(path?)), version_number(skipped, 1)?);
        esker::skip(&LocalStore, path, number, message?).map_err(|e| of(&e))
    };
    skip().err().unwrap_or(0)
}

pub(crate) unsafe fn inq_container_version(ncid: c_int, numberp: *mut Offset) -> c_int {
    files::with(ncid, |file| {
        let version = file.dataset()?.container_version();
        // SAFETY: the place is as C says. A classic file has no versions.
        unsafe { give(numberp, version.unwrap_or(0) as Offset) };
        Ok(())
    })
}

pub(crate) unsafe fn open_next(
    comm: usize,
    path: *const c_char,
    info: usize,
    after: Offset,
    seconds: f64,
    ncidp: *mut c_int,
) -> c_int {
    // Less than nothing, and what no clock counts, is for ever.
    let timeout = Duration::try_from_secs_f64(seconds).ok();
    let opened = version_number(after, 0).and_then(|after| {
        // SAFETY: the arguments are as C says.
        unsafe { open_file((comm, path), 0, info, How::Next(after, timeout)) }
    });
    // SAFETY: as above.
    unsafe { number(opened, ncidp) }
}
