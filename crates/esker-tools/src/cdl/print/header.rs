//! Dimensions, variables and attributes.

use esker_format::{Attribute, DimLen, Owner, Values, VarId};

use super::decimal::{put_general, put_i64, put_u64};
use super::lines::Lines;
use super::text::{put_attribute_text, put_name};
use super::{DumpOptions, Precision, PrintError};
use crate::cdl::fill::each_values;
use crate::cdl::source::CdlSource;
use crate::cdl::time::TimeTable;

/// Variables of these names have a space before the colon of an attribute: `data:` without it
/// begins a section.
const KEYWORDS: [&str; 5] = ["variables", "dimensions", "data", "group", "types"];

pub(super) fn put(
    lines: &mut Lines<'_>,
    source: &dyn CdlSource,
    options: &DumpOptions,
    precision: Precision,
    times: Option<&TimeTable>,
) -> Result<(), PrintError> {
    let schema = source.schema();
    if !schema.dims.is_empty() {
        lines.raw(b"dimensions:\n");
    }
    for dim in &schema.dims {
        lines.raw(b"\t");
        put_name(lines.buffer(), &dim.name);
        match dim.len {
            DimLen::Fixed(len) => {
                lines.raw(b" = ");
                put_u64(lines.buffer(), len);
                lines.raw(b" ;\n");
            }
            DimLen::Unlimited => {
                lines.raw(b" = UNLIMITED ; // (");
                put_u64(lines.buffer(), source.numrecs());
                lines.raw(b" currently)\n");
            }
        }
    }
    if !schema.vars.is_empty() {
        lines.raw(b"variables:\n");
    }
    for (id, var) in schema.vars.iter().enumerate() {
        lines.raw(b"\t");
        lines.raw(var.ty.cdl_name().as_bytes());
        lines.raw(b" ");
        put_name(lines.buffer(), &var.name);
        for (place, dim) in var.dims.iter().enumerate() {
            lines.raw(if place == 0 { b"(" } else { b", " });
            if let Some(dim) = schema.dims.at(dim.0) {
                put_name(lines.buffer(), &dim.name);
            }
        }
        lines.raw(if var.dims.is_empty() { b" ;\n" } else { b") ;\n" });
        let is_shown =
            |a: &&Attribute| options.special_attributes || !source.is_storage(VarId(id), &a.name);
        for attribute in var.attrs.iter().filter(is_shown) {
            let owner = Owner::Var(VarId(id));
            put_attribute(lines, owner, &var.name, attribute, precision, times);
            lines.flush_if_full()?;
        }
    }
    if !schema.attrs.is_empty() || options.special_attributes {
        lines.raw(b"\n// global attributes:\n");
    }
    for attribute in &schema.attrs {
        // ncdump keeps this one, netCDF-4's record of who wrote the file, to itself.
        if &*attribute.name != "_NCProperties" {
            put_attribute(lines, Owner::Global, "", attribute, precision, times);
        }
    }
    if options.special_attributes {
        if let Some(Values::Char(text)) = schema.attr(Owner::Global, "_NCProperties") {
            lines.raw(b"\t\t:_NCProperties = \"");
            lines.raw(text.split(|&b| b == 0).next().unwrap_or_default());
            lines.raw(b"\" ;\n");
        }
        lines.raw(b"\t\t:_Format = \"");
        lines.raw(source.version().kind_name().as_bytes());
        lines.raw(b"\" ;\n");
    }
    lines.flush_if_full()?;
    Ok(())
}

fn put_attribute(
    lines: &mut Lines<'_>,
    owner: Owner,
    owner_name: &str,
    attribute: &Attribute,
    precision: Precision,
    times: Option<&TimeTable>,
) {
    lines.raw(b"\t\t");
    put_name(lines.buffer(), owner_name);
    if KEYWORDS.contains(&owner_name) {
        lines.raw(b" ");
    }
    lines.raw(b":");
    put_name(lines.buffer(), &attribute.name);
    lines.raw(b" = ");
    put_values(lines.buffer(), &attribute.values, precision);
    lines.raw(b" ;");
    if let (Owner::Var(var), Some(times)) = (owner, times) {
        put_times(lines, var, &attribute.values, times);
    }
    lines.raw(b"\n");
}

