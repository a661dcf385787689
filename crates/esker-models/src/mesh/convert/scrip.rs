//! SCRIP: every cell has its own corners. Equal corners become one node.

use std::collections::HashMap;

use esker::{Dataset, Selection};
use esker_comm::{Communicator, CommunicatorExt};

use super::{length, to_degrees, wrapped};
use crate::error::{ModelError, Result, agree};
use crate::mesh::topology::{Connectivity, Location};
use crate::mesh::write::{Shared, share_of};
use crate::relation::Relation;
use crate::relation::exchange::exchange;
use crate::shares::Shares;

/// A point by its bits: corners are one node if they are equal.
type Point = [u64; 2];

/// The corners of a share of cells become nodes, numbered by longitude and latitude, so that the numbers are the same
/// whoever has the cells.
pub(super) fn scrip(ds: &mut Dataset) -> Result<Shared> {
    let comm = ds.comm().clone();
    let cells = agree(&*comm, length(ds, "grid_size"))?;
    let corners = agree(&*comm, length(ds, "grid_corners"))?;
    let mine = Shares::new(cells, comm.size()).of(comm.rank());
    let mut xy: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for (out, name) in xy.iter_mut().zip(["grid_corner_lon", "grid_corner_lat"]) {
        let var = ds.var(name).map_err(ModelError::from).and_then(|var| match ds.shape(var)?[..] {
            [rows, columns] if [rows, columns] == [cells, corners] => Ok(var),
            ref shape => {
                let what = format!("its shape is {shape:?}, expected [{cells}, {corners}]");
                Err(ModelError::stored(ds.path(), format!("variable \"{name}\""), what))
            }
        });
        let var = agree(&*comm, var)?;
        let selection = match mine.is_empty() || corners == 0 {
            true => Selection::none(),
            false => Selection::slab(&[mine.start, 0], &[mine.end - mine.start, corners]),
        };
        let factor = to_degrees(ds.schema(), name, 1.0);
        *out = ds.get_all(var, &selection)?;
        out.iter_mut().for_each(|value| *value *= factor);
    }
    let points: Vec<Point> = xy[0].iter().zip(&xy[1]).map(|(lon, lat)| point(*lon, *lat)).collect();
    let (total, numbers, own) = number(&*comm, &points)?;
    let mut rows: Vec<Vec<u64>> = Vec::new();
    let mut wrong = Ok(());
    for (at, corners) in numbers.chunks(corners.max(1) as usize).enumerate() {
        // Cells of fewer corners repeat one.
        let mut row: Vec<u64> = Vec::new();
        for node in corners {
            if row.last() != Some(node) {
                row.push(*node);
            }
        }
        while row.len() > 1 && row.first() == row.last() {
            row.pop();
        }
        if row.len() < 3 && wrong.is_ok() {
            let (cell, left) = (mine.start + at as u64, row.len());
            let what = format!("cell {cell} has {left} different corners: it has no area");
            wrong = Err(ModelError::stored(ds.path(), "variable \"grid_corner_lon\"", what));
        }
        rows.push(row);
    }
    agree(&*comm, wrong)?;
    let face_node = Relation::from_rows(&*comm, total, &rows)?;
    let mut shared = Shared { counts: [total, 0, cells, 0], degrees: true, ..Shared::default() };
    shared.xy[0] = Some(own);
    let centres = ["grid_center_lon", "grid_center_lat"];
    if centres.iter().all(|name| ds.schema().var(name).is_some()) {
        let mut read: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
        for (out, name) in read.iter_mut().zip(centres) {
            let factor = to_degrees(ds.schema(), name, 1.0);
            *out = share_of(ds, name, cells)?;
            out.iter_mut().for_each(|value| *value *= factor);
        }
        read[0].iter_mut().for_each(|lon| *lon = wrapped(*lon));
        shared.xy[2] = Some(read);
    }
    let connectivity = Connectivity { from: Location::Face, to: Location::Node };
    shared.tables.push((connectivity, face_node));
    let names = ["grid_corner_lon", "grid_corner_lat", "grid_center_lon", "grid_center_lat"];
    let schema = ds.schema();
    for (number, var) in schema.vars.iter().enumerate() {
        let at = var
            .dims
            .iter()
            .rposition(|d| schema.dims.at(d.0).is_some_and(|d| &*d.name == "grid_size"));
        if let Some(at) = at.filter(|_| !names.contains(&&*var.name)) {
            shared.fields.push((esker::VarId(number), Location::Face, at));
        }
    }
    Ok(shared)
}

