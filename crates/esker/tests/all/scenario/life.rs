//! The dataset and its model.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimId, DimLen, Error, ExternalType, FillMode,
    Native, OpenOptions, Owner, Requests, Selection, Values, VarId, Version, values,
};

use super::buffer::{Buffer, Kind, random_kind, widest};
use super::dice::{
    Chosen, Dice, Placed, Slab, chosen, dense, nothing, placed, random_hints, random_slab, split,
};
use super::{Expected, Way};

/// A variable as it should be.
struct Model {
    var: VarId,
    name: String,
    ty: ExternalType,
    is_record: bool,
    /// Whether it is cut into chunks, which one of several ranks cannot write alone without logs.
    is_chunked: bool,
    /// Without the record dimension.
    shape: Vec<u64>,
    /// Elements of a record, or of the variable.
    record: u64,
    /// What nobody wrote: the fill value, or unknown.
    blank: Option<f64>,
    /// What a value becomes that does not fit.
    fill: f64,
    /// `None` where anything may stand.
    values: Vec<Option<f64>>,
}

impl Model {
    fn full_shape(&self, records: u64) -> Vec<u64> {
        let mut shape = self.shape.clone();
        if self.is_record {
            shape.insert(0, records);
        }
        shape
    }

    fn is_whole_number(&self) -> bool {
        !matches!(self.ty, ExternalType::Char | ExternalType::Float | ExternalType::Double)
    }
}

/// One request of this rank.
struct Move {
    model: usize,
    selection: Selection,
    placed: Placed,
    buffer: Buffer,
    stage: u64,
    buffered: bool,
    cancelled: bool,
    /// Whether a value does not fit.
    out_of_range: bool,
}

/// What one rank writes.
struct Written {
    stage: u64,
    model: usize,
    owner: usize,
    order: Vec<u64>,
    values: Vec<f64>,
}

/// What this rank reads in a wait, and what it should get.
struct Get {
    request: Move,
    order: Vec<u64>,
    expected: Vec<Option<f64>>,
}

/// A value that fits no integer type.
const TOO_LARGE: f64 = 1e30;

/// The stage of a write that is taken back.
const NEVER: u64 = u64::MAX;

pub(crate) struct Life {
    way: Way,
    seed: u64,
    dice: Dice,
    comm: Arc<dyn Communicator>,
    path: PathBuf,
    version: Version,
    fill: FillMode,
    time: DimId,
    dims: Vec<(DimId, u64)>,
    models: Vec<Model>,
    records: u64,
    /// Taken away only while it is redefined or opened again.
    dataset: Option<Dataset>,
}

impl Life {
    pub(crate) fn begin(way: Way, seed: u64, comm: Arc<dyn Communicator>, path: &Path) -> Life {
        let mut dice = Dice::new(seed);
        let version = Version::ALL[dice.below(3) as usize];
        let fill = if dice.one_in(2) { FillMode::Fill } else { FillMode::NoFill };
        // What nobody has written of a chunk is the fill value in any case.
        let fill = if way.chunks { FillMode::Fill } else { fill };
        let mut hints = random_hints(&mut dice, comm.size() as u64);
        of_way(&mut dice, &mut hints, way, path);
        let options =
            CreateOptions::new().version(version).fill(fill).hints(hints).comm(comm.clone());
        let mut def = Dataset::create(path, (way.create)(options)).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let mut dims = Vec::new();
        for i in 0..3 {
            let len = 1 + dice.below(11);
            dims.push((def.add_dim(&format!("d{i}"), DimLen::Fixed(len)).unwrap(), len));
        }
        let path = path.to_path_buf();
        let (models, records, dataset) = (Vec::new(), 0, None);
        let mut life = Life {
            way,
            seed,
            dice,
            comm,
            path,
            version,
            fill,
            time,
            dims,
            models,
            records,
            dataset,
        };
        for _ in 0..1 + life.dice.below(5) {
            life.define(&mut def);
        }
        life.dataset = Some(def.enddef().unwrap());
        life
    }

    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn ranks(&self) -> u64 {
        self.comm.size() as u64
    }

