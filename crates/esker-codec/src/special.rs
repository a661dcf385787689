//! Values that no error-bounded filter may see: they are stored beside, bit by bit.
//!
//! NaN and infinities break arithmetic, fill values are far from everything and must come back
//! exactly. What stands at their places in the field is then anybody's choice. The stored form is
//! in docs/format/filters.md.

use crate::error::Result;
use crate::filters::{zstd_compress, zstd_decompress};
use crate::reader::{Reader, put_varint};
use crate::real::Number;
use crate::scratch::Tools;

/// The most patterns; more different special values than these are stored one by one.
const MOST: usize = 15;

/// A sentinel is so many times larger than everything else. Ordinary fields span less in a
/// chunk near their maximum, and 1e20, -1e34, 9.97e36 or -1e10 span more.
const SENTINEL: f64 = 1e4;

/// Which elements are special, and what they are.
#[derive(Debug, Default)]
pub(crate) struct Specials {
    /// Different bit patterns.
    patterns: Vec<u64>,
    /// For each element 0 (ordinary), the number of its pattern from 1 on, or one more than that
    /// for a literal. Empty when nothing is special.
    classes: Vec<u8>,
    /// The bits of literals, in the order of elements.
    literals: Vec<u64>,
    tokens: Vec<u8>,
}

impl Specials {
    /// Finds the special ones among `values`; `fills` are the bits of fill values.
    pub(crate) fn find<T: Number>(&mut self, values: &[T], fills: &[u64]) {
        self.mark(values, fills, sentinels(values, fills));
    }

    /// Marks what is not finite, a fill value, or as far from zero as one of the `sentinels`.
    pub(crate) fn mark<T: Number>(&mut self, values: &[T], fills: &[u64], sentinels: [f64; 2]) {
        self.clear();
        let special = |x: T| {
            let wide = x.wide();
            !wide.is_finite() || fills.contains(&x.bits()) || sentinels.contains(&wide.abs())
        };
        let Some(first) = values.iter().position(|&x| special(x)) else { return };
        self.classes.resize(values.len(), 0);
        for (class, &x) in self.classes[first..].iter_mut().zip(&values[first..]) {
            if !special(x) {
                continue;
            }
            let bits = x.bits();
            let known = self.patterns.iter().position(|&pattern| pattern == bits);
            let at = known.unwrap_or_else(|| {
                if self.patterns.len() < MOST {
                    self.patterns.push(bits);
                    self.patterns.len() - 1
                } else {
                    self.literals.push(bits);
                    MOST
                }
            });
            *class = at as u8 + 1;
        }
    }

    fn clear(&mut self) {
        self.patterns.clear();
        self.classes.clear();
        self.literals.clear();
    }

    /// For each element whether it is special; empty when none is.
    pub(crate) fn classes(&self) -> &[u8] {
        &self.classes
    }

    /// Whether the element is special.
    #[inline(always)]
    pub(crate) fn is(&self, element: usize) -> bool {
        self.classes.get(element).is_some_and(|&class| class != 0)
    }

    /// Appends the stored form.
    pub(crate) fn write<T: Number>(&mut self, out: &mut Vec<u8>, tools: &mut Tools) -> Result<()> {
        put_varint(out, self.patterns.len() as u64);
        if self.patterns.is_empty() {
            return Ok(());
        }
        self.patterns.iter().for_each(|&bits| put_bits::<T>(out, bits));
        self.tokens.clear();
        let changes = self.patterns.len() as u64 + 1;
        let mut left = self.classes.as_slice();
        let mut class = 0u8;
        while !left.is_empty() {
            let run = left.iter().position(|&next| next != class).unwrap_or(left.len());
            left = &left[run..];
            let next = left.first().copied().unwrap_or(class);
            let change = (u64::from(next) + changes + 1 - u64::from(class)) % (changes + 1);
            put_varint(&mut self.tokens, run as u64 * changes + change.saturating_sub(1));
            class = next;
        }
        put_varint(out, self.tokens.len() as u64);
        let mut frame = tools.take::<Frame>();
        frame.0.clear();
        zstd_compress(6, &self.tokens, &mut frame.0, tools)?;
        put_varint(out, frame.0.len() as u64);
        out.extend_from_slice(&frame.0);
        tools.put(frame);
        self.literals.iter().for_each(|&bits| put_bits::<T>(out, bits));
        Ok(())
    }

