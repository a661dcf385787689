//! A duplicated MPI communicator, and its non-blocking collectives run to their end.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::atomic::AtomicU32;

use super::abi::{Abi, Handle};
use super::calls::Calls;
use super::library::Library;
use super::shared::Counted;
use super::transfer::count_of;
use crate::{Message, ReduceOp, Result};

/// The bytes in which a message tells its length.
pub(super) const LENGTH: usize = size_of::<u64>();

/// A duplicated MPI communicator.
pub(super) struct Inner {
    pub(super) library: &'static Library,
    pub(super) handle: Handle,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// How many sparse exchanges there were.
    pub(super) exchanges: AtomicU32,
    pub(super) _counted: Counted,
}

impl Inner {
    /// Runs a non-blocking collective to its end. `start` is given the buffers, which stay where
    /// they are until MPI has finished; after an error they are never freed, because MPI may
    /// still use them.
    pub(super) fn collective<B>(
        &self,
        name: &'static str,
        buffers: B,
        start: impl FnOnce(&dyn Calls, &mut B, Handle, *mut Handle) -> c_int,
    ) -> Result<B> {
        let mut buffers = Box::new(buffers);
        let mut request = Handle::BLANK;
        let started =
            self.library.call(name, |mpi| start(mpi, &mut buffers, self.handle, &mut request));
        match started.and_then(|()| self.library.wait(&mut request)) {
            Ok(_) => Ok(*buffers),
            Err(error) => {
                std::mem::forget(buffers);
                Err(error)
            }
        }
    }

    #[allow(unsafe_code)]
    pub(super) fn start_barrier(&self) -> Result<Handle> {
        let mut request = Handle::BLANK;
        // SAFETY: the communicator is valid; there is no buffer.
        self.library
            .call("MPI_Ibarrier", |mpi| unsafe { mpi.ibarrier(self.handle, &mut request) })?;
        Ok(request)
    }

    pub(super) fn barrier(&self) -> Result<()> {
        let mut request = self.start_barrier()?;
        self.library.wait(&mut request).map(drop)
    }

    /// The sum over all ranks of their number for this rank.
    #[allow(unsafe_code)]
    pub(super) fn sum_scattered(&self, numbers: Vec<u64>) -> Result<usize> {
        let constants = self.library.constants;
        // SAFETY: the send buffer has a number for each rank and the receive buffer room for
        // one; both live until completion.
        let (_, sum) = self.collective(
            "MPI_Ireduce_scatter_block",
            (numbers, [0u64; 1]),
            |mpi, (numbers, sum), comm, request| unsafe {
                let (data, buffer) = (data_of(numbers), buffer_of(sum));
                let (kind, op) = (constants.u64, constants.sum);
                mpi.ireduce_scatter_block(data, buffer, 1, kind, op, comm, request)
            },
        )?;
        Ok(sum[0] as usize)
    }

    /// Gathers equally long blocks of bytes, on one rank or on all.
    #[allow(unsafe_code)]
    pub(super) fn gather_blocks(&self, root: Option<usize>, block: Vec<u8>) -> Result<Vec<u8>> {
        let each = count_of("all_gather", block.len())?;
        let receives = root.is_none_or(|root| root == self.rank);
        let everything = vec![0u8; if receives { block.len() * self.size } else { 0 }];
        let byte = self.library.constants.byte;
        // SAFETY: the send buffer has `each` bytes and the receive buffer, where MPI uses it,
        // as many for each rank; both live until completion.
        let (_, everything) = match root {
            None => self.collective(
                "MPI_Iallgather",
                (block, everything),
                |mpi, (block, all), comm, request| unsafe {
                    let (data, buffer) = (data_of(block), buffer_of(all));
                    mpi.iallgather(data, each, byte, buffer, each, byte, comm, request)
                },
            )?,
            Some(root) => {
                let root = count_of("gather", root)?;
                self.collective(
                    "MPI_Igather",
                    (block, everything),
                    |mpi, (block, all), comm, request| unsafe {
                        let (data, buffer) = (data_of(block), buffer_of(all));
                        mpi.igather(data, each, byte, buffer, each, byte, root, comm, request)
                    },
                )?
            }
        };
        Ok(everything)
    }

