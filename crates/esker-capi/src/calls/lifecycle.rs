//! Creating, opening, changing modes, closing.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use esker::{
    Alignment, BeginOptions, CreateOptions, Dataset, FillMode, Hints, OpenOptions, Schema, Version,
};
use esker_comm::mpi::{MpiComm, info_pairs, launched, wrong_launcher};
use esker_comm::{Communicator, Message};
use esker_format::name::MAX_NAME;
use esker_store::{LocalStore, StoreError};

use crate::codes::*;
use crate::file::{Aligns, File, State, Touched, give, least, together};
use crate::files;

pub(super) const NC_WRITE: c_int = 0x0001;
const NC_NOCLOBBER: c_int = 0x0004;
const NC_DISKLESS: c_int = 0x0008;
const NC_MMAP: c_int = 0x0010;
const NC_64BIT_DATA: c_int = 0x0020;
const NC_CLASSIC_MODEL: c_int = 0x0100;
const NC_64BIT_OFFSET: c_int = 0x0200;
const NC_NETCDF4: c_int = 0x1000;
/// NC_FORMAT_NETCDF4 and NC_FORMAT_NETCDF4_CLASSIC.
const NETCDF4_FORMATS: [c_int; 2] = [3, 4];

static DEFAULT_FORMAT: AtomicI32 = AtomicI32::new(1);

/// The file's name without a prefix that names a file system to MPI-IO.
pub(super) fn without_prefix(path: &str) -> &str {
    const SYSTEMS: [&str; 12] = [
        "ufs", "nfs", "xfs", "pfs", "panfs", "pvfs", "pvfs2", "lustre", "gpfs", "daos", "quobyte",
        "testfs",
    ];
    match path.split_once(':') {
        Some((system, rest)) if SYSTEMS.contains(&system) => rest,
        _ => path,
    }
}

/// The environment's switches that a file keeps: safe mode, and strict bounds.
fn switches() -> (bool, bool) {
    let is_on = |name: &str| {
        std::env::var_os(name).map(|value| !value.as_encoded_bytes().starts_with(b"0"))
    };
    let safe = is_on("PNETCDF_SAFE_MODE").unwrap_or(false);
    (safe, !is_on("PNETCDF_RELAX_COORD_BOUND").unwrap_or(true))
}

/// The program's hints, with the environment's on top.
unsafe fn hints_of(info: usize) -> Result<Vec<(String, String)>> {
    // SAFETY: the handle is as C says.
    let mut pairs = unsafe { info_pairs(info) }.map_err(|e| of_mpi(&e))?;
    let environment = std::env::var("PNETCDF_HINTS").unwrap_or_default();
    for pair in Hints::pnetcdf_pairs(&environment) {
        match pair {
            Ok((key, value)) => {
                pairs.retain(|(old, _)| old != key);
                pairs.push((key.to_string(), value.to_string()));
            }
            Err(why) => ill_formed(&why),
        }
    }
    Ok(pairs)
}

/// Tells of an ill-formed pair of the environment, once, and whether or not the program wants to be told
/// anything else: the hint that its user meant does nothing.
fn ill_formed(why: &str) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.iter().any(|old| old == why) {
        // One of the ranks is enough.
        if launched().is_none_or(|launched| launched.rank.is_none_or(|rank| rank == 0)) {
            eprintln!("pnetcdf: warning: {why}");
        }
        told.push(why.to_string());
    }
}

/// Buffers below this are no smaller for it: test programs ask for 500 bytes, which would make a
/// round of messages for every 500 bytes of the file.
const LEAST_BUFFER: u64 = 64 << 10;

