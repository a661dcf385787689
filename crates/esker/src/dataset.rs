//! Data mode: values are written and read.

use std::path::Path;
use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use esker_format::{
    ConversionRules, Header, HeaderState, MemoryType, Native, NumRecs, RangeReport, Schema, Values,
    VarId, Variable, values,
};
use esker_store::{Access, File};

use crate::base::{Base, read_header};
use crate::commit::{self, Committed};
use crate::define::{Before, Define};
use crate::error::{Error, Result, SelectionError};
use crate::fill::fill_records;
use crate::options::{CreateOptions, FillMode, OpenOptions};
use crate::selection::{Checked, Purpose, Selection};
use crate::sound;
use crate::transfer::{self, Sides, TransferError};

/// An open dataset in data mode.
///
/// Reading needs `&self`, so threads may share one. What a call wrote is in the file when it
/// returns, seen by every other reader of the file; it is safe from power loss after
/// [`Dataset::sync`].
#[derive(Debug)]
pub struct Dataset {
    base: Base,
    file: Arc<dyn File>,
    header: Header,
    records: u64,
    fills: Vec<Option<FillMode>>,
    /// Whether the file's name is not safe from power loss yet.
    renamed: bool,
}

impl Dataset {
    /// Creates a dataset and enters define mode. The file appears (or, if there was one, is
    /// replaced) when define mode ends.
    pub fn create(path: impl AsRef<Path>, options: CreateOptions) -> Result<Define> {
        Define::create(path.as_ref(), options)
    }

