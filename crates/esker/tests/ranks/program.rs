//! What every rank of an MPI job does, for `tests/all/mpi.rs`: `mpiexec -n 4 esker-ranks WHAT …`.

mod mortal;
#[path = "../all/scenario/mod.rs"]
mod scenario;
mod writers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    Communicator, CreateOptions, Dataset, DimLen, ExternalType, Hints, OpenOptions, Selection,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    watch(Duration::from_secs(700));
    // A rank that panics ends the job; the others would wait for it.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        esker_comm::mpi::abort(3);
        std::process::abort();
    }));
    let comm = match esker_comm::auto() {
        Ok(comm) => comm,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let says = comm.rank() == 0;
    let ranks = comm.size();
    match words[..] {
        ["scenario", dir, first, count] => {
            let (first, count) = (number(first), number(count));
            scenarios(&comm, Path::new(dir), first..first + count);
        }
        ["shares", dir, first, count] => {
            let (first, count) = (number(first), number(count));
            for seed in first..first + count {
                scenario::shares::same_bytes(seed, &comm, Path::new(dir));
            }
        }
        ["decomposed", dir, first, count] => {
            let (first, count) = (number(first), number(count));
            for seed in first..first + count {
                scenario::run_decomposed(seed, comm.clone(), &Path::new(dir).join("run.nc"));
            }
        }
        ["chunked", dir, first, count] => {
            let (first, count) = (number(first), number(count));
            for seed in first..first + count {
                let path = Path::new(dir).join("run.chunk.nc");
                scenario::run(seed, comm.clone(), &path);
                if seed % 3 == 0 {
                    scenario::run_two(seed, comm.clone(), &path);
                }
                if seed % 3 == 1 {
                    scenario::run_split(seed, comm.clone(), &path);
                }
            }
        }
        ["buffered", dir, first, count] => {
            let (first, count) = (number(first), number(count));
            for seed in first..first + count {
                let dir = Path::new(dir);
                scenario::run(seed, comm.clone(), &dir.join("run.burst.chunk.nc"));
                scenario::run_decomposed(seed, comm.clone(), &dir.join("parts.burst.nc"));
            }
        }
        ["many", dir, count] => {
            if let Err(error) = many(&comm, Path::new(dir), number(count)) {
                // Every rank has one.
                let place = Path::new(dir).join(format!("error.{}", comm.rank()));
                // (This one has no descriptor left, but for those that it has given back.)
                std::fs::write(place, error.to_string()).unwrap();
                return ExitCode::FAILURE;
            }
        }
        ["replace", dir] => replace(&comm, Path::new(dir)),
        ["endless", dir] => endless(&comm, Path::new(dir)),
        ["endless-chunks", dir, files, victim, writes] => {
            let dies = (comm.rank() as u64 == number(victim)).then(|| number(writes));
            endless_chunks(&comm, Path::new(dir), files, dies);
        }
        ["steps", container, variable, dir, steps] => {
            many_steps(&comm, Path::new(container), variable, Path::new(dir), number(steps));
        }
        ["endless-log", dir, files] => endless_log(&comm, Path::new(dir), files),
        ["redefine", dir] => redefine(&comm, Path::new(dir)),
        ["full", path] => full(&comm, Path::new(path)),
        ["first-writer", form, dir] => writers::first(&comm, form, Path::new(dir)),
        ["second-writer", form, dir] => writers::second(&comm, form, Path::new(dir)),
        ["interleave", path] => interleave(&comm, Path::new(path)),
        ["hints", path] => tell_hints(&comm, Path::new(path)),
        _ => {
            eprintln!(
                "esker-ranks scenario DIR FIRST COUNT | decomposed DIR FIRST COUNT | chunked DIR FIRST COUNT | endless DIR | endless-chunks DIR FILES VICTIM WRITES | endless-log DIR FILES | steps CONTAINER VARIABLE DIR STEPS | redefine DIR | full PATH | interleave PATH | first-writer FORM DIR | second-writer FORM DIR | hints PATH"
            );
            return ExitCode::FAILURE;
        }
    }
    if says {
        println!("{} passed on {ranks} ranks", words[0]);
    }
    ExitCode::SUCCESS
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

/// Ends the process if it hangs, so that a failing run leaves nothing behind.
fn watch(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("esker-ranks: still running after {limit:?}");
        std::process::abort();
    });
}

