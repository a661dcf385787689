//! A file system whose user dies at a chosen write: a kill from outside comes when it comes, and
//! hardly ever in the moments in which a dataset is neither old nor new.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use esker_store::{File, FileLayer, Layer, LocalStore, Result, Store};

/// Writes that are left; nobody dies before they are counted.
#[derive(Debug, Clone)]
pub(crate) struct Mortal(Arc<AtomicI64>);

#[derive(Debug)]
struct MortalFile(Arc<dyn File>, Mortal);

impl Mortal {
    pub(crate) fn new() -> Mortal {
        Mortal(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// The process is killed instead of the write after so many others.
    pub(crate) fn dies_after(&self, writes: u64) {
        self.0.store(writes as i64, Ordering::SeqCst);
    }

    fn count(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) <= 0 {
            let own = std::process::id().to_string();
            let _ = Command::new("kill").args(["-KILL", &own]).status();
            loop {
                std::thread::park();
            }
        }
    }
}

impl Layer for Mortal {
    fn below(&self) -> &dyn Store {
        &LocalStore
    }

    fn cover(&self, _path: &Path, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(MortalFile(file, self.clone()))
    }
}

impl FileLayer for MortalFile {
    fn below(&self) -> &dyn File {
        &*self.0
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.1.count();
        self.0.write_at(offset, bytes)
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.1.count();
        self.0.set_len(len)
    }
}
