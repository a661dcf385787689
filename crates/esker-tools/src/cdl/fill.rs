//! What `_` stands for in a variable.

use esker_format::{Values, Variable};

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

/// The variable's `_FillValue`, when it is one value of its type.
pub(crate) fn own_fill(var: &Variable) -> Option<&Values> {
    let values = &var.attrs.get("_FillValue")?.values;
    (values.ty() == var.ty && values.len() == 1).then_some(values)
}
