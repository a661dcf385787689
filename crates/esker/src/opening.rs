//! Opening a dataset: one rank reads the header, and the others get it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::chunked::{Anchor, writer_of};
use esker_format::{Alignment, DataLayout, Decoded, Header, HeaderState, NumRecs};
use esker_store::{Access, File, Locked, Store};

use crate::base::{Base, agree_with, classic_of, header_as_read, read_header_bytes};
use crate::burst::{Buffered, Burst};
use crate::canonical::Canonical;
use crate::chunked::{ChunkRoom, Chunked};
use crate::commit::Committed;
use crate::common::Common;
use crate::container::{self, Container};
use crate::credit::Credit;
use crate::dataset::Dataset;
use crate::decomposed::{Groups, MapRoom, Spread, require_dataset};
use crate::define::aligned;
use crate::error::{DecompositionError, Error, Result};
use crate::ground::{Ground, Opened};
use crate::journal::{finish_redefinition, remove_journal};
use crate::layout::{Layout, Room, Several};
use crate::options::{FillMode, OpenOptions};
use crate::sound;
use crate::telling::seal_notes;
use crate::volume::Volume;
use crate::writer;

/// Why there is no transaction.
const NO_TRANSACTIONS: &str =
    "only containers have transactions: what is written to a classic file is in it";

impl Dataset {
    /// Opens a dataset for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
        Dataset::open_with(path, OpenOptions::new())
    }

    /// Opens a dataset. Collective. One rank reads the header and the others get it.
    ///
    /// When a redefinition was interrupted by a crash, this finishes it (or, for reading,
    /// looks at the file as if it were finished).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Dataset> {
        let comm = options.comm.share()?;
        let store = options.store;
        let access = if options.writable { Access::ReadWrite } else { Access::Read };
        let hints = options.hints.with_environment();
        let align = aligned(options.align, &hints);
        let mut asked = options.container_version;
        if let Some(after) = options.after {
            asked = Some(container::next_version(&*comm, &store, path.as_ref(), after)?);
        }
        let held = options.held;
        let found = match comm.rank() {
            0 => found(&store, path.as_ref(), access, asked),
            _ => Ok(Found { path: path.as_ref().to_path_buf(), file: None, version: None }),
        };
        let OpenOptions { writable, fill, fill_grown, short_file, .. } = options;
        let (mut file, mut version) = (None, None);
        let own = found.map(|found| {
            let (path, is_container) = (found.path, found.file.is_none());
            file = found.file;
            version = found.version;
            Common {
                path,
                hints,
                align,
                fill,
                fill_grown,
                short_file,
                writable,
                is_container,
                held,
            }
        });
        let (mut base, alike) = Base::new(store, comm, own)?;
        let opened = match file {
            // By the name that it was given here: a rank that does not see the file is an error.
            None if !base.is_container => classic_of(&*base.store, path.as_ref())
                .and_then(|path| Ok(Some(base.store.open(&path, access)?))),
            file => Ok(file),
        };
        let opened = agree_with(&*base.comm, opened.map_err(Error::from), [u64::from(!alike)])?;
        let (file, [differ]) = opened;
        if differ > 0 {
            let why = "some ranks open it for writing and some for reading only";
            return Err(Error::NotAlike { path: base.path, why });
        }
        (base.raw, base.blobs) = (options.raw || base.hints.raw(), options.blobs);
        base.rooms = options.rooms;
        if base.held.is_some() && !base.is_container {
            return Err(Error::Container { path: base.path, why: NO_TRANSACTIONS.to_string() });
        }
        let Some(file) = file else {
            base.has_no_burst_buffer();
            return Dataset::open_container(base, version);
        };
        let mut lock = None;
        let (root, told) = base.told_by_root(|| {
            let (decoded, bytes) = match writable {
                true => {
                    let (decoded, bytes, taken) = header_for_writing(&base, &file)?;
                    lock = taken;
                    (decoded, bytes)
                }
                false => settled_header(&base, &*file)?,
            };
            let file_len = file.len()?;
            if writable {
                sound::require(&base.path, &decoded.header)?;
                base.young.resume(&*file);
            }
            require_dataset(&base, &decoded.header)?;
            let tell = [&file_len.to_le_bytes(), &bytes[..]].concat();
            Ok(((decoded, file_len), tell))
        })?;
        let (decoded, file_len) = match root {
            Some(root) => root,
            None => {
                let (len, bytes) = told.split_first_chunk().ok_or(Error::Garbled)?;
                let len = u64::from_le_bytes(*len);
                let path = base.path.clone();
                let decoded = Header::decode_noting(bytes, len);
                (decoded.map_err(|source| Error::Decode { path, source })?, len)
            }
        };
        let Decoded { header, broken, .. } = decoded;
        let records = header.records(file_len);
        let credit = Credit::of(&header, records, file_len);
        let (committed, header) = joined(&base, file, header)?;
        let fills = vec![None; header.schema.vars.len()];
        let mut opened = dataset(base, (committed, header, records), fills);
        let Dataset { ground, layout, .. } = &mut opened;
        ground.lock = lock;
        if !ground.base.raw {
            seal_notes(&broken).into_iter().for_each(|note| ground.tell(note));
            ground.broken = Arc::new(broken);
        }
        if let Some(chunked) = layout.get_mut::<Chunked>() {
            chunked.compare_tables(ground)?;
        }
        if let Some((var, _)) = ground.broken.first().filter(|_| writable) {
            // Its chunks would be taken for room, and the next header would have a seal that matches.
            ground.require_unbroken(*var)?;
        }
        ground.believe(credit)?;
        if writable {
            layout.mend(ground)?;
        }
        let burst = match options.burst {
            true => Burst::start(&ground.base, &ground.base.path)?,
            false => None,
        };
        opened.stand_behind(burst);
        Ok(opened)
    }

    fn open_container(base: Base, version: Option<u64>) -> Result<Dataset> {
        let (mut container, header) = Container::open(&base, version)?;
        if base.writable {
            container.start(&base)?;
        }
        let records = match header.numrecs {
            NumRecs::Count(records) => records,
            NumRecs::Streaming => 0,
        };
        let fills = vec![None; header.schema.vars.len()];
        let (file, container) = (container.view.clone(), Some(Box::new(container)));
        let committed = Committed {
            file,
            renamed: false,
            container,
            heap: None,
            volume: None,
            lock: None,
            rest: None,
        };
        Ok(dataset(base, (committed, header, records), fills))
    }
}

