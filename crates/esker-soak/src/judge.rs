//! What is right: values, compared with the plain arrays of a life.
//!
//! A read gives the right values or an error. Anything else is a *silent difference*, whatever
//! caused it.

use esker::{Dataset, Selection};

use crate::life::{Life, NAMES};

/// What a dataset turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Everything that was read is right.
    Right,
    /// Something could not be read, and that was said; what could be read is right.
    Told(String),
    /// Wrong values, without an error.
    Silent(String),
}

impl Verdict {
    /// The worse of two.
    pub(crate) fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Silent(why), _) | (_, Verdict::Silent(why)) => Verdict::Silent(why),
            (Verdict::Told(why), _) | (_, Verdict::Told(why)) => Verdict::Told(why),
            _ => Verdict::Right,
        }
    }
}

/// What may be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    /// Steps that were promised: their values are there.
    pub(crate) promised: u64,
    /// Steps that were begun: their values may be there.
    pub(crate) begun: u64,
    /// Whether the power failed, so that what was not promised may be zeros, or gone.
    pub(crate) zeros: bool,
    /// Variables that are compared.
    pub(crate) vars: [bool; 3],
}

impl Allowed {
    /// Exactly what a life left that came to its end.
    pub(crate) fn all(life: &Life) -> Allowed {
        let steps = life.steps;
        Allowed { promised: steps, begun: steps, zeros: false, vars: [true; 3] }
    }
}

/// Compares all that a dataset holds with what may be there.
pub(crate) fn judge(ds: &mut Dataset, life: &Life, allowed: &Allowed) -> Verdict {
    let mut verdict = Verdict::Right;
    for var in (0..3).filter(|var| allowed.vars[*var]) {
        let found = look_at(ds, life, var, allowed);
        let told = |error| Verdict::Told(format!("{}: {error}", NAMES[var]));
        verdict = verdict.and(found.unwrap_or_else(told));
    }
    verdict
}

fn look_at(ds: &mut Dataset, life: &Life, var: usize, allowed: &Allowed) -> esker::Result<Verdict> {
    let id = ds.var(NAMES[var])?;
    let shape = ds.shape(id)?;
    let records = if var == 1 { shape.first().copied().unwrap_or(0) } else { 0 };
    let fits = var != 1 || (allowed.promised..=allowed.begun).contains(&records);
    if shape != life.shape(var, records) || !fits {
        // Not read: it may well be larger than memory.
        let (name, promised) = (NAMES[var], life.shape(var, allowed.promised));
        let what = format!("{name} has the shape {shape:?}, not {promised:?}");
        return Ok(Verdict::Silent(what));
    }
    let mut read = |part: &Selection| match ds.comm().size() {
        1 => ds.get::<f64>(id, part),
        _ => ds.get_all::<f64>(id, part),
    };
    match read(&Selection::all()) {
        Ok(values) => Ok(compare(life, var, records, &values, allowed)),
        // Records that nobody promised may be an error: those that were are read without them.
        Err(_) if var == 1 && records > allowed.promised => {
            let mut count = shape.clone();
            count[0] = allowed.promised;
            let values = read(&Selection::slab(&vec![0; count.len()], &count))?;
            Ok(compare(life, var, allowed.promised, &values, allowed))
        }
        Err(error) => Err(error),
    }
}

fn compare(life: &Life, var: usize, records: u64, values: &[f64], allowed: &Allowed) -> Verdict {
    let name = NAMES[var];
    let states: Vec<_> = (allowed.promised..=allowed.begun).map(|k| life.state(k)).collect();
    let plane = values.len() / records.max(1) as usize;
    for (place, found) in values.iter().enumerate() {
        let promised = states[0].values[var].get(place);
        let mut may = states.iter().filter_map(|state| state.values[var].get(place));
        if may.any(|value| value == found) {
            continue;
        }
        // A record that was begun holds fill values where nobody wrote yet.
        let fresh = var == 1 && (place / plane.max(1)) as u64 >= allowed.promised;
        let open = states.iter().any(|state| state.values[var].get(place) != promised);
        if (fresh && *found > 9e36) || (allowed.zeros && (fresh || open) && *found == 0.0) {
            continue;
        }
        let may: Vec<_> = states.iter().filter_map(|s| s.values[var].get(place)).collect();
        return Verdict::Silent(format!("{name}[{place}] is {found}, not one of {may:?}"));
    }
    Verdict::Right
}
