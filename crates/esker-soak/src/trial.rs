//! What is done to datasets: each kind of trial, from a seed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use esker::{
    Communicator, ContainerRecoverOptions, Dataset, OpenOptions, Owner, RecoverOptions, SelfComm,
};
use esker_comm::LaunchError;
use esker_store::{Fault, FaultyStore, LocalStore, MemoryStore, Store};
use esker_testkit::mpi::Mpi;
use esker_testkit::random::Random;
use esker_testkit::{memory, ranks};
use esker_tools::Unseen;
use esker_tools::check::{CheckOptions, check};

use crate::damage;
use crate::form::Form;
use crate::judge::{Allowed, Verdict, judge};
use crate::life::{Life, Progress};
use crate::structures::{Files, Structure, files_of, places, store_of};

/// Damages to each life that is damaged.
const MUTANTS: u64 = 24;
/// What reading a dataset of some kilobytes may take.
const MEMORY: usize = 128 << 20;
const SECTOR: u64 = 512;

/// What is done to datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Damage aimed at a structure, or anywhere in all files.
    Mutants(Form, Option<Structure>),
    /// The process dies at some call (thread-ranks).
    Deaths(Form),
    /// The same, and then the power fails.
    PowerCuts(Form),
    /// A call fails.
    Faults(Form),
    /// A whole life under MPI.
    Jobs(Form, Family),
    /// A rank of an MPI job is killed.
    Kills(Form, Family),
}

/// Which MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Family {
    Mpich,
    OpenMpi,
}

/// What a trial came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// What was done came at a moment without interest, or changed nothing.
    Missed,
    Judged(Verdict),
    /// A panic, a hang, a blow-up of memory.
    Crashed(String),
}

impl Kind {
    /// All of them, in the order in which they take turns.
    pub(crate) fn all() -> Vec<Kind> {
        let mut all = Vec::new();
        for form in Form::ALL {
            let structures = Structure::of(form).iter().map(|s| Kind::Mutants(form, Some(*s)));
            all.extend(structures);
            if form != Form::Canonical {
                all.push(Kind::Mutants(form, None));
            }
            all.extend([Kind::Deaths(form), Kind::PowerCuts(form), Kind::Faults(form)]);
        }
        for family in [Family::Mpich, Family::OpenMpi] {
            for form in Form::ALL {
                all.extend([Kind::Jobs(form, family), Kind::Kills(form, family)]);
            }
        }
        all
    }

