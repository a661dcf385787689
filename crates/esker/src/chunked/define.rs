//! Chunked variables come into being: what programs define becomes what a file has.

use esker_codec::Pipeline;
use esker_comm::CommunicatorExt;
use esker_format::chunked::{
    ALIGN, Anchor, BEGUN, Block, DIMS, END, FILES, FILL, FILTERS, FileHead, HEAP, IDENTITY, NOTE,
    RECORDS, REFS, SHAPE, Seal, TableHead, WRITER, WRITER_LEN, add_end, automatic_shape, begun_of,
    end_begin, end_of, identity_of, lengths, put_begun, put_heap, put_identity, put_writer,
    to_file, writer_of,
};
use esker_format::{
    Alignment, DataLayout, DimLen, Header, Owner, Schema, SchemaError, VarId, Variable,
};

use super::files::{new_stem, put_stem, stem_of};
use super::heap::{Heap, room_for};
use super::{Chunked, Chunking, too_large};
use crate::base::{Base, identity};
use crate::define::Define;
use crate::error::{Error, Result};

/// Bytes left free before a heap, so that variables can be added without moving it.
const SLACK: u64 = 4096;

/// What a definition with chunked variables is in the file.
#[derive(Debug)]
pub(crate) struct Placing {
    pub(crate) schema: Schema,
    pub(crate) layout: DataLayout,
    pub(crate) heap: Heap,
    /// Tables to be written.
    pub(crate) tables: Vec<NewTable>,
    /// Where the heap was in the file, and its length, if it moves.
    pub(crate) moved: Option<(u64, u64)>,
    /// What the files beside the classic one are called, if there are any.
    pub(crate) stem: Option<String>,
}

/// The table of a new variable.
#[derive(Debug)]
pub(crate) struct NewTable {
    pub(crate) seal: Seal,
    /// Where its head is in the heap.
    pub(crate) at: u64,
    pub(crate) head: TableHead,
    /// Its first block, which the head says the place of.
    pub(crate) block: Block,
}

/// What a dataset that gets its first chunked variables is known by.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// What the files beside the classic one are called, if there are to be any.
    pub(crate) stem: Option<String>,
    pub(crate) identity: u64,
    /// Who writes it.
    pub(crate) writer: Option<[u8; WRITER_LEN]>,
}

/// What is new for a definition, the same on every rank. Collective.
pub(crate) fn fresh(base: &Base, schema: &Schema) -> Result<Fresh> {
    if !schema.vars.iter().any(is_wanted) {
        return Ok(Fresh::default());
    }
    let (stem, writer) = (new_stem(base)?, Some(crate::writer::token(base)?));
    let own = if base.is_root() { identity() >> 1 } else { 0 };
    Ok(Fresh { stem, identity: base.comm.max_u64(own)?, writer })
}

impl Placing {
    /// Where the variable is that ends the heap, if there is one.
    pub(crate) fn end(&self) -> Option<u64> {
        let var = end_of(&self.schema)?;
        self.layout.places.get(var.0).map(|place| place.begin)
    }
}

/// A chunked variable of a definition.
struct Wanted {
    number: usize,
    anchor: Anchor,
    chunking: Chunking,
    is_new: bool,
}

