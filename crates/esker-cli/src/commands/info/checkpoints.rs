//! `esker info` of the folder of an adjoint run.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use esker_adjoint::{Layout, Stage, Survey};
use esker_store::Store;
use serde_json::{Value, json};

use crate::failure::{Ended, Failure, Outcome};
use crate::terminal::quantity::{bytes, grouped, plural};
use crate::terminal::table::{Side, Table, printable};
use crate::terminal::{Screen, json};

pub(super) fn run(
    store: &Arc<dyn Store>,
    path: &Path,
    as_json: bool,
    screen: &mut Screen,
) -> Ended {
    let survey = esker_adjoint::survey(store, path).map_err(|error| Failure::file(path, error))?;
    match as_json {
        true => json::write(screen, &document(path, &survey))?,
        false => text(path, &survey, screen)?,
    }
    Ok(Outcome::Good)
}

fn stage(survey: &Survey) -> String {
    match survey.stage() {
        Stage::Forward => "running forward, or killed there".to_string(),
        Stage::Reverse(at) => {
            format!("running back, or killed there; its adjoint is kept at state {at}")
        }
        Stage::Done => "done; its adjoint at state 0 is kept".to_string(),
    }
}

/// `8 × f64` has no place here: bytes are what budgets count.
fn state_bytes(state: &[Layout]) -> u64 {
    state.iter().filter_map(Layout::bytes).map(|bytes| bytes as u64).sum()
}

fn text(path: &Path, survey: &Survey, screen: &mut Screen) -> std::io::Result<()> {
    let (about, depth, width) = (&survey.about, screen.depth, screen.width);
    let name = printable(&path.display().to_string());
    let steps = match about.steps {
        0 => "an unknown number of steps".to_string(),
        steps => plural(steps as usize, "step"),
    };
    let ranks = plural(about.ranks as usize, "rank");
    writeln!(
        screen,
        "{}  adjoint run of {steps} on {ranks}, {} on disk: {}",
        depth.bold(name),
        bytes(survey.bytes),
        stage(survey)
    )?;
    let budget = |bytes_of: u64| match bytes_of {
        u64::MAX => "no limit".to_string(),
        count => bytes(count),
    };
    writeln!(
        screen,
        "  budgets of a rank: memory {}, disk {}; a state of rank 0 has {}",
        budget(about.budgets[0]),
        budget(about.budgets[1]),
        bytes(state_bytes(&about.state))
    )?;
    let mut table =
        Table::new([("array", Side::Left), ("type", Side::Left), ("filters", Side::Left)]);
    let filter = |name: &str| {
        let named = about.filters.iter().find(|(array, _)| array == name);
        let any = || about.filters.iter().find(|(array, _)| array == "*");
        named.or_else(any).map_or(String::new(), |(_, text)| text.clone())
    };
    for array in &about.state {
        table.row([array.name.clone(), array.to_string(), filter(&array.name)]);
    }
    table.write(screen, depth, width)?;
    let steps: Vec<String> = survey.checkpoints().into_iter().map(grouped).collect();
    if !steps.is_empty() {
        writeln!(screen, "  checkpoints on disk, of all ranks: states {}", steps.join(", "))?;
    }
    let missing = u64::from(about.ranks).saturating_sub(survey.ranks.len() as u64);
    if missing > 0 {
        let missing = plural(missing as usize, "rank");
        writeln!(screen, "  {}", depth.bad(format!("{missing} have no journal")))?;
    }
    for (rank, found) in &survey.ranks {
        for damage in &found.damage {
            let line = format!("rank {rank}: {}", printable(damage));
            writeln!(screen, "  {}", depth.bad(line))?;
        }
    }
    Ok(())
}

fn document(path: &Path, survey: &Survey) -> Value {
    let about = &survey.about;
    let array = |array: &Layout| json!({"name": array.name, "type": array.ty.cdl_name(), "shape": array.shape});
    let (stage, adjoint) = match survey.stage() {
        Stage::Forward => ("forward", None),
        Stage::Reverse(at) => ("reverse", Some(at)),
        Stage::Done => ("done", Some(0)),
    };
    json!({
        "folder": path.display().to_string(),
        "kind": "adjoint checkpoints",
        "steps": about.steps,
        "ranks": about.ranks,
        "journals": survey.ranks.len(),
        "memory": about.budgets[0],
        "disk": about.budgets[1],
        "bytes": survey.bytes,
        "stage": stage,
        "adjoint_at": adjoint,
        "checkpoints": survey.checkpoints(),
        "state": about.state.iter().map(array).collect::<Vec<_>>(),
        "filters": about.filters.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "damage": survey.ranks.values().flat_map(|rank| &rank.damage).collect::<Vec<_>>(),
    })
}
