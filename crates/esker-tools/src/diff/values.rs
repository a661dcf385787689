//! Values: both files side by side, in bounded memory.

use esker::values::swap_in_place;
use esker::{Changes, ExternalType, Scalar, VarId};

use super::compare::Closeness;
use super::report::{Report, ValueDifferences, ValuePair};
use super::structure::Pair;
use super::{DiffError, DiffOptions};
use crate::progress::Progress;
use crate::source::Source;

/// Bytes of which equality is looked for at once before single values are compared.
const BLOCK: u64 = 32 << 10;

/// Reads of less than this are not worth their call.
const CLOSE: u64 = 64 << 10;

/// Compares the values of all pairs; where they are known, only what may have changed.
pub(super) fn compare(
    (a, b): (&mut Source, &mut Source),
    changes: Option<&Changes>,
    pairs: &[Pair],
    options: &DiffOptions,
    progress: &mut dyn Progress,
    report: &mut Report,
) -> Result<(), DiffError> {
    let DiffOptions { atol, rtol, nan_equal, .. } = *options;
    let closeness = Closeness { atol, rtol, nan_equal };
    let mut tallies = Vec::with_capacity(pairs.len());
    for pair in pairs {
        tallies.push(Tally::new(pair, a, b, closeness, options.most)?);
    }
    let total: u64 = tallies.iter().map(Tally::bytes).sum();
    let mut told = (0, 0);
    let mut tell = |bytes: u64| {
        told.0 += bytes;
        if told.0 - told.1 >= 1 << 20 {
            told.1 = told.0;
            progress.progress(told.0, total);
        }
    };
    // Variables of one number in both have the same sections.
    let may_differ = |tally: &Tally<'_>, record: u64| match changes {
        Some(changes) if tally.a.var == tally.b.var => changes.touch(tally.a.var, record),
        _ => true,
    };
    let mut passed_over = 0;
    for tally in tallies.iter_mut().filter(|t| !t.both_records()) {
        let is_fixed = !tally.a.record && !tally.b.record;
        for outer in 0..tally.outer() {
            let bytes = match is_fixed && !may_differ(tally, 0) {
                true => tally.pass_over(outer, &mut passed_over),
                false => tally.step(a, b, outer)?,
            };
            tell(bytes);
        }
    }
    // Records of both files, one after the other with all of their variables.
    let mut records: Vec<&mut Tally<'_>> =
        tallies.iter_mut().filter(|t| t.both_records()).collect();
    let most = records.iter().map(|t| t.outer()).max().unwrap_or(0);
    let wanted = |size: fn(&Tally<'_>) -> u64| records.iter().map(|t| t.elements * size(t)).sum();
    let ahead_a = Records::new(a, wanted(|t| t.a.ty.size()));
    let ahead_b = Records::new(b, wanted(|t| t.b.ty.size()));
    // Of records that are apart from each other nobody reads ahead.
    let most_ahead =
        if changes.is_some() { |record: u64, _: u64| record + 1 } else { |_, most| most };
    for record in 0..most {
        let wanted = records.iter().any(|tally| may_differ(tally, record));
        if wanted {
            ahead_a.fetch(a, record, most_ahead(record, most))?;
            ahead_b.fetch(b, record, most_ahead(record, most))?;
        }
        for tally in &mut records {
            let bytes = match may_differ(tally, record) {
                true => tally.step(a, b, record)?,
                false => tally.pass_over(record, &mut passed_over),
            };
            tell(bytes);
        }
    }
    progress.progress(total, total);
    if passed_over > 0 {
        report.notes.push(format!(
            "versions of one container: {passed_over} values that neither has changed since the other were not read"
        ));
    }
    for tally in tallies {
        report.variables_compared += 1;
        report.values_compared += tally.found.compared;
        if tally.found.differing > 0 {
            report.values.push(tally.found);
        }
    }
    Ok(())
}

/// One variable's values in one file.
#[derive(Debug, Clone, Copy)]
struct Side {
    var: VarId,
    ty: ExternalType,
    begin: u64,
    /// Bytes from one index of the first dimension to the next.
    step: u64,
    record: bool,
    /// How much to read at once.
    ahead: u64,
}

/// One variable under comparison: of its first dimension one index at a time when that is
/// the record dimension of a file, else all of it.
pub(super) struct Tally<'a> {
    pair: &'a Pair,
    a: Side,
    b: Side,
    /// Elements of one step.
    elements: u64,
    closeness: Closeness,
    most: usize,
    pub(super) found: ValueDifferences,
}

