//! Looks at a folder of checkpoints without a model: what it is, what of it is damaged, what a resumed run would have.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_store::{Store, leftovers};
use esker_text::{shown, shown_path};

use crate::about::About;
use crate::error::{AdjointError, Result};
use crate::folder::{Folder, read_segment};
use crate::journal::{Record, Survivors};
use crate::names::{MARK, Name, segment_path};
use crate::schedule::Place;
use crate::segment::{self, Kind, Title};

/// Whether a folder is one of checkpoints, whole or not.
pub fn is_checkpoints(store: &Arc<dyn Store>, path: &Path) -> Result<bool> {
    if !store.is_dir(path)? {
        return Ok(false);
    }
    if store.exists(&path.join(MARK))? && Folder::about(store, path).is_ok() {
        return Ok(true);
    }
    // With its mark gone it is known by its journals, which nothing else has.
    let names = store.enclosed(path)?.names_in(path)?;
    Ok(names.iter().any(|name| matches!(Name::parse(name), Some(Name::Journal { .. }))))
}

/// What a folder of checkpoints holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// What it says of its run.
    pub about: About,
    /// What the journals of the ranks say that have one.
    pub ranks: BTreeMap<u32, Survivors>,
    /// Bytes of all segments that the journals name.
    pub bytes: u64,
}

/// Where a run stands, as far as its folder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The model has not reached its end.
    Forward,
    /// The adjoint has come to this state.
    Reverse(u64),
    /// The adjoint has reached state 0 on all ranks.
    Done,
}

impl Survey {
    /// Where the run stands. The adjoint is where all ranks have one of it.
    pub fn stage(&self) -> Stage {
        let complete = self.ranks.len() as u64 == u64::from(self.about.ranks);
        if complete && self.ranks.values().all(|rank| rank.end_reverse) {
            return Stage::Done;
        }
        if !complete || !self.ranks.values().all(|rank| rank.end_forward) {
            return Stage::Forward;
        }
        let adjoints = |rank: &Survivors| steps(rank, Kind::Adjoint);
        Stage::Reverse(self.in_common(adjoints).first().copied().unwrap_or(self.about.steps))
    }

    /// The steps of restart data that all ranks have on disk, ascending.
    pub fn checkpoints(&self) -> Vec<u64> {
        self.in_common(|rank| steps(rank, Kind::Restart))
    }

    fn in_common(&self, of: impl Fn(&Survivors) -> Vec<u64>) -> Vec<u64> {
        if (self.ranks.len() as u64) < u64::from(self.about.ranks) {
            return Vec::new();
        }
        let mut ranks = self.ranks.values().map(of);
        let mut common = ranks.next().unwrap_or_default();
        ranks.for_each(|other| common.retain(|step| other.contains(step)));
        common
    }
}

fn steps(rank: &Survivors, kind: Kind) -> Vec<u64> {
    let kept = rank.kept.iter().filter(|record| record.kind == kind);
    let mut steps: Vec<u64> = kept.map(|record| record.step).collect();
    steps.sort_unstable();
    steps
}

/// Looks at a folder without changing it.
pub fn survey(store: &Arc<dyn Store>, path: &Path) -> Result<Survey> {
    let (about, ranks) = Folder::survey(store, path)?;
    let kept = ranks.values().flat_map(|rank| &rank.kept);
    let bytes = kept.fold(0u64, |sum, record| sum.saturating_add(record.bytes));
    Ok(Survey { about, ranks, bytes })
}

/// How bad it is what was found in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gravity {
    /// It is of no use, and harms nothing.
    Leftover,
    /// A checkpoint is lost; what it had is computed again.
    Lost,
    /// The run cannot be resumed.
    Fatal,
}

/// Something in a folder that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// How bad it is.
    pub gravity: Gravity,
    /// The file.
    pub file: PathBuf,
    /// The step of its checkpoint.
    pub step: Option<u64>,
    /// What is wrong.
    pub sentence: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", shown_path(&self.file), self.sentence)
    }
}

