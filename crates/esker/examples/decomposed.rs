//! A decomposed variable: what each rank has of an unstructured mesh is said once, and every time
//! step is one contiguous write for each rank. Whoever reads sees one array.
//!
//!     cargo run --example decomposed [FILE]

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, Result, Selection};

const CELLS: u64 = 1000;
const STEPS: u64 = 3;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("decomposed.nc".into());
    let file: &Path = file.as_ref();
    for report in esker::launch(4, |comm| write(comm, file)) {
        println!("{}", report?);
    }
    let dataset = Dataset::open(file)?;
    let heat = dataset.var("heat")?;
    assert_eq!(dataset.shape(heat)?, [STEPS, CELLS]);
    // Cells 500 to 502 of every step, whoever had them.
    let some: Vec<f64> = dataset.get(heat, &Selection::slab(&[0, 500], &[STEPS, 3]))?;
    assert_eq!(some, [500.0, 501.0, 502.0, 1500.0, 1501.0, 1502.0, 2500.0, 2501.0, 2502.0]);
    Ok(())
}

/// Who has a cell: runs of one to seven cells, dealt out in no simple order.
fn owner(cell: u64, ranks: u64) -> u64 {
    let run = cell / (1 + cell / 150);
    run.wrapping_mul(2_654_435_761) / 16 % ranks
}

fn write(comm: Arc<dyn Communicator>, file: &Path) -> Result<String> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mine: Vec<u64> = (0..CELLS).filter(|cell| owner(*cell, ranks) == rank).collect();

    let mut define = Dataset::create(file, CreateOptions::new().comm(comm))?;
    let time = define.add_dim("time", DimLen::Unlimited)?;
    let cell = define.add_dim("cell", DimLen::Fixed(CELLS))?;
    // The map, once for all variables over cells. Runs of cells would make it smaller.
    let map = define.add_decomposition(&[cell], &Selection::list(1, mine.clone(), vec![]))?;
    let heat = define.add_decomposed_var("heat", ExternalType::Double, &[time], map)?;
    let mut dataset = define.enddef()?;

    for step in 0..STEPS {
        let values: Vec<f64> = mine.iter().map(|cell| (step * CELLS + cell) as f64).collect();
        dataset.put_all(heat, &Selection::blob(&[step], &[1]), &values)?;
    }
    let told = dataset.report();
    let line = format!("rank {rank}: {} cells, {} runs in {STEPS} steps", mine.len(), told.runs);
    dataset.close()?;
    Ok(line)
}
