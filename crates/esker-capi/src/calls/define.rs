//! Dimensions, variables, attributes and fill modes come into being and change.

use std::ffi::{c_char, c_int, c_void};

use esker::{DimId, DimLen, ExternalType, Owner, Values, VarId, Version};

use crate::codes::*;
use crate::file::{File, Touched, give, name_of, new_name, together};
use crate::files;

pub(crate) unsafe fn def_dim(ncid: c_int, name: *const c_char, len: i64, idp: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<&str> {
            file.require_define()?;
            // SAFETY: the name is as C says.
            let name = new_name(unsafe { name_of(name) }?)?;
            // A length is a signed number of the format. (netCDF-C writes longer ones into
            // CDF-2, which are read.)
            let most = match file.version {
                Version::Cdf1 | Version::Cdf2 => i64::from(i32::MAX),
                Version::Cdf5 => i64::MAX,
            };
            if len < 0 || len > most {
                return Err(told(NC_EDIMSIZE, format!("dimension \"{name}\" of length {len}")));
            }
            if len == 0 && file.schema()?.record_dim().is_some() {
                return Err(NC_EUNLIMIT);
            }
            if file.schema()?.dim(name).is_some() {
                return Err(NC_ENAMEINUSE);
            }
            Ok(name)
        };
        let checked = check();
        let bytes = checked.map_or(&b""[..], str::as_bytes);
        file.settle(
            checked.map(|_| ()),
            &[(bytes, NC_EMULTIDEFINE_DIM_NAME), (&len.to_le_bytes(), NC_EMULTIDEFINE_DIM_SIZE)],
        )?;
        let length = if len == 0 { DimLen::Unlimited } else { DimLen::Fixed(len as u64) };
        let added = file.define_known()?.add_dim(checked?, length).map_err(|e| of(&e));
        file.changed(Touched::NoVariable);
        let id = added?;
        // SAFETY: the place is as C says.
        unsafe { give(idp, id.0 as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn def_var(
    ncid: c_int,
    name: *const c_char,
    xtype: c_int,
    ndims: c_int,
    dimidsp: *const c_int,
    varidp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(&str, ExternalType, Vec<DimId>)> {
            file.require_define()?;
            // SAFETY: the name is as C says.
            let name = new_name(unsafe { name_of(name) }?)?;
            let ty =
                u32::try_from(xtype).ok().and_then(ExternalType::from_code).ok_or(NC_EBADTYPE)?;
            if !file.version.has_type(ty) {
                return Err(told(NC_ESTRICTCDF2, format!("variable \"{name}\" of type {ty}")));
            }
            let ndims = usize::try_from(ndims).map_err(|_| NC_EINVAL)?;
            let schema = file.schema()?;
            if schema.var(name).is_some() {
                return Err(NC_ENAMEINUSE);
            }
            if ndims > 0 && dimidsp.is_null() {
                return Err(NC_EINVAL);
            }
            let mut dims = Vec::with_capacity(ndims);
            for d in 0..ndims {
                // SAFETY: the list has so many numbers.
                let id = unsafe { dimidsp.add(d).read_unaligned() };
                match usize::try_from(id) {
                    Ok(id) if id < schema.dims.len() => dims.push(DimId(id)),
                    _ => return Err(told(NC_EBADDIM, format!("there is no dimension {id}"))),
                }
            }
            let lengths = dims.iter().filter_map(|dim| match schema.dims.at(dim.0)?.len {
                DimLen::Fixed(len) => Some(len),
                DimLen::Unlimited => None,
            });
            let bytes = lengths.fold(u128::from(ty.size()), |n, len| n.saturating_mul(len.into()));
            if bytes > i64::MAX as u128 - 3 {
                return Err(told(NC_EVARSIZE, format!("variable \"{name}\" of {bytes} bytes")));
            }
            Ok((name, ty, dims))
        };
        let checked = check();
        let (bytes, dims) = match &checked {
            Ok((name, _, dims)) => {
                (name.as_bytes(), dims.iter().flat_map(|d| (d.0 as u64).to_le_bytes()).collect())
            }
            Err(_) => (&b""[..], Vec::new()),
        };
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[
                (bytes, NC_EMULTIDEFINE_VAR_NAME),
                (&xtype.to_le_bytes(), NC_EMULTIDEFINE_VAR_TYPE),
                (&ndims.to_le_bytes(), NC_EMULTIDEFINE_VAR_NDIMS),
                (&dims, NC_EMULTIDEFINE_VAR_DIMIDS),
            ],
        )?;
        let (name, ty, dims) = checked?;
        let define = file.define_known()?;
        let told = if verbose() { define.hints().refused().len() } else { 0 };
        let id = define.add_var(name, ty, &dims).map_err(|e| of(&e))?;
        for refused in define.hints().refused().iter().skip(told).filter(|_| verbose()) {
            eprintln!("pnetcdf: {}", esker_text::sentence(refused));
        }
        // Hints may have said how it is stored.
        file.changed(Touched::Variable(id));
        file.no_fill.push(!file.fill);
        // SAFETY: the place is as C says.
        unsafe { give(varidp, id.0 as c_int) };
        Ok(())
    })
}

