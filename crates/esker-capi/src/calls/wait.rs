//! Requests that were posted: waiting, cancelling, and the attached buffer.

use std::ffi::c_int;

use crate::codes::*;
use crate::file::{File, give};
use crate::files::{self, answer};
use crate::pending::{Attached, Which};
use crate::request::Request;

const NC_REQ_ALL: c_int = -1;
const NC_GET_REQ_ALL: c_int = -2;
const NC_PUT_REQ_ALL: c_int = -3;

/// Which requests the arguments mean.
///
/// # Safety
///
/// The list has as many numbers as said.
unsafe fn which<'a>(count: c_int, requests: *mut c_int) -> Result<Which<'a>> {
    Ok(match count {
        NC_REQ_ALL => Which::All,
        NC_GET_REQ_ALL => Which::Gets,
        NC_PUT_REQ_ALL => Which::Puts,
        count => {
            let count = usize::try_from(count).map_err(|_| NC_EINVAL)?;
            if count == 0 || requests.is_null() {
                return Ok(Which::These(&mut []));
            }
            // SAFETY: the caller vouches for the list.
            Which::These(unsafe { std::slice::from_raw_parts_mut(requests, count) })
        }
    })
}

unsafe fn finish(
    file: &mut File,
    collective: bool,
    count: c_int,
    requests: *mut c_int,
    statuses: *mut c_int,
) -> Result<()> {
    if file.is_defining() {
        return Err(NC_EINDEFINE);
    }
    match (collective, file.independent) {
        (true, true) => return Err(NC_EINDEP),
        (false, false) => return Err(NC_ENOTINDEP),
        _ => {}
    }
    if !collective && count == 0 {
        return Ok(());
    }
    // SAFETY: the lists are as C says.
    let which = unsafe { which(count, requests) }?;
    let (taken, unknown) = file.pending.take(which);
    let set = |place: usize, code: Code| {
        if !statuses.is_null() {
            // SAFETY: the list has a place for each number.
            unsafe { statuses.add(place).write_unaligned(code) };
        }
    };
    (0..count.max(0) as usize).for_each(|place| set(place, 0));
    let (places, mut moved): (Vec<Option<usize>>, Vec<Request>) = taken.into_iter().unzip();
    // SAFETY: programs keep the memory until they have waited.
    let codes = unsafe { file.carry(&mut moved, collective) };
    file.pending.release(moved.iter().filter_map(|request| request.part));
    let codes = codes?;
    for (place, code) in places.iter().zip(&codes) {
        if let Some(place) = place {
            set(*place, *code);
        }
    }
    unknown.iter().for_each(|place| set(*place, NC_EINVAL_REQUEST));
    if !unknown.is_empty() {
        return Err(told(NC_EINVAL_REQUEST, format!("{} of them", unknown.len())));
    }
    codes.into_iter().find(|code| *code != 0).map_or(Ok(()), Err)
}

pub(crate) unsafe fn wait(
    ncid: c_int,
    count: c_int,
    requests: *mut c_int,
    statuses: *mut c_int,
) -> c_int {
    // SAFETY: the lists are as C says.
    files::with(ncid, |file| unsafe { finish(file, false, count, requests, statuses) })
}

pub(crate) unsafe fn wait_all(
    ncid: c_int,
    count: c_int,
    requests: *mut c_int,
    statuses: *mut c_int,
) -> c_int {
    // SAFETY: the lists are as C says.
    files::with(ncid, |file| unsafe { finish(file, true, count, requests, statuses) })
}

pub(crate) unsafe fn cancel(
    ncid: c_int,
    num: c_int,
    reqs: *mut c_int,
    statuses: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the lists are as C says.
        let which = unsafe { which(num, reqs) }?;
        let (taken, unknown) = file.pending.take(which);
        let parts: Vec<usize> = taken.iter().filter_map(|(_, request)| request.part).collect();
        drop(taken);
        file.pending.release(parts.into_iter());
        if !statuses.is_null() {
            for place in 0..num.max(0) as usize {
                let code = if unknown.contains(&place) { NC_EINVAL_REQUEST } else { 0 };
                // SAFETY: the list has a place for each number.
                unsafe { statuses.add(place).write_unaligned(code) };
            }
        }
        if unknown.is_empty() { Ok(()) } else { Err(NC_EINVAL_REQUEST) }
    })
}

pub(crate) unsafe fn buffer_attach(ncid: c_int, bufsize: i64) -> c_int {
    files::with(ncid, |file| {
        if bufsize <= 0 {
            return Err(NC_ENULLBUF);
        }
        if file.pending.buffer.is_some() {
            return Err(NC_EPREVATTACHBUF);
        }
        file.pending.buffer = Some(Attached::new(bufsize as u64));
        Ok(())
    })
}

pub(crate) unsafe fn buffer_detach(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.pending.buffer.is_none() {
            return Err(NC_ENULLABUF);
        }
        if file.pending.requests.iter().any(|(_, request)| request.part.is_some()) {
            return Err(NC_EPENDINGBPUT);
        }
        file.pending.buffer = None;
        Ok(())
    })
}

pub(crate) unsafe fn inq_buffer_usage(ncid: c_int, usage: *mut i64) -> c_int {
    files::with(ncid, |file| {
        if usage.is_null() {
            return Ok(());
        }
        let buffer = file.pending.buffer.as_ref().ok_or(NC_ENULLABUF)?;
        // SAFETY: the place is as C says.
        unsafe { give(usage, buffer.used as i64) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_buffer_size(ncid: c_int, buf_size: *mut i64) -> c_int {
    files::with(ncid, |file| {
        if buf_size.is_null() {
            return Ok(());
        }
        let buffer = file.pending.buffer.as_ref().ok_or(NC_ENULLABUF)?;
        // SAFETY: the place is as C says.
        unsafe { give(buf_size, buffer.size as i64) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_nreqs(ncid: c_int, nreqs: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, nreqs, |file| Ok(file.pending.requests.len() as c_int)) }
}
