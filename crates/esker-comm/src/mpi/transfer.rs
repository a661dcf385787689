//! One MPI request of point-to-point kind, with the buffer that MPI reads or fills.

use std::ffi::c_int;
use std::sync::Arc;

use super::abi::{Handle, Status};
use super::collective::Inner;
use super::library::Library;
use crate::patience::poll;
use crate::{CommError, Message, Result};

/// A transfer that MPI has under way. It owns its buffer: as long as MPI may touch the buffer,
/// it lives, also if the transfer is dropped.
pub(super) struct Transfer {
    comm: Arc<Inner>,
    request: Handle,
    buffer: Buffer,
    length: usize,
    under_way: bool,
}

enum Buffer {
    /// Never read again by us: it is here to live as long as MPI reads it.
    #[allow(dead_code)]
    Sent(Message),
    Received(Vec<u8>),
    Gone,
}

/// Whether a send completes when the buffer is free, or only when the message was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendMode {
    Ordinary,
    Matched,
}

impl Transfer {
    /// Starts to send one piece, which is at most [`piece`](super::environment::Settings) long.
    #[allow(unsafe_code)]
    pub(super) fn send(
        comm: &Arc<Inner>,
        to: usize,
        tag: c_int,
        piece: Message,
        mode: SendMode,
    ) -> Result<Self> {
        let mut request = Handle::BLANK;
        let (data, count) = (piece.as_ptr().cast(), count_of("MPI_Isend", piece.len())?);
        let to = count_of("MPI_Isend", to)?;
        let (byte, handle) = (comm.library.constants.byte, comm.handle);
        // SAFETY: the data are alive and unchanged until MPI reports completion, because the
        // message is kept in this transfer and is immutable; moving the message does not move
        // its bytes, which are on the heap.
        comm.library.call("MPI_Isend", |mpi| unsafe {
            match mode {
                SendMode::Ordinary => mpi.isend(data, count, byte, to, tag, handle, &mut request),
                SendMode::Matched => mpi.issend(data, count, byte, to, tag, handle, &mut request),
            }
        })?;
        let length = piece.len();
        Ok(Self::started(comm, request, Buffer::Sent(piece), length))
    }

    /// Starts to receive at most `length` bytes, which is at most one piece.
    #[allow(unsafe_code)]
    pub(super) fn receive(
        comm: &Arc<Inner>,
        from: usize,
        tag: c_int,
        length: usize,
    ) -> Result<Self> {
        let mut request = Handle::BLANK;
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        let (buffer, count) = (bytes.as_mut_ptr().cast(), count_of("MPI_Irecv", length)?);
        let from = count_of("MPI_Irecv", from)?;
        let (byte, handle) = (comm.library.constants.byte, comm.handle);
        // SAFETY: the buffer has room for `count` bytes and is kept in this transfer, untouched,
        // until MPI reports completion.
        comm.library.call("MPI_Irecv", |mpi| unsafe {
            mpi.irecv(buffer, count, byte, from, tag, handle, &mut request)
        })?;
        Ok(Self::started(comm, request, Buffer::Received(bytes), length))
    }

    /// Starts to receive the next piece of a message if one is here, with its source.
    #[allow(unsafe_code)]
    pub(super) fn receive_if_here(
        comm: &Arc<Inner>,
        from: c_int,
        tag: c_int,
    ) -> Result<Option<(usize, Self)>> {
        let library = comm.library;
        let (byte, handle) = (library.constants.byte, comm.handle);
        let (mut flag, mut count): (c_int, c_int) = (0, 0);
        let (mut message, mut status) = (Handle::BLANK, Status::default());
        // SAFETY: all pointers are to locals that outlive the call.
        library.call("MPI_Improbe", |mpi| unsafe {
            mpi.improbe(from, tag, handle, &mut flag, &mut message, &mut status)
        })?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the status was filled by the probe.
        library.call("MPI_Get_count", |mpi| unsafe { mpi.get_count(&status, byte, &mut count) })?;
        let source = status.source(library.abi);
        let (Ok(length), Ok(source)) = (usize::try_from(count), usize::try_from(source)) else {
            let reason = format!("a probe found {count} bytes from rank {source}");
            return Err(CommError::BadArgument { operation: "receive", reason });
        };
        let mut request = Handle::BLANK;
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        let buffer = bytes.as_mut_ptr().cast();
        // SAFETY: the message was matched by the probe and has `count` bytes, for which the
        // buffer has room; it is kept in this transfer until MPI reports completion.
        library.call("MPI_Imrecv", |mpi| unsafe {
            mpi.imrecv(buffer, count, byte, &mut message, &mut request)
        })?;
        Ok(Some((source, Self::started(comm, request, Buffer::Received(bytes), length))))
    }

