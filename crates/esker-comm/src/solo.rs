//! One process, one rank.

use std::sync::{Arc, Mutex, PoisonError};

use crate::checks::{check_colour, check_length, check_one_each, check_rank};
use crate::mailbox::Mailbox;
use crate::{
    CommError, Communicator, Message, NoNodeMemory, NodeMemory, PendingReceive, Received,
    Receiving, ReduceOp, Reduction, Result, Sending, Source, Stages, Tag,
};

/// The communicator of a program that runs alone: rank 0 of 1.
///
/// It can send messages to itself. A receive waits for nothing: if the message was not sent
/// before, it is an error, because nobody else could send it.
#[derive(Debug, Clone, Default)]
pub struct SelfComm {
    mailbox: Arc<Mutex<Mailbox>>,
}

impl SelfComm {
    /// A communicator of this process alone.
    pub fn new() -> Self {
        Self::default()
    }
}

fn take(mailbox: &Mutex<Mailbox>, tag: Tag) -> Option<Received> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner).take(Source::Any, tag)
}

/// A receive from oneself, with the length if it is known.
struct FromSelf {
    mailbox: Arc<Mutex<Mailbox>>,
    tag: Tag,
    length: Option<usize>,
}

impl PendingReceive for FromSelf {
    fn test(&mut self) -> Result<Option<Received>> {
        take(&self.mailbox, self.tag).map(|r| check_length(r, self.tag, self.length)).transpose()
    }

    fn wait(&mut self) -> Result<Received> {
        self.test()?.ok_or(CommError::NothingToReceive { tag: self.tag })
    }
}

impl Communicator for SelfComm {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        check_rank("broadcast", root, 1)?;
        Ok(message)
    }

    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        check_rank("gather", root, 1)?;
        Ok(Some(vec![message]))
    }

    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        Ok(vec![message])
    }

    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        Ok(values.to_vec())
    }

    fn all_to_all(&self, messages: Vec<Message>) -> Result<Vec<Message>> {
        check_one_each("all_to_all", messages.len(), 1)?;
        Ok(messages)
    }

    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        check_one_each("all_to_all_u64", values.len(), 1)?;
        Ok(values.to_vec())
    }

    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        values.check(op)
    }

    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        values.fill(0);
        Ok(())
    }

    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending> {
        check_rank("isend", to, 1)?;
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).put(0, tag, message);
        Ok(Sending::done())
    }

    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        if let Source::Rank(rank) = from {
            check_rank("irecv", rank, 1)?;
        }
        let mailbox = Arc::clone(&self.mailbox);
        Ok(Receiving::pending(FromSelf { mailbox, tag, length: None }))
    }

    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        check_rank("irecv_sized", from, 1)?;
        let mailbox = Arc::clone(&self.mailbox);
        Ok(Receiving::pending(FromSelf { mailbox, tag, length: Some(length) }))
    }

    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        messages.iter().try_for_each(|(to, _)| check_rank("sparse_exchange", *to, 1))?;
        Ok(messages)
    }

    fn split(&self, colour: Option<u32>, _key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        check_colour(colour)?;
        colour.map(|_| self.duplicate()).transpose()
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.duplicate()
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        // Nobody else could keep it waiting.
        let made = NodeMemory::of_this_process(stages, 1)?;
        Ok(made.and_then(|shared| shared.join(stages, 0, 1, Box::new(|_, _| Ok(())))))
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Arc::new(SelfComm::new()))
    }
}
