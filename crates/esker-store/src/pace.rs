//! A store that is as slow as one wants to measure.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{File, FileLayer, Layer, Result, Store};

/// Wraps a store whose files read and write at most so many bytes a second: a call returns no earlier. Each call waits
/// for itself, so that a store for each rank gives each rank its own speed.
#[derive(Debug, Clone)]
pub struct PacedStore<S> {
    inner: S,
    bytes_per_second: f64,
}

impl<S: Store> PacedStore<S> {
    /// `inner` at this speed, which is more than zero.
    pub fn new(inner: S, bytes_per_second: f64) -> Self {
        PacedStore { inner, bytes_per_second }
    }
}

impl<S: Store + Clone> Layer for PacedStore<S> {
    fn below(&self) -> &dyn Store {
        &self.inner
    }

    fn cover(&self, _: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(PacedFile { inner, bytes_per_second: self.bytes_per_second })
    }
}

#[derive(Debug)]
struct PacedFile {
    inner: Arc<dyn File>,
    bytes_per_second: f64,
}

impl PacedFile {
    fn pace<T>(&self, bytes: usize, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        let done = call();
        let least = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_second);
        std::thread::sleep(least.unwrap_or_default().saturating_sub(begin.elapsed()));
        done
    }
}

impl FileLayer for PacedFile {
    fn below(&self) -> &dyn File {
        &*self.inner
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.pace(buf.len(), || self.inner.read_at(offset, buf))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.pace(bytes.len(), || self.inner.write_at(offset, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateMode, MemoryStore};

    #[test]
    fn a_call_takes_as_long_as_its_bytes_and_does_what_it_says() {
        let store = PacedStore::new(MemoryStore::default(), 1e6);
        let file = store.create(Path::new("/a"), CreateMode::Truncate).expect("a file");
        let begin = Instant::now();
        file.write_at(0, &[7; 50_000]).expect("a write");
        assert!(begin.elapsed() >= Duration::from_millis(50));
        let (begin, mut found) = (Instant::now(), [0; 20_000]);
        assert_eq!(file.read_at(10, &mut found).expect("a read"), 20_000);
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert_eq!(found, [7; 20_000]);
    }
}
