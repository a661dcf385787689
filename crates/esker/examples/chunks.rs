//! Ranks write a compressed variable of a classic file together; anyone reads a part of it.
//!
//!     cargo run --example chunks [FILE]

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Result, Selection};

const RANKS: usize = 4;
const LAT: u64 = 180;
const LON: u64 = 360;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("chunks.nc".into());
    let file: &Path = file.as_ref();
    let results = esker::launch(RANKS, |comm| {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let mut define = Dataset::create(file, CreateOptions::new().comm(comm))?;
        let time = define.add_dim("time", DimLen::Unlimited)?;
        let lat = define.add_dim("lat", DimLen::Fixed(LAT))?;
        let lon = define.add_dim("lon", DimLen::Fixed(LON))?;
        let t = define.add_var("t", ExternalType::Float, &[time, lat, lon])?;
        // The two lines that differ from an ordinary variable.
        define.set_chunks(t, &[1, 90, 90])?;
        define.set_filters(t, "shuffle zstd,3")?;
        let mut dataset = define.enddef()?;
        for step in 0..3 {
            // Each rank has a band of latitudes, which cuts through chunks: their owners see to that.
            let rows = LAT / ranks;
            let mine = Selection::slab(&[step, rank * rows, 0], &[1, rows, LON]);
            let value = |i: u64| 250.0 + (rank * rows + i / LON) as f32 / 4.0 + step as f32;
            let values: Vec<f32> = (0..rows * LON).map(value).collect();
            dataset.put_all(t, &mine, &values)?;
        }
        dataset.close()
    });
    results.into_iter().collect::<Result<Vec<()>>>()?;

    let dataset = Dataset::open(file)?;
    let t = dataset.var("t")?;
    let (mut chunks, mut bytes) = (0u64, 0);
    dataset.stored_chunks(t, true, |_index, chunk| {
        (chunks, bytes) = (chunks + 1, bytes + chunk.size);
        Ok(())
    })?;
    let whole = 3 * LAT * LON * 4;
    println!("{chunks} chunks, {bytes} bytes of {whole}: {} times smaller", whole / bytes);
    // One meridian at one time: two chunks are decoded.
    let meridian: Vec<f32> = dataset.get(t, &Selection::slab(&[2, 0, 100], &[1, LAT, 1]))?;
    println!("from {} to {}", meridian[0], meridian[179]);
    Ok(())
}
