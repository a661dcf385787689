//! bitshuffle: the first bits of all elements, then the second ones, and so on.

use super::shuffle::whole_elements;
use super::{BytesFilter, Described};
use crate::error::Result;
use crate::scratch::Tools;

const NAME: &str = "bitshuffle";

pub(crate) struct BitShuffle;

impl Described for BitShuffle {
    fn name(&self) -> &'static str {
        NAME
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
        for (b, block) in input[..groups * 8 * width].chunks(8 * 8 * width).enumerate() {
            for byte in 0..width {
                // Eight groups together, so that eight bytes of a row are written at once.
                let mut rows = [[0; 8]; 8];
                for (g, group) in block.chunks_exact(8 * width).enumerate() {
                    let column = std::array::from_fn(|i| group[i * width + byte]);
                    let bits = transpose(u64::from_le_bytes(column)).to_le_bytes();
                    rows.iter_mut().zip(bits).for_each(|(row, bits)| row[g] = bits);
                }
                let count = block.len() / (8 * width);
                for (bit, row) in rows.iter().enumerate() {
                    let start = (byte * 8 + bit) * groups + b * 8;
                    out[start..start + count].copy_from_slice(&row[..count]);
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
        for (b, block) in out[..groups * 8 * width].chunks_mut(8 * 8 * width).enumerate() {
            let count = block.len() / (8 * width);
            for byte in 0..width {
                let mut rows = [[0; 8]; 8];
                for (bit, row) in rows.iter_mut().enumerate() {
                    let start = (byte * 8 + bit) * groups + b * 8;
                    row[..count].copy_from_slice(&input[start..start + count]);
                }
                for (g, group) in block.chunks_exact_mut(8 * width).enumerate() {
                    let bits = rows.map(|row| row[g]);
                    let column = transpose(u64::from_le_bytes(bits)).to_le_bytes();
                    column.iter().enumerate().for_each(|(i, &x)| group[i * width + byte] = x);
                }
            }
        }
        let whole = groups * 8 * width;
        out[whole..].copy_from_slice(&input[whole..]);
        Ok(input.len())
    }
}
