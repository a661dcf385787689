//! How variables are stored: chunks, filters, decomposition maps; and what is begun and waited for later.

use std::ffi::{c_char, c_int, c_void};

use esker::{DecompositionId, Define, DimId, ExternalType, Selection, VarId};

use crate::codes::*;
use crate::file::{File, State, copy_name, give, name_of, new_name, together};
use crate::files::{self, answer};
use crate::request::{Buffer, Timing, Wish};
use crate::tokens::Work;
use crate::transfer::{Call, Offset, Operation, Slab};

const NC_LAYOUT_CONTIGUOUS: c_int = 0;
const NC_LAYOUT_CHUNKED: c_int = 1;
const NC_LAYOUT_LOG: c_int = 2;
const NC_LAYOUT_DECOMPOSED: c_int = 3;

/// The attribute in which a variable's filters are, for programs.
const FILTERS: &str = "__filters";

/// Refused settings are wrong arguments.
fn refused(error: esker::Error) -> Code {
    match &error {
        esker::Error::Chunked { .. } | esker::Error::Filter(_) => told(NC_EINVAL, error),
        _ => of(&error),
    }
}

/// Changes how a new variable is stored, with the ranks' arguments compared in safe mode.
fn set(
    ncid: c_int,
    varid: c_int,
    arguments: &[u8],
    change: impl FnOnce(&mut Define, VarId) -> esker::Result<()>,
) -> c_int {
    files::with(ncid, |file| {
        let checked = file.require_define().and_then(|()| file.variable(varid).map(drop));
        let varid_bytes = varid.to_le_bytes();
        let parts =
            [(&varid_bytes[..], NC_EMULTIDEFINE_FNC_ARGS), (arguments, NC_EMULTIDEFINE_FNC_ARGS)];
        file.settle(checked, &parts)?;
        checked?;
        change(file.define()?, VarId(varid as usize)).map_err(refused)
    })
}

pub(crate) unsafe fn var_set_chunk(ncid: c_int, varid: c_int, chunk: *const Offset) -> c_int {
    let rank = match files::get(ncid)
        .and_then(|file| Ok(files::lock(&file).variable(varid)?.dims.len()))
    {
        Ok(rank) => rank,
        Err(code) => return code,
    };
    if chunk.is_null() {
        return set(ncid, varid, &[], |define, var| define.set_chunks_automatically(var));
    }
    // SAFETY: the list has a number for each dimension.
    let lengths: Vec<i64> = (0..rank).map(|d| unsafe { chunk.add(d).read_unaligned() }).collect();
    let bytes: Vec<u8> = lengths.iter().flat_map(|n| n.to_le_bytes()).collect();
    if let Some(wrong) = lengths.iter().find(|n| **n < 1) {
        return told(NC_EINVAL, format!("a chunk of length {wrong}"));
    }
    let lengths: Vec<u64> = lengths.iter().map(|n| *n as u64).collect();
    set(ncid, varid, &bytes, |define, var| define.set_chunks(var, &lengths))
}

/// The lengths of a variable's chunks, if it has any.
fn chunk_of(file: &File, varid: c_int) -> Result<Option<Vec<u64>>> {
    file.variable(varid)?;
    let var = VarId(varid as usize);
    match &file.state {
        State::Define(define) => define.chunk_shape(var).map_err(|e| of(&e)),
        State::Data(dataset) => Ok(dataset.chunk_shape(var).map(<[u64]>::to_vec)),
        State::Lost => Err(NC_EFILE),
    }
}

pub(crate) unsafe fn var_get_chunk(ncid: c_int, varid: c_int, chunk: *mut Offset) -> c_int {
    files::with(ncid, |file| {
        let rank = file.variable(varid)?.dims.len();
        let lengths = chunk_of(file, varid)?.unwrap_or_else(|| vec![0; rank]);
        if !chunk.is_null() {
            for (d, len) in lengths.iter().enumerate() {
                // SAFETY: the list has a place for each dimension.
                unsafe { chunk.add(d).write_unaligned(*len as Offset) };
            }
        }
        Ok(())
    })
}

pub(crate) unsafe fn var_set_filter(ncid: c_int, varid: c_int, filters: *const c_char) -> c_int {
    if filters.is_null() {
        return NC_EINVAL;
    }
    // SAFETY: the text is as C says.
    let Ok(text) = unsafe { std::ffi::CStr::from_ptr(filters) }.to_str() else { return NC_EINVAL };
    set(ncid, varid, text.as_bytes(), |define, var| define.set_filters(var, text))
}

