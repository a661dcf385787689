//! `esker recover` of the folder of an adjoint run.

use std::io::Write;
use std::sync::Arc;

use esker_adjoint::{Gravity, Recovery, Stage};
use esker_store::Store;
use esker_text::shown_path;
use serde_json::{Value, json};

use super::Arguments;
use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::plural;
use crate::terminal::table::printable;
use crate::terminal::{Screen, json};

pub(super) fn run(store: &Arc<dyn Store>, arguments: &Arguments, screen: &mut Screen) -> Ended {
    let path = &arguments.path;
    let mut bar = screen.bar("reading the checkpoints");
    let mut progress = |done, total| bar.update(done, total);
    let recovered = esker_adjoint::recover(store, path, arguments.dry_run, &mut progress);
    drop(bar);
    let recovery = recovered.map_err(|error| Failure::file(path, error))?;
    match arguments.json {
        true => json::write(screen, &document(arguments, &recovery))?,
        false => text(arguments, &recovery, screen)?,
    }
    let is_loss = recovery.faults.iter().any(|fault| fault.gravity != Gravity::Leftover);
    Ok(if is_loss { Outcome::Bad } else { Outcome::Good })
}

fn text(arguments: &Arguments, recovery: &Recovery, screen: &mut Screen) -> std::io::Result<()> {
    let (name, depth) = (shown_path(&arguments.path).to_string(), screen.depth);
    for fault in &recovery.faults {
        let word = match fault.gravity {
            Gravity::Leftover => depth.faint("left over"),
            Gravity::Lost | Gravity::Fatal => depth.bad("lost"),
        };
        let file = shown_path(fault.file.strip_prefix(&arguments.path).unwrap_or(&fault.file));
        writeln!(screen, "{name}: {word}: {file}: {}", printable(&fault.sentence))?;
    }
    let Some(survey) = &recovery.survey else { return Ok(()) };
    let whole = plural(survey.checkpoints().len(), "checkpoint");
    let steps = survey.about.steps;
    match survey.stage() {
        Stage::Done => {
            writeln!(screen, "{name}: the run is done; resuming it gives its result again")
        }
        Stage::Forward => writeln!(
            screen,
            "{name}: a resumed run has {whole} on disk, and goes forward to state {steps}"
        ),
        Stage::Reverse(at) => writeln!(
            screen,
            "{name}: a resumed run has {whole} on disk, and goes back from state {at} of {steps}"
        ),
    }
}

fn document(arguments: &Arguments, recovery: &Recovery) -> Value {
    let fault = |fault: &esker_adjoint::Fault| {
        json!({
            "file": fault.file.display().to_string(),
            "gravity": match fault.gravity {
                Gravity::Leftover => "left over",
                Gravity::Lost => "lost",
                Gravity::Fatal => "fatal",
            },
            "step": fault.step,
            "sentence": fault.sentence,
        })
    };
    let survey = recovery.survey.as_ref();
    json!({
        "folder": arguments.path.display().to_string(),
        "dry_run": arguments.dry_run,
        "faults": recovery.faults.iter().map(fault).collect::<Vec<_>>(),
        "checkpoints": survey.map(|survey| survey.checkpoints()),
        "adjoint_at": survey.and_then(|survey| match survey.stage() {
            Stage::Reverse(at) => Some(at),
            Stage::Done => Some(0),
            Stage::Forward => None,
        }),
    })
}
