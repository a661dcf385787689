//! Node memory of processes: one makes a file without a name, the others open it by the number that it has there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::map::{Map, nameless_file, random};
use super::{NoNodeMemory, NodeMemory, Stages, Watch, left};
use crate::{Communicator, CommunicatorExt, Disagreement, Result};

/// Those who wait look so rarely for processes that are gone: every second.
const RARELY: u32 = 10;

/// Makes the memory. Collective.
pub(crate) fn share(
    comm: &impl Communicator,
    stages: &Stages,
) -> Result<std::result::Result<NodeMemory, NoNodeMemory>> {
    let len = stages.check(comm.size())?;
    let made = (comm.rank() == 0).then(|| make(len));
    // Where it is; nowhere, if it could not be made.
    let place = match &made {
        Some(Ok((file, number))) => [std::process::id().into(), file.as_raw_fd() as u64, *number],
        _ => [0; 3],
    };
    // Everyone's processes, too, to see whether they are there.
    let mine = [place[0], place[1], place[2], std::process::id().into()];
    let all = comm.all_gather_u64(&mine)?;
    let (all, _) = all.as_chunks::<4>();
    let mapped = match &made {
        Some(Err(error)) => Err(io::Error::new(error.kind(), error.to_string())),
        Some(Ok((file, _))) => Map::of_file(file, len),
        None => all.first().ok_or(io::ErrorKind::NotFound.into()).and_then(|root| open(root, len)),
    };
    let mapped = mapped.map_err(|error| format!("{len} bytes cannot be shared: {error}"));
    // Until then rank 0 keeps it open.
    let map = match comm.agree(mapped) {
        Ok(map) => Arc::new(map),
        Err(Disagreement::Failed { rank, message, .. }) => {
            return Ok(Err(NoNodeMemory(format!("rank {rank}: {message}"))));
        }
        Err(Disagreement::Comm(error)) => return Err(error),
    };
    let others: Vec<(usize, libc::pid_t)> = all
        .iter()
        .enumerate()
        .filter(|(rank, _)| *rank != comm.rank())
        .map(|(rank, [.., process])| (rank, *process as libc::pid_t))
        // Those of another namespace cannot be seen, and are not looked for.
        .filter(|(_, process)| is_there(*process))
        .collect();
    let gone =
        Box::new(move |times, awaited: &dyn Fn(usize) -> bool| miss(&others, times, awaited));
    let watch = Watch { map: map.clone(), gone };
    let memory = NodeMemory::new(map, stages, comm.rank(), comm.size(), watch);
    Ok(memory.ok_or_else(|| NoNodeMemory("too many ranks".into())))
}

/// The error of a process that is gone and waited for, if one is looked for this time.
fn miss(
    others: &[(usize, libc::pid_t)],
    times: u32,
    awaited: &dyn Fn(usize) -> bool,
) -> Result<()> {
    // Not the first time: most waits are short, and asking the system for every rank is not.
    if times % RARELY != RARELY - 1 {
        return Ok(());
    }
    // First whether it is gone: what it has finished it had finished by then.
    let missing = |(rank, process): &&(usize, _)| !is_there(*process) && awaited(*rank);
    others.iter().find(missing).map_or(Ok(()), |(rank, _)| Err(left(*rank)))
}

/// A file of that length, which begins with a random number.
fn make(len: usize) -> io::Result<(File, u64)> {
    let mut file = nameless_file(len)?;
    let number = random()?;
    file.write_all(&number.to_le_bytes())?;
    Ok((file, number))
}

/// Opens and maps what another process has made, if it is that.
fn open(place: &[u64; 4], len: usize) -> io::Result<Map> {
    let [process, descriptor, number, _] = place;
    if *process == 0 {
        return Err(io::Error::other("rank 0 has made none"));
    }
    let path = format!("/proc/{process}/fd/{descriptor}");
    let refused = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(refused)?;
    let mut found = [0; 8];
    file.read_exact_at(&mut found, 0).map_err(refused)?;
    // A process of the same number in another namespace may have anything there.
    if u64::from_le_bytes(found) != *number || file.metadata()?.len() != len as u64 {
        return Err(io::Error::other(format!("{path} is not what rank 0 has made")));
    }
    Map::of_file(&file, len)
}

/// Whether there is a process of this number that has not ended.
#[allow(unsafe_code)]
fn is_there(process: libc::pid_t) -> bool {
    // SAFETY: signal 0 is sent to nobody; only whether it could be is told.
    let told = unsafe { libc::kill(process, 0) };
    if told != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) {
        return false;
    }
    // One that has ended is a number until its parent asks for it. The state stands behind the name, in brackets.
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::node::Shared;

    fn process() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    /// A handle of rank 0, whose other rank is that process.
    fn beside(child: &Child) -> NodeMemory {
        let stages = Stages { owners: vec![0], bytes: 10, buffers: 1 };
        let Shared(map) = NodeMemory::of_this_process(&stages, 2).unwrap().unwrap();
        let others = vec![(1, child.id() as libc::pid_t)];
        let gone = move |times, awaited: &dyn Fn(usize) -> bool| miss(&others, times, awaited);
        let memory = Shared(map).join(&stages, 0, 2, Box::new(gone)).unwrap();
        memory.open(0, 0).unwrap();
        memory.lay(0, 0, 10).unwrap().finish().unwrap();
        memory
    }

    #[test]
    fn a_process_that_was_killed_is_gone_also_before_its_parent_knows() {
        let mut child = process();
        let number = child.id() as libc::pid_t;
        assert!(is_there(number));
        child.kill().unwrap();
        // The system may take a moment to end it.
        while is_there(number) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_there(number));
    }

    #[test]
    fn a_wait_for_a_process_that_is_killed_ends_with_an_error() {
        let mut child = process();
        let memory = beside(&child);
        let waiting = std::thread::spawn(move || memory.take(0, 0, 10).map(drop));
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(!waiting.is_finished());
        child.kill().unwrap();
        assert_eq!(waiting.join().unwrap(), Err(left(1)));
        child.wait().unwrap();
    }

    #[test]
    fn what_is_not_the_file_that_was_made_is_refused() {
        let (file, number) = make(8192).unwrap();
        let here = u64::from(std::process::id());
        let place = [here, file.as_raw_fd() as u64, number, here];
        assert_eq!(open(&place, 8192).unwrap().len(), 8192);
        // Another number in it, another length, another file, none.
        let wrong = [
            (open(&[here, place[1], !number, here], 8192), "another number"),
            (open(&place, 4096), "another length"),
            (open(&[here, 1 << 30, number, here], 8192), "no such file"),
            (open(&[0; 4], 8192), "none was made"),
        ];
        for (outcome, what) in wrong {
            assert!(outcome.is_err(), "{what}");
        }
        // Nobody shortens it under those who have mapped it.
        assert!(file.set_len(0).is_err());
    }
}
