//! `RUN.esk@7`, `RUN.esk@v1`: a container and a version of it, as people write them.

use std::path::{Path, PathBuf};

use esker_store::Store;

use super::is_container;
use super::tags::version_named;
use crate::error::Result;

/// The container and the number of the version that a path names: `RUN.esk@7`, or `RUN.esk@v1` by a tag, where nothing has the whole name.
pub fn version_in_path(store: &dyn Store, path: &Path) -> Result<Option<(PathBuf, u64)>> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((name, version)) = name.and_then(|name| name.rsplit_once('@')) else {
        return Ok(None);
    };
    // What is there is what is meant.
    if name.is_empty() || store.is_dir(path)? || store.exists(path)? {
        return Ok(None);
    }
    let container = path.with_file_name(name);
    if !is_container(store, &container)? {
        return Ok(None);
    }
    let version = version_named(store, &container, version)?;
    Ok(Some((container, version)))
}
