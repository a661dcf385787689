//! Schedules cost what the literature and other programs say, and can be carried out.

use esker_adjoint::schedule::{
    Action, Audit, Hierarchy, Mixed, Online, Periodic, Place, Revolve, Schedule, ScheduleError,
    SingleDisk, SingleMemory, StepCosts, Trajectory, TwoLevel, binomial, mixed_forward_steps,
};
use serde_json::Value;

/// Facts from other programs, where this machine has them: name and content.
fn facts() -> Vec<(String, Value)> {
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    esker_testkit::data::files("revolve").into_iter().map(read).collect()
}

fn shared(name: &str) -> Option<Value> {
    facts().into_iter().find(|(found, _)| found == name).map(|(_, value)| value)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a number: {value}"))
}

#[test]
fn forward_steps_are_those_of_the_closed_form() {
    let Some(facts) = shared("optimal_counts.json") else { return };
    let rows = facts["rows"].as_array().unwrap();
    assert!(rows.len() >= 1800);
    for row in rows {
        let (n, s, extra, total) =
            (number(&row[0]), number(&row[1]), number(&row[2]), number(&row[3]));
        assert_eq!(binomial::forward_steps(n, s), Some(total), "{n} steps, {s}");
        assert_eq!(total, extra + n);
    }
    let facts = shared("beta.json").unwrap();
    for row in facts["rows"].as_array().unwrap() {
        let (s, r) = (number(&row[0]), number(&row[1]));
        assert_eq!(Some(binomial::beta(s, r)), row[2].as_u64(), "{s} {r}");
    }
}

#[test]
fn schedules_cost_no_more_than_those_of_other_programs() {
    let mut seen = 0;
    for (name, facts) in facts().into_iter().filter(|(_, facts)| facts["class"].is_string()) {
        let of = |key: &str| facts["params"][key].as_u64();
        let first = |keys: &[&str]| keys.iter().find_map(|key| of(key));
        let n = first(&["max_n", "finalize"]).unwrap();
        let memory = first(&["ram", "snapshots_in_ram", "snapshots", "s"]);
        let disk = first(&["disk", "snapshots_on_disk"]);
        let trajectory = match facts["params"]["trajectory"].as_str() {
            Some("revolve") => Trajectory::Revolve,
            _ => Trajectory::Maximum,
        };
        let costs = StepCosts::default();
        // Where the number of forward steps is the goal, it must be the same; else the time.
        let (mut schedule, exact): (Box<dyn Schedule>, bool) =
            match facts["class"].as_str().unwrap() {
                "Revolve" => (Box::new(Revolve::new(n, memory.unwrap()).unwrap()), true),
                "MultistageCheckpointSchedule" => {
                    let (memory, disk) = (memory.unwrap_or(0), disk.unwrap_or(0));
                    let made = Revolve::multistage(n, memory, disk, trajectory).unwrap();
                    (Box::new(made), true)
                }
                "MixedCheckpointSchedule" => {
                    (Box::new(Mixed::new(n, memory.unwrap(), Place::Memory).unwrap()), true)
                }
                "HRevolve" => {
                    (Box::new(Hierarchy::new(n, memory.unwrap(), disk, costs).unwrap()), false)
                }
                "DiskRevolve" => {
                    (Box::new(Hierarchy::new(n, memory.unwrap(), None, costs).unwrap()), false)
                }
                "PeriodicDiskRevolve" => {
                    (Box::new(Periodic::new(n, memory.unwrap(), costs).unwrap()), false)
                }
                "TwoLevelCheckpointSchedule" => {
                    let (period, slots) =
                        (of("period").unwrap(), of("binomial_snapshots").unwrap());
                    let made = TwoLevel::new(period, slots, Place::Memory, trajectory).unwrap();
                    (Box::new(made), true)
                }
                "SingleMemoryStorageSchedule" => (Box::new(SingleMemory::default()), true),
                other => panic!("{name}: {other}"),
            };
        let audit = Audit::of(schedule.as_mut(), n).unwrap_or_else(|e| panic!("{name}: {e}"));
        let theirs = number(&facts["total_forward_steps"]);
        let transfers = number(&facts["reads"]["DISK"]) + number(&facts["writes"]["DISK"]);
        let ours = audit.forward + 2 * (audit.reads[1] + audit.writes[1]);
        if exact {
            assert_eq!(audit.forward, theirs, "{name}");
        } else {
            assert!(ours <= theirs + 2 * transfers, "{name}: {ours} {theirs} {transfers}");
        }
        if let Some(most) = memory {
            assert!(audit.most[0] <= most, "{name}: {audit:?}");
        }
        seen += 1;
    }
    assert!(seen >= 40 || seen == 0, "{seen}");
}

