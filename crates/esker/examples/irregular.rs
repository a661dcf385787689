//! An irregular decomposition: each rank has scattered runs of cells, as unstructured meshes do.
//! A selection is then a list of hyperslabs, and the file has the cells in their global order.
//!
//!     cargo run --example irregular [FILE]

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, Result, Selection};

const LEVELS: u64 = 5;
const CELLS: u64 = 1000;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("irregular.nc".into());
    let file: &Path = file.as_ref();
    for report in esker::launch(4, |comm| write(comm, file)) {
        println!("{}", report?);
    }
    // Whoever reads sees one array.
    let dataset = Dataset::open(file)?;
    let salt: Vec<f64> = dataset.get(dataset.var("salt")?, &Selection::all())?;
    assert!(salt.iter().enumerate().all(|(i, value)| *value == i as f64));
    Ok(())
}

/// Who has a cell: runs of one to seven cells, dealt out in no simple order.
fn owner(cell: u64, ranks: u64) -> u64 {
    let run = cell / (1 + cell / 150);
    run.wrapping_mul(2_654_435_761) / 16 % ranks
}

fn write(comm: Arc<dyn Communicator>, file: &Path) -> Result<String> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut define = Dataset::create(file, CreateOptions::new().comm(comm))?;
    let level = define.add_dim("level", DimLen::Fixed(LEVELS))?;
    let cell = define.add_dim("cell", DimLen::Fixed(CELLS))?;
    let salt = define.add_var("salt", ExternalType::Double, &[level, cell])?;
    let mut dataset = define.enddef()?;

    // Two numbers for each run: where it starts and how long it is, in (level, cell).
    let (mut starts, mut counts, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for level in 0..LEVELS {
        let mut before = None;
        for cell in (0..CELLS).filter(|cell| owner(*cell, ranks) == rank) {
            match (before, counts.last_mut()) {
                (Some(last), Some(count)) if last + 1 == cell => *count += 1,
                _ => {
                    starts.extend([level, cell]);
                    counts.extend([1, 1]);
                }
            }
            before = Some(cell);
            values.push((level * CELLS + cell) as f64);
        }
    }
    let runs = counts.len() / 2;
    dataset.put_all(salt, &Selection::list(2, starts, counts), &values)?;
    let told = dataset.report();
    let line = format!(
        "rank {rank}: {runs} runs, {}: {} messages, {} writes",
        told.write_strategy, told.messages, told.writes
    );
    dataset.close()?;
    Ok(line)
}
