//! NcML, the XML form of the header.

use esker_format::{Attribute, DimLen, Values, VarId};

use super::decimal::{put_general, put_i64, put_u64};
use super::lines::Lines;
use super::text::{c_name, put_xml, put_xml_text};
use super::{DumpOptions, Precision, PrintError};
use crate::cdl::fill::each_values;
use crate::cdl::source::CdlSource;

pub(super) fn put(
    lines: &mut Lines<'_>,
    source: &dyn CdlSource,
    options: &DumpOptions,
    wanted: &[VarId],
    precision: Precision,
) -> Result<(), PrintError> {
    let schema = source.schema();
    lines.raw(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    lines.raw(b"<netcdf xmlns=\"https://www.unidata.ucar.edu/namespaces/netcdf/ncml-2.2\"");
    lines.raw(b" location=\"");
    match &options.location {
        Some(location) => put_xml(lines.buffer(), location.as_bytes()),
        None => put_xml(lines.buffer(), source.path().as_os_str().as_encoded_bytes()),
    }
    lines.raw(b"\">\n");
    for dim in &schema.dims {
        lines.raw(b"  <dimension name=\"");
        put_xml(lines.buffer(), c_name(&dim.name).as_bytes());
        lines.raw(b"\" length=\"");
        let (len, end): (_, &[u8]) = match dim.len {
            DimLen::Fixed(len) => (len, b"\" />\n"),
            DimLen::Unlimited => (source.numrecs(), b"\" isUnlimited=\"true\" />\n"),
        };
        put_u64(lines.buffer(), len);
        lines.raw(end);
    }
    for attribute in &schema.attrs {
        if &*attribute.name != "_NCProperties" {
            put_attribute(lines, b"", attribute, precision);
        }
    }
    for (id, var) in schema.vars.iter().enumerate() {
        lines.raw(b"  <variable name=\"");
        put_xml(lines.buffer(), c_name(&var.name).as_bytes());
        lines.raw(b"\"");
        for (place, dim) in var.dims.iter().enumerate() {
            lines.raw(if place == 0 { b" shape=\"" } else { b" " });
            let name = schema.dims.at(dim.0).map_or("", |d| c_name(&d.name));
            put_xml(lines.buffer(), name.as_bytes());
        }
        lines.raw(if var.dims.is_empty() { b" type=\"" } else { b"\" type=\"" });
        lines.raw(var.ty.cdl_name().as_bytes());
        // An element of one line when nothing would stand in it even if data were printed
        // (which they are not: ncdump leaves them out of NcML).
        let is_shown =
            |a: &&Attribute| options.special_attributes || !source.is_storage(VarId(id), &a.name);
        let bare = !var.attrs.iter().any(|a| is_shown(&a))
            && (options.header_only
                || (!wanted.is_empty() && !wanted.contains(&VarId(id)))
                || (options.coordinates_only && !super::data::is_coordinate(schema, var))
                || (schema.is_record(var) && source.numrecs() == 0));
        if bare {
            lines.raw(b"\" />\n");
            continue;
        }
        lines.raw(b"\">\n");
        for attribute in var.attrs.iter().filter(is_shown) {
            put_attribute(lines, b"  ", attribute, precision);
            lines.flush_if_full()?;
        }
        lines.raw(b"  </variable>\n");
    }
    lines.raw(b"</netcdf>\n");
    Ok(())
}

fn put_attribute(
    lines: &mut Lines<'_>,
    indent: &[u8],
    attribute: &Attribute,
    precision: Precision,
) {
    lines.raw(indent);
    lines.raw(b"  <attribute name=\"");
    put_xml(lines.buffer(), c_name(&attribute.name).as_bytes());
    if let Values::Char(text) = &attribute.values {
        lines.raw(b"\" value=");
        put_xml_text(lines.buffer(), text);
    } else {
        lines.raw(b"\" type=\"");
        lines.raw(attribute.values.ty().cdl_name().as_bytes());
        lines.raw(b"\" value=\"");
        let out = lines.buffer();
        each_values!(&attribute.values, list => for (i, value) in list.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            value.put(out, precision);
        });
        lines.raw(b"\"");
    }
    lines.raw(b" />\n");
}

/// A number in NcML: no suffix, because the type is said before it.
trait NcmlNumber {
    fn put(&self, out: &mut Vec<u8>, precision: Precision);
}

macro_rules! integers {
    ($($t:ty => $put:ident as $wide:ty),*) => {
        $(impl NcmlNumber for $t {
            fn put(&self, out: &mut Vec<u8>, _: Precision) {
                $put(out, <$wide>::from(*self));
            }
        })*
    };
}
integers!(i8 => put_i64 as i64, i16 => put_i64 as i64, i32 => put_i64 as i64, i64 => put_i64 as i64,
          u8 => put_u64 as u64, u16 => put_u64 as u64, u32 => put_u64 as u64, u64 => put_u64 as u64);

impl NcmlNumber for f32 {
    fn put(&self, out: &mut Vec<u8>, precision: Precision) {
        put_float(out, f64::from(*self), precision.float);
    }
}

impl NcmlNumber for f64 {
    fn put(&self, out: &mut Vec<u8>, precision: Precision) {
        put_float(out, *self, precision.double);
    }
}

/// NaN and the infinities as printf spells them.
fn put_float(out: &mut Vec<u8>, value: f64, precision: usize) {
    if value.is_finite() {
        put_general(out, value, precision, true);
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
}
