//! A random life of a dataset on any number of ranks, checked against a plain array.
//!
//! Every rank runs the same scenario from the same seed, so each knows what all of them do,
//! and holds the model of the whole dataset.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, FillMode, Hints, MemoryLayout,
    Native, OpenOptions, Requests, Selection, Values, VarId, Version, values,
};

/// A small generator with a good spread; the same on every rank.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A variable as it should be.
struct Model {
    var: VarId,
    name: String,
    ty: ExternalType,
    is_record: bool,
    /// Without the record dimension.
    shape: Vec<u64>,
    /// Elements of a record, or of the variable.
    record: u64,
    /// What nobody wrote: the fill value, or unknown.
    blank: Option<f64>,
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
}

/// A hyperslab: start, count, stride.
type Slab = (Vec<u64>, Vec<u64>, Vec<u64>);

/// The linear numbers of a slab's elements.
fn elements((start, count, stride): &Slab, shape: &[u64]) -> Vec<u64> {
    let mut out = vec![0];
    for d in 0..shape.len() {
        let mut next = Vec::new();
        for base in &out {
            for i in 0..count[d] {
                next.push(base * shape[d] + start[d] + i * stride[d]);
            }
        }
        out = next;
    }
    out
}

fn random_slab(dice: &mut Dice, shape: &[u64]) -> Slab {
    let mut slab = (Vec::new(), Vec::new(), Vec::new());
    for len in shape {
        let start = dice.below(*len);
        let stride = if dice.one_in(3) { 1 + dice.below(3) } else { 1 };
        let most = (len - start).div_ceil(stride);
        let count = if dice.one_in(2) { most } else { 1 + dice.below(most) };
        slab.0.push(start);
        slab.1.push(count);
        slab.2.push(stride);
    }
    slab
}

/// Cuts a slab along one of its dimensions into one part for each rank; some may be empty.
fn split(dice: &mut Dice, slab: &Slab, ranks: u64) -> Vec<Option<Slab>> {
    if slab.0.is_empty() {
        let owner = dice.below(ranks);
        return (0..ranks).map(|rank| (rank == owner).then(|| slab.clone())).collect();
    }
    let d = dice.below(slab.0.len() as u64) as usize;
    let interleaved = dice.one_in(2);
    let (start, count, stride) = (slab.0[d], slab.1[d], slab.2[d]);
    (0..ranks)
        .map(|rank| {
            let mut part = slab.clone();
            if interleaved {
                part.0[d] = start + rank * stride;
                part.1[d] = count.saturating_sub(rank).div_ceil(ranks);
                part.2[d] = stride * ranks;
            } else {
                let (from, to) = (count * rank / ranks, count * (rank + 1) / ranks);
                part.0[d] = start + from * stride;
                part.1[d] = to - from;
            }
            (part.1[d] > 0).then_some(part)
        })
        .collect()
}

/// What one rank writes: selection, elements in its order.
fn as_list(dice: &mut Dice, slab: &Slab, shape: &[u64]) -> (Selection, Vec<u64>) {
    let all = elements(slab, shape);
    match dice.below(3) {
        // Single elements in a random order, as a list.
        0 if !shape.is_empty() => {
            let mut order: Vec<u64> = all;
            for i in (1..order.len()).rev() {
                order.swap(i, dice.below(i as u64 + 1) as usize);
            }
            let mut starts = Vec::new();
            for element in &order {
                let mut rest = *element;
                let mut index = vec![0; shape.len()];
                for d in (0..shape.len()).rev() {
                    index[d] = rest % shape[d];
                    rest /= shape[d];
                }
                starts.extend(index);
            }
            (Selection::list(shape.len(), starts, Vec::new()), order)
        }
        _ => (Selection::strided(&slab.0, &slab.1, &slab.2), all),
    }
}

