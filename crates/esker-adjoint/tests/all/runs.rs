//! Gradients of scheduled runs are those of a run that keeps everything, bit by bit where nothing is lost.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use esker_adjoint::schedule::{
    Hierarchy, Mixed, Online, Periodic, Place, Revolve, Schedule, SingleDisk, SingleMemory,
    StepCosts, Trajectory, TwoLevel,
};
use esker_adjoint::{
    AdjointError, Fault as Finding, Filters, OnDrift, Options, Report, budget, check, resume, run,
};
use esker_comm::SelfComm;
use esker_store::{Access, Fault, FaultyStore, LocalStore, MemoryStore, Store};
use esker_testkit::ranks::on_ranks;

use crate::wave::{Hook, Wave, WithDeps};

const FOLDER: &str = "run.chk";

fn filters(text: &str) -> Filters {
    Filters::new(&[("*".to_string(), text.to_string())]).unwrap()
}

fn on_disk(store: Arc<dyn Store>, memory: u64, disk: u64) -> Options {
    // Kills and faults are counted in calls of the store, which must not depend on the machine's speed.
    let measure = false;
    Options { memory, disk, folder: Some(FOLDER.into()), store, measure, ..Options::default() }
}

fn with_budget(model: &mut Wave, options: &Options) -> esker_adjoint::Result<Report> {
    let comm = SelfComm::new();
    let steps = model.steps;
    let mut plan = budget(model, steps, &comm, options)?;
    run(model, &mut plan, &comm, options)
}

#[test]
fn every_schedule_gives_the_gradient_of_a_run_that_keeps_everything() {
    let (steps, costs) = (37, StepCosts::default());
    let expected = Wave::new(50, steps, 0).plain_gradient().gradient();
    let plans: Vec<(&str, Box<dyn Schedule>)> = vec![
        ("revolve", Box::new(Revolve::new(steps, 4).unwrap())),
        ("multistage", Box::new(Revolve::multistage(steps, 2, 3, Trajectory::Revolve).unwrap())),
        ("mixed", Box::new(Mixed::new(steps, 5, Place::Disk).unwrap())),
        ("h-revolve", Box::new(Hierarchy::new(steps, 2, Some(3), costs).unwrap())),
        ("disk-revolve", Box::new(Hierarchy::new(steps, 2, None, costs).unwrap())),
        ("periodic", Box::new(Periodic::new(steps, 2, costs).unwrap())),
        ("two-level", Box::new(TwoLevel::new(7, 2, Place::Memory, Trajectory::Maximum).unwrap())),
        ("online", Box::new(Online::new(4, Place::Memory).unwrap())),
        ("single memory", Box::new(SingleMemory::default())),
        ("single disk", Box::new(SingleDisk::new(true))),
    ];
    for (name, mut plan) in plans {
        let mut model = Wave::new(50, steps, 0);
        model.finished = Some(steps);
        let options = on_disk(Arc::new(MemoryStore::default()), 1 << 30, 1 << 30);
        let report = run(&mut model, plan.as_mut(), &SelfComm::new(), &options);
        let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(model.gradient() == expected, "{name}");
        assert_eq!(report.forward, model.forward_steps, "{name}");
        assert!(report.notes.is_empty() && report.drift == 0.0, "{name}: {report:?}");
    }
    for (memory, disk) in [(3, 0), (0, 4), (2, 2), (40, 0)] {
        for text in ["", "shuffle zstd,1", "pco", "zfp,reversible"] {
            let mut model = Wave::new(100, steps, 0);
            let expected = model.clone().plain_gradient().gradient();
            let state = model.state_bytes() + 400;
            let store = Arc::new(MemoryStore::default());
            let mut options = on_disk(store, memory * state, disk * state);
            options.filters = filters(text);
            let report = with_budget(&mut model, &options).unwrap();
            assert_eq!(model.gradient(), expected, "{memory} {disk} {text}");
            assert!(report.peak[0] <= memory * state, "{report:?}");
        }
    }
}

