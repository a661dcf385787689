//! Finding an MPI library: in this process, beside the launcher, or by its usual names.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::abi::Abi;
use super::environment::{Launcher, launched};

/// The variable that names the library to use.
pub(super) const OVERRIDE: &str = "ESKER_MPI_LIB";

/// A loaded MPI library. Never unloaded: MPI keeps threads and handlers of its own.
#[derive(Debug)]
pub(super) struct Found {
    handle: usize,
    pub(super) path: PathBuf,
    /// It was in the process before we looked.
    pub(super) was_loaded: bool,
}

/// Finds and loads a library; the error lists what was tried.
pub(super) fn find() -> Result<Found, String> {
    let mut tried = Vec::new();
    // A process has one MPI at most: if one is here, it is the one, whatever else is installed.
    if let Some(found) = in_this_process() {
        return Ok(found);
    }
    if let Some(path) = std::env::var_os(OVERRIDE).filter(|path| !path.is_empty()) {
        let open = Found::open(Path::new(&path)).map_err(|reason| format!("{OVERRIDE}: {reason}"));
        return open;
    }
    for candidate in beside_the_launcher().into_iter().chain(usual_names()) {
        match Found::open(&candidate) {
            Ok(found) => return Ok(found),
            Err(reason) => tried.push(reason),
        }
    }
    Err(format!("no MPI library could be loaded ({})", tried.join("; ")))
}

impl Found {
    /// The address of a symbol.
    pub(super) fn symbol(&self, name: &str) -> Result<usize, String> {
        let missing = || format!("{} has no {name}", self.path.display());
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the handle is of a library that is never closed, or RTLD_DEFAULT; the name
        // is a C string.
        #[allow(unsafe_code)]
        let address = unsafe { libc::dlsym(self.handle as *mut c_void, c_name.as_ptr()) };
        if address.is_null() { Err(missing()) } else { Ok(address as usize) }
    }

    /// The version that the library gives of itself, and its ABI. Works before MPI_Init.
    #[allow(unsafe_code)]
    pub(super) fn identify(&self) -> Result<(String, Abi), String> {
        let get_version = self.symbol("MPI_Get_library_version")? as *const c_void;
        let mut text = [0u8; 8192];
        let mut length: c_int = 0;
        // SAFETY: the signature is the MPI standard's; 8192 is the largest
        // MPI_MAX_LIBRARY_VERSION_STRING of the ABIs known here.
        unsafe {
            let get_version = std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
            >(get_version);
            get_version(text.as_mut_ptr().cast(), &mut length);
        }
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let version = String::from_utf8_lossy(&text[..end]).trim().to_string();
        Ok((version, self.abi()?))
    }

    #[allow(unsafe_code)]
    fn abi(&self) -> Result<Abi, String> {
        if self.symbol("ompi_mpi_comm_world").is_ok() {
            return Ok(Abi::OpenMpi);
        }
        // A library of MPI 5 says itself whether it has the standard's ABI: -1 means it has its
        // own (MPICH 5's libmpi against its libmpi_abi).
        if let Ok(address) = self.symbol("MPI_Abi_get_version") {
            let (mut major, mut minor): (c_int, c_int) = (-1, -1);
            // SAFETY: the signature is that of the MPI 5 standard; it may be called before
            // MPI_Init.
            unsafe {
                let get = std::mem::transmute::<
                    *const c_void,
                    unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int,
                >(address as *const c_void);
                get(&mut major, &mut minor);
            }
            if major >= 1 {
                return Ok(Abi::Standard);
            }
        }
        // Every descendant of MPICH has MPIR_ symbols or says so; nothing else is left.
        Ok(Abi::Mpich)
    }

    #[allow(unsafe_code)]
    fn open(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        // Global, because OpenMPI's plug-ins look up its symbols; this also makes a library
        // that Python loaded privately visible to them.
        // SAFETY: loading an MPI library runs its initialisers, which is what we are asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(last_error(path));
        }
        Self::with_handle(handle as usize, false)
    }

    fn with_handle(handle: usize, was_loaded: bool) -> Result<Self, String> {
        let mut found = Found { handle, path: PathBuf::from("an MPI library"), was_loaded };
        let address = found.symbol("MPI_Init_thread")?;
        if let Some(path) = path_of(address) {
            found.path = path;
        }
        Ok(found)
    }
}

#[allow(unsafe_code)]
fn last_error(path: &Path) -> String {
    // SAFETY: dlerror gives a string of this thread, or null, valid until the next call.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            None
        } else {
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    text.unwrap_or_else(|| format!("{} cannot be loaded", path.display()))
}

/// The file that an address of code comes from.
#[allow(unsafe_code)]
fn path_of(address: usize) -> Option<PathBuf> {
    // SAFETY: Dl_info is plain data, filled by dladdr if it succeeds; the name it then points to
    // lives as long as the library, which is never unloaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        Some(PathBuf::from(OsStr::from_bytes(CStr::from_ptr(info.dli_fname).to_bytes())))
    }
}

