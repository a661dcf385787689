//! Attributes: values of any type in, values of any type out.

use std::ffi::{c_char, c_int, c_void};

use esker::{ExternalType, MemoryType, Owner, Values, VarId, Version, values};
use esker_format::{ConversionRules, RangeReport};

use crate::codes::*;
use crate::file::{File, name_of, new_name};
use crate::files;

impl File {
    /// Whose attributes a varid means.
    pub(crate) fn owner(&self, varid: c_int) -> Result<Owner> {
        if varid == -1 {
            return Ok(Owner::Global);
        }
        let place = usize::try_from(varid).map_err(|_| NC_ENOTVAR)?;
        if place < self.schema()?.vars.len() {
            Ok(Owner::Var(VarId(place)))
        } else {
            Err(NC_ENOTVAR)
        }
    }

    /// Sets an attribute; in data mode it must be there and may not become larger.
    pub(crate) fn put_attr(&mut self, owner: Owner, name: &str, new: Values) -> Result<()> {
        let room = |values: &Values| values.bytes_len().next_multiple_of(4);
        if !self.is_defining() {
            let old = self.schema()?.attr(owner, name).ok_or(NC_ENOTINDEFINE)?;
            if room(&new) > room(old) {
                return Err(told(
                    NC_ENOTINDEFINE,
                    format!("attribute \"{name}\" would need more room"),
                ));
            }
        }
        let again = new.clone();
        self.change(
            owner.into(),
            |define| define.put_attr(owner, name, new),
            |schema| schema.put_attr(owner, name, again),
        )
    }
}

/// ncmpi_put_att and its typed forms. Without a memory type it is the external one's.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn put(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    xtype: c_int,
    len: i64,
    data: *const c_void,
    memory: Option<MemoryType>,
) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(Owner, &str, ExternalType)> {
            file.require_writable()?;
            let owner = file.owner(varid)?;
            // SAFETY: the name is as C says.
            let name = new_name(unsafe { name_of(name) }?)?;
            let ty = type_of(file.version, xtype, memory, (len, data))?;
            Ok((owner, name, ty))
        };
        let checked = check();
        let bytes: &[u8] = match &checked {
            // SAFETY: the data are as C says, and were checked to be there.
            Ok((_, _, ty)) => unsafe { lent(*ty, memory, (len, data)) },
            Err(_) => &[],
        };
        let told_name = checked.as_ref().map_or("", |(_, name, _)| *name).as_bytes();
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[
                (told_name, NC_EMULTIDEFINE_ATTR_NAME),
                (&varid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS),
                (&xtype.to_le_bytes(), NC_EMULTIDEFINE_ATTR_TYPE),
                (&len.to_le_bytes(), NC_EMULTIDEFINE_ATTR_LEN),
                (bytes, NC_EMULTIDEFINE_ATTR_VAL),
            ],
        )?;
        let (owner, name, ty) = checked?;
        if let (Owner::Var(var), "_FillValue") = (owner, name) {
            let variable = file.schema()?.variable(var).ok_or(NC_ENOTVAR)?;
            if ty != variable.ty {
                return Err(NC_EBADTYPE);
            }
            if len != 1 {
                return Err(NC_EINVAL);
            }
            if file.is_defining() && !file.new && var.0 < file.old_vars {
                return Err(NC_ELATEFILL);
            }
        }
        let (new, report) = external(file.version, ty, memory, bytes)?;
        file.put_attr(owner, name, new)?;
        if report.all_fit() {
            Ok(())
        } else {
            Err(told(NC_ERANGE, format!("attribute \"{name}\": {report}")))
        }
    })
}

/// ncmpi_get_att and its typed forms.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn get(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    data: *mut c_void,
    memory: Option<MemoryType>,
) -> c_int {
    files::with(ncid, |file| {
        let owner = file.owner(varid)?;
        // SAFETY: the name is as C says.
        let name = std::str::from_utf8(unsafe { name_of(name) }?).map_err(|_| NC_ENOTATT)?;
        let found = file.schema()?.attr(owner, name).ok_or(NC_ENOTATT)?;
        // SAFETY: the caller has room for all values.
        unsafe { hand_out((name, found), file.version, data, memory) }
    })
}

/// The type that values in memory are to have, if they can.
pub(crate) fn type_of(
    version: Version,
    xtype: c_int,
    memory: Option<MemoryType>,
    (len, data): (i64, *const c_void),
) -> Result<ExternalType> {
    let ty = u32::try_from(xtype).ok().and_then(ExternalType::from_code).ok_or(NC_EBADTYPE)?;
    if !version.has_type(ty) {
        return Err(NC_ESTRICTCDF2);
    }
    let memory = memory.unwrap_or(ty.natural());
    if (ty == ExternalType::Char) != (memory == MemoryType::Text) {
        return Err(NC_ECHAR);
    }
    let most = if version == Version::Cdf5 { i64::MAX } else { i32::MAX.into() };
    match (len > 0 && data.is_null()) || len < 0 || len > most {
        true => Err(NC_EINVAL),
        false => Ok(ty),
    }
}

/// The values in memory as bytes. Without a memory type it is the external one's.
///
/// # Safety
///
/// There are `len` values, which [`type_of`] has checked.
pub(crate) unsafe fn lent<'d>(
    ty: ExternalType,
    memory: Option<MemoryType>,
    (len, data): (i64, *const c_void),
) -> &'d [u8] {
    let size = memory.unwrap_or(ty.natural()).size();
    match len > 0 {
        // SAFETY: the caller vouches for the values.
        true => unsafe { std::slice::from_raw_parts(data.cast(), len as usize * size) },
        false => &[],
    }
}

/// Values in memory as an attribute's, and which of them do not fit.
pub(crate) fn external(
    version: Version,
    ty: ExternalType,
    memory: Option<MemoryType>,
    bytes: &[u8],
) -> Result<(Values, RangeReport)> {
    let memory = memory.unwrap_or(ty.natural());
    let len = bytes.len() / memory.size();
    let mut external = vec![0; len * ty.size() as usize];
    let rules = ConversionRules::of(version);
    let fill = values::default_fill_bytes(ty);
    let report = values::encode(memory, bytes, ty, &mut external, &fill, rules);
    let report = report.map_err(|e| told(NC_ECHAR, e))?;
    Ok((Values::decode(ty, len, &external).ok_or(NC_EINVAL)?, report))
}

/// Gives a program the values of an attribute.
///
/// # Safety
///
/// There is room for all of them at `data`.
pub(crate) unsafe fn hand_out(
    (name, found): (&str, &Values),
    version: Version,
    data: *mut c_void,
    memory: Option<MemoryType>,
) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let ty = found.ty();
    let memory = memory.unwrap_or(ty.natural());
    let rules = ConversionRules::of(version);
    rules.check(ty, memory).map_err(|e| told(NC_ECHAR, e))?;
    if data.is_null() {
        return Err(NC_EINVAL);
    }
    // SAFETY: the caller vouches for the room.
    let out =
        unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), found.len() * memory.size()) };
    let report = values::decode(ty, &found.external_bytes(), memory, out, rules)
        .map_err(|e| told(NC_ECHAR, e))?;
    match report.all_fit() {
        true => Ok(()),
        false => Err(told(NC_ERANGE, format!("attribute \"{name}\": {report}"))),
    }
}
