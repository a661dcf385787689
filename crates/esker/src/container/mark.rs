//! The file that makes a directory a container.

use std::path::Path;

use esker_format::inside;
use esker_store::{CreateMode, Store, named_path};

use super::names::MARK;
use super::{broken, identity, read_all};
use crate::error::Result;

/// What the file is: the text before and behind its identity. Containers of before there were
/// promises say nothing of them.
const BEFORE: &str = "{\"esker\": \"container\", \"format\": 2, \"identity\": \"";
const BEFORE_ONE: &str = "{\"esker\": \"container\", \"format\": 1, \"identity\": \"";
const BEHIND: &str = "\", \"promises\": 1}\n";
const BEHIND_OLD: &str = "\"}\n";

/// How a container keeps its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// A manifest for each. Such containers are read.
    One,
    /// A history.
    Two,
}

/// What a container says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    format: Format,
    /// Whether it has had a file of promises from the beginning.
    promises: bool,
}

impl Mark {
    /// How it keeps its versions.
    pub(crate) fn format(self) -> Format {
        self.format
    }

    /// Whether its container has had a file of promises from the beginning.
    pub(crate) fn has_promises(self) -> bool {
        self.promises
    }

    fn parse(bytes: &[u8]) -> Option<Mark> {
        let text = std::str::from_utf8(bytes).ok()?;
        let two = text.strip_prefix(BEFORE).map(|rest| (Format::Two, rest));
        let (format, rest) = two.or_else(|| Some((Format::One, text.strip_prefix(BEFORE_ONE)?)))?;
        let (id, behind) = rest.split_at_checked(16)?;
        inside::identity(id)?;
        match (format, behind) {
            (_, BEHIND) => Some(Mark { format, promises: true }),
            (Format::One, BEHIND_OLD) => Some(Mark { format, promises: false }),
            _ => None,
        }
    }

    /// The mark of a container; `None` if there is none that is whole.
    pub(crate) fn find(store: &dyn Store, path: &Path) -> Result<Option<Mark>> {
        let mark = path.join(MARK);
        match store.exists(&mark)? {
            true => Ok(Mark::parse(&read_all(store, &mark)?)),
            false => Ok(None),
        }
    }

    /// The mark of a container that can be read.
    pub(super) fn require(store: &dyn Store, path: &Path) -> Result<Mark> {
        let found = Mark::parse(&read_all(store, &path.join(MARK))?);
        let why = || format!("its {MARK} is not one that this version of Esker knows");
        found.ok_or_else(|| broken(path, why()))
    }

    /// Makes the directory a container. A mark that is there is whole, whoever dies.
    pub(crate) fn write(store: &dyn Store, path: &Path) -> Result<()> {
        let text = format!("{BEFORE}{:016x}{BEHIND}", identity());
        let draft = path.join(format!("{MARK}-{:016x}", identity()));
        // One that grows to replace another is read by whom that was.
        let replaced = named_path(path).join(MARK);
        let file = match store.exists(&replaced)? {
            true => store.create_like(&draft, &replaced)?,
            false => store.create(&draft, CreateMode::New)?,
        };
        // It is synced with the first version that is: before that nothing is promised.
        let written = file.write_at(0, text.as_bytes());
        let renamed = written.and_then(|()| store.rename(&draft, &path.join(MARK)));
        Ok(renamed.inspect_err(|_| {
            let _ = store.remove(&draft);
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_what_writers_write_and_nothing_else() {
        let text = format!("{BEFORE}00000000000000ff{BEHIND}");
        let mark = Mark { format: Format::Two, promises: true };
        assert_eq!(Mark::parse(text.as_bytes()), Some(mark));
        let one = format!("{BEFORE_ONE}00000000000000ff{BEHIND}");
        let mark = Mark { format: Format::One, promises: true };
        assert_eq!(Mark::parse(one.as_bytes()), Some(mark));
        let old = format!("{BEFORE_ONE}00000000000000ff{BEHIND_OLD}");
        assert_eq!(Mark::parse(old.as_bytes()), Some(Mark { promises: false, ..mark }));
        for text in [text, one, old] {
            for cut in 0..text.len() {
                assert_eq!(Mark::parse(&text.as_bytes()[..cut]), None, "{cut}");
            }
        }
    }
}
