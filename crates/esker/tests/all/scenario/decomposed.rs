//! A random life of a dataset with decomposed variables.
//!
//! Where ranks write one element in one call they write the same value, so that every element has
//! one value that it must have.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DecompositionId, Define, DimId, DimLen, ExternalType,
    Hints, MemoryLayout, OpenOptions, Requests, Selection, SelfComm, Values, VarId, Version,
    values,
};

use super::Way;
use super::dice::{Dice, elements, random_hints, random_slab, split};
use super::life::burst_hints;

/// A block: first corner and counts.
type Block = (Vec<u64>, Vec<u64>);

struct Map {
    id: DecompositionId,
    shape: Vec<u64>,
    /// The blocks of each rank, in the order of its blob.
    parts: Vec<Vec<Block>>,
    /// The elements of each rank, in the order of its blob.
    order: Vec<Vec<u64>>,
}

struct Var {
    name: String,
    id: VarId,
    ty: ExternalType,
    map: Option<usize>,
    record: bool,
    /// Lengths without the records'.
    shape: Vec<u64>,
    fill: Vec<u8>,
    /// By record (one for variables without), what each element has.
    values: Vec<Vec<Option<u8>>>,
}

struct Life {
    dice: Dice,
    comm: Arc<dyn Communicator>,
    dataset: Option<Dataset>,
    time: DimId,
    outer: (DimId, u64),
    maps: Vec<Map>,
    vars: Vec<Var>,
    records: u64,
    version: Version,
}

const TYPES: [ExternalType; 11] = [
    ExternalType::Byte,
    ExternalType::Char,
    ExternalType::Short,
    ExternalType::Int,
    ExternalType::Float,
    ExternalType::Double,
    ExternalType::UByte,
    ExternalType::UShort,
    ExternalType::UInt,
    ExternalType::Int64,
    ExternalType::UInt64,
];

/// Runs a whole scenario. Panics where the dataset and the model differ.
pub(crate) fn run(seed: u64, comm: Arc<dyn Communicator>, path: &Path) {
    let mut life = Life::begin(seed, comm.clone(), path);
    for _ in 0..14 {
        life.step(path);
    }
    life.end(path);
}

impl Life {
    fn begin(seed: u64, comm: Arc<dyn Communicator>, path: &Path) -> Life {
        let mut dice = Dice::new(seed);
        let version =
            [Version::Cdf5, Version::Cdf5, Version::Cdf2, Version::Cdf1][dice.below(4) as usize];
        let mut hints = hints(&mut dice, comm.size() as u64, path);
        if dice.one_in(3) {
            let count = dice.below(comm.size() as u64 + 2) as i64 - 1;
            hints.set("nc_num_subfiles", &count.to_string());
        }
        let options = CreateOptions::new().comm(comm.clone()).version(version).hints(hints);
        let mut def = Dataset::create(path, options).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let len = 1 + dice.below(3);
        let outer = (def.add_dim("outer", DimLen::Fixed(len)).unwrap(), len);
        if dice.one_in(4) {
            // Somebody else's dimension of that name.
            def.add_dim("nproc", DimLen::Fixed(comm.size() as u64 + 1)).unwrap();
        }
        let (maps, vars, dataset) = (Vec::new(), Vec::new(), None);
        let mut life = Life { dice, comm, dataset, time, outer, maps, vars, records: 0, version };
        life.define(&mut def);
        life.dataset = Some(def.enddef().unwrap());
        life
    }

    /// A new map or two, and variables of any map.
    fn define(&mut self, def: &mut Define) {
        for _ in 0..1 + self.dice.below(2) {
            self.add_map(def);
        }
        for _ in 0..1 + self.dice.below(4) {
            self.add_var(def);
        }
    }

