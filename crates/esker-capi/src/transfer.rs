//! The one road of all data calls: checks in PnetCDF's order, then a request, then it is moved
//! or queued.

use std::ffi::{c_int, c_void};

use esker::{MemoryType, Selection};

use crate::codes::*;
use crate::file::{File, give};
use crate::files;
use crate::request::{Buffer, Request, Timing, Wish};

/// Offsets, counts and sizes: MPI_Offset.
pub(crate) type Offset = i64;

/// What a function does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Put,
    Get,
    IPut,
    IGet,
    BPut,
}

/// What a function does, and with whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) collective: bool,
    /// Whether the memory of a put is gone when the call returns.
    passing: bool,
}

impl Call {
    pub(crate) fn new(operation: Operation, collective: bool) -> Call {
        Call { operation, collective, passing: false }
    }

    /// The same from memory that is gone when the call returns.
    pub(crate) fn copied(self) -> Call {
        Call { passing: true, ..self }
    }

    pub(crate) fn puts(self) -> bool {
        matches!(self.operation, Operation::Put | Operation::IPut | Operation::BPut)
    }

    pub(crate) fn blocks(self) -> bool {
        matches!(self.operation, Operation::Put | Operation::Get)
    }

    fn timing(self) -> Timing {
        match self.operation {
            Operation::Put | Operation::Get => Timing::Now,
            Operation::IPut | Operation::IGet if !self.passing => Timing::Later,
            Operation::IPut | Operation::IGet | Operation::BPut => Timing::Copied,
        }
    }
}

/// Which elements the function's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slab {
    Var,
    Var1,
    Vara,
    Vars,
    Varm,
}

/// start, count, stride, imap; null where there is none.
pub(crate) type Indexes = [*const Offset; 4];

/// Elements of a variable that were checked.
pub(crate) struct Chosen {
    pub(crate) selection: Selection,
    pub(crate) elements: u64,
    /// Counts and imap of a mapped access.
    pub(crate) map: Option<(Vec<u64>, Vec<i64>)>,
}

impl File {
    /// The checks that do not look at the elements.
    pub(crate) fn check_call(
        &self,
        varid: c_int,
        call: Call,
        buffer: Option<MemoryType>,
    ) -> Result<()> {
        if call.puts() {
            self.require_writable()?;
        }
        if call.blocks() {
            if self.is_defining() {
                return Err(NC_EINDEFINE);
            }
            match (call.collective, self.independent) {
                (true, true) => return Err(NC_EINDEP),
                (false, false) => return Err(NC_ENOTINDEP),
                _ => {}
            }
        }
        let variable = self.variable(varid)?;
        if let Some(memory) = buffer
            && (memory == MemoryType::Text) != (variable.ty == esker::ExternalType::Char)
        {
            return Err(told(NC_ECHAR, format!("variable \"{}\"", variable.name)));
        }
        Ok(())
    }

    /// A buffered put needs an attached buffer.
    pub(crate) fn check_buffer(&self, call: Call) -> Result<()> {
        match (call.operation, &self.pending.buffer) {
            (Operation::BPut, None) => Err(NC_ENULLABUF),
            _ => Ok(()),
        }
    }

    /// The shape as signed numbers, with the records there are, and whether it has records.
    pub(crate) fn shape(&self, varid: c_int) -> Result<(Vec<i64>, bool)> {
        let variable = self.variable(varid)?;
        let schema = self.schema()?;
        let shape = schema.shape(variable, self.numrecs());
        let signed = shape.iter().map(|len| i64::try_from(*len).unwrap_or(i64::MAX)).collect();
        Ok((signed, schema.is_record(variable)))
    }

    /// Checks start, count and stride against the variable's shape, in PnetCDF's order.
    pub(crate) fn check_slab(
        &self,
        (shape, is_record): (&[i64], bool),
        reads: bool,
        start: Option<&[i64]>,
        count: Option<&[i64]>,
        stride: Option<&[i64]>,
        single: bool,
    ) -> Result<()> {
        let start = match start {
            Some(start) if start[0] >= 0 => start,
            _ => return Err(NC_EINVALCOORDS),
        };
        let len = |d: usize| count.map_or(1, |count| count[d]);
        let coordinate = |d: usize| -> Result<()> {
            let (start, shape, count) = (start[d], shape[d], len(d));
            let beyond = if self.strict { start >= shape } else { start > shape };
            if start < 0 || beyond || (start == shape && count > 0) {
                return Err(told(
                    NC_EINVALCOORDS,
                    format!("start {start} in dimension {d}, whose length is {shape}"),
                ));
            }
            Ok(())
        };
        let mut first = 0;
        if is_record {
            if self.version != esker::Version::Cdf5 && start[0] > i64::from(u32::MAX) {
                return Err(NC_EINVALCOORDS);
            }
            if reads {
                if shape[0] == 0 && len(0) > 0 {
                    return Err(told(NC_EINVALCOORDS, "there are no records"));
                }
                coordinate(0)?;
            }
            first = 1;
        }
        (first..shape.len()).try_for_each(coordinate)?;
        let Some(count) = count else {
            return if single { Ok(()) } else { Err(NC_EEDGE) };
        };
        let edge = |d: usize| -> Result<()> {
            let (start, count, shape) =
                (i128::from(start[d]), i128::from(count[d]), i128::from(shape[d]));
            let stride = stride.map_or(1, |stride| i128::from(stride[d]));
            let beyond = count > shape
                || start + count > shape
                || (count > 0 && start + (count - 1) * stride >= shape);
            if beyond {
                return Err(told(
                    NC_EEDGE,
                    format!(
                        "start {start} and count {count} in dimension {d}, whose length is {shape}"
                    ),
                ));
            }
            Ok(())
        };
        if is_record {
            if count[0] < 0 {
                return Err(NC_ENEGATIVECNT);
            }
            if reads {
                edge(0)?;
            }
        }
        (first..shape.len()).try_for_each(|d| match count[d] < 0 {
            true => Err(NC_ENEGATIVECNT),
            false => edge(d),
        })?;
        match stride {
            Some(stride) if stride.iter().any(|step| *step <= 0) => Err(NC_ESTRIDE),
            _ => Ok(()),
        }
    }

