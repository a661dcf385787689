//! The numbers of errors: PnetCDF's, their names, their words, and which of ours is which.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::OnceLock;

use esker::{Error, SchemaError, SelectionError};
use esker_format::Fault;

/// A code of `pnetcdf.h`: 0, or negative.
pub(crate) type Code = std::ffi::c_int;

/// A result whose error is the code that C gets.
pub(crate) type Result<T, E = Code> = std::result::Result<T, E>;

macro_rules! codes {
    ($( $name:ident = $number:literal, $words:literal; )*) => {
        $( #[allow(dead_code, reason = "the interface's list is longer than ours")]
        pub(crate) const $name: Code = $number; )*

        /// Number, name and words, as C's strings.
        const CODES: &[(Code, &CStr, &CStr)] = &[
            $( ($number, c_text(concat!(stringify!($name), "\0")), c_text(concat!($words, "\0"))), )*
        ];
    };
}

/// A literal that ends with a zero.
const fn c_text(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

codes! {
    NC_NOERR = 0, "No error";
    NC_EBADID = -33, "NetCDF: Not a valid ID";
    NC_ENFILE = -34, "NetCDF: Too many files open";
    NC_EEXIST = -35, "NetCDF: File exists && NC_NOCLOBBER";
    NC_EINVAL = -36, "NetCDF: Invalid argument";
    NC_EPERM = -37, "NetCDF: Write to read only";
    NC_ENOTINDEFINE = -38, "NetCDF: Operation not allowed in data mode";
    NC_EINDEFINE = -39, "NetCDF: Operation not allowed in define mode";
    NC_EINVALCOORDS = -40, "NetCDF: Index exceeds dimension bound";
    NC_EMAXDIMS = -41, "NetCDF: NC_MAX_DIMS or NC_MAX_VAR_DIMS exceeded";
    NC_ENAMEINUSE = -42, "NetCDF: String match to name in use";
    NC_ENOTATT = -43, "NetCDF: Attribute not found";
    NC_EMAXATTS = -44, "NetCDF: NC_MAX_ATTRS exceeded";
    NC_EBADTYPE = -45, "NetCDF: Not a valid data type or _FillValue type mismatch";
    NC_EBADDIM = -46, "NetCDF: Invalid dimension ID or name";
    NC_EUNLIMPOS = -47, "NetCDF: NC_UNLIMITED in the wrong index";
    NC_EMAXVARS = -48, "NetCDF: NC_MAX_VARS exceeded";
    NC_ENOTVAR = -49, "NetCDF: Variable not found";
    NC_EGLOBAL = -50, "NetCDF: Action prohibited on NC_GLOBAL varid";
    NC_ENOTNC = -51, "NetCDF: Unknown file format (file format violates CDF specification)";
    NC_ESTS = -52, "NetCDF: In Fortran, string too short";
    NC_EMAXNAME = -53, "NetCDF: NC_MAX_NAME exceeded";
    NC_EUNLIMIT = -54, "NetCDF: NC_UNLIMITED size already in use";
    NC_ENORECVARS = -55, "NetCDF: nc_rec op when there are no record vars";
    NC_ECHAR = -56, "NetCDF: Attempt to convert between text & numbers";
    NC_EEDGE = -57, "NetCDF: Start+count exceeds dimension bound";
    NC_ESTRIDE = -58, "NetCDF: Illegal stride";
    NC_EBADNAME = -59, "NetCDF: Name contains illegal characters";
    NC_ERANGE = -60, "NetCDF: Numeric conversion not representable";
    NC_ENOMEM = -61, "NetCDF: Memory allocation (malloc) failure";
    NC_EVARSIZE = -62, "NetCDF: One or more variable sizes violate format constraints";
    NC_EDIMSIZE = -63, "NetCDF: Invalid dimension size";
    NC_ETRUNC = -64, "NetCDF: File likely truncated or possibly corrupted";
    NC_EAXISTYPE = -65, "NetCDF: Illegal axis type";
    NC_EDAP = -66, "NetCDF: DAP failure";
    NC_ECURL = -67, "NetCDF: libcurl failure";
    NC_EIO = -68, "NetCDF: I/O failure";
    NC_ENODATA = -69, "NetCDF: Variable has no data";
    NC_EDAPSVC = -70, "NetCDF: DAP server error";
    NC_EDAS = -71, "NetCDF: Malformed or inaccessible DAP DAS";
    NC_EDDS = -72, "NetCDF: Malformed or inaccessible DAP2 DDS or DAP4 DMR response";
    NC_EDATADDS = -73, "NetCDF: Malformed or inaccessible DAP2 DATADDS or DAP4 DAP response";
    NC_EDAPURL = -74, "NetCDF: Malformed URL";
    NC_EDAPCONSTRAINT = -75, "NetCDF: Malformed or unexpected Constraint";
    NC_ETRANSLATION = -76, "NetCDF: Untranslatable construct";
    NC_EACCESS = -77, "NetCDF: Access failure";
    NC_EAUTH = -78, "NetCDF: Authorization failure";
    NC_ENOTFOUND = -90, "NetCDF: file not found";
    NC_ECANTREMOVE = -91, "NetCDF: cannot delete file";
    NC_EINTERNAL = -92, "NetCDF: internal library error; Please contact Unidata support";
    NC_EPNETCDF = -93, "NetCDF: PnetCDF error";
    NC_EHDFERR = -101, "NetCDF: HDF error";
    NC_ECANTREAD = -102, "NetCDF: Can't read file";
    NC_ECANTWRITE = -103, "NetCDF: Can't write file";
    NC_ECANTCREATE = -104, "NetCDF: Can't create file";
    NC_EFILEMETA = -105, "NetCDF: Can't add HDF5 file metadata";
    NC_EDIMMETA = -106, "NetCDF: Can't define dimensional metadata";
    NC_EATTMETA = -107, "NetCDF: Can't open HDF5 attribute";
    NC_EVARMETA = -108, "NetCDF: Problem with variable metadata.";
    NC_ENOCOMPOUND = -109, "NetCDF: Can't create HDF5 compound type";
    NC_EATTEXISTS = -110, "NetCDF: Attempt to create attribute that already exists";
    NC_ENOTNC4 = -111, "NetCDF: Attempting netcdf-4 operation on netcdf-3 file";
    NC_ESTRICTNC3 = -112, "NetCDF: Attempting netcdf-4 operation on strict nc3 netcdf-4 file";
    NC_ENOTNC3 = -113, "NetCDF: Attempting netcdf-3 operation on netcdf-4 file";
    NC_ENOPAR = -114, "NetCDF: Parallel operation on file opened for non-parallel access";
    NC_EPARINIT = -115, "NetCDF: Error initializing for parallel access";
    NC_EBADGRPID = -116, "NetCDF: Bad group ID";
    NC_EBADTYPID = -117, "NetCDF: Bad type ID";
    NC_ETYPDEFINED = -118, "NetCDF: Type has already been defined and may not be edited";
    NC_EBADFIELD = -119, "NetCDF: Bad field ID";
    NC_EBADCLASS = -120, "NetCDF: Bad class";
    NC_EMAPTYPE = -121, "NetCDF: Mapped access for atomic types only";
    NC_ELATEFILL = -122, "NetCDF: Attempt to define fill value when data already exists.";
    NC_ELATEDEF = -123, "NetCDF: Attempt to define var properties, like deflate, after enddef.";
    NC_EDIMSCALE = -124, "NetCDF: Problem with HDF5 dimscales.";
    NC_ENOGRP = -125, "NetCDF: No group found.";
    NC_ESTORAGE = -126, "NetCDF: Cannot specify both contiguous and chunking.";
    NC_EBADCHUNK = -127, "NetCDF: Bad chunk sizes.";
    NC_ENOTBUILT = -128, "NetCDF: Attempt to use feature that was not turned on when netCDF was built.";
    NC_EDISKLESS = -129, "NetCDF: Error in using diskless access";
    NC_ECANTEXTEND = -130, "NetCDF: Attempt to extend dataset during NC_INDEPENDENT I/O operation. Use nc_var_par_access to set mode NC_COLLECTIVE before extending variable.";
    NC_EMPI = -131, "NetCDF: MPI operation failed.";
    NC_EFILTER = -132, "NetCDF: Filter error: bad id or parameters or duplicate filter";
    NC_ERCFILE = -133, "NetCDF: RC File Failure.";
    NC_ENULLPAD = -134, "NetCDF: File fails strict Null-Byte Header check.";
    NC_EINMEMORY = -135, "NetCDF: In-memory File operation failed.";
    NC_ENOFILTER = -136, "NetCDF: Filter error: unimplemented filter encountered";
    NC_ENCZARR = -137, "NetCDF: NCZarr error";
    NC_ES3 = -138, "NetCDF: AWS S3 error";
    NC_EEMPTY = -139, "NetCDF: Attempt to read empty NCZarr map key";
    NC_EOBJECT = -140, "NetCDF: Some object exists when it should not";
    NC_ENOOBJECT = -141, "NetCDF: Some object not found";
    NC_EPLUGIN = -142, "NetCDF: Unclassified failure in accessing a dynamically loaded plugin";
    NC_ESMALL = -201, "Size of MPI_Offset or MPI_Aint too small for requested format";
    NC_ENOTINDEP = -202, "Operation not allowed in collective data mode";
    NC_EINDEP = -203, "Operation not allowed in independent data mode";
    NC_EFILE = -204, "Unknown error in file operation";
    NC_EREAD = -205, "Unknown error occurs in reading file";
    NC_EWRITE = -206, "Unknown error occurs in writing file";
    NC_EOFILE = -207, "Fail to open/create file";
    NC_EMULTITYPES = -208, "Multiple etypes used in MPI datatype";
    NC_EIOMISMATCH = -209, "Input/Output data amount mismatch";
    NC_ENEGATIVECNT = -210, "Negative count is prohibited";
    NC_EUNSPTETYPE = -211, "Unsupported etype in the MPI datatype describing the I/O buffer";
    NC_EINVAL_REQUEST = -212, "Invalid nonblocking request ID.";
    NC_EAINT_TOO_SMALL = -213, "MPI_Aint not large enough to hold requested value.";
    NC_ENOTSUPPORT = -214, "Feature is not yet supported.";
    NC_ENULLBUF = -215, "Trying to attach a NULL buffer or the buffer size is negative.";
    NC_EPREVATTACHBUF = -216, "Previous attached buffer is found.";
    NC_ENULLABUF = -217, "No attached buffer is found.";
    NC_EPENDINGBPUT = -218, "Cannot detach buffer due to pending bput request is found.";
    NC_EINSUFFBUF = -219, "Attached buffer is too small.";
    NC_ENOENT = -220, "Specified netCDF file does not exist.";
    NC_EINTOVERFLOW = -221, "Integer type casting overflow.";
    NC_ENOTENABLED = -222, "Feature is not enabled at configure time.";
    NC_EBAD_FILE = -223, "Invalid file name (e.g., path name too long).";
    NC_ENO_SPACE = -224, "Not enough space.";
    NC_EQUOTA = -225, "Quota exceeded.";
    NC_ENULLSTART = -226, "Argument start is a NULL pointer";
    NC_ENULLCOUNT = -227, "Argument count is a NULL pointer";
    NC_EINVAL_CMODE = -228, "Invalid file create mode";
    NC_ETYPESIZE = -229, "MPI datatype size error (bigger than the variable size)";
    NC_ETYPE_MISMATCH = -230, "etype of the MPI datatype mismatches the variable data type";
    NC_ETYPESIZE_MISMATCH = -231, "MPI filetype size mismatches buftype size * bufcount";
    NC_ESTRICTCDF2 = -232, "Attempting CDF-5 operation on strict CDF or CDF-2 file";
    NC_ENOTRECVAR = -233, "Attempting operation only for record variables";
    NC_ENOTFILL = -234, "Attempting to fill a record when its variable fill mode is off";
    NC_EINVAL_OMODE = -235, "Invalid or unsupported file open mode";
    NC_EPENDING = -236, "Pending nonblocking request is found at file close";
    NC_EMAX_REQ = -237, "Size of I/O request exceeds INT_MAX";
    NC_EBADLOG = -238, "Unrecognized burst buffering log file format.";
    NC_EFLUSHED = -239, "Nonblocking requests already flushed.";
    NC_EADIOS = -240, "Unknown ADIOS error.";
    NC_EFSTYPE = -241, "File system type not supported by the GIO driver.";
    NC_EDRIVER = -242, "Invalid PnetCDF I/O driver.";
    NC_EFILEVIEW = -243, "PnetCDF internal error: MPI fileview's offsets are not in a monotonically non-decreasing order.";
    NC_EMULTIDEFINE = -250, "File header is inconsistent among processes";
    NC_EMULTIDEFINE_OMODE = -251, "File open mode is inconsistent among processes.";
    NC_EMULTIDEFINE_DIM_NUM = -252, "Number of dimensions is inconsistent among processes.";
    NC_EMULTIDEFINE_DIM_SIZE = -253, "Dimension size is inconsistent among processes.";
    NC_EMULTIDEFINE_DIM_NAME = -254, "Dimension name is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_NUM = -255, "Number of variables is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_NAME = -256, "Variable name is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_NDIMS = -257, "Dimensionality of this variable is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_DIMIDS = -258, "Dimension IDs used to define this variable are inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_TYPE = -259, "Data type of this variable is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_LEN = -260, "Number of elements of this variable is inconsistent among processes.";
    NC_EMULTIDEFINE_NUMRECS = -261, "Number of records is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_BEGIN = -262, "Starting file offset of this variable is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_NUM = -263, "Number of attributes is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_SIZE = -264, "Memory space used by attribute (internal use) is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_NAME = -265, "Attribute name is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_TYPE = -266, "Attribute type is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_LEN = -267, "Attribute length is inconsistent among processes.";
    NC_EMULTIDEFINE_ATTR_VAL = -268, "Attribute value is inconsistent among processes.";
    NC_EMULTIDEFINE_FNC_ARGS = -269, "Arguments in collective API are inconsistent among processes.";
    NC_EMULTIDEFINE_FILL_MODE = -270, "File fill mode is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_FILL_MODE = -271, "Variable fill mode is inconsistent among processes.";
    NC_EMULTIDEFINE_VAR_FILL_VALUE = -272, "Variable fill value is inconsistent among processes.";
    NC_EMULTIDEFINE_CMODE = -273, "File create mode is inconsistent among processes.";
    NC_EMULTIDEFINE_HINTS = -274, "I/O hints are not consistent among processes.";
}

/// What a code means, in PnetCDF's words, which programs compare; `None` for a number that is no
/// code.
pub(crate) fn words(code: Code) -> Option<&'static CStr> {
    if code > 0 {
        // SAFETY: strerror returns a text that ends with a zero, for any number, and it is
        // valid until the next call, as in PnetCDF.
        let text = unsafe { libc::strerror(code) };
        // SAFETY: as above.
        return (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    }
    CODES.iter().find(|(number, _, _)| *number == code).map(|row| row.2)
}

/// The name of a code.
pub(crate) fn name(code: Code) -> Option<&'static CStr> {
    CODES.iter().find(|(number, _, _)| *number == code).map(|row| row.1)
}