/// Many datasets open at once, used in turns and closed in another order than they were opened in.
fn many(comm: &Arc<dyn Communicator>, dir: &Path, count: u64) -> esker::Result<()> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut dice = scenario::Dice::new(count);
    let mut open: Vec<(u64, Dataset)> = Vec::new();
    let mut values = vec![0; count as usize];
    let write = |ds: &mut Dataset, value: u64| {
        let var = ds.var("v").unwrap();
        ds.put_all(var, &Selection::slab(&[rank], &[1]), &[(value + rank) as i32]).unwrap();
    };
    for i in 0..count {
        let options = CreateOptions::new().comm(comm.clone());
        let mut def = Dataset::create(dir.join(format!("{i}.nc")), options)?;
        let x = def.add_dim("x", DimLen::Fixed(ranks)).unwrap();
        def.add_var("v", ExternalType::Int, &[x]).unwrap();
        open.push((i, def.enddef()?));
        // The new one, and one of the others.
        for at in [i, dice.below(i + 1)] {
            values[at as usize] = 1000 * i + at;
            write(&mut open[at as usize].1, values[at as usize]);
        }
    }
    dice.shuffle(&mut open);
    for (i, ds) in &mut open {
        let found = ds.get_all::<i32>(ds.var("v").unwrap(), &Selection::all()).unwrap();
        let expected: Vec<i32> = (0..ranks).map(|r| (values[*i as usize] + r) as i32).collect();
        assert_eq!(found, expected, "dataset {i}");
    }
    while let Some((_, ds)) = open.pop() {
        ds.close().unwrap();
        if open.len() % 100 == 50 {
            // Communicators that were freed are used again.
            let at = dice.below(open.len() as u64) as usize;
            let (i, ds) = &mut open[at];
            write(ds, values[*i as usize] + 1);
        }
    }
    Ok(())
}

/// Random lives of datasets. The files stay, with what they should hold.
fn scenarios(comm: &Arc<dyn Communicator>, dir: &Path, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let path = dir.join(format!("{seed}.nc"));
        let expected = scenario::run(seed, comm.clone(), &path);
        if comm.rank() == 0 {
            scenario::note(&expected, &path.with_extension("expected"));
        }
        if seed % 3 == 0 {
            scenario::run_two(seed, comm.clone(), &dir.join("two.nc"));
        }
        if seed % 3 == 1 {
            scenario::run_split(seed, comm.clone(), &dir.join("split.nc"));
        }
    }
}

/// Elements of a record that each rank writes.
const RECORD: u64 = 100_000;

/// Writes record after record until it is killed. What is synced is told in a file.
fn endless(comm: &Arc<dyn Communicator>, dir: &Path) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    be_found(dir, me);
    let mut hints = Hints::default();
    hints.set("romio_cb_write", "enable");
    hints.set("cb_buffer_size", "65536");
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let mut def = Dataset::create(dir.join("run.nc"), options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(RECORD * ranks)).unwrap();
    let fixed = def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    let record = def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let mine = Selection::strided(&[me], &[RECORD], &[ranks]);
    ds.put_all(fixed, &mine, &vec![me as i32; RECORD as usize]).unwrap();
    for step in 0.. {
        let mine = Selection::strided(&[step, me], &[1, RECORD], &[1, ranks]);
        let data: Vec<f32> = (0..RECORD).map(|i| value(step, i * ranks + me)).collect();
        ds.put_all(record, &mine, &data).unwrap();
        ds.sync().unwrap();
        if me == 0 {
            // In one step, so that whoever looks sees a whole number.
            tell(dir, step + 1);
        }
    }
}