/// Reads every segment of a folder and compares it with its checksums.
///
/// `progress` is told how many bytes of how many have been read.
pub fn check(
    store: &Arc<dyn Store>,
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Fault>> {
    let inside = store.enclosed(path)?;
    let Survey { about, ranks, bytes } = match survey(store, path) {
        Ok(found) => found,
        Err(AdjointError::Folder { path: file, why }) => {
            let file = if file == path { path.join(MARK) } else { file };
            let sentence = format!("{why}; the run cannot be resumed");
            return Ok(vec![Fault { gravity: Gravity::Fatal, file, step: None, sentence }]);
        }
        Err(error) => return Err(error),
    };
    let mut faults = Vec::new();
    let mut done = 0;
    for (&rank, found) in &ranks {
        let file = crate::names::journal_path(path, rank);
        faults.extend(found.damage.iter().map(|damage| Fault {
            gravity: Gravity::Lost,
            file: file.clone(),
            step: None,
            sentence: damage.clone(),
        }));
        for record in &found.kept {
            if let Err(error) = verify(&*inside, path, &about, rank, record) {
                let file = segment_path(path, rank, record.number);
                let (step, sentence) = (Some(record.step), error.to_string());
                faults.push(Fault { gravity: Gravity::Lost, file, step, sentence });
            }
            done += record.bytes;
            progress(done, bytes);
        }
    }
    faults.extend(leftover(&*inside, path, &ranks)?);
    Ok(faults)
}

/// Whether a segment is what its journal says.
pub(crate) fn verify(
    inside: &dyn Store,
    path: &Path,
    about: &About,
    rank: u32,
    record: &Record,
) -> Result<()> {
    let (kind, step, place) = (record.kind, record.step, Place::Disk);
    let title = Title { identity: about.identity, rank, kind, step };
    let file = segment_path(path, rank, record.number);
    let bytes = read_segment(inside, &file, record.bytes, Vec::new()).map_err(|error| {
        AdjointError::Damaged { step, place, array: None, why: error.to_string() }
    })?;
    segment::open(&bytes, &title, place)?.iter().try_for_each(|array| array.verify(step, place))
}

/// Files that no journal knows.
fn leftover(
    inside: &dyn Store,
    path: &Path,
    ranks: &BTreeMap<u32, Survivors>,
) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let mut found = |name: &str, sentence: String| {
        let (gravity, file) = (Gravity::Leftover, path.join(name));
        faults.push(Fault { gravity, file, step: None, sentence });
    };
    let drafts = leftovers(inside, &path.join(MARK))?;
    for name in inside.names_in(path)? {
        match Name::parse(&name) {
            Some(Name::Mark) => {}
            Some(Name::Journal { rank }) if ranks.contains_key(&rank) => {}
            Some(Name::Segment { number, rank }) => {
                let known = ranks
                    .get(&rank)
                    .is_some_and(|found| found.kept.iter().any(|record| record.number == number));
                if !known {
                    let why = "no journal names it: it was being written when the run ended";
                    found(&name, why.to_string());
                }
            }
            _ => match drafts.iter().find(|draft| draft.path == path.join(&name)) {
                Some(draft) => found(&name, draft.to_string()),
                None => found(&name, format!("'{}' is no part of a run", shown(&name))),
            },
        }
    }
    Ok(faults)
}

/// What [`recover`] found and did.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// What is damaged or left over.
    pub faults: Vec<Fault>,
    /// What the folder holds now; nothing if it cannot be told.
    pub survey: Option<Survey>,
}

/// Gives up what is damaged and removes what no journal knows, so that [`resume`](crate::resume) finds a folder that is whole.
///
/// Refused while a program runs with the folder. With `dry_run` nothing is changed.
pub fn recover(
    store: &Arc<dyn Store>,
    path: &Path,
    dry_run: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Recovery> {
    let faults = check(store, path, progress)?;
    if faults.iter().any(|fault| fault.gravity == Gravity::Fatal) {
        return Ok(Recovery { faults, survey: None });
    }
    let mut survey = survey(store, path)?;
    let inside = store.enclosed(path)?;
    for (&rank, found) in &mut survey.ranks {
        let is_whole = |r: &Record| verify(&*inside, path, &survey.about, rank, r).is_ok();
        let (whole, damaged): (Vec<Record>, Vec<Record>) =
            found.kept.iter().copied().partition(is_whole);
        if !dry_run {
            let (mut folder, known) = Folder::open(store, path, &survey.about, rank)?;
            damaged.iter().try_for_each(|record| folder.drop_segment(record.number))?;
            folder.sweep(&known.kept)?;
            folder.sync()?;
        }
        found.kept = whole;
    }
    survey.bytes = survey.ranks.values().flat_map(|rank| &rank.kept).map(|r| r.bytes).sum();
    Ok(Recovery { faults, survey: Some(survey) })
}
