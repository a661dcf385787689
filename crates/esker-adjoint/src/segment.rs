//! A checkpoint as bytes: the same in memory and on disk. docs/format/adjoint.md has them.

use std::ops::Range;

use esker_codec::{Chunk, FilterMask, Pipeline, Scratch, checksum};
use esker_format::{ExternalType, varint};

use crate::arena::{fits, fitting};
use crate::error::{AdjointError, Result};
use crate::model::{ArrayMut, Layout};
use crate::schedule::Place;

const MAGIC: &[u8; 4] = b"ESKC";
const FORMAT: u32 = 1;
const PREFIX: usize = 36;

/// Arrays below this are stored as they are: filters would make them longer.
pub(crate) const SMALL: usize = 1024;

/// What a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// What restarts the model.
    Restart,
    /// What the adjoint of a step depends on.
    Deps,
    /// The adjoint's own state.
    Adjoint,
}

impl Kind {
    pub(crate) fn code(self) -> u32 {
        match self {
            Kind::Restart => 0,
            Kind::Deps => 1,
            Kind::Adjoint => 2,
        }
    }

    pub(crate) fn from_code(code: u64) -> Option<Kind> {
        [Kind::Restart, Kind::Deps, Kind::Adjoint].get(usize::try_from(code).ok()?).copied()
    }
}

/// Whose segment it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) identity: u64,
    pub(crate) rank: u32,
    pub(crate) kind: Kind,
    pub(crate) step: u64,
}

/// Arrays as they were, copied so that the model can go on.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) arrays: Vec<(Layout, Vec<u8>)>,
}

impl Snapshot {
    /// Copies the arrays into memory that is used again.
    pub(crate) fn take(&mut self, arrays: &[ArrayMut<'_>]) {
        self.arrays.resize_with(arrays.len(), || {
            (Layout { name: String::new(), ty: ExternalType::Byte, shape: Vec::new() }, Vec::new())
        });
        for ((layout, bytes), array) in self.arrays.iter_mut().zip(arrays) {
            *layout = array.layout();
            bytes.clear();
            bytes.extend_from_slice(array.bytes);
        }
    }

    /// The arrays as they were.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&Layout, &[u8])> + Clone {
        self.arrays.iter().map(|(layout, bytes)| (layout, &bytes[..]))
    }
}

/// What stands before the checksum of the table.
fn begin(out: &mut Vec<u8>, title: &Title, table: &[u8]) {
    out.extend(MAGIC);
    out.extend(FORMAT.to_le_bytes());
    out.extend(title.identity.to_le_bytes());
    out.extend(title.rank.to_le_bytes());
    out.extend(title.kind.code().to_le_bytes());
    out.extend(title.step.to_le_bytes());
    out.extend((table.len() as u32).to_le_bytes());
    out.extend(table);
}

/// The part of an entry that says what the array is.
fn describe(table: &mut Vec<u8>, layout: &Layout) {
    varint::put(table, layout.name.len() as u64);
    table.extend(layout.name.as_bytes());
    varint::put(table, layout.ty.code().into());
    varint::put(table, layout.shape.len() as u64);
    layout.shape.iter().for_each(|&len| varint::put(table, len as u64));
}

/// A segment without filters whose checksums are missing: the one copy of the arrays is where they stay.
#[derive(Debug)]
pub(crate) struct Unsealed {
    bytes: Vec<u8>,
    /// Each array, its payload, and where its checksum goes.
    arrays: Vec<(Layout, Range<usize>, usize)>,
    table_end: usize,
}

impl Unsealed {
    /// Copies the arrays into a buffer for so many bytes. What takes time is left to [`Unsealed::seal`], beside the model.
    pub(crate) fn copy(
        title: &Title,
        arrays: &[ArrayMut<'_>],
        buffer: impl FnOnce(usize) -> Vec<u8>,
    ) -> Unsealed {
        let (mut table, mut places) = (Vec::new(), Vec::new());
        for array in arrays {
            let layout = array.layout();
            describe(&mut table, &layout);
            varint::put(&mut table, 0);
            table.extend(FilterMask::default().0.to_le_bytes());
            varint::put(&mut table, array.bytes.len() as u64);
            places.push((layout, PREFIX + table.len()));
            table.extend([0; 4]);
        }
        let table_end = PREFIX + table.len();
        let total: usize = arrays.iter().map(|array| array.bytes.len()).sum();
        let length = table_end + 4 + total;
        let mut bytes = fitting(buffer(length), length);
        begin(&mut bytes, title, &table);
        bytes.extend([0; 4]);
        let mut entries = Vec::with_capacity(arrays.len());
        for ((layout, sum), array) in places.into_iter().zip(arrays) {
            let start = bytes.len();
            bytes.extend_from_slice(array.bytes);
            entries.push((layout, start..bytes.len(), sum));
        }
        Unsealed { bytes, arrays: entries, table_end }
    }

    /// The arrays as they were copied.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&Layout, &[u8])> {
        self.arrays.iter().map(|(layout, range, _)| (layout, &self.bytes[range.clone()]))
    }