    /// Checks the indexes of one hyperslab and makes a selection of them.
    ///
    /// # Safety
    ///
    /// Indexes that are not null have a number for each dimension.
    pub(crate) unsafe fn choose(
        &self,
        varid: c_int,
        reads: bool,
        slab: Slab,
        [start, count, stride, imap]: Indexes,
    ) -> Result<Chosen> {
        let (shape, is_record) = self.shape(varid)?;
        let rank = shape.len();
        if rank == 0 {
            return Ok(Chosen { selection: Selection::slab(&[], &[]), elements: 1, map: None });
        }
        let list = |place: *const Offset| {
            // SAFETY: the caller vouches for a number for each dimension; C may not align it.
            (!place.is_null()).then(|| unsafe {
                (0..rank).map(|d| place.add(d).read_unaligned()).collect::<Vec<i64>>()
            })
        };
        let (start, mut count, stride, imap) = (list(start), list(count), list(stride), list(imap));
        let start = if slab == Slab::Var {
            count = Some(shape);
            vec![0; rank]
        } else {
            let single = slab == Slab::Var1;
            self.check_slab(
                (&shape, is_record),
                reads,
                start.as_deref(),
                count.as_deref(),
                stride.as_deref(),
                single,
            )?;
            start.unwrap_or_default()
        };
        let count = count.unwrap_or_else(|| vec![1; rank]);
        let unsigned =
            |list: &[i64]| -> Vec<u64> { list.iter().map(|n| (*n).max(0) as u64).collect() };
        let count = unsigned(&count);
        let elements =
            count.iter().try_fold(1u64, |n, len| n.checked_mul(*len)).ok_or(NC_EINTOVERFLOW)?;
        let stride = stride.map_or(Vec::new(), |stride| unsigned(&stride));
        let selection = if elements == 0 {
            Selection::none()
        } else {
            Selection::strided(&unsigned(&start), &count, &stride)
        };
        let map = imap.filter(|_| elements > 0).map(|imap| (count, imap));
        Ok(Chosen { selection, elements, map })
    }

    /// Whether a rank that failed must take part in the collective call all the same. In safe
    /// mode, all ranks learn of an error first.
    fn gate(&self, call: Call, checked: Result<()>) -> Result<Result<()>> {
        if !call.collective {
            checked?;
            return Ok(Ok(()));
        }
        if self.safe {
            match self.least(checked.err().unwrap_or(0)) {
                0 => return Ok(Ok(())),
                code => return Err(code),
            }
        }
        match checked {
            Err(code @ (NC_EPERM | NC_EINDEFINE | NC_EINDEP | NC_ENOTINDEP)) => Err(code),
            Err(code) if self.comm.size() == 1 => Err(code),
            other => Ok(other),
        }
    }