/// The hints for the library. The program is told its own numbers.
fn hints_for(pairs: &[(String, String)]) -> Hints {
    let mut hints = Hints::default();
    for (key, value) in pairs {
        match (key.as_str(), value.trim().parse::<u64>()) {
            (
                "cb_buffer_size"
                | "ind_rd_buffer_size"
                | "ind_wr_buffer_size"
                | "nc_data_move_chunk_size",
                Ok(bytes),
            ) if (1..LEAST_BUFFER).contains(&bytes) => {
                hints.set(key, &LEAST_BUFFER.to_string());
            }
            _ => hints.set(key, value),
        }
    }
    // This is this interface's own.
    let idle = |key: &str| Hints::is_without_effect(key) && key != "nc_in_place_swap";
    for (key, value) in pairs.iter().filter(|(key, _)| verbose() && idle(key)) {
        eprintln!("pnetcdf: the hint {key}={value} is known, and has no effect here");
    }
    for warning in hints.warnings().iter().filter(|_| verbose()) {
        eprintln!("pnetcdf: {}", esker_text::sentence(warning));
    }
    hints
}

fn aligns_of(pairs: &[(String, String)]) -> Aligns {
    let number = |name: &str| {
        let pair = pairs.iter().find(|(key, _)| key == name);
        pair.and_then(|(_, value)| value.trim().parse::<i64>().ok()).map_or(0, |n| n.max(0) as u64)
    };
    let (newer, older) = (number("nc_var_align_size"), number("nc_header_align_size"));
    let data = if newer > 0 { newer } else { older };
    Aligns { data, records: number("nc_record_align_size") }
}

/// Whether the ranks' definitions are merged, and need not be alike.
fn merges(pairs: &[(String, String)]) -> bool {
    let value = pairs.iter().find(|(key, _)| key == "esker_definitions");
    value.is_some_and(|(_, value)| ["merge", "shares"].contains(&value.trim()))
}

/// Up to which size a posted put is copied when it is posted. PnetCDF swaps the bytes of small
/// requests in a copy, and of large ones in place, as its hint says; programs change their buffers
/// before they wait, and rely on that.
fn copied_bytes(pairs: &[(String, String)]) -> u64 {
    match pairs.iter().find(|(key, _)| key == "nc_in_place_swap").map(|(_, value)| value.trim()) {
        Some(value) if value.eq_ignore_ascii_case("enable") => 0,
        Some(value) if value.eq_ignore_ascii_case("disable") => u64::MAX,
        _ => 4096,
    }
}

pub(super) unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a str> {
    if path.is_null() {
        return Err(NC_EBAD_FILE);
    }
    // SAFETY: the path is as C says.
    let path = unsafe { CStr::from_ptr(path) }.to_str().map_err(|_| NC_EBAD_FILE)?;
    if path.is_empty() { Err(NC_EBAD_FILE) } else { Ok(path) }
}

