//! Fill values: the defaults of the format, and what `_` stands for in a variable.

use esker_format::{ExternalType, Values, Variable};

/// Calls `$body` with `$v` bound to the vector inside `$values`.
macro_rules! each_values {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            esker_format::Values::Byte($v) => $body,
            esker_format::Values::Char($v) => $body,
            esker_format::Values::Short($v) => $body,
            esker_format::Values::Int($v) => $body,
            esker_format::Values::Float($v) => $body,
            esker_format::Values::Double($v) => $body,
            esker_format::Values::UByte($v) => $body,
            esker_format::Values::UShort($v) => $body,
            esker_format::Values::UInt($v) => $body,
            esker_format::Values::Int64($v) => $body,
            esker_format::Values::UInt64($v) => $body,
        }
    };
}
pub(crate) use each_values;

/// The default fill value of a type (NC_FILL_*), as a list of one.
pub(crate) fn default_fill(ty: ExternalType) -> Values {
    match ty {
        ExternalType::Byte => Values::Byte(vec![-127]),
        ExternalType::Char => Values::Char(vec![0]),
        ExternalType::Short => Values::Short(vec![-32767]),
        ExternalType::Int => Values::Int(vec![-2147483647]),
        ExternalType::Float => Values::Float(vec![FILL_FLOAT as f32]),
        ExternalType::Double => Values::Double(vec![FILL_FLOAT]),
        ExternalType::UByte => Values::UByte(vec![255]),
        ExternalType::UShort => Values::UShort(vec![65535]),
        ExternalType::UInt => Values::UInt(vec![4294967295]),
        ExternalType::Int64 => Values::Int64(vec![-9223372036854775806]),
        ExternalType::UInt64 => Values::UInt64(vec![18446744073709551614]),
    }
}

/// NC_FILL_FLOAT and NC_FILL_DOUBLE.
const FILL_FLOAT: f64 = 9.969_209_968_386_869e36;

/// The fill value of a variable: its `_FillValue` when that is one value of its type, else the
/// type's default.
pub(crate) fn fill_of(var: &Variable) -> Values {
    own_fill(var).cloned().unwrap_or_else(|| default_fill(var.ty))
}

/// The variable's usable `_FillValue`.
pub(crate) fn own_fill(var: &Variable) -> Option<&Values> {
    let values = &var.attrs.get("_FillValue")?.values;
    (values.ty() == var.ty && values_len(values) == 1).then_some(values)
}

/// How many values there are.
pub(crate) fn values_len(values: &Values) -> usize {
    each_values!(values, v => v.len())
}
