//! Segments whose calls fail before or after they are carried out, arrive late or twice, are interrupted by others, and whose lists
//! are old.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use esker_store::{MemorySegments, Published, Result, Segment, Segments, StoreError};

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It fails, and nothing has happened.
    Before,
    /// It fails, and has been carried out.
    After,
    /// It is carried out twice.
    Twice,
    /// It fails, and a publication is carried out so many calls later.
    Late(u64),
    /// What the caller dies of: it and all that follow fail, until somebody else comes.
    Death,
}

/// Something that others do in the middle of a call.
pub(crate) type Interruption = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    calls: u64,
    troubles: BTreeMap<u64, Trouble>,
    interruptions: BTreeMap<u64, Interruption>,
    late: Vec<(u64, String, Vec<u8>)>,
    dead: bool,
    /// How many names at the end of a list are not told.
    stale: usize,
}

/// Segments with troubles.
#[derive(Clone, Default)]
pub(crate) struct Lossy {
    pub(crate) inner: MemorySegments,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Lossy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lossy")
    }
}

impl Lossy {
    pub(crate) fn troubles(&self, troubles: impl IntoIterator<Item = (u64, Trouble)>) {
        self.state.lock().unwrap().troubles.extend(troubles);
    }

    /// Others do something at this call.
    pub(crate) fn interrupt(&self, call: u64, what: Interruption) {
        self.state.lock().unwrap().interruptions.insert(call, what);
    }

    /// Somebody else comes: the store answers again.
    pub(crate) fn revive(&self) {
        self.state.lock().unwrap().dead = false;
    }

    pub(crate) fn stale(&self, names: usize) {
        self.state.lock().unwrap().stale = names;
    }

    pub(crate) fn calls(&self) -> u64 {
        self.state.lock().unwrap().calls
    }

    fn step(&self) -> Option<Trouble> {
        let (trouble, interruption) = {
            let mut state = self.state.lock().unwrap();
            let call = state.calls;
            state.calls += 1;
            let due: Vec<_> = state.late.extract_if(.., |(at, ..)| *at <= call).collect();
            for (_, key, bytes) in due {
                let _ = self.inner.publish(&key, &bytes, true);
            }
            let trouble =
                if state.dead { Some(Trouble::Death) } else { state.troubles.remove(&call) };
            state.dead |= trouble == Some(Trouble::Death);
            (trouble, state.interruptions.remove(&call))
        };
        if let Some(interruption) = interruption {
            interruption();
        }
        trouble
    }

    fn failure(name: &str) -> StoreError {
        StoreError::new(name, "call", ErrorKind::TimedOut.into())
    }

    fn with<T>(&self, name: &str, call: impl Fn() -> Result<T>) -> Result<T> {
        match self.step() {
            None => call(),
            Some(Trouble::Twice) => {
                let first = call();
                let _ = call();
                first
            }
            Some(Trouble::After) => call().and_then(|_| Err(Self::failure(name))),
            Some(Trouble::Before | Trouble::Late(_) | Trouble::Death) => Err(Self::failure(name)),
        }
    }
}

impl Segments for Lossy {
    fn create(&self, name: &str) -> Result<Box<dyn Segment>> {
        let made = self.with(name, || self.inner.create(name))?;
        Ok(Box::new(LossySegment { of: self.clone(), name: name.to_string(), inner: made }))
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        self.with(name, || self.inner.read(name, range.clone()))
    }

    fn len(&self, name: &str) -> Result<Option<u64>> {
        self.with(name, || self.inner.len(name))
    }

    fn publish(&self, key: &str, bytes: &[u8], durable: bool) -> Result<Published> {
        let call = self.calls();
        let late = match self.state.lock().unwrap().troubles.get(&call) {
            Some(Trouble::Late(by)) => Some(call + by),
            _ => None,
        };
        if let Some(due) = late {
            self.state.lock().unwrap().late.push((due, key.to_string(), bytes.to_vec()));
        }
        self.with(key, || self.inner.publish(key, bytes, durable))
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.with(name, || self.inner.sync(name))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let stale = self.state.lock().unwrap().stale;
        self.with(folder, || {
            let mut names = self.inner.list(folder)?;
            names.truncate(names.len().saturating_sub(stale));
            Ok(names)
        })
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.with(name, || self.inner.remove(name))
    }
}

#[derive(Debug)]
struct LossySegment {
    of: Lossy,
    name: String,
    inner: Box<dyn Segment>,
}

impl Segment for LossySegment {
    fn append(&mut self, part: &[u8]) -> Result<()> {
        match self.of.step() {
            // One writer appends to its own: a part is there or it is not.
            None | Some(Trouble::Twice) => self.inner.append(part),
            Some(Trouble::After) => {
                self.inner.append(part).and_then(|()| Err(Lossy::failure(&self.name)))
            }
            Some(_) => Err(Lossy::failure(&self.name)),
        }
    }

    fn sync(&mut self) -> Result<()> {
        match self.of.step() {
            None | Some(Trouble::Twice) => self.inner.sync(),
            Some(_) => Err(Lossy::failure(&self.name)),
        }
    }
}
