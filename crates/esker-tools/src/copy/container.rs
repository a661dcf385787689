//! Copying into a container: what would go to a place in the classic file is appended as a
//! write of the variable that is there.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{io, sync::Arc};

use esker::{
    CreateOptions, Dataset, DimId, Error, FileOrder, Header, Layout, Owner, Selection, Values,
    VarId, Variable,
};
use esker_store::{File, StoreError};

use super::CopyError;
use super::transfer::Task;
use crate::Progress;
use crate::source::Source;

/// Makes the container under this name.
pub(super) fn run(
    task: &Task<'_>,
    source: &mut Source,
    name: &Path,
    progress: &mut dyn Progress,
) -> Result<u64, CopyError> {
    let dataset = create(task, name)?;
    let (name, header) = (name.to_path_buf(), task.header.clone());
    let order = FileOrder::of(&header);
    let sink = Arc::new(Appended { name, header, order, dataset: Mutex::new(dataset) });
    let bytes = task.run(source, sink.clone(), progress)?;
    let Some(sink) = Arc::into_inner(sink) else { return Ok(bytes) };
    let mut dataset = sink.dataset.into_inner().unwrap_or_else(PoisonError::into_inner);
    if task.options.sync {
        dataset.sync()?;
    }
    dataset.close()?;
    Ok(bytes)
}

/// The container with the output's definitions.
fn create(task: &Task<'_>, name: &Path) -> Result<Dataset, CopyError> {
    let schema = &task.header.schema;
    let options = CreateOptions::new()
        .layout(Layout::Log)
        .version(schema.version)
        .align(task.options.align)
        .store(task.options.store.clone());
    let mut define = Dataset::create(name, options)?;
    for dim in &schema.dims {
        define.add_dim(&dim.name, dim.len)?;
    }
    for attr in schema.attrs.iter() {
        define.put_attr(Owner::Global, &attr.name, attr.values.clone())?;
    }
    for var in &schema.vars {
        let dims: Vec<DimId> = var.dims.clone();
        let id = define.add_var(&var.name, var.ty, &dims)?;
        for attr in var.attrs.iter() {
            define.put_attr(id, &attr.name, attr.values.clone())?;
        }
    }
    Ok(define.enddef().map_err(Error::from)?)
}

/// A file that is written by appending to a container.
#[derive(Debug)]
struct Appended {
    name: PathBuf,
    header: Header,
    order: FileOrder,
    dataset: Mutex<Dataset>,
}

impl Appended {
    fn put(&self, offset: u64, bytes: &[u8]) -> esker::Result<()> {
        let mut dataset = self.dataset.lock().unwrap_or_else(PoisonError::into_inner);
        let end = offset + bytes.len() as u64;
        let mut at = offset;
        while at < end {
            let found = self.order.at_or_after(at).filter(|found| found.begin < end);
            let Some(found) = found else { break };
            let Some(variable) = self.header.schema.variable(found.var) else { break };
            let (from, to) = (at.max(found.begin), end.min(found.end()));
            if from < to {
                let part = &bytes[(from - offset) as usize..(to - offset) as usize];
                let first = (from - found.begin) / variable.ty.size();
                let variable = (found.var, variable);
                put_run(&mut dataset, &self.header, variable, found.record, first, part)?;
            }
            at = found.padded_end();
        }
        Ok(())
    }

    fn refused(&self, action: &str) -> StoreError {
        StoreError::new(&self.name, action, io::ErrorKind::Unsupported.into())
    }
}

/// Writes elements that follow each other in the file, from number `first` of a record on.
fn put_run(
    dataset: &mut Dataset,
    header: &Header,
    (id, variable): (VarId, &Variable),
    record: u64,
    first: u64,
    bytes: &[u8],
) -> esker::Result<()> {
    let is_record = header.schema.is_record(variable);
    let shape = header.schema.shape(variable, 1);
    let inner = if is_record { &shape[1..] } else { &shape[..] };
    let width = variable.ty.size();
    let count = bytes.len() as u64 / width;
    let mut done = 0;
    for (start, lens) in slabs(inner, first, first + count) {
        let elements: u64 = lens.iter().product();
        let part = &bytes[(done * width) as usize..((done + elements) * width) as usize];
        done += elements;
        let Some(values) = Values::decode(variable.ty, elements as usize, part) else { continue };
        let (mut from, mut len) = (start, lens);
        if is_record {
            from.insert(0, record);
            len.insert(0, 1);
        }
        dataset.put_values(id, &Selection::slab(&from, &len), &values)?;
    }
    Ok(())
}

/// Elements `from..to` of an array in the order of the file, as hyperslabs.
fn slabs(shape: &[u64], from: u64, to: u64) -> Vec<(Vec<u64>, Vec<u64>)> {
    let Some((_, inner)) = shape.split_first() else {
        return if from < to { vec![(Vec::new(), Vec::new())] } else { Vec::new() };
    };
    let row: u64 = inner.iter().product();
    let mut out = Vec::new();
    let mut at = from;
    while at < to && row > 0 {
        let (number, within) = (at / row, at % row);
        let whole = (to - at) / row;
        if within == 0 && whole > 0 {
            let mut start = vec![0; shape.len()];
            let mut count = shape.to_vec();
            (start[0], count[0]) = (number, whole);
            out.push((start, count));
            at += whole * row;
            continue;
        }
        let end = (to - number * row).min(row);
        for (mut start, mut count) in slabs(inner, within, end) {
            start.insert(0, number);
            count.insert(0, 1);
            out.push((start, count));
        }
        at = number * row + end;
    }
    out
}

impl File for Appended {
    fn read_at(&self, _: u64, _: &mut [u8]) -> esker_store::Result<usize> {
        Err(self.refused("read"))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> esker_store::Result<()> {
        self.put(offset, bytes).map_err(|error| match error {
            Error::Store(error) => error,
            other => StoreError::new(&self.name, "write", io::Error::other(other.to_string())),
        })
    }

    fn len(&self) -> esker_store::Result<u64> {
        Err(self.refused("length"))
    }

    fn set_len(&self, _: u64) -> esker_store::Result<()> {
        Ok(())
    }

    fn sync(&self) -> esker_store::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_elements_is_a_few_hyperslabs() {
        let all = slabs(&[3, 4, 5], 7, 53);
        let elements: u64 = all.iter().map(|(_, count)| count.iter().product::<u64>()).sum();
        assert_eq!(elements, 46);
        assert_eq!(all.len(), 5);
        let mut at = 7;
        for (start, count) in all {
            assert_eq!(start[0] * 20 + start[1] * 5 + start[2], at);
            at += count.iter().product::<u64>();
        }
        assert_eq!(slabs(&[], 0, 1).len(), 1);
        assert!(slabs(&[0, 3], 0, 0).is_empty());
    }
}
