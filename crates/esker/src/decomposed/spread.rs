//! A classic file whose decomposed variables are in sub-files, as if it were one.
//!
//! Offsets are those of a file that has everything, by the header that the dataset works with. Each
//! stretch of it is in the file itself or in one sub-file, at a place that can be computed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use esker_format::{FileOrder, Header, NumRecs, Schema, SchemaError, VarId, values};
use esker_store::{Access, ElementOrder, File, FileRun, LiveDraft, MadeUp, Store, StoreError};

use super::naming::{growing, grown, require_free, strangers};
use super::subfiles::{Groups, subfile_path};
use crate::base::{Base, read_header};
use crate::error::{Error, Result};
use crate::volume::Volume;

type Stored<T> = esker_store::Result<T>;

/// The file of a dataset with sub-files.
#[derive(Debug)]
pub(crate) struct Spread {
    store: Arc<dyn Store>,
    path: PathBuf,
    writable: bool,
    /// The file with everything else, and its header.
    main: Arc<dyn File>,
    disk: Mutex<Header>,
    groups: Groups,
    /// Where the dataset's header ends.
    header_len: u64,
    order: FileOrder,
    /// Where each variable is.
    places: Vec<Place>,
    whole: Records,
    main_records: Records,
    header: Header,
    subs: Vec<OnceLock<Arc<Sub>>>,
    /// Whether all sub-files have been synced since the dataset was opened.
    earlier_are_safe: AtomicBool,
    /// The bytes that all files had.
    bytes: OnceLock<u64>,
}

/// So many bytes may be believed to be there without a look.
const SOME: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
struct Records {
    begin: u64,
    size: u64,
}

impl Records {
    fn of(header: &Header) -> Records {
        let begin = header.layout.record_begin.unwrap_or(u64::MAX);
        Records { begin, size: header.layout.record_size }
    }
}

/// Where a variable, or one record of it, is.
#[derive(Debug)]
enum Place {
    /// In the file itself: where its first byte is.
    Main(u64),
    /// In sub-files: its number among those that are, and the groups' stretches in each of its rows.
    Subs { ordinal: usize, row: u64, starts: Vec<u64> },
}

/// A sub-file.
#[derive(Debug)]
struct Sub {
    path: PathBuf,
    /// Whether it has not taken its name yet.
    hidden: AtomicBool,
    file: Arc<dyn File>,
    header: Header,
    /// The number of each variable that is in sub-files in this one, which may have nothing of it.
    numbers: Vec<Option<VarId>>,
}

/// Where a stretch is.
enum Where<'s> {
    Main(u64),
    Sub(&'s Sub, u64),
    /// Between two variables.
    Nowhere,
}

impl Spread {
    pub(crate) fn new(
        base: &Base,
        main: Arc<dyn File>,
        (header, disk): (&Header, Header),
        groups: Groups,
    ) -> Spread {
        let in_subs = groups.variables(&header.schema);
        let places = header.vars().map(|(id, variable, _)| {
            let ordinal = in_subs.iter().position(|(var, _, _)| *var == id);
            match ordinal {
                None => Place::Main(disk.place(id).map_or(0, |place| place.begin)),
                Some(ordinal) => {
                    let (_, map, stored) = &in_subs[ordinal];
                    let size = variable.ty.size();
                    let starts = groups.elements(map, *stored);
                    let starts = starts.iter().map(|range| range.start * size).collect();
                    Place::Subs { ordinal, row: stored * size, starts }
                }
            }
        });
        let places = places.collect();
        let subs = (0..groups.count()).map(|_| OnceLock::new()).collect();
        Spread {
            store: base.store.clone(),
            path: base.path.clone(),
            writable: base.writable,
            main,
            main_records: Records::of(&disk),
            disk: Mutex::new(disk),
            groups,
            header_len: header.layout.header_len,
            order: FileOrder::of(header),
            places,
            whole: Records::of(header),
            header: header.clone(),
            subs,
            earlier_are_safe: AtomicBool::new(false),
            bytes: OnceLock::new(),
        }
    }

