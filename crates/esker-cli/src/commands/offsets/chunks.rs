//! Where chunks and their tables lie.

use std::io::{self, Write};
use std::ops::Range;

use esker::{Dataset, StoredChunk, TableBlock, VarId};
use serde_json::{Value, json};

use crate::terminal::Screen;
use crate::terminal::quantity::{grouped, plural};
use crate::terminal::table::{Side, Table, printable};

/// The part of a file that chunks lie in, and what is in it.
pub(super) struct Heap {
    bytes: Range<u64>,
    variables: Vec<Chunked>,
}

/// One chunked variable.
struct Chunked {
    name: String,
    blocks: Vec<TableBlock>,
    chunks: u64,
    stored: u64,
    /// From the first byte of a chunk to the last.
    span: Option<Range<u64>>,
    /// Every chunk, if it is wanted.
    each: Vec<(Vec<u64>, StoredChunk)>,
}

impl Heap {
    /// That of a dataset, with these variables; `each` keeps every chunk.
    pub(super) fn of(dataset: &Dataset, vars: &[VarId], each: bool) -> esker::Result<Option<Heap>> {
        let Some(bytes) = dataset.heap()? else { return Ok(None) };
        let mut variables = Vec::new();
        for var in vars.iter().filter(|var| dataset.chunking(**var).is_some()) {
            let mut found = Chunked {
                name: dataset.variable(*var)?.name.to_string(),
                blocks: dataset.table_blocks(*var)?,
                chunks: 0,
                stored: 0,
                span: None,
                each: Vec::new(),
            };
            dataset.stored_chunks(*var, false, |index, chunk| {
                let end = chunk.offset.saturating_add(chunk.size);
                let span = found.span.take().unwrap_or(chunk.offset..end);
                found.span = Some(span.start.min(chunk.offset)..span.end.max(end));
                found.chunks += 1;
                found.stored += chunk.size;
                if each {
                    found.each.push((index.to_vec(), chunk));
                }
                Ok(())
            })?;
            variables.push(found);
        }
        Ok(Some(Heap { bytes, variables }))
    }

    fn in_tables(&self) -> u64 {
        let blocks = self.variables.iter().flat_map(|var| &var.blocks);
        blocks.map(|block| block.bytes).fold(0, u64::saturating_add)
    }

    fn in_chunks(&self) -> u64 {
        self.variables.iter().map(|var| var.stored).fold(0, u64::saturating_add)
    }

    /// For a person.
    pub(super) fn table(&self, screen: &mut Screen) -> io::Result<()> {
        let (begin, end) = (self.bytes.start, self.bytes.end);
        let (chunks, tables) = (self.in_chunks(), self.in_tables());
        writeln!(
            screen,
            "chunks and their tables from byte {begin} to {end}: {chunks} bytes in chunks, {tables} \
             in tables"
        )?;
        let mut table = Table::new([
            ("chunked variable", Side::Left),
            ("tables", Side::Right),
            ("first table", Side::Right),
            ("chunks", Side::Right),
            ("begin", Side::Right),
            ("end", Side::Right),
            ("bytes", Side::Right),
        ]);
        for var in &self.variables {
            let place = |at: Option<u64>| at.map_or("-".to_string(), |at| at.to_string());
            table.row([
                var.name.clone(),
                plural(var.blocks.len(), "block"),
                place(var.blocks.first().map(|block| block.offset)),
                grouped(var.chunks),
                place(var.span.as_ref().map(|span| span.start)),
                place(var.span.as_ref().map(|span| span.end)),
                var.stored.to_string(),
            ]);
        }
        if !table.is_empty() {
            writeln!(screen, "\n{}", screen.depth.bold("chunked variables"))?;
            let (depth, width) = (screen.depth, screen.width);
            table.write(screen, depth, width)?;
        }
        for var in self.variables.iter().filter(|var| !var.each.is_empty()) {
            let title = format!("chunks of {}", printable(&var.name));
            writeln!(screen, "\n{}", screen.depth.bold(title))?;
            for (index, chunk) in &var.each {
                let index: Vec<String> = index.iter().map(u64::to_string).collect();
                let (begin, end) = (chunk.offset, chunk.offset + chunk.size);
                writeln!(screen, "  {:>16}  {begin:>12}  {end:>12}", index.join(","))?;
            }
        }
        Ok(())
    }

    /// For a program.
    pub(super) fn json(&self) -> Value {
        let block = |block: &TableBlock| {
            json!({"begin": block.offset, "bytes": block.bytes, "first_chunk": block.first,
                   "entries": block.entries})
        };
        let chunk = |(index, chunk): &(Vec<u64>, StoredChunk)| {
            json!({"index": index, "begin": chunk.offset, "end": chunk.offset + chunk.size,
                   "crc32c": chunk.crc32c, "mask": chunk.mask.0})
        };
        let variable = |var: &Chunked| {
            let mut value = json!({
                "name": var.name,
                "tables": var.blocks.iter().map(block).collect::<Vec<_>>(),
                "chunks": var.chunks,
                "stored_bytes": var.stored,
            });
            if !var.each.is_empty() {
                value["places"] = var.each.iter().map(chunk).collect();
            }
            value
        };
        json!({
            "begin": self.bytes.start,
            "end": self.bytes.end,
            "chunk_bytes": self.in_chunks(),
            "table_bytes": self.in_tables(),
            "variables": self.variables.iter().map(variable).collect::<Vec<_>>(),
        })
    }
}