/// Rank 0's numbers. Collective.
fn of_root<const N: usize>(comm: &dyn Communicator, numbers: [c_int; N]) -> Result<[c_int; N]> {
    if comm.size() == 1 {
        return Ok(numbers);
    }
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let root = comm.broadcast(0, Message::from(bytes)).map_err(|e| of_mpi(&e))?;
    let mut out = numbers;
    for (number, bytes) in out.iter_mut().zip(root.chunks_exact(4)) {
        *number = c_int::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Ok(out)
}

/// PnetCDF's way to place variables; the numbers come at `enddef`.
fn forward() -> Alignment {
    Alignment { never_back: true, ..Alignment::default() }
}

/// A mode that is not rank 0's is reported, but rank 0's is used.
fn same_mode(comm: &dyn Communicator, mine: c_int, root: c_int, safe: bool, code: Code) -> Code {
    let differs = if mine == root { 0 } else { code };
    if safe { least(comm, differs) } else { differs }
}

/// The version that a mode for creating asks for.
fn version_of(cmode: c_int) -> Result<Version> {
    if cmode & NC_NETCDF4 != 0 {
        return Err(told(NC_ENOTBUILT, "netCDF-4 files are not written"));
    }
    let both = NC_64BIT_OFFSET | NC_64BIT_DATA;
    if cmode & both == both || cmode & (NC_DISKLESS | NC_MMAP) != 0 {
        return Err(NC_EINVAL_CMODE);
    }
    if cmode & NC_64BIT_DATA != 0 {
        return Ok(Version::Cdf5);
    }
    if cmode & NC_64BIT_OFFSET != 0 {
        return Ok(Version::Cdf2);
    }
    if cmode & NC_CLASSIC_MODEL != 0 {
        return Ok(Version::Cdf1);
    }
    match DEFAULT_FORMAT.load(Ordering::Relaxed) {
        5 => Ok(Version::Cdf5),
        2 => Ok(Version::Cdf2),
        format if NETCDF4_FORMATS.contains(&format) => {
            Err(told(NC_ENOTBUILT, "netCDF-4 files are not written"))
        }
        _ => Ok(Version::Cdf1),
    }
}

pub(crate) unsafe fn create(
    comm: usize,
    path: *const c_char,
    cmode: c_int,
    info: usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { number(create_file(comm, path, cmode, info), ncidp) }
}

/// Gives an open file its number, and the code that it was opened with.
///
/// # Safety
///
/// `ncidp` is null or a place for a number.
pub(super) unsafe fn number(opened: Result<(File, Code)>, ncidp: *mut c_int) -> c_int {
    let outcome = opened.and_then(|(file, code)| Ok((files::add(file)?, code)));
    let (ncid, code) = outcome.unwrap_or_else(|code| (-1, code));
    // SAFETY: the caller vouches for the place.
    unsafe { give(ncidp, ncid) };
    code
}

/// The path and the communicator of a call that opens a file.
///
/// # Safety
///
/// As in C.
unsafe fn place_of<'a>(
    comm: usize,
    path: *const c_char,
) -> Result<(&'a str, Arc<dyn Communicator>)> {
    // SAFETY: the arguments are as C says.
    unsafe {
        let path = path_of(path)?;
        let comm = MpiComm::from_raw_handle(comm).map_err(|e| of_mpi(&e))?;
        warn_of_launcher();
        Ok((path, Arc::new(comm)))
    }
}

/// Says once that the program's MPI is not the launcher's.
fn warn_of_launcher() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        if let Some(why) = wrong_launcher() {
            eprintln!("pnetcdf: warning: {why}");
        }
    });
}

unsafe fn create_file(
    comm: usize,
    path: *const c_char,
    cmode: c_int,
    info: usize,
) -> Result<(File, Code)> {
    // SAFETY: the arguments are as C says.
    let (path, comm) = unsafe { place_of(comm, path) }?;
    let (safe, strict) = switches();
    let [root] = of_root(&*comm, [cmode])?;
    let differs = same_mode(&*comm, cmode, root, safe, NC_EMULTIDEFINE_CMODE);
    let version = version_of(root)?;
    files::has_room()?;
    // SAFETY: the handle is as C says.
    let info = unsafe { hints_of(info) }?;
    let hints = hints_for(&info);
    let options = CreateOptions::new()
        .version(version)
        .clobber(root & NC_NOCLOBBER == 0)
        .fill(FillMode::NoFill)
        .fill_grown(false)
        .short_file(true)
        .align(forward())
        .comm(comm.clone())
        .hints(hints.clone());
    let directory = hints.with_environment().makes_directory();
    make_way(&*comm, without_prefix(path), root & NC_NOCLOBBER == 0, directory)?;
    let define =
        Dataset::create(without_prefix(path), options).map_err(|e| together(&*comm, &e))?;
    let file = File {
        path: path.to_string(),
        comm,
        state: State::Define(Box::new(define)),
        version,
        read_only: false,
        independent: false,
        // Ranks that define different things cannot be compared.
        safe: safe && !merges(&info),
        strict,
        fill: false,
        new: true,
        process: std::process::id(),
        no_fill: Vec::new(),
        old_vars: 0,
        hinted: aligns_of(&info),
        aligns: aligns_of(&info),
        kept_for_records: 0,
        copied: copied_bytes(&info),
        merges: merges(&info),
        info,
        pending: Default::default(),
        lists: Default::default(),
        put_size: 0,
        get_size: 0,
        graph_ids: Default::default(),
        graphs_read: None,
        shown: Default::default(),
        tokens: Default::default(),
    };
    Ok((file, differs))
}

