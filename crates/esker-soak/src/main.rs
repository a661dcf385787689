//! `esker-soak [SECONDS]` lets datasets of all forms live, die, lose power, meet faults and be
//! damaged, in turn, and judges what is left by its *values*: every read gives what was written, or an
//! error. docs/soak.md says what is counted.
//!
//! ```text
//! esker-soak SECONDS            all kinds in turn, for so long
//! esker-soak --rounds N         so many turns, with fixed seeds
//! esker-soak --kind K --seed S  one trial again
//! esker-soak --kinds            the names of all kinds
//! ```
//!
//! `--only TEXT` takes the kinds whose names contain it.

mod damage;
mod form;
mod judge;
mod life;
mod structures;
mod tally;
mod trial;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use esker_testkit::memory;

use form::Form;
use tally::Tally;
use trial::{Family, Kind, Outcome};

#[global_allocator]
static COUNTING: memory::Counting = memory::Counting;

/// What is asked for.
struct Wishes {
    limit: Option<Duration>,
    rounds: u64,
    seed: u64,
    kind: Option<Kind>,
    only: String,
}

fn wishes(words: &[String]) -> Result<Wishes, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |t| t.as_nanos() as u64);
    let mut wishes = Wishes {
        limit: None,
        rounds: u64::MAX,
        seed: now >> 10 << 10,
        kind: None,
        only: String::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut next = || words.next().ok_or(format!("{word} needs something behind it"));
        match word.as_str() {
            "--rounds" => {
                wishes.rounds = number(next()?)?;
                wishes.seed = 0;
            }
            "--seed" => wishes.seed = number(next()?)?,
            "--only" => wishes.only = next()?.clone(),
            "--kind" => {
                let name = next()?;
                let kind = Kind::of_name(name).ok_or(format!("there is no kind {name}"))?;
                wishes.kind = Some(kind);
                wishes.rounds = 1;
            }
            seconds => wishes.limit = Some(Duration::from_secs(number(seconds)?)),
        }
    }
    if wishes.limit.is_none() && wishes.rounds == u64::MAX {
        wishes.limit = Some(Duration::from_secs(300));
    }
    Ok(wishes)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rank", form, seed, steps, folder] => {
            let Some(form) = Form::of_name(form) else { return ExitCode::FAILURE };
            let (Ok(seed), Ok(steps)) = (number(seed), number(steps)) else {
                return ExitCode::FAILURE;
            };
            return match trial::rank(form, seed, steps, Path::new(folder)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::FAILURE
                }
            };
        }
        ["--kinds"] => {
            Kind::all().iter().for_each(|kind| println!("{}", kind.name()));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    match wishes(&words) {
        Ok(wishes) => soak(&wishes),
        Err(error) => {
            eprintln!("esker-soak: {error}");
            ExitCode::from(2)
        }
    }
}

fn soak(wishes: &Wishes) -> ExitCode {
    let here: Vec<Family> =
        [Family::Mpich, Family::OpenMpi].into_iter().filter(|family| family.is_here()).collect();
    let runs_here = |kind: &Kind| match kind {
        Kind::Jobs(_, family) | Kind::Kills(_, family) => here.contains(family),
        _ => true,
    };
    let kinds = match wishes.kind {
        Some(kind) => vec![kind],
        None => {
            let all = Kind::all().into_iter().filter(runs_here);
            all.filter(|kind| kind.name().contains(&wishes.only)).collect()
        }
    };
    let mut tally = Tally::new(&kinds);
    let begun = Instant::now();
    let over = || wishes.limit.is_some_and(|limit| begun.elapsed() > limit);
    let mut round = 0;
    while round < wishes.rounds && !over() {
        for (turn, kind) in kinds.iter().enumerate() {
            // A job of MPI takes as long as a hundred trials without: they come less often.
            let share = Kind::all().len() / 4;
            let turns = wishes.kind.is_none() && kind.needs_mpi();
            if over() || (turns && !(round as usize + turn).is_multiple_of(share)) {
                continue;
            }
            let seed = wishes.seed.wrapping_add(round);
            now(*kind, seed);
            let outcomes = std::panic::catch_unwind(|| kind.run(seed));
            let crashed = || vec![Outcome::Crashed("a panic".into())];
            for outcome in outcomes.unwrap_or_else(|_| crashed()) {
                tally.add(*kind, seed, outcome);
            }
        }
        round += 1;
    }
    tally.print(begun.elapsed(), round);
    if tally.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Leaves behind what is being done, for those who find this program dead.
fn now(kind: Kind, seed: u64) {
    if let Some(path) = std::env::var_os("ESKER_SOAK_NOW") {
        let _ = std::fs::write(path, format!("--kind {} --seed {seed}\n", kind.name()));
    }
}
