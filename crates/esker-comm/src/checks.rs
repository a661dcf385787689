//! What every implementation refuses, in the same words.

use crate::{CommError, Received, Result, Tag};

/// A refusal if `rank` is not a rank of a communicator of `size`.
pub(crate) fn check_rank(operation: &'static str, rank: usize, size: usize) -> Result<()> {
    if rank < size { Ok(()) } else { Err(CommError::NoSuchRank { operation, rank, size }) }
}

/// Refuses a message of another length than the receiver named.
pub(crate) fn check_length(
    received: Received,
    tag: Tag,
    length: Option<usize>,
) -> Result<Received> {
    match length {
        Some(expected) if expected != received.message.len() => Err(CommError::UnexpectedLength {
            source_rank: received.source,
            tag,
            expected,
            found: received.message.len(),
        }),
        _ => Ok(received),
    }
}

/// Refuses a list that does not have one entry for each rank.
pub(crate) fn check_one_each(operation: &'static str, found: usize, size: usize) -> Result<()> {
    if found == size {
        return Ok(());
    }
    let reason = format!("needs one entry for each of {size} ranks and was given {found}");
    Err(CommError::BadArgument { operation, reason })
}

/// Refuses colours that MPI cannot have, on every implementation alike.
pub(crate) fn check_colour(colour: Option<u32>) -> Result<()> {
    match colour {
        Some(colour) if i32::try_from(colour).is_err() => Err(CommError::BadArgument {
            operation: "split",
            reason: format!("the colour {colour} is above 2^31 - 1"),
        }),
        _ => Ok(()),
    }
}