/// A name in a file that is longer than the places that programs have for names.
fn too_long(schema: &Schema) -> Option<&str> {
    let attrs = schema.vars.iter().flat_map(|variable| variable.attrs.iter());
    let attrs = schema.attrs.iter().chain(attrs).map(|attribute| &*attribute.name);
    let dims = schema.dims.iter().map(|dimension| &*dimension.name);
    let vars = schema.vars.iter().map(|variable| &*variable.name);
    attrs.chain(dims).chain(vars).find(|name| name.len() > MAX_NAME)
}

pub(crate) unsafe fn open(
    comm: usize,
    path: *const c_char,
    omode: c_int,
    info: usize,
    ncidp: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { number(open_file((comm, path), omode, info, How::There), ncidp) }
}

/// How a file is opened.
pub(super) enum How {
    /// As it is there.
    There,
    /// For a transaction, that is made for this version; 0 for the newest.
    Begin(Box<BeginOptions>, u64),
    /// When there is a version behind this one, for at most so long.
    Next(u64, Option<Duration>),
}

pub(super) unsafe fn open_file(
    (comm, path): (usize, *const c_char),
    omode: c_int,
    info: usize,
    how: How,
) -> Result<(File, Code)> {
    // SAFETY: the arguments are as C says.
    let (path, comm) = unsafe { place_of(comm, path) }?;
    let (safe, strict) = switches();
    // What is waited for need not be there.
    let format = if comm.rank() == 0 && !matches!(how, How::Next(..)) {
        match format_of(path) {
            Ok(-1) => NC_ENOTNC,
            Ok(format) if NETCDF4_FORMATS.contains(&format) => {
                told(NC_ENOTBUILT, "netCDF-4 files are not read")
            }
            Ok(format) => format,
            Err(code) => code,
        }
    } else {
        0
    };
    let [format, root] = of_root(&*comm, [format, omode])?;
    if format < 0 {
        return Err(format);
    }
    let differs = same_mode(&*comm, omode, root, safe, NC_EMULTIDEFINE_OMODE);
    if root & (NC_DISKLESS | NC_MMAP) != 0 {
        return Err(NC_EINVAL_OMODE);
    }
    files::has_room()?;
    // SAFETY: the handle is as C says.
    let info = unsafe { hints_of(info) }?;
    let writable = root & NC_WRITE != 0;
    let options = OpenOptions::new()
        .writable(writable)
        .fill(FillMode::NoFill)
        .fill_grown(false)
        .short_file(true)
        .align(forward())
        .comm(comm.clone())
        .hints(hints_for(&info));
    let name = without_prefix(path);
    let dataset = match how {
        How::There => Dataset::open_with(name, options),
        How::Begin(begin, 0) => Dataset::begin(name, begin.open(options)),
        How::Begin(begin, base) => Dataset::begin(name, begin.open(options).base(base)),
        How::Next(after, timeout) => Dataset::open_with(name, options.after(after, timeout)),
    };
    let dataset = dataset.map_err(|e| together(&*comm, &e))?;
    if let Some((first, second, offset)) = esker::overlap(dataset.header()) {
        let (first, second) = (&first.name, &second.name);
        let why = format!("{path}: \"{first}\" and \"{second}\" overlap at byte {offset}");
        return Err(told(NC_ENOTNC, why));
    }
    // Variables that cannot be shown as arrays are an error now, and not when they are read.
    let shown = dataset.plain_schema().map_err(|error| {
        let why = format!("{error}; the hint esker_raw=1 shows the file as other tools see it");
        told(NC_ENOTNC, why)
    });
    let code = least(&*comm, shown.as_ref().err().copied().unwrap_or(0));
    if code != 0 {
        return Err(code);
    }
    if let Some(name) = too_long(dataset.schema()) {
        return Err(told(NC_EMAXNAME, format!("{path}: \"{name}\"")));
    }
    let version = dataset.schema().version;
    let vars = dataset.schema().vars.len();
    // Rank 0 read it for all.
    let get_size = if comm.rank() == 0 { dataset.header().layout.header_len } else { 0 };
    let file = File {
        path: path.to_string(),
        comm,
        state: State::Data(Box::new(dataset)),
        version,
        read_only: !writable,
        independent: false,
        // Ranks that define different things cannot be compared.
        safe: safe && !merges(&info),
        strict,
        fill: false,
        new: false,
        process: std::process::id(),
        // As in PnetCDF, whatever the file was created with: it does not say.
        no_fill: vec![false; vars],
        old_vars: vars,
        hinted: aligns_of(&info),
        aligns: aligns_of(&info),
        kept_for_records: 0,
        copied: copied_bytes(&info),
        merges: merges(&info),
        info,
        pending: Default::default(),
        lists: Default::default(),
        put_size: 0,
        get_size,
        graph_ids: Default::default(),
        graphs_read: None,
        shown: Default::default(),
        tokens: Default::default(),
    };
    Ok((file, differs))
}

