//! Whole messages as one or more pieces.
//!
//! MPI counts in C ints, so a message travels as full pieces (1 GiB) and a last one that is
//! shorter, perhaps empty. A receiver that gets a full piece knows that another follows from the
//! same rank with the same tag, and MPI keeps their order.

use std::ffi::c_int;
use std::sync::Arc;

use super::collective::Inner;
use super::transfer::{SendMode, Transfer, count_of};
use crate::patience::poll;
use crate::request::{PendingReceive, PendingSend};
use crate::{CommError, Message, Received, Result, Source, Tag};

/// A message on its way out.
pub(super) struct Outgoing {
    /// The pieces that have not left, the next to leave last.
    pieces: Vec<Transfer>,
}

impl Outgoing {
    pub(super) fn start(
        comm: &Arc<Inner>,
        to: usize,
        tag: c_int,
        message: Message,
        mode: SendMode,
    ) -> Result<Self> {
        let piece = comm.library.settings.piece;
        if message.len() < piece {
            return Ok(Outgoing { pieces: vec![Transfer::send(comm, to, tag, message, mode)?] });
        }
        let message = message.into_shared();
        let mut pieces = Vec::with_capacity(message.len() / piece + 1);
        for start in (0..=message.len()).step_by(piece) {
            let part = message.slice(start..start + piece);
            pieces.push(Transfer::send(comm, to, tag, part, mode)?);
        }
        pieces.reverse();
        Ok(Outgoing { pieces })
    }
}

impl PendingSend for Outgoing {
    fn test(&mut self) -> Result<bool> {
        while let Some(piece) = self.pieces.last_mut() {
            if piece.test()?.is_none() {
                return Ok(false);
            }
            self.pieces.pop();
        }
        Ok(true)
    }

    fn wait(&mut self) -> Result<()> {
        while let Some(mut piece) = self.pieces.pop() {
            piece.wait()?;
        }
        Ok(())
    }
}

/// A message of known length on its way in: its pieces were asked for in advance.
pub(super) struct Announced {
    from: usize,
    tag: Tag,
    length: usize,
    piece: usize,
    /// The pieces that have not come, the next to come last.
    pieces: Vec<Transfer>,
    bytes: Vec<u8>,
}

impl Announced {
    /// `tag` is what an error names; `label` is what MPI is given.
    pub(super) fn start(
        comm: &Arc<Inner>,
        from: usize,
        tag: Tag,
        label: c_int,
        length: usize,
    ) -> Result<Self> {
        let piece = comm.library.settings.piece;
        let mut pieces = Vec::with_capacity(length / piece + 1);
        for start in (0..=length).step_by(piece) {
            pieces.push(Transfer::receive(comm, from, label, piece.min(length - start))?);
        }
        pieces.reverse();
        Ok(Announced { from, tag, length, piece, pieces, bytes: Vec::new() })
    }

    /// Adds a piece that came; the message if it was the last.
    fn add(&mut self, part: Vec<u8>) -> Result<Option<Received>> {
        let found = self.bytes.len() + part.len();
        let expected = self.piece.min(self.length - self.bytes.len());
        if part.len() != expected {
            self.pieces.clear(); // The pieces that will not come any more are cancelled.
            let (source_rank, tag, expected) = (self.from, self.tag, self.length);
            return Err(CommError::UnexpectedLength { source_rank, tag, expected, found });
        }
        join(&mut self.bytes, part);
        if !self.pieces.is_empty() {
            return Ok(None);
        }
        let message = Message::from(std::mem::take(&mut self.bytes));
        Ok(Some(Received { source: self.from, message }))
    }
}

impl PendingReceive for Announced {
    fn test(&mut self) -> Result<Option<Received>> {
        while let Some(piece) = self.pieces.last_mut() {
            let Some(part) = piece.test()? else { return Ok(None) };
            self.pieces.pop();
            if let Some(received) = self.add(part)? {
                return Ok(Some(received));
            }
        }
        Err(CommError::AlreadyReceived)
    }

    fn wait(&mut self) -> Result<Received> {
        while let Some(mut piece) = self.pieces.pop() {
            let part = piece.wait()?;
            if let Some(received) = self.add(part)? {
                return Ok(received);
            }
        }
        Err(CommError::AlreadyReceived)
    }
}

/// A message of unknown length: looked for when asked, received when found.
pub(super) struct Incoming {
    comm: Arc<Inner>,
    /// The rank, or MPI's number for any.
    from: c_int,
    tag: c_int,
    source: usize,
    piece: Option<Transfer>,
    bytes: Vec<u8>,
}

impl Incoming {
    pub(super) fn new(comm: &Arc<Inner>, from: Source, tag: c_int) -> Result<Self> {
        let from = match from {
            Source::Any => comm.library.constants.any_source,
            Source::Rank(rank) => count_of("irecv", rank)?,
        };
        let comm = Arc::clone(comm);
        Ok(Incoming { comm, from, tag, source: 0, piece: None, bytes: Vec::new() })
    }

    /// Whether a message has been found, so that this receive is bound to it.
    pub(super) fn is_bound(&mut self) -> Result<bool> {
        if self.piece.is_none() {
            let found = Transfer::receive_if_here(&self.comm, self.from, self.tag)?;
            if let Some((source, piece)) = found {
                self.source = source;
                // Its other pieces, if any, come from the same rank.
                self.from = count_of("irecv", source)?;
                self.piece = Some(piece);
            }
        }
        Ok(self.piece.is_some())
    }
}

impl Incoming {
    /// Whether the piece that was found is followed by others.
    pub(super) fn is_long(&self) -> bool {
        let piece = self.comm.library.settings.piece;
        self.piece.as_ref().is_some_and(|found| found.room() == piece)
    }
}

impl PendingReceive for Incoming {
    fn test(&mut self) -> Result<Option<Received>> {
        while self.is_bound()? {
            let Some(piece) = &mut self.piece else { break };
            let Some(part) = piece.test()? else { break };
            self.piece = None;
            let is_full = part.len() == self.comm.library.settings.piece;
            join(&mut self.bytes, part);
            if !is_full {
                let message = Message::from(std::mem::take(&mut self.bytes));
                return Ok(Some(Received { source: self.source, message }));
            }
        }
        Ok(None)
    }

    fn wait(&mut self) -> Result<Received> {
        poll(|| self.test())
    }
}

/// Appends a piece, without copying it if it is the first.
fn join(bytes: &mut Vec<u8>, part: Vec<u8>) {
    if bytes.is_empty() {
        *bytes = part;
    } else {
        bytes.extend_from_slice(&part);
    }
}
