//! What a dataset tells of its sub-files.

use std::any::Any;
use std::ops::Range;
use std::path::PathBuf;

use esker_format::Header;

use super::{Groups, Spread};
use crate::dataset::Dataset;

impl Dataset {
    fn spread(&self) -> Option<&Spread> {
        let volume: &dyn Any = &**self.ground.volume.as_ref()?;
        volume.downcast_ref()
    }

    /// The sub-files of decomposed variables, and which of the ranks that wrote them each is for;
    /// none where everything is in one file.
    pub fn subfiles(&self) -> Vec<(PathBuf, Range<u64>)> {
        let Some(spread) = self.spread() else { return Vec::new() };
        let ranks = self.decompositions().iter().map(|map| map.ranks).max().unwrap_or(0);
        spread.paths().into_iter().zip(spread.groups().ranks(ranks)).collect()
    }

    /// Whether a file with this header has sub-files.
    pub fn has_subfiles(header: &Header) -> bool {
        !matches!(Groups::expanded(&header.schema), Ok(None))
    }

    /// Sub-files that have not taken their names, because the program that made them died: the name
    /// that each is to have, and the one that it has. They are found, and the next sync or close of a
    /// writer, or [`recover`](crate::recover), names them.
    pub fn hidden_subfiles(&self) -> Vec<(PathBuf, PathBuf)> {
        self.spread().map_or(Vec::new(), |spread| spread.hidden())
    }

    /// Sub-files of other datasets that had this one's name: what a program that died has left.
    pub fn stale_subfiles(&self) -> Vec<PathBuf> {
        self.spread().map_or(Vec::new(), |spread| spread.strangers())
    }

    /// What is wrong with sub-files: those that are missing, cut short, without records that the
    /// dataset has, or of another dataset.
    pub fn subfile_faults(&self) -> Vec<(PathBuf, String)> {
        self.spread().map_or(Vec::new(), |spread| spread.faults())
    }
}
