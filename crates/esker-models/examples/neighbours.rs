//! Which faces of a mesh share an edge, on several ranks, none of which has the whole mesh.
//!
//! `cargo run --release -p esker-models --example neighbours -- 1000 4` makes a mesh of 1000 x 1000 squares and
//! takes 4 ranks; without arguments it is small.

use std::error::Error;
use std::time::Instant;

use esker_comm::CommunicatorExt;
use esker_models::Shares;
use esker_models::relation::Relation;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let side = numbers.next().transpose()?.unwrap_or(20);
    let ranks = numbers.next().transpose()?.unwrap_or(2) as usize;
    let outcomes = esker::launch(ranks, |comm| -> esker_models::Result<(u64, f64)> {
        let comm = &*comm;
        // This rank's share of the faces: four nodes each.
        let mine = Shares::new(side * side, comm.size()).of(comm.rank());
        let corners = |face: u64| {
            let first = face / side * (side + 1) + face % side;
            [first, first + 1, first + side + 2, first + side + 1]
        };
        let rows: Vec<[u64; 4]> = mine.map(corners).collect();
        let clock = Instant::now();
        let face_node = Relation::from_rows(comm, (side + 1) * (side + 1), &rows)?;
        let node_face = face_node.invert(comm)?;
        let shared = face_node.compose(comm, &node_face)?;
        let face_face = shared.at_least(2.0).without_itself();
        let pairs = comm.sum_u64(face_face.indices.len() as u64)?;
        Ok((pairs, clock.elapsed().as_secs_f64()))
    });
    for outcome in outcomes {
        let (pairs, seconds) = outcome?;
        // Every inner edge is between two faces.
        assert_eq!(pairs, 4 * side * (side - 1));
        println!("{pairs} neighbours in {seconds:.3} s");
    }
    Ok(())
}
