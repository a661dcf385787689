//! Bytes that have not been decoded yet.

use crate::varint;

/// What is left; every step gives `None` where there is not enough.
pub(super) struct Rest<'b>(pub(super) &'b [u8]);

impl<'b> Rest<'b> {
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'b [u8]> {
        let (now, later) = self.0.split_at_checked(len)?;
        self.0 = later;
        Some(now)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        varint::take(&mut self.0)
    }

    pub(super) fn difference(&mut self, before: u64) -> Option<u64> {
        varint::take_difference(&mut self.0, before)
    }

    /// A length, and so many bytes.
    pub(super) fn text(&mut self) -> Option<&'b [u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        self.bytes(len)
    }

    /// A count of things that have at least `size` bytes each, all of which must be there.
    pub(super) fn count(&mut self, size: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / size).then_some(count)
    }
}

/// Appends a length and the bytes.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    varint::put(bytes, text.len() as u64);
    bytes.extend(text);
}
