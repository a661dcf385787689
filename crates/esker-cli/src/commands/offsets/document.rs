//! The places as JSON for a program.

use esker_tools::offsets::{Offsets, Place};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Shown;

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let offsets = self.offsets;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("file", &self.arguments.file.display().to_string())?;
        map.serialize_entry("format", &self.schema.version.to_string())?;
        map.serialize_entry("file_bytes", &offsets.file_len)?;
        map.serialize_entry("header_bytes", &offsets.header_len)?;
        map.serialize_entry("extent", &offsets.extent)?;
        map.serialize_entry("data_end", &offsets.data_end)?;
        map.serialize_entry("records", &offsets.records)?;
        map.serialize_entry("record_begin", &offsets.record_begin)?;
        map.serialize_entry("record_bytes", &offsets.record_size)?;
        map.serialize_entry("padding", &offsets.padding())?;
        map.serialize_entry("unused", &offsets.unused())?;
        let rows = self.places.iter().map(|place| Row { shown: self, place }).collect::<Vec<_>>();
        map.serialize_entry("variables", &rows)?;
        if let Some(heap) = &self.heap {
            map.serialize_entry("heap", &heap.json())?;
        }
        map.end()
    }
}

/// One variable's place, as JSON.
struct Row<'a> {
    shown: &'a Shown<'a>,
    place: &'a Place,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (place, (name, ty, dims)) = (self.place, self.shown.variable(self.place));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("type", ty)?;
        map.serialize_entry("dimensions", &dims)?;
        map.serialize_entry("layout", if place.record { "record" } else { "fixed" })?;
        map.serialize_entry("begin", &place.begin)?;
        map.serialize_entry("end", &place.end())?;
        map.serialize_entry("bytes", &place.bytes)?;
        map.serialize_entry("padding", &place.padding)?;
        map.serialize_entry("gap", &i64::try_from(place.hole).unwrap_or(i64::MIN))?;
        map.serialize_entry("alignment", &place.alignment())?;
        if self.shown.arguments.records && place.record {
            map.serialize_entry("records", &Records(self.shown.offsets, place))?;
        }
        map.end()
    }
}

/// The records of one variable, `[begin, end]` each, written as they are counted.
struct Records<'a>(&'a Offsets, &'a Place);

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.records_of(self.1))
    }
}
