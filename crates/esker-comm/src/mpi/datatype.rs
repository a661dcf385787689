//! MPI_Datatype: what a program's derived types are made of, and packing by them.

use std::ffi::{c_int, c_void};

use super::abi::{Abi, Handle};
use super::library::{Library, library};
use crate::{CommError, Result};

/// The basic types of C and Fortran that hold one number or character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Text.
    Char,
    /// Signed, one byte.
    I8,
    /// Unsigned, one byte.
    U8,
    /// Uninterpreted, one byte.
    Byte,
    /// Signed, two bytes.
    I16,
    /// Unsigned, two bytes.
    U16,
    /// Signed, four bytes.
    I32,
    /// Unsigned, four bytes.
    U32,
    /// Signed, eight bytes.
    I64,
    /// Unsigned, eight bytes.
    U64,
    /// IEEE, four bytes.
    F32,
    /// IEEE, eight bytes.
    F64,
}

/// What a datatype consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeMap {
    /// The type of every element; `None` if there is none that we know.
    pub element: Option<Element>,
    /// Whether elements of several types occur.
    pub mixed: bool,
    /// Elements in one datatype (0 where the type is not known).
    pub elements: u64,
    /// Bytes of data in one datatype.
    pub size: u64,
    /// Whether it is one of MPI's own types, so that a count of them lies without gaps.
    pub predefined: bool,
}

/// A run of bytes of a datatype, from its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where it begins.
    pub offset: i64,
    /// Its length.
    pub len: u64,
}

/// A datatype of the program.
#[derive(Clone, Copy)]
pub struct Datatype {
    library: &'static Library,
    handle: Handle,
}

impl std::fmt::Debug for Datatype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Datatype({:#x})", self.handle.to_raw(self.library.abi))
    }
}

/// MPICH's number, the MPI 5 number and OpenMPI's symbol of each type that we know.
const KNOWN: &[(Element, u32, usize, &str)] = &[
    (Element::Char, 0x4c00_0101, 0x243, "ompi_mpi_char"),
    (Element::Char, 0x4c00_011a, 0x21e, "ompi_mpi_character"),
    (Element::I8, 0x4c00_0118, 0x244, "ompi_mpi_signed_char"),
    (Element::I8, 0x4c00_0137, 0x240, "ompi_mpi_int8_t"),
    (Element::I8, 0x4c00_012d, 0x2c1, "ompi_mpi_integer1"),
    (Element::U8, 0x4c00_0102, 0x245, "ompi_mpi_unsigned_char"),
    (Element::U8, 0x4c00_013b, 0x241, "ompi_mpi_uint8_t"),
    (Element::Byte, 0x4c00_010d, 0x247, "ompi_mpi_byte"),
    (Element::I16, 0x4c00_0203, 0x208, "ompi_mpi_short"),
    (Element::I16, 0x4c00_0238, 0x248, "ompi_mpi_int16_t"),
    (Element::I16, 0x4c00_022f, 0x2c9, "ompi_mpi_integer2"),
    (Element::U16, 0x4c00_0204, 0x20c, "ompi_mpi_unsigned_short"),
    (Element::U16, 0x4c00_023c, 0x249, "ompi_mpi_uint16_t"),
    (Element::I32, 0x4c00_0405, 0x209, "ompi_mpi_int"),
    (Element::I32, 0x4c00_0439, 0x250, "ompi_mpi_int32_t"),
    (Element::I32, 0x4c00_041b, 0x219, "ompi_mpi_integer"),
    (Element::I32, 0x4c00_0430, 0x2d1, "ompi_mpi_integer4"),
    (Element::U32, 0x4c00_0406, 0x20d, "ompi_mpi_unsigned"),
    (Element::U32, 0x4c00_043d, 0x251, "ompi_mpi_uint32_t"),
    (Element::I64, 0x4c00_0807, 0x20a, "ompi_mpi_long"),
    (Element::I64, 0x4c00_0809, 0x20b, "ompi_mpi_long_long_int"),
    (Element::I64, 0x4c00_083a, 0x258, "ompi_mpi_int64_t"),
    (Element::I64, 0x4c00_0831, 0x2d9, "ompi_mpi_integer8"),
    (Element::I64, 0x4c00_0844, 0x203, "ompi_mpi_offset"),
    (Element::I64, 0x4c00_0843, 0x201, "ompi_mpi_aint"),
    (Element::U64, 0x4c00_0808, 0x20e, "ompi_mpi_unsigned_long"),
    (Element::U64, 0x4c00_0819, 0x20f, "ompi_mpi_unsigned_long_long"),
    (Element::U64, 0x4c00_083e, 0x259, "ompi_mpi_uint64_t"),
    (Element::F32, 0x4c00_040a, 0x210, "ompi_mpi_float"),
    (Element::F32, 0x4c00_041c, 0x21a, "ompi_mpi_real"),
    (Element::F32, 0x4c00_0427, 0x2d2, "ompi_mpi_real4"),
    (Element::F64, 0x4c00_080b, 0x214, "ompi_mpi_double"),
    (Element::F64, 0x4c00_081f, 0x21c, "ompi_mpi_dblprec"),
    (Element::F64, 0x4c00_0829, 0x2da, "ompi_mpi_real8"),
];

