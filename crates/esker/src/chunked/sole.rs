//! Who writes: the text in the header that says so.

use esker_format::chunked::{WRITER_LEN, put_writer, writer_field, writer_of};

use super::Chunked;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::writer;

impl Chunked {
    /// Says in the header that these ranks write, unless they have. Collective, before the first change of a
    /// table.
    pub(crate) fn claim_writing(&mut self, ground: &mut Ground) -> Result<()> {
        if self.claimed {
            return Ok(());
        }
        let token = writer::token(&ground.base)?;
        ground.base.by_root(|| {
            self.require_sole(ground)?;
            match self.writer_at(ground) {
                Some(at) => Ok(ground.file.write_at(at, &token)?),
                None => Ok(()),
            }
        })?;
        put_writer(&mut ground.header.schema, &token).map_err(|e| ground.base.schema_error(e))?;
        self.claimed = true;
        Ok(())
    }

    /// Fails if another program has written to the file since it was opened here, or since this one wrote.
    /// On rank 0, before anything of the tables is changed.
    pub(crate) fn require_sole(&self, ground: &Ground) -> Result<()> {
        let (Some(at), Some(known)) = (self.writer_at(ground), writer_of(&ground.header.schema))
        else {
            return Ok(());
        };
        let mut found = [0; WRITER_LEN];
        let n = ground.file.read_at(at, &mut found)?;
        if found[..n] == known {
            return Ok(());
        }
        let why = format!(
            "another program has written to it since it was opened here{}, and chunked variables have one writer \
             at a time: open it again",
            writer::who(Some(found))
        );
        Err(Error::Writers { path: ground.base.path.clone(), why })
    }

    fn writer_at(&self, ground: &Ground) -> Option<u64> {
        *self.writer_at.get_or_init(|| writer_field(&ground.header))
    }
}
