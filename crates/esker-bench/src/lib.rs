//! Kernels of parallel I/O, on Esker and on its peers, side by side.

#![forbid(unsafe_code)]

pub mod kernels;
pub mod plan;
pub mod plan_file;
pub mod values;

use std::path::{Path, PathBuf};

/// The folder of E3SM's maps: the given one, or `netcdf_classic` in the folder of shared data,
/// which `ESKER_SHARED_DATA` names or which is `shared/data` beside a parent of where we are.
pub fn maps_folder(given: Option<&Path>) -> Option<PathBuf> {
    let has_maps = |folder: &PathBuf| folder.join(kernels::Case::F.file_name()).is_file();
    if let Some(folder) = given {
        return Some(folder.to_path_buf());
    }
    let shared = std::env::var_os("ESKER_SHARED_DATA").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let above = here.iter().flat_map(|here| here.ancestors()).map(|dir| dir.join("shared/data"));
    let folders = shared.into_iter().chain(above).map(|data| data.join("netcdf_classic"));
    folders.into_iter().find(has_maps)
}