#[test]
fn dependencies_that_are_not_the_state_are_kept_apart() {
    let steps = 33;
    let expected = Wave::new(80, steps, 0).plain_gradient().gradient();
    let comm = SelfComm::new();
    let plans: Vec<(&str, Box<dyn Schedule>)> = vec![
        ("revolve", Box::new(Revolve::new(steps, 4).unwrap())),
        ("mixed", Box::new(Mixed::new(steps, 5, Place::Memory).unwrap())),
        ("online", Box::new(Online::new(4, Place::Memory).unwrap())),
        ("two-level", Box::new(TwoLevel::new(5, 2, Place::Memory, Trajectory::Maximum).unwrap())),
        ("single disk", Box::new(SingleDisk::new(true))),
    ];
    for (name, mut plan) in plans {
        let mut model = WithDeps::new(80, steps);
        let options = on_disk(Arc::new(MemoryStore::default()), 1 << 30, 1 << 30);
        run(&mut model, plan.as_mut(), &comm, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(model.wave.gradient() == expected, "{name}");
    }
    for (memory, disk) in [(1700, 0), (5000, 0), (9000, 9000), (0, 6000), (80_000, 0)] {
        let mut model = WithDeps::new(80, steps);
        let options = on_disk(Arc::new(MemoryStore::default()), memory, disk);
        let mut plan = budget(&mut model, steps, &comm, &options).unwrap();
        let report = run(&mut model, &mut plan, &comm, &options).unwrap();
        assert!(model.wave.gradient() == expected, "{memory} {disk}");
        assert!(report.peak[0] <= memory && report.peak[1] <= disk + 4000, "{report:?}");
    }
}

#[test]
fn compressed_states_leave_room_for_more_and_save_steps() {
    let run_with = |text: &str| {
        let mut model = Wave::new(2000, 200, 0);
        let memory = 6 * (model.state_bytes() + 400);
        let options = Options { memory, filters: filters(text), ..Options::default() };
        let report = with_budget(&mut model, &options).unwrap();
        assert!(report.peak[0] <= memory);
        (report.forward, model.gradient_values())
    };
    let (raw, exact) = run_with("");
    let (lossy, near) = run_with("sz,rel=1e-4");
    assert!(lossy * 4 < raw * 3, "{lossy} forward steps instead of {raw}");
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = exact.iter().zip(&near).map(|(a, b)| a - b).collect();
    let error = norm(&difference) / norm(&exact);
    assert!(error < 1e-3 && error > 0.0, "{error}");
}

#[test]
fn threads_agree_with_one_rank_whatever_their_sizes() {
    let expected: Vec<Vec<u64>> = (0..3)
        .map(|rank| Wave::new(40 + 30 * rank, 29, rank).plain_gradient().gradient())
        .collect();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let found = on_ranks(3, move |comm| {
        let mut model = Wave::new(40 + 30 * comm.rank(), 29, comm.rank());
        let options = on_disk(store.clone(), 5000, 9000);
        let mut plan = budget(&mut model, 29, &*comm, &options).unwrap();
        let report = run(&mut model, &mut plan, &*comm, &options).unwrap();
        assert!(report.peak[0] <= 5000);
        (model.gradient(), report.forward)
    });
    for (rank, (gradient, forward)) in found.iter().enumerate() {
        assert_eq!(*gradient, expected[rank], "rank {rank}");
        assert_eq!(*forward, found[0].1);
    }
}

#[test]
fn a_rank_that_fails_ends_the_run_on_all() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let errors = on_ranks(3, move |comm| {
        let mut model = Wave::new(60, 40, comm.rank());
        model.fails_at = (comm.rank() == 1).then_some(17);
        let options = on_disk(store.clone(), 4000, 4000);
        let mut plan = budget(&mut model, 40, &*comm, &options).unwrap();
        run(&mut model, &mut plan, &*comm, &options).unwrap_err().to_string()
    });
    assert!(errors[1].contains("the solver did not converge"), "{errors:?}");
    assert!(errors[0].contains("another rank") && errors[2].contains("another rank"), "{errors:?}");
}

