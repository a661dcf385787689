//! The communicator of a thread-rank.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::group::{Group, Member, Want};
use crate::checks::{check_colour, check_one_each, check_rank};
use crate::node;
use crate::{
    CommError, Communicator, Message, NoNodeMemory, NodeMemory, PendingReceive, Received,
    Receiving, ReduceOp, Reduction, Result, Sending, Source, Stages, Tag,
};

/// One rank of a communicator whose ranks are threads of this process; made by
/// [`launch`](crate::launch).
///
/// Messages move by reference. When it is dropped, ranks that still wait for this one get
/// [`CommError::RankLeft`] instead of waiting for ever; when it is dropped by a panic, the whole
/// world gets [`CommError::RankPanicked`].
#[derive(Debug)]
pub struct ThreadComm {
    group: Arc<Group>,
    rank: usize,
}

impl ThreadComm {
    pub(super) fn new(group: Arc<Group>, rank: usize) -> Self {
        ThreadComm { group, rank }
    }

    fn meet<B: Send + 'static, R: Send + 'static>(
        &self,
        operation: &'static str,
        mine: B,
        combine: impl FnOnce(Vec<B>) -> Result<Vec<R>>,
    ) -> Result<R> {
        self.group.meeting.meet(&self.group, self.rank, operation, mine, combine)
    }

    /// The rank's place in the communicator that a split or duplicate made for it.
    fn join(place: (Arc<Group>, usize)) -> Arc<dyn Communicator> {
        Arc::new(ThreadComm::new(place.0, place.1))
    }

    fn receive(&self, from: Source, tag: Tag, length: Option<usize>) -> Receiving {
        let want = Want { from, tag, length };
        Receiving::pending(FromThread { group: Arc::clone(&self.group), rank: self.rank, want })
    }

    fn reduce<T>(&self, values: &mut [T], op: ReduceOp, fold: fn(T, T) -> T) -> Result<()>
    where
        T: Copy + Send + Sync + 'static,
    {
        let result = self.meet("all_reduce", (op, values.to_vec()), |all: Vec<(_, Vec<T>)>| {
            same(all.iter().map(|(op, values)| (*op, values.len())))?;
            let size = all.len();
            let mut all = all.into_iter().map(|(_, values)| values);
            let mut total = all.next().unwrap_or_default();
            for values in all {
                total.iter_mut().zip(values).for_each(|(sum, value)| *sum = fold(*sum, value));
            }
            let total = Arc::new(total);
            Ok(vec![total; size])
        })?;
        values.copy_from_slice(&result);
        Ok(())
    }
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.group.world.poison(self.group.members[self.rank].world_rank);
        }
        self.group.leave(self.rank);
    }
}

/// Refuses a reduction in which ranks disagree about the operation or the length.
fn same(mut described: impl Iterator<Item = (ReduceOp, usize)>) -> Result<()> {
    let first = described.next();
    match described.find(|other| Some(*other) != first) {
        None => Ok(()),
        Some(other) => Err(CommError::BadArgument {
            operation: "all_reduce",
            reason: format!("rank 0 gave {first:?} (operation, length) and another gave {other:?}"),
        }),
    }
}

struct FromThread {
    group: Arc<Group>,
    rank: usize,
    want: Want,
}

impl PendingReceive for FromThread {
    fn test(&mut self) -> Result<Option<Received>> {
        self.group.try_take(self.rank, self.want)
    }

    fn wait(&mut self) -> Result<Received> {
        self.group.take(self.rank, self.want)
    }
}

