//! Codes to bits: tokens by a range coder with static tables, one for each cluster of contexts.
//!
//! The coder is rANS with a 64-bit state, 32-bit words and frequencies that sum to 4096. A code
//! v below 16 is its own token; a larger one is a token of its exponent and second bit, and the
//! bits below follow in a stream of their own.

use crate::error::Result;
use crate::reader::{Reader, put_varint};

/// Tokens: 16 small codes, two for each exponent from 4 to 24, and the one of literals.
pub(super) const TOKENS: usize = 64;
/// The token of an element that is stored exactly.
pub(super) const LITERAL: u8 = 63;
/// The largest code.
pub(super) const LARGEST: u32 = 1 << 24;

const BITS: u32 = 12;
const SCALE: u32 = 1 << BITS;
const LOW: u64 = 1 << 31;

/// The token of a code, the number of bits that follow, and these bits.
#[inline(always)]
pub(super) fn token(code: u32) -> (u8, u32, u32) {
    if code < 16 {
        return (code as u8, 0, 0);
    }
    let exponent = code.ilog2();
    let token = 16 + (exponent - 4) * 2 + (code >> (exponent - 1) & 1);
    (token as u8, exponent - 1, code & ((1 << (exponent - 1)) - 1))
}

/// How many bits follow a token, and the code without them.
#[inline(always)]
fn base(token: u8) -> (u32, u32) {
    if token < 16 {
        return (0, token.into());
    }
    let over = u32::from(token - 16);
    let exponent = (over / 2 + 4).min(25);
    (exponent - 1, 1 << exponent | (over & 1) << (exponent - 1))
}

/// Bits, lowest first.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    pub(super) bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.held, self.count) = (0, 0);
    }

    #[inline(always)]
    pub(super) fn put(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 32 {
            self.bytes.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.count -= 32;
        }
    }

    pub(super) fn finish(&mut self) {
        let bytes = self.count.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
        (self.held, self.count) = (0, 0);
    }
}

/// Bits, lowest first; zeros after the end, where `over` tells.
struct BitReader<'a> {
    left: &'a [u8],
    held: u64,
    count: u32,
    over: bool,
}

impl BitReader<'_> {
    #[inline(always)]
    fn take(&mut self, count: u32) -> u32 {
        while self.count < count {
            match self.left.split_first() {
                Some((&byte, left)) => {
                    self.held |= u64::from(byte) << self.count;
                    self.left = left;
                }
                None => self.over = true,
            }
            self.count += 8;
        }
        let bits = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        bits as u32
    }
}

/// Tokens with their contexts, as they came, and the bits that follow them.
#[derive(Debug, Default)]
pub(super) struct Codes {
    /// Context above, token below.
    pub(super) tokens: Vec<(u8, u8)>,
    pub(super) extra: BitWriter,
}

impl Codes {
    pub(super) fn clear(&mut self) {
        self.tokens.clear();
        self.extra.clear();
    }

    #[inline(always)]
    pub(super) fn push(&mut self, context: usize, code: u32) {
        let (token, count, bits) = token(code);
        self.tokens.push((context as u8, token));
        if count > 0 {
            self.extra.put(bits, count);
        }
    }

    #[inline(always)]
    pub(super) fn push_literal(&mut self, context: usize) {
        self.tokens.push((context as u8, LITERAL));
    }

    fn count(&self, contexts: usize) -> Vec<Counts> {
        let mut counts = vec![[0u32; TOKENS]; contexts];
        for &(context, token) in &self.tokens {
            counts[usize::from(context)][usize::from(token)] += 1;
        }
        counts
    }

    /// Appends tables, extra bits and the coded tokens.
    pub(super) fn write(&mut self, contexts: usize, out: &mut Vec<u8>) {
        let (map, counts) = cluster(&self.count(contexts));
        out.push(counts.len() as u8);
        out.extend_from_slice(&map);
        self.write_coded(&map, &counts, out);
    }

