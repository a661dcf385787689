//! A decorator that gathers what a node's ranks send to another node.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::checks::check_rank;
use crate::{
    Communicator, CommunicatorExt, Message, NoNodeMemory, NodeMemory, Receiving, ReduceOp,
    Reduction, Result, Sending, Source, Stages, Tag,
};

/// A communicator whose [sparse exchanges](Communicator::sparse_exchange) send one message for each pair of nodes, not of
/// ranks.
///
/// Letters for another node go to a *courier*, a rank of the sender's node, which packs those of all its ranks into one
/// message for a courier there, who hands them out. With P ranks on each of N nodes a rank sends at most P messages within
/// its node, twice, and N / P to others, where it would have sent N × P. Letters pass through more hands, so it is worth it
/// where they are many and short. Everything else is as it was; communicators that are made from it do not gather.
///
/// Where a letter goes has a checksum of its own on the way; what it says is its sender's business. When one cannot be handed
/// out, everyone who may be whom it was for gets [`LOST`](Self::LOST) from the rank that had packed it.
///
/// ```
/// use esker_comm::{ByNode, Communicator, Message, ThreadWorld};
/// let world = ThreadWorld::new(6).ranks_per_node(3);
/// let came = world.launch(|comm| {
///     let comm = ByNode::new(comm).unwrap();
///     let letter = |to| (to, Message::from(vec![comm.rank() as u8]));
///     comm.sparse_exchange(vec![letter(5), letter(0)]).unwrap().len()
/// });
/// assert_eq!(came.unwrap(), [6, 0, 0, 0, 0, 6]);
/// ```
#[derive(Debug)]
pub struct ByNode {
    inner: Arc<dyn Communicator>,
    node: Arc<dyn Communicator>,
    nodes: Nodes,
    /// The number of this rank's node.
    here: usize,
}

impl ByNode {
    /// What stands for letters that were lost on the way. Shorter than any message with a checksum, and not empty.
    pub const LOST: [u8; 1] = [0];

    /// The same ranks, whose letters are gathered. Collective.
    pub fn new(inner: Arc<dyn Communicator>) -> Result<ByNode> {
        let node = inner.split_by_node()?;
        let first = node.min_u64(inner.rank() as u64)?;
        let nodes = Nodes::new(&inner.all_gather_u64(&[first])?);
        let here = nodes.of(inner.rank());
        Ok(ByNode { inner, node, nodes, here })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.ranks.len()
    }

    /// Packs letters and sends them through one of the communicators; gives those that came, and whose packages came
    /// damaged, by its rank of that communicator.
    fn pass(
        &self,
        through: &dyn Communicator,
        letters: Letters,
    ) -> Result<(Vec<Letter>, Vec<usize>)> {
        let mut packages: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (to, letter) in letters {
            letter.pack(packages.entry(to).or_default());
        }
        let packages = packages.into_iter().map(|(to, package)| (to, Message::from(package)));
        let (mut came, mut damaged) = (Vec::new(), Vec::new());
        for (from, package) in through.sparse_exchange(packages.collect())? {
            if !Letter::unpack(package.into_shared(), self.size(), &mut came) {
                damaged.push(from);
            }
        }
        Ok((came, damaged))
    }

    /// The number among all of a rank of this node.
    fn of_this_node(&self, place: usize) -> usize {
        self.nodes.courier(self.here, place)
    }
}

/// Where letters go next, and what they are.
type Letters = Vec<(usize, Letter)>;

/// A message on its way, as ranks of the whole.
#[derive(Debug)]
struct Letter {
    from: usize,
    to: usize,
    message: Message,
}

/// Bytes in front of each letter in a package: from, to, length, and the crc32c of these.
const HEAD: usize = 28;

impl Letter {
    /// Stands for the letters that a rank had packed and nobody can hand out.
    fn lost(from: usize, to: usize) -> Letter {
        Letter { from, to, message: Message::from(ByNode::LOST.to_vec()) }
    }

    fn pack(&self, package: &mut Vec<u8>) {
        package.reserve(HEAD + self.message.len());
        let begin = package.len();
        for number in [self.from, self.to, self.message.len()] {
            package.extend_from_slice(&(number as u64).to_le_bytes());
        }
        let sum = crc32c::crc32c(&package[begin..]);
        package.extend_from_slice(&sum.to_le_bytes());
        package.extend_from_slice(&self.message);
    }

    /// Takes the letters out of a package, whose bytes they share; false if it is damaged somewhere, and what is behind that
    /// place lost.
    fn unpack(package: Message, ranks: usize, letters: &mut Vec<Letter>) -> bool {
        let mut at = 0;
        while at < package.len() {
            let Some(Head { from, to, len }) = package.get(at..).and_then(Head::read) else {
                return false;
            };
            let end = (at + HEAD).checked_add(len).filter(|end| *end <= package.len());
            let Some(end) = end.filter(|_| from < ranks && to < ranks) else { return false };
            letters.push(Letter { from, to, message: package.slice(at + HEAD..end) });
            at = end;
        }
        true
    }
}

