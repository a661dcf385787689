//! A hierarchy in a dataset.

use std::path::Path;
use std::sync::Arc;

use esker::graph::Of;
use esker::{
    CreateOptions, Dataset, Define, DimLen, ExternalType, OpenOptions, Selection, VarId, Version,
};
use esker_comm::{Communicator, CommunicatorExt};

use super::cells::Cells;
use super::hierarchy::{Hierarchy, Level};
use super::index::BoxIndex;
use super::plotfile::Plotfile;
use crate::error::{ModelError, Result, agree};

/// The graph of a hierarchy.
pub(super) const GRAPH: &str = "amr";
/// The edge from a level to the next coarser one.
const REFINES: &str = "refines";
/// The attribute that says what this is.
const FORMAT: &str = "amr_format";

/// An open hierarchy.
#[derive(Debug)]
pub struct Amr {
    /// What it has.
    pub hierarchy: Hierarchy,
    /// Whether its numbers have 4 bytes.
    pub single: bool,
    pub(super) ds: Dataset,
    /// For each level: its values, where each box begins in them, and the boxes by place.
    pub(super) levels: Vec<Stored>,
}

/// The values of a level.
#[derive(Debug)]
pub(super) struct Stored {
    /// None if the level has no boxes.
    pub(super) var: Option<VarId>,
    pub(super) offsets: Vec<u64>,
    pub(super) index: BoxIndex,
}

/// Values that a rank holds at a time.
const AT_ONCE: u64 = 8 << 20;

/// The boxes of each rank: contiguous, of about as many values as the others'.
pub(super) fn shares_of_boxes(boxes: &[Cells], ranks: usize) -> Vec<std::ops::Range<usize>> {
    let total: u64 = boxes.iter().map(Cells::volume).sum();
    let mut shares = Vec::new();
    let (mut at, mut done) = (0, 0u64);
    for rank in 0..ranks as u64 {
        let begin = at;
        let goal = (u128::from(total) * u128::from(rank + 1) / ranks as u128) as u64;
        while at < boxes.len() && (done < goal || rank + 1 == ranks as u64) {
            done += boxes[at].volume();
            at += 1;
        }
        shares.push(begin..at);
    }
    shares
}

/// A hierarchy with its values, box by box: a plotfile, or what another program has.
pub trait BoxSource {
    /// What it has, the same on every rank.
    fn hierarchy(&self) -> &Hierarchy;

    /// Whether its numbers have 4 bytes.
    fn is_single(&self) -> bool;

    /// The values of a box: valid cells only, all components, x fastest, the component slowest.
    fn read_box(&self, level: usize, number: usize) -> Result<Vec<f64>>;
}

impl BoxSource for Plotfile {
    fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    fn is_single(&self) -> bool {
        self.single
    }

    fn read_box(&self, level: usize, number: usize) -> Result<Vec<f64>> {
        Plotfile::read_box(self, level, number)
    }
}

/// A box of a source, if it has as many values as its cells and components say.
fn whole_box(source: &dyn BoxSource, level: usize, number: usize) -> Result<Vec<f64>> {
    let values = source.read_box(level, number)?;
    let h = source.hierarchy();
    let wanted = h.levels[level].boxes[number].volume().saturating_mul(h.names.len() as u64);
    match values.len() as u64 == wanted {
        true => Ok(values),
        false => Err(ModelError::Asked(format!(
            "level {level}, box {number}: {} values came for {wanted}",
            values.len()
        ))),
    }
}

/// Writes a hierarchy into one dataset; every rank reads and writes some of the boxes. Collective.
pub fn store(
    comm: Arc<dyn Communicator>,
    source: &dyn BoxSource,
    path: &Path,
    options: CreateOptions,
) -> Result<()> {
    let hierarchy = source.hierarchy();
    let mut def = Dataset::create(path, options.version(Version::Cdf5).comm(comm.clone()))?;
    let ty = if source.is_single() { ExternalType::Float } else { ExternalType::Double };
    let defined = define(&mut def, hierarchy, ty);
    let vars = agree(&*comm, defined)?;
    let mut ds = def.enddef()?;
    let components = hierarchy.names.len() as u64;
    for (number, level) in hierarchy.levels.iter().enumerate() {
        let Some([values, offsets, boxes]) = vars[number] else { continue };
        let starts = offsets_of(&level.boxes, components);
        let mine = &shares_of_boxes(&level.boxes, comm.size())[comm.rank()];
        let is_root = comm.rank() == 0;
        let all = |is: bool| if is { Selection::all() } else { Selection::none() };
        let list: Vec<i64> = starts.iter().map(|n| *n as i64).collect();
        ds.put_all(offsets, &all(is_root), if is_root { &list } else { &[] })?;
        let dims = hierarchy.dims;
        let corners = level.boxes.iter().flat_map(|b| {
            b.lo.into_iter().take(dims).chain(b.hi.into_iter().take(dims)).collect::<Vec<i64>>()
        });
        let corners: Vec<i64> = corners.collect();
        ds.put_all(boxes, &all(is_root), if is_root { &corners } else { &[] })?;
        // As many boxes at a time as memory allows, as often as the rank with most needs it.
        let mut turns: Vec<std::ops::Range<usize>> = Vec::new();
        let mut begin = mine.start;
        while begin < mine.end {
            let mut end = begin + 1;
            while end < mine.end && starts[end + 1] - starts[begin] <= AT_ONCE {
                end += 1;
            }
            turns.push(begin..end);
            begin = end;
        }
        for turn in 0..comm.max_u64(turns.len() as u64)? as usize {
            let boxes = turns.get(turn).cloned().unwrap_or(0..0);
            let read = boxes.clone().map(|at| whole_box(source, number, at));
            let read: Result<Vec<Vec<f64>>> = read.collect();
            let data = agree(&*comm, read)?.concat();
            let selection = match data.is_empty() {
                true => Selection::none(),
                false => Selection::slab(&[starts[boxes.start]], &[data.len() as u64]),
            };
            ds.put_all(values, &selection, &data)?;
        }
    }
    Ok(ds.close()?)
}

