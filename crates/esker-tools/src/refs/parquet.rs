//! A Parquet file of references: the columns `path`, `offset` and `size`, a row for each chunk.
//!
//! One row group, one page for each column. `path` may be missing (no such chunk) and is the same
//! in all rows of a file that has none but ours, so it is a dictionary of one entry and two runs
//! of numbers; offsets and sizes are plain 64-bit integers. Pages are compressed by zstd.

use std::io;

use super::thrift::{Struct, varint};

const MAGIC: &[u8; 4] = b"PAR1";
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const ZSTD: i32 = 6;

/// One row: where a chunk lies, or that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// The number of its path, offset and size.
    pub(super) place: Option<(u32, u64, u64)>,
}

/// The bytes of a file with these rows, whose paths are these.
pub(super) fn file(paths: &[&str], rows: &[Row]) -> io::Result<Vec<u8>> {
    let mut out = MAGIC.to_vec();
    let count = rows.len();
    let path = path_column(&mut out, paths, rows)?;
    let number = |of: fn((u32, u64, u64)) -> u64| {
        rows.iter().flat_map(|row| row.place.map_or(0, of).to_le_bytes()).collect::<Vec<u8>>()
    };
    let offset = number_column(&mut out, "offset", count, &number(|place| place.1))?;
    let size = number_column(&mut out, "size", count, &number(|place| place.2))?;

    let total = [&path, &offset, &size].iter().map(|column| column.uncompressed).sum();
    let columns = [path, offset, size].into_iter().map(Column::described).collect();
    let group = Struct::new().structs(1, columns).i64(2, total).i64(3, count as i64);
    let number = |name| Struct::new().i32(1, INT64).i32(3, REQUIRED).text(4, name);
    let schema = vec![
        Struct::new().text(4, "schema").i32(5, 3),
        Struct::new().i32(1, BYTE_ARRAY).i32(3, OPTIONAL).text(4, "path").i32(6, UTF8),
        number("offset"),
        number("size"),
    ];
    let footer = Struct::new()
        .i32(1, 1)
        .structs(2, schema)
        .i64(3, count as i64)
        .structs(4, vec![group])
        .text(6, concat!("esker version ", env!("CARGO_PKG_VERSION")))
        .end();
    out.extend(&footer);
    out.extend((footer.len() as u32).to_le_bytes());
    out.extend(MAGIC);
    Ok(out)
}

/// What the footer says of a column.
struct Column {
    name: &'static str,
    ty: i32,
    encodings: &'static [i32],
    count: usize,
    uncompressed: i64,
    compressed: i64,
    dictionary_at: Option<usize>,
    data_at: usize,
}

impl Column {
    fn described(self) -> Struct {
        let first = self.dictionary_at.unwrap_or(self.data_at) as i64;
        let facts = Struct::new()
            .i32(1, self.ty)
            .i32s(2, self.encodings)
            .texts(3, &[self.name])
            .i32(4, ZSTD)
            .i64(5, self.count as i64)
            .i64(6, self.uncompressed)
            .i64(7, self.compressed)
            .i64(9, self.data_at as i64);
        let facts = match self.dictionary_at {
            Some(at) => facts.i64(11, at as i64),
            None => facts,
        };
        Struct::new().i64(2, first).nested(3, facts)
    }
}

/// Appends a page; gives its length, headers included, as it would be uncompressed.
fn page(out: &mut Vec<u8>, kind: i32, values: Struct, data: &[u8]) -> io::Result<i64> {
    let stored = zstd::bulk::compress(data, 3)?;
    // The number of the field that a kind of page has for itself.
    let own = if kind == DATA_PAGE { 5 } else { 7 };
    let header = Struct::new()
        .i32(1, kind)
        .i32(2, data.len() as i32)
        .i32(3, stored.len() as i32)
        .nested(own, values)
        .end();
    out.extend(&header);
    out.extend(&stored);
    Ok((header.len() + data.len()) as i64)
}

