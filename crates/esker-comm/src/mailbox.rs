//! Messages that have arrived inside this process and wait to be taken.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::{Message, Received, Source, Tag};

/// The messages waiting for one rank of one communicator.
///
/// They are kept by tag and source, so that a receive finds its message however many others
/// wait; the arrival number decides between sources when any will do.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    lanes: HashMap<Tag, BTreeMap<usize, VecDeque<(u64, Message)>>>,
    arrivals: u64,
}

impl Mailbox {
    pub(crate) fn put(&mut self, source: usize, tag: Tag, message: Message) {
        self.arrivals += 1;
        let lane = self.lanes.entry(tag).or_default();
        lane.entry(source).or_default().push_back((self.arrivals, message));
    }

    pub(crate) fn take(&mut self, from: Source, tag: Tag) -> Option<Received> {
        let lane = self.lanes.get_mut(&tag)?;
        let source = match from {
            Source::Rank(rank) => rank,
            Source::Any => {
                let earliest = |queue: &VecDeque<(u64, Message)>| queue.front().map(|m| m.0);
                lane.iter().min_by_key(|(_, queue)| earliest(queue)).map(|(&source, _)| source)?
            }
        };
        let queue = lane.get_mut(&source)?;
        let (_, message) = queue.pop_front()?;
        // Empty queues go, so that a long run with many tags holds nothing.
        if queue.is_empty() {
            lane.remove(&source);
            if lane.is_empty() {
                self.lanes.remove(&tag);
            }
        }
        Some(Received { source, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_source_takes_in_the_order_of_arrival_and_leaves_nothing_behind() {
        let mut mailbox = Mailbox::default();
        for (source, byte) in [(2, 1), (0, 2), (2, 3), (1, 4)] {
            mailbox.put(source, 5, Message::from(vec![byte]));
        }
        assert!(mailbox.take(Source::Any, 6).is_none());
        let taken: Vec<_> = std::iter::from_fn(|| mailbox.take(Source::Any, 5))
            .map(|r| (r.source, r.message[0]))
            .collect();
        assert_eq!(taken, [(2, 1), (0, 2), (2, 3), (1, 4)]);
        assert!(mailbox.lanes.is_empty());
    }
}
