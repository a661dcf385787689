//! Which bytes of a buffer are whose, or wanted.
//!
//! A byte's bit is set by who claims it. Bits are in words of 64, which ranks change by comparing and exchanging; a block
//! of 512 bytes of which a rank has all is one rank's by a state of its own, and its bits are not looked at.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::{BLOCK, WORD};

/// States of a block. Nobody has anything of it; it goes by its bits; all of it is one rank's, or wanted.
const FREE: u8 = 0;
const BY_BITS: u8 = 1;
const WHOLE: u8 = 2;

/// The states and bits of a buffer, for ranks that share it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claims<'m> {
    pub(super) blocks: &'m [AtomicU8],
    pub(super) bits: &'m [AtomicU64],
    /// Whether there is only one rank, so that nobody changes a word between a look and a change.
    pub(super) alone: bool,
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claimed {
    /// All bytes up to here, which is the end.
    All,
    /// Those before this place, where an element begins that is another rank's.
    Before(usize),
    /// The ranks' elements do not lie in the same places: one would be some of both.
    Mixed,
}

impl Claims<'_> {
    /// Claims `at..end`, in which elements of `size` bytes lie one behind the other, up to the first that another has.
    pub(super) fn claim(&self, at: usize, end: usize, size: usize) -> Claimed {
        let mut from = at;
        while from < end {
            let block = from / BLOCK;
            let to = end.min((block + 1) * BLOCK);
            let taken = match from.is_multiple_of(BLOCK) && to - from == BLOCK {
                true => self.claim_block(block),
                false => self.enter_block(block),
            };
            let lost = match taken {
                Taken::Whole => None,
                Taken::Others => Some(lost(from, from, (at, size))),
                Taken::ByBits => self.claim_bits(from, to, (at, size)),
            };
            if let Some(lost) = lost {
                return lost;
            }
            from = to;
        }
        Claimed::All
    }

    fn claim_block(&self, block: usize) -> Taken {
        let state = &self.blocks[block];
        match state.compare_exchange(FREE, WHOLE, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Taken::Whole,
            Err(BY_BITS) => Taken::ByBits,
            Err(_) => Taken::Others,
        }
    }

    #[inline]
    fn enter_block(&self, block: usize) -> Taken {
        let state = &self.blocks[block];
        let mut found = state.load(Ordering::Relaxed);
        if found == FREE {
            let entered =
                state.compare_exchange(FREE, BY_BITS, Ordering::Relaxed, Ordering::Relaxed);
            found = entered.err().unwrap_or(BY_BITS);
        }
        if found == BY_BITS { Taken::ByBits } else { Taken::Others }
    }

    /// Claims `from..to` of one block; gives what came of it if another has some of it.
    fn claim_bits(&self, from: usize, to: usize, run: (usize, usize)) -> Option<Claimed> {
        let mut place = from;
        while place < to {
            let word = place / WORD;
            let next = to.min((word + 1) * WORD);
            let mask = mask(place % WORD, next - word * WORD);
            let bits = &self.bits[word];
            let mut found = bits.load(Ordering::Relaxed);
            loop {
                let others = found & mask;
                let lost = (others != 0)
                    .then(|| lost(word * WORD + others.trailing_zeros() as usize, place, run));
                let mine = match lost {
                    Some(Claimed::Before(element)) => mask & below(element - word * WORD),
                    Some(_) => return lost,
                    None => mask,
                };
                let new = found | mine;
                match bits.compare_exchange_weak(found, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Err(now) => found = now,
                    Ok(_) if lost.is_some() => return lost,
                    Ok(_) => break,
                }
            }
            place = next;
        }
        None
    }

    /// Claims bytes of one word, if nobody has any of them; all or none.
    #[inline]
    pub(super) fn claim_word(&self, word: usize, mask: u64) -> bool {
        if !matches!(self.enter_block(word / (BLOCK / WORD)), Taken::ByBits) {
            return false;
        }
        let bits = &self.bits[word];
        let mut found = bits.load(Ordering::Relaxed);
        while found & mask == 0 {
            let new = found | mask;
            if self.alone {
                bits.store(new, Ordering::Relaxed);
                return true;
            }
            match bits.compare_exchange_weak(found, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => found = now,
            }
        }
        false
    }

    /// Marks `at..end` as wanted, by whomever else it is, too.
    pub(super) fn want(&self, at: usize, end: usize) {
        let mut from = at;
        while from < end {
            let block = from / BLOCK;
            let to = end.min((block + 1) * BLOCK);
            if self.blocks[block].load(Ordering::Relaxed) != WHOLE {
                match from.is_multiple_of(BLOCK) && to - from == BLOCK {
                    true => self.blocks[block].store(WHOLE, Ordering::Relaxed),
                    false => self.want_bits(from, to),
                }
            }
            from = to;
        }
    }

    fn want_bits(&self, from: usize, to: usize) {
        let mut place = from;
        while place < to {
            let word = place / WORD;
            let next = to.min((word + 1) * WORD);
            let mask = mask(place % WORD, next - word * WORD);
            if self.bits[word].load(Ordering::Relaxed) & mask != mask {
                self.bits[word].fetch_or(mask, Ordering::Relaxed);
            }
            place = next;
        }
    }

    /// Sets the bits of whole blocks, and forgets their states: nobody else uses them now.
    pub(super) fn settle(&self) {
        for (block, bits) in self.blocks.iter().zip(self.bits.chunks(BLOCK / WORD)) {
            if block.load(Ordering::Relaxed) == WHOLE {
                bits.iter().for_each(|word| word.store(!0, Ordering::Relaxed));
            }
            block.store(FREE, Ordering::Relaxed);
        }
    }
}

