//! The disk tier: a folder with a segment for each checkpoint and rank, and a journal for each rank.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_format::log::Head;
use esker_store::{Access, CreateMode, File, Store};
use serde_json::{Value, json};

use crate::error::{AdjointError, Result};
use crate::journal::{self, Event, Record, Survivors};
use crate::model::Layout;
use crate::segment::Kind;

/// The file that says what the folder is.
pub const MARK: &str = "esker.json";
/// Its name while it is written.
const NEW_MARK: &str = ".esker.json.new";
const WHAT: &str = "adjoint checkpoints";
/// Longer journals and segments than any machine's memory are not read.
const LONGEST: u64 = 1 << 40;

/// What a folder says of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The same in all files of one run.
    pub identity: u64,
    /// How many ranks there are.
    pub ranks: u32,
    /// How many steps.
    pub steps: u64,
    /// Budgets of memory and disk, a rank.
    pub budgets: [u64; 2],
    /// The filters by array, as text.
    pub filters: Vec<(String, String)>,
    /// The arrays of rank 0's state.
    pub state: Vec<Layout>,
    /// What the initial state of each rank was: a number made of its layout and samples.
    pub fingerprint: u64,
}

impl About {
    fn encode(&self) -> Vec<u8> {
        let filters: serde_json::Map<String, Value> =
            self.filters.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let state: Vec<Value> = self
            .state
            .iter()
            .map(|a| json!({"name": a.name, "type": a.ty.cdl_name(), "shape": a.shape}))
            .collect();
        let value = json!({
            "esker": WHAT,
            "format": 1,
            "identity": format!("{:016x}", self.identity),
            "ranks": self.ranks,
            "steps": self.steps,
            "memory": self.budgets[0],
            "disk": self.budgets[1],
            "filters": filters,
            "state": state,
            "fingerprint": format!("{:016x}", self.fingerprint),
        });
        let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
        text.push('\n');
        text.into_bytes()
    }

    fn decode(bytes: &[u8]) -> std::result::Result<About, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|e| format!("{MARK}: {e}"))?;
        if value["esker"] != WHAT {
            return Err(format!("{MARK} does not say that these are {WHAT}"));
        }
        if value["format"] != 1 {
            return Err(format!("{MARK} has format {}, and only 1 is known", value["format"]));
        }
        let number = |key: &str| {
            value[key].as_u64().ok_or_else(|| format!("{MARK}: {key} is {}", value[key]))
        };
        let hex = |key: &str| {
            let text = value[key].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
            text.ok_or_else(|| format!("{MARK}: {key} is {}", value[key]))
        };
        let ranks = u32::try_from(number("ranks")?).map_err(|e| format!("{MARK}: ranks: {e}"))?;
        let filters = value["filters"].as_object().into_iter().flatten();
        let filters = filters
            .filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_string())))
            .collect();
        let arrays = value["state"].as_array().into_iter().flatten();
        let layout = |array: &Value| {
            let types = esker_format::ExternalType::ALL;
            let ty = types.into_iter().find(|ty| array["type"] == ty.cdl_name())?;
            let shape = array["shape"].as_array()?.iter();
            let shape = shape.map(|len| usize::try_from(len.as_u64()?).ok());
            let shape = shape.collect::<Option<Vec<usize>>>()?;
            Some(Layout { name: array["name"].as_str()?.to_string(), ty, shape })
        };
        let state = arrays.map(layout).collect::<Option<Vec<Layout>>>();
        let state = state.ok_or_else(|| format!("{MARK}: state is {}", value["state"]))?;
        Ok(About {
            identity: hex("identity")?,
            ranks,
            steps: number("steps")?,
            budgets: [number("memory")?, number("disk")?],
            filters,
            state,
            fingerprint: hex("fingerprint")?,
        })
    }
}

fn read_all(file: &dyn File) -> Result<Vec<u8>> {
    let len = file.len()?.min(LONGEST) as usize;
    let mut bytes = vec![0; len];
    let found = file.read_at(0, &mut bytes)?;
    bytes.truncate(found);
    Ok(bytes)
}

/// A rank's part of a folder.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) path: PathBuf,
    pub(crate) identity: u64,
    pub(crate) rank: u32,
    journal: Arc<dyn File>,
    at: u64,
    pub(crate) next: u64,
}

/// The journal's head, which says whose it is.
fn head(identity: u64, rank: u32, ranks: u32) -> Vec<u8> {
    Head { identity, rank, ranks, text: WHAT.into() }.encode()
}

pub(crate) fn journal_path(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("journal.{rank}"))
}

/// The name of a segment: no number comes twice, so that what is being written is never what is read.
pub(crate) fn segment_path(folder: &Path, rank: u32, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{rank}.seg"))
}

fn refused(path: &Path, why: impl Into<String>) -> AdjointError {
    AdjointError::Folder { path: path.into(), why: why.into() }
}

impl Folder {
    /// Makes the folder, once, by rank 0. An older run's is refused, unless it is done.
    pub(crate) fn prepare(store: &dyn Store, path: &Path, about: &About) -> Result<()> {
        let mark = path.join(MARK);
        if store.is_dir(path)? {
            let names = store.names_in(path)?;
            if store.exists(&mark)? {
                let (old, found) = Folder::survey(store, path)?;
                if !found.iter().all(|rank| rank.end_reverse) {
                    let why = format!(
                        "it holds a run of {} steps that is not done: resume it, or remove the folder",
                        old.steps
                    );
                    return Err(refused(path, why));
                }
            } else if names.iter().any(|name| name != NEW_MARK) {
                return Err(refused(path, "it is there and holds something else"));
            }
            // The mark goes first: without it, nothing here is a run.
            for name in std::iter::once(MARK.to_string()).chain(names) {
                let ours = name == MARK || name.ends_with(".seg") || name.starts_with("journal.");
                if ours && store.exists(&path.join(&name))? {
                    store.remove(&path.join(&name))?;
                }
            }
        } else {
            store.create_dir(path)?;
        }
        let new = path.join(NEW_MARK);
        let file = store.create(&new, CreateMode::Truncate)?;
        file.write_at(0, &about.encode())?;
        file.sync()?;
        store.rename(&new, &mark)?;
        store.sync_names(&mark)?;
        Ok(())
    }

