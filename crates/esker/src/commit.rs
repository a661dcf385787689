//! How a header reaches the file so that a dying process leaves the old one or the new one.
//!
//! - A new dataset grows beside its name and is renamed to it.
//! - A changed header that fits, with no data in its way, is written in place under a journal.
//! - When data must move, a new file is built beside the old one and renamed over it: the old
//!   one is whole until the new one is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::chunked::Anchor;
use esker_format::{Alignment, DataLayout, Header, HeaderState, values};
use esker_store::{Access, Draft, File, Locked};

use crate::base::{Base, read_header};
use crate::chunked::{self, Heap, HeapFile, Placing, remove_others, tables_file, write_tables};
use crate::container::Container;
use crate::counting::same_but_for_growth;
use crate::decomposed::{Groups, NewMap, Replaced, Spread, discard_new, write_maps};
use crate::define::Before;
use crate::error::{Error, Result};
use crate::fill::fill_range;
use crate::graphs::Content;
use crate::hints::ChunkFiles;
use crate::journal;
use crate::merging::Merged;
use crate::moving::{self, Turn};
use crate::rest::Rest;
use crate::share::Share;
use crate::volume::Volume;
use crate::writer;
use crate::young::{self, Survives};

/// A header that is in the file.
pub(crate) struct Committed {
    pub(crate) file: Arc<dyn File>,
    /// Whether a loss of power may undo the file's name: it got it just now, or in an earlier session,
    /// which need not have synced it.
    pub(crate) renamed: bool,
    /// What the file is a view of, if it is one.
    pub(crate) container: Option<Box<Container>>,
    /// The heap of its chunked variables, if it has any.
    pub(crate) heap: Option<Heap>,
    /// The file, if variables are in sub-files.
    pub(crate) volume: Option<Arc<dyn Volume>>,
    /// Keeps other writers away, on rank 0, if the file that was made has one at a time.
    pub(crate) lock: Option<Locked>,
    /// What the header has beyond this rank's objects, if these are all that it knows.
    pub(crate) rest: Option<Rest>,
}

/// What is to be committed.
#[derive(Clone, Copy)]
pub(crate) struct New<'n> {
    pub(crate) header: &'n Header,
    /// Which variables are filled.
    pub(crate) fills: &'n [bool],
    pub(crate) maps: &'n [NewMap],
    /// The graphs of variables.
    pub(crate) contents: &'n [Content],
    /// The chunked variables, if there are any.
    pub(crate) placing: Option<&'n Placing>,
    /// The ranks that share sub-files, if there are any.
    pub(crate) groups: Option<&'n Groups>,
    /// This rank's part of the header, if each has one.
    pub(crate) part: Option<&'n Merged>,
}

impl New<'_> {
    /// The length that a file has at least with so many records.
    fn end(&self, base: &Base, header: &Header, records: u64) -> u64 {
        let inside = self.placing.filter(|p| p.stem.is_none());
        let heap = inside.map_or(0, |p| p.heap.begin + p.heap.end.unwrap_or(0));
        base.end_of(header, self.part.map(|part| &part.rest), records).max(heap)
    }

    /// Writes what this rank has of the header, if it is in parts, and of maps, and on rank 0 the graphs.
    fn write_contents(&self, base: &Base, file: &dyn File) -> Result<()> {
        for (at, bytes) in self.part.into_iter().flat_map(|part| &part.parts) {
            file.write_at(*at, bytes)?;
        }
        write_maps(file, self.header, self.maps)?;
        match base.is_root() {
            true => self.write_graphs(file),
            false => Ok(()),
        }
    }

    fn write_graphs(&self, file: &dyn File) -> Result<()> {
        for content in self.contents {
            let var = self.header.schema.var(&content.name);
            if let Some(place) = var.and_then(|var| self.header.place(var)) {
                file.write_at(place.begin, &content.bytes)?;
            }
        }
        Ok(())
    }

    /// Whether two programs that write the dataset would destroy what the other has written.
    fn needs_one_writer(&self) -> bool {
        self.placing.is_some() || self.groups.is_some()
    }

    /// Keeps other writers away from a file that is made for this, if it must have one.
    fn lock(&self, base: &Base, file: &Arc<dyn File>) -> Result<Option<Locked>> {
        match self.needs_one_writer() {
            true => writer::lock(base, file),
            false => Ok(None),
        }
    }

    /// Writes the tables that are new, and what the heap ends with. Who may read the file `like` may read
    /// those that are beside it.
    fn write_tables(&self, base: &Base, file: &dyn File, like: &Path) -> Result<()> {
        let Some(placing) = self.placing else { return Ok(()) };
        let beside = placing.stem.as_ref().map(|stem| tables_file(base, stem, like)).transpose()?;
        if let Some(end) = placing.end() {
            chunked::write_end(file, end)?;
        }
        let heap = HeapFile::new(beside.as_deref().unwrap_or(file), placing.heap.begin);
        write_tables(heap, &placing.tables)?;
        match &beside {
            // Before the header that speaks of them.
            Some(tables) => {
                tables.sync()?;
                Ok(base.store.sync_names(&base.path)?)
            }
            None => Ok(()),
        }
    }
}

