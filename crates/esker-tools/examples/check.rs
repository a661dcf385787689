//! Prints what is found in the files named, as `esker check` does.
use std::process::ExitCode;

use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, Verdict, check};

fn main() -> ExitCode {
    let mut worst = 0;
    for path in std::env::args().skip(1) {
        let result = check(&path, &CheckOptions::default(), &mut Unseen);
        let verdict = Verdict::of(&result);
        println!("{path}: {}", verdict.name());
        match result {
            Ok(report) => {
                for finding in report.findings {
                    println!("  {} ({}): {finding}", finding.severity, finding.code);
                }
            }
            Err(error) => eprintln!("  {error}"),
        }
        worst = worst.max(verdict.exit_code());
    }
    ExitCode::from(worst)
}
