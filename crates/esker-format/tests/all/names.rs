//! Names as files have them.

use esker_format::*;

/// A header with one dimension, whose name netCDF-C renamed in place from `old` to `new`.
fn renamed_in_place(old: &str, new: &str) -> Vec<u8> {
    let mut schema = Schema::new(Version::Cdf2);
    schema.add_dim(old, DimLen::Fixed(7)).unwrap();
    let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
    let mut bytes = Header { schema, numrecs: NumRecs::Count(0), layout }.encode();
    let at = bytes.windows(old.len()).position(|w| w == old.as_bytes()).unwrap();
    bytes[at..at + old.len()].fill(0);
    bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    bytes
}

#[test]
fn a_name_ends_at_its_first_zero_byte() {
    let bytes = renamed_in_place("polarity", "pp");
    let decoded = Header::decode_noting(&bytes, bytes.len() as u64).unwrap();
    assert_eq!(&*decoded.header.schema.dims.as_slice()[0].name, "pp");
    assert_eq!(decoded.header.layout.header_len, bytes.len() as u64);
    let said: Vec<String> = decoded.tolerated.iter().map(|e| e.to_string()).collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("zero bytes after it"), "{said:?}");
    // Written again, it has the length that it looks as if it had.
    let again = decoded.header.encode();
    let clean = Header::decode_noting(&again, again.len() as u64).unwrap();
    assert_eq!(clean.tolerated, []);
    assert_eq!(clean.header.schema, decoded.header.schema);
}
