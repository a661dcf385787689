//! What is right: values, compared with the plain arrays of a life.
//!
//! A read gives the right values or an error. Anything else is a *silent difference*, whatever
//! caused it.

use esker::{Dataset, Selection, VarId};
use esker_format::sealed::SEAL;

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
    /// Whether a note may tell what cannot be an error: that fewer records are there than were written, since a loss of
    /// power leaves the same where nothing was synced; that a broken seal may have lost its name to another variable.
    pub(crate) noted: bool,
    /// Variables that are compared.
    pub(crate) vars: [bool; 3],
}

impl Allowed {
    /// Exactly what a life left that came to its end.
    pub(crate) fn all(life: &Life) -> Allowed {
        let steps = life.steps;
        Allowed { promised: steps, begun: steps, zeros: false, noted: false, vars: [true; 3] }
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
    let shape = match ds.shape(id) {
        Ok(shape) => shape,
        // With the power, a number of records may go that nobody has promised: those that were are read.
        Err(error) if allowed.zeros && var == 1 => match allowed.promised {
            0 => return Err(error),
            promised => life.shape(var, promised),
        },
        Err(error) => return Err(error),
    };
    let is_whole = ds.shape(id).is_ok();
    let records = if var == 1 { shape.first().copied().unwrap_or(0) } else { 0 };
    let fits = var != 1 || (allowed.promised..=allowed.begun).contains(&records);
    if let Some(note) = impostor(ds, id, life, var, allowed)? {
        return Ok(Verdict::Told(note));
    }
    let fewer = |note: &&String| note.starts_with("the file counts");
    let note = ds.notes().iter().find(fewer).filter(|_| allowed.noted && var == 1);
    if let Some(note) =
        note.filter(|_| shape == life.shape(var, records) && records < allowed.promised)
    {
        let told = Verdict::Told(note.clone());
        let values = ds.get::<f64>(id, &Selection::all())?;
        return Ok(compare(life, var, records, &values, allowed).and(told));
    }
    if shape != life.shape(var, records) || !fits {
        // Not read: it may well be larger than memory.
        let (name, promised) = (NAMES[var], life.shape(var, allowed.promised));
        let what = format!("{name} has the shape {shape:?}, not {promised:?}");
        return Ok(Verdict::Silent(what));
    }
    let chunk = ds.chunking(id).map(|chunking| chunking.chunk.clone());
    let mut read = |part: &Selection| match ds.comm().size() {
        1 => ds.get::<f64>(id, part),
        _ => ds.get_all::<f64>(id, part),
    };
    let all = match is_whole {
        true => Selection::all(),
        false => Selection::slab(&vec![0; shape.len()], &shape),
    };
    match read(&all) {
        Ok(values) => Ok(compare(life, var, records, &values, allowed)),
        // Chunks that were written again since the sync may be lost with the power, and no others.
        Err(error) if allowed.zeros && life.form.is_chunked() && !life.is_ordered() => {
            untouched(life, var, (&shape, error), allowed, chunk, &mut read)
        }
        // With the power, records that nobody promised may go: those that were are read without them.
        Err(_) if allowed.zeros && var == 1 && records > allowed.promised => {
            let mut count = shape.clone();
            count[0] = allowed.promised;
            let values = read(&Selection::slab(&vec![0; count.len()], &count))?;
            Ok(compare(life, var, allowed.promised, &values, allowed))
        }
        Err(error) => Err(error),
    }
}

/// Damage can give the name of a sealed variable to one as netCDF has them, which nobody can check. Then the seal of the
/// one that lost its name is broken, and a note says so. A variable that has a seal is none of these, whatever notes
/// there are.
fn impostor(
    ds: &Dataset,
    id: VarId,
    life: &Life,
    var: usize,
    allowed: &Allowed,
) -> esker::Result<Option<String>> {
    let is_sealed = life.form.is_chunked() || life.form.is_decomposed();
    if !allowed.noted || !is_sealed || var > 1 {
        return Ok(None);
    }
    if ds.chunking(id).is_some() || ds.decomposition(id)?.is_some() {
        return Ok(None);
    }
    Ok(ds.notes().iter().find(|note| note.contains(SEAL)).cloned())
}

fn compare(life: &Life, var: usize, records: u64, values: &[f64], allowed: &Allowed) -> Verdict {
    let name = NAMES[var];
    let states: Vec<_> = (allowed.promised..=allowed.begun).map(|k| life.state(k)).collect();
    let plane = values.len() / records.max(1) as usize;
    for (place, found) in values.iter().enumerate() {
        let mut may = states.iter().filter_map(|state| state.values[var].get(place));
        if may.any(|value| value == found) {
            continue;
        }
        // A record that was begun holds fill values where nobody wrote yet, or zeros where the disk has lost them; so
        // does everything where nothing was ever synced.
        let fresh = var == 1 && (place / plane.max(1)) as u64 >= allowed.promised;
        let unsynced = fresh || allowed.promised == 0;
        if (fresh && *found > 9e36) || (allowed.zeros && unsynced && *found == 0.0) {
            continue;
        }
        let may: Vec<_> = states.iter().filter_map(|s| s.values[var].get(place)).collect();
        return Verdict::Silent(format!("{name}[{place}] is {found}, not one of {may:?}"));
    }
    Verdict::Right
}

/// Reads every chunk that no step since the sync has written to, one by one: they are what was promised.
fn untouched(
    life: &Life,
    var: usize,
    (shape, error): (&[u64], esker::Error),
    allowed: &Allowed,
    chunk: Option<Vec<u64>>,
    read: &mut dyn FnMut(&Selection) -> esker::Result<Vec<f64>>,
) -> esker::Result<Verdict> {
    // A variable as netCDF has it has nothing that could be lost so.
    let Some(chunk) = chunk else { return Err(error) };
    let touched = life.written_by(var, allowed.promised..allowed.begun);
    let mut shape = shape.to_vec();
    if var == 1 {
        shape[0] = shape[0].min(allowed.promised);
    }
    let state = life.state(allowed.promised);
    let grid: Vec<u64> =
        shape.iter().zip(&chunk).map(|(len, chunk)| len.div_ceil(*chunk)).collect();
    for number in 0..grid.iter().product() {
        let (mut rest, mut start, mut count) = (number, vec![0; grid.len()], vec![0; grid.len()]);
        for d in (0..grid.len()).rev() {
            start[d] = rest % grid[d] * chunk[d];
            count[d] = chunk[d].min(shape[d] - start[d]);
            rest /= grid[d];
        }
        // All that lies in the chunk, also behind the records that were promised.
        let within = |place: &u64| {
            let mut rest = *place;
            let at = |d: usize| {
                let len = if var == 1 && d == 0 { u64::MAX } else { shape[d] };
                let at = rest % len;
                rest /= len;
                (start[d]..start[d] + chunk[d]).contains(&at)
            };
            (0..grid.len()).rev().all(at)
        };
        if touched.iter().any(within) {
            continue;
        }
        let found = read(&Selection::slab(&start, &count))?;
        let mut places = vec![0u64];
        for d in 0..grid.len() {
            let next = |place: &u64| {
                let first = place * shape[d] + start[d];
                (first..first + count[d]).collect::<Vec<u64>>()
            };
            places = places.iter().flat_map(next).collect();
        }
        for (place, found) in places.iter().zip(&found) {
            if state.values[var].get(*place as usize) != Some(found) {
                let (name, chunk) = (NAMES[var], number);
                let what = format!(
                    "{name}: chunk {chunk} was not written since the sync, but element {place} is {found}"
                );
                return Ok(Verdict::Silent(what));
            }
        }
    }
    Ok(Verdict::Right)
}
