//! What a commit to a container takes on rank 0 of as many ranks as one likes.
//!
//! Nothing is modelled: the code that writes containers runs here as rank 0, on a communicator whose other ranks are not there. They
//! do what rank 0 does, so that what it would get from them is known: as many messages as there are ranks, each as long as its own. Memory
//! is what the process had at most, as the system says. Rank 0 does what every rank does, and decides; no other holds more.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker::{CreateOptions, Dataset, DimLen, ExternalType, FillMode, Layout, Selection};
use esker_comm::mpi::GATHER_HEAD;
use esker_comm::{
    CommError, Communicator, Message, NoNodeMemory, NodeMemory, Receiving, ReduceOp, Reduction,
    Result, SelfComm, Sending, Source, Stages, Tag,
};

/// What a part of the way took on rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Collective calls.
    pub calls: u64,
    /// Contributions of other ranks that came here: those to gathers, and one for each reduction.
    pub messages: u64,
    /// Bytes that it gave to the others together: its contributions, and what it broadcast.
    pub given: u64,
    /// Bytes that came here.
    pub got: u64,
    /// The most memory that the process had beyond what it had before there was a dataset, in bytes; `None` where the system does not
    /// tell.
    pub memory: Option<u64>,
}

/// The parts of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Creating a container of one variable, of which each rank has one element in a record.
    Create,
    /// The first write, which makes everybody's logs.
    Begin,
    /// The first commit, in which every log is new.
    First,
    /// The second, in which every log has grown.
    Second,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Create => "create",
            Stage::Begin => "first write",
            Stage::First => "first commit",
            Stage::Second => "second commit",
        })
    }
}

/// Commits twice as rank 0 of `ranks`, to a container at `path`, which must not be there. Memory is right in a fresh process only.
pub fn commit(ranks: u32, path: &Path) -> esker::Result<[(Stage, Cost); 4]> {
    let crowd = Crowd { size: ranks as usize, counts: Arc::default() };
    let counts = Arc::clone(&crowd.counts);
    let before = resident();
    let mut last = counts.now();
    let mut cost = || {
        let now = counts.now();
        let difference = |i: usize| now[i] - last[i];
        let [calls, messages, given, got] = [0, 1, 2, 3].map(difference);
        last = now;
        let memory = before.zip(peak()).map(|(before, peak)| peak.saturating_sub(before));
        forget_peak();
        Cost { calls, messages, given, got, memory }
    };
    forget_peak();
    let options = CreateOptions::new().layout(Layout::Log).fill(FillMode::NoFill);
    let mut define = Dataset::create(path, options.comm(Arc::new(crowd)))?;
    let time = define.add_dim("time", DimLen::Unlimited)?;
    let x = define.add_dim("x", DimLen::Fixed(ranks.into()))?;
    let v = define.add_var("v", ExternalType::Double, &[time, x])?;
    let mut dataset = define.enddef()?;
    let created = cost();
    dataset.put_all(v, &Selection::slab(&[0, 0], &[1, 1]), &[1.0])?;
    let begun = cost();
    dataset.commit()?;
    let first = cost();
    dataset.put_all(v, &Selection::slab(&[1, 0], &[1, 1]), &[2.0])?;
    dataset.commit()?;
    let second = cost();
    Ok([
        (Stage::Create, created),
        (Stage::Begin, begun),
        (Stage::First, first),
        (Stage::Second, second),
    ])
}

/// A line of the system's account of this process, in bytes.
fn account(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn resident() -> Option<u64> {
    account("VmRSS:")
}

fn peak() -> Option<u64> {
    account("VmHWM:")
}

/// From now on the most is counted anew. Where the system refuses, it is that of all stages so far, which is no less.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Calls, messages, bytes given, bytes got.
#[derive(Debug, Default)]
struct Counts([AtomicU64; 4]);

impl Counts {
    fn now(&self) -> [u64; 4] {
        std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed))
    }

    fn add(&self, numbers: [usize; 4]) {
        for (count, number) in self.0.iter().zip(numbers) {
            count.fetch_add(number as u64, Ordering::Relaxed);
        }
    }
}

/// Rank 0 of many, the others of which do as it does.
#[derive(Debug, Clone)]
struct Crowd {
    size: usize,
    counts: Arc<Counts>,
}

impl Crowd {
    fn others(&self) -> usize {
        self.size - 1
    }

    /// Nobody is there to send or to receive.
    fn nobody<T>(&self, operation: &'static str) -> Result<T> {
        let reason = "the other ranks of a simulated crowd have nothing to say here".to_string();
        Err(CommError::BadArgument { operation, reason })
    }

    fn everyones(&self, message: Message) -> Vec<Message> {
        // As MPI's ranks do it: a head of each, its length and what fits behind it; what does not fit comes whole, in a message more.
        let len = message.len();
        let fits = len + size_of::<u64>() <= GATHER_HEAD;
        let (each, bytes) = if fits { (1, GATHER_HEAD) } else { (2, GATHER_HEAD + len) };
        self.counts.add([1, each * self.others(), bytes, self.others() * bytes]);
        let mut head = message[..len.min(GATHER_HEAD - size_of::<u64>())].to_vec();
        let in_head = head.len();
        head.resize(GATHER_HEAD, 0);
        let heads = head.repeat(self.size);
        let of_heads = heads.chunks_exact(GATHER_HEAD).map(|head| Message::from(&head[..in_head]));
        let mut messages: Vec<Message> = of_heads.collect();
        if !fits {
            messages.iter_mut().for_each(|short| *short = Message::from(&message[..]));
        }
        messages
    }
}

