//! Types that CDF-1 and CDF-2 lack: the smallest type that holds the values instead.
//!
//! All of them are integers. A value that is the variable's fill value stays one: it becomes
//! the fill value of the new type where the old one does not fit.

use std::path::Path;

use esker::values::{ConversionRules, default_fill, encode, fill_value};
use esker::{Attribute, Dataset, ExternalType, Scalar, Values, Variable, Version};
use esker_format::ConvertError;

use super::arrays::selected;
use super::choose::{Kept, Plan};
use super::error::tell;
use super::{CopyError, CopyOptions};
use crate::boxes::{boxes, unit};
use crate::progress::Progress;
use crate::source::Source;

/// Bytes converted at a time, so that wider types do not need much more memory.
pub(super) const CHUNK: u64 = 64 << 10;

/// The types to try, smallest first. Every integer up to 2^53 is exact in a double.
const CANDIDATES: [ExternalType; 4] =
    [ExternalType::Byte, ExternalType::Short, ExternalType::Int, ExternalType::Double];

/// A change of type, and of fill value with it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refill {
    from: ExternalType,
    to: ExternalType,
    /// Both as they stand in the file.
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Refill {
    /// The new type.
    pub(super) fn target(&self) -> ExternalType {
        self.to
    }

    /// Converts `bytes` into `out`, both as they stand in files.
    pub(super) fn apply(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let width = self.from.size() as usize;
        let count = bytes.len() / width;
        out.clear();
        out.resize(count * self.to.size() as usize, 0);
        let values = Values::decode(self.from, count, bytes)
            .unwrap_or_else(|| Values::zeros(self.from, count));
        let rules = ConversionRules::default();
        let memory = self.from.natural();
        // What does not fit is the fill value: everything else was looked at before.
        let report = encode(memory, values.native_bytes(), self.to, out, &self.new, rules)?;
        let mut fills = 0;
        let slots = out.chunks_exact_mut(self.to.size() as usize);
        for (value, slot) in bytes.chunks_exact(width).zip(slots) {
            if value == self.old {
                slot.copy_from_slice(&self.new);
                fills += 1;
            }
        }
        // Only when somebody writes to the input while it is copied.
        if report.out_of_range > fills {
            return Err(ConvertError::OutOfRange(report));
        }
        Ok(())
    }
}

/// The values of something: smallest, largest, and one that no double holds.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    bounds: Option<(i128, i128)>,
    inexact: Option<i128>,
}

impl Extent {
    fn add(&mut self, value: i128) {
        let (min, max) = self.bounds.unwrap_or((value, value));
        self.bounds = Some((min.min(value), max.max(value)));
        if self.inexact.is_none() && !holds(ExternalType::Double, value) {
            self.inexact = Some(value);
        }
    }

    /// Whether every value is exact in `ty`.
    fn fits(&self, ty: ExternalType) -> bool {
        let all = self.bounds.is_none_or(|(min, max)| holds(ty, min) && holds(ty, max));
        all && (ty != ExternalType::Double || self.inexact.is_none())
    }

    fn contains(&self, value: i128) -> bool {
        self.bounds.is_some_and(|(min, max)| (min..=max).contains(&value))
    }
}

fn holds(ty: ExternalType, value: i128) -> bool {
    let between = |min: i128, max: i128| (min..=max).contains(&value);
    match ty {
        ExternalType::Byte => between(i8::MIN.into(), i8::MAX.into()),
        ExternalType::Short => between(i16::MIN.into(), i16::MAX.into()),
        ExternalType::Int => between(i32::MIN.into(), i32::MAX.into()),
        ExternalType::Double => (value as f64) as i128 == value,
        _ => false,
    }
}

fn integer(scalar: Option<Scalar>) -> Option<i128> {
    match scalar? {
        Scalar::I(x) => Some(x.into()),
        Scalar::U(x) => Some(x.into()),
        Scalar::F64(x) => Some(x as i128),
        Scalar::F32(x) => Some(x as i128),
        Scalar::Char(_) => None,
    }
}

fn integers(values: &Values) -> impl Iterator<Item = i128> {
    (0..values.len()).filter_map(|i| integer(values.get(i)))
}

/// These integers as values of `ty`, which holds them.
fn make(ty: ExternalType, list: impl Iterator<Item = i128>) -> Values {
    match ty {
        ExternalType::Byte => Values::Byte(list.map(|x| x as i8).collect()),
        ExternalType::Short => Values::Short(list.map(|x| x as i16).collect()),
        ExternalType::Int => Values::Int(list.map(|x| x as i32).collect()),
        _ => Values::Double(list.map(|x| x as f64).collect()),
    }
}

