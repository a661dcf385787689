//! Options that say how variables are cut into chunks, and which filters they go through.

use esker_tools::copy::{ChunkOptions, FilterWish, ShapeWish};

use crate::arguments;

/// Chunks and filters of a file that is made.
#[derive(Debug, clap::Args)]
pub(super) struct Chunking {
    /// Cut variables into chunks: lat/90,lon/90 for those that have these dimensions,
    /// t:lat/90,lon/90 for one (may be given again)
    #[arg(long = "chunk", value_name = "[VAR:]DIM/N,…")]
    shapes: Vec<ShapeWish>,
    /// Store variables through a filter: zstd,3, or t:zstd,3 for one (may be given again, in the
    /// order in which values pass them)
    #[arg(long = "filter", value_name = "[VAR:]FILTER")]
    filters: Vec<FilterWish>,
    /// Choose chunks, and without --filter the filters shuffle zstd,3; show what was chosen
    #[arg(long)]
    pub(super) auto: bool,
    /// Leave variables of fewer bytes as they are, unless they are named (512, 64k, 1M)
    #[arg(long, value_name = "BYTES", default_value = "64k", value_parser = arguments::size)]
    smallest: u64,
}

impl Chunking {
    /// What is asked for.
    pub(super) fn options(&self, contiguous: bool) -> ChunkOptions {
        ChunkOptions {
            contiguous,
            auto: self.auto,
            shapes: self.shapes.clone(),
            filters: self.filters.clone(),
            smallest: self.smallest,
        }
    }

    /// Whether anything is.
    pub(super) fn is_asked(&self) -> bool {
        self.options(false).is_asked()
    }
}
