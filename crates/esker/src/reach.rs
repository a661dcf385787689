//! Where windows lie, who reaches which, and in which turn (docs/rooms/node.md).
//!
//! An aggregator shares the memory of its windows with the ranks of its node, where they can have some; otherwise it has
//! them for itself. Either way it is [`NodeMemory`], of which a rank alone is the smallest case.

use std::alloc::Layout;
use std::ops::Range;
use std::sync::Arc;

use esker_comm::{
    Communicator, CommunicatorExt, Laying, NoNodeMemory, NodeMemory, SelfComm, Shown, Stages, Whole,
};

use crate::error::{Error, Result};
use crate::exchange::Unit;
use crate::gathered::SLACK;
use crate::hints::Hints;
use crate::plan::Sweep;
use crate::report::Road;
use crate::rounds::Rounds;
use crate::strategy::{Machine, Windows, aggregator_number, aggregator_rank};

/// How a file is cut into windows, and among whom.
#[derive(Clone, Copy)]
pub(crate) struct Cut<'e> {
    pub(crate) comm: &'e dyn Communicator,
    pub(crate) hints: &'e Hints,
    pub(crate) windows: Windows,
    pub(crate) machine: Machine,
}

/// The windows that this rank reaches, kept from call to call.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The ranks of this node, by their numbers in the dataset's communicator; once somebody has asked.
    node: Option<Node>,
    memory: Option<NodeMemory>,
    /// The aggregators whose windows are in the memory, by their numbers: a stage each.
    aggregators: Vec<usize>,
    /// The turn that each of them comes to next: the same on all ranks that reach it.
    turns: Vec<u64>,
    /// Whether the memory is this rank's alone.
    private: bool,
    /// Why the ranks of this node share none, if they asked for it.
    refused: Option<NoNodeMemory>,
}

/// The ranks of a node.
#[derive(Debug)]
struct Node {
    /// Their own communicator, where the dataset has ranks on other nodes, too.
    comm: Option<Arc<dyn Communicator>>,
    ranks: Vec<usize>,
}

/// Windows are made for so many bytes, where the hint allows it, so that they are not made anew for every longer call.
const AT_LEAST: u64 = 64 << 10;

const PAGE: usize = 4096;

impl Reach {
    /// Makes memory for the windows of an exchange, unless there is some; gives the road that pieces take on this node.
    /// Collective.
    pub(crate) fn prepare(&mut self, of: &Cut<'_>) -> Result<Road> {
        let (ranks, count) = (of.comm.size(), of.windows.aggregators as usize);
        let road = match (ranks, of.hints.node_memory) {
            (1, _) => Road::Nothing,
            (_, 0) => Road::Messages,
            (_, most) => self.share(of, most)?,
        };
        if road != Road::NodeMemory {
            let mine = aggregator_number(of.comm.rank(), count, ranks);
            self.keep(of, mine)?;
        }
        Ok(road)
    }

    /// After an error: whoever waits for this rank is told, and nobody uses the memory again.
    pub(crate) fn leave(&self) {
        if let Some(memory) = &self.memory {
            memory.leave();
        }
    }

    /// Memory that the ranks of this node share. Collective.
    fn share(&mut self, of: &Cut<'_>, most: u64) -> Result<Road> {
        let Some(node) = self.node(of)? else { return Ok(Road::Messages) };
        let ranks = node.ranks.len();
        if ranks == 1 {
            return Ok(Road::Messages);
        }
        let count = of.windows.aggregators as usize;
        let rank_of = |number: usize| aggregator_rank(number, count, of.comm.size());
        let (mut aggregators, mut owners) = (Vec::new(), Vec::new());
        for number in 0..count {
            if let Ok(owner) = node.ranks.binary_search(&rank_of(number)) {
                aggregators.push(number);
                owners.push(owner);
            }
        }
        if self.fits(of.windows.len(), &aggregators, false) {
            return Ok(Road::NodeMemory);
        }
        if self.refused.is_some() {
            return Ok(Road::Refused);
        }
        if owners.is_empty() {
            return Ok(Road::Messages);
        }
        let mut tries = tries(&owners, of.windows.len()).into_iter();
        let fits = |stages: &Stages| stages.memory(ranks).is_some_and(|n| n as u64 <= most);
        let Some(stages) = tries.find(fits) else { return Ok(Road::HintTooSmall) };
        // Fewer bytes first: what is there is not needed any more.
        self.memory = None;
        let node = self.node.as_ref().and_then(|node| node.comm.as_deref());
        match node.unwrap_or(of.comm).node_memory(&stages)? {
            Ok(memory) => {
                self.put(memory, aggregators, false);
                Ok(Road::NodeMemory)
            }
            Err(reason) => {
                self.refused = Some(reason);
                Ok(Road::Refused)
            }
        }
    }