fn random_hints(dice: &mut Dice, ranks: u64) -> Hints {
    let mut hints = Hints::default();
    if dice.one_in(2) {
        hints.set("cb_buffer_size", &(16 + dice.below(3000)).to_string());
        hints.set("striping_unit", &(1 + dice.below(200)).to_string());
    }
    if dice.one_in(2) {
        hints.set("cb_nodes", &(1 + dice.below(ranks)).to_string());
    }
    let switch = ["enable", "disable", "automatic"];
    for name in ["romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read"] {
        hints.set(name, switch[dice.below(3) as usize]);
    }
    if dice.one_in(3) {
        hints.set("ind_rd_buffer_size", &(8 + dice.below(200)).to_string());
        hints.set("ind_wr_buffer_size", &(8 + dice.below(200)).to_string());
        hints.set("esker_sieve_hole", &(1 + dice.below(60)).to_string());
    }
    assert!(hints.warnings().is_empty(), "{:?}", hints.warnings());
    hints
}

/// Runs a whole scenario. Panics where the dataset and the model differ.
pub(crate) fn run(seed: u64, comm: Arc<dyn Communicator>, path: &Path) {
    let mut dice = Dice::new(seed);
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let version = Version::ALL[dice.below(3) as usize];
    let fill = if dice.one_in(2) { FillMode::Fill } else { FillMode::NoFill };
    let hints = random_hints(&mut dice, ranks);
    let options =
        CreateOptions::new().version(version).fill(fill).hints(hints.clone()).comm(comm.clone());
    let mut def = Dataset::create(path, options).unwrap();
    let mut records = 0;
    let time = def.add_dim("time", DimLen::Unlimited).unwrap();
    let mut dims = Vec::new();
    for i in 0..3 {
        let len = 1 + dice.below(11);
        dims.push((def.add_dim(&format!("d{i}"), DimLen::Fixed(len)).unwrap(), len));
    }
    let mut models = Vec::new();
    let define = |def: &mut esker::Define,
                  dice: &mut Dice,
                  models: &mut Vec<Model>,
                  records: u64| {
        let types: Vec<_> = ExternalType::ALL
            .into_iter()
            .filter(|t| version.has_type(*t) && *t != ExternalType::Char)
            .collect();
        let ty = types[dice.below(types.len() as u64) as usize];
        let is_record = dice.one_in(2);
        let chosen: Vec<_> = (0..dice.below(4)).map(|_| dims[dice.below(3) as usize]).collect();
        let mut ids: Vec<_> = chosen.iter().map(|d| d.0).collect();
        if is_record {
            ids.insert(0, time);
        }
        let name = format!("v{}", models.len());
        let var = def.add_var(&name, ty, &ids).unwrap();
        if dice.one_in(3) {
            def.put_attr(var, "_FillValue", Values::from(77i32).convert(ty)).unwrap();
        }
        let blank = match fill {
            FillMode::Fill => values::fill_value(def.schema().variable(var).unwrap()).get_f64(0),
            FillMode::NoFill => None,
        };
        let shape: Vec<u64> = chosen.iter().map(|d| d.1).collect();
        let record: u64 = shape.iter().product();
        let len = if is_record { record * records } else { record };
        let values = vec![blank; len as usize];
        models.push(Model { var, name, ty, is_record, shape, record, blank, values });
    };
    for _ in 0..1 + dice.below(5) {
        define(&mut def, &mut dice, &mut models, 0);
    }
    let mut ds = def.enddef().unwrap();
    for step in 0..12 {
        let context = format!("seed {seed}, step {step}, {ranks} ranks, {path:?}");
        match dice.below(10) {
            // Redefinition: new variables, a longer header.
            0 => {
                let mut def = ds.redef().unwrap();
                let text = "x".repeat(dice.below(300) as usize);
                def.put_attr(esker::Owner::Global, "note", text).unwrap();
                if dice.one_in(2) {
                    define(&mut def, &mut dice, &mut models, records);
                }
                ds = def.enddef().unwrap();
            }
            // Closing and opening again.
            1 => {
                ds.close().unwrap();
                comm.barrier().unwrap();
                let hints = random_hints(&mut dice, ranks);
                let options =
                    OpenOptions::new().writable(true).fill(fill).hints(hints).comm(comm.clone());
                ds = Dataset::open_with(path, options).unwrap();
                assert_eq!(ds.numrecs(), records, "{context}");
            }
            2..=6 => write(&mut ds, &mut dice, &mut models, &mut records, rank, ranks),
            _ => {}
        }
        // Independent reads may follow only when everyone has written.
        comm.barrier().unwrap();
        read(&mut ds, &mut dice, &models, records, rank, &context);
        comm.barrier().unwrap();
    }
    ds.sync().unwrap();
    ds.close().unwrap();
    comm.barrier().unwrap();
    let ds = Dataset::open(path).unwrap();
    for model in &models {
        let var = ds.var(&model.name).unwrap();
        compare(&ds.get::<f64>(var, &Selection::all()).unwrap(), &model.values, &model.name, seed);
    }
    comm.barrier().unwrap();
}

