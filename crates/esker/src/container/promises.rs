//! The container's file of promises: which versions were committed, and which of them were synced.
//!
//! A manifest that is damaged or gone cannot say what it was. Without a second place, a reader would
//! take the version before it for the newest, without a word.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::history::Branch;
use esker_format::log::{Promise, PromiseSlot};
use esker_history::{History, Witness};
use esker_store::{Access, File, Store};

use super::names::{MARK, promises_path};
use super::numbered::promise_promoted;
use crate::error::{Error, Result};

/// Slots that are read at once.
const SLOTS: usize = 64;

/// Empty slots at the end that are passed over: nobody leaves so many.
const MOST_EMPTY: u64 = 1 << 12;

/// The promises that a container has.
#[derive(Debug)]
pub(crate) struct Promises {
    file: Option<Arc<dyn File>>,
    /// The newest version that one speaks of, or 0.
    highest: u64,
}

impl Promises {
    /// Opens them. Whoever lists versions afterwards finds all that are promised here: a commit
    /// gives a version its name first.
    pub(crate) fn open(store: &dyn Store, path: &Path) -> Result<Promises> {
        let path = promises_path(path);
        if !store.exists(&path)? {
            return Ok(Promises { file: None, highest: 0 });
        }
        let file = store.open(&path, Access::Read)?;
        let last = file.len()?.div_ceil(Promise::LEN).saturating_sub(1);
        let mut promises = Promises { file: Some(file), highest: 0 };
        for version in (last.saturating_sub(MOST_EMPTY).max(1)..=last).rev() {
            if let PromiseSlot::Promise(_) = promises.of(version)? {
                promises.highest = version;
                break;
            }
        }
        Ok(promises)
    }

    /// Whether there is a file of them that begins as it should.
    pub(crate) fn are_there(&self) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let mut head = [0; Promise::LEN as usize];
        file.read_at(0, &mut head)?;
        Ok(head == Promise::head())
    }

    /// The newest version that a whole promise speaks of; 0 without one.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// The newest version up to this one that was synced, among the last few thousand; 0 without one.
    pub(crate) fn newest_synced(&self, version: u64) -> Result<u64> {
        let Some(file) = &self.file else { return Ok(0) };
        let mut bytes = vec![0; SLOTS * Promise::LEN as usize];
        let (mut end, lowest) = (version.saturating_add(1), version.saturating_sub(MOST_EMPTY));
        while end > lowest.max(1) {
            let first = end.saturating_sub(SLOTS as u64).max(1);
            let place = Promise::offset(first);
            if place > i64::MAX as u64 - bytes.len() as u64 {
                return Ok(0);
            }
            let n = file.read_at(place, &mut bytes)?;
            let slots = bytes[..n].chunks(Promise::LEN as usize).zip(first..end);
            let synced = slots.filter(|(slot, number)| {
                let slot = PromiseSlot::decode(*number, slot);
                matches!(slot, PromiseSlot::Promise(Promise { durable: true, .. }))
            });
            if let Some((_, number)) = synced.last() {
                return Ok(number);
            }
            end = first;
        }
        Ok(0)
    }

    /// What is said of a version.
    pub(crate) fn of(&self, version: u64) -> Result<PromiseSlot> {
        let Some(file) = &self.file else { return Ok(PromiseSlot::Empty) };
        let mut bytes = [0; Promise::LEN as usize];
        let place = Promise::offset(version);
        // No file is so long.
        if place > i64::MAX as u64 - Promise::LEN {
            return Ok(PromiseSlot::Empty);
        }
        let n = file.read_at(place, &mut bytes)?;
        Ok(PromiseSlot::decode(version, &bytes[..n]))
    }
}

/// Makes the file of promises, if there is none.
pub(super) fn prepare(store: &dyn Store, path: &Path) -> Result<()> {
    let (mark, path) = (path.join(MARK), promises_path(path));
    let file = match store.exists(&path)? {
        true => store.open(&path, Access::ReadWrite)?,
        // Another writer may be making it.
        false => match store.create_like(&path, &mark) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            made => made?,
        },
    };
    let mut there = [0; Promise::LEN as usize];
    file.read_at(0, &mut there)?;
    match there == Promise::head() {
        true => Ok(()),
        false => Ok(file.write_at(0, &Promise::head())?),
    }
}

/// Notes that a version was committed. It has its name, and if it is durable, it is safe.
pub(super) fn promise(store: &dyn Store, path: &Path, promise: Promise) -> Result<()> {
    let file = store.open(&promises_path(path), Access::ReadWrite)?;
    file.write_at(Promise::offset(promise.version), &promise.encode())?;
    if promise.durable {
        file.sync()?;
    }
    Ok(())
}

/// What the promises say to the history: which decisions are missed, and which nobody was promised.
#[derive(Debug)]
pub(crate) struct Trust {
    store: Arc<dyn Store>,
    path: PathBuf,
    highest: u64,
    /// Whether everything that cannot be read may be passed over: that is what a recovery does, after it has told what.
    lenient: bool,
}

impl Trust {
    /// The promises of a container.
    pub(crate) fn new(store: &Arc<dyn Store>, path: &Path, lenient: bool) -> Result<Trust> {
        let highest = Promises::open(&**store, path)?.highest();
        Ok(Trust { store: store.clone(), path: path.to_path_buf(), highest, lenient })
    }

    /// One that knows of numbers up to this.
    pub(crate) fn up_to(mut self, highest: u64) -> Trust {
        self.highest = self.highest.max(highest);
        self
    }

    fn slot(&self, branch: &Branch, number: u64) -> esker_history::Result<PromiseSlot> {
        let path = promises_path(&self.path);
        if *branch != Branch::main() || !self.store.exists(&path)? {
            return Ok(PromiseSlot::Empty);
        }
        let mut bytes = [0; Promise::LEN as usize];
        let n =
            self.store.open(&path, Access::Read)?.read_at(Promise::offset(number), &mut bytes)?;
        Ok(PromiseSlot::decode(number, &bytes[..n]))
    }
}

impl Witness for Trust {
    fn highest(&self, branch: &Branch) -> esker_history::Result<u64> {
        Ok(if *branch == Branch::main() { self.highest } else { 0 })
    }

    fn may_be_lost(
        &self,
        branch: &Branch,
        number: u64,
        is_there: bool,
    ) -> esker_history::Result<bool> {
        Ok(self.lenient
            || match self.slot(branch, number)? {
                PromiseSlot::Promise(promise) => !promise.durable,
                PromiseSlot::Empty => true,
                // Nobody knows what it was.
                PromiseSlot::Damaged => !is_there,
            })
    }

    fn is_another(&self, branch: &Branch, number: u64, sum: u32) -> esker_history::Result<bool> {
        let slot = self.slot(branch, number)?;
        Ok(matches!(slot, PromiseSlot::Promise(promise) if promise.manifest != sum))
    }

    fn promoted(
        &self,
        history: &History,
        branch: &Branch,
        number: u64,
    ) -> esker_history::Result<()> {
        if *branch != Branch::main()
            || matches!(self.slot(branch, number)?, PromiseSlot::Promise(_))
        {
            return Ok(());
        }
        let promised = promise_promoted(&self.store, &self.path, history, number);
        promised.map_err(|error| match error {
            Error::Store(error) => esker_history::Error::Store(error),
            other => esker_history::Error::Wrong(other.to_string()),
        })
    }
}
