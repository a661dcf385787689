//! What the machine is, without which figures mean nothing.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Facts of the machine and of a folder's file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that we may use.
    pub cores: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's version.
    pub kernel: String,
    /// The type of the file system, such as `ext4`.
    pub file_system: String,
}

impl Machine {
    /// This machine, and the file system that `dir` is in. What cannot be found is empty.
    pub fn here(dir: &Path) -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or(String::new(), |(_, value)| value.trim().to_string())
        };
        let memory = value(&text("/proc/meminfo"), "MemTotal");
        let kib = memory.split(' ').next().and_then(|n| n.parse::<u64>().ok());
        Machine {
            processor: value(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
            memory: kib.unwrap_or(0) * 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_string(),
            file_system: file_system(&text("/proc/mounts"), dir),
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "processor": self.processor, "cores": self.cores, "memory": self.memory,
            "kernel": self.kernel, "file_system": self.file_system,
        })
    }

    /// In a line.
    pub fn sentence(&self) -> String {
        let gib = self.memory as f64 / f64::from(1 << 30);
        let (processor, cores) = (&self.processor, self.cores);
        format!(
            "{cores} cores of {processor}, {gib:.0} GiB, Linux {}, {}",
            self.kernel, self.file_system
        )
    }
}

/// The type of the last file system mounted on the longest prefix of the path.
fn file_system(mounts: &str, dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let mut best = (0, "");
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        if let (Some(point), Some(kind)) = (fields.next(), fields.next())
            && dir.starts_with(point)
            && point.len() >= best.0
        {
            best = (point.len(), kind);
        }
    }
    best.1.to_string()
}
