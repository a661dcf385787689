//! The drafts of all ranks, merged pair by pair up a tree: no rank holds more than two.

use std::path::Path;

use esker_comm::{CommError, Communicator, CommunicatorExt, Message};
use esker_format::Schema;

use crate::base::broadcast_parts;
use crate::error::Error;
use crate::merge::{Draft, Ranks};
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
    let mine = Draft::of(schema.clone(), fills, comm.rank());
    let top = comm.merge_up(encode(&Ok(mine)), |lower, higher| {
        let merged = match (decode(&lower), decode(&higher)) {
            (Some(Ok(lower)), Some(Ok(higher))) => lower.merge(&higher).map_err(|e| e.to_string()),
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
    let fills = merged.fill_modes();
    Ok((merged.schema, fills))
}

/// A draft on its way up the tree, or what its definitions contradict.
type Travelling = std::result::Result<Draft, String>;

/// A fill mode and its rank as one number; 0 for none.
fn fill_code(fill: &Option<(FillMode, u64)>) -> u64 {
    match fill {
        None => 0,
        Some((FillMode::Fill, rank)) => 2 * rank + 1,
        Some((FillMode::NoFill, rank)) => 2 * rank + 2,
    }
}

fn fill_of_code(code: u64) -> Option<(FillMode, u64)> {
    let mode = if code % 2 == 1 { FillMode::Fill } else { FillMode::NoFill };
    Some((mode, code.checked_sub(1)? / 2))
}

fn encode(travelling: &Travelling) -> Message {
    let mut bytes = Vec::new();
    let mut part = |tag: u8, part: &[u8]| {
        bytes.push(tag);
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    };
    match travelling {
        Err(what) => part(0, what.as_bytes()),
        Ok(Draft { schema, fills, ranks }) => {
            part(1, &schema.to_bytes());
            part(2, &Message::from_u64s(&[ranks.lowest]));
            part(3, &Message::from_u64s(&ranks.dims));
            part(4, &Message::from_u64s(&ranks.attrs));
            part(5, &Message::from_u64s(&ranks.vars));
            part(6, &Message::from_u64s(&ranks.var_attrs.concat()));
            part(7, &Message::from_u64s(&fills.iter().map(fill_code).collect::<Vec<u64>>()));
        }
    }
    Message::from(bytes)
}

fn decode(bytes: &[u8]) -> Option<Travelling> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    while let Some((tag, after)) = rest.split_first() {
        let (len, after) = after.split_first_chunk::<8>()?;
        let (part, after) = after.split_at_checked(u64::from_le_bytes(*len) as usize)?;
        parts.push((*tag, part));
        rest = after;
    }
    let numbers = |part: &[u8], count: usize| {
        let numbers = Message::from(part).to_u64s();
        (numbers.len() == count).then_some(numbers)
    };
    match parts.as_slice() {
        [(0, what)] => Some(Err(String::from_utf8_lossy(what).into_owned())),
        [
            (1, schema),
            (2, lowest),
            (3, dims),
            (4, attrs),
            (5, vars),
            (6, var_attrs),
            (7, fills),
        ] => {
            let schema = Schema::from_bytes(schema).ok()?;
            let in_vars = schema.vars.iter().map(|v| v.attrs.len());
            let all = numbers(var_attrs, in_vars.clone().sum())?;
            let mut rest = all.as_slice();
            let mut of_vars = Vec::new();
            for count in in_vars {
                let (now, later) = rest.split_at_checked(count)?;
                of_vars.push(now.to_vec());
                rest = later;
            }
            let ranks = Ranks {
                lowest: *numbers(lowest, 1)?.first()?,
                dims: numbers(dims, schema.dims.len())?,
                attrs: numbers(attrs, schema.attrs.len())?,
                vars: numbers(vars, schema.vars.len())?,
                var_attrs: of_vars,
            };
            let fills = numbers(fills, schema.vars.len())?;
            let fills = fills.into_iter().map(fill_of_code).collect();
            Some(Ok(Draft { schema, fills, ranks }))
        }
        _ => None,
    }
}
