//! Steps of a run that finish in any order and appear in theirs, while a reader follows them.
//!
//!     cargo run --example transactions [RUN.esk]

use std::path::Path;
use std::time::Duration;

use esker::{BeginOptions, Committed, CreateOptions, Dataset, DimLen, ExternalType, Layout};
use esker::{OpenOptions, Result, Selection, Transaction};
use esker_store::LocalStore;

const STEPS: u64 = 6;
const CELLS: u64 = 4;

/// Computes a step, and commits it as version `step + 2`: version 1 has the definitions.
fn step(file: &Path, step: u64) -> Result<Committed> {
    let options = BeginOptions::new().number(step + 2).message(&format!("step {step}"));
    let mut tx = Transaction::begin(file, options)?;
    let t = tx.var("t")?;
    tx.put(t, &Selection::slab(&[step, 0], &[1, CELLS]), &[step as f32; CELLS as usize])?;
    tx.commit()
}

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("transactions.esk".into());
    let file: &Path = file.as_ref();
    let mut define = Dataset::create(file, CreateOptions::new().layout(Layout::Log))?;
    let time = define.add_dim("time", DimLen::Unlimited)?;
    let cell = define.add_dim("cell", DimLen::Fixed(CELLS))?;
    define.add_var("t", ExternalType::Float, &[time, cell])?;
    define.enddef()?.close()?;

    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<Vec<u64>> {
            let mut seen = Vec::new();
            // Only whole steps, in their order, whatever the order in which they finish.
            for version in esker::follow(file, 1, Some(Duration::from_secs(30)), OpenOptions::new())
            {
                seen.push(version?.numrecs());
                if seen.last() == Some(&STEPS) {
                    break;
                }
            }
            Ok(seen)
        });
        // Every other step first; one does not converge, and is given up.
        for done in (1..STEPS).step_by(2) {
            assert!(!step(file, done)?.is_visible());
        }
        for done in (0..STEPS).step_by(2) {
            match done {
                2 => esker::skip(&LocalStore, file, done + 2, "it did not converge")?,
                done => drop(step(file, done)?),
            }
        }
        reader.join().unwrap_or_else(|_| Ok(Vec::new()))
    })?;
    println!("a reader saw {seen:?} records");
    Ok(())
}