/// Bytes that the header of a dataset with sub-files may grow by: it is never placed again.
const AMENDS: u64 = 8 << 10;

/// Commits a new dataset, in place of one that has its name, in the file that rank 0 has begun (in another, if an
/// attempt with that has failed). Collective.
pub(crate) fn create(base: &Base, new: &New<'_>, begun: Option<Draft>) -> Result<Committed> {
    let New { header, groups, .. } = *new;
    let disk = match groups {
        None => None,
        Some(groups) => {
            let placed = groups.on_disk(&header.schema).and_then(|schema| {
                let header_room = base.align.header_room.max(AMENDS);
                let layout = DataLayout::place(&schema, &Alignment { header_room, ..base.align })?;
                Ok(Header { schema, numrecs: header.numrecs, layout })
            });
            Some((groups, placed.map_err(|e| base.schema_error(e))?))
        }
    };
    let created = create_named(base, new, disk, begun);
    if created.is_err() && base.is_root() {
        discard_new(base, groups);
    }
    created
}

/// Builds the new dataset and gives it its name.
fn create_named(
    base: &Base,
    new: &New<'_>,
    disk: Option<(&Groups, Header)>,
    begun: Option<Draft>,
) -> Result<Committed> {
    let New { header, groups, .. } = *new;
    let rest = new.part.map(|part| part.rest.clone());
    let encoded = match new.part {
        // The others are in the file by then.
        Some(part) => part.head.clone(),
        None => disk.as_ref().map_or(header, |(_, disk)| disk).encode(),
    };
    let (created, growing) = base.told_by_root(|| {
        let stored = disk.as_ref().map_or(header, |(_, disk)| disk);
        let replaced = Replaced::look(base)?;
        let draft = match begun {
            Some(draft) => draft,
            None => Draft::begin_striped(&base.store, &base.path, base.hints.stripes())?,
        };
        let file = grown(base, &draft)?;
        let lock = new.lock(base, &file)?;
        file.set_len(new.end(base, stored, 0))?;
        new.write_tables(base, &*file, draft.path())?;
        let growing = draft.path().as_os_str().as_bytes().to_vec();
        Ok(((draft, (file, lock), replaced), growing))
    })?;
    let (mut draft, created, replaced) = match created {
        Some((draft, file, replaced)) => (Some(draft), Some(file), Some(replaced)),
        None => (None, None, None),
    };
    let (created, lock) = created.unzip();
    let lock = lock.flatten();
    let name = PathBuf::from(OsString::from_vec(growing));
    let file = opened(base, &name, created);
    let mut live = Vec::new();
    let (file, spread): (Result<Arc<dyn File>>, _) = match disk {
        None => (file, None),
        Some((groups, disk)) => {
            // Before the file that names them.
            let spread = Spread::new(base, base.agree(file)?, (header, disk), groups.clone());
            live = base.agree(spread.make(base, &name))?;
            let spread = Arc::new(spread);
            (Ok(spread.clone()), Some(spread))
        }
    };
    let filled = file.and_then(|file| {
        fill_new_fixed(&*file, new, 0, base)?;
        new.write_contents(base, &*file)?;
        if let Some(spread) = &spread
            && young::would_be_missed(&*base.store, &base.path)
        {
            // As the file that names them, below.
            spread.sync_subs()?;
        }
        Ok(file)
    });
    let file = base.agree(filled)?;
    base.told_by_root(|| {
        let draft = draft.take().ok_or(Error::Garbled)?;
        let replaces = young::would_be_missed(&*base.store, &base.path);
        let old = replaced.as_ref().is_some_and(Replaced::had_subfiles);
        let sync_names = || match replaces && (spread.is_some() || old) {
            true => base.store.sync_names(&base.path),
            false => Ok(()),
        };
        journal::clear_journal(&*base.store, &base.path)?;
        // Last, so that an empty file that is filled where it is is none before everything is in it.
        let main = spread.as_ref().map_or(&file, |spread| spread.main());
        main.write_at(0, &encoded)?;
        if replaces {
            // The name may reach the disk before the contents, and the old dataset would be lost.
            main.sync()?;
            sync_names()?;
        }
        match replaces {
            true => draft.take_name()?,
            false => draft.take_name_unsynced()?,
        }
        base.young.begin(replaces);
        if lock.is_none() {
            // An empty file that was filled was locked for that.
            let _ = main.unlock();
        }
        if base.hints.chunk_files != ChunkFiles::Inside {
            remove_others(base, new.placing.and_then(|p| p.stem.as_deref()).unwrap_or(""));
        }
        // Or the old dataset could come back without its sub-files.
        Ok((sync_names()?, Vec::new()))
    })?;
    // They belong to a dataset now.
    drop(live);
    if let Some(spread) = &spread {
        // They are found without their names, and get them at the next sync or close if not now.
        let _ = spread.name(base);
    }
    if let Some(replaced) = replaced {
        replaced.remove_subfiles(base, groups);
    }
    let volume = spread.map(|spread| spread as Arc<dyn Volume>);
    Ok(Committed { file, renamed: true, container: None, heap: None, volume, lock, rest })
}

