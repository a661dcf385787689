//! Memory that ranks share: of processes, a file without a name, mapped by all of them; of threads, memory as any other.

use std::alloc::{self, Layout};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

use super::PAGE;

/// A stretch of shared memory that begins with a page, zero when it was made.
#[derive(Debug)]
pub(super) struct Map {
    start: NonNull<u8>,
    len: usize,
    /// Where it was allocated, if it was not mapped.
    allocated: Option<(NonNull<u8>, Layout)>,
}

// SAFETY: it is memory that every thread may use; what may be done with it when is the business of its users.
#[allow(unsafe_code)]
unsafe impl Send for Map {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Map {}

impl Map {
    /// Memory for the threads of this process, counted and bounded as what they allocate is.
    #[allow(unsafe_code)]
    pub(super) fn of_this_process(len: usize) -> io::Result<Map> {
        let no_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        // A page more, to begin with one: memory that is zero and aligned would be touched to make it so.
        let room = len.checked_add(PAGE).ok_or_else(no_memory)?;
        let layout = Layout::array::<u64>(room.div_ceil(8)).map_err(|_| no_memory())?;
        // SAFETY: it has bytes, a page at least.
        let room = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(no_memory)?;
        // SAFETY: less than a page, which it has more than `len`.
        let start = unsafe { room.add(room.align_offset(PAGE).min(PAGE)) };
        Ok(Map { start, len, allocated: Some((room, layout)) })
    }

    /// The memory that a file is.
    #[allow(unsafe_code)]
    pub(super) fn of_file(file: &File, len: usize) -> io::Result<Map> {
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping, placed by the system, of a file of that length.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Map { start, len, allocated: None })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Map {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it was allocated so, or mapped with this length, and nobody has a reference into it any more: those borrow
        // from it.
        unsafe {
            match self.allocated {
                Some((start, layout)) => alloc::dealloc(start.as_ptr(), layout),
                None => {
                    libc::munmap(self.start.as_ptr().cast(), self.len);
                }
            }
        }
    }
}

/// A file of zeros in memory, without a name, whose pages are there.
#[allow(unsafe_code)]
pub(super) fn nameless_file(len: usize) -> io::Result<File> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the call.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    // Passing the limit would be a signal.
    if asked != 0 || !is_within(len, limit.rlim_cur) {
        return Err(io::Error::other(format!("files may not have {len} bytes (ulimit -f)")));
    }
    // Where nothing else bounds it, reserving pages goes on until the system kills somebody.
    if let Some(free) = available().filter(|free| len as u64 > free / 2) {
        let reason = format!("{len} bytes are more than half of the {free} that are available");
        return Err(io::Error::other(reason));
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a string of C.
    let fd = unsafe { libc::memfd_create(c"esker".as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len as u64)?;
    // SAFETY: a call on an open file. Pages that cannot be had are an error now, and no signal later.
    let outcome = unsafe { libc::posix_fallocate(fd, 0, len as libc::off_t) };
    if outcome != 0 {
        return Err(io::Error::from_raw_os_error(outcome));
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a call on an open file.
    if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Whether the limit of a file's length allows so many bytes.
fn is_within(len: usize, limit: libc::rlim_t) -> bool {
    limit == libc::RLIM_INFINITY || len as u64 <= limit
}

/// Bytes of memory that the system could give, if it says so.
fn available() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A number that nobody guesses.
#[allow(unsafe_code)]
pub(super) fn random() -> io::Result<u64> {
    let mut number = [0u8; 8];
    // SAFETY: the buffer has that many bytes.
    let got = unsafe { libc::getrandom(number.as_mut_ptr().cast(), number.len(), 0) };
    match got == number.len() as isize {
        true => Ok(u64::from_le_bytes(number)),
        false => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_made_longer_than_the_user_may_have_it_or_memory_there_is() {
        assert!(is_within(10, 10) && is_within(usize::MAX, libc::RLIM_INFINITY));
        assert!(!is_within(11, 10));
        let refused = nameless_file(1 << 45).unwrap_err().to_string();
        assert!(refused.contains("35184372088832 bytes"), "{refused}");
        assert_eq!(nameless_file(8192).unwrap().metadata().unwrap().len(), 8192);
    }
}