impl Communicator for Crowd {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.size
    }

    fn barrier(&self) -> Result<()> {
        self.counts.add([1, 0, 0, 0]);
        Ok(())
    }

    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        if root != 0 {
            return self.nobody("broadcast");
        }
        self.counts.add([1, 0, message.len(), 0]);
        Ok(message)
    }

    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        if root != 0 {
            self.counts.add([1, 0, message.len(), 0]);
            return Ok(None);
        }
        Ok(Some(self.everyones(message)))
    }

    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        Ok(self.everyones(message))
    }

    /// Who says his own number says it first: 0 is that of rank 0, so the others say theirs.
    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        let bytes = 8 * values.len();
        self.counts.add([1, self.others(), bytes, self.others() * bytes]);
        let mut all = Vec::with_capacity(self.size * values.len());
        for rank in 0..self.size as u64 {
            let own = values.first().map(|first| if *first == 0 { rank } else { *first });
            all.extend(own.into_iter().chain(values.iter().copied().skip(1)));
        }
        Ok(all)
    }

    fn all_to_all(&self, _: Vec<Message>) -> Result<Vec<Message>> {
        self.nobody("all_to_all")
    }

    fn all_to_all_u64(&self, _: &[u64]) -> Result<Vec<u64>> {
        self.nobody("all_to_all_u64")
    }

    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        let size = self.size;
        let sums = op == ReduceOp::Sum;
        let bytes = match values {
            Reduction::U64(list) => {
                list.iter_mut().filter(|_| sums).for_each(|n| *n = n.wrapping_mul(size as u64));
                8 * list.len()
            }
            Reduction::I64(list) => {
                list.iter_mut().filter(|_| sums).for_each(|n| *n = n.wrapping_mul(size as i64));
                8 * list.len()
            }
            Reduction::F64(list) => {
                list.iter_mut().filter(|_| sums).for_each(|n| *n *= size as f64);
                8 * list.len()
            }
        };
        let came = usize::from(self.others() > 0);
        self.counts.add([1, came, bytes, came * bytes]);
        Ok(())
    }

    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        self.counts.add([1, 0, 8 * values.len(), 0]);
        values.fill(0);
        Ok(())
    }

    fn isend(&self, _: usize, _: Tag, _: Message) -> Result<Sending> {
        self.nobody("isend")
    }

    fn irecv(&self, _: Source, _: Tag) -> Result<Receiving> {
        self.nobody("irecv")
    }

    fn irecv_sized(&self, _: usize, _: Tag, _: usize) -> Result<Receiving> {
        self.nobody("irecv_sized")
    }

    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        if !messages.is_empty() {
            return self.nobody("sparse_exchange");
        }
        self.counts.add([1, 0, 0, 0]);
        Ok(messages)
    }

    fn split(&self, _: Option<u32>, _: i32) -> Result<Option<Arc<dyn Communicator>>> {
        self.nobody("split")
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.counts.add([1, 0, 0, 0]);
        Ok(Arc::new(SelfComm::new()))
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        self.counts.add([1, 0, 0, 0]);
        SelfComm::new().node_memory(stages)
    }

    fn may_use_threads(&self) -> bool {
        false
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        self.counts.add([1, 0, 0, 0]);
        Ok(Arc::new(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_comm::{Counted, ThreadWorld};

    /// The simulation's counts are those of real ranks, which are counted on their way.
    #[test]
    fn a_crowd_of_four_is_told_what_four_thread_ranks_are() {
        let folder = tempfile::tempdir().unwrap();
        let simulated = commit(4, &folder.path().join("crowd.esk")).unwrap();
        let path = folder.path().join("threads.esk");
        let counted = ThreadWorld::new(4)
            .launch(|comm| {
                let comm = Counted::new(comm);
                let (rank, traffic) = (comm.rank() as u64, comm.traffic());
                let options = CreateOptions::new().layout(Layout::Log).fill(FillMode::NoFill);
                let mut define = Dataset::create(&path, options.comm(Arc::new(comm))).unwrap();
                let time = define.add_dim("time", DimLen::Unlimited).unwrap();
                let x = define.add_dim("x", DimLen::Fixed(4)).unwrap();
                let v = define.add_var("v", ExternalType::Double, &[time, x]).unwrap();
                let mut dataset = define.enddef().unwrap();
                let mut seen = vec![(traffic.collectives(), traffic.messages())];
                for record in 0..2u64 {
                    let own = Selection::slab(&[record, rank], &[1, 1]);
                    dataset.put_all(v, &own, &[1.0]).unwrap();
                    if record == 0 {
                        seen.push((traffic.collectives(), traffic.messages()));
                    }
                    dataset.commit().unwrap();
                    seen.push((traffic.collectives(), traffic.messages()));
                }
                seen
            })
            .unwrap();
        let mut calls = 0;
        let of_crowd: Vec<(u64, u64)> = simulated
            .iter()
            .map(|(_, cost)| {
                calls += cost.calls;
                (calls, 0)
            })
            .collect();
        assert_eq!(counted[0], of_crowd);
        // And the containers have the same versions, with the same logs.
        let versions = |path: &Path| Dataset::open(path).unwrap().container_version();
        assert_eq!(versions(&path), versions(&folder.path().join("crowd.esk")));
    }

    #[test]
    fn rank_0_gets_a_short_message_of_each_rank_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let got = |ranks: u32| {
            let path = folder.path().join(format!("{ranks}.esk"));
            let [.., (_, second)] = commit(ranks, &path).unwrap();
            second.got
        };
        // How far its logs have come, and where: not what it wrote.
        assert!(got(5000) - got(1000) <= 4000 * 256);
    }
}
