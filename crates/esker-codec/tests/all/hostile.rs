//! Stored bytes that no encoder made are an error or elements: never a panic, a hang or an
//! allocation beyond what the chunk justifies.

use crate::common::{LOSSLESS, LOSSY, pipeline};
use esker_codec::{Bound, Chunk, Coarse, FilterMask, Packing, Patches, Scratch};
use esker_format::ExternalType;
use esker_testkit::memory;
use esker_testkit::random::Random;

/// Changes some bytes, cuts, grows, or repeats a part.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => (0..random.below(20)).for_each(|_| bytes.push(random.next() as u8)),
            2 => {
                let end = (at + random.below(40)).min(bytes.len());
                let part = bytes[at.min(end)..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, part);
            }
            3 | 4 => bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|b| *b = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)]),
            5 => {
                // Headers are where lengths stand.
                let at = random.below(24).min(bytes.len().saturating_sub(1));
                bytes.iter_mut().skip(at).take(1).for_each(|b| *b = random.next() as u8);
            }
            _ => bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << random.below(8)),
        }
    }
}

/// Elements of the type: a field with noise and, among reals, some fill values.
fn elements(ty: ExternalType, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count {
        let value = (i as f64 / 7.0).sin() * 50.0 + (i * 7919 % 13) as f64 / 10.0;
        match ty {
            ExternalType::Float if i % 50 == 3 => bytes.extend(f32::NAN.to_be_bytes()),
            ExternalType::Float if i % 40 > 36 => bytes.extend((-1e34f32).to_be_bytes()),
            ExternalType::Float => bytes.extend((value as f32).to_be_bytes()),
            ExternalType::Double => bytes.extend(value.to_be_bytes()),
            _ => bytes.extend(&(value as i64).to_be_bytes()[8 - ty.size() as usize..]),
        }
    }
    bytes
}