/// Writes records into a container until it is killed. Each record is written in two parts, of
/// which the second goes over half of the first, and every third is synced. `synced` says how
/// many records were promised.
fn endless_log(comm: &Arc<dyn Communicator>, dir: &Path, files: &str) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    be_found(dir, me);
    let mut hints = Hints::default();
    hints.set("esker_layout", "log");
    hints.set("esker_log_files", files);
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let mut def = Dataset::create(dir.join("run.esk"), options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(RECORD * ranks)).unwrap();
    let record = def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
    let mut ds = def.enddef().unwrap();
    for step in 0.. {
        let mine = Selection::strided(&[step, me], &[1, RECORD], &[1, ranks]);
        let wrong = vec![-1.0f32; RECORD as usize / 2];
        let half = Selection::strided(&[step, me], &[1, RECORD / 2], &[1, ranks]);
        ds.put_all(record, &half, &wrong).unwrap();
        let data: Vec<f32> = (0..RECORD).map(|i| value(step, i * ranks + me)).collect();
        ds.put_all(record, &mine, &data).unwrap();
        if step % 3 == 2 {
            ds.sync().unwrap();
            if me == 0 {
                tell(dir, step + 1);
            }
        }
    }
}

/// Writes records to a variable of a container that others write to as well, each rank a part, and commits each of them; all of
/// these steps, or, for 0 of them, until it is killed. `synced` says how often.
fn many_steps(
    comm: &Arc<dyn Communicator>,
    container: &Path,
    variable: &str,
    dir: &Path,
    steps: u64,
) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    be_found(dir, me);
    let options = OpenOptions::new().writable(true).comm(comm.clone());
    let mut ds = Dataset::open_with(container, options).unwrap();
    let var = ds.var(variable).unwrap();
    let width = ds.shape(var).unwrap()[1];
    let count = (width - me).div_ceil(ranks);
    for step in (0..).take_while(|step| steps == 0 || *step < steps) {
        let mine = Selection::strided(&[step, me], &[1, count], &[1, ranks]);
        let data: Vec<f32> = (0..count).map(|i| value(step, i * ranks + me)).collect();
        ds.put_all(var, &mine, &data).unwrap();
        ds.sync().unwrap();
        if me == 0 {
            tell(dir, step + 1);
        }
    }
    ds.close().unwrap();
}

/// Rewrites all chunks of a variable and appends a record to another until it is killed, each rank a part
/// of every chunk. `synced` says how often. One rank dies in the fourth step, after so many writes.
fn endless_chunks(comm: &Arc<dyn Communicator>, dir: &Path, files: &str, dies: Option<u64>) {
    const CHUNK: u64 = 10_000;
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let store = mortal::Mortal::new();
    let mut hints = Hints::default();
    // Several rounds in every call.
    hints.set("esker_chunk_buffer", "100000");
    hints.set("esker_chunk_files", files);
    let options = CreateOptions::new().comm(comm.clone()).hints(hints);
    let options = options.store(Arc::new(store.clone()));
    let mut def = Dataset::create(dir.join("run.nc"), options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(RECORD)).unwrap();
    let fixed = def.add_var("fixed", ExternalType::Int, &[x]).unwrap();
    def.set_chunks(fixed, &[CHUNK]).unwrap();
    def.set_filters(fixed, "shuffle zstd,1").unwrap();
    let record = def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
    def.set_chunks(record, &[3, CHUNK]).unwrap();
    def.set_filters(record, "lz4").unwrap();
    let mut ds = def.enddef().unwrap();
    for step in 0.. {
        if let (3, Some(writes)) = (step, dies) {
            store.dies_after(writes);
        }
        let count = (RECORD - me).div_ceil(ranks);
        let mut queue = esker::Requests::new();
        let data: Vec<f32> = (0..count).map(|i| value(step, i * ranks + me)).collect();
        let mine = Selection::strided(&[me], &[count], &[ranks]);
        ds.iput(&mut queue, fixed, &mine, &data).unwrap();
        let mine = Selection::strided(&[step, me], &[1, count], &[1, ranks]);
        ds.iput(&mut queue, record, &mine, &data).unwrap();
        ds.wait_all(&mut queue).unwrap();
        drop(queue);
        ds.sync().unwrap();
        if me == 0 {
            tell(dir, step + 1);
        }
    }
}

