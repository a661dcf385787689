//! Definitions of ranks that differ, merged by both roads: the same file comes of it.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Alignment, Communicator, CreateOptions, Dataset, Define, DimLen, ExternalType, FillMode, Hints,
    Owner, Selection, Values, Version,
};

use super::Dice;

/// What a test runs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Road {
    Tree,
    Shares,
}

pub(crate) fn hints(road: Road) -> Hints {
    let mut hints = Hints::default();
    if road == Road::Shares {
        hints.set("esker_definitions", "shares");
    }
    hints
}

/// Everything that ranks may define, of which each takes some: the same for all ranks, so that there is no conflict.
struct Pool {
    seed: u64,
    version: Version,
    align: Alignment,
    fill: FillMode,
    dims: Vec<(String, DimLen)>,
    vars: Vec<(String, ExternalType, Vec<usize>, Option<FillMode>)>,
}

const TYPES: [ExternalType; 6] = [
    ExternalType::Byte,
    ExternalType::Char,
    ExternalType::Short,
    ExternalType::Int,
    ExternalType::Float,
    ExternalType::Double,
];

impl Pool {
    fn new(seed: u64) -> Pool {
        let mut dice = Dice::new(seed);
        let version = [Version::Cdf1, Version::Cdf2, Version::Cdf5][dice.below(3) as usize];
        let mut size = |sizes: &[u64]| sizes[dice.below(sizes.len() as u64) as usize];
        let align = Alignment {
            header: size(&[0, 1, 4, 512, 1000]),
            variable: size(&[0, 4, 4, 16, 6]),
            records: size(&[4, 4, 512, 7]),
            header_room: size(&[0, 0, 100]),
            record_room: size(&[0, 0, 33]),
            records_from: size(&[0, 0, 5000]),
            never_back: size(&[0, 1]) == 1,
        };
        let fill = if dice.below(2) == 0 { FillMode::Fill } else { FillMode::NoFill };
        let mut dims = vec![("time".to_string(), DimLen::Unlimited)];
        for number in 0..dice.below(8) {
            dims.push((format!("d{number}"), DimLen::Fixed(1 + dice.below(5))));
        }
        let mut vars = Vec::new();
        for number in 0..dice.below(40) {
            let ty = TYPES[dice.below(6) as usize];
            let mut over = Vec::new();
            if dice.below(3) == 0 {
                over.push(0);
            }
            for _ in 0..dice.below(3) {
                if dims.len() > 1 {
                    over.push(1 + dice.below(dims.len() as u64 - 1) as usize);
                }
            }
            let own = [None, Some(FillMode::Fill), Some(FillMode::NoFill)][dice.below(3) as usize];
            vars.push((format!("v{number}"), ty, over, own));
        }
        Pool { seed, version, align, fill, dims, vars }
    }

    fn options(&self, comm: &Arc<dyn Communicator>, road: Road) -> CreateOptions {
        CreateOptions::new()
            .comm(comm.clone())
            .version(self.version)
            .align(self.align)
            .fill(self.fill)
            .hints(hints(road))
    }

    /// Defines some of it, in an order of the rank's own. Now and then a rank defines nothing.
    fn define(&self, rank: usize, def: &mut Define) {
        let mut dice = Dice::new(self.seed * 100 + rank as u64);
        if dice.below(5) == 0 {
            return;
        }
        let mut order: Vec<usize> = (0..self.vars.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, dice.below(at as u64 + 1) as usize);
        }
        order.truncate(dice.below(order.len() as u64 + 1) as usize);
        let dim = |def: &mut Define, number: usize| {
            let (name, len) = &self.dims[number];
            match def.schema().dim(name) {
                Some(dim) => dim,
                None => def.add_dim(name, *len).unwrap(),
            }
        };
        for number in order {
            let (name, ty, over, fill) = &self.vars[number];
            let over: Vec<_> = over.iter().map(|number| dim(def, *number)).collect();
            let var = def.add_var(name, *ty, &over).unwrap();
            for attr in 0..dice.below(6) {
                let attr = (attr * 7 + dice.below(3)) % 20;
                let values = Values::from(vec![number as f64, attr as f64]);
                def.put_attr(var, &format!("a{attr}"), values).unwrap();
            }
            // A mode that only some ranks choose is everyone's.
            if let Some(fill) = fill.filter(|_| dice.below(2) == 0) {
                def.set_fill(var, fill).unwrap();
            }
        }
        if dice.below(3) == 0 && self.dims.len() > 1 {
            dim(def, 1 + dice.below(self.dims.len() as u64 - 1) as usize);
        }
        for attr in 0..dice.below(4) {
            let attr = (attr * 5 + dice.below(4)) % 12;
            def.put_attr(Owner::Global, &format!("g{attr}"), format!("text {attr}").as_str())
                .unwrap();
        }
    }

    /// Writes to each variable that this rank has defined, all ranks taking part as often as the one with most.
    fn write(&self, ds: &mut Dataset, records: u64) {
        use esker_comm::CommunicatorExt;
        let comm = ds.comm().clone();
        let own: Vec<String> = {
            let mut def = Names::default();
            def.of(self, comm.rank(), ds);
            def.0
        };
        for turn in 0..comm.max_u64(own.len() as u64).unwrap() {
            let Some(name) = own.get(turn as usize) else {
                ds.wait_all(&mut esker::Requests::new()).unwrap();
                continue;
            };
            let var = ds.var(name).unwrap();
            let is_record = ds.schema().is_record(ds.variable(var).unwrap());
            let mut shape = ds.shape(var).unwrap();
            if is_record {
                shape[0] = 1;
            }
            let count: u64 = shape.iter().product();
            let seed = name.bytes().map(u64::from).sum::<u64>();
            let mut start = vec![0; shape.len()];
            if is_record {
                start[0] = seed % records;
            }
            let selection = Selection::slab(&start, &shape);
            // The same for all ranks that have it.
            match ds.variable(var).unwrap().ty {
                ExternalType::Char => {
                    let values = vec![esker::Char((seed % 90) as u8 + 32); count as usize];
                    ds.put_all(var, &selection, &values).unwrap();
                }
                _ => {
                    let values: Vec<i8> = (0..count).map(|i| ((seed + i) % 100) as i8).collect();
                    ds.put_all(var, &selection, &values).unwrap();
                }
            }
        }
    }
}

