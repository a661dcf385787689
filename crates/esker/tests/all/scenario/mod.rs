//! A random life of a dataset on any number of ranks, checked against a plain array.
//!
//! Every rank runs the same scenario from the same seed, so each knows what all of them do,
//! and holds the model of the whole dataset.

// Each program uses some of it.
#![allow(dead_code)]

mod buffer;
mod decomposed;
mod dice;
mod life;
pub(crate) mod shares;

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, OpenOptions};

pub(crate) use dice::Dice;
use life::Life;

/// A variable as it should be in the end: its name and its values, `None` where anything may be.
pub(crate) type Expected = Vec<(String, Vec<Option<f64>>)>;

/// How a dataset is stored, and what that needs of its options.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) chunks: bool,
    pub(crate) folder: bool,
    pub(crate) log: bool,
    pub(crate) burst: bool,
    pub(crate) create: fn(CreateOptions) -> CreateOptions,
    pub(crate) open: fn(OpenOptions) -> OpenOptions,
}

impl Way {
    /// A classic file.
    pub(crate) fn plain() -> Way {
        let (create, open) = (|options| options, |options| options);
        Way { chunks: false, folder: false, log: false, burst: false, create, open }
    }

    /// The way that a dataset of this name is stored: programs on other ranks hear no more than the name.
    pub(crate) fn named(path: &Path) -> Way {
        let name = path.to_str().unwrap();
        Way {
            chunks: name.ends_with(".chunk.nc"),
            folder: name.contains(".sub."),
            log: name.ends_with(".esk"),
            burst: name.contains(".burst."),
            ..Way::plain()
        }
    }
}

/// Runs a whole scenario. Panics where the dataset and the model differ.
pub(crate) fn run(seed: u64, comm: Arc<dyn Communicator>, path: &Path) -> Expected {
    run_as(Way::named(path), seed, comm, path)
}

/// The same for a dataset that is stored in this way.
pub(crate) fn run_as(way: Way, seed: u64, comm: Arc<dyn Communicator>, path: &Path) -> Expected {
    let mut life = Life::begin(way, seed, comm, path);
    for step in 0..12 {
        life.step(step);
    }
    life.end()
}

/// Runs a scenario with decomposed variables.
pub(crate) fn run_decomposed(seed: u64, comm: Arc<dyn Communicator>, path: &Path) {
    decomposed::run(seed, comm, path);
}

/// Writes down what a file should hold, for a reader that knows nothing of us: a line for each
/// variable with its name and its values, `?` where anything may be.
pub(crate) fn note(expected: &Expected, path: &Path) {
    let mut text = String::new();
    for (name, values) in expected {
        let word = |value: &Option<f64>| value.map_or("?".to_string(), |v| format!("{v:?}"));
        let words: Vec<String> = values.iter().map(word).collect();
        text.push_str(&format!("{name} {}\n", words.join(" ")));
    }
    std::fs::write(path, text).unwrap();
}

/// Two datasets that are open at once on one communicator, used in turn.
pub(crate) fn run_two(seed: u64, comm: Arc<dyn Communicator>, path: &Path) {
    let mut first = Life::begin(Way::named(path), seed, comm.clone(), path);
    let other = path.with_extension("second.nc");
    let mut second = Life::begin(Way::named(&other), seed + 1, comm, &other);
    let mut dice = Dice::new(seed);
    for step in 0..12 {
        if dice.one_in(2) { first.step(step) } else { second.step(step) }
    }
    second.end();
    first.end();
}

/// Datasets of parts of the ranks, all at the same time.
pub(crate) fn run_split(seed: u64, comm: Arc<dyn Communicator>, path: &Path) {
    let mut dice = Dice::new(seed);
    let parts = 1 + dice.below(3);
    let part = comm.rank() as u64 % parts;
    // The highest rank of the world is rank 0 of its part.
    let key = -(comm.rank() as i32);
    let group = comm.split(Some(part as u32), key).unwrap().unwrap();
    run(seed + part, group, &path.with_extension(format!("{part}.nc")));
    comm.barrier().unwrap();
}
