//! Ranks append to a container of logs; every sync is a version that can be read again.
//!
//!     cargo run --example log [RUN.esk]

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, OpenOptions};
use esker::{Result, Selection};

const RANKS: usize = 4;
const CELLS: u64 = 25; // of each rank, scattered over all

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("log.esk".into());
    let file: &Path = file.as_ref();
    let versions = esker::launch(RANKS, |comm| {
        let rank = comm.rank() as u64;
        let cells = CELLS * comm.size() as u64;
        // The only line that differs from a classic file.
        let options = CreateOptions::new().comm(comm).layout(Layout::Log);
        let mut define = Dataset::create(file, options)?;
        let time = define.add_dim("time", DimLen::Unlimited)?;
        let cell = define.add_dim("cell", DimLen::Fixed(cells))?;
        let t = define.add_var("t", ExternalType::Float, &[time, cell])?;
        let mut dataset = define.enddef()?;
        let mut versions = Vec::new();
        for step in 0..3 {
            // Every fourth cell is this rank's: the worst case for a file, no matter to a log.
            let mine = Selection::strided(&[step, rank], &[1, CELLS], &[1, RANKS as u64]);
            let values: Vec<f32> = (0..CELLS).map(|i| (100 * step + i) as f32).collect();
            dataset.put_all(t, &mine, &values)?;
            dataset.sync()?;
            versions.extend(dataset.container_version());
        }
        dataset.close()?;
        Ok(versions)
    });
    let versions = versions.into_iter().collect::<Result<Vec<_>>>()?;

    let newest = Dataset::open(file)?;
    assert_eq!(newest.numrecs(), 3);
    // As it was after the first step.
    let first = OpenOptions::new().container_version(versions[0][0]);
    let first = Dataset::open_with(file, first)?;
    assert_eq!(first.numrecs(), 1);
    println!("version {} has 1 record, version {} has 3", versions[0][0], versions[0][2]);
    Ok(())
}
