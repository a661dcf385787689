//! How chunked variables are stored: chunks, filters, and what they save.

use std::io;
use std::path::Path;

use esker::{Dataset, VarId};
use serde_json::{Value, json};

use super::text::section;
use crate::terminal::quantity::{bytes, grouped};
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json as form};

/// How one variable is stored.
pub(in crate::commands) struct Stored {
    /// The lengths of a chunk.
    pub(super) chunk: Vec<u64>,
    pub(super) chunk_bytes: u64,
    /// Chunks that were written, and that there are.
    pub(super) written: u64,
    pub(super) chunks: u64,
    pub(super) filters: String,
    /// Bytes of all values.
    pub(super) raw: u64,
    /// Bytes of the chunks in the file.
    pub(super) stored: u64,
}

impl Stored {
    /// Of a variable, if it is chunked. The tables are read, not the chunks.
    pub(in crate::commands) fn of(dataset: &Dataset, var: VarId) -> esker::Result<Option<Stored>> {
        let Some(chunking) = dataset.chunking(var) else { return Ok(None) };
        let size = dataset.variable(var)?.ty.size();
        let raw = dataset.shape(var)?.iter().fold(size, |n, len| n.saturating_mul(*len));
        let (mut written, mut stored) = (0, 0u64);
        dataset.stored_chunks(var, false, |_, chunk| {
            written += 1;
            stored = stored.saturating_add(chunk.size);
            Ok(())
        })?;
        Ok(Some(Stored {
            chunk: chunking.chunk.clone(),
            chunk_bytes: chunking.chunk_bytes(),
            written,
            chunks: chunking.chunks(dataset.numrecs()),
            filters: chunking.pipeline.to_string(),
            raw,
            stored,
        }))
    }

    /// For a program.
    pub(super) fn json(&self) -> Value {
        json!({
            "chunk": self.chunk,
            "chunk_bytes": self.chunk_bytes,
            "chunks": self.chunks,
            "written": self.written,
            "filters": self.filters,
            "stored_bytes": self.stored,
            "ratio": ratio(self.stored, self.raw).map(form::float),
        })
    }
}

/// Stored bytes over those of the values.
pub(super) fn ratio(stored: u64, raw: u64) -> Option<f64> {
    (raw > 0).then(|| stored as f64 / raw as f64)
}

fn ratio_text(stored: u64, raw: u64) -> String {
    ratio(stored, raw).map_or("-".to_string(), |ratio| format!("{ratio:.3}"))
}

/// The chunked variables, and all of them together.
pub(super) fn table<'a>(
    screen: &mut Screen,
    list: impl Iterator<Item = (&'a str, Option<&'a Stored>)>,
) -> io::Result<()> {
    let mut table = Table::new([
        ("name", Side::Left),
        ("chunk", Side::Left),
        ("of", Side::Right),
        ("chunks", Side::Right),
        ("filters", Side::Left),
        ("bytes", Side::Right),
        ("stored", Side::Right),
        ("ratio", Side::Right),
    ]);
    let (mut raw, mut stored, mut count) = (0u64, 0u64, 0);
    for (name, facts) in list {
        let Some(facts) = facts else {
            let none = [name, "contiguous", "", "", "", "", "", ""];
            table.row(none.map(str::to_string));
            continue;
        };
        let lengths: Vec<String> = facts.chunk.iter().map(u64::to_string).collect();
        let chunks = match facts.written == facts.chunks {
            true => grouped(facts.chunks),
            false => format!("{} of {}", grouped(facts.written), grouped(facts.chunks)),
        };
        table.row([
            name.to_string(),
            lengths.join(" × "),
            bytes(facts.chunk_bytes),
            chunks,
            if facts.filters.is_empty() { "none".to_string() } else { facts.filters.clone() },
            bytes(facts.raw),
            bytes(facts.stored),
            ratio_text(facts.stored, facts.raw),
        ]);
        (raw, stored) = (raw.saturating_add(facts.raw), stored.saturating_add(facts.stored));
        count += 1;
    }
    if count > 1 {
        let (all, empty) = ("all of them".to_string(), String::new);
        let ratio = ratio_text(stored, raw);
        table.row([all, empty(), empty(), empty(), empty(), bytes(raw), bytes(stored), ratio]);
    }
    section(screen, "chunked variables", &table)
}

/// What was chosen for each variable of a file that was made, scalars left out.
pub(in crate::commands) fn chosen(
    screen: &mut Screen,
    path: &Path,
) -> Result<(), crate::failure::Failure> {
    let fail = |error: esker::Error| crate::failure::Failure::file(path, error);
    let dataset = super::opening::open(path)?;
    let mut list = Vec::new();
    for (number, var) in dataset.schema().vars.iter().enumerate() {
        if !var.dims.is_empty() {
            list.push((&*var.name, Stored::of(&dataset, VarId(number)).map_err(fail)?));
        }
    }
    Ok(table(screen, list.iter().map(|(name, stored)| (*name, stored.as_ref())))?)
}
