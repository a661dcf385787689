//! A bit that changes in a message between ranks is an error of all ranks, whatever the message is, and the dataset is as
//! usable as after any other error.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, Error, ExternalType, Hints, Layout, OpenOptions,
    Selection, VarId,
};
use esker_comm::{
    Message, NoNodeMemory, NodeMemory, Receiving, ReduceOp, Reduction, Result, Sending, Source,
    Stages, Tag, ThreadWorld,
};
use esker_store::MemoryStore;
use esker_testkit::ranks::HANG;

const RANKS: usize = 4;

/// Which messages are counted, and one of them damaged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Those of sparse exchanges, where they arrive.
    Sparse,
    /// Those that one rank sends to another that waits for them, where they leave.
    Sent,
    /// Those that everyone gets of everyone, where they arrive.
    Gathered,
}

/// What happens to the messages of one rank.
#[derive(Debug)]
struct Fault {
    kind: Kind,
    /// Messages of the kind so far, since this was armed.
    seen: AtomicU64,
    /// Which of them is damaged; none while it is `NEVER`.
    which: AtomicU64,
    /// Which of its bits changes, modulo how many it has.
    bit: AtomicU64,
    done: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Fault {
    fn new(kind: Kind) -> Arc<Fault> {
        let zero = || AtomicU64::new(0);
        let which = AtomicU64::new(NEVER);
        Arc::new(Fault { kind, seen: zero(), which, bit: zero(), done: zero() })
    }

    fn arm(&self, which: u64, bit: u64) {
        self.seen.store(0, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.which.store(which, Ordering::Relaxed);
        self.bit.store(bit, Ordering::Relaxed);
    }

    /// Messages that it has seen, and whether it has damaged one of them.
    fn disarm(&self) -> (u64, bool) {
        self.which.store(NEVER, Ordering::Relaxed);
        (self.seen.load(Ordering::Relaxed), self.done.swap(0, Ordering::Relaxed) > 0)
    }

    fn pass(&self, kind: Kind, message: Message) -> Message {
        if kind != self.kind || message.is_empty() {
            return message;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        if number != self.which.load(Ordering::Relaxed) {
            return message;
        }
        self.done.store(1, Ordering::Relaxed);
        let mut bytes = message.to_vec();
        let bit = self.bit.load(Ordering::Relaxed) as usize % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        Message::from(bytes)
    }
}

/// A communicator that damages a message.
#[derive(Debug)]
struct Flipping {
    inner: Arc<dyn Communicator>,
    fault: Arc<Fault>,
}

impl Flipping {
    fn wrap(&self, inner: Arc<dyn Communicator>) -> Arc<dyn Communicator> {
        Arc::new(Flipping { inner, fault: self.fault.clone() })
    }
}

impl Communicator for Flipping {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn barrier(&self) -> Result<()> {
        self.inner.barrier()
    }
    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        self.inner.broadcast(root, message)
    }
    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        self.inner.gather(root, message)
    }
    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        let came = self.inner.all_gather(message)?;
        Ok(came.into_iter().map(|message| self.fault.pass(Kind::Gathered, message)).collect())
    }
    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        self.inner.all_gather_u64(values)
    }
    fn all_to_all(&self, messages: Vec<Message>) -> Result<Vec<Message>> {
        self.inner.all_to_all(messages)
    }
    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        self.inner.all_to_all_u64(values)
    }
    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        self.inner.all_reduce(values, op)
    }
    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        self.inner.exclusive_scan(values)
    }
    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending> {
        self.inner.isend(to, tag, self.fault.pass(Kind::Sent, message))
    }
    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        self.inner.irecv(from, tag)
    }
    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        self.inner.irecv_sized(from, tag, length)
    }
    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        let came = self.inner.sparse_exchange(messages)?.into_iter();
        Ok(came.map(|(from, message)| (from, self.fault.pass(Kind::Sparse, message))).collect())
    }
    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        Ok(self.inner.split(colour, key)?.map(|inner| self.wrap(inner)))
    }
    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        Ok(self.wrap(self.inner.split_by_node()?))
    }
    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        self.inner.node_memory(stages)
    }
    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        Ok(self.wrap(self.inner.duplicate()?))
    }
    fn share(&self) -> Result<Arc<dyn Communicator>> {
        Ok(self.wrap(self.inner.share()?))
    }
}

const ROWS: u64 = 24;
const COLUMNS: u64 = 3072;

/// What is done, and how.
#[derive(Debug, Clone, Copy)]
struct Case {
    /// The variable is chunked.
    chunks: Option<[u64; 2]>,
    layout: Layout,
    hints: &'static str,
    ranks_per_node: usize,
    /// Whether the reading is what is damaged.
    reads: bool,
    kind: Kind,
    /// How often, at least, some message of this kind is there to be damaged.
    at_least: u64,
}

