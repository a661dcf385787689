//! Whether two files hold equal data, decomposed or not.

use std::path::Path;

use esker::{Dataset, Result, Selection, VarId};

/// Bytes of a variable that are compared at once.
const BLOCK: u64 = 16 << 20;

/// The name of the first variable whose values differ or that one of the files lacks.
pub fn first_difference(a: &Path, b: &Path) -> Result<Option<String>> {
    let (a, b) = (Dataset::open(a)?, Dataset::open(b)?);
    let maps = |ds: &Dataset| -> Vec<String> {
        ds.decompositions().iter().flat_map(|map| map.variables()).collect()
    };
    let (of_a, of_b) = (maps(&a), maps(&b));
    if a.schema().vars.len() - of_a.len() != b.schema().vars.len() - of_b.len() {
        return Ok(Some("the number of variables".into()));
    }
    for (i, variable) in a.schema().vars.iter().enumerate() {
        let name = variable.name.to_string();
        if of_a.contains(&name) {
            continue;
        }
        let (here, there) = (VarId(i), b.var(&name)?);
        let shape = a.shape(here)?;
        if shape != b.shape(there)? {
            return Ok(Some(name));
        }
        let row: u64 = shape.iter().skip(1).product::<u64>().max(1) * variable.ty.size();
        let rows = shape.first().copied().unwrap_or(1);
        let at_once = (BLOCK / row).max(1);
        let mut start = 0;
        while start < rows {
            let count = at_once.min(rows - start);
            let selection = match shape.split_first() {
                None => Selection::all(),
                Some((_, inner)) => Selection::slab(
                    &[&[start], &vec![0; inner.len()][..]].concat(),
                    &[&[count], inner].concat(),
                ),
            };
            if a.get_values(here, &selection)? != b.get_values(there, &selection)? {
                return Ok(Some(name));
            }
            start += count;
        }
    }
    Ok(None)
}