/// The largest number of bytes given to MPI_Pack at once.
const PIECE: u64 = 1 << 30;

impl Element {
    /// Bytes of one.
    pub fn size(self) -> u64 {
        match self {
            Element::Char | Element::I8 | Element::U8 | Element::Byte => 1,
            Element::I16 | Element::U16 => 2,
            Element::I32 | Element::U32 | Element::F32 => 4,
            Element::I64 | Element::U64 | Element::F64 => 8,
        }
    }
}

/// The two lists of numbers and the types that a derived type was made from.
struct Contents {
    ints: Vec<c_int>,
    addresses: Vec<isize>,
    kinds: Vec<Datatype>,
    combiner: c_int,
}

impl Datatype {
    /// The datatype with this handle (upper bits of an int are ignored); `None` for
    /// MPI_DATATYPE_NULL.
    ///
    /// # Safety
    ///
    /// The handle is a valid MPI_Datatype or MPI_DATATYPE_NULL, for as long as this is used.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw(raw: usize) -> Result<Option<Datatype>> {
        let library = library()?;
        let handle = Handle::from_raw(library.abi, raw);
        let null = library.constants.no_type.to_raw(library.abi);
        let is_null = raw == 0 || handle.to_raw(library.abi) == null;
        Ok((!is_null).then_some(Datatype { library, handle }))
    }

    /// A duplicate that outlives the program's own; freed by [`Datatype::free`].
    #[allow(unsafe_code)]
    pub fn duplicate(&self) -> Result<Datatype> {
        let mut new = Handle::BLANK;
        // SAFETY: the handle is valid and `new` outlives the call.
        self.library.call("MPI_Type_dup", |mpi| unsafe { mpi.type_dup(self.handle, &mut new) })?;
        Ok(Datatype { handle: new, ..*self })
    }

    /// Frees a type that MPI made for us.
    #[allow(unsafe_code)]
    pub fn free(self) {
        let mut handle = self.handle;
        // SAFETY: the handle is ours. That MPI refuses would be no one's concern.
        let _ = self.library.call("MPI_Type_free", |mpi| unsafe { mpi.type_free(&mut handle) });
    }

    fn known(&self) -> Option<Element> {
        let raw = self.handle.to_raw(self.library.abi);
        let place = self.library.elements.iter().find(|(handle, _)| *handle == raw)?;
        Some(place.1)
    }

    /// Bytes of data in one.
    #[allow(unsafe_code)]
    pub fn size(&self) -> Result<u64> {
        let mut size: c_int = 0;
        // SAFETY: the handle is valid and `size` outlives the call.
        self.library
            .call("MPI_Type_size", |mpi| unsafe { mpi.type_size(self.handle, &mut size) })?;
        Ok(size.max(0) as u64)
    }

    /// Bytes from one to the next in a list of them.
    #[allow(unsafe_code)]
    pub fn extent(&self) -> Result<i64> {
        let (mut low, mut extent) = (0isize, 0isize);
        // SAFETY: the handle is valid and both numbers outlive the call.
        self.library.call("MPI_Type_get_extent", |mpi| unsafe {
            mpi.type_get_extent(self.handle, &mut low, &mut extent)
        })?;
        Ok(extent as i64)
    }

    /// What it consists of.
    pub fn map(&self) -> Result<TypeMap> {
        let size = self.size()?;
        let (mut mixed, mut unknown) = (false, false);
        let element = self.element(&mut mixed, &mut unknown)?;
        let element = if unknown { None } else { element };
        let elements = element.map_or(0, |e| size / e.size());
        Ok(TypeMap { element, mixed, elements, size, predefined: self.known().is_some() })
    }

    fn element(&self, mixed: &mut bool, unknown: &mut bool) -> Result<Option<Element>> {
        if let Some(element) = self.known() {
            return Ok(Some(element));
        }
        let contents = self.contents()?;
        if contents.kinds.is_empty() {
            *unknown = true;
        }
        let mut found: Option<Element> = None;
        for kind in &contents.kinds {
            let element = kind.element(mixed, unknown)?;
            *mixed |= found.is_some() && element != found;
            found = found.or(element);
        }
        contents.free();
        Ok(found)
    }

    /// How many ints, addresses and types it was made from, and how.
    #[allow(unsafe_code)]
    fn envelope(&self) -> Result<[c_int; 4]> {
        let (mut ints, mut addresses, mut kinds, mut combiner) = (0, 0, 0, 0);
        // SAFETY: the handle is valid and the numbers outlive the call.
        self.library.call("MPI_Type_get_envelope", |mpi| unsafe {
            let counts = (&mut ints, &mut addresses, &mut kinds);
            mpi.type_get_envelope(self.handle, counts.0, counts.1, counts.2, &mut combiner)
        })?;
        Ok([ints, addresses, kinds, combiner])
    }

    #[allow(unsafe_code)]
    fn contents(&self) -> Result<Contents> {
        let [ints, addresses, kinds, combiner] = self.envelope()?;
        let size = |n: c_int| n.max(0) as usize;
        let mut int_list = vec![0; size(ints)];
        let mut address_list = vec![0; size(addresses)];
        // Room for pointers is room for ints.
        let mut kind_list = vec![0usize; size(kinds)];
        if kinds > 0 {
            // SAFETY: the lists are as long as MPI said, and the type is no predefined one.
            self.library.call("MPI_Type_get_contents", |mpi| unsafe {
                mpi.type_get_contents(
                    self.handle,
                    ints,
                    addresses,
                    kinds,
                    int_list.as_mut_ptr(),
                    address_list.as_mut_ptr(),
                    kind_list.as_mut_ptr().cast::<Handle>(),
                )
            })?;
        }
        let library = self.library;
        let mut kinds = Vec::with_capacity(kind_list.len());
        for place in 0..kind_list.len() {
            // SAFETY: MPI wrote as many handles there.
            let raw = unsafe { super::read_handle(kind_list.as_ptr().cast(), place) }?;
            kinds.push(Datatype { library, handle: Handle::from_raw(library.abi, raw) });
        }
        Ok(Contents { ints: int_list, addresses: address_list, kinds, combiner })
    }

    /// Its runs of bytes, in the order of its type map; adjacent ones are one.
    pub fn blocks(&self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        self.lay(0, &mut blocks)?;
        Ok(blocks)
    }

    fn lay(&self, at: i64, out: &mut Vec<Block>) -> Result<()> {
        if let Some(element) = self.known() {
            push(out, Block { offset: at, len: element.size() });
            return Ok(());
        }
        let contents = self.contents()?;
        let laid = contents.lay(self.library.abi, at, out);
        contents.free();
        laid
    }

    fn lay_times(&self, at: i64, times: i64, out: &mut Vec<Block>) -> Result<()> {
        if let Some(element) = self.known() {
            let len = element.size() * times.max(0) as u64;
            if len > 0 {
                push(out, Block { offset: at, len });
            }
            return Ok(());
        }
        let extent = self.extent()?;
        (0..times).try_for_each(|i| self.lay(at + i * extent, out))
    }

    /// Packs `count` of them from memory into dense elements.
    ///
    /// # Safety
    ///
    /// `data` has so many, as C would say for a send.
    #[allow(unsafe_code)]
    pub unsafe fn pack(&self, data: *const c_void, count: u64) -> Result<Vec<u8>> {
        let (size, extent) = (self.size()?, self.extent()?);
        let mut packed = vec![0u8; (size * count) as usize];
        for (first, n) in pieces(size, count) {
            let part = &mut packed[(first * size) as usize..((first + n) * size) as usize];
            let from = data.cast::<u8>().wrapping_offset((first as i64 * extent) as isize);
            let mut place: c_int = 0;
            let own = self.library.constants.own;
            // SAFETY: the caller vouches for the data; the buffer is as long as they are.
            self.library.call("MPI_Pack", |mpi| unsafe {
                let (buffer, len) = (part.as_mut_ptr().cast(), part.len() as c_int);
                mpi.pack(from.cast(), n as c_int, self.handle, buffer, len, &mut place, own)
            })?;
        }
        Ok(packed)
    }

    /// Unpacks dense elements to `count` of them in memory.
    ///
    /// # Safety
    ///
    /// `data` has room for so many, as C would say for a receive.
    #[allow(unsafe_code)]
    pub unsafe fn unpack(&self, packed: &[u8], data: *mut c_void, count: u64) -> Result<()> {
        let (size, extent) = (self.size()?, self.extent()?);
        if (packed.len() as u64) < size * count {
            let reason = format!("{} bytes are too few for {count} of a datatype", packed.len());
            return Err(CommError::BadArgument { operation: "unpack", reason });
        }
        for (first, n) in pieces(size, count) {
            let part = &packed[(first * size) as usize..((first + n) * size) as usize];
            let to = data.cast::<u8>().wrapping_offset((first as i64 * extent) as isize);
            let mut place: c_int = 0;
            let own = self.library.constants.own;
            // SAFETY: the caller vouches for the memory; the packed bytes are as many.
            self.library.call("MPI_Unpack", |mpi| unsafe {
                let (from, len) = (part.as_ptr().cast(), part.len() as c_int);
                mpi.unpack(from, len, &mut place, to.cast(), n as c_int, self.handle, own)
            })?;
        }
        Ok(())
    }
}

