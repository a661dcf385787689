//! Transactions: everything that is written and defined in one becomes a version at once, or nothing of it does.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use esker_comm::Communicator;
use esker_store::Store;

use crate::container::{self, Container};
use crate::dataset::Dataset;
use crate::define::Define;
use crate::error::{Error, Result};
use crate::held::{Committed, Held};
use crate::hints::Hints;
use crate::options::OpenOptions;

/// How a transaction begins. Rank 0's counts.
#[derive(Debug, Clone, Default)]
pub struct BeginOptions {
    open: OpenOptions,
    held: Held,
    message: Option<String>,
}

impl BeginOptions {
    /// Of the newest version, by this process alone, to get the next number, without waiting for the disk.
    pub fn new() -> BeginOptions {
        BeginOptions::default()
    }

    /// With these options of what is opened: hints, a store, ranks, a base ([`OpenOptions::container_version`]).
    pub fn open(mut self, options: OpenOptions) -> Self {
        self.open = options;
        self
    }

    /// The number of the version that it becomes. Such transactions are committed in any order, by one program or by several, and appear in that of their numbers, which
    /// also decides which values win: there are no conflicts among them. A number that is not used must be given up ([`skip`](crate::skip), [`Transaction::abort`]), or those behind
    /// it wait for ever. 0 is the next number, as without this.
    pub fn number(mut self, number: u64) -> Self {
        self.held.number = Some(number).filter(|number| *number > 0);
        self
    }

    /// The version that it is made for: what is read in it, and since when others may have changed what it changes. By default the newest.
    pub fn base(mut self, version: u64) -> Self {
        self.open = self.open.container_version(version);
        self
    }

    /// What is said of the version: [`Dataset::set_message`].
    pub fn message(mut self, message: &str) -> Self {
        self.message = Some(message.to_string());
        self
    }

    /// A number that it needs: it becomes a version if that one does, and is given up if that one is. May be called several times.
    pub fn needs(mut self, number: u64) -> Self {
        self.held.needs.push(number);
        self
    }

    /// Whether the commit waits until the version, or what is prepared of it, is safe from a loss of power.
    pub fn durable(mut self, durable: bool) -> Self {
        self.held.durable = durable;
        self
    }

    /// The ranks that take part: [`OpenOptions::comm`].
    pub fn comm(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.open = self.open.comm(comm);
        self
    }

    /// Hints: [`OpenOptions::hints`].
    pub fn hints(mut self, hints: Hints) -> Self {
        self.open = self.open.hints(hints);
        self
    }

    /// Where the container is: [`OpenOptions::store`].
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.open = self.open.store(store);
        self
    }
}

/// A container in which a transaction is going on: a [`Dataset`], and a way to end it.
///
/// What is put and defined is seen by its own ranks, and by nobody else until [`Transaction::commit`]; then it is one version, or nothing of it is
/// there. Several may go on at once, of one container or of several, over the same or different ranks. One that is dropped, or whose process dies, has not happened: no recovery
/// brings it back.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
/// let x = def.add_dim("x", DimLen::Fixed(3))?;
/// let t = def.add_var("t", ExternalType::Float, &[x])?;
/// def.enddef()?.close()?;
///
/// // Two numbers, in the wrong order.
/// let mut later = Transaction::begin(&path, BeginOptions::new().number(3))?;
/// later.put(t, &Selection::element(&[0]), &[3.0f32])?;
/// assert_eq!(later.commit()?, Committed::Prepared(3));
/// let mut sooner = Transaction::begin(&path, BeginOptions::new().number(2).message("step 2"))?;
/// sooner.put(t, &Selection::all(), &[2.0f32, 2.0, 2.0])?;
/// assert_eq!(sooner.commit()?, Committed::Version(2));
///
/// let ds = Dataset::open(&path)?;
/// assert_eq!(ds.container_version(), Some(3));
/// assert_eq!(ds.get::<f32>(t, &Selection::all())?, [3.0, 2.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Transaction {
    /// Gone only while it is defined, and when that fails for good.
    dataset: Box<Dataset>,
}

impl Transaction {
    /// Begins a transaction on the container at `path`. Collective.
    pub fn begin(path: impl AsRef<Path>, options: BeginOptions) -> Result<Transaction> {
        Ok(Transaction { dataset: Box::new(Dataset::begin(path, options)?) })
    }

    /// Changes definitions, as a part of the transaction: `define` gets them in define mode. Collective. After a failure of a definition nothing can be committed any more.
    pub fn define(self, define: impl FnOnce(&mut Define) -> Result<()>) -> Result<Transaction> {
        let mut draft = self.dataset.redef()?;
        if let Err(error) = define(&mut draft) {
            draft.abort()?;
            return Err(error);
        }
        match draft.enddef() {
            Ok(dataset) => Ok(Transaction { dataset: Box::new(dataset) }),
            Err(failed) => {
                let (draft, error) = (failed.define, *failed.error);
                draft.abort()?;
                Err(error)
            }
        }
    }

    /// Commits it: [`Dataset::commit`]. What failed can be tried again, or given up. Afterwards the values can be read, and nothing can be written. Collective.
    pub fn commit(&mut self) -> Result<Committed> {
        self.dataset.commit()?;
        self.dataset.outcome().ok_or(Error::Garbled)
    }

