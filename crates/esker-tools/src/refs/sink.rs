//! What takes references, whatever their form, and files that grow in a store.

use std::io::{self, Write};
use std::sync::Arc;

use esker_store::{File, StoreError};

use super::array::{Array, Content};

/// A form of references. Arrays come one after the other, the chunks of each in C order.
pub(super) trait Sink {
    /// A piece of metadata, whose text is JSON.
    fn metadata(&mut self, key: &str, text: &str) -> io::Result<()>;

    /// The chunks that follow are of this array.
    fn begin(&mut self, array: &Array) -> io::Result<()>;

    fn chunk(&mut self, index: &[u64], content: Content<'_>) -> io::Result<()>;

    /// The array has no more chunks.
    fn close(&mut self) -> io::Result<()>;
}

/// A file of a store, written from its beginning.
#[derive(Debug)]
pub(super) struct Growing {
    file: Arc<dyn File>,
    at: u64,
}

impl Growing {
    pub(super) fn new(file: Arc<dyn File>) -> Growing {
        Growing { file, at: 0 }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync().map_err(failed)
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.at, bytes).map_err(failed)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A store's error, which names the file.
pub(super) fn failed(error: StoreError) -> io::Error {
    io::Error::new(error.kind(), error)
}
