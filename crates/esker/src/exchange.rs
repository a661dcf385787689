//! Pieces to the owners of units and back: rounds of messages, one for each pair of ranks.
//!
//! A *unit* is a stretch of a space (a window of the file, a chunk) that one rank owns for as long as a call takes: it
//! gets the pieces of all ranks and does something with the whole. What units there are, who owns them, and what owners
//! do is what [`Units`] says; everything that ranks send to each other is written here, once.
//!
//! Every function here is collective. A failure of the store does not stop a rank from taking part in the rounds that
//! are left (the others would wait for it for ever); the units remember it, and it becomes everyone's at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use esker_comm::{Communicator, Message, Sending, Tag};

use crate::comb::Comb;
use crate::error::{Error, Result};
use crate::notes::Notes;
use crate::plan::{Overlap, Plan, Sweep};
use crate::report::Report;
use crate::request::Request;
use crate::taken::Taken;
use crate::wire::{self, Packet, RunList};

/// The tag of the values that owners send back to readers.
const REPLY: Tag = 1;

/// A stretch of a space in the hands of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) owner: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Bytes that this rank has of it, as far as that is known.
    pub(crate) bytes: u64,
}

/// Messages of other ranks, in the order of ranks.
pub(crate) type Came = Vec<(usize, Message)>;

/// What an exchange must know of units.
pub(crate) trait Units {
    /// Whether units of later rounds lie behind those of earlier ones, so that one sweep serves all rounds.
    const ASCEND: bool;

    /// Whether this rank, which is `me`, reaches a unit itself, as its owner does, so that nothing of it has to be sent.
    fn reaches(&self, unit: &Unit, me: usize) -> bool {
        unit.owner == me
    }

    /// Whether every rank reaches all units; the same on all of them.
    fn all_reached(&self) -> bool {
        false
    }

    /// The next round, if there is one. Collective.
    fn next_round(&mut self, comm: &dyn Communicator, sweep: &Sweep<'_, '_>)
    -> Result<Option<u64>>;

    /// The units of a round that this rank may have something of, by address. Begins the round.
    fn of_round(&mut self, round: u64) -> Vec<Unit>;

    /// Bytes that it holds.
    fn memory(&self) -> u64 {
        0
    }
}

/// Units that are written.
pub(crate) trait Sink: Units {
    /// This rank's own pieces of a unit that it owns, or reaches, which begins the sweep's next stretch: laid into it now, or
    /// left to be taken when the unit has its turn.
    fn own(
        &mut self,
        unit: &Unit,
        sweep: &mut Sweep<'_, '_>,
        with: &mut With<'_, '_>,
    ) -> Result<()>;

    /// What other ranks have of this rank's units of a round, in the order of ranks, and whose it is. Gives back the
    /// messages that nobody needs any more. Collective.
    fn put(&mut self, round: u64, came: Came, report: &mut Report) -> Result<Vec<Message>>;
}

/// What the values of a write come from, and what is said of them.
pub(crate) struct With<'w, 'b> {
    pub(crate) puts: &'w [Request<'b>],
    pub(crate) notes: &'w mut Notes,
    pub(crate) report: &'w mut Report,
}

/// Units that are read.
pub(crate) trait Source: Units {
    /// Whether owners get no more of a unit than the runs that somebody wants. Then ranks keep their lists of these until
    /// the values come; otherwise they sweep a round's units again, which costs less than lists of all of them.
    const BY_RUNS: bool;

    /// From so many bytes on, a unit of which most is wanted is sent whole.
    const WHOLE: u64;

    /// Somebody wants these runs of a unit of this rank. Not told where units are got whole.
    fn want(&mut self, comb: &Comb);

