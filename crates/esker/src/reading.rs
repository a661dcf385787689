//! Reads that go on while the program does.

use std::sync::{Arc, PoisonError};

use esker_format::{Native, Values, VarId};
use esker_store::File;

use crate::burst::Overlaid;
use crate::canonical::Canonical;
use crate::chunked::Chunked;
use crate::commit::Committed;
use crate::container::Container;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::opening;
use crate::pending::Pending;
use crate::selection::Selection;

impl Dataset {
    /// Begins to read a selection and returns; the rank's I/O thread reads and converts it, after
    /// what was begun before. Independent. All errors come with [`Pending::wait`], wrong arguments
    /// too.
    ///
    /// It sees what this rank has written before. What is written between the beginning and the end
    /// of a read may be seen or not, element by element.
    ///
    /// ```
    /// # use esker::{CreateOptions, Dataset, DimLen, ExternalType, Selection};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("run.nc");
    /// # let mut def = Dataset::create(&path, CreateOptions::new())?;
    /// # let time = def.add_dim("time", DimLen::Fixed(10))?;
    /// # let x = def.add_dim("x", DimLen::Fixed(4))?;
    /// # let t = def.add_var("t", ExternalType::Float, &[time, x])?;
    /// # let mut ds = def.enddef()?;
    /// # ds.put(t, &Selection::all(), &[1.5f32; 40])?;
    /// # ds.close()?;
    /// let ds = Dataset::open(&path)?;
    /// let step = |n: u64| ds.get_start::<f64>(t, &Selection::slab(&[n, 0], &[1, 4]));
    /// let mut sum = 0.0;
    /// let mut next = step(0);
    /// for n in 0..10 {
    ///     let values = next.wait()?;
    ///     next = if n < 9 { step(n + 1) } else { esker::Pending::ready(Ok(vec![])) };
    ///     // Meanwhile:
    ///     sum += values.iter().sum::<f64>();
    /// }
    /// assert_eq!(sum, 60.0);
    /// # Ok(()) }
    /// ```
    pub fn get_start<T>(&self, var: VarId, selection: &Selection) -> Pending<Vec<T>>
    where
        T: Native + Send + 'static,
    {
        let selection = selection.clone();
        self.read_start(var, move |dataset, var| dataset.get(var, &selection))
    }

    /// The same as values of the variable's own type. Independent.
    pub fn get_values_start(&self, var: VarId, selection: &Selection) -> Pending<Values> {
        let selection = selection.clone();
        self.read_start(var, move |dataset, var| dataset.get_values(var, &selection))
    }

    fn read_start<T: Send + 'static>(
        &self,
        var: VarId,
        read: impl FnOnce(&Dataset, VarId) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        if self.layout.holds_back() {
            // Only this one knows what is not written yet.
            return Pending::ready(read(self, var));
        }
        let begun = self.file_var(var).and_then(|var| Ok((var, self.for_reading()?)));
        match begun {
            Ok((var, dataset)) => self.ground.io.start_for_token(move || read(&dataset, var)),
            Err(error) => Pending::ready(Err(error)),
        }
    }

    /// This dataset as it is now, for the I/O thread; under the file's numbers, not this rank's.
    fn for_reading(&self) -> Result<Arc<Dataset>> {
        let ground = &self.ground;
        let container = self.layout.get::<Container>();
        let container = container.and_then(|container| container.for_reading());
        let seen = match &container {
            // The I/O thread makes the index.
            Some(_) => None,
            None => self.layout.over(ground)?,
        };
        let file = seen.clone().map_or_else(|| ground.file.clone(), |view| view as Arc<dyn File>);
        let mut kept = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(generation, d): &&(u64, Arc<Dataset>)| {
            let same = d.ground.records == ground.records && Arc::ptr_eq(&d.ground.file, &file);
            same && *generation == ground.generation
        };
        if let Some((_, dataset)) = kept.as_ref().filter(is_it) {
            return Ok(dataset.clone());
        }
        let mut base = ground.base.clone();
        base.writable = false;
        base.raw |= !ground.counts;
        let (container, volume) = (container.map(Box::new), ground.volume.clone());
        let (heap, lock) = (None, None);
        let committed =
            Committed { file, renamed: false, container, heap, volume, lock, rest: None };
        let state = (committed, ground.header.clone(), ground.records);
        let mut dataset = opening::dataset(base, state, Vec::new());
        dataset.ground.broken = ground.broken.clone();
        dataset.ground.has_begun(ground.begun());
        if let (Some(chunked), Some(known)) = (dataset.layout.get_mut(), self.layout.get()) {
            Chunked::know(chunked, known);
        }
        if let Some(view) = seen {
            let under = std::mem::replace(&mut dataset.layout, Box::new(Canonical));
            dataset.layout = Box::new(Overlaid { view, under });
        }
        let dataset = Arc::new(dataset);
        *kept = Some((ground.generation, dataset.clone()));
        Ok(dataset)
    }
}