pub(crate) unsafe fn rename_dim(ncid: c_int, dimid: c_int, name: *const c_char) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(&str, String, bool)> {
            file.require_writable()?;
            // SAFETY: the name is as C says.
            let name = new_name(unsafe { name_of(name) }?)?;
            let schema = file.schema()?;
            let place = usize::try_from(dimid).map_err(|_| NC_EBADDIM)?;
            let old = schema.dims.at(place).ok_or(NC_EBADDIM)?.name.to_string();
            match schema.dim(name) {
                Some(DimId(taken)) if taken != place => Err(NC_ENAMEINUSE),
                found => Ok((name, old, found.is_some())),
            }
        };
        let checked = check();
        let bytes = checked.as_ref().map_or(&b""[..], |(name, _, _)| name.as_bytes());
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[(bytes, NC_EMULTIDEFINE_DIM_NAME), (&dimid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS)],
        )?;
        let (name, old, same) = checked?;
        if same {
            return Ok(());
        }
        require_no_longer(file, &old, name)?;
        file.change(
            Touched::Anything,
            |d| d.rename_dim(&old, name),
            |schema| schema.rename_dim(&old, name),
        )
    })
}

/// In data mode a name may not become longer.
fn require_no_longer(file: &File, old: &str, new: &str) -> Result<()> {
    let new = esker_format::name::normalise(new);
    if !file.is_defining() && new.len() > old.len() {
        return Err(told(NC_ENOTINDEFINE, format!("\"{new}\" is longer than \"{old}\"")));
    }
    Ok(())
}

pub(crate) unsafe fn rename_var(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(&str, String)> {
            file.require_writable()?;
            let old = file.variable(varid)?.name.to_string();
            // SAFETY: the name is as C says.
            let name = new_name(unsafe { name_of(name) }?)?;
            match file.schema()?.var(name) {
                Some(_) => Err(NC_ENAMEINUSE),
                None => Ok((name, old)),
            }
        };
        let checked = check();
        let bytes = checked.as_ref().map_or(&b""[..], |(name, _)| name.as_bytes());
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[(bytes, NC_EMULTIDEFINE_VAR_NAME), (&varid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS)],
        )?;
        let (name, old) = checked?;
        require_no_longer(file, &old, name)?;
        file.change(
            Touched::Anything,
            |d| d.rename_var(&old, name),
            |schema| schema.rename_var(&old, name),
        )
    })
}

pub(crate) unsafe fn rename_att(
    ncid: c_int,
    varid: c_int,
    name: *const c_char,
    newname: *const c_char,
) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(Owner, &[u8], &str)> {
            file.require_writable()?;
            let owner = file.owner(varid)?;
            // SAFETY: the names are as C says.
            let (old, new) = unsafe { (name_of(name)?, new_name(name_of(newname)?)?) };
            Ok((owner, old, new))
        };
        let checked = check();
        let (old, new) = match &checked {
            Ok((_, old, new)) => (*old, new.as_bytes()),
            Err(_) => (&b""[..], &b""[..]),
        };
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[
                (old, NC_EMULTIDEFINE_ATTR_NAME),
                (new, NC_EMULTIDEFINE_ATTR_NAME),
                (&varid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS),
            ],
        )?;
        let (owner, old, new) = checked?;
        let old = std::str::from_utf8(old).map_err(|_| NC_ENOTATT)?;
        let schema = file.schema()?;
        if schema.attr(owner, old).is_none() {
            return Err(NC_ENOTATT);
        }
        if schema.attr(owner, new).is_some() {
            return Err(NC_ENAMEINUSE);
        }
        require_no_longer(file, &esker_format::name::normalise(old), new)?;
        file.change(
            Touched::Anything,
            |define| define.rename_attr(owner, old, new),
            |schema| schema.rename_attr(owner, old, new),
        )
    })
}

pub(crate) unsafe fn del_att(ncid: c_int, varid: c_int, name: *const c_char) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<(Owner, &[u8])> {
            file.require_writable()?;
            file.require_define()?;
            let owner = file.owner(varid)?;
            // SAFETY: the name is as C says.
            Ok((owner, unsafe { name_of(name) }?))
        };
        let checked = check();
        let bytes = checked.as_ref().map_or(&b""[..], |(_, name)| *name);
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[(bytes, NC_EMULTIDEFINE_ATTR_NAME), (&varid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS)],
        )?;
        let (owner, name) = checked?;
        let name = std::str::from_utf8(name).map_err(|_| NC_ENOTATT)?;
        file.define()?.del_attr(owner, name).map(drop).map_err(|e| of(&e))
    })
}

