//! Exact samples of states, to see whether a state that is computed again is the same.
//!
//! The noise of a lossy checkpoint can feed modes that grow; a model may not be deterministic. Both show
//! when a recomputation passes a state that was seen before.

use std::collections::BTreeMap;

use esker_format::ExternalType;

use crate::error::{AdjointError, Result};
use crate::model::ArrayMut;

/// Values of an array at evenly spaced places.
const COUNT: usize = 64;

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    name: String,
    elements: usize,
    bytes: Vec<u8>,
}

/// Samples of the states of the first forward run.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    steps: BTreeMap<u64, Vec<Sample>>,
    /// The largest magnitude of each array in any state.
    scale: BTreeMap<String, f64>,
}

fn places(elements: usize) -> impl Iterator<Item = usize> {
    let count = elements.min(COUNT);
    (0..count).map(move |i| i * elements / count)
}

fn take(array: &ArrayMut<'_>) -> Sample {
    let size = array.ty.size() as usize;
    let elements = array.bytes.len() / size;
    let mut bytes = Vec::with_capacity(COUNT * size);
    for i in places(elements) {
        bytes.extend_from_slice(&array.bytes[i * size..(i + 1) * size]);
    }
    Sample { name: array.name.clone(), elements, bytes }
}

fn values(ty: ExternalType, bytes: &[u8]) -> Vec<f64> {
    match ty {
        ExternalType::Double => {
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
        }
        ExternalType::Float => {
            bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b).into()).collect()
        }
        _ => Vec::new(),
    }
}

impl Samples {
    /// Remembers a state of the first forward run. An error where a sample is not finite.
    pub(crate) fn remember(&mut self, step: u64, arrays: &[ArrayMut<'_>]) -> Result<()> {
        let mut samples = Vec::with_capacity(arrays.len());
        for array in arrays {
            let sample = take(array);
            let found = values(array.ty, &sample.bytes);
            if let Some(i) = found.iter().position(|x| !x.is_finite()) {
                let element = places(sample.elements).nth(i).unwrap_or(0);
                return Err(AdjointError::NotFinite { array: sample.name, step, element });
            }
            let largest = found.iter().fold(0.0f64, |a, x| a.max(x.abs()));
            let scale = self.scale.entry(sample.name.clone()).or_insert(0.0);
            *scale = scale.max(largest);
            samples.push(sample);
        }
        self.steps.insert(step, samples);
        Ok(())
    }

    /// States between these two that are remembered.
    pub(crate) fn between(&self, from: u64, to: u64) -> Vec<u64> {
        self.steps.range(from + 1..to).map(|(&step, _)| step).collect()
    }

    /// Forgets states that the adjoint has passed.
    pub(crate) fn forget_from(&mut self, step: u64) {
        self.steps.split_off(&step.saturating_add(1));
    }

    /// Compares a state that was computed again with what it was. Gives the largest drift.
    pub(crate) fn compare(
        &self,
        step: u64,
        arrays: &[ArrayMut<'_>],
        lossless: bool,
        limit: f64,
    ) -> Result<f64> {
        let Some(samples) = self.steps.get(&step) else { return Ok(0.0) };
        let mut worst = 0.0f64;
        for (before, array) in samples.iter().zip(arrays) {
            let now = take(array);
            if *before == now {
                continue;
            }
            let scale = self.scale.get(&now.name).copied().unwrap_or(0.0);
            let pairs =
                values(array.ty, &before.bytes).into_iter().zip(values(array.ty, &now.bytes));
            let difference = pairs.fold(0.0f64, |a, (x, y)| {
                // NaN and infinity are as far as can be.
                let d = (x - y).abs();
                if d.is_finite() { a.max(d) } else { f64::INFINITY }
            });
            // Of integers nothing is lost on the way.
            let is_real = matches!(array.ty, ExternalType::Float | ExternalType::Double);
            let drift = match () {
                () if !is_real => f64::INFINITY,
                () if scale > 0.0 => difference / scale,
                () => f64::INFINITY,
            };
            worst = worst.max(drift);
            let name = now.name;
            if lossless {
                let why = "checkpoints lose nothing, so the model is not deterministic";
                return Err(AdjointError::Drift { array: name, step, drift, limit: 0.0, why });
            }
            if drift > limit {
                let why =
                    "the error of lossy checkpoints grows; use a smaller bound or lossless filters";
                return Err(AdjointError::Drift { array: name, step, drift, limit, why });
            }
        }
        Ok(worst)
    }

    /// A number for the state at a step, the same for the same values.
    pub(crate) fn fingerprint(arrays: &[ArrayMut<'_>]) -> u64 {
        let mut text = Vec::new();
        for array in arrays {
            text.extend(array.layout().to_string().bytes());
            text.extend(array.name.bytes());
            text.extend(take(array).bytes);
        }
        u64::from(crc32c::crc32c(&text)) << 32 | u64::from(crc32c::crc32c_append(1, &text))
    }
}