impl Communicator for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn barrier(&self) -> Result<()> {
        self.meet("barrier", (), Ok)
    }

    fn broadcast(&self, root: usize, message: Message) -> Result<Message> {
        check_rank("broadcast", root, self.size())?;
        // Only the root's message goes: an ignored one is freed by its owner, not under the lock.
        let mine = (root, (self.rank == root).then(|| message.into_shared()));
        self.meet("broadcast", mine, |mut all: Vec<(usize, Option<Message>)>| {
            if let Some(other) = all.iter().find(|(other, _)| *other != root) {
                return Err(other_root("broadcast", root, other.0));
            }
            let message = all[root].1.take().unwrap_or_default();
            Ok(vec![message; all.len()])
        })
    }

    fn gather(&self, root: usize, message: Message) -> Result<Option<Vec<Message>>> {
        check_rank("gather", root, self.size())?;
        self.meet("gather", (root, message), |all: Vec<(usize, Message)>| {
            if let Some(other) = all.iter().find(|(other, _)| *other != root) {
                return Err(other_root("gather", root, other.0));
            }
            let mut results = vec![None; all.len()];
            results[root] = Some(all.into_iter().map(|(_, message)| message).collect());
            Ok(results)
        })
    }

    fn all_gather(&self, message: Message) -> Result<Vec<Message>> {
        let all = self.meet("all_gather", message.into_shared(), |all: Vec<Message>| {
            let (size, all) = (all.len(), Arc::new(all));
            Ok(vec![all; size])
        })?;
        // The list is copied outside the lock; the messages in it are shared.
        Ok(all.to_vec())
    }

    fn all_gather_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        let all = self.meet("all_gather_u64", values.to_vec(), |all: Vec<Vec<u64>>| {
            if let Some(other) = all.iter().find(|other| other.len() != all[0].len()) {
                return Err(CommError::BadArgument {
                    operation: "all_gather_u64",
                    reason: format!(
                        "rank 0 gave {} numbers and another gave {}",
                        all[0].len(),
                        other.len()
                    ),
                });
            }
            let (size, all) = (all.len(), Arc::new(all.concat()));
            Ok(vec![all; size])
        })?;
        Ok(all.to_vec())
    }

    fn all_to_all(&self, messages: Vec<Message>) -> Result<Vec<Message>> {
        check_one_each("all_to_all", messages.len(), self.size())?;
        self.meet("all_to_all", messages, |all| Ok(transposed(all)))
    }

    fn all_to_all_u64(&self, values: &[u64]) -> Result<Vec<u64>> {
        check_one_each("all_to_all_u64", values.len(), self.size())?;
        self.meet("all_to_all_u64", values.to_vec(), |all| Ok(transposed(all)))
    }

    fn all_reduce(&self, values: Reduction<'_>, op: ReduceOp) -> Result<()> {
        values.check(op)?;
        match (values, op) {
            (Reduction::U64(values), ReduceOp::Min) => self.reduce(values, op, u64::min),
            (Reduction::U64(values), ReduceOp::Max) => self.reduce(values, op, u64::max),
            (Reduction::U64(values), ReduceOp::Sum) => self.reduce(values, op, u64::wrapping_add),
            (Reduction::U64(values), ReduceOp::BitOr) => self.reduce(values, op, |a, b| a | b),
            (Reduction::I64(values), ReduceOp::Min) => self.reduce(values, op, i64::min),
            (Reduction::I64(values), ReduceOp::Max) => self.reduce(values, op, i64::max),
            (Reduction::I64(values), ReduceOp::Sum) => self.reduce(values, op, i64::wrapping_add),
            (Reduction::I64(values), ReduceOp::BitOr) => self.reduce(values, op, |a, b| a | b),
            (Reduction::F64(values), ReduceOp::Min) => self.reduce(values, op, f64::min),
            (Reduction::F64(values), ReduceOp::Max) => self.reduce(values, op, f64::max),
            (Reduction::F64(values), _) => self.reduce(values, op, |a, b| a + b),
        }
    }

    fn exclusive_scan(&self, values: &mut [u64]) -> Result<()> {
        let mine = (ReduceOp::Sum, values.to_vec());
        let before = self.meet("exclusive_scan", mine, |all: Vec<(ReduceOp, Vec<u64>)>| {
            same(all.iter().map(|(op, values)| (*op, values.len())))?;
            let mut running = vec![0u64; all[0].1.len()];
            let step = |(_, values): (ReduceOp, Vec<u64>)| {
                let before = running.clone();
                running.iter_mut().zip(values).for_each(|(sum, v)| *sum = sum.wrapping_add(v));
                before
            };
            Ok(all.into_iter().map(step).collect())
        })?;
        values.copy_from_slice(&before);
        Ok(())
    }

    fn isend(&self, to: usize, tag: Tag, message: Message) -> Result<Sending> {
        check_rank("isend", to, self.size())?;
        self.group.send(self.rank, to, tag, message)?;
        Ok(Sending::done())
    }

    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        if let Source::Rank(rank) = from {
            check_rank("irecv", rank, self.size())?;
        }
        Ok(self.receive(from, tag, None))
    }

    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        check_rank("irecv_sized", from, self.size())?;
        Ok(self.receive(Source::Rank(from), tag, Some(length)))
    }

    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        messages.iter().try_for_each(|(to, _)| check_rank("sparse_exchange", *to, self.size()))?;
        self.meet("sparse_exchange", messages, |all: Vec<Vec<(usize, Message)>>| {
            let mut arrived: Vec<Vec<(usize, Message)>> = all.iter().map(|_| Vec::new()).collect();
            for (source, messages) in all.into_iter().enumerate() {
                for (to, message) in messages {
                    arrived[to].push((source, message));
                }
            }
            Ok(arrived)
        })
    }

    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        check_colour(colour)?;
        let place = self.meet("split", (colour, key), |all: Vec<(Option<u32>, i32)>| {
            let mut colours: BTreeMap<u32, Vec<(i32, usize)>> = BTreeMap::new();
            for (rank, (colour, key)) in all.iter().enumerate() {
                if let Some(colour) = colour {
                    colours.entry(*colour).or_default().push((*key, rank));
                }
            }
            let mut places = vec![None; all.len()];
            for mut ranks in colours.into_values() {
                ranks.sort_unstable();
                let members = ranks.iter().map(|(_, rank)| self.group.members[*rank]).collect();
                let group = Group::new(&self.group.world, members);
                for (new_rank, (_, rank)) in ranks.into_iter().enumerate() {
                    places[rank] = Some((Arc::clone(&group), new_rank));
                }
            }
            Ok(places)
        })?;
        Ok(place.map(Self::join))
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        let Member { node, .. } = self.group.members[self.rank];
        let alone = || CommError::BadArgument {
            operation: "split_by_node",
            reason: format!("the rank is on no node ({node})"),
        };
        self.split(u32::try_from(node).ok(), 0)?.ok_or_else(alone)
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        let made = self.meet("node_memory", stages.clone(), |all: Vec<Stages>| {
            if let Some(other) = all.iter().find(|other| **other != all[0]) {
                let reason = format!("rank 0 gave {:?} and another gave {other:?}", all[0]);
                return Err(CommError::BadArgument { operation: "node_memory", reason });
            }
            Ok(vec![NodeMemory::of_this_process(&all[0], all.len()); all.len()])
        })?;
        let (group, ranks) = (Arc::downgrade(&self.group), self.size());
        let gone = move |_, awaited: &dyn Fn(usize) -> bool| {
            let group = group.upgrade();
            if let Some(group) = &group {
                group.world.check()?;
            }
            // Without a group, all have left it. What a rank has finished it had finished before it left.
            let has_left = |rank: &usize| group.as_ref().is_none_or(|group| group.has_left(*rank));
            let missing = (0..ranks).find(|rank| has_left(rank) && awaited(*rank));
            missing.map_or(Ok(()), |rank| Err(node::left(rank)))
        };
        Ok(made?.and_then(|shared| shared.join(stages, self.rank, ranks, Box::new(gone))))
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        let place = self.meet("duplicate", (), |all: Vec<()>| {
            let group = Group::new(&self.group.world, self.group.members.clone());
            Ok((0..all.len()).map(|rank| (Arc::clone(&group), rank)).collect())
        })?;
        Ok(Self::join(place))
    }
}

/// Row `i` becomes what was in column `i`. Every row has one entry for each rank.
fn transposed<T>(rows: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let mut columns: Vec<Vec<T>> = rows.iter().map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, entry)| column.push(entry));
    }
    columns
}

fn other_root(operation: &'static str, root: usize, other: usize) -> CommError {
    let reason = format!("one rank named {root} as the root and another named {other}");
    CommError::BadArgument { operation, reason }
}
