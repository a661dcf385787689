//! `esker simulate owners`: how evenly chunks are shared, and how much moves for that.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use esker::owners::DEFAULT_WEIGHT;
use esker_tools::simulate::{
    Homes, MapError, Maps, Outcome, Pattern, Rule, Setting, Workload, simulate,
};
use serde_json::{Value, json};

use super::ranks;
use crate::arguments::size;
use crate::failure::{Ended, Failure, Outcome as End};
use crate::terminal::quantity::grouped;
use crate::terminal::table::{Side, Table};
use crate::terminal::{Screen, json};

/// Which rank would own which chunk: balance and moved bytes, beside HDF5's rule
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Patterns (all of them without a name or a map):
  checkerboard  ranks are squares of a grid, each a quarter of a chunk, in several variables
  blocks        each rank has whole chunks
  misaligned    each rank has a contiguous part that does not end where a chunk ends
  uneven        whole chunks; half of the ranks have none, a few have many
  one-writer    rank 0 has everything
  pandana       108 variables of very different lengths, each rank with a part of each
  random        each chunk is shared by one to four ranks, somewhere
--map takes a decomposition map as E3SM records them; more ranks than it has get copies of the grid.

The owner of a chunk is the rank with the highest (access / chunk size) - WEIGHT * (owned / fair
share); by HDF5's rule it is the largest writer. \"most / mean\" is what the rank that owns most
has over the mean of all ranks; \"moved\" the share of the bytes that are not with their owner;
\"time\" that of choosing all owners, which homes share in a real write.

Examples:
  esker simulate owners
  esker simulate owners one-writer uneven --ranks 64,4k --weight 0,0.5,1,2
  esker simulate owners blocks --ranks 1M            1,048,576 ranks
  esker simulate owners random --ranks 4096 --homes 64
  esker simulate owners --map map_f_case_16p.nc --ranks 16,256 --chunk 256k
  esker simulate owners --json > owners.json")]
pub(super) struct Arguments {
    /// Patterns of writing
    #[arg(value_name = "PATTERN", value_parser = pattern)]
    patterns: Vec<Pattern>,
    /// A decomposition map, in place of a pattern or besides
    #[arg(long, value_name = "FILE")]
    map: Vec<PathBuf>,
    /// Numbers of ranks, up to 1M (1,048,576)
    #[arg(long, value_name = "N,…", default_value = "4,64,4096", value_delimiter = ',')]
    #[arg(value_parser = ranks)]
    ranks: Vec<u32>,
    /// Weights of the workload penalty
    #[arg(long, value_name = "W,…", default_values_t = [DEFAULT_WEIGHT], value_delimiter = ',')]
    #[arg(value_parser = weight)]
    weight: Vec<f64>,
    /// Ranks that choose, each for a part of the chunks: auto (one for 65,536 accesses) or a number
    #[arg(long, value_name = "N", default_value = "auto", value_parser = homes)]
    homes: Homes,
    /// Bytes of a chunk, up to 4G
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = chunk)]
    chunk: u64,
    /// Chunks of data for each rank
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u64).range(1..=1024))]
    per_rank: u64,
    /// What uneven and random begin with
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn pattern(name: &str) -> Result<Pattern, String> {
    let names: Vec<&str> = Pattern::ALL.iter().map(|pattern| pattern.name()).collect();
    Pattern::from_name(name).ok_or_else(|| format!("the patterns are {}", names.join(", ")))
}

fn weight(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1e6).contains(&number) => Ok(number),
        _ => Err("write a number from 0 to 1000000".into()),
    }
}

fn homes(text: &str) -> Result<Homes, String> {
    match text.parse::<u64>() {
        _ if text == "auto" => Ok(Homes::Auto),
        Ok(homes) if homes > 0 => Ok(Homes::Number(homes)),
        _ => Err("write auto or a number".into()),
    }
}

fn chunk(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    let fits = (16..=1 << 32).contains(&bytes);
    if fits { Ok(bytes) } else { Err("a chunk has 16 bytes to 4G".into()) }
}

/// Where the accesses come from.
enum Origin {
    Pattern(Pattern),
    Map(String, Maps),
}

impl Origin {
    fn name(&self) -> &str {
        match self {
            Origin::Pattern(pattern) => pattern.name(),
            Origin::Map(name, _) => name,
        }
    }

