//! Writing from beginning to end in few large writes.

use std::sync::Arc;

use esker_store::File;

/// Neighbouring pieces, collected and written together.
#[derive(Debug)]
pub(super) struct Sink {
    file: Arc<dyn File>,
    held: Vec<u8>,
    /// Where the held bytes go.
    at: u64,
    capacity: usize,
}

impl Sink {
    pub(super) fn new(file: Arc<dyn File>, capacity: usize) -> Sink {
        Sink { file, held: Vec::new(), at: 0, capacity: capacity.max(512) }
    }

    /// Puts `bytes` at `offset`.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> esker::Result<()> {
        let follows = self.at + self.held.len() as u64 == offset;
        if !follows || self.held.len() + bytes.len() > self.capacity {
            self.flush()?;
            self.at = offset;
        }
        if bytes.len() >= self.capacity / 2 && self.held.is_empty() {
            self.file.write_at(offset, bytes)?;
            self.at = offset + bytes.len() as u64;
            return Ok(());
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is held.
    pub(super) fn flush(&mut self) -> esker::Result<()> {
        if !self.held.is_empty() {
            self.file.write_at(self.at, &self.held)?;
            self.at += self.held.len() as u64;
            self.held.clear();
        }
        Ok(())
    }
}
