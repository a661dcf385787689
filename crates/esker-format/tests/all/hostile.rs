//! Headers from enemies and broken disks: whatever the bytes are, decoding gives a header or
//! an error, never a panic, and takes no more memory than the bytes justify.

use esker_format::*;
use esker_testkit::random::Random;
use esker_testkit::{cpu, damage, data, memory};

/// What decoding a prefix of so many bytes may allocate.
fn allowance(len: usize) -> usize {
    64 * len + 64 * 1024
}

/// Decodes, and holds the decoder to its promises.
fn decode(bytes: &[u8], file_len: u64) -> Result<Decoded, DecodeError> {
    let (result, used) = memory::peak(|| Header::decode_noting(bytes, file_len));
    let allowed = allowance(bytes.len());
    assert!(used <= allowed, "{used} bytes for a header of {} bytes: {bytes:?}", bytes.len());
    match &result {
        Ok(decoded) => sound(decoded, bytes, file_len),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let more = matches!(error.fault, Fault::NeedMore { .. });
            assert!(!more || (bytes.len() as u64) < file_len, "asks for more than there is");
        }
    }
    result
}

/// What a decoded header promises to those who use it.
fn sound(decoded: &Decoded, bytes: &[u8], file_len: u64) {
    let header = &decoded.header;
    let records = header.records(file_len);
    let end = header.data_end(records);
    assert!(end <= i64::MAX as u64);
    for (id, var, place) in header.vars() {
        assert!(place.begin >= header.layout.header_len);
        assert!(place.bytes <= place.vsize && place.vsize <= i64::MAX as u64);
        let last = if header.schema.is_record(var) { records } else { 1 };
        if last > 0 && header.layout.record_size >= place.bytes {
            let offset = (last - 1).checked_mul(header.layout.record_size);
            assert!(offset.and_then(|o| o.checked_add(place.begin)).is_some(), "{id:?}");
        }
        assert_eq!(header.schema.shape(var, records).len(), var.dims.len());
    }
    let _ = DataLayout::check_sizes(&header.schema);
    if decoded.tolerated.is_empty() {
        // Nothing was tolerated, so only tags of empty lists can differ, and not in length.
        let again = header.encode();
        assert_eq!(again.len() as u64, header.layout.header_len);
        let back = Header::decode(&again, file_len.max(again.len() as u64)).unwrap();
        assert_eq!(back.encode(), again);
        assert!(bytes.len() >= again.len());
    }
}

/// Valid headers to damage: random ones and those of real files.
fn seeds() -> Vec<(Vec<u8>, u64)> {
    let mut seeds = Vec::new();
    for seed in 0..400 {
        let header = damage::header(&mut Random(seed));
        let bytes = header.encode();
        seeds.push((bytes, header.data_end(header.records(0))));
    }
    for path in data::files("netcdf_classic") {
        let mut bytes = std::fs::read(&path).unwrap();
        let file_len = bytes.len() as u64;
        let header = Header::decode(&bytes, file_len).unwrap();
        bytes.truncate(header.layout.header_len as usize);
        seeds.push((bytes, file_len));
    }
    seeds
}

/// Damages headers `rounds` times from `seed` on.
fn soak(seeds: &[(Vec<u8>, u64)], seed: u64, rounds: u64) -> (u64, u64) {
    let (mut decoded, mut refused) = (0, 0);
    for round in 0..rounds {
        let random = &mut Random(seed.wrapping_add(round));
        let (bytes, file_len) = &seeds[random.below(seeds.len())];
        let mut bytes = bytes.clone();
        damage::mutate(random, &mut bytes);
        // A file that ends here, one with its data, and one that is said to be very long.
        let lengths = [bytes.len() as u64, (*file_len).max(bytes.len() as u64), 1 << 50];
        match decode(&bytes, lengths[random.below(3)]) {
            Ok(_) => decoded += 1,
            Err(_) => refused += 1,
        }
    }
    (decoded, refused)
}

#[test]
fn a_hundred_thousand_damaged_headers_decode_or_are_refused() {
    let (decoded, refused) = soak(&seeds(), 1 << 32, 100_000);
    // Both happen often, or the damage is not what it should be.
    assert!(decoded > 10_000 && refused > 10_000, "{decoded} decoded, {refused} refused");
}