    fn started(comm: &Arc<Inner>, request: Handle, buffer: Buffer, length: usize) -> Self {
        Transfer { comm: Arc::clone(comm), request, buffer, length, under_way: true }
    }

    /// The bytes that a receive has room for: for a probed one, exactly those that will come.
    pub(super) fn room(&self) -> usize {
        self.length
    }

    /// Its bytes (none, for a send) if it has completed. Never blocks.
    pub(super) fn test(&mut self) -> Result<Option<Vec<u8>>> {
        match self.comm.library.test(&mut self.request) {
            Ok(None) => Ok(None),
            outcome => self.completed(outcome.map(Option::unwrap_or_default)).map(Some),
        }
    }

    /// Its bytes (none, for a send) when it has completed.
    pub(super) fn wait(&mut self) -> Result<Vec<u8>> {
        let outcome = self.comm.library.wait(&mut self.request);
        self.completed(outcome)
    }

    #[allow(unsafe_code)]
    fn completed(&mut self, outcome: Result<Status>) -> Result<Vec<u8>> {
        self.under_way = false;
        let buffer = std::mem::replace(&mut self.buffer, Buffer::Gone);
        let status = match outcome {
            Ok(status) => status,
            Err(error) => {
                // Nothing is known of the request any more: MPI may yet touch the buffer.
                std::mem::forget(buffer);
                return Err(error);
            }
        };
        let Buffer::Received(mut bytes) = buffer else { return Ok(Vec::new()) };
        let mut count: c_int = 0;
        let library: &Library = self.comm.library;
        let byte = library.constants.byte;
        // SAFETY: the status is that of the completed receive.
        library.call("MPI_Get_count", |mpi| unsafe { mpi.get_count(&status, byte, &mut count) })?;
        let length = usize::try_from(count).unwrap_or(0).min(bytes.capacity());
        // SAFETY: MPI has written so many bytes, and not more than the buffer has room for.
        unsafe { bytes.set_len(length) };
        Ok(bytes)
    }
}

impl Drop for Transfer {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !self.under_way {
            return;
        }
        self.under_way = false;
        let library = self.comm.library;
        let buffer = std::mem::replace(&mut self.buffer, Buffer::Gone);
        if library.is_finalized() {
            return; // MPI has let go of every buffer.
        }
        match buffer {
            Buffer::Sent(_) => library.adopt(Transfer {
                comm: Arc::clone(&self.comm),
                request: self.request,
                buffer,
                length: self.length,
                under_way: true,
            }),
            Buffer::Received(_) => {
                // A receive that is cancelled completes soon, without or with its message.
                // SAFETY: the request is of a receive that has not completed.
                let cancelled = library
                    .call("MPI_Cancel", |mpi| unsafe { mpi.cancel(&mut self.request) })
                    .and_then(|()| poll(|| library.test(&mut self.request)));
                if cancelled.is_err() {
                    std::mem::forget(buffer);
                }
            }
            Buffer::Gone => {}
        }
    }
}

/// A number as C's int.
pub(super) fn count_of(operation: &'static str, number: usize) -> Result<c_int> {
    c_int::try_from(number).map_err(|_| CommError::BadArgument {
        operation,
        reason: format!("{number} is more than a C int can hold"),
    })
}
