//! An open file: its state, its flags, and what ranks agree on.

use std::cell::OnceCell;
use std::ffi::{c_char, c_int};
use std::sync::Arc;

use esker::graph::GraphSet;
use esker::{
    Alignment, Dataset, Define, Error, FillMode, Owner, Schema, VarId, Variable, Version,
    is_unmarked,
};
use esker_comm::{Communicator, CommunicatorExt, Message, ReduceOp, Reduction};
use esker_format::name;

use crate::codes::*;
use crate::graph_ids::GraphIds;
use crate::list::Lists;
use crate::pending::Pending;
use crate::tokens::Tokens;

/// What a file is doing.
pub(crate) enum State {
    /// In define mode.
    Define(Box<Define>),
    /// In data mode.
    Data(Box<Dataset>),
    /// Between the two, or after an error that left neither.
    Lost,
}

/// PnetCDF's two alignments: of the data section, and of the records; 0 where nobody has chosen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Aligns {
    pub(crate) data: u64,
    pub(crate) records: u64,
}

/// An open file.
pub(crate) struct File {
    /// As the program gave it.
    pub(crate) path: String,
    pub(crate) comm: Arc<dyn Communicator>,
    pub(crate) state: State,
    pub(crate) version: Version,
    pub(crate) read_only: bool,
    pub(crate) independent: bool,
    /// `PNETCDF_SAFE_MODE`.
    pub(crate) safe: bool,
    /// Not `PNETCDF_RELAX_COORD_BOUND`.
    pub(crate) strict: bool,
    /// The file's own fill mode, for variables to come.
    pub(crate) fill: bool,
    /// Created, and in its first define mode still.
    pub(crate) new: bool,
    /// The process that created or opened it: one that was forked from it has all of this too.
    pub(crate) process: u32,
    /// By variable: whether it is not filled.
    pub(crate) no_fill: Vec<bool>,
    /// Variables from before this define mode.
    pub(crate) old_vars: usize,
    /// What the hints say.
    pub(crate) hinted: Aligns,
    /// What the last `enddef` used.
    pub(crate) aligns: Aligns,
    /// Where the last `enddef` since the file was opened kept the record section, with records or without.
    pub(crate) kept_for_records: u64,
    /// Hints of the program and the environment.
    pub(crate) info: Vec<(String, String)>,
    /// `esker_definitions=merge` or `shares`: ranks may define different things.
    pub(crate) merges: bool,
    /// A posted put of at most so many bytes is copied when it is posted.
    pub(crate) copied: u64,
    pub(crate) pending: Pending,
    /// Lists of blocks that the program gave.
    pub(crate) lists: Lists,
    pub(crate) put_size: u64,
    pub(crate) get_size: u64,
    /// The numbers of graphs, vertices and edges.
    pub(crate) graph_ids: GraphIds,
    /// The graphs in data mode, once they are asked for.
    pub(crate) graphs_read: Option<GraphSet>,
    /// What goes on while the program does.
    pub(crate) tokens: Tokens,
    pub(crate) shown: Shown,
}

/// What the program sees, once it has looked and until it changes.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Whether no variable says how it is stored: then it sees what the library has. Programs define thousands of
    /// variables, and ask in between.
    plain: OnceCell<bool>,
    /// Otherwise: where it is not how values are stored, variables as arrays.
    schema: OnceCell<Result<Option<Schema>>>,
}

/// What a change is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touched {
    Anything,
    /// Dimensions and attributes of no variable.
    NoVariable,
    /// This variable alone.
    Variable(VarId),
}

impl From<Owner> for Touched {
    fn from(owner: Owner) -> Touched {
        match owner {
            Owner::Global => Touched::NoVariable,
            Owner::Var(var) => Touched::Variable(var),
        }
    }
}

impl File {
    /// Dimensions, attributes and variables, as arrays: how they are stored is not the program's concern.
    pub(crate) fn schema(&self) -> Result<&Schema> {
        let stored = self.stored_schema()?;
        if *self.shown.plain.get_or_init(|| stored.vars.iter().all(is_unmarked)) {
            return Ok(stored);
        }
        let shown = self.shown.schema.get_or_init(|| match &self.state {
            State::Define(define) => define.plain_schema().map_err(|e| of(&e)),
            State::Data(dataset) => dataset.plain_schema().map_err(|e| of(&e)),
            State::Lost => Ok(None),
        });
        match shown {
            Ok(Some(schema)) => Ok(schema),
            Ok(None) => Ok(stored),
            Err(code) => Err(*code),
        }
    }

    /// Something has changed, or is going to.
    pub(crate) fn changed(&mut self, touched: Touched) {
        let unmarked = match (self.shown.plain.get(), touched) {
            (Some(true), Touched::NoVariable) => true,
            (Some(true), Touched::Variable(var)) => {
                self.stored_schema().is_ok_and(|s| s.variable(var).is_some_and(is_unmarked))
            }
            _ => false,
        };
        if !unmarked {
            self.shown = Shown::default();
        }
    }

