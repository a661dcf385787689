//! What is told of a file, gathered once for people and for programs.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use esker::graph::{Graph, Link, Missing};
use esker::{Block, ContainerFacts, Dataset};
use esker::{Decomposition, DimLen, NumRecs, Schema, VarId, Variable};
use esker_store::LocalStore;
use esker_tools::offsets::Offsets;
use esker_tools::stats::Statistics;
use serde_json::{Map, Value, json};

use super::blocks;
use super::chunks::{Stored, ratio};
use crate::terminal::json as form;

/// What is told of a file.
pub(in crate::commands) struct Facts<'a> {
    pub(super) path: String,
    pub(super) schema: &'a Schema,
    pub(super) numrecs: NumRecs,
    pub(super) offsets: Offsets,
    pub(super) records: u64,
    pub(super) file_len: u64,
    pub(super) variables: Vec<VariableFacts<'a>>,
    /// What it is made of, if it is a container.
    pub(super) container: Option<ContainerFacts>,
    /// What a reader has to know.
    pub(super) notes: Vec<String>,
    /// The decomposition maps, each with how many of the variables it is for.
    pub(super) maps: Vec<(Decomposition, usize)>,
    /// The graphs of variables: name, vertices, edges and links of each; or why they cannot be read.
    pub(super) graphs: Result<Vec<GraphFacts>, String>,
    /// Variables of graphs that are not in the file.
    pub(super) missing: Vec<Missing>,
    /// The names of its sub-files, with the ranks of each.
    pub(super) subfiles: Vec<(String, Range<u64>)>,
}

/// What is told of a graph of variables.
pub(in crate::commands) struct GraphFacts {
    pub(super) name: String,
    pub(super) vertices: usize,
    pub(super) edges: usize,
    pub(super) links: usize,
    pub(super) variables: usize,
}

impl GraphFacts {
    fn of(dataset: &Dataset) -> esker::Result<(Vec<GraphFacts>, Vec<Missing>)> {
        if !dataset.has_graphs() {
            return Ok((Vec::new(), Vec::new()));
        }
        let graphs = dataset.graphs()?;
        let of = |graph: &Graph| {
            let vertices = graphs.set.vertices_of(graph);
            let inside = |link: &&Link| graph.vertices.contains(&link.to);
            let links: Vec<&Link> =
                vertices.iter().flat_map(|v| v.links.iter()).filter(inside).collect();
            let edges: HashSet<&str> = links.iter().map(|link| &*link.edge).collect();
            let variables: HashSet<&str> =
                vertices.iter().flat_map(|v| v.vars.iter()).map(|var| &**var).collect();
            GraphFacts {
                name: graph.name.to_string(),
                vertices: vertices.len(),
                edges: edges.len(),
                links: links.len(),
                variables: variables.len(),
            }
        };
        Ok((graphs.set.graphs().iter().map(of).collect(), graphs.missing))
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "vertices": self.vertices,
            "edges": self.edges,
            "links": self.links,
            "variables": self.variables,
        })
    }
}

/// What is told of a variable.
pub(in crate::commands) struct VariableFacts<'a> {
    pub(super) var: &'a Variable,
    pub(super) record: bool,
    /// Names and lengths of its dimensions.
    pub(super) shape: Vec<(&'a str, u64)>,
    /// Bytes of all its values, without padding.
    pub(super) bytes: u64,
    /// How it is stored, if it is chunked.
    pub(super) stored: Option<Stored>,
    pub(super) statistics: Option<Statistics>,
    /// The name of its map, if it is decomposed.
    pub(super) map: Option<String>,
    /// What was written together, if somebody wants to know.
    pub(super) blocks: Option<Vec<Block>>,
}

impl VariableFacts<'_> {
    /// Bytes that its values have in the file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.stored.as_ref().map_or(self.bytes, |stored| stored.stored)
    }
}

