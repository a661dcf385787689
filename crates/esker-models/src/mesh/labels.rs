//! Which rank gets which element.

use std::path::PathBuf;

use esker::{Dataset, Selection};
use esker_comm::{Communicator, ReduceOp, Reduction};

use super::hilbert::{hilbert_key, hilbert_key_3};
use super::topology::{Location, Topology};
use crate::error::{ModelError, Result, agree};
use crate::shares::Shares;

/// How a mesh is cut.
#[derive(Debug, Clone, PartialEq)]
pub enum Cut {
    /// Into equal ranges of numbers.
    Range,
    /// Along Hilbert's curve through the middles of the elements, into equal pieces.
    Hilbert,
    /// As a variable of the file says: a number for each element, modulo the ranks.
    Labels(String),
    /// As a file of METIS says: a line with a number for each element, modulo the ranks.
    File(PathBuf),
}

/// The rank of each element of this rank's share. Collective.
pub fn labels(
    ds: &mut Dataset,
    topology: &Topology,
    location: Location,
    cut: &Cut,
) -> Result<Vec<usize>> {
    let comm = ds.comm().clone();
    let count = topology.count(location);
    let shares = Shares::new(count, comm.size());
    let mine = shares.of(comm.rank());
    match cut {
        Cut::Range => Ok(vec![comm.rank(); (mine.end - mine.start) as usize]),
        Cut::Labels(name) => {
            let selection = range(&mine);
            let var =
                ds.var(name).map_err(ModelError::from).and_then(|var| match ds.shape(var)?[..] {
                    [len] if len == count => Ok(var),
                    _ => {
                        let what = format!("it has not the shape of the {count} elements");
                        Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
                    }
                });
            let var = agree(&*comm, var)?;
            let stored: Vec<i64> = ds.get_all(var, &selection)?;
            let bad = stored.iter().position(|label| *label < 0);
            let checked = match bad {
                None => Ok(()),
                Some(at) => {
                    let what = format!("element {}: label {}", mine.start + at as u64, stored[at]);
                    Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
                }
            };
            agree(&*comm, checked)?;
            Ok(stored.iter().map(|label| (*label as u64 % comm.size() as u64) as usize).collect())
        }
        Cut::File(path) => {
            let read = read_labels(path, count, &mine, comm.size());
            agree(&*comm, read)
        }
        Cut::Hilbert => along_curve(ds, &*comm, topology, location),
    }
}

/// The selection of a range of elements.
pub(super) fn range(mine: &std::ops::Range<u64>) -> Selection {
    match mine.is_empty() {
        true => Selection::none(),
        false => Selection::slab(&[mine.start], &[mine.end - mine.start]),
    }
}