    /// Makes the sub-files that are this rank's to make, under other names for now, readable by whom `like`
    /// is. Gives what stands for them until they belong to a dataset. Collective
    /// calls follow, before anybody uses them.
    pub(crate) fn make(&self, base: &Base, like: &Path) -> Result<Vec<LiveDraft>> {
        let mut live = Vec::new();
        for number in self.mine(base) {
            let named = subfile_path(&self.path, number);
            require_free(base, &named)?;
            let path = growing(&named, self.groups.identity());
            let header = self.groups.header_of(&self.header.schema, number);
            let header = header.map_err(|e| base.schema_error(e))?;
            // From before it is there: others take away what dead processes left.
            live.push(LiveDraft::new(&path));
            let file = self.store.create_like(&path, like)?;
            file.write_at(0, &header.encode())?;
            file.set_len(header.data_end(0))?;
            let sub = self.sub_of(number, path, file, header, true);
            let _ = self.subs[number].set(Arc::new(sub));
        }
        Ok(live)
    }

    /// Gives this rank's sub-files their names, where they have not taken them.
    pub(crate) fn name(&self, base: &Base) -> Result<()> {
        for number in self.mine(base) {
            let sub = self.sub(number)?;
            if sub.hidden.load(Ordering::Acquire) {
                self.store.rename(&sub.path, &subfile_path(&self.path, number))?;
                sub.hidden.store(false, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The sub-files that this rank looks after.
    fn mine(&self, base: &Base) -> impl Iterator<Item = usize> + use<> {
        (base.comm.rank()..self.groups.count()).step_by(base.comm.size())
    }

    /// The sub-files, by number.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        (0..self.groups.count()).map(|number| subfile_path(&self.path, number)).collect()
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The bytes of all files, of which a header may promise more than there are.
    fn bytes(&self) -> Stored<u64> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(*bytes);
        }
        let mut bytes = self.main.len()?;
        for number in 0..self.groups.count() {
            bytes = bytes.saturating_add(self.sub(number)?.file.len()?);
        }
        Ok(*self.bytes.get_or_init(|| bytes))
    }

    /// Fails if the sub-files cannot have so many records: what is written is believed from then on.
    pub(crate) fn require_records(&self, records: u64) -> Result<()> {
        let (needed, there) = (self.header.data_end(records), self.bytes()?);
        if needed.saturating_sub(SOME) <= there {
            return Ok(());
        }
        let why = format!("it and its sub-files have {there} bytes of {needed}");
        Err(self.failed(&self.path, why).into())
    }

    /// The records that the file says there are.
    fn records(&self) -> Stored<u64> {
        let version = self.header.schema.version;
        let mut bytes = Header::numrecs_bytes(version, NumRecs::Count(0));
        self.main.read_at(Header::NUMRECS_OFFSET, &mut bytes)?;
        Ok(bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte)))
    }

    /// Waits until what this rank has written to sub-files is safe.
    pub(crate) fn sync_subs(&self) -> Stored<()> {
        self.subs.iter().filter_map(OnceLock::get).try_for_each(|sub| sub.file.sync())
    }

    /// What is wrong with each sub-file; nothing of those that are as they should be.
    pub(crate) fn faults(&self) -> Vec<(PathBuf, String)> {
        let why = |number| match self.incomplete(number) {
            Ok(why) => why,
            Err(error) => {
                let why = std::error::Error::source(&error).map(ToString::to_string);
                Some(why.unwrap_or_else(|| error.to_string()))
            }
        };
        let all = 0..self.groups.count();
        all.filter_map(|n| Some((subfile_path(&self.path, n), why(n)?))).collect()
    }

