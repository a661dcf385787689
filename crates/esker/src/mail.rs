//! Messages between ranks with a checksum behind them: what arrives is what was sent, or an error that names both ranks.
//!
//! A message that does not match stops nobody: the others would wait for this rank for ever. Whoever gets one remembers
//! the error, takes part in what is left, and it becomes everyone's when all agree on the outcome.

use std::path::Path;
use std::time::Instant;

use esker_comm::{ByNode, Communicator, CommunicatorExt, Message};

use crate::error::{Error, Result};
use crate::report::Report;

/// How ranks send each other what belongs to one dataset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mail<'c> {
    pub(crate) comm: &'c dyn Communicator,
    path: &'c Path,
    /// Whether messages have checksums; the same on all ranks.
    pub(crate) checked: bool,
}

/// Bytes of a checksum.
pub(crate) const SUM: usize = 4;

/// A message that is not what was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged {
    pub(crate) from: usize,
    /// Its bytes, without the checksum. None where the other rank refused to say anything, having got such a message itself.
    pub(crate) bytes: usize,
    /// The checksum that it has, and the one that it was sent with.
    sums: Option<(u32, u32)>,
}

impl Damaged {
    /// What another rank sends instead of an answer to a question that came to it damaged.
    pub(crate) fn is_refusal(&self) -> bool {
        self.sums.is_none() && self.bytes == 0
    }

    /// Whether it stands for messages of whoever has sent something to this rank through another.
    pub(crate) fn is_loss(&self) -> bool {
        self.sums.is_none() && self.bytes > 0
    }

    /// What was to come from a rank was lost.
    pub(crate) fn lost(from: usize) -> Damaged {
        Damaged { from, bytes: ByNode::LOST.len(), sums: None }
    }

    /// A question was not understood.
    pub(crate) fn refused(from: usize) -> Damaged {
        Damaged { from, bytes: 0, sums: None }
    }
}

/// Messages that came, and from whom, as far as they are what was sent.
pub(crate) type Opened = Vec<(usize, Result<Message, Damaged>)>;