#[test]
fn every_small_schedule_can_be_carried_out_and_is_optimal() {
    let costs = StepCosts::default();
    for n in 1..=40u64 {
        for s in 1..=12u64 {
            let best = binomial::forward_steps(n, s);
            for trajectory in [Trajectory::Revolve, Trajectory::Maximum] {
                for disk in [0, 1, s / 2, s] {
                    let mut plan = Revolve::multistage(n, s - disk, disk, trajectory).unwrap();
                    let audit = Audit::of(&mut plan, n).unwrap();
                    assert_eq!(Some(audit.forward), best, "{n} {s} {disk}");
                    assert!(audit.most[0] <= s - disk && audit.most[1] <= disk);
                    assert!(plan.is_exhausted() && plan.next_action().is_none());
                }
            }
            let audit = Audit::of(&mut Mixed::new(n, s, Place::Disk).unwrap(), n).unwrap();
            assert_eq!(Ok(audit.forward), mixed_forward_steps(n, s));
            assert!(audit.most[1] <= s && audit.most[0] == 0);
            for disk in [Some(0), Some(1), Some(4), None] {
                let mut plan = Hierarchy::new(n, s, disk, costs).unwrap();
                let promised = plan.cost();
                let audit = Audit::of(&mut plan, n).unwrap();
                let time = audit.forward + 2 * (audit.writes[1] + audit.reads[1]);
                assert_eq!(time as f64, promised, "{n} {s} {disk:?} {audit:?}");
                assert!(audit.most[0] <= s && disk.is_none_or(|disk| audit.most[1] <= disk));
            }
            let audit = Audit::of(&mut Periodic::new(n, s, costs).unwrap(), n).unwrap();
            assert!(audit.most[0] <= s);
            for period in [1, 3, 7] {
                let mut plan =
                    TwoLevel::new(period, s, Place::Memory, Trajectory::Maximum).unwrap();
                let audit = Audit::of(&mut plan, n).unwrap();
                assert!(audit.most[0] <= s && audit.most[1] == n.div_ceil(period));
            }
        }
        Audit::of(&mut SingleDisk::new(true), n).unwrap();
        Audit::of(&mut SingleDisk::new(false), n).unwrap();
        assert_eq!(Audit::of(&mut SingleMemory::default(), n).unwrap().forward, n);
        // Nothing in memory: everything from disk.
        let mut plan = Hierarchy::new(n, 0, None, costs).unwrap();
        Audit::of(&mut plan, n).unwrap();
    }
}

/// The least time of H-Revolve with 0, 1, … checkpoints on disk, by its definition: for each number of steps, from a
/// state that is not kept.
fn least_times(steps: usize, memory: u64, disk: usize, costs: StepCosts) -> Vec<Vec<f64>> {
    let StepCosts { forward, write, read } = costs;
    let alone = |n: usize| {
        let runs = binomial::forward_steps(n as u64, memory);
        runs.map_or(f64::INFINITY, |runs| runs as f64 * forward)
    };
    let mut fresh: Vec<Vec<f64>> = vec![(0..=steps).map(alone).collect()];
    for _ in 0..disk {
        let below = fresh.last().unwrap().clone();
        let (mut kept, mut own) = (below.clone(), below.clone());
        for n in 0..=steps {
            let split = |m: usize| m as f64 * forward + below[n - m] + read + kept[m];
            let best = (1..n).map(split).fold(f64::INFINITY, f64::min);
            (kept[n], own[n]) = (alone(n).min(best), alone(n).min(write + best));
        }
        fresh.push(own);
    }
    fresh
}