    /// Which of the values that the dataset has a sub-file has not, if there are any.
    fn incomplete(&self, number: usize) -> Stored<Option<String>> {
        let (sub, records) = (self.sub(number)?, self.records()?);
        let header = &sub.header;
        let has_records = header.schema.record_dim().is_some();
        let (len, records) = (sub.file.len()?, if has_records { records } else { 0 });
        let needed = header.data_end(records);
        if len >= needed {
            return Ok(None);
        }
        let behind = len.saturating_sub(header.layout.record_begin.unwrap_or(u64::MAX));
        let whole = behind / header.layout.record_size.max(1);
        Ok(Some(match has_records && len >= header.data_end(0) {
            true => format!(
                "it has {whole} whole records of {records}: it ends at byte {len} of {needed}"
            ),
            false => format!("it was cut short: it has {len} bytes of {needed}"),
        }))
    }

    /// The sub-files that have not taken their names: those, and the ones that they have.
    pub(crate) fn hidden(&self) -> Vec<(PathBuf, PathBuf)> {
        let hidden = |number| {
            let sub = self.sub(number).ok()?;
            let named = subfile_path(&self.path, number);
            sub.hidden.load(Ordering::Acquire).then(|| (named, sub.path.clone()))
        };
        (0..self.groups.count()).filter_map(hidden).collect()
    }

    /// Files beside the dataset that were sub-files of others of its name.
    pub(crate) fn strangers(&self) -> Vec<PathBuf> {
        strangers(&*self.store, &self.path, Some(&self.groups))
    }

