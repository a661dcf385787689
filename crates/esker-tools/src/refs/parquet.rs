//! A Parquet file of references: the columns `path`, `offset` and `size`, a row for each chunk,
//! and `raw` where chunks are copied.
//!
//! One row group, one page for each column. `path` may be missing (no such chunk) and is the same
//! in most rows, so it is a dictionary and runs of numbers; offsets and sizes are plain 64-bit
//! integers. Pages are compressed by zstd.

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

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Row {
    /// There is no such chunk.
    Missing,
    /// Where it lies, in the file of this number.
    At { path: u32, offset: u64, size: u64 },
    /// The chunk itself.
    Raw(Vec<u8>),
}

/// The bytes of a file with these rows, whose paths are these.
pub(super) fn file(paths: &[&str], rows: &[Row]) -> io::Result<Vec<u8>> {
    let mut out = MAGIC.to_vec();
    let count = rows.len();
    let numbers = |of: fn(&Row) -> u64| {
        rows.iter().flat_map(|row| of(row).to_le_bytes()).collect::<Vec<u8>>()
    };
    let offsets = numbers(|row| if let Row::At { offset, .. } = row { *offset } else { 0 });
    let sizes = numbers(|row| if let Row::At { size, .. } = row { *size } else { 0 });
    let mut columns = vec![
        path_column(&mut out, paths, rows)?,
        number_column(&mut out, "offset", count, &offsets)?,
        number_column(&mut out, "size", count, &sizes)?,
    ];
    let number = |name| Struct::new().i32(1, INT64).i32(3, REQUIRED).text(4, name);
    let mut schema = vec![
        Struct::new().i32(1, BYTE_ARRAY).i32(3, OPTIONAL).text(4, "path").i32(6, UTF8),
        number("offset"),
        number("size"),
    ];
    // fsspec knows files of three columns from those of four.
    if rows.iter().any(|row| matches!(row, Row::Raw(_))) {
        columns.push(raw_column(&mut out, rows)?);
        schema.push(Struct::new().i32(1, BYTE_ARRAY).i32(3, OPTIONAL).text(4, "raw"));
    }
    let total = columns.iter().map(|column| column.uncompressed).sum();
    schema.insert(0, Struct::new().text(4, "schema").i32(5, columns.len() as i32));
    let columns = columns.into_iter().map(Column::described).collect();
    let group = Struct::new().structs(1, columns).i64(2, total).i64(3, count as i64);
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
    missing: usize,
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
        // Without this count fastparquet, fsspec's reader, makes real numbers of integers.
        let facts = facts.nested(12, Struct::new().i64(3, self.missing as i64));
        Struct::new().i64(2, first).nested(3, facts)
    }
}

/// Appends a page; gives its length, headers included, as it would be uncompressed.
fn page(out: &mut Vec<u8>, kind: i32, values: Struct, data: &[u8]) -> io::Result<i64> {
    let too_long = |_| io::Error::other("a page of Parquet has more than 2 GiB");
    let stored = zstd::bulk::compress(data, 3)?;
    let len = i32::try_from(data.len()).map_err(too_long)?;
    let stored_len = i32::try_from(stored.len()).map_err(too_long)?;
    // The number of the field that a kind of page has for itself.
    let own = if kind == DATA_PAGE { 5 } else { 7 };
    let header =
        Struct::new().i32(1, kind).i32(2, len).i32(3, stored_len).nested(own, values).end();
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
    let (ty, dictionary_at, missing) = (INT64, None, 0);
    Ok(Column {
        name,
        ty,
        encodings,
        count,
        missing,
        uncompressed,
        compressed,
        dictionary_at,
        data_at,
    })
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

    // Which rows have one, then the numbers of those.
    let mut data = levels(rows, |row| matches!(row, Row::At { .. }));
    let bits = (paths.len().max(2) - 1).ilog2() as u8 + 1;
    data.push(bits);
    let number = |row: &Row| if let Row::At { path, .. } = row { Some(*path) } else { None };
    runs(&mut data, rows.iter().filter_map(number), bits);

    let data_at = out.len();
    uncompressed += page(out, DATA_PAGE, data_page(rows.len(), RLE_DICTIONARY), &data)?;
    Ok(Column {
        name: "path",
        ty: BYTE_ARRAY,
        encodings: &[PLAIN, RLE, RLE_DICTIONARY],
        count: rows.len(),
        missing: rows.iter().filter(|row| !matches!(row, Row::At { .. })).count(),
        uncompressed,
        compressed: (out.len() - dictionary_at) as i64,
        dictionary_at: Some(dictionary_at),
        data_at,
    })
}

/// Which rows have a value: Parquet's definition levels.
fn levels(rows: &[Row], has: fn(&Row) -> bool) -> Vec<u8> {
    let mut levels = Vec::new();
    runs(&mut levels, rows.iter().map(|row| has(row).into()), 1);
    let mut data = (levels.len() as u32).to_le_bytes().to_vec();
    data.extend(levels);
    data
}

fn raw_column(out: &mut Vec<u8>, rows: &[Row]) -> io::Result<Column> {
    let mut data = levels(rows, |row| matches!(row, Row::Raw(_)));
    for row in rows {
        if let Row::Raw(bytes) = row {
            data.extend((bytes.len() as u32).to_le_bytes());
            data.extend(bytes);
        }
    }
    let data_at = out.len();
    let uncompressed = page(out, DATA_PAGE, data_page(rows.len(), PLAIN), &data)?;
    Ok(Column {
        name: "raw",
        ty: BYTE_ARRAY,
        encodings: &[PLAIN, RLE],
        count: rows.len(),
        missing: rows.iter().filter(|row| !matches!(row, Row::Raw(_))).count(),
        uncompressed,
        compressed: (out.len() - data_at) as i64,
        dictionary_at: None,
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
        let rows = [Row::At { path: 0, offset: 1, size: 2 }, Row::Missing];
        let bytes = file(&["file:///x.nc"], &rows).unwrap();
        assert!(bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC));
        let at = bytes.len() - 8;
        let footer = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert!(footer + 12 < bytes.len());
        // The first field of the footer is the version, 1 in zigzag.
        assert_eq!(bytes[at - footer..][..2], [0x15, 2]);
    }
}