    /// Broadcasts bytes whose number every rank knows, piece by piece.
    #[allow(unsafe_code)]
    pub(super) fn broadcast_known(
        &self,
        root: usize,
        mut bytes: Broadcast,
        length: usize,
    ) -> Result<Broadcast> {
        let byte = self.library.constants.byte;
        let root = count_of("broadcast", root)?;
        for start in (0..length).step_by(self.library.settings.piece) {
            let count = count_of("broadcast", self.library.settings.piece.min(length - start))?;
            // SAFETY: `start` and `count` lie within the bytes, which are `length` long on every
            // rank; MPI only reads the root's, and fills the others', which it may write.
            bytes = self.collective("MPI_Ibcast", bytes, |mpi, bytes, comm, request| unsafe {
                let first: *mut c_void = match bytes {
                    Broadcast::Root(message) => data_of(message).cast_mut(),
                    Broadcast::Other(buffer) => buffer_of(buffer),
                };
                mpi.ibcast(first.add(start), count, byte, root, comm, request)
            })?;
        }
        Ok(bytes)
    }

    /// Combines slices of one MPI type; the result is written back.
    #[allow(unsafe_code)]
    pub(super) fn reduce<T: Copy + Default>(
        &self,
        values: &mut [T],
        kind: Handle,
        op: ReduceOp,
    ) -> Result<()> {
        let constants = self.library.constants;
        let op = match op {
            ReduceOp::Min => constants.min,
            ReduceOp::Max => constants.max,
            ReduceOp::Sum => constants.sum,
            ReduceOp::BitOr => constants.bit_or,
        };
        for part in values.chunks_mut(1 << 27) {
            let count = count_of("all_reduce", part.len())?;
            let buffers = (part.to_vec(), vec![T::default(); part.len()]);
            // SAFETY: both buffers have `count` elements of the MPI type's size and live until
            // completion.
            let (_, result) = self.collective(
                "MPI_Iallreduce",
                buffers,
                |mpi, (own, result), comm, request| unsafe {
                    let (data, buffer) = (data_of(own), buffer_of(result));
                    mpi.iallreduce(data, buffer, count, kind, op, comm, request)
                },
            )?;
            part.copy_from_slice(&result);
        }
        Ok(())
    }
}

/// The bytes of a broadcast, on the rank that has them and on one that will.
pub(super) enum Broadcast {
    Root(Message),
    Other(Vec<u8>),
}

/// Where MPI reads. An empty slice of Rust's may lie at address 1, which some libraries take for
/// MPI_IN_PLACE, so it gets an address of its own.
pub(super) fn data_of<T>(data: &[T]) -> *const c_void {
    static NOTHING: u64 = 0;
    if data.is_empty() { (&raw const NOTHING).cast() } else { data.as_ptr().cast() }
}

/// Where MPI writes; for an empty slice as [`data_of`], and nothing is written there.
pub(super) fn buffer_of<T>(buffer: &mut [T]) -> *mut c_void {
    if buffer.is_empty() { data_of(buffer).cast_mut() } else { buffer.as_mut_ptr().cast() }
}

/// A block of `size` bytes: the length of the message and as much of it as fits.
pub(super) fn head_of(message: &[u8], size: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(size);
    block.extend_from_slice(&(message.len() as u64).to_le_bytes());
    block.extend_from_slice(&message[..message.len().min(size - LENGTH)]);
    block.resize(size, 0);
    block
}

/// The length that a block tells, and the bytes in it.
pub(super) fn read_head(block: &[u8]) -> (usize, &[u8]) {
    let (length, bytes) = block.split_first_chunk::<LENGTH>().unwrap_or((&[0; LENGTH], &[]));
    let length = u64::from_le_bytes(*length) as usize;
    (length, &bytes[..length.min(bytes.len())])
}

impl Drop for Inner {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // After a panic the other ranks may be anywhere; a leak is better than a hang.
        if std::thread::panicking() || self.library.is_finalized() {
            return;
        }
        let handle = &mut self.handle;
        // SAFETY: the communicator is ours, has no request left (each holds this), and MPI is
        // not finalised. An error has nobody to go to.
        let _ = self.library.call("MPI_Comm_free", |mpi| unsafe { mpi.comm_free(handle) });
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let abi: Abi = self.library.abi;
        write!(f, "rank {} of {} ({abi})", self.rank, self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_carry_short_messages_whole() {
        let block = head_of(&[1, 2, 3], 16);
        assert_eq!((block.len(), read_head(&block)), (16, (3, &[1u8, 2, 3][..])));
        let block = head_of(&[7; 100], 16);
        assert_eq!(read_head(&block), (100, &[7u8; 8][..]));
    }
}
