//! A dataset in data mode: opening, asking, records, closing. What moves values is in `access`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use esker_comm::{Communicator, CommunicatorExt};
use esker_format::{Header, NumRecs, Schema, VarId, Variable};
use esker_store::File;

use crate::base::{Base, read_header};
use crate::bounded::CacheUse;
use crate::counting::same_but_for_growth;
use crate::credit::Credit;
use crate::error::{Error, Result};
use crate::ground::{Ground, no_such_name};
use crate::hints::Hints;
use crate::layout::{Layout, Stage};
use crate::numbering::Numbering;
use crate::report::Report;

/// An open dataset in data mode.
///
/// Reading needs `&self`, so threads may share one. What a call wrote is in the file when it
/// returns, seen by every other reader of the file; it is safe from power loss after
/// [`Dataset::sync`].
///
/// A dataset may be opened by many ranks together (`comm` of the options). *Collective* calls
/// are made by all of them: create, open, `enddef`, `redef`, `sync`, `close`, and the calls
/// that end in `_all`. *Independent* calls (`get`, `put`, `wait`) are made by one rank alone.
#[derive(Debug)]
pub struct Dataset {
    pub(crate) numbering: Option<Numbering>,
    /// What reads in the background look at, and of which generation it is.
    pub(crate) reading: Mutex<Option<(u64, Arc<Dataset>)>>,
    /// How variables are stored.
    pub(crate) layout: Box<dyn Layout>,
    pub(crate) ground: Ground,
}

/// Threads share datasets, whatever is inside.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Dataset>();
};

impl Dataset {
    /// The version that an open container has; `None` for a classic file.
    pub fn container_version(&self) -> Option<u64> {
        self.layout.version()
    }

    pub(crate) fn new(ground: Ground, layout: Box<dyn Layout>) -> Dataset {
        Dataset { numbering: None, reading: Mutex::default(), layout, ground }
    }

    /// The file, behind symbolic links.
    pub fn path(&self) -> &Path {
        &self.ground.base.path
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.ground.base.writable
    }

