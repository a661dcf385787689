//! The files that chunks and tables are in: the classic file itself, or others beside it.
//!
//! In the sub-filed form a dataset is a folder: `data.nc` is the classic file, `tables.STEM` has the
//! tables and `chunks.STEM.N` the chunks of one rank, of one node or of all. The classic file's
//! attribute `__chunk_files` is the stem, which is another one for every creation, so that a
//! dataset that is being replaced is whole until the new one is.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use esker_comm::{Communicator, CommunicatorExt, SelfComm};
use esker_format::chunked::{FILES, FileHead};
use esker_format::{Owner, Schema, Values, inside};
use esker_store::{Access, File, ReadPool, Store, StoreError};

use super::tables::{HeapFile, Trouble};
use crate::base::{Base, CLASSIC};
use crate::error::{Error, Result};
use crate::hints::ChunkFiles;

/// Data files that are open at once for reading: there is one for each rank that ever wrote, and a
/// process may have as few as 64 or 256 descriptors in all.
const OPEN_FILES: usize = 24;

/// The store, closed around the folder that the classic file is in.
fn enclosed(store: &dyn Store, classic: &Path) -> Result<Arc<dyn Store>, StoreError> {
    store.enclosed(classic.parent().unwrap_or(Path::new("")))
}

/// Makes the folder of a new dataset; gives the classic file in it.
pub(crate) fn new_folder(store: &dyn Store, path: &Path) -> Result<PathBuf> {
    if !store.is_dir(path)? && store.exists(path)? {
        let (path, why) = (path.to_path_buf(), "a file that is no folder has its name".to_string());
        return Err(Error::Container { path, why });
    }
    let inner = path.join(CLASSIC);
    if store.is_dir(path)? && !store.exists(&inner)? && !store.names_in(path)?.is_empty() {
        let why =
            "a folder that is no dataset has its name, and is not replaced by one".to_string();
        return Err(Error::Container { path: path.to_path_buf(), why });
    }
    store.create_dir(path)?;
    Ok(inner)
}

/// The stem of the files of a dataset's chunks; `None` if they are in the classic file.
pub(crate) fn stem_of(schema: &Schema) -> Option<String> {
    schema.attr(Owner::Global, FILES)?.text().map(|text| text.into_owned())
}

/// The files of a sub-filed dataset.
#[derive(Debug)]
pub(crate) struct SubFiles {
    store: Arc<dyn Store>,
    /// The classic file.
    path: PathBuf,
    stem: String,
    writable: bool,
    tables: Mutex<Option<Arc<dyn File>>>,
    data: Arc<ReadPool>,
    /// The data files that are those of this dataset, as far as they were looked at.
    sound: Mutex<HashSet<u32>>,
    /// Who writes where, once somebody does.
    pub(crate) own: Option<Own>,
}

/// The file that this rank's chunks go to.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn File>,
    /// The ranks that share it.
    pub(crate) group: Arc<dyn Communicator>,
    /// Where it ends, for all of these.
    pub(crate) end: u64,
}

impl SubFiles {
    pub(crate) fn new(base: &Base, stem: String) -> std::result::Result<SubFiles, String> {
        if !inside::is_chunk_stem(&stem) {
            return Err(format!("its attribute {FILES} names no files"));
        }
        let store = enclosed(&*base.store, &base.path).map_err(|error| error.to_string())?;
        let (path, writable) = (base.path.clone(), base.writable);
        let data = ReadPool::new(store.clone(), OPEN_FILES);
        let (tables, sound) = (Mutex::default(), Mutex::default());
        Ok(SubFiles { store, path, stem, writable, tables, data, sound, own: None })
    }

    fn access(&self) -> Access {
        if self.writable { Access::ReadWrite } else { Access::Read }
    }

    /// Where the tables are.
    pub(super) fn tables_path(&self) -> PathBuf {
        self.path.with_file_name(format!("tables.{}", self.stem))
    }

    /// Where the data file of this number is.
    pub(crate) fn data_path(&self, number: u32) -> PathBuf {
        self.path.with_file_name(format!("chunks.{}.{number}", self.stem))
    }

    /// What the file of this number begins with.
    fn head(&self, number: u32) -> FileHead {
        FileHead { stem: self.stem.clone(), number }
    }

