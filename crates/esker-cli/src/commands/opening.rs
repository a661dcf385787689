//! Opening a file and finding its variables, with failures that name the file.

use std::path::Path;

use esker::{Dataset, OpenOptions, VarId};
use esker_store::LocalStore;

use crate::failure::Failure;
use crate::terminal::say;
use crate::terminal::table::printable;

/// The dataset in this file, for reading, decomposed variables as they are stored.
pub(super) fn open(path: &Path) -> Result<Dataset, Failure> {
    let dataset = Dataset::open_with(path, OpenOptions::new().blobs(true))
        .map_err(|error| Failure::file(path, error))?;
    say_notes(path, dataset.notes());
    Ok(dataset)
}

/// Says what somebody who reads this dataset has to know, where others open it.
pub(super) fn warn(path: &Path) {
    say_notes(path, &esker::reader_notes(&LocalStore, path));
}

fn say_notes(path: &Path, notes: &[String]) {
    for note in notes {
        say(format_args!("esker: {}: {}", path.display(), printable(note)));
    }
}

/// The variables of these names, in this order; all variables when there are no names.
pub(super) fn variables(
    path: &Path,
    dataset: &Dataset,
    names: &[String],
) -> Result<Vec<VarId>, Failure> {
    if names.is_empty() {
        return Ok((0..dataset.schema().vars.len()).map(VarId).collect());
    }
    let vars = names.iter().map(|name| dataset.var(name));
    vars.collect::<Result<_, _>>().map_err(|error| Failure::file(path, error))
}