    /// Adds the checksums.
    pub(crate) fn seal(mut self) -> Vec<u8> {
        for (_, range, at) in &self.arrays {
            let sum = checksum(&self.bytes[range.clone()]).to_le_bytes();
            self.bytes[*at..*at + 4].copy_from_slice(&sum);
        }
        let end = self.table_end;
        let sum = checksum(&self.bytes[..end]).to_le_bytes();
        self.bytes[end..end + 4].copy_from_slice(&sum);
        self.bytes
    }
}

/// No length takes more bytes as a varint.
const LONGEST_VARINT: usize = 10;

/// Encodes arrays with the filters of each, into this buffer. There is no other copy of what filters make.
pub(crate) fn encode<'a>(
    title: &Title,
    arrays: impl Iterator<Item = (&'a Layout, &'a [u8])> + Clone,
    pipelines: &[Option<&Pipeline>],
    mut buffer: Vec<u8>,
    scratch: &mut Scratch,
) -> Result<Vec<u8>> {
    let usable = |bytes: &[u8], pipeline: &Option<&Pipeline>| {
        pipeline.is_some_and(|p| !p.is_empty() && bytes.len() >= SMALL)
    };
    // What each entry has before its mask; the length of a payload is known only when it is there.
    let mut heads = Vec::with_capacity(pipelines.len());
    let (mut room, mut raw) = (PREFIX + 4, 0);
    for ((layout, bytes), pipeline) in arrays.clone().zip(pipelines) {
        let pipeline = pipeline.filter(|_| usable(bytes, pipeline));
        let words = pipeline.map_or_else(Vec::new, Pipeline::to_words);
        let mut head = Vec::new();
        describe(&mut head, layout);
        varint::put(&mut head, words.len() as u64);
        words.iter().for_each(|&word| varint::put(&mut head, word));
        room += head.len() + 2 + LONGEST_VARINT + 4;
        raw += if pipeline.is_none() { bytes.len() } else { 0 };
        heads.push((head, pipeline));
    }
    buffer.clear();
    buffer.reserve_exact(room + raw);
    buffer.resize(room, 0);
    let mut table = Vec::with_capacity(room);
    for ((layout, bytes), (head, pipeline)) in arrays.zip(heads) {
        let start = buffer.len();
        let (mask, sum) = match pipeline {
            Some(pipeline) => {
                let chunk = Chunk::new(layout.ty, &layout.shape).native();
                let encoded = pipeline.encode_unsummed(&chunk, bytes, &mut buffer, scratch);
                let failed = |source| AdjointError::Codec {
                    array: layout.name.clone(),
                    step: title.step,
                    source,
                };
                let encoded = encoded.map_err(failed)?;
                (encoded.mask, encoded.crc32c)
            }
            None => {
                buffer.extend_from_slice(bytes);
                (FilterMask::default(), checksum(bytes))
            }
        };
        table.extend(head);
        table.extend(mask.0.to_le_bytes());
        varint::put(&mut table, (buffer.len() - start) as u64);
        table.extend(sum.to_le_bytes());
    }
    let mut front = Vec::with_capacity(room);
    begin(&mut front, title, &table);
    front.extend(checksum(&front).to_le_bytes());
    buffer.drain(..room - front.len());
    buffer[..front.len()].copy_from_slice(&front);
    // As long as it is: what a checkpoint takes of memory is what the budget counts.
    if !fits(&buffer, buffer.len()) {
        buffer.shrink_to_fit();
    }
    Ok(buffer)
}

/// One array of a segment.
#[derive(Debug)]
pub(crate) struct Stored<'b> {
    pub(crate) layout: Layout,
    pipeline: Pipeline,
    mask: FilterMask,
    payload: &'b [u8],
    crc32c: u32,
}

