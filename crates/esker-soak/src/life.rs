//! A life of a dataset, and the plain arrays that say what is in it after each step.
//!
//! Everything follows from a seed: the shape, the ranks, what each step writes and which steps end
//! with a sync. So whoever looks at a dataset afterwards, in this process or in another one, knows what it
//! must hold, given the last step that was promised and the last that was begun.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, ExternalType, OpenOptions, Owner, Result,
    Selection,
};
use esker_store::Store;
use esker_testkit::random::Random;

use crate::form::Form;

/// The variables: `fixed(y, x)`, `rec(t, y, x)` and, always as netCDF has it, `plain(x)`.
pub(crate) const NAMES: [&str; 3] = ["fixed", "rec", "plain"];

const FILL_INT: f64 = -2_147_483_647.0;
const FILL_REAL: f32 = 9.969_21e36;
const FILL_DOUBLE: f64 = 9.969_209_968_386_869e36;

/// What a dataset holds: the values of each variable, and the number of records.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) records: u64,
    pub(crate) values: [Vec<f64>; 3],
}

/// A box of a variable: rows and columns, of a record if there are such.
#[derive(Debug, Clone, Copy)]
struct Part {
    record: u64,
    y: (u64, u64),
    x: (u64, u64),
}

/// A life.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) form: Form,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    pub(crate) ranks: usize,
    ordered: bool,
    y: u64,
    x: u64,
}

/// Who is told how far a life has come. Told by one rank, while the others wait.
pub(crate) trait Progress: Sync {
    fn begun(&self, step: u64);
    fn synced(&self, step: u64);
}

fn pick(seed: u64, what: u64) -> Random {
    let mut random = Random(seed ^ what.wrapping_mul(0xA24B_AED4_963E_E407));
    random.next();
    random
}

impl Life {
    pub(crate) fn new(form: Form, seed: u64, steps: u64) -> Life {
        let mut random = pick(seed, 1);
        let ranks = 1 + random.below(3);
        let (y, x) = (2 + random.below_u64(5), 5 + random.below_u64(9));
        Life { form, seed, steps, ranks, ordered: false, y, x }
    }

    /// Chunks that are rewritten reach the disk before their entries do.
    pub(crate) fn ordered(self) -> Life {
        Life { ordered: true, ..self }
    }

    /// Whether it asks for that.
    pub(crate) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The elements of a variable that were written by these steps.
    pub(crate) fn written_by(&self, var: usize, steps: Range<u64>) -> BTreeSet<u64> {
        let writes = steps.flat_map(|step| self.writes(step)).filter(|(of, _)| *of == var);
        writes.flat_map(|(_, part)| self.places(&part)).collect()
    }

    pub(crate) fn with_ranks(self, ranks: usize) -> Life {
        Life { ranks, ..self }
    }

    fn random(&self, what: u64) -> Random {
        pick(self.seed, 1000 + what)
    }

    /// Whether a step ends with a sync; the last one always does.
    pub(crate) fn syncs(&self, step: u64) -> bool {
        step + 1 == self.steps || self.random(10 * step).one_in(2)
    }

    fn reopens_after(&self, step: u64) -> bool {
        self.random(10 * step + 1).one_in(4)
    }

    fn redefines_after(&self, step: u64) -> bool {
        self.form.redefines() && self.random(10 * step + 2).one_in(5)
    }

    /// What a step writes of `fixed` and `rec`: a part of the array, the new record (with a hole now and then),
    /// and something of an older record.
    fn writes(&self, step: u64) -> Vec<(usize, Part)> {
        let mut random = self.random(10 * step + 3);
        let mut part = |record: u64, whole: bool| {
            let mut range = |len: u64| {
                let from = if whole { 0 } else { random.below_u64(len) };
                let to = if whole { len } else { from + 1 + random.below_u64(len - from) };
                (from, to)
            };
            Part { record, y: range(self.y), x: range(self.x) }
        };
        let mut all = vec![(0, part(0, step == 0 && self.seed.is_multiple_of(3)))];
        let whole = self.random(10 * step + 4).one_in(2);
        all.push((1, part(step, whole)));
        if step > 0 && self.random(10 * step + 5).one_in(2) {
            let record = self.random(10 * step + 6).below_u64(step);
            all.push((1, part(record, false)));
        }
        all
    }

    fn value(&self, step: u64, var: usize, place: u64) -> f64 {
        let mut random = pick(self.seed, (step << 32) ^ ((var as u64) << 24) ^ place);
        random.below_u64(20_000) as f64 + 1.0
    }

    fn places(&self, part: &Part) -> Vec<u64> {
        let (y, x) = (part.y, part.x);
        let row = move |row: u64| (x.0..x.1).map(move |column| row * self.x + column);
        (y.0..y.1).flat_map(row).map(|place| part.record * self.y * self.x + place).collect()
    }

    /// What the dataset holds after so many steps.
    pub(crate) fn state(&self, steps: u64) -> State {
        let plane = (self.y * self.x) as usize;
        let fixed = vec![FILL_INT; plane];
        let rec = vec![f64::from(FILL_REAL); plane * steps as usize];
        let plain = match steps {
            0 => vec![FILL_DOUBLE; self.x as usize],
            _ => (0..self.x).map(|place| self.value(0, 2, place)).collect(),
        };
        let mut state = State { records: steps, values: [fixed, rec, plain] };
        for step in 0..steps {
            for (var, part) in self.writes(step) {
                for place in self.places(&part) {
                    state.values[var][place as usize] = self.value(step, var, place);
                }
            }
        }
        state
    }