    fn add_map(&mut self, def: &mut Define) {
        let (dice, ranks) = (&mut self.dice, self.comm.size() as u64);
        let number = self.maps.len();
        let mut shape = Vec::new();
        let mut dims = Vec::new();
        for d in 0..1 + dice.below(3) {
            let len = 1 + dice.below(7);
            shape.push(len);
            dims.push(def.add_dim(&format!("m{number}_{d}"), DimLen::Fixed(len)).unwrap());
        }
        let total: u64 = shape.iter().product();
        let mut parts: Vec<Vec<Block>> = vec![Vec::new(); ranks as usize];
        match dice.below(3) {
            0 => {
                // Boxes of one hyperslab, with gaps around it.
                let slab = random_slab(dice, &shape);
                let stride = vec![1; shape.len()];
                for (rank, part) in split(dice, &slab, ranks).into_iter().enumerate() {
                    let Some((start, count, strides)) = part else { continue };
                    if strides == stride {
                        parts[rank].push((start, count));
                    } else {
                        let list = elements(&(start, count, strides), &shape);
                        let element = |e: &u64| (index(*e, &shape), vec![1; shape.len()]);
                        parts[rank].extend(list.iter().map(element));
                    }
                }
            }
            kind => {
                // Elements dealt out by chance, or with several owners or none, as runs of rows.
                let row = shape[shape.len() - 1];
                for (rank, part) in parts.iter_mut().enumerate() {
                    let mut run: Option<(u64, u64)> = None;
                    for element in 0..total {
                        let has = match kind {
                            1 => owner(number, element, ranks) == rank as u64,
                            _ => owner(number + rank, element / 2, 3) == 0,
                        };
                        let same_row = |first: u64| first / row == element / row;
                        match (&mut run, has) {
                            (Some((first, len)), true) if same_row(*first) => *len += 1,
                            (slot, _) => {
                                if let Some((first, len)) = slot.take() {
                                    part.push(run_block(first, len, &shape));
                                }
                                *slot = has.then_some((element, 1));
                            }
                        }
                    }
                    if let Some((first, len)) = run {
                        part.push(run_block(first, len, &shape));
                    }
                    if dice.one_in(2) {
                        dice.shuffle(part);
                    }
                }
            }
        }
        if parts.iter().all(Vec::is_empty) {
            parts[0].push((vec![0; shape.len()], shape.clone()));
        }
        let order = parts.iter().map(|part| order_of(part, &shape)).collect();
        let id =
            def.add_decomposition(&dims, &list(&parts[self.comm.rank()], shape.len())).unwrap();
        self.maps.push(Map { id, shape, parts, order });
    }

    fn add_var(&mut self, def: &mut Define) {
        let dice = &mut self.dice;
        let ty = match self.version {
            Version::Cdf5 => TYPES[dice.below(11) as usize],
            _ => TYPES[dice.below(6) as usize],
        };
        let (record, outer) = (dice.one_in(2), dice.one_in(3));
        let mut dims = Vec::new();
        let mut shape = Vec::new();
        if record {
            dims.push(self.time);
        }
        if outer {
            dims.push(self.outer.0);
            shape.push(self.outer.1);
        }
        let name = format!("v{}", self.vars.len());
        let (id, map) = if dice.one_in(5) {
            (def.add_var(&name, ty, &dims).unwrap(), None)
        } else {
            let map = dice.below(self.maps.len() as u64) as usize;
            shape.extend(&self.maps[map].shape);
            (def.add_decomposed_var(&name, ty, &dims, self.maps[map].id).unwrap(), Some(map))
        };
        let mut fill = values::default_fill_bytes(ty).to_vec();
        if dice.one_in(3) {
            fill = external(ty, 99);
            let value = Values::decode(ty, 1, &fill).unwrap();
            def.put_attr(id, "_FillValue", value).unwrap();
        }
        let size = shape.iter().product::<u64>() as usize;
        let times = if record { self.records as usize } else { 1 };
        let values = vec![vec![None; size]; times];
        self.vars.push(Var { name, id, ty, map, record, shape, fill, values });
    }

