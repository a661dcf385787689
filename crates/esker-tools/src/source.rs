//! Reading a dataset's bytes through one window that moves forward.
//!
//! Records of many small variables, or millions of small records, would cost a call for each
//! piece if every variable were read for itself. The window is filled by few large reads, and
//! pieces are taken out of it in whatever order they are wanted.

use std::path::Path;
use std::sync::Arc;

use esker::{Dataset, Error, Header, OpenOptions, VarId};
use esker_format::ConvertError;
use esker_store::{File, Store};

/// An open dataset and a window on its file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) dataset: Dataset,
    file: Arc<dyn File>,
    window: Vec<u8>,
    /// Where in the file the window begins.
    at: u64,
    capacity: u64,
}

impl Source {
    /// Opens the dataset at `path`, decomposed variables as they are stored, with a window of at
    /// most `capacity` bytes.
    pub(crate) fn open(store: Arc<dyn Store>, path: &Path, capacity: u64) -> esker::Result<Source> {
        let dataset = Dataset::open_with(path, OpenOptions::new().store(store).blobs(true))?;
        let file = dataset.classic_file()?;
        let capacity = capacity.max(8);
        Ok(Source { dataset, file, window: Vec::new(), at: 0, capacity })
    }

    /// Whether values lie in chunks, which the window does not see: read such a dataset by its
    /// arrays.
    pub(crate) fn is_chunked(&self) -> esker::Result<bool> {
        Ok(self.dataset.heap()?.is_some())
    }

    pub(crate) fn header(&self) -> &Header {
        self.dataset.header()
    }

    /// The longest piece that [`Source::bytes`] gives: a multiple of every type's size.
    pub(crate) fn longest(&self) -> u64 {
        self.capacity / 8 * 8
    }

    /// Fills the window with `len` bytes from `offset`, unless it has them.
    pub(crate) fn fetch(&mut self, offset: u64, len: u64) -> esker::Result<()> {
        if self.holds(offset, len) {
            return Ok(());
        }
        let len = len.min(self.capacity) as usize;
        if self.window.len() < len {
            self.window.resize(len, 0);
        }
        self.window.truncate(len);
        // Not valid in case of an error.
        self.at = u64::MAX;
        let n = self.file.read_at(offset, &mut self.window)?;
        self.window.truncate(n);
        self.at = offset;
        Ok(())
    }

    /// Whether the window has these bytes.
    pub(crate) fn holds(&self, offset: u64, len: u64) -> bool {
        let end = self.at.saturating_add(self.window.len() as u64);
        offset >= self.at && offset.saturating_add(len) <= end
    }

    /// `len` bytes of `var` from `offset`; if the window does not have them, it is filled with
    /// `ahead` bytes from there.
    pub(crate) fn bytes(
        &mut self,
        var: VarId,
        offset: u64,
        len: u64,
        ahead: u64,
    ) -> esker::Result<&[u8]> {
        if !self.holds(offset, len) {
            self.fetch(offset, len.max(ahead))?;
        }
        if !self.holds(offset, len) {
            return Err(self.short(var, offset + len)?);
        }
        let start = (offset - self.at) as usize;
        Ok(&self.window[start..start + len as usize])
    }

    /// The error of values of `var` that could not be converted.
    pub(crate) fn convert_error(&self, var: VarId, source: ConvertError) -> Error {
        let (path, var) = (self.dataset.path().to_path_buf(), self.name(var));
        Error::Convert { path, var, source }
    }

    fn name(&self, var: VarId) -> String {
        self.header().schema.variable(var).map_or(String::new(), |v| v.name.to_string())
    }

    fn short(&self, var: VarId, needed: u64) -> esker::Result<Error> {
        let (path, var) = (self.dataset.path().to_path_buf(), self.name(var));
        Ok(Error::ShortFile { path, var, needed, file_len: self.file.len()? })
    }
}
