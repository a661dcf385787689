//! A field level by level: each level predicted from what a reader has of the coarser one.
//!
//! The coarsest level is coded whole, as a chunk is. Of a finer one, the points with even
//! coordinates are known already or can be guessed from the coarser level, and all others are the
//! last level of the same interpolation. Fields of more than four dimensions are slabs of four.

use super::entropy::{Codes, Decoder};
use super::grid::{BANDS, CONTEXTS, Grid, Visit, walk, walk_even, walk_level};
use super::quantise::{Layered, Quantiser, Rebuilder, Scale, TAPER, stand_in};
use super::rules::{self, Rules};
use crate::error::Result;
use crate::filters::{pco_pack, pco_unpack};
use crate::fold::fold;
use crate::reader::{Reader, put_varint};
use crate::real::Number;
use crate::special::{Specials, get_bits, put_bits};

/// What is there before a level is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing: the coarsest level.
    Nothing,
    /// The points with even coordinates are in the field, as a reader has them.
    Known,
    /// Guesses of them are.
    Guessed,
}

/// A level's points in the order in which they are coded.
#[derive(Debug, Clone)]
pub(crate) struct Lattice {
    start: Start,
    /// Lengths of the dimensions before the last four of those that are longer than 1.
    lead: Vec<usize>,
    grid: Grid,
    /// Where there are levels within, so many have rules of their own.
    bands: usize,
    /// How many levels of the patch are finer.
    finer: usize,
}

/// Coarsest levels with fewer elements have one set of rules.
const SEVERAL_BANDS: usize = 4096;

/// Contexts of codes; the coarsest level has those of a chunk.
const MAPPED: usize = CONTEXTS * BANDS;

impl Lattice {
    pub(crate) fn new(shape: &[usize], start: Start, finer: usize) -> Lattice {
        let long: Vec<usize> = shape.iter().copied().filter(|&len| len != 1).collect();
        let lead = match start {
            Start::Nothing => &[],
            _ => &long[..long.len().saturating_sub(4)],
        };
        let grid = Grid::new(fold(&long[lead.len()..]));
        let elements: usize = grid.len.iter().product();
        let bands = if start == Start::Nothing && elements >= SEVERAL_BANDS { BANDS } else { 1 };
        Lattice { start, lead: lead.to_vec(), grid, bands, finer }
    }

    fn slab(&self) -> usize {
        self.grid.len.iter().product()
    }

    fn walk<T: Number>(&self, rules: &Rules, field: &mut Field<T>, visit: &mut impl Visit<T>) {
        let Field { values, sizes } = field;
        if self.start == Start::Nothing {
            walk(&self.grid, rules, self.bands, values, sizes, visit);
            return;
        }
        visit.level(1);
        let slab = self.slab();
        let slabs: usize = self.lead.iter().product();
        for number in 0..slabs {
            visit.begin(number * slab);
            let (before, values) = values.split_at_mut(number * slab);
            let values = &mut values[..slab];
            let sizes = &mut sizes[number * slab..][..slab];
            match self.back(number) {
                // A slab between known ones begins with what the one before it has.
                Some(back) => {
                    let before = &before[(number - back) * slab..];
                    walk_even(&self.grid, values, sizes, |at, _| before[at].wide(), visit);
                }
                None if self.start == Start::Guessed => {
                    walk_even(&self.grid, values, sizes, |_, guess| guess.wide(), visit);
                }
                None => {}
            }
            walk_level(&self.grid, &rules[0], 1, 0, values, sizes, visit);
            if visit.failed() {
                return;
            }
        }
    }

    /// How many slabs back the one lies that a slab with an odd coordinate begins with.
    fn back(&self, mut number: usize) -> Option<usize> {
        let (mut stride, mut back) = (1, None);
        for &len in self.lead.iter().rev() {
            if number % len % 2 == 1 {
                back = Some(stride);
            }
            number /= len;
            stride *= len;
        }
        back
    }

    fn choose<T: Number>(&self, target: &Target<'_, T>, bound: f64) -> Rules {
        let values = &target.values[..self.slab()];
        rules::choose(&self.grid, self.bands, values, target.specials, bound)
    }
}

/// A level as a reader has it while it is coded, and the sizes of its codes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Field<T> {
    pub(crate) values: Vec<T>,
    pub(crate) sizes: Vec<u8>,
}

/// A level as it should be.
pub(crate) struct Target<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) specials: &'a Specials,
    pub(crate) fills: &'a [u64],
}

