//! A dataset is an array of cells: random operations against a plain model in memory.
//!
//! After every operation the file is opened anew and must hold what the model holds: the
//! schema, the number of records, and every value that was ever written or filled.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Alignment, Char, CreateOptions, Dataset, Define, DimId, DimLen, Error, ExternalType, FillMode,
    Layout, MemoryType, OpenOptions, Owner, Selection, Values, VarId, Version,
};
use esker_store::MemoryStore;
use proptest::prelude::*;

const PATH: &str = "/model.nc";

/// A value as mathematics sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell {
    /// Nobody wrote it and nothing filled it: it may be anything.
    Unknown,
    Int(i128),
    Real(f64),
}

#[derive(Debug, Clone)]
struct Var {
    name: String,
    ty: ExternalType,
    dims: Vec<usize>,
    fill: Cell,
    /// Its own fill mode, which lasts until the dataset is closed.
    filled: Option<bool>,
    cells: Vec<Cell>,
    attrs: Vec<(String, Values)>,
}

#[derive(Debug, Clone)]
struct Model {
    version: Version,
    dims: Vec<(String, Option<u64>)>,
    vars: Vec<Var>,
    attrs: Vec<(String, Values)>,
    records: u64,
    filling: bool,
    /// So that every new name is new.
    names: usize,
}

/// The fill values of netcdf.h.
fn default_fill(ty: ExternalType) -> Cell {
    match ty {
        ExternalType::Byte => Cell::Int(-127),
        ExternalType::Char => Cell::Int(0),
        ExternalType::Short => Cell::Int(-32767),
        ExternalType::Int => Cell::Int(-2147483647),
        ExternalType::Float | ExternalType::Double => Cell::Real(9.969_209_968_386_869e36),
        ExternalType::UByte => Cell::Int(255),
        ExternalType::UShort => Cell::Int(65535),
        ExternalType::UInt => Cell::Int(4294967295),
        ExternalType::Int64 => Cell::Int(-9223372036854775806),
        ExternalType::UInt64 => Cell::Int(18446744073709551614),
    }
}

fn bounds(ty: ExternalType) -> Option<(i128, i128)> {
    match ty {
        ExternalType::Byte => Some((i8::MIN.into(), i8::MAX.into())),
        ExternalType::Short => Some((i16::MIN.into(), i16::MAX.into())),
        ExternalType::Int => Some((i32::MIN.into(), i32::MAX.into())),
        ExternalType::UByte | ExternalType::Char => Some((0, u8::MAX.into())),
        ExternalType::UShort => Some((0, u16::MAX.into())),
        ExternalType::UInt => Some((0, u32::MAX.into())),
        ExternalType::Int64 => Some((i64::MIN.into(), i64::MAX.into())),
        ExternalType::UInt64 => Some((0, u64::MAX.into())),
        ExternalType::Float | ExternalType::Double => None,
    }
}

/// What is stored when `value`, in memory of type `memory`, is written to type `ty`; none when
/// it does not fit. Reals here are small, so that every real type has them exactly.
fn stored(value: Cell, memory: MemoryType, ty: ExternalType, version: Version) -> Option<Cell> {
    match (value, bounds(ty)) {
        (Cell::Int(x), None) if ty == ExternalType::Float => Some(Cell::Real((x as f32).into())),
        (Cell::Int(x), None) => Some(Cell::Real(x as f64)),
        (Cell::Real(x), None) => Some(Cell::Real(x)),
        // CDF-1 and CDF-2 have no unsigned byte: the bits go through.
        (Cell::Int(x), Some(_))
            if version != Version::Cdf5 && (memory, ty) == (MemoryType::U8, ExternalType::Byte) =>
        {
            Some(Cell::Int((x as u8 as i8).into()))
        }
        (Cell::Int(x), Some((min, max))) => (min..=max).contains(&x).then_some(value),
        (Cell::Real(x), Some((min, max))) => {
            (min as f64 <= x && x <= max as f64).then_some(Cell::Int(x.trunc() as i128))
        }
        (Cell::Unknown, _) => None,
    }
}

