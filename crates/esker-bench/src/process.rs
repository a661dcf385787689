//! Running a program to its end, within a time.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that names the file in which a rank says why it ends the job (`peers/plan.h`).
const FAULT: &str = "ESKER_BENCH_FAULT";

/// What a job of MPI ranks printed. What a rank said before it ended the job is in the file
/// `fault`: from its standard error the launcher may lose it.
pub(crate) fn output_of_job(
    mut command: Command,
    limit: Duration,
    fault: &Path,
) -> Result<String, String> {
    let _ = fs::remove_file(fault);
    let program = command.get_program().to_string_lossy().into_owned();
    command.env(FAULT, fault);
    let outcome = output(command, limit);
    let told = fs::read_to_string(fault).unwrap_or_default();
    let _ = fs::remove_file(fault);
    match (outcome, told.lines().next()) {
        (Err(_), Some(why)) => Err(format!("{program} failed: {why}")),
        (outcome, _) => outcome,
    }
}

/// What a program printed, or a sentence why it did not end well.
pub(crate) fn output(mut command: Command, limit: Duration) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{program} cannot be started: {e}"))?;
    let stdout = gather(child.stdout.take());
    let stderr = gather(child.stderr.take());
    let status = wait(&mut child, limit);
    let (stdout, stderr) = (stdout.join(), stderr.join());
    let stderr = stderr.unwrap_or_default();
    match status {
        Err(error) => Err(format!("{program}: {error}")),
        Ok(None) => Err(format!("did not finish in {} s", limit.as_secs())),
        Ok(Some(status)) if !status.success() => {
            let said =
                stderr.lines().find(|line| !line.trim().is_empty() && !line.starts_with('-'));
            Err(format!("{program} failed ({status}): {}", said.unwrap_or("it said nothing")))
        }
        Ok(Some(_)) => Ok(stdout.unwrap_or_default()),
    }
}

fn gather(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What could be read before an error is what there is to show.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_ended_and_says_so() {
        let mut sleep = Command::new("sleep");
        // Hours: that it came back at all says that it was ended.
        sleep.arg("100000");
        let told = output(sleep, Duration::from_secs(1));
        assert_eq!(told, Err("did not finish in 1 s".into()));
    }

    /// Found under load: MPICH lost what an aborting rank wrote to its standard error.
    #[test]
    fn why_a_rank_ended_the_job_is_told_though_its_standard_error_was_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut job = Command::new("sh");
        job.args(["-c", "echo 'rank 1: no such filter' >>\"$ESKER_BENCH_FAULT\"; exit 1"]);
        let told = output_of_job(job, Duration::from_secs(600), &dir.path().join("fault"));
        assert_eq!(told, Err("sh failed: rank 1: no such filter".into()));
        let mut job = Command::new("sh");
        job.args(["-c", "echo said >&2; exit 1"]);
        let told = output_of_job(job, Duration::from_secs(600), &dir.path().join("fault"));
        assert!(told.unwrap_err().ends_with(": said"));
    }
}
