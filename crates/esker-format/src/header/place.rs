//! Where the variables of a schema go.

use super::encode::header_len;
use super::{DataLayout, Header, Placement, record_section, round_up, sizes};
use crate::error::SchemaError;
use crate::schema::{Schema, Variable};
use crate::types::Version;

/// How the data section is aligned, and how much room is left for later.
///
/// The defaults pack everything, as netCDF-C does. PnetCDF's hints map onto these:
/// `nc_var_align_size` (or, where that is not given, `nc_header_align_size`) is `header`,
/// `nc_record_align_size` is `records`; the arguments of `ncmpi__enddef` are `header_room`
/// (`h_minfree`), `header` (`v_align`), `record_room` (`v_minfree`) and `records` (`r_align`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alignment {
    /// The data section begins at a multiple of this.
    pub header: u64,
    /// Every fixed-size variable begins at a multiple of this.
    pub variable: u64,
    /// The record section begins at a multiple of this.
    pub records: u64,
    /// Bytes kept free after the header, so that it can grow without moving data.
    pub header_room: u64,
    /// Bytes kept free before the record section.
    pub record_room: u64,
    /// The record section begins here or later: a place that was kept for it before.
    pub records_from: u64,
    /// PnetCDF's rules (since 1.13): the header's extent is aligned if there are fixed-size
    /// variables, room before the records is kept only behind such variables, and in a changed
    /// schema variables move towards the end of the file or not at all.
    pub never_back: bool,
}

impl Default for Alignment {
    fn default() -> Self {
        Alignment {
            header: 4,
            variable: 4,
            records: 4,
            header_room: 0,
            record_room: 0,
            records_from: 0,
            never_back: false,
        }
    }
}

/// A new file's data section, placed by several writers: each knows the lengths of its own variables, and the sums of those
/// before. The places are those of [`DataLayout::place`].
impl Alignment {
    /// Whether the places of variables are sums of lengths.
    pub fn is_additive(&self) -> bool {
        self.variable == 0 || 4u64.is_multiple_of(self.variable) || self.variable.is_multiple_of(4)
    }

    /// Where the first fixed-size variable begins behind a header of this length; without any, where the record section
    /// may begin.
    pub fn fixed_begin(&self, header_len: u64, has_fixed: bool) -> Option<u64> {
        let end = header_len.checked_add(self.header_room)?;
        let begin = match (self.never_back, has_fixed) {
            (true, false) => Some(end),
            (true, true) => round_up(end, self.header.max(4)),
            (false, _) => round_up(end, self.header).and_then(|e| round_up(e, 4)),
        };
        match has_fixed {
            true => begin.and_then(|b| round_up(b, self.variable.max(4))),
            false => begin,
        }
    }

    /// From where a fixed-size variable begins to where the next does.
    pub fn fixed_step(&self, vsize: u64) -> Option<u64> {
        round_up(vsize, self.variable.max(4))
    }

    /// Where the record section begins behind fixed-size variables that end here.
    pub fn records_begin(&self, end: u64, has_fixed: bool) -> Option<u64> {
        let room = if self.never_back && !has_fixed { 0 } else { self.record_room };
        let end = end.checked_add(room)?;
        match self.never_back {
            true => round_up(round_up(end, 4)?.max(self.records_from), self.records.max(4)),
            false => {
                round_up(end.max(self.records_from), self.records).and_then(|e| round_up(e, 4))
            }
        }
    }
}

impl DataLayout {
    /// Fails when a variable is larger than the version allows where it stands: of the
    /// fixed-size variables of CDF-1 and CDF-2 only the last may exceed what 32 bits say, and
    /// only when no record variables follow; of the record variables only the last.
    pub fn check_sizes(schema: &Schema) -> Result<(), SchemaError> {
        check_sizes(schema)
    }

    /// Places every variable of `schema` in the order of definition: fixed-size ones after
    /// the header, then the record section.
    pub fn place(schema: &Schema, align: &Alignment) -> Result<DataLayout, SchemaError> {
        if align.never_back {
            return place_forward(schema, None, align);
        }
        let room = header_len(schema).saturating_add(align.header_room);
        let begin = round_up(room, align.header).and_then(|e| round_up(e, 4));
        let nowhere = vec![None; schema.vars.len()];
        DataLayout::place_rest(schema, align, begin.unwrap_or(u64::MAX), nowhere)
    }

