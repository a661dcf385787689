//! Random headers, and random damage to them. The same seed gives the same ones everywhere.

use esker_format::*;

use crate::random::Random;

/// A valid header with up to a few of everything.
pub fn header(random: &mut Random) -> Header {
    let version = random.pick(&Version::ALL);
    let types: Vec<ExternalType> =
        ExternalType::ALL.into_iter().filter(|ty| version.has_type(*ty)).collect();
    let mut schema = Schema::new(version);
    let unlimited = random.below(8);
    let dims: Vec<DimId> = (0..random.below(7))
        .map(|i| {
            let fixed = DimLen::Fixed(1 + random.below(9) as u64);
            let len = if i == unlimited { DimLen::Unlimited } else { fixed };
            schema.add_dim(&name(random, i), len).unwrap()
        })
        .collect();
    for i in 0..random.below(4) {
        attribute(random, &mut schema, Owner::Global, i, &types);
    }
    for i in 0..random.below(7) {
        let rank = random.below(4).min(dims.len());
        let chosen: Vec<DimId> = (0..rank).map(|_| random.pick(&dims)).collect();
        // The record dimension stands first or not at all.
        let record = schema.record_dim();
        let late = chosen.iter().skip(1).any(|d| Some(*d) == record);
        let chosen = if late { Vec::new() } else { chosen };
        let var = schema.add_var(&name(random, i), random.pick(&types), &chosen).unwrap();
        for j in 0..random.below(3) {
            attribute(random, &mut schema, var.into(), j, &types);
        }
    }
    let align = Alignment {
        header: random.pick(&[4, 4, 512]),
        variable: random.pick(&[4, 4, 64]),
        records: random.pick(&[4, 4, 128]),
        header_room: random.pick(&[0, 0, 100]),
        record_room: 0,
        records_from: 0,
        never_back: random.below(2) == 1,
    };
    let layout = DataLayout::place(&schema, &align).unwrap();
    let records = random.below(4) as u64;
    let numrecs = if random.below(8) == 0 { NumRecs::Streaming } else { NumRecs::Count(records) };
    Header { schema, numrecs, layout }
}

fn name(random: &mut Random, number: usize) -> String {
    let ending = random.pick(&["", "x", "_of", " °C", "温度", "e.(1)+"]);
    format!("{}{number}{ending}", random.pick(&["a", "Δ", "_", "long_name_"]))
}

fn attribute(
    random: &mut Random,
    schema: &mut Schema,
    owner: Owner,
    number: usize,
    types: &[ExternalType],
) {
    let ty = random.pick(types);
    let len = random.below(6);
    let bytes: Vec<u8> = (0..len * ty.size() as usize).map(|_| random.next() as u8).collect();
    let values = Values::decode(ty, len, &bytes).unwrap();
    schema.put_attr(owner, &name(random, number), values).unwrap();
}

/// Damages `bytes` in one to four ways.
pub fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.pick(&[1, 1, 1, 2, 4]) {
        let at = random.below(bytes.len());
        // Numbers of the header lie at multiples of four.
        let word = at / 4 * 4;
        match random.below(8) {
            _ if bytes.len() < 16 => bytes.push(random.next() as u8),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'/', 0x0a, 0x0b, 0x0c]),
            2 => bytes.truncate(at),
            3 => {
                let new = (0..random.below(9)).map(|_| random.next() as u8).collect::<Vec<_>>();
                bytes.splice(at..at, new);
            }
            4 => {
                let other = random.below(bytes.len() - 4) / 4 * 4;
                for i in 0..4 {
                    if word + i < bytes.len() {
                        bytes.swap(word + i, other + i);
                    }
                }
            }
            5 => huge(random, bytes, word),
            6 => {
                let end = (at + random.below(16)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let end = (at + random.below(64)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
}

/// Puts a number there that a reader should not believe.
fn huge(random: &mut Random, bytes: &mut [u8], word: usize) {
    let number = random.pick(&[
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0xffff_fffc,
        0x1000_0000,
        0x2000_0000,
        0x0001_0000,
        0x1fff_ffff_ffff_ffff,
        0x2000_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        u64::MAX - 3,
    ]);
    let long = random.below(2) == 0 || number > u64::from(u32::MAX);
    let encoded =
        if long { number.to_be_bytes().to_vec() } else { (number as u32).to_be_bytes().to_vec() };
    for (target, byte) in bytes[word..].iter_mut().zip(encoded) {
        *target = byte;
    }
}
