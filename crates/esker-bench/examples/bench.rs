//! The benchmarks without the command `esker`, for measuring while the engine is built:
//!
//! ```text
//! cargo run --release -p esker-bench --example bench -- e3sm-f strided --ranks 2 --repeat 3
//! ```
//!
//! `plan KERNEL RANKS FILE` writes a plan file, for a peer's program alone.

use std::env;
use std::fs;
use std::process::ExitCode;

use esker_bench::kernels::{DecompositionMap, Kernel};
use esker_bench::worker::{Ranks, run_from_arguments};
use esker_bench::{Options, Peer, maps_folder, plan_file, run, svg};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match start(&arguments) {
        Ok(printed) => {
            print!("{printed}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &[String]) -> Result<String, String> {
    match arguments.split_first() {
        Some((first, rest)) if first == "worker" => run_from_arguments(rest),
        Some((first, rest)) if first == "plan" => plan(rest),
        _ => bench(arguments),
    }
}

fn plan(arguments: &[String]) -> Result<String, String> {
    let [kernel, ranks, file] = arguments else { return Err("plan KERNEL RANKS FILE".into()) };
    let kernel = Kernel::from_name(kernel).ok_or("no such kernel")?;
    let ranks = ranks.parse().map_err(|_| "not a number of ranks")?;
    let folder = maps_folder(None);
    let map = match (kernel.case(), folder) {
        (Some(case), Some(folder)) => DecompositionMap::read(case, &folder).ok(),
        _ => None,
    };
    let plan = kernel.plan(ranks, &Default::default(), map.as_ref()).map_err(|e| e.to_string())?;
    fs::write(file, plan_file::encode(&plan)).map_err(|e| e.to_string())?;
    Ok(String::new())
}

fn bench(arguments: &[String]) -> Result<String, String> {
    let mut options = Options::new(env::temp_dir());
    let program = env::current_exe().map_err(|e| e.to_string())?;
    options.worker = vec![program.into(), "worker".into()];
    let (mut json, mut picture, mut kernels) = (false, None, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text}: no number"));
        match word.as_str() {
            "--ranks" => options.ranks = number(value()?)? as usize,
            "--size" => options.scale.bytes = Some(number(value()?)?),
            "--records" => options.scale.records = Some(number(value()?)?),
            "--transfer" => options.scale.transfer = number(value()?)?,
            "--repeat" => options.repeat = number(value()?)? as usize,
            "--dir" => options.dir = value()?.into(),
            "--svg" => picture = Some(value()?),
            "--sync" => options.sync = true,
            "--json" => json = true,
            "--peer" => {
                let names = value()?;
                let peers = names.split(',').filter(|n| !n.is_empty()).map(Peer::from_name);
                options.peers = peers.collect::<Option<_>>().ok_or("no such peer")?;
            }
            "--comm" => {
                let kind = |name: &str| match name {
                    "threads" => Some(Ranks::Threads),
                    "mpi" => Some(Ranks::Mpi),
                    _ => None,
                };
                let kinds = value()?.split(',').map(kind).collect::<Option<_>>();
                options.comm = kinds.ok_or("threads or mpi")?;
            }
            name => kernels.push(Kernel::from_name(name).ok_or(format!("{name}: what is it?"))?),
        }
    }
    if !kernels.is_empty() {
        options.kernels = kernels;
    }
    let report = run(&options, &mut |next| eprintln!("{next}")).map_err(|e| e.to_string())?;
    if let Some(file) = picture {
        fs::write(&file, svg::draw(&report)).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(if json { format!("{:#}\n", report.to_json()) } else { report.to_text() })
}