/// How the input is read.
pub(super) enum Reader<'a> {
    /// Through a window on its file.
    Window(&'a mut Source),
    /// By its arrays.
    Arrays(&'a Dataset),
}

impl Reader<'_> {
    fn path(&self) -> &Path {
        match self {
            Reader::Window(source) => source.dataset.path(),
            Reader::Arrays(dataset) => dataset.path(),
        }
    }
}

/// Gives every variable and attribute of the plan a type of the output's version; gives the
/// number of bytes that had to be looked at for it.
pub(super) fn settle_types(
    source: &mut Reader<'_>,
    plan: &mut Plan,
    options: &CopyOptions,
    progress: &mut dyn Progress,
) -> Result<u64, CopyError> {
    let version = plan.schema.version;
    let path = source.path().to_path_buf();
    let lacks = |ty: ExternalType| !version.has_type(ty);
    if !options.convert_types {
        return match first_lacking(plan) {
            None => Ok(0),
            Some((object, ty)) => Err(CopyError::Type { path, object, ty, version }),
        };
    }
    let wanted: Vec<usize> = (0..plan.vars.len()).filter(|i| lacks(plan.vars[*i].ty)).collect();
    let (extents, scanned) = match source {
        Reader::Window(source) => scan(source, plan, &wanted, progress)?,
        Reader::Arrays(dataset) => scan_arrays(dataset, plan, &wanted)?,
    };
    let inexact = |object: String, ty, value| CopyError::Value {
        path: path.clone(),
        object,
        ty,
        value,
        version,
    };
    for (number, extent) in wanted.into_iter().zip(extents) {
        let Some(var) = plan.schema.vars.at_mut(number) else { continue };
        let refill = choose(var, &extent).ok_or_else(|| {
            let value = extent.inexact.or(extent.bounds.map(|b| b.1)).unwrap_or(0);
            inexact(format!("variable \"{}\"", var.name), var.ty, value)
        })?;
        plan.vars[number].refill = Some(refill);
    }
    for var in 0..plan.schema.vars.len() {
        let Some(var) = plan.schema.vars.at_mut(var) else { continue };
        let (name, ty) = (var.name.clone(), var.ty);
        convert_attrs(&mut var.attrs, ty, version)
            .map_err(|(attr, ty, value)| inexact(of_variable(&attr, &name), ty, value))?;
    }
    convert_attrs(&mut plan.schema.attrs, ExternalType::Byte, version)
        .map_err(|(attr, ty, value)| inexact(format!("attribute \"{attr}\""), ty, value))?;
    Ok(scanned)
}

fn of_variable(attr: &str, var: &str) -> String {
    format!("attribute \"{attr}\" of variable \"{var}\"")
}

/// The first variable or attribute whose type the version lacks.
fn first_lacking(plan: &Plan) -> Option<(String, ExternalType)> {
    let version: Version = plan.schema.version;
    let lacks = |ty: ExternalType| !version.has_type(ty);
    for var in &plan.schema.vars {
        if lacks(var.ty) {
            return Some((format!("variable \"{}\"", var.name), var.ty));
        }
    }
    let global = plan.schema.attrs.iter().map(|a| (format!("attribute \"{}\"", a.name), a));
    let of_vars = plan
        .schema
        .vars
        .iter()
        .flat_map(|var| var.attrs.iter().map(|a| (of_variable(&a.name, &var.name), a)));
    let mut attrs = global.chain(of_vars).map(|(object, a)| (object, a.values.ty()));
    attrs.find(|(_, ty)| lacks(*ty))
}

