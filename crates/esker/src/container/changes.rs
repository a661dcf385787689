//! What two versions of a container may differ in, by their sections: what both have is the same in both, and need not be read.

use std::collections::HashMap;
use std::ops::Range;

use esker_format::log::Section;
use esker_format::{VarId, Variable};

use super::Container;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::log::FILTERS;

/// Elements that two versions of one container may differ in; in all others they are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Variables and records that sections touch which one of the versions has.
    boxes: Vec<(Range<u64>, Range<u64>)>,
    /// Variables of which values that nobody has written may differ.
    redefined: Vec<u64>,
}

impl Changes {
    /// Whether a record of a variable may differ. A variable without records has one, 0.
    pub fn touch(&self, var: VarId, record: u64) -> bool {
        let number = var.0 as u64;
        let meets = |(vars, records): &(Range<u64>, Range<u64>)| {
            vars.contains(&number) && records.contains(&record)
        };
        self.redefined.contains(&number) || self.boxes.iter().any(meets)
    }
}

impl Dataset {
    /// What this version of a container and another one of it may differ in; `None` if they are not two versions of one container that
    /// are read, or if nothing but their logs knows. No value is read.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("run.esk");
    /// let mut def = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?;
    /// let t = def.add_dim("t", DimLen::Unlimited)?;
    /// let v = def.add_var("v", ExternalType::Int, &[t])?;
    /// let mut ds = def.enddef()?;
    /// for record in 0..3 {
    ///     ds.put(v, &Selection::element(&[record]), &[7])?;
    ///     ds.sync()?;
    /// }
    /// ds.close()?;
    /// let version = |n| Dataset::open_with(&path, OpenOptions::new().container_version(n));
    /// let changes = version(4)?.changes_since(&version(3)?)?.unwrap();
    /// assert_eq!([0, 1, 2].map(|record| changes.touch(v, record)), [false, false, true]);
    /// # Ok(()) }
    /// ```
    pub fn changes_since(&self, other: &Dataset) -> Result<Option<Changes>> {
        let (Some(one), Some(two)) = (self.sections()?, other.sections()?) else { return Ok(None) };
        if self.path() != other.path() {
            return Ok(None);
        }
        let mut counts: HashMap<String, i64> = HashMap::new();
        let mut boxes: Vec<(Range<u64>, Range<u64>)> = Vec::new();
        for (all, way) in [(&one, 1), (&two, -1)] {
            for section in all {
                *counts.entry(name_of(section)).or_default() += way;
            }
        }
        for section in one.into_iter().chain(two) {
            if counts.get(&name_of(&section)).is_some_and(|count| *count != 0) {
                boxes.push((section.vars, section.records));
            }
        }
        boxes.sort_unstable_by_key(|(vars, records)| (vars.start, vars.end, records.start));
        boxes.dedup_by(|next, kept| {
            let beside = next.0 == kept.0 && next.1.start <= kept.1.end;
            if beside {
                kept.1.end = kept.1.end.max(next.1.end);
            }
            beside
        });
        let redefined = self.schema().vars.iter().zip(&other.schema().vars).enumerate();
        let redefined = redefined.filter(|(_, (a, b))| !same_values(a, b));
        Ok(Some(Changes { boxes, redefined: redefined.map(|(var, _)| var as u64).collect() }))
    }

    /// The sections of a version that is read.
    fn sections(&self) -> Result<Option<Vec<Section>>> {
        let container = self.layout.get::<Container>().filter(|container| container.own.is_none());
        match container.and_then(|container| container.edition.as_ref()) {
            Some(edition) => edition.all_sections(),
            None => Ok(None),
        }
    }
}

/// What tells a section from all others of its container.
fn name_of(section: &Section) -> String {
    let Section { identity, log, begin, cuts, .. } = section;
    format!("{identity:x} {log} {begin} {cuts:?}")
}

/// Whether the same sections mean the same values.
fn same_values(a: &Variable, b: &Variable) -> bool {
    let attr = |variable: &Variable, name: &str| variable.attrs.get(name).map(|a| a.values.clone());
    let same = |name| attr(a, name) == attr(b, name);
    (a.ty, &a.dims) == (b.ty, &b.dims) && same("_FillValue") && same(FILTERS)
}
