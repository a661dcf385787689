//! The communicator of an MPI process.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::abi::Handle;
use super::collective::{Broadcast, Inner, LENGTH, buffer_of, data_of, head_of, read_head};
use super::environment::launched;
use super::library::{Library, library};
use super::point::{Announced, Incoming, Outgoing};
use super::shared::{self, Counted};
use super::sparse;
use super::transfer::{SendMode, count_of};
use crate::checks::{check_colour, check_one_each, check_rank};
use crate::node;
use crate::request::PendingSend;
use crate::{
    CommError, Communicator, Message, NoNodeMemory, NodeMemory, Receiving, ReduceOp, Reduction,
    Result, Sending, Source, Stages, Tag,
};

// Our own tags lie above all of the users', which are 16 bits.
const GATHER_TAG: c_int = 0x1_0000;
const ALL_TO_ALL_TAG: c_int = 0x1_0001;
const SPARSE_TAGS: [c_int; 2] = [0x1_0002, 0x1_0003];
pub(super) const LAST_TAG: c_int = SPARSE_TAGS[1];

/// What travels ahead of a message whose length the receivers do not know: the length and the
/// first bytes, which for most messages are all. One operation instead of two.
const BROADCAST_HEAD: usize = 512;
/// The same of a gathered message: so many bytes come from each rank, however short its message is.
pub const GATHER_HEAD: usize = 64;
const SIGN: u64 = 1 << 63;

/// A communicator of MPI processes.
///
/// It is a duplicate of the one that it was made from, so that its messages do not mix with the
/// program's, and it is freed when it and its requests have been dropped. All ranks drop theirs in
/// the same order, as MPI demands.
#[derive(Debug, Clone)]
pub struct MpiComm(Arc<Inner>);

impl MpiComm {
    /// All processes that `mpiexec` started. Initialises MPI if nobody has. Collective.
    pub fn world() -> Result<Self> {
        let library = ready()?;
        let world = Self::duplicate_of(library, library.constants.world)?;
        // A library that does not understand its launcher believes to be alone. Then every
        // process would write the same file.
        match launched().and_then(|launched| launched.ranks) {
            Some(started) if started != world.0.size && world.0.size == 1 => {
                let path = library.info().library;
                let reason = format!(
                    "the launcher started {started} ranks, but {} sees one; name the library of \
                     the launcher in {}",
                    path.display(),
                    super::find::OVERRIDE
                );
                Err(CommError::MpiUnavailable { reason })
            }
            _ => Ok(world),
        }
    }

    /// This process alone, as MPI sees it. Initialises MPI if nobody has.
    pub fn self_() -> Result<Self> {
        let library = ready()?;
        Self::duplicate_of(library, library.constants.own)
    }

    /// A duplicate of a communicator of the program's own. Collective over it. There is one duplicate
    /// for all that is made from one communicator: [`Communicator::duplicate`] gives one that nobody
    /// else uses.
    ///
    /// `handle` is the `MPI_Comm`, widened to a pointer's size where it is an int (MPICH), of
    /// the library that [`found`](super::found) reports.
    ///
    /// # Safety
    ///
    /// The handle is valid: MPI may crash on one that is not.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw_handle(handle: usize) -> Result<Self> {
        let library = ready()?;
        // An int in a register of 64 bits has anything above it.
        let handle = Handle::from_raw(library.abi, handle).to_raw(library.abi);
        if handle == library.constants.null.to_raw(library.abi) || handle == 0 {
            let reason = "the communicator is MPI_COMM_NULL".into();
            return Err(CommError::BadArgument { operation: "from_raw_handle", reason });
        }
        let handle = Handle::from_raw(library.abi, handle);
        let mut flag: c_int = 0;
        // SAFETY: the caller vouches for the handle.
        library
            .call("MPI_Comm_test_inter", |mpi| unsafe { mpi.comm_test_inter(handle, &mut flag) })?;
        if flag != 0 {
            let reason = "an intercommunicator has two groups of ranks; merge them first".into();
            return Err(CommError::BadArgument { operation: "from_raw_handle", reason });
        }
        if let Some(inner) = shared::find(library, handle)? {
            return Ok(MpiComm(inner));
        }
        let made = Self::duplicate_of(library, handle)?;
        shared::keep(library, handle, &made.0)?;
        Ok(made)
    }

    /// The duplicate's own `MPI_Comm`, widened to a pointer's size. It is freed with this.
    pub fn raw_handle(&self) -> usize {
        self.0.handle.to_raw(self.0.library.abi)
    }

    #[allow(unsafe_code)]
    fn duplicate_of(library: &'static Library, handle: Handle) -> Result<Self> {
        shared::require_room("duplicate")?;
        // The new handle is written when the request completes: it must not move meanwhile.
        let mut new = Box::new(Handle::BLANK);
        let mut request = Handle::BLANK;
        let place: *mut Handle = &mut *new;
        // SAFETY: the handle is valid; the place for the new one lives until completion.
        let started = library
            .call("MPI_Comm_idup", |mpi| unsafe { mpi.comm_idup(handle, place, &mut request) });
        if let Err(error) = started.and_then(|()| library.wait(&mut request)) {
            std::mem::forget(new); // MPI may yet write it.
            return Err(error);
        }
        Self::owning(library, *new)
    }

    /// Takes over a communicator that MPI made for us.
    #[allow(unsafe_code)]
    fn owning(library: &'static Library, handle: Handle) -> Result<Self> {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        let errors_return = library.constants.errors_return;
        // SAFETY: the handle is of a communicator made by MPI; errors of operations on it are
        // returned from now on.
        unsafe {
            library.call("MPI_Comm_set_errhandler", |mpi| {
                mpi.comm_set_errhandler(handle, errors_return)
            })?;
            library.call("MPI_Comm_rank", |mpi| mpi.comm_rank(handle, &mut rank))?;
            library.call("MPI_Comm_size", |mpi| mpi.comm_size(handle, &mut size))?;
        }
        let (rank, size) = (rank.max(0) as usize, size.max(1) as usize);
        let (exchanges, _counted) = (AtomicU32::new(0), Counted::new());
        Ok(MpiComm(Arc::new(Inner { library, handle, rank, size, exchanges, _counted })))
    }

    /// Sends to `to` under one of our own tags, or of the users'.
    fn send(&self, to: usize, tag: c_int, message: Message) -> Result<Outgoing> {
        self.0.library.sweep();
        Outgoing::start(&self.0, to, tag, message, SendMode::Ordinary)
    }
}