    /// Reads the stored form for `elements` elements.
    pub(crate) fn read<T: Number>(
        &mut self,
        reader: &mut Reader<'_>,
        elements: usize,
        tools: &mut Tools,
    ) -> Result<()> {
        self.clear();
        let patterns = reader.count(MOST, "special patterns")?;
        if patterns == 0 {
            return Ok(());
        }
        for _ in 0..patterns {
            self.patterns.push(get_bits::<T>(reader)?);
        }
        // A token of a run has at most one byte more than the run has elements.
        let length = reader.count(2 * elements + 16, "bytes of tokens")?;
        self.tokens.resize(length, 0);
        let frame = reader.part()?;
        if zstd_decompress(frame, &mut self.tokens, tools)? != length {
            return Err(reader.damaged("the map of special values is too short"));
        }
        let tokens = std::mem::take(&mut self.tokens);
        let done = self.spread(&tokens, elements);
        self.tokens = tokens;
        done?;
        let literal = patterns as u8 + 1;
        let literals = self.classes.iter().filter(|&&class| class == literal).count();
        for _ in 0..literals {
            self.literals.push(get_bits::<T>(reader)?);
        }
        Ok(())
    }

    /// Classes from tokens.
    fn spread(&mut self, tokens: &[u8], elements: usize) -> Result<()> {
        let mut reader = Reader::new("special values", tokens);
        let changes = self.patterns.len() as u64 + 1;
        let mut class = 0;
        while self.classes.len() < elements {
            let token = reader.varint()?;
            let room = (elements - self.classes.len()) as u64;
            let run = token / changes;
            if run > room {
                return Err(
                    reader.damaged(format!("a run of {run} where {room} elements are left"))
                );
            }
            self.classes.resize(self.classes.len() + run as usize, class);
            class = ((u64::from(class) + 1 + token % changes) % (changes + 1)) as u8;
        }
        reader.end()
    }

    /// Puts the special values to their places.
    pub(crate) fn restore<T: Number>(&self, values: &mut [T]) {
        let mut literals = self.literals.iter();
        for (value, &class) in values.iter_mut().zip(&self.classes) {
            if class != 0 {
                let pattern = self.patterns.get(usize::from(class) - 1);
                *value = T::from_bits(pattern.or_else(|| literals.next()).copied().unwrap_or(0));
            }
        }
    }
}

/// Room for a compressed map of runs.
#[derive(Default)]
struct Frame(Vec<u8>);

/// The magnitudes of up to two sentinels; NaN where there is none.
pub(crate) fn sentinels<T: Number>(values: &[T], fills: &[u64]) -> [f64; 2] {
    let mut found = [f64::NAN; 2];
    for i in 0..found.len() {
        match largest_apart(values, fills, &found) {
            Some(sentinel) => found[i] = sentinel,
            None => break,
        }
    }
    found
}

/// The largest magnitude, if it is repeated and far above all others that are ordinary.
fn largest_apart<T: Number>(values: &[T], fills: &[u64], known: &[f64]) -> Option<f64> {
    let (mut first, mut count, mut second) = (0.0, 0usize, 0.0);
    for &x in values {
        let size = x.wide().abs();
        // NaN is not larger than anything; infinities are special anyway.
        if size > second && size.is_finite() && !known.contains(&size) && !fills.contains(&x.bits())
        {
            if size > first {
                (second, first, count) = (first, size, 1);
            } else if size == first {
                count += 1;
            } else {
                second = size;
            }
        }
    }
    (count > 1 && first >= second * SENTINEL && first >= SENTINEL).then_some(first)
}

/// Appends an element, big-endian.
pub(crate) fn put_bits<T: Number>(out: &mut Vec<u8>, bits: u64) {
    out.extend_from_slice(&bits.to_be_bytes()[8 - size_of::<T>()..]);
}

/// Takes an element.
pub(crate) fn get_bits<T: Number>(reader: &mut Reader<'_>) -> Result<u64> {
    let bytes = reader.take(size_of::<T>())?;
    Ok(bytes.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
}