/// An MPI that the program, or something it loaded, brought along.
fn in_this_process() -> Option<Found> {
    // Symbols of the program and its ordinary libraries, with profilers in front of them.
    if let Ok(found) = Found::with_handle(libc::RTLD_DEFAULT as usize, true) {
        return Some(found);
    }
    // A library loaded privately, as Python does, shows only in the process's map.
    let map = fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths: Vec<&str> =
        map.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    paths.dedup();
    let libraries = paths.into_iter().filter(|path| is_mpi(Path::new(path)));
    let mut loaded: Vec<Found> = libraries
        .filter_map(|path| Found::open(Path::new(path)).ok())
        .map(|found| Found { was_loaded: true, ..found })
        .collect();
    // If there are several, the one in use is the one that was initialised.
    let in_use = loaded.iter().position(Found::is_initialized).unwrap_or(0);
    (in_use < loaded.len()).then(|| loaded.swap_remove(in_use))
}

impl Found {
    #[allow(unsafe_code)]
    fn is_initialized(&self) -> bool {
        let Ok(address) = self.symbol("MPI_Initialized") else { return false };
        let mut flag: c_int = 0;
        // SAFETY: the signature is the MPI standard's; it may be called at any time.
        unsafe {
            let initialized = std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut c_int) -> c_int,
            >(address as *const c_void);
            initialized(&mut flag);
        }
        flag != 0
    }
}

/// Whether an MPI in this process has been initialised (and not finalised, as far as
/// MPI_Initialized tells).
pub(super) fn is_in_use() -> bool {
    in_this_process().is_some_and(|found| found.is_initialized())
}

/// Whether a file is named like an MPI library itself, and not like its Fortran or C++ parts.
fn is_mpi(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split(".so").next().unwrap_or_default();
    name.contains(".so") && ["libmpi", "libmpich", "libmpi_abi", "libmpi_cray"].contains(&stem)
}

/// Libraries of the installation whose launcher started us, which need not be where the
/// dynamic linker looks (a Python environment, a module's prefix).
fn beside_the_launcher() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Some(launched) = launched() else { return found };
    let mut process = std::process::id();
    // The launcher's proxy is our parent, or its parent if a script or `timeout` is between.
    for _ in 0..4 {
        let Some(parent) = parent_of(process) else { break };
        process = parent;
        let Ok(program) = fs::read_link(format!("/proc/{process}/exe")) else { break };
        let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_launcher = ["hydra", "mpiexec", "mpirun", "orte", "prte", "prun"]
            .iter()
            .any(|launcher| name.contains(launcher));
        if let (true, Some(prefix)) = (is_launcher, program.parent().and_then(Path::parent)) {
            for folder in ["lib", "lib64"] {
                let names = names_for(launched.by);
                found.extend(names.iter().map(|name| prefix.join(folder).join(name)));
            }
        }
    }
    found.retain(|path| path.exists());
    found
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 1)
}

fn usual_names() -> impl Iterator<Item = PathBuf> {
    let by = launched().map_or(Launcher::Pmix, |launched| launched.by);
    names_for(by).iter().map(PathBuf::from)
}

/// Names under which MPI libraries are installed, those of the launcher's family first.
fn names_for(launcher: Launcher) -> &'static [&'static str] {
    match launcher {
        Launcher::OpenMpi => {
            &["libmpi.so.40", "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.80", "libmpi.so"]
        }
        Launcher::Pmi | Launcher::Pmix => &[
            "libmpi_abi.so.1",
            "libmpi_abi.so.0",
            "libmpich.so.12",
            "libmpi.so.12",
            "libmpi.so.40",
            "libmpi.so",
            "libmpich.so",
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_libraries_are_known_by_their_names() {
        for name in ["libmpi.so.40", "libmpich.so.12.2.0", "/opt/x/libmpi_abi.so.1", "libmpi.so"] {
            assert!(is_mpi(Path::new(name)), "{name}");
        }
        for name in ["libmpi_cxx.so.40", "libmpi_mpifh.so", "libmpichfort.so.12", "libmpi.txt"] {
            assert!(!is_mpi(Path::new(name)), "{name}");
        }
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_library_that_was_loaded_privately_is_found() {
        for name in [c"libmpich.so.12", c"libmpi.so.40"] {
            // SAFETY: as in Found::open; this is what Python does.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if handle.is_null() {
                continue;
            }
            let found = find().unwrap();
            assert!(found.was_loaded);
            assert!(is_mpi(&found.path), "{found:?}");
            return;
        }
        esker_testkit::skip!("neither MPICH nor OpenMPI is installed");
    }
}
