//! The MPI library of this process: loaded once, initialised and finalised at most once.

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::abi::{Abi, Constants, Handle, Status};
use super::calls::{self, Calls};
use super::environment::Settings;
use super::find::{Found, find};
use super::transfer::Transfer;
use super::{MpiInfo, ThreadLevel};
use crate::patience::poll;
use crate::{CommError, Result};

pub(super) struct Library {
    calls: Box<dyn Calls>,
    pub(super) constants: Constants,
    /// The basic datatypes, by their handles.
    pub(super) elements: Vec<(usize, super::Element)>,
    pub(super) abi: Abi,
    /// How Fortran's integers become handles.
    pub(super) fortran: Option<super::fortran::Conversions>,
    pub(super) settings: Settings,
    path: PathBuf,
    version: String,
    was_loaded: bool,
    /// Taken around each call if MPI does not allow several threads in it at once.
    gate: Mutex<()>,
    /// Whether the gate is not needed; known once MPI is initialised.
    concurrent: AtomicBool,
    start: Mutex<Start>,
    /// Sends whose requests were dropped before the messages had left.
    orphans: Mutex<Vec<Transfer>>,
}

#[derive(Default)]
struct Start {
    ready: bool,
    /// We called MPI_Init_thread, so MPI_Finalize is ours too.
    ours: bool,
}

/// The library of this process, found and loaded when first asked for.
pub(super) fn library() -> Result<&'static Library> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY
        .get_or_init(|| find().and_then(Library::load))
        .as_ref()
        .map_err(|reason| CommError::MpiUnavailable { reason: reason.clone() })
}

impl Library {
    #[allow(unsafe_code)]
    fn load(found: Found) -> Result<Self, String> {
        let (version, abi) = found.identify()?;
        let symbol = |name: &str| found.symbol(name);
        // SAFETY: the library was identified as one with handles of the type named, and it is
        // never unloaded.
        let calls = unsafe {
            match abi {
                Abi::Mpich => calls::load::<c_int>(symbol)?,
                Abi::OpenMpi | Abi::Standard => calls::load::<usize>(symbol)?,
            }
        };
        let constants = match abi {
            Abi::Mpich => Constants::mpich(),
            Abi::Standard => Constants::standard(),
            Abi::OpenMpi => Constants::open_mpi(symbol)?,
        };
        Ok(Library {
            calls,
            constants,
            elements: super::datatype::elements(abi, symbol),
            abi,
            fortran: super::fortran::Conversions::load(abi, symbol),
            settings: Settings::from_environment(),
            path: found.path,
            version,
            was_loaded: found.was_loaded,
            gate: Mutex::new(()),
            concurrent: AtomicBool::new(false),
            start: Mutex::default(),
            orphans: Mutex::default(),
        })
    }