    /// Gets this rank's units of a round, a few at a time and by address, and gives them to `give`.
    fn get(
        &mut self,
        round: u64,
        report: &mut Report,
        give: &mut dyn FnMut(&[Got<'_>], &mut Report) -> Result<()>,
    ) -> Result<()>;
}

/// A unit that was got: its bytes, fewer of them where that failed; and the same to be sent as they are, if
/// they can be.
#[derive(Debug)]
pub(crate) struct Got<'g> {
    pub(crate) start: u64,
    /// Where the next one may begin at the earliest.
    pub(crate) end: u64,
    pub(crate) bytes: &'g [u8],
    pub(crate) shared: Option<&'g Arc<Vec<u8>>>,
}

/// Sends every rank's pieces to the owners of their units. `pool` has memory for messages, from call to call.
pub(crate) fn write<S: Sink>(
    comm: &dyn Communicator,
    plan: &Plan<'_>,
    units: &mut S,
    pool: &mut Vec<Vec<u8>>,
    with: &mut With<'_, '_>,
) -> Result<()> {
    let me = comm.rank();
    let mut sweep = plan.sweep();
    while let Some(round) = units.next_round(comm, &sweep)? {
        if !S::ASCEND {
            sweep = plan.sweep();
        }
        let (clock, waited) = (Instant::now(), with.report.phases.exchange);
        let list = units.of_round(round);
        let mut room: BTreeMap<usize, usize> = BTreeMap::new();
        for unit in list.iter().filter(|unit| unit.bytes > 0 && !units.reaches(unit, me)) {
            // Lists of runs are seldom more than an eighth of the values.
            *room.entry(unit.owner).or_default() += (unit.bytes + unit.bytes / 8 + 64) as usize;
        }
        let mut packets: BTreeMap<usize, Packet> = BTreeMap::new();
        for unit in &list {
            if units.reaches(unit, me) {
                units.own(unit, &mut sweep, with)?;
                continue;
            }
            let taken = sweep.take_together(unit.start, unit.end, Overlap::LaterWins);
            if taken.is_empty() {
                continue;
            }
            with.report.copied += taken.bytes();
            let packet = packets.entry(unit.owner).or_insert_with(|| {
                let room = room.get(&unit.owner).copied().unwrap_or(0);
                Packet::new(pool.pop().unwrap_or_default(), room)
            });
            let values = packet.add_runs(unit.start, listed(unit.start, &taken));
            taken.pack(values, with.puts, with.notes)?;
        }
        let held: u64 = packets.values().map(|packet| packet.len() as u64).sum();
        let waited = with.report.phases.exchange - waited;
        with.report.phases.convert += clock.elapsed().saturating_sub(waited);
        let came = deliver(comm, &*units, packets, with.report)?;
        let arrived: u64 = came.iter().map(|(_, message)| message.len() as u64).sum();
        let memory = held + arrived + units.memory() + sweep.memory();
        with.report.peak_memory = with.report.peak_memory.max(memory);
        let others = list.iter().filter(|unit| !units.reaches(unit, me)).count();
        for message in units.put(round, came, with.report)? {
            if pool.len() < others {
                pool.push(message.into_vec());
            }
        }
    }
    Ok(())
}

/// Gets every rank's pieces from the owners of their units.
pub(crate) fn read<S: Source>(
    comm: &dyn Communicator,
    plan: &Plan<'_>,
    units: &mut S,
    requests: &mut [Request<'_>],
    report: &mut Report,
) -> Result<()> {
    let me = comm.rank();
    let mut sweep = plan.sweep();
    while let Some(round) = units.next_round(comm, &sweep)? {
        if !S::ASCEND {
            sweep = plan.sweep();
        }
        let clock = Instant::now();
        let (mut own, mut away) = (Vec::new(), Vec::new());
        let mut packets: BTreeMap<usize, Packet> = BTreeMap::new();
        for unit in units.of_round(round) {
            let reached = units.reaches(&unit, me);
            if reached && !S::BY_RUNS {
                own.push(Wanted { unit, list: None, whole: true });
                continue;
            }
            let taken = sweep.take_together(unit.start, unit.end, Overlap::Shared);
            if taken.is_empty() {
                continue;
            }
            if reached {
                taken.each_comb(|comb| units.want(&comb));
                own.push(Wanted { unit, list: Some(taken.into_owned()), whole: true });
                continue;
            }
            let whole = is_wanted_whole(&taken, unit.end - unit.start, S::WHOLE);
            let runs = if whole { RunList::new(unit.start) } else { listed(unit.start, &taken) };
            packets.entry(unit.owner).or_default().ask(unit.start, runs);
            let kept = S::BY_RUNS || !whole;
            away.push(Wanted { unit, list: kept.then(|| taken.into_owned()), whole });
        }
        report.phases.convert += clock.elapsed();
        let asked = deliver(comm, &*units, packets, report)?;
        let mut answers = Vec::with_capacity(asked.len());
        for (rank, message) in &asked {
            answers.push(Answer::to(*rank, message).ok_or(Error::Garbled)?);
        }
        for answer in answers.iter().filter(|_| S::BY_RUNS) {
            answer.combs().for_each(|comb| units.want(&comb));
        }
        let lists = own.iter().chain(&away).map(Wanted::memory).sum::<u64>()
            + asked.iter().map(|(_, message)| message.len() as u64).sum::<u64>();
        let mut sends = Vec::new();
        let (mut next, mut again) = (own.iter().peekable(), plan.sweep());
        units.get(round, report, &mut |got, report| {
            for answer in &mut answers {
                answer.take_out(comm, got, &mut sends, report)?;
            }
            let (mut here, end) = (got.iter(), got.last().map_or(0, |unit| unit.end));
            while let Some(wanted) = next.next_if(|wanted| wanted.unit.start < end) {
                let start = wanted.unit.start;
                let found = here.find(|got| got.start == start).ok_or(Error::Garbled)?;
                if !found.bytes.is_empty() {
                    let taken = wanted.taken(&mut again);
                    taken.take_out(start, found.bytes, requests)?;
                    report.copied += taken.bytes();
                }
            }
            Ok(())
        })?;
        let memory = units.memory() + lists + sweep.memory() + again.memory();
        report.peak_memory = report.peak_memory.max(memory);
        let replies = answer_all(comm, answers, &mut sends, report)?;
        collect(comm, &away, replies, plan, requests, report)?;
        Sending::wait_all(sends)?;
    }
    Ok(())
}

/// Sends the pieces that others have asked for. Gives what this rank has asked for, by owner, where everyone's go together.
fn answer_all(
    comm: &dyn Communicator,
    answers: Vec<Answer<'_>>,
    sends: &mut Vec<Sending>,
    report: &mut Report,
) -> Result<Option<BTreeMap<usize, Message>>> {
    let mut replies = Vec::new();
    for answer in answers {
        replies.extend(answer.reply(report)?);
    }
    if comm.gathers_by_node() {
        return Ok(Some(swap(comm, replies, report)?.into_iter().collect()));
    }
    for (rank, reply) in replies {
        send(comm, rank, reply, sends, report)?;
    }
    Ok(None)
}

/// What this rank wants of a unit.
struct Wanted {
    unit: Unit,
    /// The list, where it is kept.
    list: Option<Taken<'static>>,
    whole: bool,
}

impl Wanted {
    /// The list as it was kept, or from a sweep that has not passed the unit.
    fn taken<'s>(&'s self, sweep: &'s mut Sweep<'_, '_>) -> Taken<'s> {
        match &self.list {
            Some(list) => list.borrow(),
            None => sweep.take_together(self.unit.start, self.unit.end, Overlap::Shared),
        }
    }

    fn memory(&self) -> u64 {
        size_of::<Wanted>() as u64 + self.list.as_ref().map_or(0, Taken::memory)
    }
}

/// Takes the wanted pieces out of what the owners send: of each the whole units in their order, then the pieces of
/// the others together.
fn collect(
    comm: &dyn Communicator,
    away: &[Wanted],
    mut replies: Option<BTreeMap<usize, Message>>,
    plan: &Plan<'_>,
    requests: &mut [Request<'_>],
    report: &mut Report,
) -> Result<()> {
    let mut sweep = plan.sweep();
    let mut pieces: BTreeMap<usize, Vec<&Taken<'_>>> = BTreeMap::new();
    for wanted in away {
        let Unit { owner, start, end, .. } = wanted.unit;
        if let (false, Some(list)) = (wanted.whole, &wanted.list) {
            pieces.entry(owner).or_default().push(list);
            continue;
        }
        let bytes = receive(comm, owner, end - start, report)?;
        let clock = Instant::now();
        let taken = wanted.taken(&mut sweep);
        taken.take_out(start, &bytes, requests)?;
        report.copied += taken.bytes();
        report.phases.convert += clock.elapsed();
    }
    for (owner, lists) in pieces {
        let total = lists.iter().map(|taken| taken.union_len()).sum();
        let reply = match &mut replies {
            Some(replies) => replies.remove(&owner).ok_or(Error::Garbled)?,
            None => receive(comm, owner, total, report)?,
        };
        let clock = Instant::now();
        let mut rest = &reply[..];
        for taken in lists {
            let len = taken.union_len() as usize;
            let (now, later) = rest.split_at_checked(len).ok_or(Error::Garbled)?;
            taken.unpack(now, requests)?;
            report.copied += taken.bytes();
            rest = later;
        }
        report.phases.convert += clock.elapsed();
    }
    Ok(())
}

fn receive(
    comm: &dyn Communicator,
    rank: usize,
    bytes: u64,
    report: &mut Report,
) -> Result<Message> {
    let clock = Instant::now();
    let message = comm.irecv_sized(rank, REPLY, bytes as usize)?.wait()?.message;
    report.phases.exchange += clock.elapsed();
    Ok(message)
}

/// What another rank has asked for.
struct Answer<'m> {
    rank: usize,
    /// Units by address, each with its runs; without any it is wanted whole.
    sections: Vec<(u64, &'m [u8])>,
    /// The first that was not found yet.
    next: usize,
    /// The values of the runs so far.
    pieces: Vec<u8>,
}

impl<'m> Answer<'m> {
    fn to(rank: usize, message: &'m [u8]) -> Option<Answer<'m>> {
        let mut sections = Vec::new();
        for section in wire::sections(message) {
            let (address, place) = section?;
            sections.push((address, message.get(place)?));
        }
        let answer = Answer { rank, sections, next: 0, pieces: Vec::new() };
        let bytes = answer.combs().map(|comb| comb.bytes() as usize).sum();
        Some(Answer { pieces: Vec::with_capacity(bytes), ..answer })
    }

    fn combs(&self) -> impl Iterator<Item = Comb> + use<'m, '_> {
        let open = |(start, section): &(u64, &'m [u8])| wire::open(section, *start);
        self.sections.iter().filter_map(open).flat_map(|(combs, _)| combs)
    }

    /// Takes what is wanted out of these units.
    fn take_out(
        &mut self,
        comm: &dyn Communicator,
        got: &[Got<'_>],
        sends: &mut Vec<Sending>,
        report: &mut Report,
    ) -> Result<()> {
        let end = got.last().map_or(0, |unit| unit.end);
        let rest = self.sections.get(self.next..).unwrap_or_default();
        let mut units = got.iter();
        for (start, section) in rest.iter().take_while(|(start, _)| *start < end) {
            self.next += 1;
            let unit = units.find(|unit| unit.start == *start).ok_or(Error::Garbled)?;
            let (combs, _) = wire::open(section, *start).ok_or(Error::Garbled)?;
            let mut any = false;
            for comb in combs {
                any = true;
                append(&mut self.pieces, &comb, unit);
            }
            if any {
                continue;
            }
            let whole = match unit.shared {
                Some(shared) => Message::from(shared.clone()),
                // The asker gets bytes all the same, and the error at the end.
                None => Message::from(vec![0; (unit.end - unit.start) as usize]),
            };
            send(comm, self.rank, whole, sends, report)?;
        }
        Ok(())
    }

    /// The pieces, if there are some, and who gets them.
    fn reply(self, report: &mut Report) -> Result<Option<(usize, Message)>> {
        if self.next < self.sections.len() {
            return Err(Error::Garbled);
        }
        report.copied += self.pieces.len() as u64;
        Ok((!self.pieces.is_empty()).then(|| (self.rank, Message::from(self.pieces))))
    }
}

/// Appends the runs of a comb; zeros where they are not known.
fn append(out: &mut Vec<u8>, comb: &Comb, unit: &Got<'_>) {
    let at = out.len();
    out.resize(at + comb.bytes() as usize, 0);
    let from = (comb.offset - unit.start) as usize;
    if let Some(source) = unit.bytes.get(from..from + comb.span() as usize) {
        comb.gather(source, &mut out[at..]);
    }
}

/// Sends without waiting.
fn send(
    comm: &dyn Communicator,
    rank: usize,
    message: Message,
    sends: &mut Vec<Sending>,
    report: &mut Report,
) -> Result<()> {
    report.messages += 1;
    report.message_bytes += message.len() as u64;
    let clock = Instant::now();
    sends.push(comm.isend(rank, REPLY, message)?);
    report.phases.exchange += clock.elapsed();
    Ok(())
}

/// Sends packets; gives what came. Collective.
fn deliver(
    comm: &dyn Communicator,
    units: &impl Units,
    packets: BTreeMap<usize, Packet>,
    report: &mut Report,
) -> Result<Vec<(usize, Message)>> {
    if comm.size() == 1 || units.all_reached() {
        return Ok(Vec::new());
    }
    let messages = packets.into_iter().map(|(rank, packet)| (rank, Message::from(packet.finish())));
    swap(comm, messages.collect(), report)
}

/// Sends messages to ranks that need not know of them; gives what came, in the order of ranks. Collective.
fn swap(
    comm: &dyn Communicator,
    messages: Vec<(usize, Message)>,
    report: &mut Report,
) -> Result<Vec<(usize, Message)>> {
    report.messages += messages.len() as u64;
    report.message_bytes += messages.iter().map(|(_, message)| message.len() as u64).sum::<u64>();
    let clock = Instant::now();
    let came = comm.sparse_exchange(messages)?;
    report.phases.exchange += clock.elapsed();
    Ok(came)
}

/// The runs of what was taken of the unit at `start`.
fn listed(start: u64, taken: &Taken<'_>) -> RunList {
    let mut list = RunList::new(start);
    taken.list(&mut list);
    list
}

/// Whether a unit of so many bytes, at least `long`, is wanted so much, and in runs so short, that it is less work
/// for its owner, and for the wire, to send it whole.
fn is_wanted_whole(taken: &Taken<'_>, bytes: u64, long: u64) -> bool {
    /// Bytes that can be sent in the time that a run takes which is told, found and copied for itself: 40 ns at
    /// 4 GB/s.
    const RUN: u64 = 160;
    bytes >= long && bytes <= taken.bytes().saturating_add(RUN * taken.runs())
}
