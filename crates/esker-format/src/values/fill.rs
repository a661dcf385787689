//! Fill values: what stands where nothing was written.

use super::Values;
use crate::schema::Variable;
use crate::types::{ExternalType, MemoryType};

/// NC_FILL_DOUBLE, which is exact in `f32` as well: NC_FILL_FLOAT is the same number.
const FILL_REAL: f64 = 9.969_209_968_386_869e36;

/// The fill value of a variable that says nothing else, as a list of one.
pub fn default_fill(ty: ExternalType) -> Values {
    match ty {
        ExternalType::Byte => Values::from(-127i8),
        ExternalType::Char => Values::Char(vec![0]),
        ExternalType::Short => Values::from(-32767i16),
        ExternalType::Int => Values::from(-2_147_483_647i32),
        ExternalType::Float => Values::from(FILL_REAL as f32),
        ExternalType::Double => Values::from(FILL_REAL),
        ExternalType::UByte => Values::from(255u8),
        ExternalType::UShort => Values::from(65535u16),
        ExternalType::UInt => Values::from(4_294_967_295u32),
        ExternalType::Int64 => Values::from(-9_223_372_036_854_775_806i64),
        ExternalType::UInt64 => Values::from(18_446_744_073_709_551_614u64),
    }
}

/// One value of [`default_fill`] as it stands in the file.
pub fn default_fill_bytes(ty: ExternalType) -> Vec<u8> {
    default_fill(ty).external_bytes()
}

/// The fill value of `var`, as a list of one: its attribute `_FillValue` when that is one
/// value of the variable's own type (netCDF ignores any other), else the default.
pub fn fill_value(var: &Variable) -> Values {
    match var.attrs.get("_FillValue") {
        Some(attr) if attr.values.ty() == var.ty && attr.values.len() == 1 => attr.values.clone(),
        _ => default_fill(var.ty),
    }
}

/// One value of [`fill_value`] as it stands in the file.
pub fn fill_bytes(var: &Variable) -> Vec<u8> {
    fill_value(var).external_bytes()
}

/// The default fill value of a memory type, in native byte order.
pub(super) fn memory_fill(memory: MemoryType) -> Vec<u8> {
    default_fill(memory.natural()).native_bytes().to_vec()
}