    /// The ranks that have this dataset open together.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.ground.base.comm
    }

    /// Dimensions, attributes and variables, under this rank's numbers. All of them, unless they were merged by shares
    /// ([`Dataset::knows_all`]): then those that this rank has defined.
    pub fn schema(&self) -> &Schema {
        self.numbering.as_ref().map_or(self.ground.schema(), |numbering| &numbering.schema)
    }

    /// The header as it is in the file: the schema and where each variable's bytes are. Its
    /// numbers are the file's, which differ from [`Dataset::schema`]'s only where ranks have
    /// defined different things. Of definitions that were merged by shares it has this rank's, under this rank's numbers, with their
    /// places in the file.
    pub fn header(&self) -> &Header {
        &self.ground.header
    }

    /// How many records there are, with those that this rank alone knows of.
    pub fn numrecs(&self) -> u64 {
        self.layout.records(&self.ground)
    }

    /// The length of the file in bytes.
    pub fn file_len(&self) -> Result<u64> {
        Ok(self.ground.file.len()?)
    }

    /// The file's bytes, for reading: of a container, those of the classic file that it stands
    /// for. What this rank has written is in them.
    pub fn classic_file(&self) -> Result<Arc<dyn File>> {
        self.layout.over(&self.ground)?;
        Ok(self.ground.file.clone())
    }

    /// The number of the variable of this name.
    pub fn var(&self, name: &str) -> Result<VarId> {
        self.schema().var(name).ok_or_else(|| no_such_name(self.path(), self.schema(), name))
    }

    /// The variable of this number.
    pub fn variable(&self, var: VarId) -> Result<&Variable> {
        self.schema().variable(var).ok_or_else(|| self.no_such_number(var))
    }

    /// The lengths of the variable's dimensions, slowest first, with the records there are. Those
    /// of a decomposed variable are the dimensions of the array that it stands for.
    pub fn shape(&self, var: VarId) -> Result<Vec<u64>> {
        self.variable(var)?;
        self.layout.shape(&self.ground, self.file_var(var)?, false)
    }

    /// The lengths of the boxes that a variable's values are put together in when they are written, where transfers are best
    /// cut: those of its chunks, in a classic file or in a container.
    pub fn chunk_shape(&self, var: VarId) -> Option<&[u64]> {
        self.file_var(var).ok().and_then(|var| self.layout.boxes(var))
    }

    /// Shares an outcome: all ranks have it, or all have an error. Collective.
    pub fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        self.ground.base.agree(outcome)
    }

    /// The hints in force.
    pub fn hints(&self) -> &Hints {
        &self.ground.base.hints
    }

    /// What this rank's calls did so far.
    pub fn report(&self) -> &Report {
        &self.ground.report
    }

    /// What this rank's caches hold now, and by their hints may hold.
    pub fn caches(&self) -> Vec<CacheUse> {
        let mut caches = self.layout.caches(&self.base().hints);
        let (bytes, budget) = (self.ground.lists().memory(), self.base().hints.cache);
        if bytes > 0 {
            caches.push(CacheUse { what: "lists of blocks", bytes, budget });
        }
        caches
    }

    /// Starts a new report.
    pub fn reset_report(&mut self) {
        self.ground.report = Report::default();
    }

    /// Waits until everything written is safe from power loss, and every rank knows of all
    /// records. Collective. On a dataset opened for reading, looks whether another program has
    /// added records.
    pub fn sync(&mut self) -> Result<()> {
        if !self.ground.base.writable {
            return self.refresh();
        }
        self.settle()?;
        let Dataset { ground, layout, .. } = self;
        if layout.commit(ground, true)? {
            return Ok(());
        }
        // From here on, also where it fails in the middle.
        ground.base.young.end();
        layout.settle(ground, Stage::Ended)?;
        ground.settle_volume()?;
        ground.begun_is_counted();
        let clock = Instant::now();
        layout.settle(ground, Stage::Safe)?;
        if let Some(volume) = &ground.volume {
            // Everybody's, before the file says how many records they have.
            ground.base.agree(volume.sync_parts(&ground.base))?;
        }
        let synced = ground.main().sync().map_err(Error::from);
        let synced = synced.and_then(|()| match ground.base.is_root() {
            true => ground.require_named(),
            false => Ok(()),
        });
        ground.report.phases.sync += clock.elapsed();
        ground.base.agree(synced)?;
        layout.settle(ground, Stage::Synced)?;
        ground.settle_counted()?;
        ground.settle_names()
    }

    /// Makes what was written the next version of a container without waiting for the disk, as [`Dataset::close`] does;
    /// [`Dataset::sync`] waits. In a file, which has no versions, whoever opens it sees what was written. Collective.
    pub fn commit(&mut self) -> Result<()> {
        self.require_writable("commit")?;
        self.settle()?;
        let Dataset { ground, layout, .. } = self;
        match layout.commit(ground, false)? {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn refresh(&mut self) -> Result<()> {
        let Dataset { ground, layout, .. } = self;
        // A version of a container stays what it is.
        if !ground.counts {
            return Ok(());
        }
        let found = ground.base.by_root(|| {
            let file = ground.main();
            let (header, _) = read_header(&ground.base.path, &**file)?;
            let same = match &ground.volume {
                Some(volume) => same_but_for_growth(&header, &volume.disk()),
                None => same_but_for_growth(&header, &ground.header),
            };
            let records = header.records(file.len()?);
            let records = Credit::of(&header, records, file.len()?).shown(records);
            Ok(records.filter(|_| same).unwrap_or(ground.records))
        })?;
        ground.records = ground.base.comm.max_u64(found.unwrap_or_default())?;
        layout.refresh(ground)
    }

    /// Makes the records that any rank has made known to everyone, and to the file. Collective.
    pub fn sync_records(&mut self) -> Result<()> {
        self.require_writable("count records")?;
        self.settle()
    }

    /// Writes the variable's fill value over one record of it, which comes into being if need
    /// be. Collective.
    pub fn fill_record(&mut self, var: VarId, record: u64) -> Result<()> {
        self.require_writable("fill")?;
        self.flush()?;
        let id = self.file_var(var)?;
        self.ground.require_storable(record.saturating_add(1))?;
        self.layout.mend(&mut self.ground)?;
        self.layout.fill_record(&mut self.ground, id, record)
    }

    /// Closes the dataset. Collective. Everything is in the file already but the records that
    /// independent writes of several ranks have made; dropping a dataset would lose those.
    pub fn close(mut self) -> Result<()> {
        if !self.ground.base.writable {
            return Ok(());
        }
        self.settle()?;
        let Dataset { ground, layout, .. } = &mut self;
        if layout.commit(ground, false)? {
            return Ok(());
        }
        layout.settle(ground, Stage::Ended)?;
        ground.base.by_root(|| {
            ground.require_named()?;
            ground.extend_file(ground.records)
        })?;
        ground.settle_volume()?;
        layout.settle(ground, Stage::Closed)?;
        ground.base.young.leave(&**ground.main());
        Ok(())
    }

    /// Closes the dataset without a commit. Collective.
    ///
    /// Of a container, what was written since its last version (that of the last sync, or of `enddef`) is given up for good: no reader sees it, and
    /// `esker recover` does not bring it back. It is so from one moment on, also when a rank dies meanwhile. Other datasets have no such thing: what was written is in the file, and they are closed, as
    /// `ncmpi_abort` does. Requests that wait are dropped with their queue.
    pub fn abort(mut self) -> Result<()> {
        // A process that was forked from the one that has it gives nothing up.
        if !self.ground.base.writable || !self.ground.base.is_own_process() {
            return Ok(());
        }
        let Dataset { ground, layout, .. } = &mut self;
        match layout.abort(ground)? {
            true => Ok(()),
            false => self.close(),
        }
    }

    /// The same by one rank that cannot wait for the others, because it has failed: of a container, what was not committed is given up if no
    /// other rank goes on to commit it. Other datasets are left as they are. Not collective.
    pub fn abandon(self) -> Result<()> {
        if !self.ground.base.writable || !self.ground.base.is_own_process() {
            return Ok(());
        }
        self.layout.abandon(&self.ground)
    }

    pub(crate) fn require_writable(&self, what: &'static str) -> Result<()> {
        self.ground.require_writable(what)
    }

    /// Brings the file to where this dataset is. Collective.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let Dataset { ground, layout, .. } = self;
        ground.require_own_process()?;
        layout.settle(ground, Stage::Brought)?;
        // Makes the records that any rank has made everyone's.
        if ground.base.comm.size() == 1 {
            return Ok(());
        }
        let records = ground.base.comm.max_u64(ground.records)?;
        if NumRecs::Count(records) != ground.header.numrecs {
            layout.mend(ground)?;
        }
        ground.grow_together(records)
    }

    /// The file's number of a variable that this rank calls `var`. Whoever wants to know anything of its values asks
    /// for it, so that a variable with a broken seal is an error here.
    pub(crate) fn file_var(&self, var: VarId) -> Result<VarId> {
        let found = match &self.numbering {
            None => (var.0 < self.schema().vars.len()).then_some(var),
            Some(numbering) => numbering.vars.get(var.0).copied(),
        };
        let found = found.ok_or_else(|| self.no_such_number(var))?;
        self.ground.require_unbroken(found).map_err(|broken| {
            // What its layout knows says more.
            self.layout.require_sound(&self.ground, found).err().unwrap_or(broken)
        })?;
        Ok(found)
    }

    fn no_such_number(&self, var: VarId) -> Error {
        let hint = format!(": there are {}", self.schema().vars.len());
        let name = format!("number {}", var.0);
        Error::NoSuchVariable { path: self.base().path.clone(), name, hint }
    }

    fn base(&self) -> &Base {
        &self.ground.base
    }
}
