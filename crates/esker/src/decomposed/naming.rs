//! How sub-files get their names, and how those of a dataset that was replaced lose theirs.
//!
//! The file that names the sub-files takes its name first. Until then the dataset that it replaces is
//! whole; from then on the new one is, because its sub-files are found under the names under which
//! they grew as well (`Spread::open`). Then they take their names, each by the rank that looks after
//! it, and if that fails, at the next sync or close of anybody.

use std::path::{Path, PathBuf};

use esker_format::{Owner, Schema};
use esker_store::{Access, DraftForm, DraftName, Leftover, Store, draft_path, leftovers};

use super::subfiles::{Groups, IDENTITY, NUMBER, list, subfile_path};
use crate::base::{Base, read_header};
use crate::error::{Error, Result};

/// What a sub-file says it is: the identity of its dataset, and its number.
pub(super) fn marks(schema: &Schema) -> Option<(String, u64)> {
    let identity = schema.attr(Owner::Global, IDENTITY)?.text()?;
    match list(schema.attr(Owner::Global, NUMBER)?)?[..] {
        [number] => Some((identity.trim_end_matches('\0').to_string(), number)),
        _ => None,
    }
}

/// The schema of the classic file of this name; `None` if it is none that can be read.
fn schema_at(store: &dyn Store, path: &Path) -> Option<Schema> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = store.enclosed(folder).ok()?.open(path, Access::Read).ok()?;
    Some(read_header(path, &*file).ok()?.0.schema)
}

/// Whether the file of this name is the sub-file of this identity and number.
fn is_marked(store: &dyn Store, path: &Path, identity: &str, number: usize) -> bool {
    let found = schema_at(store, path).and_then(|schema| marks(&schema));
    found.is_some_and(|found| found == (identity.to_string(), number as u64))
}

/// The number of the sub-file that has this name, or grows under it, if it is a name of one.
fn number_of(path: &Path, name: &str) -> Option<usize> {
    let digits = |name: &str| {
        let stem = path.file_stem()?.to_str()?;
        let rest = name.strip_prefix(stem)?.strip_prefix('.')?;
        let number = match path.extension() {
            None => rest,
            Some(extension) => rest.strip_suffix(extension.to_str()?)?.strip_suffix('.')?,
        };
        let number: usize = number.parse().ok()?;
        let same = subfile_path(path, number);
        (same.file_name()?.to_str() == Some(name)).then_some(number)
    };
    let hidden = || DraftName::parse(name).filter(|draft| draft.form == DraftForm::Sub);
    digits(name).or_else(|| digits(hidden()?.target))
}

/// Where a sub-file of this identity grows that this process makes.
pub(super) fn growing(named: &Path, identity: &str) -> PathBuf {
    draft_path(named, DraftForm::Sub, number_of_identity(identity))
}

fn number_of_identity(identity: &str) -> u64 {
    u64::from_str_radix(identity, 16).unwrap_or(0)
}

/// Where a sub-file of this identity grows, or has been left, whichever process made it.
pub(super) fn grown(store: &dyn Store, named: &Path, identity: &str) -> Option<PathBuf> {
    grown_all(store, named, identity).pop()
}

fn grown_all(store: &dyn Store, named: &Path, identity: &str) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (named.parent(), named.file_name()) else { return Vec::new() };
    let names = store.names_in(folder).unwrap_or_default().into_iter();
    let number = number_of_identity(identity);
    let is_it = |entry: &String| {
        let draft = DraftName::parse(entry);
        draft.is_some_and(|d| d.form == DraftForm::Sub && d.number == number && d.is_for(name))
    };
    names.filter(is_it).map(|entry| named.with_file_name(entry)).collect()
}

/// Files beside a dataset that are sub-files by their names and by what they say of themselves, but
/// not this dataset's.
pub(super) fn strangers(store: &dyn Store, path: &Path, own: Option<&Groups>) -> Vec<PathBuf> {
    let Some(folder) = path.parent() else { return Vec::new() };
    let names = store.names_in(folder).unwrap_or_default();
    let stranger = |name: String| {
        let number = number_of(path, &name)?;
        let found = folder.join(&name);
        if name.starts_with('.') && store.open(&found, Access::Read).ok()?.is_empty().ok()? {
            // Killed before it said what it is.
            return Some(found);
        }
        let (identity, says) = marks(&schema_at(store, &found)?)?;
        let is_own = own.is_some_and(|own| own.identity() == identity && number < own.count());
        (says == number as u64 && !is_own).then_some(found)
    };
    names.into_iter().filter_map(stranger).collect()
}