    fn ds(&mut self) -> &mut Dataset {
        self.dataset.as_mut().unwrap()
    }

    fn define(&mut self, def: &mut Define) {
        let types: Vec<_> =
            ExternalType::ALL.into_iter().filter(|t| self.version.has_type(*t)).collect();
        let dice = &mut self.dice;
        let ty = types[dice.below(types.len() as u64) as usize];
        let is_record = dice.one_in(2);
        let chosen: Vec<_> =
            (0..dice.below(4)).map(|_| self.dims[dice.below(3) as usize]).collect();
        let mut ids: Vec<_> = chosen.iter().map(|d| d.0).collect();
        if is_record {
            ids.insert(0, self.time);
        }
        let name = format!("v{}", self.models.len());
        let var = def.add_var(&name, ty, &ids).unwrap();
        if dice.one_in(3) {
            def.put_attr(var, "_FillValue", of_type(77, ty)).unwrap();
        }
        if self.way.log && dice.one_in(3) {
            let filters = ["zstd,1", "shuffle deflate,1", "bitshuffle lz4", "crc32c"];
            def.set_filters(var, filters[dice.below(4) as usize]).unwrap();
        }
        let is_chunked = self.way.chunks && !ids.is_empty() && !dice.one_in(4);
        if is_chunked {
            random_chunks(dice, def, var, is_record, &chosen);
        }
        if ty == ExternalType::Char {
            def.put_attr(var, "long_name", "text, häufig").unwrap();
        }
        let fill = values::fill_value(def.schema().variable(var).unwrap());
        let fill = match ty {
            ExternalType::Char => f64::from(fill.external_bytes()[0]),
            _ => fill.get_f64(0).unwrap(),
        };
        let blank = (self.fill == FillMode::Fill).then_some(fill);
        let shape: Vec<u64> = chosen.iter().map(|d| d.1).collect();
        let record: u64 = shape.iter().product();
        let len = if is_record { record * self.records } else { record };
        let values = vec![blank; len as usize];
        self.models.push(Model {
            var,
            name,
            ty,
            is_record,
            is_chunked,
            shape,
            record,
            blank,
            fill,
            values,
        });
    }

    /// One thing that happens, and a look at what is there afterwards.
    pub(crate) fn step(&mut self, step: u64) {
        let what =
            format!("seed {}, step {step}, {} ranks, {:?}", self.seed, self.ranks(), self.path);
        match self.dice.below(12) {
            0 => self.redefine(),
            1 => self.open_again(),
            2..=4 => self.write_queued(&what),
            5..=6 => self.write_blocking(&what),
            7 => self.write_alone(&what),
            8 => self.grow_alone(),
            _ => {}
        }
        // Independent reads may follow only when everyone has written; those of a log see what
        // others wrote after a collective read or a sync.
        if self.has_burst_buffer() && self.is_left_in_the_logs() {
            if self.ranks() == 1 {
                // Its own, from the logs or the file.
                self.read(&what);
            }
            return;
        }
        match self.way.log || self.has_burst_buffer() {
            true if self.dice.one_in(8) => self.ds().sync().unwrap(),
            true => {
                let Model { var, ty, .. } = self.models[0];
                let none = Selection::none();
                Buffer::fetched(widest(ty), self.ds(), var, &none, true).unwrap();
            }
            false => self.comm.barrier().unwrap(),
        }
        self.read(&what);
        self.comm.barrier().unwrap();
    }

    /// Also where the environment says so.
    fn has_burst_buffer(&mut self) -> bool {
        self.ds().hints().effective().contains(&("nc_burst_buf", "enable".to_string()))
    }

