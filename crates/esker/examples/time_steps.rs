//! A simulation appends a record at each time step; later runs append more.
//!
//!     cargo run --example time_steps [FILE]

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, FillMode, OpenOptions};
use esker::{Requests, Result, Selection};

const RANKS: usize = 3;
const CELLS: u64 = 40; // of each rank

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("time_steps.nc".into());
    let file: &Path = file.as_ref();
    let first = esker::launch(RANKS, |comm| steps(create(file, comm)?, 5));
    first.into_iter().collect::<Result<()>>()?;
    // Another run goes on where the first one ended.
    let more = esker::launch(RANKS, |comm| {
        steps(Dataset::open_with(file, OpenOptions::new().writable(true).comm(comm))?, 3)
    });
    more.into_iter().collect::<Result<()>>()?;
    let dataset = Dataset::open(file)?;
    assert_eq!(dataset.numrecs(), 8);
    assert_eq!(dataset.get::<f64>(dataset.var("time")?, &Selection::all())?[7], 70.0);
    Ok(())
}

fn create(file: &Path, comm: Arc<dyn Communicator>) -> Result<Dataset> {
    let cells = CELLS * comm.size() as u64;
    // Every element is written, so nothing has to be filled before.
    let mut define = Dataset::create(file, CreateOptions::new().comm(comm).fill(FillMode::NoFill))?;
    let time = define.add_dim("time", DimLen::Unlimited)?;
    let x = define.add_dim("x", DimLen::Fixed(cells))?;
    let t = define.add_var("time", ExternalType::Double, &[time])?;
    define.put_attr(t, "units", "seconds since 2001-01-01")?;
    define.add_var("height", ExternalType::Float, &[time, x])?;
    define.add_var("speed", ExternalType::Float, &[time, x])?;
    Ok(define.enddef()?)
}

fn steps(mut dataset: Dataset, count: u64) -> Result<()> {
    let rank = dataset.comm().rank() as u64;
    let [time, height, speed] = ["time", "height", "speed"].map(|name| dataset.var(name));
    let (time, height, speed) = (time?, height?, speed?);
    let first = dataset.numrecs();
    for record in first..first + count {
        let now = [10.0 * record as f64];
        let h: Vec<f32> = (0..CELLS).map(|i| (record * 100 + rank * CELLS + i) as f32).collect();
        let v: Vec<f32> = h.iter().map(|h| 0.5 * h).collect();

        // What belongs to a step is queued, and moved by one wait.
        let mine = Selection::slab(&[record, rank * CELLS], &[1, CELLS]);
        let mut queue = Requests::new();
        if rank == 0 {
            dataset.iput(&mut queue, time, &Selection::element(&[record]), &now)?;
        }
        dataset.iput(&mut queue, height, &mine, &h)?;
        dataset.iput(&mut queue, speed, &mine, &v)?;
        dataset.wait_all(&mut queue)?;
        // From here on every reader sees the step; after a sync it survives power loss too.
        if record % 4 == 3 {
            dataset.sync()?;
        }
    }
    dataset.close()
}
