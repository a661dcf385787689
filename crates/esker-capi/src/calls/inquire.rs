//! What is in a file, and what is known of it.

use std::ffi::{c_char, c_int, c_void};

use esker::{Alignment, DataLayout, DimLen, Header, Variable, values};
use esker_comm::mpi::{new_info, write_handle};

use crate::codes::*;
use crate::file::{File, State, copy_name, give, name_of};
use crate::files::{self, answer};

/// The format's number: 1, 2 or 5.
fn format(file: &File) -> c_int {
    file.version.byte().into()
}

impl File {
    /// The header that the file has.
    fn header(&self) -> Option<&Header> {
        match &self.state {
            State::Define(define) => define.header(),
            State::Data(dataset) => Some(dataset.header()),
            State::Lost => None,
        }
    }
}

pub(crate) unsafe fn inq(
    ncid: c_int,
    ndimsp: *mut c_int,
    nvarsp: *mut c_int,
    ngattsp: *mut c_int,
    unlimdimidp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let schema = file.schema()?;
        // SAFETY: the places are as C says.
        unsafe {
            give(ndimsp, schema.dims.len() as c_int);
            give(nvarsp, schema.vars.len() as c_int);
            give(ngattsp, schema.attrs.len() as c_int);
            give(unlimdimidp, schema.record_dim().map_or(-1, |dim| dim.0 as c_int));
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_ndims(ncid: c_int, ndimsp: *mut c_int) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: the place is as C says.
    unsafe { inq(ncid, ndimsp, none, none, none) }
}

pub(crate) unsafe fn inq_nvars(ncid: c_int, nvarsp: *mut c_int) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: the place is as C says.
    unsafe { inq(ncid, none, nvarsp, none, none) }
}

pub(crate) unsafe fn inq_natts(ncid: c_int, ngattsp: *mut c_int) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: the place is as C says.
    unsafe { inq(ncid, none, none, ngattsp, none) }
}

pub(crate) unsafe fn inq_unlimdim(ncid: c_int, unlimdimidp: *mut c_int) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: the place is as C says.
    unsafe { inq(ncid, none, none, none, unlimdimidp) }
}

fn count(file: &File, records: bool) -> Result<c_int> {
    let schema = file.schema()?;
    Ok(schema.vars.iter().filter(|var| schema.is_record(var) == records).count() as c_int)
}

pub(crate) unsafe fn inq_num_rec_vars(ncid: c_int, nvarsp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, nvarsp, |file| count(file, true)) }
}

pub(crate) unsafe fn inq_num_fix_vars(ncid: c_int, nvarsp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, nvarsp, |file| count(file, false)) }
}

pub(crate) unsafe fn inq_format(ncid: c_int, formatp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, formatp, |file| Ok(format(file))) }
}