fn data_page(count: usize, encoding: i32) -> Struct {
    Struct::new().i32(1, count as i32).i32(2, encoding).i32(3, RLE).i32(4, RLE)
}

fn number_column(
    out: &mut Vec<u8>,
    name: &'static str,
    count: usize,
    data: &[u8],
) -> io::Result<Column> {
    let data_at = out.len();
    let uncompressed = page(out, DATA_PAGE, data_page(count, PLAIN), data)?;
    let compressed = (out.len() - data_at) as i64;
    let encodings = &[PLAIN, RLE];
    let (ty, dictionary_at) = (INT64, None);
    Ok(Column { name, ty, encodings, count, uncompressed, compressed, dictionary_at, data_at })
}

fn path_column(out: &mut Vec<u8>, paths: &[&str], rows: &[Row]) -> io::Result<Column> {
    let mut dictionary = Vec::new();
    for path in paths {
        dictionary.extend((path.len() as u32).to_le_bytes());
        dictionary.extend(path.as_bytes());
    }
    let dictionary_at = out.len();
    let entries = Struct::new().i32(1, paths.len() as i32).i32(2, PLAIN);
    let mut uncompressed = page(out, DICTIONARY_PAGE, entries, &dictionary)?;

    // Which rows have one (definition levels), then the numbers of those.
    let mut levels = Vec::new();
    runs(&mut levels, rows.iter().map(|row| row.place.is_some().into()), 1);
    let mut data = (levels.len() as u32).to_le_bytes().to_vec();
    data.extend(levels);
    let bits = (paths.len().max(2) - 1).ilog2() as u8 + 1;
    data.push(bits);
    runs(&mut data, rows.iter().filter_map(|row| row.place.map(|place| place.0)), bits);

    let data_at = out.len();
    uncompressed += page(out, DATA_PAGE, data_page(rows.len(), RLE_DICTIONARY), &data)?;
    Ok(Column {
        name: "path",
        ty: BYTE_ARRAY,
        encodings: &[PLAIN, RLE, RLE_DICTIONARY],
        count: rows.len(),
        uncompressed,
        compressed: (out.len() - dictionary_at) as i64,
        dictionary_at: Some(dictionary_at),
        data_at,
    })
}

/// Appends numbers of so many bits as runs of equal ones: the repeated half of Parquet's hybrid.
fn runs(out: &mut Vec<u8>, numbers: impl Iterator<Item = u32>, bits: u8) {
    let mut append = |value: u32, length: u64| {
        varint(out, length << 1);
        out.extend(&value.to_le_bytes()[..usize::from(bits.div_ceil(8)).min(4)]);
    };
    let mut run: Option<(u32, u64)> = None;
    for number in numbers {
        run = match run {
            Some((value, length)) if value == number => Some((value, length + 1)),
            Some((value, length)) => {
                append(value, length);
                Some((number, 1))
            }
            None => Some((number, 1)),
        };
    }
    if let Some((value, length)) = run {
        append(value, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_lengths_and_values() {
        let mut bytes = Vec::new();
        runs(&mut bytes, [1, 1, 1, 0, 1].into_iter(), 1);
        assert_eq!(bytes, [6, 1, 2, 0, 2, 1]);
        let mut bytes = Vec::new();
        runs(&mut bytes, [300; 200].into_iter(), 9);
        assert_eq!(bytes, [0x90, 3, 44, 1]);
        let mut bytes = Vec::new();
        runs(&mut bytes, std::iter::empty(), 1);
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_file_begins_and_ends_as_parquet_does() {
        let rows = [Row { place: Some((0, 1, 2)) }, Row { place: None }];
        let bytes = file(&["file:///x.nc"], &rows).unwrap();
        assert!(bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC));
        let at = bytes.len() - 8;
        let footer = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert!(footer + 12 < bytes.len());
        // The first field of the footer is the version, 1 in zigzag.
        assert_eq!(bytes[at - footer..][..2], [0x15, 2]);
    }
}
