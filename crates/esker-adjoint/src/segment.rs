//! A checkpoint as bytes: the same in memory and on disk. docs/format/adjoint.md has them.

use esker_codec::{Chunk, FilterMask, Pipeline, Scratch, checksum};
use esker_format::{ExternalType, varint};

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

    pub(crate) fn bytes(&self) -> u64 {
        self.arrays.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }
}

/// Encodes a snapshot. `pipeline` gives the filters of each array.
pub(crate) fn encode<'p>(
    title: &Title,
    snapshot: &Snapshot,
    pipeline: impl Fn(&Layout) -> Option<&'p Pipeline>,
    scratch: &mut Scratch,
) -> Result<Vec<u8>> {
    let (mut table, mut payloads) = (Vec::new(), Vec::new());
    // Without filters a state is as long as it is: no growing on the way.
    payloads.reserve(snapshot.bytes() as usize / 2);
    for (layout, bytes) in &snapshot.arrays {
        varint::put(&mut table, layout.name.len() as u64);
        table.extend(layout.name.as_bytes());
        varint::put(&mut table, layout.ty.code().into());
        varint::put(&mut table, layout.shape.len() as u64);
        layout.shape.iter().for_each(|&len| varint::put(&mut table, len as u64));
        let start = payloads.len();
        let pipeline = pipeline(layout).filter(|p| !p.is_empty() && bytes.len() >= SMALL);
        let (words, mask) = match pipeline {
            Some(pipeline) => {
                let chunk = Chunk::new(layout.ty, &layout.shape).native();
                let encoded = pipeline.encode(&chunk, bytes, &mut payloads, scratch);
                let failed = |source| AdjointError::Codec {
                    array: layout.name.clone(),
                    step: title.step,
                    source,
                };
                (pipeline.to_words(), encoded.map_err(failed)?.mask)
            }
            None => {
                payloads.extend_from_slice(bytes);
                (Vec::new(), FilterMask::default())
            }
        };
        varint::put(&mut table, words.len() as u64);
        words.iter().for_each(|&word| varint::put(&mut table, word));
        table.extend(mask.0.to_le_bytes());
        varint::put(&mut table, (payloads.len() - start) as u64);
        table.extend(checksum(&payloads[start..]).to_le_bytes());
    }
    let mut out = Vec::with_capacity(PREFIX + table.len() + 4 + payloads.len());
    out.extend(MAGIC);
    out.extend(FORMAT.to_le_bytes());
    out.extend(title.identity.to_le_bytes());
    out.extend(title.rank.to_le_bytes());
    out.extend(title.kind.code().to_le_bytes());
    out.extend(title.step.to_le_bytes());
    out.extend((table.len() as u32).to_le_bytes());
    out.extend(table);
    out.extend(checksum(&out).to_le_bytes());
    out.extend(payloads);
    Ok(out)
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
        let bytes = encode(&title, &snapshot, |_| Some(&pipeline), &mut Scratch::new()).unwrap();
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
