//! What the ranks of a world, and of one communicator in it, share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use super::meeting::Meeting;
use crate::checks::check_length;
use crate::mailbox::Mailbox;
use crate::{CommError, Message, Received, Result, Source, Tag};

const NOBODY: usize = usize::MAX;

/// All ranks of one launch. It exists so that one rank's panic ends the waits of all others, in
/// whatever communicator they wait.
#[derive(Debug)]
pub(super) struct World {
    panicked: AtomicUsize,
    groups: Mutex<Vec<Weak<Group>>>,
}

impl World {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(World { panicked: AtomicUsize::new(NOBODY), groups: Mutex::default() })
    }

    /// An error if a rank has panicked.
    pub(super) fn check(&self) -> Result<()> {
        match self.panicked.load(Ordering::SeqCst) {
            NOBODY => Ok(()),
            rank => Err(CommError::RankPanicked { rank }),
        }
    }

    /// Records that a rank panicked and wakes everyone; the first to panic is the one reported.
    pub(super) fn poison(&self, rank: usize) {
        let first = (NOBODY, rank);
        let _ =
            self.panicked.compare_exchange(first.0, first.1, Ordering::SeqCst, Ordering::SeqCst);
        // A group that registers after this was made by ranks that will see the mark.
        let groups: Vec<_> = locked(&self.groups).iter().filter_map(Weak::upgrade).collect();
        groups.iter().for_each(|group| group.wake_all());
    }
}

/// The ranks of one communicator.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) world: Arc<World>,
    /// The number in the world and the node of each rank.
    pub(super) members: Vec<Member>,
    pub(super) meeting: Meeting,
    slots: Vec<Slot>,
}

/// Who a rank is outside its communicator.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) world_rank: usize,
    pub(super) node: usize,
}

/// What other ranks leave for one rank, and whether it is still there.
#[derive(Debug, Default)]
struct Slot {
    mailbox: Mutex<Mailbox>,
    arrival: Condvar,
    left: AtomicBool,
}

impl Group {
    pub(super) fn new(world: &Arc<World>, members: Vec<Member>) -> Arc<Self> {
        let group = Arc::new(Group {
            world: Arc::clone(world),
            meeting: Meeting::new(members.len()),
            slots: members.iter().map(|_| Slot::default()).collect(),
            members,
        });
        let mut groups = locked(&world.groups);
        groups.retain(|group| group.strong_count() > 0);
        groups.push(Arc::downgrade(&group));
        drop(groups);
        group
    }

    pub(super) fn size(&self) -> usize {
        self.members.len()
    }

    /// The lowest rank that has dropped its end.
    pub(super) fn first_left(&self) -> Option<usize> {
        (0..self.slots.len()).find(|rank| self.has_left(*rank))
    }

    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.slots[rank].left.load(Ordering::SeqCst)
    }

    /// Marks that this rank will not take part any more and wakes whoever waits for it.
    pub(super) fn leave(&self, rank: usize) {
        self.slots[rank].left.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        // Each lock is taken so that no waiter is between its check and its sleep.
        for slot in &self.slots {
            drop(locked(&slot.mailbox));
            slot.arrival.notify_all();
        }
        self.meeting.wake_all();
    }

    pub(super) fn send(&self, from: usize, to: usize, tag: Tag, message: Message) -> Result<()> {
        self.world.check()?;
        let slot = &self.slots[to];
        locked(&slot.mailbox).put(from, tag, message);
        // Two threads of one rank may wait here for different messages.
        slot.arrival.notify_all();
        Ok(())
    }

    pub(super) fn try_take(&self, rank: usize, want: Want) -> Result<Option<Received>> {
        self.world.check()?;
        let taken = locked(&self.slots[rank].mailbox).take(want.from, want.tag);
        taken.map(|received| check_length(received, want.tag, want.length)).transpose()
    }

    pub(super) fn take(&self, rank: usize, want: Want) -> Result<Received> {
        let slot = &self.slots[rank];
        let mut mailbox = locked(&slot.mailbox);
        loop {
            if let Some(received) = mailbox.take(want.from, want.tag) {
                return check_length(received, want.tag, want.length);
            }
            self.world.check()?;
            if let Some(rank) = self.nobody_can_send(rank, want.from) {
                return Err(CommError::RankLeft { operation: "receive", rank });
            }
            mailbox = slot.arrival.wait(mailbox).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A rank that left, if with it the last that could have sent the message is gone.
    fn nobody_can_send(&self, own: usize, from: Source) -> Option<usize> {
        let left = |rank: usize| self.has_left(rank);
        match from {
            Source::Rank(rank) => left(rank).then_some(rank),
            Source::Any => {
                let others = || (0..self.size()).filter(|rank| *rank != own);
                if others().all(left) { others().next() } else { None }
            }
        }
    }
}

/// What a receive asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Want {
    pub(super) from: Source,
    pub(super) tag: Tag,
    pub(super) length: Option<usize>,
}

/// The lock, also after a panic: everything under these locks is whole between statements, and
/// the panic itself is reported by [`World::poison`].
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
