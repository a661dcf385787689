//! Names and attributes that change in data mode.

use std::sync::Arc;

use esker_comm::CommunicatorExt;
use esker_format::{DataLayout, Header, Schema, SchemaError};
use esker_store::File;

use crate::burst::Buffered;
use crate::container::Container;
use crate::dataset::Dataset;
use crate::decomposed::follow_renames;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::journal::replace_header;
use crate::volume::Volume;

impl Dataset {
    /// Changes names and attributes without leaving data mode, which is possible as long as
    /// the header has room for them. Collective: the same change on every rank.
    pub fn amend(
        &mut self,
        change: impl FnOnce(&mut Schema) -> std::result::Result<(), SchemaError>,
    ) -> Result<()> {
        self.require_writable("change attributes")?;
        self.learn_all()?;
        let Dataset { ground, layout, numbering, .. } = self;
        let path = ground.base.path.clone();
        // The rank whose order is the file's has no numbers of its own, and would go on alone.
        let comm = &ground.base.comm;
        let differ = match comm.size() {
            1 => false,
            _ => comm.any(numbering.is_some())?,
        };
        if differ {
            let why = "attributes of a dataset whose ranks defined different things are changed in define mode";
            return Err(Error::NotAlike { path, why });
        }
        let mut header = ground.header.clone();
        change(&mut header.schema).map_err(|e| ground.base.schema_error(e))?;
        follow_renames(&ground.header.schema, &mut header.schema);
        layout.may_become(ground, &header.schema)?;
        // Reads that begin from now on see the change.
        ground.generation += 1;
        if let Some(container) = layout.get_mut::<Container>() {
            let placed = DataLayout::place(&header.schema, &ground.base.align);
            header.layout = placed.map_err(|e| ground.base.schema_error(e))?;
            return container.amend(ground, header);
        }
        if let Some(buffered) = layout.get_mut::<Buffered>() {
            // A flush in the background writes to the header too.
            buffered.land(ground)?;
            header.numrecs = ground.header.numrecs;
        }
        match ground.volume.clone() {
            Some(volume) => amend_volume(ground, &*volume, header)?,
            None => amend_file(ground, header)?,
        }
        ground.header_changed();
        layout.amended(ground);
        Ok(())
    }
}

/// Replaces the header of a file in its place. Collective.
fn amend_file(ground: &mut Ground, mut header: Header) -> Result<()> {
    header.layout.header_len = header.encode().len() as u64;
    let room = header.layout.places.iter().map(|p| p.begin).min();
    if header.layout.places.len() != header.schema.vars.len()
        || room.is_some_and(|first| header.layout.header_len > first)
    {
        let why = "the header has no room for this change: make it in define mode";
        return Err(Error::NotAlike { path: ground.base.path.clone(), why });
    }
    header.numrecs = ground.header.numrecs;
    replace(ground, &ground.file, ground.header.layout.header_len, &header.encode())?;
    ground.header = header;
    Ok(())
}

/// The same where the header that is stored is another.
fn amend_volume(ground: &mut Ground, volume: &dyn Volume, header: Header) -> Result<()> {
    let schema = volume.on_disk(&header.schema).map_err(|e| ground.base.schema_error(e))?;
    let old = volume.disk().clone();
    let mut disk = Header { schema, numrecs: ground.header.numrecs, layout: old.layout.clone() };
    disk.layout.header_len = disk.encode().len() as u64;
    let room = disk.layout.places.iter().map(|p| p.begin).min();
    let is_same = disk.layout.places.len() == disk.schema.vars.len();
    if !is_same || room.is_some_and(|first| disk.layout.header_len > first) {
        let why = "the header has no room for this change";
        return Err(Error::NotAlike { path: ground.base.path.clone(), why });
    }
    replace(ground, volume.main(), old.layout.header_len, &disk.encode())?;
    *volume.disk() = disk;
    ground.header = header;
    Ok(())
}

/// Replaces a header of so many bytes, under a journal. Collective.
fn replace(ground: &Ground, file: &Arc<dyn File>, len: u64, new: &[u8]) -> Result<()> {
    let base = &ground.base;
    base.by_root(|| {
        let mut old = vec![0; len as usize];
        let n = file.read_at(0, &mut old)?;
        old.truncate(n);
        if old == new {
            return Ok(());
        }
        replace_header(&base.store, &base.path, &**file, old, new, base.survives())
    })?;
    Ok(())
}