/// The format by the file's first bytes; -1 if it is none that is known.
fn format_of(path: &str) -> Result<c_int> {
    use std::io::{Read, Seek, SeekFrom};
    let name = Path::new(without_prefix(path));
    let container = match esker::is_container(&LocalStore, name).map_err(|e| of(&e))? {
        true => Some((name.to_path_buf(), None)),
        false => esker::version_in_path(&LocalStore, name)
            .map_err(|e| of(&e))?
            .map(|(path, version)| (path, Some(version))),
    };
    if let Some((path, version)) = container {
        // A container says itself what it would be as one file.
        let header = esker::container_header(&LocalStore, &path, version).map_err(|e| of(&e))?;
        return Ok(header.schema.version.byte().into());
    }
    let name = esker::classic_of(&LocalStore, name).map_err(|e| of(&e.into()))?;
    let mut file = std::fs::File::open(name).map_err(|error| {
        let code = match error.raw_os_error() {
            Some(libc::ENOENT) => NC_ENOENT,
            Some(libc::EACCES) => NC_EACCESS,
            Some(libc::ENAMETOOLONG) => NC_EBAD_FILE,
            Some(libc::EMFILE | libc::ENFILE) => NC_ENFILE,
            _ => NC_EFILE,
        };
        told(code, format!("{path}: {error}"))
    })?;
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes).map_err(|error| told(NC_EFILE, format!("{path}: {error}")))?;
    if let [b'C', b'D', b'F', version @ (1 | 2 | 5), ..] = bytes {
        return Ok(version.into());
    }
    // HDF5's signature is at 0, 512, 1024 and so on.
    let mut offset = 0u64;
    loop {
        if bytes == *b"\x89HDF\r\n\x1a\n" {
            return Ok(NETCDF4_FORMATS[0]);
        }
        offset = if offset == 0 { 512 } else { offset * 2 };
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes));
        if read.is_err() {
            return Ok(-1);
        }
    }
}

pub(crate) unsafe fn inq_file_format(filename: *const c_char, formatp: *mut c_int) -> c_int {
    if formatp.is_null() {
        return 0;
    }
    // SAFETY: the arguments are as C says.
    let format = unsafe { path_of(filename) }.and_then(format_of);
    // SAFETY: as above.
    unsafe { give(formatp, *format.as_ref().unwrap_or(&-1)) };
    format.err().unwrap_or(0)
}

