//! The kernels as descriptions: nothing here does I/O but reading E3SM's maps.

use std::path::PathBuf;

use esker_bench::kernels::{Kernel, Scale};
use esker_bench::plan::{Calls, Plan};
use esker_bench::{Reading, plan_file};
use esker_testkit::skip;

const RANKS: [usize; 7] = [1, 2, 3, 4, 7, 8, 16];

fn maps_folder() -> Option<PathBuf> {
    let found = esker_bench::maps_folder(None);
    if found.is_none() {
        skip!("E3SM's maps are not here (ESKER_SHARED_DATA names their folder)");
    }
    found
}

fn plans(scale: Scale) -> Vec<(Kernel, usize, Plan)> {
    let folder = maps_folder();
    let mut plans = Vec::new();
    for kernel in Kernel::ALL {
        let recorded = match &folder {
            Some(folder) => kernel.recorded(folder).unwrap(),
            None if kernel.is_recorded() => continue,
            None => None,
        };
        for ranks in RANKS {
            plans.push((kernel, ranks, kernel.plan(ranks, &scale, recorded.as_ref()).unwrap()));
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
                let list = &rank.lists[request.list];
                let base = request.record.unwrap_or(0) * plan.inner_elements(var);
                list.for_each_run(&plan.shape(var, list), |first, len| {
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
        let asked = match kernel.is_recorded() {
            true => continue,
            false => 3 << 20,
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
        let map = kernel.recorded(&folder).unwrap();
        kernel.plan(ranks, &Scale::default(), map.as_ref()).unwrap()
    };
    let f = plan(Kernel::E3smF, 4);
    assert_eq!(f.vars.len(), 414);
    // What the model's own I/O program counts on 4 ranks.
    assert!((1_770_000..1_790_000).contains(&f.runs()), "{}", f.runs());
    assert!((33_000_000..34_500_000).contains(&f.bytes()), "{}", f.bytes());
    let g = plan(Kernel::E3smG, 4);
    assert_eq!(g.vars.len(), 52);
}

#[test]
fn the_synthetic_land_has_the_models_variables_and_fits_the_size() {
    let scale = Scale { bytes: Some(64 << 20), ..Scale::default() };
    for ranks in [4, 8, 16] {
        let plan = Kernel::E3smI.plan(ranks, &scale, None).unwrap();
        assert_eq!((plan.vars.len(), plan.records), (465 + 75 + 4 + 1 + 1 + 14, 240));
        assert!((32 << 20..=65 << 20).contains(&plan.bytes()), "{}", plan.bytes());
        // Rank 0 alone has the small ones; the rest is everyone's.
        for (i, rank) in plan.ranks.iter().enumerate() {
            let small = rank.steps[0].iter().filter(|r| plan.vars[r.var].name.contains("small"));
            assert_eq!(small.count(), if i == 0 { 14 } else { 0 });
            assert!(rank.steps[0].len() >= 546);
        }
    }
}

#[test]
fn strided_calls_are_the_strided_kernel_one_transfer_at_a_time() {
    let scale = Scale { bytes: Some(1 << 20), records: None, transfer: 2048 };
    let plan = Kernel::StridedCalls.plan(4, &scale, None).unwrap();
    assert_eq!(plan.steps, [Calls::Independent]);
    for rank in &plan.ranks {
        assert_eq!(rank.steps[0].len(), (1 << 20) / 2048 / 4);
        assert!(rank.lists.iter().all(|list| list.elements() * 8 == 2048));
    }
}

#[test]
fn whole_variables_are_read_by_all_ranks_together_and_once() {
    for (kernel, ranks, written) in plans(small()) {
        let plan = Reading::Whole.plan(&written).unwrap();
        assert_eq!(plan.ranks.len(), ranks);
        for (i, var) in plan.vars.iter().enumerate() {
            let parts = plan.ranks.iter().map(|rank| rank.lists[rank.steps[i][0].list].elements());
            let records = if plan.is_record(var) { plan.records } else { 1 };
            let copies = if var.dims.is_empty() { ranks as u64 } else { 1 };
            let expected = plan.inner_elements(var) * records * copies;
            assert_eq!(parts.sum::<u64>(), expected, "{} {}", kernel.name(), var.name);
        }
    }
}

#[test]
fn one_plane_of_each_variable_is_read_by_one_rank() {
    for (kernel, ranks, written) in plans(small()) {
        let plan = Reading::Planes.plan(&written).unwrap();
        let mut readers = vec![0; plan.vars.len()];
        for rank in &plan.ranks {
            for request in rank.steps.iter().flatten() {
                readers[request.var] += 1;
                let var = &plan.vars[request.var];
                assert_eq!(plan.is_record(var), request.record.is_some());
                let shape = plan.inner_shape(var);
                let thin = match shape.len() {
                    0 | 1 => plan.inner_elements(var),
                    _ => {
                        let count = &rank.lists[request.list].counts;
                        // Of a dimension of one element nothing can be cut.
                        let cut = count.iter().zip(&shape).filter(|(c, n)| c != n).count();
                        assert!(cut == 1 || cut == 0 && shape.contains(&1), "{}", kernel.name());
                        count.iter().product()
                    }
                };
                assert_eq!(rank.lists[request.list].elements(), thin);
            }
        }
        assert!(readers.iter().all(|n| *n == 1), "{} on {ranks} ranks", kernel.name());
    }
}

#[test]
fn chombos_boxes_are_those_of_the_run_and_each_rank_has_a_piece_of_the_curve() {
    let Some(folder) = maps_folder() else { return };
    let plan = |kernel: Kernel, ranks: usize| {
        let boxes = kernel.recorded(&folder).unwrap();
        kernel.plan(ranks, &Scale::default(), boxes.as_ref()).unwrap()
    };
    for ranks in [1, 4] {
        let queued = plan(Kernel::Chombo, ranks);
        // The numbers of boxes that the record itself names.
        let boxes = |var: usize| {
            let of = |rank: &esker_bench::plan::RankPlan| {
                let own = rank.steps[0].iter().filter(|request| request.var == var);
                own.map(|request| rank.lists[request.list].len).sum::<usize>()
            };
            queued.ranks.iter().map(of).sum::<usize>()
        };
        assert_eq!([boxes(0), boxes(1), boxes(2)], [128, 211, 1006]);
        assert_eq!(queued.inner_elements(&queued.vars[0]), 64 * 64 * 128);
        let calls = plan(Kernel::ChomboCalls, ranks);
        assert_eq!(calls.bytes(), queued.bytes());
        assert_eq!(calls.ranks.iter().map(|rank| rank.steps[0].len()).sum::<usize>(), 1345);
        let large = plan(Kernel::Chombo32, ranks);
        assert_eq!(large.inner_elements(&large.vars[0]), 10 * 64 * 64 * 128);
        if ranks > 1 {
            // Nobody has more than a few boxes over a fair share, and on the finest level nobody's boxes are one run.
            let fair = queued.bytes() / ranks as u64;
            for rank in 0..ranks {
                let own = queued.rank_bytes(rank);
                assert!(own.abs_diff(fair) < fair / 10, "rank {rank}: {own} of {fair}");
                let request = queued.ranks[rank].steps[0].iter().find(|r| r.var == 2).unwrap();
                let list = &queued.ranks[rank].lists[request.list];
                let gaps = (1..list.len)
                    .filter(|at| list.starts[at - 1] + list.counts[at - 1] < list.starts[*at]);
                assert!(gaps.count() > 10, "rank {rank}");
            }
        }
    }
}
