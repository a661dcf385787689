//! A decorator that counts what a rank sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    Communicator, Message, NoNodeMemory, NodeMemory, Receiving, ReduceOp, Reduction, Result,
    Sending, Source, Stages, Tag,
};

/// A communicator that counts what goes through it; [`Traffic`] tells.
///
/// Communicators made from it (split, duplicate) count into the same numbers.
///
/// ```
/// use std::sync::Arc;
/// use esker_comm::{Communicator, Counted, Message, SelfComm};
/// let comm = Counted::new(Arc::new(SelfComm::new()));
/// let traffic = comm.traffic();
/// comm.sparse_exchange(vec![(0, Message::from(vec![1, 2, 3]))])?;
/// comm.barrier()?;
/// assert_eq!((traffic.messages(), traffic.bytes(), traffic.collectives()), (1, 3, 2));
/// # Ok::<(), esker_comm::CommError>(())
/// ```
#[derive(Debug)]
pub struct Counted {
    inner: Arc<dyn Communicator>,
    traffic: Arc<Traffic>,
}

/// What a rank has sent through a [`Counted`] communicator.
#[derive(Debug, Default)]
pub struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
    collectives: AtomicU64,
}

impl Traffic {
    /// Messages with a destination: sends, and the non-empty ones of all-to-all and sparse
    /// exchanges. Those to oneself count.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// The bytes of these messages and of the contributions to gathers and broadcasts.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Calls of collective operations.
    pub fn collectives(&self) -> u64 {
        self.collectives.load(Ordering::Relaxed)
    }

    fn collective(&self, bytes: usize) {
        self.collectives.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn message(&self, message: &Message) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(message.len() as u64, Ordering::Relaxed);
    }
}

impl Counted {
    /// Counts what goes through `inner` from now on.
    pub fn new(inner: Arc<dyn Communicator>) -> Self {
        Counted { inner, traffic: Arc::default() }
    }

    /// The numbers, which go on counting.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    fn wrap(&self, inner: Arc<dyn Communicator>) -> Arc<dyn Communicator> {
        Arc::new(Counted { inner, traffic: self.traffic() })
    }
}

impl Communicator for Counted {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn gathers_by_node(&self) -> bool {
        self.inner.gathers_by_node()
    }

    fn may_use_threads(&self) -> bool {
        self.inner.may_use_threads()
    }

    fn barrier(&self) -> Result<()> {
        self.traffic.collective(0);
        self.inner.barrier()
    }

    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        self.traffic.collective(if root == self.rank() { message.len() } else { 0 });
        self.inner.broadcast(root, message)
    }

    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        self.traffic.collective(message.len());
        self.inner.gather(root, message)
    }

    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        self.traffic.collective(message.len());
        self.inner.all_gather(message)
    }

    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        self.traffic.collective(size_of_val(values));
        self.inner.all_gather_u64(values)
    }

    fn all_to_all(&self, messages: Vec<Message>) -> Result<Vec<Message>> {
        self.traffic.collective(0);
        messages.iter().filter(|m| !m.is_empty()).for_each(|m| self.traffic.message(m));
        self.inner.all_to_all(messages)
    }

    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        self.traffic.collective(size_of_val(values));
        self.inner.all_to_all_u64(values)
    }

    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        self.traffic.collective(0);
        self.inner.all_reduce(values, op)
    }

    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        self.traffic.collective(0);
        self.inner.exclusive_scan(values)
    }

    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending> {
        self.traffic.message(&message);
        self.inner.isend(to, tag, message)
    }

    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        self.inner.irecv(from, tag)
    }

    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        self.inner.irecv_sized(from, tag, length)
    }

    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        self.traffic.collective(0);
        messages.iter().for_each(|(_, message)| self.traffic.message(message));
        self.inner.sparse_exchange(messages)
    }

    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        self.traffic.collective(0);
        Ok(self.inner.split(colour, key)?.map(|inner| self.wrap(inner)))
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.traffic.collective(0);
        Ok(self.wrap(self.inner.split_by_node()?))
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        self.traffic.collective(0);
        self.inner.node_memory(stages)
    }

    fn may_duplicate(&self) -> bool {
        self.inner.may_duplicate()
    }

    fn share(&self) -> Result<Arc<dyn Communicator>> {
        self.traffic.collective(0);
        Ok(self.wrap(self.inner.share()?))
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        self.traffic.collective(0);
        Ok(self.wrap(self.inner.duplicate()?))
    }
}
