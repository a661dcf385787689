//! The calls of `tests/pnetcdf/overhead.c` in Rust: prints "name nanoseconds" for each, the least
//! of several rounds. `./test pnetcdf-speed` runs both and shows what C's interface adds.

use std::hint::black_box;
use std::time::Instant;

use esker::{
    CreateOptions, Dataset, DimId, DimLen, ExternalType, FillMode, Requests, Selection, VarId,
};

const VARS: usize = 100;
const ROUNDS: usize = 15;
const CALLS: u32 = 2000;

fn time(name: &str, mut call: impl FnMut() -> esker::Result<()>) -> esker::Result<()> {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let since = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        least = least.min(since.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("{name} {least:.0}");
    Ok(())
}

fn main() -> esker::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "overhead.nc".into());
    let mut define = Dataset::create(path, CreateOptions::new().fill(FillMode::NoFill))?;
    let y = define.add_dim("y", DimLen::Fixed(10))?;
    let x: DimId = define.add_dim("x", DimLen::Fixed(1000))?;
    for i in 0..VARS {
        define.add_var(&format!("variable_{i}"), ExternalType::Int, &[y, x])?;
    }
    let mut file = define.enddef()?;
    let var = VarId(5);
    let mut data = [0i32; 100];
    let one = || Selection::slab(&[3, 7], &[1, 1]);
    let some = || Selection::slab(&[3, 7], &[1, 100]);
    time("inq_varid", || {
        black_box(file.var(black_box("variable_77"))?);
        Ok(())
    })?;
    time("inq_dimlen", || {
        black_box(file.schema().dims.iter().nth(black_box(1)));
        Ok(())
    })?;
    time("iput_var1+cancel", || {
        let mut queue = Requests::new();
        let id = file.iput(&mut queue, var, &one(), &data[..1])?;
        queue.cancel(id);
        Ok(())
    })?;
    time("put_vara_all", || file.put_all(var, &some(), &data))?;
    time("get_vara_all", || file.get_all_into(var, &some(), &mut data))?;
    time("put_var1", || file.put(var, &one(), &data[..1]))?;
    time("get_var1", || file.get_into(var, &one(), &mut data[..1]))?;
    time("put_vara", || file.put(var, &some(), &data))?;
    time("get_vara", || file.get_into(var, &some(), &mut data))?;
    file.close()
}