/// Ranks also share what they measure of filters: one that fails before that is heard there.
#[test]
fn a_rank_that_fails_before_filters_are_chosen_ends_the_run_on_all() {
    for step in [0, 1, 2, 5, 9] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let errors = on_ranks(3, move |comm| {
            let mut model = Wave::new(600, 20, comm.rank());
            model.fails_at = (comm.rank() == 1).then_some(step);
            let mut options = on_disk(store.clone(), 40_000, 40_000);
            (options.filters, options.measure) = (filters("auto,rel=1e-4"), true);
            let mut plan = budget(&mut model, 20, &*comm, &options).unwrap();
            run(&mut model, &mut plan, &*comm, &options).unwrap_err().to_string()
        });
        assert!(errors[1].contains("the solver did not converge"), "{step}: {errors:?}");
        let heard = |rank: usize| errors[rank].contains("another rank");
        assert!(heard(0) && heard(2), "{step}: {errors:?}");
    }
}

/// While the model waits or beside it: the same gradient, and the same bytes in the folder's accounts.
#[test]
fn a_model_that_waits_for_its_checkpoints_has_the_same_gradient() {
    let exact = Wave::new(200, 50, 0).plain_gradient().gradient();
    for text in ["", "shuffle zstd,1", "lossless", "f32", "sz,rel=1e-4"] {
        let mut found = Vec::new();
        for beside in [true, false] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let options =
                Options { beside, filters: filters(text), ..on_disk(store, 8000, 20_000) };
            let mut model = Wave::new(200, 50, 0);
            let mut plan = budget(&mut model, 50, &SelfComm::new(), &options).unwrap();
            let report = run(&mut model, &mut plan, &SelfComm::new(), &options).unwrap();
            assert!(!filters(text).is_lossless() || model.gradient() == exact, "{text}");
            assert!(report.stored[1] == 0 || report.moved[0] > 0, "{text}: {report:?}");
            let counts = (report.moved[0], report.stored, report.bytes, report.forward);
            found.push((counts, model.gradient()));
        }
        assert!(found[0] == found[1], "{text}: {:?} {:?}", found[0].0, found[1].0);
    }
}