    /// Places the variables of a changed schema, whose first variables are those of `old`, of
    /// which `records` records exist. Nothing moves when that is possible: the header still
    /// fits, and new variables find room. Otherwise everything is placed anew.
    pub fn extend(
        schema: &Schema,
        old: &Header,
        records: u64,
        align: &Alignment,
    ) -> Result<DataLayout, SchemaError> {
        if align.never_back {
            return place_forward(schema, Some(old), align);
        }
        let header_len = header_len(schema);
        let first = old.layout.places.iter().map(|p| p.begin).min();
        if first.is_none_or(|first| first < header_len) {
            return DataLayout::place(schema, align);
        }
        let mut keep: Vec<Option<Placement>> =
            old.layout.places.iter().copied().map(Some).collect();
        keep.resize(schema.vars.len(), None);
        if records == 0 {
            // Nothing is in the record section yet: it goes where there is room.
            for (place, var) in keep.iter_mut().zip(&schema.vars) {
                if schema.is_record(var) {
                    *place = None;
                }
            }
        }
        let layout = DataLayout::place_rest(schema, align, old.fixed_end(), keep)?;
        let fits = match (records, old.layout.record_begin) {
            (0, _) | (_, None) => true,
            (_, Some(begin)) => {
                let new = layout.places.iter().zip(&schema.vars).skip(old.layout.places.len());
                let mut fixed = new.filter(|(_, var)| !schema.is_record(var));
                layout.record_size == old.layout.record_size
                    && fixed.all(|(place, _)| place.begin + place.vsize <= begin)
            }
        };
        if fits { Ok(layout) } else { DataLayout::place(schema, align) }
    }

    /// Where PnetCDF's rules keep the record section of a header that was placed so: where it is, or where it
    /// would be if there were record variables. It stays there when some are defined while the file is open.
    pub fn kept_for_records(header: &Header, align: &Alignment) -> u64 {
        let fixed = header.vars().filter(|(_, var, _)| !header.schema.is_record(var)).count();
        header.layout.kept_behind(header.fixed_end(), fixed > 0, align)
    }

    /// The same behind fixed-size variables that end here, if there are any.
    pub fn kept_behind(&self, fixed_end: u64, has_fixed: bool, align: &Alignment) -> u64 {
        let room = if has_fixed { align.record_room } else { 0 };
        let end = fixed_end.saturating_add(room).max(align.records_from);
        // Without record variables and fixed ones there are none.
        let would_begin = if has_fixed { aligned(end, align.records) } else { end };
        self.record_begin.unwrap_or(would_begin)
    }

    fn place_rest(
        schema: &Schema,
        align: &Alignment,
        at_least: u64,
        mut places: Vec<Option<Placement>>,
    ) -> Result<DataLayout, SchemaError> {
        let version = schema.version;
        check_sizes(schema)?;
        let header_len = header_len(schema);
        let mut end = Some(at_least.max(header_len));
        let mut place = |number: usize, var: &Variable, end: &mut Option<u64>| {
            if places[number].is_some() {
                return Ok(());
            }
            let (bytes, vsize) = sizes(schema, var).ok_or_else(|| too_large(schema, var))?;
            let begin = end.filter(|begin| *begin <= version.max_offset());
            *end = begin.and_then(|b| b.checked_add(vsize));
            match (begin, *end) {
                (Some(begin), Some(last)) if last <= i64::MAX as u64 => {
                    places[number] = Some(Placement { begin, bytes, vsize });
                    Ok(())
                }
                _ => Err(SchemaError::TooLarge {
                    var: var.name.clone(),
                    what: "the offset of its data",
                    value: begin.map_or(u128::from(u64::MAX), u128::from),
                    version,
                    max: version.max_offset(),
                    remedy: "use CDF-2 or CDF-5, or define large variables last",
                }),
            }
        };
        for (number, var) in schema.vars.iter().enumerate() {
            if !schema.is_record(var) {
                end = end.and_then(|e| round_up(e, align.variable)).and_then(|e| round_up(e, 4));
                place(number, var, &mut end)?;
            }
        }
        end = end.and_then(|e| e.checked_add(align.record_room)).map(|e| e.max(align.records_from));
        end = end.and_then(|e| round_up(e, align.records)).and_then(|e| round_up(e, 4));
        for (number, var) in schema.vars.iter().enumerate() {
            if schema.is_record(var) {
                place(number, var, &mut end)?;
            }
        }
        let places: Vec<Placement> = places.into_iter().flatten().collect();
        match record_section(schema, &places) {
            Some((record_begin, record_size)) => {
                Ok(DataLayout { header_len, places, record_begin, record_size })
            }
            None => match schema.vars.iter().find(|v| schema.is_record(v)) {
                Some(var) => Err(too_large(schema, var)),
                None => Ok(DataLayout { header_len, places, record_begin: None, record_size: 0 }),
            },
        }
    }
}

/// The first multiple of `align`, and of 4 at least, from `value` on.
fn aligned(value: u64, align: u64) -> u64 {
    round_up(value, align.max(4)).unwrap_or(u64::MAX)
}