pub(crate) unsafe fn delete(filename: *const c_char, _info: usize) -> c_int {
    // SAFETY: the name is as C says.
    let removed = unsafe { path_of(filename) }.and_then(|path| {
        let path = Path::new(without_prefix(path));
        match std::fs::symlink_metadata(path) {
            // A link goes, and what it leads to stays.
            Ok(found) if found.file_type().is_symlink() => {
                let removed = std::fs::remove_file(path);
                removed.map_err(|e| of(&StoreError::new(path, "remove", e).into()))
            }
            _ => esker::remove_dataset(&LocalStore, path).map_err(|e| of(&e)),
        }
    });
    removed.err().unwrap_or(0)
}

/// A dataset of another kind that is to be replaced goes before the new one is made: a folder does not take
/// the place of a file, nor a file that of a folder. (PnetCDF empties the old one when it creates, too.)
/// Collective.
fn make_way(comm: &dyn Communicator, path: &str, clobber: bool, directory: bool) -> Result<()> {
    let path = Path::new(path);
    let gone = match std::fs::metadata(path) {
        Ok(_) if comm.rank() != 0 => 0,
        Ok(_) if !clobber => told(NC_EEXIST, format!("{}: it exists", path.display())),
        Ok(found) if clobber && found.is_dir() != directory => {
            // A folder that is no dataset is not ours to remove.
            let is_dataset = || -> esker::Result<bool> {
                let classic = esker::classic_of(&LocalStore, path)?;
                Ok(esker::is_container(&LocalStore, path)? || classic != path)
            };
            let removed = match !found.is_dir() || is_dataset().unwrap_or(false) {
                true => esker::remove_dataset(&LocalStore, path),
                false => Ok(()),
            };
            removed.err().map_or(0, |e| of(&e))
        }
        _ => 0,
    };
    match least(comm, gone) {
        0 => Ok(()),
        code => Err(code),
    }
}

pub(crate) unsafe fn enddef(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        file.settle(file.require_define(), &[])?;
        file.enddef([0; 4])
    })
}

pub(crate) unsafe fn _enddef(
    ncid: c_int,
    h_minfree: i64,
    v_align: i64,
    v_minfree: i64,
    r_align: i64,
) -> c_int {
    files::with(ncid, |file| {
        let numbers = [h_minfree, v_align, v_minfree, r_align];
        let checked = file.require_define().and_then(|()| match numbers.iter().any(|n| *n < 0) {
            true => Err(NC_EINVAL),
            false => Ok(()),
        });
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        file.settle(checked, &[(&bytes, NC_EMULTIDEFINE_FNC_ARGS)])?;
        file.enddef(numbers.map(|n| n as u64))
    })
}

pub(crate) unsafe fn redef(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        file.require_writable()?;
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        if let State::Data(dataset) = &file.state
            && !dataset.subfiles().is_empty()
        {
            let why = "the definitions of a dataset with sub-files are final: `esker copy` makes one file of it";
            return Err(told(NC_ENOTSUPPORT, why));
        }
        let state = std::mem::replace(&mut file.state, State::Lost);
        let State::Data(dataset) = state else { return Err(NC_EINDEFINE) };
        file.changed(Touched::Anything);
        file.independent = false;
        let define = dataset.redef().map_err(|e| together(&*file.comm, &e))?;
        // With definitions by shares, more than this rank knew before.
        file.old_vars = define.schema().vars.len();
        file.no_fill.resize(file.old_vars, true);
        file.state = State::Define(Box::new(define));
        Ok(())
    })
}

pub(crate) unsafe fn set_default_format(format: c_int, old_formatp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { give(old_formatp, DEFAULT_FORMAT.load(Ordering::Relaxed)) };
    if !matches!(format, 1..=5) {
        return NC_EINVAL;
    }
    DEFAULT_FORMAT.store(format, Ordering::Relaxed);
    0
}

pub(crate) unsafe fn inq_default_format(formatp: *mut c_int) -> c_int {
    if formatp.is_null() {
        return NC_EINVAL;
    }
    // SAFETY: the place is as C says.
    unsafe { give(formatp, DEFAULT_FORMAT.load(Ordering::Relaxed)) };
    0
}