    /// Calls a function of MPI and turns its return code into a result.
    pub(super) fn call(
        &self,
        name: &'static str,
        call: impl FnOnce(&dyn Calls) -> c_int,
    ) -> Result<()> {
        let gate = if self.concurrent.load(Ordering::Relaxed) {
            None
        } else {
            Some(self.gate.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let code = call(self.calls.as_ref());
        if code == 0 {
            return Ok(());
        }
        let message = self.words(code);
        drop(gate);
        Err(CommError::Mpi { call: name, code, message })
    }

    /// MPI's own words for an error code. The gate is held.
    #[allow(unsafe_code)]
    fn words(&self, code: c_int) -> String {
        let mut text = [0u8; 8192];
        let mut length: c_int = 0;
        // SAFETY: the buffer is longer than any ABI's MPI_MAX_ERROR_STRING.
        unsafe { self.calls.error_string(code, text.as_mut_ptr().cast(), &mut length) };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    #[allow(unsafe_code)]
    fn flag(&self, name: &'static str, initialized: bool) -> bool {
        let mut flag: c_int = 0;
        // SAFETY: both functions may be called at any time, by any thread.
        let asked = self.call(name, |mpi| unsafe {
            if initialized { mpi.initialized(&mut flag) } else { mpi.finalized(&mut flag) }
        });
        asked.is_ok() && flag != 0
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.flag("MPI_Initialized", true)
    }

    pub(super) fn is_finalized(&self) -> bool {
        self.flag("MPI_Finalized", false)
    }

    /// Makes MPI ready for use: adopts it if the program has initialised it, and initialises it
    /// if not, to be finalised when the process exits.
    #[allow(unsafe_code)]
    pub(super) fn make_ready(&'static self) -> Result<()> {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_finalized() {
            let reason = "MPI_Finalize was called before".to_string();
            return Err(CommError::MpiUnavailable { reason });
        }
        if start.ready {
            return Ok(());
        }
        let mut level: c_int = 0;
        if self.is_initialized() {
            // SAFETY: MPI is initialised.
            self.call("MPI_Query_thread", |mpi| unsafe { mpi.query_thread(&mut level) })?;
        } else {
            let null = std::ptr::null_mut::<c_void>();
            let wanted = self.constants.thread_levels[if self.settings.serialized { 2 } else { 3 }];
            // SAFETY: MPI is not initialised; null pointers stand for the arguments of main.
            self.call("MPI_Init_thread", |mpi| unsafe {
                mpi.init_thread(null, null, wanted, &mut level)
            })?;
            start.ours = true;
            at_exit();
        }
        self.concurrent.store(level == self.constants.thread_levels[3], Ordering::SeqCst);
        self.check_tags()?;
        start.ready = true;
        Ok(())
    }

    /// Refuses a library whose tags do not reach to ours (the standard promises only 32767).
    #[allow(unsafe_code)]
    fn check_tags(&self) -> Result<()> {
        let mut bound: *const c_int = std::ptr::null();
        let mut flag: c_int = 0;
        let Constants { world, tag_bound, .. } = self.constants;
        // SAFETY: MPI stores in `bound` the address of an int that lives as long as MPI does.
        self.call("MPI_Comm_get_attr", |mpi| unsafe {
            mpi.comm_get_attr(world, tag_bound, (&raw mut bound).cast(), &mut flag)
        })?;
        // SAFETY: see above; only if MPI said that the attribute is set.
        let bound = if flag != 0 && !bound.is_null() { unsafe { *bound } } else { 32767 };
        if bound < super::comm::LAST_TAG {
            let reason = format!("its largest tag is {bound}, which is too small");
            return Err(CommError::MpiUnavailable { reason });
        }
        Ok(())
    }

    /// Whether MPI allows several threads in it at once.
    pub(super) fn is_concurrent(&self) -> bool {
        self.concurrent.load(Ordering::Relaxed)
    }

    pub(super) fn info(&self) -> MpiInfo {
        let live = self.is_initialized() && !self.is_finalized();
        MpiInfo {
            library: self.path.clone(),
            version: self.version.clone(),
            abi: self.abi,
            was_loaded: self.was_loaded,
            thread_level: if live { self.thread_level() } else { None },
        }
    }

    #[allow(unsafe_code)]
    fn thread_level(&self) -> Option<ThreadLevel> {
        let mut level: c_int = 0;
        // SAFETY: the caller saw that MPI is initialised and not finalised.
        self.call("MPI_Query_thread", |mpi| unsafe { mpi.query_thread(&mut level) }).ok()?;
        let levels = [
            ThreadLevel::Single,
            ThreadLevel::Funneled,
            ThreadLevel::Serialized,
            ThreadLevel::Multiple,
        ];
        let place = self.constants.thread_levels.iter().position(|known| *known == level)?;
        levels.get(place).copied()
    }

    /// The number of ranks of the world, if MPI is in use.
    #[allow(unsafe_code)]
    pub(super) fn world_size(&self) -> Option<usize> {
        if !self.is_initialized() || self.is_finalized() {
            return None;
        }
        let (world, mut size) = (self.constants.world, 0);
        // SAFETY: MPI is initialised and not finalised.
        self.call("MPI_Comm_size", |mpi| unsafe { mpi.comm_size(world, &mut size) }).ok()?;
        usize::try_from(size).ok()
    }

    /// Tests a request; its status if it has completed.
    #[allow(unsafe_code)]
    pub(super) fn test(&self, request: &mut Handle) -> Result<Option<Status>> {
        let mut flag: c_int = 0;
        let mut status = Status::default();
        // SAFETY: the request was made by MPI and has not completed yet.
        self.call("MPI_Test", |mpi| unsafe { mpi.test(request, &mut flag, &mut status) })?;
        Ok((flag != 0).then_some(status))
    }

    /// Waits for a request, leaving the core to others meanwhile.
    #[allow(unsafe_code)]
    pub(super) fn wait(&self, request: &mut Handle) -> Result<Status> {
        if self.settings.block && self.concurrent.load(Ordering::Relaxed) {
            let mut status = Status::default();
            // SAFETY: the request was made by MPI and has not completed yet.
            self.call("MPI_Wait", |mpi| unsafe { mpi.wait(request, &mut status) })?;
            return Ok(status);
        }
        poll(|| self.test(request))
    }

    /// Keeps a send until its message has left.
    pub(super) fn adopt(&self, send: Transfer) {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(send);
    }

    /// Lets go of adopted sends that have completed; called now and then.
    pub(super) fn sweep(&self) {
        let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        if !orphans.is_empty() {
            // One whose test fails is kept for ever: MPI may still read its buffer.
            orphans.retain_mut(|send| !matches!(send.test(), Ok(Some(_))));
        }
    }

    /// Finalises MPI if we initialised it. Ranks that fail (`status` is not 0) do not wait for
    /// others for ever: if these do not come to an end too, all are aborted.
    #[allow(unsafe_code)]
    pub(super) fn finish(&self, status: c_int) {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut start.ours, false) || self.is_finalized() {
            return;
        }
        let world = self.constants.world;
        let mut request = Handle::BLANK;
        // MPI_Finalize waits for everyone without ever yielding: come together first. We
        // initialised MPI, so nobody else uses the world for anything.
        // SAFETY: MPI is initialised and not finalised.
        let met = self.call("MPI_Ibarrier", |mpi| unsafe { mpi.ibarrier(world, &mut request) });
        drop(start); // MPI_Abort may come here again through the exit handlers.
        let patience = Duration::from_secs(if status == 0 { u64::MAX } else { 3 });
        let began = Instant::now();
        let met = met.and_then(|()| {
            poll(|| {
                self.sweep();
                let done = self.test(&mut request)?.is_some();
                Ok((done || began.elapsed() > patience).then_some(done))
            })
        });
        // SAFETY: as above; nothing of MPI is used after either call.
        let _ = match met {
            Ok(true) => self.call("MPI_Finalize", |mpi| unsafe { mpi.finalize() }),
            _ => self.call("MPI_Abort", |mpi| unsafe { mpi.abort(world, status.max(1)) }),
        };
    }

    /// Ends all ranks at once.
    #[allow(unsafe_code)]
    pub(super) fn abort(&self, status: c_int) {
        // MPI_Abort may run the exit handlers, where nothing is left to do.
        self.start.lock().unwrap_or_else(PoisonError::into_inner).ours = false;
        if self.is_initialized() && !self.is_finalized() {
            let world = self.constants.world;
            // SAFETY: MPI is initialised and not finalised.
            let _ = self.call("MPI_Abort", |mpi| unsafe { mpi.abort(world, status) });
        }
    }
}

/// Has [`Library::finish`] called when the process exits.
#[allow(unsafe_code)]
fn at_exit() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            // Of the GNU C library: as atexit, and tells the exit status.
            fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void)
            -> c_int;
        }
        extern "C" fn finish(status: c_int, _: *mut c_void) {
            if let Ok(library) = library() {
                library.finish(status);
            }
        }
        // SAFETY: the function lives as long as the process and does not unwind. Registered
        // after MPI was initialised, it runs before MPI's own handlers.
        unsafe { on_exit(finish, std::ptr::null_mut()) };
    }
    #[cfg(not(target_env = "gnu"))]
    {
        extern "C" fn finish() {
            if let Ok(library) = library() {
                library.finish(0);
            }
        }
        // SAFETY: as above.
        unsafe { libc::atexit(finish) };
    }
}
