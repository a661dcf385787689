//! Who writes: the text in the header that says so.

use esker_format::chunked::{WRITER_LEN, put_writer, writer_field, writer_of};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::writer;

impl Dataset {
    /// Says in the header that these ranks write, unless they have. Collective, before the first change of a
    /// table.
    pub(crate) fn claim_writing(&mut self) -> Result<()> {
        if self.chunked.as_ref().is_none_or(|chunked| chunked.claimed) {
            return Ok(());
        }
        let token = writer::token(&self.base)?;
        self.base.by_root(|| {
            self.require_sole()?;
            match self.writer_at() {
                Some(at) => Ok(self.file.write_at(at, &token)?),
                None => Ok(()),
            }
        })?;
        put_writer(&mut self.header.schema, &token).map_err(|e| self.base.schema_error(e))?;
        if let Some(chunked) = &mut self.chunked {
            chunked.claimed = true;
        }
        Ok(())
    }

    /// Fails if another program has written to the file since it was opened here, or since this one wrote.
    /// On rank 0, before anything of the tables is changed.
    pub(crate) fn require_sole(&self) -> Result<()> {
        let (Some(at), Some(known)) = (self.writer_at(), writer_of(&self.header.schema)) else {
            return Ok(());
        };
        let mut found = [0; WRITER_LEN];
        let n = self.file.read_at(at, &mut found)?;
        if found[..n] == known {
            return Ok(());
        }
        let why = format!(
            "another program has written to it since it was opened here{}, and chunked variables have one writer \
             at a time: open it again",
            writer::who(Some(found))
        );
        Err(Error::Writers { path: self.base.path.clone(), why })
    }

    fn writer_at(&self) -> Option<u64> {
        let chunked = self.chunked.as_ref()?;
        *chunked.writer_at.get_or_init(|| writer_field(&self.header))
    }
}
