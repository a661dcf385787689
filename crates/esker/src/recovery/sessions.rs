//! Sessions that no manifest of a container knows.

use std::collections::BTreeMap;
use std::path::Path;

use esker_format::inside;
use esker_format::log::{Head, LogPart, Session};
use esker_store::{Access, Store};

use crate::error::Result;

/// The version that a session was the first to write, by its name.
pub(super) fn began(stem: &str) -> u64 {
    inside::session(stem).map_or(0, |(version, _)| version)
}

/// The identity of a session, by its name.
pub(super) fn identity(stem: &str) -> u64 {
    inside::session(stem).map_or(0, |(_, identity)| identity)
}

/// The sessions in `segments` that are not among `listed`, in the order of their names, each with
/// nothing committed.
pub(super) fn unlisted(store: &dyn Store, path: &Path, listed: &[Session]) -> Result<Vec<Session>> {
    let segments = path.join("segments");
    let mut found: BTreeMap<(u64, String), Vec<u32>> = BTreeMap::new();
    for name in store.names_in(&segments)? {
        // One that was written anew is no session of its own.
        let Some((stem, file, 0)) = inside::metadata_log(&name) else { continue };
        if !listed.iter().any(|session| session.stem == stem) {
            found.entry((began(stem), stem.to_string())).or_default().push(file);
        }
    }
    let mut sessions = Vec::new();
    for ((_, stem), mut files) in found {
        files.sort_unstable();
        let mut session =
            Session { stem, identity: 0, revision: 0, meta_block: 0, data_block: 0, logs: vec![] };
        for file in files {
            let meta = crate::container::meta_path(path, &session, file);
            let meta = store.open(&meta, Access::Read)?;
            let mut bytes = vec![0; (Head::enough() as u64).min(meta.len()?) as usize];
            let n = meta.read_at(0, &mut bytes)?;
            let head = Head::decode(&bytes[..n]).map(|(head, _)| head);
            // A log whose head is damaged is read as if it had its file alone, which most have.
            let (mut lanes, mut rank) = (1, file);
            if let Some(head) = head {
                (session.identity, rank) = (head.identity, head.rank);
                if let Some((count, meta, data)) = lanes_of(&head.text) {
                    (lanes, session.meta_block, session.data_block) = (count, meta, data);
                }
            }
            // The ranks of a node follow each other in most launchers; the heads of the other
            // lanes say their ranks, and are read with the logs.
            let part = |lane| LogPart::new(rank.saturating_add(lane), file, lane, lanes);
            session.logs.extend((0..lanes).map(part));
        }
        sessions.push(session);
    }
    Ok(sessions)
}

/// The number of lanes and the lengths of their blocks, from a head's text.
fn lanes_of(text: &str) -> Option<(u32, u64, u64)> {
    let rest = text.strip_prefix("lane ")?;
    let (_, rest) = rest.split_once(" of ")?;
    let (lanes, rest) = rest.split_once(" in blocks of ")?;
    let (meta, data) = rest.split_once(" and ")?;
    let lanes = lanes.parse().ok().filter(|lanes| (1..=1 << 16).contains(lanes))?;
    Some((lanes, meta.parse().ok()?, data.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_heads_say_what_a_session_is() {
        assert_eq!(began("7-00000000000000ff"), 7);
        assert_eq!(began("7-ff"), 0);
        assert_eq!(began("nonsense"), 0);
        assert_eq!(lanes_of("lane 2 of 4 in blocks of 256 and 8192"), Some((4, 256, 8192)));
        assert_eq!(lanes_of("lane 2 of 0 in blocks of 256 and 8192"), None);
        assert_eq!(lanes_of(""), None);
    }
}
