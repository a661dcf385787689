//! `esker expire`: versions of a container that may not be opened any more.

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use esker::Keep;
use esker_store::LocalStore;
use serde_json::json;

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

/// Let versions of a container expire, so that `esker gc` can remove what only they need
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A version is kept if any of the options wants it; the newest one and those with tags are always kept. One that
has expired cannot be opened any more, and `esker log` shows it as expired; what is in it goes with the next
`esker gc`. That is a version of its own, with the values of the one before it. A program that opened the
container before versions that expire now cannot commit any more, and is told.

Examples:
  esker expire run.esk --keep-last 10                       the last ten that changed something
  esker expire run.esk --keep-within 30d --every 100        a month, and every hundredth
  esker expire run.esk --keep-last 1 --dry-run              what would expire")]
#[command(group = clap::ArgGroup::new("keep").required(true).multiple(true))]
pub(super) struct Arguments {
    /// The container
    #[arg(value_name = "RUN.esk")]
    path: PathBuf,
    /// Keep the last K versions that have changed something
    #[arg(long, value_name = "K", group = "keep", value_parser = clap::value_parser!(u64).range(1..))]
    keep_last: Option<u64>,
    /// Keep versions that are not older than this: a number and s, min, h, d or w
    #[arg(long, value_name = "TIME", group = "keep", value_parser = seconds)]
    keep_within: Option<i64>,
    /// Keep versions whose numbers are multiples of N
    #[arg(long, value_name = "N", group = "keep", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
    /// Only say what would expire
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A time as people write it, in seconds: `30d`.
fn seconds(text: &str) -> Result<i64, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let each = match unit {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err("a time is a whole number and s, min, h, d or w, as in 30d".to_string()),
    };
    let number: Option<i64> = text[..text.len() - unit.len()].parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(each));
    seconds.ok_or_else(|| "that is no time".to_string())
}

pub(super) fn run(arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    let since = arguments.keep_within.map(|within| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(within)
    });
    let keep = Keep { last: arguments.keep_last.unwrap_or(1), since, every: arguments.every };
    let expired = esker::expire(&LocalStore, path, keep, arguments.dry_run);
    let expired = expired.map_err(|error| Failure::file(path, error))?;
    let name = path.display().to_string();
    if arguments.json {
        let ranges = expired.versions.iter().map(|range| json!([range.start(), range.end()]));
        let document = json!({
            "container": name,
            "expired": ranges.collect::<Vec<_>>(),
            "version": expired.number,
            "dry_run": arguments.dry_run,
        });
        json::write(screen, &document)?;
        return Ok(Outcome::Good);
    }
    let name = printable(&name);
    let would = if arguments.dry_run { "would expire" } else { "expired" };
    match expired.versions.is_empty() {
        true => writeln!(screen, "{name}: nothing expires")?,
        false => writeln!(screen, "{name}: {would}: {}", told(&expired.versions))?,
    }
    Ok(Outcome::Good)
}

/// `versions 1 to 3, 5`.
fn told(ranges: &[RangeInclusive<u64>]) -> String {
    let range = |range: &RangeInclusive<u64>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    };
    let all: Vec<String> = ranges.iter().map(range).collect();
    let one = ranges.len() == 1 && ranges[0].start() == ranges[0].end();
    format!("version{} {}", if one { "" } else { "s" }, all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_that_nobody_can_mistake() {
        for (text, expected) in
            [("30d", 2_592_000), ("2w", 1_209_600), ("36h", 129_600), ("5min", 300), ("0s", 0)]
        {
            assert_eq!(seconds(text), Ok(expected));
        }
        for wrong in
            ["", "30", "d", "5m", "-1d", "1.5h", "99999999999999999999w", "9999999999999999w"]
        {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_told_shortly() {
        assert_eq!(told(&[4..=4]), "version 4");
        assert_eq!(told(&[1..=3, 5..=5, 7..=8]), "versions 1 to 3, 5, 7 to 8");
    }
}