/// What another rank's byte means for a run of elements of which all before `place` is this rank's.
fn lost(byte: usize, place: usize, (at, size): (usize, usize)) -> Claimed {
    let element = byte - (byte - at) % size;
    // Who has the first byte of an element has all of it, so that nobody has the rest of one that is this rank's.
    if element < place { Claimed::Mixed } else { Claimed::Before(element) }
}

/// What a rank gets of a block.
enum Taken {
    Whole,
    ByBits,
    Others,
}

/// The bits `from..to` of a word.
pub(super) fn mask(from: usize, to: usize) -> u64 {
    below(to) & !below(from)
}

/// The bits before this one.
fn below(bit: usize) -> u64 {
    if bit < WORD { (1 << bit) - 1 } else { !0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 8 * BLOCK;

    struct Buffer {
        blocks: Vec<AtomicU8>,
        bits: Vec<AtomicU64>,
    }

    impl Buffer {
        fn new() -> Buffer {
            let blocks = (0..LEN / BLOCK).map(|_| AtomicU8::new(0)).collect();
            Buffer { blocks, bits: (0..LEN / WORD).map(|_| AtomicU64::new(0)).collect() }
        }

        fn claims(&self) -> Claims<'_> {
            Claims { blocks: &self.blocks, bits: &self.bits, alone: false }
        }

        fn known(&self) -> Vec<usize> {
            self.claims().settle();
            let known =
                |at: &usize| self.bits[at / WORD].load(Ordering::Relaxed) >> (at % WORD) & 1 == 1;
            (0..LEN).filter(known).collect()
        }
    }

    /// Claims as a rank does; gives the elements that it got.
    fn claim_all(claims: &Claims<'_>, (mut at, end): (usize, usize), size: usize) -> Vec<usize> {
        let mut got = Vec::new();
        while at < end {
            let to = match claims.claim(at, end, size) {
                Claimed::All => end,
                Claimed::Before(lost) => lost,
                Claimed::Mixed => panic!("mixed"),
            };
            got.extend((at..to).step_by(size));
            at = if to == end { end } else { to + size };
        }
        got
    }

    fn dice(seed: &mut u64) -> u64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    #[test]
    fn every_byte_that_is_claimed_has_one_owner_and_is_known() {
        for seed in 0..300 {
            let mut seed = seed;
            let buffer = Buffer::new();
            let size = [1, 2, 4, 8][dice(&mut seed) as usize % 4];
            // Elements begin anywhere, but all of them on one grid.
            let first = dice(&mut seed) as usize % size;
            let most = (LEN - first) / size;
            let mut expected = vec![false; LEN];
            let mut owned = vec![0; LEN];
            for _ in 0..20 {
                let from = dice(&mut seed) as usize % most;
                let long = [5, 2 * BLOCK][dice(&mut seed) as usize % 2];
                let count = (1 + dice(&mut seed) as usize % long).min(most - from);
                let (at, end) = (first + from * size, first + (from + count) * size);
                expected[at..end].fill(true);
                for element in claim_all(&buffer.claims(), (at, end), size) {
                    owned[element..element + size].iter_mut().for_each(|n| *n += 1);
                }
            }
            let expected: Vec<usize> = (0..LEN).filter(|at| expected[*at]).collect();
            assert!((0..LEN).all(|at| owned[at] <= 1));
            assert_eq!((0..LEN).filter(|at| owned[*at] == 1).collect::<Vec<_>>(), expected);
            assert_eq!(buffer.known(), expected);
        }
    }

    #[test]
    fn of_ranks_that_claim_the_same_at_once_one_gets_each_element() {
        for size in [4, 8] {
            let buffer = Buffer::new();
            let first = 3;
            let end = LEN - (LEN - first) % size;
            let got: Vec<Vec<usize>> = std::thread::scope(|scope| {
                let ranks: Vec<_> = (0..4)
                    .map(|rank| {
                        let claims = buffer.claims();
                        scope.spawn(move || {
                            let mut got = Vec::new();
                            let mut at = first;
                            // Each in runs of another length, from another place in the elements.
                            while at < end {
                                let to = end.min(at + size * (1 + 50 * rank));
                                got.extend(claim_all(&claims, (at, to), size));
                                at = to;
                            }
                            got
                        })
                    })
                    .collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            let mut all: Vec<usize> = got.into_iter().flatten().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq((first..end).step_by(size)));
            assert_eq!(buffer.known(), (first..end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn elements_of_other_places_are_not_mixed() {
        for (first, at) in [(60, 62), (BLOCK - 4, BLOCK - 2), (100, 102)] {
            let buffer = Buffer::new();
            assert_eq!(buffer.claims().claim(at, at + 8, 8), Claimed::All);
            let came = buffer.claims().claim(first, first + 16, 8);
            assert!(came == Claimed::Before(first) || came == Claimed::Mixed, "{came:?}");
        }
        // The first has a word more than the second when that claims.
        let buffer = Buffer::new();
        assert_eq!(buffer.claims().claim(WORD, WORD + 8, 8), Claimed::All);
        assert_eq!(buffer.claims().claim(WORD - 4, WORD + 4, 8), Claimed::Mixed);
    }

    #[test]
    fn what_is_wanted_by_several_is_wanted_once() {
        let buffer = Buffer::new();
        let claims = buffer.claims();
        for (at, end) in [(5, 9), (7, 70), (100, 3 * BLOCK + 7), (600, 700), (BLOCK, 2 * BLOCK)] {
            claims.want(at, end);
        }
        let expected: Vec<usize> = (5..70).chain(100..3 * BLOCK + 7).collect();
        assert_eq!(buffer.known(), expected);
    }
}
