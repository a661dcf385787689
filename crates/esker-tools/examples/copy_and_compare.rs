//! Copies a file to CDF-5 and compares the copy with the original:
//!
//! ```text
//! cargo run -p esker-tools --example copy_and_compare -- run.nc copy.nc
//! ```

use std::error::Error;
use std::path::PathBuf;

use esker::Version;
use esker_tools::copy::{CopyOptions, copy};
use esker_tools::diff::{DiffOptions, diff};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copy_and_compare IN OUT".into());
    };
    let mut progress = |done: u64, total: u64| eprint!("\r{done} of {total} bytes ");
    let options = CopyOptions { version: Some(Version::Cdf5), ..CopyOptions::default() };
    let copied = copy(&input, &output, &options, &mut progress)?;
    eprintln!("copied: {} variables, {} records", copied.variables, copied.records);
    let report = diff(&input, &output, &DiffOptions::default(), &mut progress)?;
    eprintln!("compared: {} values", report.values_compared);
    report.lines().for_each(|line| println!("{line}"));
    if report.same() { Ok(()) } else { Err("the copy differs".into()) }
}