#[test]
fn mutated_chunks_are_errors_or_elements() {
    let rounds =
        std::env::var("ESKER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut scratch = Scratch::new();
    let shapes: [&[usize]; 3] = [&[700], &[20, 35], &[5, 7, 4, 5]];
    let (mut refused, mut passed) = (0, 0);
    for text in LOSSLESS.iter().chain(LOSSY) {
        let pipeline = pipeline(text);
        for ty in
            [ExternalType::Float, ExternalType::Double, ExternalType::Int, ExternalType::UByte]
        {
            for shape in shapes {
                let chunk = Chunk::new(ty, shape);
                if pipeline.check(&chunk).is_err() {
                    continue;
                }
                let bytes = elements(ty, 700);
                let mut stored = Vec::new();
                let encoded =
                    pipeline.encode(&chunk, &bytes, &mut stored, &mut scratch).expect("good");
                let mut out = vec![0; bytes.len()];
                let mut damage = || {
                    for _ in 0..rounds {
                        let mut bad = stored.clone();
                        mutate(&mut random, &mut bad);
                        let mask = match random.below(20) {
                            0 => FilterMask(random.next() as u16),
                            _ => encoded.mask,
                        };
                        match pipeline.decode(&chunk, mask, &bad, &mut out, &mut scratch) {
                            Ok(()) => passed += 1,
                            Err(_) => refused += 1,
                        }
                    }
                };
                // Tables of the sz codec, and contexts of zstd and deflate, are the largest.
                let ((), largest) = memory::largest(&mut damage);
                assert!(largest < 2 << 20, "{text} {ty}: an allocation of {largest} bytes");
                // And the scratch is as good as before.
                pipeline
                    .decode(&chunk, encoded.mask, &stored, &mut out, &mut scratch)
                    .expect("good");
            }
        }
    }
    println!("{refused} refused, {passed} decoded to something");
}

#[test]
fn every_flipped_bit_is_an_error_under_crc32c() {
    let chunk = Chunk::new(ExternalType::Float, &[64]);
    let bytes = elements(ExternalType::Float, 64);
    let mut scratch = Scratch::new();
    for text in [
        "crc32c",
        "shuffle zstd crc32c",
        "sz,abs=0.1 crc32c",
        "zfp,accuracy=0.1 crc32c",
        "pco crc32c",
    ] {
        let pipeline = pipeline(text);
        let (mut stored, mut out) = (Vec::new(), vec![0; bytes.len()]);
        let encoded = pipeline.encode(&chunk, &bytes, &mut stored, &mut scratch).expect("good");
        for bit in 0..stored.len() * 8 {
            stored[bit / 8] ^= 1 << (bit % 8);
            assert!(
                pipeline.decode(&chunk, encoded.mask, &stored, &mut out, &mut scratch).is_err(),
                "{text}: bit {bit}"
            );
            assert_ne!(esker_codec::checksum(&stored), encoded.crc32c);
            stored[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn a_bomb_is_refused_without_being_inflated() {
    let mut scratch = Scratch::new();
    let large = Chunk::new(ExternalType::UByte, &[64 << 20]);
    let zeros = vec![0; 64 << 20];
    for text in ["deflate,9", "zstd,3", "lz4"] {
        let pipeline = pipeline(text);
        let mut bomb = Vec::new();
        pipeline.encode(&large, &zeros, &mut bomb, &mut scratch).expect("good");
        for text in [text.to_string(), format!("{text} deflate"), format!("zstd {text}")] {
            let pipeline = crate::common::pipeline(&text);
            let (small, mut out) = (Chunk::new(ExternalType::UByte, &[1000]), vec![0; 1000]);
            let (refused, largest) = memory::largest(|| {
                let mut fresh = Scratch::new();
                pipeline.decode(&small, FilterMask(0), &bomb, &mut out, &mut fresh).is_err()
            });
            assert!(refused);
            assert!(largest < 1 << 20, "{text}: an allocation of {largest} bytes");
        }
    }
}

#[test]
fn mutated_patches_are_errors_or_elements() {
    let rounds =
        std::env::var("ESKER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let mut random = Random(0x51ED_270B_9E37_79B9);
    let mut scratch = Scratch::new();
    let shapes: [&[usize]; 4] = [&[700], &[20, 35], &[5, 7, 4, 5], &[3, 3, 3, 5, 6]];
    let (mut refused, mut passed) = (0, 0);
    for coarse in [Coarse::Sample, Coarse::Mean, Coarse::Spline] {
        for packing in [Packing::Small, Packing::Fast] {
            for ty in [ExternalType::Float, ExternalType::Double, ExternalType::Short] {
                let layers = if ty == ExternalType::Float { 3 } else { 1 };
                let patches = Patches::new(3)
                    .coarse(coarse)
                    .packing(packing)
                    .bound(Bound::Absolute(0.01))
                    .layers(layers);
                for shape in shapes {
                    let chunk = Chunk::new(ty, shape);
                    let bytes = elements(ty, shape.iter().product());
                    let mut stored = Vec::new();
                    let infos = patches
                        .encode(&chunk, &[], None, &bytes, &mut stored, &mut scratch)
                        .expect("good");
                    let mut streams = Vec::new();
                    for info in &infos {
                        let rest = stored.split_off(info.bytes);
                        streams.push(std::mem::replace(&mut stored, rest));
                    }
                    let mut out = vec![0; bytes.len()];
                    let mut damage = || {
                        for _ in 0..rounds {
                            let mut bad = streams.clone();
                            for _ in 0..1 + random.below(2) {
                                let which = random.below(bad.len());
                                match random.below(12) {
                                    0 => bad.swap(which, 0),
                                    1 => bad[which].clear(),
                                    _ if bad[which].is_empty() => bad[which].push(7),
                                    _ => mutate(&mut random, &mut bad[which]),
                                }
                            }
                            let bad: Vec<&[u8]> = bad.iter().map(Vec::as_slice).collect();
                            let layer = layers - 1;
                            match patches.decode(&chunk, 0, layer, &bad, &mut out, &mut scratch) {
                                Ok(()) => passed += 1,
                                Err(_) => refused += 1,
                            }
                        }
                    };
                    let ((), largest) = memory::largest(&mut damage);
                    assert!(largest < 2 << 20, "{coarse:?} {ty}: an allocation of {largest} bytes");
                    let good: Vec<&[u8]> = streams.iter().map(Vec::as_slice).collect();
                    patches
                        .decode(&chunk, 0, layers - 1, &good, &mut out, &mut scratch)
                        .expect("good");
                }
            }
        }
    }
    println!("{refused} refused, {passed} decoded to something");
}
