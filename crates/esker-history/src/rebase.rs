//! What happens to a commit when others were faster.

use esker_format::history::{Item, Key};

use crate::error::Conflict;

/// What to do where two have written the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The commit fails.
    #[default]
    Fail,
    /// What is being committed lies over what was committed meanwhile.
    Ours,
    /// What was committed meanwhile lies over what is being committed.
    Theirs,
}

/// Puts a commit behind those that were made since its base.
pub trait Rebase {
    /// Changes `ours` so that they can be committed behind `theirs`, the items of version `number`, or says
    /// why they cannot. Called once for each version, in order. `base` is the number that `ours` were made for.
    fn rebase(
        &mut self,
        ours: &mut Vec<Item>,
        theirs: &[Item],
        base: u64,
        number: u64,
    ) -> Result<(), Conflict>;
}

/// Whether two items of data that may touch the same elements do.
type Overlap = fn(&Item, &Item) -> bool;

/// Equal facts are one; facts that differ, and data that touch the same elements, are conflicts.
#[derive(Debug, Clone)]
pub struct Strict {
    /// What to do with conflicts.
    pub on_conflict: OnConflict,
    /// Whether two items of data that may touch the same elements do.
    pub overlap: Overlap,
}

impl Default for Strict {
    fn default() -> Strict {
        Strict { on_conflict: OnConflict::Fail, overlap: |_, _| true }
    }
}

impl Rebase for Strict {
    fn rebase(
        &mut self,
        ours: &mut Vec<Item>,
        theirs: &[Item],
        base: u64,
        number: u64,
    ) -> Result<(), Conflict> {
        let mut kept = Vec::with_capacity(ours.len());
        for mut item in ours.drain(..) {
            let met = theirs.iter().find(|other| self.meet(&item, other));
            match (met, self.on_conflict) {
                (None, _) | (Some(_), OnConflict::Ours) => {}
                (Some(_), OnConflict::Fail) => {
                    return Err(Conflict { what: what(&item.key), number });
                }
                (Some(_), OnConflict::Theirs) => match item.key {
                    Key::Fact { .. } => continue,
                    // Over what it was made for, and under everything since.
                    Key::Data(_) => item.over = base,
                },
            }
            kept.push(item);
        }
        *ours = kept;
        Ok(())
    }
}

impl Strict {
    fn meet(&self, ours: &Item, theirs: &Item) -> bool {
        match (&ours.key, &theirs.key) {
            (Key::Fact { .. }, Key::Fact { .. }) => {
                ours.key == theirs.key && ours.value != theirs.value
            }
            (Key::Data(a), Key::Data(b)) => a.meets(b) && (self.overlap)(ours, theirs),
            _ => false,
        }
    }
}

/// A key for people who do not know what it means.
fn what(key: &Key) -> String {
    match key {
        Key::Fact { space, name } => format!("fact {} of kind {space}", name.escape_ascii()),
        Key::Data(data) => format!(
            "elements {} to {} of record {} of object {:x}",
            data.first,
            data.end.saturating_sub(1),
            data.records.first,
            data.object
        ),
    }
}