impl Dataset {
    /// Puts logs before the file, if there are any.
    pub(crate) fn stand_behind(&mut self, burst: Option<Box<Burst>>) {
        let Some(burst) = burst else { return };
        let under = std::mem::replace(&mut self.layout, Box::new(Canonical));
        self.layout = Box::new(Buffered::new(&mut self.ground, burst, under));
    }
}

/// A dataset whose file has this header, and so many records.
pub(crate) fn dataset(
    base: Base,
    (committed, header, records): (Committed, Header, u64),
    fills: Vec<Option<FillMode>>,
) -> Dataset {
    let Committed { file, renamed, container, volume, lock, rest, .. } = committed;
    let found = Opened { file, renamed, volume, lock, header, rest, records };
    let mut ground = Ground::new(base, found, fills);
    let layout = stored_as(&mut ground, container);
    Dataset::new(ground, layout)
}

/// How the variables of a dataset are stored: in a container, or as the header of its file says.
fn stored_as(ground: &mut Ground, container: Option<Box<Container>>) -> Box<dyn Layout> {
    if let Some(mut container) = container {
        container.note(&ground.base.notes);
        (ground.counts, ground.sole) = (false, true);
        return container;
    }
    let own: [&dyn Room; 2] = [&MapRoom, &ChunkRoom];
    let more = ground.base.rooms.clone();
    let rooms = own.into_iter().chain(more.iter().map(|room| &**room));
    let others = rooms.filter_map(|room| room.open(ground)).collect();
    Box::new(Several::new(Box::new(Canonical), others))
}

/// What a path stands for.
struct Found {
    /// Behind links.
    path: PathBuf,
    /// The open file; none for a container.
    file: Option<Arc<dyn File>>,
    /// The version of a container that the path names, or that was asked for.
    version: Option<u64>,
}

