//! Who has which chunk in a wait, agreed without anyone seeing all of it.
//!
//! Ranks tell the *home* of each chunk how much they have of it; homes run the policy; owners
//! learn what they own and from whom, cut it into rounds that their memory holds, and tell those
//! who have something for them.

use std::collections::BTreeMap;

use esker_comm::{Communicator, CommunicatorExt, Message};

use super::policy::{Assigner, first_of_home};
use super::space::Space;
use crate::error::{Error, Result};
use crate::exchange::Unit;

/// Accesses that one home takes.
const AT_HOME: u64 = 4 << 20;

/// So few accesses are told to every rank, and each runs the policy: one message instead of three in
/// turn, and as many reductions.
const TOLD_TO_ALL: u64 = 16 << 10;

/// A chunk that this rank has something of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Access {
    pub(crate) address: u64,
    pub(crate) owner: usize,
    pub(crate) round: u64,
}

/// Who has what.
#[derive(Debug, Default)]
pub(crate) struct Assigned {
    /// The chunks that this rank has something of, by address.
    pub(crate) mine: Vec<Access>,
    /// The chunks that it owns, by round and address.
    pub(crate) owned: Vec<Vec<u64>>,
    /// Rounds that any rank needs.
    pub(crate) rounds: u64,
    /// Ranks that own something.
    pub(crate) owners: u64,
    /// Whether ranks are known to have all bytes of the chunks together.
    pub(crate) whole: bool,
}

/// The assigned chunks as units of an exchange.
pub(crate) struct Chunks<'a> {
    space: &'a Space,
    assigned: &'a Assigned,
    /// Those that this rank has something of, by address, with its bytes.
    touched: &'a [(u64, u64)],
    next: u64,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(space: &'a Space, assigned: &'a Assigned, touched: &'a [(u64, u64)]) -> Self {
        Chunks { space, assigned, touched, next: 0 }
    }

    pub(crate) fn next_round(&mut self) -> Option<u64> {
        let round = self.next;
        self.next += 1;
        (round < self.assigned.rounds).then_some(round)
    }

    /// Those of a round that this rank has something of.
    pub(crate) fn of_round(&self, round: u64) -> Vec<Unit> {
        let all = self.assigned.mine.iter().zip(self.touched);
        let here = all.filter(|(mine, _)| mine.round == round);
        let unit = |(mine, (_, bytes)): (&Access, &(u64, u64))| {
            let Access { address: start, owner, .. } = *mine;
            Unit { owner, start, end: start + self.bytes_of(start), bytes: *bytes }
        };
        here.map(unit).collect()
    }

    /// Those of a round that this rank owns, by address.
    pub(crate) fn owned(&self, round: u64) -> &'a [u64] {
        self.assigned.owned.get(round as usize).map_or(&[], Vec::as_slice)
    }

    /// Bytes of the chunk at an address.
    pub(crate) fn bytes_of(&self, address: u64) -> u64 {
        self.space.chunk_at(address).map_or(0, |(_, _, bytes)| bytes)
    }
}