/// The file of a draft.
fn grown(base: &Base, draft: &Draft) -> Result<Arc<dyn File>> {
    match draft.file() {
        Some(file) => Ok(file.clone()),
        None => Ok(base.store.open(draft.path(), Access::ReadWrite)?),
    }
}

/// The file that rank 0 has made, on every rank. An open file keeps being the same one when it
/// is renamed.
fn opened(base: &Base, name: &Path, mine: Option<Arc<dyn File>>) -> Result<Arc<dyn File>> {
    match mine {
        Some(file) => Ok(file),
        None => Ok(base.store.open(name, Access::ReadWrite)?),
    }
}

/// Commits a redefinition. Collective.
pub(crate) fn update(base: &Base, before: &Before, new: &New<'_>) -> Result<Committed> {
    let heap_stays = new.placing.is_none_or(|placing| placing.moved.is_none());
    let moves = !(heap_stays && stays(before, new.header));
    let (mine, told) = base.told_by_root(|| {
        // Until the new header is there; longer, if the dataset has one writer at a time.
        let held = match before.lock {
            Some(_) => None,
            None => writer::lock(base, &before.file)?,
        };
        undo_failed_attempt(base, before)?;
        require_same(base, before)?;
        let survives = base.survives();
        let begun = match moves {
            true => Some(begin_rebuild(base, before, new)?),
            false => make_room(base, before, new).map(|()| None)?,
        };
        let path = begun.as_ref().map(|(draft, ..)| draft.path().as_os_str().as_bytes());
        let tell = [&[survives as u8], path.unwrap_or_default()].concat();
        Ok(((held, begun), tell))
    })?;
    let (survives, path) = told.split_first().ok_or(Error::Garbled)?;
    let survives = match *survives == Survives::Death as u8 {
        true => Survives::Death,
        false => Survives::PowerLoss,
    };
    let (held, begun) = mine.unzip();
    let (container, heap, volume) = (None, None, None);
    if moves {
        let growing = PathBuf::from(OsStr::from_bytes(path));
        let (file, lock) = rebuild(base, before, new, (begun.flatten(), &growing), survives)?;
        Ok(Committed { file, renamed: true, container, heap, volume, lock, rest: None })
    } else {
        in_place(base, before, new, survives)?;
        let (file, renamed) = (before.file.clone(), false);
        let lock = held.flatten().filter(|_| new.needs_one_writer());
        Ok(Committed { file, renamed, container, heap, volume, lock, rest: None })
    }
}

