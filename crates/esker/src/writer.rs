//! One writer at a time, for datasets that need it.
//!
//! Chunked variables look for room in their file, sub-files are given names, logs are begun anew: two
//! programs that do so with one dataset destroy what the other has written, and a redefinition that does not
//! know of another one takes it back. So rank 0 has the file's lock while such a dataset is open for
//! writing, or while any is being redefined; readers never ask for it. Locks are not everywhere (a mount option
//! of Lustre and NFS), so that a file with chunked variables also says who wrote last (`__chunk_writer`),
//! which is compared before anything is changed.

use std::path::Path;
use std::sync::Arc;

use esker_format::chunked::WRITER_LEN;
use esker_store::{Access, File, Locked, Store};

use crate::base::{Base, broadcast_parts, classic_of, identity};
use crate::error::{Error, Result};

/// A text that no other writer has: a random number, and who this is. The same on every rank. Collective.
pub(crate) fn token(base: &Base) -> Result<[u8; WRITER_LEN]> {
    let own = match base.is_root() {
        true => text(&format!("process {} on {}", std::process::id(), host())),
        false => [b' '; WRITER_LEN],
    };
    if base.comm.size() == 1 {
        return Ok(own);
    }
    let parts: &[&[u8]] = if base.is_root() { &[&own] } else { &[] };
    let parts = broadcast_parts(&*base.comm, parts)?;
    let text = parts.into_iter().next().ok_or(Error::Garbled)?;
    text.try_into().map_err(|_| Error::Garbled)
}

fn text(who: &str) -> [u8; WRITER_LEN] {
    let mut out = [b' '; WRITER_LEN];
    let all = format!("{:016x} {who}", identity());
    out.iter_mut().zip(all.bytes()).for_each(|(to, from)| *to = from);
    out
}

/// The name of this machine, as far as it is plain text.
fn host() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let named = named.or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let name: String = named.trim().chars().filter(char::is_ascii_graphic).collect();
    if name.is_empty() { "this machine".to_string() } else { name }
}

/// Whom a text names, for a sentence.
pub(crate) fn who(text: Option<[u8; WRITER_LEN]>) -> String {
    let name = text.map(|text| text[17..].to_vec()).and_then(|name| String::from_utf8(name).ok());
    let name = name.map(|name| name.trim().to_string()).filter(|name| name.starts_with("process"));
    let plain = name.filter(|name| name.chars().all(|c| c == ' ' || c.is_ascii_graphic()));
    plain.map_or(String::new(), |name| format!(" (the last to write to it was {name})"))
}

/// Another program has what this one asks for.
pub(crate) fn busy(base: &Base, last: Option<[u8; WRITER_LEN]>) -> Error {
    let why = format!(
        "another program, or another dataset of this one, has it open for writing{}: it has one writer at a \
         time; reading it is possible",
        who(last)
    );
    Error::Writers { path: base.path.clone(), why }
}

/// Takes the lock of a file for a dataset that needs one writer, or for a redefinition; `None` where there are
/// no locks.
pub(crate) fn lock(base: &Base, file: &Arc<dyn File>) -> Result<Option<Locked>> {
    Locked::take(file)?.map_err(|_| busy(base, None))
}

/// Fails if somebody has the file open for writing who must be the only one: what is written would be lost if
/// the file were replaced now. For tools that replace files; creating a dataset does this by itself.
pub fn require_unwritten(store: &dyn Store, path: &Path) -> Result<()> {
    let path = classic_of(store, path)?;
    // Containers have as many writers as there are.
    if !store.exists(&path)? || store.is_dir(&path)? {
        return Ok(());
    }
    match Locked::take(&store.open(&path, Access::ReadWrite)?)? {
        Ok(_) => Ok(()),
        Err(_) => {
            let why = "a program, or another dataset of this one, has it open for writing, and would lose what \
                       it writes if it were replaced now"
                .to_string();
            Err(Error::Writers { path, why })
        }
    }
}

/// Fails if another file has the dataset's name by now: what is written goes nowhere.
pub(crate) fn require_named(base: &Base, file: &dyn File) -> Result<()> {
    let (Some(open), Some(named)) = (file.id()?, base.store.id_of(&base.path)?) else {
        // A file that was moved or removed is its owner's business.
        return Ok(());
    };
    if open == named {
        return Ok(());
    }
    let why = "another file has its name since it was opened: a program has created it anew, or \
               redefined it; what was written here since then is not in it"
        .to_string();
    Err(Error::Writers { path: base.path.clone(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_its_writer_and_is_like_no_other() {
        let (a, b) = (text("process 7 on node3"), text("process 7 on node3"));
        assert_ne!(a, b);
        assert_eq!(who(Some(a)), " (the last to write to it was process 7 on node3)");
        assert_eq!(text(&"x".repeat(99)).len(), WRITER_LEN);
        assert_eq!(who(None), "");
        assert_eq!(who(Some([0xff; WRITER_LEN])), "");
        assert_eq!(who(Some([b' '; WRITER_LEN])), "");
    }
}