    /// The same as the library has it.
    pub(crate) fn stored_schema(&self) -> Result<&Schema> {
        match &self.state {
            State::Define(define) => Ok(define.schema()),
            State::Data(dataset) => Ok(dataset.schema()),
            State::Lost => Err(NC_EFILE),
        }
    }

    /// The variable of this number; not NC_GLOBAL.
    pub(crate) fn variable(&self, varid: c_int) -> Result<&Variable> {
        if varid == -1 {
            return Err(NC_EGLOBAL);
        }
        let place = usize::try_from(varid).map_err(|_| NC_ENOTVAR)?;
        self.schema()?.variable(VarId(place)).ok_or(NC_ENOTVAR)
    }

    pub(crate) fn is_defining(&self) -> bool {
        !matches!(self.state, State::Data(_))
    }

    pub(crate) fn numrecs(&self) -> u64 {
        match &self.state {
            State::Define(define) => define.numrecs(),
            State::Data(dataset) => dataset.numrecs(),
            State::Lost => 0,
        }
    }

    /// To define anything.
    pub(crate) fn define(&mut self) -> Result<&mut Define> {
        self.changed(Touched::Anything);
        self.define_known()
    }

    /// To define something of which [`File::changed`] is told afterwards.
    pub(crate) fn define_known(&mut self) -> Result<&mut Define> {
        match &mut self.state {
            State::Define(define) => Ok(define),
            _ => Err(NC_ENOTINDEFINE),
        }
    }

    pub(crate) fn dataset(&mut self) -> Result<&mut Dataset> {
        match &mut self.state {
            State::Data(dataset) => Ok(dataset),
            _ => Err(NC_EINDEFINE),
        }
    }

    pub(crate) fn require_writable(&self) -> Result<()> {
        if self.read_only { Err(NC_EPERM) } else { Ok(()) }
    }

    pub(crate) fn require_define(&self) -> Result<()> {
        if self.is_defining() { Ok(()) } else { Err(NC_ENOTINDEFINE) }
    }

    /// The smallest code of all ranks. Collective.
    pub(crate) fn least(&self, code: Code) -> Code {
        least(&*self.comm, code)
    }

    /// In safe mode: the ranks' smallest error, or the error of the first of `parts` that is
    /// not as rank 0 has it. Otherwise this rank's own outcome. Collective in safe mode.
    pub(crate) fn settle(&self, mine: Result<()>, parts: &[(&[u8], Code)]) -> Result<()> {
        if !self.safe || self.comm.size() == 1 {
            return mine;
        }
        let code = self.least(mine.err().unwrap_or(0));
        if code != 0 {
            return Err(code);
        }
        if parts.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for (part, _) in parts {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(*part);
        }
        let root = self.comm.broadcast(0, Message::from(bytes)).map_err(|e| of_mpi(&e))?;
        let mut rest = &root[..];
        let mut found = 0;
        for (part, code) in parts {
            let (len, after) = rest.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
            let len = (u64::from_le_bytes(*len) as usize).min(after.len());
            if found == 0 && &after[..len] != *part {
                found = *code;
            }
            rest = &after[len..];
        }
        match self.least(found) {
            0 => Ok(()),
            code => Err(told(code, "the ranks' arguments differ")),
        }
    }

    /// Ends define mode. Collective.
    pub(crate) fn enddef(&mut self, room: [u64; 4]) -> Result<()> {
        let align = self.alignment(room)?;
        self.changed(Touched::Anything);
        let state = std::mem::replace(&mut self.state, State::Lost);
        let State::Define(mut define) = state else {
            self.state = state;
            return Err(NC_ENOTINDEFINE);
        };
        define.set_align(align);
        for (number, no_fill) in self.no_fill.iter().enumerate() {
            // Only what is new is filled.
            let old = !self.new && number < self.old_vars;
            let mode = if *no_fill || old { FillMode::NoFill } else { FillMode::Fill };
            let _ = define.set_fill(VarId(number), mode);
        }
        let ended = match self.merges {
            true => define.enddef().map(|dataset| (dataset, false)),
            false => define.enddef_following_root(),
        };
        match ended {
            Ok((dataset, followed)) => {
                if followed && verbose() {
                    eprintln!("pnetcdf: the ranks define different things: rank 0's are used");
                }
                self.kept_for_records = dataset.kept_for_records(&align);
                // Rank 0 writes it.
                if self.comm.rank() == 0 {
                    self.put_size += dataset.header().layout.header_len;
                }
                // Graphs are variables too.
                self.no_fill.resize(dataset.schema().vars.len(), true);
                self.graphs_read = None;
                self.state = State::Data(Box::new(dataset));
                self.independent = false;
                self.new = false;
                Ok(())
            }
            Err(failed) => {
                // They may be rank 0's by now.
                self.no_fill.resize(failed.define.schema().vars.len(), true);
                self.state = State::Define(failed.define);
                Err(together(&*self.comm, &failed.error))
            }
        }
    }

