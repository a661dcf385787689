//! The files of a session: one pair of logs for each rank, or a lane of one that a node shares.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_comm::{CommunicatorExt, Message};
use esker_format::log::Head;
use esker_store::{Access, File, Lane, Locked};

use super::found::Found;
use super::names::{PairName, Stem, absolute, directory_of};
use super::patient::Patient;
use super::{DATA_BLOCK, META_BLOCK};
use crate::base::{Base, broadcast_parts, identity};
use crate::error::{Error, Result};
use crate::log::{LogSource, LogWriter};

/// What the logs of one opening of a dataset have in common.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) dir: PathBuf,
    stem: Stem,
    head: Vec<u8>,
    file: u32,
    lane: u32,
    lanes: u32,
    rank: u32,
    /// Whether this rank made the directory.
    made_dir: bool,
    /// The dataset's file before it has its name.
    like: PathBuf,
}

/// A log that this rank appends to.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) writer: LogWriter,
    meta: Arc<Patient>,
    data: Arc<Patient>,
    head: u64,
    rank: u32,
    /// The files, on the rank that removes them.
    files: Vec<PathBuf>,
    is_shared: bool,
    /// Whether it is beside the classic file, because the burst buffer was full.
    pub(crate) beside: bool,
    /// Says that the session lives, on the rank that made the files.
    _lock: Option<Locked>,
}

/// The numbers of pairs: two take turns when one is flushed in the background, and two are beside
/// the classic file, for when the burst buffer is full.
pub(crate) const BESIDE: u32 = 2;

impl Session {
    /// Makes sure that the logs can be made, and deals with those that are there. Collective.
    pub(crate) fn begin(base: &Base, like: &Path) -> Result<Session> {
        let comm = &base.comm;
        let rank = comm.rank() as u32;
        let (node_rank, node_size, first) = match comm.size() {
            1 => (0, 1, 0),
            _ => {
                let node = comm.split_by_node()?;
                // A node's number is the rank of its first.
                let first = node.min_u64(comm.rank() as u64)? as u32;
                (node.rank() as u32, node.size() as u32, first)
            }
        };
        let dir = absolute(base.hints.burst_dirname.as_ref());
        // A burst buffer may be a directory of each node.
        let mut prepared = match node_rank {
            0 => prepare(base, &dir),
            _ => Ok((false, Vec::new())),
        };
        // Who looks whether a session lives takes its lock for a moment, and keeps the first ranks of other
        // nodes from it, if they see the same directory. One of those who look has it in every round; a session
        // that lives lets nobody.
        let mut before = u64::MAX;
        loop {
            let is_kept_out = matches!(prepared, Err(Error::Writers { .. }));
            let kept_out = comm.sum_u64(is_kept_out.into())?;
            if kept_out == 0 || kept_out == before {
                break;
            }
            before = kept_out;
            if is_kept_out {
                prepared = prepare(base, &dir);
            }
        }
        // Everyone has looked before anything is removed: it may be one directory for all.
        let (made_dir, old) = base.agree(prepared)?;
        base.agree(remove_all(base, &old))?;
        let parts = match comm.rank() {
            0 => broadcast_parts(&**comm, &[&Message::from_u64s(&[identity()])[..]])?,
            _ => broadcast_parts(&**comm, &[])?,
        };
        let numbers = Message::from(parts.into_iter().next().ok_or(Error::Garbled)?).to_u64s();
        let [identity] = <[u64; 1]>::try_from(numbers).map_err(|_| Error::Garbled)?;
        let text = absolute(&base.path).to_string_lossy().into_owned();
        let head = Head { identity, rank, ranks: comm.size() as u32, text }.encode();
        let (file, lane, lanes) = match base.hints.burst_shared_logs.is_on() {
            true => (first, node_rank, node_size),
            false => (rank, 0, 1),
        };
        let stem = Stem::of(&base.path);
        Ok(Session { dir, stem, head, file, lane, lanes, rank, made_dir, like: like.to_path_buf() })
    }

    /// Makes a pair of logs in the burst buffer. Collective.
    pub(crate) fn make(&self, base: &Base, slot: u32) -> Result<Pair> {
        let name = PairName { file: self.file, lanes: self.lanes, slot };
        let paths = ["meta", "data"].map(|kind| self.stem.path(&self.dir, name, kind));
        let made = match self.lane {
            0 => self.made(base, &paths),
            _ => Ok(None),
        };
        let lock = base.agree(made)?;
        let opened = self.open(base, paths, (self.lane, self.lanes));
        Ok(Pair { _lock: lock, ..base.agree(opened)? })
    }

    /// Makes the files of a pair, and takes the lock of the first: what others know a living session by.
    fn made(&self, base: &Base, [meta, data]: &[PathBuf; 2]) -> Result<Option<Locked>> {
        let lock = lock(&base.path, &self.create(base, meta)?)?;
        self.create(base, data)?;
        Ok(lock)
    }