impl<'a> Tally<'a> {
    pub(super) fn new(
        pair: &'a Pair,
        a: &Source,
        b: &Source,
        closeness: Closeness,
        most: usize,
    ) -> Result<Tally<'a>, DiffError> {
        let (mut a, mut b) = (side(a, pair.first)?, side(b, pair.second)?);
        let outer = usize::from(a.record || b.record).min(pair.shape.len());
        let elements: u64 = pair.shape[outer..].iter().product();
        for side in [&mut a, &mut b] {
            if !side.record {
                side.step = elements * side.ty.size();
            }
        }
        let found = ValueDifferences {
            variable: pair.name.clone(),
            compared: 0,
            differing: 0,
            max_abs: None,
            max_rel: None,
            first: Vec::new(),
        };
        Ok(Tally { pair, a, b, elements, closeness, most, found })
    }

    fn both_records(&self) -> bool {
        self.a.record && self.b.record
    }

    /// How many steps there are.
    fn outer(&self) -> u64 {
        match self.a.record || self.b.record {
            true => self.pair.shape.first().copied().unwrap_or(0),
            false => 1,
        }
    }

    fn bytes(&self) -> u64 {
        self.elements * self.a.ty.size() * self.outer()
    }

    /// Counts step number `outer` as the same, which it is known to be; gives its bytes in the first file.
    fn pass_over(&mut self, outer: u64, values: &mut u64) -> u64 {
        if outer >= self.outer() {
            return 0;
        }
        self.found.compared += self.elements;
        *values += self.elements;
        self.elements * self.a.ty.size()
    }

    /// Compares step number `outer`; gives the bytes of the first file that were read.
    fn step(&mut self, a: &mut Source, b: &mut Source, outer: u64) -> Result<u64, DiffError> {
        if outer >= self.outer() {
            return Ok(0);
        }
        let first = outer * self.elements;
        // Equally many elements of both at a time, whatever their sizes.
        let widest = self.a.ty.size().max(self.b.ty.size());
        let most = BLOCK.min(a.longest()).min(b.longest()) / widest;
        let mut element = 0;
        while element < self.elements {
            let count = most.min(self.elements - element);
            let at = |side: Side| side.begin + outer * side.step + element * side.ty.size();
            let (x, y) = (self.a, self.b);
            let x = a.bytes(x.var, at(x), count * x.ty.size(), x.ahead)?;
            let y = b.bytes(y.var, at(y), count * y.ty.size(), y.ahead)?;
            self.block(first + element, x, y);
            element += count;
        }
        Ok(self.elements * self.a.ty.size())
    }

    /// Compares elements from number `first` on, as they stand in the files.
    pub(super) fn block(&mut self, first: u64, x: &[u8], y: &[u8]) {
        let (m, n) = (self.a.ty.size() as usize, self.b.ty.size() as usize);
        self.found.compared += (x.len() / m) as u64;
        let real = matches!(self.a.ty, ExternalType::Float | ExternalType::Double);
        let may_skip = self.closeness.bytes_suffice() || !real;
        if self.a.ty == self.b.ty && may_skip && x == y {
            return;
        }
        let (mut x, mut y) = (x.to_vec(), y.to_vec());
        swap_in_place(&mut x, m);
        swap_in_place(&mut y, n);
        let (tx, ty) = (self.a.ty.natural(), self.b.ty.natural());
        let elements = x.chunks_exact(m).zip(y.chunks_exact(n));
        for (place, (x, y)) in elements.enumerate() {
            if self.a.ty == self.b.ty && may_skip && x == y {
                continue;
            }
            if let (Some(x), Some(y)) = (Scalar::read(tx, x), Scalar::read(ty, y)) {
                self.value(first + place as u64, x, y);
            }
        }
    }

    fn value(&mut self, element: u64, first: Scalar, second: Scalar) {
        let Some(apart) = self.closeness.compare(first, second) else { return };
        let found = &mut self.found;
        found.differing += 1;
        let larger = |most: Option<f64>, new: Option<f64>| match (most, new) {
            (Some(most), Some(new)) => Some(most.max(new)),
            (most, new) => most.or(new),
        };
        found.max_abs = larger(found.max_abs, apart.abs);
        found.max_rel = larger(found.max_rel, apart.rel);
        if found.first.len() < self.most {
            let index = index(&self.pair.shape, element);
            let variable = self.pair.name.clone();
            found.first.push(ValuePair { variable, index, first, second });
        }
    }
}

/// The index of element number `element` of an array.
fn index(shape: &[u64], mut element: u64) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (index, len) in index.iter_mut().zip(shape).rev() {
        *index = element % len.max(&1);
        element /= len.max(&1);
    }
    index
}

fn side(source: &Source, var: VarId) -> Result<Side, DiffError> {
    let variable = source.dataset.variable(var)?;
    let header = source.header();
    let begin = header.place(var).map_or(0, |p| p.begin);
    let record = header.schema.is_record(variable);
    let step = if record { header.layout.record_size } else { 0 };
    let bytes = header.place(var).map_or(0, |p| p.bytes);
    // Small variables mostly have neighbours that are wanted next.
    let ahead = bytes.max(CLOSE);
    Ok(Side { var, ty: variable.ty, begin, step, record, ahead })
}

/// Reads whole records of a file ahead of those who compare them, where that pays: records
/// that fit the window, small or mostly wanted.
struct Records {
    begin: u64,
    size: u64,
    batch: Option<u64>,
}

impl Records {
    /// `wanted` is the number of bytes of each record that are compared.
    fn new(source: &Source, wanted: u64) -> Records {
        let layout = &source.header().layout;
        let (begin, size) = (layout.record_begin.unwrap_or(0), layout.record_size.max(1));
        let pays = size <= CLOSE || wanted.saturating_mul(4) >= size;
        let batch = (pays && size <= source.longest()).then(|| source.longest() / size);
        Records { begin, size, batch }
    }

    fn fetch(&self, source: &mut Source, record: u64, records: u64) -> Result<(), DiffError> {
        let offset = self.begin + record * self.size;
        if let Some(batch) = self.batch
            && !source.holds(offset, self.size)
        {
            source.fetch(offset, batch.min(records - record) * self.size)?;
        }
        Ok(())
    }
}