    /// Begins a rank's journal.
    pub(crate) fn create(
        store: Arc<dyn Store>,
        path: &Path,
        about: &About,
        rank: u32,
    ) -> Result<Folder> {
        let journal = store.create(&journal_path(path, rank), CreateMode::Truncate)?;
        let head = head(about.identity, rank, about.ranks);
        journal.write_at(0, &head)?;
        let (identity, at) = (about.identity, head.len() as u64);
        Ok(Folder { store, path: path.into(), identity, rank, journal, at, next: 0 })
    }

    /// Opens a rank's journal to go on; what its torn tail said is overwritten.
    pub(crate) fn open(
        store: Arc<dyn Store>,
        path: &Path,
        about: &About,
        rank: u32,
    ) -> Result<(Folder, Survivors)> {
        let file = journal_path(path, rank);
        if !store.exists(&file)? {
            // It was killed before it began.
            return Ok((Folder::create(store, path, about, rank)?, Survivors::default()));
        }
        let journal = store.open(&file, Access::ReadWrite)?;
        let found = survivors(&*journal, &file, about, rank)?;
        let Some(found) = found else {
            return Ok((Folder::create(store, path, about, rank)?, Survivors::default()));
        };
        journal.set_len(found.length)?;
        let (identity, at, next) = (about.identity, found.length, found.next);
        Ok((Folder { store, path: path.into(), identity, rank, journal, at, next }, found))
    }

    /// What a folder is, and what each rank's journal says.
    pub(crate) fn survey(store: &dyn Store, path: &Path) -> Result<(About, Vec<Survivors>)> {
        let about = Folder::about(store, path)?;
        let mut found = Vec::new();
        for rank in 0..about.ranks {
            let file = journal_path(path, rank);
            let said = match store.exists(&file)? {
                true => survivors(&*store.open(&file, Access::Read)?, &file, &about, rank)?,
                false => None,
            };
            found.push(said.unwrap_or_default());
        }
        Ok((about, found))
    }

    /// What a folder is.
    pub(crate) fn about(store: &dyn Store, path: &Path) -> Result<About> {
        let mark = path.join(MARK);
        if !store.is_dir(path)? || !store.exists(&mark)? {
            return Err(refused(path, format!("it is no folder of {WHAT}: there is no {MARK}")));
        }
        let bytes = read_all(&*store.open(&mark, Access::Read)?)?;
        About::decode(&bytes).map_err(|why| refused(path, why))
    }

    pub(crate) fn log(&mut self, event: Event) -> Result<()> {
        let bytes = event.encode();
        self.journal.write_at(self.at, &bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// A number for a new segment.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Gives a segment up: first the journal, then the file.
    pub(crate) fn drop_segment(&mut self, number: u64) -> Result<()> {
        self.log(Event::Dropped { number })?;
        let path = segment_path(&self.path, self.rank, number);
        match self.store.exists(&path)? {
            true => Ok(self.store.remove(&path)?),
            false => Ok(()),
        }
    }

    /// Removes segments of this rank that the journal does not know: they were being written when the run ended.
    pub(crate) fn sweep(&self, known: &[Record]) -> Result<()> {
        let end = format!(".{}.seg", self.rank);
        for name in self.store.names_in(&self.path)? {
            let number = name.strip_suffix(&end).and_then(|number| number.parse::<u64>().ok());
            if number.is_some_and(|number| known.iter().all(|record| record.number != number)) {
                self.store.remove(&self.path.join(&name))?;
            }
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.journal.sync()?)
    }
}

fn survivors(file: &dyn File, path: &Path, about: &About, rank: u32) -> Result<Option<Survivors>> {
    let bytes = read_all(file)?;
    let Some((head, len)) = Head::decode(&bytes) else {
        // A head that was never whole has nothing behind it.
        return if bytes.len() < 64 {
            Ok(None)
        } else {
            Err(refused(path, "the head of the journal is damaged"))
        };
    };
    if (head.identity, head.rank, head.ranks) != (about.identity, rank, about.ranks) {
        return Err(refused(path, "the journal is of another run"));
    }
    Ok(Some(journal::read(&bytes[len..], len as u64)))
}

/// Writes a segment: whole or an error.
pub(crate) fn write_segment(
    store: &dyn Store,
    path: &Path,
    bytes: &[u8],
    sync: bool,
) -> Result<()> {
    let file = store.create(path, CreateMode::Truncate)?;
    let written = file.write_at(0, bytes).and_then(|()| if sync { file.sync() } else { Ok(()) });
    if written.is_err() {
        // What a full disk took of it is in the way of others.
        let _ = store.remove(path);
    }
    Ok(written?)
}

/// Reads a segment as it is.
pub(crate) fn read_segment(store: &dyn Store, path: &Path) -> Result<Vec<u8>> {
    read_all(&*store.open(path, Access::Read)?)
}

/// Records of a kind.
pub(crate) fn of_kind(found: &Survivors, kind: Kind) -> Vec<Record> {
    found.kept.iter().filter(|record| record.kind == kind).copied().collect()
}