/// A rank's lines of a file with a number in each.
fn read_labels(
    path: &PathBuf,
    count: u64,
    mine: &std::ops::Range<u64>,
    ranks: usize,
) -> Result<Vec<usize>> {
    use std::io::BufRead;
    let failed = |source| ModelError::File { path: path.clone(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut labels = Vec::new();
    let mut lines = 0u64;
    for line in std::io::BufReader::new(file).lines() {
        let line = line.map_err(failed)?;
        if line.trim().is_empty() {
            continue;
        }
        if mine.contains(&lines) {
            let number: u64 = line.trim().parse().map_err(|_| {
                let what = format!("{:?} is not a number", line.trim());
                ModelError::stored(path, format!("line {}", lines + 1), what)
            })?;
            labels.push((number % ranks as u64) as usize);
        }
        lines += 1;
    }
    match lines == count {
        true => Ok(labels),
        false => {
            let what = format!("{lines} lines for {count} elements");
            Err(ModelError::stored(path, "the labels", what))
        }
    }
}

/// Equal pieces of the curve: the borders are found by halving, all of them at once.
fn along_curve(
    ds: &mut Dataset,
    comm: &dyn Communicator,
    topology: &Topology,
    location: Location,
) -> Result<Vec<usize>> {
    let axes = middles(ds, topology, location)?;
    let lowest = |axis: &Vec<f64>| axis.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = |axis: &Vec<f64>| axis.iter().map(|x| -x).fold(f64::INFINITY, f64::min);
    let mut ends: Vec<f64> = axes.iter().map(lowest).chain(axes.iter().map(highest)).collect();
    comm.all_reduce(Reduction::F64(&mut ends), ReduceOp::Min)?;
    let (low, high) = ends.split_at(axes.len());
    // One scale for all, so that the curve is not stretched.
    let sizes = low.iter().zip(high).map(|(low, high)| -high - low);
    let size = sizes.fold(f64::MIN_POSITIVE, f64::max);
    let place = |axis: usize, at: usize| (axes[axis][at] - low[axis]) / size;
    let own = axes.first().map_or(0, Vec::len);
    let key = |at: usize| match axes.len() {
        3 => hilbert_key_3([place(0, at), place(1, at), place(2, at)]),
        _ => hilbert_key(place(0, at), place(1, at)),
    };
    let keys: Vec<u64> = (0..own).map(key).collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    let count = topology.count(location);
    let shares = Shares::new(count, comm.size());
    // Border i is the smallest key with at least as many keys below it as ranks 0 to i have.
    let wanted: Vec<u64> = (0..comm.size() - 1).map(|rank| shares.of(rank).end).collect();
    let mut from = vec![0u64; wanted.len()];
    let mut to = vec![1u64 << 62; wanted.len()];
    for _ in 0..63 {
        let middle: Vec<u64> = from.iter().zip(&to).map(|(a, b)| a + (b - a) / 2).collect();
        let below = |key: &u64| sorted.partition_point(|k| k < key) as u64;
        let mut counts: Vec<u64> = middle.iter().map(below).collect();
        if !counts.is_empty() {
            comm.all_reduce(Reduction::U64(&mut counts), ReduceOp::Sum)?;
        }
        for (i, count) in counts.iter().enumerate() {
            match *count >= wanted[i] {
                true => to[i] = middle[i],
                false => from[i] = middle[i] + 1,
            }
        }
    }
    Ok(keys.iter().map(|key| to.partition_point(|border| border <= key)).collect())
}

/// The middles of this rank's share of elements: stored, or the mean of their nodes. Collective.
fn middles(ds: &mut Dataset, topology: &Topology, location: Location) -> Result<Vec<Vec<f64>>> {
    let comm = ds.comm().clone();
    let shares = Shares::new(topology.count(location), comm.size());
    let mine = shares.of(comm.rank());
    if let Some(stored) = coordinates(ds, topology, location) {
        let selection = range(&mine);
        let mut axes = Vec::new();
        for var in stored {
            axes.push(ds.get_all(var, &selection)?);
        }
        return Ok(axes);
    }
    let nodes = topology.relation(ds, location, Location::Node)?;
    let mut wanted = nodes.indices.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let Some(xy) = coordinates(ds, topology, Location::Node) else {
        let what = format!("mesh \"{}\" has no coordinates of its nodes", topology.name);
        return agree(&*comm, Err(ModelError::Asked(what)));
    };
    let mut all = Vec::new();
    for var in xy {
        let mut means = Vec::new();
        let values = read_elements(ds, var, &wanted)?;
        for at in 0..nodes.offsets.len() - 1 {
            let row = nodes.row(at);
            let value = |node: &u64| wanted.binary_search(node).map_or(0.0, |at| values[at]);
            let sum: f64 = row.iter().map(value).sum();
            means.push(sum / row.len().max(1) as f64);
        }
        all.push(means);
    }
    Ok(all)
}

/// The variables of the coordinates of elements of one dimension, if they are there: two, or of a mesh of volumes three.
fn coordinates(ds: &Dataset, topology: &Topology, location: Location) -> Option<Vec<esker::VarId>> {
    let names = &topology.coordinates[location as usize];
    let var = |at: usize| {
        let var = ds.schema().var(names.get(at)?)?;
        let shape = ds.shape(var).ok()?;
        (shape == [topology.count(location)]).then_some(var)
    };
    let mut axes = vec![var(0)?, var(1)?];
    if topology.dimension == 3 {
        axes.extend(var(2));
    }
    Some(axes)
}

/// Reads these elements, in rising order, of a variable of one dimension. Collective.
pub(super) fn read_elements(
    ds: &mut Dataset,
    var: esker::VarId,
    sorted: &[u64],
) -> Result<Vec<f64>> {
    let (starts, counts) = runs(sorted);
    let selection = match starts.is_empty() {
        true => Selection::none(),
        false => Selection::list(1, starts, counts),
    };
    Ok(ds.get_all(var, &selection)?)
}

/// Rising numbers as runs: where each begins and how long it is.
pub(super) fn runs(sorted: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut starts, mut counts): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for number in sorted {
        match (starts.last(), counts.last_mut()) {
            (Some(start), Some(count)) if start + *count == *number => *count += 1,
            _ => {
                starts.push(*number);
                counts.push(1);
            }
        }
    }
    (starts, counts)
}
