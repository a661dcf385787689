//! Mending a file, on a copy or in place, so that a kill at any moment loses nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker::{Error, HeaderState};
use esker_format::Header;
use esker_store::{Access, Draft, File, LocalStore, Store, remove_tree};

use super::beside::{Beside, Journal, settled};
use super::codes::why;
use super::folder;
use super::mend::{Allowed, Mend, Plan, plan};
use super::{BLOCK, CheckOptions, Finding, Report, Severity, check, decode};
use crate::Progress;
use crate::whole::require_absent;

/// Where the mended file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To a new file; the original is not touched.
    Copy(PathBuf),
    /// Where it is. Nobody else may be writing to it.
    InPlace,
}

/// How to repair.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// Where the file is.
    pub store: Arc<dyn Store>,
    /// Where the mended file goes.
    pub target: Target,
    /// Take whole records after the last one that is counted for records: their writer died
    /// before it counted them. Nobody but the caller can know that.
    pub adopt_records: bool,
    /// Cut off what lies after the data.
    pub cut_trailing: bool,
    /// Accept what the header says of chunked and decomposed variables whose seal does not match: another program has
    /// changed it. Nobody but the caller can know that. On a copy alone, of which every chunk and every map is
    /// read afterwards: what their own checksums contradict stays an error.
    pub accept_edits: bool,
}

impl RepairOptions {
    /// Mends what is sure, and nothing else, in the local file system.
    pub fn new(target: Target) -> RepairOptions {
        let store = Arc::new(LocalStore);
        let [adopt_records, cut_trailing, accept_edits] = [false; 3];
        RepairOptions { store, target, adopt_records, cut_trailing, accept_edits }
    }
}

/// Something that was not mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// What it is.
    pub finding: Finding,
    /// Why it stays.
    pub why: &'static str,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// The file that was written; none when there was nothing to mend.
    pub written: Option<PathBuf>,
    /// What was mended.
    pub mended: Vec<Mend>,
    /// What was not, and why. Notes are not listed.
    pub left: Vec<Left>,
    /// The check of the file afterwards.
    pub after: Report,
}

/// Mends what can be mended without guessing: padding in the header, stored sizes, the number
/// of records where the file's length says it, padding cut off at the end, an interrupted
/// redefinition, files left beside. No value is ever changed.
///
/// In place, a header is replaced under the journal that redefinitions use and everything
/// else is one small write, so that after a kill the file is as it was, or mended, or opening
/// it for writing (or repairing it again) finishes the work.
pub fn repair(
    path: impl AsRef<Path>,
    options: &RepairOptions,
    progress: &mut dyn Progress,
) -> esker::Result<Repair> {
    let store = &*options.store;
    if super::checkpoints::are_there(&options.store, path.as_ref())? {
        let why = "it is the folder of an adjoint run, which `esker recover` mends".to_string();
        return Err(Error::Container { path: path.as_ref().to_path_buf(), why });
    }
    if esker::is_container(store, path.as_ref())? {
        let why = "it is a container, which `esker recover` mends".to_string();
        return Err(Error::Container { path: path.as_ref().to_path_buf(), why });
    }
    let in_place = options.target == Target::InPlace;
    let access = if in_place { Access::ReadWrite } else { Access::Read };
    let classic = esker::classic_of(store, path.as_ref())?;
    let file = store.open(&classic, access)?;
    let path = store.resolve(&classic)?;
    let (plan, mut mended) = prepare(store, &path, &*file, options)?;
    mended.extend(plan.iter().flat_map(|plan| plan.mends.clone()));
    let written = match &options.target {
        _ if mended.is_empty() => None,
        Target::InPlace => {
            if let Some(plan) = &plan {
                apply(&options.store, &path, &*file, plan)?;
            }
            Some(path.clone())
        }
        Target::Copy(to) => match &plan {
            Some(plan) => {
                match folder::files_beside(store, &path, &plan.header)? {
                    None => copy(&options.store, &path, &*file, to, plan, progress)?,
                    Some(names) => folder::copy(&options.store, &path, to, &names, |to| {
                        copy(&options.store, &path, &*file, to, plan, progress)
                    })?,
                }
                Some(to.clone())
            }
            None => None,
        },
    };
    let look = CheckOptions { store: options.store.clone(), read_data: false, all_versions: false };
    let after = check(written.as_ref().unwrap_or(&path), &look, progress)?;
    let bad = after.findings.iter().filter(|f| f.severity > Severity::Note);
    let left = bad.map(|f| Left { finding: f.clone(), why: why(f.code) }).collect();
    Ok(Repair { written, mended, left, after })
}

