//! Findings about chunked variables: anchors, tables, places, and every chunk's bytes.

use std::path::Path;
use std::sync::Arc;

use esker::{ChunkFault, ChunkFaultKind, Dataset, OpenOptions};
use esker_format::Header;
use esker_store::Store;

use super::extent::has_chunks;
use super::finding::{Finding, Severity};
use crate::Progress;

pub(super) fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    header: &Header,
    progress: &mut dyn Progress,
    findings: &mut Vec<Finding>,
) -> esker::Result<()> {
    if !has_chunks(header) {
        return Ok(());
    }
    let dataset = Dataset::open_with(path, OpenOptions::new().store(store.clone()).blobs(true))?;
    let faults = dataset.examine_chunks(&mut |done, total| progress.progress(done, total))?;
    findings.extend(faults.iter().map(|fault| finding(&dataset, fault)));
    Ok(())
}

fn finding(dataset: &Dataset, fault: &ChunkFault) -> Finding {
    let code = match fault.kind {
        ChunkFaultKind::Anchor => "chunk-anchor",
        ChunkFaultKind::Table => "chunk-table",
        ChunkFaultKind::Place => "chunk-place",
        ChunkFaultKind::Overlap => "chunk-overlap",
        ChunkFaultKind::Data => "chunk-data",
    };
    let mut object = format!("variable {:?}", fault.var);
    if let Some(index) = &fault.chunk {
        let index: Vec<String> = index.iter().map(u64::to_string).collect();
        object.push_str(&format!(", chunk ({})", index.join(", ")));
    }
    if let Some(path) = dataset.chunk_file(fault.file).filter(|_| fault.file > 0) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        object.push_str(&format!(", file {name}"));
    }
    let finding = Finding::new(Severity::Error, code, object, &fault.what);
    match fault.offset {
        Some(offset) => finding.at(offset),
        None => finding,
    }
}
