//! The kernels as descriptions: nothing here does I/O but reading E3SM's maps.

use std::path::PathBuf;

use esker_bench::kernels::{DecompositionMap, Kernel, Scale};
use esker_bench::plan::{Calls, Plan};
use esker_bench::plan_file;

const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 8];

fn maps_folder() -> Option<PathBuf> {
    let found = esker_bench::maps_folder(None);
    if found.is_none() {
        println!("skipped: E3SM's maps are not here (ESKER_SHARED_DATA names their folder)");
    }
    found
}

fn plans(scale: Scale) -> Vec<(Kernel, usize, Plan)> {
    let folder = maps_folder();
    let mut plans = Vec::new();
    for kernel in Kernel::ALL {
        let map = match (kernel.case(), &folder) {
            (Some(case), Some(folder)) => Some(DecompositionMap::read(case, folder).unwrap()),
            (Some(_), None) => continue,
            (None, _) => None,
        };
        for ranks in RANKS {
            plans.push((kernel, ranks, kernel.plan(ranks, &scale, map.as_ref()).unwrap()));
        }
    }
    plans
}

fn small() -> Scale {
    Scale { bytes: Some(3 << 20), records: Some(2), transfer: 1024 }
}

#[test]
fn every_element_is_written_exactly_once() {
    for (kernel, ranks, plan) in plans(small()) {
        let name = kernel.name();
        assert_eq!(plan.ranks.len(), ranks);
        let mut written: Vec<Vec<u8>> = Vec::new();
        for var in &plan.vars {
            let records = if plan.is_record(var) { plan.records } else { 1 };
            written.push(vec![0; (plan.inner_elements(var) * records) as usize]);
        }
        for rank in &plan.ranks {
            for request in rank.steps.iter().flatten() {
                let var = &plan.vars[request.var];
                assert_eq!(plan.is_record(var), request.record.is_some(), "{name}");
                let shape = plan.inner_shape(var);
                let base = request.record.unwrap_or(0) * plan.inner_elements(var);
                rank.lists[request.list].for_each_run(&shape, |first, len| {
                    for i in base + first..base + first + len {
                        written[request.var][i as usize] += 1;
                    }
                });
            }
        }
        for (var, written) in plan.vars.iter().zip(written) {
            assert!(written.iter().all(|n| *n == 1), "{name} on {ranks} ranks, {}", var.name);
        }
    }
}

#[test]
fn a_blocking_step_has_one_request_of_the_same_variable_on_every_rank() {
    for (kernel, ranks, plan) in plans(small()) {
        for (i, calls) in plan.steps.iter().enumerate() {
            let steps: Vec<_> = plan.ranks.iter().map(|rank| &rank.steps[i]).collect();
            if *calls == Calls::Blocking {
                let alike = steps.iter().all(|s| s.len() == 1 && s[0].var == steps[0][0].var);
                assert!(alike, "{} on {ranks} ranks", kernel.name());
            }
        }
    }
}

#[test]
fn a_plan_has_about_the_bytes_that_were_asked_for() {
    for (kernel, ranks, plan) in plans(small()) {
        let asked = match kernel.case() {
            Some(_) => continue,
            None => 3 << 20,
        };
        let bytes = plan.bytes();
        // FLASH has at least a block of 24 variables on each rank, and up to two more.
        let most = if kernel == Kernel::Flash { asked + ranks as u64 * 3 * 786_432 } else { asked };
        assert!(bytes > asked / 2 && bytes <= most, "{} {ranks}: {bytes}", kernel.name());
    }
}

#[test]
fn a_plan_survives_its_file() {
    for (kernel, ranks, plan) in plans(small()) {
        let bytes = plan_file::encode(&plan);
        assert_eq!(plan_file::decode(&bytes), Ok(plan), "{} on {ranks} ranks", kernel.name());
        for cut in [0, 7, 8, 40, bytes.len() / 2, bytes.len() - 8] {
            assert!(plan_file::decode(&bytes[..cut]).is_err());
        }
    }
}

#[test]
fn e3sm_has_the_variables_and_runs_of_the_model() {
    let Some(folder) = maps_folder() else { return };
    let plan = |kernel: Kernel, ranks| {
        let map = DecompositionMap::read(kernel.case().unwrap(), &folder).unwrap();
        kernel.plan(ranks, &Scale::default(), Some(&map)).unwrap()
    };
    let f = plan(Kernel::E3smF, 4);
    assert_eq!(f.vars.len(), 414);
    // What the model's own I/O program counts on 4 ranks.
    assert!((1_770_000..1_790_000).contains(&f.runs()), "{}", f.runs());
    assert!((33_000_000..34_500_000).contains(&f.bytes()), "{}", f.bytes());
    let g = plan(Kernel::E3smG, 4);
    assert_eq!(g.vars.len(), 52);
}