    /// Whether what was written stays in the logs for now, after a flush of what was there or not.
    fn is_left_in_the_logs(&mut self) -> bool {
        match self.dice.below(8) {
            0 => self.ds().flush().unwrap(),
            1 => {
                // Whatever comes next goes into the other logs while this is under way.
                drop(self.ds().flush_start().unwrap());
            }
            2 => {
                let token = self.ds().flush_start().unwrap();
                token.test();
                self.ds().flush_wait(token).unwrap();
            }
            // What ranks write for themselves has an order if they meet in between.
            _ => self.ds().wait_all(&mut Requests::new()).unwrap(),
        }
        self.dice.one_in(2)
    }

    /// New variables, a longer header.
    fn redefine(&mut self) {
        let mut def = self.dataset.take().unwrap().redef().unwrap();
        let text = "x".repeat(self.dice.below(300) as usize);
        def.put_attr(Owner::Global, "note", text).unwrap();
        if self.dice.one_in(2) {
            self.define(&mut def);
        }
        self.dataset = Some(def.enddef().unwrap());
    }

    fn open_again(&mut self) {
        self.dataset.take().unwrap().close().unwrap();
        self.comm.barrier().unwrap();
        let ranks = self.ranks();
        let mut hints = random_hints(&mut self.dice, ranks);
        of_way(&mut self.dice, &mut hints, self.way, &self.path);
        let options = OpenOptions::new().writable(true).fill(self.fill).hints(hints);
        self.dataset = Some(
            Dataset::open_with(&self.path, (self.way.open)(options.comm(self.comm.clone())))
                .unwrap(),
        );
    }

    /// Values for some elements of a variable, and whether one of them does not fit.
    fn random_values(&mut self, model: usize, kind: Kind, count: usize) -> (Vec<f64>, bool) {
        let wild = self.models[model].is_whole_number() && kind == Kind::F64 && self.dice.one_in(4);
        let mut values: Vec<f64> = (0..count).map(|_| self.dice.below(100) as f64).collect();
        if wild && count > 0 {
            let at = self.dice.below(count as u64) as usize;
            values[at] = TOO_LARGE;
        }
        (values, wild && count > 0)
    }

    /// The request of `owner` for `part` of a variable; on that rank also its memory.
    fn request(
        &mut self,
        model: usize,
        part: &Slab,
        shape: &[u64],
        owner: usize,
        buffered: bool,
    ) -> (Written, Move) {
        let Chosen { selection, order, shape } = chosen(&mut self.dice, part, shape);
        let kind = random_kind(&mut self.dice, self.models[model].ty);
        let (values, out_of_range) = self.random_values(model, kind, order.len());
        let placed = match buffered {
            true => dense(order.len()),
            false => placed(&mut self.dice, &shape),
        };
        let mut memory = vec![99.0; placed.len];
        for (place, value) in placed.places.iter().zip(&values) {
            memory[*place] = *value;
        }
        let buffer = Buffer::new(kind, &memory);
        let written = Written { stage: 0, model, owner, order, values };
        let (stage, cancelled) = (0, false);
        let request =
            Move { model, selection, placed, buffer, stage, buffered, cancelled, out_of_range };
        (written, request)
    }

    /// What the model is after the writes of one stage.
    fn apply(&mut self, all: &[Written], stage: u64) {
        let mut writers: HashMap<(usize, u64), usize> = HashMap::new();
        for Written { model: number, owner, order, values, .. } in
            all.iter().filter(|w| w.stage == stage)
        {
            let model = &self.models[*number];
            if model.is_record {
                let last = order.iter().max().map_or(0, |e| e / model.record + 1);
                self.grow(last, true);
            }
            let model = &mut self.models[*number];
            for (element, value) in order.iter().zip(values) {
                // Of two ranks that write one element in one wait, either may win. Of one
                // rank's own writes the last wins.
                let writer = writers.entry((*number, *element)).or_insert(*owner);
                let known = *writer == *owner;
                if !known {
                    *writer = usize::MAX;
                }
                let value = if *value == TOO_LARGE { model.fill } else { *value };
                model.values[*element as usize] = known.then_some(value);
            }
        }
    }

