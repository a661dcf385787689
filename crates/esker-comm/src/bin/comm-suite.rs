//! Runs the suite on MPI's world: `mpiexec -n 4 comm-suite [light]`.
//!
//! `comm-suite large 3000` moves messages of so many MiB. `comm-suite info` says what was found. `comm-suite bench` measures operations;
//! `comm-suite bench-threads N` does the same on N thread-ranks.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker_comm::suite::{self, Effort};
use esker_comm::{
    Communicator, CommunicatorExt, Message, Sending, Source, Stages, auto, launch, mpi,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    watch(Duration::from_secs(700));
    match words[..] {
        [] => check(Effort::FULL),
        ["light"] => check(Effort::LIGHT),
        ["large", mebibytes] => large(mebibytes.parse::<usize>().unwrap_or(100) << 20),
        ["info"] => info(),
        ["fail"] => fail(),
        ["node-refused"] => node_refused(),
        ["node-die", when] => node_die(when),
        ["bench"] => match auto() {
            Ok(comm) => bench(comm),
            Err(error) => failed(error),
        },
        ["bench-threads", ranks] => {
            launch(ranks.parse().unwrap_or(2), bench);
            ExitCode::SUCCESS
        }
        _ => failed(
            "comm-suite [light | large MIB | info | fail | node-refused | node-die WHEN | bench | bench-threads N]",
        ),
    }
}

fn failed(error: impl std::fmt::Display) -> ExitCode {
    tell(&error.to_string());
    ExitCode::FAILURE
}

/// Says it on standard error, of which a launcher may lose the last words, and in the file that a test reads.
fn tell(words: &str) {
    eprintln!("{words}");
    if let Some(path) = std::env::var_os("ESKER_TEST_TOLD") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // There is nobody to tell that it cannot be told.
        let _ = file.and_then(|mut file| file.write_all(format!("{words}\n").as_bytes()));
    }
}

/// Ends the process if it hangs, so that a failing run leaves nothing behind.
fn watch(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        eprintln!("comm-suite: still running after {limit:?}");
        std::process::abort();
    });
}

fn check(effort: Effort) -> ExitCode {
    let comm = match auto() {
        Ok(comm) => comm,
        Err(error) => return failed(error),
    };
    let start = Instant::now();
    match suite::run(&comm, 2026, effort) {
        Ok(checks) => {
            if comm.rank() == 0 {
                let abi = mpi::found().map_or("no MPI".into(), |found| found.abi.to_string());
                let seconds = start.elapsed().as_secs_f64();
                println!("{checks} checks passed on {} ranks, {abi}, {seconds:.2} s", comm.size());
            }
            ExitCode::SUCCESS
        }
        Err(error) => failed(error),
    }
}

/// Moves a message of so many bytes in every way that has to cut it.
fn large(length: usize) -> ExitCode {
    let outcome = (|| -> Result<(), suite::Failure> {
        let comm = auto()?;
        let (rank, size) = (comm.rank(), comm.size());
        let of = |rank: usize| -> Message {
            Message::from((0..length).map(|i| (i ^ (i >> 20) ^ rank) as u8).collect::<Vec<_>>())
        };
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let (own, expected) = (of(rank).into_shared(), of(left));
        for known in [true, false] {
            let receive = if known {
                comm.irecv_sized(left, 0, length)?
            } else {
                comm.irecv(Source::Any, 0)?
            };
            let send = comm.isend(right, 0, own.clone())?;
            if receive.wait()?.message != expected {
                return Err("point to point: other bytes arrived".into());
            }
            send.wait()?;
            comm.barrier()?;
        }
        if comm.sparse_exchange(vec![(right, own.clone())])? != [(left, expected)] {
            return Err("sparse exchange: other bytes arrived".into());
        }
        let first = comm.broadcast(0, if rank == 0 { own.clone() } else { Message::empty() })?;
        drop(own);
        if first != of(0) {
            return Err("broadcast: other bytes arrived".into());
        }
        if rank == 0 {
            println!("messages of {length} bytes arrived whole on {size} ranks");
        }
        Ok(())
    })();
    outcome.map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn info() -> ExitCode {
    let session = mpi::MpiSession::start();
    match (mpi::found(), mpi::why_not_found()) {
        (Some(info), _) => println!("{info:#?}"),
        (None, reason) => println!("{}", reason.unwrap_or_default()),
    }
    drop(session);
    ExitCode::SUCCESS
}

/// Rank 1 fails while the others wait for it: nobody may hang.
fn fail() -> ExitCode {
    match auto() {
        Ok(comm) if comm.rank() == 1 => failed("rank 1 gives up"),
        Ok(comm) => match comm.barrier() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(error),
        },
        Err(error) => failed(error),
    }
}