/// Settles what lies beside the file and plans the rest. There is no plan for a file whose
/// header does not decode.
fn prepare(
    store: &dyn Store,
    path: &Path,
    file: &dyn File,
    options: &RepairOptions,
) -> Result<(Option<Plan>, Vec<Mend>), Error> {
    let in_place = options.target == Target::InPlace;
    let mut mended = Vec::new();
    let mut mend = |code, sentence: &str| {
        mended.push(Mend { code, offset: None, sentence: sentence.to_string() });
    };
    let mut beside = Beside::look(store, path, file)?;
    let mut new_header = None;
    match &beside.journal {
        Journal::Whole(journal, state @ (HeaderState::Old | HeaderState::Torn)) => {
            let torn = *state == HeaderState::Torn;
            new_header = Some(settled(journal, file)?);
            if in_place {
                esker::finish_redefinition(store, path, file, journal)?;
            }
            let code = if torn { "journal-torn" } else { "journal-old" };
            mend(code, "finished the redefinition that was interrupted: the new header is whole");
        }
        Journal::Whole(_, HeaderState::New) if in_place => {
            esker::remove_journal(store, path)?;
            mend("journal-new", "removed the journal of a redefinition that was complete");
        }
        Journal::Broken if in_place => {
            esker::remove_journal(store, path)?;
            mend("journal-broken", "removed the journal of a redefinition that had not begun");
        }
        _ => {}
    }
    // What may still grow is not touched.
    for left in beside.leftovers.iter().filter(|left| left.is_running == Some(false) && in_place) {
        remove_tree(store, &left.path)?;
        mend("leftover", "removed what was left of an interrupted creation");
    }
    beside.journal = Journal::Absent;
    let decoded = match &new_header {
        Some(bytes) => Header::decode_noting(bytes, file.len()?),
        None => decode(path, file, &beside)?,
    };
    let Ok(decoded) = decoded else { return Ok((None, mended)) };
    let bytes = match new_header {
        Some(bytes) => bytes,
        None => {
            let len = usize::try_from(decoded.header.layout.header_len).unwrap_or(0);
            let mut bytes = vec![0; len];
            let n = file.read_at(0, &mut bytes)?;
            bytes.truncate(n);
            bytes
        }
    };
    let allowed = Allowed {
        adopt: options.adopt_records,
        cut: options.cut_trailing,
        edits: options.accept_edits && !in_place,
        drop_fragment: !in_place,
    };
    Ok((Some(plan(&decoded, &bytes, file.len()?, allowed)), mended))
}

/// Applies the plan to the file where it is. The order is such that the file is never worse
/// than before: longer first, then the header, then shorter.
fn apply(store: &Arc<dyn Store>, path: &Path, file: &dyn File, plan: &Plan) -> esker::Result<()> {
    let file_len = file.len()?;
    if plan.len > file_len {
        file.set_len(plan.len)?;
    }
    let mut old = vec![0; plan.header.len()];
    let n = file.read_at(0, &mut old)?;
    old.truncate(n);
    let differs = differing(&old, &plan.header);
    match differs {
        None => {}
        // One small write is never torn: it lies in one sector.
        Some((start, end)) if start >= 4 && end <= 12 => {
            file.write_at(start as u64, &plan.header[start..end])?;
        }
        Some(_) => {
            esker::replace_header(store, path, file, old, &plan.header, esker::Survives::PowerLoss)?
        }
    }
    file.sync()?;
    if plan.len < file_len {
        file.set_len(plan.len)?;
        file.sync()?;
    }
    Ok(())
}

/// The first byte in which the two differ, and the first after the last.
fn differing(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if old.len() != new.len() {
        return Some((0, new.len()));
    }
    let differs = |(a, b): (&u8, &u8)| a != b;
    let start = old.iter().zip(new).position(differs)?;
    let end = old.iter().zip(new).rposition(differs)?;
    Some((start, end + 1))
}

/// Writes the mended file under another name, which it takes when it is complete.
fn copy(
    store: &Arc<dyn Store>,
    path: &Path,
    file: &dyn File,
    to: &Path,
    plan: &Plan,
    progress: &mut dyn Progress,
) -> esker::Result<()> {
    require_absent(&**store, to)?;
    // Who may read the file may read its copy.
    let draft = Draft::begin_like(store, to, Some(path))?;
    if let Some(new) = draft.file() {
        fill_copy(file, &**new, plan, progress)?;
    }
    draft.publish()?;
    Ok(store.sync_names(to)?)
}

fn fill_copy(
    file: &dyn File,
    new: &dyn File,
    plan: &Plan,
    progress: &mut dyn Progress,
) -> esker::Result<()> {
    let mut block = vec![0; BLOCK.min(plan.len) as usize];
    let mut done = 0;
    while done < plan.len {
        let part = &mut block[..BLOCK.min(plan.len - done) as usize];
        let n = file.read_at(done, part)?;
        if n == 0 {
            break;
        }
        new.write_at(done, &part[..n])?;
        done += n as u64;
        progress.progress(done, plan.len);
    }
    new.write_at(0, &plan.header)?;
    new.set_len(plan.len)?;
    Ok(new.sync()?)
}