    /// A blocking call: what was asked for, or nothing, moved with the others.
    ///
    /// # Safety
    ///
    /// The memory is as the call in C says.
    pub(crate) unsafe fn block(
        &mut self,
        call: Call,
        checked: Result<()>,
        make: impl FnOnce(&File) -> Result<Vec<Request>>,
    ) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.block_with(call, checked, |file| Ok((make(file)?, ())), |_, ()| Ok(())) }
    }

    /// The same, with something to do when the requests are done.
    ///
    /// # Safety
    ///
    /// The memory is as the call in C says.
    pub(crate) unsafe fn block_with<T: Default>(
        &mut self,
        call: Call,
        checked: Result<()>,
        make: impl FnOnce(&File) -> Result<(Vec<Request>, T)>,
        after: impl FnOnce(&[Request], T) -> Result<()>,
    ) -> Result<()> {
        let checked = self.gate(call, checked)?;
        let made = checked.and_then(|()| make(self));
        let ((mut requests, more), mut code) = match made {
            Ok(made) => (made, 0),
            Err(code) if !call.collective => return Err(code),
            Err(code) => ((Vec::new(), T::default()), code),
        };
        // SAFETY: the caller vouches for the memory.
        let outcome = unsafe { self.carry(&mut requests, call.collective) };
        match outcome {
            Ok(codes) => {
                if let Some(first) = codes.into_iter().find(|c| *c != 0).filter(|_| code == 0) {
                    code = first;
                }
            }
            Err(failed) if code == 0 => code = failed,
            Err(_) => {}
        }
        if code == 0 || code == NC_ERANGE {
            after(&requests, more)?;
        }
        if code == 0 { Ok(()) } else { Err(code) }
    }

    /// A posted call: queued, with its number.
    fn post(&mut self, call: Call, made: Option<(Request, Code)>) -> Result<(c_int, Code)> {
        let Some((mut request, code)) = made else { return Ok((-1, 0)) };
        if call.operation == Operation::BPut {
            let buffer = self.pending.buffer.as_mut().ok_or(NC_ENULLABUF)?;
            request.part = Some(buffer.take(request.bytes)?);
        }
        Ok((self.pending.add(request), code))
    }

    /// Goes on with checked elements: moves them, or queues the request.
    pub(crate) unsafe fn go(
        &mut self,
        varid: c_int,
        call: Call,
        chosen: Result<Chosen>,
        (address, buffer): (*mut c_void, Buffer),
        req: *mut c_int,
    ) -> Result<()> {
        let make = |file: &File, chosen: Chosen| {
            let wish = Wish { var: varid.max(0) as usize, chosen, address, buffer };
            // SAFETY: the caller vouches for the memory.
            unsafe { file.request(call.puts(), call.timing(), wish) }
        };
        if call.blocks() {
            let (checked, chosen) = match chosen {
                Ok(chosen) => (Ok(()), Some(chosen)),
                Err(code) => (Err(code), None),
            };
            // SAFETY: the caller vouches for the memory.
            return unsafe {
                self.block(call, checked, |file| match chosen {
                    None => Ok(Vec::new()),
                    Some(chosen) => Ok(make(file, chosen)?.map(|(r, _)| r).into_iter().collect()),
                })
            };
        }
        let made = make(self, chosen?)?;
        let (id, code) = self.post(call, made)?;
        // SAFETY: `req` is null or a place for a number.
        unsafe { give(req, id) };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

/// Whether a flexible call has nothing to do, and need not take part in anything.
fn is_empty(call: Call, buffer: Buffer) -> bool {
    match buffer {
        Buffer::Flexible(0, raw) if !(call.blocks() && call.collective) => {
            // SAFETY: the handle is as C says.
            matches!(unsafe { esker_comm::mpi::Datatype::from_raw(raw) }, Ok(Some(_)))
        }
        _ => false,
    }
}

impl Buffer {
    pub(crate) fn typed(self) -> Option<MemoryType> {
        match self {
            Buffer::Typed(memory) => Some(memory),
            Buffer::Flexible(..) => None,
        }
    }
}

/// put, get, iput, iget and bput of one hyperslab.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn one(
    ncid: c_int,
    varid: c_int,
    call: Call,
    slab: Slab,
    indexes: Indexes,
    address: *mut c_void,
    buffer: Buffer,
    req: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: `req` is null or a place for a number.
        unsafe { give(req, -1) };
        let checked = file.check_call(varid, call, buffer.typed()).and(file.check_buffer(call));
        // SAFETY: the indexes are as C says.
        let chosen =
            checked.and_then(|()| unsafe { file.choose(varid, !call.puts(), slab, indexes) });
        if chosen.is_ok() && is_empty(call, buffer) {
            return Ok(());
        }
        // SAFETY: the memory is as C says.
        unsafe { file.go(varid, call, chosen, (address, buffer), req) }
    })
}

/// put, get, iput, iget and bput of a list of blocks.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn list(
    ncid: c_int,
    varid: c_int,
    call: Call,
    num: c_int,
    starts: *const *const Offset,
    counts: *const *const Offset,
    address: *mut c_void,
    buffer: Buffer,
    req: *mut c_int,
) -> c_int {
    files::with(ncid, |file| {
        // SAFETY: `req` is null or a place for a number.
        unsafe { give(req, -1) };
        let checked = file.check_call(varid, call, buffer.typed());
        if checked.is_ok() && num == 0 && !(call.blocks() && call.collective) {
            return Ok(());
        }
        let checked = checked.and(file.check_buffer(call));
        if checked.is_ok() && is_empty(call, buffer) {
            return Ok(());
        }
        let mut buffer = buffer;
        // SAFETY: the lists are as C says.
        let chosen = checked
            .and_then(|()| unsafe { file.choose_list(varid, !call.puts(), num, starts, counts) });
        if num == 0 {
            // Nothing, whatever the buffer is said to be.
            buffer = Buffer::Flexible(0, 0);
        }
        // SAFETY: the memory is as C says.
        unsafe { file.go(varid, call, chosen, (address, buffer), req) }
    })
}