/// Makes a dataset anew until it is killed, each time in another number of sub-files. The attribute
/// `step` says how often; all values are its, once they are written.
fn replace(comm: &Arc<dyn Communicator>, dir: &Path) {
    let me = comm.rank() as u64;
    be_found(dir, me);
    for step in 1i32.. {
        let mut hints = Hints::default();
        hints.set("nc_num_subfiles", &(1 + step % 4).to_string());
        let options = CreateOptions::new().comm(comm.clone()).hints(hints);
        let mut def = Dataset::create(dir.join("run.nc"), options).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(RECORD * comm.size() as u64)).unwrap();
        let mine = Selection::slab(&[me * RECORD], &[RECORD]);
        let map = def.add_decomposition(&[x], &mine).unwrap();
        let v = def.add_decomposed_var("v", ExternalType::Int, &[], map).unwrap();
        def.put_attr(esker::Owner::Global, "step", step).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put_all(v, &Selection::blob(&[], &[]), &vec![step; RECORD as usize]).unwrap();
        ds.close().unwrap();
        if me == 0 {
            tell(dir, step);
        }
    }
}

/// Tells who is to be killed.
fn be_found(dir: &Path, rank: u64) {
    std::fs::write(dir.join(format!("pid.{rank}")), std::process::id().to_string()).unwrap();
}

/// Tells how far all ranks have come.
fn tell(dir: &Path, step: impl std::fmt::Display) {
    let (new, name) = (dir.join("synced.new"), dir.join("synced"));
    std::fs::write(&new, step.to_string()).unwrap();
    std::fs::rename(new, name).unwrap();
}

/// Redefines a dataset until it is killed: each time with a longer header, so that data move,
/// and with a variable more. The attribute `step` says how often.
fn redefine(comm: &Arc<dyn Communicator>, dir: &Path) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    be_found(dir, me);
    let options = CreateOptions::new().comm(comm.clone());
    let mut def = Dataset::create(dir.join("run.nc"), options).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(RECORD * ranks)).unwrap();
    let record = def.add_var("record", ExternalType::Float, &[t, x]).unwrap();
    def.put_attr(esker::Owner::Global, "step", 0i32).unwrap();
    let mut ds = def.enddef().unwrap();
    let mine = Selection::slab(&[0, me * RECORD], &[2, RECORD]);
    let at = |i: u64| value(i / RECORD, me * RECORD + i % RECORD);
    let data: Vec<f32> = (0..2 * RECORD).map(at).collect();
    ds.put_all(record, &mine, &data).unwrap();
    ds.sync().unwrap();
    for step in 1.. {
        let mut def = ds.redef().unwrap();
        def.put_attr(esker::Owner::Global, "step", step).unwrap();
        def.put_attr(esker::Owner::Global, &format!("text{step}"), "t".repeat(900)).unwrap();
        def.add_var(&format!("v{step}"), ExternalType::Int, &[t]).unwrap();
        ds = def.enddef().unwrap();
        if me == 0 {
            tell(dir, step);
        }
    }
}

/// What `tests/all/mpi.rs` expects at an element of a record.
fn value(step: u64, element: u64) -> f32 {
    ((step * 31 + element) % 10_007) as f32
}