/// Looks at all values of the variables `wanted` but for fill values.
fn scan(
    source: &mut Source,
    plan: &Plan,
    wanted: &[usize],
    progress: &mut dyn Progress,
) -> Result<(Vec<Extent>, u64), CopyError> {
    let mut extents = vec![Extent::default(); wanted.len()];
    let range = plan.record_range;
    let size_of = |kept: &Kept| match kept.from_record {
        true => kept.runs.bytes().saturating_mul(range.count),
        false => kept.runs.bytes(),
    };
    let copied: u64 = plan.vars.iter().map(size_of).sum();
    let mut scanned = 0;
    let total = copied + wanted.iter().map(|i| size_of(&plan.vars[*i])).sum::<u64>();
    let layout = source.header().layout.clone();
    let ahead = if layout.record_size <= CHUNK { source.longest() } else { 0 };
    let of = |records: bool| {
        let places = wanted.iter().enumerate();
        places.filter(move |(_, number)| plan.vars[**number].from_record == records)
    };
    let mut look = |place: usize, number: usize, record: u64, ahead: u64| {
        let kept = &plan.vars[number];
        let fill = plan.schema.vars.at(number).map(fill_value);
        let fill = fill.and_then(|f| integer(f.get(0)));
        let begin = layout.places.get(kept.from.0).map_or(0, |p| p.begin) + record;
        let ahead = ahead.max(kept.runs.ahead());
        let most = CHUNK.min(source.longest());
        kept.runs.try_each(most, |offset, len| {
            let bytes = source.bytes(kept.from, begin + offset, len, ahead)?;
            let count = (len / kept.ty.size()) as usize;
            let values = Values::decode(kept.ty, count, bytes);
            let found = values.iter().flat_map(integers).filter(|x| Some(*x) != fill);
            found.for_each(|x| extents[place].add(x));
            scanned += len;
            Ok::<(), CopyError>(())
        })?;
        tell(progress, scanned, total)
    };
    for (place, number) in of(false) {
        look(place, *number, 0, 0)?;
    }
    if of(true).next().is_some() {
        for record in 0..range.count {
            let offset = (range.start + record * range.stride) * layout.record_size;
            for (place, number) in of(true) {
                look(place, *number, offset, ahead)?;
            }
        }
    }
    Ok((extents, scanned))
}

/// The same, by arrays.
fn scan_arrays(
    source: &Dataset,
    plan: &Plan,
    wanted: &[usize],
) -> Result<(Vec<Extent>, u64), CopyError> {
    let mut extents = vec![Extent::default(); wanted.len()];
    let mut scanned = 0;
    for (extent, number) in extents.iter_mut().zip(wanted) {
        let kept = &plan.vars[*number];
        let fill = plan.schema.vars.at(*number).map(fill_value);
        let fill = fill.and_then(|f| integer(f.get(0)));
        let shape: Vec<u64> = kept.along.iter().map(|along| along.count).collect();
        let chunk = source.chunk_shape(kept.from).map(<[u64]>::to_vec);
        let most = CHUNK / kept.ty.size();
        let unit = unit(&shape, chunk.as_deref(), None, most);
        for block in boxes(&shape, &unit, most) {
            let values = source.get_values(kept.from, &selected(kept, &block))?;
            integers(&values).filter(|x| Some(*x) != fill).for_each(|x| extent.add(x));
            scanned += block.len() * kept.ty.size();
        }
    }
    Ok((extents, scanned))
}

/// Gives the variable the smallest type that holds its values and has a fill value that is
/// none of them.
fn choose(var: &mut Variable, extent: &Extent) -> Option<Refill> {
    let from = var.ty;
    let old = fill_value(var);
    let old_number = integer(old.get(0))?;
    let own = var.attrs.get("_FillValue").is_some_and(|a| a.values == old);
    let candidates = CANDIDATES.into_iter().filter(|ty| match extent.bounds {
        Some(_) => extent.fits(*ty),
        // Nothing is known of values to come: the next larger type, or the largest integer.
        None if from == ExternalType::UByte => *ty == ExternalType::Short,
        None => *ty == ExternalType::Int,
    });
    for to in candidates {
        let new = match own && holds(to, old_number) {
            true => make(to, std::iter::once(old_number)),
            false => default_fill(to),
        };
        let number = integer(new.get(0))?;
        if number != old_number && extent.contains(number) {
            continue;
        }
        var.ty = to;
        let (old, new_bytes) = (old.external_bytes(), new.external_bytes());
        if own && let Some(place) = var.attrs.position("_FillValue") {
            let name = "_FillValue".into();
            var.attrs.replace(place, Attribute { name, values: new });
        }
        return Some(Refill { from, to, old, new: new_bytes });
    }
    None
}

/// Gives attributes a type of `version`: `preferred` where that holds them.
fn convert_attrs(
    attrs: &mut esker_format::NamedList<Attribute>,
    preferred: ExternalType,
    version: Version,
) -> Result<(), (String, ExternalType, i128)> {
    for place in 0..attrs.len() {
        let Some(attr) = attrs.at(place) else { continue };
        let ty = attr.values.ty();
        if version.has_type(ty) {
            continue;
        }
        let mut extent = Extent::default();
        integers(&attr.values).for_each(|x| extent.add(x));
        let mut types = std::iter::once(preferred).chain(CANDIDATES);
        let to = types.find(|ty| CANDIDATES.contains(ty) && extent.fits(*ty));
        let to = to.ok_or_else(|| (attr.name.to_string(), ty, extent.inexact.unwrap_or(0)))?;
        let values = make(to, integers(&attr.values));
        let name = attr.name.clone();
        attrs.replace(place, Attribute { name, values });
    }
    Ok(())
}