    fn grow(&mut self, records: u64, filled: bool) {
        if records <= self.records {
            return;
        }
        self.records = records;
        for model in self.models.iter_mut().filter(|m| m.is_record) {
            let blank = model.blank.filter(|_| filled);
            model.values.resize((model.record * records) as usize, blank);
        }
    }

    /// Puts and gets of every rank in one queue, some taken back, moved in one wait or two.
    fn write_queued(&mut self, what: &str) {
        let (rank, ranks) = (self.rank(), self.ranks());
        let stages = 1 + self.dice.below(2);
        let mut all: Vec<Written> = Vec::new();
        let mut puts: Vec<Move> = Vec::new();
        for _ in 0..1 + self.dice.below(4) * self.dice.below(3) {
            let number = self.dice.below(self.models.len() as u64) as usize;
            let room = self.records + 1 + self.dice.below(3);
            let shape = self.models[number].full_shape(room);
            let slab = random_slab(&mut self.dice, &shape);
            let parts = split(&mut self.dice, &slab, ranks);
            let stage = self.dice.below(stages);
            for (owner, part) in parts.iter().enumerate() {
                let Some(part) = part else { continue };
                let buffered = all.len() % 3 == 2;
                let (mut written, mut request) =
                    self.request(number, part, &shape, owner, buffered);
                (written.stage, request.stage) = (stage, stage);
                request.cancelled = self.dice.one_in(8);
                if request.cancelled {
                    written.stage = NEVER;
                }
                all.push(written);
                if owner == rank {
                    puts.push(request);
                }
            }
        }
        let mut gets = self.random_gets(stages);
        for stage in 0..stages {
            self.apply(&all, stage);
            for get in gets.iter_mut().filter(|g| g.request.stage == stage) {
                let values = &self.models[get.request.model].values;
                get.expected = get.order.iter().map(|e| values[*e as usize]).collect();
            }
        }
        self.move_queued(&puts, &mut gets, stages, what);
        for get in &gets {
            self.compare_placed(&get.request, &get.expected, what);
        }
    }

    /// What this rank reads along with what everyone writes: of records that are there.
    fn random_gets(&mut self, stages: u64) -> Vec<Get> {
        let mut gets = Vec::new();
        for owner in 0..self.comm.size() {
            let number = self.dice.below(self.models.len() as u64) as usize;
            let shape = self.models[number].full_shape(self.records);
            let stage = self.dice.below(stages);
            if shape.contains(&0) || self.dice.one_in(2) {
                continue;
            }
            let slab = random_slab(&mut self.dice, &shape);
            let Chosen { selection, order, shape } = chosen(&mut self.dice, &slab, &shape);
            let placed = placed(&mut self.dice, &shape);
            if owner == self.rank() {
                let kind = widest(self.models[number].ty);
                let buffer = Buffer::new(kind, &vec![0.0; placed.len]);
                let request = Move {
                    model: number,
                    selection,
                    placed,
                    buffer,
                    stage,
                    buffered: false,
                    cancelled: false,
                    out_of_range: false,
                };
                gets.push(Get { request, order, expected: Vec::new() });
            }
        }
        gets
    }

