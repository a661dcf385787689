//! Running a program to its end, within a time.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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
        sleep.arg("30");
        let start = Instant::now();
        let told = output(sleep, Duration::from_secs(1));
        assert_eq!(told, Err("did not finish in 1 s".into()));
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
