//! Requests that were posted and wait to be moved, and the attached buffer.

use std::collections::HashMap;
use std::ffi::c_int;

use crate::codes::*;
use crate::request::Request;

/// The requests of a file. Puts have even numbers, gets odd ones.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) requests: Vec<(c_int, Request)>,
    last_put: c_int,
    last_get: c_int,
    pub(crate) buffer: Option<Attached>,
}

/// The attached buffer: its parts are taken and given back at the end, as in PnetCDF, whose
/// accounting programs see.
pub(crate) struct Attached {
    pub(crate) size: u64,
    pub(crate) used: u64,
    parts: Vec<(u64, bool)>,
}

impl Attached {
    pub(crate) fn new(size: u64) -> Attached {
        Attached { size, used: 0, parts: Vec::new() }
    }

    /// Takes `bytes` and gives the number of the part.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<usize> {
        if self.size - self.used < bytes {
            let (size, free) = (self.size, self.size - self.used);
            return Err(told(
                NC_EINSUFFBUF,
                format!("{bytes} bytes do not fit: {free} of {size} are free"),
            ));
        }
        self.used += bytes;
        self.parts.push((bytes, true));
        Ok(self.parts.len() - 1)
    }

    /// Gives a part back; room comes free at the end.
    pub(crate) fn give_back(&mut self, part: usize) {
        if let Some(part) = self.parts.get_mut(part) {
            part.1 = false;
        }
    }

    pub(crate) fn coalesce(&mut self) {
        while let Some((bytes, false)) = self.parts.last().copied() {
            self.used -= bytes;
            self.parts.pop();
        }
    }
}

/// Which requests a wait or a cancel means.
pub(crate) enum Which<'a> {
    Gets,
    Puts,
    All,
    These(&'a mut [c_int]),
}

impl Pending {
    /// Queues a request and gives its number.
    pub(crate) fn add(&mut self, request: Request) -> c_int {
        let put = request.put;
        let some = self.requests.iter().rev().any(|(_, r)| r.put == put);
        let last = if put { &mut self.last_put } else { &mut self.last_get };
        *last = match (some, put) {
            (true, _) => *last + 2,
            (false, true) => 0,
            (false, false) => 1,
        };
        let id = *last;
        self.requests.push((id, request));
        id
    }

    /// Takes requests out, in the order in which they were posted, each with its place in the
    /// list of numbers. Numbers become NC_REQ_NULL; the places of unknown ones come second.
    pub(crate) fn take(
        &mut self,
        mut which: Which<'_>,
    ) -> (Vec<(Option<usize>, Request)>, Vec<usize>) {
        if let Which::These(ids) = &mut which
            && self.are(ids)
        {
            ids.fill(-1);
            let all = std::mem::take(&mut self.requests).into_iter().enumerate();
            return (all.map(|(place, (_, request))| (Some(place), request)).collect(), Vec::new());
        }
        let mut unknown = Vec::new();
        let wanted: Option<HashMap<c_int, usize>> = match &which {
            Which::These(ids) => {
                let mut wanted = HashMap::new();
                for (place, id) in ids.iter().enumerate().filter(|(_, id)| **id != -1) {
                    if wanted.insert(*id, place).is_some() {
                        unknown.push(place);
                    }
                }
                Some(wanted)
            }
            _ => None,
        };
        let chosen = |id: c_int, request: &Request| match &which {
            Which::Gets => !request.put,
            Which::Puts => request.put,
            Which::All => true,
            Which::These(_) => wanted.as_ref().is_some_and(|w| w.contains_key(&id)),
        };
        let (taken, left): (Vec<_>, Vec<_>) =
            self.requests.drain(..).partition(|(id, request)| chosen(*id, request));
        self.requests = left;
        let mut found = Vec::with_capacity(taken.len());
        let mut wanted = wanted.unwrap_or_default();
        for (id, request) in taken {
            found.push((wanted.remove(&id), request));
        }
        unknown.extend(wanted.into_values());
        if let Which::These(ids) = which {
            for place in found.iter().filter_map(|(place, _)| *place) {
                ids[place] = -1;
            }
        }
        unknown.sort_unstable();
        (found, unknown)
    }

    /// Whether these are all that there are, in the order in which they were posted: what most programs wait for.
    fn are(&self, ids: &[c_int]) -> bool {
        let posted = self.requests.iter().map(|(id, _)| id);
        ids.len() == self.requests.len() && ids.iter().eq(posted)
    }

    /// Gives back what requests had of the attached buffer.
    pub(crate) fn release(&mut self, parts: impl Iterator<Item = usize>) {
        if let Some(buffer) = &mut self.buffer {
            parts.for_each(|part| buffer.give_back(part));
            buffer.coalesce();
        }
    }
}