fn ready() -> Result<&'static Library> {
    let library = library()?;
    library.make_ready()?;
    shared::sweep();
    Ok(library)
}

impl Communicator for MpiComm {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn may_use_threads(&self) -> bool {
        self.0.size == 1 || library().is_ok_and(|library| library.is_concurrent())
    }

    fn barrier(&self) -> Result<()> {
        self.0.barrier()
    }

    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        check_rank("broadcast", root, self.0.size)?;
        if self.0.size == 1 {
            return Ok(message);
        }
        let is_root = self.0.rank == root;
        let head =
            if is_root { head_of(&message, BROADCAST_HEAD) } else { vec![0; BROADCAST_HEAD] };
        let head = self.0.broadcast_known(root, Broadcast::Other(head), BROADCAST_HEAD)?;
        let Broadcast::Other(head) = head else { return Ok(message) };
        let (length, bytes) = read_head(&head);
        if length == bytes.len() {
            return Ok(if is_root { message } else { Message::from(bytes) });
        }
        let bytes =
            if is_root { Broadcast::Root(message) } else { Broadcast::Other(vec![0; length]) };
        Ok(match self.0.broadcast_known(root, bytes, length)? {
            Broadcast::Root(message) => message,
            Broadcast::Other(bytes) => Message::from(bytes),
        })
    }

    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        check_rank("gather", root, self.0.size)?;
        let heads = self.0.gather_blocks(Some(root), head_of(&message, GATHER_HEAD))?;
        if self.0.rank != root {
            if message.len() > GATHER_HEAD - LENGTH {
                self.send(root, GATHER_TAG, message)?.wait()?;
            }
            return Ok(None);
        }
        let mut messages = Vec::with_capacity(self.0.size);
        let mut coming = Vec::new();
        for (from, head) in heads.chunks_exact(GATHER_HEAD).enumerate() {
            let (length, bytes) = read_head(head);
            messages.push(Message::from(bytes));
            if length > bytes.len() && from != root {
                let receive = Announced::start(&self.0, from, Tag::MAX, GATHER_TAG, length)?;
                coming.push(Receiving::pending(receive));
            }
        }
        for received in Receiving::wait_all(coming)? {
            messages[received.source] = received.message;
        }
        messages[root] = message;
        Ok(Some(messages))
    }

    #[allow(unsafe_code)]
    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        let heads = self.0.gather_blocks(None, head_of(&message, GATHER_HEAD))?;
        let heads = || heads.chunks_exact(GATHER_HEAD).map(read_head);
        let is_long = |(length, bytes): (usize, &[u8])| length > bytes.len();
        if !heads().any(is_long) {
            return Ok(heads().map(|(_, bytes)| Message::from(bytes)).collect());
        }
        let total: usize = heads().filter(|head| is_long(*head)).map(|(length, _)| length).sum();
        if total >= self.0.library.settings.piece {
            // Too much for MPI's counts: one after the other.
            let mut messages = Vec::with_capacity(self.0.size);
            for (from, (length, bytes)) in heads().enumerate() {
                let found = if length == bytes.len() {
                    Message::from(bytes)
                } else {
                    let bytes = if from == self.0.rank {
                        Broadcast::Root(message.clone())
                    } else {
                        Broadcast::Other(vec![0; length])
                    };
                    match self.0.broadcast_known(from, bytes, length)? {
                        Broadcast::Root(message) => message,
                        Broadcast::Other(bytes) => Message::from(bytes),
                    }
                };
                messages.push(found);
            }
            return Ok(messages);
        }
        let count = |head| if is_long(head) { head.0 } else { 0 };
        let counts: Vec<c_int> = heads().map(|head| count(head) as c_int).collect();
        let places: Vec<c_int> = counts
            .iter()
            .scan(0, |end, count| {
                *end += count;
                Some(*end - count)
            })
            .collect();
        let byte = self.0.library.constants.byte;
        let own = counts[self.0.rank];
        // SAFETY: the counts and places lie within the receive buffer, which is `total` long,
        // `total` fits a C int, and `own` is the message's length or 0. All live until completion.
        let (_, everything, counts, places) = self.0.collective(
            "MPI_Iallgatherv",
            (message, vec![0u8; total], counts, places),
            |mpi, (message, all, counts, places), comm, request| unsafe {
                let (data, buffer) = (data_of(message), buffer_of(all));
                let (counts, places) = (counts.as_ptr(), places.as_ptr());
                mpi.iallgatherv(data, own, byte, buffer, counts, places, byte, comm, request)
            },
        )?;
        let everything = Message::from(everything).into_shared();
        let messages = heads().zip(places.into_iter().zip(counts));
        Ok(messages
            .map(|(head, (place, count))| match (place as usize, count as usize) {
                (_, 0) => Message::from(head.1),
                (place, count) => everything.slice(place..place + count),
            })
            .collect())
    }

    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        let block = Message::from_u64s(values).into_vec();
        Ok(Message::from(self.0.gather_blocks(None, block)?).to_u64s())
    }

    fn all_to_all(&self, mut messages: Vec<Message>) -> Result<Vec<Message>> {
        check_one_each("all_to_all", messages.len(), self.0.size)?;
        let lengths: Vec<u64> = messages.iter().map(|message| message.len() as u64).collect();
        let lengths = self.all_to_all_u64(&lengths)?;
        // Straight between the buffers: MPI's own operation would need everything in one.
        let mut arrived = vec![Message::empty(); self.0.size];
        let mut receives = Vec::new();
        let mut sends = Vec::new();
        // Each rank starts with its neighbour, so that not all begin with rank 0.
        for step in 1..self.0.size {
            let from = (self.0.rank + self.0.size - step) % self.0.size;
            let length = lengths[from] as usize;
            if length > 0 {
                let receive = Announced::start(&self.0, from, Tag::MAX, ALL_TO_ALL_TAG, length)?;
                receives.push(Receiving::pending(receive));
            }
        }
        for step in 1..self.0.size {
            let to = (self.0.rank + step) % self.0.size;
            let message = std::mem::take(&mut messages[to]);
            if !message.is_empty() {
                sends.push(self.send(to, ALL_TO_ALL_TAG, message)?);
            }
        }
        arrived[self.0.rank] = std::mem::take(&mut messages[self.0.rank]);
        for received in Receiving::wait_all(receives)? {
            arrived[received.source] = received.message;
        }
        sends.iter_mut().try_for_each(PendingSend::wait)?;
        Ok(arrived)
    }

    #[allow(unsafe_code)]
    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        check_one_each("all_to_all_u64", values.len(), self.0.size)?;
        let kind = self.0.library.constants.u64;
        // SAFETY: both buffers have one number for each rank and live until completion.
        let (_, arrived) = self.0.collective(
            "MPI_Ialltoall",
            (values.to_vec(), vec![0u64; values.len()]),
            |mpi, (sent, arrived), comm, request| unsafe {
                let (data, buffer) = (data_of(sent), buffer_of(arrived));
                mpi.ialltoall(data, 1, kind, buffer, 1, kind, comm, request)
            },
        )?;
        Ok(arrived)
    }

    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        values.check(op)?;
        let constants = self.0.library.constants;
        match values {
            // MPICH 4.0 compares unsigned numbers as if they were signed. So they are made
            // signed in a way that keeps their order.
            Reduction::U64(values) if matches!(op, ReduceOp::Min | ReduceOp::Max) => {
                let mut signed: Vec<i64> = values.iter().map(|v| (v ^ SIGN) as i64).collect();
                self.0.reduce(&mut signed, constants.i64, op)?;
                values.iter_mut().zip(signed).for_each(|(v, s)| *v = s as u64 ^ SIGN);
                Ok(())
            }
            Reduction::U64(values) => self.0.reduce(values, constants.u64, op),
            Reduction::I64(values) => self.0.reduce(values, constants.i64, op),
            Reduction::F64(values) => self.0.reduce(values, constants.f64, op),
        }
    }

    #[allow(unsafe_code)]
    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        let constants = self.0.library.constants;
        let count = count_of("exclusive_scan", values.len())?;
        // SAFETY: both buffers have `count` numbers and live until completion.
        let (_, before) = self.0.collective(
            "MPI_Iexscan",
            (values.to_vec(), vec![0u64; values.len()]),
            |mpi, (own, before), comm, request| unsafe {
                let (data, buffer) = (data_of(own), buffer_of(before));
                let (kind, op) = (constants.u64, constants.sum);
                mpi.iexscan(data, buffer, count, kind, op, comm, request)
            },
        )?;
        values.copy_from_slice(&before);
        // MPI leaves rank 0's undefined.
        if self.0.rank == 0 {
            values.fill(0);
        }
        Ok(())
    }

    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending> {
        check_rank("isend", to, self.0.size)?;
        Ok(Sending::pending(self.send(to, tag.into(), message)?))
    }

    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        if let Source::Rank(rank) = from {
            check_rank("irecv", rank, self.0.size)?;
        }
        Ok(Receiving::pending(Incoming::new(&self.0, from, tag.into())?))
    }

    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        check_rank("irecv_sized", from, self.0.size)?;
        Ok(Receiving::pending(Announced::start(&self.0, from, tag, tag.into(), length)?))
    }

    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        let size = self.0.size;
        messages.iter().try_for_each(|(to, _)| check_rank("sparse_exchange", *to, size))?;
        let turn = self.0.exchanges.fetch_add(1, Ordering::Relaxed) % 2;
        sparse::exchange(&self.0, SPARSE_TAGS[turn as usize], messages)
    }

    #[allow(unsafe_code)]
    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        check_colour(colour)?;
        let library = self.0.library;
        // MPI's split waits without yielding; after a barrier it has little to wait for.
        self.0.barrier()?;
        let mut new = Handle::BLANK;
        let mpi_colour = colour.map_or(library.constants.undefined, |colour| colour as c_int);
        // SAFETY: the communicator is valid and `new` outlives the call.
        library.call("MPI_Comm_split", |mpi| unsafe {
            mpi.comm_split(self.0.handle, mpi_colour, key, &mut new)
        })?;
        Ok(match colour {
            None => None,
            Some(_) => Some(Arc::new(Self::owning(library, new)?)),
        })
    }

    #[allow(unsafe_code)]
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        let library = self.0.library;
        self.0.barrier()?;
        let mut new = Handle::BLANK;
        let (kind, info) = (library.constants.shared_memory, library.constants.no_info);
        // SAFETY: the communicator is valid and `new` outlives the call.
        library.call("MPI_Comm_split_type", |mpi| unsafe {
            mpi.comm_split_type(self.0.handle, kind, 0, info, &mut new)
        })?;
        Ok(Arc::new(Self::owning(library, new)?))
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        node::share(self, stages)
    }

    fn may_duplicate(&self) -> bool {
        shared::alive() < shared::MOST
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(Arc::new(Self::duplicate_of(self.0.library, self.0.handle)?))
    }

    fn share(&self) -> Result<Arc<dyn Communicator>> {
        // Ranks may have opened different files otherwise.
        let mut alive = [shared::alive() as u64];
        self.all_reduce(Reduction::U64(&mut alive), ReduceOp::Max)?;
        match alive[0] < shared::OWN as u64 {
            true => self.duplicate(),
            false => Ok(Arc::new(self.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommunicatorExt;

    #[test]
    #[allow(unsafe_code)]
    fn a_communicator_of_the_program_is_duplicated_and_freed() {
        if super::super::found().is_none() {
            esker_testkit::skip!("no MPI is installed");
            return;
        }
        let theirs = MpiComm::self_().unwrap();
        // SAFETY: the handle is that of a live communicator.
        let ours = unsafe { MpiComm::from_raw_handle(theirs.raw_handle()) }.unwrap();
        assert_ne!(ours.raw_handle(), theirs.raw_handle());
        assert_eq!((ours.rank(), ours.size()), (0, 1));
        drop(theirs);
        assert_eq!(ours.sum_u64(5).unwrap(), 5);
        let library = library().unwrap();
        let null = library.constants.null.to_raw(library.abi);
        // SAFETY: the null handle is refused before MPI sees it.
        let refused = unsafe { MpiComm::from_raw_handle(null) };
        assert!(matches!(refused, Err(CommError::BadArgument { .. })));
    }
}
