//! What Zarr's metadata say of a pipeline.

use crate::chunk::Chunk;
use crate::filters::{self, Place};
use crate::pipeline::Pipeline;

/// The two entries of a Zarr v2 array's metadata, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZarrCodecs {
    /// The list of filters, or `null`.
    pub filters: String,
    /// The compressor, or `null`.
    pub compressor: String,
}

impl Pipeline {
    /// The metadata with which Zarr (numcodecs without plug-ins) decodes the chunks of this
    /// pipeline, for an array of big-endian elements (`>f4`); none when it does not know a
    /// filter, or the pipeline cannot be used for the chunk. A chunk whose
    /// [mask](crate::FilterMask) is not zero cannot be described to Zarr.
    pub fn numcodecs(&self, chunk: &Chunk<'_>) -> Option<ZarrCodecs> {
        let steps = self.steps(chunk).ok()?;
        let described =
            steps.iter().map(|step| step.place.described().zarr(step.params, &step.site));
        let mut codecs: Vec<String> = described.collect::<Option<_>>()?;
        // By custom the last one that compresses stands apart.
        let compresses = |place| matches!(place, Place::Bytes(_));
        let compressor = match steps.last() {
            Some(last) if compresses(last.place) => codecs.pop(),
            _ => None,
        };
        let null = || "null".to_string();
        let filters = if codecs.is_empty() { null() } else { format!("[{}]", codecs.join(",")) };
        Some(ZarrCodecs { filters, compressor: compressor.unwrap_or_else(null) })
    }

    /// Whether Zarr knows every filter.
    pub(crate) fn in_zarr(&self) -> bool {
        self.filters().iter().all(|filter| {
            filters::by_id(filter.id()).is_some_and(|entry| entry.place.described().in_zarr())
        })
    }
}