    /// The same with a short map of up to 64 contexts, most of which are not in use.
    pub(super) fn write_short(&mut self, contexts: usize, out: &mut Vec<u8>) {
        let counts = self.count(contexts);
        let used: Vec<usize> =
            (0..contexts).filter(|&i| counts[i].iter().any(|&count| count > 0)).collect();
        let (map, counts) = cluster(&counts);
        out.push(counts.len() as u8);
        if counts.len() > 1 {
            put_varint(out, used.iter().fold(0u64, |mask, &context| mask | 1 << context));
            let tables: Vec<u8> = used.iter().map(|&context| map[context]).collect();
            if counts.len() > 16 {
                out.extend_from_slice(&tables);
            } else {
                let pair = |pair: &[u8]| pair[0] | pair.get(1).copied().unwrap_or(0) << 4;
                out.extend(tables.chunks(2).map(pair));
            }
        }
        self.write_coded(&map, &counts, out);
    }

    fn write_coded(&mut self, map: &[u8], counts: &[Counts], out: &mut Vec<u8>) {
        self.extra.finish();
        let tables: Vec<[u32; TOKENS]> = counts.iter().map(normalise).collect();
        for table in &tables {
            write_table(table, out);
        }
        put_varint(out, self.extra.bytes.len() as u64);
        out.extend_from_slice(&self.extra.bytes);

        let symbols: Vec<[Symbol; TOKENS]> = tables.iter().map(symbols).collect();
        let (mut state, mut words) = (LOW, Vec::with_capacity(self.tokens.len() / 16));
        for &(context, token) in self.tokens.iter().rev() {
            let table = &symbols[usize::from(map[usize::from(context)])];
            let symbol = &table[usize::from(token) % TOKENS];
            if state >= symbol.limit {
                words.push(state as u32);
                state >>= 32;
            }
            state = symbol.after(state);
        }
        out.extend_from_slice(&state.to_le_bytes());
        words.iter().rev().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }
}

type Counts = [u32; TOKENS];

/// Bits to code these tokens, with their table.
fn cost(counts: &Counts) -> f64 {
    let total: u32 = counts.iter().sum();
    if total == 0 {
        return 0.0;
    }
    let whole = f64::from(total);
    let mut bits = 8.0;
    for &count in counts.iter().filter(|&&count| count > 0) {
        // No frequency is below 1 / 4096, and a table's entry takes about a byte.
        let share = (f64::from(count) / whole).max(1.0 / f64::from(SCALE));
        bits += 9.0 - f64::from(count) * share.log2();
    }
    bits
}

fn sum(a: &Counts, b: &Counts) -> Counts {
    std::array::from_fn(|token| a[token] + b[token])
}

/// Contexts that share a table.
struct Cluster {
    counts: Counts,
    cost: f64,
    members: Vec<usize>,
}

impl Cluster {
    fn join(&mut self, other: Cluster) {
        self.counts = sum(&self.counts, &other.counts);
        self.cost = cost(&self.counts);
        self.members.extend(other.members);
    }
}

/// Puts contexts together as long as fewer tables save more than they cost. Gives the table of
/// each context, and the tables' counts.
fn cluster(contexts: &[Counts]) -> (Vec<u8>, Vec<Counts>) {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (context, counts) in contexts.iter().enumerate() {
        if counts.iter().any(|&count| count > 0) {
            let members = vec![context];
            clusters.push(Cluster { counts: *counts, cost: cost(counts), members });
        }
    }
    // Neighbours first: there are many of them, and they are much alike.
    let gain = |a: &Cluster, b: &Cluster| a.cost + b.cost - cost(&sum(&a.counts, &b.counts));
    let mut gains: Vec<f64> = clusters.windows(2).map(|pair| gain(&pair[0], &pair[1])).collect();
    while let Some(i) = (0..gains.len()).max_by(|&i, &j| gains[i].total_cmp(&gains[j])) {
        if gains[i] <= 0.0 {
            break;
        }
        let right = clusters.remove(i + 1);
        clusters[i].join(right);
        gains.remove(i);
        for j in i.saturating_sub(1)..=i {
            if let (Some(gain_of), Some(pair)) = (gains.get_mut(j), clusters.get(j..j + 2)) {
                *gain_of = gain(&pair[0], &pair[1]);
            }
        }
    }
    // Then any two.
    loop {
        let pairs = (0..clusters.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
        let gained = pairs.map(|(i, j)| (gain(&clusters[i], &clusters[j]), i, j));
        match gained.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((gain, i, j)) if gain > 0.0 => {
                let other = clusters.remove(j);
                clusters[i].join(other);
            }
            _ => break,
        }
    }
    let mut map = vec![0; contexts.len()];
    for (table, cluster) in clusters.iter().enumerate() {
        cluster.members.iter().for_each(|&context| map[context] = table as u8);
    }
    (map, clusters.into_iter().map(|cluster| cluster.counts).collect())
}

