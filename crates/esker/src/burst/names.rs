//! Where the logs before a classic file are, and what they are called.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The beginning of the names of all logs of one file: `run.nc-0123456789abcdef`, with a number of
/// its path, so that files of one name in two directories may share a burst buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stem(String);

/// One pair of files: `STEM.FILE.LANES.SLOT.meta` and `.data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairName {
    /// The first rank that has a lane in it.
    pub(crate) file: u32,
    pub(crate) lanes: u32,
    pub(crate) slot: u32,
}

impl Stem {
    pub(crate) fn of(path: &Path) -> Stem {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        // FNV-1a: the same in every version of this library.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in absolute(path).as_os_str().as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        Stem(format!("{name}-{hash:016x}"))
    }

    pub(crate) fn path(&self, dir: &Path, pair: PairName, kind: &str) -> PathBuf {
        let PairName { file, lanes, slot } = pair;
        dir.join(format!("{}.{file}.{lanes}.{slot}.{kind}", self.0))
    }

    /// What a name of a metadata log of this stem says.
    pub(crate) fn parse(&self, name: &str) -> Option<PairName> {
        let rest = name.strip_prefix(&self.0)?.strip_prefix('.')?.strip_suffix(".meta")?;
        let mut numbers = rest.split('.').map(|n| n.parse().ok());
        let mut next = || numbers.next().flatten();
        let name = PairName { file: next()?, lanes: next()?, slot: next()? };
        // Ranks of one node: a number beyond this is not one that we wrote.
        (numbers.next().is_none() && (1..1 << 20).contains(&name.lanes)).then_some(name)
    }
}

/// The path as the head of a log has it.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The directory that a file is in.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_other_files_names_do_not() {
        let stem = Stem::of(Path::new("/a/run.nc"));
        let pair = PairName { file: 4, lanes: 3, slot: 1 };
        let path = stem.path(Path::new("/bb"), pair, "meta");
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("run.nc-"));
        assert_eq!(stem.parse(name), Some(pair));
        assert_eq!(Stem::of(Path::new("/b/run.nc")).parse(name), None);
        assert_eq!(stem.parse(&name.replace(".meta", ".data")), None);
        assert_eq!(stem.parse(&name.replace(".3.", ".0.")), None);
    }
}
