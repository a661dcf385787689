//! A file on a device that may be full.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use esker_store::{File, Result, StoreError};

/// What is kept of one write at most: what a log gathers before it writes. Longer payloads come
/// straight from the caller, who still has them.
const KEPT: usize = 1 << 20;

/// Whether a device, or what a user may have of it, is full.
pub(super) fn is_full(error: &StoreError) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Keeps in memory what the device had no room for, so that a log whose device is full is whole
/// to its readers. Whoever appends looks at [`Patient::is_full`], and goes elsewhere.
#[derive(Debug)]
pub(crate) struct Patient {
    file: Arc<dyn File>,
    full: AtomicBool,
    /// Writes that found no room, with their places, in order.
    kept: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Patient {
    pub(crate) fn new(file: Arc<dyn File>) -> Arc<Patient> {
        Arc::new(Patient { file, full: AtomicBool::new(false), kept: Mutex::default() })
    }

    /// Whether the device had no room for something.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Nobody needs what was kept any more.
    pub(crate) fn forget(&self) {
        self.kept().clear();
        self.full.store(false, Ordering::Relaxed);
    }

    /// What was kept of these bytes is older than what the device has there.
    fn supersede(&self, from: u64, to: u64) {
        let mut kept = self.kept();
        let left = kept.drain(..).flat_map(|(at, bytes)| {
            let place = |offset: u64| (offset.saturating_sub(at) as usize).min(bytes.len());
            let (before, after) = (bytes[..place(from)].to_vec(), bytes[place(to)..].to_vec());
            [(at, before), (at.max(to), after)]
        });
        *kept = left.filter(|(_, bytes)| !bytes.is_empty()).collect();
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<(u64, Vec<u8>)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for Patient {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut n = self.file.read_at(offset, buf)?;
        if !self.is_full() {
            return Ok(n);
        }
        for (at, bytes) in self.kept().iter() {
            let from = offset.max(*at);
            let to = (offset + buf.len() as u64).min(at + bytes.len() as u64);
            if from < to {
                let part = &bytes[(from - at) as usize..(to - at) as usize];
                let start = (from - offset) as usize;
                // What the file lacks before it was never written.
                buf[n.min(start)..start].fill(0);
                buf[start..start + part.len()].copy_from_slice(part);
                n = n.max(start + part.len());
            }
        }
        Ok(n)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.file.write_at(offset, bytes) {
            Err(error) if is_full(&error) => {
                self.full.store(true, Ordering::Relaxed);
                if bytes.len() > KEPT {
                    return Err(error);
                }
                self.kept().push((offset, bytes.to_vec()));
                Ok(())
            }
            Ok(()) if self.is_full() => {
                self.supersede(offset, offset + bytes.len() as u64);
                Ok(())
            }
            other => other,
        }
    }

    fn len(&self) -> Result<u64> {
        let kept = self.kept().iter().map(|(at, bytes)| at + bytes.len() as u64).max();
        Ok(self.file.len()?.max(kept.unwrap_or(0)))
    }

    /// What was kept of what stays is tried again: there may be room now.
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)?;
        let mut kept = std::mem::take(&mut *self.kept());
        kept.retain_mut(|(at, bytes)| {
            bytes.truncate(len.saturating_sub(*at) as usize);
            !bytes.is_empty()
        });
        self.full.store(false, Ordering::Relaxed);
        kept.iter().try_for_each(|(at, bytes)| self.write_at(*at, bytes))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn block_size(&self) -> u64 {
        self.file.block_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_store::{CreateMode, Fault, FaultyStore, MemoryStore, Store};

    #[test]
    fn what_found_no_room_is_read_all_the_same() {
        for fault in [
            Fault::Fail(ErrorKind::StorageFull),
            Fault::FailHalf(ErrorKind::StorageFull),
            Fault::FailHalf(ErrorKind::QuotaExceeded),
        ] {
            let store = FaultyStore::new(MemoryStore::default(), 2, fault);
            let file = store.create("f".as_ref(), CreateMode::New).unwrap();
            let file = Patient::new(file);
            file.write_at(0, b"first ").unwrap();
            assert!(!file.is_full());
            file.write_at(6, b"second").unwrap();
            assert!(file.is_full());
            assert_eq!(file.len().unwrap(), 12);
            let mut bytes = [9; 20];
            assert_eq!(file.read_at(2, &mut bytes).unwrap(), 10);
            assert_eq!(&bytes[..10], b"rst second");
            file.set_len(3).unwrap();
            assert!(!file.is_full());
            assert_eq!(file.read_at(0, &mut bytes).unwrap(), 3);
        }
    }

    #[test]
    fn what_stays_of_what_found_no_room_is_written_when_there_is_some() {
        let fault = Fault::Fail(ErrorKind::StorageFull);
        let store = FaultyStore::new(MemoryStore::default(), 1, fault);
        let file = Patient::new(store.create("f".as_ref(), CreateMode::New).unwrap());
        file.write_at(0, b"head and more").unwrap();
        assert!(file.is_full());
        file.set_len(4).unwrap();
        assert!(!file.is_full());
        let mut bytes = [9; 20];
        assert_eq!(file.file.read_at(0, &mut bytes).unwrap(), 4);
        assert_eq!(&bytes[..4], b"head");
    }

    #[test]
    fn what_the_device_takes_later_is_newer_than_what_was_kept() {
        let fault = Fault::Fail(ErrorKind::StorageFull);
        let store = FaultyStore::new(MemoryStore::default(), 1, fault);
        let file = Patient::new(store.create("f".as_ref(), CreateMode::New).unwrap());
        file.write_at(2, b"kept for now").unwrap();
        file.write_at(7, b"FOR").unwrap();
        let mut bytes = [9; 20];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), 14);
        assert_eq!(&bytes[..14], b"\0\0kept FOR now");
        file.set_len(12).unwrap();
        assert_eq!(file.file.read_at(0, &mut bytes).unwrap(), 12);
        assert_eq!(&bytes[..12], b"\0\0kept FOR n");
    }

    #[test]
    fn a_long_payload_stays_with_the_caller() {
        let fault = Fault::Fail(ErrorKind::StorageFull);
        let store = FaultyStore::new(MemoryStore::default(), 1, fault);
        let file = Patient::new(store.create("f".as_ref(), CreateMode::New).unwrap());
        assert!(file.write_at(0, &vec![1; KEPT + 1]).is_err());
        assert!(file.is_full());
        assert_eq!(file.len().unwrap(), 0);
    }
}