impl Model {
    fn shape(&self, var: &Var) -> Vec<u64> {
        var.dims.iter().map(|d| self.dims[*d].1.unwrap_or(self.records)).collect()
    }

    fn is_record(&self, var: &Var) -> bool {
        var.dims.first().is_some_and(|d| self.dims[*d].1.is_none())
    }

    fn fills(&self, var: &Var) -> bool {
        var.filled.unwrap_or(self.filling)
    }

    fn grow(&mut self, records: u64) {
        if records <= self.records {
            return;
        }
        self.records = records;
        for i in 0..self.vars.len() {
            let var = &self.vars[i];
            if self.is_record(var) {
                let len = self.shape(var).iter().product::<u64>() as usize;
                let cell = if self.fills(var) { var.fill } else { Cell::Unknown };
                self.vars[i].cells.resize(len, cell);
            }
        }
    }

    fn fresh(&mut self) -> usize {
        self.names += 1;
        self.names
    }
}

/// Indices in order of a hyperslab, last dimension fastest.
fn indices(start: &[u64], count: &[u64], stride: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for d in 0..start.len() {
        let along = |i: Vec<u64>| {
            (0..count[d]).map(move |n| {
                let mut i = i.clone();
                i.push(start[d] + n * stride[d]);
                i
            })
        };
        all = all.into_iter().flat_map(along).collect();
    }
    all
}

fn flat(shape: &[u64], index: &[u64]) -> usize {
    shape.iter().zip(index).fold(0, |n, (len, i)| n * len + i) as usize
}

// ---- operations ---------------------------------------------------------------------------

/// One dimension of a selection, as numbers that are fitted to the dimension.
type Pick = (u8, u8, u8);

#[derive(Debug, Clone)]
enum Op {
    Put { var: usize, memory: usize, seed: u32, picks: Vec<Pick> },
    PutAll { var: usize, memory: usize, seed: u32, records: u64 },
    Append { var: usize, seed: u32, records: u64 },
    Beyond { var: usize, picks: Vec<Pick> },
    Get { var: usize, memory: usize, picks: Vec<Pick> },
    Redef { changes: Vec<Change> },
    Abort { changes: Vec<Change> },
    Reopen { filling: bool, room: u64 },
    Sync,
}

