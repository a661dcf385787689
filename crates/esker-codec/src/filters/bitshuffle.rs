//! bitshuffle: the first bits of all elements, then the second ones, and so on.

use super::shuffle::whole_elements;
use super::{BytesFilter, Described, Site, no_params, no_words};
use crate::error::Result;
use crate::scratch::Tools;

const NAME: &str = "bitshuffle";

pub(crate) struct BitShuffle;

impl Described for BitShuffle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn parse(&self, words: &[&str]) -> std::result::Result<Vec<u64>, String> {
        no_words(words)
    }

    fn show(&self, _params: &[u64]) -> String {
        String::new()
    }

    fn check(&self, params: &[u64], _site: &Site<'_>) -> std::result::Result<(), String> {
        no_params(params)
    }
}

/// Transposes an 8 × 8 matrix of bits: bit j of byte i becomes bit i of byte j (the three swaps
/// of Hacker's Delight, 7-3).
fn transpose(mut x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ t ^ (t << 28)
}

impl BytesFilter for BitShuffle {
    fn bound(&self, len: usize) -> usize {
        len
    }

    fn encode(
        &self,
        _params: &[u64],
        width: usize,
        input: &[u8],
        out: &mut Vec<u8>,
        _tools: &mut Tools,
    ) -> Result<()> {
        let start = out.len();
        out.resize(start + input.len(), 0);
        let out = &mut out[start..];
        let groups = input.len() / (8 * width);
        for (g, group) in input.chunks_exact(8 * width).enumerate() {
            for byte in 0..width {
                let column = std::array::from_fn(|i| group[i * width + byte]);
                let rows = transpose(u64::from_le_bytes(column)).to_le_bytes();
                for (bit, row) in rows.into_iter().enumerate() {
                    out[(byte * 8 + bit) * groups + g] = row;
                }
            }
        }
        let whole = groups * 8 * width;
        out[whole..].copy_from_slice(&input[whole..]);
        Ok(())
    }

    fn decode(
        &self,
        width: usize,
        input: &[u8],
        out: &mut [u8],
        _tools: &mut Tools,
    ) -> Result<usize> {
        let room = out.len();
        let out = whole_elements(NAME, width, input, out, room)?;
        let groups = input.len() / (8 * width);
        for (g, group) in out.chunks_exact_mut(8 * width).enumerate() {
            for byte in 0..width {
                let rows = std::array::from_fn(|bit| input[(byte * 8 + bit) * groups + g]);
                let column = transpose(u64::from_le_bytes(rows)).to_le_bytes();
                for (i, value) in column.into_iter().enumerate() {
                    group[i * width + byte] = value;
                }
            }
        }
        let whole = groups * 8 * width;
        out[whole..].copy_from_slice(&input[whole..]);
        Ok(input.len())
    }
}