/// Places as PnetCDF 1.15 does, so that the same calls make the same bytes.
fn place_forward(
    schema: &Schema,
    old: Option<&Header>,
    align: &Alignment,
) -> Result<DataLayout, SchemaError> {
    check_sizes(schema)?;
    let version = schema.version;
    let header_len = header_len(schema);
    let far = |var: &Variable, value: u64| SchemaError::TooLarge {
        var: var.name.clone(),
        what: "the offset of its data",
        value: u128::from(value),
        version,
        max: version.max_offset(),
        remedy: "use CDF-2 or CDF-5, or define large variables last",
    };
    let up = aligned;
    let old_begins = |record: bool| -> Vec<u64> {
        let vars =
            old.into_iter().flat_map(|h| h.vars().map(move |(_, var, place)| (h, var, place)));
        vars.filter(|(h, var, _)| h.schema.is_record(var) == record)
            .map(|(_, _, p)| p.begin)
            .collect()
    };
    let (old_fixed, old_records) = (old_begins(false), old_begins(true));
    let old_section = old.map_or(0, |h| h.layout.record_begin.unwrap_or_else(|| h.fixed_end()));
    let old_extent = old.map_or(0, |h| {
        old_fixed.first().copied().unwrap_or(match h.schema.vars.len() {
            0 => h.layout.header_len,
            _ => old_section,
        })
    });
    let has_fixed = schema.vars.iter().any(|var| !schema.is_record(var));
    let mut end = old_extent.max(header_len.saturating_add(align.header_room));
    if has_fixed {
        end = up(end, align.header);
    }
    let mut places: Vec<Option<Placement>> = vec![None; schema.vars.len()];
    let mut before = old_fixed.iter();
    let numbered = || schema.vars.iter().enumerate();
    for (number, var) in numbered().filter(|(_, var)| !schema.is_record(var)) {
        let (bytes, vsize) = sizes(schema, var).ok_or_else(|| too_large(schema, var))?;
        if end > version.max_offset() {
            return Err(far(var, end));
        }
        let begin = up(end, align.variable).max(before.next().copied().unwrap_or(0));
        end = begin.saturating_add(vsize);
        places[number] = Some(Placement { begin, bytes, vsize });
    }
    if has_fixed {
        end = end.saturating_add(align.record_room);
    }
    let section = up(up(end, 4).max(old_section).max(align.records_from), align.records);
    let mut end = section;
    let mut before = old_records.iter();
    for (number, var) in numbered().filter(|(_, var)| schema.is_record(var)) {
        let (bytes, vsize) = sizes(schema, var).ok_or_else(|| too_large(schema, var))?;
        let begin = end.max(before.next().copied().unwrap_or(0));
        if begin > version.max_offset() {
            return Err(far(var, begin));
        }
        end = end.saturating_add(vsize);
        places[number] = Some(Placement { begin, bytes, vsize });
    }
    let places: Vec<Placement> = places.into_iter().flatten().collect();
    if let Some((place, var)) = places
        .iter()
        .zip(&schema.vars)
        .find(|(p, _)| p.begin.saturating_add(p.vsize) > i64::MAX as u64)
    {
        return Err(far(var, place.begin));
    }
    match record_section(schema, &places) {
        Some((record_begin, record_size)) => {
            Ok(DataLayout { header_len, places, record_begin, record_size })
        }
        None => match schema.vars.iter().find(|v| schema.is_record(v)) {
            Some(var) => Err(too_large(schema, var)),
            None => Ok(DataLayout { header_len, places, record_begin: None, record_size: 0 }),
        },
    }
}

fn too_large(schema: &Schema, var: &Variable) -> SchemaError {
    let bytes = schema
        .shape(var, 1)
        .iter()
        .fold(u128::from(var.ty.size()), |n, len| n.saturating_mul(u128::from(*len)));
    SchemaError::TooLarge {
        var: var.name.clone(),
        what: "its size in bytes",
        value: bytes,
        version: schema.version,
        max: max_vsize(schema.version),
        remedy: "use CDF-5, which has no such limit, or define it last of its kind",
    }
}

/// The largest `vsize` a variable may have without being the last of its kind.
pub(super) fn max_vsize(version: Version) -> u64 {
    match version {
        Version::Cdf1 => i32::MAX as u64 - 3,
        Version::Cdf2 => u32::MAX as u64 - 3,
        Version::Cdf5 => i64::MAX as u64 - 3,
    }
}

/// The rule of CDF-1 and CDF-2: of the fixed-size variables only the last may be larger than
/// 32 bits say, and only when no record variables follow; of the record variables only the
/// last.
fn check_sizes(schema: &Schema) -> Result<(), SchemaError> {
    let max = max_vsize(schema.version);
    let has_records = schema.vars.iter().any(|v| schema.is_record(v));
    let last = |record: bool| schema.vars.iter().rposition(|v| schema.is_record(v) == record);
    let (last_fixed, last_record) = (last(false), last(true));
    for (number, var) in schema.vars.iter().enumerate() {
        let (_, vsize) = sizes(schema, var).ok_or_else(|| too_large(schema, var))?;
        let record = schema.is_record(var);
        let is_last = Some(number) == if record { last_record } else { last_fixed };
        let exempt = is_last && (record || !has_records) && schema.version != Version::Cdf5;
        if vsize > max && !exempt {
            return Err(too_large(schema, var));
        }
    }
    Ok(())
}