/// Where each box begins among the values, and where the last one ends.
pub(super) fn offsets_of(boxes: &[Cells], components: u64) -> Vec<u64> {
    let mut offsets = vec![0u64];
    let mut end = 0u64;
    for cells in boxes {
        end = end.saturating_add(cells.volume().saturating_mul(components));
        offsets.push(end);
    }
    offsets
}

/// The attribute of a box: its corners.
fn corners(cells: &Cells, dims: usize) -> Vec<i64> {
    [&cells.lo[..dims], &cells.hi[..dims]].concat()
}

fn define(def: &mut Define, h: &Hierarchy, ty: ExternalType) -> Result<Vec<Option<[VarId; 3]>>> {
    let components = h.names.len() as u64;
    let corner = def.add_dim("amr_corner", DimLen::Fixed(2 * h.dims as u64))?;
    let mut vars = Vec::new();
    for (number, level) in h.levels.iter().enumerate() {
        let total = offsets_of(&level.boxes, components).last().copied().unwrap_or(0);
        if total == 0 {
            vars.push(None);
            continue;
        }
        let count = level.boxes.len() as u64;
        let dim = |what: &str| format!("level_{number}_{what}");
        let values = def.add_dim(&dim("values"), DimLen::Fixed(total))?;
        let boxes = def.add_dim(&dim("boxes"), DimLen::Fixed(count))?;
        let ends = def.add_dim(&dim("ends"), DimLen::Fixed(count + 1))?;
        let data = def.add_var(&format!("level_{number}"), ty, &[values])?;
        let offsets = def.add_var(&dim("offset"), ExternalType::Int64, &[ends])?;
        let cells = def.add_var(&dim("box"), ExternalType::Int64, &[boxes, corner])?;
        vars.push(Some([data, offsets, cells]));
    }
    let names = h.names.join("\n");
    let graphs = def.graphs_mut()?;
    graphs.add_graph(GRAPH)?;
    let of = Of::Graph(GRAPH);
    graphs.put_attr(of, FORMAT, 1i32)?;
    graphs.put_attr(of, "dimensions", h.dims as i32)?;
    graphs.put_attr(of, "components", names.as_str())?;
    graphs.put_attr(of, "time", h.time)?;
    graphs.put_attr(of, "lo", h.lo.clone())?;
    graphs.put_attr(of, "hi", h.hi.clone())?;
    graphs.put_attr(of, "coordinates", h.coordinates)?;
    for (number, level) in h.levels.iter().enumerate() {
        let name = format!("level_{number}");
        graphs.add_vertex(&name)?;
        graphs.put_in(GRAPH, &name)?;
        let of = Of::Vertex(&name);
        graphs.put_attr(of, "domain", corners(&level.domain, h.dims))?;
        graphs.put_attr(of, "ratio", level.ratio[..h.dims].to_vec())?;
        graphs.put_attr(of, "cell_size", level.cell_size.clone())?;
        graphs.put_attr(of, "step", level.step)?;
        graphs.put_attr(of, "time", level.time)?;
        if vars[number].is_some() {
            for var in [name.clone(), format!("{name}_offset"), format!("{name}_box")] {
                graphs.attach(&name, &var)?;
            }
        }
        if number > 0 {
            // One edge for each ratio.
            let ratio = level.ratio[0];
            let edge = format!("{REFINES}_{ratio}");
            if graphs.edge(&edge).is_err() {
                graphs.add_edge(&edge, ratio as f64, true)?;
            }
            graphs.connect(&name, &edge, &format!("level_{}", number - 1))?;
        }
    }
    Ok(vars)
}

impl Amr {
    /// Opens a hierarchy. What is stored is checked as a plotfile's is. Collective.
    pub fn open(comm: Arc<dyn Communicator>, path: &Path) -> Result<Amr> {
        let ds = Dataset::open_with(path, OpenOptions::new().comm(comm.clone()))?;
        let read = Amr::read_all(&ds);
        let (hierarchy, levels, single) = agree(&*comm, read)?;
        Ok(Amr { hierarchy, single, ds, levels })
    }