pub(crate) unsafe fn inq_version(ncid: c_int, mode: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let flag = match format(file) {
            5 => 0x0020,
            2 => 0x0200,
            _ => 0x0100,
        };
        // SAFETY: the place is as C says.
        unsafe { give(mode, flag) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_striping(ncid: c_int, size: *mut c_int, number: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let hint = |name| file.hint_number(name).and_then(|n| c_int::try_from(n).ok()).unwrap_or(0);
        // SAFETY: the places are as C says.
        unsafe {
            give(size, hint("striping_unit"));
            give(number, hint("striping_factor"));
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_dimid(ncid: c_int, name: *const c_char, idp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_EBADDIM)?;
        let dim = file.schema()?.dim(name).ok_or(NC_EBADDIM)?;
        // SAFETY: the place is as C says.
        unsafe { give(idp, dim.0 as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_dim(
    ncid: c_int,
    dimid: c_int,
    name: *mut c_char,
    lenp: *mut i64,
) -> c_int {
    files::with(ncid, |file| {
        let place = usize::try_from(dimid).map_err(|_| NC_EBADDIM)?;
        let dim = file.schema()?.dims.at(place).ok_or(NC_EBADDIM)?;
        let len = match dim.len {
            DimLen::Fixed(len) => len,
            DimLen::Unlimited => file.numrecs(),
        };
        // SAFETY: the places are as C says.
        unsafe {
            copy_name(&dim.name, name);
            give(lenp, len as i64);
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_dimname(ncid: c_int, dimid: c_int, name: *mut c_char) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_dim(ncid, dimid, name, std::ptr::null_mut()) }
}

pub(crate) unsafe fn inq_dimlen(ncid: c_int, dimid: c_int, lenp: *mut i64) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_dim(ncid, dimid, std::ptr::null_mut(), lenp) }
}

pub(crate) unsafe fn inq_var(
    ncid: c_int,
    varid: c_int,
    name: *mut c_char,
    xtypep: *mut c_int,
    ndimsp: *mut c_int,
    dimidsp: *mut c_int,
    nattsp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let only_attributes =
            name.is_null() && xtypep.is_null() && ndimsp.is_null() && dimidsp.is_null();
        if varid == -1 && only_attributes {
            // SAFETY: the place is as C says.
            unsafe { give(nattsp, file.schema()?.attrs.len() as c_int) };
            return Ok(());
        }
        let variable = file.variable(varid)?;
        // SAFETY: the places are as C says.
        unsafe {
            copy_name(&variable.name, name);
            give(xtypep, variable.ty.code() as c_int);
            give(ndimsp, variable.dims.len() as c_int);
            give_dims(variable, dimidsp);
            give(nattsp, variable.attrs.len() as c_int);
        }
        Ok(())
    })
}

/// # Safety
///
/// The place is null or has a number for each dimension.
unsafe fn give_dims(variable: &Variable, place: *mut c_int) {
    if !place.is_null() {
        for (d, dim) in variable.dims.iter().enumerate() {
            // SAFETY: the caller vouches for the place.
            unsafe { place.add(d).write_unaligned(dim.0 as c_int) };
        }
    }
}

pub(crate) unsafe fn inq_varid(ncid: c_int, name: *const c_char, varidp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTVAR)?;
        let var = file.schema()?.var(name).ok_or(NC_ENOTVAR)?;
        // SAFETY: the place is as C says.
        unsafe { give(varidp, var.0 as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_varname(ncid: c_int, varid: c_int, name: *mut c_char) -> c_int {
    files::with(ncid, |file| {
        let variable = file.variable(varid)?;
        // SAFETY: the place is as C says.
        unsafe { copy_name(&variable.name, name) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_vartype(ncid: c_int, varid: c_int, xtypep: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, xtypep, |file| Ok(file.variable(varid)?.ty.code() as c_int)) }
}

pub(crate) unsafe fn inq_varndims(ncid: c_int, varid: c_int, ndimsp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, ndimsp, |file| Ok(file.variable(varid)?.dims.len() as c_int)) }
}

pub(crate) unsafe fn inq_vardimid(ncid: c_int, varid: c_int, dimidsp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let variable = file.variable(varid)?;
        // SAFETY: the place is as C says.
        unsafe { give_dims(variable, dimidsp) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_varnatts(ncid: c_int, varid: c_int, nattsp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let owner = file.owner(varid)?;
        let count = file.schema()?.attrs_of(owner).map_or(0, |attrs| attrs.len());
        // SAFETY: the place is as C says.
        unsafe { give(nattsp, count as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_varoffset(ncid: c_int, varid: c_int, offset: *mut i64) -> c_int {
    files::with(ncid, |file| {
        let name = &file.variable(varid)?.name;
        let var = esker::VarId(varid as usize);
        let scattered = match &file.state {
            State::Data(dataset) => {
                dataset.chunking(var).is_some()
                    || (!dataset.subfiles().is_empty()
                        && matches!(dataset.decomposition(var), Ok(Some(_))))
            }
            State::Define(define) => define.chunk_shape(var).map_err(|e| of(&e))?.is_some(),
            State::Lost => false,
        };
        if scattered {
            let why = format!("variable \"{name}\" is stored in pieces, which have no one offset");
            return Err(told(NC_ENOTSUPPORT, why));
        }
        // By name, because ranks may have other numbers than the file.
        let header = file.header();
        let place = header.and_then(|h| h.place(h.schema.var(name)?));
        // SAFETY: the place is as C says.
        unsafe { give(offset, place.map_or(0, |p| p.begin as i64)) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_var_fill(
    ncid: c_int,
    varid: c_int,
    no_fill: *mut c_int,
    fill_value: *mut c_void,
) -> c_int {
    files::with(ncid, |file| {
        let variable = file.variable(varid)?;
        let mode = file.no_fill.get(varid as usize).copied().unwrap_or(true);
        let value = values::fill_value(variable);
        let bytes = value.native_bytes();
        // SAFETY: the places are as C says.
        unsafe {
            give(no_fill, mode.into());
            if !fill_value.is_null() {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), fill_value.cast(), bytes.len());
            }
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_put_size(ncid: c_int, size: *mut i64) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, size, |file| Ok(file.put_size as i64)) }
}

pub(crate) unsafe fn inq_get_size(ncid: c_int, size: *mut i64) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, size, |file| Ok(file.get_size as i64)) }
}

pub(crate) unsafe fn inq_header_size(ncid: c_int, size: *mut i64) -> c_int {
    files::with(ncid, |file| {
        // What is defined so far, so that a program can say how much room it will need.
        let len = match (&file.state, file.header()) {
            (State::Data(_), Some(header)) => header.layout.header_len,
            _ => file.schema()?.header_len(),
        };
        // SAFETY: the place is as C says.
        unsafe { give(size, len as i64) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_header_extent(ncid: c_int, extent: *mut i64) -> c_int {
    files::with(ncid, |file| {
        let first = match (&file.state, file.header()) {
            (State::Data(dataset), _) => dataset.data_begin(),
            (_, header) => header.map_or(0, Header::data_begin),
        };
        // SAFETY: the place is as C says.
        unsafe { give(extent, first as i64) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_recsize(ncid: c_int, recsize: *mut i64) -> c_int {
    files::with(ncid, |file| {
        // Of the variables as the program sees them, whatever is stored of each record.
        let knows_all = match &file.state {
            State::Data(dataset) => dataset.knows_all(),
            _ => true,
        };
        let size = match (file.header(), DataLayout::place(file.schema()?, &Alignment::default())) {
            (None, _) => 0,
            (Some(_), Ok(layout)) if knows_all => layout.record_size,
            (Some(header), _) => header.layout.record_size,
        };
        // SAFETY: the place is as C says.
        unsafe { give(recsize, size as i64) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_malloc_size(size: *mut i64) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { give(size, 0) };
    NC_ENOTENABLED
}

pub(crate) unsafe fn inq_malloc_max_size(size: *mut i64) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { give(size, 0) };
    NC_ENOTENABLED
}

pub(crate) unsafe fn inq_malloc_list() -> c_int {
    NC_ENOTENABLED
}

pub(crate) unsafe fn inq_files_opened(num: *mut c_int, ncids: *mut c_int) -> c_int {
    if num.is_null() {
        return NC_EINVAL;
    }
    let open = files::open();
    // SAFETY: the places are as C says.
    unsafe {
        give(num, open.len() as c_int);
        if !ncids.is_null() {
            open.iter().enumerate().for_each(|(i, ncid)| ncids.add(i).write_unaligned(*ncid));
        }
    }
    0
}

pub(crate) unsafe fn inq_path(ncid: c_int, pathlen: *mut c_int, path: *mut c_char) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: the places are as C says.
        unsafe {
            give(pathlen, file.path.len() as c_int);
            copy_name(&file.path, path);
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtypep: *mut c_int,
    lenp: *mut i64,
) -> c_int {
    files::with(ncid, |file| {
        let owner = file.owner(varid)?;
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTATT)?;
        let values = file.schema()?.attr(owner, name).ok_or(NC_ENOTATT)?;
        // SAFETY: the places are as C says.
        unsafe {
            give(xtypep, values.ty().code() as c_int);
            give(lenp, values.len() as i64);
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_atttype(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtypep: *mut c_int,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { inq_att(ncid, varid, name, xtypep, std::ptr::null_mut()) }
}

pub(crate) unsafe fn inq_attlen(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    lenp: *mut i64,
) -> c_int {
    // SAFETY: the arguments are as C says.
    unsafe { inq_att(ncid, varid, name, std::ptr::null_mut(), lenp) }
}

pub(crate) unsafe fn inq_attid(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    idp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let owner = file.owner(varid)?;
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTATT)?;
        let attrs = file.schema()?.attrs_of(owner).ok_or(NC_ENOTVAR)?;
        let place = attrs.position(&esker_format::name::normalise(name)).ok_or(NC_ENOTATT)?;
        // SAFETY: the place is as C says.
        unsafe { give(idp, place as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_attname(
    ncid: c_int,
    varid: c_int,
    attnum: c_int,
    name: *mut c_char,
) -> c_int {
    files::with(ncid, |file| {
        let owner = file.owner(varid)?;
        let place = usize::try_from(attnum).map_err(|_| NC_ENOTATT)?;
        let attrs = file.schema()?.attrs_of(owner).ok_or(NC_ENOTVAR)?;
        let attr = attrs.at(place).ok_or(NC_ENOTATT)?;
        // SAFETY: the place is as C says.
        unsafe { copy_name(&attr.name, name) };
        Ok(())
    })
}

pub(crate) unsafe fn inq_file_info(ncid: c_int, info_used: *mut c_void) -> c_int {
    files::with(ncid, |file| {
        if info_used.is_null() {
            return Ok(());
        }
        let mut pairs = Vec::new();
        let mut set = |key: &str, value: String| {
            pairs.retain(|(old, _): &(String, String)| old != key);
            pairs.push((key.to_string(), value));
        };
        let hints = match &file.state {
            State::Define(define) => define.hints().effective(),
            State::Data(dataset) => dataset.hints().effective(),
            State::Lost => Vec::new(),
        };
        for (key, value) in hints {
            // The file system says nothing about stripes here; only the program may have. And
            // PnetCDF tells of a burst buffer only what was chosen.
            if key != "striping_unit" && !key.starts_with("nc_burst_buf") {
                set(key, value);
            }
        }
        for (key, value) in &file.info {
            set(key, value.clone());
        }
        // The older name of the same is told as it was given.
        let older = file.hint_number("nc_header_align_size").filter(|n| *n > 0);
        let older = older.map_or(file.aligns.data, |n| n.saturating_add(3) / 4 * 4);
        set("nc_header_align_size", older.to_string());
        set("nc_var_align_size", file.aligns.data.to_string());
        set("nc_record_align_size", file.aligns.records.to_string());
        let chunk = file.hint_number("nc_header_read_chunk_size").unwrap_or(262_144);
        set("nc_header_read_chunk_size", chunk.to_string());
        set("nc_in_place_swap", file.hint("nc_in_place_swap").unwrap_or("auto").to_string());
        set("pnetcdf_subfiling", "disable".to_string());
        set("nc_num_subfiles", "0".to_string());
        let handle = new_info(&pairs).map_err(|e| of_mpi(&e))?;
        // SAFETY: the place is for a handle.
        unsafe { write_handle(info_used, handle) }.map_err(|e| of_mpi(&e))
    })
}

pub(crate) unsafe fn get_file_info(ncid: c_int, info_used: *mut c_void) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { inq_file_info(ncid, info_used) }
}
