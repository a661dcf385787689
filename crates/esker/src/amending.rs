//! Names and attributes that change in data mode.

use std::sync::Mutex;

use esker_format::{DataLayout, Header, Schema, SchemaError};

use crate::dataset::Dataset;
use crate::decomposed::{Maps, Spread, follow_renames};
use crate::error::{Error, Result};
use crate::journal::replace_header;

impl Dataset {
    /// Changes names and attributes without leaving data mode, which is possible as long as
    /// the header has room for them. Collective: the same change on every rank.
    pub fn amend(
        &mut self,
        change: impl FnOnce(&mut Schema) -> std::result::Result<(), SchemaError>,
    ) -> Result<()> {
        self.require_writable("change attributes")?;
        let path = self.base.path.clone();
        if self.numbering.is_some() {
            let why = "attributes of a dataset whose ranks defined different things are changed in define mode";
            return Err(Error::NotAlike { path, why });
        }
        // Reads that begin from now on see the change.
        self.reading = Mutex::default();
        let mut header = self.header.clone();
        change(&mut header.schema).map_err(|e| self.base.schema_error(e))?;
        follow_renames(&self.header.schema, &mut header.schema);
        self.require_same_chunks(&header.schema)?;
        if let Some(container) = &mut self.container {
            let placed = DataLayout::place(&header.schema, &self.base.align);
            header.layout = placed.map_err(|e| self.base.schema_error(e))?;
            container.define(&self.base, &header, &mut self.report)?;
            self.header = header;
            return Ok(());
        }
        if let Some(spread) = self.spread.clone() {
            return self.amend_spread(&spread, header);
        }
        header.layout.header_len = header.encode().len() as u64;
        let room = header.layout.places.iter().map(|p| p.begin).min();
        if header.layout.places.len() != header.schema.vars.len()
            || room.is_some_and(|first| header.layout.header_len > first)
        {
            let why = "the header has no room for this change: make it in define mode";
            return Err(Error::NotAlike { path, why });
        }
        // A flush in the background writes to the header too.
        self.land()?;
        header.numrecs = self.header.numrecs;
        let bytes = header.encode();
        let survives = self.base.young.survives();
        self.base.by_root(|| {
            let mut old = vec![0; self.header.layout.header_len as usize];
            let n = self.file.read_at(0, &mut old)?;
            old.truncate(n);
            if old == bytes {
                return Ok(());
            }
            replace_header(&self.base.store, &self.base.path, &*self.file, old, &bytes, survives)
        })?;
        self.header = header;
        if let Some(burst) = &self.burst {
            burst.amend(&self.header);
        }
        if !self.base.raw && self.container.is_none() {
            if !self.base.blobs {
                self.maps = Maps::of(&self.header);
            }
            self.describe_chunks_again();
        }
        Ok(())
    }

    /// The same where the header that is stored is another.
    fn amend_spread(&mut self, spread: &Spread, header: Header) -> Result<()> {
        let schema = spread.on_disk(&header.schema).map_err(|e| self.base.schema_error(e))?;
        let old = spread.disk().clone();
        let mut disk = Header { schema, numrecs: self.header.numrecs, layout: old.layout.clone() };
        disk.layout.header_len = disk.encode().len() as u64;
        let room = disk.layout.places.iter().map(|p| p.begin).min();
        let is_same = disk.layout.places.len() == disk.schema.vars.len();
        if !is_same || room.is_some_and(|first| disk.layout.header_len > first) {
            let why = "the header has no room for this change";
            return Err(Error::NotAlike { path: self.base.path.clone(), why });
        }
        let (main, bytes) = (spread.main(), disk.encode());
        let survives = self.base.young.survives();
        self.base.by_root(|| {
            let mut old = vec![0; old.layout.header_len as usize];
            let n = main.read_at(0, &mut old)?;
            old.truncate(n);
            if old == bytes {
                return Ok(());
            }
            replace_header(&self.base.store, &self.base.path, &**main, old, &bytes, survives)
        })?;
        *spread.disk() = disk;
        self.header = header;
        if !self.base.raw {
            self.maps = Maps::of(&self.header);
        }
        Ok(())
    }
}
