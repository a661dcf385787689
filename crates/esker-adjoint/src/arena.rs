//! The memory of the checkpoints: buffers that are used again.

/// Buffers of the memory tier, in use and free, which together never have more bytes than the tier may have.
///
/// A new checkpoint takes the place of an old one, whose pages are there already. What is free is given back to the system
/// as soon as it does not fit beside what is in use; one free buffer may stay where the tier is smaller than it, for the copy that
/// is always on its way.
#[derive(Debug)]
pub(crate) struct Arena {
    limit: u64,
    /// Bytes of the buffers of checkpoints.
    used: u64,
    /// Given back, smallest first.
    free: Vec<Vec<u8>>,
}

/// A buffer may be longer than what is in it by this part: sizes of states differ a little.
const SLACK: usize = 8;

/// Whether a buffer is neither too short nor much too long.
pub(crate) fn fits(buffer: &Vec<u8>, bytes: usize) -> bool {
    (bytes..=bytes.saturating_add(bytes / SLACK)).contains(&buffer.capacity())
}

/// The buffer, empty, if so many bytes are what it is for; else a new one of that length.
pub(crate) fn fitting(mut buffer: Vec<u8>, bytes: usize) -> Vec<u8> {
    buffer.clear();
    if fits(&buffer, bytes) { buffer } else { Vec::with_capacity(bytes) }
}

impl Arena {
    pub(crate) fn new(limit: u64) -> Arena {
        Arena { limit, used: 0, free: Vec::new() }
    }

    /// A free buffer for about so many bytes, or an empty one. It is nobody's until it is kept or given back.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        match self.free.iter().position(|buffer| fits(buffer, bytes)) {
            Some(at) => self.free.remove(at),
            None => Vec::new(),
        }
    }

    /// A checkpoint is kept. Where it would be too long it is made as long as it must be.
    pub(crate) fn keep(&mut self, buffer: &mut Vec<u8>) {
        if self.used.saturating_add(buffer.capacity() as u64) > self.limit {
            buffer.shrink_to_fit();
        }
        self.used = self.used.saturating_add(buffer.capacity() as u64);
        self.trim();
    }

    /// Bytes by which buffers in use are more than there may be: some are longer than what is in them.
    pub(crate) fn excess(&self) -> u64 {
        self.used.saturating_sub(self.limit)
    }

    /// A buffer in use was made shorter by so much.
    pub(crate) fn shortened(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// A checkpoint is given up, and its buffer is free.
    pub(crate) fn give_up(&mut self, buffer: Vec<u8>) {
        self.used = self.used.saturating_sub(buffer.capacity() as u64);
        self.give_back(buffer);
    }

    /// A buffer that was on its way, and in which nothing is kept.
    pub(crate) fn give_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            let at = self.free.partition_point(|other| other.capacity() < buffer.capacity());
            self.free.insert(at, buffer);
            self.trim();
        }
    }

    /// Bytes in use and free.
    pub(crate) fn bytes(&self) -> u64 {
        self.free.iter().fold(self.used, |sum, free| sum.saturating_add(free.capacity() as u64))
    }

    fn trim(&mut self) {
        // The longest first: it makes most room.
        while self.free.len() > 1 && self.bytes() > self.limit {
            self.free.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_never_more_than_there_may_be() {
        let mut arena = Arena::new(1000);
        let mut kept: Vec<Vec<u8>> = Vec::new();
        let mut state = 12345u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut reused = 0;
        for _ in 0..10_000 {
            let bytes = 80 + random(40) as usize;
            let in_use: usize = kept.iter().map(Vec::len).sum();
            if in_use + bytes > 1000 || random(3) == 0 && !kept.is_empty() {
                let at = random(kept.len() as u64) as usize;
                arena.give_up(kept.swap_remove(at));
            } else {
                let taken = arena.take(bytes);
                reused += usize::from(taken.capacity() > 0);
                let mut buffer = fitting(taken, bytes);
                buffer.resize(bytes, 1);
                arena.keep(&mut buffer);
                kept.push(buffer);
                for buffer in &mut kept {
                    if arena.excess() > 0 {
                        let before = buffer.capacity();
                        buffer.shrink_to_fit();
                        arena.shortened((before - buffer.capacity()) as u64);
                    }
                }
            }
            let live: u64 = kept.iter().map(|buffer| buffer.capacity() as u64).sum();
            assert_eq!(arena.used, live);
            // One free buffer may be beyond it.
            let longest = arena.free.last().map_or(0, Vec::capacity) as u64;
            assert!(live <= 1000 && arena.bytes() <= 1000 + longest, "{arena:?}");
            assert!(arena.bytes() <= 1000 || arena.free.len() == 1);
        }
        assert!(reused > 1000, "{reused}");
    }

    #[test]
    fn a_buffer_that_is_much_too_long_is_not_taken() {
        let mut arena = Arena::new(10_000);
        arena.give_back(Vec::with_capacity(1000));
        assert_eq!(arena.take(500).capacity(), 0);
        assert_eq!(arena.take(1001).capacity(), 0);
        assert_eq!(arena.take(950).capacity(), 1000);
        assert_eq!(fitting(vec![1; 1000], 500).capacity(), 500);
    }
}
