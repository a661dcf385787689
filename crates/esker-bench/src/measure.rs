//! What one run of a plan took.

use serde_json::{Value, json};

/// Seconds of each phase, each the longest of any rank.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Phases {
    /// Creating or opening the file.
    pub open: f64,
    /// Defining dimensions and variables, and leaving define mode.
    pub define: f64,
    /// All the requests.
    pub data: f64,
    /// Waiting for the disk, where that was asked for.
    pub sync: f64,
    /// Closing the file.
    pub close: f64,
}

impl Phases {
    /// From the first request until the data are where they should be: what bandwidth and
    /// ratios are computed from. Opening and defining stand beside it, so that a slow start
    /// of one library is not mistaken for slow data.
    pub fn transfer(&self) -> f64 {
        self.data + self.sync + self.close
    }

    /// Everything.
    pub fn total(&self) -> f64 {
        self.open + self.define + self.transfer()
    }

    fn to_json(self) -> Value {
        json!({
            "open": self.open, "define": self.define, "data": self.data,
            "sync": self.sync, "close": self.close,
        })
    }

    fn from_json(value: &Value) -> Option<Phases> {
        let seconds = |name: &str| value.get(name)?.as_f64();
        Some(Phases {
            open: seconds("open")?,
            define: seconds("define")?,
            data: seconds("data")?,
            sync: seconds("sync")?,
            close: seconds("close")?,
        })
    }
}

/// What one run of a plan took, by one library.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The library and its version.
    pub library: String,
    /// Bytes that all ranks wrote.
    pub bytes: u64,
    /// Bytes that they read; 0 for one who cannot read what was asked for.
    pub read_bytes: u64,
    /// Values that were not read as they were written.
    pub wrong: u64,
    /// Writing.
    pub write: Phases,
    /// Reading, from the file opened again.
    pub read: Phases,
    /// The most memory that a rank had, in bytes; threads share it evenly.
    pub peak_memory: u64,
    /// The most bytes that a rank wrote, which are part of that memory.
    pub own_memory: u64,
    /// What the library says about writing: strategy, messages, system calls.
    pub write_report: Value,
    /// What the library says about reading.
    pub read_report: Value,
}

impl Measurement {
    /// As JSON, as the peers' programs print it.
    pub fn to_json(&self) -> Value {
        json!({
            "library": self.library,
            "bytes": self.bytes,
            "read_bytes": self.read_bytes,
            "wrong": self.wrong,
            "write": self.write.to_json(),
            "read": self.read.to_json(),
            "peak_memory": self.peak_memory,
            "own_memory": self.own_memory,
            "write_report": self.write_report,
            "read_report": self.read_report,
        })
    }

    /// From what a peer's program printed.
    pub fn from_json(value: &Value) -> Option<Measurement> {
        let number = |name: &str| value.get(name)?.as_u64();
        let report = |name: &str| value.get(name).cloned().unwrap_or(Value::Null);
        Some(Measurement {
            library: value.get("library")?.as_str()?.into(),
            bytes: number("bytes")?,
            read_bytes: number("read_bytes")?,
            wrong: number("wrong")?,
            write: Phases::from_json(value.get("write")?)?,
            read: Phases::from_json(value.get("read")?)?,
            peak_memory: number("peak_memory")?,
            own_memory: number("own_memory")?,
            write_report: report("write_report"),
            read_report: report("read_report"),
        })
    }
}
