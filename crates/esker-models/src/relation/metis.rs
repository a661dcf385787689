//! METIS graph files, in and out: text, one line for each row, elements from 1 on.
//!
//! The first line has the number of vertices, of edges (each counted once) and a format of three digits: the last
//! says whether edges have weights, the middle one whether vertices have (which are skipped here), the
//! first whether they have sizes.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use esker_comm::{Communicator, CommunicatorExt, Message};

use super::Relation;
use crate::error::{ModelError, Result, agree};

/// Reads a METIS graph. Rank 0 reads, and sends each rank its share. Collective.
pub fn read_metis(comm: &dyn Communicator, path: &Path) -> Result<Relation> {
    let read = match comm.rank() {
        0 => parse(path),
        _ => Ok((0, vec![0], Vec::new(), None)),
    };
    let (rows, offsets, indices, weights) = agree(comm, read)?;
    let message = comm.broadcast(0, Message::from_u64s(&[rows]))?;
    let rows = message.to_u64s().first().copied().unwrap_or(0);
    Relation::from_parts(comm, rows, offsets, indices, weights)
}

type Parsed = (u64, Vec<u64>, Vec<u64>, Option<Vec<f64>>);

fn parse(path: &Path) -> Result<Parsed> {
    let failed = |source| ModelError::File { path: path.to_path_buf(), source };
    let wrong = |line: usize, what: String| ModelError::stored(path, format!("line {line}"), what);
    let file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut lines = BufReader::new(file).lines().enumerate().map(|(n, l)| (n + 1, l));
    // Lines that begin with % are comments, and are no rows.
    let mut next = || -> Result<Option<(usize, Vec<u64>)>> {
        for (number, line) in lines.by_ref() {
            let line = line.map_err(failed)?;
            if line.starts_with('%') {
                continue;
            }
            let words = line.split_ascii_whitespace();
            let numbers = words.map(|word| {
                word.parse().map_err(|_| wrong(number, format!("{word:?} is not a number")))
            });
            return Ok(Some((number, numbers.collect::<Result<_>>()?)));
        }
        Ok(None)
    };
    let Some((number, head)) = next()? else {
        return Err(wrong(1, "the file has no line of sizes".to_string()));
    };
    let [rows, edges] = head[..2.min(head.len())] else {
        return Err(wrong(number, "numbers of vertices and edges are missing".to_string()));
    };
    let format = head.get(2).copied().unwrap_or(0);
    let digits = [format / 100 % 10, format / 10 % 10, format % 10];
    let constraints = if digits[1] > 0 { head.get(3).copied().unwrap_or(1) } else { 0 };
    let skipped = usize::try_from(digits[0].saturating_add(constraints)).unwrap_or(usize::MAX);
    if rows > size || edges > size {
        return Err(wrong(number, format!("{rows} vertices and {edges} edges in {size} bytes")));
    }
    let weighted = digits[2] > 0;
    let (mut offsets, mut indices, mut weights) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let Some((number, line)) = next()? else {
            return Err(wrong(number, format!("the file ends after {row} of {rows} rows")));
        };
        let Some(words) = line.get(skipped..) else {
            return Err(wrong(
                number,
                format!("{} numbers, {skipped} before the edges", line.len()),
            ));
        };
        for pair in words.chunks(if weighted { 2 } else { 1 }) {
            match (pair[0].checked_sub(1).filter(|to| *to < rows), weighted, pair.get(1)) {
                (Some(to), false, _) => indices.push(to),
                (Some(to), true, Some(weight)) => {
                    indices.push(to);
                    weights.push(*weight as f64);
                }
                (Some(_), true, None) => {
                    return Err(wrong(number, "the last edge has no weight".to_string()));
                }
                (None, _, _) => {
                    return Err(wrong(number, format!("vertex {} of {rows}", pair[0])));
                }
            }
        }
        offsets.push(indices.len() as u64);
    }
    if indices.len() as u64 != 2 * edges {
        let found = indices.len();
        return Err(wrong(number, format!("{edges} edges are said, and {found} ends are there")));
    }
    Ok((rows, offsets, indices, weighted.then_some(weights)))
}

/// Writes a relation of a dimension with itself as a METIS graph, which must be symmetric and without
/// loops. Weights, if there are any, are rounded to whole numbers, as METIS has them. Ranks write in turn. Collective.
pub fn write_metis(comm: &dyn Communicator, relation: &Relation, path: &Path) -> Result<()> {
    let loops = (0..relation.offsets.len().saturating_sub(1)).find(|at| {
        let row = relation.first + *at as u64;
        relation.row(*at).contains(&row)
    });
    let checked = match loops {
        Some(at) => Err(ModelError::Asked(format!("row {at} is related to itself"))),
        None if relation.rows != relation.columns => {
            Err(ModelError::Asked("a METIS graph relates a dimension with itself".to_string()))
        }
        None => Ok(()),
    };
    agree(comm, checked)?;
    let back = relation.invert(comm)?;
    let same = back.offsets == relation.offsets && {
        let sorted = |r: &Relation| {
            let mut all = Vec::new();
            for at in 0..r.offsets.len().saturating_sub(1) {
                let mut row = r.row(at).to_vec();
                row.sort_unstable();
                all.extend(row);
            }
            all
        };
        sorted(&back) == sorted(relation)
    };
    let refuse = || ModelError::Asked("the relation is not symmetric".to_string());
    agree(comm, if same { Ok(()) } else { Err(refuse()) })?;
    let weighted = comm.any(relation.weights.is_some())?;
    let ends = relation.total(comm)?;
    for turn in 0..comm.size() {
        let mut written = Ok(());
        if turn == comm.rank() {
            let mut text = String::new();
            if turn == 0 {
                let format = if weighted { " 001" } else { "" };
                let _ = writeln!(text, "{} {}{format}", relation.rows, ends / 2);
            }
            for at in 0..relation.offsets.len().saturating_sub(1) {
                let mut line = String::new();
                for (place, to) in relation.row(at).iter().enumerate() {
                    let gap = if place == 0 { "" } else { " " };
                    let _ = write!(line, "{gap}{}", to + 1);
                    if weighted {
                        let weight = relation.row_weights(at).map_or(1.0, |w| w[place]);
                        let _ = write!(line, " {}", weight.round().max(1.0) as u64);
                    }
                }
                let _ = writeln!(text, "{line}");
            }
            let mut options = std::fs::OpenOptions::new();
            match turn {
                0 => options.write(true).create(true).truncate(true),
                _ => options.append(true),
            };
            let wrote = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written = wrote.map_err(|source| ModelError::File { path: path.to_path_buf(), source });
        }
        agree(comm, written)?;
    }
    Ok(())
}