/// First and number of datatypes that MPI, whose counts are ints, packs at once.
fn pieces(size: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = (PIECE / size.max(1)).clamp(1, 1 << 30);
    (0..count.div_ceil(most)).map(move |i| (i * most, most.min(count - i * most)))
}

fn push(out: &mut Vec<Block>, block: Block) {
    match out.last_mut() {
        Some(last) if last.offset + last.len as i64 == block.offset => last.len += block.len,
        _ => out.push(block),
    }
}

/// The ways to make a type of others, by MPICH's numbers.
mod combiner {
    pub(super) const DUP: i32 = 2;
    pub(super) const CONTIGUOUS: i32 = 3;
    pub(super) const VECTOR: i32 = 4;
    pub(super) const HVECTOR: i32 = 6;
    pub(super) const INDEXED: i32 = 7;
    pub(super) const HINDEXED: i32 = 9;
    pub(super) const INDEXED_BLOCK: i32 = 10;
    pub(super) const STRUCT: i32 = 12;
    pub(super) const SUBARRAY: i32 = 13;
    pub(super) const RESIZED: i32 = 18;
    pub(super) const HINDEXED_BLOCK: i32 = 19;

    /// What MPI 5's numbers are; others stay what they are, and mean nothing.
    pub(super) fn of_standard(number: i32) -> i32 {
        match number {
            102 => DUP,
            103 => CONTIGUOUS,
            104 => VECTOR,
            105 => HVECTOR,
            106 => INDEXED,
            107 => HINDEXED,
            108 => INDEXED_BLOCK,
            109 => HINDEXED_BLOCK,
            110 => STRUCT,
            111 => SUBARRAY,
            116 => RESIZED,
            other => other,
        }
    }
}

