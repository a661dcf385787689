//! Variables that fields cannot do without: times, layers, their bounds, and what formulas of vertical coordinates name.

use std::collections::BTreeSet;

use esker::{Dataset, Define, DimId, ExternalType, Owner, Schema, VarId, Variable};

use crate::error::Result;

/// Attributes that name other variables.
const NAMING: [&str; 4] = ["bounds", "formula_terms", "grid_mapping", "ancillary_variables"];

/// Defines the variables of the source that are over other dimensions of the fields (the layers of a layered mesh, times), or that one of
/// these or a field names, and adds them to `copied`. Names that the mesh has already go to `left`.
pub(super) fn define(
    source: &Dataset,
    def: &mut Define,
    copied: &mut Vec<(VarId, VarId)>,
    left: &mut Vec<String>,
) -> Result<()> {
    let schema = source.schema();
    let taken: BTreeSet<usize> = copied.iter().map(|(from, _)| from.0).collect();
    // Dimensions that the output has by the same name are those that fields have beside the mesh's.
    let has = |def: &Define, dim: &DimId| {
        schema.dims.at(dim.0).is_some_and(|dim| def.schema().dim(&dim.name).is_some())
    };
    let mut wanted: Vec<VarId> = Vec::new();
    for (number, var) in schema.vars.iter().enumerate() {
        let known = |dims: &[DimId]| !dims.is_empty() && dims.iter().all(|dim| has(def, dim));
        // Text has a dimension more: its length.
        let dims = match (var.ty, var.dims.split_last()) {
            (ExternalType::Char, Some((_, before))) if !known(&var.dims) => before,
            _ => &var.dims[..],
        };
        if known(dims) && !taken.contains(&number) && !esker::graph::is_graph(var) {
            wanted.push(VarId(number));
        }
    }
    let fields: Vec<VarId> = copied.iter().map(|(from, _)| *from).collect();
    let mut at = 0;
    for var in fields.iter().copied() {
        name_more(schema, var, &taken, &mut wanted);
    }
    while let Some(var) = wanted.get(at).copied() {
        name_more(schema, var, &taken, &mut wanted);
        at += 1;
    }
    for var in wanted {
        let Some(variable) = schema.variable(var) else { continue };
        if def.schema().var(&variable.name).is_some() {
            left.push(variable.name.to_string());
            continue;
        }
        copied.push((var, define_one(schema, def, variable)?));
    }
    Ok(())
}

/// Adds the variables that attributes of one name, and that are not there yet.
fn name_more(schema: &Schema, var: VarId, taken: &BTreeSet<usize>, wanted: &mut Vec<VarId>) {
    for attribute in NAMING {
        let text = schema.attr(Owner::Var(var), attribute).and_then(|values| values.text());
        for word in text.as_deref().unwrap_or_default().split_ascii_whitespace() {
            let named = schema.var(word).filter(|named| !taken.contains(&named.0));
            wanted.extend(named.filter(|named| !wanted.contains(named)));
        }
    }
}

fn define_one(schema: &Schema, def: &mut Define, variable: &Variable) -> Result<VarId> {
    let mut dims = Vec::new();
    for dim in variable.dims.iter().filter_map(|dim| schema.dims.at(dim.0)) {
        dims.push(match def.schema().dim(&dim.name) {
            Some(known) => known,
            None => def.add_dim(&dim.name, dim.len)?,
        });
    }
    let new = def.add_var(&variable.name, variable.ty, &dims)?;
    for attr in &variable.attrs {
        def.put_attr(new, &attr.name, attr.values.clone())?;
    }
    Ok(new)
}
