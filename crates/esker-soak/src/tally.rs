//! What all trials came to.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::judge::Verdict;
use crate::trial::{Kind, Outcome};

/// Sums of one kind.
#[derive(Debug, Clone, Default)]
struct Sums {
    runs: u64,
    missed: u64,
    right: u64,
    errors: u64,
    silent: u64,
    crashed: u64,
    lost: u64,
}

impl Sums {
    fn is_good(&self) -> bool {
        self.crashed == 0 && self.silent == 0 && self.lost == 0
    }
}

/// Sums of all kinds, and the first few of what was bad in each.
pub(crate) struct Tally {
    order: Vec<Kind>,
    sums: BTreeMap<Kind, Sums>,
}

/// So many of a kind are told with their seeds.
const TOLD: u64 = 3;

impl Tally {
    pub(crate) fn new(kinds: &[Kind]) -> Tally {
        Tally { order: kinds.to_vec(), sums: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, kind: Kind, seed: u64, outcome: Outcome) {
        let name = kind.name();
        let sums = self.sums.entry(kind).or_default();
        let tell = |number: u64, what: &str, why: &str| {
            if number <= TOLD {
                println!("{what}: {why}\n  again: esker-soak --kind {name} --seed {seed}");
            }
        };
        sums.runs += 1;
        match outcome {
            Outcome::Missed => sums.missed += 1,
            Outcome::Judged(Verdict::Right) => sums.right += 1,
            Outcome::Judged(Verdict::Told(why)) => {
                sums.errors += 1;
                if kind.errors_are_losses() {
                    sums.lost += 1;
                    tell(sums.lost, "LOST, with an error", &why);
                }
            }
            Outcome::Judged(Verdict::Silent(why)) => {
                sums.silent += 1;
                tell(sums.silent, "SILENT DIFFERENCE", &why);
            }
            Outcome::Crashed(why) => {
                sums.crashed += 1;
                tell(sums.crashed, "CRASH", &why);
            }
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.sums.values().all(Sums::is_good)
    }

    pub(crate) fn print(&self, time: Duration, rounds: u64) {
        println!(
            "\n{:<36} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "kind", "runs", "missed", "right", "errors", "silent", "crashed"
        );
        let mut all = Sums::default();
        let (mut passed, mut failed) = (0, 0);
        for kind in &self.order {
            let Some(sums) = self.sums.get(kind) else { continue };
            let good = sums.is_good();
            let remark = if good { "" } else { "  <- FAILED" };
            println!(
                "{:<36} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}{remark}",
                kind.name(),
                sums.runs,
                sums.missed,
                sums.right,
                sums.errors,
                sums.silent,
                sums.crashed
            );
            all.runs += sums.runs;
            all.silent += sums.silent;
            all.errors += sums.errors;
            all.crashed += sums.crashed;
            all.lost += sums.lost;
            if good { passed += 1 } else { failed += 1 }
        }
        println!(
            "\n{} trials in {rounds} rounds and {:.0} s: {} errors, of which {} losses; {} silent differences; {} crashes",
            all.runs,
            time.as_secs_f64(),
            all.errors,
            all.lost,
            all.silent,
            all.crashed
        );
        println!("{passed} passed, {failed} failed, 0 skipped");
    }
}
