//! Checkpoints are written while the model goes on, and read before they are asked for. Told by gates, not by clocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use esker_adjoint::{ArrayMut, Model, ModelError, Options, budget, run};
use esker_comm::SelfComm;
use esker_store::{GatedStore, MemoryStore};

use crate::wave::Wave;

const STEPS: u64 = 12;
/// The checkpoint that the gate keeps waiting, as it is written and as it is read.
const HELD: u64 = 5;

/// A model that opens the gate in the middle of a step: if nobody waits at it until then, the run would wait for ever.
struct Watching {
    wave: Wave,
    gate: GatedStore<MemoryStore>,
    written_beside: bool,
    read_ahead: bool,
    /// Somebody else has opened the gate, because nothing went on.
    stuck: Arc<AtomicBool>,
}

impl Watching {
    fn file() -> String {
        format!("{HELD:08}.0.seg")
    }

    /// Whether a call waits at the gate now, while the model is at work.
    fn opens(&self) -> bool {
        if self.stuck.load(Ordering::SeqCst) {
            return false;
        }
        self.gate.until_waiting(1);
        self.gate.open_gate();
        true
    }
}

impl Model for Watching {
    fn state(&mut self) -> Vec<ArrayMut<'_>> {
        self.wave.state()
    }

    fn adjoint(&mut self) -> Vec<ArrayMut<'_>> {
        self.wave.adjoint()
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        // Its own step is run before it is handed over: the next one is run beside the write.
        if from == HELD + 1 {
            self.written_beside = self.opens();
        }
        self.wave.forward(from, to)?;
        if to == STEPS {
            self.gate.close(Watching::file());
        }
        Ok(())
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<(), ModelError> {
        if to == HELD + 1 {
            self.read_ahead = self.opens();
        }
        self.wave.reverse(from, to)
    }
}

#[test]
fn a_checkpoint_is_written_beside_a_step_and_read_before_it_is_wanted() {
    let gate = GatedStore::new(MemoryStore::default());
    gate.close(Watching::file());
    let options = Options {
        memory: 0,
        disk: 1 << 20,
        folder: Some("run.chk".into()),
        store: Arc::new(gate.clone()),
        measure: false,
        ..Options::default()
    };
    let (stuck, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    // Only where the promise is broken does this matter: the test fails then, and does not hang.
    let guard = {
        let (gate, stuck, done) = (gate.clone(), stuck.clone(), done.clone());
        std::thread::spawn(move || {
            for _ in 0..1200 {
                if done.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            stuck.store(true, Ordering::SeqCst);
            while !done.load(Ordering::SeqCst) {
                gate.open_gate();
                std::thread::sleep(Duration::from_millis(10));
            }
        })
    };
    let wave = Wave::new(200, STEPS, 0);
    let mut model =
        Watching { wave, gate, written_beside: false, read_ahead: false, stuck: stuck.clone() };
    let mut plan = budget(&mut model, STEPS, &SelfComm::new(), &options).unwrap();
    let report = run(&mut model, &mut plan, &SelfComm::new(), &options);
    done.store(true, Ordering::SeqCst);
    guard.join().unwrap();
    let report = report.unwrap();
    assert_eq!(report.stored, [0, STEPS - 1], "{report:?}");
    assert!(model.written_beside, "the model waited for a write");
    assert!(model.read_ahead, "nothing was read before it was asked for");
    let expected = Wave::new(200, STEPS, 0).plain_gradient().gradient();
    assert_eq!(model.wave.gradient(), expected);
}
