//! Where in the files of a dataset which structure lies, so that damage can be aimed at it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Dataset, OpenOptions, VarId};
use esker_format::Header;
use esker_store::{CreateMode, MemoryStore, Store};

use crate::form::Form;
use crate::life::NAMES;

/// Names and bytes of all files.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A part of a file that has one meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Structure {
    /// A classic header, of which what Esker adds and relies on is judged.
    Header,
    /// Blocks of tables of chunks.
    Table,
    /// Stored chunks.
    Chunk,
    /// Heads of tables' and chunks' own files.
    Head,
    /// Maps of decomposed variables.
    Map,
    /// Decisions on versions of a container, and runs of what they consist of.
    Manifest,
    /// The mark of a container.
    Mark,
    /// Metadata of a log.
    LogMetadata,
    /// Payloads of a log.
    LogPayload,
    /// The journal of a redefinition.
    Journal,
}

impl Structure {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Structure::Header => "header",
            Structure::Table => "table",
            Structure::Chunk => "chunk",
            Structure::Head => "head",
            Structure::Map => "map",
            Structure::Manifest => "manifest",
            Structure::Mark => "mark",
            Structure::LogMetadata => "log-metadata",
            Structure::LogPayload => "log-payload",
            Structure::Journal => "journal",
        }
    }

    /// What a dataset of a form has.
    pub(crate) fn of(form: Form) -> &'static [Structure] {
        use Structure::*;
        match form {
            Form::Canonical => &[Journal],
            Form::Chunked => &[Header, Table, Chunk, Journal],
            Form::ChunkedFiles => &[Header, Table, Chunk, Head],
            Form::Log | Form::LogChunks => &[Manifest, Mark, LogMetadata, LogPayload],
            Form::Decomposed | Form::DecomposedFiles => &[Header, Map],
            Form::BurstBuffer => &[LogMetadata, LogPayload],
        }
    }
}

/// Where a structure is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) bytes: Range<usize>,
}

pub(crate) fn files_of(store: &MemoryStore) -> Files {
    let names = store.list().into_iter();
    names.filter_map(|name| store.bytes(&name).map(|bytes| (name, bytes))).collect()
}

/// A store with these files and the folders that they are in.
pub(crate) fn store_of(files: &Files, folder: &Path) -> MemoryStore {
    let store = MemoryStore::default();
    let made = |path: &Path| store.create_dir(path).is_ok();
    made(folder);
    made(&Form::buffer(folder));
    for (name, bytes) in files {
        for above in name.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
            if above.starts_with(folder) {
                made(above);
            }
        }
        if let Ok(file) = store.create(name, CreateMode::Truncate) {
            let _ = file.write_at(0, bytes);
        }
    }
    store
}

/// All places of a structure in the files of an undamaged dataset.
pub(crate) fn places(form: Form, folder: &Path, files: &Files, what: Structure) -> Vec<Place> {
    let whole = |wanted: &dyn Fn(&str) -> bool| -> Vec<Place> {
        let named = files.iter().filter(|(name, _)| wanted(&name.to_string_lossy()));
        named.map(|(file, bytes)| Place { file: file.clone(), bytes: 0..bytes.len() }).collect()
    };
    let ends = |name: &str, end: &str| name.ends_with(end);
    let found = match what {
        Structure::Manifest => whole(&|name| name.contains("/refs/") || name.contains("/runs/")),
        Structure::Mark => whole(&|name| ends(name, "esker.json")),
        Structure::LogMetadata => whole(&|name| ends(name, ".meta")),
        Structure::LogPayload => whole(&|name| ends(name, ".data")),
        Structure::Journal => whole(&|name| ends(name, "esker-redef")),
        Structure::Head => {
            let beside = whole(&|name| name.contains("/tables.") || name.contains("/chunks."));
            let head = |place: Place| Place { bytes: 0..64.min(place.bytes.end), ..place };
            beside.into_iter().map(head).collect()
        }
        Structure::Header => headers(files),
        Structure::Map => maps(files),
        Structure::Table | Structure::Chunk => chunks(form, folder, files, what),
    };
    found.into_iter().filter(|place| place.bytes.len() >= 4).collect()
}

fn classic(files: &Files) -> Vec<(&PathBuf, Header, usize)> {
    let decoded = |(name, bytes): (&'_ PathBuf, &Vec<u8>)| {
        let header = Header::decode(bytes, bytes.len() as u64).ok()?;
        let len = header.encode().len();
        Some((name.clone(), header, len))
    };
    let found: Vec<_> = files.iter().filter_map(decoded).collect();
    let named = |(name, header, len): (PathBuf, Header, usize)| {
        files.get_key_value(&name).map(|(name, _)| (name, header, len))
    };
    found.into_iter().filter_map(named).collect()
}

fn headers(files: &Files) -> Vec<Place> {
    let place =
        |(name, _, len): (&PathBuf, Header, usize)| Place { file: name.clone(), bytes: 0..len };
    classic(files).into_iter().map(place).collect()
}

/// The variables `Dx.…` that describe decompositions.
fn maps(files: &Files) -> Vec<Place> {
    let mut places = Vec::new();
    for (name, header, _) in classic(files) {
        for (_, var, place) in header.vars() {
            if var.name.starts_with('D') && var.name.contains('.') {
                let (from, len) = (place.begin as usize, place.vsize as usize);
                places.push(Place { file: name.clone(), bytes: from..from + len });
            }
        }
    }
    places
}

fn chunks(form: Form, folder: &Path, files: &Files, what: Structure) -> Vec<Place> {
    let store = store_of(files, folder);
    let shared: Arc<dyn Store> = Arc::new(store);
    let Ok(ds) = Dataset::open_with(form.path(folder), OpenOptions::new().store(shared)) else {
        return Vec::new();
    };
    let ending = |part: &str| files.keys().find(|name| name.to_string_lossy().contains(part));
    let own = match form {
        Form::ChunkedFiles => ending("/tables."),
        _ => ending("run.nc"),
    };
    let Some(own) = own.cloned() else { return Vec::new() };
    let mut places = Vec::new();
    for name in &NAMES[..2] {
        let Ok(var) = ds.var(name) else { continue };
        add_chunks(&ds, var, what, &own, files, &mut places);
    }
    places
}

fn add_chunks(
    ds: &Dataset,
    var: VarId,
    what: Structure,
    own: &Path,
    files: &Files,
    places: &mut Vec<Place>,
) {
    let mut add = |file: &Path, from: u64, len: u64| {
        let bytes = from as usize..(from + len) as usize;
        if files.get(file).is_some_and(|all| all.len() >= bytes.end) {
            places.push(Place { file: file.to_path_buf(), bytes });
        }
    };
    if what == Structure::Table {
        let blocks = ds.table_blocks(var).unwrap_or_default();
        blocks.iter().for_each(|block| add(own, block.offset, block.bytes));
        return;
    }
    let _ = ds.stored_chunks(var, false, |_, chunk| {
        let number = format!(".{}", chunk.file);
        let beside = files.keys().find(|name| {
            let name = name.to_string_lossy();
            name.contains("/chunks.") && name.ends_with(&number)
        });
        match (chunk.file, beside) {
            (0, _) => add(own, chunk.offset, chunk.size),
            (_, Some(file)) => add(file, chunk.offset, chunk.size),
            _ => {}
        }
        Ok(())
    });
}