/// Whether errors are told on the standard error: `PNETCDF_VERBOSE_DEBUG_MODE` or
/// `ESKER_VERBOSE` is set, and not to 0.
pub(crate) fn verbose() -> bool {
    static VERBOSE: OnceLock<bool> = OnceLock::new();
    let is_set = |name| std::env::var_os(name).is_some_and(|value| value != "0");
    *VERBOSE.get_or_init(|| is_set("PNETCDF_VERBOSE_DEBUG_MODE") || is_set("ESKER_VERBOSE"))
}

thread_local! {
    /// What was said in the call that this thread is in.
    static SAID: RefCell<Vec<(Code, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps why a call gets a code, if that is wanted, and gives the code.
pub(crate) fn told(code: Code, why: impl std::fmt::Display) -> Code {
    if verbose() {
        SAID.with_borrow_mut(|said| said.push((code, why.to_string())));
    }
    code
}

/// An argument that an error's sentence can name.
#[derive(Clone, Copy)]
pub(crate) enum About {
    Number(Code),
    /// Null, or a text that ends with a zero.
    Text(*const std::ffi::c_char),
}

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            About::Number(n) => write!(f, "{n}"),
            About::Text(text) if text.is_null() => write!(f, "NULL"),
            // SAFETY: the caller of the function in C vouches for it.
            About::Text(text) => write!(f, "{:?}", unsafe { CStr::from_ptr(text) }),
        }
    }
}