    pub(crate) fn name(self) -> String {
        let mpi = |family| match family {
            Family::Mpich => "mpich",
            Family::OpenMpi => "openmpi",
        };
        match self {
            Kind::Mutants(form, what) => {
                format!("mutants/{}/{}", form.name(), what.map_or("anywhere", Structure::name))
            }
            Kind::Deaths(form) => format!("deaths/{}", form.name()),
            Kind::PowerCuts(form) => format!("power-cuts/{}", form.name()),
            Kind::Faults(form) => format!("faults/{}", form.name()),
            Kind::Jobs(form, family) => format!("jobs/{}/{}", form.name(), mpi(family)),
            Kind::Kills(form, family) => format!("kills/{}/{}", form.name(), mpi(family)),
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Kind> {
        Kind::all().into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn needs_mpi(self) -> bool {
        matches!(self, Kind::Jobs(..) | Kind::Kills(..))
    }

    /// Whether an error is as bad as a wrong value: what was promised has to be there.
    pub(crate) fn errors_are_losses(self) -> bool {
        !matches!(self, Kind::Mutants(..))
    }

    /// Does it once; mutants many times.
    pub(crate) fn run(self, seed: u64) -> Vec<Outcome> {
        match self {
            Kind::Mutants(form, what) => mutants(form, what, seed),
            Kind::Deaths(form) => vec![death(form, seed, false)],
            Kind::PowerCuts(form) => vec![death(form, seed, true)],
            Kind::Faults(form) => vec![fault(form, seed)],
            Kind::Jobs(form, family) => vec![job(form, family, seed)],
            Kind::Kills(form, family) => vec![kill(form, family, seed)],
        }
    }
}

/// How far a life of thread-ranks has come.
#[derive(Debug, Default)]
struct Reached {
    begun: AtomicU64,
    synced: AtomicU64,
}

impl Progress for Reached {
    fn begun(&self, step: u64) {
        self.begun.fetch_max(step, Ordering::SeqCst);
    }

    fn synced(&self, step: u64) {
        self.synced.fetch_max(step, Ordering::SeqCst);
    }
}

impl Reached {
    fn allowed(&self, zeros: bool) -> Allowed {
        let [promised, begun] = [&self.synced, &self.begun].map(|n| n.load(Ordering::SeqCst));
        Allowed { promised, begun, zeros, noted: false, vars: [true; 3] }
    }
}

const FOLDER: &str = "/run";

/// A disk with the folders that a life needs.
fn disk() -> MemoryStore {
    store_of(&Files::new(), Path::new(FOLDER))
}

/// Lives on thread-ranks; gives each rank's outcome.
fn live(
    life: &Life,
    store: Arc<dyn Store>,
    reached: &Arc<Reached>,
) -> Result<Vec<esker::Result<()>>, LaunchError> {
    let (life, reached) = (life.clone(), reached.clone());
    ranks::launched(life.ranks, move |comm: Arc<dyn Communicator>| {
        life.run(store.clone(), comm, Path::new(FOLDER), &*reached)
    })
}

/// The changes of the store that a whole life makes.
fn calls_of(life: &Life) -> Result<u64, Outcome> {
    let store = FaultyStore::new(disk(), u64::MAX, Fault::Kill);
    let done = live(life, Arc::new(store.clone()), &Arc::default());
    match done {
        Ok(all) if all.iter().all(Result::is_ok) => Ok(store.calls()),
        other => Err(Outcome::Crashed(format!("a life without faults: {other:?}"))),
    }
}

fn opened(
    form: Form,
    store: &Arc<dyn Store>,
    folder: &Path,
    writable: bool,
    comm: Arc<dyn Communicator>,
) -> esker::Result<Dataset> {
    let options = OpenOptions::new().writable(writable).store(store.clone()).comm(comm);
    Dataset::open_with(form.path(folder), options)
}

/// What a reader sees: one process, or several ranks that read together.
fn look(
    life: &Life,
    store: &Arc<dyn Store>,
    folder: &Path,
    allowed: Allowed,
    together: bool,
) -> Verdict {
    let (life, store, folder) = (life.clone(), store.clone(), folder.to_path_buf());
    let one =
        move |comm: Arc<dyn Communicator>| match opened(life.form, &store, &folder, false, comm) {
            Err(error) => Verdict::Told(error.to_string()),
            Ok(mut ds) => judge(&mut ds, &life, &allowed),
        };
    if together {
        let all = ranks::on_ranks(2, one);
        return all.into_iter().fold(Verdict::Right, Verdict::and);
    }
    let (verdict, used) = memory::peak(|| one(Arc::new(SelfComm::new())));
    assert!(used <= MEMORY, "{used} bytes were allocated to read it");
    verdict
}

/// What a reader sees after what documentation tells people to do when a program has died.
fn look_after(life: &Life, store: &Arc<dyn Store>, folder: &Path, allowed: Allowed) -> Verdict {
    let path = life.form.path(folder);
    match life.form {
        Form::BurstBuffer | Form::DecomposedFiles => {
            let options = RecoverOptions::new().dir(Form::buffer(folder)).store(store.clone());
            match esker::recover(&path, &options) {
                Err(error) => return Verdict::Told(error.to_string()),
                // What is there must be right all the same. What a disk has lost of a log was not promised.
                Ok(recovery) if !recovery.is_complete() && !allowed.zeros => {
                    let verdict = look(life, store, folder, allowed, false);
                    return verdict.and(Verdict::Told(format!("{recovery:?}")));
                }
                Ok(_) => {}
            }
        }
        Form::Log | Form::LogChunks => {
            let mut unseen = |_, _| {};
            let options = ContainerRecoverOptions::default();
            match esker::recover_container(store, &path, options, &mut unseen) {
                Err(error) => return Verdict::Told(error.to_string()),
                // A version that a close has made promises nothing after a loss of power.
                Ok(recovery)
                    if !allowed.zeros && recovery.faults.iter().any(|fault| fault.committed) =>
                {
                    return Verdict::Told(format!("{recovery:?}"));
                }
                Ok(_) => {}
            }
        }
        _ => {
            // A writer finishes what a redefinition has begun.
            let comm = Arc::new(SelfComm::new());
            let finished = opened(life.form, store, folder, true, comm).and_then(Dataset::close);
            if let Err(error) = finished {
                return Verdict::Told(error.to_string());
            }
        }
    }
    look(life, store, folder, allowed, false)
}

/// Nothing was promised, so that nothing needs to be there.
fn excused(verdict: Verdict, allowed: &Allowed) -> Verdict {
    match verdict {
        Verdict::Told(_) if allowed.promised == 0 => Verdict::Right,
        other => other,
    }
}

fn death(form: Form, seed: u64, power: bool) -> Outcome {
    let mut random = Random(seed);
    let life = Life::new(form, seed, 5);
    let ordered = random.one_in(2);
    let life = if ordered { life.ordered() } else { life };
    let calls = match calls_of(&life) {
        Ok(calls) => calls,
        Err(outcome) => return outcome,
    };
    let store = disk();
    let names: Vec<PathBuf> = vec![form.path(Path::new(FOLDER))];
    names.iter().for_each(|name| drop(store.sync_names(name)));
    let fault = random.pick(&[Fault::Kill, Fault::Tear]);
    let at = random.below_u64(calls);
    let faulty = FaultyStore::with_sectors(store.clone(), at, fault, SECTOR);
    let reached = Arc::new(Reached::default());
    if let Err(error) = live(&life, Arc::new(faulty.clone()), &reached) {
        return Outcome::Crashed(error.to_string());
    }
    if faulty.calls() <= at {
        return Outcome::Missed;
    }
    let allowed = reached.allowed(power);
    if power {
        let share = random.pick(&[0, 0, 50, 80]);
        store.lose_power_but_sectors(SECTOR, |_, _| random.chance(share));
    }
    let shared: Arc<dyn Store> = Arc::new(store);
    let folder = Path::new(FOLDER);
    let left = look(&life, &shared, folder, allowed, random.one_in(3));
    let mended = look_after(&life, &shared, folder, allowed);
    if let Verdict::Silent(why) = mended {
        return Outcome::Judged(Verdict::Silent(why));
    }
    // A container's newest version may promise what the disk has lost, and says so; a recovery finds what was
    // promised. Logs of a burst buffer need a recovery too.
    let needs_recovery = form.is_container() || form == Form::BurstBuffer;
    let verdict = match left {
        Verdict::Told(_) if needs_recovery => mended,
        // Before a recovery a burst buffer's file has what was flushed.
        Verdict::Silent(_) if form == Form::BurstBuffer => mended,
        left => left.and(mended),
    };
    Outcome::Judged(excused(verdict, &allowed))
}

fn fault(form: Form, seed: u64) -> Outcome {
    let mut random = Random(seed);
    let life = Life::new(form, seed, 5);
    let calls = match calls_of(&life) {
        Ok(calls) => calls,
        Err(outcome) => return outcome,
    };
    let store = disk();
    let kind =
        random.pick(&[ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::PermissionDenied]);
    let fault = random.pick(&[Fault::Fail(kind), Fault::FailHalf(kind)]);
    let at = random.below_u64(calls);
    let faulty = FaultyStore::with_sectors(store.clone(), at, fault, SECTOR);
    let reached = Arc::new(Reached::default());
    let outcomes = match live(&life, Arc::new(faulty.clone()), &reached) {
        Err(error) => return Outcome::Crashed(error.to_string()),
        Ok(outcomes) => outcomes,
    };
    if faulty.calls() <= at {
        return Outcome::Missed;
    }
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let allowed = match failed {
        0 => Allowed::all(&life),
        _ => reached.allowed(false),
    };
    if failed != 0 && failed != outcomes.len() {
        let what = format!("{failed} of {} ranks have an error", outcomes.len());
        return Outcome::Judged(Verdict::Silent(what));
    }
    let shared: Arc<dyn Store> = Arc::new(store);
    let verdict = look_after(&life, &shared, Path::new(FOLDER), allowed);
    Outcome::Judged(excused(verdict, &allowed))
}

/// A dataset to be damaged: its files, and what it may hold.
fn victim(
    form: Form,
    what: Option<Structure>,
    life: &Life,
    random: &mut Random,
) -> Option<(Files, Allowed)> {
    let reached = Arc::new(Reached::default());
    let store = disk();
    if form == Form::BurstBuffer {
        // Logs are there only after a death.
        let calls = calls_of(life).ok()?;
        let at = calls / 4 + random.below_u64(calls - calls / 4);
        let faulty = FaultyStore::new(store.clone(), at, Fault::Kill);
        live(life, Arc::new(faulty), &reached).ok()?;
        return Some((files_of(&store), reached.allowed(false)));
    }
    let done = live(life, Arc::new(store.clone()), &reached).ok()?;
    done.into_iter().collect::<esker::Result<Vec<()>>>().ok()?;
    if what == Some(Structure::Journal) {
        return Some((with_journal(life, &files_of(&store), random)?, Allowed::all(life)));
    }
    Some((files_of(&store), Allowed::all(life)))
}

/// The files as a redefinition left them that died when its journal was there.
fn with_journal(life: &Life, files: &Files, random: &mut Random) -> Option<Files> {
    let folder = Path::new(FOLDER);
    let mut found = Vec::new();
    for at in 0..60 {
        let store = store_of(files, folder);
        let faulty = FaultyStore::new(store.clone(), at, random.pick(&[Fault::Kill, Fault::Tear]));
        let shared: Arc<dyn Store> = Arc::new(faulty.clone());
        let outcome = opened(life.form, &shared, folder, true, Arc::new(SelfComm::new()))
            .and_then(Dataset::redef)
            .and_then(|mut def| {
                def.put_attr(Owner::Global, "title", "A LIFE")?;
                Ok(def.enddef()?)
            })
            .and_then(Dataset::close);
        let files = files_of(&store);
        if files.keys().any(|name| name.to_string_lossy().ends_with("esker-redef")) {
            found.push(files);
        }
        if outcome.is_ok() {
            break;
        }
    }
    (!found.is_empty()).then(|| found.swap_remove(random.below(found.len())))
}

fn mutants(form: Form, what: Option<Structure>, seed: u64) -> Vec<Outcome> {
    let mut random = Random(seed);
    let life = Life::new(form, seed, 4);
    let folder = Path::new(FOLDER);
    let Some((files, allowed)) = victim(form, what, &life, &mut random) else {
        return vec![Outcome::Crashed("a life without faults failed".into())];
    };
    let own: &[Structure] = Structure::of(form);
    let wanted: &[Structure] = what.as_ref().map_or(own, std::slice::from_ref);
    let mut outcomes = Vec::new();
    for number in 0..MUTANTS {
        let structure = random.pick(wanted);
        let found = places(form, folder, &files, structure);
        let mut damaged = files.clone();
        let how = match what {
            // Files that go, or change places.
            None if random.one_in(4) => whole_files(&mut random, &mut damaged),
            _ => damage::aim(&mut random, &mut damaged, &found),
        };
        let Some(how) = how else {
            outcomes.push(Outcome::Missed);
            continue;
        };
        let how = format!("mutant {number}, {}: {how}", structure.name());
        // Values of other programs' variables, and what describes these, nobody can check (docs/soak.md).
        let plain = structure != Structure::Header;
        let allowed = Allowed { vars: [true, true, plain], noted: true, ..allowed };
        let store = store_of(&damaged, folder);
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let together = random.one_in(4);
        let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let verdict = match form {
                Form::BurstBuffer => look_after(&life, &shared, folder, allowed),
                _ => look(&life, &shared, folder, allowed, together),
            };
            // A check may say what it likes, but it comes back.
            let options = CheckOptions { store: shared.clone(), read_data: true };
            let _ = check(form.path(folder), &options, &mut Unseen);
            verdict
        }));
        outcomes.push(match judged {
            Ok(Verdict::Silent(why)) => Outcome::Judged(Verdict::Silent(format!("{how}: {why}"))),
            Ok(verdict) => Outcome::Judged(verdict),
            Err(_) => Outcome::Crashed(how),
        });
    }
    outcomes
}

