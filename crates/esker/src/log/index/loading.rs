//! Taking in sections of logs, wherever they are: a log need not be read from its beginning.

use std::ops::Range;

use super::{Frame, Index, LogDamage};
use crate::error::Result;

/// Sections up to this many bytes are held in memory while they are taken in.
const SHORT: u64 = 1 << 20;

impl Index {
    /// Takes in these bytes of a log, which are whole sections of it; `number` is that of the first entry, and payloads end
    /// at `data_end`.
    pub(crate) fn take_section(
        &mut self,
        log: usize,
        place: Range<u64>,
        (number, data_end): (u64, u64),
    ) -> Result<()> {
        let mut source = self.logs[log].clone();
        (source.meta_len, source.data_len) = (Some(place.end), Some(data_end));
        if source.read == 0 {
            let other = source.skip_head()?;
            let lost = || "the head of its metadata log cannot be read".to_string();
            if let Some(what) = other.or_else(|| (source.read == 0).then(lost)) {
                self.damages.push(LogDamage { rank: source.rank, what });
                return Ok(());
            }
            self.logs[log].read = source.read;
        }
        // The first section of a log begins with its head.
        source.read = source.read.max(place.start);
        let known = self.logs[log].data_len.unwrap_or(0);
        self.logs[log].data_len = Some(known.max(data_end));
        self.counts[log] = number;
        let is_short = place.end.saturating_sub(place.start) <= SHORT;
        let mut held: Vec<(u64, Frame)> = Vec::new();
        if !is_short {
            // Where footprints are is said behind what refers to them.
            let mut ahead = source.clone();
            ahead.read_on(|frame| {
                if let Ok(frame) = frame {
                    self.outline(log as u32, &frame);
                }
                Ok(())
            })?;
        }
        let mut at = source.read;
        source.read_on(|frame| {
            match frame {
                Ok(frame) => {
                    let from = std::mem::replace(&mut at, frame.end);
                    match is_short {
                        true => held.push((from, frame)),
                        false => self.take_in(log as u32, from, frame)?,
                    }
                }
                Err(damage) => {
                    at = damage.to;
                    let (rank, what) = (self.logs[log].rank, damage.to_string());
                    self.damages.push(LogDamage { rank, what });
                }
            }
            Ok(())
        })?;
        for (_, frame) in &held {
            self.outline(log as u32, frame);
        }
        for (from, frame) in held {
            self.take_in(log as u32, from, frame)?;
        }
        if source.read < place.end {
            let what = format!(
                "the metadata log has no whole frame at byte {}, though {} bytes of it were committed",
                source.read, place.end
            );
            self.damages.push(LogDamage { rank: source.rank, what });
        }
        Ok(())
    }
}