/// Assigns the chunks that ranks have something of, each given by its address and this rank's
/// bytes, in the order of addresses; all ranks together have `accesses` of them, at most, which all
/// of them know. Collective.
pub(crate) fn assign(
    comm: &dyn Communicator,
    space: &Space,
    mine: &[(u64, u64)],
    accesses: u64,
    (buffer, weight): (u64, f64),
) -> Result<Assigned> {
    let bytes_of = |address: u64| space.chunk_at(address).map_or(0, |(_, _, bytes)| bytes);
    let me = comm.rank();
    if comm.size() == 1 {
        let owned: Vec<u64> = mine.iter().map(|(address, _)| *address).collect();
        let owned = in_rounds(owned, buffer, bytes_of);
        let rounds = owned.len() as u64;
        let of_round = |(round, list): (usize, &Vec<u64>)| {
            let one = move |a: &u64| Access { address: *a, owner: 0, round: round as u64 };
            list.iter().map(one).collect::<Vec<_>>()
        };
        let mine = owned.iter().enumerate().flat_map(of_round).collect();
        return Ok(Assigned { mine, owned, rounds, owners: 1, whole: false });
    }
    if accesses <= TOLD_TO_ALL {
        return assign_few(comm, mine, bytes_of, (buffer, weight));
    }
    let accesses = comm.sum_u64(mine.len() as u64)?;
    let homes = accesses.div_ceil(AT_HOME).clamp(1, comm.size() as u64);
    let mut letters = Letters::default();
    for (address, bytes) in mine {
        letters.to(home(*address, homes, comm.size()), &[*address, *bytes]);
    }
    let mut seen: Vec<(u64, u32, u64)> = Vec::new();
    for (rank, list) in letters.deliver(comm)? {
        let (pairs, rest) = list.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::Garbled);
        }
        seen.extend(pairs.iter().map(|[address, bytes]| (*address, rank as u32, *bytes)));
    }
    seen.sort_unstable();
    let units = || seen.chunk_by(|a, b| a.0 == b.0);
    let own_total: u64 = units().map(|unit| bytes_of(unit[0].0)).sum();
    let total = comm.sum_u64(own_total)?;
    let own_home = (0..homes).find(|h| rank_of_home(*h, homes, comm.size()) == me).unwrap_or(0);
    let first = first_of_home(own_home, homes, comm.size());
    let mut assigner = Assigner::new(comm.size(), total, weight).scaled(homes).starting_at(first);
    let mut letters = Letters::default();
    let mut accesses = Vec::new();
    for unit in units() {
        let address = unit[0].0;
        accesses.clear();
        accesses.extend(unit.iter().map(|(_, rank, bytes)| (*rank, *bytes)));
        let owner = assigner.owner(bytes_of(address), &accesses);
        let list = letters.list(owner as usize);
        list.extend([address, accesses.len() as u64]);
        list.extend(accesses.iter().map(|(rank, _)| u64::from(*rank)));
    }
    drop(seen);
    // What this rank owns, and who has something of it.
    let mut owned: Vec<u64> = Vec::new();
    let mut askers: Vec<(u64, u64)> = Vec::new();
    for (_, list) in letters.deliver(comm)? {
        let mut rest = &list[..];
        while let [address, count, after @ ..] = rest {
            let ranks = after.get(..*count as usize).ok_or(Error::Garbled)?;
            owned.push(*address);
            askers.extend(ranks.iter().map(|rank| (*address, *rank)));
            rest = &after[ranks.len()..];
        }
    }
    owned.sort_unstable();
    askers.sort_unstable();
    let owned = in_rounds(owned, buffer, bytes_of);
    let found = tell(comm, &owned, &askers)?;
    let same = found.iter().map(|m| m.address).eq(mine.iter().map(|(address, _)| *address));
    if !same {
        return Err(Error::Garbled);
    }
    let rounds = comm.max_u64(owned.len() as u64)?;
    let owners = comm.sum_u64(u64::from(!owned.is_empty()))?;
    Ok(Assigned { mine: found, owned, rounds, owners, whole: false })
}

/// Owners tell those who ask for their chunks in which round each is; gives what this rank is told. Collective.
fn tell(comm: &dyn Communicator, owned: &[Vec<u64>], askers: &[(u64, u64)]) -> Result<Vec<Access>> {
    let mut letters = Letters::default();
    let mut next = askers.iter().peekable();
    for (round, list) in owned.iter().enumerate() {
        for address in list {
            while let Some((_, rank)) = next.next_if(|(a, _)| a == address) {
                letters.to(*rank as usize, &[*address, round as u64]);
            }
        }
    }
    let mut found: Vec<Access> = Vec::new();
    for (owner, list) in letters.deliver(comm)? {
        let (pairs, rest) = list.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::Garbled);
        }
        let access =
            |[address, round]: &[u64; 2]| Access { address: *address, owner, round: *round };
        found.extend(pairs.iter().map(access));
    }
    found.sort_unstable();
    Ok(found)
}