    fn step(&mut self, path: &Path) {
        match self.dice.below(12) {
            0..=5 => self.write(),
            6..=8 => self.read(),
            9 => self.outside(),
            10 => self.redefine(path),
            _ => self.reopen(path),
        }
    }

    /// A queue of writes by every rank, or by one rank alone.
    fn write(&mut self) {
        let me = self.comm.rank();
        let ranks = self.comm.size();
        let alone = self.dice.one_in(4).then(|| self.dice.below(ranks as u64) as usize);
        let mut chosen: Vec<(usize, Selection, Vec<u8>)> = Vec::new();
        let mut written = Vec::new();
        for _ in 0..1 + self.dice.below(3) {
            let number = self.dice.below(self.vars.len() as u64) as usize;
            let Some(map) = self.vars[number].map else { continue };
            // Two ranks that write an element in one call write the same.
            if written.contains(&number) && ranks > 1 {
                continue;
            }
            written.push(number);
            let value = self.dice.below(90);
            let (outer, start, count) = self.outer_indices(number, alone.is_some());
            if outer.is_empty() {
                continue;
            }
            let total: u64 = self.maps[map].shape.iter().product();
            for rank in 0..ranks {
                let (selection, order) =
                    part_of(&mut self.dice, &self.maps[map], rank, &start, &count);
                if alone.is_some_and(|alone| alone != rank) {
                    continue;
                }
                if order.is_empty() {
                    continue;
                }
                if self.vars[number].record {
                    self.grow(start[0] + count[0]);
                }
                let var = &mut self.vars[number];
                let mut data = Vec::new();
                for (record, at) in &outer {
                    for element in &order {
                        let value = ((value + 7 * at + element + 3 * record) % 90) as u8;
                        data.push(value);
                        let place = (at * total + element) as usize;
                        var.values[*record as usize][place] = Some(value);
                    }
                }
                if rank == me {
                    chosen.push((number, selection, data));
                }
            }
        }
        let bytes: Vec<Values> =
            chosen.iter().map(|(number, _, data)| of(self.vars[*number].ty, data)).collect();
        let dataset = self.dataset.as_mut().unwrap();
        let mut queue = Requests::new();
        for ((number, selection, _), bytes) in chosen.iter().zip(&bytes) {
            let var = &self.vars[*number];
            let data = (bytes.native_bytes(), var.ty.natural());
            dataset.iput_bytes(&mut queue, var.id, selection, data, MemoryLayout::dense()).unwrap();
        }
        match alone {
            None => dataset.wait_all(&mut queue).unwrap(),
            Some(_) => dataset.wait(&mut queue).unwrap(),
        }
        drop(queue);
        if alone.is_some() {
            // What one rank writes for itself is before what comes next.
            dataset.wait_all(&mut Requests::new()).unwrap();
        }
        self.comm.barrier().unwrap();
    }

    /// What is in logs goes to the file, by one of the ways.
    fn flush(&mut self) {
        let way = self.dice.below(4);
        let dataset = self.dataset.as_mut().unwrap();
        match way {
            0 => dataset.flush().unwrap(),
            1 => {
                let token = dataset.flush_start().unwrap();
                dataset.flush_wait(token).unwrap();
            }
            2 => dataset.sync().unwrap(),
            _ => {
                drop(dataset.flush_start().unwrap());
                dataset.flush().unwrap();
            }
        }
    }

    fn grow(&mut self, records: u64) {
        self.records = self.records.max(records);
        for var in self.vars.iter_mut().filter(|v| v.record) {
            let size = var.shape.iter().product::<u64>() as usize;
            var.values.resize(self.records as usize, vec![None; size]);
        }
    }

