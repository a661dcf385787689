//! Many files, few of them open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::{Access, File, Result, Store};

/// Opens files for reading when they are read, and closes those that were not for the longest
/// time when too many are open.
#[derive(Debug)]
pub struct ReadPool {
    store: Arc<dyn Store>,
    most: usize,
    open: Mutex<HashMap<PathBuf, Arc<Slot>>>,
    /// Counts uses.
    clock: AtomicU64,
}

/// A file that is open.
#[derive(Debug)]
struct Slot {
    file: Arc<dyn File>,
    /// When it was used last.
    used: AtomicU64,
}

/// A file of a [`ReadPool`].
#[derive(Debug)]
struct Pooled {
    pool: Arc<ReadPool>,
    path: PathBuf,
    /// Where it was open the last time, so that its name need not be looked up for every read.
    slot: Mutex<Weak<Slot>>,
}

impl ReadPool {
    /// At most `most` files of `store` are open at once.
    pub fn new(store: Arc<dyn Store>, most: usize) -> Arc<ReadPool> {
        let clock = AtomicU64::new(0);
        Arc::new(ReadPool { store, most: most.max(1), open: Mutex::default(), clock })
    }

    /// The file of this name, which need not be there before it is read.
    pub fn file(self: &Arc<Self>, path: &Path) -> Arc<dyn File> {
        let slot = Mutex::new(Weak::new());
        Arc::new(Pooled { pool: self.clone(), path: path.to_path_buf(), slot })
    }

    fn opened(&self, path: &Path) -> Result<Arc<Slot>> {
        // The lock is held while a file is opened: rarely, and then others would open it too.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = open.get(path) {
            return Ok(slot.clone());
        }
        if open.len() >= self.most {
            let oldest = open.iter().min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                open.remove(&oldest);
            }
        }
        let file = self.store.open(path, Access::Read)?;
        let slot = Arc::new(Slot { file, used: AtomicU64::new(0) });
        open.insert(path.to_path_buf(), slot.clone());
        Ok(slot)
    }
}

impl Pooled {
    fn opened(&self) -> Result<Arc<Slot>> {
        let mut kept = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = match kept.upgrade() {
            Some(slot) => slot,
            None => {
                let slot = self.pool.opened(&self.path)?;
                *kept = Arc::downgrade(&slot);
                slot
            }
        };
        let now = self.pool.clock.fetch_add(1, Ordering::Relaxed);
        slot.used.store(now, Ordering::Relaxed);
        Ok(slot)
    }
}

impl Pooled {
    fn refused(&self, action: &str) -> crate::StoreError {
        let kind = std::io::ErrorKind::PermissionDenied;
        crate::StoreError::new(&self.path, action, kind.into())
    }
}

impl File for Pooled {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.opened()?.file.read_at(offset, buf)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(self.refused("write"))
    }

    fn len(&self) -> Result<u64> {
        self.opened()?.file.len()
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Err(self.refused("setting the length"))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateMode, MemoryStore};

    #[test]
    fn more_files_than_may_be_open_can_be_read() {
        let store = MemoryStore::default();
        let names: Vec<PathBuf> = (0..9).map(|i| PathBuf::from(format!("f{i}"))).collect();
        for (name, i) in names.iter().zip(0u8..) {
            store.create(name, CreateMode::New).unwrap().write_at(0, &[i]).unwrap();
        }
        let pool = ReadPool::new(Arc::new(store), 3);
        let files: Vec<_> = names.iter().map(|name| pool.file(name)).collect();
        for _ in 0..3 {
            for (file, i) in files.iter().zip(0u8..) {
                let mut byte = [99];
                assert_eq!(file.read_at(0, &mut byte).unwrap(), 1);
                assert_eq!(byte, [i]);
                assert!(pool.open.lock().unwrap().len() <= 3);
            }
        }
        assert!(files[0].write_at(0, b"x").is_err());
    }
}