/// What the file gets for a merged definition; `None` when it has no chunked variables. `before` is
/// the header that the file has without its end variable, its chunked variables (whose heap is known) and its records.
pub(crate) fn physical(
    base: &Base,
    schema: &Schema,
    before: Option<(&Header, Option<&Chunked>, u64)>,
    fresh: Fresh,
) -> Result<Option<Placing>> {
    let wanted = wanted(base, schema, before)?;
    if wanted.is_empty() {
        return Ok(None);
    }
    require_end_free(base, schema, before.map_or(0, |(header, _, _)| header.schema.vars.len()))?;
    let anchors = |refs: &[u64]| -> Vec<(usize, Anchor)> {
        let pairs = wanted.iter().zip(refs);
        pairs.map(|(w, refs)| (w.number, Anchor { refs: *refs, ..w.anchor.clone() })).collect()
    };
    let failed = |e| base.schema_error(e);
    let mut refs: Vec<u64> = wanted.iter().map(|w| w.anchor.refs).collect();
    let mut file = to_file(schema, &anchors(&refs));
    let has_records = wanted.iter().any(|w| w.chunking.grid.has_records);
    let (identity, stem) = describe(&mut file, before, fresh, has_records).map_err(failed)?;
    let old = before.and_then(|(_, chunked, _)| chunked).map(|c| &c.heap);
    // Nothing may follow a last variable that is larger than the version's sizes.
    let mut ended = file.clone();
    let has_end = stem.is_none()
        && add_end(&mut ended).is_ok()
        && (DataLayout::check_sizes(&ended).is_ok() || DataLayout::check_sizes(&file).is_err());
    if has_end {
        file = ended;
    }
    // A file of tables has a head.
    let empty = if stem.is_some() { FileHead::LEN } else { 0 };
    let used = old.and_then(|heap| heap.end).unwrap_or(empty);
    let (tables, mut end) = new_tables(&wanted, identity, used, &mut refs);
    let has_records = stem.is_none() && file.vars.iter().any(|v| file.is_record(v));
    let new_room = || wanted.iter().filter(|w| w.is_new).map(room_of).fold(0, u64::saturating_add);
    let end_room = if has_end { ALIGN } else { 0 };
    let needed = match base.hints.chunk_room {
        Some(room) => room.max(end).saturating_add(end_room),
        None => end.saturating_add(new_room()).saturating_add(end_room),
    };
    let align = Alignment {
        record_room: base.align.record_room.max(match has_records {
            true => needed.saturating_add(SLACK + ALIGN),
            false => 0,
        }),
        ..base.align
    };
    let place = |layout: DataLayout| {
        let header =
            Header { schema: file.clone(), numrecs: esker_format::NumRecs::Count(0), layout };
        (header.fixed_end(), header.layout)
    };
    let begin_after = |fixed_end: u64| (fixed_end + SLACK).next_multiple_of(ALIGN);
    let room_before_records = |layout: &DataLayout, begin: u64| {
        layout.record_begin.map_or(Some(u64::MAX), |records| records.checked_sub(begin))
    };
    let extended = match before {
        None => DataLayout::place(&file, &align),
        Some((header, _, records)) => DataLayout::extend(&file, header, records, &align),
    };
    let (fixed_end, layout) = place(extended.map_err(failed)?);
    let stays = match old {
        _ if stem.is_some() => Some(0),
        Some(heap) => {
            let needed = match base.hints.chunk_room {
                Some(_) => needed,
                None => end.saturating_add(end_room),
            };
            let fits = room_before_records(&layout, heap.begin).is_some_and(|room| room >= needed);
            (fits && fixed_end <= heap.begin).then_some(heap.begin)
        }
        None => {
            let begin = begin_after(fixed_end);
            room_before_records(&layout, begin).is_some_and(|room| room >= needed).then_some(begin)
        }
    };
    let (begin, mut layout) = match stays {
        Some(begin) => (begin, layout),
        None => {
            let (fixed_end, layout) = place(DataLayout::place(&file, &align).map_err(failed)?);
            (begin_after(fixed_end), layout)
        }
    };
    put_heap(&mut file, begin).map_err(failed)?;
    let mut schema = to_file(schema, &anchors(&refs));
    if has_end {
        add_end(&mut schema).map_err(failed)?;
    }
    schema.attrs = file.attrs;
    let moved = old.filter(|heap| heap.begin != begin).map(|heap| (heap.begin, used));
    let limit = place_end(&schema, &mut layout, (begin, &mut end), stem.is_none());
    let heap = Heap::new(begin, Some(end), limit);
    Ok(Some(Placing { schema, layout, heap, tables, moved, stem }))
}

