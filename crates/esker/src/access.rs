//! Values in and out: queued, independent and collective.

use std::collections::HashSet;

use bytemuck::cast_slice;
use esker_format::{MemoryType, Native, Values, VarId};

use crate::dataset::Dataset;
use crate::error::{Error, Result, SelectionError};
use crate::layout::{Asked, Wait, together};
use crate::memory::{Lent, Memory, MemoryLayout};
use crate::report::{Report, Strategy};
use crate::request::{Direction, Request, RequestId, Requests};
use crate::selection::{Checked, Purpose, Selection, Space};

/// How a wait, or a call that is one, ends for each request.
pub type Outcomes = Vec<(RequestId, Result<()>)>;

impl Dataset {
    /// Reads a selection into a new vector, converting to `T`. Independent.
    ///
    /// Values that do not fit `T` are [`Error::Range`]; use [`Dataset::get_into`] to have the
    /// rest in spite of it.
    pub fn get<T: Native>(&self, var: VarId, selection: &Selection) -> Result<Vec<T>> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        // The file's own length bounds what a selection can ask for, so that a damaged
        // header does not make us allocate what cannot be there.
        self.require_present(self.file_var(var)?, &checked)?;
        self.require_room(var, checked.elements, size_of::<T>())?;
        let mut out = vec![T::zeroed(); checked.elements as usize];
        let memory = (Memory::target(&mut out), MemoryLayout::dense());
        self.read_long(var, selection, checked, T::MEMORY, memory)?;
        Ok(out)
    }

    /// Reads a selection into `out`, converting to `T`. Independent.
    ///
    /// On [`Error::Range`] everything was read, and values that did not fit are the fill
    /// value of `T`.
    pub fn get_into<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
    ) -> Result<()> {
        self.get_strided(var, selection, out, MemoryLayout::dense())
    }

    /// Like [`Dataset::get_into`], into memory with strides.
    pub fn get_strided<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len())?;
        self.read_long(var, selection, checked, T::MEMORY, (Memory::target(out), layout))
    }

    /// Reads a selection as values of the variable's own type. Independent.
    pub fn get_values(&self, var: VarId, selection: &Selection) -> Result<Values> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        self.require_present(self.file_var(var)?, &checked)?;
        let ty = self.variable(var)?.ty;
        self.require_room(var, checked.elements, ty.natural().size())?;
        let mut out = Values::zeros(ty, checked.elements as usize);
        let lent = Lent::Target(out.native_bytes_mut());
        let memory = (lent, MemoryLayout::dense());
        self.read_long(var, selection, checked, ty.natural(), memory)?;
        Ok(out)
    }

    /// Writes `data` to a selection, converting to the variable's type. Independent.
    ///
    /// Writing beyond the last record makes new records. On [`Error::Range`] everything was
    /// written, and values that did not fit are the variable's fill value.
    pub fn put<T: Native>(&mut self, var: VarId, selection: &Selection, data: &[T]) -> Result<()> {
        self.put_strided(var, selection, data, MemoryLayout::dense())
    }

    /// Like [`Dataset::put`], from memory with strides.
    pub fn put_strided<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        self.iput_strided(&mut queue, var, selection, data, layout)?;
        self.wait(&mut queue)
    }

    /// Writes values of whatever type they are to a selection. Independent.
    pub fn put_values(&mut self, var: VarId, selection: &Selection, data: &Values) -> Result<()> {
        let mut queue = Requests::new();
        let lent = Lent::Source(data.native_bytes());
        let ty = data.ty().natural();
        self.queue_put(&mut queue, var, selection, lent, ty, MemoryLayout::dense(), data.len())?;
        self.wait(&mut queue)
    }

    /// Appends whole records to a record variable, after the dataset's last record; gives the
    /// number of the first of them. Independent: for one rank.
    pub fn append<T: Native>(&mut self, var: VarId, data: &[T]) -> Result<u64> {
        let shape = self.shape(var)?;
        let refuse = |source| Err(self.selection_error(var, source));
        if !self.schema().is_record(self.variable(var)?) {
            return refuse(SelectionError::NotRecord);
        }
        let record = shape[1..].iter().product::<u64>().max(1);
        let given = data.len() as u64;
        if !given.is_multiple_of(record) {
            return refuse(SelectionError::NotWholeRecords { given, record });
        }
        let first = self.ground.records;
        let (mut start, mut count) = (vec![0; shape.len()], shape);
        (start[0], count[0]) = (first, given / record);
        self.put(var, &Selection::slab(&start, &count), data)?;
        Ok(first)
    }

    /// Writes `data` to a selection, together with all other ranks, each with a selection of
    /// its own (perhaps [`Selection::none`]). Collective.
    pub fn put_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
    ) -> Result<()> {
        self.put_strided_all(var, selection, data, MemoryLayout::dense())
    }

    /// Like [`Dataset::put_all`], from memory with strides. Collective.
    pub fn put_strided_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iput_strided(&mut queue, var, selection, data, layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Reads a selection into a new vector, together with all other ranks. Collective.
    pub fn get_all<T: Native>(&mut self, var: VarId, selection: &Selection) -> Result<Vec<T>> {
        let elements = self.file_var(var).and_then(|file_var| {
            let checked = self.check(file_var, selection, Purpose::Read)?;
            self.require_present(file_var, &checked)?;
            // Before anybody reads: a rank without memory is an error of all.
            self.require_room(var, checked.elements, size_of::<T>())?;
            Ok(checked.elements as usize)
        });
        let mut out = vec![T::zeroed(); *elements.as_ref().unwrap_or(&0)];
        let mut queue = Requests::new();
        let queued = elements.and_then(|_| self.iget(&mut queue, var, selection, &mut out));
        self.all_together(&mut queue, queued.map(drop))?;
        drop(queue);
        Ok(out)
    }

    /// Reads a selection into `out`, together with all other ranks. Collective.
    pub fn get_all_into<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
    ) -> Result<()> {
        self.get_strided_all(var, selection, out, MemoryLayout::dense())
    }

    /// Like [`Dataset::get_all_into`], into memory with strides. Collective.
    pub fn get_strided_all<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        out: &mut [T],
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iget_strided(&mut queue, var, selection, out, layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Queues a write. Nothing moves before a wait, and `data` is lent until then.
    pub fn iput<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        data: &'b [T],
    ) -> Result<RequestId> {
        self.iput_strided(queue, var, selection, data, MemoryLayout::dense())
    }

    /// Queues a write from memory with strides.
    pub fn iput_strided<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        data: &'b [T],
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let lent = Memory::source(data);
        self.queue_put(queue, var, selection, lent, T::MEMORY, layout, data.len())
    }

    /// Queues a write from memory whose type is known only when the program runs; it needs no
    /// alignment.
    pub fn iput_bytes<'b>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        (data, ty): (&'b [u8], MemoryType),
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let elements = data.len() / ty.size();
        self.queue_put(queue, var, selection, Lent::Source(data), ty, layout, elements)
    }

    /// Queues a read into memory whose type is known only when the program runs; it needs no
    /// alignment.
    pub fn iget_bytes<'b>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        (out, ty): (&'b mut [u8], MemoryType),
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let file_var = self.file_var(var)?;
        let checked = self.check(file_var, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len() / ty.size())?;
        let memory = self.ground.memory(file_var, Lent::Target(out), ty, layout)?;
        Ok(self.push(queue, Direction::Get, file_var, checked, memory))
    }

    /// Reads a selection into memory whose type is known only when the program runs; it needs no
    /// alignment. Independent.
    pub fn get_bytes(
        &self,
        var: VarId,
        selection: &Selection,
        (out, ty): (&mut [u8], MemoryType),
        layout: MemoryLayout,
    ) -> Result<()> {
        let checked = self.check(self.file_var(var)?, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len() / ty.size())?;
        self.read_alone(var, checked, ty, Lent::Target(out), layout)
    }

    /// Like [`Dataset::get_bytes`], together with all other ranks. Collective.
    pub fn get_bytes_all(
        &mut self,
        var: VarId,
        selection: &Selection,
        (out, ty): (&mut [u8], MemoryType),
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iget_bytes(&mut queue, var, selection, (out, ty), layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Writes memory whose type is known only when the program runs, together with all other
    /// ranks. Collective.
    pub fn put_bytes_all(
        &mut self,
        var: VarId,
        selection: &Selection,
        (data, ty): (&[u8], MemoryType),
        layout: MemoryLayout,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iput_bytes(&mut queue, var, selection, (data, ty), layout).map(drop);
        self.all_together(&mut queue, queued)
    }

    /// Queues a write of a copy of `data`, kept in the attached buffer of the queue until it
    /// is written ([`Requests::attach_buffer`]).
    pub fn bput<T: Native>(
        &self,
        queue: &mut Requests<'_>,
        var: VarId,
        selection: &Selection,
        data: &[T],
    ) -> Result<RequestId> {
        let bytes: &[u8] = cast_slice(data);
        queue.reserve(bytes.len() as u64)?;
        let lent = Lent::Kept(bytes.to_vec());
        let dense = MemoryLayout::dense();
        let queued = self.queue_put(queue, var, selection, lent, T::MEMORY, dense, data.len());
        if queued.is_err() {
            queue.give_back(bytes.len() as u64);
        }
        queued
    }

    /// Queues a read. Nothing moves before a wait, and `out` is lent until then.
    pub fn iget<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        out: &'b mut [T],
    ) -> Result<RequestId> {
        self.iget_strided(queue, var, selection, out, MemoryLayout::dense())
    }

    /// Queues a read into memory with strides.
    pub fn iget_strided<'b, T: Native>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        out: &'b mut [T],
        layout: MemoryLayout,
    ) -> Result<RequestId> {
        let file_var = self.file_var(var)?;
        let checked = self.check(file_var, selection, Purpose::Read)?;
        self.require_memory(var, &checked, &layout, out.len())?;
        let memory = self.ground.memory(file_var, Memory::target(out), T::MEMORY, layout)?;
        Ok(self.push(queue, Direction::Get, file_var, checked, memory))
    }

    /// Moves everything queued, on this rank alone. Independent.
    ///
    /// The first error of a request is returned, after all that could be moved was; values
    /// out of range ([`Error::Range`]) do not keep other values from being moved.
    pub fn wait(&mut self, queue: &mut Requests<'_>) -> Result<()> {
        first_error(self.wait_each(queue, None)?)
    }

    /// Moves these requests (all that are queued if `None`) on this rank alone, and tells how
    /// each ended. Independent.
    pub fn wait_each(
        &mut self,
        queue: &mut Requests<'_>,
        ids: Option<&[RequestId]>,
    ) -> Result<Outcomes> {
        let mut requests = take(queue, ids);
        let moved = self.move_alone(&mut requests);
        queue.release(&requests);
        moved?;
        Ok(self.outcomes(requests))
    }

    /// Moves everything queued by any rank, planned together. Collective.
    ///
    /// When a rank cannot take part, because of a wrong argument or a full disk, every rank
    /// gets an error. [`Error::Range`] is this rank's alone; its data were moved.
    pub fn wait_all(&mut self, queue: &mut Requests<'_>) -> Result<()> {
        first_error(self.wait_all_each(queue, None)?)
    }

    /// Moves these requests of each rank (all that are queued if `None`) and tells how each
    /// ended. Collective.
    pub fn wait_all_each(
        &mut self,
        queue: &mut Requests<'_>,
        ids: Option<&[RequestId]>,
    ) -> Result<Outcomes> {
        let mut requests = take(queue, ids);
        let moved = self.move_together(&mut requests, Ok(()));
        queue.release(&requests);
        moved?;
        Ok(self.outcomes(requests))
    }

    /// Takes part in a collective read or write with an error instead of a request, so that every
    /// rank gets one: for callers who refuse a request before the library sees it. Collective.
    pub fn refuse_all(&mut self, why: impl Into<String>) -> Result<()> {
        self.all_together(&mut Requests::new(), Err(Error::Refused(why.into())))
    }

    /// A blocking collective call: a queue of one, or of none where queueing it failed.
    pub(crate) fn all_together(
        &mut self,
        queue: &mut Requests<'_>,
        queued: Result<()>,
    ) -> Result<()> {
        let mut requests = std::mem::take(&mut queue.queue);
        self.move_together(&mut requests, queued)?;
        first_error(self.outcomes(requests))
    }

    #[allow(clippy::too_many_arguments)]
    fn queue_put<'b>(
        &self,
        queue: &mut Requests<'b>,
        var: VarId,
        selection: &Selection,
        lent: Lent<'b>,
        memory: MemoryType,
        layout: MemoryLayout,
        elements: usize,
    ) -> Result<RequestId> {
        self.require_writable("write")?;
        let file_var = self.file_var(var)?;
        let purpose = Purpose::Write { elements: elements as u64 };
        let checked = self.check(file_var, selection, purpose)?;
        self.require_memory(var, &checked, &layout, elements)?;
        self.ground.require_storable(checked.records)?;
        let memory = self.ground.memory(file_var, lent, memory, layout)?;
        Ok(self.push(queue, Direction::Put, file_var, checked, memory))
    }

    fn push<'b>(
        &self,
        queue: &mut Requests<'b>,
        direction: Direction,
        var: VarId,
        checked: Checked,
        memory: Memory<'b>,
    ) -> RequestId {
        let epoch = self.ground.epoch;
        queue.push(|id| Request::new(id, (direction, var, checked), memory, epoch))
    }

    pub(crate) fn check(
        &self,
        var: VarId,
        selection: &Selection,
        purpose: Purpose,
    ) -> Result<Checked> {
        let asked = Asked { var, selection, purpose, space: Space::File };
        self.layout.check(&self.ground, asked)
    }

    fn selection_error(&self, var: VarId, source: SelectionError) -> Error {
        let name = self.schema().variable(var).map_or("", |v| &*v.name);
        Error::Selection { path: self.ground.base.path.clone(), var: name.to_string(), source }
    }

    fn require_memory(
        &self,
        var: VarId,
        checked: &Checked,
        layout: &MemoryLayout,
        len: usize,
    ) -> Result<()> {
        layout.check(checked.elements, len).map_err(|source| {
            let var = self.schema().variable(var).map_or("", |v| &*v.name).to_string();
            Error::Memory { path: self.ground.base.path.clone(), var, source }
        })
    }

    /// Fails if there is no memory for so many elements of this size. (What is asked for is given back:
    /// memory that the system has cleared is got by other means.)
    pub(crate) fn require_room(&self, var: VarId, elements: u64, size: usize) -> Result<()> {
        let bytes = u128::from(elements) * size as u128;
        let mut trial: Vec<u8> = Vec::new();
        let fits = usize::try_from(bytes).is_ok_and(|bytes| trial.try_reserve_exact(bytes).is_ok());
        if fits {
            return Ok(());
        }
        let name = self.schema().variable(var).map_or("", |v| &*v.name);
        Err(Error::NoMemory { path: self.ground.base.path.clone(), var: name.to_string(), bytes })
    }

    fn require_present(&self, var: VarId, checked: &Checked) -> Result<()> {
        self.layout.require_present(&self.ground, var, checked, false)
    }

    /// Reads one checked selection, with `&self`, so that threads may read at the same time.
    pub(crate) fn read_alone(
        &self,
        var: VarId,
        checked: Checked,
        ty: MemoryType,
        lent: Lent<'_>,
        layout: MemoryLayout,
    ) -> Result<()> {
        let file_var = self.file_var(var)?;
        let memory = self.ground.memory(file_var, lent, ty, layout)?;
        let mut queue = Requests::new();
        self.push(&mut queue, Direction::Get, file_var, checked, memory);
        let mut requests = queue.queue;
        let mut report = Report::default();
        self.layout.read_alone(&self.ground, &mut requests, None, &mut report)?;
        first_error(self.outcomes(requests))
    }

    /// The way of an independent wait.
    fn move_alone(&mut self, requests: &mut Vec<Request<'_>>) -> Result<()> {
        self.require_all_expected(requests)?;
        let Dataset { ground, layout, .. } = self;
        // Of several ranks none can do so alone.
        if ground.base.comm.size() == 1 {
            layout.mend(ground)?;
        }
        ground.require_current(requests)?;
        let Wait { mut puts, mut gets, .. } = Wait::of(std::mem::take(requests));
        let mut report = ground.report;
        let mut moved = match puts.is_empty() {
            true => Ok(()),
            false => layout.write_alone(ground, &mut puts, &mut report),
        };
        if moved.is_ok() && !gets.is_empty() {
            // Room for what was written may have moved what is read.
            ground.follow_moves(&mut gets);
            report.read_strategy = Strategy::Direct;
            moved = layout.read_alone(ground, &mut gets, None, &mut report);
        }
        report.calls += 1;
        ground.report = report;
        *requests = Wait::join(puts, gets);
        moved
    }

    /// The road of a collective call. `ready` is this rank's own outcome so far.
    fn move_together(&mut self, requests: &mut Vec<Request<'_>>, ready: Result<()>) -> Result<()> {
        let ready = ready.and_then(|()| self.require_all_expected(requests));
        let Dataset { ground, layout, .. } = self;
        layout.mend(ground)?;
        let ready = ready.and_then(|()| ground.require_current(requests));
        ground.report.calls += 1;
        let mut wait = Wait::of(std::mem::take(requests));
        let moved = together(&mut **layout, ground, &mut wait, ready);
        *requests = wait.into_requests();
        moved
    }

    fn outcomes(&self, requests: Vec<Request<'_>>) -> Outcomes {
        let mut outcomes: Outcomes = requests
            .into_iter()
            .map(|request| {
                let outcome = if request.range.all_fit() {
                    match request.direction {
                        Direction::Get => self.require_expected(&request),
                        Direction::Put => Ok(()),
                    }
                } else {
                    let var = self.ground.name(request.var);
                    let path = self.ground.base.path.clone();
                    Err(Error::Range { path, var, report: request.range })
                };
                (request.id, outcome)
            })
            .collect();
        outcomes.sort_by_key(|(id, _)| *id);
        outcomes
    }
}

/// Takes the requests to be moved out of the queue.
fn take<'b>(queue: &mut Requests<'b>, ids: Option<&[RequestId]>) -> Vec<Request<'b>> {
    match ids {
        None => std::mem::take(&mut queue.queue),
        Some(ids) => queue.remove(&ids.iter().copied().collect::<HashSet<_>>()),
    }
}

fn first_error(outcomes: Outcomes) -> Result<()> {
    outcomes.into_iter().find_map(|(_, outcome)| outcome.err()).map_or(Ok(()), Err)
}