const MESSAGES: &str = "esker_node_memory=disable;romio_cb_write=enable;romio_cb_read=enable;cb_buffer_size=16384;\
                        striping_unit=512";

const CLASSIC: Case = Case {
    chunks: None,
    layout: Layout::Classic,
    hints: MESSAGES,
    ranks_per_node: RANKS,
    reads: false,
    kind: Kind::Sparse,
    at_least: 3,
};

/// A dataset of one rank of a case.
struct Rank {
    dataset: Dataset,
    var: VarId,
    me: u64,
    fault: Arc<Fault>,
}

impl Rank {
    fn new(case: Case, comm: Arc<dyn Communicator>, store: Arc<MemoryStore>) -> Rank {
        let me = comm.rank() as u64;
        let fault = Fault::new(case.kind);
        let comm: Arc<dyn Communicator> = Arc::new(Flipping { inner: comm, fault: fault.clone() });
        let mut hints = Hints::default();
        hints.set_pnetcdf(case.hints);
        assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
        let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
        let options = options.hints(hints.clone()).layout(case.layout);
        let mut def = Dataset::create(Path::new("/run/x"), options).unwrap();
        let y = def.add_dim("y", DimLen::Fixed(ROWS)).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(COLUMNS)).unwrap();
        let var = def.add_var("height", ExternalType::Int, &[y, x]).unwrap();
        if let Some(shape) = case.chunks {
            def.set_chunks(var, &shape).unwrap();
        }
        let mut rank = Rank { dataset: def.enddef().unwrap(), var, me, fault };
        rank.put(1).unwrap();
        if case.layout == Layout::Log {
            rank.dataset.close().unwrap();
            let options = OpenOptions::new().comm(comm).store(store).hints(hints);
            rank.dataset = Dataset::open_with(Path::new("/run/x"), options).unwrap();
        }
        rank
    }

    /// Every fourth column, beginning with this one.
    fn columns(first: u64) -> Selection {
        let ranks = RANKS as u64;
        Selection::strided(&[0, first], &[ROWS, COLUMNS / ranks], &[1, ranks])
    }

    fn values(column: u64, salt: i32) -> Vec<i32> {
        (0..(ROWS * COLUMNS) as i32 / 4).map(|i| i * 7 + column as i32 * 1000 + salt).collect()
    }

    fn put(&mut self, salt: i32) -> esker::Result<()> {
        let data = Rank::values(self.me, salt);
        self.dataset.put_all(self.var, &Rank::columns(self.me), &data)
    }

    /// Reads what the next rank has written.
    fn get(&mut self, salt: i32) -> esker::Result<()> {
        let next = (self.me + 1) % RANKS as u64;
        let found: Vec<i32> = self.dataset.get_all(self.var, &Rank::columns(next))?;
        assert!(found == Rank::values(next, salt), "wrong values on rank {}", self.me);
        Ok(())
    }

    fn act(&mut self, case: Case) -> esker::Result<()> {
        if case.reads { self.get(1) } else { self.put(1) }
    }
}

/// Runs the case once for each of some messages of each rank, with a bit of it changed.
fn the_damage_is_noticed(case: Case) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let world = ThreadWorld::new(RANKS).ranks_per_node(case.ranks_per_node);
        let store = Arc::new(MemoryStore::default());
        let _ = sender.send(world.launch(move |comm| damaged(case, comm, store.clone())));
    });
    let damaged = receiver.recv_timeout(HANG).expect("ranks hang").unwrap();
    let most = damaged.into_iter().max().unwrap();
    assert!(most >= case.at_least, "{most} messages of {case:?} were damaged");
}

fn damaged(case: Case, comm: Arc<dyn Communicator>, store: Arc<MemoryStore>) -> u64 {
    let mut rank = Rank::new(case, comm.clone(), store);
    // How many there are.
    rank.fault.arm(NEVER, 0);
    rank.act(case).unwrap();
    let (seen, _) = rank.fault.disarm();
    let all = comm.all_gather_u64(&[seen]).unwrap();
    let mut count = 0;
    for (victim, seen) in all.iter().enumerate() {
        // Some at the beginning, in the middle, at the end.
        let those = [0, 1, seen / 3, seen / 2, seen.saturating_sub(2), seen.saturating_sub(1)];
        for (turn, which) in those.into_iter().filter(|which| which < seen).enumerate() {
            let bit = [0, 3, 40, 1000, 8191, 1 << 20][turn] + 7 * which;
            if victim == comm.rank() {
                rank.fault.arm(which, bit);
            }
            let outcome = rank.act(case);
            let (_, hit) = rank.fault.disarm();
            let hits = comm.all_gather_u64(&[hit.into()]).unwrap();
            assert_eq!(hits.iter().sum::<u64>(), 1, "no message was damaged: {case:?}");
            if case.kind == Kind::Gathered {
                outcome.unwrap();
                rank.get(1).unwrap();
                count += 1;
                continue;
            }
            let sentence = match &outcome {
                Err(error @ (Error::Message { .. } | Error::OtherRank { .. })) => error.to_string(),
                other => panic!("rank {} got {other:?} of {case:?}", comm.rank()),
            };
            // Both ranks, the file, and where.
            let says = |words: &str| assert!(sentence.contains(words), "{words}: {sentence}");
            ["from rank ", " to rank ", "arrived damaged", "/run/x: ", "it was "]
                .into_iter()
                .for_each(says);
            if case.layout == Layout::Classic {
                says("height");
            }
            count += 1;
            // All is well the next time, and nothing is left of the time before.
            let salt = if case.layout == Layout::Log { 1 } else { 2 };
            if salt == 2 {
                rank.put(2).unwrap();
            }
            rank.get(salt).unwrap();
            if salt == 2 {
                rank.put(1).unwrap();
            }
        }
    }
    rank.dataset.close().unwrap();
    count
}