impl Contents {
    /// Frees the types that MPI made to tell us; the predefined ones are not ours.
    fn free(self) {
        for kind in self.kinds {
            if kind.known().is_none() && kind.envelope().is_ok_and(|[_, _, kinds, _]| kinds > 0) {
                kind.free();
            }
        }
    }

    fn int(&self, place: usize) -> i64 {
        self.ints.get(place).copied().map_or(0, i64::from)
    }

    fn address(&self, place: usize) -> i64 {
        self.addresses.get(place).copied().map_or(0, |a| a as i64)
    }

    fn lay(&self, abi: Abi, at: i64, out: &mut Vec<Block>) -> Result<()> {
        let refuse = |reason: String| {
            Err(CommError::BadArgument { operation: "taking a datatype apart", reason })
        };
        let combiner = match abi {
            // OpenMPI counts from 0.
            Abi::OpenMpi => self.combiner + 1,
            Abi::Mpich => self.combiner,
            Abi::Standard => combiner::of_standard(self.combiner),
        };
        let Some(kind) = self.kinds.first() else {
            return refuse("a basic type that is unknown".to_string());
        };
        let count = self.int(0);
        match combiner {
            combiner::DUP | combiner::RESIZED => kind.lay(at, out),
            combiner::CONTIGUOUS => kind.lay_times(at, count, out),
            combiner::VECTOR => {
                let step = self.int(2) * kind.extent()?;
                (0..count).try_for_each(|i| kind.lay_times(at + i * step, self.int(1), out))
            }
            combiner::HVECTOR => (0..count)
                .try_for_each(|i| kind.lay_times(at + i * self.address(0), self.int(1), out)),
            combiner::INDEXED => {
                let extent = kind.extent()?;
                (0..count as usize).try_for_each(|i| {
                    let place = self.int(1 + count as usize + i) * extent;
                    kind.lay_times(at + place, self.int(1 + i), out)
                })
            }
            combiner::HINDEXED => (0..count as usize)
                .try_for_each(|i| kind.lay_times(at + self.address(i), self.int(1 + i), out)),
            combiner::INDEXED_BLOCK => {
                let extent = kind.extent()?;
                (0..count as usize).try_for_each(|i| {
                    kind.lay_times(at + self.int(2 + i) * extent, self.int(1), out)
                })
            }
            combiner::HINDEXED_BLOCK => (0..count as usize)
                .try_for_each(|i| kind.lay_times(at + self.address(i), self.int(1), out)),
            combiner::STRUCT => (0..count as usize).try_for_each(|i| match self.kinds.get(i) {
                Some(kind) => kind.lay_times(at + self.address(i), self.int(1 + i), out),
                None => Ok(()),
            }),
            combiner::SUBARRAY => self.lay_subarray(at, kind, out),
            other => refuse(format!("combiner {other} is not supported here")),
        }
    }

