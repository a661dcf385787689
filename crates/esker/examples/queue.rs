//! Many small requests: queued without moving anything, then planned and moved together.
//!
//!     cargo run --example queue [FILE]

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, FillMode, MemoryLayout};
use esker::{Requests, Result, Selection};

const VARIABLES: usize = 30;
const ROWS: u64 = 64; // of each rank
const COLUMNS: u64 = 20;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("queue.nc".into());
    let lines = esker::launch(4, |comm| write(comm, file.as_ref()));
    lines.into_iter().try_for_each(|line| {
        println!("{}", line?);
        Ok(())
    })
}

fn write(comm: Arc<dyn Communicator>, file: &Path) -> Result<String> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut define = Dataset::create(file, CreateOptions::new().comm(comm).fill(FillMode::NoFill))?;
    let y = define.add_dim("y", DimLen::Fixed(ROWS * ranks))?;
    let x = define.add_dim("x", DimLen::Fixed(COLUMNS))?;
    let names = (0..VARIABLES).map(|i| format!("v{i}"));
    let vars: Vec<_> = names
        .map(|name| define.add_var(&name, ExternalType::Float, &[y, x]))
        .collect::<Result<_>>()?;
    let mut dataset = define.enddef()?;

    // The model's array has a halo of one cell around it, which is not to be written: memory
    // is described by strides and read in place.
    let wide = COLUMNS + 2;
    let with_halo: Vec<f64> = (0..(ROWS + 2) * wide).map(|i| i as f64).collect();
    let inner = MemoryLayout::strided(wide as usize + 1, &[1, COLUMNS], &[wide as isize, 1]);

    let mut queue = Requests::new();
    queue.attach_buffer(1 << 20)?;
    for (number, var) in vars.iter().enumerate() {
        for row in 0..ROWS {
            // The ranks' rows alternate: every run is short.
            let place = Selection::slab(&[row * ranks + rank, 0], &[1, COLUMNS]);
            if number == 0 {
                // Lent: the array must stay as it is until the wait.
                let rows = &with_halo[(row * wide) as usize..];
                dataset.iput_strided(&mut queue, *var, &place, rows, inner.clone())?;
            } else {
                // Copied into the attached buffer: what is given may change at once.
                let line: Vec<f32> = (0..COLUMNS).map(|x| (row * 100 + x) as f32).collect();
                dataset.bput(&mut queue, *var, &place, &line)?;
            }
        }
    }
    let queued = queue.len();
    dataset.wait_all(&mut queue)?;
    let told = *dataset.report();
    let row: Vec<f64> = dataset.get(vars[0], &Selection::slab(&[rank, 0], &[1, COLUMNS]))?;
    assert_eq!(row, with_halo[wide as usize + 1..][..COLUMNS as usize]);
    dataset.close()?;
    Ok(format!(
        "rank {rank}: {queued} requests, {} messages, {} writes of {} bytes",
        told.messages, told.writes, told.bytes_written
    ))
}
