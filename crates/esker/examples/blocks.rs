//! Ranks write scattered blocks of a variable, as codes with moving blocks have them; anyone lists them, and reads a plane.
//!
//!     cargo run --example blocks [FILE]

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Layout, Result, Selection};

const RANKS: usize = 4;
/// Blocks in each dimension, and elements in each dimension of a block.
const BLOCKS: u64 = 6;
const SIDE: u64 = 8;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("blocks.esk".into());
    let file: &Path = file.as_ref();
    let n = BLOCKS * SIDE;
    let results = esker::launch(RANKS, |comm| {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let options = CreateOptions::new().layout(Layout::Log).comm(comm);
        let mut define = Dataset::create(file, options)?;
        let dims = [("z", n), ("y", n), ("x", n)];
        let dims = dims.map(|(name, len)| define.add_dim(name, DimLen::Fixed(len)));
        let dims: Result<Vec<_>> = dims.into_iter().collect();
        let density = define.add_var("density", ExternalType::Float, &dims?)?;
        let mut dataset = define.enddef()?;
        // The blocks are dealt out so that neighbours are on different ranks.
        for block in (rank..BLOCKS.pow(3)).step_by(ranks as usize) {
            let at = [block / BLOCKS.pow(2), block / BLOCKS % BLOCKS, block % BLOCKS];
            let start = at.map(|index| index * SIDE);
            let value = |i: u64| {
                let [z, y, x] = [i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE];
                ((start[0] + z) * n * n + (start[1] + y) * n + start[2] + x) as f32
            };
            let values: Vec<f32> = (0..SIDE.pow(3)).map(value).collect();
            dataset.put(density, &Selection::slab(&start, &[SIDE; 3]), &values)?;
        }
        dataset.close()
    });
    results.into_iter().collect::<Result<Vec<()>>>()?;

    let dataset = Dataset::open(file)?;
    let density = dataset.var("density")?;
    let blocks = dataset.blocks(density)?;
    let of_rank = |rank| blocks.iter().filter(|block| block.rank == Some(rank)).count();
    println!("{} blocks, {} of rank 1", blocks.len(), of_rank(1));
    // Of each block that a plane goes through one element of a row: the others are not looked at.
    let plane: Vec<f32> = dataset.get(density, &Selection::slab(&[0, 0, 20], &[n, n, 1]))?;
    println!("from {} to {}", plane[0], plane[plane.len() - 1]);
    Ok(())
}
