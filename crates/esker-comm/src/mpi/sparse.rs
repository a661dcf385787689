//! Sparse exchange over MPI: nobody knows who will send.

use std::ffi::c_int;
use std::sync::Arc;

use super::abi::Handle;
use super::collective::Inner;
use super::point::{Incoming, Outgoing};
use super::transfer::SendMode;
use crate::patience::poll;
use crate::request::{PendingReceive, PendingSend};
use crate::{Message, Received, Result, Source};

/// Sends every message and returns those sent here, sorted by source.
///
/// Two exchanges in a row use different tags: a rank that is ahead by one (it cannot be by two)
/// must not have its messages taken for those of this exchange.
pub(super) fn exchange(
    comm: &Arc<Inner>,
    tag: c_int,
    messages: Vec<(usize, Message)>,
) -> Result<Vec<(usize, Message)>> {
    let (to_self, outward): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|(to, _)| *to == comm.rank);
    let arrived = if comm.size == 1 {
        Vec::new()
    } else if comm.size < comm.library.settings.consensus_from {
        counted(comm, tag, outward)?
    } else {
        by_consensus(comm, tag, outward)?
    };
    let arrived = arrived.into_iter().map(|received| (received.source, received.message));
    // A message to oneself does not travel.
    let mut all: Vec<(usize, Message)> = to_self.into_iter().chain(arrived).collect();
    all.sort_by_key(|(source, _)| *source);
    Ok(all)
}

/// Few ranks: one reduction tells each how many messages to expect. Needs a number for each
/// rank, and no round trip for each message.
fn counted(
    comm: &Arc<Inner>,
    tag: c_int,
    messages: Vec<(usize, Message)>,
) -> Result<Vec<Received>> {
    let mut counts = vec![0u64; comm.size];
    for (to, _) in &messages {
        if let Some(count) = counts.get_mut(*to) {
            *count += 1;
        }
    }
    let mut sends = start(comm, tag, messages, SendMode::Ordinary)?;
    let expected = comm.sum_scattered(counts)?;
    let mut inbox = Inbox::new(comm, tag);
    let mut sent = 0;
    poll(|| {
        if inbox.found() < expected {
            inbox.look()?;
        }
        inbox.progress()?;
        let done = all_sent(&mut sends, &mut sent)? && inbox.received() == expected;
        Ok(done.then_some(()))
    })?;
    Ok(inbox.into_received())
}

/// Many ranks: the dynamic sparse data exchange of Hoefler, Siebert and Lumsdaine (NBX, 2010).
/// A send completes when it was matched; a rank whose sends have all completed enters a
/// barrier; when the barrier completes, every message has been matched.
fn by_consensus(
    comm: &Arc<Inner>,
    tag: c_int,
    messages: Vec<(usize, Message)>,
) -> Result<Vec<Received>> {
    let mut sends = start(comm, tag, messages, SendMode::Matched)?;
    let mut inbox = Inbox::new(comm, tag);
    let mut sent = 0;
    let mut barrier: Option<Handle> = None;
    let mut agreed = false;
    poll(|| {
        if !agreed {
            inbox.look()?;
        }
        inbox.progress()?;
        match &mut barrier {
            None if all_sent(&mut sends, &mut sent)? => barrier = Some(comm.start_barrier()?),
            Some(request) if !agreed => agreed = comm.library.test(request)?.is_some(),
            _ => {}
        }
        Ok((agreed && inbox.received() == inbox.found()).then_some(()))
    })?;
    Ok(inbox.into_received())
}

fn start(
    comm: &Arc<Inner>,
    tag: c_int,
    messages: Vec<(usize, Message)>,
    mode: SendMode,
) -> Result<Vec<Outgoing>> {
    let start = |(to, message)| Outgoing::start(comm, to, tag, message, mode);
    messages.into_iter().map(start).collect()
}

/// Whether all have left; `sent` counts those that need no more asking.
fn all_sent(sends: &mut [Outgoing], sent: &mut usize) -> Result<bool> {
    while let Some(send) = sends.get_mut(*sent) {
        if !send.test()? {
            return Ok(false);
        }
        *sent += 1;
    }
    Ok(true)
}

/// Messages that come from anywhere, in the order in which they were matched.
struct Inbox<'a> {
    comm: &'a Arc<Inner>,
    tag: c_int,
    under_way: Vec<(usize, Incoming)>,
    received: Vec<Option<Received>>,
    complete: usize,
}

impl<'a> Inbox<'a> {
    fn new(comm: &'a Arc<Inner>, tag: c_int) -> Self {
        Inbox { comm, tag, under_way: Vec::new(), received: Vec::new(), complete: 0 }
    }

    /// How many messages have been found.
    fn found(&self) -> usize {
        self.received.len()
    }

    /// How many have been received.
    fn received(&self) -> usize {
        self.complete
    }

    /// Looks for one more message.
    fn look(&mut self) -> Result<()> {
        let mut incoming = Incoming::new(self.comm, Source::Any, self.tag)?;
        if incoming.is_bound()? {
            // The rest of a long message must not be taken for another: it is pulled in first.
            if incoming.is_long() {
                self.received.push(Some(incoming.wait()?));
                self.complete += 1;
            } else {
                self.under_way.push((self.received.len(), incoming));
                self.received.push(None);
            }
        }
        Ok(())
    }

    /// Receives more of the messages that were found.
    fn progress(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        let (received, complete) = (&mut self.received, &mut self.complete);
        self.under_way.retain_mut(|(place, incoming)| match incoming.test() {
            Ok(Some(message)) => {
                received[*place] = Some(message);
                *complete += 1;
                false
            }
            Ok(None) => true,
            Err(error) => {
                outcome = Err(error);
                false
            }
        });
        outcome
    }

    fn into_received(self) -> Vec<Received> {
        self.received.into_iter().flatten().collect()
    }
}
