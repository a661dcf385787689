//! Where each variable and each record lies in the file.
//!
//! [`Offsets::of`] is a pure function of a header and the file's length: no values are read.
//!
//! ```
//! use esker::Header;
//! use esker_tools::offsets::Offsets;
//!
//! // CDF-1, no records, no dimensions, no attributes, no variables.
//! let mut file = b"CDF\x01".to_vec();
//! file.resize(32, 0);
//! let header = Header::decode(&file, 32)?;
//! let offsets = Offsets::of(&header, 32);
//! assert_eq!((offsets.header_len, offsets.extent), (32, 32));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use esker::{Header, VarId};

/// Where one variable lies; for a record variable, in the first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The variable.
    pub var: VarId,
    /// Whether it has the record dimension.
    pub record: bool,
    /// Its first byte.
    pub begin: u64,
    /// Bytes of its values, for a record variable in one record.
    pub bytes: u64,
    /// Bytes after the values that fill up to a multiple of four.
    pub padding: u64,
    /// Bytes between the end of the values before it and its begin, padding included, as
    /// PnetCDF's ncoffsets counts; negative when the two overlap. The first record variable
    /// follows the fixed-size ones, the first of all the header.
    pub gap: i128,
    /// The same without the padding of what is before: bytes that hold nothing.
    pub hole: i128,
}

impl Place {
    /// The byte after the last value; for a record variable, in the first record.
    pub fn end(&self) -> u64 {
        self.begin.saturating_add(self.bytes)
    }

    /// The largest power of two that its begin is a multiple of.
    pub fn alignment(&self) -> u64 {
        match self.begin {
            0 => 1 << 63,
            begin => 1 << begin.trailing_zeros(),
        }
    }
}

/// Where everything lies in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// Bytes of the header.
    pub header_len: u64,
    /// Where the data begin: the header and the room that is left after it.
    pub extent: u64,
    /// How many records there are.
    pub records: u64,
    /// Where record 0 begins.
    pub record_begin: Option<u64>,
    /// Bytes from one record to the next.
    pub record_size: u64,
    /// Where a complete file ends.
    pub data_end: u64,
    /// Where this file ends.
    pub file_len: u64,
    /// The fixed-size variables in the order of the file.
    pub fixed: Vec<Place>,
    /// The record variables in the order of the file.
    pub record: Vec<Place>,
}

impl Offsets {
    /// Where everything lies in a file of this header and length.
    pub fn of(header: &Header, file_len: u64) -> Offsets {
        let layout = &header.layout;
        let records = header.records(file_len);
        let all = |record: bool| {
            let vars = header.vars().filter(|(_, var, _)| header.schema.is_record(var) == record);
            let mut places: Vec<Place> = vars
                .map(|(var, _, place)| Place {
                    var,
                    record,
                    begin: place.begin,
                    bytes: place.bytes,
                    padding: place.vsize.saturating_sub(place.bytes),
                    gap: 0,
                    hole: 0,
                })
                .collect();
            places.sort_by_key(|place| (place.begin, place.var));
            places
        };
        let (mut fixed, mut record) = (all(false), all(true));
        if let [only] = record.as_mut_slice() {
            // A single record variable is not padded (specification, "Note on padding").
            only.padding = layout.record_size.saturating_sub(only.bytes);
        }
        let mut end = u128::from(layout.header_len);
        let mut padded = end;
        for place in fixed.iter_mut().chain(&mut record) {
            let begin = i128::from(place.begin);
            place.gap = begin - end as i128;
            place.hole = begin - padded as i128;
            end = u128::from(place.begin) + u128::from(place.bytes);
            padded = end + u128::from(place.padding);
        }
        let begins = fixed.iter().chain(&record).map(|place| place.begin);
        Offsets {
            header_len: layout.header_len,
            extent: begins.min().unwrap_or(layout.header_len),
            records,
            record_begin: layout.record_begin,
            record_size: layout.record_size,
            data_end: header.data_end(records),
            file_len,
            fixed,
            record,
        }
    }