#[test]
fn headers_come_back_byte_for_byte() {
    for seed in 0..2_000 {
        let header = damage::header(&mut Random(seed));
        let bytes = header.encode();
        let file_len = header.data_end(3);
        let decoded = decode(&bytes, file_len).unwrap();
        assert_eq!(decoded.tolerated, []);
        // Not by `==`: attributes may hold NaN.
        assert_eq!(decoded.header.encode(), bytes);
        assert_eq!(decoded.header.layout, header.layout);
        assert_eq!(decoded.header.numrecs, header.numrecs);
    }
}

#[test]
fn headers_of_real_files_come_back_byte_for_byte() {
    for path in data::files("netcdf_classic") {
        let bytes = std::fs::read(&path).unwrap();
        let decoded = decode(&bytes, bytes.len() as u64).unwrap();
        // A name with zero bytes behind it is written again without them.
        let cut = |fault: &str| fault.starts_with("zero bytes");
        let untouched =
            |e: &DecodeError| matches!(&e.fault, Fault::Name { fault, .. } if !cut(fault));
        if decoded.tolerated.iter().all(untouched) {
            let len = decoded.header.layout.header_len as usize;
            assert_eq!(decoded.header.encode(), bytes[..len], "{}", path.display());
        }
    }
}

#[test]
fn every_prefix_of_a_header_asks_for_more_or_is_cut() {
    for seed in 0..60 {
        let header = damage::header(&mut Random(seed));
        let bytes = header.encode();
        for len in 0..bytes.len() {
            let cut = decode(&bytes[..len], len as u64).unwrap_err();
            let is_cut = matches!(cut.fault, Fault::Truncated { .. } | Fault::Count { .. });
            assert!(is_cut, "{cut}");
            let more = decode(&bytes[..len], header.data_end(2)).unwrap_err();
            assert!(matches!(more.fault, Fault::NeedMore { at_least } if at_least > len as u64));
        }
    }
}

#[test]
fn the_malformed_corpus_is_refused_or_noted() {
    // These two are sound files; what is odd about them is their content.
    let sound = ["empty_double_attr.nc", "testBadTimeUnit.nc"];
    // Decode, and are found out by their sizes: a variable too large, bytes after the data.
    let sizes = ["bad_large_fixed_var.nc2", "bad_large_rec_var.nc2", "-bad.nc"];
    for path in data::files("malformed_classic") {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expect_noted = !sound.iter().chain(&sizes).any(|s| name.ends_with(s));
        match decode(&bytes, bytes.len() as u64) {
            Ok(decoded) => assert_eq!(!decoded.tolerated.is_empty(), expect_noted, "{name}"),
            Err(error) => assert!(expect_noted, "{name}: {error}"),
        }
    }
}