/// A corner as bits. At a pole every longitude is the same point; 0 has one sign.
fn point(lon: f64, lat: f64) -> Point {
    let lon = if lat.abs() == 90.0 { 0.0 } else { wrapped(lon) };
    let lon = if lon == 180.0 { -180.0 } else { lon };
    [(lon + 0.0).to_bits(), (lat + 0.0).to_bits()]
}

/// Numbers points: how many different ones all ranks have, the number of each of this rank's, and the coordinates of
/// this rank's share of the numbered ones. Collective.
type Numbered = (u64, Vec<u64>, [Vec<f64>; 2]);

fn number(comm: &dyn Communicator, points: &[Point]) -> Result<Numbered> {
    let ranks = comm.size();
    // A range of longitudes for each rank, so that numbers follow the points on any number of ranks.
    let keeper = |p: &Point| {
        let share = (f64::from_bits(p[0]) + 180.0) / 360.0;
        ((share * ranks as f64) as usize).min(ranks - 1)
    };
    let mut different: Vec<Point> = points.to_vec();
    different.sort_unstable_by_key(|p| (rising(p[0]), rising(p[1])));
    different.dedup();
    let mut asked: Vec<Vec<u64>> = vec![Vec::new(); ranks];
    for p in &different {
        asked[keeper(p)].extend(p);
    }
    let messages = asked.into_iter().enumerate().filter(|(_, words)| !words.is_empty());
    let came = exchange(comm, messages.collect())?;
    let mut kept: Vec<Point> = Vec::new();
    for (_, words) in &came {
        kept.extend(words.as_chunks::<2>().0);
    }
    kept.sort_unstable_by_key(|p| (rising(p[0]), rising(p[1])));
    kept.dedup();
    let mut first = [kept.len() as u64];
    comm.exclusive_scan(&mut first)?;
    let total = comm.sum_u64(kept.len() as u64)?;
    let places: HashMap<Point, u64> = kept.iter().copied().zip(first[0]..).collect();
    let answers = came.iter().map(|(from, words)| {
        let number = |p: &Point| places.get(p).copied().unwrap_or(0);
        (*from, words.as_chunks::<2>().0.iter().map(number).collect())
    });
    let answers = exchange(comm, answers.collect())?;
    // Keepers are in the order of their keys, and so were the questions.
    let all: Vec<u64> = answers.into_iter().flat_map(|(_, numbers)| numbers).collect();
    let known: HashMap<Point, u64> = different.into_iter().zip(all).collect();
    let numbers = points.iter().map(|p| known.get(p).copied().unwrap_or(0)).collect();
    // From those who number to those whose share it is.
    let shares = Shares::new(total, ranks);
    let mut to: Vec<Vec<u64>> = vec![Vec::new(); ranks];
    for (p, number) in kept.iter().zip(first[0]..) {
        to[shares.owner(number)].extend(p);
    }
    let messages = to.into_iter().enumerate().filter(|(_, words)| !words.is_empty());
    let mut own = [Vec::new(), Vec::new()];
    for (_, words) in exchange(comm, messages.collect())? {
        for p in words.as_chunks::<2>().0 {
            own[0].push(f64::from_bits(p[0]));
            own[1].push(f64::from_bits(p[1]));
        }
    }
    Ok((total, numbers, own))
}

/// Bits of a number as an integer of the same order.
fn rising(bits: u64) -> u64 {
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