/// Frequencies that sum to `SCALE`, none zero that was not.
fn normalise(counts: &Counts) -> Counts {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum::<u64>().max(1);
    let mut table = counts.map(|count| match count {
        0 => 0,
        _ => ((u64::from(count) * u64::from(SCALE) / total) as u32).max(1),
    });
    loop {
        let now: u32 = table.iter().sum();
        let Some(most) = (0..TOKENS).max_by_key(|&token| table[token]) else { break };
        match now.cmp(&SCALE) {
            std::cmp::Ordering::Less => table[most] += SCALE - now,
            std::cmp::Ordering::Equal => break,
            std::cmp::Ordering::Greater => table[most] -= (now - SCALE).min(table[most] / 2),
        }
    }
    table
}

/// A token in a table, with its frequency's reciprocal: a division for each token would take most
/// of the time.
#[derive(Clone, Copy, Default)]
struct Symbol {
    /// States from here on are shortened first.
    limit: u64,
    reciprocal: u64,
    shift: u32,
    bias: u64,
    complement: u64,
}

impl Symbol {
    fn new(frequency: u32, start: u32) -> Symbol {
        let limit = u64::from(frequency) << (63 - BITS);
        let complement = u64::from(SCALE - frequency);
        if frequency < 2 {
            // Its quotient is the state itself; the largest reciprocal gives one less.
            let bias = u64::from(start + SCALE - 1);
            return Symbol { limit, reciprocal: u64::MAX, shift: 0, bias, complement };
        }
        // The quotient of every state below 2^63 by ⌈2^(shift + 64) / frequency⌉ is exact.
        let shift = frequency.next_power_of_two().trailing_zeros() - 1;
        let divided = (1u128 << (shift + 64)).div_ceil(frequency.into());
        Symbol { limit, reciprocal: divided as u64, shift, bias: start.into(), complement }
    }

    /// (state / frequency) × 4096 + start + state % frequency.
    #[inline(always)]
    fn after(&self, state: u64) -> u64 {
        let high = ((u128::from(state) * u128::from(self.reciprocal)) >> 64) as u64;
        state + self.bias + (high >> self.shift) * self.complement
    }
}

fn symbols(table: &Counts) -> [Symbol; TOKENS] {
    let mut start = 0;
    table.map(|frequency| {
        let symbol = Symbol::new(frequency, start);
        start += frequency;
        symbol
    })
}

/// The frequencies up to the last, each a varint; a zero and how many follow it for absent ones.
fn write_table(table: &Counts, out: &mut Vec<u8>) {
    let used = table.iter().rposition(|&frequency| frequency > 0).map_or(0, |last| last + 1);
    out.push(used as u8);
    let mut token = 0;
    while token < used {
        put_varint(out, table[token].into());
        if table[token] == 0 {
            let zeros = table[token..used].iter().take_while(|&&frequency| frequency == 0).count();
            put_varint(out, zeros as u64 - 1);
            token += zeros;
        } else {
            token += 1;
        }
    }
}

fn read_table(reader: &mut Reader<'_>) -> Result<Counts> {
    let mut table = [0; TOKENS];
    let used = reader.count(TOKENS, "tokens")?;
    let (mut token, mut total) = (0, 0);
    while token < used {
        let frequency = reader.count(SCALE as usize, "frequency")? as u32;
        if frequency == 0 {
            token += 1 + reader.count(used - token - 1, "absent tokens")?;
        } else {
            table[token] = frequency;
            total += frequency;
            token += 1;
        }
    }
    if total != SCALE {
        return Err(reader.damaged(format!("frequencies sum to {total}")));
    }
    Ok(table)
}

/// A place among the 4096: the token, its frequency, and the distance from the token's start.
#[derive(Clone, Copy, Default)]
struct Slot {
    token: u8,
    frequency: u16,
    above: u16,
}