    fn move_queued(&mut self, puts: &[Move], gets: &mut [Get], stages: u64, what: &str) {
        let vars: Vec<VarId> = self.models.iter().map(|m| m.var).collect();
        let ds = self.ds();
        let overlapping = puts.len() > 1;
        let mut queue = Requests::new();
        queue.attach_buffer(1 << 20).unwrap();
        // The requests of each stage, and whether a value of them does not fit.
        let mut stage_ids = vec![Vec::new(); stages as usize];
        let mut cancelled = Vec::new();
        for put in puts {
            let var = vars[put.model];
            let id = match put.buffered {
                true => put.buffer.bput(ds, &mut queue, var, &put.selection),
                false => {
                    let layout = put.placed.layout.clone();
                    put.buffer.iput(ds, &mut queue, var, &put.selection, layout)
                }
            };
            let id = id.unwrap();
            match put.cancelled {
                true => cancelled.push(id),
                false => stage_ids[put.stage as usize].push((id, put.out_of_range)),
            }
        }
        for Get { request, .. } in gets {
            let (var, layout) = (vars[request.model], request.placed.layout.clone());
            let id = request.buffer.iget(ds, &mut queue, var, &request.selection, layout);
            stage_ids[request.stage as usize].push((id.unwrap(), false));
        }
        for id in cancelled {
            assert!(queue.cancel(id), "{what}");
            assert!(!queue.cancel(id), "{what}");
        }
        for (stage, mut requests) in stage_ids.into_iter().enumerate() {
            let ids: Vec<_> = requests.iter().map(|(id, _)| *id).collect();
            // The last stage is everything that is left.
            let ids = (stage as u64 + 1 < stages).then_some(ids.as_slice());
            let outcomes = ds.wait_all_each(&mut queue, ids).unwrap();
            requests.sort();
            assert_eq!(outcomes.len(), requests.len(), "{what}");
            for ((id, outcome), (expected, out_of_range)) in outcomes.iter().zip(&requests) {
                assert_eq!(id, expected, "{what}");
                let is_range = matches!(outcome, Err(Error::Range { .. }));
                assert!(outcome.is_ok() || is_range, "{what}: {outcome:?}");
                // What a later request of the same wait writes over is never looked at.
                assert!(is_range <= *out_of_range, "{what}: {outcome:?}");
                assert!(is_range == *out_of_range || overlapping, "{what}: {outcome:?}");
            }
        }
        assert!(queue.is_empty());
        assert_eq!(queue.buffer_usage(), Some((1 << 20, 0)));
    }

    /// One blocking collective call, in which some ranks may have nothing.
    fn write_blocking(&mut self, what: &str) {
        let number = self.dice.below(self.models.len() as u64) as usize;
        let room = self.records + 1 + self.dice.below(3);
        let shape = self.models[number].full_shape(room);
        let slab = random_slab(&mut self.dice, &shape);
        let ranks = self.ranks();
        let parts = split(&mut self.dice, &slab, ranks);
        let mut all = Vec::new();
        let mut mine = None;
        for (owner, part) in parts.iter().enumerate() {
            match part {
                Some(part) => {
                    let (written, request) = self.request(number, part, &shape, owner, false);
                    all.push(written);
                    if owner == self.rank() {
                        mine = Some(request);
                    }
                }
                None => {
                    let selection = nothing(&mut self.dice, &shape);
                    let kind = random_kind(&mut self.dice, self.models[number].ty);
                    if owner == self.rank() {
                        mine = Some(Move {
                            model: number,
                            selection,
                            placed: dense(0),
                            buffer: Buffer::new(kind, &[]),
                            stage: 0,
                            buffered: false,
                            cancelled: false,
                            out_of_range: false,
                        });
                    }
                }
            }
        }
        self.apply(&all, 0);
        self.put_now(&mine.unwrap(), true, what);
    }

    /// One rank writes for itself to records that are there.
    fn write_alone(&mut self, what: &str) {
        let owner = self.dice.below(self.ranks()) as usize;
        let number = self.dice.below(self.models.len() as u64) as usize;
        // Records that one of several ranks makes are not filled; see `grow_alone`.
        let more = if self.ranks() == 1 { self.dice.below(3) } else { 0 };
        let shape = self.models[number].full_shape(self.records + more);
        if shape.contains(&0) {
            return;
        }
        let slab = random_slab(&mut self.dice, &shape);
        let (written, request) = self.request(number, &slab, &shape, owner, false);
        self.apply(&[written], 0);
        if owner == self.rank() {
            self.put_now(&request, false, what);
        }
        if self.models[number].is_chunked && self.ranks() > 1 && !self.has_burst_buffer() {
            self.complete(number, owner);
        }
    }

