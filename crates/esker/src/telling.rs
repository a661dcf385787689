//! What readers of a dataset have to know: what was begun and is not counted, and what is not what it was.

use std::path::Path;

use esker_format::{DecodeError, Decoded, Header, VarId};
use esker_store::{Access, Store};

use crate::base::{classic_of, header_as_read};
use crate::container::is_container;
use crate::credit::Credit;
use crate::error::Result;
use crate::recovery::container_facts;

/// Notes of one kind that are told one by one.
const NOTES: usize = 16;

/// What readers are told of variables whose seal is broken. Whoever asks for one of these has an error; but damage may
/// have given its name to another variable, and who asks by that name has no other warning.
pub(crate) fn seal_notes(broken: &[(VarId, DecodeError)]) -> Vec<String> {
    let one = |(_, error): &(VarId, DecodeError)| {
        format!(
            "{error}; another variable may have its name, so that none is sure to be what its name says"
        )
    };
    let mut notes: Vec<String> = broken.iter().take(NOTES).map(one).collect();
    if let Some(more) = broken.len().checked_sub(NOTES).filter(|more| *more > 0) {
        notes.push(format!(
            "{more} other variables have broken seals too: `esker check` names them"
        ));
    }
    notes
}

/// What a reader of the dataset at `path` has to know, as [`Dataset::notes`](crate::Dataset::notes) of an open one: newer
/// versions of a container that cannot be read, variables that are not what they were when they were written,
/// records that were begun and that the file does not count. What cannot be read at all is the reader's own error.
pub fn reader_notes(store: &dyn Store, path: &Path) -> Vec<String> {
    if let Ok(true) = is_container(store, path) {
        let facts = container_facts(store, path, None).ok().flatten();
        return facts.map_or_else(Vec::new, |facts| facts.notes);
    }
    let Ok((decoded, file_len)) = as_read(store, path) else { return Vec::new() };
    let mut notes = seal_notes(&decoded.broken);
    notes.extend(uncounted(&decoded.header, file_len));
    notes
}

/// Of these, what is said of the number of records of the classic file at `path`.
pub fn uncounted_records(store: &dyn Store, path: &Path) -> Option<String> {
    let (decoded, file_len) = as_read(store, path).ok()?;
    uncounted(&decoded.header, file_len)
}

fn as_read(store: &dyn Store, path: &Path) -> Result<(Decoded, u64)> {
    let path = classic_of(store, path)?;
    let file = store.open(&path, Access::Read)?;
    let (decoded, _) = header_as_read(store, &store.resolve(&path)?, &*file)?;
    Ok((decoded, file.len()?))
}

fn uncounted(header: &Header, file_len: u64) -> Option<String> {
    match Credit::of(header, header.records(file_len), file_len) {
        Credit::Less(note) | Credit::More(_, note) => Some(note),
        Credit::Full | Credit::None(_) => None,
    }
}