pub(crate) unsafe fn var_get_filter(
    ncid: c_int,
    varid: c_int,
    lenp: *mut c_int,
    filters: *mut c_char,
) -> c_int {
    files::with(ncid, |file| {
        file.variable(varid)?;
        let variable = file.stored_schema()?.variable(VarId(varid as usize)).ok_or(NC_ENOTVAR)?;
        let text = variable.attrs.get(FILTERS).and_then(|attr| attr.values.text());
        let text = text.unwrap_or_default();
        // SAFETY: the places are as C says.
        unsafe {
            give(lenp, text.len() as c_int);
            copy_name(&text, filters);
        }
        Ok(())
    })
}

pub(crate) unsafe fn var_set_layout(ncid: c_int, varid: c_int, layout: c_int) -> c_int {
    let bytes = layout.to_le_bytes();
    match layout {
        NC_LAYOUT_CONTIGUOUS => set(ncid, varid, &bytes, |define, var| define.set_contiguous(var)),
        NC_LAYOUT_CHUNKED => {
            let automatic = |define: &mut Define, var| match define.chunk_shape(var)? {
                Some(_) => Ok(()),
                None => define.set_chunks_automatically(var),
            };
            set(ncid, varid, &bytes, automatic)
        }
        NC_LAYOUT_LOG => files::with(ncid, |file| {
            file.require_define()?;
            file.variable(varid)?;
            match layout_of(file, varid)? {
                NC_LAYOUT_LOG => Ok(()),
                NC_LAYOUT_CHUNKED if file.is_container()? => Err(told(
                    NC_EINVAL,
                    "the variable is cut into chunks, which NC_LAYOUT_CONTIGUOUS undoes",
                )),
                _ => Err(told(
                    NC_EINVAL,
                    "all variables of a file are logs, or none is: the hint esker_layout=log",
                )),
            }
        }),
        _ => told(
            NC_EINVAL,
            format!("layout {layout}: decomposed variables are made by ncmpi_def_decom_var"),
        ),
    }
}

impl File {
    /// Whether it is a container of logs, or will be.
    fn is_container(&self) -> Result<bool> {
        match &self.state {
            State::Define(define) => Ok(define.is_log()),
            State::Data(dataset) => Ok(dataset.container_version().is_some()),
            State::Lost => Err(NC_EFILE),
        }
    }
}

/// How a variable is stored.
fn layout_of(file: &File, varid: c_int) -> Result<c_int> {
    if file.is_container()? {
        return Ok(match chunk_of(file, varid)? {
            Some(_) => NC_LAYOUT_CHUNKED,
            None => NC_LAYOUT_LOG,
        });
    }
    if decom_of(file, varid)? != 0 {
        return Ok(NC_LAYOUT_DECOMPOSED);
    }
    Ok(match chunk_of(file, varid)? {
        Some(_) => NC_LAYOUT_CHUNKED,
        None => NC_LAYOUT_CONTIGUOUS,
    })
}

pub(crate) unsafe fn var_get_layout(ncid: c_int, varid: c_int, layoutp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, layoutp, |file| layout_of(file, varid)) }
}

/// Dimensions by their numbers in C.
///
/// # Safety
///
/// The list has as many.
unsafe fn dims_of(file: &File, ndims: c_int, dimids: *const c_int) -> Result<Vec<DimId>> {
    let ndims = usize::try_from(ndims).map_err(|_| NC_EINVAL)?;
    if ndims > 0 && dimids.is_null() {
        return Err(NC_EINVAL);
    }
    let defined = file.schema()?.dims.len();
    // SAFETY: the caller vouches for the list.
    let id = |d: usize| unsafe { dimids.add(d).read_unaligned() };
    let dim = |d: usize| match usize::try_from(id(d)) {
        Ok(id) if id < defined => Ok(DimId(id)),
        _ => Err(told(NC_EBADDIM, format!("there is no dimension {}", id(d)))),
    };
    (0..ndims).map(dim).collect()
}

