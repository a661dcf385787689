//! Graphs of variables (seeds/004): what a dataset has, what `enddef` merges and where it goes.
//!
//! A graph is a fixed `char` variable, so that every tool carries it along. Its bytes reach the file
//! together with the header that speaks of them: a changed graph goes into another variable, new or
//! left by an earlier change, and the names change places with the header.

mod merge;
mod place;

use std::sync::Arc;

use esker_comm::CommunicatorExt;
use esker_format::Values;
use esker_format::graph::{GraphSet, Missing, decode, is_graph, join};

use crate::dataset::Dataset;
use crate::define::Define;
use crate::error::{Error, Result};
use crate::selection::Selection;

pub(crate) use place::{Content, Placed, place, rename_own};

/// The graphs of a dataset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graphs {
    /// Graphs, vertices and edges.
    pub set: GraphSet,
    /// Variables of vertices that the file has no more, because another tool has left them out.
    pub missing: Vec<Missing>,
}

/// The graphs that a rank is defining.
#[derive(Debug, Default)]
pub(crate) struct GraphDraft {
    set: GraphSet,
    /// Why those of the file cannot be read.
    unreadable: Option<String>,
    /// Whether they may have been changed.
    touched: bool,
}

impl Dataset {
    /// Whether there are graphs of variables.
    pub fn has_graphs(&self) -> bool {
        self.schema().vars.iter().any(is_graph)
    }

    /// The graphs of variables, with what other tools have left of them. Independent.
    pub fn graphs(&self) -> Result<Graphs> {
        let mut stored = Vec::new();
        for (var, variable) in self.schema().vars.iter().enumerate() {
            if !is_graph(variable) {
                continue;
            }
            let values = self.get_values(esker_format::VarId(var), &Selection::all())?;
            let Values::Char(bytes) = values else { continue };
            let path = self.path().to_path_buf();
            let graph = decode(&variable.name, &bytes);
            let graph = graph.map_err(|source| Error::StoredGraph { path, source })?;
            stored.push((variable.name.clone(), graph));
        }
        let path = self.path().to_path_buf();
        let joined = join(&stored, &self.ground.header.schema);
        let (set, missing) = joined.map_err(|source| Error::Graph { path, source })?;
        Ok(Graphs { set, missing })
    }

    /// What a redefinition begins with.
    pub(crate) fn graph_draft(&self) -> GraphDraft {
        if !self.has_graphs() {
            return GraphDraft::default();
        }
        // One that is damaged keeps nobody from defining other things.
        match self.graphs() {
            Ok(Graphs { set, .. }) => GraphDraft { set, ..GraphDraft::default() },
            Err(error) => {
                GraphDraft { unreadable: Some(error.to_string()), ..GraphDraft::default() }
            }
        }
    }

    /// Puts graphs into a container, whose values are in its logs. Collective.
    pub(crate) fn put_contents(&mut self, contents: &[Content]) -> Result<()> {
        for content in contents {
            let var = self.var(&content.name);
            let var = self.agree(var)?;
            let bytes: Vec<esker_format::Char> =
                content.bytes.iter().map(|b| esker_format::Char(*b)).collect();
            match self.comm().rank() {
                0 => self.put_all(var, &Selection::all(), &bytes)?,
                _ => self.put_all::<esker_format::Char>(var, &Selection::none(), &[])?,
            }
        }
        match contents.is_empty() {
            true => Ok(()),
            false => self.layout.commit(&mut self.ground, false).map(drop),
        }
    }
}

impl Define {
    /// The graphs of variables that this rank has defined, with those of the file.
    pub fn graphs(&self) -> Result<&GraphSet> {
        self.graphs.require_readable()?;
        Ok(&self.graphs.set)
    }

    /// The same, to be changed. What ranks define is merged by name at `enddef`, as variables are:
    /// a vertex has the variables, links and graphs that any rank has given it. What the file has is
    /// deleted, dissociated, renamed and changed by all ranks alike or not at all.
    pub fn graphs_mut(&mut self) -> Result<&mut GraphSet> {
        self.graphs.require_readable()?;
        self.graphs.touched = true;
        Ok(&mut self.graphs.set)
    }

    /// The graphs of all ranks, if any of them may have changed some: asked when they are not alike.
    /// Collective.
    pub(crate) fn merge_graphs(&self) -> Result<Option<GraphSet>> {
        let comm = &*self.base.comm;
        let draft = &self.graphs;
        if !comm.any(draft.touched)? {
            return Ok(None);
        }
        // One that cannot be read would be lost.
        self.base.agree(draft.require_readable())?;
        if comm.all_equal(merge::hash(&draft.set))? {
            return Ok(Some(draft.set.clone()));
        }
        if comm.any(self.before.is_some() && draft.set.was_changed())? {
            let why = "ranks may define different graphs, but rename, delete and change alike";
            return Err(Error::NotAlike { path: self.base.path.clone(), why });
        }
        merge::merge(comm, &draft.set).map(Some).map_err(|e| e.into_error(&self.base.path))
    }

    /// Follows a variable that was renamed.
    pub(crate) fn graphs_follow(&mut self, old: &str, new: &str) {
        let draft = &mut self.graphs;
        let is_own = draft.set.graphs().get(old).is_some();
        let renamed = match is_own {
            true => draft.set.rename_graph(old, new).is_ok(),
            false => draft.set.rename_var(old, new),
        };
        draft.touched |= renamed;
    }
}

impl GraphDraft {
    /// What ranks compare: 0 where nothing was changed.
    pub(crate) fn hash(&self) -> u64 {
        if self.touched { merge::hash(&self.set) } else { 0 }
    }

    /// The set, if it may have been changed.
    pub(crate) fn changed(&self) -> Option<GraphSet> {
        self.touched.then(|| self.set.clone())
    }

    fn require_readable(&self) -> Result<()> {
        match &self.unreadable {
            None => Ok(()),
            Some(why) => Err(Error::Refused(format!(
                "{why}; the graphs of this file can be left as they are, not changed"
            ))),
        }
    }
}

/// The name of an object that nobody has yet: `base`, then `base2`, and so on.
fn free_name(base: &str, taken: impl Fn(&str) -> bool) -> Arc<str> {
    let names = std::iter::once(base.to_string()).chain((2..).map(|n: u64| format!("{base}{n}")));
    let mut free = names.filter(|name| !taken(name));
    Arc::from(free.next().unwrap_or_default())
}
