//! How a dataset is created and opened.

use std::sync::Arc;
use std::time::Duration;

use esker_comm::{Communicator, SelfComm};
use esker_format::{Alignment, Version};
use esker_store::{LocalStore, Store};

use crate::held::{After, Held};
use crate::hints::{Hints, Layout};
use crate::layout::Room;

/// What values that nobody wrote are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FillMode {
    /// Fill values: the variable's `_FillValue`, or the type's default. They are written when
    /// a variable is defined and when records come into being.
    #[default]
    Fill,
    /// Unspecified (zeros, in a new file). Saves writing everything twice; for programs that
    /// write every element.
    NoFill,
}

/// How to create a dataset.
#[derive(Debug, Clone)]
pub struct CreateOptions {
    pub(crate) version: Version,
    pub(crate) layout: Option<Layout>,
    pub(crate) clobber: bool,
    pub(crate) fill: FillMode,
    pub(crate) fill_grown: bool,
    pub(crate) short_file: bool,
    pub(crate) raw: bool,
    pub(crate) blobs: bool,
    pub(crate) align: Alignment,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Arc<dyn Communicator>,
    pub(crate) hints: Hints,
    /// Ways of storing variables beside those that every dataset may have.
    pub(crate) rooms: Vec<Arc<dyn Room>>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions {
            version: Version::Cdf5,
            layout: None,
            clobber: true,
            fill: FillMode::Fill,
            fill_grown: true,
            short_file: false,
            raw: false,
            blobs: false,
            align: Alignment::default(),
            store: Arc::new(LocalStore),
            comm: Arc::new(SelfComm::new()),
            hints: Hints::default(),
            rooms: Vec::new(),
        }
    }
}

impl CreateOptions {
    /// CDF-5, replacing a file of the same name, with fill values, packed.
    pub fn new() -> CreateOptions {
        CreateOptions::default()
    }

    /// The file version.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// What it is on disk; by default a classic file. The hint `esker_layout` says the same, and gives
    /// way to this.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// The hints, with what other options say of them, and the environment's on top.
    pub(crate) fn all_hints(&mut self) -> Hints {
        let mut hints = std::mem::take(&mut self.hints);
        if let Some(layout) = self.layout {
            let name = match layout {
                Layout::Classic => "classic",
                Layout::Log => "log",
            };
            hints.set("esker_layout", name);
        }
        hints.with_environment()
    }

    /// Whether a file of the same name is replaced; if not, it is an error.
    pub fn clobber(mut self, clobber: bool) -> Self {
        self.clobber = clobber;
        self
    }
}

/// How to open a dataset.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub(crate) writable: bool,
    pub(crate) container_version: Option<u64>,
    /// Which version is waited for.
    pub(crate) after: Option<After>,
    /// Whether all of it is one transaction.
    pub(crate) held: Option<Held>,
    /// Whether a burst buffer may stand before it.
    pub(crate) burst: bool,
    pub(crate) fill: FillMode,
    pub(crate) fill_grown: bool,
    pub(crate) short_file: bool,
    pub(crate) raw: bool,
    pub(crate) blobs: bool,
    pub(crate) align: Alignment,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Arc<dyn Communicator>,
    pub(crate) hints: Hints,
    /// Ways of storing variables beside those that every dataset may have.
    pub(crate) rooms: Vec<Arc<dyn Room>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            writable: false,
            container_version: None,
            after: None,
            held: None,
            burst: true,
            fill: FillMode::Fill,
            fill_grown: true,
            short_file: false,
            raw: false,
            blobs: false,
            align: Alignment::default(),
            store: Arc::new(LocalStore),
            comm: Arc::new(SelfComm::new()),
            hints: Hints::default(),
            rooms: Vec::new(),
        }
    }
}

impl OpenOptions {
    /// For reading, from the local file system.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Which version of a container to read, instead of the newest.
    pub fn container_version(mut self, version: u64) -> Self {
        self.container_version = Some(version);
        self
    }

    /// Waits until there is a version of a container behind this one, and reads that: the first that can be opened and is there for more than
    /// a name. With 0 the container itself may come into being meanwhile. After `timeout` it is an error
    /// ([`Error::NoVersionYet`](crate::Error::NoVersionYet)); `None` waits for ever. Rank 0 looks, the others sleep.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("run.esk");
    /// Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?.close()?;
    /// let first = Dataset::open_with(&path, OpenOptions::new().after(0, None))?;
    /// assert_eq!(first.container_version(), Some(1));
    /// let second = OpenOptions::new().after(1, Some(Duration::ZERO));
    /// assert!(matches!(Dataset::open_with(&path, second), Err(Error::NoVersionYet { .. })));
    /// # Ok(()) }
    /// ```
    pub fn after(mut self, version: u64, timeout: Option<Duration>) -> Self {
        self.after = Some(After { version, timeout });
        self
    }

    /// Whether it can be changed.
    pub fn writable(mut self, writable: bool) -> Self {
        self.writable = writable;
        self
    }
}

/// What creating and opening have in common.
macro_rules! shared_options {
    ($options:ident) => {
        impl $options {
            /// The fill mode of variables that do not choose their own.
            pub fn fill(mut self, fill: FillMode) -> Self {
                self.fill = fill;
                self
            }

            /// Whether records that come into being are filled, in variables whose mode is
            /// [`FillMode::Fill`] (the default). If not, [`Dataset::fill_record`](crate::Dataset::fill_record)
            /// does it, as in PnetCDF.
            pub fn fill_grown(mut self, fill_grown: bool) -> Self {
                self.fill_grown = fill_grown;
                self
            }

            /// Whether the file may end where the last written value does, as PnetCDF's do. Then values
            /// beyond its end read as zeros, and are no error.
            pub fn short_file(mut self, short_file: bool) -> Self {
                self.short_file = short_file;
                self
            }

            /// Whether decomposed and chunked variables are seen as they are stored, as blobs and
            /// anchors, instead of as the arrays they stand for: for programs that look at files as
            /// they are.
            pub fn raw(mut self, raw: bool) -> Self {
                self.raw = raw;
                self
            }

            /// Whether decomposed variables are seen as they are stored, one blob after the other,
            /// and chunked ones as arrays: for programs that show or copy files.
            pub fn blobs(mut self, blobs: bool) -> Self {
                self.blobs = blobs;
                self
            }

            /// How the data section is aligned when it is placed: in a new dataset, and where a
            /// redefinition has to move it.
            pub fn align(mut self, align: Alignment) -> Self {
                self.align = align;
                self
            }

            /// Where the file is: another store than the local file system.
            pub fn store(mut self, store: Arc<dyn Store>) -> Self {
                self.store = store;
                self
            }

            /// The ranks that have the dataset together; by default this process alone. The
            /// communicator is duplicated, so that its own messages are not disturbed
            /// ([`Communicator::share`]).
            pub fn comm(mut self, comm: Arc<dyn Communicator>) -> Self {
                self.comm = comm;
                self
            }

            /// How data are moved. The environment's hints come on top of these.
            pub fn hints(mut self, hints: Hints) -> Self {
                self.hints = hints;
                self
            }
        }
    };
}

shared_options!(CreateOptions);
shared_options!(OpenOptions);