/// A file that is gone, empty, or in the place of another of its kind.
fn whole_files(random: &mut Random, files: &mut Files) -> Option<String> {
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let name = names.get(random.below(names.len()))?;
    let kind = |path: &PathBuf| path.extension().map(|e| e.to_os_string());
    let like: Vec<&PathBuf> =
        names.iter().filter(|n| n.parent() == name.parent() && kind(n) == kind(name)).collect();
    let other = like.get(random.below(like.len()))?;
    Some(match random.below(3) {
        0 => {
            files.remove(name);
            format!("{} removed", name.display())
        }
        1 if *other != name => {
            let (first, second) = (files.remove(name)?, files.remove(*other)?);
            files.insert(name.clone(), second);
            files.insert((*other).clone(), first);
            format!("{} and {} exchanged", name.display(), other.display())
        }
        _ => {
            files.get_mut(name)?.clear();
            format!("{} emptied", name.display())
        }
    })
}

// ---- MPI ----

/// How far a job has come, told in files beside the dataset.
struct Told<'f>(&'f Path);

impl Told<'_> {
    fn write(&self, name: &str, step: u64) {
        // In one step, so that whoever looks sees a whole number.
        let new = self.0.join(format!("{name}.new"));
        let written = std::fs::write(&new, step.to_string());
        let named = written.and_then(|()| std::fs::rename(&new, self.0.join(name)));
        assert!(named.is_ok(), "{named:?}");
    }
}