    /// The shape of a variable in a state.
    pub(crate) fn shape(&self, var: usize, records: u64) -> Vec<u64> {
        match var {
            0 => vec![self.y, self.x],
            1 => vec![records, self.y, self.x],
            _ => vec![self.x],
        }
    }

    fn hints(&self, folder: &Path) -> esker::Hints {
        self.form.hints(folder, self.seed >> 8, self.ordered)
    }

    fn define(&self, def: &mut Define, comm: &dyn Communicator) -> Result<()> {
        let t = def.add_dim("t", DimLen::Unlimited)?;
        let y = def.add_dim("y", DimLen::Fixed(self.y))?;
        let x = def.add_dim("x", DimLen::Fixed(self.x))?;
        let mut random = self.random(7);
        if self.form.is_decomposed() {
            let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
            let count = self.x.saturating_sub(me).div_ceil(ranks);
            let mine = Selection::strided(&[0, me], &[self.y, count], &[1, ranks]);
            let map = def.add_decomposition(&[y, x], &mine)?;
            def.add_decomposed_var(NAMES[0], ExternalType::Int, &[], map)?;
            def.add_decomposed_var(NAMES[1], ExternalType::Float, &[t], map)?;
        } else {
            let fixed = def.add_var(NAMES[0], ExternalType::Int, &[y, x])?;
            let rec = def.add_var(NAMES[1], ExternalType::Float, &[t, y, x])?;
            if self.form.has_chunks() {
                let filters =
                    ["", "zstd,3", "shuffle deflate,6", "lz4", "pco", "shuffle zstd,1 crc32c"];
                let rows = 1 + random.below_u64(self.y);
                let columns = 1 + random.below_u64(self.x.min(6));
                def.set_chunks(fixed, &[rows, columns])?;
                def.set_filters(fixed, random.pick(&filters))?;
                def.set_chunks(rec, &[1 + random.below_u64(3), rows, columns])?;
                def.set_filters(rec, random.pick(&filters))?;
            }
        }
        def.add_var(NAMES[2], ExternalType::Double, &[x])?;
        def.put_attr(Owner::Global, "title", "a life")?;
        Ok(())
    }

    /// The rank's share of a part: every so many-th column.
    fn share(&self, part: &Part, var: usize, comm: &dyn Communicator) -> (Selection, Vec<u64>) {
        let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
        let first = part.x.0 + (ranks + me - part.x.0 % ranks) % ranks;
        if first >= part.x.1 {
            return (Selection::none(), Vec::new());
        }
        let columns = (part.x.1 - first).div_ceil(ranks);
        let rows = part.y.1 - part.y.0;
        let places = self.places(part);
        let mine = places.into_iter().filter(|place| place % self.x % ranks == me).collect();
        let selection = match var {
            0 => Selection::strided(&[part.y.0, first], &[rows, columns], &[1, ranks]),
            _ => Selection::strided(
                &[part.record, part.y.0, first],
                &[1, rows, columns],
                &[1, 1, ranks],
            ),
        };
        (selection, mine)
    }

    fn step(&self, ds: &mut Dataset, step: u64, comm: &dyn Communicator) -> Result<()> {
        for (var, part) in self.writes(step) {
            let (selection, places) = self.share(&part, var, comm);
            let values: Vec<f64> = places.iter().map(|p| self.value(step, var, *p)).collect();
            let id = ds.var(NAMES[var])?;
            ds.put_all(id, &selection, &values)?;
        }
        if step == 0 {
            let part = Part { record: 0, y: (0, 1), x: (0, self.x) };
            let mine = comm.rank() == 0;
            let places = self.places(&part).into_iter().filter(|_| mine);
            let values: Vec<f64> = places.map(|place| self.value(0, 2, place)).collect();
            let all = if mine { Selection::all() } else { Selection::none() };
            let id = ds.var(NAMES[2])?;
            ds.put_all(id, &all, &values)?;
        }
        Ok(())
    }

    /// Lives, until the end or the first error.
    pub(crate) fn run(
        &self,
        store: Arc<dyn Store>,
        comm: Arc<dyn Communicator>,
        folder: &Path,
        progress: &dyn Progress,
    ) -> Result<()> {
        let path = self.form.path(folder);
        let hints = self.hints(folder);
        let options = CreateOptions::new().comm(comm.clone()).store(store.clone());
        let mut def = Dataset::create(&path, options.hints(hints.clone()))?;
        self.define(&mut def, &*comm)?;
        let mut ds = def.enddef()?;
        let told = |call: &dyn Fn()| -> Result<()> {
            comm.barrier()?;
            if comm.rank() == 0 {
                call();
            }
            Ok(comm.barrier()?)
        };
        for step in 0..self.steps {
            told(&|| progress.begun(step + 1))?;
            self.step(&mut ds, step, &*comm)?;
            if self.syncs(step) {
                ds.sync()?;
                told(&|| progress.synced(step + 1))?;
            }
            if self.reopens_after(step) {
                ds.close()?;
                let options = OpenOptions::new().writable(true).comm(comm.clone());
                let options = options.store(store.clone()).hints(hints.clone());
                ds = Dataset::open_with(&path, options)?;
            }
            if self.redefines_after(step) {
                let mut def = ds.redef()?;
                let text = "x".repeat(if self.seed.is_multiple_of(2) { 10 } else { 5000 });
                def.put_attr(Owner::Global, &format!("note{step}"), text)?;
                ds = def.enddef()?;
            }
        }
        ds.close()
    }
}