fn write(
    ds: &mut Dataset,
    dice: &mut Dice,
    models: &mut [Model],
    records: &mut u64,
    rank: u64,
    ranks: u64,
) {
    let posted = 1 + dice.below(3) * dice.below(3);
    let mut mine: Vec<(VarId, Selection, Vec<f64>)> = Vec::new();
    let mut writers: HashMap<(usize, u64), usize> = HashMap::new();
    let alone = dice.one_in(6).then(|| dice.below(ranks));
    for _ in 0..posted {
        let number = dice.below(models.len() as u64) as usize;
        // Records of an independent write by one of several ranks are not filled; that is
        // said in the documentation, so the model does not ask for it.
        let grows = alone.is_none() || ranks == 1;
        let model = &models[number];
        let room = if grows { *records + 1 + dice.below(3) } else { *records };
        let shape = model.full_shape(room);
        if shape.contains(&0) {
            continue;
        }
        let slab = random_slab(dice, &shape);
        let parts = match alone {
            None => split(dice, &slab, ranks),
            Some(owner) => {
                (0..ranks).map(|r| (r == owner).then(|| slab.clone())).collect::<Vec<_>>()
            }
        };
        for (owner, part) in parts.iter().enumerate() {
            let Some(part) = part else { continue };
            let (selection, order) = as_list(dice, part, &shape);
            let values: Vec<f64> = order.iter().map(|_| dice.below(100) as f64).collect();
            if models[number].is_record {
                let last = order.iter().max().map_or(0, |e| e / models[number].record + 1);
                if last > *records {
                    grow(models, last);
                    *records = last;
                }
            }
            let model = &mut models[number];
            for (element, value) in order.iter().zip(&values) {
                // Of two ranks that write one element in one wait, either may win. Of one
                // rank's own writes the last wins.
                let writer = writers.entry((number, *element)).or_insert(owner);
                let known = *writer == owner;
                if !known {
                    *writer = usize::MAX;
                }
                model.values[*element as usize] = known.then_some(*value);
            }
            if owner as u64 == rank {
                mine.push((model.var, selection, values));
            }
        }
    }
    let kind = dice.below(4);
    if let Some(owner) = alone {
        for (var, selection, data) in &mine {
            assert_eq!(owner, rank);
            put(ds, *var, selection, data, kind);
        }
        return;
    }
    if mine.len() == 1 && posted == 1 && ranks == 1 {
        ds.put_all(mine[0].0, &mine[0].1, &mine[0].2).unwrap();
        return;
    }
    let mut queue = Requests::new();
    queue.attach_buffer(1 << 20).unwrap();
    for (i, (var, selection, data)) in mine.iter().enumerate() {
        if i % 3 == 2 {
            ds.bput(&mut queue, *var, selection, data).unwrap();
        } else {
            ds.iput(&mut queue, *var, selection, data).unwrap();
        }
    }
    ds.wait_all(&mut queue).unwrap();
    assert!(queue.is_empty());
    assert_eq!(queue.buffer_usage(), Some((1 << 20, 0)));
}

