//! What conversions had to say, apart from the requests, which several threads look at.

use esker_format::RangeReport;

use crate::error::{Error, Result};
use crate::request::Request;

/// What did not fit of the requests of a call.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<(u32, RangeReport)>);

impl Notes {
    /// Packs the values of a request from `element` on, as many as `target` has room for, and remembers what did
    /// not fit.
    #[inline]
    pub(crate) fn pack(
        &mut self,
        puts: &[Request<'_>],
        (request, element): (u32, u64),
        target: &mut [u8],
    ) -> Result<()> {
        let put = puts.get(request as usize).ok_or(Error::Garbled)?;
        if put.memory.pack_few(element, target) {
            return Ok(());
        }
        let mut report = put.memory.pack(element, target).map_err(Error::Unchecked)?;
        if let Some(first) = &mut report.first {
            first.index += element;
        }
        match self.0.last_mut() {
            Some((last, all)) if *last == request => add(all, &report),
            _ => self.0.push((request, report)),
        }
        Ok(())
    }

    /// Remembers what does not fit of values that go nowhere, `bytes` of them in the file.
    #[inline]
    pub(crate) fn judge(
        &mut self,
        puts: &[Request<'_>],
        from: (u32, u64),
        bytes: usize,
    ) -> Result<()> {
        if bytes == 0 { Ok(()) } else { self.judge_some(puts, from, bytes) }
    }

    #[cold]
    fn judge_some(
        &mut self,
        puts: &[Request<'_>],
        (request, mut element): (u32, u64),
        bytes: usize,
    ) -> Result<()> {
        // A multiple of every type's length.
        let mut nowhere = [0; 1024];
        let put = puts.get(request as usize).ok_or(Error::Garbled)?;
        let size = put.memory.sides.external.size();
        let mut left = bytes;
        while left > 0 {
            let now = left.min(nowhere.len());
            self.pack(puts, (request, element), &mut nowhere[..now])?;
            element += now as u64 / size;
            left -= now;
        }
        Ok(())
    }

    /// Tells the requests.
    pub(crate) fn tell(self, puts: &mut [Request<'_>]) {
        for (request, report) in self.0 {
            if let Some(put) = puts.get_mut(request as usize) {
                add(&mut put.range, &report);
            }
        }
    }

    pub(crate) fn append(&mut self, mut others: Notes) {
        self.0.append(&mut others.0);
    }
}

/// Adds a report whose first element is counted from the beginning of the request, too.
fn add(all: &mut RangeReport, more: &RangeReport) {
    all.elements += more.elements;
    all.out_of_range += more.out_of_range;
    let earlier = more.first.filter(|m| all.first.is_none_or(|first| m.index < first.index));
    all.first = earlier.or(all.first);
}