/// The variables of the pool that a rank has defined itself.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn of(&mut self, pool: &Pool, rank: usize, ds: &Dataset) {
        let mut def = Dataset::create(
            "nothing.nc",
            CreateOptions::new()
                .version(pool.version)
                .store(Arc::new(esker_store::MemoryStore::default())),
        )
        .unwrap();
        pool.define(rank, &mut def);
        self.0 = def.schema().vars.iter().map(|var| var.name.to_string()).collect();
        assert!(self.0.iter().all(|name| ds.var(name).is_ok()));
    }
}

/// Makes a file of the pool on all ranks, by one road. Gives whether a rank knows all.
pub(crate) fn make(seed: u64, comm: &Arc<dyn Communicator>, path: &Path, road: Road) -> bool {
    let pool = Pool::new(seed);
    let mut def = Dataset::create(path, pool.options(comm, road)).unwrap();
    pool.define(comm.rank(), &mut def);
    let own = def.schema().clone();
    let mut ds = def.enddef().unwrap();
    let knows_all = ds.knows_all();
    // What a rank has defined keeps its numbers, whatever it knows of the rest.
    for (number, var) in own.vars.iter().enumerate() {
        assert_eq!(ds.schema().vars.at(number).unwrap().name, var.name);
        assert_eq!(ds.var(&var.name).unwrap().0, number);
        assert_eq!(ds.shape(esker::VarId(number)).unwrap(), own.shape(var, 0));
    }
    if !knows_all {
        assert_eq!(ds.schema().vars.len(), own.vars.len());
        assert_eq!(ds.schema().dims.len(), own.dims.len());
    }
    pool.write(&mut ds, 3);
    if seed.is_multiple_of(3) {
        ds.learn_all().unwrap();
        assert!(ds.knows_all());
        for (number, var) in own.vars.iter().enumerate() {
            assert_eq!(ds.var(&var.name).unwrap().0, number);
        }
        pool.write(&mut ds, 4);
    }
    if seed.is_multiple_of(4) {
        let mut def = ds.redef().unwrap();
        let name = format!("later{}", comm.rank() % 3);
        let dim = def.schema().dim("d0");
        def.add_var(&name, ExternalType::Int, dim.as_slice()).unwrap();
        ds = def.enddef().unwrap();
        pool.write(&mut ds, 5);
    }
    ds.close().unwrap();
    knows_all
}

/// Both roads to a file, compared. Gives whether the second was one by shares.
pub(crate) fn same_bytes(seed: u64, comm: &Arc<dyn Communicator>, dir: &Path) -> bool {
    let paths = [Road::Tree, Road::Shares].map(|road| {
        let path = dir.join(format!("{seed}-{}-{road:?}.nc", comm.size()));
        (make(seed, comm, &path, road), path)
    });
    assert!(paths[0].0, "a tree tells everyone everything");
    comm.barrier().unwrap();
    let [tree, shares] = [0, 1].map(|at: usize| std::fs::read(&paths[at].1).unwrap());
    let differs = tree.iter().zip(&shares).position(|(a, b)| a != b);
    let lens = (tree.len(), shares.len());
    assert!(tree == shares, "seed {seed}, {} ranks: {differs:?} of {lens:?}", comm.size());
    comm.barrier().unwrap();
    !paths[1].0
}
