//! A container keeps a named version and the last few; what only the others needed goes.
//!
//!     cargo run --example expiry [RUN.esk]

use std::path::Path;

use esker::{
    CreateOptions, Dataset, DimLen, ExternalType, GcOptions, Keep, Layout, Result, Selection,
};
use esker_store::LocalStore;

const STEPS: i32 = 200;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or("expiry.esk".into());
    let file: &Path = file.as_ref();
    let mut define = Dataset::create(file, CreateOptions::new().layout(Layout::Log))?;
    let x = define.add_dim("x", DimLen::Fixed(1000))?;
    let state = define.add_var("state", ExternalType::Int, &[x])?;
    let mut dataset = define.enddef()?;
    for step in 1..=STEPS {
        // The same elements again and again, as a checkpoint has them.
        dataset.put(state, &Selection::all(), &[step; 1000])?;
        dataset.commit()?;
    }
    dataset.close()?;

    // Version 1 has the definitions, so that version 51 is step 50.
    esker::tag(&LocalStore, file, "spin-up", Some(51), "as published")?;
    let keep = Keep { last: 2, ..Keep::default() };
    let expired = esker::expire(&LocalStore, file, keep, false)?;
    let collected = esker::gc(&LocalStore, file, &GcOptions::default())?;
    let gone = Dataset::open(named(file, "7")).err().map(|error| error.to_string());
    println!(
        "{} ranges of versions have expired: {}",
        expired.versions.len(),
        gone.unwrap_or_default()
    );
    println!("{} files are gone", collected.files.len());
    for (name, step) in [("spin-up", 50), ("200", STEPS - 1), ("201", STEPS)] {
        let values: Vec<i32> = Dataset::open(named(file, name))?.get(state, &Selection::all())?;
        assert_eq!(values, [step; 1000]);
    }
    Ok(())
}

/// `RUN.esk@NAME`.
fn named(file: &Path, name: &str) -> String {
    format!("{}@{name}", file.display())
}