#[derive(Debug, Clone)]
enum Change {
    Dim { len: u64 },
    Unlimited,
    Var { ty: usize, dims: Vec<usize>, record: bool, filled: Option<bool>, own: bool },
    Attr { owner: usize, ty: usize, len: usize },
    Delete { owner: usize, which: usize },
    RenameVar { which: usize, long: bool },
    RenameDim { which: usize, long: bool },
    RenameAttr { owner: usize, which: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let var = (0..11usize, prop::collection::vec(0..8usize, 0..4), any::<bool>());
    let var = (var, prop::option::weighted(0.3, any::<bool>()), prop::bool::weighted(0.3));
    prop_oneof![
        2 => (1..6u64).prop_map(|len| Change::Dim { len }),
        1 => Just(Change::Unlimited),
        5 => var.prop_map(|((ty, dims, record), filled, own)| Change::Var { ty, dims, record, filled, own }),
        2 => (0..9usize, 0..11usize, 0..120usize).prop_map(|(owner, ty, len)| Change::Attr { owner, ty, len }),
        1 => (0..9usize, 0..9usize).prop_map(|(owner, which)| Change::Delete { owner, which }),
        1 => (0..9usize, any::<bool>()).prop_map(|(which, long)| Change::RenameVar { which, long }),
        1 => (0..9usize, any::<bool>()).prop_map(|(which, long)| Change::RenameDim { which, long }),
        1 => (0..9usize, 0..9usize).prop_map(|(owner, which)| Change::RenameAttr { owner, which }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let picks = || prop::collection::vec(any::<Pick>(), 5);
    prop_oneof![
        6 => (0..9usize, 0..11usize, any::<u32>(), picks())
            .prop_map(|(var, memory, seed, picks)| Op::Put { var, memory, seed, picks }),
        2 => (0..9usize, 0..11usize, any::<u32>(), 0..4u64)
            .prop_map(|(var, memory, seed, records)| Op::PutAll { var, memory, seed, records }),
        3 => (0..9usize, any::<u32>(), 0..4u64)
            .prop_map(|(var, seed, records)| Op::Append { var, seed, records }),
        1 => (0..9usize, picks()).prop_map(|(var, picks)| Op::Beyond { var, picks }),
        2 => (0..9usize, 0..11usize, picks())
            .prop_map(|(var, memory, picks)| Op::Get { var, memory, picks }),
        4 => prop::collection::vec(change(), 0..5).prop_map(|changes| Op::Redef { changes }),
        1 => prop::collection::vec(change(), 0..5).prop_map(|changes| Op::Abort { changes }),
        2 => (any::<bool>(), 0..300u64).prop_map(|(filling, room)| Op::Reopen { filling, room }),
        1 => Just(Op::Sync),
    ]
}

/// Values of a memory type that are small, and a few that are large for narrow types.
fn data(memory: MemoryType, seed: u32, n: usize) -> (Values, Vec<Cell>) {
    let mut state = u64::from(seed) | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as i64
    };
    let mut numbers: Vec<i64> = Vec::new();
    for _ in 0..n {
        numbers.push(match next() % 8 {
            0 => next() % 70_000 - 300,
            _ => next() % 120,
        });
    }
    macro_rules! integers {
        ($t:ty) => {{
            let list: Vec<$t> = numbers.iter().map(|x| *x as $t).collect();
            let cells = list.iter().map(|x| Cell::Int(*x as i128)).collect();
            (Values::from(list), cells)
        }};
    }
    match memory {
        MemoryType::I8 => integers!(i8),
        MemoryType::U8 => integers!(u8),
        MemoryType::I16 => integers!(i16),
        MemoryType::U16 => integers!(u16),
        MemoryType::I32 => integers!(i32),
        MemoryType::U32 => integers!(u32),
        MemoryType::I64 => integers!(i64),
        MemoryType::U64 => integers!(u64),
        MemoryType::F32 => {
            let list: Vec<f32> = numbers.iter().map(|x| *x as f32 / 2.0).collect();
            let cells = list.iter().map(|x| Cell::Real((*x).into())).collect();
            (Values::from(list), cells)
        }
        MemoryType::F64 => {
            let list: Vec<f64> = numbers.iter().map(|x| *x as f64 / 2.0).collect();
            let cells = list.iter().map(|x| Cell::Real(*x)).collect();
            (Values::from(list), cells)
        }
        MemoryType::Text => {
            let list: Vec<u8> = numbers.iter().map(|x| *x as u8).collect();
            let cells = list.iter().map(|x| Cell::Int((*x).into())).collect();
            (Values::Char(list), cells)
        }
    }
}

/// Writes values of their own memory type.
fn put(ds: &mut Dataset, var: VarId, selection: &Selection, data: &Values) -> Result<(), Error> {
    match data {
        Values::Char(list) => {
            let list: Vec<Char> = list.iter().map(|b| Char(*b)).collect();
            ds.put(var, selection, &list)
        }
        Values::Short(list) => ds.put(var, selection, list),
        Values::Double(list) => ds.put(var, selection, list),
        other => ds.put_values(var, selection, other),
    }
}

struct World {
    layout: Layout,
    store: MemoryStore,
    ds: Option<Dataset>,
    model: Model,
}

impl World {
    fn new(layout: Layout, version: Version, filling: bool, align: Alignment) -> World {
        let store = MemoryStore::default();
        let fill = if filling { FillMode::Fill } else { FillMode::NoFill };
        let options = CreateOptions::new().layout(layout).version(version).fill(fill).align(align);
        let def = Dataset::create(PATH, options.store(Arc::new(store.clone()))).unwrap();
        let ds = def.enddef().unwrap();
        let model = Model {
            version,
            dims: Vec::new(),
            vars: Vec::new(),
            attrs: Vec::new(),
            records: 0,
            filling,
            names: 0,
        };
        World { layout, store, ds: Some(ds), model }
    }

    fn ds(&mut self) -> &mut Dataset {
        self.ds.as_mut().unwrap()
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Redef { changes } => {
                let mut def = self.ds.take().unwrap().redef().unwrap();
                for change in changes {
                    apply(&mut def, &mut self.model, change);
                }
                self.ds = Some(def.enddef().unwrap());
                return;
            }
            Op::Abort { changes } => {
                // Nothing of a definition that was not committed happens.
                let mut def = self.ds.take().unwrap().redef().unwrap();
                let mut lost = self.model.clone();
                for change in changes {
                    apply(&mut def, &mut lost, change);
                }
                def.abort().unwrap();
                self.reopen(self.model.filling, 0);
                return;
            }
            Op::Reopen { filling, room } => {
                self.ds.take().unwrap().close().unwrap();
                return self.reopen(*filling, *room);
            }
            Op::Sync => return self.ds().sync().unwrap(),
            _ => {}
        }
        let vars = self.model.vars.len();
        if vars == 0 {
            return;
        }
        match op {
            Op::Put { var, memory, seed, picks } => {
                let (var, memory) = self.typed(var % vars, *memory);
                self.put(var, memory, *seed, picks);
            }
            Op::PutAll { var, memory, seed, records } => {
                let (var, memory) = self.typed(var % vars, *memory);
                self.put_all(var, memory, *seed, *records);
            }
            Op::Append { var, seed, records } => self.append(var % vars, *seed, *records),
            Op::Beyond { var, picks } => self.beyond(var % vars, picks),
            Op::Get { var, memory, picks } => {
                let (var, memory) = self.typed(var % vars, *memory);
                self.get(var, memory, picks);
            }
            _ => unreachable!(),
        }
    }

    fn reopen(&mut self, filling: bool, room: u64) {
        drop(self.ds.take());
        let fill = if filling { FillMode::Fill } else { FillMode::NoFill };
        let align = Alignment { header_room: room, ..Alignment::default() };
        let options = OpenOptions::new().writable(true).fill(fill).align(align);
        self.ds =
            Some(Dataset::open_with(PATH, options.store(Arc::new(self.store.clone()))).unwrap());
        self.model.filling = filling;
        self.model.vars.iter_mut().for_each(|v| v.filled = None);
    }

    /// Text meets text alone.
    fn typed(&self, var: usize, memory: usize) -> (usize, MemoryType) {
        let memory = MemoryType::ALL[memory];
        let text = self.model.vars[var].ty == ExternalType::Char;
        let memory = match (text, memory) {
            (true, _) => MemoryType::Text,
            (false, MemoryType::Text) => MemoryType::I16,
            (false, other) => other,
        };
        (var, memory)
    }

    /// A selection that fits the variable, `extra` records beyond the last included.
    fn pick(&self, var: usize, picks: &[Pick], extra: u64) -> (Vec<u64>, Vec<u64>, Vec<u64>) {
        let v = &self.model.vars[var];
        let mut shape = self.model.shape(v);
        if self.model.is_record(v) {
            shape[0] += extra;
        }
        let (mut start, mut count, mut stride) = (vec![], vec![], vec![]);
        for (len, (a, b, c)) in shape.iter().zip(picks) {
            let at = if *len == 0 { 0 } else { u64::from(*a) % len };
            let step = 1 + u64::from(*c) % 3;
            let room = if *len == 0 { 0 } else { (len - at).div_ceil(step) };
            // Mostly something, sometimes nothing.
            let n = if *b == 0 || room == 0 { 0 } else { 1 + u64::from(*b) % room };
            start.push(at);
            count.push(n);
            stride.push(step);
        }
        (start, count, stride)
    }

    fn put(&mut self, var: usize, memory: MemoryType, seed: u32, picks: &[Pick]) {
        let (start, count, stride) = self.pick(var, picks, u64::from(seed % 4));
        let places = indices(&start, &count, &stride);
        let (values, cells) = data(memory, seed, places.len());
        let selection = match stride.iter().all(|s| *s == 1) {
            true => Selection::slab(&start, &count),
            false => Selection::strided(&start, &count, &stride),
        };
        let done = put(self.ds(), VarId(var), &selection, &values);
        self.written(var, memory, &places, &cells, done);
    }

    fn put_all(&mut self, var: usize, memory: MemoryType, seed: u32, records: u64) {
        let v = &self.model.vars[var];
        let mut shape = self.model.shape(v);
        if self.model.is_record(v) {
            shape[0] = records;
        }
        let places = indices(&vec![0; shape.len()], &shape, &vec![1; shape.len()]);
        let (values, cells) = data(memory, seed, places.len());
        let done = put(self.ds(), VarId(var), &Selection::all(), &values);
        self.written(var, memory, &places, &cells, done);
    }

    fn append(&mut self, var: usize, seed: u32, records: u64) {
        let v = &self.model.vars[var];
        if v.ty == ExternalType::Char {
            return;
        }
        if !self.model.is_record(v) {
            assert!(self.ds().append(VarId(var), &[0i16]).is_err());
            return;
        }
        let (mut start, mut count) = (vec![0; v.dims.len()], self.model.shape(v));
        (start[0], count[0]) = (self.model.records, records);
        let places = indices(&start, &count, &vec![1; count.len()]);
        let (values, cells) = data(MemoryType::F64, seed, places.len());
        let first = self.model.records;
        let list: &[f64] = values.as_slice().unwrap();
        let done = self.ds().append(VarId(var), list).map(|at| assert_eq!(at, first));
        self.written(var, MemoryType::F64, &places, &cells, done);
    }

    /// What a write did to the model.
    fn written(
        &mut self,
        var: usize,
        memory: MemoryType,
        places: &[Vec<u64>],
        cells: &[Cell],
        done: Result<(), Error>,
    ) {
        let model = &mut self.model;
        if model.is_record(&model.vars[var]) {
            let records = places.iter().map(|i| i[0] + 1).max().unwrap_or(0);
            model.grow(records);
        }
        let shape = model.shape(&model.vars[var]);
        let (ty, fill) = (model.vars[var].ty, model.vars[var].fill);
        let mut refused = 0;
        for (place, cell) in places.iter().zip(cells) {
            let kept = stored(*cell, memory, ty, model.version);
            refused += u64::from(kept.is_none());
            model.vars[var].cells[flat(&shape, place)] = kept.unwrap_or(fill);
        }
        match done {
            Ok(()) => assert_eq!(refused, 0, "values out of range went unnoticed"),
            Err(Error::Range { report, .. }) => assert_eq!(report.out_of_range, refused),
            Err(error) => panic!("{error}"),
        }
    }

    /// A selection that leaves the variable changes nothing.
    fn beyond(&mut self, var: usize, picks: &[Pick]) {
        let v = &self.model.vars[var];
        let shape = self.model.shape(v);
        let fixed = usize::from(self.model.is_record(v));
        if shape.len() <= fixed {
            return;
        }
        let d = fixed + usize::from(picks[0].0) % (shape.len() - fixed);
        let (mut start, mut count, stride) = self.pick(var, picks, 0);
        (start[d], count[d]) = (shape[d] - 1, 1 + count[d].max(1));
        let n = count.iter().product::<u64>() as usize;
        let selection = Selection::strided(&start, &count, &stride);
        let text = self.model.vars[var].ty == ExternalType::Char;
        let ds = self.ds();
        let (read, written) = match text {
            true => (
                ds.get::<Char>(VarId(var), &selection).map(drop),
                ds.put(VarId(var), &selection, &vec![Char(7); n]),
            ),
            false => (
                ds.get::<f64>(VarId(var), &selection).map(drop),
                ds.put(VarId(var), &selection, &vec![7.0; n]),
            ),
        };
        assert!(matches!(read, Err(Error::Selection { .. })), "{read:?}");
        assert!(matches!(written, Err(Error::Selection { .. })), "{written:?}");
    }

    fn get(&mut self, var: usize, memory: MemoryType, picks: &[Pick]) {
        let (start, count, stride) = self.pick(var, picks, 0);
        let v = self.model.vars[var].clone();
        let shape = self.model.shape(&v);
        let expected: Vec<Cell> =
            indices(&start, &count, &stride).iter().map(|i| v.cells[flat(&shape, i)]).collect();
        let selection = Selection::strided(&start, &count, &stride);
        let found = self.ds().get_values(VarId(var), &selection).unwrap();
        require(&v.name, &expected, &found);
        // As another type: those that fit are the same numbers.
        if memory == MemoryType::F64 {
            let list: Vec<f64> = self.ds().get(VarId(var), &selection).unwrap();
            for (cell, found) in expected.iter().zip(list) {
                match cell {
                    Cell::Unknown => {}
                    Cell::Int(x) => assert_eq!(*x as f64, found),
                    Cell::Real(x) => assert_eq!(*x, found),
                }
            }
        }
        if memory == MemoryType::I16 {
            let mut list = vec![0i16; expected.len()];
            let done = self.ds().get_into(VarId(var), &selection, &mut list);
            let fits = |c: &Cell| stored(*c, v.ty.natural(), ExternalType::Short, Version::Cdf5);
            let unknown = expected.contains(&Cell::Unknown);
            match done {
                Ok(()) => assert!(unknown || expected.iter().all(|c| fits(c).is_some())),
                Err(Error::Range { report, .. }) => {
                    let refused = expected.iter().filter(|c| fits(c).is_none()).count();
                    assert!(unknown || report.out_of_range == refused as u64);
                }
                Err(error) => panic!("{error}"),
            }
            for (cell, found) in expected.iter().zip(list) {
                match fits(cell) {
                    Some(Cell::Int(x)) => assert_eq!(x, found.into()),
                    None if *cell != Cell::Unknown => assert_eq!(found, -32767),
                    _ => {}
                }
            }
        }
    }

    /// What is in the file, seen by somebody who opens it now.
    fn check(&mut self) {
        if self.layout == Layout::Log {
            // Others see what was committed.
            self.ds().sync().unwrap();
        }
        let options = OpenOptions::new().store(Arc::new(self.store.clone()));
        let ds = Dataset::open_with(PATH, options).unwrap();
        let model = &self.model;
        let schema = ds.schema();
        assert_eq!(schema.version, model.version);
        assert_eq!(ds.numrecs(), model.records);
        let dims: Vec<(String, Option<u64>)> = schema
            .dims
            .iter()
            .map(|d| match d.len {
                DimLen::Fixed(len) => (d.name.to_string(), Some(len)),
                DimLen::Unlimited => (d.name.to_string(), None),
            })
            .collect();
        assert_eq!(dims, model.dims);
        let attrs = |list: &esker_format::NamedList<esker::Attribute>| {
            list.iter().map(|a| (a.name.to_string(), a.values.clone())).collect::<Vec<_>>()
        };
        assert_eq!(attrs(&schema.attrs), model.attrs);
        assert_eq!(schema.vars.len(), model.vars.len());
        for (i, (var, expected)) in schema.vars.iter().zip(&model.vars).enumerate() {
            assert_eq!(*var.name, *expected.name);
            assert_eq!(var.ty, expected.ty);
            assert_eq!(var.dims.iter().map(|d| d.0).collect::<Vec<_>>(), expected.dims);
            assert_eq!(attrs(&var.attrs), expected.attrs);
            let found = ds.get_values(VarId(i), &Selection::all()).unwrap();
            require(&var.name, &expected.cells, &found);
        }
        assert!(esker::overlap(ds.header()).is_none());
        assert!(ds.file_len().unwrap() >= ds.header().data_end(ds.numrecs()));
        assert_eq!(Some(ds.header()), self.ds.as_ref().map(|ds| ds.header()));
        if self.layout == Layout::Classic {
            assert_eq!(self.store.list(), [Path::new(PATH)], "nothing is left beside the file");
        }
    }
}

fn require(name: &str, expected: &[Cell], found: &Values) {
    assert_eq!(expected.len(), found.len(), "{name}");
    for (i, cell) in expected.iter().enumerate() {
        let value = found.get(i).unwrap();
        let same = match (cell, value) {
            (Cell::Unknown, _) => true,
            (Cell::Int(x), esker::Scalar::I(y)) => *x == i128::from(y),
            (Cell::Int(x), esker::Scalar::U(y)) => *x == i128::from(y),
            (Cell::Int(x), esker::Scalar::Char(y)) => *x == i128::from(y),
            (Cell::Real(x), esker::Scalar::F32(y)) => *x == f64::from(y),
            (Cell::Real(x), esker::Scalar::F64(y)) => *x == y,
            _ => false,
        };
        assert!(same, "{name}, element {i}: expected {cell:?}, found {value}");
    }
}

fn name(model: &mut Model, long: bool) -> String {
    let number = model.fresh();
    if long { format!("größe_{}_{number}", "x".repeat(90)) } else { format!("n{number}") }
}

/// Makes one change to the definition and to the model.
fn apply(def: &mut Define, model: &mut Model, change: &Change) {
    let has = |ty: ExternalType| model.version.has_type(ty);
    match change {
        Change::Dim { len } => {
            let name = name(model, false);
            def.add_dim(&name, DimLen::Fixed(*len)).unwrap();
            model.dims.push((name, Some(*len)));
        }
        Change::Unlimited => {
            let exists = model.dims.iter().any(|d| d.1.is_none());
            let name = name(model, false);
            let made = def.add_dim(&name, DimLen::Unlimited);
            assert_eq!(made.is_err(), exists);
            if !exists {
                model.dims.push((name, None));
            }
        }
        Change::Var { ty, dims, record, filled, own } => {
            let ty = ExternalType::ALL[*ty];
            let chosen = variable_dims(model, dims, *record);
            let ids: Vec<DimId> = chosen.iter().map(|d| DimId(*d)).collect();
            if !has(ty) {
                let name = name(model, false);
                assert!(def.add_var(&name, ty, &ids).is_err());
                return;
            }
            let name = name(model, false);
            let id = def.add_var(&name, ty, &ids).unwrap();
            let mut var = Var {
                name,
                ty,
                dims: chosen,
                fill: default_fill(ty),
                filled: *filled,
                cells: Vec::new(),
                attrs: Vec::new(),
            };
            if let Some(filled) = filled {
                def.set_fill(id, if *filled { FillMode::Fill } else { FillMode::NoFill }).unwrap();
            }
            if *own {
                let (values, cells) = data(ty.natural(), 77, 1);
                def.put_attr(id, "_FillValue", values.clone()).unwrap();
                var.attrs.push(("_FillValue".to_string(), values));
                var.fill = cells[0];
            }
            let cell = if model.fills(&var) { var.fill } else { Cell::Unknown };
            let len = model.shape(&var).iter().product::<u64>() as usize;
            var.cells = vec![cell; len];
            model.vars.push(var);
        }
        Change::Attr { owner, ty, len } => {
            let ty = ExternalType::ALL[*ty];
            let text = Values::Char(vec![b'a'; *len]);
            let values = if has(ty) { Values::zeros(ty, *len) } else { text };
            // Few names, so that some are replaced.
            let name = format!("a{}", len % 5);
            def.put_attr(owner_of(model, *owner), &name, values.clone()).unwrap();
            let attrs = attrs_of(model, *owner);
            match attrs.iter_mut().find(|a| a.0 == name) {
                Some(attr) => attr.1 = values,
                None => attrs.push((name, values)),
            }
        }
        Change::Delete { owner, which } => {
            let id = owner_of(model, *owner);
            let attrs = attrs_of(model, *owner);
            // A fill value that goes away does not change what was filled: keep the model simple.
            let found = attrs.get(*which).map(|a| a.0.clone()).filter(|n| n != "_FillValue");
            match found {
                Some(name) => {
                    attrs.remove(*which);
                    def.del_attr(id, &name).unwrap();
                }
                None => assert!(def.del_attr(id, "none").is_err()),
            }
        }
        Change::RenameVar { which, long } => {
            if !model.vars.is_empty() {
                let which = which % model.vars.len();
                let new = name(model, *long);
                def.rename_var(&model.vars[which].name, &new).unwrap();
                model.vars[which].name = new;
            }
        }
        Change::RenameDim { which, long } => {
            if !model.dims.is_empty() {
                let which = which % model.dims.len();
                let new = name(model, *long);
                def.rename_dim(&model.dims[which].0, &new).unwrap();
                model.dims[which].0 = new;
            }
        }
        Change::RenameAttr { owner, which } => {
            let id = owner_of(model, *owner);
            let new = name(model, false);
            let attrs = attrs_of(model, *owner);
            if let Some(attr) = attrs.get_mut(*which).filter(|a| a.0 != "_FillValue") {
                def.rename_attr(id, &attr.0, &new).unwrap();
                attr.0 = new;
            }
        }
    }
}

fn owner_of(model: &Model, owner: usize) -> Owner {
    match owner.checked_sub(1) {
        Some(_) if model.vars.is_empty() => Owner::Global,
        None => Owner::Global,
        Some(var) => Owner::Var(VarId(var % model.vars.len())),
    }
}

fn attrs_of(model: &mut Model, owner: usize) -> &mut Vec<(String, Values)> {
    match owner_of(model, owner) {
        Owner::Global => &mut model.attrs,
        Owner::Var(var) => &mut model.vars[var.0].attrs,
    }
}

/// Dimensions for a new variable: the unlimited one first, if wanted, then fixed ones, not more
/// elements than a test needs.
fn variable_dims(model: &Model, wanted: &[usize], record: bool) -> Vec<usize> {
    let unlimited = model.dims.iter().position(|d| d.1.is_none()).filter(|_| record);
    let fixed: Vec<usize> = (0..model.dims.len()).filter(|d| model.dims[*d].1.is_some()).collect();
    let mut dims: Vec<usize> = unlimited.into_iter().collect();
    if !fixed.is_empty() {
        dims.extend(wanted.iter().map(|w| fixed[w % fixed.len()]));
    }
    dims
}

fn first_definition() -> Vec<Change> {
    let var = |ty: usize, dims: &[usize], record: bool| Change::Var {
        ty,
        dims: dims.to_vec(),
        record,
        filled: None,
        own: false,
    };
    vec![
        Change::Unlimited,
        Change::Dim { len: 3 },
        Change::Dim { len: 2 },
        var(2, &[0, 1], false),
        var(4, &[0], true),
        var(0, &[], true),
    ]
}

/// PROPTEST_CASES gives more.
fn config() -> ProptestConfig {
    let cases = ProptestConfig::default().cases.max(2000);
    ProptestConfig { cases, max_shrink_iters: 4000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_dataset_is_what_was_written_to_it(
        layout in prop_oneof![2 => Just(Layout::Classic), 1 => Just(Layout::Log)],
        version in prop::sample::select(&Version::ALL[..]),
        filling in any::<bool>(),
        room in 0..200u64,
        align in prop::sample::select(&[1u64, 4, 32, 512][..]),
        start in any::<bool>(),
        ops in prop::collection::vec(op(), 1..25),
    ) {
        let align = Alignment { header: align, variable: align, records: align, header_room: room, record_room: room / 2, ..Alignment::default() };
        let mut world = World::new(layout, version, filling, align);
        if start {
            world.run(&Op::Redef { changes: first_definition() });
        }
        for op in &ops {
            world.run(op);
            world.check();
        }
    }
}