    /// The ranks that have it open.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        self.ds.comm()
    }

    fn read_all(ds: &Dataset) -> Result<(Hierarchy, Vec<Stored>, bool)> {
        let graphs = ds.graphs()?;
        let set = &graphs.set;
        let wrong = |object: &str, what: &str| ModelError::stored(ds.path(), object, what);
        let numbers = |of: Of<'_>, name: &str| -> Result<Vec<f64>> {
            let attr = set.attrs(of)?.get(name);
            let values = attr.and_then(|a| a.values.convert_to::<f64>().ok());
            values
                .ok_or_else(|| wrong("the graph \"amr\"", &format!("{of:?} has no numbers {name}")))
        };
        let one = |of: Of<'_>, name: &str| -> Result<f64> {
            let list = numbers(of, name)?;
            list.first()
                .copied()
                .ok_or_else(|| wrong("the graph \"amr\"", &format!("{name} is empty")))
        };
        let of = Of::Graph(GRAPH);
        if set.graph(GRAPH).is_err() || set.attrs(of)?.get(FORMAT).is_none() {
            return Err(wrong("the file", "it has no graph \"amr\" of levels"));
        }
        let dims = one(of, "dimensions")? as usize;
        if !(1..=3).contains(&dims) {
            return Err(wrong("the graph \"amr\"", &format!("{dims} dimensions")));
        }
        let names = set.attrs(of)?.get("components").and_then(|a| a.values.text());
        let names = names.unwrap_or_default();
        let names: Vec<String> = match names.is_empty() {
            true => Vec::new(),
            false => names.split('\n').map(str::to_string).collect(),
        };
        let (time, lo, hi) = (one(of, "time")?, numbers(of, "lo")?, numbers(of, "hi")?);
        let coordinates = one(of, "coordinates")? as i64;
        let mut levels = Vec::new();
        let mut stored = Vec::new();
        let mut single = false;
        for number in 0.. {
            let name = format!("level_{number}");
            let Ok(vertex) = set.vertex(&name) else { break };
            let of = Of::Vertex(&name);
            let whole = |name: &str| -> Result<Vec<i64>> {
                Ok(numbers(of, name)?.iter().map(|n| *n as i64).collect())
            };
            let domain = cells_of(&whole("domain")?, dims);
            let domain = domain.ok_or_else(|| wrong(&name, "its domain is empty"))?;
            let ratio = whole("ratio")?;
            let ratio = [0, 1, 2].map(|d| ratio.get(d).copied().unwrap_or(1).clamp(1, 1 << 20));
            let (cell_size, step) = (numbers(of, "cell_size")?, one(of, "step")? as i64);
            let level_time = one(of, "time")?;
            let gone = graphs.missing.iter().find(|m| *m.vertex == *name);
            if let Some(missing) = gone {
                let what = format!("its variable \"{}\" was left out of this file", missing.var);
                return Err(wrong(&name, &what));
            }
            let (mut boxes, mut offsets, mut var) = (Vec::new(), vec![0u64], None);
            if !vertex.vars.is_empty() {
                let id = ds.var(&name)?;
                single |= ds.variable(id)?.ty == ExternalType::Float;
                let corners: Vec<i64> =
                    ds.get(ds.var(&format!("{name}_box"))?, &Selection::all())?;
                for (at, corners) in corners.chunks(2 * dims).enumerate() {
                    let cells = cells_of(corners, dims);
                    let empty = || wrong(&format!("{name}, box {at}"), "it has no cells");
                    boxes.push(cells.ok_or_else(empty)?);
                }
                let starts: Vec<i64> =
                    ds.get(ds.var(&format!("{name}_offset"))?, &Selection::all())?;
                offsets = offsets_of(&boxes, names.len() as u64);
                let total = ds.shape(id)?.iter().product::<u64>();
                let same = starts.len() == offsets.len()
                    && starts.iter().zip(&offsets).all(|(a, b)| u64::try_from(*a) == Ok(*b));
                if !same || offsets.last() != Some(&total) {
                    let at =
                        starts.iter().zip(&offsets).position(|(a, b)| u64::try_from(*a) != Ok(*b));
                    let at = at.unwrap_or(offsets.len() - 1);
                    let (has, wants) = (starts.get(at).copied().unwrap_or(-1), offsets[at]);
                    let what = format!(
                        "box {at} begins at {has}, but the boxes before it have {wants} values, and all {total}"
                    );
                    return Err(wrong(&format!("variable \"{name}_offset\""), &what));
                }
                var = Some(id);
            }
            stored.push(Stored { var, offsets, index: BoxIndex::new(&boxes) });
            levels.push(Level { domain, ratio, cell_size, step, time: level_time, boxes });
        }
        let hierarchy = Hierarchy { dims, names, time, lo, hi, coordinates, levels };
        hierarchy.check(ds.path())?;
        Ok((hierarchy, stored, single))
    }
}

fn cells_of(corners: &[i64], dims: usize) -> Option<Cells> {
    let (mut lo, mut hi) = ([0; 3], [0; 3]);
    lo[..dims].copy_from_slice(corners.get(..dims)?);
    hi[..dims].copy_from_slice(corners.get(dims..2 * dims)?);
    Cells::new(lo, hi)
}
