//! An analyst reads planes of a volume: along each axis, every second point, one profile.
//!
//!     cargo run --example planes [FILE]

use std::path::Path;

use esker::{CreateOptions, Dataset, DimLen, ExternalType, Requests, Result, Selection};

const SIDE: u64 = 48;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("planes.nc".into());
    make(file.as_ref())?;

    let mut dataset = Dataset::open(&file)?;
    let t = dataset.var("t")?;
    let level = Selection::slab(&[10, 0, 0], &[1, SIDE, SIDE]);
    let (across, coarse) = (
        Selection::slab(&[0, 0, 7], &[SIDE, SIDE, 1]),
        Selection::strided(&[0, 0, 0], &[SIDE / 2, SIDE / 2, SIDE / 2], &[2, 2, 2]),
    );
    // One plane at a time, converted to the type of the vector.
    let plane: Vec<f64> = dataset.get(t, &level)?;
    assert_eq!(plane[0], value(10, 0, 0).into());
    let profile: Vec<f32> = dataset.get(t, &Selection::slab(&[0, 5, 6], &[SIDE, 1, 1]))?;
    assert_eq!(profile[3], value(3, 5, 6));

    // Several at once: each part of the file is read once, in large pieces.
    let mut side = vec![0f32; (SIDE * SIDE) as usize];
    let mut small = vec![0f32; (SIDE * SIDE * SIDE / 8) as usize];
    let mut queue = Requests::new();
    dataset.iget(&mut queue, t, &across, &mut side)?;
    dataset.iget(&mut queue, t, &coarse, &mut small)?;
    dataset.wait(&mut queue)?;
    drop(queue);
    assert_eq!(side[1], value(0, 1, 7));
    assert_eq!(small[1], value(0, 0, 2));
    let told = dataset.report();
    println!("{} runs in {} reads of {} bytes", told.runs, told.reads, told.bytes_read);
    Ok(())
}

fn value(z: u64, y: u64, x: u64) -> f32 {
    (z * 10_000 + y * 100 + x) as f32
}

fn make(file: &Path) -> Result<()> {
    let mut define = Dataset::create(file, CreateOptions::new())?;
    let [z, y, x] = ["z", "y", "x"].map(|name| define.add_dim(name, DimLen::Fixed(SIDE)));
    let t = define.add_var("t", ExternalType::Float, &[z?, y?, x?])?;
    let mut dataset = define.enddef()?;
    let cells = (0..SIDE * SIDE * SIDE).map(|i| (i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE));
    let values: Vec<f32> = cells.map(|(z, y, x)| value(z, y, x)).collect();
    dataset.put(t, &Selection::all(), &values)?;
    dataset.close()
}
