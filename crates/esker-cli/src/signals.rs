//! A command that is told to end (Ctrl-C, `kill`, a terminal that was closed) removes the files that it has begun
//! and that have not taken their names, and then ends by that signal, as its parent expects.

use std::fs;
use std::sync::Once;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Begins to listen. What the caller has the process ignore (`nohup`, a shell's `&`) stays ignored.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter();
        let wanted: Vec<i32> = wanted.filter(|signal| !is_ignored(&status, *signal)).collect();
        // Without, drafts stay, and `esker check` tells of them.
        let Ok(mut signals) = Signals::new(wanted) else { return };
        // Not in the handler itself, where hardly anything may be done.
        let _ = thread::Builder::new().name("signals".to_string()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                esker_store::remove_live_drafts();
                let _ = emulate_default_handler(signal);
                std::process::exit(128 + signal);
            }
        });
    });
}

/// Whether the process ignores the signal, by what the kernel says of it.
fn is_ignored(status: &str, signal: i32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_kernels_words() {
        let status = "Name:\tesker\nSigIgn:\t0000000000001003\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, SIGHUP) && is_ignored(status, SIGINT));
        assert!(!is_ignored(status, SIGTERM) && !is_ignored("", SIGINT));
    }
}