pub(crate) unsafe fn def_decom(
    ncid: c_int,
    ndims: c_int,
    dimids: *const c_int,
    num: c_int,
    starts: *const *const Offset,
    counts: *const *const Offset,
    decomidp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        // What is wrong here the others must know, who wait for this rank.
        let check = || -> Result<(Vec<DimId>, Vec<u64>, Vec<u64>)> {
            file.require_define()?;
            // SAFETY: the lists are as C says.
            let dims = unsafe { dims_of(file, ndims, dimids) }?;
            let num = usize::try_from(num).map_err(|_| NC_EINVAL)?;
            if num > 0 && (starts.is_null() || dims.is_empty()) {
                return Err(NC_EINVAL);
            }
            let list = |lists: *const *const Offset, n: usize| -> Result<Vec<u64>> {
                // SAFETY: there are `num` lists of a number for each dimension; null stands for ones.
                let list = match lists.is_null() {
                    true => std::ptr::null(),
                    false => unsafe { lists.add(n).read_unaligned() },
                };
                if list.is_null() {
                    return Ok(vec![1; dims.len()]);
                }
                // SAFETY: as above.
                let number = |d: usize| unsafe { list.add(d).read_unaligned() };
                let unsigned = |d| u64::try_from(number(d)).map_err(|_| NC_ENEGATIVECNT);
                (0..dims.len()).map(unsigned).collect()
            };
            let (mut first, mut len) = (Vec::new(), Vec::new());
            for n in 0..num {
                first.extend(list(starts, n)?);
                len.extend(list(counts, n)?);
            }
            Ok((dims, first, len))
        };
        let checked = check();
        let code = file.least(checked.as_ref().err().copied().unwrap_or(0));
        let (dims, first, len) = checked?;
        if code != 0 {
            return Err(code);
        }
        let mine = match first.is_empty() {
            true => Selection::none(),
            false => Selection::list(dims.len(), first, len),
        };
        let comm = file.comm.clone();
        let id = file.define()?.add_decomposition(&dims, &mine).map_err(|e| match &e {
            esker::Error::OtherRank { .. } => together(&*comm, &e),
            _ => {
                together(&*comm, &e);
                told(code_of_map(&e), &e)
            }
        })?;
        // The map's own variables are not filled.
        let vars = file.stored_schema()?.vars.len();
        file.no_fill.resize(vars, true);
        // SAFETY: the place is as C says.
        unsafe { give(decomidp, id.0 as c_int) };
        Ok(())
    })
}

/// The code of a map that was refused.
fn code_of_map(error: &esker::Error) -> Code {
    match error {
        esker::Error::Decomposition { .. } => NC_EINVAL,
        esker::Error::Container { .. } => NC_ENOTSUPPORT,
        other => of(other),
    }
}

pub(crate) unsafe fn def_decom_var(
    ncid: c_int,
    name: *const c_char,
    xtype: c_int,
    ndims: c_int,
    dimids: *const c_int,
    decomid: c_int,
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
            if file.schema()?.var(name).is_some() {
                return Err(NC_ENAMEINUSE);
            }
            // SAFETY: the list is as C says.
            Ok((name, ty, unsafe { dims_of(file, ndims, dimids) }?))
        };
        let checked = check();
        let bytes = checked.as_ref().map_or(&b""[..], |(name, _, _)| name.as_bytes());
        file.settle(
            checked.as_ref().map(|_| ()).map_err(|code| *code),
            &[
                (bytes, NC_EMULTIDEFINE_VAR_NAME),
                (&decomid.to_le_bytes(), NC_EMULTIDEFINE_FNC_ARGS),
            ],
        )?;
        let (name, ty, dims) = checked?;
        let map = DecompositionId(u64::try_from(decomid).map_err(|_| NC_EINVAL)?);
        let added = file.define()?.add_decomposed_var(name, ty, &dims, map);
        let id = added.map_err(|e| told(code_of_map(&e), &e))?;
        file.no_fill.push(!file.fill);
        // SAFETY: the place is as C says.
        unsafe { give(varidp, id.0 as c_int) };
        Ok(())
    })
}

/// The numbers of the maps, in order.
fn maps_of(file: &File) -> Result<Vec<u64>> {
    let schema = file.stored_schema()?;
    let number = |name: &str| {
        let number: u64 = name.strip_prefix('D')?.strip_suffix(".nreqs")?.parse().ok()?;
        schema.dim(&format!("D{number}.nelems")).map(|_| number)
    };
    let mut all: Vec<u64> = schema.vars.iter().filter_map(|v| number(&v.name)).collect();
    all.sort_unstable();
    Ok(all)
}