/// Fails if a variable, but for the first `in_file`, has the name of the one that ends the chunks.
fn require_end_free(base: &Base, schema: &Schema, in_file: usize) -> Result<()> {
    if !schema.vars.iter().skip(in_file).any(|variable| &*variable.name == END) {
        return Ok(());
    }
    let why = "the chunks of a file end with a variable of this name: choose another".to_string();
    Err(Error::Chunked { path: base.path.clone(), var: END.to_string(), why })
}

/// Gives the variable that ends the chunks its place, behind a heap from `begin` to `end` or before the records. Gives how
/// long the heap may become, where records are in its way.
fn place_end(
    schema: &Schema,
    layout: &mut DataLayout,
    (begin, end): (u64, &mut u64),
    is_inside: bool,
) -> Option<u64> {
    let inside = layout.record_begin.filter(|_| is_inside);
    let last = end_of(schema).and_then(|var| layout.places.get_mut(var.0));
    match (last, inside) {
        (None, _) => inside.map(|records| records.saturating_sub(begin)),
        // Before records the end stays where it is, and the heap grows towards it.
        (Some(place), Some(records)) => {
            place.begin = end_begin(records);
            Some(place.begin.saturating_sub(begin))
        }
        (Some(place), None) => {
            let moved = end_begin(begin.saturating_add(*end).saturating_add(ALIGN));
            if moved <= schema.version.max_offset() {
                place.begin = moved;
                *end = end.saturating_add(ALIGN);
            }
            None
        }
    }
}

/// Puts what a file with chunks says of them as a whole into its attributes; gives who it is, and the stem of the names
/// of its sub-files, if it has any. What there is stays what it is.
fn describe(
    file: &mut Schema,
    before: Option<(&Header, Option<&Chunked>, u64)>,
    fresh: Fresh,
    has_records: bool,
) -> std::result::Result<(u64, Option<String>), SchemaError> {
    put_heap(file, 0)?;
    if has_records {
        // Where no chunked variable had records yet, those that there are were begun by others.
        let begun = before.map(|(header, _, records)| begun_of(&header.schema).unwrap_or(records));
        put_begun(file, begun.unwrap_or(0))?;
    }
    let in_header = before.map(|(header, _, _)| &header.schema);
    let identity = in_header.and_then(identity_of).unwrap_or(fresh.identity);
    put_identity(file, identity)?;
    let writer = in_header.and_then(writer_of).or(fresh.writer).unwrap_or([b' '; WRITER_LEN]);
    put_writer(file, &writer)?;
    let stem = match before {
        Some((header, Some(_), _)) => stem_of(&header.schema),
        _ => fresh.stem,
    };
    if let Some(stem) = &stem {
        put_stem(file, stem)?;
    }
    Ok((identity, stem))
}

/// Tables of new variables from byte `end` of the heap on, and where they end: all of their heads, so that they are
/// read at once, then blocks. `refs` learns where the heads are.
fn new_tables(
    wanted: &[Wanted],
    identity: u64,
    mut end: u64,
    refs: &mut [u64],
) -> (Vec<NewTable>, u64) {
    let mut tables = Vec::new();
    for (w, refs) in wanted.iter().zip(refs).filter(|(w, _)| w.is_new) {
        let made_for = w.chunking.made_for(&w.anchor.dims);
        let grid = &w.chunking.grid;
        let count = match grid.has_records {
            true => Block::entries(0, grid.per_group),
            false => grid.per_group,
        };
        *refs = end;
        end = end.saturating_add(room_for(TableHead::bytes(&made_for)));
        tables.push(NewTable {
            seal: Seal::new(identity, VarId(w.number)),
            at: *refs,
            head: TableHead { first: 0, made_for },
            block: Block { first: 0, count: count.max(1), next: 0 },
        });
    }
    for table in &mut tables {
        table.head.first = end;
        end = end.saturating_add(room_for(Block::bytes(table.block.count)));
    }
    (tables, end)
}

