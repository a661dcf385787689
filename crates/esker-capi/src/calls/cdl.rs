//! The header of a CDL text, as a program asks for it piece by piece.
//!
//! What is told by pointers belongs to the handle and stays where it is until the handle is closed.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::{DimLen, ExternalType, Values};
use esker_format::Attribute;
use esker_tools::cdl::parse_header;

use super::lifecycle::path_of;
use crate::codes::*;
use crate::file::give;

/// NC_MAX_NFILES.
const MOST: usize = 1024;

/// A header in the form that C wants.
struct CdlHeader {
    format: c_int,
    dims: Vec<(CString, i64)>,
    attrs: Vec<CdlAttr>,
    vars: Vec<CdlVar>,
}

struct CdlVar {
    name: CString,
    ty: ExternalType,
    dims: Vec<c_int>,
    attrs: Vec<CdlAttr>,
}

struct CdlAttr {
    name: CString,
    ty: ExternalType,
    len: i64,
    /// The values as C has them, aligned for any type; a text ends with a zero.
    memory: Vec<u64>,
}

static HEADERS: Mutex<Vec<Option<Arc<CdlHeader>>>> = Mutex::new(Vec::new());

fn table() -> MutexGuard<'static, Vec<Option<Arc<CdlHeader>>>> {
    HEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name for C. Names have no zeros: the schema refuses them.
fn name_for_c(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

fn attrs_for_c<'a>(attrs: impl Iterator<Item = &'a Attribute>) -> Vec<CdlAttr> {
    let one = |attr: &Attribute| CdlAttr {
        name: name_for_c(&attr.name),
        ty: attr.values.ty(),
        len: attr.values.len() as i64,
        memory: aligned(&attr.values),
    };
    attrs.map(one).collect()
}

fn aligned(values: &Values) -> Vec<u64> {
    let mut bytes = values.native_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    bytes.as_chunks::<8>().0.iter().map(word).collect()
}

fn read(path: &str) -> Result<CdlHeader> {
    let text = std::fs::read(path).map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => NC_ENOENT,
            _ => NC_EFILE,
        };
        told(code, format!("{path}: {error}"))
    })?;
    let file = parse_header(&text).map_err(|e| told(NC_ENOTNC, format!("{path}: {e}")))?;
    let schema = &file.schema;
    let len = |len: DimLen| match len {
        DimLen::Fixed(len) => len as i64,
        // NC_UNLIMITED, as ncmpi_def_dim takes it.
        DimLen::Unlimited => 0,
    };
    let vars = schema.vars.iter().map(|var| CdlVar {
        name: name_for_c(&var.name),
        ty: var.ty,
        dims: var.dims.iter().map(|dim| dim.0 as c_int).collect(),
        attrs: attrs_for_c(var.attrs.iter()),
    });
    Ok(CdlHeader {
        format: schema.version.byte().into(),
        dims: schema.dims.iter().map(|dim| (name_for_c(&dim.name), len(dim.len))).collect(),
        attrs: attrs_for_c(schema.attrs.iter()),
        vars: vars.collect(),
    })
}

/// Answers a question with one number.
///
/// # Safety
///
/// `place` is null or a place for a number.
unsafe fn answer(
    hid: c_int,
    place: *mut c_int,
    find: impl FnOnce(&CdlHeader) -> Result<c_int>,
) -> c_int {
    with(hid, |header| {
        let number = find(header)?;
        // SAFETY: the caller vouches for the place.
        unsafe { give(place, number) };
        Ok(())
    })
}

/// Asks the header of this number.
fn with(hid: c_int, ask: impl FnOnce(&CdlHeader) -> Result<()>) -> c_int {
    let place = usize::try_from(hid).ok();
    let header = place.and_then(|place| table().get(place).cloned().flatten());
    header.ok_or(NC_EBADID).and_then(|header| ask(&header)).err().unwrap_or(0)
}

/// The thing of this number in a list, with an error that says what there is.
fn at<T>(list: &[T], number: c_int, what: &str) -> Result<usize> {
    let place = usize::try_from(number).ok().filter(|place| *place < list.len());
    place.ok_or_else(|| told(NC_EBADID, format!("there are {} {what}", list.len())))
}