pub(crate) unsafe fn copy_att(
    ncid_in: c_int,
    varid_in: c_int,
    name: *const c_char,
    ncid_out: c_int,
    varid_out: c_int,
) -> c_int {
    let both = files::get(ncid_in).and_then(|from| Ok((from, files::get(ncid_out)?)));
    let (from, to) = match both {
        Ok(both) => both,
        Err(code) => return code,
    };
    // SAFETY: the name is as C says.
    let named = unsafe { name_of(name) };
    // One after the other: they may be the same file.
    let (source, values) = {
        let from = files::lock(&from);
        let source = from.owner(varid_in);
        let values = source.and_then(|owner| {
            let name = std::str::from_utf8(named?).map_err(|_| NC_ENOTATT)?;
            from.schema()?.attr(owner, name).cloned().ok_or(NC_ENOTATT)
        });
        (source, values)
    };
    let copied = (|| {
        let mut file = files::lock(&to);
        let checked = file
            .require_writable()
            .and(source)
            .and_then(|_| file.owner(varid_out))
            .and_then(|owner| Ok((owner, named?)));
        let bytes = checked.as_ref().map_or(&b""[..], |(_, name)| *name);
        let ids: Vec<u8> = [varid_in, varid_out].iter().flat_map(|n| n.to_le_bytes()).collect();
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[(bytes, NC_EMULTIDEFINE_ATTR_NAME), (&ids, NC_EMULTIDEFINE_FNC_ARGS)],
        )?;
        let (owner, name) = checked?;
        let values = values?;
        if ncid_in == ncid_out && varid_in == varid_out {
            return Ok(());
        }
        let name = std::str::from_utf8(name).map_err(|_| NC_ENOTATT)?;
        file.put_attr(owner, name, values)
    })();
    copied.err().unwrap_or(0)
}

pub(crate) unsafe fn set_fill(ncid: c_int, fillmode: c_int, old_modep: *mut c_int) -> c_int {
    const NC_FILL: c_int = 0;
    const NC_NOFILL: c_int = 0x100;
    files::with(ncid, |file| {
        file.require_writable()?;
        file.require_define()?;
        file.settle(Ok(()), &[(&fillmode.to_le_bytes(), NC_EMULTIDEFINE_FILL_MODE)])?;
        let old = if file.fill { NC_FILL } else { NC_NOFILL };
        file.fill = match fillmode {
            NC_FILL => true,
            NC_NOFILL => false,
            _ => return Err(NC_EINVAL),
        };
        // SAFETY: the place is as C says.
        unsafe { give(old_modep, old) };
        let fill = file.fill;
        file.no_fill.iter_mut().for_each(|no_fill| *no_fill = !fill);
        Ok(())
    })
}

pub(crate) unsafe fn def_var_fill(
    ncid: c_int,
    varid: c_int,
    no_fill: c_int,
    fill_value: *const c_void,
) -> c_int {
    files::with(ncid, |file| {
        let checked =
            file.require_define().and_then(|()| file.variable(varid).map(|variable| variable.ty));
        file.settle(checked.map(|_| ()), &[])?;
        let ty = checked?;
        let size = ty.size() as usize;
        // SAFETY: the value is null or one of the variable's type.
        let given = (!fill_value.is_null())
            .then(|| unsafe { std::slice::from_raw_parts(fill_value.cast::<u8>(), size) });
        let numbers: Vec<u8> = [varid, no_fill, c_int::from(given.is_none())]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        file.settle(
            Ok(()),
            &[
                (&numbers, NC_EMULTIDEFINE_FNC_ARGS),
                (given.unwrap_or_default(), NC_EMULTIDEFINE_VAR_FILL_VALUE),
            ],
        )?;
        let var = varid as usize;
        if let Some(slot) = file.no_fill.get_mut(var) {
            *slot = no_fill != 0;
        }
        let Some(given) = given.filter(|_| no_fill == 0) else { return Ok(()) };
        if !file.new && var < file.old_vars {
            return Err(NC_ELATEFILL);
        }
        let mut value = Values::zeros(ty, 1);
        value.native_bytes_mut().copy_from_slice(given);
        file.put_attr(Owner::Var(VarId(var)), "_FillValue", value)
    })
}

pub(crate) unsafe fn fill_var_rec(ncid: c_int, varid: c_int, recno: i64) -> c_int {
    files::with(ncid, |file| {
        let check = || -> Result<VarId> {
            file.require_writable()?;
            if file.is_defining() {
                return Err(NC_EINDEFINE);
            }
            let variable = file.variable(varid)?;
            if !file.schema()?.is_record(variable) {
                return Err(NC_ENOTRECVAR);
            }
            if file.independent {
                return Err(NC_EINDEP);
            }
            let var = varid as usize;
            let has_value = variable.attrs.get("_FillValue").is_some();
            if file.no_fill.get(var).copied().unwrap_or(true) && !has_value {
                return Err(NC_ENOTFILL);
            }
            Ok(VarId(var))
        };
        let checked = check();
        let mut bytes = varid.to_le_bytes().to_vec();
        bytes.extend(recno.to_le_bytes());
        file.settle(checked.map(|_| ()), &[(&bytes, NC_EMULTIDEFINE_FNC_ARGS)])?;
        let var = checked?;
        let record = u64::try_from(recno).map_err(|_| NC_EINVALCOORDS)?;
        let comm = file.comm.clone();
        file.dataset()?.fill_record(var, record).map_err(|e| together(&*comm, &e))
    })
}