    fn workload(&self, setting: &Setting) -> Workload {
        match self {
            Origin::Pattern(pattern) => Workload::new(*pattern, setting),
            Origin::Map(_, maps) => Workload::of_maps(maps, setting),
        }
    }
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let origins = origins(arguments)?;
    let weights = arguments.weight.iter().map(|weight| Rule::Preference(*weight));
    let rules: Vec<Rule> = [Rule::LargestWriter].into_iter().chain(weights).collect();
    let columns = [
        ("pattern", Side::Left),
        ("ranks", Side::Right),
        ("chunks", Side::Right),
        ("rule", Side::Left),
        ("homes", Side::Right),
        ("chunks most / mean", Side::Right),
        ("bytes most / mean", Side::Right),
        ("moved", Side::Right),
        ("time", Side::Right),
    ];
    let mut table = Table::new(columns);
    let mut results = Vec::new();
    for origin in &origins {
        for ranks in &arguments.ranks {
            let (chunk, per_rank, seed) = (arguments.chunk, arguments.per_rank, arguments.seed);
            let workload = origin.workload(&Setting { ranks: *ranks, chunk, per_rank, seed });
            for rule in &rules {
                let doing = format!("{}, {ranks} ranks, {}", origin.name(), rule_name(*rule));
                let mut bar = screen.bar(doing).counting("chunks");
                let mut progress = |done, total| bar.update(done, total);
                let outcome = simulate(&workload, *rule, arguments.homes, &mut progress);
                drop(bar);
                table.row(row(origin.name(), *rule, &outcome));
                results.push(result(origin.name(), *rule, &workload, &outcome));
            }
        }
    }
    if arguments.json {
        let setting = json!({
            "chunk_bytes": arguments.chunk,
            "chunks_per_rank": arguments.per_rank,
            "seed": arguments.seed,
            "results": results,
        });
        json::write(screen, &setting)?;
    } else {
        let (depth, width) = (screen.depth, screen.width);
        table.write(screen, depth, width)?;
        writeln!(screen)?;
    }
    Ok(End::Good)
}

fn origins(arguments: &Arguments) -> Result<Vec<Origin>, Failure> {
    let named = !arguments.patterns.is_empty() || !arguments.map.is_empty();
    let patterns = if named { &arguments.patterns[..] } else { &Pattern::ALL };
    let mut origins: Vec<Origin> = patterns.iter().map(|p| Origin::Pattern(*p)).collect();
    for path in &arguments.map {
        let maps = Maps::read(path).map_err(|error: MapError| Failure::file(path, error))?;
        let name = path.file_stem().map_or("map".into(), |name| name.to_string_lossy());
        origins.push(Origin::Map(name.into_owned(), maps));
    }
    Ok(origins)
}

fn rule_name(rule: Rule) -> String {
    match rule {
        Rule::LargestWriter => "HDF5".into(),
        Rule::Preference(weight) => format!("weight {weight}"),
    }
}

fn row(pattern: &str, rule: Rule, outcome: &Outcome) -> [String; 9] {
    let homes = match rule {
        Rule::LargestWriter => String::new(),
        Rule::Preference(_) => grouped(outcome.homes),
    };
    [
        pattern.to_string(),
        grouped(outcome.ranks.into()),
        grouped(outcome.chunks),
        rule_name(rule),
        homes,
        format!("{:.2}", outcome.chunks_over_mean()),
        format!("{:.2}", outcome.bytes_over_mean()),
        format!("{:.1}%", 100.0 * outcome.moved_share()),
        time(outcome.time),
    ]
}

/// A time of three digits or so.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

fn result(pattern: &str, rule: Rule, workload: &Workload, outcome: &Outcome) -> Value {
    let (name, weight, homes) = match rule {
        Rule::LargestWriter => ("hdf5", Value::Null, Value::Null),
        Rule::Preference(weight) => ("preference", json::float(weight), outcome.homes.into()),
    };
    json!({
        "pattern": pattern,
        "ranks": outcome.ranks,
        "chunks": outcome.chunks,
        "chunk_bytes": outcome.bytes,
        "accesses": workload.accesses,
        "accessed_bytes": outcome.accessed,
        "rule": name,
        "weight": weight,
        "homes": homes,
        "most_chunks": outcome.most_chunks,
        "most_bytes": outcome.most_bytes,
        "chunks_most_over_mean": json::float(outcome.chunks_over_mean()),
        "bytes_most_over_mean": json::float(outcome.bytes_over_mean()),
        "owners": outcome.owners,
        "moved_bytes": outcome.moved,
        "moved_share": json::float(outcome.moved_share()),
        "seconds": json::float(outcome.time.as_secs_f64()),
    })
}
