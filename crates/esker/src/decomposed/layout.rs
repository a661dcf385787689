//! Decomposed variables as a layout: selections go through a map, and what they become moves as the requests of
//! ordinary variables do.

use esker_format::VarId;

use super::maps::{Map, Mapped};
use crate::canonical::Canonical;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::layout::{Asked, Layout, Room};
use crate::selection::Checked;

impl Mapped {
    fn map(&self, var: VarId) -> Result<&Map> {
        self.of_var(var).ok_or(Error::Garbled)
    }
}

/// What makes the layout of decomposed variables.
#[derive(Debug)]
pub(crate) struct MapRoom;

impl Room for MapRoom {
    fn open(&self, ground: &mut Ground) -> Option<Box<dyn Layout>> {
        match ground.base.raw || ground.base.blobs {
            true => None,
            false => Some(Box::new(Mapped::of(&ground.header))),
        }
    }
}

impl Layout for Mapped {
    fn has(&self, var: VarId) -> bool {
        self.of_var(var).is_some()
    }

    fn moves(&self, _: VarId) -> bool {
        false
    }

    fn check(&self, ground: &Ground, asked: Asked<'_>) -> Result<Checked> {
        self.map(asked.var)?.check(ground, asked)
    }

    fn shape(&self, ground: &Ground, var: VarId, _: bool) -> Result<Vec<u64>> {
        self.map(var)?.shape(ground, var)
    }

    fn require_present(
        &self,
        ground: &Ground,
        var: VarId,
        checked: &Checked,
        in_logs: bool,
    ) -> Result<()> {
        self.map(var)?.require_dense(ground, var, checked)?;
        Canonical.require_present(ground, var, checked, in_logs)
    }

    fn amended(&mut self, ground: &mut Ground) {
        *self = Mapped::of(&ground.header);
    }
}
