//! Payloads that go through the filters of their variable.

use std::sync::{Arc, Mutex, PoisonError};

use esker_codec::{Chunk, FilterMask, Pipeline, Scratch};
use esker_format::{ExternalType, Values, Variable, values};

use crate::bounded::Bounded;

/// The attribute that says which filters a variable's payloads go through.
pub(crate) const ATTRIBUTE: &str = "__filters";

/// Bytes of values in an entry of a filtered variable, at most: what one read decodes.
pub(crate) const LONGEST: u64 = 4 << 20;

/// The filters of a variable.
#[derive(Debug)]
pub(crate) struct Filtered {
    pipeline: Pipeline,
    ty: ExternalType,
    fill: Vec<u8>,
}

impl Filtered {
    /// The filters that the variable's attribute names; `None` without one.
    pub(crate) fn of(variable: &Variable) -> Result<Option<Filtered>, String> {
        let Some(attribute) = variable.attrs.get(ATTRIBUTE) else { return Ok(None) };
        let Some(text) = attribute.values.text() else {
            return Err(format!("its attribute {ATTRIBUTE} is not text"));
        };
        Filtered::new(&text, variable).map(Some)
    }

    /// The filters in `text`, if the variable's values can pass them.
    pub(crate) fn new(text: &str, variable: &Variable) -> Result<Filtered, String> {
        let pipeline: Pipeline = text.parse().map_err(|e| format!("{e}"))?;
        let (ty, fill) = (variable.ty, values::fill_bytes(variable));
        pipeline.check(&Chunk::new(ty, &[64]).with_fill(&fill)).map_err(|e| format!("{e}"))?;
        Ok(Filtered { pipeline, ty, fill })
    }

    /// The attribute that stands for these filters.
    pub(crate) fn attribute(&self) -> Values {
        Values::from(self.pipeline.to_string())
    }

    /// The payload of elements that stand in memory in native or external order: the mask of
    /// filters that were left out, then what the others made of them.
    pub(crate) fn encode(
        &self,
        shape: &[usize],
        elements: &[u8],
        native: bool,
        scratch: &mut Scratch,
    ) -> Result<Vec<u8>, String> {
        let chunk = Chunk::new(self.ty, shape).with_fill(&self.fill);
        let chunk = if native { chunk.native() } else { chunk };
        let mut out = vec![0; 2];
        let encoded = self.pipeline.encode_unsummed(&chunk, elements, &mut out, scratch);
        let encoded = encoded.map_err(|e| format!("{e}"))?;
        out[..2].copy_from_slice(&encoded.mask.0.to_le_bytes());
        Ok(out)
    }

    /// Whether a payload may have so many bytes: filters that make their input longer are left out, or
    /// add a little.
    pub(crate) fn may_store(len: u64) -> bool {
        len <= 2 * LONGEST
    }

    /// The elements of a payload, in external form. `out` and `scratch` are memory to use.
    pub(crate) fn decode(
        &self,
        shape: &[usize],
        payload: &[u8],
        out: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        let chunk = Chunk::new(self.ty, shape);
        let bytes = chunk.bytes().map_err(|e| format!("{e}"))?;
        if bytes as u64 > LONGEST {
            return Err(format!("it would have {bytes} bytes, more than an entry may"));
        }
        let (mask, stored) = payload.split_first_chunk::<2>().ok_or("it is too short")?;
        // All of it is written over, so that only new memory is cleared.
        out.resize(bytes, 0);
        let mask = FilterMask(u16::from_le_bytes(*mask));
        let decoded = self.pipeline.decode(&chunk, mask, stored, out, scratch);
        decoded.map(drop).map_err(|e| format!("{e}"))
    }
}

/// A payload's log and place in it.
type Key = (u32, u64);

/// Payloads that were decoded lately.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    kept: Mutex<Bounded<Key, Arc<Vec<u8>>>>,
    /// Memory that is free: fresh memory costs as much as filling it.
    spare: Mutex<Vec<(Vec<u8>, Scratch)>>,
}

impl Decoded {
    /// The elements of a payload, decoded if they are not kept: `budget` bytes of all. `read` reads
    /// and checks it.
    pub(crate) fn get<E>(
        &self,
        (key, budget): (Key, u64),
        filters: &Filtered,
        shape: &[usize],
        read: impl FnOnce() -> Result<Vec<u8>, E>,
        failed: impl FnOnce(String) -> E,
    ) -> Result<Arc<Vec<u8>>, E> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(elements) = lock().get(&key) {
            return Ok(elements.clone());
        }
        let payload = read()?;
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut elements, mut scratch) = spare().pop().unwrap_or_default();
        filters.decode(shape, &payload, &mut elements, &mut scratch).map_err(failed)?;
        let elements = Arc::new(elements);
        let gone = lock().put(key, elements.clone(), elements.len() as u64, budget);
        // Unless somebody is reading it.
        let free = gone.into_iter().find_map(Arc::into_inner).unwrap_or_default();
        spare().push((free, scratch));
        Ok(elements)
    }

    /// Bytes that are kept.
    pub(crate) fn memory(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).memory()
    }
}