/// Takes a segment apart; nothing in it is believed before it is checked.
pub(crate) fn open<'b>(bytes: &'b [u8], title: &Title, place: Place) -> Result<Vec<Stored<'b>>> {
    let step = title.step;
    let damaged = |why: &str| AdjointError::Damaged { step, place, array: None, why: why.into() };
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    if !bytes.starts_with(MAGIC) || word(4) != Some(FORMAT) {
        return Err(damaged("it does not begin as a checkpoint does"));
    }
    let length = word(32).ok_or_else(|| damaged("it is cut off"))? as usize;
    let end = PREFIX.checked_add(length).filter(|&end| end + 4 <= bytes.len());
    let end = end.ok_or_else(|| damaged("it is cut off"))?;
    if word(end) != Some(checksum(&bytes[..end])) {
        return Err(damaged("the checksum of its table does not match"));
    }
    let own = (long(8), word(16), word(20), long(24));
    if own != (Some(title.identity), Some(title.rank), Some(title.kind.code()), Some(step)) {
        return Err(damaged("it is of another run, rank or step"));
    }
    let (mut table, mut rest) = (&bytes[PREFIX..end], &bytes[end + 4..]);
    let mut arrays = Vec::new();
    while !table.is_empty() {
        let entry = entry(&mut table).ok_or_else(|| damaged("its table does not make sense"))?;
        let (layout, pipeline, mask, length, crc32c) = entry;
        let Some((payload, behind)) = rest.split_at_checked(length) else {
            let why = format!("{} bytes are left of {length}", rest.len());
            return Err(AdjointError::Damaged { step, place, array: Some(layout.name), why });
        };
        rest = behind;
        arrays.push(Stored { layout, pipeline, mask, payload, crc32c });
    }
    Ok(arrays)
}

type Entry = (Layout, Pipeline, FilterMask, usize, u32);

fn entry(table: &mut &[u8]) -> Option<Entry> {
    let count = |table: &mut &[u8]| usize::try_from(varint::take(table)?).ok();
    let len = count(table)?;
    let (name, rest) = table.split_at_checked(len)?;
    *table = rest;
    let name = std::str::from_utf8(name).ok()?.to_string();
    let ty = ExternalType::from_code(u32::try_from(varint::take(table)?).ok()?)?;
    let rank = count(table).filter(|&rank| rank <= table.len())?;
    let shape = (0..rank).map(|_| count(table)).collect::<Option<Vec<usize>>>()?;
    let words = count(table).filter(|&words| words <= table.len())?;
    let words = (0..words).map(|_| varint::take(table)).collect::<Option<Vec<u64>>>()?;
    let pipeline = Pipeline::from_words(&words).ok()?;
    let (mask, rest) = table.split_at_checked(2)?;
    *table = rest;
    let mask = FilterMask(u16::from_le_bytes(mask.try_into().ok()?));
    let length = count(table)?;
    let (sum, rest) = table.split_at_checked(4)?;
    *table = rest;
    let layout = Layout { name, ty, shape };
    layout.bytes()?;
    Some((layout, pipeline, mask, length, u32::from_le_bytes(sum.try_into().ok()?)))
}

impl Stored<'_> {
    /// Whether the payload is what was written.
    pub(crate) fn verify(&self, step: u64, place: Place) -> Result<()> {
        if checksum(self.payload) == self.crc32c {
            return Ok(());
        }
        let why = "its checksum does not match".to_string();
        Err(AdjointError::Damaged { step, place, array: Some(self.layout.name.clone()), why })
    }

    /// Decodes into the model's array, which has the same layout.
    pub(crate) fn decode(
        &self,
        out: &mut [u8],
        step: u64,
        place: Place,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let damaged = |why: String| AdjointError::Damaged {
            step,
            place,
            array: Some(self.layout.name.clone()),
            why,
        };
        if self.pipeline.is_empty() {
            if self.payload.len() != out.len() {
                return Err(damaged(format!("{} bytes of {}", self.payload.len(), out.len())));
            }
            out.copy_from_slice(self.payload);
            return Ok(());
        }
        let chunk = Chunk::new(self.layout.ty, &self.layout.shape).native();
        let decoded = self.pipeline.decode(&chunk, self.mask, self.payload, out, scratch);
        decoded.map_err(|error| damaged(error.to_string()))
    }
}