/// Reads what [`Codes::write`] or [`Codes::write_short`] wrote.
pub(super) struct Decoder<'a> {
    map: Vec<u8>,
    slots: Vec<Slot>,
    extra: BitReader<'a>,
    state: u64,
    words: &'a [u8],
    over: bool,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(reader: &mut Reader<'a>, contexts: usize) -> Result<Decoder<'a>> {
        let tables = usize::from(reader.byte()?);
        let map = reader.take(contexts)?.to_vec();
        Decoder::with_map(reader, tables, map)
    }

    pub(super) fn short(reader: &mut Reader<'a>, contexts: usize) -> Result<Decoder<'a>> {
        let tables = usize::from(reader.byte()?);
        let mut map = vec![0; contexts];
        if tables > 1 {
            let used = reader.varint()?;
            if used >> (contexts - 1) > 1 {
                return Err(reader.damaged(format!("there are more than {contexts} contexts")));
            }
            let count = used.count_ones() as usize;
            let packed = reader.take(if tables > 16 { count } else { count.div_ceil(2) })?;
            let used = (0..contexts).filter(|context| used >> context & 1 == 1);
            for (i, context) in used.enumerate() {
                map[context] =
                    if tables > 16 { packed[i] } else { packed[i / 2] >> (i % 2 * 4) & 0xF };
            }
        }
        Decoder::with_map(reader, tables, map)
    }

    fn with_map(reader: &mut Reader<'a>, tables: usize, map: Vec<u8>) -> Result<Decoder<'a>> {
        if tables > map.len() || map.iter().any(|&table| usize::from(table) >= tables.max(1)) {
            let contexts = map.len();
            return Err(
                reader.damaged(format!("there are {tables} tables for {contexts} contexts"))
            );
        }
        let mut slots = Vec::with_capacity(tables.max(1) << BITS);
        for _ in 0..tables {
            for (token, &frequency) in read_table(reader)?.iter().enumerate() {
                slots.extend((0..frequency).map(|above| Slot {
                    token: token as u8,
                    frequency: frequency as u16,
                    above: above as u16,
                }));
            }
        }
        slots.resize(tables.max(1) << BITS, Slot { frequency: 1, ..Slot::default() });
        let extra = BitReader { left: reader.part()?, held: 0, count: 0, over: false };
        let state = reader.u64()?.swap_bytes();
        let words = reader.take(reader.left())?;
        Ok(Decoder { map, slots, extra, state, words, over: false })
    }

    /// The next code, or none for a literal.
    #[inline(always)]
    pub(super) fn next(&mut self, context: usize) -> Option<u32> {
        let table = usize::from(self.map[context]);
        let slot = self.slots[table << BITS | (self.state as usize & (SCALE as usize - 1))];
        self.state = u64::from(slot.frequency) * (self.state >> BITS) + u64::from(slot.above);
        if self.state < LOW {
            match self.words.split_first_chunk::<4>() {
                Some((word, left)) => {
                    self.state = self.state << 32 | u64::from(u32::from_le_bytes(*word));
                    self.words = left;
                }
                None => self.over = true,
            }
        }
        if slot.token == LITERAL {
            return None;
        }
        let (count, code) = base(slot.token);
        Some(if count > 0 { code | self.extra.take(count) } else { code })
    }

    /// Whether more was asked for than there is.
    pub(super) fn over(&self) -> bool {
        self.over || self.extra.over
    }

    /// Whether everything was used up as an encoder would leave it.
    pub(super) fn ended_well(&self) -> bool {
        !self.over() && self.state == LOW && self.words.is_empty() && self.extra.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_divided_exactly_by_every_frequency() {
        for frequency in 1..=SCALE {
            let start = (SCALE - frequency) / 2;
            let symbol = Symbol::new(frequency, start);
            let whole = u64::from(frequency);
            let edges = (0..64)
                .flat_map(|i| [1u64 << i, (1 << i) - 1, whole << (i % 50), symbol.limit - 1 - i]);
            for state in edges.chain((1..50).map(|i| (symbol.limit / 50 * i) | 1)) {
                if (LOW..symbol.limit).contains(&state)
                    || (state < symbol.limit && state >= LOW >> 31)
                {
                    let expected = ((state / whole) << BITS) + u64::from(start) + state % whole;
                    assert_eq!(symbol.after(state), expected, "{state} by {frequency}");
                }
            }
        }
    }

    #[test]
    fn every_code_is_its_token_and_the_bits_that_follow() {
        for code in (0..100_000).chain(LARGEST - 100..=LARGEST) {
            let (token, count, bits) = token(code);
            assert_eq!((count, code), (base(token).0, base(token).1 | bits));
            assert!(token < LITERAL);
        }
    }
}
