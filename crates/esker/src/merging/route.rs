//! How objects of one name meet: by halving.
//!
//! An object's owner is computed from its name. In each step a rank and its partner exchange what belongs to the other's half of the
//! owners that remain, and objects of one name become one at once: nobody holds more than a few times its own and its share,
//! and nobody gets a message from everyone. Ranks beyond the last power of two give theirs to a partner first. What came to
//! the owners goes back the same way; a rank remembers of each step which objects were whose, and no names.

use std::cmp::Ordering;

use esker_comm::{Communicator, Message, Sending, Source, Tag};

use crate::error::{Error, Result};

/// The tag of these messages: every one is received before the next step.
const HALVING: Tag = Tag::MAX - 1;

/// What goes from rank to rank.
pub(super) trait Wire: Sized {
    fn write(&self, to: &mut Vec<u8>);
    fn read(from: &mut &[u8]) -> Option<Self>;
}

/// What is known by a key and merged.
pub(super) trait Keyed: Wire {
    /// Which owner has it, of all numbers of 64 bits.
    fn hash(&self) -> u64;
    /// By hash first.
    fn order(&self, other: &Self) -> Ordering;
    /// One of two that have the same key.
    fn joined(self, other: Self) -> Self;
}

/// Whose an object was before a step: this rank's, its partner's, or both.
const MINE: u8 = 1;
const THEIRS: u8 = 2;

#[derive(Debug)]
struct Step {
    partner: usize,
    /// Whether this rank kept the lower half.
    keeps_low: bool,
    /// How many objects were in the lower half.
    cut: usize,
    /// Whose the objects after the step were.
    whose: Vec<u8>,
}

/// The way that objects have gone.
#[derive(Debug)]
pub(super) struct Route {
    /// For a rank beyond the last power of two, who has its objects.
    gave_to: Option<usize>,
    /// For the one that has them.
    took_from: Option<(usize, Vec<u8>)>,
    steps: Vec<Step>,
}

impl Route {
    /// Brings objects, in order, to their owners. Gives the way, and what this rank owns. Collective.
    pub(super) fn go<K: Keyed>(comm: &dyn Communicator, mine: Vec<K>) -> Result<(Route, Vec<K>)> {
        let (rank, size) = (comm.rank(), comm.size());
        // The last power of two.
        let owners = 1usize << size.max(1).ilog2();
        let mut route = Route { gave_to: None, took_from: None, steps: Vec::new() };
        if rank >= owners {
            route.gave_to = Some(rank - owners);
            send(comm, rank - owners, mine.iter())?;
            return Ok((route, Vec::new()));
        }
        let mut held = mine;
        if rank + owners < size {
            let (all, whose) = joined(held, receive(comm, rank + owners)?);
            route.took_from = Some((rank + owners, whose));
            held = all;
        }
        let (mut first, mut count) = (0, owners);
        while count > 1 {
            count /= 2;
            let keeps_low = rank < first + count;
            let partner = rank ^ count;
            let cut = held.partition_point(|object| owner(object.hash(), owners) < first + count);
            let high = held.split_off(cut);
            let (kept, given) = if keeps_low { (held, high) } else { (high, held) };
            let sending = begin_send(comm, partner, given.iter())?;
            drop(given);
            let theirs = receive(comm, partner)?;
            sending.wait()?;
            let (all, whose) = joined(kept, theirs);
            route.steps.push(Step { partner, keeps_low, cut, whose });
            held = all;
            if !keeps_low {
                first += count;
            }
        }
        Ok((route, held))
    }

    /// Brings one answer for each object that a rank owns to everyone who had the object, in the order in which they gave
    /// theirs. Collective.
    pub(super) fn back<A: Wire>(
        &self,
        comm: &dyn Communicator,
        mut answers: Vec<A>,
    ) -> Result<Vec<A>> {
        if let Some(partner) = self.gave_to {
            return receive(comm, partner);
        }
        for step in self.steps.iter().rev() {
            require(answers.len() == step.whose.len())?;
            let sending = begin_send(comm, step.partner, of(&answers, &step.whose, THEIRS))?;
            let mut theirs = receive(comm, step.partner)?;
            sending.wait()?;
            let mut mine = only(answers, &step.whose, MINE);
            answers = match step.keeps_low {
                true => {
                    mine.append(&mut theirs);
                    mine
                }
                false => {
                    theirs.append(&mut mine);
                    theirs
                }
            };
        }
        if let Some((partner, whose)) = &self.took_from {
            require(answers.len() == whose.len())?;
            send(comm, *partner, of(&answers, whose, THEIRS))?;
            answers = only(answers, whose, MINE);
        }
        Ok(answers)
    }