    /// The file with the tables.
    pub(crate) fn tables(&self) -> Result<Arc<dyn File>> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*tables {
            return Ok(file.clone());
        }
        let path = self.tables_path();
        let file = self.store.open(&path, self.access())?;
        if !self.head(0).is(&first_bytes(&*file)?) {
            let data = self.path.display();
            let why = format!("it does not have the chunk tables of {data}: its head is another");
            return Err(Error::Container { path, why });
        }
        *tables = Some(file.clone());
        Ok(file)
    }

    /// The data file of this number, for something that is in it. The file is this dataset's.
    fn data(&self, number: u32, what: &str) -> Result<Arc<dyn File>, Trouble> {
        let path = self.data_path(number);
        let file = self.data.file(&path);
        let is_known = |sound: &Mutex<HashSet<u32>>| {
            sound.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
        };
        if !is_known(&self.sound) {
            let head = first_bytes(&*file).map_err(|error| unread(error, what))?;
            if !self.head(number).is(&head) {
                return Err(Trouble::Damage(format!(
                    "{what} is said to be in {}, which is not a file of this dataset's chunks: its \
                     head is another",
                    path.display()
                )));
            }
            self.sound.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        }
        Ok(file)
    }

    /// Reads something of a data file.
    pub(crate) fn read(
        &self,
        number: u32,
        (place, size): (u64, u64),
        out: &mut Vec<u8>,
        what: &str,
    ) -> Result<(), Trouble> {
        let file = self.data(number, what)?;
        match HeapFile::new(&*file, 0).read_into(place, size, out, what) {
            Ok(()) => Ok(()),
            Err(Trouble::Store(error)) => Err(unread(error, what)),
            Err(Trouble::Damage(why)) => {
                Err(Trouble::Damage(format!("{why} ({})", self.data_path(number).display())))
            }
        }
    }

    /// The length of a data file that something is said to be in.
    pub(crate) fn data_len(&self, number: u32, what: &str) -> Result<u64, Trouble> {
        self.data(number, what)?.len().map_err(|error| unread(error, what))
    }

    /// Agrees on who writes to which file. Collective.
    pub(crate) fn share(&mut self, base: &Base) -> Result<()> {
        if self.own.is_some() {
            return Ok(());
        }
        let comm = &base.comm;
        let (group, number): (Arc<dyn Communicator>, u32) = match base.hints.chunk_files {
            ChunkFiles::Shared => (comm.clone(), 1),
            ChunkFiles::Rank | ChunkFiles::Inside => {
                (Arc::new(SelfComm::new()), comm.rank() as u32 + 1)
            }
            ChunkFiles::Node => {
                let node = comm.split_by_node()?;
                let mut before = [u64::from(node.rank() == 0)];
                comm.exclusive_scan(&mut before)?;
                // The number of the node is that of its first rank among the first ranks.
                let first = node.max_u64(if node.rank() == 0 { before[0] } else { 0 })?;
                (node, first as u32 + 1)
            }
        };
        let path = self.data_path(number);
        let made = match group.rank() {
            0 => self.made(number).map(Some),
            _ => Ok(None),
        };
        let made = base.agree(made)?;
        let opened = match made {
            Some(file) => Ok(file),
            None => self.store.open(&path, Access::ReadWrite).map_err(Error::from),
        };
        let opened = opened.and_then(|file| Ok((file.len()?, file)));
        let (len, file) = base.agree(opened)?;
        let end = group.max_u64(super::heap::room_for(len))?;
        self.own = Some(Own { number, file, group, end });
        Ok(())
    }

    /// The data file of this number, which is made if there is none.
    fn made(&self, number: u32) -> Result<Arc<dyn File>> {
        let path = self.data_path(number);
        let file = match self.store.exists(&path)? {
            true => self.store.open(&path, Access::ReadWrite)?,
            // Who may read the classic file may read this one.
            false => self.store.create_like(&path, &self.path)?,
        };
        let found = first_bytes(&*file)?;
        let head = self.head(number);
        if head.is(&found) {
            return Ok(file);
        }
        // A writer that was killed, or lost its power, before it had a head: nobody was promised
        // anything of it.
        if found.len() as u64 == FileHead::LEN && found.iter().any(|byte| *byte != 0) {
            let data = self.path.display();
            let why = format!("it does not have chunks of {data}: its head is another");
            return Err(Error::Container { path, why });
        }
        file.write_at(0, &head.encode())?;
        Ok(file)
    }

    /// Waits until this rank's chunks are safe from power loss.
    pub(crate) fn sync_chunks(&self) -> Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        own.file.sync()?;
        Ok(self.store.sync_names(&self.path)?)
    }

    /// Waits until the tables are.
    pub(crate) fn sync_tables(&self) -> Result<()> {
        Ok(self.tables()?.sync()?)
    }
}

