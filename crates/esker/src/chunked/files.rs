//! The files that chunks and tables are in: the classic file itself, or others beside it.
//!
//! In the sub-filed form a dataset is a folder: `data.nc` is the classic file, `tables.STEM` has the
//! tables and `chunks.STEM.N` the chunks of one rank, of one node or of all. The classic file's
//! attribute `__chunk_files` is the stem, which is another one for every creation, so that a
//! dataset that is being replaced is whole until the new one is.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use esker_comm::{Communicator, CommunicatorExt, SelfComm};
use esker_format::chunked::FILES;
use esker_format::{Owner, Schema, Values};
use esker_store::{Access, CreateMode, File, Store, StoreError};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::hints::ChunkFiles;

/// The classic file in the folder of a sub-filed dataset.
const CLASSIC: &str = "data.nc";

/// The file that a path stands for: in a folder with a sub-filed dataset, the classic one.
pub fn classic_of(store: &dyn Store, path: &Path) -> Result<PathBuf, StoreError> {
    let inner = path.join(CLASSIC);
    match store.is_dir(path)? && store.exists(&inner)? {
        true => Ok(inner),
        false => Ok(path.to_path_buf()),
    }
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

/// Whether a stem is one: it becomes part of a name.
fn is_stem(stem: &str) -> bool {
    !stem.is_empty() && stem.len() <= 64 && stem.bytes().all(|b| b.is_ascii_alphanumeric())
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
    data: Mutex<HashMap<u32, Arc<dyn File>>>,
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
        if !is_stem(&stem) {
            return Err(format!("its attribute {FILES} names no files"));
        }
        let (store, path, writable) = (base.store.clone(), base.path.clone(), base.writable);
        let (tables, data) = (Mutex::default(), Mutex::default());
        Ok(SubFiles { store, path, stem, writable, tables, data, own: None })
    }

    fn access(&self) -> Access {
        if self.writable { Access::ReadWrite } else { Access::Read }
    }

    fn tables_path(&self) -> PathBuf {
        self.path.with_file_name(format!("tables.{}", self.stem))
    }

    /// Where the data file of this number is.
    pub(crate) fn data_path(&self, number: u32) -> PathBuf {
        self.path.with_file_name(format!("chunks.{}.{number}", self.stem))
    }

    /// The file with the tables.
    pub(crate) fn tables(&self) -> Result<Arc<dyn File>, StoreError> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*tables {
            return Ok(file.clone());
        }
        let file = self.store.open(&self.tables_path(), self.access())?;
        *tables = Some(file.clone());
        Ok(file)
    }

    /// The data file of this number.
    pub(crate) fn data(&self, number: u32) -> Result<Arc<dyn File>, StoreError> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = data.get(&number) {
            return Ok(file.clone());
        }
        let file = self.store.open(&self.data_path(number), Access::Read)?;
        data.insert(number, file.clone());
        Ok(file)
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
            0 => match self.store.exists(&path) {
                Ok(true) => self.store.open(&path, Access::ReadWrite).map(Some),
                Ok(false) => self.store.create(&path, CreateMode::New).map(Some),
                Err(error) => Err(error),
            },
            _ => Ok(None),
        };
        let made = base.agree(made.map_err(Error::from))?;
        let opened = match made {
            Some(file) => Ok(file),
            None => self.store.open(&path, Access::ReadWrite).map_err(Error::from),
        };
        let opened = opened.and_then(|file| Ok((file.len()?, file)));
        let (len, file) = base.agree(opened)?;
        let end = group.max_u64(super::heap::room_for(len))?;
        self.data.lock().unwrap_or_else(PoisonError::into_inner).insert(number, file.clone());
        self.own = Some(Own { number, file, group, end });
        Ok(())
    }

    /// Waits until chunks and tables are safe from power loss.
    pub(crate) fn sync(&self) -> Result<()> {
        if let Some(own) = &self.own {
            own.file.sync()?;
        }
        self.tables()?.sync()?;
        Ok(self.store.sync_names(&self.path)?)
    }
}

/// A stem for the files of a new dataset, the same on every rank. Collective.
pub(crate) fn new_stem(base: &Base) -> Result<Option<String>> {
    if base.hints.chunk_files == ChunkFiles::Inside {
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

/// The file of a dataset's tables, which is made if there is none.
pub(crate) fn tables_file(base: &Base, stem: &str) -> Result<Arc<dyn File>> {
    let path = base.path.with_file_name(format!("tables.{stem}"));
    Ok(match base.store.exists(&path)? {
        true => base.store.open(&path, Access::ReadWrite)?,
        false => base.store.create(&path, CreateMode::New)?,
    })
}

/// Removes the files of datasets that were here before, as far as that is possible.
pub(crate) fn remove_others(base: &Base, stem: &str) {
    let Some(folder) = base.path.parent() else { return };
    let Ok(names) = base.store.names_in(folder) else { return };
    for name in names {
        let mut parts = name.split('.');
        let ours = matches!(parts.next(), Some("tables" | "chunks"));
        if ours && parts.next().is_some_and(|other| other != stem && is_stem(other)) {
            // A file that stays takes room, and no more.
            let _ = base.store.remove(&folder.join(&name));
        }
    }
}
