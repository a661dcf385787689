//! What one rank has of a mesh: its own elements, a halo, and who has what.

use std::collections::{BTreeMap, HashMap};

use esker::Dataset;
use esker_comm::Communicator;

use super::labels::{Cut, labels};
use super::topology::{Location, Topology};
use crate::error::{ModelError, Result, agree};
use crate::relation::Relation;
use crate::relation::exchange::{by_owner, exchange};
use crate::shares::Shares;

/// This rank's part of the elements of one location.
///
/// Local numbers: own elements first, in rising order of their global numbers, then the halo, layer by layer,
/// each in rising order.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is a part of.
    pub location: Location,
    /// Elements of all ranks.
    pub count: u64,
    /// The global numbers of the rank's own elements, rising.
    pub own: Vec<u64>,
    /// The global numbers of its halo.
    pub halo: Vec<u64>,
    /// The rank that owns each element of the halo.
    pub halo_owner: Vec<usize>,
    /// For each neighbour: the local numbers of own elements that it has in its halo.
    pub send: Vec<(usize, Vec<usize>)>,
    /// For each neighbour: the local numbers of the halo's elements that it owns, in the order in which it sends them.
    pub receive: Vec<(usize, Vec<usize>)>,
    /// Local numbers by global ones.
    local: HashMap<u64, usize>,
}

/// Rows of a relation for a part, in local numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalTable {
    /// Where each row begins in `indices`, and where the last one ends.
    pub offsets: Vec<u64>,
    /// Local numbers of the elements.
    pub indices: Vec<usize>,
    /// The global number of each local one.
    pub globals: Vec<u64>,
}

impl LocalTable {
    /// The elements of a row, by their local numbers.
    pub fn row(&self, at: usize) -> &[usize] {
        match self.offsets.get(at..at + 2) {
            Some([begin, end]) => &self.indices[*begin as usize..*end as usize],
            _ => &[],
        }
    }
}

impl Part {
    /// Cuts the elements of a mesh: own ones as `cut` says, and `layers` of halo, each the neighbours of all before by
    /// `over` (a relation of the location with itself; not asked for without layers). Collective.
    pub fn new(
        ds: &mut Dataset,
        topology: &Topology,
        location: Location,
        cut: &Cut,
        layers: usize,
        over: Option<&Relation>,
    ) -> Result<Part> {
        let comm = ds.comm().clone();
        let labels = labels(ds, topology, location, cut)?;
        let read;
        let over = match (layers, over) {
            (0, _) => None,
            (_, Some(over)) => Some(over),
            (_, None) => {
                read = topology.relation(ds, location, location)?;
                Some(&read)
            }
        };
        Part::of_labels(&*comm, location, topology.count(location), &labels, layers, over)
    }