/// More memory than there is: every rank is told the same, and goes on.
fn node_refused() -> ExitCode {
    let outcome = (|| -> Result<(), suite::Failure> {
        let comm = auto()?;
        let stages = Stages { owners: vec![0], bytes: 1 << 44, buffers: 2 };
        match comm.node_memory(&stages)? {
            Ok(_) => return Err("32 TiB were shared".into()),
            Err(why) => tell(&format!("refused: {why}")),
        }
        let few = Stages { bytes: 10, ..stages };
        drop(comm.node_memory(&few)??);
        Ok(comm.barrier()?)
    })();
    outcome.map_or_else(failed, |()| ExitCode::SUCCESS)
}

/// Rank 1 is killed in a turn, before or after its part; the others wait for it.
fn node_die(when: &str) -> ExitCode {
    let outcome = (|| -> Result<(), suite::Failure> {
        let comm = auto()?;
        let owners = vec![if when == "owner" { 1 } else { 0 }];
        let memory = comm.node_memory(&Stages { owners, bytes: 1000, buffers: 2 })??;
        for turn in 0..3 {
            if turn < 2 || when != "owner" || comm.rank() != 1 {
                memory.open(0, turn)?;
            }
            if turn == 2 && comm.rank() == 1 {
                let _unfinished =
                    if when == "laying" { memory.lay(0, turn, 1000).ok() } else { None };
                let me = std::process::id().to_string();
                std::process::Command::new("kill").args(["-9", &me]).spawn()?;
                std::thread::sleep(Duration::from_secs(600));
            }
            let mut laying = memory.lay(0, turn, 1000)?;
            laying.claim(comm.rank() * 8, 8, 8, |_, out| out.fill(1));
            laying.finish()?;
            if comm.rank() == memory.stages().owners[0] {
                memory.take(0, turn, 1000)?.show();
            }
            drop(memory.look(0, turn, 1000)?);
        }
        Ok(())
    })();
    match outcome {
        Ok(()) => failed("nobody has missed rank 1"),
        Err(error) => failed(format!("a rank has seen: {error}")),
    }
}

/// Prints the mean time of operations; the mean over all ranks of one run each.
fn bench(comm: Arc<dyn Communicator>) -> ExitCode {
    let outcome = (|| -> esker_comm::Result<()> {
        let (rank, size) = (comm.rank(), comm.size());
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let small = Message::from(vec![1; 100]);
        let large = Message::from(vec![1; 1 << 20]).into_shared();
        time(&comm, "barrier", &|| comm.barrier())?;
        time(&comm, "all_reduce 1", &|| comm.sum_u64(1).map(drop))?;
        time(&comm, "broadcast 100 B", &|| comm.broadcast(0, small.clone()).map(drop))?;
        time(&comm, "broadcast 1 MiB", &|| comm.broadcast(0, large.clone()).map(drop))?;
        time(&comm, "all_gather 100 B", &|| comm.all_gather(small.clone()).map(drop))?;
        time(&comm, "all_to_all_u64", &|| comm.all_to_all_u64(&vec![1; size]).map(drop))?;
        time(&comm, "all_to_all 64 KiB", &|| {
            comm.all_to_all(vec![large.slice(0..65536); size]).map(drop)
        })?;
        for (name, message) in [("ring 100 B", &small), ("ring 1 MiB", &large)] {
            time(&comm, name, &|| {
                let receive = comm.irecv_sized(left, 0, message.len())?;
                let send = comm.isend(right, 0, message.clone())?;
                receive.wait()?;
                send.wait()
            })?;
        }
        time(&comm, "ring 100 B probed", &|| {
            let send = comm.isend(right, 0, small.clone())?;
            comm.irecv(Source::Any, 0)?.wait()?;
            Sending::wait_all([send])
        })?;
        time(&comm, "sparse ring 100 B", &|| {
            comm.sparse_exchange(vec![(right, small.clone())]).map(drop)
        })?;
        time(&comm, "sparse none", &|| comm.sparse_exchange(vec![]).map(drop))?;
        // One rank is busy for a while: what the waiting of the others costs it.
        time(&comm, "barrier after 5 ms of work on rank 0", &|| {
            if rank == 0 {
                let mut sum = 0u64;
                for i in 0..8_000_000u64 {
                    sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
                }
            }
            comm.barrier()
        })
    })();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

fn time(
    comm: &Arc<dyn Communicator>,
    name: &str,
    operation: &dyn Fn() -> esker_comm::Result<()>,
) -> esker_comm::Result<()> {
    comm.barrier()?;
    let start = Instant::now();
    let mut repeats = 0u32;
    loop {
        for _ in 0..5 {
            operation()?;
        }
        repeats += 5;
        // Rank 0 decides for all when it is enough.
        let enough = start.elapsed() > Duration::from_millis(300);
        if comm.broadcast(0, Message::from(vec![u8::from(enough)]))?[..] == [1] {
            break;
        }
    }
    if comm.rank() == 0 {
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(repeats);
        println!("{name:<40} {each:>10.1} us");
    }
    Ok(())
}