    /// Whether it is so on every rank. Collective.
    fn all(&self, is_so: bool) -> Result<bool> {
        self.comm.all(is_so).map_err(|e| of_mpi(&e))
    }

    /// PnetCDF's rules for the alignment since 1.14: the hints first (the environment's stand
    /// before the program's already), then this call's arguments, then 512 bytes for where the
    /// data begin.
    fn alignment(
        &mut self,
        [header_room, v_align, record_room, r_align]: [u64; 4],
    ) -> Result<Alignment> {
        let schema = self.schema()?;
        let begins_with_records = schema.vars.iter().all(|var| schema.is_record(var));
        let nothing = schema.vars.is_empty();
        // Where ranks define different things, what all of them have decides: places must be the same on each.
        let (begins_with_records, nothing) = match self.merges {
            true => (self.all(begins_with_records)?, self.all(nothing)?),
            false => (begins_with_records, nothing),
        };
        let four = |n: u64| n.max(4).next_multiple_of(4);
        let choose = |hint: u64, argument: u64, default: u64| {
            four([hint, argument].into_iter().find(|n| *n > 0).unwrap_or(default))
        };
        let data = choose(self.hinted.data, v_align, 512);
        let default = if begins_with_records { 512 } else { 4 };
        let records = choose(self.hinted.records, r_align, default);
        self.aligns = if nothing { Aligns::default() } else { Aligns { data, records } };
        Ok(Alignment {
            header: data,
            variable: 4,
            records,
            header_room,
            record_room,
            records_from: self.kept_for_records,
            never_back: true,
        })
    }

    /// A hint's value.
    pub(crate) fn hint(&self, name: &str) -> Option<&str> {
        self.info.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A hint's value as a number.
    pub(crate) fn hint_number(&self, name: &str) -> Option<u64> {
        self.hint(name)?.trim().parse().ok()
    }

    /// Changes names or attributes, in either mode. Collective in data mode.
    pub(crate) fn change(
        &mut self,
        touched: Touched,
        in_define: impl FnOnce(&mut Define) -> esker::Result<()>,
        in_data: impl FnOnce(&mut Schema) -> std::result::Result<(), esker::SchemaError>,
    ) -> Result<()> {
        let changed = match &mut self.state {
            State::Define(define) => in_define(define).map_err(|e| of(&e)),
            State::Data(dataset) => dataset.amend(in_data).map_err(|e| together(&*self.comm, &e)),
            State::Lost => Err(NC_EFILE),
        };
        self.changed(touched);
        changed
    }
}

/// The smallest code of all ranks. Collective.
pub(crate) fn least(comm: &dyn Communicator, code: Code) -> Code {
    if comm.size() == 1 {
        return code;
    }
    let mut codes = [i64::from(code)];
    match comm.all_reduce(Reduction::I64(&mut codes), ReduceOp::Min) {
        Ok(()) => codes[0] as Code,
        Err(error) => of_mpi(&error),
    }
}

/// The code of a collective call that failed, which is an error on every rank: a rank that only
/// knows that another failed learns the code of that one. Collective.
pub(crate) fn together(comm: &dyn Communicator, error: &Error) -> Code {
    let own = of(error);
    match error {
        // Those who have aborted it have no error.
        Error::Comm(_) | Error::Aborted { .. } => own,
        Error::OtherRank { .. } => match least(comm, 0) {
            0 => own,
            code => code,
        },
        _ => {
            least(comm, own);
            own
        }
    }
}

/// A name from C: present, not empty, and not too long.
///
/// # Safety
///
/// `name` is null or ends with a zero.
pub(crate) unsafe fn name_of<'a>(name: *const c_char) -> Result<&'a [u8]> {
    if name.is_null() {
        return Err(NC_EBADNAME);
    }
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes();
    if bytes.is_empty() {
        return Err(NC_EBADNAME);
    }
    if bytes.len() > name::MAX_NAME {
        return Err(NC_EMAXNAME);
    }
    Ok(bytes)
}

/// A name that may be given to something new.
pub(crate) fn new_name(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|_| NC_EBADNAME)?;
    match name::fault(&name::normalise(text)) {
        None => Ok(text),
        Some(fault) => Err(told(NC_EBADNAME, fault)),
    }
}

/// Copies a name to where C wants it, if it does.
///
/// # Safety
///
/// `place` is null or has room for the name and a zero.
pub(crate) unsafe fn copy_name(name: &str, place: *mut c_char) {
    if !place.is_null() {
        // SAFETY: the caller vouches for the room.
        unsafe {
            std::ptr::copy_nonoverlapping(name.as_ptr(), place.cast(), name.len());
            place.add(name.len()).write(0);
        }
    }
}

/// Writes a value where C wants it, if it does.
///
/// # Safety
///
/// `place` is null or a place for the value.
pub(crate) unsafe fn give<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller vouches for the place.
        unsafe { place.write_unaligned(value) }
    }
}
