//! What differs between the families of MPI libraries: handles, constants, the status.

use std::ffi::c_int;
use std::fmt;

/// A family of MPI libraries whose programs are binary compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// MPICH and what descends from it (Intel MPI, Cray MPICH, MVAPICH): handles are ints.
    Mpich,
    /// OpenMPI: handles are pointers, the predefined ones addresses of exported symbols.
    OpenMpi,
    /// The standard ABI of MPI 5: handles are pointers, the predefined ones small numbers.
    Standard,
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Abi::Mpich => "MPICH",
            Abi::OpenMpi => "OpenMPI",
            Abi::Standard => "MPI 5 standard",
        })
    }
}

/// An opaque MPI object as it lies in memory: an int or a pointer.
///
/// All of it is initialised from the start, so either field can be read at any time; only the
/// one of the library's ABI means anything.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union Handle {
    int: c_int,
    pointer: usize,
}

impl Handle {
    pub(super) const BLANK: Handle = Handle { pointer: 0 };

    /// From a handle widened to a pointer's size.
    pub(super) fn from_raw(abi: Abi, raw: usize) -> Self {
        let mut handle = Handle { pointer: raw };
        if abi == Abi::Mpich {
            handle = Handle::BLANK;
            handle.int = raw as u32 as c_int;
        }
        handle
    }

    /// The handle widened to a pointer's size.
    pub(super) fn to_raw(self, abi: Abi) -> usize {
        match abi {
            Abi::Mpich => c_int::of(self) as u32 as usize,
            Abi::OpenMpi | Abi::Standard => usize::of(self),
        }
    }
}

/// The C type of handles in an ABI.
pub(super) trait HandleType: Copy + 'static {
    fn of(handle: Handle) -> Self;
}

impl HandleType for c_int {
    #[allow(unsafe_code)]
    fn of(handle: Handle) -> Self {
        // SAFETY: every byte of a Handle is initialised and any bits are an int.
        unsafe { handle.int }
    }
}

impl HandleType for usize {
    #[allow(unsafe_code)]
    fn of(handle: Handle) -> Self {
        // SAFETY: every byte of a Handle is initialised and any bits are a usize.
        unsafe { handle.pointer }
    }
}

/// An MPI_Status: larger than that of any ABI (20, 24 and 32 bytes) and aligned for all.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(16))]
pub(super) struct Status([c_int; 16]);

impl Status {
    /// The rank that sent the message.
    pub(super) fn source(&self, abi: Abi) -> c_int {
        // MPICH keeps the count in two ints before the public fields.
        self.0[if abi == Abi::Mpich { 2 } else { 0 }]
    }
}

/// The numbers and predefined objects of a library.
#[derive(Clone, Copy)]
pub(super) struct Constants {
    pub(super) world: Handle,
    pub(super) own: Handle,
    pub(super) null: Handle,
    pub(super) byte: Handle,
    pub(super) u64: Handle,
    pub(super) i64: Handle,
    pub(super) f64: Handle,
    pub(super) min: Handle,
    pub(super) max: Handle,
    pub(super) sum: Handle,
    pub(super) bit_or: Handle,
    pub(super) errors_return: Handle,
    pub(super) no_info: Handle,
    pub(super) any_source: c_int,
    pub(super) undefined: c_int,
    pub(super) shared_memory: c_int,
    pub(super) tag_bound: c_int,
    pub(super) no_type: Handle,
    /// MPI_THREAD_SINGLE, FUNNELED, SERIALIZED, MULTIPLE.
    pub(super) thread_levels: [c_int; 4],
}

impl Constants {
    /// The constants of MPICH's mpi.h.
    pub(super) fn mpich() -> Self {
        let handle = |raw| Handle::from_raw(Abi::Mpich, raw);
        Constants {
            world: handle(0x4400_0000),
            own: handle(0x4400_0001),
            null: handle(0x0400_0000),
            byte: handle(0x4c00_010d),
            u64: handle(0x4c00_083e),
            i64: handle(0x4c00_083a),
            f64: handle(0x4c00_080b),
            max: handle(0x5800_0001),
            min: handle(0x5800_0002),
            sum: handle(0x5800_0003),
            bit_or: handle(0x5800_0008),
            errors_return: handle(0x5400_0001),
            no_info: handle(0x1c00_0000),
            no_type: handle(0x0c00_0000),
            any_source: -2,
            undefined: -32766,
            shared_memory: 1,
            tag_bound: 0x6440_0001,
            thread_levels: [0, 1, 2, 3],
        }
    }

    /// The constants of the MPI 5 standard, appendix A.
    pub(super) fn standard() -> Self {
        let handle = |raw| Handle::from_raw(Abi::Standard, raw);
        Constants {
            world: handle(0x101),
            own: handle(0x102),
            null: handle(0x100),
            byte: handle(0x247),
            u64: handle(0x259),
            i64: handle(0x258),
            f64: handle(0x214),
            sum: handle(0x21),
            min: handle(0x22),
            max: handle(0x23),
            bit_or: handle(0x29),
            errors_return: handle(0x143),
            no_info: handle(0x130),
            no_type: handle(0x200),
            any_source: -1,
            undefined: -32766,
            shared_memory: 221,
            tag_bound: 501,
            thread_levels: [0, 1024, 2048, 4096],
        }
    }

    /// The constants of OpenMPI's mpi.h, given where its predefined objects lie.
    pub(super) fn open_mpi(
        address: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Self, String> {
        let handle = |name| Ok::<_, String>(Handle::from_raw(Abi::OpenMpi, address(name)?));
        Ok(Constants {
            world: handle("ompi_mpi_comm_world")?,
            own: handle("ompi_mpi_comm_self")?,
            null: handle("ompi_mpi_comm_null")?,
            byte: handle("ompi_mpi_byte")?,
            u64: handle("ompi_mpi_uint64_t")?,
            i64: handle("ompi_mpi_int64_t")?,
            f64: handle("ompi_mpi_double")?,
            max: handle("ompi_mpi_op_max")?,
            min: handle("ompi_mpi_op_min")?,
            sum: handle("ompi_mpi_op_sum")?,
            bit_or: handle("ompi_mpi_op_bor")?,
            errors_return: handle("ompi_mpi_errors_return")?,
            no_info: handle("ompi_mpi_info_null")?,
            no_type: handle("ompi_mpi_datatype_null")?,
            any_source: -1,
            undefined: -32766,
            shared_memory: 0,
            tag_bound: 0,
            thread_levels: [0, 1, 2, 3],
        })
    }
}