#[test]
fn in_pieces_for_windows() {
    the_damage_is_noticed(CLASSIC);
}

#[test]
fn in_what_is_asked_of_windows() {
    the_damage_is_noticed(Case { reads: true, ..CLASSIC });
}

#[test]
fn in_answers_of_windows() {
    the_damage_is_noticed(Case { reads: true, kind: Kind::Sent, ..CLASSIC });
}

const CHUNKED: Case = Case { chunks: Some([ROWS, COLUMNS / 4]), ..CLASSIC };

#[test]
fn in_pieces_for_chunks() {
    the_damage_is_noticed(CHUNKED);
    the_damage_is_noticed(Case { chunks: Some([3, 100]), ..CHUNKED });
}

#[test]
fn in_what_is_asked_of_chunks_and_in_pieces_of_them() {
    let case = Case { chunks: Some([3, 512]), reads: true, ..CHUNKED };
    the_damage_is_noticed(case);
    the_damage_is_noticed(Case { kind: Kind::Sent, ..case });
}

#[test]
fn in_whole_chunks() {
    // Of 73,728 bytes each, of which every rank wants every fourth element.
    let case = Case { reads: true, kind: Kind::Sent, at_least: 8, ..CHUNKED };
    the_damage_is_noticed(case);
}

/// Ranks tell it each other twice: where one of them is damaged the other is right, and nobody has an error.
#[test]
fn in_who_has_which_chunks_it_does_no_harm() {
    for reads in [false, true] {
        the_damage_is_noticed(Case { kind: Kind::Gathered, reads, ..CHUNKED });
    }
}

const GATHERED: &str = "esker_node_memory=disable;romio_cb_write=enable;romio_cb_read=enable;cb_buffer_size=16384;\
                        striping_unit=512;esker_gather_nodes=enable;cb_nodes=4";

#[test]
fn in_letters_that_are_gathered_between_nodes() {
    let case = Case { hints: GATHERED, ranks_per_node: 2, ..CLASSIC };
    the_damage_is_noticed(case);
    the_damage_is_noticed(Case { reads: true, ..case });
    let case = Case { chunks: CHUNKED.chunks, ..case };
    the_damage_is_noticed(case);
    the_damage_is_noticed(Case { reads: true, ..case });
    the_damage_is_noticed(Case { reads: true, kind: Kind::Sent, ..case });
}

#[test]
fn in_questions_to_a_distributed_index_and_in_its_answers() {
    let hints = "esker_index=distributed";
    let case = Case { layout: Layout::Log, hints, reads: true, ..CLASSIC };
    the_damage_is_noticed(case);
    let hints = "esker_index=distributed;esker_gather_nodes=enable";
    the_damage_is_noticed(Case { hints, ranks_per_node: 2, ..case });
    // In many rounds.
    let hints = "esker_index=distributed;esker_index_memory=4096";
    the_damage_is_noticed(Case { hints, at_least: 3, ..case });
}

#[test]
fn without_checksums_there_are_fewer_bytes_and_the_same_values() {
    let bytes_of = |hints: &'static str| {
        let world = ThreadWorld::new(RANKS);
        let store = Arc::new(MemoryStore::default());
        let sent = world.launch(move |comm| {
            let case = Case { hints, ..CLASSIC };
            let mut rank = Rank::new(case, comm, store.clone());
            rank.get(1).unwrap();
            let report = *rank.dataset.report();
            rank.dataset.close().unwrap();
            (report.messages, report.message_bytes)
        });
        let sent = sent.unwrap();
        let sum = |of: fn(&(u64, u64)) -> u64| sent.iter().map(of).sum::<u64>();
        (sum(|s| s.0), sum(|s| s.1))
    };
    let (messages, with) = bytes_of(MESSAGES);
    let without = "esker_node_memory=disable;romio_cb_write=enable;romio_cb_read=enable;cb_buffer_size=16384;\
                   striping_unit=512;esker_checksums=none";
    let (same, without) = bytes_of(without);
    assert_eq!((same, with), (messages, without + 4 * messages));
}