    /// What a rank alone put into chunks waits for a collective call: until then it sees it, and from then on all do.
    fn complete(&mut self, number: usize, owner: usize) {
        if owner == self.rank() {
            let (var, ty) = (self.models[number].var, self.models[number].ty);
            let found = Buffer::fetched(widest(ty), self.ds(), var, &Selection::all(), false);
            compare(&found.unwrap().values(), &self.models[number].values, "its own puts");
        }
        match self.dice.below(3) {
            0 => self.ds().sync().unwrap(),
            1 => self.ds().wait_all(&mut Requests::new()).unwrap(),
            _ => self.ds().complete_puts().unwrap(),
        }
    }

    /// One rank makes records for itself, and the next collective call tells everyone.
    fn grow_alone(&mut self) {
        let owner = self.dice.below(self.ranks()) as usize;
        let alone = self.ranks() == 1;
        let Some(number) = self.models.iter().position(|m| m.is_record) else { return };
        let at = self.records + self.dice.below(3);
        let value = self.dice.below(100) as f64;
        let old = self.records;
        self.grow(at + 1, alone);
        let record = self.models[number].record;
        let model = &mut self.models[number];
        model.values[(record * at) as usize..].fill(Some(value));
        let (var, ty) = (model.var, model.ty);
        let mut shape = model.full_shape(1);
        let mut start = vec![0; shape.len()];
        (start[0], shape[0]) = (at, 1);
        let is_mine = owner == self.rank();
        let ds = self.ds();
        if is_mine {
            let buffer = Buffer::new(widest(ty), &vec![value; record as usize]);
            let selection = Selection::slab(&start, &shape);
            buffer.put(ds, var, &selection, dense(0).layout, false).unwrap();
            assert_eq!(ds.numrecs(), at + 1);
        } else if !alone {
            assert_eq!(ds.numrecs(), old);
        }
        match self.dice.below(4) {
            0 => self.ds().sync().unwrap(),
            1 => self.ds().wait_all(&mut Requests::new()).unwrap(),
            2 => self.open_again(),
            _ => self.redefine(),
        }
    }

    fn put_now(&mut self, put: &Move, all: bool, what: &str) {
        let (var, layout) = (self.models[put.model].var, put.placed.layout.clone());
        let outcome = put.buffer.put(self.ds(), var, &put.selection, layout, all);
        let is_range = matches!(outcome, Err(Error::Range { .. }));
        assert_eq!(is_range, put.out_of_range, "{what}: {outcome:?}");
        assert!(outcome.is_ok() || is_range, "{what}: {outcome:?}");
    }

    /// Each rank reads something else of one variable.
    fn read(&mut self, what: &str) {
        let records = self.records;
        assert_eq!(self.ds().numrecs(), records, "{what}");
        let number = self.dice.below(self.models.len() as u64) as usize;
        let shape = self.models[number].full_shape(records);
        if shape.contains(&0) {
            return;
        }
        let way = self.dice.below(6);
        for owner in 0..self.comm.size() {
            let slab = random_slab(&mut self.dice, &shape);
            let some = chosen(&mut self.dice, &slab, &shape);
            let placed = placed(&mut self.dice, &some.shape);
            let kind = random_kind(&mut self.dice, self.models[number].ty);
            let empty = self.dice.one_in(6).then(|| nothing(&mut self.dice, &shape));
            if owner == self.rank() {
                match empty {
                    None => self.read_one(number, some, placed, kind, way, what),
                    Some(selection) => {
                        let (order, shape) = (Vec::new(), vec![0]);
                        let none = Chosen { selection, order, shape };
                        self.read_one(number, none, dense(0), kind, way, what);
                    }
                }
            }
        }
    }

