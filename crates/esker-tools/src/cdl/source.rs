//! Where printing takes its data from.

use std::path::Path;

use esker::{Dataset, Selection};
use esker_format::chunked::{FILTERS, SHAPE};
use esker_format::{Schema, Values, VarId, Version};

/// An error of whatever the data comes from.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// Something that has the content of a classic file.
pub trait CdlSource {
    /// Dimensions, attributes and variables.
    fn schema(&self) -> &Schema;

    /// How many records there are.
    fn numrecs(&self) -> u64;

    /// The file version.
    fn version(&self) -> Version {
        self.schema().version
    }

    /// Where the file is.
    fn path(&self) -> &Path {
        Path::new("")
    }

    /// The name of the CDL: the last part of the path up to its last dot.
    fn name(&self) -> String {
        name_of(self.path())
    }

    /// Whether an attribute says how the values of a variable are stored, and is shown among the
    /// special ones only.
    fn is_storage(&self, _var: VarId, _attribute: &str) -> bool {
        false
    }

    /// The values of a hyperslab in C order, of the variable's type. `start` and `count` have
    /// one item for each dimension and lie inside the variable.
    fn read(&self, var: VarId, start: &[u64], count: &[u64]) -> Result<Values, SourceError>;
}

/// The name that a file gives its CDL: the last part of the path up to its last dot.
pub fn name_of(path: &Path) -> String {
    let path = path.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or_default();
    file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_string()
}

impl CdlSource for Dataset {
    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn numrecs(&self) -> u64 {
        self.numrecs()
    }

    fn path(&self) -> &Path {
        self.path()
    }

    fn is_storage(&self, var: VarId, attribute: &str) -> bool {
        let has = self.chunking(var).is_some() || self.container_version().is_some();
        has && [SHAPE, FILTERS].contains(&attribute)
    }

    fn read(&self, var: VarId, start: &[u64], count: &[u64]) -> Result<Values, SourceError> {
        Ok(self.get_values(var, &Selection::slab(start, count))?)
    }
}
