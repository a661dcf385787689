//! An array that is spread over ranks becomes one file: each rank writes its rows.
//!
//!     cargo run --example distributed_array [FILE]

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Result, Selection};

const RANKS: u64 = 4;
const ROWS: u64 = 100; // of each rank
const COLUMNS: u64 = 250;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("distributed_array.nc".into());
    esker::launch(RANKS as usize, |comm| write(comm, file.as_ref())).into_iter().collect()
}

fn write(comm: std::sync::Arc<dyn esker::Communicator>, file: &Path) -> Result<()> {
    let rank = comm.rank() as u64;
    let mut define = Dataset::create(file, CreateOptions::new().comm(comm))?;
    let y = define.add_dim("y", DimLen::Fixed(RANKS * ROWS))?;
    let x = define.add_dim("x", DimLen::Fixed(COLUMNS))?;
    let t = define.add_var("temperature", ExternalType::Double, &[y, x])?;
    define.put_attr(t, "units", "K")?;
    let mut dataset = define.enddef()?;

    let mine: Vec<f64> = (0..ROWS * COLUMNS).map(|i| 273.0 + (rank * 1000 + i) as f64).collect();
    dataset.put_all(t, &Selection::slab(&[rank * ROWS, 0], &[ROWS, COLUMNS]), &mine)?;
    dataset.close()
}
