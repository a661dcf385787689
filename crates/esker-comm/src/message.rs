//! The bytes that travel between ranks.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A message: bytes that are owned, or a part of a buffer shared with other messages.
///
/// Between thread-ranks a message moves by reference: the receiver reads the sender's buffer.
/// MPI sends straight from the buffer and receives into a new one. A sender that has packed
/// the pieces for many ranks into one buffer shares it once and sends slices:
///
/// ```
/// use esker_comm::Message;
/// let packed = Message::from(vec![1, 2, 3, 4, 5]).into_shared();
/// let (left, right) = (packed.slice(0..2), packed.slice(2..5));
/// assert_eq!((&left[..], &right[..]), (&[1, 2][..], &[3, 4, 5][..]));
/// ```
#[derive(Clone, Default)]
pub struct Message(Bytes);

#[derive(Clone)]
enum Bytes {
    Owned(Vec<u8>),
    Shared { owner: Arc<Vec<u8>>, range: Range<usize> },
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::Owned(Vec::new())
    }
}

impl Message {
    /// A message of no bytes.
    pub const fn empty() -> Self {
        Message(Bytes::Owned(Vec::new()))
    }

    /// The same bytes in a form that [`slice`](Self::slice) and `clone` share without copying.
    pub fn into_shared(self) -> Self {
        match self.0 {
            Bytes::Owned(bytes) => Message::from(Arc::new(bytes)),
            shared => Message(shared),
        }
    }

    /// A part of this message. Shares the buffer if this message [is shared](Self::into_shared)
    /// and copies the part if not. A range that reaches past the end is cut there.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        match &self.0 {
            Bytes::Owned(bytes) => Message::from(bytes[start..end].to_vec()),
            Bytes::Shared { owner, range: whole } => Message(Bytes::Shared {
                owner: Arc::clone(owner),
                range: whole.start + start..whole.start + end,
            }),
        }
    }

    /// Its first `len` bytes, without a copy.
    pub fn truncated(mut self, len: usize) -> Self {
        match &mut self.0 {
            Bytes::Owned(bytes) => bytes.truncate(len),
            Bytes::Shared { range, .. } => {
                range.end = range.end.min(range.start.saturating_add(len))
            }
        }
        self
    }

    /// The bytes as a vector; copied only if others share the buffer or this is a part of it.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Bytes::Owned(bytes) => bytes,
            Bytes::Shared { owner, range } if range == (0..owner.len()) => {
                Arc::try_unwrap(owner).unwrap_or_else(|owner| owner.to_vec())
            }
            Bytes::Shared { owner, range } => owner[range].to_vec(),
        }
    }

    /// A message of numbers, for counts and offsets (little-endian on the wire).
    pub fn from_u64s(values: &[u64]) -> Self {
        Message::from(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }

    /// The numbers of a message made by [`from_u64s`](Self::from_u64s); bytes that do not fill
    /// a number are left off.
    pub fn to_u64s(&self) -> Vec<u64> {
        self.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Owned(bytes) => bytes,
            // The range was cut to the buffer when it was made, and the buffer never changes.
            Bytes::Shared { owner, range } => &owner[range.clone()],
        }
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Message(Bytes::Owned(bytes))
    }
}

impl From<Arc<Vec<u8>>> for Message {
    fn from(owner: Arc<Vec<u8>>) -> Self {
        let range = 0..owner.len();
        Message(Bytes::Shared { owner, range })
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        Message::from(bytes.to_vec())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::from(text.into_bytes())
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match &self.0 {
            Bytes::Owned(_) => "owned",
            Bytes::Shared { .. } => "shared",
        };
        write!(f, "Message({} bytes, {form})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_message_is_sliced_and_cloned_without_a_copy() {
        let whole = Message::from((0..100).collect::<Vec<u8>>()).into_shared();
        let part = whole.slice(10..20).slice(2..5);
        assert_eq!(part[..], [12, 13, 14]);
        assert_eq!(part.as_ptr(), whole[12..].as_ptr());
        assert_eq!(whole.clone().as_ptr(), whole.as_ptr());
    }

    #[test]
    fn the_last_holder_gets_the_vector_back_without_a_copy() {
        let bytes = vec![7u8; 50];
        let address = bytes.as_ptr();
        let shared = Message::from(bytes).into_shared();
        let back = shared.into_vec();
        assert_eq!(back.as_ptr(), address);
    }

    #[test]
    fn a_slice_past_the_end_is_cut() {
        let message = Message::from(vec![1, 2, 3]).into_shared();
        assert_eq!(message.slice(2..9)[..], [3]);
        assert!(message.slice(5..9).is_empty());
    }

    #[test]
    fn the_first_bytes_are_had_without_a_copy() {
        for message in
            [Message::from(vec![1, 2, 3, 4]), Message::from(vec![1, 2, 3, 4]).into_shared()]
        {
            let address = message.as_ptr();
            let first = message.truncated(3);
            assert_eq!((&first[..], first.as_ptr()), (&[1, 2, 3][..], address));
            assert_eq!(first.truncated(9)[..], [1, 2, 3]);
        }
    }

    #[test]
    fn numbers_come_back() {
        assert_eq!(Message::from_u64s(&[1, u64::MAX]).to_u64s(), [1, u64::MAX]);
    }
}