    /// The same from a rank for each element of this rank's share of `count` elements. Collective.
    pub fn of_labels(
        comm: &dyn Communicator,
        location: Location,
        count: u64,
        labels: &[usize],
        layers: usize,
        over: Option<&Relation>,
    ) -> Result<Part> {
        let shares = Shares::new(count, comm.size());
        let mine = shares.of(comm.rank());
        let outside = labels.iter().find(|label| **label >= comm.size());
        let fits = labels.len() as u64 == mine.end - mine.start;
        let square = over.is_none_or(|over| over.rows == count && over.columns == count);
        let checked = match (outside, fits, square) {
            (None, true, true) => Ok(()),
            (Some(label), _, _) => {
                Err(ModelError::Asked(format!("rank {label} of {}", comm.size())))
            }
            (None, false, _) => {
                let (got, wanted) = (labels.len(), mine.end - mine.start);
                Err(ModelError::Asked(format!("{got} labels for a share of {wanted}")))
            }
            (None, true, false) => {
                let what = format!("a halo needs a relation of {count} elements with themselves");
                Err(ModelError::Asked(what))
            }
        };
        agree(comm, checked)?;
        // Every element goes to the rank that its label names.
        let mut to: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (number, label) in mine.clone().zip(labels) {
            to.entry(*label).or_default().push(number);
        }
        let came = exchange(comm, to.into_iter().collect())?;
        let own: Vec<u64> = came.into_iter().flat_map(|(_, numbers)| numbers).collect();
        let mut local: HashMap<u64, usize> =
            own.iter().enumerate().map(|(at, number)| (*number, at)).collect();
        let mut halo: Vec<u64> = Vec::new();
        let mut border = own.clone();
        for _ in 0..if over.is_some() { layers } else { 0 } {
            let Some(over) = over else { break };
            let rows = over.fetch(comm, &border)?;
            let mut layer: Vec<u64> =
                rows.indices.into_iter().filter(|number| !local.contains_key(number)).collect();
            layer.sort_unstable();
            layer.dedup();
            for number in &layer {
                local.insert(*number, own.len() + halo.len());
                halo.push(*number);
            }
            border = layer;
        }
        let halo_owner = owners(comm, &shares, labels, &halo)?;
        // Whoever has an element in its halo tells its owner.
        let mut wanted: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let mut receive: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, (number, owner)) in halo.iter().zip(&halo_owner).enumerate() {
            wanted.entry(*owner).or_default().push(*number);
            receive.entry(*owner).or_default().push(own.len() + at);
        }
        let asked = exchange(comm, wanted.into_iter().collect())?;
        let send = asked.into_iter().map(|(from, numbers)| {
            (from, numbers.iter().filter_map(|number| local.get(number).copied()).collect())
        });
        let send = send.collect();
        let receive = receive.into_iter().collect();
        Ok(Part { location, count, own, halo, halo_owner, send, receive, local })
    }

    /// Own elements and halo together.
    pub fn len(&self) -> usize {
        self.own.len() + self.halo.len()
    }

    /// Whether there is nothing on this rank.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The global numbers, by local ones.
    pub fn globals(&self) -> Vec<u64> {
        [&self.own[..], &self.halo].concat()
    }

    /// The local number of an element, if this part has it.
    pub fn local(&self, global: u64) -> Option<usize> {
        self.local.get(&global).copied()
    }

    /// The rows of a relation whose rows are these elements, for own ones and halo, in local numbers: those of `numbered`, a
    /// part of the elements that the relation leads to (this one for `face_face`, [`Part::of_neighbours`] for `face_node`); what it has not follows,
    /// and all of it without one, in the order of appearance. Collective.
    pub fn table(
        &self,
        comm: &dyn Communicator,
        relation: &Relation,
        numbered: Option<&Part>,
    ) -> Result<LocalTable> {
        let columns = numbered.map_or(relation.columns, |part| part.count);
        let checked = match relation.rows == self.count && relation.columns == columns {
            true => Ok(()),
            false => {
                let (rows, count, to) = (relation.rows, self.count, relation.columns);
                Err(ModelError::Asked(format!(
                    "a relation of {rows} rows to {to} elements, for {count} elements and numbers of {columns}"
                )))
            }
        };
        agree(comm, checked)?;
        let rows = relation.fetch(comm, &self.globals())?;
        let mut globals = numbered.map_or_else(Vec::new, Part::globals);
        let mut numbers: HashMap<u64, usize> =
            globals.iter().enumerate().map(|(at, number)| (*number, at)).collect();
        let mut indices = Vec::with_capacity(rows.indices.len());
        for index in &rows.indices {
            let next = globals.len();
            let local = *numbers.entry(*index).or_insert(next);
            if local == next {
                globals.push(*index);
            }
            indices.push(local);
        }
        Ok(LocalTable { offsets: rows.offsets, indices, globals })
    }

    /// Gives the halo the values that its owners have: `values` has `each` for every local number. Collective.
    pub fn update_halo(
        &self,
        comm: &dyn Communicator,
        values: &mut [f64],
        each: usize,
    ) -> Result<()> {
        let checked = match values.len() == self.len() * each {
            true => Ok(()),
            false => {
                let (got, wanted) = (values.len(), self.len() * each);
                Err(ModelError::Asked(format!("{got} values for {wanted}")))
            }
        };
        agree(comm, checked)?;
        let messages = self.send.iter().map(|(to, list)| {
            let of = |at: &usize| values[at * each..(at + 1) * each].iter().map(|v| v.to_bits());
            (*to, list.iter().flat_map(of).collect())
        });
        let came = exchange(comm, messages.collect())?;
        for (from, words) in came {
            let list = self.receive.iter().find(|(rank, _)| *rank == from).map(|(_, list)| list);
            for (at, words) in list.into_iter().flatten().zip(words.chunks_exact(each.max(1))) {
                for (value, bits) in values[at * each..(at + 1) * each].iter_mut().zip(words) {
                    *value = f64::from_bits(*bits);
                }
            }
        }
        Ok(())
    }

    /// The part of the elements of another location that this one needs, such as the nodes of its faces: an element is
    /// owned by the lowest rank whose own elements have it, so that elements which several ranks share are written once;
    /// what nobody's own elements have belongs to nobody. Collective.
    pub fn of_neighbours(
        &self,
        comm: &dyn Communicator,
        relation: &Relation,
        location: Location,
    ) -> Result<Part> {
        let table = self.table(comm, relation, None)?;
        let own_end = table.offsets.get(self.own.len()).copied().unwrap_or(0) as usize;
        let mut mine: Vec<u64> =
            table.indices[..own_end].iter().map(|local| table.globals[*local]).collect();
        mine.sort_unstable();
        mine.dedup();
        let shares = Shares::new(relation.columns, comm.size());
        let told = exchange(comm, by_owner(&shares, &mine, |number, words| words.push(number)))?;
        // Ranks come in their order, so that the first who has an element is the lowest.
        let first = shares.of(comm.rank());
        let mut lowest: Vec<usize> = vec![usize::MAX; (first.end - first.start) as usize];
        for (rank, numbers) in &told {
            for number in numbers {
                let slot = &mut lowest[(number - first.start) as usize];
                *slot = (*slot).min(*rank);
            }
        }
        let mut globals = table.globals.clone();
        globals.sort_unstable();
        let owner = owners(comm, &shares, &lowest, &globals)?;
        let rank = comm.rank();
        let of = |is_own: bool| {
            let pairs = globals.iter().zip(&owner).filter(move |(_, o)| (**o == rank) == is_own);
            pairs.map(|(number, owner)| (*number, *owner))
        };
        let own: Vec<u64> = of(true).map(|(number, _)| number).collect();
        let (halo, halo_owner): (Vec<u64>, Vec<usize>) = of(false).unzip();
        let all = own.iter().chain(&halo).enumerate();
        let local: HashMap<u64, usize> = all.map(|(at, number)| (*number, at)).collect();
        let mut wanted: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let mut receive: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, (number, owner)) in halo.iter().zip(&halo_owner).enumerate() {
            if *owner < comm.size() {
                wanted.entry(*owner).or_default().push(*number);
                receive.entry(*owner).or_default().push(own.len() + at);
            }
        }
        let asked = exchange(comm, wanted.into_iter().collect())?;
        let send = asked.into_iter().map(|(from, numbers)| {
            (from, numbers.iter().filter_map(|number| local.get(number).copied()).collect())
        });
        let (send, receive) = (send.collect(), receive.into_iter().collect());
        let count = relation.columns;
        Ok(Part { location, count, own, halo, halo_owner, send, receive, local })
    }
}

/// The ranks that own these elements, from those who keep the labels. Collective.
fn owners(
    comm: &dyn Communicator,
    shares: &Shares,
    labels: &[usize],
    wanted: &[u64],
) -> Result<Vec<usize>> {
    let mut sorted = wanted.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let asked = exchange(comm, by_owner(shares, &sorted, |number, words| words.push(number)))?;
    let first = shares.of(comm.rank()).start;
    let answers = asked.into_iter().map(|(from, numbers)| {
        let label =
            |number: &u64| labels.get((number - first) as usize).map_or(u64::MAX, |l| *l as u64);
        (from, numbers.iter().map(label).collect())
    });
    let answers = exchange(comm, answers.collect())?;
    // Keepers are in the order of their shares, and answer in the order of the question.
    let all: Vec<u64> = answers.into_iter().flat_map(|(_, labels)| labels).collect();
    let of = |number: &u64| sorted.binary_search(number).ok().and_then(|at| all.get(at).copied());
    Ok(wanted.iter().map(|number| of(number).map_or(usize::MAX, |label| label as usize)).collect())
}
