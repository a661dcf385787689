//! Prints a file as CDL, or makes a file of CDL: `dump FILE.nc`, `dump FILE.cdl FILE.nc`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use esker::Dataset;
use esker_tools::cdl::{self, DumpOptions, GenerateOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file] => {
            let mut out = std::io::stdout().lock();
            cdl::dump(&Dataset::open(file)?, &DumpOptions::default(), &mut out)?;
            out.flush()?;
        }
        [text, file] => {
            let text = std::fs::read(text)?;
            let made = cdl::generate(&text, Path::new(file), &GenerateOptions::default())?;
            for note in made.notes {
                eprintln!("{note}");
            }
        }
        _ => eprintln!("dump FILE.nc | dump FILE.cdl FILE.nc"),
    }
    Ok(())
}
