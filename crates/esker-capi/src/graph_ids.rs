//! The numbers that C has for graphs, vertices and edges, whose keys are names.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use esker::graph::GraphSet;

/// What a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Graph,
    Vertex,
    Edge,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Graph => "graph",
            Kind::Vertex => "vertex",
            Kind::Edge => "edge",
        }
    }

    /// The names of all objects of this kind, in the order of definition.
    pub(crate) fn names(self, set: &GraphSet) -> Vec<Arc<str>> {
        match self {
            Kind::Graph => set.graphs().iter().map(|g| g.name.clone()).collect(),
            Kind::Vertex => set.vertices().iter().map(|v| v.name.clone()).collect(),
            Kind::Edge => set.edges().iter().map(|e| e.name.clone()).collect(),
        }
    }

    /// How many objects of this kind there are, and the name of the last one.
    fn last(self, set: &GraphSet) -> (usize, Option<&Arc<str>>) {
        let (graphs, vertices, edges) = (set.graphs(), set.vertices(), set.edges());
        match self {
            Kind::Graph => (graphs.len(), graphs.as_slice().last().map(|g| &g.name)),
            Kind::Vertex => (vertices.len(), vertices.as_slice().last().map(|v| &v.name)),
            Kind::Edge => (edges.len(), edges.as_slice().last().map(|e| &e.name)),
        }
    }
}

/// Numbers in the order in which objects became known on this rank; they stay what they are.
#[derive(Debug, Default)]
pub(crate) struct GraphIds {
    kinds: [Numbers; 3],
}

#[derive(Debug, Default)]
struct Numbers {
    names: Vec<Option<Arc<str>>>,
    ids: HashMap<Arc<str>, c_int>,
}

impl GraphIds {
    /// Numbers what has none yet.
    pub(crate) fn learn(&mut self, set: &GraphSet) {
        for kind in [Kind::Graph, Kind::Vertex, Kind::Edge] {
            let numbers = &mut self.kinds[kind as usize];
            // What is deleted is forgotten, and what is new is last.
            let (count, last) = kind.last(set);
            if numbers.ids.len() == count && last.is_none_or(|l| numbers.ids.contains_key(l)) {
                continue;
            }
            for name in kind.names(set) {
                if !numbers.ids.contains_key(&name) {
                    numbers.ids.insert(name.clone(), numbers.names.len() as c_int);
                    numbers.names.push(Some(name));
                }
            }
        }
    }

    pub(crate) fn name(&self, kind: Kind, id: c_int) -> Option<&str> {
        let place = usize::try_from(id).ok()?;
        self.kinds[kind as usize].names.get(place)?.as_deref()
    }

    pub(crate) fn id(&self, kind: Kind, name: &str) -> Option<c_int> {
        self.kinds[kind as usize].ids.get(name).copied()
    }

    pub(crate) fn forget(&mut self, kind: Kind, id: c_int) {
        let numbers = &mut self.kinds[kind as usize];
        let slot = usize::try_from(id).ok().and_then(|at| numbers.names.get_mut(at));
        if let Some(name) = slot.and_then(Option::take) {
            numbers.ids.remove(&name);
        }
    }

    pub(crate) fn rename(&mut self, kind: Kind, id: c_int, new: &str) {
        self.forget(kind, id);
        let numbers = &mut self.kinds[kind as usize];
        let new: Arc<str> = Arc::from(new);
        if let Some(slot) = usize::try_from(id).ok().and_then(|at| numbers.names.get_mut(at)) {
            *slot = Some(new.clone());
            numbers.ids.insert(new, id);
        }
    }
}
