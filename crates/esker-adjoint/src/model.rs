//! What a model must offer: its state, its adjoint, a step forward and a step back.

use std::fmt;

use esker_format::ExternalType;

/// What a model says when it fails.
pub type ModelError = Box<dyn std::error::Error + Send + Sync>;

/// A named array of a model, lent for a moment.
#[derive(Debug)]
pub struct ArrayMut<'a> {
    /// Its name, the same at every step.
    pub name: String,
    /// What its elements are.
    pub ty: ExternalType,
    /// Elements in each dimension, slowest first.
    pub shape: Vec<usize>,
    /// The elements, dense, in C order and the machine's byte order.
    pub bytes: &'a mut [u8],
}

impl<'a> ArrayMut<'a> {
    /// An array of doubles.
    pub fn doubles(name: &str, shape: &[usize], values: &'a mut [f64]) -> ArrayMut<'a> {
        let (name, bytes) = (name.to_string(), bytemuck::cast_slice_mut(values));
        ArrayMut { name, ty: ExternalType::Double, shape: shape.to_vec(), bytes }
    }

    /// An array of floats.
    pub fn floats(name: &str, shape: &[usize], values: &'a mut [f32]) -> ArrayMut<'a> {
        let (name, bytes) = (name.to_string(), bytemuck::cast_slice_mut(values));
        ArrayMut { name, ty: ExternalType::Float, shape: shape.to_vec(), bytes }
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout { name: self.name.clone(), ty: self.ty, shape: self.shape.clone() }
    }
}

/// What an array is, without its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub ty: ExternalType,
    /// Elements in each dimension.
    pub shape: Vec<usize>,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.ty, self.shape)
    }
}

impl Layout {
    /// Bytes of the elements, if a machine can count them.
    pub fn bytes(&self) -> Option<usize> {
        let size = self.ty.size() as usize;
        self.shape.iter().try_fold(size, |n, &len| n.checked_mul(len))
    }
}

/// A model that can be run forward and back.
///
/// Step n leads from state n to state n + 1. [`forward`](Model::forward) finds state `from` in the arrays of
/// [`state`](Model::state) and leaves state `to` there. [`reverse`](Model::reverse) finds state `to` there, and
/// in the arrays of [`adjoint`](Model::adjoint) the adjoint at `from`, and leaves the adjoint at `to`. The
/// same state must give the same result bit by bit, or states that are computed again are not what they were.
pub trait Model {
    /// All that a later step depends on.
    fn state(&mut self) -> Vec<ArrayMut<'_>>;

    /// All that an earlier reverse step depends on: the adjoint of the state, and the gradient so far.
    fn adjoint(&mut self) -> Vec<ArrayMut<'_>>;

    /// Runs the steps `from..to`.
    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError>;

    /// Runs the adjoint of step `to`, which is `from - 1`.
    fn reverse(&mut self, from: u64, to: u64) -> Result<(), ModelError>;

    /// Whether the adjoint of a step needs something else than the state before it; then
    /// [`deps`](Model::deps) has it after the step was run.
    fn has_deps(&self) -> bool {
        false
    }

    /// What the adjoint of the step that was run last depends on.
    fn deps(&mut self) -> Vec<ArrayMut<'_>> {
        Vec::new()
    }

    /// Whether the model ends at this state, if it knows.
    fn is_finished(&mut self, state: u64) -> Option<bool> {
        let _ = state;
        None
    }

    /// Arrays of these shapes are about to be restored: makes room for them, where shapes change between steps.
    fn reshape(&mut self, layout: &[Layout]) -> Result<(), ModelError> {
        let _ = layout;
        Ok(())
    }
}