    /// Memory of this rank's own, if it is an aggregator.
    fn keep(&mut self, of: &Cut<'_>, mine: Option<usize>) -> Result<()> {
        let aggregators: Vec<usize> = mine.into_iter().collect();
        if self.fits(of.windows.len(), &aggregators, true) {
            return Ok(());
        }
        (self.memory, self.private) = (None, true);
        self.aggregators = aggregators.clone();
        if aggregators.is_empty() {
            return Ok(());
        }
        // Pages that are not used take no memory.
        for stages in tries(&[0], of.windows.len()) {
            if let Ok(Ok(memory)) = SelfComm::new().node_memory(&stages) {
                self.put(memory, aggregators, true);
                return Ok(());
            }
        }
        // As when any other memory cannot be had: others would wait for ever for a rank that goes on without.
        std::alloc::handle_alloc_error(Layout::new::<[u8; PAGE]>())
    }

    /// Whether what is there serves for windows of so many bytes. The same on all ranks that reach it: after a failed call it
    /// is broken for all of them, because they agree on its outcome.
    fn fits(&self, len: u64, aggregators: &[usize], private: bool) -> bool {
        let is_good = |memory: &NodeMemory| {
            memory.stages().bytes as u64 >= len + SLACK as u64 && !memory.is_broken()
        };
        let same = self.private == private && self.aggregators == aggregators;
        same && self.memory.as_ref().is_some_and(is_good)
    }

    fn put(&mut self, memory: NodeMemory, aggregators: Vec<usize>, private: bool) {
        self.turns = vec![0; aggregators.len()];
        (self.memory, self.aggregators, self.private) = (Some(memory), aggregators, private);
    }

    /// The ranks of this node, or `None` where these may have no communicator of their own. Collective the first time.
    fn node(&mut self, of: &Cut<'_>) -> Result<Option<&Node>> {
        if self.node.is_none() && of.machine.nodes == 1 {
            self.node = Some(Node { comm: None, ranks: (0..of.comm.size()).collect() });
        }
        if self.node.is_none() && self.refused.is_none() {
            // One more for every dataset; where these are very many, messages have to do.
            if !of.comm.all(of.comm.may_duplicate())? {
                self.refused = Some(NoNodeMemory("there are very many communicators".into()));
                return Ok(None);
            }
            let comm = of.comm.split_by_node()?;
            let ranks = comm.all_gather_u64(&[of.comm.rank() as u64])?;
            let ranks = ranks.into_iter().map(|rank| rank as usize).collect();
            self.node = Some(Node { comm: Some(comm), ranks });
        }
        Ok(self.node.as_ref())
    }
}

/// Memory for windows of `len` bytes, what is best first: room for longer ones, which later calls may have, but seldom; two
/// buffers; one.
fn tries(owners: &[usize], len: u64) -> [Stages; 3] {
    let longer = len.max(AT_LEAST).checked_next_power_of_two().unwrap_or(len);
    [(longer, 2), (len, 2), (len, 1)].map(|(len, buffers)| {
        let bytes = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(SLACK);
        Stages { owners: owners.to_vec(), bytes, buffers }
    })
}

/// A window of a round.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) range: Range<u64>,
    owner: usize,
    /// Whether it is this rank's own.
    pub(crate) own: bool,
    /// Where it is in memory, if this rank reaches it.
    stage: Option<usize>,
}

/// The windows of an exchange, round by round, and the turns in which ranks use those that they reach.
pub(crate) struct Turns<'r> {
    windows: Windows,
    rounds: Rounds,
    ranks: usize,
    me: usize,
    /// Whether all ranks reach all windows.
    pub(crate) all_reached: bool,
    reach: &'r mut Reach,
    /// The windows of this round, by address.
    round: Vec<Place>,
    /// Whether the second buffer of a window was used.
    both: bool,
}