/// Takes back what a failed `enddef` could not take back itself.
fn undo_failed_attempt(base: &Base, before: &Before) -> Result<()> {
    let Some((journal, state)) = base.journal(&*before.file)? else { return Ok(()) };
    let is_new = journal.state(&before.bytes) == HeaderState::New;
    let (store, path) = (&*base.store, &base.path);
    match state {
        HeaderState::New if is_new => journal::remove_journal(store, path),
        HeaderState::Foreign => Err(base.stale_journal()),
        _ => journal::restore_header(store, path, &*before.file, &journal),
    }
}

/// Fails if the file of the dataset's name has another header than the one that is to be changed: another program
/// has redefined it, and its definitions would be lost.
fn require_same(base: &Base, before: &Before) -> Result<()> {
    writer::require_named(base, &*before.file)?;
    let (now, _) = read_header(&base.path, &*before.file)?;
    let known = Header::decode(&before.bytes, before.file.len()?);
    let known = known.map_err(|source| Error::Decode { path: base.path.clone(), source })?;
    if same_but_for_growth(&now, &known) {
        return Ok(());
    }
    let why = "another program has changed its definitions since it was opened here, and they would be lost: \
               open it again"
        .to_string();
    Err(Error::Writers { path: base.path.clone(), why })
}

/// Whether all data that exist stay where they are.
fn stays(before: &Before, header: &Header) -> bool {
    let (old, new) = (&before.header, header);
    let records_stay = before.records == 0 || old.layout.record_size == new.layout.record_size;
    records_stay
        && old.vars().zip(&new.layout.places).all(|((_, var, old_place), new_place)| {
            let empty = before.records == 0 && old.schema.is_record(var);
            empty || old_place.begin == new_place.begin
        })
}

/// Makes the file as long as the new header needs it. Where the new variables are there was nothing, for a reader
/// of the old one. On rank 0.
fn make_room(base: &Base, before: &Before, new: &New<'_>) -> Result<()> {
    let file = &*before.file;
    let end = new.end(base, new.header, before.records);
    if file.len()? < end {
        file.set_len(end)?;
    }
    new.write_tables(base, file, &base.path)
}

fn in_place(base: &Base, before: &Before, new: &New<'_>, survives: Survives) -> Result<()> {
    let header = new.header;
    let file = &*before.file;
    let first = before.header.layout.places.len();
    let filled =
        fill_new_fixed(file, new, first, base).and_then(|()| new.write_contents(base, file));
    base.agree(filled.and_then(|()| settle(file, survives)))?;
    base.told_by_root(|| Ok((write_header(base, before, header, survives)?, Vec::new())))?;
    Ok(())
}

/// Replaces the header in place, under a journal.
fn write_header(base: &Base, before: &Before, header: &Header, survives: Survives) -> Result<()> {
    let file = &*before.file;
    let mut old = vec![0; before.header.layout.header_len as usize];
    let n = file.read_at(0, &mut old)?;
    old.truncate(n);
    let new = header.encode();
    if old == new {
        return Ok(());
    }
    journal::replace_header(&base.store, &base.path, file, old, &new, survives)
}

/// Waits for the disk, if a loss of power must be survived.
fn settle(file: &dyn File, survives: Survives) -> Result<()> {
    match survives {
        Survives::Death => Ok(()),
        Survives::PowerLoss => Ok(file.sync()?),
    }
}