    /// Goes the way again with something else of each object, in the order in which a rank gave its objects, and gives everyone
    /// what `join` makes of it. Collective.
    pub(super) fn again<A: Wire>(
        &self,
        comm: &dyn Communicator,
        mine: Vec<A>,
        join: impl Fn(A, A) -> A,
    ) -> Result<Vec<A>> {
        if let Some(partner) = self.gave_to {
            send(comm, partner, mine.iter())?;
            return receive(comm, partner);
        }
        let mut held = mine;
        if let Some((partner, whose)) = &self.took_from {
            held = rejoined(held, receive(comm, *partner)?, whose, &join)?;
        }
        for step in &self.steps {
            require(step.cut <= held.len())?;
            let high = held.split_off(step.cut);
            let (kept, given) = if step.keeps_low { (held, high) } else { (high, held) };
            let sending = begin_send(comm, step.partner, given.iter())?;
            let theirs = receive(comm, step.partner)?;
            sending.wait()?;
            held = rejoined(kept, theirs, &step.whose, &join)?;
        }
        self.back(comm, held)
    }
}

/// Which of so many owners has what hashes to this.
fn owner(hash: u64, owners: usize) -> usize {
    ((u128::from(hash) * owners as u128) >> 64) as usize
}

/// Two lists in order as one, and whose each object was.
fn joined<K: Keyed>(mine: Vec<K>, theirs: Vec<K>) -> (Vec<K>, Vec<u8>) {
    let most = mine.len() + theirs.len();
    let (mut all, mut whose) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let (mut mine, mut theirs) = (mine.into_iter().peekable(), theirs.into_iter().peekable());
    loop {
        let order = match (mine.peek(), theirs.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(mine), Some(theirs)) => mine.order(theirs),
        };
        let (of_mine, of_theirs) = match order {
            Ordering::Less => (mine.next(), None),
            Ordering::Greater => (None, theirs.next()),
            Ordering::Equal => (mine.next(), theirs.next()),
        };
        let (object, of) = match (of_mine, of_theirs) {
            (Some(mine), Some(theirs)) => (mine.joined(theirs), MINE | THEIRS),
            (Some(mine), None) => (mine, MINE),
            (None, Some(theirs)) => (theirs, THEIRS),
            (None, None) => break,
        };
        all.push(object);
        whose.push(of);
    }
    (all, whose)
}

/// The same of things without keys that are in the same places.
fn rejoined<A>(
    mine: Vec<A>,
    theirs: Vec<A>,
    whose: &[u8],
    join: &impl Fn(A, A) -> A,
) -> Result<Vec<A>> {
    let (mut mine, mut theirs) = (mine.into_iter(), theirs.into_iter());
    let mut all = Vec::with_capacity(whose.len());
    for of in whose {
        let of_mine = if of & MINE != 0 { Some(mine.next().ok_or(Error::Garbled)?) } else { None };
        let of_theirs =
            if of & THEIRS != 0 { Some(theirs.next().ok_or(Error::Garbled)?) } else { None };
        all.push(match (of_mine, of_theirs) {
            (Some(mine), Some(theirs)) => join(mine, theirs),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(Error::Garbled),
        });
    }
    require(mine.next().is_none() && theirs.next().is_none())?;
    Ok(all)
}

/// Those that were of `one`.
fn of<'a, A>(all: &'a [A], whose: &'a [u8], one: u8) -> impl Iterator<Item = &'a A> + Clone {
    all.iter().zip(whose).filter(move |(_, of)| *of & one != 0).map(|(answer, _)| answer)
}

fn only<A>(all: Vec<A>, whose: &[u8], one: u8) -> Vec<A> {
    let pairs = all.into_iter().zip(whose);
    pairs.filter(|(_, of)| *of & one != 0).map(|(answer, _)| answer).collect()
}

fn require(is_so: bool) -> Result<()> {
    if is_so { Ok(()) } else { Err(Error::Garbled) }
}

fn begin_send<'a, A: Wire + 'a>(
    comm: &dyn Communicator,
    to: usize,
    what: impl Iterator<Item = &'a A>,
) -> Result<Sending> {
    let mut bytes = Vec::new();
    what.for_each(|one| one.write(&mut bytes));
    Ok(comm.isend(to, HALVING, Message::from(bytes))?)
}

fn send<'a, A: Wire + 'a>(
    comm: &dyn Communicator,
    to: usize,
    what: impl Iterator<Item = &'a A>,
) -> Result<()> {
    Ok(begin_send(comm, to, what)?.wait()?)
}

fn receive<A: Wire>(comm: &dyn Communicator, from: usize) -> Result<Vec<A>> {
    let received = comm.irecv(Source::Rank(from), HALVING)?.wait()?;
    let mut rest = &received.message[..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(A::read(&mut rest).ok_or(Error::Garbled)?);
    }
    Ok(all)
}