/// Restores arrays from a segment: all checksums first, so that a damaged segment changes nothing.
pub(crate) fn restore(
    stored: &[Stored<'_>],
    arrays: Vec<ArrayMut<'_>>,
    step: u64,
    place: Place,
    scratch: &mut Scratch,
) -> Result<()> {
    for array in stored {
        array.verify(step, place)?;
    }
    let mismatch = |array: String, stored: String, found: String| AdjointError::Layout {
        array,
        step,
        stored,
        found,
    };
    if stored.len() != arrays.len() {
        let (stored, found) = (format!("one of {}", stored.len()), format!("{}", arrays.len()));
        return Err(mismatch("(all)".into(), stored, found + " arrays"));
    }
    for (stored, array) in stored.iter().zip(arrays) {
        let found = array.layout();
        if stored.layout != found || stored.layout.bytes() != Some(array.bytes.len()) {
            let name = stored.layout.name.clone();
            return Err(mismatch(
                name,
                stored.layout.to_string(),
                format!("{} {found}", found.name),
            ));
        }
        stored.decode(array.bytes, step, place, scratch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Title, Vec<u8>, Vec<f64>) {
        let title = Title { identity: 7, rank: 1, kind: Kind::Restart, step: 5 };
        let mut values: Vec<f64> = (0..400).map(|i| f64::from(i).sin()).collect();
        let mut small = [1.0f32, 2.0];
        let arrays = vec![
            ArrayMut::doubles("u", &[20, 20], &mut values),
            ArrayMut::floats("dt", &[2], &mut small),
        ];
        let mut snapshot = Snapshot::default();
        snapshot.take(&arrays);
        let pipeline: Pipeline = "shuffle zstd,3".parse().unwrap();
        let work = &mut Scratch::new();
        let bytes =
            encode(&title, snapshot.arrays(), &[Some(&pipeline); 2], Vec::new(), work).unwrap();
        (title, bytes, values)
    }

    fn read(bytes: &[u8], title: &Title) -> Result<(Vec<f64>, [f32; 2])> {
        let (mut values, mut small) = (vec![0.0; 400], [0.0f32; 2]);
        let stored = open(bytes, title, Place::Disk)?;
        let arrays = vec![
            ArrayMut::doubles("u", &[20, 20], &mut values),
            ArrayMut::floats("dt", &[2], &mut small),
        ];
        restore(&stored, arrays, title.step, Place::Disk, &mut Scratch::new())?;
        Ok((values, small))
    }

    #[test]
    fn a_checkpoint_comes_back_bit_by_bit() {
        let (title, bytes, values) = sample();
        assert_eq!(read(&bytes, &title).unwrap(), (values, [1.0, 2.0]));
        assert!(read(&bytes, &Title { rank: 0, ..title }).is_err());
        assert!(read(&bytes, &Title { step: 4, ..title }).is_err());
    }

    #[test]
    fn a_segment_without_filters_is_the_same_with_one_copy() {
        let title = Title { identity: 7, rank: 1, kind: Kind::Restart, step: 5 };
        let mut values: Vec<f64> = (0..400).map(|i| f64::from(i).sin()).collect();
        let mut small = [1.0f32, 2.0];
        let arrays = [
            ArrayMut::doubles("u", &[20, 20], &mut values),
            ArrayMut::floats("dt", &[2], &mut small),
        ];
        let mut snapshot = Snapshot::default();
        snapshot.take(&arrays);
        let work = &mut Scratch::new();
        let twice = encode(&title, snapshot.arrays(), &[None; 2], Vec::new(), work).unwrap();
        assert_eq!(Unsealed::copy(&title, &arrays, |_| Vec::new()).seal(), twice);
        assert!(fits(&twice, twice.len()), "{} {}", twice.len(), twice.capacity());
        let none = Snapshot::default();
        let nothing = encode(&title, none.arrays(), &[], Vec::new(), work).unwrap();
        assert_eq!(Unsealed::copy(&title, &[], |_| Vec::new()).seal(), nothing);
    }

    #[test]
    fn whatever_is_damaged_or_cut_is_found() {
        let (title, bytes, _) = sample();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            let error = read(&damaged, &title).unwrap_err();
            assert!(error.to_string().contains("step 5"), "byte {at}: {error}");
            assert!(read(&bytes[..at], &title).is_err(), "cut at {at}");
        }
        let last = bytes.len() - 1;
        let mut damaged = bytes.clone();
        damaged[last] ^= 1;
        let error = read(&damaged, &title).unwrap_err().to_string();
        assert!(error.contains("array 'dt'"), "{error}");
    }
}
