//! The data section.

use esker_format::values::fill_value;
use esker_format::{ExternalType, Schema, Values, VarId, Variable};

use super::blocks::Blocks;
use super::cformat::{CFormat, Number, put_plain};
use super::header::put_special;
use super::lines::Lines;
use super::rows::Rows;
use super::text::{c_name, put_name, put_row_byte};
use super::{DumpOptions, Precision, PrintError};
use crate::cdl::fill::{each_values, own_fill};
use crate::cdl::source::CdlSource;
use crate::cdl::time::{TimeTable, TimeUnits};

pub(super) fn put(
    lines: &mut Lines<'_>,
    source: &dyn CdlSource,
    options: &DumpOptions,
    wanted: &[VarId],
    precision: Precision,
    times: Option<&TimeTable>,
) -> Result<(), PrintError> {
    let schema = source.schema();
    if !schema.vars.is_empty() {
        lines.raw(b"data:\n");
    }
    for (id, var) in schema.vars.iter().enumerate() {
        let id = VarId(id);
        if !wanted.is_empty() && !wanted.contains(&id) {
            continue;
        }
        if options.coordinates_only && !is_coordinate(schema, var) {
            continue;
        }
        let shape = schema.shape(var, source.numrecs());
        if shape.contains(&0) {
            continue;
        }
        let style = Style::new(var, id, options, precision, times);
        put_variable(lines, source, options, id, var, &shape, &style)?;
    }
    Ok(())
}

/// Whether the variable has one dimension, and some dimension has its name.
pub(super) fn is_coordinate(schema: &Schema, var: &Variable) -> bool {
    var.dims.len() == 1 && schema.dims.iter().any(|d| c_name(&d.name) == c_name(&var.name))
}

/// How the values of one variable look.
struct Style<'a> {
    /// What `_` stands for. Bytes have one only if they say so: as defaults their fill values
    /// are too likely to be data.
    fill: Option<Values>,
    format: Option<CFormat>,
    /// Characters are strings unless a format says otherwise.
    text: bool,
    digits: usize,
    time: Option<(&'a TimeTable, &'a TimeUnits)>,
}

impl<'a> Style<'a> {
    fn new(
        var: &Variable,
        id: VarId,
        options: &DumpOptions,
        precision: Precision,
        times: Option<&'a TimeTable>,
    ) -> Style<'a> {
        let bytes = matches!(var.ty, ExternalType::Byte | ExternalType::UByte);
        let fill = if bytes { own_fill(var).cloned() } else { Some(fill_value(var)) };
        let float = matches!(var.ty, ExternalType::Float | ExternalType::Double);
        let told = match var.ty {
            ExternalType::Float => options.float_digits.is_some(),
            ExternalType::Double => options.double_digits.is_some(),
            _ => false,
        };
        let format = match var.attrs.get("C_format").map(|a| &a.values) {
            Some(Values::Char(text)) if !told && (1..100).contains(&text.len()) => {
                CFormat::parse(text, float)
            }
            _ => None,
        };
        let text = var.ty == ExternalType::Char && format.is_none();
        let digits = if var.ty == ExternalType::Float { precision.float } else { precision.double };
        let time = times.and_then(|table| Some((table, table.of_data(id)?)));
        Style { fill, format, text, digits, time }
    }

    /// Appends a number that is not fill.
    #[inline]
    fn put(&self, out: &mut Vec<u8>, number: Number, single: bool) {
        if let Some((table, units)) = self.time {
            let value = match number {
                Number::Signed(v) => v as f64,
                Number::Unsigned(v) => v as f64,
                Number::Float(v) => v,
            };
            return table.put(out, units, value);
        }
        if let Number::Float(v) = number
            && !v.is_finite()
        {
            return put_special(out, v, single);
        }
        match &self.format {
            Some(format) => format.put(out, number),
            None => put_plain(out, number, self.digits),
        }
    }
}

fn put_variable(
    lines: &mut Lines<'_>,
    source: &dyn CdlSource,
    options: &DumpOptions,
    id: VarId,
    var: &Variable,
    shape: &[u64],
    style: &Style<'_>,
) -> Result<(), PrintError> {
    lines.raw(b"\n ");
    put_name(lines.buffer(), &var.name);
    if shape.len() <= 1 {
        lines.raw(b" = ");
        lines.set_place(c_name(&var.name).len() + 4);
    } else {
        lines.raw(b" =\n  ");
        lines.set_place(2);
    }
    let mut rows = Rows::new(&var.name, shape, options.annotation);
    let mut zeros = 0;
    for (start, count) in Blocks::new(shape) {
        let asked = count.iter().product::<u64>();
        let values = source
            .read(id, &start, &count)
            .map_err(|error| PrintError::Read { var: var.name.to_string(), error })?;
        if values.ty() != var.ty || values.len() as u64 != asked {
            return Err(PrintError::Mismatch {
                var: var.name.to_string(),
                found: values.len(),
                ty: values.ty().cdl_name(),
                asked,
            });
        }
        match &values {
            Values::Char(text) if style.text => {
                put_text(lines, &mut rows, text, &mut zeros)?;
            }
            values => each_values!(values, list => put_numbers(lines, &mut rows, list, style)?),
        }
    }
    Ok(())
}