/// What the layers of a level have in common.
#[derive(Debug, Default)]
pub(crate) struct Layers<T> {
    /// The layer before, and its bound.
    pub(crate) earlier: Option<(Vec<T>, f64)>,
    /// Elements that an earlier layer stored exactly.
    exact: Vec<bool>,
    rules: Option<Rules>,
}

impl<T: Number> Layers<T> {
    fn prior(&mut self, elements: usize) -> (Layered<'_, T>, &Option<Rules>) {
        self.exact.resize(elements, false);
        let earlier = self.earlier.as_ref().map(|(values, bound)| (values.as_slice(), *bound));
        (Layered { earlier, exact: &mut self.exact, half: 0.0 }, &self.rules)
    }
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    codes: Codes,
    literals: Vec<u64>,
}

/// Rules follow.
const RULES: u8 = 1;
/// Codes follow; else every point is as predicted.
const CODES: u8 = 2;

/// Rules of their own cost some bytes, so layers on few points have those of the layer before.
const RULES_FOR: usize = 16 << 10;

/// Appends a layer of a level within `bound`. `field` holds what there is at the start, and then the level as a reader
/// has it. `false`, and what is appended and in the field is of no use, when many elements would be stored
/// as they are.
pub(crate) fn encode<T: Number>(
    lattice: &Lattice,
    target: &Target<'_, T>,
    bound: f64,
    field: &mut Field<T>,
    layers: &mut Layers<T>,
    buffers: &mut Buffers,
    out: &mut Vec<u8>,
) -> bool {
    let Buffers { codes, literals } = buffers;
    codes.clear();
    literals.clear();
    let elements = target.values.len();
    let first = layers.rules.is_none();
    let even = first && is_constant(target);
    if !even && (first || elements >= RULES_FOR) {
        layers.rules = Some(lattice.choose(target, bound));
    } else if first {
        layers.rules = Some(rules::even());
    }
    let (prior, known) = layers.prior(elements);
    let rules = known.unwrap_or_else(rules::even);
    let &Target { values, specials, fills } = target;
    let scale = Scale::new(bound, TAPER, lattice.finer);
    let mut quantiser =
        Quantiser { values, specials, fills, scale, prior, codes, literals, begin: 0 };
    lattice.walk(&rules, field, &mut quantiser);

    let own = !even && (first || elements >= RULES_FOR);
    let any = codes.tokens.iter().any(|&(_, token)| token != 0);
    out.push(if own { RULES } else { 0 } | if any { CODES } else { 0 });
    if own {
        rules::write(&rules, lattice.bands, &lattice.grid, out);
    }
    if any {
        put_varint(out, literals.len() as u64);
        literals.iter().for_each(|&bits| put_bits::<T>(out, bits));
        codes.write_short(MAPPED, out);
    }
    literals.len() <= elements / 4 + 8
}

fn is_constant<T: Number>(target: &Target<'_, T>) -> bool {
    let ordinary = |(i, _): &(usize, &T)| !target.specials.is(*i);
    let mut values = target.values.iter().enumerate().filter(ordinary).map(|(_, x)| x);
    let first = values.next();
    values.all(|x| Some(x) == first)
}

/// Rebuilds a layer of a level in `field`, which holds what there is at the start.
pub(crate) fn decode<T: Number>(
    lattice: &Lattice,
    reader: &mut Reader<'_>,
    specials: &Specials,
    bound: f64,
    field: &mut Field<T>,
    layers: &mut Layers<T>,
    buffers: &mut Buffers,
) -> Result<()> {
    let elements = field.values.len();
    let (rules, coded) = read_rules(lattice, reader, layers)?;
    let literals = &mut buffers.literals;
    literals.clear();
    let mut zeros = Reader::new("patch", &ZEROS);
    let codes = if coded {
        for _ in 0..reader.count(elements, "literals")? {
            literals.push(get_bits::<T>(reader)?);
        }
        Decoder::short(reader, MAPPED)?
    } else {
        reader.end()?;
        Decoder::short(&mut zeros, MAPPED)?
    };
    let (prior, _) = layers.prior(elements);
    let scale = Scale::new(bound, TAPER, lattice.finer);
    let literals = literals.iter();
    let mut rebuilder =
        Rebuilder { specials, scale, prior, codes, literals, missing: false, begin: 0 };
    lattice.walk(&rules, field, &mut rebuilder);
    if !rebuilder.ended_well() {
        return Err(reader.damaged("the codes do not end where the level does"));
    }
    Ok(())
}

/// Codes that are all zero: one table with one token, no extra bits, the state that never changes.
const ZEROS: [u8; 13] = [1, 1, 0x80, 0x20, 0, 0, 0, 0, 0x80, 0, 0, 0, 0];

