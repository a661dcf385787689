//! A dataset in data mode: opening, asking, records, closing. What moves values is in `access`.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use esker_comm::{Communicator, CommunicatorExt};
use esker_format::chunked::begun_of;
use esker_format::{DecodeError, Header, NumRecs, Schema, VarId, Variable};
use esker_store::{File, Locked};

use crate::base::{Base, read_header};
use crate::bounded::CacheUse;
use crate::burst::Burst;
use crate::chunked::{Chunked, same_but_for_growth};
use crate::commit::Committed;
use crate::container::Container;
use crate::credit::Credit;
use crate::decomposed::{Maps, Spread};
use crate::define::{Before, Define};
use crate::error::{Error, Result};
use crate::fill::{fill_range, fill_records};
use crate::hints::Hints;
use crate::io_thread::IoThread;
use crate::log::View;
use crate::numbering::Numbering;
use crate::options::{CreateOptions, FillMode, OpenOptions};
use crate::report::Report;
use crate::request::Request;
use crate::strategy::Machine;
use crate::windows::Buffers;
use crate::writer;

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
    pub(crate) base: Base,
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: Header,
    /// Records that this rank knows of; those of an independent write are not everyone's yet.
    pub(crate) records: u64,
    /// Each variable's own fill mode, by the file's number.
    pub(crate) fills: Vec<Option<FillMode>>,
    pub(crate) numbering: Option<Numbering>,
    /// Of this definition of this dataset and no other, so that a request which was queued for
    /// another one is known.
    pub(crate) epoch: u64,
    /// Epochs before it in which variables were elsewhere, and how far they have moved since.
    moves: Vec<(u64, Vec<i64>)>,
    pub(crate) report: Report,
    /// Whether the file's name is not safe from power loss yet.
    renamed: bool,
    machine: OnceLock<Machine>,
    pub(crate) buffers: Buffers,
    /// The decomposition maps, and which variables they are for.
    pub(crate) maps: Maps,
    /// The chunked variables, if there are any.
    pub(crate) chunked: Option<Box<Chunked>>,
    /// What the file is a view of, if it is one.
    pub(crate) container: Option<Box<Container>>,
    /// The logs before the file, if there are any.
    pub(crate) burst: Option<Box<Burst>>,
    /// What the logs of another dataset say of this file, of which this one is for reading.
    pub(crate) seen: Option<Arc<View>>,
    /// The file, if variables are in sub-files.
    pub(crate) spread: Option<Arc<Spread>>,
    /// Keeps other writers away, on rank 0 of a dataset that has one at a time.
    pub(crate) lock: Option<Locked>,
    /// Variables that are not what they were when they were sealed, of a file that is read.
    pub(crate) broken: Arc<Vec<(VarId, DecodeError)>>,
    /// What reads in the background look at.
    pub(crate) reading: Mutex<Option<Arc<Dataset>>>,
    /// Does what is begun in the background. Goes after it is done, and before what it uses.
    pub(crate) io: IoThread,
}

/// Threads share datasets, whatever is inside.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Dataset>();
    shared::<Define>();
};

impl Dataset {
    /// Creates a dataset and enters define mode. The file appears (or, if there was one, is
    /// replaced) when define mode ends. Collective.
    pub fn create(path: impl AsRef<Path>, options: CreateOptions) -> Result<Define> {
        Define::create(path.as_ref(), options)
    }