/// The number of kills; more with ESKER_KILLS.
fn kills() -> u64 {
    std::env::var("ESKER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

#[test]
fn a_run_that_is_killed_anywhere_is_resumed_to_the_same_gradient() {
    let new = || Wave::new(64, 41, 0);
    let expected = new().plain_gradient().gradient();
    let options = |store: Arc<dyn Store>| Options {
        adjoint_every: Some(5),
        filters: filters("shuffle zstd,1"),
        ..on_disk(store, 3000, 5000)
    };
    // How many calls there are to be killed at.
    let whole = FaultyStore::new(MemoryStore::default(), u64::MAX, Fault::Kill);
    with_budget(&mut new(), &options(Arc::new(whole.clone()))).unwrap();
    let calls = whole.calls();
    assert!(calls > 60, "{calls}");
    let (mut resumed, mut from_adjoint) = (0, 0);
    for kill in 0..kills().max(calls) {
        let (at, fault) = (kill % calls, if kill % 2 == 0 { Fault::Kill } else { Fault::Tear });
        let store = MemoryStore::default();
        let faulty = FaultyStore::new(store.clone(), at, fault);
        let died = with_budget(&mut new(), &options(Arc::new(faulty)));
        let mut model = new();
        let again = options(Arc::new(store.clone()));
        match died {
            Ok(_) => continue,
            Err(_) if !store.exists(&PathBuf::from(FOLDER).join("esker.json")).unwrap() => {
                // Killed before there was anything.
                with_budget(&mut model, &again).unwrap();
            }
            Err(_) => match resume(&mut model, &SelfComm::new(), &again) {
                Ok(report) => {
                    resumed += 1;
                    from_adjoint += u64::from(model.forward_steps < 41 && report.forward < 60);
                }
                // Killed when everything was done but its last word.
                Err(error) => panic!("kill at {at} ({fault:?}): {error}"),
            },
        }
        assert_eq!(model.gradient(), expected, "kill at {at} ({fault:?})");
    }
    assert!(resumed > calls / 2 && from_adjoint > 0, "{resumed} {from_adjoint} of {calls}");
}

#[test]
fn ranks_that_are_killed_are_resumed_to_the_same_gradient() {
    let new = |rank| Wave::new(50 + 10 * rank, 33, rank);
    let expected: Vec<_> = (0..2).map(|rank| new(rank).plain_gradient().gradient()).collect();
    let options =
        |store: Arc<dyn Store>| Options { adjoint_every: Some(4), ..on_disk(store, 2500, 6000) };
    let mut resumed = 0;
    for at in (0..90).step_by(3) {
        // One rank's store dies; the other hears of it at the next checkpoint.
        for victim in 0..2 {
            let store = MemoryStore::default();
            let shared = store.clone();
            on_ranks(2, move |comm| {
                let faults = if comm.rank() == victim { at } else { u64::MAX };
                let faulty = FaultyStore::new(shared.clone(), faults, Fault::Kill);
                let (mut model, options) = (new(comm.rank()), options(Arc::new(faulty)));
                let mut plan = budget(&mut model, 33, &*comm, &options).unwrap();
                let _ = run(&mut model, &mut plan, &*comm, &options);
            });
            let begun = store.exists(&PathBuf::from(FOLDER).join("esker.json")).unwrap();
            if !begun {
                continue;
            }
            let found = on_ranks(2, move |comm| {
                let (mut model, options) = (new(comm.rank()), options(Arc::new(store.clone())));
                let resumed = resume(&mut model, &*comm, &options);
                resumed.unwrap_or_else(|error| panic!("{at} {victim}: {error}"));
                model.gradient()
            });
            resumed += 1;
            for (rank, gradient) in found.into_iter().enumerate() {
                assert_eq!(gradient, expected[rank], "{at} {victim} {rank}");
            }
        }
    }
    assert!(resumed > 50, "{resumed} of 60");
}

#[test]
fn a_full_disk_means_fewer_checkpoints_and_it_says_so() {
    let new = || Wave::new(64, 41, 0);
    let expected = new().plain_gradient().gradient();
    let mut noted = 0;
    for at in 5..60 {
        let fault = Fault::FailHalf(ErrorKind::StorageFull);
        let store = FaultyStore::new(MemoryStore::default(), at, fault);
        let mut model = new();
        match with_budget(&mut model, &on_disk(Arc::new(store), 3000, 20_000)) {
            Ok(report) => {
                assert_eq!(model.gradient(), expected, "fault at {at}");
                noted += usize::from(report.notes.iter().any(|note| note.contains("disk is full")));
            }
            // Names and the journal itself cannot do without.
            Err(error) => assert!(error.to_string().contains("injected"), "{error}"),
        }
    }
    assert!(noted > 10, "{noted}");
}

#[test]
fn a_damaged_segment_is_named_and_computed_again() {
    let new = || Wave::new(64, 30, 0);
    let expected = new().plain_gradient().gradient();
    // A run that is killed late in its forward part leaves segments; one of them is damaged.
    let mut named = 0;
    for at in 14..30 {
        let store = MemoryStore::default();
        let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
        let options = |store: Arc<dyn Store>| on_disk(store, 0, 20_000);
        let died = with_budget(&mut new(), &options(Arc::new(faulty)));
        assert!(died.is_err());
        let names = store.names_in(FOLDER.as_ref()).unwrap();
        let segments: Vec<&String> = names.iter().filter(|name| name.ends_with(".seg")).collect();
        // The last may never have been finished.
        let Some(last) = segments.iter().rev().nth(1) else { continue };
        let path = PathBuf::from(FOLDER).join(last);
        let file = store.open(&path, Access::ReadWrite).unwrap();
        let middle = file.len().unwrap() - 100;
        file.write_at(middle, b"damage").unwrap();
        let again = options(Arc::new(store.clone()));
        let faults = check(&again.store, FOLDER.as_ref(), &mut |_, _| ()).unwrap();
        let named_by = |fault: &Finding| fault.to_string().contains("array 'now'");
        assert!(faults.iter().any(named_by), "{faults:?}");
        let mut model = new();
        let report = resume(&mut model, &SelfComm::new(), &again).unwrap();
        assert_eq!(model.gradient(), expected);
        let note = report.notes.iter().find(|note| note.contains("computed again"));
        named += usize::from(note.is_some_and(|n| n.contains("array 'now'") && n.contains("step")));
    }
    assert!(named > 3, "{named}");
}

#[test]
fn a_segment_that_is_damaged_in_the_middle_of_a_run_is_computed_again_by_all_ranks() {
    let store = MemoryStore::default();
    let damaged = store.clone();
    // When the adjoint is at step 25, all of rank 1's segments but the first are damaged.
    let damage = move |step: u64| {
        let names = damaged.names_in(FOLDER.as_ref()).unwrap();
        for name in names.iter().filter(|name| step == 25 && name.ends_with(".1.seg")) {
            if name.starts_with("00000000") {
                continue;
            }
            let file = damaged.open(&PathBuf::from(FOLDER).join(name), Access::ReadWrite).unwrap();
            file.write_at(file.len().unwrap() - 40, b"damage").unwrap();
        }
    };
    let damage: Hook = Arc::new(damage);
    let found = on_ranks(2, move |comm| {
        let mut model = Wave::new(64, 30, comm.rank());
        model.hook = (comm.rank() == 1).then(|| damage.clone());
        let options = on_disk(Arc::new(store.clone()), 0, 12_000);
        let mut plan = budget(&mut model, 30, &*comm, &options).unwrap();
        let report = run(&mut model, &mut plan, &*comm, &options).unwrap();
        (model.gradient(), report)
    });
    for (rank, (gradient, report)) in found.iter().enumerate() {
        assert_eq!(*gradient, Wave::new(64, 30, rank).plain_gradient().gradient(), "rank {rank}");
        assert_eq!(report.forward, found[0].1.forward);
    }
    let note = &found[1].1.notes[0];
    assert!(note.contains("of step") && note.contains("array 'now'"), "{note}");
}

#[test]
fn another_models_folder_is_refused() {
    let store = MemoryStore::default();
    let faulty = FaultyStore::new(store.clone(), 25, Fault::Kill);
    assert!(with_budget(&mut Wave::new(64, 41, 0), &on_disk(Arc::new(faulty), 0, 20_000)).is_err());
    let options = on_disk(Arc::new(store.clone()), 0, 20_000);
    let comm = SelfComm::new();
    let error = resume(&mut Wave::new(65, 41, 0), &comm, &options).unwrap_err().to_string();
    assert!(error.contains("[64]") && error.contains("[65]"), "{error}");
    let error = resume(&mut Wave::new(64, 41, 3), &comm, &options).unwrap_err().to_string();
    assert!(error.contains("another initial state"), "{error}");
    // Nor is it overwritten by a new run.
    let error = with_budget(&mut Wave::new(64, 41, 0), &options).unwrap_err().to_string();
    assert!(error.contains("not done: resume it"), "{error}");
    let mut model = Wave::new(64, 41, 0);
    resume(&mut model, &comm, &options).unwrap();
    assert_eq!(model.gradient(), Wave::new(64, 41, 0).plain_gradient().gradient());
    // A run that is done makes room for the next.
    with_budget(&mut Wave::new(64, 41, 0), &options).unwrap();
}

#[test]
fn what_cannot_go_well_is_an_error_with_the_numbers() {
    let options = Options { memory: 900, ..Options::default() };
    let error = with_budget(&mut Wave::new(64, 10, 0), &options).unwrap_err().to_string();
    assert!(error.contains("step 0 needs") && error.contains("900 bytes of memory"), "{error}");

    let options = Options { memory: 1 << 20, ..Options::default() };
    let mut model = Wave::new(64, 20, 0);
    model.nan_at = Some(12);
    let error = with_budget(&mut model, &options).unwrap_err();
    let AdjointError::NotFinite { array, step, element } = error else { panic!("{error}") };
    assert_eq!((array.as_str(), step, element), ("now", 13, 3));

    for (end, words) in [(15, "at step 15 that it has ended"), (25, "at step 20 that it goes on")] {
        let mut model = Wave::new(64, 20, 0);
        model.finished = Some(end);
        let error = with_budget(&mut model, &options).unwrap_err().to_string();
        assert!(error.contains("20 steps were promised") && error.contains(words), "{error}");
    }
    let mut plan = Online::new(3, Place::Memory).unwrap();
    let error = run(&mut Wave::new(64, 20, 0), &mut plan, &SelfComm::new(), &options).unwrap_err();
    assert!(matches!(error, AdjointError::NoEnd), "{error}");

    let mut model = Wave::new(64, 40, 0);
    model.noise = 1e-13;
    let options = Options { memory: 5000, ..Options::default() };
    let error = with_budget(&mut model, &options).unwrap_err().to_string();
    assert!(error.contains("not deterministic"), "{error}");

    let named = [("then".to_string(), "zstd,3".to_string())];
    let options = Options { filters: Filters::new(&named).unwrap(), ..Options::default() };
    let error = with_budget(&mut Wave::new(64, 10, 0), &options).unwrap_err().to_string();
    assert!(error.contains("'then'") && error.contains("before, now"), "{error}");
}

#[test]
fn an_error_that_grows_is_found_or_ends_the_loss() {
    // A crude bound on a nonlinear model; the limit is set below what comes of it.
    let run_with = |on_drift| {
        let mut model = Wave::new(400, 120, 0);
        let options = Options {
            memory: 4 * (model.state_bytes() + 400),
            filters: filters("sz,rel=0.05"),
            drift_limit: 1e-5,
            on_drift,
            ..Options::default()
        };
        with_budget(&mut model, &options)
    };
    let error = run_with(OnDrift::Fail).unwrap_err();
    assert!(matches!(error, AdjointError::Drift { .. }), "{error}");
    let report = run_with(OnDrift::Lossless).unwrap();
    assert!(report.notes[0].contains("nothing is lost from here on"), "{report:?}");
}

#[test]
fn on_the_real_file_system_nothing_is_left_but_the_mark_the_journal_and_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options { measure: true, ..on_disk(Arc::new(LocalStore), 1500, 1 << 20) };
    options.folder = Some(folder.path().join("run.chk"));
    let mut model = Wave::new(64, 41, 0);
    let report = with_budget(&mut model, &options).unwrap();
    assert_eq!(model.gradient(), Wave::new(64, 41, 0).plain_gradient().gradient());
    assert!(report.stored[1] >= 1, "{report:?}");
    let mut names: Vec<String> = std::fs::read_dir(folder.path().join("run.chk"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names[1..], ["esker.json", "journal.0"]);
    assert!(names[0].ends_with(".0.seg"), "{names:?}");
}

/// Which filters are taken depends on the machine; that nothing is lost, and that ranks agree, does not.
#[test]
fn filters_that_are_chosen_by_themselves_lose_nothing_unless_they_may() {
    let error = |found: &Wave, expected: &Wave| {
        let (a, b) = (found.gradient_values(), expected.gradient_values());
        let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
        norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
    };
    for (text, allowed) in [("auto", 0.0), ("auto,rel=1e-5", 1e-3)] {
        for states in [2, 6] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
            let found = on_ranks(2, move |comm| {
                let mut model = Wave::new(3000 + 500 * comm.rank(), 60, comm.rank());
                let state = 16 * 3500 + 400;
                let mut options = on_disk(store.clone(), states * state, state);
                (options.filters, options.measure) = (filters(text), true);
                let mut plan = budget(&mut model, 60, &*comm, &options).unwrap();
                let report = run(&mut model, &mut plan, &*comm, &options).unwrap();
                assert!(report.peak[0] <= states * state);
                (model, report.forward)
            });
            for (rank, (model, forward)) in found.iter().enumerate() {
                let expected = Wave::new(3000 + 500 * rank, 60, rank).plain_gradient();
                assert!(error(model, &expected) <= allowed, "{text} {states} rank {rank}");
                assert_eq!(*forward, found[0].1);
            }
        }
    }
}
