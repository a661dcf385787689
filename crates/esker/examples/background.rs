//! What takes long goes on while the program computes: a flush of the burst buffer, and reads ahead.
//!
//!     cargo run --example background [RUN.nc]

use std::path::Path;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, Hints, Pending, Result, Selection, VarId,
};

const RANKS: usize = 2;
const CELLS: u64 = 50; // of each rank
const STEPS: u64 = 10;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("background.nc".into());
    let file: &Path = file.as_ref();
    let mut hints = Hints::default();
    hints.set("nc_burst_buf", "enable");
    let outcomes = esker::launch(RANKS, |comm| {
        let rank = comm.rank() as u64;
        let options = CreateOptions::new().comm(comm).hints(hints.clone());
        let mut define = Dataset::create(file, options)?;
        let time = define.add_dim("time", DimLen::Unlimited)?;
        let cell = define.add_dim("cell", DimLen::Fixed(CELLS * RANKS as u64))?;
        let t = define.add_var("t", ExternalType::Float, &[time, cell])?;
        let mut dataset = define.enddef()?;
        let mut flush: Option<Pending<()>> = None;
        for step in 0..STEPS {
            let values = compute(step, rank);
            let mine = Selection::slab(&[step, CELLS * rank], &[1, CELLS]);
            dataset.put_all(t, &mine, &values)?;
            // What was written before went to the file while this step was computed.
            if let Some(token) = flush.take() {
                dataset.flush_wait(token)?;
            }
            flush = Some(dataset.flush_start()?);
        }
        // A close waits for what is under way.
        dataset.close()
    });
    outcomes.into_iter().collect::<Result<()>>()?;
    println!("the mean is {}", mean(&Dataset::open(file)?)?);
    Ok(())
}

/// Stands for a computation.
fn compute(step: u64, rank: u64) -> Vec<f32> {
    (0..CELLS).map(|cell| (step * 100 + rank * CELLS + cell) as f32).collect()
}

/// Reads the next step while the last one is added up.
fn mean(dataset: &Dataset) -> Result<f64> {
    let t: VarId = dataset.var("t")?;
    let cells = CELLS * RANKS as u64;
    let read = |step| dataset.get_start::<f64>(t, &Selection::slab(&[step, 0], &[1, cells]));
    let mut ahead = Some(read(0));
    let (mut step, mut sum) = (0, 0.0);
    while let Some(token) = ahead.take() {
        let values = token.wait()?;
        step += 1;
        ahead = (step < STEPS).then(|| read(step));
        sum += values.iter().sum::<f64>();
    }
    Ok(sum / (cells * STEPS) as f64)
}
