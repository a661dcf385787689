//! Many files, few of them open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Access, File, Result, Store};

/// Opens files for reading when they are read, and closes those that were not for the longest
/// time when too many are open.
#[derive(Debug)]
pub struct ReadPool {
    store: Arc<dyn Store>,
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<PathBuf, (Arc<dyn File>, u64)>,
    clock: u64,
}

/// A file of a [`ReadPool`].
#[derive(Debug)]
struct Pooled {
    pool: Arc<ReadPool>,
    path: PathBuf,
}

impl ReadPool {
    /// At most `most` files of `store` are open at once.
    pub fn new(store: Arc<dyn Store>, most: usize) -> Arc<ReadPool> {
        Arc::new(ReadPool { store, most: most.max(1), open: Mutex::default() })
    }

    /// The file of this name, which need not be there before it is read.
    pub fn file(self: &Arc<Self>, path: &Path) -> Arc<dyn File> {
        Arc::new(Pooled { pool: self.clone(), path: path.to_path_buf() })
    }

    fn opened(&self, path: &Path) -> Result<Arc<dyn File>> {
        // The lock is held while a file is opened: rarely, and then others would open it too.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clock += 1;
        let now = open.clock;
        if let Some((file, used)) = open.files.get_mut(path) {
            *used = now;
            return Ok(file.clone());
        }
        if open.files.len() >= self.most {
            let oldest = open.files.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                open.files.remove(&oldest);
            }
        }
        let file = self.store.open(path, Access::Read)?;
        open.files.insert(path.to_path_buf(), (file.clone(), now));
        Ok(file)
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
        self.pool.opened(&self.path)?.read_at(offset, buf)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(self.refused("write"))
    }

    fn len(&self) -> Result<u64> {
        self.pool.opened(&self.path)?.len()
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
                assert!(pool.open.lock().unwrap().files.len() <= 3);
            }
        }
        assert!(files[0].write_at(0, b"x").is_err());
    }
}
