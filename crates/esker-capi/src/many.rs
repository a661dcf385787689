//! mput and mget: several variables in one call.

use std::ffi::{c_int, c_void};

use esker::MemoryType;

use crate::codes::*;
use crate::files;
use crate::request::{Buffer, Timing, Wish};
use crate::transfer::{Call, Offset, Slab};

/// The buffers of a call: of a type of C, or counts and MPI datatypes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Buffers {
    Typed(MemoryType),
    Flexible(*const Offset, *const c_void),
}

impl Buffers {
    /// The buffer at a place of the list.
    unsafe fn at(self, place: usize) -> Result<Buffer> {
        match self {
            Buffers::Typed(memory) => Ok(Buffer::Typed(memory)),
            Buffers::Flexible(counts, types) => {
                // SAFETY: the lists have a place for each variable.
                let count = unsafe { counts.add(place).read_unaligned() };
                // SAFETY: as above.
                let raw = unsafe { esker_comm::mpi::read_handle(types, place) };
                Ok(Buffer::Flexible(count, raw.map_err(|e| of_mpi(&e))?))
            }
        }
    }
}

/// mput and mget.
///
/// # Safety
///
/// As the functions in C.
pub(crate) unsafe fn call(
    ncid: c_int,
    num: c_int,
    varids: *mut c_int,
    call: Call,
    slab: Slab,
    lists: [*const *const Offset; 4],
    buffers: *const *mut c_void,
    kinds: Buffers,
) -> c_int {
    files::with(ncid, |file| {
        if num == 0 && !call.collective {
            return Ok(());
        }
        let num = usize::try_from(num).map_err(|_| NC_EINVAL)?;
        let typed = match kinds {
            Buffers::Typed(memory) => Some(memory),
            Buffers::Flexible(..) => None,
        };
        let mut checked = Ok(());
        let mut chosen = Vec::with_capacity(num);
        for i in 0..num {
            // SAFETY: the list has a place for each variable.
            let varid = unsafe { varids.add(i).read_unaligned() };
            let indexes = lists.map(|list| {
                if list.is_null() {
                    return std::ptr::null();
                }
                // SAFETY: as above.
                unsafe { list.add(i).read_unaligned() }
            });
            let one = file
                .check_call(varid, call, typed)
                // SAFETY: the indexes are as C says.
                .and_then(|()| unsafe { file.choose(varid, !call.puts(), slab, indexes) });
            match one {
                Ok(one) => chosen.push((varid, one)),
                Err(code) => {
                    checked = Err(code);
                    break;
                }
            }
        }
        // SAFETY: the memory is as C says.
        unsafe {
            file.block(call, checked, |file| {
                let mut requests = Vec::with_capacity(num);
                for (i, (varid, chosen)) in chosen.into_iter().enumerate() {
                    let wish = Wish {
                        var: varid.max(0) as usize,
                        chosen,
                        address: buffers.add(i).read_unaligned(),
                        buffer: kinds.at(i)?,
                    };
                    requests.extend(file.request(call.puts(), Timing::Now, wish)?.map(|(r, _)| r));
                }
                Ok(requests)
            })
        }
    })
}