    fn failed(&self, path: &Path, why: String) -> StoreError {
        StoreError::new(path, "read", io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn sub(&self, number: usize) -> Stored<&Arc<Sub>> {
        let place = &self.subs[number];
        if let Some(sub) = place.get() {
            return Ok(sub);
        }
        let sub = Arc::new(self.open(number)?);
        Ok(place.get_or_init(|| sub))
    }

    /// Opens a sub-file under its name, or under the one that it had before. The name is tried
    /// once more, because another rank may have given it in between.
    fn open(&self, number: usize) -> Stored<Sub> {
        let named = subfile_path(&self.path, number);
        self.open_at(number, &named, false).or_else(|error| {
            let grown = grown(&*self.store, &named, self.groups.identity());
            let again = grown.and_then(|grown| self.open_at(number, &grown, true).ok());
            again.map_or_else(|| self.open_at(number, &named, false), Ok).map_err(|_| error)
        })
    }

    fn open_at(&self, number: usize, path: &Path, hidden: bool) -> Stored<Sub> {
        let access = if self.writable { Access::ReadWrite } else { Access::Read };
        // No link is a sub-file: they lie beside the file that names them.
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let file = self.store.enclosed(folder)?.open(path, access)?;
        let header = match read_header(path, &*file) {
            Ok((header, _)) => header,
            Err(Error::Store(error)) => return Err(error),
            Err(Error::Decode { source, .. }) => {
                return Err(self.failed(path, format!("it is no sub-file: {source}")));
            }
            Err(other) => return Err(self.failed(path, other.to_string())),
        };
        if let Some(why) = self.groups.mistaken(&header.schema, number) {
            return Err(self.failed(path, why));
        }
        let expected = self.groups.header_of(&self.header.schema, number);
        let expected = expected.map_err(|e| self.failed(path, e.to_string()))?;
        let shapes = |header: &Header| -> Vec<_> {
            let shape = |v: &esker_format::Variable| (v.ty, header.schema.shape(v, 0));
            header.schema.vars.iter().map(shape).collect()
        };
        if shapes(&expected) != shapes(&header) {
            let why = "its variables are not those that the dataset has in it".to_string();
            return Err(self.failed(path, why));
        }
        // After a loss of power it may count records that it has not, and the dataset neither. A reader
        // is told of each that is missing; for a writer, what is not there would be zeros.
        let records = match self.writable {
            true => header.records(0).min(self.records()?),
            false => 0,
        };
        let (len, end) = (file.len()?, header.data_end(records));
        if len < end {
            let why = format!("it was cut short: it has {len} bytes of {end}");
            return Err(self.failed(path, why));
        }
        Ok(self.sub_of(number, path.to_path_buf(), file, header, hidden))
    }

    fn sub_of(
        &self,
        number: usize,
        path: PathBuf,
        file: Arc<dyn File>,
        header: Header,
        hidden: bool,
    ) -> Sub {
        let mut next = 0;
        let numbers = self.groups.variables(&self.header.schema).into_iter();
        let numbers = numbers.map(|(_, map, stored)| {
            let part = self.groups.elements(&map, stored).get(number).cloned();
            part.filter(|part| !part.is_empty()).map(|_| {
                next += 1;
                VarId(next - 1)
            })
        });
        let numbers = numbers.collect();
        Sub { path, hidden: AtomicBool::new(hidden), file, numbers, header }
    }

    /// Where the first of `len` bytes at `offset` is, and how many are there with it.
    fn find(&self, offset: u64, len: u64) -> Stored<(Where<'_>, u64)> {
        if offset < self.header_len {
            return Ok((Where::Main(offset), len.min(self.header_len - offset)));
        }
        let next = self.order.at_or_after(offset);
        let here = next.filter(|at| at.begin <= offset);
        let values = here.filter(|at| offset < at.end());
        let found = values.and_then(|at| Some((at, self.places.get(at.var.0)?)));
        let Some((at, place)) = found else {
            // Padding, or unused up to the next variable.
            let until = here.map(|at| at.padded_end()).or(next.map(|at| at.begin));
            return Ok((Where::Nowhere, len.min(until.map_or(len, |until| until - offset))));
        };
        let (record, within) = (at.record, offset - at.begin);
        let len = len.min(at.end() - offset);
        match place {
            Place::Main(begin) => {
                Ok((Where::Main(begin + record * self.main_records.size + within), len))
            }
            Place::Subs { ordinal, row, starts } => {
                let (index, in_row) = (within / row, within % row);
                let group = starts.partition_point(|start| *start <= in_row).saturating_sub(1);
                let start = starts.get(group).copied().unwrap_or(0);
                let end = starts.get(group + 1).copied().unwrap_or(*row);
                let sub = self.sub(group)?;
                let var = sub.numbers.get(*ordinal).copied().flatten();
                let Some(place) = var.and_then(|var| sub.header.place(var)) else {
                    return Err(self.failed(&sub.path, "it has no such variable".to_string()));
                };
                let record = record * sub.header.layout.record_size;
                let to = place.begin + record + index * (end - start) + (in_row - start);
                Ok((Where::Sub(sub, to), len.min(end - in_row)))
            }
        }
    }
}

impl MadeUp for Spread {
    fn read_runs(&self, runs: &[FileRun], order: ElementOrder, buf: &mut [u8]) -> Stored<usize> {
        let mut done = 0;
        for run in runs {
            let part = &mut buf[run.at..run.at + run.len];
            let n = self.read_at(run.offset, part)?;
            if let ElementOrder::Machine(width) = order {
                values::swap_in_place(&mut part[..n], width);
            }
            done += n;
            if n < run.len {
                break;
            }
        }
        Ok(done)
    }
}

impl Volume for Spread {
    fn main(&self) -> &Arc<dyn File> {
        &self.main
    }

    fn disk(&self) -> MutexGuard<'_, Header> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_disk(&self, schema: &Schema) -> Result<Schema, SchemaError> {
        self.groups.on_disk(schema)
    }

    fn settle(&self, base: &Base, records: u64) -> Result<()> {
        self.name(base)?;
        if base.is_root() {
            // The scalars that stand for what is in sub-files: nobody writes them, and every program may read them.
            let end = self.disk().data_end(0);
            if self.main.len()? < end {
                self.main.set_len(end)?;
            }
        }
        for number in self.mine(base) {
            let sub = self.sub(number)?;
            let records = if sub.header.schema.record_dim().is_some() { records } else { 0 };
            let end = sub.header.data_end(records);
            if sub.file.len()? < end {
                sub.file.set_len(end)?;
            }
            let version = sub.header.schema.version;
            let bytes = Header::numrecs_bytes(version, NumRecs::Count(records));
            let mut there = vec![0; bytes.len()];
            sub.file.read_at(Header::NUMRECS_OFFSET, &mut there)?;
            if there != bytes {
                sub.file.write_at(Header::NUMRECS_OFFSET, &bytes)?;
            }
        }
        Ok(())
    }

    fn sync_parts(&self, base: &Base) -> Result<()> {
        if !self.earlier_are_safe.load(Ordering::SeqCst) {
            self.mine(base).try_for_each(|number| self.sub(number).map(drop))?;
        }
        self.sync_subs()?;
        self.earlier_are_safe.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl File for Spread {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Stored<usize> {
        let mut done = 0;
        while done < buf.len() {
            let left = (buf.len() - done) as u64;
            let (place, len) = self.find(offset + done as u64, left)?;
            let part = &mut buf[done..done + len as usize];
            match place {
                Where::Nowhere => {
                    if !self.writable && offset + done as u64 >= self.len()? {
                        return Ok(done);
                    }
                    part.fill(0);
                }
                Where::Main(at) => {
                    let n = self.main.read_at(at, part)?;
                    if n < part.len() {
                        let missing = at + n as u64;
                        if !self.writable || missing < self.disk().data_end(self.records()?) {
                            return Ok(done + n);
                        }
                        // As below; what follows may have been filled already.
                        part[n..].fill(0);
                    }
                }
                Where::Sub(sub, at) => {
                    let n = sub.file.read_at(at, part)?;
                    if n < part.len() && !self.writable {
                        if offset + done as u64 >= self.len()? {
                            return Ok(done);
                        }
                        let why = format!(
                            "it was cut short: it ends at byte {}, before values that the dataset has in it",
                            at + n as u64
                        );
                        return Err(self.failed(&sub.path, why));
                    }
                    // Nobody has written there yet.
                    part[n..].fill(0);
                }
            }
            done += len as usize;
        }
        Ok(done)
    }

    /// What lies between two stretches may be in another file.
    fn made_up(&self) -> Option<&dyn MadeUp> {
        Some(self)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Stored<()> {
        let mut done = 0;
        while done < bytes.len() {
            let left = (bytes.len() - done) as u64;
            let (place, len) = self.find(offset + done as u64, left)?;
            let part = &bytes[done..done + len as usize];
            match place {
                Where::Nowhere => {}
                Where::Main(at) => self.main.write_at(at, part)?,
                Where::Sub(sub, at) => sub.file.write_at(at, part)?,
            }
            done += len as usize;
        }
        Ok(())
    }

    fn len(&self) -> Stored<u64> {
        let records = self.records()?;
        let (there, needed) = (self.main.len()?, self.disk().data_end(records));
        let end = self.header.data_end(records);
        if there < needed {
            return Ok(there);
        }
        // What is read from sub-files that are not as they should be names them. But nobody must
        // think that there is much where there is little.
        if !self.writable && end.saturating_sub(SOME) > there {
            return Ok(end.min(self.bytes()?));
        }
        Ok(end)
    }

    fn set_len(&self, len: u64) -> Stored<()> {
        let behind = len.saturating_sub(self.whole.begin);
        let records = behind.div_ceil(self.whole.size.max(1));
        let end = self.disk().data_end(records);
        if self.main.len()? < end {
            self.main.set_len(end)?;
        }
        Ok(())
    }

    fn sync(&self) -> Stored<()> {
        // The number of records is in the file itself, and must not be there before they are.
        self.sync_subs()?;
        self.main.sync()
    }

    fn block_size(&self) -> u64 {
        self.main.block_size()
    }
}
