//! Findings about attributes that readers give a meaning to.

use esker_format::Decoded;

use super::finding::{Finding, Severity, counted};

/// `_FillValue` must be one value of the variable's type; netCDF refuses to define another,
/// but files with others exist, and readers ignore them or convert.
pub(super) fn check(decoded: &Decoded, findings: &mut Vec<Finding>) {
    for (var, fields) in decoded.header.schema.vars.iter().zip(&decoded.fields) {
        let Some(position) = var.attrs.position("_FillValue") else { continue };
        let Some(attr) = var.attrs.at(position) else { continue };
        let object = format!("attribute \"_FillValue\" of variable {:?}", &*var.name);
        let warn = |code, sentence: String| {
            let finding = Finding::new(Severity::Warning, code, &object, sentence);
            match fields.attrs_at.get(position) {
                Some(at) => finding.at(*at),
                None => finding,
            }
        };
        if attr.values.ty() != var.ty {
            let sentence = format!(
                "it is of type {}, but the variable is of type {}",
                attr.values.ty(),
                var.ty
            );
            findings.push(warn("fill-type", sentence).value(attr.values.ty().cdl_name()));
        }
        let len = attr.values.len() as u64;
        if len != 1 {
            let sentence = format!("it has {}, but a fill value is one", counted(len, "value"));
            findings.push(warn("fill-length", sentence).value(len));
        }
    }
}