#[test]
fn a_disk_that_costs_time_is_used_for_the_least_time() {
    let all = [(1.0, 2.0, 2.0), (0.37, 1.9, 0.61), (1.0, 0.1, 7.0), (2.5, 30.0, 0.0)];
    for (forward, write, read) in all {
        let costs = StepCosts { forward, write, read };
        for memory in [0, 1, 2, 5] {
            let least = least_times(150, memory, 4, costs);
            for (disk, least) in least.iter().enumerate().skip(usize::from(memory == 0)) {
                for n in [2u64, 3, 8, 9, 10, 17, 64, 99, 150] {
                    let mut plan = Hierarchy::new(n, memory, Some(disk as u64), costs).unwrap();
                    let (found, expected) = (plan.cost(), least[n as usize]);
                    let what = format!("{n} steps, {memory} + {disk}, {costs:?}");
                    assert!(
                        (found - expected).abs() <= 1e-9 * expected,
                        "{what}: {found} {expected}"
                    );
                    let audit = Audit::of(&mut plan, n).unwrap();
                    let time = audit.forward as f64 * forward
                        + audit.writes[1] as f64 * write
                        + audit.reads[1] as f64 * read;
                    assert!((time - expected).abs() <= 1e-9 * expected, "{what}: {audit:?}");
                }
            }
        }
    }
}

#[test]
fn a_disk_without_cost_is_used_like_memory() {
    let costs = StepCosts { forward: 1.0, write: 0.0, read: 0.0 };
    for n in 1..60 {
        for (memory, disk) in [(1, 1), (2, 3), (0, 4), (3, 1)] {
            let plan = Hierarchy::new(n, memory, Some(disk), costs).unwrap();
            let best = binomial::forward_steps(n, memory + disk).unwrap() as f64;
            let alone = binomial::forward_steps(n, disk.max(memory)).unwrap_or(u64::MAX) as f64;
            assert!(plan.cost() >= best && plan.cost() <= alone, "{n} {memory} {disk}");
        }
    }
}

#[test]
fn an_online_plan_repeats_no_more_than_one_that_knows_the_end() {
    for slots in [3u64, 4, 5, 7, 10, 16, 25, 40] {
        let ends = (1..200u64).chain((200..=2000).step_by(if slots > 10 { 61 } else { 97 }));
        for n in ends {
            let mut plan = Online::new(slots, Place::Memory).unwrap();
            let audit = Audit::of(&mut plan, n).unwrap();
            let offline = Audit::of(&mut Revolve::new(n, slots).unwrap(), n).unwrap();
            assert!(audit.most[0] <= slots, "{n} {slots}");
            assert!(audit.repetitions <= offline.repetitions, "{n} {slots} {audit:?} {offline:?}");
            let ratio = audit.forward as f64 / offline.forward as f64;
            assert!(ratio <= 1.3, "{n} steps, {slots} checkpoints: {ratio}");
        }
    }
}

#[test]
fn a_long_plan_needs_no_table() {
    let (n, s) = (1_000_000, 10);
    let mut plan = Revolve::new(n, s).unwrap();
    let (mut forward, mut reversed) = (0, 0);
    while let Some(action) = plan.next_action() {
        match action {
            Action::Forward { from, to, .. } => forward += to - from,
            Action::Reverse { from, to } => reversed += from - to,
            _ => {}
        }
    }
    assert_eq!((Some(forward), reversed), (binomial::forward_steps(n, s), n));
    // Tables of 10,000 steps and 100 units are a few megabytes.
    let runs = mixed_forward_steps(10_000, 100).unwrap();
    assert!(runs < binomial::forward_steps(10_000, 100).unwrap() && runs > 10_000);
}

#[test]
fn impossible_plans_are_refused_with_numbers() {
    assert_eq!(Revolve::new(0, 3).err(), Some(ScheduleError::NoSteps));
    let error = Revolve::new(5, 0).err().unwrap();
    assert_eq!(
        error.to_string(),
        "5 steps cannot be reversed with 0 checkpoints: at least 1 are needed"
    );
    assert!(Mixed::new(1 << 21, 3, Place::Disk).is_err());
    let costs = StepCosts { forward: f64::NAN, ..StepCosts::default() };
    assert!(Hierarchy::new(5, 1, Some(1), costs).is_err());
    assert!(TwoLevel::new(0, 1, Place::Disk, Trajectory::Maximum).is_err());
    let error = Revolve::new(5, 2).unwrap().finalize(6).err().unwrap();
    assert!(error.to_string().contains("made for 5 steps, but the model ended after 6"), "{error}");
}
