//! What every layout may use and none owns: the file and its header, how many records there are, what the road
//! needs from call to call.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use esker_comm::CommunicatorExt;
use esker_format::{
    ConversionRules, DecodeError, Header, MemoryType, NumRecs, Schema, VarId, values,
};
use esker_store::{File, Locked};

use crate::base::Base;
use crate::counting::Begun;
use crate::error::{DecompositionError, Error, Result};
use crate::fill::{fill_each_record, fill_records};
use crate::io_thread::IoThread;
use crate::lists::Memo;
use crate::memory::{FillBytes, Lent, Memory, MemoryLayout, Sides};
use crate::nearest;
use crate::options::FillMode;
use crate::plan::{Extent, SharedRuns};
use crate::report::Report;
use crate::request::Request;
use crate::rest::Rest;
use crate::selection::{LogSpace, Space};
use crate::strategy::Machine;
use crate::volume::Volume;
use crate::windows::Buffers;
use crate::writer;

/// The ground that layouts stand on.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) base: Base,
    pub(crate) file: Arc<dyn File>,
    pub(crate) header: Header,
    /// Records that this rank knows of; those of an independent write are not everyone's yet.
    pub(crate) records: u64,
    /// Each variable's own fill mode, by the file's number.
    pub(crate) fills: Vec<Option<FillMode>>,
    /// What the header of the file has beyond this rank's objects, where those are all that `header` has.
    pub(crate) rest: Option<Rest>,
    /// What programs see, in the file's order, where the header says it in another way.
    pub(crate) shown: Option<Schema>,
    /// Whether the file counts the records; otherwise a layout does, when it commits.
    pub(crate) counts: bool,
    /// Of this definition of this dataset and no other, so that a request which was queued for
    /// another one is known.
    pub(crate) epoch: u64,
    /// Epochs before it in which variables were elsewhere, and how far they have moved since.
    moves: Vec<(u64, Vec<i64>)>,
    pub(crate) report: Report,
    /// Whether the file's name is not safe from power loss yet.
    pub(crate) renamed: bool,
    /// Whether the file is in a folder of the dataset's own, whose name is not either.
    pub(crate) in_folder: bool,
    machine: OnceLock<Machine>,
    /// What lists of blocks are in ordinary variables.
    lists: Mutex<Memo<SharedRuns>>,
    pub(crate) buffers: Buffers,
    /// The file, if it lies in several.
    pub(crate) volume: Option<Arc<dyn Volume>>,
    /// Keeps other writers away, on rank 0 of a dataset that has one at a time.
    pub(crate) lock: Option<Locked>,
    /// Whether the dataset has one writing process at a time.
    pub(crate) sole: bool,
    /// Variables that are not what they were when they were sealed, of a file that is read.
    pub(crate) broken: Arc<Vec<(VarId, DecodeError)>>,
    /// Records that were begun, of a file that says so beside its chunks.
    pub(crate) begun: Option<Begun>,
    /// How often what is read may have become another thing: what reads in the background look at is made anew.
    pub(crate) generation: u64,
    /// Does what is begun in the background. Goes after it is done, and before what it uses.
    pub(crate) io: IoThread,
}

/// What a file is when it is opened or committed: its header, and the records that there are.
pub(crate) struct Opened {
    pub(crate) file: Arc<dyn File>,
    pub(crate) renamed: bool,
    pub(crate) volume: Option<Arc<dyn Volume>>,
    pub(crate) lock: Option<Locked>,
    pub(crate) header: Header,
    pub(crate) rest: Option<Rest>,
    pub(crate) records: u64,
}

impl Ground {
    pub(crate) fn new(base: Base, found: Opened, fills: Vec<Option<FillMode>>) -> Ground {
        let io = IoThread::new(format!("esker-io-{}", base.comm.rank()));
        let Opened { file, renamed, volume, lock, header, rest, records } = found;
        Ground {
            base,
            file,
            header,
            rest,
            records,
            fills,
            shown: None,
            counts: true,
            epoch: new_epoch(),
            moves: Vec::new(),
            report: Report::default(),
            renamed,
            in_folder: false,
            machine: OnceLock::new(),
            lists: Mutex::default(),
            buffers: Buffers::default(),
            sole: volume.is_some(),
            volume,
            lock,
            broken: Arc::default(),
            begun: None,
            generation: 0,
            io,
        }
    }

    /// What programs see, in the file's order.
    pub(crate) fn schema(&self) -> &Schema {
        self.shown.as_ref().unwrap_or(&self.header.schema)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.base.path
    }