/// The end of a function of the interface: tells each error in a sentence, if that is wanted.
#[inline]
pub(crate) fn leave(function: &str, about: &[(&str, About)], code: Code) -> Code {
    if verbose() {
        tell(function, about, code);
    }
    code
}

#[cold]
fn tell(function: &str, about: &[(&str, About)], code: Code) {
    let mut said = SAID.take();
    if said.is_empty() && code != 0 {
        said.push((code, words(code).unwrap_or(c"Unknown Error").to_string_lossy().into_owned()));
    }
    for (code, why) in said {
        let name = name(code).unwrap_or(c"?").to_string_lossy();
        let about: Vec<String> =
            about.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let line = format!("{function} ({}): {name}: {why}", about.join(", "));
        eprintln!("pnetcdf: {}", esker_text::sentence(line));
    }
}

/// The code of an error of the library.
pub(crate) fn of(error: &Error) -> Code {
    told(code_of(error), error)
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::Store(error) => of_system(&error.source),
        Error::Decode { source, .. } => match source.fault {
            Fault::Magic(_) => NC_ENOTNC,
            Fault::Truncated { .. } => NC_ETRUNC,
            Fault::Type { .. } => NC_EBADTYPE,
            Fault::DimId { .. } => NC_EBADDIM,
            Fault::SecondUnlimited { .. } => NC_EUNLIMIT,
            Fault::UnlimitedNotFirst { .. } => NC_EUNLIMPOS,
            Fault::SizeOverflow => NC_EVARSIZE,
            Fault::Count { .. } | Fault::Negative { .. } => match &*source.object {
                "the list of dimensions" => NC_EMAXDIMS,
                "the list of variables" => NC_EMAXVARS,
                _ => NC_EMAXATTS,
            },
            _ => NC_ENOTNC,
        },
        Error::Schema { source, .. } => of_schema(source),
        Error::NoSuchVariable { .. } => NC_ENOTVAR,
        Error::Selection { source, .. } => match source {
            SelectionError::ZeroStride { .. } => NC_ESTRIDE,
            SelectionError::OutOfBounds { len, start, .. } if start >= len => NC_EINVALCOORDS,
            SelectionError::OutOfBounds { .. } => NC_EEDGE,
            _ => NC_EINVAL,
        },
        Error::NoMemory { .. } => NC_ENOMEM,
        Error::Memory { .. } => NC_EIOMISMATCH,
        Error::Convert { .. } | Error::Unchecked(_) => NC_ECHAR,
        Error::Range { .. } => NC_ERANGE,
        Error::ShortFile { .. } => NC_EREAD,
        Error::ReadOnly { .. } => NC_EPERM,
        Error::Overlap { .. } | Error::StaleJournal { .. } => NC_ENOTNC,
        Error::Definitions { .. } | Error::NotAlike { .. } => NC_EMULTIDEFINE,
        Error::Redefined { .. } => NC_EINVAL_REQUEST,
        Error::Buffer(_) => NC_EINSUFFBUF,
        Error::TooManyRecords { .. } => NC_EINTOVERFLOW,
        Error::BurstBuffer { .. } => NC_EBADLOG,
        Error::Graph { .. } => NC_EINVAL,
        Error::Writers { .. } => NC_EACCESS,
        Error::NoVersionYet { .. } => NC_ENOENT,
        Error::Comm(_) | Error::Garbled | Error::Message { .. } => NC_EMPI,
        // Another rank has the code; here its sentence is all there is.
        _ => NC_EFILE,
    }
}