pub(crate) unsafe fn inq_decoms(ncid: c_int, ndecomsp: *mut c_int, decomids: *mut c_int) -> c_int {
    files::with(ncid, |file| {
        let all = maps_of(file)?;
        // SAFETY: the places are as C says.
        unsafe {
            give(ndecomsp, all.len() as c_int);
            if !decomids.is_null() {
                let all = all.iter().enumerate();
                all.for_each(|(n, id)| decomids.add(n).write_unaligned(*id as c_int));
            }
        }
        Ok(())
    })
}

pub(crate) unsafe fn inq_decom(
    ncid: c_int,
    decomid: c_int,
    ndimsp: *mut c_int,
    dimidsp: *mut c_int,
    nprocsp: *mut c_int,
    nblocksp: *mut Offset,
    nelemsp: *mut Offset,
) -> c_int {
    files::with(ncid, |file| {
        let known =
            u64::try_from(decomid).is_ok_and(|id| maps_of(file).is_ok_and(|all| all.contains(&id)));
        if !known {
            return Err(told(NC_EINVAL, format!("there is no decomposition map {decomid}")));
        }
        let schema = file.stored_schema()?;
        let of_map = |what: &str| format!("D{decomid}.{what}");
        let len = |name: &str| {
            let variable = schema.vars.get(&of_map(name)).ok_or(NC_ENOTVAR)?;
            schema.shape(variable, 0).first().copied().ok_or(NC_ENOTVAR)
        };
        let about = schema.vars.get(&of_map("nreqs")).ok_or(NC_ENOTVAR)?;
        let names = about.attrs.get("decomposed_dimensions").and_then(|attr| attr.values.text());
        let names = names.unwrap_or_default();
        let dim = |name: &str| schema.dim(name).ok_or(NC_EBADDIM);
        let dims = names.trim_end_matches('\0').split('/').map(dim).collect::<Result<Vec<_>>>()?;
        let stored = schema.dims.get(&of_map("nelems")).map(|dim| dim.len);
        let Some(esker::DimLen::Fixed(stored)) = stored else { return Err(NC_EBADDIM) };
        let (ranks, blocks) = (len("nreqs")?, len("offsets")?);
        // SAFETY: the places are as C says.
        unsafe {
            give(ndimsp, dims.len() as c_int);
            if !dimidsp.is_null() {
                let dims = dims.iter().enumerate();
                dims.for_each(|(d, dim)| dimidsp.add(d).write_unaligned(dim.0 as c_int));
            }
            give(nprocsp, ranks as c_int);
            give(nblocksp, blocks as Offset);
            give(nelemsp, stored as Offset);
        }
        Ok(())
    })
}

/// The number of a variable's map; 0 if it has none.
fn decom_of(file: &File, varid: c_int) -> Result<c_int> {
    let shown = file.variable(varid)?.dims.clone();
    let stored = file.stored_schema()?.variable(VarId(varid as usize)).ok_or(NC_ENOTVAR)?;
    // Where the two are the same, it is no array that is stored otherwise.
    if stored.dims == shown {
        return Ok(0);
    }
    let map = stored.attrs.get(esker::Decomposition::ATTRIBUTE).and_then(|attr| attr.values.text());
    let number = map.and_then(|name| name.trim_end_matches('\0').strip_prefix('D')?.parse().ok());
    Ok(number.unwrap_or(0))
}

pub(crate) unsafe fn inq_var_decom(ncid: c_int, varid: c_int, decomidp: *mut c_int) -> c_int {
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, decomidp, |file| decom_of(file, varid)) }
}

pub(crate) unsafe fn inq_var_decom_size(ncid: c_int, varid: c_int, nelemsp: *mut Offset) -> c_int {
    files::with(ncid, |file| {
        file.variable(varid)?;
        let own = file.dataset()?.blob_elements(VarId(varid as usize));
        let own = own.map_err(|e| told(code_of_map(&e), &e))?;
        // SAFETY: the place is as C says.
        unsafe { give(nelemsp, own as Offset) };
        Ok(())
    })
}