impl CdlHeader {
    fn attrs_of(&self, varid: c_int) -> Result<&[CdlAttr]> {
        match varid {
            -1 => Ok(&self.attrs),
            varid => Ok(&self.vars[at(&self.vars, varid, "variables")?].attrs),
        }
    }
}

pub(crate) unsafe fn cdl_hdr_open(filename: *const c_char, hid: *mut c_int) -> c_int {
    // SAFETY: the name is as C says.
    let header = unsafe { path_of(filename) }.and_then(read);
    let added = header.and_then(|header| {
        let mut table = table();
        let place = table.iter().position(Option::is_none).unwrap_or(table.len());
        if place >= MOST {
            return Err(NC_ENFILE);
        }
        if place == table.len() {
            table.push(None);
        }
        table[place] = Some(Arc::new(header));
        Ok(place as c_int)
    });
    // SAFETY: the place is as C says.
    unsafe { give(hid, *added.as_ref().unwrap_or(&-1)) };
    added.err().unwrap_or(0)
}

pub(crate) unsafe fn cdl_hdr_close(hid: c_int) -> c_int {
    let place = usize::try_from(hid).ok();
    let closed = place.and_then(|place| table().get_mut(place).and_then(Option::take));
    if closed.is_some() { 0 } else { NC_EBADID }
}

pub(crate) unsafe fn cdl_hdr_inq_format(hid: c_int, format: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(hid, format, |header| Ok(header.format)) }
}

pub(crate) unsafe fn cdl_hdr_inq_ndims(hid: c_int, ndims: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(hid, ndims, |header| Ok(header.dims.len() as c_int)) }
}

pub(crate) unsafe fn cdl_hdr_inq_nvars(hid: c_int, nvars: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(hid, nvars, |header| Ok(header.vars.len() as c_int)) }
}

/// Tells where something is.
///
/// # Safety
///
/// `place` is null or a place for a pointer.
unsafe fn point<T>(place: *const *mut c_void, at: *const T) {
    // SAFETY: the caller vouches for the place.
    unsafe { give(place.cast_mut(), at.cast_mut().cast()) }
}

pub(crate) unsafe fn cdl_hdr_inq_dim(
    hid: c_int,
    dimid: c_int,
    name: *const *mut c_void,
    size: *mut i64,
) -> c_int {
    with(hid, |header| {
        let (text, len) = &header.dims[at(&header.dims, dimid, "dimensions")?];
        // SAFETY: the places are as C says.
        unsafe {
            point(name, text.as_ptr());
            give(size, *len);
        }
        Ok(())
    })
}

pub(crate) unsafe fn cdl_hdr_inq_var(
    hid: c_int,
    varid: c_int,
    name: *const *mut c_void,
    xtype: *mut c_int,
    ndims: *mut c_int,
    dimids: *const *mut c_void,
) -> c_int {
    with(hid, |header| {
        let var = &header.vars[at(&header.vars, varid, "variables")?];
        // SAFETY: the places are as C says.
        unsafe {
            point(name, var.name.as_ptr());
            give(xtype, var.ty.code() as c_int);
            give(ndims, var.dims.len() as c_int);
            point(dimids, var.dims.as_ptr());
        }
        Ok(())
    })
}

pub(crate) unsafe fn cdl_hdr_inq_nattrs(hid: c_int, varid: c_int, nattrs: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(hid, nattrs, |header| Ok(header.attrs_of(varid)?.len() as c_int)) }
}

pub(crate) unsafe fn cdl_hdr_inq_attr(
    hid: c_int,
    varid: c_int,
    attrid: c_int,
    name: *const *mut c_void,
    xtype: *mut c_int,
    nelems: *mut i64,
    value: *const *mut c_void,
) -> c_int {
    with(hid, |header| {
        let attrs = header.attrs_of(varid)?;
        let attr = &attrs[at(attrs, attrid, "attributes")?];
        // SAFETY: the places are as C says.
        unsafe {
            point(name, attr.name.as_ptr());
            give(xtype, attr.ty.code() as c_int);
            give(nelems, attr.len);
            point(value, attr.memory.as_ptr());
        }
        Ok(())
    })
}