/// The code of a definition that cannot be made.
pub(crate) fn of_schema(error: &SchemaError) -> Code {
    match error {
        SchemaError::BadName { .. } => NC_EBADNAME,
        SchemaError::Exists { .. } => NC_ENAMEINUSE,
        SchemaError::NotFound { kind: "attribute", .. } => NC_ENOTATT,
        SchemaError::NotFound { kind: "dimension", .. } | SchemaError::NoSuchDim { .. } => {
            NC_EBADDIM
        }
        SchemaError::NotFound { .. } | SchemaError::NoSuchVar { .. } => NC_ENOTVAR,
        SchemaError::SecondUnlimited { .. } => NC_EUNLIMIT,
        SchemaError::UnlimitedNotFirst { .. } => NC_EUNLIMPOS,
        SchemaError::DimLength { .. } => NC_EDIMSIZE,
        SchemaError::TypeNotInVersion { .. } => NC_ESTRICTCDF2,
        SchemaError::TooLarge { .. } => NC_EVARSIZE,
        _ => NC_EINVAL,
    }
}

fn of_system(error: &std::io::Error) -> Code {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => NC_ENOENT,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => NC_EACCESS,
        Some(libc::EEXIST) => NC_EEXIST,
        Some(libc::EMFILE | libc::ENFILE) => NC_ENFILE,
        Some(libc::ENAMETOOLONG | libc::EISDIR) => NC_EBAD_FILE,
        Some(libc::ENOSPC) => NC_ENO_SPACE,
        Some(libc::EDQUOT) => NC_EQUOTA,
        _ => match error.kind() {
            std::io::ErrorKind::AlreadyExists => NC_EEXIST,
            std::io::ErrorKind::NotFound => NC_ENOENT,
            _ => NC_EFILE,
        },
    }
}

/// The code of an MPI function that failed.
pub(crate) fn of_mpi(error: &esker_comm::CommError) -> Code {
    told(NC_EMPI, error)
}