/// A CDF header whose lists are given word by word.
fn words(version: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![b'C', b'D', b'F', version];
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

#[test]
fn a_name_of_four_gigabytes_in_193_bytes_is_refused_before_it_is_allocated() {
    // netcdf-c pull request 3377: the length of an attribute's name in a CDF-2 file.
    for len in [u32::MAX, 0xffff_ff00, 0x7fff_ffff, 0x7fff_fff0, 186] {
        let mut bytes = words(2, &[0, 0, 0, 0x0c, 1, len]);
        bytes.resize(193, b'n');
        let error = decode(&bytes, 193).unwrap_err();
        assert_eq!(error.offset, 24, "{error}");
        // The same when the rest of a long file was not read yet.
        let error = decode(&bytes, 1 << 40).unwrap_err();
        let asks = matches!(error.fault, Fault::NeedMore { .. });
        assert_eq!(asks, len < 0x8000_0000, "{error}");
    }
}

#[test]
fn a_file_of_thirteen_bytes_is_refused() {
    // netcdf-c pull request 3376: nothing, or nearly nothing, after the number of records.
    for version in [1, 2, 5] {
        for len in 0..=24 {
            let mut bytes = words(version, &[0xb9, 0x8dff_ff08, 0xdb00_0000]);
            bytes.resize(len, 0xff);
            let error = decode(&bytes, len as u64).unwrap_err();
            assert!(error.offset <= len as u64, "{error}");
        }
    }
}

#[test]
fn lengths_whose_product_overflows_are_refused() {
    // netcdf-c pull request 3421: elements times their size, and offset plus length.
    for count in [1u64 << 61, (1 << 61) + 1, 1 << 62, i64::MAX as u64, i64::MAX as u64 - 32] {
        for ty in ExternalType::ALL {
            let (high, low) = ((count >> 32) as u32, count as u32);
            let name = u32::from_be_bytes(*b"n\0\0\0");
            let list = [0, 0, 0, 0, 0, 0x0c, 0, 1, 0, 1, name, ty.code(), high, low];
            let mut bytes = words(5, &list);
            bytes.resize(256, 0);
            for file_len in [256, i64::MAX as u64, u64::MAX] {
                assert!(decode(&bytes, file_len).is_err());
            }
        }
    }
    // The number of dimensions, attributes and variables, and of a variable's dimensions.
    for count in [u32::MAX, 0x8000_0000, 0x7fff_ffff, 0x2000_0001, 0x1000_0001] {
        let lists: [&[u32]; 4] = [
            &[0, 0x0a, count],
            &[0, 0, 0, 0x0c, count],
            &[0, 0, 0, 0, 0, 0x0b, count],
            &[0, 0, 0, 0, 0, 0x0b, 1, 1, 0x7600_0000, count],
        ];
        for list in lists {
            for version in [1, 2] {
                let mut bytes = words(version, list);
                let at = bytes.len() as u64 - 4;
                bytes.resize(bytes.len() + 64, 0);
                let error = decode(&bytes, bytes.len() as u64).unwrap_err();
                assert_eq!(error.offset, at, "{error}");
            }
        }
    }
}

#[test]
fn shapes_and_records_whose_size_overflows_are_refused() {
    let mut schema = Schema::new(Version::Cdf5);
    let t = schema.add_dim("t", DimLen::Unlimited).unwrap();
    let x = schema.add_dim("x", DimLen::Fixed(4)).unwrap();
    schema.add_var("v", ExternalType::Double, &[t, x, x]).unwrap();
    schema.add_var("w", ExternalType::Byte, &[t]).unwrap();
    let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
    let header = Header { schema, numrecs: NumRecs::Count(1), layout };
    let bytes = header.encode();
    let with = |find: &[u8], put: &[u8]| {
        let at = bytes.windows(find.len()).position(|w| w == find).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + put.len()].copy_from_slice(put);
        decode(&bytes, 1 << 40)
    };
    let length = 4u64.to_be_bytes();
    for len in [1u64 << 32, 1 << 61, i64::MAX as u64] {
        assert_eq!(with(&length, &len.to_be_bytes()).unwrap_err().fault, Fault::SizeOverflow);
    }
    let one = [b"CDF\x05".as_slice(), &1u64.to_be_bytes()].concat();
    for records in [1u64 << 58, i64::MAX as u64] {
        let put = [b"CDF\x05".as_slice(), &records.to_be_bytes()].concat();
        assert_eq!(with(&one, &put).unwrap_err().fault, Fault::SizeOverflow);
    }
}

#[test]
fn dimensions_of_cdf_2_may_be_longer_than_31_bits() {
    // As netCDF-C 4.9 writes them for a dimension of 3,000,000,000.
    let name = u32::from_be_bytes(*b"x\0\0\0");
    let list = [0, 0x0a, 1, 1, name, 3_000_000_000, 0, 0, 0, 0];
    let header = decode(&words(2, &list), 44).unwrap().header;
    assert_eq!(header.schema.dims.as_slice()[0].len, DimLen::Fixed(3_000_000_000));
    assert_eq!(header.encode(), words(2, &list));
    let error = decode(&words(1, &list), 44).unwrap_err();
    assert!(matches!(error.fault, Fault::Negative { .. }));
}

#[test]
fn many_small_objects_cost_in_proportion() {
    // The densest header: dimensions with names of one to three bytes, all of them odd.
    for count in [1_000u32, 100_000] {
        let mut list = vec![0, 0x0a, count];
        for i in 0..count {
            // Three bytes that are not UTF-8, then padding that is not zero.
            list.extend([3, 0xc1c1_c1ff ^ (i << 8), 1]);
        }
        list.extend([0, 0, 0, 0]);
        let bytes = words(1, &list);
        let (_, time) = cpu::of_this_thread(|| decode(&bytes, bytes.len() as u64));
        assert!(time.as_secs() < 10, "{time:?}");
    }
}