/// The values of an attribute with the suffixes that tell their type. One without values looks
/// like an empty string, whatever its type.
fn put_values(out: &mut Vec<u8>, values: &Values, precision: Precision) {
    if values.is_empty() {
        out.extend_from_slice(b"\"\"");
        return;
    }
    match values {
        Values::Char(text) => put_attribute_text(out, text),
        Values::Byte(v) => list(out, v, |out, v| suffixed(out, i64::from(v), b"b")),
        Values::Short(v) => list(out, v, |out, v| suffixed(out, i64::from(v), b"s")),
        Values::Int(v) => list(out, v, |out, v| put_i64(out, i64::from(v))),
        Values::Int64(v) => list(out, v, |out, v| suffixed(out, v, b"LL")),
        Values::UByte(v) => list(out, v, |out, v| unsigned(out, u64::from(v), b"UB")),
        Values::UShort(v) => list(out, v, |out, v| unsigned(out, u64::from(v), b"US")),
        Values::UInt(v) => list(out, v, |out, v| unsigned(out, u64::from(v), b"U")),
        Values::UInt64(v) => list(out, v, |out, v| unsigned(out, v, b"ULL")),
        Values::Float(v) => list(out, v, |out, v| {
            if v.is_finite() {
                put_general(out, f64::from(v), precision.float, true);
                out.push(b'f');
            } else {
                put_special(out, f64::from(v), true);
            }
        }),
        Values::Double(v) => list(out, v, |out, v| {
            if v.is_finite() {
                put_general(out, v, precision.double, true);
            } else {
                put_special(out, v, false);
            }
        }),
    }
}

fn list<T: Copy>(out: &mut Vec<u8>, values: &[T], put: impl Fn(&mut Vec<u8>, T)) {
    for (i, &value) in values.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        put(out, value);
    }
}

fn suffixed(out: &mut Vec<u8>, value: i64, suffix: &[u8]) {
    put_i64(out, value);
    out.extend_from_slice(suffix);
}

fn unsigned(out: &mut Vec<u8>, value: u64, suffix: &[u8]) {
    put_u64(out, value);
    out.extend_from_slice(suffix);
}

/// NaN and the infinities, which look alike in attributes and data.
pub(super) fn put_special(out: &mut Vec<u8>, value: f64, single: bool) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value < 0.0 {
        out.extend_from_slice(b"-Infinity");
    } else {
        out.extend_from_slice(b"Infinity");
    }
    if single {
        out.push(b'f');
    }
}

/// The dates of an attribute's numbers in a comment: one or two in the same line, more in lines
/// of their own.
fn put_times(lines: &mut Lines<'_>, var: VarId, values: &Values, times: &TimeTable) {
    let Some(time) = times.of_attributes(var) else { return };
    let Some(numbers) = as_doubles(values) else { return };
    let wrap = numbers.len() > 2;
    let last = numbers.len().saturating_sub(1);
    let mut place = 0;
    for (i, number) in numbers.into_iter().enumerate() {
        let mut shown = Vec::new();
        times.put(&mut shown, time, number);
        if i < last {
            shown.push(b',');
        }
        place += 1 + shown.len();
        // Two tabs and two spaces, counted as 18 columns, before the comment.
        if wrap && (i == 0 || place > lines.limit() + 2) {
            lines.raw(b"\n\t\t  // ");
            place = 16 + 2 + shown.len() + 3;
        } else {
            lines.raw(if i == 0 { b" // " } else { b" " });
        }
        lines.raw(&shown);
    }
}

fn as_doubles(values: &Values) -> Option<Vec<f64>> {
    if let Values::Char(_) = values {
        return None;
    }
    #[allow(clippy::unnecessary_cast)]
    Some(each_values!(values, v => v.iter().map(|&v| v as f64).collect()))
}