/// What is said in front of a letter.
struct Head {
    from: usize,
    to: usize,
    len: usize,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Head> {
        let (numbers, sum) = bytes.get(..HEAD)?.split_last_chunk::<4>()?;
        if crc32c::crc32c(numbers) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (numbers, _) = numbers.as_chunks::<8>();
        let number = |n: usize| usize::try_from(u64::from_le_bytes(*numbers.get(n)?)).ok();
        Some(Head { from: number(0)?, to: number(1)?, len: number(2)? })
    }
}

/// Which ranks are on which node. Ranks of a node are mostly neighbours, so that ranges of them are few.
#[derive(Debug, PartialEq, Eq)]
struct Nodes {
    /// Where each range of neighbours begins, and their node.
    begins: Vec<(usize, usize)>,
    /// Of each node, its ranks.
    ranks: Vec<Vec<Range<usize>>>,
}

impl Nodes {
    /// From the first rank of each rank's node. Nodes are numbered in the order of their first ranks.
    fn new(first_of: &[u64]) -> Nodes {
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        let mut nodes = Nodes { begins: Vec::new(), ranks: Vec::new() };
        for (rank, first) in first_of.iter().enumerate() {
            let next = numbers.len();
            let node = *numbers.entry(*first).or_insert(next);
            if node == next {
                nodes.ranks.push(Vec::new());
            }
            match nodes.begins.last() {
                Some((_, last)) if *last == node => {}
                _ => {
                    nodes.begins.push((rank, node));
                    nodes.ranks[node].push(rank..rank);
                }
            }
            if let Some(range) = nodes.ranks[node].last_mut() {
                range.end = rank + 1;
            }
        }
        nodes
    }

    /// The node of a rank.
    fn of(&self, rank: usize) -> usize {
        let behind = self.begins.partition_point(|(begin, _)| *begin <= rank);
        self.begins.get(behind.wrapping_sub(1)).map_or(0, |(_, node)| *node)
    }

    /// The number of a rank among those of its node.
    fn place(&self, rank: usize) -> usize {
        let ranges = self.ranks[self.of(rank)].iter().take_while(|range| range.start <= rank);
        ranges.map(|range| rank.min(range.end) - range.start).sum()
    }

    /// The rank of a node that takes what comes from another: they take turns.
    fn courier(&self, node: usize, from: usize) -> usize {
        let ranges = &self.ranks[node];
        let mut number = from % ranges.iter().map(Range::len).sum::<usize>();
        for range in ranges {
            if number < range.len() {
                return range.start + number;
            }
            number -= range.len();
        }
        // Not reached: the number is below their sum.
        0
    }
}

impl Communicator for ByNode {
    fn sparse_exchange(&self, messages: Vec<(usize, Message)>) -> Result<Vec<(usize, Message)>> {
        for (to, _) in &messages {
            check_rank("sparse_exchange", *to, self.size())?;
        }
        let from = self.rank();
        let (mut here, mut away) = (Vec::new(), Vec::new());
        for (to, message) in messages {
            let (node, letter) = (self.nodes.of(to), Letter { from, to, message });
            match node == self.here {
                true => here.push((self.nodes.place(to), letter)),
                false => away.push((node % self.node.size(), letter)),
            }
        }
        // To the couriers of this node, to those of the other nodes, to the ranks there.
        let (mut gathered, damaged) = self.pass(&*self.node, away)?;
        for place in damaged {
            // They may have been for anybody.
            let from = self.of_this_node(place);
            gathered.extend((0..self.size()).map(|to| Letter::lost(from, to)));
        }
        let there = |letter: Letter| {
            let node = self.nodes.of(letter.to);
            (self.nodes.courier(node, self.here), letter)
        };
        let (mut came, damaged) =
            self.pass(&*self.inner, gathered.into_iter().map(there).collect())?;
        for from in damaged {
            let here = (0..self.node.size()).map(|place| self.of_this_node(place));
            came.extend(here.map(|to| Letter::lost(from, to)));
        }
        here.extend(came.into_iter().map(|letter| (self.nodes.place(letter.to), letter)));
        let (mut letters, damaged) = self.pass(&*self.node, here)?;
        letters.extend(
            damaged.into_iter().map(|place| Letter::lost(self.of_this_node(place), self.rank())),
        );
        // Those of one rank have gone the same way, in their order.
        letters.sort_by_key(|letter| letter.from);
        Ok(letters.into_iter().map(|letter| (letter.from, letter.message)).collect())
    }