/// A file that takes the place of the one before: its draft, itself, and its lock.
type Rebuilt = (Draft, Arc<dyn File>, Option<Locked>);

/// Begins the file that the data move to. On rank 0.
fn begin_rebuild(base: &Base, before: &Before, new: &New<'_>) -> Result<Rebuilt> {
    let header = new.header;
    let draft = Draft::whole(&base.store, &base.path)?;
    let file = grown(base, &draft)?;
    let lock = new.lock(base, &file)?;
    file.write_at(0, &header.encode())?;
    file.set_len(new.end(base, header, before.records))?;
    new.write_tables(base, &*file, draft.path())?;
    Ok((draft, file, lock))
}

/// Moves the data into the file that rank 0 has begun, which everybody finds at `growing`, and gives it its name.
fn rebuild(
    base: &Base,
    before: &Before,
    new: &New<'_>,
    (begun, growing): (Option<Rebuilt>, &Path),
    survives: Survives,
) -> Result<(Arc<dyn File>, Option<Locked>)> {
    let (draft, mine, lock) = match begun {
        Some((draft, file, lock)) => (Some(draft), Some(file), lock),
        None => (None, None, None),
    };
    // The old file is untouched by a failure, and the draft goes with it.
    let file = base.agree(moved(base, before, new, (growing, mine), survives))?;
    base.told_by_root(|| {
        if !new.contents.is_empty() {
            // Where a rank may just have copied what was there before.
            new.write_graphs(&*file)?;
            settle(&*file, survives)?;
        }
        let take_name = match survives {
            Survives::Death => Draft::take_name_unsynced,
            Survives::PowerLoss => Draft::take_name,
        };
        Ok((draft.map_or(Ok(()), take_name)?, Vec::new()))
    })?;
    // From here on there is only the new file, so nothing may fail any more.
    Ok((file, lock))
}

/// The file with this rank's share of what is in it.
fn moved(
    base: &Base,
    before: &Before,
    new: &New<'_>,
    (growing, mine): (&Path, Option<Arc<dyn File>>),
    survives: Survives,
) -> Result<Arc<dyn File>> {
    let New { header, fills, maps, placing, .. } = *new;
    let file = opened(base, growing, mine)?;
    let turn = Turn { share: base.share(), at_once: base.hints.move_chunk };
    moving::copy_data(before, header, fills, &*file, turn)?;
    if let Some(placing) = placing.filter(|placing| placing.stem.is_none()) {
        // Everything in the heap is counted from its beginning.
        let (from, len) = placing.moved.unwrap_or(before.heap);
        let (old, part) = (&*before.file, turn.share.of(len));
        moving::copy_part(old, from, &*file, placing.heap.begin, part, turn.at_once)?;
    }
    let first = before.header.layout.places.len();
    fill_new_fixed(&*file, new, first, base)?;
    write_maps(&*file, header, maps)?;
    settle(&*file, survives)?;
    Ok(file)
}

/// Writes this rank's share of the fill values of the fixed-size variables from number `first`
/// on.
fn fill_new_fixed(file: &dyn File, new: &New<'_>, first: usize, base: &Base) -> Result<()> {
    let New { header, fills, .. } = *new;
    let share = match new.part {
        None => base.share(),
        // What this rank fills, no other knows.
        Some(_) => Share { rank: 0, ranks: 1 },
    };
    for (id, var, place) in header.vars().skip(first) {
        // The scalar of a chunked variable is a missing value to other programs, never zero.
        let wanted = fills.get(id.0).copied().unwrap_or(false) || Anchor::of(var).is_some();
        if wanted && !header.schema.is_record(var) {
            // PnetCDF leaves zeros in the padding, netCDF fills it.
            let mine = share.of(if base.align.never_back { place.bytes } else { place.vsize });
            let len = mine.end - mine.start;
            fill_range(file, place.begin + mine.start, len, &values::fill_bytes(var))?;
        }
    }
    Ok(())
}