    /// Opens a dataset for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
        Dataset::open_with(path, OpenOptions::new())
    }

    /// The version that an open container has; `None` for a classic file.
    pub fn container_version(&self) -> Option<u64> {
        self.container.as_ref().map(|container| container.version())
    }

    pub(crate) fn new(
        base: Base,
        (committed, header, records): (Committed, Header, u64),
        mut fills: Vec<Option<FillMode>>,
        numbering: Option<Numbering>,
    ) -> Dataset {
        let epoch = new_epoch();
        let Committed { file, renamed, mut container, spread, lock, .. } = committed;
        if let Some(container) = &mut container {
            container.note(&base.notes);
        }
        let (report, machine) = (Report::default(), OnceLock::new());
        let buffers = Buffers::default();
        let is_raw = base.raw || container.is_some();
        let has_maps = !is_raw && !base.blobs;
        let maps = if has_maps { Maps::of(&header) } else { Maps::default() };
        let chunked = if is_raw { None } else { Chunked::of(&header, &base) };
        if let Some(chunked) = &chunked {
            // Programs do not see the variable that ends the chunks.
            fills.truncate(chunked.schema.vars.len());
        }
        let io = IoThread::new(format!("esker-io-{}", base.comm.rank()));
        Dataset {
            base,
            file,
            header,
            records,
            fills,
            numbering,
            epoch,
            moves: Vec::new(),
            report,
            renamed,
            machine,
            buffers,
            maps,
            chunked,
            container,
            burst: None,
            seen: None,
            spread,
            lock,
            broken: Arc::default(),
            reading: Mutex::default(),
            io,
        }
    }

    /// Another file has taken the place of this one, with this header: the same variables, in other
    /// places.
    pub(crate) fn file_moved(&mut self, file: Arc<dyn File>, renamed: bool, header: Header) {
        self.file = file;
        self.renamed |= renamed;
        let pairs = self.header.layout.places.iter().zip(&header.layout.places);
        let by = pairs.map(|(old, new)| new.begin.wrapping_sub(old.begin) as i64).collect();
        self.moves.push((self.epoch, by));
        self.epoch = new_epoch();
        self.header = header;
        self.reading = Mutex::default();
        if let Some(burst) = &mut self.burst {
            burst.stands_before(&self.base, &self.file, &self.header, self.chunked.as_deref());
        }
    }

    /// Puts logs that were apart before the file again, which may be another one now.
    pub(crate) fn rejoin(&mut self, burst: Option<Box<Burst>>) {
        self.burst = burst;
        if let Some(burst) = self.burst.as_mut().filter(|b| !b.is_before(&self.file, &self.header))
        {
            burst.stands_before(&self.base, &self.file, &self.header, self.chunked.as_deref());
        }
    }

    /// Whether the file's name is not safe from power loss yet.
    pub(crate) fn is_renamed(&self) -> bool {
        self.renamed
    }

    /// Requests that were queued before variables moved follow them.
    pub(crate) fn follow_moves(&self, requests: &mut [Request<'_>]) {
        for request in requests.iter_mut() {
            let Some(first) = self.moves.iter().position(|(epoch, _)| *epoch == request.epoch)
            else {
                continue;
            };
            // Places in a log's space do not move.
            if !self.is_chunked(request.var) && !self.has_log() {
                let by = self.moves[first..].iter().filter_map(|(_, by)| by.get(request.var.0));
                request.extent.shift(by.sum());
            }
            request.epoch = self.epoch;
        }
    }

    /// Puts logs before the file.
    pub(crate) fn stand_behind(&mut self, burst: Option<Box<Burst>>) {
        self.burst = burst;
        if let Some(burst) = &mut self.burst {
            burst.note(&self.base.notes);
            burst.stands_before(&self.base, &self.file, &self.header, self.chunked.as_deref());
            burst.file_has(self.records);
        }
    }

    /// Whether what is written is appended to a log.
    pub(crate) fn appends(&self) -> bool {
        self.container.is_some() || self.burst.is_some()
    }

    /// The file, behind symbolic links.
    pub fn path(&self) -> &Path {
        &self.base.path
    }

    /// Whether it was opened for writing.
    pub fn is_writable(&self) -> bool {
        self.base.writable
    }

    /// The ranks that have this dataset open together.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.base.comm
    }

    /// Dimensions, attributes and variables, under this rank's numbers.
    pub fn schema(&self) -> &Schema {
        match (&self.numbering, &self.chunked) {
            (Some(numbering), _) => &numbering.schema,
            (None, Some(chunked)) => &chunked.schema,
            (None, None) => &self.header.schema,
        }
    }

    /// The header as it is in the file: the schema and where each variable's bytes are. Its
    /// numbers are the file's, which differ from [`Dataset::schema`]'s only where ranks have
    /// defined different things.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many records there are, with those that this rank alone knows of.
    pub fn numrecs(&self) -> u64 {
        let alone = self.chunked.as_ref().map_or(0, |chunked| chunked.deferred_records());
        self.records.max(alone)
    }

    /// The length of the file in bytes.
    pub fn file_len(&self) -> Result<u64> {
        Ok(self.file.len()?)
    }

    /// The file's bytes, for reading: of a container, those of the classic file that it stands
    /// for. What this rank has written is in them.
    pub fn classic_file(&self) -> Result<Arc<dyn File>> {
        self.log_view()?;
        Ok(self.file.clone())
    }

    /// The number of the variable of this name.
    pub fn var(&self, name: &str) -> Result<VarId> {
        self.schema().var(name).ok_or_else(|| self.no_such_name(name))
    }

    /// The variable of this number.
    pub fn variable(&self, var: VarId) -> Result<&Variable> {
        self.schema().variable(var).ok_or_else(|| self.no_such_number(var))
    }

    /// The lengths of the variable's dimensions, slowest first, with the records there are. Those
    /// of a decomposed variable are the dimensions of the array that it stands for.
    pub fn shape(&self, var: VarId) -> Result<Vec<u64>> {
        let file_var = self.file_var(var)?;
        // The shape of an anchor that is none is not that of a scalar, and records that nobody has begun are none.
        if let Some(chunked) = self.chunked_var(file_var)? {
            self.require_begun(file_var, chunked, self.records)?;
        }
        match self.maps.of_var(file_var) {
            None => Ok(self.schema().shape(self.variable(var)?, self.numrecs())),
            Some(map) => self.decomposed_shape(var, map),
        }
    }

    /// Shares an outcome: all ranks have it, or all have an error. Collective.
    pub fn agree<T>(&self, outcome: Result<T>) -> Result<T> {
        self.base.agree(outcome)
    }

    /// The hints in force.
    pub fn hints(&self) -> &Hints {
        &self.base.hints
    }

    /// What this rank's calls did so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What this rank's caches hold now, and by their hints may hold.
    pub fn caches(&self) -> Vec<CacheUse> {
        let hints = &self.base.hints;
        let chunks = self.chunked.iter().flat_map(|chunked| chunked.caches(hints));
        let container = self.container.iter().flat_map(|container| container.caches(hints));
        let burst = self.burst.iter().flat_map(|burst| burst.caches(hints));
        chunks.chain(container).chain(burst).collect()
    }

    /// Starts a new report.
    pub fn reset_report(&mut self) {
        self.report = Report::default();
    }

    /// Waits until everything written is safe from power loss, and every rank knows of all
    /// records. Collective. On a dataset opened for reading, looks whether another program has
    /// added records.
    pub fn sync(&mut self) -> Result<()> {
        if !self.base.writable {
            return self.refresh();
        }
        self.settle()?;
        if self.container.is_some() {
            return self.commit_container(true);
        }
        // From here on, also where it fails in the middle.
        self.base.young.end();
        self.settle_end()?;
        self.settle_subfiles()?;
        self.begun_is_counted();
        let clock = Instant::now();
        let files = self.chunked.as_ref().and_then(|chunked| chunked.files.as_ref());
        if let Some(files) = files {
            // The chunks of every rank, before a table that speaks of them.
            self.base.agree(files.sync_chunks())?;
        }
        let synced = files.map_or(Ok(()), |files| files.sync_tables());
        let file = match &self.spread {
            None => &self.file,
            Some(spread) => {
                // Everybody's, before the file says how many records they have.
                self.base.agree(spread.sync_all_subs(&self.base).map_err(Error::from))?;
                spread.main()
            }
        };
        let mut synced = synced.and_then(|()| Ok(file.sync()?)).and_then(|()| self.require_own());
        if let (Ok(()), Some(burst)) = (&synced, &mut self.burst) {
            // Or a log from before would be replayed after a loss of power.
            synced = burst.sync(&self.base);
        }
        self.report.phases.sync += clock.elapsed();
        self.base.agree(synced)?;
        if let Some(chunked) = &mut self.chunked {
            chunked.heap.synced();
        }
        // Not before: whatever a loss of power leaves, the file counts as many records as this says.
        self.settle_records()?;
        self.settle_counted()?;
        if self.renamed {
            let has_folder = self.chunked.as_ref().is_some_and(|chunked| chunked.files.is_some());
            self.base.by_root(|| {
                let (store, path) = (&self.base.store, &self.base.path);
                store.sync_names(path)?;
                if let Some(folder) = path.parent().filter(|_| has_folder) {
                    store.sync_names(folder)?;
                }
                Ok(())
            })?;
            self.renamed = false;
        }
        Ok(())
    }

    /// Commits what was written to a container as its next version. Collective.
    pub(crate) fn commit_container(&mut self, durable: bool) -> Result<()> {
        let Some(container) = &mut self.container else { return Ok(()) };
        self.header.numrecs = NumRecs::Count(self.records);
        container.commit(&self.base, &self.header, durable, &mut self.report)
    }

    /// Fails if another program has taken the file away from this one. Rank 0 looks.
    fn require_own(&self) -> Result<()> {
        if !self.base.is_root() {
            return Ok(());
        }
        let main = self.spread.as_ref().map_or(&self.file, |spread| spread.main());
        writer::require_named(&self.base, &**main)?;
        self.require_sole()
    }

    fn refresh(&mut self) -> Result<()> {
        // A version of a container stays what it is.
        if self.container.is_some() {
            return Ok(());
        }
        self.forget_chunks();
        let found = self.base.by_root(|| {
            let file = self.spread.as_ref().map_or(&self.file, |spread| spread.main());
            let (header, _) = read_header(&self.base.path, &**file)?;
            let same = match &self.spread {
                Some(spread) => same_but_for_growth(&header, &spread.disk()),
                None => same_but_for_growth(&header, &self.header),
            };
            let begun = begun_of(&header.schema).unwrap_or(0);
            let records = header.records(file.len()?);
            let records = Credit::of(&header, records, file.len()?).shown(records);
            Ok(if same { (records.unwrap_or(self.records), begun) } else { (self.records, 0) })
        })?;
        let (records, begun) = found.unwrap_or_default();
        self.records = self.base.comm.max_u64(records)?;
        let begun = match self.chunked {
            Some(_) => self.base.comm.max_u64(begun)?,
            None => 0,
        };
        self.has_begun(begun);
        Ok(())
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
        self.forget_uncounted()?;
        let id = self.file_var(var)?;
        self.require_storable(record.saturating_add(1))?;
        let (Some(variable), Some(place)) =
            (self.header.schema.variable(id), self.header.place(id))
        else {
            return Err(self.no_such_number(var));
        };
        if self.container.is_some() {
            return self.append_fill(var, record);
        }
        if self.is_chunked(id) {
            return self.fill_chunked_record(var, record);
        }
        let mine = self.base.share().of(place.bytes);
        let at = place.begin + record * self.header.layout.record_size + mine.start;
        let fill = esker_format::values::fill_bytes(variable);
        let filled = fill_range(&*self.file, at, mine.end - mine.start, &fill);
        self.base.agree(filled)?;
        let records = self.base.comm.max_u64(self.records.max(record + 1))?;
        self.grow_together(records)?;
        if let Some(burst) = &mut self.burst {
            burst.file_has(records);
        }
        Ok(())
    }

    /// Closes the dataset. Collective. Everything is in the file already but the records that
    /// independent writes of several ranks have made; dropping a dataset would lose those.
    pub fn close(mut self) -> Result<()> {
        if !self.base.writable {
            return Ok(());
        }
        self.settle()?;
        if self.container.is_some() {
            return self.commit_container(false);
        }
        self.settle_end()?;
        self.base.by_root(|| {
            self.require_own()?;
            self.extend_file(self.records)
        })?;
        self.settle_subfiles()?;
        if let Some(burst) = self.burst.take() {
            burst.remove(&self.base)?;
        }
        let main = self.spread.as_ref().map_or(&self.file, |spread| spread.main());
        self.base.young.leave(&**main);
        Ok(())
    }

    /// Goes back to define mode. Collective.
    pub fn redef(mut self) -> Result<Define> {
        self.require_writable("redefine")?;
        if self.spread.is_some() {
            let why = "the definitions of a dataset with sub-files are final: `esker copy` makes one file of it";
            return Err(Error::NotAlike { path: self.base.path.clone(), why });
        }
        self.settle()?;
        self.settle_end()?;
        self.know_heap()?;
        // What is being read may move.
        self.io.drain();
        let graphs = self.graph_draft();
        let Dataset { file, header, records, renamed, container, chunked, burst, lock, .. } = self;
        let before =
            Before { renamed, container, chunked, lock, ..Before::new(file, &header, records) };
        Ok(Define::redefine(self.base, before, burst, self.numbering, self.fills, graphs))
    }

    /// Fails if this dataset cannot be written, or not by this process.
    pub(crate) fn require_writable(&self, what: &'static str) -> Result<()> {
        self.base.require_writable(what)?;
        self.require_own_process()
    }

    /// Fails in a process that was forked from the writer of a dataset that has one.
    fn require_own_process(&self) -> Result<()> {
        let logs = self.container.is_some() || self.burst.is_some();
        match logs || self.chunked.is_some() || self.spread.is_some() {
            true => self.base.require_own_process(),
            false => Ok(()),
        }
    }

    /// Brings the file to where this dataset is. Collective.
    fn settle(&mut self) -> Result<()> {
        self.require_own_process()?;
        match self.burst {
            Some(_) => self.flush(),
            None => {
                self.complete_puts()?;
                self.agree_on_records()
            }
        }
    }

    /// Makes the records that any rank has made everyone's. Collective.
    fn agree_on_records(&mut self) -> Result<()> {
        if self.base.comm.size() == 1 {
            return Ok(());
        }
        let records = self.base.comm.max_u64(self.records)?;
        if NumRecs::Count(records) != self.header.numrecs {
            self.forget_uncounted()?;
        }
        self.grow_together(records)
    }

    /// Makes `records` records exist, if there are fewer. Collective, with the same number on
    /// every rank.
    pub(crate) fn grow_together(&mut self, records: u64) -> Result<()> {
        if NumRecs::Count(records) == self.header.numrecs {
            self.records = records;
            return Ok(());
        }
        let begun = self.begin_counting(records);
        self.base.by_root(|| begun.and_then(|()| self.write_numrecs(records)))?;
        self.header.numrecs = NumRecs::Count(records);
        self.records = records;
        Ok(())
    }

    /// Makes the records exist, for everyone who opens the file.
    pub(crate) fn write_numrecs(&self, records: u64) -> Result<()> {
        // A container's records are committed with its data.
        if self.container.is_some() {
            return Ok(());
        }
        self.extend_file(records)?;
        let numrecs = NumRecs::Count(records);
        let bytes = Header::numrecs_bytes(self.header.schema.version, numrecs);
        Ok(self.file.write_at(Header::NUMRECS_OFFSET, &bytes)?)
    }

    /// Readers may count on the file being as long as its header says.
    fn extend_file(&self, records: u64) -> Result<()> {
        let end = self.base.end_of(&self.header, records);
        if self.file.len()? < end {
            self.file.set_len(end)?;
        }
        Ok(())
    }

    /// Fails when so many records cannot be stored.
    pub(crate) fn require_storable(&self, records: u64) -> Result<()> {
        let version = self.header.schema.version;
        let max = version.max_count();
        if records <= max && self.header.can_hold(records) {
            return Ok(());
        }
        Err(Error::TooManyRecords { path: self.base.path.clone(), records, version, max })
    }

    /// Fills this rank's share of the new records `from..to`, but for the variable that will
    /// be written whole there.
    pub(crate) fn fill_share(&self, from: u64, to: u64, covered: Option<VarId>) -> Result<()> {
        let mine = self.base.share().items(to.saturating_sub(from));
        let (start, end) = (from + mine.start, from + mine.end);
        fill_records(&*self.file, &self.header, start, end, |id| {
            self.is_filled(id) && Some(id) != covered
        })
    }

    /// Whether growing records means writing fill values.
    pub(crate) fn fills_records(&self) -> bool {
        let is_record = |id: VarId| {
            self.header.schema.variable(id).is_some_and(|v| self.header.schema.is_record(v))
        };
        (0..self.header.schema.vars.len()).map(VarId).any(|id| is_record(id) && self.is_filled(id))
    }

    fn is_filled(&self, var: VarId) -> bool {
        if !self.base.fill_grown {
            return false;
        }
        let own = self.fills.get(var.0).copied().flatten();
        own.unwrap_or(self.base.fill) == FillMode::Fill
    }

    /// The file's number of a variable that this rank calls `var`. Whoever wants to know anything of its values asks
    /// for it, so that a variable with a broken seal is an error here.
    pub(crate) fn file_var(&self, var: VarId) -> Result<VarId> {
        let found = match &self.numbering {
            None => (var.0 < self.schema().vars.len()).then_some(var),
            Some(numbering) => numbering.vars.get(var.0).copied(),
        };
        let found = found.ok_or_else(|| self.no_such_number(var))?;
        match self.broken.iter().find(|(broken, _)| *broken == found) {
            None => Ok(found),
            Some((_, source)) => {
                // What its table was made for says more, where that is known.
                self.chunked_var(found)?;
                let (path, source) = (self.base.path.clone(), source.clone());
                Err(Error::Decode { path, source })
            }
        }
    }

    /// The machine under the ranks. Collective the first time.
    pub(crate) fn machine(&self) -> Result<Machine> {
        if let Some(machine) = self.machine.get() {
            return Ok(*machine);
        }
        let comm = &self.base.comm;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let machine = match comm.size() {
            1 => Machine { nodes: 1, cores },
            _ => {
                let first_of_node = comm.split_by_node()?.rank() == 0;
                let nodes = comm.sum_u64(first_of_node.into())?;
                // Ranks that are bound to cores see different numbers of them.
                Machine { nodes, cores: comm.max_u64(cores)? }
            }
        };
        Ok(*self.machine.get_or_init(|| machine))
    }

    fn no_such_number(&self, var: VarId) -> Error {
        let hint = format!(": there are {}", self.schema().vars.len());
        let name = format!("number {}", var.0);
        Error::NoSuchVariable { path: self.base.path.clone(), name, hint }
    }

    fn no_such_name(&self, name: &str) -> Error {
        let names = self.schema().vars.iter().map(|v| &*v.name);
        let hint = crate::nearest::hint(name, names);
        let name = format!("{name:?}");
        Error::NoSuchVariable { path: self.base.path.clone(), name, hint }
    }
}

/// A number that no definition of a dataset had before.
fn new_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(0);
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}