impl Progress for Told<'_> {
    fn begun(&self, step: u64) {
        self.write("begun", step);
    }

    fn synced(&self, step: u64) {
        self.write("synced", step);
    }
}

fn told(folder: &Path, name: &str) -> Option<u64> {
    std::fs::read_to_string(folder.join(name)).ok()?.parse().ok()
}

/// What a rank does: `esker-soak rank FORM SEED STEPS FOLDER`.
pub(crate) fn rank(form: Form, seed: u64, steps: u64, folder: &Path) -> Result<(), String> {
    let comm = esker_comm::auto().map_err(|error| error.to_string())?;
    let pid = folder.join(format!("pid.{}", comm.rank()));
    std::fs::write(pid, std::process::id().to_string()).map_err(|error| error.to_string())?;
    let life = Life::new(form, seed, steps);
    life.run(Arc::new(LocalStore), comm, folder, &Told(folder)).map_err(|error| error.to_string())
}

impl Family {
    fn mpi(self) -> Mpi {
        match self {
            Family::Mpich => Mpi::mpich(),
            Family::OpenMpi => Mpi::open_mpi(),
        }
    }

    pub(crate) fn is_here(self) -> bool {
        esker_testkit::programs::is_installed(&self.mpi().mpiexec)
    }
}

const RANKS: usize = 3;

