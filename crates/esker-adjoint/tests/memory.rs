//! What a run takes of memory beside the model: the budget, two copies of the state, scratch memory of the filters.
//!
//! A program of its own: it counts the memory of all threads.
#![allow(missing_docs)]

use std::sync::Arc;

use esker_adjoint::schedule::{Mixed, Place, Schedule};
use esker_adjoint::{ArrayMut, Filters, Model, ModelError, Options, Report, budget, run};
use esker_comm::SelfComm;
use esker_store::LocalStore;
use esker_testkit::memory;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

const STEPS: u64 = 30;
const CELLS: usize = 1 << 18;
const STATE: usize = 8 * CELLS;
/// Tables, plans, journals, samples: nothing that grows with the state.
const SMALL: usize = 1 << 19;

/// Allocates nothing in its steps.
struct Decay {
    x: Vec<f64>,
    a: Vec<f64>,
}

impl Decay {
    fn new() -> Decay {
        let x = (0..CELLS).map(|i| 1.0 + (i as f64 * 1e-4).sin()).collect();
        Decay { x, a: vec![0.0; CELLS] }
    }
}

impl Model for Decay {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        vec![ArrayMut::doubles("x", &[CELLS], &mut self.x)]
    }
    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        vec![ArrayMut::doubles("a", &[CELLS], &mut self.a)]
    }
    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        for _ in from..to {
            self.x.iter_mut().for_each(|x| *x -= 0.01 * x.powi(3));
        }
        if to == STEPS {
            self.a.iter_mut().zip(&self.x).for_each(|(a, x)| *a = 2.0 * x);
        }
        Ok(())
    }
    fn reverse(&mut self, _: u64, _: u64) -> Result<(), ModelError> {
        self.a.iter_mut().zip(&self.x).for_each(|(a, x)| *a *= 1.0 - 0.03 * x * x);
        Ok(())
    }
}

fn peak(options: &Options) -> (Report, usize) {
    let (mut model, comm) = (Decay::new(), SelfComm::new());
    let before = memory::live_of_all();
    memory::forget_peak_of_all();
    let mut plan = budget(&mut model, STEPS, &comm, options).unwrap();
    let report = run(&mut model, &mut plan, &comm, options).unwrap();
    (report, memory::peak_of_all() - before)
}

/// The scratch memory of filters, in states: an array is one chunk, and one is encoded while another is decoded.
const SCRATCH: [(&str, usize); 5] =
    [("", 0), ("shuffle zstd,1", 6), ("lossless", 6), ("f32", 1), ("sz,rel=1e-4", 12)];

/// One test: the counters are of the whole program.
#[test]
fn a_run_takes_its_budget_two_states_and_scratch() {
    let place = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for (text, scratch) in SCRATCH {
        for (states, disk, beside) in
            [(1, 0, true), (4, 0, true), (2, 3, true), (2, 3, false), (0, 4, false)]
        {
            let memory = states * (STATE + 400);
            let filters = Filters::new(&[("*".to_string(), text.to_string())]).unwrap();
            let options = Options {
                memory: memory as u64,
                disk: (disk * (STATE + 400)) as u64,
                folder: (disk > 0).then(|| place.path().join(format!("{}.chk", seen.len()))),
                store: Arc::new(LocalStore),
                filters,
                beside,
                // What is kept must not depend on how fast this machine is.
                measure: false,
                ..Options::default()
            };
            let (report, peak) = peak(&options);
            assert!(report.peak[0] as usize <= memory, "{report:?}");
            let more = peak.saturating_sub(memory) as f64 / STATE as f64;
            let how = if beside { "beside the model" } else { "while it waits" };
            seen.push(format!("{text:?} {states} + {disk}, {how}: {more:.2} states more"));
            // A model that waits is encoded from its own memory: there is no copy of its state but the encoded one.
            let copies = if beside || text.is_empty() { 2 } else { 1 };
            let allowed = memory + (copies + scratch) * STATE + SMALL;
            assert!(peak <= allowed, "{peak} bytes of {allowed}: {seen:#?}");
        }
    }
    println!("{seen:#?}");
    a_long_mixed_plan_takes_less_than_a_hundred_mebibytes();
}

fn a_long_mixed_plan_takes_less_than_a_hundred_mebibytes() {
    let before = memory::live_of_all();
    memory::forget_peak_of_all();
    let mut plan = Mixed::new(10_000, 100, Place::Memory).unwrap();
    let first = plan.next_action();
    let peak = memory::peak_of_all() - before;
    assert!(first.is_some() && peak <= 100 << 20, "{peak} bytes, {first:?}");
}