    /// Opens a dataset for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
        Dataset::open_with(path, OpenOptions::new())
    }

    /// Opens a dataset.
    ///
    /// When a redefinition was interrupted by a crash, this finishes it (or, for reading,
    /// looks at the file as if it were finished).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Dataset> {
        let access = if options.writable { Access::ReadWrite } else { Access::Read };
        let store = options.store;
        let file = store.open(path.as_ref(), access)?;
        let (align, fill, writable) = (options.align, options.fill, options.writable);
        let path = store.resolve(path.as_ref())?;
        let base = Base { store, path, writable, align, fill };
        let header = Dataset::settle(&base, &*file)?;
        if writable {
            sound::require(&base.path, &header)?;
        }
        let records = header.records(file.len()?);
        let fills = vec![None; header.schema.vars.len()];
        Ok(Dataset { base, file, header, records, fills, renamed: false })
    }

    /// The header, after an interrupted redefinition was dealt with.
    fn settle(base: &Base, file: &dyn File) -> Result<Header> {
        let Some((journal, state)) = base.journal(file)? else {
            return read_header(&base.path, file);
        };
        let store = &*base.store;
        match (state, base.writable) {
            (HeaderState::New, true) => commit::remove_journal(store, &base.path)?,
            (HeaderState::Old | HeaderState::Torn, true) => {
                commit::finish_redefinition(store, &base.path, file, &journal)?;
            }
            (HeaderState::Foreign, true) => {
                return Err(base.stale_journal());
            }
            (HeaderState::Torn, false) => {
                let decoded = Header::decode(&journal.new, file.len()?);
                return decoded.map_err(|source| Error::Decode { path: base.path.clone(), source });
            }
            (_, false) => {}
        }
        read_header(&base.path, file)
    }

    pub(crate) fn new(
        base: Base,
        committed: Committed,
        header: Header,
        records: u64,
        fills: Vec<Option<FillMode>>,
    ) -> Dataset {
        let Committed { file, renamed } = committed;
        Dataset { base, file, header, records, fills, renamed }
    }

    /// The file, behind symbolic links.
    pub fn path(&self) -> &Path {
        &self.base.path
    }

    /// Dimensions, attributes and variables.
    pub fn schema(&self) -> &Schema {
        &self.header.schema
    }

    /// The header: the schema and where each variable's bytes are.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many records there are.
    pub fn numrecs(&self) -> u64 {
        self.records
    }

    /// The length of the file in bytes.
    pub fn file_len(&self) -> Result<u64> {
        Ok(self.file.len()?)
    }

    /// The number of the variable of this name.
    pub fn var(&self, name: &str) -> Result<VarId> {
        self.header.schema.var(name).ok_or_else(|| self.no_such_name(name))
    }

    /// The variable of this number.
    pub fn variable(&self, var: VarId) -> Result<&Variable> {
        self.header.schema.variable(var).ok_or_else(|| self.no_such_number(var))
    }

    /// The lengths of the variable's dimensions, slowest first, with the records there are.
    pub fn shape(&self, var: VarId) -> Result<Vec<u64>> {
        Ok(self.header.schema.shape(self.variable(var)?, self.records))
    }

    /// Reads a selection into a new vector, converting to `T`.
    ///
    /// Values that do not fit `T` are [`Error::Range`]; use [`Dataset::get_into`] to have the
    /// rest in spite of it.
    pub fn get<T: Native>(&self, var: VarId, selection: &Selection) -> Result<Vec<T>> {
        let checked = self.check(var, selection, Purpose::Read)?;
        // The file's own length bounds what a selection can ask for, so that a damaged
        // header does not make us allocate what cannot be there.
        self.require_present(var, &checked)?;
        let mut out = vec![T::zeroed(); checked.elements as usize];
        self.read(var, &checked, T::MEMORY, cast_slice_mut(&mut out))?;
        Ok(out)
    }

    /// Reads a selection into `out`, converting to `T`.
    ///
    /// On [`Error::Range`] everything was read, and values that did not fit are the fill
    /// value of `T`.
    pub fn get_into<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
    ) -> Result<()> {
        let checked = self.check(var, selection, Purpose::Read)?;
        self.require_length(var, &checked, out.len())?;
        self.read(var, &checked, T::MEMORY, cast_slice_mut(out))
    }

    /// Reads a selection as values of the variable's own type.
    pub fn get_values(&self, var: VarId, selection: &Selection) -> Result<Values> {
        let checked = self.check(var, selection, Purpose::Read)?;
        self.require_present(var, &checked)?;
        let ty = self.variable(var)?.ty;
        let mut out = Values::zeros(ty, checked.elements as usize);
        self.read(var, &checked, ty.natural(), out.native_bytes_mut())?;
        Ok(out)
    }

    /// Writes `data` to a selection, converting to the variable's type.
    ///
    /// Writing beyond the last record makes new records. On [`Error::Range`] everything was
    /// written, and values that did not fit are the variable's fill value.
    pub fn put<T: Native>(&mut self, var: VarId, selection: &Selection, data: &[T]) -> Result<()> {
        self.write(var, selection, T::MEMORY, cast_slice(data))
    }

    /// Writes values of whatever type they are to a selection.
    pub fn put_values(&mut self, var: VarId, selection: &Selection, data: &Values) -> Result<()> {
        self.write(var, selection, data.ty().natural(), data.native_bytes())
    }

    /// Appends whole records to a record variable, after the dataset's last record; gives the
    /// number of the first of them.
    pub fn append<T: Native>(&mut self, var: VarId, data: &[T]) -> Result<u64> {
        let shape = self.shape(var)?;
        let variable = self.variable(var)?;
        let refuse = |source| Error::Selection {
            path: self.base.path.clone(),
            var: variable.name.to_string(),
            source,
        };
        if !self.header.schema.is_record(variable) {
            return Err(refuse(SelectionError::NotRecord));
        }
        let record = shape[1..].iter().product::<u64>().max(1);
        let given = data.len() as u64;
        if !given.is_multiple_of(record) {
            return Err(refuse(SelectionError::NotWholeRecords { given, record }));
        }
        let first = self.records;
        let (mut start, mut count) = (vec![0; shape.len()], shape);
        (start[0], count[0]) = (first, given / record);
        self.put(var, &Selection::slab(&start, &count), data)?;
        Ok(first)
    }

    /// Waits until everything written is safe from power loss. On a dataset opened for
    /// reading, looks whether another program has added records.
    pub fn sync(&mut self) -> Result<()> {
        if self.base.writable {
            self.file.sync()?;
            if self.renamed {
                self.base.store.sync_names(&self.base.path)?;
                self.renamed = false;
            }
            return Ok(());
        }
        let header = read_header(&self.base.path, &*self.file)?;
        if header.schema == self.header.schema && header.layout == self.header.layout {
            self.records = header.records(self.file.len()?);
        }
        Ok(())
    }

    /// Closes the dataset. Everything is in the file already; this reports a dataset that
    /// cannot be left as it is, which dropping it could not.
    pub fn close(self) -> Result<()> {
        if self.base.writable {
            self.extend_file(self.records)?;
        }
        Ok(())
    }

    /// Goes back to define mode.
    pub fn redef(self) -> Result<Define> {
        self.base.require_writable("redefine")?;
        let Dataset { file, header, records, renamed, .. } = self;
        let before = Before { file, header, records, renamed };
        Ok(Define::redefine(self.base, before, self.fills))
    }

    fn check(&self, var: VarId, selection: &Selection, purpose: Purpose) -> Result<Checked> {
        let name = self.variable(var)?.name.to_string();
        selection
            .check(&self.header, var, self.records, purpose)
            .map_err(|source| Error::Selection { path: self.base.path.clone(), var: name, source })
    }

    fn require_length(&self, var: VarId, checked: &Checked, given: usize) -> Result<()> {
        if checked.elements == given as u64 {
            return Ok(());
        }
        Err(Error::BufferLength {
            path: self.base.path.clone(),
            var: self.variable(var)?.name.to_string(),
            selected: checked.elements,
            given: given as u64,
        })
    }

    fn require_present(&self, var: VarId, checked: &Checked) -> Result<()> {
        let end = checked.patterns(&self.header, var).map(|p| p.end()).max().unwrap_or(0);
        let file_len = self.file.len()?;
        if end > file_len { Err(self.short(var, end, file_len)) } else { Ok(()) }
    }

    fn sides(&self, var: VarId, memory: MemoryType) -> Sides {
        let external = self.header.schema.vars.as_slice()[var.0].ty;
        Sides { external, memory, rules: ConversionRules::of(self.header.schema.version) }
    }

    fn read(
        &self,
        var: VarId,
        checked: &Checked,
        memory: MemoryType,
        out: &mut [u8],
    ) -> Result<()> {
        let patterns: Vec<_> = checked.patterns(&self.header, var).collect();
        let runs = patterns.iter().flat_map(|p| p.runs());
        let done = transfer::read(&*self.file, runs, out, self.sides(var, memory));
        self.finish(var, done)
    }

    fn write(
        &mut self,
        var: VarId,
        selection: &Selection,
        memory: MemoryType,
        data: &[u8],
    ) -> Result<()> {
        self.base.require_writable("write")?;
        let elements = data.len() / memory.size();
        let purpose = Purpose::Write { elements: elements as u64 };
        let checked = self.check(var, selection, purpose)?;
        self.require_length(var, &checked, elements)?;
        let sides = self.sides(var, memory);
        // Text and numbers do not mix, which must be known before records come into being.
        sides.rules.check(sides.external, memory).map_err(|source| self.convert(var, source))?;
        if checked.elements == 0 {
            return Ok(());
        }
        self.prepare_records(var, &checked)?;
        let patterns: Vec<_> = checked.patterns(&self.header, var).collect();
        let runs = patterns.iter().flat_map(|p| p.runs());
        let fill = values::fill_bytes(&self.header.schema.vars.as_slice()[var.0]);
        let done = transfer::write(&*self.file, runs, data, sides, &fill);
        // Values out of range do not keep the records from existing.
        if done.is_ok() && checked.records > self.records {
            self.grow(checked.records)?;
        }
        self.finish(var, done)
    }

    /// Fills the records that a write brings into being, but for what it writes itself.
    fn prepare_records(&self, var: VarId, checked: &Checked) -> Result<()> {
        if checked.records <= self.records {
            return Ok(());
        }
        let version = self.header.schema.version;
        // The largest 32-bit number means STREAMING.
        let max = version.max_count().min(u64::from(u32::MAX) - 1).max(version.max_count());
        if checked.records > max || self.header.data_end(checked.records) > i64::MAX as u64 {
            let path = self.base.path.clone();
            return Err(Error::TooManyRecords { path, records: checked.records, version, max });
        }
        let shape = self.header.schema.shape(&self.header.schema.vars.as_slice()[var.0], 0);
        let written = checked.whole_records(&shape);
        let covered = written.is_some_and(|r| r.start <= self.records);
        fill_records(&*self.file, &self.header, self.records, checked.records, |id| {
            self.is_filled(id) && !(id == var && covered)
        })
    }

    fn is_filled(&self, var: VarId) -> bool {
        let own = self.fills.get(var.0).copied().flatten();
        own.unwrap_or(self.base.fill) == FillMode::Fill
    }

    /// Makes the records exist, for everyone who opens the file.
    fn grow(&mut self, records: u64) -> Result<()> {
        self.extend_file(records)?;
        let numrecs = NumRecs::Count(records);
        let bytes = Header::numrecs_bytes(self.header.schema.version, numrecs);
        self.file.write_at(Header::NUMRECS_OFFSET, &bytes)?;
        self.header.numrecs = numrecs;
        self.records = records;
        Ok(())
    }

    /// Readers may count on the file being as long as its header says.
    fn extend_file(&self, records: u64) -> Result<()> {
        let end = self.header.data_end(records);
        if self.file.len()? < end {
            self.file.set_len(end)?;
        }
        Ok(())
    }

    fn finish(&self, var: VarId, done: Result<RangeReport, TransferError>) -> Result<()> {
        match done {
            Ok(report) if report.all_fit() => Ok(()),
            Ok(report) => Err(Error::Range {
                path: self.base.path.clone(),
                var: self.variable(var)?.name.to_string(),
                report,
            }),
            Err(TransferError::Store(error)) => Err(error.into()),
            Err(TransferError::Convert(source)) => Err(self.convert(var, source)),
            Err(TransferError::Short { needed }) => Err(self.short(var, needed, self.file.len()?)),
        }
    }

    fn convert(&self, var: VarId, source: esker_format::ConvertError) -> Error {
        let name = self.header.schema.variable(var).map_or("", |v| &*v.name);
        Error::Convert { path: self.base.path.clone(), var: name.to_string(), source }
    }

    fn short(&self, var: VarId, needed: u64, file_len: u64) -> Error {
        let name = self.header.schema.variable(var).map_or("", |v| &*v.name);
        Error::ShortFile { path: self.base.path.clone(), var: name.to_string(), needed, file_len }
    }

    fn no_such_number(&self, var: VarId) -> Error {
        let hint = format!(": there are {}", self.header.schema.vars.len());
        let name = format!("number {}", var.0);
        Error::NoSuchVariable { path: self.base.path.clone(), name, hint }
    }

    fn no_such_name(&self, name: &str) -> Error {
        let names = self.header.schema.vars.iter().map(|v| &*v.name);
        let hint = crate::nearest::hint(name, names);
        let name = format!("{name:?}");
        Error::NoSuchVariable { path: self.base.path.clone(), name, hint }
    }
}