    fn read_one(
        &mut self,
        number: usize,
        chosen: Chosen,
        placed: Placed,
        kind: Kind,
        way: u64,
        what: &str,
    ) {
        let Chosen { selection, order, .. } = chosen;
        let model = &self.models[number];
        let expected: Vec<_> = order.iter().map(|e| model.values[*e as usize]).collect();
        // Fill values and what is unknown may not fit other types.
        let small = expected.iter().all(|v| v.is_some_and(|v| (0.0..100.0).contains(&v)));
        let kind = if small { kind } else { widest(model.ty) };
        let (var, ty, name) = (model.var, model.ty, model.name.clone());
        let all = way.is_multiple_of(2);
        let ds = self.ds();
        let found = match way {
            5 => {
                // Somebody else's comes first, and one is for nobody.
                let first = Buffer::start(kind, ds, var, &selection);
                drop(ds.get_values_start(var, &selection));
                let second = Buffer::start(kind, ds, var, &selection);
                let found = second().unwrap().values();
                assert_eq!(first().unwrap().values(), found);
                found
            }
            0 | 1 => Buffer::fetched(kind, ds, var, &selection, all).unwrap().values(),
            2 | 3 => {
                let mut buffer = Buffer::new(kind, &vec![0.0; placed.len]);
                buffer.get(ds, var, &selection, placed.layout, all).unwrap();
                let memory = buffer.values();
                placed.places.iter().map(|place| memory[*place]).collect()
            }
            _ => {
                let zeros = vec![0.0; placed.len];
                let (mut first, mut second) =
                    (Buffer::new(kind, &zeros), Buffer::new(kind, &zeros));
                let mut queue = Requests::new();
                let layout = placed.layout;
                first.iget(ds, &mut queue, var, &selection, layout.clone()).unwrap();
                second.iget(ds, &mut queue, var, &selection, layout).unwrap();
                ds.wait_all(&mut queue).unwrap();
                drop(queue);
                assert_eq!(first.values(), second.values(), "{what}");
                let memory = first.values();
                placed.places.iter().map(|place| memory[*place]).collect()
            }
        };
        compare(&found, &expected, &format!("{name} ({ty}), {what}"));
    }

    fn compare_placed(&self, get: &Move, expected: &[Option<f64>], what: &str) {
        let memory = get.buffer.values();
        let found: Vec<f64> = get.placed.places.iter().map(|place| memory[*place]).collect();
        let model = &self.models[get.model];
        compare(&found, expected, &format!("{} ({}) in a wait, {what}", model.name, model.ty));
    }

    /// Closes it, opens it again, and compares everything.
    pub(crate) fn end(mut self) -> Expected {
        self.ds().sync().unwrap();
        self.dataset.take().unwrap().close().unwrap();
        self.comm.barrier().unwrap();
        let mut ds = Dataset::open_with(&self.path, (self.way.open)(OpenOptions::new())).unwrap();
        for model in &self.models {
            let var = ds.var(&model.name).unwrap();
            let all = Selection::all();
            let found = Buffer::fetched(widest(model.ty), &mut ds, var, &all, false).unwrap();
            let what = format!("{} ({}) at the end, seed {}", model.name, model.ty, self.seed);
            compare(&found.values(), &model.values, &what);
        }
        self.comm.barrier().unwrap();
        self.models.into_iter().map(|m| (m.name, m.values)).collect()
    }
}

fn random_chunks(
    dice: &mut Dice,
    def: &mut Define,
    var: VarId,
    is_record: bool,
    dims: &[(DimId, u64)],
) {
    if !dice.one_in(5) {
        let mut chunk: Vec<u64> = dims.iter().map(|(_, len)| 1 + dice.below(*len)).collect();
        if is_record {
            chunk.insert(0, 1 + dice.below(3));
        }
        def.set_chunks(var, &chunk).unwrap();
    }
    const FILTERS: [&str; 9] = [
        "zstd,1",
        "shuffle deflate,1",
        "bitshuffle lz4",
        "crc32c",
        "pco",
        "zfp,reversible",
        "shuffle zstd,-1 crc32c",
        "pco zstd,1",
        "deflate,0",
    ];
    // Not every filter takes every type; then the variable has none, or chunks without filters.
    let refused = def.set_filters(var, FILTERS[dice.below(9) as usize]).is_err();
    if refused && def.schema().variable(var).unwrap().attrs.get("__chunk_shape").is_none() {
        def.set_filters(var, "lz4").unwrap();
    }
}

