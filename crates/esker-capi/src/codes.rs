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
    NC_ETRUNC = -64, "The file seems to be cut short or damaged";
    NC_EAXISTYPE = -65, "Unknown axis type";
    NC_EDAP = -66, "DAP failure";
    NC_ECURL = -67, "libcurl failure";
    NC_EIO = -68, "Input or output failed";
    NC_ENODATA = -69, "The variable has no data";
    NC_EDAPSVC = -70, "DAP server failure";
    NC_EDAS = -71, "Bad DAP attributes";
    NC_EDDS = -72, "Bad DAP description";
    NC_EDATADDS = -73, "Bad DAP data";
    NC_EDAPURL = -74, "Bad URL";
    NC_EDAPCONSTRAINT = -75, "Bad DAP constraint";
    NC_ETRANSLATION = -76, "It cannot be translated";
    NC_EACCESS = -77, "No permission";
    NC_EAUTH = -78, "Not authorised";
    NC_ENOTFOUND = -90, "Not found";
    NC_ECANTREMOVE = -91, "It cannot be removed";
    NC_EINTERNAL = -92, "An error inside the library";
    NC_EPNETCDF = -93, "An error of the parallel library";
    NC_EHDFERR = -101, "An error of netCDF-4, which this library does not have";
    NC_ECANTREAD = -102, "An error of netCDF-4, which this library does not have";
    NC_ECANTWRITE = -103, "An error of netCDF-4, which this library does not have";
    NC_ECANTCREATE = -104, "An error of netCDF-4, which this library does not have";
    NC_EFILEMETA = -105, "An error of netCDF-4, which this library does not have";
    NC_EDIMMETA = -106, "An error of netCDF-4, which this library does not have";
    NC_EATTMETA = -107, "An error of netCDF-4, which this library does not have";
    NC_EVARMETA = -108, "An error of netCDF-4, which this library does not have";
    NC_ENOCOMPOUND = -109, "An error of netCDF-4, which this library does not have";
    NC_EATTEXISTS = -110, "An error of netCDF-4, which this library does not have";
    NC_ENOTNC4 = -111, "An error of netCDF-4, which this library does not have";
    NC_ESTRICTNC3 = -112, "Not in a classic netCDF-4 file";
    NC_ENOTNC3 = -113, "An error of netCDF-4, which this library does not have";
    NC_ENOPAR = -114, "An error of netCDF-4, which this library does not have";
    NC_EPARINIT = -115, "An error of netCDF-4, which this library does not have";
    NC_EBADGRPID = -116, "An error of netCDF-4, which this library does not have";
    NC_EBADTYPID = -117, "An error of netCDF-4, which this library does not have";
    NC_ETYPDEFINED = -118, "An error of netCDF-4, which this library does not have";
    NC_EBADFIELD = -119, "An error of netCDF-4, which this library does not have";
    NC_EBADCLASS = -120, "An error of netCDF-4, which this library does not have";
    NC_EMAPTYPE = -121, "An error of netCDF-4, which this library does not have";
    NC_ELATEFILL = -122, "The fill value of a variable that has data cannot be changed";
    NC_ELATEDEF = -123, "An error of netCDF-4, which this library does not have";
    NC_EDIMSCALE = -124, "An error of netCDF-4, which this library does not have";
    NC_ENOGRP = -125, "An error of netCDF-4, which this library does not have";
    NC_ESTORAGE = -126, "An error of netCDF-4, which this library does not have";
    NC_EBADCHUNK = -127, "An error of netCDF-4, which this library does not have";
    NC_ENOTBUILT = -128, "This library was built without that feature";
    NC_EDISKLESS = -129, "An error of netCDF-4, which this library does not have";
    NC_ECANTEXTEND = -130, "An error of netCDF-4, which this library does not have";
    NC_EMPI = -131, "An MPI function failed";
    NC_EFILTER = -132, "An error of netCDF-4, which this library does not have";
    NC_ERCFILE = -133, "An error of netCDF-4, which this library does not have";
    NC_ENULLPAD = -134, "The padding of the header is not zero";
    NC_EINMEMORY = -135, "An error of netCDF-4, which this library does not have";
    NC_ENOFILTER = -136, "An error of netCDF-4, which this library does not have";
    NC_ENCZARR = -137, "An error of netCDF-4, which this library does not have";
    NC_ES3 = -138, "An error of netCDF-4, which this library does not have";
    NC_EEMPTY = -139, "An error of netCDF-4, which this library does not have";
    NC_EOBJECT = -140, "An error of netCDF-4, which this library does not have";
    NC_ENOOBJECT = -141, "An error of netCDF-4, which this library does not have";
    NC_EPLUGIN = -142, "An error of netCDF-4, which this library does not have";
    NC_ESMALL = -201, "MPI_Offset is too small for this format";
    NC_ENOTINDEP = -202, "Independent functions need independent data mode (ncmpi_begin_indep_data)";
    NC_EINDEP = -203, "Collective functions need collective data mode (ncmpi_end_indep_data)";
    NC_EFILE = -204, "A file operation failed";
    NC_EREAD = -205, "Reading the file failed";
    NC_EWRITE = -206, "Writing the file failed";
    NC_EOFILE = -207, "The file cannot be opened or created";
    NC_EMULTITYPES = -208, "The MPI datatype has elements of several types";
    NC_EIOMISMATCH = -209, "The buffer and the selection have different numbers of elements";
    NC_ENEGATIVECNT = -210, "A count is negative";
    NC_EUNSPTETYPE = -211, "The MPI datatype has an element type that is not supported";
    NC_EINVAL_REQUEST = -212, "There is no pending request of this number";
    NC_EAINT_TOO_SMALL = -213, "MPI_Aint is too small for the value";
    NC_ENOTSUPPORT = -214, "Not supported";
    NC_ENULLBUF = -215, "A buffer to attach needs a size above zero";
    NC_EPREVATTACHBUF = -216, "A buffer is attached already";
    NC_ENULLABUF = -217, "No buffer is attached";
    NC_EPENDINGBPUT = -218, "Buffered puts are pending, so the buffer cannot be detached";
    NC_EINSUFFBUF = -219, "The attached buffer has too little room left";
    NC_ENOENT = -220, "There is no such file";
    NC_EINTOVERFLOW = -221, "A number does not fit an int";
    NC_ENOTENABLED = -222, "This feature was not enabled";
    NC_EBAD_FILE = -223, "Invalid file name";
    NC_ENO_SPACE = -224, "No space left";
    NC_EQUOTA = -225, "Quota exceeded";
    NC_ENULLSTART = -226, "The argument start is NULL";
    NC_ENULLCOUNT = -227, "The argument count is NULL";
    NC_EINVAL_CMODE = -228, "Invalid mode for creating a file";
    NC_ETYPESIZE = -229, "The MPI datatype is larger than the variable";
    NC_ETYPE_MISMATCH = -230, "The element type of the MPI datatype is not that of the variable";
    NC_ETYPESIZE_MISMATCH = -231, "The file type and the buffer have different sizes";
    NC_ESTRICTCDF2 = -232, "This type exists in CDF-5 files alone";
    NC_ENOTRECVAR = -233, "It is not a record variable";
    NC_ENOTFILL = -234, "The fill mode of the variable is off";
    NC_EINVAL_OMODE = -235, "Invalid mode for opening a file";
    NC_EPENDING = -236, "Requests were pending when the file was closed";
    NC_EMAX_REQ = -237, "A request is larger than 2 GiB";
    NC_EBADLOG = -238, "The log of a burst buffer is damaged";
    NC_EFLUSHED = -239, "The request was written already";
    NC_EADIOS = -240, "An ADIOS error";
    NC_EMULTIDEFINE = -250, "The ranks have different headers";
    NC_EMULTIDEFINE_OMODE = -251, "The ranks open with different modes";
    NC_EMULTIDEFINE_DIM_NUM = -252, "The ranks have different numbers of dimensions";
    NC_EMULTIDEFINE_DIM_SIZE = -253, "The ranks give a dimension different lengths";
    NC_EMULTIDEFINE_DIM_NAME = -254, "The ranks give a dimension different names";
    NC_EMULTIDEFINE_VAR_NUM = -255, "The ranks have different numbers of variables";
    NC_EMULTIDEFINE_VAR_NAME = -256, "The ranks give a variable different names";
    NC_EMULTIDEFINE_VAR_NDIMS = -257, "The ranks give a variable different numbers of dimensions";
    NC_EMULTIDEFINE_VAR_DIMIDS = -258, "The ranks give a variable different dimensions";
    NC_EMULTIDEFINE_VAR_TYPE = -259, "The ranks give a variable different types";
    NC_EMULTIDEFINE_VAR_LEN = -260, "The ranks give a variable different sizes";
    NC_EMULTIDEFINE_NUMRECS = -261, "The ranks have different numbers of records";
    NC_EMULTIDEFINE_VAR_BEGIN = -262, "The ranks place a variable differently";
    NC_EMULTIDEFINE_ATTR_NUM = -263, "The ranks have different numbers of attributes";
    NC_EMULTIDEFINE_ATTR_SIZE = -264, "The ranks give an attribute different sizes";
    NC_EMULTIDEFINE_ATTR_NAME = -265, "The ranks give an attribute different names";
    NC_EMULTIDEFINE_ATTR_TYPE = -266, "The ranks give an attribute different types";
    NC_EMULTIDEFINE_ATTR_LEN = -267, "The ranks give an attribute different lengths";
    NC_EMULTIDEFINE_ATTR_VAL = -268, "The ranks give an attribute different values";
    NC_EMULTIDEFINE_FNC_ARGS = -269, "The ranks call a collective function with different arguments";
    NC_EMULTIDEFINE_FILL_MODE = -270, "The ranks set different fill modes";
    NC_EMULTIDEFINE_VAR_FILL_MODE = -271, "The ranks set different fill modes of a variable";
    NC_EMULTIDEFINE_VAR_FILL_VALUE = -272, "The ranks give a variable different fill values";
    NC_EMULTIDEFINE_CMODE = -273, "The ranks create with different modes";
}

/// What a code means.
pub(crate) fn words(code: Code) -> &'static CStr {
    if code > 0 {
        // SAFETY: strerror returns a text that ends with a zero, for any number, and it is
        // valid until the next call, as in PnetCDF.
        let text = unsafe { libc::strerror(code) };
        // SAFETY: as above.
        return if text.is_null() { c"Unknown Error" } else { unsafe { CStr::from_ptr(text) } };
    }
    CODES.iter().find(|(number, _, _)| *number == code).map_or(c"Unknown Error", |row| row.2)
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
        said.push((code, words(code).to_string_lossy().into_owned()));
    }
    for (code, why) in said {
        let name = name(code).unwrap_or(c"?").to_string_lossy();
        let about: Vec<String> =
            about.iter().map(|(name, value)| format!("{name} {value}")).collect();
        eprintln!("pnetcdf: {function} ({}): {name}: {why}", about.join(", "));
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
        Error::Comm(_) | Error::Garbled => NC_EMPI,
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
