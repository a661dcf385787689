//! Neighbours tell each other their outermost heights.

use std::sync::Arc;

use esker_comm::{Communicator, Message, Result, Tag};

use super::blocks::{Blocks, Side};
use super::waves::Waves;

/// Fills the rim of this rank's block: one message to and from each neighbour.
pub(super) fn exchange(
    comm: &Arc<dyn Communicator>,
    blocks: &Blocks,
    waves: &mut Waves,
) -> Result<()> {
    let rank = comm.rank();
    let mut receives = Vec::new();
    let mut sends = Vec::new();
    for side in Side::ALL {
        if let Some(neighbour) = blocks.neighbour(rank, side) {
            let edge = waves.edge(side);
            let length = edge.len() * size_of::<f32>();
            receives.push((side, comm.irecv_sized(neighbour, tag(side.opposite()), length)?));
            let bytes: Vec<u8> = edge.iter().flat_map(|height| height.to_le_bytes()).collect();
            sends.push(comm.isend(neighbour, tag(side), Message::from(bytes))?);
        }
    }
    for (side, receive) in receives {
        let received = receive.wait()?;
        let heights = received.message.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
        waves.set_rim(side, heights);
    }
    sends.into_iter().try_for_each(|send| send.wait())
}

/// Two blocks can be neighbours on one side only, but a tag for each keeps mistakes apart.
fn tag(side: Side) -> Tag {
    match side {
        Side::South => 1,
        Side::North => 2,
        Side::West => 3,
        Side::East => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::sea::{Area, Grid};
    use crate::commands::demo::waves::Fields;

    const SMALL: Grid = Grid { columns: 40, rows: 20, step: 50.0, steps_per_record: 10 };

    fn simulate(grid: Grid, ranks: usize) -> Vec<(Area, Fields)> {
        esker::launch(ranks, |comm| {
            let blocks = Blocks::new(ranks, grid.rows, grid.columns);
            let area = blocks.area(comm.rank());
            let mut waves = Waves::new(&grid, area.clone());
            for _ in 0..60 {
                waves.step();
                exchange(&comm, &blocks, &mut waves).unwrap();
            }
            (area, waves.fields())
        })
    }

    #[test]
    fn any_number_of_ranks_computes_the_same_bits() {
        for grid in [SMALL, Grid { columns: 9, rows: 3, ..SMALL }] {
            let [(_, whole)] = <[_; 1]>::try_from(simulate(grid, 1)).unwrap();
            for ranks in [2, 3, 4, 7, 16, 37] {
                for (area, fields) in simulate(grid, ranks) {
                    let rows = area.rows.clone().map(|row| row * grid.columns);
                    let places = rows.flat_map(|row| area.columns.clone().map(move |c| row + c));
                    for (i, place) in places.enumerate() {
                        assert_eq!(fields.eta[i].to_bits(), whole.eta[place].to_bits());
                        assert_eq!(fields.u[i].to_bits(), whole.u[place].to_bits());
                        assert_eq!(fields.v[i].to_bits(), whole.v[place].to_bits());
                    }
                }
            }
        }
    }
}