    /// The name of a variable, for errors.
    pub(crate) fn name(&self, var: VarId) -> String {
        self.header.schema.variable(var).map_or("", |v| &*v.name).to_string()
    }

    /// The file that has the header.
    pub(crate) fn main(&self) -> &Arc<dyn File> {
        self.volume.as_ref().map_or(&self.file, |volume| volume.main())
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
        self.header_changed();
    }

    /// All of the header takes the place of this rank's part of it. Its variables have other numbers.
    pub(crate) fn learn(&mut self, header: Header, fills: Vec<Option<FillMode>>) {
        (self.header, self.fills, self.rest) = (header, fills, None);
        self.epoch = new_epoch();
        self.header_changed();
    }

    /// The header is another one: nothing is believed of where its fields are, nor of what was read.
    pub(crate) fn header_changed(&mut self) {
        if let Some(begun) = &mut self.begun {
            begun.forget_place();
        }
        self.generation += 1;
    }

    /// Requests that were queued before variables moved follow them.
    pub(crate) fn follow_moves(&self, requests: &mut [Request<'_>]) {
        for request in requests.iter_mut() {
            let Some(first) = self.moves.iter().position(|(epoch, _)| *epoch == request.epoch)
            else {
                continue;
            };
            // Places in a space of a layout's own, or a log's, do not move.
            if request.space == Space::File {
                let by = self.moves[first..].iter().filter_map(|(_, by)| by.get(request.var.0));
                request.extent.shift(by.sum());
            }
            request.epoch = self.epoch;
        }
    }

    /// Fails for requests of another definition; those that were queued before variables moved follow.
    pub(crate) fn require_current(&self, requests: &mut [Request<'_>]) -> Result<()> {
        if requests.iter().any(|r| r.epoch != self.epoch) {
            self.follow_moves(requests);
        }
        match requests.iter().all(|r| r.epoch == self.epoch) {
            true => Ok(()),
            false => Err(Error::Redefined { path: self.base.path.clone() }),
        }
    }

    /// Where requests are in the file.
    pub(crate) fn in_file(&self, requests: &[Request<'_>], extents: Vec<Extent>) -> Vec<Extent> {
        if requests.iter().all(|request| request.space == Space::File) {
            return extents;
        }
        let place = |(request, extent): (&Request<'_>, Extent)| match request.space {
            Space::Log => extent.in_file(&LogSpace::of(&self.header, request.var)),
            Space::File | Space::Own => extent,
        };
        requests.iter().zip(extents).map(place).collect()
    }

    /// Makes the files of a volume, if it is one, what readers count on. Collective.
    pub(crate) fn settle_volume(&self) -> Result<()> {
        match &self.volume {
            None => Ok(()),
            Some(volume) => self.base.agree(volume.settle(&self.base, self.records)),
        }
    }

    /// Fails if this dataset cannot be written, or not by this process.
    pub(crate) fn require_writable(&self, what: &'static str) -> Result<()> {
        self.base.require_writable(what)?;
        self.require_own_process()
    }

    /// Fails in a process that was forked from the writer of a dataset that has one.
    pub(crate) fn require_own_process(&self) -> Result<()> {
        match self.sole {
            true => self.base.require_own_process(),
            false => Ok(()),
        }
    }

    /// Fails if another program has taken the file away from this one. On rank 0.
    pub(crate) fn require_named(&self) -> Result<()> {
        writer::require_named(&self.base, &**self.main())
    }

    /// Makes `records` records exist, if there are fewer. Collective, with the same number on
    /// every rank.
    pub(crate) fn grow_together(&mut self, records: u64) -> Result<()> {
        if NumRecs::Count(records) == self.header.numrecs {
            self.records = records;
            return Ok(());
        }
        let begun = self.begin_counting(records);
        let counted = || Ok((begun.and_then(|()| self.write_numrecs(records))?, Vec::new()));
        self.base.told_by_root(counted)?;
        self.header.numrecs = NumRecs::Count(records);
        self.records = records;
        Ok(())
    }

    /// The same on one rank alone. With several ranks these are its own until all agree on them.
    pub(crate) fn grow_alone(&mut self, records: u64) -> Result<()> {
        if records <= self.records {
            return Ok(());
        }
        if self.base.comm.size() == 1 {
            self.begin_counting(records)?;
            self.write_numrecs(records)?;
            self.header.numrecs = NumRecs::Count(records);
        }
        self.records = records;
        Ok(())
    }

    /// Makes the records exist, for everyone who opens the file.
    pub(crate) fn write_numrecs(&self, records: u64) -> Result<()> {
        if !self.counts {
            return Ok(());
        }
        self.extend_file(records)?;
        let numrecs = NumRecs::Count(records);
        let bytes = Header::numrecs_bytes(self.header.schema.version, numrecs);
        Ok(self.file.write_at(Header::NUMRECS_OFFSET, &bytes)?)
    }

    /// Readers may count on the file being as long as its header says.
    pub(crate) fn extend_file(&self, records: u64) -> Result<()> {
        let end = self.base.end_of(&self.header, self.rest.as_ref(), records);
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
        let is_wanted = |id: VarId| self.is_filled(id) && Some(id) != covered;
        if let Some(rest) = &self.rest {
            // Nobody else knows of these variables, and this rank of no others.
            let is_first = |id: VarId| rest.is_first.get(id.0).copied().unwrap_or(false);
            let wanted = |id| is_first(id) && is_wanted(id);
            return fill_each_record(&*self.file, &self.header, from, to, wanted);
        }
        let mine = self.base.share().items(to.saturating_sub(from));
        let (start, end) = (from + mine.start, from + mine.end);
        fill_records(&*self.file, &self.header, start, end, is_wanted)
    }

    /// Whether growing records means writing fill values.
    pub(crate) fn fills_records(&self) -> bool {
        if let Some(rest) = &self.rest {
            return rest.fills_records;
        }
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

    /// What lists of blocks were found to be, from where each variable begins.
    pub(crate) fn lists(&self) -> MutexGuard<'_, Memo<SharedRuns>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails for a variable that is not what it was when it was sealed.
    pub(crate) fn require_unbroken(&self, var: VarId) -> Result<()> {
        match self.broken.iter().find(|(broken, _)| *broken == var) {
            None => Ok(()),
            Some((_, source)) => {
                let (path, source) = (self.base.path.clone(), source.clone());
                Err(Error::Decode { path, source })
            }
        }
    }

    /// The number of the variable of this name, in the file.
    pub(crate) fn var(&self, name: &str) -> Result<VarId> {
        let schema = &self.header.schema;
        schema.var(name).ok_or_else(|| no_such_name(self.path(), schema, name))
    }

    /// The memory of a request, if its type and the variable's convert.
    pub(crate) fn memory<'b>(
        &self,
        var: VarId,
        lent: Lent<'b>,
        memory: MemoryType,
        layout: MemoryLayout,
    ) -> Result<Memory<'b>> {
        let variable = self.schema().variable(var).ok_or(Error::Garbled)?;
        let rules = ConversionRules::of(self.header.schema.version);
        let sides = Sides { external: variable.ty, memory, rules };
        rules.check(variable.ty, memory).map_err(|source| {
            let (path, var) = (self.base.path.clone(), self.name(var));
            Error::Convert { path, var, source }
        })?;
        let fill = FillBytes::new(&values::fill_bytes(variable));
        Ok(Memory { lent, layout, sides, fill })
    }

    /// Makes the file's name safe from power loss, if it is not. Collective.
    pub(crate) fn settle_names(&mut self) -> Result<()> {
        if !self.renamed {
            return Ok(());
        }
        self.base.by_root(|| {
            let (store, path) = (&self.base.store, &self.base.path);
            store.sync_names(path)?;
            if let Some(folder) = path.parent().filter(|_| self.in_folder) {
                store.sync_names(folder)?;
            }
            Ok(())
        })?;
        self.renamed = false;
        Ok(())
    }

    /// The error for a blob of a variable that has none.
    pub(crate) fn not_decomposed(&self, var: VarId) -> Error {
        let (path, what) = (self.base.path.clone(), format!("variable \"{}\"", self.name(var)));
        Error::Decomposition { path, what, source: DecompositionError::NotDecomposed }
    }

    /// The error of a read that needed the file up to `end`.
    pub(crate) fn short_at(&self, end: u64) -> Error {
        let var = self.header.at(end.saturating_sub(1)).map_or(VarId(0), |at| at.var);
        self.short(var, end, self.file.len().unwrap_or(0))
    }

    pub(crate) fn short(&self, var: VarId, needed: u64, file_len: u64) -> Error {
        let (path, var) = (self.base.path.clone(), self.name(var));
        Error::ShortFile { path, var, needed, file_len }
    }
}

/// The error for a variable that there is not.
pub(crate) fn no_such_name(path: &Path, schema: &Schema, name: &str) -> Error {
    let hint = nearest::hint(name, schema.vars.iter().map(|v| &*v.name));
    let name = format!("{name:?}");
    Error::NoSuchVariable { path: path.to_path_buf(), name, hint }
}

/// A number that no definition of a dataset had before.
fn new_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(0);
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}