/// The rules at hand or the stream's own, and whether codes follow.
fn read_rules<T>(
    lattice: &Lattice,
    reader: &mut Reader<'_>,
    layers: &mut Layers<T>,
) -> Result<(Rules, bool)> {
    let flags = reader.byte()?;
    if flags & !(RULES | CODES) != 0 {
        return Err(reader.damaged(format!("there are no flags {flags}")));
    }
    if flags & RULES != 0 {
        layers.rules = Some(rules::read(reader, lattice.bands, &lattice.grid)?);
    }
    Ok((layers.rules.unwrap_or_else(rules::even), flags & CODES != 0))
}

/// Collects the distances of exact values from predictions.
struct Distances<'a, T: Number> {
    values: &'a [T],
    specials: &'a Specials,
    distances: Vec<T::Code>,
    begin: usize,
}

impl<T: Number> Visit<T> for Distances<'_, T> {
    fn level(&mut self, _level: usize) {}

    fn begin(&mut self, element: usize) {
        self.begin = element;
    }

    #[inline(always)]
    fn point(&mut self, index: usize, predicted: f64, _context: usize) -> (T, u8) {
        let element = self.begin + index;
        let predicted = stand_in(predicted);
        if self.specials.is(element) {
            return (predicted, 0);
        }
        let value = self.values[element];
        let distance = value.difference(predicted);
        self.distances.push(distance);
        (value, T::size_of_distance(distance))
    }
}

/// Brings values back from distances.
struct Returns<'a, T: Number> {
    specials: &'a Specials,
    distances: std::slice::Iter<'a, T::Code>,
    missing: bool,
    begin: usize,
}

impl<T: Number> Visit<T> for Returns<'_, T> {
    fn level(&mut self, _level: usize) {}

    fn begin(&mut self, element: usize) {
        self.begin = element;
    }

    #[inline(always)]
    fn point(&mut self, index: usize, predicted: f64, _context: usize) -> (T, u8) {
        let predicted = stand_in(predicted);
        if self.specials.is(self.begin + index) {
            return (predicted, 0);
        }
        match self.distances.next() {
            Some(&distance) => (T::at_distance(predicted, distance), T::size_of_distance(distance)),
            None => {
                self.missing = true;
                (predicted, 0)
            }
        }
    }

    fn failed(&self) -> bool {
        self.missing
    }
}

/// Appends a level without loss: distances from predictions, packed by pco at `effort`.
pub(crate) fn encode_exact<T: Number>(
    lattice: &Lattice,
    target: &Target<'_, T>,
    effort: usize,
    field: &mut Field<T>,
    out: &mut Vec<u8>,
) -> Result<()> {
    // Rules are chosen as if the least difference that such numbers have were the bound.
    let ordinary = target.values.iter().enumerate().filter(|(i, _)| !target.specials.is(*i));
    let largest = ordinary.map(|(_, x)| x.wide().abs()).fold(0.0, f64::max);
    let least = (T::narrow(1.5).wide() - 1.5).abs().max(largest * 2f64.powi(-26));
    let rules = lattice.choose(target, least.max(1e-300));
    let distances = Vec::with_capacity(target.values.len());
    let mut visit =
        Distances { values: target.values, specials: target.specials, distances, begin: 0 };
    lattice.walk(&rules, field, &mut visit);
    let distances = visit.distances;
    let any = distances.iter().any(|distance| *distance != T::Code::default());
    out.push(RULES | if any { CODES } else { 0 });
    rules::write(&rules, lattice.bands, &lattice.grid, out);
    if any {
        put_varint(out, distances.len() as u64);
        pco_pack(&distances, effort, out)?;
    }
    Ok(())
}

/// Rebuilds a level of which nothing was lost.
pub(crate) fn decode_exact<T: Number>(
    lattice: &Lattice,
    reader: &mut Reader<'_>,
    specials: &Specials,
    field: &mut Field<T>,
    layers: &mut Layers<T>,
) -> Result<()> {
    let (rules, coded) = read_rules(lattice, reader, layers)?;
    let elements = field.values.len();
    let mut distances = vec![T::Code::default(); elements];
    if coded {
        let count = reader.count(elements, "distances")?;
        distances.truncate(count);
        pco_unpack(reader.take(reader.left())?, &mut distances)?;
    } else {
        reader.end()?;
    }
    let mut visit = Returns { specials, distances: distances.iter(), missing: false, begin: 0 };
    lattice.walk(&rules, field, &mut visit);
    if visit.missing || (coded && visit.distances.len() > 0) {
        return Err(reader.damaged("the distances do not end where the level does"));
    }
    layers.exact.resize(elements, false);
    layers.exact.fill(true);
    Ok(())
}
