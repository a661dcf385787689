//! The same program alone and under MPI, with no MPI needed to build it.
//!
//!     cargo run --example mpi [FILE]
//!     mpiexec -n 4 target/debug/examples/mpi [FILE]

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, DimLen, ExternalType, Result, Selection};

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("mpi.nc".into());
    // MPI's world if mpiexec started this, a world of one if not. (A program that uses MPI
    // itself passes its own communicator: esker_comm::mpi::MpiComm::from_raw_handle.)
    let comm = esker_comm::auto()?;
    let written = write(Arc::clone(&comm), file.as_ref())?;
    if comm.rank() == 0 {
        println!("{} ranks wrote {written} values to {file}", comm.size());
    }
    Ok(())
}

fn write(comm: Arc<dyn Communicator>, file: &Path) -> Result<u64> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut define = Dataset::create(file, CreateOptions::new().comm(comm))?;
    let member = define.add_dim("member", DimLen::Fixed(1000))?;
    let x = define.add_dim("x", DimLen::Fixed(ranks))?;
    let var = define.add_var("v", ExternalType::Int, &[member, x])?;
    let mut dataset = define.enddef()?;
    // Each rank has a column: a thousand runs of one value, gathered into a few large writes.
    let column = vec![rank as i32; 1000];
    dataset.put_all(var, &Selection::slab(&[0, rank], &[1000, 1]), &column)?;

    // Reading back what another rank wrote needs no more than the collective call's end.
    let right = (rank + 1) % ranks;
    let theirs: Vec<i32> = dataset.get(var, &Selection::slab(&[0, right], &[1000, 1]))?;
    assert_eq!(theirs, vec![right as i32; 1000]);
    dataset.close()?;
    Ok(1000 * ranks)
}