    fn gathers_by_node(&self) -> bool {
        true
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn may_use_threads(&self) -> bool {
        self.inner.may_use_threads()
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
        self.inner.all_gather(message)
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
        self.inner.isend(to, tag, message)
    }

    fn irecv(&self, from: Source, tag: Tag) -> Result<Receiving> {
        self.inner.irecv(from, tag)
    }

    fn irecv_sized(&self, from: usize, tag: Tag, length: usize) -> Result<Receiving> {
        self.inner.irecv_sized(from, tag, length)
    }

    fn split(&self, colour: Option<u32>, key: i32) -> Result<Option<Arc<dyn Communicator>>> {
        self.inner.split(colour, key)
    }

    fn split_by_node(&self) -> Result<Arc<dyn Communicator>> {
        self.inner.split_by_node()
    }

    fn node_memory(
        &self,
        stages: &Stages,
    ) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
        self.inner.node_memory(stages)
    }

    fn may_duplicate(&self) -> bool {
        self.inner.may_duplicate()
    }

    fn share(&self) -> Result<Arc<dyn Communicator>> {
        self.inner.share()
    }

    fn duplicate(&self) -> Result<Arc<dyn Communicator>> {
        self.inner.duplicate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_found_on_their_nodes_however_they_are_dealt() {
        // In blocks, of which the last is shorter; dealt in turn; mixed.
        let deals: [&[u64]; 4] =
            [&[0, 0, 0, 3, 3, 3, 6], &[0, 1, 2, 0, 1, 2, 0], &[0, 1, 1, 0, 0, 1, 6], &[0]];
        for first_of in deals {
            let nodes = Nodes::new(first_of);
            let mut firsts: Vec<u64> = first_of.to_vec();
            firsts.sort_unstable();
            firsts.dedup();
            for (node, first) in firsts.iter().enumerate() {
                let ranks: Vec<usize> =
                    (0..first_of.len()).filter(|rank| first_of[*rank] == *first).collect();
                for (place, rank) in ranks.iter().enumerate() {
                    assert_eq!((nodes.of(*rank), nodes.place(*rank)), (node, place));
                }
                for from in 0..20 {
                    assert_eq!(nodes.courier(node, from), ranks[from % ranks.len()]);
                }
            }
        }
    }

    #[test]
    fn between_nodes_there_is_one_message_for_each_pair_of_them() {
        for (ranks, ranks_per_node) in [(12usize, 4), (7, 3), (5, 1), (4, 4)] {
            let nodes = ranks.div_ceil(ranks_per_node) as u64;
            let world = crate::ThreadWorld::new(ranks).ranks_per_node(ranks_per_node);
            let sent = world.launch(|comm| {
                let ByNode { inner, node, nodes, here } = ByNode::new(comm).unwrap();
                let counted = crate::Counted::new(inner);
                let between = counted.traffic();
                let comm = ByNode { inner: Arc::new(counted), node, nodes, here };
                // Everyone to everyone, two letters each.
                let letters = (0..2 * ranks).map(|n| {
                    let to = n % ranks;
                    (to, Message::from(vec![comm.rank() as u8, to as u8, (n / ranks) as u8]))
                });
                let came = comm.sparse_exchange(letters.collect()).unwrap();
                let me = comm.rank() as u8;
                let expected = (0..ranks).flat_map(|from| [0, 1].map(|n| (from, n)));
                assert!(
                    came.iter()
                        .map(|(from, m)| (*from, m.to_vec()))
                        .eq(expected.map(|(from, n)| (from, vec![from as u8, me, n])))
                );
                between.messages()
            });
            assert_eq!(sent.unwrap().iter().sum::<u64>(), nodes * (nodes - 1));
        }
    }

    #[test]
    fn what_is_broken_off_or_damaged_is_told_and_nobody_else_gets_it() {
        let letter = Letter { from: 1, to: 2, message: Message::from(vec![7; 5]) };
        let mut package = Vec::new();
        letter.pack(&mut package);
        let one = package.len();
        letter.pack(&mut package);
        let read = |bytes: &[u8]| {
            let mut letters = Vec::new();
            let whole =
                Letter::unpack(Message::from(bytes.to_vec()).into_shared(), 3, &mut letters);
            (whole, letters)
        };
        assert_eq!((read(&package).0, read(&package).1.len()), (true, 2));
        for len in (1..package.len()).filter(|len| *len != one) {
            assert!(!read(&package[..len]).0, "{len}");
        }
        for bit in 0..8 * HEAD {
            let mut flipped = package.clone();
            flipped[one + bit / 8] ^= 1 << (bit % 8);
            let (whole, letters) = read(&flipped);
            assert_eq!((whole, letters.len()), (false, 1), "bit {bit}");
        }
        // A rank that is not there.
        assert!(!Letter::unpack(Message::from(package).into_shared(), 2, &mut Vec::new()));
    }
}
