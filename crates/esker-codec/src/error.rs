//! What can go wrong with a filter, as sentences.

use esker_format::ExternalType;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, CodecError>;

/// A pipeline that cannot be, or a chunk that cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Text that is not a filter.
    #[error("'{text}' is not a filter: {why}")]
    Text {
        /// What was given.
        text: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// Numbers, as a file keeps them, that are not a pipeline.
    #[error("the stored filters are not a pipeline: {why}")]
    Words {
        /// What is wrong with them.
        why: String,
    },
    /// A filter that cannot be used for these chunks.
    #[error("the filter {filter} cannot be used for chunks of {ty}: {why}")]
    Misused {
        /// The filter, as text.
        filter: String,
        /// The type of the elements.
        ty: ExternalType,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A buffer whose length is not that of the chunk.
    #[error("a chunk of {shape:?} elements of {ty} has {expected} bytes, but {found} were given")]
    Length {
        /// The type of the elements.
        ty: ExternalType,
        /// The chunk's shape.
        shape: Vec<usize>,
        /// Its bytes.
        expected: usize,
        /// The bytes that were there.
        found: usize,
    },
    /// A chunk whose number of bytes no machine can count.
    #[error("a chunk of {shape:?} elements of {ty} is too large")]
    TooLarge {
        /// The type of the elements.
        ty: ExternalType,
        /// The chunk's shape.
        shape: Vec<usize>,
    },
    /// Stored bytes that no encoder made.
    #[error("the stored chunk is damaged: {filter}: {why}")]
    Damaged {
        /// The filter that noticed.
        filter: &'static str,
        /// What it noticed.
        why: String,
    },
    /// A library failed on good input.
    #[error("the filter {filter} failed: {why}")]
    Failed {
        /// The filter.
        filter: &'static str,
        /// What the library said.
        why: String,
    },
}

impl CodecError {
    pub(crate) fn damaged(filter: &'static str, why: impl ToString) -> CodecError {
        CodecError::Damaged { filter, why: why.to_string() }
    }

    pub(crate) fn failed(filter: &'static str, why: impl ToString) -> CodecError {
        CodecError::Failed { filter, why: why.to_string() }
    }
}