impl<'a> Facts<'a> {
    /// Bytes of the values of all chunked variables, and of what is stored of them, if there are any.
    fn chunked(&self) -> Option<(u64, u64)> {
        let all = self.variables.iter().filter_map(|fact| fact.stored.as_ref());
        all.map(|stored| (stored.raw, stored.stored))
            .reduce(|(a, b), (c, d)| (a.saturating_add(c), b.saturating_add(d)))
    }

    /// The length of the file, or what it would be if nothing of it were missing: what a
    /// variable's share is of.
    pub(super) fn whole_len(&self) -> u64 {
        self.file_len.max(self.offsets.data_end)
    }

    /// The facts of these variables.
    pub(in crate::commands) fn of(
        path: &Path,
        dataset: &'a Dataset,
        vars: &[VarId],
    ) -> esker::Result<Facts<'a>> {
        let (header, records) = (dataset.header(), dataset.numrecs());
        let file_len = dataset.file_len()?;
        let schema = dataset.schema();
        let facts_of = |id: &VarId| {
            let var = schema.variable(*id)?;
            // Tables that cannot be read are told of by `check`.
            let stored = Stored::of(dataset, *id).ok().flatten();
            let lengths = schema.shape(var, records);
            let names = var.dims.iter().map(|dim| schema.dims.at(dim.0).map_or("", |d| &*d.name));
            let bytes = lengths.iter().fold(var.ty.size(), |n, len| n.saturating_mul(*len));
            Some(VariableFacts {
                var,
                record: schema.is_record(var),
                shape: names.zip(lengths).collect(),
                bytes,
                stored,
                statistics: None,
                map: None,
                blocks: None,
            })
        };
        let container = match dataset.container_version() {
            Some(version) => esker::container_facts(&LocalStore, dataset.path(), Some(version))?,
            None => None,
        };
        let graphs = GraphFacts::of(dataset).map_err(|error| error.to_string());
        let missing = graphs.as_ref().map_or_else(|_| Vec::new(), |(_, missing)| missing.clone());
        Ok(Facts {
            container,
            notes: dataset.notes().to_vec(),
            path: path.display().to_string(),
            schema,
            numrecs: header.numrecs,
            offsets: Offsets::of(header, file_len),
            records,
            file_len,
            variables: vars.iter().filter_map(facts_of).collect(),
            maps: Vec::new(),
            graphs: graphs.map(|(facts, _)| facts),
            missing,
            subfiles: Vec::new(),
        })
    }

    /// Adds what decomposed variables stand for, from the dataset as it is read.
    pub(super) fn add_maps(&mut self, dataset: &Dataset) {
        self.maps = dataset.decompositions().into_iter().map(|map| (map, 0)).collect();
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let subfiles = dataset.subfiles().into_iter();
        self.subfiles = subfiles.map(|(path, ranks)| (name(&path), ranks)).collect();
        for fact in &mut self.variables {
            let map = dataset.var(&fact.var.name).and_then(|var| dataset.decomposition(var));
            let Ok(Some(map)) = map else { continue };
            if let Some((_, count)) = self.maps.iter_mut().find(|(m, _)| m.name == map.name) {
                *count += 1;
            }
            fact.map = Some(map.name);
        }
    }

    /// The facts as JSON.
    pub(super) fn json(&self) -> Value {
        let schema = self.schema;
        let dimension = |dim: &esker::Dimension| match dim.len {
            DimLen::Fixed(len) => json!({"name": &*dim.name, "length": len, "unlimited": false}),
            DimLen::Unlimited => {
                json!({"name": &*dim.name, "length": self.records, "unlimited": true})
            }
        };
        let map = |(map, variables): &(Decomposition, usize)| {
            json!({
                "name": map.name,
                "dimensions": map.dims,
                "shape": map.shape,
                "ranks": map.ranks,
                "blocks": map.blocks,
                "stored": map.stored,
                "covered": map.covered,
                "variables": variables,
            })
        };
        let mut document = json!({
            "file": self.path,
            "format": schema.version.to_string(),
            "kind": schema.version.kind_name(),
            "bytes": self.file_len,
            "header_bytes": self.offsets.header_len,
            "records": self.records,
            "record_bytes": self.offsets.record_size,
            "dimensions": schema.dims.iter().map(dimension).collect::<Vec<_>>(),
            "variables": self.variables.iter().map(|v| self.variable(v)).collect::<Vec<_>>(),
            "attributes": attributes(schema.attrs.iter()),
        });
        document["layout"] = Value::from(if self.container.is_some() { "log" } else { "classic" });
        if let Some(facts) = &self.container {
            document["container"] = container(facts);
        }
        if !self.notes.is_empty() {
            document["notes"] = json!(self.notes);
        }
        if let Some((raw, stored)) = self.chunked() {
            let ratio = ratio(stored, raw).map(form::float);
            document["chunked"] = json!({"bytes": raw, "stored_bytes": stored, "ratio": ratio});
        }
        if !self.maps.is_empty() {
            document["decompositions"] = self.maps.iter().map(map).collect();
        }
        match &self.graphs {
            Ok(graphs) if graphs.is_empty() => {}
            Ok(graphs) => document["graphs"] = graphs.iter().map(GraphFacts::json).collect(),
            Err(error) => document["graphs"] = json!({ "error": error }),
        }
        if !self.subfiles.is_empty() {
            let subfile = |(name, ranks): &(String, Range<u64>)| json!({"file": name, "first_rank": ranks.start, "ranks": ranks.end - ranks.start});
            document["subfiles"] = self.subfiles.iter().map(subfile).collect();
        }
        document
    }

    fn variable(&self, fact: &VariableFacts<'_>) -> Value {
        let share = fact.file_bytes() as f64 / self.whole_len().max(1) as f64;
        let mut value = json!({
            "name": &*fact.var.name,
            "type": fact.var.ty.cdl_name(),
            "dimensions": fact.shape.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            "shape": fact.shape.iter().map(|(_, len)| *len).collect::<Vec<_>>(),
            "layout": if fact.record { "record" } else { "fixed" },
            "bytes": fact.bytes,
            "share": share,
            "attributes": attributes(fact.var.attrs.iter()),
        });
        if let Some(stored) = &fact.stored {
            value["chunked"] = stored.json();
        }
        if let Some(map) = &fact.map {
            value["decomposition"] = json!(map);
        }
        if let Some(found) = &fact.blocks {
            value["blocks"] = blocks::to_json(found);
        }
        if let Some(found) = &fact.statistics {
            value["statistics"] = json!({
                "count": found.count,
                "missing": found.missing,
                "nan": found.nan,
                "min": found.min.map(form::scalar),
                "max": found.max.map(form::scalar),
                "mean": found.mean.map(form::float),
            });
        }
        value
    }
}

fn attributes<'a>(attrs: impl Iterator<Item = &'a esker::Attribute>) -> Value {
    let pairs = attrs.map(|attr| (attr.name.to_string(), form::values(&attr.values)));
    Value::Object(pairs.collect::<Map<String, Value>>())
}

fn container(facts: &ContainerFacts) -> Value {
    let session = |session: &esker::SessionFacts| {
        json!({
            "name": session.stem,
            "ranks": session.ranks,
            "files": session.files,
            "data_bytes": session.data,
            "metadata_bytes": session.metadata,
        })
    };
    json!({
        "version": facts.version,
        "versions": facts.versions,
        "tags": facts.tags.iter().map(|tag| json!({"name": tag.name, "version": tag.version})).collect::<Vec<_>>(),
        "sessions": facts.sessions.iter().map(session).collect::<Vec<_>>(),
        "data_bytes": facts.data(),
        "metadata_bytes": facts.metadata(),
        "metadata_per_byte": form::float(facts.metadata() as f64 / facts.data().max(1) as f64),
    })
}