    /// ndims, sizes, subsizes, starts, order.
    fn lay_subarray(&self, at: i64, kind: &Datatype, out: &mut Vec<Block>) -> Result<()> {
        let rank = self.int(0).max(0) as usize;
        let list = |part: usize| -> Vec<i64> {
            (0..rank).map(|d| self.int(1 + part * rank + d)).collect()
        };
        let (mut sizes, mut counts, mut starts) = (list(0), list(1), list(2));
        // MPI_ORDER_C is 56 in MPICH, 0 in OpenMPI and 12 in MPI 5; Fortran's is 57, 1 and 15.
        if self.int(1 + 3 * rank) % 2 != 0 {
            sizes.reverse();
            counts.reverse();
            starts.reverse();
        }
        let extent = kind.extent()?;
        let Some(run) = counts.last().copied() else { return Ok(()) };
        let rows: i64 = counts[..rank - 1].iter().product();
        let mut index = vec![0i64; rank];
        for _ in 0..rows {
            let mut place = 0;
            for d in 0..rank {
                place = place * sizes[d] + starts[d] + index[d];
            }
            kind.lay_times(at + place * extent, run, out)?;
            for d in (0..rank - 1).rev() {
                index[d] += 1;
                if index[d] < counts[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        Ok(())
    }
}

/// The handles of the types that we know, in this library.
pub(super) fn elements(
    abi: Abi,
    symbol: impl Fn(&str) -> std::result::Result<usize, String>,
) -> Vec<(usize, Element)> {
    let known = KNOWN.iter().filter_map(|(element, mpich, standard, name)| {
        let raw = match abi {
            Abi::Mpich => *mpich as usize,
            Abi::Standard => *standard,
            Abi::OpenMpi => symbol(name).ok()?,
        };
        Some((raw, *element))
    });
    known.collect()
}
