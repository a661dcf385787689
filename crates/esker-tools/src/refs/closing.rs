//! References that a program asks for when it creates a dataset, by a hint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{ChunkRefs, Dataset, Error};
use esker_comm::{CommunicatorExt, Disagreement};
use esker_store::Store;

use super::{Form, RefsError, RefsOptions, Result, Written, write};
use crate::progress::Unseen;

/// Closes a dataset, and writes its references beside it if its hint `esker_chunk_refs` asks for
/// them. Collective: rank 0 writes them.
///
/// Nothing is written for a dataset that was open for reading, for one without chunked variables,
/// or for a container. When this fails because of the references ([`RefsError::Closed`]), the dataset
/// is closed and whole. `store` is where the dataset is.
pub fn close(dataset: Dataset, store: Arc<dyn Store>) -> Result<Option<Written>> {
    let form = match dataset.hints().chunk_refs() {
        ChunkRefs::None => None,
        ChunkRefs::Json => Some(Form::Json),
        ChunkRefs::Parquet => Some(Form::Parquet),
    };
    let (comm, path) = (dataset.comm().clone(), named(&dataset));
    let wanted = dataset.is_writable() && dataset.has_chunked_variables();
    dataset.close()?;
    let Some(form) = form.filter(|_| wanted) else { return Ok(None) };
    let options = RefsOptions { form: Some(form), store, ..RefsOptions::default() };
    let written = match comm.rank() {
        0 => write(&path, None, &options, &mut Unseen).map(Some),
        _ => Ok(None),
    };
    let written = written.map_err(|error| {
        let why = error.to_string();
        RefsError::Closed { path: path.clone(), why }
    });
    comm.agree(written).map_err(|disagreement| match disagreement {
        Disagreement::Failed { own: Some(error), .. } => error,
        Disagreement::Failed { rank, message, own: None } => {
            Error::OtherRank { rank, message }.into()
        }
        Disagreement::Comm(error) => Error::from(error).into(),
    })
}

/// What programs call a dataset: its file, or its folder.
fn named(dataset: &Dataset) -> PathBuf {
    let path = dataset.path();
    let folder = dataset.chunk_file(1).and_then(|_| path.parent().map(Path::to_path_buf));
    folder.unwrap_or_else(|| path.to_path_buf())
}
