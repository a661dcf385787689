//! The layouts in which Esker writes a plan.

use std::path::{Path, PathBuf};

use esker::{CreateOptions, Hints};

/// Where Esker puts the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// A classic netCDF file.
    Canonical,
    /// A container of logs, one for each rank.
    Log,
    /// A classic netCDF file, by way of logs in a burst buffer.
    BurstBuffer,
    /// A classic netCDF file of one blob for each variable and rank, with the map.
    Decomposed,
    /// A classic netCDF file of chunked variables.
    Chunked,
}

impl Layout {
    /// All.
    pub const ALL: [Layout; 5] =
        [Layout::Canonical, Layout::Log, Layout::BurstBuffer, Layout::Decomposed, Layout::Chunked];

    /// The name by which users call it.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Canonical => "canonical",
            Layout::Log => "log",
            Layout::BurstBuffer => "bb",
            Layout::Decomposed => "decomposed",
            Layout::Chunked => "chunked",
        }
    }

    /// The layout of that name.
    pub fn from_name(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// How the names of its datasets end.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Layout::Log => "esk",
            Layout::Canonical | Layout::BurstBuffer | Layout::Decomposed | Layout::Chunked => "nc",
        }
    }

    /// What a dataset at `path` is created with.
    pub(crate) fn options(self, path: &Path) -> CreateOptions {
        match self {
            Layout::Canonical | Layout::Decomposed | Layout::Chunked => CreateOptions::new(),
            Layout::Log => CreateOptions::new().layout(esker::Layout::Log),
            Layout::BurstBuffer => {
                let mut hints = Hints::default();
                hints.set("nc_burst_buf", "enable");
                hints.set("nc_burst_buf_dirname", &burst_buffer(path).display().to_string());
                CreateOptions::new().hints(hints)
            }
        }
    }
}

/// The folder that is the burst buffer of the file at `path`, for all libraries alike.
pub(crate) fn burst_buffer(path: &Path) -> PathBuf {
    path.with_file_name("burst-buffer")
}
