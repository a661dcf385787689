//! Findings about what lies beside the file: the journal of a redefinition that was
//! interrupted, and a new file that never took its name.

use std::path::Path;

use esker::HeaderState;
use esker_format::HeaderJournal;
use esker_store::{File, Leftover, Store, leftovers};

use super::finding::{Finding, Severity};

/// What lies beside the file.
#[derive(Debug)]
pub(super) struct Beside {
    /// The journal: none, not whole, or whole with the state of the file's header.
    pub(super) journal: Journal,
    /// Files and folders that never took the name.
    pub(super) leftovers: Vec<Leftover>,
}

/// A journal beside the file.
#[derive(Debug)]
pub(super) enum Journal {
    Absent,
    /// Its own writing was interrupted, so the header was not touched.
    Broken,
    Whole(HeaderJournal, HeaderState),
}

impl Beside {
    pub(super) fn look(store: &dyn Store, path: &Path, file: &dyn File) -> esker::Result<Beside> {
        let journal = match esker::read_journal(store, path, file)? {
            Some((journal, state)) => Journal::Whole(journal, state),
            None if store.exists(&esker::journal_path(path))? => Journal::Broken,
            None => Journal::Absent,
        };
        let mut left = leftovers(store, path)?;
        // A journal grows as a draft too.
        left.extend(leftovers(store, &esker::journal_path(path))?);
        Ok(Beside { journal, leftovers: left })
    }

    pub(super) fn check(&self, path: &Path, findings: &mut Vec<Finding>) {
        let name = esker::journal_path(path);
        let object = format!("the journal {}", name.display());
        let (severity, code, sentence) = match &self.journal {
            Journal::Absent => return self.leftover(findings),
            Journal::Broken => (
                Severity::Warning,
                "journal-broken",
                "a redefinition was interrupted while its journal was written: the file has the \
                 old header, untouched",
            ),
            Journal::Whole(_, HeaderState::Old) => (
                Severity::Warning,
                "journal-old",
                "a redefinition was interrupted before the header was written: the file has the \
                 old header, and opening it for writing finishes the redefinition",
            ),
            Journal::Whole(_, HeaderState::New) => (
                Severity::Warning,
                "journal-new",
                "a redefinition was interrupted after the header was written: the file has the \
                 new header, and the journal can go",
            ),
            Journal::Whole(_, HeaderState::Torn) => (
                Severity::Error,
                "journal-torn",
                "a redefinition was interrupted while the header was written: the file has a \
                 mixture of the old and the new header, and opening it for writing finishes the \
                 redefinition; what follows is about the new header",
            ),
            Journal::Whole(_, HeaderState::Foreign) => (
                Severity::Warning,
                "journal-foreign",
                "the file has neither the header from before the redefinition nor the one from \
                 after it: another program changed it, and the journal means nothing to it",
            ),
        };
        findings.push(Finding::new(severity, code, object, sentence));
        self.leftover(findings);
    }

    fn leftover(&self, findings: &mut Vec<Finding>) {
        for left in &self.leftovers {
            let object = format!("the file {}", left.path.display());
            let sentence = format!(
                "{left}; it is a creation or redefinition that has not ended, and no part of the dataset"
            );
            findings.push(Finding::new(Severity::Warning, "leftover", object, sentence));
        }
    }
}

/// The header that the file has once the redefinition is finished: the new one, with the
/// number of records that the file says.
pub(super) fn settled(journal: &HeaderJournal, file: &dyn File) -> esker::Result<Vec<u8>> {
    let mut header = journal.new.clone();
    let field = journal.numrecs_field();
    let mut records = vec![0; field.len()];
    let n = file.read_at(field.start as u64, &mut records)?;
    if let Some(target) = header.get_mut(field).filter(|target| target.len() == n) {
        target.copy_from_slice(&records);
    }
    Ok(header)
}
