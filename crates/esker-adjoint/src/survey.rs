//! Looks at a folder of checkpoints without changing it.

use crate::error::Result;
use crate::folder::{About, Folder};
use crate::options::Options;
use crate::schedule::Place;
use crate::segment::{self, Title};

/// What a folder of checkpoints holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// What it says of its run.
    pub about: About,
    /// What each rank's journal says.
    pub ranks: Vec<crate::journal::Survivors>,
}

/// Looks at a folder without changing it.
pub fn survey(options: &Options) -> Result<Survey> {
    let path = options.folder.clone().unwrap_or_default();
    let (about, ranks) = Folder::survey(&*options.store, &path)?;
    Ok(Survey { about, ranks })
}

/// Reads every segment of a folder and checks it. Gives a sentence for each fault.
pub fn check(options: &Options) -> Result<Vec<String>> {
    let path = options.folder.clone().unwrap_or_default();
    let Survey { about, ranks } = survey(options)?;
    let mut faults = Vec::new();
    for (rank, found) in ranks.iter().enumerate() {
        faults.extend(found.damage.iter().map(|damage| format!("rank {rank}: {damage}")));
        for record in &found.kept {
            let file = crate::folder::segment_path(&path, rank as u32, record.number);
            let title = Title {
                identity: about.identity,
                rank: rank as u32,
                kind: record.kind,
                step: record.step,
            };
            let checked = crate::folder::read_segment(&*options.store, &file).and_then(|bytes| {
                let arrays = segment::open(&bytes, &title, Place::Disk)?;
                arrays.iter().try_for_each(|array| array.verify(record.step, Place::Disk))
            });
            if let Err(error) = checked {
                faults.push(format!("{}: {error}", file.display()));
            }
        }
    }
    Ok(faults)
}
