//! Checkpoints for those who carry out a schedule themselves.

use std::path::Path;
use std::sync::Arc;

use esker_codec::Scratch;
use esker_store::Store;

use crate::about::About;
use crate::error::{AdjointError, Result};
use crate::filters::Filters;
use crate::folder::Folder;
use crate::model::{ArrayMut, Layout};
use crate::schedule::Place;
use crate::segment::{self, Kind};
use crate::tiers::Tiers;

/// A place for encoded states by step, in memory and on disk, that never holds more bytes than it may.
#[derive(Debug)]
pub struct Vault {
    tiers: Tiers,
    filters: Filters,
    scratch: Scratch,
}

impl Vault {
    /// A vault of so many bytes in memory and in a folder.
    pub fn new(
        memory: u64,
        disk: u64,
        folder: Option<(Arc<dyn Store>, &Path)>,
        filters: Filters,
    ) -> Result<Vault> {
        let (mut limits, mut opened) = ([memory, 0], None);
        if let Some((store, path)) = folder {
            let about = About {
                identity: u64::from(std::process::id()),
                ranks: 1,
                steps: 0,
                budgets: [memory, disk],
                filters: filters.to_text(),
                state: Vec::new(),
                fingerprint: 0,
            };
            Folder::prepare(&store, path, &about)?;
            opened = Some(Folder::create(&store, path, &about, 0)?);
            limits[1] = disk;
        }
        let scratch = Scratch::new();
        Ok(Vault { tiers: Tiers::new(opened, limits, true), filters, scratch })
    }

    /// Keeps arrays under a step, in place of what is kept there; gives the place, memory first. An error if there
    /// is no room.
    pub fn put(&mut self, step: u64, arrays: &[ArrayMut<'_>]) -> Result<Place> {
        let key = (step, Kind::Restart);
        self.tiers.drop_key(&key)?;
        let (title, filters) = (self.tiers.title(&key), &self.filters);
        let layouts: Vec<Layout> = arrays.iter().map(ArrayMut::layout).collect();
        let values = layouts.iter().zip(arrays).map(|(layout, array)| (layout, &array.bytes[..]));
        let pipelines = filters.for_state(values.clone(), &mut self.scratch);
        let bytes = segment::encode(&title, values, &pipelines, Vec::new(), &mut self.scratch)?;
        self.tiers.settle()?;
        let (used, limits, length) = (self.tiers.used(), self.tiers.limits, bytes.len() as u64);
        let left = [limits[0].saturating_sub(used[0]), limits[1].saturating_sub(used[1])];
        let place = match (length <= left[0], length <= left[1] && !self.tiers.disk_is_full) {
            (true, _) => Place::Memory,
            (false, true) => Place::Disk,
            (false, false) => {
                let [memory, disk] = left;
                return Err(AdjointError::OverBudget { step, bytes: length, memory, disk });
            }
        };
        self.tiers.keep(key, place, bytes, false)?;
        Ok(place)
    }

    /// Fills arrays with what is kept under a step.
    pub fn get(&mut self, step: u64, arrays: Vec<ArrayMut<'_>>) -> Result<()> {
        let key = (step, Kind::Restart);
        let place = self.tiers.place_of(&key);
        let place = place.ok_or(AdjointError::NotKept { step, place: Place::Memory })?;
        let bytes = self.tiers.load(&key)?;
        let stored = segment::open(&bytes, &self.tiers.title(&key), place)?;
        segment::restore(&stored, arrays, step, place, &mut self.scratch)?;
        self.tiers.give_back(bytes);
        Ok(())
    }

    /// Gives up what is kept under a step.
    pub fn give_up(&mut self, step: u64) -> Result<()> {
        self.tiers.drop_key(&(step, Kind::Restart))
    }

    /// Bytes in memory and on disk.
    pub fn used(&self) -> [u64; 2] {
        self.tiers.used()
    }

    /// Gives everything up, and says in the folder that the run is done.
    pub fn clear(&mut self) -> Result<()> {
        for key in self.tiers.keys() {
            self.tiers.drop_key(&key)?;
        }
        match &mut self.tiers.folder {
            Some(folder) => folder.log(crate::journal::Event::EndReverse),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_store::MemoryStore;

    #[test]
    fn a_vault_holds_no_more_than_it_may_and_gives_back_what_it_got() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let folder = Some((store, Path::new("v.chk")));
        let mut vault = Vault::new(2100, 1100, folder, Filters::default()).unwrap();
        let put = |vault: &mut Vault, step: u64| {
            let mut values = vec![step as f64; 100];
            vault.put(step, &[ArrayMut::doubles("u", &[100], &mut values)])
        };
        assert_eq!(put(&mut vault, 1).unwrap(), Place::Memory);
        assert_eq!(put(&mut vault, 2).unwrap(), Place::Memory);
        assert_eq!(put(&mut vault, 3).unwrap(), Place::Disk);
        let error = put(&mut vault, 4).unwrap_err().to_string();
        assert!(error.contains("step 4"), "{error}");
        for step in [1, 2, 3] {
            let mut values = vec![0.0; 100];
            vault.get(step, vec![ArrayMut::doubles("u", &[100], &mut values)]).unwrap();
            assert_eq!(values, vec![step as f64; 100]);
        }
        vault.give_up(1).unwrap();
        assert_eq!(put(&mut vault, 4).unwrap(), Place::Memory);
        vault.clear().unwrap();
        assert_eq!(vault.used(), [0, 0]);
    }
}
