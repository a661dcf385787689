//! From CDL to a file, as `ncgen` makes it.

use std::path::Path;
use std::sync::Arc;

use esker::{
    Alignment, CreateOptions, DataLayout, Dataset, FillMode, Hints, Layout, Owner, Schema,
    Selection,
};
use esker_format::{SchemaError, Values, VarId, Version};
use esker_store::{LocalStore, Store};

use super::error::CdlError;
use super::fill::each_values;
use super::parse::{CdlFile, parse_bytes};
use crate::whole;

/// How to make a file.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// The file version. Unless told it is the one that the text asks for with `_Format`, or
    /// else the oldest that holds what the text describes.
    pub version: Option<Version>,
    /// Whether a file of the same name is replaced; if not, it is an error.
    pub clobber: bool,
    /// How the data section is aligned.
    pub align: Alignment,
    /// Where the file is made.
    pub store: Arc<dyn Store>,
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        let (align, store) = (Alignment::default(), Arc::new(LocalStore));
        GenerateOptions { version: None, clobber: true, align, store }
    }
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The file version.
    pub version: Version,
    /// How many records there are.
    pub numrecs: u64,
    /// What the text said that has no effect, in sentences.
    pub notes: Vec<String>,
}

/// Why no file was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The text is not CDL of the classic model.
    #[error(transparent)]
    Text(#[from] CdlError),
    /// The version cannot hold it.
    #[error("{0}")]
    Schema(#[from] SchemaError),
    /// The file could not be written.
    #[error(transparent)]
    File(Box<esker::Error>),
}

impl From<esker::Error> for GenerateError {
    fn from(error: esker::Error) -> GenerateError {
        GenerateError::File(Box::new(error))
    }
}

/// Makes a file of CDL text. The text need not be UTF-8.
pub fn generate(
    text: &[u8],
    path: &Path,
    options: &GenerateOptions,
) -> Result<Generated, GenerateError> {
    write(&parse_bytes(text)?, path, options)
}

/// Makes a file of parsed CDL, which appears when it is complete: until then a file that has its name is
/// what it was.
pub fn write(
    file: &CdlFile,
    path: &Path,
    options: &GenerateOptions,
) -> Result<Generated, GenerateError> {
    let version = choose(file, options)?;
    let store = &options.store;
    if !options.clobber {
        whole::require_absent(&**store, path).map_err(esker::Error::from)?;
    }
    let draft = whole::begin(store, path, Layout::Classic, &Hints::default())?;
    let create =
        CreateOptions::new().version(version).align(options.align).blobs(true).store(store.clone());
    let mut define = Dataset::create(draft.path(), create)?;
    for dim in &file.schema.dims {
        define.add_dim(&dim.name, dim.len)?;
    }
    for attribute in &file.schema.attrs {
        define.put_attr(Owner::Global, &attribute.name, attribute.values.clone())?;
    }
    for var in &file.schema.vars {
        let id = define.add_var(&var.name, var.ty, &var.dims)?;
        for attribute in &var.attrs {
            define.put_attr(id, &attribute.name, attribute.values.clone())?;
        }
        // What is given whole need not be filled first.
        let size = elements(&file.schema.shape(var, file.numrecs));
        if file.given_len(id) == size {
            define.set_fill(id, FillMode::NoFill)?;
        }
    }
    let mut dataset = define.enddef().map_err(esker::Error::from)?;
    for id in 0..file.schema.vars.len() {
        put(&mut dataset, file, VarId(id))?;
    }
    if draft.replaces() {
        // The name may reach the disk before the contents, and the old file would be lost.
        dataset.sync()?;
    }
    dataset.close()?;
    whole::name(store, draft, options.clobber, false)?;
    Ok(Generated { version, numrecs: file.numrecs, notes: file.notes.clone() })
}

/// The version told, or the oldest that the text allows and that has the room.
fn choose(file: &CdlFile, options: &GenerateOptions) -> Result<Version, GenerateError> {
    let place = |version: Version| -> Result<(), SchemaError> {
        let schema = with_version(&file.schema, version)?;
        DataLayout::place(&schema, &options.align).map(drop)
    };
    if let Some(version) = options.version.or(file.format) {
        place(version)?;
        return Ok(version);
    }
    let oldest = file.schema.version;
    let fitting = Version::ALL.into_iter().filter(|v| *v >= oldest).find(|v| place(*v).is_ok());
    match fitting {
        Some(version) => Ok(version),
        None => Ok(place(Version::Cdf5).map(|()| Version::Cdf5)?),
    }
}

/// The schema in a version, or what that version cannot hold of it.
fn with_version(schema: &Schema, version: Version) -> Result<Schema, SchemaError> {
    let mut new = Schema::new(version);
    for dim in &schema.dims {
        new.add_dim(&dim.name, dim.len)?;
    }
    for attribute in &schema.attrs {
        new.put_attr(Owner::Global, &attribute.name, attribute.values.clone())?;
    }
    for var in &schema.vars {
        let id = new.add_var(&var.name, var.ty, &var.dims)?;
        for attribute in &var.attrs {
            new.put_attr(Owner::Var(id), &attribute.name, attribute.values.clone())?;
        }
    }
    Ok(new)
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |size, len| size.saturating_mul(*len))
}

/// Writes the values given for a variable: a beginning of the array in C order, which is a
/// slab in each dimension at most.
fn put(dataset: &mut Dataset, file: &CdlFile, id: VarId) -> Result<(), GenerateError> {
    let (Some(var), Some(values)) = (file.schema.variable(id), file.given.get(id.0)) else {
        return Ok(());
    };
    let given = values.len() as u64;
    let shape = file.schema.shape(var, file.numrecs);
    if given > 0 && given == elements(&shape) {
        let start = vec![0; shape.len()];
        dataset.put_values(id, &Selection::slab(&start, &shape), values)?;
        return Ok(());
    }
    let mut start = vec![0; shape.len()];
    let mut done = 0;
    for dim in 0..shape.len() {
        let inner = elements(&shape[dim + 1..]).max(1);
        let whole = (given - done) / inner;
        if whole > 0 {
            let mut count = vec![1; shape.len()];
            count[dim] = whole;
            count[dim + 1..].copy_from_slice(&shape[dim + 1..]);
            let next = done + whole * inner;
            let part = part(values, done as usize, next as usize);
            dataset.put_values(id, &Selection::slab(&start, &count), &part)?;
            done = next;
        }
        start[dim] = whole;
    }
    Ok(())
}

fn part(values: &Values, from: usize, to: usize) -> Values {
    macro_rules! part {
        ($($variant:ident),*) => {
            match values {
                $(Values::$variant(v) => Values::$variant(v.get(from..to).unwrap_or_default().to_vec()),)*
            }
        };
    }
    debug_assert!(each_values!(values, v => v.len()) >= to);
    part!(Byte, Char, Short, Int, Float, Double, UByte, UShort, UInt, Int64, UInt64)
}
