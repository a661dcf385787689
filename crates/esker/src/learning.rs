//! What a rank knows of a dataset whose definitions were merged by shares, and how it learns the rest.

use esker_comm::Message;
use esker_format::{Alignment, DataLayout, Header};

use crate::base::read_header;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::numbering::Numbering;
use crate::options::FillMode;

impl Dataset {
    /// Whether this rank knows everything that is in the file. With the hint `esker_definitions=shares`, ranks that have defined
    /// different things know what they have defined themselves, with what others say of it, until [`Dataset::learn_all`]. The same
    /// on every rank.
    pub fn knows_all(&self) -> bool {
        self.ground.rest.is_none()
    }

    /// How many dimensions, global attributes and variables the dataset has, known here or not.
    pub fn counts(&self) -> [u64; 3] {
        let schema = self.schema();
        let known = [schema.dims.len(), schema.attrs.len(), schema.vars.len()];
        let known = known.map(|count| count as u64);
        self.ground.rest.as_ref().map_or(known, |rest| rest.counts)
    }

    /// Lets every rank know everything that is in the file, from its header. Numbers that a rank has keep their meaning, and what
    /// others have defined comes behind; requests that were queued before have to be made anew. Collective.
    pub fn learn_all(&mut self) -> Result<()> {
        if self.knows_all() {
            return Ok(());
        }
        let ground = &self.ground;
        let (base, file) = (&ground.base, &*ground.file);
        let (read, told) = base.told_by_root(|| {
            let (header, bytes) = read_header(&base.path, file)?;
            Ok((header, [&file.len()?.to_le_bytes(), &bytes[..]].concat()))
        })?;
        let header = match read {
            Some(header) => Ok(header),
            None => told.split_first_chunk().ok_or(Error::Garbled).and_then(|(len, bytes)| {
                let header = Header::decode(bytes, u64::from_le_bytes(*len));
                header.map_err(|source| Error::Decode { path: base.path.clone(), source })
            }),
        };
        let mut header = base.agree(header)?;
        header.numrecs = ground.header.numrecs;
        // A variable's own fill mode is known to those who have it.
        let own = ground.header.schema.vars.iter().zip(&ground.fills);
        let chosen = own.filter_map(|(var, fill)| {
            let number = header.schema.vars.position(&var.name)? as u64;
            Some([number, u64::from((*fill)? == FillMode::Fill)])
        });
        let chosen: Vec<u64> = chosen.flatten().collect();
        let mut fills = vec![None; header.schema.vars.len()];
        for theirs in base.comm.all_gather(Message::from_u64s(&chosen))? {
            for pair in theirs.to_u64s().chunks_exact(2) {
                let mode = if pair[1] == 1 { FillMode::Fill } else { FillMode::NoFill };
                if let Some(fill) = fills.get_mut(pair[0] as usize) {
                    *fill = Some(mode);
                }
            }
        }
        self.numbering = Numbering::of(&self.ground.header.schema, &header.schema);
        self.ground.learn(header, fills);
        Ok(())
    }

    /// Where the values begin: the header's extent, with the room that was left behind it.
    pub fn data_begin(&self) -> u64 {
        match &self.ground.rest {
            None => self.ground.header.data_begin(),
            Some(rest) => rest.data_begin,
        }
    }

    /// Where PnetCDF's rules keep the record section of this dataset: [`DataLayout::kept_for_records`].
    pub fn kept_for_records(&self, align: &Alignment) -> u64 {
        let header = &self.ground.header;
        match &self.ground.rest {
            None => DataLayout::kept_for_records(header, align),
            Some(rest) => header.layout.kept_behind(rest.fixed_end, rest.fixed > 0, align),
        }
    }
}