pub(crate) unsafe fn sync(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        if file.read_only {
            return Ok(());
        }
        let comm = file.comm.clone();
        file.dataset()?.sync().map_err(|e| together(&*comm, &e))
    })
}

pub(crate) unsafe fn flush(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() || file.read_only {
            return Ok(());
        }
        let comm = file.comm.clone();
        file.dataset()?.flush().map_err(|e| together(&*comm, &e))
    })
}

pub(crate) unsafe fn sync_numrecs(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        if !has_records(file)? {
            return Ok(());
        }
        file.require_writable()?;
        if !file.independent {
            return Ok(());
        }
        let comm = file.comm.clone();
        file.dataset()?.sync_records().map_err(|e| together(&*comm, &e))
    })
}

fn has_records(file: &File) -> Result<bool> {
    let schema = file.schema()?;
    Ok(schema.vars.iter().any(|var| schema.is_record(var)))
}

pub(crate) unsafe fn begin_indep_data(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        file.independent = true;
        Ok(())
    })
}

pub(crate) unsafe fn end_indep_data(ncid: c_int) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        end_independent(file)
    })
}

pub(super) fn end_independent(file: &mut File) -> Result<()> {
    if !file.independent {
        return Ok(());
    }
    file.independent = false;
    if file.read_only {
        return Ok(());
    }
    let (comm, has_records) = (file.comm.clone(), has_records(file)?);
    let dataset = file.dataset()?;
    let ended = match has_records {
        true => dataset.sync_records(),
        false => dataset.complete_puts(),
    };
    ended.map_err(|e| together(&*comm, &e))
}

pub(crate) unsafe fn close(ncid: c_int) -> c_int {
    let file = match files::remove(ncid) {
        Ok(file) => file,
        Err(code) => return code,
    };
    let mut file = files::lock(&file);
    let mut code = 0;
    let mut first = |outcome: Result<()>| {
        if let (Err(failed), 0) = (outcome, code) {
            code = failed;
        }
    };
    if matches!(file.state, State::Define(_)) {
        first(file.enddef([0; 4]));
    }
    if !file.is_defining() && !file.read_only {
        first(end_independent(&mut file));
    }
    let pending = file.pending.requests.len();
    if pending > 0 {
        first(Err(told(NC_EPENDING, format!("{pending} requests were never waited for"))));
        file.pending.requests.clear();
    }
    let comm = file.comm.clone();
    match std::mem::replace(&mut file.state, State::Lost) {
        State::Data(dataset) => {
            for note in dataset.notes().iter().filter(|_| verbose()) {
                eprintln!("pnetcdf: {}", esker_text::sentence(note));
            }
            first(dataset.close().map_err(|e| together(&*comm, &e)));
        }
        State::Define(define) => first(define.abort().map_err(|e| of(&e))),
        State::Lost => {}
    }
    code
}

pub(crate) unsafe fn abort(ncid: c_int) -> c_int {
    let file = match files::remove(ncid) {
        Ok(file) => file,
        Err(code) => return code,
    };
    let mut file = files::lock(&file);
    if file.process != std::process::id() {
        // This process was forked from the one that has it: the name, what grows under it and MPI are its parent's.
        file.state = State::Lost;
        return 0;
    }
    let comm = file.comm.clone();
    let new = file.new;
    let ended =
        if file.is_defining() || file.read_only { Ok(()) } else { end_independent(&mut file) };
    let closed = match std::mem::replace(&mut file.state, State::Lost) {
        State::Data(dataset) => dataset.abort().map_err(|e| together(&*comm, &e)),
        State::Define(define) => define.abort().map_err(|e| of(&e)),
        State::Lost => Ok(()),
    };
    if new && comm.rank() == 0 {
        // PnetCDF truncates the file at the start, so nothing of an older one is promised.
        let _ = esker::remove_dataset(&LocalStore, Path::new(without_prefix(&file.path)));
    }
    if new {
        least(&*comm, 0);
    }
    ended.and(closed).err().unwrap_or(0)
}