    /// Indices before the map's, as (record, index of the others), and as start and count. New
    /// records come into being by collective writes only.
    fn outer_indices(
        &mut self,
        number: usize,
        existing: bool,
    ) -> (Vec<(u64, u64)>, Vec<u64>, Vec<u64>) {
        let (mut start, mut count) = (Vec::new(), Vec::new());
        let record = self.vars[number].record;
        if record {
            let most = if existing { self.records } else { (self.records + 2).min(5) };
            if most == 0 {
                return (Vec::new(), start, count);
            }
            start.push(self.dice.below(most));
            count.push(1 + self.dice.below(most - start[0]));
        }
        let var = &self.vars[number];
        let map = &self.maps[var.map.unwrap()];
        if var.shape.len() > map.shape.len() {
            start.push(self.dice.below(self.outer.1));
            let at = start[start.len() - 1];
            count.push(1 + self.dice.below(self.outer.1 - at));
        }
        let records = if record { start[0]..start[0] + count[0] } else { 0..1 };
        let others = match var.shape.len() > map.shape.len() {
            true => start[start.len() - 1]..start[start.len() - 1] + count[count.len() - 1],
            false => 0..1,
        };
        let all = records.flat_map(|r| others.clone().map(move |o| (r, o))).collect();
        (all, start, count)
    }

    /// Every rank reads something, together or alone.
    fn read(&mut self) {
        if self.comm.size() > 1 || self.dice.one_in(2) {
            // One rank sees its own in the logs.
            self.flush();
        }
        let number = self.dice.below(self.vars.len() as u64) as usize;
        let together = self.dice.one_in(2);
        let (me, ranks) = (self.comm.rank(), self.comm.size());
        let mut shape = self.vars[number].shape.clone();
        if self.vars[number].record {
            shape.insert(0, self.records);
        }
        let mut mine = (Selection::none(), Vec::new());
        for rank in 0..ranks {
            if shape.contains(&0) {
                continue;
            }
            let slab = random_slab(&mut self.dice, &shape);
            if rank == me {
                mine = (Selection::strided(&slab.0, &slab.1, &slab.2), elements(&slab, &shape));
            }
        }
        let dataset = self.dataset.as_mut().unwrap();
        let var = &self.vars[number];
        assert_eq!(dataset.shape(var.id).unwrap(), shape);
        let mut found = Values::zeros(var.ty, mine.1.len());
        let mut queue = Requests::new();
        let memory = (found.native_bytes_mut(), var.ty.natural());
        dataset.iget_bytes(&mut queue, var.id, &mine.0, memory, MemoryLayout::dense()).unwrap();
        match together {
            true => dataset.wait_all(&mut queue).unwrap(),
            false => dataset.wait(&mut queue).unwrap(),
        }
        drop(queue);
        assert_eq!(found.external_bytes(), var.expected(&mine.1), "{}", var.name);
        if let Some(map) = var.map
            && !shape.contains(&0)
        {
            // The rank's own blob, at the first index of everything else.
            let map = &self.maps[map];
            let outer = shape.len() - map.shape.len();
            let blob = Selection::blob(&vec![0; outer], &vec![1; outer]);
            let found = dataset.get_values(var.id, &blob).unwrap();
            assert_eq!(found.external_bytes(), var.expected(&map.order[me]), "{}", var.name);
        }
        self.comm.barrier().unwrap();
    }

    /// A rank that writes what it does not have makes everyone fail, and nothing is written.
    fn outside(&mut self) {
        let number = self.dice.below(self.vars.len() as u64) as usize;
        let (var, me) = (&self.vars[number], self.comm.rank());
        let Some(map) = var.map else { return };
        let map = &self.maps[map];
        let total: u64 = map.shape.iter().product();
        let culprit = self.dice.below(self.comm.size() as u64) as usize;
        let Some(lacking) = (0..total).find(|e| !map.order[culprit].contains(e)) else { return };
        let outer = var.shape.len() + usize::from(var.record) - map.shape.len();
        let mut at = vec![0; outer];
        at.extend(index(lacking, &map.shape));
        let selection = if me == culprit { Selection::element(&at) } else { Selection::none() };
        let data = of(var.ty, &vec![1; usize::from(me == culprit)]);
        let dataset = self.dataset.as_mut().unwrap();
        let mut queue = Requests::new();
        let data = (data.native_bytes(), var.ty.natural());
        let queued =
            dataset.iput_bytes(&mut queue, var.id, &selection, data, MemoryLayout::dense());
        if me == culprit {
            let error = queued.unwrap_err().to_string();
            let name = format!("\"{}\" (map D{})", var.name, map.id.0);
            assert!(error.contains(&name), "{error}");
            assert!(error.contains(&format!("part of rank {culprit}")), "{error}");
        }
    }