/// Every rank hears of all accesses and decides as one home would. Collective.
fn assign_few(
    comm: &dyn Communicator,
    mine: &[(u64, u64)],
    bytes_of: impl Fn(u64) -> u64,
    (buffer, weight): (u64, f64),
) -> Result<Assigned> {
    let numbers: Vec<u64> = mine.iter().flat_map(|(address, bytes)| [*address, *bytes]).collect();
    let mut seen: Vec<(u64, u32, u64)> = Vec::new();
    for (rank, list) in comm.all_gather(Message::from_u64s(&numbers))?.iter().enumerate() {
        let list = list.to_u64s();
        let pairs = list.as_chunks::<2>().0.iter();
        seen.extend(pairs.map(|[address, bytes]| (*address, rank as u32, *bytes)));
    }
    seen.sort_unstable();
    let units = || seen.chunk_by(|a, b| a.0 == b.0);
    let total = units().map(|unit| bytes_of(unit[0].0)).sum();
    let mut assigner = Assigner::new(comm.size(), total, weight);
    // What each owner has so far: rounds, and bytes in the last of them.
    let mut filled: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    let mut assigned = Assigned::default();
    let mut accesses = Vec::new();
    for unit in units() {
        let address = unit[0].0;
        let bytes = bytes_of(address);
        accesses.clear();
        accesses.extend(unit.iter().map(|(_, rank, bytes)| (*rank, *bytes)));
        let owner = assigner.owner(bytes, &accesses) as usize;
        // As `in_rounds` does.
        let (rounds, held) = filled.entry(owner).or_default();
        if *rounds == 0 || held.saturating_add(bytes) > buffer {
            (*rounds, *held) = (*rounds + 1, 0);
        }
        *held += bytes;
        let round = *rounds - 1;
        assigned.rounds = assigned.rounds.max(*rounds);
        if owner == comm.rank() {
            assigned.owned.resize_with(*rounds as usize, Vec::new);
            if let Some(list) = assigned.owned.last_mut() {
                list.push(address);
            }
        }
        if accesses.iter().any(|(rank, _)| *rank as usize == comm.rank()) {
            assigned.mine.push(Access { address, owner, round });
        }
    }
    assigned.owners = filled.len() as u64;
    assigned.whole = seen.iter().map(|(_, _, bytes)| bytes).sum::<u64>() >= total;
    Ok(assigned)
}

/// The rank that decides about a chunk.
fn home(address: u64, homes: u64, ranks: usize) -> usize {
    let mixed = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    rank_of_home(mixed % homes, homes, ranks)
}

fn rank_of_home(home: u64, homes: u64, ranks: usize) -> usize {
    (home * ranks as u64 / homes) as usize
}

/// Chunks in rounds of at most `buffer` bytes, or of one chunk.
fn in_rounds(chunks: Vec<u64>, buffer: u64, bytes_of: impl Fn(u64) -> u64) -> Vec<Vec<u64>> {
    let mut rounds: Vec<Vec<u64>> = Vec::new();
    let mut held = u64::MAX;
    for address in chunks {
        let bytes = bytes_of(address);
        if held.saturating_add(bytes) > buffer {
            rounds.push(Vec::new());
            held = 0;
        }
        held += bytes;
        if let Some(round) = rounds.last_mut() {
            round.push(address);
        }
    }
    rounds
}

/// Numbers for other ranks, and for oneself.
#[derive(Default)]
struct Letters(BTreeMap<usize, Vec<u64>>);

impl Letters {
    fn list(&mut self, rank: usize) -> &mut Vec<u64> {
        self.0.entry(rank).or_default()
    }

    fn to(&mut self, rank: usize, numbers: &[u64]) {
        self.list(rank).extend_from_slice(numbers);
    }

    /// Sends them; gives what came for this rank, and from whom. Collective.
    fn deliver(mut self, comm: &dyn Communicator) -> Result<Vec<(usize, Vec<u64>)>> {
        let own = self.0.remove(&comm.rank());
        let messages = self.0.into_iter().map(|(rank, list)| (rank, Message::from_u64s(&list)));
        let received = comm.sparse_exchange(messages.collect())?;
        let came = received.into_iter().map(|(rank, message)| (rank, message.to_u64s()));
        Ok(own.map(|list| (comm.rank(), list)).into_iter().chain(came).collect())
    }
}