fn chunk_hints(dice: &mut Dice, hints: &mut esker::Hints) {
    if dice.one_in(2) {
        hints.set("esker_chunk_room", &(1 + dice.below(20_000)).to_string());
    }
    if dice.one_in(2) {
        hints.set("esker_chunk_buffer", &(1 + dice.below(2000)).to_string());
    }
    if dice.one_in(3) {
        hints.set("esker_chunk_penalty", &dice.below(300).to_string());
    }
    if dice.one_in(3) {
        hints.set("esker_chunk_rewrite", "in_place");
    }
    if dice.one_in(3) {
        hints.set("esker_chunk_cache", &dice.below(3000).to_string());
    }
}

fn of_way(dice: &mut Dice, hints: &mut esker::Hints, way: Way, path: &Path) {
    if way.chunks {
        chunk_hints(dice, hints);
        if way.folder {
            let files = ["rank", "node", "shared"][dice.below(3) as usize];
            hints.set("esker_chunk_files", files);
        }
    }
    if way.log {
        log_hints(dice, hints);
    }
    if way.burst {
        burst_hints(dice, hints, path);
    }
}

pub(super) fn burst_hints(dice: &mut Dice, hints: &mut esker::Hints, path: &Path) {
    hints.set("nc_burst_buf", "enable");
    let dir = path.with_file_name(format!("bb{}", dice.below(3)));
    hints.set("nc_burst_buf_dirname", dir.to_str().unwrap());
    if dice.one_in(2) {
        hints.set("nc_burst_buf_shared_logs", "enable");
    }
    if dice.one_in(3) {
        hints.set("nc_burst_buf_del_on_close", "disable");
    }
    if dice.one_in(2) {
        hints.set("nc_burst_buf_flush_buffer_size", &(1 + dice.below(2000)).to_string());
    }
    if dice.one_in(4) {
        hints.set("esker_burst_limit", &(1 + dice.below(5000)).to_string());
    }
    if dice.one_in(4) {
        hints.set("esker_index_memory", &(1 + dice.below(3000)).to_string());
    }
}

fn log_hints(dice: &mut Dice, hints: &mut esker::Hints) {
    hints.set("esker_layout", "log");
    if dice.one_in(2) {
        hints.set("esker_log_files", "node");
    }
    let index = ["local", "distributed", "automatic"][dice.below(3) as usize];
    hints.set("esker_index", index);
    if dice.one_in(2) {
        // So little that entries are looked up in the logs, or the index is distributed.
        hints.set("esker_index_memory", &(1 + dice.below(3000)).to_string());
    }
}

fn compare(found: &[f64], expected: &[Option<f64>], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        if let Some(expected) = expected {
            assert_eq!(found, expected, "element {i} of {what}");
        }
    }
}

/// A value of any external type.
fn of_type(value: u8, ty: ExternalType) -> Values {
    fn to<T: Native>(value: u8) -> Values {
        let byte: Values = value.into();
        byte.convert_to::<T>().unwrap().into()
    }
    match ty {
        ExternalType::Byte => to::<i8>(value),
        ExternalType::Short => to::<i16>(value),
        ExternalType::Int => to::<i32>(value),
        ExternalType::Float => to::<f32>(value),
        ExternalType::Double => to::<f64>(value),
        ExternalType::UByte => to::<u8>(value),
        ExternalType::UShort => to::<u16>(value),
        ExternalType::UInt => to::<u32>(value),
        ExternalType::Int64 => to::<i64>(value),
        ExternalType::UInt64 => to::<u64>(value),
        ExternalType::Char => Values::from(char::from(value).to_string()),
    }
}