impl<'r> Turns<'r> {
    /// Those of an exchange that the reach was prepared for.
    pub(crate) fn new(of: &Cut<'_>, reach: &'r mut Reach) -> Turns<'r> {
        let (windows, ranks, me) = (of.windows, of.comm.size(), of.comm.rank());
        let all_reached = of.machine.nodes == 1 && !reach.private;
        let (rounds, round) = (Rounds::new(windows), Vec::new());
        Turns { windows, rounds, ranks, me, all_reached, reach, round, both: false }
    }

    /// The next round; this rank's own window is open in it. Collective.
    pub(crate) fn next_round(
        &mut self,
        comm: &dyn Communicator,
        sweep: &Sweep<'_, '_>,
    ) -> Result<Option<u64>> {
        let Some(round) = self.rounds.next(comm, sweep)? else { return Ok(None) };
        self.round.clear();
        let count = self.windows.aggregators as usize;
        for number in 0..count {
            let range = self.windows.window(round, number as u64);
            if range.start >= range.end {
                continue;
            }
            let owner = aggregator_rank(number, count, self.ranks);
            let stage = self.reach.aggregators.binary_search(&number).ok();
            self.round.push(Place { range, owner, own: owner == self.me, stage });
        }
        if let Some(own) = self.own() {
            let (memory, stage, turn) = self.at(&own)?;
            memory.open(stage, turn)?;
        }
        Ok(Some(round))
    }

    /// The windows of this round.
    pub(crate) fn units(&self) -> Vec<Unit> {
        let unit = |place: &Place| {
            let Range { start, end } = place.range;
            Unit { owner: place.owner, start, end, bytes: 0 }
        };
        self.round.iter().map(unit).collect()
    }

    /// The window that begins at `start`, if this rank reaches it.
    pub(crate) fn place_of(&self, start: u64) -> Option<&Place> {
        let number = self.round.binary_search_by_key(&start, |place| place.range.start).ok()?;
        self.round.get(number).filter(|place| place.stage.is_some())
    }

    /// The windows of this round that this rank reaches, by address.
    pub(crate) fn reached(&self) -> impl Iterator<Item = &Place> {
        self.round.iter().filter(|place| place.stage.is_some())
    }

    /// This rank's own window of the round, if it has one.
    pub(crate) fn own(&self) -> Option<Place> {
        self.round.iter().find(|place| place.own).cloned()
    }

    /// Begins this rank's part of a window's turn, when its owner has opened it.
    pub(crate) fn lay(&self, place: &Place) -> Result<Laying> {
        let (memory, stage, turn) = self.at(place)?;
        Ok(memory.lay(stage, turn, len(place))?)
    }

    /// This rank's own window, when all who reach it have laid their parts.
    pub(crate) fn take(&self, own: &Place) -> Result<Whole> {
        let (memory, stage, turn) = self.at(own)?;
        Ok(memory.take(stage, turn, len(own))?)
    }

    /// A window that its owner shows.
    pub(crate) fn look(&self, place: &Place) -> Result<Shown> {
        let (memory, stage, turn) = self.at(place)?;
        Ok(memory.look(stage, turn, len(place))?)
    }

    /// Opens the next turn of this rank's own window, if there may be one and it has other memory.
    pub(crate) fn open_ahead(&self, own: &Place) -> Result<()> {
        if self.has_two_buffers() && self.go_on() {
            let (memory, stage, turn) = self.at(own)?;
            memory.open(stage, turn + 1)?;
        }
        Ok(())
    }

    /// Every window of the round has had its turn. One that nobody else reaches has its next turn in the same memory, unless
    /// that is busy still.
    pub(crate) fn end_round(&mut self, busy: bool) {
        let same = self.reach.private && !busy && self.has_two_buffers();
        for stage in self.round.iter().filter_map(|place| place.stage) {
            self.reach.turns[stage] += if same { 2 } else { 1 };
        }
        self.both |= !same;
    }

    /// Whether there may be a round after this one.
    pub(crate) fn go_on(&self) -> bool {
        self.rounds.go_on()
    }

    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.made
    }

    pub(crate) fn is_private(&self) -> bool {
        self.reach.private
    }

    pub(crate) fn has_two_buffers(&self) -> bool {
        self.reach.memory.as_ref().is_some_and(|memory| memory.stages().buffers == 2)
    }

    /// Bytes of memory of this rank's own window.
    pub(crate) fn memory(&self) -> u64 {
        let count = self.windows.aggregators as usize;
        match (aggregator_number(self.me, count, self.ranks), &self.reach.memory) {
            // As much of it as was used.
            (Some(_), Some(_)) if self.reach.private => {
                let bits = self.windows.len() / 8;
                (self.windows.len() + bits) * if self.both { 2 } else { 1 }
            }
            (Some(_), Some(memory)) => (memory.memory() / memory.stages().owners.len()) as u64,
            _ => 0,
        }
    }

    /// The memory, stage and turn of a window that this rank reaches.
    fn at(&self, place: &Place) -> Result<(&NodeMemory, usize, u64)> {
        let memory = self.reach.memory.as_ref();
        let found = memory.zip(place.stage);
        found.map(|(memory, stage)| (memory, stage, self.reach.turns[stage])).ok_or(Error::Garbled)
    }
}

/// Bytes of a window, with those behind it of an element that begins in it.
fn len(place: &Place) -> usize {
    (place.range.end - place.range.start) as usize + SLACK
}
