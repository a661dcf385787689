//! The table of open files: an ncid is a place in it.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codes::{NC_EBADID, NC_ENFILE, Result};
use crate::file::File;

/// NC_MAX_NFILES.
const MOST: usize = 1024;

type Slot = Option<Arc<Mutex<File>>>;

static FILES: Mutex<Vec<Slot>> = Mutex::new(Vec::new());

fn table() -> MutexGuard<'static, Vec<Slot>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a file into the lowest free place and gives its number.
pub(crate) fn add(file: File) -> Result<c_int> {
    let mut table = table();
    let place = table.iter().position(Option::is_none).unwrap_or(table.len());
    if place >= MOST {
        return Err(NC_ENFILE);
    }
    if place == table.len() {
        table.push(None);
    }
    table[place] = Some(Arc::new(Mutex::new(file)));
    Ok(place as c_int)
}

/// Whether another file can be opened.
pub(crate) fn has_room() -> Result<()> {
    let table = table();
    let open = table.iter().flatten().count();
    if open < MOST { Ok(()) } else { Err(NC_ENFILE) }
}

/// The file of this number.
pub(crate) fn get(ncid: c_int) -> Result<Arc<Mutex<File>>> {
    let place = usize::try_from(ncid).map_err(|_| NC_EBADID)?;
    table().get(place).cloned().flatten().ok_or(NC_EBADID)
}

/// Takes the file of this number out of the table.
pub(crate) fn remove(ncid: c_int) -> Result<Arc<Mutex<File>>> {
    let place = usize::try_from(ncid).map_err(|_| NC_EBADID)?;
    table().get_mut(place).and_then(Option::take).ok_or(NC_EBADID)
}

/// The numbers of all open files, in order.
pub(crate) fn open() -> Vec<c_int> {
    let table = table();
    let numbers = table.iter().enumerate().filter(|(_, file)| file.is_some());
    numbers.map(|(place, _)| place as c_int).collect()
}

/// The file, for this thread alone.
pub(crate) fn lock(file: &Mutex<File>) -> MutexGuard<'_, File> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `act` with the file of this number and gives the code that C gets.
pub(crate) fn with(ncid: c_int, act: impl FnOnce(&mut File) -> Result<()>) -> c_int {
    let outcome = get(ncid).and_then(|file| act(&mut lock(&file)));
    outcome.err().unwrap_or(0)
}

/// Answers a question with one value.
///
/// # Safety
///
/// `place` is null or a place for the value.
pub(crate) unsafe fn answer<T>(
    ncid: c_int,
    place: *mut T,
    find: impl FnOnce(&File) -> Result<T>,
) -> c_int {
    with(ncid, |file| {
        let value = find(file)?;
        // SAFETY: the caller vouches for the place.
        unsafe { crate::file::give(place, value) };
        Ok(())
    })
}
