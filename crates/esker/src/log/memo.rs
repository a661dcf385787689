//! What lists of blocks are in the log's space.

use std::ops::Range;
use std::sync::Arc;

use esker_format::log::Footprint;

use super::parts::{Part, each_part};
use crate::lists::{self, Frame, common_record};
use crate::plan::Extent;
use crate::selection::Slabs;

/// What lists were found to be in the log's space.
pub(crate) type Memo = lists::Memo<Parts>;

/// A list in the log's space: entries of one record.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) elements: u64,
    pub(crate) items: Vec<Item>,
}

/// One entry of a list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) first: u64,
    pub(crate) footprint: Arc<Footprint>,
    pub(crate) elements: Range<u64>,
}

impl Memo {
    /// Remembers what the list is: its checked extent. Gives it back if it cannot be kept,
    /// because its blocks are in several records.
    pub(crate) fn insert(
        &mut self,
        slabs: &Arc<Slabs>,
        frame: &Frame,
        extent: &mut Extent,
        (record_step, elements): (u64, u64),
        budget: u64,
    ) -> Option<(Arc<Parts>, u64)> {
        common_record(slabs, frame)?;
        let mut items = Vec::new();
        let mut memory = 0;
        let keep = |part: Part<'_>| -> Result<(), std::convert::Infallible> {
            let Part { first, shape, elements, .. } = part;
            let footprint = Arc::new(shape.footprint());
            memory += footprint.memory() + size_of::<Item>();
            items.push(Item { first, footprint, elements });
            Ok(())
        };
        let Ok(()) = each_part(extent, record_step, keep);
        let parts = Arc::new(Parts { elements, items });
        let record = self.keep(slabs, frame, &parts, (memory, budget))?;
        Some((parts, record))
    }
}