/// Room for a new variable before traditional records: half of it, or of one group. When that is
/// not enough, more is made.
fn room_of(wanted: &Wanted) -> u64 {
    let grid = &wanted.chunking.grid;
    grid.bytes.saturating_mul(grid.per_group) / 2
}

/// The chunked variables of a definition.
fn wanted(
    base: &Base,
    schema: &Schema,
    before: Option<(&Header, Option<&Chunked>, u64)>,
) -> Result<Vec<Wanted>> {
    let mut wanted = Vec::new();
    for (number, variable) in schema.vars.iter().enumerate() {
        let refuse = |why: String| {
            let (path, var) = (base.path.clone(), variable.name.to_string());
            Err(Error::Chunked { path, var, why })
        };
        let in_file = before.is_some_and(|(header, _, _)| number < header.schema.vars.len());
        if in_file {
            // Variables of the file are what they were.
            let Some((_, Some(chunked), _)) = before else { continue };
            if let Some(Ok(var)) = chunked.var(VarId(number)) {
                let (anchor, chunking) = (var.anchor.clone(), var.chunking.clone());
                wanted.push(Wanted { number, anchor, chunking, is_new: false });
            }
            continue;
        }
        if !is_wanted(variable) {
            continue;
        }
        let chunking = match asked_for(schema, variable) {
            Ok(chunking) => chunking,
            Err(why) => return refuse(why),
        };
        let (shape, filters) = (chunking.chunk.clone(), chunking.pipeline.to_words());
        let dims = variable.dims.clone();
        let anchor = Anchor { dims, shape, filters, refs: 0, records: 0 };
        wanted.push(Wanted { number, anchor, chunking, is_new: true });
    }
    Ok(wanted)
}

/// Whether a new variable is to be chunked.
pub(crate) fn is_wanted(variable: &Variable) -> bool {
    let has = |name| variable.attrs.get(name).is_some();
    !variable.dims.is_empty() && (has(SHAPE) || has(FILTERS))
}

/// The lengths of its dimensions; `None` for the unlimited one.
fn lengths_of(schema: &Schema, variable: &Variable) -> Vec<Option<u64>> {
    let length = |d: &esker_format::DimId| match schema.dims.at(d.0).map(|dim| dim.len) {
        Some(DimLen::Fixed(len)) => Some(len),
        _ => None,
    };
    variable.dims.iter().map(length).collect()
}