    fn redefine(&mut self, path: &Path) {
        if self.dataset.as_ref().is_some_and(|dataset| !dataset.subfiles().is_empty()) {
            // Which have one definition.
            return self.reopen(path);
        }
        let mut def = self.dataset.take().unwrap().redef().unwrap();
        for map in &self.maps {
            assert_eq!(def.decomposition(&format!("D{}", map.id.0)), Some(map.id));
        }
        if self.dice.one_in(2) {
            self.define(&mut def);
        } else {
            self.add_var(&mut def);
        }
        self.dataset = Some(def.enddef().unwrap());
    }

    fn reopen(&mut self, path: &Path) {
        self.dataset.take().unwrap().close().unwrap();
        self.comm.barrier().unwrap();
        let hints = hints(&mut self.dice, self.comm.size() as u64, path);
        let options = OpenOptions::new().comm(self.comm.clone()).writable(true).hints(hints);
        self.dataset = Some(Dataset::open_with(path, options).unwrap());
    }

    /// Everything is there, for these ranks, for half of them, and for one.
    fn end(mut self, path: &Path) {
        self.dataset.take().unwrap().close().unwrap();
        let half = self.comm.split(Some((self.comm.rank() % 2) as u32), 0).unwrap().unwrap();
        let alone: Arc<dyn Communicator> = Arc::new(SelfComm::new());
        for comm in [self.comm.clone(), half, alone] {
            let hints = hints(&mut self.dice, comm.size() as u64, path);
            let options = OpenOptions::new().comm(comm.clone()).hints(hints);
            let mut dataset = Dataset::open_with(path, options).unwrap();
            assert_eq!(dataset.numrecs(), self.records);
            for var in &self.vars {
                let mut shape = var.shape.clone();
                if var.record {
                    shape.insert(0, self.records);
                }
                let all: Vec<u64> = (0..shape.iter().product()).collect();
                let found = dataset.get_values(var.id, &Selection::all()).unwrap();
                assert_eq!(found.external_bytes(), var.expected(&all), "{}", var.name);
                let described = dataset.decomposition(var.id).unwrap();
                assert_eq!(described.is_some(), var.map.is_some());
                let (Some(described), Some(map)) = (described, var.map) else { continue };
                let map = &self.maps[map];
                let mut covered: Vec<u64> = map.order.concat();
                assert_eq!(described.stored, covered.len() as u64);
                covered.sort();
                covered.dedup();
                assert_eq!(described.covered, Some(covered.len() as u64));
                assert_eq!(described.shape, map.shape);
                assert_eq!(described.ranks, map.parts.len() as u64);
                if comm.size() as u64 != described.ranks {
                    let outer = shape.len() - map.shape.len();
                    let blob = Selection::blob(&vec![0; outer], &vec![1; outer]);
                    let error = dataset.get_values(var.id, &blob).unwrap_err().to_string();
                    let ranks = format!("{} ranks, and these are {}", described.ranks, comm.size());
                    assert!(error.contains(&ranks) && error.contains(&var.name), "{error}");
                }
            }
            dataset.sync().unwrap();
        }
        self.comm.barrier().unwrap();
    }
}

impl Var {
    /// What these elements are in the file, numbered in all records.
    fn expected(&self, order: &[u64]) -> Vec<u8> {
        let size = self.shape.iter().product::<u64>();
        let mut bytes = Vec::new();
        for element in order {
            match self.values[(element / size) as usize][(element % size) as usize] {
                Some(value) => bytes.extend(external(self.ty, value)),
                None => bytes.extend(&self.fill),
            }
        }
        bytes
    }
}