/// The sub-files of the dataset of this name, under whichever of their names.
pub(crate) fn named_subfiles(store: &dyn Store, path: &Path) -> Vec<PathBuf> {
    let groups = schema_at(store, path).and_then(|schema| Groups::expanded(&schema).ok()?);
    let Some((_, groups)) = groups else { return Vec::new() };
    let of_number = |number| {
        let named = subfile_path(path, number);
        let mut both = grown_all(store, &named, groups.identity());
        both.push(named);
        both.retain(|path| is_marked(store, path, groups.identity(), number));
        both
    };
    (0..groups.count()).flat_map(of_number).collect()
}

/// A dataset that has the name of one that is being created.
#[derive(Debug)]
pub(crate) struct Replaced(Option<Groups>);

impl Replaced {
    /// Looks at it, and gives those of its sub-files their names that have not taken them: others
    /// are going to grow where they are.
    pub(crate) fn look(base: &Base) -> Result<Replaced> {
        let (store, path) = (&*base.store, &base.path);
        let schema = match store.exists(path)? {
            true => schema_at(store, path),
            false => None,
        };
        let groups = schema.and_then(|schema| Groups::expanded(&schema).ok()?);
        let groups = groups.map(|(_, groups)| groups);
        if let Some(groups) = &groups {
            for number in 0..groups.count() {
                let named = subfile_path(path, number);
                let of_it = |path: &Path| is_marked(store, path, groups.identity(), number);
                if of_it(&named) {
                    continue;
                }
                let grown = grown(store, &named, groups.identity());
                if let Some(grown) = grown.filter(|path| of_it(path)) {
                    store.rename(&grown, &named)?;
                }
            }
        }
        Ok(Replaced(groups))
    }

    /// Whether it had sub-files, which go with it.
    pub(crate) fn had_subfiles(&self) -> bool {
        self.0.is_some()
    }

    /// Removes the sub-files that it had, now that a dataset with the sub-files `new` has its name,
    /// and what creations that were killed have left. A file that stays takes room, and no more.
    pub(crate) fn remove_subfiles(&self, base: &Base, new: Option<&Groups>) {
        let (store, path) = (&*base.store, &base.path);
        if let Some(groups) = &self.0 {
            // Others take the place of the first ones, and perhaps just now.
            for number in new.map_or(0, Groups::count)..groups.count() {
                let named = subfile_path(path, number);
                if is_marked(store, &named, groups.identity(), number) {
                    let _ = store.remove(&named);
                }
            }
        }
        if self.0.is_none() && new.is_none() {
            return;
        }
        for left in strangers(store, path, new) {
            if is_of_dead(store, path, &left) {
                let _ = store.remove(&left);
            }
        }
    }
}

/// Removes what a creation that failed has made, unless it has its name already. A dataset of before
/// is untouched.
pub(crate) fn discard_new(base: &Base, groups: Option<&Groups>) {
    // The error that counts is the one that we have.
    let (store, path) = (&*base.store, &base.path);
    let Some(groups) = groups else { return };
    let found = schema_at(store, path).and_then(|schema| Groups::expanded(&schema).ok()?);
    if found.is_some_and(|(_, found)| found.identity() == groups.identity()) {
        return;
    }
    for number in 0..groups.count() {
        for left in grown_all(store, &subfile_path(path, number), groups.identity()) {
            let _ = store.remove(&left);
        }
    }
}

/// Whether a sub-file grew in a process of this machine that does not run any more.
fn is_of_dead(store: &dyn Store, path: &Path, left: &Path) -> bool {
    let name = left.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(number) = DraftName::parse(name).and_then(|_| number_of(path, name)) else {
        return false;
    };
    let found = leftovers(store, &subfile_path(path, number)).unwrap_or_default();
    found.iter().any(|Leftover { path, is_running, .. }| path == left && *is_running == Some(false))
}

/// Fails if a file has the name of a sub-file that is none: nobody has asked to replace it.
pub(super) fn require_free(base: &Base, named: &Path) -> Result<()> {
    if !base.store.exists(named)? {
        return Ok(());
    }
    // What cannot be read may be a sub-file that a loss of power has left.
    let another = schema_at(&*base.store, named).is_some_and(|s| marks(&s).is_none());
    match another {
        false => Ok(()),
        true => Err(Error::Container {
            path: named.to_path_buf(),
            why: format!(
                "it is a file of its own, and would be replaced by a sub-file of {}: give it \
                 another name",
                base.path.display()
            ),
        }),
    }
}
