//! What the values of a variable are like: smallest, largest, mean, how many are missing.
//!
//! Values are read in blocks of a few megabytes, so memory is bounded whatever the file's
//! size. Integers are summed exactly, reals with a running correction (Neumaier), so that the
//! mean of a billion values is as good as the values are.
//!
//! A value is *missing* when it equals the variable's `_FillValue`, one of its
//! `missing_value`s, or, without a `_FillValue`, the default fill value of its type (which
//! bytes do not have: all of their values are in use). Missing values and NaN count for
//! nothing else. Packed data (`scale_factor`, `add_offset`) are taken as they are stored.

mod tally;

use esker::values::fill_value;
use esker::{Char, ExternalType, Native, Scalar, VarId};
use esker::{Dataset, Selection};

use crate::blocks::blocks;
use crate::progress::Progress;
use tally::{Tally, missing_values};

/// Bytes of one read. Large enough that a read's overhead vanishes, small beside any memory.
const BLOCK_BYTES: u64 = 4 << 20;

/// What the values of one variable are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// How many values there are.
    pub count: u64,
    /// How many of them are missing: fill values and missing values.
    pub missing: u64,
    /// How many are NaN without being the fill value.
    pub nan: u64,
    /// The smallest number; none for text, or when nothing is there.
    pub min: Option<Scalar>,
    /// The largest number.
    pub max: Option<Scalar>,
    /// The mean of the numbers.
    pub mean: Option<f64>,
}

/// The statistics of these variables, in their order.
///
/// Reads each of them whole, in blocks; `progress` hears of bytes. A variable that cannot be
/// read (the file was cut short) does not keep the others from being read.
pub fn statistics(
    dataset: &Dataset,
    vars: &[VarId],
    progress: &mut dyn Progress,
) -> Vec<esker::Result<Statistics>> {
    let bytes = |var: &VarId| {
        let size = dataset.schema().variable(*var).map_or(0, |v| v.ty.size());
        dataset.shape(*var).map_or(0, |s| s.iter().fold(size, |n, len| n.saturating_mul(*len)))
    };
    let total = vars.iter().map(bytes).fold(0, u64::saturating_add);
    let mut done = 0u64;
    let mut all = Vec::with_capacity(vars.len());
    for var in vars {
        let mut advance = |bytes: u64| {
            done = done.saturating_add(bytes);
            progress.progress(done, total);
        };
        all.push(of_variable(dataset, *var, &mut advance));
    }
    all
}

fn of_variable(
    dataset: &Dataset,
    var: VarId,
    advance: &mut dyn FnMut(u64),
) -> esker::Result<Statistics> {
    match dataset.variable(var)?.ty {
        ExternalType::Byte => numbers::<i8>(dataset, var, advance),
        ExternalType::Char => text(dataset, var, advance),
        ExternalType::Short => numbers::<i16>(dataset, var, advance),
        ExternalType::Int => numbers::<i32>(dataset, var, advance),
        ExternalType::Float => numbers::<f32>(dataset, var, advance),
        ExternalType::Double => numbers::<f64>(dataset, var, advance),
        ExternalType::UByte => numbers::<u8>(dataset, var, advance),
        ExternalType::UShort => numbers::<u16>(dataset, var, advance),
        ExternalType::UInt => numbers::<u32>(dataset, var, advance),
        ExternalType::Int64 => numbers::<i64>(dataset, var, advance),
        ExternalType::UInt64 => numbers::<u64>(dataset, var, advance),
    }
}

fn numbers<T: tally::Number>(
    dataset: &Dataset,
    var: VarId,
    advance: &mut dyn FnMut(u64),
) -> esker::Result<Statistics> {
    let missing = missing_values::<T>(dataset.variable(var)?);
    let mut tally = Tally::new(missing);
    each_block::<T>(dataset, var, advance, &mut |list| tally.add(list))?;
    Ok(tally.finish())
}

/// Text has no order that means anything, but it has a fill value: zero, unless told.
fn text(dataset: &Dataset, var: VarId, advance: &mut dyn FnMut(u64)) -> esker::Result<Statistics> {
    let fill = fill_value(dataset.variable(var)?);
    let fill = fill.as_slice::<Char>().and_then(|list| list.first().copied());
    let mut found = Statistics { count: 0, missing: 0, nan: 0, min: None, max: None, mean: None };
    each_block::<Char>(dataset, var, advance, &mut |list| {
        found.count += list.len() as u64;
        found.missing += list.iter().filter(|c| Some(**c) == fill).count() as u64;
    })?;
    Ok(found)
}

fn each_block<T: Native>(
    dataset: &Dataset,
    var: VarId,
    advance: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(&[T]),
) -> esker::Result<()> {
    let size = size_of::<T>() as u64;
    let mut buffer: Vec<T> = Vec::new();
    for block in blocks(&dataset.shape(var)?, BLOCK_BYTES / size) {
        let len = block.len() as usize;
        buffer.resize(len, T::zeroed());
        dataset.get_into(var, &Selection::slab(&block.start, &block.count), &mut buffer)?;
        take(&buffer);
        advance(len as u64 * size);
    }
    Ok(())
}
