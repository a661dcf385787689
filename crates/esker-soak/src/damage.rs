//! Damage that is aimed: at bits, numbers, entries, sectors and blocks of a structure.

use esker_testkit::random::Random;

use crate::structures::{Files, Place};

/// Sizes that entries of tables, frames and lists have.
const SIZES: [usize; 8] = [4, 8, 16, 24, 32, 40, 48, 64];
const SECTOR: usize = 512;

/// Damages one of the places, or two of them; says how. `None` if nothing has changed.
pub(crate) fn aim(random: &mut Random, files: &mut Files, places: &[Place]) -> Option<String> {
    let before = files.clone();
    let place = places.get(random.below(places.len()))?;
    let other = places.get(random.below(places.len()))?;
    let what = damage(random, files, place, other)?;
    (*files != before).then(|| format!("{what} in {}", place.file.display()))
}

fn damage(random: &mut Random, files: &mut Files, place: &Place, other: &Place) -> Option<String> {
    let (from, len) = (place.bytes.start, place.bytes.len());
    let second = files.get(&other.file)?.get(other.bytes.clone())?.to_vec();
    let bytes = files.get_mut(&place.file)?;
    let part = &mut bytes[place.bytes.clone()];
    let size = random.pick(&SIZES).min(len);
    let at = random.below(len / size) * size;
    let to = random.below(len / size) * size;
    Some(match random.below(12) {
        0 | 1 => {
            let (byte, bit) = (random.below(len), random.below(8));
            part[byte] ^= 1 << bit;
            format!("bit {bit} of byte {} flipped", from + byte)
        }
        2 => {
            part[at..at + size].fill(0);
            format!("{size} bytes at {} zeroed", from + at)
        }
        3 => {
            // Sectors of the file, as a disk has them.
            let sector = (from + random.below(len)) / SECTOR * SECTOR;
            let end = (sector + SECTOR).min(bytes.len());
            let inside = sector.max(from)..end.min(from + len);
            bytes[inside].fill(0);
            format!("sector at {sector} zeroed")
        }
        4 => {
            for i in 0..size {
                part.swap(at + i, to + i);
            }
            format!("{size} bytes at {} and {} exchanged", from + at, from + to)
        }
        5 => {
            let copy = part[at..at + size].to_vec();
            part[to..to + size].copy_from_slice(&copy);
            format!("{size} bytes at {} copied to {}", from + at, from + to)
        }
        6 | 7 => number(random, part, from),
        8 => {
            let n = part.len().min(second.len());
            let first = part[..n].to_vec();
            part[..n].copy_from_slice(&second[..n]);
            let target = files.get_mut(&other.file)?;
            target[other.bytes.start..other.bytes.start + n].copy_from_slice(&first);
            format!("{n} bytes at {from} exchanged with {}", other.file.display())
        }
        9 => {
            let byte = random.below(len);
            part[byte] = random.pick(&[0, 1, 0x7f, 0x80, 0xff]);
            format!("byte {} set to {}", from + byte, part[byte])
        }
        10 => {
            let end = from + random.below(len);
            bytes.truncate(end);
            format!("cut at {end}")
        }
        _ => {
            let end = (at + 1 + random.below(64)).min(len);
            (at..end).for_each(|i| part[i] = random.next() as u8);
            format!("{} random bytes at {}", end - at, from + at)
        }
    })
}

/// Changes one number, of four or eight bytes, in either order, to a near or an odd one.
fn number(random: &mut Random, part: &mut [u8], from: usize) -> String {
    let width = if part.len() >= 8 && random.one_in(2) { 8 } else { 4 };
    let at = random.below(part.len() / 4 - (width / 4 - 1)) * 4;
    let big = !random.one_in(4);
    let field = &mut part[at..at + width];
    let old = field.iter().fold((0u64, 0u64), |(big, little), byte| {
        (big << 8 | u64::from(*byte), little >> 8 | u64::from(*byte) << 56)
    });
    let old = if big { old.0 } else { old.1 >> (64 - 8 * width) };
    let new = match random.below(7) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(2),
        3 => old / 2,
        4 => 0,
        5 => old ^ (1 << random.below(8 * width)),
        _ => random.next() >> (64 - 8 * width),
    };
    let bytes = if big { (new << (64 - 8 * width)).to_be_bytes() } else { new.to_le_bytes() };
    field.copy_from_slice(&bytes[..width]);
    format!("number at {} from {old} to {new}", from + at)
}
