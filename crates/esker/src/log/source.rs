//! A log to be read: its frames, from where reading stopped the last time.

use std::sync::Arc;

use esker_format::log::{Damage, Frame, Frames, Head};
use esker_store::File;

use crate::error::Result;

/// One rank's log, as its readers have it.
#[derive(Debug, Clone)]
pub(crate) struct LogSource {
    pub(crate) meta: Arc<dyn File>,
    pub(crate) data: Arc<dyn File>,
    /// What lies over what, whatever its epoch: up to which byte of the metadata log entries have which place among all.
    pub(crate) orders: Arc<Vec<(u64, u64)>>,
    pub(crate) rank: u32,
    /// The session's own number, if the log's head must have it.
    pub(crate) identity: Option<u64>,
    /// How much of the metadata log may be read; `None` for all there is.
    pub(crate) meta_len: Option<u64>,
    /// How long the data log is for its readers; `None` for all there is.
    pub(crate) data_len: Option<u64>,
    /// How much of the metadata log was read.
    pub(crate) read: u64,
}

/// The place of what was not committed: over everything.
pub(crate) const UNCOMMITTED: u64 = u64::MAX;

/// The place of what came with a version and lies over another: later ones are greater.
pub(crate) fn place_of(over: u64, number: u64) -> u64 {
    let half = |n: u64| n.min(u64::from(u32::MAX));
    half(over) << 32 | half(number)
}

/// The number of the version that such a place is of.
pub(crate) fn number_of(place: u64) -> u64 {
    place & u64::from(u32::MAX)
}

/// Bytes of a metadata log that are read at a time.
const SECTION: u64 = 1 << 20;

impl LogSource {
    /// Orders of a log of which everything has one place.
    pub(crate) fn in_one_session(place: u64) -> Arc<Vec<(u64, u64)>> {
        Arc::new(vec![(u64::MAX, place)])
    }

    /// The place of entries in a frame that ends there.
    pub(super) fn place_at(&self, end: u64) -> u64 {
        let cut = self.orders.partition_point(|(until, _)| *until < end);
        self.orders.get(cut).or(self.orders.last()).map_or(0, |(_, place)| *place)
    }

    /// Adds places that bytes of the log have, up to these.
    pub(crate) fn add_places(&mut self, cuts: impl IntoIterator<Item = (u64, u64)>) {
        let orders = Arc::make_mut(&mut self.orders);
        for (until, place) in cuts {
            let at = orders.partition_point(|(known, _)| *known < until);
            match orders.get_mut(at).filter(|(known, _)| *known == until) {
                Some(known) => known.1 = place,
                None => orders.insert(at, (until, place)),
            }
        }
    }

    /// Goes to the first frame. A log whose head is not whole has none. Gives whose log it is, if it
    /// is not the one that should be there.
    pub(crate) fn skip_head(&mut self) -> Result<Option<String>> {
        let len = match self.meta_len {
            Some(len) => len,
            None => self.meta.len()?,
        };
        let mut bytes = vec![0; (Head::enough() as u64).min(len) as usize];
        let n = self.meta.read_at(0, &mut bytes)?;
        let Some((head, end)) = Head::decode(&bytes[..n]) else {
            self.read = 0;
            return Ok(None);
        };
        self.read = end as u64;
        let Some(identity) = self.identity else { return Ok(None) };
        let is_it = head.identity == identity && head.rank == self.rank;
        Ok((!is_it).then(|| {
            let (rank, other) = (head.rank, head.identity);
            format!(
                "its metadata log is that of rank {rank} of session {other:016x}, not of {identity:016x}"
            )
        }))
    }

    /// Calls `each` with every whole frame behind those read before, and with every damage in
    /// between. A torn tail is left for the next time.
    pub(crate) fn read_on(
        &mut self,
        mut each: impl FnMut(std::result::Result<Frame, Damage>) -> Result<()>,
    ) -> Result<()> {
        let end = match self.meta_len {
            Some(len) => len,
            None => self.meta.len()?,
        };
        let data_len = match self.data_len {
            Some(len) => len,
            None => self.data.len()?,
        };
        while self.read < end {
            let (frames, all) = self.section(end, data_len)?;
            frames.into_iter().try_for_each(&mut each)?;
            if all {
                break;
            }
        }
        Ok(())
    }

    /// The frames of the next section that has any, and whether there is nothing behind it.
    pub(crate) fn section(
        &mut self,
        end: u64,
        data_len: u64,
    ) -> Result<(Vec<std::result::Result<Frame, Damage>>, bool)> {
        let mut want = SECTION;
        loop {
            let mut bytes = vec![0; want.min(end.saturating_sub(self.read)) as usize];
            let n = self.meta.read_at(self.read, &mut bytes)?;
            let all = n < bytes.len() || self.read + n as u64 >= end;
            let mut frames = Frames::new(&bytes[..n], self.read, data_len);
            let found: Vec<_> = frames.by_ref().collect();
            self.read = frames.reached();
            // A damage that nothing follows yet may be a frame that is not whole yet.
            if all || !found.is_empty() {
                return Ok((found, all));
            }
            // A frame that is longer than the section.
            want = want.saturating_mul(2);
        }
    }
}
