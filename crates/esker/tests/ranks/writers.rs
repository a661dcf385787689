//! Two jobs that write one dataset: the first has it, every rank of the second gets a sentence.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    Communicator, CreateOptions, Dataset, Define, DimLen, ExternalType, Hints, OpenOptions, Owner,
    Selection, VarId,
};

const WIDTH: u64 = 60;

/// How the datasets of these tests are kept.
fn hints(form: &str, dir: &Path) -> Hints {
    let mut hints = Hints::default();
    match form {
        "files" => hints.set("esker_chunk_files", "rank"),
        "subfiles" => hints.set("nc_num_subfiles", "2"),
        "burst" => {
            hints.set("nc_burst_buf", "enable");
            hints.set("nc_burst_buf_dirname", dir.join("buffer").to_str().unwrap());
        }
        _ => {}
    }
    hints
}

fn create(form: &str, dir: &Path, comm: &Arc<dyn Communicator>) -> esker::Result<Define> {
    let options = CreateOptions::new().comm(comm.clone()).hints(hints(form, dir));
    Dataset::create(dir.join("run.nc"), options)
}

fn open(form: &str, dir: &Path, comm: &Arc<dyn Communicator>) -> esker::Result<Dataset> {
    let options = OpenOptions::new().writable(true).comm(comm.clone()).hints(hints(form, dir));
    Dataset::open_with(dir.join("run.nc"), options)
}

/// Columns of this rank: each n-th.
fn columns(comm: &Arc<dyn Communicator>) -> (u64, u64, u64) {
    let (me, ranks) = (comm.rank() as u64, comm.size() as u64);
    (me, (WIDTH - me).div_ceil(ranks), ranks)
}

fn put(ds: &mut Dataset, form: &str, record: u64) -> esker::Result<()> {
    let (me, count, ranks) = columns(ds.comm());
    let values: Vec<i32> = (0..count).map(|i| (1000 * record + me + i * ranks) as i32).collect();
    let v = ds.var("v")?;
    match form {
        "subfiles" => ds.put_all(v, &Selection::blob(&[record], &[1]), &values),
        _ => ds.put_all(v, &Selection::strided(&[record, me], &[1, count], &[1, ranks]), &values),
    }
}

/// Creates and writes, tells that it has, and goes on when it is told to.
pub(crate) fn first(comm: &Arc<dyn Communicator>, form: &str, dir: &Path) {
    let mut def = create(form, dir, comm).unwrap();
    let t = def.add_dim("t", DimLen::Unlimited).unwrap();
    let x = def.add_dim("x", DimLen::Fixed(WIDTH)).unwrap();
    match form {
        "subfiles" => {
            let (me, count, ranks) = columns(comm);
            let mine = Selection::strided(&[me], &[count], &[ranks]);
            let map = def.add_decomposition(&[x], &mine).unwrap();
            def.add_decomposed_var("v", ExternalType::Int, &[t], map).unwrap();
        }
        _ => {
            let v = def.add_var("v", ExternalType::Int, &[t, x]).unwrap();
            if form == "chunked" || form == "files" {
                def.set_chunks(v, &[1, 25]).unwrap();
                def.set_filters(v, "zstd").unwrap();
            }
        }
    }
    let mut ds = def.enddef().unwrap();
    put(&mut ds, form, 0).unwrap();
    let say = || {
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            std::fs::write(dir.join("has"), "it").unwrap();
        }
        while !dir.join("go").exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    if form == "redefinition" {
        // Values of classic variables are everybody's to write, and definitions those of whoever commits first.
        let mut def = ds.redef().unwrap();
        def.put_attr(Owner::Global, "first", "was here").unwrap();
        say();
        let failed = def.enddef().map(drop).unwrap_err();
        tell(dir, comm, [failed.error.to_string()]);
        return;
    } else {
        say();
    }
    put(&mut ds, form, 1).unwrap();
    ds.sync().unwrap();
    put(&mut ds, form, 2).unwrap();
    ds.close().unwrap();
    let mut ds =
        Dataset::open_with(dir.join("run.nc"), OpenOptions::new().comm(comm.clone())).unwrap();
    let all: Vec<i32> = ds.get_all(VarId(ds.var("v").unwrap().0), &Selection::all()).unwrap();
    let expected = (0..3).flat_map(|record| (0..WIDTH as i32).map(move |i| 1000 * record + i));
    assert_eq!(all, expected.collect::<Vec<i32>>());
}

/// Tries whatever writes; each rank says what it was told. A redefinition succeeds, before the first one's.
pub(crate) fn second(comm: &Arc<dyn Communicator>, form: &str, dir: &Path) {
    if form == "redefinition" {
        let mut def = open(form, dir, comm).unwrap().redef().unwrap();
        def.put_attr(Owner::Global, "second", "too").unwrap();
        return def.enddef().unwrap().close().unwrap();
    }
    let opened = open(form, dir, comm).map(drop);
    let created = create(form, dir, comm).and_then(|mut def| {
        def.add_dim("z", DimLen::Fixed(1))?;
        def.enddef().map(drop).map_err(|failed| *failed.error)
    });
    let said = |told: esker::Result<()>| told.map_or_else(|e| e.to_string(), |()| "nothing".into());
    tell(dir, comm, [opened, created].map(said));
}

/// What this rank was told, a line for each time.
fn tell<const N: usize>(dir: &Path, comm: &Arc<dyn Communicator>, told: [String; N]) {
    std::fs::write(dir.join(format!("told.{}", comm.rank())), told.join("\n")).unwrap();
}
