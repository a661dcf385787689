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

/// The largest magnitude, or the first element that is not finite.
fn largest(array: &ArrayMut<'_>) -> std::result::Result<f64, usize> {
    let fold = |numbers: &mut dyn Iterator<Item = f64>| {
        let mut largest = 0.0f64;
        for (i, x) in numbers.enumerate() {
            if !x.is_finite() {
                return Err(i);
            }
            largest = largest.max(x.abs());
        }
        Ok(largest)
    };
    match array.ty {
        ExternalType::Double => {
            fold(&mut array.bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)))
        }
        ExternalType::Float => {
            fold(&mut array.bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b).into()))
        }
        _ => Ok(0.0),
    }
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
            // Of all elements: where a pulse passes between the samples, they are zero all the time.
            let largest = match largest(array) {
                Ok(largest) => largest,
                Err(element) => {
                    return Err(AdjointError::NotFinite { array: sample.name, step, element });
                }
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_where_samples_were_zero_is_measured_by_the_whole_array() {
        let mut field = vec![0.0; 6400];
        field[50] = 10.0; // between two samples
        let mut samples = Samples::default();
        samples.remember(3, &[ArrayMut::doubles("u", &[6400], &mut field)]).unwrap();
        field.iter_mut().for_each(|x| *x += 1e-4);
        let arrays = [ArrayMut::doubles("u", &[6400], &mut field)];
        let drift = samples.compare(3, &arrays, false, 0.1).unwrap();
        assert!((drift - 1e-5).abs() < 1e-9, "{drift}");
        assert!(samples.compare(3, &arrays, false, 1e-6).is_err());
        assert!(samples.compare(3, &arrays, true, 0.1).is_err());
    }

    #[test]
    fn the_first_element_that_is_not_finite_is_named() {
        let mut field = vec![1.0f32; 1000];
        field[701] = f32::INFINITY;
        let arrays = [ArrayMut::floats("p", &[1000], &mut field)];
        let error = Samples::default().remember(9, &arrays).unwrap_err();
        assert!(matches!(error, AdjointError::NotFinite { step: 9, element: 701, .. }), "{error}");
    }
}
