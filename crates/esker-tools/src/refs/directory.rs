//! References as a directory of Parquet files, for many chunks: a reader loads what it needs.
//!
//! The layout is fsspec's: `.zmetadata` has all metadata and the number of rows of a file, and
//! row r of `VAR/refs.N.parq` is chunk N × rows + r in C order. Every file is there, even one
//! that has no chunk: fsspec, when it looks for a URL in them, does not expect a gap.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{CreateMode, Store};

use super::array::{Array, Content};
use super::grid::Grid;
use super::location::Urls;
use super::metadata::{base64, quoted};
use super::parquet::{self, Row};
use super::sink::{Growing, Sink, failed};

/// A directory that is being written.
#[derive(Debug)]
pub(super) struct Directory {
    store: Arc<dyn Store>,
    path: PathBuf,
    urls: Urls,
    /// Rows of a file.
    rows: usize,
    metadata: Vec<String>,
    array: Option<Current>,
}

/// The array whose chunks come.
#[derive(Debug)]
struct Current {
    folder: PathBuf,
    name: String,
    grid: Grid,
    /// The number of the file that is next, and its rows so far.
    file: u64,
    rows: Vec<Row>,
    /// The files that these are in, by their place in `rows`, and the other way round.
    paths: Vec<String>,
    places: HashMap<u32, u32>,
}

impl Directory {
    /// Begins to write into a folder that is there.
    pub(super) fn begin(
        store: &Arc<dyn Store>,
        path: &Path,
        urls: &Urls,
        rows: usize,
    ) -> io::Result<Directory> {
        let store = store.enclosed(path).map_err(failed)?;
        let (path, urls) = (path.to_path_buf(), urls.clone());
        Ok(Directory { store, path, urls, rows: rows.max(1), metadata: Vec::new(), array: None })
    }

    /// Writes the metadata.
    pub(super) fn end(self) -> io::Result<()> {
        let file = self.store.create(&self.path.join(METADATA), CreateMode::New);
        let mut out = io::BufWriter::with_capacity(1 << 16, Growing::new(file.map_err(failed)?));
        // Whoever knows consolidated metadata of Zarr needs not list anything.
        write!(
            out,
            "{{\"zarr_consolidated_format\":1,\"record_size\":{},\"metadata\":{{",
            self.rows
        )?;
        for (i, entry) in self.metadata.iter().enumerate() {
            write!(out, "{}\n{entry}", if i > 0 { "," } else { "" })?;
        }
        out.write_all(b"\n}}\n")?;
        out.into_inner().map_err(|error| error.into_error())?.sync()
    }
}

/// Most files that have no chunk at all.
const MOST_EMPTY: u64 = 100_000;

/// The file by which a directory of references is known.
const METADATA: &str = ".zmetadata";

impl Sink for Directory {
    fn metadata(&mut self, key: &str, text: &str) -> io::Result<()> {
        self.metadata.push(format!("{}:{text}", quoted(key)));
        Ok(())
    }

    fn begin(&mut self, array: &Array) -> io::Result<()> {
        let (files, needed) =
            (array.grid().len() / self.rows as u64, array.chunks / self.rows as u64);
        if files > needed.saturating_add(MOST_EMPTY) {
            let sentence = format!(
                "variable {}: it has {} chunks, of which {} were written: too many files would be \
                 empty (JSON lists only what was written)",
                array.name,
                array.grid().len(),
                array.chunks
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        // The name is the file's, and becomes that of a folder: of one in here.
        if matches!(&*array.name, "" | "." | "..") || array.name.contains(['/', '\0']) {
            let sentence = format!("variable {:?}: no folder can have its name", array.name);
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        let folder = self.path.join(&array.name);
        self.store.create_dir(&folder).map_err(failed)?;
        let (name, grid) = (array.name.clone(), array.grid());
        let (rows, paths, places) = (Vec::new(), Vec::new(), HashMap::new());
        self.array = Some(Current { folder, name, grid, file: 0, rows, paths, places });
        Ok(())
    }

    fn chunk(&mut self, index: &[u64], content: Content<'_>) -> io::Result<()> {
        let Some(array) = &mut self.array else { return Ok(()) };
        let number = array.grid.number(index);
        let (file, row) = match number.map(|n| (n / self.rows as u64, n % self.rows as u64)) {
            Some((file, row)) if (file, row) >= (array.file, array.rows.len() as u64) => {
                (file, row)
            }
            _ => {
                let name = &array.name;
                let sentence = format!("variable {name}: chunk {index:?} is out of its order");
                return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
            }
        };
        while array.file < file {
            array.write(&*self.store, self.rows)?;
        }
        array.rows.resize(row as usize, Row::Missing);
        let row = match content {
            Content::At { file, offset, size } => {
                Row::At { path: array.path_of(file, &self.urls), offset, size }
            }
            Content::Inline(bytes) => Row::Raw(raw(bytes)?),
        };
        array.rows.push(row);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut array) = self.array.take() else { return Ok(()) };
        let (chunks, rows) = (array.grid.len(), self.rows as u64);
        while array.file < chunks.div_ceil(rows) {
            let left = chunks - array.file * rows;
            array.write(&*self.store, left.min(rows) as usize)?;
        }
        Ok(())
    }
}

impl Current {
    /// The number of a file in the list of paths.
    fn path_of(&mut self, file: u32, urls: &Urls) -> u32 {
        *self.places.entry(file).or_insert_with(|| {
            self.paths.push(urls.of(file));
            self.paths.len() as u32 - 1
        })
    }

    /// Writes the next file, of so many rows.
    fn write(&mut self, store: &dyn Store, rows: usize) -> io::Result<()> {
        self.rows.resize(rows, Row::Missing);
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let bytes = parquet::file(&paths, &self.rows)?;
        let path = self.folder.join(format!("refs.{}.parq", self.file));
        let file = store.create(&path, CreateMode::New).map_err(failed)?;
        file.write_at(0, &bytes).map_err(failed)?;
        self.rows.clear();
        self.paths.clear();
        self.places.clear();
        self.file += 1;
        Ok(())
    }
}

/// What fsspec takes for these bytes: it decodes what seems to be encoded.
fn raw(bytes: &[u8]) -> io::Result<Vec<u8>> {
    const ENCODED: &[u8] = b"base64:";
    if !bytes.starts_with(ENCODED) {
        return Ok(bytes.to_vec());
    }
    let mut encoded = ENCODED.to_vec();
    base64(&mut encoded, bytes)?;
    Ok(encoded)
}

/// Whether this is a directory of references.
pub(super) fn is_references(store: &dyn Store, path: &Path) -> io::Result<bool> {
    store.exists(&path.join(METADATA)).map_err(failed)
}
