//! Which variable and record has a byte of the file: the same as a scan over all variables finds.

use esker_format::{
    Alignment, At, DataLayout, DimLen, ExternalType, FileOrder, Header, NumRecs, Placement, Schema,
    VarId, Version,
};
use proptest::prelude::*;

/// A variable of the test: the type, a length, whether it is a record variable.
type Kind = (usize, u64, bool);

fn schema(kinds: &[Kind]) -> Schema {
    let types = [ExternalType::Byte, ExternalType::Short, ExternalType::Int, ExternalType::Double];
    let mut schema = Schema::new(Version::Cdf5);
    let time = schema.add_dim("t", DimLen::Unlimited).unwrap();
    for (i, (ty, len, record)) in kinds.iter().enumerate() {
        let dim = schema.add_dim(&format!("d{i}"), DimLen::Fixed(*len)).unwrap();
        let dims = if *record { vec![time, dim] } else { vec![dim] };
        schema.add_var(&format!("v{i}"), types[*ty], &dims).unwrap();
    }
    schema
}

fn placed(kinds: &[Kind], var: u64, records: u64) -> Header {
    let schema = schema(kinds);
    let align = Alignment { variable: var, records, ..Alignment::default() };
    let layout = DataLayout::place(&schema, &align).unwrap();
    Header { schema, numrecs: NumRecs::Count(3), layout }
}

/// Every variable that has the byte, found by looking at all of them.
fn scan(header: &Header, byte: u64) -> Vec<At> {
    let size = header.layout.record_size;
    let has = |(var, variable, place): (VarId, _, &Placement)| {
        let behind = byte.checked_sub(place.begin)?;
        let (record, padded) = match header.schema.is_record(variable) {
            true => (behind.checked_div(size)?, place.vsize.min(size).max(place.bytes)),
            false => (0, place.vsize),
        };
        let begin = place.begin + record * size;
        let at = At { var, record, begin, bytes: place.bytes, padded };
        (place.bytes > 0 && byte - begin < padded).then_some(at)
    };
    header.vars().filter_map(has).collect()
}

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    prop::collection::vec((0usize..4, 1u64..8, any::<bool>()), 0..7)
}

proptest! {
    #[test]
    fn every_byte_has_the_variable_that_a_scan_finds(
        kinds in kinds(),
        align in (prop::sample::select(vec![1u64, 4, 16, 100]), 1u64..64),
    ) {
        let header = placed(&kinds, align.0, align.1);
        let order = FileOrder::of(&header);
        let end = header.data_end(4) + 20;
        let mut next = None;
        for byte in (0..end).rev() {
            let found = scan(&header, byte);
            prop_assert!(found.len() <= 1);
            prop_assert_eq!(order.at(byte), found.first().copied(), "byte {}", byte);
            prop_assert_eq!(header.at(byte), found.first().copied());
            next = found.first().copied().or(next);
            // Behind the last byte of the scan lies a record that it has not come to.
            if next.is_some() {
                prop_assert_eq!(order.at_or_after(byte), next, "from byte {}", byte);
            }
        }
    }

    #[test]
    fn variables_that_overlap_are_found_all_the_same(
        kinds in kinds(),
        begins in prop::collection::vec(100u64..200, 7),
    ) {
        let mut header = placed(&kinds, 4, 4);
        for (place, begin) in header.layout.places.iter_mut().zip(begins) {
            place.begin = begin;
        }
        let records = header.vars().filter(|(_, v, _)| header.schema.is_record(v));
        header.layout.record_begin = records.map(|(_, _, place)| place.begin).min();
        let order = FileOrder::of(&header);
        for byte in 0..600 {
            let all = scan(&header, byte);
            match order.at(byte) {
                Some(at) => prop_assert!(all.contains(&at), "byte {byte}: {at:?}, not {all:?}"),
                None => prop_assert_eq!(all, [], "byte {}", byte),
            }
            if let Some(at) = order.at_or_after(byte) {
                prop_assert!(at.padded_end() > byte);
                prop_assert!(at.begin <= byte || (byte..at.begin).all(|b| scan(&header, b).is_empty()));
            }
        }
    }
}

#[test]
fn a_lone_record_variable_has_no_padding() {
    let header = placed(&[(0, 3, true)], 4, 4);
    let begin = header.layout.record_begin.unwrap();
    assert_eq!(header.layout.record_size, 3);
    for byte in 0..30 {
        let at = header.at(begin + byte).unwrap();
        assert_eq!((at.var, at.record, at.begin), (VarId(0), byte / 3, begin + byte / 3 * 3));
        assert_eq!((at.end(), at.padded_end()), (at.begin + 3, at.begin + 3));
    }
    assert_eq!(header.at(begin - 1), None);
}

#[test]
fn header_and_what_is_behind_the_end_belong_to_nobody() {
    let header = placed(&[(0, 3, false), (2, 1, false)], 4, 4);
    let begin = header.layout.places[0].begin;
    assert_eq!(header.at(0), None);
    assert_eq!(header.at(begin - 1), None);
    // The fourth byte is padding.
    let first = At { var: VarId(0), record: 0, begin, bytes: 3, padded: 4 };
    assert_eq!((header.at(begin), header.at(begin + 3)), (Some(first), Some(first)));
    let last = begin + 7;
    assert_eq!(header.at(last).map(|at| at.var), Some(VarId(1)));
    assert_eq!(header.at(last + 1), None);
    assert_eq!(FileOrder::of(&header).at_or_after(last + 1), None);
    assert_eq!(header.at(u64::MAX), None);
}

#[test]
fn the_last_byte_that_there_can_be_is_asked_without_overflow() {
    let header = placed(&[(0, 3, true), (3, 5, true)], 4, 4);
    let order = FileOrder::of(&header);
    for byte in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
        let _ = (order.at(byte), order.at_or_after(byte));
    }
    let none = FileOrder::of(&placed(&[], 4, 4));
    assert_eq!((none.at(1000), none.at_or_after(0)), (None, None));
}

#[test]
fn records_that_are_not_there_belong_to_nobody() {
    let header = placed(&[(0, 3, true), (3, 5, true)], 4, 4);
    let mut order = FileOrder::of(&header);
    order.set_records(2);
    let end = header.data_end(2);
    assert_eq!(order.at(end - 1).map(|at| (at.var, at.record)), Some((VarId(1), 1)));
    assert_eq!((order.at(end), order.at_or_after(end)), (None, None));
}