    /// Makes a file in the burst buffer. Another dataset that had made the directory removes it
    /// when it finds it empty, perhaps just now.
    fn create(&self, base: &Base, path: &Path) -> Result<Arc<dyn File>> {
        const ATTEMPTS: usize = 20;
        for _ in 1..ATTEMPTS {
            match self.create_log(base, path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    base.store.create_dir(&self.dir)?;
                }
                made => return Ok(made?),
            }
        }
        Ok(self.create_log(base, path)?)
    }

    /// Makes a file that has values of the dataset, so that who may not read that may not read it. Its name can
    /// be guessed, so what has it (a log that has nothing left to give, or a link that somebody put there) is
    /// removed and not written to.
    fn create_log(&self, base: &Base, path: &Path) -> esker_store::Result<Arc<dyn File>> {
        let store = &*base.store;
        // The dataset has taken its name since, unless it is being created.
        let like = if store.exists(&self.like)? { &self.like } else { &base.path };
        match store.create_like(path, like) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                store.remove(path)?;
                store.create_like(path, like)
            }
            made => made,
        }
    }

    /// Makes a pair of logs beside the classic file, for this rank alone. Independent.
    pub(crate) fn make_beside(&self, base: &Base, slot: u32) -> Result<Pair> {
        let name = PairName { file: self.rank, lanes: 1, slot };
        let dir = absolute(&directory_of(&base.path));
        let paths = ["meta", "data"].map(|kind| self.stem.path(&dir, name, kind));
        let lock = lock(&base.path, &self.create_log(base, &paths[0])?)?;
        self.create_log(base, &paths[1])?;
        Ok(Pair { beside: true, _lock: lock, ..self.open(base, paths, (0, 1))? })
    }

    fn open(&self, base: &Base, paths: [PathBuf; 2], (lane, lanes): (u32, u32)) -> Result<Pair> {
        let open = |path: &PathBuf, block| -> Result<Arc<Patient>> {
            let file = base.store.open(path, Access::ReadWrite)?;
            Ok(Patient::new(Lane::open(file, lane.into(), lanes.into(), block)))
        };
        let (meta, data) = (open(&paths[0], META_BLOCK)?, open(&paths[1], DATA_BLOCK)?);
        meta.write_at(0, &self.head)?;
        let head = self.head.len() as u64;
        let writer = LogWriter::new(meta.clone(), data.clone(), head, base.hints.cache / 2)
            .with_checksums(base.hints.checksums.of_stored());
        let files = if lane == 0 { paths.to_vec() } else { Vec::new() };
        Ok(Pair {
            writer,
            meta,
            data,
            head,
            rank: self.rank,
            files,
            is_shared: lanes > 1,
            beside: false,
            _lock: None,
        })
    }

    /// Removes the directory, if it is empty and ours.
    pub(crate) fn remove_dir(&self, base: &Base) {
        if self.made_dir {
            // Somebody else may have put something there, which is no failure.
            let _ = base.store.remove_dir(&self.dir);
        }
    }
}

impl Pair {
    /// Whether its device had no room.
    pub(crate) fn is_full(&self) -> bool {
        self.meta.is_full() || self.data.is_full()
    }

    /// The log, to be read.
    pub(crate) fn source(&self) -> LogSource {
        LogSource {
            meta: self.meta.clone(),
            data: self.data.clone(),
            orders: LogSource::in_one_session(0),
            rank: self.rank,
            identity: None,
            meta_len: None,
            data_len: None,
            read: 0,
        }
    }

    /// Begins anew, when everything up to `epoch` is in the file.
    pub(crate) fn restart(&mut self, epoch: u64, report: &mut crate::report::Report) -> Result<()> {
        self.writer.restart(self.head, epoch, report)?;
        match self.is_shared {
            // Cutting one lane of a file means to write zeros over it.
            true => self.data.forget(),
            false => self.data.set_len(0)?,
        }
        Ok(())
    }

    /// Waits until what the log says of itself is safe from power loss, and with `names` that
    /// there are these logs in its directory and none that were removed before.
    pub(crate) fn sync(&self, base: &Base, names: bool) -> Result<()> {
        self.meta.sync()?;
        match self.files.first() {
            Some(path) if names => Ok(base.store.sync_names(path)?),
            _ => Ok(()),
        }
    }

    /// Removes the files.
    pub(crate) fn remove(&self, base: &Base) -> Result<()> {
        for path in &self.files {
            base.store.remove(path)?;
        }
        Ok(())
    }
}

/// Takes the lock of a metadata log of this file.
pub(super) fn lock(path: &Path, meta: &Arc<dyn File>) -> Result<Option<Locked>> {
    Locked::take(meta)?.map_err(|_| {
        let why = "another program, or another dataset of this one, writes to it through a burst buffer, whose \
                   logs have one writer at a time"
            .to_string();
        Error::Writers { path: path.to_path_buf(), why }
    })
}

/// Makes the directory. Gives whether it is new, and files of logs that have nothing left to give.
fn prepare(base: &Base, dir: &Path) -> Result<(bool, Vec<PathBuf>)> {
    let store = &*base.store;
    let is_new = !store.is_dir(dir)?;
    if is_new {
        store.create_dir(dir)?;
    }
    let mut dirs = vec![dir.to_path_buf()];
    if base.is_root() {
        dirs.push(directory_of(&base.path));
    }
    let found = Found::look(store, &base.path, &dirs)?;
    found.require_dead(store, &base.path)?;
    if !found.unfinished().is_empty() && !base.hints.burst_overwrite.is_on() {
        let why = format!(
            "{} has logs of a session that did not end, with data that are not in the file: `esker \
             recover {}` finishes it, or nc_burst_buf_overwrite=enable gives them up",
            dir.display(),
            base.path.display()
        );
        return Err(Error::BurstBuffer { path: base.path.clone(), why });
    }
    Ok((is_new, found.files))
}

fn remove_all(base: &Base, files: &[PathBuf]) -> Result<()> {
    for path in files {
        match base.store.remove(path) {
            // Another node may see the same directory.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}