/// Begins a flush. Collective.
fn begin(ncid: c_int, tokenp: *mut c_int, work: fn(esker::Pending<()>) -> Work) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        let comm = file.comm.clone();
        let pending = match file.read_only {
            true => esker::Pending::ready(Ok(())),
            false => file.dataset()?.flush_start().map_err(|e| together(&*comm, &e))?,
        };
        let token = file.tokens.add(work(pending));
        // SAFETY: the place is as C says.
        unsafe { give(tokenp, token) };
        Ok(())
    })
}

pub(crate) unsafe fn flush_start(ncid: c_int, tokenp: *mut c_int) -> c_int {
    begin(ncid, tokenp, Work::Flush)
}

pub(crate) unsafe fn sync_start(ncid: c_int, tokenp: *mut c_int) -> c_int {
    begin(ncid, tokenp, Work::Sync)
}

pub(crate) unsafe fn get_vara_start(
    ncid: c_int,
    varid: c_int,
    start: *const Offset,
    count: *const Offset,
    ip: *mut c_void,
    bufcount: Offset,
    buftype: usize,
    tokenp: *mut c_int,
) -> c_int {
    // SAFETY: the lists and the memory are as C says.
    unsafe {
        begin_get(ncid, varid, [start, count], ip, Buffer::Flexible(bufcount, buftype), tokenp)
    }
}

/// The same with any buffer.
///
/// # Safety
///
/// The lists have a number for each dimension, and the memory is there until the token is waited for.
pub(crate) unsafe fn begin_get(
    ncid: c_int,
    varid: c_int,
    [start, count]: [*const Offset; 2],
    ip: *mut c_void,
    buffer: Buffer,
    tokenp: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        if file.is_defining() {
            return Err(NC_EINDEFINE);
        }
        let call = Call::new(Operation::IGet, false);
        file.check_call(varid, call, buffer.typed())?;
        let null = std::ptr::null();
        // SAFETY: the lists are as C says.
        let chosen = unsafe { file.choose(varid, true, Slab::Vara, [start, count, null, null]) }?;
        let wish = Wish { var: varid as usize, chosen, address: ip, buffer };
        // SAFETY: the memory is as C says, until the token is waited for.
        let request = unsafe { file.request(false, Timing::Later, wish) }?;
        let read = request.map(|(request, _)| (Box::new(request), VarId(varid as usize)));
        let dataset = file.dataset()?;
        let begun = read
            .map(|(request, var)| (dataset.get_values_start(var, request.selection()), request));
        if let Some((_, request)) = &begun {
            file.get_size += request.bytes;
        }
        let token = file.tokens.add(Work::Read(begun));
        // SAFETY: the place is as C says.
        unsafe { give(tokenp, token) };
        Ok(())
    })
}

/// The error of a token that there is not.
fn unknown(token: c_int) -> Code {
    told(NC_EINVAL_REQUEST, format!("there is no token {token}"))
}

pub(crate) unsafe fn token_test(ncid: c_int, token: c_int, donep: *mut c_int) -> c_int {
    let find = |file: &File| {
        let work = file.tokens.get(token).ok_or_else(|| unknown(token))?;
        Ok(c_int::from(work.is_over()))
    };
    // SAFETY: the place is as C says.
    unsafe { answer(ncid, donep, find) }
}

pub(crate) unsafe fn token_wait(ncid: c_int, token: c_int) -> c_int {
    files::with(ncid, |file| {
        let comm = file.comm.clone();
        match file.tokens.take(token).ok_or_else(|| unknown(token))? {
            Work::Flush(pending) | Work::Sync(pending) if file.is_defining() => {
                // What it was for has happened: a redefinition waits for it.
                pending.wait().map_err(|e| of(&e))
            }
            Work::Flush(pending) => {
                file.dataset()?.flush_wait(pending).map_err(|e| together(&*comm, &e))
            }
            Work::Sync(pending) => {
                let writable = !file.read_only;
                let dataset = file.dataset()?;
                let flushed = dataset.flush_wait(pending);
                let synced = if writable { flushed.and_then(|()| dataset.sync()) } else { flushed };
                synced.map_err(|e| together(&*comm, &e))
            }
            Work::Read(None) => Ok(()),
            Work::Read(Some((pending, mut request))) => {
                let values = pending.wait().map_err(|e| of(&e))?;
                // SAFETY: the program keeps the memory until it has waited.
                unsafe { request.receive(&values, file.version) }
            }
        }
    })
}