/// Why something was refused, without the names that the caller tells itself.
fn reason(error: &Error) -> String {
    match error {
        Error::Chunked { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

/// What the attributes of a new variable ask for.
pub(crate) fn asked_for(
    schema: &Schema,
    variable: &Variable,
) -> std::result::Result<Chunking, String> {
    let pipeline = match variable.attrs.get(FILTERS).map(|a| &a.values) {
        None => Pipeline::default(),
        Some(values) => {
            let text =
                values.text().ok_or_else(|| format!("its attribute {FILTERS} is not text"))?;
            text.parse().map_err(|e| format!("{e}"))?
        }
    };
    let lengths = lengths_of(schema, variable);
    let mut shape = match variable.attrs.get(SHAPE).map(|a| &a.values) {
        None => automatic_shape(variable.ty, &lengths),
        Some(values) => {
            let list = values.convert_to::<u64>();
            list.map_err(|_| format!("its attribute {SHAPE} is not a list of lengths"))?
        }
    };
    // A chunk is no longer than its variable.
    for (len, whole) in shape.iter_mut().zip(&lengths) {
        *len = whole.map_or(*len, |whole| (*len).min(whole.max(1)));
    }
    Chunking::new(schema, variable, &shape, pipeline)
}

impl Define {
    /// Cuts a new variable into chunks of this shape (a length for each dimension), which are stored
    /// one by one, perhaps through filters ([`Define::set_filters`]). In the unlimited dimension a
    /// length of 1 is usual: then every record has chunks of its own. In a container, what ranks put together is appended chunk by chunk.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let mut def = Dataset::create(dir.path().join("x.nc"), CreateOptions::new())?;
    /// let (lat, lon) = (def.add_dim("lat", DimLen::Fixed(180))?, def.add_dim("lon", DimLen::Fixed(360))?);
    /// let t = def.add_var("t", ExternalType::Float, &[lat, lon])?;
    /// def.set_chunks(t, &[90, 90])?;
    /// def.set_filters(t, "shuffle zstd,3")?;
    /// let mut ds = def.enddef()?;
    /// ds.put(t, &Selection::all(), &vec![1.5f32; 180 * 360])?;
    /// assert_eq!(ds.get::<f32>(t, &Selection::slab(&[17, 4], &[1, 2]))?, [1.5, 1.5]);
    /// # Ok(()) }
    /// ```
    pub fn set_chunks(&mut self, var: VarId, chunk: &[u64]) -> Result<()> {
        let variable = self.new_variable(var, "is cut into chunks when it is defined")?;
        let name = variable.name.to_string();
        let refuse = |why: String| {
            Err(Error::Chunked { path: self.base.path.clone(), var: name.clone(), why })
        };
        match Chunking::new(&self.schema, variable, chunk, Pipeline::default()) {
            Err(why) => return refuse(why),
            Ok(chunking) => {
                if let Some(why) = too_large(&chunking, self.base.hints.chunk_max) {
                    return refuse(why);
                }
            }
        }
        match lengths(chunk) {
            Some(values) => self.put_attr(var, SHAPE, values),
            None => refuse("a length of its chunks is too large".to_string()),
        }
    }

    /// The filters of a variable of a classic file, which is cut into chunks if nobody has said how.
    pub(crate) fn set_chunk_filters(&mut self, var: VarId, filters: &str) -> Result<()> {
        let variable = self.new_variable(var, "gets its filters when it is defined")?;
        let (name, path) = (variable.name.to_string(), self.base.path.clone());
        let mut trial = variable.clone();
        let refuse = |why: String| Err(Error::Chunked { path, var: name, why });
        if trial.dims.is_empty() {
            return refuse("a scalar has no filters".to_string());
        }
        let pipeline: Pipeline = match filters.parse() {
            Ok(pipeline) => pipeline,
            Err(error) => return refuse(format!("{error}")),
        };
        let text = pipeline.to_string();
        let values = esker_format::Values::from(text.as_str());
        if let Some(position) = trial.attrs.position(FILTERS) {
            trial.attrs.remove(position);
        }
        let _ = trial
            .attrs
            .push(esker_format::Attribute { name: FILTERS.into(), values: values.clone() });
        if let Err(why) = asked_for(&self.schema, &trial) {
            return refuse(why);
        }
        self.put_attr(var, FILTERS, values)
    }

    /// Stores a new variable as an ordinary one, whatever hints have said of it.
    pub fn set_contiguous(&mut self, var: VarId) -> Result<()> {
        self.new_variable(var, "is cut into chunks, or not, when it is defined")?;
        for name in [SHAPE, FILTERS] {
            if self.schema.attr(Owner::Var(var), name).is_some() {
                self.drop_attr(var, name)?;
            }
        }
        Ok(())
    }

    /// Cuts a new variable into chunks of a shape that is chosen for it.
    pub fn set_chunks_automatically(&mut self, var: VarId) -> Result<()> {
        let variable = self.new_variable(var, "is cut into chunks when it is defined")?;
        let shape = automatic_shape(variable.ty, &lengths_of(&self.schema, variable));
        self.set_chunks(var, &shape)
    }

    /// The lengths of a variable's chunks; `None` for an ordinary variable.
    pub fn chunk_shape(&self, var: VarId) -> Result<Option<Vec<u64>>> {
        let variable = self.schema.variable(var);
        let Some(variable) = variable.filter(|_| !self.base.raw) else { return Ok(None) };
        let before = self.before.as_ref().filter(|_| !self.is_container());
        let before = before.and_then(|before| {
            let number = before.header.schema.var(&variable.name)?;
            Some(before.chunked().and_then(|chunked| chunked.var(number)))
        });
        match before {
            // It is in the file, and is what it was.
            Some(None) => Ok(None),
            Some(Some(Ok(found))) => Ok(Some(found.chunking.chunk.clone())),
            None if !is_wanted(variable) => Ok(None),
            None => asked_for(&self.schema, variable).map(|chunking| Some(chunking.chunk)).map_err(
                |why| Error::Chunked {
                    path: self.base.path.clone(),
                    var: variable.name.to_string(),
                    why,
                },
            ),
            Some(Some(Err(why))) => {
                let (path, var) = (self.base.path.clone(), variable.name.to_string());
                Err(Error::Chunked { path, var, why: why.clone() })
            }
        }
    }

    /// What `esker_chunk` and `esker_filter` say of a new variable. What they cannot do is told, and is
    /// no error: they are for programs that know nothing of chunks.
    pub(crate) fn follow_chunk_hints(&mut self, var: VarId) {
        let Some(variable) = self.schema.variable(var).filter(|_| !self.base.raw) else { return };
        let name = variable.name.to_string();
        let wish = self.base.hints.wish_for(&name);
        if let Some(wish) = wish.shape {
            let done = match wish.lengths(&self.schema, variable) {
                Ok(None) => Ok(()),
                Ok(Some(given)) => {
                    let lengths = lengths_of(&self.schema, variable);
                    let mut shape = automatic_shape(variable.ty, &lengths);
                    for ((len, given), whole) in shape.iter_mut().zip(given).zip(lengths) {
                        *len = given.unwrap_or(*len).min(whole.unwrap_or(u64::MAX).max(1));
                    }
                    self.set_chunks(var, &shape).map_err(|e| reason(&e))
                }
                Err(why) => Err(why),
            };
            if let Err(why) = done {
                self.base.hints.refuse("esker_chunk", &name, why);
            }
        }
        if let Some(filters) = wish.filters
            && let Err(error) = self.set_filters(var, &filters)
        {
            self.base.hints.refuse("esker_filter", &name, reason(&error));
        }
    }

    /// A variable that is not in the file yet.
    fn new_variable(&self, var: VarId, rule: &str) -> Result<&Variable> {
        let defined = self.schema.vars.len();
        let none = esker_format::SchemaError::NoSuchVar { id: var.0, defined };
        let variable = self.schema.variable(var).ok_or_else(|| self.base.schema_error(none))?;
        if self.header().is_some_and(|h| h.schema.vars.get(&variable.name).is_some()) {
            let (path, var) = (self.base.path.clone(), variable.name.to_string());
            return Err(Error::Chunked { path, var, why: format!("a variable {rule}") });
        }
        Ok(variable)
    }

    /// Fails for an attribute that says where the chunks of the file's variables are.
    pub(crate) fn require_free_attr(&self, owner: Owner, name: &str) -> Result<()> {
        if self.base.raw || self.is_container() {
            return Ok(());
        }
        let path = || self.base.path.clone();
        let own = |names: &[&str]| names.contains(&name);
        let refuse = |var: String| {
            let why = format!("the attribute {name} says how its values are stored");
            Err(Error::Chunked { path: path(), var, why })
        };
        match owner {
            Owner::Global if own(&[HEAP, FILES, BEGUN, IDENTITY, WRITER]) && self.has_chunks() => {
                refuse(String::new())
            }
            Owner::Var(var)
                if own(&[DIMS, SHAPE, FILTERS, REFS, RECORDS, FILL, NOTE, "_FillValue"]) =>
            {
                let Some(variable) = self.schema.variable(var) else { return Ok(()) };
                match self.is_chunked_in_file(&variable.name) {
                    true => refuse(variable.name.to_string()),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
