//! The ways of storing, each made by the same calls.

use std::path::{Path, PathBuf};

use esker::Hints;

/// A way of storing a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Form {
    Canonical,
    Chunked,
    ChunkedFiles,
    Log,
    /// Variables in chunks that are entries of logs.
    LogChunks,
    Decomposed,
    DecomposedFiles,
    BurstBuffer,
}

impl Form {
    pub(crate) const ALL: [Form; 8] = [
        Form::Canonical,
        Form::Chunked,
        Form::ChunkedFiles,
        Form::Log,
        Form::LogChunks,
        Form::Decomposed,
        Form::DecomposedFiles,
        Form::BurstBuffer,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Canonical => "canonical",
            Form::Chunked => "chunked",
            Form::ChunkedFiles => "chunked-files",
            Form::Log => "log",
            Form::LogChunks => "log-chunks",
            Form::Decomposed => "decomposed",
            Form::DecomposedFiles => "decomposed-files",
            Form::BurstBuffer => "burst-buffer",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Whether it has chunks in a heap, which tables say the places of.
    pub(crate) fn is_chunked(self) -> bool {
        matches!(self, Form::Chunked | Form::ChunkedFiles)
    }

    /// Whether variables are defined with chunks.
    pub(crate) fn has_chunks(self) -> bool {
        self.is_chunked() || self == Form::LogChunks
    }

    /// Whether it is a container.
    pub(crate) fn is_container(self) -> bool {
        matches!(self, Form::Log | Form::LogChunks)
    }

    pub(crate) fn is_decomposed(self) -> bool {
        matches!(self, Form::Decomposed | Form::DecomposedFiles)
    }

    /// Whether a redefinition is possible.
    pub(crate) fn redefines(self) -> bool {
        self != Form::DecomposedFiles
    }

    /// The dataset's name in a folder.
    pub(crate) fn path(self, folder: &Path) -> PathBuf {
        folder.join(if self.is_container() { "run.esk" } else { "run.nc" })
    }

    /// Where a burst buffer has its logs.
    pub(crate) fn buffer(folder: &Path) -> PathBuf {
        folder.join("bb")
    }

    /// What makes a dataset of this form. `turn` chooses among its variants.
    pub(crate) fn hints(self, folder: &Path, turn: u64, ordered: bool) -> Hints {
        let mut hints = Hints::default();
        let buffer = Form::buffer(folder);
        match self {
            Form::Canonical | Form::Chunked | Form::Decomposed => {}
            Form::ChunkedFiles => {
                hints.set("esker_chunk_files", ["rank", "node", "shared"][turn as usize % 3]);
            }
            Form::Log | Form::LogChunks => {
                hints.set("esker_layout", "log");
                hints.set("esker_log_files", ["process", "node"][turn as usize % 2]);
            }
            Form::DecomposedFiles => hints.set("nc_num_subfiles", "2"),
            Form::BurstBuffer => {
                hints.set("nc_burst_buf", "enable");
                hints.set("nc_burst_buf_dirname", buffer.to_str().unwrap_or("bb"));
                if turn % 2 == 1 {
                    hints.set("nc_burst_buf_shared_logs", "enable");
                }
            }
        }
        if self.is_chunked() && ordered {
            hints.set("esker_chunk_rewrite", "ordered");
        }
        hints
    }
}