/// Rows of characters as strings. Zeros at the end of a row are not shown, so they wait
/// (in `zeros`, across blocks) until a character follows.
fn put_text(
    lines: &mut Lines<'_>,
    rows: &mut Rows<'_>,
    mut text: &[u8],
    zeros: &mut u64,
) -> Result<(), PrintError> {
    while !text.is_empty() {
        if rows.at_row_start() {
            rows.begin_row(lines);
            lines.raw(b"\"");
            *zeros = 0;
        }
        let here = usize::try_from(rows.left_in_row()).unwrap_or(usize::MAX).min(text.len());
        let (part, rest) = text.split_at(here);
        text = rest;
        for &byte in part {
            if byte == 0 {
                *zeros += 1;
                continue;
            }
            for _ in 0..std::mem::take(zeros) {
                lines.raw(b"\\000");
                lines.flush_if_full()?;
            }
            put_row_byte(lines.buffer(), byte);
        }
        rows.advance(here as u64);
        if rows.left_in_row() == 0 {
            lines.raw(b"\"");
            rows.end_row(lines);
        }
        lines.flush_if_full()?;
    }
    Ok(())
}

fn put_numbers<T: Datum>(
    lines: &mut Lines<'_>,
    rows: &mut Rows<'_>,
    mut values: &[T],
    style: &Style<'_>,
) -> Result<(), PrintError> {
    let fill = style.fill.as_ref().and_then(T::of);
    let put = |out: &mut Vec<u8>, value: T| match fill {
        Some(fill) if value.is_fill(fill) => out.push(b'_'),
        _ => style.put(out, value.number(), T::SINGLE),
    };
    while !values.is_empty() {
        if rows.at_row_start() {
            rows.begin_row(lines);
        }
        let left = usize::try_from(rows.left_in_row()).unwrap_or(usize::MAX);
        let (part, rest) = values.split_at(left.min(values.len()));
        values = rest;
        let ends = part.len() == left;
        let inner = part.len() - usize::from(ends);
        if let Some(full) = rows.full() {
            for &value in &part[..inner] {
                put(lines.buffer(), value);
                lines.raw(b", ");
                rows.comment(lines, full, rows.column());
                rows.advance(1);
                lines.flush_if_full()?;
            }
            for &value in &part[inner..] {
                put(lines.buffer(), value);
                rows.advance(1);
                rows.end_row(lines);
            }
        } else {
            for &value in &part[..inner] {
                lines.item(|out| {
                    put(out, value);
                    out.extend_from_slice(b", ");
                });
                lines.flush_if_full()?;
            }
            rows.advance(inner as u64);
            for &value in &part[inner..] {
                lines.item(|out| put(out, value));
                rows.advance(1);
                rows.end_row(lines);
                lines.flush_if_full()?;
            }
        }
    }
    Ok(())
}

/// A value as it is printed and compared with the fill value.
trait Datum: Copy {
    /// Whether NaN and Infinity carry the suffix of a float.
    const SINGLE: bool = false;
    /// The first value, when the list is of this type.
    fn of(values: &Values) -> Option<Self>;
    /// The value as a number.
    fn number(self) -> Number;
    /// Whether `_` stands for it.
    fn is_fill(self, fill: Self) -> bool;
}

macro_rules! integer {
    ($($t:ty, $($variant:ident)|+ => $wide:ident),*) => {
        $(impl Datum for $t {
            fn of(values: &Values) -> Option<$t> {
                match values {
                    $(Values::$variant(v) => v.first().copied(),)+
                    _ => None,
                }
            }
            #[inline]
            fn number(self) -> Number {
                Number::$wide(self.into())
            }
            #[inline]
            fn is_fill(self, fill: $t) -> bool {
                self == fill
            }
        })*
    };
}
integer!(i8, Byte => Signed, i16, Short => Signed, i32, Int => Signed, i64, Int64 => Signed,
         u8, UByte | Char => Unsigned, u16, UShort => Unsigned, u32, UInt => Unsigned,
         u64, UInt64 => Unsigned);

macro_rules! float {
    ($t:ty, $variant:ident, $single:expr) => {
        impl Datum for $t {
            const SINGLE: bool = $single;
            fn of(values: &Values) -> Option<$t> {
                match values {
                    Values::$variant(v) => v.first().copied(),
                    _ => None,
                }
            }
            #[inline]
            fn number(self) -> Number {
                Number::Float(f64::from(self))
            }
            /// Within one epsilon of it, as netCDF has it; NaN is NaN.
            #[inline]
            fn is_fill(self, fill: $t) -> bool {
                if (fill > 0.0) != (self > 0.0) {
                    return false;
                }
                if fill.is_finite() && self.is_finite() {
                    return (fill - self).abs() <= (<$t>::EPSILON * self).abs();
                }
                (fill.is_nan() && self.is_nan()) || (fill.is_infinite() && self.is_infinite())
            }
        }
    };
}
float!(f32, Float, true);
float!(f64, Double, false);