impl<'c> Mail<'c> {
    pub(crate) fn new(comm: &'c dyn Communicator, path: &'c Path, checked: bool) -> Mail<'c> {
        Mail { comm, path, checked }
    }

    /// The bytes with their checksum. There should be room for it.
    pub(crate) fn seal(&self, mut bytes: Vec<u8>) -> Message {
        if self.checked {
            let sum = crc32c::crc32c(&bytes);
            bytes.extend(sum.to_le_bytes());
        }
        Message::from(bytes)
    }

    /// A message without its checksum, if that is right.
    pub(crate) fn open(&self, from: usize, message: Message) -> Result<Message, Damaged> {
        if !self.checked {
            return Ok(message);
        }
        let Some((content, sent)) = message.split_last_chunk::<SUM>() else {
            return Err(Damaged { from, bytes: message.len(), sums: None });
        };
        let (bytes, sent) = (content.len(), u32::from_le_bytes(*sent));
        let found = crc32c::crc32c(content);
        match found == sent {
            true => Ok(message.truncated(bytes)),
            false => Err(Damaged { from, bytes, sums: Some((found, sent)) }),
        }
    }

    /// A message whose checksum came apart from it.
    pub(crate) fn compare(
        &self,
        from: usize,
        message: Message,
        sum: &[u8],
    ) -> Result<Message, Damaged> {
        let found = crc32c::crc32c(&message);
        match sum.first_chunk::<SUM>().map(|sum| u32::from_le_bytes(*sum)) {
            Some(sent) if sent == found => Ok(message),
            sent => {
                let sums = Some((found, sent.unwrap_or_default()));
                Err(Damaged { from, bytes: message.len(), sums })
            }
        }
    }

    /// Sends messages that are sealed to ranks that need not know of them; gives what came, in the order of ranks.
    /// Collective.
    pub(crate) fn swap(
        &self,
        messages: Vec<(usize, Message)>,
        report: &mut Report,
    ) -> Result<Opened> {
        report.messages += messages.len() as u64;
        report.message_bytes +=
            messages.iter().map(|(_, message)| message.len() as u64).sum::<u64>();
        let clock = Instant::now();
        let came = self.comm.sparse_exchange(messages)?;
        report.phases.exchange += clock.elapsed();
        Ok(came.into_iter().map(|(from, message)| (from, self.open(from, message))).collect())
    }

    /// The same for messages that are few, which this rank takes none of if one of them is damaged. `what` says what they
    /// were about. Nobody is told: that is the caller's.
    pub(crate) fn swap_all(
        &self,
        messages: Vec<(usize, Vec<u8>)>,
        what: &str,
    ) -> Result<Result<Vec<(usize, Message)>>> {
        let messages = messages.into_iter().map(|(to, bytes)| (to, self.seal(bytes)));
        let came = self.swap(messages.collect(), &mut Report::default())?;
        let opened = came.into_iter().map(|(from, message)| match message {
            Ok(message) => Ok((from, message)),
            Err(damaged) => Err(self.error(&damaged, what)),
        });
        Ok(opened.collect())
    }

    /// Gives every rank everyone's message, by rank. It goes twice, one behind the other, for it is short, and what one of them has lost the other has:
    /// to agree on damage would be a reduction each time. Collective.
    pub(crate) fn all_gather(&self, bytes: Vec<u8>, what: &str) -> Result<Vec<(usize, Message)>> {
        let mut once = self.seal(bytes).into_vec();
        if self.checked {
            once.extend_from_within(..);
        }
        let came = self.comm.all_gather(Message::from(once))?.into_iter().enumerate();
        let opened = came.map(|(from, message)| match self.open_twice(from, message) {
            Ok(message) => Ok((from, message)),
            Err(damaged) => Err(self.error(&damaged, what)),
        });
        opened.collect()
    }

    /// A message that came twice.
    fn open_twice(&self, from: usize, message: Message) -> Result<Message, Damaged> {
        if !self.checked {
            return Ok(message);
        }
        let half = message.len() / 2;
        let second = Message::from(message[half..].to_vec());
        self.open(from, message.truncated(half)).or_else(|_| self.open(from, second))
    }

    /// The error for a damaged message; `what` says what it was about.
    pub(crate) fn error(&self, damaged: &Damaged, what: &str) -> Error {
        let Damaged { from, bytes, sums } = *damaged;
        let how = match sums {
            Some((found, sent)) => {
                format!("its crc32c is {found:#010x}, and it was sent with {sent:#010x}")
            }
            None if bytes == 0 => "the other rank could not read what it was asked for".to_string(),
            None => "it was lost on the way between nodes".to_string(),
        };
        let (path, to) = (self.path.to_path_buf(), self.comm.rank());
        Error::Message { path, from, to, bytes: bytes as u64, why: format!("{what}: {how}") }
    }

    /// Collective: the outcome of all ranks, which is a failure if any rank failed.
    pub(crate) fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        let other = |rank, message| Error::OtherRank { rank, message };
        self.comm.agree(outcome).map_err(|disagreement| disagreement.into_error(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_comm::SelfComm;

    #[test]
    fn every_flipped_bit_of_a_message_is_noticed() {
        let comm = SelfComm::new();
        let mail = Mail::new(&comm, Path::new("x.nc"), true);
        for len in [0, 1, 8, 61] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            let sent = mail.seal(bytes.clone());
            assert_eq!(mail.open(3, sent.clone()).unwrap()[..], bytes);
            for bit in 0..8 * sent.len() {
                let mut damaged = sent.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let damaged = mail.open(3, Message::from(damaged)).unwrap_err();
                assert_eq!((damaged.from, damaged.bytes, damaged.is_refusal()), (3, len, false));
            }
        }
    }

    #[test]
    fn what_is_too_short_for_a_checksum_is_no_message() {
        let comm = SelfComm::new();
        let mail = Mail::new(&comm, Path::new("x.nc"), true);
        assert!(mail.open(1, Message::empty()).unwrap_err().is_refusal());
        assert!(!mail.open(1, Message::from(vec![0])).unwrap_err().is_refusal());
        let apart = mail.compare(1, Message::from(vec![1, 2]), &[]).unwrap_err();
        assert!(!apart.is_refusal());
    }
}