fn found(store: &Arc<dyn Store>, path: &Path, access: Access, asked: Option<u64>) -> Result<Found> {
    if container::is_container(&**store, path)? {
        return Ok(Found { path: store.resolve(path)?, file: None, version: asked });
    }
    if let Some((container, version)) = container::version_in_path(&**store, path)? {
        if let Some(asked) = asked.filter(|asked| *asked != version) {
            let why = format!("the path names version {version}, and version {asked} is asked for");
            return Err(Error::Container { path: container, why });
        }
        if access == Access::ReadWrite {
            let why = format!("version {version} is there for ever: it can be read, not written");
            return Err(Error::Container { path: container, why });
        }
        return Ok(Found { path: store.resolve(&container)?, file: None, version: Some(version) });
    }
    let path = classic_of(&**store, path)?;
    let file = store.open(&path, access)?;
    Ok(Found { path: store.resolve(&path)?, file: Some(file), version: None })
}

/// A file with its sub-files, if it has any, and the header of both together.
fn joined(base: &Base, main: Arc<dyn File>, disk: Header) -> Result<(Committed, Header)> {
    let damaged = |why: String| Error::Decomposition {
        path: base.path.clone(),
        what: "its sub-files".to_string(),
        source: DecompositionError::Damaged(why),
    };
    // Whoever made it may have closed it without a sync, and its name with it.
    let renamed = base.writable;
    let Some((schema, groups)) = Groups::expanded(&disk.schema).map_err(damaged)? else {
        let committed = Committed {
            file: main,
            renamed,
            container: None,
            heap: None,
            volume: None,
            lock: None,
            rest: None,
        };
        return Ok((committed, disk));
    };
    let layout = DataLayout::place(&schema, &Alignment::default());
    let layout = layout.map_err(|e| base.schema_error(e))?;
    let header = Header { schema, numrecs: disk.numrecs, layout };
    let records = disk.records(0);
    let spread = Arc::new(Spread::new(base, main, (&header, disk), groups));
    if base.writable {
        base.by_root(|| spread.require_records(records))?;
    }
    let file = spread.clone();
    let volume: Option<Arc<dyn Volume>> = Some(spread);
    let committed =
        Committed { file, renamed, container: None, heap: None, volume, lock: None, rest: None };
    Ok((committed, header))
}

/// The same of a file that is to be written, with its lock if it has one writer at a time.
fn header_for_writing(
    base: &Base,
    file: &Arc<dyn File>,
) -> Result<(Decoded, Vec<u8>, Option<Locked>)> {
    // Before the header is read, which the writer before this one may be changing.
    let lock = Locked::take(file)?;
    if lock.is_err() && base.journal(&**file)?.is_some() {
        // Who redefines it is alive, and finishes it.
        return Err(writer::busy(base, None));
    }
    let (decoded, bytes) = settled_header(base, &**file)?;
    let (header, schema) = (&decoded.header, &decoded.header.schema);
    let has_chunks = schema.vars.iter().any(|variable| Anchor::of(variable).is_some());
    if !has_chunks && !Dataset::has_subfiles(header) {
        return Ok((decoded, bytes, None));
    }
    let lock = lock.map_err(|_| writer::busy(base, writer_of(schema)))?;
    // It may have got another file between opening and locking.
    writer::require_named(base, &**file)?;
    Ok((decoded, bytes, lock))
}

/// The header and its bytes, after an interrupted redefinition was dealt with.
fn settled_header(base: &Base, file: &dyn File) -> Result<(Decoded, Vec<u8>)> {
    let (store, path) = (&*base.store, &base.path);
    if !base.writable {
        return header_as_read(store, path, file);
    }
    if let Some((journal, state)) = base.journal(file)? {
        match state {
            HeaderState::New => remove_journal(store, path)?,
            HeaderState::Old | HeaderState::Torn => {
                finish_redefinition(store, path, file, &journal)?
            }
            HeaderState::Foreign => return Err(base.stale_journal()),
        }
    }
    read_header_bytes(path, file)
}
