//! What a program says of the versions that it makes.

use crate::base::Base;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::message::refusal;

use super::broken;

/// Says something of the next version; `None` takes it back. Fails where there are no versions, and for a text that cannot be a message.
pub(crate) fn say(base: &Base, has_versions: bool, message: Option<&str>) -> Result<()> {
    base.message.set(None);
    let Some(message) = message.filter(|text| !text.is_empty()) else { return Ok(()) };
    if !has_versions {
        let why = "it is a classic file, which has no versions, and so no message for one";
        return Err(broken(&base.path, why));
    }
    if !base.writable {
        return Err(Error::ReadOnly {
            path: base.path.clone(),
            what: "say something of a version",
        });
    }
    if let Some(why) = refusal(message) {
        return Err(broken(&base.path, why));
    }
    base.message.set(Some(message));
    Ok(())
}

impl Dataset {
    /// Sets the message of the next version that a sync or close commits to a container: one line for people, of at most
    /// [`LONGEST_MESSAGE`](crate::LONGEST_MESSAGE) bytes. Rank 0's counts. It goes before the hint `esker_message`, which is that of all others; an
    /// empty one takes it back.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("run.esk");
    /// let mut ds = Dataset::create(&path, CreateOptions::new().layout(Layout::Log))?.enddef()?;
    /// ds.set_message("spin-up done")?;
    /// ds.sync()?;
    /// let newest = esker::versions(&esker_store::LocalStore, &path, Some(1))?;
    /// assert_eq!(newest[0].message, "spin-up done");
    /// # Ok(()) }
    /// ```
    pub fn set_message(&mut self, message: &str) -> Result<()> {
        say(&self.ground.base, self.layout.version().is_some(), Some(message))
    }

    /// The same by all ranks together, so that a message that cannot be one is an error on all of them. Collective. `None` has nothing to say.
    pub fn set_message_all(&mut self, message: Option<&str>) -> Result<()> {
        let said = say(&self.ground.base, self.layout.version().is_some(), message);
        self.ground.base.agree(said)
    }
}
