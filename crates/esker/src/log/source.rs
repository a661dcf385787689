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
    /// Sessions are in order: what a later one wrote is newer, whatever its epoch.
    pub(crate) session: u32,
    pub(crate) rank: u32,
    /// How much of the metadata log may be read; `None` for all there is.
    pub(crate) meta_len: Option<u64>,
    /// How long the data log is for its readers; `None` for all there is.
    pub(crate) data_len: Option<u64>,
    /// How much of the metadata log was read.
    pub(crate) read: u64,
}

/// Bytes of a metadata log that are read at a time.
const SECTION: u64 = 1 << 20;

impl LogSource {
    /// Goes to the first frame. A log whose head is not whole has none.
    pub(crate) fn skip_head(&mut self) -> Result<()> {
        let len = self.meta.len()?.min(self.meta_len.unwrap_or(u64::MAX));
        let mut bytes = vec![0; (Head::enough() as u64).min(len) as usize];
        let n = self.meta.read_at(0, &mut bytes)?;
        self.read = Head::decode(&bytes[..n]).map_or(0, |(_, end)| end as u64);
        Ok(())
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
        let mut want = SECTION;
        let mut bytes = Vec::new();
        while self.read < end {
            bytes.resize(want.min(end - self.read) as usize, 0);
            let n = self.meta.read_at(self.read, &mut bytes)?;
            let all = n < bytes.len() || self.read + n as u64 == end;
            let mut frames = Frames::new(&bytes[..n], self.read, data_len);
            let mut any = false;
            while let Some(frame) = frames.next() {
                // A damage that nothing follows yet may be a frame that is not whole yet.
                any = true;
                each(frame)?;
            }
            self.read = frames.reached();
            match (any, all) {
                (_, true) => break,
                // A frame that is longer than the section.
                (false, false) => want = want.saturating_mul(2),
                (true, false) => want = SECTION,
            }
        }
        Ok(())
    }
}