/// Rank 1 may not make the file longer (its shell said so): everyone gets an error.
fn full(comm: &Arc<dyn Communicator>, path: &Path) {
    for exchange in ["enable", "disable"] {
        let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
        let mut hints = Hints::default();
        hints.set("romio_cb_write", exchange);
        hints.set("cb_nodes", &ranks.to_string());
        hints.set("cb_buffer_size", "65536");
        let options = CreateOptions::new().comm(comm.clone()).hints(hints);
        let mut def = Dataset::create(path, options).unwrap();
        let t = def.add_dim("t", DimLen::Unlimited).unwrap();
        let x = def.add_dim("x", DimLen::Fixed(8192 * ranks)).unwrap();
        let small = def.add_var("small", ExternalType::Int, &[x]).unwrap();
        // A hole up to what the rank may write.
        let y = def.add_dim("y", DimLen::Fixed(64 << 20)).unwrap();
        let hole = def.add_var("hole", ExternalType::Byte, &[y]).unwrap();
        def.set_fill(hole, esker::FillMode::NoFill).unwrap();
        let large = def.add_var("large", ExternalType::Double, &[t, x]).unwrap();
        def.set_fill(large, esker::FillMode::NoFill).unwrap();
        let mut ds = def.enddef().unwrap();
        let mine = Selection::slab(&[8192 * me], &[8192]);
        ds.put_all(small, &mine, &vec![me as i32; 8192]).unwrap();
        ds.sync().unwrap();
        let mine = Selection::slab(&[0, 8192 * me], &[16, 8192]);
        let error = ds.put_all(large, &mine, &vec![1.0; 16 * 8192]).unwrap_err().to_string();
        assert!(error.contains("File too large"), "{error}");
        assert_eq!(me == 1, !error.contains("rank 1 failed"), "{error}");
        // Everyone goes on with what is there.
        assert_eq!(ds.numrecs(), 0);
        let all: Vec<i32> = ds.get_all(small, &Selection::all()).unwrap();
        assert!((0..ranks).all(|r| all[(r * 8192) as usize] == r as i32));
        ds.close().unwrap();
    }
}

/// An interleaved write and read by exchange, with the number of owners left to the library.
fn interleave(comm: &Arc<dyn Communicator>, path: &Path) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mut def = Dataset::create(path, CreateOptions::new().comm(comm.clone())).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(50_000 * ranks)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let mine = Selection::strided(&[me], &[50_000], &[ranks]);
    ds.put_all(v, &mine, &vec![me as i32; 50_000]).unwrap();
    assert_eq!(ds.report().write_strategy, esker::Strategy::Exchanged);
    let next = (me + 1) % ranks;
    let theirs = Selection::strided(&[next], &[50_000], &[ranks]);
    let found: Vec<i32> = ds.get_all(v, &theirs).unwrap();
    assert!(found.iter().all(|v| *v == next as i32));
    ds.close().unwrap();
}

/// Each rank has hints of its own; rank 0's are everyone's, under the environment's.
fn tell_hints(comm: &Arc<dyn Communicator>, path: &Path) {
    let path: PathBuf = path.to_path_buf();
    let mut hints = Hints::default();
    hints.set("striping_unit", &(100 + comm.rank()).to_string());
    hints.set("cb_nodes", &(1 + comm.rank() % 2).to_string());
    let options = CreateOptions::new().comm(comm.clone()).hints(hints.clone());
    let mut def = Dataset::create(&path, options).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(1000)).unwrap();
    let v = def.add_var("v", ExternalType::Int, &[x]).unwrap();
    let mut ds = def.enddef().unwrap();
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    let mine = Selection::strided(&[me], &[1000 / ranks], &[ranks]);
    ds.put_all(v, &mine, &vec![3i32; (1000 / ranks) as usize]).unwrap();
    let effective = format!("{:?}", ds.hints().effective());
    let everyones = comm.all_gather(effective.clone().into()).unwrap();
    assert!(everyones.iter().all(|theirs| **theirs == *effective.as_bytes()));
    if me == 0 {
        println!("{effective}");
        println!("warnings: {:?}", ds.hints().warnings());
        println!("begin: {}", ds.header().place(v).unwrap().begin);
    }
    ds.close().unwrap();
    let options = OpenOptions::new().comm(comm.clone()).hints(hints);
    let mut ds = Dataset::open_with(&path, options).unwrap();
    let found: Vec<i32> = ds.get_all(v, &mine).unwrap();
    assert!(found.iter().all(|v| *v == 3));
}