    /// The places of all variables in the order of the file.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.fixed.iter().chain(&self.record)
    }

    /// Each variable's place.
    pub fn by_variable(&self) -> BTreeMap<VarId, &Place> {
        self.places().map(|place| (place.var, place)).collect()
    }

    /// Begin and end of a record variable in each record, in order. Lazy: a file may say that
    /// it has billions.
    pub fn records_of(&self, place: &Place) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (begin, bytes, size) = (place.begin, place.bytes, self.record_size);
        let count = if place.record { self.records } else { 1 };
        (0..count).map_while(move |record| {
            let begin = record.checked_mul(size)?.checked_add(begin)?;
            Some((begin, begin.checked_add(bytes)?))
        })
    }

    /// Whether bytes lie unused between two fixed-size variables, padding included: what
    /// `ncoffsets -x` tells.
    pub fn has_gaps(&self) -> bool {
        self.fixed.iter().skip(1).any(|place| place.gap != 0)
    }

    /// Bytes that belong to nothing: after the header, between variables, before the records.
    pub fn unused(&self) -> u64 {
        let holes = self.places().map(|place| place.hole.max(0));
        holes.sum::<i128>().try_into().unwrap_or(u64::MAX)
    }

    /// Bytes of padding in all, over all records.
    pub fn padding(&self) -> u64 {
        let fixed = self.fixed.iter().map(|place| place.padding).fold(0, u64::saturating_add);
        let record = self.record.iter().map(|place| place.padding).fold(0, u64::saturating_add);
        record.saturating_mul(self.records).saturating_add(fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::{Alignment, DataLayout, DimLen, ExternalType, NumRecs, Schema, Version};

    fn header(align: &Alignment) -> Header {
        let mut schema = Schema::new(Version::Cdf1);
        let t = schema.add_dim("t", DimLen::Unlimited).unwrap();
        let x = schema.add_dim("x", DimLen::Fixed(3)).unwrap();
        let y = schema.add_dim("y", DimLen::Fixed(2)).unwrap();
        schema.add_var("s", ExternalType::Int, &[]).unwrap();
        schema.add_var("b", ExternalType::Byte, &[x]).unwrap();
        schema.add_var("r", ExternalType::Short, &[t, x]).unwrap();
        schema.add_var("q", ExternalType::Byte, &[t]).unwrap();
        schema.add_var("z", ExternalType::Double, &[y, x]).unwrap();
        let layout = DataLayout::place(&schema, align).unwrap();
        Header { schema, numrecs: NumRecs::Count(2), layout }
    }

    #[test]
    fn places_equal_what_ncoffsets_prints() {
        // From `ncoffsets -sgr` 1.12.3 of the file that ncgen makes of the same schema.
        let offsets = Offsets::of(&header(&Alignment::default()), 332);
        assert_eq!((offsets.header_len, offsets.extent), (252, 252));
        let fixed: Vec<_> = offsets.fixed.iter().map(|p| (p.begin, p.end(), p.gap)).collect();
        assert_eq!(fixed, [(252, 256, 0), (256, 259, 0), (260, 308, 1)]);
        let record: Vec<_> = offsets.record.iter().map(|p| (p.begin, p.end(), p.gap)).collect();
        assert_eq!(record, [(308, 314, 0), (316, 317, 2)]);
        let records: Vec<_> = offsets.records_of(&offsets.record[1]).collect();
        assert_eq!(records, [(316, 317), (328, 329)]);
        assert!(offsets.has_gaps());
        assert_eq!(offsets.unused(), 0, "padding is not unused");
        assert_eq!(offsets.padding(), 1 + 2 * (2 + 3));
    }

    #[test]
    fn alignment_leaves_holes() {
        let align = Alignment { variable: 512, ..Alignment::default() };
        let offsets = Offsets::of(&header(&align), 2000);
        assert_eq!(offsets.extent, 512);
        assert!(offsets.fixed.iter().all(|p| p.alignment() >= 512));
        assert_eq!(offsets.fixed[1].hole, 508);
        assert_eq!(offsets.unused(), (512 - 252) + 508 + 508);
    }

    #[test]
    fn a_lone_record_variable_has_no_padding() {
        let mut schema = Schema::new(Version::Cdf1);
        let t = schema.add_dim("t", DimLen::Unlimited).unwrap();
        schema.add_var("r", ExternalType::Byte, &[t]).unwrap();
        let layout = DataLayout::place(&schema, &Alignment::default()).unwrap();
        let header = Header { schema, numrecs: NumRecs::Count(3), layout };
        let offsets = Offsets::of(&header, 83);
        assert_eq!(offsets.record_size, 1);
        let records: Vec<_> = offsets.records_of(&offsets.record[0]).collect();
        assert_eq!(records, [(80, 81), (81, 82), (82, 83)]);
        assert_eq!(offsets.padding(), 0);
    }

    #[test]
    fn a_count_of_records_that_cannot_be_costs_nothing() {
        let mut header = header(&Alignment::default());
        header.numrecs = NumRecs::Count(u64::MAX);
        let offsets = Offsets::of(&header, 332);
        let last = offsets.records_of(&offsets.record[0]).nth(1_000_000);
        assert_eq!(last.map(|(begin, _)| begin), Some(308 + 12 * 1_000_000));
        let _ = (offsets.padding(), offsets.unused());
    }
}
