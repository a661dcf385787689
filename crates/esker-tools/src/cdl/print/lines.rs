//! Output in lines of bounded length, collected into large writes.

use std::io::{self, Write};

/// Bytes that are collected before they are written.
const FLUSH_AT: usize = 1 << 16;

/// A line goes on after this.
const CONTINUATION: &[u8] = b"\n    ";

/// The output, and where in its line it stands.
pub(super) struct Lines<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    /// Place in the line, as far as it counts for breaking it.
    place: usize,
    /// The longest line, without the two characters kept free for the comma or semicolon.
    limit: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(out: &'a mut dyn Write, line_len: usize) -> Lines<'a> {
        let limit = line_len.saturating_sub(2);
        Lines { out, buffer: Vec::with_capacity(FLUSH_AT * 2), place: 0, limit }
    }

    /// The longest line.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// What is not yet written, to append to. Does not count for the place in the line.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends text that is never broken and does not count.
    pub(super) fn raw(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    /// Appends text that counts but never starts a new line, because it is short.
    pub(super) fn short(&mut self, text: &[u8]) {
        debug_assert!(text.len() <= 2);
        self.buffer.extend_from_slice(text);
        self.place = if text.ends_with(b"\n") { 0 } else { self.place + text.len() };
    }

    /// Appends what `put` makes, on a new line if this one would become too long.
    #[inline]
    pub(super) fn item(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.buffer.len();
        put(&mut self.buffer);
        let len = self.buffer.len() - start;
        if len + self.place > self.limit && len > 2 {
            // Rare (once a line): make room before the item.
            self.buffer.splice(start..start, CONTINUATION.iter().copied());
            self.place = CONTINUATION.len() - 1;
        }
        self.place += len;
    }

    /// Says where in the line the output stands.
    pub(super) fn set_place(&mut self, place: usize) {
        self.place = place;
    }

    /// Writes what is collected when that is much.
    #[inline]
    pub(super) fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH_AT { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.flush()
    }
}
