//! The drafts of all ranks, merged pair by pair up a tree: no rank holds more than two.

use std::path::Path;

use esker_comm::{CommError, Communicator, CommunicatorExt, Message};
use esker_format::Schema;

use crate::base::broadcast_parts;
use crate::error::Error;
use crate::merge::{Draft, MergeError, Ranks};
use crate::options::FillMode;

/// Why there is no merged schema.
pub(crate) enum TreeError {
    /// Definitions that conflict, in words; the same on every rank.
    Conflict(String),
    Comm(CommError),
    Garbled,
}

impl TreeError {
    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self {
            TreeError::Conflict(what) => Error::Definitions { path: path.to_path_buf(), what },
            TreeError::Comm(error) => error.into(),
            TreeError::Garbled => Error::Garbled,
        }
    }
}

impl From<CommError> for TreeError {
    fn from(error: CommError) -> Self {
        TreeError::Comm(error)
    }
}

/// Merges all ranks' schemas and fill modes. Collective; the same on every rank.
pub(crate) fn merge(
    comm: &dyn Communicator,
    schema: &Schema,
    fills: &[Option<FillMode>],
) -> std::result::Result<(Schema, Vec<Option<FillMode>>), TreeError> {
    let mine = Travelling { draft: Draft::of(schema.clone(), comm.rank()), fills: fills.to_vec() };
    let top = comm.merge_up(encode(&Ok(mine)), |lower, higher| {
        let merged = match (decode(&lower), decode(&higher)) {
            (Some(Ok(lower)), Some(Ok(higher))) => lower.merge(higher).map_err(|e| e.to_string()),
            (Some(Err(what)), _) | (_, Some(Err(what))) => Err(what),
            (None, _) | (_, None) => Err(Error::Garbled.to_string()),
        };
        encode(&merged)
    })?;
    let parts = broadcast_parts(comm, &[&top.unwrap_or_default()]).map_err(|e| match e {
        Error::Comm(error) => TreeError::Comm(error),
        _ => TreeError::Garbled,
    })?;
    let merged = parts.first().and_then(|bytes| decode(bytes)).ok_or(TreeError::Garbled)?;
    let merged = merged.map_err(TreeError::Conflict)?;
    Ok((merged.draft.schema, merged.fills))
}

/// A draft on its way up, with the variables' fill modes.
struct Travelling {
    draft: Draft,
    fills: Vec<Option<FillMode>>,
}

impl Travelling {
    fn merge(self, other: Travelling) -> std::result::Result<Travelling, MergeError> {
        let draft = self.draft.merge(&other.draft)?;
        let mut fills = self.fills;
        for var in draft.schema.vars.as_slice().iter().skip(fills.len()) {
            let at = other.draft.schema.vars.position(&var.name);
            fills.push(at.and_then(|at| other.fills.get(at).copied().flatten()));
        }
        Ok(Travelling { draft, fills })
    }
}

fn encode(travelling: &std::result::Result<Travelling, String>) -> Message {
    let mut bytes = Vec::new();
    let mut part = |tag: u8, part: &[u8]| {
        bytes.push(tag);
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    match travelling {
        Err(what) => part(0, what.as_bytes()),
        Ok(Travelling { draft, fills }) => {
            part(1, &draft.schema.to_bytes());
            part(2, &Message::from_u64s(&draft.ranks.dims));
            part(3, &Message::from_u64s(&draft.ranks.attrs));
            part(4, &Message::from_u64s(&draft.ranks.vars));
            let code = |fill: &Option<FillMode>| match fill {
                None => 0,
                Some(FillMode::Fill) => 1,
                Some(FillMode::NoFill) => 2,
            };
            part(5, &fills.iter().map(code).collect::<Vec<u8>>());
        }
    }
    Message::from(bytes)
}

fn decode(bytes: &[u8]) -> Option<std::result::Result<Travelling, String>> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    while let Some((tag, after)) = rest.split_first() {
        let (len, after) = after.split_first_chunk::<8>()?;
        let (part, after) = after.split_at_checked(u64::from_le_bytes(*len) as usize)?;
        parts.push((*tag, part));
        rest = after;
    }
    match parts.as_slice() {
        [(0, what)] => Some(Err(String::from_utf8_lossy(what).into_owned())),
        [(1, schema), (2, dims), (3, attrs), (4, vars), (5, fills)] => {
            let numbers = |part: &[u8]| Message::from(part).to_u64s();
            let ranks = Ranks { dims: numbers(dims), attrs: numbers(attrs), vars: numbers(vars) };
            let mode = |code: &u8| match code {
                1 => Some(FillMode::Fill),
                2 => Some(FillMode::NoFill),
                _ => None,
            };
            let schema = Schema::from_bytes(schema).ok()?;
            let fills = fills.iter().map(mode).collect();
            Some(Ok(Travelling { draft: Draft { schema, ranks }, fills }))
        }
        _ => None,
    }
}