/// Some elements that a rank has, as its blob, some of its blocks, or a list: the selection, and
/// the elements in its order.
fn part_of(
    dice: &mut Dice,
    map: &Map,
    rank: usize,
    start: &[u64],
    count: &[u64],
) -> (Selection, Vec<u64>) {
    let blocks = &map.parts[rank];
    if blocks.is_empty() || dice.one_in(5) {
        return (Selection::none(), Vec::new());
    }
    let mut numbers: Vec<u64> = (0..blocks.len() as u64).collect();
    match dice.below(4) {
        0 | 1 => (Selection::blob(start, count), map.order[rank].clone()),
        2 => {
            dice.shuffle(&mut numbers);
            numbers.truncate(1 + dice.below(blocks.len() as u64) as usize);
            let chosen: Vec<Block> = numbers.iter().map(|n| blocks[*n as usize].clone()).collect();
            (Selection::blocks(start, count, &numbers), order_of(&chosen, &map.shape))
        }
        _ => {
            // Elements one by one, in any order. With several outer indices, those are in each
            // hyperslab, so there is only one.
            let mut order = map.order[rank].clone();
            dice.shuffle(&mut order);
            let several = count.iter().product::<u64>() > 1;
            order.truncate(if several { 1 } else { 1 + dice.below(order.len() as u64) as usize });
            let (mut starts, mut counts) = (Vec::new(), Vec::new());
            for element in &order {
                starts.extend(start);
                starts.extend(index(*element, &map.shape));
                counts.extend(count);
                counts.extend(vec![1; map.shape.len()]);
            }
            (Selection::list(start.len() + map.shape.len(), starts, counts), order)
        }
    }
}

fn hints(dice: &mut Dice, ranks: u64, path: &Path) -> Hints {
    let mut hints = random_hints(dice, ranks);
    if Way::named(path).burst {
        burst_hints(dice, &mut hints, path);
    }
    if dice.one_in(2) {
        // Sections of a map at a time.
        hints.set("esker_index_memory", "1");
    }
    hints
}

/// A number that is the same on every rank.
fn owner(salt: usize, element: u64, of: u64) -> u64 {
    let mut dice = Dice::new(salt as u64 * 1000 + element);
    dice.below(of + 1)
}

fn index(mut element: u64, shape: &[u64]) -> Vec<u64> {
    let mut out = vec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        out[d] = element % shape[d];
        element /= shape[d];
    }
    out
}

fn run_block(first: u64, len: u64, shape: &[u64]) -> Block {
    let mut count = vec![1; shape.len()];
    count[shape.len() - 1] = len;
    (index(first, shape), count)
}

fn order_of(blocks: &[Block], shape: &[u64]) -> Vec<u64> {
    let stride = vec![1; shape.len()];
    let of =
        |(start, count): &Block| elements(&(start.clone(), count.clone(), stride.clone()), shape);
    blocks.iter().flat_map(of).collect()
}

fn list(blocks: &[Block], rank: usize) -> Selection {
    if blocks.is_empty() {
        return Selection::none();
    }
    let starts = blocks.iter().flat_map(|(start, _)| start.clone()).collect();
    let counts = blocks.iter().flat_map(|(_, count)| count.clone()).collect();
    Selection::list(rank, starts, counts)
}

/// A small number as a value in the file.
fn external(ty: ExternalType, value: u8) -> Vec<u8> {
    match ty {
        ExternalType::Float => f32::from(value).to_be_bytes().to_vec(),
        ExternalType::Double => f64::from(value).to_be_bytes().to_vec(),
        _ => u64::from(value).to_be_bytes()[8 - ty.size() as usize..].to_vec(),
    }
}

fn of(ty: ExternalType, data: &[u8]) -> Values {
    let bytes: Vec<u8> = data.iter().flat_map(|v| external(ty, *v)).collect();
    Values::decode(ty, data.len(), &bytes).unwrap()
}
