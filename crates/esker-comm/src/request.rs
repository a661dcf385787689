//! Point-to-point operations under way.

use crate::patience::poll;
use crate::{CommError, Message, Result};

/// Labels a message, so that a receiver can ask for it. All values are free for use but the
/// largest, which [`merge_up`](crate::CommunicatorExt::merge_up) takes.
pub type Tag = u16;

/// Whose message a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The message of this rank.
    Rank(usize),
    /// The first to arrive, whoever sent it.
    Any,
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Source::Rank(rank)
    }
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The rank that sent it.
    pub source: usize,
    /// Its bytes.
    pub message: Message,
}

/// A send that an implementation has under way.
pub trait PendingSend: Send {
    /// Whether the buffer is free again. Never blocks.
    fn test(&mut self) -> Result<bool>;
    /// Blocks until the buffer is free again.
    fn wait(&mut self) -> Result<()>;
}

/// A receive that an implementation has under way.
pub trait PendingReceive: Send {
    /// The message, if it is here. Never blocks. Not called again after it gave one.
    fn test(&mut self) -> Result<Option<Received>>;
    /// Blocks until the message is here. Not called after it was given.
    fn wait(&mut self) -> Result<Received>;
}

/// A send under way.
///
/// Dropping it without waiting is allowed: the message is still delivered, and its buffer is
/// kept until then.
#[must_use = "a send that is never waited for may complete much later"]
pub struct Sending(Option<Box<dyn PendingSend>>);

impl Sending {
    /// A send that has completed.
    pub const fn done() -> Self {
        Sending(None)
    }

    /// A send that an implementation will complete.
    pub fn pending(send: impl PendingSend + 'static) -> Self {
        Sending(Some(Box::new(send)))
    }

    /// Whether the message has left its buffer. Never blocks.
    pub fn test(&mut self) -> Result<bool> {
        let done = match &mut self.0 {
            None => true,
            Some(pending) => pending.test()?,
        };
        if done {
            self.0 = None;
        }
        Ok(done)
    }

    /// Blocks until the message has left its buffer.
    pub fn wait(self) -> Result<()> {
        self.0.map_or(Ok(()), |mut pending| pending.wait())
    }

    /// Waits for all of them; the first error, after all have ended.
    pub fn wait_all(sends: impl IntoIterator<Item = Sending>) -> Result<()> {
        let mut outcome = Ok(());
        for send in sends {
            outcome = outcome.and(send.wait());
        }
        outcome
    }
}

/// A receive under way.
///
/// Dropping it without waiting gives the receive up.
#[must_use = "the message is taken when the receive is waited for or tested"]
pub struct Receiving(Option<Box<dyn PendingReceive>>);

impl Receiving {
    /// A receive that an implementation will complete.
    pub fn pending(receive: impl PendingReceive + 'static) -> Self {
        Receiving(Some(Box::new(receive)))
    }

    /// The message, if it is here. Never blocks. Gives the message once.
    pub fn test(&mut self) -> Result<Option<Received>> {
        let received = self.0.as_mut().ok_or(CommError::AlreadyReceived)?.test()?;
        if received.is_some() {
            self.0 = None;
        }
        Ok(received)
    }

    /// Blocks until the message is here.
    pub fn wait(self) -> Result<Received> {
        self.0.ok_or(CommError::AlreadyReceived)?.wait()
    }

    /// Blocks until one of them has its message, takes that one from the list and returns the
    /// message; `None` if the list is empty. For working on messages as they come.
    pub fn wait_any(receives: &mut Vec<Receiving>) -> Result<Option<Received>> {
        if receives.is_empty() {
            return Ok(None);
        }
        poll(|| {
            for place in 0..receives.len() {
                if let Some(received) = receives[place].test()? {
                    drop(receives.swap_remove(place));
                    return Ok(Some(Some(received)));
                }
            }
            Ok(None)
        })
    }

    /// The messages of all of them, in the order of the list.
    pub fn wait_all(receives: impl IntoIterator<Item = Receiving>) -> Result<Vec<Received>> {
        receives.into_iter().map(Receiving::wait).collect()
    }
}

impl std::fmt::Debug for Sending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Sending(under way)" } else { "Sending(done)" })
    }
}

impl std::fmt::Debug for Receiving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Receiving(under way)" } else { "Receiving(done)" })
    }
}
