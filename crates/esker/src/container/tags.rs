//! Tags: names that versions of a container have for ever.
//!
//! A tag is a fact of the history, and so a commit of its own, which changes no values. Whoever writes at the same time goes behind it as if
//! nobody had been there. It promises the version that it names: everything that it consists of is safe from a loss of power when
//! the tag is.

use std::path::Path;
use std::sync::Arc;

use esker_format::history::Branch;
use esker_history::History;
use esker_store::Store;

use super::noting::{Notes, inside};
use super::versions::{Shelf, find, gives_names, now, of_history};
use super::{Format, Mark, broken};
use crate::error::{Error, Result};
use crate::message::refusal;
use crate::nearest;

/// A name that a version has for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The name.
    pub name: String,
    /// The version.
    pub version: u64,
}

/// So many names are told to who has given a wrong one.
const MOST_TOLD: usize = 5;

/// What a tag may be called.
const NAMES: &str =
    "a tag has 1 to 64 letters, digits, '_', '-' and '.', of which the first is a letter";

/// The tags of the container at `path`, by name.
///
/// ```
/// # use esker::*;
/// # fn main() -> Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("run.esk");
/// # let store = esker_store::LocalStore;
/// Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?.close()?;
/// esker::tag(&store, &path, "v1", None, "as published")?;
/// assert_eq!(esker::tags(&store, &path)?, [Tag { name: "v1".to_string(), version: 1 }]);
/// assert_eq!(Dataset::open(dir.path().join("run.esk@v1"))?.container_version(), Some(1));
/// # Ok(()) }
/// ```
pub fn tags(store: &dyn Store, path: &Path) -> Result<Vec<Tag>> {
    let (store, path) = inside(store, path)?;
    tags_in(&store, &path)
}

/// The tags of a container that is open.
pub(crate) fn tags_in(store: &Arc<dyn Store>, path: &Path) -> Result<Vec<Tag>> {
    if Mark::require(&**store, path)?.format() == Format::One {
        return Ok(Vec::new());
    }
    // A tag is for ever: where the newest version cannot be read, one before it tells of those that it has.
    let Some(last) = Shelf::open(store, path)?.last_readable()? else { return Ok(Vec::new()) };
    let named = last.tags().map_err(|error| of_history(path, error))?;
    let main = Branch::main();
    let of_main = named.into_iter().filter(|(_, branch, _)| *branch == main);
    Ok(of_main.map(|(name, _, version)| Tag { name: name.to_string(), version }).collect())
}

/// The number of the version of the container at `container` that people call `name`: a number, or a tag. Whether there is a version of this number is not asked.
pub fn version_named(store: &dyn Store, container: &Path, name: &str) -> Result<u64> {
    let digits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = name.parse().ok().filter(|_| digits) {
        return Ok(number);
    }
    let no = |why: &str| broken(container, format!("it has no version {name:?}: {why}"));
    if Branch::new(name).is_none() {
        return Err(no("versions are numbers and tags"));
    }
    let (store, path) = inside(store, container)?;
    let tags = tags_in(&store, &path)?;
    if let Some(tag) = tags.iter().find(|tag| tag.name == name) {
        return Ok(tag.version);
    }
    // A tag that was lost with the newest version is told so.
    find(&store, &path, None)?;
    let hint = nearest::hint(name, tags.iter().map(|tag| &*tag.name));
    let names: Vec<&str> = tags.iter().map(|tag| &*tag.name).collect();
    let there = match names.len() {
        0 => "it has no tags".to_string(),
        few if few <= MOST_TOLD => format!("its tags are {}", names.join(", ")),
        many => format!("it has {many} tags"),
    };
    Err(no(&format!("there is no tag of this name, {there}{hint}")))
}

/// Gives a version of the container at `path` (a number; by default the newest that is not there for a name alone) a name for ever, and makes everything that it
/// consists of safe from a loss of power. Nobody who writes at the same time is disturbed. Not collective: one process does it.
///
/// That the version has this name already is well; another one of this name is an error. The message is for people, as that of other versions.
pub fn tag(
    store: &dyn Store,
    path: &Path,
    name: &str,
    version: Option<u64>,
    message: &str,
) -> Result<Tag> {
    let word = Branch::new(name).filter(|word| *word != Branch::main());
    let Some(word) = word else {
        inside(store, path)?;
        return Err(broken(
            path,
            format!("{name:?} cannot be the name of a tag: {NAMES}; \"main\" is taken"),
        ));
    };
    if let Some(why) = refusal(message) {
        return Err(broken(path, why));
    }
    let notes = Notes::open(store, path, "whose versions have no names")?;
    let Notes { store, path, history, found } = &notes;
    let number = match version {
        // It must be there, and not have expired.
        Some(number) => find(store, path, Some(number))?.version,
        None => values_of(history, path, found.version)?,
    };
    let tag = Tag { name: name.to_string(), version: number };
    if let Some(there) = tags_in(store, path)?.into_iter().find(|there| there.name == name) {
        return match there == tag {
            true => Ok(tag),
            false => Err(taken(path, &there)),
        };
    }
    give(&notes, (&word, &tag, message))?;
    Ok(tag)
}

fn taken(path: &Path, there: &Tag) -> Error {
    let Tag { name, version } = there;
    broken(path, format!("version {version} is called {name:?}, and a tag stays what it is"))
}

/// The newest version up to a number that is not there for a name alone.
fn values_of(history: &History, path: &Path, number: u64) -> Result<u64> {
    let failed = |error| of_history(path, error);
    let mut number = number;
    while gives_names(history, number).map_err(failed)? {
        let decision = history.decision(&Branch::main(), number).map_err(failed)?;
        let parent = decision.as_ref().and_then(|decision| decision.commit()?.parent.as_ref());
        match parent {
            Some(parent) => number = parent.number,
            None => break,
        }
    }
    Ok(number)
}

/// Commits the name, and promises it.
fn give(notes: &Notes, (word, tag, message): (&Branch, &Tag, &str)) -> Result<()> {
    let path = &notes.path;
    let failed = |error| match error {
        esker_history::Error::Conflict { conflict, .. } => broken(
            path,
            format!(
                "somebody else has given the name {:?} just now, with version {}",
                tag.name, conflict.number
            ),
        ),
        other => notes.failed(other),
    };
    let made = notes.add(true, |history| {
        let of = history.commit_of(&Branch::main(), tag.version).map_err(failed)?;
        let of = of.ok_or_else(|| broken(path, format!("version {} was given up", tag.version)))?;
        history.tag(word, &of, message, now()).map_err(failed)
    });
    made.map(drop)
}