/// The first bytes of a file, as many as a head has.
fn first_bytes(file: &dyn File) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; FileHead::LEN as usize];
    let n = file.read_at(0, &mut bytes)?;
    bytes.truncate(n);
    Ok(bytes)
}

/// Whether there is no file of a name: nothing, or something else.
pub(super) fn is_absent(error: &StoreError) -> bool {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound};
    // A loop of symbolic links, which the standard library has no stable name for.
    let eloop = if cfg!(target_os = "linux") { 40 } else { 62 };
    let is_loop = error.source.raw_os_error() == Some(eloop);
    // (A link is data that a dataset cannot have.)
    is_loop || matches!(error.kind(), NotFound | IsADirectory | NotADirectory | InvalidData)
}

/// Why something could not be read: its file is not there, or the system refused.
fn unread(mut error: StoreError, what: &str) -> Trouble {
    if is_absent(&error) {
        let (path, why) = (error.path.display(), &error.source);
        return Trouble::Damage(format!("{what} is said to be in {path}, which has none: {why}"));
    }
    error.action = format!("{} for {what}", error.action);
    Trouble::Store(error)
}

/// A stem for the files of a new dataset, the same on every rank. Collective.
pub(crate) fn new_stem(base: &Base) -> Result<Option<String>> {
    // A classic file that is no folder's has its chunks inside.
    let in_folder = base.path.file_name().is_some_and(|name| name == CLASSIC);
    if base.hints.chunk_files == ChunkFiles::Inside || !in_folder {
        return Ok(None);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mixed = now.map_or(0, |t| t.as_nanos() as u64) ^ u64::from(std::process::id()) << 40;
    let own = if base.is_root() { mixed } else { 0 };
    Ok(Some(format!("{:x}", base.comm.max_u64(own)?)))
}

/// The attribute that names the files.
pub(crate) fn put_stem(schema: &mut Schema, stem: &str) -> Result<(), esker_format::SchemaError> {
    schema.put_attr(Owner::Global, FILES, Values::from(stem))
}

/// The file of a dataset's tables, which is made if there is none, readable by whom `like` is.
pub(crate) fn tables_file(base: &Base, stem: &str, like: &Path) -> Result<Arc<dyn File>> {
    let path = base.path.with_file_name(format!("tables.{stem}"));
    let store = enclosed(&*base.store, &base.path)?;
    if store.exists(&path)? {
        return Ok(store.open(&path, Access::ReadWrite)?);
    }
    let file = store.create_like(&path, like)?;
    file.write_at(0, &FileHead { stem: stem.to_string(), number: 0 }.encode())?;
    Ok(file)
}

/// Whether a file of this name in a folder has tables or chunks.
pub(crate) fn is_chunk_file(name: &str) -> bool {
    stem_in(name).is_some()
}

/// What the names of one dataset's files of tables and chunks have in the middle.
fn stem_in(name: &str) -> Option<&str> {
    let mut parts = name.split('.');
    let ours = matches!(parts.next(), Some("tables" | "chunks"));
    parts.next().filter(|stem| ours && inside::is_chunk_stem(stem))
}

/// Removes the files of datasets that were here before, as far as that is possible.
pub(crate) fn remove_others(base: &Base, stem: &str) {
    let Some(folder) = base.path.parent() else { return };
    let Ok(mut names) = base.store.names_in(folder) else { return };
    names.retain(|name| stem_in(name).is_some_and(|other| other != stem));
    // The dataset that they are of must not come back without them.
    if names.is_empty() || base.store.sync_names(&base.path).is_err() {
        return;
    }
    for name in names {
        // A file that stays takes room, and no more.
        let _ = base.store.remove(&folder.join(&name));
    }
}
