//! Memory and library contexts that are used again from chunk to chunk.

use std::any::Any;

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
        f.debug_struct("Scratch").field("tools", &self.tools.0.len()).finish_non_exhaustive()
    }
}

/// What filters keep between chunks, one value of each type, so that a filter's file alone knows it.
#[derive(Default)]
pub(crate) struct Tools(Vec<Box<dyn Any + Send + Sync>>);

impl Tools {
    /// The kept `T`, or a new one; it is out of the box until it is [`put`](Tools::put) back.
    pub(crate) fn take<T: Any + Send + Sync + Default>(&mut self) -> Box<T> {
        let found = self.0.iter().position(|tool| tool.is::<T>());
        found
            .and_then(|at| self.0.swap_remove(at).downcast().ok())
            .unwrap_or_else(|| Box::new(T::default()))
    }

    pub(crate) fn put<T: Any + Send + Sync>(&mut self, tool: Box<T>) {
        self.0.push(tool);
    }

    /// Uses the kept `T`.
    pub(crate) fn with<T: Any + Send + Sync + Default, R>(
        &mut self,
        work: impl FnOnce(&mut T, &mut Tools) -> R,
    ) -> R {
        let mut tool = self.take::<T>();
        let result = work(&mut tool, self);
        self.put(tool);
        result
    }
}