fn words(form: Form, seed: u64, steps: u64, folder: &Path) -> Vec<String> {
    let own = std::env::current_exe().unwrap_or_default();
    let own = own.display().to_string();
    let (seed, steps) = (seed.to_string(), steps.to_string());
    vec![own, "rank".into(), form.name().into(), seed, steps, folder.display().to_string()]
}

fn place(form: Form) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("a folder: {error}"));
    if form == Form::BurstBuffer {
        let made = std::fs::create_dir(Form::buffer(dir.path()));
        assert!(made.is_ok(), "{made:?}");
    }
    dir
}

fn job(form: Form, family: Family, seed: u64) -> Outcome {
    let dir = place(form);
    let life = Life::new(form, seed, 6).with_ranks(RANKS);
    let words = words(form, seed, life.steps, dir.path());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = family.mpi().run(RANKS, &words);
    if !ended.succeeded() {
        return Outcome::Crashed(format!("{ended:?}"));
    }
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    let allowed = Allowed::all(&life);
    let alone = look(&life, &store, dir.path(), allowed, false);
    Outcome::Judged(alone.and(look(&life, &store, dir.path(), allowed, true)))
}

/// A launcher may end before the ranks that it ends, which keep their locks until then.
fn await_ranks(folder: &Path) {
    let lives = |rank: usize| {
        let pid = told(folder, &format!("pid.{rank}"))?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The state follows the name, which is in brackets: one that is dead and not buried has let go of everything.
        let state = stat.rsplit(") ").next()?.chars().next()?;
        (!['Z', 'X'].contains(&state)).then_some(())
    };
    for _ in 0..6000 {
        if (0..RANKS).all(|rank| lives(rank).is_none()) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
}

fn kill(form: Form, family: Family, seed: u64) -> Outcome {
    let mut random = Random(seed);
    let dir = place(form);
    let folder = dir.path();
    let life = Life::new(form, seed, 2000).with_ranks(RANKS);
    let words = words(form, seed, life.steps, folder);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut job = family.mpi().start(&[(RANKS, &words)]);
    let wanted = 1 + random.below_u64(20);
    job.wait_for(|| told(folder, "synced").filter(|synced| *synced >= wanted));
    sleep(Duration::from_micros(random.below_u64(20_000)));
    let Some(victim) = told(folder, &format!("pid.{}", random.below(RANKS))) else {
        return Outcome::Crashed("a rank did not tell its number".into());
    };
    let _ = Command::new("kill").args(["-KILL", &victim.to_string()]).status();
    let ended = job.end();
    await_ranks(folder);
    let (Some(promised), Some(begun)) = (told(folder, "synced"), told(folder, "begun")) else {
        return Outcome::Crashed("the job told nothing".into());
    };
    if ended.succeeded() || begun == promised {
        return Outcome::Missed;
    }
    let allowed = Allowed { promised, begun, zeros: false, noted: false, vars: [true; 3] };
    let store: Arc<dyn Store> = Arc::new(LocalStore);
    Outcome::Judged(look_after(&life, &store, folder, allowed))
}

#[cfg(test)]
mod tests {
    use esker_format::sealed::SEAL;

    use super::*;

    fn lived(form: Form) -> (Life, Files) {
        let (life, store) = (Life::new(form, 5, 4), disk());
        let done = live(&life, Arc::new(store.clone()), &Arc::default()).unwrap();
        done.into_iter().collect::<esker::Result<Vec<()>>>().unwrap();
        (life, files_of(&store))
    }

    fn seen(life: &Life, files: &Files) -> Verdict {
        let store: Arc<dyn Store> = Arc::new(store_of(files, Path::new(FOLDER)));
        look(life, &store, Path::new(FOLDER), Allowed::all(life), false)
    }

    #[test]
    fn a_life_of_every_form_is_what_its_plain_arrays_say() {
        for form in Form::ALL {
            let (life, files) = lived(form);
            assert_eq!(seen(&life, &files), Verdict::Right, "{}", form.name());
        }
    }

    /// The judge can say no: one bit of one value, in a file that has no checksums.
    #[test]
    fn one_wrong_value_is_a_silent_difference() {
        let (life, mut files) = lived(Form::Canonical);
        let bytes = files.get_mut(&Form::Canonical.path(Path::new(FOLDER))).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(matches!(seen(&life, &files), Verdict::Silent(_)));
    }

    #[test]
    fn a_step_that_was_promised_and_is_not_there_is_a_silent_difference() {
        let (mut life, files) = lived(Form::Canonical);
        life.steps += 1;
        assert!(matches!(seen(&life, &files), Verdict::Silent(_)));
    }

    #[test]
    fn an_error_is_told_and_no_difference() {
        let (life, mut files) = lived(Form::Log);
        files.retain(|name, _| !name.to_string_lossy().ends_with(".data"));
        assert!(matches!(seen(&life, &files), Verdict::Told(_)));
    }

    /// Gives a variable another name of the same length, in place (netCDF-C shortens names so).
    fn rename(files: &mut Files, from: &str, to: &str) {
        // The file itself, or, with chunks in files beside it, the classic one in its folder.
        let main = Form::Chunked.path(Path::new(FOLDER));
        let is_main =
            |path: &Path, bytes: &[u8]| path.starts_with(&main) && bytes.starts_with(b"CDF");
        let (_, bytes) = files.iter_mut().find(|(path, bytes)| is_main(path, bytes)).unwrap();
        let mut name = (from.len() as u32).to_be_bytes().to_vec();
        name.extend(from.as_bytes());
        // Variables come behind dimensions and attributes.
        let at = bytes.windows(name.len()).rposition(|part| part == name).unwrap() + 4;
        bytes[at..at + from.len()].fill(0);
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }

    /// A note that a seal is broken excuses another variable under a sealed one's name, and nothing else: neither other
    /// values of a variable that has its seal, nor fewer records, nor another variable without such a note.
    #[test]
    fn a_broken_seal_excuses_another_variable_under_its_name_and_nothing_else() {
        for form in [Form::Chunked, Form::ChunkedFiles, Form::Decomposed, Form::DecomposedFiles] {
            let (life, files) = lived(form);
            let allowed = Allowed { noted: true, vars: [true, true, false], ..Allowed::all(&life) };
            let seen = |files: &Files, life: &Life, allowed: Allowed| {
                let store: Arc<dyn Store> = Arc::new(store_of(files, Path::new(FOLDER)));
                look(life, &store, Path::new(FOLDER), allowed, false)
            };
            // The seal of `rec` is broken, and `plain` has its name.
            let mut renamed = files.clone();
            rename(&mut renamed, "rec", "req");
            rename(&mut renamed, "plain", "rec");
            let verdict = seen(&renamed, &life, allowed);
            let Verdict::Told(note) = verdict else { panic!("{}: {verdict:?}", form.name()) };
            assert!(note.contains("variable \"req\"") && note.contains(SEAL), "{note}");
            // Where no damage was done, nothing of this is forgiven.
            let verdict = seen(&renamed, &life, Allowed { noted: false, ..allowed });
            assert!(matches!(verdict, Verdict::Silent(_)), "{}: {verdict:?}", form.name());
            // `rec` has its seal, whatever is broken beside it: records that are not there, and values of another life.
            let mut broken = files.clone();
            rename(&mut broken, "fixed", "fixee");
            let mut longer = life.clone();
            longer.steps += 1;
            let strange = Life::new(form, 8, 4);
            for other in [longer, strange] {
                let allowed = Allowed { noted: true, ..Allowed::all(&other) };
                let verdict = seen(&broken, &other, allowed);
                assert!(matches!(verdict, Verdict::Silent(_)), "{}: {verdict:?}", form.name());
            }
        }
    }

    /// Every structure is found, or damage would be aimed at nothing.
    #[test]
    fn every_structure_of_every_form_is_found() {
        for form in Form::ALL {
            for what in Structure::of(form) {
                let life = Life::new(form, 5, 4);
                let mut random = Random(5);
                let (files, _) = victim(form, Some(*what), &life, &mut random).unwrap();
                let found = places(form, Path::new(FOLDER), &files, *what);
                assert!(!found.is_empty(), "{} {}", form.name(), what.name());
            }
        }
    }
}