    /// Gives it up, and the number that it has: [`Dataset::abort`]. Any rank may, while others commit; then it is given up on all of them, and those who
    /// commit have the error [`Error::Aborted`]. Collective, together with [`Transaction::commit`].
    pub fn abort(self) -> Result<()> {
        self.dataset.abort()
    }

    /// The dataset, in which the transaction goes on: its close commits it.
    pub fn into_dataset(self) -> Dataset {
        *self.dataset
    }
}

impl Deref for Transaction {
    type Target = Dataset;

    fn deref(&self) -> &Dataset {
        &self.dataset
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Dataset {
        &mut self.dataset
    }
}

impl Dataset {
    /// Begins a transaction on the container at `path`, as [`Transaction::begin`] does. Until [`Dataset::commit`] or [`Dataset::close`], which commit it, nobody else sees what
    /// is put and defined. [`Dataset::sync`] makes no version: it only brings what was written into the files. Collective.
    pub fn begin(path: impl AsRef<Path>, options: BeginOptions) -> Result<Dataset> {
        let BeginOptions { mut open, held, message } = options;
        open = open.writable(true);
        open.held = Some(held);
        let mut dataset = Dataset::open_with(path, open)?;
        if let Some(message) = message {
            dataset.set_message_all(Some(&message))?;
            // Whatever is said of a version in between and taken back.
            dataset.ground.base.hints.message = message;
        }
        Ok(dataset)
    }

    /// Whether it was begun as a transaction, which may be over.
    pub fn is_transaction(&self) -> bool {
        self.ground.base.held.is_some()
    }

    /// A number that the transaction needs, too ([`BeginOptions::needs`]). Rank 0's counts. Fails where there is no transaction that is going on.
    pub fn needs(&mut self, number: u64) -> Result<()> {
        self.require_writable("need a number")?;
        let path = self.path().to_path_buf();
        let Some(held) = &mut self.ground.base.held else {
            let why = "no transaction was begun, and so none can need a number".to_string();
            return Err(Error::Container { path, why });
        };
        held.needs.push(number);
        Ok(())
    }

    /// What became of the transaction that this dataset was begun as; `None` while it is going on, and for all other datasets.
    pub fn outcome(&self) -> Option<Committed> {
        self.layout.get::<Container>().and_then(Container::outcome)
    }

    /// Commits the transaction, unless a rank gives it up. Collective.
    pub(crate) fn commit_held(&mut self) -> Result<()> {
        self.ground.require_own_process()?;
        let ground = &self.ground;
        if let Err(error) = ground.base.agree(Ok(())) {
            // A rank aborts it, and all go with it.
            let given_up = self.give_up_held();
            let Error::OtherRank { rank, .. } = error else { return Err(error) };
            given_up?;
            return Err(Error::Aborted { path: self.path().to_path_buf(), rank });
        }
        self.settle()?;
        let Dataset { ground, layout, .. } = self;
        layout.commit(ground, false)?;
        // It is over: what was committed can be read here.
        ground.base.writable = false;
        Ok(())
    }

    /// Gives the transaction up, together with those who commit it. Collective.
    pub(crate) fn abort_held(mut self) -> Result<()> {
        let path = self.path().to_path_buf();
        let aborted = Error::Aborted { path, rank: self.comm().rank() };
        match self.ground.base.agree::<()>(Err(aborted)) {
            Err(Error::Comm(error)) => Err(Error::Comm(error)),
            _ => self.give_up_held(),
        }
    }

    fn give_up_held(&mut self) -> Result<()> {
        let Dataset { ground, layout, .. } = self;
        let given_up = layout.abort(ground);
        ground.base.writable = false;
        given_up.map(drop)
    }

    /// Brings what a transaction has written into the files. Collective.
    pub(crate) fn write_out(&mut self) -> Result<()> {
        let Dataset { ground, layout, .. } = self;
        match layout.get_mut::<Container>() {
            Some(container) => container.write_out(&ground.base, &mut ground.report),
            None => Ok(()),
        }
    }
}

/// The versions of the container at `path` behind one, as they come: waits for each as [`OpenOptions::after`] does, with the same options. A wait that takes longer than
/// `timeout` ends it.
///
/// ```
/// # use std::time::Duration;
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
/// def.put_attr(Owner::Global, "title", "one")?;
/// def.enddef()?.close()?;
/// let mut seen = Vec::new();
/// for version in esker::follow(&path, 0, Some(Duration::ZERO), OpenOptions::new()) {
///     seen.push(version?.container_version());
/// }
/// assert_eq!(seen, [Some(1)]);
/// # Ok(()) }
/// ```
pub fn follow(
    path: impl AsRef<Path>,
    after: u64,
    timeout: Option<std::time::Duration>,
    options: OpenOptions,
) -> impl Iterator<Item = Result<Dataset>> {
    let path = path.as_ref().to_path_buf();
    let (mut after, mut over) = (after, false);
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        match Dataset::open_with(&path, options.clone().after(after, timeout)) {
            Err(Error::NoVersionYet { .. }) => None,
            Err(error) => {
                over = true;
                Some(Err(error))
            }
            Ok(dataset) => {
                after = dataset.container_version().unwrap_or(after);
                Some(Ok(dataset))
            }
        }
    })
}

/// What the container says of numbers, for programs that choose them.
pub use container::{NumberState, number_state, skip};
