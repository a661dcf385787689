//! Memory and library contexts that are used again from chunk to chunk.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use crate::elements::Elements;

/// Buffers and contexts for encoding and decoding. One for each thread; it grows to the largest
/// chunk that it has seen.
#[derive(Default)]
pub struct Scratch {
    pub(crate) elements: Elements,
    pub(crate) spare: [Vec<u8>; 2],
    pub(crate) tools: Tools,
}

impl Scratch {
    /// An empty one.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// What filters keep between chunks, one value of each type, so that a filter's file alone knows it.
/// Nobody ever waits for the lock: it lets threads share what owns a scratch without using it.
#[derive(Default)]
pub(crate) struct Tools(Mutex<Vec<Box<dyn Any + Send>>>);

impl Tools {
    fn list(&mut self) -> &mut Vec<Box<dyn Any + Send>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kept `T`, or a new one; it is out of the box until it is [`put`](Tools::put) back.
    pub(crate) fn take<T: Any + Send + Default>(&mut self) -> Box<T> {
        let list = self.list();
        let found = list.iter().position(|tool| tool.is::<T>());
        found
            .and_then(|at| list.swap_remove(at).downcast().ok())
            .unwrap_or_else(|| Box::new(T::default()))
    }

    pub(crate) fn put<T: Any + Send>(&mut self, tool: Box<T>) {
        self.list().push(tool);
    }

    /// Uses the kept `T`.
    pub(crate) fn with<T: Any + Send + Default, R>(
        &mut self,
        work: impl FnOnce(&mut T, &mut Tools) -> R,
    ) -> R {
        let mut tool = self.take::<T>();
        let result = work(&mut tool, self);
        self.put(tool);
        result
    }
}
