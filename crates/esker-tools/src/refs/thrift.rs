//! Thrift's compact protocol, of which Parquet's headers are made: as much of it as they need.
//!
//! A struct is a row of fields and a zero. A field is a byte, the difference to the number of the
//! field before and a type, and its value. Numbers are zigzag varints.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct that is being written.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    pub(super) fn new() -> Struct {
        Struct::default()
    }

    /// Its bytes.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(super) fn i32(mut self, field: u8, value: i32) -> Struct {
        self.head(field, I32);
        varint(&mut self.bytes, zigzag(value.into()));
        self
    }

    pub(super) fn i64(mut self, field: u8, value: i64) -> Struct {
        self.head(field, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn text(mut self, field: u8, value: &str) -> Struct {
        self.head(field, BINARY);
        text(&mut self.bytes, value);
        self
    }

    pub(super) fn nested(mut self, field: u8, value: Struct) -> Struct {
        self.head(field, STRUCT);
        self.bytes.extend(value.end());
        self
    }

    pub(super) fn structs(mut self, field: u8, values: Vec<Struct>) -> Struct {
        self.list(field, STRUCT, values.len());
        self.bytes.extend(values.into_iter().flat_map(Struct::end));
        self
    }

    pub(super) fn i32s(mut self, field: u8, values: &[i32]) -> Struct {
        self.list(field, I32, values.len());
        values.iter().for_each(|&value| varint(&mut self.bytes, zigzag(value.into())));
        self
    }

    pub(super) fn texts(mut self, field: u8, values: &[&str]) -> Struct {
        self.list(field, BINARY, values.len());
        values.iter().for_each(|value| text(&mut self.bytes, value));
        self
    }

    /// Fields come in the order of their numbers, which in Parquet are below 16.
    fn head(&mut self, field: u8, ty: u8) {
        debug_assert!(field > self.last && field < 16);
        self.bytes.push((field - self.last) << 4 | ty);
        self.last = field;
    }

    fn list(&mut self, field: u8, ty: u8, len: usize) {
        self.head(field, LIST);
        if len < 15 {
            self.bytes.push((len as u8) << 4 | ty);
        } else {
            self.bytes.push(0xf0 | ty);
            varint(&mut self.bytes, len as u64);
        }
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn text(out: &mut Vec<u8>, value: &str) {
    varint(out, value.len() as u64);
    out.extend(value.as_bytes());
}

/// A number in groups of seven bits, lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_those_of_the_specification() {
        // Worked out by hand from thrift's compact protocol.
        assert_eq!(Struct::new().end(), [0]);
        assert_eq!(Struct::new().i32(1, -1).i64(4, 150).end(), [0x15, 1, 0x36, 0xac, 2, 0]);
        let inner = Struct::new().text(2, "ab");
        assert_eq!(Struct::new().nested(3, inner).end(), [0x3c, 0x28, 2, b'a', b'b', 0, 0]);
        assert_eq!(Struct::new().i32s(1, &[1, -2]).end(), [0x19, 0x25, 2, 3, 0]);
        let long = Struct::new().i32s(1, &[0; 15]).end();
        assert_eq!(long[..3], [0x19, 0xf5, 15]);
    }

    #[test]
    fn extreme_numbers_survive() {
        assert_eq!((zigzag(i64::MAX), zigzag(i64::MIN)), (u64::MAX - 1, u64::MAX));
        let mut bytes = Vec::new();
        varint(&mut bytes, u64::MAX);
        assert_eq!(bytes, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }
}