fn put(ds: &mut Dataset, var: VarId, selection: &Selection, data: &[f64], kind: u64) {
    match kind {
        0 => ds.put(var, selection, data).unwrap(),
        1 => ds.put(var, selection, &data.iter().map(|v| *v as i32).collect::<Vec<_>>()).unwrap(),
        2 => ds.put(var, selection, &data.iter().map(|v| *v as u8).collect::<Vec<_>>()).unwrap(),
        _ => {
            // Backwards in memory.
            let turned: Vec<i64> = data.iter().rev().map(|v| *v as i64).collect();
            let layout =
                MemoryLayout::strided(data.len().saturating_sub(1), &[data.len() as u64], &[-1]);
            ds.put_strided(var, selection, &turned, layout).unwrap();
        }
    }
}

fn grow(models: &mut [Model], records: u64) {
    for model in models.iter_mut().filter(|m| m.is_record) {
        let len = (model.record * records) as usize;
        if model.values.len() < len {
            model.values.resize(len, model.blank);
        }
    }
}

fn read(
    ds: &mut Dataset,
    dice: &mut Dice,
    models: &[Model],
    records: u64,
    rank: u64,
    context: &str,
) {
    let model = &models[dice.below(models.len() as u64) as usize];
    assert_eq!(ds.numrecs(), records, "{context}");
    let shape = model.full_shape(records);
    if shape.contains(&0) {
        return;
    }
    // Each rank reads something else.
    let ranks = ds.comm().size() as u64;
    let slabs: Vec<Slab> = (0..ranks).map(|_| random_slab(dice, &shape)).collect();
    let lists: Vec<_> = slabs.iter().map(|slab| as_list(dice, slab, &shape)).collect();
    let (selection, order) = &lists[rank as usize];
    let expected: Vec<Option<f64>> = order.iter().map(|e| model.values[*e as usize]).collect();
    let found = match dice.below(4) {
        0 => ds.get::<f64>(model.var, selection).unwrap(),
        1 => ds.get_all::<f64>(model.var, selection).unwrap(),
        2 => {
            let mut out = vec![0.0; order.len()];
            ds.get_all_into(model.var, selection, &mut out).unwrap();
            out
        }
        _ => {
            let (mut first, mut second) = (vec![0.0; order.len()], vec![0f64; order.len()]);
            let mut queue = Requests::new();
            ds.iget(&mut queue, model.var, selection, &mut first).unwrap();
            ds.iget(&mut queue, model.var, selection, &mut second).unwrap();
            ds.wait_all(&mut queue).unwrap();
            drop(queue);
            assert_eq!(first, second, "{context}");
            first
        }
    };
    compare(&found, &expected, &format!("{} ({}), {context}", model.name, model.ty), 0);
}

fn compare(found: &[f64], expected: &[Option<f64>], what: &str, seed: u64) {
    assert_eq!(found.len(), expected.len(), "{what}, seed {seed}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        if let Some(expected) = expected {
            assert_eq!(found, expected, "element {i} of {what}, seed {seed}");
        }
    }
}

/// A value in another type.
trait Convert {
    fn convert(&self, ty: ExternalType) -> Values;
}

impl Convert for Values {
    fn convert(&self, ty: ExternalType) -> Values {
        fn to<T: Native>(values: &Values) -> Values
        where
            Values: From<Vec<T>>,
        {
            Values::from(values.convert_to::<T>().unwrap())
        }
        match ty {
            ExternalType::Byte => to::<i8>(self),
            ExternalType::Short => to::<i16>(self),
            ExternalType::Int => to::<i32>(self),
            ExternalType::Float => to::<f32>(self),
            ExternalType::Double => to::<f64>(self),
            ExternalType::UByte => to::<u8>(self),
            ExternalType::UShort => to::<u16>(self),
            ExternalType::UInt => to::<u32>(self),
            ExternalType::Int64 => to::<i64>(self),
            ExternalType::UInt64 => to::<u64>(self),
            ExternalType::Char => self.clone(),
        }
    }
}
