//! Ranks: the processes or threads that write and read one dataset together.
//!
//! A parallel simulation is *ranks*: copies of one program, numbered from 0, that each hold a
//! part of the arrays and talk by messages. Everything above this crate sees them through one
//! small trait, [`Communicator`], and runs unchanged on three kinds of ranks:
//!
//! | | what a rank is | how to get one |
//! | --- | --- | --- |
//! | [`SelfComm`] | the whole program | `SelfComm::new()` |
//! | [`ThreadComm`] | a thread of this process; messages move by reference | [`launch`] |
//! | [`mpi::MpiComm`] | an MPI process | `mpiexec -n 4 program` and [`auto`], or a communicator of yours |
//!
//! MPI is looked for when the program runs, not when it is built ([`mpi`]): one binary works
//! without MPI, under MPICH, under OpenMPI and with the standard ABI of MPI 5.
//!
//! Four ranks that share a sum and pass a message to their right neighbour:
//!
//! ```
//! use esker_comm::{CommError, Communicator, CommunicatorExt, Message, launch};
//!
//! let told = launch(4, |comm| {
//!     let me = comm.rank();
//!     let total = comm.sum_u64(me as u64)?; // 0 + 1 + 2 + 3 on every rank
//!     let right = (me + 1) % comm.size();
//!     let arrived = comm.sparse_exchange(vec![(right, Message::from(vec![me as u8]))])?;
//!     Ok::<_, CommError>((total, arrived[0].0)) // who sent to me
//! });
//! assert_eq!(told, [Ok((6, 3)), Ok((6, 0)), Ok((6, 1)), Ok((6, 2))]);
//! ```
//!
//! An operation is *collective* (every rank calls it, in the same order) or it is one of the
//! point-to-point calls [`isend`](Communicator::isend) and [`irecv`](Communicator::irecv), which
//! start a transfer and hand back a [`Sending`] or [`Receiving`] to wait for. A [`Message`] is
//! bytes, owned or shared. [`CommunicatorExt`] adds what ranks often do together, above all
//! [`agree`](CommunicatorExt::agree): before anyone acts, all learn whether someone failed, and
//! get the same error.
//!
//! Ranks of one node may have memory in common ([`NodeMemory`]), which they use in turns, without messages.
//!
//! A rank that fails does not leave the others waiting: if a thread-rank panics or drops its
//! communicator, whoever waits for it gets a [`CommError`]; an MPI process that dies is the
//! business of its `mpiexec`, which ends the others.
//!
//! [`ByNode`] gathers what a node's ranks send to another node; [`Counted`] wraps a communicator and counts what goes through it. The hidden module `suite`
//! is the test that every implementation passes.

#![deny(unsafe_code)]

mod auto;
mod by_node;
mod checks;
mod communicator;
mod counted;
mod error;
mod extension;
mod mailbox;
mod message;
pub mod mpi;
mod node;
mod patience;
mod request;
mod solo;
#[doc(hidden)]
pub mod suite;
mod threads;

pub use auto::auto;
pub use by_node::ByNode;
pub use communicator::{Communicator, ReduceOp, Reduction};
pub use counted::{Counted, Traffic};
pub use error::{CommError, Result};
pub use extension::{CommunicatorExt, Disagreement};
pub use message::Message;
pub use node::{Laying, NoNodeMemory, NodeMemory, Shown, Stages, Whole};
pub use request::{PendingReceive, PendingSend, Received, Receiving, Sending, Source, Tag};
pub use solo::SelfComm;
pub use threads::{LaunchError, ThreadComm, ThreadWorld, launch};
